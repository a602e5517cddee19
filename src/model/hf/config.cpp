// Hugging Face configs. A ConfigReader goes through what the row of the architecture (families.h) says there is to
// read. A config says a lot that does not change what a model costs (token ids, dropout, sampling defaults); those keys
// are listed and skipped. Any other key that nobody reads is an error, because it might change the cost.
#include "model/hf/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "model/reading.h"

namespace llmperf::model {

using descriptor::Node;
using descriptor::Reader;

void ConfigReader::read() {
  read_dimensions();
  if (!family_.key(Fact::heads).empty()) family_.latent ? read_latent() : read_heads();
  read_window();
  read_feed_forward();
  check_keys();
  reader.ignore(family_.skipped);
  if (family_.own_keys != nullptr) family_.own_keys(*this, reader);
  const Attention& a = layer.attention;
  if (a.kv_heads > 0) check_divisible(reader, key(Fact::heads), a.heads, key(Fact::kv_heads), a.kv_heads);
  make_layers();
  if (family_.own_layers != nullptr) family_.own_layers(*this, reader);
}

void ConfigReader::make_layers() {
  layers.assign(static_cast<std::size_t>(num_layers_), layer);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (sliding_[i]) layers[i].attention.window = window_;
    if (!sliding_[i] && !family_.window.rotates_all) layers[i].attention.rotary_dim = 0;
    if (dense_layers_[i]) layers[i].feed_forward = dense_;
  }
}

void ConfigReader::set_layers(std::vector<Layer> all) {
  layers = std::move(all);
  num_layers_ = static_cast<std::int64_t>(layers.size());
}

std::string_view ConfigReader::key(Fact fact) const {
  const std::string_view own = family_.key(fact);
  const std::string_view usual = fact_row(fact).hf;
  return own.empty() || own == usual || reader.has(own) || !reader.has(usual) ? own : usual;
}

std::int64_t ConfigReader::require(Fact fact) {
  const std::string_view name = key(fact);
  if (!reader.has(name)) {
    if (const auto absent = family_.value_where_absent(fact)) {
      reader.ignore(name);
      return *absent;
    }
  }
  return facts_[fact] = reader.require_int(name, fact_row(fact).range);
}

std::optional<std::int64_t> ConfigReader::optional(Fact fact) {
  const std::string_view name = key(fact);
  if (name.empty()) return std::nullopt;
  const auto given = reader.optional_int(name, fact_row(fact).range);
  if (given) facts_[fact] = *given;
  return given ? given : family_.value_where_absent(fact);
}

bool ConfigReader::flag(const Trait& trait) {
  if (trait.key.empty()) return trait.value;
  const auto known = std::ranges::find(flags_, trait.key, &std::pair<std::string_view, bool>::first);
  if (known != flags_.end()) return known->second;
  return flags_.emplace_back(trait.key, reader.bool_or(trait.key, trait.value)).second;
}

bool ConfigReader::fits_layers(std::string_view key, std::size_t entries, bool may_be_longer) {
  const auto most = static_cast<std::size_t>(num_layers_);
  if (entries == most || (may_be_longer && entries > most)) return true;
  const std::string_view count = this->key(Fact::layers);
  if (count.empty() || is_sound(reader, count, kLayerRange)) {
    reader.problem(key, fmt::format("{} lists {} layers, {} is {}", key, entries, count, num_layers_));
  }
  return false;
}

std::optional<std::vector<std::int64_t>> ConfigReader::numbers_of_layers(std::string_view key,
                                                                         descriptor::IntRange range,
                                                                         bool may_be_longer) {
  if (reader.find(key) == nullptr) return std::nullopt;
  std::vector<std::int64_t> numbers = reader.optional_ints(key, range);
  if (!fits_layers(key, numbers.size(), may_be_longer)) return std::nullopt;
  numbers.resize(static_cast<std::size_t>(num_layers_));
  return numbers;
}

std::vector<bool> ConfigReader::second_of(std::string_view key, std::string_view two, const OfLayer& absent,
                                          bool may_be_longer) {
  const std::vector<std::string_view> known = words(two);
  std::vector<bool> second;
  for (const std::string& word : reader.optional_strings(key)) {
    second.push_back(word == known[1]);
    if (second.back() || word == known[0]) continue;
    reader.problem(key, fmt::format("layer type {} is not supported", quote(word)),
                   fmt::format("known types: {}, {}", known[0], known[1]));
    return of_layers(absent);
  }
  if (reader.find(key) == nullptr || !fits_layers(key, second.size(), may_be_longer)) return of_layers(absent);
  second.resize(static_cast<std::size_t>(num_layers_));
  return second;
}

std::vector<bool> ConfigReader::switched(std::string_view key, const OfLayer& absent) {
  const auto numbers = numbers_of_layers(key, kSwitch);
  return numbers ? std::vector<bool>(numbers->begin(), numbers->end()) : of_layers(absent);
}

std::vector<bool> ConfigReader::of_layers(const OfLayer& rule) const {
  std::vector<bool> result;
  for (std::int64_t i = 0; i < num_layers_; ++i) result.push_back(rule(i));
  return result;
}

void ConfigReader::read_dimensions() {
  decoder.hidden = require(Fact::hidden);
  if (!key(Fact::layers).empty()) num_layers_ = require(Fact::layers);
  decoder.vocab = require(Fact::vocab);
  decoder.max_position = optional(Fact::max_position);
  decoder.tied_embeddings = reader.bool_or("tie_word_embeddings", family_.tied);
  decoder.norm = family_.norm;
  decoder.lm_head_bias = family_.lm_head_bias;
  decoder.encoder = family_.encoder;
  decoder.embedding_norm = family_.embedding_norm;
  decoder.next_token_layers = reader.int_or(family_.next_token_key, 0, kNextTokenRange);
  decoder.next_token_copies = family_.next_token_copies;
  if (family_.learned_positions && decoder.max_position) {
    decoder.position_embeddings = *decoder.max_position + *family_.learned_positions;
  }
  layer.norms = family_.norms;
  layer.parallel_blocks = family_.parallel_blocks;
  layer.norms_after = family_.norms_after;
}

void ConfigReader::read_heads() {
  Attention& attention = layer.attention;
  attention.heads = require(Fact::heads);
  attention.kv_heads = attention.heads;
  if (!key(Fact::kv_heads).empty()) {
    const bool as_many = reader.is_null(fact_row(Fact::kv_heads).hf) || !family_.kv_heads;
    attention.kv_heads = value_or(Fact::kv_heads, as_many ? attention.heads : *family_.kv_heads);
  }
  // Under these names null is not the same as absent.
  const bool derived = reader.is_null(fact_row(Fact::head_dim).hf) || !family_.head_dim;
  if (const auto given = optional(Fact::head_dim)) {
    attention.head_dim = *given;
  } else if (!derived) {
    attention.head_dim = *family_.head_dim;
  } else {
    const std::string_view own = key(Fact::head_dim);
    check_divisible(reader, key(Fact::hidden), decoder.hidden, key(Fact::heads), attention.heads,
                    own.empty() ? std::string() : fmt::format("give {} if heads differ", own));
    attention.head_dim = decoder.hidden % attention.heads == 0 ? decoder.hidden / attention.heads : 1;
  }
  attention.v_head_dim = attention.head_dim;

  read_rotation(attention);
  attention.qkv_bias = flag(family_.qkv_bias);
  attention.o_bias = flag(family_.o_bias);
  attention.qk_norm = flag(family_.qk_normed) ? family_.qk_norm : QkNorm::none;
  attention.sinks = family_.sinks;
  attention.fused_qkv = family_.fused_qkv;
  if (family_.softcap) {
    reader.optional_double("attn_logit_softcapping", 0, 1e6);
    attention.softcap = !reader.is_null("attn_logit_softcapping");
  }
}

void ConfigReader::read_rotation(Attention& attention) {
  std::optional<double> share;
  if (!family_.rotary_key.empty()) {
    share = reader.optional_double(family_.rotary_key, 0, 1);
    if (!share && reader.has("rope_parameters")) {
      share = reader.optional_mapping("rope_parameters")->optional_double(family_.rotary_key, 0, 1);
    }
  }
  const double rotated = static_cast<double>(attention.head_dim) * share.value_or(family_.rotary);
  attention.rotary_dim = static_cast<std::int64_t>(std::floor(rotated));
  if (family_.rotary_dim_key.empty()) return;
  const auto given = reader.optional_int(family_.rotary_dim_key, {0, kHeadDimRange.max});
  if (given && *given > attention.head_dim) {
    reader.problem(family_.rotary_dim_key, fmt::format("{} ({}) is more than the width of a head ({})",
                                                       family_.rotary_dim_key, *given, attention.head_dim));
  }
  if (given) attention.rotary_dim = *given;
}

void ConfigReader::read_latent() {
  Attention& attention = layer.attention;
  LatentAttention latent;
  attention.heads = require(Fact::heads);
  attention.kv_heads = attention.heads;
  latent.q_lora_rank = optional(Fact::q_lora_rank);
  if (!latent.q_lora_rank && !is_null(Fact::q_lora_rank)) latent.q_lora_rank = 1536;
  latent.kv_lora_rank = value_or(Fact::kv_lora_rank, 512);
  latent.rope_dim = value_or(Fact::rope_dim, 64);
  latent.nope_dim = value_or(Fact::nope_dim, 128);
  attention.head_dim = latent.rope_dim + latent.nope_dim;
  attention.v_head_dim = value_or(Fact::v_head_dim, 128);
  attention.rotary_dim = family_.rotary > 0 ? latent.rope_dim : 0;
  attention.latent = latent;
}

void ConfigReader::read_window() {
  const WindowRule& rule = family_.window;
  sliding_ = of_layers([](std::int64_t) { return true; });
  if (rule.layers == WindowLayers::none) return;
  if (rule.switched && (!reader.bool_or("use_sliding_window", false) || is_null(Fact::window))) {
    // Some files leave 0 or any other value behind where it is not in use.
    reader.ignore("sliding_window max_window_layers");
  } else {
    window_ = optional(Fact::window);
    if (!window_ && !is_null(Fact::window) && rule.absent > 0) window_ = rule.absent;
  }
  if (rule.layers == WindowLayers::upper && window_) {
    const std::int64_t first = reader.int_or("max_window_layers", 28, {0, kLayerRange.max});
    sliding_ = of_layers([&](std::int64_t i) { return i >= first; });
  } else if (rule.switched) {
    reader.ignore("max_window_layers");
  }
  if (rule.layers == WindowLayers::pattern) {
    const std::int64_t period = read_window_period();
    sliding_ = of_layers([&](std::int64_t i) { return (i + 1) % period != 0; });
  }
  if (rule.layers == WindowLayers::even) sliding_ = of_layers([](std::int64_t i) { return i % 2 == 0; });
  if (rule.layers == WindowLayers::listed && window_ && !reader.has("layer_types")) {
    reader.problem("use_sliding_window",
                   "use_sliding_window needs layer_types: versions of transformers disagree on "
                   "which layers of this architecture see the window");
  }
  if (!rule.has_layer_types) return;
  sliding_ =
      second_of("layer_types", kWindowTypes, [&](std::int64_t i) { return sliding_[static_cast<std::size_t>(i)]; });
}

// "sliding_window_pattern": 6, or "LLLG".
std::int64_t ConfigReader::read_window_period() {
  constexpr std::string_view kPattern = "sliding_window_pattern";
  const Node* node = reader.find(kPattern);
  if (node == nullptr || node->kind != Node::Kind::scalar || !node->quoted) {
    return reader.int_or(kPattern, family_.window.period, {1, kLayerRange.max});
  }
  const bool known = node->scalar.find_first_not_of('L') + 1 == node->scalar.size() && node->scalar.ends_with('G');
  if (!known) reader.problem(kPattern, fmt::format("{} {} is not supported", kPattern, quote(node->scalar)));
  return std::max<std::int64_t>(std::ssize(node->scalar), 1);
}

void ConfigReader::read_feed_forward() {
  FeedForward& ff = layer.feed_forward;
  ff.gated = family_.gated;
  ff.fused_gate_up = family_.fused_gate_up;
  ff.activation = read_activation();
  ff.bias = flag(family_.mlp_bias);
  dense_layers_ = of_layers([](std::int64_t) { return false; });
  if (!family_.experts.count.empty()) return read_experts();
  const std::string_view name = key(Fact::intermediate);
  if (name.empty() && family_.width_of_hidden == 0) return;  // own_layers knows
  if (family_.width_of_hidden > 0 && !reader.has(name)) {
    reader.ignore(name);
    ff.intermediate = family_.width_of_hidden * decoder.hidden;
    return;
  }
  const std::int64_t parts = family_.halved_width ? 2 : 1;
  const std::int64_t width =
      parts == 1 ? require(Fact::intermediate) : reader.require_int(name, {1, parts * kWidthRange.max});
  if (width % parts != 0 && is_sound(reader, name, kWidthRange)) {
    reader.problem(name, fmt::format("{} ({}) is not even: in this architecture it is twice the width of one matrix",
                                     name, width));
  }
  ff.intermediate = std::max<std::int64_t>(width / parts, 1);
}

Activation ConfigReader::read_activation() {
  const std::string_view key = family_.activation_key;
  const std::string name = key.empty() ? "" : reader.string_or(key, "");
  if (name.empty()) return family_.activation;
  const std::optional<Activation> known = find_activation(name);
  if (!known) {
    reader.problem(key, fmt::format("{} {} is not supported", key, quote(name)),
                   "known names: " + join(activation_names(), ", "));
  }
  if (family_.activation != Activation::swiglu_clamped) return known.value_or(Activation::silu);
  if (known && known != Activation::silu) {
    reader.problem(key, fmt::format("this architecture has a clamped SwiGLU; {} must be silu", key));
  }
  return family_.activation;
}

void ConfigReader::read_experts() {
  const ExpertRule& rule = family_.experts;
  Experts experts;
  const bool other = !reader.has(rule.count) && reader.has(rule.other_count);
  reader.ignore(rule.count);
  facts_[Fact::experts] = experts.count =
      reader.require_int(other ? rule.other_count : rule.count, fact_row(Fact::experts).range);
  if (const auto second = reader.optional_int(rule.other_count); second && *second != experts.count) {
    reader.problem(rule.other_count, fmt::format("{} is {} and {} is {}: both are the number of experts", rule.count,
                                                 experts.count, rule.other_count, *second));
  }
  if (!key(Fact::experts_per_token).empty()) {
    experts.per_token = require(Fact::experts_per_token);
    check_experts(reader, key(Fact::experts_per_token), experts);
  }
  reader.ignore("norm_topk_prob");
  if (!rule.methods.empty()) reader.choice("topk_method", words(rule.methods), 0);
  if (rule.grouped) {
    experts.groups = value_or(Fact::expert_groups, 1);
    experts.groups_per_token = value_or(Fact::groups_per_token, experts.groups);
    std::string wrong = groups_problem(experts);
    if (!wrong.empty()) reader.problem(key(Fact::expert_groups), std::move(wrong));
  }
  if (!key(rule.width).empty()) experts.intermediate = require(rule.width);
  read_shared_experts(experts);
  experts.router_bias = rule.router_bias;
  experts.score_correction = flag({rule.score_correction, rule.correction_key});
  layer.feed_forward.experts = experts;
  read_dense_layers();
}

void ConfigReader::read_shared_experts(Experts& experts) {
  switch (family_.experts.shared) {
    case SharedExperts::none: return;
    case SharedExperts::gated:
      experts.shared_intermediate = require(Fact::shared_width);
      experts.shared_gate = true;
      return;
    case SharedExperts::counted: {
      const std::string_view name = key(Fact::shared_experts);
      const std::int64_t count = reader.optional_int(name, {0, kExpertRange.max}).value_or(0);
      const bool said = reader.has(name) || reader.is_null(name) || family_.value_where_absent(Fact::shared_experts);
      if (!said) reader.require_int(name);
      experts.shared_intermediate = count * experts.intermediate;
      return;
    }
  }
}

// The dense layers are of width intermediate_size, which otherwise means nothing.
void ConfigReader::read_dense_layers() {
  switch (family_.experts.dense) {
    case DenseLayers::none: return;
    case DenseLayers::leading: {
      const std::int64_t dense = value_or(Fact::leading_dense, family_.experts.leading);
      dense_layers_ = of_layers([&](std::int64_t i) { return i < dense; });
      break;
    }
    case DenseLayers::by_step: {
      // Layer i has experts when i + 1 is a multiple of the step and it is not in the list.
      const std::int64_t step = reader.int_or("decoder_sparse_step", 1, kLayerRange);
      dense_layers_ = of_layers([&](std::int64_t i) { return (i + 1) % step != 0; });
      for (const std::int64_t i : reader.optional_ints("mlp_only_layers", {0, kLayerRange.max})) {
        if (i < num_layers_) dense_layers_[static_cast<std::size_t>(i)] = true;
      }
      break;
    }
  }
  dense_ = layer.feed_forward;
  dense_.experts.reset();
  if (std::ranges::find(dense_layers_, true) != dense_layers_.end()) {
    dense_.intermediate = require(Fact::intermediate);
  } else {
    reader.ignore(key(Fact::intermediate));
  }
}

// Reports a boolean key that is not `expected`: that variant is not supported.
void ConfigReader::expect(std::string_view key, bool expected) {
  if (reader.bool_or(key, expected) == expected) return;
  reader.problem(key, fmt::format("{}: {} is not supported for this architecture", key, !expected));
}

// Keys of this architecture, and of every one, that must say what they usually say.
void ConfigReader::check_keys() {
  for (const std::string_view key : words(family_.must_be_false)) expect(key, false);
  for (const std::string_view key : words(family_.must_be_true)) expect(key, true);
  for (const std::string_view key : words(family_.must_be_one)) {
    if (reader.int_or(key, 1, {1, kPositionRange.max}) == 1) continue;
    reader.problem(key, fmt::format("{} other than 1 is not supported", key));
  }
}

namespace {

// Whether a text under a key that nobody knows cannot change the cost: it says in which type of 16 bits or more a part
// is computed, or what function a gate or a score is; or it is free, a version, a sentence or a path. Any other word
// may name a variant.
bool is_harmless_text(const std::string& key, const std::string& text) {
  const auto any_in = [](const std::string& where, std::string_view parts) {
    return std::ranges::any_of(words(parts), [&](auto part) { return where.find(part) != std::string::npos; });
  };
  if (any_in(key, "version author license")) return true;
  const std::string both = to_lower(key + '=' + text);
  const auto known = words("float32 fp32 bfloat16 bf16 float16 fp16 sigmoid softmax silu swish");
  if (any_in(both, "dtype gate router score") && std::ranges::count(known, to_lower(text)) > 0) return true;
  const std::size_t dot = text.find('.');
  const bool version =
      dot > 0 && dot < text.size() && parse_int(text.substr(dot - 1, 1)) && parse_int(text.substr(dot + 1, 1));
  const bool letters = std::ranges::any_of(to_lower(text), [](char c) { return c >= 'a' && c <= 'z'; });
  return letters && (version || text.find_first_of(" /") != std::string::npos) &&
         !any_in(both, "attention attn layer linear mamba expert moe quant conv pattern block");
}

}  // namespace

std::vector<std::string> ConfigReader::pass_over_harmless() {
  facts_.emplace(Fact::kv_heads, layer.attention.kv_heads);  // where they follow from others
  facts_.emplace(Fact::head_dim, layer.attention.head_dim);
  std::vector<std::string> texts;
  for (const std::string& unknown : reader.unknown_keys()) {
    const Node& node = *reader.node().find(unknown);
    const bool scalar = node.kind == Node::Kind::scalar;
    const auto number = scalar && !node.quoted ? parse_int(node.scalar) : std::nullopt;
    const std::optional<Fact> fact = number ? fact_called(unknown) : std::nullopt;
    const auto own = fact ? facts_.find(*fact) : facts_.end();
    // Of lengths files state several.
    const bool length = number && *number > 0 && *number <= kPositionRange.max && fact == Fact::max_position;
    const bool again = number && own != facts_.end();
    if (length && !decoder.max_position) decoder.max_position = *number;
    const bool text = scalar && node.quoted && is_harmless_text(unknown, node.scalar);
    if (text) texts.push_back(unknown);
    if (again || length || text || node.kind == Node::Kind::null ||
        (node.kind == Node::Kind::sequence && node.items.empty())) {
      reader.ignore(unknown);
    }
    if (!again || length || own->second == *number) continue;
    const std::string other = key(own->first).empty() ? "what else the file says" : std::string(key(own->first));
    reader.problem(unknown, fmt::format("{} is {}, and {} by {}", unknown, *number, own->second, other));
  }
  return texts;
}

namespace {

// Of the families that can read the config the one that passes over the least of it; empty where none can.
std::string nearest_family(const descriptor::Document& document) {
  std::string nearest;
  std::size_t least = std::string::npos;
  // How its weights are stored says nothing of the family, and takes longest to read.
  descriptor::Document plain = document;
  const auto is_stored = [](const Node::Entry& e) { return e.key.starts_with("quantization"); };
  std::erase_if(plain.root.entries, is_stored);
  for (Node::Entry& part : plain.root.entries) std::erase_if(part.value.entries, is_stored);
  for (const Family& family : families()) {
    const std::string name(family.name);
    try {
      descriptor::Problems problems(document.file);
      const std::size_t passed_over = parse_hf_config(plain, problems, nullptr, name).assumed.size() - name.size();
      if (passed_over >= least) continue;
      least = passed_over;
      nearest = name;
    } catch (const Error&) {  // not this one
    }
  }
  return nearest;
}

// Up to three families that an unknown one may be, the likeliest first: one whose name its own goes on from (a point
// release, the part of a model that sees), what its keys say, and names like it.
std::vector<std::string> likely_families(const descriptor::Document& document, const std::string& model_type) {
  const std::vector<std::string> known = family_names();
  std::vector<std::string> likely = nearest_names(model_type, known);
  likely.insert(likely.begin(), nearest_family(document));
  for (std::string start = model_type; start.find('_') != std::string::npos;) {
    start.resize(start.rfind('_'));
    if (std::ranges::count(known, start) == 0) continue;
    likely.insert(likely.begin(), start);
    break;
  }
  std::vector<std::string> found;
  for (const std::string& name : likely) {
    if (!name.empty() && found.size() < 3 && std::ranges::count(found, name) == 0) found.push_back(name);
  }
  return found;
}

// Null, and reported, where there is none.
const Family* family_of(Reader& reader, const descriptor::Document& document, const std::string& model_type) {
  if (const Family* family = find_family(model_type)) return family;
  if (const std::string_view missing = missing_ingredient(model_type); !missing.empty()) {
    reader.problem("model_type", fmt::format("model_type {} is not supported: {}", quote(model_type), missing));
    return nullptr;
  }
  const std::vector<std::string> likely = likely_families(document, model_type);
  const std::string way_out = "llmperf show model NAME `emit` model > my.yaml writes a descriptor to start from";
  reader.problem("model_type", fmt::format("model_type {} is not supported", quote(model_type)),
                 likely.empty() ? way_out
                                : fmt::format("nearest by name and keys: {}. If its layers are the same, `assume` {} "
                                              "reads it so; else {}",
                                              join(likely, ", "), likely.front(), way_out));
  return nullptr;
}

const Family* assumed_family(const std::string& assume) {
  if (const Family* family = find_family(assume)) return family;
  const std::vector<std::string> known = family_names();
  throw Error::bad_input(fmt::format("`assume`: unknown family {}", quote(assume)), name_hint(assume, known));
}

// Rows of a classifier's head; `config` is whole.
std::int64_t labels_of(const Node& config) {
  if (const Node* said = config.find("num_labels")) {
    return std::clamp<std::int64_t>(parse_int(said->scalar).value_or(1), 1, kHiddenRange.max);
  }
  const Node* names = config.find("id2label");
  return names != nullptr && !names->entries.empty() ? std::ssize(names->entries) : 2;
}

// A head other than a language model's: a classifier's (rerankers and reward models) has a row per label, an embedding
// model has none; neither generates. Qwen's reward models have a layer more. Encoders are counted without a head.
void read_head(Reader& reader, const Family& family, const Node& whole, Decoder& decoder) {
  for (const std::string& name : reader.optional_strings("architectures")) {
    if (family.encoder || name.ends_with("ForCausalLM") || name.ends_with("LMHeadModel") ||
        name.ends_with("ForConditionalGeneration") || name == "ChatGLMModel") {
      continue;
    }
    const bool reward = name.ends_with("RewardModel");
    const bool classifies = name.ends_with("ForSequenceClassification") || name.ends_with("ForTokenClassification");
    if (!reward && !classifies && !name.ends_with("Model")) {
      reader.problem("architectures",
                     fmt::format("architecture {} is not a decoder with a language model head, nor a classifier or an "
                                 "embedding model",
                                 quote(name)),
                     fmt::format("`assume` {} counts it as one with a language model head", family.name));
      continue;
    }
    decoder.encoder = decoder.causal = true;
    decoder.tied_embeddings = false;
    decoder.next_token_layers = 0;
    decoder.pooler = reward && family.name.starts_with("qwen");
    decoder.labels = classifies ? labels_of(whole) : !reward ? 0 : name.ends_with("ProcessRewardModel") ? 2 : 1;
    decoder.lm_head_bias = decoder.pooler || name.ends_with("ForTokenClassification");
  }
}

// The type that a checkpoint's unquantised parts are stored in, under its new or its old key.
std::string read_dtype(const Node& whole, descriptor::Problems& problems) {
  std::string type;
  for (const char* key : {"dtype", "torch_dtype"}) {
    const Node* said = whole.find(key);
    if (said == nullptr || said->kind != Node::Kind::scalar) continue;
    const std::string own = said->scalar.substr(said->scalar.starts_with("torch.") ? 6 : 0);
    if (std::ranges::count(words("float32 float16 bfloat16 float64 float8_e4m3fn auto fp32 fp16 bf16"), own) == 0) {
      problems.add(*said, fmt::format("{} {} is no type that weights are stored in", key, quote(own)));
    }
    if (type.empty()) type = own;
  }
  return type;
}

// A pipeline of diffusers (model_index.json) or one of its parts.
void refuse_diffusers(const Node& whole, descriptor::Problems& problems) {
  const Node* name = whole.find("_class_name");
  if (name == nullptr || whole.find("model_type") != nullptr) return;
  std::string parts;
  for (const Node::Entry& part : whole.entries) {
    if (part.value.items.size() == 2) parts += ", " + part.key + " " + part.value.items[1].scalar;
  }
  problems.add(*name,
               fmt::format("diffusers' {}{} generates images or video, and is no language model", name->scalar, parts),
               "video models are built in: llmperf list models; a text encoder has a config.json of its own");
  problems.throw_if_any();
}

// Keys every config may have and that do not change the cost unless they are set to something unusual.
void check_common_keys(Reader& reader) {
  reader.ignore("rope_parameters model_max_length");
  for (const std::string_view key : {"is_encoder_decoder", "add_cross_attention"}) {
    if (!reader.bool_or(key, false)) continue;
    reader.problem(key, fmt::format("{}: true is not supported for this architecture", key));
  }
  for (const std::string_view key : {"cross_attention_hidden_size", "cross_attention_layers"}) {
    if (reader.find(key) == nullptr) continue;
    reader.problem(
        key, fmt::format("{}: cross-attention, whose keys and values are not of the text, is not supported", key));
  }
  const Node* pruned = reader.find("pruned_heads");
  if (pruned != nullptr && (pruned->kind != Node::Kind::mapping || !pruned->entries.empty())) {
    reader.problem("pruned_heads", "pruned heads are not supported");
  }
}

// "…/Qwen2-7B/config.json" is called Qwen2-7B, "my-model.json" my-model.
std::string name_from_file(std::string_view file) {
  const std::size_t slash = file.rfind('/');
  const std::string_view base = slash == std::string_view::npos ? file : file.substr(slash + 1);
  const std::string_view stem = base.substr(0, base.rfind('.'));
  if (stem != "config" || slash == std::string_view::npos) return std::string(stem);
  const std::string_view folder = file.substr(0, slash);
  const std::string_view last = folder.substr(folder.rfind('/') + 1);
  return std::string(last.empty() || last == "." || last == ".." ? stem : last);
}

void add_stored_layers(const std::vector<Layer>& layers, const std::vector<int>& stored_as, Decoder& decoder,
                       Reader& reader) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Layer layer = layers[i];
    layer.stored_as = stored_as[i];
    decoder.add_layer(layer);
    if (decoder.kinds.size() < Decoder::kMostKinds) continue;
    reader.problem("num_hidden_layers", "the layers are stored in more ways than are supported",
                   "remove quantization_config and choose with `weights`");
    return;
  }
}

// A model that reads more than text has a config of its own for the language model. What may stand outside of it holds
// for the language model too; everything else there is about the other parts. Null: the config is all of one model.
std::optional<Node> language_config(const Node& root) {
  for (const std::string_view key : {"text_config", "llm_config", "thinker_config"}) {
    const Node* nested = root.find(key);
    if (nested == nullptr || nested->kind != Node::Kind::mapping) continue;
    Node language = language_config(*nested).value_or(*nested);
    for (const char* shared :
         {"model_type", "tie_word_embeddings", "quantization_config", "quantization", "dtype", "torch_dtype"}) {
      const Node* outer = root.find(shared);
      const bool has_own = language.find(shared) != nullptr;
      if (outer != nullptr && !has_own) language.entries.push_back({shared, outer->line, outer->column, *outer});
    }
    return language;
  }
  return std::nullopt;
}

// DeepSeek-V4 says beside the quantisation that routed experts are stored otherwise than it says.
void read_expert_type(Reader& reader, Quantization& quantization) {
  constexpr std::string_view kKey = "expert_dtype";
  const Node* node = reader.find(kKey);
  if (node == nullptr) return;
  const std::string type = reader.string_or(kKey, "");
  if (type == "fp8" || type == "bf16") return;
  if (type != "fp4") {
    reader.problem(kKey, fmt::format("{} {} is not supported", kKey, quote(type)), "known: fp4, fp8, bf16");
    return;
  }
  // After those of a list, which may say otherwise.
  Quantization::Rule rule{"mxfp4", {}};
  rule.modules.add("mlp.experts", *node, reader.problems());
  quantization.rules.push_back(std::move(rule));
}

// What the config and the file beside it say, in that order. Problems of the latter are thrown at once.
Quantization read_quantization(Reader& reader, const descriptor::Document* beside,
                               descriptor::Problems& beside_problems) {
  // MLX writes it under both keys.
  auto other_key = reader.optional_mapping("quantization");
  auto own = reader.optional_mapping("quantization_config");
  if (!own) own = other_key;
  Quantization quantization = own ? read_quantization_config(*own) : Quantization();
  read_expert_type(reader, quantization);
  if (beside == nullptr) return quantization;
  Reader root(beside->root, beside_problems, "the file");
  Quantization other = read_hf_quant_config(root, own.has_value());
  beside_problems.throw_if_any();
  if (!own) return other;
  if (quantization.kv.empty()) quantization.kv = other.kv;
  return quantization;
}

}  // namespace

bool is_hf_config(const descriptor::Document& document) {
  return document.file.ends_with(".json") || document.root.find("model_type") != nullptr ||
         document.root.find("architectures") != nullptr;
}

Decoder parse_hf_config(const descriptor::Document& document, descriptor::Problems& problems,
                        const descriptor::Document* beside, const std::string& assume) {
  const std::optional<Node> language = language_config(document.root);
  const Node& whole = language ? *language : document.root;
  const std::string dtype = read_dtype(whole, problems);
  // Keys that do not change the cost are out of the way, so that neither readers nor hints need to know them.
  Node root = whole;
  std::erase_if(root.entries, [](const Node::Entry& e) { return is_neutral_key(e.key); });
  Reader reader(root, problems, "the config");
  refuse_diffusers(whole, problems);
  const bool assumes = !assume.empty();
  const std::string model_type = assumes ? reader.string_or("model_type", "none") : reader.require_string("model_type");
  problems.throw_if_any();
  const Family* family = assumes ? assumed_family(assume) : family_of(reader, document, model_type);
  problems.throw_if_any();  // the keys of an unknown architecture mean nothing

  ConfigReader config(reader, *family);
  Decoder& decoder = config.decoder;
  decoder.name = name_from_file(document.file);
  decoder.architecture = model_type;
  decoder.source = "Hugging Face config " + document.file;
  config.read();
  assumes ? reader.ignore("architectures") : read_head(reader, *family, whole, decoder);
  decoder.vision = read_hf_vision(document.root, decoder.hidden, problems);
  if (decoder.vision) {
    decoder.notes = "the language model, and beside it the tower that reads images; what reads sound is not counted";
  } else if (language) {
    decoder.notes = "the language model alone: what reads images, video or sound is not counted";
  }
  descriptor::Problems beside_problems(beside ? beside->file : std::string());
  Quantization quantization = read_quantization(reader, beside, beside_problems);
  const std::vector<std::string> texts = config.pass_over_harmless();
  check_common_keys(reader);
  if (!texts.empty()) {
    decoder.notes += fmt::format("{}passed over, being text: {}", decoder.notes.empty() ? "" : "; ", join(texts, ", "));
  }
  if (assumes) {
    const std::vector<std::string> unknown = reader.unknown_keys();
    decoder.read_as = assume;
    decoder.assumed = fmt::format("read as {}, its model_type is {}", assume, model_type);
    if (!unknown.empty()) decoder.assumed += "; keys passed over: " + join(unknown, ", ");
  } else {
    const std::string advice =
        fmt::format("{} `assume` {} reads the file without it, and says so.", kEveryKeyCounts, family->name);
    reader.finish(problems.empty() ? advice : kEveryKeyCounts);
  }
  problems.throw_if_any();

  const std::vector<Layer>& layers = config.layers;
  const bool own = reader.has("quantization_config") || reader.has("quantization");
  const std::vector<int> stored_as =
      apply_quantization(quantization, layers, decoder, own ? problems : beside_problems);
  beside_problems.throw_if_any();
  if (dtype == "float32" && quantization.scheme.empty() && decoder.mixture.empty()) decoder.default_weights = "fp32";
  add_stored_layers(layers, stored_as, decoder, reader);
  problems.throw_if_any();  // before its tensors are counted
  check_size(decoder, reader);
  problems.throw_if_any();
  return std::move(decoder);
}

}  // namespace llmperf::model
