#include "graph/hlo/parser.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"

namespace llmperf::graph::hlo {
namespace {

constexpr std::string_view kLoose = "";  // the function of statements outside functions
constexpr std::string_view kMesh = "stablehlo.mesh";

bool is_function(const Token& token) { return token.is_word("func.func") || token.is_word("func"); }
bool is_module(const Token& token) { return token.is_word("module") || token.is_word("builtin.module"); }

}  // namespace

void Parser::parse() {
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
      std::string_view ignored;
      location(ignored);
    } else if (token.kind == TokenKind::value || token.kind == TokenKind::string || token.kind == TokenKind::word) {
      adopt(statement());
    } else {
      lexer_.fail_expected("a module, a function or an op");
    }
  }
  if (modules_ > 0) lexer_.fail_expected("'}' at the end of the module");
}

// #loc3 = loc("jit(f)"(#loc1)): to the end of the line, or as far as brackets go.
void Parser::alias() {
  const std::string_view name = lexer_.token().text;
  lexer_.advance();
  lexer_.advance();
  const std::size_t begin = lexer_.token().offset;
  std::size_t end = begin;
  do {
    if (lexer_.token().kind == TokenKind::end) break;
    if (lexer_.token().is('(') || lexer_.token().is('[') || lexer_.token().is('{') || lexer_.token().is('<')) {
      const std::string_view inside = lexer_.skip_brackets();
      end = static_cast<std::size_t>(inside.data() + inside.size() - lexer_.text().data()) + 1;
    } else {
      end = lexer_.token().end;
      lexer_.advance();
    }
  } while (!lexer_.first_on_line());
  module_.aliases[name] = lexer_.text().substr(begin, end - begin);
}

// module @name attributes {…} {
void Parser::module_header() {
  lexer_.advance();
  if (lexer_.token().kind == TokenKind::symbol) lexer_.advance();
  if (lexer_.token().is_word("attributes")) {
    lexer_.advance();
    if (!lexer_.token().is('{')) lexer_.fail_expected("'{' after 'attributes'");
    dictionary(module_.attributes);
  }
  if (!lexer_.token().is('{')) lexer_.fail_expected("'{' at the beginning of the module");
  lexer_.advance();
  if (++modules_ > kMaxDepth) lexer_.fail(lexer_.token().offset, "modules are nested too deep");
}

// func.func public @main(%arg0: tensor<4xf32> {…}) -> (tensor<4xf32> {…}) attributes {…} { … }
void Parser::function() {
  Function f;
  f.offset = lexer_.token().offset;
  f.chunk = chunk_;
  lexer_.advance();
  while (lexer_.token().kind == TokenKind::word) {
    f.is_private = f.is_private || lexer_.token().text == "private";
    lexer_.advance();
  }
  if (lexer_.token().kind != TokenKind::symbol) lexer_.fail_expected("the function's name");
  f.name = lexer_.token().text;
  lexer_.advance();
  const std::size_t undo = undo_.size();
  arguments(f);
  function_results(f);
  if (lexer_.token().is_word("attributes")) {
    lexer_.advance();
    Instruction attributes;
    if (!lexer_.token().is('{')) lexer_.fail_expected("'{' after 'attributes'");
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
  std::string_view ignored;
  location(ignored);
  add(std::move(f));
}

void Parser::add(Function&& f) {
  if (!f.declared && !defined_.emplace(f.chunk, f.name).second && modules_ < 2) {
    lexer_.fail(f.offset, fmt::format("@{} is defined a second time", f.name));
  }
  module_.functions.push_back(std::move(f));
}

// A program of its own begins: behind "// -----", or in another module.
void Parser::begin_chunk() {
  lexer_chunk_ = lexer_.chunk();
  ++chunk_;
  leave(0);
}

void Parser::arguments(Function& f) {
  if (!lexer_.token().is('(')) lexer_.fail_expected("'(' after the function's name");
  lexer_.advance();
  while (!lexer_.token().is(')')) {
    std::string_view name;
    const std::size_t offset = lexer_.token().offset;
    if (lexer_.token().kind == TokenKind::value) {
      name = lexer_.token().text;
      lexer_.advance();
      if (!lexer_.token().is(':')) lexer_.fail_expected("':' and the argument's type");
      lexer_.advance();
    }
    f.body.arguments.push_back(define(name, parse_type(lexer_, module_.aliases), offset));
    f.argument_attributes.emplace_back();
    if (lexer_.token().is('{')) dictionary(f.argument_attributes.back());
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

void Parser::function_results(Function& f) {
  if (lexer_.token().kind != TokenKind::arrow) return;
  lexer_.advance();
  if (!lexer_.token().is('(')) {
    f.results.push_back(parse_type(lexer_, module_.aliases));
    f.result_attributes.emplace_back();
    return;
  }
  lexer_.advance();
  while (!lexer_.token().is(')')) {
    f.results.push_back(parse_type(lexer_, module_.aliases));
    f.result_attributes.emplace_back();
    if (lexer_.token().is('{')) dictionary(f.result_attributes.back());
    if (lexer_.token().is(',')) {
      lexer_.advance();
    } else if (!lexer_.token().is(')')) {
      lexer_.fail_expected("',' or ')' after a result type");
    }
  }
  lexer_.advance();
}

// A statement outside functions: a module or a function in its generic form, a symbol (sdy.mesh), or an op of a program
// that has no functions.
void Parser::adopt(Instruction&& i) {
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
    // sdy.mesh @mesh = <[…]>, "sdy.mesh"() <{mesh = #sdy.mesh<[…]>, sym_name = "mesh"}>, and where Shardy's dialect is
    // not registered "sdy.mesh"() {stablehlo.mesh = {axes = […]}, sym_name = "mesh"}
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

Function& Parser::loose_statements() {
  if (loose_chunk_ != chunk_) {
    loose_chunk_ = chunk_;
    loose_ = module_.functions.size();
    Function& f = module_.functions.emplace_back();
    f.name = kLoose;
    f.chunk = chunk_;
  }
  return module_.functions[loose_];
}

void Parser::adopt_function(Instruction&& i) {
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

}  // namespace llmperf::graph::hlo
