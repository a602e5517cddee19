#include "cli/compare_results.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/command_line.h"
#include "cli/shell_words.h"
#include "descriptor/node.h"
#include "report/difference_report.h"

namespace llmperf::cli {
namespace {

using report::Difference;
using report::SavedResult;

// ---- The words of the two requests.

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string long_name(const CLI::Option& option) {
  return option.get_lnames().empty() ? std::string() : "--" + option.get_lnames().front();
}

class RequestWords {
 public:
  RequestWords(const CLI::App& command, const std::vector<std::string>& own) : command_(command) {
    for (const CLI::Option* option : command.get_options()) {
      const std::string name = long_name(*option);
      if (!name.empty() && !contains(own, name) && name != "--help") options_.push_back(option);
    }
  }

  // As given, but for the options in `replaced`.
  std::vector<std::string> words(const std::set<const CLI::Option*>& replaced = {}) const {
    std::vector<std::string> words = {"estimate"};
    for (const CLI::Option* option : options_) {
      if (option->count() == 0 || replaced.count(option) > 0) continue;
      const bool flag = option->get_items_expected_min() == 0;
      words.push_back(flag ? long_name(*option) : long_name(*option) + "=" + option->results().front());
    }
    return words;
  }

  // The options that words of another line set. Throws for words that are none of a request.
  std::set<const CLI::Option*> set_by(const std::vector<std::string>& line) const {
    std::set<const CLI::Option*> set;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string& word = line[i];
      if (word.size() < 2 || word[0] != '-') {
        throw Error::bad_input("--against: unexpected argument " + quote(word),
                               "--against '--weights w4a16 --batch 8'");
      }
      const std::string flag = word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
      const CLI::Option* option = command_.get_option_no_throw(flag);
      if (std::find(options_.begin(), options_.end(), option) == options_.end()) unknown(flag, option != nullptr);
      set.insert(option);
      if (option->get_items_expected_min() > 0 && flag.size() == word.size()) ++i;  // its value
    }
    return set;
  }

 private:
  [[noreturn]] void unknown(const std::string& flag, bool of_compare) const {
    if (of_compare) throw Error::bad_input(fmt::format("--against: {} is no flag of a request", flag), "leave it out");
    std::vector<std::string> names;
    for (const CLI::Option* option : options_) names.push_back(long_name(*option));
    throw Error::bad_input("--against: unknown flag " + quote(flag), name_hint(flag, names));
  }

  const CLI::App& command_;
  std::vector<const CLI::Option*> options_;
};

// ---- The results.

struct Side {
  SavedResult result;
  std::optional<Error> infeasible;  // why there are no times
};

Error renamed(const Error& error, const std::string& prefix) {
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  for (Diagnostic& d : diagnostics) {
    if (d.where.file.empty()) d.message = prefix + d.message;
  }
  return Error(error.kind(), std::move(diagnostics));
}

// `name`: for the report; `prefix`: of messages.
Side run_estimate(const std::vector<std::string>& words, const std::string& name, const std::string& prefix) {
  CapturedReports captured;
  Side side;
  try {
    execute(words);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::infeasible || captured.reports.empty()) throw renamed(error, prefix);
    side.infeasible = renamed(error, prefix);
  }
  side.result = report::read_result(captured.reports.front().json, name);
  return side;
}

Side load_result(const std::string& path) {
  Side side;
  side.result = report::read_result(descriptor::read_text_file(path, report::kMaxResultBytes), path);
  if (!side.result.fits) {
    side.infeasible = Error(ErrorKind::infeasible, {{.where = {path, 0, 0, {}},
                                                     .message = "what it estimates does not fit: it has no times",
                                                     .hint = "compare two results that fit"}});
  }
  return side;
}

int conclude(Side before, Side after, const std::string& which, std::optional<double> limit, Output& output) {
  const Difference d = report::difference(std::move(before.result), std::move(after.result));
  output.write(report::difference_report(d));
  if (before.infeasible) throw *before.infeasible;
  if (after.infeasible) throw *after.infeasible;
  bool slower = false;
  if (limit) {
    for (const report::JudgedTime& time : report::judged_times(d.before.kind)) {
      const report::FigureChange* figure = d.figure(time.key);
      if (figure == nullptr || !figure->before || !figure->after) continue;
      slower |= too_slow(time.title, Seconds{*figure->before}, Seconds{*figure->after}, *limit, which);
    }
  }
  return slower ? kExitThreshold : kExitDone;
}

}  // namespace

bool too_slow(std::string_view what, Seconds before, Seconds after, double limit, const std::string& which) {
  if (!(after.value > before.value * (1 + limit))) return false;
  std::fputs(fmt::format("llmperf: error: {} is {} slower {} ({}, before {}): more than --max-slowdown {}\n", what,
                         before.value > 0 ? format_share(after / before - 1) : std::string("infinitely"), which,
                         format_seconds(after), format_seconds(before), format_share(limit))
                 .c_str(),
             stderr);
  return true;
}

int compare_files(const std::vector<std::string>& files, std::optional<double> limit, const OutputFlags& flags) {
  if (files.size() != 2) {
    throw Error::bad_input(fmt::format("compare takes two saved results, not {}", files.size()),
                           "llmperf compare before.json after.json");
  }
  Side before = load_result(files[0]);
  Side after = load_result(files[1]);
  Output output(flags);
  return conclude(std::move(before), std::move(after), "in " + files[1], limit, output);
}

int compare_against(const CLI::App& command, const std::vector<std::string>& own, const std::string& against,
                    std::optional<double> limit, const OutputFlags& flags) {
  const RequestWords request(command, own);
  const std::vector<std::string> changes = shell_words("--against", against);
  if (changes.empty()) throw Error::bad_input("--against: names no flag", "--against '--weights w4a16 --batch 8'");
  std::vector<std::string> second = request.words(request.set_by(changes));
  second.insert(second.end(), changes.begin(), changes.end());
  Output output(flags);
  Side before = run_estimate(request.words(), "the request", "");
  Side after = run_estimate(second, "with " + against, "--against: ");
  return conclude(std::move(before), std::move(after), "with --against", limit, output);
}

}  // namespace llmperf::cli
