#include "cli/request.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "cli/values.h"
#include "hardware/runtime_execution.h"
#include "model/video_dit.h"
#include "model/weight_layout.h"

namespace llmperf::cli {

void add_model_flag(CLI::App& command, std::string& model, const char* description) {
  command
      .add_option(
          "-m,--model", model,
          description ? description : "built-in name, YAML file, Hugging Face config.json or its folder, or GGUF file")
      ->type_name("MODEL")
      ->required();
}

void add_hardware_flag(CLI::App& command, std::string& hardware) {
  command.add_option("--hw", hardware, "built-in name or YAML file")->type_name("DEVICE")->required();
}

void add_scheme_flags(CLI::App& command, RequestFlags& f) {
  command
      .add_option(
          "--weights", f.weights,
          "bf16, fp16, fp32, fp8, int8, w8a8, w4a16[-gN] (gptq, awq), nvfp4, mxfp4, nf4, a GGUF type (q4_k_m …) or "
          "bits per weight [the checkpoint's own, else the activation type]")
      ->type_name("SCHEME");
  command
      .add_option("--kv", f.kv,
                  "KV cache type: bf16, fp16, fp32, fp8, int8, int4, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl [the "
                  "checkpoint's own, else the activation type]")
      ->type_name("SCHEME");
  command.add_option("--activations", f.activations, "activation type: bf16, fp16, fp32")->type_name("DTYPE");
  command
      .add_option("--options", f.options,
                  "what the runtime fuses: all, none, or a list of names; no_NAME switches off [all; on an array of "
                  "tiles all,joined_vectors,prefetch_weights]")
      ->type_name("LIST");
  command.add_option("--reserve", f.reserve, "memory the runtime keeps for itself [512MiB]")->type_name("BYTES");
}

void add_request_flags(CLI::App& command, RequestFlags& f) {
  add_model_flag(command, f.model);
  add_hardware_flag(command, f.hardware);
  add_batch_flags(command, f);
  command.add_option("--gen", f.generate, "tokens to generate for a request")->type_name("N")->capture_default_str();
  add_execution_flags(command, f);
  add_video_flags(command, f.video);
}

void add_batch_flags(CLI::App& command, RequestFlags& f) {
  command.add_option("--batch", f.batch, "requests processed together")->type_name("N")->capture_default_str();
  command.add_option("--prompt", f.prompt, "prompt tokens of a request")->type_name("N")->capture_default_str();
}

void add_execution_flags(CLI::App& command, RequestFlags& f) {
  f.command = &command;
  add_scheme_flags(command, f);
  add_runtime_flags(command, f);
  command
      .add_option("--tile-model", f.tile_model,
                  "arrays of tiles: default (the best mapping found), published (the published mapper's formulas) or "
                  "roofline")
      ->type_name("NAME")
      ->capture_default_str();
  add_gguf_flags(command, f.gguf);
  command
      .add_option("--gpu-layers", f.gpu_layers,
                  "GGUF: layers on the device, the head counted first, the rest on the host [all]")
      ->type_name("N");
  command
      .add_option("--tensor-split", f.tensor_split,
                  "GGUF: shares of the layers on the devices of --pp, such as 3,2 [all alike]")
      ->type_name("SHARES");
  command.add_option("--host", f.host, std::string("GGUF: the CPU beside the device [") + kDefaultHost + "]")
      ->type_name("DEVICE");
  add_plan_flags(command, f.plan);
  command
      .add_option("--pipeline-batches", f.pipeline_batches,
                  "micro-batches that a batch goes through the pipeline in [as many as divide it, up to --pp]")
      ->type_name("N");
  command.add_option("--ubatch", f.micro_batch, "GGUF: tokens computed at once at most: longer prompts are cut [512]")
      ->type_name("N");
}

void check_workload_flags(const RequestFlags& f, hardware::Workload workload) {
  constexpr const char* kLanguageOnly[] = {"--prompt",       "--gen",        "--kv",           "--gpu-layers",
                                           "--host",         "--ubatch",     "--gguf-era",     "--cache-type-k",
                                           "--cache-type-v", "--ep",         "--embedding",    "--pipeline-batches",
                                           "--ep-dispatch",  "--ep-combine", "--tensor-split", "--training"};
  const bool video = workload == hardware::Workload::video;
  const std::span<const char* const> foreign =
      video ? std::span<const char* const>(kLanguageOnly) : std::span<const char* const>(kVideoFlags);
  std::vector<Diagnostic> broken;
  for (const char* flag : foreign) {
    const CLI::Option* option = f.command ? f.command->get_option_no_throw(flag) : nullptr;
    if (option == nullptr || option->count() == 0) continue;
    broken.push_back({.where = {},
                      .message = fmt::format("{} is for {}: {} is not one", flag,
                                             video ? "language models" : "models that generate video", f.model),
                      .hint = "leave it out"});
  }
  if (!broken.empty()) throw Error(ErrorKind::bad_input, std::move(broken));
}

estimate::Choices scheme_choices(const RequestFlags& f, const hardware::Device& device,
                                 const hardware::RuntimeProfile* profile) {
  const auto given = [](const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); };
  estimate::Choices choices;
  choices.weights = given(f.weights);
  choices.kv = given(f.kv);
  choices.activations = given(f.activations);
  choose_execution(f, device, profile, choices);
  choices.tiles = tile_model(f, device, profile);
  if (!f.reserve.empty()) choices.reserve = bytes_value("--reserve", f.reserve);
  choices.devices_per_node = devices_per_node_of(f.plan);
  return choices;
}

void add_runtime_flags(CLI::App& command, RequestFlags& f) {
  command
      .add_option("--runtime", f.runtime,
                  "software stack, by name or profile file [the device's own]; none: the speed of light")
      ->type_name("NAME");
  command
      .add_option("--execution", f.execution,
                  "eager, graph, static-graph or dynamic-graph (dispatched from the host) [the runtime's own]")
      ->type_name("HOW");
}

std::optional<hardware::RuntimeProfile> load_profile(const RequestFlags& f, const hardware::Device& device, bool gguf,
                                                     hardware::Workload workload, Sources* sources) {
  if (f.runtime == "none") return std::nullopt;
  const bool own = f.runtime.empty();
  if (own && device.tile_array) return std::nullopt;  // the tiles' mapper times the ops
  const std::string name = own && gguf ? "llama.cpp" : f.runtime;
  const auto unknown = own ? hardware::UnknownRuntime::use_default : hardware::UnknownRuntime::error;
  hardware::RuntimeProfile profile = sources ? sources->profile(f.hardware, device, name, unknown, workload)
                                             : hardware::load_runtime_profile(device, name, unknown, workload);
  if (profile.workload != workload) {  // of a file
    throw Error::bad_input(fmt::format("--runtime: {} is a profile for {} models, and {} is a {} model", f.runtime,
                                       hardware::name(profile.workload), f.model, hardware::name(workload)));
  }
  return profile;
}

mapper::TileModel tile_model(const RequestFlags& f, const hardware::Device& device,
                             const hardware::RuntimeProfile* profile) {
  const mapper::TileModel model = mapper::parse_tile_model(f.tile_model);
  if (model != mapper::TileModel::mapped && (!device.tile_array || profile)) {
    throw Error::bad_input(fmt::format("--tile-model: {}", device.tile_array ? "a runtime profile times the operations"
                                                                             : device.name + " is no array of tiles"),
                           "leave it out");
  }
  if (model == mapper::TileModel::published && device.tile_array->tiles != 16) {
    throw Error::bad_input("--tile-model: the published mapper is for 16 tiles", "leave it out");
  }
  return model;
}

std::string option_list(const RequestFlags& f, const hardware::Device& device,
                        const hardware::RuntimeProfile* profile) {
  if (!f.options.empty()) return f.options;
  return device.tile_array && profile == nullptr ? "all,joined_vectors,prefetch_weights" : "all";
}

void choose_execution(const RequestFlags& f, const hardware::Device& device, const hardware::RuntimeProfile* profile,
                      estimate::Choices& choices) {
  if (profile == nullptr) {
    if (!f.execution.empty()) {
      throw Error::bad_input("--execution says how a runtime runs, and there is none", "leave out --runtime none");
    }
    choices.runtime = hardware::parse_runtime_options(option_list(f, device, profile));
    return;
  }
  if (f.options.starts_with("all") && hardware::format_runtime_options(profile->options) == "none") {
    throw Error::bad_input(
        fmt::format("--options {}: the stack of profile {} has none of the options", f.options, profile->name),
        "leave it out, or name what another stack adds: --options flash_attention");
  }
  const hardware::RuntimeExecution execution =
      hardware::resolve_execution(*profile, option_list(f, device, profile), f.execution);
  choices.runtime = execution.options;
  choices.prefill_dispatch = execution.prefill;
  choices.decode_dispatch = execution.decode;
  choices.profile = profile;
}

namespace {

// "3,2": at least one of them positive.
std::vector<double> split_value(const std::string& text) {
  std::vector<double> shares;
  if (text.empty()) return shares;
  for (const std::string_view share : split(text, ','))
    shares.push_back(double_value("--tensor-split", share, 0, 1e12));
  if (std::all_of(shares.begin(), shares.end(), [](double share) { return share == 0; })) {
    throw Error::bad_input("--tensor-split: all shares are 0", "3,2");
  }
  return shares;
}

}  // namespace

estimate::Choices choices_of(const RequestFlags& f, const Request& request) {
  const auto given = [](const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); };
  estimate::Choices choices = scheme_choices(f, request.device, request.profile ? &*request.profile : nullptr);
  choices.cache_k = given(f.gguf.cache_k);
  choices.cache_v = given(f.gguf.cache_v);
  choices.gguf_era = era_value(f.gguf);
  if (!f.gpu_layers.empty() && f.gpu_layers != "all") {
    choices.gpu_layers = int_value("--gpu-layers", f.gpu_layers, 0, estimate::kMaxTokens);
  }
  choices.tensor_split = split_value(f.tensor_split);
  if (!f.micro_batch.empty()) choices.micro_batch = int_value("--ubatch", f.micro_batch, 1, estimate::kMaxTokens);
  if (request.file.stored) choices.stored = &request.file.stored->layout;
  choices.host = &request.host;
  choices.plan = plan_of(f.plan, request.model());
  if (request.profile && f.plan.embedding.empty() && choices.plan.tensor > 1) {
    choices.plan.shard_embedding = !request.profile->choices.replicates_embedding;
  }
  if (!f.pipeline_batches.empty()) {
    choices.pipeline_batches = int_value("--pipeline-batches", f.pipeline_batches, 1, estimate::kMaxBatch);
  }
  return choices;
}

hardware::Device load_host(const std::string& name) {
  hardware::Device host = hardware::load_device(name.empty() ? kDefaultHost : name);
  if (host.kind != hardware::DeviceKind::cpu && host.kind != hardware::DeviceKind::soc) {
    throw Error::bad_input(fmt::format("--host: {} is a {}, not a CPU", host.name, hardware::name(host.kind)),
                           fmt::format("{}, epyc-9654 or a device file of kind cpu", kDefaultHost));
  }
  return host;
}

void check_host_given(const std::string& name, const estimate::Setup& setup) {
  if (!name.empty() && setup.host == nullptr) {
    throw Error::bad_input(fmt::format("--host: {} has no host apart from it", setup.device->name), "leave it out");
  }
}

namespace {

// Flags that only GGUF formats have a use for.
void check_gguf_flags(const RequestFlags& f, const Request& request) {
  const estimate::Setup& setup = request.estimator->setup();
  if (setup.execution.weights.gguf) {
    check_host_given(f.host, setup);
    if (request.file.stored && f.weights.empty() && !f.gguf.era.empty()) {
      throw Error::bad_input("--gguf-era: the file says which types its tensors have", "give --weights as well");
    }
    return;
  }
  for (const auto& [flag, value] :
       {std::pair{"--host", &f.host}, std::pair{"--ubatch", &f.micro_batch}, std::pair{"--gguf-era", &f.gguf.era}}) {
    if (value->empty()) continue;
    throw Error::bad_input(fmt::format("{} is for GGUF formats, not for {}", flag, setup.execution.weights.name),
                           "--weights q4_k_m, or a GGUF file as model");
  }
}

}  // namespace

// What the plan divides of a request: the batch over replicas and micro-batches, the prompt over the sequence axes.
void check_scenario(const estimate::Scenario& s, const estimate::Choices& choices) {
  std::vector<Diagnostic> broken;
  const auto divide = [&](const char* flag, std::int64_t total, std::int64_t parts, const char* what) {
    if (total % parts == 0) return;
    broken.push_back(
        {.where = {},
         .message = fmt::format("{}: {} do not divide into {} {}", flag, total, parts, what),
         .hint = total < parts ? fmt::format("{} {}", flag, parts)
                               : fmt::format("{} {} or {}", flag, total / parts * parts, (total / parts + 1) * parts)});
  };
  const graph::Plan& plan = choices.plan;
  divide("--batch", s.batch, plan.data, "replicas (--dp)");
  if (choices.pipeline_batches > 0) {
    divide("--batch", s.batch, plan.data * choices.pipeline_batches, "micro-batches of all replicas");
  }
  divide("--prompt", s.prompt, graph::sequence_pieces(plan), "pieces of equal work (--sp)");
  if (plan.sequence_parallel && plan.data > 0) {
    divide("--prompt", s.prompt, plan.sequence() * plan.tensor, "shares of a prompt (--megatron-sp)");
  }
  if (!broken.empty()) throw Error(ErrorKind::bad_input, std::move(broken));
}

std::unique_ptr<Request> load_request(const RequestFlags& f) {
  return load_request(f, hardware::load_device(f.hardware));
}

std::unique_ptr<Request> load_request(const RequestFlags& f, hardware::Device device) {
  Sources sources;
  sources.put(f.hardware, std::move(device));
  const estimate::Scenario scenario = scenario_of(f);
  estimate::Choices choices;
  auto request = load_setup(f, sources, choices);
  check_scenario(scenario, choices);
  request->scenario = scenario;
  return request;
}

estimate::Scenario scenario_of(const RequestFlags& f) {
  return {.batch = int_value("--batch", f.batch, 1, estimate::kMaxBatch),
          .prompt = int_value("--prompt", f.prompt, 1, estimate::kMaxTokens),
          .generate = int_value("--gen", f.generate, 1, estimate::kMaxTokens)};
}

std::unique_ptr<Request> load_setup(const RequestFlags& f, Sources& sources, estimate::Choices& choices) {
  if (sources.is_video(f.model)) model::reject_video_dit(f.model);
  check_workload_flags(f, hardware::Workload::language);
  auto request = std::make_unique<Request>();
  request->file = sources.model(f.model);
  request->device = sources.device(f.hardware);
  request->host = sources.host(f.host);
  const bool gguf = f.weights.empty() ? request->file.stored.has_value() : model::gguf_weights(f.weights) != nullptr;
  request->profile = load_profile(f, request->device, gguf, hardware::Workload::language, &sources);
  choices = choices_of(f, *request);
  request->estimator =
      std::make_unique<estimate::Estimator>(estimate::make_setup(request->model(), request->device, choices));
  check_gguf_flags(f, *request);
  return request;
}

}  // namespace llmperf::cli
