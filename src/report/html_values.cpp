#include "report/html_values.h"

#include <algorithm>
#include <iterator>

#include "base/number.h"

namespace llmperf::report {
namespace {

bool one_of(std::string_view key, std::initializer_list<std::string_view> keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

// What lies in memory, where it is not what moves.
bool is_capacity(std::string_view key, std::string_view parent) {
  return one_of(parent, {"memory", "host_memory", "stages"}) ||
         one_of(key, {"capacity_bytes", "total_bytes", "reserve_bytes", "memory_capacity_bytes", "memory_bytes",
                      "sram_bytes", "sram_capacity_bytes", "size_bytes", "from_bytes", "kv_cache_bytes", "file_bytes",
                      "host_memory_capacity_bytes", "host_total_bytes", "host_capacity_bytes", "compute_buffer_bytes",
                      "device_weight_bytes", "gradient_bytes", "optimizer_bytes", "workspace_bytes"});
}

bool is_share(std::string_view key) {
  return key.ends_with("utilisation") || key.ends_with("_ape") || key.ends_with("mape") || key.ends_with("_error") ||
         key.ends_with("_share") || key.ends_with("_ratio_change") || key.starts_with("relative") ||
         one_of(key, {"share", "mfu", "hfu", "of_bound", "of_roof", "bias", "error", "tolerance", "shrinkage",
                      "acceptance", "change_relative"});
}

std::string number_text(double v, std::string_view key, std::string_view parent) {
  if (key.ends_with("flops_per_s")) return format_flops_rate(FlopsPerSecond{v});
  if (key.ends_with("bytes_per_s")) return format_bandwidth(BytesPerSecond{v});
  if (key.ends_with("_s") && !key.ends_with("_per_s")) return format_seconds(Seconds{v});
  if (key == "bytes" || key.ends_with("_bytes") || key.starts_with("kv_bytes_per_") || key.starts_with("bytes_")) {
    return is_capacity(key, parent) ? format_bytes_binary(Bytes{v}) : format_bytes(Bytes{v});
  }
  if (key == "flops" || key.ends_with("_flops")) return format_flops(Flops{v});
  if (is_share(key)) return format_share(v);
  if (key.ends_with("_hz")) return format_significant(v / 1e9) + " GHz";
  if (key.ends_with("_w")) return format_significant(v) + " W";
  if (key.ends_with("_usd")) return "$" + format_count(v);
  const bool whole = v == std::floor(v) && std::abs(v) < 1e15;
  if (whole) return one_of(key, {"line", "schema_version"}) ? plain(v) : format_count(v);
  return format_significant(v);
}

}  // namespace

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
  if (value.is_number()) return {number_text(value.get<double>(), key, parent), value.dump()};
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
