// Lists that numbers of any integer type index, and what is asked of any list.
#pragma once

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <utility>
#include <vector>

namespace llmperf {

// A vector whose elements are known by numbers that are signed elsewhere: -1 stands for none of them, differences and
// shapes are signed, so that an index is cast here and not wherever one is used.
template <typename T>
struct List : std::vector<T> {
  using std::vector<T>::vector;
  List() = default;
  List(std::vector<T> list) : std::vector<T>(std::move(list)) {}  // NOLINT(google-explicit-constructor): the same
  decltype(auto) operator[](auto i) { return std::vector<T>::operator[](static_cast<std::size_t>(i)); }
  decltype(auto) operator[](auto i) const { return std::vector<T>::operator[](static_cast<std::size_t>(i)); }
};

template <typename Range, typename Value>
bool contains(const Range& list, const Value& value) {
  return std::ranges::find(list, static_cast<std::ranges::range_value_t<Range>>(value)) != std::ranges::end(list);
}

}  // namespace llmperf
