#include "mapper/tile/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "base/error.h"

namespace llmperf::mapper::tile {
namespace {

constexpr std::int64_t kMostTiles = 256;  // the layouts of more on their mesh take more than seconds to compare

enum Dim : unsigned char { kBatch, kM, kN, kK };
constexpr std::size_t kDims = 4;
using Sizes = std::array<int, kDims>;
using Order = std::array<std::size_t, kDims>;

// Sizes along both sides of the mesh, and the dimensions of each side from the slowest to the fastest.
struct Layout {
  Sizes x;
  Sizes y;
  Order x_order;
  Order y_order;
};

std::vector<Sizes> factorisations(int product) {
  std::vector<Sizes> result;
  for (int b = 1; b <= product; ++b) {
    if (product % b != 0) continue;
    for (int m = 1; m <= product / b; ++m) {
      if (product / b % m != 0) continue;
      for (int n = 1; n <= product / b / m; ++n) {
        if (product / b / m % n == 0) result.push_back({b, m, n, product / b / m / n});
      }
    }
  }
  return result;
}

// Orders that differ in dimensions larger than 1.
std::vector<Order> orders(const Sizes& sizes) {
  std::vector<std::size_t> moving;
  std::vector<std::size_t> rest;
  for (std::size_t d = 0; d < kDims; ++d) (sizes[d] > 1 ? moving : rest).push_back(d);
  std::vector<Order> result;
  do {
    Order order{};
    std::copy(rest.begin(), rest.end(), order.begin());
    std::copy(moving.begin(), moving.end(), order.begin() + static_cast<std::ptrdiff_t>(rest.size()));
    result.push_back(order);
  } while (std::next_permutation(moving.begin(), moving.end()));
  return result;
}

int position(const Sizes& sizes, const Order& order, const Sizes& at) {
  int result = 0;
  for (const std::size_t d : order) result = result * sizes[d] + at[d];
  return result;
}

class Mesh {
 public:
  explicit Mesh(const Machine& machine) : x_(machine.mesh_x), y_(machine.mesh_y) {}
  int tile(int x, int y) const { return y * x_ + x; }
  int links() const { return 4 * x_ * y_; }
  // Along x first.
  void route(int from, int to, std::vector<int>& links) const {
    while (from % x_ != to % x_) {
      const bool right = to % x_ > from % x_;
      links.push_back(4 * from + (right ? 0 : 1));
      from += right ? 1 : -1;
    }
    while (from / x_ != to / x_) {
      const bool down = to / x_ > from / x_;
      links.push_back(4 * from + (down ? 2 : 3));
      from += down ? x_ : -x_;
    }
  }

 private:
  int x_;
  int y_;
};

// Tiles that differ in `dim` only, back and forth over the rows of the part of the mesh that they fill.
Paths paths(const Mesh& mesh, const Layout& layout, std::size_t dim) {
  Paths result;
  int tiles = 1;
  for (std::size_t d = 0; d < kDims; ++d) tiles *= layout.x[d] * layout.y[d];
  result.length = layout.x[dim] * layout.y[dim];
  result.groups = tiles / result.length;
  result.group.resize(static_cast<std::size_t>(tiles));
  Sizes others_x = layout.x;
  Sizes others_y = layout.y;
  others_x[dim] = others_y[dim] = 1;
  const auto count = [](const Sizes& s) { return s[0] * s[1] * s[2] * s[3]; };
  const auto digits = [](const Sizes& s, int index) {
    Sizes at{};
    for (std::size_t d = kDims; d-- > 0;) {
      at[d] = index % s[d];
      index /= s[d];
    }
    return at;
  };
  int group = 0;
  for (int gy = 0; gy < count(others_y); ++gy) {
    for (int gx = 0; gx < count(others_x); ++gx) {
      Sizes at_x = digits(others_x, gx);
      Sizes at_y = digits(others_y, gy);
      const std::size_t first = result.tiles.size();
      const std::size_t first_link = result.links.size();
      for (int iy = 0; iy < layout.y[dim]; ++iy) {
        for (int i = 0; i < layout.x[dim]; ++i) {
          at_y[dim] = iy;
          at_x[dim] = iy % 2 == 0 ? i : layout.x[dim] - 1 - i;
          const int tile =
              mesh.tile(position(layout.x, layout.x_order, at_x), position(layout.y, layout.y_order, at_y));
          result.group[static_cast<std::size_t>(tile)] = group;
          if (result.tiles.size() > first) {
            const std::size_t before = result.links.size();
            mesh.route(result.tiles.back(), tile, result.links);
            result.longest = std::max(result.longest, static_cast<int>(result.links.size() - before));
          }
          result.tiles.push_back(tile);
          result.reached.push_back(static_cast<int>(result.links.size()));
        }
      }
      std::vector<int> back;
      mesh.route(result.tiles.back(), result.tiles[first], back);
      result.longest = std::max(result.longest, static_cast<int>(back.size()));
      result.hops = std::max(result.hops, static_cast<int>(result.links.size() - first_link));
      ++group;
    }
  }
  return result;
}

std::vector<int> carried(const Mesh& mesh, const Paths& paths) {
  std::vector<int> load(static_cast<std::size_t>(mesh.links()));
  for (const int link : paths.links) ++load[static_cast<std::size_t>(link)];
  return load;
}

std::vector<LinkLoad> heaviest(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<LinkLoad> result;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const LinkLoad load{a[i], b[i]};
    const auto covers = [](const LinkLoad& x, const LinkLoad& y) { return x.a >= y.a && x.b >= y.b; };
    if (std::ranges::any_of(result, [&](const LinkLoad& other) { return covers(other, load); })) continue;
    std::erase_if(result, [&](const LinkLoad& other) { return covers(load, other); });
    result.push_back(load);
  }
  return result;
}

Grid make_grid(const Mesh& mesh, const Sizes& sizes, const Layout& layout) {
  Grid grid{sizes[kBatch], sizes[kM], sizes[kN], sizes[kK], {}, {}, {}, {}, 0};
  grid.a = paths(mesh, layout, kN);
  grid.b = paths(mesh, layout, kM);
  grid.c = paths(mesh, layout, kK);
  const std::vector<int> a = carried(mesh, grid.a);
  const std::vector<int> b = carried(mesh, grid.b);
  const std::vector<int> c = carried(mesh, grid.c);
  grid.loads = heaviest(a, b);
  grid.c_load = *std::ranges::max_element(c);
  return grid;
}

struct Merit {
  int load;
  int sum;
  int hops;
  auto operator<=>(const Merit&) const = default;
};
Merit merit(const Grid& grid) {
  Merit result{0, grid.c_load, grid.a.hops + grid.b.hops + grid.c.hops};
  for (const LinkLoad& l : grid.loads) {
    result.load = std::max(result.load, std::max(l.a, l.b));
    result.sum = std::max(result.sum, l.a + l.b);
  }
  return result;
}

// Every way to lay the dimensions along the sides of the mesh, the best of them.
Grid best_layout(const Machine& machine, const Sizes& sizes) {
  const Mesh mesh(machine);
  std::optional<Grid> best;
  for (const Sizes& x : factorisations(machine.mesh_x)) {
    Sizes y{};
    bool divides = true;
    for (std::size_t d = 0; d < kDims; ++d) {
      divides = divides && sizes[d] % x[d] == 0;
      y[d] = sizes[d] / x[d];
    }
    if (!divides || y[0] * y[1] * y[2] * y[3] != machine.mesh_y) continue;
    for (const Order& x_order : orders(x)) {
      for (const Order& y_order : orders(y)) {
        Grid grid = make_grid(mesh, sizes, {x, y, x_order, y_order});
        if (!best || merit(grid) < merit(*best)) best = std::move(grid);
      }
    }
  }
  return *std::move(best);
}

}  // namespace

namespace {

// Of what the DRAM sends to all tiles alike, from places that send as much each, the share that crosses the busiest
// link.
double busiest_share(const hardware::TileArray& array, hardware::TilePlace used) {
  const std::vector<hardware::TilePlace>& places = array.channels->places;
  Machine whole;
  whole.mesh_x = static_cast<int>(array.mesh_x);
  whole.mesh_y = static_cast<int>(array.mesh_y);
  const Mesh mesh(whole);
  std::vector<int> load(static_cast<std::size_t>(mesh.links()));
  std::vector<int> links;
  for (const hardware::TilePlace& place : places) {
    for (int y = 0; y < used.y; ++y) {
      for (int x = 0; x < used.x; ++x) {
        links.clear();
        mesh.route(mesh.tile(static_cast<int>(place.x), static_cast<int>(place.y)), mesh.tile(x, y), links);
        for (const int link : links) ++load[static_cast<std::size_t>(link)];
      }
    }
  }
  const double messages = static_cast<double>(places.size()) * static_cast<double>(used.x * used.y);
  return *std::ranges::max_element(load) / messages;
}

// Of all channels together, for pages of elements of so many bytes.
double dram_rate(const hardware::Device& device, const Operands& operands, const Reached& reached,
                 hardware::TilePlace used) {
  const hardware::TileArray& array = *device.tile_array;
  const double whole = device.dram().bandwidth->value;
  double rate = whole * (operands.near ? reached.near_dram : reached.dram);
  if (!array.channels) return rate;
  const hardware::DramChannels& channels = *array.channels;
  if (channels.requests) {
    const double page = static_cast<double>(channels.page) * bytes_per_element(operands.dtype);
    rate *= std::min(1.0, static_cast<double>(channels.count) * *channels.requests * page / whole);
  }
  if (!operands.near && !channels.places.empty()) {
    rate = std::min(rate, array.noc_link.value * reached.link / busiest_share(array, used));
  }
  return rate;
}

// Of one tile's matrix unit: at the peak for the type and so many passes, and fed from the tile's memory with blocks of
// a granule each way, of which one of A and one of B are used once.
double matrix_rate(const hardware::Device& device, const hardware::Peak& peak, const Operands& operands,
                   const Reached& reached, double tiles) {
  const hardware::TileArray& array = *device.tile_array;
  double rate = peak.rate.value / tiles * reached.matrix;
  if (operands.passes) {
    if (!peak.passes) {
      throw Error::bad_input(
          fmt::format("{} says of {} products not how many passes their rate is of", device.name, name(operands.dtype)),
          "peaks: {…, passes: 2}");
    }
    rate *= static_cast<double>(*peak.passes) / *operands.passes;
  }
  if (!array.matrix_feed) return rate;
  const auto& [m, n, k] = array.granule;
  const double bytes = operands.bytes > 0 ? operands.bytes : 2 * bytes_per_element(operands.dtype);
  const double fed = array.matrix_feed->value * reached.feed;
  const double of_a_block = static_cast<double>(m) * static_cast<double>(k);
  const double per_flop = bytes * of_a_block / fed / (2 * of_a_block * static_cast<double>(n));
  return 1 / std::hypot(1 / rate, per_flop);
}

}  // namespace

Machine make_machine(const hardware::Device& device, const Operands& operands, const Reached& reached) {
  if (!device.tile_array) {
    throw Error::bad_input(fmt::format("{} is no array of tiles: it has no key tile_array", device.name),
                           "tx8 and tx81 are; llmperf list hardware shows the kind of every device");
  }
  const hardware::TileArray& array = *device.tile_array;
  const hardware::TilePlace used = operands.grid.value_or(hardware::TilePlace{array.used_x(), array.used_y()});
  if (used.x > array.mesh_x || used.y > array.mesh_y) {
    throw Error::bad_input(fmt::format("a grid of {}x{} is more than the mesh of {}, which is {}x{}", used.x, used.y,
                                       device.name, array.mesh_x, array.mesh_y));
  }
  if (used.x * used.y > kMostTiles) {
    throw Error::bad_input(fmt::format("{} has {} tiles; mappings are searched for at most {} tiles", device.name,
                                       used.x * used.y, kMostTiles),
                           "estimate --tile-model roofline needs no mapping");
  }
  const hardware::Peak* matrix = device.find_peak(hardware::Engine::matrix, operands.dtype);
  if (matrix == nullptr) {
    throw Error::bad_input(fmt::format("{} has no rate of matrix products on {}", device.name, name(operands.dtype)));
  }
  const hardware::MemoryLevel* sram = nullptr;
  for (const hardware::MemoryLevel& level : device.memory) {
    if (level.per_tile && level.capacity) sram = &level;
  }
  if (sram == nullptr) {
    throw Error::bad_input(fmt::format("{} has no memory per tile with a capacity", device.name),
                           "memory: [{name: SRAM, capacity: 3 MiB, per_tile: true}, …]");
  }
  const auto tiles = static_cast<double>(array.tiles);
  Machine machine;
  machine.tiles = static_cast<int>(used.x * used.y);
  machine.mesh_x = static_cast<int>(used.x);
  machine.mesh_y = static_cast<int>(used.y);
  machine.sram = sram->capacity->value;
  machine.dram = dram_rate(device, operands, reached, used);
  machine.link = array.noc_link.value * reached.link;
  machine.dram_latency = array.dram_latency.value;
  machine.hop_latency = array.hop_latency.value;
  machine.matrix = matrix_rate(device, *matrix, operands, reached, tiles);
  machine.vector = device.find_peak(hardware::Engine::vector, operands.dtype)->rate.value / tiles * reached.vector;
  if (array.multicast) machine.multicast = std::min(array.multicast->value * reached.multicast, machine.link);
  if (array.tile_dram) machine.port = array.tile_dram->value;
  machine.granule = static_cast<int>(*std::ranges::max_element(array.granule));
  machine.shared_issue = array.shared_issue;
  machine.launch = array.launch.value + reached.launch;
  machine.hidden = reached.hidden;
  return machine;
}

std::vector<Grid> all_grids(const Machine& machine) {
  std::vector<Grid> grids;
  for (const Sizes& sizes : factorisations(machine.tiles)) grids.push_back(best_layout(machine, sizes));
  return grids;
}

std::uint64_t place(const Grid& grid) {
  std::uint64_t result = 0;
  for (const int factor : {grid.batch, grid.m, grid.n, grid.k}) {
    result = result << 9 | static_cast<std::uint64_t>(factor);  // of at most 256 tiles
  }
  return result;
}

std::vector<const Grid*> neighbours(std::span<const Grid> grids, const Grid& grid) {
  std::vector<const Grid*> result;
  for (const Grid& g : grids) {
    const int same =
        (g.batch == grid.batch ? 1 : 0) + (g.m == grid.m ? 1 : 0) + (g.n == grid.n ? 1 : 0) + (g.k == grid.k ? 1 : 0);
    if (same == 2) result.push_back(&g);
  }
  std::ranges::sort(result, [](const Grid* x, const Grid* y) { return before(*x, *y); });
  return result;
}

}  // namespace llmperf::mapper::tile
