#include "measure/advice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "base/integer.h"
#include "measure/linear.h"

namespace llmperf::measure {
namespace {

// The sizes that are proposed.
constexpr std::int64_t kBatches[] = {1, 8, 64, 256};
constexpr std::int64_t kContexts[] = {512, 8192};
constexpr std::int64_t kPrompts[] = {128, 2048};
constexpr std::int64_t kTokens[] = {1, 16, 128, 1024, 8192};
constexpr double kTensors[] = {16e3, 1e6, 64e6};               // bytes
constexpr double kCopies[] = {4e6, 64e6};                      // bytes, beside which the start of a copy is nothing
constexpr std::int64_t kMostCached = std::int64_t{64} * 8192;  // tokens of all sequences of an op

using Emit = std::function<void(OpShape)>;

void vary_tokens(auto shape, auto member, const Emit& emit) {
  for (const std::int64_t tokens : kTokens) {
    shape.*member = tokens;
    emit(shape);
  }
}

// Of attention, latent or not: prompts of one sequence, or new tokens of several.
void vary_lengths(auto shape, const Emit& emit) {
  if (shape.phase == Phase::prefill) {
    for (const std::int64_t prompt : kPrompts) {
      shape.batch = 1;
      shape.q_len = shape.kv_len = prompt;
      emit(shape);
    }
    return;
  }
  for (const std::int64_t batch : kBatches) {
    for (const std::int64_t context : kContexts) {
      shape.batch = batch;
      shape.kv_len = context;
      if (batch * context <= kMostCached) emit(shape);
    }
  }
}

struct Vary {
  const Emit& emit;
  void operator()(GemmShape s) const {
    s.local.clear();  // of more rows it may not fit into the tiles, and a mapping is of one shape
    s.mapping.clear();
    vary_tokens(s, &GemmShape::m, emit);
  }
  void operator()(const ExpertsShape& s) const { vary_tokens(s, &ExpertsShape::m, emit); }
  void operator()(const GatherShape& s) const { vary_tokens(s, &GatherShape::rows, emit); }
  void operator()(const CacheShape& s) const { vary_tokens(s, &CacheShape::tokens, emit); }
  void operator()(const ScanShape& s) const {
    vary_tokens(s, s.q_len > 1 ? &ScanShape::q_len : &ScanShape::batch, emit);
  }
  void operator()(const VectorShape& s) const {
    if (s.bytes.value > 0) return;
    const Emit of_heads = [&](OpShape shape) {  // rows of a rotation are heads of tokens
      std::get<VectorShape>(shape).tokens *= std::max<std::int64_t>(1, s.heads + s.kv_heads);
      emit(std::move(shape));
    };
    vary_tokens(s, &VectorShape::tokens, of_heads);
  }
  void operator()(const AttentionShape& s) const { vary_lengths(s, emit); }
  void operator()(const LatentShape& s) const {
    if (s.part == LatentShape::Part::prolog) {
      vary_tokens(s, &LatentShape::batch, emit);
    } else {
      vary_lengths(s, emit);
    }
  }
  void vary_bytes(auto s, std::span<const double> sizes) const {
    for (const double bytes : sizes) {
      s.bytes = Bytes{bytes};
      emit(s);
    }
  }
  void operator()(const CollectiveShape& s) const { vary_bytes(s, kTensors); }
  void operator()(const TransferShape& s) const { vary_bytes(s, kCopies); }
};

void vary_step(StepRow step, const std::function<void(const StepRow&)>& emit) {
  step.concurrency = step.prompt = step.generated = 0;
  step.loaded = false;
  step.measured.clear();
  step.depth.reset();
  step.gen_tokens = 0;
  step.phase = Phase::decode;
  step.new_tokens = 1;
  for (const std::int64_t batch : kBatches) {
    for (const std::int64_t context : kContexts) {
      step.batch = batch * step.dp;
      step.context = context;
      emit(step);
    }
  }
  step.phase = Phase::prefill;
  step.batch = step.dp;
  step.context = 0;
  for (const std::int64_t prompt : kPrompts) {
    step.new_tokens = prompt;
    emit(step);
  }
}

SlopeRows slopes_at(Predictor& predictor, std::span<const double> values, const std::vector<FreeParameter>& free) {
  constexpr double kStep = 1e-3;  // of a logarithm
  const std::size_t rows = predictor.rows().size();
  std::vector<double> base(rows);
  std::vector<double> moved(rows);
  std::vector<double> at(values.begin(), values.end());
  predictor.predict(at, std::nullopt, base);
  SlopeRows slopes(rows, std::vector<double>(free.size()));
  for (std::size_t p = 0; p < free.size(); ++p) {
    const double h = values[free[p].index] * (1 + kStep) > free[p].max ? -kStep : kStep;
    at[free[p].index] = values[free[p].index] * std::exp(h);
    moved = base;
    predictor.predict(at, free[p].index, moved);
    at[free[p].index] = values[free[p].index];
    for (std::size_t row = 0; row < rows; ++row) {
      const double slope = std::log(moved[row] / base[row]) / h;
      slopes[row][p] = std::isfinite(slope) ? slope : 0;
    }
  }
  return slopes;
}

// A + x x^T / divisor.
void add_outer(Matrix& a, std::span<const double> x, double divisor) {
  for (std::size_t j = 0; j < x.size(); ++j) {
    for (std::size_t i = 0; i < x.size(); ++i) a(i, j) += x[i] * x[j] / divisor;
  }
}

}  // namespace

std::vector<Pick> most_telling(const SlopeRows& measured, std::span<const double> spreads, double noise,
                               const SlopeRows& candidates, std::size_t most) {
  constexpr double kLeast = 0.1;  // nats
  const std::size_t n = spreads.size();
  Matrix information(n, n);
  for (std::size_t i = 0; i < n; ++i) information(i, i) = 1 / (spreads[i] * spreads[i]);
  for (const std::vector<double>& row : measured) add_outer(information, row, noise * noise);
  Matrix s = inverse(information);
  const auto deviations = [&] {
    std::vector<double> roots(n);
    for (std::size_t i = 0; i < n; ++i) roots[i] = std::sqrt(s(i, i));
    return roots;
  };
  std::vector<Pick> picks;
  std::vector<bool> picked(candidates.size());
  while (picks.size() < most && !candidates.empty()) {
    Pick best{.before = deviations(), .after = {}};
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const double gain = std::log1p(dot(candidates[i], product(s, candidates[i])) / (noise * noise)) / 2;
      if (!picked[i] && gain > best.gain) best = {i, gain, std::move(best.before), {}};
    }
    if (best.gain < kLeast) break;
    const std::vector<double> along = product(s, candidates[best.candidate]);
    add_outer(s, along, -(noise * noise + dot(candidates[best.candidate], along)));
    best.after = deviations();
    picked[best.candidate] = true;
    picks.push_back(std::move(best));
  }
  return picks;
}

std::vector<double> doubts(const Measurements& rows, std::span<const double> counts, const hardware::Device& device,
                           const hardware::RuntimeProfile& profile) {
  std::vector<std::size_t> all(rows.rows.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  Refusals refused;  // worth nothing
  Predictor predictor(rows, all, device, profile, &refused);
  std::vector<FreeParameter> free;
  for (const std::size_t p : predictor.parameters()) {
    const hardware::ParameterInfo& info = hardware::parameter_info(p);
    const double known = profile.uncertainty[p] > 0 ? profile.uncertainty[p] : info.spread;
    free.push_back({p, profile.values[p], std::min(known, info.spread), info.min, info.max});
  }
  const SlopeRows slopes = slopes_at(predictor, profile.values, free);
  std::vector<double> seconds(slopes.size());
  predictor.predict(profile.values, std::nullopt, seconds);
  constexpr double kNoise = 0.05;
  Matrix s(free.size(), free.size());
  for (std::size_t p = 0; p < free.size(); ++p) s(p, p) = free[p].spread * free[p].spread;
  std::vector<double> variances;  // of every row, given those that were taken
  for (const std::vector<double>& row : slopes) variances.push_back(dot(row, product(s, row)));
  std::vector<double> worth(rows.rows.size(), 0);
  std::vector<std::size_t> left(slopes.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  const auto doubt = [&](std::size_t i) {
    constexpr double kPreparing = 0.3;  // s, and so many executions
    constexpr double kExecutions = 20;
    const double time = seconds[i] * std::max(0.1, counts[predictor.rows()[i]]);
    return time * std::sqrt(std::max(0.0, variances[i])) / (kPreparing + kExecutions * seconds[i]);
  };
  // Of very many rows the first are as many as anybody times; the others are worth what they leave in doubt.
  constexpr std::size_t kWork = 50'000'000;
  for (std::size_t picks = kWork / std::max<std::size_t>(1, left.size()); picks > 0 && !left.empty(); --picks) {
    const auto best = std::ranges::max_element(left, {}, doubt);
    worth[predictor.rows()[*best]] = doubt(*best);
    const std::vector<double> along = product(s, slopes[*best]);
    const double divisor = kNoise * kNoise + std::max(0.0, variances[*best]);
    add_outer(s, along, -divisor);
    left.erase(best);
    for (const std::size_t i : left) variances[i] -= std::pow(dot(slopes[i], along), 2) / divisor;
  }
  for (const std::size_t i : left) worth[predictor.rows()[i]] = doubt(i);
  return worth;
}

std::vector<Row> sizes_not_measured(const Measurements& rows) {
  std::vector<Row> result;
  std::set<std::string> known;
  const auto anyone = [](Row row) {  // whoever computed it
    if (auto* op = std::get_if<OpRow>(&row.of)) op->kernel.clear();
    return row;
  };
  for (const Row& row : rows.rows) known.insert(configuration(anyone(row)));
  for (const Row& row : rows.rows) {
    const auto emit = [&](auto of) {
      Row candidate = anyone({.hardware = row.hardware, .of = std::move(of), .latency = {}, .extra = {}});
      if (known.insert(configuration(candidate)).second) result.push_back(std::move(candidate));
    };
    if (const auto* step = std::get_if<StepRow>(&row.of)) {
      vary_step(*step, emit);
    } else if (std::holds_alternative<OpRow>(row.of)) {
      auto op = std::get<OpRow>(row.of);
      const Emit shaped = [&](OpShape shape) {
        op.shape = std::move(shape);
        emit(op);
      };
      std::visit(Vary{shaped}, std::get<OpRow>(row.of).shape);
    }
  }
  return result;
}

std::vector<Proposal> propose(const Measurements& rows, Predictor& predictor, const hardware::Device& device,
                              const FitProblem& problem, std::span<const double> values, double noise) {
  constexpr std::size_t kNamed = 3;
  constexpr double kWorthNaming = 1.1;  // by which factor
  Measurements wanted;
  wanted.files.emplace_back();
  wanted.rows = sizes_not_measured(rows);
  std::vector<std::size_t> all(wanted.rows.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  Predictor of_wanted(wanted, all, device, predictor.profile());
  SlopeRows candidates = slopes_at(of_wanted, values, problem.free);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto* step = std::get_if<StepRow>(&wanted.rows[i].of);
    if (step && !of_wanted.runs(i, *step)) std::fill(candidates[i].begin(), candidates[i].end(), 0);
  }
  SlopeRows measured = slopes_at(predictor, values, problem.free);
  for (std::size_t i = 0; i < measured.size(); ++i) {
    for (double& slope : measured[i]) slope *= std::sqrt(problem.weights[i]);
  }
  std::vector<double> spreads;
  for (const FreeParameter& p : problem.free) spreads.push_back(p.spread);
  std::vector<Proposal> result;
  for (const Pick& pick : most_telling(measured, spreads, noise, candidates, kProposals)) {
    result.push_back({wanted.rows[pick.candidate], pick.gain, {}});
    Proposal& proposal = result.back();
    std::vector<std::size_t> by(spreads.size());
    for (std::size_t p = 0; p < by.size(); ++p) by[p] = p;
    std::stable_sort(by.begin(), by.end(), [&](std::size_t a, std::size_t b) {
      return pick.before[a] / pick.after[a] > pick.before[b] / pick.after[b];
    });
    for (const std::size_t p : std::span(by).first(std::min(kNamed, by.size()))) {
      if (p != by.front() && pick.before[p] < kWorthNaming * pick.after[p]) break;
      proposal.narrows.push_back({hardware::parameter_info(problem.free[p].index).name, pick.before[p], pick.after[p]});
    }
  }
  return result;
}

}  // namespace llmperf::measure
