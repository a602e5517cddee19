#include "result/collective.h"

#include "result/basis.h"

namespace llmperf::result {

Type fields_of(Fields<cost::Links> f) {
  using L = cost::Links;
  return f.of<&L::name>("name", "\"HCCS\"")
      .of<&L::topology>("topology", "how neighbours are joined")
      .of<&L::per_device>("per_device_bytes_per_s", "all links of one device")
      .of<&L::per_link>("per_link_bytes_per_s", "to one neighbour")
      .of<&L::provenance>("provenance", "of the rates")
      .of<&L::latency>("latency_s", "of a step")
      .of<&L::latency_provenance>("latency_provenance", "of the latency");
}

Type fields_of(Fields<cost::SizeRange> f) {
  using R = cost::SizeRange;
  return f.of<&R::from>("from_bytes", "up to the next of these").of<&R::algorithm>("algorithm", "the fastest");
}

Type fields_of(Fields<CollectiveLine> f) {
  using L = CollectiveLine;
  constexpr auto moves = [](const L& l) { return l.moves(); };
  return f.of<&L::size>("size_bytes", "of a rank's data")
      .of("algorithm",
          "\"ring\", \"one-shot\", \"two-shot\", \"halving-doubling\", \"tree\", \"bruck\", \"dimensions\", "
          "\"hierarchical\", \"direct\"; \"none\" with one rank",
          [](const L& l) { return l.cost.algorithm; })
      .of<&L::chosen>("chosen", "the fastest, or the one asked for")
      .of("steps", "messages that follow one another", [](const L& l) { return l.cost.steps; })
      .of("sent_bytes", "by one device over all its links", [](const L& l) { return l.cost.sent; })
      .of("busiest_link_bytes", "over the link that limits the exchange",
          [](const L& l) { return l.cost.busiest_link; })
      .of<&L::busiest>("busiest_link", "name of these links")
      .of("latency_s", "of the steps", [](const L& l) { return l.cost.latency; })
      .of("transfer_s", "of the bytes", [](const L& l) { return l.cost.transfer; })
      .of("time_s", "the sum", [](const L& l) { return l.cost.time(); })
      .where(moves)
      .of("bound", "\"latency\" or \"bandwidth\", whichever takes longer; null with one rank",
          [](const L& l) { return l.latency_bound() ? "latency" : "bandwidth"; })
      .of<&L::algorithm_bandwidth>("algorithm_bandwidth_bytes_per_s", "as nccl-tests define it; null with one rank")
      .of<&L::bus_bandwidth>("bus_bandwidth_bytes_per_s", "likewise");
}

Type fields_of(Fields<CollectiveStudy> f) {
  using S = CollectiveStudy;
  return f.of("label", "\"upper bound, uncalibrated\"", [](const S&) { return kUncalibrated; })
      .of("hardware", "its name", [](const S& s) { return s.device->name; })
      .of("op",
          "\"all-reduce\", \"all-gather\", \"reduce-scatter\", \"all-to-all\", \"send\", \"ring pass\" or "
          "\"broadcast\"",
          [](const S& s) { return s.collective.kind; })
      .of("ranks", "as asked for", [](const S& s) { return s.collective.ranks; })
      .of("stride", "as asked for", [](const S& s) { return s.collective.stride; })
      .of("devices_per_node", "null: links between neighbours join any number",
          [](const S& s) { return s.cluster.devices_per_node; })
      .when([](const S& s) { return s.cluster.devices_per_node != cost::kAnyDevices; })
      .of("ranks_per_node", "how the ranks lie", [](const S& s) { return s.placement().inside; })
      .of("nodes", "likewise", [](const S& s) { return s.placement().nodes; })
      .of("package", "links between dies of a card; null: there are none", [](const S& s) { return s.cluster.package; })
      .when([](const S& s) { return s.cluster.devices_per_package > 1; })
      .of("inside", "links of a node", [](const S& s) { return s.cluster.inside; })
      .of("supernode", "links between nodes that share ports with those inside; null: there are none",
          [](const S& s) { return s.cluster.supernode; })
      .when([](const S& s) { return s.cluster.devices_per_supernode > 1; })
      .of("between", "links between nodes", [](const S& s) { return s.cluster.between; })
      .of<&S::lines>("rows", "with one size every algorithm, fastest first; with several the chosen one of each")
      .of<&S::fastest>("fastest", "by size, up to 1 TiB");
}

void study_collective(CollectiveStudy& s) {
  for (const Bytes size : s.sizes) {
    graph::Collective c = s.collective;
    c.element = {};
    c.rows = size.value / bytes_per_element(c.element);
    c.width = 1;
    const auto add = [&](const cost::CollectiveCost& cost, bool chosen) {
      s.lines.push_back({size, cost, chosen, s.cluster.links(cost.level).name, cost::sent_bytes(c)});
    };
    const cost::CollectiveCost chosen = collective_cost(s.cluster, c, s.algorithm);
    if (s.sizes.size() > 1) {
      add(chosen, true);
    } else {
      for (const auto& one : collective_costs(s.cluster, c)) add(one, one.algorithm == chosen.algorithm);
    }
  }
  s.fastest = fastest_by_size(s.cluster, s.collective);
}

}  // namespace llmperf::result
