// What one measurement of a training step is of: the run as its command said it, and what came of it. The columns are
// those of hardware/measurements/training.csv.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hardware/device.h"
#include "request/request.h"

namespace llmperf::measure {

struct TrainingRow {
  std::string runtime, engine_version;  // that the framework is taken for, its release or else year
  std::string id, source, framework;
  std::int64_t year = 0;
  std::int64_t gpus = 1, gpus_per_node = 0;  // 0: one domain
  std::string model, task, precision, weights, optimizer;
  std::int64_t lora_rank = 0;
  std::string lora_targets;
  std::int64_t seq = 1, gbs = 1, mbs = 1;  // tokens of a sequence; sequences of a step, of a micro-batch
  std::int64_t tp = 1, pp = 1, vp = 1, cp = 1, ep = 1;
  bool sp = false;
  std::string schedule, dp_mode;
  std::int64_t shard_group = 0;
  std::string recompute, loss;
  std::optional<double> mem_gib;  // of one device
  std::string mem_kind;           // "allocated", "reserved", …
  bool oom = false;               // it ended out of memory
  std::string notes;              // in words; where they name CUDA graphs, the host launches those

  std::int64_t replicas() const { return std::max<std::int64_t>(1, gpus / (tp * pp * cp)); }
  // Of a replica, the last of which may be smaller.
  std::int64_t micro_batch() const { return std::min(mbs, (gbs + replicas() - 1) / replicas()); }
  std::int64_t micro_batches() const {
    const std::int64_t whole = replicas() * micro_batch();
    return (gbs + whole - 1) / whole;
  }
  bool operator==(const TrainingRow&) const = default;
};

inline constexpr std::string_view kRecipe = "recipe";  // TrainingRow::recompute: not known

// Fills in runtime and engine_version.
void name_stack(TrainingRow& row);
// The same run as a request; of a model of so many layers.
request::Request request_of(const TrainingRow& row, const hardware::Device& device, std::int64_t layers);
// "tp 8 pp 4, 64 x 4096 tokens by 1, full recomputation"
std::string describe(const TrainingRow& row);

}  // namespace llmperf::measure
