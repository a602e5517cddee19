#include "calibrate/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>

namespace llmperf::calibrate {
namespace {

// A name and where it stands among its like.
struct Label {
  std::string name;
  std::int64_t order = 0;
};

struct Band {
  std::int64_t last;  // inclusive
  std::string_view name;
};
constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
constexpr Band kBatchBands[] = {{1, "1"}, {8, "2-8"}, {32, "9-32"}, {128, "33-128"}, {kAny, "129 and more"}};
constexpr Band kRowBands[] = {{1, "1"},           {16, "2-16"},        {64, "17-64"},          {256, "65-256"},
                              {1024, "257-1024"}, {4096, "1025-4096"}, {kAny, "4097 and more"}};

Label band(std::span<const Band> bands, std::int64_t value) {
  std::size_t i = 0;
  while (value > bands[i].last) ++i;
  return {std::string(bands[i].name), static_cast<std::int64_t>(i)};
}

template <class Shape>
const Shape* shape_of(const Row& row) {
  const auto* o = std::get_if<OpRow>(&row.of);
  return o ? std::get_if<Shape>(&o->shape) : nullptr;
}
const StepRow* step_of(const Row& row) { return std::get_if<StepRow>(&row.of); }

// What a step row says in one of its text columns.
template <std::string StepRow::*Member>
std::optional<Label> text_label(const Row& row) {
  const StepRow* s = step_of(row);
  return s && !(s->*Member).empty() ? std::optional(Label{s->*Member}) : std::nullopt;
}

std::optional<Label> phase_label(const Row& row) {
  const StepRow* s = step_of(row);
  return s ? std::optional(Label{std::string(name(s->phase)), static_cast<std::int64_t>(s->phase)}) : std::nullopt;
}
std::optional<Label> batch_label(const Row& row) {
  const StepRow* s = step_of(row);
  return s ? std::optional(band(kBatchBands, s->batch)) : std::nullopt;
}
std::optional<Label> runtime_phase_label(const Row& row) {
  const StepRow* s = step_of(row);
  return s ? std::optional(Label{fmt::format("{} {}", s->runtime, name(s->phase))}) : std::nullopt;
}
std::optional<Label> runtime_batch_label(const Row& row) {
  const StepRow* s = step_of(row);
  return s ? std::optional(Label{fmt::format("{} batch {}", s->runtime, band(kBatchBands, s->batch).name)})
           : std::nullopt;
}
std::optional<Label> op_label(const Row& row) {
  const auto* o = std::get_if<OpRow>(&row.of);
  return o ? std::optional(Label{o->op}) : std::nullopt;
}
std::optional<Label> rows_label(const Row& row) {
  const auto* g = shape_of<GemmShape>(row);
  return g ? std::optional(band(kRowBands, g->m)) : std::nullopt;
}
std::optional<Label> site_label(const Row& row) {
  const auto* g = shape_of<GemmShape>(row);
  return g ? std::optional(Label{fmt::format("n {} k {}", g->n, g->k)}) : std::nullopt;
}
std::optional<Label> layout_label(const Row& row) {
  const auto* a = shape_of<AttentionShape>(row);
  return a ? std::optional(Label{fmt::format("{}/{} x {}", a->heads, a->kv_heads, a->head_dim)}) : std::nullopt;
}
std::optional<Label> collective_label(const Row& row) {
  const auto* c = shape_of<CollectiveShape>(row);
  return c ? std::optional(Label{fmt::format("{} {} ranks", name(c->kind), c->ranks)}) : std::nullopt;
}

struct Grouping {
  std::string_view by;
  std::optional<Label> (*label)(const Row& row);
};
constexpr Grouping kGroupings[] = {{"runtime", text_label<&StepRow::runtime>},
                                   {"phase", phase_label},
                                   {"runtime_phase", runtime_phase_label},
                                   {"batch_band", batch_label},
                                   {"runtime_batch_band", runtime_batch_label},
                                   {"model", text_label<&StepRow::model>},
                                   {"weights", text_label<&StepRow::weights>},
                                   {"execution", text_label<&StepRow::execution>},
                                   {"options", text_label<&StepRow::options>},
                                   {"op", op_label},
                                   {"m_band", rows_label},
                                   {"site", site_label},
                                   {"layout", layout_label},
                                   {"collective", collective_label}};

}  // namespace

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double rank = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values.begin(), values.begin() + below, values.end());
  const double low = values[static_cast<std::size_t>(below)];
  const double part = rank - static_cast<double>(below);
  if (part == 0) return low;
  const double high = *std::min_element(values.begin() + below + 1, values.end());
  return low + part * (high - low);
}

Summary summarise(std::span<const double> errors) {
  Summary s;
  s.rows = static_cast<std::int64_t>(errors.size());
  if (errors.empty()) {
    s.mape = s.median_ape = s.p90_ape = s.max_ape = s.bias = std::numeric_limits<double>::quiet_NaN();
    return s;
  }
  std::vector<double> size(errors.size());
  std::transform(errors.begin(), errors.end(), size.begin(), [](double e) { return std::abs(e); });
  const auto n = static_cast<double>(errors.size());
  s.mape = std::accumulate(size.begin(), size.end(), 0.0) / n;
  s.bias = std::accumulate(errors.begin(), errors.end(), 0.0) / n;
  s.max_ape = *std::max_element(size.begin(), size.end());
  s.median_ape = quantile(size, 0.5);
  s.p90_ape = quantile(std::move(size), 0.9);
  return s;
}

std::vector<RowGroup> group_rows(const Measurements& measurements, std::span<const std::size_t> rows) {
  std::vector<RowGroup> all;
  for (const Grouping& grouping : kGroupings) {
    std::vector<std::pair<std::int64_t, RowGroup>> groups;
    std::unordered_map<std::string, std::size_t> known;
    for (const std::size_t row : rows) {
      std::optional<Label> label = grouping.label(measurements.rows[row]);
      if (!label) continue;
      const auto [found, added] = known.try_emplace(label->name, groups.size());
      if (added) groups.emplace_back(label->order, RowGroup{std::string(grouping.by), std::move(label->name), {}});
      groups[found->second].second.rows.push_back(row);
    }
    std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [order, group] : groups) all.push_back(std::move(group));
  }
  return all;
}

std::string group_name(const Row& row, std::string_view by) {
  for (const Grouping& grouping : kGroupings) {
    if (grouping.by != by) continue;
    std::optional<Label> label = grouping.label(row);
    return label ? std::move(label->name) : std::string();
  }
  return {};
}

}  // namespace llmperf::calibrate
