// A program and what was recovered from it.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/error.h"
#include "catch.h"
#include "descriptor/node.h"
#include "program/blocks.h"
#include "program/flatten.h"
#include "program/program_text.h"

namespace llmperf::program {

using Roles = std::map<std::string, std::string>;
using Named = ProgramText::Named;

struct Recovered {
  explicit Recovered(Module parsed)
      : module(std::move(parsed)), program(flatten(module, {})), blocks(recover_blocks(program)) {}
  Recovered(const ProgramText& text, const ProgramText::Named& result)
      : Recovered(parse_text("test.mlir", text.text(result))) {}

  // Roles of the products and lookups, by the name of the result.
  std::map<std::string, std::string> roles() const {
    std::map<std::string, std::string> by_name;
    for (std::size_t n = 0; n < program.nodes.size(); ++n) {
      const Node& node = program.nodes[n];
      const bool product = node.traits.op_class == OpClass::product || node.traits.op_class == OpClass::attention;
      if (!product && blocks.roles[n] == Role::other) continue;
      by_name["%" + std::string(program.tensor(node.results[0]).name)] = name(blocks.roles[n]);
    }
    return by_name;
  }

  Module module;
  Program program;
  Blocks blocks;
};

// Roles of the products of an attention, and `more`.
inline Roles attention_roles(const Named& q, const Named& k, const Named& v, const Named& scores, const Named& values,
                             const Named& output, Roles more = {}) {
  more.insert({{q.name, "query"},
               {k.name, "key"},
               {v.name, "value"},
               {scores.name, "scores"},
               {values.name, "values"},
               {output.name, "output"}});
  return more;
}

inline model::Decoder decoder_of(const Recovered& r) {
  return model::parse_decoder(descriptor::parse_yaml(recovered_model(r.program, r.blocks), "recovered"));
}

inline std::string refusal(const Recovered& r) {
  try {
    recovered_model(r.program, r.blocks);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::bad_input);
    return error.what();
  }
  return "nothing is refused";
}

inline bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace llmperf::program
