#include "result/capacity.h"

#include <algorithm>

#include "serving/trace_file.h"

namespace llmperf::result {
namespace {

// Times of the requests of a replica at its share of the rate.
struct CapacityTimes {
  const serving::Summary* summary;
  const serving::Slo* slo;
};

}  // namespace

std::optional<double> CapacityCandidate::beyond_best() const {
  const request::Candidate* best = all->best();
  if (best == nullptr || !of().meets) return std::nullopt;
  const std::optional<double> own = of().objective(all->minimise);
  const std::optional<double> least = best->objective(all->minimise);
  return own && least ? std::optional(*own / *least - 1) : std::nullopt;
}

std::vector<CapacityCandidate> candidates_of(const request::CapacityResult& result) {
  std::vector<CapacityCandidate> all;
  for (std::size_t i = 0; i < result.candidates.size(); ++i) all.push_back({&result, i});
  return all;
}

Type fields_of(Fields<CapacityTimes> f) {
  using T = CapacityTimes;
  using S = serving::Summary;
  return f.of<&T::summary, &S::ttft, &serving::Distribution::mean>("ttft_mean_s", "of a replica at its share")
      .of<&T::summary, &S::ttft, &serving::Distribution::p99>("ttft_p99_s", "likewise")
      .of<&T::summary, &S::tpot, &serving::Distribution::mean>("tpot_mean_s", "likewise")
      .of<&T::summary, &S::tpot, &serving::Distribution::p95>("tpot_p95_s", "likewise")
      .of<&T::summary, &S::e2e, &serving::Distribution::mean>("e2e_mean_s", "likewise")
      .of("slo", "each bound of `--slo`", [](const T& t) { return bounds_at(*t.slo, *t.summary, t.summary->stable); })
      .of<&T::summary, &S::mean_batch>("mean_batch", "sequences in a step")
      .of<&T::summary, &S::busy_share>("utilisation", "share of the time in which steps run");
}

Type fields_of(Fields<CapacityCandidate> f) {
  using C = CapacityCandidate;
  return f.of("hardware", "its name", [](const C& c) { return c.of().hardware; })
      .of("devices",
          "of all replicas, at least as many where it was not simulated; 0: no number of them meets the bounds",
          [](const C& c) { return c.of().devices; })
      .of("plan", "of a replica", [](const C& c) { return c.of().plan; })
      .of("weights", "scheme", [](const C& c) { return c.of().weights; })
      .of("engine", "whose rules it is", [](const C& c) { return c.of().engine; })
      .of("max_requests_per_second",
          "that a replica takes within the bounds; with prompts and decode apart `rate`, which all of them take; 0: "
          "the bounds are missed at any rate",
          [](const C& c) { return c.of().max_requests_per_second; })
      .of("ceiling_requests_per_second", "of a replica, by the closed form: beyond it no queue is stable",
          [](const C& c) { return c.of().ceiling; })
      .of("replicas", "for the rate; with decode apart those of prompts", [](const C& c) { return c.of().replicas; })
      .of("decode_replicas", "of decode alone; 0: there are none", [](const C& c) { return c.of().decode_replicas; })
      .of("cost_per_hour", "of all devices; null: no price is known", [](const C& c) { return c.of().cost_per_hour; })
      .of("currency", "of the costs; null: likewise", [](const C& c) { return c.of().currency; })
      .when([](const C& c) { return c.of().cost_per_hour.has_value(); })
      .of("cost_per_million_output_tokens",
          "of all that is served at the rate, prompts and idle time included; null: likewise",
          [](const C& c) { return c.of().cost_per_million_output_tokens; })
      .of("power_w", "of all boards at most; null: not known", [](const C& c) { return c.of().power_w; })
      .of("joules_per_output_token", "by board power, an upper bound; null: likewise",
          [](const C& c) { return c.of().joules_per_output_token; })
      .of("meets", "whether it serves the rate within the bounds", [](const C& c) { return c.of().meets; })
      .of("binding",
          "what is exceeded beyond its rate: \"ttft\", \"tpot\", \"itl\", \"e2e\", \"throughput\", \"memory\", "
          "\"length\"; \"none\" of what could not be built or was not simulated",
          [](const C& c) { return c.of().binding; })
      .of("cause", "what takes most of a TTFT that binds: \"queue\", \"kv\", \"budget\", \"prefill\", \"interference\"",
          [](const C& c) { return serving::kCauses[static_cast<std::size_t>(*c.of().cause)]; })
      .when([](const C& c) { return c.of().cause.has_value(); })
      .of("simulated",
          "false: the closed form rules it out, or that or a rate that it misses puts what it takes at least, which "
          "`replicas` and costs then are, beyond 1.5 times the best; or the search was interrupted",
          [](const C& c) { return c.of().simulated; })
      .of("why",
          "why it is none: it cannot be built, a request alone is too slow, the search was interrupted; null of others",
          [](const C& c) { return c.of().why; })
      .when([](const C& c) { return !c.of().why.empty(); })
      .of("beyond_best",
          "by how much more of what is minimised it takes than the best: 0.2 is 20 %; null: it does not "
          "meet the bounds",
          [](const C& c) { return c.beyond_best(); })
      .of("pareto", "whether none that meets the bounds is both cheaper and quicker from end to end",
          [](const C& c) { return c.of().pareto; })
      .of("runtime", "the profile that times its steps", [](const C& c) { return c.of().profile; })
      .of("extrapolated", "whether the profile is not the device's own", [](const C& c) { return c.of().extrapolated; })
      .of("at", "at its share of the rate; null: it was not simulated",
          [](const C& c) {
            return CapacityTimes{&*c.of().at, &c.all->slo};
          })
      .when([](const C& c) { return c.of().at.has_value(); });
}

Type fields_of(Fields<request::CapacityResult> f) {
  using R = request::CapacityResult;
  return f.of("model", "its name", [](const R& r) { return r.asked.model; })
      .of<&R::rate>("rate", "requests per second, that were asked for")
      .of("trace", "file of the requests; null: they are made", [](const R& r) { return r.load.trace->workload.name; })
      .when([](const R& r) { return r.load.trace != nullptr; })
      .of("slo", "what is promised, as text", [](const R& r) { return serving::text_of(r.slo); })
      .of("input", "lengths of prompts", [](const R& r) { return serving::text_of(r.load.input); })
      .of("output", "likewise of what is generated", [](const R& r) { return serving::text_of(r.load.output); })
      .of<&R::minimise>("minimise", "\"cost\", \"devices\" or \"energy\"")
      .of("feasible", "whether some candidate meets the bounds", [](const R& r) { return r.best() != nullptr; })
      .of<&R::notes>("notes", "columns of the trace that are passed over, and lengths that are estimated, as text")
      .of<&R::simulations>("simulations", "of the candidates that were simulated")
      .json("interrupted", "true where the search was ended early", [](const R& r) { return r.interrupted; })
      .only_when([](const R& r) { return r.interrupted; })
      .of<&candidates_of>("candidates", "best first");
}

}  // namespace llmperf::result
