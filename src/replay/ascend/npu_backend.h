// The backend on CANN's functions, wherever they were looked up.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include "replay/ascend/describe.h"
#include "replay/ascend/ops.h"
#include "replay/ascend/rank_group.h"
#include "replay/ascend/timing.h"

namespace llmperf::replay::ascend {

class NpuBackend : public Backend {
 public:
  // An idle device clocks down: before the first run, and after a pause, the sequence is executed for as long as
  // `warm_up` without being timed, and at least once before every run.
  NpuBackend(std::shared_ptr<const cann::Functions> cann, int device, Seconds warm_up);
  ~NpuBackend() override;

  Description describe() const override;
  std::variant<std::unique_ptr<Prepared>, Unavailable> prepare(const calibrate::OpRow& op,
                                                               std::int64_t copies) override;
  Seconds run(std::span<Prepared* const> sequence, std::int64_t passes) override;
  std::vector<float> result(Prepared& op) override;

  // Whether the last run was one of a graph.
  bool ran_as_graph() const { return ran_as_graph_; }

 private:
  std::unique_ptr<Op> make(const calibrate::OpRow& op, std::int64_t copies);
  RankGroup& group(std::int64_t ranks);
  // The largest that the ops of the sequence are over; null: all are on one device.
  static RankGroup* widest(std::span<Op* const> sequence);
  Timing execute(std::span<Op* const> sequence, std::int64_t passes, bool graphs);
  void warm(std::span<Op* const> sequence);

  std::shared_ptr<const cann::Functions> cann_;
  Runtime runtime_;
  Device device_;
  NpuFacts facts_;
  Seconds warm_up_;
  std::optional<std::chrono::steady_clock::time_point> last_run_;
  bool ran_as_graph_ = false;
  std::map<int, std::unique_ptr<RankGroup>> groups_;
};

}  // namespace llmperf::replay::ascend
