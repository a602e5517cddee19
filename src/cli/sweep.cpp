// `llmperf sweep`: the cross product of lists of flag values, a row for each point.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/row_output.h"
#include "cli/selection_flags.h"
#include "cli/sweep_points.h"
#include "cli/values.h"
#include "sweep/runner.h"

namespace llmperf::cli {
namespace {

using report::LineFormat;

// Tables, Markdown, JSON and HTML hold all their rows.
constexpr std::size_t kMostGathered = 20'000;
constexpr std::int64_t kMaxShards = 1'000'000;
constexpr std::int64_t kMaxThreads = 1024;

struct Flags {
  PointFlags point;
  SelectionFlags selection;
  std::string points_file;
  std::string shard;
  std::string threads;
  bool resume = false;
  OutputFlags output;
};

sweep::Shard shard_value(const std::string& text) {
  if (text.empty()) return {};
  const std::vector<std::string_view> parts = split(text, '/');
  if (parts.size() != 2) throw Error::bad_input("--shard: cannot read " + quote(text), "--shard 3/16");
  const std::int64_t count = int_value("--shard", parts[1], 1, kMaxShards);
  return {int_value("--shard", parts[0], 1, count), count};
}

std::size_t thread_count(const std::string& text) {
  if (text.empty()) return std::max(1U, std::thread::hardware_concurrency());
  return static_cast<std::size_t>(int_value("--threads", text, 1, kMaxThreads));
}

// What a chunk of points became.
struct ChunkResult {
  std::string csv;
  std::string jsonl;
  std::vector<sweep::Row> rows;  // where rows are kept or gathered
  std::int64_t points = 0;
  std::int64_t failed = 0;
  std::string first_error;
};

// Computes chunks; one for each thread.
class ChunkWorker {
 public:
  ChunkWorker(const PointStudy& points, const RowChoice& choice, const RowOutput& output,
              const std::vector<sweep::Chunk>& chunks)
      : evaluate_(points), choice_(&choice), output_(&output), chunks_(&chunks) {}

  ChunkResult operator()(std::size_t piece) {
    const sweep::Chunk& chunk = (*chunks_)[piece];
    ChunkResult result;
    sweep::Selection kept = choice_->selection;
    const bool all = kept.keeps_all();
    const bool csv = all && output_->streams(LineFormat::csv);
    const bool jsonl = all && output_->streams(LineFormat::jsonl);
    for (std::int64_t point = chunk.begin; point < chunk.end; ++point) {
      ++result.points;
      if (!evaluate_(point, row_)) {
        if (result.failed++ == 0) result.first_error = row_[row_.size() - 1].text;
      }
      if (choice_->where && !(*choice_->where)(row_)) continue;
      if (csv) output_->lines(LineFormat::csv).append(result.csv, row_);
      if (jsonl) output_->lines(LineFormat::jsonl).append(result.jsonl, row_);
      if (!all || output_->gathers()) kept.offer(row_);
    }
    result.rows = kept.take();
    return result;
  }

 private:
  PointStudy::Evaluator evaluate_;
  const RowChoice* choice_;
  const RowOutput* output_;
  const std::vector<sweep::Chunk>* chunks_;
  sweep::Row row_;
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
  const std::string& file = output.left().file;
  const auto other = [&] {
    return Error::bad_input(fmt::format("--resume: the rows in {} are not of this sweep", quote(file)),
                            "remove it to start anew");
  };
  const std::string header = format == LineFormat::csv ? output.lines(format).header() : line;
  sweep::Row row;
  const auto number = static_cast<int>(output.left().rows);
  const bool csv = format == LineFormat::csv;
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
int interrupted_status(RowOutput& output, report::SweepResult& result, sweep::Selection& kept, std::int64_t all) {
  const std::string done =
      fmt::format("interrupted after {} of {} points", format_count(static_cast<double>(result.points)),
                  format_count(static_cast<double>(all)));
  std::string files;
  if (kept.keeps_all()) {
    for (const std::string& file : output.partial_files()) files += (files.empty() ? "; rows are in " : ", ") + file;
    if (!files.empty() && output.resumable()) files += "; --resume goes on";
  }
  result.rows = kept.take();
  result.selection += (result.selection.empty() ? "" : "; ") + done;
  output.interrupted(result);
  fmt::print(stderr, "llmperf: {}{}\n", done, files);
  return kExitInterrupted;
}

int failed_status(std::int64_t failed, std::int64_t points, const std::string& first) {
  if (failed == 0) return kExitDone;
  fmt::print(stderr, "llmperf: error: {} of {} points failed{}\n", format_count(static_cast<double>(failed)),
             format_count(static_cast<double>(points)), first.empty() ? "" : "; the first: " + first);
  return kExitFailed;
}

int sweep_action(const Flags& flags, const CLI::App& command) {
  const PointStudy points(command, flags.points_file);
  const RowChoice choice = row_choice(flags.selection, points.columns());
  const sweep::Shard shard = shard_value(flags.shard);
  const std::size_t threads = thread_count(flags.threads);
  if (flags.resume && !choice.selection.keeps_all()) {
    throw Error::bad_input("--resume: what --top and --pareto keep is known at the end only", "leave one of them out");
  }
  const bool keeps_every_row = choice.selection.keeps_all() && !choice.where;
  RowOutput output(flags.output, points.columns(), choice.shown, flags.resume ? Resume::yes : Resume::no);
  if (output.gathers() && keeps_every_row) check_gathered(points.study().points() / shard.count);
  const std::int64_t from = flags.resume ? next_point(points, output, shard) : 0;
  if (output.left().complete) return failed_status(output.left().failed, output.left().rows, "");

  const std::vector<sweep::Chunk> chunks = points.study().chunks(shard, from);
  std::int64_t all = 0;
  for (const sweep::Chunk& chunk : chunks) all += chunk.end - chunk.begin;

  if (choice.selection.keeps_all()) output.keep_unfinished(true);
  const InterruptGuard guard;
  Progress progress;
  report::SweepResult result{.axes = points.swept(),
                             .columns = points.columns(),
                             .shown = choice.shown,
                             .selection = choice.text,
                             .first_error = {},
                             .rows = {}};
  sweep::Selection kept = choice.selection;
  auto shown_at = std::chrono::steady_clock::now();
  progress(0, static_cast<std::size_t>(all), "points");
  sweep::run_in_order<ChunkResult>(
      chunks.size(), std::min(threads, std::max<std::size_t>(1, chunks.size())),
      [&]() -> sweep::Worker<ChunkResult> {
        return [worker = std::make_shared<ChunkWorker>(points, choice, output, chunks)](std::size_t piece) {
          return (*worker)(piece);
        };
      },
      [&](std::size_t, ChunkResult& chunk) {
        output.write(chunk.csv, chunk.jsonl);
        for (sweep::Row& row : chunk.rows) kept.offer(std::move(row));
        if (output.gathers()) check_gathered(static_cast<std::int64_t>(kept.rows().size()));
        result.points += chunk.points;
        if (result.failed == 0) result.first_error = chunk.first_error;
        result.failed += chunk.failed;
        const auto now = std::chrono::steady_clock::now();
        if (now - shown_at > std::chrono::milliseconds(200)) {
          shown_at = now;
          output.flush();
          progress(static_cast<std::size_t>(result.points), static_cast<std::size_t>(all), "points");
        }
        return !interrupted();
      });
  output.flush();
  if (interrupted() && result.points < all) return interrupted_status(output, result, kept, all);

  result.rows = kept.take();
  if (!choice.selection.keeps_all()) {
    std::string csv;
    std::string jsonl;
    for (const sweep::Row& row : result.rows) {
      output.lines(LineFormat::csv).append(csv, row);
      output.lines(LineFormat::jsonl).append(jsonl, row);
    }
    output.write(csv, jsonl);
  }
  output.finish(result);
  return failed_status(result.failed + output.left().failed, result.points + output.left().rows, result.first_error);
}

}  // namespace

void add_sweep(CLI::App& root, Action& action) {
  CLI::App* command = root.add_subcommand(
      "sweep", "estimates of every combination of lists of values, on all cores: --batch 1-128*2 --weights bf16,w4a16");
  auto flags = std::make_shared<Flags>();
  add_point_flags(*command, flags->point);
  command->add_option("--points", flags->points_file, "CSV of points: a header of flag names, a row of values for each")
      ->type_name("FILE");
  add_selection_flags(*command, flags->selection);
  command->add_option("--shard", flags->shard, "part I of N of the points, for one of N jobs: 3/16")->type_name("I/N");
  command->add_option("--threads", flags->threads, "threads [as many as the machine has]")->type_name("N");
  command->add_flag("--resume", flags->resume, "go on with the rows that an interrupted sweep left");
  add_output_flags(*command, flags->output);
  describe_row_outputs(*command, flags->output);
  command->callback(
      [flags, command, &action] { action = [flags, command] { return sweep_action(*flags, *command); }; });
}

}  // namespace llmperf::cli
