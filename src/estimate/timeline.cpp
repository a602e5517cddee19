#include "estimate/timeline.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "base/integer.h"
#include "estimate/schedule.h"
#include "mapper/roofline/step_overhead.h"

namespace llmperf::estimate {
namespace {

struct Execution {
  std::size_t op = 0;
  std::int64_t layer = -1;
};

// ---- The order in which a stage executes ops, for one micro-batch.

class Programs {
 public:
  explicit Programs(const TimelineStep& step) : step_(step), programs_(step.stage_layers.size()) {
    const std::size_t last = programs_.size() - 1;
    std::size_t op = 0;
    for (std::size_t run = 0; run < step.runs.size();) {
      outside(op, step.runs[run].first, run == 0 ? 0 : last);
      // Runs that touch are kinds of layers that take turns.
      std::size_t end = run + 1;
      while (end < step.runs.size() && step.runs[end].first == end_of(end - 1)) ++end;
      layers(run, end);
      op = end_of(end - 1);
      run = end;
    }
    outside(op, step.ops.size(), step.runs.empty() ? 0 : last);
  }
  std::vector<std::vector<Execution>> take() { return std::move(programs_); }

 private:
  std::size_t end_of(std::size_t run) const { return step_.runs[run].first + step_.runs[run].size; }
  // Executions for one micro-batch, all stages and layers.
  std::int64_t count(std::size_t op) const { return step_.ops[op].count / step_.micro_batches; }

  void outside(std::size_t begin, std::size_t end, std::size_t stage) {
    for (std::size_t op = begin; op < end; ++op) {
      if (step_.ops[op].sends) {
        for (std::size_t i = 0; i + 1 < programs_.size(); ++i) programs_[i].push_back({op, -1});
      } else {
        for (std::int64_t n = 0; n < count(op); ++n) programs_[stage].push_back({op, -1});
      }
    }
  }

  // Layers in the order of the model, dealt to the stages as these hold them.
  void layers(std::size_t begin, std::size_t end) {
    struct Body {
      std::int64_t layer;
      std::size_t run;
      std::int64_t number;  // of the run's layers
    };
    std::vector<Body> order;
    for (std::size_t run = begin; run < end; ++run) {
      for (std::size_t i = 0; i < step_.runs[run].layers.size(); ++i) {
        order.push_back({step_.runs[run].layers[i], run, static_cast<std::int64_t>(i)});
      }
    }
    std::ranges::stable_sort(order, [](const Body& a, const Body& b) { return a.layer < b.layer; });
    for (const Body& body : order) {
      const LayerRun& run = step_.runs[body.run];
      const auto kind = static_cast<std::size_t>(std::max(0, step_.ops[run.first].layer_kind));
      std::vector<Execution>& program = programs_[take_stage(kind)];
      const auto all = static_cast<std::int64_t>(run.layers.size());
      for (std::size_t op = run.first; op < run.first + run.size; ++op) {
        // As often in every layer, or in every so many of them.
        const std::int64_t times = (body.number + 1) * count(op) / all - body.number * count(op) / all;
        for (std::int64_t n = 0; n < times; ++n) program.push_back({op, body.layer});
      }
    }
  }

  std::size_t take_stage(std::size_t kind) {
    if (taken_.size() <= kind) taken_.resize(kind + 1);
    std::int64_t before = 0;
    const std::int64_t number = taken_[kind]++;
    for (std::size_t stage = 0; stage < programs_.size(); ++stage) {
      const auto& layers = step_.stage_layers[stage];
      before += kind < layers.size() ? layers[kind] : 0;
      if (number < before) return stage;
    }
    return programs_.size() - 1;
  }

  const TimelineStep& step_;
  std::vector<std::vector<Execution>> programs_;
  std::vector<std::int64_t> taken_;  // by kind: layers dealt so far
};

// ---- One micro-batch on one stage, from its own beginning.

class StagePass {
 public:
  StagePass(const TimelineStep& step, const std::vector<Execution>& program, std::int32_t stage)
      : step_(step), stage_(stage) {
    const bool detailed = step.launching && step.micro_batches == 1 && step.stage_layers.size() == 1;
    if (detailed) split_overhead(program);
    for (const Execution& e : program) execute(e, detailed);
    if (detailed) clock_ += waiting_;  // what no kernel waited for, the end does
    close_layer();
    if (detailed) place_launches();
  }
  std::vector<Span>& spans() { return spans_; }
  double length() const { return clock_; }
  double lead() const { return lead_; }

 private:
  Span& add(SpanKind kind, const Execution& e, double start, double end) {
    return spans_.emplace_back(Span{.kind = kind,
                                    .op = static_cast<std::int32_t>(e.op),
                                    .stage = stage_,
                                    .layer = e.layer,
                                    .start = start,
                                    .end = end});
  }
  static bool launched(const TimelineOp& op) {
    return !op.overhead && (op.place == graph::Place::device || op.place == graph::Place::network);
  }

  // overhead = fixed + gaps + waiting, as step_overhead.h adds them up.
  void split_overhead(const std::vector<Execution>& program) {
    double overhead = 0, device = 0, gaps = 0, host = step_.launching->host_layers;
    std::int64_t before = -1;
    Execution runtime;
    for (const Execution& e : program) {
      const TimelineOp& op = step_.ops[e.op];
      if (op.overhead) {
        overhead += op.seconds;
        runtime = e;
        continue;
      }
      device += op.seconds - op.hidden;
      if (launched(op)) gaps += op.kernels * step_.launching->gap;
      host += op.host;
      layers_ += e.layer >= 0 && e.layer != before ? 1 : 0;
      before = e.layer;
    }
    gaps = std::min(gaps, overhead);
    waiting_ = std::clamp(host - device - gaps, 0.0, overhead - gaps);
    fixed_ = overhead - gaps - waiting_;
    if (overhead > 0) add(SpanKind::runtime, runtime, 0, fixed_);
    clock_ = launched_ = fixed_;
  }

  void execute(const Execution& e, bool detailed) {
    const TimelineOp& op = step_.ops[e.op];
    if (e.layer != layer_) close_layer();
    if (op.overhead) {
      if (detailed) return;
      add(SpanKind::runtime, e, clock_, clock_ + op.seconds);
      clock_ += op.seconds;
      return;
    }
    if (detailed && launched(op)) wait_for_launch(e, op);
    if (layer_ < 0 && e.layer >= 0) {
      layer_ = e.layer;
      layer_start_ = clock_;
    }
    const double pace = e.layer >= 0 && !step_.pace.empty() ? step_.pace[static_cast<std::size_t>(stage_)] : 1;
    const double end = clock_ + op.seconds * pace - op.hidden;
    if (op.prefetched && op.hidden > 0) add(SpanKind::prefetch, e, std::max(before_, clock_ - op.hidden), clock_);
    const double start = op.prefetched ? clock_ : std::max(0.0, clock_ - op.hidden);
    add(SpanKind::op, e, start, end);
    if (detailed && launched(op) && step_.launching->graph_launch == 0) launches_.back().kernel = start;
    before_ = start;
    clock_ = end;
  }

  void wait_for_launch(const Execution& e, const TimelineOp& op) {
    clock_ += op.kernels * step_.launching->gap;
    double layer = 0;
    if (e.layer >= 0 && e.layer != launched_layer_) layer = step_.launching->host_layers / d(layers_);
    launched_layer_ = e.layer;
    if (step_.launching->graph_launch == 0) {
      launches_.push_back({e, layer, launched_ + layer, launched_ + layer + op.host, 0});
    }
    launched_ += layer + op.host;
    const double waits = std::clamp(launched_ - clock_, 0.0, waiting_);
    clock_ += waits;
    waiting_ -= waits;
  }

  // Early enough that no kernel begins before it is launched.
  void place_launches() {
    double early = 0;
    for (const Launch& l : launches_) early = std::max(early, l.end - l.kernel);
    for (const Launch& l : launches_) {
      if (l.layer > 0) add(SpanKind::layer_host, l.execution, l.start - l.layer - early, l.start - early);
      add(SpanKind::launch, l.execution, l.start - early, l.end - early);
    }
    lead_ = std::max(0.0, early - fixed_);
    const double graph = std::min(step_.launching->graph_launch, fixed_);
    if (graph > 0) add(SpanKind::graph_launch, {}, fixed_ - graph, fixed_).op = -1;
  }

  void close_layer() {
    if (layer_ >= 0) add(SpanKind::layer, {0, layer_}, layer_start_, clock_).op = -1;
    layer_ = -1;
  }

  struct Launch {
    Execution execution;
    double layer;  // of the host, before it
    double start;
    double end;
    double kernel;  // when it begins
  };

  const TimelineStep& step_;
  std::int32_t stage_;
  std::vector<Span> spans_;
  std::vector<Launch> launches_;
  double clock_ = 0;
  double before_ = 0;    // when the op before began
  double waiting_ = 0;   // left to be waited for launches
  double fixed_ = 0;     // of the overhead
  double launched_ = 0;  // when the host is done with what it launched so far
  double lead_ = 0;
  std::int64_t layers_ = 0;
  std::int64_t launched_layer_ = -1;
  std::int64_t layer_ = -1;
  double layer_start_ = 0;
};

// When micro-batch m enters each stage.
class Entries {
 public:
  Entries(const TimelineStep& step, std::vector<double> lengths)
      : step_(step), lengths_(std::move(lengths)), free_(lengths_.size(), 0.0) {}

  double enter(std::size_t stage, std::int64_t m) {
    double start = 0;
    if (step_.steady == Steady::yes && lengths_.size() > 1) {
      start = d(m) * step_.time / d(step_.micro_batches) +
              std::accumulate(lengths_.begin(), lengths_.begin() + static_cast<std::ptrdiff_t>(stage), 0.0);
    } else {
      start = std::max(stage == 0 ? d(m) * step_.period : arrived_, free_[stage]);
    }
    arrived_ = free_[stage] = start + lengths_[stage];
    return start;
  }

 private:
  const TimelineStep& step_;
  std::vector<double> lengths_;
  std::vector<double> free_;  // when each stage is done with what it had
  double arrived_ = 0;        // when the micro-batch left the stage before
};

}  // namespace

Timeline lay_out(const TimelineStep& step, std::size_t max_spans) {
  const std::vector<std::vector<Execution>> programs = Programs(step).take();
  std::vector<StagePass> passes;
  std::vector<double> lengths;
  std::size_t spans = 0;
  Timeline result;
  for (std::size_t stage = 0; stage < programs.size(); ++stage) {
    StagePass& pass = passes.emplace_back(step, programs[stage], static_cast<std::int32_t>(stage));
    lengths.push_back(pass.length());
    spans += pass.spans().size();
    result.lead = std::max(result.lead, pass.lead());
  }
  const std::size_t most = std::max<std::size_t>(1, max_spans / std::max<std::size_t>(1, spans));
  result.drawn = std::min(step.micro_batches, static_cast<std::int64_t>(most));
  // Those that are not drawn are one span each, but not beyond the same number.
  const std::int64_t shown = std::min(step.micro_batches, result.drawn + static_cast<std::int64_t>(max_spans));

  Entries entries(step, lengths);
  for (std::int64_t m = 0; m < step.micro_batches; ++m) {
    for (std::size_t stage = 0; stage < passes.size(); ++stage) {
      const double start = entries.enter(stage, m);
      result.end = std::max(result.end, start + lengths[stage]);
      if (m >= shown) continue;
      if (m >= result.drawn) {
        result.spans.push_back({.kind = SpanKind::micro_batch,
                                .stage = static_cast<std::int32_t>(stage),
                                .micro_batch = m,
                                .start = start,
                                .end = start + lengths[stage]});
        continue;
      }
      for (Span span : passes[stage].spans()) {
        span.micro_batch = m;
        span.start += start;
        span.end += start;
        result.spans.push_back(span);
      }
    }
  }
  return result;
}

// ---- Phases as steps

namespace {

TimelineOp timeline_op(const OpEstimate& e, Seconds hidden) {
  TimelineOp op;
  op.count = e.op.count;
  op.layer_kind = e.op.layer_kind;
  op.place = e.op.place;
  op.seconds = e.time.total.value;
  op.hidden = e.op.count > 0 ? hidden.value / d(e.op.count) : 0;
  op.prefetched = e.hidden.value > 0 && !e.op.overlaps;
  op.overhead = std::holds_alternative<graph::Overhead>(e.op.body);
  op.sends = is_send(e.op) && e.op.layer_kind < 0;
  op.kernels = e.op.launches;
  return op;
}

TimelineStep step_of(const Phase& phase, std::span<const Stage> stages, const hardware::RuntimeProfile* profile) {
  TimelineStep step;
  step.name = phase.name;
  step.steps = phase.steps;
  step.time = phase.time.value;
  step.micro_batches = phase.batches();
  step.steady = phase.steady;
  const double batches = d(phase.batches());
  if (phase.batches() > 1 && std::isfinite(phase.in_flight)) {
    step.period = (phase.ops_time - phase.overlapped).value / (batches * phase.in_flight);
  }
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    TimelineOp& op = step.ops.emplace_back(timeline_op(phase.ops[i], hidden_time(phase.ops, i)));
    // Micro-batches of tokens are drawn alike: each has its part of every execution. Of two micro-batches that take
    // turns both are drawn as one.
    const double parts = d(phase.token_batches) / d(phase.overlap_batches);
    op.count = op.count * phase.token_batches / phase.overlap_batches;
    op.seconds /= parts;
    op.hidden /= parts;
    op.kernels *= d(phase.overlap_batches);
  }
  for (const Stage& stage : stages) {
    step.stage_layers.push_back(stage.layers);
    step.pace.push_back(stage.pace);
  }
  if (profile == nullptr || phase.ops.empty() || phase.ops.back().op.tag != graph::Tag::runtime_overhead) return step;

  const hardware::ParameterValues& values = profile->values;
  const mapper::StepOverhead overhead(values, phase.launches.dispatch, true);
  for (std::size_t i = 0; i < phase.ops.size(); ++i) step.ops[i].host = overhead.each(phase.ops[i].op).value;
  Launching& launching = step.launching.emplace();
  launching.gap = get(values, hardware::Parameter::launch_gap);
  if (phase.launches.dispatch == hardware::Dispatch::eager || phase.launches.dispatch == hardware::Dispatch::serial) {
    launching.host_layers = phase.launches.layers * get(values, hardware::Parameter::host_layer);
  } else if (phase.launches.dispatch == hardware::Dispatch::pieces) {
    launching.host_layers = phase.launches.layers * get(values, hardware::Parameter::host_piece);
  } else if (phase.launches.dispatch == hardware::Dispatch::graph) {
    launching.graph_launch = get(values, hardware::Parameter::host_launch);
    launching.host_layers = phase.launches.layers * get(values, hardware::Parameter::host_graph_layer);
  }
  return step;
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

// Runs of ops of one key, each as often as the op in it that repeats most.
template <class Key>
std::vector<LayerRun> repeated_runs(const Phase& phase, Key&& key) {
  return runs_by(phase, key, [&](std::size_t begin, std::size_t end) {
    std::int64_t most = 0;
    for (std::size_t i = begin; i < end; ++i) most = std::max(most, phase.ops[i].op.count / phase.micro_batches);
    std::vector<std::int64_t> layers(static_cast<std::size_t>(most));
    std::iota(layers.begin(), layers.end(), 0);
    return layers;
  });
}

}  // namespace

std::vector<TimelineStep> timeline_steps(const Estimator& estimator, const Estimate& e) {
  std::vector<TimelineStep> steps;
  for (const Phase& phase : e.phases) {
    const Estimator& of = phase.name == "draft" ? *estimator.draft() : estimator;
    steps.push_back(step_of(phase, of.stages(phase), of.setup().profile));
    const std::vector<model::LayerGroup>& groups = of.setup().execution.weights.groups;
    steps.back().runs = runs_by(
        phase, [](const graph::Op& op) { return op.layers; },
        [&](std::size_t begin, std::size_t) {
          return groups[static_cast<std::size_t>(phase.ops[begin].op.layers)].layers;
        });
  }
  return steps;
}

std::vector<TimelineStep> timeline_steps(const VideoEstimator& estimator, const VideoEstimate& e) {
  std::vector<TimelineStep> steps;
  for (const Phase& phase : e.phases) {
    std::span<const Stage> stages(estimator.stages());
    if (phase.name != kVideoPhases[1]) stages = stages.first(1);
    steps.push_back(step_of(phase, stages, estimator.setup().profile));
    // Spatial and temporal blocks of a unit follow one another; unlike stages have two kinds each.
    steps.back().runs =
        repeated_runs(phase, [](const graph::Op& op) { return op.layer_kind < 0 ? -1 : op.layer_kind / 2; });
  }
  return steps;
}

std::vector<TimelineStep> timeline_steps(const TrainingEstimate& e) {
  std::vector<TimelineStep> steps;
  for (const Phase& phase : e.phases) {
    steps.push_back(step_of(phase, kWhole, nullptr));
    for (TimelineOp& op : steps.back().ops) op.sends = false;
    steps.back().runs = repeated_runs(phase, [](const graph::Op& op) { return op.layer_kind; });
    std::int64_t next = 0;  // kinds of layers one after the other
    for (LayerRun& run : steps.back().runs) {
      std::iota(run.layers.begin(), run.layers.end(), next);
      next += static_cast<std::int64_t>(run.layers.size());
    }
  }
  return steps;
}

std::vector<TimelineStep> timeline_steps(const Outcome& e, const hardware::RuntimeProfile* profile) {
  std::vector<TimelineStep> steps;
  for (const Phase& phase : e.phases) {
    steps.push_back(step_of(phase, kWhole, profile));
    steps.back().runs =
        repeated_runs(phase, [](const graph::Op& op) { return op.count > 1 ? op.count : std::int64_t{-1}; });
  }
  return steps;
}

}  // namespace llmperf::estimate
