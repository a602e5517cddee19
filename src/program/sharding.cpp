#include "program/sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace llmperf::program {
namespace {

std::int64_t end_of(const DeviceAxis& axis) { return axis.size * axis.stride; }

}  // namespace

std::int64_t size_of(const DeviceAxes& axes) {
  std::int64_t size = 1;
  for (const DeviceAxis& axis : axes) size *= axis.size;
  return size;
}

void append(DeviceAxes& axes, const DeviceAxes& more) { axes.insert(axes.end(), more.begin(), more.end()); }

DeviceAxes merged(const DeviceAxes& axes) {
  DeviceAxes result;
  for (const DeviceAxis& axis : axes) {
    if (axis.size == 1) continue;
    if (!result.empty() && result.back().stride == end_of(axis)) {
      result.back() = {result.back().size * axis.size, axis.stride};
    } else {
      result.push_back(axis);
    }
  }
  return result;
}

std::optional<DeviceAxes> take_outer(DeviceAxes& axes, std::int64_t size) {
  DeviceAxes taken;
  DeviceAxes rest = axes;
  std::size_t at = 0;
  for (; size > 1 && at < rest.size(); ++at) {
    DeviceAxis& axis = rest[at];
    if (size % axis.size == 0) {
      size /= axis.size;
      if (axis.size > 1) taken.push_back(axis);
    } else if (axis.size % size == 0) {
      const std::int64_t inner = axis.size / size;
      taken.push_back({size, axis.stride * inner});
      axis.size = inner;
      size = 1;
      break;
    } else {
      return std::nullopt;
    }
  }
  if (size != 1) return std::nullopt;
  rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(at));
  axes = std::move(rest);
  return taken;
}

std::optional<DeviceAxes> cut_by(const DeviceAxes& axes, const DeviceAxes& others) {
  Integers ends;
  for (const DeviceAxis& other : others) {
    if (other.size > 1) ends.insert(ends.end(), {other.stride, end_of(other)});
  }
  std::sort(ends.rbegin(), ends.rend());
  DeviceAxes result;
  for (const DeviceAxis& axis : axes) {
    DeviceAxis rest = axis;
    if (rest.size == 1) continue;
    for (const std::int64_t end : ends) {
      if (end <= rest.stride || end >= end_of(rest)) continue;
      if (end % rest.stride != 0 || end_of(rest) % end != 0) return std::nullopt;
      result.push_back({end_of(rest) / end, end});
      rest.size = end / rest.stride;
    }
    result.push_back(rest);
  }
  return result;
}

bool overlap(const DeviceAxes& a, const DeviceAxes& b) {
  const auto meets = [](const DeviceAxis& x, const DeviceAxis& y) {
    return x.size > 1 && y.size > 1 && x.stride < end_of(y) && y.stride < end_of(x);
  };
  return std::ranges::any_of(
      a, [&](const DeviceAxis& x) { return std::ranges::any_of(b, [&](const DeviceAxis& y) { return meets(x, y); }); });
}

DeviceAxes common(const DeviceAxes& axes, const DeviceAxes& others) {
  DeviceAxes parts = cut_by(axes, others).value_or(DeviceAxes{});
  std::erase_if(parts, [&](const DeviceAxis& axis) { return !overlap({axis}, others); });
  return parts;
}

ListedAxes axes_of(std::span<const std::int64_t> devices) {
  DeviceAxes inner_first;
  Integers line(devices.begin(), devices.end());
  while (line.size() > 1) {
    const std::int64_t stride = line[1] - line[0];
    std::size_t run = 2;
    while (run < line.size() && line[run] - line[run - 1] == stride) ++run;
    while (line.size() % run != 0) --run;
    bool repeats = stride > 0 && run > 1;
    for (std::size_t i = 0; repeats && i < line.size(); ++i) {
      repeats = line[i] - line[i - i % run] == static_cast<std::int64_t>(i % run) * stride;
    }
    if (!repeats) {
      std::int64_t common = 0;
      for (std::size_t i = 1; i < devices.size(); ++i) common = std::gcd(common, devices[i] - devices[0]);
      return {{{static_cast<std::int64_t>(devices.size()), std::max<std::int64_t>(1, common)}}, false};
    }
    inner_first.push_back({static_cast<std::int64_t>(run), stride});
    Integers outer;
    for (std::size_t i = 0; i < line.size(); i += run) outer.push_back(line[i]);
    line = std::move(outer);
  }
  std::ranges::reverse(inner_first);
  return {inner_first, true};
}

ArrayAxes axes_of_array(std::span<const std::int64_t> devices, std::span<const std::int64_t> dims) {
  ArrayAxes result;
  result.dims.resize(dims.size());
  auto step = static_cast<std::int64_t>(devices.size());
  Integers expected(devices.size(), devices.empty() ? 0 : devices[0]);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    step /= dims[d];
    Integers line;
    for (std::int64_t i = 0; i < dims[d]; ++i) line.push_back(devices[static_cast<std::size_t>(i * step)]);
    ListedAxes listed = axes_of(line);
    result.regular = result.regular && listed.regular;
    result.dims[d] = std::move(listed.axes);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto along = static_cast<std::size_t>(static_cast<std::int64_t>(i) / step % dims[d]);
      expected[i] += line[along] - line[0];
    }
  }
  result.regular = result.regular && std::equal(expected.begin(), expected.end(), devices.begin(), devices.end());
  return result;
}

DeviceGroup group_of(const DeviceAxes& axes) {
  DeviceAxes sorted = axes;
  std::ranges::sort(sorted, [](const DeviceAxis& a, const DeviceAxis& b) { return a.stride > b.stride; });
  sorted = merged(sorted);
  DeviceGroup group{size_of(sorted), sorted.empty() ? 1 : sorted.back().stride, sorted.size() <= 1};
  for (const DeviceAxis& axis : sorted) group.stride = std::gcd(group.stride, axis.stride);
  return group;
}

std::string group_text(std::span<const std::int64_t> devices, std::int64_t groups) {
  constexpr std::size_t kShown = 8;
  std::string text = "{";
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices.size() > kShown && i == 3) {
      text += ",...";
      i = devices.size() - 1;
    }
    text += fmt::format("{}{}", i == 0 ? "" : ",", devices[i]);
  }
  return text + fmt::format("}} x{}", groups);
}

Integers devices_of(const DeviceAxes& axes, std::int64_t most) {
  const std::int64_t size = std::min(size_of(axes), most);
  Integers devices;
  for (std::int64_t i = 0; i < size; ++i) {
    std::int64_t rest = i;
    std::int64_t device = 0;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      device += rest % axis->size * axis->stride;
      rest /= axis->size;
    }
    devices.push_back(device);
  }
  return devices;
}

namespace {

// How a quotation mark can begin and end, in a string and in a string in a string.
constexpr std::string_view kQuotes[] = {"\"", "'", "\\22", "\\\"", "\\\\\\22", "\\\\\\\""};
constexpr int kMaxNested = 32;  // tuples in tuples
constexpr std::size_t kMaxNumbers = std::size_t{1} << 24;

// "devices=[2,1,4]<=[8]": an array of devices, the tensor's dimensions first.
struct TileAssignment {
  Integers dims;
  Integers devices;  // in order; empty: counted up in `reshape`, then transposed
  Integers reshape;
  Integers transpose;
  // What the last dimensions are, which are none of the tensor.
  std::vector<DeviceAxes Sharding::*> last;
};
// What else a sharding has of devices, by its name in texts and by its number in OpSharding.Type.
struct KnownPart {
  std::string_view name;
  std::int64_t type;
  DeviceAxes Sharding::*axes;
};
constexpr KnownPart kParts[] = {
    {"replicated", 0, &Sharding::replicated}, {"manual", 4, &Sharding::manual}, {"unreduced", 6, &Sharding::unreduced}};

// A cursor over a text.
class ShardingText {
 public:
  ShardingText(const Module& module, std::string_view text) : module_(module), text_(text) {}

  const Module& module() const { return module_; }
  std::string_view rest() const { return text_.substr(at_); }
  bool done() {
    space();
    return at_ == text_.size();
  }

  // Whether `token` comes next, after spaces.
  bool sees(std::string_view token) {
    space();
    return rest().starts_with(token);
  }

  bool take(std::string_view token) {
    if (!sees(token)) return false;
    at_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    if (!take(token)) fail_expected(quote(token));
  }

  // A number up to kMaxDevices.
  std::int64_t number() {
    space();
    std::int64_t value = 0;
    const auto read = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (read.ec != std::errc{} || value < 0 || value > kMaxDevices) fail_expected("a number of devices");
    at_ = static_cast<std::size_t>(read.ptr - text_.data());
    return value;
  }

  // In double or single quotes, as they are or escaped (\22, \").
  std::string_view quoted() {
    space();
    for (const std::string_view mark : kQuotes) {
      if (!rest().starts_with(mark)) continue;
      const std::size_t begin = at_ + mark.size();
      const std::size_t end = text_.find(mark, begin);
      if (end == std::string_view::npos) fail("this quotation mark is not closed");
      at_ = end + mark.size();
      return text_.substr(begin, end - begin);
    }
    fail_expected("a name in quotes");
  }

  // Members with commas between, up to and with what closes the list.
  template <typename Member>
  void list(std::string_view close, const Member& member) {
    while (!take(close)) {
      member();
      if (!sees(close)) expect(",");
    }
  }

  // "[1,2,3]" with the brackets given.
  Integers numbers(std::string_view open, std::string_view close) {
    Integers values;
    expect(open);
    list(close, [&] {
      if (values.size() == kMaxNumbers) fail("too many devices");
      values.push_back(number());
    });
    return values;
  }

  // key=
  bool take_key(std::string_view key) {
    const bool found = take(key);
    if (found) expect("=");
    return found;
  }
  // One of these parts, by its name; null: something else comes.
  const KnownPart* take_part() {
    const auto* found = std::ranges::find_if(kParts, [&](const KnownPart& part) { return take(part.name); });
    return found == std::end(kParts) ? nullptr : found;
  }

  // Passes over all up to and with the bracket that closes the one that comes next.
  void skip_brackets() {
    space();
    int depth = 0;
    for (std::size_t i = at_; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == '{' || c == '[' || c == '(' || c == '<') ++depth;
      if ((c == '}' || c == ']' || c == ')' || c == '>') && --depth <= 0) {
        at_ = i + 1;
        return;
      }
    }
    fail("this bracket is not closed");
  }

  [[noreturn]] void fail(std::string message, std::string hint = {}) const {
    module_.fail(rest(), "sharding: " + std::move(message), std::move(hint));
  }

  [[noreturn]] void fail_expected(std::string_view what) {
    space();
    constexpr std::size_t kShown = 20;
    fail(fmt::format("expected {} and not {}", what,
                     at_ == text_.size() ? "the end" : quote(text_.substr(at_, std::min(kShown, text_.size() - at_)))));
  }

 private:
  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }

  const Module& module_;
  std::string_view text_;
  std::size_t at_ = 0;
};

constexpr std::size_t kMaxTileRank = 256;

std::int64_t device_product(const Integers& factors) {
  std::int64_t product = 1;
  for (const std::int64_t f : factors) {
    if (f < 1 || f > kMaxDevices / product) return 0;  // also of what is too large
    product *= f;
  }
  return product;
}

// The axes of every dimension of devices counted up in `reshape` and transposed; false when a dimension is no part of
// the axes.
bool counted_axes(const TileAssignment& tiles, List<DeviceAxes>& dims) {
  DeviceAxes axes(tiles.reshape.size());
  std::int64_t stride = 1;
  for (std::size_t i = tiles.reshape.size(); i-- > 0;) {
    axes[i] = {tiles.reshape[i], stride};
    stride *= tiles.reshape[i];
  }
  DeviceAxes ordered = axes;
  for (std::size_t i = 0; i < tiles.transpose.size(); ++i) {
    ordered[i] = axes[tiles.transpose[i]];
  }
  for (const std::int64_t size : tiles.dims) {
    auto taken = take_outer(ordered, size);
    if (!taken) return false;
    dims.push_back(merged(*taken));
  }
  return true;
}

bool is_permutation(Integers values, std::size_t size) {
  std::ranges::sort(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != static_cast<std::int64_t>(i)) return false;
  }
  return values.size() == size;
}

// `fail` is told what is wrong with them, and does not return.
template <typename Fail>
Sharding sharding_of(const TileAssignment& tiles, const Fail& fail) {
  Sharding sharding;
  const std::int64_t devices = device_product(tiles.dims);
  const bool counted = tiles.devices.empty();
  if (devices == 0 || tiles.dims.size() > kMaxTileRank) {
    fail("an array of devices needs extents of 1 and more, and no more than 2^32 devices");
  }
  if (tiles.last.size() > tiles.dims.size()) {
    fail(fmt::format("{} last dimensions of an array of {}", tiles.last.size(), tiles.dims.size()));
  }
  const std::int64_t listed = counted ? device_product(tiles.reshape) : static_cast<std::int64_t>(tiles.devices.size());
  if (listed != devices) fail(fmt::format("an array of {} devices is not filled with {}", devices, listed));
  if (counted && !tiles.transpose.empty() && !is_permutation(tiles.transpose, tiles.reshape.size())) {
    fail("T(…) has to name every dimension before it once");
  }
  sharding.devices = devices;
  if (counted) {
    sharding.regular = counted_axes(tiles, sharding.dims);
    if (!sharding.regular) {
      // As if the devices were not transposed.
      TileAssignment plain = tiles;
      plain.reshape = {devices};
      plain.transpose.clear();
      sharding.dims.clear();
      counted_axes(plain, sharding.dims);
    }
  } else {
    ArrayAxes axes = axes_of_array(tiles.devices, tiles.dims);
    sharding.devices = std::max(devices, *std::ranges::max_element(tiles.devices) + 1);
    sharding.regular = axes.regular;
    sharding.dims = std::move(axes.dims);
  }
  const std::size_t rank = tiles.dims.size() - tiles.last.size();
  for (std::size_t i = 0; i < tiles.last.size(); ++i) {
    append(sharding.*tiles.last[i], sharding.dims[rank + i]);
  }
  sharding.dims.resize(rank);
  return sharding;
}

// Of summands it does not matter along which axis first.
DeviceAxes in_order(DeviceAxes axes) {
  std::ranges::sort(axes, [](const DeviceAxis& a, const DeviceAxis& b) { return a.stride > b.stride; });
  return merged(axes);
}

constexpr int kMaxMeshAliases = 8;  // that lead from one to the next

// --- #sdy.sharding<@mesh, [{"x"}, {"y":(1)2, ?}p1, {}], replicated={"z"}, unreduced={"w"}>. A part "y":(1)2 of an axis
// of 8 is its second factor when the axis is written as 1 x 2 x 4. XLA writes the same in braces with single quotes.
// ---

// Whether ", device_ids" comes next.
bool sees_device_ids(ShardingText& text) {
  if (!text.sees(",")) return false;
  const std::string_view rest = text.rest().substr(1);
  return rest.substr(std::min(rest.find_first_not_of(" \n"), rest.size())).starts_with("device_ids");
}

// [1, 0] or dense<[1, 0]> : tensor<2xi64>
std::optional<Integers> device_ids(ShardingText& text) {
  text.expect(",");
  text.take_key("device_ids");
  if (text.sees("[")) return text.numbers("[", "]");
  const std::string_view rest = text.rest();
  text.skip_brackets();
  Integers devices = integers(rest.substr(0, rest.size() - text.rest().size()));
  if (text.take(":")) text.skip_brackets();
  const bool in_range =
      std::ranges::all_of(devices, [](std::int64_t device) { return device >= 0 && device < kMaxDevices; });
  // More than a hundred are printed as bytes: "0x…".
  return in_range && rest.starts_with("dense<") && !rest.starts_with("dense<\"") ? std::optional(devices)
                                                                                 : std::nullopt;
}

// ["x"=2, "y"=4], also [#stablehlo.mesh_axis<name = "x", size = 2>, …] and [{name = "x", size = 2 : i64}, …]
Mesh mesh_axes(ShardingText& text) {
  Mesh mesh;
  Integers sizes;
  text.expect("[");
  text.list("]", [&] {
    const bool braced = text.take("{");
    const bool wordy = braced || text.take("#stablehlo.mesh_axis<") || text.take("#mhlo.mesh_axis<");
    if (wordy && !text.take_key("name")) text.expect("name");
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
  });
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
  text.take_key("axes");
  Mesh mesh = mesh_axes(text);
  if (opened) text.expect(braced ? "}" : ">");
  return mesh;
}

// "x" or "x":(1)2, after whose name `info` stands before the part.
DeviceAxes axis(ShardingText& text, const Mesh& mesh, std::string_view info) {
  const std::string_view name = text.quoted();
  const auto found = std::ranges::find_if(mesh.axes, [&](const auto& a) { return a.first == name; });
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

DeviceAxes axes_in_braces(ShardingText& text, const Mesh& mesh) {
  DeviceAxes axes;
  text.expect("{");
  text.list("}", [&] { append(axes, axis(text, mesh, ":")); });
  return axes;
}

// {"x", "y", ?}p0
void dimension(ShardingText& text, const Mesh& mesh, Sharding& sharding) {
  DeviceAxes axes;
  bool open = false;
  text.expect("{");
  text.list("}", [&] {
    if (text.take("?")) {
      open = true;
      return;
    }
    const DeviceAxes more = axis(text, mesh, ":");
    if (overlap(axes, more)) text.fail("a dimension is divided over the same devices twice");
    append(axes, more);
  });
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
      text.list("]", [&] { dimension(text, mesh, sharding); });
    } else if (const KnownPart* part = text.take_part()) {
      text.expect("=");
      append(sharding.*part->axes, axes_in_braces(text, mesh));
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

List<Sharding> parse_shardy(ShardingText& text) {
  if (text.sees("mesh[")) return {body(text)};
  const auto one = [&] {
    if (!text.take("#sdy.sharding<")) text.expect("<");
    Sharding sharding = body(text);
    text.expect(">");
    return sharding;
  };
  const bool per_value = text.take("#sdy.sharding_per_value<");
  if (per_value || text.sees("[")) {
    List<Sharding> all;
    text.expect("[");
    text.list("]", [&] { all.push_back(one()); });
    if (per_value) text.expect(">");
    return all;
  }
  return {one()};
}

// --- mhlo.sharding = "\08\03\1A\02\02\01\22\02\00\01": the OpSharding message of XLA (xla_data.proto) in the wire
// format of protocol buffers, with what is no printable character escaped. Fields: 1 type, 3 dimensions and 4 devices
// of the tile assignment, 5 members of a tuple, 6 whether the last dimension is replicated, 8 kinds of the last
// dimensions, 9 extents of counted devices, 10 their transposition. ---

enum WireType : unsigned char { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
// OpSharding.Type
enum ShardingType : std::int64_t { kReplicated = 0, kMaximal = 1, kTuple = 2, kOther = 3, kManual = 4, kUnknown = 5 };

// \08 is a byte, \n a line's end, \" the mark itself.
std::string unescaped(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      bytes += text[i];
      continue;
    }
    const char c = text[++i];
    unsigned char byte = 0;
    const char* const begin = text.data() + i;
    if (i + 1 < text.size() && std::from_chars(begin, begin + 2, byte, 16).ptr == begin + 2) {
      bytes += static_cast<char>(byte);
      ++i;
    } else {
      bytes += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    }
  }
  return bytes;
}

class Message {
 public:
  Message(const Module& module, std::string_view place, std::string_view bytes)
      : module_(module), place_(place), bytes_(bytes) {}

  void append_to(List<Sharding>& found, int depth) {
    if (depth > kMaxNested) fail();
    TileAssignment tiles;
    std::int64_t type = kReplicated;
    bool last_replicated = false;
    Integers last;
    while (at_ < bytes_.size()) {
      const std::int64_t tag = varint();
      const std::int64_t number = tag >> 3;
      wire_ = static_cast<WireType>(tag & 7);
      if (number == 1) {
        type = varint();
      } else if (number == 3) {
        integers(tiles.dims);
      } else if (number == 4) {
        integers(tiles.devices);
      } else if (number == 5 && wire_ == kBytes) {
        Message(module_, place_, bytes()).append_to(found, depth + 1);
      } else if (number == 6) {
        last_replicated = varint() != 0;
      } else if (number == 8) {
        integers(last);
      } else if (number == 9) {
        integers(tiles.reshape);
      } else if (number == 10) {
        integers(tiles.transpose);
      } else {
        skip();
      }
    }
    if (type == kTuple) return;
    if (last_replicated) last = {kReplicated};
    for (const std::int64_t kind : last) {
      const auto* part = std::ranges::find(kParts, kind, &KnownPart::type);
      tiles.last.push_back(part == std::end(kParts) ? &Sharding::replicated : part->axes);
    }
    found.push_back(sharding(type, tiles));
  }

 private:
  Sharding sharding(std::int64_t type, const TileAssignment& tiles) const {
    Sharding result;
    if (type == kMaximal) {
      result.form = Sharding::Form::maximal;
      result.device = tiles.devices.empty() ? 0 : tiles.devices[0];
    } else if (type == kManual) {
      result.form = Sharding::Form::manual;
    } else if (type == kUnknown) {
      result.form = Sharding::Form::unknown;
    } else if (type == kOther) {
      result = sharding_of(tiles, [&](const std::string& problem) { module_.fail(place_, "sharding: " + problem); });
    } else if (type != kReplicated) {
      fail();
    }
    return result;
  }

  [[noreturn]] void fail() const {
    module_.fail(place_, "sharding: neither a text in braces nor an OpSharding message");
  }

  std::int64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) fail();
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if ((byte & 0x80U) == 0) {
        if (value > static_cast<std::uint64_t>(kMaxDevices)) fail();
        return static_cast<std::int64_t>(value);
      }
    }
    fail();
  }

  std::string_view bytes() {
    const auto size = static_cast<std::size_t>(varint());
    if (size > bytes_.size() - at_) fail();
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }

  // One, or several in a row.
  void integers(Integers& into) {
    if (wire_ == kVarint) {
      into.push_back(varint());
      return;
    }
    if (wire_ != kBytes) fail();
    Message inside(module_, place_, bytes());
    while (inside.at_ < inside.bytes_.size()) into.push_back(inside.varint());
  }

  void skip() {
    const std::size_t fixed = wire_ == kFixed64 ? 8 : wire_ == kFixed32 ? 4 : 0;
    if (wire_ == kVarint) {
      varint();
    } else if (wire_ == kBytes) {
      bytes();
    } else if (fixed == 0 || fixed > bytes_.size() - at_) {
      fail();
    }
    at_ += fixed;
  }

  const Module& module_;
  std::string_view place_;
  std::string_view bytes_;
  std::size_t at_ = 0;
  WireType wire_ = kVarint;
};

List<Sharding> parse_serialized(const Module& module, std::string_view text) {
  const std::string bytes = unescaped(text);
  List<Sharding> found;
  if (bytes.empty()) return {{.form = Sharding::Form::unknown}};
  Message(module, text, bytes).append_to(found, 0);
  return found;
}

// --- the text of HLO ---

// metadata={…}, shard_as 1: of no concern here. False when something else comes.
bool pass_over_remark(ShardingText& text) {
  if (text.take("metadata=")) {
    text.skip_brackets();
    return true;
  }
  if (!text.take("shard_as") && !text.take("shard_like")) return false;
  text.number();
  return true;
}

// After "devices=": [4,1,2]<=[2,4]T(1,0) last_tile_dims={manual, replicated}
Sharding tiles(ShardingText& text) {
  TileAssignment assignment;
  assignment.dims = text.numbers("[", "]");
  if (text.take("<=")) {
    assignment.reshape = text.numbers("[", "]");
    if (text.take("T")) assignment.transpose = text.numbers("(", ")");
  } else {
    do {
      assignment.devices.push_back(text.number());
    } while (text.take(","));
  }
  while (!text.sees("}")) {
    if (text.take("last_tile_dim_replicate")) {
      assignment.last = {&Sharding::replicated};
    } else if (text.take_key("last_tile_dims")) {
      text.expect("{");
      text.list("}", [&] {
        const KnownPart* part = text.take_part();
        if (part == nullptr) text.fail_expected("replicated, manual or unreduced");
        assignment.last.push_back(part->axes);
      });
    } else if (!pass_over_remark(text)) {
      text.fail_expected("'}' after the devices");
    }
  }
  return sharding_of(assignment, [&](const std::string& problem) { text.fail(problem); });
}

void append_hlo(ShardingText& text, List<Sharding>& found, int depth) {
  if (depth > kMaxNested) text.fail("tuples of shardings are nested too deep");
  text.expect("{");
  if (text.sees("{") || text.sees("}")) {
    text.list("}", [&] { append_hlo(text, found, depth + 1); });
    return;
  }
  Sharding sharding;
  if (text.take("devices=")) {
    sharding = tiles(text);
  } else if (text.sees("mesh")) {
    for (Sharding& s : parse_shardy(text)) found.push_back(std::move(s));
    text.expect("}");
    return;
  } else if (text.take("maximal")) {
    sharding.form = Sharding::Form::maximal;
    text.expect("device=");
    sharding.device = text.number();
  } else if (text.take("manual")) {
    sharding.form = Sharding::Form::manual;
  } else if (text.take("unknown")) {
    sharding.form = Sharding::Form::unknown;
  } else if (!text.take("replicated")) {
    text.fail_expected("devices=, replicated, maximal or manual");
  }
  while (pass_over_remark(text)) {
  }
  text.expect("}");
  found.push_back(std::move(sharding));
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

bool Sharding::divides() const {
  return std::ranges::any_of(dims, [](const DeviceAxes& axes) { return size_of(axes) > 1; });
}

bool Sharding::same_parts(const Sharding& other) const {
  if (form != other.form) return false;
  if (form == Form::maximal) return device == other.device;
  if (in_order(unreduced) != in_order(other.unreduced)) return false;
  for (std::size_t i = 0; i < std::max(dims.size(), other.dims.size()); ++i) {
    const DeviceAxes mine = i < dims.size() ? merged(dims[i]) : DeviceAxes{};
    const DeviceAxes theirs = i < other.dims.size() ? merged(other.dims[i]) : DeviceAxes{};
    if (mine != theirs) return false;
  }
  return true;
}

List<Sharding> parse_shardings(const Module& module, std::string_view text) {
  text = trim(text);
  const std::string_view inside = trim(unquoted(text));
  List<Sharding> found;
  if (inside.starts_with('{')) {
    ShardingText cursor(module, inside);
    append_hlo(cursor, found, 0);
    if (!cursor.done()) cursor.fail_expected("the end of the sharding");
    return found;
  }
  if (inside.starts_with('#') || inside.starts_with('<') || inside.starts_with('[')) {
    const auto alias = module.aliases.find(inside);
    const bool named = alias != module.aliases.end() && alias->second != inside;
    ShardingText cursor(module, named ? alias->second : inside);
    found = parse_shardy(cursor);
    if (!named && !cursor.done()) cursor.fail_expected("the end of the sharding");
    return found;
  }
  if (text.starts_with('"')) return parse_serialized(module, inside);
  module.fail(text, fmt::format("{} is no sharding", quote(text.substr(0, 40))),
              "\"{devices=[2,4]<=[8]}\", \"{replicated}\" or #sdy.sharding<@mesh, [{\"x\"}, {}]>");
}

Sharding parse_sharding(const Module& module, std::string_view text) {
  List<Sharding> all = parse_shardings(module, text);
  if (all.size() == 1) return std::move(all.front());
  if (all.empty()) return {.form = Sharding::Form::unknown};
  module.fail(text, fmt::format("{} shardings for one value", all.size()));
}

Integers local_dims(const Sharding& sharding, const Integers& dims) {
  Integers local = dims;
  if (sharding.form != Sharding::Form::tiled) return local;
  for (std::size_t i = 0; i < local.size() && i < sharding.dims.size(); ++i) {
    const std::int64_t parts = size_of(sharding.dims[i]);
    if (local[i] > 0) local[i] = local[i] / parts + (local[i] % parts > 0 ? 1 : 0);
  }
  return local;
}

}  // namespace llmperf::program
