// What the formulas of an op's work share. Internal to explain.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "estimate/explain_parts.h"

namespace llmperf::estimate {

// The op that a formula is of.
struct FormulaOf {
  const Estimator& estimator;
  const graph::Op& op;
  const graph::SequenceGroup& group;

  const graph::Execution& execution() const { return estimator.setup().execution; }
  // What a device holds of the op's layer.
  std::optional<model::Layer> layer() const {
    if (op.layer_kind < 0) return std::nullopt;
    return graph::shard(execution().model->kinds[static_cast<std::size_t>(op.layer_kind)], execution().plan);
  }
};

// Variables of the explanation, by name.
std::string element_bytes(Explanation& x, Dtype dtype);
std::string cached_bytes(Explanation& x, const model::ElementFormat& format,
                         std::string_view variable = "kv_element_bytes");
std::string dequant(Explanation& x, const model::StoredFormat& format);

// The formula of a product's number; empty: it has none.
std::string formula(const graph::Gemm& g, Metric metric, const FormulaOf& c, Explanation& x);

}  // namespace llmperf::estimate
