// The ops of a step on the tiles, one after the other, with results that stay in their memory until the ops that read
// them have run.
//
// What stays takes memory from the mappings of the ops meanwhile, so that whether it pays is a matter of both. Several
// ops that follow each other may also be run for a part of their rows at a time (a slice of the tokens), which makes
// what stays smaller and has weights read once more for every slice. The search is greedy: of all results and of how
// many of their readers they stay for, the one that saves most bytes first, each kept if the times of all ops add up to
// less. Where what stays is needed by other tiles than made it, it is dealt out anew over the links: of what is spread
// evenly a half crosses the middle of the mesh, as much each way.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mapper/tile/description.h"
#include "mapper/tile/tile_mapper.h"

namespace llmperf::mapper::tile {

// An op, its work and its time with everything in DRAM, as TileMapper has it.
struct StepOp {
  const graph::Op* op = nullptr;
  const cost::Work* work = nullptr;
  OpTime apart;
};

struct PlacedOp {
  double seconds = 0;   // of one execution, all slices
  double dealt = 0;     // s of that, in which operands are dealt out anew
  int slices = 1;       // of the rows, one after the other with the ops beside it
  double resident = 0;  // bytes of a tile's memory that its mapping cannot use
  double dram = 0;      // bytes of one execution; with everything in DRAM
  double dram_apart = 0;
  std::optional<Description> mapping = {};  // of a slice; nothing: the tiles have no part in it
  std::string_view bound = {};              // the resource that is busy for longest
  std::vector<std::string_view> from = {};  // ops whose results it finds in the tiles' memory
  enum class To : unsigned char { dram, both, tiles } to = To::dram;  // where its results go
};
std::string_view name(PlacedOp::To to);

struct PlacedStep {
  std::vector<PlacedOp> ops;  // of each that was given
  double seconds = 0;         // of all executions
  double apart = 0;           // with everything in DRAM
  double dram = 0;            // bytes
  double dram_apart = 0;
};

struct ResidencyOptions {
  bool keep = true;   // false: everything in DRAM
  bool slice = true;  // run ops for a part of their rows at a time
};

// Never slower than with everything in DRAM.
PlacedStep place_step(const TileMapper& mapper, std::span<const StepOp> ops, const ResidencyOptions& options = {});

// ---- Which results of a step's ops are operands of which others
//
// What ops of a decoder layer read and write is told by their tags: the residual stream, which norms read and adds
// change; what is worked on, from op to op; queries, keys and values, which rotation and norms change in place; gates.
// At an op that is not known, and where a layer ends, everything is taken to be needed in memory.

struct Use {
  std::size_t op = 0;
  double elements = 0;    // that it reads of the tensor
  bool residual = false;  // of a product: what its results are added to
  bool in_place = false;  // it writes them again
};

struct Tensor {
  std::size_t op = 0;  // that writes it
  double elements = 0;
  std::vector<Use> uses = {};  // in order
  bool leaves = false;         // read by something else, too
};

// Of ops in the order in which they run; only those that something is known to read, in order of the ops.
std::vector<Tensor> tensors_of(std::span<const graph::Op* const> ops);

}  // namespace llmperf::mapper::tile
