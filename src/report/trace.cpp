#include "report/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace llmperf::report {
namespace {

using result::Json, result::number, result::quoted;

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

}  // namespace

std::int64_t nanoseconds(double seconds) { return static_cast<std::int64_t>(std::floor(seconds * 1e9 + 0.5)); }

void TraceWriter::event(std::string text) { events_.push_back(std::move(text)); }

void TraceWriter::process(int process, const std::string& name) {
  event(metadata("process_name", process, 0, "\"name\":" + quoted(name)));
  event(metadata("process_sort_index", process, 0, fmt::format("\"sort_index\":{}", process)));
}

void TraceWriter::track(const TraceTrack& t, const std::string& name) {
  event(metadata("thread_name", t.process, t.thread, "\"name\":" + quoted(name)));
  event(metadata("thread_sort_index", t.process, t.thread, fmt::format("\"sort_index\":{}", t.thread)));
}

void TraceWriter::slice(const TraceTrack& t, const std::string& name, const char* category, double start, double end,
                        const std::string& args) {
  std::int64_t& last = ends_.try_emplace(t, 0).first->second;
  std::int64_t begin = nanoseconds(start);
  if (begin == last - 1) begin = last;
  const std::int64_t duration = std::max<std::int64_t>(0, nanoseconds(end) - begin);
  last = begin + duration;
  event(fmt::format("{{\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",{},\"ts\":{},\"dur\":{},\"args\":{{{}}}}}", quoted(name),
                    category, place(t), microseconds(begin), microseconds(duration), args));
}

void TraceWriter::arrow(const TraceTrack& from, double at, const TraceTrack& to, double then) {
  const std::int64_t id = ++arrows_;
  const auto end = [&](const char* phase, const TraceTrack& t, double time) {
    event(fmt::format("{{\"ph\":{},\"name\":\"launch\",\"cat\":\"flow\",\"id\":{},{},\"ts\":{}}}", phase, id, place(t),
                      microseconds(nanoseconds(time))));
  };
  end("\"s\"", from, at);
  end("\"f\",\"bp\":\"e\"", to, then);
}

void TraceWriter::counter(int process, const std::string& name, const char* unit, double at, double value) {
  event(fmt::format("{{\"ph\":\"C\",\"name\":{},\"pid\":{},\"tid\":0,\"ts\":{},\"args\":{{\"{}\":{}}}}}", quoted(name),
                    process, microseconds(nanoseconds(at)), unit, number(value).dump()));
}

std::string TraceWriter::finish(const Json& data) const {
  std::string text =
      "{\n\"displayTimeUnit\": \"ns\",\n\"otherData\": " + data.dump(2, ' ', false, Json::error_handler_t::replace) +
      ",\n\"traceEvents\": [\n";
  for (std::size_t i = 0; i < events_.size(); ++i) {
    text += events_[i];
    text += i + 1 < events_.size() ? ",\n" : "\n";
  }
  return text + "]\n}\n";
}

}  // namespace llmperf::report
