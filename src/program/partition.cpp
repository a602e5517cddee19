#include "program/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "program/factors.h"
#include "program/program.h"
#include "program/replica_groups.h"
#include "program/sharding.h"

namespace llmperf::program {
namespace {

// ---- Where a program says how its values lie on devices

using Form = Sharding::Form;

// Of an sdy op: sdy.sharding_constraint %0 <@mesh, …>, sdy.all_gather [{}, {"x"}] %0 out_sharding=<@mesh, …>
std::optional<std::string_view> own_sharding(const Instruction& i) {
  if (const auto text = i.find({"out_sharding", "sharding"})) return text;
  for (std::size_t n = 0;; ++n) {
    const auto text = i.unnamed(n);
    if (!text || text->starts_with('<')) return text;
  }
}

std::string_view custom_target_of(const Instruction& i) {
  return i.op() == "custom_call" ? target_of(i) : std::string_view{};
}

std::optional<std::string_view> frontend_sharding(const std::vector<Attribute>& attributes, std::string_view key) {
  for (const Attribute& attribute : attributes) {
    if (attribute.key == "mhlo.frontend_attributes") return field(attribute.text, key);
  }
  return std::nullopt;
}

// @Sharding's backend_config = "unspecified_dims=[0,2]"
void open_unspecified(const Instruction& i, List<Sharding>& found) {
  const std::string_view text = i.find("backend_config").value_or(std::string_view{});
  const std::size_t at = text.find("unspecified_dims=");
  if (at == std::string_view::npos) return;
  for (const std::int64_t dim : integer_list(text.substr(at))) {
    for (Sharding& sharding : found) {
      constexpr std::int64_t kMostDimensions = 256;
      if (dim < 0 || dim >= kMostDimensions) continue;
      if (sharding.open.size() <= static_cast<std::size_t>(dim))
        sharding.open.resize(static_cast<std::size_t>(dim) + 1);
      sharding.open[dim] = true;
    }
  }
}

// Custom calls between shapes of the whole and shapes of one device, as shard_map leaves them.
bool leads_into_shards(const Instruction& i) {
  const std::string_view target = custom_target_of(i);
  return target == "SPMDFullToShardShape" || target.ends_with("sdy.GlobalToLocalShape");
}
bool leads_out_of_shards(const Instruction& i) {
  const std::string_view target = custom_target_of(i);
  return target == "SPMDShardToFullShape" || target.ends_with("sdy.LocalToGlobalShape");
}

// Ops that do nothing but say how their operand is to lie on devices: custom calls @Sharding, sdy.sharding_constraint,
// sdy.reshard, and sdy's own collectives, which name the sharding they lead to. Also barriers, and what a flat program
// keeps of annotated loops and branches.
bool is_constraint(const Instruction& i) {
  const std::string_view target = custom_target_of(i);
  if (target == "Sharding" || target.ends_with("sdy.FuncResultSharding")) return true;
  constexpr std::string_view kHandOn[] = {"optimization_barrier", "while", "case", "if"};
  if (contains(kHandOn, i.op())) return true;
  if (i.dialect() != "sdy") return false;
  constexpr std::string_view kSaying[] = {"sharding_constraint",  "reshard",
                                          "all_gather",           "all_slice",
                                          "all_to_all",           "reduce_scatter",
                                          "all_reduce",           "collective_permute",
                                          "sharded_to_unreduced", "replicated_to_unreduced"};
  return contains(kSaying, i.op());
}

// The devices over which sdy.all_reduce {"x"} and sdy.reduce_scatter [{}, {"x"}] add up.
DeviceAxes summed_by(const Module& module, const Instruction& i) {
  if (i.dialect() != "sdy" || (i.op() != "all_reduce" && i.op() != "reduce_scatter")) return {};
  const auto sharding = i.find("out_sharding");
  const auto axes = i.unnamed();
  if (!sharding || !axes || sharding->size() < 2) return {};
  return parse_axis_list(module, parse_mesh(module, sharding->substr(1)), *axes);
}

// How the results of an op are to lie on devices, one for each; empty when it does not say. Of an outfeed, which has a
// token only: its operands.
List<Sharding> annotations(const Module& module, const Instruction& i) {
  const bool feeds = i.op() == "outfeed";
  const List<ValueId>& of = feeds ? i.operands : i.results;
  if (of.empty() || module.type(of[0]).form == Type::Form::tuple) return {};
  const bool own = i.dialect() == "sdy" && is_constraint(i);
  auto text = own ? own_sharding(i) : sharding_text(i.attributes);
  if (!text && leads_out_of_shards(i)) text = frontend_sharding(i.attributes, "xla.sdy.out_shardings");
  if (!text) return {};
  List<Sharding> found = parse_shardings(module, *text);
  if (feeds) {
    // One for every tensor, and one for the token or none.
    const auto tensors =
        static_cast<std::size_t>(std::ranges::count_if(of, [&](ValueId value) { return module.type(value).tensor(); }));
    if (found.size() == 1) found.resize(tensors, found[0]);
    if (found.size() == tensors) found.resize(of.size(), {.form = Form::unknown});
  }
  if (found.size() == 1 && of.size() > 1) found.resize(of.size(), found[0]);
  if (found.size() != of.size()) {
    module.fail(*text, fmt::format("{} shardings for {} {}", found.size(), of.size(), feeds ? "operands" : "results"));
  }
  if (custom_target_of(i) == "Sharding") open_unspecified(i, found);
  return found;
}

// sdy.manual_computation
struct ManualComputation {
  List<Sharding> in;
  List<Sharding> out;
  DeviceAxes axes;  // over which shapes inside are local
};
ManualComputation manual_computation(const Module& module, const Instruction& i) {
  ManualComputation manual;
  std::string_view with_mesh;
  const auto read = [&](std::string_view key) {
    const auto text = i.find(key);
    if (!text) return List<Sharding>{};
    if (with_mesh.find("<@") == std::string_view::npos && with_mesh.find("<mesh") == std::string_view::npos) {
      with_mesh = *text;
    }
    return parse_shardings(module, *text);
  };
  manual.in = read("in_shardings");
  manual.out = read("out_shardings");
  const std::size_t at = std::min(with_mesh.find("<@"), with_mesh.find("<mesh<"));
  const auto axes = i.find("manual_axes");
  if (axes && at != std::string_view::npos) {
    manual.axes = parse_axis_list(module, parse_mesh(module, with_mesh.substr(at + 1)), *axes);
  }
  return manual;
}

// What is left of a sharding when these axes are divided already.
Sharding without_axes(const Sharding& sharding, const DeviceAxes& axes) {
  Sharding rest = sharding;
  for (DeviceAxes& dim : rest.dims) {
    if (auto parts = cut_by(dim, axes)) dim = std::move(*parts);
    std::erase_if(dim, [&](const DeviceAxis& axis) { return overlap({axis}, axes); });
  }
  std::erase_if(rest.unreduced, [&](const DeviceAxis& axis) { return overlap({axis}, axes); });
  return rest;
}

// The whole again, when what was left of it (`before`) has become `after` in its open dimensions.
Sharding with_free_axes(const Sharding& whole, const Sharding& before, const Sharding& after) {
  Sharding result = whole;
  for (std::size_t d = 0; d < std::min({whole.dims.size(), before.dims.size(), after.dims.size()}); ++d) {
    DeviceAxes more = after.dims[d];
    if (!take_outer(more, size_of(before.dims[d]))) continue;
    append(result.dims[d], more);
  }
  return result;
}

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

ProgramAnnotations::ProgramAnnotations(const Program& program) : program_(program), module_(*program.module) {
  for (std::size_t n = 0; n < program.arguments.size(); ++n) {
    const auto text =
        n < program.argument_attributes.size() ? sharding_text(program.argument_attributes[n]) : std::nullopt;
    arguments_.push_back(text ? parse_sharding(module_, *text) : Sharding{.form = Form::unknown});
    if (text) check(arguments_.back(), program.type(program.arguments[n]), *text);
  }
  const auto of_tensor = [&](TensorId t) { return program.type(t); };
  const auto of_value = [&](ValueId value) { return module_.type(value); };
  const auto check_all = [&](const auto& found, const auto& values, const auto& type_of, std::string_view place) {
    for (std::size_t n = 0; n < found.size(); ++n)
      check(found[n], n < values.size() ? type_of(values[n]) : Type{}, place);
  };
  for (const Node& node : program.nodes) {
    const Instruction& i = *node.instruction;
    if (nodes_.contains(&i)) continue;
    List<Sharding> found = i.op() == "manual_computation" ? List<Sharding>{} : annotations(module_, i);
    const List<TensorId>& values = i.op() == "outfeed" ? node.operands : node.results;
    check_all(found, values, of_tensor, i.name);
    nodes_.emplace(&i, std::move(found));
    if (i.op() != "manual_computation") continue;
    ManualComputation manual = manual_computation(module_, i);
    check_all(manual.in, i.operands, of_value, i.name);
    check_all(manual.out, i.results, of_value, i.name);
    any_ = true;
    manual_.emplace(&i, std::move(manual));
  }
  for (const Node& node : program.nodes) trace_sums(node);
  for (const Loop& loop : program.loops) {
    List<Sharding> found = annotations(module_, *loop.instruction);
    if (found.size() != loop.arguments.size()) continue;
    check_all(found, loop.arguments, of_tensor, loop.instruction->name);
    nodes_.emplace(loop.instruction, std::move(found));
  }
  read_results();
}

const List<Sharding>& ProgramAnnotations::of(const Instruction& i) const {
  static const List<Sharding> kNothing;
  const auto found = nodes_.find(&i);
  return found == nodes_.end() ? kNothing : found->second;
}

const DeviceAxes& ProgramAnnotations::summed(TensorId t) const {
  static const DeviceAxes kNowhere;
  const auto found = summed_.find(t);
  return found == summed_.end() ? kNowhere : found->second;
}

void ProgramAnnotations::trace_sums(const Node& node) {
  const Instruction& i = *node.instruction;
  DeviceAxes axes = summed_by(module_, i);
  const List<Sharding>& found = of(i);
  for (std::size_t n = 0; n < node.operands.size(); ++n) {
    const bool goes_on = !found.empty() && linear_in(i, n) != Linear::no;
    if (goes_on) axes = found[0].unreduced;
    if (!axes.empty()) trace_sum(node, node.operands[n], axes);
  }
}

void ProgramAnnotations::trace_sum(const Node& node, TensorId t, const DeviceAxes& axes) {
  constexpr int kMaxSteps = 16;
  for (int steps = 0; steps < kMaxSteps; ++steps) {
    summed_[t] = axes;
    const NodeId maker = program_.tensor(t).node;
    if (maker == kNone) return;
    const Node& before = program_.node(maker);
    if (!rearranges(*before.instruction) || before.loop != node.loop || before.operands.empty()) return;
    t = before.operands[0];
  }
}

// Those of the function that the program is.
void ProgramAnnotations::read_results() {
  for (const Function& f : module_.functions) {
    if (f.declared || f.results.size() != program_.results.size()) continue;
    if (f.body.arguments.size() != program_.arguments.size()) continue;
    bool same = f.name == "main" || program_.arguments.empty();
    for (std::size_t n = 0; n < f.argument_attributes.size() && n < program_.argument_attributes.size(); ++n) {
      const auto& mine = program_.argument_attributes[n];
      if (!mine.empty() && !f.argument_attributes[n].empty()) {
        same = mine[0].text.data() == f.argument_attributes[n][0].text.data();
      }
    }
    if (!same) continue;
    for (std::size_t n = 0; n < f.results.size(); ++n) {
      const auto text = n < f.result_attributes.size() ? sharding_text(f.result_attributes[n]) : std::nullopt;
      results_.push_back(text ? parse_sharding(module_, *text) : Sharding{.form = Form::unknown});
      if (text) check(results_.back(), program_.type(program_.results[n]), *text);
    }
    return;
  }
}

void ProgramAnnotations::note(const Sharding& sharding, std::string_view place) {
  any_ = any_ || sharding.form != Form::unknown;
  irregular_ = irregular_ || !sharding.regular;
  const std::int64_t devices = sharding.form == Form::maximal ? sharding.device + 1 : sharding.devices;
  if (devices <= devices_) return;
  devices_ = devices;
  place_ = place;
}

void ProgramAnnotations::check(const Sharding& sharding, const Type& type, std::string_view place) {
  note(sharding, place);
  const bool tiled = sharding.form == Form::tiled && !sharding.dims.empty() && type.tensor();
  if (tiled && sharding.dims.size() != type.dims.size()) {
    module_.fail(place, fmt::format("a sharding of {} dimensions for {}", sharding.dims.size(), text_of(type)));
  }
}

// ---- The partition

constexpr NodeId kResult = -2;  // "user" of a result whose sharding is given

// Who uses the values of a program.
class ValueUsers {
 public:
  ValueUsers(const Program& program, const ProgramAnnotations& annotations)
      : program_(program), annotations_(annotations), users_(program.tensors.size()) {
    const auto use = [&](TensorId t, NodeId by) {
      ++users_[t].count;
      users_[t].last = by;
    };
    for (std::size_t n = 0; n < program.nodes.size(); ++n) {
      for (const TensorId t : program.nodes[n].operands) use(t, static_cast<NodeId>(n));
    }
    for (const Loop& loop : program.loops) {
      for (const TensorId t : loop.yielded) use(t, kNone);
    }
    for (std::size_t n = 0; n < program.results.size(); ++n) {
      const auto& given = annotations.results();
      use(program.results[n], n < given.size() && given[n].form == Sharding::Form::tiled ? kResult : kNone);
    }
  }

  std::int64_t count(TensorId t) const { return users_[t].count; }
  // Whether the only use of a value, in this loop (-1: outside of loops), is a constraint, maybe after it was
  // rearranged: there its summands are added up.
  bool constrained_next(TensorId t, int loop) const {
    constexpr int kMaxSteps = 16;
    for (int steps = 0; steps < kMaxSteps; ++steps) {
      const auto& [count, user] = users_[t];
      if (count != 1 || user == kNone) return false;
      if (user == kResult) return loop < 0;
      const Node& node = program_.node(user);
      if (node.loop != loop || node.results.size() != 1) return false;
      if (is_constraint(*node.instruction)) return !annotations_.of(*node.instruction).empty();
      if (!rearranges(*node.instruction)) return false;
      t = node.results[0];
    }
    return false;
  }

 private:
  struct Users {
    std::int64_t count = 0;
    NodeId last = kNone;
  };
  const Program& program_;
  const ProgramAnnotations& annotations_;
  List<Users> users_;  // by tensor
};

// The exchanges that take a tensor from one sharding to another.
struct ReshardingStep {
  InsertedCollective what;
  Sharding after;  // of the tensor, once it is done
};

constexpr std::int64_t kListed = 64;  // devices of a group that a text is made of

bool divided_by(const Sharding& sharding, const DeviceAxis& axis) {
  return std::ranges::any_of(sharding.dims, [&](const DeviceAxes& axes) { return contains(axes, axis); });
}
// Axes of `axes` from the n-th on.
DeviceAxes inner(const DeviceAxes& axes, std::size_t n) {
  return DeviceAxes(axes.begin() + static_cast<std::ptrdiff_t>(n), axes.end());
}
// Those that are not there yet.
void add_new(DeviceAxes& axes, const DeviceAxes& more) {
  for (const DeviceAxis& axis : more) {
    if (!contains(axes, axis)) axes.push_back(axis);
  }
}

// What is to be exchanged, in order; nothing when nothing has to be done. `from` and `to` are tiled or maximal;
// `devices` take part in all.
//  * summands that `to` does not have are summed: reduce-scatter where `to` divides a dimension over them, else
//  all-reduce;
//  * summands that only `to` has are what there is, with zeros added, which is no exchange;
//  * a dimension that is to be divided (further) over devices that hold the same is cut, which is no exchange;
//  * an axis of devices that goes from one dimension to another is an all-to-all, one that is left out an all-gather;
//  * as many parts of every dimension, or the same parts, on other devices are sent to them;
//  * what one device holds is broadcast.
class Path {
 public:
  Path(const Sharding& from, const Sharding& to, std::size_t rank, std::int64_t devices)
      : now_(from), to_(to), rank_(rank), devices_(devices) {
    now_.dims.resize(rank);
    to_.dims.resize(rank);
    now_.open.clear();
    now_.replicated.clear();
    now_.manual.clear();
  }

  std::vector<ReshardingStep> find() {
    if (now_.same_parts(to_)) return {};
    if (now_.form == Sharding::Form::maximal) leave_one_device();
    if (to_.form == Sharding::Form::maximal) {
      whole();
      now_ = to_;
      add();
      return std::move(steps_);
    }
    if (!cut_to_common_axes()) {
      whole();
      take_parts();
      return std::move(steps_);
    }
    // Every round does at least one step, and takes an axis out of its place or to its place.
    constexpr int kMaxRounds = 64;
    for (int round = 0; round < kMaxRounds && !now_.same_parts(to_); ++round) {
      if (scatter_sums() || begin_sums() || permute() || cut() || exchange() || send() || gather()) continue;
      break;
    }
    if (!now_.same_parts(to_)) {
      whole();
      take_parts();
    }
    return std::move(steps_);
  }

 private:
  // Without a kind every device keeps its own part of what it has.
  void add(std::optional<CollectiveKind> kind = {}, const DeviceAxes& over = {}) {
    InsertedCollective c;
    c.kind = kind;
    if (kind) {
      const DeviceGroup group = group_of(over);
      c.ranks = group.ranks;
      c.stride = group.stride;
      c.regular = group.regular;
      c.text = group_text(devices_of(over, kListed), std::max<std::int64_t>(1, devices_ / group.ranks));
    }
    steps_.push_back({std::move(c), now_});
  }

  void leave_one_device() {
    now_ = {};
    now_.dims.resize(rank_);
    if (devices_ > 1) add(CollectiveKind::broadcast, {{devices_, 1}});
  }

  bool cut_to_common_axes() {
    DeviceAxes all;
    const auto each = [&](Sharding& sharding, const auto& visit) {
      return visit(sharding.unreduced) && std::ranges::all_of(sharding.dims, visit);
    };
    const auto collect = [&](const DeviceAxes& axes) {
      append(all, axes);
      return true;
    };
    const auto cut = [&](DeviceAxes& axes) {
      auto parts = cut_by(axes, all);
      if (parts) axes = std::move(*parts);
      return parts.has_value();
    };
    each(now_, collect);
    each(to_, collect);
    return each(now_, cut) && each(to_, cut);
  }

  bool in_use(const DeviceAxis& axis) const { return contains(now_.unreduced, axis) || divided_by(now_, axis); }
  // How many of the outer axes are right already.
  std::size_t right(std::size_t d) const {
    const auto& mine = now_.dims[d];
    const auto& wanted = to_.dims[d];
    return static_cast<std::size_t>(std::mismatch(mine.begin(), mine.end(), wanted.begin(), wanted.end()).first -
                                    mine.begin());
  }
  bool all_right(std::size_t d) const { return right(d) == now_.dims[d].size(); }

  bool scatter_sums() {
    for (std::size_t d = 0; d < rank_; ++d) {
      DeviceAxes& mine = now_.dims[d];
      DeviceAxes over;
      for (std::size_t i = mine.size(); all_right(d) && i < to_.dims[d].size(); ++i) {
        if (!contains(now_.unreduced, to_.dims[d][i])) break;
        over.push_back(to_.dims[d][i]);
      }
      if (over.empty()) continue;
      for (const DeviceAxis& axis : over) std::erase(now_.unreduced, axis);
      append(mine, over);
      add(CollectiveKind::reduce_scatter, over);
      return true;
    }
    DeviceAxes over = now_.unreduced;
    std::erase_if(over, [&](const DeviceAxis& axis) { return contains(to_.unreduced, axis); });
    if (over.empty()) return false;
    for (const DeviceAxis& axis : over) std::erase(now_.unreduced, axis);
    add(CollectiveKind::all_reduce, over);
    return true;
  }

  // Of what several have, one keeps it and the others have zeros; a part becomes a summand between zeros.
  bool begin_sums() {
    bool begun = false;
    for (const DeviceAxis& axis : to_.unreduced) {
      if (divided_by(to_, axis) || contains(now_.unreduced, axis)) continue;
      const auto innermost =
          std::ranges::find_if(now_.dims, [&](const DeviceAxes& axes) { return !axes.empty() && axes.back() == axis; });
      if (innermost != now_.dims.end()) {
        innermost->pop_back();
      } else if (in_use(axis)) {
        continue;
      }
      now_.unreduced.push_back(axis);
      begun = true;
    }
    if (begun) add();
    return begun;
  }

  // As many parts of every dimension as before, on other devices.
  bool permute() {
    DeviceAxes over;
    for (std::size_t d = 0; d < rank_; ++d) {
      if (size_of(now_.dims[d]) != size_of(to_.dims[d])) return false;
      if (now_.dims[d] == to_.dims[d]) continue;
      add_new(over, now_.dims[d]);
      add_new(over, to_.dims[d]);
    }
    if (over.empty()) return false;
    now_.dims = to_.dims;
    add(CollectiveKind::send, over);
    return true;
  }

  bool cut() {
    bool cut = false;
    for (std::size_t d = 0; d < rank_; ++d) {
      while (all_right(d) && now_.dims[d].size() < to_.dims[d].size() && !in_use(to_.dims[d][now_.dims[d].size()])) {
        now_.dims[d].push_back(to_.dims[d][now_.dims[d].size()]);
        cut = true;
      }
    }
    if (cut) add();
    return cut;
  }

  // The inner axes of one dimension that another one wants next.
  bool exchange() {
    for (std::size_t d = 0; d < rank_; ++d) {
      for (std::size_t e = 0; e < rank_; ++e) {
        if (d == e || !all_right(e)) continue;
        const DeviceAxes wanted = inner(to_.dims[e], now_.dims[e].size());
        for (std::size_t begin = right(d); begin < now_.dims[d].size(); ++begin) {
          const DeviceAxes over = inner(now_.dims[d], begin);
          if (wanted.size() < over.size() || !std::equal(over.begin(), over.end(), wanted.begin())) continue;
          now_.dims[d].resize(begin);
          append(now_.dims[e], over);
          add(CollectiveKind::all_to_all, over);
          return true;
        }
      }
    }
    return false;
  }

  // As many parts as before, on other devices.
  bool send() {
    for (std::size_t d = 0; d < rank_; ++d) {
      DeviceAxes both = inner(now_.dims[d], right(d));
      const DeviceAxes wanted = inner(to_.dims[d], right(d));
      if (both.empty() || size_of(both) != size_of(wanted)) continue;
      const auto taken = [&](const DeviceAxis& axis) { return !contains(both, axis) && in_use(axis); };
      if (std::ranges::any_of(wanted, taken)) continue;
      add_new(both, wanted);
      now_.dims[d] = to_.dims[d];
      add(CollectiveKind::send, both);
      return true;
    }
    return false;
  }

  bool gather() {
    for (std::size_t d = 0; d < rank_; ++d) {
      if (all_right(d)) continue;
      // Inner axes that are wanted nowhere; those that are may follow as an all-to-all.
      const DeviceAxes& mine = now_.dims[d];
      const auto wanted = [&](const DeviceAxis& axis) {
        return contains(to_.unreduced, axis) || divided_by(to_, axis);
      };
      std::size_t begin = mine.size();
      while (begin > right(d) && !wanted(mine[begin - 1])) --begin;
      gather_from(d, begin < mine.size() ? begin : right(d));
      return true;
    }
    return false;
  }

  void gather_from(std::size_t d, std::size_t begin) {
    const DeviceAxes over = inner(now_.dims[d], begin);
    now_.dims[d].resize(begin);
    add(CollectiveKind::all_gather, over);
  }

  // All of it, summed, on every device.
  void whole() {
    if (!now_.unreduced.empty()) {
      add(CollectiveKind::all_reduce, std::exchange(now_.unreduced, {}));
    }
    for (std::size_t d = 0; d < rank_; ++d) {
      if (size_of(now_.dims[d]) > 1) gather_from(d, 0);
    }
  }

  // Of what every device has.
  void take_parts() {
    now_.dims = to_.dims;
    now_.unreduced = to_.unreduced;
    if (to_.divides() || !to_.unreduced.empty()) add();
  }

  Sharding now_;
  Sharding to_;
  std::size_t rank_;
  std::int64_t devices_;
  std::vector<ReshardingStep> steps_;
};

constexpr std::size_t kMaxNotes = 8;

// Whether the devices of `outer` are the major ones of `axes`.
bool starts_with(const DeviceAxes& axes, const DeviceAxes& outer) {
  const DeviceAxes mine = cut_by(axes, outer).value_or(axes);
  const DeviceAxes theirs = cut_by(outer, axes).value_or(outer);
  return theirs.size() <= mine.size() && std::equal(theirs.begin(), theirs.end(), mine.begin());
}

// How the values of a program lie on devices at a point of a pass over it, and the program that such a pass writes.
class Layout {
 public:
  Layout(Program& program, std::int64_t devices) : program_(program), devices_(devices) {}

  // Starts over. A pass that does not write is a rehearsal: shardings are followed, nothing is exchanged.
  void begin(bool writing) {
    writing_ = writing;
    states_.assign(program_.tensors.size(), {});
  }

  bool writing() const { return writing_; }

  // Of a value that nothing was said of: that of the value it was before (Tensor::same), else whole on every device.
  const Sharding& of(TensorId t) {
    if (std::exchange(states_[t].known, true)) return states_[t].sharding;
    const TensorId before = program_.tensor(t).same;
    if (before != kNone && before != t) {
      Sharding same = of(before);
      same.unreduced.clear();
      states_[t].sharding = std::move(same);
    }
    return states_[t].sharding;
  }

  void set(TensorId t, Sharding sharding) {
    sharding.open.clear();
    sharding.replicated.clear();
    sharding.manual.clear();
    sharding.dims.resize(rank(t));
    states_[t].known = true;
    states_[t].sharding = std::move(sharding);
  }

  // Its extents in the text are those of one device.
  bool local(TensorId t) const { return states_[t].local; }
  void set_local(TensorId t, bool local) { states_[t].local = local; }

  // A value that was exchanged for all who use it from here on.
  TensorId now(TensorId t) const {
    for (auto found = moved_.find(t); found != moved_.end(); found = moved_.find(t)) t = found->second;
    return t;
  }

  void move(TensorId from, TensorId to) {
    if (from != to) moved_[from] = to;
  }

  // An annotation of `t`, with what it leaves open as it is.
  Sharding wanted(const Sharding& annotation, TensorId t) { return wanted(annotation, of(t), t); }
  // The same where it would lie like `here` if nothing were said.
  Sharding wanted(const Sharding& annotation, const Sharding& here, TensorId t) const {
    if (annotation.form == Form::unknown || annotation.form == Form::manual) {
      Sharding same = here;
      same.unreduced.clear();
      return same;
    }
    Sharding target = annotation;
    target.dims.resize(annotation.form == Form::tiled ? rank(t) : 0);
    for (std::size_t d = 0; d < target.dims.size() && d < here.dims.size(); ++d) {
      if (!annotation.is_open(d) || !starts_with(here.dims[d], target.dims[d])) continue;
      bool taken = overlap(here.dims[d], annotation.replicated) || overlap(here.dims[d], annotation.unreduced);
      for (std::size_t e = 0; e < target.dims.size(); ++e) {
        taken = taken || (e != d && overlap(here.dims[d], target.dims[e]));
      }
      if (!taken) target.dims[d] = here.dims[d];
    }
    return target;
  }

  bool fits(TensorId t, const Sharding& target) {
    const Sharding& here = of(t);
    return here.form == Form::manual || target.form == Form::manual || !program_.type(t).tensor() ||
           here.same_parts(target);
  }

  // The value in another sharding; the exchanges are written, at the place of `cause`.
  TensorId convert(TensorId t, const Sharding& target, const Node& cause) {
    if (fits(t, target)) return t;
    for (const auto& [sharding, other] : converted_[t]) {
      if (sharding.same_parts(target)) return other;
    }
    TensorId last = t;
    for (ReshardingStep& step : Path(of(t), target, rank(t), devices_).find()) {
      Node node;
      node.instruction = cause.instruction;
      node.traits = {step.what.kind ? OpClass::collective : OpClass::free, 0};
      node.count = cause.count;
      node.loop = cause.loop;
      node.operands = {last};
      if (step.what.kind) ++collectives_;
      node.inserted = std::move(step.what);
      last = copy_of(last, std::move(step.after));
      node.results = {last};
      write(std::move(node));
    }
    converted_[t].emplace_back(target, last);
    return last;
  }

  void write(Node node) {
    for (const TensorId t : node.results) {
      program_.tensors[t].node = static_cast<NodeId>(written_.size());
    }
    written_.push_back(std::move(node));
  }

  // The program becomes what was written, with the extents of one device. Returns the number of exchanges.
  std::int64_t finish() {
    program_.nodes = std::move(written_);
    for (TensorId& t : program_.results) t = now(t);
    for (Loop& loop : program_.loops) {
      for (TensorId& t : loop.yielded) t = now(t);
    }
    std::set<std::pair<std::int64_t, std::int64_t>> uneven;
    for (std::size_t t = 0; t < program_.tensors.size(); ++t) {
      Type& type = program_.tensors[t].type;
      const Sharding& sharding = of(static_cast<TensorId>(t));
      if (!type.tensor() || sharding.form != Form::tiled) continue;
      for (std::size_t d = 0; d < std::min(type.dims.size(), sharding.dims.size()); ++d) {
        const std::int64_t parts = size_of(sharding.dims[d]);
        if (type.dims[d] % parts != 0) uneven.insert({type.dims[d], parts});
      }
      type.dims = local_dims(sharding, type.dims);
    }
    std::size_t noted = 0;
    for (const auto& [extent, parts] : uneven) {
      if (noted++ == kMaxNotes) break;
      program_.notes.push_back(
          fmt::format("an extent of {} over {} devices is counted as {} on each", extent, parts, extent / parts + 1));
    }
    return collectives_;
  }

 private:
  std::size_t rank(TensorId t) const { return program_.type(t).dims.size(); }
  TensorId copy_of(TensorId t, Sharding sharding) {
    Tensor copy = program_.tensor(t);
    copy.same = kNone;
    const auto id = static_cast<TensorId>(program_.tensors.size());
    program_.tensors.push_back(std::move(copy));
    states_.push_back({.local = local(t)});
    set(id, std::move(sharding));
    return id;
  }

  Program& program_;
  std::int64_t devices_;
  bool writing_ = false;
  struct State {
    Sharding sharding = {};
    bool known = false;
    bool local = false;
  };
  List<State> states_;
  std::unordered_map<TensorId, TensorId> moved_;
  std::unordered_map<TensorId, std::vector<std::pair<Sharding, TensorId>>> converted_;
  List<Node> written_;
  std::int64_t collectives_ = 0;
};

constexpr int kRehearsals = 3;  // before the pass that writes: values that follow their users are found backwards

class Partitioner {
 public:
  Partitioner(Program& program, const PartitionOptions& options)
      : program_(program),
        annotations_(program),
        layout_(program, count_devices(options)),
        users_(program, annotations_) {
    result_.annotated = annotations_.any();
  }

  PartitionResult run() {
    if (!result_.annotated) return result_;
    for (int n = 0; n < kRehearsals; ++n) {
      pass(false);
      if (own_collective_.empty()) continue;
      program_.notes.push_back(fmt::format(
          "{} is an exchange outside of manual regions: the shapes are taken to be those of one device, and the "
          "annotations to say how the parts make up the whole",
          own_collective_));
      return result_;
    }
    pass(true);
    result_.local = false;
    result_.collectives = layout_.finish();
    for (const auto& [op, times] : undivided_) {
      program_.notes.push_back(
          fmt::format("{} is not divided over devices: what it takes is gathered ({} times)", op, times));
    }
    if (annotations_.irregular()) {
      program_.notes.emplace_back("devices are listed in an order that no mesh has: their distances are estimated");
    }
    return result_;
  }

 private:
  std::int64_t count_devices(const PartitionOptions& options) {
    const std::int64_t count = device_count(program_, options.devices);
    const std::int64_t named = annotations_.devices();
    if (options.devices && named > count) {
      program_.module->fail(annotations_.place(),
                            fmt::format("this sharding is over {} devices, and there are {}", named, count),
                            fmt::format("`devices` {}", named));
    }
    return result_.devices = std::max(count, named);
  }

  const Loop& loop(int index) const { return program_.loop(index); }
  const Type& type(TensorId t) const { return program_.type(t); }

  // What every device has and could as well have in parts from the start will be made as this user wants it.
  void follow(TensorId t, const Sharding& target) {
    const Sharding& here = layout_.of(t);
    if (here.divides() || here.form != Form::tiled || !target.divides() || !here.unreduced.empty()) return;
    const Tensor& tensor = program_.tensor(t);
    if (tensor.node == kNone) return;
    const Node& maker = program_.node(tensor.node);
    if (maker.results.size() != 1 || !annotations_.of(*maker.instruction).empty()) return;
    const bool cheap = maker.operands.empty() || tensor.constant || maker.traits.op_class == OpClass::broadcast;
    const bool single =
        users_.count(t) == 1 && (maker.traits.op_class == OpClass::elementwise || rearranges(*maker.instruction));
    if (cheap || single) follows_.try_emplace(t, target);
  }

  // The value in another sharding; what has to be exchanged for it is written before node_.
  TensorId convert(TensorId t, const Sharding& target) {
    if (layout_.fits(t, target)) return t;
    if (layout_.writing()) return layout_.convert(t, target, node_);
    follow(t, target);
    return t;
  }

  // The same for all who use it from here on.
  void settle(TensorId t, const Sharding& target) {
    if (layout_.writing()) {
      layout_.move(t, convert(t, target));
    } else {
      layout_.set(t, target);
    }
  }

  // --- a pass over the program ---

  void pass(bool writing) {
    layout_.begin(writing);
    open_loops_.clear();
    inside_manual_.clear();
    for (std::size_t n = 0; n < program_.arguments.size(); ++n) {
      const Sharding& given = annotations_.arguments()[n];
      if (given.form == Form::tiled || given.form == Form::maximal) layout_.set(program_.arguments[n], given);
    }
    const std::size_t count = program_.nodes.size();
    for (std::size_t n = 0; n < count; ++n) {
      enter_loops(program_.nodes[n].loop);
      node_ = Node(program_.nodes[n]);
      for (TensorId& t : node_.operands) t = layout_.now(t);
      targets_.clear();
      visit();
      const Node written = node_;
      if (writing) layout_.write(written);
      for (const auto& [t, target] : targets_) settle(t, target);
    }
    enter_loops(-1);
    for (std::size_t n = 0; count > 0 && n < annotations_.results().size(); ++n) {
      at(*program_.nodes[count - 1].instruction, -1);
      const TensorId t = layout_.now(program_.results[n]);
      if (writing) settle(t, layout_.wanted(annotations_.results()[n], t));
    }
  }

  // What is written next belongs to this instruction.
  void at(const Instruction& i, int in_loop) {
    node_ = Node{};
    node_.instruction = &i;
    node_.loop = in_loop;
    node_.count = program_.passes(in_loop);
  }

  void enter_loops(int next) {
    while (!open_loops_.empty() && !program_.within(next, open_loops_.back())) {
      leave_loop(open_loops_.back());
      open_loops_.pop_back();
    }
    List<int> entered;
    const int open = open_loops_.empty() ? -1 : open_loops_.back();
    for (int l = next; l >= 0 && l != open; l = loop(l).parent) entered.push_back(l);
    for (auto l = entered.rbegin(); l != entered.rend(); ++l) {
      enter_loop(*l);
      open_loops_.push_back(*l);
    }
  }

  // A value that a loop carries lies as the loop says, else as it did before, or, when every device had all of it, as
  // the body leaves it.
  void enter_loop(int index) {
    at(*loop(index).instruction, loop(index).parent);
    const List<Sharding>& found = annotations_.of(*loop(index).instruction);
    for (std::size_t n = 0; n < loop(index).arguments.size(); ++n) {
      const TensorId t = loop(index).arguments[n];
      const TensorId before = program_.tensor(t).same;
      if (before == kNone) continue;
      const TensorId init = layout_.now(before);
      const auto follows = follows_.find(t);
      Sharding target = follows != follows_.end() ? follows->second : layout_.of(init);
      target.unreduced.clear();
      if (n < found.size()) target = layout_.wanted(found[n], target, init);
      const TensorId moved = convert(init, target);
      if (layout_.writing()) program_.tensors[t].same = moved;
      layout_.set(t, target);
      layout_.set_local(t, layout_.local(init));
    }
  }

  void leave_loop(int index) {
    at(*loop(index).instruction, index);
    for (std::size_t n = 0; n < std::min(loop(index).arguments.size(), loop(index).yielded.size()); ++n) {
      const TensorId argument = loop(index).arguments[n];
      const TensorId yielded = layout_.now(loop(index).yielded[n]);
      const Sharding carried = layout_.of(argument);
      if (!carried.divides() && layout_.of(yielded).divides()) follows_.try_emplace(argument, layout_.of(yielded));
      settle(yielded, carried);
    }
  }

  // --- ops ---

  void visit() {
    const Instruction& i = *node_.instruction;
    if (i.op() == "manual_computation") return cross_manual(i);
    if (leads_into_shards(i) || leads_out_of_shards(i)) return cross_shards(i, leads_into_shards(i));
    bool local = !inside_manual_.empty();
    bool constant = true;
    for (const TensorId t : node_.operands) {
      local = local || layout_.local(t);
      constant = constant && program_.tensor(t).constant;
    }
    for (const TensorId t : node_.results) layout_.set_local(t, local);
    const bool in_line = node_.traits.op_class == OpClass::free && (!i.regions.empty() || !callee_of(i).empty());
    if (in_line || is_constraint(i)) return constrain(i);
    if (node_.traits.op_class == OpClass::collective && !local && !constant) own_collective_ = i.name;
    if (i.op() == "outfeed" && !annotations_.of(i).empty()) return feed_out(i);
    divide(i);
  }

  void feed_out(const Instruction& i) {
    const List<Sharding>& found = annotations_.of(i);
    for (std::size_t n = 0; n < std::min(node_.operands.size(), found.size()); ++n) {
      const TensorId t = node_.operands[n];
      node_.operands[n] = convert(t, layout_.wanted(found[n], t));
    }
  }

  void constrain(const Instruction& i) {
    const List<Sharding>& found = annotations_.of(i);
    node_.traits.op_class = OpClass::free;  // of sdy's collectives too: what they exchange is put in
    const DeviceAxes summed = summed_by(*program_.module, i);
    for (std::size_t n = 0; n < std::min(node_.operands.size(), node_.results.size()); ++n) {
      const TensorId t = node_.operands[n];
      if (!summed.empty() && layout_.of(t).unreduced.empty()) {
        Sharding summands = layout_.of(t);
        summands.unreduced = summed;
        layout_.set(t, summands);
      }
      const Sharding target = n < found.size() ? layout_.wanted(found[n], t) : layout_.of(t);
      node_.operands[n] = convert(t, target);
      layout_.set(node_.results[n], target);
    }
  }

  // The node before the region and the one after it (flatten.cpp). Inside, extents are divided over the manual axes;
  // over the others they may be divided as anywhere.
  void cross_manual(const Instruction& i) {
    const ManualComputation& manual = annotations_.manual(i);
    const bool enters = inside_manual_.insert(&i).second;
    if (!enters) inside_manual_.erase(&i);
    const List<Sharding>& outside = enters ? manual.in : manual.out;
    for (std::size_t n = 0; n < std::min(node_.operands.size(), node_.results.size()); ++n) {
      Sharding given = n < outside.size() ? outside[n] : Sharding{};
      if (enters) given = layout_.wanted(given, node_.operands[n]);
      Sharding inside = without_axes(given, manual.axes);
      if (!enters) {
        const Sharding free = layout_.wanted(inside, node_.operands[n]);
        given = with_free_axes(given, inside, free);
        inside = free;
      }
      node_.operands[n] = convert(node_.operands[n], enters ? given : inside);
      layout_.set(node_.results[n], enters ? inside : given);
      layout_.set_local(node_.results[n], !inside_manual_.empty());
    }
  }

  void cross_shards(const Instruction& i, bool enters) {
    const List<Sharding>& found = annotations_.of(i);
    for (std::size_t n = 0; n < node_.results.size(); ++n) {
      layout_.set(node_.results[n], n < found.size() && found[n].form == Form::tiled ? found[n] : Sharding{});
      layout_.set_local(node_.results[n], enters);
    }
  }

  // Summands that stay summands: of what is only written otherwise, and of what the op is linear in where its result is
  // said to have them.
  DeviceAxes kept_summands(const List<Sharding>& found) {
    if (rearranges(*node_.instruction) && !node_.operands.empty()) return layout_.of(node_.operands[0]).unreduced;
    const DeviceAxes wanted = found.empty() ? DeviceAxes{} : found[0].unreduced;
    DeviceAxes kept;
    for (std::size_t n = 0; n < node_.operands.size(); ++n) {
      const DeviceAxes shared = common(layout_.of(node_.operands[n]).unreduced, wanted);
      if (shared.empty()) continue;
      const Linear linear = linear_in(*node_.instruction, n);
      if (linear == Linear::no || (linear == Linear::alone && !kept.empty())) return {};
      for (const DeviceAxis& axis : shared) {
        if (!overlap({axis}, kept)) kept.push_back(axis);
      }
    }
    return kept;
  }

  // What costs nothing to choose comes first, then the largest operand.
  Division choose_division(const List<Sharding>& found, const DeviceAxes& summands) {
    Division division(op_factors(program_, node_));
    division.reserve(summands);
    const OpFactors& f = division.factors();
    const OpClass c = node_.traits.op_class;
    const bool flexible = c == OpClass::elementwise || c == OpClass::broadcast || node_.operands.empty() ||
                          rearranges(*node_.instruction);
    for (std::size_t r = 0; flexible && r < node_.results.size(); ++r) {
      const TensorId t = node_.results[r];
      if (const auto follows = follows_.find(t); follows != follows_.end()) {
        division.offer(f.results[r], follows->second, type(t).dims);
      }
      if (r < found.size() && found[r].form == Form::tiled) division.offer(f.results[r], found[r], type(t).dims);
    }
    List<std::size_t> order(node_.operands.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return type(node_.operands[a]).bytes() > type(node_.operands[b]).bytes();
    });
    // Of a product what the result keeps comes first: a batch over the devices that weights are stored over stays, and
    // the weights are gathered.
    for (const std::size_t n : order) {
      if (c != OpClass::product) break;
      Sharding kept = layout_.of(node_.operands[n]);
      for (std::size_t dim = 0; dim < std::min(kept.dims.size(), f.operands[n].size()); ++dim) {
        const int label = f.operands[n][dim];
        const bool in_result =
            std::ranges::any_of(f.results, [&](const List<int>& result) { return contains(result, label); });
        if (!in_result) kept.dims[dim].clear();
      }
      division.offer(f.operands[n], kept, type(node_.operands[n]).dims);
    }
    for (const std::size_t n : order) {
      division.offer(f.operands[n], layout_.of(node_.operands[n]), type(node_.operands[n]).dims);
    }
    return division;
  }

  void divide(const Instruction& i) {
    if (node_.results.empty()) return;  // looks at what there is: print, sharding_group
    const List<Sharding>& found = annotations_.of(i);
    const DeviceAxes kept = kept_summands(found);
    const Division division = choose_division(found, kept);
    const OpFactors& f = division.factors();
    Sharding natural;
    natural.unreduced = kept.empty() ? division.summands() : kept;
    if (const auto holder = one_device()) {
      natural.form = Form::maximal;
      natural.device = *holder;
    } else {
      bool gathered = false;
      for (std::size_t n = 0; n < node_.operands.size(); ++n) {
        const TensorId t = node_.operands[n];
        if (!type(t).tensor()) continue;
        Sharding required = division.of(f.operands[n]);
        const bool alone = linear_in(i, n) == Linear::alone && layout_.of(t).unreduced.empty();
        if (!alone) required.unreduced = kept;
        gathered = gathered || (!f.known && layout_.of(t).divides());
        node_.operands[n] = convert(t, required);
      }
      if (gathered && layout_.writing()) ++undivided_[std::string(i.name)];
    }
    for (std::size_t r = 0; r < node_.results.size(); ++r) {
      const TensorId t = node_.results[r];
      natural.dims = division.of(f.results[r]).dims;
      layout_.set(t, natural);
      if (r < found.size() && found[r].form != Form::unknown) {
        targets_.emplace_back(t, layout_.wanted(found[r], t));
        leave_to_user(t, targets_.back().second);
      } else if (!natural.unreduced.empty() && !users_.constrained_next(t, node_.loop)) {
        targets_.emplace_back(t, natural);
        targets_.back().second.unreduced.clear();
        leave_to_user(t, targets_.back().second);
      }
    }
  }

  // Summands that the only user adds up itself, or goes on with, are not added up before it.
  void leave_to_user(TensorId t, Sharding& target) {
    const DeviceAxes& summed = annotations_.summed(t);
    if (summed.empty() || users_.count(t) != 1 || !target.unreduced.empty()) return;
    for (const DeviceAxis& axis : common(layout_.of(t).unreduced, summed)) {
      const bool divides =
          std::ranges::any_of(target.dims, [&](const DeviceAxes& dim) { return overlap({axis}, dim); });
      if (!divides) target.unreduced.push_back(axis);
    }
  }

  // The device that alone has operands of an op none of which is divided.
  std::optional<std::int64_t> one_device() {
    std::optional<std::int64_t> device;
    for (const TensorId t : node_.operands) {
      const Sharding& here = layout_.of(t);
      if (here.divides()) return std::nullopt;
      if (here.form == Form::maximal) device = here.device;
    }
    return device;
  }

  Program& program_;
  PartitionResult result_;
  ProgramAnnotations annotations_;
  Layout layout_;
  ValueUsers users_;
  std::unordered_map<TensorId, Sharding> follows_;  // values that are made as their users need them
  std::string own_collective_;
  std::map<std::string, std::int64_t> undivided_;

  // Where the pass is.
  List<int> open_loops_;
  std::set<const Instruction*> inside_manual_;
  Node node_;
  std::vector<std::pair<TensorId, Sharding>> targets_;  // what results become after the node
};

}  // namespace

std::optional<std::string_view> sharding_text(const std::vector<Attribute>& attributes) {
  std::optional<std::string_view> hlo;
  for (const Attribute& attribute : attributes) {
    // Without a value the key is where the error is.
    const std::string_view text = attribute.text.empty() ? attribute.key : attribute.text;
    if (attribute.key == "sdy.sharding") return text;
    if (attribute.key == "mhlo.sharding") hlo = text;
  }
  return hlo ? hlo : frontend_sharding(attributes, "xla.sdy.sharding");
}

PartitionResult partition(Program& program, const PartitionOptions& options) {
  return Partitioner(program, options).run();
}

}  // namespace llmperf::program
