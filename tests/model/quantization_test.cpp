#include "model/quantization.h"

#include "base/error.h"
#include "catch.h"
#include "model/model_file.h"
#include "model/parameters.h"
#include "model/weight_layout.h"

namespace llmperf::quantization_test {

using namespace llmperf::model;

TEST_CASE("GPTQ with groups of 128 stores 4 bits per element and 20 bits per group") {
  const WeightScheme scheme = parse_weight_scheme("w4a16-g128");
  // 4096 * 4096 / 2 bytes, and 4096 * 32 groups of 2.5 bytes
  CHECK(scheme.linear.bytes(4096, 4096).value == 8388608 + 327680);
  CHECK(scheme.linear.compute == Dtype::bf16);
  CHECK(scheme.linear.dequant_flops == 2);
  CHECK(scheme.embedding.bytes(1000, 10).value == 20000);
  CHECK(scheme.other.bits == 16);
  CHECK(scheme.vector_bits == 16);
}

TEST_CASE("a last group that is not full has a scale and a zero like any other") {
  const WeightScheme scheme = parse_weight_scheme("w4a16-g128");
  CHECK(scheme.linear.bytes(1, 129).value == (129 * 4 + 2 * 20) / 8.0);
}

TEST_CASE("names of 4-bit schemes mean the same storage") {
  for (const char* name : {"w4a16", "gptq", "awq", "gptq-g128", "awq-g128"}) {
    CHECK(parse_weight_scheme(name).name == "w4a16-g128");
  }
  CHECK(parse_weight_scheme("gptq-g64").linear.group == 64);
  CHECK(parse_weight_scheme("awq-g48").name == "w4a16-g48");
}

TEST_CASE("the files of Qwen1.5-7B-Chat-GPTQ-Int4 hold 5.86 GB") {
  const double gigabytes = weight_bytes(load_decoder("qwen1.5-7b"), parse_weight_scheme("w4a16-g128")).value / 1e9;
  CHECK(gigabytes == Approx(5.86).epsilon(0.005));
}

TEST_CASE("int8 stores a 16-bit scale per row and computes in 16 bits, w8a8 computes in int8") {
  const WeightScheme int8 = parse_weight_scheme("int8");
  CHECK(int8.linear.bytes(4096, 11008).value == 4096.0 * 11008 + 4096 * 2);
  CHECK(int8.linear.compute == Dtype::bf16);
  CHECK(int8.linear.dequant_flops == 2);
  const WeightScheme w8a8 = parse_weight_scheme("w8a8");
  CHECK(w8a8.linear.bytes(4096, 11008) == int8.linear.bytes(4096, 11008));
  CHECK(w8a8.linear.compute == Dtype::int8);
  CHECK(w8a8.linear.dequant_flops == 0);
}

TEST_CASE("fp8 stores a byte per element, and in blocks a 32-bit scale per 128 x 128 tile") {
  CHECK(parse_weight_scheme("fp8").linear.bytes(512, 512).value == 512 * 512);
  CHECK(parse_weight_scheme("fp8").linear.compute == Dtype::fp8);
  // 130 rows are two rows of tiles
  CHECK(parse_weight_scheme("fp8-block128").linear.bytes(130, 256).value == 130 * 256 + 2 * 2 * 4);
}

TEST_CASE("mxfp4 holds the experts in blocks of 32 with a byte of scale and leaves the rest alone") {
  const WeightScheme scheme = parse_weight_scheme("mxfp4");
  CHECK(scheme.expert.bytes(2880, 2880).value == 2880.0 * 2880 / 2 + 2880 * 90);
  CHECK(scheme.linear.bytes(10, 10).value == 200);
  CHECK(scheme.expert.dequant_flops == 1);
}

TEST_CASE("nvfp4 stores 4 bits, a byte of scale per 16 weights and 4 bytes per matrix") {
  const WeightScheme scheme = parse_weight_scheme("nvfp4");
  CHECK(scheme.linear.bytes(128, 4096).value == 128 * 4096 / 2 + 128 * 256 + 4);
  CHECK(scheme.expert == scheme.linear);
  CHECK(scheme.embedding.bits == 16);
  CHECK(scheme.other.bits == 16);
  CHECK(scheme.linear.compute == Dtype::fp4);
  CHECK(scheme.linear.dequant_flops == 0);
}

TEST_CASE("nf4 stores 4 bits and a scale per 64 weights, in 32 bits or in 8 with one of 32 for 256 scales") {
  CHECK(parse_weight_scheme("nf4").linear.bytes(64, 4096).value == 64 * 4096 / 2 + 64 * 64 * 4);
  // 64 * 64 scales of a byte, and an fp32 one for each 256 of them
  CHECK(parse_weight_scheme("nf4-double").linear.bytes(64, 4096).value == 64 * 4096 / 2 + 64 * 64 + 16 * 4);
}

TEST_CASE("w4a8 stores 4 bits, a 16-bit scale per 256 inputs and per row, and multiplies in 8 bits") {
  const WeightScheme scheme = parse_weight_scheme("w4a8");
  CHECK(scheme.linear.bytes(64, 4096).value == 64 * 4096 / 2 + 64 * 16 * 2 + 64 * 2);
  CHECK(scheme.linear.compute == Dtype::int8);
  CHECK(scheme.expert == scheme.linear);
  CHECK(scheme.embedding.compute == Dtype::bf16);
}

TEST_CASE("fp8 by channel has a 32-bit scale per row, symmetric 4-bit groups have no zero point") {
  CHECK(parse_weight_scheme("fp8-channel").linear.bytes(128, 4096).value == 128 * 4096 + 128 * 4);
  CHECK(parse_weight_scheme("w4a16-g32-sym").linear.bytes(1, 4096).value == 4096 / 2 + 128 * 2);
  CHECK(parse_weight_scheme("gptq-sym").name == "w4a16-g128-sym");
}

TEST_CASE("bfp4-mlp stores gate and up in 4.5 bits and all other matrices, down among them, in 8.5") {
  const Decoder llama = load_decoder("llama-3.1-8b");
  const WeightLayout layout = uniform_layout(llama, parse_weight_scheme("bfp4-mlp"));
  const LayerGroup& layer = layout.groups.front();
  for (const Role role : {Role::gate, Role::up, Role::shared_gate, Role::expert_up})
    CHECK(layer[role].compute == Dtype::bfp4);
  for (const Role role : {Role::q, Role::o, Role::down, Role::shared_down, Role::expert_down}) {
    CHECK(layer[role].compute == Dtype::bfp8);
  }
  CHECK(layout.lm_head.compute == Dtype::bfp8);
  CHECK(layer[Role::up].bytes(32, 32) == Bytes{576});
  CHECK(layer[Role::down].bytes(32, 32) == Bytes{1088});
}

TEST_CASE("a number of bits holds for every tensor") {
  for (const std::string& name : decoder_names()) {
    INFO(name);
    const Decoder model = load_decoder(name);
    const auto total = static_cast<double>(count_parameters(model).total);
    CHECK(weight_bytes(model, parse_weight_scheme("4.5")).value == total * 4.5 / 8);
    CHECK(weight_bytes(model, parse_weight_scheme("16")).value == total * 2);
    CHECK(weight_bytes(model, parse_weight_scheme("bf16")).value == total * 2);
    CHECK(weight_bytes(model, parse_weight_scheme("fp32")).value == total * 4);
  }
}

TEST_CASE("numbers of bits are named by their value and dequantised below 16") {
  CHECK(parse_weight_scheme("4.50").name == "4.5");
  CHECK(parse_weight_scheme("4.5").linear.dequant_flops == 2);
  CHECK(parse_weight_scheme("16").linear.dequant_flops == 0);
}

TEST_CASE("the wide type is what unquantised parts use") {
  const WeightScheme scheme = parse_weight_scheme("gptq", Dtype::fp16);
  CHECK(scheme.embedding.compute == Dtype::fp16);
  CHECK(scheme.linear.compute == Dtype::fp16);
}

TEST_CASE("mxfp8 stores a byte per element and a byte of scale per 32") {
  const WeightScheme scheme = parse_weight_scheme("mxfp8");
  CHECK(scheme.linear.bytes(2, 64) == Bytes{2 * 64 + 2 * 2});
  CHECK(scheme.linear.compute == Dtype::fp8);
  CHECK(scheme.embedding.bits == 16);
}

TEST_CASE("schemes are known in any case, and four bits of any kind are asked for by kind") {
  CHECK(parse_weight_scheme("AWQ").name == "w4a16-g128");
  CHECK(parse_weight_scheme("FP8").name == "fp8");
  for (const char* four : {"int4", "INT4", "4bit"}) {
    try {
      parse_weight_scheme(four);
      FAIL("no error");
    } catch (const Error& error) {
      for (const char* kind : {"w4a16", "nf4", "mlx-q4", "q4_k_m"}) {
        CHECK(error.diagnostics().at(0).hint.find(kind) != std::string::npos);
      }
    }
  }
}

TEST_CASE("every scheme that is listed can be parsed") {
  for (const std::string& name : weight_scheme_names()) CHECK_NOTHROW(parse_weight_scheme(name));
  for (const std::string& name : kv_scheme_names()) CHECK_NOTHROW(parse_kv_scheme(name));
}

TEST_CASE("unknown schemes are errors that name the nearest ones") {
  try {
    parse_weight_scheme("w4a61");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::bad_input);
    CHECK(error.diagnostics().at(0).hint.find("'w4a16'") != std::string::npos);
  }
  for (const char* bad :
       {"", "w4a16-g0", "w4a16-g-1", "w4a16-g", "gptq128", "0", "-4", "65", "nan", "1e400", "bf16 "}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_weight_scheme(bad), Error);
  }
  CHECK_THROWS_AS(parse_kv_scheme("fp4"), Error);
  CHECK_THROWS_AS(parse_activation_dtype("int8"), Error);
  CHECK(parse_kv_scheme("int4") == element_format(Dtype::int4));
  CHECK(parse_activation_dtype("fp16") == Dtype::fp16);
}

}  // namespace llmperf::quantization_test
