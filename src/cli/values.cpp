#include "cli/values.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"

namespace llmperf::cli {
namespace {

struct NamedFormat {
  const char* name;
  report::Format format;
};
constexpr NamedFormat kFormats[] = {{"table", report::Format::table}, {"csv", report::Format::csv},
                                    {"json", report::Format::json},   {"md", report::Format::md},
                                    {"html", report::Format::html},   {"trace.json", report::Format::trace}};

}  // namespace

std::int64_t int_value(std::string_view flag, std::string_view text, std::int64_t min, std::int64_t max) {
  const std::optional<std::int64_t> value = parse_int(text);
  if (!value || *value < min || *value > max) {
    throw Error::bad_input(fmt::format("{}: {} is not a whole number between {} and {}", flag, quote(text), min, max));
  }
  return *value;
}

double double_value(std::string_view flag, std::string_view text, double min, double max) {
  const std::optional<double> value = parse_double(text);
  if (!value || *value < min || *value > max) {
    throw Error::bad_input(fmt::format("{}: {} is not a number between {} and {}", flag, quote(text), min, max));
  }
  return *value;
}

Bytes bytes_value(std::string_view flag, std::string_view text) {
  const std::optional<Bytes> value = parse_bytes(text);
  if (!value || value->value < 0 || value->value > 1e18) {
    throw Error::bad_input(fmt::format("{}: {} is not an amount of memory", flag, quote(text)),
                           "write the unit: 512MiB (2^20 bytes) or 2GB (10^9 bytes)");
  }
  return *value;
}

Dtype dtype_value(std::string_view flag, std::string_view text) {
  if (const std::optional<Dtype> dtype = parse_dtype(text)) return *dtype;
  const std::vector<std::string> names(dtype_names().begin(), dtype_names().end());
  throw Error::bad_input(fmt::format("{}: unknown type {}", flag, quote(text)), name_hint(text, names));
}

std::vector<std::string> dtypes() { return {dtype_names().begin(), dtype_names().end()}; }

report::Detail detail_value(const std::string& text) {
  if (text == "summary") return report::Detail::summary;
  if (text == "ops") return report::Detail::ops;
  const std::vector<std::string> names = {"summary", "ops"};
  throw Error::bad_input(fmt::format("--detail: unknown level {}", quote(text)), name_hint(text, names));
}

report::Format format_value(std::string_view flag, std::string_view text) {
  std::vector<std::string> names;
  for (const NamedFormat& f : kFormats) {
    if (text == f.name) return f.format;
    names.emplace_back(f.name);
  }
  throw Error::bad_input(fmt::format("{}: unknown format {}", flag, quote(text)), name_hint(text, names));
}

report::Language language_value(std::string_view text) {
  if (text == "en") return report::Language::english;
  if (text == "zh") return report::Language::chinese;
  const std::vector<std::string> names = {"en", "zh"};
  throw Error::bad_input(fmt::format("--lang: unknown language {}", quote(text)), name_hint(std::string(text), names));
}

report::Format export_format(std::string_view path) {
  const NamedFormat* longest = nullptr;  // x.trace.json is no .json
  for (const NamedFormat& f : kFormats) {
    if (f.format == report::Format::table || !path.ends_with("." + std::string(f.name))) continue;
    if (longest == nullptr || std::string_view(longest->name).size() < std::string_view(f.name).size()) longest = &f;
  }
  if (longest != nullptr) return longest->format;
  throw Error::bad_input(fmt::format("--export: no format goes with the name {}", quote(path)),
                         "end it in .json, .csv, .md, .html or .trace.json");
}

std::vector<std::string> list_value(std::string_view flag, std::string_view text) {
  std::vector<std::string> items;
  for (const std::string_view item : split(text, ',')) {
    if (trim(item).empty()) throw Error::bad_input(fmt::format("{}: {} has an empty item", flag, quote(text)));
    items.emplace_back(trim(item));
  }
  return items;
}

}  // namespace llmperf::cli
