// `llmperf map-collective`: how long one collective takes, and by which algorithm.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/values.h"
#include "report/reports.h"
#include "result/collective.h"

namespace llmperf::cli {
namespace {

constexpr std::int64_t kMaxRanks = 1 << 20;

struct MapCollectiveFlags {
  std::string hardware;
  std::string op;
  std::string sizes;
  std::string ranks;
  std::string stride = "1";
  std::string devices_per_node;
  std::string algorithm;
  bool sweep = false;
  OutputFlags output;
};

// "ring pass" is one word on the command line.
std::string flag_name(std::string_view text) {
  std::string name(text);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

// The value of an enumeration whose names go on to `last`, from `first`.
template <class Enum>
Enum enum_value(std::string_view flag, const std::string& text, Enum first, Enum last) {
  std::vector<std::string> names;
  for (int i = static_cast<int>(first); i <= static_cast<int>(last); ++i) {
    names.push_back(flag_name(name(static_cast<Enum>(i))));
    if (names.back() == text) return static_cast<Enum>(i);
  }
  throw Error::bad_input(fmt::format("{}: there is no {}", flag, quote(text)), name_hint(text, names));
}

std::vector<Bytes> size_values(const MapCollectiveFlags& flags) {
  std::vector<Bytes> sizes;
  if (flags.sweep) {
    for (double size = kKiB; size <= kGiB; size *= 4) sizes.emplace_back(size);
    return sizes;
  }
  for (const std::string& text : list_value("--size", flags.sizes)) {
    sizes.push_back(bytes_value("--size", text));
    if (sizes.back() < Bytes{1}) throw Error::bad_input(fmt::format("--size: {} is nothing to exchange", quote(text)));
  }
  return sizes;
}

int map_collective_action(const MapCollectiveFlags& flags, const Context& context) {
  if (flags.sizes.empty() != flags.sweep) {
    throw Error::bad_input("give either --size or --sweep", "--size 64MiB; --sweep goes from 1 KiB to 1 GiB");
  }
  report::CollectiveStudy study;
  study.collective.kind =
      enum_value("--op", flags.op, graph::CollectiveKind::all_reduce, graph::CollectiveKind::broadcast);
  study.collective.ranks = int_value("--ranks", flags.ranks, 1, kMaxRanks);
  study.collective.stride = int_value("--stride", flags.stride, 1, kMaxRanks);
  study.sizes = size_values(flags);
  if (!flags.algorithm.empty()) {
    study.algorithm = enum_value("--algorithm", flags.algorithm, cost::Algorithm::ring, cost::Algorithm::direct);
  }
  std::optional<std::int64_t> devices_per_node;
  if (!flags.devices_per_node.empty()) {
    devices_per_node = int_value("--devices-per-node", flags.devices_per_node, 1, kMaxRanks);
    study.node_given = true;
  }
  const hardware::Device device = hardware::load_device(flags.hardware);
  study.device = &device;
  study.cluster = cost::make_cluster(device, devices_per_node);
  Output output(flags.output, context);
  output.write(report::collective_report(study));
  return kExitDone;
}

std::vector<std::string> algorithms() {
  std::vector<std::string> names;
  for (int i = static_cast<int>(cost::Algorithm::ring); i <= static_cast<int>(cost::Algorithm::direct); ++i) {
    names.push_back(flag_name(name(static_cast<cost::Algorithm>(i))));
  }
  return names;
}

}  // namespace

void add_map_collective(Command& root) {
  Command& command =
      root.add_command("map-collective", "time of one collective by algorithm, with the fastest and why");
  auto flags = std::make_shared<MapCollectiveFlags>();
  command.add_field("hw", flags->hardware).required();
  command
      .add("--op", flags->op, "OP", "all-reduce, all-gather, reduce-scatter, all-to-all, send, ring-pass or broadcast")
      .required()
      .offers(Values::Sort::words, "all-reduce all-gather reduce-scatter all-to-all send ring-pass broadcast");
  command.add("--size", flags->sizes, "BYTES", "one size or a comma-separated list: 64MiB");
  command.add("--sweep", flags->sweep, "sizes from 1 KiB to 1 GiB");
  command.add("--ranks", flags->ranks, "N", "devices that take part").required();
  command.add("--stride", flags->stride, "N", "distance between their numbers; nodes have consecutive ones");
  command.add("--devices-per-node", flags->devices_per_node, "N", "other than the hardware file says");
  command.add("--algorithm", flags->algorithm, "NAME", "take this one instead of the fastest")
      .offers(Values::Sort::words, algorithms);
  add_output_flags(command, flags->output);
  command.action = [flags](const Context& context) { return map_collective_action(*flags, context); };
}

}  // namespace llmperf::cli
