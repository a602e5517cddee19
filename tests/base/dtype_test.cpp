#include "base/dtype.h"

#include "catch.h"

namespace llmperf::dtype_test {

TEST_CASE("every dtype name reads back as the type it names") {
  for (const std::string_view text : dtype_names()) {
    const std::optional<Dtype> dtype = parse_dtype(text);
    REQUIRE(dtype);
    CHECK(name(*dtype) == text);
    CHECK(bits(*dtype) > 0);
  }
}

TEST_CASE("names and sizes of the types that models use") {
  CHECK(parse_dtype("bf16") == Dtype::bf16);
  CHECK(parse_dtype("tf32") == Dtype::tf32);
  CHECK(parse_dtype("bool") == Dtype::boolean);
  CHECK(bytes_per_element(Dtype::bf16) == 2);
  CHECK(bytes_per_element(Dtype::tf32) == 4);
  CHECK(bytes_per_element(Dtype::int4) == 0.5);
}

TEST_CASE("unknown dtype names give nothing") {
  for (const char* text : {"", "BF16", "bf16 ", "float16", "fp"}) CHECK_FALSE(parse_dtype(text));
}

}  // namespace llmperf::dtype_test
