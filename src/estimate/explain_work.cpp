// The formulas of cost/work.cpp as text: one function per kind of op (products: explain_gemm.cpp), one case per number.
// Factors that an op does not have (a window, a second format) are left out of its formula.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/number.h"
#include "estimate/explain_formula.h"

namespace llmperf::estimate {
namespace {

// ---- Attention

Explanation visible_pairs(const graph::Attention& a) {
  Explanation x{.path = "pairs"};
  let(x, "q", a.q_tokens, "new tokens of a sequence");
  let(x, "context", a.context, "tokens cached before them");
  if (!a.window) {
    x.formula = "q * context + q * (q + 1) / 2";
    x.notes.push_back("query i sees the cached tokens and the new ones up to itself; masked pairs are skipped");
    return solved(x);
  }
  Explanation growing{.path = "growing"};
  let(growing, "q", a.q_tokens, "new tokens of a sequence");
  let(growing, "window", *a.window, "keys a query may see, itself included");
  let(growing, "context", a.context, "tokens cached before them");
  growing.formula = "min(q, max(0, window - context))";
  let(x, "window", *a.window, "keys a query may see, itself included");
  let(x, solved(growing), "queries that come before the window is full");
  x.formula = "growing * context + growing * (growing + 1) / 2 + (q - growing) * window";
  return solved(x);
}

Explanation keys_of(const graph::Attention& a) {
  Explanation x{.path = "keys"};
  const std::int64_t tile = a.query_tile > 0 ? std::min(a.query_tile, a.q_tokens) : a.q_tokens;
  let(x, "context", a.context, "tokens cached before the new ones");
  let(x, "q", a.q_tokens, "new tokens of a sequence");
  if (tile == a.q_tokens) {
    x.formula = "context + q";
    if (a.window) {
      let(x, "window", *a.window, "keys a query may see, itself included");
      x.formula += " - max(0, context + 1 - window)";
    }
    x.notes.push_back("keys and values are read once for all queries that share them");
    return solved(x);
  }
  let(x, "tile", tile, "queries that share one pass over keys and values");
  let(x, "tiles", (a.q_tokens + tile - 1) / tile, "passes: q / tile, rounded up");
  if (!a.window) {
    x.formula = "tiles * context + tile * tiles * (tiles - 1) / 2 + q";
    return solved(x);
  }
  x.variables.clear();
  x.formula = let(x, "keys_read", graph::keys_read(a), "keys that a tile of queries sees, summed over the tiles");
  x.notes.push_back(fmt::format("{} queries in tiles of {}, a window of {}", a.q_tokens, tile, *a.window));
  return solved(x);
}

std::string formula(const graph::Attention& a, Metric metric, const FormulaOf&, Explanation& x) {
  const auto heads = [&] { return let(x, "heads", a.heads, "query heads"); };
  const auto sequences = [&] { return let(x, "sequences", a.sequences, "sequences of the step"); };
  const auto qk_dim = [&] { return let(x, "qk_dim", a.qk_dim, "width of a query and a key head"); };
  const auto v_dim = [&] { return let(x, "v_dim", a.v_dim, "width of a value head"); };
  const auto queries = [&] {
    return sequences() + " * " + let(x, "q", a.q_tokens, "new tokens of a sequence") + " * " + heads();
  };
  const auto pairs = [&] {
    return let(x, visible_pairs(a), "(query, key) pairs of one sequence and head that are not masked");
  };
  // " / query_ranks", " / key_ranks" where devices share the sequence.
  const auto shared = [&](std::string_view name, std::int64_t ranks, std::string_view meaning) {
    return ranks > 1 ? " / " + let(x, name, ranks, meaning) : std::string();
  };
  const auto query_share = [&] { return shared("query_ranks", a.query_ranks, "devices that share the queries"); };
  const auto key_share = [&] { return shared("key_ranks", a.key_ranks, "devices that share the keys"); };
  switch (metric) {
    case Metric::matrix_flops:
      x.notes.push_back("scores and weighted sum: a multiply and an add per element of a key and of a value");
      pairs(), qk_dim(), v_dim(), heads(), sequences();
      return "2 * pairs * (qk_dim + v_dim) * heads * sequences" + query_share() + key_share();
    case Metric::vector_flops: {
      pairs(), heads(), sequences();
      let(x, "softmax_flops", cost::kSoftmaxFlops, "maximum, subtract, exponential, sum, divide");
      std::string text = a.softcap ? "pairs * heads * sequences * (softmax_flops + " +
                                         let(x, "softcap_flops", 1.0, "tanh on each score") + ")"
                                   : "pairs * heads * sequences * softmax_flops";
      text += query_share() + key_share();
      const double of_keys = cost::cache_dequant_flops(a.cached.keys, a.activation);
      const double of_values = a.shared_kv ? of_keys : cost::cache_dequant_flops(a.cached.values, a.activation);
      if (of_keys + of_values > 0) {
        let(x, keys_of(a), "keys read per sequence and KV head");
        let(x, "kv_heads", a.kv_heads, "key and value heads");
        qk_dim();
        if (!a.shared_kv) v_dim();
        let(x, "cache_dequant_flops", 2.0, "operations that bring a cached value to the activation type");
        const std::string_view widths = a.shared_kv || of_values == 0 ? "qk_dim"
                                        : of_keys == 0                ? "v_dim"
                                                                      : "(qk_dim + v_dim)";
        text += fmt::format(" + sequences * keys * kv_heads * {} * cache_dequant_flops{}", widths, key_share());
      }
      return text;
    }
    case Metric::activation_read_bytes:
      return queries() + " * " + qk_dim() + " * " + element_bytes(x, a.activation) + query_share();
    case Metric::activation_written_bytes:
      return queries() + " * " + v_dim() + " * " + element_bytes(x, a.activation) + query_share();
    case Metric::kv_read_bytes: {
      sequences();
      let(x, keys_of(a), "keys read per sequence and KV head");
      let(x, "kv_heads", a.kv_heads, "key and value heads");
      qk_dim();
      if (!a.shared_kv) v_dim();
      if (a.shared_kv) x.notes.push_back("the values are part of the keys: both are the cached latent");
      if (!a.shared_kv && a.cached.keys != a.cached.values) {
        return fmt::format("sequences * keys * kv_heads * (qk_dim * {} + v_dim * {})",
                           cached_bytes(x, a.cached.keys, "key_element_bytes"),
                           cached_bytes(x, a.cached.values, "value_element_bytes")) +
               key_share();
      }
      return fmt::format("sequences * keys * kv_heads * {} * {}", a.shared_kv ? "qk_dim" : "(qk_dim + v_dim)",
                         cached_bytes(x, a.cached.keys)) +
             key_share();
    }
    default: return "";
  }
}

// ---- Element-wise ops, gathers and copies

std::string formula(const graph::Convolution& c, Metric metric, const FormulaOf&, Explanation& x) {
  let(x, "positions", c.positions, "pixels of the result, over all images");
  let(x, "outputs", c.outputs, "channels of the result");
  let(x, "inputs", c.inputs, "channels of the input");
  let(x, "taps", c.taps, "elements of a filter");
  switch (metric) {
    case Metric::matrix_flops: return "2 * positions * outputs * inputs * taps";
    case Metric::vector_flops: return c.bias ? "positions * outputs" : "";
    case Metric::weight_bytes: return stored_bytes(x, *c.weights, "outputs", "inputs * taps");
    case Metric::activation_read_bytes:
      let(x, "input_positions", c.input_positions, "pixels of the input, over all images");
      return "input_positions * inputs * " + element_bytes(x, c.activation);
    case Metric::activation_written_bytes: {
      std::string pixels = "positions * outputs * ";
      if (c.stored != 1) {
        let(x, "stored", c.stored, "pixels of the result per position");
        pixels += "stored * ";
      }
      return pixels + element_bytes(x, c.activation);
    }
    default: return "";
  }
}

std::string formula(const graph::Vector& v, Metric metric, const FormulaOf& c, Explanation& x) {
  let(x, "rows", v.rows, "rows of the tensor");
  let(x, "width", v.width, "elements of a row");
  switch (metric) {
    case Metric::vector_flops:
      let(x, "flops_per_element", cost::vector_flops_per_element(v.kind), "operations on an element");
      return "rows * width * flops_per_element";
    case Metric::activation_read_bytes:
      let(x, "reads", v.reads, "tensors of this shape read");
      return "reads * rows * width * " + element_bytes(x, v.activation);
    case Metric::activation_written_bytes:
      let(x, "writes", v.writes, "tensors of this shape written");
      return "writes * rows * width * " + element_bytes(x, v.activation);
    case Metric::weight_bytes: {
      if (v.parameters.value == 0) return "";
      const double bits = c.execution().weights.vector_bits;
      let(x, "parameters", v.parameters.value * 8 / bits, "weights and biases of the op");
      return "parameters * " + let(x, "bits", bits, "bits stored per weight") + " / 8";
    }
    default: return "";
  }
}

std::string formula(const graph::Gather& g, Metric metric, const FormulaOf&, Explanation& x) {
  let(x, "rows", g.rows, "rows picked from the table");
  let(x, "width", g.width, "elements of a row");
  switch (metric) {
    case Metric::vector_flops: return g.table->dequant_flops > 0 ? "rows * width * " + dequant(x, *g.table) : "";
    case Metric::weight_bytes: return "rows * " + stored_bytes(x, *g.table, "1", "width");
    case Metric::activation_written_bytes: return "rows * width * " + element_bytes(x, g.activation);
    default: return "";
  }
}

// What a copy moves as a product of named factors; falls back to the count.
std::string elements(const FormulaOf& c, double count, bool written, Explanation& x) {
  const std::optional<model::Layer> layer = c.layer();
  const graph::SequenceGroup& g = c.group;
  std::string text;
  if (layer && c.op.name == "dispatch" && layer->feed_forward.experts) {
    let(x, "tokens", g.count * g.new_tokens, "tokens of the step");
    let(x, "experts_per_token", layer->feed_forward.experts->per_token, "experts a token is sent to");
    let(x, "hidden", c.execution().model->hidden, "width of the residual stream");
    text = "tokens * experts_per_token * hidden";
  } else if (layer) {
    const model::Attention& a = layer->attention;
    const std::int64_t total = g.context + g.new_tokens;
    const auto per_token = [&] {
      return let(x, "values_per_token",
                 a.latent ? a.latent->kv_lora_rank + a.latent->rope_dim : a.kv_heads * (a.head_dim + a.v_head_dim),
                 "values a token keeps in the cache of a layer");
    };
    const auto sequences = [&] { return let(x, "sequences", g.count, "sequences of the step"); };
    if (c.op.name == "kv_write") {
      text = let(x, "tokens", g.count * g.new_tokens, "tokens of the step") + " * " + per_token();
    } else if (c.op.name == "kv_concat") {
      const std::int64_t old = std::min(g.context, c.execution().window(a).value_or(g.context));
      text =
          sequences() + " * " + let(x, "cached_tokens", old, "tokens in the cache of a sequence") + " * " + per_token();
    } else if (c.op.name == "repeat_kv") {
      const std::optional<std::int64_t> window = c.execution().window(a);
      const std::int64_t keys = window ? std::min(total, *window - 1 + g.new_tokens) : total;
      text =
          sequences() + " * " + let(x, "keys", keys, "keys the new tokens of a sequence may see") + " * " +
          (written ? let(x, "heads", a.heads, "query heads") : let(x, "kv_heads", a.kv_heads, "key and value heads")) +
          " * (" + let(x, "qk_dim", a.head_dim, "width of a key head") + " + " +
          let(x, "v_dim", a.v_head_dim, "width of a value head") + ")";
    }
  }
  if (!text.empty() && evaluate(text, x.variables) == count) return text;
  return written ? let(x, "write_elements", count, "elements written")
                 : let(x, "read_elements", count, "elements read");
}

std::string formula(const graph::Copy& copy, Metric metric, const FormulaOf& c, Explanation& x) {
  const auto bytes_of = [&](const model::ElementFormat& format, bool cached) {
    return cached ? cached_bytes(x, format)
                  : let(x, "element_bytes", bytes_per_element(format),
                        fmt::format("bytes of an activation ({})", format.name));
  };
  const auto read = [&] {
    return elements(c, copy.read_elements, false, x) + " * " + bytes_of(copy.from, copy.from_cache);
  };
  const auto write = [&] {
    return elements(c, copy.write_elements, true, x) + " * " + bytes_of(copy.to, copy.to_cache);
  };
  switch (metric) {
    case Metric::vector_flops:
      if (copy.from.bits == copy.to.bits) return "";
      x.notes.push_back(
          fmt::format("converting {} to {}: an element is scaled and rounded", copy.from.name, copy.to.name));
      return "2 * " + elements(c, copy.write_elements, true, x);
    case Metric::activation_read_bytes: return copy.from_cache ? "" : read();
    case Metric::kv_read_bytes: return copy.from_cache ? read() : "";
    case Metric::activation_written_bytes: return copy.to_cache ? "" : write();
    case Metric::kv_written_bytes: return copy.to_cache ? write() : "";
    default: return "";
  }
}

std::string formula(const graph::Transfer& t, Metric metric, const FormulaOf&, Explanation& x) {
  if (metric != Metric::network_bytes) return "";
  if (t.weights) {
    let(x, "n", t.rows, "outputs of a matrix that is kept on the host");
    let(x, "k", t.width, "inputs");
    let(x, "weight_matrices", t.weight_matrices, "different matrices (experts the tokens reach)");
    return "weight_matrices * " + stored_bytes(x, *t.weights, "n", "k");
  }
  let(x, "rows", t.rows, "rows sent");
  let(x, "width", t.width, "elements of a row");
  return "rows * width * " +
         let(x, "element_bytes", bytes_per_element(t.element), fmt::format("bytes of an element ({})", t.element.name));
}

std::string formula(const graph::Collective& e, Metric metric, const FormulaOf&, Explanation& x) {
  if (metric != Metric::network_bytes) return "";
  let(x, "rows", e.rows, "rows of the tensor");
  let(x, "width", e.width, "elements of a row");
  let(x, "element_bytes", bytes_per_element(e.element), fmt::format("bytes of an element ({})", e.element.name));
  if (e.kind != graph::CollectiveKind::send && e.kind != graph::CollectiveKind::broadcast) {
    let(x, "ranks", e.ranks, fmt::format("devices of the {} axis", name(e.axis)));
  }
  if (e.routing.experts > 0) {
    const double devices = static_cast<double>(e.ranks) * graph::reached(e.routing, e.routing.experts / e.ranks);
    x.notes.push_back(fmt::format(
        "rows: {} tokens, each once for every device that has one of its {} experts of {}{}: {} devices on average",
        format_significant(e.rows / devices), e.routing.per_token, e.routing.experts,
        e.routing.groups > 1 ? fmt::format(", in {} of {} groups", e.routing.groups_per_token, e.routing.groups) : "",
        format_significant(devices)));
  }
  x.notes.push_back(fmt::format("what one device sends in a bandwidth-optimal {}", name(e.kind)));
  switch (e.kind) {
    case graph::CollectiveKind::all_reduce: return "2 * (ranks - 1) / ranks * rows * width * element_bytes";
    case graph::CollectiveKind::send:
    case graph::CollectiveKind::broadcast: return "rows * width * element_bytes";
    case graph::CollectiveKind::ring_pass: return "(ranks - 1) * rows * width * element_bytes";
    default: return "(ranks - 1) / ranks * rows * width * element_bytes";
  }
}

std::string formula(const graph::Overhead&, Metric, const FormulaOf&, Explanation&) { return ""; }

// A sum needs parentheses before it is multiplied.
bool is_sum(std::string_view text) {
  int depth = 0;
  for (const char c : text) {
    depth += (c == '(') - (c == ')');
    if (c == '+' && depth == 0) return true;
  }
  return false;
}

std::string_view nothing(Metric metric) {
  switch (metric) {
    case Metric::matrix_flops: return "this op multiplies no matrices";
    case Metric::vector_flops: return "this op has no element-wise work";
    case Metric::weight_bytes: return "this op reads no weights";
    case Metric::activation_read_bytes: return "this op reads no activations";
    case Metric::activation_written_bytes: return "this op writes no activations";
    case Metric::kv_read_bytes: return "this op does not read the KV cache";
    case Metric::kv_written_bytes: return "this op does not write the KV cache";
    case Metric::network_bytes: return "this op sends nothing over a link";
    default: return "";
  }
}

}  // namespace

void explain_work(const Estimator& estimator, const graph::Op& op, const graph::SequenceGroup& group, Metric metric,
                  Explanation& x) {
  const FormulaOf context{estimator, op, group};
  const std::string text = std::visit([&](const auto& body) { return formula(body, metric, context, x); }, op.body);
  if (text.empty()) {
    x.variables.clear();
    x.formula = "0";
    x.notes.emplace_back(nothing(metric));
    return;
  }
  const std::string count = let(x, "count", op.count,
                                op.layer_kind < 0 || context.execution().weights.gguf ? "executions in a step"
                                : estimator.stages().size() > 1 ? "layers of this kind, for every micro-batch"
                                                                : "layers of this kind");
  x.formula = is_sum(text) ? "(" + text + ") * " + count : text + " * " + count;
}

}  // namespace llmperf::estimate
