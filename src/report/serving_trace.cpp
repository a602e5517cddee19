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
constexpr int kTracksPerProcess = 100'000;

// Slices that overlap stand on tracks of their own: each goes to the first that is free.
class Lanes {
 public:
  std::size_t take(double from, double to) {
    // Halves of a nanosecond are rounding's.
    constexpr double kTouches = 5e-10;
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
  std::int64_t blocks = 0;
  Json data;
  std::vector<std::string> notes;
};

int process_of(std::int32_t replica) { return 10 + replica; }
TraceTrack track_of(int process, std::size_t row) {
  return {process, process * kTracksPerProcess + static_cast<int>(row)};
}

std::string step_name(const Interval& step) {
  if (step.prompts == 0) return fmt::format("decode {}", step.decodes);
  const std::string prompts = fmt::format("prefill {}", step.prompt_tokens);
  return step.decodes == 0 ? prompts : fmt::format("{} + decode {}", prompts, step.decodes);
}

std::string draw(const Traced& t, const std::string& command) {
  TraceWriter trace;
  std::int32_t replicas = 0;
  for (const Interval& step : t.steps) replicas = std::max(replicas, step.replica + 1);
  for (const Served& r : t.requests) replicas = std::max(replicas, r.replica + 1);
  for (std::int32_t replica = 0; replica < replicas; ++replica) {
    const int process = process_of(replica);
    trace.process(process, fmt::format("replica {}", replica));
    Lanes steps;
    for (const Interval& step : t.steps) {
      if (step.replica != replica) continue;
      const TraceTrack track = track_of(process, 1 + steps.take(step.begin.value, step.end.value));
      trace.slice(track, step_name(step), step.prompts > 0 ? "prefill" : "decode", step.begin.value, step.end.value,
                  fmt::format("\"steps\":{},\"decodes\":{},\"prompts\":{},\"prompt_tokens\":{},\"waiting\":{},\"kv_"
                              "blocks\":{}",
                              step.steps, step.decodes, step.prompts, step.prompt_tokens, step.waiting, step.blocks));
      trace.counter(process, "waiting", "requests", step.begin.value, d(step.waiting));
      trace.counter(process, "KV blocks", "blocks", step.begin.value, d(step.blocks));
    }
    for (std::size_t i = 0; i < steps.count(); ++i) {
      trace.track(track_of(process, 1 + i), steps.count() == 1 ? "steps" : fmt::format("steps {}", i + 1));
    }
    Lanes lanes;
    for (std::size_t i = 0; i < t.requests.size(); ++i) {
      const Served& r = t.requests[i];
      if (r.replica != replica) continue;
      const TraceTrack track =
          track_of(process, 1 + steps.count() + lanes.take(r.sent.value, std::max(r.last.value, r.sent.value)));
      const std::string args =
          fmt::format("\"request\":{},\"input_tokens\":{},\"output_tokens\":{},\"reused_tokens\":{},\"preemptions\":{}",
                      i, r.input, r.output, r.reused, r.preemptions);
      // What it waited for comes first: with pieces of a prompt some of it is between them.
      const double waits = r.causes[static_cast<std::size_t>(serving::Cause::queue)] +
                           r.causes[static_cast<std::size_t>(serving::Cause::kv)] +
                           r.causes[static_cast<std::size_t>(serving::Cause::budget)];
      const double begins = std::clamp(r.sent.value + waits, r.sent.value, r.first.value);
      trace.slice(track, fmt::format("queued {}", i), "queued", r.sent.value, begins, args);
      trace.slice(track, fmt::format("prefill {}", i), "prefill", begins, r.first.value, args);
      if (r.last > r.first)
        trace.slice(track, fmt::format("decode {}", i), "decode", r.first.value, r.last.value, args);
    }
    for (std::size_t i = 0; i < lanes.count(); ++i) {
      trace.track(track_of(process, 1 + steps.count() + i), i == 0 ? "requests" : fmt::format("requests {}", i + 1));
    }
  }
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
