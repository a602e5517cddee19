// `llmperf serve`: traffic on an engine, step by step.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/integer.h"
#include "base/number.h"
#include "cli/command_line.h"
#include "cli/estimate.h"
#include "cli/progress.h"
#include "report/serving_trace.h"
#include "request/traffic.h"
#include "result/serving.h"

namespace llmperf::cli {
namespace {

constexpr std::int64_t kMoments = 200;  // of a run's timeline

struct ServeFlags {
  std::string file;
  request::Request request;
};

// The step that stands for those of a run: as many sequences as one had on the mean, of the mean lengths.
estimate::Scenario mean_step(const estimate::Setup& setup, const serving::Summary& s, const serving::Workload& sent) {
  const graph::Plan& plan = setup.execution.plan;
  const auto sequences = std::max<std::int64_t>(1, std::llround(s.mean_batch));
  const auto tokens = [](double mean) { return std::clamp<std::int64_t>(std::llround(mean), 1, estimate::kMaxTokens); };
  // Ranks that share experts step together, the others are replicas.
  const std::int64_t batch = plan.expert > 1 ? divide_up(sequences, plan.data) * plan.data : sequences * plan.data;
  return {.batch = std::min(batch, estimate::kMaxBatch / plan.data * plan.data),
          .prompt = tokens(sent.mean_input()),
          .generate = std::max<std::int64_t>(2, tokens(sent.mean_output()))};
}

// What an estimate says of that step's error: of prompts and of decode the wider one. Nothing without a profile.
std::optional<result::Band> band_of_steps(estimate::Estimator& estimator, const estimate::Scenario& step) {
  if (estimator.setup().profile == nullptr) return std::nullopt;
  const estimate::Estimate e = estimator.run(step);
  std::optional<result::Band> wider;
  for (const char* phase : {"prefill", "decode"}) {
    const std::optional<result::Band> band = result::band(estimator.setup(), e, phase);
    if (band && (!wider || band->p90 > wider->p90)) wider = band;
  }
  return wider;
}

Answer serve_answer(const ServeFlags& flags, const Context& context) {
  const request::Request asked = flags.file.empty() ? flags.request : merged(read_request(flags.file), flags.request);
  check_complete(asked, "llmperf serve --help says what it takes");
  request::Sources sources;
  const auto resolved = request::resolve_serving(asked, sources);
  const request::Traffic traffic = request::read_traffic(*resolved);
  estimate::Estimator& estimator = *std::get<request::Generation>(resolved->work).estimator;
  const estimate::Setup& setup = estimator.setup();
  const serving::EngineSettings settings = serving::choose_engine(traffic.engine, setup);
  const auto sent = [&](std::uint64_t seed) { return requests_of(traffic, seed, resolved->model(), settings); };
  const serving::Workload first = sent(traffic.load.seed);
  const serving::Deployed deployed =
      serving::deploy(setup, traffic.engine, traffic.replicas, std::llround(first.mean_input() + first.mean_output()));

  const InterruptGuard guard;
  result::Serving result(setup);
  const bool drawn = context.output->wants(report::Format::json) || context.output->wants(report::Format::trace);
  const serving::Study study =
      serving::serve(deployed, sent, traffic.load.seed, traffic.seeds,
                     [&](const serving::Summary& s) {
                       result.step = mean_step(setup, s, first);
                       result.band = band_of_steps(estimator, result.step);
                       if (!result.band) {  // as many sequences at once are not what fits by an estimate's rules
                         result.step.batch = setup.execution.plan.data;
                         result.band = band_of_steps(estimator, result.step);
                       }
                       return result.band ? result.band->p90 : 0;
                     },
                     traffic.slo, {.seed = traffic.load.seed, .timeline = drawn, .stop = &interruption()});
  if (study.run.interrupted && study.summary.requests == 0) {
    fmt::print(stderr, "llmperf: interrupted before a request had ended\n");
    return {.status = kExitInterrupted};
  }
  result.deployed = &deployed;
  result.study = &study;
  result.traffic = result::traffic_sent(traffic.load, first, traffic.trace.has_value());
  result.slo = traffic.slo;
  result.notes = setup.notes;
  result.notes.insert(result.notes.end(), traffic.notes.begin(), traffic.notes.end());
  if (drawn) {
    result.timeline = result::moments(study.run, kMoments);
    result.percentiles = result::percentiles(study.run);
  }
  Answer answer{report::serving_report(result, report::serving_trace(result))};
  answer.report->json = with_request(std::move(answer.report->json), asked);
  if (interrupted()) {
    const std::string done = study.run.interrupted
                                 ? fmt::format("{} of {} requests had ended", format_count(d(study.summary.requests)),
                                               format_count(d(result.traffic.requests)))
                                 : "the first run was done, further seeds and the band were not";
    fmt::print(stderr, "llmperf: interrupted: {}\n", done);
    answer.status = kExitInterrupted;
    return answer;
  }
  for (const std::string& missed : report::missed_bounds(result))
    answer.exceeded.push_back("--slo is missed: " + missed);
  return answer;
}

}  // namespace

void add_serve(Command& root) {
  Command& command = root.add_command(
      "serve",
      "traffic on a serving engine, step by step: TTFT, TPOT, throughput and what keeps them from being better");
  ServeFlags& flags = answers(command, serve_answer, Traced::yes);
  command.add_fields(flags.request, "s");
  for (const char* flag : {"--model", "--hw"}) command.find(flag)->required().unless = "--request";
  command.add("--request", flags.file, "FILE",
              "JSON of a request, or a result that was saved with one; - is stdin; flags go over it");
}

}  // namespace llmperf::cli
