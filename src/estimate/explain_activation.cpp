// The activation peak by the term that wins, and llama.cpp's compute buffers.
#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
#include "base/text.h"
#include "estimate/explain_parts.h"

namespace llmperf::estimate {
namespace {

double d(std::int64_t x) { return static_cast<double>(x); }

struct Term {
  std::string what;
  std::string formula;  // bytes, beside the residual stream
  Explanation scope;    // its variables
  double bytes = 0;
};

// Tensors of the attention of one kind of layer, in elements.
std::string attention_elements(const graph::Execution& e, const model::Attention& a, const graph::SequenceGroup& g,
                               const cost::StepShare& share, Explanation& x) {
  const auto over = [&](std::string_view name, double ranks, std::string_view meaning) {
    return ranks > 1 ? " / " + let(x, name, ranks, meaning) : std::string();
  };
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
    text += " + 2 * tokens * heads * keys" + over("score_ranks", share.score_ranks, "devices that share the scores");
    x.notes.emplace_back("without flash attention the scores and their softmax exist in memory");
  }
  if (repeated) {
    text += " + sequences * keys * heads * (qk_dim + v_dim)" +
            over("repeat_ranks", share.repeat_ranks, "devices that share the repeated keys and values");
  }
  return text;
}

std::string feed_forward_elements(const model::FeedForward& f, double expert_copies, Explanation& x) {
  let(x, "matrices", f.gated ? 3.0 : 2.0, f.gated ? "gate, up and their product" : "up and its activation");
  let(x, "intermediate", f.experts ? f.experts->intermediate : f.intermediate, "width of the MLP");
  if (!f.experts) return "tokens * (hidden + matrices * intermediate)";
  let(x, "experts_per_token", f.experts->per_token, "experts a token is sent to");
  if (expert_copies == evaluate("tokens", x.variables)) {
    return fmt::format("tokens * (hidden + experts_per_token * (hidden + matrices * intermediate){})",
                       f.experts->shared_intermediate > 0 ? " + hidden" : "");
  }
  let(x, "routed", expert_copies, "tokens that the experts of a device serve, per expert of a token");
  return fmt::format("tokens * (hidden{}) + routed * experts_per_token * (hidden + matrices * intermediate)",
                     f.experts->shared_intermediate > 0 ? " + hidden" : "");
}

// What may be alive beside the residual stream in one step; the first of the largest counts.
std::vector<Term> activation_terms(const graph::Execution& e, const graph::SequenceGroup& g, std::string_view step) {
  Explanation common;
  const cost::StepShare share = cost::step_share(e, g);
  let(common, "tokens", share.tokens, fmt::format("tokens of the {}", step));
  let(common, "hidden", e.model->hidden, "width of the residual stream");
  let(common, "residual", share.residual_elements,
      "elements of the residual stream: tokens * hidden, or a device's share");
  let(common, "element_bytes", bytes_per_element(e.activations),
      fmt::format("bytes of an activation ({})", name(e.activations)));
  std::vector<Term> terms;
  const auto add = [&](std::string_view what, auto&& write) {
    Term term{.what = fmt::format("{} of the {}", what, step), .formula = {}, .scope = common};
    term.formula = write(term.scope);
    term.bytes = evaluate(term.formula, term.scope.variables);
    terms.push_back(std::move(term));
  };
  for (const model::Layer& kind : e.model->kinds) {
    const model::Layer layer = graph::shard(kind, e.plan);
    add("attention", [&](Explanation& x) {
      return fmt::format("({}) * element_bytes", attention_elements(e, layer.attention, g, share, x));
    });
    add("MLP", [&](Explanation& x) {
      return fmt::format("({}) * element_bytes", feed_forward_elements(layer.feed_forward, share.expert_copies, x));
    });
  }
  add("head", [&](Explanation& x) {
    const bool last = e.runtime.last_token_logits;
    let(x, "rows", last ? d(g.count) : share.tokens,
        last ? "logits of the last token of each sequence" : "logits of every token");
    let(x, "vocab", e.model->vocab, "entries of the vocabulary");
    x.notes.emplace_back("logits and their fp32 softmax");
    return std::string("rows * vocab * (element_bytes + 4)");
  });
  return terms;
}

}  // namespace

void explain_activation(const Estimator& estimator, const Scenario& s, Explanation& x) {
  struct Candidate {
    Term term;
    double residual;
  };
  std::vector<Candidate> all;
  const graph::SequenceGroup prefill = estimator.prefill_of(s);
  const graph::SequenceGroup decode = estimator.decode_at(s, s.prompt + s.generate - 1);
  for (const auto& [group, step] : {std::pair{prefill, "prefill"}, std::pair{decode, "last decode step"}}) {
    for (Term& term : activation_terms(estimator.setup().execution, group, step)) {
      const double residual = evaluate("residual * element_bytes", term.scope.variables);
      all.push_back({std::move(term), residual});
    }
  }
  const auto winner = std::max_element(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return a.residual + a.term.bytes < b.residual + b.term.bytes;
  });
  const bool divided = estimator.setup().execution.plan.devices() > 1;
  x.formula = (divided ? "residual * element_bytes + " : "tokens * hidden * element_bytes + ") + winner->term.formula;
  x.variables = winner->term.scope.variables;
  if (const double factor = estimator.setup().activation_factor; factor != 1) {
    x.formula =
        "(" + x.formula + ") * " + let(x, "factor", factor, "memory the runtime plans, over what is alive at once");
  }
  x.notes = winner->term.scope.notes;
  x.notes.insert(x.notes.begin(), fmt::format("the residual stream and the {}, the largest of:", winner->term.what));
  for (const Candidate& candidate : all) {
    x.notes.push_back(
        fmt::format("{}: {}", candidate.term.what, format_bytes(Bytes{candidate.residual + candidate.term.bytes})));
  }
}

// llama.cpp's buffers: one size for a whole context.
void explain_compute_buffers(const Estimator& estimator, const Scenario& s, bool on_host, Explanation& x) {
  const graph::Execution& e = estimator.setup().execution;
  const std::int64_t cells = s.batch * (s.prompt + s.generate);
  const auto stage = static_cast<std::int64_t>(estimator.fullest_stage(s));
  const cost::ComputeTerms terms = cost::compute_terms(e, cells, on_host, stage);
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

}  // namespace llmperf::estimate
