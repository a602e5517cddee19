#include "report/serving_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/integer.h"
#include "base/number.h"
#include "report/reports.h"
#include "report/trace.h"

namespace llmperf::report {
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
