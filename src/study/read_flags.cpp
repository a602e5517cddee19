#include <algorithm>
#include <array>

#include "base/text.h"
#include "study/read.h"

namespace llmperf::study {
namespace {

using descriptor::Node;

bool is_flag_name(const std::string& text) {
  return !text.empty() && text.front() != '-' &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
}

// A comma-separated value; nothing when an item is no text.
std::optional<std::string> list_of(const Node& node) {
  std::string joined;
  for (const Node& item : node.items) {
    if (item.kind != Node::Kind::scalar || item.scalar.empty()) return std::nullopt;
    joined += (joined.empty() ? "" : ",") + item.scalar;
  }
  return joined.empty() ? std::nullopt : std::optional(joined);
}

std::optional<Flag> read_flag(const Node::Entry& entry, descriptor::Problems& problems) {
  const Node& value = entry.value;
  Flag flag{{entry.key, entry.line, entry.column}, Flag::Kind::value, {}};
  const bool plain = value.kind == Node::Kind::scalar && !value.quoted;
  if (plain && (value.scalar == "true" || value.scalar == "false")) {
    flag.kind = value.scalar == "true" ? Flag::Kind::on : Flag::Kind::off;
    return flag;
  }
  std::optional<std::string> text;
  if (value.kind == Node::Kind::scalar && !value.scalar.empty()) text = value.scalar;
  if (value.kind == Node::Kind::sequence) text = list_of(value);
  if (!text) {
    problems.add(entry.line, entry.column,
                 "flag " + quote(entry.key) + " needs a value, a list of values, true or false");
    return std::nullopt;
  }
  flag.value = *text;
  return flag;
}

}  // namespace

std::vector<Flag> read_flags(const Node& node, descriptor::Problems& problems) {
  constexpr std::array<std::string_view, 4> kOutput = {"format", "json", "export", "lang"};
  const descriptor::Reader mapping(node, problems, "flags");  // reports what is none
  std::vector<Flag> flags;
  for (const Node::Entry& entry : node.entries) {
    if (std::find(kOutput.begin(), kOutput.end(), entry.key) != kOutput.end()) {
      problems.add(entry.line, entry.column, "flag " + quote(entry.key) + " says where a result goes",
                   "a section's files are its key 'write'");
    } else if (!is_flag_name(entry.key)) {
      problems.add(entry.line, entry.column, quote(entry.key) + " is no name of a flag",
                   "write it as on the command line without the dashes: batch, gpu-layers");
    } else if (std::optional<Flag> flag = read_flag(entry, problems)) {
      flags.push_back(std::move(*flag));
    }
  }
  return flags;
}

}  // namespace llmperf::study
