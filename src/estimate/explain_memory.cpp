// Memory: weights tensor by tensor, the KV cache by kind of layer, the activation peak by the term that wins, and the
// limits that follow from what is left.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/number.h"
#include "base/text.h"
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

// Those on the device, or those on the host.
void weights(const Context& c, bool on_host, Explanation& x) {
  const model::WeightLayout& layout = c.execution().weights;
  const auto add = [&](const model::Tensor& tensor, const model::StoredFormat& format, std::string path,
                       std::int64_t layers, std::string_view meaning = "B, all tensors of that name together") {
    if (!x.formula.empty()) x.formula += " + ";
    x.formula += let(x, explain_tensor(layout, format, tensor, std::move(path), layers), meaning);
  };
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
    if (layers == 0) continue;
    const model::Attention& a = c.model().kinds[kind].attention;
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
  return text.empty() ? "0" : "(" + text + ")";
}

// ---- Activation peak

struct Term {
  std::string what;
  std::string formula;  // bytes, beside the residual stream
  Explanation scope;    // its variables
  double bytes = 0;
};

// Tensors of the attention of one kind of layer, in elements.
std::string attention_elements(const graph::Execution& e, const model::Attention& a, const graph::SequenceGroup& g,
                               Explanation& x) {
  let(x, "heads", a.heads, "query heads");
  let(x, "kv_heads", a.kv_heads, "key and value heads");
  let(x, "qk_dim", a.head_dim, "width of a query and a key head");
  let(x, "v_dim", a.v_head_dim, "width of a value head");
  std::string text = "tokens * (heads * qk_dim + kv_heads * (qk_dim + v_dim) + heads * v_dim)";
  const bool expanded = a.latent && !graph::latent_absorbed(a, g);
  const bool repeated = !e.runtime.flash_attention && a.heads != a.kv_heads;
  if (expanded || !e.runtime.flash_attention) let(x, "keys", g.context + g.new_tokens, "tokens a sequence attends to");
  if (expanded || repeated) let(x, "sequences", g.count, "sequences of the step");
  if (expanded) {
    text += " + sequences * keys * heads * (" +
            let(x, "nope_dim", a.latent->nope_dim, "part of a key head without position") + " + v_dim)";
    x.notes.emplace_back("keys and values are expanded from the latents");
  }
  if (!e.runtime.flash_attention) {
    text += " + 2 * tokens * heads * keys";
    x.notes.emplace_back("without flash attention the scores and their softmax exist in memory");
  }
  if (repeated) text += " + sequences * keys * heads * (qk_dim + v_dim)";
  return text;
}

std::string feed_forward_elements(const model::FeedForward& f, Explanation& x) {
  let(x, "matrices", f.gated ? 3.0 : 2.0, f.gated ? "gate, up and their product" : "up and its activation");
  let(x, "intermediate", f.experts ? f.experts->intermediate : f.intermediate, "width of the MLP");
  if (!f.experts) return "tokens * (hidden + matrices * intermediate)";
  let(x, "experts_per_token", f.experts->per_token, "experts a token is sent to");
  return fmt::format("tokens * (hidden + experts_per_token * (hidden + matrices * intermediate){})",
                     f.experts->shared_intermediate > 0 ? " + hidden" : "");
}

// What may be alive beside the residual stream in one step; the first of the largest counts.
std::vector<Term> activation_terms(const graph::Execution& e, const graph::SequenceGroup& g, std::string_view step) {
  Explanation common;
  let(common, "tokens", g.count * g.new_tokens, fmt::format("tokens of the {}", step));
  let(common, "hidden", e.model->hidden, "width of the residual stream");
  let(common, "element_bytes", bytes_per_element(e.activations),
      fmt::format("bytes of an activation ({})", name(e.activations)));
  std::vector<Term> terms;
  const auto add = [&](std::string_view what, auto&& write) {
    Term term{.what = fmt::format("{} of the {}", what, step), .formula = {}, .scope = common};
    term.formula = write(term.scope);
    term.bytes = evaluate(term.formula, term.scope.variables);
    terms.push_back(std::move(term));
  };
  for (const model::Layer& layer : e.model->kinds) {
    add("attention", [&](Explanation& x) {
      return fmt::format("({}) * element_bytes", attention_elements(e, layer.attention, g, x));
    });
    add("MLP", [&](Explanation& x) {
      return fmt::format("({}) * element_bytes", feed_forward_elements(layer.feed_forward, x));
    });
  }
  add("head", [&](Explanation& x) {
    const bool last = e.runtime.last_token_logits;
    let(x, "rows", last ? g.count : g.count * g.new_tokens,
        last ? "logits of the last token of each sequence" : "logits of every token");
    let(x, "vocab", e.model->vocab, "entries of the vocabulary");
    x.notes.emplace_back("logits and their fp32 softmax");
    return std::string("rows * vocab * (element_bytes + 4)");
  });
  return terms;
}

void activation(const Context& c, Explanation& x) {
  const Scenario& s = c.scenario();
  struct Candidate {
    Term term;
    double residual;
  };
  std::vector<Candidate> all;
  const graph::SequenceGroup prefill{s.batch, s.prompt, 0};
  const graph::SequenceGroup decode{s.batch, 1, s.prompt + s.generate - 1};
  for (const auto& [group, step] : {std::pair{prefill, "prefill"}, std::pair{decode, "last decode step"}}) {
    for (Term& term : activation_terms(c.execution(), group, step)) {
      const double residual = evaluate("tokens * hidden * element_bytes", term.scope.variables);
      all.push_back({std::move(term), residual});
    }
  }
  const auto winner = std::max_element(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return a.residual + a.term.bytes < b.residual + b.term.bytes;
  });
  x.formula = "tokens * hidden * element_bytes + " + winner->term.formula;
  x.variables = winner->term.scope.variables;
  x.notes = winner->term.scope.notes;
  x.notes.insert(x.notes.begin(), fmt::format("the residual stream and the {}, the largest of:", winner->term.what));
  for (const Candidate& candidate : all) {
    x.notes.push_back(
        fmt::format("{}: {}", candidate.term.what, format_bytes(Bytes{candidate.residual + candidate.term.bytes})));
  }
}

// llama.cpp's buffers: one size for a whole context.
void compute_buffers(const Context& c, bool on_host, Explanation& x) {
  const graph::Execution& e = c.execution();
  const Scenario& s = c.scenario();
  const std::int64_t cells = s.batch * (s.prompt + s.generate);
  const cost::ComputeTerms terms = cost::compute_terms(e, cells, on_host);
  let(x, "tokens", std::min(e.micro_batch, cells), "tokens of a micro-batch");
  let(x, "cells", cells, "tokens the cache holds, all sequences together");
  let(x, "hidden", e.model->hidden, "width of the residual stream");
  let(x, "vocab", e.model->vocab, "entries of the vocabulary");
  std::vector<std::string> candidates;
  if (terms.head > 0) candidates.emplace_back("vocab + hidden");
  if (terms.attention > 0) {
    candidates.push_back(let(x, "attention", terms.attention,
                             e.runtime.flash_attention
                                 ? "cells + 4 * hidden: mask, queries and residual stream of a layer"
                                 : "heads * cells + cells + 4 * hidden: scores, mask, queries and residual stream of a "
                                   "layer"));
  }
  if (terms.mlp > 0) {
    candidates.push_back(let(x, "mlp", terms.mlp, "gate and up of a layer, mask and residual stream"));
  }
  const std::string largest = candidates.empty() ? "" : "max(" + join(candidates, ", ") + ")";
  x.notes.emplace_back("elements of 4 bytes per token of a micro-batch, as llama.cpp sizes its compute buffers");
  if (on_host) {
    let(x, "sequences", s.batch, "sequences whose logits are kept");
    x.formula = e.weights.uses_host() ? fmt::format("4 * tokens * (hidden + cells{}{}) + 4 * sequences * vocab",
                                                    largest.empty() ? "" : " + ", largest)
                                      : "0";
    return;
  }
  x.formula = largest.empty() ? "0" : "4 * tokens * " + largest;
  if (const Bytes sent = cost::largest_sent(e, cells); sent.value > 0) {
    x.formula +=
        " + " + let(x, "sent", sent.value, "B of the largest matrix and cache the host sends for a layer it keeps");
  }
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
    if (batch < kMaxBatch) x.notes.push_back(fits_note(c, "batch", batch + 1, {batch + 1, s.prompt, s.generate}));
  };
  if (c.execution().weights.gguf) {
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
    x.notes.push_back(fits_note(c, "context", 1 + s.generate, {s.batch, 1, s.generate}));
    return;
  }
  const std::int64_t prompt = context - s.generate;
  let(x, "prompt", prompt, "longest prompt whose memory fits at this batch, found by bisection");
  let(x, "generate", s.generate, "generated tokens");
  x.formula = "prompt + generate";
  x.notes.push_back(fits_note(c, "context", context, {s.batch, prompt, s.generate}));
  if (prompt < kMaxTokens) {
    x.notes.push_back(fits_note(c, "context", context + 1, {s.batch, prompt + 1, s.generate}));
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
    x.formula = let(x, "batch", estimate.scenario.batch, "requests") + " * " + kv_cache(c, on_host, x);
    return checked(std::move(x), memory.kv_cache.value);
  }
  if (what == "activation_bytes") {
    if (on_host || c.execution().weights.gguf) {
      compute_buffers(c, on_host, x);
    } else {
      activation(c, x);
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
