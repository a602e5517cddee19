#include "replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/text.h"

namespace llmperf::replay {
namespace {

using calibrate::OpRow;

const OpRow* row_of(const DistinctOp& op) { return std::get_if<OpRow>(&op.what); }

// What a user sees of an op while it runs.
std::string label(const DistinctOp& op) { return row_of(op) ? calibrate::describe(*row_of(op)) : join(op.names, ", "); }

}  // namespace

Seconds TimedOp::time() const {
  if (!timing) return {};
  const OpRow* row = row_of(op);
  if (row == nullptr) return timing->median;
  const auto* gemm = std::get_if<calibrate::GemmShape>(&row->shape);
  const bool waits = std::holds_alternative<calibrate::CollectiveShape>(row->shape) || (gemm && gemm->ranks > 1);
  return waits ? timing->minimum : timing->median;
}

Replayer::Replayer(Backend& backend, ReplayOptions options) : backend_(backend), options_(std::move(options)) {}

const Replayer::Outcome& Replayer::time_op(const OpRow& row) {
  const auto [found, added] = known_.try_emplace(calibrate::describe(row));
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

}  // namespace llmperf::replay
