// What the builders of ops write alike: where an op is in the model, vector work, copies, and what a plan makes of a
// product and of the residual stream around it. An op is of the part, the layers and the place that the writer is at.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/integer.h"
#include "graph/op.h"
#include "graph/plan.h"
#include "hardware/runtime.h"

namespace llmperf::graph {

// An op is called by its tag, or by a name among the ops of a part (StepWriter::part_).
struct Label {
  Label(Tag t) : tag(t), name(graph::name(t)) {}        // NOLINT(google-explicit-constructor)
  Label(std::string_view n) : name(n) {}                // NOLINT(google-explicit-constructor)
  Label(const char* n) : Label(std::string_view(n)) {}  // NOLINT(google-explicit-constructor)
  Tag tag = Tag::none;
  std::string_view name;
};

// How a matrix is divided over the tensor axis: not at all, its outputs n, or its inputs k. `n` and `k` are those of
// one device.
enum class Split : unsigned char { none, outputs, inputs };

class StepWriter {
 protected:
  // Replaces the contents of `graph`. `residual_ranks`: devices of the tensor axis that the residual stream of `hidden`
  // elements is divided over by tokens.
  StepWriter(const hardware::RuntimeOptions& options, const Plan& plan, Dtype activations, std::int64_t hidden,
             std::int64_t residual_ranks, Graph& graph)
      : o_(options),
        p_(plan),
        activations_(activations),
        hidden_(hidden),
        residual_ranks_(residual_ranks),
        graph_(graph) {
    graph_.clear();
  }

  // An op whose body is to be filled in: a product, as long as it is no other.
  Op& append(const Label& label) {
    Op& op = graph_.emplace_back();
    op.tag = label.tag == Tag::none ? part_ : label.tag;
    op.name = label.name;
    op.count = count_ * times_;
    op.layer_kind = kind_;
    op.layers = layers_;
    op.place = place_;
    op.scope = scope_;
    op.group = group_number_;
    op.grows_with_context = grows_;
    op.on_experts = on_experts_;
    return op;
  }
  Op& push(const Label& label, const OpBody& body) {
    Op& op = append(label);
    op.body = body;
    return op;
  }
  void vector(const Label& label, VectorKind kind, std::int64_t rows, std::int64_t width, double reads, double writes,
              std::int64_t parameters = 0) {
    push(label, Vector{.kind = kind,
                       .rows = rows,
                       .width = width,
                       .reads = reads,
                       .writes = writes,
                       .parameters = vector_bytes(parameters),
                       .activation = activations_});
  }
  Bytes vector_bytes(std::int64_t parameters) const { return Bytes{d(parameters) * vector_bits_ / 8}; }
  Copy copy_of(double elements) const {
    return {.read_elements = elements, .write_elements = elements, .from = element_, .to = element_};
  }

  // ---- Between devices. A collective among one device is none.
  Op* exchange(const Label& label, CollectiveKind kind, Axis axis, std::int64_t ranks, double rows, double width) {
    if (ranks == 1) return nullptr;
    const Place here = std::exchange(place_, Place::network);
    Op& op = push(label, Collective{.kind = kind,
                                    .axis = axis,
                                    .ranks = ranks,
                                    .stride = p_.stride(axis),
                                    .rows = rows,
                                    .width = width,
                                    .element = element_});
    place_ = here;
    return &op;
  }
  bool two_dimensional() const { return p_.tensor_rows > 0; }
  // Of `tokens`, those of the residual stream on one device, and its width there.
  std::int64_t residual_of(std::int64_t tokens) const { return (tokens + residual_ranks_ - 1) / residual_ranks_; }
  std::int64_t residual_width() const { return two_dimensional() ? hidden_ / p_.tensor : hidden_; }
  // Sequence parallelism: the tokens of all ranks, before matrices divided by columns.
  void gather_tokens(const Label& label, std::int64_t rows) {
    if (residual_ranks_ == 1) return;
    exchange(label, CollectiveKind::all_gather, Axis::tensor, p_.tensor, d(rows), d(hidden_));
  }
  // The summands of all ranks, after matrices divided by rows.
  Op* reduce_tokens(const Label& all_reduce, const Label& scatter, std::int64_t rows) {
    if (two_dimensional()) return nullptr;
    const bool scatters = residual_ranks_ > 1;
    return exchange(scatters ? scatter : all_reduce,
                    scatters ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, Axis::tensor, p_.tensor,
                    d(rows), d(hidden_));
  }
  // Weights over rows x columns of devices (docs/formulas.md, Plans): the input [rows, K / (rows columns)] of each is
  // gathered along the columns (`gathers`: unless it is there already), the partial products [rows, N / columns] of
  // `multiply(n, k)` are reduce-scattered along the rows.
  template <class Multiply>
  void over_rows_and_columns(Split split, std::int64_t rows, std::int64_t n, std::int64_t k, bool gathers,
                             Multiply&& multiply) {
    const std::int64_t columns = p_.tensor_columns();
    const std::int64_t part_n = split == Split::outputs ? n * p_.tensor_rows : n / columns;
    const std::int64_t part_k = split == Split::outputs ? k / p_.tensor_rows : k * columns;
    if (gathers) {
      exchange(Tag::gather_columns, CollectiveKind::all_gather, Axis::tensor_columns, columns, d(rows), d(part_k));
    }
    multiply(part_n, part_k);
    exchange(Tag::reduce_rows, CollectiveKind::reduce_scatter, Axis::tensor_rows, p_.tensor_rows, d(rows), d(part_n));
  }

  const hardware::RuntimeOptions& o_;
  const Plan& p_;
  Dtype activations_;
  model::ElementFormat element_ = model::element_format(activations_);
  double vector_bits_ = 16;  // of biases and norms
  std::int64_t hidden_;
  std::int64_t residual_ranks_;
  Graph& graph_;
  // Of the op being written.
  Tag part_ = Tag::none;
  std::int64_t count_ = 1;
  std::int64_t times_ = 1;  // micro-batches that are like this one
  int kind_ = -1;
  std::int16_t layers_ = -1;
  Place place_ = Place::device;
  Scope scope_ = Scope::rows;
  std::int16_t group_number_ = 0;  // of the step's groups
  bool grows_ = false;             // with the context
  bool on_experts_ = false;        // Op::on_experts
};

}  // namespace llmperf::graph
