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
#include "base/text.h"
#include "estimate/training.h"
#include "model/parameters.h"

namespace llmperf::estimate {
namespace {

double d(std::int64_t x) { return static_cast<double>(x); }

// A sum of products: coefficient by factors ("b * s * h"), in the order in which they were added.
class Polynomial {
 public:
  Polynomial& add(double coefficient, const std::string& factors) {
    const auto same = std::find_if(terms_.begin(), terms_.end(), [&](const Term& t) { return t.factors == factors; });
    if (same != terms_.end()) {
      same->coefficient += coefficient;
    } else {
      terms_.push_back({coefficient, factors});
    }
    return *this;
  }
  Polynomial& add(const Polynomial& other, const std::string& times = "") {
    for (const Term& t : other.terms_) add(t.coefficient, t.factors + times);
    return *this;
  }
  std::string text() const {
    std::string text;
    for (const Term& t : terms_) {
      if (t.coefficient == 0) continue;
      if (!text.empty()) text += " + ";
      text += t.coefficient == 1 ? t.factors : fmt::format("{} * {}", t.coefficient, t.factors);
    }
    return text.empty() ? "0" : text;
  }

 private:
  struct Term {
    double coefficient;
    std::string factors;
  };
  std::vector<Term> terms_;
};

// The dimensions of a layer as products of symbols: the width of all query heads is h where it equals the hidden size,
// the MLP's width a multiple of h where it is one.
struct Symbols {
  std::string query;      // a * d
  std::string key;        // k * d
  double mlp_factor = 1;  // of `mlp`
  std::string mlp;        // f
};

class Table {
 public:
  Table(const Setup& setup, std::int64_t batch, std::int64_t sequence, std::int64_t devices)
      : setup_(setup),
        model_(*setup.execution.model),
        layer_(model_.kinds.front()),
        b_(batch),
        s_(sequence),
        n_(devices) {
    const model::Attention& a = layer_.attention;
    const model::FeedForward& f = layer_.feed_forward;
    symbols_.query = a.heads * a.head_dim == model_.hidden ? "h" : "a * d";
    symbols_.key = a.kv_heads == a.heads ? symbols_.query : "k * d";
    const bool multiple = f.intermediate % model_.hidden == 0;
    symbols_.mlp_factor = multiple ? d(f.intermediate / model_.hidden) : 1;
    symbols_.mlp = multiple ? "h" : "f";
    count_parameters();
    count_activations();
  }

  StrategyTable build() {
    StrategyTable table;
    const std::string P = parameters().text();
    table.parameters = {P, 0};
    const std::string sends = "2 * alpha * (" + P + ")";
    const auto data = [&](const char* name, int zero, const char* collectives, const std::string& sent) {
      StrategyFormulas f = start(name, {.data = n_}, "b / b");
      f.zero = zero;
      f.parameter_collectives = collectives;
      f.parameter_communication.text = sent;
      f.activations.text = kept(" / n", " / n").text();
      share(f, zero);
      table.strategies.push_back(std::move(f));
    };
    data("DP", 0, "all-reduce of P", sends);
    data("ZeRO-1", 1, "reduce-scatter, all-gather of P", sends);
    data("ZeRO-2", 2, "reduce-scatter, all-gather of P", sends);
    data("ZeRO-3", 3, "2 all-gather, reduce-scatter of P", "3 * alpha * (" + P + ")");

    const auto tensor = [&](const char* name, graph::Plan plan, const char* collectives, const std::string& sent,
                            const std::string& undivided) {
      StrategyFormulas f = start(name, plan, "a / h");
      f.parameter_collectives = "none";
      f.parameter_communication.text = "0";
      f.activation_collectives = collectives;
      f.activation_communication.text = replicated_heads(sent);
      f.weights.text = f.gradients.text = replicated_heads(held().text());
      f.optimizer.text = "6 * (" + f.weights.text + ")";
      f.activations.text = replicated_heads(kept(undivided, " / n").text());
      table.strategies.push_back(std::move(f));
    };
    // Blocks side by side (Phi-2) share one exchange.
    const bool together = layer_.parallel_blocks;
    tensor("TP", {.tensor = n_}, together ? "2 all-reduce" : "4 all-reduce",
           together ? "4 * alpha * b * s * h" : "8 * alpha * b * s * h", "");
    tensor("Megatron-SP", {.tensor = n_, .sequence_parallel = true},
           together ? "3 all-gather, 2 reduce-scatter" : "6 all-gather, 4 reduce-scatter",
           together ? "5 * alpha * b * s * h" : "10 * alpha * b * s * h", " / n");
    if (const std::int64_t rows = middle(); rows > 1) {
      tensor("2-D TP", {.tensor = n_, .tensor_rows = rows}, "12 all-gather, 8 reduce-scatter", two_dimensional(),
             " / n");
    }

    const auto sequence = [&](const char* name, graph::Plan plan, const char* collectives, const std::string& sent,
                              const char* split) {
      StrategyFormulas f = start(name, plan, split);
      f.parameter_collectives = "all-reduce of P";
      f.parameter_communication.text = sends;
      f.activation_collectives = collectives;
      f.activation_communication.text = sent;
      f.activations.text = kept(" / n", " / n").text();
      share(f, 0);
      table.strategies.push_back(std::move(f));
    };
    const std::string heads = Polynomial().add(4, symbols_.query).add(4, symbols_.key).text();
    const std::string ulysses = "alpha * b * s * (" + heads + ") / n";
    const std::string ring = "6 * alpha * b * s * " + symbols_.key;
    sequence("Ulysses", {.ulysses = n_}, "8 all-to-all", ulysses, "a / s");
    sequence("Ring", {.ring = n_}, "p2p of K, V; back K, V, dK, dV", ring, "s / s");
    if (const std::int64_t u = middle(); u > 1) {
      sequence("USP", {.ulysses = u, .ring = n_ / u}, "8 all-to-all, p2p",
               "(u - 1) / u * b * s * (" + heads + ") / n + 6 * (r - 1) / r * b * s * " + symbols_.key + " / u",
               "a s / s");
    }
    {
      StrategyFormulas f = start("PP", {.pipeline = n_}, "L");
      f.parameter_collectives = "none";
      f.parameter_communication.text = "0";
      f.activation_collectives = "2 send at each boundary";
      f.activation_communication.text = "2 * b * s * h";
      f.activations.text = kept("", "").text();
      share(f, 0);
      table.strategies.push_back(std::move(f));
    }
    check(table);
    table.variables = variables(table);
    return table;
  }

 private:
  // Parameters by whether the tensor axis divides them.
  void count_parameters() {
    const model::Attention& a = layer_.attention;
    const model::FeedForward& f = layer_.feed_forward;
    const std::string h = "h";
    const auto matrix = [&](double times, const std::string& width, bool in_bias, bool out_bias) {
      divided_.add(times, width == "h" ? "h * h" : "h * " + width);
      if (in_bias) divided_.add(times, width);
      if (out_bias) whole_.add(1, h);
    };
    matrix(1, symbols_.query, a.qkv_bias, false);
    matrix(2, symbols_.key, a.qkv_bias, false);
    matrix(1, symbols_.query, false, a.o_bias);
    matrix((f.gated ? 2 : 1) * symbols_.mlp_factor, symbols_.mlp, f.bias, false);
    matrix(symbols_.mlp_factor, symbols_.mlp, false, f.bias);
    whole_.add(layer_.norms * (model_.norm == model::Norm::rms ? 1 : 2), h);
    if (a.qk_norm) whole_.add(2, "d");
    if (a.sinks) divided_.add(1, "a");
  }
  Polynomial parameters() const { return Polynomial(divided_).add(whole_); }
  Polynomial held() const { return Polynomial().add(divided_, " / n").add(whole_); }

  // Bytes by whether the tensor axis alone divides them.
  void count_activations() {
    const model::Attention& a = layer_.attention;
    const model::FeedForward& f = layer_.feed_forward;
    const hardware::RuntimeOptions& o = setup_.execution.runtime;
    const std::string bs = "b * s * ";
    const auto local = [&](double bytes, const std::string& width) { own_.add(bytes, bs + width); };
    stream_.add(2 * layer_.norms, bs + "h");                // inputs of the norms
    stream_.add(layer_.parallel_blocks ? 2 : 4, bs + "h");  // inputs of qkv and of the MLP
    if (model_.dropout) stream_.add(2, bs + "h");           // a byte per element and mask
    if (a.qk_norm) local(2, symbols_.query), local(2, symbols_.key);
    local(2, symbols_.query), local(2, symbols_.key), local(2, symbols_.key);
    if (o.flash_attention) {
      local(4, "a");  // the logarithm of each row's sum, fp32
    } else {
      own_.add(model_.dropout ? 5 : 2, "a * b * s * s");  // softmax; its mask and result
    }
    local(2, symbols_.query);  // input of o
    const double mlp = f.gated ? (o.fused_activation ? 6 : 8) : 4;
    local(mlp * symbols_.mlp_factor, symbols_.mlp);
  }
  Polynomial kept(const std::string& stream, const std::string& own) const {
    return Polynomial().add(stream_, stream).add(own_, own);
  }

  // 3 gathers of each input and 2 scatters of each result, over 4 matrices; one input serves blocks side by side.
  std::string two_dimensional() const {
    const model::FeedForward& f = layer_.feed_forward;
    Polynomial in, out;
    in.add(layer_.parallel_blocks ? 1 : 2, "h").add(1, symbols_.query).add(symbols_.mlp_factor, symbols_.mlp);
    out.add(1, symbols_.query).add(2, symbols_.key).add(1, "h");
    out.add((f.gated ? 2 : 1) * symbols_.mlp_factor, symbols_.mlp).add(1, "h");
    return fmt::format("3 * b * s * ({}) * (c - 1) / n + 2 * b * s * ({}) * (m - 1) / n", in.text(), out.text());
  }

  // Fewer KV heads than devices of a tensor axis: each device holds one, n of them in all.
  std::string replicated_heads(std::string formula) const {
    if (n_ <= layer_.attention.kv_heads) return formula;
    const std::string_view divided = "k * d", replicated = "n * d";
    for (std::size_t at = 0; (at = formula.find(divided, at)) != std::string::npos;) {
      formula.replace(at, divided.size(), replicated);
    }
    return formula;
  }

  // A divisor of n in the middle; 1 where there is none.
  std::int64_t middle() const {
    for (std::int64_t x = static_cast<std::int64_t>(std::sqrt(d(n_))); x > 1; --x) {
      if (n_ % x == 0) return x;
    }
    return 1;
  }

  StrategyFormulas start(const char* name, const graph::Plan& plan, const char* split) {
    StrategyFormulas f;
    f.name = name;
    f.plan = plan;
    f.split = split;
    f.activation_collectives = "none";
    f.activation_communication.text = "0";
    return f;
  }
  void share(StrategyFormulas& f, int zero) const {
    const std::string P = parameters().text();
    const std::string part = "(" + P + ") / n";
    f.weights.text = zero >= 3 ? part : P;
    f.gradients.text = zero >= 2 ? part : P;
    f.optimizer.text = zero >= 1 ? "6 * " + part : "6 * (" + P + ")";
  }

  std::vector<Variable> symbols(const graph::Plan& plan) const {
    const model::Attention& a = layer_.attention;
    return {{"b", d(b_), "sequences of the step"},
            {"s", d(s_), "tokens of a sequence"},
            {"h", d(model_.hidden), "hidden size"},
            {"a", d(a.heads), "heads"},
            {"k", d(a.kv_heads), "KV heads"},
            {"d", d(a.head_dim), "width of a head"},
            {"f", d(layer_.feed_forward.intermediate), "width of the MLP"},
            {"n", d(n_), "devices"},
            {"alpha", d(n_ - 1) / d(n_), "(n - 1) / n"},
            {"u", d(plan.ulysses), "Ulysses degree"},
            {"r", d(plan.ring), "ring degree"},
            {"m", d(std::max<std::int64_t>(1, plan.tensor_rows)), "rows of a two-dimensional plan"},
            {"c", d(plan.tensor_columns()), "columns of a two-dimensional plan"}};
  }

  // Those that some formula uses, u, r, m and c with the value of the plan that does.
  std::vector<Variable> variables(const StrategyTable& table) const {
    std::vector<Variable> used;
    const auto collect = [&](const Formula& formula, const graph::Plan& plan) {
      const std::vector<Variable> all = symbols(plan);
      for (const std::string_view name : names_in(formula.text)) {
        const auto same = [&](const Variable& v) { return v.name == name; };
        if (std::none_of(used.begin(), used.end(), same)) used.push_back(*std::find_if(all.begin(), all.end(), same));
      }
    };
    for (const StrategyFormulas& f : table.strategies) {
      for (const Formula* each :
           {&f.activations, &f.activation_communication, &f.parameter_communication, &f.weights}) {
        collect(*each, f.plan);
      }
    }
    return used;
  }

  void check(StrategyTable& table) const {
    table.parameters.value = evaluate(table.parameters.text, symbols({}));
    std::int64_t elements = 0;
    for (const model::Tensor& t : model::layer_tensors(model_, layer_)) elements += t.elements();
    same("P", table.parameters.value, d(elements));
    for (StrategyFormulas& f : table.strategies) {
      const std::vector<Variable> values = symbols(f.plan);
      for (Formula* each : {&f.parameter_communication, &f.activation_communication, &f.weights, &f.gradients,
                            &f.optimizer, &f.activations}) {
        each->value = evaluate(each->text, values);
      }
      f.illegal = why_illegal(f.plan);
      if (!f.illegal) compare_with_graph(f);
    }
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
  Symbols symbols_;
  Polynomial divided_, whole_;  // parameters
  Polynomial stream_, own_;     // activations
};

}  // namespace

StrategyTable strategy_formulas(const Setup& setup, std::int64_t batch, std::int64_t sequence, std::int64_t devices) {
  const model::Decoder& model = *setup.execution.model;
  const model::Layer& layer = model.kinds.front();
  if (model.kinds.size() > 1 || layer.feed_forward.experts || layer.attention.latent ||
      layer.attention.v_head_dim != layer.attention.head_dim) {
    throw Error::bad_input(
        fmt::format("formulas are for dense models whose layers are all alike; {} is another", model.name),
        "leave out --symbolic: numbers are there for every model");
  }
  if (devices < 2) throw Error::bad_input("--symbolic compares ways to use several devices", "--devices 8");
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
