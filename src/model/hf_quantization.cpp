#include "model/hf_quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "model/hf_family.h"
#include "model/reading.h"

namespace llmperf::model {
namespace {

using descriptor::Node;
using descriptor::Reader;

constexpr std::string_view kWayOut = "remove quantization_config and choose with --weights";
constexpr std::string_view kStrict = "A key that is not understood may change the cost, so none is skipped.";

void refuse(Reader& reader, std::string_view key, std::string message) {
  reader.problem(key, std::move(message), std::string(kWayOut));
}

std::string read_int4(Reader& quantization, std::string_view method) {
  const std::string_view bits_key = quantization.has("w_bit") ? "w_bit" : "bits";
  const std::string_view group_key = quantization.has("q_group_size") ? "q_group_size" : "group_size";
  const std::int64_t bits = quantization.require_int(bits_key, {1, 64});
  const std::int64_t group = quantization.require_int(group_key, {-1, kWidthRange.max});
  if (bits != 4 && is_sound(quantization, bits_key, {1, 64})) {
    refuse(quantization, bits_key, fmt::format("{} with {} bits is not supported, only 4", method, bits));
  }
  if (group < 1 && is_sound(quantization, group_key, {-1, 0})) {
    refuse(quantization, group_key,
           fmt::format("{} without groups ({} {}) is not supported", method, group_key, group));
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

// Scales of fp8 in two-dimensional blocks, of which only DeepSeek's are known.
std::string block_fp8(Reader& reader, std::string_view key) {
  if (reader.optional_ints(key, {1, kWidthRange.max}) != std::vector<std::int64_t>{128, 128}) {
    refuse(reader, key, "fp8 in blocks other than 128 x 128 is not supported");
  }
  return "fp8-block128";
}

std::string read_fp8(Reader& quantization) {
  ignore(quantization, {"activation_scheme", "fmt", "scale_fmt"});
  return quantization.has("weight_block_size") ? block_fp8(quantization, "weight_block_size") : "fp8";
}

std::string read_bitsandbytes(Reader& quantization) {
  ignore(quantization, {"_load_in_4bit", "_load_in_8bit", "bnb_4bit_compute_dtype", "bnb_4bit_quant_storage",
                        "llm_int8_enable_fp32_cpu_offload", "llm_int8_has_fp16_weight", "llm_int8_threshold"});
  constexpr std::array<std::string_view, 2> kTypes = {"fp4", "nf4"};  // two tables of 16 values, stored alike
  quantization.choice("bnb_4bit_quant_type", kTypes, 0);
  const bool twice = quantization.bool_or("bnb_4bit_use_double_quant", false);
  const bool four = quantization.bool_or("load_in_4bit", false);
  const bool eight = quantization.bool_or("load_in_8bit", false);
  if (four == eight) refuse(quantization, "load_in_4bit", "one of load_in_4bit and load_in_8bit must be true");
  return eight ? "int8" : twice ? "nf4-double" : "nf4";
}

// "FP8", or a mapping of compressed-tensors with the width.
std::string read_kv(Reader& reader, std::string_view key) {
  const Node* node = reader.find(key);
  if (node == nullptr) return {};
  std::string type = to_lower(node->scalar);
  if (node->kind == Node::Kind::mapping) {
    Reader scheme(*node, reader.problems(), quote(key));
    const std::string kind = scheme.require_string("type");
    type = fmt::format("{}{}", kind == "float" ? "fp" : kind, scheme.require_int("num_bits", {1, 64}));
  }
  if (type == "fp8" || type == "int8") return type;
  reader.problem(key, fmt::format("a KV cache of {} is not supported, only fp8 and int8", quote(type)),
                 fmt::format("remove {} and choose with --kv", key));
  return {};
}

// What Model Optimizer's name of an algorithm means; `reader` may say the size of groups.
std::string algorithm_scheme(Reader& reader, std::string_view key) {
  struct Algorithm {
    std::string_view name;
    std::string_view scheme;
  };
  constexpr std::array<Algorithm, 8> kAlgorithms = {{{"FP8", "fp8"},
                                                     {"FP8_PER_CHANNEL_PER_TOKEN", "fp8-channel"},
                                                     {"FP8_PB_WO", "fp8-block128"},
                                                     {"NVFP4", "nvfp4"},
                                                     {"NVFP4_AWQ", "nvfp4"},
                                                     {"W4A16_NVFP4", "nvfp4"},
                                                     {"W4A16_AWQ", "w4a16-g"},
                                                     {"W8A8_SQ_PER_CHANNEL", "w8a8"}}};
  const auto group = reader.optional_int("group_size", kWidthRange);
  const std::string name = reader.require_string(key);
  const auto found =
      std::find_if(kAlgorithms.begin(), kAlgorithms.end(), [&](const Algorithm& a) { return a.name == name; });
  if (found == kAlgorithms.end()) {
    std::vector<std::string> known;
    for (const Algorithm& a : kAlgorithms) known.emplace_back(a.name);
    if (!name.empty()) {
      reader.problem(key, fmt::format("{} {} is not supported", key, quote(name)),
                     fmt::format("known: {}, MIXED_PRECISION; or {}", join(known, ", "), kWayOut));
    }
    return "fp8";
  }
  if (found->scheme == "nvfp4" && group.value_or(16) != 16) refuse(reader, "group_size", "NVFP4 has groups of 16");
  return std::string(found->scheme) + (found->scheme.ends_with("-g") ? std::to_string(group.value_or(128)) : "");
}

// A mapping from modules to their algorithms.
void read_quantized_layers(Reader& reader, Quantization& result) {
  const auto layers = reader.optional_mapping("quantized_layers");
  if (!layers) return;
  for (const Node::Entry& entry : layers->node().entries) {
    Reader layer(entry.value, reader.problems(), quote(entry.key));
    const std::string scheme = algorithm_scheme(layer, "quant_algo");
    auto rule = std::find_if(result.rules.begin(), result.rules.end(),
                             [&](const Quantization::Rule& r) { return r.scheme == scheme; });
    if (rule == result.rules.end()) rule = result.rules.insert(rule, Quantization::Rule{scheme, {}});
    rule->modules.add(entry.key, entry.value, reader.problems());
  }
}

// The keys of Model Optimizer, in either file; `ignored_key` lists what is not quantised.
void read_modelopt(Reader& reader, std::string_view ignored_key, Quantization& result) {
  ignore(reader, {"producer", "config_groups", "has_zero_point", "pre_quant_scale", "smoothquant_val"});
  result.ignored.read(reader, ignored_key);
  result.with_head = reader.has(ignored_key);
  if (!reader.has("quant_algo")) {
    ignore(reader, {"quant_algo", "group_size"});
  } else if (reader.string_or("quant_algo", "") == "MIXED_PRECISION") {
    ignore(reader, {"group_size"});
    read_quantized_layers(reader, result);
  } else {
    result.scheme = algorithm_scheme(reader, "quant_algo");
  }
}

// The scheme of a group of compressed-tensors; empty where only activations are quantised.
std::string group_scheme(Reader& group) {
  ignore(group, {"format"});
  const bool activations = group.optional_mapping("input_activations").has_value();
  if (const Node* out = group.find("output_activations"); out != nullptr) {
    refuse(group, "output_activations", "quantised outputs are not supported");
  }
  auto weights = group.optional_mapping("weights");
  if (!weights) return {};
  ignore(*weights,
         {"dynamic", "actorder", "observer", "observer_kwargs", "scale_dtype", "zp_dtype", "quantization_status"});
  const std::int64_t bits = weights->require_int("num_bits", {1, 64});
  const std::string type = weights->require_string("type");
  const std::string strategy = weights->string_or("strategy", "tensor");
  const std::int64_t size = weights->optional_int("group_size", {-1, kWidthRange.max}).value_or(-1);
  const bool symmetric = weights->bool_or("symmetric", true);
  std::string scheme;
  if (strategy == "block" && type == "float" && bits == 8) {
    scheme = block_fp8(*weights, "block_structure");
  } else if (type == "float" && bits == 8 && size < 1) {
    scheme = strategy == "channel" ? "fp8-channel" : "fp8";
  } else if (type == "float" && bits == 4 && (size == 16 || size == 32)) {
    scheme = size == 16 ? "nvfp4" : "mxfp4";
  } else if (type == "int" && bits == 4 && size > 0) {
    scheme = fmt::format("w4a16-g{}{}", size, symmetric ? "-sym" : "");
  } else if (type == "int" && bits == 8 && size < 1) {
    scheme = activations ? "w8a8" : "int8";
  } else {
    refuse(*weights, "num_bits",
           fmt::format("weights of {} {} bits, strategy {}, are not supported", bits, quote(type), quote(strategy)));
  }
  ignore(*weights, {"block_structure"});
  weights->finish(kStrict);
  return scheme;
}

void read_compressed_tensors(Reader& quantization, Quantization& result) {
  ignore(quantization, {"format", "quantization_status", "global_compression_ratio", "transform_config", "version"});
  if (auto sparsity = quantization.optional_mapping("sparsity_config")) {
    const std::string format = sparsity->string_or("format", "dense");
    if (format != "dense") refuse(*sparsity, "format", fmt::format("sparse weights ({}) are not supported", format));
  }
  result.ignored.read(quantization, "ignore");
  result.with_head = quantization.has("ignore");
  const auto groups = quantization.optional_mapping("config_groups");
  if (!groups) return;
  for (const Node::Entry& entry : groups->node().entries) {
    Reader group(entry.value, quantization.problems(), quote(entry.key));
    const std::string scheme = group_scheme(group);
    ModuleList targets;
    bool all = !group.has("targets");
    if (const Node* list = group.find("targets")) {
      group.optional_strings("targets");
      for (const Node& item : list->items) {
        if (item.scalar == "Linear") {
          all = true;
        } else {
          targets.add(item.scalar, item, quantization.problems());
        }
      }
    }
    group.finish(kStrict);
    if (!targets.empty()) result.rules.push_back({scheme, std::move(targets)});
    if (!all) continue;
    if (!result.scheme.empty()) refuse(group, "targets", "two groups for every linear layer");
    result.scheme = scheme;
  }
}

// The name of the method, also where older files leave it to be guessed.
std::string method_of(Reader& quantization) {
  if (quantization.has("quant_method") || quantization.node().kind != Node::Kind::mapping) {
    return quantization.require_string("quant_method");
  }
  if (quantization.has("quant_algo")) return "modelopt";
  if (quantization.has("config_groups")) return "compressed-tensors";
  return quantization.require_string("quant_method");
}

}  // namespace

Quantization read_quantization_config(Reader& quantization) {
  Quantization result;
  const std::string method = method_of(quantization);
  if (method == "gptq" || method == "awq") {
    result.scheme = read_int4(quantization, method);
  } else if (method == "fp8") {
    result.scheme = read_fp8(quantization);
    result.ignored.read(quantization, "ignored_layers");
  } else if (method == "fbgemm_fp8") {
    result.scheme = "fp8-channel";
    ignore(quantization, {"activation_scale_ub"});
  } else if (method == "bitsandbytes") {
    result.scheme = read_bitsandbytes(quantization);
    result.ignored.read(quantization, "llm_int8_skip_modules");
  } else if (method == "mxfp4") {
    result.scheme = "mxfp4";
    result.experts_only = true;
  } else if (method == "modelopt" || method == "modelopt_fp4") {
    read_modelopt(quantization, quantization.has("ignore") ? "ignore" : "exclude_modules", result);
  } else if (method == "compressed-tensors") {
    read_compressed_tensors(quantization, result);
  } else {
    if (!method.empty()) {
      quantization.problem("quant_method", fmt::format("quant_method {} is not supported", quote(method)),
                           fmt::format("known methods: gptq, awq, fp8, fbgemm_fp8, mxfp4, bitsandbytes, modelopt, "
                                       "compressed-tensors; or {}",
                                       kWayOut));
    }
    return result;  // the other keys mean nothing then
  }
  result.ignored.read(quantization, "modules_to_not_convert");
  const std::string_view kv_key = quantization.has("kv_cache_quant_algo") ? "kv_cache_quant_algo" : "kv_cache_scheme";
  result.kv = read_kv(quantization, kv_key);
  ignore(quantization, {"kv_cache_quant_algo", "kv_cache_scheme"});
  quantization.finish(kStrict);
  return result;
}

Quantization read_hf_quant_config(Reader& root, bool kv_only) {
  Quantization result;
  auto quantization = root.optional_mapping("quantization");
  if (!quantization) {
    root.problem("quantization", "missing key 'quantization'");
    return result;
  }
  result.kv = read_kv(*quantization, "kv_cache_quant_algo");
  if (kv_only) return result;
  read_modelopt(*quantization, "exclude_modules", result);
  quantization->finish(kStrict);
  ignore(root, {"producer"});
  root.finish(kStrict);
  return result;
}

namespace {

bool is_expert(Role role) { return role == Role::expert_gate || role == Role::expert_up || role == Role::expert_down; }

// Quantisers leave vectors and routers alone, whether they say so or not.
bool is_quantisable(Role role) { return role != Role::vector && role != Role::router && role != Role::shared_router; }

// The scheme of a matrix that is `in_reach` of the one for everything; every list is asked, as it notes what it names.
std::string scheme_of(Quantization& q, const Module& module, bool in_reach) {
  std::string scheme = in_reach ? q.scheme : std::string();
  for (auto rule = q.rules.rbegin(); rule != q.rules.rend(); ++rule) {
    if (rule->modules.names(module)) scheme = rule->scheme;
  }
  return q.ignored.names(module) ? std::string() : scheme;
}

// Where matrices of a layer get a scheme at all: what a list-less `scheme` gives.
RoleSchemes uniform_schemes(const Quantization& q, const std::vector<Tensor>& tensors) {
  RoleSchemes schemes;
  for (const Tensor& tensor : tensors) {
    if (is_quantisable(tensor.role) && (is_expert(tensor.role) || !q.experts_only)) schemes[tensor.role] = q.scheme;
  }
  return schemes;
}

}  // namespace

std::vector<int> apply_quantization(Quantization& q, const std::vector<Layer>& layers, Decoder& decoder,
                                    descriptor::Problems& problems) {
  decoder.default_weights = q.scheme;
  decoder.default_kv = q.kv;
  std::vector<int> stored_as(layers.size(), 0);
  const auto count = static_cast<std::int64_t>(layers.size());
  bool too_long = q.ignored.is_too_long(count, problems);
  for (const Quantization::Rule& rule : q.rules) too_long = rule.modules.is_too_long(count, problems) || too_long;
  if (too_long) return stored_as;

  std::vector<RoleSchemes> mixture;
  // The scheme of that name is for experts only.
  bool uniform = !q.scheme.empty() && (q.scheme != "mxfp4" || q.experts_only);
  bool quantised = false;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::vector<Tensor> tensors = layer_tensors(decoder, layers[i]);
    RoleSchemes schemes;
    for (const Tensor& tensor : tensors) {
      if (tensor.role == Role::vector) continue;
      const bool in_reach = is_expert(tensor.role) || !q.experts_only;
      const std::string scheme = scheme_of(q, module_of(tensor, static_cast<std::int64_t>(i)), in_reach);
      if (is_quantisable(tensor.role) && !scheme.empty()) schemes[tensor.role] = scheme;
    }
    uniform = uniform && schemes == uniform_schemes(q, tensors);
    quantised = quantised || !schemes.empty();
    const auto known = std::find(mixture.begin(), mixture.end(), schemes);
    stored_as[i] = static_cast<int>(known - mixture.begin());
    if (known == mixture.end()) mixture.push_back(std::move(schemes));
  }
  const std::string head = scheme_of(q, lm_head_module(), q.with_head && !decoder.tied_embeddings);
  if (!head.empty() && !decoder.tied_embeddings) {
    mixture.front()[Role::lm_head] = head;
    uniform = false;
    quantised = true;
  }
  q.ignored.check(count, problems);
  for (const Quantization::Rule& rule : q.rules) rule.modules.check(count, problems);
  if (!quantised) decoder.default_weights.clear();
  if (uniform || !quantised) return std::vector<int>(layers.size(), 0);
  decoder.mixture = std::move(mixture);
  return stored_as;
}

}  // namespace llmperf::model
