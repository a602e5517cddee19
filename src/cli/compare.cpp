// `llmperf compare`: what lies between two results or more, saved ones or those of a request, of the same request with
// some fields changed and on other devices; or what each runtime option between two sets is worth, and where.
#include "result/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/number.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/estimate.h"
#include "descriptor/node.h"
#include "import/import.h"
#include "report/reports.h"
#include "request/names.h"
#include "result/difference.h"

namespace llmperf::cli {
namespace {

using request::Request;
using request::Resolved;

struct CompareFlags {
  std::vector<std::string> files;
  Request request;
  std::string with;
  std::vector<std::string> against;
  std::optional<double> max_slowdown;
};

// Notes where `after` is slower than `before` by more than the limit. `which`: what is slower, "with --with".
void judge(const CompareFlags& flags, Answer& answer, std::string_view what, std::optional<Seconds> before,
           std::optional<Seconds> after, const std::string& which) {
  const double limit = flags.max_slowdown.value_or(INFINITY);
  if (!before || !after || !(after->value > before->value * (1 + limit))) return;
  answer.exceeded.push_back(
      fmt::format("{} is {} slower {} ({}, before {}): more than --max-slowdown {}", what,
                  before->value > 0 ? format_share(*after / *before - 1) : std::string("infinitely"), which,
                  format_seconds(*after), format_seconds(*before), format_share(limit)));
}

// ---- Two results, or several with the first of them.

struct Side {
  result::SavedResult result;
  std::optional<Error> infeasible = std::nullopt;  // why there are no times
  std::string which = {};                          // "with --against", of one that is slower
};

Answer conclude(const CompareFlags& flags, const std::vector<Side>& sides) {
  const result::SavedResult& first = sides.front().result;
  result::Differences differences;
  for (const Side& side : sides) differences.results.push_back(difference(first, side.result));
  Answer answer{sides.size() == 2 ? report::difference_report(differences.results.back())
                                  : report::differences_report(differences)};
  // There is something to compare when the first and another one have times.
  answer.error = sides.front().infeasible;
  if (!answer.error && std::all_of(sides.begin() + 1, sides.end(), [](const Side& s) { return !!s.infeasible; })) {
    answer.error = sides[1].infeasible;
  }
  const auto seconds = [](const std::optional<double>& value) {
    return value ? std::optional<Seconds>(Seconds{*value}) : std::nullopt;
  };
  for (std::size_t i = 1; i < sides.size(); ++i) {
    for (const result::JudgedTime& time : first.kind->judged) {
      const result::FigureChange* figure = differences.results[i].figure(time.key);
      if (figure == nullptr) continue;
      judge(flags, answer, time.title, seconds(figure->before), seconds(figure->after), sides[i].which);
    }
  }
  return answer;
}

// llmperf's own, else what a benchmark of servers saved.
result::SavedResult read_side(const std::string& path) {
  const std::string text = descriptor::read_text_file(path, result::kMaxResultBytes);
  try {
    return result::read_result(text, path);
  } catch (const Error&) {
    const std::optional<std::string> measured = import::served_document(text, path);
    if (!measured) throw;
    return result::read_result(*measured, path);
  }
}

Side load_result(const std::string& path) {
  Side side{read_side(path)};
  side.which = "in " + path;
  if (!side.result.fits) {
    side.infeasible =
        Error(ErrorKind::infeasible, {{.where = {path, 0, 0, {}},
                                       .message = fmt::format("{}: it has no times", side.result.kind->unfit),
                                       .hint = "compare two results that fit"}});
  }
  return side;
}

Answer compare_files(const CompareFlags& flags, const Context& context) {
  context.only({"results", "--max-slowdown"}, "saved results");
  if (flags.files.size() < 2) {
    throw Error::bad_input(fmt::format("compare takes at least two saved results, not {}", flags.files.size()),
                           "llmperf compare before.json after.json");
  }
  std::vector<Side> sides;
  for (const std::string& file : flags.files) sides.push_back(load_result(file));
  return conclude(flags, sides);
}

Error prefixed(const Error& error, const std::string& prefix) {
  std::vector<Diagnostic> diagnostics = worded(error).diagnostics();
  for (Diagnostic& d : diagnostics) {
    if (d.where.file.empty()) d.message = prefix + d.message;
  }
  return Error(error.kind(), std::move(diagnostics));
}

// `name`: for the report; `prefix`: of messages.
Side estimated(const Request& request, const std::string& name, const std::string& prefix) {
  try {
    request::Sources sources;
    const service::Estimated estimated(request, sources);
    Side side{result::read_result(estimated.json(), name)};
    if (const auto error = estimated.infeasible()) side.infeasible = prefixed(*error, prefix);
    return side;
  } catch (const Error& error) {
    throw prefixed(error, prefix);
  }
}

// ---- Words of a line as a POSIX shell splits them, without anything that it would expand.

// Throws Error(bad_input), naming `flag`, where a quote is not closed.
std::vector<std::string> shell_words(std::string_view flag, std::string_view line) {
  const auto fail = [&](const char* what) {
    throw Error::bad_input(fmt::format("{}: {} in {}", flag, what, quote(line)), "write it as in a shell");
  };
  std::vector<std::string> words;
  std::optional<std::string> word;  // that has begun, if only with empty quotes
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (c == ' ' || c == '\t' || c == '\n') {
      if (word) words.push_back(*std::exchange(word, std::nullopt));
      continue;
    }
    if (!word) word.emplace();
    if (c == '\'' || c == '"') {
      at = read_quoted(line, at, *word);
      if (at == std::string_view::npos) fail("a quote is not closed");
      continue;
    }
    if (c == '\\' && at + 1 == line.size()) fail("a backslash ends the line");
    *word += c == '\\' ? line[++at] : c;
  }
  if (word) words.push_back(*word);
  return words;
}

// The request with the flags of a line as well, and instead.
Request changed(const Request& request, const std::string& line) {
  const std::vector<std::string> words = shell_words("--against", line);
  if (words.empty()) throw Error::bad_input("--against: names no flag", "--against '--weights w4a16 --batch 8'");
  Request second = request;
  Command fields{.name = "--against", .about = {}};
  fields.add_fields(second, "tvr");
  for (const std::string& word : words) {
    const std::string flag = flag_of(word);
    if (!is_output_flag(flag) && flag != "--against" && flag != "--with" && flag != "--max-slowdown") continue;
    throw Error::bad_input(fmt::format("--against: {} is no flag of a request", flag), "leave it out");
  }
  try {
    if (read_words(fields, words, Apply::yes).page) throw Error::bad_input("unknown flag '--help'");
  } catch (const Error& error) {
    std::vector<Diagnostic> all = error.diagnostics();
    if (all.front().hint.empty()) all.front().hint = "--against '--weights w4a16 --batch 8'";
    throw prefixed(Error(error.kind(), std::move(all)), "--against: ");
  }
  return second;
}

// Of `all` built-in devices those that can run the request.
std::vector<Side> on_devices(const Request& request) {
  const bool all = request.hw == "all";
  std::vector<Side> sides;
  for (const std::string& device : all ? request::device_names() : list_value("--hw", *request.hw)) {
    Request asked = request;
    asked.hw = device;
    try {
      sides.push_back(estimated(asked, device, device + ": "));
      sides.back().which = "on " + device;
    } catch (const Error& error) {
      if (!all) throw;
      std::fputs(fmt::format("llmperf: note: {}\n", error.diagnostics().front().message).c_str(), stderr);
    }
  }
  return sides;
}

// The request, on each of its devices, and then with other flags on the first of them.
Answer compare_requests(const CompareFlags& flags) {
  std::vector<Request> others;
  Request first = flags.request;
  const bool several = first.hw == "all" || first.hw->find(',') != std::string::npos;
  if (several && !flags.against.empty()) first.hw = list_value("--hw", *first.hw).front();
  for (const std::string& line : flags.against) others.push_back(changed(first, line));
  std::vector<Side> sides;
  if (several) {
    sides = on_devices(flags.request);
  } else {
    sides.push_back(estimated(first, "the request", ""));
  }
  for (std::size_t i = 0; i < others.size(); ++i) {
    sides.push_back(estimated(others[i], "with " + flags.against[i], "--against: "));
    sides.back().which = others.size() > 1 ? sides.back().result.source : "with --against";
  }
  if (sides.size() < 2)
    throw Error::bad_input("--hw names one device: there is nothing to compare it with", "--hw all");
  return conclude(flags, sides);
}

// ---- Runtime options, one by one.

// Messages name the flag that was given.
hardware::RuntimeOptions second_options(const Resolved& r, const std::string& with) {
  try {
    return other_options(r, with);
  } catch (const Error& error) {
    std::vector<Diagnostic> diagnostics = worded(error).diagnostics();
    constexpr std::string_view kFlag = "--options:";
    for (Diagnostic& d : diagnostics) {
      if (d.message.starts_with(kFlag)) d.message.replace(0, kFlag.size(), "--with:");
    }
    throw Error(error.kind(), std::move(diagnostics));
  }
}

// `what` is estimated; `times`: what its two times are called, null: nothing is said of one that is slower.
template <class Compared>
Answer options_answer(const CompareFlags& flags, const Resolved& r, const std::string& what,
                      const std::array<const char*, 2>& times, const Compared& compared) {
  Answer answer{report::compare_report(compared)};
  const auto& first = compared.comparison->steps.front();
  const auto& last = compared.comparison->steps.back();
  if (!first.fits || !last.fits) {
    const auto& step = first.fits ? last : first;
    const Bytes capacity = *r.device.dram().capacity;
    const bool on_device = step.memory > capacity;
    const std::string needs =
        fmt::format(": needs {}, has {}", format_bytes_binary(step.memory), format_bytes_binary(capacity));
    answer.error = Error::infeasible(
        fmt::format("{} does not fit on {} with --options {}{}", what,
                    on_device ? r.device.name : "the host, " + r.host.name, step.options, on_device ? needs : ""),
        fmt::format("llmperf estimate --options {} says what would make it fit", step.options));
  }
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i]) judge(flags, answer, times[i], first.times[i].time, last.times[i].time, "with --with");
  }
  return answer;
}

Answer compare_options(const CompareFlags& flags) {
  Request asked = flags.request;
  if (!asked.options) asked.options = "none";
  const std::string execution = asked.execution.value_or("");
  request::Sources sources;
  service::refuse_beside(asked, true);
  const auto resolved = resolve(asked, sources, request::Unused::taken);
  const Resolved& r = *resolved;
  const hardware::RuntimeOptions second = second_options(r, flags.with);
  if (const auto* video = std::get_if<request::Video>(&r.work)) {
    const estimate::VideoSetup setup = make_video_setup(r.video, r.device, video->choices);
    const auto comparison = estimate::compare(r.video, r.device, video->choices, second, execution);
    return options_answer(flags, r, r.video.name, {nullptr, "generation"},
                          result::VideoComparison{&setup, &comparison});
  }
  const auto& text = std::get<request::Generation>(r.work);
  const auto comparison = estimate::compare(r.model(), r.device, text.choices, second, execution, text.scenario);
  return options_answer(flags, r, fmt::format("{} at batch {}", r.model().name, text.scenario.batch), {"TTFT", "TPOT"},
                        result::TextComparison{&text.estimator->setup(), text.scenario, execution, &comparison});
}

Answer compare_answer(const CompareFlags& flags, const Context& context) {
  if (!flags.files.empty()) return compare_files(flags, context);
  service::check_complete(flags.request, "or two saved results: llmperf compare before.json after.json");
  const bool devices = flags.request.hw == "all" || flags.request.hw->find(',') != std::string::npos;
  if (flags.with.empty() && flags.against.empty() && !devices) {
    throw Error::bad_input("--with or --against is required: what the request is compared with",
                           "--with all for runtime options, --against '--weights w4a16' for any flag");
  }
  if (!flags.with.empty() && (!flags.against.empty() || devices)) {
    throw Error::bad_input(fmt::format("--with and {} both say what the request is compared with",
                                       devices ? "a list of --hw" : "--against"),
                           "--with all for runtime options, --against '--weights w4a16' for any flag");
  }
  if (flags.request.hw == "all" && !flags.against.empty()) {
    throw Error::bad_input("--against: of --hw all there is no first device that it could be about",
                           "name the devices: --hw rtx4090,h100");
  }
  if (flags.request.training && !flags.with.empty()) {
    throw Error::bad_input("--with compares steps of inference", "--training --against '--options none'");
  }
  return flags.with.empty() ? compare_requests(flags) : compare_options(flags);
}

}  // namespace

void describe_compare(Command& command) {
  CompareFlags& flags = answers(command, compare_answer);
  command.add(
      "results", flags.files, "FILE",
      "results that llmperf estimate, serve or capacity saved as JSON, and runs as benchmarks of servers save them: "
      "two, or several that are compared with the first");
  command.add_fields(flags.request, "tvr");
  command.add("--against", flags.against, "FLAGS",
              "flags that a second request has as well, or instead: '--weights w4a16 --batch 8'; repeatable");
  command
      .add("--with", flags.with, "LIST",
           "a second set of runtime options, written like --options, which is the first [none]: what each is worth")
      .values = request::field("options").values;
  command.add("--max-slowdown", flags.max_slowdown, {0, 1000}, "SHARE",
              "exit status 4 when the second is slower by more, in TTFT or TPOT (video: the generation, training: "
              "the step): 0.02 is 2 %");
}

}  // namespace llmperf::cli
