#include "report/collective_report.h"

#include <fmt/format.h>

#include "base/number.h"
#include "report/json.h"

namespace llmperf::report {
namespace {

using cost::CollectiveCost;
using cost::SizeRange;

graph::Collective sized(const CollectiveStudy& study, Bytes size) {
  graph::Collective c = study.collective;
  c.element = {};
  c.rows = size.value / bytes_per_element(c.element);
  c.width = 1;
  return c;
}

// One line of the table.
struct Line {
  Bytes size;
  CollectiveCost cost;
  bool chosen = false;
  BytesPerSecond algorithm_bandwidth;  // as nccl-tests defines them: size over time, and that times the factor which
  BytesPerSecond bus_bandwidth;  // makes it the rate of the links when all are busy, so unavoidable bytes over time
};

Line line(const CollectiveStudy& study, Bytes size, const CollectiveCost& cost, bool chosen) {
  Line l{size, cost, chosen, {}, {}};
  if (cost.time().value > 0) {
    l.algorithm_bandwidth = size / cost.time();
    l.bus_bandwidth = cost::sent_bytes(sized(study, size)) / cost.time();
  }
  return l;
}

std::vector<Line> lines(const CollectiveStudy& study) {
  std::vector<Line> list;
  for (const Bytes size : study.sizes) {
    const graph::Collective c = sized(study, size);
    const CollectiveCost chosen = collective_cost(study.cluster, c, study.algorithm);
    if (study.sizes.size() > 1) {
      list.push_back(line(study, size, chosen, true));
      continue;
    }
    for (const CollectiveCost& cost : collective_costs(study.cluster, c)) {
      list.push_back(line(study, size, cost, cost.algorithm == chosen.algorithm));
    }
  }
  return list;
}

bool latency_bound(const CollectiveCost& cost) { return cost.latency > cost.transfer; }

std::string placement_text(const CollectiveStudy& study) {
  const std::int64_t ranks = study.collective.ranks;
  const cost::Placement at = place(study.cluster, study.collective);
  std::string text = fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s");
  if (study.collective.stride > 1) text += fmt::format(", {} devices apart", study.collective.stride);
  if (ranks == 1) return text;
  if (at.nodes == 1) return text + ", in one node";
  return text +
         (at.inside == 1 ? ", each in another node" : fmt::format(", {} in each of {} nodes", at.inside, at.nodes));
}

std::string_view busiest_name(const CollectiveStudy& study, const CollectiveCost& cost) {
  return cost.between ? study.cluster.between.name : study.cluster.inside.name;
}

// Why an algorithm takes the time it does.
std::string bound_text(const CollectiveStudy& study, const CollectiveCost& cost) {
  if (cost.time().value == 0) return "nothing to exchange";
  if (latency_bound(cost)) {
    return fmt::format("bound by latency: {} steps are {} of the time", format_significant(cost.steps),
                       format_share(cost.latency / cost.time()));
  }
  return fmt::format("bound by bandwidth: {} of the time is transfer over {}",
                     format_share(cost.transfer / cost.time()), busiest_name(study, cost));
}

// Where another algorithm takes over.
std::string neighbours_text(const std::vector<SizeRange>& ranges, Bytes size) {
  std::size_t here = 0;
  while (here + 1 < ranges.size() && ranges[here + 1].from <= size) ++here;
  if (ranges.size() == 1) return "it is the fastest at every size";
  std::string text;
  if (here > 0) {
    text =
        fmt::format("below {} {} is faster", format_bytes_binary(ranges[here].from), name(ranges[here - 1].algorithm));
  }
  if (here + 1 < ranges.size()) {
    text += fmt::format("{}from {} on {} is faster", text.empty() ? "" : ", ",
                        format_bytes_binary(ranges[here + 1].from), name(ranges[here + 1].algorithm));
  }
  return text;
}

Fields headline(const CollectiveStudy& study, const std::vector<Line>& list, const std::vector<SizeRange>& ranges) {
  Fields f;
  const Line* chosen = list.data();
  for (const Line& l : list) {
    if (l.chosen) chosen = &l;
  }
  f.rows.emplace_back("time", format_seconds(chosen->cost.time()));
  if (study.collective.ranks <= 1) return f;
  f.rows.emplace_back("algorithm",
                      fmt::format("{}, {}", name(chosen->cost.algorithm), bound_text(study, chosen->cost)));
  const Line& fastest = list.front();
  if (fastest.cost.algorithm != chosen->cost.algorithm) {
    f.rows.emplace_back("fastest", fmt::format("{}, {} times faster", name(fastest.cost.algorithm),
                                               format_significant(chosen->cost.time() / fastest.cost.time(), 3)));
  } else {
    f.rows.emplace_back("other sizes", neighbours_text(ranges, chosen->size));
  }
  return f;
}

Table table(const CollectiveStudy& study, const std::vector<Line>& list) {
  const bool one_size = study.sizes.size() == 1;
  Table t{one_size ? "Algorithms (* chosen; busiest: over the busiest link; bandwidths in GB/s)"
                   : "Sizes (busiest: over the busiest link; bandwidths in GB/s)",
          {{one_size ? "" : "size", one_size},
           {"algorithm", true},
           {"steps"},
           {"sent"},
           {"busiest"},
           {"latency"},
           {"transfer"},
           {"time"},
           {"algbw"},
           {"busbw"}},
          {}};
  for (const Line& l : list) {
    const CollectiveCost& c = l.cost;
    t.rows.push_back({one_size ? (l.chosen ? "*" : "") : format_bytes_binary(l.size), std::string(name(c.algorithm)),
                      format_significant(c.steps), format_bytes(c.sent), format_bytes(c.busiest_link),
                      format_seconds(c.latency), format_seconds(c.transfer), format_seconds(c.time()),
                      format_significant(l.algorithm_bandwidth.value / 1e9),
                      format_significant(l.bus_bandwidth.value / 1e9)});
  }
  return t;
}

Table range_table(const std::vector<SizeRange>& ranges) {
  Table t{"Fastest by size", {{"from"}, {"algorithm", true}}, {}};
  for (const SizeRange& r : ranges) t.rows.push_back({format_bytes_binary(r.from), std::string(name(r.algorithm))});
  return t;
}

std::string node_text(const CollectiveStudy& study) {
  if (study.cluster.devices_per_node == cost::kAnyDevices) return "any number: the links join neighbours";
  return fmt::format("{} ({})", study.cluster.devices_per_node,
                     study.node_given ? "given" : hardware::name(study.cluster.node_provenance));
}

void add_links(Fields& f, const char* where, const cost::Links& links) {
  std::string rate = format_bandwidth(links.per_device) + " per device";
  if (links.per_link != links.per_device) rate += fmt::format(", {} to a neighbour", format_bandwidth(links.per_link));
  f.rows.emplace_back(where, fmt::format("{}, {}: {} ({})", links.name, hardware::name(links.topology), rate,
                                         hardware::name(links.provenance)));
  f.rows.emplace_back("latency of a step",
                      fmt::format("{} ({})", format_seconds(links.latency), hardware::name(links.latency_provenance)));
}

Fields basis(const CollectiveStudy& study) {
  Fields f{"Rests on", {}};
  const cost::Placement at = place(study.cluster, study.collective);
  if (at.inside > 1) add_links(f, "inside a node", study.cluster.inside);
  if (at.nodes > 1) add_links(f, "between nodes", study.cluster.between);
  f.rows.emplace_back("devices per node", node_text(study));
  return f;
}

Json links_json(const cost::Links& links) {
  return {{"name", std::string(links.name)},
          {"topology", std::string(hardware::name(links.topology))},
          {"per_device_bytes_per_s", number(links.per_device)},
          {"per_link_bytes_per_s", number(links.per_link)},
          {"provenance", std::string(hardware::name(links.provenance))},
          {"latency_s", number(links.latency)},
          {"latency_provenance", std::string(hardware::name(links.latency_provenance))}};
}

Json row_json(const CollectiveStudy& study, const Line& l) {
  const CollectiveCost& c = l.cost;
  const bool moves = c.time().value > 0;
  return {{"size_bytes", number(l.size)},
          {"algorithm", std::string(name(c.algorithm))},
          {"chosen", l.chosen},
          {"steps", number(c.steps)},
          {"sent_bytes", number(c.sent)},
          {"busiest_link_bytes", number(c.busiest_link)},
          {"busiest_link", std::string(busiest_name(study, c))},
          {"latency_s", number(c.latency)},
          {"transfer_s", number(c.transfer)},
          {"time_s", number(c.time())},
          {"bound", moves ? Json(latency_bound(c) ? "latency" : "bandwidth") : Json(nullptr)},
          {"algorithm_bandwidth_bytes_per_s", moves ? number(l.algorithm_bandwidth) : Json(nullptr)},
          {"bus_bandwidth_bytes_per_s", moves ? number(l.bus_bandwidth) : Json(nullptr)}};
}

Json document_json(const CollectiveStudy& study, const Json& rows, const std::vector<SizeRange>& ranges) {
  const cost::Placement at = place(study.cluster, study.collective);
  const std::int64_t per_node = study.cluster.devices_per_node;
  Json json = json_header("llmperf.collective");
  json["label"] = "upper bound, uncalibrated";
  json["hardware"] = study.device->name;
  json["op"] = std::string(name(study.collective.kind));
  json["ranks"] = study.collective.ranks;
  json["stride"] = study.collective.stride;
  json["devices_per_node"] = per_node == cost::kAnyDevices ? Json(nullptr) : Json(per_node);
  json["ranks_per_node"] = at.inside;
  json["nodes"] = at.nodes;
  json["inside"] = links_json(study.cluster.inside);
  json["between"] = links_json(study.cluster.between);
  json["rows"] = rows;
  json["fastest"] = Json::array();
  for (const SizeRange& r : ranges) {
    json["fastest"].push_back({{"from_bytes", number(r.from)}, {"algorithm", std::string(name(r.algorithm))}});
  }
  return json;
}

}  // namespace

Report collective_report(const CollectiveStudy& study) {
  const std::vector<Line> list = lines(study);
  const std::vector<SizeRange> ranges = fastest_by_size(study.cluster, study.collective);
  Json rows = Json::array();
  for (const Line& l : list) rows.push_back(row_json(study, l));

  Document doc{
      Heading{fmt::format("{} on {}", name(study.collective.kind), study.device->title), "upper bound, uncalibrated"}};
  if (study.sizes.size() == 1) {
    doc.push_back(Paragraph{format_bytes_binary(study.sizes.front()) + ", " + placement_text(study)});
    doc.push_back(headline(study, list, ranges));
  } else {
    doc.push_back(Paragraph{placement_text(study)});
  }
  doc.push_back(table(study, list));
  if (ranges.size() > 1) doc.push_back(range_table(ranges));
  doc.push_back(basis(study));
  return {doc, csv_of(rows), dump(document_json(study, rows, ranges))};
}

}  // namespace llmperf::report
