// Caches that engines have printed. The blocks of vLLM 0.15.1 on H100 are of
// inference-sim/sim-to-real-accuracy-validation at dcec3fd (results_trainval/error_records.csv), those of vLLM 0.19.0
// on an RTX 4090 of casys-kaist/LLMServingSim at 5daddb2 (bench/examples/RTX4090/Llama-3.1-8B/vllm); utilisation 0.9,
// blocks of 16.
#include "estimate/kv_capacity.h"

#include <cstdint>
#include <string>

#include "catch.h"
#include "estimate/plan_cases.h"

namespace llmperf::kv_capacity_test {

using namespace llmperf::estimate;

namespace {

KvCapacity capacity(const char* model, const char* device, std::int64_t tensor, const EngineMemory& memory) {
  return kv_capacity(test::estimator(model, device, {.tensor = tensor}), memory);
}

const std::string kCard = "rtx4090";
constexpr EngineMemory kSmall{.utilisation = 0.9, .batched_tokens = 2048, .max_sequences = 256};

}  // namespace

TEST_CASE("a cache has as many blocks as vLLM gives it") {
  struct Printed {
    const char* model;
    const char* device;
    std::int64_t tensor;
    std::int64_t batched_tokens;
    std::int64_t blocks;
  };
  for (const Printed& p : {Printed{"llama-3.1-8b", "rtx4090", 1, 2048, 2588},
                           {"llama-3.1-70b", "h100-sxm", 4, 2048, 30'425},
                           {"llama-3.1-70b", "h100-sxm", 4, 8192, 30'251},
                           {"mistral-nemo-12b", "h100-sxm", 1, 2048, 19'251},
                           {"mistral-nemo-12b", "h100-sxm", 2, 1024, 48'009},
                           {"qwen2.5-7b", "h100-sxm", 1, 1024, 65'368},
                           {"qwen2.5-7b", "h100-sxm", 1, 2048, 65'352}}) {
    EngineMemory memory = kSmall;
    memory.batched_tokens = p.batched_tokens;
    INFO(p.model << " on " << p.tensor << " " << p.device << " with " << p.batched_tokens);
    CHECK(static_cast<double>(capacity(p.model, p.device, p.tensor, memory).blocks) ==
          Approx(static_cast<double>(p.blocks)).epsilon(0.01));
    // Their records tell of 128 sequences, which leaves a little more: within 3 % on H100.
    memory.max_sequences = 128;
    if (p.device != kCard) {
      CHECK(static_cast<double>(capacity(p.model, p.device, p.tensor, memory).blocks) ==
            Approx(static_cast<double>(p.blocks)).epsilon(0.03));
    }
  }
}

TEST_CASE("a cache is the share of memory less weights, the sampler's rows, positions and libraries") {
  const KvCapacity c = capacity("llama-3.1-8b", "rtx4090", 1, kSmall);
  CHECK(c.usable.value == Approx(0.9 * 23.52 * kGiB));
  CHECK(c.weights.value == Approx(2 * 8'030'261'248.0));
  // 7.5 rows of 128,256 fp32 logits for 256 sequences, and twice 2,048 x 4,096 of 16 bits.
  CHECK(c.activation.value == Approx(7.5 * 256 * 4 * 128'256 + 2 * 2 * 2048 * 4096));
  CHECK(c.other.value == Approx(0.15e9 + 2 * 131'072 * 128));
  CHECK(c.graphs.value == 0);
  CHECK(c.block.value == 16 * 131'072);  // K and V of 8 heads of 128 in 32 layers, 2 B each
  CHECK(c.kv == c.usable - c.weights - c.activation - c.other);
  CHECK(c.blocks == static_cast<std::int64_t>(c.kv / c.block));
  CHECK(c.tokens() == 16 * c.blocks);
}

TEST_CASE("more tokens, sequences or graphs leave less, and blocks of another size the same") {
  const auto tokens = [](const EngineMemory& memory) {
    return capacity("llama-3.1-8b", "rtx4090", 1, memory).tokens();
  };
  const auto with = [](std::int64_t EngineMemory::*member, std::int64_t value) {
    EngineMemory memory = kSmall;
    memory.*member = value;
    return memory;
  };
  CHECK(tokens(with(&EngineMemory::batched_tokens, 16'384)) < tokens(kSmall));
  CHECK(tokens(with(&EngineMemory::max_sequences, 128)) > tokens(kSmall));
  CHECK(tokens(with(&EngineMemory::graph_rows, 512)) < tokens(kSmall));
  CHECK(tokens(with(&EngineMemory::block_size, 64)) == Approx(tokens(kSmall)).margin(64));
  EngineMemory none = kSmall;
  none.utilisation = 0.5;  // 12.6 GB, where weights take 16
  CHECK(tokens(none) == 0);
  CHECK(capacity("llama-3.1-8b", "rtx4090", 1, none).kv.value < 0);
}

TEST_CASE("graphs of 51 sizes are two of each: 0.65 GB of 32 layers") {
  EngineMemory memory = kSmall;
  memory.graph_rows = 512;  // 1, 2, 4; 32 multiples of 8 up to 256; 16 of 16 up to 512
  CHECK(capacity("llama-3.1-8b", "rtx4090", 1, memory).graphs.value == Approx(2e5 * 2 * 51 * 32));
}

TEST_CASE("SGLang sizes weights and cache together, TensorRT-LLM takes a share of what is free") {
  EngineMemory memory = kSmall;
  memory.room = EngineMemory::Room::weights_and_cache;
  const KvCapacity sglang = capacity("llama-3.1-8b", "rtx4090", 1, memory);
  CHECK(sglang.kv == sglang.usable - sglang.weights);
  memory.room = EngineMemory::Room::share_of_free;
  const KvCapacity trtllm = capacity("llama-3.1-8b", "rtx4090", 1, memory);
  CHECK(trtllm.kv.value ==
        Approx(0.9 * (23.52 * kGiB - trtllm.weights.value - trtllm.activation.value - trtllm.other.value)));
}

TEST_CASE("of a pipeline the stage that has room for fewest blocks counts, of windows the tokens of one sequence") {
  EngineMemory memory = kSmall;
  const auto staged = [&](std::int64_t pipeline) {
    return kv_capacity(test::estimator("llama-3.1-70b", "h100-sxm", {.tensor = 2, .pipeline = pipeline}), memory);
  };
  CHECK(staged(2).blocks > 2 * capacity("llama-3.1-70b", "h100-sxm", 2, memory).blocks);
  const KvCapacity many = capacity("gemma-2-9b", "h100-sxm", 1, memory);
  memory.sequence_tokens = 8192;  // every other layer keeps 4,096
  const KvCapacity one = capacity("gemma-2-9b", "h100-sxm", 1, memory);
  CHECK(one.block.value == Approx(0.75 * many.block.value));
}

}  // namespace llmperf::kv_capacity_test
