// Numbers of devices as coordinates: 8 devices as 2 x 4 are the axes {2, stride 4} and {4, stride 1}, and a device's
// number is the sum of coordinate x stride. What is divided over devices is divided over such axes, and those who talk
// to each other differ in the coordinates of some.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace llmperf::graph::hlo {

struct DeviceAxis {
  std::int64_t size = 1;
  std::int64_t stride = 1;
  bool operator==(const DeviceAxis&) const = default;
};
using DeviceAxes = std::vector<DeviceAxis>;  // major to minor

// No text describes more devices.
inline constexpr std::int64_t kMaxDevices = std::int64_t{1} << 32;

// Devices along all of them together.
std::int64_t size_of(const DeviceAxes& axes);
// Without axes of one device, and neighbours that count on ({2, 4}, {4, 1}) as one ({8, 1}).
DeviceAxes merged(const DeviceAxes& axes);
// Removes the outermost `size` coordinates and returns them; nothing, and no change, when an axis cannot be cut so.
std::optional<DeviceAxes> take_outer(DeviceAxes& axes, std::int64_t size);
// The same axes, cut wherever one of `others` begins or ends, so that an axis of one list is in the other or has
// nothing in common with any in it. Nothing when there is no such cut.
std::optional<DeviceAxes> cut_by(const DeviceAxes& axes, const DeviceAxes& others);
// What of `axes` is also in `others`.
DeviceAxes common(const DeviceAxes& axes, const DeviceAxes& others);
bool overlap(const DeviceAxes& a, const DeviceAxes& b);

// Devices in a list, as axes. Irregular lists become one axis that steps by the largest distance all have in common.
struct ListedAxes {
  DeviceAxes axes;
  bool regular = true;
};
ListedAxes axes_of(std::span<const std::int64_t> devices);
// The same for an array of devices: the axes of each of its dimensions.
struct ArrayAxes {
  std::vector<DeviceAxes> dims;
  bool regular = true;
};
ArrayAxes axes_of_array(std::span<const std::int64_t> devices, std::span<const std::int64_t> dims);

// Those who differ in these coordinates only: how many they are and how far apart their numbers are, as a collective
// has it (graph/op.h).
struct DeviceGroup {
  std::int64_t ranks = 1;
  std::int64_t stride = 1;
  bool regular = true;  // the numbers are stride apart; else that is the largest distance they have in common
};
DeviceGroup group_of(const DeviceAxes& axes);

// "{0,4,8,12} x2": the first group and how many there are; long ones shortened.
std::string group_text(std::span<const std::int64_t> devices, std::int64_t groups);
// The devices of the first group, no more than the `most` first.
std::vector<std::int64_t> devices_of(const DeviceAxes& axes, std::int64_t most);

}  // namespace llmperf::graph::hlo
