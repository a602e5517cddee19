#include "result/training.h"

#include "hardware/runtime_execution.h"

namespace llmperf::result {
namespace {

struct TrainingInputs {
  const Training* of;
  const estimate::Setup& setup() const { return *of->setup; }
  const graph::Execution& execution() const { return of->setup->execution; }
  const estimate::TrainingScenario& scenario() const { return of->estimate->scenario; }
  const graph::TrainingOptions& options() const { return of->estimate->options; }
};
struct TrainingMemoryUsed {
  const estimate::TrainingEstimate* of;
};
struct LayerRun {
  std::int64_t first_layer = 0;
  std::int64_t layers = 0;
};
struct TrainingStage {
  std::int64_t layers = 0;
  std::vector<LayerRun> runs;
};
std::vector<TrainingStage> stages_of(const Training& t) {
  const graph::StageSplit& split = t.estimate->split;
  std::vector<TrainingStage> stages;
  for (std::int64_t stage = 0; stage < split.stages; ++stage) {
    stages.push_back({split.layers(stage), {}});
    for (std::int64_t run = stage; run < split.runs(); run += split.stages) {
      stages.back().runs.push_back({split.first[static_cast<std::size_t>(run)], split.layers_of_run(run)});
    }
  }
  return stages;
}

}  // namespace

std::vector<std::string> Training::beyond() const { return training_extrapolations(*setup, *estimate); }
Bands Training::bands() const {
  return {{"step", estimate->fits ? band_of(training_band(*setup, *estimate), estimate->time) : std::nullopt}};
}

estimate::Spent Training::spent() const {
  if (!estimate->fits) return {};
  return estimate::spent(setup->price, setup->device->power_w, d(estimate->plan.devices()), estimate->time);
}

namespace {

// Of a step, over its tokens.
std::optional<double> per_token(const Training& t, std::optional<double> of_step) {
  const double tokens = t.estimate->tokens_per_second * t.estimate->time.value;
  return of_step ? std::optional(*of_step / tokens) : std::nullopt;
}

}  // namespace

Type fields_of(const Fields<TrainingInputs>&) {
  using I = TrainingInputs;
  return named_model_and_device<I>()
      .row("plan", "as text", [](const I& i) { return graph::to_text(i.of->estimate->plan); })
      .row("devices", "of the plan", [](const I& i) { return i.of->estimate->plan.devices(); })
      .of<&I::scenario, &estimate::TrainingScenario::global_batch>("global_batch", "sequences of a step")
      .of<&I::scenario, &estimate::TrainingScenario::micro_batch>("micro_batch", "sequences of a micro-batch")
      .of<&I::scenario, &estimate::TrainingScenario::sequence>("sequence_tokens", "of each sequence")
      .of("weights", "type", [](const I& i) { return i.execution().weights.name; })
      .of("activations", "type", [](const I& i) { return i.execution().activations; })
      .of<&I::options, &graph::TrainingOptions::gradient_bits>("gradient_bits", "of a parameter's gradient")
      .of<&I::options, &graph::TrainingOptions::optimizer_bits>("optimizer_bits", "of a parameter's state")
      .of<&I::options, &graph::TrainingOptions::recompute>("recompute", "\"none\", \"selective\" or \"full\"")
      .of<&I::options, &graph::TrainingOptions::zero>("zero", "stage of ZeRO")
      .of<&I::options, &graph::TrainingOptions::chunks>("interleave", "runs of layers per stage")
      .of("options", "of the runtime",
          [](const I& i) { return hardware::format_runtime_options(i.execution().runtime); })
      .json("devices", "of the plan", [](const I& i) { return i.of->estimate->plan.devices(); })
      .of("plan", "how the model is spread over them", [](const I& i) { return i.of->estimate->plan; })
      .json("devices_per_node", "of a node", [](const I& i) { return i.setup().cluster.devices_per_node; })
      .json("runtime", "the runtime profile", [](const I& i) { return i.setup().profile->name; })
      .only_when([](const I& i) { return i.setup().profile != nullptr; })
      .json("separate_gradients", "true", [](const I&) { return true; })
      .only_when([](const I& i) { return !i.options().fused_gradients; })
      .json("exposed_sums", "true", [](const I&) { return true; })
      .only_when([](const I& i) { return !i.options().overlapped_sums; });
}

Type fields_of(Fields<LayerRun> f) {
  return f.of<&LayerRun::first_layer>("first_layer", "from 0").of<&LayerRun::layers>("layers", "how many");
}

Type fields_of(Fields<TrainingStage> f) {
  return f.of<&TrainingStage::layers>("layers", "how many")
      .of<&TrainingStage::runs>("runs", "of layers, several with `--interleave`");
}

Type fields_of(Fields<TrainingMemoryUsed> f) {
  using M = TrainingMemoryUsed;
  using E = estimate::TrainingEstimate;
  using Held = cost::Memory;
  return f.json("stage", "of the device", [](const M& m) { return m.of->fullest_stage + 1; })
      .of<&M::of, &E::memory, &Held::weights>("weight_bytes",
                                              "with `zero` 3 in a pipeline the share and what is gathered")
      .of<&M::of, &E::memory, &Held::gradients>("gradient_bytes", "gradients")
      .of<&M::of, &E::memory, &Held::optimizer>("optimizer_bytes", "state of the optimiser")
      .of<&M::of, &E::memory, &Held::activation>("activation_bytes", "of all micro-batches in flight")
      .of<&M::of, &E::layer_activations>("layer_activation_bytes", "part of it: of one micro-batch and layer")
      .of<&M::of, &E::memory, &Held::workspace>("workspace_bytes", "what one layer needs beside them")
      .of<&M::of, &E::memory, &Held::reserve>("reserve_bytes", "what the runtime keeps for itself")
      .of<&M::of, &E::memory, &Held::total>("total_bytes", "the sum")
      .of<&M::of, &E::capacity>("capacity_bytes", "what there is");
}

Type fields_of(const Fields<Training>&) {
  using T = Training;
  using E = estimate::TrainingEstimate;
  return with_phases(
      answer_fields<T, TrainingInputs>(
          "`step` of `step_s`; null without a profile and outside of the published runs that it was compared with")
          .of<&T::estimate, &E::time>("step_s", "`compute_s` + `bubble_s` + `gradient_exposed_s` + `optimizer_s`")
          .of<&T::estimate, &E::compute>(
              "compute_s",
              "both passes of all micro-batches on the busiest stage, what shows of its exchanges included")
          .of<&T::estimate, &E::bubble>("bubble_s", "while the pipeline fills and drains")
          .of<&T::estimate, &E::gradient_exposed>("gradient_exposed_s",
                                                  "what shows of the exchanges of gradients and weights")
          .of<&T::estimate, &E::optimizer>("optimizer_s", "the update")
          .of<&T::estimate, &E::overlapped>("overlapped_s", "exchanges beside other ops; not part of `step_s`")
          .of<&T::estimate, &E::tokens_per_second>("tokens_per_second", "of the global batch over `step_s`")
          .of("tokens_per_second_per_device", "… over the devices",
              [](const T& t) { return t.estimate->tokens_per_second / d(t.estimate->plan.devices()); })
          .of<&T::estimate, &E::mfu>("mfu", "`model_flops` over what all devices could do in `step_s`")
          .of<&T::estimate, &E::hfu>("hfu", "… `hardware_flops`")
          .always()
          .spread([](const T& t) { return RunSpent{t.spent()}; })
          .of("cost_per_step", "all devices for `step_s`, in `currency`", [](const T& t) { return t.spent().cost; })
          .of("cost_per_million_tokens", "of the global batch",
              [](const T& t) -> std::optional<double> {
                const std::optional<double> one = per_token(t, t.spent().cost);
                return one ? std::optional(1e6 * *one) : std::nullopt;
              })
          .of("joules_per_token", "an upper bound, as the power",
              [](const T& t) { return per_token(t, t.spent().joules); })
          .spread([](const T& t) { return PriceUsed{&t.setup->price}; })
          .json<&T::estimate, &E::model_flops>("model_flops", "matrix products of all devices: three forward passes")
          .json<&T::estimate, &E::hardware_flops>("hardware_flops",
                                                  "… with what is computed again or on several devices")
          .json<&T::estimate, &E::micro_batches>("micro_batches", "of one replica")
          .json("busiest_stage", "the stage that `phases` is of, from 1",
                [](const T& t) { return t.estimate->busiest_stage + 1; })
          .of<&stages_of>("stages", "of each pipeline stage")
          .flat("memory", "of the fullest device", [](const T& t) { return TrainingMemoryUsed{t.estimate}; }),
      "\"forward\" and \"backward\" of one micro-batch, \"update\" of a step; op values add up to theirs");
}

}  // namespace llmperf::result
