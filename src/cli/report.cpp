// `llmperf report`: the HTML page of a saved result.
#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/output.h"
#include "report/html/html.h"

namespace llmperf::cli {
namespace {

constexpr std::size_t kMaxResultBytes = std::size_t{256} << 20;

struct ReportFlags {
  std::vector<std::string> results;
  std::string output;
  report::Language language = report::Language::english;
};

// The page, with the file's name in what is said about it.
std::string page_of(const std::string& path, report::Language language) {
  const GivenText json = read_given(path, kMaxResultBytes);
  try {
    return report::render_html(json.text, language);
  } catch (const Error& e) {
    std::vector<Diagnostic> diagnostics = e.diagnostics();
    for (Diagnostic& d : diagnostics) d.where.file = json.name;
    throw Error(e.kind(), std::move(diagnostics));
  }
}

int report_action(const ReportFlags& flags, const Context&) {
  if (flags.results.size() > 1) {
    throw Error::bad_input(fmt::format("a report is of one result, and {} are given", flags.results.size()),
                           "llmperf compare A.json B.json says what lies between two; run report once for each");
  }
  if (flags.output != "-" && !flags.output.ends_with(".html")) {
    throw Error::bad_input("--output: a report is HTML, and not what " + quote(flags.output) + " says",
                           "end the name in .html");
  }
  WrittenFile file(flags.output == "-" ? "" : flags.output);
  const std::string page = page_of(flags.results.front(), flags.language);
  file ? file.commit(page) : write_stdout(page);
  return kExitDone;
}

}  // namespace

void describe_report(Command& command) {
  ReportFlags& flags = command.runs(report_action);
  command.add("RESULT", flags.results, "", "what --json or --export FILE.json wrote; - is stdin")
      .required()
      .offers(Values::Sort::files);
  command.add("-o,--output", flags.output, "FILE", "HTML file to write; - is stdout").required();
  add_language(command, flags.language, "en or zh");
}

}  // namespace llmperf::cli
