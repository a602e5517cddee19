// Largest sets of tensors alive at once, with M = tokens x hidden of one device in the activation type:
//
//   step     the residual stream and, whichever is largest,
//            fused:  the normalised input, q k v and attention's result (5 M); the MLP's input, its inner layer and the
//                    result (2 M and the inner width); without flash attention two score matrices beside
//            eager:  the query/key norm holds q k v, a normalised tensor and two fp32 tensors beside the input; the
//                    activation of the MLP reads and writes its inner layer
//   text     hidden states, scores twice, q k v
//   kept     displaced patches (estimate/video.h): k and v of spatial attention for the whole latent, in every block
//   decode   the largest maps of a micro-batch: the last enlargement's input and result at the full resolution, in
//            fp32 too where it is made so; of a chunk, the norm's, the padded and the filtered map; and all frames
#include "cost/video_memory.h"

#include <algorithm>

#include "base/integer.h"
#include "model/video_parameters.h"

namespace llmperf::cost {
namespace {

double d(std::int64_t x) { return static_cast<double>(x); }

Bytes step_activation(const graph::VideoExecution& e) {
  const model::VideoDit& m = *e.model;
  const model::VideoShape& s = e.shape;
  const hardware::RuntimeOptions& o = e.runtime;
  const double element = bytes_per_element(e.activations);
  const double fp32 = bytes_per_element(Dtype::fp32) / element;
  const std::int64_t rows = divide_up(s.patch_rows, e.plan.ulysses * e.patches) * s.patch_columns;
  const double tokens = d(e.batch() * s.patch_frames * rows);
  const double share = 1 / d(e.plan.tensor);
  const bool whole = e.plan.tensor_rows == 0 && !e.plan.sequence_parallel;
  const double residual = tokens * d(m.hidden) * (whole ? 1 : share);
  const double heads = tokens * d(m.hidden) * share;
  const double text = d(e.batch() * m.text_tokens) * d(m.hidden);
  // Input of the product, q k v, the result; of the norm of one of them in steps, two fp32 tensors and one.
  double attention =
      tokens * d(m.hidden) + 3 * heads + (m.qk_norm && !o.fused_qk_norm ? (2 * fp32 + 1) * heads : heads);
  const double products = d(m.heads) * share / d(e.plan.ulysses);
  const auto scores = [&](std::int64_t sequences, std::int64_t queries, std::int64_t keys) {
    const bool flash = o.flash_attention && (o.flash_any_length || keys > sequences);
    return flash ? 0.0 : 2 * fp32 * d(sequences) * d(queries) * d(keys) * products;
  };
  const std::int64_t all_rows = rows * e.plan.ulysses;
  attention += std::max(scores(e.batch() * s.patch_frames, all_rows, all_rows * e.patches),
                        scores(e.batch() * rows, s.patch_frames, s.patch_frames) * d(e.plan.ulysses));
  const double mlp = tokens * d(m.hidden) + 2 * tokens * d(m.intermediate) * share;
  const bool masked = m.architecture == model::VideoArchitecture::stdit3 && !o.skip_frame_mask;
  const double norms = (masked ? 4 : 2) * residual;
  return Bytes{(residual + text + std::max({attention, mlp, norms})) * element};
}

// Of spatial attention in every unit; the rest of a block sees one piece only.
Bytes kept_keys(const graph::VideoExecution& e, double units) {
  const model::VideoShape& s = e.shape;
  const std::int64_t rows = divide_up(s.patch_rows, e.plan.ulysses * e.patches) * e.patches;  // of a device's heads
  const double keys = d(e.batch() * s.patch_frames * rows * s.patch_columns);
  return Bytes{2 * keys * d(e.model->hidden) / d(e.plan.tensor) * units * bytes_per_element(e.activations)};
}

Bytes text_activation(const graph::VideoExecution& e) {
  const model::TextEncoder& t = e.model->text_encoder;
  const double rows = d(e.replica_videos() * e.model->text_tokens);
  const double attention = 4 * rows * d(t.heads * t.head_dim) + 2 * rows * d(e.model->text_tokens) * d(t.heads);
  const double mlp = 3 * rows * d(t.intermediate);
  return Bytes{(2 * rows * d(t.hidden) + std::max(attention, mlp)) * bytes_per_element(e.text_activations)};
}

Bytes decode_activation(const graph::VideoExecution& e) {
  const model::VideoDit& m = *e.model;
  const model::VideoShape& s = e.shape;
  const bool eager = e.runtime.chains != hardware::Chains::one_kernel;
  const double element = bytes_per_element(e.activations);
  const double fp32 = bytes_per_element(Dtype::fp32) / element;
  const model::ImageAutoencoder& a = m.image_decoder;
  const double scale = d(a.scale());
  const double pixels = d(s.latent_height) * d(s.latent_width) * scale * scale;
  const double frames = d(e.replica_videos() * s.frames);
  constexpr double kColours = 3;
  // The widest map at the full resolution is the enlarged one of the level before.
  const double wide = d(a.channels[std::min<std::size_t>(1, a.channels.size() - 1)]);
  const double batch = std::min(d(a.micro_batch), frames) * pixels * wide;
  double largest = batch * (eager ? fp32 + 1 : 1.25);
  const model::TemporalAutoencoder& t = m.temporal_decoder;
  if (t.chunk > 0) {
    const double latents = d((t.chunk + t.scale() - 1) / t.scale());
    const double positions = std::min(d(s.latent_frames), latents) * d(s.latent_height) * d(s.latent_width);
    // A map before time is doubled has twice the width behind it.
    const double map = positions * d(t.scale()) * d(t.channels[std::min<std::size_t>(1, t.channels.size() - 1)]);
    largest = std::max(largest, (eager ? 4 : 3) * map);
  }
  return Bytes{(largest + frames * pixels * kColours) * element};
}

// Of the blocks, a device holds its share under the tensor axis (all but tables and head norms are matrices and their
// biases, which divide) and of the pipeline; the rest is whole.
Bytes transformer(const graph::VideoExecution& e, const model::VideoParameters& p, double units) {
  const double bits =
      e.weights.bytes(e.model->hidden, e.model->hidden).value * 8 / d(e.model->hidden * e.model->hidden);
  const double blocks = d(p.blocks) / d(e.plan.tensor) * units / d(e.model->depth);
  return Bytes{(blocks + d(p.total - p.blocks)) * bits / 8};
}

}  // namespace

Bytes VideoMemory::activation() const { return std::max({text_activation, step_activation, decode_activation}); }

VideoMemory video_memory(const graph::VideoExecution& e) {
  return video_memory(e, d(e.model->depth) / d(e.plan.pipeline));
}

VideoMemory video_memory(const graph::VideoExecution& e, double units) {
  const model::VideoParameters p = model::count_parameters(*e.model);
  VideoMemory memory;
  memory.transformer = transformer(e, p, units);
  memory.text_encoder = Bytes{d(p.text_encoder_total) * e.text_weights.bits / 8};
  memory.autoencoder = Bytes{d(p.autoencoder_total) * e.decoder_weights.bits / 8};
  memory.text_activation = text_activation(e);
  memory.step_activation = step_activation(e);
  memory.decode_activation = decode_activation(e);
  if (e.patches > 1) memory.kept = kept_keys(e, units);
  return memory;
}

}  // namespace llmperf::cost
