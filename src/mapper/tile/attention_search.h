// The fastest mapping of an attention, by branch and bound over the whole space of AttentionMapping.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mapper/tile/attention_mapping.h"
#include "mapper/tile/pipeline_time.h"

namespace llmperf::mapper::tile {

struct AttentionChoice {
  AttentionMapping mapping;
  PipelineTime time;
};
// Whether both have the same grid, block and order.
bool alike(const AttentionChoice& x, const AttentionChoice& y);

class AttentionSearch {
 public:
  // `grids`: of the machine; both must outlive the search.
  AttentionSearch(const Machine& machine, std::span<const Grid> grids) : machine_(machine), grids_(grids) {}

  // The `keep` fastest by the closed form, the fastest first, each of another grid, block or order. Empty: the memory
  // of a tile is too small for any mapping.
  std::vector<AttentionChoice> best(const AttentionProblem& problem, std::size_t keep);
  // The fastest that differ so.
  std::vector<AttentionChoice> varied(const AttentionProblem& problem) { return best(problem, 16); }
  // Mappings that differ from one in a single decision and in what follows from it, the fastest by the closed form
  // first.
  std::vector<AttentionChoice> near(const AttentionProblem& problem, const AttentionChoice& choice) const;
  // The same as `best` without bounds: every mapping of the space is timed. For tests.
  AttentionChoice exhaustive(const AttentionProblem& problem);

  std::int64_t evaluated() const { return evaluated_; }

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
  double limit() const;

  const Machine& machine_;
  std::span<const Grid> grids_;
  std::size_t keep_ = 1;
  bool bounds_ = true;
  std::vector<Candidate> candidates_;
  std::uint64_t order_ = 0;  // of the next candidate
  std::vector<AttentionChoice> best_;
  Schedule schedule_;
  std::int64_t evaluated_ = 0;
};

}  // namespace llmperf::mapper::tile
