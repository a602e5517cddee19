// From a request for generated video to an estimate: encoding the text, the denoising steps, decoding the latent, and
// what the runtime adds to a generation.
//
//   generation = text + steps x step + decoding + other
//
// Pipeline stages hold runs of the depth, each on its own devices (a sub-mesh) with its own division of a block. A step
// needs the result of the one before it, so that stages take turns:
//
//   step = sum over stages of s_i                                          s_i: what stage i computes and sends on
//
// unless the latent is cut along its height into N pieces that follow one another through the stages (displaced patch
// pipelining: PipeFusion, arXiv 2405.14430). Spatial attention of a piece needs keys and values of the other pieces; it
// takes those of the step before, which every stage keeps. A piece enters its next step when it has left this one, so
// the pipeline never drains, and a step takes as long as its busiest stage, or as one piece that has the pipeline to
// itself:
//
//   step  = max(sum of s_i / N, max s_i)
//   first = sum of s_i                                                     nothing is kept yet: one piece after another
//   fill  = sum of s_i / N + (N - 1) / N max s_i                           the second step, while the pipeline fills
//
// What the first two take longer than the others is `pipeline_fill` in the phase "other". s_i is of N pieces and made
// of kernels of their size; what is not divided (embeddings, keys of the text) every piece computes again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimate/phase.h"
#include "estimate/setup.h"
#include "graph/stdit_graph.h"

namespace llmperf::estimate {

struct VideoScenario {
  model::VideoShape shape;
  std::int64_t videos = 1;                  // generated together
  std::int64_t steps = 30;                  // denoising steps
  bool guidance = true;                     // classifier-free, which doubles the batch of a step
  std::optional<std::int64_t> text_tokens;  // of the prompt; nothing: as many as the model takes
};
inline constexpr std::int64_t kMaxVideoSteps = 100'000;

// A pipeline stage: units of the depth first..last, and how a block is divided over its devices (tensor and ulysses
// axes of the plan; the rest is that of the whole plan).
struct VideoStage {
  std::int64_t first = 0;
  std::int64_t last = 0;
  graph::Plan plan;
  std::int64_t units() const { return last - first + 1; }
};

struct VideoSetup : Platform {
  VideoScenario scenario;
  graph::VideoExecution execution;  // its plan is legal for the model; of a pipeline, that of the first stage
  std::string weights_name;         // as --weights takes it
  std::vector<VideoStage> stages;   // at least one
  std::int64_t devices() const;
};

// Left to llmperf,
//  * weights of the transformer are of the 16-bit type of the activations;
//  * text_weights are as the model says the text encoder is stored. fp32 is multiplied in tf32; a device that has a
//    rate for neither holds and runs it in the activations' type.
struct VideoChoices : WorkloadChoices {
  VideoScenario scenario;
  std::optional<std::string> text_weights;
  std::vector<VideoStage> stages;  // empty: as many equal ones as plan.pipeline
  std::int64_t patches = 1;
  // Of a ring of dies, between neighbours, one direction; nothing: the device's links.
  std::optional<BytesPerSecond> die_link;
};
// Throws Error(bad_input) for unknown schemes, a text longer than the model takes, stages that do not cover the depth
// once and in order or whose plans do not fit, and more patches than rows of the latent.
VideoSetup make_video_setup(const model::VideoDit& model, const hardware::Device& device, const VideoChoices& choices);

// Its memory is that of a device of the fullest stage; kv_cache: what patches keep.
struct VideoEstimate : Outcome {
  cost::VideoMemory parts;  // of that memory

  // Only when it fits. Phases: "text encoding", "denoising step", "VAE decoding"; "other" where there is any.
  Seconds step;
  Seconds generation;
  std::vector<OpGroup> classes;       // of the step by graph::VideoPurpose; times add up to the step's ops
  FlopsPerSecond peak;                // of matrix products in the activations' type
  Flops products;                     // matrix products of a step, of one device of every stage
  double step_utilisation = 0;        // products over what the devices could do in a step …
  double generation_utilisation = 0;  // … and products of all steps over what they could in a generation
};
inline constexpr std::string_view kVideoPhases[] = {"text encoding", "denoising step", "VAE decoding", "other"};

class VideoEstimator {
 public:
  explicit VideoEstimator(VideoSetup setup);

  // Throws std::logic_error if a result broke an invariant: a bug, never a user's mistake.
  VideoEstimate run();
  cost::Memory memory() const;
  bool fits() const { return memory().total() <= capacity(); }
  Bytes capacity() const { return *setup_.device->dram().capacity; }

  const VideoSetup& setup() const { return setup_; }
  const mapper::Machine& machine() const { return machine_; }
  // Layers of each kind and weights of a device, by stage.
  const std::vector<Stage>& stages() const { return stages_; }
  // Of the device of a stage.
  cost::VideoMemory stage_memory(std::size_t stage) const;
  std::size_t fullest_stage() const;

 private:
  void build_step();
  void phase(std::string_view name, double blocks, std::int64_t pieces, std::span<const Stage> stages, Phase& result);
  void other(VideoEstimate& result);
  bool alike() const;  // stages with one plan

  VideoSetup setup_;
  mapper::Machine machine_;
  std::vector<graph::VideoExecution> executions_;  // by stage; ops point to their formats
  std::vector<Stage> stages_;
  graph::Graph graph_;
  graph::Graph part_;
  std::vector<double> seconds_;
};

}  // namespace llmperf::estimate
