#include "graph/hlo/sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "graph/hlo/sharding_text.h"

namespace llmperf::graph::hlo {
namespace {

constexpr int kMaxNested = 32;  // tuples in tuples
constexpr std::size_t kMaxRank = 256;

std::int64_t product(const std::vector<std::int64_t>& factors) {
  std::int64_t product = 1;
  for (const std::int64_t f : factors) {
    if (f < 1 || f > kMaxDevices / product) return 0;  // also of what is too large
    product *= f;
  }
  return product;
}

// The axes of every dimension of devices counted up in `reshape` and transposed; false when a dimension is no part of
// the axes.
bool counted_axes(const TileAssignment& tiles, std::vector<DeviceAxes>& dims) {
  DeviceAxes axes(tiles.reshape.size());
  std::int64_t stride = 1;
  for (std::size_t i = tiles.reshape.size(); i-- > 0;) {
    axes[i] = {tiles.reshape[i], stride};
    stride *= tiles.reshape[i];
  }
  DeviceAxes ordered = axes;
  for (std::size_t i = 0; i < tiles.transpose.size(); ++i) {
    ordered[i] = axes[static_cast<std::size_t>(tiles.transpose[i])];
  }
  for (const std::int64_t size : tiles.dims) {
    auto taken = take_outer(ordered, size);
    if (!taken) return false;
    dims.push_back(merged(*taken));
  }
  return true;
}

bool is_permutation(std::vector<std::int64_t> values, std::size_t size) {
  std::sort(values.begin(), values.end());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != static_cast<std::int64_t>(i)) return false;
  }
  return values.size() == size;
}

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

TileAssignment::Last last_kind(ShardingText& text) {
  if (text.take("replicated")) return TileAssignment::Last::replicated;
  if (text.take("manual")) return TileAssignment::Last::manual;
  if (text.take("unreduced")) return TileAssignment::Last::unreduced;
  text.fail_expected("replicated, manual or unreduced");
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
      assignment.last = {TileAssignment::Last::replicated};
    } else if (text.take("last_tile_dims")) {
      text.expect("=");
      text.expect("{");
      do {
        assignment.last.push_back(last_kind(text));
      } while (text.take(","));
      text.expect("}");
    } else if (!pass_over_remark(text)) {
      text.fail_expected("'}' after the devices");
    }
  }
  std::string problem;
  Sharding sharding = sharding_of(assignment, problem);
  if (!problem.empty()) text.fail(problem);
  return sharding;
}

void append_hlo(ShardingText& text, std::vector<Sharding>& found, int depth) {
  if (depth > kMaxNested) text.fail("tuples of shardings are nested too deep");
  text.expect("{");
  if (text.take("}")) return;  // an empty tuple
  if (text.sees("{")) {
    do {
      append_hlo(text, found, depth + 1);
    } while (text.take(","));
    text.expect("}");
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

// Of summands it does not matter along which axis first.
DeviceAxes in_order(DeviceAxes axes) {
  std::sort(axes.begin(), axes.end(), [](const DeviceAxis& a, const DeviceAxis& b) { return a.stride > b.stride; });
  return merged(axes);
}

std::string_view without_space(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\n");
  return text.substr(std::min(begin, text.size()));
}

}  // namespace

void fail_at(const Module& module, std::string_view at, std::string message, std::string hint) {
  SourcePosition where;
  if (module.source) {
    const std::string_view all = module.source->text();
    const std::less_equal<const char*> before;
    where.file = module.source->name();
    if (at.data() != nullptr && before(all.data(), at.data()) && before(at.data(), all.data() + all.size())) {
      where = module.source->position(static_cast<std::size_t>(at.data() - all.data()));
    }
  }
  throw Error(ErrorKind::bad_input, {{where, std::move(message), std::move(hint)}});
}

Sharding sharding_of(const TileAssignment& tiles, std::string& problem) {
  Sharding sharding;
  const std::int64_t devices = product(tiles.dims);
  const bool counted = tiles.devices.empty();
  if (devices == 0 || tiles.dims.size() > kMaxRank) {
    problem = "an array of devices needs extents of 1 and more, and no more than 2^32 devices";
  } else if (tiles.last.size() > tiles.dims.size()) {
    problem = fmt::format("{} last dimensions of an array of {}", tiles.last.size(), tiles.dims.size());
  } else if (counted && product(tiles.reshape) != devices) {
    problem = fmt::format("an array of {} devices is not filled with {}", devices, product(tiles.reshape));
  } else if (counted && !tiles.transpose.empty() && !is_permutation(tiles.transpose, tiles.reshape.size())) {
    problem = "T(…) has to name every dimension before it once";
  } else if (!counted && static_cast<std::int64_t>(tiles.devices.size()) != devices) {
    problem = fmt::format("an array of {} devices is not filled with {}", devices, tiles.devices.size());
  }
  if (!problem.empty()) return sharding;
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
    sharding.devices = std::max(devices, *std::max_element(tiles.devices.begin(), tiles.devices.end()) + 1);
    sharding.regular = axes.regular;
    sharding.dims = std::move(axes.dims);
  }
  const std::size_t rank = tiles.dims.size() - tiles.last.size();
  for (std::size_t i = 0; i < tiles.last.size(); ++i) {
    DeviceAxes& into = tiles.last[i] == TileAssignment::Last::manual      ? sharding.manual
                       : tiles.last[i] == TileAssignment::Last::unreduced ? sharding.unreduced
                                                                          : sharding.replicated;
    const DeviceAxes& axes = sharding.dims[rank + i];
    into.insert(into.end(), axes.begin(), axes.end());
  }
  sharding.dims.resize(rank);
  return sharding;
}

bool Sharding::divides() const {
  return std::any_of(dims.begin(), dims.end(), [](const DeviceAxes& axes) { return size_of(axes) > 1; });
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

std::vector<Sharding> parse_shardings(const Module& module, std::string_view text) {
  text = without_space(text);
  const std::string_view inside = without_space(unquoted(text));
  std::vector<Sharding> found;
  if (inside.starts_with('{')) {
    ShardingText cursor(module, inside);
    append_hlo(cursor, found, 0);
    if (!cursor.done()) cursor.fail_expected("the end of the sharding");
    return found;
  }
  if (inside.starts_with('#') || inside.starts_with('<') || inside.starts_with('[')) {
    if (const auto alias = module.aliases.find(inside); alias != module.aliases.end() && alias->second != inside) {
      ShardingText cursor(module, without_space(alias->second));
      return parse_shardy(cursor);
    }
    ShardingText cursor(module, inside);
    found = parse_shardy(cursor);
    if (!cursor.done()) cursor.fail_expected("the end of the sharding");
    return found;
  }
  if (text.starts_with('"')) return parse_serialized(module, inside);
  fail_at(module, text, fmt::format("{} is no sharding", quote(text.substr(0, 40))),
          "\"{devices=[2,4]<=[8]}\", \"{replicated}\" or #sdy.sharding<@mesh, [{\"x\"}, {}]>");
}

Sharding parse_sharding(const Module& module, std::string_view text) {
  std::vector<Sharding> all = parse_shardings(module, text);
  if (all.size() == 1) return std::move(all.front());
  if (all.empty()) return {.form = Sharding::Form::unknown};
  fail_at(module, text, fmt::format("{} shardings for one value", all.size()));
}

std::vector<std::int64_t> local_dims(const Sharding& sharding, const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> local = dims;
  if (sharding.form != Sharding::Form::tiled) return local;
  for (std::size_t i = 0; i < local.size() && i < sharding.dims.size(); ++i) {
    const std::int64_t parts = size_of(sharding.dims[i]);
    if (local[i] > 0) local[i] = local[i] / parts + (local[i] % parts > 0 ? 1 : 0);
  }
  return local;
}

}  // namespace llmperf::graph::hlo
