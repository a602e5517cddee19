#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/command.h"
#include "cli/request.h"
#include "report/explain_report.h"

namespace llmperf::cli {
namespace {

struct Flags {
  std::string path;
  RequestFlags request;
  OutputFlags output;
};

int explain_action(const Flags& flags) {
  const auto request = load_request(flags.request);
  Output output(flags.output);
  const estimate::Estimator& estimator = *request->estimator;
  const estimate::Estimate e = request->estimator->run(request->scenario);
  if (!flags.path.empty()) {
    output.write(report::explain_report(estimate::explain(estimator, e, flags.path)));
    return kExitDone;
  }
  std::vector<report::PathValue> paths;
  for (const std::string& path : estimate::explainable_paths(e)) {
    const estimate::Explanation x = estimate::explain(estimator, e, path);
    paths.push_back({path, x.value, x.unit});
  }
  output.write(report::explainable_report(paths));
  return kExitDone;
}

}  // namespace

void add_explain(CLI::App& root, Action& action) {
  CLI::App* command = root.add_subcommand("explain", "the formula of any number of an estimate, with its values");
  auto flags = std::make_shared<Flags>();
  command->add_option("number", flags->path,
                      "path of the number, as in the JSON output (ttft_s, phases.decode.ops.attention.bytes); "
                      "without it all paths are listed");
  add_request_flags(*command, flags->request);
  add_output_flags(*command, flags->output);
  command->callback([flags, &action] { action = [flags] { return explain_action(*flags); }; });
}

}  // namespace llmperf::cli
