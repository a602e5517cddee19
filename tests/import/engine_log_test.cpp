// Lines are of the form that public threads quote: vllm#51454, vllm#44376, vllm#5248, TensorRT-LLM#224, vllm#21348
// (SGLang), and of the sources that engine_log.h names.
#include "import/engine_log.h"

#include <map>
#include <string>

#include "base/error.h"
#include "catch.h"

namespace llmperf::engine_log_test {

namespace {

std::map<std::string, double> parts_of(const std::string& text) {
  std::map<std::string, double> parts;
  for (const estimate::LogPart& p : import::read_engine_log(text, "log").parts) parts[p.name] = p.printed;
  return parts;
}

}  // namespace

TEST_CASE("vLLM's lines, of V1") {
  const std::string text =
      "(APIServer pid=1) INFO 08-07 21:32:22 [api_utils.py:339]  version 0.25.0\n"
      "(EngineCore pid=7) INFO [gpu_model_runner.py:4100] Model loading took 14.96 GiB memory and 3.2 seconds\n"
      "(EngineCore pid=7) INFO [gpu_worker.py:355] Available KV cache memory: 4.99 GiB\n"
      "(EngineCore pid=7) INFO [kv_cache_utils.py:1307] GPU KV cache size: 302,921 tokens\n"
      "(EngineCore pid=7) INFO [kv_cache_utils.py:1312] Maximum concurrency for 131,072 tokens per request: 2.31x\n"
      "(EngineCore pid=7) INFO [gpu_model_runner.py:5000] Graph capturing finished in 12 secs, took 0.55 GiB\n";
  CHECK(import::read_engine_log(text, "log").version == "0.25.0");
  const auto parts = parts_of(text);
  CHECK(parts.size() == 5);
  CHECK(parts.at("weights") == Approx(14.96 * kGiB));
  CHECK(parts.at("keys and values") == Approx(4.99 * kGiB));
  CHECK(parts.at("tokens") == 302'921);
  CHECK(parts.at("sequences") == 2.31);
  CHECK(parts.at("graphs") == Approx(0.55 * kGiB));
}

TEST_CASE("less than nothing that is left, and versions of what is no engine") {
  const auto log = import::read_engine_log(
      "vLLM is using nccl==2.27.3, CUDA version 13.0\n[1] Available KV cache memory: -2.14 GiB\n", "log");
  CHECK(log.version.empty());
  CHECK(log.parts.at(0).printed == Approx(-2.14 * kGiB));
}

TEST_CASE("vLLM's refusal, and the lines of V0") {
  const auto refused = parts_of(
      "ValueError: To serve at least one request with the model's max seq len (30000), (6.66 GiB KV cache is needed, "
      "which is "
      "larger than the available KV cache memory (5.44 GiB). Based on the available memory, the estimated maximum "
      "model "
      "length is 13528. Try increasing `gpu_memory_utilization`");
  CHECK(refused.at("a sequence") == Approx(6.66 * kGiB));
  CHECK(refused.at("keys and values") == Approx(5.44 * kGiB));
  CHECK(refused.at("longest sequence") == 13'528);
  const auto old = parts_of(
      "INFO 12-01 worker.py:241] model weights take 14.99GiB; non_torch_memory takes 0.09GiB; PyTorch activation peak "
      "memory "
      "takes 1.19GiB; the rest of the memory reserved for KV Cache is 54.96GiB.\n"
      "INFO 12-01 gpu_executor.py:76] # GPU blocks: 28139, # CPU blocks: 2048\r\n");
  CHECK(old.at("weights") == Approx(14.99 * kGiB));
  CHECK(old.at("activations") == Approx(1.19 * kGiB));
  CHECK(old.at("keys and values") == Approx(54.96 * kGiB));
  CHECK(old.at("blocks") == 28'139);
}

TEST_CASE("lines of SGLang, TensorRT-LLM, llama.cpp and Ollama") {
  const auto sglang = parts_of(
      "[2025-07-22 TP0] Load weight end. type=Qwen3MoeForCausalLM, dtype=torch.bfloat16, avail mem=22.97 GB, mem "
      "usage=55.67 GB.\n"
      "[2025-07-22 TP0] KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB\n"
      "[2025-07-22 TP0] Capture cuda graph end. Time elapsed: 9.77 s. mem usage=1.30 GB. avail mem=4.01 GB.\n"
      "[2025-07-22 TP0] max_total_num_tokens=367404, chunked_prefill_size=8192, context_len=40960\n");
  CHECK(sglang.at("weights") == Approx(55.67 * kGiB));
  CHECK(sglang.at("graphs") == Approx(1.3 * kGiB));
  CHECK(sglang.at("tokens") == 367'404);
  const auto trt =
      parts_of("[TensorRT-LLM][INFO] [MemUsageChange] Allocated 5.23 GiB for max tokens in paged KV cache (10718).\n");
  CHECK(trt.at("keys and values") == Approx(5.23 * kGiB));
  CHECK(trt.at("tokens") == 10'718);
  const auto buffers = parts_of(
      "load_tensors:        CUDA0 model buffer size =  4403.50 MiB\n"
      "load_tensors:   CPU_Mapped model buffer size =   281.81 MiB\n"
      "llama_kv_cache:      CUDA0 KV buffer size =  1024.00 MiB\n"
      "llama_context:      CUDA0 compute buffer size =   258.50 MiB\n");
  CHECK(buffers.at("weights") == Approx(4403.5 * 1024 * 1024));  // of the devices
  CHECK(buffers.at("keys and values") == Approx(1024.0 * 1024 * 1024));
  CHECK(buffers.at("compute buffers") == Approx(258.5 * 1024 * 1024));
  const auto ollama = parts_of(
      "time=2026-01-01 level=INFO source=device.go:240 msg=\"model weights\" device=CUDA0 size=\"4.3 GiB\"\n"
      "time=2026-01-01 level=INFO source=device.go:251 msg=\"kv cache\" device=CUDA0 size=\"1.0 GiB\"\n"
      "time=2026-01-01 level=INFO source=device.go:262 msg=\"compute graph\" device=CUDA0 size=\"560.0 MiB\"\n");
  CHECK(ollama.at("weights") == Approx(4.3 * kGiB));
  CHECK(ollama.at("keys and values") == Approx(1.0 * kGiB));
  CHECK(ollama.at("compute buffers") == Approx(560.0 * 1024 * 1024));
}

TEST_CASE("a file that is no such log is refused, and what is hostile is read") {
  CHECK_THROWS_AS(import::read_engine_log("", "log"), Error);
  CHECK_THROWS_AS(import::read_engine_log("all is well\n", "log"), Error);
  const std::string long_line =
      "GPU KV cache size: " + std::string(100'000, '1') + " tokens\nModel loading took 1 GiB\n";
  CHECK(parts_of(long_line).at("weights") == Approx(kGiB));
  CHECK(parts_of(std::string("\0\xff# GPU blocks: 7\n", 19)).at("blocks") == 7);
}

}  // namespace llmperf::engine_log_test
