#include "request/request.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/list.h"
#include "base/match.h"
#include "base/number.h"
#include "base/text.h"
#include "base/utf8.h"
#include "descriptor/catalog.h"
#include "descriptor/reader.h"
#include "estimate/estimate.h"
#include "estimate/video.h"
#include "model/decoder.h"
#include "model/quantization.h"
#include "request/names.h"

namespace llmperf::request {

// ---- The table. What a field is called, holds, means and is worth when it is not asked for stands here alone.

namespace {

using enum Values::Sort;

constexpr double kMostRanks = graph::kMostDevices;
constexpr double kMaxTokens = static_cast<double>(estimate::kMaxTokens);
constexpr double kMaxImages = 1000;
constexpr double kMaxBatch = static_cast<double>(estimate::kMaxBatch);
constexpr std::string_view kModel = "Model";
constexpr std::string_view kWork = "Workload";
constexpr std::string_view kHardware = "Hardware";
constexpr std::string_view kRuntime = "Runtime";
constexpr std::string_view kPlan = "Plan";
constexpr std::string_view kGguf = "GGUF";
constexpr std::string_view kVideo = "Video";
constexpr std::string_view kTraining = "Training";
constexpr std::string_view kTraffic = "Traffic";
constexpr std::string_view kEngine = "Engine";
constexpr double kMostRequests = 1e6;
constexpr double kMostReplicas = 1024;
constexpr Values kTokenTypes = {words, nullptr, "bf16 fp16 fp8 int8"};
constexpr Values kOnOff = {words, nullptr, "on off"};
constexpr Values kFloats = {words, nullptr, "bf16 fp16 fp32"};

using R = Request;
// clang-format off
const Field kFields[] = {
    {.name = "model", .member = &R::model, .group = kModel, .type = "MODEL",
     .about = "built-in name or Hugging Face id, YAML file, Hugging Face config.json or its folder, or GGUF file",
     .values = {paths, model_names}, .aliases = "model-path model-id"},
    {.name = "assume", .member = &R::assume, .group = kModel, .type = "FAMILY",
     .about = "read a Hugging Face config as this family, whatever its model_type says; keys that the family does not know "
              "are passed over and named in every output",
     .workloads = "trs", .values = {words, model::family_names}},
    {.name = "hw", .member = &R::hw, .group = kHardware, .type = "DEVICE",
     .about = "built-in name or YAML file; GGUF: several joined by +, such as 2xrtx3090+rtx3060, to which layers are dealt",
     .values = {paths, device_names}, .aliases = "gpu gpu-type hardware"},
    {.name = "batch", .member = &R::batch, .group = kWork, .type = "N",
     .about = "requests processed together",
     .workloads = "tv", .otherwise = "1", .most = kMaxBatch, .kilo = Kilo::decimal, .aliases = "batch-size"},
    {.name = "prompt", .member = &R::prompt, .group = kWork, .type = "TOKENS",
     .about = "prompt tokens of a request; 128k is 131072",
     .workloads = "t", .otherwise = "512", .most = kMaxTokens, .kilo = Kilo::binary,
     .aliases = "input-len input-length random-input-len isl prompt-len n-prompt -p"},
    {.name = "gen", .member = &R::gen, .group = kWork, .type = "TOKENS",
     .about = "tokens to generate for a request; 2k is 2048",
     .workloads = "t", .otherwise = "128", .most = kMaxTokens, .kilo = Kilo::binary,
     .aliases = "output-len output-length random-output-len osl max-tokens max-new-tokens n-predict n-gen -n"},
    {.name = "depth", .member = &R::depth, .group = kWork, .type = "TOKENS",
     .about = "tokens of a request that are cached before its prompt; 4k is 4096",
     .workloads = "t", .otherwise = "0", .least = 0, .most = kMaxTokens, .kilo = Kilo::binary, .aliases = "n-depth -d"},
    {.name = "prefill-chunk", .member = &R::prefill_chunk, .group = kWork, .type = "TOKENS",
     .about = "new tokens of a request in a step of its prefill at most, as engines' chunked prefill cuts prompts; 8k is "
              "8192 [the whole prompt]",
     .workloads = "t", .most = kMaxTokens, .kilo = Kilo::binary, .aliases = "chunked-prefill-size"},
    {.name = "images", .member = &R::images, .group = kWork, .type = "N",
     .about = "images of a request, which the model's vision tower sees before the prefill; their tokens come on top of "
              "`prompt`, or of `input`",
     .workloads = "ts", .otherwise = "0", .least = 0, .most = kMaxImages},
    {.name = "image-size", .member = &R::image_size, .group = kWork, .type = "WIDTHxHEIGHT",
     .about = "of an image in pixels, before the model scales it",
     .workloads = "ts", .otherwise = "1024x1024"},
    {.name = "step", .member = &R::step, .group = kWork, .type = "GROUPS",
     .about = "one step of continuous batching more, shown as a phase of its own: COUNTxNEW@CONTEXT for sequences that "
              "process NEW tokens after CONTEXT cached ones, as in 32x1@2048,1x512@0 for 32 that decode beside a prompt",
     .workloads = "t", .separator = ';'},
    {.name = "phase", .member = &R::phase, .group = kWork, .type = "WHICH",
     .about = "which steps the devices run: both, or prefill or decode alone, the other on other devices: memory is what "
              "that one needs",
     .workloads = "t", .otherwise = "both", .values = {words, nullptr, "both prefill decode"}},
    {.name = "verify", .member = &R::verify, .group = kWork, .type = "TOKENS",
     .about = "tokens of every sequence that a decode step processes: one, and guesses that it verifies (speculative "
              "decoding) of what is not said; `draft` says it",
     .workloads = "t", .otherwise = "1", .most = static_cast<double>(estimate::kMostVerified)},
    {.name = "accept", .member = &R::accept, .group = kWork, .type = "RATE",
     .about = "with `draft` the chance that a token it proposes is kept when those before it are, one for all or a list for "
              "the first, second … (0.85,0.7,0.6; in lists of values 0.85/0.7/0.6), or a file of such numbers; with "
              "`verify` the tokens that a step keeps on the mean",
     .workloads = "ts"},
    {.name = "draft", .member = &R::draft, .group = kWork, .type = "MODEL[:N]",
     .about = "speculative decoding: what proposes N tokens for each decode step to verify, a model, mtp (the model's own "
              "layer for further tokens) or eagle (an EAGLE-3 head) [N: the best of 1 to 8]",
     .workloads = "ts", .values = {paths, draft_names}},
    {.name = "top-k", .member = &R::top_k, .group = kWork, .type = "N",
     .about = "tokens are drawn from the N likeliest, at the cost of the engine's sampler [the likeliest is taken]",
     .workloads = "ts", .most = 1e6},
    {.name = "top-p", .member = &R::top_p, .group = kWork, .type = "SHARE",
     .about = "… or from those that together have this probability", .workloads = "ts", .least = 0, .most = 1},
    {.name = "weights", .member = &R::weights, .group = kModel, .type = "SCHEME",
     .about = "bf16, fp16, fp32, fp8, int8, w8a8, w4a8, w4a16[-gN] (gptq, awq), nvfp4, mxfp4, nf4, a GGUF type "
              "(q4_k_m …), mlx-q4 (MLX), exl2-4.0bpw (EXL2) or bits per weight [the checkpoint's own, else the activation type]",
     .values = {words, weight_names}, .aliases = "quantization quant -q"},
    {.name = "kv", .member = &R::kv, .group = kModel, .type = "SCHEME",
     .about = "KV cache type: bf16, fp16, fp32, fp8, int8, int4, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl [the "
              "checkpoint's own, else the activation type]",
     .workloads = "ts", .values = {words, model::kv_scheme_names}, .aliases = "kv-cache-dtype"},
    {.name = "activations", .member = &R::activations, .group = kModel, .type = "DTYPE",
     .about = "activation type: bf16, fp16, fp32",
     .values = kFloats, .aliases = "dtype"},
    {.name = "routing", .member = &R::routing, .group = kModel, .type = "HOW",
     .about = "how tokens choose experts: balanced, power-law:A (the r-th most popular in proportion to r^-A; 0: all "
              "alike), or a JSON or CSV file of tokens by expert, by which `ep` and `redundant-experts` place them",
     .workloads = "trs", .otherwise = "power-law:0.8", .values = {paths, nullptr, "balanced power-law:0 power-law:0.8"},
     .aliases = "expert-load"},
    {.name = "lora", .member = &R::lora, .group = kModel, .type = "RANK[:TARGETS]",
     .about = "adapters beside frozen weights, on qkvo, qkv+o (q, k, v joint) or all-linear [trained: qkvo; served: "
              "all-linear]",
     .workloads = "trs", .values = {words, nullptr, "16:qkvo 16:all-linear"}, .aliases = "max-lora-rank"},
    {.name = "adapters", .member = &R::adapters, .group = kModel, .type = "N",
     .about = "different ones of `lora` that are held, of which every request uses one [1]",
     .workloads = "ts", .most = 10000, .aliases = "max-loras max-loras-per-batch"},
    {.name = "options", .member = &R::options, .group = kRuntime, .type = "LIST",
     .about = "what the runtime fuses: all, none, or a list of names; no_NAME switches off [all; on an array of "
              "tiles all,joined_vectors,prefetch_weights]",
     .values = {items, option_names}, .separator = ';'},
    {.name = "reserve", .member = &R::reserve, .group = kHardware, .type = "BYTES",
     .about = "memory the runtime keeps for itself [512MiB]",
     .workloads = "tvr"},
    {.name = "runtime", .member = &R::runtime, .group = kRuntime, .type = "NAME",
     .about = "software stack, by name (of a version: vllm@0.6) or profile file [the device's own]; none: the speed of "
              "light",
     .values = {paths, runtime_names}, .aliases = "backend"},
    {.name = "tool", .member = &R::tool, .group = kRuntime, .type = "NAME",
     .about = "what runs the engine and adds to its steps: llama-bench, llama-server, ollama, llama-cpp-python [nothing]",
     .workloads = "ts", .values = {words, nullptr, "llama-bench llama-server ollama llama-cpp-python"}},
    {.name = "execution", .member = &R::execution, .group = kRuntime, .type = "HOW",
     .about = "eager, graph, static-graph or dynamic-graph (dispatched from the host) [the runtime's own]",
     .workloads = "tvs", .values = {words, nullptr, "eager graph static-graph dynamic-graph"}},
    {.name = "power", .member = &R::power, .group = kRuntime, .type = "LOAD",
     .about = "of a profile that says what load leaves of the clock: short (a single prompt) or sustained (steady "
              "serving, training) [the profile's own]",
     .values = {words, nullptr, "short sustained"}},
    {.name = "power-limit", .member = &R::power_limit, .group = kHardware, .type = "WATTS",
     .about = "a device draws no more than 245W: its clock follows, its memory's does not [all of its power]"},
    {.name = "tile-model", .member = &R::tile_model, .group = kHardware, .type = "NAME",
     .about = "arrays of tiles: default (the best mapping found), published (the published mapper's formulas) or "
              "roofline",
     .workloads = "tvr",
     .otherwise = "default", .values = {words, nullptr, "default published roofline"}},
    {.name = "price", .member = &R::price, .group = kHardware, .type = "AMOUNT|FILE",
     .about = "what an hour of one device costs: USD, another currency (2.5EUR), or a YAML or CSV file of prices by device "
              "[the hardware file's]",
     .values = {files}},
    {.name = "gguf-era", .member = &R::gguf_era, .group = kGguf, .type = "ERA",
     .about = "version of llama.cpp's rules for a GGUF `weights`: 2024-02 (before 19 February 2024), 2024, 2025, "
              "2026 [2026]",
     .workloads = "ts", .values = {words, era_names}},
    {.name = "cache-type-k", .member = &R::cache_type_k, .group = kGguf, .type = "TYPE",
     .about = "type of the cached keys, in place of `kv`: f16, q8_0, q4_0 …",
     .workloads = "ts", .values = {words, model::kv_scheme_names}, .aliases = "-ctk"},
    {.name = "cache-type-v", .member = &R::cache_type_v, .group = kGguf, .type = "TYPE",
     .about = "type of the cached values, in place of `kv`",
     .workloads = "ts", .values = {words, model::kv_scheme_names}, .aliases = "-ctv"},
    {.name = "gpu-layers", .member = &R::gpu_layers, .group = kGguf, .type = "N",
     .about = "GGUF: layers on the device, the head counted first, the rest on the host [all]",
     .workloads = "t", .values = {words, nullptr, "all"}, .aliases = "n-gpu-layers -ngl"},
    {.name = "split", .member = &R::split, .group = kGguf, .type = "HOW",
     .about = "GGUF: what `devices` are for: layer (whole layers, one run of them on each) or tensor (each layer is "
              "divided by heads and columns)",
     .workloads = "t", .otherwise = "layer", .values = {words, nullptr, "layer tensor none"}, .aliases = "split-mode -sm"},
    {.name = "tensor-split", .member = &R::tensor_split, .group = kGguf, .type = "SHARES",
     .about = "GGUF: shares of the layers on the devices of `pp`, such as 3,2 [by their memory]",
     .workloads = "t", .separator = ';', .aliases = "-ts"},
    {.name = "host", .member = &R::host, .group = kGguf, .type = "DEVICE",
     .about = "GGUF: the CPU beside the device [ryzen-7950x]",
     .workloads = "t", .values = {paths, host_names}},
    {.name = "n-cpu-moe", .member = &R::n_cpu_moe, .group = kGguf, .type = "N",
     .about = "GGUF: layers, from the first, whose routed experts stay on the host; the rest of them is on the device",
     .workloads = "t", .most = kMostRanks, .aliases = "-ncmoe"},
    {.name = "cpu-moe", .member = &R::cpu_moe, .group = kGguf, .type = "",
     .about = "GGUF: the routed experts of all layers stay on the host",
     .workloads = "t", .aliases = "-cmoe"},
    {.name = "override-tensor", .member = &R::override_tensor, .group = kGguf, .type = "PATTERN=CPU",
     .about = "GGUF: routed experts' matrices whose names match a regular expression stay on the host: "
              "'ffn_up_exps=CPU'; several with commas",
     .workloads = "t", .separator = ';', .aliases = "-ot"},
    {.name = "no-op-offload", .member = &R::no_op_offload, .group = kGguf, .type = "",
     .about = "GGUF: prompts do not take weights that are on the host to the device",
     .workloads = "t"},
    {.name = "no-mmap", .member = &R::no_mmap, .group = kGguf, .type = "",
     .about = "GGUF: weights on the host are in pinned memory, which reaches the device faster than a mapped file",
     .workloads = "t"},
    {.name = "cpu-threads", .member = &R::cpu_threads, .group = kHardware, .type = "N",
     .about = "of a CPU, as device or as host: cores that are used [all]",
     .workloads = "t", .most = kMostRanks, .aliases = "threads -t"},
    {.name = "numa", .member = &R::numa, .group = kHardware, .type = "N",
     .about = "of a CPU, as device or as host: NUMA nodes that are used [all]",
     .workloads = "t", .most = 1024},
    {.name = "tp", .member = &R::tp, .group = kPlan, .type = "N",
     .about = "devices that share every matrix (tensor parallelism); 2x4: in rows x columns",
     .aliases = "tensor-parallel-size tensor-model-parallel-size tensor-parallel tp-size -tp"},
    {.name = "pp", .member = &R::pp, .group = kPlan, .type = "N",
     .about = "pipeline stages",
     .most = kMostRanks, .aliases = "pipeline-parallel-size pipeline-model-parallel-size pipeline-parallel pp-size -pp"},
    {.name = "dp", .member = &R::dp, .group = kPlan, .type = "N",
     .about = "replicas of the model, each with its share of the batch",
     .most = kMostRanks, .aliases = "data-parallel-size data-parallel dp-size -dp"},
    {.name = "ep", .member = &R::ep, .group = kPlan, .type = "N",
     .about = "devices that share the routed experts; a step waits for the busiest of up to 8",
     .workloads = "trs", .most = kMostRanks,
     .aliases = "expert-parallel-size expert-model-parallel-size moe-expert-parallel-size ep-size"},
    {.name = "redundant-experts", .member = &R::redundant_experts, .group = kPlan, .type = "N",
     .about = "experts that are held a second time, so that `ep` may divide what there then is, and devices have alike",
     .workloads = "ts", .most = kMostRanks, .aliases = "num-redundant-experts ep-num-redundant-experts"},
    {.name = "shared-expert-ranks", .member = &R::shared_expert_ranks, .group = kPlan, .type = "N",
     .about = "devices of `ep` that hold the shared expert and no others [every device holds it]",
     .workloads = "ts", .most = kMostRanks},
    {.name = "afd", .member = &R::afd, .group = kPlan, .type = "",
     .about = "attention-FFN disaggregation: the devices of `ep` hold routed experts alone, beside those of `tp` and `dp`, "
              "which hold all else; of `phase` decode",
     .workloads = "t"},
    {.name = "ep-dispatch", .member = &R::ep_dispatch, .group = kPlan, .type = "DTYPE",
     .about = "what tokens travel to experts of other devices as: bf16, fp16, fp8, int8 [as the experts' products "
              "take them]",
     .workloads = "trs", .values = kTokenTypes},
    {.name = "ep-combine", .member = &R::ep_combine, .group = kPlan, .type = "DTYPE",
     .about = "and their results back [the activations' type]",
     .workloads = "trs", .values = kTokenTypes},
    {.name = "sp", .member = &R::sp, .group = kPlan, .type = "WHAT",
     .about = "devices that share a sequence: ulysses:4, ring:2, all-gather:2, ulysses:4xring:2",
     .workloads = "tvr"},
    {.name = "megatron-sp", .member = &R::megatron_sp, .group = kPlan, .type = "",
     .about = "the residual stream over the devices of `tp` too",
     .workloads = "tvr"},
    {.name = "embedding", .member = &R::embedding, .group = kPlan, .type = "HOW",
     .about = "embedding and lm_head over the devices of `tp`: sharded, replicated [as the runtime does]",
     .workloads = "trs", .values = {words, nullptr, "sharded replicated"}},
    {.name = "devices", .member = &R::devices, .group = kPlan, .type = "N",
     .about = "devices in all: what the degrees leave becomes `dp`, with GGUF formats `pp`",
     .most = kMostRanks, .aliases = "num-gpus gpus num-devices world-size"},
    {.name = "devices-per-node", .member = &R::devices_per_node, .group = kPlan, .type = "N",
     .about = "devices of one server [the hardware file's]",
     .most = 1024, .aliases = "gpus-per-node num-gpus-per-node"},
    {.name = "pipeline-batches", .member = &R::pipeline_batches, .group = kPlan, .type = "N",
     .about = "micro-batches that a batch goes through the pipeline in [as many as divide it, up to `pp`], or between "
              "attention and experts (`afd`) [of 1 to 4 those that take least time]",
     .workloads = "t", .most = kMaxBatch},
    {.name = "overlap-batches", .member = &R::overlap_batches, .group = kPlan, .type = "N",
     .about = "2: two micro-batches, each of half the sequences, whose exchanges between devices run beside the other's "
              "ops; 1: one batch",
     .workloads = "t", .otherwise = "1", .most = 2},
    {.name = "ubatch", .member = &R::ubatch, .group = kGguf, .type = "TOKENS",
     .about = "GGUF: tokens computed at once at most: longer prompts are cut [512]",
     .workloads = "ts", .most = kMaxTokens, .kilo = Kilo::binary, .aliases = "ubatch-size -ub"},
    {.name = "resolution", .member = &R::resolution, .group = kVideo, .type = "SIZE",
     .about = "144p to 1080p, or HEIGHTxWIDTH in pixels [720p]",
     .workloads = "v", .values = {words, resolution_names}},
    {.name = "aspect", .member = &R::aspect, .group = kVideo, .type = "H:W",
     .about = "height to width of a named resolution: 9:16, 16:9, 1:1, 3:4 … [9:16]",
     .workloads = "v", .values = {words, nullptr, "9:16 16:9 1:1 3:4 4:3 9:21 2:3 1:2"}},
    {.name = "seconds", .member = &R::seconds, .group = kVideo, .type = "S",
     .about = "length of the video [4]",
     .workloads = "v", .least = 0, .most = 1e6},
    {.name = "frames", .member = &R::frames, .group = kVideo, .type = "N",
     .about = "length in frames; 1: an image",
     .workloads = "v", .least = 0, .most = kMaxTokens, .aliases = "num-frames"},
    {.name = "steps", .member = &R::steps, .group = kVideo, .type = "N",
     .about = "denoising steps [the model's]",
     .workloads = "v", .most = static_cast<double>(estimate::kMaxVideoSteps), .aliases = "num-inference-steps"},
    {.name = "cfg", .member = &R::cfg, .group = kVideo, .type = "WHETHER",
     .about = "classifier-free guidance, which doubles a step's batch: on, off [on]",
     .workloads = "v", .values = {words, nullptr, "on off"}},
    {.name = "text-tokens", .member = &R::text_tokens, .group = kVideo, .type = "TOKENS",
     .about = "tokens of the prompt [as many as the model takes]",
     .workloads = "v", .most = kMaxTokens, .kilo = Kilo::binary},
    {.name = "text-weights", .member = &R::text_weights, .group = kVideo, .type = "DTYPE",
     .about = "type the text encoder is held in: fp32, bf16, fp16 [the model's]",
     .workloads = "v", .values = {words, nullptr, "fp32 bf16 fp16"}},
    {.name = "stages", .member = &R::stages, .group = kVideo, .type = "RANGES",
     .about = "pipeline stages by their units of the depth: 0-13,14-27; each on a sub-mesh: 0-13@2x2/2d",
     .workloads = "v", .separator = ';'},
    {.name = "patches", .member = &R::patches, .group = kVideo, .type = "N",
     .about = "pieces of the latent that stages work on side by side [1]",
     .workloads = "v", .most = kMostRanks},
    {.name = "die-link", .member = &R::die_link, .group = kVideo, .type = "RATE",
     .about = "a ring of dies: bandwidth between neighbours, one direction [the hardware file's links]",
     .workloads = "v"},
    {.name = "training", .member = &R::training, .group = kTraining, .type = "",
     .about = "one training step instead of a generation",
     .workloads = "r"},
    {.name = "global-batch", .member = &R::global_batch, .group = kTraining, .type = "N",
     .about = "sequences of a step, of all replicas [a micro-batch per replica and stage]",
     .workloads = "r", .most = kMaxBatch * kMaxBatch, .kilo = Kilo::decimal, .aliases = "global-batch-size"},
    {.name = "micro-batch", .member = &R::micro_batch, .group = kTraining, .type = "N",
     .about = "sequences that a replica computes at once",
     .workloads = "r", .otherwise = "1", .most = kMaxBatch, .aliases = "micro-batch-size"},
    {.name = "seq", .member = &R::seq, .group = kTraining, .type = "TOKENS",
     .about = "tokens of a sequence; 4k is 4096",
     .workloads = "r", .otherwise = "2048", .most = kMaxTokens, .kilo = Kilo::binary,
     .aliases = "seq-length seq-len sequence-length"},
    {.name = "recompute", .member = &R::recompute, .group = kTraining, .type = "WHAT",
     .about = "activations computed again: none, selective (attention's scores), full or full:N of the layers, ops "
              "(every second product), modules:mlp,moe_act,layernorm,mla_up_proj,core_attn, offload (inputs of layers "
              "wait on the host)",
     .workloads = "r", .otherwise = "none", .values = {words, nullptr, "none selective full ops modules: offload"}},
    {.name = "products", .member = &R::products, .group = kTraining, .type = "TYPE",
     .about = "what products of layers multiply: bf16, fp8, fp8-rowwise, fp8-block, mxfp8, nvfp4",
     .workloads = "r", .otherwise = "bf16", .values = {words, nullptr, "bf16 fp8 fp8-rowwise fp8-block mxfp8 nvfp4"}},
    {.name = "optimizer", .member = &R::optimizer, .group = kTraining, .type = "NAME",
     .about = "its state per parameter: adamw (fp32 copy and two moments), adamw-bf16 (two of 16 bits), adamw-8bit, sgd, "
              "muon",
     .workloads = "r", .otherwise = "adamw", .values = {words, nullptr, "adamw adamw-bf16 adamw-8bit sgd muon"}},
    {.name = "optimizer-in-backward", .member = &R::optimizer_in_backward, .group = kTraining, .type = "",
     .about = "gradients are consumed layer by layer as they come",
     .workloads = "r"},
    {.name = "loss", .member = &R::loss, .group = kTraining, .type = "WHAT",
     .about = "logits: plain (whole), chunked:N (in N pieces), fused (never in memory)",
     .workloads = "r", .otherwise = "plain", .values = {words, nullptr, "plain chunked:8 fused"}},
    {.name = "dp-mode", .member = &R::dp_mode, .group = kTraining, .type = "MODE",
     .about = "replicas: ddp, zero1, zero2, fsdp (all divided), fsdp-grad-op (weights gathered once a micro-batch), "
              "hsdp:N (fsdp over N, replicas beyond)",
     .workloads = "r", .values = {words, nullptr, "ddp zero1 zero2 fsdp fsdp-grad-op hsdp:8"}},
    {.name = "schedule", .member = &R::schedule, .group = kTraining, .type = "NAME",
     .about = "of pipeline stages: 1f1b, interleaved, zb-h1, zb-v, v-half, v-min, dualpipe",
     .workloads = "r", .otherwise = "1f1b", .values = {words, nullptr, "1f1b interleaved zb-h1 zb-v v-half v-min dualpipe"}},
    {.name = "max", .member = &R::max, .group = kTraining, .type = "WHAT",
     .about = "the largest micro-batch or seq that fits",
     .workloads = "r", .values = {words, nullptr, "micro-batch seq"}},
    {.name = "cuda-graphs", .member = &R::cuda_graphs, .group = kTraining, .type = "",
     .about = "the host launches recorded graphs",
     .workloads = "r"},
    {.name = "zero", .member = &R::zero, .group = kTraining, .type = "0..3",
     .about = "divided over replicas: 1 optimiser, 2 gradients too, 3 weights too",
     .workloads = "r", .otherwise = "0", .values = {words, nullptr, "0 1 2 3"}, .least = 0, .most = 3},
    {.name = "interleave", .member = &R::interleave, .group = kTraining, .type = "N",
     .about = "runs of layers on a pipeline stage",
     .workloads = "r", .otherwise = "1", .most = kMaxTokens},
    {.name = "gradients", .member = &R::gradients, .group = kTraining, .type = "DTYPE",
     .about = "type of accumulated gradients: fp32, bf16, fp16 [the weights'; fp32 with `runtime`]",
     .workloads = "r", .values = {words, nullptr, "fp32 bf16 fp16"}},
    {.name = "optimizer-bits", .member = &R::optimizer_bits, .group = kTraining, .type = "N",
     .about = "of state per parameter [96: fp32 copy and two moments]",
     .workloads = "r", .least = 0, .most = 1024},
    {.name = "separate-gradients", .member = &R::separate_gradients, .group = kTraining, .type = "",
     .about = "weight gradients are added up by a kernel of their own instead of the matrix product",
     .workloads = "r"},
    {.name = "exposed-sums", .member = &R::exposed_sums, .group = kTraining, .type = "",
     .about = "exchanges of tensor parallelism do not run beside products of the backward pass",
     .workloads = "r"},
    {.name = "async-tp", .member = &R::async_tp, .group = kTraining, .type = "",
     .about = "exchanges of tensor parallelism run piece by piece beside the products they belong to",
     .workloads = "r"},
    {.name = "eager", .member = &R::eager, .group = kTraining, .type = "",
     .about = "element-wise ops run one by one, as in PyTorch without torch.compile",
     .workloads = "r"},
    {.name = "shared-expert-overlap", .member = &R::shared_expert_overlap, .group = kTraining, .type = "",
     .about = "shared experts run beside tokens on their way to routed ones",
     .workloads = "r"},
    {.name = "rate", .member = &R::rate, .group = kTraffic, .type = "PER_S",
     .about = "requests per second, at random intervals; a trace's own times are scaled to it",
     .workloads = "s", .least = 1e-6, .most = 1e6, .aliases = "request-rate qps"},
    {.name = "burstiness", .member = &R::burstiness, .group = kTraffic, .type = "SHAPE",
     .about = "of the gamma distribution of the intervals: 1 is a Poisson process, less comes in bursts, inf at equal "
              "intervals",
     .workloads = "s", .otherwise = "1", .values = {words, nullptr, "0.5 1 inf"}},
    {.name = "concurrency", .member = &R::concurrency, .group = kTraffic, .type = "N",
     .about = "requests under way at most: one that ends lets the next one in; beside `rate` those that come meanwhile "
              "are sent later",
     .workloads = "s", .most = kMostRequests, .kilo = Kilo::decimal, .aliases = "max-concurrency"},
    {.name = "requests", .member = &R::requests, .group = kTraffic, .type = "N",
     .about = "that are sent [1000; of a trace all, else the first of them]",
     .workloads = "s", .most = kMostRequests, .kilo = Kilo::decimal, .aliases = "num-prompts num-requests"},
    {.name = "trace", .member = &R::trace, .group = kTraffic, .type = "FILE",
     .about = "requests from a file: CSV or JSON lines with lengths, times (arrival_s, timestamp), hash_ids or sessions",
     .workloads = "s", .values = {files}},
    {.name = "input", .member = &R::input, .group = kTraffic, .type = "LENGTHS",
     .about = "prompt tokens of a request: 1024 or 1k, 800-1k (even), lognormal:1k:0.8 (mean, spread of the logarithm)",
     .workloads = "s", .otherwise = "1024", .separator = ';', .aliases = "input-len input-length random-input-len isl"},
    {.name = "output", .member = &R::output, .group = kTraffic, .type = "LENGTHS",
     .about = "tokens to generate for a request, likewise",
     .workloads = "s", .otherwise = "128", .separator = ';',
     .aliases = "output-len output-length random-output-len osl max-tokens"},
    {.name = "lengths", .member = &R::lengths, .group = kTraffic, .type = "HOW",
     .about = "of a closed loop whose `input` or `output` is one number: spread (evenly within 3 % of it, so that "
              "requests do not end and begin together) or exact",
     .workloads = "s", .otherwise = "spread", .values = {words, nullptr, "spread exact"}},
    {.name = "prefix", .member = &R::prefix, .group = kTraffic, .type = "TOKENS",
     .about = "what prompts begin with that others do as well: a share of the mean prompt (0.5) or tokens (512); 512:8 of "
              "eight different ones",
     .workloads = "s", .separator = ';'},
    {.name = "classes", .member = &R::classes, .group = kTraffic, .type = "TEXT",
     .about = "requests of several kinds, with their shares, lengths, prefixes and priorities (the lowest first): 'chat:3 "
              "input=500 output=200; batch:1 input=8k priority=1'; `slo` may name one: chat:ttft.p99=1s",
     .workloads = "s", .separator = '|'},
    {.name = "turns", .member = &R::turns, .group = kTraffic, .type = "N",
     .about = "requests of a session, each of which begins with all that was said before, and waits for its answer",
     .workloads = "s", .otherwise = "1", .most = 1000},
    {.name = "think", .member = &R::think, .group = kTraffic, .type = "TIME",
     .about = "from an answer to the next turn of its session on the mean, spread as intervals are; sessions then start "
              "at the `rate` over their turns [until all sessions have had the turn before]",
     .workloads = "s"},
    {.name = "seed", .member = &R::seed, .group = kTraffic, .type = "N",
     .about = "of all that is random",
     .workloads = "s", .otherwise = "0", .least = 0, .most = 1e15},
    {.name = "seeds", .member = &R::seeds, .group = kTraffic, .type = "N",
     .about = "runs with as many seeds, from `seed` on: the band says how far they differ",
     .workloads = "s", .otherwise = "1", .most = 1000},
    {.name = "slo", .member = &R::slo, .group = kTraffic, .type = "BOUNDS",
     .about = "what is promised: ttft.p99=1s,tpot.p95=50ms; of ttft, tpot, itl, e2e the mean, p50, p90, p95 or p99; a "
              "bound that is missed exits with 4",
     .workloads = "s", .separator = ';'},
    {.name = "engine", .member = &R::engine, .group = kEngine, .type = "NAME[@VERSION]",
     .about = "whose rules requests are scheduled by: vllm, sglang, trtllm or llama.cpp, of a version vllm@0.15.1 [the "
              "runtime's]",
     .workloads = "s", .values = {words, nullptr, "vllm sglang trtllm llama.cpp"}},
    {.name = "kv-utilisation", .member = &R::kv_utilisation, .group = kEngine, .type = "SHARE",
     .about = "share of the memory that an engine may use; says how many blocks and tokens its KV cache then holds "
              "[serving: the engine's own]",
     .workloads = "ts", .least = 0.01, .most = 1,
     .aliases = "gpu-memory-utilization gpu-memory-utilisation kv-utilization mem-fraction-static "
                "free-gpu-memory-fraction kv-cache-free-gpu-memory-fraction npu-memory-fraction"},
    {.name = "max-model-len", .member = &R::max_model_len, .group = kEngine, .type = "TOKENS",
     .about = "tokens of the longest sequence, prompt and generated, which the engine's memory must hold one of; what vLLM "
              "prints of its cache is of such sequences [the model's]",
     .workloads = "ts", .most = kMaxTokens, .kilo = Kilo::binary, .aliases = "max-seq-len context-length"},
    {.name = "block-size", .member = &R::block_size, .group = kEngine, .type = "TOKENS",
     .about = "tokens of a block of that cache [16; SGLang and llama.cpp 1, TensorRT-LLM 32]",
     .workloads = "ts", .most = 1 << 20, .aliases = "page-size"},
    {.name = "max-batched-tokens", .member = &R::max_batched_tokens, .group = kEngine, .type = "TOKENS",
     .about = "tokens of the largest step, whose activations leave the cache the rest [the engine's: of vLLM 8192 from "
              "70 GiB on, but for the A100; else 2048]",
     .workloads = "ts", .most = kMaxTokens, .kilo = Kilo::binary, .aliases = "max-num-batched-tokens max-num-tokens"},
    {.name = "max-seqs", .member = &R::max_seqs, .group = kEngine, .type = "N",
     .about = "sequences of the largest step [the engine's: of vLLM 1024 where it is of 8192 tokens, else 256]",
     .workloads = "ts", .most = kMaxBatch, .aliases = "max-num-seqs max-running-requests max-batch-size"},
    {.name = "kv-blocks", .member = &R::kv_blocks, .group = kEngine, .type = "N",
     .about = "blocks of that cache, whatever the memory has room for",
     .workloads = "s", .most = 1e9, .aliases = "num-gpu-blocks-override"},
    {.name = "max-queue", .member = &R::max_queue, .group = kEngine, .type = "N",
     .about = "requests that wait at a replica at most: one that finds as many is rejected [any number]",
     .workloads = "s", .least = 0, .most = 1e9, .aliases = "max-queued-requests"},
    {.name = "prefix-caching", .member = &R::prefix_caching, .group = kEngine, .type = "WHETHER",
     .about = "what is cached of a prompt's beginning is taken for later ones: on, off [on]",
     .workloads = "s", .values = kOnOff},
    {.name = "chunked-prefill", .member = &R::chunked_prefill, .group = kEngine, .type = "WHETHER",
     .about = "prompts that are longer than what is left of a step are cut: on, off [the engine's]",
     .workloads = "s", .values = kOnOff},
    {.name = "admission", .member = &R::admission, .group = kEngine, .type = "WHEN",
     .about = "TensorRT-LLM: a request is let in when all that it may ever need is free (guaranteed-no-evict), or when its "
              "prompt is (max-utilisation)",
     .workloads = "s", .values = {words, nullptr, "guaranteed-no-evict max-utilisation"}},
    {.name = "scheduler-recv-interval", .member = &R::recv_interval, .group = kEngine, .type = "STEPS",
     .about = "SGLang: steps of decode for one look for new requests", .workloads = "s", .otherwise = "1", .most = 1e6},
    {.name = "replicas", .member = &R::replicas, .group = kEngine, .type = "N",
     .about = "engines, each on the devices of the plan, to which requests are dealt",
     .workloads = "s", .otherwise = "1", .most = kMostReplicas},
    {.name = "router", .member = &R::router, .group = kEngine, .type = "HOW",
     .about = "how they are: round-robin, least-loaded (fewest requests), prefix-aware (fewest blocks to compute and in use)",
     .workloads = "s", .otherwise = "least-loaded", .values = {words, nullptr, "round-robin least-loaded prefix-aware"}},
    {.name = "prefill-replicas", .member = &R::prefill_replicas, .group = kEngine, .type = "N",
     .about = "engines that compute prompts alone, and send their keys and values on",
     .workloads = "s", .most = kMostReplicas},
    {.name = "decode-replicas", .member = &R::decode_replicas, .group = kEngine, .type = "N",
     .about = "… to as many that decode",
     .workloads = "s", .most = kMostReplicas},
    {.name = "decode-plan", .member = &R::decode_plan, .group = kEngine, .type = "PLAN",
     .about = "… by a plan of their own: 'tp 8', 'dp 8 ep 8'", .workloads = "s", .otherwise = "the others'"},
    {.name = "decode-hw", .member = &R::decode_hw, .group = kEngine, .type = "DEVICE",
     .about = "… on devices of their own", .workloads = "s", .otherwise = "the others'"},
    {.name = "kv-tier", .member = &R::kv_tier, .group = kEngine, .type = "LIST",
     .about = "where keys and values stay that the cache lets go of: host:200GB of a replica, nvme:2TB:6GB/s, pool:10TB of all "
              "of them, at the rate of the device's links unless one is said",
     .workloads = "s", .separator = ';'},
    {.name = "kv-link", .member = &R::kv_link, .group = kEngine, .type = "RATE",
     .about = "… over a link of so much per device and direction, 50GB/s [the network of the hardware file, else its "
              "interconnect]",
     .workloads = "s"},
    {.name = "kv-transfer", .member = &R::kv_transfer, .group = kEngine, .type = "WHEN",
     .about = "… after the prompt is computed, or per-layer, while it is",
     .workloads = "s", .otherwise = "after", .values = {words, nullptr, "after per-layer"}},
};
// clang-format on

// What engines and config files call the types of numbers.
constexpr std::pair<std::string_view, std::string_view> kTypeWords[] = {
    {"bfloat16", "bf16"}, {"float16", "fp16"}, {"half", "fp16"},    {"float32", "fp32"},
    {"float", "fp32"},    {"fp8_e4m3", "fp8"}, {"fp8_e5m2", "fp8"}, {"auto", ""}};
constexpr Text Request::*kOfTypes[] = {&R::weights, &R::kv, &R::activations};

std::string quoted_name(const Field& field) { return fmt::format("`{}`", field.name); }

}  // namespace

std::vector<std::string> Values::all() const {
  std::vector<std::string> all = names != nullptr ? names() : std::vector<std::string>();
  for (const std::string_view name : llmperf::words(list)) all.emplace_back(name);
  return all;
}

std::span<const Field> fields() { return kFields; }

std::string key_of(const Field& field) {
  std::string key(field.name);
  std::replace(key.begin(), key.end(), '-', '_');
  return std::holds_alternative<Amount Request::*>(field.member) ? key + "_bytes" : key;
}

const Field* find_key(const descriptor::Node::Entry& entry, descriptor::Problems& problems) {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> all;
    for (const Field& field : kFields) all.push_back(key_of(field));
    return all;
  }();
  const auto found = std::find(keys.begin(), keys.end(), entry.key);
  if (found != keys.end()) return kFields + (found - keys.begin());
  problems.add(entry.line, entry.column, "unknown key " + quote(entry.key) + " in a request",
               name_hint(entry.key, keys));
  return nullptr;
}

const Field* find_field(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kFields), std::end(kFields), [&](const Field& f) { return f.name == name; });
  return found == std::end(kFields) ? nullptr : found;
}

const Field& field(std::string_view name) {
  if (const Field* found = find_field(name)) return *found;
  throw std::logic_error(fmt::format("a request has no field {}", name));
}

// ---- Values.

std::int64_t count_value(std::string_view name, std::string_view text, std::int64_t least, std::int64_t most,
                         Kilo kilo) {
  std::string_view digits = text;
  std::int64_t scale = 1;
  if (kilo != Kilo::none && text.size() > 1 && (text.back() == 'k' || text.back() == 'K' || text.back() == 'M')) {
    scale = static_cast<std::int64_t>(kilo);
    if (text.back() == 'M') scale *= scale;
    digits.remove_suffix(1);
  }
  const std::optional<std::int64_t> value = parse_int(digits);
  if (!value || (scale > 1 && *value > most / scale) || *value * scale < least || *value * scale > most) {
    throw Error::bad_input(
        fmt::format("{}: {} is not a whole number between {} and {}", name, quote(text), least, most));
  }
  return *value * scale;
}

double number_value(std::string_view name, std::string_view text, double least, double most) {
  const std::optional<double> value = parse_double(text);
  if (!value || *value < least || *value > most) {
    const bool endless = to_lower(text) == "inf" && name == "`rate`";
    throw Error::bad_input(fmt::format("{}: {} is not a number between {} and {}", name, quote(text), least, most),
                           endless ? "leave it out: `concurrency` 1000 with `requests` 1000 sends all at once" : "");
  }
  return *value;
}

Bytes amount_value(std::string_view name, std::string_view text) {
  const std::optional<Bytes> value = parse_bytes(text);
  if (!value || value->value < 0 || value->value > 1e18) {
    throw Error::bad_input(fmt::format("{}: {} is not an amount of memory", name, quote(text)),
                           "write the unit: 512MiB (2^20 bytes) or 2GB (10^9 bytes)");
  }
  return *value;
}

void set(Request& request, const Field& field, const std::string& text) {
  if (text.size() > kLongestText && !(field.values.sort == paths && descriptor::is_inline(text))) {
    throw Error::bad_input(fmt::format("{}: {} characters are more than a text may have: {}", quoted_name(field),
                                       text.size(), kLongestText));
  }
  if (text.empty()) {
    std::visit([&](auto member) { request.*member = {}; }, field.member);
    return;
  }
  const std::string name = quoted_name(field);
  match(
      field.member,
      [&](Text Request::*member) {
        const auto* type = std::ranges::find(kTypeWords, std::string_view(text), [](const auto& w) { return w.first; });
        const bool known = type != std::end(kTypeWords) && contains(kOfTypes, member);
        request.*member = !known ? Text(text) : type->second.empty() ? Text() : Text(type->second);
      },
      [&](Count Request::*member) {
        request.*member = count_value(name, text, static_cast<std::int64_t>(field.least),
                                      static_cast<std::int64_t>(field.most), field.kilo);
      },
      [&](Number Request::*member) { request.*member = number_value(name, text, field.least, field.most); },
      [&](Amount Request::*member) { request.*member = amount_value(name, text); },
      [&](bool Request::*member) {
        if (text != "true" && text != "false") {
          throw Error::bad_input(fmt::format("{}: {} is neither true nor false", name, quote(text)));
        }
        request.*member = text == "true";
      });
}

std::optional<std::string> get(const Request& request, const Field& field) {
  const auto shown = [](const auto& value, auto&& text) {
    return value ? std::optional<std::string>(text(*value)) : std::nullopt;
  };
  return match(
      field.member, [&](Text Request::*member) { return request.*member; },
      [&](Count Request::*member) {
        return shown(request.*member, [](std::int64_t value) { return std::to_string(value); });
      },
      [&](Number Request::*member) {
        return shown(request.*member, [](double value) { return fmt::format("{}", value); });
      },
      [&](Amount Request::*member) {
        return shown(request.*member, [](Bytes value) { return fmt::format("{}B", value.value); });
      },
      [&](bool Request::*member) { return request.*member ? std::optional<std::string>("true") : std::nullopt; });
}

// ---- JSON.

namespace {

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return without_unsafe(out, true) + "\"";
}

std::string json_value(const Request& request, const Field& field) {
  if (const auto* amount = std::get_if<Amount Request::*>(&field.member)) {
    return fmt::format("{}", (request.*(*amount))->value);
  }
  const std::string text = *get(request, field);
  return std::holds_alternative<Text Request::*>(field.member) ? json_text(text) : text;
}

}  // namespace

std::string to_json(const Request& request) {
  std::string text;
  for (const Field& field : kFields) {
    if (!get(request, field)) continue;
    text += fmt::format("{}\n    \"{}\": {}", text.empty() ? "" : ",", key_of(field), json_value(request, field));
  }
  return "{" + text + (text.empty() ? "}" : "\n  }");
}

std::optional<std::string> typed(const Field& field, const descriptor::Node& value, descriptor::Problems& problems) {
  using descriptor::Node;
  if (value.kind == Node::Kind::null) return std::nullopt;
  if (value.kind == Node::Kind::mapping && field.values.sort == paths) return descriptor::to_json(value);
  if (value.kind != Node::Kind::scalar || value.scalar.empty()) {
    problems.add(value, fmt::format("{} must be a value, not a list or a mapping", quote(key_of(field))));
    return std::nullopt;
  }
  const bool amount = std::holds_alternative<Amount Request::*>(field.member);
  return amount && !value.quoted ? value.scalar + "B" : value.scalar;
}

Request parse_request(const descriptor::Document& document) {
  using descriptor::Node;
  descriptor::Problems problems(document.file);
  const Node* root = &document.root;
  if (root->find("schema") != nullptr) root = root->find("request");
  if (root == nullptr) {
    throw Error::bad_input(quote(document.file) + " is a result without its request",
                           "an object of a request's fields");
  }
  const descriptor::Reader mapping(*root, problems, "a request");  // reports what is none
  Request request;
  for (const Node::Entry& entry : root->entries) {
    const Field* field = find_key(entry, problems);
    if (field == nullptr) continue;
    const std::optional<std::string> value = typed(*field, entry.value, problems);
    if (!value) continue;
    try {
      set(request, *field, *value);
    } catch (const Error& error) {
      for (const Diagnostic& d : error.diagnostics()) problems.add(entry.value, d.message, d.hint);
    }
  }
  problems.throw_if_any();
  return request;
}

}  // namespace llmperf::request
