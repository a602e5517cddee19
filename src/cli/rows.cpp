#include "cli/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace llmperf::cli {

using report::LineFormat;

// ---- Which rows are kept.

void add_selection_flags(Command& command, points::RowQuery& f) {
  constexpr std::int64_t kMaxTop = 100'000;
  command.add("--where", f.where, "CONDITION",
              "rows to keep: 'ttft_s < 0.5 and fits', 'total_bytes < 20GiB and batch >= 8'");
  command.add("--top", f.top, {1, kMaxTop}, "N", "the N best rows alone, by the column of --by").with("--by");
  command.add("--by", f.by, "COLUMN", "column of --top; batch:low or batch:high where it does not say what is better")
      .with("--top");
  command
      .add("--pareto", f.pareto, "COLUMNS",
           "the rows alone that no other beats in all of these: ttft_s,tokens_per_second")
      .without("--top");
  command.add("--columns", f.columns, "COLUMNS", "columns to write, in this order [all; of a table the most telling]");
}

// ---- A file of rows.

namespace {

constexpr const char* kPartial = ".partial";

// By the end of a line: `error` is the last column, and empty where a point has a result.
bool is_failure(const std::string& line, const std::string& header) {
  if (header.empty()) return line.find("\"error\":") != std::string::npos && !line.ends_with("\"error\":null}\n");
  return header.ends_with(",error\n") && !line.ends_with(",\n");
}

// Of a line behind those that `check` is of; eight characters at once, since a sweep writes millions.
std::uint64_t check_of(std::uint64_t check, std::string_view line) {
  while (!line.empty()) {
    std::uint64_t word = 0;
    const std::size_t size = std::min(sizeof word, line.size());
    std::memcpy(&word, line.data(), size);
    check = (check ^ word) * 0x100000001b3U;
    check ^= check >> 32U;
    line.remove_prefix(size);
  }
  return check;
}
constexpr std::uint64_t kFirstCheck = 0xcbf29ce484222325U;
constexpr std::size_t kCheckSize = 17;  // a blank and 16 digits

// The header is told by the columns.
RowFile::Left rows_left_in(const std::string& path, const std::string& header, bool checked) {
  RowFile::Left left;
  left.file = path;
  left.check = kFirstCheck;
  std::ifstream file(path, std::ios::binary);
  std::string line;
  bool first = true;
  while (std::getline(file, line)) {
    if (file.eof()) break;  // half a line: the run was killed in the middle of it
    const auto size = static_cast<std::int64_t>(line.size()) + 1;
    if (first && !header.empty()) {
      first = false;
      left.bytes += size;
      if (line + '\n' == header) continue;
      throw Error::bad_input(fmt::format("{} has other columns than this sweep", quote(path)),
                             "remove it to start anew");
    }
    if (checked) {
      const std::string found = line.substr(std::max(line.size(), kCheckSize) - kCheckSize);
      line.resize(line.size() - found.size());
      const std::uint64_t check = check_of(left.check, line);
      if (found != fmt::format(" {:016x}", check)) {
        left.damaged = left.rows + (header.empty() ? 1 : 2);
        break;
      }
      left.check = check;
    }
    line += '\n';
    left.bytes += size;
    ++left.rows;
    left.failed += is_failure(line, header) ? 1 : 0;
    left.last_line = line;
  }
  if (file.bad()) throw Error::failed(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  return left;
}

}  // namespace

RowFile::RowFile(const std::string& path, const std::string& header, Resume resume) : header_(header) {
  // The unfinished file is looked for before the finished one, which it may become in between.
  const std::string target = followed_link(path);
  std::error_code ignored;
  if (resume == Resume::yes && !std::filesystem::exists(target + kPartial, ignored) &&
      std::filesystem::is_regular_file(target, ignored)) {
    left_ = rows_left_in(target, header, false);
    left_.complete = true;
    return;
  }
  file_.emplace(path, kPartial, PartialFile::Left::kept);
  checked_ = resume != Resume::never && !partial().empty();
  left_.check = kFirstCheck;
  if (resume == Resume::yes && checked_) {
    left_ = rows_left_in(partial(), header, true);
    if (left_.damaged > 0 && left_.rows == 0) {
      throw Error::bad_input(
          fmt::format("{}: line {}, its first row, is not as a sweep wrote it", quote(partial()), left_.damaged),
          "remove it to start anew");
    }
  } else if (file_->left_bytes() > static_cast<std::int64_t>(header.size())) {
    throw Error::bad_input(fmt::format("{} has rows of an interrupted sweep", quote(partial())),
                           "--resume goes on with it; remove it to start anew");
  }
  file_->go_on_behind(left_.bytes);
  if (left_.bytes > 0) return;
  file_->keep(false);
  file_->write(header);
}

void RowFile::write(const std::string& lines) {
  if (!checked_) return file_->write(lines);
  std::string checked;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = lines.find('\n', begin);
    const std::string_view line = std::string_view(lines).substr(begin, end - begin);
    left_.check = check_of(left_.check, line);
    checked.append(line);
    fmt::format_to(std::back_inserter(checked), " {:016x}\n", left_.check);
    begin = end + 1;
  }
  file_->write(checked);
}

// The rows without their checks are a file of their own, which takes the place of both.
void RowFile::commit() {
  if (!checked_) return file_->commit();
  file_->flush();
  PartialFile whole(file_->path(), ".new.partial", PartialFile::Left::removed);
  whole.write(header_);
  std::ifstream rows(partial(), std::ios::binary);
  rows.seekg(static_cast<std::streamoff>(header_.size()));
  for (std::string line; std::getline(rows, line);) {
    line.resize(line.size() - kCheckSize);
    whole.write(line += '\n');
  }
  // Neither a file that did not open nor one that broke off comes to its end.
  if (!rows.eof()) throw Error::failed(fmt::format("cannot read {}: {}", partial(), std::strerror(errno)));
  whole.commit();
  file_->keep(false);
  file_.reset();
}

// ---- All outputs.

namespace {

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

void add_row_outputs(Command& command, OutputFlags& flags) {
  add_output_flags(command, flags);
  flags.format.clear();
  Flag& format = *command.find("--format");
  format.otherwise.clear();
  format.about = "table, csv, jsonl, md, json or html [table; nothing beside --export]";
  format.values.list = "table csv json md html jsonl";
  command.find("--export")->about =
      "also write FILE; .csv and .jsonl grow row by row; .json, .md or .html (repeatable)";
}

RowOutput::RowOutput(const OutputFlags& flags, const Context& context, const std::vector<std::string>& columns,
                     const points::RowChoice& choice, Resume resume)
    : choice_(choice),
      csv_(LineFormat::csv, columns, choice.shown.empty() ? all_of(columns.size()) : choice.shown),
      jsonl_(LineFormat::jsonl, columns, choice.shown.empty() ? all_of(columns.size()) : choice.shown) {
  const std::vector<std::size_t>& shown = choice.shown;
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
    const Resume how = resumable_ ? resume : Resume::never;
    streams_.push_back({format, std::make_unique<RowFile>(path, lines(format).header(), how)});
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

void RowOutput::append(const points::Row& row, RowBatch& batch) const {
  for (const LineFormat format : {LineFormat::csv, LineFormat::jsonl}) {
    const bool wanted =
        std::any_of(streams_.begin(), streams_.end(), [&](const Stream& s) { return s.format == format; });
    if (!wanted) continue;
    std::string& text = format == LineFormat::csv ? batch.csv : batch.jsonl;
    if (line_format_ == format && choice_.shown.empty()) {
      text += row[row.size() - 1].text;
    } else {
      lines(format).append(text, row);
    }
  }
}

void RowOutput::add(const points::Row& row, RowBatch& batch) const {
  if (choice_.where && !(*choice_.where)(row)) return;
  const bool all = batch.kept.keeps_all();
  if (all) append(row, batch);
  if (!all || gathers()) batch.kept.offer(row);
}

void RowOutput::write(RowBatch& batch) {
  for (const Stream& stream : streams_) {
    const std::string& text = stream.format == LineFormat::csv ? batch.csv : batch.jsonl;
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
  batch.csv.clear();
  batch.jsonl.clear();
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

namespace {

void gather(report::SweepResult& result, RowBatch& batch) {
  result.front = result::front_of(batch.kept, result.columns);
  result.rows = batch.kept.take();
}

}  // namespace

void RowOutput::interrupted(report::SweepResult& result, RowBatch& batch) {
  gather(result, batch);
  if (gathered_to_stdout_) gathered_->print(report::sweep_report(result));
}

void RowOutput::finish(report::SweepResult& result, RowBatch& batch) {
  const bool selected = !batch.kept.keeps_all();
  gather(result, batch);
  if (selected) {
    for (const points::Row& row : result.rows) append(row, batch);
  }
  write(batch);
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
