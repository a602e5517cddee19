// What `llmperf list runtimes`, `list measurements` and `show runtime` print.
#pragma once

#include <string>
#include <vector>

#include "hardware/runtime_profile.h"
#include "report/document.h"

namespace llmperf::report {

Report runtime_list_report(const std::vector<hardware::RuntimeProfile>& profiles);
// Every number of a profile with its meaning, where it comes from and how sure it is.
Report runtime_report(const hardware::RuntimeProfile& profile);

struct MeasurementSet {
  std::string name;
  std::int64_t rows = 0;
  std::string about = {};  // its comment lines
};
Report measurement_list_report(const std::vector<MeasurementSet>& sets);

}  // namespace llmperf::report
