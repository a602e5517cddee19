// What a schedule makes the tiles do, and how far a closed form is from a simulation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tile_machine.h"

namespace llmperf::mapper::tile {

inline const Grid& find_grid(const std::vector<Grid>& grids, int batch, int n, int k) {
  return *std::find_if(grids.begin(), grids.end(),
                       [&](const Grid& g) { return g.batch == batch && g.m == 1 && g.n == n && g.k == k; });
}

// Of all tiles together: bytes of the channel, seconds of units.
struct Sums {
  double a = 0;
  double b = 0;
  double start = 0;
  double result = 0;
  double matrix = 0;
  double vector = 0;  // on results too
  std::int64_t steps = 0;
  double bytes() const { return a + b + start + result; }
};

inline Sums sums_of(const Machine& machine, const Schedule& s) {
  const auto requests = [&](const Stream& stream, const Paths& paths) {
    return !stream.used ? 0.0 : stream.feed == Feed::multicast ? paths.groups : machine.tiles;
  };
  const double a_requests = requests(s.a, s.grid->a);
  const double b_requests = requests(s.b, s.grid->b);
  Sums sums;
  for (const Row& rows : s.rows) {
    const auto times = static_cast<double>(rows.count * s.repeats);
    bool opens = true;
    for (const Block& b : s.blocks_of(rows)) {
      for (std::int64_t i = 0; i < b.count; ++i) {
        for (std::int64_t step = 0; step < b.steps; ++step) {
          const Step& of = step + 1 < b.steps ? b.full : b.last;
          const bool there = !opens && stays(step, b.steps, s.panel) && step < b.found;
          if (!there) sums.a += times * a_requests * of.a;
          sums.b += times * b_requests * of.b;
          sums.matrix += times * machine.tiles * (of.before + of.after);
          sums.vector += times * machine.tiles * of.vector;
        }
        sums.start += times * machine.tiles * b.start;
        sums.result += times * machine.tiles * b.result;
        sums.vector += times * machine.tiles * b.finish;
        sums.steps += rows.count * s.repeats * b.steps;
        opens = false;
      }
    }
  }
  return sums;
}

// The side that cuts `extent` in a random number of blocks.
inline std::int64_t random_side(Random& random, std::int64_t extent, std::int64_t granule) {
  const auto most = static_cast<double>((extent + granule - 1) / granule);
  const std::int64_t blocks = random.size(1, most);
  const std::int64_t side = (extent + blocks - 1) / blocks;
  return (side + granule - 1) / granule * granule;
}

struct Agreement {
  double mean = 0;
  double p90 = 0;
};
inline Agreement agreement_of(std::vector<double> errors) {
  std::sort(errors.begin(), errors.end());
  double sum = 0;
  for (const double e : errors) sum += e;
  return {sum / static_cast<double>(errors.size()), errors[errors.size() * 9 / 10]};
}

}  // namespace llmperf::mapper::tile
