#include "result/video.h"

#include <array>

namespace llmperf::result {
namespace {

struct VideoInputs {
  const Video* of;
  const estimate::VideoSetup& setup() const { return *of->setup; }
  const graph::VideoExecution& execution() const { return of->setup->execution; }
};
struct VideoMemoryUsed {
  const estimate::VideoEstimate* estimate;
};
// Of all steps of one of kVideoPhases.
template <std::size_t I>
double phase_seconds(const Video& v) {
  const std::vector<estimate::Phase>& phases = v.estimate->phases;
  return I < phases.size() ? phases[I].total().value : 0.0;
}

}  // namespace

std::vector<std::string> Video::beyond() const { return extrapolations(*setup); }
Bands Video::bands() const {
  return {{"generation", estimate->fits ? band_of(band(*setup), estimate->generation) : std::nullopt}};
}

estimate::Spent Video::spent() const {
  if (!estimate->fits) return {};
  return estimate::spent(setup->price, setup->device->power_w, d(setup->devices()), estimate->generation);
}

Type fields_of(Fields<model::VideoShape> f) {
  using S = model::VideoShape;
  return f.of<&S::size, &model::VideoSize::height>("height", "pixels")
      .of<&S::size, &model::VideoSize::width>("width", "pixels")
      .of<&S::frames>("frames", "of a video")
      .of("latent", "frames, height, width",
          [](const S& s) {
            return std::array{s.latent_frames, s.latent_height, s.latent_width};
          })
      .of("patches", "frames, rows, columns",
          [](const S& s) {
            return std::array{s.patch_frames, s.patch_rows, s.patch_columns};
          })
      .json<&S::spatial_tokens>("spatial_tokens", "of a frame")
      .json<&S::temporal_tokens>("temporal_tokens", "of a place")
      .json<&S::tokens>("tokens", "of a video");
}

Type fields_of(const Fields<VideoInputs>&) {
  using I = VideoInputs;
  return named_model_and_device<I>()
      .flat<&I::execution, &graph::VideoExecution::shape>("shape", "of a video")
      .of<&I::execution, &graph::VideoExecution::videos>("videos", "generated together")
      .of("steps", "of denoising", [](const I& i) { return i.setup().scenario.steps; })
      .of<&I::execution, &graph::VideoExecution::guidance>("guidance",
                                                           "whether classifier-free, which doubles the batch of a step")
      .of<&I::execution, &graph::VideoExecution::text_tokens>("text_tokens", "of the prompt")
      .row("tokens", "of a video", [](const I& i) { return i.execution().shape.tokens(); })
      .of<&I::setup, &estimate::VideoSetup::weights_name>("weights", "of the transformer")
      .of<&I::execution, &graph::VideoExecution::activations>("activations", "type")
      .json<&I::execution, &graph::VideoExecution::text_activations>("text_encoder", "type the text encoder runs in")
      .of("options", "of the runtime", [](const I& i) { return options_text(i.setup()); })
      .of("runtime", "the runtime profile; null for the speed of light",
          [](const I& i) { return runtime_used(i.setup()); })
      .of("devices", "of the plan", [](const I& i) { return i.setup().devices(); })
      .of<&I::execution, &graph::VideoExecution::plan>("plan", "how the model is spread over them")
      .row("plan", "as text", [](const I& i) { return graph::to_text(i.execution().plan); })
      .of<&I::execution, &graph::VideoExecution::patches>("patches",
                                                          "pieces of the latent that stages work on side by side")
      .json("devices_per_node", "of a node", [](const I& i) { return i.setup().cluster.devices_per_node; });
}

Type fields_of(Fields<VideoMemoryUsed> f) {
  using M = VideoMemoryUsed;
  using E = estimate::VideoEstimate;
  return f.of<&M::estimate, &E::memory, &cost::Memory::weights>("weight_bytes", "the sum of the three below")
      .json<&M::estimate, &E::parts, &cost::VideoMemory::transformer>("transformer_bytes", "its weights")
      .json<&M::estimate, &E::parts, &cost::VideoMemory::text_encoder>("text_encoder_bytes", "its weights")
      .json<&M::estimate, &E::parts, &cost::VideoMemory::autoencoder>("autoencoder_bytes", "its weights")
      .of<&M::estimate, &E::memory, &cost::Memory::kv_cache>("kv_cache_bytes", "kept for patches")
      .of<&M::estimate, &E::memory, &cost::Memory::activation>("activation_bytes", "the largest of the three below")
      .json<&M::estimate, &E::parts, &cost::VideoMemory::text_activation>("text_activation_bytes", "encoding")
      .json<&M::estimate, &E::parts, &cost::VideoMemory::step_activation>("step_activation_bytes", "a step")
      .json<&M::estimate, &E::parts, &cost::VideoMemory::decode_activation>("decode_activation_bytes", "decoding")
      .of<&M::estimate, &E::memory, &cost::Memory::reserve>("reserve_bytes", "what the runtime keeps for itself")
      .of("total_bytes", "the sum", [](const M& m) { return m.estimate->memory.total(); })
      .of<&M::estimate, &E::capacity>("capacity_bytes", "what there is");
}

Type fields_of(Fields<VideoStageHeld> f) {
  using S = VideoStageHeld;
  return f.of<&S::stage, &estimate::VideoStage::first>("first", "unit of the depth")
      .of<&S::stage, &estimate::VideoStage::last>("last", "unit of the depth")
      .of("devices", "of the stage", [](const S& s) { return s.stage->plan.stage(); })
      .of<&S::stage, &estimate::VideoStage::plan>("plan", "of the stage")
      .of<&S::weights>("weight_bytes", "of one of its devices")
      .of<&S::kept>("kv_cache_bytes", "likewise");
}

Type fields_of(const Fields<Video>&) {
  using V = Video;
  using E = estimate::VideoEstimate;
  return with_phases(
      answer_fields<V, VideoInputs>(
          "`generation` of `generation_s`; null without a profile and where it is extrapolated")
          .row<&V::estimate, &E::generation>("generation_s", "the whole generation")
          .of<&V::estimate, &E::step>("step_s", "one denoising step")
          .json<&V::estimate, &E::generation>("generation_s", "the whole generation, the sum of the phases' `total_s`")
          .row<&phase_seconds<0>>("text_encoding_s", "of the generation")
          .row<&phase_seconds<1>>("denoising_s", "of the generation")
          .row<&phase_seconds<2>>("vae_decoding_s", "of the generation")
          .row<&phase_seconds<3>>("other_s", "of the generation")
          .json<&V::estimate, &E::peak>("matrix_peak_flops_per_s", "of products in the activations' type")
          .of<&V::estimate, &E::step_utilisation>(
              "step_utilisation", "matrix products of a step over what its devices could do in that time")
          .json<&V::estimate, &E::generation_utilisation>("generation_utilisation",
                                                          "… of all steps, over the generation")
          .always()
          .spread([](const V& v) { return RunSpent{v.spent()}; })
          .of("cost_per_generation", "all devices for `generation_s`, in `currency`",
              [](const V& v) { return v.spent().cost; })
          .of("joules_per_generation", "an upper bound, as the power", [](const V& v) { return v.spent().joules; })
          .spread([](const V& v) { return PriceUsed{&v.setup->price}; })
          .flat("memory", "of a device of the fullest stage", [](const V& v) { return VideoMemoryUsed{v.estimate}; })
          .of<&V::stages>("stages", "of each pipeline stage")
          .of<&V::estimate, &E::classes>("classes", "a step by what its kernels are for, the longest first"),
      "\"text encoding\", \"denoising step\" (`steps` of them), \"VAE decoding\", and \"other\" where there is any");
}

Video video(const estimate::VideoEstimator& estimator, const estimate::VideoEstimate& estimate) {
  Video v(estimator.setup(), estimate);
  for (std::size_t i = 0; i < v.setup->stages.size(); ++i) {
    const cost::VideoMemory held = estimator.stage_memory(i);
    v.stages.push_back({&v.setup->stages[i], held.weights(), held.kept});
  }
  return v;
}

}  // namespace llmperf::result
