// `llmperf graph`: a StableHLO or MHLO program as ops, communication and time.
#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/values.h"
#include "estimate/program.h"
#include "hardware/runtime_execution.h"
#include "program/flatten.h"
#include "program/partition.h"
#include "program/recovered_model.h"
#include "report/reports.h"
#include "report/step_trace.h"
#include "request/resolve.h"
#include "result/program.h"

namespace llmperf::cli {
namespace {

namespace hlo = program;

constexpr std::int64_t kMaxDevices = 1 << 20;
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 40;
constexpr std::int64_t kMaxTrips = 1'000'000'000;

struct GraphFlags {
  std::string program;
  request::Request request;  // hardware, runtime, execution, tile model, reserve
  std::string devices;
  std::string devices_per_node;
  std::string entry;
  std::vector<std::string> dims;
  std::vector<std::string> trips;
  std::vector<std::string> custom_calls;
  std::string fuse = "none";
  std::string detail = "summary";
  std::string emit_model;
  OutputFlags output;
};

// "8" or "arg0.1=8".
hlo::Extent extent_value(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  hlo::Extent extent;
  if (equals == std::string::npos && text.find('.') != std::string::npos) {
    throw Error::bad_input(fmt::format("--dim: cannot read {}", quote(text)),
                           "arg0.1=128 for dimension 1 of %arg0, 128 for every dynamic dimension");
  }
  extent.extent = int_value("--dim", equals == std::string::npos ? text : text.substr(equals + 1), 0, kMaxExtent);
  if (equals == std::string::npos) return extent;
  const std::string place = text.substr(0, equals);
  const std::size_t dot = place.rfind('.');
  if (dot == std::string::npos || dot == 0) {
    throw Error::bad_input(fmt::format("--dim: cannot read {}", quote(text)),
                           "arg0.1=128 for dimension 1 of %arg0, 128 for every dynamic dimension");
  }
  extent.value = place.substr(place.starts_with('%') ? 1 : 0, dot - (place.starts_with('%') ? 1 : 0));
  extent.axis = int_value("--dim", place.substr(dot + 1), 0, 1000);
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
          int_value("--trip-count", text.substr(equals + 1), 0, kMaxTrips)};
}

hlo::Fusion fusion_value(const std::string& text) {
  if (const auto fusion = hlo::parse_fusion(text)) return *fusion;
  const std::vector<std::string> names = {"none", "elementwise"};
  throw Error::bad_input(fmt::format("--fuse: there is no {}", quote(text)), name_hint(text, names));
}

hlo::FlattenOptions flatten_options(const GraphFlags& f, const hlo::CustomCalls& calls) {
  hlo::FlattenOptions options;
  options.entry = f.entry.starts_with('@') ? f.entry.substr(1) : f.entry;
  for (const std::string& text : f.dims) options.extents.push_back(extent_value(text));
  for (const std::string& text : f.trips) options.trips.insert(trip_value(text));
  options.custom_calls = &calls;
  return options;
}

// A compiled program is no step of a serving stack: the speed of light unless a profile is asked for.
std::optional<hardware::RuntimeProfile> profile_of(const GraphFlags& f, const hardware::Device& device) {
  if (!f.request.runtime || f.request.runtime == "none") return std::nullopt;
  return hardware::load_runtime_profile(device, *f.request.runtime, hardware::UnknownRuntime::error,
                                        hardware::Workload::language);
}

[[noreturn]] void throw_infeasible(const GraphFlags& f, const hardware::Device& device,
                                   const estimate::ProgramEstimate& e) {
  throw Error(ErrorKind::infeasible,
              {{.where = {},
                .message = fmt::format("{} does not fit on {}: needs {} ({} of it arguments and constants), has {}",
                                       f.program, device.name, format_bytes_binary(e.memory.total()),
                                       format_bytes_binary(e.memory.weights), format_bytes_binary(e.capacity)),
                .hint = f.fuse == "none" ? "--fuse elementwise keeps fewer intermediate values in memory"
                                         : "partition the program over more devices, or take a larger one"}});
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

int graph_action(const GraphFlags& f, const Context& context) {
  const report::Detail detail = detail_value(f.detail);
  estimate::ProgramSetup setup;
  setup.name = std::filesystem::path(f.program).filename().string();
  setup.fusion = fusion_value(f.fuse);
  hlo::CustomCalls calls = hlo::CustomCalls::built_in();
  for (const std::string& path : f.custom_calls) calls.add_file(path);
  const hlo::FlattenOptions options = flatten_options(f, calls);
  const hardware::Device device = hardware::load_device(*f.request.hw);
  const std::optional<hardware::RuntimeProfile> profile = profile_of(f, device);
  setup.device = &device;
  setup.profile = profile ? &*profile : nullptr;
  setup.tiles = request::choose_tiles(f.request, device, setup.profile);
  if (profile) setup.dispatch = hardware::resolve_execution(*profile, "all", f.request.execution.value_or("")).prefill;
  if (!profile && f.request.execution) {
    throw Error::bad_input("--execution says how a runtime runs, and there is none", "give --runtime as well");
  }
  if (f.request.reserve) setup.reserve = *f.request.reserve;
  std::optional<std::int64_t> devices;
  if (!f.devices.empty()) devices = int_value("--devices", f.devices, 1, kMaxDevices);
  std::optional<std::int64_t> per_node;
  if (!f.devices_per_node.empty()) per_node = int_value("--devices-per-node", f.devices_per_node, 1, kMaxDevices);

  const bool model_only = f.emit_model == "-";
  Output output(f.output, context, model_only ? std::string() : f.emit_model);
  const hlo::Module module = hlo::parse_file(f.program);
  hlo::Program program = hlo::flatten(module, options);
  const hlo::Blocks whole = hlo::recover_blocks(program);
  std::string model;
  if (!f.emit_model.empty()) model = hlo::recovered_model(program, whole);
  if (model_only) {
    write_stdout(model);
    return kExitDone;
  }
  setup.devices = hlo::partition(program, {.devices = devices}).devices;
  setup.cluster = cost::make_cluster(device, per_node);
  const estimate::ProgramEstimate e = estimate::run_program(program, setup);
  const hlo::Blocks blocks = shown_blocks(whole, program);
  const result::ProgramStudy study{&program, &setup, &e, &blocks};
  report::Report report = report::program_report(study, detail, output.wants(report::Format::json));
  if (output.wants(report::Format::trace)) report.trace = report::step_trace(setup, e);
  output.write(report, model);
  if (!e.fits) throw_infeasible(f, device, e);
  return kExitDone;
}

}  // namespace

void add_graph(Command& root) {
  Command& command = root.add_command("graph", "ops, communication and time of a StableHLO or MHLO program");
  auto f = std::make_shared<GraphFlags>();
  command.add("program", f->program, "FILE", "the program's text (.mlir)").required();
  command.add("hw", f->request).required();
  command.add("--devices", f->devices, "N", "that run it together [as many as its annotations and collectives name]");
  command.add("--devices-per-node", f->devices_per_node, "N", "other than the hardware file says");
  command.add("--entry", f->entry, "NAME", "function to run [main, else every one that nothing calls]");
  command.add("--dim", f->dims, "[VALUE.AXIS=]N",
              "extent of a dynamic dimension: arg0.1=128, or 128 for all that nothing else determines; repeatable");
  command.add("--trip-count", f->trips, "LOOP=N",
              "passes of a while loop by its result, %12=32, or its line, line:40=32; repeatable");
  command.add("--fuse", f->fuse, "HOW", "what a compiler keeps out of memory: none or elementwise")
      .offers(Values::Sort::words, "none elementwise");
  command.add("--custom-calls", f->custom_calls, "FILE",
              "YAML file that says what custom calls do, beside programs/custom_calls.yaml; repeatable");
  command.add("--emit-model", f->emit_model, "FILE",
              "write the transformer found in it as a model file; -: to stdout, instead of the report");
  command.add("--detail", f->detail, "LEVEL", "summary or ops (every op)").offers(Values::Sort::words, "summary ops");
  command.add("runtime", f->request).about =
      "software stack whose measured efficiencies kernels reach [none: the speed of light]";
  for (const char* field : {"execution", "tile-model", "reserve"}) command.add(field, f->request);
  add_output_flags(command, f->output, Traced::yes);
  command.action = [f](const Context& context) { return graph_action(*f, context); };
}

}  // namespace llmperf::cli
