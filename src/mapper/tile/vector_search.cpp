// Bounds. A mapping takes at least the channel's time for all bytes, and the load of the first block and then the
// vector unit's work.
#include "mapper/tile/vector_search.h"

#include <algorithm>

#include "base/integer.h"
#include "mapper/tile/gemm_search.h"

namespace llmperf::mapper::tile {
namespace {

constexpr Growth kGrowth = {12, 4};          // of the number of blocks
constexpr double kIndifferent = 1e-3;        // mappings that may be faster by this are not looked for
constexpr std::int64_t kMostBlocks = 16384;  // of a tile
double d(std::int64_t x) { return static_cast<double>(x); }
bool divides(const VectorProblem& p, const Grid& g) { return g.batch == 1 && g.m == 1 && (g.k == 1 || p.width > 1); }

}  // namespace

bool alike(const VectorChoice& x, const VectorChoice& y) {
  return x.mapping.grid == y.mapping.grid && x.mapping.br == y.mapping.br && x.mapping.bc == y.mapping.bc;
}

double VectorSearch::bound(const VectorProblem& p, const VectorMapping& map) const {
  const VectorExtent e = extent_of(p, map);
  const Grid& g = *map.grid;
  const double copies = map.feed == Feed::direct ? g.n : 1;
  const double shared = d(p.width) * p.shared_bytes * copies;
  const double elements = d(p.rows) * d(p.width);
  const double channel = (elements * (p.in_bytes + p.out_bytes) + shared) / machine_.dram;
  const double part = d(std::min(map.bc, e.columns)) / d(e.columns);
  const double first = part * (shared + elements * p.in_bytes * d(std::min(map.br, e.rows)) / d(e.rows));
  const bool spread = p.row_wise && g.k > 1;  // some of the work waits for nothing but statistics
  const double vector = d(e.rows) * d(e.columns) * p.ops / machine_.vector * (spread ? 0.5 : 1.0);
  const double latency = machine_.dram_latency;
  return std::max(first / machine_.dram + vector + 2 * latency, channel + latency) * (1 - 1e-9);
}

void VectorSearch::consider(const VectorProblem& p, const VectorMapping& map) {
  const bool full = bounds_ && best_.size() == keep_;
  if (full && bound(p, map) >= best_.back().time.seconds * (1 - kIndifferent)) return;
  ++evaluated_;
  lower(machine_, p, map, schedule_);
  const PipelineTime time = pipeline_time(machine_, schedule_);
  const VectorChoice choice{map, time};
  const auto same = std::find_if(best_.begin(), best_.end(), [&](const VectorChoice& c) { return alike(c, choice); });
  if (same != best_.end()) {
    if (same->time.seconds <= time.seconds) return;
    best_.erase(same);
  }
  const auto place = std::upper_bound(best_.begin(), best_.end(), time.seconds,
                                      [](double t, const VectorChoice& c) { return t < c.time.seconds; });
  best_.insert(place, choice);
  if (best_.size() > keep_) best_.pop_back();
}

// As many as there is room for.
bool VectorSearch::take_slots(const VectorProblem& p, VectorMapping& map) const {
  for (map.slots = 3; map.slots >= 1; --map.slots) {
    if (sram_of(p, map) <= machine_.sram) return true;
  }
  return false;
}

void VectorSearch::expand(const VectorProblem& p, const Grid& grid) {
  VectorMapping map;
  map.grid = &grid;
  const VectorExtent e = extent_of(p, map);
  const std::vector<std::int64_t> columns =
      p.row_wise ? std::vector{e.columns} : block_sides(e.columns, machine_.granule, kGrowth);
  const bool shared = p.shared_bytes > 0 && grid.a.length > 1;
  for (const std::int64_t bc : columns) {
    map.bc = bc;
    for (const std::int64_t br : block_sides(e.rows, 1, kGrowth)) {
      map.br = br;
      if (extent_of(p, map).blocks_rows > kMostBlocks) break;
      map.feed = shared ? Feed::multicast : Feed::direct;
      for (const Results results : {Results::doubled, Results::in_place}) {
        map.results = results;
        if (take_slots(p, map)) consider(p, map);
      }
    }
  }
}

std::vector<VectorChoice> VectorSearch::best(const VectorProblem& problem, std::size_t keep) {
  keep_ = keep;
  best_.clear();
  const VectorProblem flat = problem.flat();
  std::vector<const Grid*> grids;
  for (const Grid& grid : grids_) {
    if (divides(flat, grid)) grids.push_back(&grid);
  }
  std::sort(grids.begin(), grids.end(), [](const Grid* x, const Grid* y) { return before(*y, *x); });  // rows first
  for (const Grid* grid : grids) expand(flat, *grid);
  return best_;
}

std::vector<VectorChoice> VectorSearch::near(const VectorProblem& problem, const VectorChoice& choice) const {
  const VectorProblem p = problem.flat();
  std::vector<VectorChoice> found;
  Schedule schedule;
  const auto change = [&](const auto& apply) {
    VectorMapping map = choice.mapping;
    apply(map);
    // What follows from it.
    const VectorExtent e = extent_of(p, map);
    if (p.row_wise) map.bc = e.columns;
    map.feed = p.shared_bytes > 0 && map.grid->a.length > 1 ? Feed::multicast : Feed::direct;
    if (e.blocks_rows > kMostBlocks || !take_slots(p, map) || map == choice.mapping) return;
    if (std::any_of(found.begin(), found.end(), [&](const VectorChoice& c) { return c.mapping == map; })) return;
    lower(machine_, p, map, schedule);
    found.push_back({map, pipeline_time(machine_, schedule)});
  };
  const VectorExtent e = extent_of(p, choice.mapping);
  for (const std::int64_t br : other_sides(e.rows, e.blocks_rows, 1)) {
    change([&](VectorMapping& map) { map.br = br; });
  }
  for (const std::int64_t bc : other_sides(e.columns, e.blocks_columns, machine_.granule)) {
    change([&](VectorMapping& map) { map.bc = bc; });
  }
  for (const Results results : {Results::doubled, Results::in_place}) {
    change([&](VectorMapping& map) { map.results = results; });
  }
  for (const Grid* grid : neighbours(grids_, *choice.mapping.grid)) {
    if (!divides(p, *grid)) continue;
    change([&](VectorMapping& map) {
      map.grid = grid;
      const VectorExtent part = extent_of(p, map);
      map.br = divide_up(part.rows, e.blocks_rows);
      map.bc = divide_up(divide_up(part.columns, e.blocks_columns), machine_.granule) * machine_.granule;
    });
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const VectorChoice& x, const VectorChoice& y) { return x.time.seconds < y.time.seconds; });
  return found;
}

VectorChoice VectorSearch::exhaustive(const VectorProblem& problem) {
  bounds_ = false;
  const std::vector<VectorChoice> all = best(problem, 1);
  bounds_ = true;
  return all.empty() ? VectorChoice{} : all.front();
}

}  // namespace llmperf::mapper::tile
