// Attention on the array without its scores ever leaving a tile (FlashAttention: Dao et al., arXiv 2205.14135 and
// 2307.08691), and one way to run it.
//
// A pair is a sequence and a KV head. Its rows are the queries of all heads that read this KV head, query by query, so
// that grouped-query attention is attention with more rows. A step multiplies a block of `tx` rows by `ty` keys, takes
// the softmax of the scores so far and multiplies by the values; O and two statistics per row stay with the block.
#pragma once

#include <cstdint>

#include "mapper/tile/search.h"

namespace llmperf::mapper::tile {

// Tiles of grid.batch have pairs of their own, those of grid.n rows of their own and K and V in common, those of grid.k
// keys of their own: their O are merged at the end. grid.m is 1.
struct AttentionMapping {
  const Grid* grid = nullptr;
  std::int64_t hb = 1;  // pairs per block; more than 1 only where a block has all of a tile's rows
  std::int64_t tx = 0;
  std::int64_t ty = 0;
  // Rows outside: a block goes through its keys, step by step. Keys outside: `ty` keys stay while all rows go past,
  // which leave their O behind and fetch it for the next keys; hb is 1.
  bool keys_outside = false;
  bool resident = false;  // rows outside: K and V of a pair stay for all blocks of rows
  Feed feed = Feed::direct;
  int kv_slots = 2;
  int q_slots = 2;
  Results results = Results::staged;
  bool overlapped = true;  // the matrix unit multiplies while the vector unit works on the scores of another step
  bool operator==(const AttentionMapping&) const = default;
};

struct AttentionProblem {
  using Mapping = AttentionMapping;
  struct Given {};
  struct Extent {
    Dimension pairs, rows, keys;
  };

  std::int64_t sequences = 1;
  std::int64_t kv_heads = 1;
  std::int64_t group = 1;  // query heads per KV head
  std::int64_t queries = 1;
  std::int64_t keys = 1;
  bool causal = false;  // query i sees the first keys - queries + i + 1 keys; keys >= queries
  std::int64_t qk_dim = 128;
  std::int64_t v_dim = 128;
  double q_bytes = 2;  // per element
  double k_bytes = 2;
  double v_bytes = 2;
  double o_bytes = 2;
  double softmax_ops = 5;    // per score
  double rescale_ops = 2;    // per element of O, when it is joined with that of other keys
  double normalise_ops = 1;  // per element of O, once
  double rope_ops = 0;       // per element of Q and K, when they come

  std::int64_t pairs() const { return sequences * kv_heads; }
  std::int64_t rows() const { return group * queries; }
  // Keys that a row sees.
  std::int64_t visible(std::int64_t row) const;
  double scores() const;
  double flops() const;
  // Of the vector unit, however it is cut.
  double vector_ops() const;
  // Every operand and result moved once.
  double least_bytes() const;
  bool operator==(const AttentionProblem&) const = default;
};

// Keys outside: blocks of rows that every block of keys meets, so that an O has left before it is fetched again.
constexpr std::int64_t kLeastRowBlocks = 4;

AttentionProblem::Extent extent_of(const AttentionProblem& problem, const AttentionMapping& mapping);
inline const AttentionProblem& as_mapped(const AttentionProblem& problem, const AttentionMapping&) { return problem; }
// Bytes of a tile's memory.
double sram_of(const AttentionProblem& problem, const AttentionMapping& mapping);
// Writes what the tiles do; the schedule's vectors are reused.
void lower(const Machine& machine, const AttentionProblem& problem, const AttentionMapping& mapping,
           Schedule& schedule);
// Whether both have the same grid, block and order.
bool alike(const AttentionMapping& x, const AttentionMapping& y);

// By branch and bound over the whole space of AttentionMapping.
void explore(Search<AttentionProblem>& search, const AttentionProblem& problem);
void vary(Nearby<AttentionProblem>& near);
bool settle(const Machine& machine, const AttentionProblem& problem, AttentionMapping& mapping);

}  // namespace llmperf::mapper::tile
