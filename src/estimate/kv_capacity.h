// How many tokens an engine's KV cache has room for: what is left of the memory that it may use once weights, the
// activations of its largest step, captured graphs and what is beside them are taken off, in blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "estimate/estimate.h"

namespace llmperf::estimate {

// What an engine is told of memory.
struct EngineMemory {
  // What `utilisation` is a share of: all memory (vLLM), all memory for weights and cache alone (SGLang), or what
  // weights and the largest step leave free (TensorRT-LLM).
  enum class Room : std::uint8_t { share_of_all, weights_and_cache, share_of_free };
  Room room = Room::share_of_all;
  double utilisation = 0.92;
  std::int64_t batched_tokens = 8192;  // of its largest step, which its profile run computes
  std::int64_t max_sequences = 1024;
  std::int64_t block_size = 16;  // tokens
  // Of the largest captured graph, whose memory is taken off; 0: none is captured before the cache is sized, as up to
  // vLLM 0.19.
  std::int64_t graph_rows = 0;
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

// Where nothing fits there are no blocks. Every sequence that runs takes its state out of the same room.
KvCapacity kv_capacity(const Estimator& estimator, const EngineMemory& memory);

// ---- How the cache and a decode step grow with the context, at the batch of a scenario

struct ContextPoint {
  std::int64_t context = 0;            // tokens of every sequence
  Bytes kv_cache;                      // of one device, as in Estimate::memory
  bool fits = false;                   // a request of that many tokens, the last of them generated
  std::optional<Seconds> decode_step;  // with that many tokens in the cache; nothing where it does not fit
};

// At most 16 powers of two and, between them, the request's own length, the longest context that fits (but no
// more than four times what the model is made for) and the length the model is made for; up to the largest of the
// three.
std::vector<ContextPoint> context_curve(Estimator& estimator, const Estimate& estimate);

}  // namespace llmperf::estimate
