// Names of the enumerations as device files and runtime profiles write them, in the order of the enumeration.
#pragma once

#include <array>
#include <string_view>

#include "hardware/device.h"
#include "hardware/runtime_profile.h"

namespace llmperf::hardware {

inline constexpr std::array<std::string_view, 5> kProvenanceNames = {"datasheet", "derived", "measured", "fitted",
                                                                     "assumed"};
inline constexpr std::array<std::string_view, 2> kEngineNames = {"matrix", "vector"};
inline constexpr std::array<std::string_view, 6> kDeviceKindNames = {"gpu", "npu", "asic", "cpu", "soc", "tile_array"};
inline constexpr std::array<std::string_view, 3> kOfferNames = {"purchase", "rent", "spot"};
inline constexpr std::array<std::string_view, 8> kTopologyNames = {
    "none", "full_mesh", "fully_switched", "ring", "torus_2d", "torus_3d", "pcie_tree", "tile_mesh"};

inline constexpr std::array<std::string_view, 5> kDispatchNames = {"graph", "eager", "serial", "dynamic_graph",
                                                                   "pieces"};
inline constexpr std::array<std::string_view, 6> kProductTilesNames = {"unpacked", "menu",          "quantised_menu",
                                                                       "by_rows",  "fewest_rounds", "cube"};
inline constexpr std::array<std::string_view, 3> kPowerNames = {"none", "short", "sustained"};
inline constexpr std::array<std::string_view, 5> kAttentionKernelsNames = {"flash2", "flash3", "blackwell", "xqa",
                                                                           "cann"};
inline constexpr std::array<std::string_view, 3> kWorkloadNames = {"language", "video", "training"};
inline constexpr std::array<std::string_view, 3> kHostClassNames = {"desktop", "server", "grace"};
inline constexpr std::array<std::string_view, 3> kChainNames = {"one_kernel", "framework", "compiled"};

static_assert(static_cast<std::size_t>(Provenance::assumed) + 1 == kProvenanceNames.size());
static_assert(static_cast<std::size_t>(Engine::vector) + 1 == kEngineNames.size());
static_assert(static_cast<std::size_t>(DeviceKind::tile_array) + 1 == kDeviceKindNames.size());
static_assert(static_cast<std::size_t>(Offer::spot) + 1 == kOfferNames.size());
static_assert(static_cast<std::size_t>(Topology::tile_mesh) + 1 == kTopologyNames.size());
static_assert(static_cast<std::size_t>(Dispatch::pieces) + 1 == kDispatchNames.size());
static_assert(static_cast<std::size_t>(ProductTiles::cube) + 1 == kProductTilesNames.size());
static_assert(static_cast<std::size_t>(Power::sustained) + 1 == kPowerNames.size());
static_assert(static_cast<std::size_t>(AttentionKernels::cann) + 1 == kAttentionKernelsNames.size());
static_assert(static_cast<std::size_t>(Workload::training) + 1 == kWorkloadNames.size());
static_assert(static_cast<std::size_t>(Chains::compiled) + 1 == kChainNames.size());

}  // namespace llmperf::hardware
