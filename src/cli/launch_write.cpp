#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/list.h"
#include "base/text.h"
#include "cli/launch.h"
#include "descriptor/catalog.h"
#include "request/resolve.h"
#include "request/traffic.h"
#include "result/json.h"
#include "serving/serve.h"

namespace llmperf::cli {
namespace {

using serving::EngineKind;

constexpr const char* kHead = "eagle3-head";  // heads have no names here

struct LaunchLine {
  std::string flag;
  std::string value;  // of a switch empty
};
struct LaunchCommand {
  std::vector<std::string> start;  // "vllm", "serve", the model
  std::vector<LaunchLine> lines;
  std::vector<std::string> remarks;
};

// As an engine finds it: the id at Hugging Face of what is built in, the folder of a config.json.
std::string published(const std::string& asked, const model::Decoder& model) {
  constexpr std::string_view kConfig = "/config.json";
  if (asked.ends_with(kConfig)) return asked.substr(0, asked.size() - kConfig.size());
  const bool of_hub = asked.find('/') != std::string::npos && !descriptor::is_path(asked);
  return of_hub || model.hf_id.empty() ? asked : model.hf_id;
}

// What a scheme is called; nothing where the checkpoint says it itself, or no word does.
std::string weights_word(const request::Resolved& r, EngineKind kind, LaunchCommand& command) {
  const std::string scheme = r.asked.weights.value_or("");
  const std::string own = r.model().default_weights;
  const bool wide = scheme == "bf16" || scheme == "fp16" || scheme == "fp32";
  if (scheme.empty() || scheme == own || (wide && own.empty())) return {};
  const auto* row = std::ranges::find(kLaunchSchemes, std::string_view(scheme), &LaunchScheme::scheme);
  const std::string_view word = row == std::end(kLaunchSchemes) || kind == EngineKind::trtllm ? ""
                                : kind == EngineKind::vllm                                    ? row->vllm
                                                                                              : row->sglang;
  const bool made_at_start = word.starts_with("fp8") || word == "mxfp8" || word.starts_with("int8");
  if (!made_at_start) command.remarks.push_back(fmt::format("the checkpoint has to be one with weights {}", scheme));
  return std::string(word);
}

std::string type_word(const std::string& type, std::string_view field, EngineKind kind) {
  if (type == "bf16") return "bfloat16";
  if (type == "fp16") return "float16";
  if (type == "fp32") return "float32";
  if (field == "kv" && type == "fp8" && kind == EngineKind::sglang) return "fp8_e4m3";
  if (field == "kv" && (type == "int8" || type == "int4") && kind == EngineKind::vllm) return type + "_per_token_head";
  return type;
}

void add_draft(const request::Resolved& r, EngineKind kind, request::Sources& sources, LaunchCommand& command) {
  if (!r.asked.draft) return;
  const std::string& asked = *r.asked.draft;
  const estimate::Draft& draft = *r.setup().draft;
  if (draft.best) {
    throw Error::bad_input("`draft`: a command says how many tokens are proposed", fmt::format("`draft` {}:3", asked));
  }
  const std::string name = asked.substr(0, asked.rfind(':'));
  const bool mtp = draft.kind == estimate::Draft::Kind::next_token;
  const bool eagle = draft.kind == estimate::Draft::Kind::eagle;
  const std::string model = mtp ? "" : eagle ? kHead : published(name, sources.model(name).decoder);
  if (eagle) command.remarks.push_back(fmt::format("{} stands for the head's own name", kHead));
  if (kind == EngineKind::vllm) {
    command.lines.push_back(
        {"--speculative-config",
         fmt::format(R"({{"method": "{}"{}, "num_speculative_tokens": {}}})",
                     mtp     ? "mtp"
                     : eagle ? "eagle3"
                             : "draft_model",
                     mtp ? "" : fmt::format(R"(, "model": {})", result::quoted(model)), draft.tokens)});
    return;
  }
  if (kind != EngineKind::sglang) {
    command.remarks.push_back(fmt::format("--draft {} is not in the command: a file of --config says it", asked));
    return;
  }
  command.lines.push_back({"--speculative-algorithm", mtp ? "NEXTN" : eagle ? "EAGLE3" : "STANDALONE"});
  if (!mtp) command.lines.push_back({"--speculative-draft-model-path", model});
  command.lines.push_back({"--speculative-num-steps", fmt::format("{}", draft.tokens)});
  command.lines.push_back({"--speculative-eagle-topk", "1"});
  command.lines.push_back({"--speculative-num-draft-tokens", fmt::format("{}", draft.tokens + 1)});
}

// What engines say otherwise than as a field with its value; the fields become what their flags are given.
void add_switches(const request::Resolved& r, const graph::Plan& plan, EngineKind kind, request::Request& told,
                  LaunchCommand& command) {
  const request::Request& q = r.asked;
  const auto add = [&](std::string flag, std::string value = {}) {
    command.lines.push_back({std::move(flag), std::move(value)});
  };
  const auto refuse = [](bool broken, const std::string& message, const std::string& hint) {
    if (broken) throw Error::bad_input(message, hint);
  };
  const std::int64_t ranks = plan.tensor * plan.data;
  const bool vllm = kind == EngineKind::vllm;
  const bool attention = plan.data > 1 && plan.expert > 1;  // ranks of dp that step together
  refuse(vllm && r.model().has_experts() && plan.data > 1 && plan.expert == 1,
         "vLLM divides experts over the devices of `dp`, so that no command has whole replicas of them",
         fmt::format("`ep` {}, or `replicas` {} in place of `dp`", ranks, plan.data));
  refuse((vllm || attention) && plan.expert > 1 && plan.expert != ranks,
         fmt::format("{} spreads experts over all {} devices of `tp` and `dp`", serving::name(kind), ranks),
         fmt::format("`ep` {}", ranks));
  refuse(kind == EngineKind::trtllm && plan.data > 1, "trtllm-serve has no flag for `dp`",
         "`replicas` in its place (or enable_attention_dp in a file of its --config)");
  if (vllm && plan.expert > 1) add("--enable-expert-parallel");
  if (vllm) told.ep.reset();
  if (kind == EngineKind::sglang && attention) {
    add("--enable-dp-attention");
    told.tp = std::to_string(ranks);
    *told.max_seqs *= plan.data;
    *told.max_batched_tokens *= plan.data;
  }
  const bool sglang = kind == EngineKind::sglang;
  if (q.lora && kind != EngineKind::trtllm) {
    add("--enable-lora");
    told.lora = q.lora->substr(0, q.lora->find(':'));
    told.adapters = q.adapters.value_or(1);
    if (sglang) add("--lora-target-modules", "all");
    if (q.lora->ends_with(":qkvo"))
      command.remarks.emplace_back("--lora-target-modules would name q, k, v and o alone");
  }
  if (q.prefix_caching && kind != EngineKind::trtllm) {
    const bool on = q.prefix_caching == "on";
    if (vllm) add(on ? "--enable-prefix-caching" : "--no-enable-prefix-caching");
    if (sglang && !on) add("--disable-radix-cache");
  }
  if (q.chunked_prefill) {
    const bool on = q.chunked_prefill == "on";
    if (vllm) add(on ? "--enable-chunked-prefill" : "--no-enable-chunked-prefill");
    if (kind == EngineKind::trtllm && on) add("--enable_chunked_prefill");
    if (sglang && !on) {
      told.max_batched_tokens.reset();
      add("--chunked-prefill-size", "-1");
    }
  }
  if (q.classes && q.classes->find("priority=") != std::string::npos) {  // clients say which
    if (vllm) add("--scheduling-policy", "priority");
    if (sglang) add("--enable-priority-scheduling");
    if (sglang) add("--schedule-low-priority-values-first");
  }
  for (const serving::KvTier& tier : q.kv_tier ? serving::parse_kv_tiers(*q.kv_tier) : std::vector<serving::KvTier>{}) {
    if (tier.name != "host" || kind == EngineKind::trtllm) {
      command.remarks.push_back(fmt::format("the tier {} is not in the command: its connector says it", tier.name));
    } else if (sglang) {
      add("--enable-hierarchical-cache");
      add("--hicache-size",
          fmt::format("{:.0f}", std::ceil(tier.size.value / 1e9 / d(plan.devices()))));  // GB of each device
    } else {
      add("--kv-offloading-size", fmt::format("{:.6g}", tier.size.value / (1 << 30)));  // GiB of all
    }
  }
  if (q.execution == "eager" && kind != EngineKind::trtllm) add(vllm ? "--enforce-eager" : "--disable-cuda-graph");
}

LaunchCommand command_of(const request::Resolved& r, const serving::EngineSettings& s, request::Sources& sources) {
  const graph::Plan& plan = r.setup().execution.plan;
  const EngineKind kind = s.kind;
  const auto at = static_cast<std::size_t>(kind);
  LaunchCommand command;
  const std::string model = published(*r.asked.model, r.model());
  if (kind == EngineKind::vllm) command.start = {"vllm", "serve", model};
  if (kind == EngineKind::sglang) command.start = {"python3", "-m", "sglang.launch_server", "--model-path", model};
  if (kind == EngineKind::trtllm) command.start = {"trtllm-serve", model};
  const auto more_than_one = [](std::int64_t n) { return n > 1 ? request::Count(n) : request::Count(); };
  request::Request told = r.asked;
  told.tp = plan.tensor > 1 ? request::Text(std::to_string(plan.tensor)) : request::Text();
  told.pp = more_than_one(plan.pipeline);
  told.dp = more_than_one(plan.data);
  told.ep = more_than_one(plan.expert);
  told.max_seqs = s.max_sequences;
  told.max_batched_tokens = s.max_batched_tokens;
  if (!s.kv_blocks) told.kv_utilisation = s.kv_utilisation;
  if (s.max_model_len > 0) told.max_model_len = s.max_model_len;
  told.weights = weights_word(r, kind, command);
  if (told.weights->empty()) told.weights.reset();
  add_switches(r, plan, kind, told, command);
  for (const LaunchFlag& row : kLaunchFlags) {
    const std::optional<std::string> value = request::get(told, request::field(row.field));
    if (value && !row.flags.at(at).empty()) {
      command.lines.push_back({std::string(row.flags.at(at)), type_word(*value, row.field, kind)});
    }
  }
  add_draft(r, kind, sources, command);
  // Of the plan and of the engine all that was asked for is said, or that it is not.
  constexpr std::string_view kElsewhere =
      "engine replicas router prefix-caching chunked-prefill devices devices-per-node kv-tier";
  for (const request::Field& f : request::fields()) {
    const bool said =
        contains(words(kElsewhere), f.name) && !(kind == EngineKind::trtllm && f.name == "prefix-caching");
    const auto* row = std::ranges::find(kLaunchFlags, f.name, &LaunchFlag::field);
    const bool has_flag = row != std::end(kLaunchFlags) && !row->flags.at(at).empty();
    const std::optional<std::string> value = request::get(r.asked, f);
    const bool its =
        f.group == "Plan" || f.group == "Engine" || contains(words("kv activations lora adapters"), f.name);
    if (!value || !its || said || has_flag) continue;
    command.remarks.push_back(fmt::format("--{} {} is not in the command{}", f.name, *value,
                                          kind == EngineKind::trtllm ? ": a file of --config says it" : ""));
  }
  if (!s.version.empty()) command.remarks.push_back(fmt::format("of version {}", s.version));
  return command;
}

// Of a shell, and of YAML.
std::string comments(const LaunchCommand& command) {
  std::string text;
  for (const std::string& remark : command.remarks) text += "# " + remark + "\n";
  return text;
}

std::string shell_text(const LaunchCommand& command) {
  std::string text = comments(command);
  std::vector<std::string> parts;
  for (const std::string& word : command.start) parts.push_back(shell_word(word));
  text += join(parts, " ");
  for (const auto& [flag, value] : command.lines) {
    text += " \\\n  " + flag + (value.empty() ? "" : " " + shell_word(value));
  }
  return text + "\n";
}

// The resource of a vendor's device plugin.
std::string plugin_of(const hardware::Device& device) {
  constexpr std::pair<std::string_view, std::string_view> kPlugins[] = {{"nvidia", "nvidia.com/gpu"},
                                                                        {"amd", "amd.com/gpu"},
                                                                        {"ascend-310", "huawei.com/Ascend310P"},
                                                                        {"ascend", "huawei.com/Ascend910"},
                                                                        {"intel-gaudi", "habana.ai/gaudi"},
                                                                        {"google", "google.com/tpu"}};
  for (const auto& [family, resource] : kPlugins) {
    if (device.family.starts_with(family)) return std::string(resource);
  }
  throw Error::bad_input(fmt::format("no device plugin of Kubernetes is known for {}", device.name),
                         "the engine's own command: vllm, sglang or trtllm");
}

std::string image_of(const hardware::Device& device, const serving::EngineSettings& s, LaunchCommand& command) {
  const std::string tag = s.version.empty() ? "latest" : "v" + s.version;
  const bool amd = device.family.starts_with("amd");
  const bool ascend = device.family.starts_with("ascend");
  if (s.kind == EngineKind::vllm && amd) return "vllm/vllm-openai-rocm:" + tag;
  if (s.kind == EngineKind::vllm && ascend) return "quay.io/ascend/vllm-ascend:" + tag;
  if (!device.family.starts_with("nvidia"))
    command.remarks.emplace_back("the image is that for NVIDIA's devices: name your own");
  if (s.kind == EngineKind::vllm) return "vllm/vllm-openai:" + tag;
  if (s.kind == EngineKind::sglang) return "lmsysorg/sglang:" + tag;
  return "nvcr.io/nvidia/tensorrt-llm/release:" + (s.version.empty() ? "1.2.0" : s.version);
}

std::string manifest(LaunchCommand command, const hardware::Device& device, const serving::EngineSettings& s,
                     std::int64_t devices, std::int64_t node, std::int64_t replicas) {
  if (devices > node) {
    throw Error::bad_input(
        fmt::format("a replica takes {} devices, and a server has {}: pods of a Deployment do not span servers",
                    devices, node),
        "the engine's own command, which says what each server runs");
  }
  std::string name;
  for (const char c : to_lower(command.start.back())) name += is_letter_or_digit(c) ? c : c == '/' ? '/' : '-';
  name = fmt::format("{}-{}", name.substr(name.rfind('/') + 1, 50), serving::name(s.kind));
  const std::string image = image_of(device, s, command);
  std::vector<std::string> start;
  for (const std::string& word : command.start) start.push_back(result::quoted(word));
  std::string args;
  command.lines.insert(command.lines.begin(), {{"--host", "0.0.0.0"}, {"--port", "8000"}});
  for (const auto& [flag, value] : command.lines) {
    args += fmt::format("            - {}\n", result::quoted(value.empty() ? flag : flag + "=" + value));
  }
  return comments(command) + fmt::format(R"(apiVersion: apps/v1
kind: Deployment
metadata:
  name: {0}
spec:
  replicas: {1}
  selector: {{matchLabels: {{app: {0}}}}}
  template:
    metadata: {{labels: {{app: {0}}}}}
    spec:
      containers:
        - name: engine
          image: {2}
          command: [{3}]
          args:
{4}          ports: [{{containerPort: 8000}}]
          readinessProbe: {{httpGet: {{path: /health, port: 8000}}, periodSeconds: 10}}
          resources: {{limits: {{{5}: {6}}}}}
          volumeMounts: [{{name: shm, mountPath: /dev/shm}}]
      volumes: [{{name: shm, emptyDir: {{medium: Memory}}}}]
---
apiVersion: v1
kind: Service
metadata:
  name: {0}
spec:
  selector: {{app: {0}}}
  ports: [{{port: 8000, targetPort: 8000}}]
)",
                                         name, replicas, image, join(start, ", "), args, plugin_of(device), devices);
}

}  // namespace

std::string launch_text(const request::Request& request, request::Sources& sources, Launch as, std::int64_t replicas) {
  if (request.prefill_replicas || request.decode_replicas) {
    throw Error::bad_input("prompts and decode are on replicas of their own, which one command does not start",
                           "`replicas`, each of which does both");
  }
  const auto r = request::resolve_serving(request, sources);
  const estimate::Setup& setup = r->setup();
  const serving::EngineSettings chosen = serving::choose_engine(request::engine_choices(*r), setup);
  const std::string_view name = serving::name(chosen.kind);
  if (chosen.kind == EngineKind::llama_cpp) {
    throw Error::bad_input("llama.cpp's command is not one of those that are written",
                           "`engine` vllm, sglang or trtllm");
  }
  if (as != Launch::k8s && static_cast<std::size_t>(as) != static_cast<std::size_t>(chosen.kind)) {
    const std::string_view other = serving::name(static_cast<EngineKind>(as));
    throw Error::bad_input(fmt::format("the answer is one of {}, and a command of {} is asked for", name, other),
                           fmt::format("`engine` {}, or the command of {}", other, name));
  }
  const serving::EngineSettings s = serving::deploy(setup, chosen).settings;
  LaunchCommand command = command_of(*r, s, sources);
  const std::int64_t devices = setup.execution.plan.devices();
  const std::int64_t node = request.devices_per_node.value_or(r->device.devices_per_node);
  command.remarks.insert(command.remarks.begin(), fmt::format("on {} x {}", devices, r->device.name));
  if (as == Launch::k8s) return manifest(std::move(command), r->device, s, devices, node, replicas);
  if (replicas > 1) command.remarks.push_back(fmt::format("{} such servers behind a router", replicas));
  if (devices > node) {
    command.remarks.push_back(fmt::format("a server has {} of these devices: what joins servers comes on top", node));
  }
  return shell_text(command);
}

}  // namespace llmperf::cli
