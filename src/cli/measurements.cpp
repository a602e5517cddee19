// What is done with measurements: `llmperf import` makes them of the files of profilers, `llmperf validate` holds
// predictions against them, `llmperf calibrate` fits a profile to them.
#include <fmt/format.h>

#include <optional>

#include "base/number.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/output.h"
#include "import/import.h"
#include "measure/calibrate.h"
#include "measure/validation.h"
#include "report/reports.h"
#include "request/names.h"
#include "result/measured.h"

namespace llmperf::cli {
namespace {

struct MeasuredFlags {
  std::vector<std::string> files;
  measure::Beside beside;  // its hardware as given: a name or a file
  bool strict = false;
  std::string from;
  std::string out;
  std::optional<double> max_mape;
};

// `device`: what rows are of that do not say it.
measure::Measurements read(const MeasuredFlags& flags, const hardware::Device* device) {
  measure::Beside beside = flags.beside;
  if (device != nullptr) beside.hardware = device->name;
  return measure::read_measurements(flags.files, beside);
}

Answer calibrate_answer(const MeasuredFlags& flags, const Context& context) {
  const bool pulled = !flags.from.empty();
  if (pulled) context.refuse({"--runtime"}, "--from names the profile to start from", "give one of the two");
  const hardware::Device device = hardware::load_device(flags.beside.hardware);
  measure::Measurements rows = read(flags, &device);
  const auto start = hardware::load_runtime_profile(device, pulled ? flags.from : flags.beside.runtime,
                                                    hardware::UnknownRuntime::error, measure::workload_of(rows));
  WrittenFile out(flags.out);
  const auto result = measure::calibrate(std::move(rows), device, start,
                                         pulled ? measure::Pull::to_fitted : measure::Pull::to_defaults);
  if (flags.strict) measure::refuse_none(result.calibration.refused);
  out.commit(hardware::format_runtime_profile(result.profile));
  return {report::calibrate_report(result.calibration)};
}

Answer validate_answer(const MeasuredFlags& flags, const Context&) {
  std::optional<hardware::Device> device;
  if (!flags.beside.hardware.empty()) device = hardware::load_device(flags.beside.hardware);
  const hardware::Device* own = device ? &*device : nullptr;
  const measure::Validation validation = measure::validate(read(flags, own), flags.beside.runtime, own);
  if (flags.strict) measure::refuse_none(validation.measurements.refused);
  Answer answer{report::validate_report(validation)};
  const double mape = validation.summary.errors.mape;
  if (flags.max_mape && !(mape <= *flags.max_mape)) {
    answer.exceeded.push_back(fmt::format("the mean absolute error of {} is above --max-mape {}", format_share(mape),
                                          format_share(*flags.max_mape)));
  }
  return answer;
}

struct ImportFlags {
  import::Source source = import::Source::msprof;
  std::vector<std::string> files;
  import::Options options;
  std::string out;
};

std::string measurement_text(const import::Imported& imported) {
  if (imported.measurements.rows.empty()) {
    const std::string why = imported.types.empty() ? result::warnings_of(imported).front()
                            : imported.types.front().remark.empty()
                                ? "no execution has a time"
                                : fmt::format("{}: {}", imported.types.front().type, imported.types.front().remark);
    throw Error::bad_input(fmt::format("no measurements to write ({})", why), "without -o the summary is printed");
  }
  return measure::format_measurements(imported.measurements);
}

Answer import_answer(const ImportFlags& flags, const Context& context) {
  // Two tables behind each other on one stream would be of no use to a reader of either.
  const bool to_stdout = flags.out == "-";
  if (to_stdout) {
    context.refuse({"--format", "--json", "--export"}, "-o - prints the measurements in place of the summary",
                   "give -o a file");
  }
  WrittenFile out(to_stdout ? "" : flags.out);
  import::Imported imported = import::import_files(flags.source, flags.files, flags.options);
  for (import::TypeSummary& type : imported.types) type.remark = worded(type.remark);
  if (to_stdout) {
    write_stdout(measurement_text(imported));
    return {};
  }
  if (out) out.commit(measurement_text(imported));
  return {report::import_report(imported)};
}

void add_measurements(Command& command, MeasuredFlags& flags) {
  command.add("measurements", flags.files, "CSV", "CSV files, or built-in names (llmperf list measurements)")
      .required()
      .offers(Values::Sort::paths, request::measurement_names);
  command.add_field("model", flags.beside.model).about = "the model of rows that have no column for it";
  command.add_field("weights", flags.beside.weights).about = "likewise their scheme of weights";
  command.add("--strict", flags.strict, "refuse all where a row is refused: exit status 2");
}

}  // namespace

void describe_calibrate(Command& command) {
  MeasuredFlags& flags = answers(command, calibrate_answer);
  add_measurements(command, flags);
  command.add_field("hw", flags.beside.hardware).required();
  command.add_field("runtime", flags.beside.runtime).about =
      "profile to start from, by name or file: its kernel choices and options stay [the device's own]";
  command.add("--from", flags.from, "NAME",
              "profile, by name or file, whose fitted numbers the fit starts at and is pulled towards");
  command.add("-o,--out", flags.out, "YAML", "file for the fitted profile");
}

void describe_validate(Command& command) {
  MeasuredFlags& flags = answers(command, validate_answer);
  add_measurements(command, flags);
  command.add_field("hw", flags.beside.hardware).about =
      "a hardware file of your own, which rows name by its name; the device of rows that have no column for it";
  command.add_field("runtime", flags.beside.runtime).about =
      "profile for all rows, by name or file [that of each row's runtime]; none: the speed of light";
  command.add("--max-mape", flags.max_mape, {0, 1000}, "SHARE",
              "exit status 4 when the mean absolute error is above: 0.08 is 8 %");
}

void describe_import(Command& command) {
  constexpr std::int64_t kMostRanks = 1'000'000;
  ImportFlags& flags = answers(command, import_answer);
  Meanings<import::Source> sources;
  for (const std::string& name : import::source_names()) sources.emplace_back(name, import::parse_source(name));
  Flag& source = command.add("source", flags.source, sources, "SOURCE",
                             "msprof, torch-npu, hccl-test, nccl-tests, chrome-trace, aiconfigurator, llama-bench, "
                             "vllm-bench, sglang-bench, aiperf, guidellm or inferencex");
  source.required();
  command.add("files", flags.files, "FILE", "files of that source").required();
  command.add_field("hw", flags.options.hardware).about = "device of the measurements, for their column of that name";
  command.add("--ranks", flags.options.ranks, {2, kMostRanks}, "N",
              "msprof, torch-npu, hccl-test, nccl-tests, llama-bench: devices that took part, where the file does not "
              "say; runs of "
              "servers: their tensor parallelism");
  command.add_field("model", flags.options.model).about =
      "llama-bench, runs of servers: the model of all of them [by its parameters, its name]";
  command.add_field("weights", flags.options.weights).about =
      "llama-bench: format of the weights; runs of servers: their scheme [the file's]";
  command.add_field("runtime", flags.options.runtime).about =
      "runs of servers: engine and version, vllm@0.15.1 [what the file says]";
  command.add("--concurrency", flags.options.concurrency, {1, import::kMostRequests}, "N",
              "runs of servers: requests under way at most [the file's]");
  command.add("--rate", flags.options.rate, {0, 1'000'000'000}, "R",
              "runs of servers: requests per second [the file's]");
  command.add_field("host", flags.options.host).about = "llama-bench: CPU of the layers that are not on the device";
  command.add("--kv-len", flags.options.kv_len, {1, import::kMostTokens}, "N",
              "msprof, torch-npu: tokens of each sequence in pages or behind others, the new ones included");
  command
      .add("--op", flags.options.collective, "NAME",
           "hccl-test, nccl-tests: all_reduce, all_gather, reduce_scatter or all_to_all [by the file's name]")
      .offers(Values::Sort::words, "all_reduce all_gather reduce_scatter all_to_all");
  command.add("--dtype", flags.options.dtype, dtypes(), "TYPE", "hccl-test: element type [fp32]");
  command.add("-o,--out", flags.out, "CSV", "file for the measurements; - is stdout, in place of the summary");
}

}  // namespace llmperf::cli
