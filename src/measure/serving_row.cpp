#include "measure/serving_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

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
  const std::vector<ServingFigure>& all = serving_figures();
  const auto found = std::find_if(all.begin(), all.end(), [&](const ServingFigure& f) { return f.metric == metric; });
  return found == all.end() ? nullptr : &*found;
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

std::vector<std::string> settings_of(const ServingRow& r) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view what, const auto& value) {
    parts.push_back(fmt::format("{} {}", what, value));
  };
  for (const auto& [axis, degree] :
       {std::pair{"tp", r.tp}, std::pair{"ep", r.ep}, std::pair{"dp", r.dp}, std::pair{"pp", r.pp}}) {
    if (degree > 1) add(axis, degree);
  }
  for (const auto& [what, part] :
       {std::pair{"kv", &r.kv}, std::pair{"of", &r.engine_version}, std::pair{"execution", &r.execution},
        std::pair{"options", &r.options}, std::pair{"prefill", &r.prefill_plan}, std::pair{"decode", &r.decode_plan},
        std::pair{"draft", &r.draft}, std::pair{"accept", &r.accept}}) {
    if (!part->empty()) add(what, *part);
  }
  for (const auto& [what, value] :
       {std::pair{"max batched tokens", r.max_batched_tokens}, std::pair{"max seqs", r.max_seqs},
        std::pair{"blocks", r.kv_blocks}, std::pair{"block size", r.block_size},
        std::pair{"prefill replicas", r.prefill_replicas}, std::pair{"decode replicas", r.decode_replicas}}) {
    if (value > 0) add(what, value);
  }
  if (r.replicas > 1) add("replicas", r.replicas);
  if (r.kv_utilisation) add("kv utilisation", *r.kv_utilisation);
  if (r.prefix_caching) add("prefix caching", *r.prefix_caching ? "on" : "off");
  if (r.rate) add("rate", *r.rate);
  if (r.burstiness != 1) add("burstiness", r.burstiness);
  if (r.concurrency > 0) add("concurrency", r.concurrency);
  if (r.requests > 0) add("requests", r.requests);
  if (!r.trace.empty()) add("trace", r.trace);
  if (!r.input.empty()) parts.push_back(fmt::format("{} -> {}", r.input, r.output));
  if (!r.prefix.empty()) add("prefix", r.prefix);
  return parts;
}

std::string describe(const ServingRow& row) { return join(settings_of(row), " "); }

}  // namespace llmperf::measure
