#include "import/collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/number.h"
#include "base/text.h"
#include "measure/statistics.h"

namespace llmperf::import {
namespace {

using measure::CollectiveShape;

constexpr Seconds kLongestTime{1e6};  // a file of measurements takes no more

std::string remark_text(const std::map<std::string, std::int64_t>& remarks) {
  std::vector<std::pair<std::string, std::int64_t>> list(remarks.begin(), remarks.end());
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> parts;
  for (const auto& [remark, count] : list) {
    parts.push_back(list.size() == 1 ? remark : fmt::format("{} ({})", remark, count));
  }
  return join(parts, ", ");
}

// Beside what rows measure: type and source; of ops the interquartile range of their executions and how many they were,
// of steps what the file says of the rate, of runs why they are not to be trusted.
std::vector<std::string> extra_columns(Source source) {
  if (rows_of(source) == Class::step) return {"tokens_per_s", "type", "source"};
  if (rows_of(source) == Class::run) return {"type", "source", "untrusted"};
  return {"spread_us", "repetitions", "type", "source"};
}

// Names of files and kernels are anybody's text; a comment is one line.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

}  // namespace

void read_rows(descriptor::CsvReader& reader, descriptor::Problems& problems, const std::function<bool()>& header,
               const std::function<void()>& row) {
  if (!reader.next()) return problems.add(0, 0, "holds no header line and no rows");
  if (!header()) return;
  const std::vector<descriptor::CsvCell>& cells = reader.cells();
  const std::size_t width = cells.size();
  std::int64_t rows = 0;
  for (; reader.next() && !problems.full(); ++rows) {
    const bool fits =
        cells.size() >= width && std::all_of(cells.begin() + static_cast<std::ptrdiff_t>(width), cells.end(),
                                             [](const auto& cell) { return cell.text.empty(); });
    if (fits) {
      row();
    } else {
      problems.add(reader.line(), 1, fmt::format("{} fields, and the header has {}", cells.size(), width));
    }
  }
  if (rows == 0 && problems.empty()) problems.add(0, 0, "holds a header line and no rows");
}

std::optional<Seconds> read_microseconds(std::string_view text, int line, int column, descriptor::Problems& problems) {
  constexpr double kLongest = 1e12;
  const std::optional<double> value = parse_double(text);
  if (value && *value >= 0 && *value < kLongest) return Seconds{*value * 1e-6};
  problems.add(line, column, fmt::format("not a time in microseconds: {}", quote(text)));
  return std::nullopt;
}

void Collector::start_file(const std::string& path) {
  files_.push_back({path, {fmt::format("imported from {} ({})", one_line(path), name(source_))}});
}

Collector::Type& Collector::summary_of(Class of, const std::string& type, std::int64_t count, Seconds time) {
  Type& summed = types_[{of, type}];
  summed.summary.type = type;
  summed.summary.of = of;
  summed.summary.count += count;
  summed.summary.total += time;
  return summed;
}

void Collector::add(const Execution& e) {
  Type& type = summary_of(e.of, e.type, e.count, e.time);
  std::string remark = e.mapped.remark;
  if (e.mapped.row && !(e.time.value > 0)) remark = "no time";
  if (e.mapped.row && e.time >= kLongestTime) remark = "time out of range";
  if (e.mapped.row && !measure::writable({hardware_, *e.mapped.row, e.time, 0, 0, {}})) remark = "sizes out of range";
  if (e.mapped.row && remark.empty() && measure::contradiction(e.mapped.row->shape)) remark = "sizes do not fit";
  if (!e.mapped.row || !remark.empty()) {
    type.remarks[remark] += e.count;
    if (e.mapped.group != nullptr) add_to_group(*e.mapped.group, e, type.summary);
    return;
  }
  type.summary.imported += e.count;
  type.summary.in_rows += e.time;
  const auto [found, added] = known_.try_emplace({e.type, measure::describe(*e.mapped.row)}, measured_.size());
  if (added) measured_.push_back({*e.mapped.row, e.type, files_.size() - 1, e.line, {}});
  measured_[found->second].times.push_back(e.time.value);
}

void Collector::add(Class of, const std::string& type, Seconds time, std::vector<measure::Row> rows,
                    std::string remark) {
  Type& summed = summary_of(of, type, 1, time);
  constexpr Seconds kShortest{1e-9};
  const bool within = std::all_of(rows.begin(), rows.end(), [&](const measure::Row& row) {
    return row.latency >= kShortest && row.latency < kLongestTime;
  });
  if (remark.empty() && !within) remark = "time out of range";
  if (remark.empty() && !std::all_of(rows.begin(), rows.end(), measure::writable)) remark = "sizes out of range";
  if (!remark.empty()) {
    ++summed.remarks[remark];
    return;
  }
  ++summed.summary.imported;
  summed.summary.in_rows += time;
  for (measure::Row& row : rows) {
    row.file = files_.size() - 1;
    // Type and source stand before what a run adds to them, and behind what a step does.
    row.extra.insert(of == Class::run ? row.extra.begin() : row.extra.end(),
                     {one_line(type), std::string(name(source_))});
    rows_.push_back(std::move(row));
  }
}

void Collector::add_to_group(const Group& group, const Execution& e, TypeSummary& type) {
  auto found = std::find_if(groups_.begin(), groups_.end(),
                            [&](const GroupSummary& g) { return g.group == &group && g.of == e.of; });
  if (found == groups_.end()) found = groups_.insert(groups_.end(), {.group = &group, .of = e.of, .total = {}});
  found->count += e.count;
  found->total += e.time;
  type.in_groups += e.time;
}

measure::Row Collector::row(Measured& m) const {
  const bool collective = std::holds_alternative<CollectiveShape>(m.op.shape);
  const double latency =
      collective ? *std::min_element(m.times.begin(), m.times.end()) : measure::quantile(m.times, 0.5);
  const double spread = measure::quantile(m.times, 0.75) - measure::quantile(m.times, 0.25);
  return {.hardware = hardware_,
          .of = std::move(m.op),
          .latency = Seconds{latency},
          .file = m.file,
          .line = m.line,
          .extra = {format_significant(spread * 1e6, 4), fmt::format("{}", m.times.size()), one_line(m.type),
                    std::string(name(source_))}};
}

Imported Collector::finish() {
  Imported result{.source = source_, .measurements = {}, .types = {}, .groups = std::move(groups_), .passed_over = {}};
  for (const std::string& column : passed_over_) result.passed_over.push_back(one_line(column));
  if (!result.passed_over.empty() && !files_.empty()) {
    files_.front().notes.push_back(fmt::format("columns passed over: {}", join(result.passed_over, ", ")));
  }
  result.measurements.files = std::move(files_);
  result.measurements.rows = std::move(rows_);
  result.measurements.extra_columns = extra_columns(source_);
  for (Measured& m : measured_) result.measurements.rows.push_back(row(m));
  for (auto& [key, type] : types_) {
    type.summary.remark = remark_text(type.remarks);
    result.types.push_back(std::move(type.summary));
  }
  const auto by_time = [](const auto& a, const auto& b) {
    return std::tuple(a.of, -a.total.value) < std::tuple(b.of, -b.total.value);
  };
  std::stable_sort(result.types.begin(), result.types.end(), by_time);
  std::stable_sort(result.groups.begin(), result.groups.end(), by_time);
  return result;
}

}  // namespace llmperf::import
