#include "measure/row_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/integer.h"
#include "base/load_once.h"
#include "base/text.h"
#include "estimate/engine_memory.h"
#include "hardware/engine.h"
#include "hardware/runtime_execution.h"
#include "serving/serve.h"

namespace llmperf::measure {
namespace {

using graph::VectorKind;
using hardware::RuntimeProfile;

// A scheme. Ops point to its formats, so that those of measured rows live as long as the program.
const model::WeightScheme& scheme_of(const std::string& name, Dtype wide) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, Dtype>, model::WeightScheme> schemes;
  const std::lock_guard lock(mutex);
  return load_once(schemes, {name, wide}, [&] { return model::parse_weight_scheme(name, wide); });
}
// The format of its linear layers.
const model::StoredFormat& stored_format(const std::string& scheme, Dtype wide) {
  return scheme_of(scheme, wide).linear;
}
// A scheme as rows have it: empty for the type of the other operand.
std::string scheme_or(const std::string& weights, Dtype dtype) {
  return weights.empty() ? std::string(name(dtype)) : weights;
}

// A text that ops may refer to: as of schemes above.
std::string_view kept(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> texts;
  const std::lock_guard lock(mutex);
  return text.empty() ? std::string_view() : std::string_view(*texts.insert(text).first);
}

// Several products with weights of their own are the experts of one grouped product.
graph::Op op_of(const GemmShape& s, Dtype dtype) {
  graph::Gemm g{.m = s.m, .n = s.n, .k = s.k, .batch = s.batch, .activation = dtype, .copies = s.copies};
  if (!s.weights.empty()) {
    g.m *= s.batch;
    g.batch = 1;
    g.weights = &stored_format(s.weights, dtype);
    g.weight_matrices = static_cast<double>(s.batch);
  }
  g.tiles = {
      .local = kept(s.local), .passes = static_cast<int>(s.passes), .grid = kept(s.grid), .mapping = kept(s.mapping)};
  return {.name = "gemm", .body = g};
}

graph::Op op_of(const VectorShape& s, Dtype dtype) {
  graph::Vector v{.rows = s.tokens, .activation = dtype};
  if (const VectorOp* op = s.width > 0 ? vector_op(s.layer) : nullptr) {
    const double tensor = static_cast<double>(s.tokens) * static_cast<double>(s.width) * bytes_per_element(dtype);
    v.kind = op->kind;
    v.width = s.width;
    v.reads = s.bytes.value > 0 ? std::max(0.0, s.bytes.value / tensor - op->writes) : op->reads;
    v.writes = op->writes;
    v.parameters = Bytes{op->parameters * static_cast<double>(s.width) * bytes_per_element(dtype)};
    v.operations = op->kind == VectorKind::elementwise ? 1 : 0;
    return {.name = graph::name(op->kind), .body = v};
  }
  const KnownLayer* layer = known_layer(s.layer);
  if (layer == nullptr) throw Error::bad_input("unknown layer " + quote(s.layer), name_hint(s.layer, op_names()));
  v.kind = layer->kind;
  v.width = layer->width;
  v.reads = layer->reads;
  v.writes = layer->writes;
  return {.name = layer->name, .body = v};
}

graph::Op op_of(const GatherShape& s, Dtype dtype) {
  return {.name = "gather",
          .body = graph::Gather{
              .rows = s.rows,
              .width = s.width,
              .table = &stored_format(std::string(name(dtype == Dtype::tf32 ? Dtype::fp32 : dtype)), dtype),
              .entries = s.table,
              .activation = dtype}};
}

graph::Op op_of(const CacheShape& s, Dtype dtype) {
  const auto values = static_cast<double>(s.tokens) * static_cast<double>(2 * s.kv_heads * s.head_dim);
  const model::ElementFormat element = model::element_format(dtype);
  return {.name = "kv_write",
          .body = graph::Copy{.read_elements = values,
                              .write_elements = values,
                              .from = element,
                              .to = element,
                              .to_cache = true,
                              .rows = static_cast<double>(s.tokens)}};
}

// Of a row's cache; `dtype` where it does not say.
model::ElementFormat cache_element(const std::string& kv_dtype, Dtype dtype) {
  return model::element_format(parse_dtype(kv_dtype).value_or(dtype));
}

graph::Op op_of(const LatentShape& s, Dtype dtype) {
  using L = LatentShape;
  const bool absorbed = s.absorbed;
  const model::ElementFormat element = cache_element(s.kv_dtype, dtype);
  return {.name = "attention",
          .body = graph::Attention{.sequences = s.batch,
                                   .q_tokens = s.q_len,
                                   .context = s.kv_len - s.q_len,
                                   .heads = s.heads,
                                   .kv_heads = absorbed ? 1 : s.heads,
                                   .qk_dim = (absorbed ? L::kLatent : L::kHead) + L::kRotary,
                                   .v_dim = absorbed ? L::kLatent : L::kHead,
                                   .window = std::nullopt,
                                   .shared_kv = absorbed,
                                   .activation = dtype,
                                   .cached = {element, element}}};
}

// Of several ranks the one with most rows where counts were drawn, which is what the timings of aiconfigurator are of;
// else of one that has its share.
std::vector<graph::Op> ops_of_shape(const ExpertsShape& s, Dtype dtype) {
  using graph::Tag;
  const std::int64_t width = s.inter / s.tp;
  const std::optional<double> drawn = drawn_exponent(s.distribution);
  const graph::ExpertLoad load = drawn ? graph::drawn_load(*drawn, s.experts, s.topk, s.m, s.ep)
                                 : s.distribution == kUniform
                                     ? graph::expert_load({.exponent = 0}, s.experts, s.topk, s.m) / d(s.ep)
                                     : graph::dealt_load(s.experts, s.m * s.topk, s.ep);
  const double mean_rows = d(s.m * s.topk) / d(s.ep);
  const auto rows = static_cast<std::int64_t>(std::ceil(mean_rows * load.imbalance * (1 - 1e-12)));
  const model::StoredFormat& format = scheme_of(scheme_or(s.weights, dtype), dtype).expert;
  const auto product = [&](Tag tag, std::int64_t n, std::int64_t k) {
    return graph::Op{.name = graph::name(tag),
                     .tag = tag,
                     .body = graph::Gemm{.m = rows,
                                         .n = n,
                                         .k = k,
                                         .activation = dtype,
                                         .weights = &format,
                                         .weight_matrices = load.active,
                                         .row_tiles = load.tiles}};
  };
  const auto vector = [&](Tag tag, VectorKind kind, std::int64_t of, std::int64_t columns, double reads,
                          double writes) {
    return graph::Op{
        .name = graph::name(tag),
        .tag = tag,
        .body = graph::Vector{
            .kind = kind, .rows = of, .width = columns, .reads = reads, .writes = writes, .activation = dtype}};
  };
  const bool gated = has_gate(s);
  const graph::Op activation =
      vector(Tag::experts_activation, gated ? VectorKind::gated_activation : VectorKind::activation, rows, width,
             gated ? 2 : 1, 1);
  const double copied = static_cast<double>(rows) * static_cast<double>(s.hidden);
  const model::ElementFormat element = model::element_format(dtype);
  if (s.products) {
    return {product(Tag::experts_gate_up, gated ? 2 * width : width, s.hidden), activation,
            product(Tag::experts_down, s.hidden, width)};
  }
  return {vector(Tag::routing, VectorKind::router, s.m, s.experts, 1, 1),
          {.name = graph::name(Tag::dispatch),
           .tag = Tag::dispatch,
           .body = graph::Copy{.read_elements = copied, .write_elements = copied, .from = element, .to = element}},
          product(Tag::experts_gate_up, gated ? 2 * width : width, s.hidden),
          activation,
          product(Tag::experts_down, s.hidden, width),
          vector(Tag::combine, VectorKind::combine, rows, s.hidden, 1,
                 static_cast<double>(s.m) / static_cast<double>(rows))};
}

// Of which CANN's MlaProlog makes one kernel.
constexpr std::size_t kPrologOps = 7;
// DeepSeek-V3's projections around latent attention: down to latents of queries and of keys in one product, up to
// heads, and back. New tokens meet latents where they are (absorbed), a prompt's are expanded to keys and values. A
// prolog ends where the attention begins.
std::vector<graph::Op> ops_of_module(const LatentShape& s, Dtype dtype) {
  using L = LatentShape;
  const std::int64_t tokens = s.batch * s.q_len;
  const auto linear = [&](std::int64_t n, std::int64_t k) {
    return op_of(GemmShape{.m = tokens, .n = n, .k = k, .weights = scheme_or(s.weights, dtype)}, dtype);
  };
  const auto norm = [&](std::int64_t width) { return op_of(VectorShape{"rms_norm", tokens, width}, dtype); };
  const auto per_head = [&](std::int64_t n, std::int64_t k) {
    return op_of(GemmShape{.m = tokens, .n = n, .k = k, .batch = s.heads}, dtype);
  };
  const bool absorbed = s.absorbed;
  std::vector<graph::Op> ops = {linear(L::kQueryLatent + L::kLatent + L::kRotary, L::kHidden), norm(L::kQueryLatent),
                                linear(s.heads * (L::kHead + L::kRotary), L::kQueryLatent), norm(L::kLatent),
                                op_of(VectorShape{"rope", tokens * (s.heads + 1), L::kRotary, s.heads, 1}, dtype)};
  graph::Op append = op_of(CacheShape{tokens, 1, (L::kLatent + L::kRotary) / 2}, dtype);
  std::get<graph::Copy>(append.body).to = cache_element(s.kv_dtype, dtype);
  ops.push_back(append);
  ops.push_back(absorbed ? per_head(L::kLatent, L::kHead) : linear(s.heads * 2 * L::kHead, L::kLatent));
  if (s.part == LatentShape::Part::prolog) return ops;
  ops.push_back(op_of(s, dtype));
  if (absorbed) ops.push_back(per_head(L::kHead, L::kLatent));
  ops.push_back(linear(L::kHidden, s.heads * L::kHead));
  return ops;
}
std::vector<graph::Op> ops_of_shape(const LatentShape& s, Dtype dtype) {
  return s.part == LatentShape::Part::attention ? std::vector<graph::Op>{op_of(s, dtype)} : ops_of_module(s, dtype);
}

graph::Op op_of(const AttentionShape& s, Dtype dtype) {
  const model::ElementFormat element = cache_element(s.kv_dtype, dtype);
  return {.name = "attention",
          .body = graph::Attention{.sequences = s.batch,
                                   .q_tokens = s.q_len,
                                   .context = s.causal ? s.kv_len - s.q_len : 0,
                                   .keys = s.causal ? 0 : s.kv_len,
                                   .heads = s.heads,
                                   .kv_heads = s.kv_heads,
                                   .qk_dim = s.head_dim,
                                   .v_dim = s.head_dim,
                                   .window = s.window > 0 ? std::optional(s.window) : std::nullopt,
                                   .activation = dtype,
                                   .cached = {element, element},
                                   .copies = s.copies,
                                   .tiles = {.passes = static_cast<int>(s.passes), .grid = kept(s.grid)}}};
}

// Prompts in chunks of the usual length: how a kernel cuts them is its own affair.
graph::Op op_of(const ScanShape& s, Dtype dtype) {
  const bool chunks = s.q_len > 1 && s.kind != model::RecurrentKind::mamba;
  return {.name = "scan",
          .body = graph::Scan{.kind = s.kind,
                              .sequences = s.batch,
                              .tokens = s.q_len,
                              .heads = s.heads,
                              .key_heads = s.key_heads,
                              .key_dim = s.key_dim,
                              .value_dim = s.value_dim,
                              .chunk = chunks ? model::Recurrent().chunk : 0,
                              .has_past = s.q_len == 1,
                              .activation = dtype}};
}

// As weights of 16 bits, which take the link as pinned memory does.
graph::Op op_of(const TransferShape& s, Dtype) {
  return {.name = s.to_host ? "copy_to_host" : "copy_to_device",
          .place = graph::Place::link,
          .body = graph::Transfer{
              .rows = 1, .width = std::llround(s.bytes.value / 2), .weights = &stored_format("fp16", Dtype::fp16)}};
}

graph::Op op_of(const CollectiveShape& s, Dtype dtype) {
  return {.name = graph::name(s.kind),
          .place = graph::Place::network,
          .body = graph::Collective{.kind = s.kind,
                                    .ranks = s.ranks,
                                    .rows = 1,
                                    .width = s.bytes.value / bytes_per_element(dtype),
                                    .element = model::element_format(dtype),
                                    .library = !s.custom}};
}

template <class Shape>
std::vector<graph::Op> ops_of_shape(const Shape& shape, Dtype dtype) {
  return {op_of(shape, dtype)};
}

}  // namespace

std::vector<graph::Op> ops_of(const OpRow& row, const RuntimeProfile& profile) {
  OpShape asked = row.shape;
  if (auto* latent = std::get_if<LatentShape>(&asked)) {
    const bool alone = latent->part == LatentShape::Part::attention && profile.choices.absorbed_rows;
    latent->absorbed = latent->phase == Phase::decode || profile.options.absorbed_prompts || alone;
  }
  std::vector<graph::Op> ops = std::visit([&](const auto& shape) { return ops_of_shape(shape, row.dtype); }, asked);
  const auto* gemm = std::get_if<GemmShape>(&row.shape);
  if (gemm) std::get<graph::Gemm>(ops.front().body).alone = !row.runtime.empty();
  if (gemm && gemm->weights == "fp8-block128")
    ops.front().launches += static_cast<int>(profile.choices.packing_launches);
  if (gemm && gemm->ranks > 1) {
    const double bytes = static_cast<double>(gemm->m * gemm->n) * bytes_per_element(row.dtype);
    ops.push_back(op_of(CollectiveShape{graph::CollectiveKind::all_reduce, gemm->ranks, Bytes{bytes}}, row.dtype));
    ops.back().overlaps = true;
  }
  const auto* latent = std::get_if<LatentShape>(&row.shape);
  if (latent && latent->phase == Phase::decode && profile.options.fused_mla_prolog) {
    for (std::size_t i = 1; i < std::min(ops.size(), kPrologOps); ++i) ops[i].launches = 0;
  }
  const auto* attention = std::get_if<AttentionShape>(&row.shape);
  if (attention && attention->phase == Phase::prefill && profile.choices.attention_appends) {
    ops.push_back(
        op_of(CacheShape{attention->batch * attention->q_len, attention->kv_heads, attention->head_dim}, row.dtype));
    std::get<graph::Copy>(ops.back().body).to = cache_element(attention->kv_dtype, row.dtype);
  }
  return ops;
}

namespace {

// What the options of a row are besides a column of their own.
hardware::RuntimeExecution execution_of(const StepRow& row, const RuntimeProfile& profile) {
  const bool repeated = row.flash_attention && row.options == "flash_attention";
  std::string options = row.options.empty() || repeated ? "all" : row.options;
  if (row.flash_attention) options += *row.flash_attention ? "+flash_attention" : "+no_flash_attention";
  return hardware::resolve_execution(profile, options, row.execution);
}

graph::Plan plan_of(const StepRow& row) {
  graph::Plan plan;
  if (d(row.tp) * d(row.dp) * d(row.pp) * d(row.n_gpu) > d(graph::kMostDevices)) {
    throw Error::bad_input("the plan takes more devices than there are in one place");
  }
  plan.tensor = row.tp;
  plan.expert = row.ep;
  plan.data = row.dp;
  plan.pipeline = row.pp;
  if (plan.devices() > 1 || row.split == "none") return plan;
  (row.split == "tensor" || row.split == "row" ? plan.tensor : plan.pipeline) = row.n_gpu;
  return plan;
}

// The profile's; of a format that its llama.cpp could not write yet, the first that could.
model::GgufEra era_of(const StepRow& row, const RuntimeProfile& profile) {
  const model::GgufEra era = model::parse_gguf_era(profile.gguf_era);
  const model::GgufFileType* type = model::find_gguf_file_type(row.weights);
  return type != nullptr ? std::max(era, type->since) : era;
}

}  // namespace

estimate::Choices step_choices(const StepRow& row, const RuntimeProfile& profile, const model::Decoder& decoder) {
  estimate::Choices choices;
  choices.weights = row.weights;
  if (row.weights == "bf16" && runtime_name(row).starts_with("llama.cpp")) {
    choices.weights = "bf-16";  // the GGUF type: `bf16` alone is a scheme of other engines
  }
  if (row.ubatch > 0 && model::gguf_weights(*choices.weights) == nullptr) {
    throw Error::bad_input(fmt::format("'ubatch' is how llama.cpp cuts prompts, which does not run {}", row.weights),
                           "leave it empty, or name llama.cpp as 'runtime'");
  }
  if (!row.kv.empty()) {  // "fp8", or "q8_0/q4_0" of keys and values
    choices.cache_k = split(row.kv, '/').front();
    choices.cache_v = split(row.kv, '/').back();
  }
  choices.run_as(execution_of(row, hardware::run_by(profile, decoder.architecture)));
  choices.profile = &profile;
  if (!profile.gguf_era.empty()) choices.gguf_era = era_of(row, profile);
  choices.plan = plan_of(row);
  choices.plan.shard_embedding = !profile.choices.replicates_embedding;
  return choices;
}

std::string engine_followed(const ModelRow& row) {
  for (const std::string_view known : {"vllm", "sglang", "trtllm", "tensorrt-llm", "llama.cpp"}) {
    if (row.runtime != known && !row.runtime.starts_with(std::string(known) + '-')) continue;
    // "0.6.3 (2024-09)", "nightly 2026-02"
    const std::string version = row.engine_version.substr(0, row.engine_version.find(' '));
    return hardware::parse_version(version) ? fmt::format("{}@{}", known, version) : std::string(known);
  }
  return {};
}

std::int64_t running_batch(const estimate::Estimator& estimator, const RuntimeProfile& profile, const StepRow& row,
                           const graph::SequenceGroup& group) {
  const std::int64_t length = group.context + group.new_tokens;
  const std::string engine = engine_followed(row);
  if (!engine.empty() && !engine.starts_with("llama.cpp")) {
    const estimate::Setup& setup = estimator.setup();
    const serving::EngineSettings settings =
        serving::engine_defaults(engine, *setup.device, setup.execution.plan.devices());
    const estimate::KvCapacity room = estimate::kv_capacity(estimator, serving::memory_of(settings));
    if (room.blocks > 0) return std::clamp<std::int64_t>(room.tokens_of(length) / length, 1, group.count);
  }
  if (!profile.choices.caps_batch) return group.count;
  const double share = get(profile.values, hardware::Parameter::memory_utilisation);
  const double room = share * estimator.capacity().value - estimator.stages().front().weights.value;
  const graph::Execution& e = estimator.setup().execution;
  const double each = cost::stage_kv_bytes(e, estimator.stages().front().layers, length).value;
  const auto running = static_cast<std::int64_t>(std::floor(room / each));
  return std::clamp<std::int64_t>(running, 1, group.count);
}

}  // namespace llmperf::measure
