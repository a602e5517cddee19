#include "model/gguf_keys.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"

namespace llmperf::model {
namespace {

bool within(std::int64_t value, descriptor::IntRange range) { return value >= range.min && value <= range.max; }

}  // namespace

void GgufKeys::refuse(const GgufEntry& entry, std::string message) {
  unsound_ = true;
  problems_->add(entry, std::move(message));
}

std::int64_t GgufKeys::read_int(const GgufEntry& entry, descriptor::IntRange range) {
  const auto* value = std::get_if<std::int64_t>(&entry.value);
  if (value == nullptr) {
    refuse(entry, fmt::format("{} must be an integer", quote(entry.key)));
  } else if (!within(*value, range)) {
    refuse(entry, fmt::format("{} is {}, must be from {} to {}", quote(entry.key), *value, range.min, range.max));
  } else {
    return *value;
  }
  return range.min;
}

std::optional<std::int64_t> GgufKeys::optional_int(std::string_view key, descriptor::IntRange range) {
  const GgufEntry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  return read_int(*entry, range);
}

std::int64_t GgufKeys::require_int(std::string_view key, descriptor::IntRange range) {
  if (!has(key)) missing(key);
  return optional_int(key, range).value_or(range.min);
}

std::int64_t GgufKeys::int_or(std::string_view key, std::int64_t fallback, descriptor::IntRange range) {
  return optional_int(key, range).value_or(fallback);
}

std::optional<std::int64_t> GgufKeys::optional_nonzero(std::string_view key, descriptor::IntRange range) {
  const auto value = optional_int(key, {0, range.max});
  return value && *value > 0 ? value : std::nullopt;
}

std::vector<std::int64_t> GgufKeys::per_layer(std::string_view key, std::int64_t layers, descriptor::IntRange range) {
  const GgufEntry* entry = find(key);
  if (entry == nullptr) return {};
  const auto count = static_cast<std::size_t>(layers);
  const auto* array = std::get_if<GgufArray>(&entry->value);
  if (array == nullptr) return std::vector<std::int64_t>(count, read_int(*entry, range));
  std::vector<std::int64_t> values(count, range.min);
  if (array->length != layers) {
    refuse(*entry, fmt::format("{} lists {} layers, the model has {}", quote(entry->key), array->length, layers));
    return values;
  }
  if (array->numbers.size() != count) {
    refuse(*entry, fmt::format("{} must be an array of integers", quote(entry->key)));
    return values;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const double number = array->numbers[i];
    // In this order a not-a-number fails too.
    if (number >= static_cast<double>(range.min) && number <= static_cast<double>(range.max) &&
        number == std::floor(number)) {
      values[i] = static_cast<std::int64_t>(number);
      continue;
    }
    refuse(*entry, fmt::format("{}: layer {} has {}, must be an integer from {} to {}", quote(entry->key), i, number,
                               range.min, range.max));
    break;  // one of them says it all
  }
  return values;
}

std::optional<double> GgufKeys::optional_number(std::string_view key) {
  const GgufEntry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  if (const auto* number = std::get_if<double>(&entry->value)) return *number;
  if (const auto* integer = std::get_if<std::int64_t>(&entry->value)) return static_cast<double>(*integer);
  refuse(*entry, fmt::format("{} must be a number", quote(entry->key)));
  return std::nullopt;
}

std::optional<bool> GgufKeys::optional_bool(std::string_view key) {
  const GgufEntry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  if (const auto* value = std::get_if<bool>(&entry->value)) return *value;
  refuse(*entry, fmt::format("{} must be true or false", quote(entry->key)));
  return std::nullopt;
}

void GgufKeys::problem(std::string_view key, std::string message, std::string hint) {
  if (const GgufEntry* entry = find(key)) {
    problems_->add(*entry, std::move(message), std::move(hint));
  } else {
    problems_->add(std::move(message), std::move(hint));
  }
}

void GgufKeys::missing(std::string_view key, std::string hint) {
  unsound_ = true;
  problems_->add(fmt::format("missing key {}", quote(full(key))), std::move(hint));
}

void GgufKeys::contradiction(std::string_view key, std::string message, std::string hint) {
  if (!unsound_) problem(key, std::move(message), std::move(hint));
}

}  // namespace llmperf::model
