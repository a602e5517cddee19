// What a prediction has to beat: the bare roofline, max(compute, memory) at the device's peaks, and a roofline with
// three constants fitted to the very rows it is scored on,
//
//   t = t0 + max(compute / ec, memory / em)
//
// for every kind of row. The fit has seen the answers, which the predictions beside it have not.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace llmperf::calibrate {

struct RooflineTimes {
  double compute = 0;     // s at the peak rate
  double memory = 0;      // s at the peak bandwidth; of a collective, of the links
  std::string kind = {};  // rows of one kind share their constants: "gemm", "decode"
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

}  // namespace llmperf::calibrate
