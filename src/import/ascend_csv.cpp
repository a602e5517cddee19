#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/number.h"
#include "base/text.h"
#include "calibrate/csv_reader.h"
#include "import/ascend_ops.h"
#include "import/readers.h"

namespace llmperf::import {
namespace {

using calibrate::CsvCell;
using calibrate::CsvReader;
using descriptor::Problems;

enum class Column : unsigned char {
  type,
  core,
  duration,
  input_shapes,
  input_types,
  input_formats,
  output_shapes,
  output_types,
  output_formats,
  executions,
  total,
  number
};
constexpr std::size_t kColumns = static_cast<std::size_t>(Column::number);

// msprof's name, torch_npu's, that of op_statistic.csv.
constexpr std::pair<std::string_view, Column> kNames[] = {
    {"OP Type", Column::type},
    {"Type", Column::type},
    {"Task Type", Column::core},
    {"Accelerator Core", Column::core},
    {"Core Type", Column::core},
    {"Task Duration(us)", Column::duration},
    {"Duration(us)", Column::duration},
    {"Input Shapes", Column::input_shapes},
    {"Input Data Types", Column::input_types},
    {"Input Formats", Column::input_formats},
    {"Output Shapes", Column::output_shapes},
    {"Output Data Types", Column::output_types},
    {"Output Formats", Column::output_formats},
    {"Count", Column::executions},
    {"Total Time(us)", Column::total},
};

// Profilers quote shapes once more inside the quoted field, and end numbers with a TAB.
std::string_view bare(std::string_view text) {
  text = trim(text);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = trim(text.substr(1, text.size() - 2));
  return text;
}
bool missing(std::string_view text) { return text.empty() || text == "N/A" || text == "n/a" || text == "NULL"; }

class AscendCsv {
 public:
  AscendCsv(std::string_view text, Problems& problems, Collector& into)
      : reader_(text, problems), problems_(&problems), into_(&into) {}

  void read() {
    if (!reader_.next()) {
      problems_->add(0, 0, "holds no header line and no rows");
      return;
    }
    if (!read_header()) return;
    std::int64_t rows = 0;
    while (reader_.next() && !problems_->full()) {
      ++rows;
      if (reader_.cells().size() < width_ || !rest_is_empty()) {
        problems_->add(reader_.line(), 1,
                       fmt::format("{} fields, and the header has {}", reader_.cells().size(), width_));
      } else if (has(Column::duration)) {
        read_execution();
      } else {
        read_total();
      }
    }
    if (rows == 0 && problems_->empty()) problems_->add(0, 0, "holds a header line and no rows");
  }

 private:
  bool has(Column c) const { return at_[static_cast<std::size_t>(c)].has_value(); }
  const CsvCell* cell(Column c) const {
    const std::optional<std::size_t>& at = at_[static_cast<std::size_t>(c)];
    return at ? &reader_.cells()[*at] : nullptr;
  }
  std::string_view text(Column c) const {
    const CsvCell* found = cell(c);
    if (found == nullptr) return {};
    const std::string_view content = bare(found->text);
    return missing(content) ? std::string_view() : content;
  }
  // Lines may end in a comma.
  bool rest_is_empty() const {
    const auto& cells = reader_.cells();
    return std::all_of(cells.begin() + static_cast<std::ptrdiff_t>(width_), cells.end(),
                       [](const CsvCell& c) { return c.text.empty(); });
  }

  bool read_header() {
    std::size_t column = 0;
    for (const CsvCell& header : reader_.cells()) {
      for (const auto& [known, which] : kNames) {
        std::optional<std::size_t>& at = at_[static_cast<std::size_t>(which)];
        if (known == bare(header.text) && !at) at = column;
      }
      ++column;
    }
    width_ = column;
    if (has(Column::type) && (has(Column::duration) || (has(Column::executions) && has(Column::total)))) return true;
    problems_->add(
        reader_.line(), 1,
        has(Column::type) ? "no column 'Task Duration(us)' or 'Duration(us)'" : "no column 'OP Type' or 'Type'",
        "read are op_summary_*.csv and op_statistic*.csv of msprof and kernel_details.csv of torch_npu");
    return false;
  }

  // A time in microseconds; nothing where the profiler has none.
  std::optional<Seconds> time(Column c) {
    const std::string_view content = text(c);
    if (content.empty()) return Seconds{0};
    constexpr double kLongest = 1e12;  // us
    const std::optional<double> value = parse_double(content);
    if (value && *value >= 0 && *value < kLongest) return Seconds{*value * 1e-6};
    problems_->add(reader_.line(), cell(c)->column, fmt::format("not a time in microseconds: {}", quote(content)));
    return std::nullopt;
  }

  void read_execution() {
    const std::optional<Seconds> duration = time(Column::duration);
    if (!duration) return;
    const std::string type(text(Column::type));
    Execution e{.type = type.empty() ? "N/A" : type,
                .of = ascend_class(text(Column::core), type),
                .time = *duration,
                .mapped = kNoShapes,
                .line = reader_.line()};
    AscendKernel kernel{.type = type,
                        .inputs = tensors(Column::input_shapes, Column::input_types, Column::input_formats),
                        .outputs = tensors(Column::output_shapes, Column::output_types, Column::output_formats)};
    switch (e.of) {
      case Class::kernel: e.mapped = ascend_row(kernel); break;
      case Class::communication: {
        const Mapped mapped = ascend_row(kernel);
        e.mapped = mapped.remark == kNoSuchOp || mapped.row ? "no sizes" : mapped.remark;
        break;
      }
      case Class::host: e.mapped = "runs on a CPU"; break;
      case Class::other: e.mapped = "no kernel"; break;
    }
    into_->add(e);
  }

  void read_total() {
    const std::optional<Seconds> total = time(Column::total);
    const std::optional<std::int64_t> count = parse_int(text(Column::executions));
    if (!count || *count < 0 || *count > kMostElements) {
      problems_->add(reader_.line(), cell(Column::executions)->column,
                     fmt::format("not a count: {}", quote(text(Column::executions))));
      return;
    }
    if (!total) return;
    const std::string type(text(Column::type));
    into_->add({.type = type,
                .of = ascend_class(text(Column::core), type),
                .time = *total,
                .mapped = "totals only, no shapes",
                .line = reader_.line(),
                .count = *count});
  }

  std::vector<Tensor> tensors(Column shapes, Column types, Column formats) {
    std::vector<Tensor> list;
    const std::string_view all = text(shapes);
    if (all.empty()) return list;
    const std::vector<std::string_view> type = split(text(types), ';');
    const std::vector<std::string_view> format = split(text(formats), ';');
    for (const std::string_view slot : split(all, ';')) {
      Tensor t;
      t.shape = shape(trim(slot), *cell(shapes));
      const std::size_t i = list.size();
      if (i < type.size()) t.element = element_type(trim(type[i]));
      if (i < format.size()) make_logical(t, trim(format[i]));
      list.push_back(std::move(t));
    }
    return list;
  }

  // "1,4096"; empty for an absent tensor, N/A and shapes that are not known (-1).
  Shape shape(std::string_view slot, const CsvCell& where) {
    Shape result;
    if (missing(slot)) return result;
    for (const std::string_view part : split(slot, ',')) {
      const std::optional<std::int64_t> size = parse_int(trim(part));
      if (!size) {
        problems_->add(reader_.line(), where.column, fmt::format("not a shape: {}", quote(slot)));
        return {};
      }
      if (*size < 0) return {};
      result.push_back(*size);
    }
    return result;
  }

  CsvReader reader_;
  Problems* problems_;
  Collector* into_;
  std::size_t width_ = 0;
  std::array<std::optional<std::size_t>, kColumns> at_ = {};
};

}  // namespace

void read_ascend_csv(std::string_view text, Problems& problems, Collector& into) {
  AscendCsv(text, problems, into).read();
}

}  // namespace llmperf::import
