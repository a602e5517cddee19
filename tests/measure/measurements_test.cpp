// Rows are read as written; every bad one is reported with its place, all at once.
#include "measure/measurements.h"

#include <cstdio>
#include <fstream>

#include "catch.h"

namespace llmperf::measure::measurements_test {
namespace {

const std::string kSteps =
    "hardware,tp,runtime,execution,options,model,weights,batch,phase,new_tokens,context,latency_ms\n";
const std::string kOps =
    "hardware,op,dtype,ranks,batch,m,n,k,q_len,kv_len,heads,kv_heads,head_dim,causal,bytes,latency_us\n";

std::vector<std::string> problems_of(const std::string& text) {
  std::vector<std::string> list;
  try {
    parse_measurements(text, "t.csv");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::bad_input);
    for (const Diagnostic& d : error.diagnostics()) list.push_back(format_diagnostic({d.where, d.message, {}}));
  }
  return list;
}

}  // namespace

TEST_CASE("a step row is read field by field, its latency in seconds", "[measurements]") {
  const Measurements m = parse_measurements(
      "# from somewhere\n" + kSteps +
          "atlas-800i-a2,8,torchair-2024a,eager,static_kv+fused_qkv,llama-2-70b,fp16,4,decode,1,1536,211\n",
      "t.csv");
  REQUIRE(m.rows.size() == 1);
  const auto& s = std::get<StepRow>(m.rows[0].of);
  CHECK(m.rows[0].hardware == "atlas-800i-a2");
  CHECK(m.rows[0].latency.value == Approx(0.211));
  CHECK(m.rows[0].line == 3);
  CHECK(s.tp == 8);
  CHECK(s.runtime == "torchair-2024a");
  CHECK(s.execution == "eager");
  CHECK(s.options == "static_kv+fused_qkv");
  CHECK(s.batch == 4);
  CHECK(s.phase == Phase::decode);
  CHECK(s.new_tokens == 1);
  CHECK(s.context == 1536);
  CHECK(m.files[0].notes == std::vector<std::string>{"from somewhere"});
}

TEST_CASE("steps that verify have a phase of their own, and are written as they were read", "[measurements]") {
  const Measurements m =
      parse_measurements(kSteps + "d,4,vllm-ascend,graph,,kimi-k2.5,bf16,64,verify,4,2851,59.404\n", "t.csv");
  const auto& s = std::get<StepRow>(m.rows.at(0).of);
  CHECK(s.phase == Phase::verify);
  CHECK(s.new_tokens == 4);
  CHECK(parse_measurements(format_measurements(m), "u.csv").rows.at(0).of == m.rows[0].of);
}

TEST_CASE("op rows take the columns of their op", "[measurements]") {
  const Measurements m = parse_measurements(kOps +
                                                "a,gemm,bf16,1,,17,32.0,64,,,,,,,,2.66\n"
                                                "a,attention_prefill,bf16,1,2,,,,16,128,32,8,128,1,,19\n"
                                                "a,vector:act_fn,bf16,1,,512,,,,,,,,,,3.264\n"
                                                "a,alltoall,fp16,8,,,,,,,,,,,536870912,9\n",
                                            "t.csv");
  REQUIRE(m.rows.size() == 4);
  const auto shape = [&](std::size_t row) { return std::get<OpRow>(m.rows[row].of).shape; };
  CHECK(std::get<GemmShape>(shape(0)) == GemmShape{17, 32, 64});
  CHECK(m.rows[0].latency.value == Approx(2.66e-6));
  CHECK(std::get<AttentionShape>(shape(1)) == AttentionShape{Phase::prefill, 2, 16, 128, 32, 8, 128, true});
  CHECK(std::get<VectorShape>(shape(2)) == VectorShape{"act_fn", 512});
  CHECK(std::get<CollectiveShape>(shape(3)) == CollectiveShape{graph::CollectiveKind::all_to_all, 8, Bytes{536870912}});
}

TEST_CASE("columns come in any order and those unknown are kept by name", "[measurements]") {
  const Measurements m = parse_measurements(
      "latency_us,driver,k,n,m,op,dtype,hardware,note\n"
      "5,550.1,64,32,1,gemm,bf16,a,\"a, \"\"b\"\"\"\n",
      "t.csv");
  CHECK(std::get<GemmShape>(std::get<OpRow>(m.rows[0].of).shape) == GemmShape{1, 32, 64});
  CHECK(m.extra_columns == std::vector<std::string>{"driver", "note"});
  CHECK(m.rows[0].extra == std::vector<std::string>{"550.1", "a, \"b\""});
}

TEST_CASE("a step row has its plan, axis by axis, and the type of its cache", "[measurements]") {
  const Measurements m = parse_measurements(
      "hardware,tp,ep,dp,pp,runtime,model,weights,kv,batch,phase,new_tokens,context,latency_ms,driver,untrusted\n"
      "d,8,4,2,3,vllm,m,bf16,fp8,5,decode,1,10,1,7,\n"
      "d,8,,,,vllm,m,bf16,,4,decode,1,10,1,7,\n",
      "t.csv");
  const auto& row = std::get<StepRow>(m.rows[0].of);
  CHECK(row.tp == 8);
  CHECK(row.ep == 4);
  CHECK(row.dp == 2);
  CHECK(row.pp == 3);
  CHECK(row.kv == "fp8");
  CHECK(row.replica_batch() == 3);  // one replica has 3 of the 5 sequences, the other 2
  CHECK(configuration(m.rows[0]) == "d vllm m bf16 kv fp8 tp 8 ep 4 dp 2 pp 3 batch 5 decode 10+1");
  CHECK(configuration(m.rows[1]) == "d vllm m bf16 tp 8 batch 4 decode 10+1");
  CHECK(m.unused_columns() == std::vector<std::string>{"driver"});
  CHECK(parse_measurements(format_measurements(m), "t.csv").rows[0].of == m.rows[0].of);
}

TEST_CASE("a row of a loaded server says its requests, the version of the engine and when it was measured") {
  const std::string head =
      "hardware,runtime,engine_version,model,weights,batch,phase,new_tokens,context,concurrency,prompt,generated,"
      "loaded,"
      "measured,latency_ms\n";
  const std::string row = "a,vllm,0.12.0,m,bf16,16,decode,1,1280,16,1024,512,1,2026-03-27,14.5\n";
  const Measurements m = parse_measurements(head + row + "a,vllm,,m,bf16,16,decode,1,1280,16,1024,512,,,14\n", "t.csv");
  REQUIRE(m.rows.size() == 2);
  const auto& s = std::get<StepRow>(m.rows[0].of);
  CHECK(s.engine_version == "0.12.0");
  CHECK(s.measured == "2026-03-27");
  // Fifteen others, each with a prompt every 512 steps.
  CHECK(s.prompts_per_step() == Approx(15.0 / 512));
  CHECK(std::get<StepRow>(m.rows[1].of).prompts_per_step() == 0);
  CHECK(m.unused_columns().empty());
  CHECK(configuration(m.rows[0]) == "a vllm m bf16 of 0.12.0 batch 16 decode 1280+1 under 16 requests 1024+512");
  CHECK(parse_measurements(format_measurements(m), "again.csv").rows[0].of == m.rows[0].of);
  const std::string_view needs = "a step of a loaded server needs 'concurrency', 'prompt' and 'generated'";
  for (const char* bad : {"a,vllm,,m,bf16,16,decode,1,1280,,1024,512,1,,14\n",
                          "a,vllm,,m,bf16,16,decode,1,9,8,9,,1,,14\n", "a,vllm,,m,bf16,16,prefill,9,0,8,9,9,1,,14\n"}) {
    const std::vector<std::string> problems = problems_of(head + bad);
    REQUIRE(problems.size() == 1);
    CHECK(problems[0].ends_with(needs));
  }
}

TEST_CASE("a step of llama.cpp says its cards, its host and its build", "[measurements]") {
  const std::string head =
      "hardware,runtime,model,weights,batch,phase,new_tokens,context,latency_ms,n_gpu,split,gpu_layers,host,backend,"
      "build,"
      "era,flash_attention,ubatch,tool,threads,depth,gen_tokens\n";
  const Measurements m = parse_measurements(
      head +
          "d,llama.cpp,m,q4_0,1,decode,1,4160,9,4,row,0,c,vulkan?,2025-08,mmq,0,1024,llama-bench,16,4096,128\n"
          "d,llama.cpp,m,q4_0,1,decode,1,,9,,,,,,,mmq,1,,,,4096,128\n"
          "d,llama.cpp,m,q4_0,1,decode,1,,9,2,,,,,,,,,,,,128\n"
          "d,llama.cpp,m,q4_0,1,prefill,512,,9,1,,,,,,,,,,,1024,\n",
      "t.csv");
  REQUIRE(m.rows.size() == 4);
  const auto step = [&](std::size_t row) { return std::get<StepRow>(m.rows[row].of); };
  CHECK(step(0).n_gpu == 4);
  CHECK(step(0).split == "row");
  CHECK(step(0).gpu_layers == 0);
  CHECK(step(0).host == "c");
  CHECK(step(0).flash_attention == false);
  CHECK(step(0).ubatch == 1024);
  CHECK(step(0).threads == 16);
  CHECK(step(0).depth == 4096);
  CHECK(step(0).gen_tokens == 128);
  CHECK(runtime_text(m.rows[0]) == "llama.cpp-vulkan@2025-08 mmq+llama-bench");
  CHECK(configuration(m.rows[0]) ==
        "d llama.cpp-vulkan m q4_0 4 GPUs by row 0 layers on the GPU beside c fa 0 ubatch 1024 threads 16 generating "
        "128 of 2025-08 mmq by llama-bench batch 1 decode 4160+1");
  CHECK(step(1).context == 4096 + 64);  // the mean over 128 generated tokens
  CHECK(step(1).flash_attention == true);
  CHECK_FALSE(step(1).gpu_layers.has_value());
  CHECK(runtime_text(m.rows[1]) == "llama.cpp@mmq");
  CHECK(step(2).context == 64);
  CHECK(runtime_text(m.rows[2]) == "llama.cpp");
  CHECK(configuration(m.rows[2]) == "d llama.cpp m q4_0 2 GPUs by layer generating 128 batch 1 decode 64+1");
  CHECK(step(3).context == 1024);
  CHECK(m.unused_columns().empty());
  const Measurements again = parse_measurements(format_measurements(m), "again.csv");
  for (std::size_t row = 0; row < m.rows.size(); ++row) CHECK(again.rows[row].of == m.rows[row].of);
}

TEST_CASE("a row needs its context, or what it is the mean of", "[measurements]") {
  const std::string head = "hardware,runtime,model,weights,batch,phase,new_tokens,latency_ms,";
  CHECK(parse_measurements(head + "depth\nd,r,m,w,1,prefill,8,9,32\n", "t.csv").rows.size() == 1);
  CHECK(problems_of(head + "depth\nd,r,m,w,1,prefill,8,9,\n") ==
        std::vector<std::string>{"t.csv:2:1: such rows need a column 'context'"});
  CHECK(problems_of(head + "split\nd,r,m,w,1,prefill,8,9,\n") ==
        std::vector<std::string>{"t.csv:1:1: no column 'context'"});
  CHECK(problems_of(head + "depth,split\nd,r,m,w,1,prefill,8,9,1,columns\n") ==
        std::vector<std::string>{"t.csv:2:25: unknown split 'columns'"});
}

TEST_CASE("a column of the other schema is one that nothing reads", "[measurements]") {
  const Measurements m =
      parse_measurements("hardware,op,dtype,m,n,k,pp,kv,latency_us\na,gemm,bf16,1,2,3,8,fp8,4\n", "t.csv");
  CHECK(m.unused_columns() == std::vector<std::string>{"pp", "kv"});
  CHECK(m.rows[0].extra == std::vector<std::string>{"8", "fp8"});
}

TEST_CASE("files of both schemas are read together, their unknown columns side by side", "[measurements]") {
  const std::string steps = "measurements_test_steps.csv";
  const std::string ops = "measurements_test_ops.csv";
  std::ofstream(steps) << "runtime,hardware,model,weights,batch,phase,new_tokens,context,latency_ms,who\n"
                          "vllm,d,m,bf16,1,prefill,8,0,1,me\n";
  std::ofstream(ops) << "\xEF\xBB\xBFhardware,op,dtype,m,n,k,latency_us,when,who\r\na,gemm,bf16,1,2,3,4,now,you\r\n";
  const std::string paths[] = {steps, ops};
  const Measurements m = read_measurements(paths);
  std::remove(steps.c_str());
  std::remove(ops.c_str());
  REQUIRE(m.rows.size() == 2);
  CHECK(std::get<StepRow>(m.rows[0].of).tp == 1);
  CHECK(m.extra_columns == std::vector<std::string>{"who", "when"});
  CHECK(m.rows[0].extra == std::vector<std::string>{"me"});
  CHECK(m.rows[1].extra == std::vector<std::string>{"you", "now"});
  CHECK(m.where(m.rows[1]).file == ops);
  CHECK(m.where(m.rows[1]).line == 2);
}

TEST_CASE("every bad value of a file is reported with its line and column", "[measurements]") {
  CHECK(problems_of("# note\n" + kSteps +
                    "d,1,vllm,graph,,m,bf16,1,decode,1,10,1\n"
                    "d,1,vllm,graph,,m,bf16,0,decode,1,10,1\n"
                    "d,1,vllm,graph,,m,bf16,1,decoding,1,10,1\n"
                    "\n"
                    "d,1,vllm,graph,,m,bf16,1,decode,1,-3,1.5x\n"
                    "d,1,vllm,graph,,,bf16,1,decode,1,10,1\n"
                    "d,1,vllm\n") ==
        std::vector<std::string>{"t.csv:4:24: 'batch' must be an integer between 1 and 1000000000, not '0'",
                                 "t.csv:5:26: unknown phase 'decoding'",
                                 "t.csv:7:35: 'context' must be an integer between 0 and 1000000000, not '-3'",
                                 "t.csv:7:38: 'latency_ms' must be a positive number, not '1.5x'",
                                 "t.csv:8:17: 'model' is empty", "t.csv:9:1: 3 fields, and the header has 12"});
}

TEST_CASE("a latency that is not positive is an error", "[measurements]") {
  for (const char* latency : {"0", "-1", "nan", "inf", "1e300"}) {
    CHECK(problems_of(kOps + "a,gemm,bf16,1,,1,32,64,,,,,,,," + latency + "\n") ==
          std::vector<std::string>{"t.csv:2:31: 'latency_us' must be a positive number, not '" + std::string(latency) +
                                   "'"});
  }
}

TEST_CASE("an unknown op or element type is an error with the nearest names", "[measurements]") {
  try {
    parse_measurements(kOps + "a,gem,bf61,1,,1,32,64,,,,,,,,1\na,vector:rop,bf16,1,,1,,,,,,,,,,1\n", "t.csv");
    FAIL();
  } catch (const Error& error) {
    REQUIRE(error.diagnostics().size() == 3);
    CHECK(error.diagnostics()[0].message == "unknown op 'gem'");
    CHECK(error.diagnostics()[0].hint == "did you mean 'gemm'?");
    CHECK(error.diagnostics()[1].message == "unknown element type 'bf61'");
    CHECK(error.diagnostics()[2].message == "unknown op 'vector:rop'");
  }
}

TEST_CASE("a shape an op needs must be given and possible", "[measurements]") {
  CHECK(problems_of(kOps + "a,gemm,bf16,1,,1,,64,,,,,,,,1\n") == std::vector<std::string>{"t.csv:2:18: 'n' is empty"});
  CHECK(problems_of("hardware,op,dtype,m,n,latency_us\na,gemm,bf16,1,1,1\n") ==
        std::vector<std::string>{"t.csv:2:1: such rows need a column 'k'"});
  CHECK(problems_of(kOps + "a,attention_decode,bf16,1,4,,,,1,128,32,7,128,1,,9\n") ==
        std::vector<std::string>{"t.csv:2:41: 32 heads do not share 7 KV heads evenly"});
  CHECK(problems_of(kOps + "a,attention_prefill,bf16,1,4,,,,16,8,32,8,128,1,,9\n") ==
        std::vector<std::string>{"t.csv:2:36: kv_len 8 counts the 16 new tokens, so it cannot be less"});
  CHECK(problems_of(kOps + "a,all_reduce,bf16,1,,,,,,,,,,,64,9\n") ==
        std::vector<std::string>{"t.csv:2:19: 'ranks' must be an integer between 2 and 1000000, not '1'"});
}

TEST_CASE("a header must name every column its schema needs, once", "[measurements]") {
  CHECK(problems_of("hardware,runtime,model,batch,phase,new_tokens,context\nd,v,m,1,decode,1,1\n") ==
        std::vector<std::string>{"t.csv:1:1: no column 'weights', 'latency_ms'"});
  CHECK(problems_of("op,m,n,k\ngemm,1,1,1\n") ==
        std::vector<std::string>{"t.csv:1:1: no column 'hardware', 'dtype', 'latency_us'"});
  CHECK(problems_of("hardware,op,dtype,op,latency_us\na,gemm,bf16,gemm,1\n").front() ==
        "t.csv:1:19: a second column 'op'");
  CHECK(problems_of("hardware,op,dtype,latency_us,latency_ms\n") ==
        std::vector<std::string>{"t.csv:1:1: latency_ms (steps) and latency_us (ops) in one file"});
}

TEST_CASE("a file without rows, of another kind or with broken quotes is an error", "[measurements]") {
  CHECK(problems_of("") == std::vector<std::string>{"t.csv: holds no header line and no rows"});
  CHECK(problems_of("# only a note\n") == std::vector<std::string>{"t.csv: holds no header line and no rows"});
  CHECK(problems_of(kSteps) == std::vector<std::string>{"t.csv: holds a header line and no rows"});
  CHECK(problems_of(std::string("a\0b", 3)) == std::vector<std::string>{"t.csv: is not a text file"});
  CHECK(problems_of(kSteps + "d,\"1,vllm\n") ==
        std::vector<std::string>{"t.csv:2:3: a quoted field does not end on its line"});
  CHECK(problems_of(kSteps + "d,\"1\"x,vllm\n") == std::vector<std::string>{"t.csv:2:6: text behind a quoted field"});
}

TEST_CASE("the problems of all files are reported together", "[measurements]") {
  const std::string path = "measurements_test_bad.csv";
  std::ofstream(path) << "hardware\n";
  const std::string paths[] = {"no/such/file.csv", path};
  try {
    read_measurements(paths);
    FAIL();
  } catch (const Error& error) {
    REQUIRE(error.diagnostics().size() == 2);
    CHECK(error.diagnostics()[0].where.file == "no/such/file.csv");
    CHECK(error.diagnostics()[1].where.file == path);
  }
  std::remove(path.c_str());
}

TEST_CASE("a line that cannot be read is refused with its reason, and the others are read", "[measurements]") {
  const std::string path = "measurements_test_refused.csv";
  const std::string paths[] = {path};
  const std::string good = "d,1,vllm,graph,,m,bf16,1,decode,1,10,1\n";
  std::ofstream(path) << kSteps + good + "d,1,vllm,graph,,m,bf16,0,decode,1,10,1\nd,\"1,vllm\n" + good;
  const Measurements m = read_measurements(paths);
  REQUIRE(m.rows.size() == 2);
  CHECK(m.rows[1].line == 5);
  REQUIRE(m.refused.size() == 2);
  CHECK(m.refused[0].where.line == 3);
  CHECK(m.refused[0].message == "'batch' must be an integer between 1 and 1000000000, not '0'");
  CHECK(m.refused[1].where.line == 4);
  CHECK_THROWS_AS(refuse_none(m.refused), Error);
  std::string broken;  // alike, and each is told
  for (int line = 0; line < 150; ++line) broken += line % 2 == 0 ? "d,\"1,vllm\n" : good;
  std::ofstream(path) << kSteps + broken;
  const Measurements half = read_measurements(paths);
  CHECK(half.rows.size() == 75);
  REQUIRE(half.refused.size() == 75);
  CHECK(half.refused.back().where.line == 150);
  CHECK(half.refused.back().message == "a quoted field does not end on its line");
  std::ofstream(path) << kSteps + "d,1,vllm,graph,,m,bf16,0,decode,1,10,1\n";  // of which nothing is left
  CHECK_THROWS_AS(read_measurements(paths), Error);
  std::remove(path.c_str());
}

TEST_CASE("a file of nothing but bad lines is not read to its end", "[measurements]") {
  const std::string path = "measurements_test_hostile.csv";
  const std::string paths[] = {path};
  std::ofstream file(path);
  file << kSteps;
  for (int i = 0; i < 20'000; ++i) file << "d\n";
  file.close();
  try {
    read_measurements(paths);
    FAIL();
  } catch (const Error& error) {
    REQUIRE(error.diagnostics().size() == 1);
    CHECK(error.diagnostics()[0].message == "more than 10000 problems in its lines");
  }
  std::remove(path.c_str());
}

TEST_CASE("requests of one length are a step of prefill and the mean one of decode", "[measurements]") {
  const Beside beside{.hardware = "h100-sxm", .model = "llama-3.1-8b", .weights = "bf16", .runtime = {}};
  const Measurements m =
      parse_measurements("batch,prompt,gen,ttft_ms,tpot_ms\n4,1000,200,80,7.5\n1,64,10,,6\n", "t.csv", beside);
  REQUIRE(m.rows.size() == 3);
  for (const Row& row : m.rows) {
    CHECK(row.hardware == "h100-sxm");
    CHECK(std::get<StepRow>(row.of).model == "llama-3.1-8b");
    CHECK(std::get<StepRow>(row.of).weights == "bf16");
  }
  const auto& prefill = std::get<StepRow>(m.rows[0].of);
  CHECK(prefill.phase == Phase::prefill);
  CHECK(prefill.batch == 4);
  CHECK(prefill.new_tokens == 1000);
  CHECK(prefill.context == 0);
  CHECK(m.rows[0].latency.value == Approx(0.08));
  const auto& decode = std::get<StepRow>(m.rows[1].of);
  CHECK(decode.phase == Phase::decode);
  CHECK(decode.new_tokens == 1);
  CHECK(decode.context == 1100);  // 1000 and half of 200
  CHECK(m.rows[1].latency.value == Approx(0.0075));
  CHECK(m.rows[2].line == 3);
  CHECK(std::get<StepRow>(m.rows[2].of).context == 69);
  CHECK(parse_measurements(format_measurements(m), "u.csv").rows.at(1).of == m.rows[1].of);
  const Measurements again = parse_measurements("batch,input,output,tpot_ms\n4,1000,200,7.5\n", "t.csv", beside);
  CHECK(again.rows.at(0).of == m.rows[1].of);
  CHECK(problems_of("batch,prompt,gen,ttft_ms\n1,64,8,5\n") ==
        std::vector<std::string>{"t.csv:1:1: no column 'hardware', 'model', 'weights'"});
  CHECK(problems_of("hardware,model,weights,batch,gen,tpot_ms\nd,m,bf16,1,8,5\n") ==
        std::vector<std::string>{"t.csv:1:1: no column 'prompt'"});
}

TEST_CASE("a scheme may be called as other tables call it", "[measurements]") {
  const std::string head = "hardware,op,dtype,m,n,k,weights,latency_us\n";
  const auto scheme = [&](const std::string& name) {
    const Measurements m = parse_measurements(head + "a,gemm,bf16,1,64,64," + name + ",1\n", "t.csv");
    return std::get<GemmShape>(std::get<OpRow>(m.rows.at(0).of).shape).weights;
  };
  CHECK(scheme("int4_wo") == "w4a16-g128");
  CHECK(scheme("fp8_block") == "fp8-block128");
  CHECK(scheme("w4a16_mxfp4") == "mxfp4");
  CHECK(scheme("bfloat16").empty());
  const Measurements m = parse_measurements(kSteps + "d,1,vllm,graph,,m,w8a8c8,1,decode,1,10,1\n", "t.csv");
  CHECK(std::get<StepRow>(m.rows.at(0).of).weights == "w8a8");
  CHECK(std::get<StepRow>(m.rows.at(0).of).kv == "int8");
}

TEST_CASE("of a figure that names no version the day it was measured says the era", "[measurements]") {
  const Measurements m = parse_measurements(
      "hardware,model,weights,runtime,engine_version,measured,batch,phase,new_tokens,context,latency_ms\n"
      "x,qwen2.5-7b,bf16,vllm,unknown,2025-10-29,1,decode,1,9,1\n"
      "x,qwen2.5-7b,bf16,vllm,,2025-10-29,1,decode,1,9,1\n"
      "x,qwen2.5-7b,bf16,vllm,0.12.0,2025-10-29,1,decode,1,9,1\n",
      "t.csv");
  CHECK(runtime_text(m.rows[0]) == "vllm@2025-10-29");
  CHECK(runtime_text(m.rows[1]) == "vllm@2025-10-29");
  CHECK(runtime_text(m.rows[2]) == "vllm@0.12.0");
}

TEST_CASE("a kernel may say whose it is", "[measurements]") {
  const Measurements m = parse_measurements(
      "hardware,op,dtype,m,n,k,runtime,engine_version,latency_us\na,gemm,bf16,1,2,3,sglang,0.5.14,4\n"
      "a,gemm,bf16,1,2,3,,2.29,4\n",
      "t.csv");
  CHECK(runtime_text(m.rows[0]) == "sglang@0.5.14");
  CHECK(runtime_text(m.rows[1]).empty());
  CHECK(configuration(m.rows[0]) != configuration(m.rows[1]));  // no repeats of each other
  CHECK(m.unused_columns().empty());
}

TEST_CASE("equal configurations are equal texts", "[measurements]") {
  const Measurements m = parse_measurements(kSteps +
                                                "d,8,vllm,graph,mc2,m,bf16,4,decode,1,10,1\n"
                                                "d,8,vllm,graph,mc2,m,bf16,4,decode,1,10,2\n"
                                                "d,8,vllm,graph,mc2,m,bf16,4,decode,1,11,2\n",
                                            "t.csv");
  CHECK(configuration(m.rows[0]) == "d vllm m bf16 tp 8 graph mc2 batch 4 decode 10+1");
  CHECK(configuration(m.rows[0]) == configuration(m.rows[1]));
  CHECK(configuration(m.rows[0]) != configuration(m.rows[2]));
}

TEST_CASE("rows say by which kernel and how it was launched", "[measurements]") {
  const std::string text =
      "hardware,op,dtype,m,n,k,kernel,mode,latency_us\n"
      "h100-sxm,gemm,bf16,8,64,64,torch linear,graph,5\n"
      "h100-sxm,gemm,bf16,8,64,64,torch linear,eager,9\n";
  const Measurements m = parse_measurements(text, "t.csv");
  CHECK(std::get<OpRow>(m.rows[0].of).kernel == "torch linear");
  CHECK(std::get<OpRow>(m.rows[1].of).mode == kEager);
  CHECK(configuration(m.rows[0]) == "h100-sxm gemm bf16 by torch linear graph 8 x 64 x 64");
  CHECK(configuration(m.rows[0]) != configuration(m.rows[1]));  // two measurements, not one twice
  CHECK(format_measurements(m) == text);
  CHECK(m.unused_columns().empty());
  CHECK_THROWS_WITH(parse_measurements("hardware,op,dtype,m,n,k,mode,latency_us\nx,gemm,bf16,8,8,8,lazy,5\n", "t.csv"),
                    Catch::Contains("unknown mode 'lazy'"));
  for (const char* kernel : {"torch chain", "torch matmul and softmax", "torch grouped mm, routed by a chain",
                             "torch attention, with a mask", "torch, token by token"}) {
    CHECK(stands_in(kernel));
  }
  for (const char* kernel : {"torch linear", "flash_attn 2.7", ""}) CHECK_FALSE(stands_in(kernel));
}

}  // namespace llmperf::measure::measurements_test
