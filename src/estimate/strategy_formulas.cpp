// With b sequences of s tokens, h the hidden size, a heads and k KV heads of width d, f the width of the MLP and n
// devices, alpha = (n - 1) / n:
//
//   P   parameters of a layer: those that the tensor axis divides, and the vectors that it does not
//   A   bytes kept for the backward pass at 2 bytes an element: inputs of the norms, of qkv and of the MLP (and dropout
//       masks), which the tensor axis alone does not divide; q, k, v, scores, the input of o and the MLP's own tensors
//
// An all-reduce of S elements sends 2 alpha S, an all-gather or reduce-scatter alpha S, an all-to-all of the local S
// alpha S; a ring passes a block on n - 1 times. Sources: Narayanan et al. 2021 (arXiv 2104.04473), Korthikanti et al.
// 2022 (arXiv 2205.05198), Rajbhandari et al. 2020 (arXiv 1910.02054), Jacobs et al. 2023 (arXiv 2309.14509), Liu et
// al. 2023 (arXiv 2310.01889), Fang and Zhao 2024 (arXiv 2405.07719).
#include "estimate/strategy_formulas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "base/error.h"
#include "base/integer.h"
#include "base/text.h"
#include "estimate/training.h"
#include "model/parameters.h"

namespace llmperf::estimate {
namespace {

// A sum of products: coefficient by factors ("b * s * h"), in the order in which they were added.
class Polynomial {
 public:
  Polynomial& add(double coefficient, const Term& factors) {
    const auto same = [&](const Summand& x) { return x.factors.text() == factors.text(); };
    const auto found = std::ranges::find_if(summands_, same);
    if (found != summands_.end()) {
      found->coefficient += coefficient;
    } else {
      summands_.push_back({coefficient, factors});
    }
    return *this;
  }
  Polynomial& add(const Polynomial& other, const Term& over = 1) {
    for (const Summand& x : other.summands_) add(x.coefficient, x.factors / over);
    return *this;
  }
  Term term() const {
    Term sum;
    for (const Summand& x : summands_) sum = sum + x.coefficient * x.factors;
    return sum;
  }

 private:
  struct Summand {
    double coefficient;
    Term factors;
  };
  std::vector<Summand> summands_;
};

class Table {
 public:
  Table(const Setup& setup, std::int64_t batch, std::int64_t sequence, std::int64_t devices)
      : setup_(setup),
        model_(*setup.execution.model),
        layer_(model_.kinds.front()),
        b_(batch),
        s_(sequence),
        n_(devices),
        b("b", d(batch), "sequences of the step"),
        s("s", d(sequence), "tokens of a sequence"),
        h("h", d(model_.hidden), "hidden size"),
        n("n", d(devices), "devices"),
        alpha("alpha", d(devices - 1) / d(devices), "(n - 1) / n") {
    const model::Attention& a = layer_.attention;
    const model::FeedForward& f = layer_.feed_forward;
    const Term width("d", d(a.head_dim), "width of a head");
    query_ = a.heads * a.head_dim == model_.hidden ? h : heads() * width;
    const bool all = a.kv_heads == a.heads;
    key_ = all ? query_ : Term("k", d(a.kv_heads), "KV heads") * width;
    // Fewer KV heads than devices of a tensor axis: each device holds one, n of them in all.
    tensor_key_ = !all && devices > a.kv_heads ? n * width : key_;
    const bool multiple = f.intermediate % model_.hidden == 0;
    mlp_factor_ = multiple ? d(f.intermediate / model_.hidden) : 1;
    mlp_ = multiple ? h : Term("f", d(f.intermediate), "width of the MLP");
  }

  StrategyTable build() {
    StrategyTable table;
    const Term P = parameters(key_).whole();
    const Polynomial kept = activations(key_, n, n);
    const auto share = [&](StrategyFormulas& x, int zero) {
      x.weights = formula(zero >= 3 ? P / n : P);
      x.gradients = formula(zero >= 2 ? P / n : P);
      x.optimizer = formula(6 * (zero >= 1 ? P / n : P));
    };
    const auto add = [&](const char* name, const graph::Plan& plan, const char* split) -> StrategyFormulas& {
      StrategyFormulas& x = table.strategies.emplace_back();
      x.name = name;
      x.plan = plan;
      x.split = split;
      x.activation_collectives = x.parameter_collectives = "none";
      x.activation_communication = x.parameter_communication = formula(0);
      return x;
    };
    const auto data = [&](const char* name, int zero, const char* collectives, double sends) {
      StrategyFormulas& x = add(name, {.data = n_}, "b / b");
      x.zero = zero;
      x.parameter_collectives = collectives;
      x.parameter_communication = formula(sends * alpha * P);
      x.activations = formula(kept.term());
      share(x, zero);
    };
    data("DP", 0, "all-reduce of P", 2);
    data("ZeRO-1", 1, "reduce-scatter, all-gather of P", 2);
    data("ZeRO-2", 2, "reduce-scatter, all-gather of P", 2);
    data("ZeRO-3", 3, "2 all-gather, reduce-scatter of P", 3);

    const auto tensor = [&](const char* name, const graph::Plan& plan, const char* collectives, const Term& sent,
                            const Term& stream_over) {
      StrategyFormulas& x = add(name, plan, "a / h");
      x.activation_collectives = collectives;
      x.activation_communication = formula(sent);
      const Term held = parameters(tensor_key_).share(n);
      x.weights = x.gradients = formula(held);
      x.optimizer = formula(6 * held);
      x.activations = formula(activations(tensor_key_, stream_over, n).term());
    };
    // Blocks side by side (Phi-2) share one exchange.
    const bool together = layer_.parallel_blocks;
    tensor("TP", {.tensor = n_}, together ? "2 all-reduce" : "4 all-reduce", (together ? 4 : 8) * alpha * b * s * h, 1);
    tensor("Megatron-SP", {.tensor = n_, .sequence_parallel = true},
           together ? "3 all-gather, 2 reduce-scatter" : "6 all-gather, 4 reduce-scatter",
           (together ? 5 : 10) * alpha * b * s * h, n);
    if (const std::int64_t rows = middle(); rows > 1) {
      const graph::Plan plan{.tensor = n_, .tensor_rows = rows};
      tensor("2-D TP", plan, "12 all-gather, 8 reduce-scatter", two_dimensional(plan), n);
    }

    const auto sequence = [&](const char* name, const graph::Plan& plan, const char* collectives, const Term& sent,
                              const char* split) {
      StrategyFormulas& x = add(name, plan, split);
      x.parameter_collectives = "all-reduce of P";
      x.parameter_communication = formula(2 * alpha * P);
      x.activation_collectives = collectives;
      x.activation_communication = formula(sent);
      x.activations = formula(kept.term());
      share(x, 0);
    };
    const Term heads = Polynomial().add(4, query_).add(4, key_).term().in_parentheses();
    sequence("Ulysses", {.ulysses = n_}, "8 all-to-all", alpha * b * s * heads / n, "a / s");
    sequence("Ring", {.ring = n_}, "p2p of K, V; back K, V, dK, dV", 6 * alpha * b * s * key_, "s / s");
    if (const std::int64_t degree = middle(); degree > 1) {
      const Term u("u", d(degree), "Ulysses degree");
      const Term r("r", d(n_ / degree), "ring degree");
      sequence("USP", {.ulysses = degree, .ring = n_ / degree}, "8 all-to-all, p2p",
               (u - 1) / u * b * s * heads / n + 6 * (r - 1) / r * b * s * key_ / u, "a s / s");
    }
    StrategyFormulas& x = add("PP", {.pipeline = n_}, "L");
    x.activation_collectives = "2 send at each boundary";
    x.activation_communication = formula(2 * b * s * h);
    x.activations = formula(activations(key_, 1, 1).term());
    share(x, 0);

    table.parameters = formula(P);
    std::int64_t elements = 0;
    for (const model::Tensor& t : model::layer_tensors(model_, layer_)) elements += t.elements();
    same("P", table.parameters.value, d(elements));
    for (StrategyFormulas& f : table.strategies) {
      f.illegal = why_illegal(f.plan);
      if (!f.illegal) compare_with_graph(f);
      for (const Formula* each :
           {&f.activations, &f.activation_communication, &f.parameter_communication, &f.weights}) {
        for (const Variable& v : each->variables) {
          const auto known = [&](const Variable& w) { return w.name == v.name; };
          if (std::ranges::none_of(table.variables, known)) table.variables.push_back(v);
        }
      }
    }
    return table;
  }

 private:
  static Formula formula(const Term& t) { return {t.text(), t.value(), t.variables()}; }
  Term heads() const { return {"a", d(layer_.attention.heads), "heads"}; }

  // Parameters by whether the tensor axis divides them.
  struct Parameters {
    Polynomial divided, undivided;
    Term whole() const { return Polynomial(divided).add(undivided).term(); }
    Term share(const Term& parts) const { return Polynomial().add(divided, parts).add(undivided).term(); }
  };
  Parameters parameters(const Term& key) const {
    const model::Attention& a = layer_.attention;
    const model::FeedForward& f = layer_.feed_forward;
    Parameters p;
    const auto matrix = [&](double times, const Term& width, bool in_bias, bool out_bias) {
      p.divided.add(times, h * width);
      if (in_bias) p.divided.add(times, width);
      if (out_bias) p.undivided.add(1, h);
    };
    matrix(1, query_, a.qkv_bias, false);
    matrix(2, key, a.qkv_bias, false);
    matrix(1, query_, false, a.o_bias);
    matrix((f.gated ? 2 : 1) * mlp_factor_, mlp_, f.bias, false);
    matrix(mlp_factor_, mlp_, false, f.bias);
    p.undivided.add(layer_.norms * (model_.norm == model::Norm::layer ? 2 : 1), h);
    if (a.qk_norm != model::QkNorm::none) p.undivided.add(2, Term("d", d(a.head_dim), "width of a head"));
    if (a.sinks) p.divided.add(1, heads());
    return p;
  }

  // Bytes: what the tensor axis alone does not divide over `stream_over` devices, the rest over `own_over`.
  Polynomial activations(const Term& key, const Term& stream_over, const Term& own_over) const {
    const model::Attention& a = layer_.attention;
    const model::FeedForward& f = layer_.feed_forward;
    const hardware::RuntimeOptions& o = setup_.execution.runtime;
    Polynomial stream, own;
    const auto local = [&](double bytes, const Term& width) { own.add(bytes, b * s * width); };
    stream.add(2 * layer_.norms, b * s * h);                // inputs of the norms
    stream.add(layer_.parallel_blocks ? 2 : 4, b * s * h);  // inputs of qkv and of the MLP
    if (model_.dropout) stream.add(2, b * s * h);           // a byte per element and mask
    if (a.qk_norm != model::QkNorm::none) local(2, query_), local(2, key);
    local(2, query_), local(2, key), local(2, key);
    if (o.flash_attention) {
      local(4, heads());  // the logarithm of each row's sum, fp32
    } else {
      own.add(model_.dropout ? 5 : 2, heads() * b * s * s);  // softmax; its mask and result
    }
    local(2, query_);  // input of o
    const double mlp = f.gated ? (o.fused_activation ? 6 : 8) : 4;
    local(mlp * mlp_factor_, mlp_);
    return Polynomial().add(stream, stream_over).add(own, own_over);
  }

  // 3 gathers of each input and 2 scatters of each result, over 4 matrices; one input serves blocks side by side.
  Term two_dimensional(const graph::Plan& plan) const {
    const model::FeedForward& f = layer_.feed_forward;
    Polynomial in, out;
    in.add(layer_.parallel_blocks ? 1 : 2, h).add(1, query_).add(mlp_factor_, mlp_);
    out.add(1, query_).add(2, tensor_key_).add(1, h).add((f.gated ? 2 : 1) * mlp_factor_, mlp_).add(1, h);
    const Term rows("m", d(plan.tensor_rows), "rows of a two-dimensional plan");
    const Term columns("c", d(plan.tensor_columns()), "columns of a two-dimensional plan");
    return 3 * b * s * in.term().in_parentheses() * (columns - 1) / n +
           2 * b * s * out.term().in_parentheses() * (rows - 1) / n;
  }

  // A divisor of n in the middle; 1 where there is none.
  std::int64_t middle() const {
    for (std::int64_t x = static_cast<std::int64_t>(std::sqrt(d(n_))); x > 1; --x) {
      if (n_ % x == 0) return x;
    }
    return 1;
  }

  std::optional<std::string> why_illegal(const graph::Plan& plan) const {
    const std::vector<graph::Problem> broken = graph::problems(model_, plan);
    if (!broken.empty()) return broken.front().message;
    if (b_ % plan.data != 0) return fmt::format("{} sequences do not divide by {}", b_, plan.data);
    const std::int64_t pieces = graph::sequence_multiple(plan);
    if (s_ % pieces != 0) return fmt::format("{} tokens do not divide by {}", s_, pieces);
    return std::nullopt;
  }

  // What the ops of one layer send and keep.
  void compare_with_graph(const StrategyFormulas& f) const {
    graph::Execution execution = setup_.execution;
    execution.plan = f.plan;
    execution.training = true;
    const graph::SequenceGroup group{b_ / f.plan.data, s_, 0};
    graph::Graph forward, backward;
    graph::build_step(execution, {&group, 1}, graph::Part::all, forward);
    graph::build_backward(forward, {}, backward);
    const double layers = d(model_.num_layers());
    const double element = bytes_per_element(execution.activations);
    double sent = 0;
    double kept = 0;
    for (const graph::Graph* pass : {&forward, &backward}) {
      for (const graph::Op& op : *pass) {
        const auto* c = std::get_if<graph::Collective>(&op.body);
        const double count = d(op.count);
        if (op.layer_kind >= 0) kept += op.saved.value * count / layers;
        if (c == nullptr) continue;
        // The statistics of norms that lie on several devices are left out: a few numbers per token.
        const bool of_layer = op.layer_kind >= 0 && !(f.plan.tensor_rows > 0 && c->axis == graph::Axis::tensor);
        const double bytes = cost::sent_bytes(*c).value / element;
        if (of_layer) sent += bytes * count / layers;
        if (c->kind == graph::CollectiveKind::send) sent += bytes;  // one boundary
      }
    }
    same(f.name + " communication", f.activation_communication.value, sent);
    // Formulas are written for 2 bytes an element.
    if (element == 2) same(f.name + " activations", f.activations.value, kept);
    double held = 0;
    const model::Layer share = graph::shard(layer_, f.plan);
    for (const model::Tensor& t : model::layer_tensors(model_, share)) held += d(t.elements());
    same(f.name + " parameters", f.weights.value, f.zero >= 3 ? held / d(f.plan.replicas()) : held);
  }

  static void same(const std::string& what, double formula, double graph) {
    if (std::abs(formula - graph) <= 1e-9 * std::max(std::abs(formula), std::abs(graph))) return;
    throw std::logic_error(fmt::format("internal error: {}: the formula gives {}, the graph {}", what, formula, graph));
  }

  const Setup& setup_;
  const model::Decoder& model_;
  const model::Layer& layer_;
  std::int64_t b_, s_, n_;
  Term b, s, h, n, alpha;  // as the table names them
  // Widths: of all query heads, h where they are as wide as the hidden size; of all key heads, on a tensor axis too; of
  // the MLP, a multiple of h where it is one.
  Term query_, key_, tensor_key_, mlp_;
  double mlp_factor_ = 1;
};

}  // namespace

StrategyTable strategy_formulas(const Setup& setup, std::int64_t batch, std::int64_t sequence, std::int64_t devices) {
  const model::Decoder& model = *setup.execution.model;
  const model::Layer& layer = model.kinds.front();
  if (model.kinds.size() > 1 || layer.feed_forward.experts || layer.attention.latent ||
      layer.attention.v_head_dim != layer.attention.head_dim || !model.is_plain_transformer()) {
    throw Error::bad_input(
        fmt::format("formulas are for dense models whose layers are all alike; {} is another", model.name),
        "leave out `symbolic`: numbers are there for every model");
  }
  if (devices < 2) throw Error::bad_input("`symbolic` compares ways to use several devices", "`devices` 8");
  return Table(setup, batch, sequence, devices).build();
}

std::string pretty(const std::string& formula) {
  std::string text;
  const std::vector<std::string_view> words = split(formula, ' ');
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "*") {
      // x * x is x^2
      if (i + 1 < words.size() && i > 0 && words[i + 1] == words[i - 1]) {
        text += "^2";
        ++i;
      }
      continue;
    }
    if (!text.empty()) text += ' ';
    text += words[i];
  }
  return text;
}

}  // namespace llmperf::estimate
