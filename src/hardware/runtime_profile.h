// A runtime profile: what a software stack does with a device. Which ops it runs (options), how far its kernels get
// from the device's peaks, and what the host adds. Few numbers, each with a physical meaning; none belongs to one
// model. The kernel formulas that read them are in src/mapper/roofline (kernels.h);
// docs/runtimes.md explains them.
//
// All numbers lie in one flat array, so that reading, writing, fitting and printing a profile are loops over one table
// (parameter_info). Numbers are in SI units; shares are of the device's datasheet peak.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/format_kernel.h"
#include "hardware/device.h"
#include "hardware/runtime.h"

namespace llmperf::descriptor {
struct Document;
}

namespace llmperf::hardware {

// What each means, its unit, default and bounds stand in one table (runtime_parameters.cpp).
// clang-format off
enum class Parameter : unsigned char {
  // Dense matrix products (gemm_kernel.cpp).
  gemm_launch, gemm_share, gemm_memory_share, gemm_overlap, gemm_share_16, gemm_share_64, gemm_share_128,
  gemm_share_256, gemm_cache_rate, gemm_store_rate, gemm_split_launch, gemm_split_share, gemm_cached_share,
  gemm_resident_share,
  // Products with quantised weights (gemm_kernel.cpp); what depends on the format is in FormatParameter.
  format_overlap, format_small_overlap, dequantise_share, dequantise_cached,
  // Attention over a prompt (attention_kernel.cpp).
  prefill_launch, prefill_share, prefill_block, prefill_memory_share, prefill_overlap, prefill_tail,
  prefill_fill, prefill_exponential_rate, prefill_narrow_share, prefill_quantise, prefill_window, append_share,
  append_token,
  // Attention of one new token per sequence.
  decode_launch, decode_memory_share, decode_block, decode_block_rate, decode_overlap, decode_pack, decode_copy,
  decode_copy_share, decode_split, decode_split_each, decode_sequence, decode_window, decode_quantise,
  decode_resident_share,
  // Of XQA: over keys of 8 bits, and of heads that share no keys.
  decode_narrow_launch, decode_narrow_block, decode_head_block, decode_head_rate,
  // Attention by Triton's kernels.
  triton_launch, triton_share, triton_narrow_share, triton_block, triton_memory_share, triton_rate,
  // Latent attention where it has kernels of its own (attention_kernel.cpp): new tokens on latents, then prompts.
  latent_launch, latent_share, latent_memory_share, latent_block, latent_overlap, latent_query_share, latent_split,
  latent_prompt_launch, latent_prompt_share, latent_prompt_block, latent_prompt_exponential_rate, latent_token,
  // ggml's kernels (ggml_kernel.cpp): products, and attention that keeps its scores in memory.
  product_rows, product_unpack, product_experts, scores_share, scores_memory_share, scores_bytes,
  small_heads_share, eights_share, per_watt, launch_core,
  // Layers of a GGUF model on several devices (estimate/schedule.h).
  split_hop, split_queue, split_kernels,
  // Routed experts where they have kernels of their own (gemm_kernel.cpp).
  experts_stream_share, experts_unaligned_share,
  // Of their products in the order of ExpertParameter; those of quantised weights are in FormatParameter.
  experts_product, experts_start, experts_memory_share, experts_overlap, experts_share_16, experts_share_32,
  experts_share_64, experts_share_128,
  // Everything else that reads and writes memory: norms, activations, rope, copies, gathers.
  vector_launch, vector_memory_share, vector_cached_share, vector_element_rate, vector_reduce_rate, vector_reduce_row,
  vector_sampling_rate, vector_draw_bytes,
  // Convolutions; their launch, memory share and overlap are those of products. Recurrences.
  convolution_share, scan_launch, scan_share,
  // Collectives (collective_kernel.cpp).
  collective_launch, collective_step, collective_share, collective_copy_share, collective_fill, network_share,
  network_step, collective_hidden, switch_launch, switch_share, collective_reduce, collective_setup,
  collective_direct_share, collective_bridge_share, collective_sockets_share,
  // All-reduces inside a node by kernels of the stack's own (collective.cpp).
  custom_launch, custom_rank, custom_share, custom_second, custom_second_share, custom_norm,
  // Tokens on their way to experts and back, by one kernel each way (collective.cpp).
  exchange_launch, exchange_there, exchange_round, exchange_share,
  // Weights on their way from the host to the device that multiplies them (mapper/machine.h).
  upload_share, upload_pinned_share, host_memory_share,
  // What long kernels and steady load leave of the clock (efficiency.cpp).
  power_onset, power_sustained,
  // The host and what a step costs beside its kernels (step_overhead.h).
  launch_gap, step_prefill, step_decode, step_sequence, step_prompts, host_layer, host_launch, host_view, host_reshape, host_dispatch,
  host_graph_layer, host_request, host_piece, host_experts, host_expert, host_scan,
  memory_utilisation,
  // Arrays of tiles, whose ops are timed by the best mapping found (mapper/tile/tile_mapper.h).
  tile_launch, tile_matrix_share, tile_feed_share, tile_vector_share, tile_dram_share, tile_dram_near_share,
  tile_link_share, tile_multicast_share, tile_hidden, tile_attention_share, tile_attention_memory_share,
  tile_attention_keys, tile_prompt_share,
  // Training (estimate/training.cpp): products of narrow operands and what makes them so, attention's backward pass,
  // which part of exchanges shows, and the host.
  training_narrow_share, training_fp4_share, training_quantise, training_quantise_rows, training_experts_share,
  training_backward_share, training_tensor_shows, training_async_shows, training_routing_shows, training_context_shows, training_shard_hidden,
  training_shard_shows, training_update_shows, training_host_op, training_host_experts, training_gathered, training_loss_bytes, training_divided_loss_bytes,
  // Around the steps of a generated image or video.
  generation_fixed, generation_video, generation_pixel,
  count
};
// clang-format on
inline constexpr std::size_t kParameters = static_cast<std::size_t>(Parameter::count);

using llmperf::FormatKernel;
using llmperf::kFormatKernels;
enum class FormatParameter : unsigned char {
  share,         // of the 16-bit matrix peak, unpacking weights on the way; of narrow products, of their own peak
  small_share,   // the same of the kernel for few rows
  memory_share,  // of the memory bandwidth, on packed weights
  host,          // s of the host on top of every product it launches: wrappers, scales
  unpack_rate,   // elements that one core of ggml's unpacks in a cycle
  reduce,        // s of products with GPTQ's weights: adding up what stripes of the work share
  // Of narrow products only (gemm_kernel.cpp).
  launch,
  overlap,
  cache_rate,
  store_rate,
  block,
  step,
  quantise_share,
  quantise_row,
  // Grouped products of experts in the order of ExpertParameter.
  experts_product,
  experts_start,
  experts_memory_share,
  experts_overlap,
  experts_share_16,
  experts_share_32,
  experts_share_64,
  experts_share_128,
  count
};
inline constexpr std::size_t kFormatParameters = static_cast<std::size_t>(FormatParameter::count);
// Of ops that a framework calls one by one (KernelChoices::eager), by their kind or that of a vector op: s of a call
// until kernels run, and how often these go over the op's tensors where one kernel does it once.
inline constexpr std::string_view kCalled[] = {
    "gemm",    "attention",  "rms_norm", "layer_norm",       "add_rms_norm", "add_layer_norm",
    "rope",    "activation", "add",      "gated_activation", "elementwise",  "multiply",
    "softmax", "sampling",   "copy",     "gather",           "scan"};
enum class CallParameter : unsigned char { call, passes, count };
inline constexpr std::size_t kCallParameters = static_cast<std::size_t>(CallParameter::count);
inline constexpr std::size_t kCallsBegin = kParameters + kFormatKernels * kFormatParameters;
inline constexpr std::size_t kAllParameters = kCallsBegin + std::size(kCalled) * kCallParameters;

constexpr std::size_t index(Parameter p) { return static_cast<std::size_t>(p); }
constexpr std::size_t index(FormatKernel kernel, FormatParameter p) {
  return kParameters + static_cast<std::size_t>(kernel) * kFormatParameters + static_cast<std::size_t>(p);
}

// Nothing of kinds that are not called so.
constexpr std::optional<std::size_t> index(std::string_view called, CallParameter p) {
  for (std::size_t i = 0; i < std::size(kCalled); ++i) {
    if (kCalled[i] == called) return kCallsBegin + i * kCallParameters + static_cast<std::size_t>(p);
  }
  return std::nullopt;
}

// Of the grouped products of experts (gemm_kernel.cpp), which are a kernel of its own for every format of weights.
enum class ExpertParameter : unsigned char { launch, start, memory_share, overlap, share };  // share: the first of four
inline constexpr std::size_t kExpertParameters = 8;
constexpr std::size_t index(std::optional<FormatKernel> format, ExpertParameter p) {
  return static_cast<std::size_t>(p) +
         (format ? index(*format, FormatParameter::experts_product) : index(Parameter::experts_product));
}

// What all profiles know of a parameter.
struct ParameterInfo {
  std::string name;       // "gemm.launch", "format.awq.share": section and key in the file
  std::string_view unit;  // "s", "B/s", "" for shares, exponents and counts
  double initial = 0;     // default where no class default says better
  double spread = 0.5;    // prior standard deviation of the logarithm
  double min = 0;         // bounds of a fit
  double max = 0;
  std::string_view meaning;
  // What a core does in its own clock, so that on another chip it goes with the clock: 1 of rates, -1 of times, 0 of
  // everything else.
  int clock_power = 0;
};
const ParameterInfo& parameter_info(std::size_t index);
std::optional<std::size_t> find_parameter(std::string_view name);
// Whether it says what the host adds to a step (step.*, host.*, launch.gap, format.FAMILY.host): with another engine
// these start from their defaults.
bool of_host(std::size_t index);

using ParameterValues = std::array<double, kAllParameters>;
double get(const ParameterValues& values, Parameter p);

enum class Dispatch : unsigned char {
  graph,          // captured once, replayed by the device: the host shows in fixed costs only
  eager,          // every kernel launched by the host, which may be the slower of the two
  serial,         // every kernel launched by the host, which runs not ahead: the device waits for it
  dynamic_graph,  // a graph whose ops are dispatched from the host
  pieces,         // a graph of what is between the attentions of two layers, which the host launches
};
std::string_view name(Dispatch dispatch);

// How a library multiplies with weights of a format.
enum class ProductTiles : unsigned char {
  unpacked,        // weights are unpacked on the way, or before (gemm_kernel.cpp)
  menu,            // both operands are narrow, and the kernel is the fastest of the dense products' (gemm_kernel.cpp)
  quantised_menu,  // likewise, and a kernel before it makes the activations narrow
  by_rows,         // narrow, in tiles that hang on the number of rows alone (CUTLASS as vLLM and SGLang build it)
  fewest_rounds,   // narrow, in tiles that need the fewest rounds over the cores (DeepGEMM)
  cube,            // narrow, in the tiles of CANN's products (cube_tiles)
};
std::string_view name(ProductTiles tiles);

// How long the load lasts whose kernels are predicted. Chips boost beyond their clock until they are warm, and large
// products draw more than the power limit allows for long.
enum class Power : unsigned char {
  none,       // the profile says nothing of it
  short_run,  // a single prompt, a measurement of some calls
  sustained,  // steady state: serving, training
};
std::string_view name(Power power);
std::optional<Power> parse_power(std::string_view name);  // "short", "sustained"

// Which library's attention a stack runs.
enum class AttentionKernels : unsigned char {
  flash2,     // FlashAttention-2, and what is built like it
  flash3,     // FlashAttention-3, FlashMLA: packed groups, exponentials that count
  blackwell,  // the same as TensorRT-LLM and FlashInfer generate it for Blackwell: blocks of 256 rows of one head
  xqa,        // TensorRT-LLM's on Hopper: prompts in blocks of one head, new tokens by XQA
  cann,       // FusedInferAttentionScore of CANN: FlashAttention-2's form and a start that nothing hides; latents apart
};
std::string_view name(AttentionKernels kernels);

// Which attention another library's kernels run, in a stack that has kernels of its own for the rest; what is left open
// is any.
struct AttentionCase {
  std::int64_t head = 0;          // elements of a key
  std::int64_t most_grouped = 0;  // query heads that share a key head, of two and more
  std::optional<bool> window = {};
  std::optional<bool> narrow = {};  // whether keys are stored in fewer bits than what is multiplied
  std::optional<bool> prompts = {};
  bool skips = false;  // what a window hides of a prompt's keys is not computed
  bool operator==(const AttentionCase&) const = default;
};

// Kernel choices: thresholds and structure that are read from the software, not fitted.
struct KernelChoices {
  bool tile_menu = false;      // GEMM libraries with tiles of several sizes and split k, else one share for all
  bool tile_mappings = false;  // ops run as the best mapping found on an array of tiles, by the numbers of tile.*
  // Of it: the one tile that gets an operand hands it on to those that share it, by multicast, before it gets more.
  bool multicast_senders = false;
  bool masked_attention = false;  // of it: attention computes what a causal mask hides, too, and adds the mask
  // Of it: rows up to which the tiles next to a DRAM channel read a product's weights, and activations of products and
  // of vector work stay in the tiles' memory.
  std::int64_t near_rows = 0;
  std::int64_t head_tiles = 0;     // of it: tiles that share a head's keys of a sequence in decode, at most; 0: all
  bool cube_tiles = false;         // CANN's: of 128 x 256 results, either way round, and split k
  std::int64_t row_granule = 1;    // dense products above 64 rows compute a multiple of it
  std::int64_t small_granule = 1;  // products of any number of rows do
  AttentionKernels attention = AttentionKernels::flash2;
  std::vector<AttentionCase> triton_attention = {};
  bool has_flash2_form() const { return attention == AttentionKernels::flash2 || attention == AttentionKernels::cann; }
  // Products and attention are ggml's (ggml_kernel.cpp), quantised products in 8 bits or in 16.
  bool ggml = false;
  bool integer_products = false;
  std::int64_t query_rows = 64;     // FlashAttention-2: rows of Q per block of attention
  bool split_ungrouped = false;     // decode divides the keys of heads that share no KV head, too
  std::int64_t copied_head = 0;     // heads of so many elements take a kernel of decode.copy seconds more; 0: none
  bool token_decodes = false;       // a prompt of one token runs as a new token (vLLM on Blackwell)
  bool queries_scaled = false;      // over keys of 8 bits queries meet their scale in a kernel of its own
  std::int64_t small_rows = 0;      // quantised: rows up to which the kernel for few rows runs; 0: there is none
  bool grouped_experts = false;     // routed experts are grouped kernels (gemm_kernel.cpp), else a product for each
  bool cached_activations = false;  // dense products: what the cache holds of activations does not cross the memory bus
  std::array<ProductTiles, kFormatKernels> product_tiles = {};
  std::array<std::int64_t, kFormatKernels> dequantise_rows = {};  // from here on weights are unpacked first; 0: never
  // ggml: rows up to which a vector kernel runs, which unpacks weights for every row anew.
  std::array<std::int64_t, kFormatKernels> few_rows = {};
  // Formats whose kernel loads weights and multiplies one after the other (exponent 1).
  std::array<bool, kFormatKernels> serial = {};
  // Experts in mxfp4 of this width have a kernel of their own (gpt-oss's), others run in Marlin's; 0: all have the
  // same.
  std::int64_t mxfp4_width = 0;
  std::int64_t format_granule = 1;  // rows of kernels that unpack on the way
  double clock = 1;                 // what the stack leaves of the clock that the device's peaks are at
  std::int64_t prompt_chunk = 0;    // ggml: tokens of a prompt that attend to what is cached by their end; 0: all
  bool head_keys = false;           // ggml: every query head reads the cached keys by itself where a step has few rows
  bool fp16_accumulate = false;     // products that may (cost::Sums) accumulate in 16 bits
  std::int64_t allocated_kv = 0;    // tokens per sequence whose cache decode reads whatever its length; 0: the present
  std::int64_t overlap_bytes = 0;   // collectives up to this size overlap products; 0: of any size
  // B up to which the stack's own kernels, of one shot and of two, do the all-reduces inside a node; 0: the library
  // does.
  std::int64_t custom_all_reduce = 0;
  bool custom_fastest = false;  // the faster of one shot and two, as engines choose that look it up, not by fixed sizes
  bool switch_reduces = false;  // the library has all-reduces that the switch of a node adds up (NVLS)
  // The library's collectives inside a node are rings of chunks (NCCL); else the fastest algorithm that the links
  // allow.
  bool rings = true;
  // Of measured rows by themselves: attention over a prompt's latents meets them as they are (absorbed), and a product
  // with scales of blocks launches so many kernels before it that pack them, which a served step is spared.
  bool absorbed_rows = false;
  std::int64_t packing_launches = 0;
  std::int64_t small_collective = 0;  // B up to which a collective starts without collective.setup
  // Tokens of a device up to which they go to experts, and results back, by one kernel each way that sends every token
  // to each of its experts (MoeDistributeDispatch and MoeDistributeCombine); 0: by all-to-alls.
  std::int64_t exchange_tokens = 0;
  bool exchange_network = false;  // between nodes as well (DeepEP's kernels of low latency)
  Power power = Power::none;
  // Of training: products get one share of the peak whatever their size, element-wise work is fused as compilers and
  // libraries of today do it; else kernels are those of Megatron-LM of 2022 (training_graph.cpp).
  bool fused_training = false;
  bool gradient_buffers = false;    // of it: gradients have their place from the start, not as they come
  bool compiled = false;            // of it: by torch.compile, and exchanges of the tensor axis run beside nothing
  bool early_stop = false;          // of it: recomputed layers end early (graph::Again::needed)
  bool eager = false;               // kernels are timed as a framework calls them one by one (efficiency.cpp, called())
  bool attention_appends = false;   // measured prompt attention includes appending K and V to the cache
  std::int64_t tensor_padding = 0;  // B that the allocator adds to every tensor, before it rounds up to the granule
  std::int64_t tensor_granule = 1;  // B
  double activation_factor = 1;     // memory the runtime plans for activations, over the peak of those alive at once
  bool replicates_embedding = false;  // under tensor parallelism every device holds embedding and lm_head whole
  bool caps_batch = false;            // sequences beyond the memory wait, so that a step runs fewer than asked
  // What engines capture and launch together; another engine's file starts from these defaults.
  std::int64_t graph_context = 0;  // cached tokens of a sequence up to which they were; 0: of any number
  std::int64_t graph_rows = 0;     // sequences up to which decode steps were captured; 0: of any number
  bool graph_pieces = false;       // steps with prompts of at most graph_rows tokens are replayed in pieces
  bool overlapped = false;         // what the host does for each sequence runs beside the device
  // Products of scheme fp8 get activations that the kernel before them has written narrow.
  bool fused_quantising = false;
  bool joint_attention = false;  // sequences that decode and pieces of prompts are one launch of attention
  // Not of a row that was measured by itself.
  bool quantising_is_fused(FormatKernel format, bool alone) const {
    return fused_quantising && format == FormatKernel::fp8 && !alone;
  }
  bool operator==(const KernelChoices&) const = default;
};

// A step whose time is predicted.
struct StepSize {
  std::int64_t batch = 1;    // of one replica
  std::int64_t tokens = 1;   // new ones of all its sequences
  std::int64_t context = 0;  // cached ones per sequence
  double parameters = 0;     // of the model
  std::string weights;       // scheme
  // Empty: not said, and held against nothing.
  std::string kv = {};              // scheme of the cache
  std::string plan = {};            // as graph::to_text writes it
  std::string kind = {};            // of model: "dense", "experts", "latent attention", …
  std::string device = {};          // that it runs on
  std::int64_t layers_on_host = 0;  // of a GGUF model, whole or their experts
  std::string power_limit = {};     // of the device, and by how much its clock may be off
  double clock_doubt = 0;
};
// What a profile was fitted on. Outside of it an estimate is extrapolated. Empty lists: not recorded, nothing is held
// against them.
struct FittedRange {
  std::int64_t rows = 0;  // measurements; 0: nothing is known
  std::vector<std::string> models;
  std::vector<std::string> weights;
  std::vector<std::string> kv;
  std::vector<std::string> plans;
  std::vector<std::string> kinds;
  std::int64_t max_batch = 0;
  std::int64_t max_tokens = 0;  // of a prefill, all sequences
  std::int64_t max_context = 0;
  double min_parameters = 0;  // of the models
  double max_parameters = 0;
  bool operator==(const FittedRange&) const = default;
};
// Cross-validated error of predictions like one: no row was predicted by parameters it had a part in.
struct FittedError {
  std::string group;  // "prefill", "decode", "gemm"
  double mean = 0;    // absolute relative error
  double p90 = 0;
  double bias = 0;
  std::int64_t rows = 0;  // 0: an assumption

  // Mean and p90 of few rows, times how much farther from 0 the 95th percentile of Student's t with as many degrees of
  // freedom lies than that of the normal distribution: 1.23 of 5 rows, 1.04 of 25.
  FittedError widened() const;
};

struct RuntimeProfile {
  std::string name;      // "vllm": what --runtime takes
  std::string hardware;  // device whose measurements it rests on; empty: a class default
  std::string origin;    // device whose cores its rates are of: that of the profile it is based on, or its own
  std::string engine;    // era whose host and choices it has: "vllm-v1" (engine.h); empty: its own
  std::string tool;      // that ran it where it was measured: "llama-cpp-python"; empty: the engine by itself
  std::string
      host_class;         // of machine that its host's numbers were measured on: "desktop", "server", "grace"; or empty
  std::string kernels;    // profile whose kernels a lookup has put an engine on: "vllm on a100-sxm-80gb"; else empty
  bool same_die = false;  // of another device's profile: both have the same cores, and other memory or links
  std::string borrowed;   // "kernels of vllm" of an engine that has none of its own here; else empty
  // Of an engine whose steps were not measured on this device: "vllm-v0 on this device (its steps were …)".
  std::string foreign_steps;
  std::string title;
  std::string source;  // of measurements and choices
  std::string notes;
  // Not empty: the default of devices of these families, for lack of a profile of their own.
  std::vector<std::string> families;
  Workload workload = Workload::language;
  bool preferred = false;  // among several profiles of a device (or family) the one that is taken without --runtime
  Dispatch dispatch = Dispatch::graph;          // of decode steps
  Dispatch prefill_dispatch = Dispatch::graph;  // of steps that process prompts
  RuntimeOptions options;                       // of --options all: everything the stack can do
  RuntimeOptions base = {};                     // of --options none: what it does in any case
  // Options that a graph needs before it can be sunk to the device whole; without them it is dispatched from the host.
  std::vector<std::string> static_graph_needs;
  // Architectures of models whose code in this stack has RuntimeOptions::repeated_kv (run_by() of runtime_execution.h).
  std::vector<std::string> repeated_kv;
  // Names of --options in the order of the stack's own tuning guide, each with the switches it sets.
  struct NamedOption {
    std::string name;
    std::vector<std::string> switches;
  };
  std::vector<NamedOption> ladder;
  // What the engine multiplies weights of these formats with, by the numbers of the first of them. Of several that have
  // a format the last one does. A lookup keeps those of the version asked for (the newest, if none) on the device.
  struct FormatKernels {
    std::string name;  // "Marlin"
    std::vector<FormatKernel> formats;
    std::string since = {};                  // as EngineEra has them
    std::string since_date = {};             //
    std::vector<std::string> families = {};  // of devices; empty: all
  };
  std::vector<FormatKernels> format_kernels;
  const FormatKernels* kernels_of(FormatKernel format) const;  // or null: the format's own, without a name
  std::string gguf_era;  // of the files that were measured; empty: the present rules
  KernelChoices choices;
  ParameterValues values = {};
  std::array<double, kAllParameters> alone = {};  // of rows of one op measured by itself; 0: the same value
  // Where the fit of a fitted number began, and what it was held to; 0: the general default.
  std::array<double, kAllParameters> prior = {};
  std::array<Provenance, kAllParameters> provenance = {};
  std::array<double, kAllParameters> uncertainty = {};  // relative standard error; 0: not fitted
  FittedRange range;
  std::vector<FittedError> errors;

  // In which ways a step lies outside of what was fitted: "batch 256 (fitted up to 128)"; of a class default and of
  // another device's profile that nothing was measured there. Empty inside, and where a profile of the device does not
  // say what it was fitted on.
  std::vector<std::string> beyond_range(const StepSize& step) const;
  // The cross-validated error of a group, or null.
  const FittedError* error_of(std::string_view group) const;
  // Name and device, for messages: "vllm on rtx4090", "vllm (defaults of nvidia-hopper)", or "vllm-v0: kernels of vllm
  // on a100-sxm-80gb".
  std::string title_for(const Device& device) const;
  bool measured_on(const Device& device) const { return hardware == device.name; }
};

// The profile a document describes; what it leaves out is that of its `based_on` profile, else the default. Throws
// Error(bad_input) with every problem.
RuntimeProfile parse_runtime_profile(const descriptor::Document& document);
// What carries over to a chip with another clock: rates and times of one core go with it, shares of peaks and of the
// memory bandwidth and launch times do not. Where either device does not say its clock, the profile as it is.
RuntimeProfile carried_over(RuntimeProfile profile, const Device& from, const Device& to);
// The file that parse_runtime_profile reads back to the same profile.
std::string format_runtime_profile(const RuntimeProfile& profile);

// The profile of that name for the device: one fitted on it, else that of the longest dash-separated prefix of the name
// (torchair for torchair-2024b), else, likewise, a default of its family, else that of all devices. An empty name means
// the preferred one. NAME@VERSION means the engine's era of that version, build or date, as the name of an era does
// (engine.h), and +TOOL behind it the tool that runs the engine: the profile of that name where its steps are of that
// era, else its kernels with the era's part laid over them. An engine that no such profile is of is laid over the
// preferred kernels. A path is read as a file. Throws Error(bad_input) for names no profile has (strict), with the
// nearest; else they mean the default of the family, whatever the name, and a version that says no era is none.
// `measured`: of a row of measurements, likewise; one that names neither tool nor version means a profile of any tool.
enum class UnknownRuntime : unsigned char { error, use_default, measured };
RuntimeProfile load_runtime_profile(const Device& device, const std::string& name_or_path,
                                    UnknownRuntime unknown = UnknownRuntime::error,
                                    Workload workload = Workload::language);
// Names of the profiles that were fitted on the device.
std::vector<std::string> runtimes_of(const Device& device);
// Every profile there is, by file.
std::vector<RuntimeProfile> all_runtime_profiles();

}  // namespace llmperf::hardware
