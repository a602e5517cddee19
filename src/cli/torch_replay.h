// `llmperf replay --backend torch`: the program that is emitted, run by a Python that has PyTorch, and what its rows
// say.
#pragma once

#include <optional>
#include <string>

#include "cli/files.h"
#include "cli/output.h"
#include "replay/emit.h"

namespace llmperf::cli {

struct TorchReplay {
  std::string python = "python3";
  std::int64_t seconds = 300;        // no op starts later
  std::optional<std::int64_t> page;  // tokens of a page of a cache
  std::string device;                // as the program takes it: "cpu", ":1"; empty: what torch finds
  std::string out;                   // rows; what is there already is not timed again
  std::string runtime;               // profile that predicts them, by name or path
  std::string steps;                 // where it writes whole ones; empty: none are timed
  WrittenFile* profile = nullptr;    // where a fit to the ops goes; null: nowhere
};

// Runs it, which says on stderr how far it is, and holds predictions against what it measured; those of a profile that
// was fitted to it where that is written. Throws Error(failed) where it cannot be started or nothing was measured.
Answer torch_answer(const replay::Emission& emission, const TorchReplay& torch, const hardware::Device& device);

}  // namespace llmperf::cli
