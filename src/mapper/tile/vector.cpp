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
constexpr Side<VectorProblem> kVectorSides[] = {{&VectorMapping::br, &VectorProblem::Extent::rows, true},
                                                {&VectorMapping::bc, &VectorProblem::Extent::columns}};

bool divides(const VectorProblem& p, const Grid& g) { return g.batch == 1 && g.m == 1 && (g.k == 1 || p.width > 1); }

// As many as there is room for.
bool take_slots(const Machine& machine, const VectorProblem& p, VectorMapping& map) {
  for (map.slots = 3; map.slots >= 1; --map.slots) {
    if (sram_of(p, map) <= machine.sram) return true;
  }
  return false;
}

// A mapping takes at least the channel's time for all bytes, and the load of the first block and then the busier unit's
// work.
double bound_of(const Machine& machine, const VectorProblem& p, const VectorMapping& map) {
  const VectorProblem::Extent e = extent_of(p, map);
  const Grid& g = *map.grid;
  const double copies = map.feed == Feed::direct ? g.n : 1;
  const double shared = d(p.width) * p.shared_bytes * copies;
  const double elements = d(p.rows) * d(p.width);
  const double channel = (elements * (p.in_bytes + p.out_bytes) + shared) / machine.dram;
  const double part = d(e.columns.block) / d(e.columns.part);
  const double first = part * (shared + elements * p.in_bytes * d(e.rows.block) / d(e.rows.part));
  const bool spread = p.row_wise && g.k > 1;  // some of the work waits for nothing but statistics
  const double units = d(e.rows.part) * d(e.columns.part) *
                       std::max(p.ops / machine.vector * (spread ? 0.5 : 1.0), p.products / machine.matrix);
  const double latency = machine.dram_latency;
  return std::max(first / machine.dram + units + 2 * latency, channel + latency) * (1 - 1e-9);
}

void explore(Search<VectorProblem>& search, const VectorProblem& p, const Grid& grid) {
  VectorMapping map;
  map.grid = &grid;
  const VectorProblem::Extent e = extent_of(p, map);
  const std::vector<std::int64_t> columns =
      p.row_wise ? std::vector{e.columns.part} : block_sides(e.columns.part, search.machine.granule, kGrowth);
  const bool shared = p.shared_bytes > 0 && grid.a.length > 1;
  for (const std::int64_t bc : columns) {
    map.bc = bc;
    for (const std::int64_t br : block_sides(e.rows.part, 1, kGrowth)) {
      map.br = br;
      if (extent_of(p, map).rows.blocks > kMostBlocks) break;
      map.feed = shared ? Feed::multicast : Feed::direct;
      for (const Results results : {Results::doubled, Results::in_place}) {
        map.results = results;
        if (!take_slots(search.machine, p, map) || bound_of(search.machine, p, map) >= search.limit()) continue;
        search.consider(p, map);
      }
    }
  }
}

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

VectorProblem::Extent extent_of(const VectorProblem& p, const VectorMapping& map) {
  const Grid& g = *map.grid;
  return {divided("rows", p.rows, g.n, map.br), divided("width", p.width, g.k, map.bc)};
}

double sram_of(const VectorProblem& p, const VectorMapping& map) {
  const VectorProblem::Extent e = extent_of(p, map);
  const double columns = d(e.columns.block);
  const double block = d(e.rows.block) * columns;
  const double results = map.results == Results::in_place ? 1 : 2;
  return columns * p.shared_bytes + block * (map.slots * p.in_bytes + results * p.out_bytes);
}

void lower(const Machine& m, const VectorProblem& p, const VectorMapping& map, Schedule& s) {
  const VectorProblem::Extent e = extent_of(p, map);
  const Grid& g = *map.grid;
  s.clear();
  s.grid = map.grid;
  s.a = {map.feed, 2, p.shared_bytes > 0};
  s.b = {Feed::direct, map.slots, true};
  s.panel = p.shared_bytes > 0 ? 1 : 0;
  s.results = map.results;
  s.overlapped = p.products == 0 || !m.shared_issue;
  s.start_slots = 2;
  const double later = p.row_wise && g.k > 1 ? 0.5 : 0;  // of the work, after statistics have been added up
  const auto add = [&](std::int64_t rows, std::int64_t columns, std::int64_t count) {
    const double elements = d(rows) * d(columns);
    const double real = elements * e.rows.share() * e.columns.share();
    Block b;
    b.last.vector = elements * p.ops * (1 - later) / m.vector;
    b.last.after = elements * p.products / m.matrix;
    b.last.a = d(columns) * p.shared_bytes * e.columns.share();
    b.last.b = real * p.in_bytes;
    b.full = b.last;
    b.result = real * p.out_bytes;
    if (later > 0) {
      b.reduce = d(rows) * kRowBytes * (g.k - 1) / g.k;
      b.finish = elements * p.ops * later / m.vector;
    }
    b.count = count;
    s.blocks.push_back(b);
  };
  const auto row = [&](std::int64_t columns, std::int64_t count) {
    if (e.rows.blocks > 1) add(map.br, columns, e.rows.blocks - 1);
    add(e.rows.last(), columns, 1);
    s.end_row(count);
  };
  if (e.columns.blocks > 1) row(map.bc, e.columns.blocks - 1);
  row(e.columns.last(), 1);
}

bool alike(const VectorMapping& x, const VectorMapping& y) { return x.grid == y.grid && x.br == y.br && x.bc == y.bc; }

void explore(Search<VectorProblem>& search, const VectorProblem& problem) {
  const VectorProblem flat = problem.flat();
  std::vector<const Grid*> grids;
  for (const Grid& grid : search.grids) {
    if (divides(flat, grid)) grids.push_back(&grid);
  }
  std::ranges::sort(grids, [](const Grid* x, const Grid* y) { return before(*y, *x); });  // rows first
  for (const Grid* grid : grids) explore(search, flat, *grid);
}

void vary(Nearby<VectorProblem>& near) {
  near.other_blocks(kVectorSides);
  near.each(&VectorMapping::results, {Results::doubled, Results::in_place});
  near.other_grids(kVectorSides, [](VectorMapping&) {});
}

bool settle(const Machine& machine, const VectorProblem& problem, VectorMapping& map) {
  const VectorProblem p = problem.flat();
  if (!divides(p, *map.grid)) return false;
  const VectorProblem::Extent e = extent_of(p, map);
  if (p.row_wise) map.bc = e.columns.part;
  map.feed = p.shared_bytes > 0 && map.grid->a.length > 1 ? Feed::multicast : Feed::direct;
  return e.rows.blocks <= kMostBlocks && take_slots(machine, p, map);
}

}  // namespace llmperf::mapper::tile
