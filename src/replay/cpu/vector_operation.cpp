// Element-wise and row-wise ops. Operands and results are apart and single, as the activations of a model are: what the
// op before wrote, the cache still has where it is large enough.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>

#include "replay/cpu/operation.h"
#include "replay/operands.h"

namespace llmperf::replay::cpu {
namespace {

using graph::VectorKind;

constexpr std::int64_t kElementGrain = 512;  // a share of elements is whole cache lines of any type

// A tensor that the op reads: `count` elements.
struct Operand {
  std::int64_t count;
  bool gamma = false;  // 1 + fill_value / 8
  bool beta = false;   // fill_value / 8
};

// What one kernel call works on.
struct Pass {
  RowKernel kernel = nullptr;
  bool by_elements = false;
  std::int64_t extent = 0;  // rows or elements
  RowArgs args;
};

class VectorOperation final : public Operation {
 public:
  VectorOperation(const Workshop& shop, Element element) : Operation(1), pool_(shop.pool), element_(element) {}

  const void* operand(const Operand& o) {
    Fill fill{.operand = static_cast<std::uint32_t>(inputs_)};
    if (o.gamma || o.beta) fill.scale = 0.125F;
    if (o.gamma) fill.offset = 1;
    inputs_ += 1;
    return keep(filled(*pool_, element_, o.count, 1, fill));
  }
  void* result(std::int64_t count) {
    results_.emplace_back(buffers_.size(), count);
    return keep(zeroed(*pool_, count * 4));
  }
  void indices() { indices_ = true; }  // the result is of std::int32_t
  const float* rotation(std::int64_t positions, std::int64_t width) {
    Buffer table = zeroed(*pool_, positions * width * 4);
    auto* values = table.as<float>();
    const std::int64_t half = width / 2;
    for (std::int64_t i = 0; i < half; ++i) {
      const double step = std::pow(kRopeBase, -2.0 * static_cast<double>(i) / static_cast<double>(width));
      for (std::int64_t t = 0; t < positions; ++t) {
        values[t * width + i] = static_cast<float>(std::cos(static_cast<double>(t) * step));
        values[t * width + half + i] = static_cast<float>(std::sin(static_cast<double>(t) * step));
      }
    }
    return static_cast<const float*>(keep(std::move(table)));
  }
  void add_pass(const Pass& pass) { passes_.push_back(pass); }

  void execute(const Team& team, std::int64_t) override {
    for (const Pass& pass : passes_) {
      const Range share = part_of(pass.extent, pass.by_elements ? kElementGrain : 1, team.thread, team.threads);
      if (share.size() > 0) pass.kernel(pass.args, share.first, share.last);
    }
  }

  std::vector<float> read() const override {
    std::vector<float> values;
    for (const auto& [buffer, count] : results_) {
      const std::byte* from = buffers_[buffer].data();
      if (indices_) {
        const auto* numbers = reinterpret_cast<const std::int32_t*>(from);
        for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(numbers[i]));
      } else {
        append_floats(values, from, element_, count);
      }
    }
    return values;
  }

 private:
  void* keep(Buffer buffer) {
    buffers_.push_back(std::move(buffer));
    return buffers_.back().data();
  }

  ThreadPool* pool_;
  Element element_;
  std::vector<Buffer> buffers_;
  std::vector<std::pair<std::size_t, std::int64_t>> results_;  // number of the buffer, elements
  std::vector<Pass> passes_;
  int inputs_ = 0;
  bool indices_ = false;
};

template <std::size_t size>
void copy_elements(const RowArgs& args, std::int64_t first, std::int64_t last) {
  std::memcpy(static_cast<std::byte*>(args.out[0]) + static_cast<std::size_t>(first) * size,
              static_cast<const std::byte*>(args.in[0]) + static_cast<std::size_t>(first) * size,
              static_cast<std::size_t>(last - first) * size);
}

// A shape with its width, and the kernel it asks for.
struct VectorPlan {
  VectorKind kind;
  bool copy = false;
  std::int64_t rows;
  std::int64_t width;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
};

std::variant<VectorPlan, Unavailable> plan_of(const calibrate::VectorShape& shape, Element element) {
  VectorPlan plan{.kind = VectorKind::elementwise,
                  .rows = shape.tokens,
                  .width = shape.width,
                  .heads = shape.heads,
                  .kv_heads = shape.kv_heads};
  if (const calibrate::KnownLayer* layer = calibrate::known_layer(shape.layer); layer != nullptr) {
    plan.kind = layer->kind;
    if (plan.width == 0) plan.width = layer->width;
    plan.copy = layer->kind == VectorKind::add && layer->reads < 2;  // an embedding: rows are read and written
  } else if (const calibrate::VectorOp* op = calibrate::vector_op(shape.layer); op != nullptr) {
    plan.kind = op->kind;
    plan.copy = op->kind == VectorKind::elementwise;
    const double copied = 2 * static_cast<double>(shape.tokens) * static_cast<double>(shape.width) *
                          static_cast<double>(bytes_of(element));
    if (plan.copy && shape.bytes.value > 0 && shape.bytes.value != copied) {
      return Unavailable{"only a copy stands for element-wise work, and this one moves other bytes"};
    }
  } else {
    return Unavailable{fmt::format("no kernel for vector:{}", shape.layer)};
  }
  if (plan.rows < 1 || plan.width < 1) return Unavailable{"rows and width must be positive"};
  if (plan.kind == VectorKind::rope) {
    const std::int64_t heads = plan.heads + plan.kv_heads;
    if (plan.width % 2 != 0) return Unavailable{fmt::format("heads of {} elements have no halves", plan.width)};
    if (heads > 0 && plan.rows % heads != 0) {
      return Unavailable{fmt::format("{} rows are not whole tokens of {} heads", plan.rows, heads)};
    }
  }
  return plan;
}

void add_norm_passes(VectorOperation& op, const VectorPlan& plan, const RowKernels& kernels) {
  const std::int64_t count = plan.rows * plan.width;
  const bool added = plan.kind == VectorKind::add_rms_norm || plan.kind == VectorKind::add_layer_norm;
  const bool centred = plan.kind == VectorKind::layer_norm || plan.kind == VectorKind::add_layer_norm;
  RowArgs args{.width = plan.width};
  std::size_t inputs = 0;
  args.in[inputs++] = op.operand({.count = count});
  if (added) args.in[inputs++] = op.operand({.count = count});
  args.in[inputs++] = op.operand({.count = plan.width, .gamma = true});
  if (centred) args.in[inputs++] = op.operand({.count = plan.width, .beta = true});
  args.out[0] = op.result(count);
  if (added) args.out[1] = op.result(count);
  const RowKernel kernel = added ? (centred ? kernels.add_layer_norm : kernels.add_rms_norm)
                                 : (centred ? kernels.layer_norm : kernels.rms_norm);
  op.add_pass({.kernel = kernel, .extent = plan.rows, .args = args});
}

void add_rope_passes(VectorOperation& op, const VectorPlan& plan, const RowKernels& kernels) {
  const std::int64_t all = plan.heads + plan.kv_heads;
  const std::int64_t tokens = all > 0 ? plan.rows / all : plan.rows;
  const float* rotation = op.rotation(tokens, plan.width);
  const std::array<std::int64_t, 2> heads = {all > 0 ? plan.heads : 1, plan.kv_heads};
  for (const std::int64_t h : heads) {
    if (h == 0) continue;
    RowArgs args{.width = plan.width, .heads = h, .rotation = rotation};
    args.in[0] = op.operand({.count = tokens * h * plan.width});
    args.out[0] = op.result(tokens * h * plan.width);
    op.add_pass({.kernel = kernels.rope, .extent = tokens * h, .args = args});
  }
}

// One pass over elements or rows, of one or two operands as large as the result; gated: one twice as large.
void add_simple_pass(VectorOperation& op, const VectorPlan& plan, const RowKernels& kernels, Element element) {
  const std::int64_t count = plan.rows * plan.width;
  Pass pass{.by_elements = true, .extent = count, .args = {.width = plan.width}};
  const bool pair = !plan.copy && (plan.kind == VectorKind::add || plan.kind == VectorKind::multiply);
  pass.args.in[0] = op.operand({.count = plan.kind == VectorKind::gated_activation ? 2 * count : count});
  if (pair) pass.args.in[1] = op.operand({.count = count});
  if (plan.kind == VectorKind::sampling) op.indices();
  pass.args.out[0] = op.result(plan.kind == VectorKind::sampling ? plan.rows : count);
  if (plan.copy) {
    pass.kernel = element == Element::f32 ? copy_elements<4> : copy_elements<2>;
  } else if (plan.kind == VectorKind::softmax || plan.kind == VectorKind::sampling) {
    pass.by_elements = false;
    pass.extent = plan.rows;
    pass.kernel = plan.kind == VectorKind::softmax ? kernels.softmax : kernels.argmax;
  } else if (plan.kind == VectorKind::activation) {
    pass.kernel = kernels.silu;
  } else if (plan.kind == VectorKind::gated_activation) {
    pass.kernel = kernels.gated_silu;
  } else {
    pass.kernel = plan.kind == VectorKind::add ? kernels.add : kernels.multiply;
  }
  op.add_pass(pass);
}

}  // namespace

Operated make_vector(const Workshop& shop, Dtype dtype, const calibrate::VectorShape& shape) {
  const auto element = element_of(dtype, "vector:" + shape.layer);
  if (const auto* reason = std::get_if<Unavailable>(&element)) return *reason;
  const Element type = std::get<Element>(element);
  const auto planned = plan_of(shape, type);
  if (const auto* reason = std::get_if<Unavailable>(&planned)) return *reason;
  const auto& plan = std::get<VectorPlan>(planned);
  const auto bytes = bytes_of_tensor({5, plan.rows, plan.width}, Element::f32);
  if (!bytes) return Unavailable{"not a shape that fits in any memory"};
  const auto fits = shop.copies(1, 0, *bytes);
  if (const auto* reason = std::get_if<Unavailable>(&fits)) return *reason;

  const RowKernels& kernels = type == Element::f32 ? shop.kernels->f32 : shop.kernels->bf16;
  auto op = std::make_unique<VectorOperation>(shop, type);
  switch (plan.kind) {
    case VectorKind::rms_norm:
    case VectorKind::layer_norm:
    case VectorKind::add_rms_norm:
    case VectorKind::add_layer_norm: add_norm_passes(*op, plan, kernels); break;
    case VectorKind::rope: add_rope_passes(*op, plan, kernels); break;
    case VectorKind::add:
    case VectorKind::multiply:
    case VectorKind::activation:
    case VectorKind::gated_activation:
    case VectorKind::softmax:
    case VectorKind::sampling:
    case VectorKind::elementwise: add_simple_pass(*op, plan, kernels, type); break;
    default: return Unavailable{fmt::format("no kernel for vector:{}", shape.layer)};
  }
  return op;
}

}  // namespace llmperf::replay::cpu
