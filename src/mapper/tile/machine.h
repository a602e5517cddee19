// The array of tiles that mappings are made for, in plain numbers of one data type.
//
// Every tile has a memory (SRAM), a matrix unit, a vector unit and DMA engines, all of which work at the same time. The
// tiles form a mesh: links join neighbours, one in each direction, and messages go along x first, then y. One DRAM
// channel serves all tiles, each of which it reaches directly; it handles one request at a time.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "hardware/device.h"

namespace llmperf::mapper::tile {

struct Machine {
  int tiles = 0;
  int mesh_x = 0;
  int mesh_y = 0;
  double sram = 0;          // bytes of one tile
  double dram = 0;          // bytes/s of all tiles together
  double link = 0;          // bytes/s from one tile to a neighbour
  double dram_latency = 0;  // s from a request to its first byte
  double hop_latency = 0;   // s per link
  double matrix = 0;        // FLOP/s of one tile
  double vector = 0;        // operations/s of one tile
  int granule = 16;         // rows, columns and depth that the matrix unit rounds up to
};

// Of a device of kind tile_array, for matrix products on operands of `dtype`. Throws Error(bad_input) when the device
// has no tiles, or more than mappings are searched for, or no rate for the type.
Machine make_machine(const hardware::Device& device, Dtype dtype);

}  // namespace llmperf::mapper::tile
