#pragma once

#include <string_view>
#include <unordered_map>

#include "graph/hlo/lexer.h"
#include "graph/hlo/type.h"

namespace llmperf::graph::hlo {

using Aliases = std::unordered_map<std::string_view, std::string_view>;

// The type that begins at the current token, which ends up behind it: tensor<4x?xbf16>, tuple<…>, i32,
// !stablehlo.token, an alias !name, a function type. Throws Error(bad_input).
Type parse_type(Lexer& lexer, const Aliases& aliases);
// Whether a type can begin at the current token.
bool begins_type(const Token& token);

}  // namespace llmperf::graph::hlo
