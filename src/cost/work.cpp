#include "cost/work.h"

#include <algorithm>
#include <cmath>

#include "cost/collective.h"

namespace llmperf::cost {
namespace {

using graph::VectorKind;

double d(std::int64_t x) { return static_cast<double>(x); }

Work work(const graph::Gemm& g, const Cache& cache) {
  Work w;
  const double outputs = d(g.m) * d(g.n) * d(g.batch);
  w.matrix = Flops{2 * outputs * d(g.k)};
  w.matrix_dtype = g.weights ? g.weights->compute : g.activation;
  if (g.weights) {
    w.sums = sums_of(*g.weights);
  } else if (g.cached_operand && g.activation == Dtype::fp16) {
    w.sums = Sums::narrow;
  }
  const double element = bytes_per_element(g.activation);
  // Rows per distinct weight matrix: a grouped GEMM (experts) multiplies each matrix with its own share of the rows.
  const double matrices = g.weights ? g.weight_matrices : d(g.batch);
  const double rows = g.weights && g.batch == 1 ? d(g.m) / std::max(1.0, matrices) : d(g.m);
  const double first = rows * d(g.k) * element;
  const double second = g.weights ? g.weights->bytes(g.n, g.k).value
                                  : d(g.n) * d(g.k) * (g.cached_operand ? bytes_per_element(g.cached) : element);
  const OperandReads reads = gemm_reads(rows, d(g.n), first, second, element, cache);
  w.activations_read = Bytes{reads.first * d(g.m) * d(g.k) * d(g.batch) * element};
  w.activations_written = Bytes{(outputs * g.joined.results - d(g.m) * d(g.joined.cached)) * element};
  if (g.accumulated_bits > 0) {
    w.activations_written = Bytes{outputs * (g.weights ? 1 : g.weight_matrices) * g.accumulated_bits / 8};
    w.activations_read += w.activations_written;
  }
  const Bytes operand{reads.second * second * matrices};
  if (g.weights) {
    w.weights = operand;
    w.vector = Flops{g.weights->dequant_flops * d(g.n) * d(g.k) * matrices};
  } else if (g.cached_operand) {
    w.kv_read = operand;
    w.vector = Flops{cache_dequant_flops(g.cached, g.activation) * d(g.n) * d(g.k) * matrices};
  } else {
    w.activations_read += operand;
  }
  if (g.bias) {
    w.vector += Flops{outputs};
    w.weights += Bytes{d(g.n) * matrices * element};
  }
  if (g.joined.any()) {
    w.vector += Flops{joined_input_flops(g.joined) * d(g.m) * d(g.k) + joined_output_flops(g.joined) * outputs};
    w.activations_read += Bytes{g.joined.reads * outputs * element};
    const double cached = d(g.m) * d(g.joined.cached);
    w.kv_written = Bytes{cached * bytes_per_element(g.cached)};
    if (g.joined.cached > 0 && g.cached.bits != bits(g.activation)) w.vector += Flops{2 * cached};
    w.weights += g.joined.parameters;
  }
  return w;
}

Work work(const graph::Attention& a, const Cache&) {
  Work w;
  const double query_share = 1 / d(a.query_ranks);
  const double key_share = 1 / d(a.key_ranks);
  const double pairs = visible_pairs(a) * d(a.heads) * d(a.sequences) * query_share * key_share;
  const double element = bytes_per_element(a.activation);
  // Forward: scores and weighted sum. Backward: the scores again, and the gradients of scores, Q, K and V.
  w.matrix = Flops{(a.backward ? 2 * pairs * d(3 * a.qk_dim + 2 * a.v_dim) : 2 * pairs * d(a.qk_dim + a.v_dim))};
  w.matrix_dtype = a.activation;
  w.vector = Flops{pairs * (kSoftmaxFlops + (a.softcap ? 1 : 0)) * (a.backward ? 2 : 1)};
  const double rows = d(a.sequences) * d(a.q_tokens) * d(a.heads) * query_share;
  const double reads = d(a.sequences) * graph::keys_read(a) * d(a.kv_heads) * key_share;
  const double keys = reads * d(a.qk_dim);
  const double values = a.shared_kv ? 0 : reads * d(a.v_dim);
  if (a.keys == 0) {
    w.kv_read = Bytes{keys * bytes_per_element(a.cached.keys) + values * bytes_per_element(a.cached.values)};
    w.vector += Flops{keys * cache_dequant_flops(a.cached.keys, a.activation) +
                      values * cache_dequant_flops(a.cached.values, a.activation)};
  }
  const double queries = rows * d(a.qk_dim) * element;
  const double results = rows * d(a.v_dim) * element;
  w.activations_read = Bytes{a.backward ? queries + 2 * results : queries};  // backward: the result and its gradient
  w.activations_written = Bytes{a.backward ? queries + (keys + values) * element : results};
  if (a.keys > 0) w.activations_read += Bytes{(keys + values) * element};
  return w;
}

Work work(const graph::Convolution& c, const Cache&) {
  Work w;
  const double element = bytes_per_element(c.activation);
  const double results = d(c.positions) * d(c.outputs);
  w.matrix = Flops{2 * results * d(c.inputs) * d(c.taps)};
  w.matrix_dtype = c.weights->compute;
  w.activations_read = Bytes{c.input_positions * d(c.inputs) * element};
  w.activations_written = Bytes{results * c.stored * element};
  w.weights = c.weights->bytes(c.outputs, c.inputs * c.taps);
  w.vector = Flops{c.weights->dequant_flops * d(c.outputs) * d(c.inputs) * d(c.taps)};
  if (c.bias) {
    w.vector += Flops{results};
    w.weights += Bytes{d(c.outputs) * element};
  }
  return w;
}

Work work(const graph::Vector& v, const Cache&) {
  Work w;
  const double elements = d(v.rows) * d(v.width);
  const double element = bytes_per_element(v.activation);
  w.vector = Flops{elements * (v.operations + vector_flops_per_element(v.kind))};
  w.matrix_dtype = v.activation;
  w.activations_read = Bytes{v.reads * elements * element};
  w.activations_written = Bytes{v.writes * elements * element};
  w.weights = v.parameters;
  return w;
}

Work work(const graph::Gather& g, const Cache&) {
  Work w;
  w.matrix_dtype = g.activation;
  w.weights = Bytes{g.table->bytes(1, g.width).value * d(g.rows)};
  w.activations_written = Bytes{d(g.rows) * d(g.width) * bytes_per_element(g.activation)};
  w.vector = Flops{g.table->dequant_flops * d(g.rows) * d(g.width)};
  return w;
}

Work work(const graph::Copy& c, const Cache&) {
  Work w;
  (c.from_cache ? w.kv_read : w.activations_read) = Bytes{c.read_elements * bytes_per_element(c.from)};
  (c.to_cache ? w.kv_written : w.activations_written) = Bytes{c.write_elements * bytes_per_element(c.to)};
  // A narrower type is reached by scaling and rounding.
  if (c.from.bits != c.to.bits) w.vector = Flops{2 * c.write_elements};
  return w;
}

Work work(const graph::Transfer& t, const Cache&) {
  Work w;
  w.network = t.weights ? t.weight_matrices * t.weights->bytes(t.rows, t.width)
                        : Bytes{d(t.rows) * d(t.width) * bytes_per_element(t.element)};
  return w;
}

Work work(const graph::Collective& c, const Cache&) {
  Work w;
  w.network = sent_bytes(c);
  return w;
}

Work work(const graph::Overhead&, const Cache&) { return {}; }

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
  return std::visit([&](const auto& body) { return work(body, cache); }, op.body);
}

double visible_pairs(const graph::Attention& a) {
  const double q = d(a.q_tokens);
  const double context = d(a.context);
  if (a.keys > 0) return q * d(a.keys);
  if (!a.window) return q * context + q * (q + 1) / 2;
  // Queries before the window is full see context + i keys, the rest see the window.
  const double window = d(*a.window);
  const double growing = std::clamp(window - context, 0.0, q);
  return growing * context + growing * (growing + 1) / 2 + (q - growing) * window;
}

OperandReads gemm_reads(double m, double n, double first_bytes, double second_bytes, double element_bytes,
                        const Cache& cache) {
  if (!cache || std::min(first_bytes, second_bytes) <= cache->value) return {};
  const auto times = [](double size, double slab) { return std::ceil(size / std::max(1.0, slab)); };
  const double size = cache->value;
  const double side = std::floor(std::sqrt(size / element_bytes));
  const OperandReads schedules[] = {
      {times(n, side), times(m, side)},
      {1, times(first_bytes, size)},
      {times(second_bytes, size), 1},
  };
  return *std::min_element(
      std::begin(schedules), std::end(schedules), [&](const OperandReads& a, const OperandReads& b) {
        return a.first * first_bytes + a.second * second_bytes < b.first * first_bytes + b.second * second_bytes;
      });
}

double cache_dequant_flops(const model::ElementFormat& cached, Dtype activation) {
  return cached.bits < bits(activation) ? 2 : 0;
}

double vector_flops_per_element(VectorKind kind) {
  switch (kind) {
    case VectorKind::rms_norm: return 4;    // square, accumulate, scale, weight
    case VectorKind::layer_norm: return 7;  // mean, subtract, square, accumulate, scale, weight, bias
    case VectorKind::add: return 1;
    case VectorKind::add_rms_norm: return 5;
    case VectorKind::add_layer_norm: return 8;
    case VectorKind::rope: return 3;              // two multiplies and an add per element of a rotated pair
    case VectorKind::activation: return 4;        // exponential, add, divide, multiply
    case VectorKind::gated_activation: return 5;  // and the product with up
    case VectorKind::multiply: return 1;
    case VectorKind::mask: return 2;  // scale and add
    case VectorKind::softmax:
    case VectorKind::router:  // softmax over the experts and the choice of the largest
    case VectorKind::sampling: return kSoftmaxFlops;
    case VectorKind::combine: return 2;  // weight and accumulate
    case VectorKind::dropout: return 2;  // compare with the random bits, scale
    case VectorKind::cross_entropy: return kSoftmaxFlops;
    case VectorKind::adam: return 12;  // two moments, their corrections, root, quotient, decay
    case VectorKind::modulate:
    case VectorKind::gate_add: return 2;
    case VectorKind::group_norm: return 7;  // as layer_norm
    case VectorKind::softcap:               // tanh
    case VectorKind::select:
    case VectorKind::reduce:
    case VectorKind::sigmoid_gate: return 1;
    case VectorKind::elementwise: return 0;  // its own, Vector::operations
  }
  return 0;
}

double joined_input_flops(const graph::Joined& joined) {
  return joined.input ? vector_flops_per_element(*joined.input) : 0;
}
double joined_output_flops(const graph::Joined& joined) {
  return joined.output ? vector_flops_per_element(*joined.output) * joined.share : 0;
}

}  // namespace llmperf::cost
