// What an engine's memory holds: weights as it loads them, the peak of its largest step, captured graphs and what is
// beside them; the rest is the pool of keys and values, whose tokens are counted as the engine prints them. One model
// for estimates, servers and fleets. docs/memory.md has the rules by engine and version, and the logs they were checked
// on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "estimate/estimate.h"
#include "estimate/kv_pool.h"

namespace llmperf::estimate {

// How the experts of mxfp4 are laid out by the kernels that multiply them: as they are stored; with rows or columns of
// both matrices filled up to 256 (Triton); inner widths to 128 and the hidden width to 256 (Marlin); both to 256.
enum class ExpertLayout : std::uint8_t { stored, triton, marlin, both };

// What an engine is told of memory, and what its version makes of it.
struct EngineMemory {
  // What `utilisation` is a share of: all memory (vLLM), all memory for weights and cache alone (SGLang), or what
  // weights and the largest step leave free (TensorRT-LLM).
  enum class Room : std::uint8_t { share_of_all, weights_and_cache, share_of_free };
  Room room = Room::share_of_all;
  double utilisation = 0.92;
  std::int64_t batched_tokens = 8192;  // of its largest step, which its profile run computes
  std::int64_t max_sequences = 1024;
  std::int64_t max_model_len = 0;  // tokens of the longest sequence; 0: what the model is made for
  // Of the largest captured graph, whose memory is taken off; 0: none is captured before the cache is sized, as up to
  // vLLM 0.19.
  std::int64_t graph_rows = 0;
  PoolRules pool = {};
  std::int64_t steps_in_flight = 1;  // whose tokens windows hold at once
  bool prints_concurrency = true;    // tokens: of so many sequences of the longest length; else of blocks in all groups
  // The start-up checks: a pool that does not hold one sequence of the longest length, fewer pages than sequences with
  // a state each.
  bool holds_longest = true;
  bool counts_states = true;
  double sampler_rows = 7.5;  // of fp32 logits, per sequence
  double token_logits = 0;    // bytes of a logit of every token of the step
  Bytes libraries{0.15e9};    // workspaces; with the context where the engine counts it
  Bytes exchanges{0.15e9};    // what several devices stage in; with NCCL's buffers where the engine counts them
  bool profiles_images = false;
  ExpertLayout experts = ExpertLayout::stored;
};

// Of the device that has least.
struct KvCapacity {
  Bytes usable;      // memory times utilisation
  Bytes weights;     // as loaded, draft included
  Bytes padding;     // of them, what is not stored
  Bytes activation;  // of the profile run
  Bytes images;      // … of it the tower's, which the rest does not exceed; 0: there is none
  Bytes graphs;
  Bytes other;                  // context, libraries, communication buffers
  Bytes kv;                     // what is left; negative: nothing fits
  Bytes block;                  // of one block, in all layers of a group
  Bytes state;                  // of recurrences, per sequence
  std::int64_t block_size = 0;  // tokens of a block
  std::int64_t blocks = 0;
  std::int64_t tokens = 0;         // as the engine prints them
  std::int64_t max_model_len = 0;  // of the longest sequence
  Bytes sequence;                  // that one of that length takes
  double sequences = 0;            // of that length that fit
  std::int64_t longest = 0;        // tokens of the longest sequence that fits
  std::string refusal = {};        // why the engine would not start; empty: it does
  std::string remedy = {};         // the nearest that works

  std::int64_t at_once = 0;  // sequences that there may be: as many as it is told, and have a state

  // Tokens that running sequences of so many each hold when they fill the pool; the longest of which so many fit: alone
  // with a whole step in flight.
  std::int64_t tokens_of(std::int64_t length) const;
  std::int64_t longest_of(std::int64_t count) const;
  std::optional<KvPool> pool = {};
};

// A part as an engine's start-up log has it, and as it is predicted: of one device, of llama.cpp of all.
struct LogPart {
  std::string name;  // "weights"
  std::string unit;  // "bytes", "tokens", "blocks", "sequences"
  double printed = 0;
  double predicted = 0;
};
struct EngineLog {
  std::string version;  // of the engine that wrote it; empty: the log does not say
  std::vector<LogPart> parts;
};
// With what is predicted: of an engine with a pool `room`, of llama.cpp, whose log names compute buffers, `whole`.
void compare(EngineLog& log, const KvCapacity& room, const cost::Memory& whole);

// Where nothing fits there are no blocks.
KvCapacity kv_capacity(const Estimator& estimator, const EngineMemory& memory);

}  // namespace llmperf::estimate
