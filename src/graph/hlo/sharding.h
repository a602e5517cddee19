// How a tensor lies on devices, from the annotations of HLO (mhlo.sharding = "{devices=[4,2]<=[8]}") and of Shardy
// (#sdy.sharding<@mesh, [{"x"}, {}]>).
//
// Text forms: HloSharding::ToString and IotaTileAssignment of openxla/xla (hlo_sharding.cc, tile_assignment.cc), the
// OpSharding message of xla_data.proto, which older programs hold in its binary form, and the printers of
// openxla/shardy (dialect.cc, attrs.td).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/hlo/device_axes.h"
#include "graph/hlo/module.h"

namespace llmperf::graph::hlo {

struct Sharding {
  enum class Form : unsigned char {
    tiled,    // every dimension over its axes; all devices hold what is not divided
    maximal,  // one device holds all
    manual,   // shapes in the text are those of one device
    unknown   // not said
  };
  Form form = Form::tiled;
  std::vector<DeviceAxes> dims = {};  // by dimension; empty: none is divided
  std::vector<bool> open = {};        // by dimension: it may be divided further; empty: none may
  DeviceAxes unreduced = {};          // every device along them holds a summand
  DeviceAxes replicated = {};         // every device along them is said to hold the same
  DeviceAxes manual = {};             // shapes in the text are divided over them already
  std::int64_t device = 0;            // of maximal
  std::int64_t devices = 0;           // that the annotation is about; 0: it does not say
  bool regular = true;                // false: the order of devices is no set of axes, strides are approximate

  bool is_open(std::size_t dim) const { return dim < open.size() && open[dim]; }
  // The same parts in the same places; annotations that leave room are not compared.
  bool same_parts(const Sharding& other) const;
  bool divides() const;
};

// Of one value. Throws Error(bad_input) where the text is not understood.
Sharding parse_sharding(const Module& module, std::string_view text);
// Of all values of an instruction: the members of a tuple or a list, else one.
std::vector<Sharding> parse_shardings(const Module& module, std::string_view text);

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
std::vector<std::int64_t> local_dims(const Sharding& sharding, const std::vector<std::int64_t>& dims);

}  // namespace llmperf::graph::hlo
