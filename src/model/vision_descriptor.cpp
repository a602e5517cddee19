#include "model/vision_descriptor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "descriptor/writer.h"
#include "model/reading.h"

namespace llmperf::model {
namespace {

using descriptor::IntRange;
using descriptor::Reader;
using descriptor::Writer;

// In the order of their enumeration.
constexpr std::array<std::string_view, 6> kRuleNames = {"nearest",      "square", "budget",
                                                        "longest_side", "tiles",  "shrink"};

// The keys, for the reader and for the writer: what has no usual value is required.
template <class Tower, class Visit>
void visit_tower(Tower& t, Visit&& visit) {
  visit.number("layers", t.layers, kLayerRange);
  visit.number("hidden_size", t.hidden, kTowerHidden);
  visit.number("intermediate", t.intermediate, kTowerWidth);
  visit.number("heads", t.heads, kTowerHeads);
  visit.number("kv_heads", t.kv_heads, kTowerHeads, t.heads);
  visit.number("head_dim", t.head_dim, kTowerHeads, t.hidden / std::max<std::int64_t>(t.heads, 1));
  visit.flag("gated", t.gated, false);
  visit.flag("layer_norm", t.layer_norm, true);
  visit.flag("norms_around", t.norms, false);
  visit.flag("rotary", t.rotary, true);
  visit.flag("qk_norm", t.qk_norm, false);
  visit.flag("attention_bias", t.attention_bias, true);
  visit.flag("mlp_bias", t.mlp_bias, true);
  visit.number("patch", t.patch, kPatchRange);
  visit.number("temporal_patch", t.temporal_patch, kMergeRange, 1);
  visit.number("merge", t.merge, kMergeRange, 1);
  visit.flag("patch_bias", t.patch_bias, false);
  visit.number("positions", t.positions, {0, kPositionRange.max}, 0);
  visit.flag("class_token", t.class_token, false);
  visit.flag("norm_before", t.norm_before, false);
  visit.flag("norm_after", t.norm_after, false);
  visit.number("window", t.window, {0, kImageSideRange.max}, 0);
  visit.number("full_layers", t.full_layers, {0, kLayerRange.max}, 0);
  visit.flag("standardized", t.standardized, false);
  visit.numbers("projector", t.projector);
  visit.flag("projector_norm", t.projector_norm, false);
  visit.flag("projector_rms", t.projector_rms, false);
  visit.flag("projector_bias", t.projector_bias, false);
  visit.number("deepstack", t.deepstack, {0, 64}, 0);
}
template <class Scaling, class Visit>
void visit_scaling(Scaling& s, Visit&& visit) {
  visit.rule("rule", s.rule);
  visit.number("side", s.side, {0, kImageSideRange.max}, 0);
  visit.number("least_pixels", s.least_pixels, {0, kPositionRange.max}, 0);
  visit.number("most_pixels", s.most_pixels, {0, kPositionRange.max}, 0);
  visit.number("most", s.most, {0, kImageSideRange.max}, 0);
  visit.number("wrapper", s.wrapper, {0, 64}, 0);
}

struct Reading {
  Reader& r;
  void number(std::string_view key, std::int64_t& value, IntRange range) { value = r.require_int(key, range); }
  void number(std::string_view key, std::int64_t& value, IntRange range, std::int64_t usual) {
    value = r.int_or(key, usual, range);
  }
  void flag(std::string_view key, bool& value, bool usual) { value = r.bool_or(key, usual); }
  void flag(std::string_view key, int& norms, bool usual) { norms = r.bool_or(key, usual) ? 4 : 2; }
  void numbers(std::string_view key, std::vector<std::int64_t>& values) { values = r.optional_ints(key, kHidden); }
  void rule(std::string_view key, ImageRule& value) { value = static_cast<ImageRule>(r.choice(key, kRuleNames)); }
  static constexpr IntRange kHidden = {1, 16'777'216};
};

struct Writing {
  Writer w;
  void number(std::string_view key, std::int64_t value, IntRange) { w.put(key, value); }
  void number(std::string_view key, std::int64_t value, IntRange, std::int64_t usual) { w.unless(usual, key, value); }
  void flag(std::string_view key, bool value, bool usual) { w.unless(usual, key, value); }
  void flag(std::string_view key, int norms, bool usual) { flag(key, norms == 4, usual); }
  void numbers(std::string_view key, const std::vector<std::int64_t>& values) {
    w.put(key, fmt::format("[{}]", fmt::join(values, ", ")));
  }
  void rule(std::string_view key, ImageRule value) { w.put(key, kRuleNames[static_cast<std::size_t>(value)]); }
};

}  // namespace

void check_vision(Reader& reader, const VisionTower& t, std::int64_t text_hidden) {
  const auto problem = [&](std::string_view key, std::string message, std::string hint = {}) {
    reader.problem(key, std::move(message), std::move(hint));
  };
  if (t.heads % std::max<std::int64_t>(t.kv_heads, 1) != 0) {
    problem("kv_heads", fmt::format("heads ({}) are not divisible by kv_heads ({})", t.heads, t.kv_heads));
  }
  if (t.full_layers > t.layers || (t.full_layers > 0 && t.window == 0)) {
    problem("full_layers",
            fmt::format("full_layers ({}) are those of {} layers that have no window", t.full_layers, t.layers));
  }
  const std::size_t widths = t.projector.size();
  if (widths < 2 || widths > 8 || t.projector.back() != text_hidden) {
    problem("projector", "projector must be the widths from a token's row to the language model's",
            fmt::format("[{}, {}]", t.hidden, text_hidden));
  } else if (t.projector.front() != t.hidden && t.projector.front() != t.merge * t.merge * t.hidden) {
    problem("projector",
            fmt::format("projector begins with {}, and a token's row is {} wide, or {} of its patches side "
                        "by side",
                        t.projector.front(), t.hidden, t.merge * t.merge * t.hidden));
  }
  const ImageScaling& s = t.image;
  const bool sides = s.rule == ImageRule::square || s.rule == ImageRule::longest_side || s.rule == ImageRule::tiles ||
                     s.rule == ImageRule::shrink;
  const bool counts = s.rule == ImageRule::budget || s.rule == ImageRule::tiles || s.rule == ImageRule::shrink;
  if (sides && s.side < t.pixels_of_token()) {
    problem("image",
            fmt::format("an image of this rule needs a side of at least a token's, {} pixels", t.pixels_of_token()));
  }
  if (counts && s.most == 0) problem("image", "an image of this rule needs `most`");
  if (s.rule == ImageRule::tiles && s.most > 1024) problem("image", "an image has at most 1024 tiles");
  if (s.rule == ImageRule::nearest &&
      (s.most_pixels < t.pixels_of_token() * t.pixels_of_token() || s.least_pixels > s.most_pixels)) {
    problem("image", "least_pixels and most_pixels must hold a token, the first at most the second");
  }
}

VisionTower read_vision(Reader& reader, std::int64_t text_hidden) {
  VisionTower tower;
  visit_tower(tower, Reading{reader});
  if (auto part = reader.optional_mapping("image")) {
    visit_scaling(tower.image, Reading{*part});
    part->finish();
  } else {
    reader.problem("image", "missing image: what an image is scaled to");
  }
  check_vision(reader, tower, text_hidden);
  reader.finish();
  return tower;
}

std::string written(const VisionTower& tower) {
  Writing all;
  visit_tower(tower, all);
  Writing scaling;
  visit_scaling(tower.image, scaling);
  all.w.put("image", scaling.w.in_braces());
  return all.w.in_braces();
}

}  // namespace llmperf::model
