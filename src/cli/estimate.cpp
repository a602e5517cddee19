#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/request.h"
#include "cli/training.h"
#include "cli/values.h"
#include "cli/video.h"
#include "estimate/context_curve.h"
#include "estimate/gguf_study.h"
#include "report/estimate_report.h"

namespace llmperf::cli {
namespace {

struct Flags {
  RequestFlags request;
  TrainingFlags training;
  std::string detail = "summary";
  OutputFlags output;
};

// The smallest tensor axis over which the same request fits; empty when none does.
std::string tensor_hint(const Request& request, const RequestFlags& flags) {
  for (const std::int64_t factor : {2, 4, 8}) {
    estimate::Choices choices = choices_of(flags, request);
    choices.plan.tensor *= factor;
    if (!graph::legal(request.model(), choices.plan)) continue;
    const estimate::Estimator other(estimate::make_setup(request.model(), request.device, choices));
    if (!other.fits(request.scenario)) continue;
    return fmt::format("; on {} devices with --tp {} (needs {} on each)", choices.plan.devices(), choices.plan.tensor,
                       format_bytes_binary(other.memory(request.scenario).total()));
  }
  return {};
}

// The fewest devices that hold the layers of the same GGUF model; empty when there is no such number up to 8.
std::string layer_split_hint(const Request& request, const RequestFlags& flags) {
  estimate::Choices choices = choices_of(flags, request);
  if (choices.plan.devices() != choices.plan.pipeline) return {};
  choices.gpu_layers.reset();
  const bool uneven = !choices.tensor_split.empty();
  choices.tensor_split.clear();
  for (choices.plan.pipeline += uneven ? 0 : 1; choices.plan.pipeline <= 8; ++choices.plan.pipeline) {
    if (!graph::legal(request.model(), choices.plan)) return {};
    const estimate::Estimator other(estimate::make_setup(request.model(), request.device, choices));
    if (!other.fits(request.scenario)) continue;
    return fmt::format("{} devices with --pp {}{} (needs {} on the fullest)", choices.plan.pipeline,
                       choices.plan.pipeline, uneven ? " without --tensor-split" : "",
                       format_bytes_binary(other.memory(request.scenario).total()));
  }
  return {};
}

// What would make the same request fit on the same device: the built-in schemes that do, else the bits per weight that
// would.
std::string fitting_hint(const Request& request, const RequestFlags& flags, const estimate::Estimate& e) {
  if (request.estimator->stages().size() > 1 && request.estimator->setup().execution.weights.gguf) {
    const std::string devices = layer_split_hint(request, flags);
    return devices.empty() ? "no split over up to 8 devices fits: use a narrower type or a shorter context"
                           : "it fits on " + devices;
  }
  if (request.estimator->setup().host) {
    const std::string devices = layer_split_hint(request, flags);
    const auto layers =
        estimate::most_layers(request.model(), request.device, choices_of(flags, request), request.scenario);
    return (layers ? fmt::format("it fits with --gpu-layers {}, the rest on {}", *layers, request.host.name)
                   : "no split with the host fits: use a narrower type, a larger host or a shorter context") +
           (devices.empty() ? "" : "; or on " + devices);
  }
  std::vector<std::string> fitting;
  for (const char* scheme : {"fp8", "int8", "w4a16"}) {
    estimate::Choices choices = choices_of(flags, request);
    choices.weights = scheme;
    const estimate::Estimator other(estimate::make_setup(request.model(), request.device, choices));
    if (other.fits(request.scenario)) {
      const Bytes total = other.memory(request.scenario).total();
      fitting.push_back(fmt::format("--weights {} (needs {})", scheme, format_bytes_binary(total)));
    }
  }
  if (!fitting.empty()) return "it fits with " + join(fitting, " or ");
  const Bytes room = e.capacity - (e.memory.total() - e.memory.weights);
  estimate::Choices plain = choices_of(flags, request);
  plain.weights = "bf16";
  const estimate::Estimator unquantised(estimate::make_setup(request.model(), request.device, plain));
  const double parameters = unquantised.memory(request.scenario).weights.value / 2;  // of the fullest device
  const double bits = std::floor(room.value * 8 / parameters * 10) / 10;
  if (bits < 1) return "no weight scheme fits: use a larger device, a smaller batch or a shorter context";
  return fmt::format("fp8, int8 and w4a16 do not fit either; it fits with --weights {:.1f} (bits per weight)", bits);
}

[[noreturn]] void throw_infeasible(const Request& request, const RequestFlags& flags, const estimate::Estimate& e) {
  Diagnostic d;
  const auto message = [&](const std::string& place, const cost::Memory& needed, Bytes capacity) {
    return fmt::format(
        "{} at batch {} does not fit on {}: needs {} ({} of it weights), has {}; largest batch that fits is {}",
        request.model().name, e.scenario.batch, place, format_bytes_binary(needed.total()),
        format_bytes_binary(needed.weights), format_bytes_binary(capacity), e.largest_batch);
  };
  d.message = e.memory.total() > e.capacity ? message(request.device.name, e.memory, e.capacity)
                                            : message("the host, " + request.host.name, e.host_memory, e.host_capacity);
  d.hint = fitting_hint(request, flags, e);
  if (!request.estimator->setup().execution.weights.gguf) d.hint += tensor_hint(request, flags);
  if (e.largest_batch > e.scenario.batch) {  // of a batch that fills the pipeline
    const graph::Plan& plan = request.estimator->setup().execution.plan;
    d.hint =
        fmt::format("this batch goes through {} stages in {} parts; multiples of {} in smaller ones; {}", plan.pipeline,
                    request.estimator->micro_batches(e.scenario), plan.pipeline * plan.data, d.hint);
  }
  throw Error(ErrorKind::infeasible, {d});
}

int estimate_action(const Flags& flags) {
  const report::Detail detail = detail_value(flags.detail);
  if (model::is_video_dit(flags.request.model)) return video_action(flags.request, detail, flags.output);
  if (flags.training.training) return training_action(flags.request, flags.training, detail, flags.output);
  const auto request = load_request(flags.request);
  Output output(flags.output);
  const estimate::Estimate e = request->estimator->run(request->scenario);
  std::vector<estimate::ContextPoint> curve;
  if (output.wants(report::Format::json)) curve = estimate::context_curve(*request->estimator, e);
  output.write(report::estimate_report(*request->estimator, e, detail, curve));
  if (!e.fits) throw_infeasible(*request, flags.request, e);
  return kExitDone;
}

}  // namespace

void add_estimate(CLI::App& root, Action& action) {
  CLI::App* command =
      root.add_subcommand("estimate", "latency, throughput and memory of a model; with --training, of a training step");
  auto flags = std::make_shared<Flags>();
  add_request_flags(*command, flags->request);
  add_training_flags(*command, flags->training);
  command->add_option("--detail", flags->detail, "summary or ops (every op of each phase)")
      ->type_name("LEVEL")
      ->capture_default_str();
  add_output_flags(*command, flags->output, Traced::yes);
  command->callback([flags, &action] { action = [flags] { return estimate_action(*flags); }; });
}

}  // namespace llmperf::cli
