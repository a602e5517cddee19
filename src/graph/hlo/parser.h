// Text of a module to Module: recursive descent over the words of lexer.h.
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
#pragma once

#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/hlo/lexer.h"
#include "graph/hlo/module.h"
#include "graph/hlo/type_parser.h"

namespace llmperf::graph::hlo {

class Parser {
 public:
  Parser(Module& module, Lexer& lexer) : module_(module), lexer_(lexer) {}
  void parse();

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
    std::vector<ValueId> inits;           // of the short form of reduce
    std::vector<std::string_view> bound;  // arguments of the regions, named beside operands (while)
    std::vector<Argument> arguments;      // of the next region, with their types
    std::vector<Type> types;              // after ':'
    std::vector<Type> result_types;       // after '->' or 'to'
    bool typed = false;
    bool arrow = false;
  };

  // parser.cpp: what stands outside functions.
  void begin_chunk();
  void add(Function&& function);
  void alias();
  void module_header();
  void function();
  void arguments(Function& function);
  void function_results(Function& function);
  void adopt(Instruction&& instruction);
  void adopt_function(Instruction&& instruction);
  Function& loose_statements();

  // statement_parser.cpp
  Instruction statement();
  void parts(Statement& s);
  bool ends(const Statement& s);
  void group(Statement& s);
  void braces(Statement& s);
  bool begins_region(const Statement& s) const;
  void region(Statement& s);
  void define_results(Statement& s);
  std::vector<ValueId> block_arguments();

  // attribute_parser.cpp
  void types(Statement& s);
  void attribute(Statement& s);
  void unnamed(Statement& s);
  void dictionary(std::vector<Attribute>& attributes);
  std::string_view short_value();
  void location(std::string_view& into);

  ValueId define(std::string_view name, Type type, std::size_t offset);
  void bind(std::string_view name, Named values);
  ValueId use(const Token& token) const;
  void leave(std::size_t undo_size);

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

}  // namespace llmperf::graph::hlo
