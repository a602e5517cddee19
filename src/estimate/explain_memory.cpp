// Memory: weights tensor by tensor, the KV cache by kind of layer, the activation peak by the term that wins, and the
// limits that follow from what is left.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/number.h"
#include "estimate/explain_parts.h"
#include "model/parameters.h"

namespace llmperf::estimate {
namespace {

constexpr std::array<std::string_view, 8> kPaths = {
    "memory.weight_bytes", "memory.kv_cache_bytes", "memory.activation_bytes", "memory.reserve_bytes",
    "memory.total_bytes",  "memory.capacity_bytes", "largest_batch",           "longest_context_tokens"};

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

const model::StoredFormat* format_of(const model::WeightScheme& scheme, model::TensorClass type) {
  switch (type) {
    case model::TensorClass::linear: return &scheme.linear;
    case model::TensorClass::expert: return &scheme.expert;
    case model::TensorClass::embedding: return &scheme.embedding;
    case model::TensorClass::other: return &scheme.other;
    case model::TensorClass::vector: return nullptr;
  }
  return nullptr;
}

Explanation explain_tensor(const model::WeightScheme& scheme, const model::Tensor& tensor, std::string path,
                           std::int64_t layers) {
  Explanation x{.path = std::move(path), .unit = "B"};
  let(x, "layers", layers, "layers that have it");
  let(x, "tensors", tensor.count, "tensors of this shape in a layer (experts)");
  let(x, "n", tensor.n, "outputs");
  let(x, "k", tensor.k, "inputs");
  if (const model::StoredFormat* format = format_of(scheme, tensor.type)) {
    x.formula = "layers * tensors * " + stored_bytes(x, *format, "n", "k");
  } else {
    x.formula = "layers * tensors * n * k * " +
                let(x, "bits", scheme.vector_bits, "bits stored per element of a vector") + " / 8";
  }
  return solved(std::move(x));
}

void weights(const Context& c, Explanation& x) {
  const auto add = [&](const model::Tensor& tensor, std::size_t kind, std::int64_t layers) {
    std::string path = identifier(tensor.name);
    if (kind > 0) path += fmt::format("_{}", kind + 1);
    Explanation part = explain_tensor(c.execution().weights, tensor, path, layers);
    if (!x.formula.empty()) x.formula += " + ";
    x.formula += let(x, std::move(part), "B, all tensors of that name together");
  };
  for (const model::Tensor& tensor : model::outer_tensors(c.model())) add(tensor, 0, 1);
  for (std::size_t kind = 0; kind < c.model().kinds.size(); ++kind) {
    for (const model::Tensor& tensor : model::layer_tensors(c.model(), c.model().kinds[kind])) {
      add(tensor, kind, c.model().count_of_kind(kind));
    }
  }
  x.notes.push_back(fmt::format("weights stored as {}", c.execution().weights.name));
  if (c.model().kinds.size() > 1) x.notes.emplace_back("names that end in a number belong to that kind of layer");
  if (c.model().tied_embeddings) x.notes.emplace_back("lm_head shares the storage of the embedding");
}

// Scales with the batch; `batch` names a variable or is "1".
std::string kv_cache(const Context& c, Explanation& x) {
  std::string text;
  const bool several = c.model().kinds.size() > 1;
  let(x, "tokens", c.scenario().prompt + c.scenario().generate, "prompt and generated tokens of a sequence");
  for (std::size_t kind = 0; kind < c.model().kinds.size(); ++kind) {
    const model::Attention& a = c.model().kinds[kind].attention;
    const auto named = [&](std::string_view stem) {
      return several ? fmt::format("{}_{}", stem, kind + 1) : std::string(stem);
    };
    if (kind > 0) text += " + ";
    text += let(x, named("layers"), c.model().count_of_kind(kind), "layers of this kind");
    text += " * " + let(x, named("values_per_token"), model::kv_values_per_token(a),
                        a.latent ? "latent and rotary key of a token" : "keys and values of a token, all KV heads");
    text += a.window
                ? " * min(tokens, " + let(x, named("window"), *a.window, "tokens a layer with a window keeps") + ")"
                : std::string(" * tokens");
  }
  return fmt::format("({}) * {}", text,
                     let(x, "kv_element_bytes", bytes_per_element(c.execution().kv),
                         fmt::format("bytes of a cached value ({})", name(c.execution().kv))));
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

// ---- Limits

std::string fits_note(const Context& c, std::string_view what, std::int64_t value, const Scenario& s) {
  const Bytes total = c.estimator.memory(s).total();
  return fmt::format("{} {} needs {} of {}: {}", what, value, format_bytes(total), format_bytes(c.estimate.capacity),
                     total <= c.estimate.capacity ? "fits" : "does not fit");
}

// KV cache and activations are proportional to the batch, so the largest one is a quotient.
void largest_batch(const Context& c, Explanation& x) {
  const Scenario& s = c.scenario();
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
  const std::int64_t batch = c.estimate.largest_batch;
  if (batch > 0) x.notes.push_back(fits_note(c, "batch", batch, {batch, s.prompt, s.generate}));
  if (batch < kMaxBatch) x.notes.push_back(fits_note(c, "batch", batch + 1, {batch + 1, s.prompt, s.generate}));
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

void total(const Context& c, Explanation& x) {
  x.formula = "weight_bytes + kv_cache_bytes + activation_bytes + reserve_bytes";
  for (const std::string_view path : std::span(kPaths).first(4)) {
    Explanation part = explain_memory(c.estimator, c.estimate, path);
    let(x, path.substr(path.find('.') + 1), part.value, "B");
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
  const cost::Memory& memory = estimate.memory;
  if (path == "memory.weight_bytes") {
    weights(c, x);
    return checked(std::move(x), memory.weights.value);
  }
  if (path == "memory.kv_cache_bytes") {
    x.formula = let(x, "batch", estimate.scenario.batch, "requests") + " * " + kv_cache(c, x);
    return checked(std::move(x), memory.kv_cache.value);
  }
  if (path == "memory.activation_bytes") {
    activation(c, x);
    return checked(std::move(x), memory.activation.value);
  }
  if (path == "memory.reserve_bytes") {
    x.formula = let(x, "reserve_bytes", memory.reserve.value, "B for the runtime's context and workspaces");
    x.notes.emplace_back("a setting, not a measurement");
    return checked(std::move(x), memory.reserve.value);
  }
  if (path == "memory.total_bytes") {
    total(c, x);
    return checked(std::move(x), memory.total().value);
  }
  if (path == "memory.capacity_bytes") {
    const hardware::Device& device = *estimator.setup().device;
    x.formula = let(x, "capacity", estimate.capacity.value,
                    fmt::format("B of {} of {} ({})", device.dram().name, device.name, name(device.dram().provenance)));
    return checked(std::move(x), estimate.capacity.value);
  }
  if (path == "largest_batch") {
    largest_batch(c, x);
    return checked(std::move(x), static_cast<double>(estimate.largest_batch));
  }
  longest_context(c, x);
  return checked(std::move(x), static_cast<double>(estimate.longest_context));
}

}  // namespace llmperf::estimate
