// What a datasheet says about a device, each figure with its provenance. No efficiencies here: those belong to a
// runtime profile.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/units.h"

namespace llmperf::descriptor {
struct Document;
}

namespace llmperf::hardware {

enum class Provenance : unsigned char { datasheet, derived, measured, fitted, assumed };
enum class Engine : unsigned char { matrix, vector };
enum class DeviceKind : unsigned char { gpu, npu, asic, cpu, soc, tile_array };
enum class Offer : unsigned char { purchase, rent, spot };  // to own it; by the hour, on demand or as long as it lasts

// Dense peak rate of one engine for one operand type, of one device.
struct Peak {
  Engine engine = Engine::matrix;
  Dtype dtype = Dtype::fp16;
  std::optional<Dtype> accumulate;  // given where the rate depends on it
  // Of a matrix unit whose multipliers take a few bits of the operands at a time: how often it goes over them for this
  // rate, which more passes divide and fewer multiply (fidelity of Tenstorrent: LoFi 1, HiFi2 2, HiFi3 3, HiFi4 4).
  std::optional<int> passes;
  FlopsPerSecond rate;
  Provenance provenance = Provenance::datasheet;
};

// From near to far; the last level holds the weights.
struct MemoryLevel {
  std::string name;               // "L2", "HBM", "SRAM per tile"
  std::optional<Bytes> capacity;  // what software can use: less than the board has by what ECC and the driver keep
  std::optional<Bytes> board;     // what is built in, in the binary units that it is sold in
  std::string capacity_note;      // who reports the capacity, or what it is derived from; may be empty
  std::optional<BytesPerSecond> bandwidth;        // what is left of the published one where check bits are sent as well
  double ecc_traffic = 0;                         // share of the published bandwidth that they take
  bool per_tile = false;                          // tile arrays: capacity and bandwidth are of one tile
  Provenance provenance = Provenance::datasheet;  // of the capacity
  Provenance bandwidth_provenance = Provenance::datasheet;  // of the bandwidth
};

enum class Topology : unsigned char { none, full_mesh, fully_switched, ring, torus_2d, torus_3d, pcie_tree, tile_mesh };

struct Interconnect {
  std::string name;  // "NVLink4", "HCCS"
  Topology topology = Topology::none;
  std::optional<BytesPerSecond> per_direction;  // of one device, all its links together, one direction
  std::optional<BytesPerSecond> per_link;       // one link, one direction, where published
  std::optional<std::int64_t> links;
  std::optional<Seconds> latency;  // of a small message to a neighbour
  Provenance provenance = Provenance::datasheet;
  Provenance latency_provenance = Provenance::datasheet;  // given with the latency
  std::int64_t devices = 1;                               // Device::package and Device::supernode: that they join
  bool reduces = false;  // the switch adds up what devices send it (NVLink SHARP: NVSwitch from the third on)
  // Of a PCIe tree: devices that reach each other without the host, behind one switch; the others' bytes pass its
  // bridges, and from one half of the node to the other what joins two sockets. 0: the file does not say.
  std::int64_t direct = 0;
};

// What joins nodes of devices_per_node devices: a switched network, where every device has a share of its own.
struct Network {
  std::string name;              // "InfiniBand NDR"
  BytesPerSecond per_direction;  // of one device, one direction
  std::optional<Seconds> latency;
  Provenance provenance = Provenance::datasheet;
  Provenance latency_provenance = Provenance::datasheet;
};

struct HostLink {
  std::string name;  // "PCIe4 x16"
  BytesPerSecond per_direction;
  Provenance provenance = Provenance::datasheet;
};

// Where a tile is on its mesh, columns and rows from 0.
struct TilePlace {
  std::int64_t x = 0;
  std::int64_t y = 0;
  bool operator==(const TilePlace&) const = default;
};

// The channels that the DRAM of a tile array is made of; its bandwidth is that of all together. Tensors are kept in
// pages of a few elements, dealt over the channels.
struct DramChannels {
  std::int64_t count = 1;
  std::int64_t page = 0;           // elements; 0: pages are long
  std::optional<double> requests;  // pages per second of one channel, however short they are
  std::vector<TilePlace> places;   // tile that each is next to; empty: every tile reaches all alike
};

inline constexpr int kMostPasses = 8;  // of a matrix unit

// A mesh of tiles that share the device's DRAM (kind tile_array).
struct TileArray {
  std::int64_t tiles = 0;
  std::int64_t mesh_x = 0;
  std::int64_t mesh_y = 0;  // mesh_x * mesh_y == tiles
  BytesPerSecond noc_link;  // one tile-to-tile link, one direction
  Seconds hop_latency;
  Seconds dram_latency;
  // Columns and rows that programs run on, where these are not all.
  std::optional<TilePlace> grid;
  // Two networks whose links close to rings, in opposite directions: a message may leave at one edge and come in at the
  // other.
  bool rings = false;
  std::optional<BytesPerSecond> multicast;             // of one sender to several tiles; nothing: as a link
  std::optional<BytesPerSecond> tile_dram;             // that one tile gets from the DRAM; nothing: all of it
  std::optional<BytesPerSecond> matrix_feed;           // operands that a matrix unit gets from its tile's memory
  std::array<std::int64_t, 3> granule = {16, 16, 16};  // rows, columns and depth that the matrix unit rounds up to
  bool shared_issue = false;  // matrix and vector unit share an instruction stream: their times add up
  Seconds launch;             // of every op
  std::optional<DramChannels> channels;
  Provenance provenance = Provenance::datasheet;

  std::int64_t used_x() const { return grid ? grid->x : mesh_x; }
  std::int64_t used_y() const { return grid ? grid->y : mesh_y; }
};

// What one device is sold for, or an hour of it is let for.
struct Price {
  Offer kind = Offer::purchase;
  double amount = 0;
  std::string currency = {};  // "USD": three capitals; those of one device are all of one currency
  std::string source = {};    // who asks for it
  std::string date = {};      // when that was read: "2026", "2026-03" or "2026-03-31"; may be empty
};

// Of the board power, what a busy device draws however little it does, and what it draws more at full memory bandwidth
// and at the full rate of its matrix units: shares that were measured on this very device.
struct PowerShares {
  double idle = 0;
  double memory = 0;
  double matrix = 0;
  Provenance provenance = Provenance::measured;
  std::string source = {};
};

// What a limit below the power of the board leaves of the clock.
struct PowerLimit {
  double board_w = 0;  // without it
  double clock = 1;    // share of the clock under load of the matrix units
  double doubt = 0;    // share of that by which measured cards differ
};

struct Device {
  std::string name;
  std::string title;  // "NVIDIA GeForce RTX 4090"
  std::string vendor;
  std::string family;  // class whose runtime defaults apply: "nvidia-ada", "ascend-910b"
  DeviceKind kind = DeviceKind::gpu;
  std::string source;
  std::string notes;
  std::vector<Peak> peaks;                   // a vector fp32 peak at least; unique by engine, dtype and accumulate
  std::vector<MemoryLevel> memory;           // last: device memory with capacity and bandwidth
  std::optional<Interconnect> package;       // what joins the dies of a card, nearer than the devices of a node
  std::optional<Interconnect> interconnect;  // inside a node
  // What joins nodes through the ports of the interconnect: other latencies, and nothing that a port would not share.
  std::optional<Interconnect> supernode;
  std::optional<Network> network;
  std::optional<HostLink> host_link;
  std::optional<TileArray> tile_array;
  std::int64_t devices_per_node = 1;  // a server (atlas-800i-a2) is described by one of its devices and their number
  std::optional<std::int64_t> cores;  // SMs, compute units, AI cores
  std::optional<BytesPerSecond> core_bandwidth;  // of a CPU: of the memory bandwidth, what one core draws
  // Of a CPU: what its driver brings to a device of pageable memory, by way of buffers of its own; nothing: as usual.
  std::optional<BytesPerSecond> staging;
  std::int64_t numa_nodes = 1;              // of a CPU: that cores and memory are divided into
  std::optional<double> clock_hz;           // that the peaks are given at
  std::optional<double> measured_clock_hz;  // that the device was seen to run products at, where that is another
  std::optional<double> power_w;            // TDP of one device, or the limit below it
  std::optional<PowerLimit> power_limit;    // none: the whole TDP
  std::optional<PowerShares> power_shares;  // of it
  std::vector<Price> prices;

  const MemoryLevel& dram() const { return memory.back(); }
  // The on-chip cache that all cores share, if given: the level before the last; null when that is memory of one tile.
  const MemoryLevel* last_level_cache() const;
  // The rate at which `engine` works on `dtype` operands; among several figures of one type the one with fp32
  // accumulation. Matrix: null when the file has no figure for that very type; whether another type or the vector
  // engine stands in is the caller's decision. Vector: the vector fp32 figure stands in for a type without one, so it
  // is never null.
  const Peak* find_peak(Engine engine, Dtype dtype) const;
  // The fastest matrix figure of that very type, whatever it accumulates in; null without one.
  const Peak* fastest_peak(Dtype dtype) const;
  // What the peaks are to be multiplied by: the clock seen over the one they are given at.
  double clock_ratio() const { return clock_hz && measured_clock_hz ? *measured_clock_hz / *clock_hz : 1; }
};

// What one core of a CPU draws of the memory bandwidth where its file says nothing: 13 GB/s were seen on a Ryzen 7950X
// (4 threads), 28 GB/s on an Apple M2 Max.
inline constexpr BytesPerSecond kCoreBandwidth{13e9};
// The CPU as a program sees it that runs on `threads` of its cores in `numa_nodes` of its nodes; nothing: all. Its
// rates are those of these cores, its bandwidth that of these nodes or what the cores draw, if that is less; of the
// memory all is there. Throws Error(bad_input) for what it does not have.
Device with_threads(const Device& cpu, std::optional<std::int64_t> threads, std::optional<std::int64_t> numa_nodes);

// The device that draws no more than that many watts; rates and clocks follow, the bandwidth of its memory stays.
// Throws Error(bad_input) for no limit: not below the power of the board, whose file must say it, or so far below it
// that cards stop computing.
Device with_power_limit(Device device, double watts);
// "245W", "0.3 kW" or "245"; nothing for other texts.
std::optional<double> parse_watts(std::string_view text);

// Of a price: three capital letters; a year, a month or a day.
bool is_currency(std::string_view text);
bool is_date(std::string_view text);

// "8x8" into two sides of at least 1; nothing for other texts.
std::optional<TilePlace> parse_sides(std::string_view text);

// The device a document describes. Throws Error(bad_input) with every problem found, each with its position.
Device parse_device(const descriptor::Document& document);
// A built-in name or a YAML path, read by parse_device.
Device load_device(const std::string& name_or_path);

std::string_view name(Provenance provenance);
std::string_view name(DeviceKind kind);
std::string_view name(Topology topology);
std::string_view name(Engine engine);
std::string_view name(Offer offer);

}  // namespace llmperf::hardware
