// Best first over the sides of blocks on all grids, in the order of an estimate; then everything else for one block,
// level by level. What a bound of gemm_bounds.h excludes is not looked at further. Of panels only the largest that fits
// is tried, and of slots for A only one where all of it stays.
//
// What is equal by its estimate or time is taken in an order of the mappings themselves, so that the result does not
// depend on how grids are kept or a library sorts. A first look at few sides finds a good mapping, so that the bounds
// exclude most from the start.
#include "mapper/tile/gemm_search.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/integer.h"

namespace llmperf::mapper::tile {
namespace {

constexpr Growth kSides{12, 8};  // numbers of blocks along m and n
constexpr Growth kCoarse{1, 1};  // the same for a first look: powers of two
constexpr Growth kDepths{3, 2};  // of slices
constexpr std::size_t kSeeds = 32;
constexpr double kTolerance = 1e-3;    // mappings that are faster by less are not looked for
constexpr double kIndifferent = 5e-9;  // s
constexpr double kUnlimited = std::numeric_limits<double>::infinity();

}  // namespace

std::vector<std::int64_t> block_sides(std::int64_t extent, int granule, Growth growth) {
  std::vector<std::int64_t> sides;
  const std::int64_t most = divide_up(extent, granule);
  for (std::int64_t blocks = 1; blocks <= most;) {
    const std::int64_t side = divide_up(divide_up(extent, blocks), granule) * granule;
    if (sides.empty() || side < sides.back()) sides.push_back(side);
    blocks += blocks < growth.exact ? 1 : std::max<std::int64_t>(1, blocks / growth.part);
  }
  return sides;
}

std::vector<std::int64_t> other_sides(std::int64_t extent, std::int64_t blocks, int granule) {
  std::vector<std::int64_t> sides;
  const std::int64_t most = divide_up(extent, granule);
  for (const std::int64_t other : {blocks - 1, blocks + 1, blocks / 2, blocks * 2}) {
    if (other < 1 || other > most) continue;
    const std::int64_t side = divide_up(divide_up(extent, other), granule) * granule;
    if (std::find(sides.begin(), sides.end(), side) == sides.end()) sides.push_back(side);
  }
  return sides;
}

bool alike(const GemmChoice& x, const GemmChoice& y) {
  return x.transposed == y.transposed && x.mapping.grid == y.mapping.grid && x.mapping.bm == y.mapping.bm &&
         x.mapping.bn == y.mapping.bn && x.mapping.results == y.mapping.results;
}

const std::vector<Cut>& GemmSearch::cuts(std::int64_t extent, Growth growth) {
  for (const Cuts& known : cuts_) {
    if (known.extent == extent && known.growth == growth) return known.cuts;
  }
  Cuts& made = cuts_.emplace_back(Cuts{extent, growth, {}});
  for (const std::int64_t side : block_sides(extent, machine_.granule, growth)) {
    made.cuts.emplace_back(extent, side, machine_.granule);
  }
  return made.cuts;
}

void GemmSearch::collect(const GemmProblem& problem, bool transposed, Growth growth) {
  for (const Grid& grid : grids_) {
    if (grid.batch > problem.batch) continue;
    const GridBound bound(machine_, problem, grid);
    if (bound.seconds >= limit_) continue;
    const GemmExtent& e = bound.extent;
    collect(
        spaces_.emplace_back(Space{bound, transposed, &cuts(e.m, growth), &cuts(e.n, growth), &cuts(e.k, kDepths)}));
  }
}

void GemmSearch::collect(const Space& space) {
  const GridBound& grid = space.bound;
  const double element = grid.problem.c_bytes * grid.problem.results;
  std::uint64_t order = (place(grid.grid) << 1 | (space.transposed ? 1 : 0)) << 27;
  for (const Cut& m : *space.m) {
    if (grid.a + grid.b * m.blocks + grid.c + grid.latencies >= limit_)
      break;  // narrower blocks only need B more often
    for (const Cut& n : *space.n) {
      const double least = m.size * n.size * element;
      if (least > machine_.sram) continue;
      ++count_.bounded;
      const SidesBound sides(grid, m, n);
      if (sides.seconds >= limit_) continue;
      const auto add = [&](Results results, std::int64_t products) {
        const ResultsBound bound(sides, results, products);
        if (!bound.fits || bound.seconds >= limit_) return;
        candidates_.push_back({&space, &m, &n, products, results, bound.seconds, bound.likely, order++});
      };
      const auto fit = std::min(grid.extent.batch, static_cast<std::int64_t>(machine_.sram / least));
      for (const Results results : {Results::staged, Results::doubled, Results::in_place}) {
        add(results, 1);
        if (!sides.pieces) continue;
        for (std::int64_t products = 2; products <= fit; products *= 2) add(results, products);
      }
    }
  }
}

void GemmSearch::expand(const Candidate& candidate, Look look) {
  const SidesBound sides(candidate.space->bound, *candidate.m, *candidate.n);
  const ResultsBound results(sides, candidate.results, candidate.bb);
  GemmMapping map;
  map.grid = &candidate.space->bound.grid;
  map.bm = candidate.m->side;
  map.bn = candidate.n->side;
  map.bb = candidate.bb;
  map.results = candidate.results;
  constexpr std::array kFeeds = {Feed::multicast, Feed::direct, Feed::ring};
  const std::size_t feeds = look == Look::coarse ? 2 : kFeeds.size();
  for (std::size_t a = 0; a < feeds; ++a) {
    if (map.grid->a.length == 1 && kFeeds[a] != Feed::direct) continue;
    for (std::size_t b = 0; b < feeds; ++b) {
      if (map.grid->b.length == 1 && kFeeds[b] != Feed::direct) continue;
      const FeedsBound bound(results, kFeeds[a], kFeeds[b]);
      if (bound.seconds >= limit_) continue;
      map.a.feed = kFeeds[a];
      map.b.feed = kFeeds[b];
      expand(bound, *candidate.space, map, look);
    }
  }
}

void GemmSearch::expand(const FeedsBound& feeds, const Space& space, GemmMapping map, Look look) {
  constexpr std::int64_t kMost = 512;
  const std::int64_t least = std::min<std::int64_t>(64, space.k->front().side);
  for (const Cut& k : *space.k) {
    if (look == Look::coarse && (k.side > kMost || k.side < least)) continue;
    // Nothing is summed up: as doubled.
    if (map.results == Results::staged && k.blocks == 1 && map.grid->k == 1) continue;
    const DepthBound bound(feeds, k);
    if (bound.seconds >= limit_) continue;
    map.bk = k.side;
    expand(bound, space, map);
  }
}

void GemmSearch::expand(const DepthBound& depth, const Space& space, GemmMapping map) {
  const GemmProblem& problem = space.bound.problem;
  const GemmMemory memory(problem, map, space.bound.extent);
  const bool reused = depth.feeds.results.sides.n.blocks > 1;
  const std::int64_t slices = depth.slices;
  for (int b_slots = 2; b_slots >= 1; --b_slots) {
    map.a.slots = 1;
    map.b.slots = b_slots;
    const std::int64_t extra = slices_to_stay(machine_, map, memory);
    if (extra < 0) continue;
    const bool all = reused && extra + 1 >= slices;
    for (int a_slots = all ? 1 : 2; a_slots >= 1; --a_slots) {
      if (!all && a_slots - 1 > extra) continue;
      map.a.slots = a_slots;
      map.panel = all ? slices : reused ? std::min(slices - 1, extra - (a_slots - 1)) : 0;
      const SlotsBound slots(depth, a_slots, b_slots, map.panel);
      if (slots.seconds >= limit_) continue;
      for (const std::int64_t tail : {std::int64_t{1}, kMostPieces}) {
        if (tail > 1 && (map.bb > 1 || problem.finish_bytes > 0)) break;
        if (TailBound(slots, tail).seconds >= limit_) continue;
        map.tail = tail;
        consider(space, map);
      }
    }
  }
}

void GemmSearch::consider(const Space& space, const GemmMapping& map) {
  ++count_.evaluated;
  lower(machine_, space.bound.problem, map, schedule_);
  const PipelineTime time = pipeline_time(machine_, schedule_);
  const auto grid = static_cast<std::size_t>(map.grid - grids_.data());
  const std::size_t kind = (2 * grid + (space.transposed ? 1 : 0)) * 3 + static_cast<std::size_t>(map.results);
  std::size_t& varied = place_in_varied_[kind];
  if (varied == 0) {
    varied_.push_back({space.transposed, map, time});
    varied = varied_.size();
  } else if (time.seconds < varied_[varied - 1].time.seconds) {
    varied_[varied - 1] = {space.transposed, map, time};
  }
  if (best_.size() == keep_ && time.seconds >= best_.back().time.seconds) return;
  const GemmChoice choice{space.transposed, map, time};
  // Of mappings alike in grid, sides and results only the fastest is of interest.
  const auto same = std::find_if(best_.begin(), best_.end(), [&](const GemmChoice& c) { return alike(c, choice); });
  if (same != best_.end()) {
    if (same->time.seconds <= time.seconds) return;
    best_.erase(same);
  }
  const auto place = std::upper_bound(best_.begin(), best_.end(), time.seconds,
                                      [](double t, const GemmChoice& c) { return t < c.time.seconds; });
  best_.insert(place, choice);
  if (best_.size() > keep_) best_.pop_back();
  if (bounds_ && best_.size() == keep_) limit_ = best_.back().time.seconds * (1 - kTolerance) - kIndifferent;
}

std::vector<GemmChoice> GemmSearch::best(const GemmProblem& problem, std::size_t keep) {
  keep_ = keep;
  limit_ = kUnlimited;
  best_.clear();
  varied_.clear();
  place_in_varied_.assign(grids_.size() * 2 * 3, 0);
  cuts_.clear();
  const GemmProblem transposed = problem.transposed();
  const auto collect_all = [&](Growth growth, std::size_t wanted) {
    spaces_.clear();
    candidates_.clear();
    collect(problem, false, growth);
    collect(transposed, true, growth);
    const auto goes_before = [](const Candidate& x, const Candidate& y) {
      return x.likely < y.likely || (x.likely == y.likely && x.order < y.order);
    };
    if (wanted < candidates_.size()) {
      const auto last = candidates_.begin() + static_cast<std::ptrdiff_t>(wanted);
      std::nth_element(candidates_.begin(), last, candidates_.end(), goes_before);
      candidates_.resize(wanted, candidates_.front());
    }
    std::sort(candidates_.begin(), candidates_.end(), goes_before);
  };
  if (bounds_) {
    collect_all(kCoarse, kSeeds);
    for (const Candidate& candidate : candidates_) expand(candidate, Look::coarse);
  }
  collect_all(kSides, candidates_.max_size());
  for (const Candidate& candidate : candidates_) {
    if (candidate.bound < limit_) expand(candidate, Look::full);
  }
  return best_;
}

std::vector<GemmChoice> GemmSearch::varied(const GemmProblem& problem) {
  best(problem, 1);
  std::sort(varied_.begin(), varied_.end(), [](const GemmChoice& x, const GemmChoice& y) {
    if (x.time.seconds != y.time.seconds) return x.time.seconds < y.time.seconds;
    if (x.transposed != y.transposed) return y.transposed;
    if (x.mapping.grid != y.mapping.grid) return before(*x.mapping.grid, *y.mapping.grid);
    return x.mapping.results < y.mapping.results;
  });
  return varied_;
}

GemmChoice GemmSearch::exhaustive(const GemmProblem& problem) {
  bounds_ = false;
  std::vector<GemmChoice> all = best(problem, 1);
  bounds_ = true;
  return all.empty() ? GemmChoice{} : all.front();
}

}  // namespace llmperf::mapper::tile
