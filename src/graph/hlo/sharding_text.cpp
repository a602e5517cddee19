#include "graph/hlo/sharding_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace llmperf::graph::hlo {
namespace {

// How a quotation mark can begin and end, in a string and in a string in a string.
constexpr std::string_view kQuotes[] = {"\"", "'", "\\22", "\\\"", "\\\\\\22", "\\\\\\\""};
constexpr std::size_t kMaxNumbers = std::size_t{1} << 24;

}  // namespace

void ShardingText::space() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
}

bool ShardingText::done() {
  space();
  return at_ == text_.size();
}

bool ShardingText::sees(std::string_view token) {
  space();
  return rest().starts_with(token);
}

bool ShardingText::take(std::string_view token) {
  if (!sees(token)) return false;
  at_ += token.size();
  return true;
}

void ShardingText::expect(std::string_view token) {
  if (!take(token)) fail_expected(quote(token));
}

std::int64_t ShardingText::number() {
  space();
  std::int64_t value = 0;
  const auto read = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
  if (read.ec != std::errc{} || value < 0 || value > kMaxDevices) fail_expected("a number of devices");
  at_ = static_cast<std::size_t>(read.ptr - text_.data());
  return value;
}

std::string_view ShardingText::word() {
  space();
  const std::size_t begin = at_;
  const auto letter = [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  while (at_ < text_.size() && letter(text_[at_])) ++at_;
  return text_.substr(begin, at_ - begin);
}

std::string_view ShardingText::quoted() {
  space();
  for (const std::string_view mark : kQuotes) {
    if (!rest().starts_with(mark)) continue;
    const std::size_t begin = at_ + mark.size();
    const std::size_t end = text_.find(mark, begin);
    if (end == std::string_view::npos) fail("this quotation mark is not closed");
    at_ = end + mark.size();
    return text_.substr(begin, end - begin);
  }
  fail_expected("a name in quotes");
}

std::vector<std::int64_t> ShardingText::numbers(std::string_view open, std::string_view close) {
  std::vector<std::int64_t> values;
  expect(open);
  while (!take(close)) {
    if (!values.empty()) expect(",");
    if (values.size() == kMaxNumbers) fail("too many devices");
    values.push_back(number());
  }
  return values;
}

void ShardingText::skip_brackets() {
  space();
  int depth = 0;
  for (std::size_t i = at_; i < text_.size(); ++i) {
    const char c = text_[i];
    if (c == '{' || c == '[' || c == '(' || c == '<') ++depth;
    if ((c == '}' || c == ']' || c == ')' || c == '>') && --depth <= 0) {
      at_ = i + 1;
      return;
    }
  }
  fail("this bracket is not closed");
}

void ShardingText::fail(std::string message, std::string hint) const {
  fail_at(module_, rest(), "sharding: " + std::move(message), std::move(hint));
}

void ShardingText::fail_expected(std::string_view what) {
  space();
  constexpr std::size_t kShown = 20;
  fail(fmt::format("expected {} and not {}", what,
                   at_ == text_.size() ? "the end" : quote(text_.substr(at_, std::min(kShown, text_.size() - at_)))));
}

}  // namespace llmperf::graph::hlo
