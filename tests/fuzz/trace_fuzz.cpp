// Traces of requests: what is accepted is in order, has lengths that a simulation can take, and names no tokens that it
// has not.
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "fuzz.h"
#include "serving/trace_file.h"

using namespace llmperf;

void fuzz_trace(std::string_view text) {
  try {
    const serving::Trace trace = serving::read_trace(text, "fuzz");
    Seconds last;
    if (trace.workload.requests.empty()) std::abort();
    for (const serving::Request& r : trace.workload.requests) {
      if (r.input < 1 || r.input > serving::kMaxLength || r.output < 1 || r.output > serving::kMaxLength) std::abort();
      if (!(r.sent >= last) || (!trace.timed && r.sent.value != 0)) std::abort();
      last = r.sent;
      std::int64_t end = 0;
      for (const serving::Segment& s : trace.workload.content(r)) {
        if (s.end <= end || s.end > r.input) std::abort();
        end = s.end;
      }
      if (r.session && end != r.input) std::abort();
    }
  } catch (const Error&) {
    // refused, which is an answer
  }
}
