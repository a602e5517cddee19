// One op on an array of tiles, studied: its bound, the best mappings found, and how long each takes when it is
// executed.
#pragma once

#include <optional>
#include <vector>

#include "mapper/tile/description.h"
#include "mapper/tile/op_problem.h"
#include "mapper/tile/published.h"

namespace llmperf::mapper::tile {

// What each resource needs at least, all overlapping perfectly: products and vector work at the rates of all tiles,
// every operand and result moved over DRAM once.
struct Bound {
  double matrix = 0;  // s
  double vector = 0;
  double dram = 0;
  double seconds() const;
  std::string_view resource() const;  // "matrix", "vector" or "DRAM"
};
Bound bound_of(const Machine& machine, const Problem& problem);

struct StudiedMapping {
  Description description;
  Schedule schedule;
  double simulated = 0;  // s
};

struct StudyOptions {
  std::size_t keep = 3;  // mappings, of those that were simulated
  bool whole = false;    // simulate every step of the best, not few of every kind
};

class Study {
 public:
  // Throws Error(infeasible) when no mapping fits into a tile, naming the least memory that would do; Error(bad_input)
  // when a whole simulation would take too long.
  Study(const Machine& machine, const Problem& problem, const StudyOptions& options);
  Study(const Study&) = delete;
  Study& operator=(const Study&) = delete;

  const Machine& machine() const { return machine_; }
  const std::vector<Grid>& grids() const { return grids_; }
  const Bound& bound() const { return bound_; }
  // The fastest simulated first; at least one.
  const std::vector<StudiedMapping>& mappings() const { return mappings_; }

 private:
  Machine machine_;
  std::vector<Grid> grids_;
  Bound bound_;
  std::vector<StudiedMapping> mappings_;
};

// The least memory of a tile that a mapping of the problem fits into, within 64 bytes.
double least_sram(const Machine& machine, const std::vector<Grid>& grids, const Problem& problem);

}  // namespace llmperf::mapper::tile
