// One op on an array of tiles, studied: its bound, the best mappings found, and how long each takes when it is
// executed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mapper/tile/description.h"

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
  Description description = {};
  Schedule schedule = {};
  PipelineTime time = {};
  double simulated = 0;   // s, with what software adds
  std::string text = {};  // of a product: what parse_mapping reads
};

struct StudyOptions {
  std::size_t keep = 3;    // mappings, of those that were simulated
  bool whole = false;      // simulate every step of the best, not few of every kind
  std::string given = {};  // of a product a mapping as parse_mapping reads it (given.h), to be compared with the best
};

class Study {
 public:
  // Throws Error(infeasible) when no mapping fits into a tile, or not the one that is given, naming the least memory
  // that would do; Error(bad_input) when a whole simulation would take too long, and for a mapping that cannot be.
  Study(const Machine& machine, const Problem& problem, const StudyOptions& options);
  Study(const Study&) = delete;
  Study& operator=(const Study&) = delete;

  const Machine& machine() const { return machine_; }
  const std::vector<Grid>& grids() const { return grids_; }
  const Bound& bound() const { return bound_; }
  // The fastest simulated first; at least one.
  const std::vector<StudiedMapping>& mappings() const { return mappings_; }
  // The one that was asked about; it is the best, too, where none that was found is faster.
  const std::optional<StudiedMapping>& given() const { return given_; }

 private:
  template <typename Problem, typename One>
  StudiedMapping studied(const Problem& problem, const One& one) const;

  Machine machine_;
  std::vector<Grid> grids_;
  Bound bound_;
  std::vector<StudiedMapping> mappings_;
  std::optional<StudiedMapping> given_;
};

// The least memory of a tile, of which so much is taken, with which something fits, within 64 bytes; a mapping of the
// problem.
double least_sram(const Machine& machine, double taken, const std::function<bool(const Machine&)>& fits);
double least_sram(const Machine& machine, const std::vector<Grid>& grids, const Problem& problem);

}  // namespace llmperf::mapper::tile
