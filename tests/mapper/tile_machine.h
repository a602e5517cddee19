// The tx8 array of the tests, and sums over schedules.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <random>

#include "mapper/tile/schedule.h"

namespace llmperf::mapper::tile {

// 16 tiles of 3 MiB; 8 TFLOP/s and 62.5 G operations/s each; 100 GB/s of DRAM for all.
inline Machine tx8() {
  Machine m;
  m.tiles = 16;
  m.mesh_x = m.mesh_y = 4;
  m.sram = 3 * 1048576.0;
  m.dram = 100e9;
  m.link = 128e9;
  m.dram_latency = 1e-7;
  m.hop_latency = 1e-8;
  m.matrix = 8e12;
  m.vector = 62.5e9;
  return m;
}
// Four tiles with 128 KiB each: small enough to try every mapping.
inline Machine small_array() {
  Machine m = tx8();
  m.tiles = 4;
  m.mesh_x = m.mesh_y = 2;
  m.sram = 131072;
  return m;
}

// Meshes whose links are fast and slow next to DRAM: that of tx8; 8 x 8 and 13 x 10 tiles of accelerators with GDDR6;
// and the 108 processors of a GPU with HBM, whose way to the second-level cache stands in for links.
inline Machine mesh(int x, int y, double link, double dram, double matrix, double vector, double sram) {
  Machine m = tx8();
  m.mesh_x = x;
  m.mesh_y = y;
  m.tiles = x * y;
  m.link = link;
  m.dram = dram;
  m.matrix = matrix / m.tiles;
  m.vector = vector / m.tiles;
  m.sram = sram;
  m.dram_latency = 3e-7;
  return m;
}
inline std::array<Machine, 4> meshes() {
  return {tx8(), mesh(8, 8, 32e9, 288e9, 65.5e12, 4.1e12, 1.5e6), mesh(13, 10, 86.4e9, 512e9, 180e12, 11.2e12, 1.5e6),
          mesh(12, 9, 67e9, 2039e9, 312e12, 19.5e12, 196608)};
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine_); }
  // Every order of magnitude alike.
  std::int64_t size(double low, double high) { return std::llround(std::exp(uniform(std::log(low), std::log(high)))); }
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(engine_); }
  bool chance(double share) { return uniform(0, 1) < share; }

 private:
  std::mt19937_64 engine_;
};

// The fastest mapping of all that there are, by a search that times every one of them.
template <typename Search, typename Problem>
auto exhaustive(Search& search, const Problem& problem) {
  search.bounds = false;
  const auto all = search.best(problem, 1);
  search.bounds = true;
  return all.empty() ? typename decltype(all)::value_type{} : all.front();
}

}  // namespace llmperf::mapper::tile
