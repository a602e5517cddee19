// How the tiles share a matrix product: pb x pm x pn x pk tiles, each dimension of which is laid along the two sides of
// the mesh.
//
// Tiles that differ in n only need the same block of A, those that differ in m only the same block of B, and those that
// differ in k only add their results. Each such group is a path through the mesh along which blocks are handed on. What
// several paths send over one link adds up, and the layout is the one where that is least.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "mapper/tile/machine.h"

namespace llmperf::mapper::tile {

// Groups of tiles, each a path.
struct Paths {
  int groups = 0;
  int length = 1;            // tiles of a group
  std::vector<int> tiles;    // [groups, length], in the order of the path
  std::vector<int> group;    // [tiles] of the array
  std::vector<int> links;    // of all paths, one after the other
  std::vector<int> reached;  // [groups, length] index into `links` behind the links to that tile
  int hops = 0;              // of the longest path
  int longest = 0;           // links between two neighbours on a path, at most; also from the last to the first
};

// Messages of a kind that a link carries: `a` blocks of A and `b` of B handed on along their paths.
struct LinkLoad {
  int a = 0;
  int b = 0;
};

struct Grid {
  int batch = 1;
  int m = 1;
  int n = 1;
  int k = 1;
  Paths a;                      // differ in n
  Paths b;                      // differ in m
  Paths c;                      // differ in k
  std::vector<LinkLoad> loads;  // of the links with most to carry: no link carries more of both than another
  int c_load = 0;               // paths of `c` over one link, at most
};

// Every factorisation of the number of tiles into four, best layout each.
std::vector<Grid> all_grids(const Machine& machine);
// An order of grids that is the same however they are kept, by their factors: below 2^36.
std::uint64_t place(const Grid& grid);
inline bool before(const Grid& x, const Grid& y) { return place(x) < place(y); }
// Those of `grids` that differ from `grid` in two factors only, in that order.
std::vector<const Grid*> neighbours(std::span<const Grid> grids, const Grid& grid);

}  // namespace llmperf::mapper::tile
