// Trees of built-in files as the build wrote them: read without a parser and unchecked, since the build has checked
// them.
//
//   node: 'n' | ('s' | 'q') text | 'l' size ':' count ':' node… | 'm' size ':' count ':' (text node)…
//   text: length ':' bytes
//
// 'q' is a scalar in quotes; the size of a list or a mapping, in bytes behind its colon, is for who passes over it.
//
// Positions are left out: nobody mends a built-in file by its line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "descriptor/node.h"

namespace llmperf::descriptor {

std::string pack(const Node& node);
Node unpack(std::string_view packed);

// What stands at `key` of the outermost mapping, without the rest being read: a scalar, the scalars of a list, or
// nothing.
std::vector<std::string_view> packed_values(std::string_view packed, std::string_view key);

}  // namespace llmperf::descriptor
