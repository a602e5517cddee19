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
  const Pool& prompts = deployed.deployment.pool;
  const Pool& decodes = deployed.deployment.decode ? *deployed.deployment.decode : prompts;
  const auto input = static_cast<std::int64_t>(load.input.mean());
  const auto output = static_cast<std::int64_t>(load.output.mean());
  const auto step = [](const Pool& pool, const estimate::StepShape& shape) { return pool.cost(shape).interval.value; };
  const auto prompt = [&](std::int64_t tokens) {
    const estimate::Chunk chunk{tokens, 0};
    return step(prompts, {.chunks = {&chunk, 1}, .padded_rows = prompts.settings.padded(tokens)});
  };
  ClosedForm c;
  const std::int64_t budget = std::min(input, prompts.settings.max_batched_tokens);
  c.ttft = Seconds{prompt(budget) * d(input) / d(budget)};
  const double accepted = deployed.deployment.drafts > 0
                              ? estimate::expected_tokens(deployed.deployment.acceptance, deployed.deployment.drafts)
                              : 1;
  const std::int64_t context = input + output / 2;
  const auto decode = [&](std::int64_t sequences) {
    return step(decodes, {.decodes = sequences,
                          .context_sum = sequences * context,
                          .context_max = context,
                          .padded_rows = decodes.settings.padded(sequences * (1 + deployed.deployment.drafts))}) /
           accepted;
  };
  c.tpot = Seconds{decode(1)};
  const std::int64_t room = decodes.blocks * decodes.settings.block_size / std::max<std::int64_t>(context, 1);
  std::int64_t batch = std::clamp<std::int64_t>(room, 1, decodes.settings.max_sequences);
  double longest = std::numeric_limits<double>::infinity();
  for (const Bound& b : slo) {
    if (b.metric == Metric::tpot) longest = std::min(longest, b.limit.value);
  }
  if (decode(batch) > longest) {
    std::int64_t low = 1;
    while (batch - low > 1) {
      const std::int64_t middle = low + (batch - low) / 2;
      (decode(middle) > longest ? batch : low) = middle;
    }
    batch = low;
  }
  const double of_decode = d(output) * decode(batch) / d(batch * decodes.ranks);
  const double of_prompt = c.ttft.value / d(prompts.ranks);
  const double replicas = d(prompts.replicas);
  c.ceiling = deployed.deployment.decode
                  ? std::min(replicas / of_prompt, d(decodes.replicas) / of_decode)
                  : replicas / (of_prompt * (1 - std::min(1.0, d(load.prefix.tokens) / d(input))) + of_decode);
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
  if (options.enough && *options.enough < high) {
    const Summary s = at(*options.enough);
    if (meets(s)) {
      result.requests_per_second = *options.enough;
      result.at = s;
      return result;
    }
    blame(s);
    high = *options.enough;
  }
  // The highest rate lies near the ceiling more often than not.
  for (double rate = high * 0.8; high - low > options.tolerance * high; rate = (low + high) / 2) {
    if (options.stop != nullptr && options.stop->load()) break;
    const Summary s = at(rate);
    if (meets(s)) {
      low = rate;
      result.at = s;
    } else {
      high = rate;
      blame(s);
      if (high < closed.ceiling / 500) break;
    }
  }
  result.requests_per_second = low;
  if (low == 0) result.at = at(closed.ceiling / 1000);
  if (result.binding == Binding::none) result.binding = Binding::throughput;
  return result;
}

}  // namespace llmperf::serving
