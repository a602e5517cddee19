#include "mapper/tile/published.h"

#include <algorithm>
#include <cmath>

#include "base/integer.h"
#include "mapper/tile/schedule.h"
#include "mapper/tile/simulation.h"

namespace llmperf::mapper::tile {
namespace {

constexpr double kElement = 2;  // bytes
constexpr double kMiB = 1048576;
constexpr double kMs = 1e-3;
constexpr int kTiles = 16;  // the formulas know no other number

std::int64_t up(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit * unit; }

// The machine in the mapper's units.
struct Units {
  explicit Units(const Machine& m)
      : sram(m.sram / kMiB),
        noc(m.link / 1e9),
        dram(m.dram / 1e9),
        latency(m.dram_latency * 1e3),
        hop(m.hop_latency * 1e3),
        gemm(m.matrix / 1e12),
        vector(m.vector / 1e12) {}
  double load(double mib) const { return latency + kTiles * mib / dram; }

  double sram, noc, dram, latency, hop, gemm, vector;
};

// Numbers of parts of `extent` that leave multiples of `unit`: divisors up to the root, and their partners where the
// divisor is a multiple of the unit, too.
std::vector<std::int64_t> splits(std::int64_t extent, std::int64_t unit) {
  std::vector<std::int64_t> result;
  for (std::int64_t p = 1; p * p <= extent; ++p) {
    if (extent % p != 0 || extent / p % unit != 0) continue;
    result.push_back(p);
    if (p % unit == 0 && p != extent / p) result.push_back(extent / p);
  }
  std::ranges::sort(result);
  return result;
}

double mib(double elements) { return elements * kElement / kMiB; }

// The first of the most utilised wins.
void keep(PublishedTime& best, const PublishedTime& candidate) {
  if (!best.feasible() || candidate.utilisation() > best.utilisation()) best = candidate;
}

// The operand of m rows stays on the tiles, the other goes round; then a vector op of `fused` ms on the results.
void one_order(const Units& u, std::int64_t m, std::int64_t n, std::int64_t k, double gflop, double fused,
               bool transposed, PublishedTime& best) {
  constexpr std::int64_t kSide = 1024;
  constexpr std::int64_t kDepth = 64;
  const double hops = 5;
  m = up(m, kSide);
  n = up(n, kSide);
  k = up(k, kSide);
  for (const std::int64_t nk : splits(k, kDepth)) {
    for (const std::int64_t n1 : splits(m, kSide)) {
      for (const std::int64_t n2 : splits(n, kSide)) {
        const double nm = kTiles * d(n1);
        const double nn = kTiles * d(n2);
        const double i = mib((d(m) / nm) * (d(k) / d(nk)));
        const double w = mib((d(k) / d(nk)) * (d(n) / nn));
        const double o = mib((d(m) / nm) * (d(n) / nn));
        const int copies = nk > 1 && fused == 0 ? 3 : 2;
        const bool twice = 2 * i + 3 * w + copies * o <= u.sram;
        if (!twice && i + 3 * w + copies * o > u.sram) continue;
        const bool doubled = twice || (copies == 2 && nm == kTiles);
        const double cp = gflop / (nm * nn * d(nk)) / u.gemm;
        const double cm = w / u.noc + hops * u.hop;
        const double pipe = kTiles * cp >= (kTiles - 1) * cm ? kTiles * cp : (kTiles - 1) * cm + cp;
        const double iter_w = std::max(pipe, u.load(w));
        const double iter_i = doubled ? std::max(pipe, u.load(i)) : u.load(i) + cm;
        const double partial = kTiles * u.load(o);
        const double body = (d(n2) - 1) * d(n1) * iter_w + (d(n1) - 1) * iter_i + pipe +
                            (d(nk) - 1) * ((d(n1) - 1) * std::max(u.load(i) + partial, pipe) +
                                           (d(n2) - 1) * d(n1) * std::max(u.load(w) + partial, pipe) +
                                           std::max(u.load(w) + u.load(i), pipe));
        const double compute = d(n1) * d(n2) * d(nk) * kTiles * cp + fused;
        PublishedTime t;
        t.seconds = (u.load(i) + u.load(w) + std::max(body, compute) + u.load(o)) * kMs;
        t.compute = compute * kMs;
        t.splits[0] = n1;
        t.splits[1] = n2;
        t.splits[2] = nk;
        t.transposed = transposed;
        keep(best, t);
      }
    }
  }
}

constexpr std::int64_t kPad = 1024;

std::int64_t padded(std::int64_t x) { return divide_up(x, kPad) * kPad; }

PublishedTime published(const Machine& machine, const GemmProblem& p) {
  const Units u(machine);
  const double gflop = 2 * d(p.m) * d(p.n) * d(p.k) / 1e9;
  const double fused = p.finish_ops * d(p.m) * d(p.n) / 1e9 / (kTiles * u.vector);
  PublishedTime best;
  one_order(u, p.m, p.n, p.k, gflop, fused, false, best);
  one_order(u, p.n, p.m, p.k, gflop, fused, true, best);
  best.seconds *= d(p.batch);
  best.compute *= d(p.batch);
  return best;
}

PublishedTime published(const Machine& machine, const AttentionProblem& p) {
  if (p.queries != p.keys) return {};
  constexpr std::int64_t kSide = 64;
  const std::int64_t s = padded(p.queries);
  const double heads = d(p.kv_heads * p.group);
  const double head = d(p.qk_dim);
  const Units u(machine);
  PublishedTime best;
  for (std::int64_t tx = kSide; tx <= s / kTiles; tx += kSide) {
    if (s % tx != 0) continue;
    for (std::int64_t ty = kSide; ty <= s / kTiles; ty += kSide) {
      if (s % ty != 0) continue;
      const double n1 = std::ceil(heads * (d(s) / d(tx)) / kTiles);
      const double n2 = std::ceil(d(s) / d(ty) / kTiles);
      const double x = d(p.sequences * tx) * head;
      const double y = d(p.sequences * ty) * head;
      const double i = (2 * x + std::floor(2 * d(tx) * head / heads)) / kMiB;
      const double w = (4 * y + std::floor(2 * d(ty) * head / heads)) / kMiB;
      const double o = 2 * x / kMiB;
      if (i + 3 * w + 2 * o > u.sram) continue;
      const double rope = (std::floor(x / heads) + std::floor(y / heads)) / 1e9 / u.vector;
      const double scores = d(p.sequences) * d(tx) * d(ty);
      const double products = kTiles * n2 * 4 * scores * head / 1e9 / u.gemm;
      const double softmax = 5 * scores / 1e9 / u.vector;
      const double cp = rope + products + softmax;
      const double in = u.load(i) + u.load(w);
      const double compute = n1 * cp;
      const double latency = in + cp - rope + (n1 - 1) * std::max(in, cp) + u.load(o);
      PublishedTime t;
      t.seconds = (latency <= compute ? compute + u.load(o) : latency) * kMs;
      t.compute = compute * kMs;
      t.splits[0] = tx;
      t.splits[1] = ty;
      keep(best, t);
    }
  }
  return best;
}

PublishedTime published(const Machine& machine, const VectorProblem& p) {
  if (p.products > 0) return {};  // a scan, of which it says nothing
  const Units u(machine);
  const double elements = d(p.rows) * d(p.width);
  const double second = std::max(0.0, (p.in_bytes - p.out_bytes) / 2 * elements + p.shared_bytes / 2 * d(p.width));
  const double gflop = p.ops * d(p.rows) * d(p.width) / 1e9;
  PublishedTime best;
  for (const std::int64_t s : splits(p.row_wise ? p.rows : p.rows * p.width, 1)) {
    const double i = mib(elements) / d(s);
    const double w = mib(second) / d(s);
    const bool doubled = s > kTiles && 2 * i + 2 * w <= u.sram;
    const bool single = s > kTiles ? 2 * i + w <= u.sram : i + w <= u.sram;
    if (!doubled && !single) continue;
    const double n1 = std::ceil(d(s) / kTiles);
    const double cp = gflop / d(s) / u.vector;
    const double compute = n1 * cp;
    const double step = doubled ? std::max(u.load(i), cp) : u.load(i);
    PublishedTime t;
    t.seconds = (u.load(i) + u.load(w) + std::max((n1 - 1) * step + cp, compute) + u.load(i)) * kMs;
    t.compute = compute * kMs;
    t.splits[0] = s;
    keep(best, t);
  }
  return best;
}

const Grid* find(std::span<const Grid> grids, int m, int n) {
  for (const Grid& g : grids) {
    if (g.batch == 1 && g.k == 1 && g.m == m && g.n == n) return &g;
  }
  return nullptr;
}

template <typename P, typename Mapping>
Recost timed(const Machine& machine, const P& problem, const Mapping& mapping) {
  Recost result;
  result.sram = sram_of(problem, mapping);
  if (result.sram > machine.sram) return result;
  Schedule schedule;
  lower(machine, problem, mapping, schedule);
  result.closed_form = pipeline_time(machine, schedule).seconds;
  result.simulated = simulated_seconds(machine, schedule);
  return result;
}

Recost recost_of(const Machine& machine, std::span<const Grid> grids, const GemmProblem& given,
                 const PublishedTime& published) {
  const GemmProblem p = published.transposed ? given.transposed() : given;
  const auto [n1, n2, nk] = published.splits;
  GemmMapping map;
  map.grid = find(grids, kTiles, 1);
  map.bm = padded(p.m) / (kTiles * n1);
  // A whole round's columns are under way when k is sliced, else those of one part of the ring.
  map.bn = padded(p.n) / (nk > 1 ? n2 : kTiles * n2);
  map.bk = padded(p.k) / nk;
  map.a = {Feed::direct, 2, true};
  map.b = {Feed::ring, 2, true};
  map.results = Results::staged;
  Recost result = timed(machine, p, map);
  if (result.closed_form || nk == 1) return result;
  const double sums = 2 * d(nk - 1) * d(p.m) * d(p.n) * d(p.batch) * 4;
  result.spilled = (p.least_bytes() + sums) / machine.dram;
  return result;
}

Recost recost_of(const Machine& machine, std::span<const Grid> grids, const AttentionProblem& p,
                 const PublishedTime& published) {
  AttentionMapping map;
  map.grid = find(grids, 1, kTiles);
  map.tx = published.splits[0];
  map.ty = published.splits[1] * kTiles;
  map.feed = Feed::ring;
  map.kv_slots = 2;
  map.q_slots = 1;
  return timed(machine, p, map);
}

Recost recost_of(const Machine& machine, std::span<const Grid> grids, const VectorProblem& given,
                 const PublishedTime& published) {
  const VectorProblem p = given.flat();
  const std::int64_t chunk = std::max<std::int64_t>(1, p.rows / published.splits[0]);
  VectorMapping map;
  map.grid = find(grids, 1, kTiles);
  map.br = std::min(chunk, divide_up(p.rows, kTiles));
  map.bc = p.width;
  map.slots = published.splits[0] > kTiles ? 2 : 1;
  return timed(machine, p, map);
}

}  // namespace

PublishedTime published_time(const Machine& machine, const Problem& problem) {
  return std::visit([&](const auto& p) { return published(machine, p); }, problem);
}

std::optional<Recost> recost(const Machine& machine, std::span<const Grid> grids, const Problem& problem,
                             const PublishedTime& published) {
  if (machine.tiles != kTiles || !published.feasible()) return std::nullopt;
  return std::visit([&](const auto& p) { return recost_of(machine, grids, p, published); }, problem);
}

}  // namespace llmperf::mapper::tile
