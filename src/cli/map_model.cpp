// `llmperf map model`: the ops of one step on an array of tiles, and what stays in its memory between them.
#include <fmt/format.h>

#include "base/number.h"
#include "cli/command.h"
#include "cli/output.h"
#include "mapper/tile/machine.h"
#include "mapper/tile/residency.h"
#include "report/reports.h"
#include "request/resolve.h"
#include "result/mapping.h"

namespace llmperf::cli {
namespace {

struct StepFlags {
  request::Request request;
  bool decodes = false;
  std::optional<std::int64_t> context;
  bool apart = false;
};

Answer map_model(const StepFlags& f, const Context& context) {
  request::Sources sources;
  const std::unique_ptr<request::Resolved> resolved = request::resolve_setup(f.request, sources);
  estimate::Estimator& estimator = resolved->estimator();
  const estimate::Setup& setup = estimator.setup();
  mapper::tile::tiles_of(*setup.device);
  if (setup.tile_model() != mapper::TileModel::mapped) {
    throw Error::bad_input("ops are timed by something else than mappings", "leave out --tile-model and --runtime");
  }
  if (f.decodes) context.refuse({"--prompt"}, "a decode step has one new token", "--context N");
  const std::int64_t prompt = f.request.prompt.value_or(512);
  estimate::Scenario scenario{.batch = f.request.batch.value_or(1), .prompt = prompt, .generate = 1};
  graph::SequenceGroup group{estimator.replica_batch(scenario), prompt, f.context.value_or(0)};
  scenario.depth = group.context;
  if (f.decodes) {
    group = {group.count, 1, f.context.value_or(512)};
    scenario = {.batch = scenario.batch, .prompt = group.context, .generate = 2};
    if (group.context < 1) throw Error::bad_input("--context: a decode step comes after at least one token");
  }
  if (!estimator.fits(scenario)) {
    throw Error::infeasible(fmt::format("{} does not fit on {}: it needs {}, there are {}", setup.execution.model->name,
                                        setup.device->name, format_bytes_binary(estimator.memory(scenario).total()),
                                        format_bytes_binary(estimator.capacity())));
  }
  estimate::Phase phase;
  estimator.step(group, 1, phase);
  std::vector<mapper::tile::StepOp> ops;
  for (const estimate::OpEstimate& op : phase.ops) ops.push_back({&op.op, &op.work, op.time});
  const mapper::tile::TileMapper& tiles = *estimator.machine().tiles();
  result::StepMapping step;
  step.setup = &setup;
  step.group = group;
  step.phase = &phase;
  step.sram = tiles.machine(setup.execution.activations).sram;
  step.step = mapper::tile::place_step(tiles, ops, {.keep = !f.apart});
  return {report::step_mapping_report(step)};
}

}  // namespace

void describe_map_model(Command& command) {
  StepFlags& f = answers(command, map_model);
  command.add("model", f.request).required();
  command.add("hw", f.request).required();
  command.add("--phase", f.decodes, {{"prefill", false}, {"decode", true}}, "WHICH", "prefill or decode");
  command.add("batch", f.request);
  command.add("prompt", f.request);
  command.add("--context", f.context, {0, estimate::kMaxTokens, request::Kilo::binary}, "TOKENS",
              "cached before the step [prefill: 0; decode: 512]");
  command.add("--apart", f.apart, "everything in DRAM between ops");
  for (const char* field : {"weights", "kv", "activations", "options", "tile-model", "tp", "reserve"}) {
    command.add(field, f.request);
  }
}

}  // namespace llmperf::cli
