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
#include "request/training_options.h"

namespace llmperf::cli {
namespace {

constexpr Bounds kPlanDevices{1, 65536};
constexpr Bounds kShownPlans{1, 1'000'000};
constexpr std::int64_t kMostChunks = 4;  // runs of layers on a stage that are tried

struct ParallelFlags {
  request::Request request;  // model, hardware, batch, schemes and options of it
  std::int64_t devices = 0;
  // Those that are tried: without a word of them one, under a runtime all.
  std::optional<std::vector<graph::Recompute>> recompute;
  std::optional<std::vector<graph::Schedule>> schedules;
  std::optional<std::int64_t> top;
  bool symbolic = false;
};

constexpr std::array kRecompute = {graph::Recompute::none, graph::Recompute::selective, graph::Recompute::full};
constexpr std::array kSchedules = {graph::Schedule::one_forward, graph::Schedule::zb_h1, graph::Schedule::dualpipe};

// Of a flag what it says; else what is tried under a runtime, and without one the first of it.
template <class T, std::size_t N>
std::vector<T> tried(const std::optional<std::vector<T>>& said, const std::array<T, N>& all, bool predicted) {
  if (said) return *said;
  return {all.begin(), predicted ? all.end() : all.begin() + 1};
}

estimate::SearchSpace space_of(const ParallelFlags& f) {
  estimate::SearchSpace space;
  space.devices = f.devices;
  space.batch = f.request.batch.value_or(1);
  space.sequence = f.request.seq.value_or(2048);
  space.training = f.request.training;
  space.decode = f.request.phase == "decode";
  space.shard_embedding = request::sharded_embedding(f.request);
  return space;
}

// What training is tried with, beside what all plans train alike: products, optimiser, loss, adapters.
void add_training(const ParallelFlags& f, const estimate::Setup& setup, estimate::SearchSpace& space) {
  const bool predicted = setup.profile != nullptr;
  if (f.request.micro_batch) {
    space.micro_batches = {*f.request.micro_batch};
  } else if (predicted) {
    space.micro_batches = {1, 2, 4, 8};
  }
  std::vector<graph::Recompute> ways = tried(f.recompute, kRecompute, predicted);
  // Flash attention keeps no scores that could be computed again: selective would list every plan of none twice.
  if (ways.size() > 1 && setup.execution.runtime.flash_attention) std::erase(ways, graph::Recompute::selective);
  space.options.clear();
  graph::TrainingOptions o = request::training_options(f.request, setup, {});
  for (const graph::Recompute recompute : ways) {
    o.recompute = recompute;
    for (const graph::Schedule schedule : tried(f.schedules, kSchedules, predicted)) {
      o.schedule = schedule;
      for (o.zero = 0; o.zero <= 3; ++o.zero) {
        for (o.chunks = 1; o.chunks <= (schedule == graph::Schedule::one_forward ? kMostChunks : 1); ++o.chunks) {
          space.options.push_back(o);
        }
      }
    }
  }
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
  const auto profile = !f.request.runtime ? std::nullopt
                       : space.training   ? request::choose_training_profile(f.request, *f.request.hw, device, sources)
                                          : request::choose_profile(f.request, *f.request.hw, device, false,
                                                                    hardware::Workload::language, sources);
  estimate::Choices choices = request::choose_schemes(f.request, device, profile ? &*profile : nullptr);
  if (!choices.weights) choices.weights = space.training ? request::trained_weights(file.decoder) : file.weights;
  choices.tiles = mapper::TileModel::roofline;  // ranks thousands of plans
  choices.serving = request::serving_of(f.request);
  choices.price = request::price_of(f.request, device, sources, request::Unused::refused);
  if (file.stored) choices.stored = &file.stored->layout;
  const estimate::Setup setup = estimate::make_setup(file.decoder, device, choices);
  if (setup.execution.weights.gguf) {
    throw Error::bad_input(
        fmt::format("plans do not go with GGUF formats ({})", setup.execution.weights.name),
        "--weights bf16, fp8, int8, w8a8 or w4a16; `estimate --pp N` splits the layers of a GGUF model");
  }
  if (space.training) add_training(f, setup, space);
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
  const std::optional<estimate::Band> band = result::ParallelPlan{&study, 0}.noise();
  study.alike = std::ranges::count_if(study.plans, [&](const estimate::PlanCost& plan) {
    return band && plan.fits && plan.time <= study.plans.front().time * (1 + band->mean);
  });
  constexpr std::int64_t kShown = 20;  // of those that are predicted, which are many
  if (const std::int64_t top = f.top.value_or(profile ? kShown : study.legal); top < study.legal) {
    study.plans.resize(static_cast<std::size_t>(top));
  }
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

template <class T, std::size_t N>
Meanings<std::vector<T>> one_or_all(const std::array<T, N>& all) {
  Meanings<std::vector<T>> meanings;
  for (const T one : all) meanings.push_back({std::string(name(one)), {one}});
  meanings.push_back({"all", {all.begin(), all.end()}});
  return meanings;
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
  auto& micro_batch = command.add("micro-batch", r).with("--training");
  micro_batch.about += " [1; 1, 2, 4 and 8 are tried with --runtime]";
  micro_batch.otherwise.clear();
  auto& runtime = command.add("runtime", r);
  runtime.about = "stack whose predicted steps rank the plans: vllm, megatron, pytorch-fsdp@2025 [the speed of light]";
  command
      .add("--recompute", flags.recompute, one_or_all(kRecompute), "WHAT",
           "what is computed again: none, selective, full, or all of these [none; all with --runtime]")
      .with("--training");
  command
      .add("--schedule", flags.schedules, one_or_all(kSchedules), "NAME",
           "of pipeline stages: 1f1b, zb-h1, dualpipe, or all of these [1f1b; all with --runtime]")
      .with("--training");
  for (const char* field : {"products", "optimizer", "loss", "lora", "cuda-graphs"}) {
    command.add(field, r).with("--training");
  }
  command.add("--symbolic", flags.symbolic, "formulas of each strategy instead, for one layer of a dense model");
  command.add("--top", flags.top, kShownPlans, "N", "plans to show [all; 20 with --runtime]");
  for (const char* field :
       {"weights", "kv", "activations", "options", "reserve", "embedding", "devices-per-node", "price"}) {
    command.add(field, r);
  }
}

}  // namespace llmperf::cli
