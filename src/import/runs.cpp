#include "import/runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/integer.h"
#include "base/number.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "hardware/device.h"

namespace llmperf::import {
namespace {

using descriptor::Node;
using descriptor::Problems;

// The built-in name of a model that a server calls by its id or by the folder that it is in.
std::string model_called(const std::string& text) {
  for (const std::string& name : {text, text.substr(text.find_last_of('/') + 1)}) {
    if (name.empty() || descriptor::is_path(name)) continue;  // no file is read because another names it
    try {
      const std::string path = descriptor::load(descriptor::Kind::model, name).file;
      const std::string file = path.substr(path.find_last_of('/') + 1);
      return file.substr(0, file.rfind('.'));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::bad_input) throw;
    }
  }
  return {};
}

std::string device_called(const std::string& text) {
  if (text.empty() || descriptor::is_path(text)) return text;
  try {
    return hardware::load_device(text).name;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::bad_input) throw;
    return text;
  }
}

// As a cell of a file has it.
std::string cell_text(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return std::string(trim(text));
}

// Why the run is no measurement; empty: it is.
std::string complete(BenchmarkRun& run, const Options& options, std::string_view runtime) {
  measure::ServingRow& row = run.row;
  const std::string called = row.model;
  if (!options.model.empty()) row.model = options.model;
  if (row.model.empty()) return "model not in the file: `model`";
  if (options.model.empty()) row.model = model_called(called);
  if (row.model.empty()) return fmt::format("model {} is not built in: `model`", called);
  row.weights = cell_text(options.weights.empty() ? row.weights : options.weights);
  row.engine_version = cell_text(row.engine_version);
  if (row.weights.empty()) return "weights not in the file: `weights`";
  if (!options.runtime.empty()) {
    const std::size_t at = options.runtime.find('@');
    row.runtime = options.runtime.substr(0, at);
    row.engine_version = at == std::string::npos ? "" : options.runtime.substr(at + 1);
  }
  if (row.runtime.empty()) row.runtime = runtime;
  if (row.runtime.empty()) return "engine not in the file: `runtime`";
  if (options.ranks) row.tp = *options.ranks;
  if (options.concurrency) row.load.concurrency = options.concurrency;
  if (row.load.concurrency == 0) row.load.concurrency.reset();
  if (options.rate) row.load.rate = options.rate;
  if (run.completed > 0 && row.requests == 0) row.requests = run.completed + run.failed;
  if (row.input.empty() || row.output.empty()) return "lengths not in the file";
  if (!row.load.rate && !row.load.concurrency && !(run.at_once && row.requests > 0))
    return "load not in the file: `concurrency` or `rate`";
  if (run.figures.empty()) return "no figures";
  return "";
}

void move_down(Node& node, int lines) {
  node.line += lines;
  for (Node& item : node.items) move_down(item, lines);
  for (Node::Entry& entry : node.entries) {
    entry.line += lines;
    move_down(entry.value, lines);
  }
}

}  // namespace

void BenchmarkRun::add(std::string metric, std::optional<double> seconds) {
  if (seconds && *seconds > 0 && std::isfinite(*seconds) && !has(metric)) {
    figures.emplace_back(std::move(metric), Seconds{*seconds});
  }
}

void BenchmarkRun::add_rate(std::string metric, std::optional<double> per_second) {
  if (per_second) add(std::move(metric), 1 / *per_second);
}

bool BenchmarkRun::has(std::string_view metric) const {
  return std::any_of(figures.begin(), figures.end(), [&](const auto& figure) { return figure.first == metric; });
}

void add_run(BenchmarkRun run, const Options& options, std::string_view runtime, Collector& into) {
  const std::string type = run.row.model.empty() ? "no model" : run.row.model;
  std::string remark = complete(run, options, runtime);
  if (run.failed > 0 && run.untrusted.empty()) {
    run.untrusted = fmt::format("{} of {} requests failed", run.failed, run.completed + run.failed);
  }
  run.hardware = cell_text(run.hardware);
  const std::string hardware =
      options.hardware != Options().hardware || run.hardware.empty() ? options.hardware : device_called(run.hardware);
  // In the order in which a file has their columns.
  std::vector<measure::Row> rows;
  for (const measure::ServingFigure& figure : measure::serving_figures()) {
    for (const auto& [metric, value] : run.figures) {
      if (metric != figure.metric) continue;
      measure::Row& row = rows.emplace_back();
      row.hardware = hardware;
      row.latency = value;
      row.line = run.line;
      row.extra = {run.untrusted};
      run.row.metric = metric;
      row.of = run.row;
    }
  }
  into.add(Class::run, type, run.duration, std::move(rows), std::move(remark));
}

std::string lengths_of(double mean, double deviation) {
  if (!(mean >= 1) || !(mean <= d(serving::kMaxLength))) return {};
  constexpr double kAlike = 0.02;
  if (!(deviation > kAlike * mean)) return fmt::format("{:.0f}", mean);
  const double spread = std::sqrt(std::log1p(deviation * deviation / (mean * mean)));
  return fmt::format("lognormal:{:.0f}:{:.3f}", mean, std::min(spread, 4.0));
}

std::string lengths_of(const std::vector<double>& lengths) {
  if (lengths.empty()) return {};
  const auto n = static_cast<double>(lengths.size());
  const double mean = std::accumulate(lengths.begin(), lengths.end(), 0.0) / n;
  double squares = 0;
  for (const double length : lengths) squares += (length - mean) * (length - mean);
  const double deviation = std::sqrt(squares / n);
  const auto [low, high] = std::minmax_element(lengths.begin(), lengths.end());
  // Of lengths that are drawn evenly the deviation is the range over the root of 12.
  constexpr double kLike = 0.1;
  const double even = (*high - *low + 1) / std::sqrt(12.0);
  const bool evenly = *low >= 1 && *high <= d(serving::kMaxLength) && *low < *high &&
                      std::abs(deviation - even) < kLike * even && std::abs(mean - (*low + *high) / 2) < kLike * even;
  return evenly ? fmt::format("{:.0f}-{:.0f}", *low, *high) : lengths_of(mean, deviation);
}

std::vector<Node> read_documents(std::string_view text, Problems& problems, int before) {
  constexpr descriptor::JsonRules kRules = {std::size_t{64} << 20, true};
  std::vector<Node> documents;
  const auto parse = [&](std::string_view part, int lines_before) {
    try {
      Node root = descriptor::parse_json(part, "", kRules).root;
      move_down(root, lines_before);
      documents.push_back(std::move(root));
    } catch (const Error& error) {
      for (const Diagnostic& found : error.diagnostics()) {
        problems.add(lines_before + found.where.line, found.where.column, found.message, found.hint);
      }
    }
  };
  // Objects line by line are several roots, which JSON has not: each line has to end one.
  const std::string_view content = trim(text);
  const std::size_t first = content.find('\n');
  const bool lines = content.starts_with('{') && first != std::string_view::npos &&
                     trim(content.substr(0, first)).ends_with('}') && trim(content.substr(first)).starts_with('{');
  if (!lines) {
    parse(text, before);
  } else {
    int number = before;
    for (const std::string_view line : split(text, '\n')) {
      if (!trim(line).empty() && !problems.full()) parse(line, number);
      ++number;
    }
  }
  if (documents.size() == 1 && documents.front().kind == Node::Kind::sequence) {
    std::vector<Node> items = std::move(documents.front().items);
    return items;
  }
  return documents;
}

const Node* value_at(const Node& node, std::string_view path) {
  const Node* at = &node;
  for (const std::string_view key : split(path, '.')) {
    const Node* next = at->find(key);
    if (const auto index = parse_int(key); index && at->kind == Node::Kind::sequence && *index >= 0 &&
                                           *index < static_cast<std::int64_t>(at->items.size())) {
      next = &at->items[static_cast<std::size_t>(*index)];
    }
    if (next == nullptr || next->kind == Node::Kind::null) return nullptr;
    at = next;
  }
  const bool null = at->kind == Node::Kind::scalar && !at->quoted && at->scalar == "null";
  return null ? nullptr : at;
}

std::optional<double> number_at(const Node& node, std::string_view path, Problems& problems) {
  const Node* at = value_at(node, path);
  if (at == nullptr) return std::nullopt;
  if (at->kind == Node::Kind::scalar) {
    if (at->scalar == "inf" || at->scalar == "Infinity") return std::numeric_limits<double>::infinity();
    if (at->scalar == "NaN" || at->scalar == "nan" || at->scalar.empty()) return std::nullopt;
    if (const std::optional<double> number = parse_double(at->scalar)) return number;
  }
  problems.add(*at, fmt::format("{} must be a number, not {}", quote(path),
                                at->kind == Node::Kind::scalar ? quote(at->scalar) : "a list or an object"));
  return std::nullopt;
}

std::optional<std::string> text_at(const Node& node, std::string_view path, Problems& problems) {
  const Node* at = value_at(node, path);
  if (at == nullptr) return std::nullopt;
  if (at->kind == Node::Kind::scalar) return at->scalar;
  problems.add(*at, fmt::format("{} must be text", quote(path)));
  return std::nullopt;
}

std::optional<std::int64_t> count_at(const Node& node, std::string_view path, Problems& problems) {
  const std::optional<double> number = number_at(node, path, problems);
  if (!number) return std::nullopt;
  constexpr double kMost = 1e9;
  if (*number >= 0 && *number <= kMost && *number == std::floor(*number)) return static_cast<std::int64_t>(*number);
  problems.add(*value_at(node, path),
               fmt::format("{} must be an integer between 0 and 1000000000, not {}", quote(path), *number));
  return std::nullopt;
}

}  // namespace llmperf::import
