#include "graph/hlo/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/text.h"

namespace llmperf::graph::hlo {
namespace {

constexpr std::size_t kMaxDepth = 1000;               // of brackets
constexpr std::size_t kPiece = std::size_t{4} << 20;  // of a constant, after which memory is given back
constexpr std::string_view kChunk = "// -----";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '$' || c == '.'; }
bool is_name(char c) { return is_word(c) || c == '-'; }  // of values, symbols and aliases

// What a bracket means to skip_bracket; 0 for what it passes over.
constexpr auto kSpecial = [] {
  std::array<bool, 256> special{};
  for (const char c : {'(', ')', '[', ']', '{', '}', '<', '>', '"', '/', '-'}) {
    special[static_cast<unsigned char>(c)] = true;
  }
  return special;
}();

char closing(char c) {
  switch (c) {
    case '(': return ')';
    case '[': return ']';
    case '{': return '}';
    case '<': return '>';
    default: return 0;
  }
}

}  // namespace

void Lexer::fail(std::size_t offset, std::string message, std::string hint) const {
  throw Error(ErrorKind::bad_input, {{source_.position(offset), std::move(message), std::move(hint)}});
}

void Lexer::fail_expected(std::string_view what) const {
  if (token_.kind == TokenKind::end) fail(token_.offset, fmt::format("expected {}, but the text ends here", what));
  const std::string_view found = text_.substr(token_.offset, token_.end - token_.offset);
  fail(token_.offset, fmt::format("expected {} and not {}", what, quote(found)));
}

std::size_t Lexer::skip_space(std::size_t at) {
  while (at < text_.size()) {
    const char c = text_[at];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++at;
    } else if (c == '/' && at + 1 < text_.size() && text_[at + 1] == '/') {
      if (at >= chunk_counted_ && text_.substr(at, kChunk.size()) == kChunk) {
        ++chunk_;
        chunk_counted_ = at + 1;
      }
      const std::size_t end = text_.find('\n', at);
      at = end == std::string_view::npos ? text_.size() : end + 1;
    } else {
      break;
    }
  }
  return at;
}

std::size_t Lexer::skip_string(std::size_t at) const {
  const std::size_t begin = at++;
  for (;;) {
    const std::size_t piece = std::min(kPiece, text_.size() - at);
    const void* found = piece > 0 ? std::memchr(text_.data() + at, '"', piece) : nullptr;
    if (found == nullptr) {
      at += piece;
      if (at >= text_.size()) fail(begin, "this string is not closed");
      source_.release_before(at);
      continue;
    }
    const auto quote_at = static_cast<std::size_t>(static_cast<const char*>(found) - text_.data());
    std::size_t backslashes = 0;
    while (text_[quote_at - 1 - backslashes] == '\\') ++backslashes;
    at = quote_at + 1;
    if (backslashes % 2 == 0) return at;
  }
}

std::size_t Lexer::skip_bracket(std::size_t at) const {
  const std::size_t begin = at;
  std::string expected(1, closing(text_[at++]));
  std::size_t release = at + kPiece;
  while (at < text_.size()) {
    if (at >= release) {
      source_.release_before(at);
      release = at + kPiece;
    }
    const char c = text_[at];
    if (!kSpecial[static_cast<unsigned char>(c)]) {
      ++at;
    } else if (c == '"') {
      at = skip_string(at);
    } else if (c == '/') {
      const bool comment = at + 1 < text_.size() && text_[at + 1] == '/';
      const std::size_t end = comment ? text_.find('\n', at) : at;
      at = end == std::string_view::npos ? text_.size() : end + 1;
    } else if (c == '-') {
      at += at + 1 < text_.size() && text_[at + 1] == '>' ? 2 : 1;
    } else if (const char close = closing(c)) {
      if (expected.size() >= kMaxDepth) fail(at, fmt::format("brackets are nested more than {} deep", kMaxDepth));
      expected.push_back(close);
      ++at;
    } else {
      // A comparison or a range in an attribute may have a lone '>'.
      if (c != expected.back()) {
        if (c == '>') {
          ++at;
          continue;
        }
        if (expected.back() != '>') fail(at, fmt::format("'{}' closes what '{}' should", c, expected.back()));
        // … and so may a lone '<'.
        while (!expected.empty() && expected.back() == '>' && c != '>') expected.pop_back();
        if (expected.empty() || expected.back() != c) fail(at, fmt::format("'{}' closes nothing", c));
      }
      expected.pop_back();
      ++at;
      if (expected.empty()) return at;
    }
  }
  fail(begin, fmt::format("this '{}' is not closed", text_[begin]));
}

Token Lexer::read(std::size_t at) const {
  Token token;
  token.offset = token.end = at;
  if (at >= text_.size()) return token;
  const char c = text_[at];
  std::size_t end = at + 1;
  const auto take = [&](bool (*of)(char)) {
    while (end < text_.size() && of(text_[end])) ++end;
  };
  const auto finish = [&](TokenKind kind, std::size_t skip) {
    token.kind = kind;
    token.text = text_.substr(at + skip, end - at - skip);
    token.end = end;
    return token;
  };
  switch (c) {
    case '%':
      take(is_name);
      if (end == at + 1) fail(at, "expected a name after '%'");
      if (end + 1 < text_.size() && text_[end] == '#' && is_digit(text_[end + 1])) {
        ++end;
        take(is_digit);
      }
      return finish(TokenKind::value, 1);
    case '@':
      if (end < text_.size() && text_[end] == '"') {
        end = skip_string(end);
        token = finish(TokenKind::symbol, 2);
        token.text.remove_suffix(1);
        return token;
      }
      take(is_name);
      // A nested reference, @module::@function.
      while (text_.substr(end, 3) == "::@") {
        end += 3;
        take(is_name);
      }
      return finish(TokenKind::symbol, 1);
    case '^': take(is_name); return finish(TokenKind::block, 0);
    case '#': take(is_name); return finish(TokenKind::hash, 0);
    case '!': take(is_word); return finish(TokenKind::bang, 0);
    case '"':
      end = skip_string(at);
      token = finish(TokenKind::string, 1);
      token.text.remove_suffix(1);
      return token;
    case '-':
      if (end < text_.size() && text_[end] == '>') {
        ++end;
        return finish(TokenKind::arrow, 0);
      }
      break;
    case '{':
      if (text_.substr(at, 3) == "{-#") {
        end = at + 3;
        return finish(TokenKind::resources, 0);
      }
      break;
    default: break;
  }
  const bool negative = c == '-' && end < text_.size() && is_digit(text_[end]);
  if (is_digit(c) || negative) {
    take(is_word);  // 0x7F, 1.5
    // 1.0e-05
    if ((text_[end - 1] == 'e' || text_[end - 1] == 'E') && end + 1 < text_.size() &&
        (text_[end] == '-' || text_[end] == '+') && text_.substr(at, 2) != "0x") {
      ++end;
      take(is_digit);
    }
    return finish(TokenKind::number, 0);
  }
  if (is_letter(c)) {
    take(is_word);
    return finish(TokenKind::word, 0);
  }
  return finish(TokenKind::punctuation, 0);
}

void Lexer::advance() { seek(token_.end); }

void Lexer::seek(std::size_t offset) {
  const std::size_t at = skip_space(offset);
  first_on_line_ = offset == 0 || text_.substr(offset, at - offset).find('\n') != std::string_view::npos;
  token_ = read(at);
}

Token Lexer::peek() const {
  Lexer ahead(*this);
  ahead.advance();
  return ahead.token_;
}

std::string_view Lexer::skip_brackets() {
  const std::size_t begin = token_.offset;
  const std::size_t end = skip_bracket(begin);
  source_.release_before(end);
  seek(end);
  return text_.substr(begin + 1, end - begin - 2);
}

std::string_view Lexer::skip_value() {
  const std::size_t begin = token_.offset;
  std::size_t end = begin;
  while (token_.kind != TokenKind::end) {
    if (token_.is(',') || token_.is(')') || token_.is(']') || token_.is('}') || token_.is('>')) break;
    if (token_.is('(') || token_.is('[') || token_.is('{') || token_.is('<')) {
      end = skip_bracket(token_.offset);
      source_.release_before(end);
    } else {
      end = token_.end;
    }
    seek(end);
  }
  return text_.substr(begin, end - begin);
}

void Lexer::skip_resources() {
  std::size_t at = token_.end;
  for (;;) {
    at = text_.find_first_of("\"#", at);
    if (at == std::string_view::npos) fail(token_.offset, "'{-#' is not closed by '#-}'");
    if (text_[at] == '"') {
      at = skip_string(at);
      source_.release_before(at);
    } else if (text_.substr(at, 3) == "#-}") {
      break;
    } else {
      ++at;
    }
  }
  seek(at + 3);
}

}  // namespace llmperf::graph::hlo
