// Bounds. A mapping takes at least the channel's time for all bytes, and the load of the first block and then the
// vector unit's work.
#include "mapper/tile/vector_search.h"

#include <algorithm>

#include "mapper/tile/gemm_search.h"

namespace llmperf::mapper::tile {
namespace {

constexpr Growth kGrowth = {12, 4};          // of the number of blocks
constexpr double kIndifferent = 1e-3;        // mappings that may be faster by this are not looked for
constexpr std::int64_t kMostBlocks = 16384;  // of a tile
double d(std::int64_t x) { return static_cast<double>(x); }

}  // namespace

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
  const auto alike = [&](const VectorChoice& c) {
    return c.mapping.grid == map.grid && c.mapping.br == map.br && c.mapping.bc == map.bc;
  };
  const auto same = std::find_if(best_.begin(), best_.end(), alike);
  if (same != best_.end()) {
    if (same->time.seconds <= time.seconds) return;
    best_.erase(same);
  }
  const auto place = std::upper_bound(best_.begin(), best_.end(), time.seconds,
                                      [](double t, const VectorChoice& c) { return t < c.time.seconds; });
  best_.insert(place, {map, time});
  if (best_.size() > keep_) best_.pop_back();
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
        map.slots = 3;
        while (map.slots > 1 && sram_of(p, map) > machine_.sram) --map.slots;
        if (sram_of(p, map) <= machine_.sram) consider(p, map);
      }
    }
  }
}

std::vector<VectorChoice> VectorSearch::best(const VectorProblem& problem, std::size_t keep) {
  keep_ = keep;
  best_.clear();
  const VectorProblem flat = problem.flat();
  for (auto grid = grids_.rbegin(); grid != grids_.rend(); ++grid) {  // rows rather than columns
    if (grid->batch == 1 && grid->m == 1 && (grid->k == 1 || flat.width > 1)) expand(flat, *grid);
  }
  return best_;
}

VectorChoice VectorSearch::exhaustive(const VectorProblem& problem) {
  bounds_ = false;
  const std::vector<VectorChoice> all = best(problem, 1);
  bounds_ = true;
  return all.empty() ? VectorChoice{} : all.front();
}

}  // namespace llmperf::mapper::tile
