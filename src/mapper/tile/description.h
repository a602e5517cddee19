// A mapping of any kind of op in the words that all of them share, in terms of the op's own dimensions and operands.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "mapper/tile/attention.h"
#include "mapper/tile/gemm.h"
#include "mapper/tile/vector.h"

namespace llmperf::mapper::tile {

using Problem = std::variant<GemmProblem, AttentionProblem, VectorProblem>;

struct Operand {
  std::string_view name;
  bool result = false;
  Feed feed = Feed::direct;
  int sharers = 1;           // tiles that need the same slices
  int hops = 0;              // links to the last of them
  int buffers = 1;           // slices under way; 0: none beside those that stay
  double sram = 0;           // bytes of a tile, sums included
  double least = 0;          // bytes of the tensor: over DRAM at least
  StreamTraffic moved = {};  // `passed` and `hops` of results: partial sums
  bool local = false;        // all of it is in the tiles' memory
};

// Which operand stays on the tiles while others go past.
struct Staying {
  std::string_view operand;  // "A"; results: none does, each block of them is finished before the next
  std::int64_t slices = 0;   // of these so many stay
  std::int64_t of = 0;
};

// A part of the pipeline by the closed form, and what keeps each resource busy in it.
struct Phase {
  std::string_view name;
  double seconds = 0;
  double dram = 0;  // s
  double noc = 0;
  double matrix = 0;
  double vector = 0;
  std::string_view binds;  // the busiest of the four, or "latency" where that is most of the phase
};

struct Description {
  std::vector<Dimension> dimensions;
  std::vector<Operand> operands;
  Staying stays;
  Results results = Results::staged;
  bool overlapped = true;  // matrix and vector unit work on different steps at once
  std::int64_t tail = 1;   // pieces of the last block of all
  std::string_view loop;   // which blocks follow each other
  double sram = 0;         // bytes of a tile
  double working = 0;      // of these for no operand: scores
  double closed_form = 0;  // s
  Traffic traffic;
  std::vector<Phase> phases;  // fill, steady, drain; their times add up to closed_form
  // Names of what the schedule's streams carry, for drawings.
  std::string_view a_name;
  std::string_view b_name;
  std::string_view joined_name;
};

Description describe(const Machine& machine, const GemmProblem& problem, const Choice<GemmProblem>& choice);
Description describe(const Machine& machine, const AttentionProblem& problem, const Choice<AttentionProblem>& choice);
Description describe(const Machine& machine, const VectorProblem& problem, const Choice<VectorProblem>& choice);

// The resource that is busy for longest: "DRAM", "NoC", "matrix" or "vector".
std::string_view busiest(const Machine& machine, const Description& mapping);

}  // namespace llmperf::mapper::tile
