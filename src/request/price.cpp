#include "request/price.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "descriptor/csv.h"
#include "descriptor/reader.h"
#include "hardware/device.h"

namespace llmperf::request {
namespace {

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
  for (const auto& entry : devices ? devices->node().entries : std::vector<descriptor::Node::Entry>()) {
    const bool plain = entry.value.kind == descriptor::Node::Kind::scalar;
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

Prices read_csv(const std::string& path) {
  const std::string text = descriptor::read_text_file(path);
  Problems problems(path);
  descriptor::CsvReader csv(text, problems);
  constexpr std::array<std::string_view, 5> kColumns = {"device", "amount", "currency", "source", "date"};
  std::array<std::optional<std::size_t>, kColumns.size()> at;
  if (csv.next()) {
    for (std::size_t i = 0; i < csv.cells().size(); ++i) {
      const auto& cell = csv.cells()[i];
      const auto known = std::ranges::find(kColumns, cell.text);
      if (known == kColumns.end()) {
        problems.add(csv.line(), cell.column, "unknown column " + quote(cell.text),
                     name_hint(cell.text, std::vector<std::string>(kColumns.begin(), kColumns.end())));
      } else {
        at[static_cast<std::size_t>(known - kColumns.begin())] = i;
      }
    }
  }
  for (const std::size_t needed : {std::size_t{0}, std::size_t{1}}) {
    if (!at[needed]) problems.add(1, 1, fmt::format("missing column {}", quote(kColumns[needed])));
  }
  problems.throw_if_any();
  Prices prices;
  while (csv.next()) {
    const auto problem = [&](std::size_t column, std::string message) {
      const std::size_t i = at[column].value_or(0);
      problems.add(csv.line(), i < csv.cells().size() ? csv.cells()[i].column : 1, std::move(message));
    };
    const auto cell = [&](std::size_t column, const std::string& fallback) {
      const bool given = at[column] && *at[column] < csv.cells().size() && !csv.cells()[*at[column]].text.empty();
      return given ? csv.cells()[*at[column]].text : fallback;
    };
    HourPrice price{.currency = cell(2, "USD"), .source = cell(3, path), .date = cell(4, "")};
    price.amount = parse_double(cell(1, "")).value_or(0);
    if (!is_amount(price.amount)) problem(1, fmt::format("{} is no price of an hour", quote(cell(1, ""))));
    if (!hardware::is_currency(price.currency)) {
      problem(2, fmt::format("{} is no currency: three capital letters", quote(price.currency)));
    }
    if (!price.date.empty() && !hardware::is_date(price.date)) {
      problem(4, fmt::format("{} is no year, month or day", quote(price.date)));
    }
    const std::string device = cell(0, "");
    if (device.empty()) problem(0, "a price without a device");
    if (!prices.emplace(device_name(device), price).second) problem(0, "second price of " + quote(device));
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
