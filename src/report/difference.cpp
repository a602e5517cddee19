#include "report/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace llmperf::report {
namespace {

std::vector<InputChange> input_changes(const SavedResult& before, const SavedResult& after) {
  std::vector<InputChange> changes;
  if (before.version != after.version) changes.push_back({"llmperf", before.version, after.version});
  const auto find = [](const SavedResult& r, const std::string& name) {
    return std::find_if(r.inputs.begin(), r.inputs.end(), [&](const SavedInput& i) { return i.name == name; });
  };
  for (const SavedInput& input : before.inputs) {
    const auto other = find(after, input.name);
    const SavedValue value = other == after.inputs.end() ? SavedValue() : other->value;
    if (value != input.value) changes.push_back({input.name, input.value, value});
  }
  for (const SavedInput& input : after.inputs) {
    if (find(before, input.name) != before.inputs.end() || std::holds_alternative<std::monostate>(input.value))
      continue;
    changes.push_back({input.name, {}, input.value});
  }
  return changes;
}

// The error band that a headline time has; null for other numbers.
const char* band_of(const std::string& key) {
  if (key == "ttft_s") return "prefill";
  if (key == "tpot_s") return "decode";
  if (key == "generation_s") return "generation";
  return nullptr;
}

std::optional<bool> inside_band(const Difference& d, const FigureChange& figure) {
  const char* phase = band_of(figure.key);
  if (phase == nullptr || !figure.before || !figure.after) return std::nullopt;
  const SavedBand* before = d.before.band(phase);
  const SavedBand* after = d.after.band(phase);
  if (before == nullptr && after == nullptr) return std::nullopt;
  const SavedBand exactly_before{phase, *figure.before, *figure.before};
  const SavedBand exactly_after{phase, *figure.after, *figure.after};
  const SavedBand& a = before ? *before : exactly_before;
  const SavedBand& b = after ? *after : exactly_after;
  return a.low <= b.high && b.low <= a.high;
}

void add(OpState& state, const SavedOp& op) {
  if (!state.present || op.time > state.longest) {
    state.shape = op.shape;
    state.weights = op.weights;
    state.bound = op.bound;
    state.longest = op.time;
  }
  state.present = true;
  state.count += op.count;
  state.time += op.time;
  state.flops += op.flops;
  state.bytes += op.bytes;
  state.network += op.network;
}

OpChange& row(std::vector<OpChange>& ops, std::string_view name, std::string_view place) {
  const auto found =
      std::find_if(ops.begin(), ops.end(), [&](const OpChange& o) { return o.name == name && o.place == place; });
  if (found != ops.end()) return *found;
  OpChange& added = ops.emplace_back();
  added.name = name;
  added.place = place;
  return added;
}

void add_phase(const SavedPhase& phase, PhaseState PhaseChange::*state, OpState OpChange::*side, PhaseChange& change) {
  change.*state = {true, phase.bound, phase.time};
  for (const SavedOp& op : phase.ops) add(row(change.ops, op.name, op.place).*side, op);
  for (const auto& [name, saved] : {std::pair{kOverlapped, phase.overlapped}, std::pair{kPipelined, phase.pipelined}}) {
    if (saved == 0) continue;
    OpState& overlap = row(change.ops, name, "").*side;
    overlap.present = true;
    overlap.time = -saved;
  }
}

std::vector<PhaseChange> phase_changes(const SavedResult& before, const SavedResult& after) {
  std::vector<PhaseChange> changes;
  const auto phase_row = [&](const std::string& name) -> PhaseChange& {
    const auto found =
        std::find_if(changes.begin(), changes.end(), [&](const PhaseChange& p) { return p.name == name; });
    if (found != changes.end()) return *found;
    PhaseChange& added = changes.emplace_back();
    added.name = name;
    return added;
  };
  for (const SavedPhase& p : before.phases) {
    add_phase(p, &PhaseChange::before, &OpChange::before, phase_row(p.name));
  }
  for (const SavedPhase& p : after.phases) add_phase(p, &PhaseChange::after, &OpChange::after, phase_row(p.name));
  for (PhaseChange& phase : changes) {
    std::stable_sort(phase.ops.begin(), phase.ops.end(),
                     [](const OpChange& a, const OpChange& b) { return std::abs(a.change()) > std::abs(b.change()); });
  }
  return changes;
}

}  // namespace

bool differs(double before, double after) {
  return std::abs(after - before) > 1e-9 * std::max(std::abs(before), std::abs(after));
}

bool OpChange::changes() const {
  return before.present != after.present || differs(before.time, after.time) || differs(before.flops, after.flops) ||
         differs(before.bytes, after.bytes) || differs(before.network, after.network) || before.count != after.count;
}

bool PhaseChange::changes() const {
  return before.present != after.present || differs(before.time, after.time) ||
         std::any_of(ops.begin(), ops.end(), [](const OpChange& op) { return op.changes(); });
}

const FigureChange* Difference::figure(std::string_view key) const {
  const auto found = std::find_if(figures.begin(), figures.end(), [&](const FigureChange& f) { return f.key == key; });
  return found == figures.end() ? nullptr : &*found;
}

Difference difference(SavedResult before, SavedResult after) {
  if (before.kind != after.kind) {
    throw Error::bad_input(
        fmt::format("{} is {}, {} is {}", before.source, name(before.kind), after.source, name(after.kind)),
        "compare two results of the same kind");
  }
  Difference d;
  d.before = std::move(before);
  d.after = std::move(after);
  d.inputs = input_changes(d.before, d.after);
  for (const SavedFigure& figure : d.before.figures) {
    FigureChange& change = d.figures.emplace_back();
    change = {figure.key, figure.value, d.after.figure(figure.key), std::nullopt};
    change.inside_band = inside_band(d, change);
  }
  if (d.before.fits && d.after.fits) d.phases = phase_changes(d.before, d.after);
  return d;
}

std::vector<JudgedTime> judged_times(ResultKind kind) {
  switch (kind) {
    case ResultKind::generation: return {{"ttft_s", "TTFT"}, {"tpot_s", "TPOT"}};
    case ResultKind::video: return {{"generation_s", "the generation"}};
    case ResultKind::training: return {{"step_s", "the step"}};
  }
  return {};
}

}  // namespace llmperf::report
