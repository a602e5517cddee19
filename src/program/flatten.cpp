#include "program/flatten.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/number.h"
#include "base/text.h"
#include "program/factors.h"
#include "program/module.h"
#include "program/ops.h"
#include "program/program.h"
#include "program/work.h"

namespace llmperf::program {
namespace {

void note_callees(const Block& block, std::set<std::string_view>& called) {
  for (const Instruction& i : block.body) {
    const std::string_view callee = callee_of(i);
    if (!callee.empty()) called.insert(callee);
    for (const Block& inner : i.regions) note_callees(inner, called);
  }
}

// Of the functions of one program of the file.
void add_entries(std::span<const Function> functions, std::vector<const Function*>& entries) {
  std::vector<const Function*> found;
  std::set<std::string_view> called;
  for (const Function& f : functions) {
    if (f.declared) continue;
    if (f.name == "main") {
      entries.push_back(&f);
      return;
    }
    found.push_back(&f);
    note_callees(f.body, called);
  }
  std::erase_if(found, [&](const Function* f) { return called.contains(f->name); });
  const bool some_public = std::ranges::any_of(found, [](const Function* f) { return !f->is_private; });
  if (some_public) std::erase_if(found, [](const Function* f) { return f->is_private; });
  entries.insert(entries.end(), found.begin(), found.end());
}

constexpr int kMaxCalls = 200;  // nested in one another

// The functions of a module: which one runs, and what one unfolds to.
class Functions {
 public:
  explicit Functions(const Module& module) : module_(module) {
    for (const Function& f : module.functions) by_name_.try_emplace({f.chunk, f.name}, &f);
  }

  // Of a program of the file; null when there is none.
  const Function* find(std::string_view name, int chunk) const {
    const std::size_t nested = name.rfind("::@");
    if (nested != std::string_view::npos) name.remove_prefix(nested + 3);
    const auto found = by_name_.find({chunk, name});
    return found == by_name_.end() ? nullptr : found->second;
  }

  // What runs: the function of that name; without one, of every program of the file @main, or all that nothing calls
  // (the public ones among them, if there are any). Throws Error(bad_input) when there is nothing to run.
  std::vector<const Function*> entries(const std::string& name) const {
    const std::vector<Function>& all = module_.functions;
    if (!name.empty()) {
      std::vector<std::string> names;
      for (const Function& f : all) {
        if (f.name == name && !f.declared) return {&f};
        names.emplace_back(f.name);
      }
      module_.fail(SourcePosition{module_.source->name(), 0, 0}, fmt::format("there is no function {}", quote(name)),
                   name_hint(name, names));
    }
    std::vector<const Function*> found;
    for (std::size_t begin = 0; begin < all.size();) {
      std::size_t end = begin;
      while (end < all.size() && all[end].chunk == all[begin].chunk) ++end;
      add_entries(std::span(all).subspan(begin, end - begin), found);
      begin = end;
    }
    if (found.empty()) {
      const auto body = std::ranges::find_if(all, [](const Function& f) { return !f.declared; });
      if (body != all.end()) {
        module_.fail(module_.source->position(body->offset),
                     "every function is called by another: there is none to begin with", "`entry` NAME takes one");
      }
      module_.fail(module_.source->position(0), "there are no ops in it",
                   "a StableHLO or MHLO module as text; bytecode is printed by stablehlo-opt");
    }
    return found;
  }

  // Ops that it unfolds to, without unfolding it.
  double unfolded(const Function& function) { return unfolded(function, 0); }

 private:
  double unfolded(const Function& f, int depth) {
    const auto found = unfolded_.find(&f);
    if (found != unfolded_.end()) return found->second;
    if (depth > kMaxCalls) return 0;  // the calls themselves are refused
    unfolded_[&f] = 0;                // of a function that calls itself, too
    const double size = unfolded(f.body, f.chunk, depth);
    return unfolded_[&f] = size;
  }

  double unfolded(const Block& block, int chunk, int depth) {
    double size = 0;
    for (const Instruction& i : block.body) {
      size += static_cast<double>(std::max<std::size_t>(1, i.results.size()));  // values take memory as ops do
      const std::string_view callee = callee_of(i);
      const Function* f = callee.empty() ? nullptr : find(callee, chunk);
      if (f != nullptr) size += unfolded(*f, depth + 1);
      const OpClass c = traits_of(i.name).op_class;
      if (c != OpClass::loop && c != OpClass::branch && c != OpClass::region && c != OpClass::free) continue;
      for (const Block& inner : i.regions) size += unfolded(inner, chunk, depth);
    }
    return size;
  }

  const Module& module_;
  std::map<std::pair<int, std::string_view>, const Function*> by_name_;
  std::unordered_map<const Function*, double> unfolded_;
};

// --- how often a while loop runs, where its text says it: a counter that starts at a constant, is stepped by one and
// is compared with another constant ---

enum class Direction : unsigned char { lt, le, gt, ge, ne, eq };

struct Comparison {
  std::string_view name;
  Direction swapped;   // with the sides exchanged
  Direction opposite;  // when it does not hold
};
// In the order of Direction.
constexpr Comparison kComparisons[] = {{"LT", Direction::gt, Direction::ge}, {"LE", Direction::ge, Direction::gt},
                                       {"GT", Direction::lt, Direction::le}, {"GE", Direction::le, Direction::lt},
                                       {"NE", Direction::ne, Direction::eq}, {"EQ", Direction::eq, Direction::ne}};

// LT of `compare LT, …`, #stablehlo<comparison_direction LT> or "LT".
std::optional<Direction> direction_of(const Instruction& i) {
  const auto named = i.find("comparison_direction");
  const std::string_view text = named ? *named : i.unnamed().value_or(std::string_view{});
  for (std::size_t direction = 0; direction < std::size(kComparisons); ++direction) {
    if (text.find(kComparisons[direction].name) != std::string_view::npos) return static_cast<Direction>(direction);
  }
  return std::nullopt;
}

Direction swapped(Direction d) { return kComparisons[static_cast<std::size_t>(d)].swapped; }
Direction opposite(Direction d) { return kComparisons[static_cast<std::size_t>(d)].opposite; }

constexpr std::int64_t kMostCounted = std::int64_t{1} << 50;

// Passes until start + n step is no longer `direction` limit.
std::optional<std::int64_t> count(std::int64_t start, std::int64_t step, Direction direction, std::int64_t limit) {
  if (std::max({start, step, limit}) > kMostCounted || std::min({start, step, limit}) < -kMostCounted)
    return std::nullopt;
  if (direction == Direction::gt || direction == Direction::ge) {
    // Counting down is counting up with the signs changed.
    start = -start;
    step = -step;
    limit = -limit;
    direction = direction == Direction::gt ? Direction::lt : Direction::le;
  }
  if (direction == Direction::le) {
    ++limit;
    direction = Direction::lt;
  }
  const std::int64_t distance = limit - start;
  if (direction == Direction::lt) {
    if (distance <= 0) return 0;
    if (step <= 0) return std::nullopt;
    return (distance + step - 1) / step;
  }
  if (direction == Direction::ne && step != 0 && distance % step == 0 && distance / step >= 0) return distance / step;
  return std::nullopt;
}

class Counters {
 public:
  // Takes note of an instruction whose (first) result is `result`, when it moves a counter.
  void note(const Instruction& i, TensorId result, const List<TensorId>& operands, const Program& program) {
    if (operands.empty()) return;
    const std::string_view op = i.op();
    const auto scalar = [&](TensorId id) {
      const Type& type = program.type(id);
      return type.tensor() && type.element.kind == ElementClass::integer && type.elements() == 1;
    };
    if (!scalar(operands[0])) return;
    if (op == "convert" || op == "reshape" || op == "copy") {
      moved_[result] = moved(operands[0]);
      return;
    }
    if (operands.size() != 2 || (op != "add" && op != "subtract")) return;
    const auto value = [&](TensorId id) {
      const auto integer = program.tensor(id).integer();
      return integer && *integer<kMostCounted&& * integer> - kMostCounted ? integer : std::nullopt;
    };
    const auto put = [&](TensorId base, std::int64_t by) {
      Moved m = moved(base);
      if (m.offset > kMostCounted || m.offset < -kMostCounted) return;
      m.offset += by;
      moved_[result] = m;
    };
    if (const auto by = value(operands[1])) {
      put(operands[0], op == "add" ? *by : -*by);
    } else if (const auto first = value(operands[0]); first && op == "add") {
      put(operands[1], *first);
    }
  }

  struct Trips {
    std::int64_t number = 0;
    bool exact = true;  // else the most: something that is not known may end the loop before
  };
  // Passes of a loop whose values are `inits` at first and whose condition returns `condition`.
  std::optional<Trips> trips(const Program& program, const Loop& loop, const List<TensorId>& inits, TensorId condition,
                             bool negated = false, int depth = 0) const {
    constexpr int kMaxDepth = 8;
    const Tensor& tensor = program.tensor(condition);
    if (const auto fixed = tensor.integer(); fixed && (*fixed == 0) != negated) return Trips{0, true};
    if (tensor.node == kNone || depth == kMaxDepth) return std::nullopt;
    const Node& node = program.node(tensor.node);
    const std::string_view op = node.instruction->op();
    if (op == "not" && node.operands.size() == 1) {
      return trips(program, loop, inits, node.operands[0], !negated, depth + 1);
    }
    if (node.operands.size() != 2) return std::nullopt;
    if (op == (negated ? "or" : "and")) {
      // It ends with the first of two.
      std::optional<Trips> least;
      bool both = true;
      for (const TensorId operand : node.operands) {
        if (const auto fixed = program.tensor(operand).integer(); fixed && (*fixed != 0) != negated)
          continue;  // never ends it
        const auto one = trips(program, loop, inits, operand, negated, depth + 1);
        both = both && one && one->exact;
        if (one && (!least || one->number < least->number)) least = one;
      }
      if (least) least->exact = both || (least->exact && least->number == 0);
      return least;
    }
    if (op != "compare") return std::nullopt;
    const auto found = direction_of(*node.instruction);
    if (!found) return std::nullopt;
    const auto number = compared(program, loop, inits, node, negated ? opposite(*found) : *found);
    return number ? std::optional(Trips{*number, true}) : std::nullopt;
  }

 private:
  std::optional<std::int64_t> compared(const Program& program, const Loop& loop, const List<TensorId>& inits,
                                       const Node& compare, Direction direction) const {
    for (int side = 0; side < 2; ++side) {
      const Moved counter = moved(compare.operands[side]);
      const auto limit = fixed(program, loop, inits, compare.operands[1 - side]);
      if (!limit) continue;
      for (std::size_t n = 0; n < loop.arguments.size(); ++n) {
        if (loop.arguments[n] != counter.base) continue;
        const Moved next = moved(loop.yielded[n]);
        const auto initial = program.tensor(inits[n]).integer();
        if (next.base != counter.base || !initial || *initial > kMostCounted || *initial < -kMostCounted) continue;
        return count(*initial + counter.offset, next.offset, side == 0 ? direction : swapped(direction), *limit);
      }
    }
    return std::nullopt;
  }

  struct Moved {  // base + offset
    TensorId base = kNone;
    std::int64_t offset = 0;
  };
  Moved moved(TensorId value) const {
    const auto found = moved_.find(value);
    return found == moved_.end() ? Moved{value, 0} : found->second;
  }

  // The value if it is the same in every pass.
  std::optional<std::int64_t> fixed(const Program& program, const Loop& loop, const List<TensorId>& inits,
                                    TensorId value) const {
    const Moved m = moved(value);
    if (const auto known = program.tensor(value).integer()) return known;
    std::optional<std::int64_t> base = program.tensor(m.base).integer();
    for (std::size_t n = 0; n < loop.arguments.size() && !base; ++n) {
      const bool kept =
          loop.arguments[n] == m.base && moved(loop.yielded[n]).base == m.base && moved(loop.yielded[n]).offset == 0;
      if (kept) base = program.tensor(inits[n]).integer();
    }
    if (!base || *base > kMostCounted || *base < -kMostCounted) return std::nullopt;
    return *base + m.offset;
  }

  std::unordered_map<TensorId, Moved> moved_;
};

bool annotated(const Instruction& i) { return i.find("sdy.sharding") || i.find("mhlo.sharding"); }

bool is_return(const Instruction& i) {
  return i.op() == "return" || i.op() == "return_v1" || i.op() == "yield" || i.op() == "assuming_yield";
}

// Operations that a reduction, a map or a comparator does per element: the element-wise ops of its region.
double region_operations(const Instruction& i) {
  double operations = 0;
  for (const Block& block : i.regions) {
    for (const Instruction& inner : block.body) {
      const Traits traits = traits_of(inner.name);
      if (traits.op_class == OpClass::elementwise) operations += traits.operations;
    }
  }
  return std::max(1.0, operations);
}

// Whether an op of HLO that works is in it (a constant does not), where it would run. `foreign`: the first op of
// another dialect up to there.
bool has_hlo(const Block& block, const Instruction*& foreign) {
  for (const Instruction& i : block.body) {
    if (is_hlo(i.name) && traits_of(i.name).op_class != OpClass::free) return true;
    if (is_foreign(i.name)) {
      if (foreign == nullptr) foreign = &i;
    } else if (std::ranges::any_of(i.regions, [&](const Block& b) { return has_hlo(b, foreign); })) {
      return true;
    }
  }
  return false;
}

// A program of which nothing is understood is no program without work.
void refuse_foreign(const Module& module) {
  const Instruction* foreign = nullptr;
  for (const Function& f : module.functions) {
    if (has_hlo(f.body, foreign)) return;
  }
  if (foreign != nullptr) module.fail(*foreign, foreign_message(foreign->name), kReadDialects);
}

constexpr std::int64_t kMaxCount = std::int64_t{1} << 50;  // executions of one op

class Flattener {
 public:
  Flattener(const Module& module, const FlattenOptions& options)
      : module_(module), options_(options), functions_(module) {
    program_.module = &module;
    environment_.assign(module.values.size(), kNone);
    if (options.custom_calls != nullptr) {
      calls_ = options.custom_calls;
    } else {
      built_in_ = CustomCalls::built_in();
      calls_ = &built_in_;
    }
  }

  Program run() {
    refuse_foreign(module_);
    const std::vector<const Function*> entries = functions_.entries(options_.entry);
    if (entries.size() > 1) {
      program_.notes.push_back(fmt::format(
          "{} functions that nothing calls are counted one after another; `entry` NAME takes one", entries.size()));
    }
    double size = 0;
    for (const Function* f : entries) size += functions_.unfolded(*f);
    if (size > static_cast<double>(options_.max_nodes)) {
      module_.fail(module_.source->position(entries.front()->offset),
                   fmt::format("the program unfolds to {} ops, more than {}", format_count(size), options_.max_nodes),
                   "`entry` NAME takes a part of it");
    }
    read_aliases();
    for (const Function* f : entries) {
      List<TensorId> arguments;
      for (std::size_t n = 0; n < f->body.arguments.size(); ++n) {
        const ValueId value = f->body.arguments[n];
        const TensorId id = tensor(known_type(value), module_.values[value].name);
        program_.tensors.back().parameter = true;
        arguments.push_back(id);
        program_.arguments.push_back(id);
        program_.argument_attributes.push_back(n < f->argument_attributes.size() ? f->argument_attributes[n]
                                                                                 : std::vector<Attribute>{});
        program_.tensors.back().donated = donated(*f, n);
      }
      const List<TensorId> results = call(*f, arguments, nullptr);
      program_.results.insert(program_.results.end(), results.begin(), results.end());
    }
    check_trips();
    for (const Extent& e : options_.extents) {
      if (e.value.empty() || used_extents_.contains({e.value, e.axis})) continue;
      throw Error::bad_input(
          fmt::format("`dim`: dimension {} of %{} is not dynamic, or there is none", e.axis, e.value), "leave it out");
    }
    collect_unknown();
    return std::move(program_);
  }

 private:
  // --- values and plain instructions
  // Whether an argument of the program is given away: JAX says it at the argument, XLA at the module.
  bool donated(const Function& f, std::size_t argument) const {
    if (argument < f.argument_attributes.size()) {
      for (const Attribute& a : f.argument_attributes[argument]) {
        if (a.key == "tf.aliasing_output" || (a.key == "jax.buffer_donor" && a.text != "false")) return true;
      }
    }
    return donated_.contains(static_cast<std::int64_t>(argument));
  }

  // [{alias = {kind = "may_alias", parameter_index = array<i64>, parameter_number = 0 : i64}, output_index = …}, …]
  void read_aliases() {
    constexpr std::string_view kNumber = "parameter_number";
    for (const Attribute& a : module_.attributes) {
      if (a.key != "mhlo.input_output_alias") continue;
      for (std::size_t at = a.text.find(kNumber); at != std::string_view::npos; at = a.text.find(kNumber, at + 1)) {
        const Integers number = integers(a.text.substr(at, a.text.find_first_of(",}", at) - at));
        if (!number.empty()) donated_.insert(number[0]);
      }
    }
  }

  // What the block returns.
  List<TensorId> block(const Block& block) {
    for (const Instruction& i : block.body) {
      if (is_return(i)) return operands_of(i);
      instruction(i);
    }
    return {};
  }

  int chunk() const { return stack_.empty() ? 0 : stack_.back()->chunk; }
  TensorId tensor(Type type, std::string_view name) {
    const auto id = static_cast<TensorId>(program_.tensors.size());
    Tensor& t = program_.tensors.emplace_back();
    t.type = std::move(type);
    t.name = name;
    return id;
  }

  Tensor& at(TensorId id) { return program_.tensors[id]; }
  List<TensorId> operands_of(const Instruction& i) {
    List<TensorId> ids;
    ids.reserve(i.operands.size());
    for (const ValueId value : i.operands) {
      if (environment_[value] == kNone)
        module_.fail(i, fmt::format("%{} has no value here", module_.values[value].name));
      ids.push_back(environment_[value]);
    }
    return ids;
  }

  void set_results(const Instruction& i, const List<TensorId>& values, std::string_view what) {
    if (values.size() < i.results.size()) {
      module_.fail(i, fmt::format("{} results, and {} returns {}", i.results.size(), what, values.size()));
    }
    // What an annotated call or conditional returns lies as the annotation says.
    const bool tuples = std::ranges::any_of(values, [&](TensorId t) { return tuples_.contains(t); });
    const List<TensorId> handed = annotated(i) && !tuples ? boundary(i, values, i.results) : values;
    for (std::size_t n = 0; n < i.results.size(); ++n) environment_[i.results[n]] = handed[n];
  }

  std::optional<std::int64_t> bound_extent(std::string_view value, std::size_t axis) const {
    for (const Extent& e : options_.extents) {
      if (e.value == value && e.axis == static_cast<std::int64_t>(axis) && !e.value.empty()) {
        used_extents_.emplace(e.value, e.axis);
        return e.extent;
      }
    }
    return std::nullopt;
  }

  std::optional<std::int64_t> default_extent() const {
    for (const Extent& e : options_.extents) {
      if (e.value.empty()) return e.extent;
    }
    return std::nullopt;
  }

  [[noreturn]] void fail_extent(SourcePosition where, std::string_view value, const Type& type,
                                std::size_t axis) const {
    if (type.unranked) module_.fail(std::move(where), fmt::format("%{} has a dynamic rank", value));
    std::string hint = fmt::format("`dim` {}.{}=N gives it, `dim` N all such extents", value, axis);
    if (axis < type.bounds.size() && type.bounds[axis] != kDynamic) {
      hint += fmt::format("; the text bounds it by {}", type.bounds[axis]);
    }
    module_.fail(std::move(where), fmt::format("dimension {} of %{} ({}) is dynamic", axis, value, text_of(type)),
                 std::move(hint));
  }

  SourcePosition position(ValueId value) const { return module_.source->position(module_.values[value].offset); }
  // Of an argument of the program, or of a result of an instruction.
  Type known_type(ValueId value, const Instruction* i = nullptr, const Traits& traits = {},
                  const std::vector<const Tensor*>& operands = {}) const {
    Type type = module_.type(value);
    if (!type.dynamic() || !type.tensor()) return type;
    const std::string_view name = module_.values[value].name;
    const auto fail = [&](std::size_t axis) {
      fail_extent(i != nullptr ? module_.position(*i) : position(value), name, type, axis);
    };
    if (type.unranked) fail(0);
    for (std::size_t axis = 0; axis < type.dims.size(); ++axis) {
      if (type.dims[axis] != kDynamic) continue;
      auto extent = bound_extent(name, axis);
      if (!extent && i != nullptr) extent = infer_extent(*i, traits, type, axis, operands);
      if (extent && *extent < 0) extent.reset();
      if (!extent) extent = default_extent();
      if (!extent) fail(axis);
      type.dims[axis] = *extent;
    }
    return type;
  }

  Traits resolve(const Instruction& i) {
    const auto [entry, fresh] = traits_.try_emplace(i.name);
    if (fresh) entry->second = traits_of(i.name);
    Traits traits = entry->second;
    switch (traits.op_class) {
      case OpClass::custom_call:
        if (const auto known = calls_->find(target_of(i))) {
          traits = *known;
        } else if (const Function* f = functions_.find(callee_of(i), chunk());
                   f != nullptr && !f->declared && f->body.arguments.size() == i.operands.size()) {
          traits.op_class = OpClass::call;
        } else {
          traits.op_class = OpClass::unknown;
        }
        break;
      case OpClass::reduce:
      case OpClass::window:
      case OpClass::sort: traits.operations = region_operations(i); break;
      case OpClass::update:
        traits.operations = i.regions.empty() || i.regions[0].body.size() < 2 ? 0 : region_operations(i);
        break;
      case OpClass::movement:  // torch-xla annotates with copies
        if (i.op() == "copy" && annotated(i)) traits.op_class = OpClass::free;
        break;
      case OpClass::elementwise:
        if (i.op() == "map") traits.operations = region_operations(i);
        break;
      default: break;
    }
    return traits;
  }

  void instruction(const Instruction& i) {
    const Traits traits = resolve(i);
    switch (traits.op_class) {
      case OpClass::call: return run_call(i);
      case OpClass::loop: return run_loop(i);
      case OpClass::branch: return run_branch(i);
      case OpClass::region: return run_region(i);
      case OpClass::free:
        if (!i.regions.empty()) return run_region(i);  // shape.assuming, mpmd.fragment
        break;
      default: break;
    }
    if (run_tuple(i)) return;
    plain(i, traits);
  }

  void add_node(Node node) {
    if (++made_ > options_.max_nodes) {
      module_.fail(*node.instruction, fmt::format("the program unfolds to more than {} ops", options_.max_nodes));
    }
    node.loop = loop_;
    node.fusion = fusion_;
    program_.nodes.push_back(std::move(node));
  }

  void plain(const Instruction& i, const Traits& traits = {}) {
    Node node{&i, traits};
    node.operands = operands_of(i);
    std::vector<const Tensor*> operands;
    for (const TensorId id : node.operands) operands.push_back(&at(id));
    const bool constant =
        i.op() == "constant" ||
        (!operands.empty() && std::ranges::all_of(operands, [](const Tensor* t) { return t->constant; }));
    List<Tensor> results;
    for (const ValueId value : i.results) {
      Tensor t;
      t.type = known_type(value, &i, node.traits, operands);
      t.name = module_.values[value].name;
      t.node = static_cast<NodeId>(program_.nodes.size());
      t.constant = constant;
      t.parameter = rearranges_parameter(i, node.traits, operands);
      t.integers = fold_integers(i, t.type, operands);
      results.push_back(std::move(t));
    }
    for (std::size_t n = 0; n < results.size(); ++n) {
      const auto id = static_cast<TensorId>(program_.tensors.size());
      if (n == 0) counters_.note(i, id, node.operands, program_);
      program_.tensors.push_back(std::move(results[n]));
      environment_[i.results[n]] = id;
      if (node.traits.op_class == OpClass::free || node.traits.op_class == OpClass::transfer) {
        node.results.push_back(id);
      } else {
        results_of(id, node.results);
      }
    }
    if (node.traits.op_class == OpClass::attention && !library_attention(program_, node)) {
      node.traits.op_class = OpClass::unknown;
    }
    add_node(std::move(node));
  }

  // A tuple that an op returns is its members.
  void results_of(TensorId id, List<TensorId>& results) {
    const Tensor whole = at(id);
    if (whole.type.form != Type::Form::tuple) {
      results.push_back(id);
      return;
    }
    List<TensorId> members;
    for (const Type& type : whole.type.members) {
      const TensorId member = tensor(type, whole.name);
      at(member).node = whole.node;
      at(member).constant = whole.constant;
      members.push_back(member);
      results_of(member, results);
    }
    tuples_[id] = std::move(members);
  }

  // Weights stay weights when they are only turned, cut or converted.
  static bool rearranges_parameter(const Instruction& i, const Traits& traits,
                                   const std::vector<const Tensor*>& operands) {
    if (operands.empty() || !operands[0]->parameter) return false;
    switch (traits.op_class) {
      case OpClass::free:
      case OpClass::slice: return true;
      case OpClass::movement:
      case OpClass::broadcast:
        return std::ranges::all_of(operands, [](const Tensor* t) { return t->parameter || t->constant; });
      case OpClass::elementwise: return i.op() == "convert";
      default: return false;
    }
  }

  // Tuples and barriers have the values themselves for results.
  bool run_tuple(const Instruction& i) {
    const std::string_view op = i.op();
    if (op == "tuple" && i.results.size() == 1) {
      const TensorId id = tensor(module_.type(i.results[0]), module_.values[i.results[0]].name);
      tuples_[id] = operands_of(i);
      environment_[i.results[0]] = id;
      return true;
    }
    if (op == "get_tuple_element" && i.results.size() == 1 && i.operands.size() == 1) {
      const auto members = tuples_.find(environment_[i.operands[0]]);
      const auto text = i.find("index") ? i.find("index") : i.unnamed();
      const Integers index = integers(text.value_or(std::string_view{}));
      if (members == tuples_.end() || index.empty() || index[0] < 0 ||
          static_cast<std::size_t>(index[0]) >= members->second.size()) {
        return false;
      }
      environment_[i.results[0]] = members->second[index[0]];
      return true;
    }
    if (op == "optimization_barrier" && i.results.size() == i.operands.size() && !annotated(i)) {
      set_results(i, operands_of(i), "the barrier");
      return true;
    }
    return false;
  }

  void collect_unknown() {
    std::map<std::string, Program::Unknown> unknown;
    for (const Node& node : program_.nodes) {
      if (node.traits.op_class != OpClass::unknown) continue;
      const Instruction& i = *node.instruction;
      std::string name(i.name);
      if (traits_of(i.name).op_class == OpClass::call) {
        name = fmt::format("function @{} without a body", callee_of(i));
      } else if (i.op() == "custom_call") {
        name = fmt::format("custom call {}", quote(target_of(i)));
      }
      Program::Unknown& entry = unknown[name];
      entry.name = name;
      if (entry.count == 0) entry.line = i.line;
      entry.count += node.count;
    }
    for (auto& [name, entry] : unknown) program_.unknown.push_back(std::move(entry));
  }

  // --- calls, fusions, loops and branches
  List<TensorId> call(const Function& f, const List<TensorId>& arguments, const Instruction* from) {
    if (from != nullptr && arguments.size() != f.body.arguments.size()) {
      module_.fail(
          *from, fmt::format("@{} takes {} arguments and gets {}", f.name, f.body.arguments.size(), arguments.size()));
    }
    if (contains(stack_, &f)) {
      module_.fail(*from, fmt::format("@{} calls itself", f.name));
    }
    if (stack_.size() >= kMaxCalls) module_.fail(*from, fmt::format("calls are nested more than {} deep", kMaxCalls));
    stack_.push_back(&f);
    for (std::size_t n = 0; n < arguments.size(); ++n) environment_[f.body.arguments[n]] = arguments[n];
    List<TensorId> results = block(f.body);
    stack_.pop_back();
    return results;
  }

  void run_call(const Instruction& i) {
    const Function* f = functions_.find(callee_of(i), chunk());
    if (f == nullptr && i.regions.size() == 1) return run_region(i);  // async_start of one op
    if (f == nullptr || f->declared) return plain(i);
    set_results(i, call(*f, operands_of(i), &i), fmt::format("@{}", f->name));
  }

  // A fusion runs its region in one kernel; a computation over manual axes has shapes of its own.
  void run_region(const Instruction& i) {
    if (i.regions.size() != 1 || i.regions[0].arguments.size() > i.operands.size()) return plain(i);
    const Block& body = i.regions[0];
    const bool manual = i.op() == "manual_computation";
    const int outer = fusion_;
    if (i.op() == "fusion" && fusion_ < 0) fusion_ = fusions_++;
    const List<TensorId> operands = operands_of(i);
    List<TensorId> inside = operands;
    if (manual) inside = boundary(i, operands, body.arguments);
    for (std::size_t n = 0; n < body.arguments.size(); ++n) environment_[body.arguments[n]] = inside[n];
    List<TensorId> results = block(body);
    if (manual) results = boundary(i, results, i.results);
    fusion_ = outer;
    set_results(i, results, "the region");
  }

  // The same values with the types they have on the other side.
  List<TensorId> boundary(const Instruction& i, const List<TensorId>& values, const List<ValueId>& others) {
    Node node{&i, {OpClass::free, 0}};
    node.operands = values;
    List<TensorId> results = values;
    for (std::size_t n = 0; n < std::min(values.size(), others.size()); ++n) {
      const bool parameter = at(values[n]).parameter;
      const Type& written = module_.type(others[n]);
      results[n] = tensor(written.dynamic() ? at(values[n]).type : written, module_.values[others[n]].name);
      at(results[n]).parameter = parameter;
      at(results[n]).same = values[n];
      at(results[n]).node = static_cast<NodeId>(program_.nodes.size());
      node.results.push_back(results[n]);
    }
    add_node(std::move(node));
    return results;
  }

  void multiply(std::size_t from, std::size_t to, std::int64_t times, const Instruction& i) {
    for (std::size_t n = from; n < to; ++n) {
      Node& node = program_.nodes[n];
      if (node.count > kMaxCount / std::max<std::int64_t>(1, times)) {
        module_.fail(i, "this loop makes an op run more than 10^15 times");
      }
      node.count *= times;
    }
  }

  void run_loop(const Instruction& i) {
    if (i.regions.size() != 2) module_.fail(i, "a while loop has two regions, its condition and its body");
    const List<TensorId> inits = operands_of(i);
    const int outer = loop_;
    Loop loop;
    loop.instruction = &i;
    loop.parent = outer;
    loop.name =
        i.results.empty() ? fmt::format("line {}", i.line) : "%" + std::string(module_.values[i.results[0]].name);
    List<TensorId> arguments;
    for (const TensorId init : inits) arguments.push_back(loop_argument(init));
    loop.arguments = members_of(arguments);
    const std::size_t index = program_.loops.size();
    loop_ = static_cast<int>(index);
    program_.loops.push_back(loop);
    const std::size_t begin = program_.nodes.size();
    const List<TensorId> condition = run_loop_region(i, i.regions[0], arguments);
    const std::size_t middle = program_.nodes.size();
    const List<TensorId> yielded = run_loop_region(i, i.regions[1], arguments);
    const std::size_t end = program_.nodes.size();
    loop.yielded = members_of(yielded);
    const List<TensorId> initial = members_of(inits);
    if (loop.yielded.size() != initial.size()) {
      module_.fail(i, fmt::format("the loop's body returns {} values for {}", loop.yielded.size(), initial.size()));
    }
    std::optional<std::int64_t> trips = explicit_trips(loop.name, i);
    std::optional<Counters::Trips> counted;
    if (!trips && condition.size() == 1) counted = counters_.trips(program_, loop, initial, condition[0]);
    if (counted) trips = counted->number;
    loop.known = trips && (!counted || counted->exact);
    loop.most = trips && !loop.known;
    loop.trips = trips.value_or(1);
    if (loop.most) {
      program_.notes.push_back(
          fmt::format("the loop {} in line {} is counted {} times, the most that it can run: `trip-count` {}=N",
                      loop.name, i.line, loop.trips, loop.name));
    }
    if (!trips) {
      program_.notes.push_back(
          fmt::format("the loop {} in line {} is counted once, its number of passes is not known: "
                      "`trip-count` {}=N",
                      loop.name, i.line, loop.name));
    }
    loop_ = outer;
    program_.loops[index] = loop;
    if (loop.trips == 0) {
      // The condition is asked once; nothing of the body runs.
      program_.nodes.resize(middle);
      program_.loops[index].yielded = loop.arguments;
      set_results(i, inits, "the loop");
      return;
    }
    multiply(begin, middle, loop.trips + 1, i);
    multiply(middle, end, loop.trips, i);
    set_results(i, yielded, "the loop");
  }

  // The values themselves, and the members of tuples in the place of tuples.
  List<TensorId> members_of(const List<TensorId>& values) const {
    List<TensorId> members;
    for (const TensorId value : values) {
      if (const auto tuple = tuples_.find(value); tuple != tuples_.end()) {
        const List<TensorId> inner = members_of(tuple->second);
        members.insert(members.end(), inner.begin(), inner.end());
      } else {
        members.push_back(value);
      }
    }
    return members;
  }

  // A value that is `init` at first, and a tuple of such values for a tuple.
  TensorId loop_argument(TensorId init) {
    const Tensor initial = at(init);
    const TensorId id = tensor(initial.type, initial.name);
    at(id).same = init;
    at(id).parameter = initial.parameter;
    if (const auto members = tuples_.find(init); members != tuples_.end()) {
      List<TensorId> inside;
      for (const TensorId member : std::vector(members->second)) inside.push_back(loop_argument(member));
      tuples_[id] = std::move(inside);
    }
    return id;
  }

  List<TensorId> run_loop_region(const Instruction& i, const Block& body, const List<TensorId>& values) {
    if (body.arguments.size() != values.size()) {
      module_.fail(i, fmt::format("the loop has {} values and its region {}", values.size(), body.arguments.size()));
    }
    for (std::size_t n = 0; n < values.size(); ++n) environment_[body.arguments[n]] = values[n];
    return block(body);
  }

  std::optional<std::int64_t> explicit_trips(const std::string& name, const Instruction& i) {
    const std::string line = fmt::format("line:{}", i.line);
    auto found = options_.trips.find(line);
    if (found == options_.trips.end()) found = options_.trips.find(name.starts_with('%') ? name.substr(1) : name);
    if (found == options_.trips.end()) return std::nullopt;
    std::set<int>& lines = used_trips_[found->first];
    lines.insert(i.line);
    if (lines.size() > 1) {
      module_.fail(i,
                   fmt::format("`trip-count`: {} is the name of several loops, in lines {} and {}", name,
                               *lines.begin(), *lines.rbegin()),
                   fmt::format("`trip-count` {}=N is about this one alone", line));
    }
    return found->second;
  }

  void check_trips() const {
    for (const auto& [name, trips] : options_.trips) {
      if (used_trips_.contains(name)) continue;
      std::vector<std::string> names;
      for (const Loop& loop : program_.loops) names.push_back(loop.name);
      throw Error::bad_input(fmt::format("`trip-count`: there is no loop {}", quote("%" + name)),
                             names.empty() ? "the program has no loops" : name_hint("%" + name, names));
    }
  }

  // The costlier branch, or the one that a constant takes.
  void run_branch(const Instruction& i) {
    if (i.regions.empty()) module_.fail(i, "a conditional without branches");
    const List<TensorId> operands = operands_of(i);
    const std::size_t begin = program_.nodes.size();
    const std::size_t loops = program_.loops.size();
    std::optional<std::size_t> known;
    if (const auto fixed = operands.empty() ? std::nullopt : at(operands[0]).integer()) {
      const std::int64_t index = *fixed;
      const auto last = static_cast<std::int64_t>(i.regions.size()) - 1;
      // if: true takes the first branch; case: out of range takes the last.
      known = static_cast<std::size_t>(i.op() == "if" ? (index != 0 ? 0 : last)
                                                      : (index < 0 || index > last ? last : index));
    }
    struct Taken {
      List<Node> nodes;
      List<Loop> loops;
      List<TensorId> results;
      std::size_t branch = 0;
      double cost = -1;
    } best;
    std::vector<std::string> notes = program_.notes;
    for (std::size_t n = 0; n < i.regions.size(); ++n) {
      if (known && *known != n) continue;
      const Block& branch = i.regions[n];
      // mhlo's older form passes each branch an operand.
      for (std::size_t k = 0; k < branch.arguments.size(); ++k) {
        const std::size_t operand = std::min(operands.size() - 1, 1 + n + k);
        if (operands.empty()) module_.fail(i, "a branch has arguments, and the conditional no operands");
        environment_[branch.arguments[k]] = operands[operand];
      }
      Taken taken;
      taken.results = block(branch);
      taken.branch = n;
      taken.cost = 0;
      for (std::size_t k = begin; k < program_.nodes.size(); ++k) {
        const Node& node = program_.nodes[k];
        const double cost = options_.cost ? options_.cost(program_, node) : rough_cost(program_, node);
        taken.cost += cost * static_cast<double>(node.count);
      }
      const auto from = program_.nodes.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto first_loop = program_.loops.begin() + static_cast<std::ptrdiff_t>(loops);
      taken.nodes.assign(std::make_move_iterator(from), std::make_move_iterator(program_.nodes.end()));
      taken.loops.assign(first_loop, program_.loops.end());
      program_.nodes.erase(from, program_.nodes.end());
      program_.loops.erase(first_loop, program_.loops.end());
      if (taken.cost > best.cost) {
        best = std::move(taken);
        notes = program_.notes;
      }
    }
    program_.notes = std::move(notes);
    if (!known && i.regions.size() > 1) {
      program_.notes.push_back(fmt::format("{} in line {}: branch {} of {} is counted, the costliest", i.name, i.line,
                                           best.branch, i.regions.size()));
    }
    program_.nodes.insert(program_.nodes.end(), std::make_move_iterator(best.nodes.begin()),
                          std::make_move_iterator(best.nodes.end()));
    program_.loops.insert(program_.loops.end(), best.loops.begin(), best.loops.end());
    set_results(i, best.results, "the branch");
  }

  const Module& module_;
  const FlattenOptions& options_;
  Functions functions_;
  CustomCalls built_in_;
  const CustomCalls* calls_ = nullptr;
  Program program_;
  Counters counters_;
  List<TensorId> environment_;  // by value: what it is now
  std::vector<const Function*> stack_;
  std::unordered_map<std::string_view, Traits> traits_;
  std::unordered_map<TensorId, List<TensorId>> tuples_;
  std::map<std::string, std::set<int>> used_trips_;  // by name: the lines of the loops
  mutable std::set<std::pair<std::string, std::int64_t>> used_extents_;
  std::set<std::int64_t> donated_;  // arguments, by the module's attribute
  int loop_ = -1;
  int fusion_ = -1;
  int fusions_ = 0;
  std::int64_t made_ = 0;
};

}  // namespace

Program flatten(const Module& module, const FlattenOptions& options) { return Flattener(module, options).run(); }

}  // namespace llmperf::program
