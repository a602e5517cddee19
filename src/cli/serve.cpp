// `llmperf serve`: traffic on an engine, step by step.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

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

// What stands for the steps of a run: of prompts one of the mean length, of decode as many sequences as a step had on
// the mean; and what the profile says of both.
void describe_steps(estimate::Estimator& estimator, const serving::Summary& s, const serving::Workload& sent,
                    result::Serving& result) {
  const graph::Plan& plan = estimator.setup().execution.plan;
  const auto tokens = [](double mean, std::int64_t least) {
    return std::clamp<std::int64_t>(std::llround(mean), least, estimate::kMaxTokens);
  };
  result.prompts = {
      .batch = plan.data, .prompt = tokens(sent.mean_input(), 1), .generate = tokens(sent.mean_output(), 2)};
  result.decodes = result.prompts;
  // Ranks that share experts step together, the others are replicas.
  const auto sequences = std::max<std::int64_t>(1, std::llround(s.mean_batch));
  const std::int64_t batch = plan.expert > 1 ? divide_up(sequences, plan.data) * plan.data : sequences * plan.data;
  result.decodes.batch = std::min(batch, estimate::kMaxBatch / plan.data * plan.data);
  const auto band_of = [&](const estimate::Scenario& step, const char* phase, bool prefill) {
    const estimate::Estimate e = estimator.run(step);
    const estimate::Phase* found = e.phase(phase);
    if (found == nullptr) return std::optional<result::BandOf>();
    return result::band_of(result::band(estimator.setup(), e, phase), prefill ? *e.ttft : *e.tpot);
  };
  const auto decode = band_of(result.decodes, "decode", false);
  result.bands = {{"prefill", band_of(result.prompts, "prefill", true)},
                  // As many sequences at once may be more than an estimate has room for.
                  {"decode", decode ? decode : band_of(result.prompts, "decode", false)}};
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
  // Runs of all seeds, and two with steps as long and as short as the band has them.
  std::optional<Progress> progress(std::in_place);
  const std::int64_t each = static_cast<std::int64_t>(first.requests.size());
  const std::int64_t all = (traffic.seeds + 2) * each;
  std::int64_t begun = 0;
  auto shown_at = std::chrono::steady_clock::now();
  const auto show = [&](std::int64_t ended) {
    const auto now = std::chrono::steady_clock::now();
    if (now - shown_at < std::chrono::milliseconds(200)) return;
    shown_at = now;
    (*progress)(static_cast<std::size_t>((begun - 1) * each + ended), static_cast<std::size_t>(all), "requests");
  };
  (*progress)(0, static_cast<std::size_t>(all), "requests");
  result::Serving result(setup);
  const bool drawn = context.output->wants(report::Format::json) || context.output->wants(report::Format::trace);
  const serving::Study study = serving::serve(
      deployed,
      [&](std::uint64_t seed) {
        ++begun;
        show(0);
        return sent(seed);
      },
      traffic.load.seed, traffic.seeds,
      [&](const serving::Summary& s) {
        describe_steps(estimator, s, first, result);
        const auto p90 = [](const std::optional<result::BandOf>& band) { return band ? band->band.p90 : 0; };
        return serving::StepBand{p90(result.bands[0].second), p90(result.bands[1].second)};
      },
      traffic.slo, {.seed = traffic.load.seed, .timeline = drawn, .stop = &interruption(), .progress = show});
  progress.reset();  // and its line, before anything is said
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
    result.percentiles = result::percentiles(study.run, result.measured().steady());
  }
  result.interrupted = interrupted();
  Answer answer{report::serving_report(result, report::serving_trace(result))};
  answer.report->json = with_request(std::move(answer.report->json), asked);
  if (interrupted()) {
    const std::string done =
        study.run.interrupted
            ? fmt::format("{} of {} requests had ended", format_count(d(study.summary.requests)),
                          format_count(d(result.traffic.requests)))
            : fmt::format("{} of {} seeds were done, the band was not", study.seeds.size(), traffic.seeds);
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
