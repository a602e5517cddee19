// What to measure next: rows that tell a fit most about its numbers.
//
// Near the fit the logarithm of a row's time is linear in the logarithms of the parameters, with slopes g. Rows with
// noise s leave these with the covariance S = (1 / spread^2 + sum g g' / s^2)^-1, and one more row tells
// log(1 + g' S g / s^2) / 2 about them: by how much the logarithm of the volume falls in which they lie. Rows are
// picked one by one, each given those before it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "measure/fit.h"
#include "measure/measurements.h"
#include "measure/predictor.h"

namespace llmperf::measure {

using SlopeRows = std::vector<std::vector<double>>;  // d log(time) / d log(parameter): [row][parameter]

// How many rows are proposed at most.
inline constexpr std::size_t kProposals = 5;

struct Pick {
  std::size_t candidate = 0;
  double gain = 0;             // nats
  std::vector<double> before;  // standard deviations of the parameters' logarithms
  std::vector<double> after;
};
// At most `most` candidates, the most telling first; none that tells nearly nothing.
std::vector<Pick> most_telling(const SlopeRows& measured, std::span<const double> spreads, double noise,
                               const SlopeRows& candidates, std::size_t most);

// A parameter's relative uncertainty without a row and with it.
struct Narrowed {
  std::string parameter;
  double before = 0;
  double after = 0;
};
struct Proposal {
  Row row;  // without a latency
  double gain = 0;
  std::vector<Narrowed> narrows;  // the parameters that it tells most about
};

// Rows of the models, plans, matrices, heads and collectives of `rows` in sizes that are not among them.
std::vector<Row> sizes_not_measured(const Measurements& rows);

// Up to kProposals of them for a fit of `problem` to `rows`, which found `values` and leaves residuals of `noise`.
std::vector<Proposal> propose(const Measurements& rows, Predictor& predictor, const hardware::Device& device,
                              const FitProblem& problem, std::span<const double> values, double noise);

// Of rows that are not measured yet and stand for `counts` executions each (0: as a tenth of one), the seconds by which
// the profile may be wrong about these, for every second that measuring the row takes: the standard deviation of the
// logarithm of the row's time, times that time, given the rows that are worth more. What was fitted is known as well as
// the profile says, the rest as its prior.
std::vector<double> doubts(const Measurements& rows, std::span<const double> counts, const hardware::Device& device,
                           const hardware::RuntimeProfile& profile);

}  // namespace llmperf::measure
