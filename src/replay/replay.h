// Ops of a step, or of a list, executed on a device: what each took, and what the step took as a whole.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "replay/backend.h"
#include "replay/graph_rows.h"
#include "replay/timing.h"

namespace llmperf::replay {

struct TimedOp {
  DistinctOp op;
  std::optional<Timing> timing;
  std::string unavailable;  // why there is no timing
  // The one figure that stands for the op: the median, of collectives the minimum, because theirs includes waiting for
  // peers.
  Seconds time() const;
};

struct StepTime {
  Timing timing;
  Seconds ops;                        // what its ops took one by one, added up
  std::vector<std::string> left_out;  // ops that are not in it
};

struct Replay {
  Description device;
  std::vector<TimedOp> ops;
  std::optional<StepTime> whole;
  bool complete = true;               // false: ended early, by the caller's wish or by `failure`
  std::optional<Error> failure = {};  // of the device, in what comes after what is there
};

struct ReplayOptions {
  bool whole_step = false;
  TimingOptions timing;
  // Called before each op is timed, with the number of those done and of all; empty: nobody wants to know. The replay
  // ends early, with what is done, when it returns false.
  std::function<bool(std::size_t done, std::size_t all, const std::string& what)> progress;
};

// Times steps on one device, every op once however many steps have it.
class Replayer {
 public:
  // The backend must outlive it.
  explicit Replayer(Backend& backend, ReplayOptions options = {});

  // Times every distinct op by itself, and with whole_step also all of them in the order of the step, as often as it
  // executes them, where every layer has weights of its own. A step of which an op cannot run is timed without it.
  // After a failure of the device nothing more can be run.
  Replay run(const Step& step);

 private:
  struct Outcome {
    std::optional<Timing> timing;
    std::string unavailable;
  };
  void run_into(const Step& step, Replay& result);
  const Outcome& time_op(const calibrate::OpRow& row);
  std::optional<StepTime> time_step(const Step& step, const std::vector<TimedOp>& timed);

  Backend& backend_;
  ReplayOptions options_;
  std::map<std::string, Outcome> known_;  // by describe(row)
};

}  // namespace llmperf::replay
