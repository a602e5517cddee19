// `llmperf capacity`: how many of which devices serve a rate of requests within bounds, and what that costs.
#include "service/capacity.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/estimate.h"
#include "cli/launch.h"
#include "cli/progress.h"
#include "report/reports.h"

namespace llmperf::cli {
namespace {

struct CapacityFlags : service::CapacityQuery {
  std::optional<Launch> emit;
};

Answer capacity_answer(const CapacityFlags& query, const Context& context) {
  if (query.emit) check_emit(context);
  request::Sources sources;
  const InterruptGuard guard;
  const result::CapacityResult result = [&] {
    Progress progress;  // whose line goes with it
    return service::search_capacity(query, sources, &interruption(),
                                    [&](std::size_t done, std::size_t all) { progress(done, all, "candidates"); });
  }();
  const result::Candidate* best = result.best();
  if (query.emit && best != nullptr && !result.interrupted)
    return emitted(best->request, sources, *query.emit, best->replicas);
  Answer answer{report::capacity_report(result)};
  if (result.interrupted) {
    fmt::print(stderr, "llmperf: interrupted: {} of {} candidates were done\n", result.done, result.candidates.size());
    answer.status = kExitInterrupted;
  } else if (best == nullptr) {
    answer.error = Error::infeasible("nothing meets the bounds; the nearest there is stands above",
                                     "looser --slo, more of --hw, --tp or --weights");
  }
  return answer;
}

}  // namespace

void describe_capacity(Command& command) {
  CapacityFlags& query = answers(command, capacity_answer);
  command.add_fields(query.request, "s");
  command.find("--model")->required();
  command.find("--rate")->required();
  command.find("--slo")->required();
  Flag& hw = *command.find("--hw");
  hw.about = "built-in names or YAML files, comma-separated; all: every built-in GPU [all]";
  hw.values.sort = request::Values::Sort::items;
  command.find("--tp")->about = "tensor-parallel devices of a replica, comma-separated [1, 2, 4 … of a node]";
  command.find("--weights")->about += "; several, comma-separated, are compared";
  command.find("--engine")->about += "; several, comma-separated, are compared";
  command.add("--pd", query.disaggregated, "try prompts and decode on replicas of their own as well");
  command.add(
      "--minimise", query.minimise,
      {{"cost", result::Minimise::cost}, {"devices", result::Minimise::devices}, {"energy", result::Minimise::energy}},
      "WHAT", "cost per hour, devices, or board power");
  add_emit(command, query.emit);
}

}  // namespace llmperf::cli
