#include "catch.h"
#include "program/loop_text.h"
#include "program/run.h"

namespace llmperf::program::copies_test {
namespace {

// 64 x 1024 bf16: 131,072 bytes; a row of it 2,048.
constexpr double kWhole = 131072;
constexpr double kRow = 2048;
const std::string kCache = "tensor<64x1024xbf16>";

std::string update_of(const std::string& operand) {
  return "stablehlo.dynamic_update_slice " + operand +
         ", %row, %i, %i : (tensor<64x1024xbf16>, tensor<1x1024xbf16>, tensor<i32>, tensor<i32>) -> "
         "tensor<64x1024xbf16>\n";
}

// @main takes a cache (with these attributes), a row and a place.
std::string main_of(const std::string& body, const std::string& returned, const std::string& attributes = "",
                    const std::string& types = "tensor<64x1024xbf16>") {
  return "func.func @main(%cache: tensor<64x1024xbf16>" + attributes +
         ", %row: tensor<1x1024xbf16>, %i: tensor<i32>) -> (" + types + ") {\n" + body + "return " + returned + " : " +
         types + "\n}\n";
}

struct Copied {
  double count = 0;
  double bytes = 0;  // read and written, by all of them
};
Copied copies_in(const Run& run) {
  Copied all;
  for (const LoweredOp& op : run.lowered.ops) {
    if (!op.copy) continue;
    const cost::Work work = cost::work_of(op.op);
    all.count += static_cast<double>(op.op.count);
    all.bytes += (work.activations_read + work.activations_written).value * static_cast<double>(op.op.count);
  }
  return all;
}

// Passes of a loop over (%n, %c) with `body`, which makes %next of %c.
std::string loop_of(const std::string& initial, const std::string& body, const std::string& next = "%next") {
  return counted(10, {{"%c", initial, kCache, next}}, body);
}

}  // namespace

TEST_CASE("An argument is copied before it is updated, unless it is donated") {
  const std::string update = "%r = " + update_of("%cache");
  const Run kept(main_of(update, "%r"));
  CHECK(copies_in(kept).count == 1);
  CHECK(copies_in(kept).bytes == 2 * kWhole);
  CHECK(kept.sum.activations_written.value == kWhole + kRow);
  CHECK(kept.lowered.intermediate.value == kWhole);  // the result is another buffer
  REQUIRE(kept.lowered.copied_arguments.size() == 1);
  CHECK(kept.flat.program.tensor(kept.lowered.copied_arguments[0]).name == "cache");
  for (const char* attributes : {" {tf.aliasing_output = 0 : i32}", " {jax.buffer_donor = true}"}) {
    const Run donated(main_of(update, "%r", attributes));
    CHECK(copies_in(donated).count == 0);
    CHECK(donated.sum.activations_written.value == kRow);
    CHECK(donated.lowered.intermediate.value == 0);
    CHECK(donated.lowered.copied_arguments.empty());
  }
  CHECK(copies_in(Run(main_of(update, "%r", " {jax.buffer_donor = false}"))).count == 1);
}

TEST_CASE("A module says which arguments are given away as well") {
  const auto with = [](int number) {
    return "module @m attributes {mhlo.input_output_alias = [{alias = {kind = \"may_alias\", parameter_index = "
           "array<i64>, parameter_number = " +
           std::to_string(number) + " : i64}, output_index = array<i64: 0>}]} {\n" +
           main_of("%r = " + update_of("%cache"), "%r") + "}\n";
  };
  CHECK(copies_in(Run(with(0))).count == 0);
  CHECK(copies_in(Run(with(1))).count == 1);
}

TEST_CASE("What was made here is updated in place, unless the old value is read or returned later") {
  const std::string made = "%made = stablehlo.tanh %cache : tensor<64x1024xbf16>\n";
  const std::string update = "%r = " + update_of("%made");
  CHECK(copies_in(Run(main_of(made + update, "%r"))).count == 0);
  // Another form of it is the same value.
  const std::string reshaped =
      "%flat = stablehlo.reshape %made : (tensor<64x1024xbf16>) -> tensor<65536xbf16>\n"
      "%back = stablehlo.reshape %flat : (tensor<65536xbf16>) -> tensor<64x1024xbf16>\n";
  const std::string later = "%s = stablehlo.negate %made : tensor<64x1024xbf16>\n";
  const std::string both = "tensor<64x1024xbf16>, tensor<64x1024xbf16>";
  CHECK(copies_in(Run(main_of(made + later + reshaped + "%r = " + update_of("%back"), "%r"))).count == 0);
  CHECK(copies_in(Run(main_of(made + reshaped + "%r = " + update_of("%back") + later, "%r, %s", "", both))).count == 1);
  CHECK(copies_in(Run(main_of(made + update, "%r, %made", "", both))).count == 1);
  // A second update of the first one's result goes on in place.
  CHECK(copies_in(Run(main_of(made + update + "%r2 = " + update_of("%r"), "%r2"))).count == 0);
  CHECK(copies_in(Run(main_of(made + update + "%r2 = " + update_of("%made"), "%r, %r2", "", both))).count == 1);
}

TEST_CASE("A constant that is updated is written whole first, and read from nowhere") {
  const std::string zeros = "%z = stablehlo.constant dense<0.0> : tensor<64x1024xbf16>\n";
  const Run run(main_of(zeros + "%r = " + update_of("%z"), "%r"));
  CHECK(copies_in(run).bytes == kWhole);
  CHECK(run.sum.activations_written.value == kWhole + kRow);
}

TEST_CASE("A loop updates what it carries in place; an argument that it begins with is copied once") {
  const std::string body = "%next = " + update_of("%c");
  const Run kept(main_of(loop_of("%cache", body), "%l#1"));
  CHECK(copies_in(kept).count == 1);
  CHECK(copies_in(kept).bytes == 2 * kWhole);
  CHECK(kept.lowered.copied_arguments.size() == 1);
  CHECK(kept.lowered.intermediate.value >= kWhole);
  const Run donated(main_of(loop_of("%cache", body), "%l#1", " {tf.aliasing_output = 0 : i32}"));
  CHECK(copies_in(donated).count == 0);
  CHECK(donated.lowered.intermediate.value < kWhole);
  // What the loop left is its own to change.
  CHECK(copies_in(Run(main_of(loop_of("%cache", body) + "%r = " + update_of("%l#1"), "%r",
                              " {tf.aliasing_output = 0 : i32}")))
            .count == 0);
}

TEST_CASE("A loop that changes what every pass begins with copies it every time") {
  // The value comes from outside, or is handed on as it is.
  const std::string unused = "%u = " + update_of("%cache") + "%next = stablehlo.add %c, %u : tensor<64x1024xbf16>\n";
  const std::string donor = " {jax.buffer_donor = true}";
  CHECK(copies_in(
            Run(main_of("%m = stablehlo.tanh %cache : tensor<64x1024xbf16>\n" + loop_of("%m", unused), "%l#1", donor)))
            .count == 10);
  const std::string handed_on = "%u = " + update_of("%c");
  CHECK(copies_in(Run(main_of(loop_of("%cache", handed_on, "%c"), "%l#1", donor))).count == 10);
  // The pass yields the old value and a changed one: of two carried values, one is the other as it was.
  const std::string read = "%next = " + update_of("%c") + "%late = stablehlo.tanh %c : tensor<64x1024xbf16>\n";
  CHECK(copies_in(Run(main_of(loop_of("%cache", read), "%l#1", donor))).count == 10);
}

TEST_CASE("Two values that begin as the same one: the second has to be copied") {
  const std::string body = "%m = stablehlo.tanh %cache : tensor<64x1024xbf16>\n" +
                           counted(10, {{"%c", "%m", kCache, "%c1"}, {"%d", "%m", kCache, "%d1"}},
                                   "%c1 = " + update_of("%c") + "%d1 = " + update_of("%d"));
  CHECK(copies_in(Run(main_of(body, "%l#1, %l#2", "", "tensor<64x1024xbf16>, tensor<64x1024xbf16>"))).count == 1);
}

TEST_CASE("Zeros that are only updated are stored, whoever reads the result") {
  const std::string body =
      "%s = stablehlo.constant dense<0.0> : tensor<bf16>\n"
      "%z = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<bf16>) -> tensor<64x1024xbf16>\n"
      "%u = " +
      update_of("%z") + "%r = stablehlo.tanh %u : tensor<64x1024xbf16>\n";
  const Run run(main_of(body, "%r"), Fusion::elementwise);
  CHECK(run.sum.activations_written.value == kWhole + kRow + kWhole);
}

namespace {

// A loop over %c and %d, two such tensors.
std::string pair_loop(const std::string& c, const std::string& d, const std::string& body, const std::string& next_c,
                      const std::string& next_d, int passes = 10) {
  return counted(passes, {{"%c", c, kCache, next_c}, {"%d", d, kCache, next_d}}, body);
}

const std::string kDonor = " {jax.buffer_donor = true}";
const std::string kTwo = "%two = stablehlo.tanh %cache : tensor<64x1024xbf16>\n";

}  // namespace

TEST_CASE("A pass copies what it hands on to another place, or to two") {
  struct Case {
    const char* next_c;
    const char* next_d;
    double copies;
  };
  const Case cases[] = {
      {"%u", "%d", 0},
      {"%d", "%u", 10},
      {"%u", "%u", 10},
      {"%u", "%c", 10},
  };
  for (const Case& c : cases) {
    INFO(c.next_c << ", " << c.next_d);
    const Run run(
        main_of(kTwo + pair_loop("%cache", "%two", "%u = " + update_of("%c"), c.next_c, c.next_d), "%l#1", kDonor));
    CHECK(copies_in(run).count == c.copies);
  }
}

TEST_CASE("A loop that never runs copies nothing") {
  const std::string body = "%u = " + update_of("%c");
  const Run run(main_of(kTwo + pair_loop("%cache", "%two", body, "%u", "%u", 0), "%l#1"));
  CHECK(copies_in(run).count == 0);
  CHECK(run.lowered.copied_arguments.empty());
}

TEST_CASE("Two values that begin as the same zeros are two buffers") {
  const std::string body = "%u = " + update_of("%c") + "%v = " + update_of("%d");
  const Run run(
      main_of("%z = stablehlo.constant dense<0.0> : tensor<64x1024xbf16>\n" + pair_loop("%z", "%z", body, "%u", "%v"),
              "%l#1, %l#2", "", "tensor<64x1024xbf16>, tensor<64x1024xbf16>"));
  CHECK(copies_in(run).bytes == kWhole);  // written, as the first one is
  CHECK(run.work("constant").activations_written.value == kWhole);
  CHECK(run.lowered.intermediate.value >= 2 * kWhole);
  CHECK(run.lowered.intermediate.value < 3 * kWhole);
}

TEST_CASE("What a loop copied lives as long as the loop, unless its result is read later") {
  std::string body;
  for (const char* name : {"a", "b", "c"}) {
    std::string loop = loop_of("%cache", "%next = " + update_of("%c"));
    for (const char* value : {"%l", "%n", "%c", "%zero", "%most", "%goes", "%one", "%next"}) {
      const std::string plain = value;
      for (std::size_t at = loop.find(plain); at != std::string::npos; at = loop.find(plain, at + plain.size() + 1)) {
        const char behind = loop[at + plain.size()];
        if (!(behind >= 'a' && behind <= 'z')) loop.insert(at + plain.size(), name);
      }
    }
    body += loop;
  }
  const Run run(main_of(body, "%lc#1"));
  CHECK(copies_in(run).count == 3);
  CHECK(run.lowered.intermediate.value < 2 * kWhole);
}

TEST_CASE("A member of a tuple that is not donated is copied") {
  const Run run(
      "func.func @main(%x: tuple<tensor<64x1024xbf16>>, %row: tensor<1x1024xbf16>, %i: tensor<i32>) -> "
      "tensor<64x1024xbf16> {\n"
      "%0 = stablehlo.get_tuple_element %x[0] : (tuple<tensor<64x1024xbf16>>) -> tensor<64x1024xbf16>\n"
      "%r = " +
      update_of("%0") + "return %r : tensor<64x1024xbf16>\n}\n");
  CHECK(copies_in(run).count == 1);
}

}  // namespace llmperf::program::copies_test
