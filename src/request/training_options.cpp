#include "request/training_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "estimate/training.h"
#include "request/names.h"

namespace llmperf::request {
namespace {

using graph::TrainingOptions;

template <class Value>
struct Word {
  std::string_view name;
  Value value;
};

// Of a table of words the one that `text` is.
template <class Value, std::size_t N>
const Value& value_of(std::string_view field, std::string_view text, const std::array<Word<Value>, N>& words) {
  std::array<std::string_view, N> names;
  std::transform(words.begin(), words.end(), names.begin(), [](const Word<Value>& word) { return word.name; });
  return words[one_of(field, "unknown word", text, names)].value;
}

// "name:rest"
struct Parts {
  std::string_view name;
  std::optional<std::string_view> rest;
};
Parts parts_of(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {text, {}};
  return {text.substr(0, colon), text.substr(colon + 1)};
}
std::int64_t count_of(std::string_view field, std::string_view text, std::int64_t most) {
  const std::optional<std::int64_t> count = parse_int(text);
  if (count && *count >= 1 && *count <= most) return *count;
  throw Error::bad_input(fmt::format("`{}`: {} is no number from 1 to {}", field, quote(text), most));
}

// Bits of state beside weights of 16 bits: a copy in fp32 and moments, or moments alone.
constexpr auto kOptimizerWords =
    std::to_array<Word<double>>({{"adamw", 96}, {"adamw-bf16", 32}, {"adamw-8bit", 16.5}, {"sgd", 0}, {"muon", 64}});
constexpr auto kScheduleWords = std::to_array<Word<graph::Schedule>>({{"1f1b", graph::Schedule::one_forward},
                                                                      {"interleaved", graph::Schedule::one_forward},
                                                                      {"zb-h1", graph::Schedule::zb_h1},
                                                                      {"zb-v", graph::Schedule::zb_v},
                                                                      {"v-half", graph::Schedule::v_half},
                                                                      {"v-min", graph::Schedule::v_min},
                                                                      {"dualpipe", graph::Schedule::dualpipe}});
struct Division {
  int zero = 0;
  bool stays_gathered = false;
};
constexpr auto kDivisionWords = std::to_array<Word<Division>>({{"none", {}},
                                                               {"ddp", {}},
                                                               {"zero1", {1, false}},
                                                               {"zero2", {2, false}},
                                                               {"fsdp", {3, false}},
                                                               {"fsdp-grad-op", {3, true}},
                                                               {"hsdp", {3, false}}});
struct Targets {
  bool joint = false;
  bool mlp = false;
};
constexpr auto kTargetWords =
    std::to_array<Word<Targets>>({{"qkvo", {}}, {"qkv+o", {true, false}}, {"all-linear", {false, true}}});

void read_recompute(std::string_view text, const model::Decoder& model, TrainingOptions& o) {
  const Parts parts = parts_of(text);
  o.recompute = word_of<graph::Recompute::offload>("recompute", parts.name);
  if (o.recompute == graph::Recompute::modules) {
    for (const std::string_view module : split(parts.rest.value_or(""), ',')) {
      o.modules |= 1U << static_cast<unsigned>(word_of<graph::Module::shared_experts>("recompute", trim(module)));
    }
  } else if (parts.rest) {
    if (o.recompute != graph::Recompute::full && o.recompute != graph::Recompute::offload) {
      throw Error::bad_input(fmt::format("`recompute`: {} is of all layers", parts.name), std::string(parts.name));
    }
    o.recomputed_share = static_cast<double>(count_of("recompute", *parts.rest, model.num_layers())) /
                         static_cast<double>(model.num_layers());
  }
}

void read_division(const Request& q, const graph::Plan& plan, TrainingOptions& o) {
  o.zero = static_cast<int>(q.zero.value_or(0));
  if (!q.dp_mode) return;
  if (q.zero) throw Error::bad_input("`zero` and `dp-mode` both say what replicas divide", "give one of them");
  const Parts parts = parts_of(*q.dp_mode);
  const Division division = value_of("dp-mode", parts.name, kDivisionWords);
  o.zero = division.zero;
  o.stays_gathered = division.stays_gathered;
  const bool in_groups = parts.name == "hsdp" || (parts.name == "zero1" && parts.rest);
  if (in_groups != parts.rest.has_value()) {
    throw Error::bad_input("`dp-mode`: hsdp and zero1 say over how many devices they divide, others over all",
                           "hsdp:8, zero1:8, fsdp");
  }
  if (!parts.rest) return;
  o.shard = count_of("dp-mode", *parts.rest, graph::kMostDevices);
  for (const std::int64_t replicas : {plan.replicas(), plan.expert_replicas()}) {
    if (replicas % std::min(o.shard, replicas) == 0) continue;
    throw Error::bad_input(fmt::format("`dp-mode`: {} replicas{} do not divide into groups of {}", replicas,
                                       replicas == plan.replicas() ? "" : " of experts", o.shard),
                           fmt::format("a divisor of {}", replicas));
  }
}

void check_products(const TrainingOptions& o, const hardware::Device& device) {
  const Dtype type = graph::type_of(o.products);
  if (o.products == graph::Products::wide || device.find_peak(hardware::Engine::matrix, type)) return;
  throw Error::bad_input(fmt::format("`products`: {} multiplies no {}", device.name, name(type)),
                         device.find_peak(hardware::Engine::matrix, Dtype::fp8) ? "`products` fp8" : "`products` bf16");
}

}  // namespace

graph::TrainingOptions training_options(const Request& q, const estimate::Setup& setup, const graph::Plan& plan) {
  const model::Decoder& model = *setup.execution.model;
  const model::WeightLayout& layout = setup.execution.weights;
  estimate::check_trained(layout, q.lora.has_value());
  const double weight_bits = layout.groups.front()[model::Role::o].bits;
  // Frameworks add gradients up in fp32; those of adapters come in the type that is reduced.
  const double kept_bits = setup.profile != nullptr && !q.lora ? 32 : std::max(weight_bits, 16.0);
  TrainingOptions o;
  read_recompute(q.recompute.value_or("none"), model, o);
  read_division(q, plan, o);
  o.products = word_of<graph::Products::nvfp4>("products", q.products.value_or("bf16"));
  const std::string schedule = q.schedule.value_or("1f1b");
  o.schedule = value_of("schedule", schedule, kScheduleWords);
  if (q.schedule && plan.pipeline == 1) {
    throw Error::bad_input("`schedule`: there is one stage, which waits for none", "give `pp` as well");
  }
  if (o.schedule == graph::Schedule::dualpipe && plan.pipeline % 2 != 0) {
    throw Error::bad_input(fmt::format("`schedule` dualpipe: {} stages are no even number", plan.pipeline),
                           fmt::format("`pp` {}", plan.pipeline + 1));
  }
  o.chunks = q.interleave.value_or(1);
  if (schedule == "interleaved" && o.chunks == 1) {
    throw Error::bad_input("`schedule` interleaved: `interleave` says how many runs of layers a stage has",
                           "`interleave` 2");
  }
  if (q.loss) {
    const Parts parts = parts_of(*q.loss);
    o.loss = word_of<graph::Loss::fused>("loss", parts.name);
    constexpr std::int64_t kMostPieces = 1024;
    if (parts.rest && o.loss != graph::Loss::chunked) {
      throw Error::bad_input(fmt::format("`loss`: {} is not in pieces", parts.name), "chunked:8");
    }
    if (parts.rest) o.loss_chunks = count_of("loss", *parts.rest, kMostPieces);
  }
  o.adapters = adapters_value(q, "qkvo");
  if (q.optimizer && q.optimizer_bits) {
    throw Error::bad_input("`optimizer` and `optimizer-bits` both say what it keeps", "give one of them");
  }
  const std::string optimizer = q.optimizer.value_or("adamw");
  o.optimizer_bits = value_of("optimizer", optimizer, kOptimizerWords);
  const bool narrow = optimizer == "adamw-bf16" || optimizer == "adamw-8bit";
  if (weight_bits == 32 && o.optimizer_bits >= 64) o.optimizer_bits -= 32;  // which are the copy themselves
  o.optimizer_bits = q.optimizer_bits.value_or(o.optimizer_bits);
  o.gradient_bits = q.gradients ? bits(model::parse_activation_dtype(*q.gradients)) : narrow ? 16 : kept_bits;
  o.updates_at_once = q.optimizer_in_backward;
  o.fused_gradients = !q.separate_gradients;
  o.overlapped_sums = !q.exposed_sums;
  o.graphs = q.cuda_graphs;
  const bool compiled = setup.profile != nullptr && setup.profile->choices.compiled;
  o.eager = q.eager && compiled;
  o.async_sums = q.async_tp && compiled;
  o.shared_beside = q.shared_expert_overlap;
  check_products(o, *setup.device);
  return o;
}

graph::Adapters adapters_value(const Request& q, std::string_view default_targets) {
  if (!q.lora) return {};
  const Parts parts = parts_of(*q.lora);
  constexpr std::int64_t kMostRank = 65536;
  const Targets targets = value_of("lora", parts.rest.value_or(default_targets), kTargetWords);
  return {.rank = count_of("lora", parts.name, kMostRank), .joint = targets.joint, .mlp = targets.mlp};
}

std::optional<std::string> trained_weights(const model::Decoder& model) {
  return estimate::trains_whole(model::checkpoint_layout(model, Dtype::bf16)) ? std::nullopt
                                                                              : std::optional<std::string>("bf16");
}

std::string_view training_stack(const Request& q, const hardware::Device& device) {
  if (device.family.starts_with("google-tpu")) return "maxtext";
  if (device.family.starts_with("ascend")) return "mindspeed";
  if (q.lora) return "transformers-peft";
  const bool divides =
      q.zero.value_or(0) == 3 || (q.dp_mode && (q.dp_mode->starts_with("fsdp") || q.dp_mode->starts_with("hsdp")));
  const bool joint = q.tp.value_or("1") != "1" || q.pp.value_or(1) > 1 || q.ep.value_or(1) > 1;
  return joint && !divides ? "megatron" : "pytorch-fsdp";
}

}  // namespace llmperf::request
