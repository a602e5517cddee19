#include "request/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/integer.h"
#include "base/list.h"
#include "base/number.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "estimate/band.h"
#include "graph/expert_load.h"
#include "graph/stdit_graph.h"
#include "hardware/runtime_execution.h"
#include "model/weight_layout.h"
#include "request/draft.h"
#include "request/names.h"
#include "request/price.h"
#include "request/traffic.h"
#include "request/training_options.h"

namespace llmperf::request {
namespace {

constexpr double kDefaultSeconds = 4;
constexpr const char* kLeaveOut = "leave it out";

using Either = std::array<std::string_view, 2>;

// A request that came from JSON may lack what a command line must have.
const std::string& required(const Text& value, std::string_view field) {
  if (!value) throw Error::bad_input(fmt::format("`{}` is required", field));
  return *value;
}

}  // namespace

// ---- Which fields mean something.

void check_fields(const Request& request, Workload workload) {
  std::vector<graph::Problem> broken;
  for (const Field& field : fields()) {
    if (field.applies_to(workload) || !get(request, field)) continue;
    graph::Problem d{.message = {}, .hint = kLeaveOut};
    if (workload == Workload::video && field.workloads != "s") {
      d.message = fmt::format("`{}` is for language models: {} is not one", field.name, *request.model);
    } else if (field.workloads == "s") {
      d.message = fmt::format("`{}` is of traffic that is served, which this is not", field.name);
      d.hint = "llmperf serve";
    } else if (workload == Workload::serve) {
      d.message = fmt::format("`{}` has no effect on traffic that is served", field.name);
    } else if (field.workloads == "v") {
      d.message = fmt::format("`{}` is for models that generate video: {} is not one", field.name, *request.model);
    } else if (workload == Workload::training) {
      d.message = fmt::format("`{}` has no effect on a training step: leave out it or `training`", field.name);
      d.hint = {};
    } else {
      d.message = fmt::format("`{}` requires `training`", field.name);
    }
    broken.push_back(std::move(d));
  }
  graph::refuse(broken);
}

namespace {

// ---- Formats, runtime, mapper.

bool is_gguf(const Request& request, const model::ModelFile& file) {
  return request.weights ? model::gguf_weights(*request.weights) != nullptr : file.stored.has_value();
}

// The stack whose format the weights are in, which runs them where none is asked for.
std::string_view own_runtime(const Request& request, bool gguf) {
  return gguf ? "llama.cpp" : request.weights.value_or("").starts_with("mlx-") ? "mlx" : "";
}

std::string option_list(const Request& request, const hardware::Device& device,
                        const hardware::RuntimeProfile* profile) {
  if (request.options) return *request.options;
  return device.tile_array && profile == nullptr ? "all,joined_vectors,prefetch_weights" : "all";
}

// Options and how steps are dispatched, under a profile or without one.
hardware::RuntimeExecution choose_execution(const Request& request, const hardware::Device& device,
                                            const hardware::RuntimeProfile* profile, hardware::Workload workload) {
  const std::string options = option_list(request, device, profile);
  if (profile == nullptr) {
    if (request.execution) {
      throw Error::bad_input("`execution` says how a runtime runs, and there is none", "leave out `runtime` none");
    }
    hardware::RuntimeExecution execution;
    execution.options = hardware::parse_runtime_options(options, workload);
    execution.prefill = execution.decode = hardware::Dispatch::graph;
    return execution;
  }
  if (workload == hardware::Workload::language && request.options && request.options->starts_with("all") &&
      hardware::format_runtime_options(profile->options) == "none") {
    throw Error::bad_input(
        fmt::format("`options` {}: the stack of profile {} has none of the options", *request.options, profile->name),
        "leave it out, or name what another stack adds: `options` flash_attention");
  }
  return hardware::resolve_execution(*profile, options, request.execution.value_or(""));
}

}  // namespace

std::optional<hardware::RuntimeProfile> choose_profile(const Request& request, const std::string& hw,
                                                       const hardware::Device& device, bool gguf,
                                                       hardware::Workload workload, Sources& sources) {
  if (request.runtime == "none") return std::nullopt;
  const bool own = !request.runtime;
  // Nothing was measured on most arrays of tiles: the best mapping found stands for itself.
  if (own && device.tile_array && hardware::runtimes_of(device).empty()) return std::nullopt;
  std::string name = own ? std::string(own_runtime(request, gguf)) : *request.runtime;
  if (request.tool) name += '+' + *request.tool;
  const auto missing = own && !request.tool ? hardware::UnknownRuntime::use_default : hardware::UnknownRuntime::error;
  hardware::RuntimeProfile profile = sources.profile(hw, device, name, missing, workload);
  if (profile.workload != workload) {  // of a file
    throw Error::bad_input(fmt::format("`runtime`: {} is a profile for {} models, and {} is a {} model", name,
                                       hardware::name(profile.workload), request.model.value_or(""),
                                       hardware::name(workload)));
  }
  if (request.power) {
    one_of("power", "unknown load", *request.power, Either{"short", "sustained"});
    if (profile.choices.power != hardware::Power::none) profile.choices.power = *hardware::parse_power(*request.power);
  }
  return profile;
}

hardware::RuntimeProfile choose_host_profile(const Request& request, const hardware::Device& host, Sources& sources) {
  return sources.profile(request.host.value_or(kDefaultHost), host, "llama.cpp", hardware::UnknownRuntime::use_default,
                         hardware::Workload::language);
}

mapper::TileModel choose_tiles(const Request& request, const hardware::Device& device,
                               const hardware::RuntimeProfile* profile) {
  const mapper::TileModel model = mapper::parse_tile_model(request.tile_model.value_or("default"));
  if (model != mapper::TileModel::mapped && (!device.tile_array || profile)) {
    throw Error::bad_input(fmt::format("`tile-model`: {}", device.tile_array ? "a runtime profile times the operations"
                                                                             : device.name + " is no array of tiles"),
                           kLeaveOut);
  }
  if (model == mapper::TileModel::published && device.tile_array->tiles != 16) {
    throw Error::bad_input("`tile-model`: the published mapper is for 16 tiles", kLeaveOut);
  }
  return model;
}

estimate::Choices choose_schemes(const Request& request, const hardware::Device& device,
                                 const hardware::RuntimeProfile* profile) {
  estimate::Choices choices;
  choices.weights = request.weights;
  choices.kv = request.kv;
  choices.activations = request.activations;
  choices.run_as(choose_execution(request, device, profile, hardware::Workload::language));
  choices.profile = profile;
  choices.tiles = choose_tiles(request, device, profile);
  choices.reserve = request.reserve;
  choices.devices_per_node = request.devices_per_node;
  choices.threads = request.cpu_threads;
  choices.numa_nodes = request.numa;
  return choices;
}

estimate::Serving serving_of(const Request& q) {
  estimate::Serving s;
  s.phases =
      static_cast<estimate::Served>(one_of("phase", "unknown phase", q.phase.value_or("both"), estimate::kServed));
  s.verify = q.verify.value_or(1);
  s.overlap_batches = q.overlap_batches.value_or(1);
  s.prefill_chunk = q.prefill_chunk;
  if (q.draft && q.verify) {
    throw Error::bad_input("`draft` and `verify` both say how many tokens a step verifies", "give one of them");
  }
  if (q.draft || !q.accept) return s;
  s.accepted = number_value("`accept`", *q.accept, 1, static_cast<double>(estimate::kMostVerified));
  if (s.accepted > static_cast<double>(s.verify)) {
    throw Error::bad_input(fmt::format("`accept`: a step that verifies {} token{} cannot keep {}", s.verify,
                                       s.verify == 1 ? "" : "s", s.accepted),
                           fmt::format("`verify` {:.0f}, or more", std::ceil(s.accepted)));
  }
  return s;
}

// ---- The plan.

bool sharded_embedding(const Request& request) {
  return one_of("embedding", "unknown way", request.embedding.value_or("sharded"), Either{"sharded", "replicated"}) ==
         0;
}

namespace {

// The one of `all` that the text names.
template <class Enum, std::size_t N>
Enum value_named(std::string_view field, std::string_view none, std::string_view text, const std::array<Enum, N>& all) {
  std::array<std::string_view, N> names;
  std::transform(all.begin(), all.end(), names.begin(), [](Enum value) { return name(value); });
  return all[one_of(field, none, text, names)];
}

std::optional<Dtype> exchange_type(std::string_view field, const Text& text) {
  if (!text) return std::nullopt;
  constexpr std::array kTypes = {Dtype::bf16, Dtype::fp16, Dtype::fp8, Dtype::int8};
  return value_named(field, "no type that tokens travel as:", *text, kTypes);
}

// How tokens choose experts; as the loads of a file say, where `routing` names one.
graph::Popularity choose_routing(Resolved& r, Sources& sources) {
  const Request& q = r.asked;
  if (!q.routing) return {};
  if (!r.model().has_experts())
    throw Error::bad_input(fmt::format("`routing`: {} has no routed experts", r.model().name), kLeaveOut);
  if (const auto known = graph::parse_popularity(*q.routing)) return *known;
  if (!descriptor::is_path(*q.routing)) {
    throw Error::bad_input(fmt::format("`routing`: cannot read {}", quote(*q.routing)),
                           "balanced, power-law:0.8, or a JSON or CSV file of tokens by expert");
  }
  if (q.shared_expert_ranks) {
    throw Error::bad_input("`routing`: a file of loads says nothing of the devices of `shared-expert-ranks`",
                           kLeaveOut);
  }
  r.loads = sources.expert_loads(*q.routing, r.model());
  return {.measured = r.loads.get()};
}

graph::Adapters served_adapters(const Resolved& r) {
  graph::Adapters adapters = adapters_value(r.asked, "all-linear");
  adapters.served = r.asked.adapters.value_or(1);
  if (r.asked.adapters && !adapters.any())
    throw Error::bad_input("`adapters`: `lora` says of which rank they are", "`lora` 16");
  const bool two_dimensional = r.asked.tp.value_or("").find('x') != std::string::npos;
  if (adapters.joint || (adapters.any() && (two_dimensional || is_gguf(r.asked, r.file)))) {
    throw Error::bad_input(
        "`lora`: adapters are served beside each matrix, and not of GGUF formats or in `tp` of rows x "
        "columns",
        "qkvo or all-linear, `tp` of one degree, other `weights`");
  }
  return adapters;
}

// "8" or "2x4".
void read_tensor(const std::string& text, graph::Plan& plan) {
  const std::vector<std::string_view> sides = split(text, 'x');
  plan.tensor = count_value("`tp`", sides.size() == 2 ? sides[1] : text, 1, graph::kMostDevices);
  if (sides.size() != 2) return;
  plan.tensor_rows = count_value("`tp`", sides[0], 1, graph::kMostDevices);
  plan.tensor *= plan.tensor_rows;
}

// "ulysses:4", "ring:2" or "all-gather:2", or the first with one of them, joined by x.
void read_sequence(const std::string& text, graph::Plan& plan) {
  const std::vector<std::string> names = {"ulysses", "ring", "all-gather"};
  std::vector<std::string_view> seen;
  for (const std::string_view part : split(text, 'x')) {
    const std::size_t colon = part.find(':');
    const std::string_view name = part.substr(0, colon);
    if (colon == std::string_view::npos || std::find(names.begin(), names.end(), name) == names.end()) {
      throw Error::bad_input(fmt::format("`sp`: cannot read {}", quote(part)),
                             "ulysses:4, ring:2, all-gather:2 or ulysses:4xring:2");
    }
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
      throw Error::bad_input(fmt::format("`sp`: {} is given twice", name));
    }
    seen.push_back(name);
    (name == "ulysses" ? plan.ulysses : plan.ring) =
        count_value("`sp`", part.substr(colon + 1), 1, graph::kMostDevices);
    plan.gathers_keys = plan.gathers_keys || name == "all-gather";
  }
  if (plan.gathers_keys && std::find(seen.begin(), seen.end(), "ring") != seen.end()) {
    throw Error::bad_input("`sp`: ring and all-gather both bring keys and values", "one of them");
  }
}

// Before it is held against a model. `devices` checks the product of the degrees, and gives the data axis what they
// leave.
graph::Plan read_plan(const Request& q) {
  graph::Plan plan;
  if (q.tp) read_tensor(*q.tp, plan);
  plan.pipeline = q.pp.value_or(1);
  plan.data = q.dp.value_or(1);
  plan.expert = q.ep.value_or(1);
  plan.afd = q.afd;
  plan.expert_copies = q.redundant_experts.value_or(0);
  plan.shared_ranks = q.shared_expert_ranks.value_or(0);
  plan.expert_dispatch = exchange_type("ep-dispatch", q.ep_dispatch);
  plan.expert_combine = exchange_type("ep-combine", q.ep_combine);
  if (q.sp) read_sequence(*q.sp, plan);
  plan.sequence_parallel = q.megatron_sp;
  plan.shard_embedding = sharded_embedding(q);
  const double product = static_cast<double>(plan.tensor) * static_cast<double>(plan.pipeline) *
                         static_cast<double>(plan.data) * static_cast<double>(plan.ulysses) *
                         static_cast<double>(plan.ring);
  if (product > graph::kMostDevices)
    throw Error::bad_input(fmt::format("the plan takes more than {} devices", graph::kMostDevices));
  if (!q.devices || (plan.afd && plan.expert == 1)) return plan;  // which takes an `ep`: refused as a plan
  const std::int64_t apart = plan.afd ? plan.expert : 0;          // which are no replicas'
  const std::int64_t each = plan.devices() - apart;
  if (*q.devices <= apart || (*q.devices - apart) % each != 0 || (q.dp && *q.devices != plan.devices())) {
    throw Error::bad_input(fmt::format("`devices`: {} is not what the plan takes: {} ({})", *q.devices, plan.devices(),
                                       graph::to_text(plan)),
                           q.dp        ? fmt::format("`devices` {}", plan.devices())
                           : apart > 0 ? each == 1 ? fmt::format("{} or more", apart + 1)
                                                   : fmt::format("{} and a multiple of {}", apart, each)
                                       : fmt::format("a multiple of {}", each));
  }
  plan.data *= (*q.devices - apart) / each;
  return plan;
}

// The devices that `hw` lists and those of `devices` go to the axis that `split` says: with GGUF formats there is one.
Request split_over_devices(const Resolved& r) {
  Request q = r.asked;
  if (!is_gguf(q, r.file)) return q;
  const std::string how = q.split.value_or("layer");
  if (how == "row") {
    throw Error::bad_input("`split` row: llama.cpp has removed it, and what it gathers on one card is not modelled",
                           "`split` layer, or tensor");
  }
  one_of("split", "unknown way", how, std::array<std::string_view, 3>{"layer", "tensor", "none"});
  if (r.devices > 1 && q.devices.value_or(r.devices) != r.devices) {
    throw Error::bad_input(fmt::format("`devices` {}: `hw` lists {}", *q.devices, r.devices), kLeaveOut);
  }
  const std::int64_t devices = r.devices > 1 ? r.devices : q.devices.value_or(1);
  if (how == "none" && devices > 1) {
    throw Error::bad_input(fmt::format("`split` none: one device computes everything, and there are {}", devices),
                           "`split` layer, or one device");
  }
  if (how == "tensor" && !r.cards.empty()) {
    throw Error::bad_input("`split` tensor: devices that get equal parts have to be alike", "`split` layer");
  }
  const bool planned = q.tp || q.pp || q.dp || q.ep || q.sp;
  if (q.split && (devices == 1 || planned)) {
    throw Error::bad_input(
        planned ? "`split`: the plan says how devices share the model" : "`split`: there is one device",
        planned ? kLeaveOut : "give `devices` as well, or leave it out");
  }
  if (r.devices > 1 && planned) {
    throw Error::bad_input(fmt::format("`hw` lists {} devices, which take the layers one after the other", r.devices),
                           "leave out the degrees of the plan, or name one device");
  }
  if (devices == 1 || planned) return q;
  if (how == "tensor") {
    q.tp = std::to_string(devices);
  } else if (const std::int64_t layers = r.model().num_layers(); devices > layers) {
    throw Error::bad_input(fmt::format("`devices`: {} has {} layers, too few for {}", r.model().name, layers, devices),
                           fmt::format("at most {}", layers));
  } else {
    q.pp = devices;
  }
  return q;
}

template <class Model>
graph::Plan choose_plan(const Request& request, const Model& model) {
  const graph::Plan plan = read_plan(request);
  graph::refuse(graph::problems(model, plan));
  return plan;
}

// "3,2": at least one of them positive.
std::vector<double> split_value(const std::string& text) {
  std::vector<double> shares;
  for (const std::string_view share : split(text, ',')) {
    const std::optional<double> value = parse_double(share);
    if (!value || *value < 0 || *value > 1e12) {
      throw Error::bad_input(
          fmt::format("`tensor-split`: {} is not a number between {} and {}", quote(share), 0.0, 1e12));
    }
    shares.push_back(*value);
  }
  if (std::all_of(shares.begin(), shares.end(), [](double share) { return share == 0; })) {
    throw Error::bad_input("`tensor-split`: all shares are 0", "3,2");
  }
  return shares;
}

}  // namespace

estimate::Choices choose(const Resolved& r) {
  const Request& q = r.asked;
  estimate::Choices choices = choose_schemes(q, r.device, r.runtime());
  choices.cache_k = q.cache_type_k;
  choices.cache_v = q.cache_type_v;
  choices.routing = r.routing;
  if (r.workload() != Workload::training) choices.adapters = served_adapters(r);
  choices.draws = q.top_k.value_or(2) > 1 && (q.top_k || q.top_p.value_or(1) < 1);
  if (q.gguf_era) choices.gguf_era = model::parse_gguf_era(*q.gguf_era);
  if (q.gpu_layers && q.gpu_layers != "all") {
    choices.gpu_layers = count_value("`gpu-layers`", *q.gpu_layers, 0, estimate::kMaxTokens);
  }
  if (q.tensor_split) choices.tensor_split = split_value(*q.tensor_split);
  choices.micro_batch = q.ubatch;
  if (r.file.stored) choices.stored = &r.file.stored->layout;
  choices.cpu_moe = q.cpu_moe ? r.model().num_layers() : q.n_cpu_moe;
  choices.override_tensor = q.override_tensor.value_or("");
  choices.op_offload = !q.no_op_offload;
  choices.pinned_weights = q.no_mmap;
  choices.host = &r.host;
  choices.host_profile = r.host_profile ? &*r.host_profile : nullptr;
  for (const std::unique_ptr<Listed>& card : r.cards) {
    choices.cards.push_back({.device = &card->device, .profile = card->profile ? &*card->profile : nullptr});
  }
  choices.price = r.price;
  choices.plan = choose_plan(split_over_devices(r), r.model());
  if (r.profile && !q.embedding && choices.plan.tensor > 1) {
    choices.plan.shard_embedding = !r.profile->choices.replicates_embedding;
  }
  choices.pipeline_batches = q.pipeline_batches.value_or(0);
  choices.serving = serving_of(q);
  return choices;
}

// ---- What has no effect.

namespace {

hardware::Workload options_workload(const Resolved& r) {
  return r.workload() == Workload::video ? hardware::Workload::video : hardware::Workload::language;
}

// A list of options that comes to what the stack does without it.
template <class Refuse>
void check_options(const Resolved& r, const Refuse& refuse) {
  const Request& q = r.asked;
  // A list of names that comes to the default restates it; "none" and "all,no_x" say that something is otherwise.
  if (!q.options || !r.profile || *q.options == "all") return;
  if (*q.options != "none" && *q.options != "baseline" && !q.options->starts_with("all")) return;
  Request plain = q;
  plain.options.reset();
  const auto given = choose_execution(q, r.device, r.runtime(), options_workload(r));
  const auto own = choose_execution(plain, r.device, r.runtime(), options_workload(r));
  const bool same = given.options == own.options && given.prefill == own.prefill && given.decode == own.decode;
  refuse(same && *q.options != hardware::format_runtime_options(own.options),
         fmt::format("`options` {}: the stack of profile {} does the same without it", *q.options, r.profile->name));
}

// What is said about a CPU that computes nothing, and about experts, of which the host has none.
template <class Refuse>
void check_host_effects(const Resolved& r, const estimate::Setup& setup, const Refuse& refuse) {
  const Request& q = r.asked;
  const model::WeightLayout& layout = setup.execution.weights;
  const bool computes = setup.host != nullptr && layout.computes_on_host();
  const std::string idle = "the host computes nothing but the token embedding and the sampling";
  const char* more = "give `gpu-layers` or `n-cpu-moe` as well, or leave it out";
  if (setup.device->kind != hardware::DeviceKind::cpu && !computes) {
    const std::string why = setup.host != nullptr ? idle : r.device.name + " is no CPU";
    refuse(q.cpu_threads.has_value(), fmt::format("`cpu-threads`: {}", why), setup.host != nullptr ? more : kLeaveOut);
    refuse(q.numa.has_value(), fmt::format("`numa`: {}", why), setup.host != nullptr ? more : kLeaveOut);
  }
  refuse(q.no_op_offload && !computes, fmt::format("`no-op-offload`: {}", idle), more);
  refuse(q.no_mmap && !computes, fmt::format("`no-mmap`: {}", idle), more);
  refuse(q.no_mmap && computes && q.no_op_offload, "`no-mmap`: with `no-op-offload` no weights are sent");
  refuse(q.no_mmap && computes && !r.profile, "`no-mmap`: the speed of light takes all of the link's rate");
  refuse(q.cpu_moe && q.n_cpu_moe, "`cpu-moe` and `n-cpu-moe` both say whose experts stay on the host",
         "give one of them");
  const std::int64_t layers = r.model().num_layers();
  refuse(q.n_cpu_moe.value_or(0) > layers, fmt::format("`n-cpu-moe`: {} has {} layers", r.model().name, layers),
         "`cpu-moe` for all");
  const bool kept = std::ranges::any_of(layout.groups, &model::LayerGroup::keeps_experts);
  const char* const field = q.cpu_moe ? "cpu-moe" : q.n_cpu_moe ? "n-cpu-moe" : "override-tensor";
  refuse((q.cpu_moe || q.n_cpu_moe || q.override_tensor) && !kept,
         fmt::format("`{}`: of the layers on the device none has such experts", field));
}

// An encoder reads a text once: there is no cache, and nothing comes after the prompt.
template <class Refuse>
void check_encoder_effects(const Resolved& r, const Refuse& refuse) {
  if (!r.model().encoder) return;
  const auto useless = [&](std::string_view name) {
    refuse(get(r.asked, field(name)).has_value(),
           fmt::format("`{}`: {} is an encoder: it reads every text once, caches nothing and generates nothing", name,
                       r.model().name));
  };
  for (const std::string_view name : llmperf::words(
           "gen depth prefill-chunk step phase verify accept top-k top-p kv cache-type-k cache-type-v output "
           "prefix turns think prefix-caching chunked-prefill prefill-replicas decode-replicas")) {
    useless(name);
  }
  // How many texts are in a step is said of what serves them.
  const auto of_steps = [](std::string_view name) { return name == "max-batched-tokens" || name == "max-seqs"; };
  for (const char* name : kPoolFields) {
    if (r.workload() != Workload::serve || !of_steps(name)) useless(name);
  }
}

// What has no effect beside the rest of a request. A value that restates the default does no harm.
void check_effects(Resolved& r, const graph::Plan& plan, std::int64_t devices, Unused unused) {
  const Request& q = r.asked;
  std::vector<graph::Problem> broken;
  const auto refuse = [&](bool useless, std::string message, std::string hint = kLeaveOut) {
    if (useless) broken.push_back({std::move(message), std::move(hint)});
  };
  refuse(q.embedding == "replicated" && plan.tensor == 1,
         "`embedding`: without `tp` there is nothing that it could be replicated over");
  refuse(q.devices_per_node && devices == 1, "`devices-per-node`: there is one device");
  refuse(
      q.power && (!r.profile || r.profile->choices.power == hardware::Power::none),
      fmt::format("`power`: {} says nothing of it", r.profile ? "profile " + r.profile->name : "the speed of light"));
  if (const auto* text = std::get_if<Generation>(&r.work)) {
    const estimate::Serving& serving = text->choices.serving;
    check_host_effects(r, text->estimator->setup(), refuse);
    refuse(q.image_size && q.images.value_or(0) == 0 && r.model().vision, "`image-size`: there are no images",
           "give `images` as well");
    const bool fixed = r.model().vision && r.model().vision->image.rule == model::ImageRule::square;
    refuse(q.image_size && fixed, fixed ? fmt::format("`image-size`: {0} scales every image to {1}x{1}", r.model().name,
                                                      r.model().vision->image.side)
                                        : "");
    check_encoder_effects(r, refuse);
    const bool cached =
        std::ranges::any_of(text->step, [](const auto& g) { return g.new_tokens > 1 && g.context > 0; });
    refuse(cached && plan.sequence() > 1,
           "`step`: devices that share a sequence (`sp`) start a prompt from its first token", "contexts of 0");
    refuse(q.prefill_chunk && !serving.prefills(), "`prefill-chunk`: `phase` decode has no prompts");
    refuse(q.gen && !serving.decodes(), "`gen`: `phase` prefill decodes nothing");
    refuse(q.draft && !serving.decodes(), "`draft`: `phase` prefill decodes nothing");
    refuse(serving.verify > 1 && !serving.decodes(), "`verify`: `phase` prefill decodes nothing");
    refuse((q.top_k || q.top_p) && text->estimator->setup().execution.weights.embedding_on_host,
           "`top-k` and `top-p`: llama.cpp chooses tokens on the host, beside what is modelled");
    refuse(serving.overlap_batches > 1 && devices == 1, "`overlap-batches`: one device exchanges nothing");
  }
  check_options(r, refuse);
  if (const auto* training = std::get_if<Training>(&r.work)) {
    refuse(q.recompute == "selective" && training->estimator->setup().execution.runtime.flash_attention,
           "`recompute` selective: flash attention keeps no scores that could be computed again",
           "leave it out, or take `options` all,no_flash_attention");
    const bool alone = training->choices.plan.replicas() == 1;
    refuse(training->options.zero > 0 && alone, "`zero`: there is one replica, and nothing to divide over",
           "give `dp` as well");
    const std::int64_t tokens = training->scenario.micro_batch * training->scenario.sequence * plan.expert;
    const bool idle =
        q.routing && std::ranges::none_of(r.model().kinds, [&](const model::Layer& layer) {
          const auto& x = layer.feed_forward.experts;
          return x && graph::expert_load(training->choices.routing, x->count, x->per_token, tokens).active <
                          (1 - 1e-9) * d(x->count);
        });
    refuse(idle, "`routing`: a micro-batch reaches every expert, however its tokens choose them");
    refuse(q.exposed_sums && r.profile && r.profile->choices.fused_training,
           fmt::format("`exposed-sums`: {} says what of them shows (training.tensor_shows)",
                       r.profile ? r.profile->name : ""));
    refuse(q.exposed_sums && plan.tensor == 1, "`exposed-sums`: without `tp` nothing is exchanged",
           "give `tp` as well");
    const bool compiled = r.profile && r.profile->choices.compiled;
    for (const auto& [asked, name] : {std::pair{q.async_tp, "async-tp"}, std::pair{q.eager, "eager"}}) {
      refuse(asked && !compiled, fmt::format("`{}`: of PyTorch from 2024 on, which is compiled without it", name),
             "give `runtime` pytorch-fsdp, or leave it out");
    }
    refuse(q.async_tp && !plan.sequence_parallel, "`async-tp` takes gathers and scatters into products",
           "give `tp` and `megatron-sp` as well");
    const bool shares = std::ranges::any_of(r.model().kinds, [](const model::Layer& layer) {
      return layer.feed_forward.experts && layer.feed_forward.experts->shared_intermediate > 0;
    });
    refuse(q.shared_expert_overlap && !shares,
           fmt::format("`shared-expert-overlap`: {} has no shared experts", r.model().name));
    refuse(q.shared_expert_overlap && plan.expert <= plan.tensor,
           "`shared-expert-overlap`: no token travels to experts", "an `ep` beyond `tp`");
    refuse(q.shared_expert_overlap && training->options.schedule != graph::Schedule::one_forward,
           "`shared-expert-overlap`: the schedule has other work for that time", "`schedule` 1f1b");
    if (q.options) {
      for (const std::string_view name : {"static_kv", "last_token_logits"}) {
        const bool named = q.options->find(name) != std::string::npos;
        refuse(named, fmt::format("`options`: {} is of generating text, and has no effect on a training step", name));
      }
    }
  }
  if (std::holds_alternative<Video>(r.work)) {
    refuse(q.die_link && devices == 1, "`die-link`: there is one device");
  }
  if (unused == Unused::refused) return graph::refuse(broken);
  for (graph::Problem& d : broken) r.unused.push_back(std::move(d.message));
}

}  // namespace

// ---- Text.

std::vector<graph::SequenceGroup> step_value(std::string_view text) {
  std::vector<graph::SequenceGroup> step;
  std::vector<graph::Problem> broken;
  std::size_t begin = 0;
  for (const std::string_view group : split(text, ',')) {
    const std::size_t times = group.find('x');
    const std::size_t at = group.find('@');
    const std::string name = fmt::format("`step`: group {} ({}, from character {})", step.size() + broken.size() + 1,
                                         quote(group), begin + 1);
    begin += group.size() + 1;
    const char* const missing = times == std::string_view::npos ? "x between sequences and new tokens"
                                : at == std::string_view::npos  ? "@ before the cached tokens"
                                : at < times                    ? "x before the @"
                                                                : nullptr;
    if (missing != nullptr) {
      broken.push_back(
          {fmt::format("{}: there is no {}", name, missing), "COUNTxNEW@CONTEXT, as in 32x1@2048,1x512@0"});
      continue;
    }
    try {
      step.push_back({.count = count_value(name, group.substr(0, times), 1, estimate::kMaxBatch, Kilo::decimal),
                      .new_tokens = count_value(name, group.substr(times + 1, at - times - 1), 1, estimate::kMaxTokens,
                                                Kilo::binary),
                      .context = count_value(name, group.substr(at + 1), 0, estimate::kMaxTokens, Kilo::binary)});
    } catch (const Error& error) {
      for (const Diagnostic& d : error.diagnostics()) broken.push_back({d.message, d.hint});
    }
  }
  graph::refuse(broken);
  return step;
}

estimate::Scenario scenario_of(const Request& request, const model::Decoder& model) {
  estimate::Scenario s{.batch = request.batch.value_or(1),
                       .prompt = request.prompt.value_or(512),
                       .generate = request.gen.value_or(128),
                       .depth = request.depth.value_or(0),
                       .images = request.images.value_or(0)};
  const model::ImageSize size = model::parse_image_size(request.image_size.value_or("1024x1024"));
  if ((request.image_size || s.images > 0) && !model.vision) {
    throw Error::bad_input(fmt::format("`{}`: {} has no vision tower: it reads text alone",
                                       s.images > 0 ? "images" : "image-size", model.name),
                           kLeaveOut);
  }
  if (s.images > 0) s.image = model::see(*model.vision, size);
  s.prompt += s.image_tokens();
  return s;
}

// What the plan divides of a request: the batch over replicas and micro-batches, the prompt over the sequence axes.
void check_scenario(const estimate::Scenario& s, const estimate::Choices& choices) {
  std::vector<graph::Problem> broken;
  const auto divide = [&](const char* field, std::int64_t total, std::int64_t parts, const char* what) {
    if (total % parts == 0) return;
    broken.push_back({fmt::format("{}: {} do not divide into {} {}", field, total, parts, what),
                      total < parts
                          ? fmt::format("{} {}", field, parts)
                          : fmt::format("{} {} or {}", field, total / parts * parts, (total / parts + 1) * parts)});
  };
  const graph::Plan& plan = choices.plan;
  divide("`batch`", s.batch, plan.data, "replicas (`dp`)");
  const std::int64_t overlap = choices.serving.overlap_batches;
  if (choices.pipeline_batches > 0 || overlap > 1) {
    divide("`batch`", s.batch, plan.data * std::max<std::int64_t>(choices.pipeline_batches, 1) * overlap,
           "micro-batches of all replicas");
  }
  if (choices.serving.phases == estimate::Served::decode && s.generate == 1) {
    broken.push_back(
        {"`gen` 1: the first token comes out of the prefill, and `phase` decode has none", "`gen` 2 or more"});
  }
  if (s.depth > 0 && plan.sequence() > 1) {
    broken.push_back({"`depth`: devices that share a sequence (`sp`) start it from its first token", kLeaveOut});
  }
  const std::int64_t chunk = choices.serving.prefill_chunk.value_or(s.prompt);
  if (chunk < s.prompt && plan.sequence() > 1) {
    broken.push_back(
        {"`prefill-chunk`: devices that share a sequence (`sp`) start it from its first token, and take "
         "all of its prompt at once",
         kLeaveOut});
  }
  if (chunk < s.prompt && plan.sequence_parallel) {
    divide("`prefill-chunk`", chunk, plan.tensor, "shares of a piece (`megatron-sp`)");
  }
  divide("`prompt`", s.prompt, graph::sequence_pieces(plan), "pieces of equal work (`sp`)");
  if (plan.sequence_parallel && plan.data > 0) {
    divide("`prompt`", s.prompt, plan.sequence() * plan.tensor, "shares of a prompt (`megatron-sp`)");
  }
  graph::refuse(broken);
}

void check_host(const std::string& name, const estimate::Setup& setup) {
  if (!name.empty() && setup.host == nullptr) {
    throw Error::bad_input(fmt::format("`host`: {} has no host apart from it", setup.device->name), kLeaveOut);
  }
}

namespace {

// Fields that only GGUF formats have a use for, and those that they have none for.
void check_gguf(const Resolved& r, const estimate::Setup& setup) {
  const Request& q = r.asked;
  if (setup.execution.weights.gguf) {
    check_host(q.host.value_or(""), setup);
    if (r.file.stored && !q.weights && q.gguf_era) {
      throw Error::bad_input("`gguf-era`: the file says which types its tensors have", "give `weights` as well");
    }
    return;
  }
  for (const auto& [field, given] :
       {std::pair{"host", q.host.has_value()}, std::pair{"ubatch", q.ubatch.has_value()},
        std::pair{"gguf-era", q.gguf_era.has_value()}, std::pair{"split", q.split.has_value()},
        std::pair{"no-op-offload", q.no_op_offload}, std::pair{"no-mmap", q.no_mmap}}) {
    if (!given) continue;
    throw Error::bad_input(fmt::format("`{}` is for GGUF formats, not for {}", field, setup.execution.weights.name),
                           "`weights` q4_k_m, or a GGUF file as model");
  }
}

bool sizes_cache(const Request& q) {
  return std::ranges::any_of(kPoolFields, [&](const char* name) { return get(q, field(name)).has_value(); });
}

// What is not modelled beside experts on devices of their own.
void check_afd(const Request& q) {
  if (!q.afd) return;
  if (q.phase != "decode") {
    throw Error::bad_input("`afd` is of decode: prompts are read on other devices, by a plan of theirs",
                           "`phase` decode");
  }
  std::vector<std::string_view> others = {"draft", "lora", "overlap-batches", "step"};
  others.insert(others.end(), kPoolFields.begin(), kPoolFields.end());
  for (const std::string_view name : others) {
    if (get(q, field(name))) throw Error::bad_input(fmt::format("`{}` beside `afd` is not modelled", name), kLeaveOut);
  }
}

void make_generation(Resolved& r, Sources& sources, Unused unused) {
  check_afd(r.asked);
  auto& text = r.work.emplace<Generation>();
  text.choices = choose(r);
  if (r.asked.draft) text.choices.draft = read_draft(*r.asked.draft, r.asked.accept, r.model(), sources);
  if (r.model().encoder) {
    // What cannot be meant, even where a sweep takes fields that others have a use for.
    if (text.choices.serving.phases == estimate::Served::decode || r.asked.depth.value_or(0) > 0) {
      throw Error::bad_input(fmt::format("`{}`: {} is an encoder, which caches nothing and decodes nothing",
                                         r.asked.depth.value_or(0) > 0 ? "depth" : "phase", r.model().name),
                             kLeaveOut);
    }
    text.choices.serving = {.overlap_batches = text.choices.serving.overlap_batches};
  }
  estimate::Setup setup = estimate::make_setup(r.model(), r.device, text.choices);
  if (const graph::Adapters& a = text.choices.adapters; a.any()) {
    setup.notes.push_back(fmt::format("the weights of a device hold {} adapter{} of rank {}: {} in 16 bits", a.served,
                                      a.served == 1 ? "" : "s", a.rank,
                                      format_bytes(cost::adapter_weight_bytes(setup.execution, 0))));
  }
  if (r.model().vision) {
    setup.notes.push_back(fmt::format("the weights hold the vision tower ({} in 16 bits), with images or without{}",
                                      format_bytes(cost::vision_weight_bytes(setup.execution)),
                                      text.choices.plan.tensor > 1 ? "; every device of `tp` holds all of it" : ""));
  }
  if (const graph::Placement* placed = setup.execution.placement(); placed && text.choices.plan.expert > 1) {
    setup.notes.push_back(
        fmt::format("the busiest of {} devices has {} x the mean of experts' tokens, {} x as experts are numbered ({})",
                    text.choices.plan.expert, format_significant(placed->imbalance),
                    format_significant(placed->by_number), r.loads->name()));
  } else if (text.choices.plan.expert > 1) {
    constexpr std::int64_t kMany = 1 << 20;  // of which chance leaves nothing
    const model::Experts& x = *r.model().first_routed()->feed_forward.experts;
    if (const double more = graph::load_of_device(setup.execution, x, kMany).imbalance; more > 1.005) {
      setup.notes.push_back(
          fmt::format("the busiest of {} devices is taken to have {} x the mean of experts' tokens ({})",
                      text.choices.plan.expert, format_significant(more), graph::to_text(text.choices.routing)));
    }
  }
  if (sizes_cache(r.asked) && !r.model().encoder) text.memory = engine_memory(r, setup);
  text.estimator = std::make_unique<estimate::Estimator>(std::move(setup));
  if (r.asked.step) text.step = step_value(*r.asked.step);
  const std::int64_t verify = text.choices.serving.verify;
  for (graph::SequenceGroup& group : text.step) {
    if (group.new_tokens > 1 || group.context == 0 || verify == 1) continue;
    group.new_tokens = verify;
    group.verifies = true;
  }
  check_gguf(r, text.estimator->setup());
  check_effects(r, text.choices.plan, text.choices.plan.devices(), unused);
}

// ---- Training.

void make_training(Resolved& r, Unused unused) {
  const Request& q = r.asked;
  auto& training = r.work.emplace<Training>();
  training.choices = choose(r);
  estimate::Setup setup = estimate::make_setup(r.model(), r.device, training.choices);
  if (r.model().vision) {
    setup.notes.emplace_back("the language model alone is trained: the vision tower is neither held nor run");
  }
  training.options = training_options(q, setup, training.choices.plan);
  training.estimator = std::make_unique<estimate::TrainingEstimator>(std::move(setup));
  const graph::Plan& plan = training.choices.plan;
  estimate::TrainingScenario& s = training.scenario;
  s.micro_batch = q.micro_batch.value_or(1);
  s.sequence = q.seq.value_or(2048);
  const auto whole = [&] { return q.global_batch.value_or(s.micro_batch * plan.data * plan.pipeline); };
  s.global_batch = whole();
  if (q.max) {
    one_of("max", "unknown size", *q.max, Either{"micro-batch", "seq"});
    const bool length = *q.max == "seq";
    const auto again = length ? q.seq.has_value() : q.micro_batch.has_value();
    if (again) throw Error::bad_input(fmt::format("`max` {0} and `{0}` both say how large it is", *q.max), kLeaveOut);
    std::int64_t& size = length ? s.sequence : s.micro_batch;
    const std::int64_t unit = length ? std::lcm(graph::sequence_multiple(plan), std::int64_t{128}) : 1;
    const auto fits = [&](std::int64_t units) {
      size = units * unit;
      s.global_batch = whole();
      const estimate::TrainingScenario tried{std::max(s.global_batch, s.micro_batch * plan.data), s.micro_batch,
                                             s.sequence};
      return training.estimator->memory(tried, plan, training.options).total() <= *r.device.dram().capacity;
    };
    constexpr std::int64_t kMost = estimate::kMaxTokens / 128;
    std::int64_t least = 1;
    while (2 * least <= kMost && fits(2 * least)) least *= 2;
    std::int64_t beyond = 2 * least;
    while (beyond - least > 1) {
      const std::int64_t middle = (least + beyond) / 2;
      (fits(middle) ? least : beyond) = middle;
    }
    // Of a batch that is given, whole micro-batches.
    while (least > 1 && !length && q.global_batch && *q.global_batch % (plan.data * least) != 0) --least;
    fits(least);
  }
  graph::refuse(estimate::problems(r.model(), s, plan, training.options));
  check_effects(r, plan, plan.devices(), unused);
}

// ---- Video.

estimate::VideoScenario video_scenario(const Request& q, const model::VideoDit& model) {
  if (q.frames && q.seconds) {
    throw Error::bad_input("`frames` and `seconds` both say how long the video is", "give one of them");
  }
  const std::int64_t frames =
      q.frames ? *q.frames : model::frames_of_seconds(model, q.seconds.value_or(kDefaultSeconds));
  estimate::VideoScenario s;
  s.shape =
      model::video_shape(model, model::parse_video_size(q.resolution.value_or("720p"), q.aspect.value_or("")), frames);
  s.videos = q.batch.value_or(1);
  s.steps = q.steps.value_or(model.sampler.steps);
  s.guidance = one_of("cfg", "unknown value", q.cfg.value_or("on"), Either{"on", "off"}) == 0;
  s.text_tokens = q.text_tokens;
  return s;
}

// "2x2/2d" of a stage.
void read_sub_mesh(std::string_view text, graph::Plan& plan) {
  const std::size_t slash = text.find('/');
  const std::string strategy(slash == std::string_view::npos ? "ulysses" : text.substr(slash + 1));
  const std::vector<std::string_view> sides = split(text.substr(0, slash), 'x');
  if (sides.size() != 2) {
    throw Error::bad_input(fmt::format("`stages`: cannot read the sub-mesh {}", quote(text)), "0-13@2x2/ulysses");
  }
  const std::int64_t rows = count_value("`stages`", sides[0], 1, graph::kMostDevices);
  const std::int64_t columns = count_value("`stages`", sides[1], 1, graph::kMostDevices);
  plan.tensor = plan.ulysses = 1;
  plan.tensor_rows = 0;
  constexpr std::array<std::string_view, 3> kStrategies = {"ulysses", "tensor", "2d"};
  one_of("stages", "unknown strategy", strategy, kStrategies);
  (strategy == "ulysses" ? plan.ulysses : plan.tensor) = rows * columns;
  if (strategy == "2d" && plan.tensor > 1) plan.tensor_rows = rows;
  if (plan.tensor == 1) plan.sequence_parallel = false;
}

void make_video(Resolved& r, Unused unused) {
  const Request& q = r.asked;
  if (q.weights && model::gguf_weights(*q.weights) != nullptr) {
    throw Error::bad_input(fmt::format("`weights`: GGUF formats ({}) hold language models", *q.weights),
                           "bf16, fp8, int8 or w8a8");
  }
  estimate::VideoChoices& c = r.work.emplace<Video>().choices;
  c.scenario = video_scenario(q, r.video);
  c.weights = q.weights;
  c.activations = q.activations;
  c.text_weights = q.text_weights;
  c.tiles = choose_tiles(q, r.device, r.runtime());
  c.run_as(choose_execution(q, r.device, r.runtime(), hardware::Workload::video));
  c.profile = r.runtime();
  c.reserve = q.reserve;
  c.price = r.price;
  c.plan = choose_plan(q, r.video);
  if (c.scenario.videos % c.plan.data != 0) {
    throw Error::bad_input(
        fmt::format("`batch`: {} do not divide into {} replicas (`dp`)", c.scenario.videos, c.plan.data),
        fmt::format("`batch` {}", (c.scenario.videos / c.plan.data + 1) * c.plan.data));
  }
  if (q.stages) {
    if (q.pp) throw Error::bad_input("`stages` and `pp` both say which stages there are", "give one of them");
    c.stages = stages_value(*q.stages, c.plan);
  }
  c.patches = q.patches.value_or(1);
  c.devices_per_node = q.devices_per_node;
  if (q.die_link) {
    c.die_link = parse_bytes_per_second(*q.die_link);
    if (!c.die_link || !(c.die_link->value > 0)) {
      throw Error::bad_input(fmt::format("`die-link`: cannot read {}", quote(*q.die_link)), "`die-link` 64GB/s");
    }
  }
  const bool alone = c.plan.devices() == 1 && c.stages.size() < 2;
  check_effects(r, c.plan, alone ? 1 : 2, unused);
}

}  // namespace

std::vector<estimate::VideoStage> stages_value(const std::string& text, const graph::Plan& plan) {
  std::vector<estimate::VideoStage> stages;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t at = part.find('@');
    const std::vector<std::string_view> ends = split(part.substr(0, at), '-');
    if (ends.size() != 2) throw Error::bad_input(fmt::format("`stages`: cannot read {}", quote(part)), "0-13,14-27");
    estimate::VideoStage stage{count_value("`stages`", ends[0], 0, graph::kMostDevices),
                               count_value("`stages`", ends[1], 0, graph::kMostDevices), plan};
    if (at != std::string_view::npos) read_sub_mesh(part.substr(at + 1), stage.plan);
    stages.push_back(stage);
  }
  return stages;
}

hardware::RuntimeOptions other_options(const Resolved& r, const std::string& options) {
  Request other = r.asked;
  other.options = options;
  return choose_execution(other, r.device, r.runtime(), options_workload(r)).options;
}

// ---- The passes in their order.

std::vector<std::string> listed_devices(const std::string& text) {
  constexpr std::size_t kMost = 256;
  if (text.find('/') != std::string::npos || text.ends_with(".yaml") || descriptor::is_inline(text)) return {text};
  std::vector<std::string> names;
  for (const std::string_view part : split(text, '+')) {
    const std::size_t times = std::min(part.find_first_not_of("0123456789"), part.size());
    const bool counted = times > 0 && times + 1 < part.size() && part[times] == 'x';
    const std::int64_t count = counted ? count_value("`hw`", part.substr(0, times), 1, graph::kMostDevices) : 1;
    if (names.size() + static_cast<std::size_t>(count) > kMost) {
      throw Error::bad_input(fmt::format("`hw`: a list of more than {} devices", kMost));
    }
    names.insert(names.end(), static_cast<std::size_t>(count), std::string(counted ? part.substr(times + 1) : part));
  }
  return names;
}

namespace {

// A list of devices without a GGUF format: what is meant by one of a kind is a plan, on what has so many in a server.
[[noreturn]] void refuse_list(const std::vector<std::string>& listed, bool unlike, Sources& sources) {
  const auto count = static_cast<std::int64_t>(listed.size());
  std::vector<std::string> meant = device_names();
  if (contains(meant, listed.front())) meant = {listed.front()};
  std::erase_if(meant, [&](const std::string& name) {
    return !name.starts_with(listed.front()) ||
           (name != listed.front() && sources.device(name).devices_per_node < count);
  });
  throw Error::bad_input("`hw`: only layers of GGUF formats are dealt to a list of devices",
                         unlike || meant.empty() ? "`weights` q4_k_m, or one device and a plan"
                                                 : fmt::format("`hw` {} `tp` {}", join(meant, " or "), count));
}

// Of the device, or of all that are listed.
std::optional<estimate::HourPrice> choose_price(const Resolved& r, Sources& sources, Unused unused) {
  if (r.cards.empty()) return price_of(r.asked, r.device, sources, unused);
  std::vector<std::optional<estimate::HourPrice>> all;
  for (const std::unique_ptr<Listed>& card : r.cards) {
    all.push_back(price_of(r.asked, card->device, sources, unused));
  }
  return estimate::mean_price(all);
}

// The profile of the engine that was asked for, where the request names no runtime: the device's own where that is of
// the engine, of a version the era that it is in. Without any the device's own stands for it.
Request on_engine(const Request& request, const Resolved& r, const std::string& hw, bool gguf, Sources& sources) {
  if (!request.engine || request.runtime || r.device.tile_array) return request;
  const std::size_t at = request.engine->find('@');
  const serving::EngineKind kind = serving::parse_engine_kind(*request.engine);
  const auto own = choose_profile(request, hw, r.device, gguf, hardware::Workload::language, sources);
  const bool versioned = at != std::string::npos;
  if (own && !versioned && engine_of(own->name) == kind) return request;
  Request q = request;
  q.runtime = std::string(name(kind)) + (versioned ? request.engine->substr(at) : "");
  try {
    choose_profile(q, hw, r.device, gguf, hardware::Workload::language, sources);
  } catch (const Error&) {
    if (versioned && engine_of(own->name) == kind) throw;
    return request;
  }
  return q;
}

}  // namespace

std::optional<estimate::HourPrice> price_of(const Request& request, const hardware::Device& device, Sources& sources,
                                            Unused unused) {
  if (!request.price) return estimate::hour_price(device);
  if (auto given = parse_price(*request.price)) return given;
  const auto prices = sources.prices(*request.price);
  if (const auto at = prices.find(device.name); at != prices.end()) return at->second;
  if (unused == Unused::taken) return std::nullopt;
  std::vector<std::string> names;
  for (const auto& [name, price] : prices) names.push_back(name);
  throw Error::bad_input(fmt::format("`price`: {} has no price of {}", *request.price, device.name),
                         name_hint(device.name, names));
}

std::optional<hardware::RuntimeProfile> choose_training_profile(const Request& request, const std::string& hw,
                                                                const hardware::Device& device, Sources& sources) {
  if (device.tile_array && request.runtime && *request.runtime != "none") {
    throw Error::bad_input(
        fmt::format("`runtime`: no stack that trains is known of {}, an array of tiles", device.name),
        "none: the speed of light");
  }
  if (request.runtime) {
    try {
      return choose_profile(request, hw, device, false, hardware::Workload::training, sources);
    } catch (const Error&) {
      Request other = request;
      other.runtime = request.runtime->substr(0, request.runtime->find('@'));
      try {
        choose_profile(other, hw, device, false, hardware::Workload::language, sources);
      } catch (const Error&) {
        other.runtime.reset();
      }
      if (!other.runtime || descriptor::is_path(*other.runtime)) throw;
      throw Error::bad_input(
          fmt::format("`runtime`: {} is a profile of inference, and `training` is no part of it", *other.runtime),
          "pytorch-fsdp, megatron, transformers-peft, maxtext, mindspeed, or none: the speed of light");
    }
  }
  if (device.tile_array || device.kind == hardware::DeviceKind::cpu) return std::nullopt;
  Request own = request;
  own.runtime = fmt::format("{}@2099", training_stack(request, device));  // its newest release
  return choose_profile(own, hw, device, false, hardware::Workload::training, sources);
}

namespace {

std::unique_ptr<Resolved> resolve(const Request& given, Workload workload, Sources& sources, Unused unused) {
  check_fields(given, workload);
  auto r = std::make_unique<Resolved>();
  r->asked = given;
  const Request& request = r->asked;
  r->asked_for = workload;
  const bool video = workload == Workload::video;
  if (video) {
    r->video = sources.video(*request.model);
  } else {
    r->file = sources.model(*request.model, request.assume.value_or(""));
    if (!request.weights) r->asked.weights = r->file.weights;
    if (workload == Workload::training && !request.weights) r->asked.weights = trained_weights(r->model());
    if (request.weights == "w8a8c8") {  // as Ascend's tools call W8A8 with a cache of 8 bits
      r->asked.weights = "w8a8";
      if (!request.kv) r->asked.kv = "int8";
    }
    // Experts stay on the host in GGUF files, whose form of mxfp4 has a name of its own.
    const bool on_host = request.n_cpu_moe || request.cpu_moe || request.override_tensor;
    if (on_host && request.weights == "mxfp4") r->asked.weights = "mxfp4_moe";
  }
  const std::vector<std::string> names = listed_devices(required(request.hw, "hw"));
  r->devices = static_cast<std::int64_t>(names.size());
  const bool generates = workload == Workload::text || workload == Workload::serve;
  const bool gguf = generates && is_gguf(request, r->file);
  const bool unlike = std::ranges::any_of(names, [&](const std::string& name) { return name != names.front(); });
  if (r->devices > 1 && !gguf) refuse_list(names, unlike, sources);
  r->device = sources.device(names.front());
  if (!video) r->host = sources.host(request.host.value_or(""));
  const Request run = on_engine(request, *r, names.front(), gguf, sources);
  const auto profile_of = [&](const std::string& hw, const hardware::Device& device) {
    const auto sort = video ? hardware::Workload::video : hardware::Workload::language;
    auto profile = choose_profile(run, hw, device, gguf, sort, sources);
    if (!video && profile) profile = hardware::run_by(*std::move(profile), r->model().architecture);
    if (workload == Workload::serve && profile && !request.power) profile = hardware::under_load(*std::move(profile));
    return profile;
  };
  // The profile is that of the device at its full clock, and what of it goes with the clock is carried over.
  const auto limit = [&](hardware::Device& device, std::optional<hardware::RuntimeProfile>& profile) {
    if (!request.power_limit) return;
    const std::optional<double> watts = hardware::parse_watts(*request.power_limit);
    if (!watts) throw Error::bad_input("`power-limit`: no power in " + quote(*request.power_limit), "245W");
    hardware::Device limited = hardware::with_power_limit(device, *watts);
    if (profile) profile = hardware::carried_over(*std::move(profile), device, limited);
    device = std::move(limited);
  };
  if (workload == Workload::training) {
    r->profile = choose_training_profile(run, names.front(), r->device, sources);
  } else {
    r->profile = profile_of(names.front(), r->device);
    if (gguf && r->profile) r->host_profile = choose_host_profile(request, r->host, sources);
  }
  limit(r->device, r->profile);
  for (const std::string& name : unlike ? names : std::vector<std::string>()) {
    Listed& card = *r->cards.emplace_back(std::make_unique<Listed>(Listed{sources.device(name), {}}));
    card.profile = profile_of(name, card.device);
    limit(card.device, card.profile);
  }
  r->price = choose_price(*r, sources, unused);
  if (!video) r->routing = choose_routing(*r, sources);
  switch (workload) {
    case Workload::text:
    case Workload::serve: make_generation(*r, sources, unused); break;
    case Workload::video: make_video(*r, unused); break;
    case Workload::training: make_training(*r, unused); break;
  }
  return r;
}

}  // namespace

namespace {

// What a request leaves out, weights that are most of what a step waits for, and two micro-batches that take longer
// than one batch.
void note_serving(const Resolved& r, std::vector<std::string>& notes) {
  const auto& text = std::get<Generation>(r.work);
  const estimate::Serving& serving = text.choices.serving;
  const estimate::Setup& setup = text.estimator->setup();
  if (serving.verify > 1) {  // without a draft
    notes.push_back(fmt::format(
        "a step verifies {} tokens of every sequence; what drafts the other {} is left out{}", serving.verify,
        serving.verify - 1, r.model().next_token_layers > 0 ? " (the model's own layer for further tokens, say)" : ""));
  }
  const bool sends = setup.execution.streams_weights && setup.execution.weights.computes_on_host();
  if (setup.host && setup.profile && sends) {
    for (const estimate::Phase& phase : text.estimator->run(text.scenario).phases) {
      const double uploads = estimate::shares_of(phase.ops)[static_cast<std::size_t>(estimate::Part::uploads)];
      if (uploads < 0.5) continue;
      constexpr std::int64_t kLong = 2048;
      const std::int64_t tokens = phase.first.count * phase.first.new_tokens;
      const bool more = setup.execution.micro_batch < std::min(kLong, tokens);
      notes.push_back(fmt::format("{} of {} is the host sending weights, for every micro-batch anew{}{}",
                                  format_share(uploads), phase.name,
                                  more ? fmt::format("; `ubatch` {} does so less often", kLong) : "",
                                  setup.pinned_weights ? "" : "; `no-mmap` does so faster"));
    }
  }
  if (serving.overlap_batches > 1) {
    estimate::Choices plain = text.choices;
    plain.serving.overlap_batches = 1;
    const estimate::Estimate with = text.estimator->run(text.scenario);
    const estimate::Estimate without =
        estimate::Estimator(estimate::make_setup(r.model(), r.device, plain)).run(text.scenario);
    for (const estimate::Phase& phase : with.phases) {
      const estimate::Phase* one = without.phase(phase.name);
      if (one == nullptr || phase.time <= one->time) continue;
      notes.push_back(fmt::format("two micro-batches make a step of {} longer: {}, and {} without", phase.name,
                                  format_seconds(phase.time), format_seconds(one->time)));
    }
  }
}

// What changes no time is told and not refused, as it may at another batch.
void note_idle(const Resolved& r, Sources& sources, std::vector<std::string>& notes) {
  const auto& text = std::get<Generation>(r.work);
  std::optional<estimate::Estimate> with;
  for (const char* name : {"execution", "activations", "gguf-era"}) {
    const auto given = get(r.asked, field(name));
    if (!given || (name == std::string_view("activations") && !text.estimator->setup().execution.weights.gguf))
      continue;
    Request plain = r.asked;
    set(plain, field(name), "");
    const auto other = resolve(plain, Workload::text, sources, Unused::taken);
    if (!with) with = text.estimator->run(text.scenario);
    const estimate::Estimate without = other->estimator().run(text.scenario);
    if (!with->fits || !without.fits || with->ttft != without.ttft || with->tpot != without.tpot) continue;
    const auto& choices = std::get<Generation>(other->work).choices;
    const bool hidden =
        choices.dispatch != text.choices.dispatch || choices.decode_dispatch != text.choices.decode_dispatch;
    notes.push_back(fmt::format(
        "{} {} takes as long as {}", name, *given,
        hidden ? fmt::format("{}'s own: what the host does is hidden behind the device's work", r.profile->name)
               : "without it"));
  }
}

}  // namespace

std::unique_ptr<Resolved> resolve_setup(const Request& request, Sources& sources, Unused unused) {
  const std::string& model = required(request.model, "model");
  if (sources.is_video(model)) model::reject_video_dit(model);
  return resolve(request, Workload::text, sources, unused);
}

namespace {

// … instead of the plan that the request has.
void set_plan(Request& q, const std::string& text) {
  const std::optional<graph::Plan> plan = graph::parse_plan(text);
  if (!plan) {
    throw Error::bad_input(fmt::format("`decode-plan`: {} is no plan", quote(text)),
                           "degrees of tp, pp, dp and ep: tp 8, or dp 8 ep 8");
  }
  q.tp = std::to_string(plan->tensor);
  q.pp = plan->pipeline;
  q.dp = plan->data;
  q.ep = plan->expert;
}

}  // namespace

std::unique_ptr<Resolved> resolve_serving(const Request& request, Sources& sources) {
  const std::string& model = required(request.model, "model");
  if (sources.is_video(model)) model::reject_video_dit(model);
  auto r = resolve(request, Workload::serve, sources, Unused::refused);
  if (!request.decode_plan && !request.decode_hw) return r;
  Request decode = request;
  if (request.decode_hw) decode.hw = request.decode_hw;
  if (request.decode_plan) set_plan(decode, *request.decode_plan);
  decode.decode_plan.reset();
  decode.decode_hw.reset();
  r->decode = resolve(decode, Workload::serve, sources, Unused::refused);
  const auto cache = [](const Resolved& of) { return of.setup().execution.kv.name(); };
  if (cache(*r) != cache(*r->decode)) {
    throw Error::bad_input(
        fmt::format("`decode-hw`: keys and values of {} are sent to a cache of {}", cache(*r), cache(*r->decode)),
        "one type for both: `kv`");
  }
  return r;
}

std::unique_ptr<Resolved> resolve(const Request& request, Sources& sources, Unused unused) {
  const std::string& model = required(request.model, "model");
  const Workload workload = sources.is_video(model) ? Workload::video
                            : request.training      ? Workload::training
                                                    : Workload::text;
  auto r = resolve(request, workload, sources, unused);
  if (auto* text = std::get_if<Generation>(&r->work)) {
    text->scenario = scenario_of(request, r->model());
    check_scenario(text->scenario, text->choices);
    std::vector<std::string> notes;
    if (unused == Unused::refused) note_idle(*r, sources, notes);
    note_serving(*r, notes);
    if (!notes.empty()) {
      estimate::Setup setup = text->estimator->setup();
      setup.notes.insert(setup.notes.end(), notes.begin(), notes.end());
      text->estimator = std::make_unique<estimate::Estimator>(std::move(setup));
    }
  }
  return r;
}

estimate::EngineMemory engine_memory(const Resolved& r, const estimate::Setup& setup) {
  return serving::memory_of(serving::choose_engine(engine_choices(r), setup));
}

}  // namespace llmperf::request
