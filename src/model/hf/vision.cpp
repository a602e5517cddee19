// Each family's vision_config spells the same few numbers in its own way, and what it does not say is fixed in the
// model's code. Defaults are those of the config's class in transformers where published files leave keys out; Llama
// 4's class defaults are no model's, so that its keys are required.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/reading.h"

namespace llmperf::model {
namespace {

using descriptor::Node;
using descriptor::Reader;

const Node* child(const Node& mapping, std::string_view key) {
  const Node* value = mapping.find(key);
  return value == nullptr || value->kind == Node::Kind::null ? nullptr : value;
}

// Names of the four widths.
struct TowerKeys {
  std::string_view layers = "num_hidden_layers";
  std::string_view hidden = "hidden_size";
  std::string_view intermediate = "intermediate_size";
  std::string_view heads = "num_attention_heads";
};
constexpr TowerKeys kQwenTower = {.layers = "depth", .heads = "num_heads"};

VisionTower tower_dimensions(Reader& r, const TowerKeys& keys) {
  VisionTower t;
  t.layers = r.require_int(keys.layers, kLayerRange);
  t.hidden = r.require_int(keys.hidden, kTowerHidden);
  t.intermediate = r.require_int(keys.intermediate, kTowerWidth);
  t.heads = r.require_int(keys.heads, kTowerHeads);
  t.kv_heads = t.heads;
  t.head_dim = t.hidden / std::max<std::int64_t>(t.heads, 1);
  if (t.hidden % std::max<std::int64_t>(t.heads, 1) != 0) {
    r.problem(keys.heads,
              fmt::format("{} ({}) is not divisible by {} ({})", keys.hidden, t.hidden, keys.heads, t.heads));
  }
  return t;
}

// A token is made of merge x merge patches' rows side by side.
std::int64_t merged_width(const VisionTower& t) { return t.merge * t.merge * t.hidden; }

void read_qwen_patches(Reader& r, VisionTower& t, std::int64_t patch, std::int64_t output) {
  t.patch = r.int_or("patch_size", patch, kPatchRange);
  t.temporal_patch = r.int_or("temporal_patch_size", 2, kMergeRange);
  t.merge = r.int_or("spatial_merge_size", 2, kMergeRange);
  t.projector = {merged_width(t), merged_width(t), output};
  t.projector_norm = t.projector_bias = true;
  // Of preprocessor_config.json, which all published models of a family share.
  t.image = {.rule = ImageRule::nearest, .least_pixels = 3136, .most_pixels = 12'845'056, .wrapper = 2};
}

// `width`: the key of the tower's own width.
VisionTower qwen2_layers(Reader& r, std::string_view width) {
  VisionTower t;
  t.layers = r.int_or("depth", 32, kLayerRange);
  t.hidden = r.int_or(width, 1280, kTowerHidden);
  t.heads = t.kv_heads = r.int_or("num_heads", 16, kTowerHeads);
  t.head_dim = t.hidden / t.heads;
  return t;
}

VisionTower read_qwen2_vl(Reader& r, Reader&, std::int64_t text_hidden) {
  VisionTower t = qwen2_layers(r, "embed_dim");
  t.intermediate = t.hidden * r.int_or("mlp_ratio", 4, kMergeRange);
  // `hidden_size` is the language model's width here.
  read_qwen_patches(r, t, 14, r.int_or("hidden_size", text_hidden, kTowerHidden));
  return t;
}

VisionTower read_qwen2_5_vl(Reader& r, Reader&, std::int64_t text_hidden) {
  VisionTower t = qwen2_layers(r, "hidden_size");
  t.intermediate = r.int_or("intermediate_size", 3420, kTowerWidth);
  t.gated = true;
  t.layer_norm = false;
  read_qwen_patches(r, t, 14, r.int_or("out_hidden_size", text_hidden, kTowerHidden));
  t.window = r.int_or("window_size", 112, kImageSideRange) / t.patch;
  const std::vector<std::int64_t> full = r.optional_ints("fullatt_block_indexes", {0, kLayerRange.max});
  t.full_layers = r.has("fullatt_block_indexes") ? static_cast<std::int64_t>(full.size()) : 4;
  if (t.full_layers > t.layers) r.problem("fullatt_block_indexes", "more layers than depth says");
  return t;
}

// Also Qwen3.5, without deepstack, and the thinker of Qwen3-Omni.
VisionTower read_qwen3_vl(Reader& r, Reader&, std::int64_t text_hidden) {
  VisionTower t = tower_dimensions(r, kQwenTower);
  read_qwen_patches(r, t, 16, r.int_or("out_hidden_size", text_hidden, kTowerHidden));
  t.patch_bias = true;
  t.positions = r.int_or("num_position_embeddings", 2304, kPositionRange);
  t.deepstack = static_cast<std::int64_t>(r.optional_ints("deepstack_visual_indexes", {0, kLayerRange.max}).size());
  t.image.least_pixels = 65'536;
  t.image.most_pixels = 16'777'216;
  return t;
}

VisionTower read_qwen3_omni(Reader& r, Reader& outer, std::int64_t text_hidden) {
  VisionTower t = read_qwen3_vl(r, outer, text_hidden);
  t.image.least_pixels = 3136;
  t.image.most_pixels = 12'845'056;
  return t;
}

VisionTower read_gemma3(Reader& r, Reader& outer, std::int64_t text_hidden) {
  VisionTower t = tower_dimensions(r, {});
  t.patch = r.require_int("patch_size", kPatchRange);
  const std::int64_t side = r.require_int("image_size", kImageSideRange);
  const std::int64_t across = side / std::max<std::int64_t>(t.patch, 1);
  const std::int64_t tokens = outer.int_or("mm_tokens_per_image", 256, kPositionRange);
  while (t.merge < across && (across / t.merge) * (across / t.merge) > tokens) ++t.merge;
  t.patch_bias = t.norm_after = true;
  t.rotary = false;
  t.positions = across * across;
  t.projector = {t.hidden, text_hidden};
  t.projector_norm = t.projector_rms = true;
  t.image = {.rule = ImageRule::square, .side = side, .wrapper = 4};  // marks, and an empty line on either side
  return t;
}

VisionTower read_gemma4(Reader& r, Reader&, std::int64_t text_hidden) {
  VisionTower t = tower_dimensions(r, {});
  t.kv_heads = r.int_or("num_key_value_heads", t.heads, kTowerHeads);
  t.head_dim = r.int_or("head_dim", t.head_dim, kTowerHeads);
  t.gated = t.qk_norm = true;
  t.layer_norm = t.attention_bias = t.mlp_bias = false;
  t.norms = 4;
  t.patch = r.int_or("patch_size", 16, kPatchRange);
  t.merge = r.int_or("pooling_kernel_size", 3, kMergeRange);
  t.positions = 2 * r.int_or("position_embedding_size", 10'240, kPositionRange);  // of rows and of columns
  t.standardized = r.bool_or("standardize", false);
  t.projector = {t.hidden, text_hidden};
  t.image = {.rule = ImageRule::budget, .most = r.int_or("default_output_length", 280, kPositionRange), .wrapper = 2};
  return t;
}

VisionTower read_pixtral(Reader& r, Reader& outer, std::int64_t text_hidden) {
  VisionTower t = tower_dimensions(r, {});
  t.head_dim = r.int_or("head_dim", t.head_dim, kTowerHeads);
  t.gated = t.norm_before = true;
  t.layer_norm = t.attention_bias = t.mlp_bias = false;
  t.patch = r.require_int("patch_size", kPatchRange);
  t.merge = outer.int_or("spatial_merge_size", 2, kMergeRange);
  t.projector = {merged_width(t), t.hidden, text_hidden, text_hidden};
  t.projector_norm = true;
  t.projector_bias = outer.bool_or("multimodal_projector_bias", false);
  t.image = {.rule = ImageRule::longest_side, .side = r.require_int("image_size", kImageSideRange)};
  return t;
}

VisionTower read_llama4(Reader& r, Reader&, std::int64_t text_hidden) {
  VisionTower t = tower_dimensions(r, {});
  t.patch = r.require_int("patch_size", kPatchRange);
  t.image = {.rule = ImageRule::tiles, .side = r.require_int("image_size", kImageSideRange), .most = 16, .wrapper = 3};
  const double ratio = r.optional_double("pixel_shuffle_ratio", 1.0 / 16, 1).value_or(0.5);
  t.merge = std::llround(1 / ratio);
  const std::int64_t across = t.image.side / std::max<std::int64_t>(t.patch, 1);
  t.positions = across * across + 1;
  t.class_token = t.norm_before = t.norm_after = true;
  t.projector = {merged_width(t), r.require_int("projector_input_dim", kTowerWidth),
                 r.require_int("projector_output_dim", kTowerWidth), text_hidden};
  return t;
}

VisionTower read_moonvit(Reader& r, Reader&, std::int64_t text_hidden) {
  // The model's own code and transformers' spell them apart.
  const bool own = r.has("vt_hidden_size");
  VisionTower t = own ? tower_dimensions(r, {"vt_num_hidden_layers", "vt_hidden_size", "vt_intermediate_size",
                                             "vt_num_attention_heads"})
                      : tower_dimensions(r, {});
  const std::string prefix = own ? "init_pos_emb_" : "pos_emb_";
  t.patch = r.int_or("patch_size", 14, kPatchRange);
  t.positions = r.int_or(prefix + "height", 64, kImageSideRange) * r.int_or(prefix + "width", 64, kImageSideRange);
  const std::vector<std::int64_t> merge = r.optional_ints("merge_kernel_size", kMergeRange);
  t.merge = merge.empty() ? 2 : merge.front();
  if (merge.size() == 2 && merge[0] != merge[1]) {
    r.problem("merge_kernel_size", "patches are merged in squares alone", "[2, 2]");
  }
  t.patch_bias = t.norm_after = t.projector_norm = t.projector_bias = true;
  t.projector = {merged_width(t), merged_width(t), text_hidden};
  t.image = {.rule = ImageRule::shrink, .side = 512 * t.patch, .most = 16'384, .wrapper = 4};
  return t;
}

struct KnownTower {
  std::string_view model_type;
  VisionTower (*read)(Reader& vision, Reader& outer, std::int64_t text_hidden);
};
constexpr KnownTower kTowers[] = {
    {"qwen2_vl", read_qwen2_vl},         {"qwen2_5_vl", read_qwen2_5_vl}, {"qwen3_vl", read_qwen3_vl},
    {"qwen3_vl_moe", read_qwen3_vl},     {"qwen3_5", read_qwen3_vl},      {"qwen3_5_moe", read_qwen3_vl},
    {"qwen3_omni_moe", read_qwen3_omni}, {"gemma3", read_gemma3},         {"gemma4", read_gemma4},
    {"mistral3", read_pixtral},          {"llama4", read_llama4},         {"kimi_k25", read_moonvit},
};

}  // namespace

std::optional<VisionTower> read_hf_vision(const Node& root, std::int64_t text_hidden, descriptor::Problems& problems) {
  const Node* type = child(root, "model_type");
  const Node* thinker = child(root, "thinker_config");
  const Node& holder = thinker != nullptr ? *thinker : root;
  const Node* vision = child(holder, "vision_config");
  if (type == nullptr || vision == nullptr) return std::nullopt;
  const auto* known = std::ranges::find(kTowers, type->scalar, &KnownTower::model_type);
  if (known == std::end(kTowers)) return std::nullopt;
  Reader outer(holder, problems, "the config");
  Reader reader(*vision, problems, "vision_config");
  VisionTower tower = known->read(reader, outer, text_hidden);
  // Keys that are not read here describe training, generation or what all towers of the family share.
  if (problems.empty()) check_vision(reader, tower, text_hidden);
  return tower;
}

}  // namespace llmperf::model
