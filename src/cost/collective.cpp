// Which algorithms a collective has in a cluster, and the fastest of them: first among devices that one kind of link
// joins, then over levels of links.
#include "cost/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/integer.h"
#include "base/maths.h"
#include "base/text.h"

namespace llmperf::cost {
namespace {

using graph::CollectiveKind;
using hardware::Topology;

constexpr std::array<std::string_view, 11> kAlgorithmNames = {
    "none",  "ring",       "one-shot",     "two-shot", "halving-doubling", "tree",
    "bruck", "dimensions", "hierarchical", "direct",   "in-switch"};
static_assert(static_cast<std::size_t>(Algorithm::in_switch) + 1 == kAlgorithmNames.size());

// ---- One kind of link
//
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
//    Where it is known which devices share a switch (Links::host), ranks that lie further apart pass the host's
//    bridges, at its rate and latency, and the uplink of ranks on two sockets is what joins these.
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

// All-reduces by kernels of a serving stack's own (Links::custom; vLLM's csrc/custom_all_reduce.cuh, which SGLang and
// TensorRT-LLM have likewise). Every rank reads its peers' memory over the links, once it has seen the signal of each
// of the r - 1 others:
//
//   one shot   launch + (r-1) rank + (r-1) S / one_shot
//   two shots  launch + (r-1) rank + second + 2 (r-1)/r S / two_shot
//
// In one shot every rank reads and adds up all of the tensor; in two its part, and then the parts that the others have
// added up, behind a second round of signals. Kernels of a few dozen blocks have only so much under way, so the rates
// are far from the links', and differ. Which of the two runs is a rule of sizes: two ranks always take one shot, up to
// four ranks below 512 KiB, up to eight below 256 KiB; or the faster, where an engine looks it up in a table of its own
// timings (TensorRT-LLM: on eight ranks two shots from 1 MiB on Hopper, from 4 MiB on Blackwell). There are kernels for
// 2, 4, 6 and 8 ranks. One that takes the norm behind it along may be another library's, at a factor.

// A switch that can add up (NVLink SHARP, the library's NVLS) takes a tensor from every rank once and sends the sum
// back: S bytes over each port, either way, whatever the number of ranks. Setting up its groups takes longer than the
// launch of a ring, and the pipeline of chunks is filled likewise:
//
//   launch + switch_launch + S / in_switch + 2 sqrt(fill S / in_switch)
//
// On four ranks NCCL's own tuning keeps to rings. Without a library in between it is one step of S bytes, up to half of
// the 2 (n-1)/n S that every other algorithm sends: what bounds an all-reduce.

// `ranks` devices, `stride` apart, and the bytes of graph::Collective.
struct Exchange {
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  std::int64_t ranks = 1;
  std::int64_t stride = 1;
  double bytes = 0;
  bool routed = false;
  bool library = false;  // and by no other kernel
  bool with_norm = false;
  double once = 1;  // routed: bytes that a node is sent once, of those for its devices one by one

  double block() const { return bytes / d(ranks); }  // M of docs/formulas.md
  double others() const { return d(ranks - 1); }
  bool broadcast() const { return kind == graph::CollectiveKind::broadcast; }
  // All-reduce is a reduce-scatter and an all-gather, which are each other's mirror image; a broadcast can be a scatter
  // and an all-gather.
  double phases() const { return kind == graph::CollectiveKind::all_reduce || broadcast() ? 2 : 1; }
  // By a ring a broadcast passes on all of the tensor, once round.
  double ring_rounds() const { return broadcast() ? 1 : phases(); }
  double ring_bytes() const { return broadcast() ? bytes : phases() * others() * block(); }
  // What bytes take longer by where some of them are added up on arrival: all of a reduce-scatter's, which is half of
  // an all-reduce.
  double adding(const Links& links) const {
    if (kind == CollectiveKind::reduce_scatter) return 1 / links.reduce;
    return kind == CollectiveKind::all_reduce ? (1 + 1 / links.reduce) / 2 : 1;
  }
  Seconds start(const Links& links) const {
    return bytes > links.small.value ? links.launch + links.setup : links.launch;
  }
};

// The algorithms of one collective; no more than this exist for any.
class Candidates {
 public:
  void add(const CollectiveCost& cost) { list_[count_++] = cost; }
  // In place of the same algorithm on other levels if it is faster.
  void add_or_replace(const CollectiveCost& cost) {
    for (std::size_t i = 0; i < count_; ++i) {
      if (list_[i].algorithm != cost.algorithm) continue;
      if (cost.time() < list_[i].time()) list_[i] = cost;
      return;
    }
    add(cost);
  }
  void set_level(Level level) {
    for (std::size_t i = 0; i < count_; ++i) list_[i].level = level;
  }
  const CollectiveCost* begin() const { return list_.data(); }
  const CollectiveCost* end() const { return list_.data() + count_; }
  // The first of the fastest; `none` where there are none.
  CollectiveCost fastest() const {
    const auto faster = [](const CollectiveCost& a, const CollectiveCost& b) { return a.time() < b.time(); };
    const CollectiveCost* best = std::min_element(begin(), end(), faster);
    return best == end() ? CollectiveCost{} : *best;
  }

 private:
  std::array<CollectiveCost, 8> list_;
  std::size_t count_ = 0;
};

// Adds to `cost` what a library of rings takes beside the links: `own` bytes that a rank copies, and filling the
// pipeline of each of `calls`. Does nothing to links without one.
void add_chunks(const Links& links, double own, double calls, CollectiveCost& cost) {
  if (!links.chunks) return;
  cost.transfer += Bytes{own} / links.chunks->copy;
  cost.latency += Seconds{2 * std::sqrt(calls * links.chunks->fill.value * cost.transfer.value)};
}

// Every rank ends up with the whole tensor, which can be cut on the way: scattered and gathered.
bool all_get_all(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast;
}
bool reduces_or_gathers(CollectiveKind kind) {
  return all_get_all(kind) || kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
}

// Devices from the first rank to the last.
std::int64_t span(std::int64_t ranks, std::int64_t stride) { return (ranks - 1) * stride + 1; }

// A PCIe tree as ranks see it that do not all share a switch; other links as they are.
Links seen_by(const Links& links, std::int64_t ranks, std::int64_t stride) {
  Links seen = links;
  if (!links.host || span(ranks, stride) <= links.host->direct) return seen;
  seen.per_device = links.host->bridge;
  seen.per_link = links.host->bridge;
  seen.latency = links.host->latency;
  return seen;
}

double log2_rounds(std::int64_t ranks) {
  return static_cast<double>(std::bit_width(static_cast<std::uint64_t>(ranks - 1)));
}

// Bits set in 0 … ranks - 1: blocks that Bruck's all-to-all sends.
double bruck_blocks(std::int64_t ranks) {
  double blocks = 0;
  for (std::int64_t bit = 1; bit < ranks; bit *= 2) {
    const std::int64_t period = 2 * bit;
    blocks += d(ranks / period * bit + std::max<std::int64_t>(0, ranks % period - bit));
  }
  return blocks;
}

// Adds the algorithms of one exchange over one kind of link to a list.
class Writer {
 public:
  Writer(const Links& links, const Exchange& x, Candidates& found) : links_(links), x_(x), found_(found) {}

  void add(Algorithm algorithm, double steps, double sent, double busiest, BytesPerSecond rate, double calls = 1) {
    found_.add({.algorithm = algorithm,
                .steps = steps,
                .sent = Bytes{sent},
                .busiest_link = Bytes{busiest},
                .latency = calls * x_.start(links_) + steps * links_.latency,
                .transfer = Bytes{busiest} / rate * x_.adding(links_)});
  }

  // Everyone reaches everyone: over a link to each in a full mesh, else through a port of a switch.
  void everyone() {
    const bool mesh = links_.topology == Topology::full_mesh;
    const double n = d(x_.ranks);
    const double optimal = x_.phases() * x_.others() * x_.block();
    const double whole = x_.others() * x_.bytes;
    const double messages = links_.serial && !mesh ? x_.others() : 1;
    const BytesPerSecond rate = mesh ? links_.per_link : links_.per_device;
    if (all_get_all(x_.kind)) {
      add(Algorithm::one_shot, messages, whole, mesh ? x_.bytes : whole, rate);
      add(Algorithm::two_shot, 2 * messages, optimal, mesh ? 2 * x_.block() : optimal, rate);
    } else {
      add(Algorithm::one_shot, messages, optimal, mesh ? x_.block() : optimal, rate);
    }
    if (reduces_or_gathers(x_.kind)) {
      const double rings = !mesh ? 1 : x_.ranks == 4 || x_.ranks == 6 ? n - 2 : n - 1;
      add(Algorithm::ring, x_.ring_rounds() * x_.others(), x_.ring_bytes(), x_.ring_bytes() / rings, rate);
      add(Algorithm::halving_doubling, x_.phases() * log2_rounds(x_.ranks), optimal, optimal, rate);
    } else {
      bruck(rate);
    }
    if (mesh) return;
    if (x_.kind == CollectiveKind::all_reduce) {
      add(Algorithm::tree, 2 * log2_rounds(x_.ranks), 2 * x_.bytes, 2 * x_.bytes, rate);
      if (links_.reduces && !links_.chunks) add(Algorithm::in_switch, 1, x_.bytes, x_.bytes, rate);
    } else if (x_.broadcast()) {
      add(Algorithm::tree, log2_rounds(x_.ranks), x_.bytes, x_.bytes, rate);
    }
  }

  void pcie_tree() {
    const double optimal = x_.phases() * x_.others() * x_.block();
    const double groups = d(x_.stride);
    const double crossing = d(x_.ranks / 2) * d(x_.ranks - x_.ranks / 2) * groups;  // pairs
    const BytesPerSecond rate = links_.per_device;
    // A device's own bytes over its link while those of all cross the uplink.
    const auto both = [&](Algorithm algorithm, double steps, double sent, double up) {
      const bool waits = Bytes{up} / uplink() > Bytes{sent} / rate;
      add(algorithm, steps, sent, waits ? up : sent, waits ? uplink() : rate);
    };
    if (x_.broadcast()) {
      const double far = d(x_.ranks - x_.ranks / 2) * groups;  // behind the other end of the uplink
      both(Algorithm::one_shot, 1, x_.others() * x_.bytes, far * x_.bytes);
      add(Algorithm::two_shot, 2, optimal, (std::max(x_.others(), far) + std::max(x_.others(), crossing)) * x_.block(),
          std::min(rate, uplink()));
      both(Algorithm::ring, x_.others(), x_.bytes, groups * x_.bytes);
      both(Algorithm::tree, log2_rounds(x_.ranks), x_.bytes, groups * x_.bytes);
      return;
    }
    const auto everyone = [&](Algorithm algorithm, double steps, double sent, double per_pair) {
      both(algorithm, steps, sent, crossing * per_pair);
    };
    if (x_.kind == CollectiveKind::all_reduce) {
      everyone(Algorithm::one_shot, 1, x_.others() * x_.bytes, x_.bytes);
      everyone(Algorithm::two_shot, 2, optimal, 2 * x_.block());
      // Of each tree one edge crosses, with half of the tensor up or down.
      both(Algorithm::tree, 2 * log2_rounds(x_.ranks), 2 * x_.bytes, groups * x_.bytes);
    } else {
      everyone(Algorithm::one_shot, 1, optimal, x_.block());
    }
    if (reduces_or_gathers(x_.kind)) {
      both(Algorithm::ring, x_.phases() * x_.others(), optimal, groups * optimal);
    }
  }

  // A box of devices joined to their neighbours; a ring of links is a box of one dimension.
  void box(int dimensions, bool wraps) {
    const Sides sides = box_sides(dimensions, wraps);
    const double groups = links_.topology == Topology::ring ? d(x_.stride) : 1;
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
    add(Algorithm::ring, x_.phases() * d(x_.ranks / 2 + (closed ? 0 : 1)), optimal, closed ? optimal / 2 : optimal,
        links_.per_link);
    add(Algorithm::dimensions, x_.phases() * sides.all_hops(), optimal, x_.phases() * sides.busiest_part() * x_.bytes,
        links_.per_link);
  }

  // Blocks of one rank that visit the others, or a single message: one link to a neighbour.
  void neighbour() {
    const double passes = x_.kind == CollectiveKind::send ? 1 : x_.others();
    const bool shared = links_.topology == Topology::ring || links_.topology == Topology::pcie_tree;
    const double groups = shared ? d(x_.stride) : 1;
    double hops = links_.topology == Topology::ring ? d(x_.stride) : 1;
    if (links_.topology == Topology::tile_mesh && passes > 1 && box_sides(2, false).count == 1) {
      hops = 2;  // a line is walked on every other device, and back on those left out
    }
    const double sent = passes * x_.bytes;
    add(x_.kind == CollectiveKind::send ? Algorithm::direct : Algorithm::ring, passes * hops, sent, groups * sent,
        std::min(links_.per_link, uplink()), passes);
  }

 private:
  // Of ranks on both sockets of a server what joins these, else as fast as a device's link.
  BytesPerSecond uplink() const {
    const bool two = links_.host && span(x_.ranks, x_.stride) > links_.host->socket;
    return two ? links_.host->sockets : links_.per_device;
  }

  // Sides longer than one device, and what a link of each carries.
  struct Sides {
    std::array<std::int64_t, 3> length = {};
    int count = 0;
    bool wraps = false;

    std::int64_t side(int i) const { return length[static_cast<std::size_t>(i % count)]; }
    double hops(int i) const { return d(wraps ? side(i) / 2 : side(i) - 1); }
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
          for (int i = 0; i < turn; ++i) share /= d(side(part + i));
          const double extent = d(side(part + turn));
          most = std::max(most, share * (extent - 1) / extent / ways(part + turn));
        }
        sum += most;
      }
      return sum;
    }
    // Ordered pairs of places on a side whose shortest way leads over the same link, in one direction.
    double pairs_over_a_link(int i) const {
      const std::int64_t extent = side(i);
      if (!wraps || extent == 2) return d(extent / 2) * d(extent - extent / 2);
      return d(extent * extent - extent % 2) / 8;
    }
  };

  Sides box_sides(int dimensions, bool wraps) const {
    Sides sides;
    sides.wraps = wraps;
    std::int64_t rest = x_.ranks;
    for (int left = dimensions; left >= 1; --left) {
      std::int64_t extent = left == 1 ? rest : static_cast<std::int64_t>(maths::pow(d(rest), 1.0 / left) + 1e-9);
      while (rest % extent != 0) --extent;
      rest /= extent;
      if (extent > 1) sides.length[static_cast<std::size_t>(sides.count++)] = extent;
    }
    return sides;
  }

  void all_to_all(const Sides& sides, double groups) {
    double busiest = 0;
    double sent = 0;
    for (int i = 0; i < sides.count; ++i) {
      const double over_a_link = x_.bytes / d(sides.side(i)) * sides.pairs_over_a_link(i);
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
  const auto less = [](const CollectiveCost& a, const CollectiveCost& b) { return a.transfer < b.transfer; };
  const auto ring = std::find_if(found.begin(), found.end(),
                                 [](const CollectiveCost& one) { return one.algorithm == Algorithm::ring; });
  // Through a host NCCL keeps to rings, though trees would send less from one socket to the other.
  CollectiveCost cost = links.host && ring != found.end() ? *ring : *std::min_element(found.begin(), found.end(), less);
  const bool passes = x.kind == CollectiveKind::ring_pass;
  const bool whole = passes || x.broadcast() || x.kind == CollectiveKind::send;  // no part of it is a rank's own
  const double calls = passes ? x.others() : 1;
  cost.algorithm = x.kind == CollectiveKind::all_to_all ? Algorithm::one_shot
                   : x.kind == CollectiveKind::send     ? Algorithm::direct
                                                        : Algorithm::ring;
  cost.steps = ring_steps(x);
  cost.latency = calls * x.start(links) + cost.steps * links.latency;
  add_chunks(links, whole ? 0 : x.block(), calls, cost);
  return cost;
}

// All-reduces that the switch adds up; `none` where it does not.
CollectiveCost by_switch(const Links& links, const Exchange& x) {
  constexpr std::int64_t kLeastRanks = 5;
  const bool can = links.reduces && links.chunks->in_switch.value > 0;
  if (!can || x.kind != CollectiveKind::all_reduce || x.ranks < kLeastRanks) return {};
  CollectiveCost cost{.algorithm = Algorithm::in_switch,
                      .steps = 1,
                      .sent = Bytes{x.bytes},
                      .busiest_link = Bytes{x.bytes},
                      .latency = links.launch + links.chunks->switch_launch,
                      .transfer = Bytes{x.bytes} / links.chunks->in_switch};
  add_chunks(links, 0, 1, cost);
  return cost;
}

bool has_custom(const Links& links, const Exchange& x) {
  constexpr std::int64_t kMostRanks = 8;
  return links.custom && !x.library && x.kind == CollectiveKind::all_reduce && x.ranks <= kMostRanks &&
         x.ranks % 2 == 0 && x.bytes <= links.custom->most.value &&
         (links.topology == Topology::fully_switched || links.topology == Topology::full_mesh ||
          (links.host && span(x.ranks, x.stride) <= links.host->direct));
}

CollectiveCost by_custom(const Links::Custom& custom, const Exchange& x) {
  constexpr double kFew = 4;
  constexpr double kOneShotOfFew = 512.0 * 1024;
  constexpr double kOneShot = 256.0 * 1024;
  const Bytes once{x.others() * x.bytes};
  const Bytes twice{x.ring_bytes()};
  const bool quicker = once / custom.one_shot < custom.second + twice / custom.two_shot;
  const bool small = x.bytes < (d(x.ranks) <= kFew ? kOneShotOfFew : kOneShot);
  const bool one = x.ranks == 2 || (custom.fastest ? quicker : small);
  const Bytes sent = one ? once : twice;
  const double kernel = x.with_norm ? custom.with_norm : 1;
  return {.algorithm = one ? Algorithm::one_shot : Algorithm::two_shot,
          .steps = one ? 1.0 : 2.0,
          .sent = sent,
          .busiest_link = sent,
          .latency = kernel * (custom.launch + x.others() * custom.rank + (one ? Seconds{} : custom.second)),
          .transfer = kernel * (sent / (one ? custom.one_shot : custom.two_shot))};
}

Candidates on_topology(const Links& links, const Exchange& exchange) {
  Candidates found;
  Writer writer(links, exchange, found);
  if (exchange.kind == CollectiveKind::send || exchange.kind == CollectiveKind::ring_pass) {
    writer.neighbour();
    return found;
  }
  switch (links.topology) {
    case Topology::pcie_tree: writer.pcie_tree(); break;
    case Topology::ring: writer.box(1, true); break;
    case Topology::torus_2d: writer.box(2, true); break;
    case Topology::torus_3d: writer.box(3, true); break;
    case Topology::tile_mesh: writer.box(2, false); break;
    case Topology::none:
    case Topology::full_mesh:
    case Topology::fully_switched: writer.everyone(); break;
  }
  return found;
}

// At least one algorithm for more than one rank; none for one. A library of rings has that one only.
Candidates one_level(const Links& links, const Exchange& exchange) {
  if (exchange.ranks <= 1) return {};
  Candidates only;
  if (has_custom(links, exchange)) {
    only.add(by_custom(*links.custom, exchange));
    return only;
  }
  Candidates found = on_topology(links, exchange);
  if (!links.chunks) return found;
  only.add(by_library(links, exchange, found));
  if (const CollectiveCost cost = by_switch(links, exchange); cost.algorithm != Algorithm::none) only.add(cost);
  return only;
}

// ---- Levels
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
//
// Packages in a node and nodes in a supernode are levels of the same kind, and stages inside what lies below them have
// all of these in turn. Two things differ from a network, whose cards are not the devices' links:
//  * every die has a port of its own into the node, so that an exchange may leave the links of the package alone and
//    run among all n ranks as if there were no packages;
//  * a supernode joins nodes through the same ports, so that what goes there and what stays inside wait for each other:
//    an exchange runs among all n ranks over the farther links, or in stages, and never over both at the same time. (A
//    ring of n ranks sends every byte through a port once, wherever it goes.)

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

// Ranks among `devices` whose numbers follow one another; with others between them the number nearest to their share.
std::int64_t ranks_of(std::int64_t devices, const graph::Collective& c) {
  if (c.others == 0) return std::max<std::int64_t>(1, devices / std::max<std::int64_t>(1, c.stride));
  const double share = d(devices) * d(c.ranks) / d(c.ranks + c.others);
  return std::max<std::int64_t>(1, std::llround(std::min(share, d(c.ranks))));
}

// Where the ranks of a collective lie.
class Extent {
 public:
  Extent(const Cluster& cluster, const graph::Collective& c) {
    for (std::size_t i = 0; i < kLevels && joined() < c.ranks; ++i) {
      const auto level = static_cast<Level>(i);
      const std::int64_t fit = ranks_of(cluster.devices(level), c);
      if (std::min(c.ranks, fit) <= joined()) continue;
      parts_[count_++] = {level, &cluster.links(level), std::min(c.ranks, fit)};
    }
  }
  struct Part {
    Level level = Level::node;
    const Links* links = nullptr;
    std::int64_t ranks = 1;  // that lie together at this level
  };
  bool one() const { return count_ == 1; }
  std::size_t size() const { return count_; }
  const Part& operator[](std::size_t i) const { return parts_[i]; }
  const Part& far() const { return parts_[count_ - 1]; }
  Extent inner() const {
    Extent result = *this;
    --result.count_;
    return result;
  }

 private:
  std::int64_t joined() const { return count_ == 0 ? 1 : far().ranks; }
  std::array<Part, kLevels> parts_;
  std::size_t count_ = 0;
};

// Among ranks of one level alone.
Candidates on_level(const Extent::Part& part, Exchange x) {
  if (part.level > Level::node) x.stride = 1;
  Candidates found =
      part.links->host ? one_level(seen_by(*part.links, x.ranks, x.stride), x) : one_level(*part.links, x);
  found.set_level(part.level);
  return found;
}

Candidates over_levels(const Extent& extent, const Exchange& x);

// A collective over the farthest level of several and what lies within.
class TwoLevels {
 public:
  TwoLevels(const Extent& extent, const Exchange& x)
      : within_(extent.inner()),
        near_(seen_by(*within_.far().links, within_.far().ranks, x.stride)),
        far_(extent.far()),
        x_(x),
        r_(within_.far().ranks),
        q_((x.ranks + r_ - 1) / r_) {}

  Candidates costs() const {
    Candidates found;
    switch (x_.kind) {
      case CollectiveKind::send:
      case CollectiveKind::ring_pass: found.add(neighbour()); break;
      case CollectiveKind::all_to_all:
        if (far_.level != Level::supernode) found.add(pairwise());
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
  double slice() const { return x_.bytes / d(r_); }

  Candidates all_inside(CollectiveKind kind, double bytes) const {
    return over_levels(within_, {kind, r_, x_.stride, bytes});
  }
  Candidates all_between(CollectiveKind kind, double bytes) const { return on_level(far_, {kind, q_, 1, bytes}); }
  CollectiveCost inside(CollectiveKind kind, double bytes) const { return all_inside(kind, bytes).fastest(); }
  CollectiveCost between(CollectiveKind kind, double bytes) const { return all_between(kind, bytes).fastest(); }

  // The slower of two levels that work at the same time.
  CollectiveCost together(Algorithm algorithm, Bytes inside_link, Seconds inside_time, Bytes network) const {
    CollectiveCost cost;
    cost.algorithm = algorithm;
    const Seconds network_time = network / far_.links->per_device * x_.adding(*far_.links);
    const bool between = network_time >= inside_time;
    cost.level = between ? far_.level : within_.far().level;
    cost.busiest_link = between ? network : inside_link;
    cost.transfer = std::max(inside_time, network_time);
    return cost;
  }

  CollectiveCost ring() const {
    const Links& links = near_;
    const Bytes sent{x_.ring_bytes()};
    const bool switched = links.topology == Topology::fully_switched || links.topology == Topology::pcie_tree;
    // Links inside that share what a device passes on: one of each path in a mesh, both ways round of a ring.
    const double share = links.topology == Topology::full_mesh ? d(r_) : switched ? 1 : 2;
    const BytesPerSecond rate = switched ? links.per_device : links.per_link;
    CollectiveCost cost = together(Algorithm::ring, sent / share, sent / share / rate * x_.adding(links), sent / d(r_));
    const double crossing = d(std::min(q_, x_.ranks - 1));
    cost.steps = x_.ring_rounds() * x_.others();
    cost.sent = sent;
    cost.latency = x_.start(*far_.links) +
                   x_.ring_rounds() * (crossing * far_.links->latency + (x_.others() - crossing) * links.latency);
    add_chunks(links, x_.broadcast() ? 0 : x_.block(), 1, cost);
    return cost;
  }

  // Levels that work at the same time do not each take their fastest algorithm, but those that are the fastest
  // together.
  CollectiveCost pairwise() const {
    CollectiveCost best;
    for (const CollectiveCost& in : all_inside(CollectiveKind::all_to_all, x_.block() * d(r_))) {
      best = faster(best, pairwise(in));
    }
    return best;
  }
  CollectiveCost pairwise(const CollectiveCost& in) const {
    const double outside = d(x_.ranks - r_);
    CollectiveCost cost = together(Algorithm::one_shot, in.busiest_link, in.transfer, Bytes{outside * x_.block()});
    const double messages = far_.links->serial ? outside : 1;
    cost.steps = std::max(in.steps, messages);
    cost.sent = Bytes{x_.others() * x_.block()};
    cost.latency = std::max(in.latency, x_.start(*far_.links) + messages * far_.links->latency);
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
          cost.latency = cost.latency - far_.links->launch;
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
    CollectiveCost cost = together(send ? Algorithm::direct : Algorithm::ring, sent, sent / near_.per_link, sent);
    cost.steps = passes;
    cost.sent = sent;
    cost.latency = passes * (x_.start(*far_.links) + std::max(near_.latency, far_.links->latency));
    add_chunks(near_, 0, passes, cost);
    return cost;
  }

  const Extent within_;
  const Links near_;  // of what lies within, the farthest
  const Extent::Part far_;
  const Exchange& x_;
  std::int64_t r_;
  std::int64_t q_;
};

Candidates over_levels(const Extent& extent, const Exchange& x) {
  if (extent.one()) return on_level(extent.far(), x);
  Candidates found = TwoLevels(extent, x).costs();
  if (extent.far().level == Level::network) return found;
  for (const CollectiveCost& flat : on_level(extent.far(), x)) found.add_or_replace(flat);
  return found;
}

// Tokens to their experts and back by a kernel each way (Cluster::ExpertExchange), as CANN's MoeDistributeDispatch and
// MoeDistributeCombine run them, and DeepEP those of low latency, between nodes as well: every token is written to each
// of its experts, two on the same device included, and the ranks wait for each other's counts and flags,
//
//   launch (+ there) + round log2(n) + T k (n-1)/n h / (share L)
//
// for T tokens of a device, k experts of each, and links of L. `none` for other exchanges.
CollectiveCost by_expert_kernel(const Cluster& cluster, const graph::Collective& c, const Extent& extent) {
  if (!cluster.experts || c.routing.experts == 0) return {};
  const Cluster::ExpertExchange& kernel = *cluster.experts;
  const double share = extent.far().level == Level::network ? kernel.network : kernel.share;
  if (share <= 0) return {};
  const double tokens = c.rows / (d(c.ranks) * reached(c.routing, c.routing.experts / c.ranks));  // of the busiest
  if (tokens > kernel.tokens * c.routing.busiest * (1 + 1e-9)) return {};
  const Bytes sent = tokens * d(c.routing.per_token) * d(c.ranks - 1) / d(c.ranks) * (c.bytes() / c.rows);
  return {
      .algorithm = Algorithm::one_shot,
      .steps = 1,
      .sent = sent,
      .busiest_link = sent,
      .level = extent.far().level,
      .latency = kernel.launch + log2_rounds(c.ranks) * kernel.round + (c.routing.returns ? Seconds{} : kernel.there),
      .transfer = sent / (share * extent.far().links->per_device)};
}

Candidates candidates(const Cluster& cluster, const graph::Collective& c) {
  Exchange x{c.kind, c.ranks, c.stride, c.bytes().value};
  const Extent extent(cluster, c);
  x.routed = c.routing.experts > 0;
  x.library = c.library;
  x.with_norm = c.with_norm;
  if (const CollectiveCost kernel = by_expert_kernel(cluster, c, extent); kernel.algorithm != Algorithm::none) {
    Candidates only;
    only.add(kernel);
    return only;
  }
  if (x.routed && !extent.one()) {
    const std::int64_t held = c.routing.experts / c.ranks;
    const std::int64_t together = extent.inner().far().ranks;
    x.once = reached(c.routing, together * held) / (d(together) * reached(c.routing, held));
  }
  return over_levels(extent, x);
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
  const std::int64_t inside = std::min(ranks, ranks_of(cluster.devices_per_node, c));
  return {inside, (ranks + inside - 1) / inside};
}

std::vector<Level> levels_of(const Cluster& cluster, const graph::Collective& collective) {
  const Extent extent(cluster, collective);
  std::vector<Level> levels;
  for (std::size_t i = 0; i < extent.size(); ++i) levels.push_back(extent[i].level);
  return levels;
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
    sized.rows = d(bytes) / unit;
    return collective_cost(cluster, sized).algorithm;
  };
  // A grid fine enough that no algorithm comes and goes within a cell; then halving the cell where it changes.
  constexpr int kPerOctave = 4;
  constexpr int kOctaves = 40;
  std::vector<SizeRange> ranges = {{Bytes{1}, at(1)}};
  std::int64_t low = 1;
  for (int i = 1; i <= kOctaves * kPerOctave; ++i) {
    const auto high = static_cast<std::int64_t>(maths::exp2(static_cast<double>(i) / kPerOctave));
    if (const Algorithm next = at(high); next != ranges.back().algorithm) {
      std::int64_t first = high;
      for (std::int64_t last = low; first - last > 1;) {
        const std::int64_t middle = last + (first - last) / 2;
        (at(middle) == next ? first : last) = middle;
      }
      ranges.push_back({Bytes{d(first)}, next});
    }
    low = high;
  }
  return ranges;
}

}  // namespace llmperf::cost
