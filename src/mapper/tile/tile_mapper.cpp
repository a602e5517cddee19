#include "mapper/tile/tile_mapper.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/number.h"
#include "mapper/tile/description.h"
#include "mapper/tile/published_choice.h"

namespace llmperf::mapper::tile {
namespace {

template <typename Problem, typename Choice>
struct Memory {
  struct Entry {
    Problem problem;
    Mapped<Choice> mapped;
  };
  std::deque<Entry> entries;
};

// Searches a problem that is not known yet.
template <typename Search, typename Problem, typename Choice>
const Mapped<Choice>& find(const Machine& machine, Search& search, Memory<Problem, Choice>& memory,
                           const Problem& problem) {
  const auto known = std::find_if(memory.entries.begin(), memory.entries.end(),
                                  [&](const auto& entry) { return entry.problem == problem; });
  if (known != memory.entries.end()) return known->mapped;
  auto& entry = memory.entries.emplace_back();
  entry.problem = problem;
  entry.mapped = select(machine, search, problem, 1);
  return entry.mapped;
}

}  // namespace

struct TileMapper::Array {
  Array(const hardware::Device& device, Dtype type)
      : dtype(type),
        machine(make_machine(device, type)),
        grids(all_grids(machine)),
        gemm(machine, grids),
        attention(machine, grids),
        vector(machine, grids) {}
  Dtype dtype;
  Machine machine;
  std::vector<Grid> grids;
  GemmSearch gemm;
  AttentionSearch attention;
  VectorSearch vector;
  Memory<GemmProblem, GemmChoice> gemms;
  Memory<AttentionProblem, AttentionChoice> attentions;
  Memory<VectorProblem, VectorChoice> vectors;
};

TileMapper::TileMapper(const hardware::Device& device, bool published) : device_(&device), published_(published) {}
TileMapper::~TileMapper() = default;
TileMapper::TileMapper(TileMapper&&) noexcept = default;
TileMapper& TileMapper::operator=(TileMapper&&) noexcept = default;

TileMapper::Array* TileMapper::array(Dtype dtype) const {
  for (const auto& known : arrays_) {
    if (known->dtype == dtype) return known.get();
  }
  if (device_->find_peak(hardware::Engine::matrix, dtype) == nullptr) return nullptr;
  return arrays_.emplace_back(std::make_unique<Array>(*device_, dtype)).get();
}

namespace {

template <typename Array>
Array& required(Array* array, const hardware::Device& device, Dtype dtype) {
  if (array == nullptr) {
    throw Error::bad_input(fmt::format("{} has no rate of matrix products on {}", device.name, name(dtype)));
  }
  return *array;
}

}  // namespace

const Machine& TileMapper::machine(Dtype dtype) const { return required(array(dtype), *device_, dtype).machine; }

const MappedGemm& TileMapper::map(const GemmProblem& problem, Dtype dtype) const {
  Array& a = required(array(dtype), *device_, dtype);
  return find(a.machine, a.gemm, a.gemms, problem);
}
const MappedAttention& TileMapper::map(const AttentionProblem& problem, Dtype dtype) const {
  Array& a = required(array(dtype), *device_, dtype);
  return find(a.machine, a.attention, a.attentions, problem);
}
const MappedVector& TileMapper::map(const VectorProblem& problem, Dtype dtype) const {
  Array& a = required(array(dtype), *device_, dtype);
  return find(a.machine, a.vector, a.vectors, problem);
}

namespace {

// Its formulas know no roofs, so that a time of theirs can be below one.
OpTime published_time(const Machine& machine, const Problem& problem, const OpTime& light) {
  const PublishedTime found = tile::published_time(machine, problem);
  if (!found.feasible()) return light;
  OpTime t = light;
  t.total = Seconds{found.seconds};
  t.roof = std::min(light.roof, t.total);
  return t;
}

}  // namespace

Seam TileMapper::seam(const graph::Op& op, const cost::Work& work) const {
  Seam seam;
  const std::optional<Problem> problem = problem_of(op, work);
  if (!problem || published_ || array(work.matrix_dtype) == nullptr) return seam;
  std::visit(
      [&](const auto& p) {
        const auto& mapped = map(p, work.matrix_dtype);
        if (mapped.found.empty()) return;
        const auto& best = mapped.found.front();
        seam = seam_of(machine(work.matrix_dtype), p, best.choice, best.simulated);
      },
      *problem);
  const auto* gemm = std::get_if<graph::Gemm>(&op.body);
  if (gemm == nullptr || !gemm->weights) seam.weights = seam.load = 0;
  return seam;
}

OpTime TileMapper::time(const graph::Op& op, const cost::Work& work, const OpTime& light) const {
  const std::optional<Problem> problem = problem_of(op, work);
  const Dtype dtype = work.matrix_dtype;
  if (!problem || array(dtype) == nullptr) return light;
  if (published_) return bits(dtype) == 16 ? published_time(machine(dtype), *problem, light) : light;
  return std::visit(
      [&](const auto& p) {
        const auto& mapped = map(p, dtype);
        if (mapped.found.empty()) {
          Diagnostic d;
          d.message = fmt::format("{}: no mapping fits into {} of a tile of {}", op.name,
                                  format_bytes_binary(Bytes{machine(dtype).sram}), device_->name);
          throw Error(ErrorKind::infeasible, {d});
        }
        const auto& best = mapped.found.front();
        const PipelineTime& parts = best.choice.time;
        OpTime t = light;
        t.total = std::max(Seconds{best.simulated}, light.roof);
        const double most = std::max({t.matrix.value, t.vector.value, parts.dram, parts.noc});
        t.bound = most == parts.dram       ? Bound::memory
                  : most == t.matrix.value ? Bound::matrix
                  : most == t.vector.value ? Bound::vector
                                           : Bound::network;
        return t;
      },
      *problem);
}

}  // namespace llmperf::mapper::tile
