// A measured run of a server as the document that llmperf serve writes of a simulated one, as far as the run says it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "import/import.h"
#include "measure/serving_row.h"

namespace llmperf::import {

namespace {

// Nothing where the text is no file of that tool. What a file need not say for its figures to be read stands in:
// weights, and a model that is not built in, which is then nowhere in the document.
constexpr const char* kAnyWeights = "bf16";
constexpr const char* kAnyModel = "llama-3.1-8b";
std::optional<Imported> read_as(Source source, std::string_view text, const std::string& file) {
  for (const char* model : {"", kAnyModel}) {
    try {
      Imported imported = import_text(source, text, file, {.model = model, .weights = kAnyWeights});
      if (imported.measurements.rows.empty()) continue;
      if (*model != 0) {
        for (measure::Row& row : imported.measurements.rows) std::get<measure::ServingRow>(row.of).model.clear();
      }
      return imported;
    } catch (const Error&) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> served_document(std::string_view text, const std::string& file) {
  using Json = nlohmann::ordered_json;
  std::optional<Imported> found;
  // Results of the first two look alike but for what they say of the server.
  const bool sglang = text.find("sglang") != std::string_view::npos;
  for (const Source source : {sglang ? Source::sglang_bench : Source::vllm_bench, Source::aiperf, Source::guidellm}) {
    if (!found) found = read_as(source, text, file);
  }
  if (!found) return std::nullopt;
  const std::vector<measure::Row>& rows = found->measurements.rows;
  const auto& first = std::get<measure::ServingRow>(rows.front().of);
  Json figures;
  for (const measure::Row& row : rows) {
    const auto& of = std::get<measure::ServingRow>(row.of);
    if (describe(of) != describe(first)) {
      throw Error::bad_input(fmt::format("{} holds several runs ({} and {})", file, describe(first), describe(of)),
                             "one run in a file");
    }
    const bool rate = measure::find_figure(of.metric)->rate;
    const double value = rate ? 1 / row.latency.value : row.latency.value;
    const std::size_t dot = of.metric.find('.');
    if (dot == std::string::npos) {
      figures[of.metric] = value;
    } else {
      figures[of.metric.substr(0, dot) + "_s"][of.metric.substr(dot + 1)] = value;
    }
  }
  const auto number = [](const auto& n) { return n ? Json(*n) : Json(); };
  const auto text_of = [](const std::string& t) { return t.empty() ? Json() : Json(t); };
  const std::int64_t devices = first.tp * first.dp * first.pp;
  Json inputs = {{"kv", text_of(first.kv)},
                 {"engine", {{"name", text_of(first.runtime)}, {"version", text_of(first.engine_version)}}},
                 {"traffic",
                  {{"requests_per_second", number(first.load.rate)},
                   {"concurrency", number(first.load.concurrency)},
                   {"input", text_of(first.input)},
                   {"output", text_of(first.output)}}}};
  if (!first.model.empty()) inputs["model"] = {{"name", first.model}};
  if (rows.front().hardware != "unknown") inputs["hardware"] = {{"name", rows.front().hardware}};
  Json document = {{"schema", "llmperf.serve"},
                   {"schema_version", 1},
                   {"tool", {{"name", name(found->source)}, {"version", "measured"}}},
                   {"label", fmt::format("measured ({})", name(found->source))},
                   {"inputs", std::move(inputs)},
                   {"devices", devices}};
  document.update(figures);
  return document.dump();
}

}  // namespace llmperf::import
