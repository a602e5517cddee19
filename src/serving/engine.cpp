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

void vllm_defaults(const hardware::Device& device, EngineSettings& s) {
  constexpr double kLarge = 70 * kGiB;
  const bool large = *device.dram().capacity > Bytes{kLarge} && to_lower(device.name).find("a100") == std::string::npos;
  s.max_batched_tokens = large ? 8192 : 2048;
  // PR #17885 of May 2025 told devices apart, PR #26044 of October raised the number of sequences.
  s.max_sequences = large && since(s.version, {0, 11, 1}) ? 1024 : 256;
  if (!since(s.version, {0, 9})) s.max_batched_tokens = 2048;
  s.kv_utilisation = since(s.version, {0, 20}) ? 0.92 : 0.9;
  s.counts_graphs = since(s.version, {0, 20});
  s.reserves_full_input = since(s.version, {0, 18});
  s.asynchronous = since(s.version, {0, 12});
}

void sglang_defaults(const hardware::Device& device, std::int64_t devices, EngineSettings& s) {
  const double memory = device.dram().capacity->value / kGiB;
  s.max_batched_tokens = memory < 24 ? 2048 : memory < 60 ? 4096 : memory < 160 ? 8192 : 16384;
  s.max_sequences = 2048;  // the KV cache decides
  s.block_size = 1;
  s.kv_utilisation = devices >= 16 ? 0.79 : devices >= 8 ? 0.81 : devices >= 4 ? 0.85 : devices >= 2 ? 0.87 : 0.88;
  s.graph_rows = memory >= 60 && devices >= 4 ? 512 : memory >= 60 ? 256 : 160;
}

}  // namespace

EngineKind parse_engine_kind(std::string_view text) {
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
  s.kind = parse_engine_kind(name_and_version.substr(0, at));
  if (at != std::string_view::npos) {
    s.version = name_and_version.substr(at + 1);
    if (!hardware::parse_version(s.version)) {
      throw Error::bad_input(fmt::format("`engine`: {} is no version", quote(s.version)), "vllm@0.15.1");
    }
    // Refuses what never was.
    hardware::era_by_text(hardware::all_engines(), device.family, std::string(name(s.kind)), s.version);
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
