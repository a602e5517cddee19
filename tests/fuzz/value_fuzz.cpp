// The parsers of single values and the suggestions for misspelt names: any text gives a value within its rules or
// nothing.
#include <cmath>
#include <string>

#include "base/dtype.h"
#include "base/number.h"
#include "base/text.h"
#include "fuzz.h"

namespace {

using namespace llmperf;

template <class Quantity>
void require_sane(const std::optional<Quantity>& quantity) {
  if (quantity) require(std::isfinite(quantity->value) && quantity->value >= 0);
}

}  // namespace

void fuzz_value(std::string_view text) {
  if (const auto value = parse_int(text)) require(std::to_string(*value) == text || text == "-0");
  if (const auto value = parse_double(text)) {
    require(std::isfinite(*value));
    require(!format_significant(*value).empty());
    require(!format_count(*value).empty() && !format_share(*value).empty());
    require(!format_bytes(Bytes{*value}).empty() && !format_seconds(Seconds{*value}).empty());
  }
  require_sane(parse_bytes(text));
  require_sane(parse_bytes_per_second(text));
  require_sane(parse_flops_per_second(text));
  require_sane(parse_seconds(text));
  if (const auto dtype = parse_dtype(text)) require(name(*dtype) == text);

  static const std::vector<std::string> kNames = {"qwen-7b", "llama-3-70b", "mixtral-8x7b", "rtx4090", "模型"};
  require(nearest_names(text, kNames).size() <= 3);
  require(!name_hint(text, kNames).empty());
  require(display_width(quote(text)) <= 70);
  require(display_width(pad(text, 20, true)) >= 20);
}
