// The command that starts an engine as an answer has it, or the manifest that runs it, and such a command read back as
// a request.
//
// Flags are those of vLLM 0.33 (engine/arg_utils.py), SGLang 0.5.23 (srt/arg_groups/fields, srt/server_args.py) and
// TensorRT-LLM 1.2 (commands/serve.py); tests/cli/launch has their lists. What they mean by them:
//
// * vLLM's --enable-expert-parallel spreads experts over all devices of tp and dp; without it they are divided over
// them.
// * SGLang's --enable-dp-attention takes the ranks of dp out of those of tp, and divides --max-running-requests and
//   --chunked-prefill-size by them (server_args.py, scheduler.py).
// * vLLM reads 32k as 32,000 tokens and 32K as 32,768 (utils/argparse_utils.py).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/output.h"
#include "request/request.h"
#include "request/sources.h"

namespace llmperf::cli {

// What each engine calls a field, in the order of serving::EngineKind; empty: it has no flag.
struct LaunchFlag {
  std::string_view field;
  std::array<std::string_view, 3> flags;  // vLLM, SGLang, TensorRT-LLM
};
inline constexpr LaunchFlag kLaunchFlags[] = {
    {"tp", {"--tensor-parallel-size", "--tp-size", "--tp_size"}},
    {"pp", {"--pipeline-parallel-size", "--pp-size", "--pp_size"}},
    {"dp", {"--data-parallel-size", "--dp-size", ""}},
    {"ep", {"--enable-expert-parallel", "--ep-size", "--ep_size"}},
    {"redundant-experts", {"", "--ep-num-redundant-experts", ""}},
    {"lora", {"--max-lora-rank", "--max-lora-rank", ""}},
    {"adapters", {"--max-loras", "--max-loras-per-batch", ""}},
    {"weights", {"--quantization", "--quantization", ""}},
    {"activations", {"--dtype", "--dtype", ""}},
    {"kv", {"--kv-cache-dtype", "--kv-cache-dtype", ""}},
    {"kv-utilisation", {"--gpu-memory-utilization", "--mem-fraction-static", "--kv_cache_free_gpu_memory_fraction"}},
    {"kv-blocks", {"--num-gpu-blocks-override", "", ""}},
    {"block-size", {"--block-size", "--page-size", ""}},
    {"max-model-len", {"--max-model-len", "--context-length", "--max_seq_len"}},
    {"max-seqs", {"--max-num-seqs", "--max-running-requests", "--max_batch_size"}},
    {"max-batched-tokens", {"--max-num-batched-tokens", "--chunked-prefill-size", "--max_num_tokens"}},
    {"max-queue", {"", "--max-queued-requests", ""}},
    {"scheduler-recv-interval", {"", "--scheduler-recv-interval", ""}}};

// What a weight scheme is called behind --quantization: the word of vLLM and that of SGLang first, then others that are
// read as it.
struct LaunchScheme {
  std::string_view scheme, vllm, sglang, others;
};
inline constexpr LaunchScheme kLaunchSchemes[] = {
    {"fp8", "fp8", "fp8", "modelopt modelopt_fp8 fp8_per_tensor ptpc_fp8 fbgemm_fp8"},
    {"fp8-channel", "fp8_per_channel", "w8a8_fp8", ""},
    {"fp8-block128", "fp8_per_block", "", ""},
    {"mxfp8", "mxfp8", "mxfp8", "modelopt_mxfp8"},
    {"int8", "int8_per_channel_weight_only", "", ""},
    {"w8a8", "", "w8a8_int8", ""},
    {"awq", "awq", "awq", "awq_marlin auto_awq"},
    {"gptq", "gptq", "gptq", "gptq_marlin auto_gptq"},
    {"nvfp4", "modelopt_fp4", "modelopt_fp4", "nvfp4_per_token nvfp4_online petit_nvfp4"},
    {"mxfp4", "mxfp4", "mxfp4", "gpt_oss_mxfp4 quark_mxfp4"},
    {"nf4", "", "bitsandbytes", ""}};

enum class Launch : std::uint8_t { vllm, sglang, trtllm, k8s };

// The command of the engine that the request names, or a Deployment of `replicas` such engines with its Service. The
// sizes that decide what it holds are written even where the engine would choose them, since the answer rests on them.
// What no flag says stands before it as comments. Throws Error: bad_input for another engine's command and plans that
// no command says, infeasible where the engine would not start.
std::string launch_text(const request::Request& request, request::Sources& sources, Launch as, std::int64_t replicas);

struct ReadLaunch {
  request::Request request;
  std::vector<std::string> notes;  // what of the command is not used, and what stands for what there is none of
};
// Of a command, a script with one, or YAML: a manifest, a file of docker compose, an engine's --config. `name` is for
// messages. Throws Error(bad_input) where there is no engine's command in it, or a value that cannot be read.
ReadLaunch read_launch(const std::string& text, const std::string& name);

// ---- Flags.

void add_emit(Command& command, std::optional<Launch>& emit);
// Throws Error(bad_input) for flags that say how a report is written, where none is.
void check_emit(const Context& context);
// Printed in place of a report.
Answer emitted(const request::Request& request, request::Sources& sources, Launch emit, std::int64_t replicas);
// `given`: the file that has the command, - for stdin, or the command itself.
ReadLaunch read_from(const std::string& given);

}  // namespace llmperf::cli
