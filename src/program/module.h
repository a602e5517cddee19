// A program as its text has it: functions of instructions with regions. Nothing is interpreted here but the form; views
// point into the text, which the module keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "base/list.h"
#include "base/units.h"
#include "model/quantization.h"

namespace llmperf::program {

using Integers = List<std::int64_t>;

inline constexpr std::int64_t kMaxProgramBytes = std::int64_t{64} << 30;

// A file is mapped, not read: what the parser has passed (constants of hundreds of megabytes) is given back, so that
// memory follows the number of ops.
class Source {
 public:
  // Of a file. Throws Error(bad_input) for what cannot be opened or is no regular file.
  explicit Source(const std::string& path);
  // Of text that is at hand.
  Source(std::string name, std::string text);
  ~Source();
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }
  // 1-based line and column of an offset. Cheap when offsets do not decrease.
  SourcePosition position(std::size_t offset) const;
  // Gives back the memory of what lies before `offset` (it is read again from the file when looked at).
  void release_before(std::size_t offset);

 private:
  std::string name_;
  std::string owned_;
  std::string_view text_;
  bool mapped_ = false;
  std::size_t released_ = 0;
  mutable std::size_t counted_ = 0;  // up to where lines were counted
  mutable std::size_t line_start_ = 0;
  mutable int line_ = 1;
};

// Types of values: tensors of static or dynamic extents, tuples, and what has no size (tokens).

enum class ElementClass : unsigned char { floating, integer, boolean, complex, quantized };

// What a tensor is made of. `name` is as in the text ("bf16", "f8E4M3FN", "ui8", "complex<f32>", "!quant.uniform<…>")
// and lives as long as the program's text.
struct Element {
  std::string_view name = "f32";
  double bits = 32;             // in memory; i1 takes a byte, 4-bit types half of one
  Dtype compute = Dtype::fp32;  // the rate at which a device multiplies it
  ElementClass kind = ElementClass::floating;
  bool operator==(const Element&) const = default;
};
// Of a name without parameters; false when there is no such type.
bool parse_element(std::string_view name, Element& element);
model::ElementFormat element_format(const Element& element);

inline constexpr std::int64_t kDynamic = -1;

struct Type {
  enum class Form : unsigned char { tensor, tuple, opaque };  // opaque: tokens, and types of other dialects
  Form form = Form::opaque;
  Element element = {};
  Integers dims = {};              // kDynamic where the text has `?`
  Integers bounds = {};            // of dynamic extents, where the text bounds them; else empty
  std::vector<Type> members = {};  // of a tuple
  bool unranked = false;

  bool tensor() const { return form == Form::tensor; }
  bool dynamic() const;
  std::int64_t rank() const { return static_cast<std::int64_t>(dims.size()); }
  double elements() const;                    // 1 of a scalar; 0 of what is no tensor
  double extent(const Integers& axes) const;  // of these dimensions together
  Bytes bytes() const;                        // of a tuple: of its members
  bool operator==(const Type&) const = default;
};
std::string text_of(const Type& type);  // "bf16[8,512,?]", "(f32[4], token)"

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
  List<ValueId> arguments;
  std::vector<Instruction> body;
};

struct Instruction {
  std::string_view name;  // "stablehlo.add"
  std::size_t offset = 0;
  int line = 0;
  List<ValueId> results = {};
  List<ValueId> operands = {};  // of a short-form reduce in the order of the generic form: inputs, then inits
  std::vector<Attribute> attributes = {};
  std::string_view symbol = {};  // without its @: the callee, the target of a custom call
  std::vector<Block> regions = {};
  std::string_view location = {};  // what is in loc(…), uninterpreted

  // "add": the name without its dialect.
  std::string_view op() const { return name.substr(name.find('.') + 1); }
  std::string_view dialect() const { return name.substr(0, name.find('.')); }
  // The text of the first attribute of that name, or nothing; of the first of these names that there is.
  std::optional<std::string_view> find(std::string_view key) const;
  std::optional<std::string_view> find(std::initializer_list<std::string_view> keys) const;
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
  List<Value> values;
  std::vector<Function> functions;
  std::vector<Attribute> attributes;                               // of the module: mhlo.num_partitions …
  std::unordered_map<std::string_view, std::string_view> aliases;  // #name = text, !name = text
  std::vector<NamedMesh> meshes;
  std::int64_t instructions = 0;

  const Type& type(ValueId value) const { return values[value].type; }
  SourcePosition position(const Instruction& i) const { return source->position(i.offset); }
  // Throws Error(bad_input) at the place.
  [[noreturn]] void fail(SourcePosition where, std::string message, std::string hint = {}) const;
  // … at the instruction.
  [[noreturn]] void fail(const Instruction& i, std::string message, std::string hint = {}) const;
  // … at the place of `at`, when it is a part of the text.
  [[noreturn]] void fail(std::string_view at, std::string message, std::string hint = {}) const;
};

// Throws Error(bad_input) with the position of what is not understood.
Module parse_file(const std::string& path);
Module parse_text(std::string name, std::string text);

// Characters of words: i64, stablehlo.add, $x.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '$';
}

// Reading attribute texts. All integers in it that are not part of a word, a string or a type after ':'.
Integers integers(std::string_view text);
// Those of the first of these attributes that there is.
Integers integers(const Instruction& i, std::initializer_list<std::string_view> keys);
// The integers of the n-th bracketed list "[…]" at the outermost level: integer_list("[1] x [0]", 1) is {0}.
Integers integer_list(std::string_view text, std::size_t n = 0);
// [[0, 1], [2, 3]] (also dense<…> : tensor<2x2xi64>, also a splat) as rows.
std::vector<Integers> integer_rows(std::string_view text);
// The value of `key` in "<a = [1], b = 2>" or "{a = 1}", or nothing.
std::optional<std::string_view> field(std::string_view text, std::string_view key);
// Its integers, none without such a key.
Integers field_integers(std::string_view text, std::string_view key);
// Of `key` in the short form's window, else of the generic form's own attribute.
Integers window_integers(const Instruction& i, std::string_view key, std::string_view generic);
// The contents of a string in quotes, else the text itself.
std::string_view unquoted(std::string_view text);
// "jit(main)/layers_0/dot_general" of an instruction: its location with aliases followed; empty when there is none.
std::string scope_of(const Module& module, const Instruction& i);
// Of a constant: its value.
std::optional<std::string_view> value_of(const Instruction& i);
// The function that an instruction runs: its symbol, or the attribute that names it; empty when it runs none.
std::string_view callee_of(const Instruction& i);

}  // namespace llmperf::program
