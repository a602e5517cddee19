// `llmperf parallel`: every way to spread a model over a number of devices, side by side.
#include "result/parallel.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "report/reports.h"
#include "request/resolve.h"

namespace llmperf::cli {
namespace {

constexpr Bounds kPlanDevices{1, 65536};
constexpr Bounds kShownPlans{1, 1'000'000};
constexpr std::int64_t kMostChunks = 4;  // runs of layers on a stage that are tried

struct ParallelFlags {
  request::Request request;  // model, hardware, batch, schemes and options of it
  std::int64_t devices = 0;
  std::vector<graph::Recompute> recompute = {graph::Recompute::none};  // those that are tried
  std::optional<std::int64_t> top;
  bool symbolic = false;
};

estimate::SearchSpace space_of(const ParallelFlags& f) {
  estimate::SearchSpace space;
  space.devices = f.devices;
  space.batch = f.request.batch.value_or(1);
  space.sequence = f.request.seq.value_or(2048);
  space.training = f.request.training;
  space.micro_batch = f.request.micro_batch.value_or(1);
  space.shard_embedding = request::sharded_embedding(f.request);
  space.options.clear();
  for (const graph::Recompute recompute : f.recompute) {
    for (int zero = 0; zero <= 3; ++zero) {
      for (std::int64_t chunks = 1; chunks <= kMostChunks; ++chunks) {
        space.options.push_back({.recompute = recompute, .zero = zero, .chunks = chunks});
      }
    }
  }
  return space;
}

std::string infeasible_hint(const estimate::SearchSpace& space, const estimate::PlanCost& smallest, Bytes capacity) {
  const cost::Memory& m = smallest.memory;
  const Bytes parameters = m.weights + m.gradients + m.optimizer;
  if (parameters > capacity) {
    return fmt::format("more devices{}: its {} alone take {}", space.training ? "" : " or a narrower type",
                       space.training ? "weights, gradients and optimiser" : "weights",
                       format_bytes_binary(parameters));
  }
  return space.training ? "more devices, --recompute full or a smaller --micro-batch"
                        : "more devices, a narrower type or a smaller batch";
}

// What says nothing to the formulas of a layer, or on a single device.
void check_effects(const ParallelFlags& f, const Context& context) {
  if (f.symbolic) {
    context.refuse({"--kv", "--weights", "--reserve", "--embedding", "--training", "--phase", "--top"},
                   "no effect beside --symbolic");
  }
  if (f.request.training) context.refuse({"--phase"}, "a training step has none");
  if (f.devices == 1) context.refuse({"--embedding", "--devices-per-node"}, "there is one device");
  for (const char* option : {"static_kv", "last_token_logits"}) {
    if (f.request.options.value_or("").find(option) == std::string::npos) continue;
    throw Error::bad_input(fmt::format("--options: {} is of generating text, and has no effect on a plan", option),
                           "leave it out");
  }
}

Answer parallel_answer(const ParallelFlags& f, const Context& context) {
  check_effects(f, context);
  estimate::SearchSpace space = space_of(f);
  const model::ModelFile file = model::load_model(*f.request.model, f.request.assume.value_or(""));
  if (file.decoder.encoder) context.refuse({"--kv", "--phase"}, "an encoder caches nothing and decodes nothing");
  const hardware::Device device = hardware::load_device(*f.request.hw);
  request::Sources sources;
  const auto profile = space.training && f.request.runtime
                           ? request::choose_training_profile(f.request, *f.request.hw, device, sources)
                           : std::nullopt;
  if (f.request.runtime && !space.training) {
    throw Error::bad_input("--runtime ranks training steps; plans that serve are ranked by llmperf capacity",
                           "leave it out, or give --training");
  }
  constexpr double kFrameworks = 32;  // add gradients up in fp32
  if (profile) {
    for (graph::TrainingOptions& options : space.options) options.gradient_bits = kFrameworks;
  }
  estimate::Choices choices = request::choose_schemes(f.request, device, profile ? &*profile : nullptr);
  if (!choices.weights) choices.weights = file.weights;
  choices.tiles = mapper::TileModel::roofline;  // ranks thousands of plans
  choices.serving = request::serving_of(f.request);
  if (file.stored) choices.stored = &file.stored->layout;
  const estimate::Setup setup = estimate::make_setup(file.decoder, device, choices);
  if (setup.execution.weights.gguf) {
    throw Error::bad_input(
        fmt::format("plans do not go with GGUF formats ({})", setup.execution.weights.name),
        "--weights bf16, fp8, int8, w8a8 or w4a16; `estimate --pp N` splits the layers of a GGUF model");
  }
  // Flash attention keeps no scores that could be computed again: selective would list every plan of none twice.
  if (f.recompute.size() > 1 && setup.execution.runtime.flash_attention) {
    std::erase_if(space.options, [](const auto& o) { return o.recompute == graph::Recompute::selective; });
  }
  if (f.symbolic) {
    return {report::strategy_report({&setup, space.batch, space.sequence, space.devices,
                                     strategy_formulas(setup, space.batch, space.sequence, space.devices)})};
  }
  result::ParallelStudy study{.setup = &setup, .space = space, .plans = {}, .communications = {}};
  const estimate::Enumeration enumeration = estimate::enumerate_plans(file.decoder, space);
  if (enumeration.legal.empty()) {
    throw Error::bad_input(fmt::format("no plan over {} devices divides {} and a batch of {} x {} tokens",
                                       space.devices, file.decoder.name, space.batch, space.sequence),
                           "a number of devices, a batch and a length with common divisors: powers of two, say");
  }
  estimate::PlanSearch search(setup, space);
  study.plans = search.rank(enumeration.legal);
  study.tried = enumeration.tried;
  study.legal = static_cast<std::int64_t>(study.plans.size());
  study.fitting = std::count_if(study.plans.begin(), study.plans.end(), [](const auto& plan) { return plan.fits; });
  if (f.top && *f.top < study.legal) study.plans.resize(static_cast<std::size_t>(*f.top));
  for (const estimate::PlanCost& plan : study.plans) {
    study.communications.push_back(search.communication(plan.candidate));
  }
  Answer answer{report::parallel_report(study)};
  if (study.fitting > 0) return answer;
  const estimate::PlanCost& smallest = study.plans.front();
  const Bytes capacity = *device.dram().capacity;
  answer.error =
      Error::infeasible(fmt::format("none of the {} plans fits: the smallest, {}, needs {} on a device that has {}",
                                    study.legal, graph::to_text(smallest.candidate.plan),
                                    format_bytes_binary(smallest.memory.total()), format_bytes_binary(capacity)),
                        infeasible_hint(space, smallest, capacity));
  return answer;
}

}  // namespace

void describe_parallel(Command& command) {
  ParallelFlags& flags = answers(command, parallel_answer);
  request::Request& r = flags.request;
  command.add("model", r).required();
  command.add("hw", r).required();
  command.add("--devices", flags.devices, kPlanDevices, "N", "devices in all").required();
  command.add("batch", r).about = "sequences of a step, all devices together";
  command.add("seq", r).old_names.emplace_back("--prompt");
  auto& phase = command.add("phase", r);
  phase.about = "what a step is: a prefill, or with decode a token of every sequence, --seq of it in the cache";
  phase.otherwise = "prefill";
  command.add("training", r).about = "a training step rather than a prefill";
  command.add("micro-batch", r).with("--training");
  auto& runtime = command.add("runtime", r).with("--training");
  runtime.about = "stack whose predicted steps rank the plans: megatron, pytorch-fsdp@2025 [the speed of light]";
  Meanings<std::vector<graph::Recompute>> recompute;
  constexpr std::array kTried = {graph::Recompute::none, graph::Recompute::selective, graph::Recompute::full};
  for (const graph::Recompute how : kTried) recompute.push_back({std::string(name(how)), {how}});
  recompute.push_back({"all", {kTried.begin(), kTried.end()}});
  command
      .add("--recompute", flags.recompute, recompute, "WHAT",
           "what is computed again: none, selective, full, or all of these")
      .with("--training");
  command.add("--symbolic", flags.symbolic, "formulas of each strategy instead, for one layer of a dense model");
  command.add("--top", flags.top, kShownPlans, "N", "plans to show [all]");
  for (const char* field : {"weights", "kv", "activations", "options", "reserve", "embedding", "devices-per-node"}) {
    command.add(field, r);
  }
}

}  // namespace llmperf::cli
