#include "estimate/acceptance.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "descriptor/node.h"

namespace llmperf::estimate {
namespace {

double rate_value(std::string_view text) {
  const std::optional<double> rate = parse_double(text);
  if (rate && *rate >= 0 && *rate <= 1) return *rate;
  throw Error::bad_input(fmt::format("`accept`: {} is not a chance between 0 and 1", quote(text)),
                         "0.8, or 0.85,0.7,0.6 for the first, second and later tokens, or a file of such numbers");
}

}  // namespace

double Acceptance::of(std::int64_t token) const {
  return rates[std::min(static_cast<std::size_t>(token), rates.size() - 1)];
}

std::string Acceptance::text() const {
  std::string text;
  for (const double rate : rates) text += fmt::format("{}{}", text.empty() ? "" : ", ", format_significant(rate));
  return text;
}

double expected_tokens(const Acceptance& acceptance, std::int64_t length) {
  double sum = 1;
  double kept = 1;
  for (std::int64_t i = 0; i < length; ++i) {
    kept *= acceptance.of(i);
    sum += kept;
  }
  return sum;
}

Acceptance parse_acceptance(const std::string& text) {
  std::string list = text;
  std::error_code none;
  if (!parse_double(text) && std::filesystem::is_regular_file(text, none)) {
    list = descriptor::read_text_file(text, 1 << 20);
    std::ranges::replace(list, '\n', ',');
    while (list.ends_with(',')) list.pop_back();
  } else {
    std::ranges::replace(list, '/', ',');
  }
  std::vector<double> rates;
  for (const std::string_view rate : split(list, ',')) rates.push_back(rate_value(trim(rate)));
  return Acceptance(std::move(rates));
}

}  // namespace llmperf::estimate
