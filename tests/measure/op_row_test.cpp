#include "measure/op_row.h"

#include <cmath>

#include "base/error.h"
#include "catch.h"
#include "cost/work.h"
#include "measure/measurements.h"
#include "measure/row_ops.h"

namespace llmperf::op_row_test {

using namespace llmperf::measure;

namespace {

Measurements rows_of(const std::string& text) { return parse_measurements(text, "t.csv"); }

cost::Work work_of(const Row& row) {
  cost::Work work;
  for (const graph::Op& op : ops_of(std::get<OpRow>(row.of), {})) work += cost::work_of(op, {});
  return work;
}

constexpr const char* kEveryOp =
    "# measured by hand\n"
    "hardware,weights,op,dtype,ranks,batch,m,n,k,q_len,kv_len,heads,kv_heads,head_dim,causal,bytes,latency_us,spread_"
    "us,kv_dtype,window,hidden,inter,topk,experts,tp,ep,distribution,copies\n"
    "x,,gemm,bf16,,,4,32,64,,,,,,,,1.5,0.1,,,,,,,,,,6\n"
    "x,w4a16-g128,gemm,bf16,,8,4,256,128,,,,,,,,2,,,,,,,,,,,\n"
    "x,,attention_prefill,fp32,,2,,,,16,32,4,2,64,0,,3,,,,,,,,,,,\n"
    "x,,attention_decode,fp32,,2,,,,1,32,4,2,64,1,,4,,fp8,128,,,,,,,,1\n"
    "x,,vector:act_fn,bf16,,,3,,,,,,,,,,5,,,,,,,,,,,\n"
    "x,,vector:rms_norm,bf16,,,3,64,,,,,,,,,6,,,,,,,,,,,\n"
    "x,,vector:rope,bf16,,,18,64,,,,4,2,,,,7,,,,,,,,,,,\n"
    "x,,vector:elementwise,bf16,,,3,64,,,,,,,,1536,8,,,,,,,,,,,\n"
    "x,,gather,bf16,,,3,64,1000,,,,,,,,9,,,,,,,,,,,\n"
    "x,,kv_write,bf16,,,3,,,,,,2,64,,,10,,,,,,,,,,,\n"
    "x,,all_reduce,bf16,2,,,,,,,,,,,4096,11,,,,,,,,,,,\n"
    "x,,matmul_all_reduce,bf16,2,,4,32,64,,,,,,,,12,,,,,,,,,,,\n"
    "x,,mla_prefill,bf16,,2,,,,16,32,4,,,,,13,,,,,,,,,,,\n"
    "x,,mla_decode,bf16,,2,,,,1,32,4,,,,,14,,fp8,,,,,,,,,\n"
    "x,fp8-block128,mla_module_prefill,bf16,,2,,,,16,32,4,,,,,15,,,,,,,,,,,\n"
    "x,,mla_module_decode,bf16,,2,,,,1,32,4,,,,,16,,fp8,,,,,,,,,\n"
    "x,w8a8,mla_prolog,bf16,,,5,,,,,4,,,,,16,,,,,,,,,,,\n"
    "x,mxfp4,moe,bf16,,,4,,,,,,,,,,17,,,,2880,1440,4,32,2,4,power_law_1.2,\n"
    "x,,moe,bf16,,,4,,,,,,,,,,18,,,,2880,1440,4,32,,,,\n"
    "x,w8a8,moe_products,bf16,,,4,,,,,,,,,,19,,,,2880,1440,4,32,,4,uniform,\n"
    "x,,scan:mamba2,bf16,,3,,16,8,1,,4,2,,,,20,,,,,,,,,,,\n"
    "x,,scan:gated_delta_net,bf16,,2,,16,8,128,,4,2,,,,21,,,,,,,,,,,\n";

}  // namespace

TEST_CASE("every op is read, and written so that it reads back the same", "[op_row]") {
  const Measurements read = rows_of(kEveryOp);
  REQUIRE(read.rows.size() == 22);
  const std::string text = format_measurements(read);
  const Measurements again = rows_of(text);
  REQUIRE(again.rows.size() == read.rows.size());
  CHECK(again.files[0].notes == read.files[0].notes);
  CHECK(again.extra_columns == read.extra_columns);
  for (std::size_t i = 0; i < read.rows.size(); ++i) {
    INFO(describe(std::get<OpRow>(read.rows[i].of)));
    CHECK(std::get<OpRow>(again.rows[i].of) == std::get<OpRow>(read.rows[i].of));
    CHECK(again.rows[i].latency.value == Approx(read.rows[i].latency.value));
    CHECK(again.rows[i].extra == read.rows[i].extra);
  }
  CHECK(format_measurements(again) == text);
}

TEST_CASE("steps are written so that they read back the same", "[op_row]") {
  const Measurements read = rows_of(
      "hardware,tp,runtime,execution,options,model,weights,batch,phase,new_tokens,context,latency_ms\n"
      "x,2,vllm,graph,all,\"a,b\",bf16,4,decode,1,128,2.5\n");
  const Measurements again = rows_of(format_measurements(read));
  CHECK(std::get<StepRow>(again.rows[0].of) == std::get<StepRow>(read.rows[0].of));
  CHECK(again.rows[0].latency.value == Approx(2.5e-3));
}

TEST_CASE("a row asks for the work of its op", "[op_row]") {
  const Measurements m = rows_of(kEveryOp);
  SECTION("several products with weights in 4 bits are those of as many experts") {
    const cost::Work work = work_of(m.rows[1]);
    CHECK(work.matrix.value == 8 * 2.0 * 4 * 256 * 128);
    CHECK(work.weights.value == Approx(8 * (256 * 128 * 0.5 + 256 * 2.5)));  // 16-bit scale, 4-bit zero per group
  }
  SECTION("a norm reads and writes its rows, and reads its parameters") {
    CHECK(work_of(m.rows[5]).bytes().value == 2 * (3 * 64 + 3 * 64 + 64));
  }
  SECTION("rope reads and writes queries and keys") { CHECK(work_of(m.rows[6]).bytes().value == 2 * 2 * 18 * 64); }
  SECTION("an element-wise op moves the bytes it says") { CHECK(work_of(m.rows[7]).bytes().value == 1536); }
  SECTION("a gather reads rows of the table and writes them") {
    CHECK(work_of(m.rows[8]).bytes().value == 2 * 2 * 3 * 64);
  }
  SECTION("a product that is summed over ranks is the product and the exchange") {
    CHECK(work_of(m.rows[11]).matrix.value == 2.0 * 4 * 32 * 64);
    CHECK(work_of(m.rows[11]).network.value == 2.0 * 1 / 2 * 4 * 32 * 2);  // 2 (r - 1) / r of the tensor
  }
  SECTION("attention without a mask pairs every query with every key") {
    CHECK(work_of(m.rows[2]).matrix.value == 2.0 * 2 * 16 * 32 * 2 * 64 * 4);  // 2 sequences, 16 x 32 pairs, 4 heads
  }
  SECTION("a token of a recurrence reads and writes the states, a prompt only writes them") {
    CHECK(work_of(m.rows[20]).kv_read.value == 3 * 4 * 8 * 16 * 4);
    CHECK(work_of(m.rows[20]).vector.value == 3 * 4 * 8 * 16 * 6);
    CHECK(work_of(m.rows[21]).kv_read.value == 0);
    CHECK(work_of(m.rows[21]).matrix.value > 0);
  }
  SECTION("keys and values are read and written to the cache") {
    CHECK(work_of(m.rows[9]).kv_written.value == 2 * 2 * 3 * 2 * 64);
    CHECK(work_of(m.rows[9]).activations_read.value == 2 * 2 * 3 * 2 * 64);
  }
}

TEST_CASE("a rotated tensor is whole tokens", "[op_row]") {
  CHECK_THROWS_WITH(rows_of("hardware,op,dtype,m,n,heads,kv_heads,latency_us\nx,vector:rope,bf16,17,64,4,2,1\n"),
                    "t.csv:2:20: 17 rows are not whole tokens of 4 + 2 heads");
}

TEST_CASE("weights in the type of the other operand are no scheme", "[op_row]") {
  const Measurements m = rows_of("hardware,op,dtype,m,n,k,weights,latency_us\nx,gemm,bf16,1,2,3,bf16,1\n");
  CHECK(std::get<GemmShape>(std::get<OpRow>(m.rows[0].of).shape).weights.empty());
}

TEST_CASE("attention on a cache of another type, in a window", "[op_row]") {
  const std::string header =
      "hardware,op,dtype,batch,q_len,kv_len,heads,kv_heads,head_dim,kv_dtype,window,latency_us\n";
  const Measurements m = rows_of(header +
                                 "x,attention_decode,bf16,2,1,1000,8,2,128,bf16,,1\n"
                                 "x,attention_decode,bf16,2,1,1000,8,2,128,fp8,0,1\n"
                                 "x,attention_decode,bf16,2,1,1000,8,2,128,fp8,100,1\n");
  const auto shape = [&](std::size_t row) { return std::get<AttentionShape>(std::get<OpRow>(m.rows[row].of).shape); };
  CHECK(shape(0).kv_dtype.empty());
  CHECK(shape(1).kv_dtype == "fp8");
  CHECK(shape(1).window == 0);
  CHECK(shape(2).window == 100);
  const double cache = 2.0 * 1000 * 2 * 2 * 128;  // elements
  CHECK(work_of(m.rows[0]).kv_read.value == Approx(2 * cache));
  CHECK(work_of(m.rows[1]).kv_read.value == Approx(cache));
  CHECK(work_of(m.rows[2]).kv_read.value == Approx(cache / 10));
  CHECK_THROWS_WITH(rows_of(header + "x,attention_decode,bf16,2,1,1000,8,2,128,fp9,,1\n"),
                    Catch::Contains("t.csv:2:42: unknown element type"));
}

TEST_CASE("experts: products of the rows that they get, and what is around them", "[op_row]") {
  const std::string header = "hardware,op,dtype,weights,m,hidden,inter,topk,experts,tp,ep,distribution,latency_us\n";
  const Measurements m = rows_of(header +
                                 "x,moe,bf16,bfloat16,16,64,48,2,8,,1,balanced,1\n"
                                 "x,moe,bf16,fp8_block,16,64,48,2,8,3,4,power_law_1.2,1\n"
                                 "x,moe,bf16,,5,2688,1856,6,128,1,1,balanced,1\n");
  const auto shape = [&](std::size_t row) { return std::get<ExpertsShape>(std::get<OpRow>(m.rows[row].of).shape); };
  CHECK(shape(0) == ExpertsShape{.m = 16, .hidden = 64, .inter = 48, .topk = 2, .experts = 8});
  CHECK(shape(1).weights == "fp8-block128");
  CHECK(shape(1).distribution == "power_law_1.2");
  // 32 rows, up and gate of 96 columns and down of 64: 2 * 32 * (96 * 64 + 64 * 48).
  CHECK(work_of(m.rows[0]).matrix.value == 2 * 32 * (96 * 64 + 64 * 48));
  CHECK(work_of(m.rows[0]).weights.value == 2 * 8 * (96 * 64 + 64 * 48));
  // Of four ranks that with most of the 32 rows, a third of the width.
  const graph::ExpertLoad fullest = graph::drawn_load(1.2, 8, 2, 16, 4);
  CHECK(fullest.imbalance > 1.2);
  CHECK(work_of(m.rows[1]).matrix.value == 2 * std::ceil(8 * fullest.imbalance) * (32 * 64 + 64 * 16));
  // Experts without a gate: 30 rows of 30 experts, two matrices each.
  CHECK(work_of(m.rows[2]).matrix.value == 2 * 30 * (2.0 * 2688 * 1856));
  CHECK(work_of(m.rows[2]).weights.value == 2 * 30 * (2.0 * 2688 * 1856));
  const auto tiles = [&](std::size_t row) {
    return std::get<graph::Gemm>(ops_of(std::get<OpRow>(m.rows[row].of), {})[2].body).row_tiles;
  };
  CHECK(tiles(0) == std::array<double, 4>{8, 8, 8, 8});
  CHECK(tiles(1) == fullest.tiles);
  // The products alone, and the activation, of tokens that draw their experts evenly: 8 (1 - 3/4 ^ 16) get some.
  const Measurements drawn = rows_of(header + "x,moe_products,bf16,,16,64,48,2,8,,,uniform,1\n");
  const std::vector<graph::Op> ops = ops_of(std::get<OpRow>(drawn.rows[0].of), {});
  REQUIRE(ops.size() == 3);
  CHECK(ops[1].tag == graph::Tag::experts_activation);
  CHECK(std::get<graph::Gemm>(ops[0].body).weight_matrices == Approx(8 * (1 - std::pow(0.75, 16))));
  CHECK_THROWS_WITH(rows_of(header + "x,moe,bf16,,16,64,48,9,8,,,balanced,1\n"),
                    Catch::Contains("9 experts per token, and there are 8"));
  CHECK_THROWS_WITH(rows_of(header + "x,moe,bf16,,16,64,48,2,8,,3,balanced,1\n"),
                    Catch::Contains("8 experts are not dealt evenly to 3 ranks"));
  CHECK_THROWS_WITH(rows_of(header + "x,moe,bf16,,16,64,48,2,8,5,,balanced,1\n"),
                    Catch::Contains("width 48 is not divided evenly by 5 ranks"));
  CHECK_THROWS_WITH(rows_of(header + "x,moe,bf16,,16,64,48,2,8,,,zipf,1\n"),
                    Catch::Contains("unknown distribution") && Catch::Contains("power_law_A"));
}

TEST_CASE("latent attention with its projections", "[op_row]") {
  const Measurements m = rows_of(
      "hardware,op,dtype,batch,q_len,kv_len,heads,kv_dtype,weights,latency_us\n"
      "x,mla_module_prefill,bf16,2,16,16,8,,bfloat16,1\n"
      "x,mla_module_decode,bf16,2,1,1000,8,fp8,bfloat16,1\n");
  // DeepSeek-V3's, of 8 heads: down to 1536 + 576, queries up to 8 * 192, keys and values up to 8 * 256, and back.
  const double projections = 7168.0 * 2112 + 1536.0 * 1536 + 512.0 * 2048 + 1024.0 * 7168;
  CHECK(work_of(m.rows[0]).weights.value == Approx(2 * projections).epsilon(0.001));  // and the norms'
  CHECK(work_of(m.rows[0]).matrix.value == 2 * 32 * projections + 2.0 * 2 * (16 * 17 / 2) * 320 * 8);
  // Absorbed: a product per head on either side in place of the one up to keys and values.
  CHECK(work_of(m.rows[1]).matrix.value ==
        2 * 2 * (projections - 512.0 * 2048) + 2 * 2 * 8 * (2.0 * 512 * 128) + 2.0 * 2 * 1000 * 1088 * 8);
  CHECK(work_of(m.rows[1]).kv_read.value == 2 * 1000 * 576);
  CHECK(work_of(m.rows[1]).kv_written.value == 2 * 576);
}

TEST_CASE("a prolog is what of the module comes before the attention of new tokens", "[op_row]") {
  const Measurements m = rows_of("hardware,op,dtype,m,heads,weights,latency_us\nx,mla_prolog,bf16,5,8,,1\n");
  const cost::Work work = work_of(m.rows[0]);
  CHECK(work.matrix.value == 2 * 5 * (7168.0 * 2112 + 1536.0 * 1536 + 8.0 * 128 * 512));
  CHECK(work.kv_written.value == 2 * 5 * 576);
  CHECK(work.kv_read.value == 0);
  CHECK(describe(std::get<OpRow>(m.rows[0].of)) == "mla_prolog bf16 5 tokens heads 8");
  const auto launches = [&](const hardware::RuntimeProfile& profile) {
    std::int32_t sum = 0;
    for (const graph::Op& op : ops_of(std::get<OpRow>(m.rows[0].of), profile)) sum += op.launches;
    return sum;
  };
  hardware::RuntimeProfile profile;
  CHECK(launches(profile) == 7);
  profile.options.fused_mla_prolog = true;
  CHECK(launches(profile) == 1);
}

TEST_CASE("latent attention: a prompt on expanded keys, new tokens on latents", "[op_row]") {
  const Measurements m = rows_of(
      "hardware,op,dtype,batch,q_len,kv_len,heads,kv_dtype,latency_us\n"
      "x,mla_prefill,bf16,2,16,16,8,,1\n"
      "x,mla_decode,bf16,2,1,1000,8,fp8,1\n");
  const auto op = [&](std::size_t row) {
    return std::get<graph::Attention>(ops_of(std::get<OpRow>(m.rows[row].of), {}).front().body);
  };
  CHECK(op(0).qk_dim == 192);
  CHECK(op(0).v_dim == 128);
  CHECK(op(0).kv_heads == 8);
  CHECK(op(1).qk_dim == 576);
  CHECK(op(1).v_dim == 512);
  CHECK(op(1).shared_kv);
  CHECK(work_of(m.rows[1]).kv_read.value == Approx(2.0 * 1000 * 576));
}

TEST_CASE("what a measured row by itself has and a served step has not is the profile's to say", "[op_row]") {
  const Measurements m = rows_of(
      "hardware,op,dtype,batch,q_len,kv_len,heads,m,n,k,weights,latency_us\n"
      "x,mla_prefill,bf16,2,16,16,8,,,,,1\n"
      "x,mla_module_prefill,bf16,2,16,16,8,,,,,1\n"
      "x,gemm,bf16,,,,,1,128,128,fp8-block128,1\n"
      "x,gemm,bf16,,,,,1,128,128,fp8,1\n");
  hardware::RuntimeProfile profile;
  const auto ops = [&](std::size_t row) { return ops_of(std::get<OpRow>(m.rows[row].of), profile); };
  const auto absorbed = [&](std::size_t row) {
    for (const graph::Op& op : ops(row)) {
      if (const auto* a = std::get_if<graph::Attention>(&op.body)) return a->shared_kv;
    }
    return false;
  };
  CHECK_FALSE(absorbed(0));
  profile.choices.absorbed_rows = true;  // the kernel alone
  CHECK(absorbed(0));
  CHECK_FALSE(absorbed(1));
  profile.options.absorbed_prompts = true;  // and all that is served
  CHECK(absorbed(1));
  profile.choices.packing_launches = 4;
  CHECK(ops(2).front().launches == 5);
  CHECK(ops(3).front().launches == 1);
}

TEST_CASE("weights of a product are a scheme", "[op_row]") {
  CHECK_THROWS_WITH(rows_of("hardware,op,dtype,m,n,k,weights,latency_us\nx,gemm,bf16,1,2,3,int88,1\n"),
                    Catch::Contains("t.csv:2:19: ") && Catch::Contains("int88"));
  const Measurements m = rows_of("hardware,op,dtype,m,n,k,weights,latency_us\nx,gemm,bf16,1,2,3,gptq,1\n");
  CHECK(std::get<GemmShape>(std::get<OpRow>(m.rows[0].of).shape).weights == "w4a16-g128");
}

TEST_CASE("a word of the op column names one shape, which is written by the first of its words") {
  for (const std::string& word : op_names()) {
    INFO(word);
    const std::optional<OpShape> shape = shape_of_word(word);
    REQUIRE(shape);
    CHECK(word_of(*shape) == (word == "alltoall" ? "all_to_all" : word == "matmul" ? "gemm" : word));
  }
  CHECK(std::get<AttentionShape>(*shape_of_word("attention_decode")).phase == Phase::decode);
  CHECK(collective_kind("reduce_scatter") == graph::CollectiveKind::reduce_scatter);
  CHECK_FALSE(shape_of_word("vector:mask"));  // an op of graphs that nobody measures alone
  CHECK_FALSE(word_of(CollectiveShape{.kind = graph::CollectiveKind::send, .ranks = 2}));
}

TEST_CASE("an all-reduce that was measured is the library's, unless it says that it is the stack's own") {
  const Measurements m = rows_of(
      "hardware,op,dtype,ranks,bytes,latency_us\nx,all_reduce,bf16,4,4096,9\nx,custom_all_reduce,bf16,4,4096,4\n");
  const auto by_library = [&](std::size_t row) {
    const graph::Op op = ops_of(std::get<OpRow>(m.rows[row].of), {}).front();
    const auto& c = std::get<graph::Collective>(op.body);
    CHECK(c.bytes().value == 4096);
    return c.library;
  };
  CHECK(by_library(0));
  CHECK_FALSE(by_library(1));
}

}  // namespace llmperf::op_row_test
