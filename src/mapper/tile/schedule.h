// What every mapping comes down to: rows of blocks of results, each block made in steps, on all tiles alike.
//
// A step multiplies, or works on, one slice of up to two operands, A and B. A slice is loaded into one of the stream's
// slots as soon as the step that used the slot before is over. Of the slices of A `panel` stay, evenly spread over the
// steps: they are loaded in the first block of a row and used in all of its blocks; each makes room for the slice of
// the next row when the last block of its row has used it. B is loaded anew in every block. A block may also need an
// operand at its start (the queries of an attention) or before its results leave (a residual).
//
// `pipeline_time` is the closed form of how long that takes, `simulate` executes it. Both read this and nothing else.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "base/integer.h"
#include "mapper/tile/machine.h"

namespace llmperf::mapper::tile {

// How an operand that several tiles share reaches them: each loads all of it from DRAM; one does and hands it on along
// the group's path; or each loads a part, and the parts go round while all compute.
enum class Feed : unsigned char { direct, multicast, ring };
std::string_view name(Feed feed);

// Where results are while they leave the tile: in the one accumulator, which the next block then waits for; in a copy
// of their own that the last step of a block writes; or in the one of two accumulators that the next block does not
// use.
enum class Results : unsigned char { in_place, staged, doubled };
std::string_view name(Results results);

struct Stream {
  Feed feed = Feed::direct;
  int slots = 1;
  bool used = false;
  bool local = false;  // it is in the tiles' memory, each of which has as much of it, and comes over links alone
  bool operator==(const Stream&) const = default;
};

inline constexpr double kAccumulator = 4;  // bytes of a result while it is summed up
inline constexpr double kPiece = 65536;    // bytes that the channel moves without a pause

// Elements that the matrix unit works on for `x`.
constexpr double rounded(std::int64_t x, int granule) { return d(divide_up(x, granule) * granule); }

// Requests of the channel for one slice: one per tile, or per group that hands it on; none for what is in the tiles.
int requests_of(const Machine& machine, const Stream& stream, const Paths& paths);

// Work of one tile. The matrix unit multiplies before and after the vector unit works on what it made.
struct Step {
  double before = 0;  // s
  double vector = 0;
  double after = 0;
  double a = 0;  // bytes of one request; multicast: of a group's slice; ring: of a tile's part of it
  double b = 0;
};

struct Block {
  std::int64_t steps = 1;  // all `full` but the last
  // Of the slices that stay, those that earlier blocks of the row have used; the others come with this block. (The
  // first block of a row finds none.)
  std::int64_t found = std::numeric_limits<std::int64_t>::max();
  Step full;
  Step last;
  double start = 0;        // bytes per tile of the operand needed at the first step
  double end = 0;          // bytes per tile of the operand that results are joined with
  double result = 0;       // bytes per tile stored
  double reduce = 0;       // bytes of partial sums that a tile sends on
  double finish = 0;       // s of the vector unit on finished results, partial sums included
  std::int64_t count = 1;  // of blocks alike, one after the other

  const Step& first() const { return steps > 1 ? full : last; }
};

// Whether the slice of a step is one of the `panel` that stay, of a block's `steps`; the last one is, if any.
constexpr bool stays(std::int64_t step, std::int64_t steps, std::int64_t panel) {
  return panel > 0 && (panel >= steps || (step + 1) * panel / steps > step * panel / steps);
}

struct Row {
  std::size_t begin = 0;  // blocks
  std::size_t end = 0;
  std::int64_t count = 1;  // of rows alike, one after the other
};

struct Schedule {
  const Grid* grid = nullptr;
  Stream a;
  Stream b;
  std::int64_t panel = 0;
  Results results = Results::staged;
  bool overlapped = true;  // matrix and vector unit work on different steps at once
  int start_slots = 2;
  std::vector<Block> blocks;  // of a row those after the others, rows in their order
  std::vector<Row> rows;
  std::int64_t repeats = 1;  // of all rows

  std::span<const Block> blocks_of(const Row& row) const {
    return std::span(blocks).subspan(row.begin, row.end - row.begin);
  }
  // For each block how many of it there are in all, and how many of these open a row.
  template <typename Visit>
  void each_block(const Visit& visit) const {
    for (const Row& row : rows) {
      const double times = d(row.count) * d(repeats);
      for (const Block& block : blocks_of(row)) {
        visit(block, d(block.count) * times, &block == &blocks[row.begin] ? times : 0.0);
      }
    }
  }

  void clear() {
    blocks.clear();
    rows.clear();
    repeats = 1;
  }
  // Blocks that were added since the last row are one.
  void end_row(std::int64_t count) { rows.push_back({rows.empty() ? 0 : rows.back().end, blocks.size(), count}); }
};

// What an operation takes, and of that the DRAM channel.
struct PipelineTime {
  double seconds = 0;
  double fill = 0;     // until the first step begins
  double drain = 0;    // after the last step
  double compute = 0;  // of the busiest unit of a tile
  double dram = 0;     // of the channel
  double noc = 0;      // of the busiest link
};
// The closed form; its derivation is in pipeline_time.cpp.
PipelineTime pipeline_time(const Machine& machine, const Schedule& schedule);

// What a schedule moves and keeps busy, all tiles together: a plain count of its requests, with nothing about time.

// Bytes of one operand.
struct StreamTraffic {
  double dram = 0;    // over the DRAM channel
  double passed = 0;  // from tile to tile
  double hops = 0;    // the same times the links that each byte goes over
};

struct Traffic {
  StreamTraffic a;
  StreamTraffic b;
  StreamTraffic sums;  // partial sums: `dram` is 0
  double start = 0;    // bytes over the DRAM channel
  double end = 0;
  double result = 0;
  double matrix = 0;  // s of a tile's units; a ring's waits for its next part included
  double vector = 0;
  double link = 0;      // s of the busiest link
  double requests = 0;  // of the channel

  double dram() const { return a.dram + b.dram + start + end + result; }
  double passed() const { return a.passed + b.passed + sums.passed; }
  double hops() const { return a.hops + b.hops + sums.hops; }
};
Traffic traffic_of(const Machine& machine, const Schedule& schedule);

// What a link could carry in the time that it takes to pass a slice on.
double link_bytes(const Machine& machine, const Stream& stream, double bytes);

// Messages of a slice that each link on a group's path carries; 0: none.
double messages_of(const Stream& stream, const Paths& paths);

}  // namespace llmperf::mapper::tile
