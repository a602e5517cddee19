// One run of llama-bench in each of the forms that it prints, and what makes a test no measurement.
#include <fmt/format.h>

#include <map>

#include "import_helpers.h"

namespace llmperf::import::llama_bench_test {
namespace {

using measure::Phase;
using measure::StepRow;

constexpr Source kSource = Source::llama_bench;
using Fields = std::vector<std::pair<std::string, std::string>>;

// Fields in the order in which they are printed; those of text, and of truth, are printed otherwise in JSON.
const Fields kPrompt = {{"build_commit", "4ffc47cb"},
                        {"build_number", "6421"},
                        {"cpu_info", "AMD Ryzen 9 7950X 16-Core Processor"},
                        {"gpu_info", "NVIDIA GeForce RTX 3090"},
                        {"backends", "CUDA"},
                        {"model_filename", "models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf"},
                        {"model_type", "llama 8B Q4_K - Medium"},
                        {"model_size", "4912896000"},
                        {"model_n_params", "8030261312"},
                        {"n_batch", "2048"},
                        {"n_ubatch", "512"},
                        {"n_threads", "16"},
                        {"type_k", "f16"},
                        {"type_v", "f16"},
                        {"n_gpu_layers", "99"},
                        {"split_mode", "layer"},
                        {"main_gpu", "0"},
                        {"no_kv_offload", "0"},
                        {"flash_attn", "1"},
                        {"tensor_split", "0.00"},
                        {"embeddings", "0"},
                        {"n_prompt", "512"},
                        {"n_gen", "0"},
                        {"n_depth", "4096"},
                        {"test_time", "2025-09-09T10:00:00Z"},
                        {"avg_ns", "128000000"},
                        {"avg_ts", "4000.000000"}};

Fields with(Fields fields, const Fields& changes) {
  for (const auto& [name, value] : changes) {
    bool known = false;
    for (auto& [field, text] : fields) {
      if (field == name) text = value;
      known = known || field == name;
    }
    if (!known) fields.emplace_back(name, value);
  }
  return fields;
}
const Fields kDecode = with(kPrompt, {{"n_prompt", "0"}, {"n_gen", "128"}, {"n_depth", "0"}, {"avg_ts", "125.000000"}});

std::string object(const Fields& fields) {
  std::string text;
  for (const auto& [name, value] : fields) {
    const bool truth = name == "flash_attn" || name == "no_kv_offload" || name == "embeddings";
    const bool number =
        !value.empty() && value.find_first_not_of("0123456789.") == std::string::npos && name != "tensor_split";
    text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ", name,
                        truth    ? (value == "1" ? "true" : "false")
                        : number ? value
                                 : '"' + value + '"');
  }
  return fmt::format("{{{}, \"samples_ns\": [ 1, 2 ]}}", text);
}
std::string json(const std::vector<Fields>& tests) {
  std::string text = "[\n";
  for (const Fields& test : tests) text += object(test) + (&test == &tests.back() ? "\n" : ",\n");
  return text + "]\n";
}
std::string lines(const std::vector<Fields>& tests, const std::string& before, const std::string& after,
                  const std::string& quote, const std::string& between) {
  std::string text;
  for (const Fields& test : tests) {
    std::string values;
    for (const auto& [name, value] : test) values += (values.empty() ? "" : between) + quote + value + quote;
    text += before + values + after + '\n';
  }
  return text;
}
std::string names(const Fields& fields, const std::string& between) {
  std::string text;
  for (const auto& [name, value] : fields) text += (text.empty() ? "" : between) + name;
  return text;
}
std::string csv(const std::vector<Fields>& tests) {
  return names(tests[0], ",") + '\n' + lines(tests, "", "", "\"", ",");
}
std::string sql(const std::vector<Fields>& tests) {
  return "CREATE TABLE IF NOT EXISTS llama_bench (\n  build_commit TEXT,\n  avg_ts REAL\n);\n\n" +
         lines(tests, "INSERT INTO llama_bench (" + names(tests[0], ", ") + ") VALUES (", ");", "'", ", ");
}
const std::string kTable =
    "ggml_cuda_init: found 1 CUDA devices:\n"
    "  Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes\n"
    "| model                  |     size |   params | backend | ngl | fa |            test |              t/s |\n"
    "| ---------------------- | -------: | -------: | ------- | --: | -: | --------------: | ---------------: |\n"
    "| llama 8B Q4_K - Medium | 4.58 GiB |   8.03 B | CUDA    |  99 |  1 |   pp512 @ d4096 | 4000.00 ± 12.30 |\n"
    "| llama 8B Q4_K - Medium | 4.58 GiB |   8.03 B | CUDA    |  99 |  1 |           tg128 |  125.00 ± 0.05 |\n"
    "\nbuild: 4ffc47cb (6421)\n";

const StepRow& step(const Imported& i, std::size_t row = 0) {
  REQUIRE(row < i.measurements.rows.size());
  return std::get<StepRow>(i.measurements.rows[row].of);
}
// Why a test with these changes is no measurement; empty: it is one.
std::string remark(const Fields& changes, const Options& options = {}) {
  const Imported i = imported(kSource, json({with(kDecode, changes)}), options);
  REQUIRE(i.types.size() == 1);
  CHECK(i.measurements.rows.size() == (i.types[0].remark.empty() ? 1 : 0));
  return i.types[0].remark;
}

const Options kLlama{.hardware = "rtx3090", .model = "llama-3.1-8b", .weights = "q4_0"};

}  // namespace

TEST_CASE("the five forms give the same steps", "[import][llama-bench]") {
  const std::vector<Fields> tests = {kPrompt, kDecode};
  const std::string forms[] = {json(tests), object(kPrompt) + '\n' + object(kDecode) + '\n', csv(tests), sql(tests)};
  for (const std::string& form : forms) {
    CAPTURE(form);
    const Imported i = imported(kSource, form);
    REQUIRE(i.measurements.rows.size() == 2);
    CHECK(i.measurements.rows[0].hardware == "rtx3090");
    CHECK(i.measurements.rows[0].latency.value == Approx(0.128));  // 512 tokens at 4000 a second
    CHECK(i.measurements.rows[1].latency.value == Approx(0.008));  // one at 125
    StepRow prompt;
    prompt.runtime = "llama.cpp";
    prompt.model = "llama-3.1-8b";
    prompt.weights = "q4_k_m";
    prompt.phase = Phase::prefill;
    prompt.new_tokens = 512;
    prompt.context = 4096;
    prompt.measured = "2025-09-09";
    prompt.backend = "cuda";
    prompt.build = "b6421";
    prompt.flash_attention = true;
    prompt.ubatch = 512;
    prompt.tool = "llama-bench";
    prompt.depth = 4096;
    CHECK(step(i, 0) == prompt);
    CHECK(step(i, 1).phase == Phase::decode);
    CHECK(step(i, 1).context == 64);
    CHECK(step(i, 1).gen_tokens == 128);
    CHECK(i.types[0].imported == 2);
    CHECK(i.types[0].of == Class::step);
    CHECK(i.types[0].total.value == Approx(0.128 + 128.0 / 125));
    const auto read = measure::parse_measurements(measure::format_measurements(i.measurements), "m.csv");
    CHECK(read.rows[0].of == i.measurements.rows[0].of);
    CHECK(read.rows[1].of == i.measurements.rows[1].of);
  }
  // A table has neither the day nor the name of the file: any model that runs alike.
  const Imported table = imported(kSource, kTable);
  const Imported whole = imported(kSource, forms[0]);
  REQUIRE(table.measurements.rows.size() == 2);
  for (std::size_t row = 0; row < 2; ++row) {
    StepRow expected = step(whole, row);
    expected.measured.clear();
    expected.model = "llama-3-8b";
    CHECK(step(table, row) == expected);
    CHECK(table.measurements.rows[row].hardware == "rtx3090");
    CHECK(table.measurements.rows[row].latency.value == Approx(whole.measurements.rows[row].latency.value));
  }
}

TEST_CASE("tables without a log before them do not say the device", "[import][llama-bench]") {
  const std::string table = kTable.substr(kTable.find("| model"));
  CHECK(imported(kSource, table).measurements.rows[0].hardware == "unknown");
  const Imported i = imported(kSource, table, {.hardware = "rtx4090", .ranks = 2, .model = "llama-3.1-8b"});
  CHECK(i.measurements.rows[0].hardware == "rtx4090");
  CHECK(step(i).n_gpu == 2);
  CHECK(step(i).split == "layer");
  CHECK(step(i).model == "llama-3.1-8b");
}

TEST_CASE("formats of weights go by the words of llama.cpp", "[import][llama-bench]") {
  for (const auto& [type, weights] :
       {std::pair{"llama 8B Q8_0", "q8_0"}, std::pair{"llama 8B mostly Q4_0", "q4_0"}, std::pair{"llama 8B F16", "f16"},
        std::pair{"llama 8B all F32", "f32"}, std::pair{"llama 8B Q3_K - Large", "q3_k_l"},
        std::pair{"llama 8B Q6_K", "q6_k"}, std::pair{"llama 8B IQ4_XS - 4.25 bpw", "iq4_xs"},
        std::pair{"llama 8B IQ3_S mix - 3.66 bpw", "iq3_m"}, std::pair{"llama 8B Q2_K - Medium", "q2_k"},
        std::pair{"llama 8B Q5_K - Small (guessed)", "q5_k_s"}}) {
    CHECK(step(imported(kSource, json({with(kDecode, {{"model_type", type}})}))).weights == weights);
  }
  CHECK(remark({{"model_type", "llama 8B Q9"}}) == "format not known: `weights`");
  const Imported given =
      imported(kSource, json({with(kDecode, {{"model_type", "llama 8B Q9"}})}), {.weights = "Q4_K_M"});
  CHECK(step(given).weights == "q4_k_m");
  CHECK(problems_of(kSource, json({kDecode}), {.weights = "q9"}) ==
        std::vector<std::string>{"`weights`: no format of GGUF files 'q9'"});
}

TEST_CASE("models go by architecture and number of parameters", "[import][llama-bench]") {
  const auto model = [](const char* type, const char* parameters) {
    return step(imported(
                    kSource,
                    json({with(kDecode,
                               {{"model_type", type}, {"model_n_params", parameters}, {"model_filename", "a.gguf"}})})))
        .model;
  };
  CHECK(model("qwen2 7B Q4_0", "7615616512") == "qwen2-7b");  // or qwen2.5-7b, which runs alike
  CHECK(model("qwen3moe 30B.A3B Q4_K - Medium", "30532122624") == "qwen3-30b-a3b");
  CHECK(model("gpt-oss 20B MXFP4 MoE", "20914757184") == "gpt-oss-20b");
  CHECK(model("gemma2 2B Q8_0", "2614341888") == "gemma-2-2b");
  CHECK(model("llama 13B Q4_0", "13015864320") == "llama-13b");  // or llama-2-13b
  CHECK(remark({{"model_n_params", "123456789"}}) == "no built-in model of so many parameters: `model`");
  CHECK(remark({{"model_n_params", "123456789"}}, {.model = "llama-3-8b"}).empty());
}

TEST_CASE("what a row cannot say leaves a test out, with the reason", "[import][llama-bench]") {
  CHECK(remark({}).empty());
  CHECK(remark({{"n_prompt", "512"}}) == "prompt and generation in one test");
  CHECK(remark({{"n_gen", "0"}}) == "no tokens");
  CHECK(remark({{"avg_ts", "0"}}) == "no time");
  CHECK(remark({{"no_kv_offload", "1"}}) == "no_kv_offload is 1");
  CHECK(remark({{"n_cpu_moe", "8"}}) == "n_cpu_moe is 8");
  CHECK(remark({{"backends", "RPC"}}) == "backend RPC");
  CHECK(remark({{"backends", "Vulkan,RPC"}, {"gpu_info", "RPC[10.0.0.2:50052]"}}) == "backend Vulkan,RPC");
  CHECK(remark({{"tensor_split", "3.00/1.00"}}) == "cards with unequal shares (tensor_split)");
  CHECK(remark({{"gpu_info", "NVIDIA GeForce RTX 3090, NVIDIA GeForce RTX 4090"}}) == "cards of different kinds");
  CHECK(remark({{"n_gpu_layers", "20"}, {"cpu_info", "a CPU"}}) == "layers on a CPU: `host`");
  CHECK(remark({{"type_k", "q8"}}) == "type of the cache not known");
  CHECK(remark({{"n_depth", "9000000000000000000"}}) == "sizes out of range");
  CHECK(imported(kSource, R"({"pl":9223372036854775807,"pp":512,"tg":128,"speed_pp":1,"speed_tg":1})", kLlama)
            .types.front()
            .remark == "sizes out of range");
  CHECK(remark({{"n_gpu_layers", "20"}, {"backends", "Metal"}, {"gpu_info", "Apple M2 Ultra"}}) ==
        "layers on the CPU of the same chip");
}

TEST_CASE("cards, layers on the host and the cache are told", "[import][llama-bench]") {
  const auto one = [](const Fields& changes, const Options& options = {}) {
    return imported(kSource, json({with(kDecode, changes)}), options);
  };
  const std::string two = "NVIDIA GeForce RTX 3090, NVIDIA GeForce RTX 3090";
  CHECK(step(one({{"gpu_info", two}})).n_gpu == 2);
  CHECK(step(one({{"gpu_info", two}})).split == "layer");
  CHECK(step(one({{"gpu_info", two}, {"split_mode", "row"}})).split == "row");
  CHECK(step(one({{"gpu_info", two}, {"split_mode", "none"}})).n_gpu == 1);
  CHECK(step(one({{"gpu_info", two}, {"tensor_split", "1.00"}})).n_gpu == 1);
  const Imported partial = one({{"n_gpu_layers", "20"}});
  CHECK(step(partial).gpu_layers == 20);
  CHECK(step(partial).host == "ryzen-7950x");
  CHECK(step(partial).threads == 16);
  CHECK(step(one({{"n_gpu_layers", "20"}}, {.host = "epyc-9654"})).host == "epyc-9654");
  CHECK_FALSE(step(one({{"n_gpu_layers", "33"}})).gpu_layers.has_value());  // 32 layers and the head
  CHECK(step(one({{"type_k", "q8_0"}, {"type_v", "q8_0"}})).kv == "q8_0");
  CHECK(step(one({{"type_k", "q8_0"}, {"type_v", "q4_0"}})).kv == "q8_0/q4_0");
  CHECK(step(one({{"n_ubatch", "2048"}, {"n_batch", "1024"}})).ubatch == 1024);
  const Imported cpu = one({{"backends", "CPU"}, {"gpu_info", ""}});
  CHECK(cpu.measurements.rows[0].hardware == "ryzen-7950x");
  CHECK(step(cpu).backend == "cpu");
  CHECK(step(cpu).threads == 16);
  const Imported apple = one({{"backends", "Metal,BLAS"}, {"gpu_info", "Apple M2 Ultra"}});
  CHECK(apple.measurements.rows[0].hardware == "apple-m2-ultra");
  CHECK(step(apple).backend == "metal");
  CHECK(step(apple).n_gpu == 1);
  CHECK(one({{"gpu_info", "NVIDIA GeForce RTX 4090 Laptop GPU"}}).measurements.rows[0].hardware == "rtx4090-laptop");
  CHECK(one({{"gpu_info", "NVIDIA GeForce RTX 2080 Laptop GPU"}}).measurements.rows[0].hardware == "unknown");
  CHECK(step(one({{"backends", "Vulkan,RPC"}})).backend == "vulkan");  // a program that could reach others
}

const std::string kSettings =
    "main: n_kv_max = 20480, n_batch = 2048, n_ubatch = 256, flash_attn = 1, is_pp_shared = {}, n_gpu_layers = 99, "
    "n_threads = 8, n_threads_batch = 8\n\n";

// 8 prompts of 512 tokens in 0.8 s, then 128 tokens of each in 2.4 s: 18.75 ms a step behind 512 + 64 tokens.
TEST_CASE("llama-batched-bench: a line is a prompt of all sequences and a generation behind it",
          "[import][llama-bench]") {
  const std::string table =
      "|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |\n"
      "|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|\n"
      "|   512 |    128 |    8 |   5120 |    0.800 |  5120.00 |    2.400 |   426.67 |    3.200 |  1600.00 |\n";
  for (const std::string& text :
       {fmt::format(fmt::runtime(kSettings), 0) + table,
        std::string(R"({"n_kv_max": 20480, "n_batch": 2048, "n_ubatch": 256, "flash_attn": 1, "is_pp_shared": 0, )"
                    R"("n_gpu_layers": 99, "n_threads": 8, "n_threads_batch": 8, "pp": 512, "tg": 128, "pl": 8, )"
                    R"("n_kv": 5120, "t_pp": 0.8, "speed_pp": 5120.0, "t_tg": 2.4, "speed_tg": 426.67, "t": 3.2, )"
                    R"("speed": 1600.0})")}) {
    const Imported i = imported(kSource, text, kLlama);
    REQUIRE(i.measurements.rows.size() == 2);
    CHECK(i.passed_over.empty());
    CHECK(step(i, 0).phase == Phase::prefill);
    CHECK(step(i, 0).batch == 8);
    CHECK(step(i, 0).new_tokens == 512);
    CHECK(step(i, 0).context == 0);
    CHECK(step(i, 0).ubatch == 256);
    CHECK(i.measurements.rows[0].latency.value == Approx(0.8));
    CHECK(step(i, 1).phase == Phase::decode);
    CHECK(step(i, 1).batch == 8);
    CHECK(step(i, 1).context == 512 + 64);
    CHECK(step(i, 1).flash_attention == true);
    CHECK(step(i, 1).backend.empty());  // not said
    CHECK(i.measurements.rows[1].latency.value == Approx(0.01875));
    CHECK(i.measurements.rows[1].extra[0] == "426.7");
  }
  const Imported shared = imported(kSource, fmt::format(fmt::runtime(kSettings), 1) + table, kLlama);
  CHECK(step(shared, 0).batch == 1);
  CHECK(step(shared, 1).batch == 8);
  CHECK(problems_of(kSource, fmt::format(fmt::runtime(kSettings), 0)) ==
        std::vector<std::string>{"t.csv: holds no test of llama-bench"});
  const Imported unnamed = imported(kSource, table);
  CHECK(unnamed.measurements.rows.empty());
}

TEST_CASE("sweep-bench: prompt and generation behind so many tokens", "[import][llama-bench]") {
  const Imported i = imported(kSource,
                              fmt::format(fmt::runtime(kSettings), 0) +
                                  "|    PP |     TG |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |\n"
                                  "|-------|--------|--------|----------|----------|----------|----------|\n"
                                  "|   512 |    128 |   1024 |    0.256 |  2000.00 |    1.600 |    80.00 |\n",
                              kLlama);
  REQUIRE(i.measurements.rows.size() == 2);
  CHECK(step(i, 0).depth == 1024);
  CHECK(step(i, 0).batch == 1);
  CHECK(i.measurements.rows[0].latency.value == Approx(0.256));
  CHECK(step(i, 1).depth == 1024);
  CHECK(step(i, 1).context == 1024 + 64);
  CHECK(i.measurements.rows[1].latency.value == Approx(0.0125));
}

TEST_CASE("a column that nothing is made of is named", "[import][llama-bench]") {
  const Imported i = imported(kSource,
                              "| model | size | params | backend | ngl | fmoe | mmap | test | t/s |\n"
                              "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
                              "| llama 8B Q4_0 | 4.33 GiB | 8.03 B | CUDA | 99 | 1 | 0 | tg128 | 80.00 ± 0.10 |\n");
  REQUIRE(i.measurements.rows.size() == 1);
  CHECK(i.passed_over == std::vector<std::string>{"fmoe"});
  CHECK(i.measurements.files[0].notes.back() == "columns passed over: fmoe");
}

TEST_CASE("a file of the other form is told so", "[import]") {
  CHECK(problems_of(Source::msprof, "[{\"a\": 1}]") == std::vector<std::string>{"t.csv: is JSON, which msprof is not"});
  CHECK(problems_of(Source::aiconfigurator, "{}") ==
        std::vector<std::string>{"t.csv: is JSON, which aiconfigurator is not"});
  CHECK(problems_of(Source::guidellm, "a,b\n1,2\n") ==
        std::vector<std::string>{"t.csv: is no JSON, which guidellm is"});
}

TEST_CASE("what is no output of llama-bench is refused with its place", "[import][llama-bench]") {
  CHECK(problems_of(kSource, "hello\n") == std::vector<std::string>{"t.csv: holds no test of llama-bench"});
  CHECK(problems_of(kSource, "build_commit,avg_ts\n\"a\",\"1\",\"2\"\n") ==
        std::vector<std::string>{"t.csv:2:1: 3 fields, and the header has 2"});
  CHECK(problems_of(kSource, "INSERT INTO llama_bench (a, b) VALUES ('1');\n") ==
        std::vector<std::string>{"t.csv:1:1: 1 values of 2 fields"});
  CHECK(problems_of(kSource, "INSERT INTO llama_bench (a, b) VALUES;\n") ==
        std::vector<std::string>{"t.csv:1:1: not an insertion of names and values"});
  CHECK(problems_of(kSource, "log\n{\"a\": }\n").size() == 1);
  CHECK(problems_of(Source::nccl_tests, "", {.model = "llama-3-8b"}) ==
        std::vector<std::string>{"`model` is for llama-bench and runs of servers, not for nccl-tests"});
}

}  // namespace llmperf::import::llama_bench_test
