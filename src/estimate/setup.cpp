#include "estimate/setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/name_pattern.h"
#include "base/text.h"
#include "mapper/roofline/kernels.h"
#include "model/decoder.h"
#include "model/gguf/file.h"
#include "model/gguf/tensors.h"
#include "model/parameters.h"

namespace llmperf::estimate {
namespace {

// The element type of a scheme that stores everything in one floating-point type.
std::optional<Dtype> plain_dtype(std::string_view scheme) {
  for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
    if (scheme == name(dtype)) return dtype;
  }
  return std::nullopt;
}

// The CPU, or the part of it that is used.
const hardware::Device* in_use(const hardware::Device& cpu, const WorkloadChoices& choices, Platform& platform) {
  if (!choices.threads && !choices.numa_nodes) return &cpu;
  platform.parts.push_back(
      std::make_shared<hardware::Device>(hardware::with_threads(cpu, choices.threads, choices.numa_nodes)));
  return platform.parts.back().get();
}

// "PATTERN=CPU", as llama.cpp reads it; or "PATTERN=CUDA0", which leaves what it is about where its layer is.
struct Override {
  std::string text;
  NamePattern pattern;
  bool on_host = true;
  bool used = false;
};
std::vector<Override> read_overrides(const std::string& text, bool one_device) {
  constexpr const char* kHint = "PATTERN=CPU, such as 'blk\\.[0-9]\\.ffn_.*_exps=CPU'";
  std::vector<Override> all;
  for (const std::string_view each : split(text, ',')) {
    const std::size_t equals = each.rfind('=');
    const std::string_view where = equals == std::string_view::npos ? std::string_view() : each.substr(equals + 1);
    const bool on_device =
        one_device && where.size() > 1 && where.find_first_of("0123456789") == where.size() - 1 && where.back() == '0';
    if (where != "CPU" && !on_device) {
      throw Error::bad_input(fmt::format("`override-tensor`: {} places nothing on the CPU", quote(each)), kHint);
    }
    const std::string pattern(each.substr(0, equals));
    try {
      all.push_back({pattern, NamePattern::regex(pattern), !on_device});
    } catch (const Error& error) {
      throw Error::bad_input(fmt::format("`override-tensor`: {} is no regular expression that is matched here: {}",
                                         quote(pattern), error.diagnostics().front().message),
                             kHint);
    }
  }
  if (std::ranges::any_of(all, [](const Override& each) { return each.on_host; })) return all;
  throw Error::bad_input(fmt::format("`override-tensor`: {} places nothing on the CPU", quote(text)), kHint);
}

using ExpertMatrices = std::set<std::pair<std::int64_t, model::Role>>;

// The experts' matrices that stay on the host: those that the first pattern which is about them places there. Throws
// where one places another tensor, or is about none.
ExpertMatrices overridden(const model::Decoder& model, const Choices& choices) {
  ExpertMatrices matrices;
  std::vector<Override> overrides = read_overrides(choices.override_tensor, choices.plan.devices() == 1);
  for (const model::GgufTensor& tensor : model::gguf_tensors(model)) {
    const std::string name = tensor.name();
    const Override* first = nullptr;
    for (Override& each : overrides) {
      if ((first != nullptr && each.used) || !each.pattern.is_in(name)) continue;
      each.used = true;
      if (first == nullptr) first = &each;
    }
    if (first == nullptr || !first->on_host) continue;
    if (name.find("_exps.") == std::string::npos) {
      throw Error::bad_input(
          fmt::format(
              "`override-tensor`: {} is about {}, too, and only routed experts are placed apart from their layer",
              quote(first->text), name),
          "a pattern with _exps, or `gpu-layers` for whole layers");
    }
    matrices.emplace(tensor.layer, tensor.role);  // biases have the role of a vector, and stay
  }
  for (const Override& each : overrides) {
    if (each.used) continue;
    throw Error::bad_input(fmt::format("`override-tensor`: {} is about no tensor of {}", quote(each.text), model.name),
                           "names are those of the GGUF file: blk.0.ffn_gate_exps.weight");
  }
  return matrices;
}

// Experts that stay on the host while the rest of their layer does not.
void keep_experts(const model::Decoder& model, const Choices& choices, model::WeightLayout& layout) {
  if (!choices.cpu_moe && choices.override_tensor.empty()) return;
  if (!model.has_experts()) {
    throw Error::bad_input(fmt::format("{} has no routed experts that could stay on the host", model.name),
                           "`gpu-layers` for whole layers");
  }
  const ExpertMatrices matrices = choices.override_tensor.empty() ? ExpertMatrices() : overridden(model, choices);
  const std::int64_t first = choices.cpu_moe.value_or(0);
  const auto is_kept = [&](std::int64_t layer, model::Role role) {
    const model::Layer& kind = model.kinds[model.layer_kinds[static_cast<std::size_t>(layer)]];
    return kind.feed_forward.experts && (layer < first || matrices.contains({layer, role}));
  };
  keep_experts_on_host(is_kept, layout);
}

// Which part of a model is where, and over what the two parts talk: of GGUF models what the options say, of EXL2 the
// token embedding.
void place(const hardware::Device& device, const Choices& choices, Setup& setup) {
  model::WeightLayout& layout = setup.execution.weights;
  if (!layout.gguf || !has_own_memory(device) || choices.host == nullptr) {
    for (const auto& [field, what, given] :
         {std::tuple{"`gpu-layers`", "layers", choices.gpu_layers.has_value()},
          std::tuple{"`n-cpu-moe`", "experts", choices.cpu_moe.has_value()},
          std::tuple{"`override-tensor`", "experts", !choices.override_tensor.empty()}}) {
      if (!given) continue;
      throw Error::bad_input(
          layout.gguf ? fmt::format("{} has no memory apart from the host's", device.name)
                      : fmt::format("{} stay on the host in GGUF formats only, not in {}", what, layout.name),
          fmt::format("leave out {}", field));
    }
    layout.embedding_on_host = layout.embedding_on_host && has_own_memory(device) && choices.host != nullptr &&
                               choices.plan.devices() == 1 && !layout.gguf;
    if (layout.embedding_on_host) {
      setup.host = in_use(*choices.host, choices, setup);
      setup.link = link_of(device);
    }
    return;
  }
  setup.host = in_use(*choices.host, choices, setup);
  keep_on_host(*setup.execution.model, choices.gpu_layers.value_or(setup.execution.model->num_layers() + 1), layout);
  keep_experts(*setup.execution.model, choices, layout);
  if (layout.computes_on_host() && choices.profile) setup.host_profile = choices.host_profile;
  setup.execution.streams_weights = choices.op_offload;
  setup.pinned_weights = choices.pinned_weights;
  setup.link = link_of(device);
}

void check_tensor_split(const model::Decoder& model, const Setup& setup) {
  const std::vector<double>& shares = setup.tensor_split;
  const std::int64_t devices = setup.execution.plan.pipeline;
  if (shares.empty()) return;
  const auto given = static_cast<std::int64_t>(shares.size());
  if (!setup.execution.weights.gguf || given != devices) {
    throw Error::bad_input(
        fmt::format("`tensor-split` gives shares of {} devices, and there {}", given,
                    !setup.execution.weights.gguf ? "is no GGUF format, whose layers llama.cpp deals so"
                    : devices == 1                ? std::string("is one")
                                                  : fmt::format("are {}", devices)),
        setup.execution.weights.gguf ? fmt::format("`pp` {}", given) : "`weights` q4_k_m, or a GGUF file as model");
  }
  const graph::StageSplit split = graph::proportional_split(model.num_layers(), shares);
  for (std::int64_t device = 0; device + 1 < given; ++device) {
    if (split.layers_of_run(device) > 0) continue;
    throw Error::bad_input(fmt::format("`tensor-split` leaves device {} without a layer", device + 1),
                           "larger shares for it, or fewer devices");
  }
  double all = 0;
  for (const double share : shares) all += share;
  // As proportional_split deals: the output is the item after the layers.
  if (shares.back() / all * static_cast<double>(model.num_layers() + 1) <= 1 - 1e-9) {
    throw Error::bad_input(fmt::format("`tensor-split` leaves device {} without even the output layer", given),
                           "a larger share for it, or fewer devices");
  }
}

// Products that add up over devices divide the rows of their weights, which are stored in blocks.
void check_blocks(const model::Decoder& model, const graph::Plan& plan, const model::WeightLayout& layout) {
  for (const model::LayerGroup& group : layout.groups) {
    const model::Layer local = graph::shard(model.kinds[group.kind], plan);
    const model::FeedForward& f = local.feed_forward;
    const std::int64_t inner = f.experts ? f.experts->intermediate : f.intermediate;
    for (const auto& [role, row] :
         {std::pair{model::Role::o, local.attention.heads * local.attention.v_head_dim},
          std::pair{model::Role::recurrent_out, local.recurrent ? local.recurrent->values() : 0},
          std::pair{model::Role::down, inner}}) {
      const auto types = model::ggml_types();
      const auto type = std::ranges::find(types, group[role].name, &model::GgmlTypeInfo::name);
      if (type == types.end() || row % type->block == 0) continue;
      throw Error::bad_input(
          fmt::format("`tp` {}: a device would get {} of a row of {} ({}), which is stored in blocks "
                      "of {}",
                      plan.tensor, row, model.name, type->name, type->block),
          "fewer devices, or `pp`, which deals whole layers");
    }
  }
}

// llama.cpp deals layers to devices and divides none of them, or all of them by their heads and columns.
void check_gguf_split(const model::Decoder& model, const Choices& choices, const Setup& setup) {
  const graph::Plan& plan = choices.plan;
  const model::WeightLayout& layout = setup.execution.weights;
  if (plan.pipeline != plan.devices() && plan.tensor != plan.devices()) {
    throw Error::bad_input(fmt::format("a plan over {} devices does not go with GGUF formats ({}): layers are dealt to "
                                       "devices whole, or all are divided by heads and columns",
                                       plan.devices(), layout.name),
                           "`pp` or `tp` alone, or `weights` bf16, fp8, int8, w8a8 or w4a16");
  }
  if (plan.tensor > 1) check_blocks(model, plan, layout);
  if (choices.pipeline_batches > 0) {
    throw Error::bad_input(
        "`pipeline-batches`: llama.cpp takes all sequences of a GGUF model through the devices together",
        "leave it out");
  }
  if (layout.computes_on_host()) {
    const bool layers = layout.head_on_host || layout.groups.front().on_host;
    const char* field = layers ? "`gpu-layers`" : choices.cpu_moe ? "`n-cpu-moe`" : "`override-tensor`";
    throw Error::bad_input(fmt::format("{}: {} of a GGUF model are on several devices or on one and the host, not both",
                                       field, layers ? "layers" : "experts"),
                           fmt::format("leave out {} or {}", field, plan.tensor > 1 ? "`tp`" : "`pp`"));
  }
}

// Weights of GPTQ and AWQ: their checkpoints are in fp16, which is what most of their kernels take.
bool is_int4(const model::WeightLayout& layout) {
  const std::optional<FormatKernel> kernel = layout.groups.front()[model::Role::o].kernel;
  return kernel == FormatKernel::gptq || kernel == FormatKernel::awq;
}

// Over the devices of the plan.
void spread(const model::Decoder& model, const Choices& choices, Setup& setup) {
  const graph::Plan& plan = choices.plan;
  setup.execution.plan = plan;
  if (setup.tensor_split.empty()) {  // as llama.cpp deals layers to devices: by the memory that each has free
    for (const Card& card : setup.cards) {
      setup.tensor_split.push_back((*card.device->dram().capacity - setup.reserve).value);
    }
  }
  check_tensor_split(model, setup);
  if (plan.devices() == 1) return;
  if (setup.execution.weights.gguf) check_gguf_split(model, choices, setup);
  for (const model::Layer& layer : model.kinds) {
    const model::Attention& a = layer.attention;
    if (a.latent || !layer.attends() || a.kv_heads >= plan.tensor) continue;
    setup.notes.push_back(fmt::format("{} KV heads on {} devices: each is held by {}", a.kv_heads, plan.tensor,
                                      plan.tensor / a.kv_heads));
    break;
  }
  if (plan.shard_embedding && model.vocab % plan.tensor != 0) {
    setup.notes.push_back(fmt::format("the vocabulary of {} is padded to {} x {}", model.vocab, plan.tensor,
                                      graph::shard_vocab(model, plan)));
  }
  const std::int64_t stage = plan.stage();
  if (stage > 1 && setup.cluster.devices_per_node % plan.tensor != 0 &&
      plan.tensor % setup.cluster.devices_per_node != 0) {
    setup.notes.push_back(
        fmt::format("nodes of {} cut groups of {} devices: their collectives are taken to be on as few "
                    "nodes as can hold them",
                    setup.cluster.devices_per_node, plan.tensor));
  }
}

// A row of one token's keys (or values) is cut into blocks.
void check_cache(const model::Decoder& model, const model::CacheScheme& kv) {
  for (const model::Layer& layer : model.kinds) {
    const model::Attention& a = layer.attention;
    const std::int64_t keys = model::cache_row(a).keys;
    for (const auto& [format, row] : {std::pair{kv.keys, keys}, std::pair{kv.values, a.kv_heads * a.v_head_dim}}) {
      if (row % format.block == 0) continue;
      throw Error::bad_input(fmt::format("a KV cache of {} needs rows that are multiples of {}; {} has {}", format.name,
                                         format.block, model.name, row));
    }
  }
}

// Weights of fewer bits than this are of checkpoints that leave the layer for further tokens in 16.
constexpr double kNarrow = 8;

// A draft computes with its target's types and runtime. Layers for further tokens are stored as the target's are,
// heads made for a target in the type of the activations; a model of its own as asked for, else as its file says.
std::shared_ptr<const Setup> draft_setup(const Setup& target, const Choices& target_choices, const Draft& draft) {
  const graph::Execution& e = target.execution;
  const model::Decoder& model = draft.file->decoder;
  Choices c = target_choices;
  static_cast<Deployment&>(c) = {.serving = {.phases = target_choices.serving.phases,
                                             .drafts = draft.tokens,
                                             .joins_step = draft.kind != Draft::Kind::model}};
  c.plan = draft_plan(model, e.plan);
  c.routing.measured = nullptr;  // of its target's experts, as adapters are its target's
  c.adapters = {};
  c.activations = std::string(name(e.activations));
  c.stored = draft.file->stored ? &draft.file->stored->layout : nullptr;
  c.gpu_layers.reset();
  c.cpu_moe.reset();
  c.override_tensor.clear();
  const auto refuse = [&](const std::string& why) {
    throw Error::bad_input(fmt::format("`draft`: {}", why), "another draft, or none");
  };
  if (!target.cards.empty()) refuse("of devices that are unlike it is not said which one drafts");
  if (draft.kind != Draft::Kind::model) {
    if (e.weights.gguf)
      refuse(fmt::format("{} is of GGUF formats, for which models of their own draft", e.model->name));
    const model::StoredFormat& stored = e.weights.groups.back()[model::Role::o];
    const bool wide = draft.kind == Draft::Kind::eagle || !e.model->mixture.empty() || stored.bits < kNarrow;
    if (wide) c.weights = c.activations;
  } else if (!model::shares_vocabulary(model, *e.model)) {
    refuse(fmt::format("{} has a vocabulary of {} tokens and {} one of {}: the two have to be the same", model.name,
                       model.vocab, e.model->name, e.model->vocab));
  }
  Setup setup = make_setup(model, *target.device, c);
  if (setup.execution.weights.gguf != e.weights.gguf) {
    refuse("of it and its target one is of GGUF formats and the other is not: no runtime has both");
  }
  if (draft.kind != Draft::Kind::model) setup.execution.weights.token_embedding = e.weights.token_embedding;
  if (draft.kind == Draft::Kind::next_token) setup.execution.weights.lm_head = e.weights.lm_head;
  return std::make_shared<const Setup>(std::move(setup));
}

}  // namespace

graph::Plan draft_plan(const model::Decoder& draft, const graph::Plan& target) {
  graph::Plan plan = target;
  plan.pipeline = 1;
  if (!draft.has_experts()) plan.expert = 1, plan.expert_copies = plan.shared_ranks = 0;
  return graph::legal(draft, plan) ? plan : graph::Plan{.data = target.data};
}

void set_draft_tokens(std::int64_t tokens, Setup& setup) {
  Draft& draft = *setup.draft;
  draft.tokens = tokens;
  setup.serving.verify = tokens + 1;
  setup.serving.accepted = expected_tokens(draft.acceptance, tokens);
}

hardware::HostLink link_of(const hardware::Device& device) {
  return device.host_link.value_or(hardware::HostLink{
      .name = "PCIe4 x16", .per_direction = BytesPerSecond{32e9}, .provenance = hardware::Provenance::assumed});
}

bool has_own_memory(const hardware::Device& device) {
  return device.kind != hardware::DeviceKind::cpu && device.kind != hardware::DeviceKind::soc;
}

bool multiplies(const hardware::Device& device, Dtype dtype) {
  return device.find_peak(hardware::Engine::matrix, dtype) != nullptr;
}

Dtype activation_dtype(const hardware::Device& device) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16}) {
    if (multiplies(device, dtype)) return dtype;
  }
  return Dtype::fp32;
}

void substitute(model::StoredFormat& format, const hardware::Device& device, Dtype activations, std::string& note) {
  const bool wide = format.compute == Dtype::fp32 || format.compute == Dtype::fp16 || format.compute == Dtype::bf16;
  if (wide || multiplies(device, format.compute)) return;
  note = fmt::format("{} has no {} matrix rate: those products run in {} after a conversion", device.name,
                     name(format.compute), name(activations));
  format.compute = activations;
  format.dequant_flops += 1;
}

void note_rate(Platform& platform, Dtype activations) {
  if (multiplies(*platform.device, activations)) return;
  platform.notes.push_back(fmt::format("{} has no {} matrix rate: matrix products are held against its vector rate",
                                       platform.device->name, name(activations)));
}

cost::Cluster Platform::charged_cluster() const { return profile ? mapper::driven(cluster, *profile) : cluster; }

void WorkloadChoices::run_as(const hardware::RuntimeExecution& execution) {
  runtime = execution.options;
  dispatch = execution.prefill;
  decode_dispatch = execution.decode;
}

void choose_platform(const hardware::Device& device, const WorkloadChoices& choices, Platform& platform) {
  platform.cluster = cost::make_cluster(device, choices.devices_per_node);
  platform.device = device.kind == hardware::DeviceKind::cpu ? in_use(device, choices, platform) : &device;
  static_cast<Timing&>(platform) = choices;
  if (choices.reserve) platform.reserve = *choices.reserve;
}

namespace {

// What weights are stored and computed in, and what activations are.
void choose_formats(const model::Decoder& model, const hardware::Device& device, const Choices& choices, Setup& setup) {
  graph::Execution& e = setup.execution;
  const bool stored = !choices.weights && choices.stored != nullptr;
  const std::string own = stored ? std::string() : to_lower(choices.weights.value_or(model.default_weights));
  const auto layout = [&] {
    return choices.weights ? model::make_layout(model, own, e.activations, choices.gguf_era)
                           : model::checkpoint_layout(model, e.activations);
  };
  e.activations = choices.activations ? model::parse_activation_dtype(*choices.activations)
                                      : plain_dtype(own).value_or(activation_dtype(device));
  e.weights = stored ? *choices.stored : layout();
  if (!choices.activations && !stored && is_int4(e.weights) && multiplies(device, Dtype::fp16)) {
    e.activations = Dtype::fp16;
    e.weights = layout();
  }
  if (e.weights.gguf) {
    if (!choices.activations) e.activations = Dtype::fp16;
    // The file keeps them apart, and so does llama.cpp.
    e.runtime.fused_qkv = e.runtime.fused_gate_up = false;
    e.windows = model::gguf_keeps_windows(model);
  }
  if (!choices.weights && !stored && model.default_weights == "fp32") {
    setup.notes.emplace_back(
        "the checkpoint is in fp32, and so it runs; vLLM and SGLang load it in 16 bits (weights bf16)");
  }
}

void choose_cache(const model::Decoder& model, const Choices& choices, Setup& setup) {
  graph::Execution& e = setup.execution;
  const auto half = [&](const std::optional<std::string>& text) {
    const std::optional<std::string>& given = text ? text : choices.kv;
    if (given) return model::parse_kv_scheme(*given);
    if (e.weights.gguf) return model::element_format(Dtype::fp16);
    if (model.default_kv.empty()) return model::element_format(e.activations);
    setup.checkpoint_kv = true;
    return model::parse_kv_scheme(model.default_kv);
  };
  e.kv = {half(choices.cache_k), half(choices.cache_v)};
  check_cache(model, e.kv);
}

// What of the device and of the profile's stack multiplies with weights of each format.
void choose_kernels(const hardware::Device& device, const Choices& choices, Setup& setup) {
  graph::Execution& e = setup.execution;
  std::string note;
  const auto kernels_of = [&](const model::StoredFormat& f) {
    return f.kernel && choices.profile ? choices.profile->kernels_of(*f.kernel) : nullptr;
  };
  if (const auto* of_layers = kernels_of(e.weights.groups.front()[model::Role::o])) {
    setup.weights_kernel = of_layers->name;
  }
  const auto fit = [&](model::StoredFormat& format) {
    substitute(format, device, e.activations, note);
    if (const auto* kernels = kernels_of(format)) format.kernel = kernels->formats.front();
  };
  for (model::StoredFormat* format :
       {&e.weights.token_embedding, &e.weights.position_embedding, &e.weights.lm_head, &e.vision_weights}) {
    fit(*format);
  }
  for (model::LayerGroup& group : e.weights.groups) {
    for (model::StoredFormat& format : group.formats) fit(format);
  }
  if (!note.empty()) setup.notes.push_back(note);
}

}  // namespace

Setup make_setup(const model::Decoder& model, const hardware::Device& device, const Choices& choices) {
  Setup setup;
  choose_platform(device, choices, setup);
  static_cast<Deployment&>(setup) = choices;
  graph::Execution& e = setup.execution;
  e.model = &model;
  e.runtime = choices.runtime;
  e.routing = choices.routing;
  e.ideal = choices.profile == nullptr;
  e.adapters = choices.adapters;
  e.draws = choices.draws;
  if (choices.profile) {
    const hardware::KernelChoices& c = choices.profile->choices;
    e.allocation = {.padding = c.tensor_padding, .granule = c.tensor_granule};
    setup.activation_factor = c.activation_factor;
  }
  choose_formats(model, device, choices, setup);
  if (choices.micro_batch) e.micro_batch = *choices.micro_batch;
  if (model.encoder) setup.serving.phases = Served::prefill;
  e.vision_weights.compute = e.activations;
  if (e.weights.gguf && setup.serving.overlap_batches > 1) {
    throw Error::bad_input(
        "`overlap-batches`: llama.cpp takes all sequences of a GGUF model through the devices together",
        "leave it out");
  }
  if (!model.assumed.empty()) setup.notes.push_back(fmt::format("{} is {}", model.name, model.assumed));
  place(device, choices, setup);
  spread(model, choices, setup);

  choose_cache(model, choices, setup);
  choose_kernels(device, choices, setup);
  note_rate(setup, e.activations);
  if (choices.draft) {
    setup.draft->setup = draft_setup(setup, choices, *choices.draft);
    set_draft_tokens(choices.draft->tokens, setup);
    const model::Decoder& drafts = choices.draft->file->decoder;
    if (choices.draft->kind == Draft::Kind::model && drafts.vocab != model.vocab) {
      setup.notes.push_back(fmt::format("{} has a vocabulary of {} and {} one of {}: taken for padding of the table",
                                        model.name, model.vocab, drafts.name, drafts.vocab));
    }
  }
  return setup;
}

std::string model_kind(const model::Decoder& model) {
  const bool latent =
      std::ranges::any_of(model.kinds, [](const model::Layer& l) { return l.attention.latent.has_value(); });
  std::vector<std::string> parts;
  if (model.has_experts()) parts.emplace_back("experts");
  if (latent) parts.emplace_back("latent attention");
  if (model.has_recurrent()) parts.emplace_back("recurrent layers");
  const auto chooses = [](const model::Layer& l) { return l.attention.indexer || l.attention.compression; };
  if (std::ranges::any_of(model.kinds, chooses)) parts.emplace_back("chosen keys");
  if (model.encoder) parts.emplace_back("encoder");
  return parts.empty() ? "dense" : join(parts, ", ");
}

hardware::StepSize step_size(const Setup& setup) { return step_size(setup, setup.profile); }

hardware::StepSize step_size(const Setup& setup, const hardware::RuntimeProfile* profile) {
  const graph::Execution& e = setup.execution;
  hardware::StepSize step;
  step.parameters = static_cast<double>(model::count_parameters(*e.model).total);
  step.weights = e.weights.name;
  if (const auto kernel = e.weights.groups.front()[model::Role::o].kernel; kernel && profile) {
    for (const std::string& fitted : profile->range.weights) {
      if (fitted.starts_with(llmperf::name(*kernel))) step.weights = fitted;
    }
  }
  step.kv = e.kv.name();
  step.plan = graph::to_text(e.plan);
  step.kind = model_kind(*e.model) + (e.adapters.any() ? ", adapters" : "");
  step.device = setup.device->name;
  if (const auto& limit = setup.device->power_limit) {
    step.power_limit = fmt::format("a power limit of {:.6g} W (board {:.6g} W; clock at {:.2f} in matrix products)",
                                   *setup.device->power_w, limit->board_w, limit->clock);
    step.clock_doubt = limit->doubt;
  }
  for (const model::LayerGroup& group : e.weights.groups) {
    step.layers_on_host += group.on_host || group.keeps_experts() ? group.count() : 0;
  }
  return step;
}

}  // namespace llmperf::estimate
