// The tower of a model that reads images: a small transformer without a cache or a mask. It runs once per image, before
// the prompt is prefilled, and makes rows of the language model's width that stand in the prompt as tokens do. Its
// layers are alike; what differs between families is what is said here.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmperf::model {

struct ImageSize {
  std::int64_t width = 0;  // pixels
  std::int64_t height = 0;
  auto operator<=>(const ImageSize&) const = default;
};

// What an image is scaled to before it is cut into patches.
//
//   nearest       sides to the nearest multiples of a token's; the area within least_pixels and most_pixels (Qwen)
//   square        always side x side (Gemma 3)
//   budget        the largest of the image's shape that gives at most `most` tokens; computed as if all were there
//                 (Gemma 4)
//   longest_side  shrunk to `side`, padded to whole tokens; a separator ends each row of tokens (Pixtral)
//   tiles         cut into at most `most` squares of `side`, and one of the whole image if there are several; each is
//                 seen alone, followed by a separator (Llama 4)
//   shrink        shrunk to at most `most` patches and `side` pixels, padded to whole tokens (Kimi K2.5)
enum class ImageRule : unsigned char { nearest, square, budget, longest_side, tiles, shrink };

struct ImageScaling {
  ImageRule rule = ImageRule::nearest;
  std::int64_t side = 0;  // pixels
  std::int64_t least_pixels = 0;
  std::int64_t most_pixels = 0;
  std::int64_t most = 0;     // tokens, tiles or patches
  std::int64_t wrapper = 0;  // tokens of the prompt before and after an image: where it starts and ends
  bool operator==(const ImageScaling&) const = default;
};

struct VisionTower {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  bool gated = false;      // gate and up matrices
  bool layer_norm = true;  // with bias; else RMSNorm
  int norms = 2;           // of a layer: before each part, or (4) after it as well
  bool rotary = true;      // queries and keys are rotated by their place
  bool qk_norm = false;    // over each head
  bool attention_bias = true;
  bool mlp_bias = true;
  std::int64_t patch = 0;           // pixels of a side
  std::int64_t temporal_patch = 1;  // frames of a patch: an image is repeated
  std::int64_t merge = 1;           // patches of a side that become one token
  bool patch_bias = false;
  std::int64_t positions = 0;  // rows of the tables of learned positions
  bool class_token = false;    // a row more, which is dropped behind the layers
  bool norm_before = false;    // before and behind all layers
  bool norm_after = false;
  std::int64_t window = 0;       // patches of a side that see each other; 0: all do
  std::int64_t full_layers = 0;  // of a tower with windows, those without
  bool standardized = false;     // a shift and a scale per column before the projector (Gemma 4)
  // Widths from a token's row to the language model's, one matrix from each to the next: [4608, 4608, 4096].
  std::vector<std::int64_t> projector;
  bool projector_norm = false;  // over the patches' rows
  bool projector_rms = false;   // RMSNorm, whatever the layers have
  bool projector_bias = false;
  std::int64_t deepstack = 0;  // layers whose rows go through a projector of their own, too (norm over a token's row)
  ImageScaling image;
  bool operator==(const VisionTower&) const = default;

  std::int64_t output() const { return projector.back(); }  // width of the language model
  std::int64_t pixels_of_token() const { return patch * merge; }
};

// Patches that see each other, `sequences` times over.
struct PatchWindow {
  std::int64_t sequences = 0;
  std::int64_t patches = 0;
};

// An image as the tower sees it.
struct SeenImage {
  ImageSize scaled;        // of all tiles together
  std::int64_t tiles = 1;  // each seen alone, the whole image among them
  std::int64_t rows = 0;   // patches of a tile
  std::int64_t columns = 0;
  std::int64_t patches = 0;        // of a tile, padding included
  std::int64_t tokens = 0;         // rows that the language model gets
  std::int64_t prompt_tokens = 0;  // and what stands between and around them in the prompt
  auto operator<=>(const SeenImage&) const = default;
};
// Throws Error(bad_input) for a shape that the model's own preprocessing refuses.
SeenImage see(const VisionTower& tower, ImageSize image);
// The windows of a tile, by size: whole ones, and those at the edges.
std::vector<PatchWindow> windows(const VisionTower& tower, const SeenImage& image);

// "1920x1080": width x height in pixels. Throws Error(bad_input).
ImageSize parse_image_size(std::string_view text);
std::string to_text(ImageSize size);

struct VisionParameters {
  std::int64_t patches = 0;  // patch embedding, positions, class token, norms outside of the layers
  std::int64_t layers = 0;
  std::int64_t projector = 0;  // all of them
  std::int64_t total() const { return patches + layers + projector; }
};
VisionParameters count_parameters(const VisionTower& tower);

}  // namespace llmperf::model
