// Alpha-beta cost of a collective of n ranks over links of one kind: steps * alpha + bytes over the busiest link / its
// rate. S is the size as graph::Collective defines it, M = S / n a block, p = 2 phases of an all-reduce, else 1.
//
// Algorithms, bytes sent by one device:
//  * ring: n - 1 steps of a block in each phase, p (n-1) M (Patarasuk, Yuan 2009, which is optimal in bytes);
//  * one-shot: everyone sends everyone the whole tensor (all-reduce, (n-1) S) or a block ((n-1) M);
//  * two-shot: reduce-scatter and all-gather, each one-shot: 2 (n-1) M in two steps;
//  * halving-doubling: log2(n) rounds of a half, a quarter, … : p (n-1) M (Thakur, Rabenseifner, Gropp 2005); with the
//    block order of Bruck et al. 1997 also for n that is no power of two;
//  * tree: two binary trees in which every rank is a leaf of one, each with half of the tensor, pipelined: 2 S, since
//  an
//    inner node sends half a tensor up and two halves down, a leaf half a tensor up (Sanders, Speck, Traeff 2009);
//  * Bruck's all-to-all: in round k every block whose distance has bit k set goes 2^k ranks on. Over all rounds that is
//    the number of set bits of 0 … n-1: n log2(n) / 2 blocks for a power of two.
//
// A broadcast of S from one rank, pipelined without loss: ring, everyone passes S on, n - 1 steps; one-shot, the root
// sends it n - 1 times; two-shot and halving-doubling, a scatter and an all-gather, 2 (n-1) M by the root (van de Geijn
// 1994); tree, half of the tensor down either of two binary trees, S by an inner node in log2(n) steps. Over neighbours
// the ring goes both ways round where it closes, with half of the tensor each, and the tree of the shortest ways has S
// on every link; the root is taken to be in a corner.
//
// Which link is the busiest:
//  * full mesh: n - 1 links of a device are in use. Everyone-to-everyone loads all of them alike. The rings are as many
//    as there are edge-disjoint directed Hamiltonian cycles: n - 1, but n - 2 for 4 and 6 ranks (Tillson 1980), each
//    with its share of the tensor. A round of halving-doubling or Bruck uses one link.
//  * switch: all traffic of a device passes its own port.
//  * PCIe tree: half of the ranks hang behind one uplink of a single device's rate: floor(n/2) ceil(n/2) pairs cross it
//    in everyone-to-everyone exchanges, one edge of a ring. With a stride s as many groups do so at the same time.
//  * ring of links: half of each block travels either way, so a phase takes floor(n/2) hops and a link carries
//    (n-1) M / 2. Ranks s apart are s hops apart, and s groups share each link.
//  * tori and tile meshes: the ranks are a box, as close to a cube as n allows, whose sides are rings (torus) or lines.
//    Dimension by dimension a phase works on S, then S / d1, …; the tensor is cut in as many parts as there are
//    dimensions, each starting with another one, so that all links work (Jain, Sabharwal 2010). A link of a ring of d
//    carries (d-1)/d / 2 of the tensor (d = 2: there is no second way), of a line (d-1)/d. The single ring is a
//    Hamiltonian cycle of the box. All-to-all takes the shortest way, dimension by dimension: each line of side d
//    carries n / d blocks for each ordered pair of its places, d^2 / 8 of them over a link of a ring, (d/2)^2 over the
//    middle of a line. Groups with a stride are taken to have dimensions of their own.
//
// A library of rings (Links::chunks), as NCCL runs them over a switch (arXiv:2507.04786), takes
//
//   launch + steps alpha + wire + 2 sqrt(fill wire)
//
// wire: the bytes as the algorithm that loads these links least sends them, which over a switch is the ring, and the
// copy of a rank's own part, which goes no further than its memory. A message is cut into chunks that follow each other
// through the ring; a chunk has a latency, fewer chunks leave the pipeline empty for longer, and with the best number
// of chunks these two cost as much as each other and together the last term. An all-to-all has no ring: every message
// is posted at once, which costs the same few steps for any number of ranks. A ring pass is a call for every block,
// each awaited by what uses the block.
#include "cost/collective_algorithms.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace llmperf::cost {
namespace {

using graph::CollectiveKind;
using hardware::Topology;

double number(std::int64_t n) { return static_cast<double>(n); }

// Every rank ends up with the whole tensor, which can be cut on the way: scattered and gathered.
bool all_get_all(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast;
}
bool reduces_or_gathers(CollectiveKind kind) {
  return all_get_all(kind) || kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
}

double log2_rounds(std::int64_t ranks) {
  return static_cast<double>(std::bit_width(static_cast<std::uint64_t>(ranks - 1)));
}

// Bits set in 0 … ranks - 1: blocks that Bruck's all-to-all sends.
double bruck_blocks(std::int64_t ranks) {
  double blocks = 0;
  for (std::int64_t bit = 1; bit < ranks; bit *= 2) {
    const std::int64_t period = 2 * bit;
    blocks += number(ranks / period * bit + std::max<std::int64_t>(0, ranks % period - bit));
  }
  return blocks;
}

// Adds the algorithms of one exchange over one kind of link to a list.
class Writer {
 public:
  Writer(const Links& links, const Exchange& x, Candidates& found) : links_(links), x_(x), found_(found) {}

  void add(Algorithm algorithm, double steps, double sent, double busiest, BytesPerSecond rate, double calls = 1) {
    CollectiveCost cost;
    cost.algorithm = algorithm;
    cost.steps = steps;
    cost.sent = Bytes{sent};
    cost.busiest_link = Bytes{busiest};
    cost.latency = calls * links_.launch + steps * links_.latency;
    cost.transfer = cost.busiest_link / rate;
    found_.add(cost);
  }

  void full_mesh() {
    const double n = number(x_.ranks);
    const double optimal = x_.phases() * x_.others() * x_.block();
    const BytesPerSecond rate = links_.per_link;
    if (all_get_all(x_.kind)) {
      add(Algorithm::one_shot, 1, x_.others() * x_.bytes, x_.bytes, rate);
      add(Algorithm::two_shot, 2, optimal, 2 * x_.block(), rate);
    } else {
      add(Algorithm::one_shot, 1, optimal, x_.block(), rate);
    }
    if (reduces_or_gathers(x_.kind)) {
      const double rings = x_.ranks == 4 || x_.ranks == 6 ? n - 2 : n - 1;
      add(Algorithm::ring, x_.ring_rounds() * x_.others(), x_.ring_bytes(), x_.ring_bytes() / rings, rate);
      add(Algorithm::halving_doubling, x_.phases() * log2_rounds(x_.ranks), optimal, optimal, rate);
    } else {
      bruck(rate);
    }
  }

  void fully_switched() {
    const double optimal = x_.phases() * x_.others() * x_.block();
    const double messages = links_.serial ? x_.others() : 1;
    const BytesPerSecond rate = links_.per_device;
    if (all_get_all(x_.kind)) {
      add(Algorithm::one_shot, messages, x_.others() * x_.bytes, x_.others() * x_.bytes, rate);
      add(Algorithm::two_shot, 2 * messages, optimal, optimal, rate);
    } else {
      add(Algorithm::one_shot, messages, optimal, optimal, rate);
    }
    if (reduces_or_gathers(x_.kind)) {
      add(Algorithm::ring, x_.ring_rounds() * x_.others(), x_.ring_bytes(), x_.ring_bytes(), rate);
      add(Algorithm::halving_doubling, x_.phases() * log2_rounds(x_.ranks), optimal, optimal, rate);
    } else {
      bruck(rate);
    }
    if (x_.kind == CollectiveKind::all_reduce) {
      add(Algorithm::tree, 2 * log2_rounds(x_.ranks), 2 * x_.bytes, 2 * x_.bytes, rate);
    } else if (x_.broadcast()) {
      add(Algorithm::tree, log2_rounds(x_.ranks), x_.bytes, x_.bytes, rate);
    }
  }

  void pcie_tree() {
    const double optimal = x_.phases() * x_.others() * x_.block();
    const double groups = number(x_.stride);
    const double crossing = number(x_.ranks / 2) * number(x_.ranks - x_.ranks / 2) * groups;  // pairs
    const BytesPerSecond rate = links_.per_device;
    if (x_.broadcast()) {
      const double far = number(x_.ranks - x_.ranks / 2) * groups;  // behind the other end of the uplink
      add(Algorithm::one_shot, 1, x_.others() * x_.bytes, std::max(x_.others(), far) * x_.bytes, rate);
      add(Algorithm::two_shot, 2, optimal, (std::max(x_.others(), far) + std::max(x_.others(), crossing)) * x_.block(),
          rate);
      add(Algorithm::ring, x_.others(), x_.bytes, groups * x_.bytes, rate);
      add(Algorithm::tree, log2_rounds(x_.ranks), x_.bytes, groups * x_.bytes, rate);
      return;
    }
    const auto everyone = [&](Algorithm algorithm, double steps, double sent, double per_pair) {
      add(algorithm, steps, sent, std::max(sent, crossing * per_pair), rate);
    };
    if (x_.kind == CollectiveKind::all_reduce) {
      everyone(Algorithm::one_shot, 1, x_.others() * x_.bytes, x_.bytes);
      everyone(Algorithm::two_shot, 2, optimal, 2 * x_.block());
      // Of each tree one edge crosses, with half of the tensor up or down.
      add(Algorithm::tree, 2 * log2_rounds(x_.ranks), 2 * x_.bytes, std::max(2.0, groups) * x_.bytes, rate);
    } else {
      everyone(Algorithm::one_shot, 1, optimal, x_.block());
    }
    if (reduces_or_gathers(x_.kind)) {
      add(Algorithm::ring, x_.phases() * x_.others(), optimal, groups * optimal, rate);
    }
  }

  // A box of devices joined to their neighbours; a ring of links is a box of one dimension.
  void box(int dimensions, bool wraps) {
    const Sides sides = box_sides(dimensions, wraps);
    const double groups = links_.topology == Topology::ring ? number(x_.stride) : 1;
    const double optimal = x_.phases() * x_.others() * x_.block();
    if (!reduces_or_gathers(x_.kind)) {
      all_to_all(sides, groups);
      return;
    }
    if (x_.broadcast()) {
      broadcast(sides, groups);
      return;
    }
    if (sides.count == 1) {
      add(Algorithm::ring, x_.phases() * sides.hops(0) * groups, optimal, groups * optimal / sides.ways(0),
          links_.per_link);
      return;
    }
    // A closed walk over a box that does not wrap needs an even number of devices; else one edge is two hops long and
    // shares its links.
    const bool closed = wraps || x_.ranks % 2 == 0;
    add(Algorithm::ring, x_.phases() * number(x_.ranks / 2 + (closed ? 0 : 1)), optimal, closed ? optimal / 2 : optimal,
        links_.per_link);
    add(Algorithm::dimensions, x_.phases() * sides.all_hops(), optimal, x_.phases() * sides.busiest_part() * x_.bytes,
        links_.per_link);
  }

  // Blocks of one rank that visit the others, or a single message: one link to a neighbour.
  void neighbour() {
    const double passes = x_.kind == CollectiveKind::send ? 1 : x_.others();
    const bool shared = links_.topology == Topology::ring || links_.topology == Topology::pcie_tree;
    const double groups = shared ? number(x_.stride) : 1;
    double hops = links_.topology == Topology::ring ? number(x_.stride) : 1;
    if (links_.topology == Topology::tile_mesh && passes > 1 && box_sides(2, false).count == 1) {
      hops = 2;  // a line is walked on every other device, and back on those left out
    }
    const double sent = passes * x_.bytes;
    add(x_.kind == CollectiveKind::send ? Algorithm::direct : Algorithm::ring, passes * hops, sent, groups * sent,
        links_.per_link, passes);
  }

 private:
  // Sides longer than one device, and what a link of each carries.
  struct Sides {
    std::array<std::int64_t, 3> length = {};
    int count = 0;
    bool wraps = false;

    std::int64_t side(int i) const { return length[static_cast<std::size_t>(i % count)]; }
    double hops(int i) const { return number(wraps ? side(i) / 2 : side(i) - 1); }
    double ways(int i) const { return wraps && side(i) > 2 ? 2 : 1; }
    double all_hops() const {
      double sum = 0;
      for (int i = 0; i < count; ++i) sum += hops(i);
      return sum;
    }
    // Share of the tensor over the busiest link in one phase: part i works on dimension i + k in turn k, after the
    // dimensions before have left it 1 / (their lengths).
    double busiest_part() const {
      double sum = 0;
      for (int turn = 0; turn < count; ++turn) {
        double most = 0;
        for (int part = 0; part < count; ++part) {
          double share = 1 / static_cast<double>(count);
          for (int i = 0; i < turn; ++i) share /= number(side(part + i));
          const double d = number(side(part + turn));
          most = std::max(most, share * (d - 1) / d / ways(part + turn));
        }
        sum += most;
      }
      return sum;
    }
    // Ordered pairs of places on a side whose shortest way leads over the same link, in one direction.
    double pairs_over_a_link(int i) const {
      const std::int64_t d = side(i);
      if (!wraps || d == 2) return number(d / 2) * number(d - d / 2);
      return number(d * d - d % 2) / 8;
    }
  };

  Sides box_sides(int dimensions, bool wraps) const {
    Sides sides;
    sides.wraps = wraps;
    std::int64_t rest = x_.ranks;
    for (int left = dimensions; left >= 1; --left) {
      std::int64_t d = left == 1 ? rest : static_cast<std::int64_t>(std::pow(number(rest), 1.0 / left) + 1e-9);
      while (rest % d != 0) --d;
      rest /= d;
      if (d > 1) sides.length[static_cast<std::size_t>(sides.count++)] = d;
    }
    return sides;
  }

  void all_to_all(const Sides& sides, double groups) {
    double busiest = 0;
    double sent = 0;
    for (int i = 0; i < sides.count; ++i) {
      const double over_a_link = x_.bytes / number(sides.side(i)) * sides.pairs_over_a_link(i);
      busiest = std::max(busiest, over_a_link);
      sent += sides.ways(i) * over_a_link;  // what is passed on included
    }
    add(sides.count == 1 ? Algorithm::ring : Algorithm::dimensions, sides.all_hops() * groups, sent, groups * busiest,
        links_.per_link);
  }

  void broadcast(const Sides& sides, double groups) {
    const bool closed = sides.count == 1 ? sides.ways(0) == 2 : sides.wraps || x_.ranks % 2 == 0;
    add(Algorithm::ring, x_.others() * groups, x_.bytes, groups * x_.bytes / (closed ? 2 : 1), links_.per_link);
    if (sides.count > 1) {
      const double optimal = x_.phases() * x_.others() * x_.block();
      add(Algorithm::dimensions, x_.phases() * sides.all_hops(), optimal, x_.phases() * sides.busiest_part() * x_.bytes,
          links_.per_link);
    }
    double ways = 0;
    for (int i = 0; i < sides.count; ++i) ways += sides.ways(i);
    if (ways > 1) add(Algorithm::tree, sides.all_hops() * groups, ways * x_.bytes, groups * x_.bytes, links_.per_link);
  }

  void bruck(BytesPerSecond rate) {
    const double sent = bruck_blocks(x_.ranks) * x_.block();
    add(Algorithm::bruck, log2_rounds(x_.ranks), sent, sent, rate);
  }

  const Links& links_;
  const Exchange& x_;
  Candidates& found_;
};

// Messages that follow one another in a library of rings.
double ring_steps(const Exchange& x) {
  constexpr double kPostedSteps = 4;
  switch (x.kind) {
    case CollectiveKind::all_to_all: return kPostedSteps;
    case CollectiveKind::send: return 1;
    default: return x.ring_rounds() * x.others();
  }
}

// What a library of rings makes of an exchange that has the algorithms `found` on these links.
CollectiveCost by_library(const Links& links, const Exchange& x, const Candidates& found) {
  CollectiveCost cost =
      *std::min_element(found.begin(), found.end(),
                        [](const CollectiveCost& a, const CollectiveCost& b) { return a.transfer < b.transfer; });
  const bool passes = x.kind == CollectiveKind::ring_pass;
  const bool whole = passes || x.broadcast() || x.kind == CollectiveKind::send;  // no part of it is a rank's own
  const double calls = passes ? x.others() : 1;
  cost.algorithm = x.kind == CollectiveKind::all_to_all ? Algorithm::one_shot
                   : x.kind == CollectiveKind::send     ? Algorithm::direct
                                                        : Algorithm::ring;
  cost.steps = ring_steps(x);
  cost.latency = calls * links.launch + cost.steps * links.latency;
  add_chunks(links, whole ? 0 : x.block(), calls, cost);
  return cost;
}

Candidates on_topology(const Links& links, const Exchange& exchange) {
  Candidates found;
  Writer writer(links, exchange, found);
  if (exchange.kind == CollectiveKind::send || exchange.kind == CollectiveKind::ring_pass) {
    writer.neighbour();
    return found;
  }
  switch (links.topology) {
    case Topology::full_mesh: writer.full_mesh(); break;
    case Topology::pcie_tree: writer.pcie_tree(); break;
    case Topology::ring: writer.box(1, true); break;
    case Topology::torus_2d: writer.box(2, true); break;
    case Topology::torus_3d: writer.box(3, true); break;
    case Topology::tile_mesh: writer.box(2, false); break;
    case Topology::none:
    case Topology::fully_switched: writer.fully_switched(); break;
  }
  return found;
}

}  // namespace

CollectiveCost Candidates::fastest() const {
  const CollectiveCost* best = std::min_element(
      begin(), end(), [](const CollectiveCost& a, const CollectiveCost& b) { return a.time() < b.time(); });
  return best == end() ? CollectiveCost{} : *best;
}

Candidates one_level(const Links& links, const Exchange& exchange) {
  if (exchange.ranks <= 1) return {};
  Candidates found = on_topology(links, exchange);
  if (!links.chunks) return found;
  Candidates only;
  only.add(by_library(links, exchange, found));
  return only;
}

void add_chunks(const Links& links, double own, double calls, CollectiveCost& cost) {
  if (!links.chunks) return;
  cost.transfer += Bytes{own} / links.chunks->copy;
  cost.latency += Seconds{2 * std::sqrt(calls * links.chunks->fill.value * cost.transfer.value)};
}

}  // namespace llmperf::cost
