#include "mapper/tile/gemm_bounds.h"

#include <algorithm>
#include <cmath>

#include "base/integer.h"

namespace llmperf::mapper::tile {
namespace {

constexpr double kRounding = 1e-9;  // of sums in another order
constexpr double kSpare = 0.02;     // weight of what the tiles have to do in the order of the search

double d(std::int64_t x) { return static_cast<double>(x); }
double rounded(std::int64_t x, int granule) { return d(divide_up(x, granule) * granule); }

GemmExtent part_of(const Machine& machine, const GemmProblem& problem, const Grid& grid) {
  GemmMapping mapping;
  mapping.grid = &grid;
  mapping.bm = mapping.bn = mapping.bk = machine.granule;
  return extent_of(problem, mapping);
}

}  // namespace

Cut::Cut(std::int64_t extent, std::int64_t block, int granule)
    : side(block),
      blocks(d(divide_up(extent, block))),
      part(d(extent)),
      size(d(std::min(block, extent))),
      rounded(tile::rounded(std::min(block, extent), granule)),
      rounded_part(tile::rounded(extent, granule)) {
  const std::int64_t last_side = extent - (divide_up(extent, block) - 1) * block;
  const std::int64_t last_piece = tile::last_piece(last_side, kMostPieces, granule);
  last = d(last_side);
  rounded_last = tile::rounded(last_side, granule);
  piece = d(last_piece);
  rounded_piece = tile::rounded(last_piece, granule);
}

// The matrix unit rounds a tile's part up in every dimension; the channel moves every element once. Nothing hides the
// latency of the first load and of the last store.
GridBound::GridBound(const Machine& m, const GemmProblem& p, const Grid& g)
    : machine(m), problem(p), grid(g), extent(part_of(m, p, g)), batch(d(extent.batch)) {
  const double a_elements = d(p.m) * d(p.k) * d(p.batch);
  const double b_elements = d(p.k) * d(p.n) * d(p.batch);
  const double c_elements = d(p.m) * d(p.n) * d(p.batch);
  a = a_elements * p.a_bytes / m.dram;
  b = b_elements * p.b_bytes / m.dram;
  const double c_bytes = p.c_bytes * p.results + p.finish_bytes;
  c = c_elements * c_bytes / m.dram;
  c_element = c / (d(extent.m) * d(extent.n) * batch);
  stored = p.c_bytes * p.results / c_bytes;
  a_link = a_elements * p.a_bytes / (d(g.m) * g.k * g.batch) / m.link;
  b_link = b_elements * p.b_bytes / (d(g.n) * g.k * g.batch) / m.link;
  unit = 2 * rounded(extent.k, m.granule) / m.matrix;
  compute = unit * rounded(extent.m, m.granule) * rounded(extent.n, m.granule) * batch;
  const double others = g.k - 1.0;
  summing = others / g.k * (4 * g.c_load / m.link + 1 / m.vector);
  finish = summing + p.finish_ops / g.k / m.vector;
  latencies = 2 * m.dram_latency;
  seconds = std::max(compute, a + b + c) + latencies;
}

SidesBound::SidesBound(const GridBound& g, const Cut& rows, const Cut& columns)
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

ResultsBound::ResultsBound(const SidesBound& s, Results kind, std::int64_t products)
    : sides(s), results(kind), bb(d(products)), blocks(s.m.blocks * s.n.blocks * std::ceil(s.grid.batch / bb)) {
  const GridBound& g = s.grid;
  const GemmProblem& p = g.problem;
  const Machine& m = g.machine;
  const double elements = s.m.size * s.n.size;
  const double c_bytes = p.c_bytes * p.results;
  // All of k in one step needs no sums, and keeps A. Otherwise A stays as far as there is room beside the results and
  // the least slice of B.
  const double depth = d(g.extent.k);
  const double panel = s.m.size * depth * p.a_bytes / g.grid.a.length;
  const double column = s.n.size * p.b_bytes / g.grid.b.length;
  const bool one_step = g.grid.k == 1 && elements * c_bytes + panel + column * depth <= m.sram;
  const double sums = results == Results::doubled ? 8 : results == Results::staged ? 4 + c_bytes / g.grid.k : 4;
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

FeedsBound::FeedsBound(const ResultsBound& r, Feed a_by, Feed b_by) : results(r), a_feed(a_by), b_feed(b_by) {
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

double FeedsBound::links(double times) const {
  if (a_feed == Feed::ring) times = 1;  // parts go round in every block, wherever they stay
  double most = 0;
  for (const LinkLoad& load : results.sides.grid.grid.loads) {
    most = std::max(most, load.a * a_link_ * times + load.b * b_link_);
  }
  return most * (1 - kRounding);
}

DepthBound::DepthBound(const FeedsBound& f, const Cut& cut) : feeds(f), k(cut) {
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

namespace {

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

}  // namespace

SlotsBound::SlotsBound(const DepthBound& x, int a_slots, int b_slots, std::int64_t panel) : depth(x) {
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
  if (b_slots > 1) waits = std::max(waits, asked(x, b_slots, f.b, sharers, f.b_hops));
  if (!all && a_slots / streamed > 1) {
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

TailBound::TailBound(const SlotsBound& slots, std::int64_t tail) {
  const DepthBound& x = slots.depth;
  const FeedsBound& f = x.feeds;
  const ResultsBound& r = f.results;
  const SidesBound& s = r.sides;
  const GridBound& g = s.grid;
  const bool in_place = r.results == Results::in_place;

  // Behind the last load comes the last step, and behind that what is left to store, but for what tiles store that are
  // ahead. Meanwhile the channel may store what the block before left, and load what results are joined with.
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

double bound_of(const Machine& machine, const GemmProblem& p, const GemmMapping& map) {
  const GridBound grid(machine, p, *map.grid);
  const Cut m(grid.extent.m, map.bm, machine.granule);
  const Cut n(grid.extent.n, map.bn, machine.granule);
  const SidesBound sides(grid, m, n);
  const ResultsBound results(sides, map.results, map.bb);
  const FeedsBound feeds(results, map.a.feed, map.b.feed);
  const Cut k(grid.extent.k, map.bk, machine.granule);
  const DepthBound depth(feeds, k);
  const SlotsBound slots(depth, map.a.slots, map.b.slots, map.panel);
  return TailBound(slots, map.tail).seconds;
}

}  // namespace llmperf::mapper::tile
