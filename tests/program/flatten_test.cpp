#include <algorithm>
#include <chrono>

#include "catch.h"
#include "program/flat.h"
#include "program/loop_text.h"

namespace llmperf::program::flatten_test {

TEST_CASE("Functions that are called are put in line, their results are the tensors they return") {
  const Flat f(function(R"(
    %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = func.call @f(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "func.call"(%1) <{callee = @f}> : (tensor<4xf32>) -> tensor<4xf32>
    %3 = stablehlo.composite "my.op" %2 {decomposition = @f, version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
    %4 = stablehlo.custom_call @whatever(%3) {called_computations = [@f]} : (tensor<4xf32>) -> tensor<4xf32>
    %5 = stablehlo.negate %4 : tensor<4xf32>)") +
               R"(func.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.tanh %a : tensor<4xf32>
      return %0 : tensor<4xf32>
    })");
  CHECK(f.count("tanh") == 5);
  REQUIRE(f.program.nodes.size() == 6);
  for (std::size_t n = 1; n < 6; ++n) CHECK(f.program.nodes[n].operands == f.program.nodes[n - 1].results);
  CHECK(f.program.nodes[0].operands[0] == f.program.arguments[0]);
  CHECK(f.program.unknown.empty());
}

TEST_CASE("Of a conditional the costlier branch is counted and said") {
  const std::string text = function(R"(
    %0 = "stablehlo.if"(%p) ({
      %1 = stablehlo.sine %x : tensor<4xf32>
      stablehlo.return %1 : tensor<4xf32>
    }, {
      %1 = stablehlo.tanh %x : tensor<4xf32>
      %2 = stablehlo.tanh %1 : tensor<4xf32>
      stablehlo.return %2 : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    %3 = stablehlo.negate %0 : tensor<4xf32>)");
  const Flat f(text);
  CHECK(f.count("sine") == 0);
  CHECK(f.count("tanh") == 2);
  CHECK(f.node("negate").operands == f.node("tanh").results);
  CHECK(notes_contain(f.program, "stablehlo.if in line 3: branch 1 of 2 is counted, the costliest"));
  const Flat other(text,
                   {.cost = [](const Program&, const Node& n) { return n.instruction->op() == "sine" ? 9.0 : 1.0; }});
  CHECK(other.count("sine") == 1);
  CHECK(other.count("tanh") == 0);
}

TEST_CASE("A branch that moves much is costlier than one that computes little") {
  const Flat flat(
      R"(func.func @main(%p: tensor<i1>, %big: tensor<8192x8192xf32>, %a: tensor<64x64xf32>) -> tensor<f32> {
  %0 = "stablehlo.if"(%p) ({
    %t = stablehlo.transpose %big, dims = [1, 0] : (tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
    %s = stablehlo.slice %t [0:1, 0:1] : (tensor<8192x8192xf32>) -> tensor<1x1xf32>
    %r = stablehlo.reshape %s : (tensor<1x1xf32>) -> tensor<f32>
    stablehlo.return %r : tensor<f32>
  }, {
    %d = stablehlo.dot %a, %a : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %s = stablehlo.slice %d [0:1, 0:1] : (tensor<64x64xf32>) -> tensor<1x1xf32>
    %r = stablehlo.reshape %s : (tensor<1x1xf32>) -> tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  return %0 : tensor<f32>
}
)");
  CHECK(flat.count("transpose") == 1);
  CHECK(flat.count("dot") == 0);
}

TEST_CASE("A constant decides a conditional") {
  const auto text = [](const std::string& predicate, const std::string& op) {
    return function(fmt::format(R"(
    {}
    %0 = "stablehlo.{}"(%c) ({{
      %1 = stablehlo.sine %x : tensor<4xf32>
      stablehlo.return %1 : tensor<4xf32>
    }}, {{
      %1 = stablehlo.tanh %x : tensor<4xf32>
      %2 = stablehlo.tanh %1 : tensor<4xf32>
      stablehlo.return %2 : tensor<4xf32>
    }}) : (tensor<i32>) -> tensor<4xf32>)",
                                predicate, op));
  };
  const std::string yes = "%c = stablehlo.constant dense<true> : tensor<i1>";
  const std::string no = "%c = stablehlo.constant dense<false> : tensor<i1>";
  CHECK(Flat(text(yes, "if")).count("sine") == 1);
  CHECK(Flat(text(yes, "if")).count("tanh") == 0);
  CHECK(Flat(text(no, "if")).count("tanh") == 2);
  CHECK(Flat(text(yes, "if")).program.notes.empty());
  const auto index = [](int n) { return fmt::format("%c = stablehlo.constant dense<{}> : tensor<i32>", n); };
  CHECK(Flat(text(index(0), "case")).count("sine") == 1);
  CHECK(Flat(text(index(1), "case")).count("tanh") == 2);
  CHECK(Flat(text(index(7), "case")).count("tanh") == 2);   // out of range: the last
  CHECK(Flat(text(index(-1), "case")).count("tanh") == 2);  // too
}

TEST_CASE("Tuples, barriers and fusions hand on the values themselves") {
  const Flat f(function(R"(
    %0 = stablehlo.tuple %x, %n : tuple<tensor<4xf32>, tensor<i32>>
    %1 = stablehlo.get_tuple_element %0[0] : (tuple<tensor<4xf32>, tensor<i32>>) -> tensor<4xf32>
    %2 = stablehlo.optimization_barrier %1 : tensor<4xf32>
    %3 = "mhlo.fusion"(%2) ({
    ^bb0(%a: tensor<4xf32>):
      %4 = mhlo.sine %a : tensor<4xf32>
      %5 = mhlo.tanh %4 : tensor<4xf32>
      mhlo.return %5 : tensor<4xf32>
    }) {fusion_kind = #mhlo<fusion_kind kLoop>} : (tensor<4xf32>) -> tensor<4xf32>
    %6 = stablehlo.negate %3 : tensor<4xf32>)"));
  CHECK(f.node("sine").operands[0] == f.program.arguments[0]);
  CHECK(f.node("negate").operands == f.node("tanh").results);
  CHECK(f.node("sine").fusion == 0);
  CHECK(f.node("tanh").fusion == 0);
  CHECK(f.node("negate").fusion == -1);
}

TEST_CASE("A tuple that an op returns is its members, of tuples in tuples too") {
  const Flat f(function(R"(
    %0 = stablehlo.custom_call @cu_threefry2x32(%x) : (tensor<4xf32>) -> tuple<tensor<4xui32>, tuple<tensor<2xui32>>>
    %1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<4xui32>, tuple<tensor<2xui32>>>) -> tuple<tensor<2xui32>>
    %2 = stablehlo.get_tuple_element %1[0] : (tuple<tensor<2xui32>>) -> tensor<2xui32>
    %3 = stablehlo.not %2 : tensor<2xui32>)"));
  const std::vector<TensorId>& results = f.node("custom_call").results;
  REQUIRE(results.size() == 2);
  CHECK(f.program.type(results[0]).dims == std::vector<std::int64_t>{4});
  CHECK(f.node("not").operands == std::vector<TensorId>{results[1]});
  CHECK(f.count("get_tuple_element") == 0);
}

TEST_CASE("The regions of other dialects' ops are run; an annotated barrier stays") {
  const Flat f(function(R"(
    %w = shape.cstr_broadcastable %x, %x : tensor<4xf32>, tensor<4xf32>
    %0 = shape.assuming %w -> (tensor<4xf32>) {
      %1 = mhlo.tanh %x : tensor<4xf32>
      shape.assuming_yield %1 : tensor<4xf32>
    }
    %2 = stablehlo.optimization_barrier %0 {mhlo.sharding = "{replicated}"} : tensor<4xf32>
    %3 = stablehlo.negate %2 : tensor<4xf32>)"));
  CHECK(f.count("tanh") == 1);
  CHECK(f.node("optimization_barrier").operands == f.node("tanh").results);
  CHECK(f.node("negate").operands == f.node("optimization_barrier").results);
}

TEST_CASE("A copy that is annotated is an annotation; tensor.dim is a number") {
  const Flat f(function(R"(
    %0 = mhlo.copy %x {mhlo.sharding = "{replicated}"} : tensor<4xf32>
    %1 = mhlo.copy %0 : tensor<4xf32>
    %c = arith.constant 0 : index
    %d = tensor.dim %1, %c : tensor<4xf32>
    %e = arith.index_cast %d : index to i64
    %s = tensor.from_elements %e : tensor<1xi64>
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %b = stablehlo.dynamic_broadcast_in_dim %z, %s, dims = [] : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32>)"));
  int annotations = 0;
  for (const Node& node : f.program.nodes) {
    if (node.instruction->op() == "copy" && node.traits.op_class == OpClass::free) ++annotations;
  }
  CHECK(annotations == 1);
  CHECK(f.count("copy") == 2);
  CHECK(f.result("dim").bytes().value == 8);
  CHECK(f.result("dynamic_broadcast_in_dim").dims == std::vector<std::int64_t>{4});
}

TEST_CASE("What is not known is listed with how often it runs, never dropped") {
  std::string text = loop({.to = 3});
  text.replace(text.find("%3 = stablehlo.tanh"), 0, R"(
    %8 = "tf.Foo"(%y) : (tensor<4xf32>) -> tensor<4xf32>
    %9 = stablehlo.custom_call @mystery(%8) : (tensor<4xf32>) -> tensor<4xf32>
    %10 = call @elsewhere(%9) : (tensor<4xf32>) -> tensor<4xf32>
    %11 = stablehlo.custom_call @Sharding(%10) : (tensor<4xf32>) -> tensor<4xf32>
    %12 = stablehlo.frobnicate %11 : tensor<4xf32>
)");
  const Flat f(text + "func.func private @elsewhere(tensor<4xf32>) -> tensor<4xf32>\n");
  std::vector<std::string> names;
  for (const Program::Unknown& u : f.program.unknown) {
    names.push_back(u.name);
    CHECK(u.count == 3);
    CHECK(u.line > 0);
  }
  CHECK(names == std::vector<std::string>{"custom call 'mystery'", "function @elsewhere without a body",
                                          "stablehlo.frobnicate", "tf.Foo"});
}

TEST_CASE("A program of which nothing is understood is refused at its first op of another dialect") {
  const std::string hint =
      " (StableHLO, MHLO and CHLO programs are read, and what stands beside their ops: sdy, func, arith, math, tensor, "
      "shape)";
  CHECK(refusal(R"(func.func @main(%a: tensor<2x3xf32>, %b: tensor<3x?xf32>) -> tensor<2x?xf32> {
    %c = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<2x?xf32>
    %f = linalg.fill ins(%c : f32) outs(%e : tensor<2x?xf32>) -> tensor<2x?xf32>
    %0 = linalg.matmul ins(%a, %b : tensor<2x3xf32>, tensor<3x?xf32>) outs(%f : tensor<2x?xf32>) -> tensor<2x?xf32>
    return %0 : tensor<2x?xf32>
  }
)") == "4:10: linalg.fill: programs of the dialect 'linalg' are not read" + hint);
  CHECK(refusal(R"(func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<4x4xf32>) outs(%a : tensor<4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }
)") == "2:10: linalg.generic: programs of the dialect 'linalg' are not read" + hint);
  CHECK(refusal(R"(func.func @main(%a: tensor<1x2x3xf32>, %b: tensor<1x3x4xf32>) -> tensor<1x2x4xf32> {
    %0 = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
    %1 = tosa.matmul %a, %b, %0, %0 : (tensor<1x2x3xf32>, tensor<1x3x4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x2x4xf32>
    return %1 : tensor<1x2x4xf32>
  }
)") == "2:10: tosa.const: programs of the dialect 'tosa' are not read" + hint);
  const std::string torch = "func.func @main(%a: !torch.vtensor<[2,3],f32>) -> !torch.vtensor<[2,2],f32> {\n";
  const std::string mm =
      "%0 = torch.aten.mm %a, %a : !torch.vtensor<[2,3],f32>, !torch.vtensor<[2,3],f32> -> !torch.vtensor<[2,2],f32>\n"
      "return %0 : !torch.vtensor<[2,2],f32>\n}\n";
  CHECK(refusal(torch + mm) == "2:6: torch.aten.mm: programs of the dialect 'torch' are not read" + hint);
  // Constants of torch have no type.
  CHECK(refusal(torch + "%int1 = torch.constant.int 1\n" + mm) ==
        "2:9: torch.constant.int: programs of the dialect 'torch' are not read" + hint);
  // Constants between its ops are no work either.
  CHECK(refusal(R"(func.func @main(%x: tensor<4xf32>) {
  %c = stablehlo.constant dense<1.0> : tensor<4xf32>
  %0 = "tosa.add"(%x, %c) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
})") == "3:8: tosa.add: programs of the dialect 'tosa' are not read" + hint);
  // With an op that is read beside it, it is one of the unknown.
  const Flat mixed(R"(func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = tosa.tanh %a : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.negate %0 : tensor<4xf32>
    return %1 : tensor<4xf32>
  }
)");
  REQUIRE(mixed.program.unknown.size() == 1);
  CHECK(mixed.program.unknown[0].name == "tosa.tanh");
}

TEST_CASE("Recursion, wrong arguments and programs that unfold without end are refused at once") {
  const std::string call = "%0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>\n return %0 : tensor<4xf32>\n}\n";
  const std::string head = "(%x: tensor<4xf32>) -> tensor<4xf32> {\n";
  CHECK(refusal("func.func @main" + head + call + "func.func @f" + head + call) == "6:6: @f calls itself");
  CHECK(refusal("func.func @f" + head + call).starts_with("1:1: every function is called by another"));
  CHECK(refusal("func.func @main" + head + call + "func.func @f() { return }") ==
        "2:6: @f takes 0 arguments and gets 1");
  std::string bomb;
  std::string chain;
  for (int n = 0; n < 300; ++n) {
    const std::string name = n == 0 ? "main" : fmt::format("f{}", n);
    const std::string next = fmt::format("call @f{}(%x) : (tensor<4xf32>) -> tensor<4xf32>\n", n + 1);
    chain += "func.func @" + name + head + "%0 = " + next + "return %0 : tensor<4xf32>\n}\n";
    bomb += "func.func @" + name + head + "%0 = " + next + "%1 = " + next + "return %0 : tensor<4xf32>\n}\n";
  }
  const std::string last = "func.func @f300" + head + "return %x : tensor<4xf32>\n}\n";
  const auto begin = std::chrono::steady_clock::now();
  CHECK(refusal(bomb + last).find("the program unfolds to") != std::string::npos);
  CHECK(refusal(chain + last).find("calls are nested more than 200 deep") != std::string::npos);
  CHECK(refusal(loop({.to = 3}), {.max_nodes = 4}).find("more than 4") != std::string::npos);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
}

TEST_CASE("The program begins at @main, at what is asked for, or at all that nothing calls") {
  const std::string used = function("%0 = stablehlo.sine %x : tensor<4xf32>", "private @helper");
  const std::string a = function("%0 = stablehlo.tanh %x : tensor<4xf32>", "@a");
  const std::string b =
      function("%0 = call @helper(%x, %n, %p) : (tensor<4xf32>, tensor<i32>, tensor<i1>) -> tensor<4xf32>", "@b");
  const std::string main = function("%0 = stablehlo.cosine %x : tensor<4xf32>");
  const Flat both(a + b + used);
  CHECK(both.count("tanh") == 1);
  CHECK(both.count("sine") == 1);
  CHECK(notes_contain(both.program, "2 functions that nothing calls"));
  const Flat only_main(a + b + used + main);
  CHECK(only_main.program.nodes.size() == 1);
  CHECK(only_main.count("cosine") == 1);
  const Flat asked(a + b + used + main, {.entry = "b"});
  CHECK(asked.count("sine") == 1);
  CHECK(asked.program.nodes.size() == 1);
  CHECK(refusal(a + main, {.entry = "mein"}) == "0:0: there is no function 'mein' (did you mean 'main'?)");
  const Flat chunks(main + "// -----\n" + main);
  CHECK(chunks.count("cosine") == 2);
  CHECK(refusal("module { }").starts_with("1:1: there are no ops in it"));
  CHECK(Flat("%0 = stablehlo.iota dim = 0 : tensor<4xi32>\n").count("iota") == 1);
}

TEST_CASE("Weights stay weights when they are only turned, cut or converted") {
  const Flat f(function(R"(
    %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xbf16>
    %1 = stablehlo.reshape %0 : (tensor<4xbf16>) -> tensor<2x2xbf16>
    %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<2x2xbf16>) -> tensor<2x2xbf16>
    %3 = stablehlo.slice %2 [0:1, 0:2] : (tensor<2x2xbf16>) -> tensor<1x2xbf16>
    %4 = stablehlo.negate %3 : tensor<1x2xbf16>)"));
  for (const char* op : {"convert", "reshape", "transpose", "slice"}) {
    INFO(op);
    CHECK(f.program.tensor(f.node(op).results[0]).parameter);
  }
  CHECK_FALSE(f.program.tensor(f.node("negate").results[0]).parameter);
}

}  // namespace llmperf::program::flatten_test
