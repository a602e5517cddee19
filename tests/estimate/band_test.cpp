// Bands follow from the errors of parts by their shares, and widen with distance.
#include "estimate/band.h"

#include <cmath>

#include "catch.h"

namespace llmperf::estimate::band_test {
namespace {

using hardware::Beyond;
using hardware::RuntimeProfile;
using hardware::StepSize;
using hardware::Way;

constexpr double kCommon = 0.04;      // of steps that were measured
constexpr double kUnmeasured = 0.24;  // of others

RuntimeProfile profile() {
  RuntimeProfile p;
  p.hardware = "toybox";
  // So many rows that nothing is widened.
  p.errors = {{"gemm", 0.08, 0.2, 0, 1'000'000'000},
              {"gemm fp8", 0.16, 0.4, 0, 1'000'000'000},
              {"decode", 0.05, 0.1, 0, 1'000'000'000}};
  return p;
}
const StepSize kStep{.weights = "fp8", .device = "toybox"};

Shares only(Part part, double share = 1) {
  Shares shares = {};
  shares[static_cast<std::size_t>(part)] = share;
  return shares;
}

double width(const Band& band) { return std::log1p(band.p90); }
double of_parts(const Shares& shares) { return width(band_of(profile(), kStep, shares, "prefill", {})); }

}  // namespace

TEST_CASE("a band of one part is 1.75 of what its error and that of all steps come to", "[band]") {
  CHECK(error_of(Part::products, profile(), kStep) == Approx(0.1));         // 1.25 x .08
  CHECK(error_of(Part::format_products, profile(), kStep) == Approx(0.2));  // of its scheme
  const Band band = band_of(profile(), kStep, only(Part::products), "prefill", {});
  CHECK(width(band) == Approx(1.75 * std::sqrt(kUnmeasured * kUnmeasured + 0.1 * 0.1)));
  CHECK(std::log1p(band.mean) == Approx(0.8 * std::sqrt(kUnmeasured * kUnmeasured + 0.1 * 0.1)));
  CHECK(band.rows == 0);
}

TEST_CASE("what is borrowed widens the band, from the same cores by half", "[band]") {
  RuntimeProfile p = profile();
  p.hardware = "another";
  CHECK(error_of(Part::products, p, kStep) == Approx(std::sqrt(0.1 * 0.1 + 0.1 * 0.1)));
  p.same_die = true;
  CHECK(error_of(Part::products, p, kStep) == Approx(std::sqrt(0.1 * 0.1 + 0.05 * 0.05)));
  CHECK(width(band_of(p, kStep, only(Part::products), "prefill", {})) ==
        Approx(1.75 * std::sqrt(kUnmeasured * kUnmeasured / 4 + 0.1 * 0.1 + 0.05 * 0.05)));
  p = profile();
  p.borrowed = "kernels of vllm";  // of this device, and another engine's
  CHECK(error_of(Part::products, p, kStep) == Approx(std::sqrt(0.1 * 0.1 + 0.1 * 0.1)));
}

TEST_CASE("parts add up as squares, each by its share", "[band]") {
  Shares shares = only(Part::products, 0.6);
  shares[static_cast<std::size_t>(Part::format_products)] = 0.4;
  CHECK(of_parts(shares) == Approx(1.75 * std::sqrt(kUnmeasured * kUnmeasured + 0.06 * 0.06 + 0.08 * 0.08)));
}

TEST_CASE("inside of the range the errors of steps left out are the band", "[band]") {
  const Band band = band_of(profile(), kStep, only(Part::host), "decode", {});
  CHECK(band.mean == Approx(0.05));
  CHECK(band.p90 == Approx(0.1));
  CHECK(band.rows == 1'000'000'000);
  // Outside the parts count, if they say more.
  const Beyond batch[] = {{Way::batch, "batch 9 (fitted up to 8)", 9.0 / 8}};
  const Band beyond = band_of(profile(), kStep, only(Part::host), "decode", batch);
  CHECK(beyond.rows == 0);
  CHECK(beyond.p90 > band.p90);
  CHECK(width(band_of(profile(), kStep, {}, "decode", batch)) == Approx(std::log(1.1) * distance(batch)));
  CHECK(width(band_of(profile(), kStep, only(Part::format_products), "decode", batch)) ==
        Approx(1.75 * std::sqrt(kCommon * kCommon + 0.2 * 0.2) * distance(batch)));
}

TEST_CASE("weights that a host sends widen the band of a class, whose rows have none", "[band]") {
  RuntimeProfile of_class = profile();
  of_class.hardware.clear();
  of_class.range.rows = 100;
  const auto band = [&](double uploads) {
    Shares shares = only(Part::products, 1 - uploads);
    shares[static_cast<std::size_t>(Part::uploads)] = uploads;
    return width(band_of(of_class, kStep, shares, "decode", {}));
  };
  CHECK(band(0) == Approx(std::log1p(0.1)));
  // 0.3 of their time, 1.75 of that for nine of ten.
  CHECK(band(0.8) == Approx(std::hypot(std::log1p(0.1), 1.75 * 0.8 * 0.3)));
  const model::StoredFormat stored{.bits = 4.5};
  CHECK(part_of({.name = "send_weights", .place = graph::Place::link, .body = graph::Transfer{.weights = &stored}}) ==
        Part::uploads);
}

TEST_CASE("a part that was measured on another device, or nowhere, is known less", "[band]") {
  const StepSize elsewhere{.weights = "fp8", .device = "other"};
  CHECK(error_of(Part::products, profile(), elsewhere) > error_of(Part::products, profile(), kStep));
  CHECK(error_of(Part::format_products, profile(), elsewhere) > error_of(Part::format_products, profile(), kStep));
  const StepSize unseen{.weights = "mxfp4", .device = "toybox"};
  CHECK(error_of(Part::format_products, profile(), unseen) > error_of(Part::format_products, profile(), kStep));
  // Steps of another device are no promise here.
  CHECK(band_of(profile(), elsewhere, only(Part::products), "decode", {}).rows == 0);
}

TEST_CASE("every way but a device's widens, and sizes the more the farther, to a bound", "[band]") {
  CHECK(distance({}) == 1);
  for (const Way way : {Way::batch, Way::tokens, Way::context, Way::parameters, Way::weights, Way::kv, Way::plan,
                        Way::kind, Way::host_layers}) {
    const Beyond one[] = {{way, "", 1.2}};
    CHECK(distance(one) > 1);
    const Beyond two[] = {{way, "", 1.2}, {Way::batch, "", 1.5}};
    CHECK(distance(two) > distance(one));
  }
  double before = 1;
  for (double excess = 1; excess < 1e4; excess *= 1.5) {
    const Beyond far[] = {{Way::context, "", excess}};
    CHECK(distance(far) >= before);
    before = distance(far);
  }
  std::vector<Beyond> all;
  for (const Way way : {Way::device, Way::batch, Way::tokens, Way::context, Way::parameters, Way::weights, Way::kv,
                        Way::plan, Way::kind, Way::host_layers}) {
    all.push_back({way, "", 1e6});
  }
  CHECK(distance(all) < 4);
  // What the profile never saw is farther than what is larger.
  const Beyond kind[] = {{Way::kind, ""}};
  const Beyond plan[] = {{Way::plan, ""}};
  CHECK(distance(kind) > distance(plan));
}

TEST_CASE("what a power limit leaves in doubt of the clock is added to the width, as squares", "[band]") {
  const std::vector<Beyond> limited = {{Way::power, "a limit", 1.2}};
  const Shares shares = only(Part::products);
  const double without = width(band_of(profile(), kStep, shares, "decode", {}));
  const double parts = 1.75 * std::sqrt(kCommon * kCommon + 0.1 * 0.1);
  CHECK(width(band_of(profile(), kStep, shares, "decode", limited)) ==
        Approx(std::hypot(std::max(parts, without), std::log(1.2))));
  CHECK(width(band_of(profile(), kStep, shares, "prefill", limited)) ==
        Approx(std::hypot(of_parts(shares), std::log(1.2))));
}

TEST_CASE("shares of ops add up to one", "[band]") {
  std::vector<OpEstimate> ops(3);
  ops[0].op.body = graph::Gemm{};
  ops[0].op.count = 3;
  ops[0].time.total = Seconds{2};
  graph::Attention attention;
  attention.q_tokens = 1;
  ops[1].op.body = attention;
  ops[1].time.total = Seconds{3};
  ops[2].op.body = graph::Overhead{};
  ops[2].time.total = Seconds{1};
  for (std::size_t i : {1U, 2U}) ops[i].op.count = 1;
  const Shares shares = shares_of(ops);
  CHECK(shares[static_cast<std::size_t>(Part::products)] == Approx(0.6));
  CHECK(shares[static_cast<std::size_t>(Part::token_attention)] == Approx(0.3));
  CHECK(shares[static_cast<std::size_t>(Part::host)] == Approx(0.1));
}

}  // namespace llmperf::estimate::band_test
