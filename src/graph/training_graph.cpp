// The backward pass, op by op in reverse order. With dX for the gradient of X:
//
//   Y = X W^T           dX = dY W      [m, k] = [m, n] x [n, k]     "dgrad"
//                       dW += dY^T X   [n, k] = [n, m] x [m, k]     "wgrad", added to the gradients kept in memory
//   S = Q K^T           dQ = dS K, dK = dS^T Q; P V alike
//   flash attention     one kernel: the scores again, and four products: 5 instead of 2, so it and only it costs more
//                       than twice its forward pass
//   vectors             read the gradient and what was kept, write the gradient; an add passes it on for nothing; a
//   norm
//                       of the residual stream adds the gradient that goes past it
//   collectives         the transposed linear map: all-gather and reduce-scatter are each other's, all-to-all and send
//                       their own. An all-reduce after a matrix divided by inputs passes the gradient on, and the sum
//                       is due where the block begins, after the matrices divided by outputs (f and g of arXiv
//                       1909.08053)
//
// Matrices whose gathered input was not kept gather it again for their weight gradient (arXiv 2205.05198
// section 4.2.2). That runs beside dgrad, and the sum over the input gradients beside wgrad.
//
// Vector ops as a framework's kernels run them (Kernels::framework). An ideal pass reads and writes each tensor once
// and needs no layout but its own; kernels fuse some neighbours, spend passes on layouts, and reduce gradients of
// biases and norms in kernels of their own. Bytes per element with 16-bit activations, forward and backward, in
// Megatron (arXiv 2205.05198; fused softmax, bias-dropout-add and bias-GeLU of its code):
//
//   softmax          3 / 4    reads the causal half, writes everything
//   dropout of it    5 / 5    the mask takes a byte
//   LayerNorm        4 / 10   backward: one kernel for the input, one that reads the same again for gain and bias
//   bias-dropout-add 7 / 7    backward: one kernel for the input, one for the bias
//   residual         - / 6    the gradient that goes past a norm is added
//   bias-GeLU        4 / 8    backward: 6, and 2 for the bias
//   QKV bias         4 / 2    of 3 h elements
//   heads            4 / 4    from [heads, tokens] to [tokens, heads]
//   Q, K, V          - / 20   of h elements: gradients of Q and K are brought to the layout of V's (8), all three are
//                             put together (12)
//   cross entropy   38 / 14   fp32: widen 6, maximum 4, subtract 8, exponential 8, sum 4, divide 8; backward scale 8,
//                             narrow 6
#include "graph/training_graph.h"

#include <cmath>
#include <optional>
#include <stdexcept>

namespace llmperf::graph {
namespace {

// The norm whose kept input is that of the (next) layer.
bool keeps_layer_input(Tag tag) { return tag == Tag::next_norm || tag == Tag::mlp_add_norm; }
// Norms of the residual stream, where a block of matrices begins.
bool begins_block(Tag tag) {
  return tag == Tag::input_norm || tag == Tag::mlp_norm || tag == Tag::attention_add_norm || keeps_layer_input(tag);
}

const Vector* vector_of(const Op& op) { return std::get_if<Vector>(&op.body); }
bool drops(const Op& op) {
  const Vector* v = vector_of(op);
  return v && v->kind == VectorKind::dropout;
}
bool multiplies_to_heads(Tag tag) {
  return tag == Tag::qkv_proj || tag == Tag::q_proj || tag == Tag::k_proj || tag == Tag::v_proj;
}

// Whether the bias of the product before op `i` is added by op `i`.
bool adds_bias(const Graph& forward, std::size_t i) {
  while (i > 0 && forward[i - 1].place == Place::network) --i;
  const auto* gemm = i > 0 ? std::get_if<Gemm>(&forward[i - 1].body) : nullptr;
  return gemm && gemm->bias;
}

// A kernel that follows `op` and keeps nothing.
Op after(const Op& op, Tag tag, const OpBody& body) {
  Op next = op;
  next.tag = tag;
  next.name = name(tag);
  next.saved = Bytes{};
  next.body = body;
  return next;
}
// The bias of a product whose result goes to the heads, in a kernel of its own.
Op qkv_bias(const Op& op, const Gemm& g) {
  return after(op, Tag::qkv_bias,
               Vector{.kind = VectorKind::add, .rows = g.m, .width = g.n, .activation = g.activation});
}
// Results of all heads side by side.
Op merge_heads(const Op& op, const Gemm& g) {
  const double elements = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.batch);
  const model::ElementFormat element = model::element_format(g.activation);
  return after(op, Tag::merge_heads,
               Copy{.read_elements = elements, .write_elements = elements, .from = element, .to = element});
}

class Differentiator {
 public:
  Differentiator(const Graph& forward, const TrainingOptions& options, Kernels kernels, Graph& backward)
      : f_(forward), options_(options), kernels_(kernels), b_(backward) {}

  void build() {
    b_.clear();
    int kind = -1;
    for (std::size_t i = f_.size(); i-- > 0;) {
      const Op& op = f_[i];
      if (op.layer_kind != kind) {
        sum_input_gradients();
        kind = op.layer_kind;
        if (kind >= 0 && options_.recompute == Recompute::full) again(first_of_kind(i), i);
      }
      if (begins_block(op.tag)) sum_input_gradients();
      if (ends_scores(i) && options_.recompute == Recompute::selective) again(find_before(i, Tag::scores), i);
      const Op* ring = ring_;
      std::visit([&](const auto& body) { differentiate(i, body); }, op.body);
      if (ring) pass_round(*ring);
    }
    sum_input_gradients();
  }

 private:
  Op& push(const Op& forward, Pass pass, const OpBody& body) {
    b_.push_back(forward);
    Op& op = b_.back();
    op.pass = pass;
    op.name = name(op.tag, pass);
    op.overlaps = false;
    op.launches = 1;
    op.saved = Bytes{};
    op.body = body;
    return op;
  }
  std::size_t first_of_kind(std::size_t last) const {
    std::size_t first = last;
    while (first > 0 && f_[first - 1].layer_kind == f_[last].layer_kind) --first;
    return first;
  }
  // The last op that selective recomputation runs again.
  bool ends_scores(std::size_t i) const {
    if (f_[i].tag == Tag::merge_heads) return true;
    return f_[i].tag == Tag::weighted_sum && (i + 1 == f_.size() || f_[i + 1].tag != Tag::merge_heads);
  }
  std::size_t find_before(std::size_t i, Tag tag) const {
    while (f_[i].tag != tag) --i;
    return i;
  }
  // The forward ops first..last once more.
  void again(std::size_t first, std::size_t last) {
    for (std::size_t i = first; i <= last; ++i) {
      Op& op = push(f_[i], Pass::again, f_[i].body);
      op.overlaps = f_[i].overlaps;
      op.launches = f_[i].launches;
    }
  }
  // The sum that the block's all-reduce stands for in this direction.
  void sum_input_gradients() {
    if (!pending_) return;
    push(*pending_, Pass::backward, pending_->body).overlaps = options_.overlapped_sums;
    pending_ = nullptr;
  }

  // Keys and values once more, and their gradients, beside the op that multiplies with them.
  void pass_round(const Op& ring) {
    Collective c = std::get<Collective>(ring.body);
    c.width *= 2;
    push(ring, Pass::backward, c).overlaps = true;
    ring_ = nullptr;
  }

  void differentiate(std::size_t i, const Gemm& g) {
    const Op& op = f_[i];
    if (!g.weights) {
      product_of_activations(op, g);
      return;
    }
    const Op* gather = i > 0 ? gathered(f_[i - 1]) : nullptr;
    Gemm input = g;
    input.n = g.k;
    input.k = g.n;
    input.bias = false;
    // Matrices that read the same input add their gradients up.
    if (op.saved.value == 0) input.accumulated_bits = bits(g.activation);
    push(op, Pass::dgrad, input);
    if (gather) push(*gather, Pass::wgrad, gather->body).overlaps = options_.overlapped_sums;
    const bool adds = options_.fused_gradients && kernels_ == Kernels::ideal;
    // Grouped products have as many results as matrices only where they add to them.
    const double apart = g.batch == 1 && g.weight_matrices > 1 ? bits(g.activation) : 0;
    push(op, Pass::wgrad,
         Gemm{.m = g.n,
              .n = g.k,
              .k = g.m,
              .batch = g.batch,
              .activation = g.activation,
              .weight_matrices = g.batch == 1 ? g.weight_matrices : 1,
              .accumulated_bits = adds ? options_.gradient_bits : apart});
    if (!adds) add_gradients(op, g);
    if (op.tag == Tag::lm_head) sum_head_gradients();
  }
  // Adds what a product wrote in the activations' type to the gradients in memory. A kernel that does both reads and
  // writes these at its end, when it multiplies nothing: that is no launch, and one pass over its result less each way.
  void add_gradients(const Op& op, const Gemm& g) {
    const double matrices = g.batch == 1 ? g.weight_matrices : static_cast<double>(g.batch);
    const double sum = options_.gradient_bits / bits(g.activation);
    const double apart = options_.fused_gradients ? 0 : 1;
    push(op, Pass::wgrad_sum,
         Vector{.kind = VectorKind::add,
                .rows = static_cast<std::int64_t>(std::llround(static_cast<double>(g.n) * matrices)),
                .width = g.k,
                .reads = sum + apart,
                .writes = sum + apart - 1,
                .activation = g.activation})
        .launches = options_.fused_gradients ? 0 : 1;
  }
  // What gathered the input of a matrix divided by outputs.
  static const Op* gathered(const Op& op) {
    const auto* c = std::get_if<Collective>(&op.body);
    const bool gathers = c && c->kind == CollectiveKind::all_gather &&
                         (c->axis == Axis::tensor || c->axis == Axis::tensor_columns) && op.tag != Tag::experts_gather;
    return gathers ? &op : nullptr;
  }
  // An lm_head divided by vocabulary begins a block that the all-reduce of a divided embedding belongs to.
  void sum_head_gradients() {
    for (const Op& op : f_) {
      if (op.tag == Tag::embed_reduce) {
        push(op, Pass::backward, op.body).overlaps = options_.overlapped_sums;
      }
      if (op.layer_kind >= 0) return;
    }
  }
  void product_of_activations(const Op& op, const Gemm& g) {
    Gemm first = g;  // [m, k] = [m, n] x [n, k]
    first.n = g.k;
    first.k = g.n;
    push(op, Pass::dgrad, first);
    Gemm second = g;  // [k, n] = [k, m] x [m, n]
    second.m = g.k;
    second.k = g.m;
    push(op, Pass::wgrad, second);
  }

  void differentiate(std::size_t i, const Attention& a) {
    Attention d = a;
    d.backward = true;
    push(f_[i], Pass::backward, d);
  }
  void differentiate(std::size_t i, const Vector& v) {
    const Op& op = f_[i];
    if (op.tag == Tag::add_positions) {
      add_rows(op, v.rows, v.width, v.activation);
      return;
    }
    const VectorGradient& gradient = vector_op(v.kind).backward;
    switch (gradient.flow) {
      case VectorGradient::Flow::untrained: throw std::logic_error("internal error: not an op of a training pass");
      case VectorGradient::Flow::unchanged:
        if (op.tag == Tag::qkv_bias) bias_gradient(op, v);
        return;
      case VectorGradient::Flow::kernel: break;
    }
    const double residual = begins_block(op.tag) ? 1 : 0;  // the gradient that goes past the norm
    Vector d = v;
    d.kind = gradient.kind;
    const auto& kernels = gradient.framework;
    if (kernels_ == Kernels::ideal || kernels.front().reads + kernels.front().read_bytes == 0) {
      d.reads = gradient.moved.read_tensors(v.activation) + (gradient.results ? v.writes : 0) + residual;
      d.writes = gradient.moved.written_tensors(v.activation);
      push(op, Pass::backward, d);
      return;
    }
    d.reads = d.writes = 0;
    std::int32_t launches = 0;
    const auto kernel = [&](const Traffic& t) {
      d.reads += t.read_tensors(v.activation);
      d.writes += t.written_tensors(v.activation);
      ++launches;
    };
    for (const Traffic& t : kernels) {
      if (t.reads + t.read_bytes > 0) kernel(t);
    }
    if (residual > 0) kernel({2, 1});
    const bool reduces = v.kind == VectorKind::dropout || v.kind == VectorKind::activation;
    if (reduces && adds_bias(f_, i)) kernel({1, 0});
    push(op, Pass::backward, d).launches = launches;
  }
  // The gradient of the bias, that of its input, and the layout of the product's operand.
  void bias_gradient(const Op& op, Vector d) {
    d.reads = 1 + 1 + 2. / 3;
    d.writes = 0 + 1 + 2. / 3;
    push(op, Pass::backward, d).launches = 3;
  }
  void differentiate(std::size_t i, const Gather& g) { add_rows(f_[i], g.rows, g.width, g.activation); }
  // Gradients of rows that were looked up, added to those of the table.
  void add_rows(const Op& op, std::int64_t rows, std::int64_t width, Dtype activation) {
    const double sum = options_.gradient_bits / bits(activation);
    push(op, Pass::wgrad,
         Vector{.kind = VectorKind::add,
                .rows = rows,
                .width = width,
                .reads = 1 + sum,
                .writes = sum,
                .activation = activation});
  }
  // Copies are summed up where they came from.
  void differentiate(std::size_t i, const Copy& c) {
    Copy d = c;
    std::swap(d.read_elements, d.write_elements);
    std::swap(d.from, d.to);
    push(f_[i], Pass::backward, d);
  }
  void differentiate(std::size_t, const Transfer&) {
    throw std::logic_error("internal error: training keeps everything on the device");
  }
  void differentiate(std::size_t, const Convolution&) {
    throw std::logic_error("internal error: training knows decoders, which have no convolutions");
  }
  void differentiate(std::size_t, const Scan&) {
    throw std::logic_error("internal error: training knows no recurrences");
  }
  void differentiate(std::size_t, const Overhead&) {}  // of a step, not of its passes
  void differentiate(std::size_t i, const Collective& c) {
    const Op& op = f_[i];
    Collective d = c;
    switch (c.kind) {
      case CollectiveKind::all_gather:
        // Experts of a replicated residual stream work on a share of the tokens; what was gathered is cut again, and
        // the gradients of the shares are gathered.
        if (op.tag == Tag::experts_gather) {
          push(op, Pass::backward, d);
          return;
        }
        d.kind = CollectiveKind::reduce_scatter;
        push(op, Pass::backward, d).overlaps = options_.overlapped_sums;  // beside the wgrad before it
        return;
      case CollectiveKind::reduce_scatter:
        d.kind = CollectiveKind::all_gather;
        push(op, Pass::backward, d);
        return;
      case CollectiveKind::all_reduce:
        if (op.tag == Tag::norm_statistics) {
          push(op, Pass::backward, d);
        } else if (op.layer_kind >= 0) {
          pending_ = &op;
        }
        return;  // of the embedding: with lm_head; of the loss: none
      case CollectiveKind::ring_pass: ring_ = &op; return;
      case CollectiveKind::all_to_all:  // gradients of tokens travel as results do, and the reverse
        if (c.routing.experts > 0) {
          std::swap(d.element, d.routing.back);
          d.routing.returns = !c.routing.returns;
        }
        push(op, Pass::backward, d);
        return;
      case CollectiveKind::send: push(op, Pass::backward, d); return;
      case CollectiveKind::broadcast: throw std::logic_error("internal error: no plan broadcasts");
    }
  }

  const Graph& f_;
  const TrainingOptions& options_;
  Kernels kernels_;
  Graph& b_;
  const Op* pending_ = nullptr;  // the all-reduce whose block is being differentiated
  const Op* ring_ = nullptr;     // the ring pass whose attention is
};

}  // namespace

std::string_view name(Recompute recompute) {
  constexpr std::string_view names[] = {"none", "selective", "full"};
  return names[static_cast<std::size_t>(recompute)];
}

void build_backward(const Graph& forward, const TrainingOptions& options, Graph& backward, Kernels kernels) {
  Differentiator(forward, options, kernels, backward).build();
}

void use_framework_kernels(const Graph& ideal, Graph& forward) {
  forward.clear();
  for (const Op& op : ideal) {
    const Vector* v = vector_of(op);
    if (v && v->kind == VectorKind::mask) continue;  // softmax does without
    if (v && v->kind == VectorKind::add && op.layer_kind >= 0 && !forward.empty() && drops(forward.back())) {
      std::get<Vector>(forward.back().body).reads += v->reads - 1;  // one kernel with the dropout before it
      continue;
    }
    forward.push_back(op);
    if (const auto* gemm = std::get_if<Gemm>(&op.body)) {
      if (gemm->bias && multiplies_to_heads(op.tag)) forward.push_back(qkv_bias(op, *gemm));
      if (op.tag == Tag::weighted_sum) forward.push_back(merge_heads(op, *gemm));
    } else if (v && v->kind == VectorKind::softmax) {
      std::get<Vector>(forward.back().body).reads = 0.5;
    } else if (v && v->kind == VectorKind::cross_entropy) {
      Vector& loss = std::get<Vector>(forward.back().body);
      loss.reads = 22 * 8 / bits(loss.activation);
      loss.writes = 16 * 8 / bits(loss.activation);
      forward.back().launches = 6;
    }
  }
}

bool recomputed(const Op& op, Recompute recompute) {
  if (op.layer_kind < 0 || recompute == Recompute::none) return false;
  if (recompute == Recompute::full) return !keeps_layer_input(op.tag);
  const auto* v = std::get_if<Vector>(&op.body);
  return v && (v->kind == VectorKind::softmax || op.tag == Tag::scores_dropout);
}

}  // namespace llmperf::graph
