// Calls, fusions, loops and branches of a program put in line.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "graph/hlo/flattener.h"
#include "graph/hlo/rough_cost.h"

namespace llmperf::graph::hlo {
namespace {

constexpr std::int64_t kMaxCount = std::int64_t{1} << 50;  // executions of one op

}  // namespace

std::vector<TensorId> Flattener::call(const Function& f, const std::vector<TensorId>& arguments,
                                      const Instruction* from) {
  if (from != nullptr && arguments.size() != f.body.arguments.size()) {
    module_.fail(*from,
                 fmt::format("@{} takes {} arguments and gets {}", f.name, f.body.arguments.size(), arguments.size()));
  }
  if (std::find(stack_.begin(), stack_.end(), &f) != stack_.end()) {
    module_.fail(*from, fmt::format("@{} calls itself", f.name));
  }
  if (stack_.size() >= kMaxCalls) module_.fail(*from, fmt::format("calls are nested more than {} deep", kMaxCalls));
  stack_.push_back(&f);
  for (std::size_t n = 0; n < arguments.size(); ++n) environment_[f.body.arguments[n]] = arguments[n];
  std::vector<TensorId> results = block(f.body);
  stack_.pop_back();
  return results;
}

void Flattener::run_call(const Instruction& i) {
  const Function* f = functions_.find(callee_of(i), chunk());
  if (f == nullptr && i.regions.size() == 1) return run_region(i);  // async_start of one op
  if (f == nullptr || f->declared) {
    Node node;
    node.instruction = &i;
    node.operands = operands_of(i);
    return plain(std::move(node));
  }
  set_results(i, call(*f, operands_of(i), &i), fmt::format("@{}", f->name));
}

// A fusion runs its region in one kernel; a computation over manual axes has shapes of its own.
void Flattener::run_region(const Instruction& i) {
  if (i.regions.size() != 1 || i.regions[0].arguments.size() > i.operands.size()) {
    Node node;
    node.instruction = &i;
    node.operands = operands_of(i);
    return plain(std::move(node));
  }
  const Block& body = i.regions[0];
  const bool manual = i.op() == "manual_computation";
  const int outer = fusion_;
  if (i.op() == "fusion" && fusion_ < 0) fusion_ = fusions_++;
  const std::vector<TensorId> operands = operands_of(i);
  std::vector<TensorId> inside = operands;
  if (manual) inside = boundary(i, operands, body.arguments);
  for (std::size_t n = 0; n < body.arguments.size(); ++n) environment_[body.arguments[n]] = inside[n];
  std::vector<TensorId> results = block(body);
  if (manual) results = boundary(i, results, i.results);
  fusion_ = outer;
  set_results(i, results, "the region");
}

// The same values with the types they have on the other side.
std::vector<TensorId> Flattener::boundary(const Instruction& i, const std::vector<TensorId>& values,
                                          const std::vector<ValueId>& others) {
  Node node;
  node.instruction = &i;
  node.traits = {OpClass::free, 0};
  node.operands = values;
  std::vector<TensorId> results = values;
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

void Flattener::multiply(std::size_t from, std::size_t to, std::int64_t times, const Instruction& i) {
  for (std::size_t n = from; n < to; ++n) {
    Node& node = program_.nodes[n];
    if (node.count > kMaxCount / std::max<std::int64_t>(1, times)) {
      module_.fail(i, "this loop makes an op run more than 10^15 times");
    }
    node.count *= times;
  }
}

void Flattener::run_loop(const Instruction& i) {
  if (i.regions.size() != 2) module_.fail(i, "a while loop has two regions, its condition and its body");
  const std::vector<TensorId> inits = operands_of(i);
  const int outer = loop_;
  Loop loop;
  loop.instruction = &i;
  loop.parent = outer;
  loop.name = i.results.empty() ? fmt::format("line {}", i.line) : "%" + std::string(module_.values[i.results[0]].name);
  std::vector<TensorId> arguments;
  for (const TensorId init : inits) arguments.push_back(loop_argument(init));
  loop.arguments = members_of(arguments);
  const std::size_t index = program_.loops.size();
  loop_ = static_cast<int>(index);
  program_.loops.push_back(loop);
  const std::size_t begin = program_.nodes.size();
  const std::vector<TensorId> condition = run_loop_region(i, i.regions[0], arguments);
  const std::size_t middle = program_.nodes.size();
  const std::vector<TensorId> yielded = run_loop_region(i, i.regions[1], arguments);
  const std::size_t end = program_.nodes.size();
  loop.yielded = members_of(yielded);
  const std::vector<TensorId> initial = members_of(inits);
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
        fmt::format("the loop {} in line {} is counted {} times, the most that it can run: --trip-count {}=N",
                    loop.name, i.line, loop.trips, loop.name));
  }
  if (!trips) {
    program_.notes.push_back(
        fmt::format("the loop {} in line {} is counted once, its number of passes is not known: "
                    "--trip-count {}=N",
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
std::vector<TensorId> Flattener::members_of(const std::vector<TensorId>& values) const {
  std::vector<TensorId> members;
  for (const TensorId value : values) {
    if (const auto tuple = tuples_.find(value); tuple != tuples_.end()) {
      const std::vector<TensorId> inner = members_of(tuple->second);
      members.insert(members.end(), inner.begin(), inner.end());
    } else {
      members.push_back(value);
    }
  }
  return members;
}

// A value that is `init` at first, and a tuple of such values for a tuple.
TensorId Flattener::loop_argument(TensorId init) {
  const Tensor initial = at(init);
  const TensorId id = tensor(initial.type, initial.name);
  at(id).same = init;
  at(id).parameter = initial.parameter;
  if (const auto members = tuples_.find(init); members != tuples_.end()) {
    std::vector<TensorId> inside;
    for (const TensorId member : std::vector(members->second)) inside.push_back(loop_argument(member));
    tuples_[id] = std::move(inside);
  }
  return id;
}

std::vector<TensorId> Flattener::run_loop_region(const Instruction& i, const Block& body,
                                                 const std::vector<TensorId>& values) {
  if (body.arguments.size() != values.size()) {
    module_.fail(i, fmt::format("the loop has {} values and its region {}", values.size(), body.arguments.size()));
  }
  for (std::size_t n = 0; n < values.size(); ++n) environment_[body.arguments[n]] = values[n];
  return block(body);
}

std::optional<std::int64_t> Flattener::explicit_trips(const std::string& name, const Instruction& i) {
  const std::string line = fmt::format("line:{}", i.line);
  auto found = options_.trips.find(line);
  if (found == options_.trips.end()) found = options_.trips.find(name.starts_with('%') ? name.substr(1) : name);
  if (found == options_.trips.end()) return std::nullopt;
  std::set<int>& lines = used_trips_[found->first];
  lines.insert(i.line);
  if (lines.size() > 1) {
    module_.fail(i,
                 fmt::format("--trip-count: {} is the name of several loops, in lines {} and {}", name, *lines.begin(),
                             *lines.rbegin()),
                 fmt::format("--trip-count {}=N is about this one alone", line));
  }
  return found->second;
}

void Flattener::check_trips() const {
  for (const auto& [name, trips] : options_.trips) {
    if (used_trips_.contains(name)) continue;
    std::vector<std::string> names;
    for (const Loop& loop : program_.loops) names.push_back(loop.name);
    throw Error::bad_input(fmt::format("--trip-count: there is no loop {}", quote("%" + name)),
                           names.empty() ? "the program has no loops" : name_hint("%" + name, names));
  }
}

// The costlier branch, or the one that a constant takes.
void Flattener::run_branch(const Instruction& i) {
  if (i.regions.empty()) module_.fail(i, "a conditional without branches");
  const std::vector<TensorId> operands = operands_of(i);
  const std::size_t begin = program_.nodes.size();
  const std::size_t loops = program_.loops.size();
  std::optional<std::size_t> known;
  if (!operands.empty() && at(operands[0]).integers.size() == 1) {
    const std::int64_t index = at(operands[0]).integers[0];
    const auto last = static_cast<std::int64_t>(i.regions.size()) - 1;
    // if: true takes the first branch; case: out of range takes the last.
    known =
        static_cast<std::size_t>(i.op() == "if" ? (index != 0 ? 0 : last) : (index < 0 || index > last ? last : index));
  }
  struct Taken {
    std::vector<Node> nodes;
    std::vector<Loop> loops;
    std::vector<TensorId> results;
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

}  // namespace llmperf::graph::hlo
