// What a run costs and what it draws, from the price of a device-hour, the number of devices, a time and its tokens.
//
//   cost per hour           = price of a device-hour x devices
//   cost per million tokens = 1e6 x cost per hour / 3600 / tokens per second
//   joules per token        = power of all devices / tokens per second
//
// Power is the board's, an upper bound, unless the device's file has shares of it that were measured (PowerShares).
// Then energy is made of time, bytes and FLOPs (Choi et al., A Roofline Model of Energy, IPDPS 2013), as shares of the
// board power:
//
//   power of a device = board power x min(1, idle + memory x bytes / bandwidth / time + matrix x FLOPs / rate / time)
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/term.h"
#include "base/units.h"
#include "hardware/device.h"

namespace llmperf::estimate {

// Where an hourly price is from: an offer to let the device, on demand or as long as it lasts; a purchase price, spread
// over kServiceHours; the request.
enum class PriceBasis : unsigned char { rent, spot, derived, given };
std::string_view name(PriceBasis basis);

// Of one device for an hour.
struct HourPrice {
  double amount = 0;
  std::string currency = {};
  PriceBasis basis = PriceBasis::given;
  std::string source = {};
  std::string date = {};     // may be empty
  std::string text() const;  // "rent: Lambda, 2026-09-25"
};

// A bought device is paid for in three years without a pause, and with board power all the while.
inline constexpr double kServiceHours = 3 * 8760;
inline constexpr double kUsdPerKilowattHour = 0.12;  // a data centre's, assumed; in other currencies none is added

// The median of the offers on demand, of an even number the lower of the two in the middle, so that it is one that was
// made; without any the same of those on spot; without any the lowest purchase price spread over its service. Nothing
// where the file has no price.
std::optional<HourPrice> hour_price(const hardware::Device& device);
// The mean over unlike devices; nothing where one has no price, or another currency.
std::optional<HourPrice> mean_price(std::span<const std::optional<HourPrice>> prices);

inline constexpr std::string_view kMeasuredPower = "measured shares of board power";
inline constexpr std::string_view kPowerBound = "board power, upper bound";
// What a device draws.
struct BoardPower {
  double watts = 0;
  const hardware::PowerShares* shares = nullptr;  // null: all of it, an upper bound
  BytesPerSecond bandwidth;
  FlopsPerSecond matrix_rate;
  std::string_view basis() const { return shares ? kMeasuredPower : kPowerBound; }
};
// What one device does in a time.
struct Load {
  Bytes bytes;
  Flops matrix;
  Seconds time;
};

// ---- The formulas, computed or explained (base/term.h).

template <class N>
N cost_per_hour(double price, double devices, std::string_view currency) {
  const Let<N> let;
  return let("price", price, "{} for an hour of one device", currency) * let("devices", devices, "devices of the plan");
}

template <class N>
N cost_per_million(const N& cost_per_hour, const N& per_second) {
  return 1e6 * cost_per_hour / 3600 / per_second;
}

// Of one device.
template <class N>
N power(const BoardPower& board, const Load& load) {
  using std::min;
  const Let<N> let;
  const N watts = let("board_power", board.watts, "W of one device at most");
  if (board.shares == nullptr) return watts;
  const hardware::PowerShares& shares = *board.shares;
  const N time = let("time_s", load.time.value, "s");
  const N drawn = let("idle", shares.idle, "share of it that a busy device draws at least, measured") +
                  let("memory", shares.memory, "share that full memory bandwidth adds, measured") *
                      let("bytes", load.bytes.value, "B that the device moves in that time") /
                      let("bandwidth", board.bandwidth.value, "B/s") / time +
                  let("matrix", shares.matrix, "share that the full rate of matrix products adds, measured") *
                      let("matrix_flops", load.matrix.value, "FLOP of matrix products of the device in that time") /
                      let("matrix_rate", board.matrix_rate.value, "FLOP/s") / time;
  return watts * min(N(1), drawn);
}

// What an estimate costs; nothing where price or power are not known, or where there is no such token.
struct Spending {
  std::optional<double> cost_per_hour;
  std::optional<double> cost_per_million_input_tokens;    // the prefill's time over the tokens of the prompts
  std::optional<double> cost_per_million_output_tokens;   // the decode steps' over the tokens that they keep
  std::optional<double> request_cost_per_million_output;  // all the time over all generated tokens
  std::optional<double> average_power_w;                  // of all devices
  std::optional<double> joules_per_input_token;
  std::optional<double> joules_per_output_token;
  std::string_view power_basis = kPowerBound;
};

// Of devices that are busy for a time, at the price and with the board power that one of them has.
struct Spent {
  std::optional<double> cost_per_hour;
  std::optional<double> cost;
  std::optional<double> power_w;  // an upper bound
  std::optional<double> joules;
};
Spent spent(const std::optional<HourPrice>& price, std::optional<double> board_w, double devices, Seconds time);

}  // namespace llmperf::estimate
