// How many tokens an engine's KV cache has room for: what is left of the memory that it may use once weights, the
// activations of its largest step, captured graphs and what is beside them are taken off, in blocks.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "estimate/estimate.h"

namespace llmperf::estimate {

// What an engine is told of memory.
struct EngineMemory {
  double utilisation = 0.92;           // share of the device's memory that it may use
  std::int64_t batched_tokens = 8192;  // of its largest step, which its profile run computes
  std::int64_t max_sequences = 1024;
  std::int64_t block_size = 16;      // tokens
  std::int64_t graph_rows = 512;     // of the largest captured graph; 0: none is
  std::int64_t sequence_tokens = 0;  // of a sequence whose blocks are counted, where these are not alike; 0: many
};

// Of the device that has least.
struct KvCapacity {
  Bytes usable;      // memory times utilisation
  Bytes weights;     // draft included
  Bytes activation;  // of the profile run
  Bytes graphs;
  Bytes other;  // context, libraries, communication buffers
  Bytes kv;     // what is left; negative: nothing fits
  Bytes block;  // of one block
  Bytes state;  // of recurrences, per sequence
  std::int64_t block_size = 0;
  std::int64_t blocks = 0;
  std::int64_t tokens() const { return blocks * block_size; }
};
KvCapacity kv_capacity(const Estimator& estimator, const EngineMemory& memory);

}  // namespace llmperf::estimate
