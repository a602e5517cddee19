// What an hour of a device costs, as a request says it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "estimate/price.h"

namespace llmperf::request {

// "2.5", "2.5USD", "2.5 EUR/h": of every device. Nothing where it is the path of a file. Throws Error(bad_input) for
// what is neither.
std::optional<estimate::HourPrice> parse_price(const std::string& text);

// A file of prices by device, each of one device for an hour, by the device's own name where a built-in one is meant.
//
//   currency: USD                  of all that say no other; as source and date
//   devices:
//     h100-sxm: 2.1
//     mi300x: {amount: 1.9, currency: EUR, source: offer of May, date: 2026-05}
//
// or CSV with the columns device and amount, and where wanted currency, source and date. Throws Error(bad_input) with
// every problem and its position.
std::map<std::string, estimate::HourPrice> load_prices(const std::string& path);

}  // namespace llmperf::request
