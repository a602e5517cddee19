// The flags that spread a model over devices, the same on every command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "graph/plan.h"
#include "model/video_dit.h"

namespace CLI {
class App;
}

namespace llmperf::cli {

struct PlanFlags {
  std::string tensor;  // "8", or "2x4": rows x columns
  std::string pipeline;
  std::string data;
  std::string expert;
  std::string expert_dispatch;
  std::string expert_combine;
  std::string sequence;  // "ulysses:4xring:2"
  bool sequence_parallel = false;
  std::string embedding;  // empty: sharded, or as the runtime does
  std::string devices;
  std::string devices_per_node;
};
void add_plan_flags(CLI::App& command, PlanFlags& flags);

// The plan the flags describe. --devices checks the product of the degrees, and gives the data axis what they leave.
// Throws Error(bad_input), all problems at once, with the nearest legal degrees.
graph::Plan plan_of(const PlanFlags& flags, const model::Decoder& model);
graph::Plan plan_of(const PlanFlags& flags, const model::VideoDit& model);
bool sharded_embedding(const PlanFlags& flags);
std::optional<std::int64_t> devices_per_node_of(const PlanFlags& flags);

}  // namespace llmperf::cli
