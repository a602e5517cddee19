// #sdy.sharding<@mesh, [{"x"}, {"y":(1)2, ?}p1, {}], replicated={"z"}, unreduced={"w"}>. A part "y":(1)2 of an axis of
// 8 is its second factor when the axis is written as 1 x 2 x 4. XLA writes the same in braces with single quotes.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/text.h"
#include "graph/hlo/sharding_text.h"

namespace llmperf::graph::hlo {
namespace {

constexpr int kMaxMeshAliases = 8;  // that lead from one to the next

// Whether ", device_ids" comes next.
bool sees_device_ids(ShardingText& text) {
  if (!text.sees(",")) return false;
  const std::string_view rest = text.rest().substr(1);
  return rest.substr(std::min(rest.find_first_not_of(" \n"), rest.size())).starts_with("device_ids");
}

// [1, 0] or dense<[1, 0]> : tensor<2xi64>
std::optional<std::vector<std::int64_t>> device_ids(ShardingText& text) {
  text.expect(",");
  text.expect("device_ids");
  text.expect("=");
  if (text.sees("[")) return text.numbers("[", "]");
  const std::string_view rest = text.rest();
  text.skip_brackets();
  std::vector<std::int64_t> devices = integers(rest.substr(0, rest.size() - text.rest().size()));
  if (text.take(":")) text.skip_brackets();
  const bool in_range = std::all_of(devices.begin(), devices.end(),
                                    [](std::int64_t device) { return device >= 0 && device < kMaxDevices; });
  // More than a hundred are printed as bytes: "0x…".
  return in_range && rest.starts_with("dense<") && !rest.starts_with("dense<\"") ? std::optional(devices)
                                                                                 : std::nullopt;
}

// ["x"=2, "y"=4], also [#stablehlo.mesh_axis<name = "x", size = 2>, …] and [{name = "x", size = 2 : i64}, …]
Mesh mesh_axes(ShardingText& text) {
  Mesh mesh;
  std::vector<std::int64_t> sizes;
  text.expect("[");
  while (!text.take("]")) {
    if (!mesh.axes.empty()) text.expect(",");
    const bool braced = text.take("{");
    const bool wordy = braced || text.take("#stablehlo.mesh_axis<") || text.take("#mhlo.mesh_axis<");
    if (wordy) {
      text.expect("name");
      text.expect("=");
    }
    const std::string_view axis = text.quoted();
    if (wordy) {
      text.expect(",");
      text.expect("size");
    }
    text.expect("=");
    const std::int64_t size = text.number();
    if (braced && text.take(":")) text.expect("i64");
    if (wordy) text.expect(braced ? "}" : ">");
    if (size < 1 || size > kMaxDevices / mesh.devices) text.fail("a mesh of no or too many devices");
    mesh.devices *= size;
    mesh.axes.emplace_back(axis, DeviceAxes{});
    sizes.push_back(size);
  }
  std::int64_t stride = mesh.devices;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    stride /= sizes[i];
    if (sizes[i] > 1) mesh.axes[i].second = {{sizes[i], stride}};
  }
  if (!sees_device_ids(text)) return mesh;
  const auto devices = device_ids(text);
  if (!devices) {
    mesh.regular = false;
  } else if (mesh.axes.empty() && devices->size() == 1) {
    mesh.device = devices->front();
  } else if (static_cast<std::int64_t>(devices->size()) != mesh.devices) {
    text.fail(fmt::format("a mesh of {} devices with the numbers of {}", mesh.devices, devices->size()));
  } else {
    ArrayAxes axes = axes_of_array(*devices, sizes);
    for (std::size_t i = 0; i < sizes.size(); ++i) mesh.axes[i].second = std::move(axes.dims[i]);
    mesh.regular = axes.regular;
  }
  return mesh;
}

// What `name` stands for at `place`; nothing: there is no such mesh. Each program of a file has meshes of its own.
std::string_view mesh_definition(const Module& module, std::string_view name, std::string_view place) {
  const std::string_view all = module.source ? module.source->text() : std::string_view{};
  const std::less_equal<const char*> before;
  const bool inside = before(all.data(), place.data()) && before(place.data(), all.data() + all.size());
  const std::size_t at = inside ? static_cast<std::size_t>(place.data() - all.data()) : 0;
  int chunk = 0;
  for (const Function& f : module.functions) {
    if (f.offset <= at) chunk = f.chunk;
  }
  std::string_view found;
  for (const NamedMesh& mesh : module.meshes) {
    if (mesh.name == name && (mesh.chunk == chunk || found.empty())) found = mesh.text;
  }
  if (!found.empty()) return found;
  // Programs that went through HLO: mhlo.frontend_attributes = {xla.sdy.meshes = "{mesh = #sdy.mesh<[…]>}"}
  for (const Attribute& attribute : module.attributes) {
    if (attribute.key != "mhlo.frontend_attributes") continue;
    const std::string key = fmt::format("{} = #sdy.mesh<", name);
    const std::size_t found_at = attribute.text.find(key);
    if (found_at != std::string_view::npos) return attribute.text.substr(found_at + name.size() + 3);
  }
  return {};
}

Mesh mesh_of(ShardingText& text, int depth) {
  if (depth > kMaxMeshAliases) text.fail("a mesh that refers to itself");
  if (text.take("@")) {
    const std::string_view rest = text.rest();
    std::string_view name;
    if (text.sees("\"") || text.sees("\\22")) {
      name = text.quoted();
    } else {
      const std::size_t end = std::min(rest.find_first_of(", >]})\n"), rest.size());
      name = rest.substr(0, end);
      text.expect(name);
    }
    const std::string_view found = mesh_definition(text.module(), name, rest);
    if (found.empty()) {
      text.fail(fmt::format("there is no mesh {}", quote(name)), fmt::format("sdy.mesh @{} = <[\"x\"=2]>", name));
    }
    ShardingText definition(text.module(), found);
    return mesh_of(definition, depth + 1);
  }
  const bool braced = text.take("{");
  const bool opened =
      braced || text.take("#sdy.mesh<") || text.take("#stablehlo.mesh<") || text.take("mesh<") || text.take("<");
  if (!opened && !text.take("mesh")) text.fail_expected("a mesh");
  if (text.take("axes")) text.expect("=");
  Mesh mesh = mesh_axes(text);
  if (opened) text.expect(braced ? "}" : ">");
  return mesh;
}

// "x" or "x":(1)2, after whose name `info` stands before the part.
DeviceAxes axis(ShardingText& text, const Mesh& mesh, std::string_view info) {
  const std::string_view name = text.quoted();
  const auto found = std::find_if(mesh.axes.begin(), mesh.axes.end(), [&](const auto& a) { return a.first == name; });
  if (found == mesh.axes.end()) {
    std::vector<std::string> names;
    for (const auto& a : mesh.axes) names.emplace_back(a.first);
    text.fail(fmt::format("the mesh has no axis {}", quote(name)), "it has: " + join(names, ", "));
  }
  DeviceAxes axes = found->second;
  if (!text.take(info)) return axes;
  text.expect("(");
  const std::int64_t before = text.number();
  text.expect(")");
  const std::int64_t size = text.number();
  const auto outer = before > 0 ? take_outer(axes, before) : std::nullopt;
  const auto part = outer && size > 0 ? take_outer(axes, size) : std::nullopt;
  if (!part)
    text.fail(
        fmt::format("axis {} of {} devices has no part ({}){}", quote(name), size_of(found->second), before, size));
  return *part;
}

void append(DeviceAxes& axes, const DeviceAxes& more) { axes.insert(axes.end(), more.begin(), more.end()); }

DeviceAxes axes_in_braces(ShardingText& text, const Mesh& mesh) {
  DeviceAxes axes;
  text.expect("{");
  while (!text.take("}")) {
    append(axes, axis(text, mesh, ":"));
    if (!text.sees("}")) text.expect(",");
  }
  return axes;
}

// {"x", "y", ?}p0
void dimension(ShardingText& text, const Mesh& mesh, Sharding& sharding) {
  DeviceAxes axes;
  bool open = false;
  text.expect("{");
  while (!text.take("}")) {
    if (text.take("?")) {
      open = true;
    } else {
      const DeviceAxes more = axis(text, mesh, ":");
      if (overlap(axes, more)) text.fail("a dimension is divided over the same devices twice");
      append(axes, more);
    }
    if (!text.sees("}")) text.expect(",");
  }
  if (text.take("p")) text.number();  // its priority
  for (const DeviceAxes& other : sharding.dims) {
    if (overlap(other, axes)) text.fail("two dimensions are divided over the same devices");
  }
  sharding.dims.push_back(merged(axes));
  sharding.open.push_back(open);
}

// @mesh, [{"x"}, {}], replicated={"y"}
Sharding body(ShardingText& text) {
  const Mesh mesh = mesh_of(text, 0);
  Sharding sharding;
  sharding.devices = mesh.device ? 0 : mesh.devices;
  sharding.regular = mesh.regular;
  if (mesh.device) {
    sharding.form = Sharding::Form::maximal;
    sharding.device = *mesh.device;
  }
  while (text.take(",")) {
    if (text.take("[")) {
      while (!text.take("]")) {
        dimension(text, mesh, sharding);
        if (!text.sees("]")) text.expect(",");
      }
    } else if (text.take("replicated")) {
      text.expect("=");
      append(sharding.replicated, axes_in_braces(text, mesh));
    } else if (text.take("unreduced")) {
      text.expect("=");
      append(sharding.unreduced, axes_in_braces(text, mesh));
    } else if (text.take("manual")) {
      text.expect("=");
      append(sharding.manual, axes_in_braces(text, mesh));
    } else {
      text.fail_expected("the dimensions, replicated= or unreduced=");
    }
  }
  for (const DeviceAxes& dim : sharding.dims) {
    if (overlap(dim, sharding.replicated) || overlap(dim, sharding.unreduced)) {
      text.fail("a dimension is divided over devices that are said to hold the same or summands");
    }
  }
  return sharding;
}

}  // namespace

Mesh parse_mesh(const Module& module, std::string_view text) {
  ShardingText cursor(module, text);
  return mesh_of(cursor, 0);
}

DeviceAxes parse_axis_list(const Module& module, const Mesh& mesh, std::string_view text) {
  DeviceAxes axes;
  for (std::size_t at = text.find('"'); at != std::string_view::npos; at = text.find('"', at)) {
    ShardingText cursor(module, text.substr(at));
    const bool wordy = text.substr(0, at).ends_with("= ") || text.substr(0, at).ends_with("=");
    append(axes, axis(cursor, mesh, wordy ? ", sub_axis_info =" : ":"));
    at = text.size() - cursor.rest().size();
  }
  return axes;
}

std::vector<Sharding> parse_shardy(ShardingText& text) {
  if (text.sees("mesh[")) return {body(text)};
  const bool per_value = text.take("#sdy.sharding_per_value<");
  if (per_value || text.sees("[")) {
    std::vector<Sharding> all;
    text.expect("[");
    while (!text.take("]")) {
      if (!all.empty()) text.expect(",");
      if (!text.take("#sdy.sharding<")) text.expect("<");
      all.push_back(body(text));
      text.expect(">");
    }
    if (per_value) text.expect(">");
    return all;
  }
  if (!text.take("#sdy.sharding<")) text.expect("<");
  Sharding one = body(text);
  text.expect(">");
  return {std::move(one)};
}

}  // namespace llmperf::graph::hlo
