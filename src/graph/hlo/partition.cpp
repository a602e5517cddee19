#include "graph/hlo/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "graph/hlo/annotations.h"
#include "graph/hlo/division.h"
#include "graph/hlo/functions.h"
#include "graph/hlo/layout.h"
#include "graph/hlo/replica_groups.h"
#include "graph/hlo/sharding_text.h"
#include "graph/hlo/value_users.h"

namespace llmperf::graph::hlo {
namespace {

using Form = Sharding::Form;

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
      fail_at(*program_.module, annotations_.place(),
              fmt::format("this sharding is over {} devices, and there are {}", named, count),
              fmt::format("--devices {}", named));
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
    const bool single = users_.count(t) == 1 && (maker.traits.op_class == OpClass::elementwise || rearranges(maker));
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
    std::vector<int> entered;
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
    const std::vector<Sharding>& found = annotations_.of(*loop(index).instruction);
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
      if (layout_.writing()) program_.tensors[static_cast<std::size_t>(t)].same = moved;
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
    const std::vector<Sharding>& found = annotations_.of(i);
    for (std::size_t n = 0; n < std::min(node_.operands.size(), found.size()); ++n) {
      const TensorId t = node_.operands[n];
      node_.operands[n] = convert(t, layout_.wanted(found[n], t));
    }
  }

  void constrain(const Instruction& i) {
    const std::vector<Sharding>& found = annotations_.of(i);
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
    const std::vector<Sharding>& outside = enters ? manual.in : manual.out;
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
    const std::vector<Sharding>& found = annotations_.of(i);
    for (std::size_t n = 0; n < node_.results.size(); ++n) {
      layout_.set(node_.results[n], n < found.size() && found[n].form == Form::tiled ? found[n] : Sharding{});
      layout_.set_local(node_.results[n], enters);
    }
  }

  // Summands that stay summands: of what is only written otherwise, and of what the op is linear in where its result is
  // said to have them.
  DeviceAxes kept_summands(const std::vector<Sharding>& found) {
    if (rearranges(node_) && !node_.operands.empty()) return layout_.of(node_.operands[0]).unreduced;
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
  Division choose_division(const std::vector<Sharding>& found, const DeviceAxes& summands) {
    Division division(op_factors(program_, node_));
    division.reserve(summands);
    const OpFactors& f = division.factors();
    const OpClass c = node_.traits.op_class;
    const bool flexible =
        c == OpClass::elementwise || c == OpClass::broadcast || node_.operands.empty() || rearranges(node_);
    for (std::size_t r = 0; flexible && r < node_.results.size(); ++r) {
      const TensorId t = node_.results[r];
      if (const auto follows = follows_.find(t); follows != follows_.end()) {
        division.offer(f.results[r], follows->second, type(t).dims);
      }
      if (r < found.size() && found[r].form == Form::tiled) division.offer(f.results[r], found[r], type(t).dims);
    }
    std::vector<std::size_t> order(node_.operands.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return type(node_.operands[a]).bytes() > type(node_.operands[b]).bytes();
    });
    // Of a product what the result keeps comes first: a batch over the devices that weights are stored over stays, and
    // the weights are gathered.
    for (const std::size_t n : order) {
      if (c != OpClass::product) break;
      Sharding kept = layout_.of(node_.operands[n]);
      for (std::size_t dim = 0; dim < std::min(kept.dims.size(), f.operands[n].size()); ++dim) {
        const int label = f.operands[n][dim];
        const bool in_result = std::any_of(f.results.begin(), f.results.end(), [&](const std::vector<int>& result) {
          return std::find(result.begin(), result.end(), label) != result.end();
        });
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
    const std::vector<Sharding>& found = annotations_.of(i);
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
      const bool divides = std::any_of(target.dims.begin(), target.dims.end(),
                                       [&](const DeviceAxes& dim) { return overlap({axis}, dim); });
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
  std::vector<int> open_loops_;
  std::set<const Instruction*> inside_manual_;
  Node node_;
  std::vector<std::pair<TensorId, Sharding>> targets_;  // what results become after the node
};

}  // namespace

PartitionResult partition(Program& program, const PartitionOptions& options) {
  return Partitioner(program, options).run();
}

}  // namespace llmperf::graph::hlo
