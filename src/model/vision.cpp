// Sources: transformers' image processors (Qwen2-VL's smart_resize, Gemma 3 and 4, Pixtral, Llama 4) and vLLM's for
// Kimi K2.5; tests/model/vision_test.cpp has worked examples.
#include "model/vision.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/integer.h"
#include "base/number.h"
#include "base/text.h"

namespace llmperf::model {
namespace {

constexpr std::int64_t kMostPixels = 100'000;  // of a side
constexpr double kMostAspect = 200;            // Qwen's own bound

std::int64_t whole(double x) { return static_cast<std::int64_t>(x); }

// To multiples of `unit`, halves to even as Python rounds.
ImageSize nearest(const ImageScaling& rule, std::int64_t unit, ImageSize image) {
  const double u = d(unit);
  const double w = d(image.width);
  const double h = d(image.height);
  if (std::max(w, h) > kMostAspect * std::min(w, h)) {
    throw Error::bad_input(
        fmt::format("an image of {}: one side is more than {} times the other", to_text(image), kMostAspect),
        "such images are refused by the model's own preprocessing");
  }
  const auto sides = [&](auto&& of) { return ImageSize{whole(of(w)) * unit, whole(of(h)) * unit}; };
  ImageSize size = sides([&](double side) { return std::nearbyint(side / u); });
  const double area = d(size.width) * d(size.height);
  if (area > d(rule.most_pixels)) {
    const double shrink = std::sqrt(w * h / d(rule.most_pixels));
    size = sides([&](double side) { return std::max(1.0, std::floor(side / shrink / u)); });
  } else if (area < d(rule.least_pixels)) {
    const double grow = std::sqrt(d(rule.least_pixels) / (w * h));
    size = sides([&](double side) { return std::ceil(side * grow / u); });
  }
  return {std::max(size.width, unit), std::max(size.height, unit)};
}

ImageSize up_to(std::int64_t unit, ImageSize size) {
  return {divide_up(size.width, unit) * unit, divide_up(size.height, unit) * unit};
}

// Of the canvases of at most `most` tiles, the one that enlarges the image least, else shrinks it least; of equals the
// smallest.
ImageSize tiled(const ImageScaling& rule, ImageSize image) {
  ImageSize best;
  double best_scale = 0;
  for (std::int64_t columns = 1; columns <= rule.most; ++columns) {
    for (std::int64_t rows = 1; rows * columns <= rule.most; ++rows) {
      const ImageSize canvas{columns * rule.side, rows * rule.side};
      const double scale = std::min(d(canvas.width) / d(image.width), d(canvas.height) / d(image.height));
      const bool equal = scale == best_scale && canvas.width * canvas.height < best.width * best.height;
      const bool better = best_scale >= 1 ? scale >= 1 && scale < best_scale : scale > best_scale;
      if (!better && !equal) continue;
      best = canvas;
      best_scale = scale;
    }
  }
  return best;
}

ImageSize scaled(const VisionTower& tower, ImageSize image) {
  const ImageScaling& rule = tower.image;
  const std::int64_t unit = tower.pixels_of_token();
  const double w = d(image.width);
  const double h = d(image.height);
  switch (rule.rule) {
    case ImageRule::nearest: return nearest(rule, unit, image);
    case ImageRule::square: return {rule.side, rule.side};
    case ImageRule::budget: {
      const double scale = std::sqrt(d(rule.most) * d(unit) * d(unit) / (w * h));
      const auto side = [&](double pixels) {
        return std::clamp<std::int64_t>(whole(std::floor(pixels * scale / d(unit))), 1, rule.most) * unit;
      };
      return {side(w), side(h)};
    }
    case ImageRule::longest_side: {
      const double shrink = std::max(1.0, std::max(w, h) / d(rule.side));
      return up_to(unit, {std::max<std::int64_t>(whole(w / shrink), 1), std::max<std::int64_t>(whole(h / shrink), 1)});
    }
    case ImageRule::tiles: return tiled(rule, image);
    case ImageRule::shrink: {
      const double patches = d(image.width / tower.patch) * d(image.height / tower.patch);
      const double scale =
          std::min({1.0, patches > 0 ? std::sqrt(d(rule.most) / patches) : 1.0, d(rule.side) / w, d(rule.side) / h});
      return up_to(unit, {std::max<std::int64_t>(whole(w * scale), 1), std::max<std::int64_t>(whole(h * scale), 1)});
    }
  }
  return image;
}

}  // namespace

SeenImage see(const VisionTower& tower, ImageSize image) {
  SeenImage seen;
  seen.scaled = scaled(tower, image);
  const bool tiles = tower.image.rule == ImageRule::tiles;
  const ImageSize tile = tiles ? ImageSize{tower.image.side, tower.image.side} : seen.scaled;
  seen.columns = tile.width / tower.patch;
  seen.rows = tile.height / tower.patch;
  seen.patches = seen.columns * seen.rows;
  const std::int64_t token_rows = seen.rows / tower.merge;
  const std::int64_t token_columns = seen.columns / tower.merge;
  seen.tokens = token_rows * token_columns;
  std::int64_t between = 0;
  switch (tower.image.rule) {
    case ImageRule::budget: seen.patches = tower.image.most * tower.merge * tower.merge; break;
    case ImageRule::longest_side: between = token_rows; break;
    case ImageRule::tiles: {
      const std::int64_t parts = seen.scaled.width / tile.width * (seen.scaled.height / tile.height);
      if (parts > 1) {
        seen.tiles = parts + 1;
        between = parts;
      }
      seen.tokens *= seen.tiles;
      break;
    }
    case ImageRule::nearest:
    case ImageRule::square:
    case ImageRule::shrink: break;
  }
  seen.prompt_tokens = seen.tokens + between + tower.image.wrapper;
  return seen;
}

std::vector<PatchWindow> windows(const VisionTower& tower, const SeenImage& image) {
  // Whole windows along a side, and what is left.
  struct Run {
    std::int64_t count;
    std::int64_t length;
  };
  const auto runs = [&](std::int64_t side) {
    return std::vector<Run>{{side / tower.window, tower.window},
                            {side % tower.window > 0 ? 1 : 0, side % tower.window}};
  };
  std::vector<PatchWindow> all;
  for (const Run& down : runs(image.rows)) {
    for (const Run& across : runs(image.columns)) {
      const PatchWindow window{down.count * across.count, down.length * across.length};
      if (window.sequences > 0) all.push_back(window);
    }
  }
  return all;
}

ImageSize parse_image_size(std::string_view text) {
  const std::vector<std::string_view> sides = split(text, 'x');
  const auto side = [&](std::size_t i) { return sides.size() == 2 ? parse_int(sides[i]).value_or(0) : 0; };
  const ImageSize size{side(0), side(1)};
  const auto fits = [](std::int64_t pixels) { return pixels >= 1 && pixels <= kMostPixels; };
  if (!fits(size.width) || !fits(size.height)) {
    throw Error::bad_input(
        fmt::format("`image-size`: {} is not WIDTHxHEIGHT in pixels, each 1 to {}", quote(text), kMostPixels),
        "`image-size` 1920x1080");
  }
  return size;
}

std::string to_text(ImageSize size) { return fmt::format("{}x{}", size.width, size.height); }

// ---- Parameters

namespace {

std::int64_t norm(const VisionTower& t, std::int64_t width) { return (t.layer_norm ? 2 : 1) * width; }
std::int64_t matrix(std::int64_t n, std::int64_t k, bool bias) { return n * k + (bias ? n : 0); }

}  // namespace

VisionParameters count_parameters(const VisionTower& t) {
  constexpr std::int64_t kColours = 3;
  const std::int64_t h = t.hidden;
  VisionParameters p;
  p.patches = matrix(h, kColours * t.temporal_patch * t.patch * t.patch, t.patch_bias) + t.positions * h +
              (t.class_token ? h : 0) + (t.norm_before ? norm(t, h) : 0) + (t.norm_after ? norm(t, h) : 0);
  const std::int64_t q = t.heads * t.head_dim;
  const std::int64_t kv = t.kv_heads * t.head_dim;
  const std::int64_t layer = matrix(q + 2 * kv, h, t.attention_bias) + matrix(h, q, t.attention_bias) +
                             (t.gated ? 2 : 1) * matrix(t.intermediate, h, t.mlp_bias) +
                             matrix(h, t.intermediate, t.mlp_bias) + t.norms * norm(t, h) +
                             (t.qk_norm ? 2 * t.head_dim : 0);
  p.layers = t.layers * layer;
  std::int64_t chain = 0;
  for (std::size_t i = 0; i + 1 < t.projector.size(); ++i) {
    chain += matrix(t.projector[i + 1], t.projector[i], t.projector_bias);
  }
  p.projector = chain + (t.projector_norm ? (t.projector_rms ? h : norm(t, h)) : 0) + (t.standardized ? 2 * h : 0) +
                t.deepstack * (chain + norm(t, t.projector.front()));
  return p;
}

}  // namespace llmperf::model
