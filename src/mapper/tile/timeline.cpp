#include "mapper/tile/timeline.h"

#include <algorithm>
#include <limits>

#include "mapper/tile/simulation.h"

namespace llmperf::mapper::tile {
namespace {

constexpr std::int64_t kWhole = 5000;  // steps that are drawn from the first to the last

std::int64_t steps_of(const Schedule& s) {
  double steps = 0;
  for (const RowRun& rows : s.sequence) {
    for (std::size_t r = s.rows[rows.row].begin; r < s.rows[rows.row].end; ++r) {
      const auto blocks = static_cast<double>(s.runs[r].count) * static_cast<double>(rows.count);
      steps += blocks * static_cast<double>(s.blocks[s.runs[r].block].steps) * static_cast<double>(s.repeats);
    }
  }
  return steps < 1e15 ? static_cast<std::int64_t>(steps) : std::numeric_limits<std::int64_t>::max();
}

// With few of every kind of step, block and row. Which slices stay depends on how many there are, unless all or none
// do.
Schedule shortened(Schedule s) {
  constexpr std::int64_t kSteps = 24;
  constexpr std::int64_t kAlike = 3;
  const bool cuts_steps =
      s.panel == 0 || std::all_of(s.blocks.begin(), s.blocks.end(), [&](const Block& b) { return s.panel >= b.steps; });
  for (Block& b : s.blocks) b.steps = cuts_steps ? std::min(b.steps, kSteps) : b.steps;
  for (Run& r : s.runs) r.count = std::min(r.count, kAlike);
  for (RowRun& r : s.sequence) r.count = std::min(r.count, kAlike);
  s.repeats = std::min<std::int64_t>(s.repeats, 2);
  return s;
}

}  // namespace

void Timeline::add(Lane lane, double begin, double end, std::int64_t step) {
  if (end <= begin) return;
  std::vector<Bar>& bars = lanes[static_cast<std::size_t>(lane)];
  if (!bars.empty() && bars.back().step == step && bars.back().end >= begin * (1 - 1e-12)) {
    bars.back().end = end;  // the same for the next tile
  } else {
    bars.push_back({begin, end, step});
  }
}

Timeline timeline_of(const Machine& machine, const Schedule& schedule) {
  Timeline result;
  result.steps = steps_of(schedule);
  result.cut = result.steps > kWhole;
  result.seconds = simulate(machine, result.cut ? shortened(schedule) : schedule, &result).seconds;
  for (std::vector<Bar>& lane : result.lanes) {
    std::stable_sort(lane.begin(), lane.end(), [](const Bar& x, const Bar& y) { return x.begin < y.begin; });
  }
  return result;
}

}  // namespace llmperf::mapper::tile
