// hccl_test prints a line per size, its columns set apart by '|':
//
//   data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:
//   67108864          | 812.40         | 82.60551             | success
//
// data_size is the size of the full tensor: for all-gather every rank contributes data_size / ranks. Nothing says how
// many ranks there were, and the collective is in the name of the program only.
#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
#include "base/text.h"
#include "import/collective_files.h"
#include "import/readers.h"

namespace llmperf::import {
namespace {

using descriptor::Problems;

// The fields of a line and the 1-based bytes at which they start.
struct Field {
  std::string_view text;
  int column;
};
std::vector<Field> fields_of(std::string_view line) {
  std::vector<Field> fields;
  for (const std::string_view part : split(line, '|')) {
    const std::string_view text = trim(part);
    const char* start = text.empty() ? part.data() : text.data();
    fields.push_back({text, static_cast<int>(start - line.data()) + 1});
  }
  return fields;
}

class HcclTest {
 public:
  HcclTest(const Options& options, Problems& problems, Collector& into)
      : options_(&options), problems_(&problems), into_(&into) {}

  void read(std::string_view text) {
    int number = 0;
    for (const std::string_view line : split(text, '\n')) {
      if (problems_->full()) return;
      read_line(line, ++number);
    }
    if (!has_header_) {
      problems_->add(0, 0, "is no output of hccl_test: no line with 'data_size(Bytes):' and 'aveg_time(us):'");
    } else if (rows_ == 0 && problems_->empty()) {
      problems_->add(0, 0, "holds a header line and no rows");
    }
  }

 private:
  void read_line(std::string_view line, int number) {
    if (line.find('|') == std::string_view::npos) return;
    const std::vector<Field> fields = fields_of(line);
    if (line.find("data_size") != std::string_view::npos) {
      read_header(fields, number);
    } else if (size_ < fields.size() && time_ < fields.size() && parse_double(fields[size_].text)) {
      read_row(fields, number);
    }
  }

  void read_header(const std::vector<Field>& fields, int number) {
    size_ = time_ = check_ = std::string_view::npos;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::string_view name = fields[i].text;
      if (name.starts_with("data_size")) size_ = i;
      if (name.starts_with("aveg_time") || name.starts_with("avg_time")) time_ = i;
      if (name.starts_with("check_result")) check_ = i;
    }
    if (size_ == std::string_view::npos || time_ == std::string_view::npos) return;
    if (has_header_) return;
    has_header_ = true;
    collective_ = collective_of(*options_, *problems_, number);
    if (!options_->ranks) problems_->add(number, 1, "does not say how many ranks took part", "--ranks N");
  }

  void read_row(const std::vector<Field>& fields, int number) {
    ++rows_;
    const std::optional<std::int64_t> size = parse_int(fields[size_].text);
    const std::optional<double> time = parse_double(fields[time_].text);
    if (!size || *size < 0) {
      problems_->add(number, fields[size_].column, fmt::format("not a size in bytes: {}", quote(fields[size_].text)));
      return;
    }
    if (!time || *time < 0 || *time >= 1e12) {
      problems_->add(number, fields[time_].column,
                     fmt::format("not a time in microseconds: {}", quote(fields[time_].text)));
      return;
    }
    Execution e{.type = collective_,
                .of = Class::communication,
                .time = Seconds{*time * 1e-6},
                .mapped = collective_row(collective_, options_->ranks.value_or(2), static_cast<double>(*size),
                                         options_->dtype.value_or(Dtype::fp32)),
                .line = number};
    if (check_ < fields.size() && to_lower(fields[check_].text) == "failed") e.mapped = "wrong results";
    into_->add(e);
  }

  const Options* options_;
  Problems* problems_;
  Collector* into_;
  bool has_header_ = false;
  std::size_t size_ = std::string_view::npos;
  std::size_t time_ = std::string_view::npos;
  std::size_t check_ = std::string_view::npos;
  std::string collective_;
  std::int64_t rows_ = 0;
};

}  // namespace

void read_hccl_test(std::string_view text, const Options& options, Problems& problems, Collector& into) {
  HcclTest(options, problems, into).read(text);
}

}  // namespace llmperf::import
