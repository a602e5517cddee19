// The fastest mapping of vector work, over the whole space of VectorMapping.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mapper/tile/pipeline_time.h"
#include "mapper/tile/vector_mapping.h"

namespace llmperf::mapper::tile {

struct VectorChoice {
  VectorMapping mapping;
  PipelineTime time;
};
// Whether both have the same grid and block.
bool alike(const VectorChoice& x, const VectorChoice& y);

class VectorSearch {
 public:
  // `grids`: of the machine; both must outlive the search.
  VectorSearch(const Machine& machine, std::span<const Grid> grids) : machine_(machine), grids_(grids) {}

  // The `keep` fastest mappings of problem.flat() by the closed form, the fastest first, each of another grid or block.
  // Empty: the memory of a tile is too small for any mapping.
  std::vector<VectorChoice> best(const VectorProblem& problem, std::size_t keep);
  // The fastest that differ so.
  std::vector<VectorChoice> varied(const VectorProblem& problem) { return best(problem, 16); }
  // Mappings that differ from one in a single decision and in what follows from it, the fastest by the closed form
  // first.
  std::vector<VectorChoice> near(const VectorProblem& problem, const VectorChoice& choice) const;
  // The same as `best` without bounds: every mapping of the space is timed. For tests.
  VectorChoice exhaustive(const VectorProblem& problem);

  std::int64_t evaluated() const { return evaluated_; }

 private:
  bool take_slots(const VectorProblem& problem, VectorMapping& mapping) const;
  void expand(const VectorProblem& problem, const Grid& grid);
  void consider(const VectorProblem& problem, const VectorMapping& mapping);
  double bound(const VectorProblem& problem, const VectorMapping& mapping) const;

  const Machine& machine_;
  std::span<const Grid> grids_;
  std::size_t keep_ = 1;
  bool bounds_ = true;
  std::vector<VectorChoice> best_;
  Schedule schedule_;
  std::int64_t evaluated_ = 0;
};

}  // namespace llmperf::mapper::tile
