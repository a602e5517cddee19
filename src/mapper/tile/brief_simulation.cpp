#include "mapper/tile/brief_simulation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "mapper/tile/pipeline_time.h"
#include "mapper/tile/simulation.h"

namespace llmperf::mapper::tile {
namespace {

// What there may be many of, in the order in which what was left out is added again: the whole sequence; different
// rows, and rows alike; different blocks of a row, and blocks alike; steps of a block.
enum Kind : unsigned char { kRepeats, kRows, kRowsAlike, kBlocks, kBlocksAlike, kSteps };
constexpr std::size_t kKinds = 6;
using Caps = std::array<std::int64_t, kKinds>;  // 0: all; of what differs, one of so many
constexpr Caps kLeast = {2, 3, 2, 3, 4, 8};     // of each that are kept

std::int64_t capped(std::int64_t count, std::int64_t cap) { return cap > 0 ? std::min(count, cap) : count; }
bool differ(std::size_t kind) { return kind == kRows || kind == kBlocks; }

std::int64_t most_of(const Schedule& s, std::size_t kind) {
  std::int64_t most = 0;
  switch (kind) {
    case kRepeats: return s.repeats;
    case kRows: return static_cast<std::int64_t>(s.sequence.size());
    case kRowsAlike:
      for (const RowRun& r : s.sequence) most = std::max(most, r.count);
      return most;
    case kBlocks:
      for (const Row& r : s.rows) most = std::max(most, static_cast<std::int64_t>(r.end - r.begin));
      return most;
    case kBlocksAlike:
      for (const Run& r : s.runs) most = std::max(most, r.count);
      return most;
    default:
      for (const Block& b : s.blocks) most = std::max(most, b.steps);
      return most;
  }
}

// Whether of what differs the i-th is kept: two by two, as every second may be the first of its kind.
bool keeps(std::size_t i, std::int64_t stride) { return stride <= 1 || i / 2 % static_cast<std::size_t>(stride) == 0; }

// Slices that stay keep their share of the steps.
std::int64_t cut_panel(const Schedule& s, std::int64_t cap) {
  const std::int64_t steps = most_of(s, kSteps);
  if (s.panel == 0 || s.panel >= steps || capped(steps, cap) == steps) return s.panel;
  const double share = static_cast<double>(s.panel) / static_cast<double>(steps);
  return std::clamp<std::int64_t>(std::llround(share * static_cast<double>(cap)), 1, cap - 1);
}

// What a block takes besides its steps shrinks as they do, so that the same resource is the bottleneck.
Block cut_steps(Block b, std::int64_t cap) {
  const std::int64_t steps = capped(b.steps, cap);
  const double share = static_cast<double>(steps) / static_cast<double>(b.steps);
  if (b.found < b.steps) b.found = std::llround(static_cast<double>(b.found) * share);
  b.steps = steps;
  for (double Block::*part : {&Block::start, &Block::end, &Block::result, &Block::reduce, &Block::finish}) {
    b.*part *= share;
  }
  return b;
}

Schedule cut(const Schedule& s, const Caps& caps) {
  Schedule result = s;
  result.clear();
  result.repeats = capped(s.repeats, caps[kRepeats]);
  result.panel = cut_panel(s, caps[kSteps]);
  for (std::size_t i = 0; i < s.sequence.size(); ++i) {
    if (!keeps(i, caps[kRows])) continue;
    const Row& row = s.rows[s.sequence[i].row];
    const std::size_t begin = result.runs.size();
    for (std::size_t r = row.begin; r < row.end; ++r) {
      if (!keeps(r - row.begin, caps[kBlocks])) continue;
      result.runs.push_back({result.blocks.size(), capped(s.runs[r].count, caps[kBlocksAlike])});
      result.blocks.push_back(cut_steps(s.blocks[s.runs[r].block], caps[kSteps]));
    }
    result.rows.push_back({begin, result.runs.size()});
    result.sequence.push_back({result.rows.size() - 1, capped(s.sequence[i].count, caps[kRowsAlike])});
  }
  return result;
}

// Pieces that the channel moves.
double requests_of(const Machine& machine, const Schedule& s) {
  const auto pieces = [](double bytes) { return bytes > 0 ? std::max(1.0, std::floor(bytes / kPiece)) : 0; };
  const auto of_stream = [&](const Stream& stream, const Paths& paths, double bytes) {
    return requests_of(machine, stream, paths) * pieces(bytes);
  };
  double total = 0;
  for (const RowRun& rows : s.sequence) {
    for (std::size_t r = s.rows[rows.row].begin; r < s.rows[rows.row].end; ++r) {
      const Block& b = s.blocks[s.runs[r].block];
      const auto steps = static_cast<double>(b.steps);
      const auto found = static_cast<double>(std::min({s.panel, b.found, b.steps}));
      const double a = of_stream(s.a, s.grid->a, b.full.a);
      const double each = (steps - found) * a + steps * of_stream(s.b, s.grid->b, b.full.b) +
                          (pieces(b.start) + pieces(b.end) + pieces(b.result)) * machine.tiles;
      const double first = r == s.rows[rows.row].begin ? found * a : 0;
      total += (each * static_cast<double>(s.runs[r].count) + first) * static_cast<double>(rows.count);
    }
  }
  return total * static_cast<double>(s.repeats);
}

// About `cap` steps of which a share can stay that is close to that of the schedule.
std::int64_t fitting_steps(const Schedule& s, std::int64_t steps, std::int64_t cap) {
  if (s.panel == 0 || s.panel >= steps) return cap;
  const double share = static_cast<double>(s.panel) / static_cast<double>(steps);
  const auto off = [&](std::int64_t kept) {
    const double stay = share * static_cast<double>(kept);
    return std::abs(std::clamp(std::round(stay), 1.0, static_cast<double>(kept - 1)) - stay) /
           static_cast<double>(kept);
  };
  std::int64_t best = cap;
  for (std::int64_t kept = cap - cap / 4; kept <= cap; ++kept) {
    if (off(kept) < off(best)) best = kept;
  }
  return best;
}

// `kept` of a kind, or all where that makes little difference.
void keep(const Schedule& s, std::size_t kind, std::int64_t kept, Caps& caps) {
  const std::int64_t most = most_of(s, kind);
  caps[kind] = most <= kept * 3 / 2 ? 0 : differ(kind) ? (most + kept - 1) / kept : kept;
  if (kind == kSteps && caps[kind] > 0) caps[kind] = fitting_steps(s, most, kept);
}

struct Times {
  double simulated;
  double formula;
};
Times times_of(const Machine& machine, const Schedule& s) {
  return {simulate(machine, s).seconds, pipeline_time(machine, s).seconds};
}

}  // namespace

double simulated_seconds(const Machine& machine, const Schedule& s, std::int64_t requests) {
  const auto most = static_cast<double>(requests);
  const double whole = requests_of(machine, s);
  if (whole <= most) return simulate(machine, s).seconds;
  Caps least = {};
  for (std::size_t kind = 0; kind < kKinds; ++kind) keep(s, kind, kLeast[kind], least);
  // As many of a kind as come to a part of the requests, and half of them.
  struct Growth {
    std::size_t kind;
    Caps few;
    Caps more;
  };
  std::vector<Growth> growths;
  double needed = requests_of(machine, cut(s, least));
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    if (least[kind] == 0) continue;
    Growth g{kind, least, least};
    for (const std::int64_t times : {16, 12, 8, 6, 4, 3, 2}) {
      keep(s, kind, kLeast[kind] * times, g.more);
      keep(s, kind, kLeast[kind] * times / 2, g.few);
      if (g.more[kind] != g.few[kind] && requests_of(machine, cut(s, g.more)) <= most / 2) break;
    }
    needed += requests_of(machine, cut(s, g.more));
    if (g.few != least) needed += requests_of(machine, cut(s, g.few));
    growths.push_back(g);
  }
  if (whole <= needed) return simulate(machine, s).seconds;

  const Times base = times_of(machine, cut(s, least));
  Times total = base;
  Caps open = least;
  for (const Growth& g : growths) {
    const Times longer = times_of(machine, cut(s, g.more));
    const Times shorter = g.few == least ? base : times_of(machine, cut(s, g.few));
    const double grown = longer.formula - shorter.formula;
    const double correction = grown > 0 ? (longer.simulated - shorter.simulated) / grown : 1;
    open[g.kind] = 0;
    const double formula = pipeline_time(machine, cut(s, open)).seconds;
    total.simulated += (formula - total.formula) * correction;
    total.formula = formula;
  }
  // However much was left out, units and channel have all of it to do.
  const PipelineTime parts = pipeline_time(machine, s);
  return std::max({total.simulated, parts.compute, parts.dram});
}

}  // namespace llmperf::mapper::tile
