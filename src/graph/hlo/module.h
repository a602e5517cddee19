// A program as its text has it: functions of instructions with regions. Nothing is interpreted here but the form;
// views point into the text, which the module keeps.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/hlo/source.h"
#include "graph/hlo/type.h"

namespace llmperf::graph::hlo {

// Index into Module::values.
using ValueId = std::uint32_t;

struct Value {
  std::string_view name;  // without its %; of several results of one instruction "0#1" has the name "0"
  Type type;
  std::size_t offset = 0;  // of its name in the text
};

// `key = text`, the text uninterpreted ("[1] x [0]", "dense<[[0, 1]]> : tensor<1x2xi64>"). Unnamed parts of the short
// form (the LT of a compare, the [0:1, 2:4] of a slice) have an empty key.
struct Attribute {
  std::string_view key;
  std::string_view text;
};

struct Instruction;

struct Block {
  std::vector<ValueId> arguments;
  std::vector<Instruction> body;
};

struct Instruction {
  std::string_view name;  // "stablehlo.add"
  std::size_t offset = 0;
  int line = 0;
  std::vector<ValueId> results = {};
  std::vector<ValueId> operands = {};  // of a short-form reduce in the order of the generic form: inputs, then inits
  std::vector<Attribute> attributes = {};
  std::string_view symbol = {};  // without its @: the callee, the target of a custom call
  std::vector<Block> regions = {};
  std::string_view location = {};  // what is in loc(…), uninterpreted

  // "add": the name without its dialect.
  std::string_view op() const { return name.substr(name.find('.') + 1); }
  std::string_view dialect() const { return name.substr(0, name.find('.')); }
  // The text of the first attribute of that name, or nothing.
  std::optional<std::string_view> find(std::string_view key) const;
  // The text of the n-th unnamed attribute, or nothing.
  std::optional<std::string_view> unnamed(std::size_t n = 0) const;
};

struct Function {
  std::string_view name;
  std::size_t offset = 0;
  int chunk = 0;  // programs of one file, separated by "// -----"
  bool is_private = false;
  bool declared = false;  // without a body
  Block body;
  std::vector<std::vector<Attribute>> argument_attributes = {};  // by argument
  std::vector<Type> results = {};
  std::vector<std::vector<Attribute>> result_attributes = {};
};

// sdy.mesh @name = <["x"=2]>, or a function that has nothing but the attribute stablehlo.mesh.
struct NamedMesh {
  std::string_view name;
  int chunk = 0;
  std::string_view text;
};

struct Module {
  std::unique_ptr<Source> source;
  std::vector<Value> values;
  std::vector<Function> functions;
  std::vector<Attribute> attributes;                               // of the module: mhlo.num_partitions …
  std::unordered_map<std::string_view, std::string_view> aliases;  // #name = text, !name = text
  std::vector<NamedMesh> meshes;
  std::int64_t instructions = 0;
  std::int64_t skipped_constant_bytes = 0;

  const Type& type(ValueId value) const { return values[value].type; }
  SourcePosition position(const Instruction& i) const { return source->position(i.offset); }
  // Throws Error(bad_input) at the instruction.
  [[noreturn]] void fail(const Instruction& i, std::string message, std::string hint = {}) const;
};

// Throws Error(bad_input) with the position of what is not understood.
Module parse_file(const std::string& path);
Module parse_text(std::string name, std::string text);

// Reading attribute texts. All integers in it that are not part of a word, a string or a type after ':'.
std::vector<std::int64_t> integers(std::string_view text);
// Those of the first of these attributes that there is.
std::vector<std::int64_t> integers(const Instruction& i, std::initializer_list<std::string_view> keys);
// The integers of the n-th bracketed list "[…]" at the outermost level: integer_list("[1] x [0]", 1) is {0}.
std::vector<std::int64_t> integer_list(std::string_view text, std::size_t n = 0);
// [[0, 1], [2, 3]] (also dense<…> : tensor<2x2xi64>, also a splat) as rows.
std::vector<std::vector<std::int64_t>> integer_rows(std::string_view text);
// The value of `key` in "<a = [1], b = 2>" or "{a = 1}", or nothing.
std::optional<std::string_view> field(std::string_view text, std::string_view key);
// Its integers, none without such a key.
std::vector<std::int64_t> field_integers(std::string_view text, std::string_view key);
// Of `key` in the short form's window, else of the generic form's own attribute.
std::vector<std::int64_t> window_integers(const Instruction& i, std::string_view key, std::string_view generic);
// The contents of a string in quotes, else the text itself.
std::string_view unquoted(std::string_view text);
// "jit(main)/layers_0/dot_general" of an instruction: its location with aliases followed; empty when there is none.
std::string scope_of(const Module& module, const Instruction& i);

}  // namespace llmperf::graph::hlo
