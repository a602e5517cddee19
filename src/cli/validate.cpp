#include "calibrate/validate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>

#include "base/error.h"
#include "base/number.h"
#include "cli/command.h"
#include "cli/values.h"
#include "report/validate_report.h"

namespace llmperf::cli {
namespace {

struct Flags {
  std::vector<std::string> files;
  std::string hardware;
  std::string runtime;
  std::string max_mape;
  OutputFlags output;
};

int validate_action(const Flags& flags) {
  std::optional<double> limit;
  if (!flags.max_mape.empty()) limit = double_value("--max-mape", flags.max_mape, 0, 1000);
  std::optional<hardware::Device> device;
  if (!flags.hardware.empty()) device = hardware::load_device(flags.hardware);
  Output output(flags.output);
  const calibrate::Validation validation =
      calibrate::validate(calibrate::read_measurements(flags.files), flags.runtime, device ? &*device : nullptr);
  output.write(report::validate_report(validation));
  const double mape = validation.summary.errors.mape;
  if (limit && !(mape <= *limit)) {
    std::fputs(fmt::format("llmperf: error: the mean absolute error of {} is above --max-mape {}\n", format_share(mape),
                           format_share(*limit))
                   .c_str(),
               stderr);
    return kExitThreshold;
  }
  return kExitDone;
}

}  // namespace

void add_validate(CLI::App& root, Action& action) {
  CLI::App* command = root.add_subcommand(
      "validate", "predictions beside measurements: the error of every row, and of two simpler models");
  auto flags = std::make_shared<Flags>();
  command->add_option("measurements", flags->files, "CSV files, or built-in names (llmperf list measurements)")
      ->type_name("CSV")
      ->required();
  command->add_option("--hw", flags->hardware, "a hardware file of your own, which rows name by its name")
      ->type_name("DEVICE");
  command
      ->add_option("--runtime", flags->runtime,
                   "profile for all rows, by name or file [that of each row's runtime]; none: the speed of light")
      ->type_name("NAME");
  command->add_option("--max-mape", flags->max_mape, "exit status 4 when the mean absolute error is above: 0.08 is 8 %")
      ->type_name("SHARE");
  add_output_flags(*command, flags->output);
  command->callback([flags, &action] { action = [flags] { return validate_action(*flags); }; });
}

}  // namespace llmperf::cli
