#include "model/video_shape.h"

#include <array>
#include <string>

#include "base/error.h"
#include "catch.h"

namespace llmperf::model::video_shape_test {
namespace {

// Spatial tokens of a latent frame, by resolution and aspect.
struct Row {
  const char* resolution;
  std::array<std::int64_t, 8> tokens;
};
constexpr Row kTokens[] = {
    {"144p", {144, 144, 144, 140, 140, 144, 150, 136}},
    {"240p", {405, 405, 400, 391, 391, 403, 400, 392}},
    {"360p", {920, 920, 900, 910, 910, 920, 925, 903}},
    {"480p", {1590, 1590, 1600, 1610, 1610, 1586, 1617, 1596}},
    {"720p", {3600, 3600, 3600, 3588, 3588, 3588, 3626, 3570}},
    {"1080p", {8160, 8160, 8100, 8112, 8112, 8083, 8140, 8128}},
};

template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::bad_input);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("Every resolution and aspect has its published number of spatial tokens") {
  const VideoDit model = load_video_dit("stdit3-xl2");
  REQUIRE(video_resolutions().size() == std::size(kTokens));
  for (const Row& row : kTokens) {
    for (std::size_t i = 0; i < row.tokens.size(); ++i) {
      INFO(row.resolution << " " << video_aspects()[i]);
      const VideoShape shape = video_shape(model, parse_video_size(row.resolution, video_aspects()[i]), 51);
      CHECK(shape.spatial_tokens() == row.tokens[i]);
      CHECK(shape.tokens() == 15 * row.tokens[i]);
    }
  }
}

TEST_CASE("Frames in chunks of 17 become 5 latent frames each, the rest a fourth rounded up") {
  const VideoDit model = load_video_dit("stdit3-xl2");
  const std::pair<std::int64_t, std::int64_t> published[] = {{1, 1},    {16, 4},   {17, 5},    {51, 15},
                                                             {102, 30}, {204, 60}, {408, 120}, {816, 240}};
  for (const auto& [frames, latents] : published) CHECK(latent_frames(model, frames) == latents);
  CHECK(latent_frames(model, 18) == 6);
  CHECK(latent_frames(load_video_dit("stdit2-xl2"), 16) == 16);
}

TEST_CASE("Seconds of video become the frames that Open-Sora generates for them") {
  const VideoDit model = load_video_dit("stdit3-xl2");
  const std::pair<double, std::int64_t> published[] = {{2, 51}, {4, 102}, {8, 204}, {16, 408}, {32, 816}};
  for (const auto& [seconds, frames] : published) CHECK(frames_of_seconds(model, seconds) == frames);
  CHECK(frames_of_seconds(model, 0.01) == 1);
  CHECK(frames_of_seconds(load_video_dit("stdit2-xl2"), 2) == 16);
  CHECK(error_of([&] { frames_of_seconds(model, 0); }).find("`seconds`") != std::string::npos);
  CHECK(error_of([&] { frames_of_seconds(model, 1e9); }).find("`seconds`") != std::string::npos);
}

TEST_CASE("Latents are padded to whole patches") {
  const VideoDit model = load_video_dit("stdit3-xl2");
  // 854 / 8 = 106 (rounded down), 490 / 8 = 61: 31 patches.
  const VideoShape shape = video_shape(model, {490, 854}, 17);
  CHECK(shape.latent_height == 61);
  CHECK(shape.latent_width == 106);
  CHECK(shape.patch_rows == 31);
  CHECK(shape.patch_columns == 53);
  CHECK(shape.tokens() == 5 * 31 * 53);
}

TEST_CASE("A resolution is a name with an aspect, or height and width") {
  CHECK(parse_video_size("720p", "9:16") == VideoSize{720, 1280});
  CHECK(parse_video_size("720p", "") == VideoSize{720, 1280});
  CHECK(parse_video_size("512x768", "") == VideoSize{512, 768});
  CHECK(error_of([] { parse_video_size("512x768", "9:16"); }).find("`aspect`") != std::string::npos);
  CHECK(error_of([] { parse_video_size("721p", "9:16"); }).find("'720p'") != std::string::npos);
  CHECK(error_of([] { parse_video_size("720p", "9:18"); }).find("'9:16'") != std::string::npos);
}

TEST_CASE("What leaves no latent is refused") {
  const VideoDit model = load_video_dit("stdit3-xl2");
  CHECK(error_of([&] { video_shape(model, {720, 1280}, 0); }).find("`frames`") != std::string::npos);
  CHECK(error_of([&] { video_shape(model, {720, 1280}, -3); }).find("`frames`") != std::string::npos);
  CHECK(error_of([&] { video_shape(model, {7, 1280}, 51); }).find("7x1280") != std::string::npos);
  CHECK(error_of([&] { video_shape(model, {720, -1}, 51); }).find("720x-1") != std::string::npos);
  CHECK(error_of([&] { video_shape(model, {100'000, 100'000}, 1'000'000); }).find("tokens") != std::string::npos);
  CHECK(video_shape(model, {8, 8}, 1).tokens() == 1);
}

}  // namespace llmperf::model::video_shape_test
