#include "mapper/tile/study.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/number.h"
#include "mapper/tile/selection.h"
#include "mapper/tile/simulation.h"

namespace llmperf::mapper::tile {
namespace {

constexpr double kMostRequests = 3e6;  // of a whole simulation: seconds of the user's time

}  // namespace

double Bound::seconds() const { return std::max({matrix, vector, dram}); }

std::string_view Bound::resource() const {
  return seconds() == matrix ? "matrix" : seconds() == vector ? "vector" : "DRAM";
}

Bound bound_of(const Machine& machine, const Problem& problem) {
  return std::visit(
      [&](const auto& p) {
        return Bound{p.flops() / (machine.tiles * machine.matrix), p.vector_ops() / (machine.tiles * machine.vector),
                     p.least_bytes() / machine.dram};
      },
      problem);
}

double least_sram(const Machine& machine, const std::vector<Grid>& grids, const Problem& problem) {
  constexpr double kStep = 64;
  Machine other = machine;
  const auto fits = [&](double bytes) {
    other.sram = bytes;
    return std::visit(
        [&](const auto& p) { return !SearchOf<std::decay_t<decltype(p)>>(other, grids).best(p, 1).empty(); }, problem);
  };
  double low = 0;  // too small
  double high = kStep;
  for (; !fits(high); high *= 2) low = high;
  while (high - low > kStep) {
    const double middle = (low + high) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return high;
}

Study::Study(const Machine& machine, const Problem& problem, const StudyOptions& options)
    : machine_(machine), grids_(all_grids(machine_)), bound_(bound_of(machine_, problem)) {
  std::visit(
      [&](const auto& p) {
        SearchOf<std::decay_t<decltype(p)>> search(machine_, grids_);
        for (const auto& one : select(machine_, search, p, options.keep).found) {
          if (mappings_.size() == options.keep) break;
          mappings_.push_back({describe(machine_, p, one.choice), schedule_of(machine_, p, one.choice), one.simulated});
        }
      },
      problem);
  if (mappings_.empty()) {
    Diagnostic d;
    d.message = fmt::format("no mapping fits into the {} of a tile", format_bytes_binary(Bytes{machine_.sram}));
    d.hint = fmt::format("the least that one needs is {}",
                         format_bytes_binary(Bytes{least_sram(machine_, grids_, problem)}));
    throw Error(ErrorKind::infeasible, {d});
  }
  if (!options.whole) return;
  StudiedMapping& best = mappings_.front();
  if (best.description.traffic.requests > kMostRequests) {
    throw Error::bad_input(fmt::format("a whole simulation would be of {:.2g} requests, more than {:.0e}",
                                       best.description.traffic.requests, kMostRequests),
                           "without it few steps of every kind are simulated");
  }
  best.simulated = simulate(machine_, best.schedule).seconds;
}

}  // namespace llmperf::mapper::tile
