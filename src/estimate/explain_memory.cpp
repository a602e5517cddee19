// Memory: weights tensor by tensor, the KV cache by kind of layer, activations by what is alive when most of them are,
// and the limits that follow from what is left. The formulas are those of cost/memory.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/number.h"
#include "base/text.h"
#include "cost/formulas.h"
#include "estimate/explain_parts.h"
#include "model/parameters.h"
#include "model/stored_bytes.h"

namespace llmperf::estimate {
namespace {

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

// Matrices between residual streams are in layers and outside.
std::string outer_identifier(const model::Tensor& tensor) {
  return (tensor.role == model::Role::stream_mix ? "outer_" : "") + identifier(tensor.name);
}

Term tensor_bytes(const model::WeightLayout& layout, const model::StoredFormat& format, const model::Tensor& tensor,
                  std::int64_t layers) {
  const Term n = named("n", tensor.n, "outputs");
  const Term k = named("k", tensor.k, "inputs");
  const Term tensors = named("layers", layers, "layers that have it") *
                       named("tensors", tensor.count, "tensors of this shape in a layer (experts)");
  if (tensor.role != model::Role::vector) return tensors * model::stored_bytes(format, n, k);
  return tensors * n * k * named("bits", layout.vector_bits, "bits stored per element of a vector") / 8;
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
void visit_share(const Context& c, Add&& add) {
  const auto stage = static_cast<std::int64_t>(c.estimator.fullest_stage(c.scenario()));
  const model::WeightLayout& layout = c.execution().weights;
  for (const model::Tensor& tensor : cost::stage_outer_tensors(c.execution(), stage)) {
    add(tensor, layout.outer(tensor.role), outer_identifier(tensor), 1);
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
}

// Those on the device, or those on the host.
Term language_weights(const Context& c, bool on_host) {
  const model::WeightLayout& layout = c.execution().weights;
  Term sum;
  const auto add = [&](const model::Tensor& tensor, const model::StoredFormat& format, std::string path,
                       std::int64_t layers, std::string meaning = "B, all tensors of that name together") {
    sum = sum + named(tensor_bytes(layout, format, tensor, layers).explained(std::move(path), "B"), std::move(meaning));
  };
  const auto add_bytes = [&](std::string_view name, Bytes bytes, std::string meaning) {
    if (bytes.value != 0) sum = sum + named(name, bytes.value, std::move(meaning));
  };
  if (c.plan().devices() > 1 && !on_host) {
    visit_share(c, add);
    const auto stage = static_cast<std::int64_t>(c.estimator.fullest_stage(c.scenario()));
    const graph::Allocation& rule = c.execution().allocation;
    add_bytes("allocation_bytes", cost::stage_allocation_bytes(c.execution(), stage),
              fmt::format("B that the allocator adds: {} per tensor, in whole {}", rule.padding, rule.granule));
    if (stage == 0) add_bytes("other_tensors", layout.extra, "B of other tensors of the file");
    sum = sum.noted(
        fmt::format("of one device of the plan {}; weights stored as {}", graph::to_text(c.plan()), layout.name));
    return c.plan().pipeline == 1 ? sum : sum.noted(fmt::format("stage {} of {}", stage + 1, c.plan().pipeline));
  }
  for (const model::Tensor& tensor : model::outer_tensors(c.model())) {
    const bool held_on_host = tensor.part == model::Part::embedding ? layout.embedding_on_host : layout.head_on_host;
    if (held_on_host == on_host) add(tensor, layout.outer(tensor.role), outer_identifier(tensor), 1);
  }
  const bool copied = model::holds_tied_head(c.model(), layout);
  if (copied && layout.head_on_host == on_host) {
    const model::Tensor head{
        .name = "lm_head.weight", .n = c.model().vocab, .k = c.model().hidden, .role = model::Role::lm_head};
    add(head, layout.lm_head, identifier(head.name), 1);
    if (!layout.lm_head_copy) sum = sum.noted("lm_head is a copy of the embedding, which the host keeps");
  }
  for (std::size_t i = 0; i < layout.groups.size(); ++i) {
    const model::LayerGroup& group = layout.groups[i];
    for (const model::Tensor& tensor : model::layer_tensors(c.model(), c.model().kinds[group.kind])) {
      if (group.holds_on_host(tensor.role) != on_host) continue;
      const std::string suffix = i > 0 ? fmt::format("_{}", i + 1) : "";
      const std::string meaning = layout.groups.size() > 1 ? "B, of layers " + ranges(group.layers)
                                                           : std::string("B, all tensors of that name together");
      add(tensor, group[tensor.role], identifier(tensor.name) + suffix, group.count(), meaning);
    }
  }
  if (!on_host) add_bytes("other_tensors", layout.extra, "B of other tensors of the file");
  sum = sum.noted(fmt::format("weights stored as {}", layout.name));
  if (layout.groups.size() > 1) {
    sum = sum.noted("names that end in a number belong to layers of another kind, format or place");
  }
  return c.model().tied_embeddings && !copied ? sum.noted("lm_head shares the storage of the embedding") : sum;
}

// And the vision tower of the first stage.
Term weights(const Context& c, bool on_host) {
  const Term language = language_weights(c, on_host);
  if (!c.model().vision || on_host || c.estimator.fullest_stage(c.scenario()) > 0) return language;
  const Term tower = named("vision_parameters", model::count_parameters(*c.model().vision).total(),
                           "parameters of the vision tower and its projectors") *
                     named("vision_bits", c.execution().vision_weights.bits, "bits that each is stored in") / 8;
  return language + tower;
}

// Layers of a kind that the fullest device holds, or the host.
std::int64_t layers_held(const Context& c, std::size_t kind, bool on_host) {
  if (c.plan().devices() > 1) return on_host ? 0 : c.stage().layers[kind];
  std::int64_t layers = 0;
  for (const model::LayerGroup& group : c.execution().weights.groups) {
    if (group.kind == kind && group.on_host == on_host) layers += group.count();
  }
  return layers;
}
std::string kind_suffix(const Context& c, std::size_t kind) {
  return c.model().kinds.size() > 1 ? fmt::format("_{}", kind + 1) : "";
}

// Of one sequence.
Term state(const Context& c, bool on_host) {
  Term sum;
  for (std::size_t kind = 0; kind < c.model().kinds.size(); ++kind) {
    const std::string suffix = kind_suffix(c, kind);
    const Term each = cost::explained_layer_state(c.execution(), graph::shard(c.model().kinds[kind], c.plan()), suffix);
    const std::int64_t layers = layers_held(c, kind, on_host);
    if (layers == 0 || each.is(0)) continue;
    sum = sum + named("layers" + suffix, layers, "layers of this kind") * each.in_parentheses();
  }
  return sum.is(0) ? sum : sum.in_parentheses();
}
Term kv_cache(const Context& c, bool on_host, std::int64_t cached_tokens) {
  const Serving& serving = c.estimator.setup().serving;
  const Term tokens =
      named("tokens", cached_tokens,
            !serving.decodes()   ? "prompt tokens of a sequence"
            : serving.verify > 1 ? "prompt and generated tokens of a sequence, and guesses of its last step"
                                 : "prompt and generated tokens of a sequence");
  Term sum;
  for (std::size_t kind = 0; kind < c.model().kinds.size(); ++kind) {
    const std::int64_t layers = layers_held(c, kind, on_host);
    const model::Attention a = graph::shard(c.model().kinds[kind], c.plan()).attention;
    if (layers == 0 || a.heads == 0 || c.model().encoder) continue;
    const std::string suffix = kind_suffix(c, kind);
    const Term kept = c.execution().window(a)
                          ? min(tokens, named("window" + suffix, c.execution().cached_tokens(a, 2 * kMaxTokens),
                                              "tokens a layer with a window keeps"))
                          : tokens;
    sum = sum + named("layers" + suffix, layers, "layers of this kind") *
                    cost::explained_layer_kv(c.execution(), a, kept, tokens, suffix);
  }
  if (sum.is(0) || c.plan().sequence() == 1) return sum.is(0) ? sum : sum.in_parentheses();
  return sum.in_parentheses() / named("sequence_ranks", c.plan().sequence(), "devices that share a sequence");
}

// A draft has as many tokens as its target.
Term draft_cache(const Context& target, const Context& draft) {
  const std::int64_t tokens = target.estimator.cached_tokens(target.scenario());
  const Term batch = named("batch", draft.estimator.replica_batch(draft.scenario()), "requests of a replica");
  const Term kept = state(draft, false);
  Term sum = batch * kv_cache(draft, false, tokens);
  if (!kept.is(0)) sum = sum + batch * kept;
  if (!draft.execution().weights.gguf) return sum;
  return sum +
         named("compute_buffers", target.estimate.memory.draft_cache.value - sum.value(), "B of its compute buffers");
}

// Of whichever of a prefill and the last decode step needs most; llama.cpp's buffers are sized once for both.
Term activation(const Context& c, bool on_host) {
  const Scenario& s = c.scenario();
  if (on_host || c.execution().weights.gguf) {
    return cost::explained_compute_buffer(c.execution(), s.batch, s.batch * c.estimator.cached_tokens(s), on_host,
                                          static_cast<std::int64_t>(c.estimator.fullest_stage(s)));
  }
  const Serving& serving = c.estimator.setup().serving;
  std::vector<cost::Alive> all;
  const auto add = [&](const graph::SequenceGroup& step, const char* name) {
    for (cost::Alive& alive : cost::explained_activation(c.execution(), step, name)) all.push_back(std::move(alive));
  };
  if (serving.prefills()) {
    const auto [whole, rest] = c.estimator.pieces_of(s);
    const bool one = whole.steps + rest.steps == 1;
    add(whole.first, c.estimator.setup().encodes() ? "pass" : one ? "prefill" : "first piece of the prompt");
    if (whole.steps > 1) add(whole.last(), "last whole piece of the prompt");
    if (rest.steps > 0) add(rest.first, "last piece of the prompt");
  }
  if (serving.prefills() && s.images > 0) {
    all.push_back(cost::explained_vision_activation(c.execution(), c.estimator.images_of(s)));
  }
  if (serving.decodes()) add(c.estimator.decode_at(s, s.decode_context() + s.generate - 1), "last decode step");
  const auto most = std::ranges::max_element(
      all, [](const cost::Alive& a, const cost::Alive& b) { return a.bytes.value() < b.bytes.value(); });
  const double factor = c.estimator.setup().activation_factor;
  Term x = most->bytes.noted_first(fmt::format("the residual stream and the {}, the largest of:", most->what));
  if (factor != 1) {
    x = x.in_parentheses() * named("factor", factor, "memory the runtime plans, over what is alive at once");
  }
  if (serving.overlap_batches > 1) {
    x = x.in_parentheses() * named("overlap_batches", serving.overlap_batches, "micro-batches at the same time");
  }
  for (const cost::Alive& alive : all) {
    x = x.noted(fmt::format("{}: {}", alive.what, format_bytes(Bytes{alive.bytes.value()})));
  }
  return x;
}

// ---- Limits

Scenario with_batch(Scenario s, std::int64_t batch) {
  s.batch = batch;
  return s;
}
Scenario with_prompt(Scenario s, std::int64_t prompt) {
  s.prompt = prompt;
  return s;
}
std::string fits_note(const Context& c, std::string_view what, std::int64_t value, const Scenario& s) {
  const Bytes total = c.estimator.memory(s).total();
  return fmt::format("{} {} needs {} of {}: {}", what, value, format_bytes(total), format_bytes(c.estimate.capacity),
                     c.estimator.fits(s) ? "fits" : "does not fit");
}

// KV cache and activations are proportional to the batch, so the largest one is a quotient; llama.cpp's buffers are
// not.
Term largest_batch(const Context& c) {
  const Scenario& s = c.scenario();
  // Whole images are dealt to the devices of the tensor axis.
  const bool dealt = s.images > 0 && c.plan().tensor > 1;
  const bool in_parts = c.plan().pipeline > 1 || c.estimator.batch_unit() > 1 || dealt;
  Term x;
  if (c.execution().weights.gguf || in_parts) {
    x = named("batch", c.estimate.largest_batch, "largest batch whose memory fits, found by bisection");
  } else {
    const cost::Memory one = c.estimator.memory(with_batch(s, 1));
    const Term room =
        named("capacity", c.estimate.capacity.value, "B of device memory") -
        named("weight_bytes", one.weights.value, "B of weights") -
        named("reserve_bytes", one.reserve.value, "B for the runtime") -
        (one.draft.value > 0 ? named("draft_weight_bytes", one.draft.value, "B of weights of the draft") : Term(0));
    Term each = named("kv_cache_bytes_each", one.kv_cache.value, "B of KV cache of one request") +
                named("activation_bytes_each", one.activation.value, "B of activations of one request");
    for (const auto& [name, bytes, meaning] :
         {std::tuple{"state_bytes_each", one.state, "B of recurrent state of one request"},
          std::tuple{"draft_cache_bytes_each", one.draft_cache, "B of the draft's cache of one request"}}) {
      if (bytes.value > 0) each = each + named(name, bytes.value, meaning);
    }
    x = max(Term(0), min(named("limit", kMaxBatch, "largest batch tried"), floor(room / each)));
  }
  const std::int64_t batch = c.estimate.largest_batch;
  if (batch > 0) x = x.noted(fits_note(c, "batch", batch, with_batch(s, batch)));
  const std::int64_t next = batch + c.estimator.batch_unit();
  return next > kMaxBatch ? x : x.noted(fits_note(c, "batch", next, with_batch(s, next)));
}

Term longest_context(const Context& c) {
  const Scenario& s = c.scenario();
  const std::int64_t context = c.estimate.longest_context;
  const std::int64_t others = c.estimator.tokens(s) - s.prompt;
  if (context == 0) {
    const std::int64_t shortest = c.estimator.prompt_unit();
    return Term(0).noted(fits_note(c, "context", shortest + others, with_prompt(s, shortest)));
  }
  const std::int64_t prompt = context - others;
  const Term x =
      (named("prompt", prompt, "longest prompt whose memory fits at this batch, found by bisection") +
       named("generate", others, s.depth > 0 ? "generated tokens, and those cached before" : "generated tokens"))
          .noted(fits_note(c, "context", context, with_prompt(s, prompt)));
  const std::int64_t next = prompt + c.estimator.prompt_unit();
  return x.noted(next <= kMaxTokens ? fits_note(c, "context", next + others, with_prompt(s, next))
                                    : std::string("the longest prompt tried"));
}

Term total(const Context& c, std::string_view memory) {
  Term sum;
  for (const std::string_view what : {"weight_bytes", "kv_cache_bytes", "state_bytes", "draft_weight_bytes",
                                      "draft_cache_bytes", "activation_bytes", "reserve_bytes"}) {
    const bool of_draft = what.starts_with("draft_");
    const cost::Memory& held = memory == "memory" ? c.estimate.memory : c.estimate.host_memory;
    if (of_draft && (what == "draft_cache_bytes" ? held.draft_cache : held.draft).value == 0) continue;
    if (what == "state_bytes" && !c.model().has_recurrent() && c.estimate.memory.state.value == 0) continue;
    const Explanation part = explain_memory(c.estimator, c.estimate, fmt::format("{}.{}", memory, what));
    sum = sum + named(what, part.value, "B").with_part(part);
  }
  return sum;
}

}  // namespace

std::span<const std::string_view> memory_paths() {
  static const std::vector<std::string_view> paths = words(
      "memory.weight_bytes memory.kv_cache_bytes memory.state_bytes memory.draft_weight_bytes "
      "memory.draft_cache_bytes memory.activation_bytes memory.reserve_bytes memory.total_bytes "
      "memory.capacity_bytes largest_batch longest_context_tokens host_memory.weight_bytes "
      "host_memory.kv_cache_bytes host_memory.state_bytes host_memory.draft_weight_bytes "
      "host_memory.activation_bytes host_memory.reserve_bytes host_memory.total_bytes "
      "host_memory.capacity_bytes");
  return paths;
}

Explanation explain_memory(const Estimator& estimator, const Estimate& estimate, std::string_view path) {
  const Context c{estimator, estimate};
  const bool on_host = path.starts_with("host_");
  const cost::Memory& memory = on_host ? estimate.host_memory : estimate.memory;
  const std::string_view what = path.substr(path.find('.') + 1);
  const auto is = [&](const Term& formula, double number) {
    const std::string_view unit = path.ends_with("_bytes") ? "B" : path == "largest_batch" ? "requests" : "tokens";
    return checked(formula, std::string(path), unit, number);
  };
  if (what == "weight_bytes") return is(weights(c, on_host), memory.weights.value);
  if (const Estimator* draft = estimator.draft(); draft != nullptr && what.starts_with("draft_")) {
    if (what == "draft_weight_bytes") return is(weights({*draft, estimate}, on_host), memory.draft.value);
    return is(draft_cache(c, {*draft, estimate}), memory.draft_cache.value);
  }
  if (what == "kv_cache_bytes") {
    const Term batch = named("batch", estimator.replica_batch(estimate.scenario),
                             c.plan().data > 1 ? "requests of one replica" : "requests");
    return is(batch * kv_cache(c, on_host, estimator.cached_tokens(estimate.scenario)), memory.kv_cache.value);
  }
  if (what == "state_bytes") {
    const Term batch = named("batch", estimator.replica_batch(estimate.scenario), "requests");
    return is(batch * state(c, on_host), memory.state.value);
  }
  if (what == "activation_bytes") return is(activation(c, on_host), memory.activation.value);
  if (what == "reserve_bytes") {
    const Term reserve = named("reserve_bytes", memory.reserve.value, "B for the runtime's context and workspaces");
    return is(reserve.noted("a setting, not a measurement"), memory.reserve.value);
  }
  if (what == "total_bytes") return is(total(c, on_host ? "host_memory" : "memory"), memory.total().value);
  if (what == "capacity_bytes") {
    const hardware::Device* device = on_host ? estimator.setup().host : estimator.setup().device;
    const double capacity = (on_host ? estimate.host_capacity : estimate.capacity).value;
    return is(named("capacity", capacity,
                    device ? fmt::format("B of {} of {} ({})", device->dram().name, device->name,
                                         hardware::name(device->dram().provenance))
                           : "B: there is no host"),
              capacity);
  }
  if (path == "largest_batch") return is(largest_batch(c), static_cast<double>(estimate.largest_batch));
  return is(longest_context(c), static_cast<double>(estimate.longest_context));
}

}  // namespace llmperf::estimate
