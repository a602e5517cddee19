// A matrix product on the array, and one way to run it.
//
// Every tile has a part [m / pm, n / pn, k / pk] of the product (of batch / pb products) and goes through it in blocks
// of bm x bn results; for each block k is done bk at a time. All of k for one block, then the next block along n, then
// along m. Transposing the product exchanges A and B, so that "along m, then n" needs no mapping of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "mapper/tile/schedule.h"
#include "mapper/tile/search.h"

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

// Lower bounds of the time that a product takes, level by level as its mapping is decided: grid, sides of a block, kind
// of results, feeds, depth of a slice, slots, tail. Every level builds on the one before and adds what can be said now,
// so that `seconds` never falls on the way and no mapping decided further takes less by the closed form.
//
// The physics is the same throughout. The channel moves at least certain bytes. The matrix unit has at least certain
// blocks to multiply; before it can begin, and behind its end, come loads and stores that nothing hides. Whatever lets
// one resource run while another works is granted in full unless something forbids it.

constexpr std::int64_t kMostPieces = 3;  // of the last block, in the mappings that bounds hold for

// One dimension of a tile's part, and the blocks that it is cut in.
struct Cut {
  // `rounding`: of the matrix unit in that dimension.
  Cut(std::int64_t extent, std::int64_t side, int granule, int rounding);
  std::int64_t side;
  double blocks;
  double part;  // elements of the tile's part
  double size;  // of a block
  double last;
  double rounded;  // the same as the matrix unit rounds up
  double rounded_last;
  double piece;  // of the last block, the last of kMostPieces
  double rounded_piece;
};

struct GridBound {
  GridBound(const Machine& machine, const GemmProblem& problem, const Grid& grid);
  const Machine& machine;
  const GemmProblem& problem;
  const Grid& grid;
  GemmExtent extent;  // blocks: of one granule
  double batch;       // products of a tile
  double a;           // s of the channel for every element of A once; of B; of results and what they are joined with
  double b;
  double c;
  double c_element;  // the same for one element of every tile
  double stored;     // of c, the share of results
  double a_link;     // s of a link for one tile's part of A; of B
  double b_link;
  double unit;     // s of the matrix unit for a row and a column, all of a tile's k
  double compute;  // s of the matrix unit
  double latencies;
  double summing;  // s per element of partial sums; of that and other work on results
  double finish;
  double seconds;
};

struct SidesBound {
  SidesBound(const GridBound& grid, const Cut& m, const Cut& n);
  const GridBound& grid;
  const Cut& m;
  const Cut& n;
  double first_compute;  // s of the matrix unit for the first block, of one product
  double wait;           // s by which its operands take longer to come
  double rows_wait;      // s by which those of further rows of blocks do
  bool pieces;           // the only block of a product, which a tail would cut
  double seconds;
};

struct ResultsBound {
  ResultsBound(const SidesBound& sides, Results results, std::int64_t bb);
  const SidesBound& sides;
  Results results;
  double bb;
  double blocks;       // of all products
  bool fits = false;   // into the memory of a tile, in some depth
  double waits = 0;    // s before the first block can end
  double summing = 0;  // s of partial sums that tiles add up in series with their other work
  double behind = 0;   // s that may pass from the last step of a block to the next block, at most
  double store = 0;    // s of the channel for results of the last block; of the largest
  double store_most = 0;
  double seconds = 0;
  double likely = 0;  // an estimate, for the order of the search
};

struct FeedsBound {
  FeedsBound(const ResultsBound& results, Feed a, Feed b);
  const ResultsBound& results;
  Feed a_feed;
  Feed b_feed;
  double a_sharers;  // tiles that one request serves
  double b_sharers;
  double a;      // s of the channel for A in one block along n
  double b;      // for B in all blocks
  double fixed;  // for all but A
  double hops;   // s, of both operands
  double b_hops;
  double seconds;
  // Of the busiest link, where A comes `times` times.
  double links(double times) const;

 private:
  double a_link_;
  double b_link_;
};

struct DepthBound {
  DepthBound(const FeedsBound& feeds, const Cut& k);
  const FeedsBound& feeds;
  const Cut& k;
  std::int64_t slices;
  double load;   // s of the channel for the first step of a block
  double begin;  // the same for the first step of all
  double begun;  // s until the last block is multiplied
  double idle;   // s of the channel in the first block
  double seconds;
};

struct SlotsBound {
  SlotsBound(const DepthBound& depth, int a_slots, int b_slots, std::int64_t panel);
  const DepthBound& depth;
  double times;    // that A comes
  double channel;  // s of the channel, and what it waits for in the first block
  double busy;     // s until the last block is multiplied
  double seconds;
};

struct TailBound {
  TailBound(const SlotsBound& slots, std::int64_t tail);
  double seconds;
};

// All levels at once.
double bound_of(const Machine& machine, const GemmProblem& problem, const GemmMapping& mapping);

// The fastest mapping of a matrix product, by branch and bound over the whole space of GemmMapping.

struct GemmChoice {
  bool transposed = false;  // the mapping is of the transposed product: A and B exchange their parts
  GemmMapping mapping;
  PipelineTime time;
};
// Whether both have the same grid, sides and kind of results.
bool alike(const GemmChoice& x, const GemmChoice& y);

// The product that the mapping is of.
inline GemmProblem as_mapped(const GemmProblem& problem, const GemmChoice& choice) {
  return choice.transposed ? problem.transposed() : problem;
}

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

class GemmSearch : public Search<GemmChoice> {
 public:
  using Search::Search;

  GemmGiven given = {};  // that the mappings of `best` and `varied` agree with

  // The `keep` fastest by the closed form, the fastest first, each of another grid, side or kind of buffering. Empty:
  // the memory of a tile is too small for any mapping.
  std::vector<GemmChoice> best(const GemmProblem& problem, std::size_t keep, double below = kAnyTime);
  // Of what the search for the fastest times on its way the fastest of every grid and kind of results, the fastest
  // first.
  std::vector<GemmChoice> varied(const GemmProblem& problem);
  // Mappings that differ from one in a single decision and in what follows from it, the fastest by the closed form
  // first.
  std::vector<GemmChoice> near(const GemmProblem& problem, const GemmChoice& choice) const;

 private:
  struct Space {  // a grid, and the blocks that its tiles' parts may be cut in
    GridBound bound;
    bool transposed;
    const GemmGiven* given;  // in terms of the mapping
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
    std::optional<std::int64_t> side;  // the only one
    Growth growth;
    int rounding;
    std::vector<Cut> cuts;
  };
  enum class Look : unsigned char { coarse, full };

  double limit() const;
  const std::vector<Cut>& cuts(std::int64_t extent, std::optional<std::int64_t> side, Growth growth, int rounding);
  void collect(const GemmProblem& problem, const GemmGiven& given, bool transposed, Growth growth);
  void collect(const Space& space);
  void expand(const Candidate& candidate, Look look);
  void expand(const FeedsBound& feeds, const Space& space, GemmMapping mapping, Look look);
  void expand(const DepthBound& depth, const Space& space, GemmMapping mapping);
  void consider(const Space& space, const GemmMapping& mapping);

  std::deque<Cuts> cuts_;
  std::deque<Space> spaces_;
  std::vector<Candidate> candidates_;
  std::vector<GemmChoice> varied_;
  std::vector<std::size_t> place_in_varied_;  // of [grid, transposed, results], counted from one; 0: none
};

}  // namespace llmperf::mapper::tile
