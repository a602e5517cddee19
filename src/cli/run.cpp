// `llmperf run`: a study. Every section is a command that execute() runs as if it had been typed, so that there is one
// way to do each thing; what it would have printed is caught and arranged as the section asks.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/progress.h"
#include "cli/study_folder.h"
#include "cli/study_plan.h"
#include "cli/values.h"
#include "report/single_line.h"
#include "report/study_report.h"
#include "report/study_view.h"

namespace llmperf::cli {
namespace {

struct Flags {
  std::string scenario;
  std::string folder;
  std::string sections;
  bool dry_run = false;
  OutputFlags output;
};

// The exit statuses of a study, the one that matters most first.
constexpr std::array kStatuses = {kExitInterrupted, kExitUsage, kExitFailed, kExitInfeasible, kExitThreshold};

int worse(int a, int b) {
  const auto* found = std::find_if(kStatuses.begin(), kStatuses.end(), [&](int s) { return s == a || s == b; });
  return found == kStatuses.end() ? kExitDone : *found;
}

int status_of(ErrorKind kind) {
  return kind == ErrorKind::bad_input ? kExitUsage : kind == ErrorKind::failed ? kExitFailed : kExitInfeasible;
}

// A section while it runs.
struct Done {
  report::SectionResult result;
  std::vector<report::Report> reports;
};

// What the page of a section says of an error.
void note(Done& done, const Error& error) {
  const bool of_rows = !done.result.section->rows.empty();
  for (const Diagnostic& d : error.diagnostics()) {
    const std::string row = of_rows ? fmt::format("Row {}: ", done.result.commands.size()) : "";
    done.result.notes.push_back(row + d.message + ".");
  }
}

// Runs one command of a section. What does not fit is an answer where the section says so, and in a table, where a
// column says it of every row; its report is there all the same. Any other error is the section's: the rest goes on.
void run_command(const StudyRun& run, const study::Study& study, Done& done, std::vector<Diagnostic>& errors) {
  const study::Section& section = *done.result.section;
  done.result.commands.push_back(command_text(run.words));
  CapturedReports captured;
  try {
    done.result.status = worse(done.result.status, execute(run.words));
  } catch (const Error& error) {
    const bool answered = error.kind() == ErrorKind::infeasible && !captured.reports.empty();
    const bool expected = answered && (section.may_not_fit || !section.rows.empty());
    if (section.rows.empty() || !expected) note(done, error);
    if (!expected) {
      for (const Diagnostic& d : error.diagnostics()) errors.push_back(placed(d, study, section, run));
      done.result.status = worse(done.result.status, status_of(error.kind()));
    }
  }
  for (report::Report& report : captured.reports) done.reports.push_back(std::move(report));
}

// What the section shows of its results.
void arrange(Done& done, const std::string& file) {
  const study::View& view = done.result.section->view;
  std::vector<report::Table> tables;
  for (const report::Report& report : done.reports) tables.push_back(report.csv);
  if (tables.empty()) return;
  done.result.rows = report::chosen_rows(view, report::joined(tables), file);
  if (view.of_rows() || done.reports.size() > 1) {
    done.result.page = report::shown_rows(view, done.result.rows, file);
  } else {
    done.result.page = report::chosen_parts(view.parts, done.reports.front().document, file);
  }
}

// Where the results of a study go, section by section.
class Sink {
 public:
  Sink(const Flags& flags, const std::vector<SectionPlan>& plans) : output_(flags.output) {
    if (!flags.folder.empty()) folder_.emplace(flags.folder, plans, language_value(flags.output.language));
  }
  void section(const Done& done) {
    if (folder_) folder_->write(done.result, done.reports.size() == 1 ? &done.reports.front() : nullptr);
  }
  void whole(const report::Report& report) {
    if (!folder_) return output_.write(report);
    const CapturedReports quiet;  // the exports are written, stdout lists the files
    output_.write(report);
    folder_->write_readme(report);
  }
  // … of the sections that were done when the user had enough. In a folder their files say it.
  void part(const report::Report& report) {
    if (!folder_) output_.write(report);
  }
  ~Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  void list_files() const {
    if (folder_) write_stdout(join(folder_->written(), "\n") + "\n");
  }

 private:
  Output output_;
  std::optional<StudyFolder> folder_;
};

struct Results {
  std::vector<report::SectionResult> sections;
  std::vector<Diagnostic> errors;  // in their places
  int status = kExitDone;          // the worst of them all
};

// What a section asks of its results may not be there; that is its failure, as a wrong value is.
void arrange_section(Done& done, const std::string& file, std::vector<Diagnostic>& errors) {
  try {
    arrange(done, file);
  } catch (const Error& error) {
    for (const Diagnostic& d : error.diagnostics()) {
      errors.push_back(d);
      done.result.notes.push_back(d.message + ".");
    }
    done.result.status = worse(done.result.status, status_of(error.kind()));
  }
}

void run_sections(const study::Study& study, const std::vector<SectionPlan>& plans, Sink& sink, Results& results) {
  std::size_t all = 0, count = 0;
  for (const SectionPlan& plan : plans) all += plan.runs.size();
  Progress progress;
  for (const SectionPlan& plan : plans) {
    Done done;
    done.result.section = plan.section;
    for (const StudyRun& run : plan.runs) {
      if (!progress(count++, all, plan.section->title)) results.status = kExitInterrupted;
      if (results.status == kExitInterrupted) return;
      run_command(run, study, done, results.errors);
    }
    arrange_section(done, study.file, results.errors);
    if (interrupted()) done.result.status = kExitInterrupted;
    results.status = worse(results.status, done.result.status);
    if (results.status == kExitInterrupted) return;
    sink.section(done);
    results.sections.push_back(std::move(done.result));
  }
}

// The errors of a study's sections are told together, under the status that matters most.
int finish(const Results& results) {
  if (results.errors.empty()) return results.status;
  const auto kind = results.status == kExitUsage    ? ErrorKind::bad_input
                    : results.status == kExitFailed ? ErrorKind::failed
                                                    : ErrorKind::infeasible;
  throw Error(kind, results.errors);
}

// Ctrl-C: what is done is kept.
int finish_interrupted(study::Study study, const Results& results, std::size_t planned, Sink& sink) {
  const std::string done = fmt::format("interrupted: {} of {} sections were done", results.sections.size(), planned);
  study.title += fmt::format(" ({})", done);
  if (!results.sections.empty()) sink.part(report::study_report(study, results.sections));
  sink.list_files();
  for (const Diagnostic& d : results.errors) {
    const std::string text = report::single_line(format_diagnostic({d.where, d.message, {}}));
    std::fputs(fmt::format("llmperf: error: {}\n", text).c_str(), stderr);
  }
  std::fputs(fmt::format("llmperf: {}\n", done).c_str(), stderr);
  return kExitInterrupted;
}

void print_commands(const std::vector<SectionPlan>& plans) {
  for (const SectionPlan& plan : plans) {
    for (const StudyRun& run : plan.runs) write_stdout(command_text(run.words) + "\n");
  }
}

int run_action(const Flags& flags) {
  const study::Study study = study::load_study(flags.scenario);
  const auto names = flags.sections.empty() ? std::vector<std::string>{} : list_value("--sections", flags.sections);
  const std::vector<SectionPlan> plans = plan_study(study, names);
  if (flags.dry_run) {
    print_commands(plans);
    return kExitDone;
  }
  if (flags.output.format == "csv" && plans.size() != 1) {
    throw Error::bad_input("--format csv is one table, and this study has several",
                           "--sections NAME chooses one, -o DIR writes each to a file");
  }
  const InterruptGuard guard;
  Sink sink(flags, plans);
  Results results;
  run_sections(study, plans, sink, results);
  if (results.status == kExitInterrupted) return finish_interrupted(study, results, plans.size(), sink);
  sink.whole(report::study_report(study, results.sections));
  sink.list_files();
  return finish(results);
}

}  // namespace

void add_run(CLI::App& root, Action& action) {
  CLI::App* command = root.add_subcommand("run", "a study from a scenario file: its sections as one page, or as files");
  auto flags = std::make_shared<Flags>();
  command->add_option("SCENARIO", flags->scenario, "built-in name (llmperf list scenarios) or YAML file")->required();
  CLI::Option* folder = command->add_option(
      "-o,--output", flags->folder, "write README.md and the files of every section into DIR instead of printing");
  folder->type_name("DIR");
  command->add_option("--sections", flags->sections, "only these, by the names of their files")->type_name("LIST");
  command->add_flag("--dry-run", flags->dry_run, "print the commands that the sections are")->excludes(folder);
  add_output_flags(*command, flags->output);
  folder->excludes(command->get_option("--format"))->excludes(command->get_option("--json"));
  command->callback([flags, &action] { action = [flags] { return run_action(*flags); }; });
}

}  // namespace llmperf::cli
