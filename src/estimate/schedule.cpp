#include "estimate/schedule.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/integer.h"
#include "mapper/roofline/step_overhead.h"
#include "mapper/tile/tile_mapper.h"

namespace llmperf::estimate {
namespace {

// Seconds that the busiest stage is busy.
double busiest(std::span<const OpEstimate> ops, std::span<const double> seconds, std::span<const Stage> stages) {
  double longest = 0;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    StageShare share(stages, stage);
    double busy = 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      busy += share.of(ops[i].op) * (seconds[i] - hidden_seconds(ops, seconds, i));
    }
    longest = std::max(longest, busy);
  }
  return longest;
}

void check(bool holds, std::string_view rule) {
  if (!holds) throw std::logic_error("internal error: " + std::string(rule));
}

bool is_exchange(const graph::Op& op) { return op.place == graph::Place::network && !is_send(op); }

Seconds saved(const mapper::tile::Seam& before, const mapper::tile::Seam& op) {
  if (op.weights <= 0) return {};
  return Seconds{std::min(op.load * std::min(1.0, before.room / op.weights), before.idle)};
}

}  // namespace

bool is_send(const graph::Op& op) {
  const auto* c = std::get_if<graph::Collective>(&op.body);
  return c && c->kind == graph::CollectiveKind::send;
}

void time_op(const mapper::Machine& machine, OpEstimate& op) {
  op.work = machine.work(op.op);
  op.time = machine.time(op.op, op.work);
}

void time_ops(const mapper::Machine& machine, std::span<const graph::Op> graph, std::int64_t times,
              std::vector<OpEstimate>& ops) {
  machine.search_mappings(graph);
  ops.resize(graph.size());
  for (std::size_t i = 0; i < graph.size(); ++i) {
    OpEstimate& e = ops[i];
    e.hidden = {};  // of a run before
    e.layers = e.passes = 0;
    e.op = graph[i];
    e.op.count *= times;
    if (e.op.overlaps) e.op.hidden = machine.hidden_share(e.op);
    time_op(machine, e);
  }
}

Seconds runtime_overhead(const Platform& platform, const Launches& launches, std::span<const OpEstimate> ops,
                         std::span<const double> seconds) {
  mapper::StepOverhead host(platform.profile->values, launches.dispatch, launches.prompts,
                            platform.profile->choices.overlapped);
  double device = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    host.add(ops[i].op);
    device += seconds[i] - hidden_seconds(ops, seconds, i);
  }
  return host.time(Seconds{device}, launches.layers, launches.sequences, launches.steps);
}

OpEstimate waiting(std::string_view name, Seconds time, std::int64_t count, graph::Tag tag) {
  OpEstimate e;
  e.op = {.name = name, .tag = tag, .count = count, .body = graph::Overhead{}};
  e.time.bound = mapper::Bound::launch;
  e.time.total = time;
  return e;
}

void time_phase(const Platform& platform, const mapper::Machine& machine, std::span<const graph::Op> graph,
                std::span<const Stage> stages, Prefetch prefetch, Phase& phase, std::vector<double>& seconds) {
  time_ops(machine, graph, phase.micro_batches * phase.overlap_batches, phase.ops);
  if (phase.overlap_batches > 1) {
    for (OpEstimate& op : phase.ops) {
      if (!is_exchange(op.op)) continue;
      std::int64_t layers = op.op.layer_kind < 0 ? 1 : 0;
      for (const Stage& stage : stages) {
        if (op.op.layer_kind >= 0) layers += stage.layers[static_cast<std::size_t>(op.op.layer_kind)];
      }
      op.layers = static_cast<std::int32_t>(layers);
      op.passes = static_cast<std::int32_t>(phase.micro_batches * phase.overlap_batches);
    }
  }
  if (platform.profile) {
    seconds.clear();
    for (const OpEstimate& op : phase.ops) seconds.push_back(op.step_time().value);
    // Of one micro-batch; the host's share of a stage runs beside those of the others.
    const Seconds each = runtime_overhead(platform, phase.launches, phase.ops, seconds) / d(phase.micro_batches);
    phase.ops.push_back(waiting("runtime_overhead", each, phase.micro_batches, graph::Tag::runtime_overhead));
    phase.first_overhead = phase.last_overhead = each;
  }
  if (prefetch == Prefetch::yes) prefetch_weights(machine, phase.ops);
  sum_up(phase, stages, seconds);
}

mapper::Bound OpGroup::bound() const {
  const auto* longest = std::ranges::max_element(bound_time);
  return static_cast<mapper::Bound>(longest - std::begin(bound_time));
}

OpGroup& OpGroup::operator+=(const OpGroup& other) {
  count += other.count;
  kernels += other.kernels;
  work += other.work;
  time += other.time;
  roof += other.roof;
  for (std::size_t i = 0; i < std::size(bound_time); ++i) bound_time[i] += other.bound_time[i];
  return *this;
}

std::vector<OpGroup> grouped(std::span<const OpEstimate> ops, const std::function<std::string(std::size_t)>& name) {
  std::map<std::string, OpGroup> groups;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const OpEstimate& op = ops[i];
    const double count = d(op.op.count);
    OpGroup one;
    one.count = op.op.count;
    one.work = op.work * count;
    one.time = op.step_time();
    one.roof = op.time.roof * count;
    if (!std::holds_alternative<graph::Overhead>(op.op.body)) one.kernels = op.op.count * op.op.launches;
    one.bound_time[static_cast<std::size_t>(op.time.bound)] = one.time;
    groups[name(i)] += one;
  }
  std::vector<OpGroup> sorted;
  for (auto& [key, group] : groups) {
    group.name = key;
    sorted.push_back(std::move(group));
  }
  std::ranges::stable_sort(sorted, [](const OpGroup& a, const OpGroup& b) { return a.time > b.time; });
  return sorted;
}

double beside_seconds(std::span<const OpEstimate> ops, std::span<const double> seconds, std::size_t i) {
  const OpEstimate& op = ops[i];
  const auto in_layer = [&](std::size_t k) { return k < ops.size() && ops[k].op.layer_kind == op.op.layer_kind; };
  // Of the ops from k on until an exchange or the end of the layer, `step` by step; k is where it stopped.
  const auto until = [&](std::size_t& k, std::size_t step) {
    double sum = 0;
    for (; in_layer(k) && !is_exchange(ops[k].op); k += step) {
      if (!std::holds_alternative<graph::Overhead>(ops[k].op.body) && !is_send(ops[k].op)) sum += seconds[k];
    }
    return sum;
  };
  // The exchanges that follow one another.
  std::size_t before = i;
  std::size_t after = i;
  double exchanges = 0;
  for (; in_layer(before) && is_exchange(ops[before].op); --before) exchanges += seconds[before];
  for (++after; in_layer(after) && is_exchange(ops[after].op); ++after) exchanges += seconds[after];
  if (exchanges <= 0) return 0;
  const std::size_t first = before + 1;
  const std::size_t last = after - 1;
  const double own_before = until(before, static_cast<std::size_t>(-1));
  const double own_after = until(after, 1);
  const double executions = d(op.layers) * d(op.passes);
  const auto hidden = [&](double beside) { return std::min(exchanges, beside) / executions; };
  double each = hidden(own_before) + hidden(own_after);
  if (op.op.layer_kind >= 0 && op.layers > 1) {
    const double edge = 1 / d(op.layers);
    if (!in_layer(before)) {  // the first of the layer: the ops of the layer before end beside it, but for the first
      std::size_t end = last;
      while (in_layer(end + 1)) ++end;
      const double tail = end == last ? 0 : until(end, static_cast<std::size_t>(-1));
      each += (1 - edge) * (hidden(own_before + tail) - hidden(own_before));
    }
    if (!in_layer(after)) {
      std::size_t begin = first;
      while (begin > 0 && in_layer(begin - 1)) --begin;
      const double head = begin == first ? 0 : until(begin, 1);
      each += (1 - edge) * (hidden(own_after + head) - hidden(own_after));
    }
  }
  return each / 2 * executions * seconds[i] / exchanges;
}

double hidden_seconds(std::span<const OpEstimate> ops, std::span<const double> seconds, std::size_t i) {
  if (ops[i].hidden.value > 0) return std::min(ops[i].hidden.value, seconds[i]);
  const double beside = ops[i].passes > 0 ? beside_seconds(ops, seconds, i) : 0;
  return ops[i].op.overlaps && i > 0 ? std::max(beside, ops[i].op.hidden * std::min(seconds[i], seconds[i - 1]))
                                     : beside;
}

Seconds hidden_time(std::span<const OpEstimate> ops, std::size_t i) {
  if (ops[i].passes > 0) {
    std::vector<double> all;
    for (const OpEstimate& op : ops) all.push_back(op.step_time().value);
    return Seconds{hidden_seconds(ops, all, i)};
  }
  const double seconds[] = {i > 0 ? ops[i - 1].step_time().value : 0, ops[i].step_time().value};
  return Seconds{i > 0 ? hidden_seconds(ops.subspan(i - 1, 2), seconds, 1)
                       : hidden_seconds(ops.first(1), std::span(seconds).last(1), 0)};
}

double StageShare::of(const graph::Op& op) {
  const std::size_t end = stages_.size() - 1;
  if (op.layer_kind >= 0) {
    layers_seen_ = true;
    if (op.layer_kind != kind_) {
      kind_ = op.layer_kind;
      const auto kind = static_cast<std::size_t>(kind_);
      double all = 0;
      for (const Stage& stage : stages_) all += d(stage.layers[kind]);
      layers_ = d(stages_[index_].layers[kind]) / all * stages_[index_].pace;
    }
    return layers_;
  }
  if (std::holds_alternative<graph::Overhead>(op.body)) {
    const auto layers = [](const Stage& stage) {
      return d(std::accumulate(stage.layers.begin(), stage.layers.end(), std::int64_t{0}));
    };
    double all = 0;
    for (const Stage& stage : stages_) all += layers(stage);
    return layers(stages_[index_]) / all;
  }
  if (is_send(op)) return index_ < end ? 1 / d(static_cast<std::int64_t>(end)) : 0;
  return index_ == (layers_seen_ ? end : 0) ? 1 : 0;
}

Pool pool_of(const graph::Op& op) {
  if (op.tag == graph::Tag::experts_dispatch) return Pool::dispatch;
  if (op.tag == graph::Tag::experts_return) return Pool::result;
  return op.on_experts ? Pool::experts : Pool::attention;
}

Pools pools_of(std::span<const OpEstimate> ops, std::span<const double> seconds) {
  Pools pools = {};
  if (std::ranges::none_of(ops, [](const OpEstimate& op) { return op.op.on_experts; })) return pools;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    pools[static_cast<std::size_t>(pool_of(ops[i].op))] += seconds[i] - hidden_seconds(ops, seconds, i);
  }
  return pools;
}

Pools pools_of(const Phase& phase) {
  std::vector<double> seconds;
  for (const OpEstimate& op : phase.ops) seconds.push_back(op.step_time().value);
  return pools_of(phase.ops, seconds);
}

std::string_view bound_of(const Pools& pools, Seconds step) {
  const auto* busiest = std::ranges::max_element(pools);
  return *busiest < step.value * (1 - 1e-9) ? "turns" : kPools[static_cast<std::size_t>(busiest - pools.begin())];
}

Schedule schedule_step(std::span<const OpEstimate> ops, std::span<const double> seconds, std::span<const Stage> stages,
                       std::int64_t micro_batches, Steady steady, double in_flight) {
  Schedule s;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    s.ops += Seconds{seconds[i]};
    if (ops[i].op.overlaps || ops[i].passes > 0 || ops[i].hidden.value > 0)
      s.overlapped += Seconds{hidden_seconds(ops, seconds, i)};
  }
  const Seconds chain = s.ops - s.overlapped;
  const Pools pools = pools_of(ops, seconds);
  const double pool = *std::ranges::max_element(pools);
  if (stages.size() == 1 && pool == 0) {
    s.time = chain;
    return s;
  }
  const Seconds longest{pool > 0 ? pool : busiest(ops, seconds, stages)};
  const double m = d(micro_batches);
  const Seconds each = std::max(longest, chain / in_flight);
  s.time = steady == Steady::yes ? std::max(chain / m, longest) : chain / m + (m - 1) / m * each;
  s.pipelined = chain - s.time;
  s.bubble = s.time - longest;
  return s;
}

double prompts_in_flight(const hardware::ParameterValues& values, double layers, double cards, double micro_batches,
                         bool unpacks) {
  constexpr double kCopies = 4;
  const double launches = get(values, hardware::Parameter::split_kernels) * (unpacks ? 1 : 7.0 / 8);
  const double queued = get(values, hardware::Parameter::split_queue) / (launches * layers / cards);
  const double ahead = std::ceil(queued);
  const double period = micro_batches <= ahead ? 1 : std::max(1.0, (cards - 1 + ahead - queued) / ahead);
  return std::min(kCopies, cards / period);
}

void sum_up(Phase& phase, std::span<const Stage> stages, std::vector<double>& seconds) {
  phase.work = {};
  for (Seconds& s : phase.bound_time) s = Seconds{};
  Schedule times;
  Seconds roof;
  bool concurrent = stages.size() > 1;
  for (const OpEstimate& op : phase.ops) {
    const double count = d(op.op.count);
    phase.work += op.work * count;
    times.ops += op.step_time();
    roof += op.time.roof * count;
    concurrent |= op.op.overlaps || op.passes > 0 || op.hidden.value > 0 || op.op.on_experts;
    phase.bound_time[static_cast<std::size_t>(op.time.bound)] += op.step_time();
    check(op.time.total.value >= op.time.roof.value * (1 - 1e-9), "an op is faster than its roof");
  }

  times.time = times.ops;
  if (concurrent) {
    const auto schedule = [&](Seconds mapper::OpTime::*part, double in_flight) {
      seconds.resize(phase.ops.size());
      for (std::size_t i = 0; i < phase.ops.size(); ++i) {
        seconds[i] = (phase.ops[i].time.*part).value * d(phase.ops[i].op.count);
      }
      return schedule_step(phase.ops, seconds, stages, phase.batches(), phase.steady, in_flight);
    };
    roof = schedule(&mapper::OpTime::roof, std::numeric_limits<double>::infinity()).time;
    times = schedule(&mapper::OpTime::total, phase.in_flight);
    for (std::size_t i = 0; i < phase.ops.size(); ++i) {
      Seconds& bound = phase.bound_time[static_cast<std::size_t>(phase.ops[i].time.bound)];
      bound = bound - Seconds{hidden_seconds(phase.ops, seconds, i)};
    }
  }
  const auto longest = std::ranges::max_element(phase.bound_time);
  phase.bound = static_cast<mapper::Bound>(longest - std::begin(phase.bound_time));
  phase.roof = roof;
  phase.time = times.time;
  phase.ops_time = times.ops;
  phase.overlapped = times.overlapped;
  phase.pipelined = times.pipelined;
  phase.bubble = times.bubble;
}

void prefetch_weights(const mapper::Machine& machine, std::span<OpEstimate> ops) {
  if (machine.tiles() == nullptr) return;
  const auto seam = [&](std::size_t i) {
    return ops[i].op.place == graph::Place::device ? machine.tiles()->seam(ops[i].op, ops[i].work)
                                                   : mapper::tile::Seam{};
  };
  std::size_t first = 0;  // op of the layer that op i is in
  mapper::tile::Seam before;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const graph::Op& op = ops[i].op;
    if (i == 0 || op.layer_kind < 0 || op.layer_kind != ops[i - 1].op.layer_kind) first = i;
    const mapper::tile::Seam mine = seam(i);
    const Seconds early = saved(std::exchange(before, mine), mine);
    ops[i].hidden = early * d(op.count);
    if (i != first || op.layer_kind < 0) continue;
    // The first op of a layer follows the last one of the layer before, but for the first layer.
    std::size_t last = first;
    while (last + 1 < ops.size() && ops[last + 1].op.layer_kind == op.layer_kind) ++last;
    const double share = 1 / d(op.count);
    ops[i].hidden = (early * share + saved(seam(last), mine) * (1 - share)) * d(op.count);
  }
}

}  // namespace llmperf::estimate
