#include "mapper/tile/dataflow.h"

#include <array>
#include <variant>

#include "base/integer.h"

namespace llmperf::mapper::tile {
namespace {

using graph::Tag;

// What a layer works on.
enum Name : std::size_t { kStream, kCurrent, kQueries, kKeys, kValues, kGate, kUp, kNames };
constexpr std::size_t kNone = ~std::size_t{0};

class Walk {
 public:
  explicit Walk(std::span<const graph::Op* const> ops) : ops_(ops) { forget(); }

  std::vector<Tensor> run() {
    for (at_ = 0; at_ < ops_.size(); ++at_) {
      const graph::Op& op = *ops_[at_];
      if (at_ > 0 && op.layer_kind != ops_[at_ - 1]->layer_kind) end_layer();
      if (op.place != graph::Place::device || op.pass != graph::Pass::forward || !step(op)) leave();
    }
    end_layer();
    std::erase_if(tensors_, [](const Tensor& t) { return t.uses.empty(); });
    return std::move(tensors_);
  }

 private:
  // False: it is not known what the op reads.
  bool step(const graph::Op& op) {
    if (const auto* g = std::get_if<graph::Gemm>(&op.body)) return product(op.tag, *g);
    if (const auto* a = std::get_if<graph::Attention>(&op.body)) return attention(op.tag, *a);
    if (const auto* v = std::get_if<graph::Vector>(&op.body)) return vector(op.tag, *v);
    if (const auto* c = std::get_if<graph::Copy>(&op.body)) return write_cache(op.tag, *c);
    return false;
  }

  bool product(Tag tag, const graph::Gemm& g) {
    if (g.weights == nullptr || g.batch > 1 || g.weight_matrices > 1) return false;
    // Of products with the same input the later ones read what the first did.
    const bool again = tag == Tag::k_proj || tag == Tag::v_proj || (tag == Tag::up_proj && names_[kGate] != kNone);
    const bool adds = g.joined.output == graph::VectorKind::add && g.joined.reads == 1;
    if (g.joined.reads > 0 && !adds) return false;
    const std::size_t input = again ? input_ : names_[kCurrent];
    input_ = input;
    read(input, d(g.m) * d(g.k));
    if (adds) read(names_[kStream], d(g.m) * d(g.n), true);
    const std::size_t result = write(d(g.m) * d(g.n - g.joined.cached) * g.joined.results);
    switch (tag) {
      case Tag::qkv_proj:
        names_[kQueries] = names_[kKeys] = names_[kValues] = result;
        cached_ = g.joined.cached > 0;
        return true;
      case Tag::q_proj: names_[kQueries] = result; return true;
      case Tag::k_proj: names_[kKeys] = result; return true;
      case Tag::v_proj: names_[kValues] = result; return true;
      case Tag::gate_proj: names_[kGate] = result; return true;
      case Tag::up_proj: names_[names_[kGate] == kNone ? kCurrent : kUp] = result; return true;
      case Tag::o_proj:
      case Tag::gate_up_proj:
      case Tag::down_proj:
        names_[kCurrent] = result;
        if (adds) names_[kStream] = result;
        return true;
      default: return false;
    }
  }

  bool attention(Tag tag, const graph::Attention& a) {
    if (tag != Tag::attention || a.backward || a.shared_kv || a.query_ranks > 1 || a.key_ranks > 1) return false;
    read(names_[kQueries], d(a.sequences) * d(a.q_tokens) * d(a.heads) * d(a.qk_dim));
    if (!cached_) {  // keys and values come from where they were left
      leave(kKeys);
      leave(kValues);
    }
    names_[kQueries] = names_[kKeys] = names_[kValues] = kNone;
    names_[kCurrent] = write(d(a.sequences) * d(a.q_tokens) * d(a.heads) * d(a.v_dim));
    return true;
  }

  bool vector(Tag tag, const graph::Vector& v) {
    const double elements = d(v.rows) * d(v.width);
    switch (tag) {
      case Tag::input_norm:
      case Tag::mlp_norm:
      case Tag::next_norm:
        read(names_[kStream], elements);
        names_[kCurrent] = write(elements);
        return v.reads == 1 && v.writes == 1;
      case Tag::post_attention_norm:
      case Tag::post_mlp_norm:
        read(names_[kCurrent], elements);
        names_[kCurrent] = write(elements);
        return v.reads == 1 && v.writes == 1;
      case Tag::attention_add:
      case Tag::mlp_add:
      case Tag::attention_add_norm:
      case Tag::mlp_add_norm:
        if (v.reads != 2) return false;
        read(names_[kCurrent], elements);
        read(names_[kStream], elements);
        names_[kStream] = names_[kCurrent] = write(elements);
        if (v.writes == 2) names_[kCurrent] = write(elements);
        return true;
      case Tag::q_norm:
      case Tag::rope_q: return in_place(kQueries, v);
      case Tag::k_norm:
      case Tag::rope_k: return in_place(kKeys, v);
      case Tag::rope: return names_[kQueries] == names_[kKeys] && in_place(kQueries, v);
      case Tag::activation:
        if (v.kind == graph::VectorKind::gated_activation && names_[kGate] != kNone) {
          read(names_[kGate], elements);
          read(names_[kUp], elements);
          names_[kGate] = names_[kUp] = kNone;
          names_[kCurrent] = write(elements);
        } else {
          std::size_t& input = names_[names_[kGate] != kNone ? kGate : kCurrent];
          read(input, elements * v.reads);
          input = write(elements);
        }
        return v.writes == 1;
      case Tag::multiply_gate:
        read(names_[kGate], elements);
        read(names_[kUp], elements);
        names_[kGate] = names_[kUp] = kNone;
        names_[kCurrent] = write(elements);
        return v.reads == 2 && v.writes == 1;
      default: return false;
    }
  }
  bool in_place(Name name, const graph::Vector& v) {
    if (v.reads != 1 || v.writes != 1) return false;
    read(names_[name], d(v.rows) * d(v.width), false, true);
    return true;
  }

  bool write_cache(Tag tag, const graph::Copy& c) {
    if (!c.to_cache || c.from_cache) return false;
    cached_ = true;
    if (tag == Tag::k_write) return read(names_[kKeys], c.read_elements), true;
    if (tag == Tag::v_write) return read(names_[kValues], c.read_elements), true;
    if (tag != Tag::kv_write) return false;
    if (names_[kKeys] == names_[kValues]) return read(names_[kKeys], c.read_elements), true;
    read(names_[kKeys], c.read_elements / 2);
    read(names_[kValues], c.read_elements / 2);
    return true;
  }

  void read(std::size_t tensor, double elements, bool residual = false, bool in_place = false) {
    if (tensor == kNone) return;
    Tensor& t = tensors_[tensor];
    // What runs another number of times, or reads more than there is, reads something else besides.
    if (elements > t.elements * (1 + 1e-9) || ops_[at_]->count != ops_[t.op]->count) {
      t.leaves = true;
      return;
    }
    t.uses.push_back({at_, elements, residual, in_place});
  }
  std::size_t write(double elements) {
    tensors_.push_back({at_, elements});
    return tensors_.size() - 1;
  }
  void leave(Name name) {
    if (names_[name] != kNone) tensors_[names_[name]].leaves = true;
    names_[name] = kNone;
  }
  // The next layer goes on with what there is.
  void end_layer() {
    for (std::size_t name = 0; name < kNames; ++name) leave(static_cast<Name>(name));
    forget();
  }
  // An op that is not known may read all of that, and what the product before it read.
  void leave() {
    if (input_ != kNone) tensors_[input_].leaves = true;
    end_layer();
  }
  void forget() {
    names_.fill(kNone);
    input_ = kNone;
    cached_ = false;
  }

  std::span<const graph::Op* const> ops_;
  std::size_t at_ = 0;
  std::vector<Tensor> tensors_;
  std::array<std::size_t, kNames> names_ = {};  // the tensor of each
  std::size_t input_ = kNone;                   // of the product before
  bool cached_ = false;                         // new keys and values are in the cache
};

}  // namespace

std::vector<Tensor> tensors_of(std::span<const graph::Op* const> ops) { return Walk(ops).run(); }

}  // namespace llmperf::mapper::tile
