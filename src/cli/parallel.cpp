// `llmperf parallel`: every way to spread a model over a number of devices, side by side.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/request.h"
#include "cli/values.h"
#include "report/parallel_report.h"

namespace llmperf::cli {
namespace {

constexpr std::int64_t kMaxDevices = 65536;
constexpr std::int64_t kMostChunks = 4;  // runs of layers on a stage that are tried

struct Flags {
  RequestFlags request;  // model, hardware, batch, schemes and options of it
  std::string devices;
  std::string sequence = "2048";
  std::string micro_batch = "1";
  std::string recompute = "none";
  std::string top;
  bool training = false;
  bool symbolic = false;
  OutputFlags output;
};

std::vector<graph::Recompute> recompute_values(const std::string& text) {
  if (text == "all") return {graph::kRecomputes.begin(), graph::kRecomputes.end()};
  std::vector<std::string> names = {"all"};
  for (const graph::Recompute r : graph::kRecomputes) {
    names.emplace_back(graph::name(r));
    if (names.back() == text) return {r};
  }
  throw Error::bad_input(fmt::format("--recompute: there is no {}", quote(text)), name_hint(text, names));
}

estimate::SearchSpace space_of(const Flags& f) {
  estimate::SearchSpace space;
  space.devices = int_value("--devices", f.devices, 1, kMaxDevices);
  space.batch = int_value("--batch", f.request.batch, 1, estimate::kMaxBatch);
  space.sequence = int_value("--seq", f.sequence, 1, estimate::kMaxTokens);
  space.training = f.training;
  space.micro_batch = int_value("--micro-batch", f.micro_batch, 1, estimate::kMaxBatch);
  space.shard_embedding = sharded_embedding(f.request.plan);
  space.options.clear();
  for (const graph::Recompute recompute : recompute_values(f.recompute)) {
    for (int zero = 0; zero <= 3; ++zero) {
      for (std::int64_t chunks = 1; chunks <= kMostChunks; ++chunks) {
        space.options.push_back({.recompute = recompute, .zero = zero, .chunks = chunks});
      }
    }
  }
  return space;
}

std::string infeasible_hint(const estimate::SearchSpace& space, const estimate::PlanCost& smallest, Bytes capacity) {
  const Bytes parameters = smallest.weights + smallest.gradients + smallest.optimizer;
  if (parameters > capacity) {
    return fmt::format("more devices{}: its {} alone take {}", space.training ? "" : " or a narrower type",
                       space.training ? "weights, gradients and optimiser" : "weights",
                       format_bytes_binary(parameters));
  }
  return space.training ? "more devices, --recompute full or a smaller --micro-batch"
                        : "more devices, a narrower type or a smaller batch";
}

int parallel_action(const Flags& f) {
  estimate::SearchSpace space = space_of(f);
  const std::int64_t top = f.top.empty() ? 0 : int_value("--top", f.top, 1, 1'000'000);
  const model::ModelFile file = model::load_model(f.request.model);
  const hardware::Device device = hardware::load_device(f.request.hardware);
  estimate::Choices choices = scheme_choices(f.request, device);
  choices.tiles = mapper::TileModel::roofline;  // ranks thousands of plans
  if (file.stored) choices.stored = &file.stored->layout;
  const estimate::Setup setup = estimate::make_setup(file.decoder, device, choices);
  if (setup.execution.weights.gguf) {
    throw Error::bad_input(
        fmt::format("plans do not go with GGUF formats ({})", setup.execution.weights.name),
        "--weights bf16, fp8, int8, w8a8 or w4a16; `estimate --pp N` splits the layers of a GGUF model");
  }
  // Flash attention keeps no scores that could be computed again: selective would list every plan of none twice.
  if (f.recompute == "all" && setup.execution.runtime.flash_attention) {
    std::erase_if(space.options, [](const auto& o) { return o.recompute == graph::Recompute::selective; });
  }
  Output output(f.output);
  if (f.symbolic) {
    output.write(
        report::strategy_report(setup, space.batch, space.sequence, space.devices,
                                estimate::strategy_formulas(setup, space.batch, space.sequence, space.devices)));
    return kExitDone;
  }
  report::ParallelStudy study{.setup = &setup, .space = space, .plans = {}, .communications = {}};
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
  if (top > 0 && static_cast<std::size_t>(top) < study.plans.size()) study.plans.resize(static_cast<std::size_t>(top));
  for (const estimate::PlanCost& plan : study.plans) {
    study.communications.push_back(search.communication(plan.candidate));
  }
  output.write(report::parallel_report(study));
  if (study.fitting > 0) return kExitDone;
  const estimate::PlanCost& smallest = study.plans.front();
  throw Error(
      ErrorKind::infeasible,
      {{.where = {},
        .message = fmt::format("none of the {} plans fits: the smallest, {}, needs {} on a device that has {}",
                               study.legal, graph::to_text(smallest.candidate.plan),
                               format_bytes_binary(smallest.total), format_bytes_binary(*device.dram().capacity)),
        .hint = infeasible_hint(space, smallest, *device.dram().capacity)}});
}

}  // namespace

void add_parallel(CLI::App& root, Action& action) {
  CLI::App* command =
      root.add_subcommand("parallel", "every plan over a number of devices: memory, communication, time");
  auto flags = std::make_shared<Flags>();
  RequestFlags& r = flags->request;
  add_model_flag(*command, r.model);
  add_hardware_flag(*command, r.hardware);
  command->add_option("--devices", flags->devices, "devices in all")->type_name("N")->required();
  command->add_option("--batch", r.batch, "sequences of a step, all devices together")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--seq", flags->sequence, "tokens of a sequence")->type_name("N")->capture_default_str();
  CLI::Option* training = command->add_flag("--training", flags->training, "a training step rather than a prefill");
  command->add_option("--micro-batch", flags->micro_batch, "sequences that a replica computes at once")
      ->type_name("N")
      ->capture_default_str()
      ->needs(training);
  command->add_option("--recompute", flags->recompute, "what is computed again: none, selective, full, or all of these")
      ->type_name("WHAT")
      ->capture_default_str()
      ->needs(training);
  command->add_flag("--symbolic", flags->symbolic, "formulas of each strategy instead, for one layer of a dense model");
  command->add_option("--top", flags->top, "plans to show [all]")->type_name("N");
  add_scheme_flags(*command, r);
  command
      ->add_option("--embedding", r.plan.embedding,
                   "embedding and lm_head over the devices of a tensor axis: sharded, "
                   "replicated")
      ->type_name("HOW")
      ->capture_default_str();
  command->add_option("--devices-per-node", r.plan.devices_per_node, "devices of one server [the hardware file's]")
      ->type_name("N");
  add_output_flags(*command, flags->output);
  command->callback([flags, &action] { action = [flags] { return parallel_action(*flags); }; });
}

}  // namespace llmperf::cli
