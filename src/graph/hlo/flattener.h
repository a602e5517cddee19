// The pass of flatten.h, in pieces: flatten.cpp has values and plain instructions, flatten_control.cpp calls, fusions,
// loops and branches.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/hlo/flatten.h"
#include "graph/hlo/functions.h"
#include "graph/hlo/loops.h"

namespace llmperf::graph::hlo {

class Flattener {
 public:
  Flattener(const Module& module, const FlattenOptions& options);
  Program run();

 private:
  // flatten.cpp
  // Whether an argument of the program is given away: JAX says it at the argument, XLA at the module.
  bool donated(const Function& f, std::size_t argument) const;
  void read_aliases();
  // What the block returns.
  std::vector<TensorId> block(const Block& block);
  int chunk() const { return stack_.empty() ? 0 : stack_.back()->chunk; }
  TensorId tensor(Type type, std::string_view name);
  Tensor& at(TensorId id) { return program_.tensors[static_cast<std::size_t>(id)]; }
  std::vector<TensorId> operands_of(const Instruction& i);
  void set_results(const Instruction& i, const std::vector<TensorId>& values, std::string_view what);
  std::optional<std::int64_t> bound_extent(std::string_view value, std::size_t axis) const;
  std::optional<std::int64_t> default_extent() const;
  [[noreturn]] void fail_extent(SourcePosition where, std::string_view value, const Type& type, std::size_t axis) const;
  SourcePosition position(ValueId value) const { return module_.source->position(module_.values[value].offset); }
  Type argument_type(ValueId value) const;
  Type result_type(const Instruction& i, const Traits& traits, ValueId value,
                   const std::vector<const Tensor*>& operands);
  Traits resolve(const Instruction& i);
  void instruction(const Instruction& i);
  void add_node(Node node);
  void plain(Node node);
  void results_of(TensorId id, std::vector<TensorId>& results);
  // Weights stay weights when they are only turned, cut or converted.
  static bool rearranges_parameter(const Instruction& i, const Traits& traits,
                                   const std::vector<const Tensor*>& operands);
  // Tuples and barriers have the values themselves for results.
  bool run_tuple(const Instruction& i);
  void collect_unknown();

  // flatten_control.cpp
  std::vector<TensorId> call(const Function& f, const std::vector<TensorId>& arguments, const Instruction* from);
  void run_call(const Instruction& i);
  // A fusion runs its region in one kernel; a computation over manual axes has shapes of its own.
  void run_region(const Instruction& i);
  // The same values with the types they have on the other side.
  std::vector<TensorId> boundary(const Instruction& i, const std::vector<TensorId>& values,
                                 const std::vector<ValueId>& others);
  void multiply(std::size_t from, std::size_t to, std::int64_t times, const Instruction& i);
  void run_loop(const Instruction& i);
  // The values themselves, and the members of tuples in the place of tuples.
  std::vector<TensorId> members_of(const std::vector<TensorId>& values) const;
  // A value that is `init` at first, and a tuple of such values for a tuple.
  TensorId loop_argument(TensorId init);
  std::vector<TensorId> run_loop_region(const Instruction& i, const Block& body, const std::vector<TensorId>& values);
  std::optional<std::int64_t> explicit_trips(const std::string& name, const Instruction& i);
  void check_trips() const;
  // The costlier branch, or the one that a constant takes.
  void run_branch(const Instruction& i);

  const Module& module_;
  const FlattenOptions& options_;
  Functions functions_;
  CustomCalls built_in_;
  const CustomCalls* calls_ = nullptr;
  Program program_;
  Counters counters_;
  std::vector<TensorId> environment_;  // by value: what it is now
  std::vector<const Function*> stack_;
  std::unordered_map<std::string_view, Traits> traits_;
  std::unordered_map<TensorId, std::vector<TensorId>> tuples_;
  std::map<std::string, std::set<int>> used_trips_;  // by name: the lines of the loops
  mutable std::set<std::pair<std::string, std::int64_t>> used_extents_;
  std::set<std::int64_t> donated_;  // arguments, by the module's attribute
  int loop_ = -1;
  int fusion_ = -1;
  int fusions_ = 0;
  std::int64_t made_ = 0;
};

}  // namespace llmperf::graph::hlo
