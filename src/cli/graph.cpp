// `llmperf graph`: a StableHLO or MHLO program as ops, communication and time.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/request.h"
#include "cli/values.h"
#include "estimate/program.h"
#include "graph/hlo/flatten.h"
#include "graph/hlo/partition.h"
#include "graph/hlo/recovered_model.h"
#include "hardware/runtime_execution.h"
#include "report/program_report.h"
#include "report/step_trace.h"

namespace llmperf::cli {
namespace {

namespace hlo = graph::hlo;

constexpr std::int64_t kMaxDevices = 1 << 20;
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 40;
constexpr std::int64_t kMaxTrips = 1'000'000'000;

struct Flags {
  std::string program;
  RequestFlags request;  // hardware, runtime, execution, tile model, reserve
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

hlo::FlattenOptions flatten_options(const Flags& f, const hlo::CustomCalls& calls) {
  hlo::FlattenOptions options;
  options.entry = f.entry.starts_with('@') ? f.entry.substr(1) : f.entry;
  for (const std::string& text : f.dims) options.extents.push_back(extent_value(text));
  for (const std::string& text : f.trips) options.trips.insert(trip_value(text));
  options.custom_calls = &calls;
  return options;
}

// A compiled program is no step of a serving stack: the speed of light unless a profile is asked for.
std::optional<hardware::RuntimeProfile> profile_of(const Flags& f, const hardware::Device& device) {
  if (f.request.runtime.empty() || f.request.runtime == "none") return std::nullopt;
  return hardware::load_runtime_profile(device, f.request.runtime, hardware::UnknownRuntime::error,
                                        hardware::Workload::language);
}

[[noreturn]] void throw_infeasible(const Flags& f, const hardware::Device& device, const estimate::ProgramEstimate& e) {
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

int graph_action(const Flags& f) {
  const report::Detail detail = detail_value(f.detail);
  estimate::ProgramSetup setup;
  setup.name = std::filesystem::path(f.program).filename().string();
  setup.fusion = fusion_value(f.fuse);
  hlo::CustomCalls calls = hlo::CustomCalls::built_in();
  for (const std::string& path : f.custom_calls) calls.add_file(path);
  const hlo::FlattenOptions options = flatten_options(f, calls);
  const hardware::Device device = hardware::load_device(f.request.hardware);
  const std::optional<hardware::RuntimeProfile> profile = profile_of(f, device);
  setup.device = &device;
  setup.profile = profile ? &*profile : nullptr;
  setup.tiles = tile_model(f.request, device, setup.profile);
  if (profile) setup.dispatch = hardware::resolve_execution(*profile, "all", f.request.execution).prefill;
  if (!profile && !f.request.execution.empty()) {
    throw Error::bad_input("--execution says how a runtime runs, and there is none", "give --runtime as well");
  }
  if (!f.request.reserve.empty()) setup.reserve = bytes_value("--reserve", f.request.reserve);
  std::optional<std::int64_t> devices;
  if (!f.devices.empty()) devices = int_value("--devices", f.devices, 1, kMaxDevices);
  std::optional<std::int64_t> per_node;
  if (!f.devices_per_node.empty()) per_node = int_value("--devices-per-node", f.devices_per_node, 1, kMaxDevices);

  const bool model_only = f.emit_model == "-";
  Output output(f.output, model_only ? std::string() : f.emit_model);
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
  const report::ProgramStudy study{&program, &setup, &e, &blocks};
  report::Report report = report::program_report(study, detail, output.wants(report::Format::json));
  if (output.wants(report::Format::trace)) report.trace = report::step_trace(setup, e);
  output.write(report, model);
  if (!e.fits) throw_infeasible(f, device, e);
  return kExitDone;
}

}  // namespace

void add_graph(CLI::App& root, Action& action) {
  CLI::App* command = root.add_subcommand("graph", "ops, communication and time of a StableHLO or MHLO program");
  auto f = std::make_shared<Flags>();
  command->add_option("program", f->program, "the program's text (.mlir)")->type_name("FILE")->required();
  add_hardware_flag(*command, f->request.hardware);
  command->add_option("--devices", f->devices, "that run it together [as many as its annotations and collectives name]")
      ->type_name("N");
  command->add_option("--devices-per-node", f->devices_per_node, "other than the hardware file says")->type_name("N");
  command->add_option("--entry", f->entry, "function to run [main, else every one that nothing calls]")
      ->type_name("NAME");
  command
      ->add_option("--dim", f->dims,
                   "extent of a dynamic dimension: arg0.1=128, or 128 for all that nothing else determines; repeatable")
      ->type_name("[VALUE.AXIS=]N")
      ->take_all()
      ->allow_extra_args(false);
  command
      ->add_option("--trip-count", f->trips,
                   "passes of a while loop by its result, %12=32, or its line, line:40=32; repeatable")
      ->type_name("LOOP=N")
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--fuse", f->fuse, "what a compiler keeps out of memory: none or elementwise")
      ->type_name("HOW")
      ->capture_default_str();
  command
      ->add_option("--custom-calls", f->custom_calls,
                   "YAML file that says what custom calls do, beside programs/custom_calls.yaml; repeatable")
      ->type_name("FILE")
      ->take_all()
      ->allow_extra_args(false);
  command
      ->add_option("--emit-model", f->emit_model,
                   "write the transformer found in it as a model file; -: to stdout, instead of the report")
      ->type_name("FILE");
  command->add_option("--detail", f->detail, "summary or ops (every op)")->type_name("LEVEL")->capture_default_str();
  command
      ->add_option("--runtime", f->request.runtime,
                   "software stack whose measured efficiencies kernels reach [none: the speed of light]")
      ->type_name("NAME");
  command
      ->add_option("--execution", f->request.execution,
                   "eager, graph, static-graph or dynamic-graph [the runtime's own]")
      ->type_name("HOW");
  command->add_option("--tile-model", f->request.tile_model, "arrays of tiles: default, published or roofline")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--reserve", f->request.reserve, "memory the runtime keeps for itself [512MiB]")
      ->type_name("BYTES");
  add_output_flags(*command, f->output, Traced::yes);
  command->callback([f, &action] { action = [f] { return graph_action(*f); }; });
}

}  // namespace llmperf::cli
