// A library computes [m, n] in tiles of a x b results, each by one thread block on one core, and has tiles of several
// sizes to choose from (CUTLASS; NVIDIA, "Matrix Multiplication Background User's Guide": tile and wave quantisation).
// A core that gets w tiles, one after the other, is busy for
//
//   w (K 2 a b / (share F / cores) + a b e / store),     w = ceil(tiles / cores)
//
// with F the matrix peak, e the bytes of a result and K the depth, rounded up to the 32 that one iteration handles.
// Small tiles reach a smaller share of the peak in this main loop; while a core writes results it computes nothing.
// Meanwhile every operand and result crosses the memory bus once, and on the way from the cache to the cores the first
// operand passes once per column of tiles and the second once per row of tiles, as much of it as is there:
//
//   max(bytes / (share B), k (m ceil(n / b) + n ceil(m / a)) e / (cores rate))
//
// The two overlap as a p-norm. Where tiles are fewer than cores, k can be divided by s: then s tiles work on one
// result, in 32-bit floating point, and another kernel reads and writes these parts (8 bytes each) once. The library
// takes what is fastest. A batch of products is that many times the tiles.
//
// What the kernel before wrote the cache still holds, and what this one writes is kept for the next, as far as there is
// room: activations up to half of the cache cross no memory bus, those that fill it all do. They pass at a share of
// their own. Weights come from memory in any case.
//
// CANN's products (MatMulV2, MatMulV3) on Ascend take tiles of 128 x 256 results, or 256 x 128: what fills the
// accumulators of a cube core, 128 KiB. A cube multiplies 16 rows at a time, so that a tile of few rows is done sooner.
// Up to 128 rows, the one row of tiles multiplies while weights stream in. Of several rows of tiles the first waits for
// the weights, and the others find them in the cache:
//
//   one row of tiles:  p-norm( w (K 2 a b / (share F / cores)), all bytes )
//   several:           bytes of weights + p-norm( w (K 2 a b / (share F / cores)), bytes of activations )
//
// Weights come from memory, unless a measurement kept them in the cache (copies): then at a share of their own.
//
// Without a menu of tiles (other NPUs' libraries, other vendors' libraries) compute is FLOPs / (share F), rows rounded
// up to what the library computes in any case.
#include "mapper/roofline/gemm_kernel.h"

#include <array>
#include <limits>

#include "mapper/roofline/kernel_norm.h"

namespace llmperf::mapper {

using hardware::Parameter;

namespace {

struct Tile {
  double rows;
  double columns;
  Parameter share;
};
using enum Parameter;
constexpr std::array<Tile, 10> kTiles = {{{256, 128, gemm_share_256},
                                          {128, 256, gemm_share_256},
                                          {128, 128, gemm_share_128},
                                          {256, 64, gemm_share_128},
                                          {64, 256, gemm_share_128},
                                          {128, 64, gemm_share_64},
                                          {64, 128, gemm_share_64},
                                          {64, 64, gemm_share_64},
                                          {32, 64, gemm_share_16},
                                          {16, 64, gemm_share_16}}};
constexpr std::array<double, 8> kSplits = {1, 2, 3, 4, 6, 8, 16, 32};
constexpr double kDepth = 32;     // of one iteration of the main loop
constexpr double kPartBytes = 8;  // a partial sum, written and read
constexpr double kSmallRows = 64;

using PerTile = std::array<double, kTiles.size()>;

// A tile size and a number of parts.
struct Choice {
  double joining;
  double compute;
  double memory;
  double bound;  // it takes no less than this
};
constexpr double kNever = std::numeric_limits<double>::infinity();

ProductTime flat_time(const KernelDevice& d, const hardware::ParameterValues& v, const hardware::KernelChoices& c,
                      const GemmCall& g, double memory) {
  double rows = round_up(g.m, static_cast<double>(c.small_granule));
  if (rows > kSmallRows) rows = round_up(rows, static_cast<double>(c.row_granule));
  const double compute = 2 * rows * g.n * g.k * g.batch / (d.matrix * v[index(gemm_share)]);
  return {Norm(v[index(gemm_overlap)])(compute, memory), compute, memory, 0};
}

// Operands' times: of the second one (weights), and of everything else.
struct Passing {
  double weights;
  double activations;
  double all() const { return weights + activations; }
};

ProductTime cube_time(const KernelDevice& d, const hardware::ParameterValues& v, const GemmCall& g, const Passing& p) {
  const Norm norm(v[index(gemm_overlap)]);
  const bool several = g.m > kCubeRows;
  const double first = several ? p.weights : 0;
  const double beside = several ? p.activations : p.all();
  const double part = g.m * g.n * g.batch * kPartBytes / (d.bandwidth * v[index(gemm_split_share)]);
  const double step = 2 * d.cores / (d.matrix * v[index(gemm_share)]);
  ProductTime best{kNever, kNever, p.all(), 0};
  for (const double parts : kSplits) {
    if (parts > 1 && g.k < kDepth * parts) break;
    const double joining = parts > 1 ? v[index(gemm_split_launch)] + parts * part : 0;
    if (joining + beside >= best.seconds) break;
    const double depth = round_up(g.k / parts, kDepth);
    double compute = kNever;
    for (const CubeTile& tile : kCubeTiles) {
      const double rounds = rounded_up(tile.count(g) * parts / d.cores);
      compute = std::min(compute, rounds * tile.rows_of(g.m) * tile.columns * depth * step);
    }
    const double least = first + joining + norm.at_least(compute, beside);
    const double seconds = least < best.seconds ? first + joining + norm(compute, beside) : kNever;
    if (seconds < best.seconds) best = {seconds, compute, p.all(), 0};
  }
  return best;
}

ProductTime tiled_time(const KernelDevice& d, const hardware::ParameterValues& v, const GemmCall& g, double memory) {
  const Norm norm(v[index(gemm_overlap)]);
  const double results = g.m * g.n * g.batch;
  const double element = g.first_bytes / (g.m * g.k * g.batch);
  const double store = g.result_bytes / results / v[index(gemm_store_rate)];
  const double cached = element / (v[index(gemm_cache_rate)] * d.cores);
  const double steps = 2 * d.cores / d.matrix;
  PerTile tiles;          // per core
  PerTile step;           // s of a core per unit of depth
  PerTile stored;         // s of a core
  PerTile waiting;        // s for memory or cache
  double ideal = kNever;  // s of computing, were every round of tiles full
  for (std::size_t i = 0; i < kTiles.size(); ++i) {
    const Tile& t = kTiles[i];
    const double down = rounded_up(g.m / t.rows);
    const double across = rounded_up(g.n / t.columns);
    tiles[i] = down * across * g.batch / d.cores;
    step[i] = steps * t.rows * t.columns / v[index(t.share)] + g.depth_seconds;
    stored[i] = std::min(g.m, t.rows) * std::min(g.n, t.columns) * store;
    waiting[i] = std::max(memory, (across * g.m + down * g.n) * g.batch * g.k * cached);
    ideal = std::min(ideal, tiles[i] * (g.k * step[i] + stored[i]));
  }

  // Norms cost powers, so that only choices are kept which may be the fastest, and the most likely one is tried first.
  std::array<Choice, kTiles.size() * kSplits.size()> choices;
  std::size_t kept = 0;
  std::size_t likely = 0;
  double limit = kNever;  // the best is faster than this: no norm exceeds the sum
  const auto keep = [&](double joining, double computing, double wait) {
    const double bound = joining + norm.at_least(computing, wait);
    if (bound > limit) return;
    limit = std::min(limit, joining + computing + wait);
    choices[kept] = {joining, computing, wait, bound};
    if (bound < choices[likely].bound) likely = kept;
    ++kept;
  };
  const double part = results * kPartBytes / (d.bandwidth * v[index(gemm_split_share)]);
  for (const double parts : kSplits) {
    const double joining = parts > 1 ? v[index(gemm_split_launch)] + parts * part : 0;
    if (parts > 1 && (g.k < kDepth * parts || joining + norm.at_least(ideal, memory) > limit)) break;
    const double depth = round_up(g.k / parts, kDepth);
    PerTile compute;
    for (std::size_t i = 0; i < kTiles.size(); ++i) {
      compute[i] = rounded_up(tiles[i] * parts) * (depth * step[i] + stored[i]);
    }
    // Of all tiles that wait for memory the same time, the fastest to compute is the fastest.
    double least = kNever;
    for (std::size_t i = 0; i < kTiles.size(); ++i) {
      least = std::min(least, waiting[i] > memory ? kNever : compute[i]);
    }
    if (least < kNever) keep(joining, least, memory);
    for (std::size_t i = 0; i < kTiles.size(); ++i) {
      if (waiting[i] > memory && compute[i] < least) keep(joining, compute[i], waiting[i]);
    }
  }
  if (kept == 0) return {kNever, kNever, memory, 0};  // no matrix engine
  const auto seconds = [&](const Choice& c) { return c.joining + norm(c.compute, c.memory); };
  std::size_t chosen = likely;
  double best = seconds(choices[likely]);
  for (std::size_t i = 0; i < kept; ++i) {
    if (i == likely || choices[i].bound >= best) continue;
    const double other = seconds(choices[i]);
    if (other >= best) continue;
    best = other;
    chosen = i;
  }
  const Choice& c = choices[chosen];
  return {best, c.compute, memory, c.memory > memory ? c.memory : 0};
}

}  // namespace

ProductTime gemm_time(const KernelDevice& d, const hardware::ParameterValues& v, const hardware::KernelChoices& c,
                      const GemmCall& g) {
  const double launch = v[index(gemm_launch)];
  if (!(g.m > 0 && g.n > 0 && g.k > 0 && g.batch > 0)) return {launch, 0, 0, 0, launch};
  const double activations = g.first_bytes + g.result_bytes;
  const double cached = c.cached_activations ? activations * d.held(activations) : 0;
  const double resident = g.copies > 0 ? g.second_bytes * d.resident(g.copies * g.second_bytes) : 0;
  ProductTime t;
  if (c.cube_tiles) {
    t = cube_time(
        d, v, g,
        {((g.second_bytes - resident) / v[index(gemm_memory_share)] + resident / v[index(gemm_resident_share)]) /
             d.bandwidth,
         ((activations - cached) / v[index(gemm_memory_share)] + cached / v[index(gemm_cached_share)]) / d.bandwidth});
  } else {
    const double memory = ((activations + g.second_bytes - cached - resident) / v[index(gemm_memory_share)] +
                           cached / v[index(gemm_cached_share)] + resident / v[index(gemm_resident_share)]) /
                          d.bandwidth;
    t = c.tile_menu ? tiled_time(d, v, g, memory) : flat_time(d, v, c, g, memory);
  }
  t.seconds += launch;
  t.launch = launch;
  return t;
}

double convolution_seconds(const KernelDevice& d, const hardware::ParameterValues& v, double flops, double bytes) {
  const double memory = bytes / (d.bandwidth * v[index(gemm_memory_share)]);
  const double compute = flops / (d.matrix * v[index(convolution_share)]);
  return v[index(gemm_launch)] + overlapped(compute, memory, v[index(gemm_overlap)]);
}

}  // namespace llmperf::mapper
