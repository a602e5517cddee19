// Programs divided over devices, by hand: what one device computes and what is exchanged.
#include <fmt/format.h>

#include "base/error.h"
#include "catch.h"
#include "graph/hlo/dot.h"
#include "graph/hlo/flatten.h"
#include "graph/hlo/partition.h"

namespace llmperf::graph::hlo {
namespace {

double matrix_flops(const Program& p) {
  double flops = 0;
  for (const Node& node : p.nodes) {
    if (node.traits.op_class != OpClass::product || node.inserted) continue;
    const DotShape s = dot_shape(*p.module, *node.instruction, p.type(node.operands[0]), p.type(node.operands[1]));
    flops += 2 * s.batch * s.m * s.n * s.k * static_cast<double>(node.count);
  }
  return flops;
}

struct Divided {
  Module module;
  Program program;
  PartitionResult result;
  double whole_flops = 0;

  // "all-gather 4/1 x2 bf16[8,128] -> bf16[8,512]": ranks / stride, groups, and what becomes of the tensor.
  std::vector<std::string> exchanges() const {
    std::vector<std::string> list;
    for (const Node& node : program.nodes) {
      if (!node.inserted || !node.inserted->kind) continue;
      const InsertedCollective& c = *node.inserted;
      list.push_back(fmt::format("{} {}/{} x{} {} -> {}{}", name(*c.kind), c.ranks, c.stride, c.groups,
                                 text_of(program.type(node.operands[0])), text_of(program.type(node.results[0])),
                                 node.count > 1 ? fmt::format(", {} times", node.count) : ""));
    }
    return list;
  }
  // Results of the ops of that name.
  std::vector<std::string> results(std::string_view op) const {
    std::vector<std::string> list;
    for (const Node& node : program.nodes) {
      if (!node.inserted && node.instruction->op() == op) list.push_back(text_of(program.type(node.results.at(0))));
    }
    return list;
  }
  std::string result_type(std::size_t n = 0) const { return text_of(program.type(program.results.at(n))); }
};

std::unique_ptr<Divided> divided(Module module, std::optional<std::int64_t> devices = std::nullopt) {
  auto d = std::make_unique<Divided>();
  d->module = std::move(module);
  d->program = flatten(d->module, {});
  d->whole_flops = matrix_flops(d->program);
  d->result = partition(d->program, {.devices = devices});
  return d;
}

std::unique_ptr<Divided> fixture(const std::string& name) {
  return divided(parse_file(std::string(LLMPERF_SOURCE_DIR) + "/tests/graph/programs/" + name));
}

// @main with these arguments and body, on a mesh of 2 ("data") x 4 ("model").
std::unique_ptr<Divided> program(const std::string& arguments, const std::string& body,
                                 std::optional<std::int64_t> devices = std::nullopt) {
  return divided(parse_text("test.mlir", "sdy.mesh @mesh = <[\"data\"=2, \"model\"=4]>\nfunc.func @main(" + arguments +
                                             "{\n" + body + "}\n"),
                 devices);
}

std::string on(const std::string& dims) { return "{sdy.sharding = #sdy.sharding<@mesh, [" + dims + "]>}"; }

using Strings = std::vector<std::string>;

// ---- the feed-forward layer of Megatron ----

TEST_CASE("Megatron with sequences divided outside: all-gather before, reduce-scatter after, from GSPMD and Shardy") {
  for (const std::string name : {"mlp_gspmd.mlir", "mlp_shardy.mlir"}) {
    CAPTURE(name);
    const auto d = fixture(name);
    CHECK(d->result.devices == 4);
    CHECK_FALSE(d->result.local);
    CHECK(d->exchanges() == Strings{"all-gather 4/1 x1 bf16[8,128,1024] -> bf16[8,512,1024]",
                                    "reduce-scatter 4/1 x1 bf16[8,512,1024] -> bf16[8,128,1024]"});
    CHECK(d->results("dot_general") == Strings{"bf16[8,512,1024]", "bf16[8,512,1024]"});
    CHECK(d->results("maximum") == Strings{"bf16[8,512,1024]"});
    CHECK(d->result_type() == "bf16[8,128,1024]");
    // 4096 tokens, 1024 x 4096 and 4096 x 1024.
    CHECK(d->whole_flops == 2.0 * 4096 * 1024 * 4096 * 2);
    CHECK(4 * matrix_flops(d->program) == d->whole_flops);
    CHECK(d->program.notes.empty());
  }
}

TEST_CASE("what GSPMD makes of the layer is the fixture that is divided already") {
  const auto whole = fixture("mlp_gspmd.mlir");
  const auto local = fixture("mlp_spmd.mlir");
  CHECK(local->result.local);
  CHECK_FALSE(local->result.annotated);
  CHECK(local->result.devices == 4);
  CHECK(local->exchanges().empty());
  CHECK(matrix_flops(local->program) == matrix_flops(whole->program));
  CHECK(whole->results("dot_general") == local->results("dot_general"));
}

const std::string kLayer = R"(
  %0 = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0] : (tensor<4096x1024xbf16>, tensor<1024x4096xbf16>) -> tensor<4096x4096xbf16>
  %1 = stablehlo.tanh %0 : tensor<4096x4096xbf16>
  %2 = stablehlo.dot_general %1, %w2, contracting_dims = [1] x [0] : (tensor<4096x4096xbf16>, tensor<4096x1024xbf16>) -> tensor<4096x1024xbf16>
  %3 = stablehlo.add %2, %x : tensor<4096x1024xbf16>
  return %3 : tensor<4096x1024xbf16>
)";

TEST_CASE("Megatron on tokens that all have: one all-reduce of [4096, 1024] after the second product") {
  const auto d = program("%x: tensor<4096x1024xbf16>, %w1: tensor<1024x4096xbf16> " + on("{}, {\"model\"}") +
                             ", %w2: tensor<4096x1024xbf16> " + on("{\"model\"}, {}") + ") -> tensor<4096x1024xbf16>",
                         kLayer);
  // Two groups of the four devices along "model", as there are two along "data".
  CHECK(d->exchanges() == Strings{"all-reduce 4/1 x2 bf16[4096,1024] -> bf16[4096,1024]"});
  CHECK(d->results("tanh") == Strings{"bf16[4096,1024]"});
  CHECK(4 * matrix_flops(d->program) == d->whole_flops);
}

TEST_CASE("tokens over one axis and weights over the other: every device has an eighth of the work") {
  const auto d = program("%x: tensor<4096x1024xbf16> " + on("{\"data\"}, {}") + ", %w1: tensor<1024x4096xbf16> " +
                             on("{}, {\"model\"}") + ", %w2: tensor<4096x1024xbf16> " + on("{\"model\"}, {}") +
                             ") -> tensor<4096x1024xbf16>",
                         kLayer);
  CHECK(d->exchanges() == Strings{"all-reduce 4/1 x2 bf16[2048,1024] -> bf16[2048,1024]"});
  CHECK(8 * matrix_flops(d->program) == d->whole_flops);
  CHECK(d->result_type() == "bf16[2048,1024]");
}

TEST_CASE("weights over the axis of the tokens are gathered where they are used (FSDP)") {
  const auto d = program("%x: tensor<4096x1024xbf16> " + on("{\"data\"}, {}") + ", %w1: tensor<1024x4096xbf16> " +
                             on("{\"data\"}, {}") + ", %w2: tensor<4096x1024xbf16> " + on("{\"data\"}, {}") +
                             ") -> tensor<4096x1024xbf16>",
                         kLayer);
  CHECK(d->exchanges() == Strings{"all-gather 2/4 x4 bf16[512,4096] -> bf16[1024,4096]",
                                  "all-gather 2/4 x4 bf16[2048,1024] -> bf16[4096,1024]"});
  CHECK(2 * matrix_flops(d->program) == d->whole_flops);
}

TEST_CASE("a gradient of divided tokens is summed") {
  const auto d =
      program("%x: tensor<4096x1024xbf16> " + on("{\"data\", \"model\"}, {}") + ", %g: tensor<4096x512xbf16> " +
                  on("{\"data\", \"model\"}, {}") + ") -> tensor<1024x512xbf16>",
              R"(
  %0 = stablehlo.dot_general %x, %g, contracting_dims = [0] x [0] : (tensor<4096x1024xbf16>, tensor<4096x512xbf16>) -> tensor<1024x512xbf16>
  return %0 : tensor<1024x512xbf16>
)");
  CHECK(d->exchanges() == Strings{"all-reduce 8/1 x1 bf16[1024,512] -> bf16[1024,512]"});
  CHECK(8 * matrix_flops(d->program) == d->whole_flops);
}

// ---- attention ----

TEST_CASE("heads stay divided through reshapes, scores and softmax; a table divided by rows leaves summands") {
  const auto d = program("%ids: tensor<8x128xi32> " + on("{\"data\"}, {}") + ", %table: tensor<32000x1024xbf16> " +
                             on("{\"model\"}, {}") + ", %wq: tensor<1024x1024xbf16> " + on("{}, {\"model\"}") +
                             ", %wo: tensor<1024x1024xbf16> " + on("{\"model\"}, {}") + ") -> tensor<8x128x1024xbf16>",
                         R"(
  %i = stablehlo.reshape %ids : (tensor<8x128xi32>) -> tensor<8x128x1xi32>
  %x = "stablehlo.gather"(%table, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1024>}> : (tensor<32000x1024xbf16>, tensor<8x128x1xi32>) -> tensor<8x128x1024xbf16>
  %q = stablehlo.dot_general %x, %wq, contracting_dims = [2] x [0] : (tensor<8x128x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<8x128x1024xbf16>
  %h = stablehlo.reshape %q : (tensor<8x128x1024xbf16>) -> tensor<8x128x16x64xbf16>
  %s = stablehlo.dot_general %h, %h, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<8x128x16x64xbf16>, tensor<8x128x16x64xbf16>) -> tensor<8x16x128x128xbf16>
  %z = stablehlo.constant dense<0.0> : tensor<bf16>
  %m = stablehlo.reduce(%s init: %z) applies stablehlo.maximum across dimensions = [3] : (tensor<8x16x128x128xbf16>, tensor<bf16>) -> tensor<8x16x128xbf16>
  %b = stablehlo.broadcast_in_dim %m, dims = [0, 1, 2] : (tensor<8x16x128xbf16>) -> tensor<8x16x128x128xbf16>
  %e = stablehlo.subtract %s, %b : tensor<8x16x128x128xbf16>
  %o = stablehlo.dot_general %e, %h, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1] : (tensor<8x16x128x128xbf16>, tensor<8x128x16x64xbf16>) -> tensor<8x16x128x64xbf16>
  %t = stablehlo.transpose %o, dims = [0, 2, 1, 3] : (tensor<8x16x128x64xbf16>) -> tensor<8x128x16x64xbf16>
  %c = stablehlo.reshape %t : (tensor<8x128x16x64xbf16>) -> tensor<8x128x1024xbf16>
  %y = stablehlo.dot_general %c, %wo, contracting_dims = [2] x [0] : (tensor<8x128x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<8x128x1024xbf16>
  return %y : tensor<8x128x1024xbf16>
)");
  // 4 of 8 sequences and 4 of 16 heads.
  CHECK(d->results("subtract") == Strings{"bf16[4,4,128,128]"});
  CHECK(d->results("reduce") == Strings{"bf16[4,4,128]"});
  CHECK(d->exchanges() == Strings{"all-reduce 4/1 x2 bf16[4,128,1024] -> bf16[4,128,1024]",
                                  "all-reduce 4/1 x2 bf16[4,128,1024] -> bf16[4,128,1024]"});
  CHECK(8 * matrix_flops(d->program) == d->whole_flops);
}

TEST_CASE("heads that the devices do not divide are gathered before the reshape") {
  const auto d = program("%q: tensor<8x96xbf16> " + on("{}, {\"model\"}") + ") -> tensor<8x6x16xbf16>", R"(
  %h = stablehlo.reshape %q : (tensor<8x96xbf16>) -> tensor<8x6x16xbf16>
  return %h : tensor<8x6x16xbf16>
)");
  CHECK(d->exchanges() == Strings{"all-gather 4/1 x2 bf16[8,24] -> bf16[8,96]"});
}

// ---- resharding ----

TEST_CASE("from one sharding to another") {
  struct Case {
    std::string from;
    std::string to;
    Strings exchanges;
  };
  const Case cases[] = {
      {"{\"model\"}, {}", "{}, {}", {"all-gather 4/1 x2 f32[4,16] -> f32[16,16]"}},
      {"{}, {}", "{\"model\"}, {\"data\"}", {}},
      {"{\"data\"}, {}", "{\"data\", \"model\"}, {}", {}},
      {"{\"model\"}, {}", "{}, {\"model\"}", {"all-to-all 4/1 x2 f32[4,16] -> f32[16,4]"}},
      {"{\"data\", \"model\"}, {}", "{\"data\"}, {\"model\"}", {"all-to-all 4/1 x2 f32[2,16] -> f32[8,4]"}},
      {"{\"data\", \"model\"}, {}", "{\"data\"}, {}", {"all-gather 4/1 x2 f32[2,16] -> f32[8,16]"}},
      // The inner axis is gathered, so that the outer one can change its dimension.
      {"{\"data\", \"model\"}, {}",
       "{}, {\"data\"}",
       {"all-gather 4/1 x2 f32[2,16] -> f32[8,16]", "all-to-all 2/4 x4 f32[8,16] -> f32[16,8]"}},
      // The same parts in another order.
      {"{\"data\", \"model\"}, {}", "{\"model\", \"data\"}, {}", {"send 8/1 x1 f32[2,16] -> f32[2,16]"}},
      // As many parts of each dimension: every device has its part from one other.
      {"{\"model\":(1)2}, {\"model\":(2)2}",
       "{\"model\":(2)2}, {\"model\":(1)2}",
       {"send 4/1 x2 f32[8,8] -> f32[8,8]"}},
      {"{\"model\":(1)2}, {}", "{\"data\"}, {}", {"send 4/2 x2 f32[8,16] -> f32[8,16]"}},
      {"{\"data\"}, {\"model\":(2)2}", "{\"model\":(1)2}, {\"model\":(2)2}", {"send 4/2 x2 f32[8,8] -> f32[8,8]"}},
      // An open dimension keeps what it has.
      {"{\"model\"}, {}", "{?}, {\"data\"}", {}},
      {"{\"model\"}, {}", "{?}, {\"model\"}", {"all-to-all 4/1 x2 f32[4,16] -> f32[16,4]"}},
      {"{\"model\":(1)2}, {}", "{\"model\"}, {}", {}},
      {"{\"model\"}, {}", "{\"model\":(1)2}, {}", {"all-gather 2/1 x4 f32[4,16] -> f32[8,16]"}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.from, c.to);
    const auto d = program("%x: tensor<16x16xf32> " + on(c.from) + ") -> tensor<16x16xf32>",
                           "  %0 = sdy.sharding_constraint %x <@mesh, [" + c.to +
                               "]> : tensor<16x16xf32>\n  return %0 : tensor<16x16xf32>\n");
    CHECK(d->exchanges() == c.exchanges);
  }
}

TEST_CASE("a value is gathered once for all who use it") {
  const auto d = program("%x: tensor<16x16xf32> " + on("{\"model\"}, {}") + ") -> tensor<16x16xf32>", R"(
  %0 = sdy.reshard %x <@mesh, [{}, {}]> : tensor<16x16xf32>
  %1 = sdy.reshard %x <@mesh, [{}, {}]> : tensor<16x16xf32>
  %2 = stablehlo.add %0, %1 : tensor<16x16xf32>
  return %2 : tensor<16x16xf32>
)");
  CHECK(d->exchanges().size() == 1);
}

TEST_CASE("what one device has is broadcast to those who go on with it") {
  const auto d = divided(parse_text("test.mlir", R"(
func.func @main(%x: tensor<16xf32> {mhlo.sharding = "{maximal device=2}"}, %y: tensor<16xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) -> tensor<16xf32> {
  %0 = stablehlo.tanh %x : tensor<16xf32>
  %1 = stablehlo.add %0, %y : tensor<16xf32>
  return %1 : tensor<16xf32>
}
)"));
  CHECK(d->exchanges() == Strings{"broadcast 4/1 x1 f32[16] -> f32[16]"});
  CHECK(d->results("add") == Strings{"f32[4]"});
}

TEST_CASE("Shardy's own collectives lead to the sharding they name") {
  const auto d = program("%x: tensor<16x16xf32> " + on("{\"data\"}, {\"model\"}") + ") -> tensor<16x16xf32>", R"(
  %0 = sdy.all_gather [{}, {"model"}] %x out_sharding=<@mesh, [{"data"}, {}]> : tensor<16x16xf32>
  %1 = sdy.all_slice [{"model"}, {}] %0 out_sharding=<@mesh, [{"data", "model"}, {}]> : tensor<16x16xf32>
  return %1 : tensor<16x16xf32>
)");
  CHECK(d->exchanges() == Strings{"all-gather 4/1 x2 f32[8,4] -> f32[8,16]"});
  CHECK(d->result_type() == "f32[2,16]");
}

TEST_CASE("results of the program lie as its signature says") {
  const auto d =
      program("%x: tensor<16x16xf32> " + on("{\"model\"}, {}") + ") -> (tensor<16x16xf32> " + on("{}, {}") + ")",
              "  %0 = stablehlo.tanh %x : tensor<16x16xf32>\n  return %0 : tensor<16x16xf32>\n");
  CHECK(d->exchanges() == Strings{"all-gather 4/1 x2 f32[4,16] -> f32[16,16]"});
  CHECK(d->results("tanh") == Strings{"f32[4,16]"});
  CHECK(d->result_type() == "f32[16,16]");
}

TEST_CASE("summands that an annotation begins are no exchange; who needs the value adds them up") {
  const auto d = program("%a: tensor<16x32xf32> " + on("{\"data\"}, {}") + ") -> tensor<16x32xf32>", R"(
  %0 = stablehlo.add %a, %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}], unreduced={"model"}>]>} : tensor<16x32xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<16x32xf32>
  return %1 : tensor<16x32xf32>
)");
  CHECK(d->exchanges() == Strings{"all-reduce 4/1 x2 f32[8,32] -> f32[8,32]"});
  CHECK(d->results("multiply") == Strings{"f32[8,32]"});
}

TEST_CASE("parts become summands without an exchange") {
  const auto d = program("%a: tensor<16x32xf32> " + on("{\"data\"}, {\"model\"}") + ") -> tensor<16x32xf32>", R"(
  %0 = sdy.sharding_constraint %a <@mesh, [{"data"}, {}], unreduced={"model"}> : tensor<16x32xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"data", "model"}, {}]> : tensor<16x32xf32>
  return %1 : tensor<16x32xf32>
)");
  CHECK(d->exchanges() == Strings{"reduce-scatter 4/1 x2 f32[8,32] -> f32[2,32]"});
}

TEST_CASE("summands go through what is linear in them where the annotations say so, and are scattered at its end") {
  const auto d = [](const std::string& product, const std::string& op) {
    return program("%x: tensor<16x64xf32> " + on("{\"data\"}, {\"model\"}") + ", %w: tensor<64x32xf32> " +
                       on("{\"model\"}, {}") + ", %c: tensor<16x32xf32> " + on("{\"data\"}, {\"model\"}") +
                       ") -> tensor<16x32xf32>",
                   "  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] " + product +
                       " : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>\n  %1 = stablehlo." + op + R"(
 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}], unreduced={"model"}>]>} : tensor<16x32xf32>
  %2 = sdy.reshard %1 <@mesh, [{"data"}, {"model"}]> : tensor<16x32xf32>
  return %2 : tensor<16x32xf32>
)");
  };
  const std::string summands =
      "{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"data\"}, {}], unreduced={\"model\"}>]>}";
  for (const std::string& product : {summands, std::string{}}) {
    for (const std::string op : {"add %0, %c", "subtract %c, %0", "negate %0"}) {
      CAPTURE(product, op);
      CHECK(d(product, op)->exchanges() == Strings{"reduce-scatter 4/1 x2 f32[8,32] -> f32[8,8]"});
    }
  }
  // A factor has to be all there, and a product of two sums is no sum of products.
  CHECK(d(summands, "multiply %0, %c")->exchanges() ==
        Strings{"all-gather 4/1 x2 f32[8,8] -> f32[8,32]", "reduce-scatter 4/1 x2 f32[8,32] -> f32[8,8]"});
  CHECK(d(summands, "multiply %0, %0")->exchanges() ==
        Strings{"all-reduce 4/1 x2 f32[8,32] -> f32[8,32]", "reduce-scatter 4/1 x2 f32[8,32] -> f32[8,8]"});
}

// ---- ops ----

TEST_CASE("a reduction over a divided dimension is summed between devices, over another one it is not") {
  const auto reduce = [](const std::string& dim) {
    return program("%x: tensor<16x32xf32> " + on("{\"model\"}, {}") + ") -> tensor<f32>",
                   "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
                   "  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [" +
                       dim + "] : (tensor<16x32xf32>, tensor<f32>) -> tensor<" + (dim == "0" ? "32" : "16") +
                       "xf32>\n  return %0 : tensor<" + (dim == "0" ? "32" : "16") + "xf32>\n");
  };
  CHECK(reduce("0")->exchanges() == Strings{"all-reduce 4/1 x2 f32[32] -> f32[32]"});
  CHECK(reduce("1")->exchanges().empty());
  CHECK(reduce("1")->result_type() == "f32[4]");
}

TEST_CASE("a convolution divides by images and by filters; divided channels leave summands") {
  const auto convolve = [](const std::string& x, const std::string& w) {
    return program(
        "%x: tensor<8x32x32x16xf32> " + on(x) + ", %w: tensor<3x3x16x64xf32> " + on(w) + ") -> tensor<8x32x32x64xf32>",
        R"(
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x32x32x16xf32>, tensor<3x3x16x64xf32>) -> tensor<8x32x32x64xf32>
  return %0 : tensor<8x32x32x64xf32>
)");
  };
  const auto both = convolve("{\"data\"}, {}, {}, {}", "{}, {}, {}, {\"model\"}");
  CHECK(both->exchanges().empty());
  CHECK(both->result_type() == "f32[4,32,32,16]");
  const auto summed = convolve("{}, {}, {}, {\"model\"}", "{}, {}, {}, {}");
  CHECK(summed->exchanges() == Strings{"all-reduce 4/1 x2 f32[8,32,32,64] -> f32[8,32,32,64]"});
  const auto rows = convolve("{}, {\"model\"}, {}, {}", "{}, {}, {}, {}");
  CHECK(rows->exchanges() == Strings{"all-gather 4/1 x2 f32[8,8,32,16] -> f32[8,32,32,16]"});
}

TEST_CASE("slices and concatenations keep what they do not touch divided, and gather what they do") {
  const auto d = program("%x: tensor<16x32xf32> " + on("{\"data\"}, {\"model\"}") + ") -> tensor<16x48xf32>", R"(
  %0 = stablehlo.slice %x [0:16, 0:16] : (tensor<16x32xf32>) -> tensor<16x16xf32>
  %1 = stablehlo.concatenate %0, %x, dim = 1 : (tensor<16x16xf32>, tensor<16x32xf32>) -> tensor<16x48xf32>
  return %1 : tensor<16x48xf32>
)");
  CHECK(d->exchanges() == Strings{"all-gather 4/1 x2 f32[8,8] -> f32[8,32]"});
  CHECK(d->result_type() == "f32[8,48]");
}

TEST_CASE("constants and broadcasts are made in parts, so that nothing is cut or exchanged for them") {
  const auto d =
      program("%x: tensor<16x32xf32> " + on("{\"data\"}, {\"model\"}") + ", %b: tensor<32xf32>) -> tensor<16x32xf32>",
              R"(
  %c = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<32xf32>) -> tensor<16x32xf32>
  %2 = stablehlo.add %x, %0 : tensor<16x32xf32>
  %3 = stablehlo.add %2, %1 : tensor<16x32xf32>
  return %3 : tensor<16x32xf32>
)");
  CHECK(d->exchanges().empty());
  CHECK(d->results("broadcast_in_dim") == Strings{"f32[8,8]", "f32[8,8]"});
}

TEST_CASE("GSPMD's transposed devices are sent their parts") {
  const auto d = divided(parse_text("test.mlir", R"(
func.func @main(%x: tensor<16x16xf32> {mhlo.sharding = "{devices=[2,2]<=[2,2]T(1,0)}"}) -> (tensor<16x16xf32> {mhlo.sharding = "{devices=[2,2]<=[4]}"}) {
  %0 = stablehlo.tanh %x : tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}
)"));
  CHECK(d->exchanges() == Strings{"send 4/1 x1 f32[8,8] -> f32[8,8]"});
  CHECK(d->result_type() == "f32[8,8]");
}

TEST_CASE("a table divided by rows stays so when rows are written to it: devices pass over those of others") {
  const auto scatter = [](const std::string& updates) {
    return program("%t: tensor<4096x64xf32> " + on("{\"model\"}, {}") +
                       ", %i: tensor<128x1xi32>, %u: tensor<128x64xf32> " + on(updates) + ") -> tensor<4096x64xf32>",
                   R"(
  %0 = "stablehlo.scatter"(%t, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4096x64xf32>, tensor<128x1xi32>, tensor<128x64xf32>) -> tensor<4096x64xf32>
  return %0 : tensor<4096x64xf32>
)");
  };
  const auto whole = scatter("{}, {}");
  CHECK(whole->exchanges().empty());
  CHECK(whole->result_type() == "f32[1024,64]");
  // Columns go together, rows of updates are needed by all.
  const auto columns = scatter("{}, {\"data\"}");
  CHECK(columns->exchanges().empty());
  CHECK(columns->result_type() == "f32[1024,32]");
  CHECK(scatter("{\"data\"}, {}")->exchanges() == Strings{"all-gather 2/4 x4 f32[64,64] -> f32[128,64]"});
}

TEST_CASE("a window of one row is written to a divided table as rows are") {
  const auto d = program("%t: tensor<8x1024x64xf32> " + on("{}, {\"model\"}, {}") +
                             ", %i: tensor<1xi32>, %u: tensor<8x1x64xf32>) -> tensor<8x1024x64xf32>",
                         R"(
  %0 = "stablehlo.scatter"(%t, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1, 2], scatter_dims_to_operand_dims = [1]>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8x1024x64xf32>, tensor<1xi32>, tensor<8x1x64xf32>) -> tensor<8x1024x64xf32>
  return %0 : tensor<8x1024x64xf32>
)");
  CHECK(d->exchanges().empty());
  CHECK(d->result_type() == "f32[8,256,64]");
}

TEST_CASE("what has no result gathers nothing") {
  const auto d = program("%x: tensor<16x32xf32> " + on("{\"data\"}, {}") + ") -> tensor<16x32xf32>", R"(
  sdy.sharding_group %x group_id=1 : tensor<16x32xf32>
  return %x : tensor<16x32xf32>
)");
  CHECK(d->exchanges().empty());
  CHECK(d->program.notes.empty());
}

TEST_CASE("an op of which nothing is known gets its operands whole, and a note says so") {
  const auto d = program("%x: tensor<16x32xf32> " + on("{\"data\"}, {}") + ") -> tensor<16x32xf32>", R"(
  %0 = stablehlo.custom_call @mystery(%x) : (tensor<16x32xf32>) -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
)");
  CHECK(d->exchanges() == Strings{"all-gather 2/4 x4 f32[8,32] -> f32[16,32]"});
  REQUIRE(d->program.notes.size() == 1);
  CHECK_THAT(d->program.notes[0], Catch::Contains("custom_call is not divided over devices"));
}

TEST_CASE("extents that do not divide are rounded up, and a note says so") {
  const auto d = program("%x: tensor<10x32xf32> " + on("{\"model\"}, {}") + ") -> tensor<10x32xf32>",
                         "  %0 = stablehlo.tanh %x : tensor<10x32xf32>\n  return %0 : tensor<10x32xf32>\n");
  CHECK(d->results("tanh") == Strings{"f32[3,32]"});
  REQUIRE(d->program.notes.size() == 1);
  CHECK(d->program.notes[0] == "an extent of 10 over 4 devices is counted as 3 on each");
}

TEST_CASE("the shardings of an outfeed are those of its data and its token") {
  const auto d = program("%x: tensor<16x32xf32> " + on("{\"data\"}, {}") + ") -> tensor<16x32xf32>", R"(
  %t = stablehlo.create_token : !stablehlo.token
  %0 = "stablehlo.outfeed"(%x, %t) {mhlo.sharding = "{{devices=[2,1,4]<=[8] last_tile_dim_replicate}, {maximal device=0}}"} : (tensor<16x32xf32>, !stablehlo.token) -> !stablehlo.token
  return %x : tensor<16x32xf32>
)");
  CHECK(d->exchanges().empty());
  CHECK(d->program.notes.empty());
  const auto whole = program("%x: tensor<16x32xf32> " + on("{\"data\"}, {}") + ") -> tensor<16x32xf32>", R"(
  %t = stablehlo.create_token : !stablehlo.token
  %0 = "stablehlo.outfeed"(%x, %t) {mhlo.sharding = "{replicated}"} : (tensor<16x32xf32>, !stablehlo.token) -> !stablehlo.token
  return %x : tensor<16x32xf32>
)");
  CHECK(whole->exchanges() == Strings{"all-gather 2/4 x4 f32[8,32] -> f32[16,32]"});
}

// ---- loops ----

TEST_CASE("a loop exchanges in every pass, and carries values as its body leaves them") {
  const auto d = program("%w: tensor<512x512xbf16> " + on("{}, {\"model\"}") + ", %v: tensor<512x512xbf16> " +
                             on("{\"model\"}, {}") + ", %x: tensor<16x512xbf16>) -> tensor<16x512xbf16>",
                         R"(
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<bf16>
  %h0 = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<bf16>) -> tensor<16x512xbf16>
  %0:3 = stablehlo.while(%i = %c0, %a = %x, %h = %h0) : tensor<i32>, tensor<16x512xbf16>, tensor<16x512xbf16>
   cond {
    %c10 = stablehlo.constant dense<10> : tensor<i32>
    %lt = stablehlo.compare LT, %i, %c10 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %lt : tensor<i1>
  } do {
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.add %i, %c1 : tensor<i32>
    %p = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<16x512xbf16>, tensor<512x512xbf16>) -> tensor<16x512xbf16>
    %s = stablehlo.add %p, %h : tensor<16x512xbf16>
    %y = stablehlo.dot_general %s, %v, contracting_dims = [1] x [0] : (tensor<16x512xbf16>, tensor<512x512xbf16>) -> tensor<16x512xbf16>
    stablehlo.return %n, %y, %s : tensor<i32>, tensor<16x512xbf16>, tensor<16x512xbf16>
  }
  return %0#1 : tensor<16x512xbf16>
)");
  CHECK(d->exchanges() == Strings{"all-reduce 4/1 x2 bf16[16,512] -> bf16[16,512], 10 times"});
  CHECK(d->results("broadcast_in_dim") == Strings{"bf16[16,128]"});
  CHECK(4 * matrix_flops(d->program) == d->whole_flops);
}

TEST_CASE("a loop carries values as its annotation says: cut before it, gathered after it where less is wanted") {
  const auto d = program("%x: tensor<64x256xf32>) -> (tensor<64x256xf32> " + on("{\"data\"}, {}") + ")", R"(
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c0, %a = %x) : tensor<i32>, tensor<64x256xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{"data"}, {"model"}]>]>}
   cond {
    %c10 = stablehlo.constant dense<10> : tensor<i32>
    %lt = stablehlo.compare LT, %i, %c10 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %lt : tensor<i1>
  } do {
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.add %i, %c1 : tensor<i32>
    %y = stablehlo.tanh %a : tensor<64x256xf32>
    stablehlo.return %n, %y : tensor<i32>, tensor<64x256xf32>
  }
  %1 = stablehlo.sine %0#1 : tensor<64x256xf32>
  return %1 : tensor<64x256xf32>
)");
  CHECK(d->results("tanh") == Strings{"f32[32,64]"});
  CHECK(d->results("sine") == Strings{"f32[32,64]"});
  CHECK(d->exchanges() == Strings{"all-gather 4/1 x2 f32[32,64] -> f32[32,256]"});
}

TEST_CASE("what a body leaves otherwise than its loop says is exchanged in every pass") {
  const auto d = program("%x: tensor<64x256xf32> " + on("{\"model\"}, {}") + ") -> tensor<64x256xf32>", R"(
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c0, %a = %x) : tensor<i32>, tensor<64x256xf32> attributes {mhlo.sharding = "{{replicated}, {devices=[1,8]<=[8]}}"}
   cond {
    %c10 = stablehlo.constant dense<10> : tensor<i32>
    %lt = stablehlo.compare LT, %i, %c10 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %lt : tensor<i1>
  } do {
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.add %i, %c1 : tensor<i32>
    %y = sdy.reshard %a <@mesh, [{}, {"data"}]> : tensor<64x256xf32>
    stablehlo.return %n, %y : tensor<i32>, tensor<64x256xf32>
  }
  return %0#1 : tensor<64x256xf32>
)");
  // 4 parts of the rows become 8 of the columns: "data" is cut, "model" is the inner one of the columns.
  CHECK(d->exchanges() == Strings{"all-to-all 4/1 x2 f32[16,128] -> f32[64,32]",
                                  "all-gather 4/1 x2 f32[64,32] -> f32[64,128], 10 times"});
  CHECK(d->result_type() == "f32[64,32]");
}

TEST_CASE("a barrier lies as its annotation says, each value on its own") {
  const auto d = program("%x: tensor<64x256xf32>, %y: tensor<64x256xf32> " + on("{\"data\"}, {\"model\"}") +
                             ") -> (tensor<64x256xf32>, tensor<64x256xf32>)",
                         R"(
  %0:2 = stablehlo.optimization_barrier %x, %y {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>, <@mesh, [{"data"}, {}]>]>} : tensor<64x256xf32>, tensor<64x256xf32>
  %1 = stablehlo.tanh %0#0 : tensor<64x256xf32>
  %2 = stablehlo.sine %0#1 : tensor<64x256xf32>
  return %1, %2 : tensor<64x256xf32>, tensor<64x256xf32>
)");
  CHECK(d->results("tanh") == Strings{"f32[32,64]"});
  CHECK(d->results("sine") == Strings{"f32[32,256]"});
  CHECK(d->exchanges() == Strings{"all-gather 4/1 x2 f32[32,64] -> f32[32,256]"});
}

TEST_CASE("what calls, conditionals and composites return lies as their annotation says") {
  const std::string divided = "{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"data\"}, {\"model\"}]>]>}";
  const auto d = program("%p: tensor<i1>, %x: tensor<64x256xf32>) -> tensor<64x256xf32>",
                         R"(
  %0 = func.call @f(%x) )" + divided +
                             R"( : (tensor<64x256xf32>) -> tensor<64x256xf32>
  %1 = stablehlo.sine %0 : tensor<64x256xf32>
  %2 = "stablehlo.if"(%p) ({
    %3 = stablehlo.cosine %1 : tensor<64x256xf32>
    stablehlo.return %3 : tensor<64x256xf32>
  }, {
    stablehlo.return %1 : tensor<64x256xf32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>} : (tensor<i1>) -> tensor<64x256xf32>
  %4 = stablehlo.negate %2 : tensor<64x256xf32>
  return %4 : tensor<64x256xf32>
}
func.func private @f(%a: tensor<64x256xf32>) -> tensor<64x256xf32> {
  %5 = stablehlo.tanh %a : tensor<64x256xf32>
  return %5 : tensor<64x256xf32>
)");
  CHECK(d->results("tanh") == Strings{"f32[32,64]"});
  CHECK(d->results("sine") == Strings{"f32[32,64]"});
  CHECK(d->results("cosine") == Strings{"f32[32,64]"});
  CHECK(d->exchanges() == Strings{"all-gather 4/1 x2 f32[32,64] -> f32[32,256]"});
  CHECK(d->results("negate") == Strings{"f32[32,256]"});
}

// ---- regions that are divided by hand ----

TEST_CASE("inside a manual computation shapes are local and its collectives are its own") {
  const auto d =
      program("%x: tensor<64x64xf32> " + on("{\"model\"}, {}") + ", %w: tensor<64x64xf32>) -> tensor<64x64xf32>", R"(
  %0 = sdy.manual_computation(%x, %w) in_shardings=[<@mesh, [{"data"}, {"model"}]>, <@mesh, [{"model"}, {}]>] out_shardings=[<@mesh, [{"data"}, {}]>] manual_axes={"data", "model"} (%a: tensor<32x16xf32>, %b: tensor<16x64xf32>) {
    %1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x16xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
    %2 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %3 = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<32x64xf32>) -> tensor<32x64xf32>
    sdy.return %2 : tensor<32x64xf32>
  } : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = stablehlo.tanh %0 : tensor<64x64xf32>
  return %4 : tensor<64x64xf32>
)");
  CHECK(d->exchanges() == Strings{"all-to-all 4/1 x2 f32[16,64] -> f32[64,16]"});  // and cut along "data"
  CHECK(d->results("dot_general") == Strings{"f32[32,64]"});
  CHECK(d->results("all_reduce") == Strings{"f32[32,64]"});
  CHECK(d->results("tanh") == Strings{"f32[32,64]"});
}

TEST_CASE("what a manual computation leaves open stays divided over the free axes, on its way in and out") {
  const auto d = [](const std::string& out) {
    return program("%x: tensor<64x64xf32> " + on("{\"data\"}, {\"model\"}") + ") -> tensor<64x64xf32>",
                   "  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{\"data\", ?}, {?}]>] "
                   "out_shardings=[<@mesh, [" +
                       out + R"(]>] manual_axes={"data"} (%a: tensor<32x64xf32>) {
    %1 = stablehlo.tanh %a : tensor<32x64xf32>
    sdy.return %1 : tensor<32x64xf32>
  } : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = stablehlo.sine %0 : tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
)");
  };
  const auto open = d("{\"data\", ?}, {?}");
  CHECK(open->exchanges().empty());
  CHECK(open->results("tanh") == Strings{"f32[32,16]"});
  CHECK(open->results("sine") == Strings{"f32[32,16]"});
  const auto closed = d("{\"data\", ?}, {}");
  CHECK(closed->exchanges() == Strings{"all-gather 4/1 x2 f32[32,16] -> f32[32,64]"});
  CHECK(closed->results("sine") == Strings{"f32[32,64]"});
}

TEST_CASE("an open dimension of a manual computation has its manual axes outside and the free ones inside") {
  const auto d = program("%x: tensor<64x64xf32> " + on("{\"data\", \"model\"}, {}") + ") -> tensor<64x64xf32>", R"(
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"data", ?}, {}]>] out_shardings=[<@mesh, [{"data", ?}, {}]>] manual_axes={"data"} (%a: tensor<32x64xf32>) {
    %1 = stablehlo.tanh %a : tensor<32x64xf32>
    sdy.return %1 : tensor<32x64xf32>
  } : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = sdy.sharding_constraint %0 <@mesh, [{"data", "model"}, {}]> : tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
)");
  CHECK(d->exchanges().empty());
  CHECK(d->results("tanh") == Strings{"f32[8,64]"});
}

TEST_CASE("the same between GSPMD's custom calls") {
  const auto d = divided(parse_text("test.mlir", R"(
module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<64x64xf32> {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"}) -> tensor<64x64xf32> {
    %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"} : (tensor<64x64xf32>) -> tensor<32x64xf32>
    %2 = call @body(%1) : (tensor<32x64xf32>) -> tensor<32x64xf32>
    %3 = stablehlo.custom_call @Sharding(%2) {mhlo.sharding = "{manual}"} : (tensor<32x64xf32>) -> tensor<32x64xf32>
    %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"} : (tensor<32x64xf32>) -> tensor<64x64xf32>
    %5 = stablehlo.tanh %4 : tensor<64x64xf32>
    return %5 : tensor<64x64xf32>
  }
  func.func private @body(%a: tensor<32x64xf32>) -> tensor<32x64xf32> {
    %0 = "stablehlo.collective_permute"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 4], [4, 0]]> : tensor<2x2xi64>}> : (tensor<32x64xf32>) -> tensor<32x64xf32>
    return %0 : tensor<32x64xf32>
  }
}
)"));
  CHECK_FALSE(d->result.local);
  CHECK(d->exchanges().empty());
  CHECK(d->results("collective_permute") == Strings{"f32[32,64]"});
  CHECK(d->results("tanh") == Strings{"f32[32,64]"});
}

TEST_CASE("annotations beside collectives of the program's own describe shapes that are local already") {
  const auto d = program("%x: tensor<16x16xf32> " + on("{\"model\"}, {}") + ") -> tensor<64x16xf32>", R"(
  %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>, use_global_device_ids}> : (tensor<16x16xf32>) -> tensor<64x16xf32>
  return %0 : tensor<64x16xf32>
)");
  CHECK(d->result.local);
  CHECK(d->results("all_gather") == Strings{"f32[64,16]"});
  REQUIRE(d->program.notes.size() == 1);
  CHECK_THAT(d->program.notes[0], Catch::Contains("stablehlo.all_gather is an exchange outside of manual regions"));
}

TEST_CASE("Shardy's own sums exchange what they name, whatever the operand says") {
  const auto d = program("%x: tensor<16x16xf32> " + on("{\"data\"}, {}") + ") -> tensor<16x16xf32>", R"(
  %0 = sdy.reduce_scatter [{}, {"model"}] %x out_sharding=<@mesh, [{"data"}, {"model"}]> : tensor<16x16xf32>
  %1 = sdy.all_reduce {"data"} %0 out_sharding=<@mesh, [{"data"}, {"model"}]> : tensor<16x16xf32>
  return %1 : tensor<16x16xf32>
)");
  CHECK(d->exchanges() ==
        Strings{"reduce-scatter 4/1 x2 f32[8,16] -> f32[8,4]", "all-reduce 2/4 x4 f32[8,4] -> f32[8,4]"});
}

TEST_CASE("a product whose sum is an op of its own is summed once, by that op") {
  const auto d = [](const std::string& annotation, const std::string& sum) {
    return program("%x: tensor<16x64xf32> " + on("{}, {\"model\"}") + ", %w: tensor<64x32xf32> " +
                       on("{\"model\"}, {}") + ") -> tensor<16x32xf32>",
                   "  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] " + annotation +
                       " : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>\n  " + sum +
                       " : tensor<16x32xf32>\n  return %1 : tensor<16x32xf32>\n");
  };
  const std::string whole = "{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}";
  const std::string all = R"(%1 = sdy.all_reduce {"model"} %0 out_sharding=<@mesh, [{}, {}]>)";
  const std::string scatter = R"(%1 = sdy.reduce_scatter [{}, {"model"}] %0 out_sharding=<@mesh, [{}, {"model"}]>)";
  const std::string by_data = R"(%1 = sdy.all_reduce {"data"} %0 out_sharding=<@mesh, [{}, {}]>)";
  CHECK(d(whole, all)->exchanges() == Strings{"all-reduce 4/1 x2 f32[16,32] -> f32[16,32]"});
  CHECK(d("", all)->exchanges() == Strings{"all-reduce 4/1 x2 f32[16,32] -> f32[16,32]"});
  CHECK(d(whole, scatter)->exchanges() == Strings{"reduce-scatter 4/1 x2 f32[16,32] -> f32[16,8]"});
  // Another sum than that of the product.
  CHECK(d(whole, by_data)->exchanges() ==
        Strings{"all-reduce 4/1 x2 f32[16,32] -> f32[16,32]", "all-reduce 2/4 x4 f32[16,32] -> f32[16,32]"});
}

TEST_CASE("a product that others read too is summed where it is made, and a sum of its own is another one") {
  const auto d = program("%x: tensor<16x64xf32> " + on("{}, {\"model\"}") + ", %w: tensor<64x32xf32> " +
                             on("{\"model\"}, {}") + ") -> (tensor<16x32xf32>, tensor<16x32xf32>)",
                         R"(
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
  %1 = stablehlo.tanh %0 : tensor<16x32xf32>
  %2 = sdy.all_reduce {"model"} %0 out_sharding=<@mesh, [{}, {}]> : tensor<16x32xf32>
  return %1, %2 : tensor<16x32xf32>, tensor<16x32xf32>
)");
  CHECK(d->exchanges().size() == 2);
}

TEST_CASE("Weights stored over the devices of the batch are gathered, the batch stays divided") {
  const auto d = program("%x: tensor<16x64xbf16> " + on("{\"model\"}, {}") + ", %w: tensor<64x4096xbf16> " +
                             on("{\"model\"}, {}") + ") -> tensor<16x4096xbf16>",
                         R"(
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x64xbf16>, tensor<64x4096xbf16>) -> tensor<16x4096xbf16>
  return %0 : tensor<16x4096xbf16>
)");
  CHECK(d->exchanges() == Strings{"all-gather 4/1 x2 bf16[16,4096] -> bf16[64,4096]"});
  CHECK(d->results("dot_general") == Strings{"bf16[4,4096]"});
}

// ---- errors ----

TEST_CASE("annotations that do not fit are errors with a place") {
  const auto failure = [](const std::string& sharding, std::optional<std::int64_t> devices) -> Diagnostic {
    try {
      program("%x: tensor<16x16xf32> " + on(sharding) + ") -> tensor<16x16xf32>", "  return %x : tensor<16x16xf32>\n",
              devices);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::bad_input);
      return error.diagnostics().at(0);
    }
    return {};
  };
  const Diagnostic rank = failure("{}, {}, {\"model\"}", std::nullopt);
  CHECK(rank.message == "a sharding of 3 dimensions for f32[16,16]");
  CHECK(rank.where.line == 2);
  const Diagnostic devices = failure("{\"model\"}, {}", 4);
  CHECK(devices.message == "this sharding is over 8 devices, and there are 4");
  CHECK(devices.hint == "--devices 8");
  CHECK(failure("{\"model\"}, {}", 8).message.empty());
}

}  // namespace
}  // namespace llmperf::graph::hlo
