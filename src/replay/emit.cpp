#include "replay/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "base/list.h"
#include "base/text.h"
#include "base/utf8.h"
#include "measure/advice.h"
#include "measure/predictor.h"

namespace llmperf::replay {

std::string_view torch_program();  // torch/replay.py, by cmake/embedded.cmake

namespace {

// Rows, each once, and how often the steps execute them.
struct Rows {
  measure::Measurements& of;
  std::string hardware;
  std::vector<double> counts = {};
  std::map<std::string, std::size_t> numbers = {};  // by describe()

  std::int64_t add(const measure::OpRow& row, const std::vector<std::string>& names = {}, double count = 0) {
    const auto [known, is_new] = numbers.try_emplace(measure::describe(row), counts.size());
    if (is_new) {
      of.rows.push_back({.hardware = hardware, .of = row, .latency = {}, .extra = {""}});
      counts.push_back(0);
    }
    counts[known->second] += count;
    std::string& named = of.rows[known->second].extra.front();
    for (const std::string& name : names) {
      if (('+' + named + '+').find('+' + name + '+') == std::string::npos) named += (named.empty() ? "" : "+") + name;
    }
    return static_cast<std::int64_t>(known->second);
  }
};

nlohmann::ordered_json step_json(const EmittedStep& step, const std::vector<std::int64_t>& numbers,
                                 const std::string& hardware) {
  nlohmann::ordered_json json;
  const std::vector<std::string_view> names = measure::row_columns();
  const measure::Row row{.hardware = hardware, .of = *step.whole, .latency = {}, .extra = {}};
  const std::vector<measure::Cell> cells = measure::row_cells(row);
  for (std::size_t c = 0; c < names.size(); ++c) {
    const std::string text = measure::cell_text(cells[c]);
    if (!text.empty()) json["columns"][std::string(names[c])] = text;
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
void add_sizes(Rows& rows, const hardware::Device& device, const hardware::RuntimeProfile& profile) {
  constexpr double kLong = 0.05;  // s
  measure::Measurements sizes;
  sizes.files.emplace_back();
  sizes.rows = measure::sizes_not_measured(rows.of);
  std::vector<std::size_t> all(sizes.rows.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  measure::Refusals refused;
  measure::Predictor predictor(sizes, all, device, profile, &refused);
  std::vector<double> seconds(predictor.rows().size());
  predictor.predict(profile.values, std::nullopt, seconds);
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    if (seconds[i] < kLong) rows.add(std::get<measure::OpRow>(sizes.rows[predictor.rows()[i]].of));
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
  Rows rows{e.rows, device.name};
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const EmittedStep& step : steps) {
    std::vector<std::int64_t> numbers;  // -1: an op without a row
    for (const DistinctOp& op : step.step->ops) {
      const auto* row = std::get_if<measure::OpRow>(&op.what);
      numbers.push_back(row ? rows.add(*row, op.names, static_cast<double>(op.count)) : -1);
      const std::string why = row ? "" : join(op.names, ", ") + ": " + std::get<std::string>(op.what);
      if (!row && !contains(e.left_out, why)) e.left_out.push_back(why);
    }
    if (step.whole) json.push_back(step_json(step, numbers, device.name));
  }
  e.steps = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  const bool of_steps = std::any_of(rows.counts.begin(), rows.counts.end(), [](double n) { return n > 0; });
  if (profile != nullptr && of_steps) add_sizes(rows, device, *profile);
  std::vector<double> worth(rows.counts.size(), 0);
  if (profile != nullptr && !worth.empty()) worth = measure::doubts(e.rows, rows.counts, device, *profile);
  for (std::size_t i = 0; i < worth.size(); ++i) {
    std::vector<std::string>& extra = e.rows.rows[i].extra;
    extra.push_back(rows.counts[i] > 0 ? fmt::format("{}", rows.counts[i]) : std::string());
    extra.push_back(worth[i] > 0 ? fmt::format("{:.3g}", worth[i]) : std::string());
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
