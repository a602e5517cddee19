// The quantiser's choice per tensor. Read from llama_tensor_get_type of llama.cpp as of January 2024, April 2024, early
// 2025 and 2026 (llama.cpp, later src/llama-quant.cpp). Each category of tensors has a table; the first row that names
// the file type and whose conditions all hold wins, and without one the tensor gets the file's base type. The rules for
// Falcon are left out, as no such model is known here.
#include "model/gguf_mix_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/error.h"

namespace llmperf::model {
namespace {

using enum GgmlType;
using F = GgufFtype;

// Conditions; a row's are combined with |. i is the position among the model's tensors of that category, n their
// number.
enum : unsigned {
  kAlways = 0,
  kFirst2 = 1 << 0,
  kFirst4 = 1 << 1,
  kFirst8th = 1 << 2,   // i < n/8
  kFirst16th = 1 << 3,  // i < n/16
  kMoreBits = 1 << 4,   // the first and last eighth, and every third layer between
  kMiddle = 1 << 5,     // neither in the first nor in the last eighth
  kGroups4 = 1 << 6,    // four query heads or more share a key head
  kExperts4 = 1 << 7,   // four experts or more
  kExperts8 = 1 << 8,   // exactly eight experts (Mixtral)
  kImatrix = 1 << 9,
  kNoImatrix = 1 << 10,
};

struct Rule {
  GgufFtype file;
  unsigned conditions;
  GgmlType type;
};

bool more_bits(std::int64_t i, std::int64_t n) { return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2; }

bool holds(unsigned conditions, const Mix& mix, std::int64_t i) {
  const std::int64_t n = mix.layers;
  const auto met = [conditions](unsigned condition, bool state) { return (conditions & condition) == 0 || state; };
  return met(kFirst2, i < 2) && met(kFirst4, i < 4) && met(kFirst8th, i < n / 8) && met(kFirst16th, i < n / 16) &&
         met(kMoreBits, more_bits(i, n)) && met(kMiddle, i >= n / 8 && i < 7 * n / 8) &&
         met(kGroups4, mix.group >= 4) && met(kExperts4, mix.experts >= 4) && met(kExperts8, mix.experts == 8) &&
         met(kImatrix, mix.imatrix) && met(kNoImatrix, !mix.imatrix);
}

GgmlType apply(std::span<const Rule> rules, const Mix& mix, std::int64_t i) {
  const auto rule = std::find_if(rules.begin(), rules.end(),
                                 [&](const Rule& r) { return r.file == mix.file && holds(r.conditions, mix, i); });
  return rule == rules.end() ? mix.base : rule->type;
}

// The 1-bit and 2-bit i-quants have rules of their own for most tensors.
bool is_low_bit(GgufFtype file) {
  return file == F::iq1_s || file == F::iq1_m || file == F::iq2_xxs || file == F::iq2_xs || file == F::iq2_s ||
         file == F::iq2_m;
}

GgmlType output_type(const Mix& mix, const GgufTensor& tensor) {
  constexpr Rule kRules[] = {{F::iq1_s, kAlways, q5_k},   {F::iq1_m, kAlways, q5_k}, {F::iq2_xxs, kAlways, q5_k},
                             {F::iq2_xs, kAlways, q5_k},  {F::iq2_s, kAlways, q5_k}, {F::iq2_m, kAlways, q5_k},
                             {F::iq3_xxs, kAlways, q5_k}, {F::q8_0, kAlways, q8_0},  {F::mxfp4_moe, kAlways, q8_0}};
  if (tensor.k % info(mix.base).block != 0) return q8_0;
  Mix otherwise = mix;
  otherwise.base = q6_k;
  return apply(kRules, otherwise, 0);
}

GgmlType token_embedding_type(const Mix& mix) {
  constexpr Rule kRules[] = {{F::iq1_s, kAlways, q2_k},    {F::iq1_m, kAlways, q2_k},  {F::iq2_xxs, kAlways, q2_k},
                             {F::iq2_xs, kAlways, q2_k},   {F::iq2_s, kAlways, iq3_s}, {F::iq2_m, kAlways, iq3_s},
                             {F::iq3_xxs, kAlways, iq3_s}, {F::tq1_0, kAlways, q4_k},  {F::tq2_0, kAlways, q4_k}};
  return apply(kRules, mix, 0);
}

GgmlType attention_v_type(const Mix& mix, std::int64_t i) {
  constexpr Rule kLowBit[] = {{F::iq1_s, kGroups4, q4_k},   {F::iq1_s, kExperts4, q4_k},   {F::iq1_s, kAlways, q2_k},
                              {F::iq1_m, kGroups4, q4_k},   {F::iq1_m, kExperts4, q4_k},   {F::iq1_m, kAlways, q2_k},
                              {F::iq2_xxs, kGroups4, q4_k}, {F::iq2_xxs, kExperts4, q4_k}, {F::iq2_xxs, kAlways, q2_k},
                              {F::iq2_xs, kGroups4, q4_k},  {F::iq2_xs, kExperts4, q4_k},  {F::iq2_xs, kAlways, q2_k},
                              {F::iq2_s, kGroups4, q4_k},   {F::iq2_s, kExperts4, q4_k},   {F::iq2_s, kAlways, iq3_s},
                              {F::iq2_m, kGroups4, q4_k},   {F::iq2_m, kExperts4, q4_k},   {F::iq2_m, kAlways, iq3_s}};
  constexpr Rule kRules[] = {
      {F::q2_k, kGroups4, q4_k},    {F::q2_k, kAlways, q3_k},        {F::q2_k_s, kGroups4, q4_k},
      {F::iq3_xxs, kGroups4, q4_k}, {F::iq3_xxs, kNoImatrix, iq3_s}, {F::iq3_xs, kGroups4, q4_k},
      {F::iq3_s, kGroups4, q4_k},   {F::iq3_m, kAlways, q4_k},       {F::q3_k_m, kFirst2, q5_k},
      {F::q3_k_m, kAlways, q4_k},   {F::q3_k_l, kAlways, q5_k},      {F::iq4_nl, kGroups4, q5_k},
      {F::iq4_xs, kGroups4, q5_k},  {F::q4_k_m, kMoreBits, q6_k},    {F::q5_k_m, kMoreBits, q6_k},
      {F::q4_k_s, kFirst4, q5_k}};
  if (is_low_bit(mix.file)) return apply(kLowBit, mix, i);
  if (mix.experts == 8) return q8_0;
  const GgmlType type = apply(kRules, mix, i);
  return mix.is_70b && (type == q3_k || type == q4_k) ? q5_k : type;
}

GgmlType attention_k_type(const Mix& mix) {
  constexpr Rule kRules[] = {{F::iq3_xs, kAlways, iq3_xxs}, {F::iq3_xxs, kAlways, iq2_s}};
  if (mix.experts == 8) return is_low_bit(mix.file) ? q4_k : q8_0;
  return apply(kRules, mix, 0);
}

GgmlType attention_q_type(const Mix& mix) {
  constexpr Rule kRules[] = {{F::iq3_xs, kAlways, iq3_xxs}, {F::iq3_xxs, kAlways, iq2_s}};
  return apply(kRules, mix, 0);
}

GgmlType fused_qkv_type(const Mix& mix, std::int64_t i) {
  constexpr Rule kRules[] = {{F::q3_k_m, kAlways, q4_k},
                             {F::q3_k_l, kAlways, q4_k},
                             {F::iq3_m, kAlways, q4_k},
                             {F::q4_k_m, kAlways, q5_k},
                             {F::q5_k_m, kAlways, q6_k}};
  if (mix.era >= GgufEra::v2026) return attention_v_type(mix, i);
  return apply(kRules, mix, i);
}

GgmlType attention_output_type(const Mix& mix) {
  constexpr Rule kEightExperts[] = {{F::iq1_s, kAlways, q5_k},  {F::iq1_m, kAlways, q5_k},  {F::iq2_xxs, kAlways, q5_k},
                                    {F::iq2_xs, kAlways, q5_k}, {F::iq2_s, kAlways, q5_k},  {F::iq2_m, kAlways, q5_k},
                                    {F::q2_k, kAlways, q5_k},   {F::q3_k_s, kAlways, q5_k}, {F::q3_k_m, kAlways, q5_k},
                                    {F::q4_k_s, kAlways, q5_k}, {F::q4_k_m, kAlways, q5_k}, {F::iq3_xxs, kAlways, q5_k},
                                    {F::iq3_xs, kAlways, q5_k}, {F::iq3_s, kAlways, q5_k},  {F::iq3_m, kAlways, q5_k},
                                    {F::iq4_nl, kAlways, q5_k}, {F::iq4_xs, kAlways, q5_k}};
  constexpr Rule kRules[] = {{F::iq1_s, kAlways, iq2_xxs}, {F::iq1_m, kAlways, iq2_xxs}, {F::iq2_s, kAlways, iq3_s},
                             {F::iq2_m, kAlways, iq3_s},   {F::q2_k, kAlways, q3_k},     {F::iq3_xxs, kAlways, iq3_s},
                             {F::q3_k_m, kAlways, q4_k},   {F::q3_k_l, kAlways, q5_k},   {F::iq3_m, kAlways, q4_k}};
  return mix.experts == 8 ? apply(kEightExperts, mix, 0) : apply(kRules, mix, 0);
}

GgmlType ffn_down_type(const Mix& mix, std::int64_t layer) {
  constexpr Rule kLowBit[] = {{F::iq1_s, kFirst8th, q2_k},  {F::iq1_m, kFirst8th, q2_k},  {F::iq2_xxs, kFirst8th, q2_k},
                              {F::iq2_xs, kFirst8th, q2_k}, {F::iq2_s, kFirst8th, iq3_s}, {F::iq2_m, kFirst8th, iq3_s}};
  constexpr Rule kRules[] = {{F::q2_k, kAlways, q3_k},
                             {F::q2_k_s, kFirst8th, q4_k},
                             {F::iq3_xxs, kNoImatrix | kFirst8th, q4_k},
                             {F::iq3_xxs, kNoImatrix, q3_k},
                             {F::q3_k_m, kFirst16th, q5_k},
                             {F::q3_k_m, kAlways, q4_k},
                             {F::iq3_m, kFirst8th, q4_k},
                             {F::iq3_m, kExperts8 | kMoreBits, q4_k},
                             {F::q3_k_l, kAlways, q5_k},
                             {F::q4_k_m, kMoreBits, q6_k},
                             {F::iq4_nl, kNoImatrix | kFirst8th, q5_k},
                             {F::iq4_xs, kNoImatrix | kFirst8th, q5_k},
                             {F::q5_k_m, kMoreBits, q6_k},
                             {F::q4_k_s, kFirst8th, q5_k},
                             {F::q4_0, kImatrix | kFirst8th, q4_1},
                             {F::q5_0, kImatrix | kFirst8th, q5_1}};
  // The low-bit rules count matrices, those of shared experts too; the others go by the layer.
  return is_low_bit(mix.file) ? apply(kLowBit, mix, mix.ffn_down_seen) : apply(kRules, mix, layer);
}

GgmlType ffn_gate_or_up_type(const Mix& mix, std::int64_t layer) {
  constexpr Rule kRules[] = {{F::iq3_xs, kMiddle, iq3_xxs}};
  return apply(kRules, mix, layer);
}

struct Replacement {
  GgmlType wanted;
  GgmlType v2024_02, v2024_and_2025, v2026;
};
// Blocks of 256 are replaced by blocks of 32. What did not exist in v2024_02 repeats the next column.
constexpr Replacement kReplacements[] = {
    {q2_k, q4_0, iq4_nl, q4_0},       {q3_k, q4_1, iq4_nl, q4_0},        {q4_k, q5_0, q5_0, q5_0},
    {q5_k, q5_1, q5_1, q5_1},         {q6_k, q8_0, q8_0, q8_0},          {iq1_s, iq4_nl, iq4_nl, iq4_nl},
    {iq1_m, iq4_nl, iq4_nl, iq4_nl},  {iq2_xxs, iq4_nl, iq4_nl, iq4_nl}, {iq2_xs, iq4_nl, iq4_nl, iq4_nl},
    {iq2_s, iq4_nl, iq4_nl, iq4_nl},  {iq3_xxs, iq4_nl, iq4_nl, iq4_nl}, {iq3_s, iq4_nl, iq4_nl, iq4_nl},
    {iq4_xs, iq4_nl, iq4_nl, iq4_nl}, {tq1_0, q4_0, q4_0, q4_0},         {tq2_0, q4_0, q4_0, q4_0}};

}  // namespace

GgmlType mixed_type(const Mix& mix, const GgufTensor& tensor) {
  const bool is_output = tensor.role == Role::lm_head ||
                         // Until then the embedding of a tied model was quantised like any other.
                         (tensor.role == Role::token_embedding && !mix.has_output && mix.era != GgufEra::v2024_02);
  if (is_output) return output_type(mix, tensor);
  if (mix.file == F::mxfp4_moe) return tensor.count > 1 ? mxfp4 : q8_0;
  switch (tensor.role) {
    case Role::token_embedding: return token_embedding_type(mix);
    case Role::q: return attention_q_type(mix);
    case Role::k: return attention_k_type(mix);
    case Role::v: return attention_v_type(mix, tensor.layer);
    case Role::qkv: return fused_qkv_type(mix, tensor.layer);
    case Role::o: return attention_output_type(mix);
    case Role::down:
    case Role::expert_down:
    case Role::shared_down: return ffn_down_type(mix, tensor.layer);
    case Role::gate:
    case Role::up:
    case Role::gate_up:
    case Role::expert_gate:
    case Role::expert_up:
    case Role::shared_gate:
    case Role::shared_up: return ffn_gate_or_up_type(mix, tensor.layer);
    default: return mix.base;  // the matrices of latent attention
  }
}

GgmlType fitting_type(GgmlType wanted, std::int64_t columns, GgufEra era) {
  if (columns % info(wanted).block == 0) return wanted;
  const auto* found = std::find_if(std::begin(kReplacements), std::end(kReplacements),
                                   [wanted](const Replacement& r) { return r.wanted == wanted; });
  if (found == std::end(kReplacements)) {
    throw Error::bad_input(fmt::format("llama.cpp cannot store rows of {} elements as {}: they are no multiple of {}",
                                       columns, info(wanted).name, info(wanted).block));
  }
  const GgmlType type = era == GgufEra::v2024_02 ? found->v2024_02
                        : era < GgufEra::v2026   ? found->v2024_and_2025
                                                 : found->v2026;
  return columns % info(type).block == 0 ? type : f16;
}

}  // namespace llmperf::model
