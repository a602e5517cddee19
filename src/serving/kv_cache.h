// The blocks of an engine's KV cache, and what they still hold for later requests.
//
// As in vLLM (v1/core/kv_cache_manager.py, block_pool.py) all blocks that no request holds stand in one queue; blocks
// are taken from its front, those of a request that ends go to its back, its last block first, and until they are taken
// whoever has the same tokens before and in them may have them back. Blocks of one segment (workload.h) come and go
// together, so that the queue is of runs of blocks: a run is shortened from its end, as the order of blocks in the
// queue has it.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "serving/workload.h"

namespace llmperf::serving {

class KvCache {
 public:
  // `reuses`: whether blocks are kept for later requests.
  KvCache(std::int64_t blocks, std::int64_t block_size, bool reuses);

  std::int64_t blocks() const { return blocks_; }
  std::int64_t block_size() const { return block_size_; }
  std::int64_t free() const { return free_; }  // that may be taken, whether something is kept in them or not
  std::int64_t used() const { return blocks_ - free_; }
  std::int64_t blocks_of(std::int64_t tokens) const { return (tokens + block_size_ - 1) / block_size_; }

  // What a request holds.
  struct Held {
    std::int64_t blocks = 0;                                       // in all
    std::int64_t own = 0;                                          // of these, in no run
    std::vector<std::pair<std::int32_t, std::int64_t>> runs = {};  // and blocks of each
  };

  struct Hit {
    std::int64_t blocks = 0;  // from the first on, that are there
    std::int64_t queued = 0;  // of these, those that no request holds: they count as free until they are held
  };
  // Whole blocks within the first `tokens` tokens of the content.
  Hit find(std::span<const Segment> content, std::int64_t tokens) const;
  // Holds the blocks that were found.
  void hold(std::span<const Segment> content, std::int64_t blocks, Held& held);
  // Takes blocks, of which there must be as many that are free.
  void take(std::int64_t blocks, Held& held);
  // The first `tokens` tokens of the content are computed: others may have their blocks.
  void publish(std::span<const Segment> content, std::int64_t tokens, Held& held);
  // Lets go of all of them.
  void release(Held& held);

 private:
  struct Run {
    std::uint64_t id = 0;
    std::int64_t cached = 0;                     // blocks, from the segment's first on
    std::int64_t held = 0;                       // of these, by requests
    std::vector<std::int64_t> holds = {};        // of each of them
    std::int32_t before = kNone, after = kNone;  // in the queue
    bool queued = false;
    bool named = false;  // found by its id
  };
  static constexpr std::int32_t kNone = -1;

  Run& run(std::int32_t index) { return runs_[static_cast<std::size_t>(index)]; }
  const Run& run(std::int32_t index) const { return runs_[static_cast<std::size_t>(index)]; }
  std::int32_t make_run();
  void enqueue(std::int32_t index);
  void unlink(std::int32_t index);
  void forget(std::int32_t index);
  // Calls of(segment, first block, blocks within `tokens`) from the first on while it returns true.
  template <class Of>
  void each_segment(std::span<const Segment> content, std::int64_t tokens, Of of) const;

  std::int64_t blocks_;
  std::int64_t block_size_;
  bool reuses_;
  std::int64_t free_;
  std::int64_t empty_;  // of the free ones, at the front: nothing was ever kept in them
  std::vector<Run> runs_;
  std::vector<std::int32_t> unused_;
  std::unordered_map<std::uint64_t, std::int32_t> by_id_;
  std::int32_t front_ = kNone, back_ = kNone;
};

}  // namespace llmperf::serving
