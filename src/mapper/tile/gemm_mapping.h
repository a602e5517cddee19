// A matrix product on the array, and one way to run it.
//
// Every tile has a part [m / pm, n / pn, k / pk] of the product (of batch / pb products) and goes through it in blocks
// of bm x bn results; for each block k is done bk at a time. All of k for one block, then the next block along n, then
// along m. Transposing the product exchanges A and B, so that "along m, then n" needs no mapping of its own.
#pragma once

#include <cstdint>

#include "mapper/tile/schedule.h"

namespace llmperf::mapper::tile {

struct GemmProblem {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  std::int64_t batch = 1;  // products with an A and a B of their own
  double a_bytes = 2;      // per element
  double b_bytes = 2;
  double c_bytes = 2;
  // Vector work joined to the product: operations and bytes of another operand per element of the product, and results
  // per element (1/2 where two products become one result).
  double finish_ops = 0;
  double finish_bytes = 0;
  double results = 1;
  double prepare_ops = 0;  // per element of A, before it is multiplied; of B in a transposed product
  bool prepares_b = false;

  double flops() const;
  // Every operand and result moved once.
  double least_bytes() const;
  GemmProblem transposed() const;
  bool operator==(const GemmProblem&) const = default;
};

struct GemmMapping {
  const Grid* grid = nullptr;
  std::int64_t bm = 0;
  std::int64_t bn = 0;
  std::int64_t bk = 0;
  std::int64_t bb = 1;  // products per block; more than 1 only where bm and bn are all of a tile's m and n
  Stream a{Feed::direct, 2, true};
  Stream b{Feed::direct, 2, true};
  Results results = Results::staged;
  std::int64_t panel = 0;  // slices of A kept over all blocks along n
  std::int64_t tail = 1;   // pieces of the last block: only the last piece is stored when all else is done
  bool operator==(const GemmMapping&) const = default;
};

// Of the part of a tile.
struct GemmExtent {
  std::int64_t m, n, k, batch;
  std::int64_t blocks_m, blocks_n, blocks_k, blocks_batch;
};
GemmExtent extent_of(const GemmProblem& problem, const GemmMapping& mapping);

// The last block of all is made in `tail` pieces along n, each half of what is left: columns of the last piece.
std::int64_t last_piece(std::int64_t columns, std::int64_t tail, int granule);

// Slices of an operand that its slots take the memory of.
double slots_of(const Stream& stream, int sharers);

// What is in a tile's memory, in bytes.
struct GemmMemory {
  GemmMemory(const GemmProblem& problem, const GemmMapping& mapping, const GemmExtent& extent);
  double a_slice;
  double b_slice;
  double results;  // of a block, and what they are joined with
};
// Slices of A that can stay beside one slot of it and the slots of B; negative: not even these fit.
std::int64_t slices_to_stay(const Machine& machine, const GemmMapping& mapping, const GemmMemory& memory);
// All of it.
double sram_of(const GemmProblem& problem, const GemmMapping& mapping);

// Writes what the tiles do; the schedule's vectors are reused.
void lower(const Machine& machine, const GemmProblem& problem, const GemmMapping& mapping, Schedule& schedule);

}  // namespace llmperf::mapper::tile
