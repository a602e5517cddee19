#include "estimate/price.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "base/number.h"

namespace llmperf::estimate {
namespace {

constexpr std::array<std::string_view, 4> kBasisNames = {"rent", "spot", "derived", "given"};

std::vector<const hardware::Price*> offers(const hardware::Device& device, hardware::Offer kind) {
  std::vector<const hardware::Price*> found;
  for (const hardware::Price& price : device.prices) {
    if (price.kind == kind) found.push_back(&price);
  }
  std::ranges::stable_sort(found, {}, &hardware::Price::amount);
  return found;
}

}  // namespace

std::string_view name(PriceBasis basis) { return kBasisNames[static_cast<std::size_t>(basis)]; }

std::string HourPrice::text() const {
  std::string text(name(basis));
  if (!source.empty()) text += ": " + source;
  if (!date.empty()) text += ", " + date;
  return text;
}

std::optional<HourPrice> hour_price(const hardware::Device& device) {
  for (const auto& [kind, basis] :
       {std::pair{hardware::Offer::rent, PriceBasis::rent}, std::pair{hardware::Offer::spot, PriceBasis::spot}}) {
    const std::vector<const hardware::Price*> found = offers(device, kind);
    if (found.empty()) continue;
    const hardware::Price& p = *found[(found.size() - 1) / 2];
    return HourPrice{p.amount, p.currency, basis, p.source, p.date};
  }
  const std::vector<const hardware::Price*> bought = offers(device, hardware::Offer::purchase);
  if (bought.empty()) return std::nullopt;
  const hardware::Price& p = *bought.front();
  HourPrice derived{p.amount / kServiceHours, p.currency, PriceBasis::derived,
                    fmt::format("{} {} {} over 3 years", p.source, format_significant(p.amount), p.currency), p.date};
  if (device.power_w && p.currency == "USD") {
    derived.amount += *device.power_w / 1000 * kUsdPerKilowattHour;
    derived.source += fmt::format(" and {} W at {} USD/kWh", format_significant(*device.power_w), kUsdPerKilowattHour);
  }
  return derived;
}

std::optional<HourPrice> mean_price(std::span<const std::optional<HourPrice>> prices) {
  std::optional<HourPrice> mean;
  for (const std::optional<HourPrice>& price : prices) {
    if (!price || (mean && price->currency != mean->currency)) return std::nullopt;
    if (!mean) {
      mean = price;
      continue;
    }
    mean->amount += price->amount;
    // What they differ in is not one offer's.
    if (mean->basis == price->basis && mean->source == price->source && mean->date == price->date) continue;
    if (mean->basis != price->basis) mean->basis = PriceBasis::derived;
    if (mean->source.find(price->source) == std::string::npos) mean->source += " and " + price->source;
    if (mean->date != price->date) mean->date.clear();
  }
  if (mean) mean->amount /= static_cast<double>(prices.size());
  return mean;
}

Spent spent(const std::optional<HourPrice>& price, std::optional<double> board_w, double devices, Seconds time) {
  Spent s;
  if (price) s.cost_per_hour = cost_per_hour<double>(price->amount, devices, {});
  if (s.cost_per_hour) s.cost = *s.cost_per_hour * time.value / 3600;
  if (board_w) s.power_w = *board_w * devices;
  if (s.power_w) s.joules = *s.power_w * time.value;
  return s;
}

}  // namespace llmperf::estimate
