// The closed-form limits against every cell of the tables a public study printed.
#include <cmath>
#include <optional>
#include <string>

#include "catch.h"
#include "cost/limits.h"
#include "published_table.h"

namespace llmperf::limits_tables_test {

using namespace llmperf::cost;

namespace {

// What the study prints and what its own formulas give. Listed in docs/errata.md.
struct Erratum {
  std::string model, column;
  double printed, computed;
};
const Erratum kErrata[] = {
    // The results of the row need the real model's width.
    {"qwen1.5-110b-mha", "intermediate_size", 24576, 49152},
    // 2 * 80 layers * 8192 / 8 groups = 163840 values a token, 160 Mi values per 1024; W = 3303 tokens/ms needs 160
    // too.
    {"qwen1.5-110b", "kv_MiParams_per_1024_tokens", 128, 160},
    {"qwen1.5-110b", "kv_MiParams_per_token", 0.125, 0.15625},
};

// Compares a printed cell with a computed value; an erratum must print its wrong number and compute its right one
// exactly.
void check_cell(const PublishedTable::Row& row, const std::string& column, double computed, double tolerance) {
  const double printed = std::stod(row[column]);
  INFO(row.model << ", " << column << ": printed " << row[column] << ", computed " << computed);
  for (const Erratum& e : kErrata) {
    if (e.model != row.model || e.column != column) continue;
    CHECK(printed == e.printed);
    CHECK(computed == e.computed);
    return;
  }
  CHECK(std::abs(printed - computed) <= tolerance);
}

void check_root(const PublishedTable::Row& row, const std::string& column, const std::optional<double>& root) {
  INFO(row.model << ", " << column << ": printed " << row[column] << ", computed " << root.value_or(NAN));
  if (row[column] == "none") {
    CHECK(!root);
  } else {
    REQUIRE(root);
    CHECK(std::stod(row[column]) == std::floor(*root));
  }
}

Limits article_limits(const std::string& model, const std::string& precision) {
  return compute_limits(model::load_decoder(model), hardware::load_device("rtx4090"), parse_limit_precision(precision),
                        UnitConvention::article);
}

constexpr double kMi = 1024.0 * 1024.0;
constexpr double kGi = 1024.0 * kMi;
constexpr double kTwoDecimals = 0.01;

const char* const kPrecisions[] = {"w16kv16", "w8kv16", "w4kv16"};

}  // namespace

TEST_CASE("every cell of the published parameter table", "[limits]") {
  for (const auto& row : read_published_table("qwen15_params.csv").rows) {
    const model::Decoder m = model::load_decoder(row.model);
    const model::Layer& layer = m.kinds.front();
    check_cell(row, "vocab_size", static_cast<double>(m.vocab), 0);
    check_cell(row, "hidden_size", static_cast<double>(m.hidden), 0);
    check_cell(row, "num_hidden_layers", static_cast<double>(m.num_layers()), 0);
    check_cell(row, "intermediate_size", static_cast<double>(layer.feed_forward.intermediate), 0);
    check_cell(row, "n_groups", static_cast<double>(layer.attention.heads / layer.attention.kv_heads), 0);
    const LimitCounts counts = limit_counts(m);
    check_cell(row, "decoder_layers_GiParams", static_cast<double>(counts.decoder_layers) / kGi, kTwoDecimals);
    check_cell(row, "lm_head_GiParams", static_cast<double>(counts.lm_head) / kGi, kTwoDecimals);
    check_cell(row, "activated_GiParams", static_cast<double>(counts.activated) / kGi, kTwoDecimals);
    check_cell(row, "total_GiParams", static_cast<double>(counts.total) / kGi, kTwoDecimals);
  }
}

TEST_CASE("every cell of the published KV cache table", "[limits]") {
  for (const auto& row : read_published_table("qwen15_kv_cache_1024.csv").rows) {
    const model::Decoder m = model::load_decoder(row.model);
    const model::Attention& attention = m.kinds.front().attention;
    check_cell(row, "hidden_size", static_cast<double>(m.hidden), 0);
    check_cell(row, "num_hidden_layers", static_cast<double>(m.num_layers()), 0);
    check_cell(row, "n_groups", static_cast<double>(attention.heads / attention.kv_heads), 0);
    const auto values = static_cast<double>(limit_counts(m).kv_values_per_token);
    check_cell(row, "kv_MiParams_per_1024_tokens", values * 1024 / kMi, 0);
  }
}

TEST_CASE("every cell of the published table of KV tokens that fit on an RTX 4090", "[limits]") {
  const PublishedTable table = read_published_table("qwen15_rtx4090_kv_tokens.csv");
  for (const auto& row : table.rows) {
    for (const std::string& column : table.columns) {
      if (column == "kv_MiParams_per_token") {
        const LimitCounts counts = limit_counts(model::load_decoder(row.model));
        check_cell(row, column, static_cast<double>(counts.kv_values_per_token) / kMi, 0);
        continue;
      }
      const Limits limits = article_limits(row.model, column);
      INFO(row.model << ", " << column << ": printed " << row[column] << ", computed "
                     << limits.kv_tokens.value_or(-1));
      if (row[column] == "oom") {
        CHECK(!limits.kv_tokens);
      } else {
        REQUIRE(limits.kv_tokens);
        CHECK(std::stoll(row[column]) == *limits.kv_tokens);
      }
    }
  }
}

TEST_CASE("every cell of the published table of prefill inflection points on an RTX 4090", "[limits]") {
  const PublishedTable table = read_published_table("qwen15_rtx4090_prefill_inflection.csv");
  REQUIRE(table.columns.size() == 12);
  for (const auto& row : table.rows) {
    for (const std::string precision : kPrecisions) {
      const Limits limits = article_limits(row.model, precision);
      check_root(row, precision + "_rough_first", limits.rough.first);
      check_root(row, precision + "_rough_second", limits.rough.second);
      check_root(row, precision + "_exact_first", limits.exact.first);
      check_root(row, precision + "_exact_second", limits.exact.second);
      CHECK(!limits.rough.compute_bound_at_zero);
      CHECK(!limits.exact.compute_bound_at_zero);
    }
  }
}

TEST_CASE("every cell of the published table of decode limits on an RTX 4090", "[limits]") {
  const PublishedTable table = read_published_table("qwen15_rtx4090_decode_limits.csv");
  REQUIRE(table.columns.size() == 6);
  for (const auto& row : table.rows) {
    for (const std::string precision : kPrecisions) {
      const Limits limits = article_limits(row.model, precision);
      check_cell(row, precision + "_W_tokens_per_ms", limits.decode_tokens_per_ms, 1);
      check_cell(row, precision + "_B_ms", limits.decode_base.value * 1e3, kTwoDecimals);
    }
  }
}

TEST_CASE("all published tables cover the same ten models", "[limits]") {
  for (const char* file : {"qwen15_params.csv", "qwen15_kv_cache_1024.csv", "qwen15_rtx4090_kv_tokens.csv",
                           "qwen15_rtx4090_prefill_inflection.csv", "qwen15_rtx4090_decode_limits.csv"}) {
    CHECK(read_published_table(file).rows.size() == 10);
  }
}

}  // namespace llmperf::limits_tables_test
