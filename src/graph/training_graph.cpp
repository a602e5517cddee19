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
#include "graph/training_graph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>

#include "graph/training_kernels.h"

namespace llmperf::graph {
namespace {

// Names are of static storage, so every op of a forward pass has those of its derivatives here.
struct Names {
  std::string_view forward, backward, dgrad, wgrad, sum, again;
};
#define NAMES(name) \
  Names { name, name " backward", name " dgrad", name " wgrad", name " wgrad sum", name " again" }
constexpr auto kNames = [] {
  std::array names = {
      // outside the layers
      NAMES("embed"), NAMES("embed_reduce"), NAMES("embed_scatter"), NAMES("add_positions"), NAMES("embed_dropout"),
      NAMES("input_norm"), NAMES("stage_send"), NAMES("head_gather"), NAMES("lm_head"), NAMES("cross_entropy"),
      NAMES("loss_reduce"),
      // before attention
      NAMES("attention_gather"), NAMES("qkv_proj"), NAMES("q_proj"), NAMES("k_proj"), NAMES("v_proj"), NAMES("q_norm"),
      NAMES("k_norm"), NAMES("q_a_proj"), NAMES("q_a_norm"), NAMES("q_b_proj"), NAMES("kv_a_proj"), NAMES("kv_a_norm"),
      NAMES("rope"), NAMES("rope_q"), NAMES("rope_k"), NAMES("q_all_to_all"), NAMES("k_all_to_all"),
      NAMES("v_all_to_all"), NAMES("o_all_to_all"),
      // attention
      NAMES("kv_b_proj"), NAMES("q_absorb"), NAMES("v_absorb"), NAMES("attention"), NAMES("repeat_kv"),
      NAMES("repeat_k"), NAMES("repeat_v"), NAMES("scores"), NAMES("softcap"), NAMES("mask"), NAMES("softmax"),
      NAMES("scores_dropout"), NAMES("weighted_sum"), NAMES("kv_ring"),
      // after attention
      NAMES("o_proj"), NAMES("attention_reduce"), NAMES("attention_scatter"), NAMES("post_attention_norm"),
      NAMES("attention_dropout"), NAMES("attention_add"), NAMES("mlp_norm"), NAMES("attention_add_norm"),
      NAMES("mlp_gather"), NAMES("up_proj"), NAMES("gate_up_proj"), NAMES("gate_proj"), NAMES("activation"),
      NAMES("multiply_gate"), NAMES("down_proj"), NAMES("mlp_reduce"), NAMES("mlp_scatter"), NAMES("post_mlp_norm"),
      NAMES("mlp_dropout"), NAMES("mlp_add"), NAMES("next_norm"), NAMES("mlp_add_norm"),
      // experts
      NAMES("router"), NAMES("routing"), NAMES("dispatch"), NAMES("experts_dispatch"), NAMES("experts_gate_up"),
      NAMES("experts_gate"), NAMES("experts_up"), NAMES("experts_activation"), NAMES("experts_down"),
      NAMES("experts_return"), NAMES("combine"), NAMES("experts_gather"), NAMES("shared_gate"),
      NAMES("apply_shared_gate"), NAMES("add_shared"),
      // two-dimensional tensor parallelism
      NAMES("gather_columns"), NAMES("reduce_rows"), NAMES("norm_statistics"),
      // kernels of a framework
      NAMES("qkv_bias"), NAMES("merge_heads")};
  std::sort(names.begin(), names.end(), [](const Names& a, const Names& b) { return a.forward < b.forward; });
  return names;
}();
#undef NAMES

const Names& names_of(std::string_view forward) {
  const auto found = std::lower_bound(kNames.begin(), kNames.end(), forward,
                                      [](const Names& names, std::string_view name) { return names.forward < name; });
  if (found == kNames.end() || found->forward != forward) {
    throw std::logic_error("internal error: no backward pass for op " + std::string(forward));
  }
  return *found;
}

// Norms of the residual stream, where a block of matrices begins.
bool begins_block(std::string_view name) {
  constexpr std::string_view names[] = {"input_norm", "mlp_norm", "attention_add_norm", "next_norm", "mlp_add_norm"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}
// The norm whose kept input is that of the (next) layer.
bool keeps_layer_input(std::string_view name) { return name == "next_norm" || name == "mlp_add_norm"; }

// What differentiates a vector op, by kind: tensors read and written. Nothing where the gradient passes unchanged.
std::optional<Vector> derivative(const Vector& v, bool adds_residual) {
  Vector d = v;
  const auto moves = [&](double reads, double writes) {
    d.reads = reads;
    d.writes = writes;
    return d;
  };
  switch (v.kind) {
    case VectorKind::add: return std::nullopt;
    case VectorKind::add_rms_norm: d.kind = VectorKind::rms_norm; break;
    case VectorKind::add_layer_norm: d.kind = VectorKind::layer_norm; break;
    case VectorKind::rms_norm:
    case VectorKind::layer_norm: break;
    case VectorKind::rope:
    case VectorKind::mask: return moves(1, 1);
    case VectorKind::activation:
    case VectorKind::softmax:
    case VectorKind::router:
    case VectorKind::softcap:
    case VectorKind::sigmoid_gate: return moves(2, 1);  // the gradient, and the input or the result
    case VectorKind::gated_activation:
    case VectorKind::multiply: return moves(3, 2);                             // both factors
    case VectorKind::combine: return moves(v.writes + 1, 1);                   // the weights need the results
    case VectorKind::dropout: return moves(1 + 8 / bits(v.activation), 1);     // the mask takes a byte
    case VectorKind::cross_entropy: return moves(32 / bits(v.activation), 1);  // from fp32 probabilities
    case VectorKind::sampling:
    case VectorKind::modulate:
    case VectorKind::gate_add:
    case VectorKind::select:
    case VectorKind::reduce:
    case VectorKind::elementwise:
    case VectorKind::group_norm:
    case VectorKind::adam: throw std::logic_error("internal error: not an op of a training pass");
  }
  return moves(adds_residual ? 3 : 2, 1);  // norms: the gradient, the input
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
      if (begins_block(op.name)) sum_input_gradients();
      if (ends_scores(i) && options_.recompute == Recompute::selective) again(find_before(i, "scores"), i);
      const Op* ring = ring_;
      std::visit([&](const auto& body) { differentiate(i, body); }, op.body);
      if (ring) pass_round(*ring);
    }
    sum_input_gradients();
  }

 private:
  Op& push(const Op& forward, std::string_view name, const OpBody& body) {
    b_.push_back(forward);
    Op& op = b_.back();
    op.name = name;
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
    if (f_[i].name == "merge_heads") return true;
    return f_[i].name == "weighted_sum" && (i + 1 == f_.size() || f_[i + 1].name != "merge_heads");
  }
  std::size_t find_before(std::size_t i, std::string_view name) const {
    while (f_[i].name != name) --i;
    return i;
  }
  // The forward ops first..last once more.
  void again(std::size_t first, std::size_t last) {
    for (std::size_t i = first; i <= last; ++i) {
      Op& op = push(f_[i], names_of(f_[i].name).again, f_[i].body);
      op.overlaps = f_[i].overlaps;
      op.launches = f_[i].launches;
    }
  }
  // The sum that the block's all-reduce stands for in this direction.
  void sum_input_gradients() {
    if (!pending_) return;
    push(*pending_, names_of(pending_->name).backward, pending_->body).overlaps = options_.overlapped_sums;
    pending_ = nullptr;
  }

  // Keys and values once more, and their gradients, beside the op that multiplies with them.
  void pass_round(const Op& ring) {
    Collective c = std::get<Collective>(ring.body);
    c.width *= 2;
    push(ring, names_of(ring.name).backward, c).overlaps = true;
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
    push(op, names_of(op.name).dgrad, input);
    if (gather) push(*gather, names_of(gather->name).wgrad, gather->body).overlaps = options_.overlapped_sums;
    const bool adds = options_.fused_gradients && kernels_ == Kernels::ideal;
    // Grouped products have as many results as matrices only where they add to them.
    const double apart = g.batch == 1 && g.weight_matrices > 1 ? bits(g.activation) : 0;
    push(op, names_of(op.name).wgrad,
         Gemm{.m = g.n,
              .n = g.k,
              .k = g.m,
              .batch = g.batch,
              .activation = g.activation,
              .weight_matrices = g.batch == 1 ? g.weight_matrices : 1,
              .accumulated_bits = adds ? options_.gradient_bits : apart});
    if (!adds) add_gradients(op, g);
    if (op.name == "lm_head") sum_head_gradients();
  }
  // Adds what a product wrote in the activations' type to the gradients in memory. A kernel that does both reads and
  // writes these at its end, when it multiplies nothing: that is no launch, and one pass over its result less each way.
  void add_gradients(const Op& op, const Gemm& g) {
    const double matrices = g.batch == 1 ? g.weight_matrices : static_cast<double>(g.batch);
    const double sum = options_.gradient_bits / bits(g.activation);
    const double apart = options_.fused_gradients ? 0 : 1;
    push(op, names_of(op.name).sum,
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
                         (c->axis == Axis::tensor || c->axis == Axis::tensor_columns) && op.name != "experts_gather";
    return gathers ? &op : nullptr;
  }
  // An lm_head divided by vocabulary begins a block that the all-reduce of a divided embedding belongs to.
  void sum_head_gradients() {
    for (const Op& op : f_) {
      if (op.name == "embed_reduce") {
        push(op, names_of(op.name).backward, op.body).overlaps = options_.overlapped_sums;
      }
      if (op.layer_kind >= 0) return;
    }
  }
  void product_of_activations(const Op& op, const Gemm& g) {
    Gemm first = g;  // [m, k] = [m, n] x [n, k]
    first.n = g.k;
    first.k = g.n;
    push(op, names_of(op.name).dgrad, first);
    Gemm second = g;  // [k, n] = [k, m] x [m, n]
    second.m = g.k;
    second.k = g.m;
    push(op, names_of(op.name).wgrad, second);
  }

  void differentiate(std::size_t i, const Attention& a) {
    Attention d = a;
    d.backward = true;
    push(f_[i], names_of(f_[i].name).backward, d);
  }
  void differentiate(std::size_t i, const Vector& v) {
    const Op& op = f_[i];
    if (op.name == "add_positions") {
      add_rows(op, v.rows, v.width, v.activation);
      return;
    }
    const bool adds_residual = begins_block(op.name);
    const std::optional<Vector> ideal = derivative(v, adds_residual);
    if (kernels_ == Kernels::framework) {
      const std::optional<KernelChain> d = framework_derivative(f_, i, ideal, adds_residual);
      if (d) push(op, names_of(op.name).backward, d->body).launches = d->launches;
    } else if (ideal) {
      push(op, names_of(op.name).backward, *ideal);
    }
  }
  void differentiate(std::size_t i, const Gather& g) { add_rows(f_[i], g.rows, g.width, g.activation); }
  // Gradients of rows that were looked up, added to those of the table.
  void add_rows(const Op& op, std::int64_t rows, std::int64_t width, Dtype activation) {
    const double sum = options_.gradient_bits / bits(activation);
    push(op, names_of(op.name).wgrad,
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
    push(f_[i], names_of(f_[i].name).backward, d);
  }
  void differentiate(std::size_t, const Transfer&) {
    throw std::logic_error("internal error: training keeps everything on the device");
  }
  void differentiate(std::size_t, const Convolution&) {
    throw std::logic_error("internal error: training knows decoders, which have no convolutions");
  }
  void differentiate(std::size_t, const Overhead&) {}  // of a step, not of its passes
  void differentiate(std::size_t i, const Collective& c) {
    const Op& op = f_[i];
    const std::string_view name = names_of(op.name).backward;
    Collective d = c;
    switch (c.kind) {
      case CollectiveKind::all_gather:
        // Experts of a replicated residual stream work on a share of the tokens; what was gathered is cut again, and
        // the gradients of the shares are gathered.
        if (op.name == "experts_gather") {
          push(op, name, d);
          return;
        }
        d.kind = CollectiveKind::reduce_scatter;
        push(op, name, d).overlaps = options_.overlapped_sums;  // beside the wgrad before it
        return;
      case CollectiveKind::reduce_scatter:
        d.kind = CollectiveKind::all_gather;
        push(op, name, d);
        return;
      case CollectiveKind::all_reduce:
        if (op.name == "norm_statistics") {
          push(op, name, d);
        } else if (op.layer_kind >= 0) {
          pending_ = &op;
        }
        return;  // of the embedding: with lm_head; of the loss: none
      case CollectiveKind::ring_pass: ring_ = &op; return;
      case CollectiveKind::all_to_all:  // gradients of tokens travel as results do, and the reverse
        if (c.routing.experts > 0) std::swap(d.element, d.routing.back);
        push(op, name, d);
        return;
      case CollectiveKind::send: push(op, name, d); return;
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

bool recomputed(const Op& op, Recompute recompute) {
  if (op.layer_kind < 0 || recompute == Recompute::none) return false;
  if (recompute == Recompute::full) return !keeps_layer_input(op.name);
  const auto* v = std::get_if<Vector>(&op.body);
  return v && (v->kind == VectorKind::softmax || op.name == "scores_dropout");
}

}  // namespace llmperf::graph
