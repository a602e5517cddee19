#include "estimate/step_size.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "model/parameters.h"

namespace llmperf::estimate {

std::string model_kind(const model::Decoder& model) {
  const auto any = [&](auto&& has) { return std::any_of(model.kinds.begin(), model.kinds.end(), has); };
  std::vector<std::string> parts;
  if (any([](const model::Layer& l) { return l.feed_forward.experts.has_value(); })) parts.emplace_back("experts");
  if (any([](const model::Layer& l) { return l.attention.latent.has_value(); })) parts.emplace_back("latent attention");
  return parts.empty() ? "dense" : join(parts, ", ");
}

hardware::StepSize step_size(const Setup& setup) {
  const graph::Execution& e = setup.execution;
  hardware::StepSize step;
  step.parameters = static_cast<double>(model::count_parameters(*e.model).total);
  step.weights = e.weights.name;
  if (const auto kernel = e.weights.groups.front()[model::Role::o].kernel; kernel && setup.profile) {
    for (const std::string& fitted : setup.profile->range.weights) {
      if (fitted.starts_with(llmperf::name(*kernel))) step.weights = fitted;
    }
  }
  step.kv = e.kv.name();
  step.plan = graph::to_text(e.plan);
  step.kind = model_kind(*e.model);
  step.device = setup.device->name;
  for (const model::LayerGroup& group : e.weights.groups) step.layers_on_host += group.on_host ? group.count() : 0;
  return step;
}

}  // namespace llmperf::estimate
