#include <fmt/format.h>

#include <utility>

#include "model/gguf_model.h"
#include "model/reading.h"

namespace llmperf::model {
namespace {

FeedForward make_feed_forward(const GgufFamily& family, bool has_bias) {
  FeedForward ff;
  ff.gated = family.gated;
  ff.activation = family.activation;
  ff.bias = family.feed_forward_bias || has_bias;
  ff.fused_gate_up = family.fused_gate_up;
  return ff;
}

void find_expert_layers(GgufModel& model) {
  GgufKeys& keys = model.keys;
  for (std::int64_t i = 0; i < model.layers; ++i) {
    model.routed.push_back(model.tensors.find(i, "ffn_gate_inp.weight") != nullptr);
  }
  const bool any = model.first_layer(true).has_value();
  if (!any && keys.optional_nonzero("expert_count", kExpertRange)) {
    keys.problem("expert_count", "the file has experts by this key, but no layer with a router (ffn_gate_inp.weight)");
  }
  const auto leading = keys.optional_int("leading_dense_block_count", {0, kLayerRange.max});
  if (!any || !leading) return;
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const bool routed = model.routed[static_cast<std::size_t>(i)];
    if (routed == (i >= *leading)) continue;
    keys.problem("leading_dense_block_count",
                 fmt::format("layer {} {} a router (ffn_gate_inp.weight), leading_dense_block_count is {}", i,
                             routed ? "has" : "lacks", *leading));
    return;
  }
}

void read_widths(GgufModel& model) {
  GgufKeys& keys = model.keys;
  const std::int64_t divisor = model.family.feed_forward_divisor;
  model.widths = keys.per_layer("feed_forward_length", model.layers, {0, divisor * kWidthRange.max});
  for (std::int64_t& width : model.widths) {
    if (width % divisor != 0) {
      keys.problem("feed_forward_length",
                   fmt::format("feed_forward_length ({}) is not divisible by {}: in this architecture it counts the "
                               "gate and up matrices together",
                               width, divisor));
      break;
    }
    width /= divisor;
  }
  for (std::size_t i = 0; i < model.routed.size(); ++i) {
    if (model.routed[i] || (!model.widths.empty() && model.widths[i] > 0)) continue;
    if (model.widths.empty()) {
      keys.missing("feed_forward_length");
    } else {
      keys.problem("feed_forward_length", fmt::format("layer {} has no feed-forward width", i));
    }
    return;
  }
}

std::int64_t read_expert_width(GgufModel& model, std::int64_t first, std::int64_t per_token) {
  if (const auto own = model.keys.optional_nonzero("expert_feed_forward_length", kWidthRange)) return *own;
  const std::int64_t dense = model.widths.empty() ? 0 : model.widths[static_cast<std::size_t>(first)];
  std::int64_t width = 0;
  if (model.family.expert_width == GgufExpertWidth::dense) width = dense;
  if (model.family.expert_width == GgufExpertWidth::dense_per_used) width = dense / per_token;
  if (width == 0) model.keys.missing("expert_feed_forward_length");
  return width;
}

// Width of all shared experts together.
std::int64_t read_shared_width(GgufModel& model, std::int64_t first, std::int64_t expert_width) {
  GgufKeys& keys = model.keys;
  if (const auto own = keys.optional_nonzero("expert_shared_feed_forward_length", kWidthRange)) return *own;
  if (model.family.gated_shared_expert) return model.widths.empty() ? 0 : model.widths[static_cast<std::size_t>(first)];
  const std::int64_t count = keys.optional_nonzero("expert_shared_count", kExpertRange).value_or(0);
  if (count * expert_width > kWidthRange.max) {
    keys.contradiction("expert_shared_count",
                       fmt::format("{} shared experts of width {} are wider than the {} supported", count, expert_width,
                                   kWidthRange.max));
  }
  return count * expert_width;
}

void read_experts(GgufModel& model) {
  const std::optional<std::int64_t> first = model.first_layer(true);
  if (!first) return;
  GgufKeys& keys = model.keys;
  const auto has = [&](std::string_view stem) { return model.tensors.find(*first, stem) != nullptr; };
  Experts experts;
  experts.count = keys.require_int("expert_count", kExpertRange);
  experts.per_token = keys.require_int("expert_used_count", kExpertRange);
  if (experts.per_token > experts.count) {
    keys.contradiction("expert_used_count", fmt::format("expert_used_count ({}) is more than expert_count ({})",
                                                        experts.per_token, experts.count));
  }
  experts.groups = keys.int_or("expert_group_count", 1, kGroupRange);
  experts.groups_per_token = keys.int_or("expert_group_used_count", experts.groups, kGroupRange);
  if (std::string wrong = groups_problem(experts); !wrong.empty()) {
    keys.contradiction("expert_group_count", std::move(wrong));
  }
  experts.intermediate = read_expert_width(model, *first, experts.per_token);
  experts.shared_intermediate = read_shared_width(model, *first, experts.intermediate);
  experts.shared_gate =
      experts.shared_intermediate > 0 && (model.family.gated_shared_expert || has("ffn_gate_inp_shexp.weight"));
  experts.router_bias = model.family.router_bias || has("ffn_gate_inp.bias");
  experts.score_correction = has("exp_probs_b.bias");
  model.expert = make_feed_forward(model.family, has("ffn_down_exps.bias"));
  model.expert.experts = experts;
}

}  // namespace

void read_gguf_feed_forward(GgufModel& model) {
  find_expert_layers(model);
  read_widths(model);
  read_experts(model);
  const std::optional<std::int64_t> first = model.first_layer(false);
  model.dense = make_feed_forward(model.family, first && model.tensors.find(*first, "ffn_down.bias") != nullptr);
}

}  // namespace llmperf::model
