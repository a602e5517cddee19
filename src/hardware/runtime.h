// What a software stack does with the op list: which kernels it fuses and what it keeps. Options change ops, never
// efficiencies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmperf::hardware {

// How a chain of element-wise operations runs where no kernel does all of it: as one kernel nonetheless (an ideal), as
// the kernels of an eager framework, or as those that a graph compiler leaves (graph/decoder_graph.cpp).
enum class Chains : unsigned char { one_kernel, framework, compiled };

// What a stack is used for. Each has its own switches; those of the other stay as they are.
enum class Workload : unsigned char { language, video, training };
std::string_view name(Workload workload);

struct RuntimeOptions {
  bool flash_attention = true;   // one kernel, scores stay on chip, masked blocks are skipped; off: scores, mask,
                                 // softmax, weighted sum over the full rectangle, K and V repeated to the query heads
  bool fused_qkv = true;         // one GEMM for q, k and v
  bool fused_gate_up = true;     // one GEMM for gate and up
  bool fused_norm = true;        // a norm is one kernel; off: a chain
  bool fused_add_norm = true;    // residual add and the norm that follows in one kernel
  bool fused_rope = true;        // q and k rotated by one kernel
  bool fused_activation = true;  // act(gate) * up in one kernel
  bool static_kv = true;  // cache written in place; off: the cache is concatenated, read and written whole each step
  bool last_token_logits = true;  // lm_head on the last token of a sequence only; off: on every token
  // Of video diffusion transformers (graph/stdit_graph.h); off: the kernels of eager PyTorch.
  bool fused_qk_norm = true;     // RMSNorm of query and key heads in one kernel each; off: in fp32, step by step
  bool fused_modulate = true;    // LayerNorm, scale and shift in one kernel
  bool fused_gate = true;        // gate and residual in one kernel
  bool skip_frame_mask = true;   // off: both sides of the mask of conditioned frames are computed, and selected from
  bool flash_any_length = true;  // off: flash attention only where a sequence is longer than the number of sequences
  // In steps of prompts o_proj and down_proj run beside the all-reduce of their result (matmul and collective in one
  // kernel: MC2). Not part of "all": few stacks do it.
  bool overlap_collectives = false;
  // Grouped keys and values are copied to all query heads before attention, in every step, though its kernel could
  // share them: a habit of a model's code, not of a kernel. Not part of "all": profiles say which models have it.
  bool repeated_kv = false;
  // In steps of new tokens alone the kernel that sums a block over the tensor axis adds the residual and takes the norm
  // that follows, so that the sum itself crosses no memory. Not part of "all".
  bool fused_all_reduce_norm = false;
  // In steps of new tokens alone everything before latent attention, from the projections to latents to the queries'
  // way into the latent space and the cache, is one kernel (CANN's MlaProlog). Not part of "all".
  bool fused_mla_prolog = false;
  // Latent attention over prompts meets the cached latents, too, rather than expand keys and values from them: three
  // times the FLOPs, and no copies (SGLang with FlashAttention-3). Not part of "all".
  bool absorbed_prompts = false;
  // The latents of queries, and of keys and values, are one GEMM. Not part of "all".
  bool fused_qkv_a = false;
  // A shared expert as wide as the routed ones is one more of them, which every token takes; not where experts lie on
  // ranks of their own. Not part of "all".
  bool fused_shared_expert = false;
  // Norms, activations, rope, gates and residual adds run inside the products beside them: a norm on the inputs as they
  // come (its scale is applied to the results), the others on the results before they leave; keys and values go to the
  // cache at once. Not part of "all": kernels of arrays of tiles do it.
  bool joined_vectors = false;
  // On an array of tiles the first weights of a product are loaded while the op before it runs. Not part of "all".
  bool prefetch_weights = false;
  Chains chains = Chains::one_kernel;
  // Tokens per sequence that a cache written in place has room for, where attention over cached tokens reads them all
  // whatever the sequence's length; 0: it reads those present.
  std::int64_t allocated_kv = 0;
  // Rows of Q that share one pass over K and V in flash attention; 0: all rows (K and V are read once). 1 is the
  // published closed form, which charges a read for every (query, key) pair.
  std::int64_t attention_query_tile = 0;

  bool operator==(const RuntimeOptions&) const = default;
};

// Names of the switches, as --options takes them.
const std::vector<std::string>& runtime_option_names(Workload workload = Workload::language);
// Whether `name` is a switch or one of the names that tuning guides use for one or two of them: fused_add_rmsnorm
// (fused_norm and fused_add_norm), last_token_head (last_token_logits), mc2 (overlap_collectives).
bool is_option(std::string_view name, Workload workload = Workload::language);
// Switches what `name` stands for. Throws Error(bad_input) with the nearest names.
void set_option(RuntimeOptions& options, std::string_view name, bool on, Workload workload = Workload::language);
// "all", "none" (or "baseline"), or a list separated by commas or plus signs: names switch on from none; after "all"
// (or alone) "no_NAME" switches off. "all,no_fused_qkv" is everything but fused QKV. Throws Error(bad_input) with the
// nearest names.
RuntimeOptions parse_runtime_options(std::string_view list, Workload workload = Workload::language);
// The list that parse_runtime_options reads back: "all", "none", "all,no_x" or "x,y", whichever is shortest. Switches
// only: not chains, allocated_kv and attention_query_tile.
std::string format_runtime_options(const RuntimeOptions& options, Workload workload = Workload::language);

}  // namespace llmperf::hardware
