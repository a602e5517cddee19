// `llmperf serve`: traffic on an engine, step by step.
#include "service/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/number.h"
#include "base/parallel.h"
#include "cli/command.h"
#include "cli/estimate.h"
#include "cli/launch.h"
#include "cli/progress.h"
#include "points/values.h"
#include "report/trace.h"
#include "service/sweep.h"

namespace llmperf::cli {
namespace {

struct ServeFlags : RequestFlags {
  std::string rate;  // a number, several, or "max"
  std::string from;
  std::optional<Launch> emit;
};

// The rates of a curve, where there are several.
std::vector<std::string> rates_of(const std::string& text) {
  return text.empty() ? std::vector<std::string>() : points::expand_values("--rate", text);
}

double number_of(const points::Row& row, const std::vector<std::string>& columns, std::string_view name) {
  const auto column = static_cast<std::size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
  const points::Cell& cell = row[column];
  return cell.kind == points::Cell::Kind::none ? 0 : cell.number;
}

// Latency against load: a sweep of the rate alone. The knee is where tokens per second over the mean latency of a
// request are most (Kleinrock's power).
Answer curve_answer(request::Request asked, const std::vector<std::string>& rates, std::vector<std::string> notes) {
  std::vector<service::Swept> fields;
  for (const request::Field& field : request::fields()) {
    if (field.name == "rate") {
      fields.push_back({&field, rates});
    } else if (const std::optional<std::string> value = get(asked, field)) {
      fields.push_back({&field, {*value}});
    }
  }
  request::Sources sources;
  const service::Sweep sweep(fields, "", sources, [](const std::string& message) { return worded(message); });
  const InterruptGuard guard;
  report::SweepResult result;
  result.axes = sweep.swept();
  result.columns = sweep.columns();
  result.points = sweep.grid().points();
  result.rows.resize(static_cast<std::size_t>(result.points));
  in_parallel(result.rows.size(), 0, [&](std::size_t i) {
    service::Sweep::Evaluator evaluate(sweep);
    if (!interrupted()) evaluate(static_cast<std::int64_t>(i), result.rows[i]);
  });
  if (interrupted()) {
    fmt::print(stderr, "llmperf: interrupted before all rates were done\n");
    return {.status = kExitInterrupted};
  }
  for (const points::Row& row : result.rows) {
    if (row[result.columns.size() - 1].kind == points::Cell::Kind::none) continue;
    // By itself it is told as any run.
    set(asked, request::field("rate"), rates[static_cast<std::size_t>(&row - result.rows.data())]);
    const service::Served failed(asked, sources, {.drawn = false, .banded = false});
  }
  result.notes = std::move(notes);
  const points::Row* knee = nullptr;
  const points::Row* highest = nullptr;
  const auto power = [&](const points::Row& row) {
    const double latency = number_of(row, result.columns, "e2e_mean_s");
    return latency > 0 ? number_of(row, result.columns, "output_tokens_per_second") / latency : 0;
  };
  for (const points::Row& row : result.rows) {
    if (power(row) > (knee ? power(*knee) : 0)) knee = &row;
    if (number_of(row, result.columns, "meets") > 0) highest = &row;
  }
  const auto rate = [&](const points::Row& row) { return format_significant(number_of(row, result.columns, "rate")); };
  if (knee) result.notes.push_back(fmt::format("knee at {} requests/s: most tokens for their latency", rate(*knee)));
  if (asked.slo) {
    result.notes.push_back(highest ? "the bounds hold up to " + rate(*highest) + " requests/s"
                                   : "the bounds hold at none of these rates");
  }
  return {report::sweep_report(result)};
}

constexpr const char* kHelp = "llmperf serve --help says what it takes";

Answer serve_answer(const ServeFlags& flags, const Context& context) {
  if (flags.emit) check_emit(context);
  const ReadLaunch read = flags.from.empty() ? ReadLaunch() : read_from(flags.from);
  request::Request asked = flags.from.empty() ? flags.asked() : over(read.request, flags.request);
  const bool highest = flags.rate == "max";
  const std::vector<std::string> rates = highest ? std::vector<std::string>() : rates_of(flags.rate);
  if (highest) asked.rate = 1;
  if (!rates.empty()) set(asked, request::field("rate"), rates.front());
  request::Sources sources;
  if (flags.emit) {
    service::check_complete(asked, kHelp);
    return emitted(asked, sources, *flags.emit, asked.replicas.value_or(1));
  }
  if (rates.size() > 1) {
    if (context.output->wants(report::Format::trace)) {
      throw Error::bad_input("--rate: a curve has no steps to draw", "a single rate");
    }
    return curve_answer(std::move(asked), rates, read.notes);
  }
  service::check_complete(asked, kHelp);
  const InterruptGuard guard;
  if (highest) asked.rate = service::highest_rate(asked, sources, &interruption());
  std::optional<Progress> progress(std::in_place);
  auto shown_at = std::chrono::steady_clock::time_point();
  const service::Served served(
      asked, sources,
      {.drawn = context.output->wants(report::Format::json) || context.output->wants(report::Format::trace),
       .stop = &interruption(),
       .progress =
           [&](std::int64_t done, std::int64_t all) {
             const auto now = std::chrono::steady_clock::now();
             if (done > 0 && now - shown_at < std::chrono::milliseconds(200)) return;
             shown_at = now;
             (*progress)(static_cast<std::size_t>(done), static_cast<std::size_t>(all), "requests");
           },
       .notes = read.notes});
  progress.reset();  // and its line, before anything is said
  if (served.nothing()) {
    fmt::print(stderr, "llmperf: interrupted before a request had ended\n");
    return {.status = kExitInterrupted};
  }
  const result::Serving& result = served.result();
  Answer answer{report::serving_report(result, report::serving_trace(result))};
  answer.report->json = service::with_request(std::move(answer.report->json), asked);
  if (result.interrupted) {
    fmt::print(stderr, "llmperf: interrupted: {}\n", served.progress_text());
    answer.status = kExitInterrupted;
    return answer;
  }
  for (const std::string& missed : report::missed_bounds(result))
    answer.exceeded.push_back("--slo is missed: " + missed);
  return answer;
}

}  // namespace

void describe_serve(Command& command) {
  ServeFlags& flags = answers(command, serve_answer, Traced::yes);
  add_request(command, flags, "s");
  Flag& rate = *command.find("--rate");
  rate.about += "; several, such as 1-32*2, are a curve; max: the highest within --slo";
  rate.set = [&flags](const std::string& text) { flags.rate = text; };
  command.find("--model")->unless = "--request --from";
  command
      .add("--from", flags.from, "COMMAND",
           "the request that an engine's command is: the command itself in quotes, or a file with it, a script or YAML "
           "(a manifest, docker compose, an engine's --config); - is stdin; flags go over it")
      .without("--request");
  add_emit(command, flags.emit);
}

}  // namespace llmperf::cli
