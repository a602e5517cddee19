#include "service/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/error.h"
#include "base/list.h"
#include "base/number.h"
#include "base/text.h"
#include "descriptor/csv.h"
#include "request/names.h"
#include "result/generation.h"
#include "result/row.h"
#include "service/estimate.h"
#include "service/serve.h"

namespace llmperf::service {
namespace {

using request::Field;
using request::Request;

constexpr std::size_t kMaxPointsFileBytes = 256 << 20;

// Slowest first. Of a language model these change the scenario and not the setup.
constexpr std::string_view kScenarioFields[] = {"gen", "prompt", "batch"};

constexpr std::string_view kTraffic[] = {"rate", "concurrency", "trace"};

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

std::vector<result::Column> result_columns(request::Workload workload) {
  switch (workload) {
    case request::Workload::video: return result::columns(result::type_of<result::Video>());
    case request::Workload::training: return result::columns(result::type_of<result::Training>());
    case request::Workload::serve: return result::columns(result::type_of<result::ServingRow>());
    default: return result::columns(result::type_of<result::Generation>());
  }
}

// What the cells of an axis' values are.
result::Kind kind_of(const points::Axis& axis, std::size_t flag) {
  const bool numbers = std::all_of(axis.values.begin(), axis.values.end(),
                                   [&](const auto& value) { return parse_double(value[flag]).has_value(); });
  return numbers ? result::Kind::number : result::Kind::text;
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
points::Axis read_points(const std::string& path) {
  const std::string text = descriptor::read_text_file(path, kMaxPointsFileBytes);
  descriptor::Problems problems(path);
  descriptor::CsvReader reader(text, problems);
  points::Axis axis;
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

void put(points::Row& row, std::size_t column, const std::string& value) {
  points::Cell& cell = row[column];
  if (const std::optional<double> number = parse_double(value)) {
    cell.kind = points::Cell::Kind::number;
    cell.number = *number;
  } else {
    cell.kind = value.empty() ? points::Cell::Kind::none : points::Cell::Kind::text;
    cell.text = value;
  }
}

}  // namespace

Sweep::Sweep(const std::vector<Swept>& fields, const std::string& points_file, request::Sources& sources,
             Wording wording)
    : sources_(sources), wording_(std::move(wording)) {
  std::vector<points::Axis> axes;
  if (!points_file.empty()) axes.push_back(read_points(points_file));
  read_fields(fields, axes);
  check_sources(axes);
  for (const points::Axis& axis : axes) {
    std::vector<const Field*>& of_axis = fields_.emplace_back();
    for (const std::string& name : axis.flags) of_axis.push_back(&request::field(name));
  }
  if (workload_ == request::Workload::text) {
    // The last axes as long as they are scenarios'.
    while (inner_ < axes.size()) {
      const points::Axis& axis = axes[axes.size() - 1 - inner_];
      if (axis.flags.size() > 1 || !contains(kScenarioFields, axis.flags.front())) break;
      ++inner_;
    }
  }
  grid_.emplace(std::move(axes));
  for (std::size_t i = grid_->axes().size() - inner_; i < grid_->axes().size(); ++i) {
    std::vector<std::int64_t>& numbers = inner_values_.emplace_back();
    for (const std::vector<std::string>& value : grid_->axes()[i].values) numbers.push_back(*parse_int(value.front()));
  }
  name_columns();
}

// Fields with one value are the same for all points; those of scenarios become the last axes whatever they have.
void Sweep::read_fields(const std::vector<Swept>& fields, std::vector<points::Axis>& axes) {
  std::array<std::optional<points::Axis>, std::size(kScenarioFields)> scenario;
  for (const Field& field : request::fields()) {
    const auto found = std::find_if(fields.begin(), fields.end(), [&](const Swept& f) { return f.field == &field; });
    if (found == fields.end()) continue;
    const std::string name(field.name);
    // What comes over time is served.
    if (contains(kTraffic, name)) workload_ = request::Workload::serve;
    if (!axes.empty() && contains(axes.front().flags, name)) {
      throw Error::bad_input(fmt::format("`{}` is in the file of points, too", name), "leave one of them out");
    }
    if (field.is_switch()) {
      set(same_, field, found->values.front());
      if (name == "training" && same_.training) workload_ = request::Workload::training;
      continue;
    }
    points::Axis axis{{name}, {}};
    std::vector<std::string> values = found->values;
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
  for (std::optional<points::Axis>& axis : scenario) {
    if (axis) axes.push_back(std::move(*axis));
  }
}

// Misspelt names are told before the work starts, and a sweep has one kind of result.
void Sweep::check_sources(const std::vector<points::Axis>& axes) {
  std::vector<std::string> models;
  std::vector<std::string> devices;
  for (const points::Axis& axis : axes) {
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
    throw Error::bad_input(fmt::format("`{}` is required", models.empty() ? "model" : "hw"), "a name or a file");
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
  for (const std::string& device : devices) {
    attempt([&] {
      for (const std::string& name : request::listed_devices(device)) sources_.device(name);
    });
  }
  if (!broken.empty()) throw Error(ErrorKind::bad_input, std::move(broken));
  if (videos > 0 && videos < models.size()) {
    throw Error::bad_input("`model`: language models and models that generate video have different results",
                           "two sweeps");
  }
  if (videos > 0) workload_ = request::Workload::video;
}

void Sweep::name_columns() {
  const std::vector<result::Column> results = result_columns(workload_);
  const auto is_result = [&](const std::string& name) {
    return std::any_of(results.begin(), results.end(), [&](const result::Column& c) { return c.name == name; });
  };
  const auto add = [&](std::string_view name, result::Kind kind) {
    columns_.emplace_back(name);
    kinds_.push_back(kind);
  };
  add("point", result::Kind::number);
  std::vector<std::pair<std::string, AxisColumn>> cells;
  for (std::size_t a = 0; a < grid_->axes().size(); ++a) {
    const points::Axis& axis = grid_->axes()[a];
    for (std::size_t f = 0; f < axis.flags.size(); ++f) {
      std::string column = result_column(axis.flags[f]);
      if (workload_ == request::Workload::video && axis.flags[f] == "batch") column = "videos";
      const bool extra = !is_result(column);
      if (extra) add(column, kind_of(axis, f));
      cells.push_back({column, {.axis = a, .flag = f, .extra = extra}});
    }
  }
  for (const result::Column& column : results) add(column.name, column.kind);
  add("error", result::Kind::text);
  for (auto& [column, cell] : cells) {
    cell.column = static_cast<std::size_t>(std::find(columns_.begin(), columns_.end(), column) - columns_.begin());
    axis_cells_.push_back(cell);
  }
}

std::vector<result::SweptFlag> Sweep::swept() const {
  std::vector<result::SweptFlag> swept;
  for (const AxisColumn& cell : axis_cells_) {
    const points::Axis& axis = grid_->axes()[cell.axis];
    result::SweptFlag flag{flag_name(axis.flags[cell.flag]), columns_[cell.column], {}};
    for (const std::vector<std::string>& values : axis.values) {
      if (!contains(flag.values, values[cell.flag])) flag.values.push_back(values[cell.flag]);
    }
    if (flag.values.size() > 1) swept.push_back(std::move(flag));
  }
  return swept;
}

std::string Sweep::error_text(const std::exception& error) const {
  const auto* diagnosed = dynamic_cast<const Error*>(&error);
  if (diagnosed == nullptr) return error.what();
  std::string text;
  for (const Diagnostic& d : diagnosed->diagnostics()) {
    text += (text.empty() ? "" : "; ") + d.message + (d.hint.empty() ? "" : " (" + d.hint + ")");
  }
  return worded(text);
}

void Sweep::Evaluator::set_axis(std::size_t axis) {
  const std::vector<std::string>& texts = sweep_.grid().axes()[axis].values[values_[axis]];
  for (std::size_t f = 0; f < texts.size(); ++f) set(request_, *sweep_.fields_[axis][f], texts[f]);
}

// What its idle fields are told is worded here, once for all points of the setup.
void Sweep::Evaluator::take(std::unique_ptr<request::Resolved> setup) {
  setup_ = std::move(setup);
  for (std::string& text : setup_->unused) text = sweep_.worded(text);
}

void Sweep::Evaluator::load_setup_once() {
  const std::size_t outer = values_.size() - sweep_.inner_;
  const bool known = generation_.has_value() || !setup_error_.empty();
  if (known && loaded_.size() == outer && std::equal(loaded_.begin(), loaded_.end(), values_.begin())) return;
  loaded_.assign(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(outer));
  setup_error_.clear();
  generation_.reset();
  try {
    for (std::size_t i = 0; i < outer; ++i) set_axis(i);
    refuse_beside(request_, false);
    take(resolve_setup(request_, sweep_.sources_, request::Unused::taken));
    generation_.emplace(setup_->setup());
  } catch (const std::exception& error) {
    setup_error_ = sweep_.error_text(error);
  }
}

// By the numbers of the inner axes, without reading their texts again.
void Sweep::Evaluator::set_scenario(estimate::Scenario& scenario) const {
  const std::size_t outer = values_.size() - sweep_.inner_;
  for (std::size_t i = 0; i < sweep_.inner_; ++i) {
    const std::int64_t value = sweep_.inner_values_[i][values_[outer + i]];
    switch (sweep_.fields_[outer + i].front()->name.front()) {
      case 'b': scenario.batch = value; break;
      case 'p': scenario.prompt = value + scenario.image_tokens(); break;
      default: scenario.generate = value; break;
    }
  }
}

std::string Sweep::Evaluator::generation(points::Row& row) {
  load_setup_once();
  if (!setup_error_.empty()) return setup_error_;
  const auto& text = std::get<request::Generation>(setup_->work);
  try {
    estimate::Scenario scenario = request::scenario_of(request_, setup_->model());
    set_scenario(scenario);
    request::check_scenario(scenario, text.choices);
    text.estimator->run(scenario, estimate_);
  } catch (const std::exception& error) {
    return sweep_.error_text(error);
  }
  generation_->room = pool_of(std::get<request::Generation>(setup_->work), estimate_.scenario, estimate_);
  if (generation_->room && !generation_->room->refusal.empty()) estimate_.fits = false;
  generation_->estimate = &estimate_;
  result::fill_row(row, &*generation_);
  return {};
}

// Videos, training steps and servers are resolved point by point.
std::string Sweep::Evaluator::anew(points::Row& row) {
  try {
    for (std::size_t i = 0; i < values_.size(); ++i) set_axis(i);
    if (sweep_.workload_ == request::Workload::serve) {
      check_complete(request_, "");
      const Served served(request_, sweep_.sources_, {.drawn = false, .banded = false});
      const result::ServingRow filled{&served.result()};
      result::fill_row(row, &filled);
      return {};
    }
    take(resolve(request_, sweep_.sources_, request::Unused::taken));
    if (auto* training = std::get_if<request::Training>(&setup_->work)) {
      estimate::TrainingEstimate result;
      training->estimator->run(training->scenario, training->choices.plan, training->options, result);
      const result::Training filled(training->estimator->setup(), result);
      result::fill_row(row, &filled);
    } else {
      const auto& choices = std::get<request::Video>(setup_->work).choices;
      estimate::VideoEstimator estimator(estimate::make_video_setup(setup_->video, setup_->device, choices));
      const estimate::VideoEstimate result = estimator.run();
      const result::Video filled(estimator.setup(), result);
      result::fill_row(row, &filled);
    }
  } catch (const std::exception& error) {
    return sweep_.error_text(error);
  }
  return {};
}

bool Sweep::Evaluator::operator()(std::int64_t point, points::Row& row) {
  const std::vector<std::string>& columns = sweep_.columns_;
  sweep_.grid().at(point, values_);
  row.clear();
  row.add("point", static_cast<double>(point));
  for (const AxisColumn& cell : sweep_.axis_cells_) {
    if (cell.extra) row.add_none(columns[cell.column]);
  }
  const std::size_t first = row.size();
  const std::string error = sweep_.workload_ == request::Workload::text ? generation(row) : anew(row);
  if (error.empty()) {
    row.add_none(columns.back());
  } else {
    row.truncate(first);
    for (std::size_t i = first; i + 1 < columns.size(); ++i) row.add_none(columns[i]);
    row.add(columns.back(), error);
  }
  for (const AxisColumn& cell : sweep_.axis_cells_) {
    if (cell.extra || !error.empty()) {
      put(row, cell.column, sweep_.grid().axes()[cell.axis].values[values_[cell.axis]][cell.flag]);
    }
  }
  return error.empty();
}

}  // namespace llmperf::service
