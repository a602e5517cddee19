// A plan in the JSON outputs. Included by .cpp files only.
#pragma once

#include "graph/plan.h"
#include "report/json.h"

namespace llmperf::report {

inline Json plan_json(const graph::Plan& plan) {
  return {{"text", graph::to_text(plan)},
          {"devices", plan.devices()},
          {"tensor", plan.tensor},
          {"tensor_rows", plan.tensor_rows > 0 ? Json(plan.tensor_rows) : Json(nullptr)},
          {"sequence_parallel", plan.sequence_parallel},
          {"ulysses", plan.ulysses},
          {"ring", plan.ring},
          {"expert", plan.expert},
          {"data", plan.data},
          {"pipeline", plan.pipeline},
          {"embedding", plan.shard_embedding ? "sharded" : "replicated"}};
}

}  // namespace llmperf::report
