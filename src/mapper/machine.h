// Everything an op can run on: the device, the host beside it, the link between the two, and the links to other
// devices.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cost/collective.h"
#include "cost/work.h"
#include "graph/op.h"
#include "hardware/device.h"
#include "hardware/runtime_profile.h"
#include "mapper/roofline/efficiency.h"
#include "mapper/roofline/roofline.h"

namespace llmperf::mapper::tile {
class TileMapper;
}

namespace llmperf::mapper {

// How ops are timed on an array of tiles: by the best mapping found, by the formulas of the published mapper
// (tile/published.h), or by the roofline alone.
enum class TileModel : unsigned char { mapped, published, roofline };
std::string_view name(TileModel model);
// Throws Error(bad_input).
TileModel parse_tile_model(std::string_view name);

// What is known of the host beside its datasheet.
struct HostSide {
  const hardware::RuntimeProfile* profile = nullptr;  // that times its ops; null: its speed of light
  bool pinned = false;                                // weights left there are in pinned memory
};

class Machine {
 public:
  // The device, and host and profiles if there are any, must outlive it. Without a profile, and under one whose stack
  // maps ops to tiles, times are those of the tiles where the device has some, else the speed of light. Under one,
  // weights cross the link to the host at the profile's share of its rate.
  Machine(const hardware::Device& device, const cost::Cluster& cluster, const hardware::Device* host = nullptr,
          BytesPerSecond link = {}, const hardware::RuntimeProfile* profile = nullptr,
          TileModel tiles = TileModel::mapped, const HostSide& side = {});
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Of the device or of the host.
  const Roofline& roofline(graph::Place place = graph::Place::device) const {
    return place == graph::Place::host && host_ ? *host_ : device_;
  }
  const cost::Cluster& cluster() const { return cluster_; }

  // Layers that are on unlike devices: ops of layers take the mean over the parts, by the share of the layers of their
  // kind that each has; those outside of layers run on the last. Parts must outlive it.
  struct Part {
    const Machine* machine = nullptr;
    std::vector<double> shares = {};  // by kind of layers
  };
  void divide(std::vector<Part> parts) { parts_ = std::move(parts); }

  // Work and time of one execution where the op runs. Throws Error(infeasible) when no mapping fits into a tile.
  cost::Work work(const graph::Op& op) const { return cost::work_of(op, roofline(op.place).cache()); }
  OpTime time(const graph::Op& op, const cost::Work& work) const;
  // Searches for the mappings of all of these at once, where ops are timed by mappings: `time` does so one by one.
  void search_mappings(std::span<const graph::Op> ops) const;
  // Of the shorter of a collective that overlaps and the op before it, the share that takes no time of its own.
  double hidden_share(const graph::Op& op) const;
  // Null for the speed of light.
  const Efficiency* efficiency() const { return efficiency_ ? &*efficiency_ : nullptr; }
  const Efficiency* host_efficiency() const { return host_efficiency_ ? &*host_efficiency_ : nullptr; }
  // What is sent of a link to the host: null for activations, which take all of it, and where the host's staging says.
  std::optional<hardware::Parameter> upload_share(const graph::Op& op) const;
  // Of weights in pageable memory, on a host that says.
  std::optional<BytesPerSecond> staging(const graph::Op& op) const;
  // Null where ops are not timed by mappings, which may bound them all the same.
  const tile::TileMapper* tiles() const;

 private:
  OpTime mean_time(const graph::Op& op, const cost::Work& work) const;

  Roofline device_;
  std::optional<Roofline> host_;
  BytesPerSecond link_;
  std::optional<BytesPerSecond> staging_;
  bool pinned_;
  cost::Cluster cluster_;
  std::optional<Efficiency> efficiency_;
  std::optional<hardware::RuntimeProfile> host_profile_;  // as it runs beside this device
  std::optional<Efficiency> host_efficiency_;
  std::unique_ptr<tile::TileMapper> tiles_;
  std::vector<Part> parts_;  // empty: one device, or several alike
};

}  // namespace llmperf::mapper
