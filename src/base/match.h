// What to do for each alternative of a variant. An alternative that no case takes does not compile; no case takes all.
#pragma once

#include <utility>
#include <variant>

namespace llmperf {

template <class... Cases>
struct Match : Cases... {
  using Cases::operator()...;
};

template <class Variant, class... Cases>
decltype(auto) match(Variant&& variant, Cases&&... cases) {
  return std::visit(Match<std::decay_t<Cases>...>{std::forward<Cases>(cases)...}, std::forward<Variant>(variant));
}

}  // namespace llmperf
