// Engines by name and version, and their defaults (serving.md 1.1 and 1.2).
#include "serving/engine.h"

#include "base/error.h"
#include "catch.h"
#include "hardware/device.h"

namespace llmperf::engine_test {

using namespace llmperf::serving;

namespace {

EngineSettings defaults(const char* engine, const char* device, std::int64_t devices = 1) {
  return engine_defaults(engine, hardware::load_device(device), devices);
}

}  // namespace

TEST_CASE("vLLM's batch depends on the device's memory and on its not being an A100, and on the version") {
  CHECK(defaults("vllm", "h100-sxm").max_batched_tokens == 8192);
  CHECK(defaults("vllm", "h100-sxm").max_sequences == 1024);
  CHECK(defaults("vllm", "rtx4090").max_batched_tokens == 2048);
  CHECK(defaults("vllm", "rtx4090").max_sequences == 256);
  CHECK(defaults("vllm", "a100-sxm-80gb").max_batched_tokens == 2048);
  CHECK(defaults("vllm@0.10.0", "h100-sxm").max_sequences == 1024);
  CHECK(defaults("vllm@0.8.2", "h100-sxm").max_sequences == 256);
  CHECK(defaults("vllm@0.8.5", "a100-sxm-80gb").max_batched_tokens == 8192);
  CHECK(defaults("vllm", "h100-sxm").kv_utilisation == 0.92);
  CHECK(defaults("vllm@0.19.0", "h100-sxm").kv_utilisation == 0.9);
  CHECK(defaults("vllm@0.19.0", "h100-sxm").reserves_full_input);
  CHECK_FALSE(defaults("vllm@0.15.1", "h100-sxm").reserves_full_input);
  CHECK(defaults("vllm", "h100-sxm").block_size == 16);
  CHECK(defaults("vllm@0.14.0", "h100-sxm").asynchronous);
  CHECK_FALSE(defaults("vllm@0.13.0", "h100-sxm").asynchronous);
}

TEST_CASE("SGLang's chunk and its share of the memory depend on the device") {
  CHECK(defaults("sglang", "rtx4090").max_batched_tokens == 2048);
  CHECK(defaults("sglang", "h100-sxm").max_batched_tokens == 8192);
  CHECK(defaults("sglang", "h200-sxm").max_batched_tokens == 8192);
  CHECK(defaults("sglang", "b200").max_batched_tokens == 16384);
  CHECK(defaults("sglang", "h100-sxm", 4).kv_utilisation == 0.85);
  CHECK(defaults("sglang", "h100-sxm").block_size == 1);
}

TEST_CASE("engines go by their names") {
  CHECK(parse_engine_kind("tensorrt-llm") == EngineKind::trtllm);
  CHECK(parse_engine_kind("llama.cpp") == EngineKind::llama_cpp);
  CHECK_THROWS_AS(parse_engine_kind("vlm"), Error);
  CHECK_THROWS_AS(defaults("vllm@new", "h100-sxm"), Error);
  CHECK_THROWS_AS(defaults("vllm@99", "h100-sxm"), Error);  // never was
  CHECK(defaults("sglang@0.5.6", "h100-sxm").version == "0.5.6");
}

}  // namespace llmperf::engine_test
