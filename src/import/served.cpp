// A measured run of a server as the document that llmperf serve writes of a simulated one, as far as the run says it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "import/import.h"
#include "import/runs.h"
#include "measure/serving_row.h"

namespace llmperf::import {

namespace {

// Nothing where the text is no file of that tool. What a file need not say for its figures to be read stands in, more
// and more of it, and is then nowhere in the document: a load, a model that is not built in, an engine.
std::optional<Imported> read_as(Source source, std::string_view text, const std::string& file) {
  constexpr unsigned kLoad = 1, kModel = 2, kRuntime = 4;
  for (unsigned stands_in = 0; stands_in <= (kLoad | kModel | kRuntime); ++stands_in) {
    Options options{.weights = "bf16"};
    if ((stands_in & kLoad) != 0) options.concurrency = 1;
    if ((stands_in & kModel) != 0) options.model = "llama-3.1-8b";
    if ((stands_in & kRuntime) != 0) options.runtime = "vllm";
    try {
      Imported imported = import_text(source, text, file, options);
      if (imported.measurements.rows.empty()) continue;
      for (measure::Row& row : imported.measurements.rows) {
        auto& of = std::get<measure::ServingRow>(row.of);
        if ((stands_in & kLoad) != 0) of.load.concurrency.reset();
        if ((stands_in & kModel) != 0) of.model.clear();
        if ((stands_in & kRuntime) != 0) of.runtime.clear();
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
  descriptor::Problems ignored(file);
  const std::vector<descriptor::Node> documents = read_documents(text, ignored);
  const descriptor::Node* first_one = documents.empty() ? nullptr : &documents.front();
  const bool object = first_one != nullptr && first_one->kind == descriptor::Node::Kind::mapping;
  if (object && value_at(*first_one, "schema") != nullptr) return std::nullopt;  // of llmperf's own
  const descriptor::Node* backend = object ? value_at(*first_one, "backend") : nullptr;
  const bool sglang = object && (value_at(*first_one, "server_info") != nullptr ||
                                 (backend != nullptr && backend->scalar.starts_with("sglang")));
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
                   {"inputs", std::move(inputs)}};
  if (devices > 1) document["devices"] = devices;  // of one the file may not say so
  document.update(figures);
  return document.dump();
}

}  // namespace llmperf::import
