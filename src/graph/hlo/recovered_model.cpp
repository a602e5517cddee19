#include "graph/hlo/recovered_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "graph/hlo/recovered_writer.h"

namespace llmperf::graph::hlo {

void YamlLines::put(std::string_view key, std::string_view value) { lines_ += fmt::format("{}: {}\n", key, value); }
void YamlLines::put(std::string_view key, std::int64_t value) { lines_ += fmt::format("{}: {}\n", key, value); }
void YamlLines::text(std::string_view key, std::string_view value) { put(key, yaml_text(value)); }

std::string yaml_text(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

std::string model_name(const Program& program) {
  std::string_view file = program.module->source->name();
  file = file.substr(file.rfind('/') + 1);
  if (const std::size_t dot = file.rfind('.'); dot != std::string_view::npos && dot > 0) file = file.substr(0, dot);
  std::string name;
  for (const char c : file) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
    name += plain ? c : '-';
  }
  return name.empty() ? "program" : name;
}

std::string model_source(const Program& program) {
  return "transformer blocks of the program " + quote(program.module->source->name());
}

std::string findings(const Blocks& blocks) {
  std::vector<std::string> parts;
  for (const TransformerBlock& block : blocks.blocks) {
    std::vector<std::string> kinds;
    for (const AttentionShape& a : block.attentions) kinds.push_back(fmt::format("{} attention", name(a.kind)));
    if (block.feed_forward) kinds.push_back(block.feed_forward->experts > 0 ? "experts" : "feed-forward");
    parts.push_back(fmt::format("{} x block of {}", block.layers, join(kinds, ", ")));
  }
  std::map<Role, std::size_t> outside;
  for (const RoleNodes& nodes : blocks.outside) outside[nodes.role] += nodes.nodes.size();
  std::vector<std::string> roles;
  for (const auto& [role, count] : outside) roles.push_back(fmt::format("{} {}", count, name(role)));
  if (!roles.empty()) parts.push_back("outside of blocks " + join(roles, ", "));
  return parts.empty() ? "no matrix products" : join(parts, "; ");
}

void reject(const Program& program, std::string message, const Blocks& blocks) {
  throw Error(ErrorKind::bad_input, {{{program.module->source->name(), 0, 0},
                                      std::move(message) + "; found: " + findings(blocks),
                                      "without --emit-model the program is analysed as it is"}});
}

std::string recovered_model(const Program& program, const Blocks& blocks) {
  bool cross = false;
  bool frames = false;
  for (const TransformerBlock& block : blocks.blocks) {
    for (const AttentionShape& a : block.attentions) {
      cross = cross || a.kind == AttentionKind::cross;
      frames = frames || a.kind == AttentionKind::spatial || a.kind == AttentionKind::temporal;
    }
  }
  if (blocks.blocks.empty()) {
    reject(program, "no transformer block to write as a model: no product is the softmax of another one's result",
           blocks);
  }
  if (frames) return recovered_video(program, blocks);
  if (cross) {
    reject(program, "blocks with cross attention on another stream are no decoder that a descriptor can describe",
           blocks);
  }
  return recovered_decoder(program, blocks);
}

}  // namespace llmperf::graph::hlo
