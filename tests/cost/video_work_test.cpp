#include <algorithm>

#include "catch.h"
#include "cost/memory.h"
#include "cost/work.h"
#include "graph/video_cases.h"

namespace llmperf::cost::video_work_test {
namespace {

using graph::Graph;
using graph::VideoCase;

template <class Keep>
Work sum(const Graph& graph, Keep&& keep) {
  Work total;
  for (const graph::Op& op : graph) {
    if (keep(op)) total += work_of(op) * static_cast<double>(op.count);
  }
  return total;
}
Work sum(const Graph& graph) {
  return sum(graph, [](const graph::Op&) { return true; });
}

constexpr double kTera = 1e12;

}  // namespace

TEST_CASE("A denoising step's products are its closed form and the embedders around the blocks") {
  struct Case {
    const char* resolution;
    std::int64_t frames;
    double tokens, spatial, frames_of_latent;
  };
  for (const Case& k :
       {Case{"480p", 51, 15 * 1590, 1590, 15}, {"720p", 102, 30 * 3600, 3600, 30}, {"360p", 1, 920, 920, 1}}) {
    for (const bool eager : {false, true}) {
      INFO(k.resolution << " " << k.frames << (eager ? ", eager" : ", fused"));
      VideoCase c("stdit3-xl2", k.resolution, k.frames);
      c.execution.text_tokens = 120;
      if (eager) c.eager();
      constexpr double kBatch = 2;
      constexpr double kText = 120;
      constexpr double kPadded = 300;
      constexpr double h = 1152;
      const double linear = 28 * 2 * kBatch * k.tokens * 2 * 14 * h * h;
      const double text = 56 * kBatch * kText * 4 * h * h;
      const double spatial = 28 * 4 * kBatch * k.frames_of_latent * k.spatial * k.spatial * h;
      const double temporal = 28 * 4 * kBatch * k.spatial * k.frames_of_latent * k.frames_of_latent * h;
      const double cross = 56 * 4 * kBatch * k.tokens * kText * h;
      // Outside: patches, text, timestep and rate (the masked side has another timestep), vectors, final layer.
      const double numbers = eager ? 3 : 2;
      const double sides = eager ? 2 : 1;
      const double outside = 2 * kBatch *
                             (k.tokens * 16 * h + kPadded * (4096 * h + h * h) + numbers * (256 * h + h * h) +
                              sides * 6 * h * h + k.tokens * 32 * h);
      CHECK(sum(c.step()).matrix.value == Approx(linear + text + spatial + temporal + cross + outside).epsilon(1e-12));
    }
  }
}

TEST_CASE("Frames and chunks decode with the published operations") {
  struct Case {
    const char* resolution;
    double frame, chunk;  // TFLOP
  };
  for (const Case& k : {Case{"360p", 2.206, 8.62}, {"480p", 3.934, 15.22}, {"720p", 9.144, 34.47}}) {
    INFO(k.resolution);
    const VideoCase c("stdit3-xl2", k.resolution, 51);
    const Graph graph = c.decoding();
    const Work spatial = sum(graph, [](const graph::Op& op) { return op.name.starts_with("2d_"); });
    const Work temporal = sum(graph, [](const graph::Op& op) { return op.name.starts_with("3d_"); });
    CHECK(spatial.matrix.value / 51 / kTera == Approx(k.frame).margin(0.0005));
    CHECK(temporal.matrix.value / 3 / kTera == Approx(k.chunk).margin(0.005));
    CHECK(spatial.matrix.value + temporal.matrix.value == Approx(sum(graph).matrix.value));
  }
}

TEST_CASE("Eager decoding of a frame moves the published bytes") {
  // 15.2, 26.8 and 60.6 GB in two dimensions.
  const std::pair<const char*, double> published[] = {{"360p", 15.2}, {"480p", 26.8}, {"720p", 60.6}};
  for (const auto& [resolution, gigabytes] : published) {
    INFO(resolution);
    VideoCase c("stdit3-xl2", resolution, 68);
    const Work spatial = sum(c.eager().decoding(), [](const graph::Op& op) { return op.name.starts_with("2d_"); });
    CHECK(spatial.bytes().value / 68 / 1e9 == Approx(gigabytes).epsilon(0.01));
  }
}

TEST_CASE("Encoding a padded prompt of 300 tokens takes 2.81 TFLOP") {
  const VideoCase c;
  CHECK(sum(c.text()).matrix.value / kTera == Approx(2.81).margin(0.005));
  // All matrices once, in fp32: 24 layers of 4 x 4096^2 and 3 x 4096 x 10240.
  CHECK(sum(c.text()).weights.value == Approx(4.0 * 24 * (4 * 4096.0 * 4096 + 3 * 4096.0 * 10240) + 4.0 * 300 * 4096));
}

TEST_CASE("A convolution multiplies every output with its neighbours and reads maps, not unfolded matrices") {
  const model::StoredFormat bf16;
  const graph::Op op{.name = "conv",
                     .body = graph::Convolution{.positions = 100,
                                                .outputs = 8,
                                                .inputs = 4,
                                                .taps = 9,
                                                .input_positions = 120,
                                                .weights = &bf16,
                                                .bias = true}};
  const Work work = work_of(op);
  CHECK(work.matrix.value == 2 * 100 * 8 * 4 * 9);
  CHECK(work.activations_read.value == 120 * 4 * 2);
  CHECK(work.activations_written.value == 100 * 8 * 2);
  CHECK(work.weights.value == (8 * 4 * 9 + 8) * 2);
  CHECK(work.vector.value == 100 * 8);
}

TEST_CASE("Attention without a mask sees every key from every query") {
  const graph::Op op{.name = "attention",
                     .body = graph::Attention{.sequences = 3,
                                              .q_tokens = 10,
                                              .keys = 7,
                                              .heads = 2,
                                              .kv_heads = 2,
                                              .qk_dim = 16,
                                              .v_dim = 16,
                                              .window = {}}};
  const Work work = work_of(op);
  CHECK(work.matrix.value == 4.0 * 3 * 2 * 10 * 7 * 16);
  CHECK(work.kv_read.value == 0);
  CHECK(work.activations_read.value == 3 * 2 * (10 + 2 * 7) * 16 * 2);
  CHECK(work.activations_written.value == 3 * 2 * 10 * 16 * 2);
}

TEST_CASE("All models of a generation stay loaded, the largest phase's activations beside them") {
  VideoCase c;
  const VideoMemory memory = video_memory(c.execution);
  CHECK(memory.transformer.value == 2 * 1'207'643'972.0);
  CHECK(memory.text_encoder.value == 4 * 4'762'310'656.0);  // 19 GB in fp32
  CHECK(memory.autoencoder.value == 2 * 393'341'007.0);
  CHECK(memory.activation().value ==
        std::max({memory.text_activation.value, memory.step_activation.value, memory.decode_activation.value}));
}

TEST_CASE("A step's activations are the residual stream, the text and the largest part of a block") {
  VideoCase c;
  constexpr double tokens = 2 * 15 * 1590;
  // The MLP: its input, and its inner layer before and after the activation (2 x 4608 = 8 hidden widths).
  CHECK(video_memory(c.execution).step_activation.value == 2 * 1152 * (tokens * (1 + 1 + 8) + 2 * 300));
  // Four devices keep a fourth of the inner layer each; the stream stays whole.
  c.execution.plan.tensor = 4;
  CHECK(video_memory(c.execution).step_activation.value == 2 * 1152 * (tokens * (1 + 1 + 2) + 2 * 300));
  c.execution.plan = {.ulysses = 5};
  CHECK(video_memory(c.execution).step_activation.value == 2 * 1152 * (tokens / 5 * (1 + 1 + 8) + 2 * 300));
}

TEST_CASE("Scores that are kept dominate a step of many frames") {
  VideoCase c("stdit3-xl2", "480p", 408);
  const double fused = video_memory(c.execution).step_activation.value;
  c.eager();
  // 3180 sequences of 120 frames, 16 heads: two score matrices in fp32.
  CHECK(video_memory(c.execution).step_activation.value > 2 * 4.0 * 3180 * 16 * 120 * 120);
  CHECK(video_memory(c.execution).step_activation.value > fused);
}

TEST_CASE("Tensor and pipeline axes divide the blocks' weights") {
  VideoCase c;
  constexpr double blocks = 56 * 21'255'696.0;
  constexpr double outside = 1'207'643'972.0 - blocks;
  c.execution.plan = {.tensor = 4, .pipeline = 2};
  CHECK(video_memory(c.execution).transformer.value == Approx(2 * (blocks / 8 + outside)));
  c.execution.plan = {.ulysses = 8};
  CHECK(video_memory(c.execution).transformer.value == 2 * 1'207'643'972.0);
}

}  // namespace llmperf::cost::video_work_test
