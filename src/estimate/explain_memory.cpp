// Memory: weights tensor by tensor, the KV cache by kind of layer, and the limits that follow from what is left.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/number.h"
#include "estimate/explain_parts.h"
#include "model/parameters.h"

namespace llmperf::estimate {
namespace {

constexpr std::array<std::string_view, 14> kPaths = {"memory.weight_bytes",
                                                     "memory.kv_cache_bytes",
                                                     "memory.activation_bytes",
                                                     "memory.reserve_bytes",
                                                     "memory.total_bytes",
                                                     "memory.capacity_bytes",
                                                     "largest_batch",
                                                     "longest_context_tokens",
                                                     "host_memory.weight_bytes",
                                                     "host_memory.kv_cache_bytes",
                                                     "host_memory.activation_bytes",
                                                     "host_memory.reserve_bytes",
                                                     "host_memory.total_bytes",
                                                     "host_memory.capacity_bytes"};

struct Context {
  const Estimator& estimator;
  const Estimate& estimate;
  const graph::Execution& execution() const { return estimator.setup().execution; }
  const model::Decoder& model() const { return *execution().model; }
  const graph::Plan& plan() const { return execution().plan; }
  const Stage& stage() const { return estimator.stages()[estimator.fullest_stage(estimate.scenario)]; }
  const Scenario& scenario() const { return estimate.scenario; }
};

// "model.embed_tokens.weight" as the name of a variable.
std::string identifier(std::string_view tensor) {
  std::string text(tensor);
  std::replace(text.begin(), text.end(), '.', '_');
  return text;
}

Explanation explain_tensor(const model::WeightLayout& layout, const model::StoredFormat& format,
                           const model::Tensor& tensor, std::string path, std::int64_t layers) {
  Explanation x{.path = std::move(path), .unit = "B"};
  let(x, "layers", layers, "layers that have it");
  let(x, "tensors", tensor.count, "tensors of this shape in a layer (experts)");
  let(x, "n", tensor.n, "outputs");
  let(x, "k", tensor.k, "inputs");
  if (tensor.role != model::Role::vector) {
    x.formula = "layers * tensors * " + stored_bytes(x, format, "n", "k");
  } else {
    x.formula = "layers * tensors * n * k * " +
                let(x, "bits", layout.vector_bits, "bits stored per element of a vector") + " / 8";
  }
  return solved(std::move(x));
}

// "0-3, 6, 9": ascending numbers.
std::string ranges(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t first = i;
    while (i + 1 < numbers.size() && numbers[i + 1] == numbers[i] + 1) ++i;
    if (!text.empty()) text += ", ";
    text += i == first ? std::to_string(numbers[i]) : fmt::format("{}-{}", numbers[first], numbers[i]);
  }
  return text;
}

// What one device of the fullest pipeline stage holds.
template <class Add>
void shares(const Context& c, Explanation& x, Add&& add) {
  const auto stage = static_cast<std::int64_t>(c.estimator.fullest_stage(c.scenario()));
  const model::WeightLayout& layout = c.execution().weights;
  for (const model::Tensor& tensor : cost::stage_outer_tensors(c.execution(), stage)) {
    add(tensor, layout.outer(tensor.role), identifier(tensor.name), 1);
  }
  for (std::size_t i = 0; i < layout.groups.size(); ++i) {
    const model::LayerGroup& group = layout.groups[i];
    const std::int64_t layers = c.execution().stage_layers(group, stage);
    if (layers == 0) continue;
    const std::string suffix = i > 0 ? fmt::format("_{}", i + 1) : "";
    for (const model::Tensor& tensor :
         model::layer_tensors(c.model(), graph::shard(c.model().kinds[group.kind], c.plan()))) {
      add(tensor, group[tensor.role], identifier(tensor.name) + suffix, layers);
    }
  }
  x.notes.push_back(
      fmt::format("of one device of the plan {}; weights stored as {}", graph::to_text(c.plan()), layout.name));
  if (c.plan().pipeline > 1) x.notes.push_back(fmt::format("stage {} of {}", stage + 1, c.plan().pipeline));
}

// Those on the device, or those on the host.
void weights(const Context& c, bool on_host, Explanation& x) {
  const model::WeightLayout& layout = c.execution().weights;
  const auto add = [&](const model::Tensor& tensor, const model::StoredFormat& format, std::string path,
                       std::int64_t layers, std::string_view meaning = "B, all tensors of that name together") {
    if (!x.formula.empty()) x.formula += " + ";
    x.formula += let(x, explain_tensor(layout, format, tensor, std::move(path), layers), meaning);
  };
  if (c.plan().devices() > 1 && !on_host) {
    shares(c, x, add);
    const auto stage = static_cast<std::int64_t>(c.estimator.fullest_stage(c.scenario()));
    if (const Bytes added = cost::stage_allocation_bytes(c.execution(), stage); added.value > 0) {
      const graph::Allocation& rule = c.execution().allocation;
      x.formula +=
          " + " + let(x, "allocation_bytes", added.value,
                      fmt::format("B that the allocator adds: {} per tensor, in whole {}", rule.padding, rule.granule));
    }
    if (stage == 0 && layout.extra.value != 0) {
      x.formula += " + " + let(x, "other_tensors", layout.extra.value, "B of other tensors of the file");
    }
    return;
  }
  for (const model::Tensor& tensor : model::outer_tensors(c.model())) {
    const bool held_on_host = tensor.part == model::Part::embedding ? layout.embedding_on_host : layout.head_on_host;
    if (held_on_host == on_host) add(tensor, layout.outer(tensor.role), identifier(tensor.name), 1);
  }
  const bool copied = model::holds_tied_head(c.model(), layout);
  if (copied && layout.head_on_host == on_host) {
    const model::Tensor head{
        .name = "lm_head.weight", .n = c.model().vocab, .k = c.model().hidden, .role = model::Role::lm_head};
    add(head, layout.lm_head, identifier(head.name), 1);
    if (!layout.lm_head_copy) x.notes.emplace_back("lm_head is a copy of the embedding, which the host keeps");
  }
  for (std::size_t i = 0; i < layout.groups.size(); ++i) {
    const model::LayerGroup& group = layout.groups[i];
    if (group.on_host != on_host) continue;
    for (const model::Tensor& tensor : model::layer_tensors(c.model(), c.model().kinds[group.kind])) {
      const std::string suffix = i > 0 ? fmt::format("_{}", i + 1) : "";
      const std::string meaning = layout.groups.size() > 1 ? "B, of layers " + ranges(group.layers)
                                                           : std::string("B, all tensors of that name together");
      add(tensor, group[tensor.role], identifier(tensor.name) + suffix, group.count(), meaning);
    }
  }
  if (!on_host && layout.extra.value != 0) {
    if (!x.formula.empty()) x.formula += " + ";
    x.formula += let(x, "other_tensors", layout.extra.value, "B of other tensors of the file");
  }
  if (x.formula.empty()) x.formula = "0";
  x.notes.push_back(fmt::format("weights stored as {}", layout.name));
  if (layout.groups.size() > 1) {
    x.notes.emplace_back("names that end in a number belong to layers of another kind, format or place");
  }
  if (c.model().tied_embeddings && !copied) x.notes.emplace_back("lm_head shares the storage of the embedding");
}

// Scales with the batch.
std::string kv_cache(const Context& c, bool on_host, Explanation& x) {
  const model::WeightLayout& layout = c.execution().weights;
  const model::CacheScheme& kv = c.execution().kv;
  const bool several = c.model().kinds.size() > 1;
  std::string text;
  let(x, "tokens", c.scenario().prompt + c.scenario().generate, "prompt and generated tokens of a sequence");
  for (std::size_t kind = 0; kind < c.model().kinds.size(); ++kind) {
    std::int64_t layers = 0;
    for (const model::LayerGroup& group : layout.groups) {
      if (group.kind == kind && group.on_host == on_host) layers += group.count();
    }
    if (c.plan().devices() > 1) layers = on_host ? 0 : c.stage().layers[kind];
    if (layers == 0) continue;
    const model::Attention a = graph::shard(c.model().kinds[kind], c.plan()).attention;
    const auto named = [&](std::string_view stem) {
      return several ? fmt::format("{}_{}", stem, kind + 1) : std::string(stem);
    };
    if (!text.empty()) text += " + ";
    text += let(x, named("layers"), layers, "layers of this kind");
    const std::int64_t most = c.execution().cached_tokens(a, 2 * kMaxTokens);
    text += c.execution().window(a)
                ? " * min(tokens, " + let(x, named("window"), most, "tokens a layer with a window keeps") + ")"
                : std::string(" * tokens");
    if (a.latent || kv.keys == kv.values) {
      text += " * " + let(x, named("values_per_token"), model::kv_values_per_token(a),
                          a.latent ? "latent and rotary key of a token" : "keys and values of a token, all KV heads");
      text += " * " + let(x, "kv_element_bytes", bytes_per_element(kv.keys),
                          fmt::format("bytes of a cached value ({})", kv.keys.name));
    } else {
      let(x, named("keys"), a.kv_heads * a.head_dim, "key elements of a token, all KV heads");
      let(x, named("values"), a.kv_heads * a.v_head_dim, "value elements of a token, all KV heads");
      let(x, "key_bytes", bytes_per_element(kv.keys), fmt::format("bytes of a cached key ({})", kv.keys.name));
      let(x, "value_bytes", bytes_per_element(kv.values), fmt::format("bytes of a cached value ({})", kv.values.name));
      text += fmt::format(" * ({} * key_bytes + {} * value_bytes)", named("keys"), named("values"));
    }
  }
  if (text.empty()) return "0";
  text = "(" + text + ")";
  if (c.plan().sequence() > 1)
    text += " / " + let(x, "sequence_ranks", c.plan().sequence(), "devices that share a sequence");
  return text;
}

// ---- Limits

std::string fits_note(const Context& c, std::string_view what, std::int64_t value, const Scenario& s) {
  const Bytes total = c.estimator.memory(s).total();
  return fmt::format("{} {} needs {} of {}: {}", what, value, format_bytes(total), format_bytes(c.estimate.capacity),
                     c.estimator.fits(s) ? "fits" : "does not fit");
}

// KV cache and activations are proportional to the batch, so the largest one is a quotient; llama.cpp's buffers are
// not.
void largest_batch(const Context& c, Explanation& x) {
  const Scenario& s = c.scenario();
  const auto add_notes = [&] {
    const std::int64_t batch = c.estimate.largest_batch;
    if (batch > 0) x.notes.push_back(fits_note(c, "batch", batch, {batch, s.prompt, s.generate}));
    const std::int64_t next = batch + c.estimator.batch_unit();
    if (next <= kMaxBatch) x.notes.push_back(fits_note(c, "batch", next, {next, s.prompt, s.generate}));
  };
  const bool in_parts = c.plan().data > 1 || c.plan().pipeline > 1 || c.estimator.setup().pipeline_batches > 0;
  if (c.execution().weights.gguf || in_parts) {
    x.formula = let(x, "batch", c.estimate.largest_batch, "largest batch whose memory fits, found by bisection");
    add_notes();
    return;
  }
  const cost::Memory one = c.estimator.memory({1, s.prompt, s.generate});
  let(x, "capacity", c.estimate.capacity.value, "B of device memory");
  let(x, "weight_bytes", one.weights.value, "B of weights");
  let(x, "reserve_bytes", one.reserve.value, "B for the runtime");
  let(x, "kv_cache_bytes_each", one.kv_cache.value, "B of KV cache of one request");
  let(x, "activation_bytes_each", one.activation.value, "B of activations of one request");
  let(x, "limit", kMaxBatch, "largest batch tried");
  x.formula =
      "max(0, min(limit, floor((capacity - weight_bytes - reserve_bytes) / (kv_cache_bytes_each + "
      "activation_bytes_each))))";
  add_notes();
}

void longest_context(const Context& c, Explanation& x) {
  const Scenario& s = c.scenario();
  const std::int64_t context = c.estimate.longest_context;
  if (context == 0) {
    x.formula = "0";
    const std::int64_t shortest = c.estimator.prompt_unit();
    x.notes.push_back(fits_note(c, "context", shortest + s.generate, {s.batch, shortest, s.generate}));
    return;
  }
  const std::int64_t prompt = context - s.generate;
  let(x, "prompt", prompt, "longest prompt whose memory fits at this batch, found by bisection");
  let(x, "generate", s.generate, "generated tokens");
  x.formula = "prompt + generate";
  x.notes.push_back(fits_note(c, "context", context, {s.batch, prompt, s.generate}));
  if (const std::int64_t next = prompt + c.estimator.prompt_unit(); next <= kMaxTokens) {
    x.notes.push_back(fits_note(c, "context", next + s.generate, {s.batch, next, s.generate}));
  } else {
    x.notes.emplace_back("the longest prompt tried");
  }
}

void total(const Context& c, std::string_view memory, Explanation& x) {
  x.formula = "weight_bytes + kv_cache_bytes + activation_bytes + reserve_bytes";
  for (const std::string_view what : {"weight_bytes", "kv_cache_bytes", "activation_bytes", "reserve_bytes"}) {
    Explanation part = explain_memory(c.estimator, c.estimate, fmt::format("{}.{}", memory, what));
    let(x, what, part.value, "B");
    x.parts.push_back(std::move(part));
  }
}

}  // namespace

std::span<const std::string_view> memory_paths() { return kPaths; }

Explanation explain_memory(const Estimator& estimator, const Estimate& estimate, std::string_view path) {
  const Context c{estimator, estimate};
  Explanation x{.path = std::string(path),
                .unit = path.ends_with("_bytes")  ? "B"
                        : path == "largest_batch" ? "requests"
                                                  : "tokens"};
  const bool on_host = path.starts_with("host_");
  const cost::Memory& memory = on_host ? estimate.host_memory : estimate.memory;
  const std::string_view what = path.substr(path.find('.') + 1);
  if (what == "weight_bytes") {
    weights(c, on_host, x);
    return checked(std::move(x), memory.weights.value);
  }
  if (what == "kv_cache_bytes") {
    x.formula = let(x, "batch", estimator.replica_batch(estimate.scenario),
                    c.plan().data > 1 ? "requests of one replica" : "requests") +
                " * " + kv_cache(c, on_host, x);
    return checked(std::move(x), memory.kv_cache.value);
  }
  if (what == "activation_bytes") {
    if (on_host || c.execution().weights.gguf) {
      explain_compute_buffers(c.estimator, c.estimate.scenario, on_host, x);
    } else {
      explain_activation(c.estimator, c.estimate.scenario, x);
    }
    return checked(std::move(x), memory.activation.value);
  }
  if (what == "reserve_bytes") {
    x.formula = let(x, "reserve_bytes", memory.reserve.value, "B for the runtime's context and workspaces");
    x.notes.emplace_back("a setting, not a measurement");
    return checked(std::move(x), memory.reserve.value);
  }
  if (what == "total_bytes") {
    total(c, on_host ? "host_memory" : "memory", x);
    return checked(std::move(x), memory.total().value);
  }
  if (what == "capacity_bytes") {
    const hardware::Device* device = on_host ? estimator.setup().host : estimator.setup().device;
    const Bytes capacity = on_host ? estimate.host_capacity : estimate.capacity;
    x.formula = let(
        x, "capacity", capacity.value,
        device ? fmt::format("B of {} of {} ({})", device->dram().name, device->name, name(device->dram().provenance))
               : "B: there is no host");
    return checked(std::move(x), capacity.value);
  }
  if (path == "largest_batch") {
    largest_batch(c, x);
    return checked(std::move(x), static_cast<double>(estimate.largest_batch));
  }
  longest_context(c, x);
  return checked(std::move(x), static_cast<double>(estimate.longest_context));
}

}  // namespace llmperf::estimate
