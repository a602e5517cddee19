// A program in text and what it unfolds to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "program/flatten.h"
#include "program/refusal.h"

namespace llmperf::program {

struct Flat {
  explicit Flat(std::string text, const FlattenOptions& options = {})
      : module(parse_text("t.mlir", std::move(text))), program(flatten(module, options)) {}
  Flat(const Flat&) = delete;  // the program points to the module

  // Executions of all ops of that name, "tanh".
  std::int64_t count(std::string_view op) const {
    std::int64_t sum = 0;
    for (const Node& node : program.nodes) {
      if (node.instruction->op() == op) sum += node.count;
    }
    return sum;
  }
  // The only node of that name.
  const Node& node(std::string_view op) const {
    const Node* found = nullptr;
    for (const Node& node : program.nodes) {
      if (node.instruction->op() == op) found = &node;
    }
    if (found == nullptr) throw Error::failed("no such op in the program");
    return *found;
  }
  const Type& result(std::string_view op) const { return program.type(node(op).results.at(0)); }

  Module module;
  Program program;
};

// What flattening it is refused with.
inline std::string refusal(const std::string& text, const FlattenOptions& options = {}) {
  return refusal_of([&] { Flat(text, options); });
}
inline bool notes_contain(const Program& program, std::string_view text) {
  return std::any_of(program.notes.begin(), program.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

}  // namespace llmperf::program
