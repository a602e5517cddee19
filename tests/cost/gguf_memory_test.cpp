// Caches and states against the sizes that llama.cpp prints when it loads a model ("KV self size", "R (f32)", "S
// (f32)").
#include <fmt/format.h>

#include <string>

#include "catch.h"
#include "cost/memory.h"
#include "model/gguf/tensors.h"
#include "model/gguf_models.h"
#include "model/weight_layout.h"

namespace llmperf::gguf_memory_test {

namespace {

graph::Execution loaded(const model::Decoder& decoder, const std::string& kv = "fp16") {
  graph::Execution e;
  e.model = &decoder;
  e.weights = model::make_layout(decoder, "q8_0", Dtype::fp16, model::GgufEra::v2026);
  e.windows = model::gguf_keeps_windows(decoder);
  e.activations = Dtype::fp16;
  e.kv = {model::parse_kv_scheme(kv), model::parse_kv_scheme(kv)};
  return e;
}

// As llama.cpp prints it: MiB to two decimals.
std::string mib(double bytes) { return fmt::format("{:.2f}", bytes / (1024 * 1024)); }

std::string cache(const std::string& yaml, std::int64_t cells, const std::string& kv = "fp16") {
  const model::Decoder decoder = described(yaml);
  return mib(cost::kv_cache_bytes(loaded(decoder, kv), cells).device.value);
}

struct State {
  std::string convolutions;  // R
  std::string states;        // S
};
State state(const std::string& yaml) {
  const model::Decoder decoder = described(yaml);
  model::Decoder without = decoder;
  for (model::Layer& layer : without.kinds) {
    if (layer.recurrent) layer.recurrent->conv = 0;
  }
  const double all = cost::state_bytes(loaded(decoder)).device.value;
  const double states = cost::state_bytes(loaded(without)).device.value;
  return {mib(all - states), mib(states)};
}

}  // namespace

TEST_CASE("states are what llama.cpp prints: convolutions and recurrences in 32 bits") {
  const State next = state(kQwen3Next);  // 36 layers of 8192 x 3 and of 32 x 128 x 128
  CHECK(next.convolutions == "3.38");
  CHECK(next.states == "72.00");
  const State dense = state(kQwen35);
  CHECK(dense.convolutions == "5.62");
  CHECK(dense.states == "144.00");
  // 23 layers of (4096 + 2 x 8 x 128) x 3 and of 64 x 64 x 128 (ollama/ollama#17692).
  const State nemotron = state(kNemotron3Nano);
  CHECK(nemotron.convolutions == "1.62");
  CHECK(nemotron.states == "46.00");
  const State lfm2 = state(kLfm2);  // 10 layers of 2 x 2048
  CHECK(lfm2.convolutions == "0.16");
  CHECK(lfm2.states == "0.00");
}

TEST_CASE("caches are what llama.cpp prints, of the layers that attend") {
  CHECK(cache(kQwen35, 24'576) == "1536.00");      // 16 layers
  CHECK(cache(kLfm2, 4096) == "48.00");            // 6 layers
  CHECK(cache(kGlm45Air, 131'072) == "23552.00");  // 46 layers, none of the one for the next token
  // 62 x 2 x 1024 elements in blocks of 34 bytes.
  CHECK(cache(kMinimaxM2, 65'536, "q8_0") == "8432.00");
}

TEST_CASE("a cache of latents has keys alone, and one of index keys beside it in the type of keys") {
  // 78 x 576 x 2 bytes a token and, in the 21 layers with an indexer, 128 x 2: 44928 and 2688 MiB are printed.
  CHECK(cache(kGlm52, 524'288) == fmt::format("{:.2f}", 44928.0 + 2688.0));
}

TEST_CASE(
    "layers with a window have cells for it and a micro-batch; values that are the keys are cached all the same") {
  // 5 layers of 2 x 512 at 262144 cells and 25 of 8 x 256 at 1536, keys and values: 2720.00 and 159.38 are printed.
  CHECK(cache(kGemma4Moe, 262'144, "q8_0") == fmt::format("{:.2f}", 2720.0 + 159.375));
}

}  // namespace llmperf::gguf_memory_test
