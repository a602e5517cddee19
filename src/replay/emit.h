// Ops as what another machine replays: a CSV of rows, or a program in Python that times them through PyTorch
// (torch/replay.py) and needs nothing of ours there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hardware/device.h"
#include "hardware/runtime_profile.h"
#include "measure/measurements.h"
#include "replay/replay.h"

namespace llmperf::replay {

// A step, and which one it is where it is to be timed as a whole as well.
struct EmittedStep {
  const Step* step = nullptr;
  std::optional<measure::StepRow> whole = {};
};

struct Emission {
  std::string what;                        // for people: "llama-3.1-8b, bf16 weights, batch 8, prompt 1024"
  std::string torch_device = {};           // that torch is to take; empty: what it finds
  measure::Measurements rows = {};         // every op once; extra columns: names, executions in all steps, worth
  std::string steps = {};                  // JSON: what the line of each says, and its ops by numbers of rows
  std::vector<std::string> left_out = {};  // ops that no row says, with the reason
};

// The ops of the steps, on `device`, and with a profile those of steps in other sizes, too. A row is worth the seconds
// of these steps that the profile may be wrong by for want of it (measure::doubts); nobody knows what without a
// profile.
Emission emission(std::string what, std::span<const EmittedStep> steps, const hardware::Device& device,
                  const hardware::RuntimeProfile* profile);

// The rows as a file of measurements has them, without latencies.
std::string emitted_rows(const Emission& emission);
// The program with the rows in it.
std::string emitted_program(const Emission& emission);

}  // namespace llmperf::replay
