#include "cli/plan_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/values.h"
#include "graph/stdit_graph.h"

namespace llmperf::cli {
namespace {

constexpr std::int64_t kMaxDegree = 1 << 20;

std::int64_t degree(std::string_view flag, const std::string& text) {
  return text.empty() ? 1 : int_value(flag, text, 1, kMaxDegree);
}

std::optional<Dtype> exchange_type(std::string_view flag, const std::string& text) {
  if (text.empty()) return std::nullopt;
  constexpr std::array kTypes = {Dtype::bf16, Dtype::fp16, Dtype::fp8, Dtype::int8};
  std::vector<std::string> names;
  for (const Dtype type : kTypes) {
    if (name(type) == text) return type;
    names.emplace_back(name(type));
  }
  throw Error::bad_input(fmt::format("{}: no type that tokens travel as: {}", flag, quote(text)),
                         name_hint(text, names));
}

// "8" or "2x4".
void read_tensor(const std::string& text, graph::Plan& plan) {
  const std::vector<std::string_view> sides = split(text, 'x');
  if (sides.size() == 2) {
    plan.tensor_rows = int_value("--tp", sides[0], 1, kMaxDegree);
    plan.tensor = plan.tensor_rows * int_value("--tp", sides[1], 1, kMaxDegree);
  } else {
    plan.tensor = degree("--tp", text);
  }
}

// "ulysses:4", "ring:2" or both joined by x.
void read_sequence(const std::string& text, graph::Plan& plan) {
  if (text.empty()) return;
  const std::vector<std::string> names = {"ulysses", "ring"};
  std::vector<std::string_view> seen;
  for (const std::string_view part : split(text, 'x')) {
    const std::size_t colon = part.find(':');
    const std::string_view name = part.substr(0, colon);
    if (colon == std::string_view::npos || std::find(names.begin(), names.end(), name) == names.end()) {
      throw Error::bad_input(fmt::format("--sp: cannot read {}", quote(part)), "ulysses:4, ring:2 or ulysses:4xring:2");
    }
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
      throw Error::bad_input(fmt::format("--sp: {} is given twice", name));
    }
    seen.push_back(name);
    (name == "ring" ? plan.ring : plan.ulysses) = int_value("--sp", part.substr(colon + 1), 1, kMaxDegree);
  }
}

}  // namespace

void add_plan_flags(CLI::App& command, PlanFlags& f) {
  const auto add = [&](const char* flag, std::string& value, const char* meaning, const char* type) {
    command.add_option(flag, value, meaning)->type_name(type);
  };
  add("--tp", f.tensor, "devices that share every matrix (tensor parallelism); 2x4: in rows x columns", "N");
  add("--pp", f.pipeline, "pipeline stages", "N");
  add("--dp", f.data, "replicas of the model, each with its share of the batch", "N");
  add("--ep", f.expert, "devices that share the routed experts", "N");
  add("--ep-dispatch", f.expert_dispatch,
      "what tokens travel to experts of other devices as: bf16, fp16, fp8, int8 [as the experts' products take them]",
      "DTYPE");
  add("--ep-combine", f.expert_combine, "and their results back [the activations' type]", "DTYPE");
  add("--sp", f.sequence, "devices that share a sequence: ulysses:4, ring:2, ulysses:4xring:2", "WHAT");
  command.add_flag("--megatron-sp", f.sequence_parallel, "the residual stream over the devices of --tp too");
  command
      .add_option("--embedding", f.embedding,
                  "embedding and lm_head over the devices of --tp: sharded, replicated [as the runtime does]")
      ->type_name("HOW")
      ->capture_default_str();
  add("--devices", f.devices, "devices in all: what the degrees leave becomes --dp", "N");
  add("--devices-per-node", f.devices_per_node, "devices of one server [the hardware file's]", "N");
}

bool sharded_embedding(const PlanFlags& f) {
  if (!f.embedding.empty() && f.embedding != "sharded" && f.embedding != "replicated") {
    const std::vector<std::string> names = {"sharded", "replicated"};
    throw Error::bad_input(fmt::format("--embedding: unknown way {}", quote(f.embedding)),
                           name_hint(f.embedding, names));
  }
  return f.embedding != "replicated";
}

namespace {

// Before it is held against a model.
graph::Plan read_plan(const PlanFlags& f) {
  graph::Plan plan;
  read_tensor(f.tensor, plan);
  plan.pipeline = degree("--pp", f.pipeline);
  plan.data = degree("--dp", f.data);
  plan.expert = degree("--ep", f.expert);
  plan.expert_dispatch = exchange_type("--ep-dispatch", f.expert_dispatch);
  plan.expert_combine = exchange_type("--ep-combine", f.expert_combine);
  read_sequence(f.sequence, plan);
  plan.sequence_parallel = f.sequence_parallel;
  plan.shard_embedding = sharded_embedding(f);
  const double product = static_cast<double>(plan.tensor) * static_cast<double>(plan.pipeline) *
                         static_cast<double>(plan.data) * static_cast<double>(plan.ulysses) *
                         static_cast<double>(plan.ring);
  if (product > kMaxDegree) {
    throw Error::bad_input(fmt::format("the plan takes more than {} devices", kMaxDegree));
  }
  if (!f.devices.empty()) {
    const std::int64_t devices = int_value("--devices", f.devices, 1, kMaxDegree);
    if (devices % plan.devices() != 0 || (!f.data.empty() && devices != plan.devices())) {
      throw Error::bad_input(fmt::format("--devices: {} is not what the plan takes: {} ({})", devices, plan.devices(),
                                         graph::to_text(plan)),
                             f.data.empty() ? fmt::format("a multiple of {}", plan.devices())
                                            : fmt::format("--devices {}", plan.devices()));
    }
    plan.data *= devices / plan.devices();
  }
  return plan;
}

void check(const std::vector<graph::Problem>& problems) {
  std::vector<Diagnostic> broken;
  for (const graph::Problem& problem : problems) {
    broken.push_back({.where = {}, .message = problem.message, .hint = problem.hint});
  }
  if (!broken.empty()) throw Error(ErrorKind::bad_input, std::move(broken));
}

}  // namespace

graph::Plan plan_of(const PlanFlags& f, const model::Decoder& model) {
  const graph::Plan plan = read_plan(f);
  check(graph::problems(model, plan));
  return plan;
}

graph::Plan plan_of(const PlanFlags& f, const model::VideoDit& model) {
  const graph::Plan plan = read_plan(f);
  check(graph::problems(model, plan));
  return plan;
}

std::optional<std::int64_t> devices_per_node_of(const PlanFlags& f) {
  if (f.devices_per_node.empty()) return std::nullopt;
  return int_value("--devices-per-node", f.devices_per_node, 1, 1024);
}

}  // namespace llmperf::cli
