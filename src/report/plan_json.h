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
          {"expert_dispatch", plan.expert_dispatch ? Json(std::string(name(*plan.expert_dispatch))) : Json(nullptr)},
          {"expert_combine", plan.expert_combine ? Json(std::string(name(*plan.expert_combine))) : Json(nullptr)},
          {"data", plan.data},
          {"pipeline", plan.pipeline},
          {"embedding", plan.shard_embedding ? "sharded" : "replicated"}};
}

}  // namespace llmperf::report
