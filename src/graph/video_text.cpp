// Encoding the prompt by a T5 encoder (transformers' T5EncoderModel), which works on the padded text:
//
//   embed; per layer: norm, q k v, scores + relative positions, softmax, weighted sum, output, add;
//                     norm, gate and up, activation, down, add;
//   final norm
//
// Eager: a norm is square, mean, root, multiply, weight in fp32; q, k, v and the heads' result are copied to and from
// the order of heads; the gate's activation and its product are two kernels.
#include "graph/video_writer.h"

namespace llmperf::graph {
namespace {

using enum VectorKind;
constexpr Access kDense = Access::dense;
constexpr Access kStrided = Access::strided;

class TextBuilder : private VideoWriter {
 public:
  TextBuilder(const VideoExecution& execution, Graph& graph)
      : VideoWriter(execution, graph),
        t_(execution.model->text_encoder),
        rows_(execution.replica_videos() * execution.model->text_tokens),
        inner_(t_.heads * t_.head_dim) {}

  void build() {
    push("text_embed",
         Gather{.rows = rows_, .width = t_.hidden, .table = &e_.text_weights, .activation = e_.text_activations});
    count_ = t_.layers;
    attention();
    mlp();
    count_ = 1;
    norm("text_final_norm");
  }

 private:
  void vectors(const Kernel& kernel, double rows, std::int64_t width, std::int32_t launches = 1) {
    run(kernel, rows, width, e_.text_activations, launches);
  }
  void linear(std::string_view name, std::int64_t n, std::int64_t k) {
    product(name, rows_, n, k, false, e_.text_weights, e_.text_activations);
  }
  void norm(std::string_view name) {
    if (eager()) {
      vectors({name, rms_norm, kStrided}, static_cast<double>(rows_), t_.hidden, 5);
    } else {
      vectors({name, rms_norm, kDense}, static_cast<double>(rows_), t_.hidden);
    }
  }
  void attention() {
    const std::int64_t tokens = m_.text_tokens;
    const std::int64_t products = e_.replica_videos() * t_.heads;
    const auto scores = static_cast<double>(products * tokens);
    norm("text_attention_norm");
    for (const std::string_view name : {"text_q_proj", "text_k_proj", "text_v_proj"}) linear(name, inner_, t_.hidden);
    if (eager()) vectors({"text_heads", add, kStrided}, static_cast<double>(rows_), inner_, 3);
    push("text_scores",
         Gemm{.m = tokens, .n = tokens, .k = t_.head_dim, .batch = products, .activation = e_.text_activations});
    vectors({"text_positions", add, kStrided}, scores, tokens);
    vectors({"text_softmax", softmax, kDense}, scores, tokens);
    push("text_weighted_sum",
         Gemm{.m = tokens, .n = t_.head_dim, .k = tokens, .batch = products, .activation = e_.text_activations});
    if (eager()) vectors({"text_merge_heads", add, kStrided}, static_cast<double>(rows_), inner_);
    linear("text_o_proj", t_.hidden, inner_);
    vectors({"text_attention_add", add, kDense, 2}, static_cast<double>(rows_), t_.hidden);
  }
  void mlp() {
    const auto rows = static_cast<double>(rows_);
    norm("text_mlp_norm");
    linear("text_gate_proj", t_.intermediate, t_.hidden);
    if (eager()) vectors({"text_gelu", activation, kDense}, rows, t_.intermediate);
    linear("text_up_proj", t_.intermediate, t_.hidden);
    vectors({eager() ? "text_multiply_gate" : "text_activation", eager() ? multiply : gated_activation, kDense, 2},
            rows, t_.intermediate);
    linear("text_down_proj", t_.hidden, t_.intermediate);
    vectors({"text_mlp_add", add, kDense, 2}, rows, t_.hidden);
  }

  const model::TextEncoder& t_;
  std::int64_t rows_;
  std::int64_t inner_;
};

}  // namespace

void build_text_encoding(const VideoExecution& execution, Graph& graph) { TextBuilder(execution, graph).build(); }

}  // namespace llmperf::graph
