#include "mapper/tile/published_choice.h"

#include <algorithm>

#include "base/integer.h"
#include "mapper/tile/brief_simulation.h"
#include "mapper/tile/pipeline_time.h"

namespace llmperf::mapper::tile {
namespace {

constexpr int kTiles = 16;
constexpr std::int64_t kPad = 1024;

double d(std::int64_t x) { return static_cast<double>(x); }
std::int64_t padded(std::int64_t x) { return divide_up(x, kPad) * kPad; }

PublishedTime published(const Machine& machine, const GemmProblem& p) {
  PublishedTime t = published_gemm(machine, 1, p.m, p.n, p.k, p.finish_ops * d(p.m) * d(p.n));
  t.seconds *= d(p.batch);
  t.compute *= d(p.batch);
  return t;
}
PublishedTime published(const Machine& machine, const AttentionProblem& p) {
  if (p.queries != p.keys) return {};
  return published_attention(machine, p.sequences, p.queries, p.qk_dim, p.kv_heads * p.group);
}
PublishedTime published(const Machine& machine, const VectorProblem& p) {
  const double elements = d(p.rows) * d(p.width);
  const double second = (p.in_bytes - p.out_bytes) / 2 * elements + p.shared_bytes / 2 * d(p.width);
  return published_vector(machine, 1, p.rows, p.width, p.ops, std::max(0.0, second), p.row_wise);
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
