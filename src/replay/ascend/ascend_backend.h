// A Huawei Ascend NPU through CANN, whose libraries are loaded at run time.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "replay/ascend/cann.h"
#include "replay/ascend/op.h"
#include "replay/backend.h"

namespace llmperf::replay::ascend {

// Throws Error(failed) saying which library was not found and where it was looked for, or what CANN refused.
// `page`: attention reads its cache in pages of as many tokens; 0: each sequence's lies whole.
std::unique_ptr<Backend> make_ascend_backend(int device, std::int64_t page = 0);

// ---- What an NPU says of itself.

struct NpuFacts {
  Description description = {};
  std::optional<std::int64_t> l2_bytes = {};
  int devices = 0;
};

// Of the device that is current on this thread.
NpuFacts read_facts(const cann::Functions& cann, int device);

// The name of the device's file: "ascend-910b4" of Ascend910B4, "ascend-910b4-1" of one with 64 GB, "ascend-310p",
// "ascend-910a"; a chip that no file is known of: its own name in lower case.
std::string device_name(const std::string& soc, std::optional<std::int64_t> hbm_bytes);

// ---- The backend on CANN's functions, wherever they were looked up.

class NpuBackend : public Backend {
 public:
  // An idle device clocks down: before the first run, and after a pause, the sequence is executed for as long as
  // `warm_up` without being timed, and at least once before every run.
  // `page`: tokens of a page of attention's caches; 0: each sequence's lies whole.
  NpuBackend(std::shared_ptr<const cann::Functions> cann, int device, Seconds warm_up, std::int64_t page = 0);
  ~NpuBackend() override;

  Description describe() const override { return facts_.description; }
  Seconds run(std::span<Prepared* const> sequence, std::int64_t passes) override;
  std::vector<float> result(Prepared& op) override;

  // Whether the last run was one of a graph.
  bool ran_as_graph() const { return ran_as_graph_; }

 private:
  std::unique_ptr<Prepared> make(const measure::OpRow& op, std::int64_t copies) override;
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
  std::int64_t page_;
  std::optional<std::chrono::steady_clock::time_point> last_run_;
  bool ran_as_graph_ = false;
  std::map<int, std::unique_ptr<RankGroup>> groups_;
};

}  // namespace llmperf::replay::ascend
