#include "mapper/tile/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "base/error.h"

namespace llmperf::mapper::tile {
namespace {

constexpr std::int64_t kMostTiles = 4096;  // a simulation of more takes more than seconds

enum Dim : unsigned char { kBatch, kM, kN, kK };
using Sizes = Layout::Sizes;
using Order = Layout::Order;

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

// Along x first.
void route(int mesh_x, int from, int to, std::vector<int>& links) {
  while (from % mesh_x != to % mesh_x) {
    const bool right = to % mesh_x > from % mesh_x;
    links.push_back(4 * from + (right ? 0 : 1));
    from += right ? 1 : -1;
  }
  while (from / mesh_x != to / mesh_x) {
    const bool down = to / mesh_x > from / mesh_x;
    links.push_back(4 * from + (down ? 2 : 3));
    from += down ? mesh_x : -mesh_x;
  }
}

int product(const Sizes& s) { return s[0] * s[1] * s[2] * s[3]; }

// Tiles that differ in `dim` only, back and forth over the rows of the part of the mesh that they fill.
Paths::Way way_of(const Layout& layout, std::size_t dim) {
  Paths::Way result;
  const int mesh_x = product(layout.x);
  result.group.resize(static_cast<std::size_t>(mesh_x) * static_cast<std::size_t>(product(layout.y)));
  Sizes others_x = layout.x;
  Sizes others_y = layout.y;
  others_x[dim] = others_y[dim] = 1;
  const auto digits = [](const Sizes& s, int index) {
    Sizes at{};
    for (std::size_t d = kDims; d-- > 0;) {
      at[d] = index % s[d];
      index /= s[d];
    }
    return at;
  };
  int group = 0;
  for (int gy = 0; gy < product(others_y); ++gy) {
    for (int gx = 0; gx < product(others_x); ++gx) {
      Sizes at_x = digits(others_x, gx);
      Sizes at_y = digits(others_y, gy);
      const std::size_t first = result.tiles.size();
      for (int iy = 0; iy < layout.y[dim]; ++iy) {
        for (int i = 0; i < layout.x[dim]; ++i) {
          at_y[dim] = iy;
          at_x[dim] = iy % 2 == 0 ? i : layout.x[dim] - 1 - i;
          const int tile = position(layout.y, layout.y_order, at_y) * mesh_x + position(layout.x, layout.x_order, at_x);
          result.group[static_cast<std::size_t>(tile)] = group;
          if (result.tiles.size() > first) route(mesh_x, result.tiles.back(), tile, result.links);
          result.tiles.push_back(tile);
          result.reached.push_back(static_cast<int>(result.links.size()));
        }
      }
      ++group;
    }
  }
  return result;
}

// How far neighbours in a dimension are apart along a side of the mesh.
int stride(const Sizes& sizes, const Order& order, std::size_t dim) {
  int result = 1;
  for (std::size_t i = kDims; order[--i] != dim;) result *= sizes[order[i]];
  return result;
}

Paths paths(const Layout& layout, std::size_t dim, bool rings) {
  Paths result;
  const int x = layout.x[dim];
  const int y = layout.y[dim];
  const int x_stride = stride(layout.x, layout.x_order, dim);
  const int y_stride = stride(layout.y, layout.y_order, dim);
  result.length = x * y;
  result.groups = product(layout.x) * product(layout.y) / result.length;
  result.hops = y * (x - 1) * x_stride + (y - 1) * y_stride;
  const auto around = [&](int links, int side) { return rings ? std::min(links, side - links) : links; };
  result.back =
      around(y % 2 == 1 ? (x - 1) * x_stride : 0, product(layout.x)) + around((y - 1) * y_stride, product(layout.y));
  result.longest = std::max({x > 1 ? x_stride : 0, y > 1 ? y_stride : 0, result.back});
  result.dim = dim;
  result.layout = layout;
  return result;
}

// Paths of a dimension over each link along a side of the mesh, where they take the links from neighbours of an even
// place in the dimension to the next, of an odd one, or of both. Paths that begin at `stride` tiles side by side
// overlap.
enum Turns : unsigned char { kEven, kOdd, kBoth };
std::vector<int> carried(int side, int size, int stride, Turns turns) {
  std::vector<int> load(static_cast<std::size_t>(side - 1));
  const auto counts = [&](int from) {
    return from >= 0 && from < size - 1 && (turns == kBoth || from % 2 == (turns == kOdd ? 1 : 0));
  };
  for (int link = 0; link < side - 1; ++link) {
    const int from = link / stride % size;
    const int within = link % stride;
    load[static_cast<std::size_t>(link)] =
        (counts(from) ? within + 1 : 0) + (counts(from - 1) ? stride - within - 1 : 0);
  }
  return load;
}

// Links along x carry what goes along rows: of each dimension in one direction in every row of the mesh, and in some
// rows in the same one. Links along y carry what goes from one such row to the next, at its end: on the right behind
// even rows, on the left behind odd ones; there are columns for every pair of ends of two dimensions.
template <typename Visit>
void each_load_x(const Sizes& x, const Order& order, const Visit& visit) {
  const std::vector<int> a = carried(product(x), x[kN], stride(x, order, kN), kBoth);
  const std::vector<int> b = carried(product(x), x[kM], stride(x, order, kM), kBoth);
  for (std::size_t i = 0; i < a.size(); ++i) visit(LinkLoad{a[i], b[i]});
}
template <typename Visit>
void each_load_y(const Sizes& x, const Sizes& y, const Order& order, const Visit& visit) {
  const auto turns = [](int columns) {
    return columns == 1 ? std::vector<Turns>{kBoth} : std::vector<Turns>{kEven, kOdd};
  };
  for (const Turns a_turns : turns(x[kN])) {
    const std::vector<int> a = carried(product(y), y[kN], stride(y, order, kN), a_turns);
    for (const Turns b_turns : turns(x[kM])) {
      const std::vector<int> b = carried(product(y), y[kM], stride(y, order, kM), b_turns);
      for (std::size_t i = 0; i < a.size(); ++i) visit(LinkLoad{a[i], b[i]});
    }
  }
}

void add_heaviest(std::vector<LinkLoad>& loads, const LinkLoad& load) {
  const auto covers = [](const LinkLoad& x, const LinkLoad& y) { return x.a >= y.a && x.b >= y.b; };
  if (std::ranges::any_of(loads, [&](const LinkLoad& other) { return covers(other, load); })) return;
  std::erase_if(loads, [&](const LinkLoad& other) { return covers(load, other); });
  loads.push_back(load);
}

// What a side of the mesh adds to the merit of a layout.
struct Merit {
  int load = 0;  // of a link with one kind of messages; with both, or of partial sums
  int sum = 0;
  int hops = 0;
  void add(const LinkLoad& l) {
    load = std::max({load, l.a, l.b});
    sum = std::max(sum, l.a + l.b);
  }
  auto operator<=>(const Merit&) const = default;
};
Merit merged(const Merit& x, const Merit& y) {
  return {std::max(x.load, y.load), std::max(x.sum, y.sum), x.hops + y.hops};
}

// The merits of a side for each of its orders.
class Sides {
 public:
  struct Side {
    Order order;
    Merit merit;  // but for hops
    std::array<int, kDims> strides;
  };
  // `x`: along x, of which `other` does not matter.
  const std::vector<Side>& of(const Sizes& sizes, const Sizes& other, bool x) {
    const Sizes& columns = x ? sizes : other;
    const Key key{sizes, x, !x && columns[kM] == 1, !x && columns[kN] == 1};
    const auto [found, made] = known_.try_emplace(key);
    if (!made) return found->second;
    for (const Order& order : orders(sizes)) {
      Side side{order, {}, {}};
      for (std::size_t d = 0; d < kDims; ++d) side.strides[d] = stride(sizes, order, d);
      const auto add = [&](const LinkLoad& load) { side.merit.add(load); };
      x ? each_load_x(sizes, order, add) : each_load_y(other, sizes, order, add);
      if (sizes[kK] > 1) side.merit.sum = std::max(side.merit.sum, side.strides[kK]);
      found->second.push_back(side);
    }
    return found->second;
  }

 private:
  using Key = std::tuple<Sizes, bool, bool, bool>;
  std::map<Key, std::vector<Side>> known_;
};

// Every way to lay the dimensions along the sides of the mesh, the best of them.
Layout best_layout(const Machine& machine, const Sizes& sizes, const std::vector<Sizes>& rows, Sides& sides) {
  std::optional<Merit> best;
  Layout layout;
  for (const Sizes& x : rows) {
    Sizes y{};
    bool divides = true;
    for (std::size_t d = 0; d < kDims; ++d) {
      divides = divides && sizes[d] % x[d] == 0;
      y[d] = sizes[d] / x[d];
    }
    if (!divides || product(y) != machine.mesh_y) continue;
    const std::vector<Sides::Side>& along_y = sides.of(y, x, false);
    for (Sides::Side along_x : sides.of(x, y, true)) {
      for (const Dim d : {kM, kN, kK}) along_x.merit.hops += y[d] * (x[d] - 1) * along_x.strides[d];
      for (Sides::Side other : along_y) {
        for (const Dim d : {kM, kN, kK}) other.merit.hops += (y[d] - 1) * other.strides[d];
        const Merit merit = merged(along_x.merit, other.merit);
        if (best && !(merit < *best)) continue;
        best = merit;
        layout = {x, y, along_x.order, other.order};
      }
    }
  }
  return layout;
}

Grid make_grid(const Sizes& sizes, const Layout& layout, bool rings) {
  Grid grid{sizes[kBatch],
            sizes[kM],
            sizes[kN],
            sizes[kK],
            paths(layout, kN, rings),
            paths(layout, kM, rings),
            paths(layout, kK, rings),
            {},
            0};
  const auto add = [&](const LinkLoad& load) { add_heaviest(grid.loads, load); };
  add({0, 0});
  each_load_x(layout.x, layout.x_order, add);
  each_load_y(layout.x, layout.y, layout.y_order, add);
  if (layout.x[kK] > 1) grid.c_load = stride(layout.x, layout.x_order, kK);
  if (layout.y[kK] > 1) grid.c_load = std::max(grid.c_load, stride(layout.y, layout.y_order, kK));
  return grid;
}

}  // namespace

namespace {

// Of what the DRAM sends to all tiles alike, from places that send as much each, the share that crosses the busiest
// link.
double busiest_share(const hardware::TileArray& array, hardware::TilePlace used) {
  const std::vector<hardware::TilePlace>& places = array.channels->places;
  const int mesh_x = static_cast<int>(array.mesh_x);
  std::vector<int> load(static_cast<std::size_t>(4 * array.mesh_x * array.mesh_y));
  std::vector<int> links;
  for (const hardware::TilePlace& place : places) {
    for (int y = 0; y < used.y; ++y) {
      for (int x = 0; x < used.x; ++x) {
        links.clear();
        route(mesh_x, static_cast<int>(place.y) * mesh_x + static_cast<int>(place.x), y * mesh_x + x, links);
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
  return 1 / std::sqrt(1 / (rate * rate) + per_flop * per_flop);
}

}  // namespace

const hardware::TileArray& tiles_of(const hardware::Device& device) {
  if (device.tile_array) return *device.tile_array;
  throw Error::bad_input(fmt::format("{} is no array of tiles: it has no key tile_array", device.name),
                         "llmperf list hardware shows the kind of every device");
}

Machine make_machine(const hardware::Device& device, const Operands& operands, const Reached& reached) {
  const hardware::TileArray& array = tiles_of(device);
  const hardware::TilePlace used = operands.grid.value_or(hardware::TilePlace{array.used_x(), array.used_y()});
  if (used.x > array.mesh_x || used.y > array.mesh_y) {
    throw Error::bad_input(fmt::format("a grid of {}x{} is more than the mesh of {}, which is {}x{}", used.x, used.y,
                                       device.name, array.mesh_x, array.mesh_y));
  }
  if (used.x * used.y > kMostTiles) {
    throw Error::bad_input(fmt::format("{} has {} tiles; mappings are searched for at most {} tiles", device.name,
                                       used.x * used.y, kMostTiles),
                           "estimate `tile-model` roofline needs no mapping");
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
  for (std::size_t d = 0; d < machine.rounding.size(); ++d) machine.rounding[d] = static_cast<int>(array.granule[d]);
  machine.granule = *std::ranges::max_element(machine.rounding);
  machine.rings = array.rings && used == hardware::TilePlace{array.mesh_x, array.mesh_y};
  machine.multicast_senders = reached.multicast_senders;
  machine.shared_issue = array.shared_issue;
  machine.launch = array.launch.value + reached.launch;
  machine.hidden = reached.hidden;
  return machine;
}

const Paths::Way& Paths::way() const {
  static std::mutex making;  // of all, as making one takes less than a simulation
  const std::lock_guard lock(making);
  if (!way_) way_ = std::make_shared<const Way>(way_of(layout, dim));
  return *way_;
}

std::vector<Grid> all_grids(const Machine& machine) {
  const std::vector<Sizes> rows = factorisations(machine.mesh_x);
  Sides sides;
  std::vector<Grid> grids;
  for (const Sizes& sizes : factorisations(machine.tiles)) {
    grids.push_back(make_grid(sizes, best_layout(machine, sizes, rows, sides), machine.rings));
  }
  return grids;
}

std::uint64_t place(const Grid& grid) {
  std::uint64_t result = 0;
  for (const int factor : {grid.batch, grid.m, grid.n}) {  // which leave one for k
    result = result << 13 | static_cast<std::uint64_t>(factor);
  }
  return result;
}
static_assert(kMostTiles < 1 << 13);

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
