#include "mapper/tile/op_problem.h"

#include <algorithm>
#include <cmath>

#include "base/integer.h"
#include "base/match.h"

namespace llmperf::mapper::tile {
namespace {

GemmProblem product(const graph::Gemm& g, const cost::Work& work) {
  GemmProblem p;
  p.m = g.m;
  p.n = g.n;
  p.k = g.k;
  p.batch = g.batch;
  // Experts, or heads: each distinct matrix meets its share of the rows; its gradient is of that share.
  if (g.weight_matrices > 1) {
    p.batch = static_cast<std::int64_t>(std::ceil(g.weight_matrices));
    std::int64_t& rows = g.weights ? p.m : p.k;
    rows = (rows * g.batch + p.batch - 1) / p.batch;
  } else if (g.weights) {  // one matrix for the whole batch
    p.m *= p.batch;
    p.batch = 1;
  }
  const double second = d(p.batch) * d(p.k) * d(p.n);
  const auto local = [&](char operand) { return g.tiles.local.find(operand) != std::string_view::npos; };
  p.a_local = local('a');
  p.b_local = local('b');
  p.c_local = local('c');
  p.a_bytes = bytes_per_element(g.activation);
  p.b_bytes = g.weights          ? (work.weights - g.joined.parameters).value / second
              : g.cached_operand ? work.kv_read.value / second
                                 : p.a_bytes;
  const double products = d(p.batch) * d(p.m) * d(p.n);
  p.results = g.joined.results;
  p.c_bytes = (work.activations_written + work.kv_written).value / (products * p.results);
  p.finish_bytes = g.joined.reads * p.a_bytes;
  if (g.accumulated_bits > 0) p.finish_bytes += p.c_bytes;  // what they are added to
  p.finish_ops = cost::joined_output_flops(g.joined) + (g.bias ? 1 : 0);
  p.prepare_ops = cost::joined_input_flops(g.joined);
  const double dequant = g.weights          ? g.weights->dequant_flops
                         : g.cached_operand ? cost::cache_dequant_flops(g.cached, g.activation)
                                            : 0;
  if (dequant > 0) {
    // One operand is prepared; what the other needs is charged to the results.
    p.finish_ops += p.prepare_ops * d(p.k) / d(p.n);
    p.prepare_ops = dequant;
    p.prepares_b = true;
  }
  return p;
}

// A convolution is a product with every filter's inputs side by side, of which each comes from memory once and from a
// neighbour's load for all other taps.
GemmProblem product(const graph::Convolution& c, const cost::Work& work) {
  GemmProblem p;
  p.m = c.positions;
  p.n = c.outputs;
  p.k = c.inputs * c.taps;
  p.a_bytes = work.activations_read.value / (d(p.m) * d(p.k));
  p.b_bytes = work.weights.value / (d(p.n) * d(p.k));
  p.c_bytes = work.activations_written.value / (d(p.m) * d(p.n));
  p.finish_ops = c.bias ? 1 : 0;
  return p;
}

// Of the vector unit, to add an element of a mask to a score: it is loaded, scaled and added.
constexpr double kMaskFlops = 3;

AttentionProblem attention(const graph::Attention& a, bool masked) {
  AttentionProblem p;
  p.sequences = a.sequences;
  p.kv_heads = a.kv_heads;
  p.group = std::max<std::int64_t>(1, a.heads / a.kv_heads);
  p.queries = std::max<std::int64_t>(1, a.q_tokens / a.query_ranks);
  const std::int64_t keys = a.keys > 0 ? a.keys : a.context + a.q_tokens;
  p.keys = std::max<std::int64_t>(1, keys / a.key_ranks);
  p.causal = a.keys == 0 && a.query_ranks == 1 && a.key_ranks == 1 && a.q_tokens > 1 && !a.window && a.pool == 1;
  if (!p.causal && a.keys == 0) {
    // A window, or a share of the sequence: as many scores without a mask.
    const double pairs = cost::visible_pairs(a) / d(a.query_ranks) / d(a.key_ranks);
    p.keys = std::max<std::int64_t>(1, std::llround(pairs / d(p.queries)));
  }
  p.qk_dim = a.qk_dim;
  p.v_dim = std::max<std::int64_t>(1, a.v_dim);  // scores alone: their sums over heads
  p.q_bytes = p.o_bytes = bytes_per_element(a.activation);
  p.k_bytes = bytes_per_element(a.cached.keys);
  p.v_bytes = a.shared_kv ? 0 : bytes_per_element(a.cached.values);
  p.softmax_ops = cost::kSoftmaxFlops + (a.softcap ? 1 : 0);
  if (p.causal && masked) {
    p.causal = false;
    p.softmax_ops += kMaskFlops;
  }
  return p;
}

// Whether the activations of so few rows stay in the tiles' memory from op to op.
bool stay(std::int64_t rows, const hardware::KernelChoices* choices) { return choices && rows <= choices->near_rows; }

// Anything else is elements that stream past the vector units.
VectorProblem stream(std::int64_t rows, std::int64_t width, double shared_bytes, bool row_wise, cost::Work work,
                     bool stays = false) {
  if (stays) work.activations_read = work.activations_written = {};
  VectorProblem p;
  p.rows = std::max<std::int64_t>(1, rows);
  p.width = std::max<std::int64_t>(1, width);
  const double elements = d(p.rows) * d(p.width);
  p.shared_bytes = shared_bytes / d(p.width);
  p.in_bytes = std::max(0.0, (work.weights + work.activations_read + work.kv_read).value - shared_bytes) / elements;
  p.out_bytes = (work.activations_written + work.kv_written).value / elements;
  p.ops = work.vector.value / elements;
  p.products = work.matrix.value / elements;
  p.row_wise = row_wise;
  return p;
}

}  // namespace

std::optional<Problem> problem_of(const graph::Op& op, const cost::Work& work, const hardware::KernelChoices* choices) {
  if (op.place != graph::Place::device) return std::nullopt;
  using Found = std::optional<Problem>;
  return match(
      op.body,
      [&](const graph::Gemm& g) -> Found {
        GemmProblem p = product(g, work);
        if (choices && choices->fp16_accumulate) p.sum_bytes = 2;
        if (g.weights && stay(p.m * p.batch, choices)) {
          p.a_local = true;
          p.c_local = g.joined.cached == 0;  // keys and values go to the cache, which is in the DRAM
        }
        return p;
      },
      [&](const graph::Convolution& c) -> Found { return product(c, work); },
      [&](const graph::Attention& a) -> Found {
        if (a.backward) return std::nullopt;  // five products, of which no mapping is known
        return attention(a, choices && choices->masked_attention);
      },
      [&](const graph::Vector& v) -> Found {
        return stream(v.rows, v.width, v.parameters.value, graph::vector_op(v.kind).is(graph::kByRow), work,
                      stay(v.rows, choices));
      },
      [&](const graph::Gather& g) -> Found { return stream(g.rows, g.width, 0, false, work); },
      [&](const graph::Copy& c) -> Found {
        return stream(1, std::llround(std::max(c.read_elements, c.write_elements)), 0, false, work);
      },
      [&](const graph::Scan& s) -> Found {
        return stream(s.sequences * s.tokens, s.heads * s.value_dim, 0, false, work);
      },
      [](const graph::Transfer&) -> Found { return std::nullopt; },
      [](const graph::Collective&) -> Found { return std::nullopt; },
      [](const graph::Overhead&) -> Found { return std::nullopt; });
}

}  // namespace llmperf::mapper::tile
