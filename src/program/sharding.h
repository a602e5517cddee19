// Numbers of devices as coordinates: 8 devices as 2 x 4 are the axes {2, stride 4} and {4, stride 1}, and a device's
// number is the sum of coordinate x stride. What is divided over devices is divided over such axes, and those who talk
// to each other differ in the coordinates of some.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/module.h"

namespace llmperf::program {

struct DeviceAxis {
  std::int64_t size = 1;
  std::int64_t stride = 1;
  bool operator==(const DeviceAxis&) const = default;
};
using DeviceAxes = List<DeviceAxis>;  // major to minor

// No text describes more devices.
inline constexpr std::int64_t kMaxDevices = std::int64_t{1} << 32;

// Devices along all of them together.
std::int64_t size_of(const DeviceAxes& axes);
void append(DeviceAxes& axes, const DeviceAxes& more);
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
  List<DeviceAxes> dims;
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
Integers devices_of(const DeviceAxes& axes, std::int64_t most);

// How a tensor lies on devices, from the annotations of HLO (mhlo.sharding = "{devices=[4,2]<=[8]}") and of Shardy
// (#sdy.sharding<@mesh, [{"x"}, {}]>).
//
// Text forms: HloSharding::ToString and IotaTileAssignment of openxla/xla (hlo_sharding.cc, tile_assignment.cc), the
// OpSharding message of xla_data.proto, which older programs hold in its binary form, and the printers of
// openxla/shardy (dialect.cc, attrs.td).

struct Sharding {
  enum class Form : unsigned char {
    tiled,    // every dimension over its axes; all devices hold what is not divided
    maximal,  // one device holds all
    manual,   // shapes in the text are those of one device
    unknown   // not said
  };
  Form form = Form::tiled;
  List<DeviceAxes> dims = {};  // by dimension; empty: none is divided
  List<bool> open = {};        // by dimension: it may be divided further; empty: none may
  DeviceAxes unreduced = {};   // every device along them holds a summand
  DeviceAxes replicated = {};  // every device along them is said to hold the same
  DeviceAxes manual = {};      // shapes in the text are divided over them already
  std::int64_t device = 0;     // of maximal
  std::int64_t devices = 0;    // that the annotation is about; 0: it does not say
  bool regular = true;         // false: the order of devices is no set of axes, strides are approximate

  bool is_open(std::size_t dim) const { return dim < open.size() && open[dim]; }
  // The same parts in the same places; annotations that leave room are not compared.
  bool same_parts(const Sharding& other) const;
  bool divides() const;
};

// Of one value. Throws Error(bad_input) where the text is not understood.
Sharding parse_sharding(const Module& module, std::string_view text);
// Of all values of an instruction: the members of a tuple or a list, else one.
List<Sharding> parse_shardings(const Module& module, std::string_view text);

// Named axes of devices.
struct Mesh {
  std::vector<std::pair<std::string_view, DeviceAxes>> axes;
  std::optional<std::int64_t> device;  // of a mesh without axes: the only one
  std::int64_t devices = 1;
  bool regular = true;
};
// "<["x"=2, "y"=4]>", "mesh<["x"=2], device_ids=[1, 0]>", "@mesh" (looked up in the module).
Mesh parse_mesh(const Module& module, std::string_view text);
// The devices along the axes of "{"x", "y":(1)2}" or of [#stablehlo.axis_ref<name = "x", sub_axis_info = (1)2>, …].
DeviceAxes parse_axis_list(const Module& module, const Mesh& mesh, std::string_view text);

// What one device holds of these extents: divided and rounded up.
Integers local_dims(const Sharding& sharding, const Integers& dims);

}  // namespace llmperf::program
