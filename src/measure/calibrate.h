// Fits a runtime profile's numbers to measurements: the fitted profile and how it came about, the result of
// `llmperf calibrate`.
#pragma once

#include <string>
#include <vector>

#include "hardware/device.h"
#include "hardware/runtime_profile.h"
#include "measure/advice.h"
#include "measure/fit.h"
#include "measure/measurements.h"
#include "measure/validation.h"

namespace llmperf::measure {

struct CalibratedParameter {
  std::string name;  // "gemm.launch"
  std::string unit;  // "s", "B/s", "" for shares
  std::string meaning;
  FreeParameter free;  // default, its spread and bounds
  FittedParameter fitted;
  double jackknife = 0;  // relative standard deviation over the folds; 0: not cross-validated
};

// Leaving out whole groups of one kind.
struct LeftOut {
  std::string by;                   // "model", "site"
  int folds = 0;                    // 0: there is one group only, so nothing could be left out
  std::vector<GroupErrors> errors;  // of errors_by_group; empty without folds
};

struct Calibration {
  std::string hardware;
  std::string runtime;
  std::vector<std::string> files;
  std::vector<CalibratedParameter> parameters;
  std::vector<Correlation> correlations;  // indices as in parameters' free.index
  std::vector<GroupErrors> before;        // errors_by_group of the profile as it was, on ops and steps; may be empty
  std::vector<GroupErrors> residuals;     // … of the fit to all rows
  std::vector<LeftOut> left_out;
  double residual_scale = 0;
  int iterations = 0;
  bool converged = false;
  std::vector<Proposal> next;  // rows worth measuring
  std::vector<std::string> warnings;
  std::vector<Diagnostic> refused;  // lines that were left out, with what is wrong with them
};

struct CalibrateResult {
  Calibration calibration;
  hardware::RuntimeProfile profile;
};

// `start`: choices, options and numbers that are not fitted. Numbers that it calls fitted begin where they
// began (their prior, else the general default), which is also what the fit is regularised towards: a profile
// calibrated twice is the same profile. Others that the rows depend on are fitted with the start's value as prior. Rows
// of other devices or runtimes than the profile's (by name or a prefix of it), and untrusted ones, are left out with a
// warning; those that nothing predicts join the refused. Throws Error(bad_input) for data that cannot give a profile.
//
// Pull::to_fitted: the fit starts at the start's fitted numbers instead and is pulled towards them, the more the better
// they were known, so that a few rows of one's own adapt a profile, and steps are fitted after the kernels in them.
// What the rows say nothing about stays fitted, with its errors.
//
// Where rows of ops outnumber steps, the ops are fitted first and the steps after them, pulled towards what the ops
// gave: together the ops would settle every kernel to their last percent and leave what remains of a step to numbers
// that no op knows.
//
// Figures of servers are fitted last, by simulation and at most four numbers: the fixed host time of a step of decode
// and of each of its sequences, an exchange, and the front end's time for a request. They are pulled towards what the
// profile has, and say nothing of the errors that it stores.
//
// Training steps have profiles of their own: all rows are such steps or none is, and sites are what is left out.
enum class Pull : unsigned char { to_defaults, to_fitted };
// Which of the two a profile for the rows is: of training, or of language. Throws Error(bad_input) where they are
// mixed.
hardware::Workload workload_of(const Measurements& measurements);
CalibrateResult calibrate(Measurements measurements, const hardware::Device& device,
                          const hardware::RuntimeProfile& start, Pull pull = Pull::to_defaults);

}  // namespace llmperf::measure
