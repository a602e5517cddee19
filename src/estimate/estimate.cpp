#include "estimate/estimate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/integer.h"
#include "base/load_once.h"
#include "estimate/context_sum.h"
#include "estimate/schedule.h"
#include "mapper/roofline/step_overhead.h"
#include "model/parameters.h"

namespace llmperf::estimate {
namespace {

using graph::SequenceGroup;

// How exactly decode steps are summed over the context: work and roofs are piecewise straight, times of kernels and of
// tiles, that deal the keys out in blocks, are not. Those are summed over `kPiece` contexts at a time: what is off at
// the ends of a piece counts for the piece alone, so that a token more never takes less time in all.
constexpr double kStraight = 1e-9;
constexpr double kCurved = 2e-3;
constexpr std::int64_t kPiece = 256;
// Micro-batches that keep attention, experts and the exchanges both ways busy: these are four (Pools in schedule.h).
constexpr std::int64_t kMostTurns = 4;
// Pieces of a prompt that are timed one by one: few, or of ops that take no search.
constexpr std::int64_t kFewPieces = 16;
constexpr std::int64_t kManyPieces = 1024;
constexpr std::array<std::string_view, 7> kLaterPieces = {"prefill_2", "prefill_3", "prefill_4", "prefill_5",
                                                          "prefill_6", "prefill_7", "prefill_8"};

// Steps that layers are dealt to stages by: of one sequence, and of so many that experts are all read.
constexpr SequenceGroup kReferenceSteps[] = {{1, 512, 0}, {1, 1, 512}, {64, 1, 512}};

// Work and time of an op as a row of numbers, so that they can be summed over contexts.
constexpr std::size_t kRow = 13;
constexpr std::size_t kTotal = 7;  // position of the op's time
void to_row(const cost::Work& w, const mapper::OpTime& t, double* row) {
  const double values[kRow] = {
      w.matrix.value,  w.vector.value,     w.weights.value, w.activations_read.value, w.activations_written.value,
      w.kv_read.value, w.kv_written.value, t.total.value,   t.matrix.value,           t.vector.value,
      t.memory.value,  w.network.value,    t.network.value};
  std::copy_n(values, kRow, row);
}
// `predicted`: by a profile, whose kernels are bound by what the first step's are.
void from_row(const double* row, double scale, bool predicted, cost::Work& w, mapper::OpTime& t) {
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
  w.network = Bytes{row[11] * scale};
  t.network = Seconds{row[12] * scale};
  if (w.network.value > 0) {
    t.roof = t.network;
    return;
  }
  t.roof = std::max({t.matrix, t.vector, t.memory});
  if (predicted) return;
  t.bound = t.roof == t.memory   ? mapper::Bound::memory
            : t.roof == t.matrix ? mapper::Bound::matrix
                                 : mapper::Bound::vector;
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
      machine_(*setup_.device, setup_.cluster, setup_.host, setup_.link.per_direction, setup_.profile, setup_.tiles,
               {.profile = setup_.host_profile, .pinned = setup_.pinned_weights}),
      host_weights_(model::placed_weight_bytes(*setup_.execution.model, setup_.execution.weights).host) {
  for (const Card& card : setup_.cards) {
    cards_.push_back(std::make_unique<mapper::Machine>(*card.device, setup_.cluster, setup_.host,
                                                       setup_.link.per_direction, card.profile, setup_.tiles));
  }
  if (setup_.draft) draft_ = std::make_unique<Estimator>(*setup_.draft->setup);
  set_plan(setup_.execution.plan);
}

void Estimator::set_draft_tokens(std::int64_t tokens) {
  estimate::set_draft_tokens(tokens, setup_);
  limits_ = {};
  draft_->setup_.serving.drafts = tokens;
}

void Estimator::set_plan(const graph::Plan& plan) {
  graph::Execution& e = setup_.execution;
  e.plan = plan;
  e.split = split_layers();
  if (draft_) draft_->set_plan(draft_plan(*draft_->setup_.execution.model, plan));
  stages_.clear();
  limits_ = {};
  for (std::int64_t i = 0; i < plan.pipeline; ++i) {
    stages_.push_back(
        {e.split.layers_of_kinds(*e.model, i), cost::stage_weight_bytes(e, i) + cost::adapter_weight_bytes(e, i)});
    if (i == 0) stages_.back().weights += cost::vision_weight_bytes(e);
  }
  std::vector<mapper::Machine::Part> parts;
  for (std::size_t i = 0; i < cards_.size(); ++i) {
    mapper::Machine::Part& part = parts.emplace_back(mapper::Machine::Part{cards_[i].get()});
    for (std::size_t kind = 0; kind < e.model->kinds.size(); ++kind) {
      part.shares.push_back(d(stages_[i].layers[kind]) / d(e.model->kind_counts[kind]));
    }
  }
  machine_.divide(std::move(parts));
}

std::vector<Stage> Estimator::stages(const Phase& phase) const {
  std::vector<Stage> paced = stages_;
  for (std::size_t i = 0; i < phase.pace.size(); ++i) paced[i].pace = phase.pace[i];
  return paced;
}

void Estimator::pace_stages() {
  for (std::size_t i = 0; i < cards_.size(); ++i) {
    double own = 0;
    double mean = 0;
    for (const graph::Op& op : graph_) {
      if (op.layer_kind < 0 || op.place != graph::Place::device) continue;
      const auto kind = static_cast<std::size_t>(op.layer_kind);
      const double here = d(op.count) * d(stages_[i].layers[kind]);
      const cost::Work each = work(op);
      own += here * cards_[i]->time(op, each).total.value;
      mean += here * time(op, each).total.value;
    }
    stages_[i].pace = mean > 0 ? own / mean : 1;
  }
}

graph::StageSplit Estimator::split_layers() {
  const graph::Execution& e = setup_.execution;
  const std::int64_t layers = e.model->num_layers();
  const std::int64_t stages = e.plan.pipeline;
  if (e.weights.gguf) {
    const std::vector<double> alike(static_cast<std::size_t>(stages), 1.0);
    return graph::proportional_split(layers, setup_.tensor_split.empty() ? alike : setup_.tensor_split);
  }
  if (layers % stages == 0) return graph::equal_split(layers, stages);
  std::vector<graph::PassCosts> passes;
  for (SequenceGroup group : kReferenceSteps) {
    const std::int64_t multiple = group.new_tokens > 1 ? prompt_unit() : 1;
    group.new_tokens = (group.new_tokens + multiple - 1) / multiple * multiple;
    passes.push_back(pass_costs(group));
  }
  return graph::balanced_split(passes, stages);
}

// Ops before the layers are of the first stage, those after them of the last. What devices send each other counts in
// none, so that other links deal the layers alike: with faster ones a plan is never slower.
graph::PassCosts Estimator::pass_costs(const SequenceGroup& group) {
  const model::Decoder& model = *setup_.execution.model;
  graph::build_step(setup_.execution, {&group, 1}, graph::Part::all, graph_);
  graph::PassCosts costs;
  std::vector<double> kinds(model.kinds.size(), 0.0);
  bool layers_seen = false;
  for (const graph::Op& op : graph_) {
    layers_seen = layers_seen || op.layer_kind >= 0;
    if (op.place == graph::Place::network) continue;
    const double seconds = time(op, work(op)).total.value * d(op.count);
    if (op.layer_kind >= 0) {
      const auto kind = static_cast<std::size_t>(op.layer_kind);
      kinds[kind] += seconds / d(model.count_of_kind(kind));
    } else {
      (layers_seen ? costs.last : costs.first) += seconds;
    }
  }
  for (const unsigned char kind : model.layer_kinds) costs.layers.push_back(kinds[kind]);
  return costs;
}

std::int64_t Estimator::replica_batch(const Scenario& s) const {
  const std::int64_t replicas = setup_.execution.plan.data;
  return (s.batch + replicas - 1) / replicas;
}

std::int64_t Estimator::micro_batches(const Scenario& s) const {
  const std::int64_t stages = setup_.execution.plan.pipeline;
  const std::int64_t overlap = setup_.serving.overlap_batches;
  const std::int64_t batch = (replica_batch(s) + overlap - 1) / overlap;
  if (setup_.execution.weights.gguf) return 1;  // llama.cpp decodes all sequences together
  if (setup_.pipeline_batches > 0) return std::min(setup_.pipeline_batches, batch);
  std::int64_t parts = std::min(setup_.execution.plan.afd ? turns_ : stages, batch);
  while (batch % parts != 0) --parts;
  return parts;
}

std::int64_t Estimator::batch_unit() const {
  return setup_.execution.plan.data * std::max<std::int64_t>(1, setup_.pipeline_batches) *
         setup_.serving.overlap_batches;
}

std::int64_t Estimator::prompt_unit() const { return graph::sequence_multiple(setup_.execution.plan); }

SequenceGroup Estimator::prefill_of(const Scenario& s) const {
  const std::int64_t parts = micro_batches(s) * setup_.serving.overlap_batches;
  return {(replica_batch(s) + parts - 1) / parts, s.prompt, s.depth};
}
SequenceGroup Estimator::Pieces::at(std::int64_t step) const {
  SequenceGroup group = first;
  group.context += step * first.new_tokens;
  return group;
}
std::array<Estimator::Pieces, 2> Estimator::pieces_of(const Scenario& s) const {
  SequenceGroup piece = prefill_of(s);
  piece.new_tokens = std::min(setup_.serving.prefill_chunk.value_or(s.prompt), s.prompt);
  const Pieces whole{piece, s.prompt / piece.new_tokens};
  SequenceGroup rest = whole.at(whole.steps);
  rest.new_tokens = s.prompt % piece.new_tokens;
  return {whole, {rest, rest.new_tokens > 0 ? 1 : 0}};
}
graph::SeenImages Estimator::images_of(const Scenario& s) const { return {replica_batch(s) * s.images, s.image}; }
SequenceGroup Estimator::decode_at(const Scenario& s, std::int64_t context) const {
  SequenceGroup group = prefill_of(s);
  group.new_tokens = setup_.serving.verify;
  group.context = context + (setup_.serving.drafts - 1) / 2;  // of several in a row the middle one
  group.verifies = group.new_tokens > 1;
  return group;
}

std::int64_t Estimator::tokens(const Scenario& s) const {
  return s.depth + s.prompt + (setup_.serving.decodes() ? s.generate : 0);
}
std::int64_t Estimator::cached_tokens(const Scenario& s) const {
  return tokens(s) + (setup_.serving.decodes() ? setup_.serving.verify - 1 : 0);
}
// Steps keep `accepted` tokens on the mean.
std::int64_t Estimator::decode_steps(const Scenario& s) const {
  if (!setup_.serving.decodes() || s.generate <= 1) return 0;
  return static_cast<std::int64_t>(std::ceil(d(s.generate - 1) / setup_.serving.accepted));
}
std::int64_t Estimator::generated(const Scenario& s) const { return s.generate - (setup_.serving.prefills() ? 0 : 1); }

const Phase* Estimate::phase(std::string_view name) const {
  const auto found = std::ranges::find(phases, name, &Phase::name);
  return found == phases.end() ? nullptr : &*found;
}

Estimate Estimator::run(const Scenario& scenario) {
  Estimate result;
  run(scenario, result);
  return result;
}

void Estimator::run(const Scenario& scenario, Estimate& result) {
  const bool afd = setup_.execution.plan.afd;
  const auto launched = [&] {  // by a host, which each kind of devices would wait for
    return afd && setup_.profile && result.fits && result.tpot &&
           result.phases.back().launches.dispatch != hardware::Dispatch::graph;
  };
  const auto take_best = [&](std::int64_t most, auto&& set) {
    std::int64_t best = 1;
    std::optional<Seconds> least;
    for (std::int64_t number = 1; number <= most; ++number) {
      set(number);
      run_drafts(scenario, result);
      if (!result.fits || !result.tpot || launched() || (least && *least <= *result.tpot)) continue;
      least = result.tpot;
      best = number;
    }
    set(best);
  };
  if (setup_.draft && setup_.draft->best) {
    take_best(kMostCompared, [&](std::int64_t tokens) { set_draft_tokens(tokens); });
  }
  if (afd && setup_.pipeline_batches == 0) {
    take_best(kMostTurns, [&](std::int64_t turns) {
      turns_ = turns;
      limits_ = {};
    });
  }
  run_drafts(scenario, result);
  if (launched())
    throw Error::bad_input("`afd`: steps that are no captured graph are not modelled beside it",
                           "a captured `execution`, or more `pipeline-batches`");
  limits(scenario, result);
}

void Estimator::run_drafts(const Scenario& scenario, Estimate& result) {
  result.scenario = scenario;
  const PlacedMemory placed = placed_memory(scenario);
  result.memory = placed.device;
  result.capacity = placed.capacity;
  result.host_memory = placed.host;
  result.host_capacity = host_capacity();
  result.expert_memory = placed.experts;
  result.fits = room(placed).value >= 0;
  if (!result.fits) {
    result.phases.clear();
    result.spending = {};
    return;
  }
  const Serving& serving = setup_.serving;
  const bool sees = serving.prefills() && scenario.images > 0;
  const std::size_t decodes = decode_steps(scenario) > 0 ? 1 : 0;
  find_pieces(scenario);
  result.phases.resize((sees ? 1 : 0) + pieces_.size() + (draft_ ? 2 : 1) * decodes);
  result.ttft.reset();
  result.total = {};
  if (sees) {
    vision(scenario, result.phases.front());
    result.total = result.phases.front().time;
  }
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    Phase& steps = result.phases[(sees ? 1 : 0) + i];
    prefill(scenario, i, steps);
    result.total += steps.total();
    result.ttft = result.total;
  }
  decode(scenario, result);

  const double batch = d(scenario.batch);
  const bool generates = serving.decodes() && !result.phases.empty();
  result.tokens_per_second_per_request = generates ? d(generated(scenario)) / result.total.value : 0;
  result.tokens_per_second = batch * result.tokens_per_second_per_request;
  result.prefill_tokens_per_second = result.ttft ? batch * d(scenario.prompt) / result.ttft->value : 0;
  result.decode_tokens_per_second = result.tpot ? batch / result.tpot->value : 0;
  result.sequences_per_second = setup_.encodes() ? batch / result.ttft->value : 0;
  spend(result);
}

std::optional<BoardPower> Estimator::board() const {
  BoardPower board;
  if (setup_.cards.empty()) {
    if (!setup_.device->power_w) return std::nullopt;
    const bool alone = setup_.host == nullptr && setup_.device->power_shares && roofline().bandwidth().value > 0;
    board.watts = *setup_.device->power_w;
    board.shares = alone ? &*setup_.device->power_shares : nullptr;
    board.bandwidth = roofline().bandwidth();
    board.matrix_rate = product_rate();
    return board;
  }
  for (const Card& card : setup_.cards) {
    if (!card.device->power_w) return std::nullopt;
    board.watts += *card.device->power_w / static_cast<double>(setup_.cards.size());
  }
  return board;
}

FlopsPerSecond Estimator::product_rate() const {
  const model::StoredFormat& weights = setup_.execution.weights.groups.front()[model::Role::o];
  return roofline().matrix_rate(weights.compute, setup_.profile ? cost::Sums::wide : cost::sums_of(weights));
}

Load Estimator::load(const Phase& phase) const {
  const graph::Plan& plan = setup_.execution.plan;
  cost::Work work = phase.work;
  if (plan.afd) {  // ops are of a device of attention or of one of experts: on the mean of all
    work = {};
    for (const OpEstimate& op : phase.ops) {
      const std::int64_t alike = op.op.on_experts ? plan.expert : plan.stage();
      work += op.work * (d(op.op.count) * d(alike) / d(plan.devices()));
    }
  }
  const double each = d(phase.steps) / d(plan.pipeline);  // ops are of a device of every stage
  return {work.bytes() * each, work.matrix * each, phase.total()};
}

std::span<const Phase> Estimator::prompt_phases(const Estimate& e) {
  const auto after =
      std::ranges::find_if(e.phases, [](const Phase& p) { return p.name == "decode" || p.name == "step"; });
  return std::span(e.phases).first(static_cast<std::size_t>(after - e.phases.begin()));
}

std::span<const Phase> Estimator::decode_phases(const Estimate& e) {
  return std::span(e.phases).subspan(prompt_phases(e).size());
}

void Estimator::spend(Estimate& e) const {
  Spending& s = e.spending;
  s = {};
  const double devices = d(setup_.execution.plan.devices());
  if (setup_.price) {
    const double hour = cost_per_hour<double>(setup_.price->amount, devices, {});
    const auto per_million = [hour](double rate) {
      return rate > 0 ? std::optional(cost_per_million(hour, rate)) : std::nullopt;
    };
    s.cost_per_hour = hour;
    s.cost_per_million_input_tokens = per_million(e.prefill_tokens_per_second);
    s.cost_per_million_output_tokens = per_million(e.decode_tokens_per_second);
    s.request_cost_per_million_output = per_million(e.tokens_per_second);
  }
  const std::optional<BoardPower> board = this->board();
  if (!board) return;
  const auto mean_power = [&](std::span<const Phase> phases) {
    double joules = 0;
    Seconds time;
    for (const Phase& phase : phases) {
      joules += power<double>(*board, load(phase)) * phase.total().value;
      time += phase.total();
    }
    return devices * joules / time.value;
  };
  s.power_basis = board->basis();
  s.average_power_w = mean_power(e.phases);
  if (e.ttft) s.joules_per_input_token = mean_power(prompt_phases(e)) / e.prefill_tokens_per_second;
  if (e.tpot) s.joules_per_output_token = mean_power(decode_phases(e)) / e.decode_tokens_per_second;
}

// The tower is on the first stage, whose images are not divided into micro-batches.
void Estimator::vision(const Scenario& scenario, Phase& result) {
  const graph::SeenImages images = images_of(scenario);
  graph::build_vision(setup_.execution, images, graph_);
  Phase pass;
  pass.name = "vision";
  pass.first = pass.last = {.count = images.count, .new_tokens = images.each.tokens};
  pass.ops = std::move(result.ops);
  result = std::move(pass);
  result.launches = {.dispatch = setup_.dispatch_of(true, images.count, kMaxTokens),  // the tower is not captured
                     .prompts = true,
                     .layers = d(setup_.execution.model->vision->layers),
                     .sequences = d(images.count)};
  time_phase(setup_, machine_, graph_, stages_, Prefetch::no, result, seconds_);
}

// One step: its graph, and how it runs.
void Estimator::phase(std::string_view name, std::span<const SequenceGroup> groups, std::int64_t micro_batches,
                      Phase& result) {
  graph::build_step(setup_.execution, groups, graph::Part::all, graph_);
  join_attention(setup_, groups, graph_);
  const Serving& serving = setup_.serving;
  if (serving.drafts > 1) {  // what is made of a verified token's states is made once
    for (graph::Op& op : graph_) op.count *= op.tag == graph::Tag::join_states ? 1 : serving.drafts;
  }
  result.name = name;
  result.steps = result.stride = 1;
  const std::int64_t tokens = rows_of(groups);
  const std::int64_t sequences = sequences_of(groups);
  SequenceGroup group = groups.front();
  result.groups.clear();
  if (groups.size() > 1) {
    result.groups.assign(groups.begin(), groups.end());
    double context = 0;
    for (const SequenceGroup& g : groups) context += d(g.count) * d(g.context);
    group = {.count = sequences,
             .new_tokens = (tokens + sequences - 1) / sequences,
             .context = static_cast<std::int64_t>(context / d(sequences))};
  }
  result.first = result.last = group;
  result.micro_batches = micro_batches;
  result.overlap_batches = setup_.serving.overlap_batches;
  const graph::Execution& e = setup_.execution;
  result.token_batches = e.weights.gguf && stages_.size() > 1 ? (tokens + e.micro_batch - 1) / e.micro_batch : 1;
  const bool prompts = has_prompts(groups);
  result.in_flight = std::numeric_limits<double>::infinity();
  if (result.token_batches > 1 && setup_.profile) {
    const std::optional<FormatKernel> kernel = e.weights.groups.front()[model::Role::o].kernel;
    result.in_flight = prompts_in_flight(setup_.profile->values, d(e.model->num_layers()), d(e.plan.pipeline),
                                         d(result.token_batches), kernel && kernel != FormatKernel::wide);
  }
  pace_stages();
  result.pace.clear();
  for (std::size_t i = 0; i < cards_.size(); ++i) result.pace.push_back(stages_[i].pace);
  result.steady = !prompts && !e.weights.gguf ? Steady::yes : Steady::no;
  result.launches = {.dispatch = setup_.dispatch_of(prompts, sequences, tokens, longest_past(groups)),
                     .prompts = prompts,
                     .layers = d(e.model->num_layers() * serving.drafts) * d(micro_batches * result.overlap_batches),
                     .sequences = d(micro_batches * result.overlap_batches * sequences * serving.drafts),
                     .steps = d(serving.drafts)};
  if (serving.joins_step) result.launches.sequences = result.launches.steps = 0;
  const bool prefetches = e.runtime.prefetch_weights && stages_.size() == 1 && !e.plan.afd;
  time_phase(setup_, machine_, graph_, stages_, prefetches ? Prefetch::yes : Prefetch::no, result, seconds_);
}

// Of steps that keep several tokens the mean over all contexts of the generation stands for that over the steps.
Estimator::Pace Estimator::walk_decode(std::string_view name, const Scenario& scenario, std::int64_t steps,
                                       std::int64_t last_context, Phase& decode) {
  phase(name, decode_at(scenario, scenario.decode_context()), micro_batches(scenario), decode);
  decode.steps = steps;
  decode.last = decode_at(scenario, last_context);
  return walk(Each::no, decode);
}

// Only the ops that grow with the context are timed again, and summed over all contexts.
Estimator::Pace Estimator::walk(Each each, Phase& phase) {
  const std::int64_t stride = phase.stride;
  const std::int64_t start = phase.first.context;
  const std::int64_t last = phase.last.context;
  const std::int64_t contexts = (last - start) / stride + 1;
  Pace pace{.first = phase.time, .mean = {}, .last = {}};
  const std::span<OpEstimate> kernels = std::span(phase.ops).first(phase.ops.size() - (setup_.profile ? 1 : 0));
  const auto overhead = [&] {
    return runtime_overhead(setup_, phase.launches, kernels, seconds_) / d(phase.micro_batches);
  };
  const auto times = [&](auto&& of_growing) {
    std::size_t i = 0;
    seconds_.resize(phase.ops.size());
    for (std::size_t k = 0; k < phase.ops.size(); ++k) {
      const OpEstimate& op = phase.ops[k];
      seconds_[k] = op.op.grows_with_context ? of_growing(i++) * d(op.op.count) : op.step_time().value;
    }
  };

  std::size_t growing = 0;
  for (const OpEstimate& op : phase.ops) growing += op.op.grows_with_context ? 1 : 0;
  const bool overheads = each == Each::yes && setup_.profile;
  const std::size_t width = growing * kRow + (overheads ? 1 : 0);
  const auto evaluate = [&](std::int64_t step, double* out) {
    SequenceGroup group = phase.first;
    group.context = start + step * stride;
    graph::build_step(setup_.execution, {&group, 1}, graph::Part::context_dependent, graph_);
    for (std::size_t i = 0; i < growing; ++i) {
      const cost::Work each_work = work(graph_[i]);
      to_row(each_work, time(graph_[i], each_work), out + i * kRow);
    }
    if (!overheads) return;
    times([&](std::size_t i) { return out[i * kRow + kTotal]; });
    out[growing * kRow] = overhead().value;
  };
  const bool tiles = machine().tiles() != nullptr;
  const bool exact = each == Each::yes && contexts <= (tiles ? kFewPieces : kManyPieces);
  const double tolerance = exact ? 0 : setup_.profile || tiles ? kCurved : kStraight;
  // Ranges end where a window fills up.
  sums_.assign(width, 0.0);
  std::int64_t step = 0;
  while (step < contexts) {
    const std::int64_t begin = start + step * stride;
    std::int64_t end = last;
    for (const model::Layer& layer : setup_.execution.model->kinds) {
      const model::Attention& a = layer.attention;
      const std::int64_t pool = a.compression ? a.compression->ratio : 1;
      // From these contexts on a window is full, or queries see chosen keys only.
      for (const std::int64_t keys :
           {setup_.execution.window(a).value_or(0), a.indexer ? pool * a.indexer->top_k : 0}) {
        if (keys - 1 > begin && keys - 1 < end) end = keys - 1;
      }
      if (a.chunked && setup_.execution.window(a) && setup_.execution.runtime.flash_attention)
        end = std::min(end, begin / *a.window * *a.window + *a.window - 1);
    }
    // Scores in memory go up in steps where the keys are dealt to the ring.
    const std::int64_t ring = setup_.execution.plan.ring;
    if (ring > 1 && !setup_.execution.runtime.flash_attention) end = std::min(end, begin / ring * ring + ring - 1);
    const std::int64_t piece = kPiece * stride;
    if (tiles) end = std::min(end, begin / piece * piece + piece - 1);
    const std::int64_t to = (end - start) / stride;
    sum_over_context(step, to, width, samples_, sums_.data(), evaluate, tolerance);
    step = to + 1;
  }
  evaluate(contexts - 1, samples_.data());

  times([&](std::size_t i) { return samples_[i * kRow + kTotal]; });
  std::size_t i = 0;
  for (OpEstimate& op : phase.ops) {
    if (!op.op.grows_with_context) continue;
    from_row(sums_.data() + i++ * kRow, 1 / d(contexts), setup_.profile != nullptr, op.work, op.time);
  }
  // A kernel of a profile says itself what it is bound by: of pieces the one in the middle stands for all.
  if (overheads) {
    SequenceGroup middle = phase.first;
    middle.context = start + contexts / 2 * stride;
    graph::build_step(setup_.execution, {&middle, 1}, graph::Part::context_dependent, graph_);
    i = 0;
    for (OpEstimate& op : phase.ops) {
      if (!op.op.grows_with_context) continue;
      op.time.bound = time(graph_[i], work(graph_[i])).bound;
      ++i;
    }
  }
  const auto last_step = [&] {
    return schedule_step(phase.ops, seconds_, stages_, phase.batches(), phase.steady, phase.in_flight).time;
  };
  if (setup_.profile) {
    OpEstimate& runtime = phase.ops.back();
    phase.last_overhead = overhead();
    seconds_.back() = phase.last_overhead.value * d(runtime.op.count);
    pace.last = last_step();
    for (std::size_t k = 0; k < kernels.size(); ++k) seconds_[k] = kernels[k].step_time().value;
    runtime.time.total = overheads ? Seconds{sums_.back() / d(contexts)} : overhead();
  } else {
    pace.last = last_step();
  }
  sum_up(phase, stages_, seconds_);
  pace.mean = phase.time;
  return pace;
}

// But for what grows with the context: the same work in the same time, launched alike.
bool Estimator::same_ops(const SequenceGroup& a, const SequenceGroup& b) {
  if (is_decode(a) != is_decode(b)) return false;
  graph::build_step(setup_.execution, {&a, 1}, graph::Part::all, graph_);
  graph::Graph other;
  graph::build_step(setup_.execution, {&b, 1}, graph::Part::all, other);
  const auto same = [&](const graph::Op& x, const graph::Op& y) {
    const auto shape = [](const graph::Op& op) {
      return std::tuple(op.tag, op.count, op.layer_kind, op.place, op.grows_with_context, op.launches, op.reshaped);
    };
    if (shape(x) != shape(y) || x.grows_with_context) return shape(x) == shape(y);
    std::array<double, kRow> rows[2];
    to_row(work(x), time(x, work(x)), rows[0].data());
    to_row(work(y), time(y, work(y)), rows[1].data());
    return rows[0] == rows[1];
  };
  return std::equal(graph_.begin(), graph_.end(), other.begin(), other.end(), same);
}

void Estimator::find_pieces(const Scenario& scenario) {
  pieces_.clear();
  if (!setup_.serving.prefills()) return;
  for (const Pieces& all : pieces_of(scenario)) {
    for (std::int64_t begin = 0; begin < all.steps;) {
      // What sets pieces apart sets all that follow apart.
      std::int64_t like = all.steps - 1;
      std::int64_t other = all.steps;
      if (like > begin && !same_ops(all.at(begin), all.at(like))) other = std::exchange(like, begin);
      like = bisect(like, other, [&](std::int64_t step) { return same_ops(all.at(begin), all.at(step)); }).first;
      pieces_.push_back({all.at(begin), like - begin + 1});
      begin = like + 1;
    }
  }
}

void Estimator::prefill(const Scenario& scenario, std::size_t pieces, Phase& result) {
  const Pieces& own = pieces_[pieces];
  phase(pieces == 0 ? prompt_phase() : kLaterPieces.at(pieces - 1), own.first, micro_batches(scenario), result);
  if (own.steps == 1) return;
  result.steps = own.steps;
  result.stride = own.first.new_tokens;
  result.last = own.last();
  walk(Each::yes, result);
}

Estimator::Pace& Estimator::Pace::operator+=(const Pace& other) {
  first += other.first;
  mean += other.mean;
  last += other.last;
  return *this;
}

void Estimator::decode(const Scenario& scenario, Estimate& result) {
  result.tpot_first = result.tpot = result.tpot_last = std::nullopt;
  const std::int64_t steps = decode_steps(scenario);
  if (steps < 1) return;
  const double accepted = setup_.serving.accepted;
  const std::int64_t last = scenario.decode_context() + static_cast<std::int64_t>(d(steps - 1) * accepted);
  Phase& phase = result.phases[result.phases.size() - (draft_ ? 2 : 1)];
  Pace pace = walk_decode("decode", scenario, steps, last, phase);
  if (draft_) pace += draft_->walk_decode("draft", scenario, steps, last, result.phases.back());
  result.tpot_first = pace.first / accepted;
  result.tpot = pace.mean / accepted;
  result.tpot_last = pace.last / accepted;
  result.total += pace.mean * d(steps);
}

bool has_prompts(std::span<const SequenceGroup> step) { return !std::ranges::all_of(step, is_decode); }
std::int64_t sequences_of(std::span<const SequenceGroup> step) {
  std::int64_t sum = 0;
  for (const SequenceGroup& g : step) sum += g.count;
  return sum;
}
std::int64_t longest_past(std::span<const SequenceGroup> step) {
  std::int64_t longest = 0;
  for (const SequenceGroup& g : step) longest = std::max(longest, g.context);
  return longest;
}

std::int64_t rows_of(std::span<const SequenceGroup> step) {
  std::int64_t sum = 0;
  for (const SequenceGroup& g : step) sum += g.count * g.new_tokens;
  return sum;
}

void pool_decodes(std::span<const SequenceGroup> step, std::vector<SequenceGroup>& pooled) {
  pooled.clear();
  for (const SequenceGroup& g : step) {
    const auto alike = std::ranges::find_if(pooled, [&](const SequenceGroup& p) {
      return is_decode(p) && is_decode(g) && p.new_tokens == g.new_tokens && p.verifies == g.verifies;
    });
    if (alike == pooled.end()) {
      pooled.push_back(g);
      continue;
    }
    SequenceGroup& p = *alike;
    const std::int64_t longest = std::max({p.context, p.longest, g.context, g.longest});
    const double sum = d(p.count) * d(p.context) + d(g.count) * d(g.context);
    p.count += g.count;
    p.context = static_cast<std::int64_t>(std::llround(sum / d(p.count)));
    p.longest = longest > p.context ? longest : 0;
  }
}

bool joins_attention(const Platform& platform, std::span<const SequenceGroup> step, std::size_t group) {
  if (!platform.profile || platform.profile->choices.ggml) return false;
  const bool joint = platform.profile->choices.joint_attention;
  return std::ranges::any_of(step.first(group), [&](const SequenceGroup& before) {
    return joint || is_decode(before) == is_decode(step[group]);
  });
}

void join_attention(const Platform& platform, std::span<const SequenceGroup> step, graph::Graph& graph) {
  if (step.size() < 2) return;
  for (graph::Op& op : graph) {
    const auto* a = std::get_if<graph::Attention>(&op.body);
    if (a && op.tag == graph::Tag::attention && !a->shared_kv &&
        joins_attention(platform, step, static_cast<std::size_t>(op.group))) {
      op.launches = 0;
    }
  }
}

void Estimator::mixed_step(std::span<const SequenceGroup> groups, Phase& result) {
  pool_decodes(groups, pooled_);
  const bool prompts = has_prompts(pooled_);
  phase(!prompts ? "decode" : pooled_.size() == 1 ? prompt_phase() : "step", pooled_, 1, result);
}

Seconds Estimator::step_time(std::span<const SequenceGroup> step) {
  pool_decodes(step, pooled_);
  graph::build_step(setup_.execution, pooled_, graph::Part::all, graph_);
  join_attention(setup_, pooled_, graph_);
  Seconds sum;
  const std::int64_t sequences = sequences_of(step);
  std::optional<mapper::StepOverhead> host;
  if (setup_.profile) {
    const bool prompts = has_prompts(pooled_);
    host.emplace(setup_.profile->values,
                 setup_.dispatch_of(prompts, sequences, rows_of(pooled_), longest_past(pooled_)), prompts,
                 setup_.profile->choices.overlapped);
  }
  for (const graph::Op& op : graph_) {
    sum += time(op, work(op)).total * d(op.count);
    if (host) host->add(op);
  }
  if (!host) return sum;
  return sum + host->time(sum, d(setup_.execution.model->num_layers()), d(sequences));
}

Estimator::PlacedMemory Estimator::placed_memory(const Scenario& s) const {
  const graph::Execution& e = setup_.execution;
  PlacedMemory m;
  const std::size_t fullest = fullest_stage(s);
  m.device = stage_memory(s, fullest);
  m.capacity = capacity(fullest);
  m.host.weights = host_weights_;
  if (draft_) m.host.draft = draft_->host_weights_;
  if (e.plan.afd) m.experts = expert_memory(s);
  if (e.weights.gguf) {
    m.host.kv_cache = cost::kv_cache_bytes(e, cached_tokens(s)).host * d(replica_batch(s));
    m.host.state = cost::state_bytes(e).host * d(replica_batch(s));
    m.host.activation = compute_buffers(s, fullest).host;
  }
  return m;
}

// Of the first and the last of as many tokens each: what attention holds besides may grow with the context, or be of
// the prompt that has none.
Bytes Estimator::prompt_activation(const Scenario& s) const {
  Bytes most;
  for (const Pieces& all : pieces_of(s)) {
    if (all.steps > 0) most = std::max(most, cost::activation_peak(setup_.execution, all.first));
    if (all.steps > 1) most = std::max(most, cost::activation_peak(setup_.execution, all.last()));
  }
  return most;
}

cost::Memory Estimator::stage_memory(const Scenario& s, std::size_t stage) const {
  const graph::Execution& e = setup_.execution;
  cost::Memory m;
  m.reserve = setup_.reserve;
  m.weights = stages_[stage].weights;
  if (e.weights.gguf) {
    m.activation = compute_buffers(s, stage).device;
  } else {
    const Serving& serving = setup_.serving;
    if (serving.prefills()) m.activation = prompt_activation(s);
    if (serving.prefills() && s.images > 0) {
      m.activation = std::max(m.activation, cost::vision_activation_peak(e, images_of(s)));
    }
    if (serving.decodes()) {
      m.activation =
          std::max(m.activation, cost::activation_peak(e, decode_at(s, s.decode_context() + s.generate - 1)));
    }
    m.activation = m.activation * (setup_.activation_factor * d(serving.overlap_batches));
  }
  const std::int64_t tokens = cached_tokens(s);
  const bool placed = e.weights.gguf && stages_.size() == 1;  // layers on the host cache there
  const Bytes kv =
      placed ? cost::kv_cache_bytes(e, tokens).device : cost::stage_kv_bytes(e, stages_[stage].layers, tokens);
  m.kv_cache = kv * d(replica_batch(s));
  const Bytes state = placed ? cost::state_bytes(e).device : cost::stage_state_bytes(e, stages_[stage].layers);
  m.state = state * d(replica_batch(s));
  if (draft_ && stage + 1 == stages_.size()) add_draft(s, m);
  return m;
}

cost::Memory Estimator::expert_memory(const Scenario& s) const {
  const SequenceGroup last = decode_at(s, s.decode_context() + s.generate - 1);
  return {.weights = cost::expert_weight_bytes(setup_.execution, 0),
          .activation = cost::expert_activation_peak(setup_.execution, last) * setup_.activation_factor,
          .reserve = setup_.reserve};
}

// A draft runs on the devices of the last stage, where its target's hidden states are. Its activations take the place
// of the target's, which are more.
void Estimator::add_draft(const Scenario& s, cost::Memory& memory) const {
  if (!setup_.serving.decodes()) return;
  const graph::Execution& e = draft_->setup_.execution;
  const Stage& stage = draft_->stages_.front();
  memory.draft = stage.weights;
  memory.draft_cache =
      (cost::stage_kv_bytes(e, stage.layers, cached_tokens(s)) + cost::stage_state_bytes(e, stage.layers)) *
      d(draft_->replica_batch(s));
  if (e.weights.gguf) memory.draft_cache += draft_->compute_buffers(s, 0).device;
}

model::PlacedBytes Estimator::compute_buffers(const Scenario& s, std::size_t stage) const {
  return cost::compute_buffers(setup_.execution, s.batch, s.batch * cached_tokens(s), static_cast<std::int64_t>(stage));
}

std::size_t Estimator::fullest_stage(const Scenario& s) const {
  if (stages_.size() == 1) return 0;
  const double batch = d(replica_batch(s));
  const auto needs = [&](std::size_t i) {
    const Bytes kv = (cost::stage_kv_bytes(setup_.execution, stages_[i].layers, cached_tokens(s)) +
                      cost::stage_state_bytes(setup_.execution, stages_[i].layers)) *
                     batch;
    const Bytes buffers = setup_.execution.weights.gguf ? compute_buffers(s, i).device : Bytes{};
    cost::Memory drafts;
    if (draft_ && i + 1 == stages_.size()) add_draft(s, drafts);
    return stages_[i].weights + kv + buffers + drafts.total() - capacity(i);
  };
  std::size_t fullest = 0;
  for (std::size_t i = 1; i < stages_.size(); ++i) {
    if (needs(fullest) < needs(i)) fullest = i;
  }
  return fullest;
}

Bytes Estimator::room(const Scenario& scenario) const { return room(placed_memory(scenario)); }

Bytes Estimator::room(const PlacedMemory& m) const {
  const Bytes device = m.capacity - std::max(m.device.total(), m.experts.total());
  return setup_.host ? std::min(device, host_capacity() - m.host.total()) : device;
}

std::int64_t Estimator::largest_batch(const Scenario& scenario) const {
  const auto batch_room = [&](std::int64_t batch) {
    Scenario other = scenario;
    other.batch = batch;
    return room(other).value;
  };
  // Batches that fill the pipeline are computed in smaller parts: among those alone the room never grows.
  const std::int64_t unit = batch_unit();
  const bool whole = setup_.pipeline_batches > 0 || setup_.execution.weights.gguf;
  const std::int64_t stages = whole ? 1 : setup_.execution.plan.pipeline;
  const std::int64_t full = unit * stages;
  const std::int64_t filled = full * largest(kMaxBatch / full, [&](std::int64_t n) { return batch_room(full * n); });
  std::int64_t found = filled;
  for (std::int64_t batch = filled + unit; batch < std::min(filled + full, kMaxBatch + 1); batch += unit) {
    if (batch_room(batch) >= 0) found = batch;
  }
  return found;
}

std::int64_t Estimator::longest_context(const Scenario& scenario) const {
  const auto of_prompt = [&](std::int64_t prompt) {
    Scenario other = scenario;
    other.prompt = prompt;
    return other;
  };
  const std::int64_t piece = prompt_unit();
  const std::int64_t prompt =
      piece * largest(kMaxTokens / piece, [&](std::int64_t pieces) { return room(of_prompt(piece * pieces)).value; });
  return prompt > 0 ? tokens(of_prompt(prompt)) : 0;
}

void Estimator::limits(const Scenario& scenario, Estimate& result) {
  constexpr std::size_t kMost = 4096;
  const auto once = [&](auto& found, Scenario key, auto&& find) {
    if (found.size() > kMost) found.clear();
    return load_once(found, key, find);
  };
  Scenario any_batch = scenario;
  any_batch.batch = 0;
  Scenario any_prompt = scenario;
  any_prompt.prompt = 0;
  result.largest_batch = once(limits_.batches, any_batch, [&] { return largest_batch(scenario); });
  result.longest_context = once(limits_.contexts, any_prompt, [&] { return longest_context(scenario); });
}

}  // namespace llmperf::estimate
