#include "graph/hlo/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "graph/hlo/resharding.h"

namespace llmperf::graph::hlo {
namespace {

using Form = Sharding::Form;

constexpr std::size_t kMaxNotes = 8;

// Whether the devices of `outer` are the major ones of `axes`.
bool starts_with(const DeviceAxes& axes, const DeviceAxes& outer) {
  const DeviceAxes mine = cut_by(axes, outer).value_or(axes);
  const DeviceAxes theirs = cut_by(outer, axes).value_or(outer);
  return theirs.size() <= mine.size() && std::equal(theirs.begin(), theirs.end(), mine.begin());
}

}  // namespace

void Layout::begin(bool writing) {
  writing_ = writing;
  states_.assign(program_.tensors.size(), {});
  known_.assign(program_.tensors.size(), false);
  local_.assign(program_.tensors.size(), false);
}

const Sharding& Layout::of(TensorId t) {
  const auto at = static_cast<std::size_t>(t);
  if (known_[at]) return states_[at];
  known_[at] = true;
  const TensorId before = program_.tensor(t).same;
  if (before != kNone && before != t) {
    Sharding same = of(before);
    same.unreduced.clear();
    states_[at] = std::move(same);
  }
  return states_[at];
}

void Layout::set(TensorId t, Sharding sharding) {
  sharding.open.clear();
  sharding.replicated.clear();
  sharding.manual.clear();
  sharding.dims.resize(rank(t));
  known_[static_cast<std::size_t>(t)] = true;
  states_[static_cast<std::size_t>(t)] = std::move(sharding);
}

TensorId Layout::now(TensorId t) const {
  for (auto found = moved_.find(t); found != moved_.end(); found = moved_.find(t)) t = found->second;
  return t;
}

Sharding Layout::wanted(const Sharding& annotation, const Sharding& here, TensorId t) const {
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

bool Layout::fits(TensorId t, const Sharding& target) {
  const Sharding& here = of(t);
  return here.form == Form::manual || target.form == Form::manual || !program_.type(t).tensor() ||
         here.same_parts(target);
}

TensorId Layout::copy_of(TensorId t, Sharding sharding) {
  Tensor copy = program_.tensor(t);
  copy.same = kNone;
  const auto id = static_cast<TensorId>(program_.tensors.size());
  program_.tensors.push_back(std::move(copy));
  states_.emplace_back();
  known_.push_back(false);
  local_.push_back(local(t));
  set(id, std::move(sharding));
  return id;
}

TensorId Layout::convert(TensorId t, const Sharding& target, const Node& cause) {
  if (fits(t, target)) return t;
  for (const auto& [sharding, other] : converted_[t]) {
    if (sharding.same_parts(target)) return other;
  }
  TensorId last = t;
  for (ReshardingStep& step : resharding(of(t), target, rank(t), devices_)) {
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

void Layout::write(Node node) {
  for (const TensorId t : node.results) {
    program_.tensors[static_cast<std::size_t>(t)].node = static_cast<NodeId>(written_.size());
  }
  written_.push_back(std::move(node));
}

std::int64_t Layout::finish() {
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

}  // namespace llmperf::graph::hlo
