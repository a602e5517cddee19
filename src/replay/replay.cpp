#include "replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "measure/predictor.h"
#include "measure/statistics.h"

namespace llmperf::replay {

Timing time_passes(const std::function<Seconds(std::int64_t)>& run, const TimingOptions& options) {
  constexpr std::int64_t kMostPasses = 1'000'000;
  // Looks until a sample is long enough: of four times as many passes each, but no more than the last suggests. A look
  // that something disturbed is followed by another, because it takes two in a row to end the search.
  std::int64_t passes = 1;
  for (int enough = 0; enough < 2 && passes < kMostPasses;) {
    const double seconds = std::max(run(passes).value, 1e-9);
    if (seconds >= options.sample.value) {
      enough += seconds >= 20 * options.sample.value ? 2 : 1;  // what is that long is not disturbed so much
      continue;
    }
    enough = 0;
    const double wanted = std::ceil(options.sample.value / seconds * static_cast<double>(passes));
    passes = static_cast<std::int64_t>(
        std::clamp(wanted, static_cast<double>(passes) + 1, std::min(4.0 * static_cast<double>(passes), 1e6)));
  }

  std::vector<double> samples;
  double spent = 0;
  while (static_cast<std::int64_t>(samples.size()) < options.most &&
         (static_cast<std::int64_t>(samples.size()) < options.fewest || spent < options.budget.value)) {
    if (options.go_on && !samples.empty() && !options.go_on()) break;
    const double seconds = run(passes).value;
    spent += seconds;
    samples.push_back(seconds / static_cast<double>(passes));
  }
  const auto count = static_cast<std::int64_t>(samples.size());
  return {.median = Seconds{measure::quantile(samples, 0.5)},
          .minimum = Seconds{*std::min_element(samples.begin(), samples.end())},
          .spread = Seconds{measure::quantile(samples, 0.75) - measure::quantile(samples, 0.25)},
          .samples = count,
          .passes = count * passes};
}

namespace {

using measure::OpRow;

const OpRow* row_of(const DistinctOp& op) { return std::get_if<OpRow>(&op.what); }

// What a user sees of an op while it runs.
std::string label(const DistinctOp& op) { return row_of(op) ? measure::describe(*row_of(op)) : join(op.names, ", "); }

}  // namespace

Seconds TimedOp::time() const {
  if (!timing) return {};
  const OpRow* row = row_of(op);
  if (row == nullptr) return timing->median;
  const auto* gemm = std::get_if<measure::GemmShape>(&row->shape);
  const bool waits = std::holds_alternative<measure::CollectiveShape>(row->shape) || (gemm && gemm->ranks > 1);
  return waits ? timing->minimum : timing->median;
}

Replayer::Replayer(Backend& backend, ReplayOptions options) : backend_(backend), options_(std::move(options)) {}

const Replayer::Outcome& Replayer::time_op(const OpRow& row) {
  const auto [found, added] = known_.try_emplace(measure::describe(row));
  if (!added) return found->second;
  auto prepared = backend_.prepare(row, 0);
  if (auto* unavailable = std::get_if<Unavailable>(&prepared)) {
    found->second.unavailable = std::move(unavailable->reason);
  } else {
    Prepared* const op = std::get<std::unique_ptr<Prepared>>(prepared).get();
    found->second.timing = time_passes(
        [&](std::int64_t passes) {
          return backend_.run({&op, 1}, passes);
        },
        options_.timing);
  }
  return found->second;
}

std::optional<StepTime> Replayer::time_step(const Step& step, const std::vector<TimedOp>& timed) {
  StepTime result;
  std::vector<std::unique_ptr<Prepared>> prepared(step.ops.size());
  for (std::size_t i = 0; i < step.ops.size(); ++i) {
    if (timed[i].timing) {
      auto made = backend_.prepare(*row_of(step.ops[i]), std::max<std::int64_t>(1, step.ops[i].count));
      if (auto* op = std::get_if<std::unique_ptr<Prepared>>(&made)) prepared[i] = std::move(*op);
    }
    if (prepared[i]) {
      result.ops += timed[i].time() * static_cast<double>(step.ops[i].count);
    } else {
      result.left_out.push_back(join(step.ops[i].names, ", "));
    }
  }
  std::vector<Prepared*> sequence;
  for (const StepBlock& block : step.blocks) {
    for (std::int64_t layer = 0; layer < block.times; ++layer) {
      for (const StepPlace& place : block.places) {
        if (!prepared[place.op]) continue;
        sequence.insert(sequence.end(), static_cast<std::size_t>(place.repeat), prepared[place.op].get());
      }
    }
  }
  if (sequence.empty()) return std::nullopt;
  result.timing = time_passes([&](std::int64_t passes) { return backend_.run(sequence, passes); }, options_.timing);
  return result;
}

void Replayer::run_into(const Step& step, Replay& result) {
  const auto go_on = [&](const std::string& what) {
    result.complete = !options_.progress || options_.progress(result.ops.size(), step.ops.size(), what);
    return result.complete;
  };
  for (const DistinctOp& op : step.ops) {
    if (!go_on(label(op))) return;
    TimedOp timed{op, {}, {}};
    if (const OpRow* row = row_of(op)) {
      const Outcome& outcome = time_op(*row);
      timed.timing = outcome.timing;
      timed.unavailable = outcome.unavailable;
    } else {
      timed.unavailable = std::get<std::string>(op.what);
    }
    result.ops.push_back(std::move(timed));
  }
  if (options_.whole_step && go_on("the whole step")) result.whole = time_step(step, result.ops);
}

Replay Replayer::run(const Step& step) {
  Replay result;
  result.device = backend_.describe();
  try {
    run_into(step, result);
  } catch (const Error& error) {
    result.failure = error;
    result.complete = false;
  }
  return result;
}

// ---- gemm: [m, k] x [k, n] for numbers of rows from one (the weights' bandwidth and the launch) to 1024 (the peak
// rate), between which lies where the two meet, on matrices that differ in size (launch against work), in the ratio of
// n to k (tiles against depth) and in whether they divide into large tiles.

namespace {

std::vector<measure::OpRow> gemm_sweep(Dtype dtype) {
  constexpr std::int64_t kRows[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  constexpr std::int64_t kMatrices[][2] = {{1024, 1024}, {3072, 1024}, {1024, 4096}, {4096, 4096},
                                           {8192, 2048}, {896, 4864},  {11008, 2048}};  // n, k
  std::vector<measure::OpRow> ops;
  for (const auto& [n, k] : kMatrices) {
    for (const std::int64_t m : kRows) ops.push_back({"gemm", dtype, measure::GemmShape{m, n, k, 1, {}}});
  }
  return ops;
}

}  // namespace

const std::vector<std::string>& sweep_names() {
  static const std::vector<std::string> names = {"gemm"};
  return names;
}

std::vector<measure::OpRow> sweep(std::string_view name, Dtype dtype) {
  if (name == "gemm") return gemm_sweep(dtype);
  throw Error::bad_input("`sweep`: there is no " + quote(name), name_hint(name, sweep_names()));
}

namespace {

using measure::OpRow;

// Those that were timed, each once, also of another phase.
void add_rows(const Replay& replay, const std::string& hardware, measure::Measurements& m, DistinctOps& known) {
  for (const TimedOp& timed : replay.ops) {
    if (!timed.timing) continue;
    const std::size_t at = known.add(timed.op);
    if (at == m.rows.size()) {
      m.rows.push_back({.hardware = hardware,
                        .of = std::get<OpRow>(timed.op.what),
                        .latency = timed.time(),
                        .extra = {fmt::format("{:.3g}", timed.timing->spread.value * 1e6),
                                  fmt::format("{}", timed.timing->passes), ""}});
    }
    m.rows[at].extra.back() = join(known.ops[at].names, "+");
  }
}

}  // namespace

measure::Measurements measurements_of(const Study& study) {
  measure::Measurements m;
  m.timed_here = true;
  measure::Measurements::File& file = m.files.emplace_back();
  file.path = "replay";
  file.notes.push_back(fmt::format("Ops replayed by llmperf: {}; {} backend on {}.", study.what, study.device.backend,
                                   study.device.title));
  file.notes.emplace_back(
      "latency_us: median over samples of many executions, operands in turn; of collectives the minimum. spread_us: "
      "between the quartiles of the samples.");
  for (const auto& [name, value] : study.device.facts) file.notes.push_back(fmt::format("{}: {}", name, value));
  m.extra_columns = {"spread_us", "repetitions", "name"};
  DistinctOps known;
  for (const PhaseStudy& phase : study.phases) add_rows(phase.replay, study.hardware, m, known);
  return m;
}

void predict_ops(Study& study, const measure::Measurements& measured, const hardware::Device& device,
                 const hardware::RuntimeProfile& profile) {
  std::vector<std::size_t> rows(measured.rows.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  measure::Predictor predictor(measured, rows, device, profile);
  std::vector<double> seconds(rows.size());
  predictor.predict(profile.values, std::nullopt, seconds);
  std::map<std::string, double> of;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    of[measure::describe(std::get<OpRow>(measured.rows[i].of))] = seconds[i];
  }
  study.profile = profile.title_for(device);
  for (PhaseStudy& phase : study.phases) {
    phase.predicted.assign(phase.replay.ops.size(), std::nullopt);
    for (std::size_t i = 0; i < phase.replay.ops.size(); ++i) {
      const TimedOp& timed = phase.replay.ops[i];
      if (timed.timing) phase.predicted[i] = Seconds{of.at(measure::describe(std::get<OpRow>(timed.op.what)))};
    }
  }
}

}  // namespace llmperf::replay
