// From the header of a GGUF file to the model it holds: dimensions from the keys of the architecture, traits from its
// row (families.h) and from which tensors there are, and then which tensor of the file is which of the model's.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/text.h"
#include "base/utf8.h"
#include "model/families.h"
#include "model/gguf/tensors.h"
#include "model/reading.h"

namespace llmperf::model {
namespace {

constexpr std::string_view kRouter = "ffn_gate_inp.weight";
constexpr std::string_view kScoreCorrection = "exp_probs_b.bias";

// "blk.12.attn_q.weight" as 12 and "attn_q.weight"; the layer is -1 outside the layers.
struct PlacedName {
  int layer = -1;
  std::string_view stem;
};
PlacedName parse_name(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  constexpr std::size_t kMostDigits = 6;
  if (!name.starts_with(kPrefix)) return {-1, name};
  const std::string_view rest = name.substr(kPrefix.size());
  const std::size_t dot = rest.find('.');
  if (dot == 0 || dot == std::string_view::npos || dot > kMostDigits) return {-1, name};
  int layer = 0;
  for (const char digit : rest.substr(0, dot)) {
    if (digit < '0' || digit > '9') return {-1, name};
    layer = 10 * layer + (digit - '0');
  }
  return {layer, rest.substr(dot + 1)};
}

// What one file says, and everything that is wrong with it, each with its place: its tensors by name, and typed access
// to the settings of its architecture ("qwen2.block_count" is "block_count" here). What is missing, of another type or
// out of range is reported and a harmless value returned: read on, and call throw_if_any() before the values are used.
// Keys nobody asks for are left alone: most are about numerics and the tokenizer.
class GgufFacts {
 public:
  // A file of the wrong kind has thousands of wrong tensors; nobody reads more than these.
  static constexpr std::size_t kMaxProblems = 20;

  // The file must outlive it.
  explicit GgufFacts(const GgufFile& of) : file(of) {
    by_name_.reserve(of.tensors.size());
    for (const GgufTensorInfo& each : of.tensors) by_name_.emplace(each.name, &each);
  }
  const GgufFile& file;
  std::string architecture = {};

  // ---- Tensors; null when there is none

  const GgufTensorInfo* tensor(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  const GgufTensorInfo* tensor(std::int64_t layer, std::string_view stem) const {
    return tensor("blk." + std::to_string(layer) + "." + std::string(stem));
  }
  bool any_layer(std::string_view stem) const {
    return std::ranges::any_of(file.tensors, [&](const GgufTensorInfo& each) {
      const PlacedName name = each.name.ends_with(stem) ? parse_name(each.name) : PlacedName{};
      return name.layer >= 0 && name.stem == stem;
    });
  }

  // ---- Settings

  std::string full(std::string_view key) const { return architecture + "." + std::string(key); }
  const GgufEntry* find(std::string_view key) const { return file.find(full(key)); }
  bool has(std::string_view key) const { return find(key) != nullptr; }

  std::optional<std::int64_t> optional(std::string_view key, descriptor::IntRange range) {
    const GgufEntry* entry = find(key);
    return entry == nullptr ? std::nullopt : std::optional(read_int(*entry, range));
  }
  std::int64_t require(std::string_view key, descriptor::IntRange range) {
    if (!has(key)) missing(key);
    return optional(key, range).value_or(range.min);
  }
  std::optional<std::int64_t> optional(Fact fact) { return optional(fact_row(fact).gguf, fact_row(fact).range); }
  std::int64_t require(Fact fact) { return require(fact_row(fact).gguf, fact_row(fact).range); }
  std::int64_t value_or(Fact fact, std::int64_t absent) { return optional(fact).value_or(absent); }
  // 0 stands for absent in files.
  std::optional<std::int64_t> nonzero(std::string_view key, std::int64_t most) {
    const auto value = optional(key, {0, most});
    return value && *value > 0 ? value : std::nullopt;
  }
  std::optional<std::int64_t> nonzero(Fact fact) { return nonzero(fact_row(fact).gguf, fact_row(fact).range.max); }
  // One value for all layers or an array with one for each; empty when absent.
  std::vector<std::int64_t> per_layer(std::string_view key, std::int64_t layers, descriptor::IntRange range);
  std::optional<double> number(std::string_view key);
  std::optional<bool> boolean(std::string_view key);

  // ---- Problems

  // Of what the file lacks.
  void add(std::string message, std::string hint = {}) { append({file.path}, std::move(message), std::move(hint)); }
  // At a GgufEntry or a GgufTensorInfo.
  template <class Place>
  void add(const Place& where, const std::string& message, const std::string& hint = {}) {
    const auto shard = static_cast<std::size_t>(where.shard);
    append({shard < file.shards.size() ? file.shards[shard] : file.path, 0, 0, where.offset}, message, hint);
  }
  // At the key if it is there.
  void problem(std::string_view key, const std::string& message, const std::string& hint = {}) {
    if (const GgufEntry* entry = find(key)) return add(*entry, message, hint);
    add(message, hint);
  }
  void missing(std::string_view key) {
    unsound_ = true;
    add(fmt::format("missing key {}", quote(full(key))));
  }
  // Values that do not go together; nothing if one was replaced by a harmless one, which says nothing.
  void contradiction(std::string_view key, const std::string& message, const std::string& hint = {}) {
    if (!unsound_) problem(key, message, hint);
  }
  // `value` of a key must be a multiple of another's.
  void divisible(std::string_view key, std::int64_t value, std::string_view by, std::int64_t divisor,
                 const std::string& hint = {}) {
    if (value % divisor == 0) return;
    contradiction(key, fmt::format("{} ({}) is not divisible by {} ({})", key, value, by, divisor), hint);
  }
  // Throws Error(bad_input) with all of them, if there are any.
  void throw_if_any() {
    if (diagnostics_.empty()) return;
    if (more_ > 0) diagnostics_.push_back({{file.path}, fmt::format("… and {} more problems", more_), ""});
    throw Error(ErrorKind::bad_input, std::move(diagnostics_));
  }

 private:
  void append(SourcePosition where, std::string message, std::string hint) {
    if (diagnostics_.size() == kMaxProblems) {
      ++more_;
    } else {
      diagnostics_.push_back({std::move(where), std::move(message), std::move(hint)});
    }
  }
  void refuse(const GgufEntry& entry, const std::string& message) {
    unsound_ = true;
    add(entry, message);
  }
  std::int64_t read_int(const GgufEntry& entry, descriptor::IntRange range);

  std::unordered_map<std::string_view, const GgufTensorInfo*> by_name_;
  std::vector<Diagnostic> diagnostics_;
  std::size_t more_ = 0;
  bool unsound_ = false;  // a value was missing or refused
};

std::int64_t GgufFacts::read_int(const GgufEntry& entry, descriptor::IntRange range) {
  const auto* value = std::get_if<std::int64_t>(&entry.value);
  if (value != nullptr && *value >= range.min && *value <= range.max) return *value;
  refuse(entry, value == nullptr
                    ? fmt::format("{} must be an integer", quote(entry.key))
                    : fmt::format("{} is {}, must be from {} to {}", quote(entry.key), *value, range.min, range.max));
  return range.min;
}

std::vector<std::int64_t> GgufFacts::per_layer(std::string_view key, std::int64_t layers, descriptor::IntRange range) {
  const GgufEntry* entry = find(key);
  if (entry == nullptr) return {};
  const auto count = static_cast<std::size_t>(layers);
  const auto* array = std::get_if<GgufArray>(&entry->value);
  if (array == nullptr) return std::vector<std::int64_t>(count, read_int(*entry, range));
  std::vector<std::int64_t> values(count, range.min);
  if (array->length != layers) {
    refuse(*entry, fmt::format("{} lists {} layers, the model has {}", quote(entry->key), array->length, layers));
    return values;
  }
  if (array->numbers.size() != count) {
    refuse(*entry, fmt::format("{} must be an array of integers", quote(entry->key)));
    return values;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const double number = array->numbers[i];
    // In this order a not-a-number fails too.
    if (number >= static_cast<double>(range.min) && number <= static_cast<double>(range.max) &&
        number == std::floor(number)) {
      values[i] = static_cast<std::int64_t>(number);
      continue;
    }
    refuse(*entry, fmt::format("{}: layer {} has {}, must be an integer from {} to {}", quote(entry->key), i, number,
                               range.min, range.max));
    break;  // one of them says it all
  }
  return values;
}

std::optional<double> GgufFacts::number(std::string_view key) {
  const GgufEntry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  if (const auto* number = std::get_if<double>(&entry->value)) return *number;
  if (const auto* integer = std::get_if<std::int64_t>(&entry->value)) return static_cast<double>(*integer);
  refuse(*entry, fmt::format("{} must be a number", quote(entry->key)));
  return std::nullopt;
}

std::optional<bool> GgufFacts::boolean(std::string_view key) {
  const GgufEntry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  if (const auto* value = std::get_if<bool>(&entry->value)) return *value;
  refuse(*entry, fmt::format("{} must be true or false", quote(entry->key)));
  return std::nullopt;
}

// A file on its way to becoming a Decoder. Vectors have one element per layer.
class GgufReader {
 public:
  GgufReader(GgufFacts& facts, const Family& family) : facts_(facts), family_(family) {
    facts.architecture = family.gguf;
    if (const GgufArchitecture* own = find_gguf_architecture(family.gguf)) architecture_ = *own;
    latent_ = family.latent || facts_.has(fact_row(Fact::kv_lora_rank).gguf);
  }

  Decoder read() {
    blocks_ = facts_.require(Fact::layers);
    facts_.throw_if_any();  // arrays have one value per layer
    read_next_token_layers();
    read_dimensions();
    read_norm();
    check_variants();
    read_heads();
    find_expert_layers();
    read_widths();
    find_mixers();
    facts_.throw_if_any();  // which layers there are is known
    read_attention();
    if (const auto first = std::ranges::find(recurrent_, true); first != recurrent_.end()) {
      recurrence_ = read_recurrent(first - recurrent_.begin());
    }
    read_experts();
    const std::optional<std::int64_t> first = first_layer(false);
    dense_ = feed_forward(first && facts_.tensor(*first, "ffn_down.bias") != nullptr);
    read_streams();
    facts_.throw_if_any();

    // The name Hugging Face has for it, so that a model is the same whichever file it was read from.
    decoder_.architecture = family_.name;
    // What llama.cpp makes a text's vector of: the mean, the first or the last token.
    const double pooled = facts_.number("pooling_type").value_or(0);
    decoder_.causal = !family_.encoder && pooled >= 1 && pooled <= 3;
    decoder_.encoder = family_.encoder || decoder_.causal;
    decoder_.tied_embeddings = facts_.tensor("output.weight") == nullptr && !decoder_.encoder;
    decoder_.lm_head_bias = family_.lm_head_bias || facts_.tensor("output.bias") != nullptr;
    assemble_layers();
    facts_.throw_if_any();
    if (std::string problem = size_problem(decoder_); !problem.empty()) facts_.add(std::move(problem));
    facts_.throw_if_any();
    return std::move(decoder_);
  }

 private:
  // Whether layer `i` has the tensor, and rows of it: of a matrix the outputs.
  bool has(std::int64_t i, std::string_view stem) const { return facts_.tensor(i, stem) != nullptr; }
  std::int64_t rows(std::int64_t i, std::string_view stem) const { return rows(facts_.tensor(i, stem)); }
  static std::int64_t rows(const GgufTensorInfo* tensor) { return tensor == nullptr ? 0 : tensor->shape[1]; }
  // … as a width, which is reported if it is none.
  std::int64_t width_of(const GgufTensorInfo* tensor, descriptor::IntRange range) {
    const std::int64_t width = rows(tensor);
    if (tensor == nullptr || (width >= range.min && width <= range.max)) return width;
    facts_.add(*tensor, fmt::format("tensor {} has {} rows, supported are {} to {}", quote(tensor->name), width,
                                    range.min, range.max));
    return range.min;
  }

  // The last layers of a file may be such as predict further tokens. They are not run here, nor in most of llama.cpp.
  void read_next_token_layers() {
    constexpr std::string_view key = "nextn_predict_layers";
    const std::int64_t next = facts_.nonzero(key, kNextTokenRange.max).value_or(0);
    layers_ = blocks_ - next;
    if (layers_ < 1) {
      facts_.problem(key, fmt::format("{} ({}) leaves none of the {} layers", key, next, blocks_));
      layers_ = 1;
    }
    // A file may have been left without them.
    if (!has(layers_, "nextn.eh_proj.weight")) return;
    decoder_.next_token_layers = next;
    decoder_.next_token_copies = has(layers_, "nextn.embed_tokens.weight");
  }
  std::vector<std::int64_t> per_layer(std::string_view key, descriptor::IntRange range) {
    std::vector<std::int64_t> values = facts_.per_layer(key, blocks_, range);
    if (!values.empty()) values.resize(static_cast<std::size_t>(layers_));
    return values;
  }

  void read_dimensions() {
    decoder_.hidden = facts_.require(Fact::hidden);
    decoder_.max_position = facts_.nonzero(Fact::max_position);
    // As llama.cpp does: the vocabulary's own length before the key, which tools that add tokens leave behind.
    const GgufEntry* tokens = facts_.file.find("tokenizer.ggml.tokens");
    const auto* list = tokens == nullptr ? nullptr : std::get_if<GgufArray>(&tokens->value);
    if (list == nullptr || list->length == 0) {
      decoder_.vocab = facts_.require(Fact::vocab);
    } else if (list->length > kVocabRange.max) {
      facts_.add(*tokens, fmt::format("{} tokens are more than the {} supported", list->length, kVocabRange.max));
    } else {
      decoder_.vocab = list->length;
    }
    decoder_.position_embeddings = width_of(facts_.tensor("position_embd.weight"), kPositionRange);
    decoder_.type_embeddings = width_of(facts_.tensor("token_types.weight"), kVocabRange);
    // Where it is the last norm or the first layer's, it is not one after the embedding beside those.
    const bool other = architecture_.embedding_norm_first ||
                       architecture_.renamed.find("output_norm.weight=") != std::string_view::npos;
    decoder_.embedding_norm = !other && facts_.tensor("token_embd_norm.weight") != nullptr;
    decoder_.final_norm = !family_.encoder || facts_.tensor("output_norm.weight") != nullptr;
  }

  // The file must say which norm the architecture uses, and nothing else. Its tensors say which of the two kinds of
  // LayerNorm.
  void read_norm() {
    std::string_view expected = "attention.layer_norm_rms_epsilon";
    std::string_view other = "attention.layer_norm_epsilon";
    const bool mean = family_.norm != Norm::rms;
    if (mean != architecture_.other_norm_key) std::swap(expected, other);
    if (mean) {
      const bool biased = std::ranges::any_of(facts_.file.tensors, [](const GgufTensorInfo& tensor) {
        return tensor.name.ends_with("_norm.bias") && tensor.name.find("indexer") == std::string::npos;
      });
      decoder_.norm = biased ? Norm::layer : Norm::layer_no_bias;
    }
    if (facts_.has(expected)) return;
    if (!facts_.has(other)) return facts_.missing(expected);
    facts_.problem(other, fmt::format("{} belongs to another kind of norm: the architecture {} uses {}",
                                      quote(facts_.full(other)), family_.gguf, facts_.full(expected)));
  }

  // Variants that would change what the model costs.
  void check_variants() {
    if (!family_.encoder && !facts_.boolean("attention.causal").value_or(true)) {
      facts_.problem("attention.causal", "attention that is not causal (an embedding model) is not supported");
    }
    for (const std::string_view key : {"attention.max_alibi_bias", "attention.clamp_kqv"}) {
      if (architecture_.accepted.find(key) != std::string_view::npos || facts_.number(key).value_or(0) == 0) continue;
      facts_.problem(key, fmt::format("{} is not supported for this architecture", quote(facts_.full(key))));
    }
  }

  // ---- Which layers there are

  void read_heads() {
    const auto& [heads, heads_hf, heads_key, heads_range] = fact_row(Fact::heads);
    const std::string_view kv_key = fact_row(Fact::kv_heads).gguf;
    const bool all_attend = architecture_.mixers == GgufMixers::attention && !architecture_.parts_may_lack;
    const descriptor::IntRange range = {all_attend ? heads_range.min : 0, heads_range.max};
    heads_ = per_layer(heads_key, range);
    if (heads_.empty()) {
      facts_.missing(heads_key);
      heads_.assign(static_cast<std::size_t>(layers_), 1);
    }
    // Latent attention is stored as one key-value head since 2025, and as many as there are query heads before.
    const bool says_kind = architecture_.mixers != GgufMixers::attention;
    kv_heads_ = latent_ && !says_kind ? heads_ : per_layer(kv_key, range);
    if (kv_heads_.empty()) kv_heads_ = heads_;
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      if (kv_heads_[i] == 0 || heads_[i] % kv_heads_[i] == 0) continue;
      facts_.contradiction(kv_key, fmt::format("layer {}: {} ({}) is not divisible by {} ({})", i, heads_key, heads_[i],
                                               kv_key, kv_heads_[i]));
      break;
    }
  }

  void find_mixers() {
    const auto count = static_cast<std::size_t>(layers_);
    recurrent_.assign(count, false);
    attends_.assign(count, false);
    std::vector<std::int64_t> listed;
    std::int64_t interval = 0;
    if (architecture_.mixers == GgufMixers::by_interval) {
      listed = per_layer("attention.recurrent_layers", {0, 1});
      if (listed.empty()) interval = facts_.optional("full_attention_interval", kLayerRange).value_or(4);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const bool no_keys = heads_[i] == 0 || kv_heads_[i] == 0;
      switch (architecture_.mixers) {
        case GgufMixers::attention: break;
        case GgufMixers::recurrent:
        case GgufMixers::both: recurrent_[i] = true; break;
        case GgufMixers::by_kv_heads: recurrent_[i] = no_keys; break;
        case GgufMixers::one_part: recurrent_[i] = no_keys && !has_feed_forward(i); break;
        case GgufMixers::by_interval:
          recurrent_[i] = listed.empty() ? (static_cast<std::int64_t>(i) + 1) % interval != 0 : listed[i] != 0;
          break;
      }
      const bool instead = recurrent_[i] && architecture_.mixers != GgufMixers::both;
      attends_[i] = !instead && !no_keys;
      if (no_keys && architecture_.mixers == GgufMixers::both) {
        return facts_.contradiction(fact_row(Fact::kv_heads).gguf,
                                    fmt::format("layer {} has no key and value heads: in this architecture every layer "
                                                "has attention",
                                                i));
      }
    }
    const bool any = std::ranges::find(attends_, true) != attends_.end();
    if (!any && std::ranges::find(recurrent_, true) == recurrent_.end()) {
      facts_.contradiction(fact_row(Fact::heads).gguf, "no layer has attention heads, nor is one recurrent");
    }
  }

  // ---- Attention

  // The first layer that attends, and slides or not; the first that attends where there is none, 0 without attention.
  std::int64_t first_attending(std::optional<bool> sliding = {}) const {
    for (std::size_t i = 0; i < attends_.size(); ++i) {
      if (attends_[i] && (!sliding || *sliding == slides(i))) return static_cast<std::int64_t>(i);
    }
    return sliding ? first_attending() : 0;
  }
  bool slides(std::size_t i) const { return window_ && sliding_[i]; }

  void read_attention() {
    if (std::ranges::find(attends_, true) == attends_.end()) return;
    latent_ ? read_latent() : read_head_dim();
    read_window();
    read_attention_traits(first_attending());
    read_indexer();
    const std::int64_t shared = facts_.nonzero("attention.shared_kv_layers", layers_).value_or(0);
    first_sharing_ = layers_ - shared;
  }

  void read_head_dim() {
    const std::string_view key_length = fact_row(Fact::head_dim).gguf;
    const std::string_view value_length = fact_row(Fact::v_head_dim).gguf;
    const std::string_view rotary_key = fact_row(Fact::rope_dim).gguf;
    const std::int64_t heads = heads_[static_cast<std::size_t>(first_attending())];
    const std::int64_t by_default = std::max<std::int64_t>(1, decoder_.hidden / heads);
    attention_.head_dim = facts_.value_or(Fact::head_dim, by_default);
    attention_.v_head_dim = facts_.value_or(Fact::v_head_dim, by_default);
    const bool derived = !facts_.has(key_length) || !facts_.has(value_length);
    if (derived) {
      facts_.divisible(fact_row(Fact::hidden).gguf, decoder_.hidden, fact_row(Fact::heads).gguf, heads,
                       fmt::format("{} and {} are needed then", key_length, value_length));
    }
    attention_.rotary_dim = facts_.optional(rotary_key, {0, kHeadDimRange.max}).value_or(attention_.head_dim);
    if (attention_.rotary_dim > attention_.head_dim) {
      facts_.contradiction(rotary_key, fmt::format("{} ({}) is more than the width of a head ({})", rotary_key,
                                                   attention_.rotary_dim, attention_.head_dim));
    }
    // Of Granite the key says whether there is a rotary embedding at all.
    const bool granite = family_.gguf.starts_with("granite");
    const bool rotated = family_.rotary > 0 && (!granite || facts_.boolean("rope.scaling.finetuned").value_or(true));
    if (!rotated || decoder_.position_embeddings > 0) attention_.rotary_dim = 0;
    // Layers with a window may have heads of another width.
    const auto of_window = [&](std::string_view key, std::int64_t otherwise, std::int64_t least) {
      return facts_.optional(std::string(key) + "_swa", {least, kHeadDimRange.max}).value_or(otherwise);
    };
    sliding_attention_ = attention_;
    sliding_attention_.head_dim = of_window(key_length, attention_.head_dim, 1);
    sliding_attention_.v_head_dim = of_window(value_length, attention_.v_head_dim, 1);
    const std::int64_t rotary = of_window(rotary_key, std::min(attention_.rotary_dim, sliding_attention_.head_dim), 0);
    sliding_attention_.rotary_dim = std::min(rotary, sliding_attention_.head_dim);
  }

  // Files since April 2025 give the widths of the compressed heads as key_length and value_length, and those of the
  // heads proper under names of their own.
  void read_latent() {
    LatentAttention latent;
    // Of small models it says a width, and yet they have the full matrix.
    if (!has(first_attending(), "attn_q.weight")) latent.q_lora_rank = facts_.nonzero(Fact::q_lora_rank);
    latent.kv_lora_rank = facts_.require(Fact::kv_lora_rank);
    latent.rope_dim = facts_.require(Fact::rope_dim);
    std::string key_length(fact_row(Fact::head_dim).gguf);
    std::string value_length(fact_row(Fact::v_head_dim).gguf);
    if (facts_.has(key_length + "_mla")) {
      key_length += "_mla";
      value_length += "_mla";
    }
    attention_.head_dim = facts_.require(key_length, kHeadDimRange);
    attention_.v_head_dim = facts_.require(value_length, kHeadDimRange);
    attention_.rotary_dim = family_.rotary > 0 ? latent.rope_dim : 0;
    latent.nope_dim = attention_.head_dim - latent.rope_dim;
    if (latent.nope_dim < 1) {
      facts_.contradiction(key_length, fmt::format("{} ({}) must be more than {} ({})", key_length, attention_.head_dim,
                                                   fact_row(Fact::rope_dim).gguf, latent.rope_dim));
    }
    attention_.latent = latent;
    sliding_attention_ = attention_;
  }

  void read_window() {
    const std::string_view key = fact_row(Fact::window).gguf;
    const bool own = find_gguf_architecture(family_.gguf) != nullptr;
    const WindowRule usual = own ? WindowRule{} : gguf_window(family_);
    const GgufWindows rule = architecture_.windows.value_or(
        GgufWindows{.period = usual.layers == WindowLayers::all ? 0 : 2, .absent = usual.absent});
    window_ = facts_.nonzero(Fact::window);
    if (!facts_.has(key) && rule.absent > 0) window_ = rule.absent;
    if (!window_) return;
    // Other loaders do not ask for the key.
    if (!architecture_.windows && usual.layers == WindowLayers::none) return window_.reset();
    // An array says which layers slide, a number n that every n-th does not.
    const std::string_view pattern = "attention.sliding_window_pattern";
    const GgufEntry* entry = facts_.find(pattern);
    std::vector<std::int64_t> values;
    if (entry != nullptr) values = per_layer(pattern, {0, kLayerRange.max});
    const bool is_period = entry != nullptr && !std::holds_alternative<GgufArray>(entry->value);
    for (std::int64_t i = 0; i < layers_; ++i) {
      if (!values.empty() && !is_period) {
        sliding_.push_back(values[static_cast<std::size_t>(i)] != 0);
        continue;
      }
      const std::int64_t period = values.empty() ? rule.period : values.front();
      const std::int64_t full = rule.full_first ? 0 : period - 1;
      sliding_.push_back(period == 0 || i % period != full);
    }
    sliding_attention_.chunked = rule.chunked;
  }

  // What the tensors of the first layer that attends say; match_tensors finds the layers that differ.
  void read_attention_traits(std::int64_t i) {
    attention_.qkv_bias = family_.qkv_bias.always() || has(i, "attn_qkv.bias") || has(i, "attn_q.bias");
    attention_.o_bias = family_.o_bias.always() || has(i, "attn_output.bias");
    attention_.qk_norm = family_.qk_normed.always() ? family_.qk_norm : QkNorm::none;
    const std::int64_t heads = heads_[static_cast<std::size_t>(i)];
    if (const GgufTensorInfo* norm = facts_.tensor(i, "attn_q_norm.weight")) {
      const std::int64_t head_dim =
          slides(static_cast<std::size_t>(i)) ? sliding_attention_.head_dim : attention_.head_dim;
      attention_.qk_norm = heads > 1 && norm->elements() == heads * head_dim ? QkNorm::whole : QkNorm::head;
    }
    attention_.fused_qkv = has(i, "attn_qkv.weight") || (architecture_.splits_qkv && family_.fused_qkv);
    attention_.softcap = family_.softcap && facts_.number("attn_logit_softcapping").value_or(1) != 0;
    if (has(i, "attn_gate.weight")) {
      attention_.gate = rows(i, "attn_gate.weight") == heads ? OutputGate::head : OutputGate::element;
    } else if (!attention_.latent && rows(i, "attn_q.weight") == 2 * heads * attention_.head_dim) {
      attention_.gate = OutputGate::with_queries;
    }
    const Attention own = std::exchange(sliding_attention_, attention_);
    sliding_attention_.head_dim = own.head_dim;
    sliding_attention_.v_head_dim = own.v_head_dim;
    sliding_attention_.rotary_dim = own.rotary_dim;
    sliding_attention_.chunked = own.chunked;
    for (Attention* attention : {&attention_, &sliding_attention_}) {
      const std::int64_t first = first_attending(attention == &sliding_attention_);
      attention->sinks = family_.sinks || has(first, "attn_sinks.weight");
      attention->no_v_proj = !latent_ && has(first, "attn_k.weight") && !has(first, "attn_v.weight");
    }
  }

  void read_indexer() {
    const auto heads = facts_.nonzero("attention.indexer.head_count", kHeadRange.max);
    if (!heads) return;
    indexer_ = Indexer{.heads = *heads,
                       .head_dim = facts_.require("attention.indexer.key_length", kHeadDimRange),
                       .top_k = facts_.require("attention.indexer.top_k", kPositionRange)};
  }

  // ---- Recurrence

  // What the first recurrent layer `i` has.
  Recurrent read_recurrent(std::int64_t i) {
    Recurrent r;
    r.kind = architecture_.recurrent;
    constexpr descriptor::IntRange kTaps = {1, 64};
    if (r.kind == RecurrentKind::short_conv) {
      r.heads = decoder_.hidden;
      r.key_heads = r.key_dim = r.value_dim = 1;
      r.conv = facts_.require("shortconv.l_cache", kTaps);
      return r;
    }
    r.conv = facts_.require("ssm.conv_kernel", kTaps);
    r.conv_bias = has(i, "ssm_conv1d.bias");
    if (r.kind == RecurrentKind::kimi_delta) {
      r.heads = r.key_heads = std::max<std::int64_t>(1, heads_[static_cast<std::size_t>(i)]);
      r.key_dim = r.value_dim = facts_.require("kda.head_dim", kHeadDimRange);
      if (has(i, "ssm_g_b.weight")) r.gate_rank = width_of(facts_.tensor(i, "ssm_g_a.weight"), kWidthRange);
      return r;
    }
    const std::int64_t inner = facts_.require("ssm.inner_size", kWidthRange);
    const std::int64_t rank = facts_.require("ssm.time_step_rank", kWidthRange);
    r.key_dim = facts_.require("ssm.state_size", kHeadDimRange);
    if (r.kind == RecurrentKind::mamba) {
      r.heads = inner;
      r.key_heads = r.value_dim = 1;
      r.gate_rank = rank;
      r.norms = has(i, "ssm_dt_norm.weight");
      return r;
    }
    r.heads = rank;
    r.key_heads = facts_.require("ssm.group_count", kWidthRange);
    r.value_dim = std::max<std::int64_t>(1, inner / rank);
    r.norms = r.kind == RecurrentKind::gated_delta_net || has(i, "ssm_norm.weight");
    facts_.divisible("ssm.inner_size", inner, "ssm.time_step_rank", rank);
    facts_.divisible("ssm.time_step_rank", rank, "ssm.group_count", r.key_heads);
    return r;
  }

  // ---- Feed-forward part

  void find_expert_layers() {
    for (std::int64_t i = 0; i < layers_; ++i) routed_.push_back(has(i, kRouter));
    const bool any = first_layer(true).has_value();
    if (!any && facts_.nonzero(Fact::experts)) {
      facts_.problem(fact_row(Fact::experts).gguf,
                     fmt::format("the file has experts by this key, but no layer with a router ({})", kRouter));
    }
    const auto leading = facts_.optional(Fact::leading_dense);
    if (!any || !leading || !architecture_.leading_dense) return;
    const std::string_view key = fact_row(Fact::leading_dense).gguf;
    for (std::int64_t i = 0; i < layers_; ++i) {
      const bool routed = routed_[static_cast<std::size_t>(i)];
      if (routed == (i >= *leading)) continue;
      return facts_.problem(
          key, fmt::format("layer {} {} a router ({}), {} is {}", i, routed ? "has" : "lacks", kRouter, key, *leading));
    }
  }

  void read_widths() {
    const std::string_view key = fact_row(Fact::intermediate).gguf;
    const std::int64_t parts = family_.halved_width ? 2 : 1;
    widths_ = per_layer(key, {0, parts * kWidthRange.max});
    for (std::int64_t& width : widths_) {
      if (width % parts != 0) {
        facts_.problem(key,
                       fmt::format("{} ({}) is not divisible by {}: in this architecture it counts the gate and up "
                                   "matrices together",
                                   key, width, parts));
        break;
      }
      width /= parts;
    }
    if (architecture_.parts_may_lack) {
      if (widths_.empty()) widths_.assign(routed_.size(), 0);
      return;
    }
    for (std::size_t i = 0; i < routed_.size(); ++i) {
      if (routed_[i] || (!widths_.empty() && widths_[i] > 0)) continue;
      if (widths_.empty()) return facts_.missing(key);
      return facts_.problem(key, fmt::format("layer {} has no feed-forward width", i));
    }
  }
  bool has_feed_forward(std::size_t i) const { return routed_[i] || (!widths_.empty() && widths_[i] > 0); }

  // Of a routed expert; `dense`: the width by feed_forward_length.
  std::int64_t expert_width(std::int64_t dense, std::int64_t per_token) {
    if (const auto own = facts_.nonzero(Fact::expert_width)) return *own;
    const ExpertRule& rule = family_.experts;
    // Configs that have no key for it have one width, of dense layers and of experts.
    const bool one = rule.count.empty() || rule.width == Fact::intermediate;
    const std::int64_t width = rule.unsaid_per_used ? dense / per_token : one ? dense : 0;
    if (width == 0) facts_.missing(fact_row(Fact::expert_width).gguf);
    return width;
  }

  // Of all shared experts together. Some architectures give the width of one, some of all: their matrix has it.
  std::int64_t shared_width(std::int64_t layer, std::int64_t dense, std::int64_t expert_width) {
    if (const GgufTensorInfo* up = facts_.tensor(layer, "ffn_up_shexp.weight")) return width_of(up, kWidthRange);
    if (const auto own = facts_.nonzero(Fact::shared_width)) return *own;
    if (family_.experts.shared == SharedExperts::gated) return dense;
    const std::int64_t count = facts_.nonzero(Fact::shared_experts).value_or(0);
    if (count * expert_width > kWidthRange.max) {
      facts_.contradiction(fact_row(Fact::shared_experts).gguf,
                           fmt::format("{} shared experts of width {} are wider than the {} supported", count,
                                       expert_width, kWidthRange.max));
    }
    return count * expert_width;
  }

  void read_experts() {
    const std::optional<std::int64_t> first = first_layer(true);
    if (!first) return;
    const auto has = [&](std::string_view stem) { return facts_.tensor(*first, stem) != nullptr; };
    const std::string_view used_key = fact_row(Fact::experts_per_token).gguf;
    Experts experts;
    experts.count = facts_.require(Fact::experts);
    experts.per_token = facts_.require(Fact::experts_per_token);
    if (experts.per_token > experts.count) {
      facts_.contradiction(used_key, fmt::format("{} ({}) is more than {} ({})", used_key, experts.per_token,
                                                 fact_row(Fact::experts).gguf, experts.count));
    }
    experts.groups = facts_.value_or(Fact::expert_groups, 1);
    experts.groups_per_token = facts_.value_or(Fact::groups_per_token, experts.groups);
    if (const std::string wrong = groups_problem(experts); !wrong.empty()) {
      facts_.contradiction(fact_row(Fact::expert_groups).gguf, wrong);
    }
    const std::int64_t dense = widths_.empty() ? 0 : widths_[static_cast<std::size_t>(*first)];
    experts.intermediate = expert_width(dense, experts.per_token);
    experts.shared_intermediate = shared_width(*first, dense, experts.intermediate);
    experts.shared_gate = experts.shared_intermediate > 0 &&
                          (family_.experts.shared == SharedExperts::gated || has("ffn_gate_inp_shexp.weight"));
    experts.router_bias = family_.experts.router_bias || has("ffn_gate_inp.bias");
    experts.score_correction = has(kScoreCorrection);
    experts.router_scales = has("ffn_gate_inp.scale");
    experts.latent = width_of(facts_.tensor(*first, "ffn_latent_down.weight"), kWidthRange);
    expert_ = feed_forward(has("ffn_down_exps.bias"));
    expert_.experts = experts;
  }

  // ---- Around the layers

  // What Gemma 3n and 4 have beside a layer's parts.
  void read_streams() {
    decoder_.layer_embedding_width = facts_.nonzero("embedding_length_per_layer_input", kWidthRange.max).value_or(0);
    if (decoder_.layer_embedding_width > 0) {
      const GgufTensorInfo* table = facts_.tensor("per_layer_token_embd.weight");
      decoder_.layer_embedding_vocab = table == nullptr ? decoder_.vocab : width_of(table, kVocabRange);
    }
    const std::int64_t streams = facts_.nonzero("altup.num_inputs", 64).value_or(1);
    if (streams > 1) decoder_.streams = {.mix = StreamMix::altup, .count = streams};
  }

  // Where the norms of a layer of two parts stand; of the first such one, in which the embedding's may stand for the
  // first.
  struct NormPlaces {
    int per_part = 1;
    bool after = false;
    bool parallel = false;
    bool shared = false;  // one norm of parallel blocks serves both
  };
  NormPlaces norm_places() {
    std::optional<std::int64_t> layer;
    for (std::size_t i = 0; i < routed_.size() && !layer; ++i) {
      if ((attends_[i] || recurrent_[i]) && has_feed_forward(i)) layer = static_cast<std::int64_t>(i);
    }
    const auto any = [&](std::initializer_list<std::string_view> stems) {
      return layer && std::ranges::any_of(stems, [&](std::string_view stem) { return has(*layer, stem); });
    };
    const bool before = any({"attn_norm.weight"});
    const bool second = any({"ffn_norm.weight", "ffn_norm", "attn_norm_2.weight"});
    const bool behind = any({"post_attention_norm.weight", "attn_output_norm.weight"});
    const bool last = any({"post_ffw_norm.weight", "layer_output_norm.weight"});
    NormPlaces places;
    if (!before && !last) {
      places.per_part = family_.norms == 4 ? 2 : 1;
      places.parallel = family_.parallel_blocks;
      places.shared = places.parallel && family_.norms == 1;
      return places;
    }
    places.per_part = before && last ? 2 : 1;
    places.after = !before;
    places.shared = before && !second && !behind && !last;
    places.parallel =
        places.shared || any({"attn_norm_2.weight"}) || facts_.boolean("use_parallel_residual").value_or(false);
    return places;
  }

  void assemble_layers() {
    const NormPlaces places = norm_places();
    for (std::size_t i = 0; i < routed_.size(); ++i) {
      Layer layer;
      if (attends_[i]) layer.attention = attention_of(i);
      if (recurrent_[i]) layer.recurrent = recurrence_;
      if (has_feed_forward(i)) {
        layer.feed_forward = routed_[i] ? expert_ : dense_;
        const bool beside = routed_[i] && has(static_cast<std::int64_t>(i), "ffn_down.weight");
        if ((!routed_[i] || beside) && !widths_.empty()) layer.feed_forward.intermediate = widths_[i];
      }
      const int parts = (layer.mixes() ? 1 : 0) + (layer.has_feed_forward() ? 1 : 0);
      layer.norms = places.shared ? std::min(parts, 1) : parts * places.per_part;
      layer.norms_after = places.after;
      layer.parallel_blocks = places.parallel;
      const auto index = static_cast<std::int64_t>(i);
      layer.scaled = has(index, "layer_output_scale.weight");
      layer.low_rank_branch = width_of(facts_.tensor(index, "laurel_l.weight"), {0, kWidthRange.max});
      decoder_.add_layer(layer);
      if (decoder_.kinds.size() <= Decoder::kMostKinds) continue;
      return facts_.problem(fact_row(Fact::layers).gguf,
                            fmt::format("more than {} layers differ from each other", Decoder::kMostKinds));
    }
  }

  Attention attention_of(std::size_t i) const {
    Attention a = slides(i) ? sliding_attention_ : attention_;
    const auto index = static_cast<std::int64_t>(i);
    a.heads = heads_[i];
    a.kv_heads = latent_ ? heads_[i] : kv_heads_[i];
    if (slides(i)) a.window = window_;
    const std::int64_t every = architecture_.unrotated_every;
    if (every > 0 && (index + 1) % every == 0 && (!architecture_.windows || window_)) a.rotary_dim = 0;
    a.shares_cache = index >= first_sharing_;
    a.unused_kv = a.shares_cache && has(index, "attn_k.weight");
    a.indexer = indexer_;
    if (a.indexer && !has(index, "indexer.attn_k.weight")) a.indexer->reused = true;
    return a;
  }

  // Index of the first layer with or without experts; none if there is no such layer.
  std::optional<std::int64_t> first_layer(bool with_experts) const {
    const auto found = std::ranges::find(routed_, with_experts);
    return found == routed_.end() ? std::nullopt : std::optional<std::int64_t>(found - routed_.begin());
  }
  // What is the same of dense layers and experts, from the first layer with such a part.
  FeedForward feed_forward(bool has_bias) const {
    FeedForward ff{.gated = family_.gated,
                   .activation = family_.activation,
                   .bias = family_.mlp_bias.always() || has_bias,
                   .fused_gate_up = family_.fused_gate_up,
                   .experts = {}};
    for (std::size_t i = 0; i < routed_.size(); ++i) {
      const auto index = static_cast<std::int64_t>(i);
      const std::string_view ending = routed_[i] ? "_exps.weight" : ".weight";
      const auto named = [&](std::string_view stem) { return has(index, std::string(stem) + std::string(ending)); };
      if (!has_feed_forward(i) || !named("ffn_up")) continue;
      const bool both = !routed_[i] && rows(index, "ffn_up.weight") == 2 * widths_[i];
      ff.fused_gate_up = ff.fused_gate_up || both;
      ff.gated = both || named("ffn_gate");
      break;
    }
    return ff;
  }

  GgufFacts& facts_;
  const Family& family_;
  GgufArchitecture architecture_ = {};
  bool latent_ = false;
  Decoder decoder_ = {};
  std::int64_t blocks_ = 1;  // layers of the file
  std::int64_t layers_ = 1;  // … that are run
  std::vector<std::int64_t> heads_ = {};
  std::vector<std::int64_t> kv_heads_ = {};
  std::vector<std::int64_t> widths_ = {};  // of feed_forward_length
  std::vector<bool> routed_ = {};          // which layers have experts
  std::vector<bool> attends_ = {};
  std::vector<bool> recurrent_ = {};
  Attention attention_ = {};          // of every layer without a window, but for its heads
  Attention sliding_attention_ = {};  // … with one
  std::optional<Indexer> indexer_ = {};
  std::int64_t first_sharing_ = 0;  // layers from here on have the keys and values of an earlier one
  std::optional<std::int64_t> window_ = {};
  std::vector<bool> sliding_ = {};  // which layers see the window
  Recurrent recurrence_ = {};       // of every recurrent layer
  FeedForward dense_ = {};          // without its width
  FeedForward expert_ = {};
};

// The text with '?' for each character that is unsafe and each byte that is not UTF-8.
std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t start = offset;
    const std::optional<char32_t> character = decode_utf8(text, offset);
    const bool safe = character && !is_unsafe(*character);
    out += safe ? text.substr(start, offset - start) : "?";
  }
  return out;
}

bool is_good_name(std::string_view text) {
  constexpr std::size_t kLongest = 120;
  return !text.empty() && text.size() <= kLongest && printable(text) == text;
}

// "…/qwen1_5-7b-q4_k_m.gguf" is called qwen1_5-7b-q4_k_m, and so are its shards.
std::string file_stem(const GgufFile& file) {
  constexpr std::string_view kShardEnding = "-00001-of-00002";
  const std::string_view base = std::string_view(file.path).substr(file.path.rfind('/') + 1);
  std::string_view stem = base.substr(0, base.rfind('.'));
  if (file.shards.size() > 1 && stem.size() > kShardEnding.size()) stem.remove_suffix(kShardEnding.size());
  return std::string(stem);
}

std::string text_of(const GgufFile& file, std::string_view key) {
  const GgufEntry* entry = file.find(key);
  const auto* text = entry == nullptr ? nullptr : std::get_if<std::string>(&entry->value);
  return text == nullptr ? std::string() : *text;
}

std::string describe_file_type(const GgufFile& file) {
  const GgufEntry* entry = file.find("general.file_type");
  const auto* id = entry == nullptr ? nullptr : std::get_if<std::int64_t>(&entry->value);
  if (id == nullptr) return {};
  for (const GgufFileType& type : gguf_file_types()) {
    if (static_cast<std::int64_t>(type.id) == *id) return fmt::format(", file type {}", type.name);
  }
  return fmt::format(", file type {}", *id);
}

// The row of the file's architecture; none when that was reported.
std::optional<Family> family_of_file(GgufFacts& facts) {
  const GgufFile& file = facts.file;
  const GgufEntry* type = file.find("general.type");
  if (type != nullptr && text_of(file, "general.type") != "model") {
    facts.add(*type, fmt::format("the file holds {}, not a model", quote(text_of(file, "general.type"))));
    return std::nullopt;
  }
  const GgufEntry* entry = file.find("general.architecture");
  if (entry == nullptr || !std::holds_alternative<std::string>(entry->value)) {
    const char* message = "missing key 'general.architecture', which must be a string";
    entry == nullptr ? facts.add(message) : facts.add(*entry, message);
    return std::nullopt;
  }
  const std::string& name = std::get<std::string>(entry->value);
  std::optional<Family> family = find_gguf_family(name, facts.any_layer(kRouter), facts.any_layer(kScoreCorrection));
  if (family) return family;
  const std::string_view missing = missing_ingredient(name);
  facts.add(
      *entry,
      fmt::format("general.architecture {} is not supported{}{}", quote(name), missing.empty() ? "" : ": ", missing),
      name_hint(name, gguf_family_names()));
  return std::nullopt;
}

}  // namespace

Decoder parse_gguf_decoder(const GgufFile& file) {
  GgufFacts facts(file);
  const std::optional<Family> family = family_of_file(facts);
  facts.throw_if_any();  // the keys of an unknown architecture mean nothing
  Decoder decoder = GgufReader(facts, *family).read();
  const std::string name = text_of(file, "general.name");
  decoder.name = is_good_name(name) ? name : printable(file_stem(file));
  decoder.source =
      fmt::format("GGUF file {} (architecture {}{})", printable(file.path), family->gguf, describe_file_type(file));
  return decoder;
}

// ---- Matching: a file may hold a matrix in other pieces than gguf_tensors expects; every such form that llama.cpp's
// converter has written is put together here.

namespace {

using Shape = std::array<std::int64_t, 4>;

// Frequencies of scaled rotary embeddings: not weights, and a few hundred bytes.
constexpr std::string_view kPositionTables[] = {"rope_freqs.weight", "rope_factors_long.weight",
                                                "rope_factors_short.weight", "attn_rot_embd.weight"};
// The halves of attn_kv_b, in files that also hold the whole.
constexpr std::string_view kCopies[] = {"attn_k_b.weight", "attn_v_b.weight"};
// What embedding models have behind the last layer.
constexpr std::string_view kHeads[] = {"cls.weight",      "cls.bias",       "cls.output.weight", "cls.output.bias",
                                       "cls.norm.weight", "dense_2.weight", "dense_3.weight"};

Shape shape_of(const GgufTensor& tensor) {
  if (tensor.is_vector()) return {tensor.n, tensor.count, 1, 1};
  return {tensor.k, tensor.n, tensor.count, 1};
}

// Innermost first, as llama.cpp prints it.
std::string shape_text(const Shape& shape) {
  std::size_t dimensions = shape.size();
  while (dimensions > 1 && shape[dimensions - 1] == 1) --dimensions;
  return fmt::format("[{}]", fmt::join(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(dimensions), ", "));
}

const std::string_view* find_stem(std::span<const std::string_view> stems, std::string_view stem) {
  const auto found = std::ranges::find(stems, stem);
  return found == stems.end() ? nullptr : &*found;
}

class Matcher {
 public:
  explicit Matcher(const GgufFile& file) : facts_(file) {}

  std::vector<GgufTensor> match(const Decoder& model) {
    const bool whole = facts_.any_layer("attn_kv_b.weight");
    const bool halves = facts_.any_layer("attn_k_b.weight");
    std::vector<GgufTensor> tensors =
        gguf_tensors(model, {.split_kv_b = halves && !whole, .joined_delta_net = facts_.any_layer("ssm_in.weight")});
    for (GgufTensor& tensor : tensors) match(tensor);
    add_others(model, tensors, whole && halves);
    facts_.throw_if_any();
    return tensors;
  }

 private:
  void match(GgufTensor& tensor) {
    const std::string name = tensor.name();
    if (const GgufTensorInfo* info = facts_.tensor(name)) {
      take(*info, shape_of(tensor), tensor);
    } else if (!match_fused_experts(tensor) && !match_single_experts(tensor)) {
      facts_.add(fmt::format("missing tensor {} {}", name, shape_text(shape_of(tensor))));
    }
  }

  // Gives `tensor` the type of `info` if that has the shape.
  void take(const GgufTensorInfo& info, const Shape& shape, GgufTensor& tensor) {
    used_.insert(&info);
    // Tables and norms of recurrences have two dimensions in files.
    const bool same = tensor.is_vector() ? info.elements() == tensor.elements() : info.shape == shape;
    if (!same) {
      facts_.add(info, fmt::format("tensor {} is {}, expected {}", quote(info.name), shape_text(info.shape),
                                   shape_text(shape)));
    } else {
      check_type(info, tensor.is_vector());
    }
    tensor.type = info.type;
  }

  void check_type(const GgufTensorInfo& tensor, bool is_vector) {
    const GgmlTypeInfo& type = model::info(tensor.type);
    if (!type.weights) {
      facts_.add(tensor,
                 fmt::format("tensor {} is of type {}, which does not hold weights", quote(tensor.name), type.name));
    } else if (is_vector && type.block > 1) {
      facts_.add(tensor, fmt::format("tensor {} is of type {}: llama.cpp does not quantise norms, biases and tables",
                                     quote(tensor.name), type.name));
    }
  }

  // Since 2026 the converter can leave the gate and up matrices of experts in one tensor.
  bool match_fused_experts(GgufTensor& tensor) {
    if (tensor.role != Role::expert_gate && tensor.role != Role::expert_up) return false;
    const GgufTensorInfo* info = facts_.tensor(tensor.layer, "ffn_gate_up_exps.weight");
    if (info == nullptr) return false;
    // Both halves ask for it: a wrong shape is reported once.
    if (tensor.role == Role::expert_up && used_.contains(info)) {
      tensor.type = info->type;
    } else {
      take(*info, {tensor.k, 2 * tensor.n, tensor.count, 1}, tensor);
    }
    return true;
  }

  // Until April 2024 Mixtral's experts were tensors of their own: blk.0.ffn_gate.7.weight.
  bool match_single_experts(GgufTensor& tensor) {
    constexpr std::string_view kEnding = "_exps.weight";
    if (!tensor.stem.ends_with(kEnding)) return false;
    const std::string_view base = tensor.stem.substr(0, tensor.stem.size() - kEnding.size());
    const auto find = [&](std::int64_t expert) {
      return facts_.tensor(tensor.layer, fmt::format("{}.{}.weight", base, expert));
    };
    const GgufTensorInfo* first = find(0);
    if (first == nullptr) return false;
    for (std::int64_t expert = 0; expert < tensor.count; ++expert) {
      const GgufTensorInfo* info = find(expert);
      if (info == nullptr) {
        facts_.add(fmt::format("missing tensor blk.{}.{}.{}.weight", tensor.layer, base, expert));
        break;
      }
      if (info->type != first->type) {
        facts_.add(*info, fmt::format("tensor {} is of type {}, the layer's other experts of type {}",
                                      quote(info->name), model::info(info->type).name, model::info(first->type).name));
      }
      take(*info, {tensor.k, tensor.n, 1, 1}, tensor);
    }
    return true;
  }

  // What the file has beyond the model: what is loaded with it at the end of `tensors`, copies and layers for further
  // tokens nowhere, the rest is wrong.
  void add_others(const Decoder& model, std::vector<GgufTensor>& tensors, bool has_copies) {
    const std::int64_t layers = model.num_layers();
    for (const GgufTensorInfo& info : facts_.file.tensors) {
      if (used_.contains(&info)) continue;
      const PlacedName name = parse_name(info.name);
      if (name.layer >= layers && name.layer < layers + model.next_token_layers) continue;
      const std::string_view* other = find_stem(kPositionTables, name.stem);
      const bool is_table = other != nullptr;
      if (other == nullptr && model.encoder && name.layer < 0) other = find_stem(kHeads, name.stem);
      if (other != nullptr) {
        check_type(info, is_table);
        const bool is_matrix = !is_table && info.shape[1] > 1;
        tensors.push_back({.stem = *other,
                           .role = is_matrix ? Role::pooler : Role::vector,
                           .layer = name.layer,
                           .n = is_matrix ? info.elements() / info.shape[0] : info.elements(),
                           .k = is_matrix ? info.shape[0] : 1,
                           .type = info.type});
      } else if (!has_copies || find_stem(kCopies, name.stem) == nullptr) {
        facts_.add(info, fmt::format("unexpected tensor {} {}", quote(info.name), shape_text(info.shape)));
      }
    }
  }

  GgufFacts facts_;
  std::unordered_set<const GgufTensorInfo*> used_;
};

}  // namespace

std::vector<GgufTensor> match_tensors(const Decoder& model, const GgufFile& file) { return Matcher(file).match(model); }

}  // namespace llmperf::model
