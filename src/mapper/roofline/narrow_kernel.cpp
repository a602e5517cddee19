// Libraries that multiply in 8 bits come with few tiles, and do not divide k:
//  * by rows (vLLM's and SGLang's CUTLASS kernels for Hopper): 64 x 64 results to 64 rows, 64 x 128 to 128, else 128 x
//    128. Blocks come in clusters that share an operand, 8 across of the small ones and 2 down of the others, so that
//    their numbers are rounded up;
//  * of the fewest rounds over the cores (DeepGEMM): 64 rows to 64, else 128, and a multiple of 16 columns to 256. Of
//    equal rounds the tile that fills the last one best;
//  * of a cube (CANN's QuantBatchMatmulV3): 128 x 256 results or 256 x 128 (gemm_kernel.cpp), whichever computes less.
// A core works through w tiles of a x b results in turn, and each costs
//
//   max(2 a b K / (share F / cores), K (min(a, m) + min(b, n)) e / cache rate) + K / 128 step + block
//
// K is the depth rounded up to 128. A block gets its operands no faster than its core's way from the cache carries
// them; a step are the scales of blocks, which are multiplied with beside the matrix engine. While a tile is stored the
// next one is computed (persistent kernels), and only the last store is waited for. All that overlaps, as a p-norm,
// with every operand and result crossing the memory bus once.
//
// Where a library tunes narrow products like dense ones (AMD's aiter), they are these (gemm_kernel.cpp), at a share of
// what their tiles reach and with activations that come narrow.
//
// Elsewhere another kernel before it reads the activations, and writes them in the narrow type.
#include "mapper/roofline/narrow_kernel.h"

#include "mapper/roofline/kernel_norm.h"

namespace llmperf::mapper {

using hardware::FormatParameter;
using hardware::ProductTiles;

namespace {

constexpr double kSmallTile = 64;  // side of a tile
constexpr double kLargeTile = 128;
constexpr double kNarrowDepth = 128;  // of one iteration of the main loop

}  // namespace

bool has_small_rows(ProductTiles rule, double m) {
  if (rule == ProductTiles::cube) return false;
  return m <= kSmallTile || (rule == ProductTiles::by_rows && m <= kLargeTile);
}

NarrowTile tile_by_rows(double m, double n, double batch, double cores) {
  constexpr double kAcross = 8;
  constexpr double kDown = 2;
  const double a = has_small_rows(ProductTiles::by_rows, m) ? kSmallTile : kLargeTile;
  const double b = m <= kSmallTile ? kSmallTile : kLargeTile;
  const double down = m <= kSmallTile ? 1 : round_up(rounded_up(m / a), kDown);
  const double across = m <= kSmallTile ? round_up(rounded_up(n / b), kAcross) : rounded_up(n / b);
  return {a, b, rounded_up(down * across * batch / cores)};
}

NarrowTile tile_of_fewest_rounds(double m, double n, double batch, double cores) {
  constexpr double kColumns = 16;
  constexpr double kMostColumns = 256;
  NarrowTile best{has_small_rows(ProductTiles::fewest_rounds, m) ? kSmallTile : kLargeTile, 0, 0};
  const double down = rounded_up(m / best.rows) * batch;
  double last = 0;  // blocks in the last round
  for (double columns = kColumns; columns <= kMostColumns; columns += kColumns) {
    const double blocks = down * rounded_up(n / columns);
    const double rounds = rounded_up(blocks / cores);
    const double filled = blocks - (rounds - 1) * cores;
    const bool fewer = best.columns == 0 || rounds < best.rounds;
    if (!fewer && (rounds > best.rounds || filled <= last)) continue;
    best.columns = columns;
    best.rounds = rounds;
    last = filled;
  }
  return best;
}

NarrowTile tile_of_cube(const GemmCall& g, double cores) {
  NarrowTile best{};
  for (const CubeTile& tile : kCubeTiles) {
    const NarrowTile t{tile.rows_of(g.m), tile.columns, rounded_up(tile.count(g) / cores)};
    const bool less = best.rounds == 0 || t.rounds * t.rows * t.columns < best.rounds * best.rows * best.columns;
    if (less) best = t;
  }
  return best;
}

ProductTime narrow_time(const KernelDevice& d, const hardware::ParameterValues& v, const hardware::KernelChoices& c,
                        FormatKernel format, const GemmCall& g) {
  const ProductTiles rule = c.product_tiles[static_cast<std::size_t>(format)];
  GemmCall narrow = g;
  narrow.first_bytes = g.m * g.k * g.batch * g.narrow_bytes;
  const auto of = [&](FormatParameter p) { return v[index(format, p)]; };
  if (rule == ProductTiles::menu) {
    KernelDevice scaled = d;
    scaled.matrix *= of(FormatParameter::share);
    narrow.depth_seconds = of(FormatParameter::step) / kNarrowDepth;
    return gemm_time(scaled, v, c, narrow);
  }
  const double launch = of(FormatParameter::launch);
  if (!(g.m > 0 && g.n > 0 && g.k > 0 && g.batch > 0)) return {launch, 0, 0, 0, launch};

  const NarrowTile tile = rule == ProductTiles::by_rows ? tile_by_rows(g.m, g.n, g.batch, d.cores)
                          : rule == ProductTiles::cube  ? tile_of_cube(g, d.cores)
                                                        : tile_of_fewest_rounds(g.m, g.n, g.batch, d.cores);
  const double depth = round_up(g.k, kNarrowDepth);
  const double rows = std::min(tile.rows, g.m);
  const double columns = std::min(tile.columns, g.n);
  const double share = of(has_small_rows(rule, g.m) ? FormatParameter::small_share : FormatParameter::share);
  const double multiply = 2 * tile.rows * tile.columns * depth * d.cores / (d.matrix * share);
  const double feed = depth * (rows + columns) * g.narrow_bytes / of(FormatParameter::cache_rate);
  const double besides = of(FormatParameter::block) + depth / kNarrowDepth * of(FormatParameter::step);
  const double result = g.result_bytes / (g.m * g.n * g.batch);
  const double stored = rows * columns * result / of(FormatParameter::store_rate);
  const double compute = tile.rounds * (std::max(multiply, feed) + besides) + stored;
  const double bytes = narrow.first_bytes + g.second_bytes + g.result_bytes;
  const double memory = bytes / (d.bandwidth * of(FormatParameter::memory_share));
  const double quantise = (g.first_bytes + narrow.first_bytes) / (d.bandwidth * of(FormatParameter::quantise_share));
  return {launch + overlapped(compute, memory, of(FormatParameter::overlap)) + quantise, compute, memory + quantise,
          feed > multiply ? tile.rounds * feed : 0, launch};
}

}  // namespace llmperf::mapper
