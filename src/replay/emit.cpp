#include "replay/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "base/text.h"
#include "base/utf8.h"
#include "measure/advice.h"
#include "measure/predictor.h"

namespace llmperf::replay {

std::string_view torch_program();  // torch/replay.py, by cmake/embedded.cmake

namespace {

// `numbers`: the rows of the step's ops.
nlohmann::ordered_json step_json(const EmittedStep& step, const std::vector<std::int64_t>& numbers,
                                 const std::string& hardware) {
  nlohmann::ordered_json json;
  const measure::Row row{.hardware = hardware, .of = *step.whole, .latency = {}, .extra = {}};
  for (const auto& [name, cell] : measure::filled_cells(row)) {
    json["columns"][std::string(name)] = measure::cell_text(cell);
  }
  for (const StepBlock& block : step.step->blocks) {
    nlohmann::ordered_json places;
    for (const StepPlace& place : block.places) places.push_back({numbers[place.op], place.repeat});
    json["blocks"].push_back({block.times, places});
  }
  return json;
}

// Of what stands between `quote` and another in Python, which do not end there.
std::string escaped(const std::string& text, const std::string& quote) {
  std::string safe;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' || text.compare(i, quote.size(), quote) == 0) safe += '\\';
    safe += text[i];
  }
  return safe;
}

// `program` with what stands between `begin` and the `end` behind it replaced.
void put(std::string& program, std::string_view begin, std::string_view end, const std::string& text) {
  const std::size_t from = program.find(begin) + begin.size();
  program.replace(from, program.find(end, from) - from, text);
}

// The ops of a step in other sizes, of which a fit would know one point each without them; but for what takes long.
void add_sizes(measure::Measurements& rows, const hardware::Device& device, const hardware::RuntimeProfile& profile) {
  constexpr double kLong = 0.05;  // s
  measure::Measurements sizes;
  sizes.files.emplace_back();
  sizes.rows = measure::sizes_not_measured(rows);
  std::vector<std::size_t> all(sizes.rows.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  measure::Refusals refused;
  measure::Predictor predictor(sizes, all, device, profile, &refused);
  std::vector<double> seconds(predictor.rows().size());
  predictor.predict(profile.values, std::nullopt, seconds);
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    measure::Row& row = sizes.rows[predictor.rows()[i]];
    row.extra = {"", "", ""};  // of no step
    if (seconds[i] < kLong) rows.rows.push_back(std::move(row));
  }
}

// What torch calls devices of a family; empty: it is to look itself.
std::string torch_device(std::string_view family) {
  constexpr std::pair<std::string_view, std::string_view> kDevices[] = {
      {"nvidia", "cuda"}, {"amd", "cuda"}, {"ascend", "npu"}, {"apple", "mps"}, {"intel-arc", "xpu"}, {"cpu", "cpu"}};
  for (const auto& [begin, kind] : kDevices) {
    if (family.starts_with(begin)) return std::string(kind);
  }
  return {};
}

}  // namespace

Emission emission(std::string what, std::span<const EmittedStep> steps, const hardware::Device& device,
                  const hardware::RuntimeProfile* profile) {
  Emission e{.what = std::move(what), .torch_device = torch_device(device.family)};
  e.rows.files.emplace_back();
  e.rows.extra_columns = {"name", "count", "value"};
  DistinctOps all;
  std::vector<std::vector<std::size_t>> of_steps;
  for (const EmittedStep& step : steps) {
    std::vector<std::size_t>& own = of_steps.emplace_back();
    for (const DistinctOp& op : step.step->ops) own.push_back(all.add(op));
  }
  std::vector<std::int64_t> numbers;  // of rows; -1: an op without one
  std::vector<double> counts;
  for (const DistinctOp& op : all.ops) {
    const auto* row = std::get_if<measure::OpRow>(&op.what);
    numbers.push_back(row ? std::ssize(e.rows.rows) : -1);
    if (row == nullptr) {
      e.left_out.push_back(join(op.names, ", ") + ": " + std::get<std::string>(op.what));
      continue;
    }
    const std::string count = op.count > 0 ? fmt::format("{}", op.count) : std::string();
    e.rows.rows.push_back(
        {.hardware = device.name, .of = *row, .latency = {}, .extra = {join(op.names, "+"), count, ""}});
    counts.push_back(static_cast<double>(op.count));
  }
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (std::size_t s = 0; s < steps.size(); ++s) {
    std::vector<std::int64_t> own;
    for (const std::size_t op : of_steps[s]) own.push_back(numbers[op]);
    if (steps[s].whole) json.push_back(step_json(steps[s], own, device.name));
  }
  e.steps = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  if (profile == nullptr || counts.empty()) return e;
  if (*std::ranges::max_element(counts) > 0) add_sizes(e.rows, device, *profile);
  counts.resize(e.rows.rows.size());
  const std::vector<double> worth = measure::doubts(e.rows, counts, device, *profile);
  for (std::size_t i = 0; i < worth.size(); ++i) {
    if (worth[i] > 0) e.rows.rows[i].extra.back() = fmt::format("{:.3g}", worth[i]);
  }
  return e;
}

std::string emitted_rows(const Emission& e) {
  return measure::format_measurements(e.rows, measure::Latencies::left_out);
}

std::string emitted_program(const Emission& e) {
  const std::string quotes = "\"\"\"";
  const std::string end = quotes + "\n";
  std::string program(torch_program());
  put(program, "\nWHAT = \"", "\"\n", escaped(without_unsafe(e.what, false), "\""));
  put(program, "\nDEVICE = \"", "\"", e.torch_device);
  put(program, "\nROWS = \"\"\"\\\n", end, escaped(emitted_rows(e), quotes));
  put(program, "\nSTEPS = \"\"\"\\\n", end, escaped(e.steps, quotes) + "\n");
  return program;
}

}  // namespace llmperf::replay
