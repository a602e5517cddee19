// Every model of a table of published ones, read from the config.json of its name in configs/: parameters exactly,
// those a token uses, bytes that a token adds to the cache and that a sequence holds whatever its length.
#include <string>

#include "catch.h"
#include "descriptor/node.h"
#include "model/parameters.h"
#include "model_files.h"

namespace llmperf::published_models_test {

using namespace llmperf::model;

namespace {

std::vector<std::vector<std::string>> published() {
  std::vector<std::vector<std::string>> rows = read_rows(fixture("data/published_models.csv"));
  for (std::vector<std::string>& row : rows) row.resize(7);
  return rows;
}
Decoder config(const std::string& name) { return load_decoder(fixture("configs/" + name + ".json")); }

}  // namespace

TEST_CASE("published models have the parameters, caches and states of the table") {
  int compared = 0;
  for (const std::vector<std::string>& row : published()) {
    CAPTURE(row[0]);
    const Decoder model = config(row[0]);
    const ParameterCounts p = count_parameters(model);
    CHECK(p.total == std::stoll(row[1]));
    CHECK(p.activated == std::stoll(row[2]));
    // Parts add up: a tied lm_head is the embedding.
    const bool tied = model.tied_embeddings && !model.encoder;
    const std::int64_t head = tied ? p.lm_head - model.vocab * model.hidden : p.lm_head;
    CHECK(p.embedding + p.layers + p.final_norm + head == p.total);
    CHECK(p.attention + p.recurrent + p.feed_forward + p.norms == p.layers);
    if (!row[4].empty() && !model.encoder) {
      const std::int64_t values = kv_values_per_token(model, row[3] != "all");
      CHECK(2 * values == std::stoll(row[4]));
    }
    if (!row[5].empty()) CHECK(state_bytes_per_sequence(model, 2) == static_cast<double>(std::stoll(row[5])));
    if (!row[6].empty() && model.next_token_layers == 1 && row[0] != "deepseek-v4-flash") {
      const std::int64_t copies = model.next_token_copies ? 2 * model.vocab * model.hidden : 0;
      CHECK(p.checkpoint - p.total - p.vision - copies == std::stoll(row[6]));
    }
    ++compared;
  }
  CHECK(compared == 56);
}

TEST_CASE("a descriptor that is written from a model is that model") {
  for (const std::vector<std::string>& row : published()) {
    CAPTURE(row[0]);
    const Decoder model = config(row[0]);
    const std::string text = to_descriptor(model);
    CAPTURE(text);
    const Decoder again = parse_decoder(descriptor::parse_yaml(text, "model.yaml"));
    CHECK(again.kinds == model.kinds);
    CHECK(again.layer_kinds == model.layer_kinds);
    CHECK(count_parameters(again).total == count_parameters(model).total);
    CHECK(count_parameters(again).checkpoint == count_parameters(model).checkpoint);
    CHECK(to_descriptor(again) == text);
  }
}

}  // namespace llmperf::published_models_test
