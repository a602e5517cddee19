// Layers divided over devices, and values that change how they lie, by hand.
#include "base/error.h"
#include "catch.h"
#include "program/divided.h"

namespace llmperf::program::partition_test {
namespace {

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
  const auto d =
      divided_program("%x: tensor<4096x1024xbf16>, %w1: tensor<1024x4096xbf16> " + on("{}, {\"model\"}") +
                          ", %w2: tensor<4096x1024xbf16> " + on("{\"model\"}, {}") + ") -> tensor<4096x1024xbf16>",
                      kLayer);
  // Two groups of the four devices along "model", as there are two along "data".
  CHECK(d->exchanges() == Strings{"all-reduce 4/1 x2 bf16[4096,1024] -> bf16[4096,1024]"});
  CHECK(d->results("tanh") == Strings{"bf16[4096,1024]"});
  CHECK(4 * matrix_flops(d->program) == d->whole_flops);
}

TEST_CASE("tokens over one axis and weights over the other: every device has an eighth of the work") {
  const auto d = divided_program(
      "%x: tensor<4096x1024xbf16> " + on("{\"data\"}, {}") + ", %w1: tensor<1024x4096xbf16> " + on("{}, {\"model\"}") +
          ", %w2: tensor<4096x1024xbf16> " + on("{\"model\"}, {}") + ") -> tensor<4096x1024xbf16>",
      kLayer);
  CHECK(d->exchanges() == Strings{"all-reduce 4/1 x2 bf16[2048,1024] -> bf16[2048,1024]"});
  CHECK(8 * matrix_flops(d->program) == d->whole_flops);
  CHECK(d->result_type() == "bf16[2048,1024]");
}

TEST_CASE("weights over the axis of the tokens are gathered where they are used (FSDP)") {
  const auto d = divided_program(
      "%x: tensor<4096x1024xbf16> " + on("{\"data\"}, {}") + ", %w1: tensor<1024x4096xbf16> " + on("{\"data\"}, {}") +
          ", %w2: tensor<4096x1024xbf16> " + on("{\"data\"}, {}") + ") -> tensor<4096x1024xbf16>",
      kLayer);
  CHECK(d->exchanges() == Strings{"all-gather 2/4 x4 bf16[512,4096] -> bf16[1024,4096]",
                                  "all-gather 2/4 x4 bf16[2048,1024] -> bf16[4096,1024]"});
  CHECK(2 * matrix_flops(d->program) == d->whole_flops);
}

TEST_CASE("a gradient of divided tokens is summed") {
  const auto d =
      divided_program("%x: tensor<4096x1024xbf16> " + on("{\"data\", \"model\"}, {}") + ", %g: tensor<4096x512xbf16> " +
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
  const auto d =
      divided_program("%ids: tensor<8x128xi32> " + on("{\"data\"}, {}") + ", %table: tensor<32000x1024xbf16> " +
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
  const auto d = divided_program("%q: tensor<8x96xbf16> " + on("{}, {\"model\"}") + ") -> tensor<8x6x16xbf16>", R"(
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
    const auto d = divided_program("%x: tensor<16x16xf32> " + on(c.from) + ") -> tensor<16x16xf32>",
                                   "  %0 = sdy.sharding_constraint %x <@mesh, [" + c.to +
                                       "]> : tensor<16x16xf32>\n  return %0 : tensor<16x16xf32>\n");
    CHECK(d->exchanges() == c.exchanges);
  }
}

TEST_CASE("a value is gathered once for all who use it") {
  const auto d = divided_program("%x: tensor<16x16xf32> " + on("{\"model\"}, {}") + ") -> tensor<16x16xf32>", R"(
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
  const auto d =
      divided_program("%x: tensor<16x16xf32> " + on("{\"data\"}, {\"model\"}") + ") -> tensor<16x16xf32>", R"(
  %0 = sdy.all_gather [{}, {"model"}] %x out_sharding=<@mesh, [{"data"}, {}]> : tensor<16x16xf32>
  %1 = sdy.all_slice [{"model"}, {}] %0 out_sharding=<@mesh, [{"data", "model"}, {}]> : tensor<16x16xf32>
  return %1 : tensor<16x16xf32>
)");
  CHECK(d->exchanges() == Strings{"all-gather 4/1 x2 f32[8,4] -> f32[8,16]"});
  CHECK(d->result_type() == "f32[2,16]");
}

TEST_CASE("results of the program lie as its signature says") {
  const auto d = divided_program(
      "%x: tensor<16x16xf32> " + on("{\"model\"}, {}") + ") -> (tensor<16x16xf32> " + on("{}, {}") + ")",
      "  %0 = stablehlo.tanh %x : tensor<16x16xf32>\n  return %0 : tensor<16x16xf32>\n");
  CHECK(d->exchanges() == Strings{"all-gather 4/1 x2 f32[4,16] -> f32[16,16]"});
  CHECK(d->results("tanh") == Strings{"f32[4,16]"});
  CHECK(d->result_type() == "f32[16,16]");
}

TEST_CASE("summands that an annotation begins are no exchange; who needs the value adds them up") {
  const auto d = divided_program("%a: tensor<16x32xf32> " + on("{\"data\"}, {}") + ") -> tensor<16x32xf32>", R"(
  %0 = stablehlo.add %a, %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}], unreduced={"model"}>]>} : tensor<16x32xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<16x32xf32>
  return %1 : tensor<16x32xf32>
)");
  CHECK(d->exchanges() == Strings{"all-reduce 4/1 x2 f32[8,32] -> f32[8,32]"});
  CHECK(d->results("multiply") == Strings{"f32[8,32]"});
}

TEST_CASE("parts become summands without an exchange") {
  const auto d =
      divided_program("%a: tensor<16x32xf32> " + on("{\"data\"}, {\"model\"}") + ") -> tensor<16x32xf32>", R"(
  %0 = sdy.sharding_constraint %a <@mesh, [{"data"}, {}], unreduced={"model"}> : tensor<16x32xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"data", "model"}, {}]> : tensor<16x32xf32>
  return %1 : tensor<16x32xf32>
)");
  CHECK(d->exchanges() == Strings{"reduce-scatter 4/1 x2 f32[8,32] -> f32[2,32]"});
}

TEST_CASE("summands go through what is linear in them where the annotations say so, and are scattered at its end") {
  const auto d = [](const std::string& product, const std::string& op) {
    return divided_program(
        "%x: tensor<16x64xf32> " + on("{\"data\"}, {\"model\"}") + ", %w: tensor<64x32xf32> " + on("{\"model\"}, {}") +
            ", %c: tensor<16x32xf32> " + on("{\"data\"}, {\"model\"}") + ") -> tensor<16x32xf32>",
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

// ---- errors ----

TEST_CASE("annotations that do not fit are errors with a place") {
  const auto failure = [](const std::string& sharding, std::optional<std::int64_t> devices) -> Diagnostic {
    try {
      divided_program("%x: tensor<16x16xf32> " + on(sharding) + ") -> tensor<16x16xf32>",
                      "  return %x : tensor<16x16xf32>\n", devices);
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
  CHECK(devices.hint == "`devices` 8");
  CHECK(failure("{\"model\"}, {}", 8).message.empty());
}

}  // namespace
}  // namespace llmperf::program::partition_test
