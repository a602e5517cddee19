#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.h"
#include "graph/hlo/op_table.h"
#include "graph/hlo/parser.h"

namespace llmperf::graph::hlo {
namespace {

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

}  // namespace

ValueId Parser::define(std::string_view name, Type type, std::size_t offset) {
  const auto id = static_cast<ValueId>(module_.values.size());
  module_.values.push_back({name, std::move(type), offset});
  if (!name.empty()) bind(name, {id, 1});
  return id;
}

void Parser::bind(std::string_view name, Named values) {
  Named& entry = scope_[name];
  undo_.push_back({name, entry});
  entry = values;
}

void Parser::leave(std::size_t undo_size) {
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

ValueId Parser::use(const Token& token) const {
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

// [%results =] name parts
Instruction Parser::statement() {
  Statement s;
  s.instruction.offset = lexer_.token().offset;
  if (lexer_.token().kind == TokenKind::value) {
    std::size_t total = 0;
    for (;;) {
      if (lexer_.token().kind != TokenKind::value) lexer_.fail_expected("the name of a result");
      Result result{lexer_.token().text, 1, lexer_.token().offset};
      lexer_.advance();
      if (lexer_.token().is(':')) {
        lexer_.advance();
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
      if (!lexer_.token().is(',')) break;
      lexer_.advance();
    }
    if (!lexer_.token().is('=')) lexer_.fail_expected("'='");
    lexer_.advance();
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

// Whether the current token cannot belong to the statement any more.
bool Parser::ends(const Statement& s) {
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
      return has_dot(token.text) || (lexer_.first_on_line() && bare_op(token.text));
    case TokenKind::value: {
      if (!fresh) return false;
      // %a:2, %b = …
      Lexer ahead(lexer_);
      for (;;) {
        if (ahead.token().kind != TokenKind::value) return false;
        ahead.advance();
        if (ahead.token().is('=')) return true;
        if (ahead.token().is(':')) {
          ahead.advance();
          if (ahead.token().kind != TokenKind::number) return false;
          ahead.advance();
          if (ahead.token().is('=')) return true;
        }
        if (!ahead.token().is(',')) return false;
        ahead.advance();
      }
    }
    default: return false;
  }
}

void Parser::parts(Statement& s) {
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
        if (lexer_.peek().is('=')) {
          attribute(s);
          if (i.symbol.empty()) i.symbol = token.text;
        } else {
          if (i.symbol.empty()) i.symbol = token.text;
          lexer_.advance();
        }
        break;
      case TokenKind::word:
        if (token.text == "loc" && lexer_.peek().is('(')) {
          location(i.location);
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
            if (!lexer_.token().is('>')) lexer_.fail_expected("'>' after the properties");
            lexer_.advance();
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

// ( … ): operands, arguments of a region with their types, `%name = %operand` of loops, regions of the generic form.
void Parser::group(Statement& s) {
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
        lexer_.advance();
        lexer_.advance();
      } else if (next.is(':') && !known) {
        lexer_.advance();
        lexer_.advance();
        s.arguments.push_back({token.text, parse_type(lexer_, module_.aliases)});
      } else if (next.is(':')) {
        s.instruction.operands.push_back(use(token));
        lexer_.advance();
        lexer_.advance();
        parse_type(lexer_, module_.aliases);
      } else {
        s.instruction.operands.push_back(use(token));
        lexer_.advance();
      }
    } else if (token.is_word("init") && lexer_.peek().is(':')) {
      lexer_.advance();
      lexer_.advance();
      if (lexer_.token().kind != TokenKind::value) lexer_.fail_expected("the initial value");
      s.inits.push_back(use(lexer_.token()));
      lexer_.advance();
    } else if (token.is_word("loc") && lexer_.peek().is('(')) {
      std::string_view ignored;
      location(ignored);
    } else if (token.is('(')) {
      group(s);
    } else if (token.is('{')) {
      region(s);
    } else if (token.is('[') || token.is('<')) {
      lexer_.skip_brackets();
    } else if (token.is('}') || token.is(']') || token.kind == TokenKind::block || token.kind == TokenKind::resources) {
      lexer_.fail_expected("')'");
    } else {
      lexer_.advance();
    }
  }
  lexer_.advance();
  --depth_;
}

// At '{'.
void Parser::braces(Statement& s) {
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

bool Parser::begins_region(const Statement& s) const {
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
void Parser::region(Statement& s) {
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
      const std::vector<ValueId> more = block_arguments();
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

// ^bb0(%arg0: type loc(…), …):
std::vector<ValueId> Parser::block_arguments() {
  std::vector<ValueId> values;
  lexer_.advance();
  if (lexer_.token().is('(')) {
    lexer_.advance();
    while (!lexer_.token().is(')')) {
      if (lexer_.token().kind != TokenKind::value) lexer_.fail_expected("an argument of the block");
      const Token name = lexer_.token();
      lexer_.advance();
      if (!lexer_.token().is(':')) lexer_.fail_expected("':' and the argument's type");
      lexer_.advance();
      values.push_back(define(name.text, parse_type(lexer_, module_.aliases), name.offset));
      std::string_view ignored;
      location(ignored);
      if (lexer_.token().is(',')) {
        lexer_.advance();
      } else if (!lexer_.token().is(')')) {
        lexer_.fail_expected("',' or ')' after an argument");
      }
    }
    lexer_.advance();
  }
  if (!lexer_.token().is(':')) lexer_.fail_expected("':' after the block's name");
  lexer_.advance();
  return values;
}

// The types after ':' are those of the results, or of operands and results: the last ones then.
void Parser::define_results(Statement& s) {
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

}  // namespace llmperf::graph::hlo
