#include "measure/training_row.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace llmperf::measure {
namespace {

// Words of frameworks' names, the first that is found counts.
struct StackWord {
  std::string_view word, runtime;
};
constexpr StackWord kStacks[] = {
    {"megatron", "megatron"},         {"nemo", "megatron"},           {"primus", "megatron"},
    {"maxtext", "maxtext"},           {"mindspeed", "mindspeed"},     {"modellink", "mindspeed"},
    {"mindformers", "mindspeed"},     {"hf ", "transformers-peft"},   {"peft", "transformers-peft"},
    {"unsloth", "transformers-peft"}, {"nvidia release", "megatron"}, {"torch", "pytorch-fsdp"},
    {"composer", "pytorch-fsdp"},     {"fsdp", "pytorch-fsdp"}};

// "25.09" of "megatron-core 25.09": two numbers of two digits.
std::string release_in(std::string_view text) {
  for (const std::string_view word : llmperf::words(text)) {
    const bool release = word.size() >= 5 && word[2] == '.' && std::isdigit(static_cast<unsigned char>(word[0])) != 0 &&
                         std::isdigit(static_cast<unsigned char>(word[3])) != 0;
    if (release) return std::string(word.substr(0, 5));
  }
  return {};
}

std::string recomputed(const TrainingRow& row, std::int64_t layers) {
  std::string text = row.recompute;
  std::ranges::replace(text, '+', ',');
  if (text == "half") return fmt::format("full:{}", std::max<std::int64_t>(1, layers / 2));
  if (text.starts_with("full-offload") || text.ends_with("offload") || text.starts_with("offload")) return "offload";
  if (text.starts_with("full")) return "full";
  if (text == "op-selective") return "ops";
  if (text == "sp,selective") return "selective";
  return text.starts_with("modules:") || text == "selective" ? text : "none";
}

}  // namespace

void name_stack(TrainingRow& row) {
  const std::string text = to_lower(row.framework);
  for (const StackWord& stack : kStacks) {
    if (text.find(stack.word) == std::string::npos) continue;
    row.runtime = stack.runtime;
    break;
  }
  // Adapters are PEFT's, but where products are narrow: those are the libraries of Megatron.
  if ((row.lora_rank > 0 || row.task.ends_with("lora")) && row.runtime != "megatron") {
    const bool narrow = !row.precision.empty() && row.precision != "bf16" && row.precision != "fp16";
    row.runtime = narrow ? "megatron" : "transformers-peft";
  }
  const std::string release = row.runtime == "megatron" ? release_in(row.framework) : "";
  row.engine_version = !release.empty() ? release : row.year > 0 ? fmt::format("{}", row.year) : "";
}

request::Request request_of(const TrainingRow& row, const hardware::Device& device, std::int64_t layers) {
  request::Request q;
  q.model = row.model;
  q.hw = device.name;
  q.training = true;
  const std::string weights = row.weights.empty() ? "bf16" : row.weights;
  q.weights = weights == "nf4" ? "nf4-double" : row.precision == "fp16" && weights == "bf16" ? "fp16" : weights;
  if (row.precision != "fp16" && !row.precision.empty()) q.products = row.precision;
  q.tp = fmt::format("{}", row.tp);
  q.pp = row.pp;
  q.dp = row.replicas();
  q.ep = row.ep;
  if (row.cp > 1) q.sp = fmt::format("ring:{}", row.cp);
  q.megatron_sp = row.sp && row.tp > 1;
  // Servers of a rack whose devices are one domain all the same divide nothing.
  constexpr std::int64_t kServer = 8;
  const bool rack = device.devices_per_node > kServer;
  if (row.gpus_per_node > 0 && row.gpus > 1 && !rack) q.devices_per_node = row.gpus_per_node;
  q.micro_batch = row.micro_batch();
  q.global_batch = row.micro_batches() * row.micro_batch() * row.replicas();
  q.seq = row.seq;
  q.recompute = recomputed(row, layers);
  const std::string schedule = row.schedule == "zero-bubble-b" ? "zb-h1"
                               : row.schedule == "zbv"         ? "zb-v"
                                                               : row.schedule;
  if (row.pp > 1 && !schedule.empty() && schedule != "interleaved") q.schedule = schedule;
  // The two runs of a stage that some schedules have are their own.
  if (row.vp > 1 && (!q.schedule || q.schedule == "1f1b")) q.interleave = row.vp;
  if (!row.dp_mode.empty() && row.dp_mode != "none") {
    const bool grouped = row.shard_group > 0 && row.shard_group < row.replicas();
    q.dp_mode = row.dp_mode == "hsdp" && !grouped ? "fsdp"
                : grouped                         ? fmt::format("{}:{}", row.dp_mode, row.shard_group)
                                                  : row.dp_mode;
  }
  // NVIDIA's recipes of these years reduce gradients in 16 bits.
  constexpr std::int64_t kNarrowReduction = 2025;
  if (row.runtime == "megatron" && row.year >= kNarrowReduction) q.gradients = "bf16";
  if (row.optimizer.starts_with("adamw-bf16")) q.optimizer = "adamw-bf16";
  if (row.optimizer.starts_with("adamw-8bit")) q.optimizer = "adamw-8bit";
  q.optimizer_in_backward = row.optimizer.ends_with("in-backward");
  constexpr std::int64_t kUsualRank = 8;
  const bool adapts = row.lora_rank > 0 || row.task.ends_with("lora");
  if (adapts) {
    q.lora = fmt::format("{}:{}", row.lora_rank > 0 ? row.lora_rank : kUsualRank,
                         row.lora_targets.empty() ? "qkvo" : row.lora_targets);
  }
  // Submissions to MLPerf hold what is frozen as its products take it.
  const bool narrow_base = adapts && row.recompute == kRecipe && row.precision == "fp8";
  if (narrow_base) q.weights = "fp8";
  q.separate_gradients = row.recompute == "full-2021";  // Megatron-LM of that year
  q.exposed_sums = q.separate_gradients && row.tp > 1;
  const auto notes = [&](std::string_view word) { return row.notes.find(word) != std::string::npos; };
  q.cuda_graphs = notes("CUDA graphs");
  q.async_tp = row.tp > 1 && notes("asynchronous TP");
  q.eager = notes("eager");
  if (row.loss == "liger") q.loss = "fused";
  if (row.loss == "chunked" || row.loss == "fused") q.loss = row.loss;
  // The H100s of torchtitan's authors have another memory and draw no more than 500 W (their docs/performance.md).
  if (row.source == "torchtitan" && device.name == "h100-sxm") q.power_limit = "500W";
  if (!row.runtime.empty()) q.runtime = row.runtime + (row.engine_version.empty() ? "" : "@" + row.engine_version);
  return q;
}

std::string describe(const TrainingRow& row) {
  std::string text = fmt::format("{} devices", row.gpus);
  for (const auto& [axis, degree] : {std::pair{"tp", row.tp}, std::pair{"pp", row.pp}, std::pair{"cp", row.cp},
                                     std::pair{"ep", row.ep}, std::pair{"interleave", row.vp}}) {
    if (degree > 1) text += fmt::format(" {} {}", axis, degree);
  }
  for (const std::string& word : {row.dp_mode, row.precision, row.schedule}) {
    if (!word.empty() && word != "none") text += " " + word;
  }
  if (row.lora_rank > 0) text += fmt::format(" lora {}:{} on {}", row.lora_rank, row.lora_targets, row.weights);
  text += fmt::format(" {} x {} tokens by {}", row.gbs, row.seq, row.mbs);
  return row.recompute.empty() || row.recompute == "none" ? text : text + " recompute " + row.recompute;
}

}  // namespace llmperf::measure
