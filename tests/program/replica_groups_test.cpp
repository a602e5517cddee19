// Replica groups of explicit collectives by hand.
#include "program/replica_groups.h"

#include <fmt/format.h>

#include "base/error.h"
#include "catch.h"
#include "program/flatten.h"

namespace llmperf::program::replica_groups_test {
namespace {

constexpr const char* kSum = R"(({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }))";

// A program of one collective with these attributes.
std::string program(const std::string& op, const std::string& attributes, const std::string& module_attributes = "") {
  const bool sums = op == "all_reduce";
  return fmt::format(R"(module @m attributes {{{}}} {{
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<16xf32>) -> tensor<16xf32> {{
    %0 = "stablehlo.{}"(%arg0) <{{{}}}> {} : (tensor<16xf32>) -> tensor<16xf32>
    return %0 : tensor<16xf32>
  }}
}}
)",
                     module_attributes, op, attributes, sums ? kSum : "");
}

ReplicaGroups groups(const std::string& op, const std::string& attributes, std::int64_t devices,
                     const std::string& module_attributes = "") {
  const Module module = parse_text("test.mlir", program(op, attributes, module_attributes));
  return replica_groups(module, module.functions.at(0).body.body.at(0), devices);
}

std::int64_t count(const std::string& text, std::optional<std::int64_t> given = std::nullopt) {
  const Module module = parse_text("test.mlir", text);
  return device_count(flatten(module, {}), given);
}

const std::string kChannel = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, ";
const std::string kGlobal = kChannel + "use_global_device_ids, ";
const std::string kEight = "mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32";
const std::string kTwoByFour = "mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 2 : i32";

TEST_CASE("groups of neighbours, and of every second device") {
  const ReplicaGroups near =
      groups("all_reduce", kGlobal + "replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>", 8);
  CHECK(near.ranks == 4);
  CHECK(near.stride == 1);
  CHECK(near.groups == 2);
  CHECK_FALSE(near.uneven);
  CHECK(near.text == "{0,1,2,3} x2");
  const ReplicaGroups apart =
      groups("all_reduce", kGlobal + "replica_groups = dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>", 8);
  CHECK(apart.ranks == 2);
  CHECK(apart.stride == 4);
  CHECK(apart.groups == 4);
  // The order within a group does not change who talks to whom.
  CHECK(groups("all_reduce", kGlobal + "replica_groups = dense<[[6, 0, 4, 2]]> : tensor<1x4xi64>", 8).stride == 2);
}

TEST_CASE("groups of different sizes are filled up with -1; the largest one counts") {
  const ReplicaGroups g =
      groups("all_reduce", kGlobal + "replica_groups = dense<[[0, -1, -1], [1, 2, 3]]> : tensor<2x3xi64>", 4);
  CHECK(g.uneven);
  CHECK(g.ranks == 3);
  CHECK(g.groups == 2);
  CHECK(g.text == "{1,2,3} x2");
}

TEST_CASE("a group with gaps is as far apart as all its distances have in common") {
  const ReplicaGroups g =
      groups("all_reduce", kGlobal + "replica_groups = dense<[[0, 2, 8, 10]]> : tensor<1x4xi64>", 16);
  CHECK(g.stride == 2);
}

TEST_CASE("no groups are all devices") {
  const ReplicaGroups g = groups("all_reduce", kGlobal + "replica_groups = dense<> : tensor<0x0xi64>", 8, kEight);
  CHECK(g.ranks == 8);
  CHECK(g.groups == 1);
  CHECK(g.text == "{0,1,2,3,4,5,6,7} x1");
  // Of replicas without a channel: all replicas, in each partition on its own.
  const ReplicaGroups replicas = groups("all_reduce", "replica_groups = dense<> : tensor<0x0xi64>", 8, kTwoByFour);
  CHECK(replicas.ranks == 2);
  CHECK(replicas.stride == 4);
  CHECK(replicas.groups == 4);
}

TEST_CASE("what the numbers of a group are follows from the channel") {
  const std::string both = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>";
  // 2 replicas of 4 partitions are the devices 0 to 3 and 4 to 7.
  const ReplicaGroups replicas = groups("all_reduce", both, 8, kTwoByFour);
  CHECK(replicas.text == "{0,4} x4");
  CHECK(replicas.stride == 4);
  const ReplicaGroups all = groups("all_reduce", kChannel + both, 8, kTwoByFour);
  CHECK(all.ranks == 8);
  CHECK(all.stride == 1);
  CHECK(all.groups == 1);
  const ReplicaGroups one =
      groups("all_reduce", kChannel + "replica_groups = dense<[[0], [1]]> : tensor<2x1xi64>", 8, kTwoByFour);
  CHECK(one.text == "{0,1,2,3} x2");
  CHECK(groups("all_reduce", kGlobal + both, 8, kTwoByFour).text == "{0,1} x1");
  // An all-to-all with a channel names partitions, in each replica on its own.
  const ReplicaGroups partitions =
      groups("all_to_all",
             kChannel +
                 "split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, "
                 "replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>",
             8, kTwoByFour);
  CHECK(partitions.groups == 4);
  CHECK(partitions.stride == 1);
  CHECK(partitions.devices == 8);
  // Without a word on replicas and partitions numbers are devices.
  CHECK(groups("all_reduce", "replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>", 4).stride == 2);
}

TEST_CASE("in nodes: as many ranks as a group has in one, and pairs that cross or do not") {
  const auto rows = [](const std::string& dense) {
    return groups("all_reduce", kGlobal + "replica_groups = dense<" + dense + ">", 16);
  };
  CHECK(rows("[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64").placed_stride(8) == 1);
  CHECK(rows("[[0, 8], [1, 9]]> : tensor<2x2xi64").placed_stride(8) == 8);
  // Four in each of two nodes, and four that a node's end cuts in two.
  CHECK(rows("[[0, 1, 2, 3, 8, 9, 10, 11]]> : tensor<1x8xi64").placed_stride(8) == 2);
  CHECK(rows("[[6, 7, 8, 9]]> : tensor<1x4xi64").placed_stride(8) == 4);
  const auto pairs = [](const std::string& dense) {
    return groups("collective_permute", kChannel + "source_target_pairs = dense<" + dense + ">", 16);
  };
  const ReplicaGroups ring = pairs("[[0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64");
  CHECK(ring.ranks == 2);
  CHECK(ring.placed_stride(8) == 1);
  CHECK(pairs("[[7, 8]]> : tensor<1x2xi64").placed_stride(8) == 8);
  CHECK(pairs("[[7, 7]]> : tensor<1x2xi64").ranks == 1);
}

TEST_CASE("the type of a list of groups may be written with a blank") {
  CHECK(integer_rows("dense<3> : tensor <1x2xi64>") == std::vector<Integers>{{3, 3}});
  CHECK(integers("dense<[4, 5]> : tensor <2xi64>") == std::vector<std::int64_t>{4, 5});
}

TEST_CASE("groups along the axes of a mesh") {
  const ReplicaGroups y = groups("all_reduce",
                                 kGlobal +
                                     "replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = "
                                     "[#stablehlo.axis_ref<name = \"y\">]>",
                                 8, kEight);
  CHECK(y.ranks == 4);
  CHECK(y.stride == 1);
  CHECK(y.groups == 2);
  const ReplicaGroups part =
      groups("all_reduce",
             kGlobal +
                 "replica_groups = #stablehlo.replica_group_mesh_axes<mesh_name = @mesh, axes = "
                 "[#stablehlo.axis_ref<name = \"y\", sub_axis_info = (1)2>, #stablehlo.axis_ref<name = \"x\">]>",
             8, kEight);
  CHECK(part.ranks == 4);  // y's outer half, 2 apart, and x, 4 apart
  CHECK(part.stride == 2);
  CHECK(part.text == "{0,4,2,6} x2");
  // The mesh has a list `axes` of its own.
  const ReplicaGroups inlined = groups(
      "all_reduce",
      kGlobal +
          "replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = "
          "[#stablehlo.mesh_axis<name = \"x\", size = 2>, #stablehlo.mesh_axis<name = \"y\", size = 4>]>, axes = "
          "[#stablehlo.axis_ref<name = \"y\", sub_axis_info = (1)2>]>",
      8, kEight);
  CHECK(inlined.ranks == 2);
  CHECK(inlined.stride == 2);
  CHECK(inlined.groups == 4);
}

TEST_CASE("a mesh may be an attribute of a function that is only declared") {
  const auto y = [](const std::string& mesh) {
    const Module module = parse_text("test.mlir", R"(module @m {
  func.func private @f() attributes {stablehlo.mesh = )" +
                                                      mesh + R"(}
  func.func public @main(%x: tensor<16xf32>) -> tensor<64xf32> {
    %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @f, axes = [#stablehlo.axis_ref<name = "y">]>}> : (tensor<16xf32>) -> tensor<64xf32>
    return %0 : tensor<64xf32>
  }
}
)");
    return replica_groups(module, module.functions.at(1).body.body.at(0), 8);
  };
  const std::string axes = R"({axes = [{name = "x", size = 2 : i64}, {name = "y", size = 4 : i64}])";
  CHECK(y(axes + "}").text == "{0,1,2,3} x2");
  CHECK(
      y(R"(#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>, #stablehlo.mesh_axis<name = "y", size = 4>]>)")
          .text == "{0,1,2,3} x2");
  // Every second device along y.
  const ReplicaGroups apart = y(axes + ", device_ids = dense<[0, 2, 4, 6, 1, 3, 5, 7]> : tensor<8xi64>}");
  CHECK(apart.text == "{0,2,4,6} x2");
  CHECK(apart.stride == 2);
}

TEST_CASE("a mesh may have the generic form, and be an attribute where Shardy's dialect is not registered") {
  const auto y = [](const std::string& mesh) {
    const Module module = parse_text("test.mlir", "\"builtin.module\"() ({\n" + mesh + R"( : () -> ()
  func.func public @main(%x: tensor<16xf32>) -> tensor<64xf32> {
    %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = "y">]>}> : (tensor<16xf32>) -> tensor<64xf32>
    return %0 : tensor<64xf32>
  }
}) : () -> ()
)");
    return replica_groups(module, module.functions.back().body.body.at(0), 8).text;
  };
  const std::string axes = R"(axes = [{name = "x", size = 2 : i64}, {name = "y", size = 4 : i64}])";
  CHECK(y(R"("sdy.mesh"() <{mesh = #sdy.mesh<["x"=2, "y"=4]>, sym_name = "m"}>)") == "{0,1,2,3} x2");
  CHECK(y(R"("sdy.mesh"() {sym_name = "m", stablehlo.mesh = {)" + axes + "}}") == "{0,1,2,3} x2");
  // Every second device along y.
  CHECK(y(R"("sdy.mesh"() {sym_name = "m", stablehlo.mesh = {)" + axes +
          ", device_ids = dense<[0, 2, 4, 6, 1, 3, 5, 7]> : tensor<8xi64>}}") == "{0,2,4,6} x2");
  CHECK(y(R"("func.func"() <{function_type = () -> (), sym_name = "m"}> ({}) {stablehlo.mesh = {)" + axes + "}}") ==
        "{0,1,2,3} x2");
  // Dense numbers with a type that is written with a blank.
  CHECK(y(R"("sdy.mesh"() {sym_name = "m", stablehlo.mesh = {)" + axes +
          ", device_ids = dense<[0, 2, 4, 6, 1, 3, 5, 7]> : tensor <8xi64>}}") == "{0,2,4,6} x2");
}

TEST_CASE("each program of a file has meshes of its own, whatever their form and place") {
  const auto program = [](const std::string& mesh) {
    return "module {\n" + mesh + R"(
  func.func public @main(%x: tensor<16xf32>) -> tensor<64xf32> {
    %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = "y">]>}> : (tensor<16xf32>) -> tensor<64xf32>
    return %0 : tensor<64xf32>
  }
}
)";
  };
  const Module module = parse_text(
      "test.mlir", program(R"("sdy.mesh"() <{mesh = #sdy.mesh<["x"=2, "y"=4]>, sym_name = "m"}> : () -> ())") +
                       "// -----\n" + program(R"(sdy.mesh @m = <["y"=4, "x"=2]>)"));
  const auto text = [&](std::size_t n) {
    return replica_groups(module, module.functions.at(n).body.body.at(0), 8).text;
  };
  CHECK(text(0) == "{0,1,2,3} x2");
  CHECK(text(1) == "{0,2,4,6} x2");
}

TEST_CASE("a permutation is pairs, of two ranks where anything moves") {
  const auto pairs = [](const std::string& dense) {
    return groups("collective_permute", kChannel + "source_target_pairs = dense<" + dense, 8);
  };
  const ReplicaGroups shift = pairs("[[0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>");
  CHECK(shift.ranks == 2);
  CHECK(shift.pairs.size() == 4);
  CHECK(shift.text == "0->1, 1->2, 2->3, 3->0");
  CHECK(pairs("[[0, 0]]> : tensor<1x2xi64>").ranks == 1);
}

TEST_CASE("devices: given, else what the module says, else the largest number named") {
  const std::string pairs = kGlobal + "replica_groups = dense<[[0, 5], [1, 4]]> : tensor<2x2xi64>";
  CHECK(count(program("all_reduce", pairs)) == 6);
  CHECK(count(program("all_reduce", pairs, kEight)) == 8);
  CHECK(count(program("all_reduce", pairs, kEight), 16) == 16);
  try {
    count(program("all_reduce", pairs), 4);
    FAIL("no error");
  } catch (const Error& error) {
    const Diagnostic& d = error.diagnostics().at(0);
    CHECK_THAT(d.message, Catch::Contains("names device 5, and there are 4"));
    CHECK(d.hint == "`devices` 6");
    CHECK(d.where.line == 4);
  }
}

TEST_CASE("groups that contradict themselves are errors with a place") {
  const auto message = [](const std::string& op, const std::string& attributes) -> std::string {
    try {
      groups(op, attributes, 8);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::bad_input);
      CHECK(error.diagnostics().at(0).where.line == 4);
      return error.diagnostics().at(0).message;
    }
    return "no error";
  };
  CHECK(message("all_reduce", kGlobal + "replica_groups = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>") ==
        "device 1 is in two groups");
  CHECK(message("all_reduce", kGlobal + "replica_groups = dense<[[0, -7]]> : tensor<1x2xi64>") ==
        "there is no device -7");
  CHECK(message("collective_permute", "source_target_pairs = dense<[[0, 1], [0, 2]]> : tensor<2x2xi64>") ==
        "device 0 sends twice");
  CHECK(message("collective_permute", "source_target_pairs = dense<[[0, 1], [2, 1]]> : tensor<2x2xi64>") ==
        "device 1 receives twice");
  CHECK(message("all_reduce", kGlobal + "replica_groups = dense<[[0, 8]]> : tensor<1x2xi64>") ==
        "this exchange names device 8, and there are 8");
}

TEST_CASE("a module of very many devices costs no memory") {
  const std::string huge = "mhlo.num_partitions = 4294967296 : i64, mhlo.num_replicas = 1 : i32";
  const ReplicaGroups g =
      groups("all_reduce", kChannel + "replica_groups = dense<0> : tensor<1x1xi64>", kMaxDevices, huge);
  CHECK(g.ranks == kMaxDevices);
}

}  // namespace
}  // namespace llmperf::program::replica_groups_test
