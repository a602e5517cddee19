// Times of kernels, a chapter of formulas for each family: products (gemm_kernel.cpp), attention
// (attention_kernel.cpp), ggml's (ggml_kernel.cpp) and collectives (collective_kernel.cpp) open with the derivations.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "base/format_kernel.h"
#include "base/maths.h"
#include "cost/collective.h"
#include "graph/expert_load.h"
#include "hardware/runtime_profile.h"

namespace llmperf::mapper {

using hardware::KernelChoices;
using hardware::ParameterValues;

// What kernel formulas know of a device, in SI units.
struct KernelDevice {
  double matrix = 0;     // FLOP/s, of the op's type
  double unpacked = 0;   // FLOP/s of products of weights that were unpacked to 16 bits
  double bandwidth = 0;  // B/s, of device memory
  double cache = 0;      // B, shared by all cores; 0: none known
  double cores = 1;
  double integer = 0;  // op/s of 8-bit products, on whatever units are the fastest
  double clock = 0;    // Hz
  double power = 0;    // W that the device may draw; 0: not known

  // Of `bytes` that a measurement reads over and over and nothing else in between: all while they fill three quarters
  // of it, none where they are a quarter more than it has room for. Lines are not placed evenly, and where they are
  // evicted in the order of their use, none of a sweep that is longer stays until it comes round again.
  double resident(double bytes) const { return cache > 0 ? std::clamp(2.5 - 2 * bytes / cache, 0.0, 1.0) : 0; }
  // The share of `bytes` of activations that the cache holds from the kernel before or for the one after: all of them
  // while they fill less than half of it, none where they are more than it has room for.
  double held(double bytes) const { return cache > 0 ? std::clamp(2 - 2 * bytes / cache, 0.0, 1.0) : 0; }
};

// ---- How two things that a kernel does at the same time add up

// The p-norm of two times: their sum for p = 1 (one after the other), their maximum for p = infinity (perfect overlap).
inline double overlapped(double a, double b, double p) {
  const double longer = std::max(a, b);
  const double shorter = std::min(a, b);
  if (p == 1 || shorter <= 0) return a + b;
  return longer * maths::pow(1 + maths::pow(shorter / longer, p), 1 / p);
}

// The same for many pairs of times and one exponent, with a cheap lower bound: the norm is no less than the longer time
// nor, since means grow with their exponent, than 2^(1/p) times the mean of the two.
class Norm {
 public:
  explicit Norm(double p) : p_(p), mean_(maths::exp2(1 / p - 1)) {}
  double operator()(double a, double b) const { return overlapped(a, b, p_); }
  double at_least(double a, double b) const { return std::max({a, b, mean_ * (a + b)}); }

 private:
  double p_;
  double mean_;
};

// Of a number from 0 to 2^51, by adding 2^52, beside which a double has no bits left for a fraction. std::ceil is a
// library call on x86-64 without extensions, and a product needs a hundred of them.
inline double rounded_up(double x) {
  constexpr double kNoFraction = 4503599627370496.0;
  const double nearest = (x + kNoFraction) - kNoFraction;
  return nearest + (nearest < x ? 1.0 : 0.0);
}
inline double round_up(double x, double unit) { return rounded_up(x / unit) * unit; }

// ---- Products

// [m, k] x [k, n], `batch` times, with the bytes that each of these reads and writes.
struct GemmCall {
  double m = 0;
  double n = 0;
  double k = 0;
  double batch = 1;
  double first_bytes = 0;  // of all batches together
  double second_bytes = 0;
  double result_bytes = 0;
  double depth_seconds = 0;  // of a core per unit of k and tile, beside the matrix engine: scales of blocks
  double copies = 0;         // sets of weights that take turns in a measurement; 0: they come from memory
  double narrow_bytes = 0;   // of an element of both operands where a narrow product takes them
  bool alone = false;        // graph::Gemm::alone
};

// A tile of results on a cube of CANN's products, of which 16 rows are multiplied at a time.
inline constexpr double kCubeRows = 128;
struct CubeTile {
  double rows;
  double columns;
  double count(const GemmCall& g) const { return rounded_up(g.m / rows) * rounded_up(g.n / columns) * g.batch; }
  double rows_of(double m) const { return std::min(rows, round_up(m, 16)); }
};
inline constexpr std::array<CubeTile, 2> kCubeTiles = {{{kCubeRows, 256}, {256, kCubeRows}}};

// What a product takes, launch included, and how long the kernel that runs needs of each thing that it does at the same
// time as the others.
struct ProductTime {
  double seconds = 0;
  double compute = 0;  // s of the cores, with rows, rounds and parts that are not full
  double memory = 0;   // s of the memory bus
  double feed = 0;     // s until the cores have got their operands from the cache; 0 where memory is what they wait for
  double launch = 0;   // s, of `seconds`
};

// A dense product; of narrow operands where `call` has their bytes, with device.matrix their rate.
ProductTime gemm_time(const KernelDevice& device, const ParameterValues& values, const KernelChoices& choices,
                      const GemmCall& call);

// Seconds of a convolution of `flops` operations that moves `bytes`: one share of the peak, beside the memory's.
double convolution_seconds(const KernelDevice& device, const ParameterValues& values, double flops, double bytes);

// ---- Products with quantised weights

// Formats whose numbers are those of Marlin, which stacks multiply AWQ's weights with as well (FormatKernels).
constexpr bool in_stripes(FormatKernel format) { return format == FormatKernel::gptq; }

// A product whose second operand is stored in a format of its own; call.second_bytes: as stored. `device.matrix` is the
// rate that dense products of the 16-bit activations have.
ProductTime weight_time(const KernelDevice& device, const ParameterValues& values, const KernelChoices& choices,
                        FormatKernel format, const GemmCall& call);

// ---- Products of two narrow operands (fp8, int8), by kernels with few tiles

// The product, launch included, and before it the kernel that makes activations narrow. `device.matrix` is the rate of
// the narrow type; call.first_bytes: of the activations before they are made narrow.
ProductTime narrow_time(const KernelDevice& device, const ParameterValues& values, const KernelChoices& choices,
                        FormatKernel format, const GemmCall& call);

// Rows and columns of the results that a block computes, and the rounds of blocks over the cores.
struct NarrowTile {
  double rows = 0;
  double columns = 0;
  double rounds = 0;
};
// Whether the tile of a rule has 64 rows, else 128; those of a cube are all of one share.
bool has_small_rows(hardware::ProductTiles rule, double m);
// By the number of rows, as CUTLASS' kernels in vLLM and SGLang; and the tile of the fewest rounds, as DeepGEMM.
NarrowTile tile_by_rows(double m, double n, double batch, double cores);
NarrowTile tile_of_fewest_rounds(double m, double n, double batch, double cores);
NarrowTile tile_of_cube(const GemmCall& call, double cores);

// ---- Routed experts of a layer by grouped kernels

// Rows of all experts, m of them, times the matrices of those that get any: `call` as of one product of all rows.
// `format`: of weights in fewer than 16 bits; device.matrix is the rate of the type that is multiplied in.
ProductTime expert_time(const KernelDevice& device, const ParameterValues& values, std::optional<FormatKernel> format,
                        const GemmCall& call, const std::array<double, graph::kTileRows.size()>& row_tiles);
// Whether rows of weights of that many elements are loaded in whole vectors.
bool is_aligned(double elements, std::optional<FormatKernel> format);

// ---- Fused attention

struct AttentionCall {
  double sequences = 1;
  double queries = 1;  // per sequence, after `context` cached tokens
  double context = 0;
  double longest = 0;   // context of the longest sequence, where `context` is the mean of unequal ones
  double window = 0;    // keys that a query sees at most; 0: all
  double all_keys = 0;  // > 0: every query sees that many, and nothing is masked
  double heads = 1;
  double kv_heads = 1;
  double qk_dim = 128;
  double v_dim = 128;
  bool shared_kv = false;      // values are the first v_dim elements of the keys
  double element_bytes = 2;    // of queries and results
  double key_value_bytes = 2;  // of cached elements
  double copies = 0;           // caches that take turns in a measurement; 0: they come from memory

  double keys() const { return all_keys > 0 ? all_keys : context + queries; }
  double longest_keys() const { return longest > context && all_keys <= 0 ? longest + queries : keys(); }
  bool cuts() const { return window > 0 && window < keys(); }      // some keys are outside of the window
  bool narrow() const { return key_value_bytes < 2; }              // products are of 8 bits
  bool widens() const { return key_value_bytes < element_bytes; }  // or queries are made as narrow as the cache
  double group() const { return heads / kv_heads; }
  bool by_eights() const { return std::fmod(group(), 8) == 0; }
  bool small_heads() const { return qk_dim <= 64; }  // of which ggml's kernels hold more at a time
  double key_bytes() const { return (qk_dim + (shared_kv ? 0 : v_dim)) * key_value_bytes; }  // with its value, per head
};

// Seconds of attention over new tokens of prompts (causal, or without a mask), and of one new token per sequence.
double prefill_seconds(const KernelDevice& device, const ParameterValues& values, const KernelChoices& choices,
                       const AttentionCall& call);
double decode_seconds(const KernelDevice& device, const ParameterValues& values, const KernelChoices& choices,
                      const AttentionCall& call);
// The same where the profile's kernels are not FlashAttention-2's, and of new tokens on latents (shared_kv).
double flash3_prefill_seconds(const KernelDevice& device, const ParameterValues& values, const KernelChoices& choices,
                              const AttentionCall& call);
double flash3_decode_seconds(const KernelDevice& device, const ParameterValues& values, const KernelChoices& choices,
                             const AttentionCall& call);
double xqa_decode_seconds(const KernelDevice& device, const ParameterValues& values, const AttentionCall& call);
// Whether XQA gives every query head a block of its own, and the launch of the kernel that runs.
bool has_block_per_head(const AttentionCall& call);
hardware::Parameter xqa_launch(const AttentionCall& call);
// The case by which Triton's kernels run it, or null, and their times.
const hardware::AttentionCase* triton_case(const KernelChoices& choices, const AttentionCall& call, bool prompts);
double triton_prefill_seconds(const KernelDevice& device, const ParameterValues& values, const AttentionCall& call,
                              bool skips);
double triton_decode_seconds(const KernelDevice& device, const ParameterValues& values, const AttentionCall& call);
double latent_seconds(const KernelDevice& device, const ParameterValues& values, const AttentionCall& call);
// Writing the keys and values of `tokens` tokens to the cache, `width` elements of each, without a launch; bytes: read
// and written together.
double append_seconds(const KernelDevice& device, const ParameterValues& values, double tokens, double width,
                      double bytes);

// For both kinds: keys (with their values) that a block works on at a time, as many as the shared memory of a core
// holds at that head size.
double keys_per_step(const AttentionCall& call);
// Sum over i = 1 … blocks of ceil((context + i rows) / width): steps of blocks under a causal mask.
double steps_until(double context, std::int64_t rows, std::int64_t width, double blocks);
// The copies of queries and results, by which the heads of a group become the rows of one block, where they move
// anything: grouped heads of several KV heads and several sequences.
double regroup_seconds(const KernelDevice& device, const ParameterValues& values, const AttentionCall& call);

// ---- Products and attention of ggml (llama.cpp)

// Which of ggml's products runs: of few rows on the vector units, of weights as they are packed, or of 16 bits.
enum class GgmlProduct : unsigned char { few_rows, packed, wide };
GgmlProduct ggml_product(const KernelChoices& choices, FormatKernel format, double rows);

// Whether products of 16-bit weights are the backend's own, and load them as packed ones, or a vendor's library.
bool has_own_wide(const KernelChoices& choices);

// A product with weights of the format; `experts`: of several that one kernel multiplies. call.second_bytes: as stored.
// device.unpacked: the rate of 16-bit products.
ProductTime ggml_time(const KernelDevice& device, const ParameterValues& values, const KernelChoices& choices,
                      FormatKernel format, const GemmCall& call, bool experts);
// A product with the cache where the scores are kept in memory; call.second_bytes: of the cache.
ProductTime scores_time(const KernelDevice& device, const ParameterValues& values, const KernelChoices& choices,
                        const GemmCall& call);
// Attention in one kernel, of `tile` rows of queries after one another (0: of all at once).
double ggml_attention_seconds(const KernelDevice& device, const ParameterValues& values, const AttentionCall& call,
                              double tile);

// ---- Collectives: what a library (NCCL, HCCL) makes of the links between devices, in the numbers of a profile

// The links as a library drives them: its shares of the rates, its launches, and its steps, none of which is shorter
// than a latency that the device's file states. (One that is assumed gives way to the profile's.) Inside a node rings
// of chunks, and all-reduces by the stack's own kernels where it has them; between nodes every algorithm.
cost::Cluster driven(const cost::Cluster& cluster, const hardware::RuntimeProfile& profile);

}  // namespace llmperf::mapper
