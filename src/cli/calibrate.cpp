#include "calibrate/calibrate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>

#include "base/error.h"
#include "cli/command.h"
#include "cli/request.h"
#include "cli/written_file.h"
#include "report/calibrate_report.h"

namespace llmperf::cli {
namespace {

struct Flags {
  std::vector<std::string> files;
  std::string hardware;
  std::string runtime;
  std::string out;
  OutputFlags output;
};

int calibrate_action(const Flags& flags) {
  const hardware::Device device = hardware::load_device(flags.hardware);
  const hardware::RuntimeProfile start =
      hardware::load_runtime_profile(device, flags.runtime, hardware::UnknownRuntime::error);
  Output output(flags.output);
  std::optional<WrittenFile> out;
  if (!flags.out.empty()) out.emplace(flags.out);
  const calibrate::CalibrateResult result =
      calibrate::calibrate(calibrate::read_measurements(flags.files), device, start);
  if (out) out->commit(hardware::format_runtime_profile(result.profile));
  output.write(report::calibrate_report(result.calibration));
  return kExitDone;
}

}  // namespace

void add_calibrate(CLI::App& root, Action& action) {
  CLI::App* command = root.add_subcommand("calibrate", "fits a runtime profile to measured latencies");
  auto flags = std::make_shared<Flags>();
  command->add_option("measurements", flags->files, "CSV files, or built-in names (llmperf list measurements)")
      ->type_name("CSV")
      ->required();
  add_hardware_flag(*command, flags->hardware);
  command
      ->add_option("--runtime", flags->runtime,
                   "profile to start from, by name or file: its kernel choices and options stay [the device's own]")
      ->type_name("NAME");
  command->add_option("-o,--out", flags->out, "file for the fitted profile")->type_name("YAML");
  add_output_flags(*command, flags->output);
  command->callback([flags, &action] { action = [flags] { return calibrate_action(*flags); }; });
}

}  // namespace llmperf::cli
