#include "model/weight_layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "base/text.h"
#include "model/quantization.h"

namespace llmperf::model {
namespace {

const StoredFormat& scheme_format(const WeightScheme& scheme, Role role) {
  switch (role) {
    case Role::expert_gate:
    case Role::expert_up:
    case Role::expert_gate_up: return scheme.expert;
    case Role::expert_down: return scheme.down ? *scheme.down : scheme.expert;
    case Role::gate:
    case Role::up:
    case Role::gate_up:
    case Role::shared_gate:
    case Role::shared_up:
    case Role::shared_gate_up: return scheme.feed_forward ? *scheme.feed_forward : scheme.linear;
    case Role::down:
    case Role::shared_down:
      return scheme.down ? *scheme.down : scheme.feed_forward ? *scheme.feed_forward : scheme.linear;
    // Small matrices that quantisers leave alone.
    case Role::router:
    case Role::shared_router:
    case Role::index_weights:
    case Role::recurrent_gates:
    case Role::stream_mix:
    case Role::join_inputs: return scheme.other;
    case Role::token_embedding:
    case Role::position_embedding:
    case Role::lm_head: return scheme.embedding;
    // Absorbed into queries and results, it multiplies in 16 bits: quantisers that take activations to 8 leave it alone
    // (msmodelslim's DeepSeek).
    case Role::kv_b: {
      const std::optional<FormatKernel> kernel = scheme.linear.kernel;
      return kernel == FormatKernel::w8a8 || kernel == FormatKernel::w4a8 ? scheme.other : scheme.linear;
    }
    default: return scheme.linear;
  }
}

// A fused tensor gives its format to each of the matrices it holds.
void assign(LayerGroup& group, Role role, const StoredFormat& format) {
  const auto all = [&](std::initializer_list<Role> roles) {
    for (const Role each : roles) group[each] = format;
  };
  switch (role) {
    case Role::qkv: return all({Role::q, Role::k, Role::v});
    case Role::gate_up: return all({Role::gate, Role::up});
    case Role::expert_gate_up: return all({Role::expert_gate, Role::expert_up});
    case Role::shared_gate_up: return all({Role::shared_gate, Role::shared_up});
    default: group[role] = format;
  }
}

// Two tensors that are one matrix to the cost model (the halves of kv_b, the inputs of a recurrence): the format that
// gives their bytes together.
StoredFormat joined(const StoredFormat& a, double a_elements, const StoredFormat& b, double b_elements) {
  if (a_elements == 0 || a == b) return b;
  StoredFormat both = b;
  both.name = "mixed";
  both.bits = (a.bits * a_elements + b.bits * b_elements) / (a_elements + b_elements);
  both.dequant_flops = std::max(a.dequant_flops, b.dequant_flops);
  return both;
}

// Puts layer `index` into the group of those that are stored like it.
void add_layer(WeightLayout& layout, LayerGroup layer, std::int64_t index) {
  const auto same = std::ranges::find_if(layout.groups, [&](const LayerGroup& group) {
    return group.kind == layer.kind && group.on_host == layer.on_host && group.kept == layer.kept &&
           group.formats == layer.formats;
  });
  if (same != layout.groups.end()) {
    same->layers.push_back(index);
  } else {
    layer.layers = {index};
    layout.groups.push_back(std::move(layer));
  }
}

void sort_groups(WeightLayout& layout) {
  std::ranges::stable_sort(layout.groups, [](const LayerGroup& a, const LayerGroup& b) {
    return a.on_host != b.on_host ? a.on_host : a.kind < b.kind;
  });
}

// Groups the layers anew, each as `place` changes it.
template <class Place>
void regroup(WeightLayout& layout, const Place& place) {
  const std::vector<LayerGroup> groups = std::exchange(layout.groups, {});
  for (const LayerGroup& group : groups) {
    for (const std::int64_t index : group.layers) {
      LayerGroup layer = group;
      place(layer, index);
      add_layer(layout, std::move(layer), index);
    }
  }
  sort_groups(layout);
}

}  // namespace

bool WeightLayout::uses_host() const { return embedding_on_host || computes_on_host(); }
bool WeightLayout::computes_on_host() const {
  return head_on_host ||
         std::ranges::any_of(groups, [](const LayerGroup& group) { return group.on_host || group.keeps_experts(); });
}

const StoredFormat& WeightLayout::outer(Role role) const {
  return role == Role::lm_head ? lm_head : role == Role::position_embedding ? position_embedding : token_embedding;
}

WeightLayout uniform_layout(const Decoder& model, const WeightScheme& scheme) {
  WeightLayout layout{.name = scheme.name,
                      .token_embedding = scheme.embedding,
                      .position_embedding = scheme.embedding,
                      .lm_head = scheme.lm_head.value_or(scheme.embedding),
                      .vector_bits = scheme.vector_bits,
                      .embedding_on_host = scheme.embedding_on_host};
  layout.groups.resize(model.kinds.size());
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind) {
    LayerGroup& group = layout.groups[kind];
    group.kind = kind;
    for (std::size_t role = 0; role < kRoles; ++role) {
      group.formats[role] = scheme_format(scheme, static_cast<Role>(role));
    }
  }
  for (std::size_t i = 0; i < model.layer_kinds.size(); ++i) {
    layout.groups[model.layer_kinds[i]].layers.push_back(static_cast<std::int64_t>(i));
  }
  return layout;
}

namespace {

// "nvfp4+fp8+bf16": what the matrices of the layers and lm_head are stored as, the most weights first, `wide` last.
std::string mixture_name(const Decoder& model, Dtype wide) {
  std::map<std::string, std::int64_t> weights;
  const auto add = [&](const RoleSchemes& schemes, const Tensor& tensor, std::int64_t layers) {
    if (const auto scheme = schemes.find(tensor.role); scheme != schemes.end()) {
      weights[scheme->second] += layers * tensor.elements();
    }
  };
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind) {
    const Layer& layer = model.kinds[kind];
    for (const Tensor& tensor : layer_tensors(model, layer)) {
      add(model.mixture[static_cast<std::size_t>(layer.stored_as)], tensor, model.count_of_kind(kind));
    }
  }
  for (const Tensor& tensor : outer_tensors(model)) add(model.mixture.front(), tensor, 1);
  std::vector<std::pair<std::string, std::int64_t>> sorted(weights.begin(), weights.end());
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [scheme, count] : sorted) text += scheme + "+";
  return text + std::string(name(wide));
}

}  // namespace

WeightLayout checkpoint_layout(const Decoder& model, Dtype wide) {
  if (model.mixture.empty()) {
    return uniform_layout(
        model, parse_weight_scheme(model.default_weights.empty() ? name(wide) : model.default_weights, wide));
  }
  // What no role is named for is in 16 bits, but MLX's schemes are of all there is.
  const bool mlx = model.default_weights.starts_with("mlx-");
  WeightLayout layout = uniform_layout(model, parse_weight_scheme(mlx ? model.default_weights : name(wide), wide));
  layout.name = mixture_name(model, wide);
  for (LayerGroup& group : layout.groups) {
    for (const auto& [role, scheme] : model.mixture[static_cast<std::size_t>(model.kinds[group.kind].stored_as)]) {
      group[role] = parse_weight_scheme(scheme, wide).expert;  // what every scheme quantises
    }
  }
  if (const auto head = model.mixture.front().find(Role::lm_head); head != model.mixture.front().end()) {
    layout.lm_head = parse_weight_scheme(head->second, wide).expert;
  }
  return layout;
}

WeightLayout gguf_layout(const Decoder& model, std::span<const GgufTensor> tensors, std::string name) {
  WeightLayout layout{.name = std::move(name), .vector_bits = 32, .gguf = true, .embedding_on_host = true};
  std::vector<LayerGroup> layers(model.layer_kinds.size());
  std::vector<std::array<double, kRoles>> elements(layers.size());  // of each role's matrices so far
  bool has_head = false;
  Bytes total;
  for (const GgufTensor& tensor : tensors) {
    const StoredFormat format = stored_format(tensor.type);
    const auto layer = static_cast<std::size_t>(tensor.layer);
    // Those that predict further tokens are in the file, and not loaded.
    if (tensor.layer >= model.num_layers()) continue;
    total += tensor.bytes();
    if (tensor.is_vector()) continue;
    if (tensor.role == Role::token_embedding) {
      layout.token_embedding = format;
    } else if (tensor.role == Role::position_embedding) {
      layout.position_embedding = format;
    } else if (tensor.role == Role::lm_head) {
      layout.lm_head = format;
      has_head = true;
    } else if (layer < layers.size()) {
      double& before = elements[layer][static_cast<std::size_t>(tensor.role)];
      const auto own = static_cast<double>(tensor.elements());
      assign(layers[layer], tensor.role, joined(layers[layer][tensor.role], before, format, own));
      before += own;
    }
  }
  if (!has_head) layout.lm_head = layout.token_embedding;
  layout.lm_head_copy = model.tied_embeddings && has_head;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].kind = model.layer_kinds[i];
    add_layer(layout, std::move(layers[i]), static_cast<std::int64_t>(i));
  }
  sort_groups(layout);
  // What the decoder's own tensors, vectors in F32, do not account for.
  layout.extra = Bytes{std::round((total - weight_bytes(model, layout)).value)};
  return layout;
}

const GgufFileType* gguf_weights(std::string_view weights) {
  const std::vector<std::string> schemes = weight_scheme_names();
  const bool is_scheme = std::ranges::find(schemes, to_lower(weights)) != schemes.end();
  return is_scheme ? nullptr : find_gguf_file_type(weights);
}

WeightLayout make_layout(const Decoder& model, std::string_view weights, Dtype wide, GgufEra era) {
  const GgufFileType* type = gguf_weights(weights);
  if (type == nullptr) return uniform_layout(model, parse_weight_scheme(weights, wide));
  return gguf_layout(model, quantised_tensors(model, *type, era), std::string(type->name));
}

void keep_on_host(const Decoder& model, std::int64_t offloaded, WeightLayout& layout) {
  layout.head_on_host = offloaded < 1;
  const std::int64_t first = std::max<std::int64_t>(0, model.num_layers() + 1 - offloaded);
  if (first > 0) regroup(layout, [&](LayerGroup& layer, std::int64_t index) { layer.on_host = index < first; });
}

void keep_experts_on_host(const std::function<bool(std::int64_t layer, Role role)>& is_kept, WeightLayout& layout) {
  regroup(layout, [&](LayerGroup& layer, std::int64_t index) {
    for (const Role role : {Role::expert_gate, Role::expert_up, Role::expert_down}) {
      if (!layer.on_host && is_kept(index, role)) layer.kept[static_cast<std::size_t>(role)] = true;
    }
  });
}

Bytes tensor_bytes(const WeightLayout& layout, const StoredFormat& format, const Tensor& tensor) {
  if (tensor.role == Role::vector) return Bytes{static_cast<double>(tensor.elements()) * layout.vector_bits / 8};
  return static_cast<double>(tensor.count) * format.bytes(tensor.n, tensor.k);
}

Bytes layer_bytes(const Decoder& model, const WeightLayout& layout, const LayerGroup& group) {
  return layer_bytes(model, layout, group, model.kinds[group.kind]);
}

Bytes layer_bytes(const Decoder& model, const WeightLayout& layout, const LayerGroup& group, const Layer& layer) {
  Bytes sum;
  for (const Tensor& tensor : layer_tensors(model, layer)) {
    sum += tensor_bytes(layout, group[tensor.role], tensor);
  }
  return sum;
}

bool holds_tied_head(const Decoder& model, const WeightLayout& layout) {
  return model.tied_embeddings && (layout.lm_head_copy || layout.embedding_on_host != layout.head_on_host);
}

PlacedBytes placed_weight_bytes(const Decoder& model, const WeightLayout& layout) {
  PlacedBytes placed;
  placed.device = layout.extra;
  Bytes embedding;
  Bytes head;
  for (const Tensor& tensor : outer_tensors(model)) {
    (tensor.part == Part::embedding ? embedding : head) += tensor_bytes(layout, layout.outer(tensor.role), tensor);
  }
  if (holds_tied_head(model, layout)) head += layout.lm_head.bytes(model.vocab, model.hidden);
  placed.at(layout.embedding_on_host) += embedding;
  placed.at(layout.head_on_host) += head;
  for (const LayerGroup& group : layout.groups) {
    for (const Tensor& tensor : layer_tensors(model, model.kinds[group.kind])) {
      placed.at(group.holds_on_host(tensor.role)) +=
          static_cast<double>(group.count()) * tensor_bytes(layout, group[tensor.role], tensor);
    }
  }
  return placed;
}

Bytes weight_bytes(const Decoder& model, const WeightLayout& layout) {
  const PlacedBytes placed = placed_weight_bytes(model, layout);
  Bytes sum = placed.device + placed.host;
  if (holds_tied_head(model, layout) && !layout.lm_head_copy) {
    sum = sum - layout.lm_head.bytes(model.vocab, model.hidden);  // held twice, stored once
  }
  return sum;
}

Bytes weight_bytes(const Decoder& model, const WeightScheme& scheme) {
  return weight_bytes(model, uniform_layout(model, scheme));
}

std::int64_t stored_weights(const Decoder& model, const WeightLayout& layout) {
  return count_parameters(model).total + (layout.lm_head_copy ? model.vocab * model.hidden : 0);
}

}  // namespace llmperf::model
