// `llmperf explore`: the page that computes by itself, opened at what the flags ask for.
#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/estimate.h"
#include "cli/files.h"
#include "cli/output.h"
#include "descriptor/catalog.h"
#include "report/html/html.h"
#include "service/estimate.h"

namespace llmperf::cli {
namespace {

struct ExploreFlags : RequestFlags {
  std::string output = "llmperf-explorer.html";
  report::Language language = report::Language::english;
};

// A page reads no files: it is given what stands in them.
void take_in(request::Request& request, const request::Field& field, report::FileNames& names) {
  const auto value = get(request, field);
  if (!value || !descriptor::is_path(*value)) return;
  const std::filesystem::path path(*value);
  const std::string file = is_directory(path) ? (path / "config.json").string() : *value;
  if (file.ends_with(".gguf")) {
    throw Error::bad_input(fmt::format("`{}`: a page does not carry a GGUF file", field.name),
                           "open the page without it, and drop the file there");
  }
  set(request, field, descriptor::to_json(descriptor::parse_file(file, descriptor::kConfigRules).root));
  names.emplace_back(field.name, *value);
}

// What an estimate would refuse is told before there is a page of it; what does not fit is shown by the page.
void check_answer(const request::Request& asked) {
  request::Request request;
  for (const request::Field& field : request::fields()) {
    const auto value = field.applies_to(request::Workload::text) ? get(asked, field) : std::nullopt;
    if (value) set(request, field, *value);
  }
  if (!request.model || !request.hw) return;
  request::Sources sources;
  if (sources.is_video(*request.model)) {
    throw Error::bad_input("`model`: the explorer is for language models", "llmperf estimate knows videos, too");
  }
  const service::Estimated estimated(request, sources);
}

int explore_action(const ExploreFlags& flags, const Context&) {
  if (flags.output != "-" && !flags.output.ends_with(".html")) {
    throw Error::bad_input("--output: the explorer is HTML, and not what " + quote(flags.output) + " says",
                           "end the name in .html");
  }
  if (const std::string missing = report::explorer_missing(); !missing.empty()) {
    throw Error::failed(missing, "in the sources: scripts/quickstart.sh --explorer");
  }
  request::Request request = flags.asked();
  WrittenFile file(flags.output == "-" ? "" : flags.output);
  check_answer(request);
  report::FileNames names;
  for (const char* name : {"model", "hw", "runtime"}) take_in(request, request::field(name), names);
  const std::string page = report::render_explorer(to_json(request), names, flags.language);
  if (!file) {
    write_stdout(page);
    return kExitDone;
  }
  file.commit(page);
  write_stdout(fmt::format("{}: open it in a browser\n", flags.output));
  return kExitDone;
}

}  // namespace

void describe_explore(Command& command) {
  ExploreFlags& flags = command.runs(explore_action);
  command.add("-o,--output", flags.output, "FILE", "HTML file to write; - is stdout");
  add_request_file(command, flags);
  command.add_fields(flags.request, "ts");
  add_language(command, flags.language, "en or zh [the browser's]");
  command.find("--lang")->otherwise.clear();
}

}  // namespace llmperf::cli
