// What a prediction has to beat: the bare roofline, max(compute, memory) at the device's peaks, and a roofline with
// three constants fitted to the very rows it is scored on,
//
//   t = t0 + max(compute / ec, memory / em)
//
// for every kind of row. The fit has seen the answers, which the predictions beside it have not. Of steps also the rule
// of thumb that people reckon with: decode reads weights and cache at three quarters of the bandwidth, and prefill
// multiplies at half the peak.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "estimate/band.h"
#include "hardware/device.h"
#include "measure/predictor.h"
#include "measure/statistics.h"

namespace llmperf::measure {

struct RooflineTimes {
  double compute = 0;     // s at the peak rate
  double memory = 0;      // s at the peak bandwidth; of a collective, of the links
  std::string kind = {};  // rows of one kind share their constants: "gemm", "decode"
  bool scored = true;     // false: has no say in the constants; without any that has, they are 0, 1 and 1
};

struct RooflineConstants {
  std::string kind;
  double launch = 0;         // t0, s
  double compute_share = 0;  // ec
  double memory_share = 0;   // em
  std::size_t rows = 0;
};

struct Baselines {
  std::vector<double> roofline;  // s, per row
  std::vector<double> fitted;    // s, per row
  std::vector<RooflineConstants> constants;
};
Baselines baselines(std::span<const double> measured, std::span<const RooflineTimes> times);
double rule_of(const StepRow& row, const RowRoof& roof);  // s

// ---- Predictions beside measurements: the result of `llmperf validate`.

struct ValidatedRow {
  std::size_t row = 0;              // in Measurements::rows
  double predicted = 0;             // s; of a rate its inverse; NaN: not predicted
  double roofline = 0;              // s, the baselines above; of a server simulated at the speed of light
  double fitted_roofline = 0;       // s
  std::optional<double> rule = {};  // s; of steps
  std::optional<estimate::Band> band = {};
  std::string profile = {};    // that predicted it
  bool extrapolated = false;   // outside of what the profile was fitted on
  bool class_default = false;  // no profile for this device and runtime: its class's
  bool scored = true;          // false: listed only
  std::string remark = {};     // why not scored, what was extrapolated
  struct Memory {              // of a training step, one device
    bool fits = true;
    double bytes = 0;     // as the run's figure counts: with what is reserved, or without
    double measured = 0;  // B; 0: not published
  };
  std::optional<Memory> memory = {};
};

// The same figures of a predictor and its baselines.
struct GroupErrors {
  std::string by;  // see group_rows
  std::string name;
  Summary errors;
  double roofline_mape = 0;
  double fitted_roofline_mape = 0;
  double rule_mape = 0;  // of the steps among them
  // NaN where no row has a band.
  double inside_mean = 0;  // share of the rows that are inside of the mean band
  double inside_p90 = 0;   // … of that of nine in ten
  double band_factor = 0;  // that the latter is wide on the median: 1.27 is +- 27 %
};

struct Validation {
  Measurements measurements;
  std::vector<ValidatedRow> rows;
  GroupErrors summary;              // of all scored rows; by and name empty
  std::vector<GroupErrors> groups;  // of scored rows
  std::vector<std::string> warnings;

  double measured(const ValidatedRow& r) const { return measurements.rows[r.row].latency.value; }
  double error(const ValidatedRow& r) const { return relative_error(measurements.rows[r.row], r.predicted); }
};

// Every row by the profile of its runtime for its device (ops that name none: the device's preferred one), or all by
// `runtime`: a name or the path of a profile; "none" is the speed of light. Rows that name what does not exist join
// those that are refused; Error(bad_input) where none is left. `device`: what rows of that name were measured on, where
// it is no built-in one.
Validation validate(Measurements measurements, const std::string& runtime = {},
                    const hardware::Device* device = nullptr);

// Rows by the kind whose constants they share in a fitted roofline: the op, or runtime and phase.
std::string baseline_kind(const Row& row);
// The row's text in kUntrustedColumn; empty: it is scored.
std::string untrusted(const Measurements& measurements, const Row& row);

// Fills in summary and groups from the rows.
void summarise(Validation& validation);

using Bands = std::vector<std::optional<estimate::Band>>;
// Of the rows that the predictor predicted last, by the errors that `profile` states.
Bands bands_of(const Measurements& measurements, const Predictor& predictor, const hardware::RuntimeProfile& profile);

// Errors of `predicted` (s) for the rows `rows` of the measurements, by group; the first is of all of them. What
// calibrate shows of fitted and of cross-validated predictions. The baselines' figures are NaN; `bands`, of the same
// rows, may be empty.
std::vector<GroupErrors> errors_by_group(const Measurements& measurements, std::span<const std::size_t> rows,
                                         std::span<const double> predicted, const Bands& bands = {});

}  // namespace llmperf::measure
