// Attention on the array without its scores ever leaving a tile (FlashAttention: Dao et al., arXiv 2205.14135 and
// 2307.08691), and one way to run it.
//
// A pair is a sequence and a KV head. Its rows are the queries of all heads that read this KV head, query by query, so
// that grouped-query attention is attention with more rows. A step multiplies a block of `tx` rows by `ty` keys, takes
// the softmax of the scores so far and multiplies by the values; O and two statistics per row stay with the block.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mapper/tile/schedule.h"
#include "mapper/tile/search.h"

namespace llmperf::mapper::tile {

struct AttentionProblem {
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

// Keys outside: blocks of rows that every block of keys meets, so that an O has left before it is fetched again.
constexpr std::int64_t kLeastRowBlocks = 4;

// Of the part of a tile.
struct AttentionExtent {
  std::int64_t pairs, rows, keys;
  std::int64_t blocks_pairs, blocks_rows, blocks_keys;
};
AttentionExtent extent_of(const AttentionProblem& problem, const AttentionMapping& mapping);

// Bytes of a tile's memory.
double sram_of(const AttentionProblem& problem, const AttentionMapping& mapping);

// Writes what the tiles do; the schedule's vectors are reused.
void lower(const Machine& machine, const AttentionProblem& problem, const AttentionMapping& mapping,
           Schedule& schedule);

// The fastest mapping of an attention, by branch and bound over the whole space of AttentionMapping.

using AttentionChoice = Choice<AttentionMapping>;
// Whether both have the same grid, block and order.
bool alike(const AttentionChoice& x, const AttentionChoice& y);

inline const AttentionProblem& as_mapped(const AttentionProblem& problem, const AttentionChoice&) { return problem; }

class AttentionSearch : public Search<AttentionChoice> {
 public:
  using Search::Search;

  // The `keep` fastest by the closed form, the fastest first, each of another grid, block or order. Empty: the memory
  // of a tile is too small for any mapping.
  std::vector<AttentionChoice> best(const AttentionProblem& problem, std::size_t keep, double below = kAnyTime);
  // The fastest that differ so, as many as are simulated at first.
  std::vector<AttentionChoice> varied(const AttentionProblem& problem) { return best(problem, 10); }
  // Mappings that differ from one in a single decision and in what follows from it, the fastest by the closed form
  // first.
  std::vector<AttentionChoice> near(const AttentionProblem& problem, const AttentionChoice& choice) const;

 private:
  struct Candidate {  // the most favourable mapping of a grid, block and order
    AttentionMapping mapping;
    double bound;
    std::uint64_t order;  // of those alike in `bound`, the same however grids are kept
  };
  void collect(const AttentionProblem& problem, const Grid& grid);
  void propose(const AttentionProblem& problem, AttentionMapping mapping);
  bool take_slots(const AttentionProblem& problem, AttentionMapping& mapping) const;
  void expand(const AttentionProblem& problem, const Candidate& candidate);
  void consider(const AttentionProblem& problem, const AttentionMapping& mapping);
  double bound(const AttentionProblem& problem, const AttentionMapping& mapping) const;

  std::vector<Candidate> candidates_;
  std::uint64_t order_ = 0;  // of the next candidate
};

}  // namespace llmperf::mapper::tile
