// A matrix product on the array, and one way to run it.
//
// Every tile has a part [m / pm, n / pn, k / pk] of the product (of batch / pb products) and goes through it in blocks
// of bm x bn results; for each block k is done bk at a time. All of k for one block, then the next block along n, then
// along m. Transposing the product exchanges A and B, so that "along m, then n" needs no mapping of its own.
#pragma once

#include <cstdint>
#include <optional>

#include "mapper/tile/search.h"

namespace llmperf::mapper::tile {

struct GemmMapping {
  const Grid* grid = nullptr;
  std::int64_t bm = 0;
  std::int64_t bn = 0;
  std::int64_t bk = 0;
  std::int64_t bb = 1;  // products per block; more than 1 only where bm and bn are all of a tile's m and n
  Stream a{Feed::direct, 2, true};
  Stream b{Feed::direct, 2, true};
  Results results = Results::staged;
  std::int64_t panel = 0;   // slices of A kept over all blocks along n
  std::int64_t tail = 1;    // pieces of the last block: only the last piece is stored when all else is done
  bool transposed = false;  // it is of the transposed product: A and B exchange their parts
  bool operator==(const GemmMapping&) const = default;
};

// What is decided of a mapping before it is searched for; everything that is missing is open.
struct GemmGiven {
  struct Operand {
    std::optional<Feed> feed = {};  // of an operand that tiles share
    std::optional<int> slots = {};  // 1 or 2
  };
  struct Shares {  // of the tiles
    int batch = 1;
    int m = 1;
    int n = 1;
    int k = 1;
  };
  std::optional<Shares> grid = {};
  std::optional<std::int64_t> bm = {};
  std::optional<std::int64_t> bn = {};
  std::optional<std::int64_t> bk = {};
  std::optional<std::int64_t> bb = {};
  Operand a = {};
  Operand b = {};
  std::optional<Results> results = {};
  std::optional<std::int64_t> panel = {};
  std::optional<std::int64_t> tail = {};
  std::optional<bool> is_transposed = {};  // the mapping is of the transposed product

  bool allows(const Grid& g) const {
    return !grid || (g.batch == grid->batch && g.m == grid->m && g.n == grid->n && g.k == grid->k);
  }
  // In terms of the transposed product.
  GemmGiven transposed() const;
};

struct GemmProblem {
  using Mapping = GemmMapping;
  using Given = GemmGiven;
  struct Extent {
    Dimension batch, m, n, k;
  };

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
  bool turned = false;              // what were rows are columns: the matrix unit rounds up as before
  double sum_bytes = kAccumulator;  // of a result while it is summed up
  // What is in the tiles' memory, as much on each: A and B before the product begins, results when it ends.
  bool a_local = false;
  bool b_local = false;
  bool c_local = false;

  // Bytes of these on each of so many tiles.
  double local_bytes(double tiles) const;
  double flops() const;
  double vector_ops() const;
  // Every operand and result that is not in the tiles' memory moved once.
  double least_bytes() const;
  GemmProblem transposed() const;
  bool operator==(const GemmProblem&) const = default;
};

GemmProblem::Extent extent_of(const GemmProblem& problem, const GemmMapping& mapping);
// The product that the mapping is of.
inline GemmProblem as_mapped(const GemmProblem& problem, const GemmMapping& mapping) {
  return mapping.transposed ? problem.transposed() : problem;
}
// All of a tile's memory that is used, in bytes.
double sram_of(const GemmProblem& problem, const GemmMapping& mapping);
// Writes what the tiles do; the schedule's vectors are reused.
void lower(const Machine& machine, const GemmProblem& problem, const GemmMapping& mapping, Schedule& schedule);
// Whether both have the same grid, sides and kind of results.
bool alike(const GemmMapping& x, const GemmMapping& y);

constexpr std::int64_t kMostPieces = 3;  // of the last block, in the mappings that bounds hold for

// No mapping of the product takes less by the closed form: none on the grid, and none like this one.
double bound_of(const Machine& machine, const GemmProblem& problem, const Grid& grid);
double bound_of(const Machine& machine, const GemmProblem& problem, const GemmMapping& mapping);

// By branch and bound over the whole space of GemmMapping.
void explore(Search<GemmProblem>& search, const GemmProblem& problem);
void vary(Nearby<GemmProblem>& near);
bool settle(const Machine& machine, const GemmProblem& problem, GemmMapping& mapping);
// Of what the search for the fastest times on its way the fastest of every grid and kind of results.
template <>
std::vector<Choice<GemmProblem>> Search<GemmProblem>::varied(const GemmProblem& problem);

}  // namespace llmperf::mapper::tile
