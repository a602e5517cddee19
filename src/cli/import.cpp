#include "import/import.h"

#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/values.h"
#include "cli/written_file.h"
#include "report/reports.h"

namespace llmperf::cli {
namespace {

struct ImportFlags {
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

int import_action(const ImportFlags& flags, const Context& context) {
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
  Output output(flags.output, context);
  std::optional<WrittenFile> out;
  if (!flags.out.empty()) out.emplace(flags.out);
  const import::Imported imported = import::import_files(source, flags.files, options);
  if (out) out->commit(measurement_text(imported));
  output.write(report::import_report(imported));
  return kExitDone;
}

}  // namespace

void add_import(Command& root) {
  Command& command = root.add_command("import", "makes measurements of the files of profilers and test programs");
  auto flags = std::make_shared<ImportFlags>();
  command.add("source", flags->source, "SOURCE", "msprof, torch-npu, hccl-test, nccl-tests or chrome-trace")
      .required()
      .offers(Values::Sort::words, [] { return import::source_names(); });
  command.add("files", flags->files, "FILE", "files of that source").required();
  command.add_field("hw", flags->hardware).about = "device of the measurements, for their column of that name";
  command.add("--ranks", flags->ranks, "N",
              "hccl-test, nccl-tests: devices that took part, where the file does not say");
  command
      .add("--op", flags->collective, "NAME",
           "hccl-test, nccl-tests: all_reduce, all_gather, reduce_scatter or all_to_all [by the file's name]")
      .offers(Values::Sort::words, "all_reduce all_gather reduce_scatter all_to_all");
  command.add("--dtype", flags->dtype, "TYPE", "hccl-test: element type [fp32]").offers(Values::Sort::words, dtypes);
  command.add("-o,--out", flags->out, "CSV", "file for the measurements; - is stdout, in place of the summary");
  add_output_flags(command, flags->output);
  command.action = [flags](const Context& context) { return import_action(*flags, context); };
}

}  // namespace llmperf::cli
