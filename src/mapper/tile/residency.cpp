#include "mapper/tile/residency.h"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>

#include "base/error.h"
#include "base/integer.h"
#include "base/match.h"
#include "mapper/tile/study.h"

namespace llmperf::mapper::tile {
namespace {

using graph::Tag;

// What a layer works on.
enum Name : std::size_t { kStream, kCurrent, kQueries, kKeys, kValues, kGate, kUp, kNames };
constexpr std::size_t kNone = ~std::size_t{0};

class Walk {
 public:
  explicit Walk(std::span<const graph::Op* const> ops) : ops_(ops) { forget(); }

  std::vector<Tensor> run() {
    for (at_ = 0; at_ < ops_.size(); ++at_) {
      const graph::Op& op = *ops_[at_];
      if (at_ > 0 && op.layer_kind != ops_[at_ - 1]->layer_kind) end_layer();
      if (op.place != graph::Place::device || op.pass != graph::Pass::forward || !step(op)) leave();
    }
    end_layer();
    std::erase_if(tensors_, [](const Tensor& t) { return t.uses.empty(); });
    return std::move(tensors_);
  }

 private:
  // False: it is not known what the op reads.
  bool step(const graph::Op& op) {
    if (const auto* g = std::get_if<graph::Gemm>(&op.body)) return product(op.tag, *g);
    if (const auto* a = std::get_if<graph::Attention>(&op.body)) return attention(op.tag, *a);
    if (const auto* v = std::get_if<graph::Vector>(&op.body)) return vector(op.tag, *v);
    if (const auto* c = std::get_if<graph::Copy>(&op.body)) return write_cache(op.tag, *c);
    return false;
  }

  bool product(Tag tag, const graph::Gemm& g) {
    if (g.weights == nullptr || g.batch > 1 || g.weight_matrices > 1) return false;
    // Of products with the same input the later ones read what the first did.
    const bool again = tag == Tag::k_proj || tag == Tag::v_proj || (tag == Tag::up_proj && names_[kGate] != kNone);
    const bool adds = g.joined.output == graph::VectorKind::add && g.joined.reads == 1;
    if (g.joined.reads > 0 && !adds) return false;
    const std::size_t input = again ? input_ : names_[kCurrent];
    input_ = input;
    read(input, d(g.m) * d(g.k));
    if (adds) read(names_[kStream], d(g.m) * d(g.n), true);
    const std::size_t result = write(d(g.m) * d(g.n - g.joined.cached) * g.joined.results);
    switch (tag) {
      case Tag::qkv_proj:
        names_[kQueries] = names_[kKeys] = names_[kValues] = result;
        cached_ = g.joined.cached > 0;
        return true;
      case Tag::q_proj: names_[kQueries] = result; return true;
      case Tag::k_proj: names_[kKeys] = result; return true;
      case Tag::v_proj: names_[kValues] = result; return true;
      case Tag::gate_proj: names_[kGate] = result; return true;
      case Tag::up_proj: names_[names_[kGate] == kNone ? kCurrent : kUp] = result; return true;
      case Tag::o_proj:
      case Tag::gate_up_proj:
      case Tag::down_proj:
        names_[kCurrent] = result;
        if (adds) names_[kStream] = result;
        return true;
      default: return false;
    }
  }

  bool attention(Tag tag, const graph::Attention& a) {
    if (tag != Tag::attention || a.backward || a.shared_kv || a.query_ranks > 1 || a.key_ranks > 1) return false;
    read(names_[kQueries], d(a.sequences) * d(a.q_tokens) * d(a.heads) * d(a.qk_dim));
    if (!cached_) {  // keys and values come from where they were left
      leave(kKeys);
      leave(kValues);
    }
    names_[kQueries] = names_[kKeys] = names_[kValues] = kNone;
    names_[kCurrent] = write(d(a.sequences) * d(a.q_tokens) * d(a.heads) * d(a.v_dim));
    return true;
  }

  bool vector(Tag tag, const graph::Vector& v) {
    const double elements = d(v.rows) * d(v.width);
    switch (tag) {
      case Tag::input_norm:
      case Tag::mlp_norm:
      case Tag::next_norm:
        read(names_[kStream], elements);
        names_[kCurrent] = write(elements);
        return v.reads == 1 && v.writes == 1;
      case Tag::post_attention_norm:
      case Tag::post_mlp_norm:
        read(names_[kCurrent], elements);
        names_[kCurrent] = write(elements);
        return v.reads == 1 && v.writes == 1;
      case Tag::attention_add:
      case Tag::mlp_add:
      case Tag::attention_add_norm:
      case Tag::mlp_add_norm:
        if (v.reads != 2) return false;
        read(names_[kCurrent], elements);
        read(names_[kStream], elements);
        names_[kStream] = names_[kCurrent] = write(elements);
        if (v.writes == 2) names_[kCurrent] = write(elements);
        return true;
      case Tag::q_norm:
      case Tag::rope_q: return in_place(kQueries, v);
      case Tag::k_norm:
      case Tag::rope_k: return in_place(kKeys, v);
      case Tag::rope: return names_[kQueries] == names_[kKeys] && in_place(kQueries, v);
      case Tag::activation:
        if (v.kind == graph::VectorKind::gated_activation && names_[kGate] != kNone) {
          read(names_[kGate], elements);
          read(names_[kUp], elements);
          names_[kGate] = names_[kUp] = kNone;
          names_[kCurrent] = write(elements);
        } else {
          std::size_t& input = names_[names_[kGate] != kNone ? kGate : kCurrent];
          read(input, elements * v.reads);
          input = write(elements);
        }
        return v.writes == 1;
      case Tag::multiply_gate:
        read(names_[kGate], elements);
        read(names_[kUp], elements);
        names_[kGate] = names_[kUp] = kNone;
        names_[kCurrent] = write(elements);
        return v.reads == 2 && v.writes == 1;
      default: return false;
    }
  }
  bool in_place(Name name, const graph::Vector& v) {
    if (v.reads != 1 || v.writes != 1) return false;
    read(names_[name], d(v.rows) * d(v.width), false, true);
    return true;
  }

  bool write_cache(Tag tag, const graph::Copy& c) {
    if (!c.to_cache || c.from_cache) return false;
    cached_ = true;
    if (tag == Tag::k_write) return read(names_[kKeys], c.read_elements), true;
    if (tag == Tag::v_write) return read(names_[kValues], c.read_elements), true;
    if (tag != Tag::kv_write) return false;
    if (names_[kKeys] == names_[kValues]) return read(names_[kKeys], c.read_elements), true;
    read(names_[kKeys], c.read_elements / 2);
    read(names_[kValues], c.read_elements / 2);
    return true;
  }

  void read(std::size_t tensor, double elements, bool residual = false, bool in_place = false) {
    if (tensor == kNone) return;
    Tensor& t = tensors_[tensor];
    // What runs another number of times, or reads more than there is, reads something else besides.
    if (elements > t.elements * (1 + 1e-9) || ops_[at_]->count != ops_[t.op]->count) {
      t.leaves = true;
      return;
    }
    t.uses.push_back({at_, elements, residual, in_place});
  }
  std::size_t write(double elements) {
    tensors_.push_back({at_, elements});
    return tensors_.size() - 1;
  }
  void leave(Name name) {
    if (names_[name] != kNone) tensors_[names_[name]].leaves = true;
    names_[name] = kNone;
  }
  // The next layer goes on with what there is.
  void end_layer() {
    for (std::size_t name = 0; name < kNames; ++name) leave(static_cast<Name>(name));
    forget();
  }
  // An op that is not known may read all of that, and what the product before it read.
  void leave() {
    if (input_ != kNone) tensors_[input_].leaves = true;
    end_layer();
  }
  void forget() {
    names_.fill(kNone);
    input_ = kNone;
    cached_ = false;
  }

  std::span<const graph::Op* const> ops_;
  std::size_t at_ = 0;
  std::vector<Tensor> tensors_;
  std::array<std::size_t, kNames> names_ = {};  // the tensor of each
  std::size_t input_ = kNone;                   // of the product before
  bool cached_ = false;                         // new keys and values are in the cache
};

}  // namespace

std::vector<Tensor> tensors_of(std::span<const graph::Op* const> ops) { return Walk(ops).run(); }

// ---- What stays

namespace {

constexpr double kUnfit = std::numeric_limits<double>::infinity();
constexpr std::array kSlices = {1, 2, 3, 4, 8};
constexpr int kRounds = 3;
constexpr double kWorthwhile = 1e-9;  // of the time

// An op under a plan: what is left of its problem and of a tile's memory.
struct Variant {
  std::vector<Problem> problems;  // one for all slices alike, or one for each
  int slices = 1;
  double resident = 0;
  bool changed = false;  // from that of the op alone
};

// The best mapping of a problem.
struct Answered {
  double seconds = kUnfit;
  int rows = 0;  // tiles that share its rows; 0: any elements are on any tile
  std::optional<Description> mapping;
};

// What stays, and which ops run in slices together.
struct Plan {
  std::vector<std::size_t> kept;   // of each tensor the readers, from the first, that it stays for
  std::vector<int> slices;         // of each op
  std::vector<std::size_t> group;  // of ops that are sliced together: the first of them; else the op itself
};

double element_bytes(const graph::Op& op) {
  return match(
      op.body, [](const graph::Gemm& g) { return bytes_per_element(g.activation); },
      [](const graph::Attention& a) { return bytes_per_element(a.activation); },
      [](const graph::Vector& v) { return bytes_per_element(v.activation); }, [](const auto&) { return 0.0; });
}

int rows_split(const GemmProblem&, const GemmMapping& map) { return map.transposed ? map.grid->n : map.grid->m; }
int rows_split(const AttentionProblem& p, const AttentionMapping& map) {
  return p.sequences == 1 ? map.grid->n : -1;  // of several: by sequence and head
}
int rows_split(const VectorProblem& p, const VectorMapping& map) { return p.flat() == p ? map.grid->n : 0; }

class Placement {
 public:
  Placement(const TileMapper& mapper, std::span<const StepOp> ops, const ResidencyOptions& options)
      : ops_(ops), options_(options) {
    std::vector<const graph::Op*> plain;
    for (const StepOp& op : ops) plain.push_back(op.op);
    if (options.keep) tensors_ = tensors_of(plain);
    for (const StepOp& op : ops) posed_.push_back(mapper.pose(*op.op, *op.work));
    std::erase_if(tensors_, [&](const Tensor& t) {
      return !posed_[t.op] || std::ranges::any_of(t.uses, [&](const Use& u) { return !posed_[u.op]; });
    });
    plan_.kept.assign(tensors_.size(), 0);
    plan_.slices.assign(ops.size(), 1);
    for (std::size_t i = 0; i < ops.size(); ++i) plan_.group.push_back(i);
  }

  PlacedStep run() {
    best_ = seconds_of(plan_, kUnfit);
    const double apart = best_;
    // What is taken first decides on what can follow: once with each number of slices, and from the best with all.
    const Plan nothing = plan_;
    Plan fastest = nothing;
    double least = apart;
    for (const int slices : kSlices) {
      if (slices > 1 && !options_.slice) break;
      plan_ = nothing;
      best_ = apart;
      improve({1, slices});
      if (best_ >= least) continue;
      least = best_;
      fastest = plan_;
    }
    plan_ = std::move(fastest);
    best_ = least;
    if (options_.slice) improve({kSlices.begin(), kSlices.end()});
    PlacedStep step;
    step.seconds = best_;
    step.apart = apart;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      step.ops.push_back(placed(i));
      step.dram += d(ops_[i].op->count) * step.ops.back().dram;
      step.dram_apart += d(ops_[i].op->count) * step.ops.back().dram_apart;
    }
    return step;
  }

 private:
  // ---- The search

  struct Move {
    std::size_t tensor;
    std::size_t uses;
    double saved;  // bytes
  };

  void improve(const std::vector<int>& slices) {
    for (int round = 0; round < kRounds && improves(slices); ++round) {
    }
  }
  bool improves(const std::vector<int>& all_slices) {
    std::vector<Move> moves;
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      for (std::size_t uses = 0; uses <= tensors_[t].uses.size(); ++uses) {
        const bool all = uses == tensors_[t].uses.size() && !tensors_[t].leaves;
        moves.push_back(
            {t, uses,
             bytes_of(tensors_[t]) * (static_cast<double>(uses) + (all ? 1 : 0)) * d(ops_[tensors_[t].op].op->count)});
      }
    }
    std::ranges::stable_sort(moves, [](const Move& x, const Move& y) { return x.saved > y.saved; });
    const double before = best_;
    for (const Move& move : moves) {
      if (move.uses < plan_.kept[move.tensor]) {  // it makes room for others
        take(move, plan_.slices[tensors_[move.tensor].op]);
        continue;
      }
      if (move.uses == 0) continue;
      for (const int slices : all_slices) take(move, slices);
    }
    return best_ < before;
  }

  // The plan with a tensor kept, and the ops from the one that makes it to the last that reads it in so many slices,
  // with those that are sliced together with any of them, if all of that takes less.
  void take(const Move& move, int slices) {
    Plan trial = plan_;
    const Tensor& t = tensors_[move.tensor];
    trial.kept[move.tensor] = move.uses;
    std::size_t first = t.op;
    std::size_t last = move.uses > 0 ? t.uses[move.uses - 1].op : t.op;
    const std::size_t end = last;
    for (std::size_t i = t.op; i <= end; ++i) {
      if (plan_.slices[i] == 1) continue;
      first = std::min(first, plan_.group[i]);
      while (last + 1 < ops_.size() && plan_.group[last + 1] == plan_.group[i]) ++last;
    }
    for (std::size_t i = first; i <= last; ++i) {
      if (slices > 1 && (ops_[i].op->count != ops_[first].op->count || !divides(i, slices, first))) return;
      trial.slices[i] = slices;
      trial.group[i] = slices > 1 ? first : i;
    }
    // What stays is a slice's, or whole: not both.
    for (std::size_t k = 0; k < tensors_.size(); ++k) {
      for (std::size_t u = 0; u < trial.kept[k]; ++u) {
        const std::size_t from = tensors_[k].op;
        const std::size_t to = tensors_[k].uses[u].op;
        if ((trial.slices[from] > 1 || trial.slices[to] > 1) && trial.group[from] != trial.group[to]) return;
      }
    }
    const double seconds = seconds_of(trial, best_);
    if (seconds >= best_ * (1 - kWorthwhile)) return;
    best_ = seconds;
    plan_ = std::move(trial);
  }

  // Whether an op can be run for a part of its rows. Of keys that are made in slices only those of earlier rows are
  // there, which is all that causal attention sees.
  bool divides(std::size_t i, int slices, std::size_t first) const {
    if (!posed_[i]) return false;
    return match(
        posed_[i]->problem, [&](const GemmProblem& p) { return p.batch == 1 && p.m >= slices; },
        [&](const AttentionProblem& p) {
          return p.sequences % slices == 0 || (p.sequences == 1 && p.queries % slices == 0 && (p.causal || i == first));
        },
        [&](const VectorProblem& p) { return std::max(p.rows, p.width) >= slices; });
  }

  // ---- Ops under a plan

  double bytes_of(const Tensor& t) const { return t.elements * element_bytes(*ops_[t.op].op); }
  bool stored(const Plan& plan, std::size_t t) const {
    return tensors_[t].leaves || plan.kept[t] < tensors_[t].uses.size();
  }

  Variant pose(const Plan& plan, std::size_t i) const {
    Variant posed;
    posed.slices = plan.slices[i];
    Problem problem = posed_[i]->problem;
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      if (plan.kept[t] == 0) continue;
      const Tensor& tensor = tensors_[t];
      if (i < tensor.op || i > tensor.uses[plan.kept[t] - 1].op) continue;
      const double tiles = posed_[i]->machine->tiles;
      double resident = bytes_of(tensor) / tiles;
      const double element = element_bytes(*ops_[tensor.op].op);
      if (i == tensor.op && !stored(plan, t) && leave(problem, tensor.elements, element)) resident = 0;
      for (std::size_t u = 0; u < plan.kept[t]; ++u) {
        const Use& use = tensor.uses[u];
        if (use.op != i) continue;
        if (find(problem, use, element)) resident = 0;
        if (use.in_place && !stored(plan, t)) leave(problem, use.elements, element);
      }
      posed.resident += resident / posed.slices;
    }
    posed.changed = posed.slices > 1 || posed.resident > 0 || problem != posed_[i]->problem;
    posed.problems = sliced(problem, posed.slices);
    return posed;
  }

  // Results that stay, or operands that did, take no bytes of the DRAM. True: the problem counts what they take of a
  // tile's memory.
  static bool leave(Problem& problem, double elements, double element) {
    return match(
        problem,
        [&](GemmProblem& p) {
          const double all = d(p.batch) * d(p.m) * d(p.n) * p.results;
          if (elements >= all * (1 - 1e-9)) return p.c_local = true;
          p.c_bytes = std::max(0.0, p.c_bytes - element * elements / all);
          return false;
        },
        [](AttentionProblem& p) { return p.o_bytes = 0, false; },
        [&](VectorProblem& p) {
          p.out_bytes = std::max(0.0, p.out_bytes - element * elements / (d(p.rows) * d(p.width)));
          return false;
        });
  }
  static bool find(Problem& problem, const Use& use, double element) {
    return match(
        problem,
        [&](GemmProblem& p) {
          if (!use.residual) return p.a_local = true;
          p.finish_bytes = std::max(0.0, p.finish_bytes - element);
          return false;
        },
        [](AttentionProblem& p) { return p.q_bytes = 0, false; },
        [&](VectorProblem& p) {
          p.in_bytes = std::max(0.0, p.in_bytes - element * use.elements / (d(p.rows) * d(p.width)));
          return false;
        });
  }

  static std::vector<Problem> sliced(const Problem& problem, int slices) {
    if (slices == 1) return {problem};
    std::vector<Problem> parts;
    parts.reserve(static_cast<std::size_t>(slices));
    parts.push_back(problem);
    match(
        parts.front(), [&](GemmProblem& p) { p.m = divide_up(p.m, slices); },
        [&](AttentionProblem& p) {
          if (p.sequences % slices == 0) {
            p.sequences /= slices;
            return;
          }
          p.queries /= slices;
          if (!p.causal) return;
          const std::int64_t keys = p.keys;
          for (int part = slices - 1; part >= 0; --part) {  // each sees the keys before it
            AttentionProblem one = p;
            one.keys = keys - part * p.queries;
            if (part == slices - 1) {
              p = one;
            } else {
              parts.emplace_back(one);
            }
          }
        },
        [&](VectorProblem& p) {
          std::int64_t& side = p.rows >= slices ? p.rows : p.width;
          side = divide_up(side, slices);
        });
    return parts;
  }

  // ---- Times

  const Answered& answer(std::size_t i, const Problem& problem, double resident) {
    const Posed& posed = *posed_[i];
    for (const Known& known : known_) {
      if (known.machine == posed.machine && known.resident == resident && known.problem == problem) return known.answer;
    }
    Machine machine = *posed.machine;
    machine.sram -= resident;
    Answered found;
    if (machine.sram > 0) {
      std::visit(
          [&](const auto& p) {
            const auto mapped = Search<std::decay_t<decltype(p)>>(machine, posed.grids).select(p, 1).found;
            if (mapped.empty()) return;
            found.seconds = mapped.front().simulated;
            found.rows = rows_split(p, mapped.front().choice.mapping);
            found.mapping = describe(machine, p, mapped.front().choice);
          },
          problem);
    }
    return known_.emplace_back(Known{problem, posed.machine, resident, std::move(found)}).answer;
  }
  const Answered& alone(std::size_t i) { return answer(i, posed_[i]->problem, 0); }

  // What no mapping of it is faster than.
  double least(const Variant& posed, std::size_t i) const {
    const Machine& machine = *posed_[i]->machine;
    double seconds = 0;
    for (const Problem& p : posed.problems) seconds += bound_of(machine, p).seconds();
    return seconds * posed.slices / static_cast<double>(posed.problems.size());
  }

  double seconds_of(const Variant& posed, std::size_t i) {
    const StepOp& op = ops_[i];
    if (!posed.changed) return op.apart.total.value;
    double seconds = 0;
    for (const Problem& p : posed.problems) seconds += answer(i, p, posed.resident).seconds;
    seconds *= posed.slices / static_cast<double>(posed.problems.size());
    seconds += std::max(0.0, op.apart.total.value - alone(i).seconds);  // what a stack adds to any mapping
    return std::max({seconds, op.apart.matrix.value, op.apart.vector.value});
  }

  // Of one execution, for what op `i` reads.
  double dealt(const Plan& plan, std::size_t i) {
    double seconds = 0;
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      for (std::size_t u = 0; u < plan.kept[t]; ++u) {
        const Use& use = tensors_[t].uses[u];
        if (use.op != i) continue;
        const int from = split_of(plan, tensors_[t].op);
        const int to = split_of(plan, i);
        if (from == to || from == 0 || to == 0) continue;
        const Machine& m = *posed_[i]->machine;
        const double bytes = use.elements * element_bytes(*ops_[tensors_[t].op].op);
        seconds += bytes / 4 / (std::min(m.mesh_x, m.mesh_y) * m.link) +
                   plan.slices[i] * (m.mesh_x + m.mesh_y) * m.hop_latency;
      }
    }
    return seconds;
  }
  int split_of(const Plan& plan, std::size_t i) {
    const Variant posed = pose(plan, i);
    return answer(i, posed.problems.front(), posed.resident).rows;
  }

  // Of all executions; anything that is not below `limit` may be infinite.
  double seconds_of(const Plan& plan, double limit) {
    std::vector<Variant> posed(ops_.size());
    double least_of_all = 0;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (posed_[i]) posed[i] = pose(plan, i);
      least_of_all += d(ops_[i].op->count) * (posed[i].changed ? least(posed[i], i) : ops_[i].apart.total.value);
    }
    if (least_of_all >= limit) return kUnfit;
    double sum = 0;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      sum += d(ops_[i].op->count) * seconds_of(posed[i], i);
      if (sum >= limit) return kUnfit;
    }
    for (std::size_t i = 0; i < ops_.size(); ++i) sum += d(ops_[i].op->count) * dealt(plan, i);
    return sum;
  }

  // ---- The result

  PlacedOp placed(std::size_t i) {
    PlacedOp op;
    op.dram = op.dram_apart = ops_[i].work->bytes().value;
    op.seconds = ops_[i].apart.total.value;
    if (!posed_[i]) return op;
    const Variant posed = pose(plan_, i);
    op.dealt = dealt(plan_, i);
    op.seconds = seconds_of(posed, i) + op.dealt;
    op.slices = posed.slices;
    op.resident = posed.resident;
    const auto moved = [&](const Variant& p) {
      double bytes = 0;
      for (const Problem& problem : p.problems) {
        const Answered& found = answer(i, problem, p.resident);
        if (found.mapping) bytes += found.mapping->traffic.dram();
      }
      return bytes * p.slices / static_cast<double>(p.problems.size());
    };
    op.dram = moved(posed);
    op.dram_apart = moved(Variant{{posed_[i]->problem}, 1, 0, false});
    op.mapping = answer(i, posed.problems.back(), posed.resident).mapping;
    if (op.mapping) op.bound = busiest(*posed_[i]->machine, *op.mapping);
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      for (std::size_t u = 0; u < plan_.kept[t]; ++u) {
        if (tensors_[t].uses[u].op == i) op.from.push_back(ops_[tensors_[t].op].op->name);
      }
      if (tensors_[t].op == i && plan_.kept[t] > 0) {
        // Keys and values of a product that writes the cache go there.
        const auto* product = std::get_if<graph::Gemm>(&ops_[i].op->body);
        const bool caches = product != nullptr && product->joined.cached > 0;
        op.to = stored(plan_, t) || caches ? PlacedOp::To::both : PlacedOp::To::tiles;
      }
    }
    return op;
  }

  struct Known {
    Problem problem;
    const Machine* machine;
    double resident;
    Answered answer;
  };

  std::span<const StepOp> ops_;
  ResidencyOptions options_;
  std::vector<Tensor> tensors_;
  std::vector<std::optional<Posed>> posed_;
  std::deque<Known> known_;
  Plan plan_;
  double best_ = 0;
};

}  // namespace

std::string_view name(PlacedOp::To to) {
  constexpr std::array<std::string_view, 3> kNames = {"DRAM", "DRAM and tiles", "tiles"};
  return kNames[static_cast<std::size_t>(to)];
}

PlacedStep place_step(const TileMapper& mapper, std::span<const StepOp> ops, const ResidencyOptions& options) {
  return Placement(mapper, ops, options).run();
}

}  // namespace llmperf::mapper::tile
