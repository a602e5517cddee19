// The rules of each engine: what it does first, second, third when it makes up a step (scheduler.h).
#pragma once

#include "serving/scheduler.h"

namespace llmperf::serving {

struct Vllm {
  static void plan(Scheduler& s, Step& step);
};

struct Sglang {
  static void plan(Scheduler& s, Step& step);
  // The share of max_tokens that is reserved for sequences that run: at first, and after more steps of decode.
  static double first_ratio(const EngineSettings& settings);
  static double decayed(const EngineSettings& settings, double ratio, std::int64_t steps);

 private:
  static bool extend(Scheduler& s, Step& step);
  static bool retract(Scheduler& s, Step& step);
};

struct Trtllm {
  static void plan(Scheduler& s, Step& step);
};

struct LlamaCpp {
  static void plan(Scheduler& s, Step& step);
  // So that blocks are free of what idle slots keep.
  static void clear_idle_slots(Scheduler& s, std::int64_t blocks);
};

}  // namespace llmperf::serving
