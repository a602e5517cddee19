// What ops are computed on when they are replayed: every backend fills the operands of an op alike, so that results can
// be compared. Element i of operand j is fill_value(j, i) times the scale given below, rounded to the op's type. All
// tensors are row-major, without gaps.
//
//  op                       operands (number: shape, scale)                              result
//  gemm                     0: [batch, m, k]; 1: [batch, n, k], 1 / sqrt(k)              [batch, m, n]: of each x w^T
//    int8 (w8a8)            the same, rounded(127 fill_value) with a scale of 1 / 127    [m, n] in 16 bits or fp32
//                           for x and 1 / (127 sqrt(k)) for w; a device may quantise x
//                           itself, by the largest element of each row
//    weights int8, w4a16    x in the op's type; w of 8- or 4-bit integers with a scale   [m, n]
//                           of 1 / (127 sqrt(k)) or 1 / (7 sqrt(k)), the same for all
//                           groups: rounded(127 or 7 fill_value)
//  matmul_all_reduce        2 r: x [m, k] and 2 r + 1: w [n, k], 1 / sqrt(k), of rank r  [m, n]: the sum over ranks
//  attention_*              0: Q [batch, q_len, heads, head_dim]; 1, 2: K and V          as Q
//                           [batch, kv_len, kv_heads, head_dim]; scores over
//                           sqrt(head_dim); causal: query i sees kv_len - q_len + i + 1
//  mla_prefill              likewise, all heads with keys of 192 and values of 128       [batch, q_len, heads, 128]
//  mla_decode               0: Q [batch, q_len, heads, 576]; 1: latents [batch,          [batch, q_len, heads, 512]
//                           kv_len, 576], of which the first 512 elements are the
//                           values; scores over sqrt(192); causal
//  moe                      0: x [m, hidden]; of the experts / ep experts here, width    [m, hidden]: the sum over a
//                           w = inter / tp: 1: [w gates then w ups, or w ups, hidden],   token's experts here
//                           1 / sqrt(hidden); 2: [hidden, w], 1 / (topk sqrt(w)), which
//                           weighs all of a token's experts alike. Down(SiLU(gate) up)
//                           or Down(SiLU(up)). Row t topk + j, token t's pick j, goes to
//                           expert number r = (t topk + j) mod experts; of power_law_A
//                           the r-th expert of drawn_counts() takes that many rows after
//                           those of the experts before it, row i of token i mod m. Here
//                           are those of r mod ep = 0
//  vector:rms_norm          0: x [m, n]; 1: gamma [n]; epsilon kEpsilon                  [m, n]
//  vector:layer_norm        0: x; 1: gamma; 2: beta; epsilon kEpsilon                    [m, n]
//  vector:add, multiply     0: [m, n]; 1: [m, n]                                         [m, n]
//  vector:add_rms_norm      0: x; 1: residual [m, n]; 2: gamma                           [m, n] normed, then [m, n] sum
//  vector:add_layer_norm    0: x; 1: residual; 2: gamma; 3: beta                         likewise
//  vector:rope              0: queries [tokens, heads, n]; 1: keys [tokens, kv_heads,    queries, then keys
//                           n], tokens (heads + kv_heads) = m; without heads all rows
//                           are queries of one head. Token t is at position t; element
//                           i < n / 2 is rotated with i + n / 2 by t kRopeBase^(-2 i / n)
//  vector:activation        0: x [m, n]: SiLU                                            [m, n]
//  vector:gated_activation  0: [m, 2 n], gate before up: SiLU(gate) up                   [m, n]
//  vector:softmax           0: [m, n], of each row                                       [m, n]
//  vector:sampling          0: [m, n]: the largest element's index of each row           [m]
//  vector:elementwise       0: [m, n]: copied                                            [m, n]
//  gather                   0: table [k, n]; row r is number gathered_row(r, k)          [m, n]
//  kv_write                 0: keys [m, kv_heads, head_dim]; 1: values, to places 0 to   keys, then values, as cached
//                           m - 1 of a cache
//  scan:gated_delta_net,    0: queries, 1: keys [batch, q_len, kv_heads, k], 1 / sqrt(k);  [batch, q_len, heads, n]: of
//  scan:mamba2              2: values [batch, q_len, heads, n]; of every token and head    each token the state's
//                           3: decay, 7/8 + fill_value / 8; 4: how much is written, (1 +   transpose times the query,
//                           fill_value) / 2; one token: 5: state [batch, heads, k, n] in   after its own key and value
//                           fp32, several: 0. It decays; then the key times 4 times the    went in
//                           value is added, of the delta net the value less what the state
//                           has for the key
//  all_reduce               r: [bytes / element size] of rank r                          the sum, as rank 0 has it
//  all_gather               r: [elements / ranks] of rank r                              all of it, as rank 0 has it
//  reduce_scatter           r: [elements] of rank r                                      rank 0's part of the sum
//  all_to_all               r: [elements] of rank r                                      what rank 0 has afterwards
//
// Parameters of norms (gamma) are 1 + fill_value / 8, beta is fill_value / 8.
#pragma once

#include <bit>
#include <cstdint>

namespace llmperf::replay {

inline constexpr double kEpsilon = 1e-6;
inline constexpr double kRopeBase = 10000;

// In [-1, 1), spread evenly, the same on every machine (a 32-bit finaliser of MurmurHash3 on both numbers).
constexpr float fill_value(std::uint32_t operand, std::uint64_t index) {
  auto h = static_cast<std::uint32_t>(index) * 0x9e3779b9U + static_cast<std::uint32_t>(index >> 32U) * 0x7f4a7c15U +
           (operand + 1U) * 0x85ebca6bU;
  h ^= h >> 16U;
  h *= 0x85ebca6bU;
  h ^= h >> 13U;
  h *= 0xc2b2ae35U;
  h ^= h >> 16U;
  return static_cast<float>(static_cast<std::int32_t>(h >> 8U) - (1 << 23)) * (1.0F / static_cast<float>(1 << 23));
}

// bf16 is the upper half of fp32: rounded to nearest, ties to even; what is not a number stays none.
constexpr std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}
constexpr float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U); }

constexpr std::int64_t gathered_row(std::int64_t row, std::int64_t table) {
  return row * 7919 % (table > 0 ? table : 1);
}

}  // namespace llmperf::replay
