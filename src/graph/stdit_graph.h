// From a video diffusion transformer and a request to the ops of its three phases on one device: encoding the prompt,
// one denoising step, and decoding the latent frames.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/op.h"
#include "graph/plan.h"
#include "hardware/runtime.h"
#include "model/quantization.h"
#include "model/video/video_dit.h"

namespace llmperf::graph {

// How a generation runs. Must outlive the graphs built from it (ops point to its formats).
struct VideoExecution {
  const model::VideoDit* model = nullptr;
  model::VideoShape shape;
  std::int64_t videos = 1;       // generated together, by all replicas of the plan
  std::int64_t text_tokens = 0;  // of the prompt, which the cross-attention sees; the encoder works on the padded text
  bool guidance = true;          // classifier-free: with and without the prompt, in one batch
  Dtype activations = Dtype::bf16;
  model::StoredFormat weights;           // of the transformer's matrices
  model::StoredFormat decoder_weights;   // of the autoencoder's, which computes in `activations`
  Dtype text_activations = Dtype::tf32;  // of the text encoder; its matrices are text_weights
  model::StoredFormat text_weights = {.bits = 32, .compute = Dtype::tf32};
  hardware::RuntimeOptions runtime;
  Plan plan;  // tensor (also 2-D, also with sequence parallelism), ulysses, data and pipeline
  // Pieces that the latent is cut into along its height, for pipeline stages to work on side by side: a denoising
  // step's ops are those of one piece, which sees the keys and values of all.
  std::int64_t patches = 1;

  std::int64_t replica_videos() const { return (videos + plan.data - 1) / plan.data; }
  std::int64_t batch() const { return replica_videos() * (guidance ? 2 : 1); }  // sequences of a denoising step
};

// Op::layer_kind of a denoising step: which self-attention the op's block is about. A joint block (stdit, stdit2) has
// its cross-attention and MLP under `spatial`.
enum class VideoLayer : int { outside = -1, spatial = 0, temporal = 1 };

// What a kernel is there for, to sum times and bytes by.
enum class VideoPurpose : unsigned char {
  product,            // matrix products of the blocks
  spatial_attention,  // the kernels of attention proper, flash or not
  temporal_attention,
  cross_attention,
  qk_norm,
  rope,
  modulate,    // norms, scales and shifts
  frame_mask,  // the other side of the mask and the selections
  gate,        // gates and residual adds
  activation,
  rearrange,
  communication,
  outside,  // embedders, final layer, guidance
};
std::string_view name(VideoPurpose purpose);
// Of an op of a denoising step.
VideoPurpose purpose_of(const Op& op);

// Each replaces the contents of `graph`, whose capacity is reused.
//  * Text encoding: the padded prompt of every video, once. The unconditional text is a stored constant.
//  * Denoising step: of one replica; ops of one device of every pipeline stage, one stage after the other.
//  * Decoding: every device decodes all videos of its replica, whatever the plan.
void build_text_encoding(const VideoExecution& execution, Graph& graph);
void build_denoising_step(const VideoExecution& execution, Graph& graph);
void build_video_decoding(const VideoExecution& execution, Graph& graph);

// Why a plan does not fit the model; empty when it does.
std::vector<Problem> problems(const model::VideoDit& model, const Plan& plan);

}  // namespace llmperf::graph
