#include "replay/ascend/npu_backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "replay/ascend/ascend_backend.h"

namespace llmperf::replay::ascend {
namespace {

constexpr Seconds kWarmUp{0.05};
constexpr std::chrono::milliseconds kIdle{500};                   // after which the device is taken to have cooled down
constexpr std::int64_t kLargestCache = std::int64_t{192} << 20U;  // of a 910B, where the device does not say

}  // namespace

NpuBackend::NpuBackend(std::shared_ptr<const cann::Functions> cann, int device, Seconds warm_up)
    : cann_(std::move(cann)),
      runtime_(*cann_),
      device_(*cann_, device),
      facts_(read_facts(*cann_, device)),
      warm_up_(warm_up) {}

NpuBackend::~NpuBackend() = default;

Description NpuBackend::describe() const { return ascend::describe(*cann_, facts_, device_.id()); }

std::unique_ptr<Op> NpuBackend::make(const calibrate::OpRow& row, std::int64_t copies) {
  const Rotation rotation(copies, facts_.l2_bytes.value_or(kLargestCache));
  if (const auto* s = std::get_if<calibrate::CollectiveShape>(&row.shape)) {
    require_collective(*cann_, *s, row.dtype);
    return make_collective(group(s->ranks), *s, row.dtype);
  }
  std::unique_ptr<Part> part;
  if (const auto* s = std::get_if<calibrate::GemmShape>(&row.shape); s && s->ranks > 1) {
    const MatmulAllReduceShape shape{s->m, s->n, s->k, s->ranks};
    require_matmul_all_reduce(*cann_, shape, row.dtype);
    return make_matmul_all_reduce(group(shape.ranks), shape, row.dtype);
  }
  if (const auto* s = std::get_if<calibrate::GemmShape>(&row.shape)) {
    part = make_gemm(device_, *s, row.dtype, rotation);
  } else if (const auto* a = std::get_if<calibrate::AttentionShape>(&row.shape)) {
    part = make_attention(device_, *a, row.dtype, rotation);
  } else if (const auto* v = std::get_if<calibrate::VectorShape>(&row.shape)) {
    part = make_vector(device_, *v, row.dtype);
  } else if (const auto* g = std::get_if<calibrate::GatherShape>(&row.shape)) {
    part = make_gather(device_, *g, row.dtype, rotation);
  } else if (const auto* c = std::get_if<calibrate::CacheShape>(&row.shape)) {
    part = make_cache_write(device_, *c, row.dtype);
  }
  require(part != nullptr, fmt::format("the ascend backend does not replay '{}'", row.op));
  return std::make_unique<Op>(std::move(part));
}

std::variant<std::unique_ptr<Prepared>, Unavailable> NpuBackend::prepare(const calibrate::OpRow& op,
                                                                         std::int64_t copies) {
  try {
    return make(op, copies);
  } catch (Refusal& refusal) {
    return Unavailable{std::move(refusal.reason)};
  }
}

RankGroup& NpuBackend::group(std::int64_t ranks) {
  const int present = facts_.devices - device_.id();
  require(ranks <= present, fmt::format("{} ranks need {} NPUs from number {} on, and there are {}", ranks, ranks,
                                        device_.id(), present));
  const int size = static_cast<int>(ranks);
  std::unique_ptr<RankGroup>& found = groups_[size];
  if (!found) found = RankGroup::make(device_, size);
  return *found;
}

RankGroup* NpuBackend::widest(std::span<Op* const> sequence) {
  RankGroup* found = nullptr;
  for (const Op* op : sequence) {
    if (op->group == nullptr) continue;
    if (found != nullptr && found != op->group) {
      throw Error::failed(fmt::format("collectives of {} and of {} ranks cannot be replayed in one sequence",
                                      found->size(), op->group->size()));
    }
    found = op->group;
  }
  return found;
}

Timing NpuBackend::execute(std::span<Op* const> sequence, std::int64_t passes, bool graphs) {
  if (RankGroup* ranks = widest(sequence)) return time_on_ranks(*ranks, sequence, passes);
  return time_on_device(device_, sequence, passes, graphs);
}

void NpuBackend::warm(std::span<Op* const> sequence) {
  const auto now = std::chrono::steady_clock::now();
  const bool cold = !last_run_ || now - *last_run_ > kIdle;
  std::int64_t passes = 1;
  constexpr std::int64_t kMostPasses = 4096;
  Seconds spent = execute(sequence, passes, false).seconds;
  while (cold && spent < warm_up_ && passes < kMostPasses) {
    passes *= 2;
    spent += execute(sequence, passes, false).seconds;
  }
}

Seconds NpuBackend::run(std::span<Prepared* const> sequence, std::int64_t passes) {
  std::vector<Op*> ops;
  for (Prepared* prepared : sequence) {
    ops.push_back(dynamic_cast<Op*>(prepared));
    if (ops.back() == nullptr) throw Error::failed("an op was prepared by another backend than it is run on");
  }
  if (ops.empty() || passes <= 0) return Seconds{0};
  warm(ops);
  const Timing timing = execute(ops, passes, true);
  ran_as_graph_ = timing.graph;
  last_run_ = std::chrono::steady_clock::now();
  return timing.seconds;
}

std::vector<float> NpuBackend::result(Prepared& prepared) {
  auto& op = dynamic_cast<Op&>(prepared);
  const auto fill_again = [&] {
    for (const auto& part : op.parts) part->fill_again();
  };
  fill_again();
  Op* const sequence[] = {&op};
  if (op.group != nullptr) {
    time_on_ranks(*op.group, sequence, 1);
  } else {
    time_on_device(device_, sequence, 1, false);
  }
  std::vector<float> values = op.parts.front()->read();
  fill_again();
  return values;
}

std::unique_ptr<Backend> make_ascend_backend(int device) {
  return std::make_unique<NpuBackend>(cann::load(cann::library_folders()), device, kWarmUp);
}

}  // namespace llmperf::replay::ascend
