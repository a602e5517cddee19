#include "mapper/tile/gemm.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/integer.h"

namespace llmperf::mapper::tile {
namespace {

// What the matrix unit rounds rows, columns and depth of a product up to.
struct Rounding {
  Rounding(const Machine& machine, const GemmProblem& problem)
      : m(machine.rounding[problem.turned ? 1 : 0]),
        n(machine.rounding[problem.turned ? 0 : 1]),
        k(machine.rounding[2]) {}
  int m;
  int n;
  int k;
};

// Columns of the next piece, of `rest` to come.
std::int64_t next_piece(std::int64_t rest, int granule) {
  return std::min(rest, divide_up(divide_up(rest, 2), granule) * granule);
}

// The last block of all is made in `tail` pieces along n, each half of what is left: columns of the last piece.
std::int64_t last_piece(std::int64_t columns, std::int64_t tail, int granule) {
  for (; tail > 1 && columns > granule; --tail) columns -= next_piece(columns, granule);
  return columns;
}

// Whether an operand can come so to the tiles that share it: what is in the tiles' memory is no tile's own to load.
bool can_come(const Machine& machine, Feed feed, int sharers, bool local) {
  if (sharers == 1) return feed == Feed::direct;
  return machine.multicast_senders ? feed == Feed::multicast : feed != Feed::direct || !local;
}

// Fills in blocks of one product.
class GemmLowering {
 public:
  GemmLowering(const Machine& machine, const GemmProblem& problem, const GemmMapping& mapping, Schedule& schedule)
      : m_(machine), p_(problem), map_(mapping), s_(schedule), e_(extent_of(problem, mapping)) {}

  void run() {
    s_.clear();
    s_.grid = map_.grid;
    s_.a = map_.a;
    s_.b = map_.b;
    s_.a.local = p_.a_local;
    s_.b.local = p_.b_local;
    s_.panel = map_.panel;
    s_.results = map_.results;
    s_.overlapped = !m_.shared_issue;
    if (map_.bb > 1) {
      if (e_.batch.blocks > 1) row(e_.m.part, map_.bb, 1, e_.batch.blocks - 1);
      row(e_.m.part, e_.batch.last(), map_.tail, 1);
      return;
    }
    if (e_.m.blocks > 1) row(map_.bm, 1, 1, e_.m.blocks - 1);
    row(e_.m.last(), 1, map_.tail, 1);
    s_.repeats = e_.batch.blocks;
  }

 private:
  void row(std::int64_t m, std::int64_t batch, std::int64_t tail, std::int64_t count) {
    first_ = true;
    run(m, map_.bn, batch, e_.n.blocks - 1);
    // The last block in halves of halves: n/2, n/4, …, n/2^t, n/2^t.
    std::int64_t rest = e_.n.last();
    for (std::int64_t pieces = tail; pieces > 1 && rest > m_.granule; --pieces) {
      const std::int64_t piece = next_piece(rest, m_.granule);
      run(m, piece, batch, 1);
      rest -= piece;
    }
    if (rest > 0) run(m, rest, batch, 1);
    s_.end_row(count);
  }

  void run(std::int64_t m, std::int64_t n, std::int64_t batch, std::int64_t count) {
    const bool once = p_.prepare_ops > 0 && !p_.prepares_b && map_.panel >= e_.k.blocks;  // A is prepared as it comes
    if (count > 0 && first_ && once) {
      add(m, n, batch, true, 1);
      --count;
    }
    first_ = false;
    if (count > 0) add(m, n, batch, !once, count);
  }

  void add(std::int64_t m, std::int64_t n, std::int64_t batch, bool prepares, std::int64_t count) {
    Block b;
    const Grid& g = *map_.grid;
    b.steps = e_.k.blocks;
    b.full = step(m, n, e_.k.block, batch, prepares);
    b.last = step(m, n, e_.k.last(), batch, prepares);
    const double results = d(m) * d(n) * d(batch);
    const double real = e_.m.share() * e_.n.share() * e_.batch.share() / g.k;
    b.result = p_.c_local ? 0 : results * p_.c_bytes * p_.results * real;
    b.end = results * p_.finish_bytes * real;
    b.reduce = results * p_.sum_bytes * (g.k - 1) / g.k;
    b.finish = results * (g.k - 1 + p_.finish_ops) / g.k / m_.vector;
    b.count = count;
    s_.blocks.push_back(b);
  }

  Step step(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, bool prepares) const {
    Step s;
    const Rounding up(m_, p_);
    const double products = rounded(m, up.m) * rounded(n, up.n) * rounded(k, up.k) * d(batch);
    s.a = d(m) * d(k) * d(batch) * p_.a_bytes * e_.m.share() * e_.k.share() * e_.batch.share();
    s.b = d(k) * d(n) * d(batch) * p_.b_bytes * e_.k.share() * e_.n.share() * e_.batch.share();
    double seconds = 2 * products / m_.matrix;
    seconds = rotated(seconds, s.a, map_.a, map_.grid->a);
    seconds = rotated(seconds, s.b, map_.b, map_.grid->b);
    s.after = seconds;
    if (prepares) s.vector = p_.prepare_ops * (p_.prepares_b ? d(k) * d(n) : d(m) * d(k)) * d(batch) / m_.vector;
    return s;
  }

  // Of a step in which an operand's parts go round: they are passed on while the one before is used. Leaves the bytes
  // of one part in `bytes`.
  double rotated(double seconds, double& bytes, const Stream& stream, const Paths& paths) const {
    if (stream.feed != Feed::ring) return seconds;
    const double parts = paths.length;
    bytes /= parts;
    const double pass = bytes / m_.link + paths.longest * m_.hop_latency;
    return seconds / parts + (parts - 1) * std::max(seconds / parts, pass);
  }

  const Machine& m_;
  const GemmProblem& p_;
  const GemmMapping& map_;
  Schedule& s_;
  GemmProblem::Extent e_;
  bool first_ = true;
};

// Slices of an operand that its slots take the memory of: of a slice that goes round a tile has the parts to come, and
// one that passes through.
double slots_of(const Stream& stream, int sharers) {
  return stream.feed == Feed::ring ? (stream.slots + 1.0) / sharers : stream.slots;
}

// What is in a tile's memory, in bytes.
struct GemmMemory {
  GemmMemory(const GemmProblem& p, const GemmMapping& map, const GemmProblem::Extent& e) {
    const double m = d(e.m.block) * d(map.bb);
    const double n = d(e.n.block);
    const double k = d(e.k.block);
    a_slice = m * k * p.a_bytes;
    b_slice = k * n * d(map.bb) * p.b_bytes;
    const Grid& g = *map.grid;
    const bool sums = e.k.blocks > 1 || g.k > 1;
    const double sum = sums ? p.sum_bytes : p.c_bytes * p.results;
    const double staged = p.c_local ? 0 : p.c_bytes * p.results / g.k;  // local ones have a place of their own
    const double result = map.results == Results::in_place ? sum
                          : map.results == Results::staged ? sum + staged
                                                           : 2 * sum;
    results = m * n * (result + p.finish_bytes / g.k) + p.local_bytes(d(g.batch) * g.m * g.n * g.k);
  }
  double a_slice;
  double b_slice;
  double results;  // of a block, and what they are joined with
};

// Slices of A that can stay beside one slot of it and the slots of B; negative: not even these fit.
std::int64_t slices_to_stay(const Machine& machine, const GemmMapping& map, const GemmMemory& memory) {
  const int sharers = map.grid->a.length;
  const double least = memory.a_slice * slots_of({map.a.feed, 1, true}, sharers) +
                       memory.b_slice * slots_of(map.b, map.grid->b.length) + memory.results;
  if (least > machine.sram) return -1;
  const double kept = map.a.feed == Feed::ring ? memory.a_slice / sharers : memory.a_slice;
  return static_cast<std::int64_t>((machine.sram - least) / kept);
}

}  // namespace

double GemmProblem::flops() const { return 2 * d(m) * d(n) * d(k) * d(batch); }

double GemmProblem::vector_ops() const {
  const double prepared = d(batch) * d(k) * d(prepares_b ? n : m) * prepare_ops;
  return prepared + flops() / 2 / d(k) * finish_ops;
}

double GemmProblem::least_bytes() const {
  return d(batch) * ((a_local ? 0 : d(m) * d(k) * a_bytes) + (b_local ? 0 : d(k) * d(n) * b_bytes) +
                     d(m) * d(n) * ((c_local ? 0 : c_bytes * results) + finish_bytes));
}

double GemmProblem::local_bytes(double tiles) const {
  const double bytes = (a_local ? d(m) * d(k) * a_bytes : 0) + (b_local ? d(k) * d(n) * b_bytes : 0) +
                       (c_local ? d(m) * d(n) * c_bytes * results : 0);
  return bytes * d(batch) / tiles;
}

GemmProblem GemmProblem::transposed() const {
  GemmProblem t = *this;
  std::swap(t.m, t.n);
  std::swap(t.a_bytes, t.b_bytes);
  std::swap(t.a_local, t.b_local);
  t.prepares_b = !prepares_b;
  t.turned = !turned;
  return t;
}

GemmGiven GemmGiven::transposed() const {
  GemmGiven t = *this;
  if (t.grid) std::swap(t.grid->m, t.grid->n);
  std::swap(t.bm, t.bn);
  std::swap(t.a, t.b);
  return t;
}

GemmProblem::Extent extent_of(const GemmProblem& p, const GemmMapping& map) {
  const Grid& g = *map.grid;
  return {divided("batch", p.batch, g.batch, map.bb), divided("m", p.m, g.m, map.bm), divided("n", p.n, g.n, map.bn),
          divided("k", p.k, g.k, map.bk)};
}

double sram_of(const GemmProblem& p, const GemmMapping& map) {
  const GemmProblem::Extent e = extent_of(p, map);
  const GemmMemory memory(p, map, e);
  const bool ring = map.a.feed == Feed::ring;
  const int a_sharers = map.a.feed == Feed::direct ? 1 : map.grid->a.length;
  const int b_sharers = map.b.feed == Feed::direct ? 1 : map.grid->b.length;
  const double kept = d(map.panel) / (ring ? a_sharers : 1);
  const double passing = ring ? 1.0 / a_sharers : 0;
  const double a = kept + (map.panel >= e.k.blocks ? passing : slots_of(map.a, a_sharers));
  return memory.a_slice * a + memory.b_slice * slots_of(map.b, b_sharers) + memory.results;
}

void lower(const Machine& machine, const GemmProblem& problem, const GemmMapping& mapping, Schedule& schedule) {
  GemmLowering(machine, problem, mapping, schedule).run();
}

namespace {

// Lower bounds of the time that a product takes, level by level as its mapping is decided: grid, sides of a block, kind
// of results, feeds, depth of a slice, slots, tail. Every level builds on the one before and adds what can be said now,
// so that `seconds` never falls on the way and no mapping decided further takes less by the closed form.
//
// The physics is the same throughout. The channel moves at least certain bytes. The matrix unit has at least certain
// blocks to multiply; before it can begin, and behind its end, come loads and stores that nothing hides. Whatever lets
// one resource run while another works is granted in full unless something forbids it.

constexpr double kRounding = 1e-9;  // of sums in another order
constexpr double kSpare = 0.02;     // weight of what the tiles have to do in the order of the search

struct Cut {
  // `rounding`: of the matrix unit in that dimension.
  Cut(std::int64_t extent, std::int64_t block, int granule, int rounding)
      : side(block),
        blocks(d(divide_up(extent, block))),
        part(d(extent)),
        size(d(std::min(block, extent))),
        rounded(tile::rounded(std::min(block, extent), rounding)) {
    const std::int64_t last_side = extent - (divide_up(extent, block) - 1) * block;
    const std::int64_t last_piece = tile::last_piece(last_side, kMostPieces, granule);
    last = d(last_side);
    rounded_last = tile::rounded(last_side, rounding);
    piece = d(last_piece);
    rounded_piece = tile::rounded(last_piece, rounding);
  }
  std::int64_t side;
  double blocks;
  double part;  // elements of the tile's part
  double size;  // of a block
  double last;
  double rounded;  // the same as the matrix unit rounds up
  double rounded_last;
  double piece;  // of the last block, the last of kMostPieces
  double rounded_piece;
};

// The matrix unit rounds a tile's part up in every dimension; the channel moves every element once. Nothing hides the
// latency of the first load and of the last store.
struct GridBound {
  GridBound(const Machine& m, const GemmProblem& p, const Grid& g)
      : machine(m),
        problem(p),
        grid(g),
        extent(extent_of(p, {.grid = &g, .bm = m.granule, .bn = m.granule, .bk = m.granule})),
        batch(d(extent.batch.part)) {
    const double a_elements = d(p.m) * d(p.k) * d(p.batch);
    const double b_elements = d(p.k) * d(p.n) * d(p.batch);
    const double c_elements = d(p.m) * d(p.n) * d(p.batch);
    a = a_elements * p.a_bytes / m.dram;
    b = b_elements * p.b_bytes / m.dram;
    if (p.a_local) a = 0;
    if (p.b_local) b = 0;
    const double stored_bytes = p.c_local ? 0 : p.c_bytes * p.results;
    const double c_bytes = stored_bytes + p.finish_bytes;
    c = c_elements * c_bytes / m.dram;
    c_element = c / (d(extent.m.part) * d(extent.n.part) * batch);
    stored = c_bytes > 0 ? stored_bytes / c_bytes : 0;
    a_link = a_elements * p.a_bytes / (d(g.m) * g.k * g.batch) / m.link;
    b_link = b_elements * p.b_bytes / (d(g.n) * g.k * g.batch) / m.link;
    const Rounding up(m, p);
    unit = 2 * rounded(extent.k.part, up.k) / m.matrix;
    compute = unit * rounded(extent.m.part, up.m) * rounded(extent.n.part, up.n) * batch;
    const double others = g.k - 1.0;
    summing = others / g.k * (p.sum_bytes * g.c_load / m.link + 1 / m.vector);
    finish = summing + p.finish_ops / g.k / m.vector;
    latencies = ((p.a_local && p.b_local ? 0 : 1) + (p.c_local ? 0 : 1)) * m.dram_latency;
    seconds = std::max(compute, a + b + c) + latencies;
  }
  const Machine& machine;
  const GemmProblem& problem;
  const Grid& grid;
  GemmProblem::Extent extent;  // blocks: of one granule
  double batch;                // products of a tile
  double a;  // s of the channel for every element of A once; of B; of results and what they are joined with
  double b;
  double c;
  double c_element;  // the same for one element of every tile
  double stored;     // of c, the share of results
  double a_link;     // s of a link for one tile's part of A; of B
  double b_link;
  double unit;     // s of the matrix unit for a row and a column, all of a tile's k
  double compute;  // s of the matrix unit
  double latencies;
  double summing;  // s per element of partial sums; of that and other work on results
  double finish;
  double seconds;
};

struct SidesBound {
  SidesBound(const GridBound& g, const Cut& rows, const Cut& columns)
      : grid(g), m(rows), n(columns), pieces(rows.blocks * columns.blocks == 1) {
    // The first block ends when its operands have come. It may be a piece of the only one, half of it at least.
    first_compute = g.unit * m.rounded * n.rounded;
    const double a_share = 1 / (m.part * g.batch);
    const double b_share = 1 / (n.part * g.batch);
    const double first_columns = pieces ? std::ceil(n.size / 2) : n.size;
    const double first_load = g.a * m.size * a_share + g.b * first_columns * b_share;
    wait = std::max(0.0, first_load - first_compute);
    // Operands of a further row come while the last block of the row before and its own first block are multiplied.
    const double a_block = g.a * m.last * a_share;
    const double b_wait = g.b * n.last * b_share - first_compute;
    rows_wait = (m.blocks - 1) * g.batch * std::max(0.0, a_block + (n.blocks > 1 ? 2 : 1) * b_wait);
    // Every row of blocks needs all of B.
    const double channel = g.a + g.b * m.blocks + g.c;
    seconds = std::max(g.compute + wait, channel) + g.latencies;
  }
  const GridBound& grid;
  const Cut& m;
  const Cut& n;
  double first_compute;  // s of the matrix unit for the first block, of one product
  double wait;           // s by which its operands take longer to come
  double rows_wait;      // s by which those of further rows of blocks do
  bool pieces;           // the only block of a product, which a tail would cut
  double seconds;
};

struct ResultsBound {
  ResultsBound(const SidesBound& s, Results kind, std::int64_t products)
      : sides(s), results(kind), bb(d(products)), blocks(s.m.blocks * s.n.blocks * std::ceil(s.grid.batch / bb)) {
    const GridBound& g = s.grid;
    const GemmProblem& p = g.problem;
    const Machine& m = g.machine;
    const double elements = s.m.size * s.n.size;
    const double c_bytes = p.c_bytes * p.results;
    // All of k in one step needs no sums, and keeps A. Otherwise A stays as far as there is room beside the results and
    // the least slice of B.
    const double depth = d(g.extent.k.part);
    const double panel = s.m.size * depth * p.a_bytes / g.grid.a.length;
    const double column = s.n.size * p.b_bytes / g.grid.b.length;
    const bool one_step = g.grid.k == 1 && elements * c_bytes + panel + column * depth <= m.sram;
    const double staged = p.c_local ? 0 : c_bytes / g.grid.k;
    const double sums = results == Results::doubled  ? 2 * p.sum_bytes
                        : results == Results::staged ? p.sum_bytes + staged
                                                     : p.sum_bytes;
    const double room = m.sram - elements * sums - column * std::min(d(m.granule), depth);
    fits = room >= 0 || one_step;
    if (!fits) return;
    const double stays = one_step ? 1 : std::min(1.0, room / panel);
    const double channel = g.a * (1 + (s.n.blocks - 1) * (1 - stays)) + g.b * s.m.blocks + g.c;

    store_most = g.c_element * elements * bb;
    store = bb > 1 ? 0 : g.c_element * s.m.last * s.n.last;
    // A tile that stores in place does not multiply meanwhile.
    const bool in_place = results == Results::in_place && bb == 1;
    const double held = in_place ? std::max(0.0, g.c - 2 * store_most) / m.tiles : 0;
    waits = bb * s.wait;
    const double all_waits = waits + std::max(s.rows_wait, held);
    // The last piece is stored when all is done.
    const double after = bb > 1 || p.finish_bytes > 0 ? 0 : g.c_element * s.m.last * s.n.piece;
    seconds = std::max(g.compute + std::max(all_waits, after), channel) + g.latencies;
    likely = bb > 1 ? seconds : std::max(g.compute + all_waits + held * m.tiles / 2, channel) + store / 4;

    // Of many that are bound by the channel alike, those whose tiles have time to spare hide more.
    likely += kSpare * (g.compute + s.m.part * s.n.part * g.batch * g.finish);

    summing = results == Results::doubled ? 0 : s.m.part * s.n.part * g.batch * g.summing;
    behind = std::max(m.dram_latency, bb * elements * g.finish + (g.grid.k - 1) * m.hop_latency);
  }
  const SidesBound& sides;
  Results results;
  double bb;
  double blocks;       // of all products
  bool fits = false;   // into the memory of a tile, in some depth
  double waits = 0;    // s before the first block can end
  double summing = 0;  // s of partial sums that tiles add up in series with their other work
  double behind = 0;   // s that may pass from the last step of a block to the next block, at most
  double store = 0;    // s of the channel for results of the last block; of the largest
  double store_most = 0;
  double seconds = 0;
  double likely = 0;  // an estimate, for the order of the search
};

struct FeedsBound {
  FeedsBound(const ResultsBound& r, Feed a_by, Feed b_by) : results(r), a_feed(a_by), b_feed(b_by) {
    const GridBound& g = r.sides.grid;
    const double a_tiles = g.grid.a.length;
    const double b_tiles = g.grid.b.length;
    a_sharers = a_feed == Feed::direct ? 1 : a_tiles;
    b_sharers = b_feed == Feed::direct ? 1 : b_tiles;
    // Every tile loads for itself, or one for all.
    a = g.a * a_tiles / a_sharers;
    b = g.b * b_tiles / b_sharers * r.sides.m.blocks;
    fixed = b + g.c + g.latencies;
    // Links pass on the whole of what a path's tiles share, or all parts but one.
    const auto passed = [](Feed feed, double tiles) {
      return feed == Feed::direct ? 0 : feed == Feed::ring ? 1 - 1 / tiles : 1;
    };
    a_link_ = passed(a_feed, a_tiles) * g.a_link * (a_feed == Feed::ring ? r.sides.n.blocks : 1);
    b_link_ = passed(b_feed, b_tiles) * g.b_link * r.sides.m.blocks;
    const double hop = g.machine.hop_latency;
    b_hops = b_feed == Feed::multicast ? g.grid.b.hops * hop : 0;
    hops = b_hops + (a_feed == Feed::multicast ? g.grid.a.hops * hop : 0);
    seconds = std::max({r.seconds, a + fixed, links(1)});
  }
  const ResultsBound& results;
  Feed a_feed;
  Feed b_feed;
  double a_sharers;  // tiles that one request serves
  double b_sharers;
  double a;      // s of the channel for A in one block along n
  double b;      // for B in all blocks
  double fixed;  // for all but A
  double hops;   // s, of both operands
  double b_hops;
  double seconds;
  // Of the busiest link, where A comes `times` times.
  double links(double times) const {
    if (a_feed == Feed::ring) times = 1;  // parts go round in every block, wherever they stay
    double most = 0;
    for (const LinkLoad& load : results.sides.grid.grid.loads) {
      most = std::max(most, load.a * a_link_ * times + load.b * b_link_);
    }
    return most * (1 - kRounding);
  }

 private:
  double a_link_;
  double b_link_;
};

struct DepthBound {
  DepthBound(const FeedsBound& f, const Cut& cut) : feeds(f), k(cut) {
    const ResultsBound& r = f.results;
    const SidesBound& s = r.sides;
    const GridBound& g = s.grid;
    slices = static_cast<std::int64_t>(k.blocks);
    // Nothing is multiplied before the first slices are there, of a piece of the block if it is the only one.
    const double share = r.bb * k.size / (k.part * g.batch);
    const double a_load = f.a * s.m.size / s.m.part * share;
    const double b_load = f.b / s.m.blocks * s.n.size / s.n.part * share;
    load = a_load + b_load;
    begin = s.pieces && r.bb == 1 ? a_load + b_load / 2 : load;
    begun = g.compute + std::max(r.waits, begin) + g.latencies;
    // In the first block the channel can do no more than load it and the step after it.
    idle = 0;
    if (slices > 1 && r.blocks > 1 && !(s.pieces && r.bb == 1)) {
      idle = std::max(0.0, s.first_compute * r.bb - load * (k.part / k.size + 1) - r.behind);
    }
    seconds = std::max({f.seconds, begun, f.a + f.fixed + idle});
  }
  const FeedsBound& feeds;
  const Cut& k;
  std::int64_t slices;
  double load;   // s of the channel for the first step of a block
  double begin;  // the same for the first step of all
  double begun;  // s until the last block is multiplied
  double idle;   // s of the channel in the first block
  double seconds;
};

// Loads of an operand with one slot, which nothing hides but the work of other tiles that do not wait for the same.
double unhidden(const DepthBound& x, int a_slots, int b_slots, std::int64_t panel) {
  const FeedsBound& f = x.feeds;
  const GridBound& g = f.results.sides.grid;
  const bool all = panel >= x.slices;
  const bool ties_a = a_slots == 1 && (!all || f.a_feed == Feed::ring);
  const double tied = (ties_a ? f.a_sharers : 1) * (b_slots == 1 ? f.b_sharers : 1) / g.machine.tiles;
  double loads = 0;
  if (b_slots == 1) loads += f.b;
  if (a_slots == 1 && panel == 0) loads += f.a * f.results.sides.n.blocks;
  if (loads == 0) return 0;
  return std::max(0.0, loads * tied + (f.results.blocks * x.k.blocks - 1) * g.machine.dram_latency - x.load);
}

// With several slots a slice is asked for as many steps ahead: so many steps take no less than one step, its load and
// its latency.
double asked(const DepthBound& x, double ahead, double loads, double sharers, double hops) {
  const ResultsBound& r = x.feeds.results;
  const GridBound& g = r.sides.grid;
  const double waits = std::max(0.0, r.blocks * x.k.blocks - 2) * (g.machine.dram_latency + hops);
  return (g.compute + loads * sharers / g.machine.tiles + waits - 2 * x.load) / ahead - g.compute;
}

// Blocks that take longer to load, and the others to store, than to multiply, by what the channel cannot do before:
// full ones and the last of a row, in full rows and the last. `streamed`: the share of A that does not stay.
double starved(const DepthBound& x, double streamed) {
  const FeedsBound& f = x.feeds;
  const ResultsBound& r = f.results;
  const SidesBound& s = r.sides;
  const GridBound& g = s.grid;
  const double ahead = 3 * x.load + r.store_most + g.latencies;
  const double a = f.a * streamed / (s.m.part * g.batch);  // per row
  const double b = f.b / (s.m.blocks * s.n.part * g.batch);
  const auto blocks = [&](double rows, double rounded_rows, double columns, double rounded_columns, double count) {
    const double lost = a * rows + b * columns - g.unit * rounded_rows * rounded_columns;
    const double stores = g.c_element * rows * columns * std::max(0.0, count - 2);
    return std::max(0.0, lost * count + stores - ahead);
  };
  const auto row = [&](double rows, double rounded_rows) {
    return blocks(rows, rounded_rows, s.n.size, s.n.rounded, s.n.blocks - 1) +
           blocks(rows, rounded_rows, s.n.last, s.n.rounded_last, 1);
  };
  return g.batch * ((s.m.blocks - 1) * row(s.m.size, s.m.rounded) + row(s.m.last, s.m.rounded_last));
}

struct SlotsBound {
  SlotsBound(const DepthBound& x, int a_slots, int b_slots, std::int64_t panel) : depth(x) {
    const FeedsBound& f = x.feeds;
    const ResultsBound& r = f.results;
    const SidesBound& s = r.sides;
    const GridBound& g = s.grid;
    const double latency = g.machine.dram_latency;
    const double tiles = g.machine.tiles;
    const bool all = panel >= x.slices;
    // Slices of A that do not stay come again in every block along n.
    times = 1 + (s.n.blocks - 1) * (1 - d(panel) / x.k.blocks) * (1 - kRounding);

    const double streamed = 1 - d(panel) / x.k.blocks;
    double waits = std::max(unhidden(x, a_slots, b_slots, panel), r.summing);
    const double sharers = (all && f.a_feed != Feed::ring ? 1 : f.a_sharers) * f.b_sharers;
    if (b_slots > 1 && !g.problem.b_local) waits = std::max(waits, asked(x, b_slots, f.b, sharers, f.b_hops));
    if (!all && a_slots / streamed > 1 && !g.problem.a_local) {
      waits = std::max(waits, asked(x, a_slots / streamed, f.a * s.n.blocks, sharers, f.hops - f.b_hops));
    }
    if (r.bb == 1) waits = std::max(waits, starved(x, streamed) - x.load);
    // Results that are stored in place, one tile after the other, but for how far these are apart.
    double held = 0;
    if (r.results == Results::in_place && f.a_sharers * f.b_sharers > 1 && x.slices > 1) {
      constexpr int kUnshared = 8;
      const int slots = std::min(f.a_sharers > 1 ? a_slots : kUnshared, f.b_sharers > 1 ? b_slots : kUnshared);
      const double product = 2 * s.m.rounded * s.n.rounded * r.bb * x.k.rounded / g.machine.matrix;
      const double apart = std::max(x.load, (slots - 1) * (product + x.load + latency + f.hops));
      const double store = (g.c - r.store) / std::max(1.0, r.blocks - 1);
      held = (r.blocks - 2) * std::max(0.0, store * (tiles - 1) / tiles - apart);
    }
    busy = std::max(x.begun, g.compute + x.begin + std::max(waits, held) + g.latencies);
    channel = f.a * times + f.fixed + x.idle;
    seconds = std::max({x.seconds, channel, busy, f.links(times)});
  }
  const DepthBound& depth;
  double times;    // that A comes
  double channel;  // s of the channel, and what it waits for in the first block
  double busy;     // s until the last block is multiplied
  double seconds;
};

struct TailBound {
  TailBound(const SlotsBound& slots, std::int64_t tail) {
    const DepthBound& x = slots.depth;
    const FeedsBound& f = x.feeds;
    const ResultsBound& r = f.results;
    const SidesBound& s = r.sides;
    const GridBound& g = s.grid;
    const bool in_place = r.results == Results::in_place;

    // Behind the last load comes the last step, and behind that what is left to store, but for what tiles store that
    // are ahead. Meanwhile the channel may store what the block before left, and load what results are joined with.
    const double columns = tail > 1 ? s.n.rounded_piece : s.n.rounded_last;
    const double step = r.bb > 1 || in_place ? 0 : 2 * s.m.rounded_last * columns * x.k.rounded_last / g.machine.matrix;
    const double left = r.store * g.stored * (tail > 1 ? s.n.piece / s.n.last : 1);
    // Tiles are apart by a load, and where they hardly wait for each other by a store too.
    const bool tied = x.slices > 2 && f.a_sharers * f.b_sharers > 1;
    const bool free = r.results == Results::doubled || g.problem.finish_bytes > 0 || !tied;
    const double before = r.blocks > 1 && free ? r.store_most : 0;
    const double apart = in_place ? x.load + before : std::min(x.load + before, step);
    const double after = std::max(left / g.machine.tiles, left - apart);
    const double meanwhile = (in_place ? 0 : left - after) + before;
    const double drained = slots.channel + std::max(0.0, step - meanwhile);
    seconds = std::max({slots.seconds, slots.busy + after, drained});
    if (tail > 1 || r.bb > 1) return;

    // In the last block the channel can do no more than load it, and store it and the one before.
    const double a_last = (s.n.blocks > 1 ? (slots.times - 1) / (s.n.blocks - 1) : 1) * s.m.last / s.m.part;
    const double loads = (f.a * a_last + f.b / s.m.blocks * s.n.last / s.n.part) / g.batch;
    const double last_step = 2 * s.m.rounded * s.n.rounded * x.k.rounded_last / g.machine.matrix;
    const double stores = (r.blocks > 1 ? r.store_most : 0) + (in_place ? r.store : std::min(x.load, last_step));
    const double idle = std::max(0.0, g.unit * s.m.rounded_last * s.n.rounded_last - loads - stores);
    seconds = std::max(seconds, slots.channel - g.machine.dram_latency + idle);
  }
  double seconds;
};

// Best first over the sides of blocks on all grids, in the order of an estimate; then everything else for one block,
// level by level. What a bound excludes is not looked at further. Of panels only the largest that fits
// is tried, and of slots for A only one where all of it stays.
//
// What is equal by its estimate or time is taken in an order of the mappings themselves, so that the result does not
// depend on how grids are kept or a library sorts. A first look at few sides finds a good mapping, so that the bounds
// exclude most from the start.
constexpr Growth kSides{12, 8};  // numbers of blocks along m and n
constexpr Growth kCoarse{1, 1};  // the same for a first look: powers of two
constexpr Growth kDepths{3, 2};  // of slices
constexpr std::size_t kSeeds = 32;
constexpr double kLeastGain = 5e-9;  // s

constexpr std::array kFeeds = {Feed::multicast, Feed::direct, Feed::ring};
constexpr Side<GemmProblem> kGemmSides[] = {{&GemmMapping::bm, &GemmProblem::Extent::m},
                                            {&GemmMapping::bn, &GemmProblem::Extent::n},
                                            {&GemmMapping::bk, &GemmProblem::Extent::k}};

class GemmExploration {
 public:
  GemmExploration(Search<GemmProblem>& search, const GemmProblem& problem)
      : search_(search),
        machine_(search.machine),
        problems_{problem, problem.transposed()},
        given_{search.given, search.given.transposed()},
        place_in_varied_(search.grids.size() * 2 * 3) {}

  void run() {
    if (search_.bounds) {
      collect_all(kCoarse, kSeeds);
      for (const Candidate& candidate : candidates_) expand(candidate, Look::coarse);
    }
    collect_all(kSides, candidates_.max_size());
    for (const Candidate& candidate : candidates_) {
      if (candidate.bound < limit()) expand(candidate, Look::full);
    }
  }

  // Of what was timed on the way the fastest of every grid and kind of results, the fastest first.
  std::vector<Choice<GemmProblem>> varied() {
    std::ranges::sort(varied_, [](const Choice<GemmProblem>& x, const Choice<GemmProblem>& y) {
      if (x.time.seconds != y.time.seconds) return x.time.seconds < y.time.seconds;
      if (x.mapping.transposed != y.mapping.transposed) return y.mapping.transposed;
      if (x.mapping.grid != y.mapping.grid) return before(*x.mapping.grid, *y.mapping.grid);
      return x.mapping.results < y.mapping.results;
    });
    return std::move(varied_);
  }

 private:
  struct Space {  // a grid, and the blocks that its tiles' parts may be cut in
    GridBound bound;
    bool transposed;
    const GemmGiven& given;  // in terms of the mapping
    const std::vector<Cut>& m;
    const std::vector<Cut>& n;
    const std::vector<Cut>& k;
  };
  struct Candidate {  // sides of a block, and what becomes of its results
    const Space* space;
    const Cut* m;
    const Cut* n;
    std::int64_t bb;
    Results results;
    double bound;
    double likely;
    std::uint64_t order;  // of those alike in `likely`, the same however grids are kept
  };
  struct Cuts {
    std::int64_t extent;
    std::optional<std::int64_t> side;  // the only one
    Growth growth;
    int rounding;
    std::vector<Cut> cuts;
  };
  enum class Look : unsigned char { coarse, full };

  double limit() const { return search_.limit() - kLeastGain; }

  const std::vector<Cut>& cuts(std::int64_t extent, std::optional<std::int64_t> only, Growth growth, int rounding) {
    for (const Cuts& known : cuts_) {
      if (known.extent == extent && known.side == only && known.growth == growth && known.rounding == rounding) {
        return known.cuts;
      }
    }
    Cuts& made = cuts_.emplace_back(Cuts{extent, only, growth, rounding, {}});
    for (const std::int64_t side : only ? std::vector{*only} : block_sides(extent, machine_.granule, growth)) {
      made.cuts.emplace_back(extent, side, machine_.granule, rounding);
    }
    return made.cuts;
  }

  // The `wanted` candidates that are likely the fastest, these first.
  void collect_all(Growth growth, std::size_t wanted) {
    spaces_.clear();
    candidates_.clear();
    for (const bool transposed : {false, true}) {
      if (search_.given.is_transposed.value_or(transposed) == transposed) collect(transposed, growth);
    }
    const auto goes_before = [](const Candidate& x, const Candidate& y) {
      return x.likely < y.likely || (x.likely == y.likely && x.order < y.order);
    };
    if (wanted < candidates_.size()) {
      const auto last = candidates_.begin() + static_cast<std::ptrdiff_t>(wanted);
      std::nth_element(candidates_.begin(), last, candidates_.end(), goes_before);
      candidates_.resize(wanted, candidates_.front());
    }
    std::ranges::sort(candidates_, goes_before);
  }

  void collect(bool transposed, Growth growth) {
    const GemmProblem& problem = problems_[transposed ? 1 : 0];
    const GemmGiven& given = given_[transposed ? 1 : 0];
    const Rounding up(machine_, problem);
    for (const Grid& grid : search_.grids) {
      if (grid.batch > problem.batch || !given.allows(grid)) continue;
      const GridBound bound(machine_, problem, grid);
      if (bound.seconds >= limit()) continue;
      const GemmProblem::Extent& e = bound.extent;
      collect(
          spaces_.emplace_back(Space{bound, transposed, given, cuts(e.m.part, given.bm, growth, up.m),
                                     cuts(e.n.part, given.bn, growth, up.n), cuts(e.k.part, given.bk, kDepths, up.k)}));
    }
  }

  void collect(const Space& space) {
    const GridBound& grid = space.bound;
    const double element = grid.problem.c_bytes * grid.problem.results;
    std::uint64_t order = (place(grid.grid) << 1 | (space.transposed ? 1 : 0)) << 24;
    for (const Cut& m : space.m) {
      if (grid.a + grid.b * m.blocks + grid.c + grid.latencies >= limit())
        break;  // narrower blocks only need B more often
      for (const Cut& n : space.n) {
        const double least = m.size * n.size * element;
        if (least > machine_.sram) continue;
        const SidesBound sides(grid, m, n);
        if (sides.seconds >= limit()) continue;
        const GemmGiven& given = space.given;
        const auto add = [&](Results results, std::int64_t products) {
          if (given.results.value_or(results) != results || given.bb.value_or(products) != products) return;
          const ResultsBound bound(sides, results, products);
          if (!bound.fits || bound.seconds >= limit()) return;
          candidates_.push_back({&space, &m, &n, products, results, bound.seconds, bound.likely, order++});
        };
        const auto fit = std::min(grid.extent.batch.part, static_cast<std::int64_t>(machine_.sram / least));
        for (const Results results : {Results::staged, Results::doubled, Results::in_place}) {
          add(results, 1);
          if (!sides.pieces) continue;
          if (given.bb && !std::has_single_bit(static_cast<std::uint64_t>(*given.bb))) add(results, *given.bb);
          for (std::int64_t products = 2; products <= fit; products *= 2) add(results, products);
        }
      }
    }
  }

  void expand(const Candidate& candidate, Look look) {
    const Space& space = *candidate.space;
    const SidesBound sides(space.bound, *candidate.m, *candidate.n);
    const ResultsBound results(sides, candidate.results, candidate.bb);
    const GemmProblem& problem = space.bound.problem;
    GemmMapping map;
    map.grid = &space.bound.grid;
    map.bm = candidate.m->side;
    map.bn = candidate.n->side;
    map.bb = candidate.bb;
    map.results = candidate.results;
    map.transposed = space.transposed;
    const auto possible = [&](Feed feed, const Paths& paths, bool local, const GemmGiven::Operand& operand) {
      return can_come(machine_, feed, paths.length, local) &&
             (paths.length == 1 || operand.feed.value_or(feed) == feed);
    };
    const auto feeds = std::span(kFeeds).first(look == Look::coarse ? 2 : kFeeds.size());
    for (const Feed a : feeds) {
      if (!possible(a, map.grid->a, problem.a_local, space.given.a)) continue;
      for (const Feed b : feeds) {
        if (!possible(b, map.grid->b, problem.b_local, space.given.b)) continue;
        const FeedsBound bound(results, a, b);
        if (bound.seconds >= limit()) continue;
        map.a.feed = a;
        map.b.feed = b;
        expand(bound, space, map, look);
      }
    }
  }

  void expand(const FeedsBound& feeds, const Space& space, GemmMapping map, Look look) {
    constexpr std::int64_t kMost = 512;
    const std::int64_t least = std::min<std::int64_t>(64, space.k.front().side);
    for (const Cut& k : space.k) {
      if (look == Look::coarse && (k.side > kMost || k.side < least)) continue;
      // Nothing is summed up: as doubled.
      const bool same = map.results == Results::staged && k.blocks == 1 && map.grid->k == 1;
      if (same && !space.given.results) continue;
      const DepthBound bound(feeds, k);
      if (bound.seconds >= limit()) continue;
      map.bk = k.side;
      expand(bound, space, map);
    }
  }

  void expand(const DepthBound& depth, const Space& space, GemmMapping map) {
    const GemmProblem& problem = space.bound.problem;
    const GemmMemory memory(problem, map, extent_of(problem, map));
    const bool reused = depth.feeds.results.sides.n.blocks > 1;
    const std::int64_t slices = depth.slices;
    const GemmGiven& given = space.given;
    for (int b_slots = 2; b_slots >= 1; --b_slots) {
      if (given.b.slots.value_or(b_slots) != b_slots) continue;
      map.a.slots = 1;
      map.b.slots = b_slots;
      const std::int64_t extra = slices_to_stay(machine_, map, memory);
      if (extra < 0) continue;
      const bool all = reused && extra + 1 >= slices && given.panel.value_or(slices) >= slices;
      for (int a_slots = all ? 1 : 2; a_slots >= 1; --a_slots) {
        if (!all && (a_slots - 1 > extra || given.a.slots.value_or(a_slots) != a_slots)) continue;
        map.a.slots = a_slots;
        map.panel = all ? slices : reused ? std::min(slices - 1, extra - (a_slots - 1)) : 0;
        if (reused && !all && given.panel) {
          if (*given.panel > map.panel) continue;
          map.panel = *given.panel;
        }
        const SlotsBound slots(depth, a_slots, b_slots, map.panel);
        if (slots.seconds >= limit()) continue;
        for (const std::int64_t tail : {std::int64_t{1}, given.tail.value_or(kMostPieces)}) {
          if (given.tail.value_or(tail) != tail) continue;
          if (tail > 1 && (map.bb > 1 || problem.finish_bytes > 0) && !given.tail) break;
          if (TailBound(slots, tail).seconds >= limit()) continue;
          map.tail = tail;
          consider(problem, map);
        }
      }
    }
  }

  void consider(const GemmProblem& problem, const GemmMapping& map) {
    const PipelineTime time = search_.consider(problem, map);
    const auto grid = static_cast<std::size_t>(map.grid - search_.grids.data());
    const std::size_t kind = (2 * grid + (map.transposed ? 1 : 0)) * 3 + static_cast<std::size_t>(map.results);
    std::size_t& varied = place_in_varied_[kind];
    if (varied == 0) {
      varied_.push_back({map, time});
      varied = varied_.size();
    } else if (time.seconds < varied_[varied - 1].time.seconds) {
      varied_[varied - 1] = {map, time};
    }
  }

  Search<GemmProblem>& search_;
  const Machine& machine_;
  std::array<GemmProblem, 2> problems_;  // [transposed], as the given decisions
  std::array<GemmGiven, 2> given_;
  std::deque<Cuts> cuts_;
  std::deque<Space> spaces_;
  std::vector<Candidate> candidates_;
  std::vector<Choice<GemmProblem>> varied_;
  std::vector<std::size_t> place_in_varied_;  // of [grid, transposed, results], counted from one; 0: none
};

}  // namespace

double bound_of(const Machine& machine, const GemmProblem& p, const Grid& grid) {
  return GridBound(machine, p, grid).seconds;
}

double bound_of(const Machine& machine, const GemmProblem& p, const GemmMapping& map) {
  const GridBound grid(machine, p, *map.grid);
  const Rounding up(machine, p);
  const Cut m(grid.extent.m.part, map.bm, machine.granule, up.m);
  const Cut n(grid.extent.n.part, map.bn, machine.granule, up.n);
  const SidesBound sides(grid, m, n);
  const ResultsBound results(sides, map.results, map.bb);
  const FeedsBound feeds(results, map.a.feed, map.b.feed);
  const Cut k(grid.extent.k.part, map.bk, machine.granule, up.k);
  const DepthBound depth(feeds, k);
  const SlotsBound slots(depth, map.a.slots, map.b.slots, map.panel);
  return TailBound(slots, map.tail).seconds;
}

bool alike(const GemmMapping& x, const GemmMapping& y) {
  return x.transposed == y.transposed && x.grid == y.grid && x.bm == y.bm && x.bn == y.bn && x.results == y.results;
}

void explore(Search<GemmProblem>& search, const GemmProblem& problem) { GemmExploration(search, problem).run(); }

template <>
std::vector<Choice<GemmProblem>> Search<GemmProblem>::varied(const GemmProblem& problem) {
  best_.begin(1, kAnyTime);
  GemmExploration exploration(*this, problem);
  exploration.run();
  return exploration.varied();
}

// Mappings that differ in the number of blocks of a dimension, the kind of results, the tail, a feed, slots, two
// factors of the grid, or which operand is called A. What the decision leaves no choice about follows it: feeds of
// operands that are not shared, sides of blocks of the new parts, what stays.
void vary(Nearby<GemmProblem>& near) {
  using Map = GemmMapping;
  const Map& from = near.from;
  near.other_blocks(kGemmSides);
  near.each(&Map::bb, {from.bb / 2, from.bb * 2});
  near.each(&Map::results, {Results::in_place, Results::staged, Results::doubled});
  near.each(&Map::tail, {from.tail > 1 ? 1 : kMostPieces});
  for (Stream Map::*operand : {&Map::a, &Map::b}) {
    for (const Feed feed : kFeeds) near.change([&](Map& map) { (map.*operand).feed = feed; });
    near.change([&](Map& map) { (map.*operand).slots = 3 - (map.*operand).slots; });
  }
  const auto share = [](Map& map) {
    for (Stream* operand : {&map.a, &map.b}) {
      if (operand->feed == Feed::direct) operand->feed = Feed::multicast;
    }
  };
  near.other_grids(kGemmSides, share);
  // The transposed product exchanges rows and columns, and with the grid turned too only A and B exchange their parts.
  const auto turn = [&](Map& map) {
    map.transposed = !map.transposed;
    share(map);
  };
  const Grid& g = *from.grid;
  near.move(kGemmSides, g, turn);
  const auto turned = std::ranges::find_if(near.grids(), [&](const Grid& other) {
    return other.batch == g.batch && other.m == g.n && other.n == g.m && other.k == g.k;
  });
  if (turned != near.grids().end()) near.move(kGemmSides, *turned, turn);
}

bool settle(const Machine& machine, const GemmProblem& problem, GemmMapping& map) {
  if (map.grid->batch > problem.batch || map.bb < 1) return false;
  const GemmProblem p = as_mapped(problem, map);
  if (map.grid->a.length == 1) map.a.feed = Feed::direct;
  if (map.grid->b.length == 1) map.b.feed = Feed::direct;
  if (!can_come(machine, map.a.feed, map.grid->a.length, p.a_local)) return false;
  if (!can_come(machine, map.b.feed, map.grid->b.length, p.b_local)) return false;
  GemmProblem::Extent e = extent_of(p, map);
  map.bb = e.m.blocks * e.n.blocks > 1 ? 1 : std::min(map.bb, e.batch.part);
  if (map.bb > 1 || p.finish_bytes > 0) map.tail = 1;
  if (map.results == Results::staged && e.k.blocks == 1 && map.grid->k == 1) return false;  // as doubled
  const int slots = map.a.slots;
  map.a.slots = 1;
  const std::int64_t extra = slices_to_stay(machine, map, GemmMemory(p, map, e));
  if (extra < 0) return false;
  const bool reused = e.n.blocks > 1;
  const bool all = reused && extra + 1 >= e.k.blocks;
  if (!all && extra > 0) map.a.slots = slots;
  map.panel = all ? e.k.blocks : reused ? std::min(e.k.blocks - 1, extra - (map.a.slots - 1)) : 0;
  return true;
}

}  // namespace llmperf::mapper::tile
