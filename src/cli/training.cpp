#include "cli/training.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/values.h"
#include "estimate/training.h"
#include "report/training_report.h"

namespace llmperf::cli {
namespace {

using estimate::TrainingEstimate;
using estimate::TrainingEstimator;
using estimate::TrainingScenario;
using graph::Recompute;
using graph::TrainingOptions;

Recompute recompute_value(const std::string& text) {
  std::vector<std::string> names;
  for (const Recompute r : graph::kRecomputes) {
    if (text == graph::name(r)) return r;
    names.emplace_back(graph::name(r));
  }
  throw Error::bad_input(fmt::format("--recompute: unknown way {}", quote(text)), name_hint(text, names));
}

TrainingOptions options_of(const TrainingFlags& f, const estimate::Setup& setup) {
  TrainingOptions o;
  o.recompute = recompute_value(f.recompute);
  o.zero = static_cast<int>(int_value("--zero", f.zero, 0, 3));
  o.chunks = int_value("--interleave", f.interleave, 1, estimate::kMaxTokens);
  const double weight_bits = setup.execution.weights.groups.front()[model::Role::o].bits;
  // Frameworks add gradients up in fp32.
  const double kept = setup.profile ? 32 : weight_bits;
  o.gradient_bits = f.gradients.empty() ? kept : bits(model::parse_activation_dtype(f.gradients));
  o.fused_gradients = !f.separate_gradients;
  o.overlapped_sums = !f.exposed_sums;
  const double own = weight_bits == 32 ? 64 : 96;
  o.optimizer_bits = f.optimizer_bits.empty() ? own : double_value("--optimizer-bits", f.optimizer_bits, 0, 1024);
  return o;
}

TrainingScenario scenario_of(const TrainingFlags& f, const graph::Plan& plan) {
  TrainingScenario s;
  s.micro_batch = int_value("--micro-batch", f.micro_batch, 1, estimate::kMaxBatch);
  s.sequence = int_value("--seq", f.sequence, 1, estimate::kMaxTokens);
  s.global_batch = f.global_batch.empty()
                       ? s.micro_batch * plan.data * plan.pipeline
                       : int_value("--global-batch", f.global_batch, 1, estimate::kMaxBatch * estimate::kMaxBatch);
  return s;
}

void check(const model::Decoder& model, const TrainingScenario& s, const graph::Plan& plan, const TrainingOptions& o) {
  std::vector<Diagnostic> broken;
  for (const graph::Problem& problem : estimate::problems(model, s, plan, o)) {
    broken.push_back({.where = {}, .message = problem.message, .hint = problem.hint});
  }
  if (!broken.empty()) throw Error(ErrorKind::bad_input, std::move(broken));
}

// What would make the same step fit: the least of one kind of change, else the least recomputation with all of ZeRO.
std::string fitting_hint(TrainingEstimator& estimator, const TrainingEstimate& e) {
  const model::Decoder& model = *estimator.setup().execution.model;
  const auto fits = [&](const TrainingScenario& s, const TrainingOptions& o) {
    return estimate::legal(model, s, e.plan, o) && estimator.memory(s, e.plan, o).total() <= e.capacity;
  };
  const bool replicated = e.plan.replicas() > 1;
  std::vector<std::string> fitting;
  graph::Plan divided = e.plan;
  divided.sequence_parallel = divided.tensor > 1 && divided.tensor_rows == 0;
  if (divided != e.plan && graph::legal(model, divided) && estimate::legal(model, e.scenario, divided, e.options) &&
      estimator.memory(e.scenario, divided, e.options).total() <= e.capacity) {
    fitting.emplace_back("--megatron-sp");
  }
  for (const Recompute r : graph::kRecomputes) {
    TrainingOptions o = e.options;
    o.recompute = r;
    if (r <= e.options.recompute || !fits(e.scenario, o)) continue;
    fitting.push_back(fmt::format("--recompute {}", graph::name(r)));
    break;
  }
  for (int zero = e.options.zero + 1; replicated && zero <= 3; ++zero) {
    TrainingOptions o = e.options;
    o.zero = zero;
    if (!fits(e.scenario, o)) continue;
    fitting.push_back(fmt::format("--zero {}", zero));
    break;
  }
  for (std::int64_t b = e.scenario.micro_batch - 1; b >= 1; --b) {
    TrainingScenario s = e.scenario;
    s.micro_batch = b;
    if (!fits(s, e.options)) continue;
    fitting.push_back(fmt::format("--micro-batch {}", b));
    break;
  }
  if (!fitting.empty()) return "it fits with " + join(fitting, " or ");
  TrainingScenario smallest = e.scenario;
  smallest.micro_batch = 1;
  for (const Recompute r : graph::kRecomputes) {
    for (int zero = e.options.zero; r >= e.options.recompute && zero <= (replicated ? 3 : e.options.zero); ++zero) {
      TrainingOptions o = e.options;
      o.recompute = r;
      o.zero = zero;
      if (!fits(smallest, o)) continue;
      return fmt::format("it fits with --micro-batch 1 --recompute {} --zero {}", graph::name(r), zero);
    }
  }
  return "neither recomputation, ZeRO nor a micro-batch of 1 makes it fit: use more devices (--tp, --pp) or larger "
         "ones";
}

[[noreturn]] void throw_infeasible(TrainingEstimator& estimator, const TrainingEstimate& e) {
  Diagnostic d;
  const estimate::TrainingMemory& m = e.memory;
  d.message = fmt::format(
      "training {} does not fit on {}: a device needs {} ({} of it weights, gradients and optimiser, {} activations), "
      "has {}",
      estimator.setup().execution.model->name, estimator.setup().device->name, format_bytes_binary(m.total()),
      format_bytes_binary(m.weights + m.gradients + m.optimizer), format_bytes_binary(m.activations),
      format_bytes_binary(e.capacity));
  d.hint = fitting_hint(estimator, e);
  throw Error(ErrorKind::infeasible, {d});
}

}  // namespace

void add_training_flags(CLI::App& command, TrainingFlags& f) {
  CLI::Option* training = command.add_flag("--training", f.training, "one training step instead of a generation");
  const auto add = [&](const char* flag, std::string& value, const char* meaning, const char* type) {
    command.add_option(flag, value, meaning)->type_name(type)->needs(training);
  };
  add("--global-batch", f.global_batch, "sequences of a step, of all replicas [a micro-batch per replica and stage]",
      "N");
  add("--micro-batch", f.micro_batch, "sequences that a replica computes at once [1]", "N");
  add("--seq", f.sequence, "tokens of a sequence [2048]", "N");
  add("--recompute", f.recompute, "activations computed again: none, selective (attention's scores), full [none]",
      "WHAT");
  add("--zero", f.zero, "divided over replicas: 1 optimiser, 2 gradients too, 3 weights too [0]", "0..3");
  add("--interleave", f.interleave, "runs of layers on a pipeline stage [1]", "N");
  add("--gradients", f.gradients, "type of accumulated gradients: fp32, bf16, fp16 [the weights'; fp32 with --runtime]",
      "DTYPE");
  add("--optimizer-bits", f.optimizer_bits, "of state per parameter [96: fp32 copy and two moments]", "N");
  command
      .add_flag("--separate-gradients", f.separate_gradients,
                "weight gradients are added up by a kernel of their own instead of the matrix product")
      ->needs(training);
  command
      .add_flag("--exposed-sums", f.exposed_sums,
                "exchanges of tensor parallelism do not run beside products of the backward pass")
      ->needs(training);
  for (const char* flag : {"--execution", "--batch", "--prompt", "--gen", "--kv", "--gpu-layers", "--host", "--ubatch",
                           "--cache-type-k", "--cache-type-v", "--gguf-era", "--tensor-split", "--pipeline-batches"}) {
    if (CLI::Option* option = command.get_option_no_throw(flag)) option->excludes(training);
  }
}

std::unique_ptr<TrainingRequest> load_training_request(const RequestFlags& flags, const TrainingFlags& training,
                                                       Sources& sources) {
  check_workload_flags(flags, hardware::Workload::language);
  auto loaded = std::make_unique<TrainingRequest>();
  Request& request = loaded->request;
  request.file = sources.model(flags.model);
  request.device = sources.device(flags.hardware);
  request.host = sources.host(flags.host);
  if (!flags.runtime.empty()) {
    request.profile = load_profile(flags, request.device, false, hardware::Workload::language, &sources);
  }
  loaded->choices = choices_of(flags, request);
  loaded->estimator =
      std::make_unique<TrainingEstimator>(estimate::make_setup(request.model(), request.device, loaded->choices));
  loaded->options = options_of(training, loaded->estimator->setup());
  loaded->scenario = scenario_of(training, loaded->choices.plan);
  check(request.model(), loaded->scenario, loaded->choices.plan, loaded->options);
  return loaded;
}

int training_action(const RequestFlags& flags, const TrainingFlags& training, report::Detail detail,
                    const OutputFlags& output_flags) {
  Sources sources;
  const auto request = load_training_request(flags, training, sources);
  Output output(output_flags);
  TrainingEstimate e;
  request->run(e);
  output.write(report::training_report(*request->estimator, e, detail));
  if (!e.fits) throw_infeasible(*request->estimator, e);
  return kExitDone;
}

}  // namespace llmperf::cli
