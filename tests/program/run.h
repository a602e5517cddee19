// A program in text, its kernels and their work.
#pragma once

#include <string>
#include <vector>

#include "cost/work.h"
#include "program/flat.h"
#include "program/lower.h"

namespace llmperf::program {

// What the kernels of a program do.
struct Run {
  explicit Run(const std::string& text, Fusion fusion = Fusion::none)
      : flat(text), lowered(lower(flat.program, {.fusion = fusion})) {
    for (const LoweredOp& op : lowered.ops) sum += cost::work_of(op.op) * static_cast<double>(op.op.count);
  }
  cost::Work work(std::string_view name) const {
    for (const LoweredOp& op : lowered.ops) {
      if (op.op.name == name) return cost::work_of(op.op);
    }
    throw Error::failed("no such op in the program");
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const LoweredOp& op : lowered.ops) all.emplace_back(op.op.name);
    return all;
  }
  Flat flat;
  Lowered lowered;
  cost::Work sum;
};

// A function of values to take; the last line's result %r, of `type`, is returned.
inline std::string program(const std::string& body, const std::string& type = "tensor<4x8xf32>") {
  return "func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %v: tensor<8xf32>, %w: tensor<8x16xf32>, %i: "
         "tensor<i32>) -> " +
         type + " {\n" + body + "\nreturn %r : " + type + "\n}\n";
}

}  // namespace llmperf::program
