// Decoding the latent: a 3-D decoder per chunk of frames, which lengthens time (where there is one), then a 2-D decoder
// per micro-batch of frames, which enlarges them (Open-Sora v1.2.0, opensora/models/vae; diffusers 0.27 AutoencoderKL).
// Both are residual blocks of
//
//   norm, SiLU, convolution, norm, SiLU, convolution, + input (through a 1 x 1 convolution where the widths differ)
//
// of all channels at a level's resolution. Filters have 3 x 3 taps in 2-D, 3 x 3 x 3 in 3-D, padded with zeros (in time
// with earlier ones only). The middle of the 2-D decoder has an attention block with one head of all channels.
//
// Eager PyTorch, in tensors of the block's shape: a group norm reads twice and writes once, SiLU reads and writes, and
// a convolution library's kernels on channels-last data cost a copy before and after each convolution, its bias a
// kernel. The 2-D blocks divide their result by 1; an enlarged map is made in fp32; the 3-D decoder writes padded
// copies.
#include "graph/video_writer.h"

namespace llmperf::graph {
namespace {

using enum VectorKind;
constexpr Access kDense = Access::dense;
constexpr Access kStrided = Access::strided;

// A box of pixels.
struct Box {
  std::int64_t frames = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t positions() const { return frames * rows * columns; }
};

class DecodeBuilder : private VideoWriter {
 public:
  using VideoWriter::VideoWriter;

  void build() {
    const model::VideoShape& s = e_.shape;
    const model::TemporalAutoencoder& t = m_.temporal_decoder;
    if (t.chunk > 0) {
      const std::int64_t whole = (t.chunk + t.scale() - 1) / t.scale();
      temporal(whole, s.latent_frames / whole * e_.replica_videos());
      temporal(s.latent_frames % whole, e_.replica_videos());
    }
    const std::int64_t frames = s.frames * e_.replica_videos();
    const std::int64_t batch = m_.image_decoder.micro_batch;
    spatial(batch, frames / batch);
    spatial(frames % batch, 1);
  }

 private:
  struct Names {
    std::string_view in, first, second, shortcut, norm, activation, layout, bias, pad, add, rescale, enlarge, out,
        quant;
  };

  void kernels(const Kernel& kernel, double positions, std::int64_t channels, std::int32_t launches = 1) {
    run(kernel, positions, channels, launches);
  }
  // The convolution and what eager PyTorch adds to it.
  void convolve(std::string_view name, const Box& box, std::int64_t inputs, std::int64_t outputs, std::int64_t taps,
                bool bias) {
    const bool pads = !names_->pad.empty() && taps > 1 && eager();
    const Box padded = pads ? Box{box.frames + 2, box.rows + 2, box.columns + 2} : box;
    const auto read = static_cast<double>(padded.positions());
    const auto written = static_cast<double>(box.positions());
    if (eager()) {
      if (pads) {
        push(names_->pad, Copy{.read_elements = written * static_cast<double>(inputs),
                               .write_elements = read * static_cast<double>(inputs),
                               .from = model::element_format(e_.activations),
                               .to = model::element_format(e_.activations)});
      }
      copy(names_->layout, read * static_cast<double>(inputs), kDense, e_.activations, e_.activations);
    }
    push(name, Convolution{.positions = box.positions(),
                           .outputs = outputs,
                           .inputs = inputs,
                           .taps = taps,
                           .input_positions = read,
                           .activation = e_.activations,
                           .weights = &e_.decoder_weights,
                           .bias = bias && !eager()});
    if (eager()) {
      copy(names_->layout, written * static_cast<double>(outputs), kDense, e_.activations, e_.activations);
      if (bias) kernels({names_->bias, add, kDense}, written, outputs);
    }
  }
  void norm_and_activate(const Box& box, std::int64_t channels) {
    const auto positions = static_cast<double>(box.positions());
    kernels({names_->norm, group_norm, kDense, 2}, positions, channels);
    if (eager()) kernels({names_->activation, activation, kDense}, positions, channels);
  }
  void block(const Box& box, std::int64_t inputs, std::int64_t outputs, std::int64_t taps, bool bias) {
    norm_and_activate(box, inputs);
    convolve(names_->first, box, inputs, outputs, taps, bias);
    norm_and_activate(box, outputs);
    convolve(names_->second, box, outputs, outputs, taps, bias);
    if (inputs != outputs) convolve(names_->shortcut, box, inputs, outputs, 1, bias);
    const auto positions = static_cast<double>(box.positions());
    kernels({names_->add, add, kDense, 2}, positions, outputs);
    if (eager() && !names_->rescale.empty()) kernels({names_->rescale, multiply, kDense}, positions, outputs);
  }
  // `blocks` blocks, of which the first may change the width; those alike are one description.
  void level(const Box& box, std::int64_t inputs, std::int64_t outputs, std::int64_t blocks, std::int64_t taps,
             bool bias) {
    const std::int64_t times = count_;
    if (inputs != outputs) {
      block(box, inputs, outputs, taps, bias);
      --blocks;
    }
    count_ = times * blocks;
    if (blocks > 0) block(box, outputs, outputs, taps, bias);
    count_ = times;
  }

  // `latents` latent frames of one chunk, `chunks` times.
  void temporal(std::int64_t latents, std::int64_t chunks) {
    static constexpr Names kNames = {"3d_conv_in", "3d_conv_1", "3d_conv_2",   "3d_shortcut", "3d_norm",
                                     "3d_silu",    "3d_layout", "3d_bias",     "3d_pad",      "3d_add",
                                     "",           "3d_double", "3d_conv_out", "3d_quant"};
    if (latents == 0 || chunks == 0) return;
    names_ = &kNames;
    count_ = chunks;
    constexpr std::int64_t kTaps = 27;
    const model::TemporalAutoencoder& t = m_.temporal_decoder;
    Box box = {latents, e_.shape.latent_height, e_.shape.latent_width};
    std::int64_t width = t.channels.back();
    convolve(kNames.quant, box, m_.in_channels, m_.in_channels, 1, true);
    convolve(kNames.in, box, m_.in_channels, width, kTaps, true);
    level(box, width, width, t.blocks, kTaps, false);
    for (std::size_t i = t.channels.size(); i-- > 0;) {
      level(box, width, t.channels[i], t.blocks, kTaps, false);
      width = t.channels[i];
      if (i == 0 || t.halves[i - 1] == 0) continue;
      convolve(kNames.enlarge, box, width, 2 * width, kTaps, true);
      copy("3d_interleave", static_cast<double>(2 * box.positions() * width), kStrided, e_.activations, e_.activations);
      box.frames *= 2;
    }
    norm_and_activate(box, width);
    convolve(kNames.out, box, width, m_.in_channels, kTaps, true);
    count_ = 1;
  }

  // `frames` frames together, `times` times.
  void spatial(std::int64_t frames, std::int64_t times) {
    static constexpr Names kNames = {"2d_conv_in",  "2d_conv_1", "2d_conv_2", "2d_shortcut", "2d_norm",    "2d_silu",
                                     "2d_layout",   "2d_bias",   "",          "2d_add",      "2d_rescale", "2d_enlarge",
                                     "2d_conv_out", "2d_quant"};
    if (frames == 0 || times == 0) return;
    names_ = &kNames;
    count_ = times;
    constexpr std::int64_t kTaps = 9;
    constexpr std::int64_t kColours = 3;
    const model::ImageAutoencoder& a = m_.image_decoder;
    Box box = {frames, e_.shape.latent_height, e_.shape.latent_width};
    std::int64_t width = a.channels.back();
    convolve(kNames.quant, box, a.latent_channels, a.latent_channels, 1, true);
    convolve(kNames.in, box, a.latent_channels, width, kTaps, true);
    block(box, width, width, kTaps, true);
    middle_attention(box, width);
    block(box, width, width, kTaps, true);
    for (std::size_t i = a.channels.size(); i-- > 0;) {
      level(box, width, a.channels[i], a.blocks + 1, kTaps, true);
      width = a.channels[i];
      if (i > 0) enlarge(box, width);
    }
    norm_and_activate(box, width);
    convolve(kNames.out, box, width, kColours, kTaps, true);
    count_ = 1;
  }
  void enlarge(Box& box, std::int64_t width) {
    const auto small = static_cast<double>(box.positions() * width);
    box.rows *= 2;
    box.columns *= 2;
    const auto large = static_cast<double>(box.positions() * width);
    const auto repeat = [&](Dtype type) {
      push("2d_repeat_pixels", Copy{.read_elements = small,
                                    .write_elements = large,
                                    .from = model::element_format(type),
                                    .to = model::element_format(type)});
    };
    if (eager()) {
      copy("2d_to_fp32", small, kDense, e_.activations, Dtype::fp32);
      repeat(Dtype::fp32);
      copy("2d_from_fp32", large, kDense, Dtype::fp32, e_.activations);
    } else {
      repeat(e_.activations);
    }
    convolve(names_->enlarge, box, width, width, 9, true);
  }
  void middle_attention(const Box& box, std::int64_t width) {
    const std::int64_t pixels = box.rows * box.columns;
    const auto positions = static_cast<double>(box.positions());
    kernels({names_->norm, group_norm, kDense, 2}, positions, width);
    for (const std::string_view name : {"2d_q_proj", "2d_k_proj", "2d_v_proj"}) {
      product(name, box.positions(), width, width, true, e_.decoder_weights, e_.activations);
    }
    push("2d_attention", Attention{.sequences = box.frames,
                                   .q_tokens = pixels,
                                   .keys = pixels,
                                   .heads = 1,
                                   .kv_heads = 1,
                                   .qk_dim = width,
                                   .v_dim = width,
                                   .window = {},
                                   .activation = e_.activations});
    product("2d_attention_proj", box.positions(), width, width, true, e_.decoder_weights, e_.activations);
    kernels({"2d_attention_add", add, kDense, 2}, positions, width);
  }

  const Names* names_ = nullptr;
};

}  // namespace

void build_video_decoding(const VideoExecution& execution, Graph& graph) { DecodeBuilder(execution, graph).build(); }

}  // namespace llmperf::graph
