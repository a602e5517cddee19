#include "measure/data_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/match.h"
#include "base/number.h"
#include "base/text.h"
#include "measure/statistics.h"

namespace llmperf::measure {
namespace {

using RowList = std::vector<std::size_t>;

std::string kind_of(const Row& row) {
  return match(
      row.of, [](const StepRow& s) { return std::string(name(s.phase)); }, [](const OpRow& o) { return o.op; },
      [](const ServingRow& r) { return r.metric; }, [](const TrainingRow&) { return std::string("training"); });
}

// What a row measured, as named numbers: those whose being constant hides what depends on them.
std::vector<std::pair<std::string_view, std::int64_t>> numbers_of(const Row& row) {
  if (const auto* s = std::get_if<StepRow>(&row.of)) {
    return {{"batch", s->batch},
            s->phase == Phase::prefill ? std::pair<std::string_view, std::int64_t>{"new_tokens", s->new_tokens}
                                       : std::pair<std::string_view, std::int64_t>{"context", s->context}};
  }
  if (const auto* r = std::get_if<ServingRow>(&row.of)) return {{"concurrency", r->load.concurrency.value_or(0)}};
  if (const auto* t = std::get_if<TrainingRow>(&row.of)) return {{"seq", t->seq}};
  const auto& shape = std::get<OpRow>(row.of).shape;
  if (const auto* g = std::get_if<GemmShape>(&shape)) return {{"m", g->m}, {"n", g->n}, {"k", g->k}};
  if (const auto* v = std::get_if<VectorShape>(&shape)) return {{"m", v->tokens}};
  if (const auto* g = std::get_if<GatherShape>(&shape)) return {{"m", g->rows}};
  if (const auto* c = std::get_if<CacheShape>(&shape)) return {{"m", c->tokens}};
  if (const auto* s = std::get_if<ScanShape>(&shape)) return {{"batch", s->batch}, {"q_len", s->q_len}};
  if (const auto* c = std::get_if<CollectiveShape>(&shape)) {
    return {{"ranks", c->ranks}, {"bytes", static_cast<std::int64_t>(c->bytes.value)}};
  }
  if (const auto* t = std::get_if<TransferShape>(&shape)) return {{"bytes", static_cast<std::int64_t>(t->bytes.value)}};
  if (const auto* l = std::get_if<LatentShape>(&shape)) {
    if (l->part == LatentShape::Part::prolog) return {{"m", l->batch}, {"heads", l->heads}};
    return {{"batch", l->batch}, {"kv_len", l->kv_len}, {"heads", l->heads}};
  }
  if (const auto* e = std::get_if<ExpertsShape>(&shape)) return {{"m", e->m}, {"hidden", e->hidden}, {"topk", e->topk}};
  const auto& a = std::get<AttentionShape>(shape);
  return {{"batch", a.batch}, {"kv_len", a.kv_len}, {"heads", a.heads}, {"kv_heads", a.kv_heads}};
}

std::string place(const Measurements& measurements, std::size_t row) {
  const SourcePosition where = measurements.where(measurements.rows[row]);
  return fmt::format("{}:{}", where.file, where.line);
}

// Gives copies of a row one weight together (`weights` is of all rows). Warns of copies and of repeats that contradict
// each other.
void check_repeats(const Measurements& measurements, const std::vector<RowsOfText>& repeats,
                   std::vector<double>& weights, DataCheck& check) {
  constexpr double kContradiction = 1.5;
  std::size_t copies = 0;
  std::optional<std::size_t> first_copy;
  for (const auto& [what, rows] : repeats) {
    std::map<double, RowList> by_latency;
    for (const std::size_t row : rows) by_latency[measurements.rows[row].latency.value].push_back(row);
    for (const auto& [latency, same] : by_latency) {
      for (const std::size_t row : same) weights[row] = 1 / static_cast<double>(same.size());
      copies += same.size() - 1;
      if (same.size() > 1) first_copy = std::min(first_copy.value_or(same[1]), same[1]);
    }
    const double ratio = by_latency.rbegin()->first / by_latency.begin()->first;
    if (ratio > kContradiction) {
      check.warnings.push_back(fmt::format("{} and {} measured the same ({}) and differ by a factor of {}",
                                           place(measurements, by_latency.begin()->second.front()),
                                           place(measurements, by_latency.rbegin()->second.front()), what,
                                           format_significant(ratio, 3)));
    }
  }
  if (copies > 0) {
    check.warnings.push_back(fmt::format("{} row{} a copy of another and count{} no further (the first: {})", copies,
                                         copies == 1 ? " is" : "s are", copies == 1 ? "s" : "",
                                         place(measurements, *first_copy)));
  }
}

// Warns of what all rows of a kind have in common. Adds a problem when that is the latency.
void check_constants(const Measurements& measurements, const std::string& kind, const RowList& rows,
                     std::size_t different, DataCheck& check, std::vector<Diagnostic>& problems) {
  constexpr std::size_t kFew = 3;
  if (different < kFew) return;
  const Row& first = measurements.rows[rows.front()];
  const auto all = [&](auto&& same) {
    return std::all_of(rows.begin(), rows.end(), [&](std::size_t row) { return same(measurements.rows[row]); });
  };
  if (all([&](const Row& row) { return row.latency == first.latency; })) {
    problems.push_back(
        {measurements.where(first),
         fmt::format("{} different {} rows and every latency is {}", different, kind, format_seconds(first.latency)),
         "a measurement depends on what is measured: look at how the file was written"});
    return;
  }
  const auto numbers = numbers_of(first);
  std::vector<std::string> constant;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (all([&](const Row& row) { return numbers_of(row)[i].second == numbers[i].second; })) {
      constant.push_back(fmt::format("{} {}", numbers[i].first, numbers[i].second));
    }
  }
  if (!constant.empty()) {
    check.warnings.push_back(
        fmt::format("every {} row has {}: what depends on it cannot be learned from them", kind, join(constant, ", ")));
  }
}

}  // namespace

DataCheck check_rows(const Measurements& measurements, std::span<const std::size_t> rows, std::size_t parameters,
                     std::size_t fewest) {
  DataCheck check;
  const auto repeats = rows_by_text(rows, [&](std::size_t row) { return configuration(measurements.rows[row]); });
  if (repeats.size() < fewest) {
    const std::string file = measurements.files.size() == 1 ? measurements.files.front().path : "";
    throw Error(ErrorKind::bad_input, {{{file},
                                        fmt::format("{} measurement{} of different things: a profile needs at least {}",
                                                    repeats.size(), repeats.size() == 1 ? "" : "s", fewest),
                                        "a profile of the device's class may do without"}});
  }
  if (repeats.size() < parameters) {
    check.warnings.push_back(
        fmt::format("{} different measurements for {} parameters: several will stay at or near their defaults",
                    repeats.size(), parameters));
  }
  std::vector<double> weights(measurements.rows.size(), 1);
  check_repeats(measurements, repeats, weights, check);
  for (const std::size_t row : rows) check.weights.push_back(weights[row]);
  std::map<std::string, std::size_t, std::less<>> different;
  for (const auto& [what, same] : repeats) ++different[kind_of(measurements.rows[same.front()])];
  std::vector<Diagnostic> problems;
  for (const auto& [kind, alike] :
       rows_by_text(rows, [&](std::size_t row) { return kind_of(measurements.rows[row]); })) {
    check_constants(measurements, kind, alike, different[kind], check, problems);
  }
  if (!problems.empty()) throw Error(ErrorKind::bad_input, problems);
  return check;
}

RowLimits limits_on(const hardware::Device& device, std::size_t row, double roof, double kernels, std::string kind) {
  RowLimits limits{.row = row, .roof = roof, .kernels = kernels, .kind = std::move(kind)};
  if (device.kind == hardware::DeviceKind::cpu) {
    limits.shortest = 3e-8;
    limits.caches = 30;
  }
  return limits;
}

std::vector<std::string> check_roofs(const Measurements& measurements, std::span<const RowLimits> limits) {
  constexpr double kTooSlow = 300;
  constexpr double kLaunch = 5e-6;  // s: what a kernel takes that does nearly nothing
  std::vector<std::string> warnings;
  std::vector<Diagnostic> problems;
  std::map<std::string, std::vector<const RowLimits*>, std::less<>> kinds;
  for (const RowLimits& l : limits) kinds[l.kind].push_back(&l);
  for (const auto& entry : kinds) {
    const std::string& kind = entry.first;  // not a structured binding: clang 14 does not capture those
    const auto& rows = entry.second;
    RowList fast;
    std::size_t slow = 0;
    for (const RowLimits* l : rows) {
      const double measured = measurements.rows[l->row].latency.value;
      if (measured < std::max(l->roof / l->caches, l->shortest)) fast.push_back(l->row);
      slow += measured > kTooSlow * (l->roof + kLaunch * l->kernels) ? 1 : 0;
    }
    const Row& first = measurements.rows[rows.front()->row];
    const bool steps = std::holds_alternative<StepRow>(first.of);
    const auto refuse = [&](std::size_t count, std::string_view how, std::string_view unit) {
      if (measurements.timed_here) {
        warnings.push_back(fmt::format("{} of {} {} rows are {}", count, rows.size(), kind, how));
        return;
      }
      problems.push_back({measurements.where(first),
                          fmt::format("{} of {} {} rows are {}", count, rows.size(), kind, how),
                          fmt::format("{} looks like {}", steps ? "latency_ms" : "latency_us", unit)});
    };
    if (2 * fast.size() > rows.size()) {
      refuse(fast.size(), fmt::format("more than {:.0f} times faster than the hardware can be", rows.front()->caches),
             steps ? "seconds" : "milliseconds");
    } else if (2 * slow > rows.size()) {
      refuse(slow, fmt::format("more than {} times slower than roof and launches of the hardware", kTooSlow),
             steps ? "microseconds" : "nanoseconds");
    } else if (!fast.empty()) {
      warnings.push_back(fmt::format(
          "{} of {} {} rows {} faster than the hardware's memory and engines allow (the first: "
          "{}): caches, or not what the row says",
          fast.size(), rows.size(), kind, fast.size() == 1 ? "is" : "are", place(measurements, fast.front())));
    }
  }
  if (!problems.empty()) throw Error(ErrorKind::bad_input, problems);
  return warnings;
}

}  // namespace llmperf::measure
