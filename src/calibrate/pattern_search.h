// A fit by predictions alone, for few parameters of what has no derivatives: a simulation jumps where one more request
// is preempted. The cost is that of fit.h. From where the parameters start, one after the other is moved by a step of
// its logarithm either way, and kept where the cost falls; once none falls the steps are halved (Hooke and Jeeves,
// J. ACM 8 (1961) 212, without the pattern move). What a parameter is known to follows from how the cost bends over the
// last steps around the result.
#pragma once

#include "calibrate/fit.h"

namespace llmperf::calibrate {

struct SearchOptions {
  double first_step = 0.5;  // of a logarithm, as a share of the prior's spread
  double last_step = 0.03;  // likewise
  int most_predictions = 120;
  double min_shrinkage = 0.1;
};

// The result has neither correlations nor slopes. Throws Error(failed) as fit() does.
FitResult pattern_search(const FitProblem& problem, const SearchOptions& options = {});

}  // namespace llmperf::calibrate
