// Mappings that differ from one in a single decision: the number of blocks of a dimension, the kind of results, the
// tail, a feed, slots, two factors of the grid, or which operand is called A. What the decision leaves no choice about
// follows it: feeds of operands that are not shared, sides of blocks of the new parts, what stays.
#include <algorithm>

#include "base/integer.h"
#include "mapper/tile/gemm_search.h"

namespace llmperf::mapper::tile {
namespace {

class Neighbours {
 public:
  Neighbours(const Machine& machine, const GemmProblem& problem, const GemmChoice& choice)
      : m_(machine), given_(problem), turned_(problem.transposed()), from_(choice) {}

  std::vector<GemmChoice> all(std::span<const Grid> grids) {
    const GemmExtent e = extent_of(problem(from_.transposed), from_.mapping);
    blocks(&GemmMapping::bm, e.m, e.blocks_m);
    blocks(&GemmMapping::bn, e.n, e.blocks_n);
    blocks(&GemmMapping::bk, e.k, e.blocks_k);
    for (const Results results : {Results::in_place, Results::staged, Results::doubled}) {
      change([&](GemmMapping& map) { map.results = results; });
    }
    change([](GemmMapping& map) { map.tail = map.tail > 1 ? 1 : kMostPieces; });
    for (Stream GemmMapping::*operand : {&GemmMapping::a, &GemmMapping::b}) {
      for (const Feed feed : {Feed::multicast, Feed::direct, Feed::ring}) {
        change([&](GemmMapping& map) { (map.*operand).feed = feed; });
      }
      change([&](GemmMapping& map) { (map.*operand).slots = 3 - (map.*operand).slots; });
    }
    for (const Grid* grid : neighbours(grids, *from_.mapping.grid)) move(*grid, from_.transposed, e);
    // The transposed product exchanges rows and columns, and with the grid turned too only A and B exchange their
    // parts.
    const Grid& g = *from_.mapping.grid;
    move(g, !from_.transposed, e);
    const auto turned = std::find_if(grids.begin(), grids.end(), [&](const Grid& other) {
      return other.batch == g.batch && other.m == g.n && other.n == g.m && other.k == g.k;
    });
    if (turned != grids.end()) move(*turned, !from_.transposed, e);
    std::stable_sort(found_.begin(), found_.end(),
                     [](const GemmChoice& x, const GemmChoice& y) { return x.time.seconds < y.time.seconds; });
    return std::move(found_);
  }

 private:
  const GemmProblem& problem(bool transposed) const { return transposed ? turned_ : given_; }

  template <typename Change>
  void change(const Change& apply) {
    GemmMapping map = from_.mapping;
    apply(map);
    add(from_.transposed, map);
  }

  void blocks(std::int64_t GemmMapping::*side, std::int64_t extent, std::int64_t count) {
    for (const std::int64_t other : other_sides(extent, count, m_.granule)) {
      change([&](GemmMapping& map) { map.*side = other; });
    }
  }

  // As many blocks as before, of the parts on another grid.
  void move(const Grid& grid, bool transposed, const GemmExtent& before) {
    GemmMapping map = from_.mapping;
    map.grid = &grid;
    const GemmExtent part = extent_of(problem(transposed), map);
    const auto side = [&](std::int64_t extent, std::int64_t count) {
      return divide_up(divide_up(extent, count), m_.granule) * m_.granule;
    };
    map.bm = side(part.m, before.blocks_m);
    map.bn = side(part.n, before.blocks_n);
    map.bk = side(part.k, before.blocks_k);
    if (map.a.feed == Feed::direct) map.a.feed = Feed::multicast;
    if (map.b.feed == Feed::direct) map.b.feed = Feed::multicast;
    add(transposed, map);
  }

  void add(bool transposed, GemmMapping map) {
    const GemmProblem& p = problem(transposed);
    if (map.grid->batch > p.batch) return;
    if (map.grid->a.length == 1) map.a.feed = Feed::direct;
    if (map.grid->b.length == 1) map.b.feed = Feed::direct;
    const GemmExtent e = extent_of(p, map);
    map.bb = e.blocks_m * e.blocks_n > 1 ? 1 : std::min(map.bb, e.batch);
    if (map.bb > 1 || p.finish_bytes > 0) map.tail = 1;
    if (map.results == Results::staged && e.blocks_k == 1 && map.grid->k == 1) return;  // as doubled
    const int slots = map.a.slots;
    map.a.slots = 1;
    const std::int64_t extra = slices_to_stay(m_, map, GemmMemory(p, map, e));
    if (extra < 0) return;
    const bool reused = e.blocks_n > 1;
    const bool all = reused && extra + 1 >= e.blocks_k;
    if (!all && extra > 0) map.a.slots = slots;
    map.panel = all ? e.blocks_k : reused ? std::min(e.blocks_k - 1, extra - (map.a.slots - 1)) : 0;
    if (transposed == from_.transposed && map == from_.mapping) return;
    const auto known = [&](const GemmChoice& c) { return c.transposed == transposed && c.mapping == map; };
    if (std::any_of(found_.begin(), found_.end(), known)) return;
    lower(m_, p, map, schedule_);
    found_.push_back({transposed, map, pipeline_time(m_, schedule_)});
  }

  const Machine& m_;
  const GemmProblem& given_;
  const GemmProblem turned_;
  const GemmChoice& from_;
  Schedule schedule_;
  std::vector<GemmChoice> found_;
};

}  // namespace

std::vector<GemmChoice> GemmSearch::near(const GemmProblem& problem, const GemmChoice& choice) const {
  return Neighbours(machine_, problem, choice).all(grids_);
}

}  // namespace llmperf::mapper::tile
