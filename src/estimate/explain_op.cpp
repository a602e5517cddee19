// One op of a phase. Its FLOPs and bytes are sums of what explain_work derives from the shape, its time is the
// roofline's. An op that grows with the context has no single shape over a generation: its number is a mean, taken
// piece by piece where the cost is linear in the context (a sliding window fills up, another resource becomes the
// slowest).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/number.h"
#include "estimate/explain_parts.h"
#include "mapper/roofline/dependence.h"

namespace llmperf::estimate {
namespace {

constexpr std::size_t kMaxPieces = 4;
constexpr double kOnLine = 1e-10;
constexpr std::array<std::string_view, 3> kSums = {"", ", added up in 16 bits",
                                                   ", added up in 16 bits or multiplied in int8"};

double d(std::int64_t x) { return static_cast<double>(x); }

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
      default: return mean_ ? mean(metric) : leaf(metric, op_, group_, path_of(metric));
    }
  }

 private:
  std::string path_of(Metric metric) const { return fmt::format("{}.{}", path_, name(metric)); }
  Explanation start(Metric metric) const { return {.path = path_of(metric), .unit = std::string(unit(metric))}; }
  double count() const { return d(estimate_.op.count); }
  bool is_overhead() const { return std::holds_alternative<graph::Overhead>(estimate_.op.body); }

  graph::Op at(std::int64_t context) const {
    graph::SequenceGroup group = phase_.first;
    group.context = context;
    graph::Graph graph;
    graph::build_step(estimator_.setup().execution, {&group, 1}, graph::Part::context_dependent, graph);
    graph[growing_index_].count *= phase_.micro_batches;
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

  Explanation leaf(Metric metric, const graph::Op& op, const graph::SequenceGroup& group, std::string path) const {
    Explanation x{.path = std::move(path), .unit = std::string(unit(metric))};
    explain_work(estimator_, op, group, metric, x);
    return checked(std::move(x), of(op, metric));
  }

  Explanation sum(Metric metric, std::initializer_list<Metric> terms) const {
    Explanation x = start(metric);
    for (const Metric term : terms) {
      if (number(term) == 0) continue;
      if (!x.formula.empty()) x.formula += " + ";
      x.formula += let(x, name(term), number(term), executions(term, estimate_.op.count));
      x.parts.push_back(explain(term));
    }
    if (x.formula.empty()) x.formula = "0";
    return checked(std::move(x), number(metric));
  }

  Explanation time_over_link(Metric metric) const {
    const hardware::HostLink& link = estimator_.setup().link;
    Explanation x = start(metric);
    let(x, "network_bytes", number(Metric::network_bytes), executions(Metric::network_bytes, estimate_.op.count));
    let(x, "link_rate", link.per_direction.value,
        fmt::format("B/s, {} between host and device, one way ({})", link.name, name(link.provenance)));
    x.formula = "network_bytes / link_rate";
    x.parts.push_back(explain(Metric::network_bytes));
    return checked(std::move(x), number(metric));
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
    Explanation x = start(metric);
    let(x, "count", count(), "executions in a step");
    let(x, "transfer_s", cost.transfer.value,
        cost.algorithm == cost::Algorithm::hierarchical
            ? fmt::format("s inside nodes and between them, {}; {} on the busiest link, {}",
                          collective.routing.experts > 0 ? "at the same time" : "one after the other",
                          format_bytes(cost.busiest_link), cost.between ? "between nodes" : "inside")
            : fmt::format("s: {} on the busiest link", format_bytes(cost.busiest_link)));
    x.formula = "count * transfer_s";
    if (metric == Metric::time_s) {
      let(x, "latency_s", cost.latency.value,
          fmt::format("s: {} steps{}", cost.steps, predicts ? ", launching, and filling the pipeline of chunks" : ""));
      x.formula = "count * (latency_s + transfer_s)";
    }
    x.notes.push_back(fmt::format("{} among {} devices by the {} algorithm, the fastest on these links",
                                  name(collective.kind), collective.ranks, cost::name(cost.algorithm)));
    if (predicts) add_profile(estimator_.time(op_, estimator_.work(op_)), x);
    x.parts.push_back(explain(Metric::network_bytes));
    return checked(std::move(x), number(metric));
  }

  // The roof of a prediction, and the numbers of the profile that it hangs on.
  void add_profile(const mapper::OpTime& t, Explanation& x) const {
    const hardware::RuntimeProfile& profile = *estimator_.setup().profile;
    x.notes.push_back(fmt::format("{} of the roof of {}, under {}", format_share(t.roof / t.total),
                                  format_seconds(t.roof), profile.title_for(*estimator_.setup().device)));
    for (const std::size_t p : mapper::parameters_of(op_, profile.choices)) {
      const auto& info = hardware::parameter_info(p);
      x.notes.push_back(fmt::format("{} = {:.3g} {}({}): {}", info.name, profile.values[p],
                                    info.unit.empty() ? "" : std::string(info.unit) + " ",
                                    hardware::name(profile.provenance[p]), info.meaning));
    }
  }

  // Under a runtime profile: the kernel's time, held against the resources at their peaks.
  Explanation predicted(Metric metric) const {
    const bool own = mean_ || !estimate_.op.grows_with_context;
    const mapper::OpTime t = own ? own_time_ : estimator_.time(op_, estimator_.work(op_));
    const hardware::RuntimeProfile& profile = *estimator_.setup().profile;
    Explanation x = start(metric);
    let(x, "count", count(), "executions in a step");
    if (metric == Metric::roof_s) {
      let(x, "matrix_s", t.matrix.value, "s at the peak of the matrix engine");
      let(x, "vector_s", t.vector.value, "s at the peak of the vector engine");
      let(x, "memory_s", t.memory.value, "s at the peak of the device memory");
      let(x, "network_s", t.network.value, "s at the peak of the links");
      x.formula = "count * max(matrix_s, vector_s, memory_s, network_s)";
      const bool mean = mean_ && metric == Metric::roof_s;
      return mean ? solved(std::move(x)) : checked(std::move(x), number(metric));
    }
    if (is_overhead()) {
      let(x, "overhead_s", t.total.value,
          "s of one step: fixed and per sequence, gaps between kernels, waiting for the host");
      x.formula = "count * overhead_s";
      for (const auto parameter : {hardware::Parameter::step_prefill, hardware::Parameter::step_decode,
                                   hardware::Parameter::step_sequence, hardware::Parameter::launch_gap}) {
        const auto& info = hardware::parameter_info(index(parameter));
        x.notes.push_back(fmt::format("{} = {:.3g} {} ({}): {}", info.name, get(profile.values, parameter), info.unit,
                                      hardware::name(profile.provenance[index(parameter)]), info.meaning));
      }
      return checked(std::move(x), number(metric));
    }
    let(x, "kernel_s", t.total.value, "s of one execution, by the kernel formulas of docs/runtimes.md");
    x.formula = "count * kernel_s";
    add_profile(t, x);
    if (t.bound == mapper::Bound::operand_feed) {
      x.notes.push_back("bound by operand feed: cores wait for operands from the cache longer than for memory");
    }
    const Metric work = t.roof == t.network  ? Metric::network_bytes
                        : t.roof == t.memory ? Metric::bytes
                        : t.roof == t.matrix ? Metric::matrix_flops
                                             : Metric::vector_flops;
    if (t.roof.value > 0 && number(work) > 0) x.parts.push_back(explain(work));
    return checked(std::move(x), number(metric));
  }

  // On an array of tiles: what executing the mapping takes.
  Explanation mapped(Metric metric) const {
    const mapper::OpTime t = mean_ ? estimate_.time : estimator_.time(op_, estimator_.work(op_));
    Explanation x = start(metric);
    let(x, "count", count(), "executions in a step");
    const bool published = estimator_.setup().tile_model() == mapper::TileModel::published;
    let(x, "execution_s", t.total.value,
        published ? "s of one execution, by the formulas of the published mapper"
                  : "s of one execution: the best mapping found on the tiles, simulated (docs/tiles.md, llmperf map)");
    x.formula = "count * execution_s";
    x.notes.push_back(fmt::format("{} of the roof of {}", format_share(t.roof / t.total), format_seconds(t.roof)));
    if (!published) x.parts.push_back(explain(Metric::roof_s));
    return checked(std::move(x), number(metric));
  }

  // The roofline: the slowest of the three resources, none waiting for another.
  Explanation time(Metric metric) const {
    if (estimate_.op.place == graph::Place::link) return time_over_link(metric);
    const bool network = estimate_.op.place == graph::Place::network;
    if (network && (!estimator_.setup().profile || metric == Metric::time_s)) return time_of_collective(metric);
    if (estimator_.setup().profile && estimate_.op.place != graph::Place::host) return predicted(metric);
    const bool tiles = estimator_.machine().tiles() && estimate_.op.place == graph::Place::device;
    if (tiles && metric == Metric::time_s) return mapped(metric);
    const mapper::Roofline& roofline = estimator_.roofline(estimate_.op.place);
    const Dtype dtype = estimate_.work.matrix_dtype;
    Explanation x = start(metric);
    let(x, "count", count(), "executions in a step");
    const auto each = [&](std::string_view name, Metric term) {
      let(x, name, number(term) / count(), fmt::format("{} of one execution", unit(term)));
    };
    each("matrix_flops_each", Metric::matrix_flops);
    let(x, "matrix_rate", roofline.matrix_rate(estimate_.work).value,
        fmt::format("FLOP/s, peak of matrix products in {}{}", llmperf::name(dtype),
                    kSums[static_cast<std::size_t>(estimate_.work.sums)]));
    each("vector_flops_each", Metric::vector_flops);
    let(x, "vector_rate", roofline.vector_rate().value, "FLOP/s, peak of the vector engine");
    each("bytes_each", Metric::bytes);
    let(x, "bandwidth", roofline.bandwidth().value, "B/s, peak of the device memory");
    if (estimate_.op.place == graph::Place::host) x.notes.push_back("this op runs on the host");
    x.formula = "count * max(matrix_flops_each / matrix_rate, vector_flops_each / vector_rate, bytes_each / bandwidth)";

    const double matrix = evaluate("matrix_flops_each / matrix_rate", x.variables);
    const double vector = evaluate("vector_flops_each / vector_rate", x.variables);
    const double memory = evaluate("bytes_each / bandwidth", x.variables);
    const double longest = std::max({matrix, vector, memory});
    const bool by_memory = memory == longest;
    const bool by_matrix = !by_memory && matrix == longest;
    x.notes.push_back(by_memory   ? "memory is the slowest of the three"
                      : by_matrix ? "the matrix engine is the slowest of the three"
                                  : "the vector engine is the slowest of the three");
    x.parts.push_back(explain(by_memory ? Metric::bytes : by_matrix ? Metric::matrix_flops : Metric::vector_flops));
    return checked(std::move(x), number(metric));
  }

  struct Piece {
    std::int64_t first, last;  // contexts
    double at_first, at_last;
  };
  // The generation cut where the number stops being linear in the context; empty when that takes more than kMaxPieces.
  std::vector<Piece> linear_pieces(Metric metric) const {
    const auto f = [&](std::int64_t context) { return of(at(context), metric); };
    std::vector<Piece> pieces;
    double sum = 0;
    const std::int64_t end = phase_.last.context;
    for (std::int64_t begin = phase_.first.context; begin <= end; begin = pieces.back().last + 1) {
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
    const double mean = sum / d(phase_.steps);
    if (std::abs(mean - number(metric)) > kOnLine * std::abs(mean)) pieces.clear();
    return pieces;
  }

  Explanation mean(Metric metric) const {
    Explanation x = start(metric);
    const std::vector<Piece> pieces = linear_pieces(metric);
    const std::int64_t first = phase_.first.context;
    x.notes.push_back(fmt::format("a mean over the generation: {} steps, at {} to {} cached tokens", phase_.steps,
                                  first, phase_.last.context));
    const auto at_context = [&](std::int64_t context) {
      return fmt::format("{} at {} cached tokens", unit(metric), context);
    };
    if (pieces.size() == 1) {
      x.formula = "(first + last) / 2";
      let(x, "first", pieces[0].at_first, at_context(first));
      let(x, "last", pieces[0].at_last, at_context(phase_.last.context));
    } else {
      let(x, "steps", phase_.steps, "decode steps");
      x.formula = pieces.empty() ? let(x, "sum", number(metric) * d(phase_.steps),
                                       fmt::format("{} of all steps together", unit(metric)))
                                 : "";
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        const Piece& p = pieces[i];
        const auto named = [&](std::string_view stem) { return fmt::format("{}_{}", stem, i + 1); };
        const std::string steps = let(x, named("steps"), p.last - p.first + 1, "steps of this linear piece");
        const std::string low = let(x, named("first"), p.at_first, at_context(p.first));
        const std::string high = let(x, named("last"), p.at_last, at_context(p.last));
        x.formula += fmt::format("{}{} * ({} + {}) / 2", i == 0 ? "" : " + ", steps, low, high);
      }
      x.formula = fmt::format("({}) / steps", x.formula);
      x.notes.push_back(
          pieces.empty()
              ? "not linear in the context, not even in a few pieces: the sum over the steps is taken as computed"
              : "linear in the context piece by piece: a window fills up or another limit takes over");
    }
    graph::SequenceGroup group = phase_.first;
    const OpExplainer one_step(estimator_, phase_, static_cast<std::size_t>(&estimate_ - phase_.ops.data()), path_,
                               &group);
    Explanation part = one_step.explain(metric);
    part.path = pieces.size() == 1 || pieces.empty() ? "first" : "first_1";
    x.parts.push_back(std::move(part));
    return checked(std::move(x), number(metric));
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
