#include "graph/hlo/flatten.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/number.h"
#include "base/text.h"
#include "graph/hlo/extents.h"
#include "graph/hlo/flattener.h"

namespace llmperf::graph::hlo {
namespace {

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

// Whether an op of HLO is in it, where it would run. `foreign`: the first op of another dialect up to there.
bool has_hlo(const Block& block, const Instruction*& foreign) {
  for (const Instruction& i : block.body) {
    if (is_hlo(i.name)) return true;
    if (is_foreign(i.name)) {
      if (foreign == nullptr) foreign = &i;
    } else if (std::any_of(i.regions.begin(), i.regions.end(), [&](const Block& b) { return has_hlo(b, foreign); })) {
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

}  // namespace

Flattener::Flattener(const Module& module, const FlattenOptions& options)
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

Program Flattener::run() {
  refuse_foreign(module_);
  const std::vector<const Function*> entries = functions_.entries(options_.entry);
  if (entries.size() > 1) {
    program_.notes.push_back(fmt::format(
        "{} functions that nothing calls are counted one after another; --entry NAME takes one", entries.size()));
  }
  double size = 0;
  for (const Function* f : entries) size += functions_.unfolded(*f);
  if (size > static_cast<double>(options_.max_nodes)) {
    throw Error(ErrorKind::bad_input,
                {{module_.source->position(entries.front()->offset),
                  fmt::format("the program unfolds to {} ops, more than {}", format_count(size), options_.max_nodes),
                  "--entry NAME takes a part of it"}});
  }
  read_aliases();
  for (const Function* f : entries) {
    std::vector<TensorId> arguments;
    for (std::size_t n = 0; n < f->body.arguments.size(); ++n) {
      const ValueId value = f->body.arguments[n];
      const TensorId id = tensor(argument_type(value), module_.values[value].name);
      program_.tensors.back().parameter = true;
      arguments.push_back(id);
      program_.arguments.push_back(id);
      program_.argument_attributes.push_back(n < f->argument_attributes.size() ? f->argument_attributes[n]
                                                                               : std::vector<Attribute>{});
      program_.tensors.back().donated = donated(*f, n);
    }
    const std::vector<TensorId> results = call(*f, arguments, nullptr);
    program_.results.insert(program_.results.end(), results.begin(), results.end());
  }
  check_trips();
  for (const Extent& e : options_.extents) {
    if (e.value.empty() || used_extents_.contains({e.value, e.axis})) continue;
    throw Error::bad_input(fmt::format("--dim: dimension {} of %{} is not dynamic, or there is none", e.axis, e.value),
                           "leave it out");
  }
  collect_unknown();
  return std::move(program_);
}

bool Flattener::donated(const Function& f, std::size_t argument) const {
  if (argument < f.argument_attributes.size()) {
    for (const Attribute& a : f.argument_attributes[argument]) {
      if (a.key == "tf.aliasing_output" || (a.key == "jax.buffer_donor" && a.text != "false")) return true;
    }
  }
  return donated_.contains(static_cast<std::int64_t>(argument));
}

// [{alias = {kind = "may_alias", parameter_index = array<i64>, parameter_number = 0 : i64}, output_index = …}, …]
void Flattener::read_aliases() {
  constexpr std::string_view kNumber = "parameter_number";
  for (const Attribute& a : module_.attributes) {
    if (a.key != "mhlo.input_output_alias") continue;
    for (std::size_t at = a.text.find(kNumber); at != std::string_view::npos; at = a.text.find(kNumber, at + 1)) {
      const std::vector<std::int64_t> number = integers(a.text.substr(at, a.text.find_first_of(",}", at) - at));
      if (!number.empty()) donated_.insert(number[0]);
    }
  }
}

// What the block returns.
std::vector<TensorId> Flattener::block(const Block& block) {
  for (const Instruction& i : block.body) {
    if (is_return(i)) return operands_of(i);
    instruction(i);
  }
  return {};
}

TensorId Flattener::tensor(Type type, std::string_view name) {
  const auto id = static_cast<TensorId>(program_.tensors.size());
  Tensor& t = program_.tensors.emplace_back();
  t.type = std::move(type);
  t.name = name;
  return id;
}

std::vector<TensorId> Flattener::operands_of(const Instruction& i) {
  std::vector<TensorId> ids;
  ids.reserve(i.operands.size());
  for (const ValueId value : i.operands) {
    if (environment_[value] == kNone) module_.fail(i, fmt::format("%{} has no value here", module_.values[value].name));
    ids.push_back(environment_[value]);
  }
  return ids;
}

void Flattener::set_results(const Instruction& i, const std::vector<TensorId>& values, std::string_view what) {
  if (values.size() < i.results.size()) {
    module_.fail(i, fmt::format("{} results, and {} returns {}", i.results.size(), what, values.size()));
  }
  // What an annotated call or conditional returns lies as the annotation says.
  const bool tuples = std::any_of(values.begin(), values.end(), [&](TensorId t) { return tuples_.contains(t); });
  const std::vector<TensorId> handed = annotated(i) && !tuples ? boundary(i, values, i.results) : values;
  for (std::size_t n = 0; n < i.results.size(); ++n) environment_[i.results[n]] = handed[n];
}

std::optional<std::int64_t> Flattener::bound_extent(std::string_view value, std::size_t axis) const {
  for (const Extent& e : options_.extents) {
    if (e.value == value && e.axis == static_cast<std::int64_t>(axis) && !e.value.empty()) {
      used_extents_.emplace(e.value, e.axis);
      return e.extent;
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> Flattener::default_extent() const {
  for (const Extent& e : options_.extents) {
    if (e.value.empty()) return e.extent;
  }
  return std::nullopt;
}

void Flattener::fail_extent(SourcePosition where, std::string_view value, const Type& type, std::size_t axis) const {
  std::string hint = fmt::format("--dim {}.{}=N gives it, --dim N all such extents", value, axis);
  if (axis < type.bounds.size() && type.bounds[axis] != kDynamic) {
    hint += fmt::format("; the text bounds it by {}", type.bounds[axis]);
  }
  throw Error(ErrorKind::bad_input,
              {{std::move(where),
                type.unranked ? fmt::format("%{} has a dynamic rank", value)
                              : fmt::format("dimension {} of %{} ({}) is dynamic", axis, value, text_of(type)),
                type.unranked ? std::string{} : std::move(hint)}});
}

Type Flattener::argument_type(ValueId value) const {
  Type type = module_.type(value);
  const std::string_view name = module_.values[value].name;
  if (type.unranked) fail_extent(position(value), name, type, 0);
  for (std::size_t axis = 0; axis < type.dims.size(); ++axis) {
    if (type.dims[axis] != kDynamic) continue;
    auto extent = bound_extent(name, axis);
    if (!extent) extent = default_extent();
    if (!extent) fail_extent(position(value), name, type, axis);
    type.dims[axis] = *extent;
  }
  return type;
}

Type Flattener::result_type(const Instruction& i, const Traits& traits, ValueId value,
                            const std::vector<const Tensor*>& operands) {
  Type type = module_.type(value);
  if (!type.dynamic() || type.form != Type::Form::tensor) return type;
  const std::string_view name = module_.values[value].name;
  if (type.unranked) fail_extent(module_.position(i), name, type, 0);
  for (std::size_t axis = 0; axis < type.dims.size(); ++axis) {
    if (type.dims[axis] != kDynamic) continue;
    auto extent = bound_extent(name, axis);
    if (!extent) extent = infer_extent(i, traits, type, axis, operands);
    if (extent && *extent < 0) extent.reset();
    if (!extent) extent = default_extent();
    if (!extent) fail_extent(module_.position(i), name, type, axis);
    type.dims[axis] = *extent;
  }
  return type;
}

Traits Flattener::resolve(const Instruction& i) {
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

void Flattener::instruction(const Instruction& i) {
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
  Node node;
  node.instruction = &i;
  node.traits = traits;
  node.operands = operands_of(i);
  plain(std::move(node));
}

void Flattener::add_node(Node node) {
  if (++made_ > options_.max_nodes) {
    module_.fail(*node.instruction, fmt::format("the program unfolds to more than {} ops", options_.max_nodes));
  }
  node.loop = loop_;
  node.fusion = fusion_;
  program_.nodes.push_back(std::move(node));
}

void Flattener::plain(Node node) {
  const Instruction& i = *node.instruction;
  std::vector<const Tensor*> operands;
  for (const TensorId id : node.operands) operands.push_back(&at(id));
  const bool constant =
      i.op() == "constant" ||
      (!operands.empty() && std::all_of(operands.begin(), operands.end(), [](const Tensor* t) { return t->constant; }));
  std::vector<Tensor> results;
  for (const ValueId value : i.results) {
    Tensor t;
    t.type = result_type(i, node.traits, value, operands);
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
  add_node(std::move(node));
}

// A tuple that an op returns is its members.
void Flattener::results_of(TensorId id, std::vector<TensorId>& results) {
  const Tensor whole = at(id);
  if (whole.type.form != Type::Form::tuple) {
    results.push_back(id);
    return;
  }
  std::vector<TensorId> members;
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
bool Flattener::rearranges_parameter(const Instruction& i, const Traits& traits,
                                     const std::vector<const Tensor*>& operands) {
  if (operands.empty() || !operands[0]->parameter) return false;
  switch (traits.op_class) {
    case OpClass::free:
    case OpClass::slice: return true;
    case OpClass::movement:
    case OpClass::broadcast:
      return std::all_of(operands.begin(), operands.end(), [](const Tensor* t) { return t->parameter || t->constant; });
    case OpClass::elementwise: return i.op() == "convert";
    default: return false;
  }
}

// Tuples and barriers have the values themselves for results.
bool Flattener::run_tuple(const Instruction& i) {
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
    const std::vector<std::int64_t> index = integers(text.value_or(std::string_view{}));
    if (members == tuples_.end() || index.empty() || index[0] < 0 ||
        static_cast<std::size_t>(index[0]) >= members->second.size()) {
      return false;
    }
    environment_[i.results[0]] = members->second[static_cast<std::size_t>(index[0])];
    return true;
  }
  if (op == "optimization_barrier" && i.results.size() == i.operands.size() && !annotated(i)) {
    set_results(i, operands_of(i), "the barrier");
    return true;
  }
  return false;
}

void Flattener::collect_unknown() {
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

Program flatten(const Module& module, const FlattenOptions& options) { return Flattener(module, options).run(); }

}  // namespace llmperf::graph::hlo
