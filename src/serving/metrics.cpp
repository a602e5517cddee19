#include "serving/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/integer.h"
#include "base/number.h"
#include "base/text.h"

namespace llmperf::serving {
namespace {

constexpr std::array<double, 4> kQuantiles = {0.5, 0.9, 0.95, 0.99};

// `at(i)`: the i-th smallest of n values.
template <class At>
Distribution quantiles(double mean, std::int64_t n, At at) {
  std::array<double, kQuantiles.size()> q = {};
  for (std::size_t i = 0; i < q.size(); ++i) {
    const double position = kQuantiles[i] * d(n - 1);
    const auto below = static_cast<std::int64_t>(position);
    const double low = at(below);
    const double part = position - d(below);
    q[i] = part > 0 ? low + part * (at(below + 1) - low) : low;
  }
  return {mean, q[0], q[1], q[2], q[3]};
}

}  // namespace

double Distribution::of(std::string_view statistic) const {
  if (statistic == "mean") return mean;
  if (statistic == "p50") return p50;
  if (statistic == "p90") return p90;
  return statistic == "p95" ? p95 : p99;
}

Distribution distribution(std::vector<double> values, std::int64_t endless) {
  const auto n = static_cast<std::int64_t>(values.size());
  if (n + endless == 0) return {};
  std::ranges::sort(values);
  double sum = 0;
  for (const double v : values) sum += v;
  constexpr double kEndless = std::numeric_limits<double>::infinity();
  const auto at = [&](std::int64_t i) {
    if (i >= n) return kEndless;
    return values[static_cast<std::size_t>(i)];
  };
  return quantiles(endless > 0 ? kEndless : sum / d(n), n + endless, at);
}

Distribution distribution(std::vector<std::pair<double, std::int64_t>> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  double sum = 0;
  std::int64_t n = 0;
  for (auto& [value, count] : values) {
    sum += value * d(count);
    n += count;
    count = n;  // values up to and with this one
  }
  return quantiles(sum / d(n), n, [&](std::int64_t i) {
    return std::ranges::upper_bound(values, i, {}, &std::pair<double, std::int64_t>::second)->first;
  });
}

std::string Bound::text() const {
  return fmt::format("{}{}{}.{}={}", of, of.empty() ? "" : ":", name(metric), statistic, format_seconds(limit));
}

Seconds value_of(const Served& r, Metric metric) {
  return metric == Metric::ttft ? r.ttft() : metric == Metric::e2e ? r.latency() : r.tpot();
}

Slo parse_slo(std::string_view text) {
  Slo slo;
  for (const std::string_view part : split(text, ',')) {
    const auto refuse = [&](const std::string& hint) {
      throw Error::bad_input(fmt::format("`slo`: {} is no bound", quote(part)), hint);
    };
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) refuse("ttft.p99=1s,tpot.p95=50ms");
    std::string_view what = trim(part.substr(0, equals));
    Bound bound;
    if (const std::size_t colon = what.find(':'); colon != std::string_view::npos) {
      bound.of = what.substr(0, colon);
      what = what.substr(colon + 1);
    }
    const std::size_t dot = what.find('.');
    std::string_view metric = what.substr(0, dot);
    if (metric == "e2el" || metric == "request_latency") metric = "e2e";
    const auto found = std::ranges::find(kMetrics, metric);
    if (found == kMetrics.end()) refuse(name_hint(metric, std::vector<std::string>(kMetrics.begin(), kMetrics.end())));
    bound.metric = static_cast<Metric>(found - kMetrics.begin());
    if (dot != std::string_view::npos) {
      bound.statistic = what.substr(dot + 1);
      if (bound.statistic == "median") bound.statistic = "p50";
      if (std::ranges::find(kStatistics, bound.statistic) == kStatistics.end()) {
        refuse("statistics are mean, p50, p90, p95 and p99");
      }
    }
    const std::optional<Seconds> limit = parse_seconds(trim(part.substr(equals + 1)));
    if (!limit || limit->value <= 0) refuse("the limit is a time: 1s, 50ms");
    bound.limit = *limit;
    slo.push_back(std::move(bound));
  }
  return slo;
}

std::string text_of(const Slo& slo) {
  std::vector<std::string> parts;
  for (const Bound& b : slo) parts.push_back(b.text());
  return join(parts, ",");
}

const Distribution& RequestTimes::of(Metric metric) const {
  return metric == Metric::ttft ? ttft : metric == Metric::tpot ? tpot : e2e;
}
const Distribution& Summary::of(Metric metric) const { return metric == Metric::itl ? itl : RequestTimes::of(metric); }

std::optional<double> Summary::value(const Bound& b) const {
  if (b.metric == Metric::itl) return itl.of(b.statistic);
  const auto named = std::ranges::find(classes, b.of, &ClassSummary::name);
  const bool own = !b.of.empty() && named != classes.end();
  const RequestTimes& of = own ? static_cast<const RequestTimes&>(*named) : *this;
  const double found =
      (of.rejected == 0 ? of.of(b.metric) : of.promised.at(static_cast<std::size_t>(b.metric))).of(b.statistic);
  return std::isfinite(found) ? std::optional(found) : std::nullopt;
}

double Summary::excess(const Slo& slo) const {
  double worst = -1;
  for (const Bound& b : slo) {
    worst = std::max(worst, value(b).value_or(std::numeric_limits<double>::infinity()) / b.limit.value - 1);
  }
  return worst;
}

// Over the second half of the arrivals: requests under way are those that were sent less those that ended. Of a stable
// queue the number at the end differs from that in the middle by chance, which three standard deviations of a Poisson
// number of as many arrivals bound.
double queue_growth(const Run& run) {
  std::vector<double> sent;
  std::vector<double> ended;
  for (const Served& r : run.requests) {
    if (r.rejected) continue;
    sent.push_back(r.sent.value);
    if (r.ended) ended.push_back(r.last.value);
  }
  std::ranges::sort(sent);
  std::ranges::sort(ended);
  if (run.interrupted) {  // of those that would have been sent later nothing is known
    const double now = ended.empty() ? 0 : ended.back();
    std::erase_if(sent, [&](double at) { return at > now; });
  }
  if (sent.size() < 20) return 0;
  const double begin = sent[sent.size() / 2];
  const double end = sent.back();
  if (end <= begin) return 0;
  const auto under_way = [&](double at) {
    return d((std::ranges::upper_bound(sent, at) - sent.begin()) -
             (std::ranges::upper_bound(ended, at) - ended.begin()));
  };
  constexpr int kPoints = 32;
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double x = begin + (end - begin) * i / (kPoints - 1);
    const double y = under_way(x);
    sx += x, sy += y, sxx += x * x, sxy += x * y;
  }
  const double slope = (kPoints * sxy - sx * sy) / (kPoints * sxx - sx * sx);
  const double grown = slope * (end - begin);
  const double arrived = static_cast<double>(sent.size()) / 2;
  return grown > 3 * std::sqrt(arrived) && grown > 0.05 * arrived ? slope : 0;
}

namespace {

// What becomes the times of all requests, or of those of a class.
struct Collected {
  std::vector<double> ttft, tpot, e2e;
  double met = 0;

  void add(const Served& r, bool good) {
    ttft.push_back(r.ttft().value);
    if (r.output > 1) tpot.push_back(r.tpot().value);
    e2e.push_back(r.latency().value);
    met += good ? 1 : 0;
  }
  void tell(RequestTimes& of) {
    of.requests = std::ssize(e2e);
    of.met_share = met / std::max(1.0, d(of.requests + of.rejected));
    const auto take = [&](Metric metric, std::vector<double>& values) {
      if (of.rejected > 0) of.promised.at(static_cast<std::size_t>(metric)) = distribution(values, of.rejected);
      return distribution(std::move(values));
    };
    of.ttft = take(Metric::ttft, ttft);
    of.tpot = take(Metric::tpot, tpot);
    of.e2e = take(Metric::e2e, e2e);
  }
};

}  // namespace

Summary summarise(const Run& run, const Workload& workload, const Slo& slo) {
  Summary s;
  double input = 0, output = 0, prompts = 0, reused = 0, fetched = 0;
  double causes = 0;
  Collected all;
  std::vector<Collected> apart(workload.classes.size());
  for (const std::string& name : workload.classes) s.classes.emplace_back().name = name;
  for (const Served& r : run.requests) {
    ClassSummary* const own = r.of < 0 ? nullptr : &s.classes[static_cast<std::size_t>(r.of)];
    if (r.rejected) ++s.rejected;
    if (r.rejected && own) ++own->rejected;
    if (!r.ended) continue;
    input += d(r.input);
    output += d(r.output);
    prompts += d(r.input);
    reused += d(r.reused);
    fetched += d(r.fetched);
    for (std::size_t i = 0; i < r.causes.size(); ++i) {
      s.ttft_causes[i] += r.causes[i];
      causes += r.causes[i];
    }
    bool good = true;
    for (const Bound& b : slo) {
      const bool about = b.metric != Metric::itl && (b.of.empty() || (own && own->name == b.of));
      good = good && (!about || value_of(r, b.metric) <= b.limit);
    }
    all.add(r, good);
    if (own) apart[static_cast<std::size_t>(r.of)].add(r, good);
  }
  all.tell(s);
  for (std::size_t i = 0; i < apart.size(); ++i) apart[i].tell(s.classes[i]);
  if (causes > 0) {
    for (double& c : s.ttft_causes) c /= causes;
  }
  const GapCauses& g = run.gap_causes;
  const double gaps = g.decode + g.prefill + g.stall;
  if (gaps > 0) s.itl_causes = {g.decode / gaps, g.prefill / gaps, g.stall / gaps};
  s.itl = distribution(run.gaps);
  s.duration = std::max(Seconds{}, run.end - run.begin);
  const double seconds = s.duration.value;
  if (seconds > 0) {
    s.requests_per_second = d(s.requests) / seconds;
    s.input_tokens_per_second = input / seconds;
    s.output_tokens_per_second = output / seconds;
    if (!slo.empty()) s.goodput_per_second = all.met / seconds;
    s.busy_share = run.busy / (seconds * d(run.replicas));
  }
  s.preemptions = run.preemptions;
  s.prefix_hit_share = prompts > 0 ? reused / prompts : 0;
  s.tier_hit_share = prompts > 0 ? fetched / prompts : 0;
  s.kv_peak_share = run.kv_peak_share;
  if (run.busy > 0) {
    s.kv_mean_share = run.kv_seconds / run.busy;
    s.mean_batch = run.decode_seconds / run.busy;
    s.mean_waiting = run.waiting_seconds / run.busy;
  }
  s.steps = run.steps;
  if (workload.open) s.queue_growth = queue_growth(run);
  s.stable = s.queue_growth == 0;
  return s;
}

}  // namespace llmperf::serving
