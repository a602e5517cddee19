// A block is made in one step. The shared operand is stream A, one slice of it per row of blocks, which stays; the
// others are stream B. Statistics of a row that is spread over p tiles are two numbers, of which each tile sends (p -
// 1) / p to the others; the work that needs them, half of it, comes after that.
#include "mapper/tile/vector_mapping.h"

#include <algorithm>

#include "base/integer.h"

namespace llmperf::mapper::tile {
namespace {

constexpr double kStatistics = 8;  // bytes per row

double d(std::int64_t x) { return static_cast<double>(x); }

}  // namespace

double VectorProblem::total_ops() const { return d(rows) * d(width) * ops; }

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
  s.overlapped = true;
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
    b.last.a = d(columns) * p.shared_bytes * column_share;
    b.last.b = real * p.in_bytes;
    b.full = b.last;
    b.result = real * p.out_bytes;
    if (later > 0) {
      b.reduce = d(rows) * kStatistics * (g.k - 1) / g.k;
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

}  // namespace llmperf::mapper::tile
