#include <string>

#include "catch.h"
#include "model/gguf/file.h"
#include "model_files.h"

namespace llmperf::ggml_type_test {

using namespace llmperf::model;

TEST_CASE("every type of ggml has its published id, block and bits per weight") {
  const auto rows = read_rows(fixture("data/gguf_types.csv"));
  for (const auto& row : rows) {
    INFO(row[0]);
    const GgmlTypeInfo* type = find_ggml_type(static_cast<std::uint32_t>(std::stoul(row[1])));
    REQUIRE(type != nullptr);
    CHECK(type->name == row[0]);
    CHECK(type->block == std::stoll(row[2]));
    CHECK(type->block_bytes == std::stoll(row[3]));
    CHECK(type->bits() == std::stod(row[4]));
    CHECK(&info(type->type) == type);
  }
  CHECK(ggml_types().size() == rows.size());
}

TEST_CASE("ids that ggml removed or never gave are unknown") {
  for (const std::uint32_t id : {4U, 5U, 31U, 36U, 1000U}) CHECK(find_ggml_type(id) == nullptr);
}

TEST_CASE("a matrix takes whole blocks per row") {
  // 4096 inputs are 16 blocks of 256 elements in 144 bytes.
  CHECK(ggml_bytes(GgmlType::q4_k, 11008, 4096).value == 11008.0 * 16 * 144);
  CHECK(ggml_bytes(GgmlType::q8_0, 1, 64).value == 68);
  CHECK(ggml_bytes(GgmlType::f32, 4096, 1).value == 16384);
}

TEST_CASE("quantised weights are brought to fp16 with two operations each, floating-point ones are used as stored") {
  const StoredFormat q4 = stored_format(GgmlType::q4_k);
  CHECK(q4.name == "Q4_K");
  CHECK(q4.bits == 4.5);
  CHECK(q4.compute == Dtype::fp16);
  CHECK(q4.dequant_flops == 2);
  CHECK(q4.bytes(11008, 4096).value == ggml_bytes(GgmlType::q4_k, 11008, 4096).value);
  CHECK(stored_format(GgmlType::bf16).compute == Dtype::bf16);
  CHECK(stored_format(GgmlType::f32).compute == Dtype::fp32);
  CHECK(stored_format(GgmlType::f16).dequant_flops == 0);
}

TEST_CASE("codebooks of eight weights an entry, of four, and tables have kernels of their own") {
  for (const GgmlType type : {GgmlType::iq1_s, GgmlType::iq1_m, GgmlType::iq2_xxs, GgmlType::iq2_xs, GgmlType::iq2_s}) {
    CHECK(info(type).kernel == FormatKernel::iq);
  }
  for (const GgmlType type : {GgmlType::iq3_xxs, GgmlType::iq3_s}) CHECK(info(type).kernel == FormatKernel::iq3);
  for (const GgmlType type : {GgmlType::iq4_nl, GgmlType::iq4_xs}) CHECK(info(type).kernel == FormatKernel::iq4);
}

}  // namespace llmperf::ggml_type_test
