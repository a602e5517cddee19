#include "serving/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/integer.h"
#include "base/maths.h"
#include "base/number.h"
#include "base/text.h"
#include "serving/random.h"
#include "serving/trace_file.h"

namespace llmperf::serving {
namespace {

constexpr std::uint64_t kPrefixIds = std::uint64_t{1} << 62;  // ids that are no request's or session's
constexpr std::uint64_t kSessionIds = std::uint64_t{1} << 61;

enum Stream : std::uint8_t { arrivals, inputs, outputs, prefixes, classes, thinks };

[[noreturn]] void refuse_lengths(std::string_view field, std::string_view text) {
  throw Error::bad_input(fmt::format("`{}`: {} is no length in tokens", field, quote(text)),
                         "1024 or 1k, 800-1024 (uniform), lognormal:1k:0.8 (mean, spread of the logarithm)");
}

// Tokens, of which 4k are 4096; without an exponent, as all counts.
std::optional<double> tokens_value(std::string_view text) {
  if (text.find_first_of("eE") != std::string_view::npos) return std::nullopt;
  const std::size_t last = text.empty() ? std::string_view::npos : std::string_view("kKM").find(text.back());
  if (last == std::string_view::npos) return parse_double(text);
  const std::optional<double> thousands = parse_double(text.substr(0, text.size() - 1));
  return thousands ? std::optional(*thousands * (last < 2 ? 1024 : 1024 * 1024)) : std::nullopt;
}

std::int64_t draw(const Lengths& lengths, Random& random) {
  double tokens = lengths.low;
  if (lengths.kind == Lengths::Kind::uniform) {
    tokens = std::floor(lengths.low + random.uniform() * (lengths.high - lengths.low + 1));
  } else if (lengths.kind == Lengths::Kind::lognormal) {
    const double spread = lengths.high;
    tokens = std::round(lengths.low * maths::exp(spread * random.normal() - spread * spread / 2));
  }
  return static_cast<std::int64_t>(std::clamp(tokens, 1.0, d(kMaxLength)) + lengths.more);
}

template <class Of>
double mean(const std::vector<Request>& requests, Of of) {
  double sum = 0;
  for (const Request& r : requests) sum += d(of(r));
  return requests.empty() ? 0 : sum / d(static_cast<std::int64_t>(requests.size()));
}

}  // namespace

double Workload::requests_per_second() const {
  if (!open || requests.empty()) return 0;
  const double span = (requests.back().sent - requests.front().sent).value;
  return span > 0 ? d(static_cast<std::int64_t>(requests.size()) - 1) / span : 0;
}
double Workload::mean_input() const {
  return mean(requests, [](const Request& r) { return r.input; });
}
double Workload::mean_output() const {
  return mean(requests, [](const Request& r) { return r.output; });
}

Lengths parse_lengths(std::string_view field, std::string_view text) {
  const auto length = [&](std::string_view part) {
    const std::optional<double> n = tokens_value(part);
    if (!n || *n < 1 || *n > d(kMaxLength) || *n != std::floor(*n)) refuse_lengths(field, text);
    return *n;
  };
  if (text.starts_with("lognormal:")) {
    const std::vector<std::string_view> parts = split(text, ':');
    const std::optional<double> spread = parts.size() == 3 ? parse_double(parts[2]) : std::nullopt;
    if (!spread || *spread < 0 || *spread > 4) refuse_lengths(field, text);
    return {Lengths::Kind::lognormal, length(parts[1]), *spread};
  }
  constexpr std::string_view kUniform = "uniform:";
  const std::string_view ends = text.substr(text.starts_with(kUniform) ? kUniform.size() : 0);
  if (const std::size_t dash = ends.find('-'); dash != std::string_view::npos && dash > 0) {
    const Lengths range{Lengths::Kind::uniform, length(ends.substr(0, dash)), length(ends.substr(dash + 1))};
    if (range.high < range.low) refuse_lengths(field, text);
    return range;
  }
  return {Lengths::Kind::fixed, length(text), 0};
}

std::string text_of(const Lengths& lengths) {
  std::string text = fmt::format("{}", lengths.low);
  if (lengths.kind == Lengths::Kind::uniform) text += fmt::format("-{}", lengths.high);
  if (lengths.kind == Lengths::Kind::lognormal) text = fmt::format("lognormal:{}:{}", lengths.low, lengths.high);
  return lengths.more > 0 ? fmt::format("{} + {} of images", text, lengths.more) : text;
}

Lengths spread(const Lengths& lengths, double share) {
  const double width = std::floor(share * lengths.low);
  if (lengths.kind != Lengths::Kind::fixed || width < 1) return lengths;
  return {Lengths::Kind::uniform, lengths.low - width, lengths.low + width, lengths.more};
}

Prefix parse_prefix(std::string_view text, const Lengths& input) {
  const std::size_t colon = text.find(':');
  const std::string_view amount = text.substr(0, colon);
  Prefix prefix;
  std::optional<std::int64_t> kinds = 1;
  if (colon != std::string_view::npos) kinds = parse_int(text.substr(colon + 1));
  const std::optional<double> number = tokens_value(amount);
  if (!kinds || *kinds < 1 || *kinds > 1'000'000 || !number || *number < 0 || *number > d(kMaxLength)) {
    throw Error::bad_input(fmt::format("`prefix`: {} is no prefix", quote(text)),
                           "0.5 (a share of the mean prompt), 512 (tokens), 512:8 (of eight different ones)");
  }
  prefix.tokens = std::llround(*number <= 1 ? *number * input.mean() : *number);
  const double longest = input.kind == Lengths::Kind::lognormal ? d(kMaxLength) : std::max(input.low, input.high);
  if ((*number > 1 && std::floor(*number) != *number) || d(prefix.tokens) > longest) {
    throw Error::bad_input(
        fmt::format("`prefix`: {} is neither a share of a prompt nor tokens of one of {}", quote(text), text_of(input)),
        "0.5 (a share of the mean prompt), 512 (tokens)");
  }
  prefix.kinds = *kinds;
  return prefix;
}

std::vector<TrafficClass> parse_classes(std::string_view text, const TrafficClass& otherwise,
                                        std::string_view prefix_of_all) {
  std::vector<TrafficClass> all;
  for (const std::string_view part : split(text, ';')) {
    const auto refuse = [&](const std::string& why) {
      throw Error::bad_input(fmt::format("`classes`: {}: {}", quote(trim(part)), why),
                             "chat:3 input=500-1k output=200 prefix=0.5; batch:1 input=8k output=1k priority=1");
    };
    TrafficClass c = otherwise;
    std::string_view prefix = prefix_of_all;
    bool first = true;
    for (const std::string_view word : split(trim(part), ' ')) {
      if (word.empty()) continue;
      const std::size_t at = word.find(first ? ':' : '=');
      const std::string_view name = word.substr(0, at);
      const std::string_view value = at == std::string_view::npos ? std::string_view() : word.substr(at + 1);
      if (std::exchange(first, false)) {
        const std::optional<double> share = at == std::string_view::npos ? 1 : parse_double(value);
        if (name.empty() || !share || !(*share > 0)) refuse("a name, and a share above 0, come first");
        c.name = name;
        c.share = *share;
      } else if (name == "input" || name == "output") {
        (name == "input" ? c.input : c.output) = parse_lengths("classes", value);
      } else if (name == "prefix") {
        prefix = value;
      } else if (const std::optional<std::int64_t> number = parse_int(value); name == "priority" && number) {
        c.priority = std::clamp<std::int64_t>(*number, -1'000'000, 1'000'000);
      } else {
        refuse(fmt::format("{} says nothing of a class", quote(word)));
      }
    }
    if (first) refuse("it has no name");
    if (!prefix.empty()) c.prefix = parse_prefix(prefix, c.input);
    if (std::ranges::count(all, c.name, &TrafficClass::name) > 0) refuse("there is one of that name");
    c.input.more = otherwise.input.more;
    all.push_back(std::move(c));
  }
  return all;
}

std::string text_of(const std::vector<TrafficClass>& classes) {
  std::vector<std::string> parts;
  double sum = 0;
  for (const TrafficClass& c : classes) sum += c.share;
  for (const TrafficClass& c : classes) {
    parts.push_back(fmt::format("{} {} ({} in, {} out{})", format_share(c.share / sum), c.name, text_of(c.input),
                                text_of(c.output), c.priority != 0 ? fmt::format(", priority {}", c.priority) : ""));
  }
  return join(parts, ", ");
}

std::string text_of(const Load& load, std::string_view between) {
  std::string text = text_of(load.classes);
  if (load.classes.empty()) {
    text = fmt::format("{} tokens in, {} out", text_of(load.input), text_of(load.output));
    const Prefix& p = load.prefix;
    const std::string kinds = p.kinds == 1 ? "alike in all" : fmt::format("of {} kinds", p.kinds);
    if (p.tokens > 0) text += fmt::format("{}{} tokens of the prompt {}", between, format_count(d(p.tokens)), kinds);
  }
  if (load.turns > 1) text += fmt::format("{}sessions of {} turns", between, load.turns);
  return load.think.value > 0 ? text + fmt::format(" {} after an answer", format_seconds(load.think)) : text;
}

Workload make_workload(const Load& load) {
  if (load.trace) return sent_as(first_of(*load.trace, load.requests), load);
  Workload w;
  w.open = load.rate.has_value();
  w.endless = w.open;
  w.concurrency = load.concurrency;
  Random intervals(load.seed, Stream::arrivals);
  Random input(load.seed, Stream::inputs);
  Random output(load.seed, Stream::outputs);
  Random kinds(load.seed, Stream::prefixes);
  Random of(load.seed, Stream::classes);
  double shares = 0;
  for (const TrafficClass& c : load.classes) {
    w.classes.push_back(c.name);
    shares += c.share;
  }
  const auto draw_class = [&] {
    double left = of.uniform() * shares;
    std::int32_t i = 0;
    for (const auto last = static_cast<std::int32_t>(load.classes.size()) - 1; i < last; ++i) {
      left -= load.classes[static_cast<std::size_t>(i)].share;
      if (left < 0) break;
    }
    return i;
  };
  const TrafficClass alike{.input = load.input, .output = load.output, .prefix = load.prefix};
  double now = 0;
  const auto interval = [&](Random& random) {
    return std::isinf(load.burstiness) ? 1 : random.gamma(load.burstiness) / load.burstiness;
  };
  const bool thinks = load.think.value > 0;
  struct Said {
    std::int64_t tokens = 0;
    Segment prefix = {};
    std::int32_t of = -1;
  };
  std::vector<Said> said;  // in each session so far
  const std::int64_t sessions = divide_up(load.requests, load.turns);
  for (std::int64_t i = 0; i < load.requests; ++i) {
    if (load.rate && (!thinks || i < sessions)) now += interval(intervals);
    Request r;
    r.sent = Seconds{now};
    // Turn by turn of all sessions, so that a turn comes after the one before it.
    if (i >= sessions) r.after = static_cast<std::int32_t>(i - sessions);
    const auto session = static_cast<std::size_t>(i % sessions);
    if (!load.classes.empty()) r.of = i < sessions ? draw_class() : said[session].of;
    const TrafficClass& c = r.of < 0 ? alike : load.classes[static_cast<std::size_t>(r.of)];
    r.priority = static_cast<std::int32_t>(c.priority);
    r.input = draw(c.input, input);
    r.output = draw(c.output, output);
    r.first_segment = static_cast<std::int32_t>(w.segments.size());
    Segment prefix;
    if (i < sessions && c.prefix.tokens > 0) {
      const auto kind = static_cast<std::uint64_t>(kinds.uniform() * d(c.prefix.kinds));
      const std::uint64_t own = static_cast<std::uint64_t>(r.of + 1) << 32;  // classes share none
      prefix = {kPrefixIds + own + kind, std::min(c.prefix.tokens, r.input)};
    }
    if (load.turns > 1) {
      if (i < sessions) said.push_back({0, prefix, r.of});
      prefix = said[session].prefix;  // a session's first turn has it, and with that all of them
      r.input += said[session].tokens;
      said[session].tokens = r.input + r.output;
    }
    if (prefix.end > 0) w.segments.push_back(prefix);
    if (load.turns > 1) {
      w.segments.push_back({kSessionIds + session, r.input});
      r.session = true;
    }
    r.segments = static_cast<std::int32_t>(w.segments.size()) - r.first_segment;
    w.requests.push_back(r);
  }
  if (load.rate) {
    const double scale = d(load.requests) / *load.rate / now;
    for (Request& r : w.requests) r.sent = r.sent * scale;
  }
  if (thinks) {
    Random random(load.seed, Stream::thinks);
    for (Request& r : w.requests) {
      if (r.after >= 0) r.sent = w.requests[static_cast<std::size_t>(r.after)].sent + load.think * interval(random);
    }
  }
  return w;
}

}  // namespace llmperf::serving
