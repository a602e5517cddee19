#include "mapper/tile/gemm.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

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

// Whether an operand can come so to the tiles that share it: what is in the tiles' memory is no tile's own to load.
bool can_come(const Machine& machine, Feed feed, int sharers, bool local) {
  if (sharers == 1) return feed == Feed::direct;
  return machine.multicast_senders ? feed == Feed::multicast : feed != Feed::direct || !local;
}

// Fills in blocks of one product.
class GemmLowering {
 public:
  GemmLowering(const Machine& machine, const GemmProblem& problem, const GemmMapping& mapping, Schedule& schedule)
      : m_(machine), p_(problem), map_(mapping), s_(schedule), e_(extent_of(problem, mapping)) {
    const Grid& g = *map_.grid;
    fm_ = d(p_.m) / (d(e_.m) * g.m);
    fn_ = d(p_.n) / (d(e_.n) * g.n);
    fk_ = d(p_.k) / (d(e_.k) * g.k);
    fb_ = d(p_.batch) / (d(e_.batch) * g.batch);
  }

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
    const std::int64_t last_m = e_.m - (e_.blocks_m - 1) * map_.bm;
    const std::int64_t last_b = e_.batch - (e_.blocks_batch - 1) * map_.bb;
    if (map_.bb > 1) {
      if (e_.blocks_batch > 1) row(e_.m, map_.bb, 1, e_.blocks_batch - 1);
      row(e_.m, last_b, map_.tail, 1);
      return;
    }
    if (e_.blocks_m > 1) row(map_.bm, 1, 1, e_.blocks_m - 1);
    row(last_m, 1, map_.tail, 1);
    s_.repeats = e_.blocks_batch;
  }

 private:
  void row(std::int64_t m, std::int64_t batch, std::int64_t tail, std::int64_t count) {
    Row row{s_.runs.size(), 0};
    first_ = true;
    std::int64_t full = e_.blocks_n - 1;
    const std::int64_t last = e_.n - full * map_.bn;
    run(m, map_.bn, batch, full);
    // The last block in halves of halves: n/2, n/4, …, n/2^t, n/2^t.
    std::int64_t rest = last;
    for (std::int64_t pieces = tail; pieces > 1 && rest > m_.granule; --pieces) {
      const std::int64_t piece = next_piece(rest, m_.granule);
      run(m, piece, batch, 1);
      rest -= piece;
    }
    if (rest > 0) run(m, rest, batch, 1);
    row.end = s_.runs.size();
    s_.rows.push_back(row);
    s_.sequence.push_back({s_.rows.size() - 1, count});
  }

  void run(std::int64_t m, std::int64_t n, std::int64_t batch, std::int64_t count) {
    const bool once = p_.prepare_ops > 0 && !p_.prepares_b && map_.panel >= e_.blocks_k;  // A is prepared as it comes
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
    b.steps = e_.blocks_k;
    b.full = step(m, n, std::min(map_.bk, e_.k), batch, prepares);
    b.last = step(m, n, e_.k - (e_.blocks_k - 1) * map_.bk, batch, prepares);
    const double results = d(m) * d(n) * d(batch);
    const double real = fm_ * fn_ * fb_ / g.k;
    b.result = p_.c_local ? 0 : results * p_.c_bytes * p_.results * real;
    b.end = results * p_.finish_bytes * real;
    b.reduce = results * p_.sum_bytes * (g.k - 1) / g.k;
    b.finish = results * (g.k - 1 + p_.finish_ops) / g.k / m_.vector;
    s_.blocks.push_back(b);
    s_.runs.push_back({s_.blocks.size() - 1, count});
  }

  Step step(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, bool prepares) const {
    Step s;
    const Rounding up(m_, p_);
    const double products = rounded(m, up.m) * rounded(n, up.n) * rounded(k, up.k) * d(batch);
    s.a = d(m) * d(k) * d(batch) * p_.a_bytes * fm_ * fk_ * fb_;
    s.b = d(k) * d(n) * d(batch) * p_.b_bytes * fk_ * fn_ * fb_;
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
  GemmExtent e_;
  double fm_ = 1;  // of a tile's part, the share that is not past the end of the matrix, on the mean over tiles
  double fn_ = 1;
  double fk_ = 1;
  double fb_ = 1;
  bool first_ = true;
};

}  // namespace

std::int64_t last_piece(std::int64_t columns, std::int64_t tail, int granule) {
  for (; tail > 1 && columns > granule; --tail) columns -= next_piece(columns, granule);
  return columns;
}

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

GemmExtent extent_of(const GemmProblem& p, const GemmMapping& map) {
  GemmExtent e{};
  e.m = divide_up(p.m, map.grid->m);
  e.n = divide_up(p.n, map.grid->n);
  e.k = divide_up(p.k, map.grid->k);
  e.batch = divide_up(p.batch, map.grid->batch);
  e.blocks_m = divide_up(e.m, map.bm);
  e.blocks_n = divide_up(e.n, map.bn);
  e.blocks_k = divide_up(e.k, map.bk);
  e.blocks_batch = divide_up(e.batch, map.bb);
  return e;
}

// Of a slice that goes round a tile has the parts to come, and one that passes through.
double slots_of(const Stream& stream, int sharers) {
  return stream.feed == Feed::ring ? (stream.slots + 1.0) / sharers : stream.slots;
}

GemmMemory::GemmMemory(const GemmProblem& p, const GemmMapping& map, const GemmExtent& e) {
  const double m = d(std::min(map.bm, e.m)) * d(map.bb);
  const double n = d(std::min(map.bn, e.n));
  const double k = d(std::min(map.bk, e.k));
  a_slice = m * k * p.a_bytes;
  b_slice = k * n * d(map.bb) * p.b_bytes;
  const bool sums = map.bk < e.k || map.grid->k > 1;
  const double sum = sums ? p.sum_bytes : p.c_bytes * p.results;
  const double staged = p.c_local ? 0 : p.c_bytes * p.results / map.grid->k;  // local ones have a place of their own
  const double result = map.results == Results::in_place ? sum
                        : map.results == Results::staged ? sum + staged
                                                         : 2 * sum;
  const Grid& g = *map.grid;
  results = m * n * (result + p.finish_bytes / g.k) + p.local_bytes(d(g.batch) * g.m * g.n * g.k);
}

std::int64_t slices_to_stay(const Machine& machine, const GemmMapping& map, const GemmMemory& memory) {
  const int sharers = map.grid->a.length;
  const double least = memory.a_slice * slots_of({map.a.feed, 1, true}, sharers) +
                       memory.b_slice * slots_of(map.b, map.grid->b.length) + memory.results;
  if (least > machine.sram) return -1;
  const double kept = map.a.feed == Feed::ring ? memory.a_slice / sharers : memory.a_slice;
  return static_cast<std::int64_t>((machine.sram - least) / kept);
}

double sram_of(const GemmProblem& p, const GemmMapping& map) {
  const GemmExtent e = extent_of(p, map);
  const GemmMemory memory(p, map, e);
  const bool ring = map.a.feed == Feed::ring;
  const int a_sharers = map.a.feed == Feed::direct ? 1 : map.grid->a.length;
  const int b_sharers = map.b.feed == Feed::direct ? 1 : map.grid->b.length;
  const double kept = d(map.panel) / (ring ? a_sharers : 1);
  const double passing = ring ? 1.0 / a_sharers : 0;
  const double a = kept + (map.panel >= e.blocks_k ? passing : slots_of(map.a, a_sharers));
  return memory.a_slice * a + memory.b_slice * slots_of(map.b, b_sharers) + memory.results;
}

void lower(const Machine& machine, const GemmProblem& problem, const GemmMapping& mapping, Schedule& schedule) {
  GemmLowering(machine, problem, mapping, schedule).run();
}

namespace {

constexpr double kRounding = 1e-9;  // of sums in another order
constexpr double kSpare = 0.02;     // weight of what the tiles have to do in the order of the search

GemmExtent part_of(const Machine& machine, const GemmProblem& problem, const Grid& grid) {
  GemmMapping mapping;
  mapping.grid = &grid;
  mapping.bm = mapping.bn = mapping.bk = machine.granule;
  return extent_of(problem, mapping);
}

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

Cut::Cut(std::int64_t extent, std::int64_t block, int granule, int rounding)
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

// The matrix unit rounds a tile's part up in every dimension; the channel moves every element once. Nothing hides the
// latency of the first load and of the last store.
GridBound::GridBound(const Machine& m, const GemmProblem& p, const Grid& g)
    : machine(m), problem(p), grid(g), extent(part_of(m, p, g)), batch(d(extent.batch)) {
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
  c_element = c / (d(extent.m) * d(extent.n) * batch);
  stored = c_bytes > 0 ? stored_bytes / c_bytes : 0;
  a_link = a_elements * p.a_bytes / (d(g.m) * g.k * g.batch) / m.link;
  b_link = b_elements * p.b_bytes / (d(g.n) * g.k * g.batch) / m.link;
  const Rounding up(m, p);
  unit = 2 * rounded(extent.k, up.k) / m.matrix;
  compute = unit * rounded(extent.m, up.m) * rounded(extent.n, up.n) * batch;
  const double others = g.k - 1.0;
  summing = others / g.k * (p.sum_bytes * g.c_load / m.link + 1 / m.vector);
  finish = summing + p.finish_ops / g.k / m.vector;
  latencies = ((p.a_local && p.b_local ? 0 : 1) + (p.c_local ? 0 : 1)) * m.dram_latency;
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
  const Rounding up(machine, p);
  const Cut m(grid.extent.m, map.bm, machine.granule, up.m);
  const Cut n(grid.extent.n, map.bn, machine.granule, up.n);
  const SidesBound sides(grid, m, n);
  const ResultsBound results(sides, map.results, map.bb);
  const FeedsBound feeds(results, map.a.feed, map.b.feed);
  const Cut k(grid.extent.k, map.bk, machine.granule, up.k);
  const DepthBound depth(feeds, k);
  const SlotsBound slots(depth, map.a.slots, map.b.slots, map.panel);
  return TailBound(slots, map.tail).seconds;
}

namespace {

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

// Mappings that differ from one in a single decision: the number of blocks of a dimension, the kind of results, the
// tail, a feed, slots, two factors of the grid, or which operand is called A. What the decision leaves no choice about
// follows it: feeds of operands that are not shared, sides of blocks of the new parts, what stays.
class Neighbours {
 public:
  Neighbours(const Machine& machine, const GemmProblem& problem, const GemmChoice& choice)
      : m_(machine), given_(problem), turned_(problem.transposed()), from_(choice), found_(machine, choice) {}

  std::vector<GemmChoice> all(std::span<const Grid> grids) {
    const GemmExtent e = extent_of(problem(from_.transposed), from_.mapping);
    blocks(&GemmMapping::bm, e.m, e.blocks_m);
    blocks(&GemmMapping::bn, e.n, e.blocks_n);
    blocks(&GemmMapping::bk, e.k, e.blocks_k);
    for (const std::int64_t products : {from_.mapping.bb / 2, from_.mapping.bb * 2}) {
      if (products >= 1) change([&](GemmMapping& map) { map.bb = products; });
    }
    for (const Results results : {Results::in_place, Results::staged, Results::doubled}) {
      change([&](GemmMapping& map) { map.results = results; });
    }
    change([](GemmMapping& map) { map.tail = map.tail > 1 ? 1 : kMostPieces; });
    for (Stream GemmMapping::*operand : {&GemmMapping::a, &GemmMapping::b}) {
      for (const Feed feed : {Feed::multicast, Feed::direct, Feed::ring}) {
        change([&](GemmMapping& map) { (map.*operand).feed = feed; });
      }
      change([&](GemmMapping& map) { (map.*operand).slots = 3 - (map.*operand).slots; });
    }
    for (const Grid* grid : neighbours(grids, *from_.mapping.grid)) move(*grid, from_.transposed, e);
    // The transposed product exchanges rows and columns, and with the grid turned too only A and B exchange their
    // parts.
    const Grid& g = *from_.mapping.grid;
    move(g, !from_.transposed, e);
    const auto turned = std::ranges::find_if(grids, [&](const Grid& other) {
      return other.batch == g.batch && other.m == g.n && other.n == g.m && other.k == g.k;
    });
    if (turned != grids.end()) move(*turned, !from_.transposed, e);
    return found_.sorted();
  }

 private:
  const GemmProblem& problem(bool transposed) const { return transposed ? turned_ : given_; }

  template <typename Change>
  void change(const Change& apply) {
    GemmMapping map = from_.mapping;
    apply(map);
    add(from_.transposed, map);
  }

  void blocks(std::int64_t GemmMapping::*side, std::int64_t extent, std::int64_t count) {
    for (const std::int64_t other : other_sides(extent, count, m_.granule)) {
      change([&](GemmMapping& map) { map.*side = other; });
    }
  }

  // As many blocks as before, of the parts on another grid.
  void move(const Grid& grid, bool transposed, const GemmExtent& before) {
    GemmMapping map = from_.mapping;
    map.grid = &grid;
    const GemmExtent part = extent_of(problem(transposed), map);
    map.bm = block_side(part.m, before.blocks_m, m_.granule);
    map.bn = block_side(part.n, before.blocks_n, m_.granule);
    map.bk = block_side(part.k, before.blocks_k, m_.granule);
    if (map.a.feed == Feed::direct) map.a.feed = Feed::multicast;
    if (map.b.feed == Feed::direct) map.b.feed = Feed::multicast;
    add(transposed, map);
  }

  void add(bool transposed, GemmMapping map) {
    const GemmProblem& p = problem(transposed);
    if (map.grid->batch > p.batch) return;
    if (map.grid->a.length == 1) map.a.feed = Feed::direct;
    if (map.grid->b.length == 1) map.b.feed = Feed::direct;
    if (!can_come(m_, map.a.feed, map.grid->a.length, p.a_local)) return;
    if (!can_come(m_, map.b.feed, map.grid->b.length, p.b_local)) return;
    const GemmExtent e = extent_of(p, map);
    map.bb = e.blocks_m * e.blocks_n > 1 ? 1 : std::min(map.bb, e.batch);
    if (map.bb > 1 || p.finish_bytes > 0) map.tail = 1;
    if (map.results == Results::staged && e.blocks_k == 1 && map.grid->k == 1) return;  // as doubled
    const int slots = map.a.slots;
    map.a.slots = 1;
    const std::int64_t extra = slices_to_stay(m_, map, GemmMemory(p, map, e));
    if (extra < 0) return;
    const bool reused = e.blocks_n > 1;
    const bool all = reused && extra + 1 >= e.blocks_k;
    if (!all && extra > 0) map.a.slots = slots;
    map.panel = all ? e.blocks_k : reused ? std::min(e.blocks_k - 1, extra - (map.a.slots - 1)) : 0;
    found_.add(p, {transposed, map, {}});
  }

  const Machine& m_;
  const GemmProblem& given_;
  const GemmProblem turned_;
  const GemmChoice& from_;
  Nearby<GemmChoice> found_;
};

}  // namespace

bool alike(const GemmChoice& x, const GemmChoice& y) {
  return x.transposed == y.transposed && x.mapping.grid == y.mapping.grid && x.mapping.bm == y.mapping.bm &&
         x.mapping.bn == y.mapping.bn && x.mapping.results == y.mapping.results;
}

double GemmSearch::limit() const { return Search::limit() - kLeastGain; }

const std::vector<Cut>& GemmSearch::cuts(std::int64_t extent, std::optional<std::int64_t> only, Growth growth,
                                         int rounding) {
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

void GemmSearch::collect(const GemmProblem& problem, const GemmGiven& wanted, bool transposed, Growth growth) {
  for (const Grid& grid : grids_) {
    if (grid.batch > problem.batch || !wanted.allows(grid)) continue;
    const GridBound bound(machine_, problem, grid);
    if (bound.seconds >= limit()) continue;
    const GemmExtent& e = bound.extent;
    const Rounding up(machine_, problem);
    collect(spaces_.emplace_back(Space{bound, transposed, &wanted, &cuts(e.m, wanted.bm, growth, up.m),
                                       &cuts(e.n, wanted.bn, growth, up.n), &cuts(e.k, wanted.bk, kDepths, up.k)}));
  }
}

void GemmSearch::collect(const Space& space) {
  const GridBound& grid = space.bound;
  const double element = grid.problem.c_bytes * grid.problem.results;
  std::uint64_t order = (place(grid.grid) << 1 | (space.transposed ? 1 : 0)) << 24;
  for (const Cut& m : *space.m) {
    if (grid.a + grid.b * m.blocks + grid.c + grid.latencies >= limit())
      break;  // narrower blocks only need B more often
    for (const Cut& n : *space.n) {
      const double least = m.size * n.size * element;
      if (least > machine_.sram) continue;
      const SidesBound sides(grid, m, n);
      if (sides.seconds >= limit()) continue;
      const GemmGiven& wanted = *space.given;
      const auto add = [&](Results results, std::int64_t products) {
        if (wanted.results.value_or(results) != results || wanted.bb.value_or(products) != products) return;
        const ResultsBound bound(sides, results, products);
        if (!bound.fits || bound.seconds >= limit()) return;
        candidates_.push_back({&space, &m, &n, products, results, bound.seconds, bound.likely, order++});
      };
      const auto fit = std::min(grid.extent.batch, static_cast<std::int64_t>(machine_.sram / least));
      for (const Results results : {Results::staged, Results::doubled, Results::in_place}) {
        add(results, 1);
        if (!sides.pieces) continue;
        if (wanted.bb && !std::has_single_bit(static_cast<std::uint64_t>(*wanted.bb))) add(results, *wanted.bb);
        for (std::int64_t products = 2; products <= fit; products *= 2) add(results, products);
      }
    }
  }
}

void GemmSearch::expand(const Candidate& candidate, Look look) {
  const SidesBound sides(candidate.space->bound, *candidate.m, *candidate.n);
  const ResultsBound results(sides, candidate.results, candidate.bb);
  GemmMapping map;
  map.grid = &candidate.space->bound.grid;
  map.bm = candidate.m->side;
  map.bn = candidate.n->side;
  map.bb = candidate.bb;
  map.results = candidate.results;
  constexpr std::array kFeeds = {Feed::multicast, Feed::direct, Feed::ring};
  const std::size_t feeds = look == Look::coarse ? 2 : kFeeds.size();
  const GemmProblem& problem = candidate.space->bound.problem;
  const GemmGiven& wanted = *candidate.space->given;
  const auto possible = [&](Feed feed, const Paths& paths, bool local, const GemmGiven::Operand& operand) {
    return can_come(machine_, feed, paths.length, local) && (paths.length == 1 || operand.feed.value_or(feed) == feed);
  };
  for (std::size_t a = 0; a < feeds; ++a) {
    if (!possible(kFeeds[a], map.grid->a, problem.a_local, wanted.a)) continue;
    for (std::size_t b = 0; b < feeds; ++b) {
      if (!possible(kFeeds[b], map.grid->b, problem.b_local, wanted.b)) continue;
      const FeedsBound bound(results, kFeeds[a], kFeeds[b]);
      if (bound.seconds >= limit()) continue;
      map.a.feed = kFeeds[a];
      map.b.feed = kFeeds[b];
      expand(bound, *candidate.space, map, look);
    }
  }
}

void GemmSearch::expand(const FeedsBound& feeds, const Space& space, GemmMapping map, Look look) {
  constexpr std::int64_t kMost = 512;
  const std::int64_t least = std::min<std::int64_t>(64, space.k->front().side);
  for (const Cut& k : *space.k) {
    if (look == Look::coarse && (k.side > kMost || k.side < least)) continue;
    // Nothing is summed up: as doubled.
    const bool same = map.results == Results::staged && k.blocks == 1 && map.grid->k == 1;
    if (same && !space.given->results) continue;
    const DepthBound bound(feeds, k);
    if (bound.seconds >= limit()) continue;
    map.bk = k.side;
    expand(bound, space, map);
  }
}

void GemmSearch::expand(const DepthBound& depth, const Space& space, GemmMapping map) {
  const GemmProblem& problem = space.bound.problem;
  const GemmMemory memory(problem, map, space.bound.extent);
  const bool reused = depth.feeds.results.sides.n.blocks > 1;
  const std::int64_t slices = depth.slices;
  const GemmGiven& wanted = *space.given;
  for (int b_slots = 2; b_slots >= 1; --b_slots) {
    if (wanted.b.slots.value_or(b_slots) != b_slots) continue;
    map.a.slots = 1;
    map.b.slots = b_slots;
    const std::int64_t extra = slices_to_stay(machine_, map, memory);
    if (extra < 0) continue;
    const bool all = reused && extra + 1 >= slices && wanted.panel.value_or(slices) >= slices;
    for (int a_slots = all ? 1 : 2; a_slots >= 1; --a_slots) {
      if (!all && (a_slots - 1 > extra || wanted.a.slots.value_or(a_slots) != a_slots)) continue;
      map.a.slots = a_slots;
      map.panel = all ? slices : reused ? std::min(slices - 1, extra - (a_slots - 1)) : 0;
      if (reused && !all && wanted.panel) {
        if (*wanted.panel > map.panel) continue;
        map.panel = *wanted.panel;
      }
      const SlotsBound slots(depth, a_slots, b_slots, map.panel);
      if (slots.seconds >= limit()) continue;
      for (const std::int64_t tail : {std::int64_t{1}, wanted.tail.value_or(kMostPieces)}) {
        if (wanted.tail.value_or(tail) != tail) continue;
        if (tail > 1 && (map.bb > 1 || problem.finish_bytes > 0) && !wanted.tail) break;
        if (TailBound(slots, tail).seconds >= limit()) continue;
        map.tail = tail;
        consider(space, map);
      }
    }
  }
}

void GemmSearch::consider(const Space& space, const GemmMapping& map) {
  const PipelineTime time = timed(space.bound.problem, map);
  const auto grid = static_cast<std::size_t>(map.grid - grids_.data());
  const std::size_t kind = (2 * grid + (space.transposed ? 1 : 0)) * 3 + static_cast<std::size_t>(map.results);
  std::size_t& varied = place_in_varied_[kind];
  if (varied == 0) {
    varied_.push_back({space.transposed, map, time});
    varied = varied_.size();
  } else if (time.seconds < varied_[varied - 1].time.seconds) {
    varied_[varied - 1] = {space.transposed, map, time};
  }
  best_.add({space.transposed, map, time});
}

std::vector<GemmChoice> GemmSearch::best(const GemmProblem& problem, std::size_t keep, double below) {
  best_.begin(keep, below);
  varied_.clear();
  place_in_varied_.assign(grids_.size() * 2 * 3, 0);
  cuts_.clear();
  const GemmProblem transposed = problem.transposed();
  const GemmGiven turned = given.transposed();
  const auto collect_all = [&](Growth growth, std::size_t wanted) {
    spaces_.clear();
    candidates_.clear();
    if (!given.is_transposed.value_or(false)) collect(problem, given, false, growth);
    if (given.is_transposed.value_or(true)) collect(transposed, turned, true, growth);
    const auto goes_before = [](const Candidate& x, const Candidate& y) {
      return x.likely < y.likely || (x.likely == y.likely && x.order < y.order);
    };
    if (wanted < candidates_.size()) {
      const auto last = candidates_.begin() + static_cast<std::ptrdiff_t>(wanted);
      std::nth_element(candidates_.begin(), last, candidates_.end(), goes_before);
      candidates_.resize(wanted, candidates_.front());
    }
    std::ranges::sort(candidates_, goes_before);
  };
  if (bounds) {
    collect_all(kCoarse, kSeeds);
    for (const Candidate& candidate : candidates_) expand(candidate, Look::coarse);
  }
  collect_all(kSides, candidates_.max_size());
  for (const Candidate& candidate : candidates_) {
    if (candidate.bound < limit()) expand(candidate, Look::full);
  }
  return best_.all();
}

std::vector<GemmChoice> GemmSearch::varied(const GemmProblem& problem) {
  best(problem, 1);
  std::ranges::sort(varied_, [](const GemmChoice& x, const GemmChoice& y) {
    if (x.time.seconds != y.time.seconds) return x.time.seconds < y.time.seconds;
    if (x.transposed != y.transposed) return y.transposed;
    if (x.mapping.grid != y.mapping.grid) return before(*x.mapping.grid, *y.mapping.grid);
    return x.mapping.results < y.mapping.results;
  });
  return varied_;
}

std::vector<GemmChoice> GemmSearch::near(const GemmProblem& problem, const GemmChoice& choice) const {
  return Neighbours(machine_, problem, choice).all(grids_);
}

}  // namespace llmperf::mapper::tile
