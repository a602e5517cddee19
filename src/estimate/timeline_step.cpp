#include "estimate/timeline_step.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "estimate/schedule.h"

namespace llmperf::estimate {
namespace {

double d(std::int64_t x) { return static_cast<double>(x); }

// How a phase's kernels are launched; nothing at the speed of light.
struct Host {
  const hardware::RuntimeProfile* profile = nullptr;
  hardware::Dispatch dispatch = hardware::Dispatch::graph;
  double layers = 0;  // times layers are launched in a step
};

bool is_stage_send(const graph::Op& op) {
  const auto* c = std::get_if<graph::Collective>(&op.body);
  return c && c->kind == graph::CollectiveKind::send && op.layer_kind < 0;
}

TimelineOp timeline_op(const OpEstimate& e, double hidden) {
  TimelineOp op;
  op.count = e.op.count;
  op.layer_kind = e.op.layer_kind;
  op.place = e.op.place;
  op.seconds = e.time.total.value;
  op.hidden = e.op.count > 0 ? hidden / d(e.op.count) : 0;
  op.prefetched = e.prefetched.value > 0;
  op.overhead = std::holds_alternative<graph::Overhead>(e.op.body);
  op.sends = is_stage_send(e.op);
  op.kernels = e.op.launches;
  return op;
}

TimelineStep step_of(const Phase& phase, std::span<const Stage> stages, const Host& host) {
  TimelineStep step;
  step.name = phase.name;
  step.steps = phase.steps;
  step.time = phase.time.value;
  step.micro_batches = phase.batches();
  step.steady = phase.steady;
  std::vector<double> seconds;
  for (const OpEstimate& e : phase.ops) seconds.push_back(e.step_time().value);
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    TimelineOp& op = step.ops.emplace_back(timeline_op(phase.ops[i], hidden_seconds(phase.ops, seconds, i)));
    // Micro-batches of tokens are drawn alike: each has its part of every execution.
    op.count *= phase.token_batches;
    op.seconds /= d(phase.token_batches);
    op.hidden /= d(phase.token_batches);
  }
  for (const Stage& stage : stages) step.stage_layers.push_back(stage.layers);
  if (host.profile == nullptr || phase.ops.empty() || phase.ops.back().op.name != "runtime_overhead") return step;

  const hardware::ParameterValues& values = host.profile->values;
  const mapper::StepOverhead overhead(values, host.dispatch, true);
  for (std::size_t i = 0; i < phase.ops.size(); ++i) step.ops[i].host = overhead.each(phase.ops[i].op).value;
  Launching& launching = step.launching.emplace();
  launching.gap = get(values, hardware::Parameter::launch_gap);
  if (host.dispatch == hardware::Dispatch::eager) {
    launching.host_layers = host.layers * get(values, hardware::Parameter::host_layer);
  } else if (host.dispatch == hardware::Dispatch::graph) {
    launching.graph_launch = get(values, hardware::Parameter::host_launch);
  }
  return step;
}

std::vector<std::int64_t> numbers(std::int64_t count) {
  std::vector<std::int64_t> list(static_cast<std::size_t>(std::max<std::int64_t>(0, count)));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

// Runs of consecutive ops for which `key` is the same and not negative; `layers` says how often each repeats.
template <class Key, class Layers>
std::vector<LayerRun> runs_by(const Phase& phase, Key&& key, Layers&& layers) {
  std::vector<LayerRun> runs;
  for (std::size_t i = 0; i < phase.ops.size();) {
    const std::int64_t first = key(phase.ops[i].op);
    std::size_t end = i + 1;
    while (end < phase.ops.size() && key(phase.ops[end].op) == first) ++end;
    if (first >= 0) runs.push_back({i, end - i, layers(i, end)});
    i = end;
  }
  return runs;
}

bool same_names(const Phase& phase, std::size_t a, std::size_t b, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    if (phase.ops[a + i].op.name != phase.ops[b + i].op.name) return false;
  }
  return true;
}

// The layer groups of a decoder follow one another in the graph; those of one kind that touch are told apart by their
// ops, which then are the same ones over again.
std::vector<LayerRun> decoder_runs(const Phase& phase, const std::vector<model::LayerGroup>& groups) {
  std::vector<LayerRun> runs;
  std::size_t group = 0;
  const auto by_kind = runs_by(
      phase, [](const graph::Op& op) { return static_cast<std::int64_t>(op.layer_kind); },
      [](std::size_t, std::size_t) { return std::vector<std::int64_t>(); });
  for (std::size_t r = 0; r < by_kind.size(); ++r) {
    const LayerRun& run = by_kind[r];
    const int kind = phase.ops[run.first].op.layer_kind;
    const auto of_kind = [&](std::size_t g) { return g < groups.size() && static_cast<int>(groups[g].kind) == kind; };
    const bool alone = r + 1 < by_kind.size() && phase.ops[by_kind[r + 1].first].op.layer_kind == kind;
    std::size_t end = group;
    while (of_kind(end) && (end == group || !alone || groups[end].on_host == groups[group].on_host)) ++end;
    const std::size_t parts = std::max<std::size_t>(1, end - group);
    const std::size_t size = run.size / parts;
    bool alike = run.size % parts == 0;
    for (std::size_t p = 1; alike && p < parts; ++p) alike = same_names(phase, run.first, run.first + p * size, size);
    if (alike && end > group) {
      for (std::size_t p = 0; p < parts; ++p) runs.push_back({run.first + p * size, size, groups[group + p].layers});
    } else {
      std::vector<std::int64_t> layers;
      for (std::size_t g = group; g < end; ++g) {
        layers.insert(layers.end(), groups[g].layers.begin(), groups[g].layers.end());
      }
      std::sort(layers.begin(), layers.end());
      runs.push_back({run.first, run.size, std::move(layers)});
    }
    group = end;
  }
  return runs;
}

// As often as the op that repeats most.
std::vector<std::int64_t> most_often(const Phase& phase, std::size_t begin, std::size_t end) {
  std::int64_t most = 0;
  for (std::size_t i = begin; i < end; ++i) most = std::max(most, phase.ops[i].op.count / phase.micro_batches);
  return numbers(most);
}

}  // namespace

std::vector<TimelineStep> timeline_steps(const Estimator& estimator, const Estimate& e) {
  std::vector<TimelineStep> steps;
  const Setup& setup = estimator.setup();
  for (const Phase& phase : e.phases) {
    const bool prompts = phase.name == "prefill";
    const Host host{setup.profile, prompts ? setup.prefill_dispatch : setup.decode_dispatch,
                    d(setup.execution.model->num_layers() * phase.micro_batches)};
    TimelineStep& step = steps.emplace_back(step_of(phase, estimator.stages(), host));
    step.runs = decoder_runs(phase, setup.execution.weights.groups);
  }
  return steps;
}

std::vector<TimelineStep> timeline_steps(const VideoEstimator& estimator, const VideoEstimate& e) {
  std::vector<TimelineStep> steps;
  const VideoSetup& setup = estimator.setup();
  for (const Phase& phase : e.phases) {
    const bool denoising = phase.name == kVideoPhases[1];
    const std::span<const Stage> stages(estimator.stages());
    const double blocks = denoising ? d(setup.execution.model->blocks() * phase.micro_batches) : 0;
    TimelineStep& step = steps.emplace_back(
        step_of(phase, denoising ? stages : stages.first(1), {setup.profile, setup.dispatch, blocks}));
    // Spatial and temporal blocks of a unit follow one another; unlike stages have two kinds each.
    step.runs = runs_by(
        phase, [](const graph::Op& op) { return op.layer_kind < 0 ? std::int64_t{-1} : op.layer_kind / 2; },
        [&](std::size_t begin, std::size_t end) { return most_often(phase, begin, end); });
  }
  return steps;
}

std::vector<TimelineStep> timeline_steps(const TrainingEstimate& e) {
  std::vector<TimelineStep> steps;
  const Stage whole;
  for (const TrainingPhase& phase : e.phases) {
    TimelineStep& step = steps.emplace_back(step_of(phase, std::span(&whole, 1), {}));
    for (std::size_t i = 0; i < phase.ops.size(); ++i) {
      TimelineOp& op = step.ops[i];
      op.hidden = op.count > 0 ? phase.hidden[i].value / d(op.count) : 0;
      op.sends = false;
    }
    std::int64_t next = 0;  // kinds of layers one after the other
    step.runs = runs_by(
        phase, [](const graph::Op& op) { return static_cast<std::int64_t>(op.layer_kind); },
        [&](std::size_t begin, std::size_t end) {
          std::vector<std::int64_t> layers = most_often(phase, begin, end);
          for (std::int64_t& layer : layers) layer += next;
          next += static_cast<std::int64_t>(layers.size());
          return layers;
        });
  }
  return steps;
}

std::vector<TimelineStep> timeline_steps(const ProgramSetup& setup, const ProgramEstimate& e) {
  const Stage whole;
  TimelineStep step = step_of(e.phase, std::span(&whole, 1), {setup.profile, setup.dispatch, 0});
  // The body of a loop: ops of one count, run as often.
  step.runs = runs_by(
      e.phase, [](const graph::Op& op) { return op.count > 1 ? op.count : std::int64_t{-1}; },
      [&](std::size_t begin, std::size_t end) { return most_often(e.phase, begin, end); });
  return {std::move(step)};
}

}  // namespace llmperf::estimate
