// Programs written op by op, in the short form of StableHLO: tests say what a block consists of, not how it is spelt.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace llmperf::program {

class ProgramText {
 public:
  using Dims = std::vector<std::int64_t>;
  struct Named {
    std::string name;  // with its %
    Dims dims;
  };
  struct Product {  // dimensions of both operands
    Dims batch[2] = {};
    Dims contracted[2] = {};
  };

  Named argument(const Dims& dims) {
    const std::string name = fmt::format("%arg{}", arguments_++);
    signature_ += fmt::format("{}{}: {}", signature_.empty() ? "" : ", ", name, type(dims));
    return {name, dims};
  }
  Named indices(const Dims& dims) {
    const Named value = argument(dims);
    signature_.replace(signature_.rfind("f32>"), 4, "i32>");
    return value;
  }
  Named number(double value) { return add(fmt::format("stablehlo.constant dense<{:e}> : tensor<f32>", value), Dims{}); }
  Named product(const Named& a, const Named& b, const Product& p) {
    Dims dims;
    for (const std::int64_t d : p.batch[0]) dims.push_back(a.dims[at(d)]);
    append_free(a, p.batch[0], p.contracted[0], dims);
    append_free(b, p.batch[1], p.contracted[1], dims);
    const std::string batch =
        p.batch[0].empty() ? "" : fmt::format("batching_dims = {} x {}, ", list(p.batch[0]), list(p.batch[1]));
    return add(
        fmt::format("stablehlo.dot_general {}, {}, {}contracting_dims = {} x {} : ({}, {}) -> {}", a.name, b.name,
                    batch, list(p.contracted[0]), list(p.contracted[1]), type(a.dims), type(b.dims), type(dims)),
        dims);
  }
  // The last dimension with the first of the weights.
  Named linear(const Named& x, const Named& weights) {
    return product(x, weights, {.contracted = {{static_cast<std::int64_t>(x.dims.size()) - 1}, {0}}});
  }
  Named linear(const Named& x, std::int64_t outputs) { return linear(x, argument({x.dims.back(), outputs})); }
  Named reshape(const Named& x, const Dims& dims) {
    return add(fmt::format("stablehlo.reshape {} : ({}) -> {}", x.name, type(x.dims), type(dims)), dims);
  }
  Named transpose(const Named& x, const Dims& order) {
    Dims dims;
    for (const std::int64_t d : order) dims.push_back(x.dims[at(d)]);
    return add(
        fmt::format("stablehlo.transpose {}, dims = {} : ({}) -> {}", x.name, list(order), type(x.dims), type(dims)),
        dims);
  }
  Named broadcast(const Named& x, const Dims& places, const Dims& dims) {
    return add(fmt::format("stablehlo.broadcast_in_dim {}, dims = {} : ({}) -> {}", x.name, list(places), type(x.dims),
                           type(dims)),
               dims);
  }
  // Of the last dimension.
  Named slice(const Named& x, std::int64_t begin, std::int64_t end) {
    Dims dims = x.dims;
    dims.back() = end - begin;
    std::string ranges;
    for (std::size_t d = 0; d + 1 < dims.size(); ++d) ranges += fmt::format("0:{}, ", dims[d]);
    return add(
        fmt::format("stablehlo.slice {} [{}{}:{}] : ({}) -> {}", x.name, ranges, begin, end, type(x.dims), type(dims)),
        dims);
  }
  Named unary(const std::string& op, const Named& x) {
    return add(fmt::format("stablehlo.{} {} : {}", op, x.name, type(x.dims)), x.dims);
  }
  Named binary(const std::string& op, const Named& a, const Named& b) {
    return add(fmt::format("stablehlo.{} {}, {} : {}", op, a.name, b.name, type(a.dims)), a.dims);
  }
  Named binary(const std::string& op, const Named& a, double number_b) {
    return binary(op, a, broadcast(number(number_b), {}, a.dims));
  }
  // Over the last dimension, spread over it again.
  Named statistic(const std::string& op, const Named& x) {
    const Named init = number(0);
    Dims dims = x.dims;
    const auto last = static_cast<std::int64_t>(dims.size()) - 1;
    dims.pop_back();
    const Named reduced =
        add(fmt::format("stablehlo.reduce({} init: {}) applies stablehlo.{} across dimensions = [{}] : ({}, {}) -> {}",
                        x.name, init.name, op, last, type(x.dims), type({}), type(dims)),
            dims);
    Dims places;
    for (std::int64_t d = 0; d < last; ++d) places.push_back(d);
    return broadcast(reduced, places, x.dims);
  }

  // ---- Parts of blocks
  Named bias(const Named& x) {
    return binary("add", x,
                  broadcast(argument({x.dims.back()}), {static_cast<std::int64_t>(x.dims.size()) - 1}, x.dims));
  }
  Named softmax(const Named& x) {
    const Named e = unary("exponential", binary("subtract", x, statistic("maximum", x)));
    return binary("divide", e, statistic("add", e));
  }
  Named rms_norm(const Named& x) {
    const Named mean = binary("divide", statistic("add", binary("multiply", x, x)), static_cast<double>(x.dims.back()));
    return scaled(binary("multiply", x, unary("rsqrt", binary("add", mean, 1e-6))));
  }
  Named layer_norm(const Named& x) {
    const auto width = static_cast<double>(x.dims.back());
    const Named centred = binary("subtract", x, binary("divide", statistic("add", x), width));
    const Named variance = binary("divide", statistic("add", binary("multiply", centred, centred)), width);
    return bias(scaled(binary("divide", centred, unary("sqrt", binary("add", variance, 1e-6)))));
  }
  // Scores [.., queries, keys].
  Named causal(const Named& scores) {
    const auto rank = static_cast<std::int64_t>(scores.dims.size());
    const Dims square = {scores.dims[at(rank - 2)], scores.dims[at(rank - 1)]};
    const auto iota = [&](int dim) {
      const std::string name = fmt::format("%{}", values_++);
      body_ += fmt::format("    {} = stablehlo.iota dim = {} : {}\n", name, dim, type(square, "i32"));
      return name;
    };
    const std::string row = iota(0);
    const std::string column = iota(1);
    const std::string mask = fmt::format("%{}", values_++);
    body_ += fmt::format("    {} = stablehlo.compare GE, {}, {}, SIGNED : ({}, {}) -> {}\n", mask, row, column,
                         type(square, "i32"), type(square, "i32"), type(square, "i1"));
    const std::string spread = fmt::format("%{}", values_++);
    body_ += fmt::format("    {} = stablehlo.broadcast_in_dim {}, dims = [{}, {}] : ({}) -> {}\n", spread, mask,
                         rank - 2, rank - 1, type(square, "i1"), type(scores.dims, "i1"));
    const Named low = broadcast(number(-1e9), {}, scores.dims);
    return add(fmt::format("stablehlo.select {}, {}, {} : {}, {}", spread, scores.name, low.name,
                           type(scores.dims, "i1"), type(scores.dims)),
               scores.dims);
  }
  Named gelu_tanh(const Named& x) {
    const Named cube = binary("multiply", binary("multiply", x, x), x);
    const Named inner = binary("multiply", binary("add", x, binary("multiply", cube, 0.044715)), 0.79788);
    return binary("multiply", binary("multiply", x, 0.5), binary("add", unary("tanh", inner), 1));
  }
  Named silu(const Named& x) { return binary("multiply", x, unary("logistic", x)); }

  std::string text(const Named& result) const { return "func.func @main" + function({result}); }
  // (arguments) -> (results) { … }
  std::string function(const std::vector<Named>& results) const {
    std::vector<std::string> names;
    std::vector<std::string> types;
    for (const Named& result : results) {
      names.push_back(result.name);
      types.push_back(type(result.dims));
    }
    return fmt::format("({}) -> ({}) {{\n{}    return {} : {}\n}}\n", signature_, fmt::join(types, ", "), body_,
                       fmt::join(names, ", "), fmt::join(types, ", "));
  }
  // A line of one's own with a result of f32.
  Named add(const std::string& line, const Dims& dims) {
    const std::string name = fmt::format("%{}", values_++);
    body_ += fmt::format("    {} = {}\n", name, line);
    return {name, dims};
  }
  static std::string type(const Dims& dims, const std::string& element = "f32") {
    std::string text = "tensor<";
    for (const std::int64_t d : dims) text += fmt::format("{}x", d);
    return text + element + ">";
  }

 private:
  static std::size_t at(std::int64_t d) { return static_cast<std::size_t>(d); }
  static std::string list(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }
  static void append_free(const Named& x, const Dims& batch, const Dims& contracted, Dims& dims) {
    for (std::int64_t d = 0; d < static_cast<std::int64_t>(x.dims.size()); ++d) {
      const auto in = [&](const Dims& l) { return std::find(l.begin(), l.end(), d) != l.end(); };
      if (!in(batch) && !in(contracted)) dims.push_back(x.dims[at(d)]);
    }
  }
  Named scaled(const Named& x) {
    return binary("multiply", x,
                  broadcast(argument({x.dims.back()}), {static_cast<std::int64_t>(x.dims.size()) - 1}, x.dims));
  }

  std::string signature_;
  std::string body_;
  int arguments_ = 0;
  int values_ = 0;
};

// Attention of [b, s, width] with every step spelt out; heads in front ([b, h, s, d]) as torch has them.
struct Attended {
  ProgramText::Named q, k, v, scores, values, output;
};
inline Attended attend_heads_in_front(ProgramText& p, ProgramText::Named q, ProgramText::Named k, ProgramText::Named v,
                                      std::int64_t heads, bool mask) {
  const std::int64_t b = q.dims[0];
  const std::int64_t s = q.dims[1];
  const std::int64_t width = q.dims[2];
  Attended a{q, k, v, {}, {}, {}};
  const auto split = [&](const ProgramText::Named& x) {
    return p.transpose(p.reshape(x, {b, s, heads, width / heads}), {0, 2, 1, 3});
  };
  a.scores = p.product(split(q), split(k), {.batch = {{0, 1}, {0, 1}}, .contracted = {{3}, {3}}});
  const ProgramText::Named scaled = p.binary("multiply", a.scores, 0.125);
  a.values = p.product(p.softmax(mask ? p.causal(scaled) : scaled), split(v),
                       {.batch = {{0, 1}, {0, 1}}, .contracted = {{3}, {2}}});
  a.output = p.linear(p.reshape(p.transpose(a.values, {0, 2, 1, 3}), {b, s, width}), width);
  return a;
}

}  // namespace llmperf::program
