// What a software stack does with the op list: which kernels it fuses and what it keeps. Options change ops, never
// efficiencies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmperf::hardware {

struct RuntimeOptions {
  bool flash_attention = true;   // one kernel, scores stay on chip, masked blocks are skipped; off: scores, mask,
                                 // softmax, weighted sum over the full rectangle, K and V repeated to the query heads
  bool fused_qkv = true;         // one GEMM for q, k and v
  bool fused_gate_up = true;     // one GEMM for gate and up
  bool fused_add_norm = true;    // residual add and the norm that follows in one kernel
  bool fused_rope = true;        // q and k rotated by one kernel
  bool fused_activation = true;  // act(gate) * up in one kernel
  bool static_kv = true;  // cache written in place; off: the cache is concatenated, read and written whole each step
  bool last_token_logits = true;  // lm_head on the last token of a sequence only; off: on every token
  // Rows of Q that share one pass over K and V in flash attention; 0: all rows (K and V are read once). 1 is the
  // published closed form, which charges a read for every (query, key) pair.
  std::int64_t attention_query_tile = 0;

  bool operator==(const RuntimeOptions&) const = default;
};

// Names of the switches, as --options takes them.
const std::vector<std::string>& runtime_option_names();
// "all", "none", or a comma-separated list: names switch on from none; after "all" (or alone) "no_NAME" switches off.
// "all,no_fused_qkv" is everything but fused QKV. Throws Error(bad_input) with the nearest names.
RuntimeOptions parse_runtime_options(std::string_view list);
// The list that parse_runtime_options reads back: "all", "none", "all,no_x" or "x,y", whichever is shortest.
std::string format_runtime_options(const RuntimeOptions& options);

}  // namespace llmperf::hardware
