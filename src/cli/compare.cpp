// `llmperf compare`: what lies between two results or more, saved ones or those of a request, of the same request with
// some fields changed and on other devices; or what each runtime option between two sets is worth, and where.
#include "estimate/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/number.h"
#include "base/text.h"
#include "cli/command_line.h"
#include "cli/estimate.h"
#include "cli/output.h"
#include "cli/values.h"
#include "descriptor/node.h"
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
  std::string max_slowdown;
  OutputFlags output;
};

// Whether `after` is slower than `before` by more than `limit`; says so on stderr. `which`: what is slower, "with
// --with".
bool too_slow(std::string_view what, Seconds before, Seconds after, double limit, const std::string& which) {
  if (!(after.value > before.value * (1 + limit))) return false;
  std::fputs(fmt::format("llmperf: error: {} is {} slower {} ({}, before {}): more than --max-slowdown {}\n", what,
                         before.value > 0 ? format_share(after / before - 1) : std::string("infinitely"), which,
                         format_seconds(after), format_seconds(before), format_share(limit))
                 .c_str(),
             stderr);
  return true;
}

// ---- Two results, or several with the first of them.

struct Side {
  result::SavedResult result;
  std::optional<Error> infeasible = std::nullopt;  // why there are no times
  std::string which = {};                          // "with --against", of one that is slower
};

int conclude(const std::vector<Side>& sides, std::optional<double> limit, Output& output) {
  const result::SavedResult& first = sides.front().result;
  result::Differences differences;
  for (const Side& side : sides) differences.results.push_back(difference(first, side.result));
  output.write(sides.size() == 2 ? report::difference_report(differences.results.back())
                                 : report::differences_report(differences));
  // There is something to compare when the first and another one have times.
  if (sides.front().infeasible) throw Error(*sides.front().infeasible);
  if (std::all_of(sides.begin() + 1, sides.end(), [](const Side& side) { return side.infeasible.has_value(); })) {
    throw Error(*sides[1].infeasible);
  }
  bool slower = false;
  for (std::size_t i = 1; limit && i < sides.size(); ++i) {
    for (const result::JudgedTime& time : first.kind->judged) {
      const result::FigureChange* figure = differences.results[i].figure(time.key);
      if (figure == nullptr || !figure->before || !figure->after) continue;
      slower |= too_slow(time.title, Seconds{*figure->before}, Seconds{*figure->after}, *limit, sides[i].which);
    }
  }
  return slower ? kExitThreshold : kExitDone;
}

Side load_result(const std::string& path) {
  Side side{result::read_result(descriptor::read_text_file(path, result::kMaxResultBytes), path)};
  side.which = "in " + path;
  if (!side.result.fits) {
    side.infeasible = Error(ErrorKind::infeasible, {{.where = {path, 0, 0, {}},
                                                     .message = "what it estimates does not fit: it has no times",
                                                     .hint = "compare two results that fit"}});
  }
  return side;
}

int compare_files(const CompareFlags& flags, const Context& context, std::optional<double> limit) {
  for (const Given& given : context.given) {
    constexpr std::string_view kOwn[] = {"results", "--max-slowdown", "--format", "--export", "--json", "--lang"};
    if (std::find(std::begin(kOwn), std::end(kOwn), given.flag) != std::end(kOwn)) continue;
    throw Error::bad_input(fmt::format("{} has no meaning beside saved results", given.flag), "leave it out");
  }
  if (flags.files.size() < 2) {
    throw Error::bad_input(fmt::format("compare takes at least two saved results, not {}", flags.files.size()),
                           "llmperf compare before.json after.json");
  }
  std::vector<Side> sides;
  for (const std::string& file : flags.files) sides.push_back(load_result(file));
  Output output(flags.output, context);
  return conclude(sides, limit, output);
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
    const auto resolved = resolve(request, sources);
    Answer answered = answer(*resolved, report::Detail::summary, true);
    Side side{result::read_result(answered.report.json, name)};
    if (answered.infeasible) side.infeasible = prefixed(*answered.infeasible, prefix);
    return side;
  } catch (const Error& error) {
    throw prefixed(error, prefix);
  }
}

// ---- Words of a line as a POSIX shell splits them, without anything that it would expand.

class Splitter {
 public:
  Splitter(std::string_view flag, std::string_view line) : flag_(flag), line_(line) {}

  std::vector<std::string> split() {
    while (at_ < line_.size()) {
      const char c = line_[at_++];
      if (c == ' ' || c == '\t' || c == '\n') {
        end_word();
      } else if (c == '\'' || c == '"') {
        quoted(c);
      } else if (c == '\\') {
        escaped();
      } else {
        append(c);
      }
    }
    end_word();
    return std::move(words_);
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw Error::bad_input(fmt::format("{}: {} in {}", flag_, what, quote(line_)), "write it as in a shell");
  }
  void append(char c) {
    word_ += c;
    open_ = true;
  }
  void end_word() {
    if (open_) words_.push_back(std::move(word_));
    word_.clear();
    open_ = false;
  }
  void escaped() {
    if (at_ == line_.size()) fail("a backslash ends the line");
    append(line_[at_++]);
  }
  // Between double quotes a backslash escapes only quotes and itself.
  void quoted(char closing) {
    open_ = true;
    for (; at_ < line_.size() && line_[at_] != closing; ++at_) {
      const bool escapes = closing == '"' && line_[at_] == '\\' && at_ + 1 < line_.size() &&
                           (line_[at_ + 1] == '"' || line_[at_ + 1] == '\\');
      if (escapes) ++at_;
      word_ += line_[at_];
    }
    if (at_ == line_.size()) fail("a quote is not closed");
    ++at_;
  }

  std::string_view flag_;
  std::string_view line_;
  std::size_t at_ = 0;
  std::string word_;
  bool open_ = false;  // a word has begun, if only with empty quotes
  std::vector<std::string> words_;
};

// Quotes and backslashes are honoured. Throws Error(bad_input), naming `flag`, where one is not closed.
std::vector<std::string> shell_words(std::string_view flag, std::string_view line) {
  return Splitter(flag, line).split();
}

// The request with the flags of a line as well, and instead.
Request changed(const Request& request, const std::string& line) {
  const std::vector<std::string> words = shell_words("--against", line);
  if (words.empty()) throw Error::bad_input("--against: names no flag", "--against '--weights w4a16 --batch 8'");
  Request second = request;
  Command fields{.name = "--against", .about = {}};
  fields.add_fields(second, "tvr");
  constexpr std::string_view kOwn[] = {"--against", "--with", "--max-slowdown", "--format",
                                       "--export",  "--json", "--lang"};
  for (const std::string& word : words) {
    const std::string flag = flag_of(word);
    if (std::find(std::begin(kOwn), std::end(kOwn), flag) == std::end(kOwn)) continue;
    throw Error::bad_input(fmt::format("--against: {} is no flag of a request", flag), "leave it out");
  }
  try {
    const Words read = read_words(fields, words);
    for (const Given& given : read.given) {
      if (!given.flag.empty()) continue;
      throw Error::bad_input("unexpected argument " + quote(given.value), "--against '--weights w4a16 --batch 8'");
    }
    apply(read);
  } catch (const Error& error) {
    throw prefixed(error, "--against: ");
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
int compare_requests(const CompareFlags& flags, const Context& context, std::optional<double> limit) {
  std::vector<Request> others;
  Request first = flags.request;
  const bool several = first.hw == "all" || first.hw->find(',') != std::string::npos;
  if (several && !flags.against.empty()) first.hw = list_value("--hw", *first.hw).front();
  for (const std::string& line : flags.against) others.push_back(changed(first, line));
  Output output(flags.output, context);
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
  return conclude(sides, limit, output);
}

// ---- Runtime options, one by one.

constexpr const char* kSecondSet = "with --with";

// Messages name the flag that was given.
template <class Choose>
auto second_choices(Choose&& choose) {
  try {
    return choose();
  } catch (const Error& error) {
    std::vector<Diagnostic> diagnostics = worded(error).diagnostics();
    constexpr std::string_view kFlag = "--options:";
    for (Diagnostic& d : diagnostics) {
      if (d.message.starts_with(kFlag)) d.message.replace(0, kFlag.size(), "--with:");
    }
    throw Error(error.kind(), std::move(diagnostics));
  }
}

[[noreturn]] void throw_infeasible(std::string message, const std::string& options) {
  throw Error(ErrorKind::infeasible,
              {{.where = {},
                .message = std::move(message),
                .hint = fmt::format("llmperf estimate --options {} says what would make it fit", options)}});
}

int compare_videos(const CompareFlags& flags, const Context& context, std::optional<double> limit, const Resolved& r,
                   const std::string& execution) {
  const estimate::VideoChoices& first = std::get<request::Video>(r.work).choices;
  const auto second = second_choices([&] { return video_choices_with_options(r, flags.with); });
  const estimate::VideoSetup setup = make_video_setup(r.video, r.device, first);
  Output output(flags.output, context);
  const estimate::VideoComparison comparison = estimate::compare(r.video, r.device, first, second, execution);
  output.write(report::compare_report(setup, comparison));
  const auto& steps = comparison.steps;
  for (const estimate::VideoCompareStep* step : {&steps.front(), &steps.back()}) {
    if (step->fits) continue;
    throw_infeasible(
        fmt::format("{} does not fit on {} with --options {}: needs {}, has {}", r.video.name, r.device.name,
                    step->options, format_bytes_binary(step->memory), format_bytes_binary(*r.device.dram().capacity)),
        step->options);
  }
  return limit && too_slow("generation", *steps.front().generation, *steps.back().generation, *limit, kSecondSet)
             ? kExitThreshold
             : kExitDone;
}

int compare_options(const CompareFlags& flags, const Context& context, std::optional<double> limit) {
  Request asked = flags.request;
  if (!asked.options) asked.options = "none";
  const std::string execution = asked.execution.value_or("");
  request::Sources sources;
  const auto resolved = resolve(asked, sources, request::Unused::taken);
  const Resolved& r = *resolved;
  if (std::holds_alternative<request::Video>(r.work)) return compare_videos(flags, context, limit, r, execution);
  const auto& text = std::get<request::Generation>(r.work);
  const auto second = second_choices([&] { return choices_with_options(r, flags.with); });
  Output output(flags.output, context);
  const estimate::Comparison comparison =
      estimate::compare(r.model(), r.device, text.choices, second, execution, text.scenario);
  output.write(report::compare_report(text.estimator->setup(), text.scenario, execution, comparison));
  const estimate::CompareStep& before = comparison.steps.front();
  const estimate::CompareStep& after = comparison.steps.back();
  for (const estimate::CompareStep* step : {&before, &after}) {
    if (step->fits) continue;
    const Bytes capacity = *r.device.dram().capacity;
    const bool on_device = step->memory > capacity;
    throw_infeasible(
        fmt::format("{} at batch {} does not fit on {} with --options {}{}", r.model().name, text.scenario.batch,
                    on_device ? r.device.name : "the host, " + r.host.name, step->options,
                    on_device ? fmt::format(": needs {}, has {}", format_bytes_binary(step->memory),
                                            format_bytes_binary(capacity))
                              : ""),
        step->options);
  }
  if (!limit) return kExitDone;
  const bool prefill = too_slow("TTFT", *before.ttft, *after.ttft, *limit, kSecondSet);
  const bool decode = before.tpot && too_slow("TPOT", *before.tpot, *after.tpot, *limit, kSecondSet);
  return prefill || decode ? kExitThreshold : kExitDone;
}

int compare_action(const CompareFlags& flags, const Context& context) {
  std::optional<double> limit;
  if (!flags.max_slowdown.empty()) limit = double_value("--max-slowdown", flags.max_slowdown, 0, 1000);
  if (!flags.files.empty()) return compare_files(flags, context, limit);
  check_complete(flags.request, "or two saved results: llmperf compare before.json after.json");
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
  if (flags.request.training && !flags.with.empty()) {
    throw Error::bad_input("--with compares steps of inference", "--training --against '--options none'");
  }
  return flags.with.empty() ? compare_requests(flags, context, limit) : compare_options(flags, context, limit);
}

}  // namespace

void add_compare(Command& root) {
  Command& command = root.add_command(
      "compare",
      "results, saved or of several sets of flags or devices: what changed, where and why; or what runtime options "
      "are worth");
  auto flags = std::make_shared<CompareFlags>();
  command.add("results", flags->files, "FILE",
              "results that llmperf estimate saved as JSON: two, or several that are compared with the first");
  command.add_fields(flags->request, "tvr");
  command.add("--against", flags->against, "FLAGS",
              "flags that a second request has as well, or instead: '--weights w4a16 --batch 8'; repeatable");
  command
      .add("--with", flags->with, "LIST",
           "a second set of runtime options, written like --options, which is the first [none]: what each is worth")
      .values = request::field("options").values;
  command.add("--max-slowdown", flags->max_slowdown, "SHARE",
              "exit status 4 when the second is slower by more, in TTFT or TPOT (video: the generation, training: "
              "the step): 0.02 is 2 %");
  add_output_flags(command, flags->output);
  command.action = [flags](const Context& context) { return compare_action(*flags, context); };
}

}  // namespace llmperf::cli
