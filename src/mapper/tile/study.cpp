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

double vector_ops(const GemmProblem& p) {
  const double batch = static_cast<double>(p.batch) * static_cast<double>(p.k);
  const double prepared = batch * static_cast<double>(p.prepares_b ? p.n : p.m) * p.prepare_ops;
  return prepared + p.flops() / 2 / static_cast<double>(p.k) * p.finish_ops;
}
double vector_ops(const AttentionProblem& p) { return p.least_vector_ops(); }
double vector_ops(const VectorProblem& p) { return p.total_ops(); }

double matrix_flops(const GemmProblem& p) { return p.flops(); }
double matrix_flops(const AttentionProblem& p) { return p.flops(); }
double matrix_flops(const VectorProblem&) { return 0; }

GemmSearch search_of(const Machine& machine, const std::vector<Grid>& grids, const GemmProblem&) {
  return {machine, grids};
}
AttentionSearch search_of(const Machine& machine, const std::vector<Grid>& grids, const AttentionProblem&) {
  return {machine, grids};
}
VectorSearch search_of(const Machine& machine, const std::vector<Grid>& grids, const VectorProblem&) {
  return {machine, grids};
}

}  // namespace

double Bound::seconds() const { return std::max({matrix, vector, dram}); }

std::string_view Bound::resource() const {
  return seconds() == matrix ? "matrix" : seconds() == vector ? "vector" : "DRAM";
}

Bound bound_of(const Machine& machine, const Problem& problem) {
  return std::visit(
      [&](const auto& p) {
        return Bound{matrix_flops(p) / (machine.tiles * machine.matrix),
                     vector_ops(p) / (machine.tiles * machine.vector), p.least_bytes() / machine.dram};
      },
      problem);
}

double least_sram(const Machine& machine, const std::vector<Grid>& grids, const Problem& problem) {
  constexpr double kStep = 64;
  Machine other = machine;
  const auto fits = [&](double bytes) {
    other.sram = bytes;
    return std::visit([&](const auto& p) { return !search_of(other, grids, p).best(p, 1).empty(); }, problem);
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
        auto search = search_of(machine_, grids_, p);
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
