// Included before all else: what the program uses of the standard library and emscripten's of LLVM 14 does not have.
// What is newer has its own.
#pragma once

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <ranges>
#include <string>
#include <version>

#if !defined(__cpp_lib_ranges)
namespace std::ranges {

// Algorithms over a whole range with a projection.
template <class Range, class Value, class Of = identity>
constexpr auto find(Range&& range, const Value& value, Of of = {}) {
  return std::find_if(begin(range), end(range), [&](auto&& x) { return std::invoke(of, x) == value; });
}
template <class Range, class Is, class Of = identity>
constexpr auto find_if(Range&& range, Is is, Of of = {}) {
  return std::find_if(begin(range), end(range), [&](auto&& x) { return std::invoke(is, std::invoke(of, x)); });
}
template <class Range, class Is, class Of = identity>
constexpr bool any_of(Range&& range, Is is, Of of = {}) {
  return ranges::find_if(range, std::ref(is), of) != end(range);
}
template <class Range, class Is, class Of = identity>
constexpr bool none_of(Range&& range, Is is, Of of = {}) {
  return !ranges::any_of(range, std::ref(is), of);
}
template <class Range, class Is, class Of = identity>
constexpr bool all_of(Range&& range, Is is, Of of = {}) {
  return ranges::none_of(range, std::not_fn(std::ref(is)), of);
}
template <class Range, class Value, class Of = identity>
constexpr auto count(Range&& range, const Value& value, Of of = {}) {
  return std::count_if(begin(range), end(range), [&](auto&& x) { return std::invoke(of, x) == value; });
}
template <class Range, class Is, class Of = identity>
constexpr auto count_if(Range&& range, Is is, Of of = {}) {
  return std::count_if(begin(range), end(range), [&](auto&& x) { return std::invoke(is, std::invoke(of, x)); });
}
template <class Range, class Out, class Is, class Of = identity>
constexpr auto copy_if(Range&& range, Out out, Is is, Of of = {}) {
  return std::copy_if(begin(range), end(range), out, [&](auto&& x) { return std::invoke(is, std::invoke(of, x)); });
}
template <class Range, class Value>
constexpr auto fill(Range&& range, const Value& value) {
  return std::fill(begin(range), end(range), value);
}

template <class Less, class Of>
constexpr auto by(Less& less, Of& of) {
  return [&](auto&& a, auto&& b) { return std::invoke(less, std::invoke(of, a), std::invoke(of, b)); };
}
template <class Range, class Less = std::less<>, class Of = identity>
constexpr auto sort(Range&& range, Less less = {}, Of of = {}) {
  return std::sort(begin(range), end(range), by(less, of));
}
template <class Range, class Less = std::less<>, class Of = identity>
constexpr auto stable_sort(Range&& range, Less less = {}, Of of = {}) {
  return std::stable_sort(begin(range), end(range), by(less, of));
}
template <class Range, class Less = std::less<>, class Of = identity>
constexpr auto max_element(Range&& range, Less less = {}, Of of = {}) {
  return std::max_element(begin(range), end(range), by(less, of));
}
template <class Range, class Less = std::less<>, class Of = identity>
constexpr auto min_element(Range&& range, Less less = {}, Of of = {}) {
  return std::min_element(begin(range), end(range), by(less, of));
}
template <class Range, class Less = std::less<>, class Of = identity>
constexpr auto max(Range&& range, Less less = {}, Of of = {}) {
  return *ranges::max_element(range, less, of);
}
template <class Range, class Value, class Less = std::less<>, class Of = identity>
constexpr auto upper_bound(Range&& range, const Value& value, Less less = {}, Of of = {}) {
  return std::upper_bound(begin(range), end(range), value,
                          [&](const Value& a, auto&& b) { return std::invoke(less, a, std::invoke(of, b)); });
}
template <class Range, class Value>
constexpr bool binary_search(Range&& range, const Value& value) {
  return std::binary_search(begin(range), end(range), value);
}

}  // namespace std::ranges
#endif

#if !defined(__cpp_lib_bit_cast)
namespace std {
template <class To, class From>
constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}
}  // namespace std
#endif

#if defined(_LIBCPP_VERSION) && _LIBCPP_VERSION < 200000
namespace std {
// Of a decimal number, which is all that is read.
inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  const string text(first, last);
  char* end = nullptr;
  errno = 0;
  const double read = text.empty() || (text[0] != '-' && text[0] != '.' && (text[0] < '0' || text[0] > '9'))
                          ? 0
                          : std::strtod(text.c_str(), &end);
  if (end == nullptr || end == text.c_str()) return {first, errc::invalid_argument};
  const char* stop = first + (end - text.c_str());
  if (errno == ERANGE) return {stop, errc::result_out_of_range};
  value = read;
  return {stop, errc()};
}
}  // namespace std
#endif
