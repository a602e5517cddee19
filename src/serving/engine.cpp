#include "serving/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "hardware/engine.h"

namespace llmperf::serving {
namespace {

// Versions compare part by part; nothing said is the newest.
bool since(const std::string& version, const hardware::Version& first) {
  const std::optional<hardware::Version> v = hardware::parse_version(version);
  return !v || *v >= first;
}

// Kernels of mxfp4 experts: Marlin's before Hopper, in vLLM on it as well up to 0.10, then Triton's; Blackwell has its
// own.
estimate::ExpertLayout expert_layout(const hardware::Device& device, const EngineSettings& s) {
  using Layout = estimate::ExpertLayout;
  if (device.family.starts_with("amd")) return Layout::triton;
  if (s.kind == EngineKind::llama_cpp || !device.family.starts_with("nvidia")) return Layout::stored;
  if (device.family.starts_with("nvidia-blackwell")) return Layout::both;
  const bool triton = device.family == "nvidia-hopper" && (s.kind != EngineKind::vllm || since(s.version, {0, 11}));
  return triton ? Layout::triton : Layout::marlin;
}

// What lies where when the cache is sized (v1/worker/gpu_worker.py, gpu_model_runner.py, v1/core/kv_cache_utils.py).
void vllm_memory(EngineSettings& s) {
  estimate::EngineMemory& m = s.memory;
  m.profiles_images = true;
  // Groups of layers with pages of their own; that windows do not hold all tokens was printed later, and of steps in
  // flight asynchronous scheduling has two.
  m.counts_states = since(s.version, {0, 12});
  m.pool.state_pages = since(s.version, {0, 15}) ? 2 : 1;  // prefixes of states are cached
  m.pool.windows_are_full = !since(s.version, {0, 10});
  m.prints_concurrency = since(s.version, {0, 21});
  m.pool.one_of_each = !since(s.version, {0, 26});
  if (since(s.version, {0, 26}) && s.asynchronous) m.steps_in_flight = 2;
  if (since(s.version, {0, 11, 1})) return;
  // NCCL and custom all-reduces came after the first look at the memory, and the sampler made two copies more.
  m.sampler_rows = 9.5;
  m.exchanges = Bytes{since(s.version, {0, 8}) ? 2.4e9 : 1.2e9};
  if (since(s.version, {0, 7}) && !since(s.version, {0, 8})) {
    // V1 as it began: logits of every token, in 16 bits and widened twice, and the context was not there before.
    m.token_logits = 10;
    m.libraries = Bytes{0.7e9};
  }
}

void vllm_defaults(const hardware::Device& device, EngineSettings& s) {
  constexpr double kLarge = 70 * kGiB;
  // PR #17885 of May 2025 told the A100 apart.
  const bool a100 = to_lower(device.name).find("a100") != std::string::npos && since(s.version, {0, 9});
  const bool large = *device.dram().capacity > Bytes{kLarge} && !a100 && since(s.version, {0, 8, 3});
  s.max_batched_tokens = large ? 8192 : 2048;
  s.max_sequences = large ? 1024 : 256;
  s.kv_utilisation = since(s.version, {0, 20}) ? 0.92 : 0.9;
  s.counts_graphs = since(s.version, {0, 20});
  s.reserves_full_input = since(s.version, {0, 18});
  s.asynchronous = since(s.version, {0, 14});
  if (device.family.starts_with("ascend")) s.block_size = 128;
  vllm_memory(s);
}

void sglang_defaults(const hardware::Device& device, std::int64_t devices, EngineSettings& s) {
  const double memory = device.dram().capacity->value / kGiB;
  s.max_batched_tokens = memory < 24 ? 2048 : memory < 60 ? 4096 : memory < 160 ? 8192 : 16384;
  s.max_sequences = 2048;  // the KV cache decides
  s.block_size = 1;
  s.kv_utilisation = devices >= 16 ? 0.79 : devices >= 8 ? 0.81 : devices >= 4 ? 0.85 : devices >= 2 ? 0.87 : 0.88;
  s.graph_rows = memory >= 60 && devices >= 4 ? 512 : memory >= 60 ? 256 : 160;
  // swa_full_tokens_ratio and mamba_full_memory_ratio: windows have slots of their own, for 0.8 as many tokens, and
  // states 0.9 of the room of keys and values.
  s.memory.pool.window_share = since(s.version, {0, 4, 9}) ? 0.8 : 1;
  // Its share is of what is free when it first looks, behind the context and NCCL: of 79.2 GiB it prints 78.4 as
  // available on one H100, 77.4 on each of eight.
  s.memory.libraries = Bytes{0.65e9};
  s.memory.exchanges = Bytes{1.2e9};
  s.memory.pool.state_share = 0.9;
}

}  // namespace

EngineKind parse_engine_kind(std::string_view text) {
  text = text.substr(0, text.find('@'));
  for (std::size_t i = 0; i < kEngines.size(); ++i) {
    if (text == kEngines[i]) return static_cast<EngineKind>(i);
  }
  if (text == "tensorrt-llm") return EngineKind::trtllm;
  if (text == "llamacpp" || text == "llama-server") return EngineKind::llama_cpp;
  const std::vector<std::string> names(kEngines.begin(), kEngines.end());
  throw Error::bad_input(fmt::format("`engine`: unknown engine {}", quote(text)), name_hint(text, names));
}

EngineSettings engine_defaults(std::string_view name_and_version, const hardware::Device& device,
                               std::int64_t devices) {
  const std::size_t at = name_and_version.find('@');
  EngineSettings s;
  s.kind = parse_engine_kind(name_and_version);
  if (at != std::string_view::npos) {
    s.version = name_and_version.substr(at + 1);
    if (!hardware::parse_version(s.version)) {
      throw Error::bad_input(fmt::format("`engine`: {} is no version", quote(s.version)), "vllm@0.15.1");
    }
    // Refuses what never was.
    hardware::era_by_text(hardware::all_engines(), device.family, std::string(name(s.kind)), s.version);
  }
  s.memory.experts = expert_layout(device, s);
  if (s.kind != EngineKind::vllm) {
    s.memory.pool.layout = estimate::PoolRules::Layout::slots;
    s.memory.holds_longest = false;  // they cut requests to what there is
  }
  switch (s.kind) {
    case EngineKind::vllm: vllm_defaults(device, s); break;
    case EngineKind::sglang: sglang_defaults(device, devices, s); break;
    case EngineKind::trtllm:
      s.max_batched_tokens = 8192;
      s.max_sequences = 2048;
      s.block_size = 32;
      s.kv_utilisation = 0.9;
      s.chunked_prefill = false;
      s.captures_graphs = false;
      break;
    case EngineKind::llama_cpp:
      s.max_batched_tokens = 2048;
      s.max_sequences = 4;
      s.block_size = 1;
      s.kv_utilisation = 1;
      s.captures_graphs = false;
      s.asynchronous = false;
      break;
  }
  return s;
}

}  // namespace llmperf::serving
