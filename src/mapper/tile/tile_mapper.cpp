#include "mapper/tile/tile_mapper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <variant>

#include "base/error.h"
#include "base/integer.h"
#include "base/match.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/text.h"
#include "mapper/tile/given.h"
#include "mapper/tile/published.h"

namespace llmperf::mapper::tile {

// ---- The problem that an op is

namespace {

GemmProblem product(const graph::Gemm& g, const cost::Work& work) {
  GemmProblem p;
  p.m = g.m;
  p.n = g.n;
  p.k = g.k;
  p.batch = g.batch;
  // Experts, or heads: each distinct matrix meets its share of the rows; its gradient is of that share.
  if (g.weight_matrices > 1) {
    p.batch = static_cast<std::int64_t>(std::ceil(g.weight_matrices));
    std::int64_t& rows = g.weights ? p.m : p.k;
    rows = (rows * g.batch + p.batch - 1) / p.batch;
  } else if (g.weights) {  // one matrix for the whole batch
    p.m *= p.batch;
    p.batch = 1;
  }
  const double second = d(p.batch) * d(p.k) * d(p.n);
  const auto local = [&](char operand) { return g.tiles.local.find(operand) != std::string_view::npos; };
  p.a_local = local('a');
  p.b_local = local('b');
  p.c_local = local('c');
  p.a_bytes = bytes_per_element(g.activation);
  p.b_bytes = g.weights          ? (work.weights - g.joined.parameters).value / second
              : g.cached_operand ? work.kv_read.value / second
                                 : p.a_bytes;
  const double products = d(p.batch) * d(p.m) * d(p.n);
  p.results = g.joined.results;
  p.c_bytes = (work.activations_written + work.kv_written).value / (products * p.results);
  p.finish_bytes = g.joined.reads * p.a_bytes;
  if (g.accumulated_bits > 0) p.finish_bytes += p.c_bytes;  // what they are added to
  p.finish_ops = cost::joined_output_flops(g.joined) + (g.bias ? 1 : 0);
  p.prepare_ops = cost::joined_input_flops(g.joined);
  const double dequant = g.weights          ? g.weights->dequant_flops
                         : g.cached_operand ? cost::cache_dequant_flops(g.cached, g.activation)
                                            : 0;
  if (dequant > 0) {
    // One operand is prepared; what the other needs is charged to the results.
    p.finish_ops += p.prepare_ops * d(p.k) / d(p.n);
    p.prepare_ops = dequant;
    p.prepares_b = true;
  }
  return p;
}

// A convolution is a product with every filter's inputs side by side, of which each comes from memory once and from a
// neighbour's load for all other taps.
GemmProblem product(const graph::Convolution& c, const cost::Work& work) {
  GemmProblem p;
  p.m = c.positions;
  p.n = c.outputs;
  p.k = c.inputs * c.taps;
  p.a_bytes = work.activations_read.value / (d(p.m) * d(p.k));
  p.b_bytes = work.weights.value / (d(p.n) * d(p.k));
  p.c_bytes = work.activations_written.value / (d(p.m) * d(p.n));
  p.finish_ops = c.bias ? 1 : 0;
  return p;
}

// Of the vector unit, to add an element of a mask to a score: it is loaded, scaled and added.
constexpr double kMaskFlops = 3;

AttentionProblem attention(const graph::Attention& a, bool masked) {
  AttentionProblem p;
  p.sequences = a.sequences;
  p.kv_heads = a.kv_heads;
  p.group = std::max<std::int64_t>(1, a.heads / a.kv_heads);
  p.queries = std::max<std::int64_t>(1, a.q_tokens / a.query_ranks);
  const std::int64_t keys = a.keys > 0 ? a.keys : a.context + a.q_tokens;
  p.keys = std::max<std::int64_t>(1, keys / a.key_ranks);
  p.causal = a.keys == 0 && a.query_ranks == 1 && a.key_ranks == 1 && a.q_tokens > 1 && !a.window && a.pool == 1;
  if (!p.causal && a.keys == 0) {
    // A window, or a share of the sequence: as many scores without a mask.
    const double pairs = cost::visible_pairs(a) / d(a.query_ranks) / d(a.key_ranks);
    p.keys = std::max<std::int64_t>(1, std::llround(pairs / d(p.queries)));
  }
  p.qk_dim = a.qk_dim;
  p.v_dim = std::max<std::int64_t>(1, a.v_dim);  // scores alone: their sums over heads
  p.q_bytes = p.o_bytes = bytes_per_element(a.activation);
  p.k_bytes = bytes_per_element(a.cached.keys);
  p.v_bytes = a.shared_kv ? 0 : bytes_per_element(a.cached.values);
  p.softmax_ops = cost::kSoftmaxFlops + (a.softcap ? 1 : 0);
  if (p.causal && masked) {
    p.causal = false;
    p.softmax_ops += kMaskFlops;
  }
  return p;
}

// Whether the activations of so few rows stay in the tiles' memory from op to op.
bool stay(std::int64_t rows, const hardware::KernelChoices* choices) { return choices && rows <= choices->near_rows; }

// Anything else is elements that stream past the vector units.
VectorProblem stream(std::int64_t rows, std::int64_t width, double shared_bytes, bool row_wise, cost::Work work,
                     bool stays = false) {
  if (stays) work.activations_read = work.activations_written = {};
  VectorProblem p;
  p.rows = std::max<std::int64_t>(1, rows);
  p.width = std::max<std::int64_t>(1, width);
  const double elements = d(p.rows) * d(p.width);
  p.shared_bytes = shared_bytes / d(p.width);
  p.in_bytes = std::max(0.0, (work.weights + work.activations_read + work.kv_read).value - shared_bytes) / elements;
  p.out_bytes = (work.activations_written + work.kv_written).value / elements;
  p.ops = work.vector.value / elements;
  p.products = work.matrix.value / elements;
  p.row_wise = row_wise;
  return p;
}

}  // namespace

std::optional<Problem> problem_of(const graph::Op& op, const cost::Work& work, const hardware::KernelChoices* choices) {
  if (op.place != graph::Place::device) return std::nullopt;
  using Found = std::optional<Problem>;
  return match(
      op.body,
      [&](const graph::Gemm& g) -> Found {
        GemmProblem p = product(g, work);
        if (choices && choices->fp16_accumulate) p.sum_bytes = 2;
        if (g.weights && stay(p.m * p.batch, choices)) {
          p.a_local = true;
          p.c_local = g.joined.cached == 0;  // keys and values go to the cache, which is in the DRAM
        }
        return p;
      },
      [&](const graph::Convolution& c) -> Found { return product(c, work); },
      [&](const graph::Attention& a) -> Found {
        if (a.backward) return std::nullopt;  // five products, of which no mapping is known
        return attention(a, choices && choices->masked_attention);
      },
      [&](const graph::Vector& v) -> Found {
        return stream(v.rows, v.width, v.parameters.value, graph::vector_op(v.kind).is(graph::kByRow), work,
                      stay(v.rows, choices));
      },
      [&](const graph::Gather& g) -> Found { return stream(g.rows, g.width, 0, false, work); },
      [&](const graph::Copy& c) -> Found {
        return stream(1, std::llround(std::max(c.read_elements, c.write_elements)), 0, false, work);
      },
      [&](const graph::Scan& s) -> Found {
        return stream(s.sequences * s.tokens, s.heads * s.value_dim, 0, false, work);
      },
      [](const graph::Transfer&) -> Found { return std::nullopt; },
      [](const graph::Collective&) -> Found { return std::nullopt; },
      [](const graph::Overhead&) -> Found { return std::nullopt; });
}

// ---- Its mapping
namespace {

// The slices that fill the slots of the second operand's stream.
void add_weights(const Machine& machine, const GemmProblem& given, const Choice<GemmProblem>& choice, double seconds,
                 Seam& seam) {
  const GemmMapping& map = choice.mapping;
  const GemmProblem p = as_mapped(given, map);
  const GemmProblem::Extent e = extent_of(p, map);
  const std::int64_t side = map.transposed ? e.m.block : e.n.block;
  const Stream& stream = map.transposed ? map.a : map.b;
  const Paths& paths = map.transposed ? map.grid->a : map.grid->b;
  const double slices = d(std::min<std::int64_t>(stream.slots, e.k.blocks));
  const double bytes = slices * d(side) * d(e.k.block) * d(e.batch.block) * given.b_bytes;
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
  struct Known {
    Problem problem;
    std::string_view mapping;  // that was given; empty: the best
    AnyMapped mapped;
  };

  Array(const hardware::Device& device, const Operands& types, Kernel of, const Reached& now)
      : operands(types),
        kernel(of),
        reached(now),
        machine(make_machine(device, types, now)),
        grids(all_grids(machine)) {}

  const AnyMapped* find(const Problem& problem, std::string_view given = {}) const {
    for (const Known& one : known) {
      if (one.problem == problem && one.mapping == given) return &one.mapped;
    }
    return nullptr;
  }
  // References stay valid.
  const AnyMapped& map(const Problem& problem, std::string_view given = {}) {
    if (const AnyMapped* mapped = find(problem, given)) return *mapped;
    if (given.empty()) return known.emplace_back(Known{problem, given, search(problem)}).mapped;
    const auto& p = std::get<GemmProblem>(problem);
    Mapped<GemmProblem> mapped{{complete(parse_mapping(given, machine, p), machine, grids, p)}};
    return known.emplace_back(Known{problem, given, std::move(mapped)}).mapped;
  }
  AnyMapped search(const Problem& problem) const {
    return std::visit([&]<typename P>(const P& p) -> AnyMapped { return Search<P>(machine, grids).select(p, 1); },
                      problem);
  }

  Operands operands;
  Kernel kernel;
  Reached reached;
  Machine machine;
  std::vector<Grid> grids;
  std::deque<Known> known;  // what was searched for
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

std::optional<TileMapper::Placed> TileMapper::placed(const graph::Op& op, const cost::Work& work) const {
  std::optional<Problem> problem = problem_of(op, work, profile_ ? &profile_->choices : nullptr);
  if (!problem || !device_->find_peak(hardware::Engine::matrix, work.matrix_dtype)) return std::nullopt;
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
    const auto& p = std::get<GemmProblem>(*problem);
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
  return Placed{*problem, &array(operands, kernel)};
}

const Machine& TileMapper::machine(Dtype dtype) const { return array({.dtype = dtype}, Kernel::product).machine; }

const AnyMapped& TileMapper::map(const Problem& problem, Dtype dtype) const {
  return array({.dtype = dtype}, Kernel::product).map(problem);
}

void TileMapper::search(std::span<const graph::Op> ops, const std::function<cost::Work(const graph::Op&)>& work) const {
  struct Wanted : Placed {
    AnyMapped mapped = {};
  };
  std::vector<Wanted> wanted;
  if (published_) return;
  for (const graph::Op& op : ops) {
    const auto* gemm = std::get_if<graph::Gemm>(&op.body);
    if (op.place != graph::Place::device || (gemm && !gemm->tiles.mapping.empty())) continue;
    const std::optional<Placed> found = placed(op, work(op));
    if (!found || found->on->find(found->problem) != nullptr) continue;
    const auto same = [&](const Wanted& w) { return w.on == found->on && w.problem == found->problem; };
    if (std::ranges::none_of(wanted, same)) wanted.push_back({*found});
  }
  // What takes longest first.
  std::stable_partition(wanted.begin(), wanted.end(),
                        [](const Wanted& w) { return std::holds_alternative<AttentionProblem>(w.problem); });
  in_parallel(wanted.size(), 0, [&](std::size_t i) { wanted[i].mapped = wanted[i].on->search(wanted[i].problem); });
  for (Wanted& w : wanted) w.on->known.push_back({w.problem, {}, std::move(w.mapped)});
}

std::optional<Posed> TileMapper::pose(const graph::Op& op, const cost::Work& work) const {
  const std::optional<Placed> found = published_ ? std::nullopt : placed(op, work);
  if (!found) return std::nullopt;
  return Posed{found->problem, &found->on->machine, found->on->grids};
}

Seam TileMapper::seam(const graph::Op& op, const cost::Work& work) const {
  Seam seam;
  const std::optional<Placed> found = published_ ? std::nullopt : placed(op, work);
  if (!found) return seam;
  std::visit(
      [&]<typename P>(const P& p) {
        const auto& mapped = std::get<Mapped<P>>(found->on->map(p));
        if (mapped.found.empty()) return;
        const auto& best = mapped.found.front();
        const Machine& m = found->on->machine;
        seam.idle = std::max(0.0, best.simulated - best.choice.time.dram);
        seam.room = m.sram - sram_of(as_mapped(p, best.choice.mapping), best.choice.mapping);
        if constexpr (std::is_same_v<P, GemmProblem>) {
          add_weights(m, p, best.choice, best.simulated, seam);
        }
      },
      found->problem);
  const auto* gemm = std::get_if<graph::Gemm>(&op.body);
  if (gemm == nullptr || !gemm->weights) seam.weights = seam.load = 0;
  return seam;
}

OpTime TileMapper::time(const graph::Op& op, const cost::Work& work, const OpTime& light) const {
  const std::optional<Placed> found = placed(op, work);
  if (!found) return light;
  Array& on = *found->on;
  if (published_) {
    return bits(work.matrix_dtype) == 16 ? published_time(on.machine, found->problem, light) : light;
  }
  return std::visit(
      [&]<typename P>(const P& p) {
        const auto* gemm = std::get_if<graph::Gemm>(&op.body);
        const auto& mapped = std::get<Mapped<P>>(on.map(p, gemm ? gemm->tiles.mapping : std::string_view()));
        if (mapped.found.empty()) {
          Diagnostic d;
          d.message = fmt::format("{}: no mapping fits into {} of a tile of {}", op.name,
                                  format_bytes_binary(Bytes{on.machine.sram}), device_->name);
          throw Error(ErrorKind::infeasible, {d});
        }
        const auto& best = mapped.found.front();
        PipelineTime parts = best.choice.time;
        double seconds = best.simulated;
        const Reached reached = reached_by(profile_, on.kernel);
        if (reached != on.reached) {
          // The launch and what nothing hides stand beside the mapping.
          const Machine& then = on.machine;
          const Machine now = make_machine(*device_, on.operands, reached);
          const double mapped_alone = seconds - then.op_seconds(0, parts.compute, parts.dram);
          parts = pipeline_time(now, schedule_of(now, p, best.choice.mapping));
          seconds = now.op_seconds(mapped_alone * parts.seconds / best.choice.time.seconds, parts.compute, parts.dram);
        }
        if constexpr (std::is_same_v<P, AttentionProblem>) {
          // It is the price of the blocks of rows that a prompt's queries are cut into: a new token's are one.
          const auto* a = std::get_if<graph::Attention>(&op.body);
          if (on.kernel == Kernel::attention && a->q_tokens > 1 && !a->verifies) {
            const double keys = get(profile_->values, hardware::Parameter::tile_attention_keys);
            seconds += parts.compute * keys / d(p.keys);
          }
          // Where few heads of few sequences leave tiles idle, the others go on at their own pace.
          const double busy = profile_ ? d(profile_->choices.head_tiles * a->sequences * a->kv_heads) : 0;
          const bool few = busy > 0 && busy < d(on.machine.tiles) && (a->q_tokens == 1 || a->verifies);
          if (few) seconds += std::max(parts.compute, parts.dram) * (d(on.machine.tiles) / busy - 1);
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
      found->problem);
}

}  // namespace llmperf::mapper::tile
