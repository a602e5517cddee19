// The part of the C interface that is about measurements.
#include "bindings/c/call.h"
#include "hardware/device.h"
#include "hardware/runtime_profile.h"
#include "measure/calibrate.h"
#include "measure/validation.h"
#include "report/reports.h"

using namespace llmperf;

namespace {

std::vector<std::string> measurements(const c::Asked& asked) {
  std::vector<std::string> names = asked.texts("measurements");
  if (names.empty()) throw Error::bad_input("`measurements` is required", "names or paths of CSV files");
  return names;
}

// `device`: what rows are of that do not say it.
measure::Measurements read(const c::Asked& asked, const hardware::Device* device) {
  return measure::read_measurements(measurements(asked), {.hardware = device != nullptr ? device->name : "",
                                                          .model = asked.text("model"),
                                                          .weights = asked.text("weights"),
                                                          .runtime = asked.text("runtime")});
}

}  // namespace

llmperf_result* llmperf_validate(llmperf_session*, const char* request, size_t size) {
  return c::answered([&](llmperf_result& result) {
    constexpr std::string_view kBeside[] = {"measurements", "hw", "runtime", "model", "weights"};
    const c::Asked asked(c::view(request, size), kBeside);
    asked.refuse_fields();
    std::optional<hardware::Device> device;
    if (const std::string hw = asked.text("hw"); !hw.empty()) device = hardware::load_device(hw);
    const hardware::Device* own = device ? &*device : nullptr;
    const measure::Validation validation = measure::validate(read(asked, own), asked.text("runtime"), own);
    result.json = report::validate_report(validation).json;
  });
}

llmperf_result* llmperf_calibrate(llmperf_session*, const char* request, size_t size) {
  return c::answered([&](llmperf_result& result) {
    constexpr std::string_view kBeside[] = {"measurements", "hw", "runtime", "from", "model", "weights"};
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
    const auto fitted = measure::calibrate(read(asked, &device), device, start,
                                           from.empty() ? measure::Pull::to_defaults : measure::Pull::to_fitted);
    result.text = hardware::format_runtime_profile(fitted.profile);
    result.json = report::calibrate_report(fitted.calibration).json;
  });
}
