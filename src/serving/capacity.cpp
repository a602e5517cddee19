#include "serving/capacity.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/integer.h"

namespace llmperf::serving {
namespace {

Binding binding_of(Metric metric) {
  switch (metric) {
    case Metric::ttft: return Binding::ttft;
    case Metric::tpot: return Binding::tpot;
    case Metric::itl: return Binding::itl;
    case Metric::e2e: break;
  }
  return Binding::e2e;
}

// The bound that is exceeded most.
const Bound* worst(const Summary& s, const Slo& slo) {
  const auto excess = [&](const Bound& b) { return s.of(b.metric).of(b.statistic) / b.limit.value; };
  const auto found = std::ranges::max_element(slo, {}, excess);
  return found == slo.end() ? nullptr : &*found;
}

}  // namespace

ClosedForm closed_form(const Deployed& deployed, const Load& load, const Slo& slo) {
  const Deployment& of = deployed.deployment;
  const Pool& prompts = of.pool;
  const Pool& decodes = of.decode ? *of.decode : prompts;
  const double input = load.input.mean();
  const double output = load.output.mean();
  const double computed = std::max(1.0, input - d(load.prefix.tokens));  // of a prompt
  const double accepted = of.drafts > 0 ? estimate::expected_tokens(of.acceptance, of.drafts) : 1;
  const auto context = static_cast<std::int64_t>(input + output / 2);
  const auto step = [&](const Pool& pool, std::int64_t tokens, std::int64_t sequences) {
    const estimate::Chunk chunk{tokens, 0};
    estimate::StepShape shape{.decodes = sequences,
                              .context_sum = sequences * context,
                              .context_max = sequences > 0 ? context : 0,
                              .padded_rows = pool.settings.padded(tokens + sequences * (1 + of.drafts))};
    if (tokens > 0) shape.chunks = {&chunk, 1};
    return pool.cost(shape).interval.value;
  };
  const std::int64_t budget = prompts.settings.max_batched_tokens;
  const std::int64_t own = std::min(static_cast<std::int64_t>(input), budget);
  ClosedForm c;
  c.ttft = Seconds{step(prompts, own, 0) * input / d(own)};
  c.tpot = Seconds{step(decodes, 0, 1) / accepted};

  double longest = std::numeric_limits<double>::infinity();
  for (const Bound& b : slo) {
    if (b.metric == Metric::tpot) longest = std::min(longest, b.limit.value);
  }
  const bool mixes = !of.decode && (prompts.settings.kind != EngineKind::sglang || prompts.settings.mixes);
  // Of a step of so many decodes in which as many prompt tokens are as keep their number: seconds, and requests that
  // are through with it.
  const auto balanced = [&](std::int64_t sequences) {
    const double ended = d(sequences) * accepted / output;
    if (!mixes) {
      const double decode = step(decodes, 0, sequences);
      const double prompt = of.decode ? 0 : step(prompts, budget, 0) / d(budget) * computed * ended;
      return std::pair(decode + prompt, ended);
    }
    const std::int64_t room = std::max<std::int64_t>(1, budget - sequences);
    const double tokens = ended * computed;
    const std::int64_t chunk = std::clamp<std::int64_t>(std::llround(tokens), 1, room);
    return std::pair(step(prompts, chunk, sequences), ended * std::min(1.0, d(chunk) / tokens));
  };
  const std::int64_t fits = decodes.blocks * decodes.settings.block_size / std::max<std::int64_t>(context, 1);
  std::int64_t batch = std::clamp<std::int64_t>(fits, 1, decodes.settings.max_sequences);
  if (balanced(batch).first / accepted > longest) {
    std::int64_t low = 1;
    while (batch - low > 1) {
      const std::int64_t middle = low + (batch - low) / 2;
      (balanced(middle).first / accepted > longest ? batch : low) = middle;
    }
    batch = low;
  }
  const auto [seconds, ended] = balanced(batch);
  c.ceiling = d(decodes.replicas * decodes.ranks) * ended / seconds;
  if (of.decode) {
    c.ceiling =
        std::min(c.ceiling, d(prompts.replicas * prompts.ranks) * d(budget) / (step(prompts, budget, 0) * computed));
  }
  return c;
}

Binding ClosedForm::misses(const Slo& slo, double output) const {
  for (const Bound& b : slo) {
    const Seconds alone = b.metric == Metric::ttft ? ttft : b.metric == Metric::e2e ? ttft + tpot * (output - 1) : tpot;
    if (alone > b.limit) return binding_of(b.metric);
  }
  return Binding::none;
}

Capacity max_rate(const Deployed& deployed, const Load& load, const Slo& slo, const CapacityOptions& options) {
  Capacity result;
  const ClosedForm closed = closed_form(deployed, load, slo);
  result.ceiling = closed.ceiling;
  const bool gaps = std::ranges::count(slo, Metric::itl, &Bound::metric) > 0;
  const auto at = [&](double rate) {
    Load one = load;
    one.rate = rate;
    one.concurrency.reset();
    one.requests = options.requests;
    const Workload w = make_workload(one);
    ++result.simulations;
    const Run run = simulate(deployed.deployment, w, {.seed = load.seed, .gaps = gaps, .stop = options.stop});
    return summarise(run, w, slo);
  };
  const auto meets = [&](const Summary& s) { return s.stable && s.excess(slo) <= 0; };
  const auto blame = [&](const Summary& s) {
    const Bound* b = worst(s, slo);
    result.binding = !s.stable && (b == nullptr || s.excess(slo) <= 0) ? Binding::throughput
                     : b == nullptr                                    ? Binding::throughput
                                                                       : binding_of(b->metric);
    if (result.binding == Binding::ttft) {
      const auto most = std::ranges::max_element(s.ttft_causes);
      result.cause = static_cast<Cause>(most - s.ttft_causes.begin());
    }
  };
  // A request alone says what none can beat; its prompt's length is the mean one's, which a percentile's is not, so
  // that a rate of nearly nothing is simulated as well.
  if (const Binding misses = closed.misses(slo, load.output.mean()); misses != Binding::none) {
    result.binding = misses;
    result.at = at(closed.ceiling / 1000);
    return result;
  }
  double low = 0;
  double high = closed.ceiling;
  const auto worth_more = [&](double rate, const Summary& missed) {
    high = rate;
    blame(missed);
    result.missed.push_back(rate);
    return options.worthwhile(rate);
  };
  if (options.enough && *options.enough < high) {
    const Summary s = at(*options.enough);
    if (meets(s)) {
      result.requests_per_second = *options.enough;
      result.at = s;
      return result;
    }
    if (!worth_more(*options.enough, s)) return result;
  }
  // The highest rate lies near the ceiling more often than not.
  for (double rate = high * 0.8; high - low > options.tolerance * high; rate = (low + high) / 2) {
    if (options.stop != nullptr && options.stop->load()) break;
    const Summary s = at(rate);
    if (meets(s)) {
      low = rate;
      result.at = s;
    } else {
      if (!worth_more(rate, s)) return result;
      if (high < closed.ceiling / 500) break;
    }
  }
  result.requests_per_second = low;
  if (low == 0) result.at = at(closed.ceiling / 1000);
  if (result.binding == Binding::none) result.binding = Binding::throughput;
  return result;
}

}  // namespace llmperf::serving
