// Catch2 2.13 (Debian 12) and 3.x under one include. Every test has a tag of its folder, by which ctest runs it:
// [tests/model].
#pragma once

#include <string>
#include <string_view>

#if __has_include(<catch2/catch.hpp>)
#include <catch2/catch.hpp>
#else
#include <catch2/catch_all.hpp>
using Catch::Approx;
#endif

#ifndef __has_feature
#define __has_feature(of_clang) 0
#endif

namespace llmperf::test {

// Sanitizers look at memory and not at mathematics: under them a property is held against every tenth of its cases.
inline constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
inline constexpr int cases(int all) { return kSanitized ? (all + 9) / 10 : all; }

inline std::string tags(std::string_view file, const char* own) {
  file.remove_prefix(file.rfind("tests/"));
  return "[" + std::string(file.substr(0, file.rfind('/'))) + "]" + own;
}

}  // namespace llmperf::test

#undef TEST_CASE
#define TEST_CASE(name, ...) INTERNAL_CATCH_TESTCASE(name, llmperf::test::tags(__FILE__, "" __VA_ARGS__))
