#include "report/html_values.h"

#include <algorithm>

#include "base/number.h"
#include "report/quantity.h"

namespace llmperf::report {
const Json* find(const Json& json, std::string_view path) {
  const Json* at = &json;
  while (!path.empty()) {
    const std::string key(path.substr(0, path.find('.')));
    path.remove_prefix(std::min(path.size(), key.size() + 1));
    if (at->is_object()) {
      const auto found = at->find(key);
      if (found == at->end()) return nullptr;
      at = &*found;
    } else if (at->is_array() && parse_int(key)) {
      const auto index = static_cast<std::size_t>(*parse_int(key));
      if (index >= at->size()) return nullptr;
      at = &(*at)[index];
    } else {
      return nullptr;
    }
  }
  return at;
}

std::optional<double> find_number(const Json& json, std::string_view path) {
  const Json* value = find(json, path);
  return value != nullptr && value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
}

std::string find_text(const Json& json, std::string_view path) {
  const Json* value = find(json, path);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

bool is_list_of_objects(const Json& value) {
  return value.is_array() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](const Json& item) { return item.is_object(); });
}

HtmlCell shown(const Json& value, std::string_view key, std::string_view parent, const Labels& labels) {
  if (value.is_null()) return {labels.text("nothing"), {}};
  if (value.is_boolean()) return {labels.text(value.get<bool>() ? "yes" : "no"), {}};
  if (value.is_number()) return {quantity_text(key, value.get<double>(), parent), value.dump()};
  const std::string text = value.get<std::string>();
  if (key.ends_with("provenance")) return {labels.value("provenance", text), text, true};
  return {labels.value(key, text), {}};
}

HtmlCell shown_with_unit(double value, const std::string& unit) {
  const std::string exact = Json(number(value)).dump();
  if (unit == "B") return {format_bytes(Bytes{value}), exact};
  if (unit == "B/s") return {format_bandwidth(BytesPerSecond{value}), exact};
  if (unit == "FLOP") return {format_flops(Flops{value}), exact};
  if (unit == "FLOP/s") return {format_flops_rate(FlopsPerSecond{value}), exact};
  if (unit == "s") return {format_seconds(Seconds{value}), exact};
  return {format_significant(value) + (unit.empty() ? "" : " " + unit), exact};
}

}  // namespace llmperf::report
