#include "graph/hlo/type_parser.h"

#include <fmt/format.h>

#include <cctype>
#include <utility>

#include "base/text.h"

namespace llmperf::graph::hlo {
namespace {

constexpr int kMaxDepth = 50;                               // of types in types
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
    if (depth > kMaxDepth)
      lexer.fail(lexer.token().offset, fmt::format("types are nested more than {} deep", kMaxDepth));
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
    if (lexer_.token().is(',')) {
      lexer_.advance();
      encoding(type);
    }
    while (lexer_.token().is(',')) {
      lexer_.advance();
      lexer_.skip_value();
    }
    if (!lexer_.token().is('>')) lexer_.fail_expected("'>' at the end of the tensor type");
    lexer_.advance();
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
    if (!lexer_.token().is('<')) lexer_.fail_expected("'<' after 'tuple'");
    lexer_.advance();
    while (!lexer_.token().is('>')) {
      if (aliased_ != nullptr && ++*aliased_ > kMaxAliasedMembers) {
        lexer_.fail(lexer_.token().offset,
                    fmt::format("an alias of a tuple of more than {} parts", kMaxAliasedMembers));
      }
      type.members.push_back(TypeParser(lexer_, aliases_, depth_ + 1, aliased_).parse());
      if (lexer_.token().is(',')) {
        lexer_.advance();
      } else if (!lexer_.token().is('>')) {
        lexer_.fail_expected("',' or '>' in the tuple type");
      }
    }
    lexer_.advance();
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
    Element result;
    if (token.kind == TokenKind::bang) {
      const auto alias = aliases_.find(token.text);
      lexer_.advance();
      if (alias != aliases_.end()) {
        Lexer other = inside(alias->second);
        return TypeParser(other, aliases_, depth_ + 1).element(other.token().offset);
      }
      std::string_view arguments;
      std::size_t end = token.end;
      if (lexer_.token().is('<') && lexer_.token().offset == token.end) {
        arguments = lexer_.skip_brackets();
        end = static_cast<std::size_t>(arguments.data() + arguments.size() - lexer_.text().data()) + 1;
      }
      if (!token.text.starts_with("!quant.")) {
        result.name = token.text;
        result.bits = 0;
        return result;
      }
      // !quant.uniform<i8<-127:127>:f32, 0.5:3>: stored as its first argument.
      if (arguments.empty()) lexer_.fail(token.offset, "a quantised type without the type it is stored in");
      Element stored = TypeParser(lexer_, aliases_, depth_ + 1).word(inside(arguments));
      result = stored;
      result.name = lexer_.text().substr(token.offset, end - token.offset);
      result.kind = ElementClass::quantized;
      return result;
    }
    if (token.is_word("complex")) {
      lexer_.advance();
      if (!lexer_.token().is('<')) lexer_.fail_expected("'<' after 'complex'");
      const std::string_view part = lexer_.skip_brackets();
      result = word(inside(part));
      const auto end = static_cast<std::size_t>(part.data() + part.size() - lexer_.text().data()) + 1;
      result.name = lexer_.text().substr(token.offset, end - token.offset);
      result.bits *= 2;
      result.kind = ElementClass::complex;
      return result;
    }
    if (token.is_word("tuple") || token.is_word("vector")) lexer_.fail_expected("an element type");
    result = word(lexer_);
    lexer_.advance();
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

}  // namespace

Type parse_type(Lexer& lexer, const Aliases& aliases) { return TypeParser(lexer, aliases, 0).parse(); }

bool begins_type(const Token& token) {
  return token.is('(') || token.kind == TokenKind::bang || token.kind == TokenKind::word;
}

}  // namespace llmperf::graph::hlo
