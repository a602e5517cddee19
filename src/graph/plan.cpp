// What every axis divides, and what that takes.
//
//   tensor            heads, KV heads (or replicates them), the widths of dense MLPs and shared experts, the vocabulary
//   ulysses           heads and KV heads that the tensor axis left, and the sequence
//   ring              the sequence
//   expert            routed experts; within the tensor axis first, the rest of that axis then divides each expert
//   pipeline          layers, at least one for each stage
//
// A vocabulary is padded to a multiple rather than refused, as engines do.
#include "graph/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"
#include "base/list.h"
#include "base/number.h"
#include "base/text.h"
#include "graph/stage_split.h"

namespace llmperf::graph {
namespace {

using model::Layer;

constexpr std::string_view kStageDevices = "devices of a stage";

// One thing that a plan divides: `total` must be a multiple of `degree`.
struct Division {
  std::string_view field;  // "`tp`"
  std::string_view what;   // "heads"
  std::int64_t degree = 1;
  std::int64_t total = 0;
  bool replicates = false;  // degree may also be a multiple of total (KV heads)
};
bool divides(const Division& s) { return s.total % s.degree == 0 || (s.replicates && s.degree % s.total == 0); }

// Calls `visit(division)` for everything the plan divides, until one visit returns false. Returns whether none did.
template <class Visit>
bool each_split(const model::Decoder& m, const Plan& p, Visit&& visit) {
  if (p.tensor_rows > 0) {
    if (!visit(Division{"`tp`", "hidden columns", p.tensor, m.hidden})) return false;
  }
  if (p.expert > 1 && m.has_experts() && !p.afd) {
    const bool inside = p.expert <= p.tensor;
    if (!visit(inside ? Division{"`ep`", "devices of the tensor axis", p.expert, p.tensor}
                      : Division{"`tp`", "degree of the experts", p.tensor, p.expert}))
      return false;
    if (!inside && !visit(Division{"`ep`", kStageDevices, p.expert, p.stage()})) return false;
  }
  for (const Layer& layer : m.kinds) {
    const model::Attention& a = layer.attention;
    const std::int64_t heads = p.tensor * p.ulysses;
    if (heads > 1 && !visit(Division{p.ulysses > 1 ? "`tp` times ulysses" : "`tp`", "heads", heads, a.heads}))
      return false;
    if (layer.recurrent && p.tensor > 1) {
      const model::Recurrent& r = *layer.recurrent;
      const bool channels = r.value_dim == 1;
      if (!visit(
              Division{"`tp`", channels ? "channels of a recurrence" : "heads of a recurrence", p.tensor, r.heads}) ||
          (!channels && !visit(Division{"`tp`", "key heads of a recurrence", p.tensor, r.key_heads, true})))
        return false;
    }
    if (!a.latent && layer.attends()) {
      if (p.tensor > 1 && !visit(Division{"`tp`", "KV heads", p.tensor, a.kv_heads, true})) return false;
      const std::int64_t local = std::max<std::int64_t>(1, a.kv_heads / p.tensor);
      if (p.ulysses > 1 && !visit(Division{"`sp` ulysses", "KV heads of a device", p.ulysses, local})) return false;
    }
    const model::FeedForward& f = layer.feed_forward;
    if (p.tensor > 1 && f.intermediate > 0 && !visit(Division{"`tp`", "MLP columns", p.tensor, f.intermediate}))
      return false;
    if (!f.experts) continue;
    const model::Experts& x = *f.experts;
    const char* what = p.expert_copies > 0 ? "experts and their copies" : "experts";
    if (p.expert > 1 && !visit(Division{"`ep`", what, p.routed_ranks(), x.count + p.expert_copies})) return false;
    if (p.expert_tensor() > 1 && !visit(Division{"`tp`", "columns of an expert", p.expert_tensor(), x.intermediate}))
      return false;
    if (p.tensor > 1 && x.shared_intermediate > 0 &&
        !visit(Division{"`tp`", "columns of the shared expert", p.tensor, x.shared_intermediate}))
      return false;
  }
  return true;
}

bool has_latent(const model::Decoder& m) {
  return std::any_of(m.kinds.begin(), m.kinds.end(), [](const Layer& l) { return l.attention.latent.has_value(); });
}

// Keys that stand for several tokens, are chosen, or belong to another layer.
bool compresses(const model::Decoder& m) {
  return std::any_of(m.kinds.begin(), m.kinds.end(), [](const Layer& l) {
    return l.attention.compression || l.attention.indexer || l.attention.shares_cache;
  });
}

// Rules that are no divisions.
struct Rule {
  bool broken;
  const char* message;
  const char* hint;
};
// Whether a device could hold a shared expert as it holds a routed one.
bool shared_alike(const model::Decoder& m) {
  return std::all_of(m.kinds.begin(), m.kinds.end(), [](const Layer& l) {
    const auto& x = l.feed_forward.experts;
    return !x || (x->shared_intermediate == x->intermediate && x->latent == 0 && !x->shared_gate);
  });
}

std::array<Rule, 15> rules(const model::Decoder& m, const Plan& p) {
  return {{
      {p.sequence_parallel && p.tensor == 1,
       "`megatron-sp` divides the residual stream over the tensor axis: it needs `tp`", "`tp` 2 `megatron-sp`"},
      {(p.expert_copies > 0 || p.shared_ranks > 0) && !p.sends_tokens(),
       "`redundant-experts` and `shared-expert-ranks` are of an `ep` beyond `tp`", "`dp` 16 `ep` 16, say"},
      {p.shared_ranks > 0 && p.shared_ranks >= p.expert,
       "`shared-expert-ranks`: no device of `ep` is left for routed experts", "fewer than `ep`"},
      {p.shared_ranks > 0 && (p.tensor > 1 || !shared_alike(m)),
       "`shared-expert-ranks` are of models whose shared expert is as wide as a routed one, without `tp`",
       "leave it out"},
      {p.expert > 1 && !m.has_experts(), "`ep` divides routed experts, and the model has none", "leave it out"},
      {p.afd && p.expert == 1, "`afd`: `ep` says how many devices the routed experts have to themselves",
       "`ep` 32, say"},
      {p.afd && (p.pipeline > 1 || p.sequence() > 1), "`afd`: stages (`pp`) and `sp` beside it are not modelled",
       "`tp`, `dp` and `ep`"},
      {(p.expert_dispatch || p.expert_combine) && !p.sends_tokens(),
       "`ep-dispatch` and `ep-combine` are of the exchange between experts, which takes an `ep` beyond `tp`",
       "leave them out"},
      {p.sequence() > 1 && has_latent(m), "`sp` divides KV heads, and latent attention caches one latent for all heads",
       "use `tp` or `pp`"},
      {p.tensor_rows > 0 && p.sequence_parallel, "`tp` ROWSxCOLUMNS already divides the residual stream",
       "leave out `megatron-sp`"},
      {p.sequence() > 1 && m.has_recurrent(), "`sp` divides the sequence, through which a state passes token by token",
       "use `tp` or `pp`"},
      {p.sequence() > 1 && (compresses(m) || m.encoder), "`sp` is for decoders whose keys are cached one by one",
       "use `tp` or `pp`"},
      {p.tensor_rows > 0 && (m.has_recurrent() || compresses(m) || m.streams.count > 1),
       "`tp` ROWSxCOLUMNS is for models of attention and MLPs", "`tp` with one degree"},
      {p.tensor_rows > 0 && (m.has_experts() || has_latent(m)),
       "`tp` ROWSxCOLUMNS is for dense models with plain attention", "`tp` with one degree"},
      {p.tensor_rows > 0 && p.tensor % p.tensor_rows != 0, "`tp` ROWSxCOLUMNS: the axis is no multiple of its rows",
       ""},
  }};
}

// The axis that a field sets, and the one to change when several do.
std::int64_t& degree_of(std::string_view field, Plan& plan) {
  if (field == "`ep`") return plan.expert;
  return field.find("ulysses") != std::string_view::npos ? plan.ulysses : plan.tensor;
}

// "4 or 8": the degrees from 1 to `most` nearest to `given`, which is not one of them, that `keeps` accepts. It
// accepts 1.
template <class Keeps>
std::string nearest(std::int64_t given, std::int64_t most, Keeps&& keeps) {
  std::int64_t below = std::min(given, most);
  while (below > 1 && !keeps(below)) --below;
  std::int64_t above = given + 1;
  while (above <= most && !keeps(above)) ++above;
  return above <= most ? fmt::format("{} or {}", below, above) : fmt::format("{}", below);
}

// The degrees nearest to the one that breaks `broken` which keep every rule about its field.
std::string nearest_legal(const model::Decoder& model, const Plan& plan, const Division& broken) {
  const std::string_view field = broken.field;
  Plan other = plan;
  other.tensor_rows = 0;
  std::int64_t& degree = degree_of(field, other);
  const std::int64_t given = degree;
  const std::int64_t most = std::min(std::max(broken.total, 2 * given), kMostDevices);
  const auto keeps = [&](std::int64_t x) {
    degree = x;
    return each_split(model, other, [&](const Division& s) { return s.field != field || divides(s); });
  };
  return nearest(given, most, keeps);
}

}  // namespace

std::int64_t Plan::stride(Axis axis) const {
  switch (axis) {
    case Axis::tensor:
    case Axis::tensor_columns: return 1;
    case Axis::tensor_rows: return tensor_columns();
    case Axis::ulysses: return tensor;
    case Axis::ring: return tensor * ulysses;
    case Axis::expert: return afd ? devices() / expert : expert_tensor();
    case Axis::data: return tensor;  // replicas of dense weights: the sequence and data axes together
    case Axis::pipeline: return stage();
  }
  return 1;
}

std::string to_text(const Plan& p) {
  std::vector<std::string> parts;
  const auto add = [&](const char* what, std::int64_t degree) {
    if (degree > 1) parts.push_back(fmt::format("{} {}", what, degree));
  };
  if (p.tensor_rows > 0) {
    parts.push_back(fmt::format("tp {}x{}", p.tensor_rows, p.tensor_columns()));
  } else {
    add("tp", p.tensor);
  }
  if (p.sequence_parallel) parts.emplace_back("megatron-sp");
  add("ulysses", p.ulysses);
  add(p.gathers_keys ? "all-gather" : "ring", p.ring);
  add("ep", p.expert);
  if (p.afd) parts.emplace_back("afd");
  if (p.expert_copies > 0) parts.push_back(fmt::format("{} redundant", p.expert_copies));
  if (p.shared_ranks > 0) parts.push_back(fmt::format("{} for shared experts", p.shared_ranks));
  if (p.expert_dispatch) parts.push_back(fmt::format("{} dispatch", name(*p.expert_dispatch)));
  if (p.expert_combine) parts.push_back(fmt::format("{} combine", name(*p.expert_combine)));
  add("dp", p.data);
  add("pp", p.pipeline);
  return parts.empty() ? "1 device" : join(parts, ", ");
}

std::optional<Plan> parse_plan(std::string_view text) {
  Plan plan{.tensor = 0, .expert = 0, .data = 0, .pipeline = 0};
  const std::pair<std::string_view, std::int64_t*> axes[] = {
      {"tp", &plan.tensor}, {"pp", &plan.pipeline}, {"dp", &plan.data}, {"ep", &plan.expert}};
  while (!(text = text.substr(std::min(text.find_first_not_of(" ,"), text.size()))).empty()) {
    const auto* axis = std::ranges::find(axes, text.substr(0, 2), &std::pair<std::string_view, std::int64_t*>::first);
    text = trim(text.substr(std::min<std::size_t>(2, text.size())));
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const std::optional<std::int64_t> degree = parse_int(text.substr(0, digits));
    if (axis == std::end(axes) || *axis->second != 0 || !degree || *degree < 1 || *degree > kMostDevices) return {};
    *axis->second = *degree;
    text.remove_prefix(digits);
  }
  if (plan.tensor + plan.pipeline + plan.data + plan.expert == 0) return {};
  for (const auto& [name, degree] : axes) *degree = std::max<std::int64_t>(1, *degree);
  return plan;
}

Layer shard(const Layer& layer, const Plan& plan) {
  Layer local = layer;
  model::Attention& a = local.attention;
  a.heads /= plan.tensor;
  a.kv_heads = a.latent ? a.heads : std::max<std::int64_t>(local.attends() ? 1 : 0, a.kv_heads / plan.tensor);
  if (a.low_rank) a.low_rank->output_groups = std::max<std::int64_t>(1, a.low_rank->output_groups / plan.tensor);
  if (local.recurrent) {
    local.recurrent->heads /= plan.tensor;
    local.recurrent->key_heads = std::max<std::int64_t>(1, local.recurrent->key_heads / plan.tensor);
  }
  model::FeedForward& f = local.feed_forward;
  f.intermediate /= plan.tensor;
  if (f.experts) {
    f.experts->held = plan.held_experts(f.experts->count);
    if (plan.shared_ranks > 0) {  // which every token goes to as to a routed expert
      ++f.experts->per_token;
      f.experts->shared_intermediate = 0;
    }
    f.experts->intermediate /= plan.expert_tensor();
    f.experts->shared_intermediate /= plan.tensor;
  }
  return local;
}

std::int64_t shard_vocab(const model::Decoder& model, const Plan& plan) {
  return plan.shard_embedding ? (model.vocab + plan.tensor - 1) / plan.tensor : model.vocab;
}

bool legal(const model::Decoder& model, const Plan& plan) {
  for (const Rule& rule : rules(model, plan)) {
    if (rule.broken) return false;
  }
  return enough_layers(model.num_layers(), plan.pipeline) && each_split(model, plan, divides);
}

std::vector<Problem> problems(const model::Decoder& model, const Plan& plan) {
  std::vector<Problem> found;
  for (const Rule& rule : rules(model, plan)) {
    if (rule.broken) found.push_back({rule.message, rule.hint});
  }
  if (!enough_layers(model.num_layers(), plan.pipeline)) {
    found.push_back(
        {fmt::format("`pp`: {} has {} layers, too few for {} stages", model.name, model.num_layers(), plan.pipeline),
         fmt::format("at most {}", model.num_layers())});
  }
  // What one degree does not divide is one problem.
  std::vector<std::pair<Division, std::vector<std::string>>> broken;
  each_split(model, plan, [&](const Division& s) {
    if (divides(s)) return true;
    auto same = std::find_if(broken.begin(), broken.end(), [&](const auto& other) {
      return other.first.field == s.field && other.first.degree == s.degree;
    });
    if (same == broken.end()) same = broken.insert(same, {s, {}});
    const std::string what = fmt::format("{} {}", s.total, s.what);
    if (!contains(same->second, what)) same->second.push_back(what);
    return true;
  });
  for (const auto& [s, what] : broken) {
    std::string hint = "nearest legal: " + nearest_legal(model, plan, s);
    if (s.what == kStageDevices) hint += "; experts lie on the devices of `tp`, `sp` and `dp`: raise one of these";
    found.push_back({fmt::format("{}: {} of {} do not divide by {}", s.field, join(what, ", "), model.name, s.degree),
                     std::move(hint)});
  }
  return found;
}

void refuse(const std::vector<Problem>& problems) {
  std::vector<Diagnostic> all;
  for (const Problem& p : problems) all.push_back({.where = {}, .message = p.message, .hint = p.hint});
  if (!all.empty()) throw Error(ErrorKind::bad_input, std::move(all));
}

std::string nearest_divisors(std::int64_t degree, std::int64_t total) {
  return nearest(degree, total, [&](std::int64_t x) { return total % x == 0; });
}

std::int64_t sequence_pieces(const Plan& plan) { return plan.ulysses * (plan.ring > 1 ? 2 * plan.ring : 1); }
std::int64_t sequence_multiple(const Plan& plan) {
  return std::lcm(sequence_pieces(plan), plan.sequence_parallel ? plan.sequence() * plan.tensor : 1);
}

}  // namespace llmperf::graph
