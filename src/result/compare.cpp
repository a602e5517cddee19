#include "result/compare.h"

#include "base/text.h"

namespace llmperf::result {
namespace {

template <class R>
Fields<R> model_device_and_runtime(Fields<R> f) {
  return model_and_device(std::move(f)).of("runtime", "the profile's name; null: the speed of light", [](const R& r) {
    return r.setup->profile ? std::optional(r.setup->profile->name) : std::nullopt;
  });
}

}  // namespace

Type compared_inputs(Fields<TextComparison> f) {
  using I = TextComparison;
  using S = estimate::Scenario;
  return model_device_and_runtime(std::move(f))
      .of<&I::execution>("execution", "as asked for; null: the runtime's own")
      .when([](const I& i) { return !i.execution.empty(); })
      .of<&I::scenario, &S::batch>("batch", "requests that are prefilled together")
      .of<&I::scenario, &S::prompt>("prompt_tokens", "of each request")
      .of<&I::scenario, &S::generate>("generate_tokens", "of each request")
      .of("weights", "type", [](const I& i) { return i.setup->execution.weights.name; })
      .of("kv", "type", [](const I& i) { return i.setup->execution.kv.name(); })
      .of<&I::setup, &estimate::Setup::execution, &graph::Execution::activations>("activations", "type")
      .of("options", "of the first set", [](const I& i) { return i.comparison->steps.front().options; })
      .of("with", "of the last", [](const I& i) { return i.comparison->steps.back().options; })
      .of("devices", "of the plan", [](const I& i) { return i.setup->execution.plan.devices(); })
      .of<&I::setup, &estimate::Setup::execution, &graph::Execution::plan>("plan", "how the model is spread over them")
      .of("devices_per_node", "of a node", [](const I& i) { return i.setup->cluster.devices_per_node; });
}

Type compared_video_inputs(Fields<VideoComparison> f) {
  using I = VideoComparison;
  using V = estimate::VideoSetup;
  using E = graph::VideoExecution;
  return model_device_and_runtime(std::move(f))
      .of("height", "pixels", [](const I& i) { return i.setup->execution.shape.size.height; })
      .of("width", "pixels", [](const I& i) { return i.setup->execution.shape.size.width; })
      .of("frames", "of a video", [](const I& i) { return i.setup->execution.shape.frames; })
      .of<&I::setup, &V::execution, &E::videos>("videos", "generated together")
      .of<&I::setup, &V::scenario, &estimate::VideoScenario::steps>("steps", "of denoising")
      .of<&I::setup, &V::execution, &E::guidance>("guidance", "whether classifier-free")
      .of<&I::setup, &V::execution, &E::text_tokens>("text_tokens", "of the prompt")
      .of<&I::setup, &V::weights_name>("weights", "of the transformer")
      .of<&I::setup, &V::execution, &E::activations>("activations", "type")
      .of("options", "of the first set", [](const I& i) { return i.comparison->steps.front().options; })
      .of("with", "of the last", [](const I& i) { return i.comparison->steps.back().options; })
      .of<&I::setup, &V::devices>("devices", "of the plan")
      .of<&I::setup, &V::execution, &E::plan>("plan", "how the model is spread over them")
      .of("devices_per_node", "of a node", [](const I& i) { return i.setup->cluster.devices_per_node; });
}

// How steps are launched.
Type dispatches(Fields<TextCompareStep> f) {
  using T = TextCompareStep;
  return f.of("prefill", "the prefill", [](const T& t) { return *t.dispatch; })
      .of("decode", "a decode step", [](const T& t) { return *t.decode_dispatch; });
}

Type fields_of(Fields<estimate::OpSide> f) {
  using S = estimate::OpSide;
  return f.of<&S::time>("time_s", "what they add to the step")
      .of<&S::bytes>("bytes", "through memory")
      .of<&S::network>("network_bytes", "sent")
      .of<&S::launches>("launches", "kernels on the device")
      .named("side");
}

Type fields_of(Fields<estimate::ClassDifference> f) {
  using C = estimate::ClassDifference;
  return f.of<&C::name>("name", "what kernels are for")
      .of<&C::before>("before", "in the first set")
      .of<&C::after>("after", "in the last")
      .of<&C::gain>("gain_s", "time before less time after")
      .named("class difference");
}

Type fields_of(Fields<estimate::OpDifference> f) {
  using O = estimate::OpDifference;
  using S = estimate::OpSide;
  return f.of<&O::name>("name", "of the ops, all executions in a step together")
      .of<&O::place>("place", "where they run")
      .of("runs", "\"both\", or the one set that has them: \"before\" or \"after\"",
          [](const O& o) { return !o.after.present   ? "before"
                                  : o.before.present ? "both"
                                                     : "after"; })
      .of<&O::before, &S::time>("time_before_s: before", "what they add to the step")
      .of<&O::after, &S::time>("time_after_s: after", "likewise")
      .of<&O::gain>("gain_s", "the difference")
      .of<&O::before, &S::bytes>("bytes_before", "through memory")
      .of<&O::after, &S::bytes>("bytes_after", "likewise")
      .of<&O::before, &S::network>("network_bytes_before: bytes sent before", "sent")
      .of<&O::after, &S::network>("network_bytes_after: bytes sent after", "likewise")
      .of<&O::before, &S::launches>("launches_before", "kernels on the device")
      .of<&O::after, &S::launches>("launches_after", "likewise");
}

Type fields_of(Fields<estimate::PhaseDifference> f) {
  using P = estimate::PhaseDifference;
  using S = estimate::OpSide;
  return f.of<&P::name>("name", "of the phase")
      .of<&P::before, &S::time>("time_before_s", "of one step")
      .of<&P::after, &S::time>("time_after_s", "likewise")
      .of<&P::before, &S::launches>("launches_before", "kernels on the device")
      .of<&P::after, &S::launches>("launches_after", "likewise")
      .of<&P::ops>("ops", "the largest gain first; gains add up to that of the phase")
      .named("phase difference");
}

namespace {

template <class T>
Fields<T> option_fields() {
  return Fields<T>()
      .template of<&T::option>("option", "that is switched on, or off with \"no_\"; null: the first set")
      .when([](const T& t) { return !t.option.empty(); })
      .template of<&T::switches>("switches", "of the runtime that it turns")
      .row("switches", "of the runtime that it turns", [](const T& t) { return join(t.switches, "+"); })
      .template of<&T::options>("options", "all that are on");
}

// The two times of a step and what they gain.
template <class T>
Fields<T> with_times(Fields<T> fields, const char* const (&keys)[4], const char* const (&docs)[2]) {
  return std::move(fields)
      .template of<&T::fits>("fits", "when false, times are null")
      .template of<&T::memory>("memory_bytes", "needed")
      .of(keys[0], docs[0], [](const T& t) { return t.times[0].time; })
      .of(keys[1], docs[1], [](const T& t) { return t.times[1].time; })
      .of(keys[2], "against the last step before that fits", [](const T& t) { return t.times[0].gain; })
      .of(keys[3], "likewise", [](const T& t) { return t.times[1].gain; });
}

}  // namespace

Type fields_of(const Fields<TextCompareStep>&) {
  using T = TextCompareStep;
  return with_times(option_fields<T>()
                        .where([](const T& t) { return t.dispatch.has_value(); })
                        .group<&dispatches>("execution", "how steps are launched; null without a profile")
                        .row<&T::dispatch>("prefill_execution", "how it is launched")
                        .row<&T::decode_dispatch>("decode_execution", "how it is launched")
                        .always(),
                    {"ttft_s", "tpot_s", "ttft_gain_s: gain of TTFT", "tpot_gain_s: gain of TPOT"},
                    {"the prefill", "the mean decode step; null with one generated token"})
      .of<&T::phases>("phases", "against that step");
}

Type fields_of(const Fields<VideoCompareStep>&) {
  using S = VideoCompareStep;
  return with_times(
             option_fields<S>(),
             {"step_s", "generation_s", "step_gain_s: gain of a step", "generation_gain_s: gain of the generation"},
             {"a denoising step", "the generation"})
      .of<&S::step_utilisation>("step_utilisation", "of the matrix peak")
      .when([](const S& s) { return s.fits; })
      .of<&S::classes>("classes", "of a step, against that step, the largest gain first");
}

Type fields_of(Fields<TextComparison> f) {
  using C = TextComparison;
  using T = estimate::Comparison<estimate::Setup>;
  return f.of("label", "the profile both sets run under", [](const C& c) { return profile_label(*c.setup); })
      .group<&compared_inputs>("inputs", "the request")
      .of<&C::comparison, &T::steps>("steps", "the first set, then one option after the other")
      .of<&C::comparison, &T::phases>("phases", "of the whole difference; none unless both fit")
      .of<&C::setup, &estimate::Setup::notes>("notes", "substitutions, as text");
}

Type fields_of(Fields<VideoComparison> f) {
  using C = VideoComparison;
  using V = estimate::Comparison<estimate::VideoSetup>;
  return f.of("label", "the profile both sets run under", [](const C& c) { return profile_label(*c.setup); })
      .group<&compared_video_inputs>("inputs", "the request")
      .of<&C::comparison, &V::steps>("steps", "the first set, then one option after the other")
      .of<&C::comparison, &V::classes>("classes", "of the whole difference; none unless both fit")
      .of<&C::comparison, &V::phases>("phases", "likewise")
      .of<&C::setup, &estimate::VideoSetup::notes>("notes", "substitutions, as text");
}

}  // namespace llmperf::result
