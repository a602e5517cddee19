// What a run costs and draws, by numbers that can be checked on paper.
#include "estimate/price.h"

#include <array>
#include <fstream>
#include <string>
#include <vector>

#include "base/number.h"
#include "base/text.h"
#include "catch.h"
#include "estimate/builtin.h"
#include "estimate/estimate.h"
#include "estimate/explain.h"

namespace llmperf::price_test {

using namespace llmperf::estimate;
using hardware::Offer;
using hardware::Price;
using test::decoder;
using test::device;

namespace {

hardware::Device offered(std::vector<Price> prices, std::optional<double> power_w = std::nullopt) {
  hardware::Device device;
  device.prices = std::move(prices);
  device.power_w = power_w;
  return device;
}

Price rent(double amount, std::string source) { return {Offer::rent, amount, "USD", std::move(source), "2026-03"}; }

Estimator estimator(const std::string& model, const std::string& hardware, double price, graph::Plan plan = {}) {
  Choices choices;
  choices.price = HourPrice{.amount = price, .currency = "USD"};
  choices.plan = plan;
  return Estimator(make_setup(decoder(model), device(hardware), choices));
}

}  // namespace

TEST_CASE("an hour costs the median of the offers on demand, of an even number the lower of the two in the middle",
          "[price]") {
  const auto odd = hour_price(offered({rent(6, "c"), rent(2, "a"), rent(3, "b"), {Offer::spot, 1, "USD", "s", ""}}));
  CHECK(odd->amount == 3);
  CHECK(odd->source == "b");
  CHECK(odd->date == "2026-03");
  CHECK(odd->basis == PriceBasis::rent);
  CHECK(hour_price(offered({rent(6, "c"), rent(2, "a"), rent(3, "b"), rent(4, "d")}))->source == "b");
  const auto spot = hour_price(offered({{Offer::spot, 1, "USD", "s", ""}, {Offer::purchase, 9000, "USD", "p", ""}}));
  CHECK(spot->amount == 1);
  CHECK(spot->text() == "spot: s");
  CHECK_FALSE(hour_price(offered({})));
}

TEST_CASE("a purchase price is spread over three years, and says that it is derived", "[price]") {
  const Price bought{Offer::purchase, 1599, "USD", "list price", ""};
  CHECK(hour_price(offered({bought}))->amount == Approx(1599.0 / 26280));
  const auto powered = hour_price(offered({bought}, 450));
  CHECK(powered->amount == Approx(1599.0 / 26280 + 0.45 * 0.12));
  CHECK(powered->text() == "derived: list price 1599 USD over 3 years and 450 W at 0.12 USD/kWh");
  // Electricity is priced in dollars alone.
  CHECK(hour_price(offered({{Offer::purchase, 2628, "EUR", "list price", ""}}, 450))->amount == Approx(0.1));
}

TEST_CASE("unlike devices cost their mean, and nothing is known where one has no price or another currency",
          "[price]") {
  const HourPrice a{.amount = 1, .currency = "USD", .basis = PriceBasis::rent, .source = "a", .date = "2026-03"};
  HourPrice b{.amount = 4, .currency = "USD", .basis = PriceBasis::rent, .source = "b", .date = "2026-03"};
  const std::optional<HourPrice> all[] = {a, a, b};
  CHECK(mean_price(all)->amount == 2);
  CHECK(mean_price(all)->text() == "rent: a and b, 2026-03");
  const std::optional<HourPrice> unknown[] = {a, std::nullopt};
  CHECK_FALSE(mean_price(unknown));
  b.currency = "EUR";
  const std::optional<HourPrice> foreign[] = {a, b};
  CHECK_FALSE(mean_price(foreign));
}

TEST_CASE("8 devices at 2 USD an hour that make 1000 tokens a second ask 4.44 USD for a million", "[price]") {
  const double hour = cost_per_hour<double>(2, 8, "USD");
  CHECK(hour == 16);
  CHECK(cost_per_million(hour, 1000.0) == Approx(16.0 / 3.6));
}

TEST_CASE("every device of the plan is paid for, data parallel ones too", "[price]") {
  Estimator e = estimator("llama-3-8b", "h100-sxm", 2, {.tensor = 4, .data = 2});
  const Estimate r = e.run({8, 512, 128});
  CHECK(*r.spending.cost_per_hour == 16);
  CHECK(*r.spending.cost_per_million_output_tokens == Approx(16 / 3600.0 / r.decode_tokens_per_second * 1e6));
  CHECK(*r.spending.cost_per_million_input_tokens == Approx(16 / 3600.0 * r.ttft->value / (8 * 512) * 1e6));
  CHECK(*r.spending.average_power_w == Approx(8 * 700));
}

TEST_CASE("input and output tokens together pay for the request", "[price]") {
  Estimator e = estimator("llama-3-8b", "h100-sxm", 3.6);
  const Estimate r = e.run({4, 1000, 101});
  const Spending& s = r.spending;
  // The first token comes out of the prefill.
  const double parts = *s.cost_per_million_input_tokens * 1000 + *s.cost_per_million_output_tokens * 100;
  CHECK(*s.request_cost_per_million_output * 101 == Approx(parts));
  CHECK(*s.request_cost_per_million_output * 4 * 101 / 1e6 == Approx(0.001 * r.total.value));  // 3.6 an hour
}

TEST_CASE("what is not known is not there: no price, no power, no such token, no room", "[price]") {
  Estimator none(make_setup(decoder("llama-3-8b"), device("h100-sxm"), {}));
  CHECK_FALSE(none.run({1, 512, 128}).spending.cost_per_hour);
  CHECK(*none.run({1, 512, 128}).spending.average_power_w == Approx(700));
  Estimator e = estimator("llama-3-8b", "h100-sxm", 2);
  CHECK_FALSE(e.run({1, 512, 1}).spending.cost_per_million_output_tokens);
  CHECK_FALSE(e.run({1, 512, 1}).spending.joules_per_output_token);
  CHECK(e.run({1, 512, 1}).spending.cost_per_million_input_tokens);
  CHECK_FALSE(e.run({10000, 512, 128}).spending.cost_per_hour);
  hardware::Device dark = device("h100-sxm");
  dark.power_w.reset();
  Estimator unpowered(make_setup(decoder("llama-3-8b"), dark, {}));
  CHECK_FALSE(unpowered.run({1, 512, 128}).spending.average_power_w);
}

TEST_CASE("without measured shares a token takes the board's power for its time, an upper bound", "[price]") {
  Estimator e = estimator("qwen-7b", "rtx4090", 1);
  const Estimate r = e.run({1, 512, 128});
  CHECK(*r.spending.joules_per_output_token == Approx(450 * r.tpot->value));
  CHECK(*r.spending.joules_per_input_token == Approx(450 * r.ttft->value / 512));
  CHECK(r.spending.power_basis == kPowerBound);
}

TEST_CASE("measured shares add up time, bytes and FLOPs, and no device draws more than its board", "[price]") {
  const hardware::PowerShares shares{.idle = 0.3, .memory = 0.7, .matrix = 1.2};
  const BoardPower board{400, &shares, BytesPerSecond{2e12}, FlopsPerSecond{300e12}};
  const auto watts = [&](double bytes, double flops) {
    return power<double>(board, {Bytes{bytes}, Flops{flops}, Seconds{1}});
  };
  CHECK(watts(0, 0) == Approx(120));
  CHECK(watts(1e12, 0) == Approx(260));           // half the bandwidth: 0.3 + 0.35
  CHECK(watts(1e12, 30e12) == Approx(260 + 48));  // and a tenth of the rate
  CHECK(watts(2e12, 300e12) == Approx(400));
}

namespace {

struct PowerRow {
  std::int64_t tp, prompt, batch, generated;
  double share;              // measured
  std::array<double, 3> at;  // 1, bytes over bandwidth, FLOPs over rate, each over the measured time
};

// Prompts to 1024 tokens: means of longer ones fall to the idle power (0.17 at 8192), which no run draws.
std::vector<PowerRow> power_rows() {
  std::ifstream in(LLMPERF_SOURCE_DIR "/tests/estimate/data/splitwise_power.csv");
  std::vector<PowerRow> rows;
  std::string line;
  while (std::getline(in, line)) {
    if (line.front() == '#' || line.front() == 't') continue;
    std::vector<double> cells;
    for (const std::string_view cell : split(line, ',')) cells.push_back(parse_double(cell).value());
    if (cells[1] > 1024) continue;
    const auto count = [&](std::size_t i) { return static_cast<std::int64_t>(cells[i]); };
    PowerRow row{count(0), count(1), count(2), count(3), cells[4], {1, 0, 0}};
    Choices choices;
    choices.plan.tensor = row.tp;
    hardware::Device roomy = device("a100-sxm-80gb");
    roomy.memory.back().capacity = Bytes{1e13};
    Estimator e(make_setup(decoder("llama-2-70b"), roomy, choices));
    const Estimate r = e.run({row.batch, row.prompt, row.generated});
    const BoardPower board = *e.board();
    const double seconds = cells[5] + cells[6] * (cells[3] - 1);
    for (const Phase& phase : r.phases) {
      const Load load = e.load(phase);
      row.at[1] += load.bytes / board.bandwidth / Seconds{seconds};
      row.at[2] += load.matrix / board.matrix_rate / Seconds{seconds};
    }
    rows.push_back(row);
  }
  return rows;
}

double predicted(const std::array<double, 3>& shares, const PowerRow& row) {
  return shares[0] * row.at[0] + shares[1] * row.at[1] + shares[2] * row.at[2];
}

// Least squares of three shares: Gauss on the normal equations.
std::array<double, 3> fitted(const std::vector<PowerRow>& rows) {
  std::array<std::array<double, 4>, 3> m{};
  for (const PowerRow& row : rows) {
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 3; ++j) m[i][j] += row.at[i] * row.at[j];
      m[i][3] += row.at[i] * row.share;
    }
  }
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < 3; ++k) {
      if (k == i) continue;
      const double factor = m[k][i] / m[i][i];
      for (std::size_t j = 0; j < 4; ++j) m[k][j] -= factor * m[i][j];
    }
  }
  return {m[0][3] / m[0][0], m[1][3] / m[1][1], m[2][3] / m[2][2]};
}

double mean_error(const std::array<double, 3>& shares, const std::vector<PowerRow>& rows) {
  double sum = 0;
  for (const PowerRow& row : rows) sum += std::abs(predicted(shares, row) / row.share - 1);
  return sum / static_cast<double>(rows.size());
}

}  // namespace

TEST_CASE("the A100's shares give the power measured on 2, 4 and 8 of them", "[price]") {
  const std::vector<PowerRow> rows = power_rows();
  REQUIRE(rows.size() == 24);
  const hardware::PowerShares& own = *device("a100-sxm-80gb").power_shares;
  CHECK(mean_error({own.idle, own.memory, own.matrix}, rows) < 0.03);
  const std::array<double, 3> all = fitted(rows);
  CHECK(own.idle == Approx(all[0]).margin(0.006));
  CHECK(own.memory == Approx(all[1]).margin(0.006));
  CHECK(own.matrix == Approx(all[2]).margin(0.06));
}

TEST_CASE("shares fitted without one number of devices give its power within a tenth or so", "[price]") {
  const std::vector<PowerRow> rows = power_rows();
  for (const auto& [tp, most] : {std::pair{2, 0.07}, std::pair{4, 0.05}, std::pair{8, 0.12}}) {
    std::vector<PowerRow> others, left_out;
    for (const PowerRow& row : rows) (row.tp == tp ? left_out : others).push_back(row);
    INFO("tensor " << tp);
    const std::array<double, 3> shares = fitted(others);
    CHECK(mean_error(shares, left_out) < most);
  }
}

TEST_CASE("measured shares make an A100's decode cheaper in energy than its board's power", "[price]") {
  Estimator e = estimator("llama-3-8b", "a100-sxm-80gb", 1);
  const Estimate r = e.run({1, 512, 128});
  CHECK(r.spending.power_basis == kMeasuredPower);
  CHECK(*r.spending.average_power_w <= 400);
  // Without a profile decode takes all of the bandwidth: 0.29 + 0.72 and little more, cut at the board.
  CHECK(*r.spending.joules_per_output_token == Approx(400 * r.tpot->value).epsilon(0.01));
  const Explanation x = explain(e, r, "average_power_w");
  CHECK(x.parts.size() == 2);
  CHECK(x.value == Approx(*r.spending.average_power_w));
}

TEST_CASE("costs are explained down to the price and where it is from", "[price]") {
  Choices choices;
  choices.price = HourPrice{2, "USD", PriceBasis::rent, "a shop", "2026-03"};
  choices.plan.tensor = 4;
  Estimator e(make_setup(decoder("llama-3-8b"), device("h100-sxm"), choices));
  const Estimate r = e.run({1, 512, 128});
  const Explanation hour = explain(e, r, "cost_per_hour");
  CHECK(hour.substituted == "2 * 4");
  CHECK(hour.unit == "USD");
  REQUIRE(hour.notes.size() == 1);
  CHECK(hour.notes[0] == "price of rent: a shop, 2026-03");
  const Explanation tokens = explain(e, r, "cost_per_million_output_tokens");
  CHECK(tokens.formula == "1000000 * cost_per_hour / 3600 / decode_tokens_per_second");
  CHECK(tokens.parts.size() == 2);
}

}  // namespace llmperf::price_test
