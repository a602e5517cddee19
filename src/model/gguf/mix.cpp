// The quantiser's choice per tensor. Read from llama_tensor_get_type of llama.cpp as of January 2024, April 2024, early
// 2025 and 2026 (llama.cpp, later src/llama-quant.cpp). Of the rules of a tensor's category, which goes by its name,
// the first that names the file type and whose conditions all hold wins, and without one the tensor gets the file's
// base type.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "model/gguf/tensors.h"

namespace llmperf::model {
namespace {

using F = GgufFtype;
using G = GgmlType;

constexpr std::array kEras = {GgufEra::v2024_02, GgufEra::v2024, GgufEra::v2025, GgufEra::v2026};
constexpr std::array<std::string_view, kEras.size()> kEraNames = {"2024-02", "2024", "2025", "2026"};

// The widest first. Of mxfp4_moe only the experts are; everything else is Q8_0.
// clang-format off
constexpr GgufFileType kFileTypes[] = {
    {F::f32, "f32", G::f32}, {F::f16, "f16", G::f16}, {F::bf16, "bf16", G::bf16, false, GgufEra::v2024},
    {F::q8_0, "q8_0", G::q8_0}, {F::q6_k, "q6_k", G::q6_k}, {F::q5_1, "q5_1", G::q5_1},
    {F::q5_k_m, "q5_k_m", G::q5_k}, {F::q5_0, "q5_0", G::q5_0}, {F::q5_k_s, "q5_k_s", G::q5_k},
    {F::q4_1, "q4_1", G::q4_1}, {F::q4_k_m, "q4_k_m", G::q4_k},
    {F::iq4_nl, "iq4_nl", G::iq4_nl, false, GgufEra::v2024}, {F::q4_k_s, "q4_k_s", G::q4_k},
    {F::q4_0, "q4_0", G::q4_0}, {F::iq4_xs, "iq4_xs", G::iq4_xs, false, GgufEra::v2024},
    {F::mxfp4_moe, "mxfp4_moe", G::mxfp4, false, GgufEra::v2025}, {F::q3_k_l, "q3_k_l", G::q3_k},
    {F::q3_k_m, "q3_k_m", G::q3_k}, {F::iq3_m, "iq3_m", G::iq3_s, false, GgufEra::v2024},
    {F::iq3_s, "iq3_s", G::iq3_s, false, GgufEra::v2024}, {F::q3_k_s, "q3_k_s", G::q3_k},
    {F::iq3_xs, "iq3_xs", G::iq3_s, false, GgufEra::v2024}, {F::iq3_xxs, "iq3_xxs", G::iq3_xxs, true, GgufEra::v2024},
    {F::q2_k, "q2_k", G::q2_k}, {F::q2_k_s, "q2_k_s", G::q2_k, true},
    {F::iq2_m, "iq2_m", G::iq2_s, true, GgufEra::v2024}, {F::iq2_s, "iq2_s", G::iq2_xs, true, GgufEra::v2024},
    {F::iq2_xs, "iq2_xs", G::iq2_xs, true, GgufEra::v2024}, {F::tq2_0, "tq2_0", G::tq2_0, false, GgufEra::v2024},
    {F::iq2_xxs, "iq2_xxs", G::iq2_xxs, true, GgufEra::v2024}, {F::tq1_0, "tq1_0", G::tq1_0, false, GgufEra::v2024},
    {F::iq1_m, "iq1_m", G::iq1_m, true, GgufEra::v2024}, {F::iq1_s, "iq1_s", G::iq1_s, true, GgufEra::v2024}};
// clang-format on

void require_era(const GgufFileType& type, GgufEra era) {
  if (era >= type.since) return;
  std::vector<std::string> eras;
  for (const GgufEra each : kEras) {
    if (each >= type.since) eras.emplace_back(name(each));
  }
  throw Error::bad_input(fmt::format("llama.cpp of era {} cannot make {} files", name(era), type.name),
                         fmt::format("eras that can: {}", join(eras, ", ")));
}

// ---- The rules

// What a tensor is to the rules.
enum class Category : unsigned char { output, embedding, qkv, v, k, q, o, up, gate, down, other };
constexpr std::size_t kCategories = static_cast<std::size_t>(Category::other) + 1;

// What the rules ask about the file and the model.
struct Mix {
  GgufFtype file;
  GgmlType base;  // what a tensor gets when no rule says otherwise
  bool imatrix = false;
  GgufEra era;
  bool has_output = true;    // output.weight is there; otherwise token_embd.weight serves as it too
  bool is_70b = false;       // 80 layers of an architecture for which the loader calls that a 70B
  bool is_falcon = false;    // the architecture has rules of its own
  std::int64_t group = 1;    // query heads per key and value head of the first layer; 0: it has none
  std::int64_t experts = 0;  // of a mixture layer; 0: dense
  std::int64_t layers = 1;   // of the file
  std::int64_t values = 0;   // value matrices, or such as hold them, that the file has
  std::array<std::int64_t, kCategories> seen = {};  // tensors of each category before this one
};

// Conditions; a row's are combined with |. i is a tensor's position among n.
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
  kFalcon = 1 << 11,  // the architecture
};

using Files = std::uint64_t;  // a bit per GgufFtype
constexpr Files of(std::initializer_list<F> files) {
  Files bits = 0;
  for (const F file : files) bits |= Files{1} << static_cast<unsigned>(file);
  return bits;
}
constexpr Files kAny = ~Files{0};
// The 1-bit and 2-bit i-quants have rules of their own for most tensors.
constexpr Files kLowBit = of({F::iq1_s, F::iq1_m, F::iq2_xxs, F::iq2_xs, F::iq2_s, F::iq2_m});
constexpr Files kWidenedOfEight = kLowBit | of({F::q2_k, F::q3_k_s, F::q3_k_m, F::q4_k_s, F::q4_k_m, F::iq3_xxs,
                                                F::iq3_xs, F::iq3_s, F::iq3_m, F::iq4_nl, F::iq4_xs});
bool is_one_of(Files files, F file) { return (files & of({file})) != 0; }

struct Rule {
  Category category;
  Files files;
  unsigned conditions;
  std::optional<GgmlType> type;  // none: what the file's tensors get
};
using C = Category;
// The first that holds wins.
// clang-format off
constexpr Rule kRules[] = {
    {C::output, kLowBit | of({F::iq3_xxs}), kAlways, G::q5_k},
    {C::output, of({F::q8_0, F::mxfp4_moe}), kAlways, G::q8_0},
    {C::output, kAny, kAlways, G::q6_k},

    {C::embedding, of({F::iq1_s, F::iq1_m, F::iq2_xxs, F::iq2_xs}), kAlways, G::q2_k},
    {C::embedding, of({F::iq2_s, F::iq2_m, F::iq3_xxs}), kAlways, G::iq3_s},
    {C::embedding, of({F::tq1_0, F::tq2_0}), kAlways, G::q4_k},

    {C::v, kLowBit, kGroups4, G::q4_k},
    {C::v, kLowBit, kExperts4, G::q4_k},
    {C::v, of({F::iq2_s, F::iq2_m}), kAlways, G::iq3_s},
    {C::v, kLowBit, kAlways, G::q2_k},
    {C::v, kAny, kExperts8, G::q8_0},
    {C::v, of({F::q2_k, F::q2_k_s, F::iq3_xxs, F::iq3_xs, F::iq3_s}), kGroups4, G::q4_k},
    {C::v, of({F::q2_k}), kAlways, G::q3_k},
    {C::v, of({F::iq3_xxs}), kNoImatrix, G::iq3_s},
    {C::v, of({F::q3_k_m}), kFirst2, G::q5_k},
    {C::v, of({F::q3_k_m, F::iq3_m}), kAlways, G::q4_k},
    {C::v, of({F::q3_k_l}), kAlways, G::q5_k},
    {C::v, of({F::iq4_nl, F::iq4_xs}), kGroups4, G::q5_k},
    {C::v, of({F::q4_k_m, F::q5_k_m}), kMoreBits, G::q6_k},
    {C::v, of({F::q4_k_s}), kFirst4, G::q5_k},

    {C::qkv, of({F::q3_k_m, F::q3_k_l, F::iq3_m}), kAlways, G::q4_k},
    {C::qkv, of({F::q4_k_m}), kAlways, G::q5_k},
    {C::qkv, of({F::q5_k_m}), kAlways, G::q6_k},

    {C::k, kLowBit, kExperts8, G::q4_k},
    {C::k, kAny, kExperts8, G::q8_0},
    {C::k, of({F::iq3_xs}), kAlways, G::iq3_xxs},
    {C::k, of({F::iq3_xxs}), kAlways, G::iq2_s},
    {C::q, of({F::iq3_xs}), kAlways, G::iq3_xxs},
    {C::q, of({F::iq3_xxs}), kAlways, G::iq2_s},

    {C::o, kWidenedOfEight, kExperts8, G::q5_k},
    {C::o, kAny, kExperts8, {}},
    {C::o, of({F::q3_k_l}), kFalcon, G::q4_k},
    {C::o, ~kLowBit, kFalcon, {}},
    {C::o, of({F::iq1_s, F::iq1_m}), kAlways, G::iq2_xxs},
    {C::o, of({F::iq2_s, F::iq2_m, F::iq3_xxs}), kAlways, G::iq3_s},
    {C::o, of({F::q2_k}), kAlways, G::q3_k},
    {C::o, of({F::q3_k_m, F::iq3_m}), kAlways, G::q4_k},
    {C::o, of({F::q3_k_l}), kAlways, G::q5_k},

    {C::down, of({F::iq2_s, F::iq2_m}), kFirst8th, G::iq3_s},
    {C::down, kLowBit, kFirst8th, G::q2_k},
    {C::down, of({F::q3_k_m}), kFalcon | kFirst16th, G::q5_k},
    {C::down, of({F::q3_k_m}), kFalcon | kMoreBits, G::q4_k},
    {C::down, of({F::q3_k_m}), kFalcon, G::q3_k},
    {C::down, of({F::q3_k_l}), kFalcon, G::q4_k},
    {C::down, of({F::q4_k_m}), kFalcon | kFirst16th, G::q6_k},
    {C::down, of({F::q4_k_m}), kFalcon | kMoreBits, G::q5_k},
    {C::down, of({F::q4_k_m, F::q4_k_s}), kFalcon, G::q4_k},
    {C::down, of({F::q2_k}), kAlways, G::q3_k},
    {C::down, of({F::q2_k_s, F::iq3_m}), kFirst8th, G::q4_k},
    {C::down, of({F::iq3_xxs}), kNoImatrix | kFirst8th, G::q4_k},
    {C::down, of({F::iq3_xxs}), kNoImatrix, G::q3_k},
    {C::down, of({F::q3_k_m}), kFirst16th, G::q5_k},
    {C::down, of({F::q3_k_m}), kAlways, G::q4_k},
    {C::down, of({F::iq3_m}), kExperts8 | kMoreBits, G::q4_k},
    {C::down, of({F::q3_k_l}), kAlways, G::q5_k},
    {C::down, of({F::q4_k_m, F::q5_k_m}), kMoreBits, G::q6_k},
    {C::down, of({F::iq4_nl, F::iq4_xs}), kNoImatrix | kFirst8th, G::q5_k},
    {C::down, of({F::q4_k_s}), kFirst8th, G::q5_k},
    {C::down, of({F::q4_0}), kImatrix | kFirst8th, G::q4_1},
    {C::down, of({F::q5_0}), kImatrix | kFirst8th, G::q5_1},

    {C::gate, of({F::iq3_xs}), kMiddle, G::iq3_xxs},
    {C::up, of({F::iq3_xs}), kMiddle, G::iq3_xxs},
};
// clang-format on

bool more_bits(std::int64_t i, std::int64_t n) { return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2; }

struct Position {
  std::int64_t i = 0;
  std::int64_t n = 1;
};

bool holds(unsigned conditions, const Mix& mix, const Position& position) {
  const auto [i, n] = position;
  const auto met = [conditions](unsigned condition, bool state) { return (conditions & condition) == 0 || state; };
  return met(kFirst2, i < 2) && met(kFirst4, i < 4) && met(kFirst8th, i < n / 8) && met(kFirst16th, i < n / 16) &&
         met(kMoreBits, more_bits(i, n)) && met(kMiddle, i >= n / 8 && i < 7 * n / 8) &&
         met(kGroups4, mix.group >= 4) && met(kExperts4, mix.experts >= 4) && met(kExperts8, mix.experts == 8) &&
         met(kImatrix, mix.imatrix) && met(kNoImatrix, !mix.imatrix) && met(kFalcon, mix.is_falcon);
}

// Where a tensor stands among those that the rules count: of values in whatever layers; in mixtures a layer among the
// layers, else a tensor among those of its category, and the low-bit rules count matrices, those of shared experts too.
Position position_of(const Mix& mix, Category category, const GgufTensor& tensor) {
  const std::int64_t seen = mix.seen[static_cast<std::size_t>(category)];
  if (category == Category::v) return {seen, mix.values};
  return {mix.experts > 1 && !is_one_of(kLowBit, mix.file) ? tensor.layer : seen, mix.layers};
}

GgmlType apply(Category category, const Mix& mix, const GgufTensor& tensor) {
  const Position position = position_of(mix, category, tensor);
  const auto* rule = std::ranges::find_if(kRules, [&](const Rule& each) {
    return each.category == category && is_one_of(each.files, mix.file) && holds(each.conditions, mix, position);
  });
  const GgmlType type = rule == std::end(kRules) ? mix.base : rule->type.value_or(mix.base);
  const bool widened = category == Category::v && mix.is_70b && !is_one_of(kLowBit, mix.file);
  return widened && (type == G::q3_k || type == G::q4_k) ? G::q5_k : type;
}

struct Replacement {
  GgmlType wanted;
  GgmlType v2024_02, v2024_and_2025, v2026;
};
// Blocks of 256 are replaced by blocks of 32. What did not exist in v2024_02 repeats the next column.
constexpr Replacement kReplacements[] = {
    {G::q2_k, G::q4_0, G::iq4_nl, G::q4_0},        {G::q3_k, G::q4_1, G::iq4_nl, G::q4_0},
    {G::q4_k, G::q5_0, G::q5_0, G::q5_0},          {G::q5_k, G::q5_1, G::q5_1, G::q5_1},
    {G::q6_k, G::q8_0, G::q8_0, G::q8_0},          {G::iq1_s, G::iq4_nl, G::iq4_nl, G::iq4_nl},
    {G::iq1_m, G::iq4_nl, G::iq4_nl, G::iq4_nl},   {G::iq2_xxs, G::iq4_nl, G::iq4_nl, G::iq4_nl},
    {G::iq2_xs, G::iq4_nl, G::iq4_nl, G::iq4_nl},  {G::iq2_s, G::iq4_nl, G::iq4_nl, G::iq4_nl},
    {G::iq3_xxs, G::iq4_nl, G::iq4_nl, G::iq4_nl}, {G::iq3_s, G::iq4_nl, G::iq4_nl, G::iq4_nl},
    {G::iq4_xs, G::iq4_nl, G::iq4_nl, G::iq4_nl},  {G::tq1_0, G::q4_0, G::q4_0, G::q4_0},
    {G::tq2_0, G::q4_0, G::q4_0, G::q4_0}};

// By the name, as llama.cpp finds it: the first that is part of it. Experts are of the category of their dense kin.
Category category_of(std::string_view stem, GgufEra era) {
  struct Row {
    std::string_view part;
    Category category;
  };
  constexpr Row kRows[] = {
      {"attn_qkv.weight", Category::qkv}, {"attn_kv_b.weight", Category::v}, {"attn_v.weight", Category::v},
      {"attn_k.weight", Category::k},     {"attn_q.weight", Category::q},    {"attn_output.weight", Category::o},
      {"ffn_up", Category::up},           {"ffn_gate", Category::gate},      {"ffn_down", Category::down}};
  const auto* row = std::ranges::find_if(kRows, [&](const Row& each) {
    return stem.find(each.part) != std::string_view::npos && (each.part != kRows[1].part || era >= GgufEra::v2026);
  });
  return row == std::end(kRows) ? Category::other : row->category;
}

// Matrices that the quantiser leaves as the converter wrote them, in 16 bits.
bool stays_wide(std::string_view stem) {
  constexpr std::array<std::string_view, 3> kParts = {"altup", "laurel", "per_layer_model_proj"};
  return std::ranges::any_of(kParts, [&](std::string_view part) { return stem.find(part) != std::string_view::npos; });
}

// The type the mix wants for a tensor that may be quantised, whatever its shape.
GgmlType mixed_type(const Mix& mix, const GgufTensor& tensor) {
  const bool is_embedding = tensor.stem == "token_embd.weight" || tensor.stem == "per_layer_token_embd.weight";
  const bool is_output = tensor.role == Role::lm_head ||
                         // Until then the embedding of a tied model was quantised like any other.
                         (is_embedding && !mix.has_output && mix.era != GgufEra::v2024_02);
  if (is_output) {
    const bool wide = mix.is_falcon || tensor.k % info(mix.base).block != 0;
    return wide ? G::q8_0 : apply(Category::output, mix, tensor);
  }
  if (mix.file == F::mxfp4_moe) return tensor.count > 1 ? G::mxfp4 : G::q8_0;
  if (is_embedding) return apply(Category::embedding, mix, tensor);
  // Others are matrices of latent attention and of recurrences, and gates.
  const Category category = category_of(tensor.stem, mix.era);
  return apply(category == Category::qkv && mix.era >= GgufEra::v2026 ? Category::v : category, mix, tensor);
}

// `wanted`, or what replaces it when rows of `columns` elements are no multiple of its block. Throws Error(bad_input)
// when nothing does.
GgmlType fitting_type(GgmlType wanted, std::int64_t columns, GgufEra era) {
  if (columns % info(wanted).block == 0) return wanted;
  const auto* found =
      std::ranges::find_if(kReplacements, [wanted](const Replacement& r) { return r.wanted == wanted; });
  if (found == std::end(kReplacements)) {
    throw Error::bad_input(fmt::format("llama.cpp cannot store rows of {} elements as {}: they are no multiple of {}",
                                       columns, info(wanted).name, info(wanted).block));
  }
  const GgmlType type = era == GgufEra::v2024_02 ? found->v2024_02
                        : era < GgufEra::v2026   ? found->v2024_and_2025
                                                 : found->v2026;
  return columns % info(type).block == 0 ? type : G::f16;
}

// The loader's idea of a 70B: 80 layers, and in the Llama family grouped heads (LLaMA 65B has 80 layers too).
bool is_70b(const Decoder& model, std::int64_t group) {
  if (model.num_layers() != 80) return false;
  const std::string_view architecture = gguf_architecture_name(model);
  const bool any = architecture == "qwen2" || architecture == "qwen2vl" || architecture == "deci";
  return any || (architecture == "llama" && group > 1);
}

Mix make_mix(const Decoder& model, std::span<const GgufTensor> tensors, const GgufFileType& type, GgufEra era) {
  const Attention& attention = model.kinds[model.layer_kinds.front()].attention;
  Mix mix{.file = type.id, .base = type.type, .imatrix = type.imatrix, .era = era};
  mix.has_output = std::ranges::any_of(tensors, [](const GgufTensor& t) { return t.role == Role::lm_head; });
  mix.group = attention.kv_heads > 0 ? attention.heads / attention.kv_heads : 0;
  mix.is_70b = is_70b(model, mix.group);
  mix.is_falcon = gguf_architecture_name(model) == "falcon";
  for (const GgufTensor& tensor : tensors) {
    mix.layers = std::max<std::int64_t>(mix.layers, tensor.layer + 1);
    const Category category = category_of(tensor.stem, GgufEra::v2026);
    if (!tensor.is_vector() && (category == Category::v || category == Category::qkv)) ++mix.values;
  }
  for (const Layer& layer : model.kinds) {
    if (layer.feed_forward.experts) mix.experts = layer.feed_forward.experts->count;
  }
  return mix;
}

}  // namespace

std::span<const GgufEra> gguf_eras() { return kEras; }

std::string_view name(GgufEra era) { return kEraNames[static_cast<std::size_t>(era)]; }

GgufEra parse_gguf_era(std::string_view text) {
  const auto found = std::ranges::find(kEraNames, text);
  if (found == kEraNames.end()) {
    const std::vector<std::string> known(kEraNames.begin(), kEraNames.end());
    throw Error::bad_input(fmt::format("unknown era of llama.cpp {}", quote(text)),
                           fmt::format("known eras: {}", join(known, ", ")));
  }
  return kEras[static_cast<std::size_t>(found - kEraNames.begin())];
}

std::span<const GgufFileType> gguf_file_types() { return kFileTypes; }

const GgufFileType* find_gguf_file_type(std::string_view name) {
  // "q4km" and "Q4-K-M" are q4_k_m.
  const auto letters = [](std::string_view text) {
    std::string key = to_lower(text);
    std::erase_if(key, [](char c) { return c == '_' || c == '-'; });
    return key;
  };
  const std::string wanted = letters(name);
  const auto* found =
      std::ranges::find_if(kFileTypes, [&](const GgufFileType& type) { return letters(type.name) == wanted; });
  return found == std::end(kFileTypes) ? nullptr : found;
}

std::vector<GgufTensor> quantised_tensors(const Decoder& model, const GgufFileType& type, GgufEra era) {
  require_gguf_architecture(model);
  require_era(type, era);
  std::vector<GgufTensor> tensors = gguf_tensors(
      model,
      {.split_kv_b = era >= GgufEra::v2025, .joined_delta_net = era < GgufEra::v2026, .next_token_layers = true});
  Mix mix = make_mix(model, tensors, type, era);
  const bool is_float = info(type.type).block == 1;
  for (GgufTensor& tensor : tensors) {
    if (tensor.type == GgmlType::f32) {
      // The converter of those days left routers in 16 bits.
      const bool wide = tensor.role != Role::router || era != GgufEra::v2024_02 || type.type == GgmlType::f32;
      if (!wide) tensor.type = GgmlType::f16;
      continue;
    }
    if (is_float) {
      tensor.type = type.type;
    } else if (!stays_wide(tensor.stem)) {
      tensor.type = fitting_type(mixed_type(mix, tensor), tensor.k, era);
    }
    const Category category = category_of(tensor.stem, era);
    ++mix.seen[static_cast<std::size_t>(category == Category::qkv ? Category::v : category)];
  }
  return tensors;
}

}  // namespace llmperf::model
