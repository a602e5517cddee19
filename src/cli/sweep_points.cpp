#include "cli/sweep_points.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iterator>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "calibrate/csv_reader.h"
#include "cli/values.h"
#include "cli/video.h"
#include "descriptor/node.h"
#include "report/result_row.h"
#include "report/single_line.h"
#include "sweep/values.h"

namespace llmperf::cli {
namespace {

// Slowest first. Of a language model these change the scenario and not the setup.
constexpr const char* kScenarioFlags[] = {"--gen", "--prompt", "--batch"};
// Their values have commas themselves: lists of them are separated by semicolons.
constexpr const char* kCommaFlags[] = {"--options", "--stages", "--tensor-split"};

constexpr std::size_t kMaxPointsFileBytes = 256 << 20;

template <class Names>
bool is_one_of(const std::string& name, const Names& names) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// A command of its own, with the flags of one point.
struct PointCommand {
  CLI::App command;
  PointFlags flags;

  PointCommand() { add_point_flags(command, flags); }
  void set(const std::string& flag, const std::string& value) {
    CLI::Option& option = *command.get_option(flag);
    option.clear();
    option.add_result(value);
    option.run_callback();
  }
};

// The column in which results say what a flag chose.
std::string result_column(const std::string& flag) {
  constexpr std::pair<const char*, const char*> kColumns[] = {
      {"--hw", "hardware"},         {"--prompt", "prompt_tokens"}, {"--gen", "generate_tokens"},
      {"--seq", "sequence_tokens"}, {"--cfg", "guidance"},
  };
  for (const auto& [name, column] : kColumns) {
    if (flag == name) return column;
  }
  std::string column = flag.substr(2);
  std::replace(column.begin(), column.end(), '-', '_');
  return column;
}

std::vector<std::string> result_columns(PointKind kind) {
  sweep::Row row;
  const sweep::RowFiller names(row, true);
  if (kind == PointKind::generation) report::fill_row(names, nullptr, nullptr, nullptr);
  if (kind == PointKind::video) {
    report::fill_row(names, static_cast<const estimate::VideoEstimator*>(nullptr), nullptr);
  }
  if (kind == PointKind::training) {
    report::fill_row(names, static_cast<const estimate::TrainingEstimator*>(nullptr), nullptr);
  }
  std::vector<std::string> columns;
  for (std::size_t i = 0; i < row.size(); ++i) columns.emplace_back(row.name(i));
  return columns;
}

enum class Switches : bool { without, with };
std::vector<std::string> point_flag_names(Switches switches) {
  const PointCommand point;
  std::vector<std::string> names;
  for (const CLI::Option* option : point.command.get_options()) {
    if (switches == Switches::without && option->get_items_expected_max() == 0) continue;
    if (option->get_lnames().front() != "help") names.push_back("--" + option->get_lnames().front());
  }
  return names;
}

// The rows of a file of points as one axis.
sweep::Axis read_points(const std::string& path) {
  const std::string text = descriptor::read_text_file(path, kMaxPointsFileBytes);
  descriptor::Problems problems(path);
  calibrate::CsvReader reader(text, problems);
  sweep::Axis axis;
  std::vector<std::string> known = point_flag_names(Switches::without);
  while (reader.next()) {
    std::vector<std::string> values;
    for (const calibrate::CsvCell& cell : reader.cells()) values.push_back(cell.text);
    if (axis.flags.empty()) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::string flag = "--" + values[i];
        if (!is_one_of(flag, known)) {
          problems.add(reader.line(), reader.cells()[i].column, "unknown flag " + quote(values[i]),
                       name_hint(flag, known));
        } else if (is_one_of(flag, axis.flags)) {
          problems.add(reader.line(), reader.cells()[i].column, flag + " has two columns");
        }
        axis.flags.push_back(flag);
      }
    } else if (values.size() != axis.flags.size()) {
      problems.add(reader.line(), 0, fmt::format("{} cells, and the header has {}", values.size(), axis.flags.size()));
    } else {
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
  for (const Diagnostic& d : diagnosed->diagnostics()) {
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

}  // namespace

void add_point_flags(CLI::App& command, PointFlags& flags) {
  add_request_flags(command, flags.request);
  add_training_flags(command, flags.training);
  for (const char* flag : {"--model", "--hw"}) command.get_option(flag)->required(false);  // a file may say them
}

PointStudy::PointStudy(const CLI::App& command, const std::string& points_file) {
  std::vector<sweep::Axis> axes;
  if (!points_file.empty()) axes.push_back(read_points(points_file));
  read_flags(command, axes);
  check_sources(axes);
  if (kind_ == PointKind::generation) {
    // The last axes as long as they are scenarios'.
    while (inner_ < axes.size()) {
      const sweep::Axis& axis = axes[axes.size() - 1 - inner_];
      if (axis.flags.size() > 1 || !is_one_of(axis.flags.front(), kScenarioFlags)) break;
      ++inner_;
    }
  }
  study_.emplace(std::move(axes));
  name_columns();
}

// Flags with one value are the same for all points; scenario flags become the last axes whatever they have.
void PointStudy::read_flags(const CLI::App& command, std::vector<sweep::Axis>& axes) {
  std::array<std::optional<sweep::Axis>, std::size(kScenarioFlags)> scenario;
  for (const std::string& flag : point_flag_names(Switches::with)) {
    const CLI::Option* option = command.get_option_no_throw(flag);
    if (option == nullptr || option->count() == 0) continue;
    if (!axes.empty() && is_one_of(flag, axes.front().flags)) {
      throw Error::bad_input(flag + " is in the file of points, too", "leave one of them out");
    }
    if (option->get_items_expected_max() == 0) {
      same_.push_back({flag, ""});
      if (flag == "--training") kind_ = PointKind::training;
      continue;
    }
    sweep::Axis axis{{flag}, {}};
    const char separator = is_one_of(flag, kCommaFlags) ? ';' : ',';
    for (std::string& value : sweep::expand_values(flag, option->results().front(), separator)) {
      axis.values.push_back({std::move(value)});
    }
    const auto place = std::find(std::begin(kScenarioFlags), std::end(kScenarioFlags), flag);
    if (place != std::end(kScenarioFlags)) {
      scenario[static_cast<std::size_t>(place - std::begin(kScenarioFlags))] = std::move(axis);
    } else if (axis.values.size() == 1 && flag != "--model" && flag != "--hw") {
      same_.push_back({flag, axis.values.front().front()});
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
        if (axis.flags[f] == "--model") models.push_back(values[f]);
        if (axis.flags[f] == "--hw") devices.push_back(values[f]);
        if (is_one_of(axis.flags[f], kScenarioFlags)) int_value(axis.flags[f], values[f], 1, estimate::kMaxTokens);
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
        sources_.model(model);
      }
    });
  }
  for (const std::string& device : devices) attempt([&] { sources_.device(device); });
  if (!broken.empty()) throw Error(ErrorKind::bad_input, std::move(broken));
  if (videos > 0 && videos < models.size()) {
    throw Error::bad_input("--model: language models and models that generate video have different results",
                           "two sweeps");
  }
  if (videos > 0) kind_ = PointKind::video;
}

void PointStudy::name_columns() {
  const std::vector<std::string> results = result_columns(kind_);
  columns_ = {"point"};
  std::vector<std::pair<std::string, AxisColumn>> cells;
  for (std::size_t a = 0; a < study_->axes().size(); ++a) {
    const sweep::Axis& axis = study_->axes()[a];
    for (std::size_t f = 0; f < axis.flags.size(); ++f) {
      std::string column = result_column(axis.flags[f]);
      if (kind_ == PointKind::video && axis.flags[f] == "--batch") column = "videos";
      const bool extra = !is_one_of(column, results);
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
    report::SweptFlag flag{axis.flags[cell.flag], columns_[cell.column], {}};
    for (const std::vector<std::string>& values : axis.values) {
      if (!is_one_of(values[cell.flag], flag.values)) flag.values.push_back(values[cell.flag]);
    }
    if (flag.values.size() > 1) swept.push_back(std::move(flag));
  }
  return swept;
}

// What the last point left: its values, and the setup it made.
struct PointStudy::Evaluator::State {
  const PointStudy& points;
  PointCommand point;
  std::vector<std::size_t> values;  // of the point
  std::vector<std::size_t> loaded;  // of the setup: the outer axes'
  std::string setup_error;
  std::unique_ptr<Request> request;
  estimate::Choices choices;
  std::optional<report::SetupFacts> facts;
  estimate::Estimate estimate;

  explicit State(const PointStudy& p) : points(p) {
    for (const Given& given : points.same_) point.set(given.flag, given.value.empty() ? "true" : given.value);
  }

  void set_axis(std::size_t axis) {
    const sweep::Axis& a = points.study().axes()[axis];
    for (std::size_t f = 0; f < a.flags.size(); ++f) point.set(a.flags[f], a.values[values[axis]][f]);
  }

  // A number of a scenario's axis, or of the flags when it has none.
  std::int64_t scenario_value(const std::string& flag, const std::string& otherwise) {
    for (std::size_t i = points.study().axes().size() - points.inner_; i < points.study().axes().size(); ++i) {
      const sweep::Axis& axis = points.study().axes()[i];
      if (axis.flags.front() == flag) return *parse_int(axis.values[values[i]].front());
    }
    return int_value(flag, otherwise, 1, estimate::kMaxTokens);
  }

  void load_setup_once() {
    const std::size_t outer = values.size() - points.inner_;
    const bool same =
        loaded.size() == outer && facts_or_error() && std::equal(loaded.begin(), loaded.end(), values.begin());
    if (same) return;
    loaded.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(outer));
    setup_error.clear();
    facts.reset();
    for (std::size_t i = 0; i < outer; ++i) set_axis(i);
    try {
      request = load_setup(point.flags.request, points.sources_, choices);
      facts.emplace(*request->estimator);
    } catch (const std::exception& error) {
      setup_error = error_text(error);
    }
  }
  bool facts_or_error() const { return facts.has_value() || !setup_error.empty(); }

  std::string generation(const sweep::RowFiller& fill) {
    load_setup_once();
    if (!setup_error.empty()) return setup_error;
    try {
      estimate::Scenario scenario{.batch = scenario_value("--batch", point.flags.request.batch),
                                  .prompt = scenario_value("--prompt", point.flags.request.prompt),
                                  .generate = scenario_value("--gen", point.flags.request.generate)};
      if (scenario.batch > estimate::kMaxBatch)
        int_value("--batch", std::to_string(scenario.batch), 1, estimate::kMaxBatch);
      check_scenario(scenario, choices);
      request->estimator->run(scenario, estimate);
    } catch (const std::exception& error) {
      return error_text(error);
    }
    report::fill_row(fill, &*facts, request->estimator.get(), &estimate);
    return {};
  }

  // Videos and training steps are loaded point by point.
  template <class Run>
  std::string loaded_anew(const Run& run) {
    for (std::size_t i = 0; i < values.size(); ++i) set_axis(i);
    try {
      run();
    } catch (const std::exception& error) {
      return error_text(error);
    }
    return {};
  }
  std::string video(const sweep::RowFiller& fill) {
    return loaded_anew([&] {
      const auto loaded_request = load_video_request(point.flags.request, points.sources_);
      estimate::VideoEstimator estimator(
          estimate::make_video_setup(loaded_request->model, loaded_request->device, loaded_request->choices));
      const estimate::VideoEstimate result = estimator.run();
      report::fill_row(fill, &estimator, &result);
    });
  }
  std::string training(const sweep::RowFiller& fill) {
    return loaded_anew([&] {
      const auto loaded_request = load_training_request(point.flags.request, point.flags.training, points.sources_);
      estimate::TrainingEstimate result;
      loaded_request->run(result);
      report::fill_row(fill, loaded_request->estimator.get(), &result);
    });
  }
};

PointStudy::Evaluator::Evaluator(const PointStudy& points) : state_(std::make_unique<State>(points)) {}
PointStudy::Evaluator::~Evaluator() = default;
PointStudy::Evaluator::Evaluator(Evaluator&&) noexcept = default;

bool PointStudy::Evaluator::operator()(std::int64_t point, sweep::Row& row) {
  State& s = *state_;
  const PointStudy& points = s.points;
  points.study().at(point, s.values);
  row.clear();
  row.add("point", static_cast<double>(point));
  for (const AxisColumn& cell : points.axis_cells_) {
    if (cell.extra) row.add_none(points.columns_[cell.column]);
  }
  const std::size_t first = row.size();
  const sweep::RowFiller fill(row);
  const std::string error = points.kind_ == PointKind::generation ? s.generation(fill)
                            : points.kind_ == PointKind::video    ? s.video(fill)
                                                                  : s.training(fill);
  if (!error.empty()) {
    row.truncate(first);
    for (std::size_t i = first; i + 1 < points.columns_.size(); ++i) row.add_none(points.columns_[i]);
  }
  if (error.empty()) {
    row.add_none(points.columns_.back());
  } else {
    row.add(points.columns_.back(), error);
  }
  for (const AxisColumn& cell : points.axis_cells_) {
    if (cell.extra || !error.empty()) {
      put(row, cell.column, points.study().axes()[cell.axis].values[s.values[cell.axis]][cell.flag]);
    }
  }
  return error.empty();
}

}  // namespace llmperf::cli
