// Where a program says how its values lie on devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "program/program.h"
#include "program/sharding.h"

namespace llmperf::program {

// Among the attributes of an argument, a result or an op: sdy.sharding, mhlo.sharding, or xla.sdy.sharding in
// mhlo.frontend_attributes.
std::optional<std::string_view> sharding_text(const std::vector<Attribute>& attributes);

// Ops that do nothing but say how their operand is to lie on devices: custom calls @Sharding, sdy.sharding_constraint,
// sdy.reshard, and sdy's own collectives, which name the sharding they lead to. Also barriers, and what a flat program
// keeps of annotated loops and branches.
bool is_constraint(const Instruction& i);

// Custom calls between shapes of the whole and shapes of one device, as shard_map leaves them.
bool leads_into_shards(const Instruction& i);
bool leads_out_of_shards(const Instruction& i);

// The devices over which sdy.all_reduce {"x"} and sdy.reduce_scatter [{}, {"x"}] add up.
DeviceAxes summed_by(const Module& module, const Instruction& i);

// How the results of an op are to lie on devices, one for each; empty when it does not say. Of an outfeed, which has a
// token only: its operands.
List<Sharding> annotations(const Module& module, const Instruction& i);

// sdy.manual_computation
struct ManualComputation {
  List<Sharding> in;
  List<Sharding> out;
  DeviceAxes axes;  // over which shapes inside are local
};
ManualComputation manual_computation(const Module& module, const Instruction& i);
// What is left of a sharding when these axes are divided already.
Sharding without_axes(const Sharding& sharding, const DeviceAxes& axes);
// The whole again, when what was left of it (`before`) has become `after` in its open dimensions.
Sharding with_free_axes(const Sharding& whole, const Sharding& before, const Sharding& after);

// All annotations of a program.
class ProgramAnnotations {
 public:
  // Throws Error(bad_input) for one that is not understood or does not fit its tensor.
  explicit ProgramAnnotations(const Program& program);

  bool any() const { return any_; }
  // Form::unknown where nothing is said. `results` may be empty.
  const List<Sharding>& arguments() const { return arguments_; }
  const List<Sharding>& results() const { return results_; }
  // By result, empty: nothing is said.
  const List<Sharding>& of(const Instruction& i) const;
  const ManualComputation& manual(const Instruction& i) const { return manual_.at(&i); }
  // The devices over which a user of the value, maybe after it was rearranged, adds it up itself or is said to have
  // summands as well.
  const DeviceAxes& summed(TensorId t) const;
  bool irregular() const { return irregular_; }  // devices in an order that is estimated
  // Devices that they are about, at least 1, and where the most are named.
  std::int64_t devices() const { return devices_; }
  std::string_view place() const { return place_; }

 private:
  void read_results();
  void trace_sums(const Node& node);
  void trace_sum(const Node& node, TensorId t, const DeviceAxes& axes);
  void note(const Sharding& sharding, std::string_view place);
  void check(const Sharding& sharding, const Type& type, std::string_view place);

  const Program& program_;
  const Module& module_;
  bool any_ = false;
  bool irregular_ = false;
  std::int64_t devices_ = 1;
  std::string_view place_;
  List<Sharding> arguments_;
  List<Sharding> results_;
  std::unordered_map<const Instruction*, List<Sharding>> nodes_;
  std::unordered_map<const Instruction*, ManualComputation> manual_;
  std::unordered_map<TensorId, DeviceAxes> summed_;
};

}  // namespace llmperf::program
