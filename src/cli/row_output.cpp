#include "cli/row_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "cli/partial_file.h"

namespace llmperf::cli {
namespace {

using report::LineFormat;

std::optional<LineFormat> line_format(const std::string& name) {
  if (name == "csv") return LineFormat::csv;
  if (name == "jsonl") return LineFormat::jsonl;
  return std::nullopt;
}

// What a path ends in, when that is a format of lines.
std::optional<LineFormat> path_format(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? std::nullopt : line_format(path.substr(dot + 1));
}

std::vector<std::size_t> all_of(std::size_t count) {
  std::vector<std::size_t> all(count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

}  // namespace

void describe_row_outputs(Command& command, OutputFlags& flags) {
  flags.format.clear();
  Flag& format = *command.find("--format");
  format.otherwise.clear();
  format.about = "table, csv, jsonl, md, json or html [table; nothing beside --export]";
  format.values.list = "table csv json md html jsonl";
  command.find("--export")->about =
      "also write FILE; .csv and .jsonl grow row by row; .json, .md or .html (repeatable)";
}

RowOutput::RowOutput(const OutputFlags& flags, const Context& context, const std::vector<std::string>& columns,
                     std::vector<std::size_t> shown, Resume resume)
    : csv_(LineFormat::csv, columns, shown.empty() ? all_of(columns.size()) : shown),
      jsonl_(LineFormat::jsonl, columns, shown.empty() ? all_of(columns.size()) : shown) {
  OutputFlags rest = flags;
  rest.exports.clear();
  std::vector<std::pair<std::string, LineFormat>> streamed;
  std::set<std::string> seen;
  for (const std::string& path : flags.exports) {
    if (!seen.insert(followed_link(path)).second) {
      throw Error::bad_input("--export: " + quote(path) + " is given more than once");
    }
    if (const std::optional<LineFormat> format = path_format(path)) {
      streamed.emplace_back(path, *format);
    } else {
      rest.exports.push_back(path);
    }
  }
  const bool one_file = streamed.size() == 1 && flags.exports.size() == 1 && !flags.json && flags.format.empty();
  const auto is_point = [&](std::size_t i) { return columns[i] == "point"; };
  resumable_ = one_file && (shown.empty() || std::any_of(shown.begin(), shown.end(), is_point));
  if (resume == Resume::yes && !resumable_) {
    throw Error::bad_input("--resume goes with one output of rows that has the column point",
                           "--export rows.csv or --export rows.jsonl alone");
  }
  for (const auto& [path, format] : streamed) {
    streams_.push_back({format, std::make_unique<RowFile>(path, lines(format).header(), resume)});
    left_ = streams_.back().file->left();
  }
  const bool quiet = !flags.json && flags.format.empty() && !flags.exports.empty();
  const std::optional<LineFormat> format = flags.json ? std::nullopt : line_format(flags.format);
  gathered_to_stdout_ = !quiet && !format;
  if (rest.format.empty() || format) rest.format = "table";
  if (gathered_to_stdout_ || !rest.exports.empty()) gathered_.emplace(rest, context);
  if (format) {
    streams_.push_back({*format, nullptr});
    write_stdout(lines(*format).header());
  }
}

RowOutput::~RowOutput() = default;

bool RowOutput::streams(LineFormat format) const {
  return std::any_of(streams_.begin(), streams_.end(), [&](const Stream& s) { return s.format == format; });
}

void RowOutput::write(const std::string& csv, const std::string& jsonl) {
  for (const Stream& stream : streams_) {
    const std::string& text = stream.format == LineFormat::csv ? csv : jsonl;
    if (stream.file) {
      stream.file->write(text);
    } else if (!text.empty()) {
      try {
        write_stdout(text);
      } catch (const ClosedPipe&) {
        keep_unfinished(false);
        throw;
      }
    }
  }
}

std::vector<std::string> RowOutput::partial_files() const {
  std::vector<std::string> files;
  for (const Stream& stream : streams_) {
    if (stream.file && !stream.file->partial().empty()) files.push_back(stream.file->partial());
  }
  return files;
}

void RowOutput::keep_unfinished(bool kept) {
  for (const Stream& stream : streams_) {
    if (stream.file) stream.file->keep(kept);
  }
}

void RowOutput::flush() {
  for (const Stream& stream : streams_) {
    if (stream.file) stream.file->flush();
  }
}

void RowOutput::interrupted(const report::SweepResult& result) {
  if (gathered_to_stdout_) gathered_->print(report::sweep_report(result));
}

void RowOutput::finish(const report::SweepResult& result) {
  for (const Stream& stream : streams_) {
    if (stream.file) stream.file->commit();
  }
  if (!gathered_) return;
  const report::Report report = report::sweep_report(result);
  if (gathered_to_stdout_) {
    gathered_->write(report);
  } else {
    gathered_->write_files(report);
  }
}

}  // namespace llmperf::cli
