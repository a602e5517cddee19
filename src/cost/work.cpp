#include "cost/work.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/number.h"
#include "cost/collective.h"
#include "cost/formulas.h"
#include "graph/keys_read.h"
#include "model/stored_bytes.h"

namespace llmperf::cost {
namespace {

// ---- What several ops have

template <class N>
N element_bytes(Dtype dtype) {
  return Let<N>()("element_bytes", bytes_per_element(dtype), "bytes of an activation ({})", dtype);
}
template <class N>
N element_bytes(const model::ElementFormat& format) {
  return Let<N>()("element_bytes", bytes_per_element(format), "bytes of an activation ({})", format.name);
}
template <class N>
N cached_bytes(const model::ElementFormat& format, std::string_view name = "kv_element_bytes") {
  return Let<N>()(name, bytes_per_element(format), "bytes of a cached value ({})", format.name);
}
template <class N>
N dequantisation(const model::StoredFormat& format) {
  if (format.dequant_flops == 0) return 0;
  return Let<N>()("dequant_flops", format.dequant_flops, "operations that turn a stored weight into {}",
                  format.compute);
}

// ---- Products

template <class N>
struct Reads {
  N first = 1;   // of [m, k]
  N second = 1;  // of [k, n]
};

// The best of three schedules where neither operand fits.
template <class N>
Reads<N> reads_of_operands(const N& m, const N& n, const N& first_bytes, const N& second_bytes, const N& element,
                           const Cache& cache) {
  if (!cache || std::min(value_of(first_bytes), value_of(second_bytes)) <= cache->value) return {};
  using std::ceil, std::floor, std::sqrt;
  const Let<N> let;
  const N capacity = let("cache_bytes", cache->value, "capacity of the on-chip cache");
  const N slab = cache->value < 1 ? N(1) : capacity;
  const N side = cache->value < value_of(element) ? N(1) : N(floor(sqrt(capacity / element)));
  const Reads<N> schedules[] = {
      {ceil(n / side), ceil(m / side)}, {N(1), ceil(first_bytes / slab)}, {ceil(second_bytes / slab), N(1)}};
  constexpr std::string_view kNotes[] = {
      "neither operand fits in the cache: the result is computed in square tiles as large as the cache",
      "neither operand fits in the cache: the second is read once per slab of rows of the first",
      "neither operand fits in the cache: the first is read once per slab of columns of the second"};
  const auto bytes = [&](const Reads<N>& r) {
    return value_of(r.first) * value_of(first_bytes) + value_of(r.second) * value_of(second_bytes);
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < std::size(schedules); ++i) {
    if (bytes(schedules[i]) < bytes(schedules[best])) best = i;
  }
  const auto noted = [&](const N& times) { return value_of(times) == 1 ? N(1) : let.noted(times, kNotes[best]); };
  return {noted(schedules[best].first), noted(schedules[best].second)};
}

template <class N>
Terms<N> work(const graph::Gemm& g, const Cache& cache) {
  const Let<N> let;
  Terms<N> w;
  w.matrix_dtype = g.operands ? *g.operands : g.weights ? g.weights->compute : g.activation;
  if (g.weights) {
    w.sums = sums_of(*g.weights);
  } else if (g.cached_operand && g.activation == Dtype::fp16) {
    w.sums = Sums::narrow;
  }
  const N m = let("m", g.m, "rows of the input");
  const N n = let("n", g.n, "columns of the result");
  const N k = let("k", g.k, "length of the inner product");
  const N batch = let("batch", g.batch, "independent products");
  const N element = element_bytes<N>(g.activation);
  const N cached_element = cached_bytes<N>(g.cached);
  const N outputs = m * n * batch;
  w.matrix = 2 * m * n * k * batch;

  // Rows per distinct weight matrix: a grouped GEMM (experts) multiplies each matrix with its own share of the rows.
  const bool experts = g.weights && g.batch == 1;
  const N matrices = !g.weights ? batch
                                : let.factor("weight_matrices", g.weight_matrices,
                                             experts ? "different experts the tokens reach"
                                                     : "different weight matrices, one per head");
  const N rows = experts && g.weight_matrices > 1 ? m / matrices : m;
  const N second =
      g.weights ? model::stored_bytes(*g.weights, n, k) : n * k * (g.cached_operand ? cached_element : element);
  const Reads<N> reads = reads_of_operands<N>(rows, n, rows * k * element, second, element, cache);
  w.activations_read = reads.first * m * k * batch * element;
  const N columns = g.joined.cached > 0
                        ? let("cached_columns", g.joined.cached, "columns of the result that are keys and values")
                        : N(0);
  w.activations_written =
      (outputs * let.factor("stored", g.joined.results, "elements stored per result") - m * columns) * element;
  if (g.accumulated_bits > 0) {
    const N results = g.weights ? N(1) : let("results", g.weight_matrices, "products whose results are added up");
    w.activations_written =
        outputs * results * let("accumulated_bits", g.accumulated_bits, "bits of a sum in memory") / 8;
    w.activations_read = w.activations_read + w.activations_written;
  }
  if (g.weights) {
    w.weights = reads.second * (matrices * second);
    w.vector = dequantisation<N>(*g.weights) * matrices * (n * k);
  } else if (g.cached_operand) {
    w.kv_read = reads.second * second * batch;
    if (const double each = cache_dequant_flops(g.cached, g.activation); each > 0) {
      w.vector = let("cache_dequant_flops", each, "operations that bring a cached value to the activation type") * n *
                 k * batch;
    }
  } else {
    w.activations_read = w.activations_read + reads.second * second * batch;
  }
  if (g.bias) {
    w.vector = w.vector + outputs;
    w.weights = w.weights + matrices * n * element;
  }
  if (!g.joined.any()) return w;
  if (g.joined.input) {
    w.vector = w.vector + let("input_flops", joined_input_flops(g.joined), "operations per element of the input: {}",
                              [&] { return graph::name(*g.joined.input); }) *
                              m * k;
  }
  if (g.joined.output) {
    const auto share = [&] { return format_share(g.joined.share); };
    w.vector =
        w.vector + let(
                       "output_flops", joined_output_flops(g.joined), "operations per result: {}, on {} of the results",
                       [&] { return graph::name(*g.joined.output); }, share) *
                       outputs;
  }
  if (g.joined.cached > 0 && g.cached.bits != bits(g.activation)) w.vector = w.vector + 2 * m * columns;
  if (g.joined.reads > 0) {
    w.activations_read =
        w.activations_read +
        let("joined_reads", g.joined.reads, "elements that every result is joined with") * outputs * element;
  }
  w.kv_written = m * columns * cached_element;
  if (g.joined.parameters.value > 0) {
    w.weights =
        w.weights + let("norm_bytes", g.joined.parameters.value, "bytes of the weights of the norm joined to it");
  }
  return w;
}

// ---- Attention

// Of cached keys and values, and of bringing them to the activation type.
template <class N>
void read_cache(const graph::Attention& a, const N& keys, const N& qk_dim, const N& values_width, const N& key_ranks,
                Terms<N>& w) {
  const Let<N> let;
  const bool alike = a.shared_kv || a.cached.keys == a.cached.values;
  w.kv_read = alike ? keys * (qk_dim + values_width) * cached_bytes<N>(a.cached.keys) / key_ranks
                    : keys *
                          (qk_dim * cached_bytes<N>(a.cached.keys, "key_element_bytes") +
                           values_width * cached_bytes<N>(a.cached.values, "value_element_bytes")) /
                          key_ranks;
  if (a.shared_kv) w.kv_read = let.noted(w.kv_read, "the values are part of the keys: both are the cached latent");
  const double of_keys = cache_dequant_flops(a.cached.keys, a.activation);
  const double of_values = cache_dequant_flops(a.cached.values, a.activation);
  if (of_keys + of_values == 0) return;
  const N width = (of_keys > 0 ? qk_dim : N(0)) + (of_values > 0 ? values_width : N(0));
  w.vector = w.vector + keys * width *
                            let("cache_dequant_flops", std::max(of_keys, of_values),
                                "operations that bring a cached value to the activation type") /
                            key_ranks;
}

template <class N>
Terms<N> work(const graph::Attention& a, const Cache&) {
  const Let<N> let;
  Terms<N> w;
  w.matrix_dtype = a.activation;
  const N sequences = let("sequences", a.sequences, "sequences of the step");
  const N heads = let("heads", a.heads, "query heads");
  const N qk_dim = let("qk_dim", a.qk_dim, "width of a query and a key head");
  const N v_dim = let("v_dim", a.v_dim, "width of a value head");
  const N query_ranks = let.factor("query_ranks", a.query_ranks, "devices that share the queries");
  const N key_ranks = let.factor("key_ranks", a.key_ranks, "devices that share the keys");
  const N element = element_bytes<N>(a.activation);
  const N pairs = let.part("pairs", graph::pairs_of_sequence<N>(a),
                           "(query, key) pairs of one sequence and head that are not masked");
  // Forward: scores and weighted sum. Backward: the scores again, and the gradients of scores, Q, K and V.
  w.matrix = a.backward ? let.noted(2 * pairs * (3 * qk_dim + 2 * v_dim) * heads * sequences / query_ranks / key_ranks,
                                    "scores again, and the gradients of scores, queries, keys and values")
                        : let.noted(2 * pairs * (qk_dim + v_dim) * heads * sequences / query_ranks / key_ranks,
                                    "scores and weighted sum: a multiply and an add per element of a key and of a "
                                    "value");
  constexpr double kScoreFlops = 3;
  const bool scores = a.v_dim == 0;
  N each = scores
               ? let("score_flops", kScoreFlops, "negative scores become 0, are weighted and added up over the heads")
               : let("softmax_flops", kSoftmaxFlops, "maximum, subtract, exponential, sum, divide");
  if (a.softcap) each = each + let("softcap_flops", 1, "tanh on each score");
  w.vector = pairs * heads * sequences * each / query_ranks / key_ranks;
  if (a.backward) w.vector = 2 * w.vector;

  // One KV head of a sequence is read once per tile of queries.
  const N keys = sequences * let.part("keys", graph::keys_of_tiles<N>(a), "keys read per sequence and KV head") *
                 let("kv_heads", a.kv_heads, "key and value heads");
  const N values_width = a.shared_kv ? N(0) : v_dim;
  if (a.keys == 0) read_cache(a, keys, qk_dim, values_width, key_ranks, w);
  const N rows = sequences * let("q", a.q_tokens, "new tokens of a sequence") * heads;
  const N queries = rows * qk_dim * element / query_ranks;
  const N results = rows * v_dim * element / query_ranks;
  const N both = keys * (qk_dim + values_width) * element / key_ranks;
  w.activations_read = a.backward ? queries + 2 * results : queries;  // backward: the result and its gradient
  w.activations_written = a.backward ? queries + both : results;
  if (a.keys > 0) w.activations_read = w.activations_read + both;
  if (scores) w.activations_written = pairs * sequences * let("score_bytes", 4, "bytes of a score, in fp32");
  return w;
}

// ---- Recurrences

// Operations on an element of a state for a new token: decay and the product with a query (3) everywhere; the delta
// rule takes what the state has for the key from the value (2 + 2), others add an outer product (2), scaled by the time
// step where there is one (1); mamba makes a decay of each element (2 more).
double operations_per_state(model::RecurrentKind kind) {
  switch (kind) {
    case model::RecurrentKind::gated_delta_net:
    case model::RecurrentKind::kimi_delta: return 7;
    case model::RecurrentKind::mamba2: return 6;
    case model::RecurrentKind::mamba: return 8;
    case model::RecurrentKind::lightning: return 5;
    case model::RecurrentKind::short_conv: return 0;
  }
  return 0;
}

// Beside queries, keys and values of a token: decays (of a head, or of each element of a key), how much of a value is
// written, time steps; of mamba, whose kernel applies it, the gate of the result.
std::int64_t gates_of(const graph::Scan& s) {
  switch (s.kind) {
    case model::RecurrentKind::gated_delta_net: return 2 * s.heads;
    case model::RecurrentKind::kimi_delta: return s.heads + s.key_heads * s.key_dim;
    case model::RecurrentKind::mamba2: return s.heads;
    case model::RecurrentKind::mamba: return 2 * s.heads * s.value_dim;
    default: return 0;
  }
}

// In chunks of C tokens, per head: scores between the tokens of a chunk from keys and queries (of the delta rule also
// from keys and keys), their product with the values, and products of [C, key_dim] with the state: what the state gives
// the chunk and what the chunk gives the state (of the delta rule also what the state has for the keys). Masked halves
// of [C, C] are multiplied and counted; the triangular system that the delta rule solves within a chunk takes less than
// these and is not counted. Work on values alone (activations, skips) is left out.
template <class N>
Terms<N> work(const graph::Scan& s, const Cache&) {
  const Let<N> let;
  Terms<N> w;
  w.matrix_dtype = s.activation;
  const bool delta = s.kind == model::RecurrentKind::gated_delta_net || s.kind == model::RecurrentKind::kimi_delta;
  const N sequences = let("sequences", s.sequences, "sequences of the step");
  const N tokens = let("tokens", s.tokens, "new tokens of a sequence");
  const N heads = let("heads", s.heads, "heads, each with a state");
  const N key_dim = let("key_dim", s.key_dim, "rows of a state");
  const N value_dim = let("value_dim", s.value_dim, "columns of a state");
  const N element = element_bytes<N>(s.activation);
  const N state = sequences * heads * key_dim * value_dim;
  const std::int64_t chunks = s.chunk > 0 ? (s.tokens + s.chunk - 1) / s.chunk : 0;
  if (chunks == 0) {
    w.vector = state * tokens *
               let("state_flops", operations_per_state(s.kind), "operations on an element of a state for a token");
  } else {
    const std::int64_t whole = s.tokens / s.chunk;
    const std::int64_t rest = s.tokens % s.chunk;
    const N squares = let("chunk_pairs", whole * s.chunk * s.chunk + rest * rest,
                          "pairs of tokens in the same chunk, masked ones among them");
    const bool grouped_scores = s.kind == model::RecurrentKind::mamba2;
    const N score_heads = grouped_scores ? let("key_heads", s.key_heads, "groups of heads that share keys") : heads;
    w.matrix = let.noted(2 * sequences * squares * (score_heads * key_dim * (delta ? 2 : 1) + heads * value_dim) +
                             2 * state * tokens * (delta ? 3 : 2),
                         "scores within chunks and their product with values, and products with the state");
    w.vector = let.noted(2 * sequences * squares * heads, "decays between the tokens of a chunk");
  }
  const N inputs = sequences * tokens *
                   (2 * let("key_heads", s.key_heads, "heads of queries and keys") * key_dim + heads * value_dim +
                    let("gates", gates_of(s), "decays, time steps and gates of a token"));
  w.activations_read = inputs * element;
  w.activations_written = sequences * tokens * heads * value_dim * element;
  if (chunks > 1) {
    const N passed = let.noted(state * let("inner_chunks", chunks - 1, "chunks that another follows") * element,
                               "states at the ends of chunks, written for the kernel of the chunks");
    w.activations_read = w.activations_read + passed;
    w.activations_written = w.activations_written + passed;
  }
  constexpr double kStateBytes = 4;
  w.kv_written = let.noted(state * kStateBytes, "states, in fp32");
  if (s.has_past) w.kv_read = w.kv_written;
  return w;
}

// ---- Everything else

template <class N>
Terms<N> work(const graph::Convolution& c, const Cache&) {
  const Let<N> let;
  Terms<N> w;
  w.matrix_dtype = c.weights->compute;
  const N positions = let("positions", c.positions, "pixels of the result, over all images");
  const N outputs = let("outputs", c.outputs, "channels of the result");
  const N inputs = let("inputs", c.inputs, "channels of the input");
  const N taps = let("taps", c.taps, "elements of a filter");
  const N element = element_bytes<N>(c.activation);
  const N met = c.padding != 0 ? positions * taps - let("padding", c.padding, "of these, taps beside the input")
                               : positions * taps;
  w.matrix = 2 * outputs * inputs * met;
  w.activations_read =
      let("input_positions", c.input_positions, "pixels of the input, over all images") * inputs * element;
  w.activations_written =
      positions * outputs * let.factor("stored", c.stored, "pixels of the result per position") * element;
  w.weights = model::stored_bytes<N>(*c.weights, outputs, inputs * taps);
  w.vector = dequantisation<N>(*c.weights) * outputs * inputs * taps;
  if (c.bias) {
    w.vector = w.vector + positions * outputs;
    w.weights = w.weights + outputs * element;
  }
  return w;
}

template <class N>
Terms<N> work(const graph::Vector& v, const Cache&) {
  const Let<N> let;
  Terms<N> w;
  w.matrix_dtype = v.activation;
  const N elements = let("rows", v.rows, "rows of the tensor") * let("width", v.width, "elements of a row");
  const N element = element_bytes<N>(v.activation);
  w.vector =
      elements * let("flops_per_element", v.operations + vector_flops_per_element(v.kind), "operations on an element");
  w.activations_read = let("reads", v.reads, "tensors of this shape read") * elements * element;
  w.activations_written = let("writes", v.writes, "tensors of this shape written") * elements * element;
  if (v.parameters.value > 0) w.weights = let("parameter_bytes", v.parameters.value, "weights and biases of the op");
  return w;
}

template <class N>
Terms<N> work(const graph::Gather& g, const Cache&) {
  const Let<N> let;
  Terms<N> w;
  w.matrix_dtype = g.activation;
  const N rows = let("rows", g.rows, "rows picked from the table");
  const N width = let("width", g.width, "elements of a row");
  w.weights = rows * model::stored_bytes<N>(*g.table, N(1), width);
  w.activations_written = rows * width * element_bytes<N>(g.activation);
  w.vector = rows * width * dequantisation<N>(*g.table);
  return w;
}

template <class N>
Terms<N> moved(const graph::Copy& c, const N& read, const N& written) {
  const Let<N> let;
  Terms<N> w;
  const auto bytes = [](const model::ElementFormat& format, bool cached) {
    return cached ? cached_bytes<N>(format) : element_bytes<N>(format);
  };
  (c.from_cache ? w.kv_read : w.activations_read) = read * bytes(c.from, c.from_cache);
  (c.to_cache ? w.kv_written : w.activations_written) = written * bytes(c.to, c.to_cache);
  if (c.from.bits != c.to.bits) {
    w.vector = let.noted(2 * written, "converting {} to {}: an element is scaled and rounded", c.from.name, c.to.name);
  }
  return w;
}

template <class N>
Terms<N> work(const graph::Copy& c, const Cache&) {
  const Let<N> let;
  return moved<N>(c, let("read_elements", c.read_elements, "elements read"),
                  let("write_elements", c.write_elements, "elements written"));
}

template <class N>
Terms<N> work(const graph::Transfer& t, const Cache&) {
  const Let<N> let;
  Terms<N> w;
  if (t.weights) {
    const N matrices = let("weight_matrices", t.weight_matrices, "different matrices (experts the tokens reach)");
    w.network =
        matrices * model::stored_bytes<N>(*t.weights, let("n", t.rows, "outputs of a matrix that is kept on the host"),
                                          let("k", t.width, "inputs"));
  } else {
    w.network = let("rows", t.rows, "rows sent") * let("width", t.width, "elements of a row") *
                let("element_bytes", bytes_per_element(t.element), "bytes of an element ({})", t.element.name);
  }
  return w;
}

// The bytes that one device cannot avoid sending.
template <class N>
N sent(const graph::Collective& c) {
  if (c.ranks <= 1) return 0;
  const Let<N> let;
  const N ranks = let("ranks", c.ranks, "devices of the {} axis", [&] { return graph::name(c.axis); });
  const N tensor = let("rows", c.rows, "rows of the tensor") * let("width", c.width, "elements of a row") *
                   let("element_bytes", bytes_per_element(c.element), "bytes of an element ({})", c.element.name);
  switch (c.kind) {
    case graph::CollectiveKind::all_reduce: return 2 * (ranks - 1) / ranks * tensor;
    case graph::CollectiveKind::all_gather:
    case graph::CollectiveKind::reduce_scatter:
    case graph::CollectiveKind::all_to_all: return (ranks - 1) / ranks * tensor;
    case graph::CollectiveKind::send:
    case graph::CollectiveKind::broadcast: return tensor;
    case graph::CollectiveKind::ring_pass: return (ranks - 1) * tensor;
  }
  return 0;
}

template <class N>
Terms<N> work(const graph::Collective& c, const Cache&) {
  Terms<N> w;
  w.network = sent<N>(c);
  return w;
}

template <class N>
Terms<N> work(const graph::Overhead&, const Cache&) {
  return {};
}

template <class N>
Terms<N> terms(const graph::Op& op, const Cache& cache) {
  return std::visit([&](const auto& body) { return work<N>(body, cache); }, op.body);
}

}  // namespace

Work& Work::operator+=(const Work& other) {
  matrix += other.matrix;
  vector += other.vector;
  weights += other.weights;
  activations_read += other.activations_read;
  activations_written += other.activations_written;
  kv_read += other.kv_read;
  kv_written += other.kv_written;
  network += other.network;
  return *this;
}

Work Work::operator*(double factor) const {
  Work w = *this;
  w.matrix = matrix * factor;
  w.vector = vector * factor;
  w.weights = weights * factor;
  w.activations_read = activations_read * factor;
  w.activations_written = activations_written * factor;
  w.kv_read = kv_read * factor;
  w.kv_written = kv_written * factor;
  w.network = network * factor;
  return w;
}

Sums sums_of(const model::StoredFormat& weights) {
  if (weights.compute != Dtype::fp16) return Sums::wide;
  const bool ggml = !weights.name.empty();
  if (weights.kernel) return ggml ? Sums::integer : Sums::narrow;
  return ggml ? Sums::narrow : Sums::wide;
}

Work work_of(const graph::Op& op, const Cache& cache) {
  const Terms<double> t = terms<double>(op, cache);
  return {.matrix = Flops{t.matrix},
          .vector = Flops{t.vector},
          .matrix_dtype = t.matrix_dtype,
          .sums = t.sums,
          .weights = Bytes{t.weights},
          .activations_read = Bytes{t.activations_read},
          .activations_written = Bytes{t.activations_written},
          .kv_read = Bytes{t.kv_read},
          .kv_written = Bytes{t.kv_written},
          .network = Bytes{t.network}};
}
Terms<Term> explained_work(const graph::Op& op, const Cache& cache) { return terms<Term>(op, cache); }
Terms<Term> explained_copy(const graph::Copy& copy, const Term& read, const Term& written) {
  return moved(copy, read, written);
}

Bytes sent_bytes(const graph::Collective& c) { return Bytes{sent<double>(c)}; }

double visible_pairs(const graph::Attention& a) { return graph::pairs_of_sequence<double>(a); }

OperandReads gemm_reads(double m, double n, double first_bytes, double second_bytes, double element_bytes,
                        const Cache& cache) {
  const auto reads = reads_of_operands<double>(m, n, first_bytes, second_bytes, element_bytes, cache);
  return {reads.first, reads.second};
}

double cache_dequant_flops(const model::ElementFormat& cached, Dtype activation) {
  return cached.bits < bits(activation) ? 2 : 0;
}

double joined_input_flops(const graph::Joined& joined) {
  return joined.input ? vector_flops_per_element(*joined.input) : 0;
}
double joined_output_flops(const graph::Joined& joined) {
  return joined.output ? vector_flops_per_element(*joined.output) * joined.share : 0;
}

}  // namespace llmperf::cost
