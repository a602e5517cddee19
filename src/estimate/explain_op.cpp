// One op of a phase. Its FLOPs and bytes are the formulas of cost/work.cpp, its time is the roofline's. An op that
// grows with the context has no single shape over a generation: its number is a mean, taken piece by piece where the
// cost is linear in the context (a sliding window fills up, another resource becomes the slowest).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/integer.h"
#include "base/number.h"
#include "cost/formulas.h"
#include "estimate/explain_parts.h"
#include "mapper/roofline/efficiency.h"

namespace llmperf::estimate {
namespace {

constexpr std::size_t kMaxPieces = 4;
constexpr double kOnLine = 1e-10;
constexpr std::array<std::string_view, 3> kSums = {"", ", added up in 16 bits",
                                                   ", added up in 16 bits or multiplied in int8"};

// ---- Work of one execution

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
    const double devices = d(c.ranks) * graph::reached(c.routing, c.routing.experts / c.ranks);
    x = x.noted(fmt::format(
        "rows: {} tokens, each once for every device that has one of its {} experts of {}{}: {} devices on average",
        format_significant(c.rows / devices), c.routing.per_token, c.routing.experts,
        c.routing.groups > 1 ? fmt::format(", in {} of {} groups", c.routing.groups_per_token, c.routing.groups) : "",
        format_significant(devices)));
  }
  return x.noted(fmt::format("what one device sends in a bandwidth-optimal {}", name(c.kind)));
}

// Says how many experts a product is expected to reach.
void add_experts(const graph::Execution& e, const graph::Op& op, Term& formula) {
  const auto* gemm = std::get_if<graph::Gemm>(&op.body);
  const std::optional<model::Layer> layer = layer_of(e, op);
  if (!gemm || gemm->batch > 1 || !layer || !layer->feed_forward.experts) return;
  const model::Experts& x = *layer->feed_forward.experts;
  const std::int64_t tokens = gemm->m * e.plan.expert / x.per_token;
  const std::string chosen =
      e.routing.balanced
          ? fmt::format("{} rows dealt to {}", tokens * x.per_token, x.count)
          : fmt::format("sum over {0} of 1 - (1 - p)^{1}, the r-th picked with chance p ~ r^-{2} of {3} in all",
                        x.count, tokens, format_significant(e.routing.exponent), x.per_token);
  formula.extend_meaning("weight_matrices", fmt::format(", expected: {}{}", chosen,
                                                        e.plan.expert > 1 ? fmt::format(", / {}", e.plan.expert) : ""));
}

Term work_of(const Estimator& estimator, const graph::Op& op, const graph::SequenceGroup& group, Metric metric) {
  const graph::Execution& e = estimator.setup().execution;
  const auto* copy = std::get_if<graph::Copy>(&op.body);
  const auto* vector = std::get_if<graph::Vector>(&op.body);
  const auto* collective = std::get_if<graph::Collective>(&op.body);
  cost::Terms<Term> work = copy ? cost::explained_copy(*copy, elements(e, op, group, copy->read_elements, false),
                                                       elements(e, op, group, copy->write_elements, true))
                                : cost::explained_work(op, estimator.roofline(op.place).cache());
  if (vector && !work.weights.is(0)) {
    const double bits = e.weights.vector_bits;
    work.weights = named("parameters", vector->parameters.value * 8 / bits, "weights and biases of the op") *
                   named("bits", bits, "bits stored per weight") / 8;
  }
  add_experts(e, op, work.vector);
  add_experts(e, op, work.weights);
  add_experts(e, op, work.activations_read);
  switch (metric) {
    case Metric::matrix_flops: return work.matrix;
    case Metric::vector_flops: return work.vector;
    case Metric::weight_bytes: return work.weights;
    case Metric::activation_read_bytes: return work.activations_read;
    case Metric::activation_written_bytes: return work.activations_written;
    case Metric::kv_read_bytes: return work.kv_read;
    case Metric::kv_written_bytes: return work.kv_written;
    case Metric::network_bytes: return collective ? sent(*collective, work.network) : work.network;
    default: return 0;
  }
}

// ---- All executions

class OpExplainer {
 public:
  OpExplainer(const Estimator& estimator, const Phase& phase, std::size_t index, std::string path,
              const graph::SequenceGroup* step)
      : estimator_(estimator), phase_(phase), estimate_(phase.ops[index]), path_(std::move(path)), group_(phase.first) {
    mean_ = phase.steps > 1 && estimate_.op.grows_with_context && !step;
    if (estimate_.op.grows_with_context) {
      const auto is_growing = [](const OpEstimate& op) { return op.op.grows_with_context; };
      const auto first = phase.ops.begin();
      growing_index_ =
          static_cast<std::size_t>(std::count_if(first, first + static_cast<std::ptrdiff_t>(index), is_growing));
    }
    if (step) group_ = *step;
    own_time_ = estimate_.time;
    if (step && is_overhead()) {
      own_time_.total = step->context == phase.first.context ? phase.first_overhead : phase.last_overhead;
    }
    op_ = step && estimate_.op.grows_with_context ? at(step->context) : estimate_.op;
  }

  Explanation explain(Metric metric) const {
    switch (metric) {
      case Metric::flops: return sum(metric, {Metric::matrix_flops, Metric::vector_flops});
      case Metric::bytes:
        return sum(metric, {Metric::weight_bytes, Metric::activation_read_bytes, Metric::activation_written_bytes,
                            Metric::kv_read_bytes, Metric::kv_written_bytes});
      case Metric::time_s: return mean_ ? mean(metric) : time(metric);
      case Metric::roof_s: return time(metric);
      default: return mean_ ? mean(metric) : leaf(metric);
    }
  }

 private:
  Explanation done(Metric metric, const Term& formula, double number) const {
    return checked(formula, fmt::format("{}.{}", path_, name(metric)), unit(metric), number);
  }
  Explanation done(Metric metric, const Term& formula) const { return done(metric, formula, number(metric)); }
  Term executions_of_step() const { return named("count", count(), "executions in a step"); }
  // A variable that is itself a number of this op, explained among the parts.
  Term part(Metric metric) const {
    return named(name(metric), number(metric), executions(metric, estimate_.op.count)).with_part(explain(metric));
  }
  double count() const { return d(estimate_.op.count); }
  bool is_overhead() const { return std::holds_alternative<graph::Overhead>(estimate_.op.body); }

  graph::Op at(std::int64_t context) const {
    graph::SequenceGroup group = phase_.first;
    group.context = context;
    graph::Graph graph;
    graph::build_step(estimator_.setup().execution, {&group, 1}, graph::Part::context_dependent, graph);
    graph[growing_index_].count *= phase_.micro_batches * phase_.overlap_batches * estimator_.setup().serving.drafts;
    return graph[growing_index_];
  }
  double of(const graph::Op& op, Metric metric) const {
    const cost::Work work = estimator_.work(op);
    return value(metric, work, estimator_.time(op, work), d(op.count));
  }
  // What the explanation is of: one step's number, or the mean over the phase.
  double number(Metric metric) const {
    const bool own = mean_ || is_overhead();  // an overhead follows from the others
    return own ? value(metric, estimate_.work, own_time_, count()) : of(op_, metric);
  }

  Explanation leaf(Metric metric) const {
    const Term each = work_of(estimator_, op_, group_, metric);
    if (each.is(0)) return done(metric, Term(0).noted(std::string(info(metric).none)), of(op_, metric));
    const bool of_layers =
        op_.layer_kind >= 0 && !estimator_.setup().execution.weights.gguf && estimator_.setup().serving.drafts == 1;
    const Term times = named("count", op_.count,
                             !of_layers                       ? "executions in a step"
                             : estimator_.stages().size() > 1 ? "layers of this kind, for every micro-batch"
                                                              : "layers of this kind");
    return done(metric, each * times, of(op_, metric));
  }

  Explanation sum(Metric metric, std::initializer_list<Metric> terms) const {
    Term all;
    for (const Metric term : terms) {
      if (number(term) != 0) all = all + part(term);
    }
    return done(metric, all);
  }

  Explanation time_over_link(Metric metric) const {
    const hardware::HostLink& link = estimator_.setup().link;
    const Term rate =
        named("link_rate", link.per_direction.value,
              fmt::format("B/s, {} between host and device, one way ({})", link.name, hardware::name(link.provenance)));
    const auto staged = estimator_.machine().staging(op_);
    if (staged && *staged < link.per_direction && metric != Metric::roof_s) {
      return done(metric, part(Metric::network_bytes) /
                              named("staging", staged->value, "B/s, pageable memory by way of the driver's buffers"));
    }
    const auto share = estimator_.machine().upload_share(op_);
    if (!share || metric == Metric::roof_s) return done(metric, part(Metric::network_bytes) / rate);
    const double of_rate = get(estimator_.setup().profile->values, *share);
    const Term sent = rate * named("upload_share", of_rate, "of that rate, of weights");
    return done(metric, parameter(index(*share), "", part(Metric::network_bytes) / sent.in_parentheses()));
  }

  // Steps that follow one another, and the bytes on the link that limits the exchange; under a runtime profile both as
  // its library takes them.
  Explanation time_of_collective(Metric metric) const {
    const auto& collective = std::get<graph::Collective>(op_.body);
    cost::CollectiveCost cost = cost::collective_cost(estimator_.machine().cluster(), collective);
    const bool predicts = estimator_.setup().profile && metric == Metric::time_s;
    if (predicts) {
      const cost::CollectiveCost charged = cost::collective_cost(estimator_.setup().charged_cluster(), collective);
      if (charged.time() > cost.time()) cost = charged;
    }
    const Term transfer =
        named("transfer_s", cost.transfer.value,
              cost.algorithm == cost::Algorithm::hierarchical
                  ? fmt::format("s level by level, {}; {} on the busiest link, {}",
                                collective.routing.experts > 0 ? "at the same time" : "one after the other",
                                format_bytes(cost.busiest_link), name(cost.level))
                  : fmt::format("s: {} on the busiest link", format_bytes(cost.busiest_link)));
    Term time = executions_of_step() * transfer;
    if (metric == Metric::time_s) {
      const std::string more = predicts ? ", launching, and filling the pipeline of chunks" : "";
      time = executions_of_step() *
             (named("latency_s", cost.latency.value, fmt::format("s: {} steps{}", cost.steps, more)) + transfer);
      if (predicts && estimator_.setup().profile->choices.ggml && collective.kind == graph::CollectiveKind::send) {
        const double hop = get(estimator_.setup().profile->values, hardware::Parameter::split_hop);
        time = time + executions_of_step() * named("hop_s", hop, "s: every hand-over to the next card");
      }
    }
    time = time.noted(fmt::format("{} among {} devices by the {} algorithm, the fastest on these links",
                                  name(collective.kind), collective.ranks, cost::name(cost.algorithm)));
    if (predicts) time = under_profile(estimator_.time(op_, estimator_.work(op_)), time);
    return done(metric, time.with_part(explain(Metric::network_bytes)));
  }

  // That times the op.
  const hardware::RuntimeProfile& profile() const {
    const Setup& setup = estimator_.setup();
    return op_.place == graph::Place::host ? *setup.host_profile : *setup.profile;
  }

  // The roof of a prediction, and the numbers of the profile that it hangs on.
  Term under_profile(const mapper::OpTime& t, Term x) const {
    const Setup& setup = estimator_.setup();
    const hardware::Device& device = op_.place == graph::Place::host ? *setup.host : *setup.device;
    x = x.noted(fmt::format("{} of the roof of {}, under {}", format_share(t.roof / t.total), format_seconds(t.roof),
                            profile().title_for(device)));
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
  Explanation predicted(Metric metric) const {
    const bool own = mean_ || !estimate_.op.grows_with_context;
    const mapper::OpTime t = own ? own_time_ : estimator_.time(op_, estimator_.work(op_));
    if (metric == Metric::roof_s) {
      const Term slowest = largest_of({named("matrix_s", t.matrix.value, "s at the peak of the matrix engine"),
                                       named("vector_s", t.vector.value, "s at the peak of the vector engine"),
                                       named("memory_s", t.memory.value, "s at the peak of the device memory"),
                                       named("network_s", t.network.value, "s at the peak of the links")});
      const Term roof = executions_of_step() * slowest;
      return done(metric, roof, mean_ ? roof.value() : number(metric));
    }
    if (is_overhead()) {
      Term time = executions_of_step() *
                  named("overhead_s", t.total.value,
                        "s of one step: fixed and per sequence, gaps between kernels, waiting for the host");
      for (const auto p : {hardware::Parameter::step_prefill, hardware::Parameter::step_decode,
                           hardware::Parameter::step_sequence, hardware::Parameter::launch_gap}) {
        time = parameter(index(p), std::string(hardware::parameter_info(index(p)).unit) + " ", time);
      }
      return done(metric, time);
    }
    Term time = executions_of_step() *
                named("kernel_s", t.total.value, "s of one execution, by the kernel formulas of docs/runtimes.md");
    time = under_profile(t, time);
    if (t.bound == mapper::Bound::operand_feed) {
      time = time.noted("bound by operand feed: cores wait for operands from the cache longer than for memory");
    }
    const Metric work = t.roof == t.network  ? Metric::network_bytes
                        : t.roof == t.memory ? Metric::bytes
                        : t.roof == t.matrix ? Metric::matrix_flops
                                             : Metric::vector_flops;
    return done(metric, t.roof.value > 0 && number(work) > 0 ? time.with_part(explain(work)) : time);
  }

  // On an array of tiles: what executing the mapping takes.
  Explanation mapped(Metric metric) const {
    const mapper::OpTime t = mean_ ? estimate_.time : estimator_.time(op_, estimator_.work(op_));
    const bool published = estimator_.setup().tile_model() == mapper::TileModel::published;
    Term time = executions_of_step() *
                named("execution_s", t.total.value,
                      published ? "s of one execution, by the formulas of the published mapper"
                                : "s of one execution: the best mapping found on the tiles, simulated (docs/tiles.md, "
                                  "llmperf map)");
    time = time.noted(fmt::format("{} of the roof of {}", format_share(t.roof / t.total), format_seconds(t.roof)));
    return done(metric, published ? time : time.with_part(explain(Metric::roof_s)));
  }

  // The roofline: the slowest of the three resources, none waiting for another.
  Explanation time(Metric metric) const {
    if (estimate_.op.place == graph::Place::link) return time_over_link(metric);
    const bool network = estimate_.op.place == graph::Place::network;
    if (network && (!estimator_.setup().profile || metric == Metric::time_s)) return time_of_collective(metric);
    const bool on_host = estimate_.op.place == graph::Place::host;
    if (on_host ? estimator_.machine().host_efficiency() != nullptr : estimator_.setup().profile != nullptr) {
      return predicted(metric);
    }
    const bool tiles = estimator_.machine().tiles() && estimate_.op.place == graph::Place::device;
    if (tiles && metric == Metric::time_s) return mapped(metric);
    const mapper::Roofline& roofline = estimator_.roofline(estimate_.op.place);
    const auto each = [&](std::string_view name, Metric term) {
      return named(name, number(term) / count(), fmt::format("{} of one execution", unit(term)));
    };
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
    Term time = executions_of_step() * longest;
    if (estimate_.op.place == graph::Place::host) time = time.noted("this op runs on the host");
    const bool by_memory = memory.value() == longest.value();
    const bool by_matrix = !by_memory && matrix.value() == longest.value();
    time = time.noted(by_memory   ? "memory is the slowest of the three"
                      : by_matrix ? "the matrix engine is the slowest of the three"
                                  : "the vector engine is the slowest of the three");
    return done(metric, time.with_part(explain(by_memory   ? Metric::bytes
                                               : by_matrix ? Metric::matrix_flops
                                                           : Metric::vector_flops)));
  }

  // Steps that keep several tokens are taken as if there were one at every context.
  std::int64_t contexts() const { return (phase_.last.context - phase_.first.context) / phase_.stride + 1; }
  std::int64_t context_of(std::int64_t step) const { return phase_.first.context + step * phase_.stride; }
  struct Piece {
    std::int64_t first, last;  // steps, from 0
    double at_first, at_last;
  };
  // The generation cut where the number stops being linear in the context; empty when that takes more than kMaxPieces.
  std::vector<Piece> linear_pieces(Metric metric) const {
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
      std::int64_t bad = end + 1;
      if (good < end && linear_to(end)) good = end;
      while (bad - good > 1) {
        const std::int64_t middle = good + (bad - good) / 2;
        (linear_to(middle) ? good : bad) = middle;
      }
      pieces.push_back({begin, good, start, f(good)});
      sum += d(good - begin + 1) * (start + f(good)) / 2;
    }
    // Kinks that happen to cancel in the middle of a piece: not pieces of lines after all.
    const double mean = sum / d(contexts());
    if (std::abs(mean - number(metric)) > kOnLine * std::abs(mean)) pieces.clear();
    return pieces;
  }

  Explanation mean(Metric metric) const {
    const std::vector<Piece> pieces = linear_pieces(metric);
    const std::int64_t first = phase_.first.context;
    const auto at_context = [&](std::string_view variable, double value, std::int64_t context) {
      return named(variable, value, fmt::format("{} at {} cached tokens", unit(metric), context));
    };
    std::string_view note;
    Term x;
    if (pieces.size() == 1) {
      x = (at_context("first", pieces[0].at_first, first) +
           at_context("last", pieces[0].at_last, phase_.last.context)) /
          2;
    } else if (pieces.empty()) {
      x = named("sum", number(metric) * d(contexts()), fmt::format("{} of all steps together", unit(metric)))
              .in_parentheses();
      note = "not linear in the context, not even in a few pieces: the sum over the steps is taken as computed";
    } else {
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        const Piece& p = pieces[i];
        const auto numbered = [&](std::string_view stem) { return fmt::format("{}_{}", stem, i + 1); };
        x = x + named(numbered("steps"), p.last - p.first + 1, "steps of this linear piece") *
                    (at_context(numbered("first"), p.at_first, context_of(p.first)) +
                     at_context(numbered("last"), p.at_last, context_of(p.last))) /
                    2;
      }
      note = "linear in the context piece by piece: a window fills up or another limit takes over";
    }
    const bool decodes = is_decode(phase_.first);
    if (pieces.size() != 1) x = x / named("steps", contexts(), decodes ? "decode steps" : "pieces of the prompt");
    x = x.noted(fmt::format("a mean over the {}: {} steps, at {} to {} cached tokens",
                            decodes ? "generation" : "pieces of the prompt", contexts(), first, phase_.last.context));
    if (!note.empty()) x = x.noted(std::string(note));
    graph::SequenceGroup group = phase_.first;
    const OpExplainer one_step(estimator_, phase_, static_cast<std::size_t>(&estimate_ - phase_.ops.data()), path_,
                               &group);
    Explanation part = one_step.explain(metric);
    part.path = pieces.size() <= 1 ? "first" : "first_1";
    return done(metric, x.with_part(std::move(part)));
  }

  const Estimator& estimator_;
  const Phase& phase_;
  const OpEstimate& estimate_;
  std::string path_;
  graph::SequenceGroup group_;
  graph::Op op_;
  mapper::OpTime own_time_;  // of the phase, or of the step where the op follows from the others
  std::size_t growing_index_ = 0;
  bool mean_ = false;
};

}  // namespace

Explanation explain_op(const Estimator& estimator, const Phase& phase, std::size_t index, Metric metric,
                       std::string path, const graph::SequenceGroup* step) {
  return OpExplainer(estimator, phase, index, std::move(path), step).explain(metric);
}

}  // namespace llmperf::estimate
