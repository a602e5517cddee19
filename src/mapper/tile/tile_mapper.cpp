#include "mapper/tile/tile_mapper.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <tuple>
#include <variant>

#include "base/error.h"
#include "base/integer.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/text.h"
#include "mapper/tile/description.h"
#include "mapper/tile/given.h"
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

Reached reached_of(const hardware::RuntimeProfile& profile, Kernel kernel) {
  using hardware::Parameter;
  const auto value = [&](Parameter p) { return get(profile.values, p); };
  const double product = value(Parameter::tile_matrix_share);
  return {
      .matrix = kernel == Kernel::attention        ? value(Parameter::tile_attention_share)
                : kernel == Kernel::prompt_product ? product * value(Parameter::tile_prompt_share)
                                                   : product,
      .feed = value(Parameter::tile_feed_share),
      .vector = value(Parameter::tile_vector_share),
      .dram = value(kernel == Kernel::attention ? Parameter::tile_attention_memory_share : Parameter::tile_dram_share),
      .near_dram = value(Parameter::tile_dram_near_share),
      .link = value(Parameter::tile_link_share),
      .multicast = value(Parameter::tile_multicast_share),
      .hidden = value(Parameter::tile_hidden),
      .multicast_senders = profile.choices.multicast_senders,
      .launch = value(Parameter::tile_launch)};
}

namespace {

Reached reached_by(const hardware::RuntimeProfile* profile, Kernel kernel) {
  return profile == nullptr ? Reached{} : reached_of(*profile, kernel);
}

}  // namespace

struct TileMapper::Array {
  // What was searched for, and the search.
  template <typename Problem>
  struct Memory {
    SearchOf<Problem> search;
    struct Known {
      Problem problem;
      std::string_view mapping;  // that was given; empty: the best
      Mapped<ChoiceOf<Problem>> mapped;
    };
    std::deque<Known> known = {};
  };

  Array(const hardware::Device& device, const Operands& types, Kernel of, const Reached& now)
      : operands(types),
        kernel(of),
        reached(now),
        machine(make_machine(device, types, now)),
        grids(all_grids(machine)) {}

  template <typename Problem>
  const Mapped<ChoiceOf<Problem>>* find(const Problem& problem, std::string_view given = {}) const {
    for (const auto& known : std::get<Memory<Problem>>(memories).known) {
      if (known.problem == problem && known.mapping == given) return &known.mapped;
    }
    return nullptr;
  }

  // References stay valid.
  template <typename Problem>
  const Mapped<ChoiceOf<Problem>>& map(const Problem& problem, std::string_view given = {}) {
    if (const auto* mapped = find(problem, given)) return *mapped;
    auto& [search, all] = std::get<Memory<Problem>>(memories);
    Mapped<ChoiceOf<Problem>> mapped;
    if (given.empty()) mapped = select(machine, search, problem, 1);
    if constexpr (std::is_same_v<Problem, GemmProblem>) {
      if (!given.empty()) mapped.found = {complete(parse_mapping(given, machine, problem), machine, grids, problem)};
    }
    all.push_back({problem, given, std::move(mapped)});
    return all.back().mapped;
  }

  Operands operands;
  Kernel kernel;
  Reached reached;
  Machine machine;
  std::vector<Grid> grids;
  std::tuple<Memory<GemmProblem>, Memory<AttentionProblem>, Memory<VectorProblem>> memories{
      {{machine, grids}}, {{machine, grids}}, {{machine, grids}}};
};

TileMapper::TileMapper(const hardware::Device& device, bool published, const hardware::RuntimeProfile* profile)
    : device_(&device), published_(published), profile_(profile) {}
TileMapper::~TileMapper() = default;
TileMapper::TileMapper(TileMapper&&) noexcept = default;
TileMapper& TileMapper::operator=(TileMapper&&) noexcept = default;

TileMapper::Array& TileMapper::array(const Operands& operands, Kernel kernel) const {
  for (const auto& known : arrays_) {
    if (known->operands == operands && known->kernel == kernel) return *known;
  }
  return *arrays_.emplace_back(std::make_unique<Array>(*device_, operands, kernel, reached_by(profile_, kernel)));
}

TileMapper::Array* TileMapper::array(const graph::Op& op, const cost::Work& work, const Problem& problem) const {
  if (device_->find_peak(hardware::Engine::matrix, work.matrix_dtype) == nullptr) return nullptr;
  Operands operands{.dtype = work.matrix_dtype};
  Kernel kernel = Kernel::product;
  const auto set = [&](const graph::OnTiles& tiles) {
    if (tiles.passes > 0) operands.passes = tiles.passes;
    if (tiles.grid.empty()) return;
    operands.grid = hardware::parse_sides(tiles.grid);
    if (!operands.grid) throw Error::bad_input("'grid' must be two sides, such as 8x8, not " + quote(tiles.grid));
  };
  if (const auto* gemm = std::get_if<graph::Gemm>(&op.body)) {
    set(gemm->tiles);
    const auto& p = std::get<GemmProblem>(problem);
    if (!profile_) {
      // Weights that no second row of blocks needs are best multiplied beside the channel that they come from.
      operands.near = gemm->weights && device_->tile_array->channels && p.m <= device_->tile_array->granule[0];
    } else {
      operands.bytes = p.a_bytes + p.b_bytes;
      operands.near = gemm->weights != nullptr && p.m <= profile_->choices.near_rows;
      if (gemm->weights != nullptr && !operands.near) kernel = Kernel::prompt_product;
    }
  } else if (const auto* attention = std::get_if<graph::Attention>(&op.body)) {
    set(attention->tiles);
    if (profile_) kernel = Kernel::attention;
  }
  return &array(operands, kernel);
}

const Machine& TileMapper::machine(Dtype dtype) const { return array({.dtype = dtype}, Kernel::product).machine; }

template <typename Problem>
const Mapped<ChoiceOf<Problem>>& TileMapper::map(const Problem& problem, Dtype dtype) const {
  return array({.dtype = dtype}, Kernel::product).map(problem);
}
template const Mapped<GemmChoice>& TileMapper::map(const GemmProblem&, Dtype) const;
template const Mapped<AttentionChoice>& TileMapper::map(const AttentionProblem&, Dtype) const;
template const Mapped<VectorChoice>& TileMapper::map(const VectorProblem&, Dtype) const;

void TileMapper::search(std::span<const graph::Op> ops, const std::function<cost::Work(const graph::Op&)>& work) const {
  struct Wanted {
    Array* on;
    Problem problem;
    std::variant<Mapped<GemmChoice>, Mapped<AttentionChoice>, Mapped<VectorChoice>> mapped = {};
  };
  std::vector<Wanted> wanted;
  if (published_) return;
  for (const graph::Op& op : ops) {
    const auto* gemm = std::get_if<graph::Gemm>(&op.body);
    if (op.place != graph::Place::device || (gemm && !gemm->tiles.mapping.empty())) continue;
    const cost::Work of = work(op);
    const std::optional<Problem> problem = problem_of(op, of, profile_ ? &profile_->choices : nullptr);
    Array* const on = problem ? array(op, of, *problem) : nullptr;
    if (on == nullptr || std::visit([&](const auto& p) { return on->find(p) != nullptr; }, *problem)) continue;
    const auto same = [&](const Wanted& w) { return w.on == on && w.problem == *problem; };
    if (std::ranges::none_of(wanted, same)) wanted.push_back({on, *problem});
  }
  // What takes longest first.
  std::stable_partition(wanted.begin(), wanted.end(),
                        [](const Wanted& w) { return std::holds_alternative<AttentionProblem>(w.problem); });
  in_parallel(wanted.size(), 0, [&](std::size_t i) {
    Wanted& w = wanted[i];
    std::visit(
        [&]<typename P>(const P& p) {
          SearchOf<P> search(w.on->machine, w.on->grids);
          w.mapped = select(w.on->machine, search, p, 1);
        },
        w.problem);
  });
  for (Wanted& w : wanted) {
    std::visit(
        [&]<typename P>(const P& p) {
          auto& known = std::get<Array::Memory<P>>(w.on->memories).known;
          known.push_back({p, {}, std::get<Mapped<ChoiceOf<P>>>(std::move(w.mapped))});
        },
        w.problem);
  }
}

std::optional<Posed> TileMapper::pose(const graph::Op& op, const cost::Work& work) const {
  const std::optional<Problem> problem = problem_of(op, work, profile_ ? &profile_->choices : nullptr);
  Array* const on = problem && !published_ ? array(op, work, *problem) : nullptr;
  if (on == nullptr) return std::nullopt;
  return Posed{*problem, &on->machine, on->grids};
}

Seam TileMapper::seam(const graph::Op& op, const cost::Work& work) const {
  Seam seam;
  const std::optional<Problem> problem = problem_of(op, work, profile_ ? &profile_->choices : nullptr);
  if (!problem || published_) return seam;
  Array* const on = array(op, work, *problem);
  if (on == nullptr) return seam;
  std::visit(
      [&](const auto& p) {
        const auto& mapped = on->map(p);
        if (mapped.found.empty()) return;
        const auto& best = mapped.found.front();
        const Machine& m = on->machine;
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
  const std::optional<Problem> problem = problem_of(op, work, profile_ ? &profile_->choices : nullptr);
  if (!problem) return light;
  Array* const on = array(op, work, *problem);
  if (on == nullptr) return light;
  if (published_) {
    return bits(work.matrix_dtype) == 16 ? published_time(on->machine, *problem, light) : light;
  }
  return std::visit(
      [&](const auto& p) {
        const auto* gemm = std::get_if<graph::Gemm>(&op.body);
        const auto& mapped = on->map(p, gemm ? gemm->tiles.mapping : std::string_view());
        if (mapped.found.empty()) {
          Diagnostic d;
          d.message = fmt::format("{}: no mapping fits into {} of a tile of {}", op.name,
                                  format_bytes_binary(Bytes{on->machine.sram}), device_->name);
          throw Error(ErrorKind::infeasible, {d});
        }
        const auto& best = mapped.found.front();
        PipelineTime parts = best.choice.time;
        double seconds = best.simulated;
        const Reached reached = reached_by(profile_, on->kernel);
        if (reached != on->reached) {
          // The launch and what nothing hides stand beside the mapping.
          const Machine& then = on->machine;
          const Machine now = make_machine(*device_, on->operands, reached);
          const double mapped_alone = seconds - then.op_seconds(0, parts.compute, parts.dram);
          parts = pipeline_time(now, schedule_of(now, p, best.choice));
          seconds = now.op_seconds(mapped_alone * parts.seconds / best.choice.time.seconds, parts.compute, parts.dram);
        }
        if constexpr (std::is_same_v<std::decay_t<decltype(p)>, AttentionProblem>) {
          // It is the price of the blocks of rows that a prompt's queries are cut into: a new token's are one.
          const auto* a = std::get_if<graph::Attention>(&op.body);
          if (on->kernel == Kernel::attention && a->q_tokens > 1 && !a->verifies) {
            const double keys = get(profile_->values, hardware::Parameter::tile_attention_keys);
            seconds += parts.compute * keys / d(p.keys);
          }
        }
        OpTime t = light;
        t.total = Seconds{seconds};
        if (profile_ == nullptr) {
          t.total = std::max(t.total, light.roof);
        } else {
          t.roof = std::min(light.roof, t.total);  // passes and parts of the mesh have a roof of their own
        }
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
