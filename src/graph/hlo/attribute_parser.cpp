// The parts of a statement that hold no statements: types, attributes in both forms, locations.
#include "graph/hlo/parser.h"

namespace llmperf::graph::hlo {

// After ':' or '->': one type, several with commas, or in brackets with commas (the operands of a function type).
void Parser::types(Statement& s) {
  std::vector<Type>& into = s.arrow ? s.result_types : s.types;
  if (lexer_.token().is('(')) {
    lexer_.advance();
    while (!lexer_.token().is(')')) {
      into.push_back(parse_type(lexer_, module_.aliases));
      if (lexer_.token().is(',')) {
        lexer_.advance();
      } else if (!lexer_.token().is(')')) {
        lexer_.fail_expected("',' or ')' after a type");
      }
    }
    lexer_.advance();
    return;
  }
  for (;;) {
    if (!begins_type(lexer_.token())) return;  // an op of another dialect has something else behind its ':'
    into.push_back(parse_type(lexer_, module_.aliases));
    if (!lexer_.token().is(',') || !begins_type(lexer_.peek())) return;
    lexer_.advance();
  }
}

// key = value
void Parser::attribute(Statement& s) {
  const std::string_view key = lexer_.token().text;
  lexer_.advance();
  lexer_.advance();
  s.instruction.attributes.push_back({key, short_value()});
}

void Parser::unnamed(Statement& s) { s.instruction.attributes.push_back({{}, short_value()}); }

// [1] x [0], [b, 0]x[0, o]->[b, 0], {stride = [2, 2]}, #dialect.name<…>, dense<…>, @symbol, 3, DEFAULT
std::string_view Parser::short_value() {
  const std::size_t begin = lexer_.token().offset;
  std::size_t end = begin;
  const auto take = [&] {
    const Token token = lexer_.token();
    if (token.is('(') || token.is('[') || token.is('{') || token.is('<')) {
      const std::string_view inside = lexer_.skip_brackets();
      end = static_cast<std::size_t>(inside.data() + inside.size() - lexer_.text().data()) + 1;
    } else if (token.kind == TokenKind::end) {
      lexer_.fail_expected("a value");
    } else {
      end = token.end;
      lexer_.advance();
    }
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

// {key = value, "key" = value, unit}
void Parser::dictionary(std::vector<Attribute>& attributes) {
  const std::size_t begin = lexer_.token().offset;
  lexer_.advance();
  while (!lexer_.token().is('}')) {
    const Token token = lexer_.token();
    if (token.kind == TokenKind::end) lexer_.fail(begin, "this '{' is not closed");
    const bool name = token.kind == TokenKind::word || token.kind == TokenKind::string ||
                      token.kind == TokenKind::number || token.kind == TokenKind::symbol;
    if (!name) lexer_.fail_expected("the name of an attribute");
    Attribute attribute{token.text, {}};
    lexer_.advance();
    if (lexer_.token().is('=')) {
      lexer_.advance();
      attribute.text = lexer_.skip_value();
      constexpr std::size_t kLarge = 4096;
      if (attribute.text.size() > kLarge) {
        module_.skipped_constant_bytes += static_cast<std::int64_t>(attribute.text.size());
      }
    }
    attributes.push_back(attribute);
    if (lexer_.token().is(',')) {
      lexer_.advance();
    } else if (!lexer_.token().is('}')) {
      lexer_.fail_expected("',' or '}' after an attribute");
    }
  }
  lexer_.advance();
}

// loc(…), if there is one.
void Parser::location(std::string_view& into) {
  if (!lexer_.token().is_word("loc") || !lexer_.peek().is('(')) return;
  lexer_.advance();
  into = lexer_.skip_brackets();
}

}  // namespace llmperf::graph::hlo
