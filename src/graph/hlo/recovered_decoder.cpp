#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "descriptor/node.h"
#include "graph/hlo/recovered_writer.h"
#include "model/decoder.h"

namespace llmperf::graph::hlo {
namespace {

// In the order of model::Activation and model::Norm.
constexpr std::array<std::string_view, 5> kActivations = {"silu", "gelu", "gelu_tanh", "relu", "swiglu_clamped"};
constexpr std::array<std::string_view, 2> kNorms = {"rms", "layer"};

std::string_view yes(bool value) { return value ? "true" : "false"; }

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
    YamlLines out;
    out.text("name", model_name(program_));
    out.text("source", model_source(program_));
    YamlLines rest;
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

  void write_words(YamlLines& out) {
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
    if (!blocks_.lm_head || blocks_.lm_head->tied) out.put("tied_embeddings", "true");
    if (blocks_.lm_head && blocks_.lm_head->bias) out.put("lm_head_bias", "true");
    if (blocks_.position_embeddings > 0) out.put("position_embeddings", blocks_.position_embeddings);
  }

  void write_norms(YamlLines& out) {
    if (!main_->norm) note("No norm was recognised: RMS norms are assumed.");
    out.put("norm", kNorms[static_cast<std::size_t>(main_->norm.value_or(model::Norm::rms))]);
    const int norms = main_->parallel_blocks ? std::clamp(main_->norms, 1, 2) : main_->norms >= 4 ? 4 : 2;
    if (norms != main_->norms) note(fmt::format("{} norms per layer are assumed, {} were seen.", norms, main_->norms));
    if (main_->parallel_blocks) out.put("parallel_blocks", "true");
    if (norms != 2) out.put("norms_per_layer", norms);
  }

  std::string attention_line() {
    const AttentionShape& a = main_->attentions[0];
    std::string line = fmt::format("heads: {}, kv_heads: {}, head_dim: {}", a.heads, a.kv_heads, a.head_dim);
    if (a.v_head_dim != a.head_dim) line += fmt::format(", v_head_dim: {}", a.v_head_dim);
    if (!a.rotary) {
      line += ", rotary_dim: 0";
    } else {
      note("The rotary embedding is taken to turn whole heads.");
    }
    for (const auto& [key, value] :
         {std::pair("qkv_bias", a.qkv_bias), std::pair("o_bias", a.o_bias), std::pair("qk_norm", a.qk_norm),
          std::pair("softcap", a.softcap), std::pair("fused_qkv", a.fused_qkv)}) {
      if (value) line += fmt::format(", {}: true", key);
    }
    if (a.masked) note("Any mask is taken to be causal; windows are not read from it.");
    if (a.latent) note("Queries or keys come from two matrices in a row (latent attention); they are written as one.");
    return "{" + line + "}";
  }

  std::string feed_forward_line() {
    const FeedForwardShape& f = *main_->feed_forward;
    if (!f.activation) note("The activation function was not recognised: silu is assumed.");
    const auto activation = static_cast<std::size_t>(f.activation.value_or(model::Activation::silu));
    std::string line;
    if (f.experts == 0) line += fmt::format("intermediate: {}, ", f.intermediate);
    line += fmt::format("activation: {}, gated: {}", kActivations[activation], yes(f.gated));
    if (f.bias) line += ", bias: true";
    if (f.fused_gate_up) line += ", fused_gate_up: true";
    if (f.experts > 0) {
      const std::int64_t chosen = f.per_token > 0 ? f.per_token : std::min<std::int64_t>(2, f.experts);
      if (f.per_token == 0) note(fmt::format("The experts of a token were not seen: {} are assumed.", chosen));
      line += fmt::format(", experts: {{count: {}, per_token: {}, intermediate: {}", f.experts, chosen, f.intermediate);
      if (f.shared_intermediate > 0) line += fmt::format(", shared_intermediate: {}", f.shared_intermediate);
      if (f.router_bias) line += ", router_bias: true";
      line += '}';
      if (dense_layers_ > 0) {
        line += fmt::format(", first_dense_layers: {}, dense_intermediate: {}", dense_layers_, dense_width_);
      }
    }
    return "{" + line + "}";
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

}  // namespace

std::string recovered_decoder(const Program& program, const Blocks& blocks) {
  std::string text = DecoderWriter(program, blocks).write();
  // What the reader would refuse (widths beyond its bounds) is refused here, where the reason is still known.
  model::parse_decoder(descriptor::parse_yaml(text, "the recovered model"));
  return text;
}

}  // namespace llmperf::graph::hlo
