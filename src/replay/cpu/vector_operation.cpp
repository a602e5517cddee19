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

// What one kernel call works on.
struct Pass {
  RowKernel kernel = nullptr;
  std::int64_t extent = 0;  // rows or elements
  std::int64_t grain = 1;
  RowArgs args;
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

VectorPlan plan_of(const measure::VectorShape& shape, Element element) {
  const measure::KnownLayer* layer = measure::known_layer(shape.layer);
  const measure::VectorOp* op = measure::vector_op(shape.layer);
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

// [positions, width]: cosines, then sines.
std::byte* rotation(Operation& op, std::int64_t positions, std::int64_t width) {
  std::byte* table = op.room(positions * width * 4);
  auto* values = reinterpret_cast<float*>(table);
  const std::int64_t half = width / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const double step = std::pow(kRopeBase, -2.0 * static_cast<double>(i) / static_cast<double>(width));
    for (std::int64_t t = 0; t < positions; ++t) {
      values[t * width + i] = static_cast<float>(std::cos(static_cast<double>(t) * step));
      values[t * width + half + i] = static_cast<float>(std::sin(static_cast<double>(t) * step));
    }
  }
  return table;
}

std::vector<Pass> rope_passes(Operation& op, const VectorPlan& plan, Element element, RowKernel kernel) {
  const std::int64_t all = plan.heads + plan.kv_heads;
  const std::int64_t tokens = all > 0 ? plan.rows / all : plan.rows;
  const auto* table = reinterpret_cast<const float*>(rotation(op, tokens, plan.width));
  std::vector<Pass> passes;
  for (const std::int64_t h : {all > 0 ? plan.heads : 1, plan.kv_heads}) {
    if (h == 0) continue;
    RowArgs args{.width = plan.width, .heads = h, .rotation = table};
    args.in[0] = op.input(element, tokens * h * plan.width, {.operand = static_cast<std::uint32_t>(passes.size())});
    args.out[0] = op.output(element, tokens * h * plan.width);
    passes.push_back({.kernel = kernel, .extent = tokens * h, .args = args});
  }
  return passes;
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
  RowKernel TypedKernels::*kernel;
  unsigned takes = 0;
};
constexpr SimpleOp kSimpleOps[] = {
    {VectorKind::rms_norm, &TypedKernels::rms_norm, kRows | kGamma},
    {VectorKind::layer_norm, &TypedKernels::layer_norm, kRows | kGamma | kBeta},
    {VectorKind::add_rms_norm, &TypedKernels::add_rms_norm, kRows | kPair | kGamma},
    {VectorKind::add_layer_norm, &TypedKernels::add_layer_norm, kRows | kPair | kGamma | kBeta},
    {VectorKind::softmax, &TypedKernels::softmax, kRows},
    {VectorKind::sampling, &TypedKernels::argmax, kRows},
    {VectorKind::add, &TypedKernels::add, kPair},
    {VectorKind::multiply, &TypedKernels::multiply, kPair},
    {VectorKind::activation, &TypedKernels::silu},
    {VectorKind::gated_activation, &TypedKernels::gated_silu, kTwice},
};

Pass simple_pass(Operation& op, const VectorPlan& plan, Element element, RowKernel kernel, unsigned takes) {
  const std::int64_t count = plan.rows * plan.width;
  const bool by_rows = (takes & kRows) != 0;
  Pass pass{.kernel = kernel,
            .extent = by_rows ? plan.rows : count,
            .grain = by_rows ? 1 : kElementGrain,
            .args = {.width = plan.width}};
  std::uint32_t inputs = 0;
  const auto add = [&](std::int64_t elements, float scale, float offset) {
    pass.args.in[inputs] = op.input(element, elements, {.operand = inputs, .scale = scale, .offset = offset});
    inputs += 1;
  };
  add((takes & kTwice) != 0 ? 2 * count : count, 1, 0);
  if ((takes & kPair) != 0) add(count, 1, 0);
  if ((takes & kGamma) != 0) add(plan.width, 0.125F, 1);
  if ((takes & kBeta) != 0) add(plan.width, 0.125F, 0);
  const bool indices = plan.kind == VectorKind::sampling;
  pass.args.out[0] = indices ? op.output(Element::s32, plan.rows) : op.output(element, count);
  if (by_rows && (takes & kPair) != 0) pass.args.out[1] = op.output(element, count);
  return pass;
}

}  // namespace

Operated make_vector(const Workshop& shop, Dtype dtype, const measure::VectorShape& shape) {
  const Element type = element_of(dtype, "vector:" + shape.layer);
  const VectorPlan plan = plan_of(shape, type);
  shop.copies(1, 0, bytes_of_tensor({5, plan.rows, plan.width}, Element::f32));  // fits

  const TypedKernels& kernels = shop.kernels->of(type);
  auto op = std::make_unique<Operation>(shop, 1);
  std::vector<Pass> passes;
  if (plan.copy) {
    passes.push_back(simple_pass(*op, plan, type, type == Element::f32 ? copy_elements<4> : copy_elements<2>, 0));
  } else if (plan.kind == VectorKind::rope) {
    passes = rope_passes(*op, plan, type, kernels.rope);
  } else {
    const auto* simple = std::find_if(std::begin(kSimpleOps), std::end(kSimpleOps),
                                      [&](const SimpleOp& row) { return row.kind == plan.kind; });
    require(simple != std::end(kSimpleOps), fmt::format("no kernel for vector:{}", shape.layer));
    passes.push_back(simple_pass(*op, plan, type, kernels.*simple->kernel, simple->takes));
  }
  op->execute = [passes](const Team& team, std::int64_t) {
    for (const Pass& pass : passes) {
      const Range share = part_of(pass.extent, pass.grain, team.thread, team.threads);
      if (share.size() > 0) pass.kernel(pass.args, share.first, share.last);
    }
  };
  return op;
}

}  // namespace llmperf::replay::cpu
