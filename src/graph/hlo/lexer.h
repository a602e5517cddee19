// The words of MLIR's text, one at a time, over text that need not fit into memory. Constants are passed over without
// being looked at: whatever stands between brackets can be skipped as a whole.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "graph/hlo/source.h"

namespace llmperf::graph::hlo {

enum class TokenKind : unsigned char {
  end,
  value,       // %0, %arg1, %0#1        text: without %
  symbol,      // @main, @"a b"          text: without @ and quotes
  block,       // ^bb0
  hash,        // #loc3, #stablehlo.dot  text: with #
  bang,        // !quant.uniform, !alias text: with !
  word,        // stablehlo.add, dims, i64
  string,      // "…"                    text: without quotes, escapes as they are
  number,      // 1, -0.5e3, 0x7F
  arrow,       // ->
  resources,   // {-#
  punctuation  // any other single character
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;
  std::size_t offset = 0;
  std::size_t end = 0;
  bool is(char c) const { return kind == TokenKind::punctuation && text[0] == c; }
  bool is_word(std::string_view word) const { return kind == TokenKind::word && text == word; }
};

class Lexer {
 public:
  explicit Lexer(Source& source, std::size_t offset = 0) : source_(source), text_(source.text()) { seek(offset); }

  const Token& token() const { return token_; }
  void advance();
  // The token after the current one.
  Token peek() const;
  // Whether a line break stands before the current token.
  bool first_on_line() const { return first_on_line_; }
  // Goes back or on to the token that begins at or after `offset`.
  void seek(std::size_t offset);

  // The current token is an opening bracket ( [ { <: passes over it and all up to and with the one that closes it, and
  // returns what stands between.
  std::string_view skip_brackets();
  // The raw text from the current token up to the first of `, ) ] } >` or the end that is not in brackets.
  std::string_view skip_value();

  // The current token is {-#: passes over it and all up to and with #-}.
  void skip_resources();

  // "// -----" lines passed so far: programs of one file.
  int chunk() const { return chunk_; }
  Source& source() { return source_; }
  std::string_view text() const { return text_; }

  // Throws Error(bad_input) at the offset.
  [[noreturn]] void fail(std::size_t offset, std::string message, std::string hint = {}) const;
  // … at the current token, which it names: "expected ':' and not ')'".
  [[noreturn]] void fail_expected(std::string_view what) const;

 private:
  std::size_t skip_space(std::size_t at);
  std::size_t skip_string(std::size_t at) const;   // at: of the opening quote; returns what is behind the closing one
  std::size_t skip_bracket(std::size_t at) const;  // at: of the opening bracket
  Token read(std::size_t at) const;

  Source& source_;
  std::string_view text_;
  Token token_;
  bool first_on_line_ = true;
  int chunk_ = 0;
  std::size_t chunk_counted_ = 0;  // up to where "// -----" was counted
};

}  // namespace llmperf::graph::hlo
