// Devices and the reader of their files. It is strict: unknown keys, figures without provenance and figures that only a
// slip of a unit explains are errors; all problems of a file are reported at once.
#include "hardware/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/maths.h"
#include "base/number.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "descriptor/reader.h"
#include "hardware/names.h"

namespace llmperf::hardware {
namespace {

using descriptor::IntRange;
using descriptor::Node;
using descriptor::Problems;
using descriptor::Reader;

// No device comes near these, nor to any rate as small as the least ones.
constexpr FlopsPerSecond kLeastRate{1};
constexpr BytesPerSecond kLeastBandwidth{1};
constexpr FlopsPerSecond kMaxRate{1e20};
constexpr BytesPerSecond kMaxBandwidth{1e15};
constexpr Bytes kMaxCapacity{1e18};
constexpr Seconds kMaxLatency{1};
constexpr std::size_t kMaxPeaks = 64;
constexpr std::size_t kMaxLevels = 16;
constexpr std::size_t kMaxPrices = 64;
constexpr double kMinAmount = 1e-6;
constexpr double kMaxAmount = 1e9;

std::string_view limit_text(FlopsPerSecond) { return "1e20 OP/s"; }
std::string_view limit_text(BytesPerSecond) { return "1e15 B/s"; }
std::string_view limit_text(Bytes) { return "1e18 B"; }
std::string_view limit_text(Seconds) { return "1 s"; }

// A value read from `key`, reported when it is beyond `max` or below `least`.
template <class Value>
std::optional<Value> bounded(Reader& reader, std::string_view key, std::optional<Value> value, Value max,
                             Value least = {}) {
  if (value && *value > Value{} && *value < least) {
    reader.problem(key, fmt::format("{} is less than 1 a second", quote(key)), "check the unit");
  }
  if (value > max) {
    reader.problem(key, fmt::format("{} is more than {}", quote(key), limit_text(max)), "check the unit");
  }
  return value;
}

// The value, or a harmless one after reporting that it is missing.
template <class Value>
Value required(Reader& reader, std::string_view key, std::optional<Value> value) {
  if (!value && reader.node().kind == Node::Kind::mapping) {
    reader.problem(key, fmt::format("missing key {} in {}", quote(key), reader.what()));
  }
  return value.value_or(Value{1});
}

std::optional<BytesPerSecond> read_bandwidth(Reader& reader, std::string_view key) {
  return bounded(reader, key, reader.optional_bandwidth(key), kMaxBandwidth, kLeastBandwidth);
}

Seconds read_latency(Reader& reader, std::string_view key) {
  return required(reader, key, bounded(reader, key, reader.optional_seconds(key), kMaxLatency));
}

template <class Enum>
Enum read_enum(Reader& reader, std::string_view key, std::span<const std::string_view> names,
               std::optional<Enum> fallback = std::nullopt) {
  const auto index = fallback ? std::optional(static_cast<std::size_t>(*fallback)) : std::nullopt;
  return static_cast<Enum>(reader.choice(key, names, index));
}

// A mapping of its own, where there is one.
template <class Part, class Read>
std::optional<Part> read_part(Reader& reader, std::string_view key, Read&& read) {
  std::optional<Reader> mapping = reader.optional_mapping(key);
  if (!mapping) return std::nullopt;
  Part part;
  read(*mapping, part);
  mapping->finish();
  return part;
}

Provenance read_provenance(Reader& reader) { return read_enum<Provenance>(reader, "provenance", kProvenanceNames); }

// `latency` with a provenance of its own: links are sold by their bandwidth, so the two rarely have one source.
template <class Links>
void read_link_latency(Reader& reader, Links& links) {
  const bool given = reader.find("latency") != nullptr;
  if (given) links.latency = read_latency(reader, "latency");
  if (given || reader.find("latency_provenance") != nullptr) {
    links.latency_provenance = read_enum<Provenance>(reader, "latency_provenance", kProvenanceNames);
  }
  if (!given && reader.has("latency_provenance")) {
    reader.problem("latency_provenance", "'latency_provenance' without 'latency'");
  }
}

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit kFrequencyUnits[] = {{"Hz", 1}, {"kHz", 1e3}, {"MHz", 1e6}, {"GHz", 1e9}};
constexpr Unit kPowerUnits[] = {{"W", 1}, {"kW", 1e3}};

// The number in front of one of the units, with at most one space between them.
std::optional<double> parse_with_unit(std::string_view text, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    std::string_view number = text.substr(0, text.size() - unit.name.size());
    if (number.ends_with(' ')) number.remove_suffix(1);
    if (const std::optional<double> value = parse_double(number)) return *value * unit.factor;
  }
  return std::nullopt;
}

std::optional<double> read_with_unit(Reader& reader, std::string_view key, std::span<const Unit> units, double max,
                                     std::string_view example) {
  const Node* node = reader.find(key);
  if (node == nullptr) return std::nullopt;
  const auto value = node->kind == Node::Kind::scalar ? parse_with_unit(node->scalar, units) : std::nullopt;
  if (value && *value > 0 && *value <= max) return value;
  const std::string found = node->kind == Node::Kind::scalar ? ", not " + quote(node->scalar) : "";
  reader.problem(key, fmt::format("{} must be a positive number with a unit, such as {}{}", quote(key), example, found),
                 value > max ? "check the unit" : "");
  return std::nullopt;
}

std::string describe(const Peak& peak) {
  return fmt::format("{} {}{}", name(peak.engine), name(peak.dtype),
                     peak.accumulate ? fmt::format(" with {} accumulation", name(*peak.accumulate)) : "");
}

Peak read_peak(Reader& reader) {
  Peak peak;
  peak.engine = read_enum<Engine>(reader, "engine", kEngineNames);
  peak.dtype = read_enum<Dtype>(reader, "dtype", dtype_names());
  if (reader.find("accumulate") != nullptr) peak.accumulate = read_enum<Dtype>(reader, "accumulate", dtype_names());
  peak.rate =
      required(reader, "rate", bounded(reader, "rate", reader.optional_flops_rate("rate"), kMaxRate, kLeastRate));
  if (const auto passes = reader.optional_int("passes", IntRange{1, kMostPasses})) {
    peak.passes = static_cast<int>(*passes);
    if (peak.engine != Engine::matrix) reader.problem("passes", "only a matrix unit goes over its operands in passes");
  }
  peak.provenance = read_provenance(reader);
  reader.finish();
  return peak;
}

std::vector<Peak> read_peaks(Reader& device) {
  std::vector<Reader> items = device.optional_mappings("peaks");
  if (items.size() > kMaxPeaks) {
    device.problem("peaks", fmt::format("more than {} peaks", kMaxPeaks));
    return {};
  }
  std::vector<Peak> peaks;
  for (Reader& item : items) {
    const bool whole = item.has("engine") && item.has("dtype");
    const Peak peak = read_peak(item);
    const auto same = std::ranges::find_if(peaks, [&peak](const Peak& other) {
      return other.engine == peak.engine && other.dtype == peak.dtype && other.accumulate == peak.accumulate;
    });
    if (whole && same != peaks.end()) {
      const Node& first = items[static_cast<std::size_t>(same - peaks.begin())].node();
      item.problems().add(item.node(), fmt::format("second peak for {}", describe(peak)),
                          fmt::format("the first is on line {}", first.line));
    }
    peaks.push_back(peak);
  }
  if (!device.has("peaks")) {
    device.problem("peaks", "missing key 'peaks' in device");
  } else if (std::ranges::none_of(
                 peaks, [](const Peak& peak) { return peak.engine == Engine::vector && peak.dtype == Dtype::fp32; })) {
    device.problem("peaks",
                   "no peak for vector fp32, the rate of every vector operation whose type has none of its own",
                   "add {engine: vector, dtype: fp32, rate: …, provenance: …}");
  }
  return peaks;
}

// `tiles`: of the array, or 0.
MemoryLevel read_level(Reader& reader, std::int64_t tiles) {
  MemoryLevel level;
  level.name = reader.require_string("name");
  level.capacity = bounded(reader, "capacity", reader.optional_bytes("capacity"), kMaxCapacity);
  level.board = bounded(reader, "board", reader.optional_bytes("board"), kMaxCapacity);
  if (level.board && (!level.capacity || *level.capacity > *level.board)) {
    reader.problem("board", "'board' without a 'capacity' that it has room for");
  }
  level.capacity_note = reader.string_or("capacity_note", "");
  level.bandwidth = read_bandwidth(reader, "bandwidth");
  if (const auto each = read_bandwidth(reader, "bandwidth_per_tile")) {
    if (tiles == 0) reader.problem("bandwidth_per_tile", "'bandwidth_per_tile' of a device without tiles");
    if (level.bandwidth) reader.problem("bandwidth_per_tile", "'bandwidth' and 'bandwidth_per_tile' say the same");
    level.bandwidth = *each * static_cast<double>(std::max<std::int64_t>(1, tiles));
  }
  // Memory without chips for check bits (GDDR) keeps them among the data, and sends them over the same wires.
  level.ecc_traffic = reader.optional_double("ecc_traffic", 0, 0.5).value_or(0);
  if (level.bandwidth) level.bandwidth = *level.bandwidth * (1 - level.ecc_traffic);
  level.per_tile = reader.bool_or("per_tile", false);
  level.provenance = read_provenance(reader);
  level.bandwidth_provenance =
      read_enum<Provenance>(reader, "bandwidth_provenance", kProvenanceNames, level.provenance);
  if (level.ecc_traffic > 0) level.bandwidth_provenance = Provenance::assumed;
  if (!level.bandwidth && reader.has("bandwidth_provenance")) {
    reader.problem("bandwidth_provenance", "'bandwidth_provenance' without 'bandwidth'");
  }
  reader.finish();
  return level;
}

// The kind, or nothing when it was reported as missing or unknown: what depends on it is not checked then.
std::optional<DeviceKind> read_kind(Reader& device) {
  const DeviceKind kind = read_enum<DeviceKind>(device, "kind", kDeviceKindNames);
  const Node* node = device.find("kind");
  return node != nullptr && node->scalar == name(kind) ? std::optional(kind) : std::nullopt;
}

std::vector<MemoryLevel> read_memory(Reader& device, std::optional<DeviceKind> kind, std::int64_t tiles) {
  std::vector<Reader> items = device.optional_mappings("memory");
  if (!device.has("memory")) device.problem("memory", "missing key 'memory' in device");
  if (items.empty() || items.size() > kMaxLevels) {
    if (device.has("memory")) {
      device.problem("memory", fmt::format("'memory' must list 1 to {} levels, near to far", kMaxLevels));
    }
    return {};
  }
  std::vector<MemoryLevel> levels;
  for (Reader& item : items) {
    levels.push_back(read_level(item, tiles));
    if (levels.back().per_tile && kind && kind != DeviceKind::tile_array) {
      item.problem("per_tile", "only a device of kind tile_array has memory per tile");
    }
  }
  Reader& last = items.back();
  for (const std::string_view key : {"capacity", "bandwidth"}) {
    const bool stated = last.has(key) || (key == "bandwidth" && last.has("bandwidth_per_tile"));
    if (!stated) last.problem(key, fmt::format("the last memory level holds the weights: it needs a {}", key));
  }
  if (levels.back().per_tile) last.problem("per_tile", "the last memory level is shared by the whole device");
  for (std::size_t i = 0; i + 1 < levels.size(); ++i) {
    if (device.problems().empty() && levels[i].capacity > levels.back().capacity) {
      items[i].problem(
          "capacity",
          fmt::format("{} is larger than {}, the last level", quote(levels[i].name), quote(levels.back().name)),
          "list the levels near to far");
    }
  }
  return levels;
}

// Of the devices of a node, or of `joins_several`, which then says how many.
std::optional<Interconnect> read_interconnect(Reader& device, std::string_view key, bool joins_several = false) {
  return read_part<Interconnect>(device, key, [&](Reader& reader, Interconnect& net) {
    net.name = reader.require_string("name");
    if (joins_several) net.devices = reader.require_int("devices", IntRange{2, 1'000'000});
    net.topology = read_enum<Topology>(reader, "topology", kTopologyNames);
    net.per_direction = read_bandwidth(reader, "per_direction");
    net.per_link = read_bandwidth(reader, "per_link");
    net.links = reader.optional_int("links", IntRange{1, 1'000'000});
    net.reduces = reader.bool_or("reduces", false);
    if (net.reduces && net.topology != Topology::fully_switched) {
      reader.problem("reduces", "links without a switch add nothing up", "topology: fully_switched");
    }
    net.direct = reader.optional_int("direct", IntRange{1, 1'000}).value_or(0);
    if (net.direct > 0 && net.topology != Topology::pcie_tree) {
      reader.problem("direct", "only PCIe has a host between devices", "topology: pcie_tree");
    }
    net.provenance = read_provenance(reader);
    read_link_latency(reader, net);
    if (net.topology != Topology::none) required(reader, "per_direction", net.per_direction);
    if (net.per_direction && net.per_link && net.links && device.problems().empty()) {
      const BytesPerSecond together = *net.per_link * static_cast<double>(*net.links);
      const double ratio = together / *net.per_direction;
      if (ratio < 0.99 || ratio > 1.01) {
        reader.problem("per_direction",
                       fmt::format("{} links of {} are {}, not {}", *net.links, format_bandwidth(*net.per_link),
                                   format_bandwidth(together), format_bandwidth(*net.per_direction)));
      }
    }
  });
}

// Out of a node, or to its host.
template <class Link>
std::optional<Link> read_link(Reader& device, std::string_view key) {
  return read_part<Link>(device, key, [](Reader& reader, Link& link) {
    link.name = reader.require_string("name");
    link.per_direction = required(reader, "per_direction", read_bandwidth(reader, "per_direction"));
    link.provenance = read_provenance(reader);
    if constexpr (requires { link.latency; }) read_link_latency(reader, link);
  });
}

// "4x4" into the two sides, each at most `most`; nothing after reporting what is wrong.
std::optional<TilePlace> read_sides(Reader& reader, std::string_view key, const std::string& text, TilePlace most) {
  if (text.empty()) return std::nullopt;
  const std::optional<TilePlace> sides = parse_sides(text);
  if (sides && sides->x <= most.x && sides->y <= most.y) return sides;
  reader.problem(key, sides && key == "grid"
                          ? fmt::format("'grid' of {} is more than the mesh of {}x{}", text, most.x, most.y)
                          : fmt::format("{} must be two sides, such as 4x4, not {}", quote(key), quote(text)));
  return std::nullopt;
}

void read_mesh(Reader& reader, TileArray& array) {
  constexpr TilePlace kMostSides{10'000, 10'000};
  const std::string text = reader.require_string("mesh");
  const std::optional<TilePlace> sides = read_sides(reader, "mesh", text, kMostSides);
  if (!sides) return;
  array.mesh_x = sides->x;
  array.mesh_y = sides->y;
  if (sides->x * sides->y != array.tiles && reader.has("tiles")) {
    reader.problem("mesh", fmt::format("a mesh of {} has {} tiles, not {}", text, sides->x * sides->y, array.tiles));
  }
  const std::optional<std::string> grid = reader.optional_string("grid");
  if (grid) array.grid = read_sides(reader, "grid", *grid, *sides);
}

// "32x32x16", or one number for all three.
std::array<std::int64_t, 3> read_granule(Reader& reader, std::array<std::int64_t, 3> usual) {
  constexpr std::int64_t kMost = 1024;
  const std::optional<std::string> text = reader.optional_string("granule");
  if (!text) return usual;
  std::vector<std::string_view> parts = split(*text, 'x');
  if (parts.size() == 1) parts.resize(3, parts.front());
  std::array<std::int64_t, 3> granule = usual;
  for (std::size_t i = 0; i < granule.size() && parts.size() == granule.size(); ++i) {
    const std::optional<std::int64_t> value = parse_int(parts[i]);
    if (value && *value >= 1 && *value <= kMost) {
      granule[i] = *value;
    } else {
      parts.clear();
    }
  }
  if (parts.size() != granule.size()) {
    reader.problem("granule", fmt::format("'granule' must be rows, columns and depth up to {}, such as 8x16x16, not {}",
                                          kMost, quote(*text)));
  }
  return granule;
}

// Places are written as "3x0": column and row from 0.
std::optional<DramChannels> read_channels(Reader& array, const TileArray& of) {
  return read_part<DramChannels>(array, "channels", [&](Reader& reader, DramChannels& channels) {
    channels.count = reader.require_int("count", IntRange{1, 4096});
    channels.page = reader.int_or("page", 0, IntRange{1, 1 << 30});
    channels.requests = reader.optional_double("requests", 1, 1e15);
    if (channels.requests && channels.page == 0) {
      reader.problem("requests", "'requests' without the 'page', in elements, that each is of");
    }
    const std::vector<std::string> places = reader.optional_strings("places");
    for (const std::string& text : places) {
      const std::vector<std::string_view> at = split(text, 'x');
      const std::optional<std::int64_t> x = parse_int(at.front());
      const std::optional<std::int64_t> y = at.size() == 2 ? parse_int(at.back()) : std::nullopt;
      if (!x || !y || *x < 0 || *y < 0 || *x >= of.mesh_x || *y >= of.mesh_y) {
        reader.problem("places", fmt::format("{} is no tile of a mesh of {}x{}", quote(text), of.mesh_x, of.mesh_y),
                       "column and row from 0, such as 0x3");
      } else {
        channels.places.push_back({*x, *y});
      }
    }
    if (!places.empty() && static_cast<std::int64_t>(places.size()) != channels.count) {
      reader.problem("places", fmt::format("{} places of {} channels", places.size(), channels.count),
                     "one for each channel; several may be at one place");
    }
  });
}

std::optional<TileArray> read_tile_array(Reader& device, std::optional<DeviceKind> kind) {
  const bool given = device.has("tile_array");
  if (kind == DeviceKind::tile_array && !given) {
    device.problem("tile_array", "missing key 'tile_array': the device is of kind tile_array");
  }
  if (given && kind && kind != DeviceKind::tile_array) {
    device.problem("tile_array", fmt::format("'tile_array' in a device of kind {}", name(*kind)));
  }
  return read_part<TileArray>(device, "tile_array", [](Reader& reader, TileArray& array) {
    array.tiles = reader.require_int("tiles", IntRange{1, 1'000'000});
    read_mesh(reader, array);
    array.noc_link = required(reader, "noc_link", read_bandwidth(reader, "noc_link"));
    array.hop_latency = read_latency(reader, "hop_latency");
    array.dram_latency = read_latency(reader, "dram_latency");
    array.rings = reader.bool_or("rings", false);
    array.multicast = read_bandwidth(reader, "multicast");
    if (array.multicast && *array.multicast > array.noc_link) {
      reader.problem("multicast", "'multicast' is more than a link carries");
    }
    array.tile_dram = read_bandwidth(reader, "tile_dram");
    array.matrix_feed = read_bandwidth(reader, "matrix_feed");
    array.granule = read_granule(reader, array.granule);
    array.shared_issue = reader.bool_or("shared_issue", false);
    array.launch = bounded(reader, "launch", reader.optional_seconds("launch"), kMaxLatency).value_or(Seconds{});
    array.channels = read_channels(reader, array);
    array.provenance = read_provenance(reader);
  });
}

Price read_price(Reader& reader) {
  Price price;
  price.kind = read_enum<Offer>(reader, "kind", kOfferNames);
  price.amount = reader.require_double("amount", kMinAmount, kMaxAmount);
  price.currency = reader.require_string("currency");
  if (!price.currency.empty() && !is_currency(price.currency)) {
    reader.problem("currency", fmt::format("'currency' must be three capital letters, not {}", quote(price.currency)),
                   "USD");
  }
  price.source = reader.require_string("source");
  price.date = reader.string_or("date", "");
  if (!price.date.empty() && !is_date(price.date)) {
    reader.problem("date", fmt::format("'date' must be a year, a month or a day, not {}", quote(price.date)),
                   "2026-03 or 2026-03-31");
  }
  reader.finish();
  return price;
}

// All of one currency: there are no exchange rates.
std::vector<Price> read_prices(Reader& device) {
  std::vector<Reader> items = device.optional_mappings("prices");
  if (items.size() > kMaxPrices) {
    device.problem("prices", fmt::format("more than {} prices", kMaxPrices));
    return {};
  }
  std::vector<Price> prices;
  for (Reader& item : items) {
    prices.push_back(read_price(item));
    if (item.has("currency") && prices.back().currency != prices.front().currency) {
      item.problem("currency",
                   fmt::format("a price in {} beside one in {}", prices.back().currency, prices.front().currency),
                   "there are no exchange rates: leave one of them out");
    }
  }
  return prices;
}

std::optional<PowerShares> read_power_shares(Reader& device, const Device& of) {
  return read_part<PowerShares>(device, "power_shares", [&](Reader& reader, PowerShares& shares) {
    if (!of.power_w) device.problem("power_shares", "'power_shares' without the 'power' that they are shares of");
    shares.idle = reader.require_double("idle", 0, 1);
    shares.memory = reader.require_double("memory", 0, 10);
    shares.matrix = reader.require_double("matrix", 0, 10);
    shares.provenance = read_provenance(reader);
    shares.source = reader.require_string("source");
  });
}

// ---- Variants: a file with `like` is about another device but for what it says. Names, prices and what was measured
// of that very device are its own; `memory` may be a mapping, of what the last level has otherwise.

// The entries of `own`, and those of `base` that it lacks; but nothing of where a figure is from that `own` replaces.
Node completed(Node own, const Node& base, std::string_view never) {
  const bool capacity = own.find("capacity") != nullptr;
  const bool bandwidth = own.find("bandwidth") != nullptr;
  const std::vector<std::string_view> left = words(never);
  for (const Node::Entry& entry : base.entries) {
    const bool of_capacity = entry.key == "board" || entry.key == "capacity_note" || entry.key == "provenance";
    const bool replaced = (capacity && of_capacity) || (bandwidth && entry.key == "bandwidth_provenance");
    if (replaced || own.find(entry.key) || std::ranges::count(left, entry.key) > 0) continue;
    own.entries.push_back(entry);
  }
  return own;
}

Node as_variant(const Node& own, const Node& base) {
  Node result = completed(own, base, "aliases title source notes prices power_shares measured_clock");
  for (Node::Entry& entry : result.entries) {
    const Node* levels = entry.key == "memory" ? base.find("memory") : nullptr;
    if (levels == nullptr || entry.value.kind != Node::Kind::mapping) continue;
    Node list = *levels;
    list.items.back() = completed(std::move(entry.value), list.items.back(), "");
    entry.value = std::move(list);
  }
  return result;
}

// What `document` is a variant of, as text and read; nothing of a device that stands alone.
std::optional<std::pair<Node, Device>> base_of(const descriptor::Document& document) {
  const Node* like = document.root.find("like");
  if (like == nullptr) return std::nullopt;
  const std::string& name = like->scalar;
  Problems problems(document.file);
  if (name.empty() || descriptor::is_path(name) || descriptor::is_inline(name)) {
    problems.add(*like, "'like' must be the name of a device");
    problems.throw_if_any();
  }
  const descriptor::Document base = descriptor::load(descriptor::Kind::device, name);
  if (base.root.find("like")) problems.add(*like, fmt::format("{} is itself like another device", name));
  problems.throw_if_any();
  return std::pair(base.root, parse_device(base));
}

// Rates of another number of cores, or at another clock.
void scale_peaks(Device& device, double ratio) {
  if (ratio == 1) return;
  for (Peak& peak : device.peaks) {
    peak.rate = peak.rate * ratio;
    if (peak.provenance != Provenance::assumed) peak.provenance = Provenance::derived;
  }
}

// That type's figure; with several, the one that accumulates in fp32, which is what inference kernels use.
const Peak* find_exact(const std::vector<Peak>& peaks, Engine engine, Dtype dtype) {
  const Peak* found = nullptr;
  for (const Peak& peak : peaks) {
    if (peak.engine != engine || peak.dtype != dtype) continue;
    if (peak.accumulate == Dtype::fp32) return &peak;
    if (found == nullptr) found = &peak;
  }
  return found;
}

}  // namespace

bool is_currency(std::string_view text) {
  return text.size() == 3 && std::ranges::all_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
}

// "2026", "2026-03" or "2026-03-31".
bool is_date(std::string_view text) {
  constexpr std::string_view kPattern = "dddd-dd-dd";
  if (text.size() != 4 && text.size() != 7 && text.size() != kPattern.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kPattern[i] == 'd' ? !digit : text[i] != '-') return false;
  }
  const auto between = [&](std::size_t at, int most) {
    if (text.size() < at + 2) return true;
    const int value = (text[at] - '0') * 10 + (text[at + 1] - '0');
    return value >= 1 && value <= most;
  };
  return between(5, 12) && between(8, 31);
}

std::optional<TilePlace> parse_sides(std::string_view text) {
  const std::vector<std::string_view> sides = split(text, 'x');
  const std::optional<std::int64_t> x = parse_int(sides.front());
  const std::optional<std::int64_t> y = sides.size() == 2 ? parse_int(sides.back()) : std::nullopt;
  return x && y && *x >= 1 && *y >= 1 ? std::optional(TilePlace{*x, *y}) : std::nullopt;
}

Device parse_device(const descriptor::Document& document) {
  const auto base = base_of(document);
  const std::optional<Node> variant = base ? std::optional(as_variant(document.root, base->first)) : std::nullopt;
  const Node& root = variant ? *variant : document.root;
  Problems problems(document.file);
  Reader reader(root, problems, "device");
  Device device;
  reader.ignore("like");
  device.name = reader.require_string("name");
  device.title = reader.string_or("title", device.name);
  reader.optional_strings("aliases");  // for those who look for the file (src/descriptor/catalog.cpp)
  device.vendor = reader.require_string("vendor");
  device.family = reader.require_string("family");
  const std::optional<DeviceKind> kind = read_kind(reader);
  device.kind = kind.value_or(device.kind);
  device.source = reader.string_or("source", "");
  device.notes = reader.string_or("notes", "");
  device.peaks = read_peaks(reader);
  device.tile_array = read_tile_array(reader, kind);
  device.memory = read_memory(reader, kind, device.tile_array ? device.tile_array->tiles : 0);
  device.package = read_interconnect(reader, "package", true);
  device.interconnect = read_interconnect(reader, "interconnect");
  device.supernode = read_interconnect(reader, "supernode", true);
  device.network = read_link<Network>(reader, "network");
  device.host_link = read_link<HostLink>(reader, "host_link");
  device.devices_per_node = reader.int_or("devices_per_node", 1, IntRange{1, 1024});
  const std::int64_t node = device.devices_per_node;
  if (device.package &&
      (!device.interconnect || node % device.package->devices != 0 || node == device.package->devices)) {
    reader.problem("package", fmt::format("a node of {} that an interconnect joins is no multiple of a package of {}",
                                          node, device.package->devices));
  }
  if (device.supernode && (!device.interconnect || device.supernode->topology != Topology::fully_switched ||
                           device.supernode->devices % node != 0 || device.supernode->devices == node)) {
    reader.problem("supernode", fmt::format("a supernode of {} is no fully_switched multiple of a node of {} that an "
                                            "interconnect joins",
                                            device.supernode->devices, node));
  }
  device.cores = reader.optional_int("cores", IntRange{1, 10'000'000});
  device.core_bandwidth = read_bandwidth(reader, "core_bandwidth");
  device.staging = read_bandwidth(reader, "staging");
  device.numa_nodes = reader.int_or("numa_nodes", 1, IntRange{1, 1024});
  device.clock_hz = read_with_unit(reader, "clock", kFrequencyUnits, 1e12, "2520 MHz");
  device.measured_clock_hz = read_with_unit(reader, "measured_clock", kFrequencyUnits, 1e12, "2700 MHz");
  if (device.measured_clock_hz && !device.clock_hz) {
    reader.problem("measured_clock", "'measured_clock' without 'clock', which the peaks are given at");
  }
  device.power_w = read_with_unit(reader, "power", kPowerUnits, 1e6, "450 W");
  device.power_shares = read_power_shares(reader, device);
  device.prices = read_prices(reader);
  reader.finish();
  problems.throw_if_any();
  if (base) {
    const Device& from = base->second;
    const bool own = document.root.find("peaks") != nullptr;
    const auto by = [&](const auto& now, const auto& then) {
      if (!own && now && then) scale_peaks(device, static_cast<double>(*now) / static_cast<double>(*then));
    };
    by(device.cores, from.cores);
    by(device.clock_hz, from.clock_hz);
    device.source += fmt::format("{}the rest as {}", device.source.empty() ? "" : "; ", from.name);
  }
  return device;
}

const MemoryLevel* Device::last_level_cache() const {
  if (memory.size() < 2) return nullptr;
  const MemoryLevel& level = memory[memory.size() - 2];
  return level.per_tile ? nullptr : &level;
}

const Peak* Device::find_peak(Engine engine, Dtype dtype) const {
  const Peak* exact = find_exact(peaks, engine, dtype);
  if (exact != nullptr || engine == Engine::matrix) return exact;
  return find_exact(peaks, engine, Dtype::fp32);
}

const Peak* Device::fastest_peak(Dtype dtype) const {
  const Peak* found = nullptr;
  for (const Peak& peak : peaks) {
    if (peak.engine != Engine::matrix || peak.dtype != dtype) continue;
    if (found == nullptr || peak.rate > found->rate) found = &peak;
  }
  return found;
}

Device with_threads(const Device& cpu, std::optional<std::int64_t> threads, std::optional<std::int64_t> numa_nodes) {
  if (numa_nodes && *numa_nodes > cpu.numa_nodes) {
    throw Error::bad_input(
        fmt::format("`numa`: {} has {} NUMA node{}", cpu.name, cpu.numa_nodes, cpu.numa_nodes == 1 ? "" : "s"),
        "as many as its file says (numa_nodes), or fewer");
  }
  const std::int64_t nodes = numa_nodes.value_or(cpu.numa_nodes);
  const std::int64_t cores = cpu.cores.value_or(0) * nodes / cpu.numa_nodes;
  if (threads && *threads > cores) {
    const char* of_nodes = nodes < cpu.numa_nodes ? " in these nodes" : "";
    throw Error::bad_input(cpu.cores ? fmt::format("`cpu-threads`: {} has {} cores{}", cpu.name, cores, of_nodes)
                                     : fmt::format("`cpu-threads`: the file of {} does not say its cores", cpu.name),
                           "threads beyond the cores share them, and are not modelled");
  }
  Device part = cpu;
  MemoryLevel& memory = part.memory.back();
  const double share = static_cast<double>(nodes) / static_cast<double>(cpu.numa_nodes);
  if (memory.bandwidth && share < 1) {
    memory.bandwidth = *memory.bandwidth * share;
    memory.bandwidth_provenance = Provenance::derived;
  }
  part.numa_nodes = nodes;
  const double used = threads ? static_cast<double>(*threads) / static_cast<double>(*cpu.cores) : share;
  for (Peak& peak : part.peaks) {
    if (used < 1) peak.rate = peak.rate * used, peak.provenance = Provenance::derived;
  }
  if (cpu.cores) part.cores = threads.value_or(cores);
  if (threads && memory.bandwidth) {
    const BytesPerSecond drawn = cpu.core_bandwidth.value_or(kCoreBandwidth) * static_cast<double>(*threads);
    if (drawn < *memory.bandwidth) {
      memory.bandwidth = drawn;
      memory.bandwidth_provenance = cpu.core_bandwidth ? Provenance::derived : Provenance::assumed;
    }
  }
  return part;
}

// Power beyond what a board draws at rest goes into switching, f V^2, and the voltage goes with the clock: the clock is
// the cube root of the share of that power, and at a fixed voltage the square root at the most. Laptops are sold with
// limits and their clocks: RTX 3060 0.84 at 80 of 115 W and 0.75 at 60, RTX 4070 0.74 at 60 of 115 W (the formula:
// 0.84, 0.71, 0.71). RTX 3090 in prompts: 0.80 at 180 of 350 W (club-3090 #104), 0.68 at 200 and 0.90 at 250 W
// (llmgarage.ai), with its memory's clock unmoved (ninfer-3090 #72); at 150 W three quarters are gone, so that two
// fifths are the end.
Device with_power_limit(Device device, double watts) {
  constexpr double kAtRest = 0.25;  // of the board's power, as of an A100 (0.29)
  const double rest = device.power_shares ? device.power_shares->idle : kAtRest;
  const double least = std::max(0.4, rest + 0.1);
  if (!device.power_w) {
    throw Error::bad_input(fmt::format("`power-limit`: the file of {} does not say its power", device.name));
  }
  const double board = *device.power_w;
  if (!(watts < board) || watts < least * board) {
    throw Error::bad_input(fmt::format("`power-limit` of {:.6g} W {}", watts,
                                       watts < board ? fmt::format("leaves {} hardly any clock", device.name)
                                                     : fmt::format("limits nothing of {}", device.name)),
                           fmt::format("between {:.6g} and {:.6g} W", least * board, board));
  }
  const double share = (watts / board - rest) / (1 - rest);
  const double clock = maths::pow(share, 1.0 / 3);
  device.power_limit = PowerLimit{board, clock, maths::pow(share, -1.0 / 6) - 1};
  device.power_w = watts;
  scale_peaks(device, clock);
  if (device.clock_hz) *device.clock_hz *= clock;
  if (device.measured_clock_hz) *device.measured_clock_hz *= clock;
  return device;
}

std::optional<double> parse_watts(std::string_view text) {
  const std::optional<double> plain = parse_double(text);
  const std::optional<double> watts = plain ? plain : parse_with_unit(text, kPowerUnits);
  return watts && *watts > 0 ? watts : std::nullopt;
}

std::string_view name(Provenance provenance) { return kProvenanceNames[static_cast<std::size_t>(provenance)]; }
std::string_view name(DeviceKind kind) { return kDeviceKindNames[static_cast<std::size_t>(kind)]; }
std::string_view name(Topology topology) { return kTopologyNames[static_cast<std::size_t>(topology)]; }
std::string_view name(Offer offer) { return kOfferNames[static_cast<std::size_t>(offer)]; }
std::string_view name(Engine engine) { return kEngineNames[static_cast<std::size_t>(engine)]; }

Device load_device(const std::string& name_or_path) {
  return parse_device(descriptor::load(descriptor::Kind::device, name_or_path));
}

}  // namespace llmperf::hardware
