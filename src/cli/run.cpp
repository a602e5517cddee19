// `llmperf run`: a study. Every section is a command whose flags are set by name and whose action is called, so that
// there is one way to do each thing; what it would have printed is caught and arranged as the section asks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "descriptor/catalog.h"
#include "report/document.h"
#include "report/pages/study_view.h"

namespace llmperf::cli {
namespace {

// ---- From the sections of a study to the commands they are.

struct StudyRun {
  std::vector<points::Flag> flags;
  std::vector<std::string> words;  // the whole of its command line
  std::string text() const { return command_text(words); }
};
struct SectionPlan {
  const points::Section* section = nullptr;
  std::vector<StudyRun> runs;  // one, or one for each row
};

// The commands that answer with a table or a page.
const std::vector<std::string> kSectionCommands = {"estimate", "compare",        "explain",  "graph",    "limits",
                                                   "map",      "map-collective", "parallel", "validate", "calibrate",
                                                   "replay",   "sweep",          "serve",    "list",     "show"};

// The command of a section; of `map gemm` it is gemm. Null for one that does not exist.
const Command* command_of(Command& root, const points::Section& section) {
  Command* command = root.find_command(section.command.text);
  if (command == nullptr || section.arguments.empty()) return command;
  const Command* inner = command->find_command(section.arguments.front());
  return inner == nullptr ? command : inner;
}

bool takes(Command& root, const points::Section& section, const points::Flag& flag) {
  const Command* command = command_of(root, section);
  return command != nullptr && command->find("--" + flag.name.text) != nullptr;
}

SectionPlan plan_section(Command& root, const points::StudyFile& study, const points::Section& section) {
  std::vector<points::Flag> defaults;  // those of the study that the command has
  for (const points::Flag& flag : study.flags) {
    if (takes(root, section, flag)) defaults.push_back(flag);
  }
  SectionPlan plan{&section, {}};
  const auto add = [&](std::vector<points::Flag> flags) {
    std::vector<std::string> words = {section.command.text};
    words.insert(words.end(), section.arguments.begin(), section.arguments.end());
    for (std::string& word : points::words_of(flags)) words.push_back(std::move(word));
    plan.runs.push_back({std::move(flags), std::move(words)});
  };
  const auto flags = points::merged(defaults, section.flags);
  for (const auto& row : section.rows) add(points::merged(flags, row));
  if (section.rows.empty()) add(flags);
  return plan;
}

// A flag of the study that no section's command has was misspelt, most likely.
void check_defaults(Command& root, const points::StudyFile& study, std::vector<Diagnostic>& problems) {
  for (const points::Flag& flag : study.flags) {
    const bool taken = std::any_of(study.sections.begin(), study.sections.end(),
                                   [&](const points::Section& section) { return takes(root, section, flag); });
    if (taken) continue;
    std::set<std::string> known;
    for (const points::Section& section : study.sections) {
      const Command* command = command_of(root, section);
      for (const Flag& one : command == nullptr ? std::vector<Flag>() : command->flags) {
        if (!one.is_argument()) known.insert(one.name.substr(2));
      }
    }
    problems.push_back({.where = {study.file, flag.name.line, flag.name.column},
                        .message = fmt::format("no section's command has a flag {}", quote(flag.name.text)),
                        .hint = name_hint(flag.name.text, std::vector<std::string>(known.begin(), known.end()))});
  }
}

bool mentions(const std::string& message, const points::Flag& flag) {
  const std::string name = "--" + flag.name.text;
  const std::size_t at = message.find(name);
  if (at == std::string::npos) return false;
  const std::size_t end = at + name.size();
  return end == message.size() || (std::isalnum(static_cast<unsigned char>(message[end])) == 0 && message[end] != '-');
}

bool quotes_value(const std::string& message, const points::Flag& flag) {
  for (const std::string_view item : split(flag.value, ',')) {
    if (!item.empty() && message.find(quote(item)) != std::string::npos) return true;
  }
  return false;
}

// An error of a run as an error of its file: at the flag that it speaks of, else at the section's command.
Diagnostic placed(const Diagnostic& error, const points::StudyFile& study, const points::Section& section,
                  const StudyRun& run) {
  const points::Word* place = &section.command;
  const auto find = [&](auto&& speaks_of) {
    const auto flag = std::find_if(run.flags.begin(), run.flags.end(),
                                   [&](const points::Flag& f) { return speaks_of(error.message, f); });
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

void check_section(Command& root, const points::StudyFile& study, const SectionPlan& plan,
                   std::vector<Diagnostic>& problems) {
  const points::Word& command = plan.section->command;
  if (!contains(kSectionCommands, command.text)) {
    const std::string message = command.text == "run" ? "a study does not run another"
                                                      : fmt::format("a section has no command {}", quote(command.text));
    problems.push_back({.where = {study.file, command.line, command.column},
                        .message = message,
                        .hint = name_hint(command.text, kSectionCommands)});
    return;
  }
  for (const StudyRun& run : plan.runs) {
    try {
      if (read_words(root, run.words, Apply::no).page) throw Error::bad_input("unknown flag '--help'");
    } catch (const Error& error) {
      for (const Diagnostic& d : error.diagnostics()) problems.push_back(placed(d, study, *plan.section, run));
    }
  }
}

// The runs of the named sections, of all where none is named, in the order of the file. Throws Error(bad_input) for
// sections that do not exist and, all at once, for commands and flags that do not.
std::vector<SectionPlan> plan_study(const points::StudyFile& study, const std::vector<std::string>& names) {
  Command root = all_commands();
  std::vector<SectionPlan> plans;
  std::vector<std::string> known;
  std::vector<Diagnostic> problems;
  check_defaults(root, study, problems);
  for (const points::Section& section : study.sections) {
    known.push_back(section.name);
    SectionPlan plan = plan_section(root, study, section);
    check_section(root, study, plan, problems);
    if (names.empty() || contains(names, section.name)) {
      plans.push_back(std::move(plan));
    }
  }
  for (const std::string& name : names) {
    if (contains(known, name)) continue;
    throw Error::bad_input(fmt::format("--sections: {} has no section {}", study.file, quote(name)),
                           name_hint(name, known));
  }
  if (!problems.empty()) throw Error(ErrorKind::bad_input, problems);
  return plans;
}

// ---- Running it.

struct RunFlags {
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
void run_command(const StudyRun& run, const points::StudyFile& study, Done& done, std::vector<Diagnostic>& errors) {
  const points::Section& section = *done.result.section;
  done.result.commands.push_back(run.text());
  std::vector<report::Report> caught;
  try {
    Command root = all_commands();
    const Words words = read_words(root, run.words, Apply::yes);
    const Context context{.command = run.text(), .given = words.given, .caught = &caught};
    done.result.status = worse(done.result.status, words.command->action(context));
  } catch (const Error& thrown) {
    const Error error = worded(thrown);
    const bool answered = error.kind() == ErrorKind::infeasible && !caught.empty();
    const bool expected = answered && (section.may_not_fit || !section.rows.empty());
    if (section.rows.empty() || !expected) note(done, error);
    if (!expected) {
      for (const Diagnostic& d : error.diagnostics()) errors.push_back(placed(d, study, section, run));
      done.result.status = worse(done.result.status, exit_status(error.kind()));
    }
  }
  for (report::Report& report : caught) done.reports.push_back(std::move(report));
}

// What the section shows of its results.
void arrange(Done& done, const std::string& file) {
  const points::View& view = done.result.section->view;
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

// Where the results of a study go, section by section: to stdout and exports, or to a folder with the files of every
// section and a README.md that joins them.
class Sink {
 public:
  // Makes the folder and opens every file in it. Throws Error(failed) for what cannot be written.
  Sink(const RunFlags& flags, const Context& context, const std::vector<SectionPlan>& plans)
      : folder_(flags.folder), language_(flags.output.language), output_(flags.output, of_study(flags, context)) {
    if (folder_.empty()) return;
    std::error_code problem;
    std::filesystem::create_directories(folder_, problem);
    if (!problem && !std::filesystem::is_directory(folder_)) problem = std::make_error_code(std::errc::not_a_directory);
    if (problem) throw Error::failed(fmt::format("cannot write {}: {}", folder_, problem.message()));
    const auto open = [&](const std::string& name) { files_.try_emplace(name, folder_ + "/" + name); };
    for (const SectionPlan& plan : plans) {
      for (const std::string& form : plan.section->write) open(plan.section->name + "." + form);
    }
    open("README.md");
  }
  ~Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  void section(const Done& done) {
    if (folder_.empty()) return;
    const report::SectionResult& result = done.result;
    for (const std::string& form : result.section->write) {
      const std::string name = result.section->name + "." + form;
      const report::Format format = export_format(name);
      if (format == report::Format::csv) {
        if (!result.rows.columns.empty()) commit(name, render_csv(result.rows));
      } else if (format == report::Format::md) {
        commit(name, render_markdown(section_page(result)));
      } else if (done.reports.size() == 1) {
        const report::Rendering rendering{.language = language_, .command = result.commands.front()};
        commit(name, render(done.reports.front(), format, rendering));
      }
    }
  }
  void whole(const report::Report& report) {
    if (folder_.empty()) return output_.write(report);
    output_.write_files(report);  // stdout lists the files
    commit("README.md", render_markdown(report.document));
  }
  // … of the sections that were done when the user had enough. In a folder their files say it.
  void part(const report::Report& report) {
    if (folder_.empty()) output_.write(report);
  }
  void list_files() const {
    if (!folder_.empty()) write_stdout(join(written_, "\n") + "\n");
  }

 private:
  // Sections written to a folder may be pages, whatever is exported.
  static Context of_study(const RunFlags& flags, const Context& context) {
    return {.command = context.command, .given = flags.folder.empty() ? context.given : std::vector<Given>()};
  }
  void commit(const std::string& name, const std::string& text) {
    WrittenFile& file = files_.at(name);
    file.commit(text);
    written_.push_back(file.path());
  }

  std::string folder_;
  report::Language language_;
  Output output_;
  std::map<std::string, WrittenFile> files_;  // by name
  std::vector<std::string> written_;          // those that are complete, in order
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
    done.result.status = worse(done.result.status, exit_status(error.kind()));
  }
}

void run_sections(const points::StudyFile& study, const std::vector<SectionPlan>& plans, Sink& sink, Results& results) {
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
  for (const ErrorKind kind : {ErrorKind::bad_input, ErrorKind::failed}) {
    if (exit_status(kind) == results.status) throw Error(kind, results.errors);
  }
  throw Error(ErrorKind::infeasible, results.errors);
}

// Ctrl-C: what is done is kept.
int finish_interrupted(points::StudyFile study, const Results& results, std::size_t planned, Sink& sink) {
  const std::string done = fmt::format("interrupted: {} of {} sections were done", results.sections.size(), planned);
  study.title += fmt::format(" ({})", done);
  if (!results.sections.empty()) sink.part(report::study_report(study, results.sections));
  sink.list_files();
  for (const Diagnostic& d : results.errors) {
    const std::string text = report::single_line(format_diagnostic({d.where, d.message, {}}));
    fmt::print(stderr, "llmperf: error: {}\n", text);
  }
  fmt::print(stderr, "llmperf: {}\n", done);
  return kExitInterrupted;
}

void print_commands(const points::StudyFile& study, const std::vector<SectionPlan>& plans, bool json) {
  std::vector<report::SectionResult> sections;
  for (const SectionPlan& plan : plans) {
    report::SectionResult& section = sections.emplace_back();
    section.section = plan.section;
    section.notes.emplace_back("Not run.");
    for (const StudyRun& run : plan.runs) {
      section.commands.push_back(run.text());
      if (!json) write_stdout(run.text() + "\n");
    }
  }
  if (json) write_stdout(report::study_report(study, sections).json);
}

int run_action(const RunFlags& flags, const Context& context) {
  const points::StudyFile study = points::load_study(flags.scenario);
  const auto names = flags.sections.empty() ? std::vector<std::string>{} : list_value("--sections", flags.sections);
  const std::vector<SectionPlan> plans = plan_study(study, names);
  if (flags.dry_run) {
    print_commands(study, plans, flags.output.json || flags.output.format == "json");
    return kExitDone;
  }
  if (flags.output.format == "csv" && plans.size() != 1) {
    throw Error::bad_input("--format csv is one table, and this study has several",
                           "--sections NAME chooses one, -o DIR writes each to a file");
  }
  const InterruptGuard guard;
  Sink sink(flags, context, plans);
  Results results;
  run_sections(study, plans, sink, results);
  if (results.status == kExitInterrupted) return finish_interrupted(study, results, plans.size(), sink);
  sink.whole(report::study_report(study, results.sections));
  sink.list_files();
  return finish(results);
}

}  // namespace

void describe_run(Command& command) {
  RunFlags& flags = command.runs(run_action);
  command.add("SCENARIO", flags.scenario, "", "built-in name (llmperf list scenarios) or YAML file")
      .required()
      .offers(Values::Sort::paths, [] { return descriptor::names(descriptor::Kind::scenario); });
  command
      .add("-o,--output", flags.folder, "DIR",
           "write README.md and the files of every section into DIR instead of printing")
      .without("--format")
      .without("--json");
  command.add("--sections", flags.sections, "LIST", "only these, by the names of their files");
  command.add("--dry-run", flags.dry_run, "print the commands that the sections are")
      .without("--output")
      .without("--export");
  add_output_flags(command, flags.output);
}

}  // namespace llmperf::cli
