// Which algorithms a collective has in a cluster, and the fastest of them.
//
// n ranks lie r to a node in q nodes. With q = 1 only the links inside count, with r = 1 only the network. With both:
//  * hierarchical: all-reduce is a reduce-scatter inside, an all-reduce between nodes of the 1/r slice that each device
//    then holds, and an all-gather inside; all-gather and reduce-scatter have two of these stages, all-to-all exchanges
//    inside what the peers in the other nodes are to get and sends each of the q - 1 others one message. A broadcast
//    goes to the nodes and from there on, or is cut in slices first, whichever is faster: scatter inside, broadcasts of
//    the slices between nodes, all-gather inside. A stage takes its own fastest algorithm, and the stages follow one
//    another.
//  * ring over all ranks, as NCCL builds them: r rings with 1/r of the tensor each, that enter and leave a node at
//    different devices, so a network port sends 1/r of the bytes that a device sends to its neighbours. The levels work
//    at the same time and the slower one sets the rate; of n - 1 steps in a row q are between nodes.
//  * hierarchical all-to-all of tokens on their way to experts, as DeepEP has it (DeepSeek-V3, arXiv 2412.19437,
//    section 3.2.2): a token that devices of a node wait for is sent to the node once, to the device there that has the
//    sender's place, and passed on inside. A rank holds T n p rows for the devices, p being the chance that a token has
//    experts on one of them (Routing), and T q P for the nodes, P being that chance of a node: P / (r p) of the bytes
//    are for the network, and (r - 1) / r of the T n p rows go over the links inside, with those of other ranks that it
//    passes on. Both levels work at the same time. Results come back the same way, summed up where they meet.
//  * one-shot all-to-all over all ranks: the n - r messages to other nodes leave while those inside are under way.
//  * send and ring pass: some neighbours are in another node, and all wait for them.
#include "cost/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "cost/collective_algorithms.h"

namespace llmperf::cost {
namespace {

using graph::CollectiveKind;
using hardware::Topology;

constexpr std::array<std::string_view, 10> kAlgorithmNames = {
    "none", "ring",  "one-shot",   "two-shot",     "halving-doubling",
    "tree", "bruck", "dimensions", "hierarchical", "direct"};
static_assert(static_cast<std::size_t>(Algorithm::direct) + 1 == kAlgorithmNames.size());

double number(std::int64_t n) { return static_cast<double>(n); }

CollectiveCost after(const CollectiveCost& first, const CollectiveCost& second) {
  const CollectiveCost& slower = second.transfer > first.transfer ? second : first;
  CollectiveCost both = slower;
  both.algorithm = Algorithm::hierarchical;
  both.steps = first.steps + second.steps;
  both.sent = first.sent + second.sent;
  both.latency = first.latency + second.latency;
  both.transfer = first.transfer + second.transfer;
  return both;
}

// The faster of two; `none` is no algorithm.
CollectiveCost faster(const CollectiveCost& a, const CollectiveCost& b) {
  return a.algorithm == Algorithm::none || b.time() < a.time() ? b : a;
}

// Between devices of different nodes.
Candidates over_network(const Cluster& cluster, const Exchange& x) {
  Candidates found;
  for (CollectiveCost cost : one_level(cluster.between, x)) {
    cost.between = true;
    found.add(cost);
  }
  return found;
}

// A collective over both levels.
class TwoLevels {
 public:
  TwoLevels(const Cluster& cluster, const Exchange& x, const Placement& place)
      : cluster_(cluster), x_(x), r_(place.inside), q_(place.nodes) {}

  Candidates costs() const {
    Candidates found;
    switch (x_.kind) {
      case CollectiveKind::send:
      case CollectiveKind::ring_pass: found.add(neighbour()); break;
      case CollectiveKind::all_to_all:
        found.add(pairwise());
        found.add(forwarded());
        break;
      case CollectiveKind::all_gather:
        found.add(ring());
        found.add(after(between(x_.kind, slice()), inside(x_.kind, x_.bytes)));
        break;
      case CollectiveKind::reduce_scatter:
        found.add(ring());
        found.add(after(inside(x_.kind, x_.bytes), between(x_.kind, slice())));
        break;
      case CollectiveKind::all_reduce: {
        found.add(ring());
        const CollectiveCost reduced =
            after(inside(CollectiveKind::reduce_scatter, x_.bytes), between(x_.kind, slice()));
        found.add(after(reduced, inside(CollectiveKind::all_gather, x_.bytes)));
        break;
      }
      case CollectiveKind::broadcast: {
        found.add(ring());
        const CollectiveCost whole = after(between(x_.kind, x_.bytes), inside(x_.kind, x_.bytes));
        const CollectiveCost gather =
            inside(CollectiveKind::all_gather, x_.bytes);  // and the scatter, its mirror image
        const CollectiveCost sliced = after(after(gather, between(x_.kind, slice())), gather);
        found.add(faster(whole, sliced));
        break;
      }
    }
    return found;
  }

 private:
  double slice() const { return x_.bytes / number(r_); }

  Candidates all_inside(CollectiveKind kind, double bytes) const {
    return one_level(cluster_.inside, {kind, r_, x_.stride, bytes});
  }
  Candidates all_between(CollectiveKind kind, double bytes) const {
    return over_network(cluster_, {kind, q_, 1, bytes});
  }
  CollectiveCost inside(CollectiveKind kind, double bytes) const { return all_inside(kind, bytes).fastest(); }
  CollectiveCost between(CollectiveKind kind, double bytes) const { return all_between(kind, bytes).fastest(); }

  // The slower of two levels that work at the same time.
  CollectiveCost together(Algorithm algorithm, Bytes inside_link, Seconds inside_time, Bytes network) const {
    CollectiveCost cost;
    cost.algorithm = algorithm;
    const Seconds network_time = network / cluster_.between.per_device;
    cost.between = network_time >= inside_time;
    cost.busiest_link = cost.between ? network : inside_link;
    cost.transfer = std::max(inside_time, network_time);
    return cost;
  }

  CollectiveCost ring() const {
    const Links& links = cluster_.inside;
    const Bytes sent{x_.ring_bytes()};
    const bool switched = links.topology == Topology::fully_switched || links.topology == Topology::pcie_tree;
    // Links inside that share what a device passes on: one of each path in a mesh, both ways round of a ring.
    const double share = links.topology == Topology::full_mesh ? number(r_) : switched ? 1 : 2;
    const BytesPerSecond rate = switched ? links.per_device : links.per_link;
    CollectiveCost cost = together(Algorithm::ring, sent / share, sent / share / rate, sent / number(r_));
    const double crossing = number(std::min(q_, x_.ranks - 1));
    cost.steps = x_.ring_rounds() * x_.others();
    cost.sent = sent;
    cost.latency = cluster_.between.launch +
                   x_.ring_rounds() * (crossing * cluster_.between.latency + (x_.others() - crossing) * links.latency);
    add_chunks(links, x_.broadcast() ? 0 : x_.block(), 1, cost);
    return cost;
  }

  // Levels that work at the same time do not each take their fastest algorithm, but those that are the fastest
  // together.
  CollectiveCost pairwise() const {
    CollectiveCost best;
    for (const CollectiveCost& in : all_inside(CollectiveKind::all_to_all, x_.block() * number(r_))) {
      best = faster(best, pairwise(in));
    }
    return best;
  }
  CollectiveCost pairwise(const CollectiveCost& in) const {
    const double outside = number(x_.ranks - r_);
    CollectiveCost cost = together(Algorithm::one_shot, in.busiest_link, in.transfer, Bytes{outside * x_.block()});
    cost.steps = std::max(in.steps, outside);
    cost.sent = Bytes{x_.others() * x_.block()};
    cost.latency = std::max(in.latency, cluster_.between.launch + outside * cluster_.between.latency);
    return cost;
  }

  // By node, and on from the device there that has the sender's place. What is routed goes to a node once, while what
  // came before is passed on, by one kernel.
  CollectiveCost forwarded() const {
    CollectiveCost best;
    for (const CollectiveCost& in : all_inside(CollectiveKind::all_to_all, x_.bytes)) {
      for (const CollectiveCost& out : all_between(CollectiveKind::all_to_all, x_.bytes * x_.once)) {
        CollectiveCost cost = after(in, out);
        if (x_.routed) {
          cost.transfer = std::max(in.transfer, out.transfer);
          cost.latency = cost.latency - cluster_.between.launch;
        }
        best = faster(best, cost);
      }
    }
    return best;
  }

  CollectiveCost neighbour() const {
    const bool send = x_.kind == CollectiveKind::send;
    const double passes = send ? 1 : x_.others();
    const Bytes sent{passes * x_.bytes};
    CollectiveCost cost =
        together(send ? Algorithm::direct : Algorithm::ring, sent, sent / cluster_.inside.per_link, sent);
    cost.steps = passes;
    cost.sent = sent;
    cost.latency = passes * (cluster_.between.launch + std::max(cluster_.inside.latency, cluster_.between.latency));
    add_chunks(cluster_.inside, 0, passes, cost);
    return cost;
  }

  const Cluster& cluster_;
  const Exchange& x_;
  std::int64_t r_;
  std::int64_t q_;
};

Candidates candidates(const Cluster& cluster, const graph::Collective& c) {
  Exchange x{c.kind, c.ranks, c.stride, c.bytes().value};
  const Placement at = place(cluster, c);
  x.routed = c.routing.experts > 0;
  if (x.routed) {
    const std::int64_t held = c.routing.experts / c.ranks;
    x.once = reached(c.routing, at.inside * held) / (number(at.inside) * reached(c.routing, held));
  }
  if (at.nodes == 1) return one_level(cluster.inside, x);
  if (at.inside > 1) return TwoLevels(cluster, x, at).costs();
  return over_network(cluster, {x.kind, x.ranks, 1, x.bytes});
}

Error no_such_algorithm(Algorithm algorithm, const graph::Collective& c, const Candidates& found) {
  std::vector<std::string> names;
  for (const CollectiveCost& cost : found) names.emplace_back(name(cost.algorithm));
  return Error::bad_input(
      fmt::format("there is no {} {} of {} ranks on these links", name(algorithm), name(c.kind), c.ranks),
      "there is: " + join(names, ", "));
}

}  // namespace

std::string_view name(Algorithm algorithm) { return kAlgorithmNames[static_cast<std::size_t>(algorithm)]; }

Placement place(const Cluster& cluster, const graph::Collective& c) {
  const std::int64_t ranks = std::max<std::int64_t>(1, c.ranks);
  const std::int64_t fit = std::max<std::int64_t>(1, cluster.devices_per_node / std::max<std::int64_t>(1, c.stride));
  const std::int64_t inside = std::min(ranks, fit);
  return {inside, (ranks + inside - 1) / inside};
}

CollectiveCost collective_cost(const Cluster& cluster, const graph::Collective& collective,
                               std::optional<Algorithm> algorithm) {
  if (collective.ranks <= 1) return {};
  const Candidates found = candidates(cluster, collective);
  if (!algorithm) return found.fastest();
  for (const CollectiveCost& cost : found) {
    if (cost.algorithm == *algorithm) return cost;
  }
  throw no_such_algorithm(*algorithm, collective, found);
}

std::vector<CollectiveCost> collective_costs(const Cluster& cluster, const graph::Collective& collective) {
  if (collective.ranks <= 1) return {CollectiveCost{}};
  const Candidates found = candidates(cluster, collective);
  std::vector<CollectiveCost> costs(found.begin(), found.end());
  std::stable_sort(costs.begin(), costs.end(),
                   [](const CollectiveCost& a, const CollectiveCost& b) { return a.time() < b.time(); });
  return costs;
}

std::vector<SizeRange> fastest_by_size(const Cluster& cluster, const graph::Collective& collective) {
  graph::Collective sized = collective;
  sized.width = 1;
  sized.element = {};
  const double unit = bytes_per_element(sized.element);
  const auto at = [&](std::int64_t bytes) {
    sized.rows = number(bytes) / unit;
    return collective_cost(cluster, sized).algorithm;
  };
  // A grid fine enough that no algorithm comes and goes within a cell; then halving the cell where it changes.
  constexpr int kPerOctave = 4;
  constexpr int kOctaves = 40;
  std::vector<SizeRange> ranges = {{Bytes{1}, at(1)}};
  std::int64_t low = 1;
  for (int i = 1; i <= kOctaves * kPerOctave; ++i) {
    const auto high = static_cast<std::int64_t>(std::exp2(static_cast<double>(i) / kPerOctave));
    if (const Algorithm next = at(high); next != ranges.back().algorithm) {
      std::int64_t first = high;
      for (std::int64_t last = low; first - last > 1;) {
        const std::int64_t middle = last + (first - last) / 2;
        (at(middle) == next ? first : last) = middle;
      }
      ranges.push_back({Bytes{number(first)}, next});
    }
    low = high;
  }
  return ranges;
}

Bytes sent_bytes(const graph::Collective& c) {
  if (c.ranks <= 1) return Bytes{0};
  const double others = number(c.ranks - 1);
  switch (c.kind) {
    case CollectiveKind::all_reduce: return 2 * others / number(c.ranks) * c.bytes();
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all: return others / number(c.ranks) * c.bytes();
    case CollectiveKind::send:
    case CollectiveKind::broadcast: return c.bytes();
    case CollectiveKind::ring_pass: return others * c.bytes();
  }
  return Bytes{0};
}

}  // namespace llmperf::cost
