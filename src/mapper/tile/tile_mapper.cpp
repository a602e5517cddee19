#include "mapper/tile/tile_mapper.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <tuple>

#include "base/error.h"
#include "base/integer.h"
#include "base/number.h"
#include "mapper/tile/description.h"
#include "mapper/tile/published.h"

namespace llmperf::mapper::tile {
namespace {

// The slices that fill the slots of the second operand's stream.
void add_weights(const Machine& machine, const GemmProblem& given, const GemmChoice& choice, double seconds,
                 Seam& seam) {
  const GemmProblem p = as_mapped(given, choice);
  const GemmMapping& map = choice.mapping;
  const GemmExtent e = extent_of(p, map);
  const std::int64_t side = choice.transposed ? std::min(map.bm, e.m) : std::min(map.bn, e.n);
  const Stream& stream = choice.transposed ? map.a : map.b;
  const Paths& paths = choice.transposed ? map.grid->a : map.grid->b;
  const double slices = d(std::min<std::int64_t>(stream.slots, e.blocks_k));
  const double bytes = slices * d(side) * d(std::min(map.bk, e.k)) * d(std::min(map.bb, e.batch)) * given.b_bytes;
  const double sharers = stream.feed == Feed::direct ? 1 : paths.length;
  seam.weights = stream.feed == Feed::ring ? bytes / sharers : bytes;
  const double all = d(p.k) * d(given.n) * d(p.batch) * given.b_bytes * paths.length / sharers;
  // At most what no unit works: a product is not faster than its units.
  seam.load = std::min(std::min(bytes * machine.tiles / sharers, all) / machine.dram,
                       std::max(0.0, seconds - choice.time.compute));
}

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

Reached reached_of(const hardware::RuntimeProfile& profile) {
  using hardware::Parameter;
  const auto value = [&](Parameter p) { return get(profile.values, p); };
  return {.matrix = value(Parameter::tile_matrix_share),
          .feed = value(Parameter::tile_feed_share),
          .vector = value(Parameter::tile_vector_share),
          .dram = value(Parameter::tile_dram_share),
          .near_dram = value(Parameter::tile_dram_near_share),
          .link = value(Parameter::tile_link_share),
          .multicast = value(Parameter::tile_multicast_share),
          .hidden = value(Parameter::tile_hidden),
          .launch = value(Parameter::tile_launch)};
}

struct TileMapper::Array {
  Array(const hardware::Device& device, Dtype type)
      : dtype(type), machine(make_machine(device, type)), grids(all_grids(machine)) {}
  // What was searched for, and the search.
  template <typename Problem>
  struct Memory {
    SearchOf<Problem> search;
    std::deque<std::pair<Problem, Mapped<ChoiceOf<Problem>>>> known = {};
  };

  Dtype dtype;
  Machine machine;
  std::vector<Grid> grids;
  std::tuple<Memory<GemmProblem>, Memory<AttentionProblem>, Memory<VectorProblem>> memories{
      {{machine, grids}}, {{machine, grids}}, {{machine, grids}}};
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

TileMapper::Array& TileMapper::required(Dtype dtype) const {
  if (Array* found = array(dtype)) return *found;
  throw Error::bad_input(fmt::format("{} has no rate of matrix products on {}", device_->name, name(dtype)));
}

const Machine& TileMapper::machine(Dtype dtype) const { return required(dtype).machine; }
std::span<const Grid> TileMapper::grids(Dtype dtype) const { return required(dtype).grids; }

template <typename Problem>
const Mapped<ChoiceOf<Problem>>& TileMapper::map(const Problem& problem, Dtype dtype) const {
  Array& a = required(dtype);
  auto& [search, known] = std::get<Array::Memory<Problem>>(a.memories);
  for (const auto& [searched, mapped] : known) {
    if (searched == problem) return mapped;
  }
  return known.emplace_back(problem, select(a.machine, search, problem, 1)).second;
}
template const Mapped<GemmChoice>& TileMapper::map(const GemmProblem&, Dtype) const;
template const Mapped<AttentionChoice>& TileMapper::map(const AttentionProblem&, Dtype) const;
template const Mapped<VectorChoice>& TileMapper::map(const VectorProblem&, Dtype) const;

Seam TileMapper::seam(const graph::Op& op, const cost::Work& work) const {
  Seam seam;
  const std::optional<Problem> problem = problem_of(op, work);
  if (!problem || published_ || array(work.matrix_dtype) == nullptr) return seam;
  std::visit(
      [&](const auto& p) {
        const auto& mapped = map(p, work.matrix_dtype);
        if (mapped.found.empty()) return;
        const auto& best = mapped.found.front();
        const Machine& m = machine(work.matrix_dtype);
        seam.idle = std::max(0.0, best.simulated - best.choice.time.dram);
        seam.room = m.sram - sram_of(as_mapped(p, best.choice), best.choice.mapping);
        if constexpr (std::is_same_v<std::decay_t<decltype(p)>, GemmProblem>) {
          add_weights(m, p, best.choice, best.simulated, seam);
        }
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
        t.bound = most == parts.dram       ? mapper::Bound::memory
                  : most == t.matrix.value ? mapper::Bound::matrix
                  : most == t.vector.value ? mapper::Bound::vector
                                           : mapper::Bound::network;
        return t;
      },
      *problem);
}

}  // namespace llmperf::mapper::tile
