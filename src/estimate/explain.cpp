// An explanation is a formula over Term (base/term.h). What an op asks for and what memory holds are the formulas of
// cost/work.cpp and cost/memory.cpp, its time is the roofline's; sums, quotients and limits are written here. explain()
// finds what a path means: the request's numbers and its memory from one list, those of phases and ops by their names.
//
// An op that grows with the context has no single shape over a generation: its number is a mean, taken piece by piece
// where the cost is linear in the context (a sliding window fills up, another resource becomes the slowest).
#include "estimate/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/integer.h"
#include "base/number.h"
#include "base/text.h"
#include "cost/formulas.h"
#include "estimate/schedule.h"
#include "mapper/roofline/efficiency.h"
#include "model/parameters.h"
#include "model/stored_bytes.h"

namespace llmperf::estimate {
namespace {

// ---- What explanations are put together from

// A number that every op has, over all its executions in a step.
enum class Metric : unsigned char {
  flops,
  matrix_flops,
  vector_flops,
  bytes,
  weight_bytes,
  activation_read_bytes,
  activation_written_bytes,
  kv_read_bytes,
  kv_written_bytes,
  network_bytes,
  time_s,
  roof_s
};
struct MetricInfo {
  Metric metric;
  std::string_view name;
  std::string_view unit;
  std::string_view none;  // what is said of an op that has none of it
};
constexpr std::array<MetricInfo, 12> kMetrics = {{
    {Metric::flops, "flops", "FLOP", ""},
    {Metric::matrix_flops, "matrix_flops", "FLOP", "this op multiplies no matrices"},
    {Metric::vector_flops, "vector_flops", "FLOP", "this op has no element-wise work"},
    {Metric::bytes, "bytes", "B", ""},
    {Metric::weight_bytes, "weight_bytes", "B", "this op reads no weights"},
    {Metric::activation_read_bytes, "activation_read_bytes", "B", "this op reads no activations"},
    {Metric::activation_written_bytes, "activation_written_bytes", "B", "this op writes no activations"},
    {Metric::kv_read_bytes, "kv_read_bytes", "B", "this op does not read the KV cache"},
    {Metric::kv_written_bytes, "kv_written_bytes", "B", "this op does not write the KV cache"},
    {Metric::network_bytes, "network_bytes", "B", "this op sends nothing over a link"},
    {Metric::time_s, "time_s", "s", ""},
    {Metric::roof_s, "roof_s", "s", ""},
}};
constexpr const MetricInfo& info(Metric metric) { return kMetrics[static_cast<std::size_t>(metric)]; }
const MetricInfo* metric_called(std::string_view name) {
  const auto* found = std::ranges::find(kMetrics, name, &MetricInfo::name);
  return found == kMetrics.end() ? nullptr : found;
}

// A part of an op's work, computed (cost::Work) or explained (cost::Terms<Term>).
template <class Work>
auto part_of_work(Metric metric, const Work& w) {
  using N = std::conditional_t<std::is_same_v<Work, cost::Work>, double, Term>;
  const auto plain = [](const auto& x) -> N {
    if constexpr (std::is_same_v<N, Term>) {
      return x;
    } else {
      return x.value;
    }
  };
  switch (metric) {
    case Metric::matrix_flops: return plain(w.matrix);
    case Metric::vector_flops: return plain(w.vector);
    case Metric::weight_bytes: return plain(w.weights);
    case Metric::activation_read_bytes: return plain(w.activations_read);
    case Metric::activation_written_bytes: return plain(w.activations_written);
    case Metric::kv_read_bytes: return plain(w.kv_read);
    case Metric::kv_written_bytes: return plain(w.kv_written);
    case Metric::network_bytes: return plain(w.network);
    default: return N(0);
  }
}
double number_of(Metric metric, const cost::Work& work, const mapper::OpTime& time, double count) {
  switch (metric) {
    case Metric::flops: return (work.matrix + work.vector).value * count;
    case Metric::bytes: return work.bytes().value * count;
    case Metric::time_s: return time.total.value * count;
    case Metric::roof_s: return time.roof.value * count;
    default: return part_of_work(metric, work) * count;
  }
}

template <class Value>
Term named(std::string_view name, Value value, std::string meaning) {
  return {name, static_cast<double>(value), std::move(meaning)};
}
// A variable named after its path, with its explanation among the parts.
Term named(Explanation part, std::string meaning) {
  Term term(part.path, part.value, std::move(meaning));
  return term.with_part(std::move(part));
}

// The meaning of an op's number: "B, all 32 executions together".
std::string executions(Metric metric, std::int64_t count) {
  const std::string_view unit = info(metric).unit;
  return count == 1 ? std::string(unit) : fmt::format("{}, all {} executions together", unit, count);
}

// Throws std::logic_error unless the formula gives `number`.
Explanation checked(const Term& formula, std::string path, std::string_view unit, double number) {
  constexpr double kTolerance = 1e-9;
  Explanation x = formula.explained(std::move(path), unit);
  if (!(std::abs(x.value - number) <= kTolerance * std::max(std::abs(x.value), std::abs(number)))) {
    throw std::logic_error(
        fmt::format("internal error: {} is {}, but its formula {} gives {}", x.path, number, x.formula, x.value));
  }
  x.value = number;
  return x;
}

std::string phase_path(const Phase& phase, std::string_view key) {
  return fmt::format("phases.{}.{}", phase.name, key);
}
std::string op_path(const Phase& phase, std::string_view key) {
  return fmt::format("phases.{}.ops.{}", phase.name, key);
}

// ---- Work of one execution of an op

// What a device holds of the op's layer.
std::optional<model::Layer> layer_of(const graph::Execution& e, const graph::Op& op) {
  if (op.layer_kind < 0) return std::nullopt;
  return graph::shard(e.model->kinds[static_cast<std::size_t>(op.layer_kind)], e.plan);
}

// What a copy moves as a product of named factors; the count alone where they do not give it.
Term elements(const graph::Execution& e, const graph::Op& op, const graph::SequenceGroup& g, double count,
              bool written) {
  const Term tokens = named("tokens", g.count * g.new_tokens, "tokens of the step");
  const std::optional<model::Layer> layer = layer_of(e, op);
  Term text;
  if (layer && op.tag == graph::Tag::dispatch && layer->feed_forward.experts) {
    text = tokens * named("experts_per_token", layer->feed_forward.experts->per_token, "experts a token is sent to") *
           named("hidden", e.model->hidden, "width of the residual stream");
  } else if (layer) {
    const model::Attention& a = layer->attention;
    const std::int64_t total = g.context + g.new_tokens;
    const std::optional<std::int64_t> window = e.window(a);
    const Term per_token =
        named("values_per_token", model::kv_values_per_token(a), "values a token keeps in the cache of a layer");
    const Term sequences = named("sequences", g.count, "sequences of the step");
    if (op.tag == graph::Tag::kv_write) {
      text = tokens * per_token;
    } else if (op.tag == graph::Tag::kv_concat) {
      text =
          sequences *
          named("cached_tokens", std::min(g.context, window.value_or(g.context)), "tokens in the cache of a sequence") *
          per_token;
    } else if (op.tag == graph::Tag::repeat_kv) {
      text =
          sequences *
          named("keys", window ? std::min(total, *window - 1 + g.new_tokens) : total,
                "keys the new tokens of a sequence may see") *
          (written ? named("heads", a.heads, "query heads") : named("kv_heads", a.kv_heads, "key and value heads")) *
          (named("qk_dim", a.head_dim, "width of a key head") + named("v_dim", a.v_head_dim, "width of a value head"));
    }
  }
  if (text.value() == count && !text.is(0)) return text;
  return written ? named("write_elements", count, "elements written") : named("read_elements", count, "elements read");
}

// Sent by one device.
Term sent(const graph::Collective& c, const Term& bytes) {
  Term x = bytes;
  if (c.routing.experts > 0) {
    const double devices = d(c.ranks) * graph::reached(c.routing, c.routing.experts / c.ranks) * c.routing.busiest;
    x = x.noted(fmt::format(
        "rows: {} tokens, each once for every device that has one of its {} experts of {}{}: {} devices on average{}",
        format_significant(c.rows / devices), c.routing.per_token, c.routing.experts,
        c.routing.groups > 1 ? fmt::format(", in {} of {} groups", c.routing.groups_per_token, c.routing.groups) : "",
        format_significant(devices / c.routing.busiest),
        c.others == 0 && c.routing.busiest > 1 + 1e-9
            ? fmt::format(", and {} times as many of the busiest", format_significant(c.routing.busiest))
            : ""));
  }
  return x.noted(fmt::format("what one device sends in a bandwidth-optimal {}", name(c.kind)));
}

// Says how many experts a product is expected to reach.
void add_experts(const graph::Execution& e, const graph::Op& op, const graph::SequenceGroup& group, Term& formula) {
  const auto* gemm = std::get_if<graph::Gemm>(&op.body);
  const std::optional<model::Layer> layer = layer_of(e, op);
  if (op.tag == graph::Tag::adapter_down || op.tag == graph::Tag::adapter_up)
    return formula.extend_meaning("weight_matrices",
                                  fmt::format(", here of {} adapters that requests choose", e.adapters.served));
  if (!gemm || gemm->batch > 1 || !layer || !layer->feed_forward.experts) return;
  const model::Experts& x = *layer->feed_forward.experts;
  const bool shared = e.joins_shared_expert(x);
  const bool divided = e.plan.expert > 1 && !e.routing.measured;
  const std::int64_t tokens = divided ? graph::routed_tokens(e.plan, group.count * group.new_tokens)
                                      : gemm->m / (x.per_token + (shared ? 1 : 0));
  const std::string chosen =
      e.routing.measured ? fmt::format("most of a device by the loads in {}", e.routing.measured->name())
      : e.routing.balanced
          ? fmt::format("{} rows dealt to {}", tokens * x.per_token, x.count)
          : fmt::format("sum over {0} of 1 - (1 - p)^{1}, the r-th picked with chance p ~ r^-{2} of {3} in all",
                        x.count, tokens, format_significant(e.routing.exponent), x.per_token);
  std::string share;
  if (divided) {
    const double mean = graph::expert_load(e.routing, x.count, x.per_token, tokens).active / d(e.plan.routed_ranks());
    share = fmt::format(", / {}", e.plan.routed_ranks());
    if (const double more = graph::load_of_device(e, x, tokens).active / mean; more > 1 + 1e-9)
      share += fmt::format(", x {} of the busiest{}", format_significant(more),
                           e.plan.expert_copies > 0 ? fmt::format(", with {} copies", e.plan.expert_copies) : "");
  }
  if (shared) share += ", + 1 shared";
  formula.extend_meaning("weight_matrices", fmt::format(", expected: {}{}", chosen, share));
}

Term work_of(const Estimator& estimator, const graph::Op& op, const graph::SequenceGroup& group, Metric metric) {
  const graph::Execution& e = estimator.setup().execution;
  const auto* copy = std::get_if<graph::Copy>(&op.body);
  const auto* vector = std::get_if<graph::Vector>(&op.body);
  cost::Terms<Term> work = copy ? cost::explained_copy(*copy, elements(e, op, group, copy->read_elements, false),
                                                       elements(e, op, group, copy->write_elements, true))
                                : cost::explained_work(op, estimator.roofline(op.place).cache());
  if (vector && !work.weights.is(0)) {
    const double bits = e.weights.vector_bits;
    work.weights = named("parameters", vector->parameters.value * 8 / bits, "weights and biases of the op") *
                   named("bits", bits, "bits stored per weight") / 8;
  }
  for (Term* formula : {&work.vector, &work.weights, &work.activations_read}) add_experts(e, op, group, *formula);
  if (const auto* collective = std::get_if<graph::Collective>(&op.body)) {
    work.network = sent(*collective, work.network);
    if (e.plan.afd && collective->routing.experts > 0) {
      work.network = work.network.noted(
          fmt::format("times {}: none has them at hand, and where devices of experts are fewer each gets more",
                      format_significant(collective->routing.busiest)));
    }
  }
  return part_of_work(metric, work);
}

// ---- All executions of an op in a step of its phase

class OpExplainer {
 public:
  // `step`: at that step rather than on average over the phase.
  OpExplainer(const Estimator& estimator, const Phase& phase, std::size_t index, std::string path,
              const graph::SequenceGroup* step = nullptr)
      : estimator_(estimator),
        setup_(estimator.setup()),
        phase_(phase),
        estimate_(phase.ops[index]),
        place_(estimate_.op.place),
        path_(std::move(path)),
        group_(step ? *step : phase.first),
        op_(estimate_.op),
        own_time_(estimate_.time) {
    const auto is_growing = [](const OpEstimate& op) { return op.op.grows_with_context; };
    mean_ = phase.steps > 1 && is_growing(estimate_) && !step;
    growing_index_ = static_cast<std::size_t>(
        std::count_if(phase.ops.begin(), phase.ops.begin() + static_cast<std::ptrdiff_t>(index), is_growing));
    if (step && is_overhead()) {
      own_time_.total = step->context == phase.first.context ? phase.first_overhead : phase.last_overhead;
    }
    if (step && is_growing(estimate_)) op_ = at(step->context);
  }

  Explanation explain(Metric metric) const {
    return checked(formula(metric), fmt::format("{}.{}", path_, info(metric).name), info(metric).unit, number(metric));
  }

 private:
  Term formula(Metric metric) const {
    switch (metric) {
      case Metric::flops: return sum({Metric::matrix_flops, Metric::vector_flops});
      case Metric::bytes:
        return sum({Metric::weight_bytes, Metric::activation_read_bytes, Metric::activation_written_bytes,
                    Metric::kv_read_bytes, Metric::kv_written_bytes});
      case Metric::roof_s: return time(metric);
      case Metric::time_s: return mean_ ? mean(metric) : time(metric);
      default: return mean_ ? mean(metric) : work(metric);
    }
  }
  // A variable that is itself a number of this op, explained among the parts.
  Term part(Metric metric) const {
    return named(info(metric).name, number(metric), executions(metric, estimate_.op.count)).with_part(explain(metric));
  }
  // `each` of every execution in a step.
  Term counted(const Term& each) const { return named("count", count(), "executions in a step") * each; }
  double count() const { return d(estimate_.op.count); }
  bool is_overhead() const { return std::holds_alternative<graph::Overhead>(estimate_.op.body); }

  graph::Op at(std::int64_t context) const {
    graph::SequenceGroup group = phase_.first;
    group.context = context;
    graph::Graph graph;
    graph::build_step(setup_.execution, {&group, 1}, graph::Part::context_dependent, graph);
    graph[growing_index_].count *= phase_.micro_batches * phase_.overlap_batches * setup_.serving.drafts;
    return graph[growing_index_];
  }
  double of(const graph::Op& op, Metric metric) const {
    const cost::Work work = estimator_.work(op);
    return number_of(metric, work, estimator_.time(op, work), d(op.count));
  }
  // What the explanation is of: one step's number, or the mean over the phase. An overhead follows from the others.
  double number(Metric metric) const {
    return mean_ || is_overhead() ? number_of(metric, estimate_.work, own_time_, count()) : of(op_, metric);
  }

  Term work(Metric metric) const {
    const Term each = work_of(estimator_, op_, group_, metric);
    if (each.is(0)) return Term(0).noted(std::string(info(metric).none));
    const bool of_layers = op_.layer_kind >= 0 && !setup_.execution.weights.gguf && setup_.serving.drafts == 1;
    return each * named("count", op_.count,
                        !of_layers                       ? "executions in a step"
                        : estimator_.stages().size() > 1 ? "layers of this kind, for every micro-batch"
                                                         : "layers of this kind");
  }

  Term sum(std::initializer_list<Metric> terms) const {
    Term all;
    for (const Metric term : terms) {
      if (number(term) != 0) all = all + part(term);
    }
    return all;
  }

  // The roofline: the slowest of the three resources, none waiting for another.
  Term time(Metric metric) const {
    const bool predicts =
        place_ == graph::Place::host ? estimator_.machine().host_efficiency() != nullptr : setup_.profile != nullptr;
    if (place_ == graph::Place::link) return time_over_link(metric);
    if (place_ == graph::Place::network && (!predicts || metric == Metric::time_s)) return time_of_collective(metric);
    if (predicts) return predicted(metric);
    const bool tiles = estimator_.machine().tiles() && place_ == graph::Place::device;
    if (tiles && metric == Metric::time_s) return mapped();
    const mapper::Roofline& roofline = estimator_.roofline(place_);
    const auto each = [&](std::string_view name, Metric term) {
      return named(name, number(term) / count(), fmt::format("{} of one execution", info(term).unit));
    };
    static constexpr std::array<std::string_view, 3> kSums = {"", ", added up in 16 bits",
                                                              ", added up in 16 bits or multiplied in int8"};
    const Term matrix =
        each("matrix_flops_each", Metric::matrix_flops) /
        named("matrix_rate", roofline.matrix_rate(estimate_.work).value,
              fmt::format("FLOP/s, peak of matrix products in {}{}", llmperf::name(estimate_.work.matrix_dtype),
                          kSums[static_cast<std::size_t>(estimate_.work.sums)]));
    const Term vector = each("vector_flops_each", Metric::vector_flops) /
                        named("vector_rate", roofline.vector_rate().value, "FLOP/s, peak of the vector engine");
    const Term memory = each("bytes_each", Metric::bytes) /
                        named("bandwidth", roofline.bandwidth().value, "B/s, peak of the device memory");
    const Term longest = largest_of({matrix, vector, memory});
    Term time = counted(longest);
    if (place_ == graph::Place::host) time = time.noted("this op runs on the host");
    const auto [slowest, what] = memory.value() == longest.value() ? std::pair{"memory", Metric::bytes}
                                 : matrix.value() == longest.value()
                                     ? std::pair{"the matrix engine", Metric::matrix_flops}
                                     : std::pair{"the vector engine", Metric::vector_flops};
    return time.noted(fmt::format("{} is the slowest of the three", slowest)).with_part(explain(what));
  }

  Term time_over_link(Metric metric) const {
    const hardware::HostLink& link = setup_.link;
    const Term sent = part(Metric::network_bytes);
    const Term rate =
        named("link_rate", link.per_direction.value,
              fmt::format("B/s, {} between host and device, one way ({})", link.name, hardware::name(link.provenance)));
    if (metric == Metric::roof_s) return sent / rate;
    const auto staged = estimator_.machine().staging(op_);
    if (staged && *staged < link.per_direction) {
      return sent / named("staging", staged->value, "B/s, pageable memory by way of the driver's buffers");
    }
    const auto share = estimator_.machine().upload_share(op_);
    if (!share) return sent / rate;
    const Term reached = rate * named("upload_share", get(setup_.profile->values, *share), "of that rate, of weights");
    return parameter(index(*share), "", sent / reached.in_parentheses());
  }

  // Steps that follow one another, and the bytes on the link that limits the exchange; under a runtime profile both as
  // its library takes them.
  Term time_of_collective(Metric metric) const {
    const auto& collective = std::get<graph::Collective>(op_.body);
    cost::CollectiveCost cost = cost::collective_cost(estimator_.machine().cluster(), collective);
    const bool predicts = setup_.profile && metric == Metric::time_s;
    if (predicts) {
      const cost::CollectiveCost charged = cost::collective_cost(setup_.charged_cluster(), collective);
      if (charged.time() > cost.time()) cost = charged;
    }
    const Term transfer =
        named("transfer_s", cost.transfer.value,
              cost.algorithm == cost::Algorithm::hierarchical
                  ? fmt::format("s level by level, {}; {} on the busiest link, {}",
                                collective.routing.experts > 0 ? "at the same time" : "one after the other",
                                format_bytes(cost.busiest_link), name(cost.level))
                  : fmt::format("s: {} on the busiest link", format_bytes(cost.busiest_link)));
    Term time = counted(transfer);
    if (metric == Metric::time_s) {
      const std::string more = predicts ? ", launching, and filling the pipeline of chunks" : "";
      time = counted(named("latency_s", cost.latency.value, fmt::format("s: {} steps{}", cost.steps, more)) + transfer);
      if (predicts && setup_.profile->choices.ggml && collective.kind == graph::CollectiveKind::send) {
        const double hop = get(setup_.profile->values, hardware::Parameter::split_hop);
        time = time + counted(named("hop_s", hop, "s: every hand-over to the next card"));
      }
    }
    time = time.noted(fmt::format("{} among {} devices by the {} algorithm, the fastest on these links",
                                  name(collective.kind), collective.ranks, cost::name(cost.algorithm)));
    if (predicts) time = under_profile(estimator_.time(op_, estimator_.work(op_)), time);
    return time.with_part(explain(Metric::network_bytes));
  }

  // That times the op.
  const hardware::RuntimeProfile& profile() const {
    return op_.place == graph::Place::host ? *setup_.host_profile : *setup_.profile;
  }
  Term share_of_roof(const mapper::OpTime& t, const Term& x, const std::string& more = "") const {
    return x.noted(fmt::format("{} of the roof of {}{}", format_share(t.roof / t.total), format_seconds(t.roof), more));
  }
  // The roof of a prediction, and the numbers of the profile that it hangs on.
  Term under_profile(const mapper::OpTime& t, const Term& predicted) const {
    const hardware::Device& device = op_.place == graph::Place::host ? *setup_.host : *setup_.device;
    Term x = share_of_roof(t, predicted, ", under " + profile().title_for(device));
    for (const std::size_t p : mapper::parameters_of(op_, profile().choices)) {
      const std::string_view unit = hardware::parameter_info(p).unit;
      x = parameter(p, unit.empty() ? "" : std::string(unit) + " ", x);
    }
    return x;
  }
  Term parameter(std::size_t p, const std::string& unit, const Term& x) const {
    const auto& about = hardware::parameter_info(p);
    return x.noted(fmt::format("{} = {:.3g} {}({}): {}", about.name, profile().values[p], unit,
                               hardware::name(profile().provenance[p]), about.meaning));
  }

  // Under a runtime profile: the kernel's time, held against the resources at their peaks.
  Term predicted(Metric metric) const {
    const bool own = mean_ || !estimate_.op.grows_with_context;
    const mapper::OpTime t = own ? own_time_ : estimator_.time(op_, estimator_.work(op_));
    if (metric == Metric::roof_s) {
      return counted(largest_of({named("matrix_s", t.matrix.value, "s at the peak of the matrix engine"),
                                 named("vector_s", t.vector.value, "s at the peak of the vector engine"),
                                 named("memory_s", t.memory.value, "s at the peak of the device memory"),
                                 named("network_s", t.network.value, "s at the peak of the links")}));
    }
    if (is_overhead()) {
      Term time = counted(named("overhead_s", t.total.value,
                                "s of one step: fixed and per sequence, gaps between kernels, waiting for the host"));
      for (const auto p : {hardware::Parameter::step_prefill, hardware::Parameter::step_decode,
                           hardware::Parameter::step_sequence, hardware::Parameter::launch_gap}) {
        time = parameter(index(p), std::string(hardware::parameter_info(index(p)).unit) + " ", time);
      }
      return time;
    }
    Term time = under_profile(
        t, counted(named("kernel_s", t.total.value, "s of one execution, by the kernel formulas of docs/runtimes.md")));
    if (t.bound == mapper::Bound::operand_feed) {
      time = time.noted("bound by operand feed: cores wait for operands from the cache longer than for memory");
    }
    const Metric work = t.roof == t.network  ? Metric::network_bytes
                        : t.roof == t.memory ? Metric::bytes
                        : t.roof == t.matrix ? Metric::matrix_flops
                                             : Metric::vector_flops;
    return t.roof.value > 0 && number(work) > 0 ? time.with_part(explain(work)) : time;
  }

  // On an array of tiles: what executing the mapping takes.
  Term mapped() const {
    const mapper::OpTime t = mean_ ? estimate_.time : estimator_.time(op_, estimator_.work(op_));
    const bool published = setup_.tile_model() == mapper::TileModel::published;
    const Term time =
        share_of_roof(t, counted(named("execution_s", t.total.value,
                                       published ? "s of one execution, by the formulas of the published mapper"
                                                 : "s of one execution: the best mapping found on the tiles, simulated "
                                                   "(docs/tiles.md, llmperf map)")));
    return published ? time : time.with_part(explain(Metric::roof_s));
  }

  // Steps that keep several tokens are taken as if there were one at every context.
  std::int64_t contexts() const { return (phase_.last.context - phase_.first.context) / phase_.stride + 1; }
  std::int64_t context_of(std::int64_t step) const { return phase_.first.context + step * phase_.stride; }
  struct Piece {
    std::int64_t first, last;  // steps, from 0
    double at_first, at_last;
  };
  // The generation cut where the number stops being linear in the context; empty when that takes too many pieces.
  std::vector<Piece> linear_pieces(Metric metric) const {
    constexpr std::size_t kMaxPieces = 4;
    constexpr double kOnLine = 1e-10;
    const auto f = [&](std::int64_t step) { return of(at(context_of(step)), metric); };
    std::vector<Piece> pieces;
    double sum = 0;
    const std::int64_t end = contexts() - 1;
    for (std::int64_t begin = 0; begin <= end; begin = pieces.back().last + 1) {
      if (pieces.size() == kMaxPieces) return {};
      const double start = f(begin);
      const auto linear_to = [&](std::int64_t last) {
        const std::int64_t middle = begin + (last - begin) / 2;
        const double chord = start + (f(last) - start) * d(middle - begin) / d(last - begin);
        return std::abs(f(middle) - chord) <= kOnLine * std::abs(chord);
      };
      // The longest linear piece from here: with a kink inside, every longer one has it inside, too.
      std::int64_t good = std::min(begin + 1, end);
      if (good < end && linear_to(end)) good = end;
      good = bisect(good, end + 1, linear_to).first;
      pieces.push_back({begin, good, start, f(good)});
      sum += d(good - begin + 1) * (start + f(good)) / 2;
    }
    // Kinks that happen to cancel in the middle of a piece: not pieces of lines after all.
    const double mean = sum / d(contexts());
    if (std::abs(mean - number(metric)) > kOnLine * std::abs(mean)) pieces.clear();
    return pieces;
  }

  Term mean(Metric metric) const {
    const std::vector<Piece> pieces = linear_pieces(metric);
    const bool one = pieces.size() == 1;
    const bool decodes = is_decode(phase_.first);
    Term x;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const Piece& p = pieces[i];
      const std::string suffix = one ? "" : fmt::format("_{}", i + 1);
      const auto at_step = [&](std::string_view stem, double value, std::int64_t step) {
        return named(std::string(stem) + suffix, value,
                     fmt::format("{} at {} cached tokens", info(metric).unit, context_of(step)));
      };
      const Term ends = at_step("first", p.at_first, p.first) + at_step("last", p.at_last, p.last);
      x = one ? ends / 2 : x + named("steps" + suffix, p.last - p.first + 1, "steps of this linear piece") * ends / 2;
    }
    if (pieces.empty()) {
      x = named("sum", number(metric) * d(contexts()), fmt::format("{} of all steps together", info(metric).unit))
              .in_parentheses();
    }
    if (!one) x = x / named("steps", contexts(), decodes ? "decode steps" : "pieces of the prompt");
    x = x.noted(fmt::format("a mean over the {}: {} steps, at {} to {} cached tokens",
                            decodes ? "generation" : "pieces of the prompt", contexts(), phase_.first.context,
                            phase_.last.context));
    if (pieces.empty()) {
      x = x.noted("not linear in the context, not even in a few pieces: the sum over the steps is taken as computed");
    } else if (!one) {
      x = x.noted("linear in the context piece by piece: a window fills up or another limit takes over");
    }
    const auto index = static_cast<std::size_t>(&estimate_ - phase_.ops.data());
    Explanation part = OpExplainer(estimator_, phase_, index, path_, &phase_.first).explain(metric);
    part.path = pieces.size() <= 1 ? "first" : "first_1";
    return x.with_part(std::move(part));
  }

  const Estimator& estimator_;
  const Setup& setup_;
  const Phase& phase_;
  const OpEstimate& estimate_;
  graph::Place place_;
  std::string path_;
  graph::SequenceGroup group_;
  graph::Op op_;
  mapper::OpTime own_time_;  // of the phase, or of the step where the op follows from the others
  std::size_t growing_index_ = 0;
  bool mean_ = false;
};

// ---- Phases: sums over their ops

// "norm", "norm#2", …: the ops of a phase as paths name them.
std::vector<std::string> op_keys(const Phase& phase) {
  std::map<std::string_view, int> seen;
  std::vector<std::string> keys;
  for (const OpEstimate& op : phase.ops) {
    const int n = ++seen[op.op.name];
    keys.push_back(n == 1 ? std::string(op.op.name) : fmt::format("{}#{}", op.op.name, n));
  }
  return keys;
}

// What is done at the same time as something else does not take time of its own.
Term concurrent(const Estimator& estimator, const Phase& phase, const std::vector<double>& seconds, double in_flight,
                const Term& sum) {
  const Schedule s =
      schedule_step(phase.ops, seconds, estimator.stages(phase), phase.batches(), phase.steady, in_flight);
  Term rest = sum;
  if (s.overlapped.value > 0) {
    rest =
        rest - named("overlapped", s.overlapped.value,
                     phase.overlap_batches > 1
                         ? "s that exchanges of one micro-batch run beside the other's ops: of each the smaller of it "
                           "and the ops before it, and of it and those after it, by half"
                         : "s that ops run beside the op before them: collectives, weights that come early");
  }
  if (s.pipelined.value > 0) {
    const bool afd = estimator.setup().execution.plan.afd;
    rest = rest - named("pipelined", s.pipelined.value,
                        fmt::format("s that {} work at the same time, on {} micro-batches",
                                    afd ? "attention, experts and exchanges"
                                        : fmt::format("the {} stages", estimator.stages().size()),
                                    phase.batches()));
  }
  return rest;
}

// A sum over the ops of a phase, `step`: at that step instead of the mean one. The largest terms are explained.
Term sum_of_ops(const Estimator& estimator, const Phase& phase, Metric metric,
                const graph::SequenceGroup* step = nullptr) {
  constexpr std::size_t kLargestParts = 3;
  const std::vector<std::string> keys = op_keys(phase);
  std::vector<std::optional<Explanation>> parts(phase.ops.size());
  std::vector<double> values(phase.ops.size());
  std::vector<std::size_t> order(phase.ops.size());
  Term sum;
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    const OpEstimate& op = phase.ops[i];
    std::string variable = keys[i];
    std::replace(variable.begin(), variable.end(), '#', '_');
    order[i] = i;
    values[i] = number_of(metric, op.work, op.time, d(op.op.count));
    if (step && (op.op.grows_with_context || std::holds_alternative<graph::Overhead>(op.op.body))) {
      parts[i] = OpExplainer(estimator, phase, i, op_path(phase, keys[i]), step).explain(metric);
      parts[i]->path = variable;  // not the number that its path names: that is the mean
      values[i] = parts[i]->value;
    }
    sum = sum + named(variable, values[i], executions(metric, op.op.count));
  }
  if (metric == Metric::time_s) sum = concurrent(estimator, phase, values, phase.in_flight, sum);
  // No queue holds up the speed of light.
  if (metric == Metric::roof_s) {
    sum = concurrent(estimator, phase, values, std::numeric_limits<double>::infinity(), sum);
  }
  if (step) {
    sum = sum.noted(fmt::format("the decode step at {} cached tokens", step->context));
  } else if (phase.steps > 1) {
    sum = sum.noted(fmt::format("of the mean step: {} steps, at {} to {} cached tokens", phase.steps,
                                phase.first.context, phase.last.context));
  }
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  order.resize(std::min(order.size(), kLargestParts));
  for (const std::size_t i : order) {
    if (values[i] == 0) continue;
    sum = sum.with_part(parts[i] ? *std::move(parts[i])
                                 : OpExplainer(estimator, phase, i, op_path(phase, keys[i])).explain(metric));
  }
  return sum;
}

Explanation phase_metric(const Estimator& estimator, const Phase& phase, Metric metric) {
  mapper::OpTime time;
  time.total = phase.time;
  time.roof = phase.roof;
  return checked(sum_of_ops(estimator, phase, metric), phase_path(phase, info(metric).name), info(metric).unit,
                 number_of(metric, phase.work, time, 1));
}

constexpr std::string_view kIntensity = "intensity_flop_per_byte";
constexpr std::string_view kPhaseTotal = "total_s";

Explanation intensity(const Estimator& estimator, const Phase& phase) {
  const auto sum = [&](Metric metric) {
    const Explanation part = phase_metric(estimator, phase, metric);
    return named(info(metric).name, part.value, fmt::format("{} of the step", info(metric).unit)).with_part(part);
  };
  return checked(sum(Metric::flops) / sum(Metric::bytes), phase_path(phase, kIntensity), "FLOP/B",
                 phase.intensity().value);
}

Explanation phase_total(const Estimator& estimator, const Phase& phase) {
  const Term step =
      named("time_s", phase.time.value, "s of the mean step").with_part(phase_metric(estimator, phase, Metric::time_s));
  return checked(named("steps", phase.steps, "steps of the phase") * step, phase_path(phase, kPhaseTotal), "s",
                 phase.time.value * d(phase.steps));
}

// `path` below "phases.<name>."; nothing when the phase has no such number.
std::optional<Explanation> explain_phase(const Estimator& estimator, const Phase& phase, std::string_view path) {
  if (path == kIntensity) return intensity(estimator, phase);
  if (path == kPhaseTotal) return phase_total(estimator, phase);
  if (const MetricInfo* metric = metric_called(path)) return phase_metric(estimator, phase, metric->metric);
  if (!path.starts_with("ops.")) return std::nullopt;
  path.remove_prefix(4);
  const std::string_view key = path.substr(0, path.find('.'));
  const MetricInfo* metric = metric_called(path.substr(std::min(path.size(), key.size() + 1)));
  const std::vector<std::string> keys = op_keys(phase);
  const auto index = static_cast<std::size_t>(std::ranges::find(keys, key) - keys.begin());
  if (index == keys.size() || metric == nullptr) return std::nullopt;
  return OpExplainer(estimator, phase, index, op_path(phase, key)).explain(metric->metric);
}

// ---- Memory: weights tensor by tensor, the KV cache by kind of layer, activations by what is alive when most of them
// are, and the limits that follow from what is left.

// "model.embed_tokens.weight" as the name of a variable. Matrices between residual streams are in layers and outside.
std::string identifier(const model::Tensor& tensor, bool outer) {
  std::string text = (outer && tensor.role == model::Role::stream_mix ? "outer_" : "") + std::string(tensor.name);
  std::replace(text.begin(), text.end(), '.', '_');
  return text;
}

Term tensor_bytes(const model::WeightLayout& layout, const model::StoredFormat& format, const model::Tensor& tensor,
                  std::int64_t layers) {
  const Term n = named("n", tensor.n, "outputs");
  const Term k = named("k", tensor.k, "inputs");
  const Term tensors = named("layers", layers, "layers that have it") *
                       named("tensors", tensor.count, "tensors of this shape in a layer (experts)");
  if (tensor.role != model::Role::vector) return tensors * model::stored_bytes(format, n, k);
  return tensors * n * k * named("bits", layout.vector_bits, "bits stored per element of a vector") / 8;
}

// "0-3, 6, 9": ascending numbers.
std::string ranges(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t first = i;
    while (i + 1 < numbers.size() && numbers[i + 1] == numbers[i] + 1) ++i;
    if (!text.empty()) text += ", ";
    text += i == first ? std::to_string(numbers[i]) : fmt::format("{}-{}", numbers[first], numbers[i]);
  }
  return text;
}

// What an estimator (of the target, or of its draft) holds in memory in a scenario.
class MemoryExplainer {
 public:
  MemoryExplainer(const Estimator& estimator, const Estimate& estimate)
      : estimator_(estimator),
        estimate_(estimate),
        e_(estimator.setup().execution),
        m_(*e_.model),
        serving_(estimator.setup().serving),
        s_(estimate.scenario),
        stage_(estimator.fullest_stage(s_)) {}

  // Those on the device, or those on the host.
  Term weights(bool on_host) const {
    Term language = language_weights(on_host);
    if (e_.adapters.any() && !on_host) {
      const double one =
          cost::adapter_weight_bytes(e_, static_cast<std::int64_t>(stage_)).value / d(e_.adapters.served);
      language = language + named("adapters", e_.adapters.served, "adapters that are held") *
                                named("adapter_bytes", one, "bytes of one: rank (n + k) of each matrix, in 16 bits");
    }
    if (!m_.vision || on_host || stage_ > 0) return language;
    const Term tower = named("vision_parameters", model::count_parameters(*m_.vision).total(),
                             "parameters of the vision tower and its projectors") *
                       named("vision_bits", e_.vision_weights.bits, "bits that each is stored in") / 8;
    return language + tower;
  }

  // On a device of experts.
  Term expert_weights() const { return language_weights(false, true); }
  Term expert_activation() const {
    const Term peak =
        cost::explained_expert_activation(e_, estimator_.decode_at(s_, s_.decode_context() + s_.generate - 1));
    const double factor = estimator_.setup().activation_factor;
    return factor == 1 ? peak : peak * named("factor", factor, "memory the runtime plans, over what is alive at once");
  }

  Term batch(std::string_view meaning) const {
    return named("batch", estimator_.replica_batch(s_), std::string(meaning));
  }

  // Of one sequence.
  Term state(bool on_host) const {
    Term sum;
    for (std::size_t kind = 0; kind < m_.kinds.size(); ++kind) {
      const Term each = cost::explained_layer_state(e_, graph::shard(m_.kinds[kind], e_.plan), suffix(kind));
      if (layers_held(kind, on_host) == 0 || each.is(0)) continue;
      sum = sum + layers(kind, on_host) * each.in_parentheses();
    }
    return sum.is(0) ? sum : sum.in_parentheses();
  }
  Term kv_cache(bool on_host, std::int64_t cached_tokens) const {
    const Term tokens = named("tokens", cached_tokens,
                              !serving_.decodes()   ? "prompt tokens of a sequence"
                              : serving_.verify > 1 ? "prompt and generated tokens of a sequence, and guesses of its "
                                                      "last step"
                                                    : "prompt and generated tokens of a sequence");
    Term sum;
    for (std::size_t kind = 0; kind < m_.kinds.size(); ++kind) {
      const model::Attention a = graph::shard(m_.kinds[kind], e_.plan).attention;
      if (layers_held(kind, on_host) == 0 || a.heads == 0 || m_.encoder) continue;
      const Term kept = e_.window(a) ? min(tokens, named("window" + suffix(kind), e_.cached_tokens(a, 2 * kMaxTokens),
                                                         "tokens a layer with a window keeps"))
                                     : tokens;
      sum = sum + layers(kind, on_host) * cost::explained_layer_kv(e_, a, kept, tokens, suffix(kind));
    }
    if (sum.is(0)) return sum;
    if (e_.plan.sequence() == 1) return sum.in_parentheses();
    return sum.in_parentheses() / named("sequence_ranks", e_.plan.sequence(), "devices that share a sequence");
  }

  // Of a draft, which has as many tokens as its target.
  Term draft_cache(std::int64_t target_tokens) const {
    const Term all = batch("requests of a replica");
    const Term kept = state(false);
    Term sum = all * kv_cache(false, target_tokens);
    if (!kept.is(0)) sum = sum + all * kept;
    if (!e_.weights.gguf) return sum;
    return sum + named("compute_buffers", estimate_.memory.draft_cache.value - sum.value(), "B of its compute buffers");
  }

  // Of whichever of a prefill and the last decode step needs most; llama.cpp's buffers are sized once for both.
  Term activation(bool on_host) const {
    if (on_host || e_.weights.gguf) {
      return cost::explained_compute_buffer(e_, s_.batch, s_.batch * estimator_.cached_tokens(s_), on_host,
                                            static_cast<std::int64_t>(stage_));
    }
    std::vector<cost::Alive> all;
    const auto add = [&](const graph::SequenceGroup& step, const char* name) {
      for (cost::Alive& alive : cost::explained_activation(e_, step, name)) all.push_back(std::move(alive));
    };
    if (serving_.prefills()) {
      const auto [whole, rest] = estimator_.pieces_of(s_);
      const bool one = whole.steps + rest.steps == 1;
      add(whole.first, m_.encoder ? "pass" : one ? "prefill" : "first piece of the prompt");
      if (whole.steps > 1) add(whole.last(), "last whole piece of the prompt");
      if (rest.steps > 0) add(rest.first, "last piece of the prompt");
      if (s_.images > 0) all.push_back(cost::explained_vision_activation(e_, estimator_.images_of(s_)));
    }
    if (serving_.decodes()) add(estimator_.decode_at(s_, s_.decode_context() + s_.generate - 1), "last decode step");
    const auto most = std::ranges::max_element(all, {}, [](const cost::Alive& alive) { return alive.bytes.value(); });
    const double factor = estimator_.setup().activation_factor;
    Term x = most->bytes.noted_first(fmt::format("the residual stream and the {}, the largest of:", most->what));
    if (factor != 1) {
      x = x.in_parentheses() * named("factor", factor, "memory the runtime plans, over what is alive at once");
    }
    if (serving_.overlap_batches > 1) {
      x = x.in_parentheses() * named("overlap_batches", serving_.overlap_batches, "micro-batches at the same time");
    }
    for (const cost::Alive& alive : all) {
      x = x.noted(fmt::format("{}: {}", alive.what, format_bytes(Bytes{alive.bytes.value()})));
    }
    return x;
  }

  // KV cache and activations are proportional to the batch, so the largest one is a quotient; llama.cpp's buffers are
  // not.
  Term largest_batch() const {
    const auto with_batch = [&](std::int64_t batch) {
      Scenario other = s_;
      other.batch = batch;
      return other;
    };
    // Whole images are dealt to the devices of the tensor axis.
    const bool dealt = s_.images > 0 && e_.plan.tensor > 1;
    Term x;
    if (e_.weights.gguf || e_.plan.pipeline > 1 || e_.plan.afd || estimator_.batch_unit() > 1 || dealt) {
      x = named("batch", estimate_.largest_batch, "largest batch whose memory fits, found by bisection");
    } else {
      const cost::Memory one = estimator_.memory(with_batch(1));
      const Term room =
          named("capacity", estimate_.capacity.value, "B of device memory") -
          named("weight_bytes", one.weights.value, "B of weights") -
          named("reserve_bytes", one.reserve.value, "B for the runtime") -
          (one.draft.value > 0 ? named("draft_weight_bytes", one.draft.value, "B of weights of the draft") : Term(0));
      Term each = named("kv_cache_bytes_each", one.kv_cache.value, "B of KV cache of one request") +
                  named("activation_bytes_each", one.activation.value, "B of activations of one request");
      for (const auto& [name, bytes, meaning] :
           {std::tuple{"state_bytes_each", one.state, "B of recurrent state of one request"},
            std::tuple{"draft_cache_bytes_each", one.draft_cache, "B of the draft's cache of one request"}}) {
        if (bytes.value > 0) each = each + named(name, bytes.value, meaning);
      }
      x = max(Term(0), min(named("limit", kMaxBatch, "largest batch tried"), floor(room / each)));
    }
    const std::int64_t batch = estimate_.largest_batch;
    if (batch > 0) x = x.noted(fits_note("batch", batch, with_batch(batch)));
    const std::int64_t next = batch + estimator_.batch_unit();
    return next > kMaxBatch ? x : x.noted(fits_note("batch", next, with_batch(next)));
  }

  Term longest_context() const {
    const std::int64_t context = estimate_.longest_context;
    const std::int64_t others = estimator_.tokens(s_) - s_.prompt;
    const auto note = [&](std::int64_t prompt) {
      Scenario other = s_;
      other.prompt = prompt;
      return fits_note("context", prompt + others, other);
    };
    if (context == 0) return Term(0).noted(note(estimator_.prompt_unit()));
    const std::int64_t prompt = context - others;
    const Term x =
        named("prompt", prompt, "longest prompt whose memory fits at this batch, found by bisection") +
        named("generate", others, s_.depth > 0 ? "generated tokens, and those cached before" : "generated tokens");
    const std::int64_t next = prompt + estimator_.prompt_unit();
    return x.noted(note(prompt)).noted(next <= kMaxTokens ? note(next) : std::string("the longest prompt tried"));
  }

 private:
  Term language_weights(bool on_host, bool of_experts = false) const {
    const model::WeightLayout& layout = e_.weights;
    const bool divided = e_.plan.devices() > 1 && !on_host;
    const auto stage = static_cast<std::int64_t>(stage_);
    Term sum;
    const std::string all = "B, all tensors of that name together";
    const auto add = [&](const model::Tensor& tensor, const model::StoredFormat& format, const std::string& path,
                         std::int64_t layers, const std::string& meaning) {
      sum = sum + named(tensor_bytes(layout, format, tensor, layers).explained(path, "B"), meaning);
    };
    const auto add_outer = [&](const model::Tensor& tensor) {
      add(tensor, layout.outer(tensor.role), identifier(tensor, true), 1, all);
    };
    const auto add_bytes = [&](std::string_view name, Bytes bytes, const std::string& meaning) {
      if (bytes.value != 0) sum = sum + named(name, bytes.value, meaning);
    };
    const bool copied = !divided && model::holds_tied_head(m_, layout);
    if (divided) {
      for (const model::Tensor& tensor : cost::stage_outer_tensors(e_, stage)) {
        if (!of_experts) add_outer(tensor);
      }
    } else {
      for (const model::Tensor& tensor : model::outer_tensors(m_)) {
        const bool embeds = tensor.part == model::Part::embedding;
        if ((embeds ? layout.embedding_on_host : layout.head_on_host) == on_host) add_outer(tensor);
      }
      if (copied && layout.head_on_host == on_host) {
        add_outer({.name = "lm_head.weight", .n = m_.vocab, .k = m_.hidden, .role = model::Role::lm_head});
        if (!layout.lm_head_copy) sum = sum.noted("lm_head is a copy of the embedding, which the host keeps");
      }
    }
    for (std::size_t i = 0; i < layout.groups.size(); ++i) {
      const model::LayerGroup& group = layout.groups[i];
      const std::int64_t layers = divided ? e_.stage_layers(group, stage) : group.count();
      if (layers == 0) continue;
      const model::Layer& kind = m_.kinds[group.kind];
      for (const model::Tensor& tensor : model::layer_tensors(m_, divided ? graph::shard(kind, e_.plan) : kind)) {
        if (!divided && group.holds_on_host(tensor.role) != on_host) continue;
        if (e_.plan.afd && model::is_expert(tensor.role) != of_experts) continue;
        add(tensor, group[tensor.role], identifier(tensor, false) + (i > 0 ? fmt::format("_{}", i + 1) : ""), layers,
            divided || layout.groups.size() == 1 ? all : "B, of layers " + ranges(group.layers));
      }
    }
    if (divided && !of_experts) {
      add_bytes("allocation_bytes", cost::stage_allocation_bytes(e_, stage),
                fmt::format("B that the allocator adds: {} per tensor, in whole {}", e_.allocation.padding,
                            e_.allocation.granule));
    }
    if (!on_host && stage == 0) add_bytes("other_tensors", layout.extra, "B of other tensors of the file");
    if (divided) {
      sum = sum.noted(
          fmt::format("of one device of the plan {}; weights stored as {}", graph::to_text(e_.plan), layout.name));
      return e_.plan.pipeline == 1 ? sum : sum.noted(fmt::format("stage {} of {}", stage + 1, e_.plan.pipeline));
    }
    sum = sum.noted(fmt::format("weights stored as {}", layout.name));
    if (layout.groups.size() > 1) {
      sum = sum.noted("names that end in a number belong to layers of another kind, format or place");
    }
    return m_.tied_embeddings && !copied ? sum.noted("lm_head shares the storage of the embedding") : sum;
  }

  // Layers of a kind that the fullest device holds, or the host.
  std::int64_t layers_held(std::size_t kind, bool on_host) const {
    if (e_.plan.devices() > 1) return on_host ? 0 : estimator_.stages()[stage_].layers[kind];
    std::int64_t layers = 0;
    for (const model::LayerGroup& group : e_.weights.groups) {
      if (group.kind == kind && group.on_host == on_host) layers += group.count();
    }
    return layers;
  }
  std::string suffix(std::size_t kind) const { return m_.kinds.size() > 1 ? fmt::format("_{}", kind + 1) : ""; }
  Term layers(std::size_t kind, bool on_host) const {
    return named("layers" + suffix(kind), layers_held(kind, on_host), "layers of this kind");
  }
  std::string fits_note(std::string_view what, std::int64_t value, const Scenario& s) const {
    const Bytes total = estimator_.memory(s).total();
    return fmt::format("{} {} needs {} of {}: {}", what, value, format_bytes(total), format_bytes(estimate_.capacity),
                       estimator_.fits(s) ? "fits" : "does not fit");
  }

  const Estimator& estimator_;
  const Estimate& estimate_;
  const graph::Execution& e_;
  const model::Decoder& m_;
  const Serving& serving_;
  const Scenario& s_;
  std::size_t stage_;  // whose device has least room
};

// ---- The numbers of the whole request

// A number, and what computes it.
struct Number {
  std::string path;
  std::string_view unit;
  double value;
  std::function<Term()> formula;
};

class Numbers {
 public:
  Numbers(const Estimator& estimator, const Estimate& estimate)
      : estimator_(estimator), setup_(estimator.setup()), e_(estimate), held_(estimator, estimate) {
    add_memory("memory.", false);
    add("largest_batch", "requests", d(e_.largest_batch), [this] { return held_.largest_batch(); });
    add("longest_context_tokens", "tokens", d(e_.longest_context), [this] { return held_.longest_context(); });
    if (e_.host_capacity.value > 0) add_memory("host_memory.", true);
    if (setup_.execution.plan.afd) add_disaggregated();
    if (e_.phases.empty()) return;
    add_times();
    add_spending();
  }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  const std::vector<Number>& all() const { return all_; }
  std::optional<Explanation> explain(std::string_view path) const {
    const auto found = std::ranges::find(all_, path, &Number::path);
    if (found == all_.end()) return std::nullopt;
    return checked(found->formula(), found->path, found->unit, found->value);
  }

 private:
  void add(std::string path, std::string_view unit, std::optional<double> value, std::function<Term()> formula) {
    if (value) all_.push_back({std::move(path), unit, *value, std::move(formula)});
  }
  void add(std::string path, std::string_view unit, std::optional<Seconds> value, std::function<Term()> formula) {
    if (value) add(std::move(path), unit, value->value, std::move(formula));
  }
  static std::optional<double> positive(double value) { return value > 0 ? std::optional(value) : std::nullopt; }
  // A variable that is itself a number of the estimate.
  Term known(std::string_view path, std::string meaning) const { return named(*explain(path), std::move(meaning)); }

  // A draft counts where there is one, a state where the model has some; the host holds no draft's cache.
  void add_memory(const std::string& prefix, bool on_host) {
    const cost::Memory& m = on_host ? e_.host_memory : e_.memory;
    const Estimator* draft = estimator_.draft();
    const std::size_t first = all_.size();
    const auto bytes = [&](std::string_view name, Bytes number, std::function<Term()> formula) {
      add(prefix + std::string(name), "B", number.value, std::move(formula));
    };
    bytes("weight_bytes", m.weights, [=, this] { return held_.weights(on_host); });
    bytes("kv_cache_bytes", m.kv_cache, [=, this] {
      return held_.batch(setup_.execution.plan.data > 1 ? "requests of one replica" : "requests") *
             held_.kv_cache(on_host, estimator_.cached_tokens(e_.scenario));
    });
    if (m.state.value != 0) {
      bytes("state_bytes", m.state, [=, this] { return held_.batch("requests") * held_.state(on_host); });
    }
    if (m.draft.value != 0) {
      bytes("draft_weight_bytes", m.draft, [=, this] { return MemoryExplainer(*draft, e_).weights(on_host); });
    }
    if (m.draft.value != 0 && !on_host) {
      bytes("draft_cache_bytes", m.draft_cache,
            [=, this] { return MemoryExplainer(*draft, e_).draft_cache(estimator_.cached_tokens(e_.scenario)); });
    }
    bytes("activation_bytes", m.activation, [=, this] { return held_.activation(on_host); });
    bytes("reserve_bytes", m.reserve, [&m] {
      return named("reserve_bytes", m.reserve.value, "B for the runtime's context and workspaces")
          .noted("a setting, not a measurement");
    });
    const std::size_t end = all_.size();
    bytes("total_bytes", m.total(), [=, this] {
      Term sum;
      for (std::size_t i = first; i < end; ++i) {
        const std::string what = all_[i].path.substr(prefix.size());
        sum = sum + named(what, all_[i].value, "B").with_part(*explain(all_[i].path));
      }
      return sum;
    });
    const Bytes capacity = on_host ? e_.host_capacity : e_.capacity;
    bytes("capacity_bytes", capacity, [=, this] {
      const hardware::Device& device = on_host ? *setup_.host : *setup_.device;
      return named(
          "capacity", capacity.value,
          fmt::format("B of {} of {} ({})", device.dram().name, device.name, hardware::name(device.dram().provenance)));
    });
  }

  // Of a device of experts, and how long each kind is busy.
  void add_disaggregated() {
    const cost::Memory& m = e_.expert_memory;
    add("expert_memory.weight_bytes", "B", m.weights.value, [this] { return held_.expert_weights(); });
    add("expert_memory.activation_bytes", "B", m.activation.value, [this] { return held_.expert_activation(); });
    add("expert_memory.total_bytes", "B", m.total().value, [this, &m] {
      return known("expert_memory.weight_bytes", "B") + known("expert_memory.activation_bytes", "B") +
             named("reserve_bytes", m.reserve.value, "B for the runtime's context and workspaces");
    });
    const Phase* decode = e_.phase("decode");
    if (decode == nullptr) return;
    const Pools pools = pools_of(*decode);
    for (std::size_t pool = 0; pool < pools.size(); ++pool) {
      add(fmt::format("afd.{}_s", kPools[pool]), "s", pools[pool], [=] {
        Term sum;
        const std::vector<std::string> keys = op_keys(*decode);
        for (std::size_t i = 0; i < keys.size(); ++i) {
          const OpEstimate& op = decode->ops[i];
          if (static_cast<std::size_t>(pool_of(op.op)) != pool) continue;
          std::string variable = keys[i];
          std::replace(variable.begin(), variable.end(), '#', '_');
          sum = sum + named(variable, (op.step_time() - hidden_time(decode->ops, i)).value,
                            "s of the mean step, of all micro-batches");
        }
        return sum;
      });
    }
  }

  void add_times() {
    const Scenario& s = e_.scenario;
    const Phase* decode = e_.phase("decode");
    const bool encodes = setup_.encodes();
    const auto first = [=, this] { return known("ttft_s", encodes ? "s of the pass" : "s to the first token"); };
    const auto total = [this] { return known("total_s", "s from the start to the last token"); };
    const Term batch = named("batch", s.batch, "requests");
    const Term prompt = named("prompt", s.prompt, "prompt tokens of a request");
    const Term generate =
        named("generate", estimator_.generated(s),
              e_.ttft ? "generated tokens of a request" : "generated tokens of a request but the first");
    add("ttft_s", "s", e_.ttft, [this] { return first_token(); });
    add("total_s", "s", e_.total, [=, this] {
      if (!e_.tpot) return first();
      const Term decoding = all_steps(*decode);
      return e_.ttft ? first() + decoding : decoding;
    });
    add("tokens_per_second", "token/s", positive(e_.tokens_per_second), [=] { return batch * generate / total(); });
    if (e_.tokens_per_second > 0) {
      add("tokens_per_second_per_request", "token/s", e_.tokens_per_second_per_request,
          [=] { return generate / total(); });
    }
    if (e_.ttft) {
      add("prefill_tokens_per_second", "token/s", e_.prefill_tokens_per_second,
          [=] { return batch * prompt / first(); });
    }
    if (encodes) {
      add("sequences_per_second", "sequence/s", e_.sequences_per_second, [=] { return batch / first(); });
    }
    if (decode == nullptr) return;
    add("tpot_s", "s", e_.tpot, [=, this] { return per_token(*decode); });
    add("tpot_first_s", "s", e_.tpot_first, [=, this] { return per_token(*decode, &Phase::first); });
    add("tpot_last_s", "s", e_.tpot_last, [=, this] { return per_token(*decode, &Phase::last); });
    add("decode_tokens_per_second", "token/s", e_.decode_tokens_per_second,
        [=, this] { return batch / known("tpot_s", "s per token after the first, on average"); });
  }
  Term first_token() const {
    const std::span<const Phase> phases = Estimator::prompt_phases(e_);
    const Phase& prefill = e_.phases.front();
    if (prefill.steps == 1 && prefill.name == estimator_.prompt_phase() && phases.size() == 1) {
      return sum_of_ops(estimator_, prefill, Metric::time_s);
    }
    Term all;
    for (const Phase& phase : phases) {
      all = all + (phase.steps > 1
                       ? named(phase_total(estimator_, phase), fmt::format("s of {} pieces of the prompt", phase.steps))
                       : named(phase_metric(estimator_, phase, Metric::time_s),
                               phase.name == "vision" ? "s of the pass over the images" : "s of the prefill"));
    }
    return all;
  }
  // At each phase's first or last step, or of the mean one.
  Term per_token(const Phase& decode, graph::SequenceGroup Phase::*at = nullptr) const {
    const auto seconds = [&](const Estimator& estimator, const Phase& phase) {
      return sum_of_ops(estimator, phase, Metric::time_s, at == nullptr ? nullptr : &(phase.*at));
    };
    const Serving& serving = setup_.serving;
    if (serving.accepted == 1 && estimator_.draft() == nullptr) return seconds(estimator_, decode);
    Term whole = named(seconds(estimator_, decode).explained("step_s", "s"),
                       fmt::format("s of a step that verifies {} tokens of every sequence", serving.verify));
    if (const Estimator* draft = estimator_.draft()) {
      whole = (whole + named(seconds(*draft, *e_.phase("draft")).explained("draft_s", "s"),
                             fmt::format("s of drafting {} of them", serving.verify - 1)))
                  .in_parentheses();
    }
    return whole / named("accepted_tokens", serving.accepted, "tokens of a sequence that a step keeps, mean");
  }
  Term all_steps(const Phase& decode) const {
    if (setup_.serving.accepted == 1) {
      return named("decode_steps", decode.steps, "tokens after the first") *
             known("tpot_s", "s per token after the first, on average");
    }
    Term each = named(phase_metric(estimator_, decode, Metric::time_s), "s of the mean step");
    if (const Estimator* draft = estimator_.draft()) {
      each = (each + named(phase_metric(*draft, *e_.phase("draft"), Metric::time_s), "s of what drafts for it"))
                 .in_parentheses();
    }
    return named("decode_steps", decode.steps, "steps that keep the tokens after the first") * each;
  }

  // What it costs and draws.
  void add_spending() {
    const Spending& s = e_.spending;
    const std::string_view currency = setup_.price ? setup_.price->currency : std::string_view();
    const auto rate = [this](std::string_view of) { return known(of, "tokens a second"); };
    const auto per_million = [=, this](std::string_view of) {
      return [=, this] {
        return cost_per_million(known("cost_per_hour", std::string(currency) + " for an hour of all devices"),
                                rate(of));
      };
    };
    add("cost_per_hour", currency, s.cost_per_hour, [=, this] {
      const double devices = d(setup_.execution.plan.devices());
      return cost_per_hour<Term>(setup_.price->amount, devices, currency).noted("price of " + setup_.price->text());
    });
    add("cost_per_million_input_tokens", currency, s.cost_per_million_input_tokens,
        per_million("prefill_tokens_per_second"));
    add("cost_per_million_output_tokens", currency, s.cost_per_million_output_tokens,
        per_million("decode_tokens_per_second"));
    add("request_cost_per_million_output_tokens", currency, s.request_cost_per_million_output,
        per_million("tokens_per_second"));
    add("average_power_w", "W", s.average_power_w, [this] { return mean_power(e_.phases); });
    add("joules_per_input_token", "J", s.joules_per_input_token,
        [=, this] { return mean_power(Estimator::prompt_phases(e_)) / rate("prefill_tokens_per_second"); });
    add("joules_per_output_token", "J", s.joules_per_output_token,
        [=, this] { return mean_power(Estimator::decode_phases(e_)) / rate("decode_tokens_per_second"); });
  }
  // The mean over phases, of all devices.
  Term mean_power(std::span<const Phase> phases) const {
    const BoardPower board = *estimator_.board();
    const Term devices("devices", d(setup_.execution.plan.devices()), "devices of the plan");
    if (board.shares == nullptr) {
      return (devices * power<Term>(board, {})).noted("an upper bound: no device draws more");
    }
    const std::string measured = "shares measured: " + board.shares->source;
    if (phases.size() == 1) return (devices * power<Term>(board, estimator_.load(phases.front()))).noted(measured);
    Term joules = 0;
    Term time = 0;
    for (const Phase& phase : phases) {
      const Load load = estimator_.load(phase);
      const std::string name(phase.name);
      const Term seconds("seconds_" + name, load.time.value, "s of all its steps");
      joules = joules + named(power<Term>(board, load).explained("power_" + name, "W"), "W of one device") * seconds;
      time = time + seconds;
    }
    return (devices * joules.in_parentheses() / time.in_parentheses()).noted(measured);
  }

  const Estimator& estimator_;
  const Setup& setup_;
  const Estimate& e_;
  MemoryExplainer held_;
  std::vector<Number> all_;
};

}  // namespace

Explanation explain_pool(const EngineMemory& memory, const KvCapacity& c) {
  const Term share = named("utilisation", memory.utilisation, "share that the engine may use");
  Term room = named("usable_bytes", c.usable.value, "B that the engine may use") -
              named("weight_bytes", c.weights.value, "B of weights as loaded");
  if (memory.room != EngineMemory::Room::weights_and_cache) {
    room = room - named("activation_bytes", c.activation.value, "B of the largest step") -
           named("graph_bytes", c.graphs.value, "B of captured graphs") -
           named("other_bytes", c.other.value, "B of libraries, exchanges and tables of positions");
  }
  if (memory.room == EngineMemory::Room::share_of_free) room = room.in_parentheses() * share;
  const Term left = named(checked(room, "kv.kv_bytes", "B", c.kv.value), "B that are left for keys and values");
  const Term blocks = c.blocks == 0 ? Term(0) : floor(left / named("block_bytes", c.block.value, "B of a block"));
  if (!memory.prints_concurrency) {
    return checked(floor(blocks / named("groups", c.pool->groups(), "groups of layers")) *
                       named("block_size", c.block_size, "tokens of a block"),
                   std::string(kPoolTokens), "tokens", d(c.tokens));
  }
  const Term sequence = named("sequence_blocks", c.pool->pages(c.max_model_len), "blocks of a sequence of that length");
  return checked(floor(blocks / sequence * named("max_model_len", c.max_model_len, "tokens of the longest sequence")),
                 std::string(kPoolTokens), "tokens", d(c.tokens));
}

std::vector<std::string> explainable_paths(const Estimator& estimator, const Estimate& estimate) {
  std::vector<std::string> paths;
  const Numbers numbers(estimator, estimate);
  for (const Number& number : numbers.all()) paths.push_back(number.path);
  for (const Phase& phase : estimate.phases) {
    for (const MetricInfo& metric : kMetrics) paths.push_back(phase_path(phase, metric.name));
    paths.push_back(phase_path(phase, kIntensity));
    paths.push_back(phase_path(phase, kPhaseTotal));
    for (const std::string& key : op_keys(phase)) {
      for (const MetricInfo& metric : kMetrics) paths.push_back(op_path(phase, key + "." + std::string(metric.name)));
    }
  }
  return paths;
}

Explanation explain(const Estimator& estimator, const Estimate& estimate, std::string_view path) {
  const Numbers numbers(estimator, estimate);
  if (auto found = numbers.explain(path)) return *std::move(found);
  for (const Phase& phase : estimate.phases) {
    const std::string prefix = phase_path(phase, "");
    if (!path.starts_with(prefix)) continue;
    const Estimator& of = phase.name == "draft" ? *estimator.draft() : estimator;
    if (auto found = explain_phase(of, phase, path.substr(prefix.size()))) return *std::move(found);
  }
  std::string hint = name_hint(path, explainable_paths(estimator, estimate));
  if (!estimate.fits) hint = "it does not fit in memory, so only the memory and the limits are known; " + hint;
  throw Error::bad_input(fmt::format("the estimate has no number {}", quote(path)), std::move(hint));
}

}  // namespace llmperf::estimate
