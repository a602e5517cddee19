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

namespace llmperf::cli {
namespace {

void write_all(std::FILE* file, const std::string& text, std::string_view path) {
  if (std::fwrite(text.data(), 1, text.size(), file) != text.size() || std::fflush(file) != 0) {
    throw Error::failed(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  }
}

bool colour_wanted() {
  const char* no_colour = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) == 1 && (no_colour == nullptr || *no_colour == '\0');
}

}  // namespace

// An export under a temporary name next to its own, renamed when it is complete.
struct Output::File {
  std::string path;
  std::string temporary;
  report::Format format;
  std::FILE* stream = nullptr;

  File(const std::string& p, report::Format f)
      : path(p), temporary(fmt::format("{}.{}.partial", p, getpid())), format(f) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
      throw Error::failed(fmt::format("cannot write {}: {}", path, std::strerror(EISDIR)));
    }
    stream = std::fopen(temporary.c_str(), "wb");
    if (stream == nullptr) throw Error::failed(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  }
  ~File() {
    if (stream == nullptr) return;
    std::fclose(stream);
    std::remove(temporary.c_str());
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void commit(const std::string& text) {
    write_all(stream, text, path);
    const bool closed = std::fclose(stream) == 0;
    stream = nullptr;
    if (!closed || std::rename(temporary.c_str(), path.c_str()) != 0) {
      const std::string reason = std::strerror(errno);
      std::remove(temporary.c_str());
      throw Error::failed(fmt::format("cannot write {}: {}", path, reason));
    }
  }
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

void write_stdout(const std::string& text) { write_all(stdout, text, "stdout"); }

}  // namespace llmperf::cli
