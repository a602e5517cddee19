#include "mapper/tile/gemm_mapping.h"

#include <algorithm>

#include "base/integer.h"

namespace llmperf::mapper::tile {
namespace {

constexpr double kAccumulator = 4;  // bytes of an element while it is summed up

double d(std::int64_t x) { return static_cast<double>(x); }
double rounded(std::int64_t x, int granule) { return d(divide_up(x, granule) * granule); }

// Columns of the next piece, of `rest` to come.
std::int64_t next_piece(std::int64_t rest, int granule) {
  return std::min(rest, divide_up(divide_up(rest, 2), granule) * granule);
}

}  // namespace

std::int64_t last_piece(std::int64_t columns, std::int64_t tail, int granule) {
  for (; tail > 1 && columns > granule; --tail) columns -= next_piece(columns, granule);
  return columns;
}

double GemmProblem::flops() const { return 2 * d(m) * d(n) * d(k) * d(batch); }

double GemmProblem::least_bytes() const {
  return d(batch) * (d(m) * d(k) * a_bytes + d(k) * d(n) * b_bytes + d(m) * d(n) * (c_bytes * results + finish_bytes));
}

GemmProblem GemmProblem::transposed() const {
  GemmProblem t = *this;
  std::swap(t.m, t.n);
  std::swap(t.a_bytes, t.b_bytes);
  t.prepares_b = !prepares_b;
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
  const double sum = sums ? kAccumulator : p.c_bytes * p.results;
  const double staged = p.c_bytes * p.results / map.grid->k;
  const double result = map.results == Results::in_place ? sum
                        : map.results == Results::staged ? sum + staged
                                                         : 2 * sum;
  results = m * n * (result + p.finish_bytes / map.grid->k);
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

namespace {

// Fills in blocks of one product.
class Lowering {
 public:
  Lowering(const Machine& machine, const GemmProblem& problem, const GemmMapping& mapping, Schedule& schedule)
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
    s_.panel = map_.panel;
    s_.results = map_.results;
    s_.overlapped = true;
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
    b.result = results * p_.c_bytes * p_.results * real;
    b.end = results * p_.finish_bytes * real;
    b.reduce = results * kAccumulator * (g.k - 1) / g.k;
    b.finish = results * (g.k - 1 + p_.finish_ops) / g.k / m_.vector;
    s_.blocks.push_back(b);
    s_.runs.push_back({s_.blocks.size() - 1, count});
  }

  Step step(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, bool prepares) const {
    Step s;
    const double products = rounded(m, m_.granule) * rounded(n, m_.granule) * rounded(k, m_.granule) * d(batch);
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

void lower(const Machine& machine, const GemmProblem& problem, const GemmMapping& mapping, Schedule& schedule) {
  Lowering(machine, problem, mapping, schedule).run();
}

}  // namespace llmperf::mapper::tile
