// `llmperf merge`: the rows of a sweep's shards as one file, in the order of their points: the bytes that the whole
// sweep would have written.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <queue>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/row_output.h"
#include "cli/selection_flags.h"

namespace llmperf::cli {
namespace {

using report::LineFormat;

struct MergeFlags {
  std::vector<std::string> files;
  SelectionFlags selection;
  bool gaps = false;
  OutputFlags output;
};

LineFormat format_of(const std::string& path) {
  if (path.ends_with(".csv")) return LineFormat::csv;
  if (path.ends_with(".jsonl")) return LineFormat::jsonl;
  if (path.ends_with(".partial")) {
    throw Error::bad_input(quote(path) + " is of an interrupted sweep", "finish it: the same sweep with --resume");
  }
  throw Error::bad_input("cannot tell the format of " + quote(path), "rows are in files that end in .csv or .jsonl");
}

// One shard's rows, line by line.
class Part {
 public:
  explicit Part(const std::string& path) : path_(path), format_(format_of(path)), file_(path, std::ios::binary) {
    if (!file_) throw Error::bad_input(fmt::format("cannot read {}: {}", quote(path), std::strerror(errno)));
    if (!next_line()) {
      if (format_ == LineFormat::csv) fail("no header");
      return;  // JSON lines of a shard without rows
    }
    header_ = line_;
    columns_ = report::parse_header(format_, line_, path_);
    const auto at = std::find(columns_.begin(), columns_.end(), "point");
    if (at == columns_.end()) fail("no column 'point', which says where a row belongs");
    point_column_ = static_cast<std::size_t>(at - columns_.begin());
    if (format_ == LineFormat::csv) next_line();
    read_row();
  }

  bool done() const { return line_.empty(); }
  std::int64_t point() const { return point_; }
  const sweep::Row& row() const { return row_; }
  const std::string& line() const { return line_; }
  const std::string& path() const { return path_; }
  LineFormat format() const { return format_; }
  const std::string& header() const { return header_; }
  const std::vector<std::string>& columns() const { return columns_; }
  void next() {
    next_line();
    read_row();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::bad_input, {{.where = {path_, number_, 0}, .message = what, .hint = ""}});
  }
  bool next_line() {
    line_.clear();
    if (!std::getline(file_, line_)) return false;
    ++number_;
    if (file_.eof()) fail("the last line has no end: the file is not complete");
    line_ += '\n';
    return true;
  }
  void read_row() {
    if (line_.empty()) return;
    report::parse_line(format_, columns_, line_, path_, number_, row_);
    const sweep::Cell& cell = row_[point_column_];
    if (!cell.is_number() || cell.number < 0 || cell.number > 1e15 || cell.number != std::floor(cell.number))
      fail("the cell 'point' is no whole number");
    point_ = static_cast<std::int64_t>(cell.number);
  }

  std::string path_;
  LineFormat format_;
  std::ifstream file_;
  int number_ = 0;
  std::string header_;
  std::string line_;  // empty: no more
  std::vector<std::string> columns_;
  std::size_t point_column_ = 0;
  std::int64_t point_ = 0;
  sweep::Row row_;
};

std::vector<std::unique_ptr<Part>> open_parts(const std::vector<std::string>& files) {
  std::vector<std::unique_ptr<Part>> parts;
  const Part* first = nullptr;  // with a header
  for (const std::string& file : files) {
    parts.push_back(std::make_unique<Part>(file));
    const Part& part = *parts.back();
    if (part.format() != parts.front()->format()) {
      throw Error::bad_input(fmt::format("{} and {} have different formats", quote(files.front()), quote(file)));
    }
    if (part.columns().empty()) continue;
    if (first == nullptr) first = &part;
    if (part.columns() != first->columns()) {
      throw Error::bad_input(fmt::format("{} and {} have different columns", quote(first->path()), quote(file)),
                             "merge the parts of one sweep");
    }
  }
  return parts;
}

// Rows in order of their points, whatever file they are in.
class Merged {
 public:
  explicit Merged(std::vector<std::unique_ptr<Part>>& parts) {
    for (const auto& part : parts) push(part.get());
  }
  // The part whose row is next; null at the end. Throws Error(bad_input) for a point that comes twice.
  Part* next() {
    if (last_ != nullptr) {
      last_->next();
      if (!last_->done() && last_->point() <= point_) {
        throw Error::bad_input(
            fmt::format("{}: point {} comes after point {}", quote(last_->path()), last_->point(), point_),
            "rows of --top and --pareto are merged with the same flags");
      }
      push(last_);
    }
    if (queue_.empty()) return nullptr;
    Part* part = queue_.top();
    queue_.pop();
    if (last_ != nullptr && part->point() == point_) {
      throw Error::bad_input(
          fmt::format("point {} is in {} and in {}", point_, quote(last_->path()), quote(part->path())));
    }
    last_ = part;
    point_ = part->point();
    return part;
  }

 private:
  struct Later {
    bool operator()(const Part* a, const Part* b) const { return a->point() > b->point(); }
  };
  void push(Part* part) {
    if (!part->done()) queue_.push(part);
  }
  std::priority_queue<Part*, std::vector<Part*>, Later> queue_;
  Part* last_ = nullptr;
  std::int64_t point_ = -1;
};

// Of rows that were selected: sorted by point again, so that equals keep their order. Returns how many there are.
std::int64_t offer_sorted(std::vector<std::unique_ptr<Part>>& parts, const RowChoice& choice, sweep::Selection& kept) {
  struct Numbered {
    std::int64_t point = 0;
    sweep::Row row;
  };
  std::vector<Numbered> rows;
  for (const auto& part : parts) {
    for (; !part->done(); part->next()) {
      sweep::Row row = part->row();
      row.add("line", part->line());
      rows.push_back({part->point(), std::move(row)});
    }
  }
  std::sort(rows.begin(), rows.end(), [](const Numbered& a, const Numbered& b) { return a.point < b.point; });
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].point != rows[i - 1].point) continue;
    throw Error::bad_input(fmt::format("point {} is there twice", rows[i].point), "name each part once");
  }
  for (Numbered& numbered : rows) {
    if (!choice.where || (*choice.where)(numbered.row)) kept.offer(std::move(numbered.row));
  }
  return static_cast<std::int64_t>(rows.size());
}

void count_failure(const sweep::Row& row, const std::vector<std::string>& columns, report::SweepResult& result) {
  const auto at = std::find(columns.begin(), columns.end(), "error");
  if (at == columns.end()) return;
  const sweep::Cell& cell = row[static_cast<std::size_t>(at - columns.begin())];
  if (cell.kind == sweep::Cell::Kind::none) return;
  if (result.failed++ == 0) result.first_error = cell.text;
}

int merge_action(const MergeFlags& flags, const Context& context) {
  std::vector<std::unique_ptr<Part>> parts = open_parts(flags.files);
  const auto with_rows =
      std::find_if(parts.begin(), parts.end(), [](const auto& part) { return !part->columns().empty(); });
  // JSON lines of shards without rows name no columns.
  const std::vector<std::string> columns =
      with_rows == parts.end() ? std::vector<std::string>{"point"} : (*with_rows)->columns();
  const LineFormat format = parts.front()->format();
  const RowChoice choice = row_choice(flags.selection, columns);
  RowOutput output(flags.output, context, columns, choice.shown, Resume::no);
  report::SweepResult result{.axes = {},
                             .columns = columns,
                             .shown = choice.shown,
                             .selection = choice.text,
                             .front = {},
                             .first_error = {},
                             .rows = {}};
  // A line goes on as it came where nothing about it changes.
  const auto append = [&](LineFormat to, std::string& text, const sweep::Row& row, const std::string& line) {
    if (to == format && choice.shown.empty()) {
      text += line;
    } else if (output.streams(to)) {
      output.lines(to).append(text, row);
    }
  };
  sweep::Selection kept = choice.selection;
  std::string csv;
  std::string jsonl;
  std::int64_t after_last = 0;
  if (kept.keeps_all()) {
    Merged merged(parts);
    while (Part* part = merged.next()) {
      ++result.points;
      count_failure(part->row(), columns, result);
      after_last = part->point() + 1;
      if (choice.where && !(*choice.where)(part->row())) continue;
      append(LineFormat::csv, csv, part->row(), part->line());
      append(LineFormat::jsonl, jsonl, part->row(), part->line());
      if (output.gathers()) kept.offer(part->row());
      if (csv.size() + jsonl.size() > (1 << 16)) {
        output.write(csv, jsonl);
        csv.clear();
        jsonl.clear();
      }
    }
  } else {
    result.points = offer_sorted(parts, choice, kept);
    for (const sweep::Row& row : kept.rows()) {
      append(LineFormat::csv, csv, row, row[columns.size()].text);
      append(LineFormat::jsonl, jsonl, row, row[columns.size()].text);
    }
  }
  output.write(csv, jsonl);
  if (after_last > result.points && !flags.gaps) {
    throw Error::failed(fmt::format("{} of the {} points up to {} are in none of the files",
                                    format_count(static_cast<double>(after_last - result.points)),
                                    format_count(static_cast<double>(after_last)), after_last - 1),
                        "a part is missing; --gaps when --where left them out");
  }
  result.front = result::front_of(kept, result.columns);
  result.rows = kept.take();
  output.finish(result);
  return kExitDone;
}

}  // namespace

void add_merge(Command& root) {
  Command& command = root.add_command("merge", "joins the rows of a sweep's shards, in the order of their points");
  auto flags = std::make_shared<MergeFlags>();
  command.add("FILE", flags->files, "", "rows that llmperf sweep --shard wrote: all .csv or all .jsonl")
      .required()
      .offers(Values::Sort::files);
  command.add("--gaps", flags->gaps, "points may be missing: --where left them out");
  add_selection_flags(command, flags->selection);
  add_output_flags(command, flags->output);
  describe_row_outputs(command, flags->output);
  command.action = [flags](const Context& context) { return merge_action(*flags, context); };
}

}  // namespace llmperf::cli
