#include "cli/man_text.h"

namespace llmperf::cli {
namespace {

constexpr ManExample kExamples[] = {
    {"estimate", "Latency and memory of a model on one card, with the time of every operation:",
     "llmperf estimate -m qwen-7b --hw rtx4090 --detail ops"},
    {"estimate", "With 4-bit weights on two cards, also as a file for scripts:",
     "llmperf estimate -m llama-3-70b --hw rtx4090 --weights w4a16 --tp 2 --export estimate.json"},
    {"compare", "What running without flash attention costs:",
     "llmperf compare -m qwen-7b --hw rtx4090 --options all --with all,no_flash_attention"},
    {"explain",
     "Where the size of the KV cache comes from:", "llmperf explain memory.kv_cache_bytes -m qwen-7b --hw rtx4090"},
    {"graph", "Operations and time of a program, here of two devices:",
     "llmperf graph program.mlir --hw a100-sxm-80gb --devices 2"},
    {"limits", "A family of models side by side:", "llmperf limits -m qwen-1.8b,qwen-7b,qwen-14b --hw rtx4090"},
    {"map", "The best mapping of a product on an array of tiles, drawn:",
     "llmperf map gemm --hw tx8 --m 512 --n 2048 --k 2048 --svg schedule.svg"},
    {"map-collective", "An all-reduce of eight devices over all sizes:",
     "llmperf map-collective --hw a100-sxm-80gb --op all-reduce --ranks 8 --sweep"},
    {"parallel", "The five fastest plans over eight devices:",
     "llmperf parallel -m llama-3-70b --hw a100-sxm-80gb --devices 8 --top 5"},
    {"sweep", "Every combination of models, batches and weights that fits, as CSV:",
     "llmperf sweep -m qwen-7b,qwen-14b --hw rtx4090 --batch 1-64*2 --weights bf16,w4a16 --where fits --export "
     "rows.csv"},
    {"merge", "The parts of a sweep that ran as --shard 1/2 and --shard 2/2:",
     "llmperf merge part1.csv part2.csv --export rows.csv"},
    {"run", "A study that is built in, into a folder:", "llmperf run qwen1.5-rtx4090 -o study"},
    {"report", "An HTML report of a result that was saved:", "llmperf report result.json -o report.html"},
    {"calibrate", "A profile fitted to measurements of one's own:",
     "llmperf calibrate measurements.csv --hw rtx4090 -o profile.yaml"},
    {"validate",
     "Predictions beside the measurements that are built in:", "llmperf validate rtx4090-qwen1.5 --max-mape 0.1"},
    {"replay", "The products of a small model, timed on this machine:",
     "llmperf replay --sweep gemm --dtype fp32 --hw ryzen-7950x -o timings.csv"},
    {"import", "Measurements of a test program's output:",
     "llmperf import nccl-tests all_reduce_perf.txt --hw a100-sxm-80gb -o measurements.csv"},
    {"list", "Names to give to --model:", "llmperf list models"},
    {"show", "Every figure of a device, with its source:", "llmperf show hardware rtx4090"},
    {"completion", "Completion in this session of bash:", "eval \"$(llmperf completion bash)\""},
    {"help", "The flags of a subcommand, by what they are about:", "llmperf help sweep"},
    {"man", "This page:", "llmperf man man"},
};

constexpr ManEntry kExitStatuses[] = {
    {"0", "done"},
    {"1", "something failed: a file cannot be written, a device does not answer"},
    {"2", "the command line or an input is wrong"},
    {"3", "it cannot be done: the model does not fit"},
    {"4", "a threshold that was stated is exceeded"},
    {"130, 143, 129", "interrupted by Ctrl-C, SIGTERM, SIGHUP; what was finished is kept"},
    {"141", "nobody reads its output any more"},
};

constexpr ManEntry kEnvironment[] = {
    {"LLMPERF_PATH",
     "folders, separated by colons, that are searched for models/NAME.yaml, hardware/devices/NAME.yaml and so on "
     "before "
     "what is built in"},
    {"NO_COLOR", "when it is not empty, headings on a terminal are not bold"},
};

constexpr ManEntry kFiles[] = {
    {"NAME.yaml", "a model, a device or a profile of one's own: any argument with a slash or such an ending is a path"},
    {"config.json", "of Hugging Face, as --model, or the folder it is in"},
    {"hf_quant_config.json", "beside config.json: how NVIDIA's checkpoints are quantised"},
    {"NAME.gguf", "as --model; its header only is read"},
};

}  // namespace

std::span<const ManExample> man_examples() { return kExamples; }
std::span<const ManEntry> man_exit_statuses() { return kExitStatuses; }
std::span<const ManEntry> man_environment() { return kEnvironment; }
std::span<const ManEntry> man_files() { return kFiles; }

}  // namespace llmperf::cli
