// Tables and lists of a page, made from values: a number is printed as what it is a number of.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/number.h"
#include "report/document.h"
#include "result/field.h"

namespace llmperf::report {

// What the type of a number does not say of it.
struct Share {
  double of;
};
struct Held {
  Bytes bytes;  // in memory, and so in powers of 1024
};
struct Bare {
  Flops flops;  // "889.1 G": the column's heading says of what
};
struct Count {
  double of;
  explicit Count(auto n) : of(static_cast<double>(n)) {}
};
struct Rounded {
  double value;
  int digits = 4;
};

inline std::string printed(Seconds time) { return format_seconds(time); }
inline std::string printed(Bytes moved) { return format_bytes(moved); }
inline std::string printed(Flops flops) { return format_flops(flops); }
inline std::string printed(BytesPerSecond rate) { return format_bandwidth(rate); }
inline std::string printed(FlopsPerSecond rate) { return format_flops_rate(rate); }
inline std::string printed(Share share) { return format_share(share.of); }
inline std::string printed(Held held) { return format_bytes_binary(held.bytes); }
inline std::string printed(Count count) { return format_count(count.of); }
inline std::string printed(Rounded number) { return format_significant(number.value, number.digits); }
std::string printed(Bare bare);
// A part of a whole that there may be nothing of.
template <class D>
std::optional<Share> share_of(Quantity<D> part, Quantity<D> whole) {
  return whole.value > 0 ? std::optional(Share{part / whole}) : std::nullopt;
}
template <class E>
requires(std::is_enum_v<E>) && requires(E e) {
  { name(e) } -> std::convertible_to<std::string_view>;
}
std::string_view printed(E value) { return name(value); }

template <class T>
concept Printed = requires(const T& value) {
  { printed(value) } -> std::convertible_to<std::string_view>;
};

}  // namespace llmperf::report

// "{} of {}" of quantities, shares and names in any text of a page.
template <llmperf::report::Printed T>
struct fmt::formatter<T> : fmt::formatter<std::string_view> {
  auto format(const T& value, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(llmperf::report::printed(value), context);
  }
};

namespace llmperf::report {

// A cell: as the value is printed; "yes" or "no"; "-" of what is not there.
template <class T>
std::string cell_of(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "yes" : "no";
  } else if constexpr (result::detail::is_optional<T> && !std::is_pointer_v<T>) {
    return value ? cell_of(*value) : "-";
  } else {
    return fmt::format("{}", value);
  }
}
template <class... T>
std::vector<std::string> cells(const T&... values) {
  return {cell_of(values)...};
}

// "op, shape": the headings of columns; one that begins with '<' is of text, which stands on the left.
Table titled(std::string title, std::string_view headings);
template <class... T>
void add_row(Table& table, const T&... values) {
  table.rows.push_back(cells(values...));
}
// A row for each of `all`: what `row` gives for it.
template <std::ranges::range All, class Row>
Table table_of(std::string title, std::string_view headings, const All& all, Row row) {
  Table table = titled(std::move(title), headings);
  for (const auto& one : all) table.rows.push_back(row(one));
  return table;
}

// A row of what was a column, its heading first.
Table transposed(const Table& table, std::string_view headings);

// Results of one type, a row for each and a column for each key: "name: op, count, memory.total_bytes: memory" are
// fields that are declared, and what they are called here; without that by their label. What is
// null is "-" among numbers and nothing among texts.
class KeyTable {
 public:
  KeyTable(const Type& type, std::string title, std::string_view keys);
  void add(const void* object);
  Table done() { return std::move(table_); }

 private:
  std::vector<std::vector<const Field*>> paths_;  // of objects on the way to each field
  Table table_;
};
template <std::ranges::range Results>
Table table_of(std::string title, const Results& results, std::string_view keys) {
  KeyTable table(type_of<std::ranges::range_value_t<Results>>(), std::move(title), keys);
  for (const auto& result : results) table.add(&result);
  return table.done();
}

// The same of one result: a line for each key that there is a value of.
Fields facts_of(std::string title, const Type& type, const void* object, std::string_view keys);
template <class Result>
Fields facts_of(std::string title, const Result& result, std::string_view keys) {
  return facts_of(std::move(title), type_of<Result>(), &result, keys);
}

}  // namespace llmperf::report
