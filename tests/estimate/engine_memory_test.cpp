// Caches that engines have printed. The blocks of vLLM 0.15.1 on H100 are of
// inference-sim/sim-to-real-accuracy-validation at dcec3fd (results_trainval/error_records.csv), those of vLLM 0.19.0
// on an RTX 4090 of casys-kaist/LLMServingSim at 5daddb2 (bench/examples/RTX4090/Llama-3.1-8B/vllm); utilisation 0.9,
// blocks of 16.
#include "estimate/engine_memory.h"

#include <cstdint>
#include <string>

#include "catch.h"
#include "estimate/plan_cases.h"

namespace llmperf::engine_memory_test {

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
  CHECK(c.tokens == 16 * c.blocks);
  CHECK(c.max_model_len == 131'072);
  CHECK(c.sequence.value == 131'072.0 * 131'072);
  CHECK(c.sequences == Approx(static_cast<double>(c.blocks) / 8192));
  CHECK(c.longest == 16 * c.blocks);
}

TEST_CASE("more tokens, sequences or graphs leave less, and blocks of another size the same") {
  const auto tokens = [](const EngineMemory& memory) { return capacity("llama-3.1-8b", "rtx4090", 1, memory).tokens; };
  const auto with = [](std::int64_t EngineMemory::*member, std::int64_t value) {
    EngineMemory memory = kSmall;
    memory.*member = value;
    return memory;
  };
  EngineMemory pages = kSmall;
  pages.pool.page = 64;
  CHECK(tokens(with(&EngineMemory::batched_tokens, 16'384)) < tokens(kSmall));
  CHECK(tokens(with(&EngineMemory::max_sequences, 128)) > tokens(kSmall));
  CHECK(tokens(with(&EngineMemory::graph_rows, 512)) < tokens(kSmall));
  CHECK(tokens(pages) == Approx(tokens(kSmall)).margin(64));
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

TEST_CASE("of a pipeline the stage that has room for fewest blocks counts") {
  const KvCapacity two =
      kv_capacity(test::estimator("llama-3.1-70b", "h100-sxm", {.tensor = 2, .pipeline = 2}), kSmall);
  CHECK(two.blocks > 2 * capacity("llama-3.1-70b", "h100-sxm", 2, kSmall).blocks);
}

namespace {

KvPool pool_of(const Estimator& estimator, const PoolRules& rules) {
  return {estimator.setup().execution, estimator.stages().front().layers, rules};
}
constexpr double kPage = 256 * 1024;
void kSmallCache(Choices& choices) { choices.kv = "fp8"; }

}  // namespace

// vllm#49878: five groups of ten windowed layers (16 KV heads of 256: 16 tokens in 256 KiB) and one of ten full ones (4
// of 512: 32 tokens); hf-mem#61: 24.54 GiB hold 26,800 tokens.
TEST_CASE("pages of windowed and full layers are of one size, and a sequence holds a window and the steps in flight") {
  const auto gemma = test::estimator("gemma-4-31b", "h100-sxm", {});
  const auto with = [&](std::int64_t in_flight) { return pool_of(gemma, {.in_flight = in_flight}); };
  const KvPool pool = with(32'768);
  CHECK(pool.page().value == 10 * kPage);
  CHECK(pool.pages(262'144) == 8192 + 5 * 2113);
  CHECK(pool.page().value * pool.pages(262'144) / kGiB == Approx(45.79).margin(0.005));
  CHECK(with(65'536).pages(262'144) == 8192 + 5 * 4161);
  CHECK(with(65'536).pages(262'144) * 10 * kPage / kGiB == Approx(70.79).margin(0.005));
  // Shorter than a window and a step: all of it, and the page where it begins.
  CHECK(pool.pages(1024) == 32 + 5 * (64 + 1));
  CHECK(pool.tokens_in_all_groups(static_cast<std::int64_t>(24.54 * kGiB / (10 * kPage))) == 26'800);
  // Where windows are kept as full layers all are one group.
  const KvPool full = pool_of(gemma, {.windows_are_full = true});
  CHECK(full.page().value == 16 * (50 * 16'384 + 10 * 8192));
  CHECK(full.pages(262'144) == 16'384);
}

// talos-argocd-proxmox#1995: 4.99 GiB a device hold 302,921 tokens, 2.31 sequences of 131,072.
TEST_CASE("a state is a page, for which pages of attention hold as many tokens as it takes") {
  const auto qwen = test::estimator("qwen3.5-27b", "rtx3090", {.tensor = 2}, kSmallCache);
  const KvPool pool = pool_of(qwen, {});
  // 24 heads of 128 x 128 in fp32 and three inputs of 5,120 channels: 1,603,584 B, of 1,024 B a token.
  CHECK(pool.page_tokens() == 1568);
  CHECK(pool.page().value == 16 * 1568 * 1024);
  // 84 pages of full attention, two in each of three groups of states.
  CHECK(pool.pages(131'072) == 84 + 3 * 2);
  const auto blocks = static_cast<std::int64_t>(4.99 * kGiB / pool.page().value);
  CHECK(static_cast<std::int64_t>(static_cast<double>(blocks) / 90 * 131'072) == 302'921);
  CHECK(pool_of(qwen, {.state_pages = 1}).pages(131'072) == 84 + 3);
}

// vllm#44376 (0.22, steps of 16,384 tokens): 6.66 GiB for 30,000 tokens, and 5.44 GiB hold 13,528; vllm#54703 (0.28):
// its pages of 37,440, 8,640 and 1,728 B.
TEST_CASE("a block of compressed keys is a page of each size in as many layers as the largest group has") {
  const auto flash = test::estimator("deepseek-v4-flash", "h200-sxm", {.tensor = 2}, kSmallCache);
  const KvPool pool = pool_of(flash, {.in_flight = 16'384});
  CHECK(pool.page().value == 22 * (37'440 + 8640 + 1728));
  CHECK(pool.pages(30'000) == 118 + 2 * 259 + 4099 + 2065);
  CHECK(pool.page().value * pool.pages(30'000) / kGiB == Approx(6.66).margin(0.005));
  CHECK(pool.pages(13'528) <= 5.445 * kGiB / pool.page().value);
  CHECK(pool.pages(13'528 + 256) > 5.44 * kGiB / pool.page().value);
  CHECK(pool_of(flash, {.in_flight = 16'384, .one_of_each = false}).page().value == 1'002'240);
}

TEST_CASE("slots: windows of SGLang have 0.8 of the tokens, states 0.9 of the room of keys and values") {
  const auto gpt = test::estimator("gpt-oss-20b", "h100-sxm", {});
  const PoolRules slots{.layout = PoolRules::Layout::slots, .page = 1};
  PoolRules shares = slots;
  shares.window_share = 0.8;
  CHECK(pool_of(gpt, shares).page().value == Approx(12 * 2048 * (1 + 0.8)));  // 8 KV heads of 64, in 16 bits
  CHECK(pool_of(gpt, shares).pages(131'072) == 131'072);
  // Without a pool of their own windows of 128 hold no more.
  CHECK(pool_of(gpt, slots).page().value == 24 * 2048);
  CHECK(pool_of(gpt, slots).pages(131'072) == Approx(0.5 * (131'072 + 128)));
  const auto next = test::estimator("qwen3-next-80b-a3b", "h100-sxm", {.tensor = 4});
  shares.state_share = 0.9;
  CHECK(pool_of(next, shares).page().value == Approx(12 * 2 * 256 * 2 * 1.9));
}

// vllm#33155 and #23278: 64.38 GiB with Triton's kernels, 65.97 with Marlin's.
TEST_CASE("kernels fill up the matrices of mxfp4 experts") {
  EngineMemory memory = kSmall;
  const auto loaded = [&](ExpertLayout layout) {
    memory.experts = layout;
    return capacity("gpt-oss-120b", "h100-sxm", 1, memory).weights.value / kGiB;
  };
  CHECK(loaded(ExpertLayout::stored) == Approx(60.77).margin(0.01));
  CHECK(loaded(ExpertLayout::triton) == Approx(64.38).epsilon(0.005));
  CHECK(loaded(ExpertLayout::marlin) == Approx(65.97).epsilon(0.005));
  // Widths of 2,048 and 4,096 need no filling.
  CHECK(capacity("deepseek-v4-flash", "h100-sxm", 8, memory).padding.value == 0);
}

TEST_CASE("the profile run sees the largest image, or the step, whichever takes more") {
  EngineMemory memory = kSmall;
  const KvCapacity text = capacity("qwen3.5-27b", "h100-sxm", 1, memory);
  memory.profiles_images = true;
  const KvCapacity seen = capacity("qwen3.5-27b", "h100-sxm", 1, memory);
  // 65,536 patches of 4096 x 4096: of each 3 x 2 x 16 x 16 pixels, and 1,152 of the stream twice with the MLP's 4,304
  // twice; 16,384 rows of 5,120.
  CHECK(seen.images.value == Approx(2.0 * (65'536 * (1536 + 2 * 1152 + 2 * 4304) + 16'384 * 5120)));
  CHECK(seen.activation == std::max(text.activation, seen.images));
  memory.batched_tokens = 40'000;  // two of 16,384
  CHECK(capacity("qwen3.5-27b", "h100-sxm", 1, memory).images.value == Approx(2 * seen.images.value));
}

TEST_CASE("an engine refuses what it does at its start, with the nearest that works") {
  EngineMemory memory = kSmall;
  const auto of = [&](const char* model) { return capacity(model, "rtx4090", 1, memory); };
  const KvCapacity longest = of("llama-3.1-8b");  // 5.4 GB for sequences of 17.2 GB
  CHECK(longest.refusal.find("one sequence of 131,072 tokens takes 16 GiB") != std::string::npos);
  CHECK(longest.remedy.find("`max-model-len` " + std::to_string(longest.longest)) != std::string::npos);
  memory.max_model_len = longest.longest;
  CHECK(of("llama-3.1-8b").refusal.empty());
  memory.max_model_len = longest.longest + 1;
  CHECK_FALSE(of("llama-3.1-8b").refusal.empty());
  memory.holds_longest = false;
  CHECK(of("llama-3.1-8b").refusal.empty());
  memory = kSmall;
  memory.utilisation = 0.6;
  const KvCapacity nothing = of("llama-3.1-8b");
  CHECK(nothing.refusal.starts_with("no memory is left for keys and values"));
  CHECK(nothing.blocks == 0);
  // 1,024 sequences with a state each.
  memory = {.utilisation = 0.9, .max_model_len = 32'768};
  const KvCapacity states = capacity("qwen3.5-27b", "h100-sxm", 1, memory);
  REQUIRE(states.blocks < 1024);
  CHECK(states.remedy == "`max-seqs` " + std::to_string(states.blocks));
}

TEST_CASE("of stages with unlike layers the one counts that holds fewest sequences") {
  // Of eight stages some have no attention: their blocks are states alone, of which there are few tokens to tell.
  const KvCapacity staged =
      kv_capacity(test::estimator("jamba-v0.1", "h200-sxm", {.pipeline = 8}), {.utilisation = 0.9});
  CHECK(staged.tokens == Approx(staged.sequences * 262'144).epsilon(0.01));
  CHECK(staged.sequences < 200);
  // Graphs are those of a stage's layers.
  EngineMemory memory = kSmall;
  memory.graph_rows = 512;
  const auto graphs = [&](std::int64_t pipeline) {
    return kv_capacity(test::estimator("llama-3.1-70b", "h100-sxm", {.tensor = 2, .pipeline = pipeline}), memory)
        .graphs;
  };
  CHECK(graphs(4).value == Approx(graphs(1).value / 4));
}

TEST_CASE("states limit how many sequences run: by the share that SGLang gives them, or out of the same room") {
  EngineMemory memory{.room = EngineMemory::Room::weights_and_cache, .utilisation = 0.88, .max_sequences = 4000};
  memory.pool = {.layout = PoolRules::Layout::slots, .page = 1, .state_share = 0.9};
  const KvCapacity shared = capacity("qwen3.5-27b", "h200-sxm", 1, memory);
  CHECK(shared.at_once == static_cast<std::int64_t>(shared.kv.value * 0.9 / 1.9 / shared.state.value));
  memory.pool.state_share = 0;
  const KvCapacity together = capacity("qwen3.5-27b", "h200-sxm", 1, memory);
  CHECK(together.block.value * together.pool->running_pages(640) ==
        Approx(640 * together.block.value + together.state.value));
}

TEST_CASE("a pool grows with memory and its share, and shrinks with what it is told to hold") {
  const auto of = [](double utilisation, std::int64_t length, std::int64_t tokens) {
    return capacity(
        "gemma-4-31b", "h100-sxm", 1,
        {.utilisation = utilisation, .batched_tokens = tokens, .max_sequences = 256, .max_model_len = length});
  };
  for (double share = 0.88; share < 0.97; share += 0.01) {
    CHECK(of(share + 0.01, 32'768, 2048).kv > of(share, 32'768, 2048).kv);
    CHECK(of(share + 0.01, 32'768, 2048).tokens >= of(share, 32'768, 2048).tokens);
  }
  for (std::int64_t length = 2048; length < 262'144; length *= 2) {
    // Windows count for less in longer sequences: more tokens, in fewer of them.
    CHECK(of(0.95, 2 * length, 2048).tokens >= of(0.95, length, 2048).tokens);
    CHECK(of(0.95, 2 * length, 2048).sequences <= of(0.95, length, 2048).sequences);
    CHECK(of(0.95, length, 2048).longest == of(0.95, 2 * length, 2048).longest);
  }
  CHECK(of(0.95, 32'768, 8192).longest < of(0.95, 32'768, 2048).longest);
}

}  // namespace llmperf::engine_memory_test
