#include "measure/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>

namespace llmperf::measure {
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

// The name of a row within one kind of groups; nothing when the kind does not apply to it.
struct Grouping {
  std::string_view by;
  std::optional<Label> (*label)(const Row& row);
};

// Of steps, and of ops of one shape, by a function of that; an empty name is none.
std::optional<Label> named(Label label) { return label.name.empty() ? std::nullopt : std::optional(std::move(label)); }
template <auto Name>
std::optional<Label> of_step(const Row& row) {
  const auto* step = std::get_if<StepRow>(&row.of);
  return step ? named(Name(*step)) : std::nullopt;
}
template <class Shape, auto Name>
std::optional<Label> of_shape(const Row& row) {
  const auto* op = std::get_if<OpRow>(&row.of);
  const auto* shape = op ? std::get_if<Shape>(&op->shape) : nullptr;
  return shape ? named(Name(*shape)) : std::nullopt;
}
template <auto Member>
std::optional<Label> of_op(const Row& row) {
  const auto* op = std::get_if<OpRow>(&row.of);
  return op ? named({op->*Member}) : std::nullopt;
}

Label phase(const StepRow& s) { return {std::string(name(s.phase)), static_cast<std::int64_t>(s.phase)}; }
Label runtime_phase(const StepRow& s) {
  return {s.runtime.empty() ? "" : fmt::format("{} {}", s.runtime, name(s.phase))};
}
Label batch_band(const StepRow& s) { return band(kBatchBands, s.batch); }
Label runtime_batch_band(const StepRow& s) {
  return {s.runtime.empty() ? "" : fmt::format("{} batch {}", s.runtime, batch_band(s).name)};
}
Label m_band(const GemmShape& g) { return band(kRowBands, g.m); }
Label scheme(const GemmShape& g) { return {fmt::format("gemm {}", g.weights.empty() ? "dense" : g.weights)}; }
Label site(const GemmShape& g) { return {fmt::format("n {} k {}", g.n, g.k)}; }
Label layout(const AttentionShape& a) { return {fmt::format("{}/{} x {}", a.heads, a.kv_heads, a.head_dim)}; }
Label collective(const CollectiveShape& c) {
  return {fmt::format("{}{} {} ranks", c.custom ? "custom " : "", name(c.kind), c.ranks)};
}
Label latent_layout(const LatentShape& l) { return {fmt::format("{} heads", l.heads)}; }
Label experts(const ExpertsShape& e) {
  return {fmt::format("{} of {} x {} x {}", e.topk, e.experts, e.hidden, e.inter)};
}
Label experts_scheme(const ExpertsShape& e) { return {fmt::format("moe {}", e.weights.empty() ? "dense" : e.weights)}; }
std::optional<Label> any_scheme(const Row& row) {
  const std::optional<Label> label = of_shape<GemmShape, scheme>(row);
  return label ? label : of_shape<ExpertsShape, experts_scheme>(row);
}
std::optional<Label> any_layout(const Row& row) {
  const std::optional<Label> label = of_shape<AttentionShape, layout>(row);
  return label ? label : of_shape<LatentShape, latent_layout>(row);
}
std::optional<Label> hardware_phase(const Row& row) {
  const auto* step = std::get_if<StepRow>(&row.of);
  return step ? std::optional(Label{fmt::format("{} {}", row.hardware, name(step->phase))}) : std::nullopt;
}
Label backend(const StepRow& s) { return {s.backend.substr(0, s.backend.find('?'))}; }
Label cards(const StepRow& s) {
  if (s.n_gpu == 1) return {s.split.empty() && s.backend.empty() ? "" : "1", 1};
  return {fmt::format("{} by {}", s.n_gpu, s.split.empty() ? "layer" : s.split), s.n_gpu};
}
Label offload(const StepRow& s) {
  if (s.host.empty() || !s.gpu_layers) return {};
  return {fmt::format("{} beside {}", *s.gpu_layers == 0 ? "no layers" : "layers", s.host)};
}
template <auto Member>
Label text(const StepRow& s) {
  return {s.*Member};
}

// Of figures of servers, each kind for every metric apart.
template <auto Name>
std::optional<Label> of_run(const Row& row) {
  const auto* run = std::get_if<ServingRow>(&row.of);
  if (!run) return std::nullopt;
  Label label = Name(row, *run);
  const auto& figures = serving_figures();
  const auto metric = find_figure(run->metric) - figures.data();
  constexpr std::int64_t kApart = std::int64_t{1} << 40;
  label.order += metric * kApart;
  label.name = label.name.empty() ? run->metric : fmt::format("{} {}", run->metric, label.name);
  return label;
}
Label metric_alone(const Row&, const ServingRow&) { return {}; }
Label of_device(const Row& row, const ServingRow&) { return {row.hardware}; }
Label of_model(const Row&, const ServingRow& r) { return {r.model}; }
Label of_tp(const Row&, const ServingRow& r) { return {fmt::format("tp {}", r.tp), r.tp}; }
Label of_load(const Row&, const ServingRow& r) {
  if (!r.trace.empty()) return {"trace " + r.trace};
  const serving::Load& load = r.load;
  if (load.concurrency) return {fmt::format("concurrency {}", *load.concurrency), *load.concurrency};
  if (load.rate) return {fmt::format("{} requests/s", *load.rate), static_cast<std::int64_t>(*load.rate)};
  return {"at once"};
}

template <auto Member>
std::optional<Label> of_training(const Row& row) {
  const auto* run = std::get_if<TrainingRow>(&row.of);
  if (!run) return std::nullopt;
  return Label{fmt::format("{} {}", row.hardware, run->*Member)};
}

constexpr Grouping kGroupings[] = {{"hardware_runtime", of_training<&TrainingRow::runtime>},
                                   {"hardware_precision", of_training<&TrainingRow::precision>},
                                   {"hardware_task", of_training<&TrainingRow::task>},
                                   {"hardware_source", of_training<&TrainingRow::source>},
                                   {"runtime", of_step<text<&StepRow::runtime>>},
                                   {"phase", of_step<phase>},
                                   {"runtime_phase", of_step<runtime_phase>},
                                   {"batch_band", of_step<batch_band>},
                                   {"runtime_batch_band", of_step<runtime_batch_band>},
                                   {"model", of_step<text<&StepRow::model>>},
                                   {"weights", of_step<text<&StepRow::weights>>},
                                   {"execution", of_step<text<&StepRow::execution>>},
                                   {"options", of_step<text<&StepRow::options>>},
                                   {"hardware_phase", hardware_phase},
                                   {"backend", of_step<backend>},
                                   {"era", of_step<text<&StepRow::era>>},
                                   {"cards", of_step<cards>},
                                   {"offload", of_step<offload>},
                                   {"metric", of_run<metric_alone>},
                                   {"metric_hardware", of_run<of_device>},
                                   {"metric_model", of_run<of_model>},
                                   {"metric_tp", of_run<of_tp>},
                                   {"metric_load", of_run<of_load>},
                                   {"op", of_op<&OpRow::op>},
                                   {"mode", of_op<&OpRow::mode>},
                                   {"kernel", of_op<&OpRow::kernel>},
                                   {"m_band", of_shape<GemmShape, m_band>},
                                   {"scheme", any_scheme},
                                   {"site", of_shape<GemmShape, site>},
                                   {"layout", any_layout},
                                   {"experts", of_shape<ExpertsShape, experts>},
                                   {"collective", of_shape<CollectiveShape, collective>}};

}  // namespace

double relative_error(const Row& row, double predicted) {
  const auto* run = std::get_if<ServingRow>(&row.of);
  const ServingFigure* figure = run ? find_figure(run->metric) : nullptr;
  const bool rate = figure && figure->rate;
  return rate ? relative_error(row.latency.value, predicted) : relative_error(predicted, row.latency.value);
}

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

std::vector<RowsOfText> rows_by_text(std::span<const std::size_t> rows,
                                     const std::function<std::optional<std::string>(std::size_t row)>& text) {
  std::vector<RowsOfText> groups;
  std::unordered_map<std::string, std::size_t> known;
  for (const std::size_t row : rows) {
    std::optional<std::string> of = text(row);
    if (!of) continue;
    const auto [found, added] = known.try_emplace(*of, groups.size());
    if (added) groups.push_back({std::move(*of), {}});
    groups[found->second].rows.push_back(row);
  }
  return groups;
}

std::vector<RowGroup> group_rows(const Measurements& measurements, std::span<const std::size_t> rows) {
  std::vector<RowGroup> all;
  for (const Grouping& grouping : kGroupings) {
    std::map<std::string, std::int64_t> order;
    auto groups = rows_by_text(rows, [&](std::size_t row) -> std::optional<std::string> {
      const std::optional<Label> label = grouping.label(measurements.rows[row]);
      if (!label) return std::nullopt;
      order[label->name] = label->order;
      return label->name;
    });
    std::stable_sort(groups.begin(), groups.end(),
                     [&](const auto& a, const auto& b) { return order[a.text] < order[b.text]; });
    for (RowsOfText& group : groups) {
      all.push_back({std::string(grouping.by), std::move(group.text), std::move(group.rows)});
    }
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

}  // namespace llmperf::measure
