// Traces of requests: CSV with a header (or TSV), JSON objects line by line, or a JSON list of them.
//
// Times are arrival_s, or a timestamp: a date ("2023-11-16 18:17:03.97"), seconds, or of Mooncake's traces (JSON with
// hash_ids and input_length) milliseconds. Lengths go by the names that public traces have for them: input_tokens,
// ContextTokens, input_length, Request tokens, num_prefill_tokens … Without times a trace is one of lengths.
// hash_ids say which blocks of the prompt others have as well, of 512 tokens (Mooncake, FAST '25) or of 16
// (Qwen-Bailian, with chat_id); input_tok_ids (LLMServingSim) say it of every token. ShareGPT's conversations are
// texts, whose tokens are estimated. Columns that are not known are named in the notes. Turns of one session begin with
// what was said before where they are long enough for it, and where the trace has no times are sent once that was
// answered.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "serving/workload.h"

namespace llmperf::serving {

inline constexpr std::size_t kMaxTraceBytes = std::size_t{3} << 28;  // ShareGPT has 673 MB

struct Trace {
  Workload workload;
  bool timed = false;                   // else all are sent at 0
  std::vector<std::string> notes = {};  // columns that are passed over, lengths that are estimated
};
// `most`: of the requests, from the first on; 0: all. Throws Error(bad_input) with the positions of what is wrong:
// times that decrease, lengths below 1, columns that are missing.
Trace read_trace(std::string_view text, const std::string& file, std::int64_t most = 0);
// Of a file, or of a built-in trace by its name.
Trace load_trace(const std::string& path, std::int64_t most = 0);

// Its first `most` requests.
Trace first_of(const Trace& trace, std::int64_t most);
// Tokens of a prompt that earlier ones had as well, on the mean: what a cache that forgets nothing would have of it.
double mean_known_tokens(const Workload& requests);

// How a trace is sent: at a rate (its own times scaled to it; of lengths alone, at random times as make_workload()), or
// in a closed loop. Neither: as it stands. Throws Error(bad_input) where a trace without times is given none.
Workload sent_as(Trace trace, const Load& load);

// Of texts that are read, and of which one result comes: the trace's lengths of outputs mean nothing.
inline void read_alone(Trace& trace) {
  for (Request& r : trace.workload.requests) {
    r.output = 1;
    r.after = -1;
  }
}

}  // namespace llmperf::serving
