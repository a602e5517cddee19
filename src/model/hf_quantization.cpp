// quantization_config of a checkpoint, as far as it says which weight scheme the published files use.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "model/hf_family.h"
#include "model/reading.h"

namespace llmperf::model {
namespace {

using descriptor::Reader;

constexpr std::string_view kWayOut = "remove quantization_config and choose with --weights";

// Parts that every scheme leaves in 16 bits anyway; mxfp4 leaves attention alone too.
bool is_left_wide(std::string_view module, std::string_view method) {
  constexpr std::array<std::string_view, 8> kWide = {"lm_head", "embed", "norm",     "router",
                                                     ".gate",   "_gate", "mlp.gate", "output_layer"};
  const auto named = [module](std::string_view part) { return module.find(part) != std::string_view::npos; };
  if (named("gate_proj") || named("gate_up")) return false;
  return std::any_of(kWide.begin(), kWide.end(), named) || (method == "mxfp4" && named("self_attn"));
}

void check_modules(Reader& quantization, std::string_view key, std::string_view method) {
  for (const std::string& module : quantization.optional_strings(key)) {
    if (is_left_wide(module, method)) continue;
    quantization.problem(key, fmt::format("{} names {}: mixed schemes are not supported", key, quote(module)),
                         std::string(kWayOut));
    return;
  }
}

std::string read_int4(Reader& quantization, std::string_view method) {
  const std::string_view bits_key = quantization.has("w_bit") ? "w_bit" : "bits";
  const std::string_view group_key = quantization.has("q_group_size") ? "q_group_size" : "group_size";
  const std::int64_t bits = quantization.require_int(bits_key, {1, 64});
  const std::int64_t group = quantization.require_int(group_key, {-1, kWidthRange.max});
  if (bits != 4 && is_sound(quantization, bits_key, {1, 64})) {
    quantization.problem(bits_key, fmt::format("{} with {} bits is not supported, only 4", method, bits),
                         std::string(kWayOut));
  }
  if (group < 1 && is_sound(quantization, group_key, {-1, 0})) {
    quantization.problem(group_key, fmt::format("{} without groups ({} {}) is not supported", method, group_key, group),
                         std::string(kWayOut));
  }
  expect(quantization, "lm_head", false);
  ignore(quantization, {"desc_act",
                        "sym",
                        "damp_percent",
                        "damp_auto_increment",
                        "true_sequential",
                        "static_groups",
                        "quantizer",
                        "model_name_or_path",
                        "model_file_base_name",
                        "checkpoint_format",
                        "meta",
                        "is_marlin_format",
                        "use_exllama",
                        "disable_exllama",
                        "exllama_config",
                        "max_input_length",
                        "cache_block_outputs",
                        "dataset",
                        "batch_size",
                        "tokenizer",
                        "pad_token_id",
                        "block_name_to_quantize",
                        "module_name_preceding_first_block",
                        "model_seqlen",
                        "use_cuda_fp16",
                        "pack_dtype",
                        "version",
                        "zero_point",
                        "backend",
                        "do_fuse",
                        "fuse_max_seq_len",
                        "modules_to_fuse",
                        "rotary_dim"});
  return fmt::format("w4a16-g{}", std::max<std::int64_t>(group, 1));
}

std::string read_fp8(Reader& quantization) {
  ignore(quantization, {"activation_scheme", "fmt", "scale_fmt", "kv_cache_scheme"});
  check_modules(quantization, "ignored_layers", "fp8");
  const std::vector<std::int64_t> block = quantization.optional_ints("weight_block_size", {1, kWidthRange.max});
  if (block.empty()) return "fp8";
  if (block != std::vector<std::int64_t>{128, 128}) {
    quantization.problem("weight_block_size", "fp8 in blocks other than 128 x 128 is not supported",
                         std::string(kWayOut));
  }
  return "fp8-block128";
}

}  // namespace

std::string read_quantization(Reader& reader) {
  auto quantization = reader.optional_mapping("quantization_config");
  if (!quantization) return {};
  const std::string method = quantization->require_string("quant_method");
  std::string scheme;
  if (method == "gptq" || method == "awq") {
    scheme = read_int4(*quantization, method);
  } else if (method == "fp8") {
    scheme = read_fp8(*quantization);
  } else if (method == "mxfp4") {
    scheme = "mxfp4";
  } else {
    if (!method.empty()) {
      quantization->problem("quant_method", fmt::format("quant_method {} is not supported", quote(method)),
                            fmt::format("known methods: gptq, awq, fp8, mxfp4; or {}", kWayOut));
    }
    return {};  // the other keys mean nothing then
  }
  check_modules(*quantization, "modules_to_not_convert", method);
  quantization->finish("A key that is not understood may change the cost, so none is skipped.");
  return scheme;
}

}  // namespace llmperf::model
