#include "program/annotations.h"

#include <fmt/format.h>

#include <algorithm>

#include "program/factors.h"
#include "program/sharding.h"

namespace llmperf::program {
namespace {

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
      constexpr std::int64_t kMaxRank = 256;
      if (dim < 0 || dim >= kMaxRank) continue;
      if (sharding.open.size() <= static_cast<std::size_t>(dim))
        sharding.open.resize(static_cast<std::size_t>(dim) + 1);
      sharding.open[dim] = true;
    }
  }
}

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

bool leads_into_shards(const Instruction& i) {
  const std::string_view target = custom_target_of(i);
  return target == "SPMDFullToShardShape" || target.ends_with("sdy.GlobalToLocalShape");
}
bool leads_out_of_shards(const Instruction& i) {
  const std::string_view target = custom_target_of(i);
  return target == "SPMDShardToFullShape" || target.ends_with("sdy.LocalToGlobalShape");
}

bool is_constraint(const Instruction& i) {
  const std::string_view target = custom_target_of(i);
  if (target == "Sharding" || target.ends_with("sdy.FuncResultSharding")) return true;
  constexpr std::string_view kHandOn[] = {"optimization_barrier", "while", "case", "if"};
  if (contains(kHandOn, i.op())) return true;
  if (i.dialect() != "sdy") return false;
  constexpr std::string_view kOps[] = {"sharding_constraint",  "reshard",
                                       "all_gather",           "all_slice",
                                       "all_to_all",           "reduce_scatter",
                                       "all_reduce",           "collective_permute",
                                       "sharded_to_unreduced", "replicated_to_unreduced"};
  return contains(kOps, i.op());
}

DeviceAxes summed_by(const Module& module, const Instruction& i) {
  if (i.dialect() != "sdy" || (i.op() != "all_reduce" && i.op() != "reduce_scatter")) return {};
  const auto sharding = i.find("out_sharding");
  const auto axes = i.unnamed();
  if (!sharding || !axes || sharding->size() < 2) return {};
  return parse_axis_list(module, parse_mesh(module, sharding->substr(1)), *axes);
}

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

Sharding without_axes(const Sharding& sharding, const DeviceAxes& axes) {
  Sharding rest = sharding;
  for (DeviceAxes& dim : rest.dims) {
    if (auto parts = cut_by(dim, axes)) dim = std::move(*parts);
    std::erase_if(dim, [&](const DeviceAxis& axis) { return overlap({axis}, axes); });
  }
  std::erase_if(rest.unreduced, [&](const DeviceAxis& axis) { return overlap({axis}, axes); });
  return rest;
}

Sharding with_free_axes(const Sharding& whole, const Sharding& before, const Sharding& after) {
  Sharding result = whole;
  for (std::size_t d = 0; d < std::min({whole.dims.size(), before.dims.size(), after.dims.size()}); ++d) {
    DeviceAxes more = after.dims[d];
    if (!take_outer(more, size_of(before.dims[d]))) continue;
    append(result.dims[d], more);
  }
  return result;
}

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

}  // namespace llmperf::program
