// Parameters that one device of a plan holds, by what happens to their gradients. Internal to src/estimate.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/decoder_graph.h"
#include "graph/plan.h"
#include "graph/stage_split.h"

namespace llmperf::estimate {

struct ParameterShare {
  double dense = 0;     // the same on all Plan::replicas()
  double expert = 0;    // routed experts: the same on all Plan::expert_replicas()
  double summands = 0;  // of `dense`: vectors that the tensor axis does not divide; under sequence parallelism every
                        // device of it sees the gradients of its own tokens only
  double outer = 0;     // of `dense`: embedding, lm_head, final norm
  double largest_dense = 0;    // of the layer that has most
  double largest_experts = 0;  // likewise
  ParameterShare& add(const ParameterShare& other, double times);
  double total() const { return dense + expert; }
};

// Sums over tensors, kept for every degree seen.
class ParameterShares {
 public:
  explicit ParameterShares(const model::Decoder& model);

  // Of pipeline stage `stage`. Allocates nothing for degrees seen before.
  ParameterShare stage(const graph::Plan& plan, const graph::StageSplit& split, std::int64_t stage);
  // Elements of a tied embedding that two stages hold, on one device; 0 when there is one copy.
  double tied(const graph::Plan& plan) const;
  // Layers of one kind on a stage.
  std::int64_t layers(const graph::StageSplit& split, std::int64_t stage, std::size_t kind) const;

 private:
  struct Entry {
    std::int64_t tensor, rows, expert;
    std::vector<ParameterShare> kinds;
  };
  const Entry& of(const graph::Plan& plan);

  const model::Decoder& model_;
  std::vector<Entry> entries_;
  std::vector<std::vector<std::int64_t>> before_;  // [kind][i]: layers of the kind among the first i
  double positions_ = 0;
  double final_norm_ = 0;
  double head_bias_ = 0;
};

}  // namespace llmperf::estimate
