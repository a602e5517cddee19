// `llmperf graph`: a StableHLO or MHLO program as ops, communication and time.
#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/estimate.h"
#include "cli/files.h"
#include "cli/output.h"
#include "program/blocks.h"
#include "program/estimate.h"
#include "program/flatten.h"
#include "program/partition.h"
#include "report/reports.h"
#include "report/trace.h"
#include "request/resolve.h"
#include "result/program.h"

namespace llmperf::cli {
namespace {

namespace hlo = program;

constexpr Bounds kProgramDevices{1, 1 << 20};
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 40;
constexpr std::int64_t kMaxTrips = 1'000'000'000;

struct GraphFlags {
  std::string program;
  request::Request request;  // hardware, runtime, execution, tile model, reserve, nodes
  std::optional<std::int64_t> devices;
  std::string entry;
  std::vector<std::string> dims, trips, custom_calls;
  hlo::Fusion fuse = hlo::Fusion::none;
  report::Detail detail = report::Detail::summary;
  std::string emit;
};

// "8" or "arg0.1=8".
hlo::Extent extent_value(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  const bool named = equals != std::string::npos;
  const std::string place = named ? text.substr(0, equals) : "";
  const std::size_t dot = place.rfind('.');
  if (named ? dot == std::string::npos || dot == 0 : text.find('.') != std::string::npos) {
    throw Error::bad_input(fmt::format("--dim: cannot read {}", quote(text)),
                           "arg0.1=128 for dimension 1 of %arg0, 128 for every dynamic dimension");
  }
  hlo::Extent extent;
  extent.extent = count_value("--dim", named ? text.substr(equals + 1) : text, 0, kMaxExtent);
  if (!named) return extent;
  const std::size_t sign = place.starts_with('%') ? 1 : 0;
  extent.value = place.substr(sign, dot - sign);
  extent.axis = count_value("--dim", place.substr(dot + 1), 0, 1000);
  return extent;
}

std::pair<std::string, std::int64_t> trip_value(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error::bad_input(fmt::format("--trip-count: cannot read {}", quote(text)),
                           "%12=32 for 32 passes of the loop whose result is %12");
  }
  const std::string name = text.substr(0, equals);
  return {name.starts_with('%') ? name.substr(1) : name,
          count_value("--trip-count", text.substr(equals + 1), 0, kMaxTrips)};
}

hlo::FlattenOptions flatten_options(const GraphFlags& f, const hlo::CustomCalls& calls) {
  hlo::FlattenOptions options;
  options.entry = f.entry.starts_with('@') ? f.entry.substr(1) : f.entry;
  for (const std::string& text : f.dims) options.extents.push_back(extent_value(text));
  for (const std::string& text : f.trips) options.trips.insert(trip_value(text));
  options.custom_calls = &calls;
  return options;
}

Error infeasible(const GraphFlags& f, const hardware::Device& device, const program::ProgramEstimate& e) {
  return Error::infeasible(fmt::format("{} does not fit on {}: needs {} ({} of it arguments and constants), has {}",
                                       f.program, device.name, format_bytes_binary(e.memory.total()),
                                       format_bytes_binary(e.memory.weights), format_bytes_binary(e.capacity)),
                           f.fuse == hlo::Fusion::none
                               ? "--fuse elementwise keeps fewer intermediate values in memory"
                               : "partition the program over more devices, or take a larger one");
}

// The blocks of a partitioned program with the dimensions of the whole one.
hlo::Blocks shown_blocks(const hlo::Blocks& whole, const hlo::Program& program) {
  hlo::Blocks blocks = hlo::recover_blocks(program);
  if (blocks.blocks.size() != whole.blocks.size()) return blocks;
  for (std::size_t n = 0; n < whole.blocks.size(); ++n) {
    std::vector<hlo::RoleNodes> products = std::move(blocks.blocks[n].products);
    blocks.blocks[n] = whole.blocks[n];
    blocks.blocks[n].products = std::move(products);
  }
  return blocks;
}

Answer graph_answer(const GraphFlags& f, const Context& context) {
  if (!f.emit.empty()) {
    context.refuse({"--json", "--format", "--export"}, "a model file is printed in place of a result");
  }
  program::ProgramSetup setup;
  setup.name = std::filesystem::path(f.program).filename().string();
  setup.fusion = f.fuse;
  hlo::CustomCalls calls = hlo::CustomCalls::built_in();
  for (const std::string& path : f.custom_calls) calls.add_file(path);
  const hlo::FlattenOptions options = flatten_options(f, calls);
  request::Sources sources;
  const hardware::Device device = sources.device(*f.request.hw);
  // A compiled program is no step of a serving stack: the speed of light unless a profile is asked for.
  std::optional<hardware::RuntimeProfile> profile;
  if (f.request.runtime) {
    profile = request::choose_profile(f.request, *f.request.hw, device, false, hardware::Workload::language, sources);
  }
  if (!profile) {
    context.refuse({"--execution"}, "says how a runtime runs, and there is none", "give --runtime as well");
  }
  const estimate::Choices choices = request::choose_schemes(f.request, device, profile ? &*profile : nullptr);

  const hlo::Module module = hlo::parse_file(f.program);
  hlo::Program program = hlo::flatten(module, options);
  for (std::string& note : program.notes) note = worded(note);
  const hlo::Blocks whole = hlo::recover_blocks(program);
  if (!f.emit.empty()) return write_stdout(hlo::recovered_model(program, whole)), Answer{};
  setup.devices = hlo::partition(program, {.devices = f.devices}).devices;
  estimate::choose_platform(device, choices, setup);
  const program::ProgramEstimate e = program::run_program(program, setup);
  const hlo::Blocks blocks = shown_blocks(whole, program);
  const result::ProgramStudy study{&program, &setup, &e, &blocks};
  Answer answer{report::program_report(study, f.detail, context.output->wants(report::Format::json))};
  if (context.output->wants(report::Format::trace)) answer.report->trace = report::step_trace(setup, e);
  if (!e.fits) answer.error = infeasible(f, device, e);
  return answer;
}

}  // namespace

void describe_graph(Command& command) {
  GraphFlags& f = answers(command, graph_answer, Traced::yes);
  command.add("program", f.program, "FILE", "the program's text (.mlir)").required();
  command.add("hw", f.request).required();
  command.add("--devices", f.devices, kProgramDevices, "N",
              "that run it together [as many as its annotations and collectives name]");
  command.add("--devices-per-node", f.request.devices_per_node, kProgramDevices, "N",
              "other than the hardware file says");
  command.add("--entry", f.entry, "NAME", "function to run [main, else every one that nothing calls]");
  command.add("--dim", f.dims, "[VALUE.AXIS=]N",
              "extent of a dynamic dimension: arg0.1=128, or 128 for all that nothing else determines; repeatable");
  command.add("--trip-count", f.trips, "LOOP=N",
              "passes of a while loop by its result, %12=32, or its line, line:40=32; repeatable");
  command.add("--fuse", f.fuse, {{"none", hlo::Fusion::none}, {"elementwise", hlo::Fusion::elementwise}}, "HOW",
              "what a compiler keeps out of memory: none or elementwise");
  command.add("--custom-calls", f.custom_calls, "FILE",
              "YAML file that says what custom calls do, beside programs/custom_calls.yaml; repeatable");
  command.add("--emit", f.emit, "WHAT", "print the transformer found in it as a model file (model)").one_of({"model"});
  add_detail(command, f.detail, "summary or ops (every op)");
  command.add("runtime", f.request).about =
      "software stack whose measured efficiencies kernels reach [none: the speed of light]";
  for (const char* field : {"execution", "tile-model", "reserve"}) command.add(field, f.request);
}

}  // namespace llmperf::cli
