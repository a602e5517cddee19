#include "mapper/tile/machine.h"

#include <fmt/format.h>

#include "base/error.h"

namespace llmperf::mapper::tile {
namespace {

constexpr std::int64_t kMostTiles = 256;  // the layouts of more on their mesh take more than seconds to compare

}  // namespace

Machine make_machine(const hardware::Device& device, Dtype dtype) {
  if (!device.tile_array) {
    throw Error::bad_input(fmt::format("{} is no array of tiles: it has no key tile_array", device.name),
                           "tx8 and tx81 are; llmperf list hardware shows the kind of every device");
  }
  const hardware::TileArray& array = *device.tile_array;
  if (array.tiles > kMostTiles) {
    throw Error::bad_input(fmt::format("{} has {} tiles; mappings are searched for at most {} tiles", device.name,
                                       array.tiles, kMostTiles),
                           "estimate --tile-model roofline needs no mapping");
  }
  const hardware::Peak* matrix = device.find_peak(hardware::Engine::matrix, dtype);
  if (matrix == nullptr) {
    throw Error::bad_input(fmt::format("{} has no rate of matrix products on {}", device.name, name(dtype)));
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
  machine.tiles = static_cast<int>(array.tiles);
  machine.mesh_x = static_cast<int>(array.mesh_x);
  machine.mesh_y = static_cast<int>(array.mesh_y);
  machine.sram = sram->capacity->value;
  machine.dram = device.dram().bandwidth->value;
  machine.link = array.noc_link.value;
  machine.dram_latency = array.dram_latency.value;
  machine.hop_latency = array.hop_latency.value;
  machine.matrix = matrix->rate.value / tiles;
  machine.vector = device.find_peak(hardware::Engine::vector, dtype)->rate.value / tiles;
  return machine;
}

}  // namespace llmperf::mapper::tile
