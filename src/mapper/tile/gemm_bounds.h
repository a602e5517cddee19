// Lower bounds of the time that a product takes, level by level as its mapping is decided: grid, sides of a block, kind
// of results, feeds, depth of a slice, slots, tail. Every level builds on the one before and adds what can be said now,
// so that `seconds` never falls on the way and no mapping decided further takes less by the closed form.
//
// The physics is the same throughout. The channel moves at least certain bytes. The matrix unit has at least certain
// blocks to multiply; before it can begin, and behind its end, come loads and stores that nothing hides. Whatever lets
// one resource run while another works is granted in full unless something forbids it.
#pragma once

#include "mapper/tile/gemm_mapping.h"

namespace llmperf::mapper::tile {

constexpr std::int64_t kMostPieces = 3;  // of the last block, in the mappings that bounds hold for

// One dimension of a tile's part, and the blocks that it is cut in.
struct Cut {
  Cut(std::int64_t extent, std::int64_t side, int granule);
  std::int64_t side;
  double blocks;
  double part;  // elements of the tile's part
  double size;  // of a block
  double last;
  double rounded;  // the same as the matrix unit rounds up
  double rounded_last;
  double rounded_part;
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

}  // namespace llmperf::mapper::tile
