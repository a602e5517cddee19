#include "cli/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "cli/files.h"

namespace llmperf::cli {
namespace {

struct NamedFormat {
  const char* name;
  report::Format format;
};
constexpr NamedFormat kFormats[] = {{"trace.json", report::Format::trace},  // before json, which it ends in
                                    {"table", report::Format::table},      {"csv", report::Format::csv},
                                    {"json", report::Format::json},        {"md", report::Format::md},
                                    {"html", report::Format::html}};

bool colour_wanted() {
  const char* no_colour = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) == 1 && (no_colour == nullptr || *no_colour == '\0');
}

}  // namespace

report::Format format_value(std::string_view flag, std::string_view text) {
  std::vector<std::string> names;
  for (const NamedFormat& f : kFormats) {
    if (text == f.name) return f.format;
    names.emplace_back(f.name);
  }
  throw Error::bad_input(fmt::format("{}: there is no {}", flag, quote(text)), name_hint(text, names));
}

report::Format export_format(std::string_view path) {
  for (const NamedFormat& f : kFormats) {
    if (f.format != report::Format::table && path.ends_with(fmt::format(".{}", f.name))) return f.format;
  }
  throw Error::bad_input(fmt::format("--export: no format goes with the name {}", quote(path)),
                         "end it in .json, .csv, .md, .html or .trace.json");
}

// An export.
struct Output::File : WrittenFile {
  report::Format format;
  File(const std::string& path, report::Format f) : WrittenFile(path), format(f) {}
};

void add_language(Command& command, report::Language& language, const char* about) {
  command.add("--lang", language, {{"en", report::Language::english}, {"zh", report::Language::chinese}}, "LANG",
              about);
}

void add_output_flags(Command& command, OutputFlags& flags) {
  const bool trace = flags.traced == Traced::yes;
  const std::size_t first = command.flags.size();
  command.add("--format", flags.format, "FORMAT", "table, csv, json, md or html")
      .offers(Values::Sort::words, trace ? "table csv json md html trace.json" : "table csv json md html");
  command.add("--json", flags.json, "short for --format json").without("--format");
  command.add("--export", flags.exports, "FILE",
              fmt::format("also write FILE; .json, .csv, .md{} says the format; - is stdout (repeatable)",
                          trace ? ", .html or .trace.json (for Perfetto)" : " or .html"));
  add_language(command, flags.language, "language of HTML reports: en or zh");
  for (std::size_t i = first; i < command.flags.size(); ++i) command.flags[i].group = "Output";
}

Output::Output(const OutputFlags& flags, const Context& context)
    : format_(flags.json ? report::Format::json : format_value("--format", flags.format)),
      rendering_{.colour = colour_wanted(), .language = flags.language, .command = context.command},
      caught_(context.caught) {
  const auto check_trace = [&](report::Format format, std::string_view what) {
    if (format != report::Format::trace || flags.traced == Traced::yes) return;
    throw Error::bad_input(fmt::format("{}: this command has no step to trace", what), "llmperf estimate has");
  };
  check_trace(format_, "--format");
  const bool pages =
      format_ == report::Format::html || std::any_of(flags.exports.begin(), flags.exports.end(),
                                                     [](const std::string& path) { return path.ends_with(".html"); });
  if (context.has("--lang") && rendering_.language != report::Language::english && !pages) {
    throw Error::bad_input("--lang is the language of HTML reports, and none is asked for", "--export FILE.html");
  }
  if (caught_ == nullptr) check_stdout();
  std::set<std::filesystem::path> seen;
  for (const std::string& path : flags.exports) {
    if (!seen.insert(std::filesystem::path(path).lexically_normal()).second) {
      throw Error::bad_input("--export: " + quote(path) + " is given more than once");
    }
    if (path == "-") continue;
    check_trace(export_format(path), "--export");
    files_.push_back(std::make_unique<File>(path, export_format(path)));
  }
}

Output::~Output() = default;

bool Output::wants(report::Format format) const {
  const auto needs = [&](report::Format written) {
    return written == format || (written == report::Format::html && format == report::Format::json);
  };
  if (caught_ != nullptr) return true;  // what becomes of it is not known yet
  return needs(format_) || std::any_of(files_.begin(), files_.end(), [&](const auto& f) { return needs(f->format); });
}

void Output::write_files(const report::Report& report) {
  for (const auto& file : files_) {
    report::Rendering rendering = rendering_;
    rendering.colour = false;
    file->commit(report::render(report, file->format, rendering));
  }
}

void Output::write(const report::Report& report) {
  write_files(report);
  print(report);
}

void Output::print(const report::Report& report) {
  if (caught_ != nullptr) {
    caught_->push_back(report);
    return;
  }
  write_stdout(report::render(report, format_, rendering_));
}

int write_answer(const OutputFlags& flags, Context context, const std::function<Answer(const Context&)>& ask) {
  Output output(flags, context);
  context.output = &output;
  const Answer answer = ask(context);
  if (answer.report) output.write(*answer.report);
  if (answer.error) throw Error(*answer.error);
  for (const std::string& what : answer.exceeded) fmt::print(stderr, "llmperf: error: {}\n", what);
  return answer.exceeded.empty() ? answer.status : kExitThreshold;
}

void check_stdout() {
  pollfd out{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  const int flags = fcntl(STDOUT_FILENO, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) {
    throw Error::failed(fmt::format("cannot write stdout: {}", std::strerror(EBADF)));
  }
  if (poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0) throw ClosedPipe();
}

void write_stdout(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    if (errno == EPIPE) throw ClosedPipe();
    throw Error::failed(fmt::format("cannot write stdout: {}", std::strerror(errno)));
  }
}

}  // namespace llmperf::cli
