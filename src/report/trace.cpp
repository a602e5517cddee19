// A file of the Trace Event Format, which chrome://tracing, Perfetto and many profilers read: an object with an array
// of events (docs/trace.md names the specification). Times are in microseconds there; all are rounded to whole
// nanoseconds, ends like beginnings, so that what touches in the estimate touches in the file.
#include "report/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/integer.h"
#include "base/number.h"
#include "estimate/timeline.h"
#include "report/reports.h"
#include "result/basis.h"
#include "result/generation.h"
#include "result/json.h"
#include "result/parts.h"

namespace llmperf::report {
namespace {

using result::Json, result::number, result::quoted;

// A row of the picture: a thread of a process.
struct TraceTrack {
  int process = 0;
  int thread = 0;  // no other track has it
  auto operator<=>(const TraceTrack&) const = default;
};

// Microseconds with three decimals.
std::string microseconds(std::int64_t ns) {
  const char* sign = ns < 0 ? "-" : "";
  const std::int64_t size = ns < 0 ? -ns : ns;
  return fmt::format("{}{}.{:03}", sign, size / 1000, size % 1000);
}

std::string place(const TraceTrack& t) { return fmt::format("\"pid\":{},\"tid\":{}", t.process, t.thread); }

std::string metadata(const char* what, int process, int thread, const std::string& args) {
  return fmt::format("{{\"ph\":\"M\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":0,\"args\":{{{}}}}}", what, process,
                     thread, args);
}

// Whole nanoseconds, halves up.
std::int64_t nanoseconds(double seconds) { return static_cast<std::int64_t>(std::floor(seconds * 1e9 + 0.5)); }

class TraceWriter {
 public:
  // Names; rows are shown in the order of their numbers.
  void process(int process, const std::string& name) {
    event(metadata("process_name", process, 0, "\"name\":" + quoted(name)));
    event(metadata("process_sort_index", process, 0, fmt::format("\"sort_index\":{}", process)));
  }

  void track(const TraceTrack& t, const std::string& name) {
    event(metadata("thread_name", t.process, t.thread, "\"name\":" + quoted(name)));
    event(metadata("thread_sort_index", t.process, t.thread, fmt::format("\"sort_index\":{}", t.thread)));
  }

  // A slice; `args`: of a JSON object, the part between its braces. Slices of a track come one after the other; where
  // rounding lets one begin a nanosecond before the last has ended, it begins then.
  void slice(const TraceTrack& t, const std::string& name, const char* category, double start, double end,
             const std::string& args = {}) {
    std::int64_t& last = ends_.try_emplace(t, 0).first->second;
    std::int64_t begin = nanoseconds(start);
    if (begin == last - 1) begin = last;
    const std::int64_t duration = std::max<std::int64_t>(0, nanoseconds(end) - begin);
    last = begin + duration;
    event(fmt::format("{{\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",{},\"ts\":{},\"dur\":{},\"args\":{{{}}}}}",
                      quoted(name), category, place(t), microseconds(begin), microseconds(duration), args));
  }

  // An arrow from a slice to another, from the beginning of one to that of the other; both must be there.
  void arrow(const TraceTrack& from, double at, const TraceTrack& to, double then) {
    const std::int64_t id = ++arrows_;
    const auto end = [&](const char* phase, const TraceTrack& t, double time) {
      event(fmt::format("{{\"ph\":{},\"name\":\"launch\",\"cat\":\"flow\",\"id\":{},{},\"ts\":{}}}", phase, id,
                        place(t), microseconds(nanoseconds(time))));
    };
    end("\"s\"", from, at);
    end("\"f\",\"bp\":\"e\"", to, then);
  }

  void counter(int process, const std::string& name, const char* unit, double at, double value) {
    event(fmt::format("{{\"ph\":\"C\",\"name\":{},\"pid\":{},\"tid\":0,\"ts\":{},\"args\":{{\"{}\":{}}}}}",
                      quoted(name), process, microseconds(nanoseconds(at)), unit, number(value).dump()));
  }

  // The file. `data`: its `otherData`.
  std::string finish(const Json& data) const {
    std::string text =
        "{\n\"displayTimeUnit\": \"ns\",\n\"otherData\": " + data.dump(2, ' ', false, Json::error_handler_t::replace) +
        ",\n\"traceEvents\": [\n";
    for (std::size_t i = 0; i < events_.size(); ++i) {
      text += events_[i];
      text += i + 1 < events_.size() ? ",\n" : "\n";
    }
    return text + "]\n}\n";
  }

 private:
  void event(std::string text) { events_.push_back(std::move(text)); }

  std::vector<std::string> events_;
  std::map<TraceTrack, std::int64_t> ends_;  // ns, of the last slice
  std::int64_t arrows_ = 0;
};

// ---- The steps of an estimate.

using estimate::Span;
using estimate::SpanKind;
using estimate::Timeline;
using estimate::TimelineOp;
using estimate::TimelineStep;

// More slices than this take viewers long to load: later micro-batches are drawn in one piece.
constexpr std::size_t kMaxSpans = 60'000;

// What a slice says of an op, ready to be written.
struct OpText {
  std::string name;
  std::string args;
  double bandwidth = 0;  // B/s through memory while it runs
};
struct TracedPhase {
  TimelineStep step;
  std::vector<OpText> ops;
};
struct TracedSteps {
  std::vector<TracedPhase> phases;
  Json data;  // of the file
  std::vector<std::string> notes;
};

// ---- What is drawn, copied from the estimate.

// An op of a step, one execution of it.
struct TracedOp {
  const estimate::OpEstimate* of;
  const TimelineOp* timed;
};

Type fields_of(result::Fields<TracedOp> f) {
  using O = TracedOp;
  return f.of("kind", "of the op", [](const O& o) { return graph::kind_of(o.of->op); })
      .of("shape", "for people", [](const O& o) { return shape_text(o.of->op); })
      .of("weights", "type of ggml's", [](const O& o) { return weight_format(o.of->op)->name; })
      .only_when([](const O& o) {
        const model::StoredFormat* format = weight_format(o.of->op);
        return format != nullptr && !format->name.empty();
      })
      .of("flops", "of all engines", [](const O& o) { return o.of->work.matrix + o.of->work.vector; })
      .of("bytes", "through memory", [](const O& o) { return o.of->work.bytes(); })
      .of("network_bytes", "sent", [](const O& o) { return o.of->work.network; })
      .only_when([](const O& o) { return o.of->work.network.value > 0; })
      .of("bound", "what binds it", [](const O& o) { return o.of->time.bound; })
      .of("time_us", "of the kernel", [](const O& o) { return o.of->time.total.value * 1e6; })
      .of("roof_us", "the bound", [](const O& o) { return o.of->time.roof.value * 1e6; })
      .of("hidden_us", "beside others", [](const O& o) { return o.timed->hidden * 1e6; })
      .only_when([](const O& o) { return o.timed->hidden > 0; })
      .of("kernels", "launched", [](const O& o) { return o.of->op.launches; })
      .only_when([](const O& o) { return o.of->op.launches != 1; });
}

OpText op_text(const estimate::OpEstimate& o, const TimelineOp& timed) {
  const std::string text = line(TracedOp{&o, &timed});
  const double seconds = timed.seconds - (timed.prefetched ? timed.hidden : 0);
  return {std::string(o.op.name), text.substr(1, text.size() - 2), seconds > 0 ? o.work.bytes().value / seconds : 0};
}

TracedSteps traced(std::vector<TimelineStep> steps, const std::vector<estimate::Phase>& phases,
                   const std::string& model, const estimate::Platform& platform, const std::string& label) {
  TracedSteps result;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    TracedPhase& phase = result.phases.emplace_back();
    phase.step = std::move(steps[i]);
    for (std::size_t k = 0; k < phase.step.ops.size(); ++k) {
      phase.ops.push_back(op_text(phases[i].ops[k], phase.step.ops[k]));
    }
  }
  result.data = {{"schema", "llmperf.trace"},         {"schema_version", 1},
                 {"tool", header("")["tool"]},        {"model", model},
                 {"hardware", platform.device->name}, {"label", label}};
  result.notes.emplace_back("a model's prediction, not a measurement; times are rounded to nanoseconds");
  return result;
}

// ---- Drawing it.

constexpr int kStepProcess = 1;
constexpr int kHostProcess = 2;
constexpr int kFirstStage = 10;
constexpr int kTracksPerProcess = 100;
// Threads of a process.
enum Row : int { kPhases = 1, kRuntime, kLaunches, kHostOps, kLayers, kKernels, kPrefetch, kLink, kNetwork };

TraceTrack track_of(int process, int row) { return {process, process * kTracksPerProcess + row}; }

class Drawing {
 public:
  explicit Drawing(const TracedSteps& steps) : steps_(steps) { trace_.process(kStepProcess, "steps"); }

  std::string draw(const std::string& command) {
    Json phases = Json::array();
    double clock = 0;
    for (const TracedPhase& phase : steps_.phases) {
      const Timeline timeline = estimate::lay_out(phase.step, kMaxSpans);
      clock += timeline.lead;
      const double end = clock + timeline.end;
      const std::string name =
          phase.step.steps > 1 ? fmt::format("{} (one of {})", phase.step.name, phase.step.steps) : phase.step.name;
      trace_.slice(named(kStepProcess, kPhases, "phases"), name, "phase", clock, end,
                   fmt::format("\"steps\":{},\"time_us\":{}", phase.step.steps, number(phase.step.time * 1e6).dump()));
      draw_phase(phase, timeline, clock);
      phases.push_back({{"name", phase.step.name},
                        {"steps", phase.step.steps},
                        {"start_s", number(clock)},
                        {"end_s", number(end)},
                        {"time_s", number(phase.step.time)},
                        {"micro_batches", phase.step.micro_batches},
                        {"micro_batches_drawn", timeline.drawn}});
      note_phase(phase.step, timeline);
      clock = end;
    }
    Json data = steps_.data;
    if (!command.empty()) data["command"] = command;
    data["phases"] = std::move(phases);
    std::vector<std::string> notes = steps_.notes;
    notes.insert(notes.end(), notes_.begin(), notes_.end());
    data["notes"] = notes;
    return trace_.finish(data);
  }

 private:
  void note_phase(const TimelineStep& step, const Timeline& timeline) {
    if (timeline.lead > 0) {
      notes_.push_back(step.name + ": the host launches ahead of the step, while the device works on the one before");
    }
    if (timeline.drawn < step.micro_batches) {
      notes_.push_back(fmt::format("{}: the ops of {} of {} micro-batches are drawn, the others in one piece",
                                   step.name, timeline.drawn, step.micro_batches));
    }
    if (step.steady == estimate::Steady::yes && step.stage_layers.size() > 1 && step.micro_batches > 1) {
      notes_.push_back(
          fmt::format("{}: steps follow one another in a full pipeline, one every {}; the one drawn has the "
                      "pipeline to itself",
                      step.name, format_seconds(Seconds{step.time})));
    }
  }

  // The track, introduced when it is first used.
  TraceTrack named(int process, int row, const std::string& name) {
    const TraceTrack track = track_of(process, row);
    if (std::find(known_.begin(), known_.end(), track) == known_.end()) {
      known_.push_back(track);
      trace_.track(track, name);
    }
    return track;
  }
  int host() {
    introduce(kHostProcess, "host");
    return kHostProcess;
  }
  int stage(const TimelineStep& step, std::int32_t index) {
    const int process = kFirstStage + index;
    introduce(process, step.stage_layers.size() > 1 ? fmt::format("device of stage {}", index + 1) : "device");
    return process;
  }
  void introduce(int process, const std::string& name) {
    if (std::find(processes_.begin(), processes_.end(), process) != processes_.end()) return;
    processes_.push_back(process);
    trace_.process(process, name);
  }

  // Slices of the network may run at the same time: each takes the first row that is free.
  TraceTrack network(int process, double start, double end) {
    for (int lane = 0;; ++lane) {
      const TraceTrack track =
          named(process, kNetwork + lane, lane == 0 ? "network" : fmt::format("network {}", lane + 1));
      std::int64_t& busy = busy_.try_emplace(track, 0).first->second;
      if (nanoseconds(start) < busy && lane + 1 < kTracksPerProcess - kNetwork) continue;
      busy = nanoseconds(end);
      return track;
    }
  }

  TraceTrack op_track(const TimelineStep& step, const Span& span, double at) {
    const TimelineOp& op = step.ops[static_cast<std::size_t>(span.op)];
    switch (op.place) {
      case graph::Place::host: return named(host(), kHostOps, "ops");
      case graph::Place::link: return named(stage(step, span.stage), kLink, "link to the host");
      case graph::Place::network: return network(stage(step, span.stage), at + span.start, at + span.end);
      case graph::Place::device: break;
    }
    return named(stage(step, span.stage), kKernels, "kernels");
  }

  std::string args_of(const TracedPhase& phase, const Span& span) const {
    std::string args = phase.ops[static_cast<std::size_t>(span.op)].args;
    if (span.layer >= 0) args += fmt::format(",\"layer\":{}", span.layer);
    if (phase.step.micro_batches > 1) args += fmt::format(",\"micro_batch\":{}", span.micro_batch);
    return args;
  }

  struct Start {
    TraceTrack track;
    double time = 0;
    double length = 0;
  };

  void draw_phase(const TracedPhase& phase, const Timeline& timeline, double at) {
    std::vector<Start> launches;
    std::vector<Start> kernels;
    std::vector<const Span*> spans;
    for (const Span& span : timeline.spans) spans.push_back(&span);
    std::stable_sort(spans.begin(), spans.end(), [](const Span* a, const Span* b) { return a->start < b->start; });
    for (const Span* span : spans) draw_span(phase, *span, at, launches, kernels);
    const auto arrow = [&](const Start& from, const Start& to) {
      if (nanoseconds(from.length) > 0 && nanoseconds(to.length) > 0) {
        trace_.arrow(from.track, from.time, to.track, to.time);
      }
    };
    // One by one, or one for all.
    for (std::size_t i = 0; i < std::min(launches.size(), kernels.size()); ++i) arrow(launches[i], kernels[i]);
    for (const auto& [process, shown] : bandwidth_) count(process, shown.until, 0);
    bandwidth_.clear();
  }

  void draw_span(const TracedPhase& phase, const Span& span, double at, std::vector<Start>& launches,
                 std::vector<Start>& kernels) {
    const double start = at + span.start;
    const double end = at + span.end;
    const auto name = [&] { return phase.ops[static_cast<std::size_t>(span.op)].name; };
    const auto draw = [&](const TraceTrack& track, const std::string& text, const char* category,
                          const std::string& args) {
      trace_.slice(track, text, category, start, end, args);
      return Start{track, start, span.end - span.start};
    };
    switch (span.kind) {
      case SpanKind::op: {
        const Start drawn = draw(op_track(phase.step, span, at), name(), "op", args_of(phase, span));
        const graph::Place place = phase.step.ops[static_cast<std::size_t>(span.op)].place;
        if (place == graph::Place::device || place == graph::Place::network) kernels.push_back(drawn);
        if (place == graph::Place::device) count_bandwidth(phase, span, start, end);
        break;
      }
      case SpanKind::launch:
        launches.push_back(draw(named(host(), kLaunches, "launches"), name(), "launch",
                                span.layer >= 0 ? fmt::format("\"layer\":{}", span.layer) : ""));
        break;
      case SpanKind::layer_host:
        draw(named(host(), kLaunches, "launches"), fmt::format("layer {}", span.layer), "host", "");
        break;
      case SpanKind::graph_launch:
        launches.push_back(draw(named(host(), kLaunches, "launches"), "graph launch", "launch", ""));
        break;
      case SpanKind::runtime: draw(named(host(), kRuntime, "runtime"), name(), "runtime", args_of(phase, span)); break;
      case SpanKind::prefetch:
        draw(named(stage(phase.step, span.stage), kPrefetch, "weights ahead"), name(), "prefetch", "");
        break;
      case SpanKind::layer:
        draw(named(stage(phase.step, span.stage), kLayers, "layers"), fmt::format("layer {}", span.layer), "layer", "");
        break;
      case SpanKind::micro_batch:
        draw(named(stage(phase.step, span.stage), kKernels, "kernels"), fmt::format("micro-batch {}", span.micro_batch),
             "micro_batch", "");
        break;
    }
  }

  void count(int process, double time, double bandwidth) {
    trace_.counter(process, "memory bandwidth", "GB/s", time, bandwidth / 1e9);
  }

  // Nothing moves between ops: the area below the counter is the bytes of the phase.
  void count_bandwidth(const TracedPhase& phase, const Span& span, double start, double end) {
    const int process = kFirstStage + span.stage;
    const double value = phase.ops[static_cast<std::size_t>(span.op)].bandwidth;
    const auto [entry, added] = bandwidth_.try_emplace(process, Shown{-1, start});
    Shown& shown = entry->second;
    if (nanoseconds(start) > nanoseconds(shown.until)) {
      count(process, shown.until, 0);
      shown.value = 0;
    }
    if (shown.value != value) count(process, start, value);
    shown = {value, end};
  }

  struct Shown {
    double value = 0;  // B/s
    double until = 0;
  };
  const TracedSteps& steps_;
  TraceWriter trace_;
  std::vector<TraceTrack> known_;
  std::vector<int> processes_;
  std::map<TraceTrack, std::int64_t> busy_;  // ns until which a row of the network is
  std::map<int, Shown> bandwidth_;           // that the counter of a process shows
  std::vector<std::string> notes_;
};

constexpr const char* kNothing = "it does not fit: there is no step to draw";

Trace trace_of(TracedSteps steps) {
  const auto shared = std::make_shared<const TracedSteps>(std::move(steps));
  return [shared](const std::string& command) { return Drawing(*shared).draw(command); };
}

}  // namespace

Trace step_trace(const estimate::Estimator& estimator, const estimate::Estimate& e) {
  const estimate::Setup& setup = estimator.setup();
  TracedSteps steps = traced(timeline_steps(estimator, e), e.phases, setup.execution.model->name, setup, label(setup));
  if (!e.fits) steps.notes.emplace_back(kNothing);
  for (const estimate::Phase& phase : estimate::Estimator::prompt_phases(e)) {
    if (phase.steps == 1) continue;
    steps.notes.push_back(
        fmt::format("{}: the mean of {} pieces of the prompt; shapes are those of the first", phase.name, phase.steps));
  }
  if (estimator.setup().execution.plan.afd) {
    steps.notes.emplace_back(
        "micro-batches are drawn one after the other: between attention and experts they take turns");
  }
  if (e.phases.size() > 1 && e.phase("decode") != nullptr) {
    steps.notes.emplace_back("decode: the mean step of the generation; shapes are those of the first");
  }
  return trace_of(std::move(steps));
}

Trace step_trace(const estimate::VideoEstimator& estimator, const estimate::VideoEstimate& e) {
  const estimate::VideoSetup& setup = estimator.setup();
  TracedSteps steps = traced(timeline_steps(estimator, e), e.phases, setup.execution.model->name, setup, label(setup));
  if (!e.fits) steps.notes.emplace_back(kNothing);
  return trace_of(std::move(steps));
}

Trace step_trace(const estimate::TrainingEstimator& estimator, const estimate::TrainingEstimate& e) {
  const estimate::Setup& setup = estimator.setup();
  TracedSteps steps = traced(e.fits ? timeline_steps(e) : std::vector<TimelineStep>(), e.phases,
                             setup.execution.model->name, setup, profile_label(setup));
  if (!e.fits) {
    steps.notes.emplace_back(kNothing);
    return trace_of(std::move(steps));
  }
  steps.notes.push_back(
      fmt::format("one device of the busiest stage (stage {} of {}); forward and backward are those of "
                  "one of {} micro-batches, without the pipeline's bubble",
                  e.busiest_stage + 1, e.plan.pipeline, e.micro_batches));
  return trace_of(std::move(steps));
}

Trace step_trace(const program::ProgramSetup& setup, const program::ProgramEstimate& e) {
  return trace_of(traced(timeline_steps(e, setup.profile), e.phases, setup.name, setup, label(setup)));
}

// ---- A run of the serving simulation.

namespace {

using serving::Interval;
using serving::Served;

// More than this take viewers long to load.
constexpr std::size_t kMostRequests = 4000;
constexpr std::size_t kMostSteps = 60'000;
constexpr int kTracksPerReplica = 100'000;

// Tracks for slices that overlap: each goes to the first that is free.
class Lanes {
 public:
  std::size_t take(double from, double to) {
    constexpr double kTouches = 5e-10;  // half a nanosecond is rounding's
    const auto free = std::ranges::find_if(ends_, [&](double end) { return end <= from + kTouches; });
    const auto lane = static_cast<std::size_t>(free - ends_.begin());
    if (free == ends_.end()) ends_.emplace_back();
    ends_[lane] = to;
    return lane;
  }
  std::size_t count() const { return ends_.size(); }

 private:
  std::vector<double> ends_;
};

struct Traced {
  std::vector<Interval> steps;
  std::vector<Served> requests;
  Json data;
  std::vector<std::string> notes;
};

TraceTrack track_of(int process, std::size_t row) {
  return {process, process * kTracksPerReplica + static_cast<int>(row)};
}

std::string step_name(const Interval& step) {
  if (step.prompts == 0) return fmt::format("decode {}", step.decodes);
  const std::string prompts = fmt::format("prefill {}", step.prompt_tokens);
  return step.decodes == 0 ? prompts : fmt::format("{} + decode {}", prompts, step.decodes);
}

// Names of as many tracks of a process, from `row` on.
void name_tracks(TraceWriter& trace, int process, std::size_t row, std::size_t count, const char* name) {
  for (std::size_t i = 0; i < count; ++i) {
    trace.track(track_of(process, row + i), i == 0 ? name : fmt::format("{} {}", name, i + 1));
  }
}

void draw_step(TraceWriter& trace, const TraceTrack& track, const Interval& step) {
  trace.slice(track, step_name(step), step.prompts > 0 ? "prefill" : "decode", step.begin.value, step.end.value,
              fmt::format(R"("steps":{},"decodes":{},"prompts":{},"prompt_tokens":{},"waiting":{},"kv_blocks":{})",
                          step.steps, step.decodes, step.prompts, step.prompt_tokens, step.waiting, step.blocks));
  trace.counter(track.process, "waiting", "requests", step.begin.value, d(step.waiting));
  trace.counter(track.process, "KV blocks", "blocks", step.begin.value, d(step.blocks));
}

// What it waited for comes first, though of a prompt in pieces some of it is between them.
void draw_request(TraceWriter& trace, const TraceTrack& track, const Served& r, std::size_t index) {
  const std::string args =
      fmt::format(R"("request":{},"input_tokens":{},"output_tokens":{},"reused_tokens":{},"preemptions":{})", index,
                  r.input, r.output, r.reused, r.preemptions);
  double waits = 0;
  for (const serving::Cause cause : {serving::Cause::queue, serving::Cause::kv, serving::Cause::budget}) {
    waits += r.causes[static_cast<std::size_t>(cause)];
  }
  const double begins = std::clamp(r.sent.value + waits, r.sent.value, r.first.value);
  const auto slice = [&](const char* what, double from, double to) {
    if (to > from) trace.slice(track, fmt::format("{} {}", what, index), what, from, to, args);
  };
  slice("queued", r.sent.value, begins);
  slice("prefill", begins, r.first.value);
  slice("decode", r.first.value, r.last.value);
}

void draw_replica(TraceWriter& trace, const Traced& t, std::int32_t replica) {
  const int process = 10 + replica;
  std::vector<std::pair<std::size_t, std::size_t>> steps;     // track, index
  std::vector<std::pair<std::size_t, std::size_t>> requests;  // likewise
  Lanes of_steps;                                             // several where stages work on steps of their own
  Lanes of_requests;
  for (std::size_t i = 0; i < t.steps.size(); ++i) {
    const Interval& s = t.steps[i];
    if (s.replica == replica) steps.emplace_back(1 + of_steps.take(s.begin.value, s.end.value), i);
  }
  for (std::size_t i = 0; i < t.requests.size(); ++i) {
    const Served& r = t.requests[i];
    if (r.replica != replica) continue;
    requests.emplace_back(1 + of_steps.count() + of_requests.take(r.sent.value, r.last.value), i);
  }
  trace.process(process, fmt::format("replica {}", replica));
  name_tracks(trace, process, 1, of_steps.count(), "steps");
  name_tracks(trace, process, 1 + of_steps.count(), of_requests.count(), "requests");
  for (const auto& [row, i] : steps) draw_step(trace, track_of(process, row), t.steps[i]);
  for (const auto& [row, i] : requests) draw_request(trace, track_of(process, row), t.requests[i], i);
}

std::string draw(const Traced& t, const std::string& command) {
  TraceWriter trace;
  std::int32_t replicas = 0;
  for (const Interval& step : t.steps) replicas = std::max(replicas, step.replica + 1);
  for (const Served& r : t.requests) replicas = std::max(replicas, r.replica + 1);
  for (std::int32_t replica = 0; replica < replicas; ++replica) draw_replica(trace, t, replica);
  Json data = t.data;
  data["notes"] = t.notes;
  if (!command.empty()) data["command"] = command;
  return trace.finish(data);
}

}  // namespace

Trace serving_trace(const Serving& serving) {
  const serving::Run& run = serving.study->run;
  if (run.timeline.empty()) return {};
  auto t = std::make_shared<Traced>();
  t->data = {{"schema", "llmperf.trace"},
             {"schema_version", 1},
             {"tool", header("")["tool"]},
             {"model", serving.setup->execution.model->name},
             {"hardware", serving.setup->device->name},
             {"label", serving.label}};
  t->notes.emplace_back("a simulation, not a measurement; times are rounded to nanoseconds");
  t->steps = run.timeline;
  // Those of a replica come in order, those of several beside each other.
  std::ranges::stable_sort(t->steps, {}, &Interval::begin);
  t->requests = ended(run);
  const auto cut = [&](auto& list, std::size_t most, const char* what) {
    if (list.size() <= most) return;
    t->notes.push_back(fmt::format("the first {} of {} {} are drawn", format_count(static_cast<double>(most)),
                                   format_count(static_cast<double>(list.size())), what));
    list.resize(most);
  };
  cut(t->steps, kMostSteps, "runs of steps");
  cut(t->requests, kMostRequests, "requests");
  return [t](const std::string& command) { return draw(*t, command); };
}

}  // namespace llmperf::report
