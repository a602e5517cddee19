#include "model/gguf_mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/error.h"
#include "base/text.h"
#include "model/gguf_mix_rules.h"

namespace llmperf::model {
namespace {

using F = GgufFtype;
using G = GgmlType;

constexpr std::array kEras = {GgufEra::v2024_02, GgufEra::v2024, GgufEra::v2025, GgufEra::v2026};
constexpr std::array<std::string_view, kEras.size()> kEraNames = {"2024-02", "2024", "2025", "2026"};

// In the order of GgufFtype.
constexpr GgufFileType kFileTypes[] = {
    {F::f32, "f32", G::f32},
    {F::f16, "f16", G::f16},
    {F::bf16, "bf16", G::bf16, false, GgufEra::v2024},
    {F::q8_0, "q8_0", G::q8_0},
    {F::q6_k, "q6_k", G::q6_k},
    {F::q5_1, "q5_1", G::q5_1},
    {F::q5_k_m, "q5_k_m", G::q5_k},
    {F::q5_0, "q5_0", G::q5_0},
    {F::q5_k_s, "q5_k_s", G::q5_k},
    {F::q4_1, "q4_1", G::q4_1},
    {F::q4_k_m, "q4_k_m", G::q4_k},
    {F::iq4_nl, "iq4_nl", G::iq4_nl, false, GgufEra::v2024},
    {F::q4_k_s, "q4_k_s", G::q4_k},
    {F::q4_0, "q4_0", G::q4_0},
    {F::iq4_xs, "iq4_xs", G::iq4_xs, false, GgufEra::v2024},
    {F::mxfp4_moe, "mxfp4_moe", G::mxfp4, false, GgufEra::v2025},  // experts; everything else is Q8_0
    {F::q3_k_l, "q3_k_l", G::q3_k},
    {F::q3_k_m, "q3_k_m", G::q3_k},
    {F::iq3_m, "iq3_m", G::iq3_s, false, GgufEra::v2024},
    {F::iq3_s, "iq3_s", G::iq3_s, false, GgufEra::v2024},
    {F::q3_k_s, "q3_k_s", G::q3_k},
    {F::iq3_xs, "iq3_xs", G::iq3_s, false, GgufEra::v2024},
    {F::iq3_xxs, "iq3_xxs", G::iq3_xxs, true, GgufEra::v2024},
    {F::q2_k, "q2_k", G::q2_k},
    {F::q2_k_s, "q2_k_s", G::q2_k, true},
    {F::iq2_m, "iq2_m", G::iq2_s, true, GgufEra::v2024},
    {F::iq2_s, "iq2_s", G::iq2_xs, true, GgufEra::v2024},
    {F::iq2_xs, "iq2_xs", G::iq2_xs, true, GgufEra::v2024},
    {F::tq2_0, "tq2_0", G::tq2_0, false, GgufEra::v2024},
    {F::iq2_xxs, "iq2_xxs", G::iq2_xxs, true, GgufEra::v2024},
    {F::tq1_0, "tq1_0", G::tq1_0, false, GgufEra::v2024},
    {F::iq1_m, "iq1_m", G::iq1_m, true, GgufEra::v2024},
    {F::iq1_s, "iq1_s", G::iq1_s, true, GgufEra::v2024},
};

void require_era(const GgufFileType& type, GgufEra era) {
  if (era >= type.since) return;
  std::vector<std::string> eras;
  for (const GgufEra each : kEras) {
    if (each >= type.since) eras.emplace_back(name(each));
  }
  throw Error::bad_input(fmt::format("llama.cpp of era {} cannot make {} files", name(era), type.name),
                         fmt::format("eras that can: {}", join(eras, ", ")));
}

// The loader's idea of a 70B: 80 layers, and in the Llama family grouped heads (LLaMA 65B has 80 layers too).
bool is_70b(const Decoder& model, std::int64_t group) {
  constexpr std::array<std::string_view, 3> kLlamaFamily = {"llama", "mistral", "mixtral"};
  if (model.num_layers() != 80) return false;
  if (model.architecture == "qwen2") return true;
  return group > 1 && std::find(kLlamaFamily.begin(), kLlamaFamily.end(), model.architecture) != kLlamaFamily.end();
}

Mix make_mix(const Decoder& model, std::span<const GgufTensor> tensors, const GgufFileType& type, GgufEra era) {
  const Attention& attention = model.kinds[model.layer_kinds.front()].attention;
  Mix mix{.file = type.id, .base = type.type, .imatrix = type.imatrix, .era = era};
  mix.has_output =
      std::any_of(tensors.begin(), tensors.end(), [](const GgufTensor& t) { return t.role == Role::lm_head; });
  mix.group = attention.heads / attention.kv_heads;
  mix.is_70b = is_70b(model, mix.group);
  mix.layers = model.num_layers();
  for (const Layer& layer : model.kinds) {
    if (layer.feed_forward.experts) mix.experts = layer.feed_forward.experts->count;
  }
  return mix;
}

bool is_ffn_down(Role role) { return role == Role::down || role == Role::expert_down || role == Role::shared_down; }

}  // namespace

std::span<const GgufEra> gguf_eras() { return kEras; }

std::string_view name(GgufEra era) { return kEraNames[static_cast<std::size_t>(era)]; }

GgufEra parse_gguf_era(std::string_view text) {
  const auto found = std::find(kEraNames.begin(), kEraNames.end(), text);
  if (found == kEraNames.end()) {
    const std::vector<std::string> known(kEraNames.begin(), kEraNames.end());
    throw Error::bad_input(fmt::format("unknown era of llama.cpp {}", quote(text)),
                           fmt::format("known eras: {}", join(known, ", ")));
  }
  return kEras[static_cast<std::size_t>(found - kEraNames.begin())];
}

std::span<const GgufFileType> gguf_file_types() { return kFileTypes; }

const GgufFileType* find_gguf_file_type(std::string_view name) {
  const std::string lower = to_lower(name);
  const auto* found = std::find_if(std::begin(kFileTypes), std::end(kFileTypes),
                                   [&](const GgufFileType& type) { return type.name == lower; });
  return found == std::end(kFileTypes) ? nullptr : found;
}

std::vector<GgufTensor> quantised_tensors(const Decoder& model, const GgufFileType& type, GgufEra era) {
  require_era(type, era);
  std::vector<GgufTensor> tensors = gguf_tensors(model, {.split_kv_b = era >= GgufEra::v2025});
  Mix mix = make_mix(model, tensors, type, era);
  const bool is_float = info(type.type).block == 1;
  for (GgufTensor& tensor : tensors) {
    if (tensor.type == GgmlType::f32) {
      // The converter of those days left routers in 16 bits.
      const bool wide = tensor.role != Role::router || era != GgufEra::v2024_02 || type.type == GgmlType::f32;
      if (!wide) tensor.type = GgmlType::f16;
      continue;
    }
    tensor.type = is_float ? type.type : fitting_type(mixed_type(mix, tensor), tensor.k, era);
    if (is_ffn_down(tensor.role)) ++mix.ffn_down_seen;
  }
  return tensors;
}

}  // namespace llmperf::model
