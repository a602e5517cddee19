#include "import/import.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/values.h"
#include "cli/written_file.h"
#include "report/import_report.h"

namespace llmperf::cli {
namespace {

struct Flags {
  std::string source;
  std::vector<std::string> files;
  std::string hardware = "unknown";
  std::string ranks;
  std::string collective;
  std::string dtype;
  std::string out;
  OutputFlags output;
};

std::optional<std::int64_t> ranks_value(const std::string& text) {
  constexpr std::int64_t kMost = 1'000'000;
  return text.empty() ? std::nullopt : std::optional(int_value("--ranks", text, 2, kMost));
}

std::string measurement_text(const import::Imported& imported) {
  if (imported.measurements.rows.empty()) {
    const std::string why = imported.types.empty() ? "the files hold no kernels and no collectives"
                            : imported.types.front().remark.empty()
                                ? "no execution has a time"
                                : fmt::format("{}: {}", imported.types.front().type, imported.types.front().remark);
    throw Error::failed(fmt::format("no measurements to write ({})", why), "without -o the summary is printed");
  }
  return calibrate::format_measurements(imported.measurements);
}

int import_action(const Flags& flags) {
  const import::Source source = import::parse_source(flags.source);
  const import::Options options{
      .hardware = flags.hardware,
      .ranks = ranks_value(flags.ranks),
      .collective = flags.collective,
      .dtype = flags.dtype.empty() ? std::nullopt : std::optional(dtype_value("--dtype", flags.dtype))};
  // Two tables behind each other on one stream would be of no use to a reader of either.
  if (flags.out == "-") {
    if (flags.output.json || flags.output.format != "table" || !flags.output.exports.empty()) {
      throw Error::bad_input("-o - prints the measurements in place of the summary", "give -o a file");
    }
    write_stdout(measurement_text(import::import_files(source, flags.files, options)));
    return kExitDone;
  }
  Output output(flags.output);
  std::optional<WrittenFile> out;
  if (!flags.out.empty()) out.emplace(flags.out);
  const import::Imported imported = import::import_files(source, flags.files, options);
  if (out) out->commit(measurement_text(imported));
  output.write(report::import_report(imported));
  return kExitDone;
}

}  // namespace

void add_import(CLI::App& root, Action& action) {
  CLI::App* command = root.add_subcommand("import", "makes measurements of the files of profilers and test programs");
  auto flags = std::make_shared<Flags>();
  command->add_option("source", flags->source, "msprof, torch-npu, hccl-test, nccl-tests or chrome-trace")
      ->type_name("SOURCE")
      ->required();
  command->add_option("files", flags->files, "files of that source")->type_name("FILE")->required();
  command->add_option("--hw", flags->hardware, "device of the measurements, for their column of that name")
      ->type_name("NAME")
      ->capture_default_str();
  command
      ->add_option("--ranks", flags->ranks,
                   "hccl-test, nccl-tests: devices that took part, where the file does not say")
      ->type_name("N");
  command
      ->add_option("--op", flags->collective,
                   "hccl-test, nccl-tests: all_reduce, all_gather, reduce_scatter or all_to_all [by the file's name]")
      ->type_name("NAME");
  command->add_option("--dtype", flags->dtype, "hccl-test: element type [fp32]")->type_name("TYPE");
  command->add_option("-o,--out", flags->out, "file for the measurements; - is stdout, in place of the summary")
      ->type_name("CSV");
  add_output_flags(*command, flags->output);
  command->callback([flags, &action] { action = [flags] { return import_action(*flags); }; });
}

}  // namespace llmperf::cli
