#include "estimate/band.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>

#include "base/maths.h"

namespace llmperf::estimate {
namespace {

using hardware::FittedError;
using hardware::RuntimeProfile;
using hardware::Way;

constexpr double kNineOfTen = 1.75;  // standard deviations; 1.645 of a normal distribution, whose tails are thinner
constexpr double kMean = 0.8;        // sqrt(2 / pi)
constexpr double kRms = 1.25;        // of the mean absolute error, likewise
// u0: the noise of medians of published steps; where no such steps (no such op) were measured on the device, what parts
// have in common that a profile takes from elsewhere. Steps and kernels of the H100, the A100 and the RTX 4090 by each
// other's profiles are 10 to 45 % off on the mean, all to one side.
constexpr double kCommon = 0.04;
// Same cores with other memory and links are half as far off, and their parts likewise.
constexpr double kUnmeasured = 0.24;
constexpr double kSameDie = 0.5;

// By Part. `group`: of the profile's errors; `format`: followed by the scheme of the weights. `transferred` is added
// (as squares) to the error measured on another device, `unknown` is the error of a part that was measured nowhere.
struct PartError {
  std::string_view group;
  bool format;
  double transferred;
  double unknown;
};
constexpr PartError kPartErrors[kParts] = {
    {"gemm", false, 0.1, 0.15},               // libraries are alike: 10 to 16 % off on chips of the next generation
    {"gemm", true, 0.15, 0.25},               // kernels of a format are a choice of the stack
    {"moe", false, 0.25, 0.35},               // backends: 7 to 50 us a layer, blocks of 16 to 128 rows
    {"moe", true, 0.25, 0.4},                 //
    {"attention_prefill", false, 0.15, 0.2},  // a kernel for every generation
    {"attention_decode", false, 0.15, 0.2},   // bound by memory, but for short contexts
    {"mla_decode", false, 0.2, 0.35},         //
    {"", false, 0.3, 0.3},                    // small kernels: 1 to 2.2 us each, by what an engine fuses
    {"all_reduce", false, 0.3, 0.4},          // by algorithm: a ring with a library's constants is 130 % off
    {"", false, 0.3, 0.3},                    // a third to two thirds of the link, by host and driver
    {"", false, 0.4, 0.4},                    // the host: .2 to 1.5 ms a step, by engine and era
};

std::optional<double> sigma(const RuntimeProfile& profile, std::string_view group) {
  const FittedError* error = profile.error_of(group);
  return error && error->rows > 0 ? std::optional(kRms * error->widened().mean) : std::nullopt;
}

// What a way adds to the square of the distance.
double added(const hardware::Beyond& beyond) {
  // Of sizes by doublings beyond, to three.
  const double doublings = std::min(maths::log2(std::max(beyond.excess, 1.0)), 3.0);
  switch (beyond.way) {
    case Way::weights:
    case Way::kind: return 1;
    case Way::host_layers: return 0.8;
    case Way::plan: return 0.5;
    case Way::kv: return 0.4;
    case Way::batch:
    case Way::tokens:
    case Way::context:
    case Way::parameters: return 0.1 + 0.2 * doublings;
    case Way::power:  // adds to the width itself
    case Way::device:
    case Way::kernels:
    case Way::era:
    case Way::steps: return 0;  // u0 and the errors of the parts are larger
  }
  return 0;
}

Band of_log(double width, std::int64_t rows = 0) {
  return {maths::exp(width * kMean / kNineOfTen) - 1, maths::exp(width) - 1, rows};
}

}  // namespace

Part part_of(const graph::Op& op) {
  using graph::Tag;
  if (std::holds_alternative<graph::Overhead>(op.body)) return Part::host;
  if (const auto* sent = std::get_if<graph::Transfer>(&op.body); sent && sent->weights) return Part::uploads;
  if (op.place == graph::Place::network || op.place == graph::Place::link) return Part::collectives;
  if (const auto* attention = std::get_if<graph::Attention>(&op.body)) {
    if (attention->shared_kv || attention->qk_dim != attention->v_dim) return Part::latent_attention;
    return attention->q_tokens > 1 && !attention->verifies ? Part::prompt_attention : Part::token_attention;
  }
  const bool of_experts = op.tag >= Tag::routing && op.tag <= Tag::experts_gather;
  if (const auto* gemm = std::get_if<graph::Gemm>(&op.body)) {
    const bool formatted = gemm->weights && gemm->weights->kernel;
    if (of_experts) return formatted ? Part::format_experts : Part::experts;
    return formatted ? Part::format_products : Part::products;
  }
  if (std::holds_alternative<graph::Convolution>(op.body)) return Part::products;
  return of_experts ? Part::experts : Part::small;
}

void normalise(Shares& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (sum <= 0) return;
  for (double& share : shares) share /= sum;
}

Shares shares_of(std::span<const OpEstimate> ops) {
  Shares shares = {};
  for (const OpEstimate& op : ops) shares[static_cast<std::size_t>(part_of(op.op))] += op.step_time().value;
  normalise(shares);
  return shares;
}

double error_of(Part part, const RuntimeProfile& profile, const hardware::StepSize& step) {
  const PartError& usual = kPartErrors[static_cast<std::size_t>(part)];
  if (usual.group.empty()) return usual.unknown;
  const std::string group = fmt::format("{} {}", usual.group, usual.format ? step.weights : "dense");
  std::optional<double> known = sigma(profile, group);
  if (!known && !usual.format) known = sigma(profile, usual.group);
  if (!known) return usual.unknown;
  const bool own = profile.hardware == step.device && profile.borrowed.empty();
  const double transferred = own ? 0 : usual.transferred * (profile.same_die ? kSameDie : 1);
  return std::sqrt(*known * *known + transferred * transferred);
}

double distance(std::span<const hardware::Beyond> beyond) {
  double square = 1;
  for (const hardware::Beyond& way : beyond) square += added(way);
  return std::sqrt(square);
}

Band band_of(const FittedError& error) {
  const FittedError wide = error.widened();
  return {wide.mean, wide.p90, error.rows};
}

Band band_of(const RuntimeProfile& profile, const hardware::StepSize& step, const Shares& shares,
             std::string_view measured, std::span<const hardware::Beyond> beyond) {
  // Of a class that states errors, they are those of devices left out.
  const bool by_class = profile.hardware.empty() && profile.range.rows > 0;
  double clock = 0;
  for (const hardware::Beyond& way : beyond) clock += way.way == Way::power ? maths::log(way.excess) : 0;
  const FittedError* whole = by_class || profile.hardware == step.device ? profile.error_of(measured) : nullptr;
  // Rows without uploads say nothing of them.
  constexpr auto kUploads = static_cast<std::size_t>(Part::uploads);
  const double uploads = kNineOfTen * shares[kUploads] * kPartErrors[kUploads].unknown;
  if (whole && beyond.empty() && uploads <= 0) return band_of(*whole);
  const auto both = [](double a, double b) { return std::sqrt(a * a + b * b); };
  const auto with_clock = [&](double width, std::int64_t rows = 0) { return of_log(both(width, clock), rows); };
  if (whole && by_class) {
    return with_clock(both(maths::log(1 + whole->widened().p90) * distance(beyond), uploads), whole->rows);
  }
  const double common = whole ? kCommon : kUnmeasured * (profile.same_die ? kSameDie : 1);
  double square = common * common;
  for (std::size_t i = 0; i < kParts; ++i) {
    if (shares[i] <= 0) continue;
    const double part = shares[i] * error_of(static_cast<Part>(i), profile, step);
    square += part * part;
  }
  const double width = kNineOfTen * std::sqrt(square);
  // Without steps of the phase there is nothing to be far from: the range is that of another's.
  if (!whole) return with_clock(width);
  return with_clock(std::max(width, maths::log(1 + whole->widened().p90)) * distance(beyond));
}

}  // namespace llmperf::estimate
