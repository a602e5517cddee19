// Bounds. A mapping takes at least
//  * the channel: Q once per tile that shares the rows, and O; K and V, again per block of rows where they do not stay;
//    with keys outside, O in fp32 out and in again for every further block of keys;
//  * the load of the first step, and then the longer of the matrix unit's work on padded blocks and the vector unit's;
//    their sum where they do not overlap.
// A block of rows and keys is first bounded with what is best for the bound: K and V handed on, kept if a tile has room
// for them, units overlapped. In the order of these bounds everything else is gone through, each under its own; of
// slots the most that fit.
#include "mapper/tile/attention_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/integer.h"
#include "mapper/tile/gemm_search.h"

namespace llmperf::mapper::tile {
namespace {

constexpr Growth kGrowth = {10, 4};    // of the number of blocks
constexpr double kIndifferent = 1e-3;  // mappings that may be faster by this are not looked for
constexpr double kPartial = 4;         // bytes of an element of O that is not finished
double d(std::int64_t x) { return static_cast<double>(x); }
double rounded(std::int64_t x, int granule) { return d(divide_up(x, granule) * granule); }

// Blocks that see more than one step of keys, those that see more than two, and so on, added up, at least. The last
// block sees `most` keys, each before it `hidden` fewer.
double blocks_beyond(double most, double step, double hidden, double blocks) {
  const double steps = std::max(0.0, std::ceil(most / step - 1e-9) - 1);
  const double all = std::clamp(std::floor((most - hidden * blocks) / step), 0.0, steps);  // that all blocks see
  const double some = steps - all;
  return all * blocks + some * (most - step * (all + (some + 1) / 2)) / hidden;
}

}  // namespace

bool alike(const AttentionChoice& x, const AttentionChoice& y) {
  return x.mapping.grid == y.mapping.grid && x.mapping.tx == y.mapping.tx && x.mapping.ty == y.mapping.ty &&
         x.mapping.hb == y.mapping.hb && x.mapping.keys_outside == y.mapping.keys_outside;
}

double AttentionSearch::limit() const {
  return !bounds_ || best_.size() < keep_ ? std::numeric_limits<double>::infinity()
                                          : best_.back().time.seconds * (1 - kIndifferent);
}

double AttentionSearch::bound(const AttentionProblem& p, const AttentionMapping& map) const {
  const Machine& m = machine_;
  const Grid& g = *map.grid;
  const AttentionExtent e = extent_of(p, map);
  const double sharers = map.feed == Feed::direct ? 1 : g.a.length;
  const double tile_pairs = d(e.pairs);

  // Keys that the blocks of rows of a tile see, added up, of one tile. Under a mask at least what the last rows of a
  // block see, which is linear in the number of the block.
  double seen = d(e.keys) * d(e.blocks_rows);
  double row_keys = d(e.rows) * d(e.keys);
  double seen_first = d(p.keys) / g.k;
  double joined = d(e.rows) * d(e.blocks_keys - 1);  // times that a row of O is joined
  if (p.causal) {
    const double hidden = d(g.n * map.tx) / d(p.group) / g.k;  // keys fewer per block, at most
    const double blocks = d(e.blocks_rows);
    const double most = d(p.keys) / g.k;
    seen = blocks * most - hidden * blocks * (blocks - 1) / 2;
    seen_first = std::max(0.0, most - hidden * (blocks - 1));
    row_keys = d(map.tx) * seen - d(e.blocks_rows * map.tx - e.rows) * std::max(1.0, seen_first);
    joined = d(map.tx) * blocks_beyond(most, d(map.ty), hidden, d(e.rows) / d(map.tx));
  }
  const double loads = map.resident || map.keys_outside ? d(e.keys) : seen;  // of a key each, per pair

  // Units of a tile.
  const double row_rounding = rounded(std::min(map.tx, e.rows), m.granule) / d(std::min(map.tx, e.rows));
  const double dims = rounded(p.qk_dim, m.granule) + rounded(p.v_dim, m.granule);
  const double matrix = tile_pairs * 2 * row_keys * row_rounding * dims / m.matrix;
  const double vector = tile_pairs / m.vector *
                        (p.softmax_ops * row_keys + p.rescale_ops * joined * d(p.v_dim) +
                         p.rope_ops * d(p.qk_dim) * (d(e.rows) + loads / sharers));
  const double units = map.overlapped ? std::max(matrix, vector) : matrix + vector;

  // The channel.
  const double per_key = d(p.qk_dim) * p.k_bytes + d(p.v_dim) * p.v_bytes;
  const double copies = g.n / sharers;
  double bytes = d(p.pairs()) * g.k * copies * loads * per_key * d(p.keys) / (d(e.keys) * g.k);
  const double rows_share = d(p.rows()) / d(e.rows);  // of tiles' rows, those that there are
  double moved = d(p.rows()) * (g.k * d(p.qk_dim) * p.q_bytes + d(p.v_dim) * p.o_bytes);
  if (map.keys_outside) {
    moved += rows_share * g.k * joined * (2 * kPartial * d(p.v_dim) + d(p.qk_dim) * p.q_bytes);
  }
  moved *= d(p.pairs());
  bytes += moved;

  // The first step: of the first rows, which see least.
  const double pairs_share = d(p.pairs()) / (tile_pairs * g.batch);
  const double row_share = d(p.rows()) / (d(e.rows) * g.n);
  const double first_rows = d(e.rows - (e.blocks_rows - 1) * map.tx);
  const double first_seen = map.resident || map.keys_outside ? d(p.keys) / g.k : seen_first;
  const double first =
      d(map.hb) * g.batch * g.k * pairs_share *
      (copies * std::min(d(map.ty), first_seen) * per_key + g.n * first_rows * row_share * d(p.qk_dim) * p.q_bytes);
  const double units_bound = first / m.dram + units + 2 * m.dram_latency;
  const double finished =
      tile_pairs / m.vector * d(e.rows) * d(p.v_dim) * (p.rescale_ops * (g.k - 1) + p.normalise_ops) / g.k;
  const double alternating = map.keys_outside ? (matrix + vector + moved / m.dram) / 2 : 0;
  return std::max({units_bound, vector + finished, bytes / m.dram + m.dram_latency, alternating}) * (1 - 1e-9);
}

void AttentionSearch::propose(const AttentionProblem& p, AttentionMapping map) {
  map.kv_slots = map.q_slots = 1;
  map.results = Results::in_place;
  map.overlapped = false;
  map.feed = map.grid->a.length > 1 ? Feed::ring : Feed::direct;  // the least memory
  map.resident = !map.keys_outside && extent_of(p, map).blocks_rows > 1;
  if (map.resident && sram_of(p, map) > machine_.sram) map.resident = false;
  if (sram_of(p, map) > machine_.sram) return;
  map.overlapped = true;
  candidates_.push_back({map, bound(p, map), order_++});
}

void AttentionSearch::collect(const AttentionProblem& p, const Grid& grid) {
  AttentionMapping map;
  map.grid = &grid;
  order_ = place(grid) << 27;
  map.tx = map.ty = machine_.granule;
  const AttentionExtent e = extent_of(p, map);
  const std::vector<std::int64_t> keys = block_sides(e.keys, machine_.granule, kGrowth);
  for (const std::int64_t tx : block_sides(e.rows, machine_.granule, kGrowth)) {
    map.tx = tx;
    for (const std::int64_t ty : keys) {
      map.ty = ty;
      map.hb = 1;
      map.keys_outside = false;
      propose(p, map);
      if (divide_up(e.rows, tx) >= kLeastRowBlocks && ty < e.keys) {
        map.keys_outside = true;
        propose(p, map);
        map.keys_outside = false;
      }
      if (tx < e.rows) continue;
      for (std::int64_t hb = 2; hb / 2 < e.pairs; hb *= 2) {
        map.hb = std::min(hb, e.pairs);
        const std::size_t count = candidates_.size();
        propose(p, map);
        if (candidates_.size() == count) break;
      }
    }
  }
}

void AttentionSearch::consider(const AttentionProblem& p, const AttentionMapping& map) {
  if (bound(p, map) >= limit()) return;
  ++evaluated_;
  lower(machine_, p, map, schedule_);
  const PipelineTime time = pipeline_time(machine_, schedule_);
  if (bounds_ && best_.size() == keep_ && time.seconds >= best_.back().time.seconds) return;
  const AttentionChoice choice{map, time};
  const auto same =
      std::find_if(best_.begin(), best_.end(), [&](const AttentionChoice& c) { return alike(c, choice); });
  if (same != best_.end()) {
    if (same->time.seconds <= time.seconds) return;
    best_.erase(same);
  }
  const auto place = std::upper_bound(best_.begin(), best_.end(), time.seconds,
                                      [](double t, const AttentionChoice& c) { return t < c.time.seconds; });
  best_.insert(place, choice);
  if (best_.size() > keep_) best_.pop_back();
}

// As many slots as there is room for, those of K and V first.
bool AttentionSearch::take_slots(const AttentionProblem& p, AttentionMapping& map) const {
  constexpr std::array<std::array<int, 2>, 6> kSlots = {{{3, 2}, {2, 2}, {3, 1}, {2, 1}, {1, 2}, {1, 1}}};
  const bool stays = map.resident || map.keys_outside;
  for (const auto& [kv, q] : kSlots) {
    if (stays && kv != 2) continue;
    map.kv_slots = kv;
    map.q_slots = q;
    if (sram_of(p, map) <= machine_.sram) return true;
  }
  return false;
}

// Everything else for one grid, block and order.
void AttentionSearch::expand(const AttentionProblem& p, const Candidate& candidate) {
  AttentionMapping map = candidate.mapping;
  const AttentionExtent e = extent_of(p, map);
  const bool shared = map.grid->a.length > 1;
  const bool reused = !map.keys_outside && e.blocks_rows > 1;
  for (const Feed feed : {Feed::multicast, Feed::direct, Feed::ring}) {
    if (!shared && feed != Feed::direct) continue;
    map.feed = feed;
    for (const bool overlapped : {true, false}) {
      map.overlapped = overlapped;
      for (const bool resident : {true, false}) {
        if (resident && !reused) continue;
        map.resident = resident;
        if (bound(p, map) >= limit()) continue;
        for (const Results results : {Results::staged, Results::doubled, Results::in_place}) {
          map.results = results;
          if (take_slots(p, map)) consider(p, map);
        }
      }
    }
  }
}

std::vector<AttentionChoice> AttentionSearch::best(const AttentionProblem& problem, std::size_t keep) {
  keep_ = keep;
  best_.clear();
  candidates_.clear();
  for (const Grid& grid : grids_) {
    if (grid.m == 1) collect(problem, grid);
  }
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& x, const Candidate& y) {
    return x.bound < y.bound || (x.bound == y.bound && x.order < y.order);
  });
  for (const Candidate& candidate : candidates_) {
    if (candidate.bound >= limit()) break;
    expand(problem, candidate);
  }
  return best_;
}

std::vector<AttentionChoice> AttentionSearch::near(const AttentionProblem& p, const AttentionChoice& choice) const {
  std::vector<AttentionChoice> found;
  Schedule schedule;
  const auto change = [&](const auto& apply) {
    AttentionMapping map = choice.mapping;
    apply(map);
    // What follows from it.
    const AttentionExtent e = extent_of(p, map);
    if (map.keys_outside && (e.blocks_rows < kLeastRowBlocks || e.blocks_keys == 1)) return;
    if (map.keys_outside || e.blocks_rows > 1) map.hb = 1;
    map.hb = std::min(map.hb, e.pairs);
    if (map.keys_outside || e.blocks_rows == 1) map.resident = false;
    if (map.grid->a.length == 1) map.feed = Feed::direct;
    if (!take_slots(p, map) || map == choice.mapping) return;
    if (std::any_of(found.begin(), found.end(), [&](const AttentionChoice& c) { return c.mapping == map; })) return;
    lower(machine_, p, map, schedule);
    found.push_back({map, pipeline_time(machine_, schedule)});
  };
  const AttentionExtent e = extent_of(p, choice.mapping);
  for (const std::int64_t tx : other_sides(e.rows, e.blocks_rows, machine_.granule)) {
    change([&](AttentionMapping& map) { map.tx = tx; });
  }
  for (const std::int64_t ty : other_sides(e.keys, e.blocks_keys, machine_.granule)) {
    change([&](AttentionMapping& map) { map.ty = ty; });
  }
  change([](AttentionMapping& map) { map.hb *= 2; });
  change([](AttentionMapping& map) { map.hb = std::max<std::int64_t>(1, map.hb / 2); });
  for (const Results results : {Results::in_place, Results::staged, Results::doubled}) {
    change([&](AttentionMapping& map) { map.results = results; });
  }
  for (const Feed feed : {Feed::multicast, Feed::direct, Feed::ring}) {
    change([&](AttentionMapping& map) { map.feed = feed; });
  }
  change([](AttentionMapping& map) { map.overlapped = !map.overlapped; });
  change([](AttentionMapping& map) { map.resident = !map.resident; });
  change([](AttentionMapping& map) { map.keys_outside = !map.keys_outside; });
  for (const Grid* grid : neighbours(grids_, *choice.mapping.grid)) {
    if (grid->m > 1) continue;
    change([&](AttentionMapping& map) {
      map.grid = grid;
      const AttentionExtent part = extent_of(p, map);
      const auto side = [&](std::int64_t extent, std::int64_t count) {  // for as many blocks as before
        return divide_up(divide_up(extent, count), machine_.granule) * machine_.granule;
      };
      map.tx = side(part.rows, e.blocks_rows);
      map.ty = side(part.keys, e.blocks_keys);
      if (map.feed == Feed::direct) map.feed = Feed::multicast;
    });
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const AttentionChoice& x, const AttentionChoice& y) { return x.time.seconds < y.time.seconds; });
  return found;
}

AttentionChoice AttentionSearch::exhaustive(const AttentionProblem& problem) {
  bounds_ = false;
  const std::vector<AttentionChoice> all = best(problem, 1);
  bounds_ = true;
  return all.empty() ? AttentionChoice{} : all.front();
}

}  // namespace llmperf::mapper::tile
