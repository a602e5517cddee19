// Vector work on a matrix of rows, element by element or with statistics of a row, and one way to run it.
#pragma once

#include <cstdint>

#include "mapper/tile/search.h"

namespace llmperf::mapper::tile {

// Tiles of grid.n have rows of their own, and the shared operand in common; those of grid.k columns of their own, and
// add up their statistics. grid.batch and grid.m are 1. The shared operand's part stays while all rows go past.
struct VectorMapping {
  const Grid* grid = nullptr;
  std::int64_t br = 1;  // rows of a block
  std::int64_t bc = 1;  // its columns; row-wise: all of a tile's
  Feed feed = Feed::direct;
  int slots = 2;
  Results results = Results::doubled;  // staged is the same: a block is made in one step
  bool operator==(const VectorMapping&) const = default;
};

struct VectorProblem {
  using Mapping = VectorMapping;
  struct Given {};
  struct Extent {
    Dimension rows, columns;
  };

  std::int64_t rows = 1;
  std::int64_t width = 1;
  double in_bytes = 2;      // per element, of all operands with an element for each
  double shared_bytes = 0;  // per column, of an operand that all rows have in common
  double out_bytes = 2;
  double ops = 1;         // per element
  bool row_wise = false;  // half of the operations make statistics of a row, which the others need
  double products = 0;    // FLOPs of the matrix unit per element, behind the others: of scans in chunks; not row-wise

  double flops() const;  // of the matrix unit
  double vector_ops() const;
  // Every operand and result moved once.
  double least_bytes() const;
  // Without a shared operand and statistics a matrix is a row of elements, which can be cut anywhere.
  VectorProblem flat() const;
  bool operator==(const VectorProblem&) const = default;
};

VectorProblem::Extent extent_of(const VectorProblem& problem, const VectorMapping& mapping);
// The matrix that the mapping is of.
inline VectorProblem as_mapped(const VectorProblem& problem, const VectorMapping&) { return problem.flat(); }
// Bytes of a tile's memory.
double sram_of(const VectorProblem& problem, const VectorMapping& mapping);
// Writes what the tiles do; the schedule's vectors are reused.
void lower(const Machine& machine, const VectorProblem& problem, const VectorMapping& mapping, Schedule& schedule);
// Whether both have the same grid and block.
bool alike(const VectorMapping& x, const VectorMapping& y);

// The whole space of VectorMapping.
void explore(Search<VectorProblem>& search, const VectorProblem& problem);
void vary(Nearby<VectorProblem>& near);
bool settle(const Machine& machine, const VectorProblem& problem, VectorMapping& mapping);

}  // namespace llmperf::mapper::tile
