#include "measure/serving_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace llmperf::measure {

bool ServingRow::same_run(const ServingRow& other) const {
  ServingRow copy = other;
  copy.metric = metric;
  return *this == copy;
}

const std::vector<ServingFigure>& serving_figures() {
  static const std::vector<ServingFigure> kFigures = [] {
    std::vector<ServingFigure> figures;
    for (const std::string_view metric : serving::kMetrics) {
      for (const std::string_view statistic : serving::kStatistics) {
        figures.push_back({fmt::format("{}.{}", metric, statistic), fmt::format("{}_{}_ms", metric, statistic)});
      }
    }
    for (const char* rate : {"output_tokens_per_second", "requests_per_second"}) figures.push_back({rate, rate, true});
    return figures;
  }();
  return kFigures;
}

const ServingFigure* find_figure(std::string_view metric) {
  const auto found = std::ranges::find(serving_figures(), metric, &ServingFigure::metric);
  return found == serving_figures().end() ? nullptr : &*found;
}

Seconds figure_of(const serving::Summary& summary, std::string_view metric) {
  if (metric == "output_tokens_per_second") return Seconds{1 / summary.output_tokens_per_second};
  if (metric == "requests_per_second") return Seconds{1 / summary.requests_per_second};
  const std::size_t dot = metric.find('.');
  for (std::size_t i = 0; i < serving::kMetrics.size(); ++i) {
    if (metric.substr(0, dot) != serving::kMetrics[i]) continue;
    return Seconds{summary.of(static_cast<serving::Metric>(i)).of(metric.substr(dot + 1))};
  }
  return Seconds{std::nan("")};
}

}  // namespace llmperf::measure
