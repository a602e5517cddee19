// A file of the Trace Event Format, which chrome://tracing, Perfetto and many profilers read: an object with an array
// of events (docs/trace.md names the specification). Times are in microseconds there; all are rounded to whole
// nanoseconds, ends like beginnings, so that what touches in the estimate touches in the file. Included by .cpp files
// only.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "result/json.h"

namespace llmperf::report {

// A row of the picture: a thread of a process.
struct TraceTrack {
  int process = 0;
  int thread = 0;  // no other track has it
  auto operator<=>(const TraceTrack&) const = default;
};

class TraceWriter {
 public:
  // Names; rows are shown in the order of their numbers.
  void process(int process, const std::string& name);
  void track(const TraceTrack& track, const std::string& name);

  // A slice; `args`: of a JSON object, the part between its braces. Slices of a track come one after the other; where
  // rounding lets one begin a nanosecond before the last has ended, it begins then.
  void slice(const TraceTrack& track, const std::string& name, const char* category, double start, double end,
             const std::string& args = {});
  // An arrow from a slice to another, from the beginning of one to that of the other; both must be there.
  void arrow(const TraceTrack& from, double at, const TraceTrack& to, double then);
  void counter(int process, const std::string& name, const char* unit, double at, double value);

  // The file. `data`: its `otherData`.
  std::string finish(const result::Json& data) const;

 private:
  void event(std::string text);

  std::vector<std::string> events_;
  std::map<TraceTrack, std::int64_t> ends_;  // ns, of the last slice
  std::int64_t arrows_ = 0;
};

// A text as JSON writes it, in quotes.
std::string json_text(const std::string& text);
// Whole nanoseconds, halves up.
std::int64_t nanoseconds(double seconds);

}  // namespace llmperf::report
