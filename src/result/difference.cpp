#include "result/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "result/generation.h"
#include "result/row.h"
#include "result/serving.h"

namespace llmperf::result {
namespace {

using descriptor::Node;

// ---- Inputs: every scalar by its path. Of what has a name, a value or a text that one stands for the whole, and where
// it comes from is left out.

struct SavedInput {
  std::string name;
  Value value;
};

bool one_of(std::string_view key, std::initializer_list<std::string_view> keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

Value value_of(const Node& node) {
  if (node.kind == Node::Kind::sequence) {
    std::vector<std::string> items;
    for (const Node& item : node.items) items.push_back(item.kind == Node::Kind::scalar ? item.scalar : "…");
    return join(items, ", ");
  }
  if (node.kind != Node::Kind::scalar) return {};
  if (node.quoted) return node.scalar;
  if (node.scalar == "true" || node.scalar == "false") return node.scalar == "true";
  if (const auto value = parse_double(node.scalar)) return *value;
  return node.scalar;
}

void add_inputs(const std::string& path, const Node& object, std::vector<SavedInput>& inputs) {
  constexpr std::string_view kFigures = "hardware.figures";
  for (const Node::Entry& e : object.entries) {
    if (one_of(e.key, {"source", "title", "provenance", "host_source", "measured_on", "class_default"})) continue;
    if (path == "plan" && e.key != "text") continue;  // which says the rest
    std::string name = path;
    if (path.empty() || !one_of(e.key, {"name", "value", "text"})) name += (path.empty() ? "" : ".") + e.key;
    if (name.starts_with(kFigures) && name != kFigures) name.erase(0, kFigures.size() + 1);
    if (e.value.kind == Node::Kind::mapping) {
      add_inputs(name, e.value, inputs);
    } else {
      inputs.push_back({name, value_of(e.value)});
    }
  }
}

std::vector<InputChange> input_changes(const SavedResult& before, const SavedResult& after) {
  std::vector<InputChange> changes;
  if (before.version != after.version) changes.push_back({"llmperf", before.version, after.version});
  const auto inputs_of = [](const SavedResult& r) {
    std::vector<SavedInput> inputs;
    if (r.kind->inputs.empty()) {
      add_inputs("", *find(r.document.root, "inputs"), inputs);
      return inputs;
    }
    for (const std::string_view path : split(r.kind->inputs, ' ')) {
      if (const Node* node = find(r.document.root, path)) inputs.push_back({std::string(path), value_of(*node)});
    }
    return inputs;
  };
  // What was measured says little of itself: what it does not say is no difference.
  const bool measured = before.version == kMeasuredVersion || after.version == kMeasuredVersion;
  const std::vector<SavedInput> first = inputs_of(before);
  const std::vector<SavedInput> second = inputs_of(after);
  const auto value = [](const std::vector<SavedInput>& inputs, const std::string& name) {
    const auto found = std::ranges::find(inputs, name, &SavedInput::name);
    return found == inputs.end() ? Value() : found->value;
  };
  for (const SavedInput& input : first) {
    const Value other = value(second, input.name);
    if (other != input.value && !(measured && (other == Value() || input.value == Value())))
      changes.push_back({input.name, input.value, other});
  }
  for (const SavedInput& input : second) {
    const bool known = std::ranges::find(first, input.name, &SavedInput::name) != first.end();
    if (!known && !measured && input.value != Value()) changes.push_back({input.name, {}, input.value});
  }
  return changes;
}

// ---- The headline.

struct Interval {
  double low = 0;
  double high = 0;
};
// The time within the mean error of the predictions that the profile was judged by.
std::optional<Interval> band(const SavedResult& r, std::string_view path) {
  const auto end = [&](const char* which) {
    const std::optional<double> time = r.figure(fmt::format("{}.{}_s", path, which));
    return time ? time : r.figure(fmt::format("{}.{}", path, which));  // of a range, as of a server's run
  };
  const std::optional<double> low = end("low");
  const std::optional<double> high = end("high");
  return low && high ? std::optional(Interval{*low, *high}) : std::nullopt;
}

std::optional<bool> inside_band(const Difference& d, const FigureChange& figure) {
  const auto judged = std::ranges::find(d.before->kind->judged, figure.key, &JudgedTime::key);
  if (judged == d.before->kind->judged.end() || judged->band.empty() || !figure.before || !figure.after)
    return std::nullopt;
  const auto before = band(*d.before, judged->band);
  const auto after = band(*d.after, judged->band);
  if (!before && !after) return std::nullopt;
  const Interval a = before.value_or(Interval{*figure.before, *figure.before});
  const Interval b = after.value_or(Interval{*figure.after, *figure.after});
  return a.low <= b.high && b.low <= a.high;
}

// ---- Phases and their ops.

double number(const Node& object, std::string_view key) {
  const Node* node = find(object, key);
  return node ? parse_double(node->scalar).value_or(0) : 0;
}
std::string text(const Node& object, std::string_view key) {
  const Node* node = find(object, key);
  return node ? node->scalar : std::string();
}

void add(OpState& state, const Node& op) {
  const double time = number(op, "time_s");
  if (!state.present || time > state.longest) {
    state.shape = text(op, "shape");
    state.weights = text(op, "weights");
    state.bound = text(op, "bound");
    state.longest = time;
  }
  state.present = true;
  state.count += number(op, "count");
  state.time += time;
  state.flops += number(op, "flops");
  state.bytes += number(op, "bytes");
  state.network += number(op, "network_bytes");
}

OpChange& row(PhaseChange& phase, std::string_view name, std::string_view place) {
  for (OpChange& op : phase.ops) {
    if (op.name == name && op.place == place) return op;
  }
  OpChange& added = phase.ops.emplace_back();
  added.phase = phase.name;
  added.name = name;
  added.place = place;
  return added;
}

PhaseChange& phase_of(std::vector<PhaseChange>& phases, const std::string& name) {
  const auto phase = std::ranges::find(phases, name, &PhaseChange::name);
  if (phase != phases.end()) return *phase;
  phases.emplace_back().name = name;
  return phases.back();
}

// Where causes of a server's times are, in place of ops.
constexpr std::string_view kServer = "server";

// What the mean times of a server's requests pass with, as far as both say it.
void add_causes(const SavedResult& result, PhaseState PhaseChange::*state, OpState OpChange::*side,
                std::vector<PhaseChange>& phases) {
  struct Times {
    std::string_view name, shares, mean;
  };
  constexpr Times kTimes[] = {{"time to first token", "causes.ttft", "ttft_s.mean"},
                              {"time between tokens", "causes.itl", "itl_s.mean"}};
  for (const Times& of : kTimes) {
    const Node* shares = find(result.document.root, of.shares);
    const std::optional<double> mean = result.figure(of.mean);
    if (shares == nullptr || !mean) continue;
    PhaseChange& phase = phase_of(phases, std::string(of.name));
    phase.of_requests = true;
    PhaseState& whole = phase.*state;
    whole = {.present = true, .bound = {}, .time = *mean};
    double most = 0;
    for (const Node::Entry& cause : shares->entries) {
      OpState& part = row(phase, cause.key, kServer).*side;
      part.present = true;
      part.time = *mean * parse_double(cause.value.scalar).value_or(0);
      if (part.time <= most) continue;
      most = part.time;
      whole.bound = cause.key;
    }
  }
}

void add_phases(const SavedResult& result, PhaseState PhaseChange::*state, OpState OpChange::*side,
                std::vector<PhaseChange>& phases) {
  const Node* list = find(result.document.root, "phases");
  if (list == nullptr) return add_causes(result, state, side, phases);
  for (const Node& saved : list->items) {
    const std::string name = text(saved, "name");
    PhaseChange& phase = phase_of(phases, name);
    phase.*
        state = {true, text(saved, "bound"), number(saved, "time_s"), number(saved, "flops"), number(saved, "bytes")};
    if (const Node* ops = find(saved, "ops")) {
      for (const Node& op : ops->items) add(row(phase, text(op, "name"), text(op, "place")).*side, op);
    }
    for (const std::string_view beside : {kOverlapped, kPipelined}) {
      const double time = number(saved, std::string(beside) + "_s");
      if (time == 0) continue;
      OpState& overlap = row(phase, beside, "").*side;
      overlap.present = true;
      overlap.time = -time;
      if (beside == kPipelined && find(result.document.root, "afd")) overlap.shape = "attention, experts and exchanges";
    }
  }
}

// ---- In words.

// time = work / (peak * share of it): work and peak are in the results, the share is what is left.
template <class State>
std::vector<Factor> factors_of(const Difference& d, const State& before, const State& after) {
  std::vector<Factor> factors;
  if (before.time <= 0 || after.time <= 0) return factors;
  const auto factor = [&](std::string_view what, double first, double second) {
    if (first <= 0 || second <= 0) return 1.0;
    factors.push_back({what, second / first});
    return second / first;
  };
  const bool memory = after.bound == "memory";
  double kernels = before.time / after.time;
  // Neither bandwidth nor peak says anything of what is over before it reaches them.
  if (after.bound != "launch" && after.bound != "network") {
    kernels *= memory ? factor("bytes", before.bytes, after.bytes) : factor("flops", before.flops, after.flops);
    const std::string_view roof = memory                    ? "memory_bandwidth_bytes_per_s"
                                  : after.bound == "vector" ? "vector_flops_per_s"
                                                            : "matrix_flops_per_s";
    const std::string path = fmt::format("inputs.hardware.figures.{}.value", roof);
    kernels /= factor(roof, d.before->figure(path).value_or(0), d.after->figure(path).value_or(0));
  }
  factor("kernels", 1, kernels);
  return factors;
}

void add_ratio(const char* what, double before, double after, std::vector<std::string>& parts) {
  constexpr double kSmallRatio = 5e-3;  // nearer to 1 a ratio would print as 1
  if (before <= 0 || after <= 0) {
    if (before > 0 || after > 0) parts.push_back(fmt::format("{} {}", after > 0 ? "adds" : "no", what));
    return;
  }
  const double ratio = after / before;
  if (std::abs(ratio - 1) > kSmallRatio) parts.push_back(fmt::format("{} x {}", what, format_significant(ratio, 3)));
}

const char* runs(bool before, bool after) { return before && after ? "both" : before ? "before" : "after"; }

// A side of a difference.
struct Side {
  const SavedResult* of;
};

template <OpState OpChange::*State, std::string OpState::*Text>
std::optional<std::string_view> text_of(const OpChange& o) {
  const std::string& text = o.*State.*Text;
  return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
}

}  // namespace

bool differs(double before, double after) {
  return std::abs(after - before) > 1e-9 * std::max(std::abs(before), std::abs(after));
}

std::optional<double> relative_change(const std::optional<double>& before, const std::optional<double>& after) {
  return before && after && *before != 0 ? std::optional(*after / *before - 1) : std::nullopt;
}

std::string speed_text(const std::vector<Factor>& factors) {
  constexpr double kSmall = 0.02;
  std::vector<std::string> parts;
  for (const Factor& f : factors) {
    if (std::abs(f.factor - 1) < kSmall || f.what == "bytes" || f.what == "flops") continue;
    const std::string_view what = f.what == "memory_bandwidth_bytes_per_s" ? "memory bandwidth"
                                  : f.what == "matrix_flops_per_s"         ? "matrix peak"
                                  : f.what == "vector_flops_per_s"         ? "vector peak"
                                                                           : "kernels";
    parts.push_back(fmt::format("{} x {}", what, format_significant(f.factor, 3)));
  }
  return join(parts, ", ");
}

std::optional<double> FigureChange::change() const {
  return before && after ? std::optional(*after - *before) : std::nullopt;
}

bool OpChange::changes() const {
  return before.present != after.present || differs(before.time, after.time) || differs(before.flops, after.flops) ||
         differs(before.bytes, after.bytes) || differs(before.network, after.network) || before.count != after.count;
}

std::string OpChange::why() const {
  if (!changes() || place == kServer) return "";
  if (name == kOverlapped) return "what runs beside other ops";
  if (name == kPipelined) {  // named where it is not of stages
    const std::string& who = after.present ? after.shape : before.shape;
    return fmt::format("what {} do at the same time", who.empty() ? "stages" : who);
  }
  if (!before.present) return "added: " + after.shape;
  if (!after.present) return "does not run any more";
  std::vector<std::string> parts;
  if (before.weights != after.weights) {
    const auto stored = [](const std::string& format) { return format.empty() ? std::string("plain") : format; };
    parts.push_back(fmt::format("weights {} -> {}", stored(before.weights), stored(after.weights)));
  }
  if (before.count != after.count)
    parts.push_back(fmt::format("count {} -> {}", plain(before.count), plain(after.count)));
  add_ratio("FLOPs", before.flops, after.flops, parts);
  add_ratio("bytes", before.bytes, after.bytes, parts);
  add_ratio("network", before.network, after.network, parts);
  if (before.bound != after.bound) parts.push_back(fmt::format("bound {} -> {}", before.bound, after.bound));
  if (const std::string speed = speed_text(factors); !speed.empty()) parts.push_back(speed);
  if (!parts.empty()) return join(parts, ", ");
  return before.flops + before.bytes + before.network > 0 ? "same work, other speed" : "host and runtime";
}

bool PhaseChange::changes() const {
  return before.present != after.present || differs(before.time, after.time) ||
         std::any_of(ops.begin(), ops.end(), [](const OpChange& op) { return op.changes(); });
}

const FigureChange* Difference::figure(std::string_view key) const {
  const auto found = std::ranges::find(figures, key, &FigureChange::key);
  return found == figures.end() ? nullptr : &*found;
}

bool Difference::any_change() const {
  return before->fits != after->fits ||
         std::any_of(figures.begin(), figures.end(),
                     [](const FigureChange& f) {
                       return f.before.has_value() != f.after.has_value() || (f.before && differs(*f.before, *f.after));
                     }) ||
         std::any_of(phases.begin(), phases.end(), [](const PhaseChange& p) { return p.changes(); });
}

std::vector<OpChange> Difference::ops() const {
  std::vector<OpChange> all;
  for (const PhaseChange& phase : phases) all.insert(all.end(), phase.ops.begin(), phase.ops.end());
  return all;
}

std::vector<Reason> Difference::reasons() const {
  std::vector<Reason> all;
  for (const PhaseChange& p : phases) {
    if (p.before.time <= 0 || p.after.time <= 0 || p.of_requests) continue;
    all.push_back({p.name, p.before.time / p.after.time, factors_of(*this, p.before, p.after)});
  }
  return all;
}

Difference difference(const SavedResult& before, const SavedResult& after) {
  if (before.kind != after.kind) {
    throw Error::bad_input(
        fmt::format("{} is {}, {} is {}", before.source, before.kind->name, after.source, after.kind->name),
        "compare results of the same kind");
  }
  Difference d{&before, &after, input_changes(before, after), {}, {}};
  // There are no exchange rates.
  const auto currency = [](const SavedResult& r) {
    return text(r.document.root, "currency") + text(r.document.root, "candidates.0.currency");
  };
  const bool one_currency = currency(before) == currency(after);
  for (const std::string_view key : split(before.kind->figures, ' ')) {
    const bool foreign = key.find("cost_") != std::string_view::npos && !one_currency;
    // Of capacity the first candidate is the answer, or there is none.
    const auto figure = [&](const SavedResult& r) {
      return key.starts_with("candidates.") && !r.fits ? std::nullopt : r.figure(key);
    };
    FigureChange& change = d.figures.emplace_back();
    change = {std::string(key), figure(before), foreign ? std::nullopt : figure(after), std::nullopt};
    change.inside_band = inside_band(d, change);
  }
  if (!before.fits || !after.fits) return d;
  add_phases(before, &PhaseChange::before, &OpChange::before, d.phases);
  add_phases(after, &PhaseChange::after, &OpChange::after, d.phases);
  std::erase_if(d.phases, [](const PhaseChange& p) { return p.of_requests && !(p.before.present && p.after.present); });
  for (PhaseChange& phase : d.phases) {
    const double whole = differs(phase.before.time, phase.after.time) ? phase.change() : 0;
    for (OpChange& op : phase.ops) {
      op.whole = whole;
      op.factors = factors_of(d, op.before, op.after);
    }
    std::ranges::stable_sort(phase.ops, std::greater(), [](const OpChange& op) { return std::abs(op.change()); });
  }
  return d;
}

// ---- What is declared of it

Type fields_of(Fields<Side> f) {
  using S = SavedResult;
  return f.of<&Side::of, &S::source>("source", "the file, or the flags")
      .of<&Side::of, &S::label>("label", "of the estimate")
      .of<&Side::of, &S::version>("tool_version", "of the llmperf that made it")
      .of<&Side::of, &S::fits>("fits", "whether it has times")
      .named("compared result");
}

Type fields_of(Fields<InputChange> f) {
  using C = InputChange;
  return f.of<&C::name>("name", "path below `inputs` of the estimate; \"llmperf\": the version")
      .of<&C::before>("before", "null: absent")
      .of<&C::after>("after", "likewise")
      .named("input change");
}

Type fields_of(Fields<FigureChange> f) {
  using C = FigureChange;
  return f.of<&C::key>("name", "its path in the estimate")
      .of<&C::before>("before", "as estimated")
      .of<&C::after>("after", "as estimated")
      .of<&C::change>("change", "after less before")
      .of("relative_change", "of the value before", [](const C& c) { return relative_change(c.before, c.after); })
      .of<&C::inside_band>("inside_error_band: within the error band",
                           "whether the intervals of the two mean errors touch; null for numbers without a band")
      .named("figure change");
}

Type fields_of(Fields<OpChange> f) {
  using O = OpChange;
  using S = OpState;
  return f.row<&O::phase>("phase", "that it is of")
      .of<&O::name>("name", "of the ops, which are added up by name and place")
      .of<&O::place>("place", "null of `overlapped` and `pipelined`: what runs beside other ops, as negative times")
      .when([](const O& o) { return !o.place.empty(); })
      .of("runs", "\"both\", or the one side that has it: \"before\" or \"after\"",
          [](const O& o) { return runs(o.before.present, o.after.present); })
      .of<&O::before, &S::time>("before_s", "of all executions in a step")
      .of<&O::after, &S::time>("after_s", "likewise")
      .of<&O::change>("change_s", "they add up to that of the phase")
      .json("relative_change", "null unless both sides run it",
            [](const O& o) { return relative_change(o.before.time, o.after.time); })
      .when([](const O& o) { return o.before.present && o.after.present; })
      .of("share_of_change: %", "of the phase's; null where that is nothing",
          [](const O& o) { return o.change() / o.whole; })
      .when([](const O& o) { return o.whole != 0; })
      .of<&O::before, &S::count>("count_before", "executions")
      .of<&O::after, &S::count>("count_after", "likewise")
      .of<&O::before, &S::flops>("flops_before", "of all of them")
      .of<&O::after, &S::flops>("flops_after", "likewise")
      .of<&O::before, &S::bytes>("bytes_before", "through memory")
      .of<&O::after, &S::bytes>("bytes_after", "likewise")
      .of<&O::before, &S::network>("network_bytes_before", "sent")
      .of<&O::after, &S::network>("network_bytes_after", "likewise")
      .json<&text_of<&O::before, &S::shape>>("shape_before", "of the longest of them; null: none")
      .json<&text_of<&O::after, &S::shape>>("shape_after", "likewise")
      .json<&text_of<&O::before, &S::weights>>("weights_before", "likewise")
      .json<&text_of<&O::after, &S::weights>>("weights_after", "likewise")
      .of<&text_of<&O::before, &S::bound>>("bound_before", "likewise")
      .of<&text_of<&O::after, &S::bound>>("bound_after", "likewise")
      .json<&O::why>("why", "what differs of the work, as text; may be empty");
}

Type fields_of(Fields<PhaseChange> f) {
  using P = PhaseChange;
  using S = PhaseState;
  return f.of<&P::name>("name", "of the phase")
      .of("runs", "as of an op", [](const P& p) { return runs(p.before.present, p.after.present); })
      .of<&P::before, &S::time>("before_s", "of one step")
      .of<&P::after, &S::time>("after_s", "likewise")
      .of<&P::change>("change_s", "likewise")
      .of("relative_change", "null unless both have it",
          [](const P& p) { return relative_change(p.before.time, p.after.time); })
      .when([](const P& p) { return p.before.present && p.after.present; })
      .of<&P::before, &S::bound>("bound_before", "what binds most of it")
      .when([](const P& p) { return p.before.present; })
      .of<&P::after, &S::bound>("bound_after", "likewise")
      .when([](const P& p) { return p.after.present; })
      .of<&P::ops>("ops", "the largest change first")
      .named("phase change");
}

Type fields_of(Fields<Factor> f) {
  return f.of<&Factor::what>("what", "\"bytes\", \"flops\", a figure of the device, or \"kernels\": all that is left")
      .of<&Factor::factor>("factor", "after over before");
}

Type fields_of(Fields<Reason> f) {
  return f.of<&Reason::phase>("name", "of the phase")
      .of<&Reason::times_as_fast>("times_as_fast", "one step, as the first result's: peak and kernels over work")
      .of<&Reason::factors>("factors", "of that");
}

Type fields_of(Fields<Difference> f) {
  using D = Difference;
  return f.of("before", "the first", [](const D& d) { return Side{d.before}; })
      .of("after", "the second", [](const D& d) { return Side{d.after}; })
      .of<&D::inputs>("inputs", "that differ")
      .of<&D::figures>("headline", "numbers of the whole estimate")
      .of<&D::phases>("phases", "none unless both sides fit")
      .named({}, "Changes are the value after less the value before; relative ones are shares of the value before.");
}

namespace {
struct Compared {
  const Difference* of;
  std::optional<double> time() const { return of->after->figure(of->after->kind->whole); }
};
}  // namespace

Type fields_of(Fields<Compared> f) {
  using C = Compared;
  using D = Difference;
  return f.of<&C::of, &D::after, &SavedResult::source>("name", "the file, or the flags")
      .of<&C::of, &D::after, &SavedResult::label>("label", "of the estimate")
      .of<&C::of, &D::after, &SavedResult::version>("tool_version", "of the llmperf that made it")
      .of<&C::of, &D::after, &SavedResult::fits>("fits", "whether it has times")
      .of<&C::time>("time_s", "the whole generation, or training step")
      .of("times_as_fast", "as the first result's",
          [](const C& c) {
            const auto before = c.of->before->figure(c.of->before->kind->whole);
            const auto after = c.time();
            return before && after && *after > 0 ? std::optional(*before / *after) : std::nullopt;
          })
      .of<&C::of, &D::inputs>("inputs", "that differ from the first result's")
      .of<&C::of, &D::figures>("headline", "numbers of the whole estimate, the first result's as `before`")
      .of("why", "each phase's speed; none unless both fit", [](const C& c) { return c.of->reasons(); })
      .of<&C::of, &D::phases>("phases", "none unless both fit");
}

Type fields_of(Fields<Differences> f) {
  return f.of("results", "the first one, which all are compared with, and the others", [](const Differences& d) {
    std::vector<Compared> all;
    for (const Difference& one : d.results) all.push_back({&one});
    return all;
  });
}

namespace {

using descriptor::Node;

constexpr JudgedTime kGenerationTimes[] = {{"ttft_s", "TTFT", "error_band.prefill"},
                                           {"tpot_s", "TPOT", "error_band.decode"}};
constexpr JudgedTime kVideoTimes[] = {{"generation_s", "the generation", "error_band.generation"}};
constexpr JudgedTime kTrainingTimes[] = {{"step_s", "the step"}};
constexpr JudgedTime kServedTimes[] = {{"ttft_s.mean", "the mean TTFT", "bands.ttft_mean_s"},
                                       {"ttft_s.p99", "TTFT p99", "bands.ttft_p99_s"},
                                       {"tpot_s.mean", "the mean TPOT", "bands.tpot_mean_s"},
                                       {"e2e_s.mean", "the mean request", "bands.e2e_mean_s"}};
constexpr JudgedTime kCapacityTimes[] = {{"candidates.0.at.ttft_mean_s", "the answer's mean TTFT"},
                                         {"candidates.0.at.ttft_p99_s", "the answer's TTFT p99"},
                                         {"candidates.0.at.tpot_mean_s", "the answer's mean TPOT"}};
constexpr SavedKind kKinds[] = {
    {"llmperf.training", "an estimate of a training step", "",
     "step_s tokens_per_second mfu compute_s bubble_s gradient_exposed_s optimizer_s cost_per_million_tokens "
     "memory.total_bytes memory.capacity_bytes",
     "step_s", kTrainingTimes, &type_of<Training>},
    {"llmperf.estimate", "an estimate of generated video", "generation_s",
     "step_s generation_s step_utilisation generation_utilisation cost_per_generation memory.total_bytes "
     "memory.weight_bytes memory.capacity_bytes",
     "generation_s", kVideoTimes, &type_of<Video>},
    {"llmperf.estimate", "an estimate of a generation", "",
     "ttft_s tpot_s total_s tokens_per_second prefill_tokens_per_second decode_tokens_per_second "
     "cost_per_million_input_tokens cost_per_million_output_tokens joules_per_output_token memory.total_bytes "
     "memory.weight_bytes memory.kv_cache_bytes memory.capacity_bytes largest_batch longest_context_tokens",
     "total_s", kGenerationTimes, &type_of<Generation>},
    {"llmperf.serve", "a run of a server", "",
     "ttft_s.mean ttft_s.p50 ttft_s.p99 tpot_s.mean tpot_s.p50 tpot_s.p99 itl_s.p99 e2e_s.mean e2e_s.p99 "
     "output_tokens_per_second requests_per_second input_tokens_per_second goodput_per_second mean_batch mean_waiting "
     "utilisation prefix_hit_share kv.peak_share devices cost_per_hour cost_per_million_output_tokens "
     "joules_per_output_token",
     "e2e_s.mean", kServedTimes, &type_of<Serving>, "", ""},
    {"llmperf.capacity", "an answer of capacity", "",
     "candidates.0.cost_per_hour candidates.0.devices candidates.0.replicas candidates.0.decode_replicas "
     "candidates.0.max_requests_per_second candidates.0.tokens_per_second_per_device "
     "candidates.0.cost_per_million_output_tokens candidates.0.at.ttft_mean_s candidates.0.at.ttft_p99_s "
     "candidates.0.at.tpot_mean_s candidates.0.at.tpot_p95_s candidates.0.at.mean_batch candidates.0.at.utilisation",
     "", kCapacityTimes, &type_of<CapacityResult>,
     "model rate slo input output trace minimise candidates.0.hardware candidates.0.plan candidates.0.decode_hardware "
     "candidates.0.decode_plan candidates.0.weights candidates.0.engine",
     "feasible", "nothing meets the bounds"},
};

const Node* member(const Node& object, std::string_view key) {
  for (const Node::Entry& e : object.entries) {
    if (e.key == key) return &e.value;
  }
  return nullptr;
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  void read(const Node& root, SavedResult& result) const {
    if (root.kind != Node::Kind::mapping) fail(root, "the document is not an object");
    const Node& schema = need(root, "schema");
    for (const SavedKind& kind : kKinds) {
      const bool marked = kind.mark.empty() || member(root, kind.mark) != nullptr;
      if (result.kind == nullptr && kind.schema == schema.scalar && marked) result.kind = &kind;
    }
    if (result.kind == nullptr) {
      fail(schema, fmt::format("{} is not a result that can be compared", quote(schema.scalar)),
           "llmperf estimate, serve and capacity export one as JSON");
    }
    const Node& version = need(root, "schema_version");
    if (version.scalar != "1") fail(version, "schema_version is not 1: written by another version of llmperf");
    const SavedKind& kind = *result.kind;
    if (kind.inputs.empty()) need(root, "inputs");
    if (kind.fits == "fits") need(root, "phases");  // of estimates
    check_object(root, "the document", kind.type());
    result.version = need(need(root, "tool"), "version").scalar;
    if (const Node* label = find(root, "label")) result.label = label->scalar;
    result.fits = kind.fits.empty() || need(root, kind.fits).scalar == "true";
  }

 private:
  [[noreturn]] void fail(const Node& at, std::string message, std::string hint = {}) const {
    throw Error(ErrorKind::bad_input, {{{file_, at.line, at.column}, std::move(message), std::move(hint)}});
  }
  const Node& need(const Node& object, std::string_view key) const {
    const Node* node = member(object, key);
    if (node == nullptr)
      fail(object, fmt::format("'{}' is missing", key),
           "is this what llmperf, or a benchmark of servers, wrote as JSON?");
    return *node;
  }

  void check_object(const Node& node, std::string_view key, const Type& type) const {
    if (node.kind != Node::Kind::mapping) fail(node, fmt::format("'{}' is not an object", key));
    for (const Field& field : type.fields) {
      if (field.in == In::row) continue;
      if (field.spread) {
        check_object(node, key, field.shape.type());
      } else if (const Node* value = member(node, field.key)) {
        check(*value, field.key, field.shape, field.shape.lists);
      }
    }
  }

  // Null stands for a number that is none, wherever numbers stand.
  void check(const Node& node, std::string_view key, const Shape& shape, int lists) const {
    if (node.kind == Node::Kind::null) return;
    if (lists > 0) {
      if (node.kind != Node::Kind::sequence) fail(node, fmt::format("'{}' is not a list", key));
      for (const Node& item : node.items) check(item, key, shape, lists - 1);
      return;
    }
    if (shape.map) {
      for (const Node::Entry& e : node.entries) check(e.value, e.key, {.kind = shape.kind, .type = shape.type}, 0);
      return;
    }
    const bool bare = node.kind == Node::Kind::scalar && !node.quoted;
    switch (shape.kind) {
      case Kind::object: return check_object(node, key, shape.type());
      case Kind::any: return;
      case Kind::text:
        if (!node.quoted) fail(node, fmt::format("'{}' is not text", key));
        return;
      case Kind::truth:
        if (!bare || (node.scalar != "true" && node.scalar != "false"))
          fail(node, fmt::format("'{}' is not true or false", key));
        return;
      case Kind::integer:
      case Kind::number: {
        const auto value = bare ? parse_double(node.scalar) : std::nullopt;
        if (!value) fail(node, fmt::format("'{}' is not a number", key));
        if (*value < 0 && key == "time_s") fail(node, "'time_s' is negative");
      }
    }
  }

  const std::string& file_;
};

}  // namespace

const Node* find(const Node& object, std::string_view path) {
  const Node* at = &object;
  for (const std::string_view key : split(path, '.')) {
    const auto index = at->kind == Node::Kind::sequence ? parse_int(key) : std::nullopt;
    at = !index                                          ? member(*at, key)
         : *index >= 0 && *index < std::ssize(at->items) ? &at->items[static_cast<std::size_t>(*index)]
                                                         : nullptr;
    if (at == nullptr || at->kind == Node::Kind::null) return nullptr;
  }
  return at;
}

std::optional<double> SavedResult::figure(std::string_view path) const {
  const Node* node = find(document.root, path);
  return node ? parse_double(node->scalar) : std::nullopt;
}

SavedResult read_result(std::string_view text, const std::string& source) {
  SavedResult result;
  result.source = source;
  result.document = descriptor::parse_json(text, source, {.max_bytes = kMaxResultBytes});
  Reader(source).read(result.document.root, result);
  return result;
}

}  // namespace llmperf::result
