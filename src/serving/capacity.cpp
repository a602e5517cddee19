#include "serving/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/integer.h"
#include "base/number.h"

namespace llmperf::serving {
namespace {

// Of which there is one for each metric, in their order.
Binding binding_of(Metric metric) {
  static_assert(name(Binding::ttft) == name(Metric::ttft) && name(Binding::e2e) == name(Metric::e2e));
  return static_cast<Binding>(static_cast<int>(Binding::ttft) + static_cast<int>(metric));
}

// The bound that is exceeded most.
const Bound* worst(const Summary& s, const Slo& slo) {
  const auto excess = [&](const Bound& b) { return s.value(b).value_or(1e9) / b.limit.value; };
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
    estimate::StepShape shape{
        .decodes = sequences, .context_sum = sequences * context, .context_max = sequences > 0 ? context : 0};
    if (tokens > 0) shape.chunks = {&chunk, 1};
    return pool.cost(shape).interval.value;
  };
  const std::int64_t budget = prompts.settings.max_batched_tokens;
  const std::int64_t own = std::min(static_cast<std::int64_t>(input), budget);
  ClosedForm c;
  c.alike = load.classes.empty();
  c.ttft = Seconds{step(prompts, own, 0) * input / d(own)};
  // Of prompts alone, as many whole ones as a step has room for.
  const auto prompts_alone = [&] {
    const std::vector<estimate::Chunk> whole(static_cast<std::size_t>(std::max<std::int64_t>(1, budget / own)),
                                             estimate::Chunk{own, 0});
    const double full = prompts.cost({.chunks = whole}).interval.value;
    return d(prompts.replicas * prompts.ranks) * d(own) * d(std::ssize(whole)) / (full * computed);
  };
  if (output <= 1) {  // nothing is decoded
    c.ceiling = prompts_alone();
    return c;
  }
  c.tpot = Seconds{step(decodes, 0, 1) / accepted};

  double longest = std::numeric_limits<double>::infinity();
  for (const Bound& b : slo) {
    if (b.metric == Metric::tpot && load.classes.empty()) longest = std::min(longest, b.limit.value);
  }
  const bool mixes = !of.decode && (prompts.settings.kind != EngineKind::sglang || prompts.settings.mixes);
  // Of a step of so many decodes in which as many prompt tokens are as keep their number: seconds, and requests that
  // are through with it. Some steps have many such tokens and others none, where that takes less.
  const auto balanced = [&](std::int64_t sequences) {
    const double ended = d(sequences) * accepted / output;
    if (!mixes) {
      const double decode = step(decodes, 0, sequences);
      const double prompt = of.decode ? 0 : step(prompts, budget, 0) / d(budget) * computed * ended;
      return std::pair(decode + prompt, ended);
    }
    const std::int64_t room = std::max<std::int64_t>(1, budget - sequences);
    const double tokens = ended * computed;
    const double decode = step(prompts, 0, sequences);
    double each = std::numeric_limits<double>::infinity();  // token of a prompt
    for (const std::int64_t chunk :
         {std::clamp<std::int64_t>(std::llround(tokens), 1, room), std::min(own, room), room})
      each = std::min(each, (step(prompts, chunk, sequences) - decode) / d(chunk));
    const double share = std::min(1.0, d(room) / tokens);
    return std::pair(decode + each * tokens * share, ended * share);
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
  if (of.decode) c.ceiling = std::min(c.ceiling, prompts_alone());
  return c;
}

double ClosedForm::share_of(const Bound& b, double output) const {
  const Seconds alone = b.metric == Metric::ttft ? ttft : b.metric == Metric::e2e ? ttft + tpot * (output - 1) : tpot;
  return alone / b.limit;
}

Binding ClosedForm::misses(const Slo& slo, double output) const {
  const auto exceeded = std::ranges::find_if(slo, [&](const Bound& b) { return share_of(b, output) > 1; });
  return alike && exceeded != slo.end() ? binding_of(exceeded->metric) : Binding::none;
}

Verdict judge(const Deployment& deployment, Load load, const Slo& slo, bool hasty, const std::atomic<bool>* stop) {
  constexpr double kLives = 10;  // requests for each that is under way on the mean
  constexpr double kMost = 20'000;
  const bool gaps = std::ranges::count(slo, Metric::itl, &Bound::metric) > 0;
  for (Verdict v;;) {
    const Workload w = make_workload(load);
    v.requests = static_cast<std::int64_t>(w.requests.size());
    RunOptions options{.seed = load.seed, .gaps = gaps, .stop = stop};
    // A percentile is exceeded once more requests exceed it than lie above it of all: how many still may, by bound.
    std::vector<std::int64_t> left;
    std::vector<std::int64_t> of;  // its class; -1: all
    for (const Bound& b : slo) {
      of.push_back(b.of.empty() ? -1 : std::ranges::find(w.classes, b.of) - w.classes.begin());
      const auto about = [&](const Request& r) { return of.back() < 0 || r.of == of.back(); };
      const std::int64_t requests = std::ranges::count_if(w.requests, about);
      const bool counted = b.metric != Metric::itl && b.statistic != "mean";
      const double share = counted ? d(*parse_int(b.statistic.substr(1))) / 100 : 0;
      left.push_back(counted ? requests - 1 - static_cast<std::int64_t>(share * d(requests - 1)) : requests);
    }
    if (hasty) {
      options.goes_on = [&](const Served& r) {
        for (std::size_t i = 0; i < slo.size(); ++i) {
          const bool about = of[i] < 0 || r.of == of[i];
          const bool missed = r.rejected || value_of(r, slo[i].metric) > slo[i].limit;
          if (about && missed && --left[i] < 0) return false;
        }
        return true;
      };
    }
    v.summary = summarise(simulate(deployment, w, options), w, slo);
    ++v.simulations;
    if (!load.extends || !load.rate || (stop != nullptr && stop->load())) return v;
    if (hasty && v.summary.excess(slo) > 0) return v;
    // Time in the queue does not count: where that grows there is no end of it.
    // What is over with its first token has no such time: its queue is looked at for seconds.
    constexpr double kSeconds = 5;
    const double thinks = load.think.value * d(load.turns);  // of a session, which is under way as well
    const double decoding = kLives * (v.summary.e2e.mean - v.summary.ttft.mean);
    const double life = (load.output.mean() > 1 ? decoding : kSeconds) + kLives * thinks;
    // Sessions that think start over at least three of their lives: before that the rate is not reached.
    constexpr double kStarts = 3;
    constexpr double kLongest = 200'000;
    const double most = std::max(kMost, kStarts * *load.rate * thinks);
    if (most > kLongest) {
      throw Error::bad_input(
          fmt::format("`think`: at {:.3g} requests a second sessions of {} each are too long to simulate", *load.rate,
                      format_seconds(Seconds{thinks})),
          "a shorter `think`, or fewer `turns`");
    }
    const double wanted = std::min(*load.rate * life, most);
    constexpr double kNearly = 1.25;
    if (wanted <= kNearly * d(v.requests)) return v;
    load.requests = static_cast<std::int64_t>(wanted);
  }
}

Capacity max_rate(const Deployed& deployed, const Load& load, const Slo& slo, const CapacityOptions& options) {
  Capacity result;
  const ClosedForm closed = closed_form(deployed, load, slo);
  result.ceiling = closed.ceiling;
  const auto at = [&](double rate, bool hasty) {
    Load one = load;
    one.rate = rate;
    one.concurrency.reset();
    const Verdict v = judge(deployed.deployment, one, slo, hasty, options.stop);
    result.simulations += v.simulations;
    return v;
  };
  const auto blame = [&](const Summary& s) {
    const Bound* b = worst(s, slo);
    result.binding = b == nullptr || (!s.stable && s.excess(slo) <= 0) ? Binding::throughput : binding_of(b->metric);
    result.cause.reset();
    if (result.binding == Binding::ttft) {
      const auto most = std::ranges::max_element(s.ttft_causes);
      result.cause = static_cast<Cause>(most - s.ttft_causes.begin());
    }
  };
  const auto alone = [&] { return at(closed.ceiling / 1000, false).summary; };
  // A request alone says what none can beat; its prompt's length is the mean one's, which a percentile's is not, so
  // that a rate of nearly nothing is simulated as well.
  if (const Binding misses = closed.misses(slo, load.output.mean()); misses != Binding::none) {
    result.binding = misses;
    result.at = alone();
    return result;
  }
  const auto three_digits = [](double rate) {
    const double unit = std::pow(10, std::floor(std::log10(rate)) - 2);
    return std::floor(rate / unit * (1 + 1e-12)) * unit;
  };
  double low = 0;
  double high = closed.ceiling;
  bool seen = false;  // that `high` is missed
  // Of a few requests none may ever be missed, all at once as they may come. Where nothing is decoded, and nothing is
  // known of prompts, no queue survives more than the ceiling.
  constexpr double kNoMore = 4;
  const bool exact = load.output.mean() <= 1 && !deployed.settings.prefix_caching;
  const double most = exact ? three_digits(closed.ceiling) : kNoMore * closed.ceiling;
  // The highest rate lies near the ceiling more often than not.
  for (double rate = three_digits(high * 0.8);; rate = three_digits(seen ? (low + high) / 2 : high)) {
    if (options.stop != nullptr && options.stop->load()) break;
    const Verdict v = at(rate, true);
    if (v.summary.meets(slo)) {
      low = rate;
      result.at = v.summary;
      if (!seen) high = exact ? most : std::max(high, rate * 1.25);
    } else {
      high = rate;
      seen = true;
      blame(v.summary);
      result.missed.push_back(rate);
      if (!options.worthwhile(rate)) return result;
      if (high < closed.ceiling / 500) break;
    }
    if (seen ? high - low <= options.tolerance * high : rate >= most) break;
  }
  if (!seen) result.binding = Binding::throughput;
  result.requests_per_second = low;
  if (low == 0) result.at = alone();
  return result;
}

}  // namespace llmperf::serving
