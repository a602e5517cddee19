// From what a user asks for (a resolution, an aspect ratio, a length) to the tokens that a video transformer works on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/video_dit.h"

namespace llmperf::model {

struct VideoSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
  bool operator==(const VideoSize&) const = default;
};

// Names of resolutions ("480p") and aspect ratios, height to width ("9:16"), of the built-in table, in its order.
const std::vector<std::string>& video_resolutions();
const std::vector<std::string>& video_aspects();
// A cell of the table, or an explicit "HEIGHTxWIDTH", which takes no aspect (empty). An empty aspect of a named
// resolution is 9:16. Throws Error(bad_input) naming the flag, with the nearest names.
VideoSize parse_video_size(std::string_view resolution, std::string_view aspect);

// Frames generated for so many seconds: their number times VideoDit::frames_per_second, rounded down; 51 for 2 s of
// STDiT3. At least 1.
std::int64_t frames_of_seconds(const VideoDit& model, double seconds);
// Latent frames: of whole chunks and of the rest, each rounded up. 51 frames in chunks of 17: 15.
std::int64_t latent_frames(const VideoDit& model, std::int64_t frames);

struct VideoShape {
  std::int64_t frames = 0;
  VideoSize size;
  std::int64_t latent_frames = 0;  // before the decoder; patches are counted after padding to whole ones
  std::int64_t latent_height = 0;
  std::int64_t latent_width = 0;
  std::int64_t patch_frames = 0;  // T
  std::int64_t patch_rows = 0;
  std::int64_t patch_columns = 0;

  std::int64_t spatial_tokens() const { return patch_rows * patch_columns; }  // S, of one latent frame
  std::int64_t temporal_tokens() const { return patch_frames; }
  std::int64_t tokens() const { return patch_frames * patch_rows * patch_columns; }  // N
  bool is_image() const { return frames == 1; }
  bool operator==(const VideoShape&) const = default;
};
// Throws Error(bad_input) for what leaves no latent (no frame, fewer than 8 pixels a side) or is beyond 10^9 tokens.
VideoShape video_shape(const VideoDit& model, VideoSize size, std::int64_t frames);

}  // namespace llmperf::model
