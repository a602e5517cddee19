#include "estimate/estimate.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "estimate/context_sum.h"
#include "model/parameters.h"

namespace llmperf::estimate {
namespace {

using graph::SequenceGroup;

double d(std::int64_t x) { return static_cast<double>(x); }

SequenceGroup prefill_of(const Scenario& s) { return {s.batch, s.prompt, 0}; }
SequenceGroup decode_at(const Scenario& s, std::int64_t context) { return {s.batch, 1, context}; }

// Work and time of an op as a row of numbers, so that they can be summed over contexts.
constexpr std::size_t kRow = 11;
constexpr std::size_t kTotal = 7;  // position of the op's time
void to_row(const cost::Work& w, const mapper::OpTime& t, double* row) {
  const double values[kRow] = {
      w.matrix.value,  w.vector.value,     w.weights.value, w.activations_read.value, w.activations_written.value,
      w.kv_read.value, w.kv_written.value, t.total.value,   t.matrix.value,           t.vector.value,
      t.memory.value};
  std::copy_n(values, kRow, row);
}
void from_row(const double* row, double scale, cost::Work& w, mapper::OpTime& t) {
  w.matrix = Flops{row[0] * scale};
  w.vector = Flops{row[1] * scale};
  w.weights = Bytes{row[2] * scale};
  w.activations_read = Bytes{row[3] * scale};
  w.activations_written = Bytes{row[4] * scale};
  w.kv_read = Bytes{row[5] * scale};
  w.kv_written = Bytes{row[6] * scale};
  t.total = Seconds{row[7] * scale};
  t.matrix = Seconds{row[8] * scale};
  t.vector = Seconds{row[9] * scale};
  t.memory = Seconds{row[10] * scale};
  t.roof = std::max({t.matrix, t.vector, t.memory});
  t.bound = t.roof == t.memory   ? mapper::Bound::memory
            : t.roof == t.matrix ? mapper::Bound::matrix
                                 : mapper::Bound::vector;
}

void check(bool holds, std::string_view rule) {
  if (!holds) throw std::logic_error("internal error: " + std::string(rule));
}

void sum_up(Phase& phase) {
  phase.work = {};
  phase.time = phase.roof = Seconds{};
  for (Seconds& s : phase.bound_time) s = Seconds{};
  for (const OpEstimate& op : phase.ops) {
    const double count = d(op.op.count);
    phase.work += op.work * count;
    phase.time += op.step_time();
    phase.roof += op.time.roof * count;
    phase.bound_time[static_cast<std::size_t>(op.time.bound)] += op.step_time();
    check(op.time.total.value >= op.time.roof.value * (1 - 1e-9), "an op is faster than its roof");
  }
  const auto longest = std::max_element(std::begin(phase.bound_time), std::end(phase.bound_time));
  phase.bound = static_cast<mapper::Bound>(longest - std::begin(phase.bound_time));
}

// The largest x in 1..limit with room(x) >= 0, for a function that never grows; 0 if there is none. Memory is close to
// a straight line in batch and length, so a chord usually hits the answer at once; halving the bracket bounds the rest.
template <class Room>
std::int64_t largest(std::int64_t limit, Room&& room) {
  double low_room = room(1);
  double high_room = room(limit);
  if (low_room < 0) return 0;
  if (high_room >= 0) return limit;
  std::int64_t low = 1;
  std::int64_t high = limit;
  const auto probe = [&](std::int64_t x) {
    if (x <= low || x >= high) return;
    const double r = room(x);
    (r >= 0 ? low : high) = x;
    (r >= 0 ? low_room : high_room) = r;
  };
  while (high - low > 1) {  // NOLINT(bugprone-infinite-loop): probe moves both ends
    const double chord = std::floor(d(low) + low_room / (low_room - high_room) * d(high - low));
    const std::int64_t guess = std::clamp(static_cast<std::int64_t>(chord), low + 1, high - 1);
    probe(guess);
    probe(low == guess ? guess + 1 : guess - 1);
    probe(low + (high - low) / 2);
  }
  return low;
}

}  // namespace

Estimator::Estimator(Setup setup)
    : setup_(std::move(setup)),
      roofline_(*setup_.device),
      weights_(model::placed_weight_bytes(*setup_.execution.model, setup_.execution.weights)) {
  if (setup_.host) host_.emplace(*setup_.host);
}

mapper::OpTime Estimator::time(const graph::Op& op, const cost::Work& work) const {
  return op.place == graph::Place::link ? mapper::time_over_link(work, setup_.link.per_direction)
                                        : roofline(op.place).time(work);
}

Estimate Estimator::run(const Scenario& scenario) {
  Estimate result;
  run(scenario, result);
  return result;
}

void Estimator::run(const Scenario& scenario, Estimate& result) {
  result.scenario = scenario;
  const PlacedMemory placed = placed_memory(scenario);
  result.memory = placed.device;
  result.capacity = capacity();
  result.host_memory = placed.host;
  result.host_capacity = host_capacity();
  result.fits = fits(scenario);
  limits(scenario, result);
  if (!result.fits) {
    result.phases.clear();
    return;
  }
  result.phases.resize(scenario.generate > 1 ? 2 : 1);
  const SequenceGroup prefill = prefill_of(scenario);
  phase("prefill", {&prefill, 1}, result.phases[0]);
  result.ttft = result.phases[0].time;
  result.total = result.ttft;
  decode(scenario, result);

  const double batch = d(scenario.batch);
  result.tokens_per_second_per_request = d(scenario.generate) / result.total.value;
  result.tokens_per_second = batch * result.tokens_per_second_per_request;
  result.prefill_tokens_per_second = batch * d(scenario.prompt) / result.ttft.value;
  result.decode_tokens_per_second = result.tpot ? batch / result.tpot->value : 0;
}

// One step: graph, work, time, sums.
void Estimator::phase(std::string_view name, std::span<const SequenceGroup> step, Phase& result) {
  graph::build_step(setup_.execution, step, graph::Part::all, graph_);
  result.name = name;
  result.steps = 1;
  result.first = result.last = step.front();
  result.ops.resize(graph_.size());
  for (std::size_t i = 0; i < graph_.size(); ++i) {
    OpEstimate& op = result.ops[i];
    op.op = graph_[i];
    op.work = work(op.op);
    op.time = time(op.op, op.work);
  }
  sum_up(result);
}

// The first step in full; then only the ops that grow with the context, summed over the generation.
void Estimator::decode(const Scenario& scenario, Estimate& result) {
  result.tpot_first = result.tpot = result.tpot_last = std::nullopt;
  const std::int64_t steps = scenario.generate - 1;
  if (steps < 1) return;
  Phase& decode = result.phases[1];
  const SequenceGroup first = decode_at(scenario, scenario.prompt);
  const std::int64_t last = scenario.prompt + steps - 1;
  phase("decode", {&first, 1}, decode);
  decode.steps = steps;
  decode.last = decode_at(scenario, last);
  result.tpot_first = decode.time;

  std::size_t growing = 0;
  Seconds constant;
  for (const OpEstimate& op : decode.ops) {
    if (op.op.grows_with_context) {
      ++growing;
    } else {
      constant += op.step_time();
    }
  }
  const std::size_t width = growing * kRow;
  const auto evaluate = [&](std::int64_t context, double* out) {
    const SequenceGroup group = decode_at(scenario, context);
    graph::build_step(setup_.execution, {&group, 1}, graph::Part::context_dependent, graph_);
    for (std::size_t i = 0; i < growing; ++i) {
      const cost::Work each = work(graph_[i]);
      to_row(each, time(graph_[i], each), out + i * kRow);
    }
  };
  // Ranges end where a window fills up.
  sums_.assign(width, 0.0);
  std::int64_t begin = scenario.prompt;
  while (begin <= last) {
    std::int64_t end = last;
    for (const model::Layer& layer : setup_.execution.model->kinds) {
      const std::int64_t full =
          setup_.execution.window(layer.attention).value_or(0) - 1;  // from this context on the window is full
      if (full > begin && full < end) end = full;
    }
    sum_over_context(begin, end, width, samples_, sums_.data(), evaluate);
    begin = end + 1;
  }
  evaluate(last, samples_.data());

  result.tpot_last = constant;
  std::size_t i = 0;
  for (OpEstimate& op : decode.ops) {
    if (!op.op.grows_with_context) continue;
    *result.tpot_last += Seconds{samples_[i * kRow + kTotal] * d(op.op.count)};
    from_row(sums_.data() + i * kRow, 1 / d(steps), op.work, op.time);
    ++i;
  }
  sum_up(decode);
  result.tpot = decode.time;
  result.total += decode.time * d(steps);
}

Seconds Estimator::step_time(std::span<const SequenceGroup> step) {
  graph::build_step(setup_.execution, step, graph::Part::all, graph_);
  Seconds sum;
  for (const graph::Op& op : graph_) {
    sum += time(op, work(op)).total * d(op.count);
  }
  return sum;
}

Estimator::PlacedMemory Estimator::placed_memory(const Scenario& s) const {
  const graph::Execution& e = setup_.execution;
  const model::PlacedBytes kv = cost::kv_cache_bytes(e, s.prompt + s.generate);
  PlacedMemory m;
  m.device = {
      .weights = weights_.device, .kv_cache = kv.device * d(s.batch), .activation = {}, .reserve = setup_.reserve};
  if (e.weights.gguf) {
    const model::PlacedBytes buffers = cost::compute_buffers(e, s.batch, s.batch * (s.prompt + s.generate));
    m.device.activation = buffers.device;
    m.host.activation = buffers.host;
  } else {
    m.device.activation = std::max(cost::activation_peak(e, prefill_of(s)),
                                   cost::activation_peak(e, decode_at(s, s.prompt + s.generate - 1)));
  }
  m.host.weights = weights_.host;
  m.host.kv_cache = kv.host * d(s.batch);
  return m;
}

Bytes Estimator::room(const Scenario& scenario) const {
  const PlacedMemory m = placed_memory(scenario);
  const Bytes device = capacity() - m.device.total();
  return setup_.host ? std::min(device, host_capacity() - m.host.total()) : device;
}

void Estimator::limits(const Scenario& scenario, Estimate& result) const {
  const auto room = [&](const Scenario& s) { return this->room(s).value; };
  result.largest_batch = largest(kMaxBatch, [&](std::int64_t batch) {
    return room({batch, scenario.prompt, scenario.generate});
  });
  const std::int64_t prompt = largest(kMaxTokens, [&](std::int64_t tokens) {
    return room({scenario.batch, tokens, scenario.generate});
  });
  result.longest_context = prompt > 0 ? prompt + scenario.generate : 0;
}

}  // namespace llmperf::estimate
