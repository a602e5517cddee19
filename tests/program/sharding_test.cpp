// Sharding annotations by hand: HLO's text and binary forms, and Shardy's.
#include "program/sharding.h"

#include "base/error.h"
#include "catch.h"
#include "program/partition.h"

namespace llmperf::program::sharding_test {
namespace {

using Form = Sharding::Form;

Module module_with(const std::string& meshes) {
  return parse_text("test.mlir", meshes +
                                     "\nfunc.func @main(%arg0: tensor<f32>) -> tensor<f32> {\n"
                                     "  return %arg0 : tensor<f32>\n}\n");
}

Sharding sharding(const std::string& text) {
  const Module module = module_with(R"(sdy.mesh @mesh = <["x"=2, "y"=4, "z"=8]>
sdy.mesh @reversed = <["x"=2, "y"=2], device_ids=[0, 2, 1, 3]>
sdy.mesh @one = <[], device_ids=[3]>)");
  return parse_sharding(module, text);
}

std::vector<Sharding> shardings(const std::string& text) {
  const Module module = module_with("sdy.mesh @mesh = <[\"x\"=2, \"y\"=4]>");
  return parse_shardings(module, text);
}

using Axes = std::vector<DeviceAxes>;

// ---- HLO ----

TEST_CASE("devices counted up lie row by row in the array") {
  const Sharding s = sharding("\"{devices=[2,1,4]<=[8]}\"");
  CHECK(s.form == Form::tiled);
  CHECK(s.dims == Axes{{{2, 4}}, {}, {{4, 1}}});
  CHECK(s.devices == 8);
  CHECK(s.regular);
  CHECK(s.divides());
}

TEST_CASE("transposed devices: of 2 x 4 the four columns are one apart, the two rows four") {
  CHECK(sharding("\"{devices=[4,2]<=[2,4]T(1,0)}\"").dims == Axes{{{4, 1}}, {{2, 4}}});
  // Three dimensions in the order 2, 0, 1: strides 1, 8, 2 of [2, 4, 2].
  CHECK(sharding("\"{devices=[2,2,4]<=[2,4,2]T(2,0,1)}\"").dims == Axes{{{2, 1}}, {{2, 8}}, {{4, 2}}});
  // A dimension over two axes, major one first: 4 = 2 (stride 1) x 2 (the outer half of 4 with stride 2).
  CHECK(sharding("\"{devices=[4,2]<=[4,2]T(1,0)}\"").dims == Axes{{{2, 1}, {2, 4}}, {{2, 2}}});
}

TEST_CASE("listed devices are recognised as axes") {
  CHECK(sharding("\"{devices=[4,1]0,1,2,3}\"").dims == Axes{{{4, 1}}, {}});
  CHECK(sharding("\"{devices=[2,2]0,2,1,3}\"").dims == Axes{{{2, 1}}, {{2, 2}}});
  const Sharding pairs = sharding("\"{devices=[4]0,1,4,5}\"");
  CHECK(pairs.dims == Axes{{{2, 4}, {2, 1}}});
  CHECK(pairs.regular);
  const Sharding mixed = sharding("\"{devices=[4]0,3,1,2}\"");
  CHECK(size_of(mixed.dims[0]) == 4);
  CHECK_FALSE(mixed.regular);
}

TEST_CASE("last dimensions of the array can be replicated, manual or unreduced") {
  const Sharding s = sharding("\"{devices=[2,1,4]<=[8] last_tile_dim_replicate}\"");
  CHECK(s.dims == Axes{{{2, 4}}, {}});
  CHECK(s.replicated == DeviceAxes{{4, 1}});
  const Sharding two = sharding("\"{devices=[1,2,4,2]<=[16] last_tile_dims={manual, replicated}}\"");
  CHECK(two.dims == Axes{{}, {{2, 8}}});
  CHECK(two.manual == DeviceAxes{{4, 2}});
  CHECK(two.replicated == DeviceAxes{{2, 1}});
  CHECK(sharding("\"{devices=[2,4]<=[8] last_tile_dims={unreduced}}\"").unreduced == DeviceAxes{{4, 1}});
}

TEST_CASE("shardings without an array of devices") {
  CHECK_FALSE(sharding("\"{replicated}\"").divides());
  CHECK(sharding("\"{replicated}\"").form == Form::tiled);
  CHECK(sharding("\"{maximal device=5}\"").form == Form::maximal);
  CHECK(sharding("\"{maximal device=5}\"").device == 5);
  CHECK(sharding("\"{manual}\"").form == Form::manual);
  CHECK(sharding("\"{unknown}\"").form == Form::unknown);
  CHECK(sharding("\"{replicated metadata={op_name=\\22a{b}\\22}}\"").form == Form::tiled);
  CHECK(sharding(R"("{devices=[2]<=[2] metadata={op_type=\"x\" op_name=\"y\"}}")").dims == Axes{{{2, 1}}});
  CHECK(sharding("\"{devices=[2]<=[2] metadata={op_type=\\22x\\22} shard_as 1}\"").dims == Axes{{{2, 1}}});
}

TEST_CASE("a tuple has a sharding for each member") {
  const std::vector<Sharding> all = shardings("\"{{devices=[2,1]<=[2]}, {replicated}, {{maximal device=1}, {}}}\"");
  REQUIRE(all.size() == 3);
  CHECK(all[0].divides());
  CHECK(all[2].form == Form::maximal);
}

TEST_CASE("the binary OpSharding of older programs") {
  // type 3 (other), tile_assignment_dimensions [2, 1], tile_assignment_devices [0, 1]
  const Sharding s = sharding(R"("\08\03\1A\02\02\01\22\02\00\01")");
  CHECK(s.dims == Axes{{{2, 1}}, {}});
  CHECK(sharding(R"("\08\01\1A\01\01\22\01\00")").form == Form::maximal);
  CHECK(sharding(R"("")").form == Form::unknown);
  // replicate_on_last_tile_dim, [2, 2] of devices 0 to 3
  const Sharding last = sharding(R"("\08\03\1A\02\02\02\22\04\00\01\02\03\30\01")");
  CHECK(last.dims == Axes{{{2, 2}}});
  CHECK(last.replicated == DeviceAxes{{2, 1}});
  // A tuple of two replicated members.
  CHECK(shardings(R"("\08\02*\00*\02\08\04")").size() == 2);
  CHECK_THROWS_AS(sharding(R"("\08\03\1A\7F\02")"), Error);
}

// ---- Shardy ----

TEST_CASE("axes of a mesh: x, y and z of 2 x 4 x 8 are 32, 8 and 1 apart") {
  const Sharding s = sharding(R"(#sdy.sharding<@mesh, [{"x"}, {"z", ?}, {}], replicated={"y"}>)");
  CHECK(s.dims == Axes{{{2, 32}}, {{8, 1}}, {}});
  CHECK(s.open == std::vector<bool>{false, true, false});
  CHECK(s.replicated == DeviceAxes{{4, 8}});
  CHECK(s.devices == 64);
  // Neighbouring axes count on as one; others stay apart.
  CHECK(sharding(R"(<@mesh, [{"y", "z"}]>)").dims == Axes{{{32, 1}}});
  CHECK(sharding(R"(<@mesh, [{"x", "z"}]>)").dims == Axes{{{2, 32}, {8, 1}}});
}

TEST_CASE("part (before)size of an axis") {
  // z of 8 as 2 x 2 x 2: strides 4, 2, 1.
  CHECK(sharding(R"(<@mesh, [{"z":(1)2}]>)").dims == Axes{{{2, 4}}});
  CHECK(sharding(R"(<@mesh, [{"z":(2)2}]>)").dims == Axes{{{2, 2}}});
  CHECK(sharding(R"(<@mesh, [{"z":(2)4}p3]>)").dims == Axes{{{4, 1}}});
  CHECK(sharding(R"(<@mesh, [{}], unreduced={"z":(4)2}>)").unreduced == DeviceAxes{{2, 1}});
}

TEST_CASE("meshes with numbers of their own, of one device, and written in place") {
  CHECK(sharding(R"(<@reversed, [{"x"}, {"y"}]>)").dims == Axes{{{2, 1}}, {{2, 2}}});
  const Sharding one = sharding("#sdy.sharding<@one, []>");
  CHECK(one.form == Form::maximal);
  CHECK(one.device == 3);
  CHECK(sharding(R"(#sdy.sharding<mesh<["a"=2, "b"=2]>, [{"b"}]>)").dims == Axes{{{2, 1}}});
  // The same in HLO's own text.
  CHECK(sharding(R"("{mesh['a'=2,'b'=4], [{'b'}, {}], replicated={'a'}}")").dims == Axes{{{4, 1}}, {}});
}

TEST_CASE("Shardy's text inside a string, as HLO carries it, however its quotes are escaped") {
  for (const std::string mark : {R"(\22)", R"(\")", R"(\\\22)"}) {
    INFO(mark);
    const std::string x = mark + "x" + mark;
    const Module module = parse_text(
        "test.mlir", "module @m attributes {mhlo.frontend_attributes = {xla.sdy.meshes = \"{m = #sdy.mesh<[" + x +
                         "=4]>}\"}} {\n  func.func @main(%arg0: tensor<8xf32> {mhlo.frontend_attributes = "
                         "{xla.sdy.sharding = \"#sdy.sharding<@m, [{" +
                         x + "}]>\"}}) -> tensor<8xf32> {\n    return %arg0 : tensor<8xf32>\n  }\n}\n");
    const auto text = sharding_text(module.functions.at(0).argument_attributes.at(0));
    REQUIRE(text);
    CHECK(parse_sharding(module, *text).dims == Axes{{{4, 1}}});
  }
}

TEST_CASE("devices of a mesh that are printed as bytes are in no order that is known") {
  const Module module = parse_text("test.mlir", R"(sdy.mesh @mesh = <["x"=4]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 4>], device_ids = dense<"0x0000000000000000010000000000000002000000000000000300000000000000"> : tensor<4xi64>>, [{"x"}]>}) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
)");
  CHECK(size_of(parse_sharding(module, module.functions[0].argument_attributes[0][0].text).dims[0]) == 4);
}

TEST_CASE("a sharding per value") {
  const auto all = shardings(R"(#sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, [{"y"}]>]>)");
  REQUIRE(all.size() == 2);
  CHECK(all[1].dims == Axes{{{4, 1}}});
  CHECK(shardings(R"([<@mesh, [{"x"}]>, <@mesh, []>])").size() == 2);
}

TEST_CASE("of several programs in a file each has its own meshes") {
  const Module module = parse_text("test.mlir", R"(sdy.mesh @mesh = <["x"=2]>
func.func @f(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
// -----
sdy.mesh @mesh = <["y"=4]>
func.func @g(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
)");
  REQUIRE(module.functions.size() == 2);
  CHECK(size_of(parse_sharding(module, module.functions[0].argument_attributes[0][0].text).dims[0]) == 2);
  CHECK(size_of(parse_sharding(module, module.functions[1].argument_attributes[0][0].text).dims[0]) == 4);
}

// ---- what one device has ----

TEST_CASE("a device has its part of every dimension, rounded up") {
  const Sharding s = sharding("\"{devices=[2,1,4]<=[8]}\"");
  CHECK(local_dims(s, {16, 5, 12}) == std::vector<std::int64_t>{8, 5, 3});
  CHECK(local_dims(s, {3, 5, 10}) == std::vector<std::int64_t>{2, 5, 3});
  CHECK(local_dims(s, {0, 5, 10}) == std::vector<std::int64_t>{0, 5, 3});
  CHECK(local_dims(sharding("\"{maximal device=0}\""), {16}) == std::vector<std::int64_t>{16});
}

// ---- axes ----

TEST_CASE("8 devices four apart in pairs of two: a group with gaps is not regular") {
  CHECK(group_of({{4, 1}}).ranks == 4);
  const DeviceGroup strided = group_of({{4, 2}});
  CHECK(strided.stride == 2);
  CHECK(strided.regular);
  // {2, 8} and {4, 2} are 0 2 4 6 8 10 12 14; {2, 8} and {2, 1} are 0 1 8 9.
  CHECK(group_of({{4, 2}, {2, 8}}).regular);
  CHECK(group_of({{4, 2}, {2, 8}}).stride == 2);
  const DeviceGroup gaps = group_of({{2, 8}, {2, 1}});
  CHECK(gaps.ranks == 4);
  CHECK(gaps.stride == 1);
  CHECK_FALSE(gaps.regular);
  CHECK(group_text(devices_of({{2, 8}, {2, 1}}, 100), 4) == "{0,1,8,9} x4");
  CHECK(group_text(devices_of({{64, 1}}, 100), 1) == "{0,1,2,...,63} x1");
}

TEST_CASE("axes are cut where others begin or end") {
  CHECK(*cut_by({{8, 1}}, {{2, 4}}) == DeviceAxes{{2, 4}, {4, 1}});
  CHECK(*cut_by({{8, 1}}, {{2, 2}}) == DeviceAxes{{2, 4}, {2, 2}, {2, 1}});
  CHECK(*cut_by({{2, 8}}, {{8, 1}}) == DeviceAxes{{2, 8}});
  CHECK_FALSE(cut_by({{6, 1}}, {{2, 4}}));
  CHECK(overlap({{8, 1}}, {{2, 4}}));
  CHECK_FALSE(overlap({{2, 8}}, {{8, 1}}));
}

// ---- errors ----

TEST_CASE("a malformed sharding is answered with its place") {
  const auto failure = [](const std::string& text) -> Diagnostic {
    const Module module = parse_text(
        "bad.mlir", "sdy.mesh @mesh = <[\"x\"=2, \"y\"=4]>\nfunc.func @main(%arg0: tensor<4x4xf32> {mhlo.sharding = " +
                        text + "}) -> tensor<4x4xf32> {\n  return %arg0 : tensor<4x4xf32>\n}\n");
    try {
      parse_shardings(module, module.functions[0].argument_attributes[0][0].text);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::bad_input);
      return error.diagnostics()[0];
    }
    FAIL("no error for " << text);
    return {};
  };
  // func.func @main(%arg0: tensor<4x4xf32> {mhlo.sharding = " is 57 characters long.
  const Diagnostic gap = failure("\"{devices=[2,2]<=[8]}\"");
  CHECK(gap.where.file == "bad.mlir");
  CHECK(gap.where.line == 2);
  CHECK_THAT(gap.message, Catch::Contains("an array of 4 devices is not filled with 8"));
  const Diagnostic word = failure("\"{devices=[2,2] nonsense}\"");
  CHECK(word.where.column == 58 + 15);
  CHECK_THAT(word.message, Catch::Contains("expected a number of devices and not 'nonsense}'"));
  CHECK_THAT(failure("\"{replicatd}\"").message, Catch::Contains("expected devices=, replicated, maximal or manual"));
  CHECK_THAT(failure("\"{devices=[2,2]<=[4]T(0,0)}\"").message, Catch::Contains("every dimension before it once"));
  CHECK_THAT(failure("\"{devices=[2,2]0,1,2}\"").message, Catch::Contains("is not filled with 3"));
  CHECK_THAT(failure("\"{devices=[0,2]<=[0]}\"").message, Catch::Contains("extents of 1 and more"));
  CHECK_THAT(failure("\"{devices=[4294967296,4294967296]<=[4]}\"").message, Catch::Contains("no more than 2^32"));
  CHECK_THAT(failure("\"{devices=[2]<=[2]\"").message, Catch::Contains("and not the end"));
  CHECK_THAT(failure("#sdy.sharding<@nowhere, [{}]>").message, Catch::Contains("there is no mesh 'nowhere'"));
  const Diagnostic axis = failure("#sdy.sharding<@mesh, [{\"x\"}, {\"w\"}]>");
  CHECK_THAT(axis.message, Catch::Contains("the mesh has no axis 'w'"));
  CHECK(axis.hint == "it has: x, y");
  CHECK_THAT(failure("#sdy.sharding<@mesh, [{\"y\":(1)3}]>").message, Catch::Contains("has no part (1)3"));
  CHECK_THAT(failure("#sdy.sharding<@mesh, [{\"x\"}, {\"x\"}]>").message,
             Catch::Contains("two dimensions are divided over the same devices"));
  CHECK_THAT(failure("#sdy.sharding<@mesh, [{\"x\", \"x\"}]>").message, Catch::Contains("the same devices twice"));
  CHECK_THAT(failure("#sdy.sharding<@mesh, [{\"x\"}], replicated={\"x\"}>").message,
             Catch::Contains("said to hold the same"));
  CHECK_THAT(failure("17").message, Catch::Contains("'17' is no sharding"));
  const std::string deep(1000, '{');
  CHECK_THAT(failure("\"" + deep + "\"").message, Catch::Contains("nested too deep"));
}

}  // namespace
}  // namespace llmperf::program::sharding_test
