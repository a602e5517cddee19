#include "calibrate/validation.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "base/error.h"
#include "base/number.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/values.h"
#include "report/reports.h"
#include "request/names.h"

namespace llmperf::cli {
namespace {

struct ValidateFlags {
  std::vector<std::string> files;
  std::string hardware;
  std::string runtime;
  std::string max_mape;
  OutputFlags output;
};

int validate_action(const ValidateFlags& flags, const Context& context) {
  std::optional<double> limit;
  if (!flags.max_mape.empty()) limit = double_value("--max-mape", flags.max_mape, 0, 1000);
  std::optional<hardware::Device> device;
  if (!flags.hardware.empty()) device = hardware::load_device(flags.hardware);
  Output output(flags.output, context);
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

void add_validate(Command& root) {
  Command& command = root.add_command(
      "validate", "predictions beside measurements: the error of every row, and of two simpler models");
  auto flags = std::make_shared<ValidateFlags>();
  command.add("measurements", flags->files, "CSV", "CSV files, or built-in names (llmperf list measurements)")
      .required()
      .offers(Values::Sort::paths, request::measurement_names);
  command.add_field("hw", flags->hardware).about = "a hardware file of your own, which rows name by its name";
  command.add_field("runtime", flags->runtime).about =
      "profile for all rows, by name or file [that of each row's runtime]; none: the speed of light";
  command.add("--max-mape", flags->max_mape, "SHARE",
              "exit status 4 when the mean absolute error is above: 0.08 is 8 %");
  add_output_flags(command, flags->output);
  command.action = [flags](const Context& context) { return validate_action(*flags, context); };
}

}  // namespace llmperf::cli
