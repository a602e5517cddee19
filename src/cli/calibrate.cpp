#include "calibrate/calibrate.h"

#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/written_file.h"
#include "report/reports.h"
#include "request/names.h"

namespace llmperf::cli {
namespace {

struct CalibrateFlags {
  std::vector<std::string> files;
  std::string hardware;
  std::string runtime;
  std::string out;
  OutputFlags output;
};

int calibrate_action(const CalibrateFlags& flags, const Context& context) {
  const hardware::Device device = hardware::load_device(flags.hardware);
  const hardware::RuntimeProfile start =
      hardware::load_runtime_profile(device, flags.runtime, hardware::UnknownRuntime::error);
  Output output(flags.output, context);
  std::optional<WrittenFile> out;
  if (!flags.out.empty()) out.emplace(flags.out);
  const calibrate::CalibrateResult result =
      calibrate::calibrate(calibrate::read_measurements(flags.files), device, start);
  if (out) out->commit(hardware::format_runtime_profile(result.profile));
  output.write(report::calibrate_report(result.calibration));
  return kExitDone;
}

}  // namespace

void add_calibrate(Command& root) {
  Command& command = root.add_command("calibrate", "fits a runtime profile to measured latencies");
  auto flags = std::make_shared<CalibrateFlags>();
  command.add("measurements", flags->files, "CSV", "CSV files, or built-in names (llmperf list measurements)")
      .required()
      .offers(Values::Sort::paths, request::measurement_names);
  command.add_field("hw", flags->hardware).required();
  command.add_field("runtime", flags->runtime).about =
      "profile to start from, by name or file: its kernel choices and options stay [the device's own]";
  command.add("-o,--out", flags->out, "YAML", "file for the fitted profile");
  add_output_flags(command, flags->output);
  command.action = [flags](const Context& context) { return calibrate_action(*flags, context); };
}

}  // namespace llmperf::cli
