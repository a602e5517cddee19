// The smallest bottleneck of contiguous runs is found by bisection: a limit holds when taking as many layers as it
// allows, run after run, reaches the last one. Loads only grow with a run, so this is exact for any costs.
#include "graph/stage_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/integer.h"
#include "base/text.h"

namespace llmperf::graph {
namespace {

// Loads that differ by less are the same: sums of equal costs in another order.
constexpr double kSame = 1e-12;

// Shares of the passes' totals up to every layer.
class Shares {
 public:
  explicit Shares(std::span<const PassCosts> passes) {
    for (const PassCosts& pass : passes) {
      const double total = std::accumulate(pass.layers.begin(), pass.layers.end(), pass.first + pass.last);
      Pass& p = passes_.emplace_back(Pass{{0}, pass.first / total, pass.last / total});
      for (const double cost : pass.layers) p.before.push_back(p.before.back() + cost / total);
    }
  }
  std::int64_t layers() const { return static_cast<std::int64_t>(passes_.front().before.size()) - 1; }
  // Of layers begin .. end - 1, and of what surrounds all layers if the run is the first or the last.
  double load(std::int64_t begin, std::int64_t end, bool is_first, bool is_last) const {
    double most = 0;
    for (const Pass& p : passes_) {
      most = std::max(most, p.at(end) - p.at(begin) + (is_first ? p.first : 0) + (is_last ? p.last : 0));
    }
    return most;
  }
  // Of the slowest stage.
  double slowest(const StageSplit& split) const {
    double most = 0;
    for (const Pass& p : passes_) {
      std::vector<double> loads(static_cast<std::size_t>(split.stages), 0.0);
      loads.front() = p.first;
      loads.back() += p.last;
      for (std::size_t run = 0; run + 1 < split.first.size(); ++run) {
        loads[run % loads.size()] += p.at(split.first[run + 1]) - p.at(split.first[run]);
      }
      most = std::max(most, *std::max_element(loads.begin(), loads.end()));
    }
    return most;
  }
  // Layers up to `end` and what is before them, over all passes.
  double before(std::int64_t end) const {
    double sum = 0;
    for (const Pass& p : passes_) sum += p.first + p.at(end);
    return sum / d(static_cast<std::int64_t>(passes_.size()));
  }

 private:
  struct Pass {
    std::vector<double> before;
    double first;
    double last;
    double at(std::int64_t layer) const { return before[static_cast<std::size_t>(layer)]; }
  };
  std::vector<Pass> passes_;
};

// Runs of at least `inner` layers, the first and the last of at least `outer`.
class Balance {
 public:
  Balance(const Shares& shares, std::int64_t runs, std::int64_t inner, std::int64_t outer)
      : shares_(shares), runs_(runs), layers_(shares.layers()), inner_(inner), outer_(outer) {}

  std::vector<std::int64_t> first() const {
    // Below this some run could not take even its fewest layers.
    double low = std::max(load(0, 0, outer_), load(runs_ - 1, layers_ - outer_, layers_));
    for (std::int64_t end = inner_; runs_ > 2 && end <= layers_; ++end) low = std::max(low, load(1, end - inner_, end));
    double high = 1;
    if (reaches(low)) high = low;
    while (high - low > kSame * high) {
      const double middle = low + (high - low) / 2;
      (reaches(middle) ? high : low) = middle;
    }
    return nearest_to_even(high);
  }

 private:
  std::int64_t fewest(std::int64_t run) const { return run == 0 || run == runs_ - 1 ? outer_ : inner_; }
  std::int64_t fewest_after(std::int64_t run) const {
    return run == runs_ - 1 ? 0 : outer_ + (runs_ - 2 - run) * inner_;
  }
  double load(std::int64_t run, std::int64_t begin, std::int64_t end) const {
    return shares_.load(begin, end, run == 0, run == runs_ - 1);
  }
  bool allows(double limit, std::int64_t run, std::int64_t begin, std::int64_t end) const {
    return load(run, begin, end) <= limit * (1 + kSame);
  }
  // The last end that the limit and the runs after this one leave it.
  std::int64_t furthest(double limit, std::int64_t run, std::int64_t begin) const {
    std::int64_t low = begin + fewest(run);
    std::int64_t high = layers_ - fewest_after(run);
    while (low < high) {
      const std::int64_t middle = high - (high - low) / 2;
      if (allows(limit, run, begin, middle)) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }
  bool reaches(double limit) const {
    std::int64_t end = 0;
    for (std::int64_t run = 0; run < runs_; ++run) end = furthest(limit, run, end);
    return end == layers_;
  }
  std::vector<std::int64_t> nearest_to_even(double limit) const {
    // The earliest that each run may begin for the rest to hold the limit.
    std::vector<std::int64_t> earliest(static_cast<std::size_t>(runs_) + 1, layers_);
    for (std::int64_t run = runs_ - 1; run > 0; --run) {
      const auto i = static_cast<std::size_t>(run);
      std::int64_t begin = earliest[i + 1] - fewest(run);
      while (begin > 0 && allows(limit, run, begin - 1, earliest[i + 1])) --begin;
      earliest[i] = begin;
    }
    std::vector<std::int64_t> first = {0};
    for (std::int64_t run = 0; run < runs_; ++run) {
      const std::int64_t begin = first.back();
      const std::int64_t latest = furthest(limit, run, begin);
      const double even = d(run + 1) / d(runs_);
      std::int64_t end = std::max(begin + fewest(run), earliest[static_cast<std::size_t>(run) + 1]);
      while (end < latest && shares_.before(end + 1) - even <= even - shares_.before(end) + kSame) ++end;
      first.push_back(end);
    }
    return first;
  }

  const Shares& shares_;
  std::int64_t runs_;
  std::int64_t layers_;
  std::int64_t inner_;
  std::int64_t outer_;
};

// Stages of as many layers as in `whole`, each in `chunks` runs that differ by one layer at most: shorter ones first,
// on the last stage last.
StageSplit in_runs(const StageSplit& whole, std::int64_t chunks) {
  StageSplit split{.stages = whole.stages, .first = {0}};
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    for (std::int64_t stage = 0; stage < whole.stages; ++stage) {
      const std::int64_t layers = whole.layers_of_run(stage);
      const std::int64_t turn = stage == whole.stages - 1 ? chunks - 1 - chunk : chunk;
      split.first.push_back(split.first.back() + (layers + turn) / chunks);
    }
  }
  return split;
}

}  // namespace

std::int64_t StageSplit::layers(std::int64_t stage) const {
  std::int64_t sum = 0;
  for (std::int64_t run = stage; run < runs(); run += stages) sum += layers_of_run(run);
  return sum;
}

std::vector<std::int64_t> StageSplit::layers_of_kinds(const model::Decoder& model, std::int64_t stage) const {
  std::vector<std::int64_t> counts(model.kinds.size(), 0);
  for (std::int64_t run = stage; run < runs(); run += stages) {
    for (std::int64_t i = 0; i < layers_of_run(run); ++i) {
      ++counts[model.layer_kinds[static_cast<std::size_t>(first[static_cast<std::size_t>(run)] + i)]];
    }
  }
  return counts;
}

bool StageSplit::equal() const {
  for (std::int64_t run = 1; run < runs(); ++run) {
    if (layers_of_run(run) != layers_of_run(0)) return false;
  }
  return true;
}

std::string to_text(const StageSplit& split) {
  std::vector<std::string> counts;
  for (std::int64_t stage = 0; stage < split.stages; ++stage) counts.push_back(std::to_string(split.layers(stage)));
  const std::int64_t chunks = split.runs() / split.stages;
  return join(counts, "+") + " layers" + (chunks > 1 ? fmt::format(" in {} runs each", chunks) : "");
}

bool enough_layers(std::int64_t layers, std::int64_t stages, std::int64_t chunks) {
  return stages <= layers && (chunks == 1 || chunks <= (layers + 2) / stages);
}

StageSplit equal_split(std::int64_t layers, std::int64_t stages, std::int64_t chunks) {
  StageSplit split{.stages = stages, .first = {}};
  const std::int64_t run = layers / (stages * chunks);
  for (std::int64_t i = 0; i <= stages * chunks; ++i) split.first.push_back(i * run);
  return split;
}

StageSplit balanced_split(std::span<const PassCosts> passes, std::int64_t stages, std::int64_t chunks) {
  const Shares shares(passes);
  if (chunks == 1) return {.stages = stages, .first = Balance(shares, stages, 1, 1).first()};
  StageSplit even_runs{.stages = stages, .first = Balance(shares, stages * chunks, 1, 0).first()};
  std::vector<PassCosts> alike(passes.begin(), passes.end());
  for (PassCosts& pass : alike) {
    const double sum = std::accumulate(pass.layers.begin(), pass.layers.end(), 0.0);
    std::fill(pass.layers.begin(), pass.layers.end(), sum / d(shares.layers()));
  }
  const Shares alike_shares(alike);
  const StageSplit whole{.stages = stages, .first = Balance(alike_shares, stages, chunks, chunks - 1).first()};
  StageSplit even_stages = in_runs(whole, chunks);
  return shares.slowest(even_runs) < shares.slowest(even_stages) * (1 - kSame) ? even_runs : even_stages;
}

StageSplit proportional_split(std::int64_t layers, std::span<const double> shares) {
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  StageSplit split{.stages = static_cast<std::int64_t>(shares.size()), .first = {0}};
  double up_to = 0;
  std::int64_t item = 0;
  for (const double share : shares) {
    up_to += share;
    while (item < layers && d(item) / d(layers + 1) < up_to / all) ++item;
    split.first.push_back(item);
  }
  split.first.back() = layers;
  return split;
}

}  // namespace llmperf::graph
