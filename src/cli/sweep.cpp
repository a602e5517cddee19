// `llmperf sweep`: the cross product of lists of values, a row for each point.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <thread>

#include "answer/points.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/rows.h"
#include "report/document.h"
#include "report/reports.h"
#include "result/study.h"
#include "sweep/runner.h"
#include "sweep/study.h"
#include "sweep/values.h"

namespace llmperf::cli {
namespace {

using answer::PointStudy;
using report::LineFormat;
using request::Request;

// Tables, Markdown, JSON and HTML hold all their rows.
constexpr std::size_t kMostGathered = 20'000;
constexpr Bounds kThreads{1, 1024};
constexpr std::int64_t kMaxShards = 1'000'000;

// The fields that the flags list values of.
std::vector<answer::Swept> swept_fields(const std::vector<Given>& given) {
  std::vector<answer::Swept> swept;
  for (const request::Field& field : request::fields()) {
    const std::string flag = fmt::format("--{}", field.name);
    const Given* found = find(given, flag);
    if (found == nullptr) continue;
    swept.push_back({&field, {"true"}});
    if (field.is_switch()) continue;
    swept.back().values =
        sweep::expand_values(flag, found->value, field.separator, static_cast<std::int64_t>(field.kilo));
  }
  return swept;
}

struct SweepFlags {
  Request unused;  // values are lists, which only Context::given holds
  sweep::RowQuery selection;
  std::string points_file;
  std::string shard;
  std::int64_t threads = std::max(1U, std::thread::hardware_concurrency());
  bool resume = false;
  OutputFlags output;
};

sweep::Shard shard_value(const std::string& text) {
  if (text.empty()) return {};
  const std::vector<std::string_view> parts = split(text, '/');
  if (parts.size() != 2) throw Error::bad_input("--shard: cannot read " + quote(text), "--shard 3/16");
  const std::int64_t count = count_value("--shard", parts[1], 1, kMaxShards);
  return {count_value("--shard", parts[0], 1, count), count};
}

// What a chunk of points became.
struct ChunkResult {
  std::optional<RowBatch> rows;
  std::int64_t points = 0;
  std::int64_t failed = 0;
  std::string first_error;
  std::map<std::string, std::int64_t> unused = {};  // what fields that say nothing are told, at how many points
};

void check_gathered(std::int64_t rows) {
  if (rows <= static_cast<std::int64_t>(kMostGathered)) return;
  throw Error::bad_input(fmt::format("more than {} rows are too many for a table, Markdown, JSON or HTML",
                                     format_count(static_cast<double>(kMostGathered))),
                         "--format csv or jsonl writes them as they come; --top, --pareto and --where keep fewer");
}

// The first point that a former run has not written; its last row is held against what this sweep makes of the point.
std::int64_t next_point(const PointStudy& points, const RowOutput& output, sweep::Shard shard) {
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
  sweep::Row row;
  const auto number = static_cast<int>(output.left().rows);
  const std::vector<std::string> names = report::parse_header(format, header, file, csv ? 1 : number);
  report::parse_line(format, names, line, file, number + (csv ? 1 : 0), row);
  const auto at = std::find(names.begin(), names.end(), "point");
  if (at == names.end()) throw other();
  const double value = row[static_cast<std::size_t>(at - names.begin())].number;
  if (!(value >= 0 && value < static_cast<double>(points.study().points()))) throw other();
  const auto point = static_cast<std::int64_t>(value);
  const std::vector<sweep::Chunk> chunks = points.study().chunks(shard);
  const bool ours = std::any_of(chunks.begin(), chunks.end(),
                                [&](const sweep::Chunk& c) { return c.begin <= point && point < c.end; });
  PointStudy::Evaluator evaluate(points);
  sweep::Row again;
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
  const PointStudy points(swept_fields(context.given), flags.points_file, sources,
                          [](const std::string& message) { return report::single_line(worded(message)); });
  const sweep::RowChoice choice = sweep::row_choice(flags.selection, points.columns());
  const sweep::Shard shard = shard_value(flags.shard);
  if (flags.resume && !choice.selection.keeps_all()) {
    throw Error::bad_input("--resume: what --top and --pareto keep is known at the end only", "leave one of them out");
  }
  const bool keeps_every_row = choice.selection.keeps_all() && !choice.where;
  RowOutput output(flags.output, context, points.columns(), choice, flags.resume ? Resume::yes : Resume::no);
  if (output.gathers() && keeps_every_row) check_gathered(points.study().points() / shard.count);
  const std::int64_t from = flags.resume ? next_point(points, output, shard) : 0;
  if (output.left().damaged > 0) {
    fmt::print(
        stderr,
        "llmperf: {}: line {} is not what was written there: {} rows before it are kept, the rest is computed again\n",
        output.left().file, output.left().damaged, format_count(static_cast<double>(output.left().rows)));
  }
  if (output.left().complete) return failed_status(output.left().failed, output.left().rows, "");

  const std::vector<sweep::Chunk> chunks = points.study().chunks(shard, from);
  std::int64_t all = 0;
  for (const sweep::Chunk& chunk : chunks) all += chunk.end - chunk.begin;

  if (choice.selection.keeps_all()) output.keep_unfinished(true);
  const InterruptGuard guard;
  Progress progress;
  report::SweepResult result;
  result.axes = points.swept();
  result.columns = points.columns();
  result.shown = choice.shown;
  result.selection = choice.text;
  RowBatch batch(choice.selection);
  std::map<std::string, std::int64_t> unused;
  auto shown_at = std::chrono::steady_clock::now();
  progress(0, static_cast<std::size_t>(all), "points");
  sweep::run_in_order<ChunkResult>(
      chunks.size(), std::clamp<std::size_t>(chunks.size(), 1, static_cast<std::size_t>(flags.threads)),
      // Of one thread.
      [&]() -> sweep::Worker<ChunkResult> {
        return
            [&, evaluate = std::make_shared<PointStudy::Evaluator>(points), row = sweep::Row()](std::size_t i) mutable {
              ChunkResult of{
                  .rows = RowBatch(choice.selection), .points = chunks[i].end - chunks[i].begin, .first_error = {}};
              for (std::int64_t point = chunks[i].begin; point < chunks[i].end; ++point) {
                const bool done = (*evaluate)(point, row);
                if (!done && of.failed++ == 0) of.first_error = row[row.size() - 1].text;
                output.add(row, *of.rows);
                if (!done) continue;
                for (const std::string& text : evaluate->unused()) ++of.unused[text];
              }
              return of;
            };
      },
      [&](std::size_t, ChunkResult& chunk) {
        output.write(*chunk.rows);
        batch.kept.add_beaten(chunk.rows->kept);
        for (sweep::Row& row : chunk.rows->kept.take()) batch.kept.offer(std::move(row));
        if (output.gathers()) check_gathered(static_cast<std::int64_t>(batch.kept.rows().size()));
        result.points += chunk.points;
        if (result.failed == 0) result.first_error = chunk.first_error;
        result.failed += chunk.failed;
        for (const auto& [text, count] : chunk.unused) unused[text] += count;
        const auto now = std::chrono::steady_clock::now();
        if (now - shown_at > std::chrono::milliseconds(200)) {
          shown_at = now;
          output.flush();
          progress(static_cast<std::size_t>(result.points), static_cast<std::size_t>(all), "points");
        }
        return !interrupted();
      });
  output.flush();
  if (interrupted() && result.points < all) return interrupted_status(output, result, batch, all);

  for (const auto& [text, count] : unused) {
    result.notes.push_back(fmt::format("at {} of {} points a field says nothing: {}", count, result.points, text));
  }
  output.finish(result, batch);
  return failed_status(result.failed + output.left().failed, result.points + output.left().rows, result.first_error);
}

}  // namespace

void describe_sweep(Command& command) {
  SweepFlags& flags = command.runs(sweep_action);
  command.add_fields(flags.unused, "tvr");
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
