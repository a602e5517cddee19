#include "report/program_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/number.h"
#include "base/text.h"

namespace llmperf::report {

using graph::hlo::LoweredOp;
using graph::hlo::Program;

std::string shortened(std::string_view text, std::size_t width) {
  if (text.size() <= width) return std::string(text);
  const std::size_t half = (width - 1) / 2;
  return std::string(text.substr(0, width - 1 - half)) + "…" + std::string(text.substr(text.size() - half));
}

int line_of(const Program& program, const LoweredOp& op) { return program.node(op.nodes.back()).instruction->line; }

std::string op_name(const Program& program, const LoweredOp& op) {
  const graph::hlo::Node& last = program.node(op.nodes.back());
  if (last.inserted && last.inserted->kind) return std::string(graph::name(*last.inserted->kind));
  if (op.copy) return std::string(op.op.name);
  if (op.nodes.size() == 1) {
    const std::string name(last.instruction->name);
    return last.instruction->op() == "custom_call"
               ? fmt::format("{} @{}", name, graph::hlo::target_of(*last.instruction))
               : name;
  }
  // The kinds in it, the most frequent first.
  std::map<std::string_view, int> kinds;
  for (const auto node : op.nodes) ++kinds[program.node(node).instruction->op()];
  std::vector<std::pair<std::string_view, int>> sorted(kinds.begin(), kinds.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> names;
  for (const auto& [kind, count] : sorted) names.emplace_back(kind);
  constexpr std::size_t kMost = 4;
  const bool more = names.size() > kMost;
  if (more) names.resize(kMost);
  return fmt::format("fusion of {} ({}{})", op.nodes.size(), join(names, ", "), more ? " …" : "");
}

std::string result_text(const Program& program, const LoweredOp& op) {
  std::vector<std::string> types;
  for (const auto result : program.node(op.nodes.back()).results) types.push_back(text_of(program.type(result)));
  return join(types, ", ");
}

std::string role_text(const ProgramStudy& study, const LoweredOp& op) {
  const auto node = static_cast<std::size_t>(op.nodes.back());
  if (op.copy || node >= study.blocks->roles.size()) return {};
  const graph::hlo::Role role = study.blocks->roles[node];
  return role == graph::hlo::Role::other ? std::string() : std::string(graph::hlo::name(role));
}

std::vector<std::string> all_notes(const ProgramStudy& study) {
  std::vector<std::string> notes = study.program->notes;
  std::int64_t transfers = 0;
  for (const auto& node : study.program->nodes) {
    transfers += node.traits.op_class == graph::hlo::OpClass::transfer ? node.count : 0;
  }
  if (transfers > 0) {
    notes.push_back(fmt::format("{} sends, receives, feeds and calls of the host take no time here", transfers));
  }
  const auto irregular = std::any_of(
      study.program->nodes.begin(), study.program->nodes.end(),
      [](const graph::hlo::Node& node) { return node.inserted && node.inserted->kind && !node.inserted->regular; });
  if (irregular)
    notes.emplace_back("devices that exchange are not evenly spaced: where they lie in nodes is approximate");
  const auto uneven = std::any_of(study.estimate->lowered.ops.begin(), study.estimate->lowered.ops.end(),
                                  [](const LoweredOp& op) { return op.uneven; });
  if (uneven) notes.emplace_back("groups of a collective differ in size: the largest is counted");
  const std::vector<graph::hlo::TensorId>& copied = study.estimate->lowered.copied_arguments;
  if (!copied.empty()) {
    Bytes bytes;
    std::vector<std::string> names;
    for (const auto argument : copied) {
      bytes += study.program->type(argument).bytes();
      names.push_back(fmt::format("%{}", study.program->tensor(argument).name));
    }
    constexpr std::size_t kMost = 8;
    const bool more = names.size() > kMost;
    if (more) names.resize(kMost);
    notes.push_back(fmt::format("changed, not donated and so copied first ({}): {}{}", format_bytes(bytes),
                                join(names, ", "), more ? " …" : ""));
  }
  notes.insert(notes.end(), study.blocks->notes.begin(), study.blocks->notes.end());
  notes.insert(notes.end(), study.setup->notes.begin(), study.setup->notes.end());
  return notes;
}

}  // namespace llmperf::report
