// The table of everything a profile can say in numbers. Defaults are what GPU libraries of the last years reach on the
// chips that were measured, rounded; spreads say how far another chip or library is expected to be from that.
#include <array>
#include <limits>

#include "hardware/names.h"
#include "hardware/runtime_profile.h"

namespace llmperf::hardware {
namespace {

struct Entry {
  Parameter parameter;
  std::string_view name;
  std::string_view unit;
  double initial;
  double spread;
  double min;
  double max;
  std::string_view meaning;
};
using enum Parameter;

// By ExpertParameter.
constexpr std::string_view kExpertMeaning[kExpertParameters] = {
    "every grouped product of experts, with its part of routing, sorting and adding up",
    "of a core's time, per tile of a grouped product",
    "of the memory bandwidth, of grouped products",
    "exponent, of grouped products",
    "of the matrix peak of a grouped product, in tiles of 16 rows",
    "of a grouped product in tiles of 32 rows",
    "of a grouped product in tiles of 64 rows",
    "of a grouped product in tiles of 128 rows",
};

constexpr Entry kEntries[] = {
    {gemm_launch, "gemm.launch", "s", 3e-06, 0.7, 1e-07, 4e-05, "every kernel of a matrix product"},
    {gemm_share, "gemm.share", "", 0.85, 0.3, 0.1, 1, "of the matrix peak, where the library's tiles are not modelled"},
    {gemm_memory_share, "gemm.memory_share", "", 0.85, 0.3, 0.2, 1, "of the memory bandwidth"},
    {gemm_overlap, "gemm.overlap", "", 3, 0.7, 1, 12,
     "exponent of the norm that joins compute and memory: 1 adds them, infinity hides the shorter"},
    {gemm_share_16, "gemm.share_16", "", 0.15, 0.7, 0.02, 1.3, "of the matrix peak, tiles of at most 2,048 results"},
    {gemm_share_64, "gemm.share_64", "", 0.65, 0.5, 0.1, 1.3, "tiles of at most 8,192 results"},
    {gemm_share_128, "gemm.share_128", "", 0.82, 0.4, 0.2, 1.3, "tiles of at most 16,384 results"},
    {gemm_share_256, "gemm.share_256", "", 0.97, 0.2, 0.3, 1.3, "larger tiles"},
    {gemm_cache_rate, "gemm.cache_rate", "B/s", 4.5e+10, 0.7, 1e+09, 1e+12,
     "operands that one core gets from the cache"},
    {gemm_store_rate, "gemm.store_rate", "B/s", 2e+10, 1.5, 1e+09, 1e+12,
     "of one core writing results, beside which it computes nothing"},
    {gemm_split_launch, "gemm.split_launch", "s", 2.6e-06, 0.7, 1e-07, 4e-05, "adding up the parts of a divided k"},
    {gemm_split_share, "gemm.split_share", "", 4, 1.5, 0.2, 50,
     "of the memory bandwidth, of the traffic of these parts (above 1: they stay in the cache)"},
    {gemm_cached_share, "gemm.cached_share", "", 1.3, 0.7, 0.2, 20,
     "of the memory bandwidth, of activations that the cache holds"},
    {gemm_resident_share, "gemm.resident_share", "", 2, 0.7, 0.2, 20,
     "of the memory bandwidth, of weights that a measurement left in the cache (column copies)"},
    {format_overlap, "format.overlap", "", 3, 0.5, 0.3, 12, "exponent, of kernels that unpack weights on the way"},
    {format_small_overlap, "format.small_overlap", "", 1.5, 0.5, 1, 12,
     "exponent, of the matrix kernel beside one for few rows"},
    {dequantise_share, "format.dequantise_share", "", 0.8, 0.4, 0.1, 4.0,
     "of the memory bandwidth, of the kernel that unpacks weights to 16 bits"},
    {dequantise_cached, "format.dequantise_cached", "", 0.5, 0.7, 0.01, 1.0,
     "of a 16-bit copy that the cache can hold, the part that crosses the memory bus"},
    {prefill_launch, "prefill.launch", "s", 6e-06, 0.7, 1e-07, 4e-05, "attention over a prompt"},
    {prefill_share, "prefill.share", "", 0.6, 0.4, 0.05, 1.3, "of the matrix peak"},
    {prefill_block, "prefill.block", "s", 1.5e-06, 0.7, 1e-07, 4e-05, "of a core's time, per block of query rows"},
    {prefill_memory_share, "prefill.memory_share", "", 0.7, 0.3, 0.1, 1, "of the memory bandwidth"},
    {prefill_overlap, "prefill.overlap", "", 2, 0.5, 1, 12, "exponent"},
    {prefill_tail, "prefill.tail", "", 1.15, 0.3, 0.01, 2, "of the longest block, by which the last wave ends late"},
    {prefill_fill, "prefill.fill", "s", 1.2e-06, 0.7, 1e-09, 4e-05,
     "of a core's time, per 128 rows and 128 of the first 512 keys of a block, which nothing hides (CANN)"},
    {prefill_exponential_rate, "prefill.exponential_rate", "1/s", 3.4e+10, 0.4, 1e+09, 1e+12,
     "exponentials of one core, beside which it multiplies nothing (FlashAttention-3)"},
    {prefill_narrow_share, "prefill.narrow_share", "", 0.6, 0.4, 0.05, 2.6,
     "of the 16-bit matrix peak, over keys of 8 bits (FlashAttention-3)"},
    {prefill_quantise, "prefill.quantise", "s", 1e-06, 1, 1e-09, 4e-05, "making queries as narrow as the keys"},
    {prefill_window, "prefill.window", "", 1, 0.5, 0.5, 4,
     "that a step over keys takes where a window masks some, of one where none does (FlashAttention-3)"},
    {append_share, "append.share", "", 0.95, 0.3, 0.1, 4, "of the memory bandwidth, appending K and V to the cache"},
    {append_token, "append.token", "s", 1e-06, 0.7, 1e-08, 0.0001,
     "of a core's time, per token and 512 elements of keys"},
    {decode_launch, "decode.launch", "s", 9e-06, 0.5, 1e-07, 4e-05, "attention of one new token per sequence"},
    {decode_memory_share, "decode.memory_share", "", 0.85, 0.3, 0.1, 1, "of the memory bandwidth"},
    {decode_block, "decode.block", "s", 3.8e-06, 0.7, 1e-08, 4e-05, "of a core's time, per block"},
    {decode_block_rate, "decode.block_rate", "B/s", 2.2e+10, 0.5, 1e+09, 1e+12, "K and V that one block can stream"},
    {decode_overlap, "decode.overlap", "", 4, 0.5, 1, 12, "exponent"},
    {decode_pack, "decode.pack", "s", 2e-06, 0.7, 1e-09, 4e-05, "packing the query heads of a group"},
    {decode_copy, "decode.copy", "s", 5e-06, 0.7, 1e-09, 4e-05,
     "a copy that grouped heads of several sequences need, or heads of copied_head elements"},
    {decode_copy_share, "decode.copy_share", "", 0.43, 0.7, 0.05, 4, "of the memory bandwidth, of that copy's traffic"},
    {decode_split, "decode.split", "s", 3e-06, 0.7, 1e-09, 4e-05, "joining parts of the keys"},
    {decode_split_each, "decode.split_each", "s", 2e-07, 0.7, 1e-10, 1e-05, "joining: each part"},
    {decode_sequence, "decode.sequence", "s", 2e-08, 0.7, 1e-11, 1e-05,
     "every sequence of up to 992, which a kernel sorts by length (FlashAttention-3)"},
    {decode_window, "decode.window", "s", 2e-06, 0.7, 1e-09, 4e-05,
     "of a core's time, per block whose window masks keys (FlashAttention-3)"},
    {decode_quantise, "decode.quantise", "s", 1.5e-06, 0.7, 1e-09, 4e-05,
     "making queries as narrow as the keys (FlashAttention-3)"},
    {decode_resident_share, "decode.resident_share", "", 1.5, 0.7, 0.2, 20,
     "of the memory bandwidth, of K and V that a measurement left in the cache (column copies)"},
    {decode_narrow_launch, "decode.narrow_launch", "s", 6.2e-6, 0.5, 1e-7, 4e-5,
     "attention of one new token per sequence over keys of 8 bits (XQA)"},
    {decode_narrow_block, "decode.narrow_block", "s", 2.5e-6, 0.7, 1e-8, 4e-5,
     "of half a core's time, per block of it (XQA)"},
    {decode_head_block, "decode.head_block", "s", 3.1e-6, 0.7, 1e-8, 4e-5,
     "of half a core's time, per head where heads do not share keys (XQA)"},
    {decode_head_rate, "decode.head_rate", "1/s", 2e10, 0.5, 1e8, 1e12,
     "elements of keys and values of such heads, of a core (XQA)"},
    {triton_launch, "triton.launch", "s", 9e-6, 0.5, 1e-7, 4e-5, "attention by Triton's kernels"},
    {triton_share, "triton.share", "", 0.11, 0.5, 0.01, 1, "of the matrix peak, over prompts"},
    {triton_narrow_share, "triton.narrow_share", "", 0.07, 0.5, 0.01, 1, "likewise, over keys of fewer bits"},
    {triton_block, "triton.block", "s", 6e-7, 0.7, 1e-9, 4e-5, "of a core's time, per block of a prompt"},
    {triton_memory_share, "triton.memory_share", "", 0.6, 0.4, 0.05, 1, "of the memory bandwidth"},
    {triton_rate, "triton.rate", "B/s", 1.9e10, 0.5, 1e8, 1e12,
     "K and V that a core streams for new tokens, as if of 16 bits"},
    {latent_launch, "latent.launch", "s", 7e-06, 0.5, 1e-07, 4e-05, "attention of new tokens on latents"},
    {latent_share, "latent.share", "", 0.53, 0.4, 0.05, 1.3, "of the matrix peak"},
    {latent_memory_share, "latent.memory_share", "", 0.9, 0.3, 0.1, 1, "of the memory bandwidth"},
    {latent_block, "latent.block", "s", 3.8e-06, 0.7, 1e-08, 4e-05, "of a core's time, per block of 64 heads"},
    {latent_overlap, "latent.overlap", "", 3, 0.5, 1, 12, "exponent"},
    {latent_query_share, "latent.query_share", "", 0.6, 0.7, 0.05, 4,
     "of the memory bandwidth, of queries and results, which overlap with nothing"},
    {latent_split, "latent.split", "s", 2e-06, 0.7, 1e-09, 4e-05, "joining parts of the latents"},
    {latent_prompt_launch, "latent.prompt_launch", "s", 1.27e-05, 0.7, 1e-07, 4e-05,
     "latent attention over a prompt, on expanded keys and values"},
    {latent_prompt_share, "latent.prompt_share", "", 0.75, 0.4, 0.05, 1.3, "of the matrix peak"},
    {latent_prompt_block, "latent.prompt_block", "s", 1.3e-06, 0.7, 1e-08, 4e-05,
     "of a core's time, per block of query rows"},
    {latent_prompt_exponential_rate, "latent.prompt_exponential_rate", "1/s", 4.1e+10, 0.4, 1e+09, 1e+12,
     "exponentials of one core, beside which it multiplies nothing"},
    {latent_token, "latent.token", "s", 1.2e-07, 0.7, 1e-10, 0.0001,
     "of a core's time, per token of a prompt: its latent goes to the cache"},
    {product_rows, "product.rows", "", 24, 0.7, 1e-3, 1000, "of a 16-bit product, at which it gets half as far (ggml)"},
    {product_unpack, "product.unpack", "", 7.2, 0.2, 0.1, 100,
     "rows of the vector kernel, as long as which it takes to unpack weights for more (ggml)"},
    {product_experts, "product.experts", "", 0.5, 0.4, 0.02, 1,
     "of what other products reach, of those of experts (ggml)"},
    {scores_share, "scores.share", "", 0.38, 0.4, 0.02, 1, "of the matrix peak, of products with a cache (ggml)"},
    {scores_memory_share, "scores.memory_share", "", 0.36, 0.4, 0.02, 1, "of the memory bandwidth, of these products"},
    {scores_bytes, "scores.bytes", "B", 15, 0.4, 1, 200, "of memory traffic per score that softmax leaves there"},
    {small_heads_share, "prefill.small_heads", "", 1, 0.7, 0.1, 10,
     "that heads of up to 64 numbers reach of what others do, of prompts in one kernel (ggml)"},
    {eights_share, "prefill.eights", "", 1, 0.7, 0.1, 10,
     "that heads reach of what others do where eight share keys, whose queries are one tile of that kernel (ggml)"},
    {per_watt, "power.per_watt", "FLOP/J", 1e14, 0.4, 1e9, 1e14,
     "that 16-bit products get out of what a board draws beside rest, at the full clock (ggml: out of all, long ones); "
     "the largest: they are not held to it"},
    {launch_core, "launch.core", "s", 1e-15, 0.7, 1e-15, 1e-5,
     "that every kernel takes longer for each core which it is spread over and waits for (ggml)"},
    {split_hop, "split.hop", "s", 3e-4, 0.5, 1e-6, 1e-2, "every hand-over of a step from one card to the next (ggml)"},
    {split_queue, "split.queue", "", 1024, 0.2, 16, 65536, "launches that a card can have pending (ggml)"},
    {split_kernels, "split.kernels", "", 55, 0.3, 5, 500, "launches of a layer in a micro-batch of a prompt (ggml)"},
    {experts_stream_share, "experts.stream_share", "", 0.8, 0.7, 0.05, 4,
     "of the memory bandwidth, of copies, activations and sums around the products of experts"},
    {experts_unaligned_share, "experts.unaligned_share", "", 0.3, 0.7, 0.02, 1,
     "of what products of experts reach, where rows of weights are no multiple of 16 elements"},
    {experts_product, "experts.product", "s", 1.4e-05, 0.7, 1e-07, 2e-04, kExpertMeaning[0]},
    {experts_start, "experts.start", "s", 9e-07, 0.7, 1e-09, 4e-05, kExpertMeaning[1]},
    {experts_memory_share, "experts.memory_share", "", 0.9, 0.3, 0.1, 1, kExpertMeaning[2]},
    {experts_overlap, "experts.overlap", "", 3, 0.7, 1, 12, kExpertMeaning[3]},
    {experts_share_16, "experts.share_16", "", 0.3, 0.7, 0.01, 1.3, kExpertMeaning[4]},
    {experts_share_32, "experts.share_32", "", 0.3, 0.7, 0.01, 1.3, kExpertMeaning[5]},
    {experts_share_64, "experts.share_64", "", 0.4, 0.7, 0.02, 1.3, kExpertMeaning[6]},
    {experts_share_128, "experts.share_128", "", 0.6, 0.7, 0.02, 1.3, kExpertMeaning[7]},
    {vector_launch, "vector.launch", "s", 2.5e-6, 0.7, 1e-7, 4e-5,
     "every kernel that is no matrix product or attention"},
    {vector_memory_share, "vector.memory_share", "", 0.8, 0.3, 0.05, 1, "of the memory bandwidth"},
    {vector_cached_share, "vector.cached_share", "", 3.0, 0.5, 1.0, 20.0,
     "of the memory bandwidth, of traffic that stays in the cache"},
    {vector_element_rate, "vector.element_rate", "1/s", 2e11, 0.5, 1e9, 1e14,
     "elements of broadcast, permuted or short-row kernels, which their number bounds as well as their bytes"},
    {vector_reduce_rate, "vector.reduce_rate", "1/s", 1e15, 0.5, 1e9, 1e15,
     "elements of norms and softmax, which the vector cores' own work bounds as well as their bytes"},
    {vector_reduce_row, "vector.reduce_row", "s", 1e-15, 0.7, 1e-15, 1e-6,
     "of all cores' time, on top of these elements: each row that is reduced"},
    {vector_sampling_rate, "vector.sampling_rate", "1/s", 1e15, 0.5, 1e8, 1e15,
     "logits that are sorted, summed and chosen from"},
    {vector_draw_bytes, "vector.draw_bytes", "B", 30, 0.7, 4, 4000, "per logit of top-k and top-p, at the bandwidth"},
    {convolution_share, "convolution.share", "", 0.2, 0.5, 0.01, 1, "of the matrix peak"},
    {scan_launch, "scan.launch", "s", 1e-9, 0.7, 1e-9, 1e-3, "of a recurrence, kernels that prepare what goes into it"},
    {scan_share, "scan.share", "", 1, 0.5, 0.003, 2, "of what attention over prompts reaches, recurrences in chunks"},
    {collective_launch, "collective.launch", "s", 9e-06, 0.5, 1e-07, 0.0002, "every collective"},
    {collective_step, "collective.step", "s", 9e-07, 0.5, 1e-08, 5e-05, "every step of the ring"},
    {collective_share, "collective.share", "", 0.82, 0.3, 0.1, 1, "of the rate of a device's links"},
    {collective_copy_share, "collective.copy_share", "", 2.7, 0.7, 0.1, 50, "of that rate, copying a rank's own share"},
    {collective_fill, "collective.fill", "s", 6.5e-06, 0.7, 1e-09, 0.0001,
     "latency of a chunk in the pipeline of chunks"},
    {network_share, "network.share", "", 0.9, 0.1, 0.1, 1.0, "of the rate between nodes"},
    {network_step, "network.step", "s", 20e-6, 0.5, 1e-7, 1e-3, "every message between nodes"},
    {collective_hidden, "collective.hidden", "", 0.5, 0.6, 0.01, 1.0,
     "of the shorter of a product and the collective beside it, what takes no time of its own"},
    {switch_launch, "collective.switch_launch", "s", 3e-05, 0.5, 1e-07, 0.0005,
     "every all-reduce that the switch adds up, beside the launch"},
    {switch_share, "collective.switch_share", "", 0.63, 0.2, 0.05, 1,
     "of the rate of a device's links, of a tensor that the switch adds up"},
    {collective_reduce, "collective.reduce", "", 1, 0.2, 0.2, 1,
     "of the share, where bytes are added up on arrival: reduce-scatter, and that half of an all-reduce"},
    {collective_setup, "collective.setup", "s", 6e-05, 0.7, 1e-08, 0.001,
     "every collective above `small_collective`, beside the launch"},
    {collective_direct_share, "collective.direct_share", "", 0.75, 0.2, 0.05, 1,
     "of the rate of a device's PCIe link, between devices behind one switch"},
    {collective_bridge_share, "collective.bridge_share", "", 0.45, 0.3, 0.02, 1,
     "of that rate, between devices that reach each other through the host"},
    {collective_sockets_share, "collective.sockets_share", "", 0.35, 0.7, 0.01, 4,
     "of that rate, what passes between the sockets of a server"},
    {custom_launch, "custom.launch", "s", 4.2e-06, 0.5, 1e-07, 4e-05, "every all-reduce of the stack's own kernel"},
    {custom_rank, "custom.rank", "s", 8e-08, 0.7, 1e-09, 5e-06, "every other rank, whose signal is awaited"},
    {custom_share, "custom.share", "", 0.6, 0.3, 0.05, 1, "of the rate of a device's links, everything in one shot"},
    {custom_second, "custom.second", "s", 4.5e-06, 0.7, 1e-07, 5e-05, "the second shot"},
    {custom_second_share, "custom.second_share", "", 0.75, 0.3, 0.05, 1, "of the rate of the links, in two shots"},
    {custom_norm, "custom.norm", "", 1, 0.3, 0.1, 2,
     "of the time of that kernel, what the one takes that has the norm behind it in it"},
    {exchange_launch, "exchange.launch", "s", 2.5e-05, 0.5, 1e-07, 0.0005,
     "every kernel that takes tokens to experts, or their results back"},
    {exchange_there, "exchange.there", "s", 4e-05, 0.5, 1e-08, 0.0005,
     "the kernel on the way there, beside the launch: quantising, counting, sorting what arrived"},
    {exchange_round, "exchange.round", "s", 8e-06, 0.5, 1e-08, 0.0001, "every doubling of the ranks"},
    {exchange_share, "exchange.share", "", 0.9, 0.2, 0.05, 1, "of the rate of a device's links"},
    {upload_share, "upload.share", "", 0.5, 0.5, 0.02, 1,
     "of the host link's rate, of weights in pageable memory (of files that are mapped)"},
    {upload_pinned_share, "upload.pinned_share", "", 0.8, 0.2, 0.02, 1, "of that rate, of weights in pinned memory"},
    {host_memory_share, "upload.host_share", "", 1, 0.4, 0.1, 1,
     "of what a CPU reads by itself, of layers and experts that a device waits for (ggml)"},
    {power_onset, "power.onset", "", 0.12, 0.7, 0.001, 1, "by which products and attention far above 1.7 ms slow down"},
    {power_sustained, "power.sustained", "", 1, 0.2, 1, 2,
     "what products and attention compute takes longer by in steady load"},
    {launch_gap, "launch.gap", "s", 1.5e-6, 0.7, 1e-8, 1e-4, "between two kernels of a step"},
    {step_prefill, "step.prefill", "s", 1e-3, 1.0, 1e-6, 5e-2, "every step that processes prompts"},
    {step_decode, "step.decode", "s", 4e-4, 1.0, 1e-6, 5e-2, "every step of one new token per sequence"},
    {step_sequence, "step.sequence", "s", 4e-5, 1.0, 1e-7, 5e-3, "every sequence: sampling and bookkeeping"},
    {step_prompts, "step.prompts", "", 1.0, 0.2, 0.1, 3.0,
     "of the kernels of others' prompts, what lengthens the steps of a loaded server"},
    {host_layer, "host.layer", "s", 8.5e-5, 0.7, 1e-6, 5e-3,
     "of the host, per layer of a step it launches kernel by kernel"},
    {host_launch, "host.launch", "s", 5e-6, 0.4, 1e-7, 5e-4, "of the host, per kernel"},
    {host_view, "host.view", "s", 1.5e-6, 0.5, 1e-8, 5e-4, "of the host, per tensor view"},
    {host_reshape, "host.reshape", "s", 2e-6, 1.0, 1e-8, 5e-4,
     "of the host, per kernel with a new shape in every step"},
    {host_dispatch, "host.dispatch", "s", 3e-5, 0.7, 1e-7, 5e-4,
     "of the host, per kernel of a graph dispatched from it"},
    {host_graph_layer, "host.graph_layer", "s", 1e-9, 0.7, 1e-9, 5e-3,
     "of the host, per layer of a graph whose attention it has to tell the lengths before every replay"},
    {host_request, "host.request", "s", 1e-2, 1.0, 1e-6, 1,
     "of a server, per request beside its steps: HTTP, tokenising, the way of its first token back"},
    {host_piece, "host.piece", "s", 1e-4, 0.7, 1e-9, 5e-3,
     "of the host, per layer of a graph in pieces: one replay and the call of its attention"},
    {host_experts, "host.experts", "s", 1e-9, 1.0, 1e-9, 2e-2,
     "of the host, per layer of experts that it launches kernel by kernel, beside these kernels"},
    {host_expert, "host.expert", "s", 1e-9, 1.0, 1e-9, 1e-3,
     "of the host, per expert of such a layer, where it goes over all of them one by one"},
    {host_scan, "host.scan", "s", 1e-9, 1.0, 1e-9, 2e-2,
     "of the host, per recurrence over a prompt, beside its kernels"},
    {memory_utilisation, "memory.utilisation", "", 0.9, 0.1, 0.3, 1.0,
     "of the device's memory, for weights and KV cache"},
    {tile_launch, "tile.launch", "s", 6e-6, 0.7, 1e-8, 1e-4, "every op on an array of tiles"},
    {tile_matrix_share, "tile.matrix_share", "", 0.95, 0.15, 0.1, 1.1, "of the rate of a tile's matrix unit"},
    {tile_feed_share, "tile.feed_share", "", 0.9, 0.3, 0.1, 1.5,
     "of the rate at which a tile's memory feeds its matrix unit"},
    {tile_vector_share, "tile.vector_share", "", 0.5, 0.7, 0.02, 1, "of the rate of a tile's vector unit"},
    {tile_dram_share, "tile.dram_share", "", 0.9, 0.3, 0.1, 1,
     "of the DRAM bandwidth, where pages of a tensor are dealt over the channels"},
    {tile_dram_near_share, "tile.dram_near_share", "", 0.92, 0.1, 0.1, 1,
     "of it, where the tiles next to the channels read them one each"},
    {tile_link_share, "tile.link_share", "", 0.9, 0.1, 0.1, 1, "of the rate of a link between tiles"},
    {tile_multicast_share, "tile.multicast_share", "", 1.2, 0.3, 0.1, 4,
     "of the rate at which one tile reaches all (above 1: it reaches those of a row faster)"},
    {tile_hidden, "tile.hidden", "", 0.97, 0.5, 0.02, 1,
     "of the shorter of what a tile's units and the DRAM take, the part that the longer hides"},
    {tile_attention_share, "tile.attention_share", "", 0.9, 0.2, 0.02, 1.1,
     "of the rate of a tile's matrix unit, in attention"},
    {tile_attention_memory_share, "tile.attention_memory_share", "", 0.9, 0.3, 0.1, 1,
     "of the DRAM bandwidth, of queries, keys and values in attention"},
    {tile_attention_keys, "tile.attention_keys", "", 1000, 1, 1, 16384,
     "keys whose work every row of a prompt's queries costs beside that of its own keys"},
    {tile_prompt_share, "tile.prompt_share", "", 0.6, 0.5, 0.02, 1,
     "of what products reach that were tuned by shape, in steps that process prompts"},
    {training_narrow_share, "training.narrow_share", "", 0.58, 0.3, 0.05, 1,
     "of the 8-bit matrix peak, of products in training"},
    {training_fp4_share, "training.fp4_share", "", 0.5, 0.4, 0.05, 1, "of the 4-bit matrix peak, likewise"},
    {training_quantise, "training.quantise", "", 1, 0.7, 0.05, 20,
     "passes over what is made narrow for a product, of one that reads 16 bits and writes the narrow type"},
    {training_quantise_rows, "training.quantise_rows", "", 3, 0.7, 0.05, 20,
     "likewise with a scale for every row or block"},
    {training_experts_share, "training.experts_share", "", 0.7, 0.5, 0.05, 1.2,
     "of what other products reach, of grouped ones of experts"},
    {training_backward_share, "training.backward_share", "", 0.8, 0.3, 0.2, 1.2,
     "of the rate of attention's forward pass, that of its backward pass"},
    {training_tensor_shows, "training.tensor_shows", "", 0.7, 0.5, 0.02, 1, "of exchanges of the tensor axis"},
    {training_async_shows, "training.async_shows", "", 0.5, 0.5, 0.02, 1,
     "of what shows of these, what does where they run piece by piece beside their products"},
    {training_routing_shows, "training.routing_shows", "", 1, 0.5, 0.02, 1, "of tokens' ways to experts and back"},
    {training_context_shows, "training.context_shows", "", 0.5, 0.5, 0.02, 1, "of exchanges of the sequence axes"},
    {training_shard_hidden, "training.shard_hidden", "", 0.8, 0.3, 0.05, 1,
     "of the passes, as long as which gathers and scatters of divided weights are hidden beside them"},
    {training_shard_shows, "training.shard_shows", "", 0.05, 0.7, 0.001, 1, "of these, what shows in any case"},
    {training_update_shows, "training.update_shows", "", 0.6, 0.5, 0.02, 1,
     "of exchanges of gradients and weights once a step"},
    {training_host_op, "training.host_op", "s", 6e-06, 0.7, 1e-08, 1e-3, "of the host, for every launch of a pass"},
    {training_host_experts, "training.host_experts", "s", 1e-3, 1, 1e-08, 0.1,
     "of the host, for a layer of experts in one pass: sorting tokens, and waiting for their numbers"},
    {training_gathered, "training.gathered", "", 2, 0.5, 0.01, 10,
     "layers whose divided weights and gradients are whole at a time"},
    {training_loss_bytes, "training.loss_bytes", "B", 8, 0.3, 1, 24,
     "of memory for a logit, from the product to its gradient"},
    {training_divided_loss_bytes, "training.divided_loss_bytes", "B", 14, 0.3, 1, 24,
     "likewise where weights are divided over replicas, or the vocabulary over the tensor axis"},
    {generation_fixed, "generation.fixed", "s", 0.2, 1.0, 1e-4, 1e2, "every generated image or video"},
    {generation_video, "generation.video", "s", 1.6, 1.0, 1e-4, 1e2, "every video, on top"},
    {generation_pixel, "generation.pixel", "s", 1e-8, 0.5, 1e-10, 1e-6, "encoding the file, per pixel of it"},
};
static_assert(std::size(kEntries) == kParameters);

struct Format {
  FormatKernel kernel;
  double share;
  double small_share;
  double memory_share;
};
using F = FormatKernel;
// Defaults: what unpacking kernels reach on an RTX 4090, of the 16-bit peak.
constexpr Format kFormats[] = {
    {F::fp8, 1.7, 1.7, 0.75},    {F::fp8_block, 1.7, 1.7, 0.75}, {F::int8, 0.8, 0.8, 0.8},
    {F::w8a8, 1.6, 1.6, 0.75},   {F::w4a8, 1.6, 1.6, 0.75},      {F::gptq, 0.9, 0.9, 0.9},
    {F::awq, 0.5, 0.5, 0.8},     {F::mxfp4, 0.7, 0.7, 0.8},      {F::nvfp4, 0.7, 0.7, 0.8},
    {F::q2_k, 0.10, 0.1, 0.94},  {F::q3_k, 0.08, 0.1, 0.94},     {F::q4_k, 0.11, 0.1, 0.94},
    {F::q5_k, 0.09, 0.1, 0.94},  {F::q6_k, 0.09, 0.1, 0.94},     {F::q4_0, 0.17, 0.13, 0.94},
    {F::q4_1, 0.17, 0.13, 0.94}, {F::q5_0, 0.10, 0.12, 0.94},    {F::q5_1, 0.10, 0.12, 0.94},
    {F::q8_0, 0.11, 0.1, 0.94},  {F::iq, 0.09, 0.09, 0.9},       {F::iq3, 0.09, 0.09, 0.9},
    {F::iq4, 0.09, 0.09, 0.9},   {F::wide, 0.9, 0.9, 0.94},
};
static_assert(std::size(kFormats) == kFormatKernels);

constexpr std::string_view format_unit(FormatParameter p) {
  using enum FormatParameter;
  const bool time = p == host || p == reduce || p == launch || p == block || p == step || p == quantise_row;
  return time ? "s" : p == cache_rate || p == store_rate ? "B/s" : "";
}
constexpr int format_clock_power(FormatParameter p) {
  using enum FormatParameter;
  return p == cache_rate || p == store_rate ? 1 : p == block || p == step || p == quantise_row ? -1 : 0;
}
constexpr std::string_view kFormatMeaning[] = {
    "of the 16-bit matrix peak, unpacking weights on the way; of narrow products, of their own",
    "the same of the kernel for few rows",
    "of the memory bandwidth, on packed weights",
    "of the host, on top of every product it launches",
    "elements that one core unpacks in a cycle (ggml)",
    "every product on the device, adding up what stripes of its work share (Marlin)",
    "every narrow product",
    "exponent, of narrow products",
    "operands that one core of a narrow product gets from the cache",
    "of one core writing the last results of a narrow product",
    "of a core's time, per tile of a narrow product",
    "of a core's time, per 128 of the depth of a narrow product: its scales",
    "of the memory bandwidth, of the kernel that makes activations narrow",
    "of a core's time, per row that it makes narrow, of measured rows by themselves",
};

constexpr std::string_view kCallMeaning = "of a framework that calls such an op by itself, until its kernels run";
constexpr std::string_view kPassesMeaning =
    "that the framework's kernels make over such an op's tensors where one kernel makes one";

const std::array<ParameterInfo, kAllParameters>& table() {
  static const std::array<ParameterInfo, kAllParameters> infos = [] {
    std::array<ParameterInfo, kAllParameters> all;
    for (const Entry& e : kEntries) {
      const bool of_core = e.parameter == gemm_cache_rate || e.parameter == gemm_store_rate ||
                           e.parameter == prefill_exponential_rate || e.parameter == latent_prompt_exponential_rate ||
                           e.parameter == decode_head_rate || e.parameter == triton_rate;
      const int power = of_core ? 1 : e.parameter == experts_start ? -1 : 0;
      all[index(e.parameter)] = {std::string(e.name), e.unit, e.initial, e.spread, e.min, e.max, e.meaning, power};
    }
    for (const Format& f : kFormats) {
      const std::string prefix = "format." + std::string(name(f.kernel));
      const auto set = [&](FormatParameter p, std::string_view suffix, double initial, double spread, double min,
                           double max) {
        all[index(f.kernel, p)] = {prefix + std::string(suffix),
                                   format_unit(p),
                                   initial,
                                   spread,
                                   min,
                                   max,
                                   kFormatMeaning[static_cast<std::size_t>(p)],
                                   format_clock_power(p)};
      };
      set(FormatParameter::share, ".share", f.share, 0.5, 0.01, 4);
      set(FormatParameter::small_share, ".small_share", f.small_share, 0.5, 0.01, 4);
      set(FormatParameter::memory_share, ".memory_share", f.memory_share, 0.2, 0.1, 1);
      // Types that activations are brought to first take two or three kernels more.
      set(FormatParameter::host, ".host", multiplies_in_8_bits(f.kernel) ? 1.6e-5 : 3e-6, 1.0, 1e-8, 1e-3);
      set(FormatParameter::unpack_rate, ".unpack_rate", 25, 0.7, 0.1, 1000);
      set(FormatParameter::reduce, ".reduce", 1e-9, 0.7, 1e-9, 1e-4);
      set(FormatParameter::launch, ".launch", 3.5e-6, 0.7, 1e-7, 4e-5);
      set(FormatParameter::overlap, ".overlap", 2, 0.7, 1, 12);
      set(FormatParameter::cache_rate, ".cache_rate", 2.5e11, 0.7, 1e9, 2e12);
      set(FormatParameter::store_rate, ".store_rate", 1.5e10, 1, 1e9, 1e12);
      set(FormatParameter::block, ".block", 1e-6, 0.7, 1e-9, 4e-5);
      set(FormatParameter::step, ".step", 5e-8, 0.7, 1e-10, 1e-5);
      set(FormatParameter::quantise_share, ".quantise_share", 0.7, 0.5, 0.05, 4);
      set(FormatParameter::quantise_row, ".quantise_row", 2e-8, 1.5, 1e-9, 1e-5);
      for (std::size_t i = 0; i < kExpertParameters; ++i) {
        const ParameterInfo& wide = all[index(experts_product) + i];
        ParameterInfo& own = all[index(f.kernel, FormatParameter::experts_product) + i];
        own = wide;
        own.name = prefix + ".experts_" + wide.name.substr(std::string_view("experts.").size());
      }
    }
    for (const std::string_view kind : kCalled) {
      const std::string name = "eager." + std::string(kind);
      all[*index(kind, CallParameter::call)] = {name, "s", 5e-6, 1, 1e-9, 1e-2, kCallMeaning};
      all[*index(kind, CallParameter::passes)] = {name + "_passes", "", 1, 1, 0.1, 100, kPassesMeaning};
    }
    return all;
  }();
  return infos;
}

}  // namespace

const ParameterInfo& parameter_info(std::size_t index) { return table().at(index); }

std::optional<std::size_t> find_parameter(std::string_view name) {
  for (std::size_t i = 0; i < kAllParameters; ++i) {
    if (table()[i].name == name) return i;
  }
  return std::nullopt;
}

bool of_host(std::size_t index) {
  const std::string_view name = table().at(index).name;
  return name.starts_with("step.") || name.starts_with("host.") || name == "launch.gap" || name.ends_with(".host");
}

double get(const ParameterValues& values, Parameter p) { return values[index(p)]; }

std::string_view name(ProductTiles tiles) { return kProductTilesNames[static_cast<std::size_t>(tiles)]; }
std::string_view name(Power power) { return kPowerNames[static_cast<std::size_t>(power)]; }
std::optional<Power> parse_power(std::string_view text) {
  for (const Power power : {Power::short_run, Power::sustained}) {
    if (text == name(power)) return power;
  }
  return std::nullopt;
}
std::string_view name(AttentionKernels kernels) { return kAttentionKernelsNames[static_cast<std::size_t>(kernels)]; }
std::string_view name(Dispatch dispatch) { return kDispatchNames[static_cast<std::size_t>(dispatch)]; }

}  // namespace llmperf::hardware
