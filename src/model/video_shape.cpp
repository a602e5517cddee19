#include "model/video_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"

namespace llmperf::model {
namespace {

// Height and width by resolution and aspect (opensora/datasets/aspect.py of hpcaitech/Open-Sora v1.2.0, the ratios that
// have a name there in all resolutions). Names are height to width: 9:16 is landscape.
constexpr std::array<std::string_view, 8> kAspects = {"9:16", "16:9", "1:1", "3:4", "4:3", "9:21", "2:3", "1:2"};
struct Resolution {
  std::string_view name;
  std::array<VideoSize, kAspects.size()> sizes;
};
constexpr std::array<Resolution, 6> kResolutions = {{
    {"144p", {{{144, 256}, {256, 144}, {192, 192}, {166, 221}, {221, 165}, {125, 291}, {156, 234}, {135, 270}}}},
    {"240p", {{{240, 426}, {426, 240}, {320, 320}, {276, 368}, {370, 278}, {210, 490}, {262, 393}, {226, 452}}}},
    {"360p", {{{360, 640}, {640, 360}, {480, 480}, {416, 554}, {554, 416}, {314, 732}, {392, 588}, {340, 680}}}},
    {"480p", {{{480, 854}, {854, 480}, {640, 640}, {554, 738}, {740, 555}, {420, 980}, {522, 784}, {452, 904}}}},
    {"720p", {{{720, 1280}, {1280, 720}, {960, 960}, {832, 1110}, {1108, 832}, {628, 1466}, {784, 1176}, {678, 1356}}}},
    {"1080p",
     {{{1080, 1920}, {1920, 1080}, {1440, 1440}, {1248, 1664}, {1662, 1246}, {942, 2198}, {1176, 1764}, {1018, 2036}}}},
}};
constexpr std::string_view kDefaultAspect = "9:16";

constexpr std::int64_t kMaxPixels = 100'000;  // a side
constexpr std::int64_t kMaxFrames = 1'000'000;
constexpr std::int64_t kMaxTokens = 1'000'000'000;

std::int64_t rounded_up(std::int64_t count, std::int64_t unit) { return (count + unit - 1) / unit; }

// "720x1280", else nothing.
std::optional<VideoSize> explicit_size(std::string_view text) {
  const std::vector<std::string_view> sides = split(text, 'x');
  if (sides.size() != 2) return std::nullopt;
  const std::optional<std::int64_t> height = parse_int(sides[0]);
  const std::optional<std::int64_t> width = parse_int(sides[1]);
  if (!height || !width) return std::nullopt;
  return VideoSize{*height, *width};
}

}  // namespace

const std::vector<std::string>& video_resolutions() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const Resolution& r : kResolutions) result.emplace_back(r.name);
    return result;
  }();
  return names;
}

const std::vector<std::string>& video_aspects() {
  static const std::vector<std::string> names(kAspects.begin(), kAspects.end());
  return names;
}

VideoSize parse_video_size(std::string_view resolution, std::string_view aspect) {
  if (const std::optional<VideoSize> size = explicit_size(resolution)) {
    if (!aspect.empty()) {
      throw Error::bad_input(fmt::format("--aspect: {} already says height and width", quote(resolution)),
                             "leave it out");
    }
    return *size;
  }
  const auto* row =
      std::find_if(kResolutions.begin(), kResolutions.end(), [&](const Resolution& r) { return r.name == resolution; });
  if (row == kResolutions.end()) {
    throw Error::bad_input(fmt::format("--resolution: unknown resolution {}", quote(resolution)),
                           name_hint(resolution, video_resolutions()) + " HEIGHTxWIDTH is understood too.");
  }
  const std::string_view wanted = aspect.empty() ? kDefaultAspect : aspect;
  const auto* column = std::find(kAspects.begin(), kAspects.end(), wanted);
  if (column == kAspects.end()) {
    throw Error::bad_input(fmt::format("--aspect: unknown aspect ratio {} (height:width)", quote(wanted)),
                           name_hint(wanted, video_aspects()));
  }
  return row->sizes[static_cast<std::size_t>(column - kAspects.begin())];
}

std::int64_t frames_of_seconds(const VideoDit& model, double seconds) {
  if (!(seconds > 0) || seconds * model.frames_per_second > static_cast<double>(kMaxFrames)) {
    throw Error::bad_input(fmt::format("--seconds: {:g} s is no length of a video", seconds), "--seconds 4");
  }
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::floor(seconds * model.frames_per_second)));
}

std::int64_t latent_frames(const VideoDit& model, std::int64_t frames) {
  const TemporalAutoencoder& t = model.temporal_decoder;
  if (t.chunk == 0) return frames;
  const std::int64_t whole = frames / t.chunk * rounded_up(t.chunk, t.scale());
  return whole + rounded_up(frames % t.chunk, t.scale());
}

VideoShape video_shape(const VideoDit& model, VideoSize size, std::int64_t frames) {
  const std::int64_t scale = model.image_decoder.scale();
  if (frames < 1 || frames > kMaxFrames) {
    throw Error::bad_input(fmt::format("--frames: {} frames leave no latent frame to generate", frames),
                           fmt::format("1 (an image) to {}", kMaxFrames));
  }
  for (const std::int64_t side : {size.height, size.width}) {
    if (side >= scale && side <= kMaxPixels) continue;
    throw Error::bad_input(fmt::format("--resolution: {}x{} has no latent: a latent pixel is {} x {} of a frame",
                                       size.height, size.width, scale, scale),
                           fmt::format("sides of {} to {} pixels", scale, kMaxPixels));
  }
  VideoShape s;
  s.frames = frames;
  s.size = size;
  s.latent_frames = latent_frames(model, frames);
  s.latent_height = size.height / scale;
  s.latent_width = size.width / scale;
  s.patch_frames = rounded_up(s.latent_frames, model.patch[0]);
  s.patch_rows = rounded_up(s.latent_height, model.patch[1]);
  s.patch_columns = rounded_up(s.latent_width, model.patch[2]);
  if (s.spatial_tokens() > kMaxTokens / s.patch_frames) {
    throw Error::bad_input(
        fmt::format("{} frames of {}x{} are more than 10^9 tokens", frames, size.height, size.width));
  }
  return s;
}

}  // namespace llmperf::model
