// Work of a step of `rows` rows and `keys` keys, both rounded up to the matrix unit's granule where it works:
//   before  2 rows keys qk_dim                  scores
//   vector  5 rows keys                         softmax of them, as flash attention does it: statistics so far
//           2 rows v_dim                        O of the steps before made smaller and joined, in all steps but one
//           3 qk_dim keys / sharing tiles       RoPE of K, when it has been loaded
//   after   2 rows keys v_dim                   O
// and per block RoPE of Q, 3 rows qk_dim, which is spread over the steps, and O divided by the sum, rows v_dim. Where
// the keys of a row are spread over tiles each sends (p - 1) / p of its O, in fp32, to the others, and joins what it
// gets.
//
// Under a causal mask a block has the steps that its last row needs. The rows of one block number on the tiles that
// share K and V are neighbours, so that all of them need about as many; keys are dealt to tiles a few at a time, so
// that any number of first keys is spread evenly.
#include "mapper/tile/attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/integer.h"

namespace llmperf::mapper::tile {
namespace {

constexpr double kStatistics = 2;  // per row: the maximum and the sum

class AttentionLowering {
 public:
  AttentionLowering(const Machine& machine, const AttentionProblem& problem, const AttentionMapping& mapping,
                    Schedule& schedule)
      : m_(machine), p_(problem), map_(mapping), g_(*mapping.grid), s_(schedule), e_(extent_of(problem, mapping)) {}

  void run() {
    s_.clear();
    s_.grid = map_.grid;
    s_.a = {map_.feed, map_.kv_slots, true};
    s_.b = {Feed::direct, map_.q_slots, map_.keys_outside};
    s_.panel = map_.keys_outside ? 1 : map_.resident ? e_.keys.blocks : 0;
    s_.results = map_.results;
    s_.overlapped = map_.overlapped && !m_.shared_issue;
    s_.start_slots = map_.q_slots;
    const std::int64_t full = e_.pairs.blocks - 1;
    const std::int64_t last = e_.pairs.last();
    if (full == 0 || last == map_.hb) {
      group(last, 1);
      s_.repeats = e_.pairs.blocks;
      return;
    }
    group(map_.hb, full);
    group(last, 1);
  }

 private:
  std::int64_t rows_of(std::int64_t block) const { return block > 0 ? map_.tx : e_.rows.last(); }

  // All that is done for some pairs, `count` times.
  void group(std::int64_t pairs, std::int64_t count) {
    pairs_ = pairs;
    if (map_.keys_outside) {
      keys_outside();
      return;
    }
    std::int64_t steps_before = 0;
    for (std::int64_t i = 0; i < e_.rows.blocks;) {
      const std::int64_t steps = steps_of(i);
      // Blocks with as many steps are alike, but for the first row block and what comes with the first of them.
      std::int64_t next = i + 1;
      if (i > 0 && (!map_.resident || steps == steps_before)) next = last_alike(i, steps) + 1;
      const double seen = d(seen_by(i) + seen_by(next - 1)) / 2;
      rows_block(rows_of(i), steps, steps_before, seen);
      s_.blocks.back().count = next - i;
      steps_before = steps;
      i = next;
    }
    s_.end_row(count);
  }

  // Keys that a block of rows sees on any tile, at most.
  std::int64_t seen_by(std::int64_t block) const {
    const std::int64_t later = e_.rows.blocks - 1 - block;
    return std::max<std::int64_t>(1, p_.visible(p_.rows() - 1 - later * g_.n * map_.tx));
  }
  std::int64_t steps_of(std::int64_t block) const { return divide_up(divide_up(seen_by(block), g_.k), map_.ty); }
  // The last block with that many steps; the first is known.
  std::int64_t last_alike(std::int64_t first, std::int64_t steps) const {
    std::int64_t low = first;
    std::int64_t high = e_.rows.blocks - 1;
    while (low < high) {
      const std::int64_t middle = (low + high + 1) / 2;
      if (steps_of(middle) == steps) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  // Rows outside: a block that sees `seen` keys. Of its slices `found` have stayed.
  void rows_block(std::int64_t rows, std::int64_t steps, std::int64_t found, double seen) {
    Block b;
    b.steps = steps;
    if (map_.resident) b.found = found;
    const double begun = d(steps - 1);
    const std::int64_t fresh = map_.resident ? steps - found : steps;
    const double loads = begun > 0 ? d(std::max<std::int64_t>(0, fresh - 1)) / begun : 0;
    const double used = seen / g_.k - begun * d(map_.ty);  // of the last slice
    const double left = d(p_.keys) / g_.k - begun * d(map_.ty);
    const double full = std::min(d(map_.ty), seen / g_.k);
    const Shares shares{begun / d(steps), 1 / d(steps), loads};
    b.full = step(rows, full, full, shares);
    // A slice that stays comes whole.
    const double loaded = map_.resident ? std::min(left, d(map_.ty)) : used;
    b.last = step(rows, used, loaded, {shares.joins, shares.rotates, fresh > 0 ? 1.0 : 0.0});
    b.start = d(rows) * d(pairs_) * d(p_.qk_dim) * p_.q_bytes * share();
    add(b, rows, true);
  }

  // A row of blocks per block of keys; every block has one step. Blocks of rows from `first` on meet the keys, those
  // before `unfinished` for the last time.
  void keys_outside() {
    std::int64_t first = 0;
    for (std::int64_t k = 0; k < e_.keys.blocks; ++k) {
      const bool last = k + 1 == e_.keys.blocks;
      if (!p_.causal && k > 1 && !last) {  // as the one before
        ++s_.rows.back().count;
        continue;
      }
      std::int64_t unfinished = last ? e_.rows.blocks : first;
      if (!last && steps_of(first) == k + 1) {
        unfinished = std::clamp(last_alike(first, k + 1) + 1, first, e_.rows.blocks - kLeastRowBlocks);
      }
      const double before = d(k) * d(map_.ty);
      const double all = std::min(d(map_.ty), d(p_.keys) / g_.k - before);
      if (unfinished > first) {
        const double seen = d(seen_by(first) + seen_by(unfinished - 1)) / 2;
        met(first, unfinished, k, std::min(std::max(1.0, seen / g_.k - before), all), all, true, true);
      }
      met(unfinished, e_.rows.blocks, k, all, all, false, unfinished == first);
      first = unfinished;
      s_.end_row(1);
    }
  }

  // Blocks of rows from `begin` to `end` meet block `k` of the keys, of which they see `keys` of `all`.
  void met(std::int64_t begin, std::int64_t end, std::int64_t k, double keys, double all, bool ends, bool opens) {
    for (std::int64_t i = begin; i < end;) {
      const std::int64_t next = i == begin && opens ? i + 1 : end;
      Block b;
      b.full = b.last = step(rows_of(i), keys, all, {k > 0 ? 1.0 : 0.0, 1, i == begin && opens ? 1.0 : 0.0});
      const double fetched = d(p_.qk_dim) * p_.q_bytes + (k > 0 ? partial() : 0);
      b.full.b = b.last.b = d(rows_of(i)) * d(pairs_) * share() * fetched;
      add(b, rows_of(i), ends);
      s_.blocks.back().count = next - i;
      i = next;
    }
  }

  double share() const { return e_.pairs.share() * e_.rows.share(); }
  double partial() const { return kAccumulator * (d(p_.v_dim) + kStatistics); }

  // Of blocks that end their rows' work O is merged over tiles and stored, of others as it is.
  void add(Block b, std::int64_t rows, bool ends) {
    const double o_rows = d(rows) * d(pairs_);
    if (ends) {
      b.result = o_rows * d(p_.v_dim) * p_.o_bytes * share() / g_.k;
      b.reduce = o_rows * partial() * (g_.k - 1) / g_.k;
      b.finish = o_rows * d(p_.v_dim) * (p_.rescale_ops * (g_.k - 1) + p_.normalise_ops) / g_.k / m_.vector;
    } else {
      b.result = o_rows * partial() * share();
    }
    s_.blocks.push_back(b);
  }

  // Of a block's joining of O with that of earlier keys, of the RoPE of its Q, and of the RoPE of a slice of keys.
  struct Shares {
    double joins;
    double rotates;
    double loads;
  };
  Step step(std::int64_t rows, double keys, double keys_loaded, const Shares& shares) const {
    Step s;
    const auto most = static_cast<std::int64_t>(std::ceil(keys - 1e-9));  // of a tile
    const auto& [up_m, up_n, up_k] = m_.rounding;  // keys are columns of the first product, depth of the second
    const double scores = rounded(rows, up_m) * rounded(most, up_n) * d(pairs_);
    const double joined = rounded(rows, up_m) * rounded(most, up_k) * d(pairs_);
    s.before = 2 * scores * rounded(p_.qk_dim, up_k) / m_.matrix;
    s.after = 2 * joined * rounded(p_.v_dim, up_n) / m_.matrix;
    const double sharers = map_.feed == Feed::direct ? 1 : g_.a.length;
    const double ops = p_.softmax_ops * d(rows) * d(most) + shares.joins * p_.rescale_ops * d(rows) * d(p_.v_dim) +
                       shares.rotates * p_.rope_ops * d(rows) * d(p_.qk_dim) +
                       shares.loads * p_.rope_ops * keys_loaded * d(p_.qk_dim) / sharers;
    s.vector = ops * d(pairs_) / m_.vector;
    const double per_key = d(pairs_) * e_.pairs.share() * (d(p_.qk_dim) * p_.k_bytes + d(p_.v_dim) * p_.v_bytes);
    s.a = keys_loaded * per_key;
    if (map_.feed == Feed::ring) {
      s.a /= sharers;
      const double pass = keys * per_key / sharers / m_.link + g_.a.longest * m_.hop_latency;
      const double units = map_.overlapped ? std::max(s.before + s.after, s.vector) : s.before + s.vector + s.after;
      s.after += (sharers - 1) * std::max(0.0, pass - units / sharers);  // for the next part
    }
    return s;
  }

  const Machine& m_;
  const AttentionProblem& p_;
  const AttentionMapping& map_;
  const Grid& g_;
  Schedule& s_;
  AttentionProblem::Extent e_;
  std::int64_t pairs_ = 1;
};

}  // namespace

std::int64_t AttentionProblem::visible(std::int64_t row) const {
  return causal ? std::clamp<std::int64_t>(keys - queries + row / group + 1, 0, keys) : keys;
}

double AttentionProblem::scores() const {
  const std::int64_t all = std::min(queries, keys);  // queries that see a key, under a mask
  const double seen = causal ? d(all) * d(keys - all) + d(all) * d(all + 1) / 2 : d(queries) * d(keys);
  return d(pairs()) * d(group) * seen;
}

double AttentionProblem::flops() const { return 2 * scores() * d(qk_dim + v_dim); }

double AttentionProblem::vector_ops() const {
  const double rotated = d(rows() + keys) * d(qk_dim);
  return softmax_ops * scores() + d(pairs()) * (rope_ops * rotated + normalise_ops * d(rows()) * d(v_dim));
}

double AttentionProblem::least_bytes() const {
  const double rows_bytes = d(rows()) * (d(qk_dim) * q_bytes + d(v_dim) * o_bytes);
  return d(pairs()) * (rows_bytes + d(keys) * (d(qk_dim) * k_bytes + d(v_dim) * v_bytes));
}

AttentionProblem::Extent extent_of(const AttentionProblem& p, const AttentionMapping& map) {
  const Grid& g = *map.grid;
  return {divided("pairs", p.pairs(), g.batch, map.hb), divided("rows", p.rows(), g.n, map.tx),
          divided("keys", p.keys, g.k, map.ty)};
}

namespace {

double sram_of(const AttentionProblem& p, const AttentionMapping& map, const AttentionProblem::Extent& e) {
  const double pairs = d(map.hb);
  const double rows = pairs * d(e.rows.block);
  const double keys = d(e.keys.block);
  const double per_key = pairs * (d(p.qk_dim) * p.k_bytes + d(p.v_dim) * p.v_bytes);
  // Of a slice that goes round a tile has a part, and room for one that passes through.
  const double sharers = map.feed == Feed::ring ? map.grid->a.length : 1;
  const double passing = map.feed == Feed::ring ? 1 : 0;
  const double kept = map.keys_outside ? keys : map.resident ? d(e.keys.part) : map.kv_slots * keys;
  const double kv = per_key * (kept + passing * keys) / sharers;
  const double partial = kAccumulator * (d(p.v_dim) + kStatistics);
  const bool fetches = map.keys_outside && e.keys.blocks > 1;
  const double q = rows * map.q_slots * (d(p.qk_dim) * p.q_bytes + (fetches ? partial : 0));
  const double scores = rows * keys * kAccumulator * (map.overlapped ? 2 : 1);
  const double staged = fetches ? partial : d(p.v_dim) * p.o_bytes / map.grid->k;
  const double o = rows * (map.results == Results::doubled  ? 2 * partial
                           : map.results == Results::staged ? partial + staged
                                                            : partial);
  return kv + q + scores + o;
}

}  // namespace

double sram_of(const AttentionProblem& p, const AttentionMapping& map) { return sram_of(p, map, extent_of(p, map)); }

void lower(const Machine& machine, const AttentionProblem& problem, const AttentionMapping& mapping,
           Schedule& schedule) {
  AttentionLowering(machine, problem, mapping, schedule).run();
}

namespace {

constexpr Growth kBlocks = {10, 4};  // of the number of blocks
constexpr Side<AttentionProblem> kAttentionSides[] = {{&AttentionMapping::tx, &AttentionProblem::Extent::rows},
                                                      {&AttentionMapping::ty, &AttentionProblem::Extent::keys}};

// Blocks that see more than one step of keys, those that see more than two, and so on, added up, at least. The last
// block sees `most` keys, each before it `hidden` fewer.
double blocks_beyond(double most, double step, double hidden, double blocks) {
  const double steps = std::max(0.0, std::ceil(most / step - 1e-9) - 1);
  const double all = std::clamp(std::floor((most - hidden * blocks) / step), 0.0, steps);  // that all blocks see
  const double some = steps - all;
  return all * blocks + some * (most - step * (all + (some + 1) / 2)) / hidden;
}

// Bounds. A mapping takes at least
//  * the channel: Q once per tile that shares the rows, and O; K and V, again per block of rows where they do not stay;
//    with keys outside, O in fp32 out and in again for every further block of keys;
//  * the load of the first step, and then the longer of the matrix unit's work on padded blocks and the vector unit's;
//    their sum where they do not overlap.
// A block of rows and keys is first bounded with what is best for the bound: K and V handed on, kept if a tile has room
// for them, units overlapped. In the order of these bounds everything else is gone through, each under its own; of
// slots the most that fit.
double bound_of(const Machine& m, const AttentionProblem& p, const AttentionMapping& map,
                const AttentionProblem::Extent& e) {
  const Grid& g = *map.grid;
  const double sharers = map.feed == Feed::direct ? 1 : g.a.length;
  const double tile_pairs = d(e.pairs.part);

  // Keys that the blocks of rows of a tile see, added up, of one tile. Under a mask at least what the last rows of a
  // block see, which is linear in the number of the block.
  double seen = d(e.keys.part) * d(e.rows.blocks);
  double row_keys = d(e.rows.part) * d(e.keys.part);
  double seen_first = d(p.keys) / g.k;
  double joined = d(e.rows.part) * d(e.keys.blocks - 1);  // times that a row of O is joined
  if (p.causal) {
    const double hidden = d(g.n * map.tx) / d(p.group) / g.k;  // keys fewer per block, at most
    const double blocks = d(e.rows.blocks);
    const double most = d(p.keys) / g.k;
    seen = blocks * most - hidden * blocks * (blocks - 1) / 2;
    seen_first = std::max(0.0, most - hidden * (blocks - 1));
    row_keys = d(map.tx) * seen - d(e.rows.blocks * map.tx - e.rows.part) * std::max(1.0, seen_first);
    joined = d(map.tx) * blocks_beyond(most, d(map.ty), hidden, d(e.rows.part) / d(map.tx));
  }
  const double loads = map.resident || map.keys_outside ? d(e.keys.part) : seen;  // of a key each, per pair

  // Units of a tile.
  const double row_rounding = rounded(e.rows.block, m.rounding[0]) / d(e.rows.block);
  const double dims = rounded(p.qk_dim, m.rounding[2]) + rounded(p.v_dim, m.rounding[1]);
  const double matrix = tile_pairs * 2 * row_keys * row_rounding * dims / m.matrix;
  const double vector = tile_pairs / m.vector *
                        (p.softmax_ops * row_keys + p.rescale_ops * joined * d(p.v_dim) +
                         p.rope_ops * d(p.qk_dim) * (d(e.rows.part) + loads / sharers));
  const double units = map.overlapped ? std::max(matrix, vector) : matrix + vector;

  // The channel.
  const double per_key = d(p.qk_dim) * p.k_bytes + d(p.v_dim) * p.v_bytes;
  const double copies = g.n / sharers;
  double bytes = d(p.pairs()) * g.k * copies * loads * per_key * d(p.keys) / (d(e.keys.part) * g.k);
  const double rows_share = d(p.rows()) / d(e.rows.part);  // of tiles' rows, those that there are
  double moved = d(p.rows()) * (g.k * d(p.qk_dim) * p.q_bytes + d(p.v_dim) * p.o_bytes);
  if (map.keys_outside) {
    moved += rows_share * g.k * joined * (2 * kAccumulator * d(p.v_dim) + d(p.qk_dim) * p.q_bytes);
  }
  moved *= d(p.pairs());
  bytes += moved;

  // The first step: of the first rows, which see least.
  const double first_rows = d(e.rows.last());
  const double first_seen = map.resident || map.keys_outside ? d(p.keys) / g.k : seen_first;
  const double first = d(map.hb) * g.batch * g.k * e.pairs.share() *
                       (copies * std::min(d(map.ty), first_seen) * per_key +
                        g.n * first_rows * e.rows.share() * d(p.qk_dim) * p.q_bytes);
  const double units_bound = first / m.dram + units + 2 * m.dram_latency;
  const double finished =
      tile_pairs / m.vector * d(e.rows.part) * d(p.v_dim) * (p.rescale_ops * (g.k - 1) + p.normalise_ops) / g.k;
  const double alternating = map.keys_outside ? (matrix + vector + moved / m.dram) / 2 : 0;
  return std::max({units_bound, vector + finished, bytes / m.dram + m.dram_latency, alternating}) * (1 - 1e-9);
}

// As many slots as there is room for, those of K and V first.
bool take_slots(const Machine& machine, const AttentionProblem& p, AttentionMapping& map,
                const AttentionProblem::Extent& e) {
  constexpr std::array<std::array<int, 2>, 6> kSlots = {{{3, 2}, {2, 2}, {3, 1}, {2, 1}, {1, 2}, {1, 1}}};
  const bool stays = map.resident || map.keys_outside;
  for (const auto& [kv, q] : kSlots) {
    if (stays && kv != 2) continue;
    map.kv_slots = kv;
    map.q_slots = q;
    if (sram_of(p, map, e) <= machine.sram) return true;
  }
  return false;
}

class AttentionExploration {
 public:
  AttentionExploration(Search<AttentionProblem>& search, const AttentionProblem& problem)
      : search_(search), machine_(search.machine), p_(problem) {}

  void run() {
    for (const Grid& grid : search_.grids) {
      if (grid.m == 1) collect(grid);
    }
    std::ranges::sort(candidates_, [](const Candidate& x, const Candidate& y) {
      return x.bound < y.bound || (x.bound == y.bound && x.order < y.order);
    });
    for (const Candidate& candidate : candidates_) {
      if (candidate.bound >= search_.limit()) break;
      expand(candidate.mapping);
    }
  }

 private:
  struct Candidate {  // the most favourable mapping of a grid, block and order
    AttentionMapping mapping;
    double bound;
    std::uint64_t order;  // of those alike in `bound`, the same however grids are kept
  };

  void collect(const Grid& grid) {
    AttentionMapping map;
    map.grid = &grid;
    order_ = place(grid) << 25;
    map.tx = map.ty = machine_.granule;
    const AttentionProblem::Extent e = extent_of(p_, map);
    const std::vector<std::int64_t> keys = block_sides(e.keys.part, machine_.granule, kBlocks);
    for (const std::int64_t tx : block_sides(e.rows.part, machine_.granule, kBlocks)) {
      map.tx = tx;
      for (const std::int64_t ty : keys) {
        map.ty = ty;
        map.hb = 1;
        map.keys_outside = false;
        propose(map);
        if (divide_up(e.rows.part, tx) >= kLeastRowBlocks && ty < e.keys.part) {
          map.keys_outside = true;
          propose(map);
          map.keys_outside = false;
        }
        if (tx < e.rows.part) continue;
        for (std::int64_t hb = 2; hb / 2 < e.pairs.part; hb *= 2) {
          map.hb = std::min(hb, e.pairs.part);
          if (!propose(map)) break;
        }
      }
    }
  }

  // False: it does not fit.
  bool propose(AttentionMapping map) {
    map.kv_slots = map.q_slots = 1;
    map.results = Results::in_place;
    map.overlapped = false;
    map.feed = map.grid->a.length > 1 ? Feed::ring : Feed::direct;  // the least memory
    const AttentionProblem::Extent e = extent_of(p_, map);
    map.resident = !map.keys_outside && e.rows.blocks > 1;
    if (map.resident && sram_of(p_, map, e) > machine_.sram) map.resident = false;
    if (sram_of(p_, map, e) > machine_.sram) return false;
    map.overlapped = true;
    candidates_.push_back({map, bound_of(machine_, p_, map, e), order_++});
    return true;
  }

  // Everything else for one grid, block and order.
  void expand(AttentionMapping map) {
    const bool shared = map.grid->a.length > 1;
    const AttentionProblem::Extent e = extent_of(p_, map);
    const bool reused = !map.keys_outside && e.rows.blocks > 1;
    for (const Feed feed : {Feed::multicast, Feed::direct, Feed::ring}) {
      if (!shared && feed != Feed::direct) continue;
      map.feed = feed;
      for (const bool overlapped : {true, false}) {
        map.overlapped = overlapped;
        for (const bool resident : {true, false}) {
          if (resident && !reused) continue;
          map.resident = resident;
          const double bound = bound_of(machine_, p_, map, e);
          if (bound >= search_.limit()) continue;
          for (const Results results : {Results::staged, Results::doubled, Results::in_place}) {
            map.results = results;
            if (bound < search_.limit() && take_slots(machine_, p_, map, e)) search_.consider(p_, map);
          }
        }
      }
    }
  }

  Search<AttentionProblem>& search_;
  const Machine& machine_;
  const AttentionProblem& p_;
  std::vector<Candidate> candidates_;
  std::uint64_t order_ = 0;  // of the next candidate
};

}  // namespace

bool alike(const AttentionMapping& x, const AttentionMapping& y) {
  return x.grid == y.grid && x.tx == y.tx && x.ty == y.ty && x.hb == y.hb && x.keys_outside == y.keys_outside;
}

void explore(Search<AttentionProblem>& search, const AttentionProblem& problem) {
  AttentionExploration(search, problem).run();
}

void vary(Nearby<AttentionProblem>& near) {
  using Map = AttentionMapping;
  near.other_blocks(kAttentionSides);
  near.each(&Map::hb, {near.from.hb * 2, std::max<std::int64_t>(1, near.from.hb / 2)});
  near.each(&Map::results, {Results::in_place, Results::staged, Results::doubled});
  near.each(&Map::feed, {Feed::multicast, Feed::direct, Feed::ring});
  for (bool Map::*decision : {&Map::overlapped, &Map::resident, &Map::keys_outside}) {
    near.each(decision, {!(near.from.*decision)});
  }
  near.other_grids(kAttentionSides, [](Map& map) {
    if (map.feed == Feed::direct) map.feed = Feed::multicast;
  });
}

bool settle(const Machine& machine, const AttentionProblem& p, AttentionMapping& map) {
  if (map.grid->m > 1) return false;
  const AttentionProblem::Extent e = extent_of(p, map);
  if (map.keys_outside && (e.rows.blocks < kLeastRowBlocks || e.keys.blocks == 1)) return false;
  if (map.keys_outside || e.rows.blocks > 1) map.hb = 1;
  map.hb = std::min(map.hb, e.pairs.part);
  if (map.keys_outside || e.rows.blocks == 1) map.resident = false;
  if (map.grid->a.length == 1) map.feed = Feed::direct;
  return take_slots(machine, p, map, e);
}

}  // namespace llmperf::mapper::tile
