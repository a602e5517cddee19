// Element-wise and row-wise ops. Operands and results are apart and single, as the activations of a model are: what the
// op before wrote, the cache still has where it is large enough.
#include <fmt/format.h>

#include <algorithm>
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

VectorPlan plan_of(const calibrate::VectorShape& shape, Element element) {
  const calibrate::KnownLayer* layer = calibrate::known_layer(shape.layer);
  const calibrate::VectorOp* op = calibrate::vector_op(shape.layer);
  require(layer != nullptr || op != nullptr, fmt::format("no kernel for vector:{}", shape.layer));
  VectorPlan plan{.kind = layer ? layer->kind : op->kind,
                  .rows = shape.tokens,
                  .width = layer && shape.width == 0 ? layer->width : shape.width,
                  .heads = shape.heads,
                  .kv_heads = shape.kv_heads};
  // An embedding, too: rows are read and written.
  plan.copy = layer ? layer->kind == VectorKind::add && layer->reads < 2 : op->kind == VectorKind::elementwise;
  const double copied =
      2 * static_cast<double>(shape.tokens) * static_cast<double>(shape.width) * static_cast<double>(bytes_of(element));
  require(layer || !plan.copy || shape.bytes.value <= 0 || shape.bytes.value == copied,
          "only a copy stands for element-wise work, and this one moves other bytes");
  require(plan.rows >= 1 && plan.width >= 1, "rows and width must be positive");
  if (plan.kind == VectorKind::rope) {
    const std::int64_t heads = plan.heads + plan.kv_heads;
    require(plan.width % 2 == 0, fmt::format("heads of {} elements have no halves", plan.width));
    require(heads == 0 || plan.rows % heads == 0,
            fmt::format("{} rows are not whole tokens of {} heads", plan.rows, heads));
  }
  return plan;
}

void add_rope_passes(VectorOperation& op, const VectorPlan& plan, const RowKernels& kernels) {
  const std::int64_t all = plan.heads + plan.kv_heads;
  const std::int64_t tokens = all > 0 ? plan.rows / all : plan.rows;
  const float* rotation = op.rotation(tokens, plan.width);
  for (const std::int64_t h : {all > 0 ? plan.heads : 1, plan.kv_heads}) {
    if (h == 0) continue;
    RowArgs args{.width = plan.width, .heads = h, .rotation = rotation};
    args.in[0] = op.operand({.count = tokens * h * plan.width});
    args.out[0] = op.result(tokens * h * plan.width);
    op.add_pass({.kernel = kernels.rope, .extent = tokens * h, .args = args});
  }
}

// What one pass reads and writes besides x and the result, which are both [rows, width].
enum Takes : unsigned {
  kRows = 1,  // the kernel goes by rows, else by elements of the result
  kPair = 2,  // a second operand like x; of a kernel by rows a second result, too
  kGamma = 4,
  kBeta = 8,
  kTwice = 16  // x is twice as wide as the result
};
struct SimpleOp {
  VectorKind kind;
  RowKernel RowKernels::*kernel;
  unsigned takes = 0;
};
constexpr SimpleOp kSimpleOps[] = {
    {VectorKind::rms_norm, &RowKernels::rms_norm, kRows | kGamma},
    {VectorKind::layer_norm, &RowKernels::layer_norm, kRows | kGamma | kBeta},
    {VectorKind::add_rms_norm, &RowKernels::add_rms_norm, kRows | kPair | kGamma},
    {VectorKind::add_layer_norm, &RowKernels::add_layer_norm, kRows | kPair | kGamma | kBeta},
    {VectorKind::softmax, &RowKernels::softmax, kRows},
    {VectorKind::sampling, &RowKernels::argmax, kRows},
    {VectorKind::add, &RowKernels::add, kPair},
    {VectorKind::multiply, &RowKernels::multiply, kPair},
    {VectorKind::activation, &RowKernels::silu},
    {VectorKind::gated_activation, &RowKernels::gated_silu, kTwice},
};

void add_simple_pass(VectorOperation& op, const VectorPlan& plan, RowKernel kernel, unsigned takes) {
  const std::int64_t count = plan.rows * plan.width;
  const bool by_rows = (takes & kRows) != 0;
  Pass pass{
      .kernel = kernel, .by_elements = !by_rows, .extent = by_rows ? plan.rows : count, .args = {.width = plan.width}};
  std::size_t inputs = 0;
  pass.args.in[inputs++] = op.operand({.count = (takes & kTwice) != 0 ? 2 * count : count});
  if ((takes & kPair) != 0) pass.args.in[inputs++] = op.operand({.count = count});
  if ((takes & kGamma) != 0) pass.args.in[inputs++] = op.operand({.count = plan.width, .gamma = true});
  if ((takes & kBeta) != 0) pass.args.in[inputs++] = op.operand({.count = plan.width, .beta = true});
  if (plan.kind == VectorKind::sampling) op.indices();
  pass.args.out[0] = op.result(plan.kind == VectorKind::sampling ? plan.rows : count);
  if (by_rows && (takes & kPair) != 0) pass.args.out[1] = op.result(count);
  op.add_pass(pass);
}

}  // namespace

Operated make_vector(const Workshop& shop, Dtype dtype, const calibrate::VectorShape& shape) {
  const Element type = element_of(dtype, "vector:" + shape.layer);
  const VectorPlan plan = plan_of(shape, type);
  shop.copies(1, 0, bytes_of_tensor({5, plan.rows, plan.width}, Element::f32));  // fits

  const RowKernels& kernels = type == Element::f32 ? shop.kernels->f32 : shop.kernels->bf16;
  auto op = std::make_unique<VectorOperation>(shop, type);
  if (plan.copy) {
    add_simple_pass(*op, plan, type == Element::f32 ? copy_elements<4> : copy_elements<2>, 0);
  } else if (plan.kind == VectorKind::rope) {
    add_rope_passes(*op, plan, kernels);
  } else {
    const auto* simple = std::find_if(std::begin(kSimpleOps), std::end(kSimpleOps),
                                      [&](const SimpleOp& row) { return row.kind == plan.kind; });
    require(simple != std::end(kSimpleOps), fmt::format("no kernel for vector:{}", shape.layer));
    add_simple_pass(*op, plan, kernels.*simple->kernel, simple->takes);
  }
  return op;
}

}  // namespace llmperf::replay::cpu
