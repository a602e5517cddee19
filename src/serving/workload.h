// What an engine is asked to serve: requests with their lengths, when they are sent, and which of their tokens others
// have as well.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace llmperf::serving {

// Tokens of a prompt up to `end` (from the end of the segment before) whose content goes by `id`: where two requests
// have the same segments up to a token they have the same tokens up to there.
struct Segment {
  std::uint64_t id = 0;
  std::int64_t end = 0;
};

struct Request {
  Seconds sent = {};               // in an open loop; in a closed one the order alone counts
  std::int64_t input = 1;          // tokens of the prompt
  std::int64_t output = 1;         // tokens that are generated; what max_tokens says, too
  std::int32_t first_segment = 0;  // of Workload::segments
  std::int32_t segments = 0;       // none: all tokens are its own
  bool session = false;            // what is generated goes on with the last segment: a later turn may begin with it
  std::int32_t of = -1;            // its class, of Workload::classes; -1: there is one alone
  std::int32_t priority = 0;       // the lowest number first
  // The turn of its session before it, which has to be answered: it is sent as much later than that answer as `sent`
  // is after the other's, so that a server without latency has it at its time. -1: there is none, or nobody waits.
  std::int32_t after = -1;
};

// Requests in the order in which they are sent, those of sessions turn by turn, and how.
struct Workload {
  std::string name;  // of a trace its file
  std::vector<Request> requests;
  std::vector<Segment> segments;
  std::vector<std::string> classes;         // their names
  std::optional<std::int64_t> concurrency;  // a closed loop: so many are under way at most
  bool open = true;                         // sent at their times; else as soon as the closed loop lets them
  bool endless = false;  // made to a rate, as many as asked for: a queue that grows has no end that would count

  std::span<const Segment> content(const Request& r) const {
    return std::span(segments).subspan(static_cast<std::size_t>(r.first_segment), static_cast<std::size_t>(r.segments));
  }
  // Over the time from the first to the last; 0 where they are sent at once.
  double requests_per_second() const;
  double mean_input() const;
  double mean_output() const;
};

// Lengths of prompts or of outputs: "1024" or "1k", "800-1024" or "uniform:800-1k" (both ends included),
// "lognormal:1k:0.8" (mean and standard deviation of the logarithm).
struct Lengths {
  enum class Kind : std::uint8_t { fixed, uniform, lognormal };
  Kind kind = Kind::fixed;
  double low = 1;   // fixed: the length; lognormal: the mean
  double high = 1;  // lognormal: the standard deviation of the logarithm
  double more = 0;  // tokens on top of each: those of images
  double mean() const { return (kind == Kind::uniform ? (low + high) / 2 : low) + more; }
  bool operator==(const Lengths&) const = default;
};
inline constexpr std::int64_t kMaxLength = 10'000'000;
// Throws Error(bad_input); `field` is the one that messages name.
Lengths parse_lengths(std::string_view field, std::string_view text);
std::string text_of(const Lengths& lengths);
// Clients send no two requests alike. Of a closed loop that matters: where all lengths are one number its requests end
// together and begin together, which no published run does. One number becomes all within a share of it.
inline constexpr double kSpread = 0.03;
Lengths spread(const Lengths& lengths, double share = kSpread);

// Tokens at the beginning of prompts that others have as well: "0.5" (a share of the mean prompt) or "512" tokens,
// "512:8" of eight different ones that requests choose among evenly.
struct Prefix {
  std::int64_t tokens = 0;
  std::int64_t kinds = 1;
  bool operator==(const Prefix&) const = default;
};
Prefix parse_prefix(std::string_view text, const Lengths& input);

// Requests of one kind among others.
struct TrafficClass {
  std::string name = {};
  double share = 1;  // of the sum of all shares
  Lengths input = {}, output = {};
  Prefix prefix = {};
  std::int64_t priority = 0;  // the lowest number first; of equals the one that came first
  bool operator==(const TrafficClass&) const = default;
};
// "chat:3 input=500-1k output=200 prefix=0.5; batch:1 input=8k priority=1"; what a class does not say is as given.
// Throws Error(bad_input); messages say `classes`.
// `prefix`: of a class that says none (parse_prefix); empty: none.
std::vector<TrafficClass> parse_classes(std::string_view text, const TrafficClass& otherwise,
                                        std::string_view prefix = {});
std::string text_of(const std::vector<TrafficClass>& classes);

struct Trace;  // trace_file.h

struct Load {
  std::optional<double> rate;  // requests per second; none: all at once, or as the closed loop lets them
  double burstiness = 1;       // shape of the gamma distribution of intervals: 1 Poisson, infinity constant
  std::optional<std::int64_t> concurrency;
  std::int64_t requests = 1000;
  bool extends = false;  // … at least: as many as judge() wants
  Lengths input, output;
  Prefix prefix;
  std::vector<TrafficClass> classes;  // requests are of these; the three above then are those of the mean one
  // Of a session, each of which begins with all that was said before, and is sent once that is answered: after as long
  // as it is from the one to the other where all sessions have their first turns first, or after a mean time.
  std::int64_t turns = 1;
  Seconds think{};
  std::uint64_t seed = 0;
  // Whose first `requests` are sent instead, at the rate; the lengths then are those of its mean request.
  std::shared_ptr<const Trace> trace = {};
  bool operator==(const Load&) const = default;
};
// "1024 tokens in, 128 out; 512 tokens of the prompt alike in all; sessions of 4 turns", with that between the parts.
std::string text_of(const Load& load, std::string_view between);
// The intervals are scaled so that the last request comes at requests / rate, as vLLM's benchmark does
// (vllm/benchmarks/serve.py at 009e6d4).
Workload make_workload(const Load& load);

}  // namespace llmperf::serving
