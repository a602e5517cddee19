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

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "base/integer.h"

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
// Vector work whose results a product reads.
bool is_norm(const Op& op) {
  const Vector* v = vector_of(op);
  return v && op.layer_kind >= 0 && vector_op(v->kind).is(kByRow) && v->kind != VectorKind::softmax;
}
bool of_experts(Tag tag) {
  using enum Tag;
  return tag == experts_gate_up || tag == experts_gate || tag == experts_up || tag == experts_down;
}
bool enters_mlp(Tag tag) { return tag == Tag::up_proj || tag == Tag::gate_up_proj || tag == Tag::gate_proj; }
bool is_adapter(Tag tag) { return tag == Tag::adapter_down || tag == Tag::adapter_up; }
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

// ---- Recomputation

bool has(const TrainingOptions& o, Module module) { return (o.modules >> static_cast<unsigned>(module) & 1U) != 0; }

// Of torchtitan's operators every second product is kept, in the order q, k, v, o, gate, up, down: o and up are not,
// nor are norms and activations. k is left out here, which few heads share.
double again_of_ops(const Op& op) {
  if (vector_of(op)) return keeps_layer_input(op.tag) ? 0 : 1;
  if (op.tag == Tag::o_proj || op.tag == Tag::up_proj) return 1;
  return op.tag == Tag::gate_up_proj || op.tag == Tag::experts_gate_up ? 0.5 : 0;
}
double again_of_modules(const Op& op, const TrainingOptions& o) {
  using enum Tag;
  const Vector* v = vector_of(op);
  const bool acts = v && (v->kind == VectorKind::activation || v->kind == VectorKind::gated_activation);
  if (has(o, Module::core_attn) && std::holds_alternative<Attention>(op.body)) return 1;
  if (has(o, Module::layernorm) && is_norm(op) && !keeps_layer_input(op.tag)) return 1;
  if (has(o, Module::mla_up_proj) && (op.tag == q_b_proj || op.tag == kv_b_proj || op.tag == rope)) return 1;
  if (has(o, Module::moe_act) && op.tag == experts_activation) return 1;
  if (has(o, Module::moe) && (of_experts(op.tag) || op.tag == experts_activation || op.tag == experts_dispatch)) {
    return op.tag == experts_down ? 0 : 1;
  }
  const bool shared = has(o, Module::shared_experts) || has(o, Module::mlp);
  return shared && (enters_mlp(op.tag) || (acts && op.tag == activation)) ? 1 : 0;
}

// The share of a forward op that runs again in the backward pass.
double again_share(const Op& op, const TrainingOptions& o) {
  switch (o.recompute) {
    case Recompute::full:
    case Recompute::offload: return 1;
    case Recompute::ops: return again_of_ops(op);
    case Recompute::modules: return again_of_modules(op, o);
    case Recompute::none:
    case Recompute::selective: break;
  }
  return 0;
}

// Of what an op keeps, which is its input as a rule, what the ops that run again make anew.
double given_up_by_ops(const Op& op) {
  const Vector* v = vector_of(op);
  if (v) return keeps_layer_input(op.tag) ? 0 : v->kind == VectorKind::gated_activation ? 0.5 : 1;
  return std::holds_alternative<Gemm>(op.body) && op.tag != Tag::o_proj ? 1 : 0;
}
double given_up_by_modules(const Op& op, const TrainingOptions& o) {
  using enum Tag;
  constexpr double kUpProjected = 0.7;  // of q, k, v and the result of attention: q, and k and v of all heads
  const Vector* v = vector_of(op);
  const bool acts = v && (v->kind == VectorKind::activation || v->kind == VectorKind::gated_activation);
  if (has(o, Module::layernorm)) {
    if (multiplies_to_heads(op.tag) || op.tag == q_a_proj || enters_mlp(op.tag) || op.tag == router) return 1;
  }
  const auto* core = std::get_if<graph::Attention>(&op.body);
  const bool latent = core && core->qk_dim != core->v_dim;
  if (has(o, Module::mla_up_proj) && latent) return kUpProjected;
  if (has(o, Module::moe_act) && op.tag == experts_down) return 1;
  if (has(o, Module::moe) && (of_experts(op.tag) || op.tag == experts_activation)) return 1;
  const bool shared = has(o, Module::shared_experts) || has(o, Module::mlp);
  return shared && ((acts && op.tag == activation) || op.tag == down_proj) ? 1 : 0;
}

// ---- The backward pass

class Differentiator {
 public:
  Differentiator(const Graph& forward, const TrainingOptions& options, Kernels kernels, Again runs, Graph& backward)
      : f_(forward), options_(options), kernels_(kernels), runs_(runs), b_(backward) {}

  void build() {
    b_.clear();
    int kind = -1;
    for (std::size_t i = f_.size(); i-- > 0;) {
      const Op& op = f_[i];
      if (op.layer_kind != kind) {
        sum_input_gradients();
        kind = op.layer_kind;
        if (kind >= 0) again(first_of_kind(i), i, true);
      }
      if (begins_block(op.tag)) sum_input_gradients();
      if (ends_scores(i) && options_.recompute == Recompute::selective) again(find_before(i, Tag::scores), i, false);
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
  // Whether the op is of what the next layer begins with: its norm, also behind a layer without a feed-forward part.
  bool leads_on(std::size_t i, std::size_t last) const {
    const Tag tag = f_[i].tag;
    return keeps_layer_input(tag) || (i == last && tag == Tag::attention_add_norm) ||
           (tag == Tag::norm_statistics && i > 0 && keeps_layer_input(f_[i - 1].tag));
  }
  // The forward ops first..last once more, or their shares.
  void again(std::size_t first, std::size_t last, bool shares) {
    const bool whole = options_.recompute == Recompute::full || options_.recompute == Recompute::offload;
    std::size_t needed = last + 1;  // the last op whose input is, and nothing from it on: results of others are not
    if (shares && whole && runs_ == Again::needed) {
      while (needed > first && (needed > last || f_[needed].saved.value == 0 || leads_on(needed, last))) --needed;
      if (needed <= last && drops(f_[needed])) ++needed;  // whose mask is kept, and not its input
    }
    for (std::size_t i = first; i <= last; ++i) {
      const double share = shares ? again_share(f_[i], options_) : 1;
      if (share == 0 || (i >= needed && !leads_on(i, last))) continue;
      Op& op = push(f_[i], Pass::again, f_[i].body);
      if (auto* g = std::get_if<Gemm>(&op.body)) {
        g->n = std::llround(static_cast<double>(g->n) * share);
      }
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
    if (is_frozen(op)) return;
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
  bool is_frozen(const Op& op) const { return options_.adapters.any() && !is_adapter(op.tag); }
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
    if (op.tag == Tag::dequantise) {  // the gradient of the input needs the weights again
      push(op, Pass::backward, v);
      return;
    }
    if (op.tag == Tag::add_positions) {
      if (!options_.adapters.any()) add_rows(op, v.rows, v.width, v.activation);
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
  void differentiate(std::size_t i, const Gather& g) {
    if (!options_.adapters.any()) add_rows(f_[i], g.rows, g.width, g.activation);
  }
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
  // Backward through the chunks: their products once for the states and once for the inputs.
  void differentiate(std::size_t i, const Scan& s) {
    push(f_[i], Pass::dgrad, s).launches = f_[i].launches;
    push(f_[i], Pass::backward, s).launches = f_[i].launches;
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
        // Keys of other devices are not kept: they come once more, and their gradients return.
        if (op.tag == Tag::kv_gather) push(op, Pass::again, d);
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
  Again runs_;
  Graph& b_;
  const Op* pending_ = nullptr;  // the all-reduce whose block is being differentiated
  const Op* ring_ = nullptr;     // the ring pass whose attention is
};

}  // namespace

void build_backward(const Graph& forward, const TrainingOptions& options, Graph& backward, Kernels kernels,
                    Again runs) {
  Differentiator(forward, options, kernels, runs, backward).build();
}

Bytes moved_eagerly(const Op& op) {
  const auto* v = std::get_if<Vector>(&op.body);
  if (!v || op.layer_kind < 0) return {};
  const bool rms = v->kind == VectorKind::rms_norm || v->kind == VectorKind::add_rms_norm;
  const bool adds = v->kind == VectorKind::add_rms_norm || v->kind == VectorKind::add_layer_norm;
  const bool turns = op.tag == Tag::rope || op.tag == Tag::rope_q || op.tag == Tag::rope_k;
  const double tensors =
      (rms ? 16 : 0) + (adds ? 1 : 0) + (turns ? 8 : 0) + (v->kind == VectorKind::gated_activation ? 2 : 0);
  return Bytes{tensors * (op.pass == Pass::backward ? 2 : 1) * d(v->rows) * d(v->width) *
               bytes_per_element(v->activation)};
}

bool is_of_shared_experts(Tag tag) {
  return enters_mlp(tag) || tag == Tag::up_proj || tag == Tag::activation || tag == Tag::down_proj;
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

double given_up(const Op& op, const TrainingOptions& o) {
  if (op.layer_kind < 0) return 0;
  const Vector* v = vector_of(op);
  switch (o.recompute) {
    case Recompute::none: return 0;
    case Recompute::full:
    case Recompute::offload: return keeps_layer_input(op.tag) ? 0 : o.recomputed_share;
    case Recompute::ops: return given_up_by_ops(op);
    case Recompute::modules: return given_up_by_modules(op, o);
    case Recompute::selective: break;
  }
  return v && (v->kind == VectorKind::softmax || op.tag == Tag::scores_dropout) ? 1 : 0;
}

// ---- Adapters beside frozen weights
//
// No gradient of W is computed, so that what a product without an adapter reads need not be kept. Frozen weights of 4
// bits are made wide before every product, in either direction.

namespace {

bool is_attention_product(Tag tag) {
  using enum Tag;
  return multiplies_to_heads(tag) || tag == o_proj || tag == q_a_proj || tag == q_b_proj || tag == kv_a_proj ||
         tag == kv_b_proj;
}
bool is_mlp_product(Tag tag) { return enters_mlp(tag) || tag == Tag::down_proj || of_experts(tag); }

}  // namespace

std::int64_t Adapters::beside(Tag tag) const {
  const bool chosen = (attention && is_attention_product(tag)) || (mlp && is_mlp_product(tag));
  if (!chosen) return 0;
  if (joint) return 1;
  return tag == Tag::qkv_proj ? 3 : tag == Tag::gate_up_proj || tag == Tag::experts_gate_up ? 2 : 1;
}

void add_adapters(const TrainingOptions& o, const model::StoredFormat& wide, Graph& forward) {
  Graph frozen;
  frozen.swap(forward);
  for (const Op& op : frozen) {
    const auto* g = std::get_if<Gemm>(&op.body);
    if (g == nullptr || !g->weights) {
      forward.push_back(op);
      continue;
    }
    // Stored in fewer bits than are multiplied.
    const bool packed_weights = g->weights->dequant_flops > 0 ||
                                (o.products == Products::wide && bits(g->weights->compute) < bits(g->activation));
    if (packed_weights) {
      const double matrices = op.layer_kind >= 0 ? g->weight_matrices : 1;
      const double packed = g->weights->bytes(g->n, g->k).value / static_cast<double>(g->n * g->k);
      forward.push_back(after(op, Tag::dequantise,
                              Vector{.kind = VectorKind::elementwise,
                                     .rows = std::llround(static_cast<double>(g->n) * matrices),
                                     .width = g->k,
                                     .reads = packed * 8 / bits(g->activation),
                                     .writes = 1,
                                     .activation = g->activation,
                                     .operations = g->weights->dequant_flops}));
    }
    forward.push_back(op);
    auto& product = std::get<Gemm>(forward.back().body);
    if (packed_weights) product.weights = &wide;
    const std::int64_t count = op.layer_kind >= 0 ? o.adapters.beside(op.tag) : 0;
    if (count == 0) {
      forward.back().saved = Bytes{};
      continue;
    }
    const std::int64_t outputs = product.n;  // which further ops may move
    Gemm down = product;
    down.weights = &wide;
    down.bias = false;
    down.n = o.adapters.rank * count;
    forward.push_back(after(op, Tag::adapter_down, down));
    Gemm up = down;
    up.n = outputs;
    up.k = o.adapters.rank;
    forward.push_back(after(op, Tag::adapter_up, up));
    const double rows = static_cast<double>(up.m) * static_cast<double>(up.batch);
    forward.back().saved = Bytes{rows * static_cast<double>(down.n) * bytes_per_element(up.activation)};
    forward.push_back(after(op, Tag::adapter_add,
                            Vector{.kind = VectorKind::add,
                                   .rows = std::llround(rows),
                                   .width = up.n,
                                   .reads = 2,
                                   .activation = up.activation}));
  }
}

// ---- Narrow products

bool is_narrowed(const Op& op, const TrainingOptions& o) {
  return o.products != Products::wide && std::holds_alternative<Gemm>(op.body) && op.layer_kind >= 0 &&
         (is_attention_product(op.tag) || is_mlp_product(op.tag));
}

void narrow_products(const TrainingOptions& o, double passes, Graph& graph) {
  const Dtype type = type_of(o.products);
  Graph wide;
  wide.swap(graph);
  for (Op& op : wide) {
    if (is_narrowed(op, o)) {
      auto* g = std::get_if<Gemm>(&op.body);
      g->operands = type;
      // Of a gradient of weights, its second operand: the first was made narrow for the gradient of the input.
      const bool weights = op.pass == Pass::wgrad;
      Op quantise = after(op, Tag::quantise,
                          Vector{.kind = VectorKind::elementwise,
                                 .rows = (weights ? g->k : g->m) * g->batch,
                                 .width = weights ? g->n : g->k,
                                 .reads = passes,
                                 .writes = passes * bits(type) / bits(g->activation),
                                 .activation = g->activation,
                                 .operations = 2});
      quantise.pass = op.pass;
      quantise.name = name(Tag::quantise, op.pass);
      graph.push_back(quantise);
    }
    graph.push_back(op);
  }
}

}  // namespace llmperf::graph
