// The array of tiles that mappings are made for, in plain numbers of one data type.
//
// Every tile has a memory (SRAM), a matrix unit, a vector unit and DMA engines, all of which work at the same time. The
// tiles form a mesh: links join neighbours, one in each direction, and messages go along x first, then y. One DRAM
// channel serves all tiles, each of which it reaches directly; it handles one request at a time. Where a device has
// several channels, its pages are dealt over them, so that they serve every request together: the rate is that of all,
// less what short pages, or the links around the places of the channels, let through.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "hardware/device.h"

namespace llmperf::mapper::tile {

struct Machine {
  int tiles = 0;
  int mesh_x = 0;
  int mesh_y = 0;
  double sram = 0;                             // bytes of one tile
  double dram = 0;                             // bytes/s of all tiles together
  double link = 0;                             // bytes/s from one tile to a neighbour
  double dram_latency = 0;                     // s from a request to its first byte
  double hop_latency = 0;                      // s per link
  double matrix = 0;                           // FLOP/s of one tile
  double vector = 0;                           // operations/s of one tile
  int granule = 16;                            // that the sides of blocks are multiples of
  std::array<int, 3> rounding = {16, 16, 16};  // rows, columns and depth that the matrix unit rounds up to
  double multicast = 0;                        // bytes/s from one tile to several; 0: as over a link
  double port = 0;                             // bytes/s from the DRAM to one tile; 0: all that the channel gives
  bool rings = false;  // links close to rings, so that the way back may be the shorter one around
  // Shared operands come by multicast alone, from a tile that gets a slice and hands it on one after the other.
  bool multicast_senders = false;
  bool shared_issue = false;  // matrix and vector unit share an instruction stream and never work at once
  double launch = 0;          // s before an op begins
  double hidden = 1;          // of the shorter of what units and channel take, what the longer hides

  double multicast_rate() const { return multicast > 0 ? multicast : link; }
  // s in which a tile's port takes `bytes` from the DRAM and, with `handed_on`, is busy with sending them on.
  double port_seconds(double bytes, bool handed_on) const {
    if (port <= 0) return 0;
    return bytes / port + (handed_on && multicast_senders ? bytes / multicast_rate() : 0);
  }
  // Of an op whose mapping takes `mapped` s by itself, in which units and channel are busy for so long.
  double op_seconds(double mapped, double units, double channel) const {
    return launch + mapped + (1 - hidden) * (units < channel ? units : channel);
  }
};

// What the rates of a machine depend on beside the device.
struct Operands {
  Dtype dtype = Dtype::bf16;                     // that the matrix unit multiplies in
  double bytes = 0;                              // of an element of A and one of B together; 0: of two of that type
  std::optional<int> passes = {};                // of the matrix unit; nothing: those that the device's rate is of
  bool near = false;                             // B comes over the channels to the tiles beside them
  std::optional<hardware::TilePlace> grid = {};  // part of the mesh; nothing: what the device says
  bool operator==(const Operands&) const = default;
};
// What software leaves of a device's rates, and what it adds.
struct Reached {
  double matrix = 1;
  double feed = 1;
  double vector = 1;
  double dram = 1;
  double near_dram = 1;
  double link = 1;
  double multicast = 1;
  double hidden = 1;
  bool multicast_senders = false;
  double launch = 0;  // s
  bool operator==(const Reached&) const = default;
};

// Throws Error(bad_input) when the device has none.
const hardware::TileArray& tiles_of(const hardware::Device& device);

// Of a device of kind tile_array. A matrix unit that its tile's memory feeds takes the root of the sum of the squares
// of what it computes and what it is fed for. Throws Error(bad_input) when the device has no tiles, or more than
// mappings are searched for, or fewer than the grid, or no rate for the type or for so many passes.
Machine make_machine(const hardware::Device& device, const Operands& operands, const Reached& reached = {});
inline Machine make_machine(const hardware::Device& device, Dtype dtype) {
  return make_machine(device, Operands{.dtype = dtype});
}

// How the tiles share a matrix product: pb x pm x pn x pk tiles, each dimension of which is laid along the two sides of
// the mesh.
//
// Tiles that differ in n only need the same block of A, those that differ in m only the same block of B, and those that
// differ in k only add their results. Each such group is a path through the mesh along which blocks are handed on. What
// several paths send over one link adds up, and the layout is the one where that is least.

constexpr std::size_t kDims = 4;  // batch, m, n, k
// Sizes along both sides of the mesh, and the dimensions of each side from the slowest to the fastest.
struct Layout {
  using Sizes = std::array<int, kDims>;
  using Order = std::array<std::size_t, kDims>;
  Sizes x = {1, 1, 1, 1};
  Sizes y = {1, 1, 1, 1};
  Order x_order = {0, 1, 2, 3};
  Order y_order = {0, 1, 2, 3};
};

// Groups of tiles, each a path.
struct Paths {
  int groups = 0;
  int length = 1;   // tiles of a group
  int hops = 0;     // links of each path
  int longest = 0;  // links between two neighbours on a path, at most; also from the last to the first
  int back = 0;     // links from the last tile of a path to its first
  std::size_t dim = 0;
  Layout layout;

  // Tile by tile and link by link, for all groups.
  struct Way {
    std::vector<int> tiles;    // [groups, length], in the order of the path
    std::vector<int> group;    // [tiles] of the array
    std::vector<int> links;    // of all paths, one after the other
    std::vector<int> reached;  // [groups, length] index into `links` behind the links to that tile
  };
  // Made when it is first asked for, as only few grids of an array are simulated.
  const Way& way() const;

 private:
  mutable std::shared_ptr<const Way> way_;
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
// An order of grids that is the same however they are kept, by their factors: below 2^39.
std::uint64_t place(const Grid& grid);
inline bool before(const Grid& x, const Grid& y) { return place(x) < place(y); }
// Those of `grids` that differ from `grid` in two factors only, in that order.
std::vector<const Grid*> neighbours(std::span<const Grid> grids, const Grid& grid);

}  // namespace llmperf::mapper::tile
