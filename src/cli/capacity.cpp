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
  // Lists of what one request has one of.
  for (const auto& [name, list, about] :
       {std::tuple("--pp", &query.pp, "pipeline stages, comma-separated [1; 2 and 4 of what no node holds]"),
        std::tuple("--dp", &query.dp,
                   "devices of a replica that serve sequences of their own and share its experts, comma-separated; "
                   "auto: 2, 4, 8 … [1; of models with experts auto, up to four nodes]"),
        std::tuple("--ep", &query.ep,
                   "devices that share the routed experts, comma-separated [1 and all of a replica]")}) {
    command.add(name, *list, "LIST", about).group = "Plan";
  }
  command.add_fields(query.request, "s");
  command.find("--model")->required();
  command.find("--rate")->about += "; --fleet finds the highest";
  command.find("--slo")->required();
  Flag& hw = *command.find("--hw");
  hw.about = "built-in names or YAML files, comma-separated; all: every built-in GPU [all]";
  hw.values.sort = request::Values::Sort::items;
  command.find("--tp")->about = "tensor-parallel devices of a replica, comma-separated [1, 2, 4 … of a node]";
  command.find("--weights")->about +=
      "; several, comma-separated, are compared [the checkpoint's own; of wide ones fp8 and w4a16 as well]";
  command.add("--fleet", query.fleet, "LIST",
              "what there is, such as 16xh200-sxm,8xh100-sxm: the plan with the highest rate that keeps --slo");
  command.add(
      "--day", query.day, "RATES",
      "rates of equal parts of a day, such as 2,1,1,4,9,7, or trace: those of the hours of --trace; replicas by "
      "part, and the cost of all with a fixed number and a scaled one");
  command.add("--scale-time", query.scale_time, "TIME",
              "of --day, that a replica takes to start: those that a part needs beyond the one before are paid so long "
              "before it; wake: from sleep, weights over the host's link, wake:7GB/s from a server's storage [0s]");
  command.add("--api-price", query.api_price, "IN,OUT",
              "price of an API for a million tokens in and out: from where on own devices win");
  command.find("--engine")->about += "; several, comma-separated, are compared";
  command.add("--pd", query.disaggregated, "try prompts and decode on replicas of their own as well");
  command.add(
      "--minimise", query.minimise,
      {{"cost", result::Minimise::cost}, {"devices", result::Minimise::devices}, {"energy", result::Minimise::energy}},
      "WHAT", "cost per hour, devices, or board power");
  add_emit(command, query.emit);
}

}  // namespace llmperf::cli
