#include "catch.h"
#include "program/module.h"
#include "program/refusal.h"

namespace llmperf::program::type_test {
namespace {

// Of the only argument of a function.
Type type_of(const std::string& text, const std::string& before = "") {
  static std::vector<Module> kept;  // names of elements are views into the text
  kept.push_back(parse_text("t.mlir", before + "func.func private @f(%x: " + text + ")\n"));
  return kept.back().type(kept.back().functions[0].body.arguments[0]);
}

std::string refusal(const std::string& text) {
  return refusal_of([&] { type_of(text); });
}

}  // namespace

TEST_CASE("Every element type takes the memory that XLA stores it in") {
  struct Case {
    const char* element;
    double bytes;  // of eight elements
    ElementClass kind;
  };
  using enum ElementClass;
  const Case cases[] = {
      {"f64", 64, floating},
      {"f32", 32, floating},
      {"tf32", 32, floating},
      {"f16", 16, floating},
      {"bf16", 16, floating},
      {"f8E4M3FN", 8, floating},
      {"f8E5M2", 8, floating},
      {"f8E4M3B11FNUZ", 8, floating},
      {"f8E5M2FNUZ", 8, floating},
      {"f8E4M3FNUZ", 8, floating},
      {"f8E3M4", 8, floating},
      {"f8E4M3", 8, floating},
      {"f8E8M0FNU", 8, floating},
      {"f6E2M3FN", 6, floating},
      {"f6E3M2FN", 6, floating},
      {"f4E2M1FN", 4, floating},
      {"i1", 8, boolean},
      {"i2", 2, integer},
      {"ui2", 2, integer},
      {"i4", 4, integer},
      {"si4", 4, integer},
      {"ui4", 4, integer},
      {"i8", 8, integer},
      {"ui8", 8, integer},
      {"i16", 16, integer},
      {"ui16", 16, integer},
      {"i32", 32, integer},
      {"i64", 64, integer},
      {"ui64", 64, integer},
      {"index", 64, integer},
      {"complex<f32>", 64, complex},
      {"complex<f64>", 128, complex},
  };
  for (const Case& c : cases) {
    const Type type = type_of(std::string("tensor<8x") + c.element + ">");
    INFO(c.element);
    CHECK(type.tensor());
    CHECK(type.dims == std::vector<std::int64_t>{8});
    CHECK(type.bytes().value == c.bytes);
    CHECK(type.element.kind == c.kind);
    CHECK(type.element.name == c.element);
  }
}

TEST_CASE("A quantised tensor is stored as the integers in it") {
  const Type per_tensor = type_of("tensor<8x!quant.uniform<i8:f32, 2.0:15>>");
  CHECK(per_tensor.bytes().value == 8);
  CHECK(per_tensor.element.kind == ElementClass::quantized);
  CHECK(per_tensor.element.name == "!quant.uniform<i8:f32, 2.0:15>");
  CHECK(type_of("tensor<8x2x!quant.uniform<i4<-7:7>:f32:1, {1.0:0, 2.0:1}>>").bytes().value == 8);
  CHECK(type_of("tensor<8x!quant.uniform<u8:f16, 0.1>>").bytes().value == 8);
  CHECK(type_of("tensor<8x!q>", "!q = !quant.uniform<i4:f32, 1.0>\n").bytes().value == 4);
}

TEST_CASE("Scalars, empty tensors, tuples and tokens have the size of their elements") {
  CHECK(type_of("tensor<f32>").bytes().value == 4);
  CHECK(type_of("tensor<f32>").elements() == 1);
  CHECK(type_of("tensor<0x7xf32>").bytes().value == 0);
  CHECK(type_of("tensor< 2 x 3 x f32 >").dims == std::vector<std::int64_t>{2, 3});
  CHECK(type_of("tensor <2x3xf32>").bytes().value == 24);
  CHECK(type_of("vector  <4xbf16>").bytes().value == 8);
  CHECK(type_of("tuple <tensor\n<4xbf16>>").members.size() == 1);
  const Type tuple = type_of("tuple<tensor<4xbf16>, tuple<tensor<2xf32>, !stablehlo.token>>");
  CHECK(tuple.form == Type::Form::tuple);
  CHECK(tuple.bytes().value == 16);
  CHECK(text_of(tuple) == "(bf16[4], (f32[2], token))");
  CHECK(type_of("!mhlo.token").bytes().value == 0);
  CHECK(type_of("!mhlo.async_bundle<tuple<tensor<2xf32>>, tensor<i32>>").form == Type::Form::opaque);
  CHECK(type_of("!t", "!t = tensor<2x2xf32>\n").bytes().value == 16);
}

TEST_CASE("Open extents, their bounds and layouts are read") {
  const Type type = type_of("tensor<?x4x?xf32>");
  CHECK(type.dims == std::vector<std::int64_t>{kDynamic, 4, kDynamic});
  CHECK(type.dynamic());
  CHECK(text_of(type) == "f32[?,4,?]");
  const Type bounded = type_of("tensor<?x4xf32, #stablehlo.bounds<16, ?>>");
  CHECK(bounded.bounds == std::vector<std::int64_t>{16, kDynamic});
  CHECK(type_of("tensor<?xf32, #mhlo.type_extensions<bounds = [16]>>").bounds == std::vector<std::int64_t>{16});
  CHECK(type_of("tensor<*xf32>").unranked);
  CHECK_FALSE(type_of("tensor<2x3xf32, dense<[0, 1]> : tensor<2xi64>>").dynamic());
}

TEST_CASE("A type that makes no sense is refused where it stands") {
  CHECK(refusal("tensor<4xf33>") == "1:35: unknown element type 'f33'");
  CHECK(refusal("tensor<4xi129>") == "1:35: unknown element type 'i129'");
  CHECK(refusal("tensor<4,f32>") == "1:34: expected 'x' after an extent and not ','");
  CHECK(refusal("tensor<4xf32") == "1:38: expected '>' at the end of the tensor type and not ')'");
  CHECK(refusal("tensor[4]") == "1:32: expected '<' after 'tensor' and not '['");
  CHECK(refusal("tensor<99999999999999999999xf32>") == "1:33: this extent is too large");
  CHECK(refusal("tensor<1000000000x1000000000x1000000000xf32>") == "1:26: this tensor has more than 1e18 elements");
  CHECK(refusal("tensor<4x!quant.uniform>") == "1:35: a quantised type without the type it is stored in");
  std::string deep;
  for (int n = 0; n < 100000; ++n) deep += "tuple<";
  CHECK(refusal(deep) == "1:332: types are nested more than 50 deep");
}

TEST_CASE("A short text is no type of any size: aliases of tuples of aliases, dimensions without end") {
  std::string bomb;
  for (int n = 0; n < 40; ++n) bomb += fmt::format("!t{} = tuple<!t{}, !t{}>\n", n, n + 1, n + 1);
  CHECK(refusal_of([&] {
          type_of("!t0", bomb + "!t40 = tensor<2xf32>\n");
        }).ends_with("an alias of a tuple of more than 16 parts"));
  std::string rank;
  for (int n = 0; n < 65; ++n) rank += "1x";
  CHECK(refusal("tensor<" + rank + "f32>") == "1:26: this tensor has more than 64 dimensions");
}

TEST_CASE("A type that is an alias of itself is refused") {
  CHECK(refusal_of([] { type_of("!t", "!t = !t\n"); }).ends_with("types are nested more than 50 deep"));
}

}  // namespace llmperf::program::type_test
