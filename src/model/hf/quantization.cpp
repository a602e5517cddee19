// Two parts: lists of modules and which matrices they name, then the keys of each library that quantises.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/number.h"
#include "base/text.h"
#include "model/hf/config.h"
#include "model/reading.h"

namespace llmperf::model {
namespace {

using descriptor::Node;
using descriptor::Reader;

// ---- Lists of modules

constexpr std::string_view kExpertsPart = "experts.";
constexpr std::string_view kEntryWayOut = "remove the entry, or the quantisation and choose with `weights`";

// Other spellings of a module: `usual` in its name is `other` in some checkpoints. @ is the number of an expert.
struct Spelling {
  std::string_view usual;
  std::string_view other;
};
// clang-format off
constexpr Spelling kSpellings[] = {
    {"self_attn.q_proj", "self_attn.qkv_proj"}, {"self_attn.k_proj", "self_attn.qkv_proj"},
    {"self_attn.v_proj", "self_attn.qkv_proj"}, {"self_attn.o_proj", "self_attn.dense"},
    {"mlp.gate_proj", "mlp.gate_up_proj"}, {"mlp.up_proj", "mlp.gate_up_proj"},
    {"mlp.gate", "mlp.router"}, {"mlp.gate", "block_sparse_moe.gate"},
    {"mlp.shared_experts.gate_proj", "mlp.shared_expert.gate_proj"},
    {"mlp.shared_experts.up_proj", "mlp.shared_expert.up_proj"},
    {"mlp.shared_experts.down_proj", "mlp.shared_expert.down_proj"},
    {"mlp.experts.@.gate_proj", "mlp.experts.gate_up_proj"}, {"mlp.experts.@.up_proj", "mlp.experts.gate_up_proj"},
    {"mlp.experts.@.down_proj", "mlp.experts.down_proj"},
    {"mlp.experts.@.gate_proj", "block_sparse_moe.experts.@.w1"},
    {"mlp.experts.@.up_proj", "block_sparse_moe.experts.@.w3"},
    {"mlp.experts.@.down_proj", "block_sparse_moe.experts.@.w2"},
    {"mlp.gate", "router.proj"}, {"mlp.gate", "feed_forward.router"}, {"mlp.gate", "mlp.router.classifier"},
    {"mlp.experts.@.gate_proj", "ffn.experts.@.w1"}, {"mlp.experts.@.up_proj", "ffn.experts.@.w3"},
    {"mlp.experts.@.down_proj", "ffn.experts.@.w2"},
    {"mlp.experts.@.gate_proj", "experts.@.gate_proj"}, {"mlp.experts.@.up_proj", "experts.@.up_proj"},
    {"mlp.experts.@.down_proj", "experts.@.down_proj"},
    {"mlp.shared_experts.gate_proj", "share_expert.gate_proj"}, {"mlp.shared_experts.up_proj", "share_expert.up_proj"},
    {"mlp.shared_experts.down_proj", "share_expert.down_proj"},
    {"self_attn.q_a_proj", "attn.wq_a"}, {"self_attn.q_b_proj", "attn.wq_b"}, {"self_attn.k_proj", "attn.wkv"},
    {"self_attn.o_a_proj", "attn.wo_a"}, {"self_attn.o_b_proj", "attn.wo_b"},
    {"self_attn.compressor.kv_gate_proj", "attn.compressor.wkv"},
    {"self_attn.indexer.compressor.kv_gate_proj", "attn.indexer.compressor.wkv"},
    {"self_attn.indexer.weights_proj", "self_attn.indexers_proj"},
    {"linear_attn.in_proj_qkvz", "linear_attn.in_proj_qkv"}, {"linear_attn.in_proj_qkvz", "linear_attn.in_proj_z"},
    {"linear_attn.in_proj_ba", "linear_attn.in_proj_a"}, {"linear_attn.in_proj_ba", "linear_attn.in_proj_b"},
    {"linear_attn.in_proj_qkvz", "mixer.in_proj"}, {"linear_attn.in_proj_qkvz", "mamba.in_proj"},
    {"linear_attn.in_proj_qkvz", "conv.in_proj"}, {"linear_attn.out_proj", "conv.out_proj"},
    {"linear_attn.in_proj_qkvz", "self_attn.q_proj"}, {"linear_attn.out_proj", "self_attn.o_proj"},
    {"linear_attn.in_proj_ba", "self_attn.b_proj"},
};
// The part of a layer that a module belongs to, by architecture.
struct PartSpelling {
  std::string_view usual;
  std::string_view other;
  std::string_view architectures;
};
constexpr PartSpelling kPartSpellings[] = {
    {"self_attn.", "mixer.", "nemotron_h"}, {"mlp.", "mixer.", "nemotron_h"}, {"linear_attn.", "mixer.", "nemotron_h"},
    {"linear_attn.", "mamba.", "granitemoehybrid jamba falcon_h1"},
    {"linear_attn.", "self_attn.", "kimi_linear minimax_text_01 minimax_m1"},
    {"self_attn.", "attn.", "deepseek_v4"}, {"mlp.", "ffn.", "deepseek_v4"},
    {"mlp.", "block_sparse_moe.", "minimax_m2 minimax_m3_vl minimax_m3 minimax_text_01 minimax_m1 mixtral phimoe"},
    {"mlp.", "feed_forward.", "llama4_text llama4 jamba falcon_h1 lfm2 lfm2_moe"},
    {"mlp.", "moe.", "step3p5 step3p7"},
};
// clang-format on

// What a language model is wrapped in, by the library and by models that read more than text.
constexpr std::array<std::string_view, 4> kWrappers = {"model.", "language_model.", "transformer.", "backbone."};
constexpr std::array<std::string_view, 4> kPrefixes = {"model.", "language_model.model.", "model.language_model.", ""};

// Parts of a name that no matrix of the decoder has: norms, embeddings, other modalities, heads for further tokens.
constexpr std::array<std::string_view, 16> kElsewhere = {
    "norm",  "conv1d", "emb",       "bias", "vis", "image",   "audio", "tower",
    "patch", "merger", "projector", "mm_",  "mtp", "eh_proj", "nextn", "multi_modal"};

bool has_part(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// The number of the layer that an entry names ("model.layers.61*", "re:.*layers\.61\..*"); nothing without one.
std::optional<std::int64_t> layer_of(std::string_view text) {
  const std::size_t at = text.find("layers");
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + 6);
  text.remove_prefix(std::min(text.size(), text.find_first_not_of("\\.")));
  return parse_int(text.substr(0, std::min(text.size(), text.find_first_not_of("0123456789"))));
}

std::string unwrapped(std::string_view text) {
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view wrapper : kWrappers) {
      if (!text.starts_with(wrapper)) continue;
      text.remove_prefix(wrapper.size());
      again = true;
    }
  }
  return std::string(text);
}

std::string with_number(std::string_view name, std::int64_t expert) {
  const std::size_t at = name.find('@');
  if (at == std::string_view::npos) return std::string(name);
  return fmt::format("{}{}{}", name.substr(0, at), expert, name.substr(at + 1));
}

}  // namespace

Module module_of(const Tensor& tensor, std::int64_t layer, std::string_view architecture) {
  const bool expert = is_expert(tensor.role);
  std::string usual(tensor.name.substr(0, tensor.name.rfind(".weight")));
  if (expert) usual.insert(usual.find(kExpertsPart) + kExpertsPart.size(), "@.");
  std::vector<std::string> spellings = {usual};
  for (const Spelling& s : kSpellings) {
    if (s.usual == usual) spellings.emplace_back(s.other);
  }
  for (const PartSpelling& s : kPartSpellings) {
    const std::vector<std::string_view> those = words(s.architectures);
    if (std::ranges::find(those, architecture) == those.end()) continue;
    if (usual.starts_with(s.usual)) spellings.push_back(std::string(s.other) + usual.substr(s.usual.size()));
  }
  Module module{.names = {}, .experts = expert ? tensor.count : 0};
  for (const std::int64_t number : {std::int64_t{0}, module.experts - 1}) {
    if (number < 0) break;
    for (const std::string& name : spellings) {
      module.names.push_back(fmt::format("layers.{}.{}", layer, with_number(name, number)));
    }
  }
  return module;
}

Module lm_head_module() { return {.names = {"lm_head"}}; }

void ModuleList::read(descriptor::Reader& reader, std::string_view key) {
  reader.optional_strings(key);  // reports what is not a list of texts
  const descriptor::Node* list = reader.find(key);
  if (list == nullptr) return;
  for (const descriptor::Node& item : list->items) {
    if (item.kind == descriptor::Node::Kind::scalar) add(item.scalar, item, reader.problems());
  }
}

void ModuleList::add(std::string_view text, const descriptor::Node& where, descriptor::Problems& problems) {
  Entry entry{std::string(text), where.line, where.column};
  const bool regex = text.starts_with("re:");
  if (regex || text.find_first_of("*?[") != std::string_view::npos) {
    try {
      NamePattern pattern = regex ? NamePattern::regex(text.substr(3)) : NamePattern::glob(text);
      const bool anywhere = text.starts_with('*') || text.starts_with("re:.*");
      patterns_.push_back({std::move(entry), std::move(pattern), anywhere});
    } catch (const Error& error) {
      problems.add(where,
                   fmt::format("pattern {} is not supported: {}", quote(text), error.diagnostics().front().message),
                   std::string(kEntryWayOut));
    }
    return;
  }
  // Experts that are listed one by one become one entry of the first one's name.
  std::string name = unwrapped(text);
  std::optional<std::int64_t> expert;
  if (const std::size_t at = name.find(kExpertsPart); at != std::string::npos) {
    const std::size_t first = at + kExpertsPart.size();
    const std::size_t end = std::min(name.size(), name.find('.', first));
    expert = parse_int(std::string_view(name).substr(first, end - first));
    if (expert) name.replace(first, end - first, "0");
  }
  Name& known = names_.try_emplace(name, Name{std::move(entry), {}}).first->second;
  if (expert) known.experts.insert(*expert);
}

bool ModuleList::has_name(const std::string& name, std::int64_t experts) {
  const auto found = names_.find(name);
  if (found == names_.end()) return false;
  auto& [entry, listed] = found->second;
  entry.used = true;
  entry.in_part = entry.in_part || (!listed.empty() && std::ssize(listed) != experts);
  return true;
}

bool ModuleList::names(const Module& module) {
  bool named = false;
  for (const std::string& name : module.names) {
    for (std::size_t first = 0; first < name.size();) {
      for (std::size_t end = first; end != std::string::npos;) {
        end = name.find('.', end + 1);
        named = has_name(name.substr(first, end == std::string::npos ? end : end - first), module.experts) || named;
      }
      const std::size_t dot = name.find('.', first);
      first = dot == std::string::npos ? name.size() : dot + 1;
    }
  }
  // The second half of an expert's names is the last expert's.
  const std::size_t half = module.experts > 0 ? module.names.size() / 2 : module.names.size();
  for (Pattern& p : patterns_) {
    const auto matches = [&](std::size_t first, std::size_t end) {
      for (std::size_t i = first; i < end; ++i) {
        for (const std::string_view prefix : kPrefixes) {
          if (p.pattern.matches(std::string(prefix) + module.names[i])) return true;
          if (p.begins_anywhere) break;  // the other prefixes make no difference
        }
      }
      return false;
    };
    const bool all = matches(0, half);
    if (module.experts > 0 && matches(half, module.names.size()) != all) p.entry.in_part = p.entry.used = true;
    p.entry.used = p.entry.used || all;
    named = named || all;
  }
  return named;
}

bool ModuleList::is_too_long(std::int64_t layers, descriptor::Problems& problems) const {
  constexpr std::int64_t kMostMatches = 40'000;
  constexpr std::int64_t kMostCharacters = 1'000'000;  // of all patterns, once for each layer
  const auto most = static_cast<std::size_t>(kMostMatches / layers);
  std::int64_t characters = 0;
  for (const Pattern& pattern : patterns_) characters += std::ssize(pattern.entry.text);
  if (patterns_.size() <= most && characters * layers <= kMostCharacters) return false;
  const Entry& where = patterns_[std::min(most, patterns_.size() - 1)].entry;
  problems.add(where.line, where.column,
               patterns_.size() > most ? fmt::format("more than {} patterns for {} layers", most, layers)
                                       : fmt::format("the patterns are too long for {} layers", layers),
               std::string(kEntryWayOut));
  return true;
}

void ModuleList::check(std::int64_t layers, descriptor::Problems& problems) const {
  const auto check_entry = [&](const Entry& e) {
    const bool elsewhere = layer_of(e.text) >= layers || std::ranges::any_of(kElsewhere, [&](std::string_view part) {
                             return has_part(e.text, part);
                           });
    const char* fault = e.in_part               ? "names some of a layer's experts: they are stored alike here"
                        : !e.used && !elsewhere ? "names nothing that this model is known to have"
                                                : nullptr;
    if (fault == nullptr) return;
    problems.add(e.line, e.column, fmt::format("{} {}", quote(e.text), fault), std::string(kEntryWayOut));
  };
  for (const auto& [key, name] : names_) check_entry(name.entry);
  for (const Pattern& pattern : patterns_) check_entry(pattern.entry);
}

// ---- Keys

namespace {

constexpr std::string_view kWayOut = "remove quantization_config and choose with `weights`";

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
  if (quantization.bool_or("lm_head", false)) {
    quantization.problem("lm_head", "lm_head: true is not supported for this architecture");
  }
  quantization.ignore(
      "desc_act sym damp_percent damp_auto_increment true_sequential static_groups quantizer "
      "model_name_or_path model_file_base_name checkpoint_format meta is_marlin_format use_exllama "
      "disable_exllama exllama_config max_input_length cache_block_outputs dataset batch_size "
      "tokenizer pad_token_id block_name_to_quantize module_name_preceding_first_block "
      "model_seqlen use_cuda_fp16 pack_dtype version zero_point backend do_fuse fuse_max_seq_len "
      "modules_to_fuse rotary_dim");
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
  quantization.ignore("activation_scheme fmt scale_fmt dequantize weight_block_size");
  return quantization.has("weight_block_size") ? block_fp8(quantization, "weight_block_size") : "fp8";
}

std::string read_bitsandbytes(Reader& quantization) {
  quantization.ignore(
      "_load_in_4bit _load_in_8bit bnb_4bit_compute_dtype bnb_4bit_quant_storage "
      "llm_int8_enable_fp32_cpu_offload llm_int8_has_fp16_weight llm_int8_threshold");
  constexpr std::array<std::string_view, 2> kTypes = {"fp4", "nf4"};  // two tables of 16 values, stored alike
  quantization.choice("bnb_4bit_quant_type", kTypes, 0);
  const bool twice = quantization.bool_or("bnb_4bit_use_double_quant", false);
  const bool four = quantization.bool_or("load_in_4bit", false);
  const bool eight = quantization.bool_or("load_in_8bit", false);
  if (four == eight) refuse(quantization, "load_in_4bit", "one of load_in_4bit and load_in_8bit must be true");
  return eight ? "int8" : twice ? "nf4-double" : "nf4";
}

// "FP8", or a mapping of compressed-tensors with the width. AutoFP8 says there how the scales of an fp8 cache are set.
std::string read_kv(Reader& reader, std::string_view key, bool fp8_weights = false) {
  const Node* node = reader.find(key);
  if (node == nullptr) return {};
  std::string type = to_lower(node->scalar);
  if (node->kind == Node::Kind::mapping) {
    Reader scheme(*node, reader.problems(), quote(key));
    const std::string kind = scheme.require_string("type");
    type = fmt::format("{}{}", kind == "float" ? "fp" : kind, scheme.require_int("num_bits", {1, 64}));
  }
  if (fp8_weights && (type == "static" || type == "dynamic")) return "fp8";
  if (type == "fp8" || type == "int8") return type;
  reader.problem(key, fmt::format("a KV cache of {} is not supported, only fp8 and int8", quote(type)),
                 fmt::format("remove {} and choose with `kv`", key));
  return {};
}

// What Model Optimizer's name of an algorithm means; `reader` may say the size of groups.
std::string algorithm_scheme(Reader& reader, std::string_view key) {
  struct Algorithm {
    std::string_view name;
    std::string_view scheme;
  };
  constexpr Algorithm kAlgorithms[] = {{"FP8", "fp8"},
                                       {"FP8_PER_CHANNEL_PER_TOKEN", "fp8-channel"},
                                       {"FP8_PB_WO", "fp8-block128"},
                                       {"MXFP8", "mxfp8"},
                                       {"NVFP4", "nvfp4"},
                                       {"NVFP4_AWQ", "nvfp4"},
                                       {"W4A16_NVFP4", "nvfp4"},
                                       {"W4A16_AWQ", "w4a16-g"},
                                       {"W8A8_SQ_PER_CHANNEL", "w8a8"}};
  const auto group = reader.optional_int("group_size", kWidthRange);
  const std::string name = reader.require_string(key);
  const auto* found = std::ranges::find(kAlgorithms, name, &Algorithm::name);
  if (found == std::end(kAlgorithms)) {
    std::vector<std::string> known;
    for (const Algorithm& a : kAlgorithms) known.emplace_back(a.name);
    if (!name.empty()) {
      reader.problem(key, fmt::format("{} {} is not supported", key, quote(name)),
                     fmt::format("known: {}, MIXED_PRECISION; or {}", join(known, ", "), kWayOut));
    }
    return "fp8";
  }
  if (found->scheme == "nvfp4" && group.value_or(16) != 16) refuse(reader, "group_size", "NVFP4 has groups of 16");
  if (found->scheme == "mxfp8" && group.value_or(32) != 32) refuse(reader, "group_size", "MXFP8 has groups of 32");
  return std::string(found->scheme) + (found->scheme.ends_with("-g") ? std::to_string(group.value_or(128)) : "");
}

// The module that a key names is stored as `scheme`.
void add_rule(Quantization& result, const std::string& scheme, const Node::Entry& key, descriptor::Problems& problems) {
  auto rule = std::ranges::find(result.rules, scheme, &Quantization::Rule::scheme);
  if (rule == result.rules.end()) rule = result.rules.insert(rule, Quantization::Rule{scheme, {}});
  rule->modules.add(key.key, key.value, problems);
}

// A mapping from modules to their algorithms.
void read_quantized_layers(Reader& reader, Quantization& result) {
  const auto layers = reader.optional_mapping("quantized_layers");
  if (!layers) return;
  for (const Node::Entry& entry : layers->node().entries) {
    Reader layer(entry.value, reader.problems(), quote(entry.key));
    const std::string scheme = algorithm_scheme(layer, "quant_algo");
    add_rule(result, scheme, entry, reader.problems());
  }
}

// The keys of Model Optimizer, in either file; `ignored_key` lists what is not quantised.
void read_modelopt(Reader& reader, std::string_view ignored_key, Quantization& result) {
  reader.ignore("producer has_zero_point pre_quant_scale smoothquant_val");
  result.ignored.read(reader, ignored_key);
  result.with_head = reader.has(ignored_key);
  if (!reader.has("quant_algo")) {
    reader.ignore("quant_algo group_size");
  } else if (reader.string_or("quant_algo", "") == "MIXED_PRECISION") {
    reader.ignore("group_size");
    read_quantized_layers(reader, result);
  } else {
    result.scheme = algorithm_scheme(reader, "quant_algo");
  }
  // The same once more, in the words of compressed-tensors.
  const auto groups = reader.optional_mapping("config_groups");
  if (!groups || result.scheme.empty()) return;
  const double said = parse_weight_scheme(result.scheme).expert.bits;
  for (const Node::Entry& entry : groups->node().entries) {
    Reader group(entry.value, reader.problems(), quote(entry.key));
    auto weights = group.optional_mapping("weights");
    if (!weights || !weights->has("num_bits")) continue;
    const std::int64_t bits = weights->require_int("num_bits", {1, 64});
    if (is_sound(*weights, "num_bits", {1, 64}) && static_cast<double>(bits) != said) {
      refuse(*weights, "num_bits",
             fmt::format("num_bits is {}, and weights of quant_algo {} have {}", bits,
                         reader.string_or("quant_algo", ""), said));
    }
  }
}

// MLX's: the bits of every matrix, embedding and lm_head included, and of modules by their names those that are
// otherwise.
std::string mlx_scheme(Reader& reader) {
  constexpr std::array<std::string_view, 1> kModes = {"affine"};
  reader.choice("mode", kModes, 0);
  const std::int64_t bits = reader.require_int("bits", {2, 8});
  const std::int64_t group = reader.int_or("group_size", 64, {32, 128});
  if (bits == 7 || (group != 32 && group != 64 && group != 128)) {
    refuse(reader, "bits", fmt::format("MLX has no {} bits in groups of {}", bits, group));
    return {};
  }
  return fmt::format("mlx-q{}{}", bits, group == 64 ? "" : fmt::format("-g{}", group));
}

void read_mlx(Reader& reader, Quantization& result) {
  result.scheme = mlx_scheme(reader);
  for (const Node::Entry& entry : reader.node().entries) {
    if (entry.value.kind != Node::Kind::mapping) {
      if (entry.value.scalar == "true") reader.ignore(entry.key);
      if (entry.value.scalar == "false") refuse(reader, entry.key, quote(entry.key) + " in 16 bits is not supported");
      continue;
    }
    Reader module(*reader.find(entry.key), reader.problems(), quote(entry.key));
    const std::string scheme = mlx_scheme(module);
    module.finish(kEveryKeyCounts);
    if (scheme == result.scheme || scheme.empty()) continue;
    add_rule(result, scheme, entry, reader.problems());
  }
}

// The scheme of a group of compressed-tensors; empty where only activations are quantised.
std::string group_scheme(Reader& group) {
  group.ignore("format");
  const bool activations = group.optional_mapping("input_activations").has_value();
  if (const Node* out = group.find("output_activations"); out != nullptr) {
    refuse(group, "output_activations", "quantised outputs are not supported");
  }
  auto weights = group.optional_mapping("weights");
  if (!weights) return {};
  weights->ignore("dynamic actorder observer observer_kwargs scale_dtype zp_dtype quantization_status");
  const std::int64_t bits = weights->require_int("num_bits", {1, 64});
  const std::string type = weights->require_string("type");
  const std::string strategy = weights->string_or("strategy", "tensor");
  const std::int64_t size = weights->optional_int("group_size", {-1, kWidthRange.max}).value_or(-1);
  const bool symmetric = weights->bool_or("symmetric", true);
  std::string scheme;
  if (strategy == "block" && type == "float" && bits == 8) {
    scheme = block_fp8(*weights, "block_structure");
  } else if (type == "float" && bits == 8 && size == 32) {
    scheme = "mxfp8";
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
  weights->ignore("block_structure");
  weights->finish(kEveryKeyCounts);
  return scheme;
}

void read_compressed_tensors(Reader& quantization, Quantization& result) {
  quantization.ignore("format quantization_status global_compression_ratio transform_config version");
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
    group.finish(kEveryKeyCounts);
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
  if (quantization.has("bits") && quantization.has("group_size")) return "mlx";
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
    if (quantization.has("quantized_layers")) {
      // Model Optimizer's keys beside: what its list does not name stays as the method says.
      read_quantized_layers(quantization, result);
      quantization.ignore("producer config_groups group_size quant_algo moe_quant_algo ignore");
    }
  } else if (method == "fbgemm_fp8") {
    result.scheme = "fp8-channel";
    quantization.ignore("activation_scale_ub");
  } else if (method == "bitsandbytes") {
    result.scheme = read_bitsandbytes(quantization);
    result.ignored.read(quantization, "llm_int8_skip_modules");
  } else if (method == "mxfp4") {
    result.scheme = "mxfp4";
    result.experts_only = true;
  } else if (method == "modelopt" || method == "modelopt_fp4") {
    auto inner = quantization.optional_mapping("quantization");  // some have hf_quant_config.json here
    read_modelopt(inner ? *inner : quantization, quantization.has("ignore") ? "ignore" : "exclude_modules", result);
    if (inner) result.kv = read_kv(*inner, "kv_cache_quant_algo");
    if (inner) inner->finish(kEveryKeyCounts);
  } else if (method == "mlx") {
    read_mlx(quantization, result);
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
  if (result.kv.empty()) result.kv = read_kv(quantization, kv_key, method == "fp8");
  quantization.ignore("kv_cache_quant_algo kv_cache_scheme");
  quantization.finish(kEveryKeyCounts);
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
  quantization->finish(kEveryKeyCounts);
  root.ignore("producer");
  root.finish(kEveryKeyCounts);
  return result;
}

bool is_quantisable(Role role) {
  return role != Role::vector && role != Role::router && role != Role::shared_router && role != Role::stream_mix &&
         role != Role::recurrent_gates && role != Role::index_weights;
}

RoleSchemes expert_mixture(const std::string& experts, const std::string& others) {
  RoleSchemes schemes;
  for (auto role = static_cast<std::size_t>(Role::q); role < static_cast<std::size_t>(Role::token_embedding); ++role) {
    const auto each = static_cast<Role>(role);
    if (is_quantisable(each)) schemes[each] = is_expert(each) ? experts : others;
  }
  return schemes;
}

namespace {

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

  // Layers are stored alike where the matrices that both have are.
  std::vector<RoleSchemes> mixture;
  std::vector<std::set<Role>> present;
  // The scheme of that name is for experts only.
  bool uniform = !q.scheme.empty() && (q.scheme != "mxfp4" || q.experts_only);
  bool quantised = false;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::vector<Tensor> tensors = layer_tensors(decoder, layers[i]);
    RoleSchemes schemes;
    std::set<Role> roles;
    for (const Tensor& tensor : tensors) {
      if (tensor.role == Role::vector) continue;
      roles.insert(tensor.role);
      const bool in_reach = is_expert(tensor.role) || !q.experts_only;
      const std::string scheme =
          scheme_of(q, module_of(tensor, static_cast<std::int64_t>(i), decoder.architecture), in_reach);
      if (is_quantisable(tensor.role) && !scheme.empty()) schemes[tensor.role] = scheme;
    }
    uniform = uniform && schemes == uniform_schemes(q, tensors);
    quantised = quantised || !schemes.empty();
    std::size_t known = 0;
    const auto agrees = [&](Role role) {
      const auto own = schemes.find(role);
      const auto other = mixture[known].find(role);
      const bool both = own != schemes.end() && other != mixture[known].end();
      return !present[known].contains(role) ||
             (both ? own->second == other->second : own == schemes.end() && other == mixture[known].end());
    };
    while (known < mixture.size() && !std::ranges::all_of(roles, agrees)) ++known;
    stored_as[i] = static_cast<int>(known);
    if (known == mixture.size()) {
      mixture.emplace_back();
      present.emplace_back();
    }
    mixture[known].insert(schemes.begin(), schemes.end());
    present[known].insert(roles.begin(), roles.end());
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
