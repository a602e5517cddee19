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

std::string remark_text(const std::map<std::string, std::int64_t>& remarks) {
  std::vector<std::pair<std::string, std::int64_t>> list(remarks.begin(), remarks.end());
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> parts;
  for (const auto& [remark, count] : list) {
    parts.push_back(list.size() == 1 ? remark : fmt::format("{} ({})", remark, count));
  }
  return join(parts, ", ");
}

// Names of files and kernels are anybody's text; a comment is one line.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

}  // namespace

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

void Collector::add(const Execution& e) {
  Type& type = types_[{e.of, e.type}];
  type.summary.type = e.type;
  type.summary.of = e.of;
  type.summary.count += e.count;
  type.summary.total += e.time;
  std::string remark = e.mapped.remark;
  constexpr Seconds kLongest{1e6};  // a file of measurements takes no more
  if (e.mapped.row && !(e.time.value > 0)) remark = "no time";
  if (e.mapped.row && e.time >= kLongest) remark = "time out of range";
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

void Collector::add_step(const std::string& type, Seconds time, measure::Row row, std::string remark) {
  Type& of = types_[{Class::step, type}];
  of.summary.type = type;
  of.summary.of = Class::step;
  ++of.summary.count;
  of.summary.total += time;
  constexpr Seconds kShortest{1e-9};
  constexpr Seconds kLongest{1e6};
  if (remark.empty() && (row.latency < kShortest || row.latency >= kLongest)) remark = "time out of range";
  if (remark.empty() && !measure::writable(row)) remark = "sizes out of range";
  if (!remark.empty()) {
    ++of.remarks[remark];
    return;
  }
  ++of.summary.imported;
  of.summary.in_rows += time;
  row.file = files_.size() - 1;
  const auto& step = std::get<measure::StepRow>(row.of);
  row.extra = {format_significant(static_cast<double>(step.new_tokens * step.batch) / row.latency.value),
               one_line(type), std::string(name(source_))};
  steps_.push_back(std::move(row));
}

void Collector::add_run(const std::string& type, Seconds time, std::vector<measure::Row> rows, std::string remark,
                        const std::string& untrusted) {
  Type& of = types_[{Class::run, type}];
  of.summary.type = type;
  of.summary.of = Class::run;
  ++of.summary.count;
  of.summary.total += time;
  constexpr Seconds kShortest{1e-9};
  constexpr Seconds kLongest{1e6};
  const bool within = std::all_of(rows.begin(), rows.end(), [&](const measure::Row& row) {
    return row.latency > kShortest && row.latency < kLongest;
  });
  const bool writable = std::all_of(rows.begin(), rows.end(), measure::writable);
  if (remark.empty() && !within) remark = "time out of range";
  if (remark.empty() && !writable) remark = "sizes out of range";
  if (!remark.empty()) {
    ++of.remarks[remark];
    return;
  }
  ++of.summary.imported;
  of.summary.in_rows += time;
  for (measure::Row& row : rows) {
    row.file = files_.size() - 1;
    row.extra = {one_line(type), std::string(name(source_)), untrusted};
    steps_.push_back(std::move(row));
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
  result.measurements.rows = std::move(steps_);
  if (source_ == Source::llama_bench) {
    result.measurements.extra_columns.assign(std::begin(kExtraStepColumns), std::end(kExtraStepColumns));
  } else if (is_of_servers(source_)) {
    result.measurements.extra_columns.assign(std::begin(kExtraRunColumns), std::end(kExtraRunColumns));
  } else {
    result.measurements.extra_columns.assign(std::begin(kExtraColumns), std::end(kExtraColumns));
  }
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
