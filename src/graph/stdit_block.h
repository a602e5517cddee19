// The blocks of a denoising step: self-attention over space or time, cross-attention on the prompt, MLP, each with the
// kernels around it. What eager PyTorch runs was read from hpcaitech/Open-Sora v1.2.0 (opensora/models/stdit/stdit3.py,
// layers/blocks.py) and rotary-embedding-torch; M = tokens x hidden, one kernel a line, as elements read > written in
// the activation type, f for fp32:
//
//   modulation      LayerNorm M > M; 1 + scale (tiny); multiply M > M; add M > M
//   frame mask      the same again with the vectors of time 0, and a selection 2M > M; likewise of the gates
//   query/key norm  to fp32 M > fM; square fM > fM; mean fM > rows; add epsilon; root; multiply fM > fM; from fp32
//                   fM > M; weight M > M
//   rope            cos, sin (tiny); multiply M > M; scale M > M; negate the odd half; interleave the halves (two
//                   copies); multiply M > M; scale M > M; add 2M > M; concatenate M > M
//   attention       A = sequences x heads x length^2: scale M > M; product; to fp32 A > fA; softmax fA > fA; from fp32
//                   fA > A; copy of the values M > M; product; copy of the result M > M
//   gate            multiply M > M; add 2M > M
//
// Broadcast, permuted and short-row kernels are strided (graph::Access). A library of fused kernels has one for each of
// these lines' headings. Flash attention is taken where the sequence is longer than the number of sequences.
//
// Internal to src/graph.
#pragma once

#include <cstdint>
#include <string_view>

#include "graph/video_writer.h"

namespace llmperf::graph {

class BlockWriter : public VideoWriter {
 public:
  BlockWriter(const VideoExecution& execution, Graph& graph);

 protected:
  // ---- Parts of a block
  // Modulated input, self-attention over `layer_`'s axis, gate and residual. `modulated`: with a norm, scale and shift
  // of its own.
  void self_attention(bool modulated);
  void cross_attention();
  void mlp();
  // The vectors that a block's table adds to the step's, `kernels` of them for each side of the frame mask.
  void modulation_vectors(std::int32_t kernels);
  // `copied`: before the product that reads the result there are copies of it.
  void norm_and_modulate(bool copied);
  bool masked() const { return m_.architecture == model::VideoArchitecture::stdit3 && !o_.skip_frame_mask; }

  // ---- Shapes on one device
  std::int64_t batch() const { return batch_; }
  std::int64_t frames() const { return e_.shape.patch_frames; }
  std::int64_t spatial() const { return spatial_; }                     // tokens of a frame
  std::int64_t tokens() const { return batch_ * frames() * spatial_; }  // rows of a product
  std::int64_t heads() const { return m_.heads / p_.tensor; }
  std::int64_t width() const { return heads() * m_.head_dim(); }
  std::int64_t text_tokens() const { return e_.text_tokens > 0 ? e_.text_tokens : m_.text_tokens; }
  std::int64_t residual_tokens() const {
    return p_.sequence_parallel ? (tokens() + p_.tensor - 1) / p_.tensor : tokens();
  }
  bool two_dimensional() const { return p_.tensor_rows > 0; }
  std::int64_t residual_width() const { return two_dimensional() ? m_.hidden / p_.tensor : m_.hidden; }

  // ---- Between devices
  enum class Split : unsigned char { outputs, inputs };
  // `n` and `k` are those of one device of the tensor axis.
  void linear(std::string_view name, Split split, std::int64_t rows, std::int64_t n, std::int64_t k);
  void exchange(std::string_view name, CollectiveKind kind, Axis axis, std::int64_t ranks, std::int64_t rows,
                std::int64_t columns);
  void gather_tokens(std::string_view name);
  void reduce_tokens(std::string_view all_reduce, std::string_view scatter);

 private:
  struct AttentionNames;
  void gate(std::string_view multiply, std::string_view add);
  void norm_queries_and_keys();
  void rotate();
  void flash(std::string_view name, std::int64_t sequences, std::int64_t queries, std::int64_t keys,
             std::int64_t heads);
  void naive(const AttentionNames& names, std::int64_t sequences, std::int64_t queries, std::int64_t keys,
             std::int64_t heads);

  std::int64_t batch_;
  std::int64_t spatial_;
};

}  // namespace llmperf::graph
