#include "request/price.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "descriptor/csv.h"
#include "descriptor/reader.h"
#include "hardware/device.h"

namespace llmperf::request {
namespace {

using descriptor::Node;
using descriptor::Problems;
using descriptor::Reader;
using estimate::HourPrice;
using Prices = std::map<std::string, HourPrice>;

constexpr double kMinAmount = 1e-6;
constexpr double kMaxAmount = 1e9;

bool is_amount(double value) { return value >= kMinAmount && value <= kMaxAmount; }

// The name of the built-in device that is called so; any other name as it stands.
std::string device_name(const std::string& text) {
  const std::vector<std::string> names = descriptor::names(descriptor::Kind::device);
  if (std::ranges::find(names, text) != names.end() || descriptor::is_path(text)) return text;
  try {
    return hardware::load_device(text).name;
  } catch (const Error&) {
    return text;
  }
}

// Currency, source and date of a mapping, each where it says none that of `rest`.
HourPrice read_terms(Reader& reader, const HourPrice& rest) {
  HourPrice price = rest;
  price.currency = reader.string_or("currency", rest.currency);
  price.source = reader.string_or("source", rest.source);
  price.date = reader.string_or("date", rest.date);
  if (!hardware::is_currency(price.currency)) {
    reader.problem("currency", fmt::format("'currency' must be three capital letters, not {}", quote(price.currency)),
                   "USD");
  }
  if (!price.date.empty() && !hardware::is_date(price.date)) {
    reader.problem("date", fmt::format("'date' must be a year, a month or a day, not {}", quote(price.date)),
                   "2026-03 or 2026-03-31");
  }
  return price;
}

Prices read_yaml(const std::string& path) {
  const descriptor::Document document = descriptor::parse_file(path);
  Problems problems(document.file);
  Reader file(document.root, problems, "prices");
  const HourPrice rest = read_terms(file, {.currency = "USD", .source = path});
  Prices prices;
  std::optional<Reader> devices = file.optional_mapping("devices");
  if (!devices && !file.has("devices")) file.problem("devices", "missing key 'devices' in prices");
  for (const auto& entry : devices ? devices->node().entries : std::vector<Node::Entry>()) {
    const bool plain = entry.value.kind == Node::Kind::scalar;
    const std::string key = plain ? entry.key : "amount";
    Reader own(plain ? devices->node() : entry.value, problems, "price");
    HourPrice price = plain ? rest : read_terms(own, rest);
    price.amount = own.require_double(key, kMinAmount, kMaxAmount);
    if (!plain) own.finish();
    if (!prices.emplace(device_name(entry.key), price).second) {
      problems.add(entry.line, entry.column, fmt::format("second price of {}", quote(entry.key)));
    }
  }
  file.finish();
  problems.throw_if_any();
  return prices;
}

// Each line a mapping from the header's words.
Prices read_csv(const std::string& path) {
  Problems problems(path);
  const Node table = descriptor::read_csv_file(path, problems);
  Prices prices;
  for (std::size_t i = 1; i < table.items.size(); ++i) {
    const Node& line = table.items[i];
    Node cells;
    cells.kind = Node::Kind::mapping;
    cells.line = line.line;
    cells.column = 1;
    for (std::size_t c = 0; c < std::min(line.items.size(), table.items[0].items.size()); ++c) {
      const Node& column = table.items[0].items[c];
      if (!line.items[c].scalar.empty()) {
        cells.entries.push_back({column.scalar, column.line, column.column, line.items[c]});
      }
    }
    Reader own(cells, problems, "price");
    HourPrice price = read_terms(own, {.currency = "USD", .source = path});
    price.amount = own.require_double("amount", kMinAmount, kMaxAmount);
    const std::string device = own.require_string("device");
    own.finish();
    if (!prices.emplace(device_name(device), price).second) problems.add(line, "second price of " + quote(device));
  }
  problems.throw_if_any();
  return prices;
}

}  // namespace

std::optional<HourPrice> parse_price(const std::string& text) {
  std::string_view amount = text;
  if (amount.ends_with("/h")) amount.remove_suffix(2);
  std::string currency = "USD";
  if (amount.size() > 3 && hardware::is_currency(amount.substr(amount.size() - 3))) {
    currency = amount.substr(amount.size() - 3);
    amount.remove_suffix(3);
  }
  const std::optional<double> value = parse_double(trim(amount));
  if (!value && descriptor::is_path(text)) return std::nullopt;
  if (!value || !is_amount(*value)) {
    throw Error::bad_input(
        fmt::format("`price`: {} is neither a price of a device-hour nor a YAML or CSV file", quote(text)),
        "2.5 (USD), 2.5EUR, or prices.yaml");
  }
  return HourPrice{.amount = *value, .currency = std::move(currency)};
}

Prices load_prices(const std::string& path) { return path.ends_with(".csv") ? read_csv(path) : read_yaml(path); }

}  // namespace llmperf::request
