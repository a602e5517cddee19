// The part of the C interface that is about measurements.
#include "bindings/c/call.h"
#include "calibrate/calibrate.h"
#include "calibrate/validation.h"
#include "hardware/device.h"
#include "hardware/runtime_profile.h"
#include "report/reports.h"

using namespace llmperf;

namespace {

std::vector<std::string> measurements(const c::Asked& asked) {
  std::vector<std::string> names = asked.texts("measurements");
  if (names.empty()) throw Error::bad_input("`measurements` is required", "names or paths of CSV files");
  return names;
}

}  // namespace

llmperf_result* llmperf_validate(llmperf_session*, const char* request, size_t size) {
  return c::answered([&](llmperf_result& result) {
    constexpr std::string_view kBeside[] = {"measurements", "hw", "runtime"};
    const c::Asked asked(c::view(request, size), kBeside);
    asked.refuse_fields();
    std::optional<hardware::Device> device;
    if (const std::string hw = asked.text("hw"); !hw.empty()) device = hardware::load_device(hw);
    const calibrate::Validation validation = calibrate::validate(calibrate::read_measurements(measurements(asked)),
                                                                 asked.text("runtime"), device ? &*device : nullptr);
    result.json = report::validate_report(validation).json;
  });
}

llmperf_result* llmperf_calibrate(llmperf_session*, const char* request, size_t size) {
  return c::answered([&](llmperf_result& result) {
    constexpr std::string_view kBeside[] = {"measurements", "hw", "runtime", "from"};
    const c::Asked asked(c::view(request, size), kBeside);
    asked.refuse_fields();
    const std::string hw = asked.text("hw");
    const std::string from = asked.text("from");
    if (hw.empty()) throw Error::bad_input("`hw` is required", "the device that was measured");
    if (!from.empty() && !asked.text("runtime").empty()) {
      throw Error::bad_input("`runtime`: `from` names the profile to start from", "give one of the two");
    }
    const hardware::Device device = hardware::load_device(hw);
    const auto start = hardware::load_runtime_profile(device, from.empty() ? asked.text("runtime") : from,
                                                      hardware::UnknownRuntime::error);
    const auto fitted = calibrate::calibrate(calibrate::read_measurements(measurements(asked)), device, start,
                                             from.empty() ? calibrate::Pull::to_defaults : calibrate::Pull::to_fitted);
    result.text = hardware::format_runtime_profile(fitted.profile);
    result.json = report::calibrate_report(fitted.calibration).json;
  });
}
