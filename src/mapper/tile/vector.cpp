// A block is made in one step. The shared operand is stream A, one slice of it per row of blocks, which stays; the
// others are stream B. Statistics of a row that is spread over p tiles are two numbers, of which each tile sends (p -
// 1) / p to the others; the work that needs them, half of it, comes after that.
#include "mapper/tile/vector.h"

#include <algorithm>

#include "base/integer.h"

namespace llmperf::mapper::tile {
namespace {

constexpr double kRowBytes = 8;  // of statistics

constexpr Growth kGrowth = {12, 4};          // of the number of blocks
constexpr std::int64_t kMostBlocks = 16384;  // of a tile
bool divides(const VectorProblem& p, const Grid& g) { return g.batch == 1 && g.m == 1 && (g.k == 1 || p.width > 1); }

}  // namespace

double VectorProblem::flops() const { return d(rows) * d(width) * products; }

double VectorProblem::vector_ops() const { return d(rows) * d(width) * ops; }

double VectorProblem::least_bytes() const {
  return d(rows) * d(width) * (in_bytes + out_bytes) + d(width) * shared_bytes;
}

VectorProblem VectorProblem::flat() const {
  if (row_wise || shared_bytes > 0) return *this;
  VectorProblem result = *this;
  result.rows = rows * width;
  result.width = 1;
  return result;
}

VectorExtent extent_of(const VectorProblem& p, const VectorMapping& map) {
  VectorExtent e{};
  e.rows = divide_up(p.rows, map.grid->n);
  e.columns = divide_up(p.width, map.grid->k);
  e.blocks_rows = divide_up(e.rows, map.br);
  e.blocks_columns = divide_up(e.columns, map.bc);
  return e;
}

double sram_of(const VectorProblem& p, const VectorMapping& map) {
  const VectorExtent e = extent_of(p, map);
  const double columns = d(std::min(map.bc, e.columns));
  const double block = d(std::min(map.br, e.rows)) * columns;
  const double results = map.results == Results::in_place ? 1 : 2;
  return columns * p.shared_bytes + block * (map.slots * p.in_bytes + results * p.out_bytes);
}

void lower(const Machine& m, const VectorProblem& p, const VectorMapping& map, Schedule& s) {
  const VectorExtent e = extent_of(p, map);
  const Grid& g = *map.grid;
  s.clear();
  s.grid = map.grid;
  s.a = {map.feed, 2, p.shared_bytes > 0};
  s.b = {Feed::direct, map.slots, true};
  s.panel = p.shared_bytes > 0 ? 1 : 0;
  s.results = map.results;
  s.overlapped = p.products == 0 || !m.shared_issue;
  s.start_slots = 2;
  // Of a tile's part, the share that is not past the end, on the mean over tiles.
  const double row_share = d(p.rows) / (d(e.rows) * g.n);
  const double column_share = d(p.width) / (d(e.columns) * g.k);
  const double later = p.row_wise && g.k > 1 ? 0.5 : 0;  // of the work, after statistics have been added up
  const auto add = [&](std::int64_t rows, std::int64_t columns, std::int64_t count) {
    const double elements = d(rows) * d(columns);
    const double real = elements * row_share * column_share;
    Block b;
    b.last.vector = elements * p.ops * (1 - later) / m.vector;
    b.last.after = elements * p.products / m.matrix;
    b.last.a = d(columns) * p.shared_bytes * column_share;
    b.last.b = real * p.in_bytes;
    b.full = b.last;
    b.result = real * p.out_bytes;
    if (later > 0) {
      b.reduce = d(rows) * kRowBytes * (g.k - 1) / g.k;
      b.finish = elements * p.ops * later / m.vector;
    }
    s.blocks.push_back(b);
    s.runs.push_back({s.blocks.size() - 1, count});
  };
  const auto row = [&](std::int64_t columns, std::int64_t count) {
    Row blocks{s.runs.size(), 0};
    if (e.blocks_rows > 1) add(map.br, columns, e.blocks_rows - 1);
    add(e.rows - (e.blocks_rows - 1) * map.br, columns, 1);
    blocks.end = s.runs.size();
    s.rows.push_back(blocks);
    s.sequence.push_back({s.rows.size() - 1, count});
  };
  if (e.blocks_columns > 1) row(map.bc, e.blocks_columns - 1);
  row(e.columns - (e.blocks_columns - 1) * map.bc, 1);
}

bool alike(const VectorChoice& x, const VectorChoice& y) {
  return x.mapping.grid == y.mapping.grid && x.mapping.br == y.mapping.br && x.mapping.bc == y.mapping.bc;
}

// Bounds. A mapping takes at least the channel's time for all bytes, and the load of the first block and then the
// busier unit's work.
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
  const double units =
      d(e.rows) * d(e.columns) * std::max(p.ops / machine_.vector * (spread ? 0.5 : 1.0), p.products / machine_.matrix);
  const double latency = machine_.dram_latency;
  return std::max(first / machine_.dram + units + 2 * latency, channel + latency) * (1 - 1e-9);
}

void VectorSearch::consider(const VectorProblem& p, const VectorMapping& map) {
  if (bound(p, map) >= limit()) return;
  best_.add({map, timed(p, map)});
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

std::vector<VectorChoice> VectorSearch::best(const VectorProblem& problem, std::size_t keep, double below) {
  best_.begin(keep, below);
  const VectorProblem flat = problem.flat();
  std::vector<const Grid*> grids;
  for (const Grid& grid : grids_) {
    if (divides(flat, grid)) grids.push_back(&grid);
  }
  std::ranges::sort(grids, [](const Grid* x, const Grid* y) { return before(*y, *x); });  // rows first
  for (const Grid* grid : grids) expand(flat, *grid);
  return best_.all();
}

std::vector<VectorChoice> VectorSearch::near(const VectorProblem& problem, const VectorChoice& choice) const {
  const VectorProblem p = problem.flat();
  Nearby<VectorChoice> found(machine_, choice);
  const auto change = [&](const auto& apply) {
    VectorMapping map = choice.mapping;
    apply(map);
    // What follows from it.
    const VectorExtent e = extent_of(p, map);
    if (p.row_wise) map.bc = e.columns;
    map.feed = p.shared_bytes > 0 && map.grid->a.length > 1 ? Feed::multicast : Feed::direct;
    if (e.blocks_rows <= kMostBlocks && take_slots(p, map)) found.add(p, {map, {}});
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
      map.bc = block_side(part.columns, e.blocks_columns, machine_.granule);
    });
  }
  return found.sorted();
}

}  // namespace llmperf::mapper::tile
