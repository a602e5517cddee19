// Text of a module to Module: recursive descent over the words of its text.
//
// MLIR prints an op in its generic form,
//
//   %2 = "stablehlo.dot_general"(%0, %1) <{precision_config = […]}> ({regions}) {attributes} : (types) -> type loc(…)
//
// or in the short form that its dialect defines,
//
//   %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (types) -> type
//
// The short forms differ, but are made of the same parts: operands, groups in brackets, `key = value`, bare words, a
// type after ':', regions in braces. So one rule reads both forms of every dialect, the unknown ones too: it takes the
// parts in whatever order they come until the next statement begins.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.h"
#include "program/module.h"
#include "program/ops.h"

namespace llmperf::program {
namespace {

constexpr std::size_t kMaxBrackets = 1000;            // of brackets
constexpr std::size_t kPiece = std::size_t{4} << 20;  // of a constant, after which memory is given back
constexpr std::string_view kChunk = "// -----";

bool is_letter(char c) { return is_word(c) && !is_digit(c) && c != '$' && c != '.'; }
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

// The words of MLIR's text, one at a time, over text that need not fit into memory. Constants are passed over without
// being looked at: whatever stands between brackets can be skipped as a whole.
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
  bool opens() const { return is('(') || is('[') || is('{') || is('<'); }
  bool is_word(std::string_view word) const { return kind == TokenKind::word && text == word; }
};

class Lexer {
 public:
  explicit Lexer(Source& source, std::size_t offset = 0) : source_(source), text_(source.text()) { seek(offset); }

  const Token& token() const { return token_; }
  void advance(int tokens = 1) {
    for (; tokens > 0; --tokens) seek(token_.end);
  }

  // The token after the current one.
  Token peek() const {
    Lexer ahead(*this);
    ahead.advance();
    return ahead.token_;
  }

  // Whether a line break stands before the current token.
  bool first_on_line() const { return first_on_line_; }
  // Goes back or on to the token that begins at or after `offset`.
  void seek(std::size_t offset) {
    const std::size_t at = skip_space(offset);
    first_on_line_ = offset == 0 || text_.substr(offset, at - offset).find('\n') != std::string_view::npos;
    token_ = read(at);
  }

  // The current token is an opening bracket ( [ { <: passes over it and all up to and with the one that closes it, and
  // returns what stands between.
  std::string_view skip_brackets() {
    const std::size_t begin = token_.offset;
    return text_.substr(begin + 1, skip_part() - begin - 2);
  }

  // Passes over the current token, or the brackets that it opens and all in them. Returns what is behind.
  std::size_t skip_part() {
    std::size_t end = token_.end;
    if (token_.opens()) {
      end = skip_bracket(token_.offset);
      source_.release_before(end);
    }
    seek(end);
    return end;
  }
  // The raw text from the current token up to the first of `, ) ] } >` or the end that is not in brackets.
  std::string_view skip_value() {
    const std::size_t begin = token_.offset;
    std::size_t end = begin;
    while (token_.kind != TokenKind::end) {
      if (token_.is(',') || token_.is(')') || token_.is(']') || token_.is('}') || token_.is('>')) break;
      end = skip_part();
    }
    return text_.substr(begin, end - begin);
  }

  // If the current token is this one: passes over it.
  bool take(char c) {
    const bool found = token_.is(c);
    if (found) advance();
    return found;
  }
  void expect(char c, std::string_view what) {
    if (!take(c)) fail_expected(what);
  }
  Token expect(TokenKind kind, std::string_view what) {
    if (token_.kind != kind) fail_expected(what);
    const Token found = token_;
    advance();
    return found;
  }
  // Members with commas between, up to and with what closes the list.
  template <typename Member>
  void list(char close, std::string_view what, const Member& member) {
    while (!token_.is(close)) {
      member();
      if (!take(',') && !token_.is(close)) fail_expected(what);
    }
    advance();
  }

  // The current token is {-#: passes over it and all up to and with #-}.
  void skip_resources() {
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

  // "// -----" lines passed so far: programs of one file.
  int chunk() const { return chunk_; }
  Source& source() { return source_; }
  std::string_view text() const { return text_; }

  // Throws Error(bad_input) at the offset.
  [[noreturn]] void fail(std::size_t offset, std::string message, std::string hint = {}) const {
    throw Error(ErrorKind::bad_input, {{source_.position(offset), std::move(message), std::move(hint)}});
  }

  // … at the current token, which it names: "expected ':' and not ')'".
  [[noreturn]] void fail_expected(std::string_view what) const {
    if (token_.kind == TokenKind::end) fail(token_.offset, fmt::format("expected {}, but the text ends here", what));
    const std::string_view found = text_.substr(token_.offset, token_.end - token_.offset);
    fail(token_.offset, fmt::format("expected {} and not {}", what, quote(found)));
  }

 private:
  std::size_t skip_space(std::size_t at) {
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

  // at: of the opening quote; returns what is behind the closing one
  std::size_t skip_string(std::size_t at) const {
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

  // at: of the opening bracket
  std::size_t skip_bracket(std::size_t at) const {
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
        if (expected.size() >= kMaxBrackets)
          fail(at, fmt::format("brackets are nested more than {} deep", kMaxBrackets));
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

  Token read(std::size_t at) const {
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

  Source& source_;
  std::string_view text_;
  Token token_;
  bool first_on_line_ = true;
  int chunk_ = 0;
  std::size_t chunk_counted_ = 0;  // up to where "// -----" was counted
};

using Aliases = std::unordered_map<std::string_view, std::string_view>;

constexpr int kMaxTypeDepth = 50;                           // of types in types
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 48;  // of one dimension
constexpr double kMaxElements = 1e18;                       // of a tensor
constexpr std::size_t kMaxRank = 64;
// Of tuples that an alias stands for, all in all: a short text must not become a type of any size.
constexpr int kMaxAliasedMembers = 16;

class TypeParser {
 public:
  // `aliased`: members made so far inside of aliases; null outside of them.
  TypeParser(Lexer& lexer, const Aliases& aliases, int depth, int* aliased = nullptr)
      : lexer_(lexer), aliases_(aliases), depth_(depth), aliased_(aliased) {
    if (depth > kMaxTypeDepth)
      lexer.fail(lexer.token().offset, fmt::format("types are nested more than {} deep", kMaxTypeDepth));
  }

  Type parse() {
    const Token token = lexer_.token();
    if (token.is('(')) return function();
    if (token.kind == TokenKind::bang) return dialect();
    if (token.kind != TokenKind::word) lexer_.fail_expected("a type");
    if (token.text == "tensor" || token.text == "vector" || token.text == "memref") return shaped();
    if (token.text == "tuple") return tuple();
    Type type;
    type.form = Type::Form::tensor;
    type.element = element(token.offset);
    return type;
  }

 private:
  char at(std::size_t offset) const { return offset < lexer_.text().size() ? lexer_.text()[offset] : '\0'; }

  // tensor<4x?xf32, encoding>
  Type shaped() {
    const Token token = lexer_.token();
    lexer_.advance();
    if (!lexer_.token().is('<')) lexer_.fail_expected(fmt::format("'<' after '{}'", token.text));
    std::size_t offset = lexer_.token().end;
    Type type;
    type.form = Type::Form::tensor;
    for (;;) {
      while (at(offset) == ' ' || at(offset) == '\n') ++offset;
      const char c = at(offset);
      if (c == '?' || c == '*') {
        type.unranked = type.unranked || c == '*';
        if (c == '?') type.dims.push_back(kDynamic);
        ++offset;
      } else if (c >= '0' && c <= '9') {
        const std::size_t begin = offset;
        std::int64_t extent = 0;
        for (; at(offset) >= '0' && at(offset) <= '9'; ++offset) {
          extent = 10 * extent + (at(offset) - '0');
          if (extent > kMaxExtent) lexer_.fail(begin, "this extent is too large");
        }
        type.dims.push_back(extent);
      } else {
        break;
      }
      while (at(offset) == ' ' || at(offset) == '\n') ++offset;
      if (at(offset) != 'x') {
        lexer_.seek(offset);
        lexer_.fail_expected("'x' after an extent");
      }
      ++offset;
      if (type.dims.size() > kMaxRank) {
        lexer_.fail(token.offset, fmt::format("this tensor has more than {} dimensions", kMaxRank));
      }
    }
    type.element = element(offset);
    if (lexer_.take(',')) encoding(type);
    while (lexer_.take(',')) lexer_.skip_value();
    lexer_.expect('>', "'>' at the end of the tensor type");
    if (type.elements() > kMaxElements) lexer_.fail(token.offset, "this tensor has more than 1e18 elements");
    return type;
  }

  // #stablehlo.bounds<?, 10> and its older name, #stablehlo.type_extensions<bounds = [?, 10]>; others say nothing of
  // the cost.
  void encoding(Type& type) {
    std::string_view text = lexer_.skip_value();
    if (text.find("bounds") == std::string_view::npos && text.find("type_extensions") == std::string_view::npos) return;
    text = text.substr(text.find('<') + 1);
    std::int64_t bound = kDynamic;
    for (const char c : text) {
      if (c >= '0' && c <= '9') {
        bound = std::min(kMaxExtent, (bound == kDynamic ? 0 : 10 * bound) + (c - '0'));
      } else {
        if (bound != kDynamic) type.bounds.push_back(bound);
        bound = kDynamic;
        if (c == '?') type.bounds.push_back(kDynamic);
      }
    }
    if (type.bounds.size() != type.dims.size()) type.bounds.clear();
  }

  Type tuple() {
    Type type;
    type.form = Type::Form::tuple;
    lexer_.advance();
    lexer_.expect('<', "'<' after 'tuple'");
    lexer_.list('>', "',' or '>' in the tuple type", [&] {
      if (aliased_ != nullptr && ++*aliased_ > kMaxAliasedMembers) {
        lexer_.fail(lexer_.token().offset,
                    fmt::format("an alias of a tuple of more than {} parts", kMaxAliasedMembers));
      }
      type.members.push_back(TypeParser(lexer_, aliases_, depth_ + 1, aliased_).parse());
    });
    return type;
  }

  // (a, b) -> c has no size.
  Type function() {
    lexer_.skip_brackets();
    if (lexer_.token().kind == TokenKind::arrow) {
      lexer_.advance();
      TypeParser(lexer_, aliases_, depth_ + 1, aliased_).parse();
    }
    return {};
  }

  // !alias, !stablehlo.token, !mhlo.async_bundle<…>
  Type dialect() {
    const Token token = lexer_.token();
    const auto alias = aliases_.find(token.text);
    if (alias != aliases_.end()) {
      lexer_.advance();
      Lexer other = inside(alias->second);
      int members = 0;
      return TypeParser(other, aliases_, depth_ + 1, aliased_ != nullptr ? aliased_ : &members).parse();
    }
    lexer_.advance();
    if (lexer_.token().is('<') && lexer_.token().offset == token.end) lexer_.skip_brackets();
    return {};
  }

  Lexer inside(std::string_view text) const {
    return Lexer(lexer_.source(), static_cast<std::size_t>(text.data() - lexer_.text().data()));
  }

  // The element type at an offset; the current token is then the one behind it.
  Element element(std::size_t offset) {
    lexer_.seek(offset);
    const Token token = lexer_.token();
    const bool bang = token.kind == TokenKind::bang;
    if (!bang && !token.is_word("complex")) {
      if (token.is_word("tuple") || token.is_word("vector")) lexer_.fail_expected("an element type");
      const Element result = word(lexer_);
      lexer_.advance();
      return result;
    }
    lexer_.advance();
    if (const auto alias = aliases_.find(token.text); bang && alias != aliases_.end()) {
      Lexer other = inside(alias->second);
      return TypeParser(other, aliases_, depth_ + 1).element(other.token().offset);
    }
    std::string_view part;
    std::size_t end = token.end;
    if (lexer_.token().is('<') && (!bang || lexer_.token().offset == token.end)) {
      part = lexer_.skip_brackets();
      end = static_cast<std::size_t>(part.data() + part.size() - lexer_.text().data()) + 1;
    } else if (!bang) {
      lexer_.fail_expected("'<' after 'complex'");
    }
    if (bang && !token.text.starts_with("!quant.")) return {.name = token.text, .bits = 0};
    // !quant.uniform<i8<-127:127>:f32, 0.5:3>: stored as its first argument.
    if (bang && part.empty()) lexer_.fail(token.offset, "a quantised type without the type it is stored in");
    Element result = TypeParser(lexer_, aliases_, depth_ + 1).word(inside(part));
    result.name = lexer_.text().substr(token.offset, end - token.offset);
    result.kind = bang ? ElementClass::quantized : ElementClass::complex;
    if (!bang) result.bits *= 2;
    return result;
  }

  Element word(const Lexer& at) const {
    Element result;
    if (at.token().kind != TokenKind::word) at.fail_expected("an element type");
    if (!parse_element(at.token().text, result)) {
      at.fail(at.token().offset, fmt::format("unknown element type {}", quote(at.token().text)));
    }
    return result;
  }

  Lexer& lexer_;
  const Aliases& aliases_;
  int depth_;
  int* aliased_;
};

// The type that begins at the current token, which ends up behind it: tensor<4x?xbf16>, tuple<…>, i32,
// !stablehlo.token, an alias !name, a function type.
Type parse_type(Lexer& lexer, const Aliases& aliases) { return TypeParser(lexer, aliases, 0).parse(); }

// Whether a type can begin at the current token.
bool begins_type(const Token& token) {
  return token.is('(') || token.kind == TokenKind::bang || token.kind == TokenKind::word;
}

constexpr std::string_view kLoose = "";  // the function of statements outside functions
constexpr std::string_view kMesh = "stablehlo.mesh";

bool is_function(const Token& token) { return token.is_word("func.func") || token.is_word("func"); }
bool is_module(const Token& token) { return token.is_word("module") || token.is_word("builtin.module"); }

constexpr std::size_t kMaxResults = 1 << 16;  // of one statement
constexpr std::size_t kMaxAlike = 16;         // of one type that is written once

bool has_dot(std::string_view text) { return text.find('.') != std::string_view::npos; }

// Ops that are printed without their dialect.
bool bare_op(std::string_view word) {
  return word == "return" || word == "call" || word == "call_indirect" || word == "func" || word == "constant" ||
         word == "module" || word == "br" || word == "cond_br";
}

// tensor.dim and its like print the type of their operand alone.
std::optional<Type> implied_type(std::string_view op, const std::vector<Type>& types) {
  if (types.size() != 1) return std::nullopt;
  Type scalar;
  scalar.form = Type::Form::tensor;
  if (op == "tensor.dim" || op == "tensor.rank") {
    parse_element("index", scalar.element);
    return scalar;
  }
  if (op != "tensor.extract") return std::nullopt;
  scalar.element = types[0].element;
  return scalar;
}

class Parser {
 public:
  Parser(Module& module, Lexer& lexer) : module_(module), lexer_(lexer) {}
  void parse() {
    const std::string_view text = lexer_.text();
    if (text.starts_with("ML\xefR")) {
      lexer_.fail(0, "this is MLIR bytecode, not text",
                  "stablehlo-translate --deserialize writes a portable artifact as text");
    }
    if (text.substr(0, 9) == "HloModule") {
      lexer_.fail(0, "this is HLO text, not StableHLO or MHLO", "xla-translate --hlo-text-to-stablehlo converts it");
    }
    for (;;) {
      const Token token = lexer_.token();
      if (lexer_.chunk() != lexer_chunk_ || (modules_ == 0 && is_module(token) && !module_.functions.empty()))
        begin_chunk();
      lexer_.source().release_before(token.offset);
      if (token.kind == TokenKind::end) break;
      if (token.kind == TokenKind::resources) {
        lexer_.skip_resources();
      } else if ((token.kind == TokenKind::hash || token.kind == TokenKind::bang) && lexer_.peek().is('=')) {
        alias();
      } else if (is_module(token)) {
        module_header();
      } else if (is_function(token)) {
        function();
      } else if (token.is('}') && modules_ > 0) {
        --modules_;
        lexer_.advance();
        location();
      } else if (token.kind == TokenKind::value || token.kind == TokenKind::string || token.kind == TokenKind::word) {
        adopt(statement());
      } else {
        lexer_.fail_expected("a module, a function or an op");
      }
    }
    if (modules_ > 0) lexer_.fail_expected("'}' at the end of the module");
  }

 private:
  struct Named {  // values of one name: %0:3 are three
    ValueId first = 0;
    std::size_t count = 0;
  };
  struct Undo {
    std::string_view name;
    Named before;
  };
  struct Result {
    std::string_view name;
    std::size_t count = 1;
    std::size_t offset = 0;
  };
  struct Argument {
    std::string_view name;
    Type type;
  };
  // What was read of a statement so far.
  struct Statement {
    Instruction instruction;
    std::vector<Result> results;
    List<ValueId> inits;                  // of the short form of reduce
    std::vector<std::string_view> bound;  // arguments of the regions, named beside operands (while)
    std::vector<Argument> arguments;      // of the next region, with their types
    std::vector<Type> types;              // after ':'
    std::vector<Type> result_types;       // after '->' or 'to'
    bool typed = false;
    bool arrow = false;
  };

  // --- what stands outside functions
  // A program of its own begins: behind "// -----", or in another module.
  void begin_chunk() {
    lexer_chunk_ = lexer_.chunk();
    ++chunk_;
    leave(0);
  }

  void add(Function&& f) {
    if (!f.declared && !defined_.emplace(f.chunk, f.name).second && modules_ < 2) {
      lexer_.fail(f.offset, fmt::format("@{} is defined a second time", f.name));
    }
    module_.functions.push_back(std::move(f));
  }

  // #loc3 = loc("jit(f)"(#loc1)): to the end of the line, or as far as brackets go.
  void alias() {
    const std::string_view name = lexer_.token().text;
    lexer_.advance(2);
    const std::size_t begin = lexer_.token().offset;
    std::size_t end = begin;
    do {
      if (lexer_.token().kind == TokenKind::end) break;
      end = lexer_.skip_part();
    } while (!lexer_.first_on_line());
    module_.aliases[name] = lexer_.text().substr(begin, end - begin);
  }

  // At "attributes {": passes over the word.
  bool begins_attributes() {
    if (!lexer_.token().is_word("attributes")) return false;
    lexer_.advance();
    if (!lexer_.token().is('{')) lexer_.fail_expected("'{' after 'attributes'");
    return true;
  }

  // module @name attributes {…} {
  void module_header() {
    lexer_.advance();
    if (lexer_.token().kind == TokenKind::symbol) lexer_.advance();
    if (begins_attributes()) dictionary(module_.attributes);
    lexer_.expect('{', "'{' at the beginning of the module");
    if (++modules_ > kMaxDepth) lexer_.fail(lexer_.token().offset, "modules are nested too deep");
  }

  // func.func public @main(%arg0: tensor<4xf32> {…}) -> (tensor<4xf32> {…}) attributes {…} { … }
  void function() {
    Function f;
    f.offset = lexer_.token().offset;
    f.chunk = chunk_;
    lexer_.advance();
    while (lexer_.token().kind == TokenKind::word) {
      f.is_private = f.is_private || lexer_.token().text == "private";
      lexer_.advance();
    }
    f.name = lexer_.expect(TokenKind::symbol, "the function's name").text;
    const std::size_t undo = undo_.size();
    arguments(f);
    function_results(f);
    if (begins_attributes()) {
      Instruction attributes;

      dictionary(attributes.attributes);
      if (const auto mesh = attributes.find(kMesh)) module_.meshes.push_back({f.name, chunk_, *mesh});
    }
    if (lexer_.token().is('{')) {
      Statement s;
      region(s);
      Block& block = s.instruction.regions.front();
      f.body.body = std::move(block.body);
      // Arguments of further basic blocks.
      f.body.arguments.insert(f.body.arguments.end(), block.arguments.begin(), block.arguments.end());
    } else {
      f.declared = true;
    }
    leave(undo);
    location();
    add(std::move(f));
  }

  void arguments(Function& f) {
    lexer_.expect('(', "'(' after the function's name");
    lexer_.list(')', "',' or ')' after an argument", [&] {
      std::string_view name;
      const std::size_t offset = lexer_.token().offset;
      if (lexer_.token().kind == TokenKind::value) {
        name = lexer_.token().text;
        lexer_.advance();
        lexer_.expect(':', "':' and the argument's type");
      }
      f.body.arguments.push_back(define(name, parse_type(lexer_, module_.aliases), offset));
      f.argument_attributes.emplace_back();
      if (lexer_.token().is('{')) dictionary(f.argument_attributes.back());
      location();
    });
  }

  void function_results(Function& f) {
    if (lexer_.token().kind != TokenKind::arrow) return;
    lexer_.advance();
    const auto type = [&] {
      f.results.push_back(parse_type(lexer_, module_.aliases));
      f.result_attributes.emplace_back();
    };
    if (!lexer_.take('(')) return type();
    lexer_.list(')', "',' or ')' after a result type", [&] {
      type();
      if (lexer_.token().is('{')) dictionary(f.result_attributes.back());
    });
  }

  // A statement outside functions: a module or a function in its generic form, a symbol (sdy.mesh), or an op of a
  // program that has no functions.
  void adopt(Instruction&& i) {
    if (i.name == "builtin.module" || i.name == "module") {
      module_.attributes.insert(module_.attributes.end(), i.attributes.begin(), i.attributes.end());
      for (Block& block : i.regions) {
        for (Instruction& inner : block.body) adopt(std::move(inner));
      }
    } else if (i.name == "func.func" || i.name == "func") {
      adopt_function(std::move(i));
    } else if (i.dialect() == "vhlo") {
      lexer_.fail(i.offset, "this is VHLO, the form in which StableHLO is stored",
                  "stablehlo-opt --vhlo-to-version=target=current --vhlo-legalize-to-stablehlo converts it");
    } else if (const auto symbol = i.find("sym_name"); symbol || (!i.symbol.empty() && i.results.empty())) {
      // sdy.mesh @mesh = <[…]>, "sdy.mesh"() <{mesh = #sdy.mesh<[…]>, sym_name = "mesh"}>, and where Shardy's dialect
      // is not registered "sdy.mesh"() {stablehlo.mesh = {axes = […]}, sym_name = "mesh"}
      const std::string_view name = symbol ? unquoted(*symbol) : i.symbol;
      for (const std::string_view key : {std::string_view("mesh"), name, kMesh}) {
        const auto text = i.find(key);
        if (!text) continue;
        module_.meshes.push_back({name, chunk_, *text});
        break;
      }
    } else {
      loose_statements().body.body.push_back(std::move(i));
    }
  }

  void adopt_function(Instruction&& i) {
    Function f;
    f.offset = i.offset;
    f.chunk = chunk_;
    f.name = unquoted(i.find("sym_name").value_or(std::string_view{}));
    if (const auto mesh = i.find(kMesh)) module_.meshes.push_back({f.name, chunk_, *mesh});
    f.is_private = unquoted(i.find("sym_visibility").value_or(std::string_view{})) == "private";
    f.declared = i.regions.empty() || i.regions.front().body.empty();
    if (!f.declared) f.body = std::move(i.regions.front());
    f.argument_attributes.resize(f.body.arguments.size());
    if (!f.declared && !f.body.body.empty()) {
      for (const ValueId value : f.body.body.back().operands) f.results.push_back(module_.type(value));
    }
    f.result_attributes.resize(f.results.size());
    add(std::move(f));
  }

  Function& loose_statements() {
    if (loose_chunk_ != chunk_) {
      loose_chunk_ = chunk_;
      loose_ = module_.functions.size();
      Function& f = module_.functions.emplace_back();
      f.name = kLoose;
      f.chunk = chunk_;
    }
    return module_.functions[loose_];
  }

  // --- statements
  // [%results =] name parts
  Instruction statement() {
    Statement s;
    s.instruction.offset = lexer_.token().offset;
    if (lexer_.token().kind == TokenKind::value) {
      std::size_t total = 0;
      for (;;) {
        const Token named = lexer_.expect(TokenKind::value, "the name of a result");
        Result result{named.text, 1, named.offset};
        if (lexer_.take(':')) {
          const std::string_view digits = lexer_.token().text;
          const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), result.count);
          if (lexer_.token().kind != TokenKind::number || read.ec != std::errc{} || result.count > kMaxResults) {
            lexer_.fail_expected("the number of results");
          }
          lexer_.advance();
        }
        total += result.count;
        if (total > kMaxResults) lexer_.fail(result.offset, "too many results");
        s.results.push_back(result);
        if (!lexer_.take(',')) break;
      }
      lexer_.expect('=', "'='");
    }
    const Token name = lexer_.token();
    if (name.kind != TokenKind::string && name.kind != TokenKind::word) lexer_.fail_expected("the name of an op");
    if (name.kind == TokenKind::word && !has_dot(name.text) && !bare_op(name.text)) {
      lexer_.fail(name.offset, fmt::format("{} is no op", quote(name.text)),
                  "ops are named with their dialect, as in stablehlo.add");
    }
    if (name.text.starts_with("cf.")) {
      lexer_.fail(name.offset, fmt::format("{}: control flow between blocks is not read", name.text),
                  "StableHLO has while, if and case for it");
    }
    Instruction& i = s.instruction;
    i.name = name.text;
    i.offset = name.offset;
    i.line = lexer_.source().position(name.offset).line;
    lexer_.advance();
    parts(s);
    i.operands.insert(i.operands.end(), s.inits.begin(), s.inits.end());
    define_results(s);
    ++module_.instructions;
    return std::move(s.instruction);
  }

  void parts(Statement& s) {
    Instruction& i = s.instruction;
    bool after_comma = false;
    while (after_comma || !ends(s)) {
      const Token token = lexer_.token();
      after_comma = false;
      switch (token.kind) {
        case TokenKind::value:
          i.operands.push_back(use(token));
          lexer_.advance();
          break;
        case TokenKind::symbol:
          if (i.symbol.empty()) i.symbol = token.text;
          if (lexer_.peek().is('=')) {
            attribute(s);
          } else {
            lexer_.advance();
          }
          break;
        case TokenKind::word:
          if (token.text == "loc" && lexer_.peek().is('(')) {
            i.location = location();
            return;
          }
          if (lexer_.peek().is('=')) {
            attribute(s);
          } else if (token.text == "attributes" && lexer_.peek().is('{')) {
            lexer_.advance();
            dictionary(i.attributes);
          } else if (token.text == "to" && s.typed) {
            lexer_.advance();
            s.result_types.push_back(parse_type(lexer_, module_.aliases));
          } else if (token.text == "applies") {
            lexer_.advance();
            i.attributes.push_back({"applies", lexer_.token().text});
            lexer_.advance();
          } else {
            unnamed(s);
          }
          break;
        case TokenKind::arrow:
          lexer_.advance();
          s.arrow = true;
          types(s);
          break;
        case TokenKind::punctuation:
          if (token.is('(')) {
            group(s);
          } else if (token.is('{')) {
            braces(s);
          } else if (token.is(':')) {
            lexer_.advance();
            s.typed = true;
            types(s);
          } else if (token.is('<')) {
            if (lexer_.peek().is('{') && lexer_.peek().offset == token.end) {
              lexer_.advance();
              dictionary(i.attributes);
              lexer_.expect('>', "'>' after the properties");
            } else {
              unnamed(s);
            }
          } else if (token.is('[')) {
            unnamed(s);
          } else {
            after_comma = token.is(',') && lexer_.peek().kind == TokenKind::value;
            lexer_.advance();
          }
          break;
        case TokenKind::string:
          if (lexer_.peek().is('=')) {
            attribute(s);
            break;
          }
          [[fallthrough]];
        default: unnamed(s); break;
      }
    }
  }

  // Whether the current token cannot belong to the statement any more.
  bool ends(const Statement& s) {
    const Token& token = lexer_.token();
    const bool fresh = lexer_.first_on_line() || s.typed;
    switch (token.kind) {
      case TokenKind::end:
      case TokenKind::block:
      case TokenKind::resources: return true;
      case TokenKind::punctuation: return token.is('}') || token.is(')') || token.is(']');
      case TokenKind::string: return fresh && lexer_.peek().is('(');
      case TokenKind::hash:
      case TokenKind::bang: return lexer_.first_on_line() && lexer_.peek().is('=');
      case TokenKind::word:
        if (!fresh) return false;
        return has_dot(token.text) || bare_op(token.text);
      case TokenKind::value: {
        if (!fresh) return false;
        // %a:2, %b = …
        Lexer ahead(lexer_);
        for (;;) {
          if (ahead.token().kind != TokenKind::value) return false;
          ahead.advance();
          if (ahead.take(':')) {
            if (ahead.token().kind != TokenKind::number) return false;
            ahead.advance();
          }
          if (ahead.token().is('=')) return true;
          if (!ahead.take(',')) return false;
        }
      }
      default: return false;
    }
  }

  // ( … ): operands, arguments of a region with their types, `%name = %operand` of loops, regions of the generic form.
  void group(Statement& s) {
    if (++depth_ > kMaxDepth) lexer_.fail(lexer_.token().offset, "brackets are nested too deep");
    lexer_.advance();
    while (!lexer_.token().is(')')) {
      const Token token = lexer_.token();
      if (token.kind == TokenKind::end) lexer_.fail_expected("')'");
      if (token.kind == TokenKind::value) {
        const Token next = lexer_.peek();
        const bool known = scope_.contains(token.text.substr(0, token.text.find('#')));
        if (next.is('=')) {
          s.bound.push_back(token.text);
          lexer_.advance(2);
        } else if (next.is(':') && !known) {
          lexer_.advance(2);
          s.arguments.push_back({token.text, parse_type(lexer_, module_.aliases)});
        } else {
          s.instruction.operands.push_back(use(token));
          lexer_.advance();
          if (lexer_.take(':')) parse_type(lexer_, module_.aliases);
        }
      } else if (token.is_word("init") && lexer_.peek().is(':')) {
        lexer_.advance(2);
        s.inits.push_back(use(lexer_.expect(TokenKind::value, "the initial value")));
      } else if (token.is_word("loc") && lexer_.peek().is('(')) {
        location();
      } else if (token.is('(')) {
        group(s);
      } else if (token.is('{')) {
        region(s);
      } else if (token.is('[') || token.is('<')) {
        lexer_.skip_brackets();
      } else if (token.is('}') || token.is(']') || token.kind == TokenKind::block ||
                 token.kind == TokenKind::resources) {
        lexer_.fail_expected("')'");
      } else {
        lexer_.advance();
      }
    }
    lexer_.advance();
    --depth_;
  }

  // At '{'.
  void braces(Statement& s) {
    if (begins_region(s)) return region(s);
    Lexer ahead(lexer_);
    ahead.advance();
    bool entries = ahead.token().kind == TokenKind::word || ahead.token().is('}');
    if (ahead.token().kind == TokenKind::string) {
      ahead.advance();
      entries = ahead.token().is('=');  // else the axes of sdy.all_reduce {"x", "y":(1)2}
    }
    if (entries) {
      dictionary(s.instruction.attributes);
    } else {
      unnamed(s);  // of another dialect
    }
  }

  bool begins_region(const Statement& s) const {
    if (!s.bound.empty() || !s.arguments.empty()) return true;
    Lexer ahead(lexer_);
    ahead.advance();
    const Token first = ahead.token();
    if (first.kind == TokenKind::value || first.kind == TokenKind::block) return true;
    ahead.advance();
    const Token second = ahead.token();
    if (first.kind == TokenKind::string) return second.is('(');
    if (first.kind != TokenKind::word) return false;
    if (bare_op(first.text)) return !second.is('=') && !second.is(',');
    if (!has_dot(first.text)) return false;
    return !second.is('=') && !second.is(',') && (!second.is('}') || first.text.ends_with("return"));
  }

  // { ^bb0(%arg: type): statements }
  void region(Statement& s) {
    const std::size_t begin = lexer_.token().offset;
    if (++depth_ > kMaxDepth) lexer_.fail(begin, fmt::format("regions are nested more than {} deep", kMaxDepth));
    const std::size_t undo = undo_.size();
    Block block;
    for (std::size_t n = 0; n < s.bound.size(); ++n) {
      block.arguments.push_back(define(s.bound[n], n < s.types.size() ? s.types[n] : Type{}, begin));
    }
    for (Argument& argument : s.arguments) {
      block.arguments.push_back(define(argument.name, std::move(argument.type), begin));
    }
    s.arguments.clear();
    lexer_.advance();
    while (!lexer_.token().is('}')) {
      const Token token = lexer_.token();
      lexer_.source().release_before(token.offset);
      if (token.kind == TokenKind::end) lexer_.fail(begin, "this '{' is not closed");
      if (token.kind == TokenKind::block) {
        const List<ValueId> more = block_arguments();
        block.arguments.insert(block.arguments.end(), more.begin(), more.end());
      } else if (token.kind == TokenKind::value || token.kind == TokenKind::string || token.kind == TokenKind::word) {
        block.body.push_back(statement());
      } else {
        lexer_.fail_expected("an op or '}'");
      }
    }
    lexer_.advance();
    leave(undo);
    --depth_;
    s.instruction.regions.push_back(std::move(block));
  }

  // The types after ':' are those of the results, or of operands and results: the last ones then.
  void define_results(Statement& s) {
    if (const auto implied = implied_type(s.instruction.name, s.types); implied && s.result_types.empty() && !s.arrow) {
      s.types = {*implied};
    }
    std::size_t count = 0;
    for (const Result& result : s.results) count += result.count;
    const std::vector<Type>& types = s.arrow || !s.result_types.empty() ? s.result_types : s.types;
    if (count > 0 && types.size() < count && (types.size() != 1 || count > kMaxAlike)) {
      if (types.empty() && is_foreign(s.instruction.name)) {
        lexer_.fail(s.instruction.offset, foreign_message(s.instruction.name), kReadDialects);
      }
      lexer_.fail(s.instruction.offset, fmt::format("{} results and {} types for them", count, types.size()));
    }
    const std::size_t skipped = types.size() > count ? types.size() - count : 0;
    std::size_t n = 0;
    for (const Result& result : s.results) {
      Named named{static_cast<ValueId>(module_.values.size()), result.count};
      for (std::size_t k = 0; k < result.count; ++k, ++n) {
        const Type& type = types.size() == 1 ? types[0] : types[skipped + n];
        s.instruction.results.push_back(define({}, type, result.offset));
        module_.values.back().name = result.name;
      }
      bind(result.name, named);
    }
  }

  // ^bb0(%arg0: type loc(…), …):
  List<ValueId> block_arguments() {
    List<ValueId> values;
    lexer_.advance();
    if (lexer_.take('(')) {
      lexer_.list(')', "',' or ')' after an argument", [&] {
        const Token name = lexer_.expect(TokenKind::value, "an argument of the block");
        lexer_.expect(':', "':' and the argument's type");
        values.push_back(define(name.text, parse_type(lexer_, module_.aliases), name.offset));
        location();
      });
    }
    lexer_.expect(':', "':' after the block's name");
    return values;
  }

  // --- parts of a statement that hold no statements: types, attributes in both forms, locations
  // After ':' or '->': one type, several with commas, or in brackets with commas (the operands of a function type).
  void types(Statement& s) {
    std::vector<Type>& into = s.arrow ? s.result_types : s.types;
    if (lexer_.take('(')) {
      return lexer_.list(')', "',' or ')' after a type", [&] { into.push_back(parse_type(lexer_, module_.aliases)); });
    }
    for (;;) {
      if (!begins_type(lexer_.token())) return;  // an op of another dialect has something else behind its ':'
      into.push_back(parse_type(lexer_, module_.aliases));
      if (!lexer_.token().is(',') || !begins_type(lexer_.peek())) return;
      lexer_.advance();
    }
  }

  // key = value
  void attribute(Statement& s) {
    const std::string_view key = lexer_.token().text;
    lexer_.advance(2);
    s.instruction.attributes.push_back({key, short_value()});
  }

  void unnamed(Statement& s) { s.instruction.attributes.push_back({{}, short_value()}); }

  // {key = value, "key" = value, unit}
  void dictionary(std::vector<Attribute>& attributes) {
    const std::size_t begin = lexer_.token().offset;
    lexer_.advance();
    lexer_.list('}', "',' or '}' after an attribute", [&] {
      const Token token = lexer_.token();
      if (token.kind == TokenKind::end) lexer_.fail(begin, "this '{' is not closed");
      const bool name = token.kind == TokenKind::word || token.kind == TokenKind::string ||
                        token.kind == TokenKind::number || token.kind == TokenKind::symbol;
      if (!name) lexer_.fail_expected("the name of an attribute");
      Attribute attribute{token.text, {}};
      lexer_.advance();
      if (lexer_.take('=')) attribute.text = lexer_.skip_value();
      attributes.push_back(attribute);
    });
  }

  // [1] x [0], [b, 0]x[0, o]->[b, 0], {stride = [2, 2]}, #dialect.name<…>, dense<…>, @symbol, 3, DEFAULT
  std::string_view short_value() {
    const std::size_t begin = lexer_.token().offset;
    std::size_t end = begin;
    const auto take = [&] {
      if (lexer_.token().kind == TokenKind::end) lexer_.fail_expected("a value");
      end = lexer_.skip_part();
    };
    take();
    for (;;) {
      const Token& token = lexer_.token();
      const bool adjacent = token.is('<') && token.offset == end && lexer_.text()[begin] != '<';
      const bool product = token.is_word("x") && lexer_.peek().is('[');
      const bool arrow = token.kind == TokenKind::arrow && lexer_.text()[begin] == '[' && lexer_.peek().is('[');
      if (adjacent) {
        take();
      } else if (product || arrow) {
        take();
        take();
      } else {
        break;
      }
    }
    return lexer_.text().substr(begin, end - begin);
  }

  // What is in loc(…), if there is one.
  std::string_view location() {
    if (!lexer_.token().is_word("loc") || !lexer_.peek().is('(')) return {};
    lexer_.advance();
    return lexer_.skip_brackets();
  }

  ValueId define(std::string_view name, Type type, std::size_t offset) {
    const auto id = static_cast<ValueId>(module_.values.size());
    module_.values.push_back({name, std::move(type), offset});
    if (!name.empty()) bind(name, {id, 1});
    return id;
  }

  void bind(std::string_view name, Named values) {
    Named& entry = scope_[name];
    undo_.push_back({name, entry});
    entry = values;
  }

  ValueId use(const Token& token) const {
    const std::size_t hash = token.text.find('#');
    const auto found = scope_.find(token.text.substr(0, hash));
    std::size_t index = 0;
    if (hash != std::string_view::npos) {
      const std::string_view digits = token.text.substr(hash + 1);
      const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), index);
      if (read.ec != std::errc{}) index = kMaxResults;
    }
    if (found == scope_.end() || index >= found->second.count) {
      lexer_.fail(token.offset, fmt::format("%{} is not defined here", token.text));
    }
    return found->second.first + static_cast<ValueId>(index);
  }

  void leave(std::size_t undo_size) {
    while (undo_.size() > undo_size) {
      const Undo& undo = undo_.back();
      if (undo.before.count == 0) {
        scope_.erase(undo.name);
      } else {
        scope_[undo.name] = undo.before;
      }
      undo_.pop_back();
    }
  }

  static constexpr int kMaxDepth = 200;  // of regions

  Module& module_;
  Lexer& lexer_;
  std::unordered_map<std::string_view, Named> scope_;
  std::vector<Undo> undo_;
  int depth_ = 0;
  int modules_ = 0;                                     // open ones
  std::set<std::pair<int, std::string_view>> defined_;  // functions with a body, by chunk
  int loose_chunk_ = -1;                                // in which statements outside functions were last found
  std::size_t loose_ = 0;                               // index of the function they are put in
  int chunk_ = 0;                                       // program of the file that is being read
  int lexer_chunk_ = 0;                                 // the lexer's count when it began
};

Module parse(std::unique_ptr<Source> source) {
  Module module;
  module.source = std::move(source);
  Lexer lexer(*module.source);
  Parser(module, lexer).parse();
  return module;
}

}  // namespace

Module parse_file(const std::string& path) { return parse(std::make_unique<Source>(path)); }
Module parse_text(std::string name, std::string text) {
  return parse(std::make_unique<Source>(std::move(name), std::move(text)));
}

}  // namespace llmperf::program
