// The fastest mapping of a matrix product, by branch and bound over the whole space of GemmMapping.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "mapper/tile/gemm_bounds.h"
#include "mapper/tile/pipeline_time.h"

namespace llmperf::mapper::tile {

struct GemmChoice {
  bool transposed = false;  // the mapping is of the transposed product: A and B exchange their parts
  GemmMapping mapping;
  PipelineTime time;
};
// Whether both have the same grid, sides and kind of results.
bool alike(const GemmChoice& x, const GemmChoice& y);

struct SearchCount {
  std::int64_t bounded = 0;  // blocks whose bound was computed
  std::int64_t evaluated = 0;
};

// Numbers of blocks: all up to `exact`, then growing by 1 / `part`.
struct Growth {
  std::int64_t exact;
  std::int64_t part;
  bool operator==(const Growth&) const = default;
};
// Sides of the blocks that `extent` is cut in, for every such number the least multiple of `granule` that does. From
// the largest to the smallest.
std::vector<std::int64_t> block_sides(std::int64_t extent, int granule, Growth growth);
// Sides for a block less than there are, one more, half and twice as many.
std::vector<std::int64_t> other_sides(std::int64_t extent, std::int64_t blocks, int granule);

class GemmSearch {
 public:
  // `grids`: of the machine; both must outlive the search.
  GemmSearch(const Machine& machine, std::span<const Grid> grids) : machine_(machine), grids_(grids) {}

  // The `keep` fastest by the closed form, the fastest first, each of another grid, side or kind of buffering. Empty:
  // the memory of a tile is too small for any mapping.
  std::vector<GemmChoice> best(const GemmProblem& problem, std::size_t keep);
  // Of what the search for the fastest times on its way the fastest of every grid and kind of results, the fastest
  // first.
  std::vector<GemmChoice> varied(const GemmProblem& problem);
  // Mappings that differ from one in a single decision and in what follows from it, the fastest by the closed form
  // first.
  std::vector<GemmChoice> near(const GemmProblem& problem, const GemmChoice& choice) const;
  // The same as `best` without bounds: every mapping of the space is timed. For tests.
  GemmChoice exhaustive(const GemmProblem& problem);

  const SearchCount& count() const { return count_; }

 private:
  struct Space {  // a grid, and the blocks that its tiles' parts may be cut in
    GridBound bound;
    bool transposed;
    const std::vector<Cut>* m;
    const std::vector<Cut>* n;
    const std::vector<Cut>* k;
  };
  struct Candidate {  // sides of a block, and what becomes of its results
    const Space* space;
    const Cut* m;
    const Cut* n;
    std::int64_t bb;
    Results results;
    double bound;
    double likely;
    std::uint64_t order;  // of those alike in `likely`, the same however grids are kept
  };
  struct Cuts {
    std::int64_t extent;
    Growth growth;
    std::vector<Cut> cuts;
  };
  enum class Look : unsigned char { coarse, full };

  const std::vector<Cut>& cuts(std::int64_t extent, Growth growth);
  void collect(const GemmProblem& problem, bool transposed, Growth growth);
  void collect(const Space& space);
  void expand(const Candidate& candidate, Look look);
  void expand(const FeedsBound& feeds, const Space& space, GemmMapping mapping, Look look);
  void expand(const DepthBound& depth, const Space& space, GemmMapping mapping);
  void consider(const Space& space, const GemmMapping& mapping);

  const Machine& machine_;
  std::span<const Grid> grids_;
  std::size_t keep_ = 1;
  bool bounds_ = true;
  double limit_ = 0;  // s; what takes no less is of no interest
  std::deque<Cuts> cuts_;
  std::deque<Space> spaces_;
  std::vector<Candidate> candidates_;
  std::vector<GemmChoice> best_;
  std::vector<GemmChoice> varied_;
  std::vector<std::size_t> place_in_varied_;  // of [grid, transposed, results], counted from one; 0: none
  Schedule schedule_;
  SearchCount count_;
};

}  // namespace llmperf::mapper::tile
