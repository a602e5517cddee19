// `llmperf sweep`: the cross product of lists of values, a row for each point.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <thread>

#include "base/number.h"
#include "base/text.h"
#include "cli/command_line.h"
#include "cli/estimate.h"
#include "cli/progress.h"
#include "cli/rows.h"
#include "descriptor/csv.h"
#include "report/document.h"
#include "report/reports.h"
#include "request/names.h"
#include "result/generation.h"
#include "result/row.h"
#include "result/study.h"
#include "result/training.h"
#include "result/video.h"
#include "sweep/runner.h"
#include "sweep/study.h"
#include "sweep/values.h"

namespace llmperf::cli {
namespace {

using report::LineFormat;
using request::Field;
using request::Request;

// Tables, Markdown, JSON and HTML hold all their rows.
constexpr std::size_t kMostGathered = 20'000;
constexpr Bounds kThreads{1, 1024};
constexpr std::int64_t kMaxShards = 1'000'000;
constexpr std::size_t kMaxPointsFileBytes = 256 << 20;

// ---- The points.

// Slowest first. Of a language model these change the scenario and not the setup.
constexpr const char* kScenarioFields[] = {"gen", "prompt", "batch"};

std::string flag_name(const std::string& field) { return "--" + field; }

// The column in which results say what a field chose.
std::string result_column(const std::string& field) {
  constexpr std::pair<const char*, const char*> kColumns[] = {
      {"hw", "hardware"},         {"prompt", "prompt_tokens"}, {"gen", "generate_tokens"},
      {"seq", "sequence_tokens"}, {"cfg", "guidance"},
  };
  for (const auto& [name, column] : kColumns) {
    if (field == name) return column;
  }
  std::string column = field;
  std::replace(column.begin(), column.end(), '-', '_');
  return column;
}

std::vector<std::string> result_columns(request::Workload workload) {
  sweep::Row row;
  switch (workload) {
    case request::Workload::text: result::fill_row<result::Generation>(row, nullptr); break;
    case request::Workload::video: result::fill_row<result::Video>(row, nullptr); break;
    case request::Workload::training: result::fill_row<result::Training>(row, nullptr); break;
    case request::Workload::serve: break;  // no sweep has such points
  }
  std::vector<std::string> columns;
  for (std::size_t i = 0; i < row.size(); ++i) columns.emplace_back(row.name(i));
  return columns;
}

// A count without its suffix, as columns show it; what is none is told at its point, but for a range that lacks a step.
std::string canonical(const Field& field, const std::string& text) {
  if (!std::holds_alternative<request::Count Request::*>(field.member)) return text;
  Request one;
  try {
    set(one, field, text);
  } catch (const Error&) {
    const bool range =
        text.find_first_not_of("0123456789kKM-") == std::string::npos && text.find('-', 1) != std::string::npos;
    if (!range) return text;
    throw Error::bad_input(fmt::format("`{}`: the range {} has no step", field.name, quote(text)),
                           fmt::format("{}+1 takes every number, {}*2 the powers of two", text, text));
  }
  return get(one, field).value_or(text);
}

// The rows of a CSV file of points as one axis.
sweep::Axis read_points(const std::string& path) {
  const std::string text = descriptor::read_text_file(path, kMaxPointsFileBytes);
  descriptor::Problems problems(path);
  descriptor::CsvReader reader(text, problems);
  sweep::Axis axis;
  std::vector<std::string> known;
  for (const Field& field : request::fields()) {
    if (!field.is_switch()) known.push_back(flag_name(std::string(field.name)));
  }
  while (reader.next()) {
    std::vector<std::string> values;
    for (const descriptor::CsvCell& cell : reader.cells()) values.push_back(cell.text);
    if (axis.flags.empty()) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const Field* field = request::find_field(values[i]);
        if (field == nullptr || field->is_switch()) {
          problems.add(reader.line(), reader.cells()[i].column, "unknown flag " + quote(values[i]),
                       name_hint(flag_name(values[i]), known));
        } else if (contains(axis.flags, values[i])) {
          problems.add(reader.line(), reader.cells()[i].column, flag_name(values[i]) + " has two columns");
        }
        axis.flags.push_back(values[i]);
      }
    } else if (values.size() != axis.flags.size()) {
      problems.add(reader.line(), 0, fmt::format("{} cells, and the header has {}", values.size(), axis.flags.size()));
    } else {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const Field* field = request::find_field(axis.flags[i]);
        if (field != nullptr) values[i] = canonical(*field, values[i]);
      }
      axis.values.push_back(std::move(values));
    }
  }
  problems.throw_if_any();
  if (axis.values.empty())
    throw Error::bad_input(path + ": no points", "a header of flag names and a row for each point");
  return axis;
}

std::string error_text(const std::exception& error) {
  const auto* diagnosed = dynamic_cast<const Error*>(&error);
  if (diagnosed == nullptr) return error.what();
  std::string text;
  const Error shown = worded(*diagnosed);
  for (const Diagnostic& d : shown.diagnostics()) {
    text += (text.empty() ? "" : "; ") + d.message + (d.hint.empty() ? "" : " (" + d.hint + ")");
  }
  return report::single_line(text);
}

void put(sweep::Row& row, std::size_t column, const std::string& value) {
  sweep::Cell& cell = row[column];
  if (const std::optional<double> number = parse_double(value)) {
    cell.kind = sweep::Cell::Kind::number;
    cell.number = *number;
  } else {
    cell.kind = value.empty() ? sweep::Cell::Kind::none : sweep::Cell::Kind::text;
    cell.text = value;
  }
}

// The study that the given flags describe. Points come in the order of the fields' table, the last of them changing
// fastest, and at last gen, prompt and batch: of language models only these three change while a setup stays, which is
// what makes a sweep fast.
class PointStudy {
 public:
  // `points_file`: CSV whose header names fields (model, hw, batch …), each row values that go together; may be empty.
  // Reads every model and device once. Throws Error(bad_input).
  PointStudy(const std::vector<Given>& given, const std::string& points_file);

  const sweep::Study& study() const { return *study_; }
  // "point", the swept fields that results do not name, the columns of an estimate, "error".
  const std::vector<std::string>& columns() const { return columns_; }
  // Those that change.
  std::vector<report::SweptFlag> swept() const;

  // Evaluates points of one thread. The study must outlive it.
  class Evaluator {
   public:
    explicit Evaluator(const PointStudy& points) : points_(points), request_(points.same_) {}
    // Fills the row with the study's columns; returns whether there is a result ("does not fit" is one) and not an
    // error.
    bool operator()(std::int64_t point, sweep::Row& row);

   private:
    void set_axis(std::size_t axis);
    void load_setup_once();
    void set_scenario(estimate::Scenario& scenario) const;
    std::string generation(sweep::Row& row);
    std::string anew(sweep::Row& row);

    const PointStudy& points_;
    Request request_;
    std::vector<std::size_t> values_;  // of the point
    std::vector<std::size_t> loaded_;  // of the setup: the outer axes'
    std::string setup_error_;
    std::unique_ptr<request::Resolved> setup_;
    std::optional<result::Generation> generation_;  // the setup's
    estimate::Estimate estimate_;
  };

 private:
  struct AxisColumn {
    std::size_t axis = 0;
    std::size_t flag = 0;    // of the axis
    std::size_t column = 0;  // of the row
    bool extra = false;      // not a column of results
  };
  void read_flags(const std::vector<Given>& given, std::vector<sweep::Axis>& axes);
  void check_sources(const std::vector<sweep::Axis>& axes);
  void name_columns();

  Request same_;  // of all points
  std::optional<sweep::Study> study_;
  std::vector<std::vector<const Field*>> fields_;  // of every axis
  std::size_t inner_ = 0;                          // the last axes: scenarios of one setup
  std::vector<std::vector<std::int64_t>> inner_values_;
  std::vector<std::string> columns_;
  std::vector<AxisColumn> axis_cells_;
  request::Workload workload_ = request::Workload::text;
  mutable request::Sources sources_;
};

PointStudy::PointStudy(const std::vector<Given>& given, const std::string& points_file) {
  std::vector<sweep::Axis> axes;
  if (!points_file.empty()) axes.push_back(read_points(points_file));
  read_flags(given, axes);
  check_sources(axes);
  for (const sweep::Axis& axis : axes) {
    std::vector<const Field*>& of_axis = fields_.emplace_back();
    for (const std::string& name : axis.flags) of_axis.push_back(&request::field(name));
  }
  if (workload_ == request::Workload::text) {
    // The last axes as long as they are scenarios'.
    while (inner_ < axes.size()) {
      const sweep::Axis& axis = axes[axes.size() - 1 - inner_];
      if (axis.flags.size() > 1 || !contains(kScenarioFields, axis.flags.front())) break;
      ++inner_;
    }
  }
  study_.emplace(std::move(axes));
  for (std::size_t i = study_->axes().size() - inner_; i < study_->axes().size(); ++i) {
    std::vector<std::int64_t>& numbers = inner_values_.emplace_back();
    for (const std::vector<std::string>& value : study_->axes()[i].values) numbers.push_back(*parse_int(value.front()));
  }
  name_columns();
}

// Fields with one value are the same for all points; those of scenarios become the last axes whatever they have.
void PointStudy::read_flags(const std::vector<Given>& given, std::vector<sweep::Axis>& axes) {
  std::array<std::optional<sweep::Axis>, std::size(kScenarioFields)> scenario;
  for (const Field& field : request::fields()) {
    const std::string name(field.name);
    const std::string flag = flag_name(name);
    const Given* found = find(given, flag);
    if (found == nullptr) continue;
    if (!axes.empty() && contains(axes.front().flags, name)) {
      throw Error::bad_input(flag + " is in the file of points, too", "leave one of them out");
    }
    if (field.is_switch()) {
      set(same_, field, "true");
      if (name == "training") workload_ = request::Workload::training;
      continue;
    }
    sweep::Axis axis{{name}, {}};
    std::vector<std::string> values =
        sweep::expand_values(flag, found->value, field.separator, static_cast<std::int64_t>(field.kilo));
    if (name == "hw" && values == std::vector<std::string>{"all"}) values = request::device_names();
    for (const std::string& value : values) axis.values.push_back({canonical(field, value)});
    const auto place = std::find(std::begin(kScenarioFields), std::end(kScenarioFields), name);
    if (place != std::end(kScenarioFields)) {
      scenario[static_cast<std::size_t>(place - std::begin(kScenarioFields))] = std::move(axis);
    } else if (axis.values.size() == 1 && name != "model" && name != "hw") {
      set(same_, field, axis.values.front().front());
    } else {
      axes.push_back(std::move(axis));
    }
  }
  for (std::optional<sweep::Axis>& axis : scenario) {
    if (axis) axes.push_back(std::move(*axis));
  }
}

// Misspelt names are told before the work starts, and a sweep has one kind of result.
void PointStudy::check_sources(const std::vector<sweep::Axis>& axes) {
  std::vector<std::string> models;
  std::vector<std::string> devices;
  for (const sweep::Axis& axis : axes) {
    for (std::size_t f = 0; f < axis.flags.size(); ++f) {
      for (const std::vector<std::string>& values : axis.values) {
        if (axis.flags[f] == "model") models.push_back(values[f]);
        if (axis.flags[f] == "hw") devices.push_back(values[f]);
        if (contains(kScenarioFields, axis.flags[f])) {
          Request ignored;
          set(ignored, request::field(axis.flags[f]), values[f]);
        }
      }
    }
  }
  if (models.empty() || devices.empty()) {
    throw Error::bad_input(fmt::format("{} is required", models.empty() ? "--model" : "--hw"),
                           "llmperf sweep --help says what it takes");
  }
  std::vector<Diagnostic> broken;
  const auto attempt = [&](const auto& load) {
    try {
      load();
    } catch (const Error& error) {
      broken.insert(broken.end(), error.diagnostics().begin(), error.diagnostics().end());
    }
  };
  std::size_t videos = 0;
  for (const std::string& model : models) {
    attempt([&] {
      if (sources_.is_video(model)) {
        sources_.video(model);
        ++videos;
      } else {
        sources_.model(model, same_.assume.value_or(""));
      }
    });
  }
  for (const std::string& device : devices) attempt([&] { sources_.device(device); });
  if (!broken.empty()) throw Error(ErrorKind::bad_input, std::move(broken));
  if (videos > 0 && videos < models.size()) {
    throw Error::bad_input("--model: language models and models that generate video have different results",
                           "two sweeps");
  }
  if (videos > 0) workload_ = request::Workload::video;
}

void PointStudy::name_columns() {
  const std::vector<std::string> results = result_columns(workload_);
  columns_ = {"point"};
  std::vector<std::pair<std::string, AxisColumn>> cells;
  for (std::size_t a = 0; a < study_->axes().size(); ++a) {
    const sweep::Axis& axis = study_->axes()[a];
    for (std::size_t f = 0; f < axis.flags.size(); ++f) {
      std::string column = result_column(axis.flags[f]);
      if (workload_ == request::Workload::video && axis.flags[f] == "batch") column = "videos";
      const bool extra = !contains(results, column);
      if (extra) columns_.push_back(column);
      cells.push_back({column, {.axis = a, .flag = f, .extra = extra}});
    }
  }
  columns_.insert(columns_.end(), results.begin(), results.end());
  columns_.emplace_back("error");
  for (auto& [column, cell] : cells) {
    cell.column = static_cast<std::size_t>(std::find(columns_.begin(), columns_.end(), column) - columns_.begin());
    axis_cells_.push_back(cell);
  }
}

std::vector<report::SweptFlag> PointStudy::swept() const {
  std::vector<report::SweptFlag> swept;
  for (const AxisColumn& cell : axis_cells_) {
    const sweep::Axis& axis = study_->axes()[cell.axis];
    report::SweptFlag flag{flag_name(axis.flags[cell.flag]), columns_[cell.column], {}};
    for (const std::vector<std::string>& values : axis.values) {
      if (!contains(flag.values, values[cell.flag])) flag.values.push_back(values[cell.flag]);
    }
    if (flag.values.size() > 1) swept.push_back(std::move(flag));
  }
  return swept;
}

void PointStudy::Evaluator::set_axis(std::size_t axis) {
  const std::vector<std::string>& texts = points_.study().axes()[axis].values[values_[axis]];
  for (std::size_t f = 0; f < texts.size(); ++f) set(request_, *points_.fields_[axis][f], texts[f]);
}

void PointStudy::Evaluator::load_setup_once() {
  const std::size_t outer = values_.size() - points_.inner_;
  const bool known = generation_.has_value() || !setup_error_.empty();
  if (known && loaded_.size() == outer && std::equal(loaded_.begin(), loaded_.end(), values_.begin())) return;
  loaded_.assign(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(outer));
  setup_error_.clear();
  generation_.reset();
  try {
    for (std::size_t i = 0; i < outer; ++i) set_axis(i);
    refuse_beside(request_);
    setup_ = resolve_setup(request_, points_.sources_, request::Unused::taken);
    generation_.emplace(std::get<request::Generation>(setup_->work).estimator->setup());
  } catch (const std::exception& error) {
    setup_error_ = error_text(error);
  }
}

// By the numbers of the inner axes, without reading their texts again.
void PointStudy::Evaluator::set_scenario(estimate::Scenario& scenario) const {
  const std::size_t outer = values_.size() - points_.inner_;
  for (std::size_t i = 0; i < points_.inner_; ++i) {
    const std::int64_t value = points_.inner_values_[i][values_[outer + i]];
    switch (points_.fields_[outer + i].front()->name.front()) {
      case 'b': scenario.batch = value; break;
      case 'p': scenario.prompt = value + scenario.image_tokens(); break;
      default: scenario.generate = value; break;
    }
  }
}

std::string PointStudy::Evaluator::generation(sweep::Row& row) {
  load_setup_once();
  if (!setup_error_.empty()) return setup_error_;
  const auto& text = std::get<request::Generation>(setup_->work);
  try {
    estimate::Scenario scenario = request::scenario_of(request_, setup_->model());
    set_scenario(scenario);
    request::check_scenario(scenario, text.choices);
    text.estimator->run(scenario, estimate_);
  } catch (const std::exception& error) {
    return error_text(error);
  }
  generation_->estimate = &estimate_;
  result::fill_row(row, &*generation_);
  return {};
}

// Videos and training steps are resolved point by point.
std::string PointStudy::Evaluator::anew(sweep::Row& row) {
  try {
    for (std::size_t i = 0; i < values_.size(); ++i) set_axis(i);
    const auto resolved = resolve(request_, points_.sources_, request::Unused::taken);
    if (auto* training = std::get_if<request::Training>(&resolved->work)) {
      estimate::TrainingEstimate result;
      training->estimator->run(training->scenario, training->choices.plan, training->options, result);
      const result::Training filled(training->estimator->setup(), result);
      result::fill_row(row, &filled);
    } else {
      const auto& choices = std::get<request::Video>(resolved->work).choices;
      estimate::VideoEstimator estimator(estimate::make_video_setup(resolved->video, resolved->device, choices));
      const estimate::VideoEstimate result = estimator.run();
      const result::Video filled(estimator.setup(), result);
      result::fill_row(row, &filled);
    }
  } catch (const std::exception& error) {
    return error_text(error);
  }
  return {};
}

bool PointStudy::Evaluator::operator()(std::int64_t point, sweep::Row& row) {
  const std::vector<std::string>& columns = points_.columns_;
  points_.study().at(point, values_);
  row.clear();
  row.add("point", static_cast<double>(point));
  for (const AxisColumn& cell : points_.axis_cells_) {
    if (cell.extra) row.add_none(columns[cell.column]);
  }
  const std::size_t first = row.size();
  const std::string error = points_.workload_ == request::Workload::text ? generation(row) : anew(row);
  if (error.empty()) {
    row.add_none(columns.back());
  } else {
    row.truncate(first);
    for (std::size_t i = first; i + 1 < columns.size(); ++i) row.add_none(columns[i]);
    row.add(columns.back(), error);
  }
  for (const AxisColumn& cell : points_.axis_cells_) {
    if (cell.extra || !error.empty()) {
      put(row, cell.column, points_.study().axes()[cell.axis].values[values_[cell.axis]][cell.flag]);
    }
  }
  return error.empty();
}

// ---- The command.

struct SweepFlags {
  Request unused;  // values are lists, which only Context::given holds
  SelectionFlags selection;
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
  const PointStudy points(context.given, flags.points_file);
  const RowChoice choice = row_choice(flags.selection, points.columns());
  const sweep::Shard shard = shard_value(flags.shard);
  if (flags.resume && !choice.selection.keeps_all()) {
    throw Error::bad_input("--resume: what --top and --pareto keep is known at the end only", "leave one of them out");
  }
  const bool keeps_every_row = choice.selection.keeps_all() && !choice.where;
  RowOutput output(flags.output, context, points.columns(), choice, flags.resume ? Resume::yes : Resume::no);
  if (output.gathers() && keeps_every_row) check_gathered(points.study().points() / shard.count);
  const std::int64_t from = flags.resume ? next_point(points, output, shard) : 0;
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
                if (!(*evaluate)(point, row) && of.failed++ == 0) of.first_error = row[row.size() - 1].text;
                output.add(row, *of.rows);
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

  output.finish(result, batch);
  return failed_status(result.failed + output.left().failed, result.points + output.left().rows, result.first_error);
}

}  // namespace

void add_sweep(Command& root) {
  Command& command = root.add_command(
      "sweep", "estimates of every combination of lists of values, on all cores: --batch 1-128*2 --weights bf16,w4a16");
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
