#include "report/quantity.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "base/number.h"
#include "result/document.h"
#include "result/row.h"

namespace llmperf::report {
namespace {

bool one_of(std::string_view key, std::initializer_list<std::string_view> keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

// What lies in memory, where it is not what moves.
bool is_capacity(std::string_view key, std::string_view parent) {
  return one_of(parent, {"memory", "host_memory", "stages"}) ||
         (one_of(key, {"weight_bytes", "activation_bytes"}) && one_of(parent, {"", "rows"})) ||  // of a model, a result
         key.ends_with("capacity_bytes") || key.ends_with("sram_bytes") || result::unit_of(key) == result::Unit::held;
}

bool is_bytes(std::string_view key) {
  return key == "bytes" || key.ends_with("_bytes") || key.starts_with("bytes_") ||
         key.find("bytes_per_") != std::string_view::npos;
}

std::string plain_number(std::string_view key, double v) {
  const bool whole = v == std::floor(v) && v < 1e15;
  return !whole ? number_text(v) : one_of(key, {"line", "schema_version"}) ? result::plain(v) : format_count(v);
}

std::string magnitude(std::string_view key, double v, std::string_view parent) {
  if (key.ends_with("flops_per_s")) return format_flops_rate(FlopsPerSecond{v});
  if (key.ends_with("bytes_per_s")) return format_bandwidth(BytesPerSecond{v});
  if (key.ends_with("_s") && !key.ends_with("_per_s")) return v == 0 ? "0 s" : format_seconds(Seconds{v});
  if (is_bytes(key)) return is_capacity(key, parent) ? format_bytes_binary(Bytes{v}) : format_bytes(Bytes{v});
  if (key == "flops" || key.ends_with("_flops")) return format_flops(Flops{v});
  if (key.ends_with("_hz")) return format_significant(v / 1e9) + " GHz";
  if (key.ends_with("_w")) return format_significant(v) + " W";
  if (key.ends_with("_usd")) return "$" + format_count(v);
  return plain_number(key, v);
}

}  // namespace

bool is_share(std::string_view key) {
  return key.ends_with("utilisation") || key.ends_with("_ape") || key.ends_with("mape") || key.ends_with("_error") ||
         key.ends_with("_share") || key.starts_with("relative") || key == "of_roof" ||
         result::unit_of(key) == result::Unit::share;
}

// What stands for a quantity that the object it is in is named by: "p99" of "ttft_s".
bool is_statistic(std::string_view key) { return one_of(key, {"mean", "p50", "p90", "p95", "p99", "low", "high"}); }

std::string share_text(double share) {
  const std::string text = format_share(share);
  return text == "-0.0 %" ? "0.0 %" : text;
}

std::string quantity_text(std::string_view key, double value, std::string_view parent) {
  if (is_statistic(key) && parent.ends_with("_s")) return quantity_text(parent, value);
  if (parent == "ttft" || parent == "itl") return format_share(value);  // of its causes
  if (is_share(key)) return share_text(value);
  return value < 0 ? "-" + magnitude(key, -value, parent) : magnitude(key, value, parent);
}

std::string number_text(double value) {
  return value >= 1000 && value < 1e15 ? format_count(std::round(value)) : format_significant(value);
}

std::string readable(const std::string& column, const std::string& value) {
  if (value.empty()) return "-";
  if (value == "true" || value == "false") return value == "true" ? "yes" : "no";
  const std::optional<double> parsed = parse_double(value);
  if (!parsed) return value;
  return quantity_text(column, *parsed);
}

std::string signed_share(double share) {
  const std::string text = share_text(share);
  return share > 0 && text != "0.0 %" ? "+" + text : text;
}

}  // namespace llmperf::report
