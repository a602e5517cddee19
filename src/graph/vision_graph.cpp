//   patches      a product [patches, 3 t p^2] x [3 t p^2, h] (a convolution whose stride is its width), positions added
//   layers       norm, q k v, rotation, attention without a mask within an image (tile, window), output projection;
//                norm, MLP
//   projector    rows of merge x merge patches side by side, or their mean, and the matrices to the language model's
//                width; deepstack: as many chains more, whose results the language model's first layers add
//
// Attention is one kernel whatever the options say: engines run towers so. An image that windows do not divide has
// smaller ones at its edges, each size an op of its own.
#include <algorithm>
#include <utility>

#include "base/integer.h"
#include "graph/decoder_graph.h"
#include "graph/step_writer.h"

namespace llmperf::graph {
namespace {

constexpr std::int64_t kColours = 3;

class VisionBuilder : StepWriter {
 public:
  VisionBuilder(const Execution& execution, const SeenImages& images, Graph& graph)
      : StepWriter(execution.runtime, execution.plan, execution.activations, execution.model->vision->hidden, 1, graph),
        e_(execution),
        t_(*execution.model->vision),
        image_(images.each),
        all_(images.count),
        tiles_(images_of_device(execution, images.count) * images.each.tiles),
        patches_(tiles_ * images.each.patches),
        rows_(tiles_ * (images.each.patches + (t_.class_token ? 1 : 0))) {}

  void build() {
    linear(Tag::patch_embed, patches_, t_.hidden, kColours * t_.temporal_patch * t_.patch * t_.patch, t_.patch_bias);
    if (t_.positions > 0) vector(Tag::add_positions, VectorKind::add, rows_, t_.hidden, 2, 1);
    if (t_.norm_before) norm(Tag::patch_norm, rows_, t_.hidden);
    count_ = t_.layers;
    norm(Tag::input_norm, rows_, t_.hidden);
    attention();
    finish_part(Tag::post_attention_norm, Tag::attention_add, Tag::mlp_norm, Tag::attention_add_norm);
    mlp();
    if (t_.norms == 4) norm(Tag::post_mlp_norm, rows_, t_.hidden);
    vector(Tag::mlp_add, VectorKind::add, rows_, t_.hidden, 2, 1);
    count_ = 1;
    if (t_.norm_after) norm(Tag::final_norm, rows_, t_.hidden);
    project();
  }

 private:
  void linear(Tag tag, std::int64_t rows, std::int64_t n, std::int64_t k, bool bias) {
    push(tag, Gemm{.m = rows, .n = n, .k = k, .activation = activations_, .weights = &e_.vision_weights, .bias = bias});
  }
  std::int64_t norm_weights(std::int64_t width) const { return (t_.layer_norm ? 2 : 1) * width; }
  void norm(Tag tag, std::int64_t rows, std::int64_t width) {
    vector(tag, t_.layer_norm ? VectorKind::layer_norm : VectorKind::rms_norm, rows, width, 1, 1, norm_weights(width));
  }
  void finish_part(Tag post, Tag add, Tag next, Tag both) {
    if (t_.norms == 4) norm(post, rows_, t_.hidden);
    if (o_.fused_add_norm) {
      vector(both, t_.layer_norm ? VectorKind::add_layer_norm : VectorKind::add_rms_norm, rows_, t_.hidden, 2, 2,
             norm_weights(t_.hidden));
    } else {
      vector(add, VectorKind::add, rows_, t_.hidden, 2, 1);
      norm(next, rows_, t_.hidden);
    }
  }

  void attention() {
    const std::int64_t q = t_.heads * t_.head_dim;
    const std::int64_t kv = t_.kv_heads * t_.head_dim;
    linear(Tag::qkv_proj, rows_, q + 2 * kv, t_.hidden, t_.attention_bias);
    if (t_.qk_norm) {
      vector(Tag::q_norm, VectorKind::rms_norm, rows_ * t_.heads, t_.head_dim, 1, 1, t_.head_dim);
      vector(Tag::k_norm, VectorKind::rms_norm, rows_ * t_.kv_heads, t_.head_dim, 1, 1, t_.head_dim);
    }
    if (t_.rotary) vector(Tag::rope, VectorKind::rope, rows_, q + kv, 1, 1);
    const std::int64_t full = t_.window > 0 ? t_.full_layers : t_.layers;
    attend(full, tiles_, rows_ / std::max<std::int64_t>(tiles_, 1));
    if (full < t_.layers) {
      for (const model::PatchWindow& window : model::windows(t_, image_)) {
        attend(t_.layers - full, tiles_ * window.sequences, window.patches);
      }
    }
    linear(Tag::o_proj, rows_, t_.hidden, q, t_.attention_bias);
  }
  void attend(std::int64_t layers, std::int64_t sequences, std::int64_t tokens) {
    if (layers == 0) return;
    const std::int64_t all = std::exchange(count_, layers);
    push(Tag::attention, Attention{.sequences = sequences,
                                   .q_tokens = tokens,
                                   .keys = tokens,
                                   .heads = t_.heads,
                                   .kv_heads = t_.kv_heads,
                                   .qk_dim = t_.head_dim,
                                   .v_dim = t_.head_dim,
                                   .activation = activations_,
                                   .cached = {element_, element_}});
    count_ = all;
  }

  void mlp() {
    const std::int64_t inner = t_.intermediate;
    if (!t_.gated) {
      linear(Tag::up_proj, rows_, inner, t_.hidden, t_.mlp_bias);
      vector(Tag::activation, VectorKind::activation, rows_, inner, 1, 1);
    } else {
      if (o_.fused_gate_up) {
        linear(Tag::gate_up_proj, rows_, 2 * inner, t_.hidden, t_.mlp_bias);
      } else {
        linear(Tag::gate_proj, rows_, inner, t_.hidden, t_.mlp_bias);
        linear(Tag::up_proj, rows_, inner, t_.hidden, t_.mlp_bias);
      }
      if (o_.fused_activation) {
        vector(Tag::activation, VectorKind::gated_activation, rows_, inner, 2, 1);
      } else {
        vector(Tag::activation, VectorKind::activation, rows_, inner, 1, 1);
        vector(Tag::multiply_gate, VectorKind::multiply, rows_, inner, 2, 1);
      }
    }
    linear(Tag::down_proj, rows_, t_.hidden, inner, t_.mlp_bias);
  }

  void project() {
    const std::int64_t tokens = images_of_device(e_, all_) * image_.tokens;
    if (t_.projector_norm && t_.projector_rms) {
      vector(Tag::merge_norm, VectorKind::rms_norm, patches_, t_.hidden, 1, 1, t_.hidden);
    } else if (t_.projector_norm) {
      norm(Tag::merge_norm, patches_, t_.hidden);
    }
    // The mean of a token's patches.
    if (t_.merge > 1 && t_.projector.front() == t_.hidden) {
      vector(Tag::merge_norm, VectorKind::reduce, patches_, t_.hidden, 1, d(tokens) / d(patches_));
    }
    chain(Tag::merge_proj, tokens);
    if (t_.deepstack > 0) {
      count_ = t_.deepstack;
      norm(Tag::deepstack_norm, tokens, t_.projector.front());
      chain(Tag::deepstack_proj, tokens);
      count_ = 1;
    }
    gather();
    if (t_.deepstack > 0) {
      count_ = t_.deepstack;
      gather();
      vector(Tag::deepstack_add, VectorKind::add, all_ * image_.tokens, t_.output(), 2, 1);
      count_ = 1;
    }
  }
  void chain(Tag tag, std::int64_t tokens) {
    for (std::size_t i = 0; i + 1 < t_.projector.size(); ++i) {
      if (i > 0) vector(Tag::activation, VectorKind::activation, tokens, t_.projector[i], 1, 1);
      linear(tag, tokens, t_.projector[i + 1], t_.projector[i], t_.projector_bias);
    }
  }
  // The rows of all images, to every device of the tensor axis.
  void gather() {
    exchange(Tag::images_gather, CollectiveKind::all_gather, Axis::tensor, p_.tensor, d(all_ * image_.tokens),
             d(t_.output()));
  }

  const Execution& e_;
  const model::VisionTower& t_;
  model::SeenImage image_;
  std::int64_t all_;    // images, of all devices of the tensor axis
  std::int64_t tiles_;  // of this device, as the rest
  std::int64_t patches_;
  std::int64_t rows_;  // class tokens among them
};

}  // namespace

std::int64_t images_of_device(const Execution& e, std::int64_t images) { return divide_up(images, e.plan.tensor); }

void build_vision(const Execution& execution, const SeenImages& images, Graph& graph) {
  VisionBuilder(execution, images, graph).build();
}

}  // namespace llmperf::graph
