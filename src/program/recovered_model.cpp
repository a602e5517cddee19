#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "descriptor/node.h"
#include "descriptor/writer.h"
#include "model/decoder.h"
#include "model/video/video_dit.h"
#include "program/blocks.h"

namespace llmperf::program {
namespace {

using Entries = descriptor::Writer;

std::string model_name(const Program& program) {
  std::string_view file = program.module->source->name();
  file = file.substr(file.rfind('/') + 1);
  if (const std::size_t dot = file.rfind('.'); dot != std::string_view::npos && dot > 0) file = file.substr(0, dot);
  std::string name;
  for (const char c : file) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
    name += plain ? c : '-';
  }
  return name.empty() ? "program" : name;
}

std::string model_source(const Program& program) {
  return "transformer blocks of the program " + quote(program.module->source->name());
}

std::string findings(const Blocks& blocks) {
  std::vector<std::string> parts;
  for (const TransformerBlock& block : blocks.blocks) {
    std::vector<std::string> kinds;
    for (const AttentionShape& a : block.attentions) kinds.push_back(fmt::format("{} attention", name(a.kind)));
    if (block.feed_forward) kinds.push_back(block.feed_forward->experts > 0 ? "experts" : "feed-forward");
    parts.push_back(fmt::format("{} x block of {}", block.layers, join(kinds, ", ")));
  }
  std::map<Role, std::size_t> outside;
  for (const RoleNodes& nodes : blocks.outside) outside[nodes.role] += nodes.nodes.size();
  std::vector<std::string> roles;
  for (const auto& [role, count] : outside) roles.push_back(fmt::format("{} {}", count, name(role)));
  if (!roles.empty()) parts.push_back("outside of blocks " + join(roles, ", "));
  return parts.empty() ? "no matrix products" : join(parts, "; ");
}

[[noreturn]] void reject(const Program& program, std::string message, const Blocks& blocks) {
  throw Error(ErrorKind::bad_input, {{{program.module->source->name(), 0, 0},
                                      std::move(message) + "; found: " + findings(blocks),
                                      "without `emit` the program is analysed as it is"}});
}

// In the order of model::Activation and model::Norm.
constexpr std::array<std::string_view, 5> kActivations = {"silu", "gelu", "gelu_tanh", "relu", "swiglu_clamped"};
constexpr std::array<std::string_view, 2> kNorms = {"rms", "layer"};

// Whether two blocks are layers of one model in the format, which has one attention for all.
bool same_layer(const TransformerBlock& a, const TransformerBlock& b) {
  const AttentionShape& x = a.attentions[0];
  const AttentionShape& y = b.attentions[0];
  return a.hidden == b.hidden && x.heads == y.heads && x.kv_heads == y.kv_heads && x.head_dim == y.head_dim &&
         x.v_head_dim == y.v_head_dim;
}

bool same_width(const FeedForwardShape& a, const FeedForwardShape& b) {
  return a.intermediate == b.intermediate && a.gated == b.gated && a.experts == b.experts &&
         a.shared_intermediate == b.shared_intermediate;
}

class DecoderWriter {
 public:
  DecoderWriter(const Program& program, const Blocks& blocks) : program_(program), blocks_(blocks) {}

  std::string write() {
    choose();
    const std::string attention = attention_line();
    const std::string feed_forward = feed_forward_line();
    Entries out;
    out.text("name", model_name(program_));
    out.text("source", model_source(program_));
    Entries rest;
    rest.put("hidden_size", main_->hidden);
    rest.put("num_layers", layers_);
    write_words(rest);
    write_norms(rest);
    rest.put("attention", attention);
    rest.put("feed_forward", feed_forward);
    out.text("notes", recovered_ + (notes_.empty() ? "" : " ") + join(notes_, " "));
    return out.lines() + rest.lines();
  }

 private:
  void note(std::string text) { notes_.push_back(std::move(text)); }

  // The block that stands for most layers, and dense layers before experts.
  void choose() {
    const auto& all = blocks_.blocks;
    for (const TransformerBlock& block : all) {
      if (!block.feed_forward) reject(program_, "a block without a feed-forward is no layer of a decoder", blocks_);
      if (main_ == nullptr || block.layers > main_->layers) main_ = &block;
    }
    bool seen_main = false;
    for (const TransformerBlock& block : all) {
      seen_main = seen_main || &block == main_;
      if (block.again) continue;
      layers_ += block.layers;
      const FeedForwardShape& f = *block.feed_forward;
      const bool dense_first = !seen_main && f.experts == 0 && main_->feed_forward->experts > 0;
      if (!same_layer(block, *main_) || (!dense_first && !same_width(f, *main_->feed_forward))) {
        reject(program_, "blocks of several shapes; a descriptor has one for all layers", blocks_);
      }
      if (dense_first) {
        dense_layers_ += block.layers;
        dense_width_ = f.intermediate;
      }
    }
    const AttentionShape& a = main_->attentions[0];
    if (!a.masked && a.queries == a.keys && a.queries > 1 && !blocks_.lm_head) {
      reject(program_, "the attention has no mask over queries and keys, and no product to words follows: an encoder",
             blocks_);
    }
    recovered_ =
        fmt::format("Recovered from the shapes and the dataflow of a program that runs {} x {} tokens over {}.",
                    a.batch, a.queries, a.keys);
  }

  void write_words(Entries& out) {
    const std::int64_t words = blocks_.embedding ? blocks_.embedding->rows
                               : blocks_.lm_head ? blocks_.lm_head->words
                                                 : 1;
    out.put("vocab_size", words);
    if (blocks_.position_embeddings > 0) out.put("max_position", blocks_.position_embeddings);
    if (words == 1) {
      note("The program has neither an embedding nor a product to words: vocab_size 1 stands for them.");
    } else if (!blocks_.lm_head) {
      note("The program has no product to words: it is taken to share the embedding.");
    } else if (!blocks_.embedding) {
      note("The program has no embedding: one as large as the product to words is assumed.");
    }
    out.flag("tied_embeddings", !blocks_.lm_head || blocks_.lm_head->tied);
    out.flag("lm_head_bias", blocks_.lm_head && blocks_.lm_head->bias);
    if (blocks_.position_embeddings > 0) out.put("position_embeddings", blocks_.position_embeddings);
  }

  void write_norms(Entries& out) {
    if (!main_->norm) note("No norm was recognised: RMS norms are assumed.");
    out.put("norm", kNorms[static_cast<std::size_t>(main_->norm.value_or(model::Norm::rms))]);
    const int norms = main_->parallel_blocks ? std::clamp(main_->norms, 1, 2) : main_->norms >= 4 ? 4 : 2;
    if (norms != main_->norms) note(fmt::format("{} norms per layer are assumed, {} were seen.", norms, main_->norms));
    out.flag("parallel_blocks", main_->parallel_blocks);
    if (norms != 2) out.put("norms_per_layer", norms);
  }

  std::string attention_line() {
    const AttentionShape& a = main_->attentions[0];
    Entries line;
    line.put("heads", a.heads);
    line.put("kv_heads", a.kv_heads);
    line.put("head_dim", a.head_dim);
    if (a.v_head_dim != a.head_dim) line.put("v_head_dim", a.v_head_dim);
    if (!a.rotary) {
      line.put("rotary_dim", 0);
    } else {
      note("The rotary embedding is taken to turn whole heads.");
    }
    line.flag("qkv_bias", a.qkv_bias);
    line.flag("o_bias", a.o_bias);
    line.flag("qk_norm", a.qk_norm);
    line.flag("softcap", a.softcap);
    line.flag("fused_qkv", a.fused_qkv);
    if (a.masked) note("Any mask is taken to be causal; windows are not read from it.");
    if (a.latent) note("Queries or keys come from two matrices in a row (latent attention); they are written as one.");
    return line.in_braces();
  }

  std::string feed_forward_line() {
    const FeedForwardShape& f = *main_->feed_forward;
    if (!f.activation) note("The activation function was not recognised: silu is assumed.");
    const auto activation = static_cast<std::size_t>(f.activation.value_or(model::Activation::silu));
    Entries line;
    if (f.experts == 0) line.put("intermediate", f.intermediate);
    line.put("activation", kActivations[activation]);
    line.put("gated", f.gated);
    line.flag("bias", f.bias);
    line.flag("fused_gate_up", f.fused_gate_up);
    if (f.experts > 0) {
      const std::int64_t chosen = f.per_token > 0 ? f.per_token : std::min<std::int64_t>(2, f.experts);
      if (f.per_token == 0) note(fmt::format("The experts of a token were not seen: {} are assumed.", chosen));
      Entries experts;
      experts.put("count", f.experts);
      experts.put("per_token", chosen);
      experts.put("intermediate", f.intermediate);
      if (f.shared_intermediate > 0) experts.put("shared_intermediate", f.shared_intermediate);
      experts.flag("router_bias", f.router_bias);
      line.put("experts", experts.in_braces());
      if (dense_layers_ > 0) {
        line.put("first_dense_layers", dense_layers_);
        line.put("dense_intermediate", dense_width_);
      }
    }
    return line.in_braces();
  }

  const Program& program_;
  const Blocks& blocks_;
  const TransformerBlock* main_ = nullptr;
  std::int64_t layers_ = 0;
  std::int64_t dense_layers_ = 0;
  std::int64_t dense_width_ = 0;
  std::string recovered_;
  std::vector<std::string> notes_;
};

using model::VideoArchitecture;

std::string recovered_decoder(const Program& program, const Blocks& blocks) {
  std::string text = DecoderWriter(program, blocks).write();
  // What the reader would refuse (widths beyond its bounds) is refused here, where the reason is still known.
  model::parse_decoder(descriptor::parse_yaml(text, "the recovered model"));
  return text;
}

const AttentionShape* find(const TransformerBlock& block, AttentionKind kind) {
  const auto found = std::ranges::find_if(block.attentions, [&](const AttentionShape& a) { return a.kind == kind; });
  return found == block.attentions.end() ? nullptr : &*found;
}

// The entries of a descriptor but those of these keys.
std::string entries_but(const descriptor::Document& descriptor, const std::set<std::string_view>& keys) {
  std::string rest;
  for (const descriptor::Node::Entry& entry : descriptor.root.entries) {
    if (!keys.contains(entry.key)) rest += fmt::format("{}: {}\n", entry.key, descriptor::to_json(entry.value));
  }
  return rest;
}

// STDiT: spatial and temporal attention in one block (stdit; stdit2 with a norm of its own or a rotation in time), or
// in blocks of their own that take turns (stdit3). Open-Sora v1.0, v1.1, v1.2; see model/video/video_dit.h.
std::string recovered_video(const Program& program, const Blocks& blocks) {
  const TransformerBlock* main = nullptr;
  bool both = false;
  bool rotated = false;
  std::int64_t spatial_layers = 0;
  std::int64_t temporal_layers = 0;
  const AttentionShape* spatial = nullptr;
  const AttentionShape* temporal = nullptr;
  const AttentionShape* cross = nullptr;
  for (const TransformerBlock& block : blocks.blocks) {
    const AttentionShape* over_space = find(block, AttentionKind::spatial);
    const AttentionShape* over_time = find(block, AttentionKind::temporal);
    if (over_space == nullptr && over_time == nullptr) {
      reject(program, "beside spatial and temporal attention there are blocks of other kinds", blocks);
    }
    if (main == nullptr) main = &block;
    const AttentionShape& a = over_space != nullptr ? *over_space : *over_time;
    const AttentionShape& first = main->attentions[0];
    if (block.hidden != main->hidden || a.heads != first.heads || a.head_dim != first.head_dim) {
      reject(program, "blocks of several widths; a descriptor has one for all", blocks);
    }
    both = both || (over_space != nullptr && over_time != nullptr);
    if (over_space != nullptr) spatial = over_space, spatial_layers += block.layers;
    if (over_time != nullptr) temporal = over_time, temporal_layers += block.layers;
    rotated = rotated || (over_time != nullptr && over_time->rotary);
    if (const AttentionShape* c = find(block, AttentionKind::cross)) cross = c;
  }
  const AttentionShape& a = main->attentions[0];
  if (a.heads * a.head_dim != main->hidden || a.kv_heads != a.heads) {
    reject(program, "heads whose widths do not add up to the hidden width are no STDiT", blocks);
  }
  const VideoArchitecture architecture = !both                        ? VideoArchitecture::stdit3
                                         : rotated || main->norms > 2 ? VideoArchitecture::stdit2
                                                                      : VideoArchitecture::stdit;
  constexpr std::string_view kBuiltIn[] = {"stdit-xl2", "stdit2-xl2", "stdit3-xl2"};
  const std::string base(kBuiltIn[static_cast<std::size_t>(architecture)]);
  const bool qk_norm = std::ranges::any_of(
      main->attentions, [](const AttentionShape& s) { return s.kind != AttentionKind::cross && s.qk_norm; });
  std::int64_t intermediate = 4 * main->hidden;
  std::vector<std::string> recovered = {"architecture", "hidden_size", "heads", "depth", "qk_norm"};
  std::vector<std::string> seen;
  std::vector<std::string> notes;
  if (main->feed_forward) {
    recovered.emplace_back("intermediate");
    intermediate = main->feed_forward->intermediate;
    const FeedForwardShape& f = *main->feed_forward;
    if (f.gated || f.experts > 0 || f.activation != model::Activation::gelu_tanh) {
      reject(program, "a feed-forward other than two matrices with a tanh GELU between is no STDiT", blocks);
    }
  } else {
    notes.emplace_back("No MLP was seen: four times the hidden width is assumed.");
  }
  if (cross != nullptr) {
    recovered.emplace_back("text_tokens");
    seen.push_back(fmt::format("batch {}", cross->batch));
    seen.push_back(fmt::format("{} text tokens", cross->keys));
  }
  if (temporal != nullptr) seen.push_back(fmt::format("{} latent frames", temporal->queries));
  if (spatial != nullptr) seen.push_back(fmt::format("{} patches of a frame", spatial->queries));
  if (spatial == nullptr || temporal == nullptr) {
    notes.push_back(fmt::format("Only the {} half of a pair was seen.", spatial != nullptr ? "spatial" : "temporal"));
  }
  notes.insert(notes.begin(), fmt::format("Recovered from the shapes and the dataflow: {} (the program ran {}). All "
                                          "other keys are those of {}.",
                                          join(recovered, ", "), join(seen, ", "), base));
  Entries out;
  out.text("name", model_name(program));
  out.text("source", model_source(program) + "; what surrounds them is that of " + base);
  out.text("notes", join(notes, " "));
  out.put("hidden_size", main->hidden);
  out.put("heads", a.heads);
  out.put("depth", std::max(spatial_layers, temporal_layers));
  out.put("intermediate", intermediate);
  out.put("qk_norm", qk_norm);
  std::set<std::string_view> known = {"name",  "hf_id", "source",       "notes",  "hidden_size",
                                      "heads", "depth", "intermediate", "qk_norm"};
  if (cross != nullptr) {
    out.put("text_tokens", cross->keys);
    known.insert("text_tokens");
  }
  std::string text = out.lines() + entries_but(descriptor::load(descriptor::Kind::model, base), known);
  model::parse_video_dit(descriptor::parse_yaml(text, "the recovered model"));
  return text;
}

}  // namespace

std::string recovered_model(const Program& program, const Blocks& blocks) {
  const auto any = [&](AttentionKind kind) {
    return std::ranges::any_of(blocks.blocks, [&](const TransformerBlock& b) { return find(b, kind) != nullptr; });
  };
  if (blocks.blocks.empty()) {
    reject(program, "no transformer block to write as a model: no product is the softmax of another one's result",
           blocks);
  }
  if (any(AttentionKind::spatial) || any(AttentionKind::temporal)) return recovered_video(program, blocks);
  if (any(AttentionKind::cross)) {
    reject(program, "blocks with cross attention on another stream are no decoder that a descriptor can describe",
           blocks);
  }
  return recovered_decoder(program, blocks);
}

}  // namespace llmperf::program
