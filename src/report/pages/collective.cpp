// `llmperf map-collective`.

#include "base/number.h"
#include "report/reports.h"
#include "report/rows.h"
#include "report/table.h"
#include "result/basis.h"
#include "result/document.h"
#include "result/mapping.h"

namespace llmperf::report {
namespace {

std::string ranks_text(const CollectiveStudy& study) {
  const std::int64_t ranks = study.collective.ranks;
  const cost::Placement at = study.placement();
  std::string text = fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s");
  if (study.collective.stride > 1) text += fmt::format(", {} devices apart", study.collective.stride);
  if (ranks == 1) return text;
  if (at.nodes == 1) return text + ", in one node";
  return text +
         (at.inside == 1 ? ", each in another node" : fmt::format(", {} in each of {} nodes", at.inside, at.nodes));
}

// Why an algorithm takes the time it does.
std::string why_text(const CollectiveLine& line) {
  const cost::CollectiveCost& cost = line.cost;
  if (!line.moves()) return "nothing to exchange";
  if (line.latency_bound()) {
    return fmt::format("bound by latency: {} steps are {} of the time", Rounded{cost.steps},
                       Share{cost.latency / cost.time()});
  }
  return fmt::format("bound by bandwidth: {} of the time is transfer over {}", Share{cost.transfer / cost.time()},
                     line.busiest);
}

// Where another algorithm takes over.
std::string neighbours_text(const std::vector<cost::SizeRange>& ranges, Bytes size) {
  std::size_t here = 0;
  while (here + 1 < ranges.size() && ranges[here + 1].from <= size) ++here;
  if (ranges.size() == 1) return "it is the fastest at every size";
  std::string text;
  if (here > 0) {
    text = fmt::format("below {} {} is faster", Held{ranges[here].from}, name(ranges[here - 1].algorithm));
  }
  if (here + 1 < ranges.size()) {
    text += fmt::format("{}from {} on {} is faster", text.empty() ? "" : ", ", Held{ranges[here + 1].from},
                        name(ranges[here + 1].algorithm));
  }
  return text;
}

Fields answer(const CollectiveStudy& study) {
  Fields f;
  const CollectiveLine* chosen = study.lines.data();
  for (const CollectiveLine& line : study.lines) {
    if (line.chosen) chosen = &line;
  }
  f.add("time", format_seconds(chosen->cost.time()));
  if (study.collective.ranks <= 1) return f;
  f.add("algorithm", "{}, {}", name(chosen->cost.algorithm), why_text(*chosen));
  const cost::CollectiveCost& fastest = study.lines.front().cost;
  if (fastest.algorithm != chosen->cost.algorithm) {
    f.add("fastest", "{}, {} times faster", name(fastest.algorithm), Rounded{chosen->cost.time() / fastest.time(), 3});
  } else {
    f.add("other sizes", neighbours_text(study.fastest, chosen->size));
  }
  return f;
}

Table lines_table(const CollectiveStudy& study) {
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
  for (const CollectiveLine& l : study.lines) {
    const cost::CollectiveCost& c = l.cost;
    add_row(t, one_size ? (l.chosen ? "*" : "") : format_bytes_binary(l.size), c.algorithm, Rounded{c.steps}, c.sent,
            c.busiest_link, c.latency, c.transfer, c.time(), Rounded{l.algorithm_bandwidth().value / 1e9},
            Rounded{l.bus_bandwidth().value / 1e9});
  }
  return t;
}

void add_links(Fields& f, std::string_view where, const cost::Links& links) {
  std::string rate = format_bandwidth(links.per_device) + " per device";
  if (links.per_link != links.per_device) rate += fmt::format(", {} to a neighbour", links.per_link);
  f.add(std::string(where), "{}, {}: {} ({})", links.name, name(links.topology), rate, name(links.provenance));
  f.add("latency of a step", "{} ({})", links.latency, name(links.latency_provenance));
}

Fields basis_of(const CollectiveStudy& study) {
  Fields f{"Rests on", {}};
  const cost::Cluster& cluster = study.cluster;
  for (const cost::Level level : cost::levels_of(cluster, study.collective)) {
    add_links(f, name(level), cluster.links(level));
  }
  f.add("devices per node", cluster.devices_per_node == cost::kAnyDevices
                                ? "any number: the links join neighbours"
                                : fmt::format("{} ({})", cluster.devices_per_node,
                                              study.node_given ? "given" : name(cluster.node_provenance)));
  return f;
}

}  // namespace

Report collective_report(CollectiveStudy study) {
  study_collective(study);
  Document doc{Heading{fmt::format("{} on {}", name(study.collective.kind), study.device->title), kUncalibrated}};
  if (study.sizes.size() == 1) {
    doc.push_back(Paragraph{format_bytes_binary(study.sizes.front()) + ", " + ranks_text(study)});
    doc.push_back(answer(study));
  } else {
    doc.push_back(Paragraph{ranks_text(study)});
  }
  doc.push_back(lines_table(study));
  if (study.fastest.size() > 1) {
    Table t = titled("Fastest by size", "from, <algorithm");
    for (const auto& r : study.fastest) add_row(t, Held{r.from}, r.algorithm);
    doc.push_back(std::move(t));
  }
  doc.push_back(basis_of(study));
  return {std::move(doc), csv_of(study.lines), result::document("llmperf.collective", study)};
}

}  // namespace llmperf::report
