// `llmperf report`: the HTML page of a saved result.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <iterator>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/values.h"
#include "cli/written_file.h"
#include "descriptor/node.h"
#include "report/html.h"

namespace llmperf::cli {
namespace {

constexpr std::size_t kMaxResultBytes = std::size_t{256} << 20;

struct Flags {
  std::vector<std::string> results;
  std::string output;
  std::string language = "en";
};

std::string read_result(const std::string& path) {
  if (path != "-") return descriptor::read_text_file(path, kMaxResultBytes);
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

// The page, with the file's name in what is said about it.
std::string page_of(const std::string& path, report::Language language) {
  const std::string json = read_result(path);
  try {
    return report::render_html(json, language);
  } catch (const Error& e) {
    std::vector<Diagnostic> diagnostics = e.diagnostics();
    for (Diagnostic& d : diagnostics) d.where.file = path == "-" ? "(stdin)" : path;
    throw Error(e.kind(), std::move(diagnostics));
  }
}

int report_action(const Flags& flags) {
  if (flags.results.size() > 1) {
    throw Error::bad_input(fmt::format("a report is of one result, and {} are given", flags.results.size()),
                           "llmperf compare A.json B.json says what lies between two; run report once for each");
  }
  const report::Language language = language_value(flags.language);
  if (flags.output != "-" && !flags.output.ends_with(".html")) {
    throw Error::bad_input("--output: a report is HTML, and not what " + quote(flags.output) + " says",
                           "end the name in .html");
  }
  std::optional<WrittenFile> file;
  if (flags.output != "-") file.emplace(flags.output);
  const std::string page = page_of(flags.results.front(), language);
  file ? file->commit(page) : write_stdout(page);
  return kExitDone;
}

}  // namespace

void add_report(CLI::App& root, Action& action) {
  CLI::App* command = root.add_subcommand("report", "HTML report of a result that a command saved as JSON");
  auto flags = std::make_shared<Flags>();
  command->add_option("RESULT", flags->results, "what --json or --export FILE.json wrote; - is stdin")->required();
  command->add_option("-o,--output", flags->output, "HTML file to write; - is stdout")->type_name("FILE")->required();
  command->add_option("--lang", flags->language, "en or zh")->type_name("LANG")->capture_default_str();
  command->callback([flags, &action] { action = [flags] { return report_action(*flags); }; });
}

}  // namespace llmperf::cli
