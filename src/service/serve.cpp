#include "service/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/integer.h"
#include "base/number.h"
#include "result/document.h"
#include "service/estimate.h"
#include "serving/capacity.h"

namespace llmperf::service {
namespace {

constexpr std::int64_t kMoments = 200;  // of a run's timeline

// What stands for the steps of a run: of prompts one of the mean length, of decode as many sequences as a step had on
// the mean; and what the profile says of both.
void describe_steps(estimate::Estimator& prompts, estimate::Estimator& decodes, const serving::Summary& s,
                    const serving::Workload& sent, result::Serving& result) {
  const auto tokens = [](double mean, std::int64_t least) {
    return std::clamp<std::int64_t>(std::llround(mean), least, estimate::kMaxTokens);
  };
  const auto replicas = [](const estimate::Estimator& of) { return of.setup().execution.plan.data; };
  result.prompts = {
      .batch = replicas(prompts), .prompt = tokens(sent.mean_input(), 1), .generate = tokens(sent.mean_output(), 2)};
  result.decodes = result.prompts;
  // Ranks that share experts step together, the others are replicas.
  const auto sequences = std::max<std::int64_t>(1, std::llround(s.mean_batch));
  const graph::Plan& plan = decodes.setup().execution.plan;
  const std::int64_t batch = plan.expert > 1 ? divide_up(sequences, plan.data) * plan.data : sequences * plan.data;
  result.decodes.batch = std::min(batch, estimate::kMaxBatch / plan.data * plan.data);
  const auto band_of = [](estimate::Estimator& estimator, const estimate::Scenario& step, const char* phase,
                          bool prefill) {
    const estimate::Estimate e = estimator.run(step);
    const estimate::Phase* found = e.phase(phase);
    if (found == nullptr) return std::optional<result::BandOf>();
    return result::band_of(result::band(estimator.setup(), e, phase), prefill ? *e.ttft : *e.tpot);
  };
  const auto decode = band_of(decodes, result.decodes, "decode", false);
  const char* const reads = prompts.setup().encodes() ? "encode" : "prefill";
  result.bands = {{"prefill", band_of(prompts, result.prompts, reads, true)},
                  // As many sequences at once may be more than an estimate has room for.
                  {"decode", decode ? decode : band_of(decodes, result.prompts, "decode", false)}};
}

}  // namespace

Served::Served(const request::Request& request, request::Sources& sources, const ServeOptions& options)
    : resolved_(request::resolve_serving(request, sources)), traffic_(request::read_traffic(*resolved_)) {
  estimate::Estimator& estimator = resolved_->estimator();
  estimate::Estimator& decodes = resolved_->decode ? resolved_->decode->estimator() : estimator;
  const estimate::Setup& setup = estimator.setup();
  const serving::EngineSettings settings = serving::choose_engine(traffic_.engine, setup);
  const auto sent = [&](std::uint64_t seed) { return requests_of(traffic_, seed, resolved_->model(), settings); };
  serving::Workload first = sent(traffic_.load.seed);
  deployed_ = std::make_unique<serving::Deployed>(
      request::deploy(*resolved_, traffic_, settings, std::llround(first.mean_input() + first.mean_output())));
  if (traffic_.load.extends) {
    traffic_.load.requests = serving::judge(deployed_->deployment, traffic_.load, {}, false, options.stop).requests;
    first = sent(traffic_.load.seed);
  }

  // Runs of all seeds, and two with steps as long and as short as the band has them.
  const std::int64_t each = static_cast<std::int64_t>(first.requests.size());
  std::int64_t begun = 0;
  const auto show = [&](std::int64_t ended) {
    if (options.progress)
      options.progress(std::max<std::int64_t>(0, begun - 1) * each + ended, (traffic_.seeds + 2) * each);
  };
  show(0);
  result_ = std::make_unique<result::Serving>(setup);
  result::Serving& result = *result_;
  study_ = std::make_unique<serving::Study>(serving::serve(
      *deployed_,
      [&](std::uint64_t seed) {
        ++begun;
        show(0);
        return sent(seed);
      },
      traffic_.load.seed, traffic_.seeds,
      [&](const serving::Summary& s) {
        if (!options.banded) return serving::StepBand{};
        describe_steps(estimator, decodes, s, first, result);
        const auto p90 = [](const std::optional<result::BandOf>& band) { return band ? band->band.p90 : 0; };
        return serving::StepBand{p90(result.bands[0].second), p90(result.bands[1].second)};
      },
      traffic_.slo, {.seed = traffic_.load.seed, .timeline = options.drawn, .stop = options.stop, .progress = show}));
  result.deployed = deployed_.get();
  if (resolved_->decode) result.decode = &decodes.setup();
  result.study = study_.get();
  result.interrupted = options.stop != nullptr && *options.stop;
  result.traffic = result::traffic_sent(traffic_.load, first, traffic_.trace.has_value());
  result.slo = traffic_.slo;
  result.notes = options.notes;
  result.notes.insert(result.notes.end(), setup.notes.begin(), setup.notes.end());
  const serving::EngineSettings& s = deployed_->settings;
  const auto longest = std::ranges::max(first.requests, {}, &serving::Request::input).input;
  const std::int64_t beside = std::min<std::int64_t>(
      traffic_.load.concurrency.value_or(std::llround(study_->summary.mean_batch)), s.max_sequences);
  if (!s.chunked_prefill && beside > 1 && longest + beside - 1 > s.max_batched_tokens) {
    result.notes.push_back(
        fmt::format("prompts of up to {} tokens do not fit into a step of {} beside what {} sequences decode, and are "
                    "not cut: they "
                    "wait until these have ended (`max-batched-tokens` {}, or `chunked-prefill` on)",
                    longest, s.max_batched_tokens, beside - 1, longest + beside + 64));
  }
  if (!deployed_->slower.empty()) {
    result.notes.push_back("nothing is read from " + deployed_->slower + ": to compute a prompt again takes less");
  }
  if (!deployed_->adapted.empty()) {
    result.notes.push_back("the engine would not start with its defaults: taken are " + deployed_->adapted);
  }
  result.notes.insert(result.notes.end(), traffic_.notes.begin(), traffic_.notes.end());
  if (options.drawn) {
    result.timeline = result::moments(study_->run, kMoments);
    result.percentiles = result::percentiles(study_->run, result.measured().steady());
  }
}

double highest_rate(request::Request request, request::Sources& sources, const std::atomic<bool>* stop) {
  request.rate = 1;  // any
  const std::unique_ptr<request::Resolved> resolved = request::resolve_serving(request, sources);
  const request::Traffic traffic = request::read_traffic(*resolved);
  const serving::EngineSettings settings = serving::choose_engine(traffic.engine, resolved->setup());
  const serving::Workload sent = requests_of(traffic, traffic.load.seed, resolved->model(), settings);
  const serving::Deployed deployed =
      request::deploy(*resolved, traffic, settings, std::llround(sent.mean_input() + sent.mean_output()));
  const serving::Capacity found = serving::max_rate(deployed, traffic.load, traffic.slo, {.stop = stop});
  if (found.requests_per_second <= 0) {
    throw Error::infeasible(fmt::format("`rate` max: a request alone misses a bound ({})", name(found.binding)),
                            "a looser `slo`, or more devices");
  }
  return found.requests_per_second;
}

Served::~Served() = default;

std::string Served::progress_text() const {
  const auto count = [](std::int64_t n) { return format_count(static_cast<double>(n)); };
  return study_->run.interrupted
             ? fmt::format("{} of {} requests had ended", count(study_->summary.requests),
                           count(result_->traffic.requests))
             : fmt::format("{} of {} seeds were done, the band was not", study_->seeds.size(), traffic_.seeds);
}

bool Served::misses() const { return !result_->meets().value_or(true); }

std::string Served::json() const { return with_request(result::document("llmperf.serve", *result_), resolved_->asked); }

}  // namespace llmperf::service
