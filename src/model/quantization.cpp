// Weight schemes. A scheme says how matrices of each class are stored; the sizes of GPTQ, AWQ, block fp8 and MXFP4
// follow from their published layouts: 4 bits per element plus an fp16 scale and a 4-bit zero point per group along the
// inputs (GPTQ's qweight, scales, qzeros); 8 bits plus one fp32 scale per 128 x 128 tile (DeepSeek-V3, arXiv 2412.19437
// section 3.3.2); 4 bits plus a 16-bit scale per 256 elements and one per row, brought to 8 bits and multiplied with
// activations of 8 bits (w4a8_dynamic.py of vllm-ascend); 4 bits plus an 8-bit exponent per 32 elements (OCP
// Microscaling formats, v1.0); 4 bits plus an fp8 scale per 16 elements and an fp32 scale per tensor (NVFP4 of NVIDIA's
// Model Optimizer); 4 bits plus an fp32 scale per 64 elements, or, quantised twice, an 8-bit one and an fp32 scale per
// 256 of those (QLoRA, arXiv 2305.14314 section 3); MLX's: 2 to 8 bits and a 16-bit scale and bias per 64 elements.
#include "model/quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "model/gguf/tensors.h"
#include "model/stored_bytes.h"

namespace llmperf::model {
namespace {

constexpr int kDefaultGroup = 128;
constexpr int kLargestGroup = 1 << 20;
// What a KV cache may hold; the block types are ggml's, 32 elements with an fp16 scale (and minimum).
constexpr ElementFormat kCacheFormats[] = {{"fp32", 32},      {"bf16", 16},     {"fp16", 16},      {"fp8", 8},
                                           {"int8", 8},       {"int4", 4},      {"q8_0", 8.5, 32}, {"q5_1", 6, 32},
                                           {"q5_0", 5.5, 32}, {"q4_1", 5, 32},  {"q4_0", 4.5, 32}, {"iq4_nl", 4.5, 32},
                                           {"bfp8", 8.5, 16}, {"bfp4", 4.5, 16}};
constexpr std::array<std::string_view, 3> kActivationTypes = {"fp32", "bf16", "fp16"};

// Four bits per element with `scale` bits for each group along the inputs, unpacked before they are multiplied.
constexpr StoredFormat grouped(int group, double scale, double dequant_flops, FormatKernel kernel) {
  return {.bits = 4, .group = group, .bits_per_group = scale, .dequant_flops = dequant_flops, .kernel = kernel};
}
using K = FormatKernel;
struct NamedFormat {
  std::string_view name;
  StoredFormat format;
  bool experts_only = false;  // routed experts, else every matrix of the layers
};
// clang-format off
constexpr NamedFormat kFormats[] = {
    {"fp8", {.bits = 8, .compute = Dtype::fp8, .kernel = K::fp8}},
    {"fp8-channel", {.bits = 8, .bits_per_row = 32, .compute = Dtype::fp8, .kernel = K::fp8}},
    {"fp8-block128", {.bits = 8, .bits_per_block = 32, .block = 128, .compute = Dtype::fp8,
                      .kernel = K::fp8_block}},
    {"mxfp8", {.bits = 8, .group = 32, .bits_per_group = 8, .compute = Dtype::fp8, .kernel = K::fp8_block}},
    {"int8", {.bits = 8, .bits_per_row = 16, .dequant_flops = 2, .kernel = K::int8}},
    {"w8a8", {.bits = 8, .bits_per_row = 16, .compute = Dtype::int8, .kernel = K::w8a8}},
    {"w4a8", {.bits = 4, .group = 256, .bits_per_group = 16, .bits_per_row = 16, .compute = Dtype::int8,
              .dequant_flops = 1, .kernel = K::w4a8}},
    {"nvfp4", {.bits = 4, .group = 16, .bits_per_group = 8, .bits_per_tensor = 32, .compute = Dtype::fp4,
               .kernel = K::nvfp4}},
    {"mxfp4", grouped(32, 8, 1, K::mxfp4), true},
    {"nf4", grouped(64, 32, 2, K::gptq)},
    {"nf4-double", grouped(64, 8 + 32.0 / 256, 2, K::gptq)},
};
// clang-format on

// Blocks of 16 elements that share an exponent, multiplied as they are.
StoredFormat block_floating(Dtype dtype) {
  return {.bits = dtype == Dtype::bfp8 ? 8.0 : 4.0, .group = 16, .bits_per_group = 8, .compute = dtype};
}

StoredFormat plain(Dtype dtype) { return {.bits = bits(dtype), .compute = dtype}; }

WeightScheme uniform(std::string name, StoredFormat format, double vector_bits) {
  return {.name = std::move(name),
          .linear = format,
          .expert = format,
          .embedding = format,
          .other = format,
          .vector_bits = vector_bits};
}

// Quantised matrices of the layers, or of routed experts; embedding, lm_head, routers and vectors stay wide, which is
// also what is multiplied in where weights are unpacked.
WeightScheme layers_only(std::string name, StoredFormat format, Dtype wide, bool experts_only = false) {
  if (format.dequant_flops > 0 && bits(format.compute) >= bits(wide)) format.compute = wide;
  WeightScheme scheme = uniform(std::move(name), plain(wide), bits(wide));
  scheme.expert = format;
  if (!experts_only) scheme.linear = format;
  return scheme;
}

// "w4a16-g64", "gptq", "awq-int4-g32-sym": group size, whether groups have no zero point, and kernel, or nothing when
// the text is no such scheme.
struct Int4 {
  int group;
  bool symmetric;
  FormatKernel kernel;
  std::string name() const { return fmt::format("w4a16-g{}{}", group, symmetric ? "-sym" : ""); }
};
std::optional<Int4> parse_int4(std::string_view text) {
  for (const std::string_view prefix : {"w4a16", "gptq-int4", "gptq", "awq-int4", "awq"}) {
    if (!text.starts_with(prefix)) continue;
    const FormatKernel kernel = prefix.starts_with("awq") ? FormatKernel::awq : FormatKernel::gptq;
    std::string_view rest = text.substr(prefix.size());
    const bool symmetric = rest.ends_with("-sym");
    if (symmetric) rest.remove_suffix(4);
    if (rest.empty()) return Int4{kDefaultGroup, symmetric, kernel};
    if (!rest.starts_with("-g")) continue;
    const std::optional<std::int64_t> group = parse_int(rest.substr(2));
    if (group && *group > 0 && *group <= kLargestGroup) return Int4{static_cast<int>(*group), symmetric, kernel};
  }
  return std::nullopt;
}

// "mlx-q4", "mlx-q6-g32": what MLX quantises in groups with a 16-bit scale and bias. It quantises the embedding and
// lm_head, too, and routers to 8 bits (mlx-lm's models).
std::optional<WeightScheme> parse_mlx(std::string_view text, Dtype wide) {
  constexpr std::string_view prefix = "mlx-q";
  if (!text.starts_with(prefix) || text.size() == prefix.size()) return std::nullopt;
  const int bits_each = text[prefix.size()] - '0';
  if (bits_each < 2 || bits_each > 8 || bits_each == 7) return std::nullopt;
  int group = 64;
  if (const std::string_view rest = text.substr(prefix.size() + 1); !rest.empty()) {
    if (rest != "-g32" && rest != "-g64" && rest != "-g128") return std::nullopt;
    group = static_cast<int>(parse_int(rest.substr(2)).value_or(group));
  }
  const auto format = [&](int each) {
    return StoredFormat{.bits = static_cast<double>(each),
                        .group = group,
                        .bits_per_group = 16 + 16,
                        .compute = wide,
                        .dequant_flops = 2,
                        .kernel = each > 6 ? FormatKernel::int8 : FormatKernel::gptq};
  };
  const std::string name = fmt::format("mlx-q{}{}", bits_each, group == 64 ? "" : fmt::format("-g{}", group));
  WeightScheme scheme = uniform(name, format(bits_each), bits(wide));
  scheme.other = format(8);
  return scheme;
}

// "exl2-4.0bpw", "exl2-2.4bpw-h8". ExLlamaV2 quantises each matrix several ways and picks what meets a mean number of
// bits per weight (its README and doc/convert.md): that number holds scales and is of the layers' matrices, lm_head has
// its own. The token embedding stays in 16 bits, in the memory of the host.
std::optional<WeightScheme> parse_exl2(std::string_view text, Dtype wide) {
  constexpr std::int64_t kFewest = 2;
  constexpr std::int64_t kMost = 8;
  constexpr std::int64_t kUsualHead = 6;
  if (!text.starts_with("exl2-")) return std::nullopt;
  const std::size_t end = std::min(text.find("-h", 5), text.size());
  const std::optional<std::int64_t> head = end == text.size() ? kUsualHead : parse_int(text.substr(end + 2));
  std::string_view number = text.substr(5, end - 5);
  if (number.ends_with("bpw")) number.remove_suffix(3);
  const std::optional<double> each = parse_double(number);
  if (!head || !each) return std::nullopt;
  if (!(*each >= kFewest && *each <= kMost) || *head < kFewest || *head > kMost) {
    throw Error::bad_input(fmt::format("EXL2 has 2 to 8 bits per weight, not {}", quote(text)), "as exl2-4.0bpw");
  }
  const auto packed = [&](double of) {
    return StoredFormat{.bits = of, .compute = wide, .dequant_flops = 2, .kernel = FormatKernel::gptq};
  };
  // "4.0": a digit behind the point, and more where they are needed.
  std::string name = fmt::format("{}", *each);
  if (name.find('.') == std::string::npos) name += ".0";
  name = fmt::format("exl2-{}bpw{}", name, *head == kUsualHead ? "" : fmt::format("-h{}", *head));
  WeightScheme scheme = uniform(std::move(name), plain(wide), bits(wide));
  scheme.linear = scheme.expert = packed(*each);
  scheme.lm_head = packed(static_cast<double>(*head));
  scheme.embedding_on_host = true;
  return scheme;
}

// Every tensor at that many bits, vectors included, so that bytes = parameters * bits / 8. Below 16 bits the weights
// have to be unpacked and scaled before they are multiplied.
WeightScheme bits_per_weight(double bits_each, Dtype wide) {
  StoredFormat format = {.bits = bits_each, .compute = wide, .dequant_flops = bits_each < 16 ? 2.0 : 0.0};
  if (bits_each < 16) format.kernel = bits_each > 6 ? FormatKernel::int8 : FormatKernel::gptq;
  return uniform(fmt::format("{}", bits_each), format, bits_each);
}

[[noreturn]] void throw_unknown(std::string_view what, std::string_view text, const std::vector<std::string>& names,
                                std::string_view more = {}) {
  std::string hint = name_hint(text, names);
  if (!more.empty()) hint += fmt::format(" {}", more);
  throw Error::bad_input(fmt::format("unknown {} {}", what, quote(text)), std::move(hint));
}

std::optional<Dtype> one_of(std::string_view text, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    if (name == text) return parse_dtype(text);
  }
  return std::nullopt;
}

}  // namespace

Bytes StoredFormat::bytes(std::int64_t n, std::int64_t k) const {
  return Bytes{stored_bytes(*this, static_cast<double>(n), static_cast<double>(k))};
}

WeightScheme parse_weight_scheme(std::string_view given, Dtype wide) {
  const std::string lower = to_lower(given);
  const std::string_view text = lower;
  if (const auto dtype = one_of(text, kActivationTypes)) return uniform(std::string(text), plain(*dtype), bits(*dtype));
  for (const NamedFormat& known : kFormats) {
    if (known.name == text) return layers_only(std::string(text), known.format, wide, known.experts_only);
  }
  if (text == "bfp8" || text == "bfp4" || text == "bfp4-mlp") {
    WeightScheme scheme =
        uniform(std::string(text), block_floating(text == "bfp4" ? Dtype::bfp4 : Dtype::bfp8), bits(wide));
    scheme.other = plain(wide);
    if (text == "bfp4-mlp") {
      scheme.expert = *(scheme.feed_forward = block_floating(Dtype::bfp4));
      scheme.down = scheme.linear;
    }
    return scheme;
  }
  if (const auto int4 = parse_int4(text)) {
    const double scale = int4->symmetric ? 16 : 16 + 4;
    return layers_only(int4->name(), grouped(int4->group, scale, 2, int4->kernel), wide);
  }
  if (auto mlx = parse_mlx(text, wide)) return *std::move(mlx);
  if (auto exl2 = parse_exl2(text, wide)) return *std::move(exl2);
  const std::optional<double> number = parse_double(text);
  if (number && *number > 0 && *number <= 64) return bits_per_weight(*number, wide);
  if (number) {
    throw Error::bad_input(fmt::format("bits per weight must be above 0 and at most 64, not {}", quote(text)));
  }
  std::vector<std::string> names = weight_scheme_names();
  for (const GgufFileType& type : gguf_file_types()) names.emplace_back(type.name);
  if (text == "all-gguf")
    throw Error::bad_input("all-gguf compares formats, it is none itself", "llmperf limits takes it");
  if (text == "int4" || text == "4bit" || text == "w4") {
    throw Error::bad_input(
        fmt::format("unknown weight scheme {}", quote(given)),
        "of 4 bits are w4a16 (also gptq, awq), nf4 (bitsandbytes), mlx-q4 (MLX), q4_k_m (GGUF), w4a8, "
        "nvfp4 and mxfp4");
  }
  throw_unknown("weight scheme", given, names, "A number of bits per weight works too.");
}

std::vector<std::string> weight_scheme_names() {
  return {"fp32",        "fp16",        "bf16",        "fp8",         "fp8-channel", "fp8-block128", "mxfp8",
          "int8",        "w8a8",        "w4a8",        "w4a16",       "w4a16-g32",   "w4a16-g64",    "w4a16-g128",
          "gptq",        "awq",         "nvfp4",       "mxfp4",       "nf4",         "nf4-double",   "bfp8",
          "bfp4",        "bfp4-mlp",    "mlx-q3",      "mlx-q4",      "mlx-q6",      "mlx-q8",       "exl2-2.4bpw",
          "exl2-3.0bpw", "exl2-4.0bpw", "exl2-5.0bpw", "exl2-6.0bpw", "exl2-8.0bpw"};
}

ElementFormat element_format(Dtype dtype) { return {.name = name(dtype), .bits = bits(dtype)}; }

std::string CacheScheme::name() const {
  return keys == values ? std::string(keys.name) : fmt::format("{}/{}", keys.name, values.name);
}

ElementFormat parse_kv_scheme(std::string_view text) {
  const std::string_view canonical = text == "f32" ? "fp32" : text == "f16" ? "fp16" : text;
  for (const ElementFormat& format : kCacheFormats) {
    if (format.name == canonical) return format;
  }
  throw_unknown("KV cache type", text, kv_scheme_names());
}

std::vector<std::string> kv_scheme_names() {
  std::vector<std::string> names;
  for (const ElementFormat& format : kCacheFormats) names.emplace_back(format.name);
  return names;
}

Dtype parse_activation_dtype(std::string_view text) {
  if (const auto dtype = one_of(text, kActivationTypes)) return *dtype;
  throw_unknown("activation type", text, {kActivationTypes.begin(), kActivationTypes.end()});
}

}  // namespace llmperf::model
