// Serving engines and their settings: the defaults of each by version, device and model, all of which can be changed.
//
// vLLM: vllm/config/{scheduler,cache,vllm}.py, engine/arg_utils.py (get_batch_defaults) and v1/core/sched/scheduler.py,
// of 2026-03. SGLang: python/sglang/srt/server_args.py, environ.py, managers/schedule_policy.py. TensorRT-LLM: its
// SchedulerConfig and the tuning guide of 1.x. llama.cpp: tools/server.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "estimate/engine_memory.h"
#include "hardware/device.h"

namespace llmperf::serving {

enum class EngineKind : std::uint8_t { vllm, sglang, trtllm, llama_cpp };
inline constexpr std::array<std::string_view, 4> kEngines = {"vllm", "sglang", "trtllm", "llama.cpp"};
constexpr std::string_view name(EngineKind kind) { return kEngines[static_cast<std::size_t>(kind)]; }

// When TensorRT-LLM admits a request: when all that it may ever need is free (so that nothing is ever paused), or when
// its prompt is.
enum class Admission : std::uint8_t { guaranteed_no_evict, max_utilisation };

struct EngineSettings {
  EngineKind kind = EngineKind::vllm;
  std::string version;                     // empty: the newest that is known
  std::int64_t max_batched_tokens = 8192;  // of a step; SGLang: chunked_prefill_size, llama.cpp: n_batch
  std::int64_t max_sequences = 1024;       // that run at once; llama.cpp: slots
  bool sequences_asked = false;            // … as somebody chose, not the engine's default
  double kv_utilisation = 0.92;           // share of memory; SGLang: mem_fraction_static, TensorRT-LLM: of what is free
  std::int64_t block_size = 16;           // tokens
  std::optional<std::int64_t> kv_blocks;  // instead of what the memory has room for
  std::int64_t max_model_len = 0;         // tokens of the longest sequence; 0: what the model is made for
  estimate::EngineMemory memory;          // of its version; what stands here as well is taken from here (memory_of)
  bool prefix_caching = true;
  bool chunked_prefill = true;
  std::int64_t long_prefill_threshold = 0;  // vLLM: tokens of a prompt in a step at most; 0: no such limit
  bool reserves_full_input = true;          // vLLM: all of a prompt's blocks must be free, not its first chunk's alone
  double watermark = 0;                     // vLLM: share of the blocks that stays free where something runs
  bool asynchronous = true;  // the next step is prepared while one runs; else `host_step` comes before each
  Seconds host_step{};       // to prepare a step
  // That a batch is padded to a captured graph's rows is in what a step was measured to take, of any number of rows.
  bool captures_graphs = true;
  bool counts_graphs = true;  // their memory is taken off before the KV cache is sized
  std::int64_t graph_rows = 512;
  Seconds frontend{};  // of a request, before its first step: HTTP, tokenising
  // SGLang.
  bool mixes = false;                       // prompts and decodes in one step
  std::int64_t max_prefill_tokens = 16384;  // of a step of prompts
  double conservativeness = 1;              // of the share of max_tokens that is reserved
  std::optional<std::int64_t> max_queue;    // requests that wait at most; what comes then is rejected
  std::int64_t recv_interval = 1;           // steps of decode in which it looks once for new requests
  Admission admission = Admission::guaranteed_no_evict;
  bool unified_kv = true;  // llama.cpp: slots share one cache, else each has its part
};

// Of "vllm" and "vllm@0.15.1". Throws Error(bad_input) with the nearest names.
EngineKind parse_engine_kind(std::string_view text);
// "vllm", "vllm@0.15.1".
EngineSettings engine_defaults(std::string_view name_and_version, const hardware::Device& device, std::int64_t devices);

}  // namespace llmperf::serving
