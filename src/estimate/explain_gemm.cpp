// The formulas of matrix products, and of what is joined to them. Factors that a product does not have are left out.
#include <fmt/format.h>

#include "base/number.h"
#include "estimate/explain_formula.h"

namespace llmperf::estimate {
namespace {

double d(std::int64_t x) { return static_cast<double>(x); }

void shape(Explanation& x, const graph::Gemm& g) {
  let(x, "m", g.m, "rows of the input");
  let(x, "n", g.n, "columns of the result");
  let(x, "k", g.k, "length of the inner product");
}
std::string batch(Explanation& x, const graph::Gemm& g) { return let(x, "batch", g.batch, "independent products"); }

// "weight_matrices * " when more than one matrix, or an expected fraction of one, is read.
std::string matrices(Explanation& x, const graph::Gemm& g, const FormulaOf& c) {
  if (g.weight_matrices == 1) return "";
  std::string meaning = "different weight matrices, one per head";
  if (g.batch == 1) {
    meaning = "different experts the tokens reach";
    if (const auto layer = c.layer(); layer && layer->feed_forward.experts) {
      const model::Experts& e = *layer->feed_forward.experts;
      const graph::Plan& plan = c.execution().plan;
      const std::string share = plan.expert > 1 ? fmt::format(" / {}", plan.expert) : "";
      meaning += fmt::format(", expected: {0} * (1 - (1 - {1} / {0})^{2}){3}", e.count, e.per_token,
                             g.m * plan.expert / e.per_token, share);
    }
  }
  return let(x, "weight_matrices", g.weight_matrices, meaning) + " * ";
}

std::string second_operand(Explanation& x, const graph::Gemm& g) {
  if (g.weights) return stored_bytes(x, *g.weights, "n", "k");
  return "n * k * " + (g.cached_operand ? cached_bytes(x, g.cached) : element_bytes(x, g.activation));
}

// "ceil(…) * ", how often an operand crosses the memory bus because neither fits in the cache; empty for once.
std::string reads(Explanation& x, const graph::Gemm& g, const FormulaOf& c, bool second) {
  const cost::Cache& cache = c.estimator.roofline(c.op.place).cache();
  if (!cache) return "";
  const bool grouped = g.weights && g.batch == 1 && g.weight_matrices > 1;
  const std::string rows = grouped ? "m / weight_matrices" : "m";
  const double row_count = grouped ? d(g.m) / g.weight_matrices : d(g.m);
  shape(x, g);
  matrices(x, g, c);
  element_bytes(x, g.activation);
  let(x, "cache_bytes", cache->value, "capacity of the on-chip cache");
  const std::string first = rows + " * k * element_bytes";
  const std::string other = second_operand(x, g);
  const auto bytes = [&](const std::string& text) { return evaluate(text, x.variables); };
  const cost::OperandReads actual =
      cost::gemm_reads(row_count, d(g.n), bytes(first), bytes(other), bytes_per_element(g.activation), cache);
  if ((second ? actual.second : actual.first) == 1) return "";

  const std::string side =
      cache->value < bytes_per_element(g.activation) ? "1" : "floor(sqrt(cache_bytes / element_bytes))";
  const std::string size = cache->value < 1 ? "1" : "cache_bytes";
  struct Schedule {
    std::string first, second, note;
  };
  const Schedule schedules[] = {
      {fmt::format("ceil(n / {})", side), fmt::format("ceil({} / {})", rows, side),
       "neither operand fits in the cache: the result is computed in square tiles as large as the cache"},
      {"1", fmt::format("ceil({} / {})", first, size),
       "neither operand fits in the cache: the second is read once per slab of rows of the first"},
      {fmt::format("ceil({} / {})", other, size), "1",
       "neither operand fits in the cache: the first is read once per slab of columns of the second"},
  };
  for (const Schedule& s : schedules) {
    if (bytes(s.first) != actual.first || bytes(s.second) != actual.second) continue;
    x.notes.push_back(s.note);
    return (second ? s.second : s.first) + " * ";
  }
  return "";
}

// What is joined to the product (graph::Joined).
void joined_flops(Explanation& x, const graph::Gemm& g, std::string& text) {
  const auto add = [&](const std::string& term) { text += (text.empty() ? "" : " + ") + term; };
  if (g.joined.input) {
    add(let(x, "input_flops", cost::joined_input_flops(g.joined),
            fmt::format("operations per element of the input: {}", graph::name(*g.joined.input))) +
        " * m * k");
  }
  if (g.joined.output) {
    add(let(x, "output_flops", cost::joined_output_flops(g.joined),
            fmt::format("operations per result: {}, on {} of the results", graph::name(*g.joined.output),
                        format_share(g.joined.share))) +
        " * m * n * " + batch(x, g));
  }
  if (g.joined.cached > 0 && g.cached.bits != bits(g.activation)) {
    add("2 * m * " + let(x, "cached_columns", g.joined.cached, "columns of the result that are keys and values"));
  }
}
std::string cached_columns(Explanation& x, const graph::Gemm& g) {
  return let(x, "cached_columns", g.joined.cached, "columns of the result that are keys and values");
}
// Elements.
std::string written(Explanation& x, const graph::Gemm& g) {
  std::string text = "m * n * " + batch(x, g);
  if (g.joined.results != 1) text += " * " + let(x, "stored", g.joined.results, "elements stored per result");
  return g.joined.cached > 0 ? "(" + text + " - m * " + cached_columns(x, g) + ")" : text;
}

}  // namespace

std::string element_bytes(Explanation& x, Dtype dtype) {
  return let(x, "element_bytes", bytes_per_element(dtype), fmt::format("bytes of an activation ({})", name(dtype)));
}
std::string cached_bytes(Explanation& x, const model::ElementFormat& format, std::string_view variable) {
  return let(x, variable, bytes_per_element(format), fmt::format("bytes of a cached value ({})", format.name));
}
std::string dequant(Explanation& x, const model::StoredFormat& format) {
  return let(x, "dequant_flops", format.dequant_flops,
             fmt::format("operations that turn a stored weight into {}", name(format.compute)));
}

std::string formula(const graph::Gemm& g, Metric metric, const FormulaOf& c, Explanation& x) {
  shape(x, g);
  switch (metric) {
    case Metric::matrix_flops: return "2 * m * n * k * " + batch(x, g);
    case Metric::vector_flops: {
      std::string text;
      if (g.weights && g.weights->dequant_flops > 0)
        text = dequant(x, *g.weights) + " * " + matrices(x, g, c) + "n * k";
      if (const double each = cost::cache_dequant_flops(g.cached, g.activation); g.cached_operand && each > 0)
        text = let(x, "cache_dequant_flops", each, "operations that bring a cached value to the activation type") +
               " * n * k * " + batch(x, g);
      if (g.bias) text += (text.empty() ? "m * n * " : " + m * n * ") + batch(x, g);
      joined_flops(x, g, text);
      return text;
    }
    case Metric::weight_bytes: {
      if (!g.weights) return "";
      const std::string many = matrices(x, g, c);
      std::string text = reads(x, g, c, true) + many + second_operand(x, g);
      if (g.bias) text += " + " + many + "n * " + element_bytes(x, g.activation);
      if (g.joined.parameters.value > 0) {
        text +=
            " + " + let(x, "norm_bytes", g.joined.parameters.value, "bytes of the weights of the norm joined to it");
      }
      return text;
    }
    case Metric::activation_read_bytes: {
      std::string text = reads(x, g, c, false) + "m * k * " + batch(x, g) + " * " + element_bytes(x, g.activation);
      if (!g.weights && !g.cached_operand) text += " + " + reads(x, g, c, true) + second_operand(x, g) + " * batch";
      if (g.joined.reads > 0) {
        text += fmt::format(" + {} * m * n * batch * element_bytes",
                            let(x, "joined_reads", g.joined.reads, "elements that every result is joined with"));
      }
      return text;
    }
    case Metric::activation_written_bytes: return written(x, g) + " * " + element_bytes(x, g.activation);
    case Metric::kv_written_bytes:
      if (g.joined.cached == 0) return "";
      return "m * " + cached_columns(x, g) + " * " + cached_bytes(x, g.cached);
    case Metric::kv_read_bytes:
      if (g.weights || !g.cached_operand) return "";
      return reads(x, g, c, true) + second_operand(x, g) + " * " + batch(x, g);
    default: return "";
  }
}

}  // namespace llmperf::estimate
