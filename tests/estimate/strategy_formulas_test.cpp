#include "estimate/strategy_formulas.h"

#include <algorithm>
#include <random>

#include "base/error.h"
#include "catch.h"
#include "gpt_block.h"
#include "hardware/device.h"
#include "model/decoder.h"

namespace llmperf::strategy_formulas_test {

using estimate::StrategyFormulas;
using estimate::StrategyTable;

namespace {

// The GPT block with other dimensions.
model::Decoder gpt(std::int64_t hidden, std::int64_t heads, std::int64_t layers) {
  return gpt_of("gpt-block", layers, hidden, heads);
}

StrategyTable table_of(const model::Decoder& model, std::int64_t b, std::int64_t s, std::int64_t n,
                       const char* options = "none") {
  const hardware::Device device = hardware::load_device("a100-sxm-80gb");
  estimate::Choices choices;
  choices.runtime = hardware::parse_runtime_options(options);
  const estimate::Setup setup = estimate::make_setup(model, device, choices);
  return estimate::strategy_formulas(setup, b, s, n);
}

const StrategyFormulas& find(const StrategyTable& table, std::string_view name) {
  const auto found =
      std::find_if(table.strategies.begin(), table.strategies.end(), [&](const auto& s) { return s.name == name; });
  REQUIRE(found != table.strategies.end());
  return *found;
}

}  // namespace

TEST_CASE("the GPT block gives the published table, symbol by symbol") {
  const StrategyTable t = table_of(gpt(1024, 16, 8), 8, 512, 4);
  const auto shown = [&](const char* name, auto part) { return estimate::pretty((find(t, name).*part).text); };
  constexpr auto kSent = &StrategyFormulas::activation_communication;
  constexpr auto kKept = &StrategyFormulas::activations;
  CHECK(estimate::pretty(t.parameters.text) == "12 h^2 + 13 h");
  CHECK(shown("TP", kSent) == "8 alpha b s h");
  CHECK(shown("Megatron-SP", kSent) == "10 alpha b s h");
  CHECK(shown("Ulysses", kSent) == "alpha b s (8 h) / n");
  CHECK(shown("Ring", kSent) == "6 alpha b s h");  // published as 4: docs/errata.md
  CHECK(shown("DP", kKept) == "34 b s h / n + 5 a b s^2 / n");
  CHECK(shown("TP", kKept) == "10 b s h + 24 b s h / n + 5 a b s^2 / n");
  CHECK(shown("Megatron-SP", kKept) == "34 b s h / n + 5 a b s^2 / n");
  CHECK(shown("Ulysses", kKept) == "34 b s h / n + 5 a b s^2 / n");
  CHECK(shown("PP", kKept) == "34 b s h + 5 a b s^2");
  CHECK(find(t, "ZeRO-3").parameter_collectives == "2 all-gather, reduce-scatter of P");
  // ZeRO-3 sends half as much again as an all-reduce; 6 P of optimiser state is 12 bytes per parameter.
  CHECK(find(t, "ZeRO-3").parameter_communication.value == Approx(1.5 * find(t, "DP").parameter_communication.value));
  CHECK(find(t, "DP").optimizer.value == Approx(6 * t.parameters.value));
  CHECK(find(t, "ZeRO-1").optimizer.value == Approx(6 * t.parameters.value / 4));
}

TEST_CASE("formulas equal the op graph for random dimensions, or building the table throws") {
  std::mt19937 random(11);  // NOLINT(cert-msc51-cpp): a fixed sequence of cases
  const auto pick = [&](std::initializer_list<std::int64_t> of) {
    return of.begin()[std::uniform_int_distribution<std::size_t>(0, of.size() - 1)(random)];
  };
  int legal = 0;
  for (int i = 0; i < 200; ++i) {
    const std::int64_t n = pick({2, 4, 8, 6, 16});
    const std::int64_t heads = n * pick({1, 2, 3});
    const model::Decoder model = gpt(heads * pick({32, 64, 96}), heads, 16);
    const StrategyTable t =
        table_of(model, n * pick({1, 2}), 2 * n * pick({1, 16, 37}), n, i % 2 == 0 ? "none" : "all");
    for (const StrategyFormulas& s : t.strategies) legal += s.illegal ? 0 : 1;
  }
  CHECK(legal > 1500);  // of 11 or 9 strategies in 200 tables: the comparison did take place
}

TEST_CASE("grouped queries, gated MLPs and odd widths have their formulas, too") {
  for (const char* name : {"llama-2-70b", "qwen1.5-7b", "qwen3-8b", "phi-2", "yi-34b"}) {
    CAPTURE(name);
    const model::Decoder model = model::load_decoder(name);
    for (const char* options : {"all", "none", "all,no_flash_attention"}) {
      const StrategyTable t = table_of(model, 8, 1024, 4, options);
      CHECK_FALSE(find(t, "TP").illegal);
    }
  }
  // K and V of 8 of 64 heads: the K/V terms shrink by 8.
  const StrategyTable t = table_of(model::load_decoder("llama-2-70b"), 8, 1024, 8);
  CHECK(find(t, "Ring").activation_communication.value == Approx(6 * 7 / 8.0 * 8 * 1024 * 8192 / 8));
  CHECK(find(t, "Ulysses").activation_communication.value == Approx(7 / 8.0 * 8 * 1024 * (4 + 0.5) * 8192 / 8));
}

TEST_CASE("KV heads that several devices hold are counted on each") {
  const model::Decoder model = model::load_decoder("llama-3-8b");  // 32 heads, 8 KV heads of width 128
  for (const char* options : {"all", "none"}) {
    const StrategyTable t = table_of(model, 16, 1024, 16, options);
    CHECK_FALSE(find(t, "TP").illegal);
    CHECK_FALSE(find(t, "2-D TP").illegal);
    const double divided = 2.0 * 4096 * 4096 / 16 + 3.0 * 4096 * 14336 / 16 + 2 * 4096;
    CHECK(find(t, "TP").weights.value == Approx(divided + 2.0 * 4096 * 128));  // one head of K and of V
    CHECK(find(t, "DP").weights.value == Approx(218112000));
  }
}

TEST_CASE("what has no formula is refused") {
  CHECK_THROWS_AS(table_of(model::load_decoder("llama-2-7b"), 8, 1024, 1), Error);
  for (const char* name : {"mixtral-8x7b", "deepseek-v2-lite", "gemma-2-9b"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(table_of(model::load_decoder(name), 8, 1024, 4), Error);
  }
}

TEST_CASE("formulas are printed as they are written by hand") {
  CHECK(estimate::pretty("8 * alpha * b * s * h") == "8 alpha b s h");
  CHECK(estimate::pretty("12 * h * h + 13 * h") == "12 h^2 + 13 h");
  CHECK(estimate::pretty("5 * a * b * s * s / n") == "5 a b s^2 / n");
}

}  // namespace llmperf::strategy_formulas_test
