#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/values.h"
#include "cli/written_file.h"

namespace llmperf::cli {
namespace {

bool colour_wanted() {
  const char* no_colour = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) == 1 && (no_colour == nullptr || *no_colour == '\0');
}

}  // namespace

// An export.
struct Output::File : WrittenFile {
  report::Format format;
  File(const std::string& path, report::Format f) : WrittenFile(path), format(f) {}
};

void add_output_flags(CLI::App& command, OutputFlags& flags) {
  CLI::Option* format = command.add_option("--format", flags.format, "table, csv, json or md");
  format->type_name("FORMAT")->capture_default_str();
  command.add_flag("--json", flags.json, "short for --format json")->excludes(format);
  command
      .add_option("--export", flags.exports,
                  "also write FILE; .json, .csv or .md says the format; - is stdout (repeatable)")
      ->type_name("FILE")
      ->take_all()
      ->allow_extra_args(false);  // one FILE each: the next word is not another
}

Output::Output(const OutputFlags& flags, const std::string& companion)
    : format_(flags.json ? report::Format::json : format_value("--format", flags.format)) {
  std::set<std::filesystem::path> seen;
  for (const std::string& path : flags.exports) {
    if (!seen.insert(std::filesystem::path(path).lexically_normal()).second) {
      throw Error::bad_input("--export: " + quote(path) + " is given more than once");
    }
    if (path != "-") files_.push_back(std::make_unique<File>(path, export_format(path)));
  }
  if (!companion.empty()) companion_ = std::make_unique<File>(companion, report::Format::table);
}

Output::~Output() = default;

bool Output::wants(report::Format format) const {
  return format_ == format ||
         std::any_of(files_.begin(), files_.end(), [&](const auto& file) { return file->format == format; });
}

void Output::write(const report::Report& report, const std::string& companion) {
  for (const auto& file : files_) file->commit(report::render(report, file->format));
  if (companion_) companion_->commit(companion);
  write_stdout(report::render(report, format_, colour_wanted()));
}

void write_stdout(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw Error::failed(fmt::format("cannot write stdout: {}", std::strerror(errno)));
  }
}

}  // namespace llmperf::cli
