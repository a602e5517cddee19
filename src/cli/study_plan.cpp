#include "cli/study_plan.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <set>

#include "base/text.h"
#include "cli/command_line.h"

namespace llmperf::cli {
namespace {

// The commands that answer with a table or a page.
const std::vector<std::string>& section_commands() {
  static const std::vector<std::string> kNames = {"estimate", "compare",        "explain",  "graph",    "limits",
                                                  "map",      "map-collective", "parallel", "validate", "calibrate",
                                                  "replay",   "sweep",          "list",     "show"};
  return kNames;
}

const CLI::App* find_command(const CLI::App& above, const std::string& name) {
  const auto found = above.get_subcommands([&](const CLI::App* app) { return app->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

// The command of a section; of `map gemm` it is gemm. Null for one that does not exist.
const CLI::App* command_of(const CLI::App& root, const study::Section& section) {
  const CLI::App* command = find_command(root, section.command.text);
  if (command == nullptr || section.arguments.empty()) return command;
  const CLI::App* inner = find_command(*command, section.arguments.front());
  return inner == nullptr ? command : inner;
}

bool takes(const CLI::App& root, const study::Section& section, const study::Flag& flag) {
  const CLI::App* command = command_of(root, section);
  return command != nullptr && command->get_option_no_throw("--" + flag.name.text) != nullptr;
}

std::vector<std::string> flags_of_all(const CLI::App& root, const study::Study& study) {
  std::set<std::string> names;
  for (const study::Section& section : study.sections) {
    const CLI::App* command = command_of(root, section);
    if (command == nullptr) continue;
    for (const CLI::Option* option : command->get_options()) {
      names.insert(option->get_lnames().begin(), option->get_lnames().end());
    }
  }
  return {names.begin(), names.end()};
}

// The study's flags that the command has.
std::vector<study::Flag> defaults(const CLI::App& root, const study::Study& study, const study::Section& section) {
  std::vector<study::Flag> flags;
  for (const study::Flag& flag : study.flags) {
    if (takes(root, section, flag)) flags.push_back(flag);
  }
  return flags;
}

StudyRun run_of(const study::Section& section, std::vector<study::Flag> flags) {
  StudyRun run{{section.command.text}, std::move(flags)};
  run.words.insert(run.words.end(), section.arguments.begin(), section.arguments.end());
  for (std::string& word : study::words_of(run.flags)) run.words.push_back(std::move(word));
  return run;
}

SectionPlan plan_section(const CLI::App& root, const study::Study& study, const study::Section& section) {
  SectionPlan plan{&section, {}};
  const auto flags = study::merged(defaults(root, study, section), section.flags);
  for (const auto& row : section.rows) plan.runs.push_back(run_of(section, study::merged(flags, row)));
  if (section.rows.empty()) plan.runs.push_back(run_of(section, flags));
  return plan;
}

// A flag of the study that no section's command has was misspelt, most likely.
void check_defaults(const CLI::App& root, const study::Study& study, std::vector<Diagnostic>& problems) {
  for (const study::Flag& flag : study.flags) {
    const bool taken = std::any_of(study.sections.begin(), study.sections.end(),
                                   [&](const study::Section& section) { return takes(root, section, flag); });
    if (taken) continue;
    problems.push_back({.where = {study.file, flag.name.line, flag.name.column},
                        .message = fmt::format("no section's command has a flag {}", quote(flag.name.text)),
                        .hint = name_hint(flag.name.text, flags_of_all(root, study))});
  }
}

void check_section(const study::Study& study, const SectionPlan& plan, std::vector<Diagnostic>& problems) {
  const study::Word& command = plan.section->command;
  const auto& known = section_commands();
  if (std::find(known.begin(), known.end(), command.text) == known.end()) {
    const std::string message = command.text == "run" ? "a study does not run another"
                                                      : fmt::format("a section has no command {}", quote(command.text));
    problems.push_back({.where = {study.file, command.line, command.column},
                        .message = message,
                        .hint = name_hint(command.text, known)});
    return;
  }
  for (const StudyRun& run : plan.runs) {
    try {
      check_command(run.words);
    } catch (const Error& error) {
      for (const Diagnostic& d : error.diagnostics()) problems.push_back(placed(d, study, *plan.section, run));
    }
  }
}

bool mentions(const std::string& message, const study::Flag& flag) {
  const std::string name = "--" + flag.name.text;
  const std::size_t at = message.find(name);
  if (at == std::string::npos) return false;
  const std::size_t end = at + name.size();
  return end == message.size() || (std::isalnum(static_cast<unsigned char>(message[end])) == 0 && message[end] != '-');
}

bool quotes_value(const std::string& message, const study::Flag& flag) {
  for (const std::string_view item : split(flag.value, ',')) {
    if (!item.empty() && message.find(quote(item)) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

std::vector<SectionPlan> plan_study(const study::Study& study, const std::vector<std::string>& names) {
  CLI::App root{kProgramDescription};
  Action action;
  add_commands(root, action);
  std::vector<SectionPlan> plans;
  std::vector<std::string> known;
  std::vector<Diagnostic> problems;
  check_defaults(root, study, problems);
  for (const study::Section& section : study.sections) {
    known.push_back(section.name);
    const SectionPlan plan = plan_section(root, study, section);
    check_section(study, plan, problems);
    if (names.empty() || std::find(names.begin(), names.end(), section.name) != names.end()) plans.push_back(plan);
  }
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw Error::bad_input(fmt::format("--sections: {} has no section {}", study.file, quote(name)),
                           name_hint(name, known));
  }
  if (!problems.empty()) throw Error(ErrorKind::bad_input, problems);
  return plans;
}

Diagnostic placed(const Diagnostic& error, const study::Study& study, const study::Section& section,
                  const StudyRun& run) {
  const study::Word* place = &section.command;
  const auto find = [&](auto&& speaks_of) {
    const auto flag = std::find_if(run.flags.begin(), run.flags.end(),
                                   [&](const study::Flag& f) { return speaks_of(error.message, f); });
    if (flag != run.flags.end()) place = &flag->name;
    return flag != run.flags.end();
  };
  if (!find(mentions)) find(quotes_value);
  Diagnostic there = error;
  there.hint.clear();
  return {.where = {study.file, place->line, place->column},
          .message = fmt::format("section {}: {}", quote(section.title), format_diagnostic(there)),
          .hint = error.hint};
}

}  // namespace llmperf::cli
