// The functions of a module: which one runs, and what one unfolds to.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/hlo/module.h"

namespace llmperf::graph::hlo {

inline constexpr int kMaxCalls = 200;  // nested in one another

// The function that an instruction runs: its symbol, or the attribute that names it; empty when it runs none.
std::string_view callee_of(const Instruction& i);

class Functions {
 public:
  explicit Functions(const Module& module);

  // Of a program of the file; null when there is none.
  const Function* find(std::string_view name, int chunk) const;
  // What runs: the function of that name; without one, of every program of the file @main, or all that nothing calls
  // (the public ones among them, if there are any). Throws Error(bad_input) when there is nothing to run.
  std::vector<const Function*> entries(const std::string& name) const;
  // Ops that it unfolds to, without unfolding it.
  double unfolded(const Function& function) { return unfolded(function, 0); }

 private:
  double unfolded(const Function& function, int depth);
  double unfolded(const Block& block, int chunk, int depth);

  const Module& module_;
  std::map<std::pair<int, std::string_view>, const Function*> by_name_;
  std::unordered_map<const Function*, double> unfolded_;
};

}  // namespace llmperf::graph::hlo
