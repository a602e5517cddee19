// From a module to the program that runs: pass 2.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "program/program.h"

namespace llmperf::program {

// Extent of a dimension that the text leaves open.
struct Extent {
  std::string value;  // "arg0" of %arg0; empty: of every dimension that nothing else determines
  std::int64_t axis = 0;
  std::int64_t extent = 0;
};

inline constexpr std::int64_t kMaxNodes = 1'000'000;

struct FlattenOptions {
  std::string entry = {};  // the function to run; empty: @main, or else all that nothing calls
  std::vector<Extent> extents = {};
  std::map<std::string, std::int64_t> trips = {};  // by loop: "0" of the while whose result is %0
  const CustomCalls* custom_calls = nullptr;       // null: the built-in table
  std::int64_t max_nodes = kMaxNodes;              // that the program may unfold to
  // What one execution of a node costs, to find the costlier branch of a conditional.
  std::function<double(const Program&, const Node&)> cost = {};
};

// Throws Error(bad_input), with the place in the text: calls that recurse, extents and names that are not known,
// programs that unfold to more than max_nodes.
Program flatten(const Module& module, const FlattenOptions& options);

}  // namespace llmperf::program
