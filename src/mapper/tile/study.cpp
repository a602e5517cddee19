#include "mapper/tile/study.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/number.h"
#include "mapper/tile/given.h"
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

double least_sram(const Machine& machine, double taken, const std::function<bool(const Machine&)>& fits) {
  constexpr double kStep = 64;
  Machine other = machine;
  const auto enough = [&](double bytes) {
    other.sram = taken + bytes;
    return fits(other);
  };
  double low = 0;  // too small
  double high = kStep;
  for (; !enough(high); high *= 2) low = high;
  while (high - low > kStep) {
    const double middle = (low + high) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return taken + high;
}

double least_sram(const Machine& machine, const std::vector<Grid>& grids, const Problem& problem) {
  const auto* product = std::get_if<GemmProblem>(&problem);
  const double local = product != nullptr ? product->local_bytes(machine.tiles) : 0;
  return least_sram(machine, local, [&](const Machine& other) {
    return std::visit(
        [&](const auto& p) { return !Search<std::decay_t<decltype(p)>>(other, grids).best(p, 1).empty(); }, problem);
  });
}

template <typename Problem, typename One>
StudiedMapping Study::studied(const Problem& problem, const One& one) const {
  StudiedMapping made{describe(machine_, problem, one.choice), schedule_of(machine_, problem, one.choice.mapping),
                      one.choice.time};
  made.simulated = one.simulated;
  if constexpr (std::is_same_v<Problem, GemmProblem>) made.text = mapping_text(problem, one.choice.mapping);
  return made;
}

Study::Study(const Machine& machine, const Problem& problem, const StudyOptions& options)
    : machine_(machine), grids_(all_grids(machine_)), bound_(bound_of(machine_, problem)) {
  std::visit(
      [&](const auto& p) {
        using Searched = std::decay_t<decltype(p)>;
        Search<Searched> search(machine_, grids_);
        for (const auto& one : search.select(p, options.keep).found) mappings_.push_back(studied(p, one));
        if (mappings_.size() > options.keep) mappings_.resize(options.keep);
        if constexpr (std::is_same_v<Searched, GemmProblem>) {
          if (options.given.empty()) return;
          given_ = studied(p, complete(parse_mapping(options.given, machine_, p), machine_, grids_, p));
          // The search is never slower than what somebody thought of.
          if (!mappings_.empty() && given_->simulated >= mappings_.front().simulated) return;
          mappings_.insert(mappings_.begin(), *given_);
          if (mappings_.size() > options.keep) mappings_.pop_back();
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
                           "without it few blocks of every kind are simulated");
  }
  best.simulated = machine_.op_seconds(simulate(machine_, best.schedule).seconds, best.time.compute, best.time.dram);
}

}  // namespace llmperf::mapper::tile
