#include "descriptor/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/list.h"
#include "base/number.h"
#include "base/text.h"

namespace llmperf::descriptor {
namespace {

// What stands there, for "… must be X, not Y".
std::string found(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null: return "an empty value";
    case Node::Kind::sequence: return "a list";
    case Node::Kind::mapping: return "a mapping";
    case Node::Kind::scalar: break;
  }
  return (node.quoted ? "the string " : "") + quote(node.scalar);
}

std::vector<std::string> once_each(const std::vector<std::string>& keys) {
  std::vector<std::string> once;
  for (const std::string& key : keys) {
    if (!contains(once, key)) once.push_back(key);
  }
  return once;
}

bool is_plain(const Node& node) { return node.kind == Node::Kind::scalar && !node.quoted; }

// Why a scalar that looks like a number is not taken for one; empty when it does not look like one.
std::string_view why_not_a_number(const Node& node) {
  const std::string_view text = node.scalar;
  const bool numeric = text.find_first_not_of("0123456789+-.eE") == std::string_view::npos &&
                       text.find_first_of("0123456789") != std::string_view::npos;
  if (!numeric) return "";
  if (node.quoted) return " (write it without quotes)";
  if (text.starts_with('+')) return " (write it without '+')";
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9') {
    return " (a leading zero means octal to some readers)";
  }
  if (digits.find_first_of(".eE") == std::string_view::npos) return "";
  return parse_double(text) ? " (write it in digits)" : " (it does not fit a double)";
}

std::optional<std::int64_t> as_int(const Node& node, IntRange range) {
  const std::optional<std::int64_t> value = is_plain(node) ? parse_int(node.scalar) : std::nullopt;
  return value && *value >= range.min && *value <= range.max ? value : std::nullopt;
}

std::string int_problem(std::string_view key, const Node& node, IntRange range) {
  return fmt::format("{} must be an integer between {} and {}, not {}{}", quote(key), range.min, range.max, found(node),
                     why_not_a_number(node));
}

}  // namespace

void Problems::add(const Node& where, std::string message, std::string hint) {
  add(where.line, where.column, std::move(message), std::move(hint));
}

void Problems::add(int line, int column, std::string message, std::string hint) {
  if (full()) return;
  if (diagnostics_.size() == kMaxProblems) {
    message = fmt::format("more than {} problems, the rest is not shown", kMaxProblems);
    hint.clear();
  }
  diagnostics_.push_back({{file_, line, column}, std::move(message), std::move(hint)});
}

void Problems::throw_if_any() {
  if (diagnostics_.empty()) return;
  std::ranges::stable_sort(diagnostics_, [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.where.line, a.where.column) < std::tie(b.where.line, b.where.column);
  });
  // Equal ones are told once, where the first stands.
  std::vector<Diagnostic> told;
  std::vector<int> more;
  for (Diagnostic& d : diagnostics_) {
    const auto same = std::ranges::find(told, d.message, &Diagnostic::message) - told.begin();
    if (same == std::ssize(told)) {
      told.push_back(std::move(d));
      more.push_back(0);
    } else {
      ++more[static_cast<std::size_t>(same)];
    }
  }
  for (std::size_t i = 0; i < told.size(); ++i) {
    if (more[i] > 0) told[i].message += fmt::format(" ({} more like this)", more[i]);
  }
  throw Error(ErrorKind::bad_input, std::move(told));
}

Reader::Reader(const Node& node, Problems& problems, std::string what)
    : node_(&node), problems_(&problems), what_(std::move(what)) {
  asked_.reserve(node.entries.size() + 4);  // most keys that are asked for are there
  if (node.kind != Node::Kind::mapping) {
    problems.add(node, fmt::format("{} must be a mapping of keys to values, not {}", what_, found(node)));
  }
}

bool Reader::has(std::string_view key) const { return value_of(key) != nullptr; }

const Node* Reader::find(std::string_view key) {
  asked_.emplace_back(key);
  return value_of(key);
}

const Node* Reader::value_of(std::string_view key) const {
  const Node* value = node_->find(key);
  return value != nullptr && value->kind != Node::Kind::null ? value : nullptr;
}

// The value of a required key; reports it missing. (A node that is no mapping was reported as a whole.)
const Node* Reader::require(std::string_view key) {
  const Node* node = find(key);
  if (node == nullptr && node_->kind == Node::Kind::mapping) {
    problem(key, fmt::format("missing key {} in {}", quote(key), what_));
  }
  return node;
}

std::int64_t Reader::read_int(std::string_view key, const Node& node, IntRange range) {
  const std::optional<std::int64_t> value = as_int(node, range);
  if (!value) problems_->add(node, int_problem(key, node, range));
  return value.value_or(range.min);
}

double Reader::read_double(std::string_view key, const Node& node, double min, double max) {
  const std::optional<double> value = is_plain(node) ? parse_double(node.scalar) : std::nullopt;
  if (value && *value >= min && *value <= max) return *value;
  problems_->add(node, fmt::format("{} must be a number between {} and {}, not {}{}", quote(key), min, max, found(node),
                                   value ? "" : why_not_a_number(node)));
  return min;
}

std::string Reader::read_string(std::string_view key, const Node& node) {
  if (node.kind == Node::Kind::scalar) return node.scalar;
  problems_->add(node, fmt::format("{} must be a text, not {}", quote(key), found(node)));
  return {};
}

std::int64_t Reader::require_int(std::string_view key, IntRange range) {
  const Node* node = require(key);
  return node == nullptr ? range.min : read_int(key, *node, range);
}

std::optional<std::int64_t> Reader::optional_int(std::string_view key, IntRange range) {
  const Node* node = find(key);
  if (node == nullptr) return std::nullopt;
  return read_int(key, *node, range);
}

std::int64_t Reader::int_or(std::string_view key, std::int64_t fallback, IntRange range) {
  return optional_int(key, range).value_or(fallback);
}

double Reader::require_double(std::string_view key, double min, double max) {
  const Node* node = require(key);
  return node == nullptr ? min : read_double(key, *node, min, max);
}

std::optional<double> Reader::optional_double(std::string_view key, double min, double max) {
  const Node* node = find(key);
  if (node == nullptr) return std::nullopt;
  return read_double(key, *node, min, max);
}

std::optional<bool> Reader::optional_bool(std::string_view key) {
  const Node* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (is_plain(*node) && node->scalar == "true") return true;
  if (!is_plain(*node) || node->scalar != "false") {
    problems_->add(*node, fmt::format("{} must be true or false, not {}", quote(key), found(*node)));
  }
  return false;
}

bool Reader::bool_or(std::string_view key, bool fallback) { return optional_bool(key).value_or(fallback); }

std::string Reader::require_string(std::string_view key) {
  const Node* node = require(key);
  if (node == nullptr) return {};
  std::string text = read_string(key, *node);
  if (text.empty() && node->kind == Node::Kind::scalar) problems_->add(*node, quote(key) + " must not be empty");
  return text;
}

std::optional<std::string> Reader::optional_string(std::string_view key) {
  const Node* node = find(key);
  if (node == nullptr) return std::nullopt;
  return read_string(key, *node);
}

std::string Reader::string_or(std::string_view key, std::string fallback) {
  return optional_string(key).value_or(std::move(fallback));
}

std::size_t Reader::choice(std::string_view key, std::span<const std::string_view> names,
                           std::optional<std::size_t> fallback) {
  const Node* node = fallback ? find(key) : require(key);
  if (node == nullptr) return fallback.value_or(0);
  const auto chosen = node->kind == Node::Kind::scalar ? std::ranges::find(names, node->scalar) : names.end();
  if (chosen != names.end()) return static_cast<std::size_t>(chosen - names.begin());
  const std::vector<std::string> known(names.begin(), names.end());
  problems_->add(*node, fmt::format("{} must be one of {}, not {}", quote(key), join(known, ", "), found(*node)),
                 node->kind == Node::Kind::scalar && !nearest_names(node->scalar, known).empty()
                     ? name_hint(node->scalar, known)
                     : std::string());
  return fallback.value_or(0);
}

template <class Value, class Parse>
std::optional<Value> Reader::read_quantity(std::string_view key, Parse parse, std::string_view example) {
  const Node* node = find(key);
  if (node == nullptr) return std::nullopt;
  const std::optional<Value> value = node->kind == Node::Kind::scalar ? parse(node->scalar) : std::nullopt;
  if (value && value->value > 0) return value;
  problems_->add(*node, fmt::format("{} must be a positive number with a unit, such as {}, not {}", quote(key), example,
                                    found(*node)));
  return Value{1};
}

std::optional<Bytes> Reader::optional_bytes(std::string_view key) {
  return read_quantity<Bytes>(key, parse_bytes, "24 GB or 24 GiB");
}
std::optional<BytesPerSecond> Reader::optional_bandwidth(std::string_view key) {
  return read_quantity<BytesPerSecond>(key, parse_bytes_per_second, "1008 GB/s");
}
std::optional<FlopsPerSecond> Reader::optional_flops_rate(std::string_view key) {
  return read_quantity<FlopsPerSecond>(key, parse_flops_per_second, "165.2 TFLOP/s");
}
std::optional<Seconds> Reader::optional_seconds(std::string_view key) {
  return read_quantity<Seconds>(key, parse_seconds, "1.5 us");
}

// The items of a list; reports anything else.
std::span<const Node> Reader::read_items(std::string_view key, std::string_view of) {
  const Node* node = find(key);
  if (node == nullptr) return {};
  if (node->kind != Node::Kind::sequence) {
    problems_->add(*node, fmt::format("{} must be a list of {}, not {}", quote(key), of, found(*node)));
  }
  return node->items;
}

std::optional<Reader> Reader::optional_mapping(std::string_view key) {
  const Node* node = find(key);
  if (node == nullptr) return std::nullopt;
  return Reader(*node, *problems_, quote(key));
}

std::vector<Reader> Reader::optional_mappings(std::string_view key) {
  const std::span<const Node> items = read_items(key, "mappings");
  const std::string what = items.empty() ? "" : "an item of " + quote(key);
  std::vector<Reader> readers;
  readers.reserve(items.size());
  for (const Node& item : items) readers.emplace_back(item, *problems_, what);
  return readers;
}

std::vector<std::string> Reader::optional_strings(std::string_view key) {
  std::vector<std::string> values;
  for (const Node& item : read_items(key, "texts")) values.push_back(read_string(key, item));
  return values;
}

std::vector<std::int64_t> Reader::optional_ints(std::string_view key, IntRange range) {
  std::vector<std::int64_t> values;
  for (const Node& item : read_items(key, "integers")) values.push_back(read_int(key, item, range));
  return values;
}

bool Reader::is_null(std::string_view key) const {
  const Node* value = node_->find(key);
  return value != nullptr && value->kind == Node::Kind::null;
}

void Reader::ignore(std::string_view keys) {
  for (const std::string_view key : words(keys)) find(key);
}

std::vector<std::string> Reader::unknown_keys() const {
  std::vector<std::string> keys;
  for (const Node::Entry& entry : node_->entries) {
    if (std::ranges::find(asked_, entry.key) == asked_.end()) keys.push_back(entry.key);
  }
  return keys;
}

void Reader::finish(std::string_view advice) {
  bool told = false;  // the names there are, and the advice
  std::vector<std::string> known;
  for (const Node::Entry& entry : node_->entries) {
    if (std::ranges::find(asked_, entry.key) != asked_.end()) continue;
    if (problems_->full()) return;
    if (!told) known = once_each(asked_);
    std::string hint = told && nearest_names(entry.key, known).empty() ? "" : name_hint(entry.key, known);
    if (!advice.empty() && !told) hint += (hint.empty() ? "" : " ") + std::string(advice);
    told = true;
    problems_->add(entry.line, entry.column, "unknown key " + quote(entry.key), std::move(hint));
  }
}

void Reader::problem(std::string_view key, std::string message, std::string hint) {
  for (const Node::Entry& entry : node_->entries) {
    if (entry.key != key) continue;
    // An empty value has no place of its own.
    const bool empty = entry.value.kind == Node::Kind::null;
    problems_->add(empty ? entry.line : entry.value.line, empty ? entry.column : entry.value.column, std::move(message),
                   std::move(hint));
    return;
  }
  problems_->add(*node_, std::move(message), std::move(hint));
}

}  // namespace llmperf::descriptor
