// A program that is divided over devices: what one device computes and what is exchanged.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "program/flatten.h"
#include "program/partition.h"
#include "program/work.h"

namespace llmperf::program {

inline double matrix_flops(const Program& p) {
  double flops = 0;
  for (const Node& node : p.nodes) {
    if (node.traits.op_class != OpClass::product || node.inserted) continue;
    const DotShape s = dot_shape(*p.module, *node.instruction, p.type(node.operands[0]), p.type(node.operands[1]));
    flops += 2 * s.batch * s.m * s.n * s.k * static_cast<double>(node.count);
  }
  return flops;
}

struct Divided {
  Module module;
  Program program;
  PartitionResult result;
  double whole_flops = 0;

  // "all-gather 4/1 x2 bf16[8,128] -> bf16[8,512]": ranks / stride, groups, and what becomes of the tensor.
  std::vector<std::string> exchanges() const {
    std::vector<std::string> list;
    for (const Node& node : program.nodes) {
      if (!node.inserted || !node.inserted->kind) continue;
      const InsertedCollective& c = *node.inserted;
      list.push_back(fmt::format("{} {}/{} {} {} -> {}{}", name(*c.kind), c.ranks, c.stride,
                                 c.text.substr(c.text.rfind(' ') + 1),  // "x2"
                                 text_of(program.type(node.operands[0])), text_of(program.type(node.results[0])),
                                 node.count > 1 ? fmt::format(", {} times", node.count) : ""));
    }
    return list;
  }
  // Results of the ops of that name.
  std::vector<std::string> results(std::string_view op) const {
    std::vector<std::string> list;
    for (const Node& node : program.nodes) {
      if (!node.inserted && node.instruction->op() == op) list.push_back(text_of(program.type(node.results.at(0))));
    }
    return list;
  }
  std::string result_type(std::size_t n = 0) const { return text_of(program.type(program.results.at(n))); }
};

inline std::unique_ptr<Divided> divided(Module module, std::optional<std::int64_t> devices = std::nullopt) {
  auto d = std::make_unique<Divided>();
  d->module = std::move(module);
  d->program = flatten(d->module, {});
  d->whole_flops = matrix_flops(d->program);
  d->result = partition(d->program, {.devices = devices});
  return d;
}

inline std::unique_ptr<Divided> fixture(const std::string& name) {
  return divided(parse_file(std::string(LLMPERF_SOURCE_DIR) + "/tests/program/programs/" + name));
}

// @main with these arguments and body, on a mesh of 2 ("data") x 4 ("model").
inline std::unique_ptr<Divided> divided_program(const std::string& arguments, const std::string& body,
                                                std::optional<std::int64_t> devices = std::nullopt) {
  return divided(parse_text("test.mlir", "sdy.mesh @mesh = <[\"data\"=2, \"model\"=4]>\nfunc.func @main(" + arguments +
                                             "{\n" + body + "}\n"),
                 devices);
}

inline std::string on(const std::string& dims) { return "{sdy.sharding = #sdy.sharding<@mesh, [" + dims + "]>}"; }

using Strings = std::vector<std::string>;

}  // namespace llmperf::program
