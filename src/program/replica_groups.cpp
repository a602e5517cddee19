#include "program/replica_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "program/sharding.h"

namespace llmperf::program {
namespace {

using Rows = std::vector<Integers>;

// What the numbers in a group are.
enum class Names : unsigned char {
  replicas,                 // in each partition on its own
  replicas_and_partitions,  // replicas, all partitions of each
  partitions,               // in each replica on its own
  devices
};

std::int64_t channel(const Instruction& i) {
  for (const std::string_view key : {"channel_handle", "channel_id"}) {
    const auto text = i.find(key);
    if (!text) continue;
    const auto handle = field(*text, "handle");
    const Integers numbers = integers(handle ? *handle : *text);
    if (!numbers.empty()) return numbers[0];
  }
  return 0;
}

bool use_global_device_ids(const Instruction& i) {
  const auto text = i.find("use_global_device_ids");
  return text && *text != "false";
}

Names names_of(const Instruction& i) {
  const std::string_view op = i.op();
  const bool sums_or_gathers = op == "all_reduce" || op == "all_gather" || op == "reduce_scatter";
  if (use_global_device_ids(i)) return Names::devices;
  if (channel(i) <= 0) return Names::replicas;
  return sums_or_gathers ? Names::replicas_and_partitions : Names::partitions;
}

void check(const Module& module, const Instruction& i, const Rows& rows) {
  std::unordered_set<std::int64_t> seen;
  for (const auto& row : rows) {
    for (const std::int64_t device : row) {
      if (device < 0 || device >= kMaxDevices) module.fail(i, fmt::format("there is no device {}", device));
      if (!seen.insert(device).second) module.fail(i, fmt::format("device {} is in two groups", device));
    }
  }
}

std::int64_t largest(const Rows& rows) {
  std::int64_t largest = -1;
  for (const auto& row : rows) {
    for (const std::int64_t n : row) largest = std::max(largest, n);
  }
  return largest;
}

// Sizes and distances of groups of replicas, partitions or devices, and the same as devices. Numbers that are too large
// for what they should name are numbers of devices: many programs do not say how many replicas and partitions they
// have.
ReplicaGroups from_rows(const Rows& rows, Names names, const ModuleDevices& of) {
  ReplicaGroups result;
  result.groups = static_cast<std::int64_t>(rows.size());
  Integers group = *std::ranges::max_element(rows, [](const auto& a, const auto& b) { return a.size() < b.size(); });
  std::int64_t common = 0;
  for (Integers row : rows) {
    result.uneven = result.uneven || row.size() != group.size();
    std::ranges::sort(row);
    for (std::size_t i = 1; i < row.size(); ++i) common = std::gcd(common, row[i] - row[i - 1]);
  }
  result.ranks = static_cast<std::int64_t>(group.size());
  result.stride = std::max<std::int64_t>(1, common);
  result.devices = largest(rows) + 1;
  const std::int64_t limit = names == Names::partitions ? of.partitions : of.replicas;
  if (names == Names::devices || result.devices > limit) {
    result.members = rows;
  } else if (names == Names::partitions) {
    result.groups *= of.replicas;
    result.devices += (of.replicas - 1) * of.partitions;
  } else {
    for (std::int64_t& replica : group) replica *= of.partitions;
    result.devices *= of.partitions;
    if (names == Names::replicas) {
      result.stride *= of.partitions;
      result.groups *= of.partitions;
    } else if (of.partitions > 1) {
      result.stride = 1;
      result.ranks *= of.partitions;
      constexpr std::size_t kMost = 1 << 10;  // of a text that is shortened anyway
      for (const std::int64_t first : std::exchange(group, {})) {
        for (std::int64_t p = 0; p < of.partitions && group.size() < kMost; ++p) group.push_back(first + p);
      }
    }
  }
  result.text = group_text(group, result.groups);
  return result;
}

ReplicaGroups from_axes(const DeviceAxes& axes, std::int64_t devices) {
  const DeviceGroup group = group_of(axes);
  ReplicaGroups result;
  result.ranks = group.ranks;
  result.stride = group.stride;
  result.groups = std::max<std::int64_t>(1, devices / group.ranks);
  result.devices = devices;
  constexpr std::int64_t kMost = 1 << 16;
  const Integers first = devices_of(axes, kMost);
  result.text = group_text(first, result.groups);
  if (!group.regular) result.members = {first};
  return result;
}

ReplicaGroups permutation(const Module& module, const Instruction& i, const Rows& pairs) {
  ReplicaGroups result;
  std::unordered_set<std::int64_t> sources;
  std::unordered_set<std::int64_t> targets;
  for (const auto& pair : pairs) {
    if (pair.size() != 2) module.fail(i, "source_target_pairs are pairs of devices");
    for (const std::int64_t device : pair) {
      if (device < 0 || device >= kMaxDevices) module.fail(i, fmt::format("there is no device {}", device));
      result.devices = std::max(result.devices, device + 1);
    }
    if (!sources.insert(pair[0]).second) module.fail(i, fmt::format("device {} sends twice", pair[0]));
    if (!targets.insert(pair[1]).second) module.fail(i, fmt::format("device {} receives twice", pair[1]));
    result.pairs.emplace_back(pair[0], pair[1]);
    if (pair[0] != pair[1]) result.ranks = 2;
  }
  constexpr std::size_t kShown = 4;
  for (std::size_t p = 0; p < std::min(result.pairs.size(), kShown); ++p) {
    result.text += fmt::format("{}{}->{}", p == 0 ? "" : ", ", result.pairs[p].first, result.pairs[p].second);
  }
  if (result.pairs.size() > kShown) result.text += ", ...";
  return result;
}

[[noreturn]] void fail_too_few(const Module& module, const Instruction& i, std::int64_t named, std::int64_t devices) {
  module.fail(i, fmt::format("this exchange names device {}, and there are {}", named - 1, devices),
              fmt::format("`devices` {}", named));
}

}  // namespace

std::int64_t ReplicaGroups::placed_stride(std::int64_t per_node) const {
  if (!pairs.empty()) {
    const bool leaves =
        std::ranges::any_of(pairs, [&](const auto& p) { return p.first / per_node != p.second / per_node; });
    return leaves ? per_node : 1;
  }
  std::int64_t most = 1;
  bool spans = false;
  std::unordered_map<std::int64_t, std::int64_t> in_node;
  for (const auto& group : members) {
    in_node.clear();
    for (const std::int64_t device : group) most = std::max(most, ++in_node[device / per_node]);
    spans = spans || in_node.size() > 1;
  }
  return spans ? std::max(stride, per_node / most) : stride;
}

ModuleDevices module_devices(const Module& module) {
  ModuleDevices found;
  for (const Attribute& attribute : module.attributes) {
    const bool replicas = attribute.key == "mhlo.num_replicas";
    if (!replicas && attribute.key != "mhlo.num_partitions") continue;
    const Integers value = integers(attribute.text);
    if (value.empty() || value[0] < 1 || value[0] > kMaxDevices) {
      module.fail(attribute.text, fmt::format("{} is no number of devices", attribute.text));
    }
    (replicas ? found.replicas : found.partitions) = value[0];
    found.stated = true;
  }
  if (found.replicas > kMaxDevices / found.partitions) throw Error::bad_input("more than 2^32 devices");
  return found;
}

ReplicaGroups replica_groups(const Module& module, const Instruction& i, std::int64_t devices) {
  const ModuleDevices of = module_devices(module);
  const Names names = names_of(i);
  ReplicaGroups result;
  if (const auto text = i.find("source_target_pairs")) {
    Rows rows = integer_rows(*text);
    if (rows.size() == 1 && rows[0].empty()) rows.clear();
    const std::int64_t partitions = of.partitions;
    if (names == Names::replicas && partitions > 1 && largest(rows) < of.replicas) {
      for (auto& row : rows) {
        for (std::int64_t& replica : row) replica *= partitions;
      }
    }
    result = permutation(module, i, rows);
  } else {
    const auto groups = i.find("replica_groups");
    if (groups && groups->find("mesh_axes") != std::string_view::npos) {
      const auto mesh_text = field(*groups, "mesh") ? field(*groups, "mesh") : field(*groups, "mesh_name");
      if (!mesh_text) module.fail(i, "replica groups along axes need a mesh");
      const Mesh mesh = parse_mesh(module, *mesh_text);
      const DeviceAxes axes = parse_axis_list(module, mesh, field(*groups, "axes").value_or(std::string_view{}));
      result = from_axes(axes, mesh.devices);
    } else {
      Rows rows = groups ? integer_rows(*groups) : Rows{};
      for (auto& row : rows) std::erase(row, -1);  // fills up short groups
      std::erase_if(rows, [](const auto& row) { return row.empty(); });
      check(module, i, rows);
      const bool all_replicas = names == Names::replicas && of.replicas > 1;
      const std::int64_t all = std::max<std::int64_t>(1, devices);
      if (!rows.empty()) {
        result = from_rows(rows, names, of);
      } else if (all_replicas) {
        result = from_axes({{of.replicas, of.partitions}}, of.total());
      } else {
        result = from_axes({{all, 1}}, all);
      }
    }
  }
  if (result.devices > devices) fail_too_few(module, i, result.devices, devices);
  return result;
}

std::int64_t device_count(const Program& program, std::optional<std::int64_t> given) {
  const Module& module = *program.module;
  const ModuleDevices of = module_devices(module);
  std::int64_t named = 1;
  const Instruction* by = nullptr;
  for (const Node& node : program.nodes) {
    const Instruction* i = node.instruction;
    if (node.traits.op_class != OpClass::collective || node.inserted || i == nullptr || i->dialect() == "sdy") continue;
    const std::int64_t devices = replica_groups(module, *i, kMaxDevices).devices;
    if (devices == kMaxDevices || devices <= named) continue;  // all there are
    named = devices;
    by = i;
  }
  if (given && by != nullptr && named > *given) fail_too_few(module, *by, named, *given);
  if (given) return *given;
  if (of.stated && of.total() >= named) return of.total();
  return named;
}

}  // namespace llmperf::program
