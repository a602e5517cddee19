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
#include <cmath>
#include <limits>

#include "mapper/roofline/kernels.h"

namespace llmperf::mapper {

using hardware::ExpertParameter;
using hardware::FormatParameter;
using hardware::Parameter;
using hardware::ProductTiles;
using enum Parameter;

namespace {

struct Tile {
  double rows;
  double columns;
  Parameter share;
};
constexpr Tile kTiles[] = {{256, 128, gemm_share_256}, {128, 256, gemm_share_256}, {128, 128, gemm_share_128},
                           {256, 64, gemm_share_128},  {64, 256, gemm_share_128},  {128, 64, gemm_share_64},
                           {64, 128, gemm_share_64},   {64, 64, gemm_share_64},    {32, 64, gemm_share_16},
                           {16, 64, gemm_share_16}};
constexpr std::size_t kTileSizes = std::size(kTiles);
constexpr std::array<double, 8> kSplits = {1, 2, 3, 4, 6, 8, 16, 32};
constexpr double kDepth = 32;     // of one iteration of the main loop
constexpr double kPartBytes = 8;  // a partial sum, written and read
constexpr double kSmallRows = 64;

using PerTile = std::array<double, kTileSizes>;

// A tile size and a number of parts.
struct Choice {
  double joining;
  double compute;
  double memory;
  double bound;  // it takes no less than this
};
constexpr double kNever = std::numeric_limits<double>::infinity();

ProductTime flat_time(const KernelDevice& d, const ParameterValues& v, const KernelChoices& c, const GemmCall& g,
                      double memory) {
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

ProductTime cube_time(const KernelDevice& d, const ParameterValues& v, const GemmCall& g, const Passing& p) {
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

ProductTime tiled_time(const KernelDevice& d, const ParameterValues& v, const GemmCall& g, double memory) {
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
  for (std::size_t i = 0; i < kTileSizes; ++i) {
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
  std::array<Choice, kTileSizes * kSplits.size()> choices;
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
    for (std::size_t i = 0; i < kTileSizes; ++i) {
      compute[i] = rounded_up(tiles[i] * parts) * (depth * step[i] + stored[i]);
    }
    // Of all tiles that wait for memory the same time, the fastest to compute is the fastest.
    double least = kNever;
    for (std::size_t i = 0; i < kTileSizes; ++i) {
      least = std::min(least, waiting[i] > memory ? kNever : compute[i]);
    }
    if (least < kNever) keep(joining, least, memory);
    for (std::size_t i = 0; i < kTileSizes; ++i) {
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

ProductTime gemm_time(const KernelDevice& d, const ParameterValues& v, const KernelChoices& c, const GemmCall& g) {
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

double convolution_seconds(const KernelDevice& d, const ParameterValues& v, double flops, double bytes) {
  const double memory = bytes / (d.bandwidth * v[index(gemm_memory_share)]);
  const double compute = flops / (d.matrix * v[index(convolution_share)]);
  return v[index(gemm_launch)] + overlapped(compute, memory, v[index(gemm_overlap)]);
}

// ---- Quantised weights
//
// Ways to multiply with weights that are stored in fewer bits (Marlin, arXiv:2408.11743; AWQ, arXiv:2306.00978;
// ggml-cuda's mmvq and mmq kernels):
//  * a kernel that unpacks on the way: the p-norm of FLOPs / (share F) and bytes / (share B), weights as they are
//  packed;
//  * beside it, where a library has one, a kernel for few rows with a share and an exponent of its own;
//  * Marlin deals the work out in stripes across columns; what stripes share is added up through a workspace, which
//  costs
//    every product as much;
//  * from some number of rows on, a kernel that writes the weights in 16 bits and then a dense product. Where the cache
//    can hold that copy, only part of it crosses the memory bus, each time.
// Which one runs is the library's choice and known (KernelChoices); shares are of the 16-bit peak, and more than 1
// where a kernel multiplies in 8 bits.

namespace {

constexpr double kWideBytes = 2;
constexpr double kVectorRows = 8;  // up to these no kernel rounds the rows up
// A copy that is a larger part of the cache than this is partly evicted before it is read: everything else in the step
// passes through the same cache.
constexpr double kCacheKept = 0.4;

// The part of a copy of the weights that crosses the memory bus.
double spilled(const KernelDevice& d, double cached, double bytes) {
  if (d.cache <= 0) return 1;
  const double beyond = std::clamp((bytes / d.cache - kCacheKept) / (1 - kCacheKept), 0.0, 1.0);
  return cached + (1 - cached) * beyond;
}

ProductTime unpacked_time(const KernelDevice& d, const ParameterValues& v, const KernelChoices& c, const GemmCall& g) {
  const double matrix = kWideBytes * g.n * g.k;
  const double copy = matrix * g.batch * spilled(d, v[index(dequantise_cached)], matrix);
  GemmCall dense = g;
  dense.second_bytes = copy;
  const double unpacking = (g.second_bytes + copy) / (d.bandwidth * v[index(dequantise_share)]);
  KernelDevice wide = d;
  wide.matrix = d.unpacked;
  ProductTime t = gemm_time(wide, v, c, dense);
  t.seconds += v[index(gemm_launch)] + unpacking;
  t.memory += unpacking;
  return t;
}

// AWQ's own kernel deals blocks of 16 x 128 results to the cores, and on the mean the last of a core's turns is half
// idle. Marlin divides the work in equal stripes whatever the shape, and so leaves no core idle.
double idle_share(const KernelDevice& d, FormatKernel format, double rows, const GemmCall& g) {
  constexpr double kBlockRows = 16;
  constexpr double kBlockColumns = 128;
  if (format != FormatKernel::awq) return 0;
  return 0.5 * d.cores / (std::ceil(rows / kBlockRows) * std::ceil(g.n / kBlockColumns) * g.batch);
}

}  // namespace

ProductTime weight_time(const KernelDevice& d, const ParameterValues& v, const KernelChoices& c, FormatKernel format,
                        const GemmCall& g) {
  const auto unpack_rows = static_cast<double>(c.dequantise_rows[static_cast<std::size_t>(format)]);
  if (unpack_rows > 0 && g.m >= unpack_rows) return unpacked_time(d, v, c, g);

  const bool has_small = c.small_rows > 0;
  const bool small = has_small && g.m <= static_cast<double>(c.small_rows);
  // ExLlama's, which loads and multiplies in turns, deals rows to blocks of 8, the last of which takes what is left.
  const bool serial = c.serial[static_cast<std::size_t>(format)];
  const double rows = serial || g.m <= kVectorRows ? g.m : round_up(g.m, static_cast<double>(c.format_granule));
  const double share = v[index(format, small ? FormatParameter::small_share : FormatParameter::share)];
  const double compute = 2 * rows * g.n * g.k * g.batch / (d.matrix * share) * (1 + idle_share(d, format, rows, g));
  const double bytes = g.second_bytes + g.first_bytes + g.result_bytes;
  const double memory = bytes / (d.bandwidth * v[index(format, FormatParameter::memory_share)]);
  const double overlap = serial ? 1 : v[index(has_small && !small ? format_small_overlap : format_overlap)];
  const double launch = v[index(gemm_launch)] + (in_stripes(format) ? v[index(format, FormatParameter::reduce)] : 0);
  return {launch + overlapped(compute, memory, overlap), compute, memory, 0, launch};
}

// ---- Narrow operands
//
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
// what their tiles reach and with activations that come narrow, or are made so before (TensorRT-LLM's cuBLAS).
//
// Elsewhere another kernel before it reads the activations, and writes them in the narrow type.

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

ProductTime narrow_time(const KernelDevice& d, const ParameterValues& v, const KernelChoices& c, FormatKernel format,
                        const GemmCall& g) {
  const ProductTiles rule = c.product_tiles[static_cast<std::size_t>(format)];
  GemmCall narrow = g;
  narrow.first_bytes = g.m * g.k * g.batch * g.narrow_bytes;
  const auto of = [&](FormatParameter p) { return v[index(format, p)]; };
  const bool fused = c.quantising_is_fused(format, g.alone);
  // Outside of its engine a scale for each row takes a core some time, however short the row.
  const double quantise =
      fused ? 0
            : std::max((g.first_bytes + narrow.first_bytes) / (d.bandwidth * of(FormatParameter::quantise_share)),
                       (g.alone ? g.m * g.batch / d.cores : 0) * of(FormatParameter::quantise_row));
  if (rule == ProductTiles::menu || rule == ProductTiles::quantised_menu) {
    KernelDevice scaled = d;
    scaled.matrix *= of(FormatParameter::share);
    narrow.depth_seconds = of(FormatParameter::step) / kNarrowDepth;
    ProductTime t = gemm_time(scaled, v, c, narrow);
    if (rule == ProductTiles::menu || fused) return t;
    t.seconds += of(FormatParameter::launch) + quantise;
    t.launch += of(FormatParameter::launch);
    t.memory += quantise;
    return t;
  }
  // Of two kernels, the second of which takes as long to start as a dense product.
  const double launch =
      fused ? std::min(v[index(gemm_launch)], of(FormatParameter::launch)) : of(FormatParameter::launch);
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
  return {launch + overlapped(compute, memory, of(FormatParameter::overlap)) + quantise, compute, memory + quantise,
          feed > multiply ? tile.rounds * feed : 0, launch};
}

// ---- Routed experts
//
// Experts get different numbers of rows, and one kernel multiplies all of them (grouped products: Triton's fused_moe,
// CUTLASS). Rows of an expert are cut into tiles of b = 16, 32, 64 or 128, the last of which is not full, columns into
// tiles of 128. With T_b tiles of rows over all experts (graph::ExpertLoad) a core works through
//
//   w = ceil(T_b ceil(N / 128) / cores)   tiles of   tau_b = 2 b 128 K / (share_b F / cores) + start,
//
// and the library takes the b for which w tau_b is least. Meanwhile the weights of every expert that gets rows are read
// once, the rows come in, and results go out:
//
//   launch + p-norm( min over b of w tau_b, (weights of active experts + rows) / (share B) )
//
// Where rows of weights are no multiple of 16 elements (a width of 1856 over eight ranks) the compiler cannot load them
// in vectors, and both take a multiple of that time. Weights of 4 bits are stored in blocks that fill up such rows.
//
// Around the two products the stack routes, sorts, copies rows, activates and adds up: half a dozen kernels, whose
// launches are in those of the products, for every backend has others, and whose traffic streams at a share of its own
// (efficiency.cpp).

bool is_aligned(double elements, std::optional<FormatKernel> format) {
  constexpr double kVector = 16;
  const bool filled = format == FormatKernel::mxfp4 || format == FormatKernel::nvfp4 || format == FormatKernel::gptq;
  return filled || std::fmod(elements, kVector) == 0;
}

ProductTime expert_time(const KernelDevice& d, const ParameterValues& v, std::optional<FormatKernel> format,
                        const GemmCall& g, const std::array<double, graph::kTileRows.size()>& row_tiles) {
  constexpr double kColumns = 128;
  const auto of = [&](ExpertParameter p, std::size_t i = 0) { return v[index(format, p) + i]; };
  const double across = rounded_up(g.n / kColumns);
  double compute = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < row_tiles.size(); ++i) {
    const double multiply =
        2 * graph::kTileRows[i] * kColumns * g.k * d.cores / (d.matrix * of(ExpertParameter::share, i));
    compute = std::min(compute, rounded_up(row_tiles[i] * across / d.cores) * (multiply + of(ExpertParameter::start)));
  }
  const double rows = g.narrow_bytes > 0 ? g.m * g.k * g.narrow_bytes : g.first_bytes;
  double memory = (rows + g.second_bytes + g.result_bytes) / (d.bandwidth * of(ExpertParameter::memory_share));
  if (!is_aligned(g.k, format)) {
    const double share = v[index(experts_unaligned_share)];
    compute /= share;
    memory /= share;
  }
  const double launch = of(ExpertParameter::launch);
  return {launch + overlapped(compute, memory, of(ExpertParameter::overlap)), compute, memory, 0, launch};
}

}  // namespace llmperf::mapper
