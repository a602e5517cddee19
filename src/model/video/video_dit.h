// A video diffusion transformer (STDiT of Open-Sora) with the models around it, as its cost sees them: plain
// dimensions, no weights. Attention alternates between the patches of one latent frame (spatial) and one patch through
// all latent frames (temporal).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace llmperf::descriptor {
struct Document;
}

namespace llmperf::model {

// What a unit of the depth is made of (Open-Sora v1.0, v1.1, v1.2):
//  * stdit:  one block of spatial attention, temporal attention (of the same modulated stream, without a norm of its
//            own), cross-attention and MLP; learned positions in time;
//  * stdit2: the same, temporal attention with its own norm and three modulation vectors; rotary positions in time;
//  * stdit3: two blocks, a spatial and a temporal one, each of attention, cross-attention and MLP.
enum class VideoArchitecture : unsigned char { stdit, stdit2, stdit3 };
std::string_view name(VideoArchitecture architecture);

// A T5 encoder (arXiv 1910.10683, v1.1): RMS norms, relative positions shared by all layers, gated GELU, no biases.
struct TextEncoder {
  std::string name;
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t intermediate = 0;
  std::int64_t layers = 0;
  std::int64_t position_buckets = 0;
  Dtype stored = Dtype::fp32;
  bool operator==(const TextEncoder&) const = default;
};

// The 2-D autoencoder that turns latent frames into pictures (AutoencoderKL of Stable Diffusion): residual blocks at
// halving resolutions, an attention block in the middle.
struct ImageAutoencoder {
  std::string name;
  std::int64_t latent_channels = 0;
  std::vector<std::int64_t> channels;  // by level, the full resolution first
  std::int64_t blocks = 0;             // residual blocks of an encoder level; a decoder level has one more
  std::int64_t micro_batch = 1;        // frames decoded together
  std::int64_t scale() const { return std::int64_t{1} << (channels.size() - 1); }  // pixels per latent, each way
  bool operator==(const ImageAutoencoder&) const = default;
};

// The 3-D autoencoder between it and the transformer, which shortens time (Open-Sora v1.2): causal 3 x 3 x 3
// convolutions at the resolution of the latent. `frames` empty: none.
struct TemporalAutoencoder {
  std::string name;
  std::vector<std::int64_t> channels;  // by level, the full frame rate first
  std::vector<std::int64_t> halves;    // 1 for each level after which time is halved, else 0; one less than levels
  std::int64_t blocks = 0;             // residual blocks of a level, and of the middle
  std::int64_t chunk = 0;              // frames that are encoded together
  std::int64_t scale() const;          // frames per latent frame
  bool operator==(const TemporalAutoencoder&) const = default;
};

struct VideoSampler {
  std::string name;
  std::int64_t steps = 0;
  double guidance_scale = 0;  // of classifier-free guidance, which doubles the batch
  bool operator==(const VideoSampler&) const = default;
};

struct VideoDit {
  std::string name;
  std::string hf_id;
  std::string source;
  std::string notes;
  VideoArchitecture architecture = VideoArchitecture::stdit3;

  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t depth = 0;                         // units: pairs of blocks of stdit3
  std::int64_t intermediate = 0;                  // of the MLP, with biases and a tanh GELU
  bool qk_norm = false;                           // RMSNorm over query and key heads, one weight vector each
  std::array<std::int64_t, 3> patch = {1, 2, 2};  // frames, rows and columns of the latent per token
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;       // with the variance, where it is predicted
  std::int64_t timestep_channels = 0;  // sinusoids that a number is embedded from
  // Widths of the embeddings of sizes, rates and lengths that are added to (or beside each other make up) the
  // timestep's.
  struct SizeEmbedder {
    std::string what;
    std::int64_t width = 0;
    bool operator==(const SizeEmbedder&) const = default;
  };
  std::vector<SizeEmbedder> size_embedders;
  std::int64_t text_channels = 0;
  std::int64_t text_tokens = 0;  // of a prompt, padded

  double frame_rate = 0;         // of the written video
  double frames_per_second = 0;  // generated for a second asked for
  VideoSampler sampler;
  TextEncoder text_encoder;
  ImageAutoencoder image_decoder;
  TemporalAutoencoder temporal_decoder;  // chunk 0: none

  std::int64_t head_dim() const { return heads > 0 ? hidden / heads : 0; }
  std::int64_t blocks() const { return architecture == VideoArchitecture::stdit3 ? 2 * depth : depth; }
  std::int64_t patch_elements() const { return patch[0] * patch[1] * patch[2]; }
  bool rotary() const { return architecture != VideoArchitecture::stdit; }
  bool operator==(const VideoDit&) const = default;
};

// Whether a document says `kind: video-dit`; what does not is a decoder.
bool is_video_dit(const descriptor::Document& document);
// Whether the name or path means such a document. Throws Error(bad_input) for what does not parse.
bool is_video_dit(const std::string& name_or_path);
// Both throw Error(bad_input) with every problem.
VideoDit parse_video_dit(const descriptor::Document& document);
VideoDit load_video_dit(const std::string& name_or_path);
// Error(bad_input) of a command that needs a decoder and was given `name`.
[[noreturn]] void reject_video_dit(const std::string& name);

// ---- From what a user asks for (a resolution, an aspect ratio, a length) to the tokens that a video transformer works
// on.

struct VideoSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
  bool operator==(const VideoSize&) const = default;
};

// Names of resolutions ("480p") and aspect ratios, height to width ("9:16"), of the built-in table, in its order.
const std::vector<std::string>& video_resolutions();
const std::vector<std::string>& video_aspects();
// A cell of the table, or an explicit "HEIGHTxWIDTH", which takes no aspect (empty). An empty aspect of a named
// resolution is 9:16. Throws Error(bad_input) naming the field, with the nearest names.
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

// ---- Exact parameter counts of a video diffusion transformer and the models around it, part by part. All integers;
// parts add up to totals exactly.

struct VideoPart {
  std::string name;        // "spatial blocks: self-attention"
  std::int64_t count = 1;  // alike
  std::int64_t each = 0;   // parameters of one
  std::int64_t total() const { return count * each; }
};

struct VideoParameters {
  std::vector<VideoPart> transformer;
  std::vector<VideoPart> text_encoder;
  std::vector<VideoPart> autoencoder;  // both halves of both: all are loaded
  std::int64_t total = 0;              // of the transformer
  std::int64_t blocks = 0;             // of these, in blocks
  std::int64_t text_encoder_total = 0;
  std::int64_t autoencoder_total = 0;
};
VideoParameters count_parameters(const VideoDit& model);

}  // namespace llmperf::model
