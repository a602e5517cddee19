// What the builders of a video generation write ops with: kernels on tensors, products, and how a plan divides them.
// Internal to src/graph.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "graph/stdit_graph.h"

namespace llmperf::graph {

// One element-wise kernel on tensors of a shape: how many of them it reads and writes in the activation type (narrow)
// and in fp32 (wide).
struct Kernel {
  std::string_view name;
  VectorKind kind = VectorKind::add;
  Access access = Access::dense;
  double narrow_reads = 1;
  double wide_reads = 0;
  double narrow_writes = 1;
  double wide_writes = 0;
};

class VideoWriter {
 public:
  VideoWriter(const VideoExecution& execution, Graph& graph)
      : e_(execution), m_(*execution.model), o_(execution.runtime), p_(execution.plan), graph_(graph) {
    graph_.clear();
  }

 protected:
  Op& push(std::string_view name, const OpBody& body, std::int32_t launches = 1) {
    graph_.push_back(
        Op{.name = name, .count = count_, .layer_kind = static_cast<int>(layer_), .launches = launches, .body = body});
    return graph_.back();
  }
  // `launches` kernels alike are one op with their traffic together.
  void run(const Kernel& k, double rows, std::int64_t width, Dtype activation, std::int32_t launches = 1) {
    const double wide = 32 / bits(activation);
    push(k.name,
         Vector{.kind = k.kind,
                .rows = static_cast<std::int64_t>(rows),
                .width = width,
                .reads = (k.narrow_reads + k.wide_reads * wide) * launches,
                .writes = (k.narrow_writes + k.wide_writes * wide) * launches,
                .activation = activation,
                .access = k.access},
         launches);
  }
  void run(const Kernel& k, double rows, std::int64_t width, std::int32_t launches = 1) {
    run(k, rows, width, e_.activations, launches);
  }
  // Elements moved, and converted on the way when the types differ.
  void copy(std::string_view name, double elements, Access access, Dtype from, Dtype to, std::int32_t launches = 1) {
    push(name,
         Copy{.read_elements = elements,
              .write_elements = elements,
              .from = model::element_format(from),
              .to = model::element_format(to),
              .access = access},
         launches);
  }
  void product(std::string_view name, std::int64_t rows, std::int64_t n, std::int64_t k, bool bias,
               const model::StoredFormat& format, Dtype activation) {
    Gemm g{.m = rows, .n = n, .k = k, .activation = activation, .weights = &format, .bias = bias};
    g.joined.input = std::exchange(modulation_, std::nullopt);
    push(name, g);
  }

  // ---- Vector work that products take over (RuntimeOptions::joined_vectors).
  bool joins() const { return o_.joined_vectors && !eager() && p_.tensor_rows == 0; }
  // On what the next op, a product, reads.
  void run_before_product(const Kernel& k, double rows, std::int64_t width) {
    if (joins()) {
      modulation_ = k.kind;
    } else {
      run(k, rows, width);
    }
  }
  // On the results of the product just written, if that is what was written.
  void run_after_product(const Kernel& k, double rows, std::int64_t width) {
    Gemm* g = joins() ? std::get_if<Gemm>(&graph_.back().body) : nullptr;
    if (g && static_cast<double>(g->m) == rows && g->n == width && !g->joined.output) {
      g->joined.output = k.kind;
      g->joined.reads = k.narrow_reads - 1;
    } else {
      run(k, rows, width);
    }
  }
  bool eager() const { return o_.chains != hardware::Chains::one_kernel; }

  const VideoExecution& e_;
  const model::VideoDit& m_;
  const hardware::RuntimeOptions& o_;
  const Plan& p_;
  Graph& graph_;
  std::int64_t count_ = 1;
  VideoLayer layer_ = VideoLayer::outside;
  std::optional<VectorKind> modulation_;  // waits for the product that takes it over
};

}  // namespace llmperf::graph
