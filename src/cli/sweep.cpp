// `llmperf sweep`: the cross product of lists of values, a row for each point.
#include "service/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "base/number.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/rows.h"
#include "points/grid.h"
#include "points/values.h"
#include "report/document.h"
#include "report/reports.h"
#include "result/study.h"

namespace llmperf::cli {
namespace {

using report::LineFormat;
using request::Request;
using service::Sweep;

// Tables, Markdown, JSON and HTML hold all their rows.
constexpr std::size_t kMostGathered = 20'000;
constexpr Bounds kThreads{1, 1024};
constexpr std::int64_t kMaxShards = 1'000'000;

// The fields that the flags list values of.
std::vector<service::Swept> swept_fields(const std::vector<Given>& given) {
  std::vector<service::Swept> swept;
  for (const request::Field& field : request::fields()) {
    const std::string flag = fmt::format("--{}", field.name);
    const Given* found = find(given, flag);
    if (found == nullptr) continue;
    swept.push_back({&field, {"true"}});
    if (field.is_switch()) continue;
    swept.back().values =
        points::expand_values(flag, found->value, field.separator, static_cast<std::int64_t>(field.kilo));
  }
  return swept;
}

struct SweepFlags {
  Request unused;  // values are lists, which only Context::given holds
  points::RowQuery selection;
  std::string points_file;
  std::string shard;
  std::int64_t threads = std::max(1U, std::thread::hardware_concurrency());
  bool resume = false;
  OutputFlags output;
};

points::Shard shard_value(const std::string& text) {
  if (text.empty()) return {};
  const std::vector<std::string_view> parts = split(text, '/');
  if (parts.size() != 2) throw Error::bad_input("--shard: cannot read " + quote(text), "--shard 3/16");
  const std::int64_t count = count_value("--shard", parts[1], 1, kMaxShards);
  return {count_value("--shard", parts[0], 1, count), count};
}

void check_gathered(std::int64_t rows) {
  if (rows <= static_cast<std::int64_t>(kMostGathered)) return;
  throw Error::bad_input(fmt::format("more than {} rows are too many for a table, Markdown, JSON or HTML",
                                     format_count(static_cast<double>(kMostGathered))),
                         "--format csv or jsonl writes them as they come; --top, --pareto and --where keep fewer");
}

// The first point that a former run has not written; its last row is held against what this sweep makes of the point.
std::int64_t next_point(const Sweep& sweep, const RowOutput& output, points::Shard shard) {
  const std::string& line = output.left().last_line;
  if (line.empty()) return 0;
  const LineFormat format = output.left_format();
  const bool csv = format == LineFormat::csv;
  const std::string& file = output.left().file;
  const auto other = [&] {
    return Error::bad_input(fmt::format("--resume: the rows in {} are not of this sweep", quote(file)),
                            "remove it to start anew");
  };
  const std::string header = csv ? output.lines(format).header() : line;
  points::Row row;
  const auto number = static_cast<int>(output.left().rows);
  const std::vector<std::string> names = report::parse_header(format, header, file, csv ? 1 : number);
  report::parse_line(format, names, line, file, number + (csv ? 1 : 0), row);
  const auto at = std::find(names.begin(), names.end(), "point");
  if (at == names.end()) throw other();
  const double value = row[static_cast<std::size_t>(at - names.begin())].number;
  if (!(value >= 0 && value < static_cast<double>(sweep.grid().points()))) throw other();
  const auto point = static_cast<std::int64_t>(value);
  const std::vector<points::Chunk> chunks = sweep.grid().chunks(shard);
  const bool ours = std::any_of(chunks.begin(), chunks.end(),
                                [&](const points::Chunk& c) { return c.begin <= point && point < c.end; });
  Sweep::Evaluator evaluate(sweep);
  points::Row again;
  evaluate(point, again);
  std::string text;
  output.lines(format).append(text, again);
  if (!ours || text != line) throw other();
  return point + 1;
}

// Says how far it came, and what of it is kept.
int interrupted_status(RowOutput& output, report::SweepResult& result, RowBatch& batch, std::int64_t all) {
  const std::string done =
      fmt::format("interrupted after {} of {} points", format_count(static_cast<double>(result.points)),
                  format_count(static_cast<double>(all)));
  std::string files;
  if (batch.kept.keeps_all()) {
    for (const std::string& file : output.partial_files()) files += (files.empty() ? "; rows are in " : ", ") + file;
    if (!files.empty() && output.resumable()) files += "; --resume goes on";
  }
  result.selection += (result.selection.empty() ? "" : "; ") + done;
  output.interrupted(result, batch);
  fmt::print(stderr, "llmperf: {}{}\n", done, files);
  return kExitInterrupted;
}

int failed_status(std::int64_t failed, std::int64_t points, const std::string& first) {
  if (failed == 0) return kExitDone;
  fmt::print(stderr, "llmperf: error: {} of {} points failed{}\n", format_count(static_cast<double>(failed)),
             format_count(static_cast<double>(points)), first.empty() ? "" : "; the first: " + first);
  return kExitFailed;
}

int sweep_action(const SweepFlags& flags, const Context& context) {
  request::Sources sources;
  const Sweep sweep(swept_fields(context.given), flags.points_file, sources,
                    [](const std::string& message) { return report::single_line(worded(message)); });
  const points::RowChoice choice = points::row_choice(flags.selection, sweep.columns());
  const points::Shard shard = shard_value(flags.shard);
  if (flags.resume && !choice.selection.keeps_all()) {
    throw Error::bad_input("--resume: what --top and --pareto keep is known at the end only", "leave one of them out");
  }
  const bool keeps_every_row = choice.selection.keeps_all() && !choice.where;
  RowOutput output(flags.output, context, sweep.columns(), choice, flags.resume ? Resume::yes : Resume::no);
  if (output.gathers() && keeps_every_row) check_gathered(sweep.grid().points() / shard.count);
  const std::int64_t from = flags.resume ? next_point(sweep, output, shard) : 0;
  if (output.left().damaged > 0) {
    fmt::print(
        stderr,
        "llmperf: {}: line {} is not what was written there: {} rows before it are kept, the rest is computed again\n",
        output.left().file, output.left().damaged, format_count(static_cast<double>(output.left().rows)));
  }
  if (output.left().complete) return failed_status(output.left().failed, output.left().rows, "");

  const std::vector<points::Chunk> chunks = sweep.grid().chunks(shard, from);
  std::int64_t all = 0;
  for (const points::Chunk& chunk : chunks) all += chunk.end - chunk.begin;

  if (choice.selection.keeps_all()) output.keep_unfinished(true);
  const InterruptGuard guard;
  Progress progress;
  report::SweepResult result;
  result.axes = sweep.swept();
  result.columns = sweep.columns();
  result.shown = choice.shown;
  result.selection = choice.text;
  RowBatch batch(choice.selection);
  auto shown_at = std::chrono::steady_clock::now();
  progress(0, static_cast<std::size_t>(all), "points");
  service::run<RowBatch>(
      sweep, chunks, static_cast<std::size_t>(flags.threads), batch,
      [&](const points::Row& row, RowBatch& rows) { output.add(row, rows); },
      [&](RowBatch& rows) {
        output.write(rows);
        if (output.gathers()) check_gathered(static_cast<std::int64_t>(batch.kept.rows().size()));
        const auto now = std::chrono::steady_clock::now();
        if (now - shown_at > std::chrono::milliseconds(200)) {
          shown_at = now;
          output.flush();
          progress(static_cast<std::size_t>(result.points), static_cast<std::size_t>(all), "points");
        }
        return !interrupted();
      },
      result);
  output.flush();
  if (interrupted() && result.points < all) return interrupted_status(output, result, batch, all);
  output.finish(result, batch);
  return failed_status(result.failed + output.left().failed, result.points + output.left().rows, result.first_error);
}

}  // namespace

void describe_sweep(Command& command) {
  SweepFlags& flags = command.runs(sweep_action);
  command.add_fields(flags.unused, "tvrs");
  for (Flag& flag : command.flags) {
    flag.set = [](const std::string&) {};
    const bool named = flag.values.sort == Values::Sort::words || flag.values.sort == Values::Sort::paths;
    if (named) flag.values.sort = Values::Sort::items;
  }
  command.find("--hw")->about += "; all: every built-in one";
  command.add("--points", flags.points_file, "FILE", "CSV of points: a header of flag names, a row of values for each");
  add_selection_flags(command, flags.selection);
  command.add("--shard", flags.shard, "I/N", "part I of N of the points, for one of N jobs: 3/16");
  command.add("--threads", flags.threads, kThreads, "N", "threads [as many as the machine has]").otherwise.clear();
  command.add("--resume", flags.resume, "go on with the rows that an interrupted sweep left");
  add_row_outputs(command, flags.output);
}

}  // namespace llmperf::cli
