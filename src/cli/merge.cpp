// `llmperf merge`: the rows of a sweep's shards as one file, in the order of their points: the bytes that the whole
// sweep would have written.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>
#include <queue>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/rows.h"

namespace llmperf::cli {

using report::LineFormat;

namespace {

struct MergeFlags {
  std::vector<std::string> files;
  points::RowQuery selection;
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
    columns_ = report::parse_header(format_, line_, path_);
    const auto at = std::find(columns_.begin(), columns_.end(), "point");
    if (at == columns_.end()) fail("no column 'point', which says where a row belongs");
    point_column_ = static_cast<std::size_t>(at - columns_.begin());
    if (format_ == LineFormat::csv) next_line();
    read_row();
  }

  bool done() const { return line_.empty(); }
  std::int64_t point() const { return point_; }
  // With its line as the last cell.
  const points::Row& row() const { return row_; }
  const std::string& path() const { return path_; }
  LineFormat format() const { return format_; }
  const std::vector<std::string>& columns() const { return columns_; }
  void next() {
    if (!sorted_) {
      next_line();
      read_row();
    } else if (rest_.empty()) {
      line_.clear();
    } else {
      row_ = std::move(rest_.back().row);
      point_ = rest_.back().point;
      rest_.pop_back();
    }
  }
  // Rows that were selected are few, and the best comes first.
  void sort() {
    if (done()) return;
    for (; !done(); next()) rest_.push_back({point_, row_});
    std::sort(rest_.begin(), rest_.end(), [](const Numbered& a, const Numbered& b) { return a.point > b.point; });
    sorted_ = true;
    line_ = "\n";
    next();
  }

 private:
  struct Numbered {
    std::int64_t point = 0;
    points::Row row;
  };
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
    const points::Cell& cell = row_[point_column_];
    if (!cell.is_number() || cell.number < 0 || cell.number > 1e15 || cell.number != std::floor(cell.number))
      fail("the cell 'point' is no whole number");
    point_ = static_cast<std::int64_t>(cell.number);
    row_.add("line", line_);
  }

  std::string path_;
  LineFormat format_;
  std::ifstream file_;
  int number_ = 0;
  std::string line_;  // empty: no more
  std::vector<std::string> columns_;
  std::size_t point_column_ = 0;
  std::int64_t point_ = 0;
  points::Row row_;
  bool sorted_ = false;
  std::vector<Numbered> rest_;  // behind the row, the next one last
};

std::vector<std::unique_ptr<Part>> open_parts(const std::vector<std::string>& files) {
  std::vector<std::unique_ptr<Part>> parts;
  const Part* first = nullptr;  // with a header
  for (const std::string& file : files) {
    const Part& part = *parts.emplace_back(std::make_unique<Part>(file));
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

// Calls `take` for every row in order of their points, whatever file it is in. Throws Error(bad_input) for a point that
// comes twice.
template <class Take>
void merge_rows(const std::vector<std::unique_ptr<Part>>& parts, const Take& take) {
  const auto later = [](const Part* a, const Part* b) { return a->point() > b->point(); };
  std::priority_queue<Part*, std::vector<Part*>, decltype(later)> queue(later);
  for (const auto& part : parts) {
    if (!part->done()) queue.push(part.get());
  }
  std::int64_t last = -1;
  std::string last_path;
  while (!queue.empty()) {
    Part* part = queue.top();
    queue.pop();
    const std::int64_t point = part->point();
    if (point == last) {
      throw Error::bad_input(fmt::format("point {} is in {} and in {}", point, quote(last_path), quote(part->path())),
                             "name each part once");
    }
    take(*part);
    part->next();
    if (!part->done() && part->point() <= point) {
      throw Error::bad_input(
          fmt::format("{}: point {} comes after point {}", quote(part->path()), part->point(), point),
          "rows of --top and --pareto are merged with the same flags");
    }
    last = point;
    last_path = part->path();
    if (!part->done()) queue.push(part);
  }
}

void count_failure(const points::Row& row, const std::vector<std::string>& columns, report::SweepResult& result) {
  const auto at = std::find(columns.begin(), columns.end(), "error");
  if (at == columns.end()) return;
  const points::Cell& cell = row[static_cast<std::size_t>(at - columns.begin())];
  if (cell.kind == points::Cell::Kind::none) return;
  if (result.failed++ == 0) result.first_error = cell.text;
}

int merge_action(const MergeFlags& flags, const Context& context) {
  std::vector<std::unique_ptr<Part>> parts = open_parts(flags.files);
  const auto with_rows =
      std::find_if(parts.begin(), parts.end(), [](const auto& part) { return !part->columns().empty(); });
  // JSON lines of shards without rows name no columns.
  const std::vector<std::string> columns =
      with_rows == parts.end() ? std::vector<std::string>{"point"} : (*with_rows)->columns();
  const points::RowChoice choice = points::row_choice(flags.selection, columns);
  RowOutput output(flags.output, context, columns, choice, Resume::never);
  output.rows_have_lines(parts.front()->format());
  report::SweepResult result;
  result.columns = columns;
  result.shown = choice.shown;
  result.selection = choice.text;
  RowBatch batch(choice.selection);
  const bool all = choice.selection.keeps_all();
  if (!all) {
    for (const auto& part : parts) part->sort();
  }
  std::int64_t after_last = 0;
  merge_rows(parts, [&](const Part& part) {
    ++result.points;
    after_last = part.point() + 1;
    if (all) count_failure(part.row(), columns, result);
    output.add(part.row(), batch);
    if (batch.csv.size() + batch.jsonl.size() > (1 << 16)) output.write(batch);
  });
  if (all && after_last > result.points && !flags.gaps) {
    output.write(batch);
    throw Error::bad_input(fmt::format("{} of the {} points up to {} are in none of the files",
                                       format_count(static_cast<double>(after_last - result.points)),
                                       format_count(static_cast<double>(after_last)), after_last - 1),
                           "a part is missing; --gaps when --where left them out");
  }
  output.finish(result, batch);
  return kExitDone;
}

}  // namespace

void describe_merge(Command& command) {
  MergeFlags& flags = command.runs(merge_action);
  command.add("FILE", flags.files, "", "rows that llmperf sweep --shard wrote: all .csv or all .jsonl")
      .required()
      .offers(Values::Sort::files);
  command.add("--gaps", flags.gaps, "points may be missing: --where left them out");
  add_selection_flags(command, flags.selection);
  add_row_outputs(command, flags.output);
}

}  // namespace llmperf::cli
