#include <chrono>

#include "catch.h"
#include "descriptor/node.h"
#include "program/flatten.h"
#include "program/lower.h"
#include "program/module.h"
#include "program/partition.h"
#include "program/refusal.h"
#include "program/work.h"

namespace llmperf::program::parser_test {
namespace {

// One statement between arguments to name and a return.
struct Parsed {
  explicit Parsed(const std::string& statement)
      : module(parse_text("t.mlir",
                          "func.func private @f(tensor<f32>) -> tensor<f32>\n"
                          "func.func @main(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %w: tensor<8x16xf32>, "
                          "%i: tensor<i32>, %z: tensor<f32>, %p: tensor<4x8xi1>, "
                          "%t: tuple<tensor<f32>, tensor<4xf32>>) {\n" +
                              statement + "\nreturn\n}\n")) {
    REQUIRE(module.functions.size() == 2);
    REQUIRE(module.functions[1].body.body.size() == 2);
    CHECK(module.functions[1].body.body[1].op() == "return");
  }
  const Instruction& op() const { return module.functions[1].body.body[0]; }
  std::string operands() const {
    std::string names;
    for (const ValueId value : op().operands) names += module.values[value].name;
    return names;
  }
  std::string results() const {
    std::string types;
    for (const ValueId value : op().results) types += text_of(module.type(value)) + " ";
    return types;
  }
  Integers attribute(std::string_view key) const { return integers(op().find(key).value_or("none of that name")); }
  Module module;
};

std::string refusal(const std::string& text) {
  return refusal_of([&] { parse_text("t.mlir", text); });
}

}  // namespace

TEST_CASE("The short and the generic form of an op are the same instruction") {
  struct Case {
    const char* short_form;
    const char* generic;
  };
  const Case cases[] = {
      {"%0 = stablehlo.add %a, %b : tensor<4x8xf32>",
       R"(%0 = "stablehlo.add"(%a, %b) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>)"},
      {"%0 = mhlo.tanh %a : tensor<4x8xf32>", R"(%0 = "mhlo.tanh"(%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>)"},
      {"%0 = stablehlo.convert %a : (tensor<4x8xf32>) -> tensor<4x8xbf16>",
       R"(%0 = "stablehlo.convert"(%a) : (tensor<4x8xf32>) -> tensor<4x8xbf16>)"},
      {"%0 = stablehlo.compare GT, %a, %b, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>",
       R"(%0 = "stablehlo.compare"(%a, %b) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction =
          #stablehlo<comparison_direction GT>}> : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>)"},
      {"%0 = stablehlo.select %p, %a, %b : tensor<4x8xi1>, tensor<4x8xf32>",
       R"(%0 = "stablehlo.select"(%p, %a, %b) : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>)"},
      {"%0 = stablehlo.concatenate %a, %b, dim = 1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>",
       R"(%0 = "stablehlo.concatenate"(%a, %b) {dimension = 1 : i64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>)"},
      {"%0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, "
       "tensor<f32>) -> tensor<4xf32>",
       R"(%0 = "stablehlo.reduce"(%a, %z) <{dimensions = array<i64: 1>}> ({
         ^bb0(%l: tensor<f32>, %r: tensor<f32>):
           %1 = stablehlo.add %l, %r : tensor<f32>
           stablehlo.return %1 : tensor<f32>
         }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>)"},
      {"%0:2 = stablehlo.reduce(%a init: %z), (%b init: %z) across dimensions = [0] : (tensor<4x8xf32>, "
       "tensor<4x8xf32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)\n"
       "reducer(%l: tensor<f32>, %r: tensor<f32>) (%m: tensor<f32>, %s: tensor<f32>) {\n"
       "stablehlo.return %l, %m : tensor<f32>, tensor<f32>\n}",
       R"(%0:2 = "stablehlo.reduce"(%a, %b, %z, %z) ({
         ^bb0(%l: tensor<f32>, %m: tensor<f32>, %r: tensor<f32>, %s: tensor<f32>):
           "stablehlo.return"(%l, %m) : (tensor<f32>, tensor<f32>) -> ()
         }) {dimensions = dense<0> : tensor<1xi64>} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>)
         -> (tensor<8xf32>, tensor<8xf32>))"},
      {"%0 = stablehlo.dynamic_slice %a, %i, %i, sizes = [1, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> "
       "tensor<1x8xf32>",
       R"(%0 = "stablehlo.dynamic_slice"(%a, %i, %i) {slice_sizes = dense<[1, 8]> : tensor<2xi64>} : (tensor<4x8xf32>,
          tensor<i32>, tensor<i32>) -> tensor<1x8xf32>)"},
      {"%0 = stablehlo.clamp %z, %a, %z : (tensor<f32>, tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>",
       R"(%0 = "stablehlo.clamp"(%z, %a, %z) : (tensor<f32>, tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>)"},
      {"%0 = stablehlo.iota dim = 1 : tensor<4x8xi32>",
       R"(%0 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<4x8xi32>)"},
      {"%0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>",
       R"(%0 = "stablehlo.constant"() <{value = dense<[1, 2]> : tensor<2xi32>}> : () -> tensor<2xi32>)"},
      {"%0 = stablehlo.get_tuple_element %t[1] : (tuple<tensor<f32>, tensor<4xf32>>) -> tensor<4xf32>",
       R"(%0 = "stablehlo.get_tuple_element"(%t) {index = 1 : i32} : (tuple<tensor<f32>, tensor<4xf32>>) -> tensor<4xf32>)"},
      {"%0 = stablehlo.custom_call @Sharding(%a) {backend_config = \"\"} : (tensor<4x8xf32>) -> tensor<4x8xf32>",
       R"(%0 = "stablehlo.custom_call"(%a) {call_target_name = "Sharding"} : (tensor<4x8xf32>) -> tensor<4x8xf32>)"},
      {"%0 = call @f(%z) : (tensor<f32>) -> tensor<f32>",
       R"(%0 = "call"(%z) <{callee = @f}> : (tensor<f32>) -> tensor<f32>)"},
      {"%0 = stablehlo.reduce_precision %a, format = e5m10 : tensor<4x8xf32>",
       R"(%0 = "stablehlo.reduce_precision"(%a) {exponent_bits = 5 : i32, mantissa_bits = 10 : i32} : (tensor<4x8xf32>)
          -> tensor<4x8xf32>)"},
  };
  for (const Case& c : cases) {
    INFO(c.short_form);
    const Parsed s(c.short_form);
    const Parsed g(c.generic);
    CHECK(s.op().name == g.op().name);
    CHECK(s.operands() == g.operands());
    CHECK(s.results() == g.results());
    CHECK_FALSE(s.results().empty());
  }
}

TEST_CASE("Dimensions mean the same however an attribute is spelt") {
  const std::string types = " : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>";
  const std::string spellings[] = {
      "%0 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT]" + types,
      "%0 = \"stablehlo.dot_general\"(%a, %w) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = "
      "[1], "
      "rhs_contracting_dimensions = [0]>}>" +
          types,
      "%0 = \"mhlo.dot_general\"(%a, %w) {dot_dimension_numbers = #mhlo.dot<lhs_batching_dimensions = [], "
      "rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, "
      "precision_config = [#mhlo<precision HIGHEST>]}" +
          types,
      "%0 = stablehlo.dot %a, %w" + types,
  };
  for (const std::string& text : spellings) {
    INFO(text);
    const Parsed p(text);
    const DotDimensions d =
        dot_dimensions(p.op(), p.module.type(p.op().operands[0]), p.module.type(p.op().operands[1]));
    CHECK(d.contracted[0] == Integers{1});
    CHECK(d.contracted[1] == Integers{0});
    CHECK(d.batch[0].empty());
    CHECK(d.batch[1].empty());
  }
  const Integers order = {1, 0};
  const std::string result = " : (tensor<4x8xf32>) -> tensor<8x4xf32>";
  CHECK(Parsed("%0 = stablehlo.transpose %a, dims = [1, 0]" + result).attribute("dims") == order);
  for (const char* value : {"array<i64: 1, 0>", "dense<[1, 0]> : tensor<2xi64>"}) {
    for (const auto& [open, close] : {std::pair("<{", "}>"), std::pair("{", "}")}) {
      for (const char* key : {"permutation", "\"permutation\""}) {
        const Parsed p(fmt::format("%0 = \"stablehlo.transpose\"(%a) {}{} = {}{}{}", open, key, value, close, result));
        CHECK(p.attribute("permutation") == order);
      }
    }
  }
}

TEST_CASE("Unnamed parts of a short form are kept in their order") {
  const Parsed compare("%0 = stablehlo.compare LT, %i, %i, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>");
  CHECK(compare.op().unnamed(0) == "LT");
  CHECK(compare.op().unnamed(1) == "SIGNED");
  CHECK_FALSE(compare.op().unnamed(2));
  const Parsed slice("%0 = stablehlo.slice %a [0:2, 1:8:2] : (tensor<4x8xf32>) -> tensor<2x4xf32>");
  CHECK(integers(slice.op().unnamed().value_or("")) == Integers{0, 2, 1, 8, 2});
}

TEST_CASE("Several results are named one by one or together") {
  const char* text = R"(
    func.func @main(%a: tensor<2xf32>) -> tensor<2xi32> {
      %0:2 = "stablehlo.sort"(%a, %a) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xi32>)
      %one, %two = "stablehlo.sort"(%0#0, %0#1) : (tensor<2xf32>, tensor<2xi32>) -> (tensor<2xf32>, tensor<2xi32>)
      return %two : tensor<2xi32>
    })";
  const Module m = parse_text("t.mlir", text);
  const std::vector<Instruction>& body = m.functions[0].body.body;
  CHECK(body[1].operands == body[0].results);
  CHECK(body[2].operands == std::vector<ValueId>{body[1].results[1]});
  CHECK(text_of(m.type(body[1].results[1])) == "i32[2]");
}

TEST_CASE("A while loop names its values in both regions, in either form") {
  const char* short_form =
      R"(%0:2 = stablehlo.while(%n = %i, %x = %a) : tensor<i32>, tensor<4x8xf32> attributes {k = 1 : i32}
     cond {
      %1 = stablehlo.compare LT, %n, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.add %x, %x : tensor<4x8xf32>
      stablehlo.return %n, %1 : tensor<i32>, tensor<4x8xf32>
    } loc("loop"))";
  const char* generic = R"(%0:2 = "mhlo.while"(%i, %a) ({
    ^bb0(%n: tensor<i32> loc("n"), %x: tensor<4x8xf32>):
      %1 = "mhlo.compare"(%n, %i) {comparison_direction = #mhlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "mhlo.return"(%1) : (tensor<i1>) -> ()
    }, {
    ^bb0(%n: tensor<i32>, %x: tensor<4x8xf32>):
      %1 = mhlo.add %x, %x : tensor<4x8xf32>
      mhlo.return %n, %1 : tensor<i32>, tensor<4x8xf32>
    }) {k = 1 : i32} : (tensor<i32>, tensor<4x8xf32>) -> (tensor<i32>, tensor<4x8xf32>))";
  for (const char* text : {short_form, generic}) {
    const Parsed p(text);
    CHECK(p.op().op() == "while");
    CHECK(p.operands() == "ia");
    CHECK(p.results() == "i32[] f32[4,8] ");
    CHECK(p.attribute("k") == Integers{1});
    REQUIRE(p.op().regions.size() == 2);
    for (const Block& block : p.op().regions) {
      REQUIRE(block.arguments.size() == 2);
      CHECK(p.module.values[block.arguments[1]].name == "x");
      CHECK(text_of(p.module.type(block.arguments[1])) == "f32[4,8]");
      REQUIRE(block.body.size() == 2);
    }
    const Block& body = p.op().regions[1];
    CHECK(body.body[0].operands == std::vector<ValueId>{body.arguments[1], body.arguments[1]});
    CHECK(body.body[1].operands == std::vector<ValueId>{body.arguments[0], body.body[0].results[0]});
  }
  CHECK(Parsed(short_form).op().location == "\"loop\"");
}

TEST_CASE("Names end with their region: what was outside is meant again behind it") {
  const Module m = parse_text("t.mlir", R"(
    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "stablehlo.if"(%p) ({
        %1 = stablehlo.negate %x : tensor<2xf32>
        stablehlo.return %1 : tensor<2xf32>
      }, {
        %1 = stablehlo.abs %x : tensor<2xf32>
        stablehlo.return %1 : tensor<2xf32>
      }) : (tensor<i1>) -> tensor<2xf32>
      %1 = stablehlo.sine %0 : tensor<2xf32>
      return %1 : tensor<2xf32>
    }
    func.func @other(%x: tensor<3xf32>) -> tensor<3xf32> { return %x : tensor<3xf32> })");
  const std::vector<Instruction>& body = m.functions[0].body.body;
  CHECK(body[2].operands == body[1].results);
  CHECK(body[0].regions[0].body[1].operands == body[0].regions[0].body[0].results);
  CHECK(m.functions[1].body.body[0].operands == m.functions[1].body.arguments);
  CHECK(refusal(R"(func.func @f(%p: tensor<i1>) {
  "stablehlo.if"(%p) ({
    %1 = stablehlo.negate %p : tensor<i1>
  }) : (tensor<i1>) -> ()
  %2 = stablehlo.abs %1 : tensor<i1>
})") == "5:22: %1 is not defined here");
}

TEST_CASE("Constants of any form are passed over") {
  const char* values[] = {
      "dense<1.0> : tensor<2x2xf32>",
      "dense<[[1.0, -2.0e-05], [0x7F800000, 3.0]]> : tensor<2x2xf32>",
      R"(dense<"0x0000803F0000803F0000803F0000803F"> : tensor<2x2xf32>)",
      "dense_resource<blob_1> : tensor<2x2xf32>",
      R"(dense<["a > b", "\"}]"]> : tensor<2x2xf32>)",
      "dense<(1.0, 2.0)> : tensor<2x2xf32>",
      "dense<> : tensor<2x2xf32>",
      "sparse<[[0, 0]], 1.0> : tensor<2x2xf32>",
  };
  for (const char* value : values) {
    INFO(value);
    CHECK(Parsed(fmt::format("%c = stablehlo.constant {}", value)).results() == "f32[2,2] ");
    CHECK(Parsed(fmt::format("%c = \"mhlo.constant\"() <{{value = {}}}> : () -> tensor<2x2xf32>", value)).results() ==
          "f32[2,2] ");
    CHECK(Parsed(fmt::format("%c = \"mhlo.constant\"() {{value = {}}} : () -> tensor<2x2xf32>", value)).results() ==
          "f32[2,2] ");
  }
  const Module m = parse_text("t.mlir",
                              "%c = stablehlo.constant dense_resource<w> : tensor<2xf32>\n"
                              "{-#\n  dialect_resources: {\n    builtin: {\n      w: \"0x0400#-}\"\n    }\n  }\n#-}\n");
  CHECK(m.instructions == 1);
  const std::string large =
      "%c = stablehlo.constant dense<\"0x" + std::string(100000, 'A') + "\"> : tensor<12500xf32>\n";
  CHECK(parse_text("t.mlir", large).values.size() == 1);
}

TEST_CASE("Attributes of modules, functions, arguments and results are kept") {
  const Module m = parse_text("t.mlir", R"(
    module @jit_f attributes {mhlo.num_partitions = 4 : i32, "mhlo.num_replicas" = 1 : i32, unit} {
      sdy.mesh @mesh = <["x"=2, "y"=2]>
      func.func public @main(%a: tensor<2xf32> {mhlo.sharding = "{replicated}", jax.arg_info = "x[\"}\"]"} loc("a"),
                             %b: tensor<2xf32>) -> (tensor<2xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) attributes {k} {
        return %a : tensor<2xf32>
      }
    })");
  REQUIRE(m.attributes.size() == 3);
  CHECK(m.attributes[0].key == "mhlo.num_partitions");
  CHECK(integers(m.attributes[0].text) == Integers{4});
  CHECK(m.attributes[1].key == "mhlo.num_replicas");
  REQUIRE(m.meshes.size() == 1);
  CHECK(m.meshes[0].name == "mesh");
  CHECK(m.meshes[0].text == R"(<["x"=2, "y"=2]>)");
  const Function& f = m.functions.at(0);
  CHECK_FALSE(f.is_private);
  REQUIRE(f.argument_attributes.size() == 2);
  REQUIRE(f.argument_attributes[0].size() == 2);
  CHECK(unquoted(f.argument_attributes[0][0].text) == "{replicated}");
  CHECK(f.argument_attributes[1].empty());
  CHECK(unquoted(f.result_attributes.at(0).at(0).text) == "{devices=[4]<=[4]}");
}

TEST_CASE("A module and a function may have the generic form") {
  const Module m = parse_text("t.mlir", R"(
    "builtin.module"() <{sym_name = "m"}> ({
      "func.func"() <{function_type = (tensor<2xf32>) -> tensor<2xf32>, sym_name = "main", sym_visibility = "private"}> ({
      ^bb0(%a: tensor<2xf32>):
        "func.return"(%a) : (tensor<2xf32>) -> ()
      }) : () -> ()
    }) {mhlo.num_partitions = 2 : i32} : () -> ())");
  REQUIRE(m.functions.size() == 1);
  CHECK(m.functions[0].name == "main");
  CHECK(m.functions[0].is_private);
  CHECK(m.functions[0].body.arguments.size() == 1);
  CHECK(m.functions[0].results.size() == 1);
  REQUIRE(m.attributes.size() == 2);
  CHECK(m.attributes[1].key == "mhlo.num_partitions");
}

TEST_CASE("Programs behind // ----- are apart: names may return") {
  const char* function = "func.func @f(%x: tensor<2xf32>) { return }\n";
  const Module m =
      parse_text("t.mlir", std::string(function) + "// -----\n" + function + "// -----\n\n// -----\n" + function);
  REQUIRE(m.functions.size() == 3);
  CHECK(m.functions[0].chunk < m.functions[1].chunk);
  CHECK(m.functions[1].chunk < m.functions[2].chunk);
  const Module modules = parse_text("t.mlir", fmt::format("module {{ {0} }}\nmodule {{ {0} }}\n", function));
  CHECK(modules.functions[0].chunk < modules.functions[1].chunk);
  CHECK(refusal(std::string(function) + function) == "2:1: @f is defined a second time");
}

TEST_CASE("What cannot be read is refused at its line and column") {
  struct Case {
    const char* text;
    const char* refusal;
  };
  const Case cases[] = {
      {"func.func @f(%x: tensor<2xf32>) {\n  %0 = stablehlo.add %x, %y : tensor<2xf32>\n}",
       "2:26: %y is not defined here"},
      {"func.func @f(%x: tensor<2xf32>) {\n  %0 = stablehlo.abs %x#1 : tensor<2xf32>\n}",
       "2:22: %x#1 is not defined here"},
      {"func.func @f(%x: tensor<2xf32>) {\n  %0 = stablehlo.abs %x : tensor<2xg32>\n}",
       "2:36: unknown element type 'g32'"},
      {"func.func @f(%x: tensor<2xf32>) {\n  return", "1:33: this '{' is not closed"},
      {"module {\n  func.func @f() { return }\n", "3:1: expected '}' at the end of the module, but the text ends here"},
      {"func.func @f(%x: tensor<2xf32>", "1:31: expected ',' or ')' after an argument, but the text ends here"},
      {"func.func @f(%x: tensor<2xf32>) {\n  %0 = \"a.b\"(%x) {v = dense<[1, 2> : i32} : () -> ()\n}",
       "2:41: '}' closes what ']' should"},
      {"%0 = \"a.b\"() {v = \"text} : () -> ()", "1:19: this string is not closed"},
      {"cf.br ^bb1(%x : tensor<2xf32>)",
       "1:1: cf.br: control flow between blocks is not read (StableHLO has while, if and case for it)"},
      {"%0 = add %x : tensor<2xf32>", "1:6: 'add' is no op (ops are named with their dialect, as in stablehlo.add)"},
      {"%0, = \"a.b\"() : () -> tensor<i32>", "1:5: expected the name of a result and not '='"},
      {"%0:2 = \"a.b\"() : () -> (tensor<i32>, tensor<i32>, tensor<i32>)\n%1:3 = \"a.b\"() : () -> (tensor<i32>, "
       "tensor<i32>)",
       "2:8: 3 results and 2 types for them"},
      {"%0:65536 = \"a.b\"() : () -> tensor<i32>", "1:12: 65536 results and 1 types for them"},
      {"%0:99999999 = \"a.b\"() : () -> tensor<i32>", "1:4: expected the number of results and not '99999999'"},
      {"func.func f() { return }", "1:12: expected the function's name and not '('"},
      {"module attributes [1] {}", "1:19: expected '{' after 'attributes' and not '['"},
      {"  )", "1:3: expected a module, a function or an op and not ')'"},
      {"\n\n{-# a: 1", "3:1: '{-#' is not closed by '#-}'"},
      {"HloModule m\nENTRY main { }",
       "1:1: this is HLO text, not StableHLO or MHLO (xla-translate --hlo-text-to-stablehlo converts it)"},
      {"ML\xefR\x06",
       "1:1: this is MLIR bytecode, not text (stablehlo-translate --deserialize writes a portable artifact as text)"},
      {"\n\"vhlo.func_v1\"() ({\n}) : () -> ()",
       "2:1: this is VHLO, the form in which StableHLO is stored (stablehlo-opt --vhlo-to-version=target=current "
       "--vhlo-legalize-to-stablehlo converts it)"},
  };
  for (const Case& c : cases) {
    INFO(c.text);
    CHECK(refusal(c.text) == c.refusal);
  }
}

TEST_CASE("A program that ends too early is read as far as it goes, or refused at a place in it") {
  constexpr const char* kPrograms[] = {"generic_mhlo", "llama_block", "llama_decoder_while", "mlp_gspmd",
                                       "mlp_shardy",   "mlp_spmd",    "stdit_block"};
  std::size_t prefixes = 0;
  std::size_t refused = 0;
  for (const char* name : kPrograms) {
    const std::string text =
        descriptor::read_text_file(fmt::format("{}/tests/program/programs/{}.mlir", LLMPERF_SOURCE_DIR, name));
    for (std::size_t size = 0; size < text.size(); size += 53) {
      INFO(name << ", " << size << " bytes");
      const std::string refusal = refusal_of([&] {
        const Module module = parse_text("t.mlir", text.substr(0, size));
        Program program = flatten(module, {});
        CHECK_FALSE(lower(program, {.devices = partition(program, {}).devices}).ops.empty());
      });
      CHECK_FALSE(refusal.starts_with("0:"));
      ++prefixes;
      if (!refusal.empty()) ++refused;
    }
  }
  CHECK(refused > prefixes * 9 / 10);
}

TEST_CASE("Deep nesting is refused, whatever is nested") {
  const auto times = [](int n, const char* text) {
    std::string all;
    for (int k = 0; k < n; ++k) all += text;
    return all;
  };
  CHECK(refusal(times(100000, "\"a.b\"() ({\n")).ends_with("nested too deep"));
  CHECK(refusal("\"a.b\"() {v = " + times(100000, "[")) == "1:1014: brackets are nested more than 1000 deep");
  CHECK(refusal("\"a.b\"" + times(100000, "(")).ends_with("nested too deep"));
  CHECK(refusal(times(100000, "module {\n")).ends_with("modules are nested too deep"));
  CHECK(refusal("%0 = \"a.b\"() : (" + times(100000, "() -> ")).ends_with("types are nested more than 50 deep"));
}

TEST_CASE("Hostile repetition takes a moment, not minutes") {
  const auto begin = std::chrono::steady_clock::now();
  const auto times = [](int n, const char* text) {
    std::string all;
    for (int k = 0; k < n; ++k) all += text;
    return all;
  };
  for (const char* piece :
       {"%0, ", "%0 ", "#a = #a\n", "func.func private @f()\n", "func.func private @f()\n\"a.b\"() : () -> ()\n",
        "loc(", "\"a.b\"(\n", "{-# ", "<{", "// -----\n", "\"a\\", ": ", "-> ", "\"a.b\"() : () -> ()\n", "module {}\n",
        "x [", "^bb0: "}) {
    INFO(piece);
    CHECK_NOTHROW(refusal(times(20000, piece)));
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}

TEST_CASE("An operation needs no line of its own") {
  const Module m = parse_text(
      "t.mlir",
      "func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {\n"
      "%0 = \"stablehlo.negate\"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32> %1 = stablehlo.tanh %0 : tensor<4x4xf32> "
      "return %1 : tensor<4x4xf32>\n}\n");
  REQUIRE(m.functions.size() == 1);
  std::vector<std::string> names;
  for (const Instruction& i : m.functions[0].body.body) names.emplace_back(i.name);
  CHECK(names == std::vector<std::string>{"stablehlo.negate", "stablehlo.tanh", "return"});
}

}  // namespace llmperf::program::parser_test
