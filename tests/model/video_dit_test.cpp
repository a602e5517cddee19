#include "model/video/video_dit.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "catch.h"
#include "descriptor/node.h"
#include "model/decoder.h"

namespace llmperf::model::video_dit_test {
namespace {

std::int64_t part(const std::vector<VideoPart>& parts, const std::string& name) {
  const auto found = std::find_if(parts.begin(), parts.end(), [&](const VideoPart& p) { return p.name == name; });
  REQUIRE(found != parts.end());
  return found->each;
}

std::string error_of(const std::string& yaml) {
  try {
    parse_video_dit(descriptor::parse_yaml(yaml, "my.yaml"));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

const char* const kSmall = R"(name: small
kind: video-dit
architecture: stdit3
hidden_size: 12
heads: 2
depth: 3
intermediate: 48
patch: [1, 2, 2]
in_channels: 4
out_channels: 8
timestep_channels: 8
text_channels: 16
text_tokens: 10
frame_rate: 24
frames_per_second: 25.5
sampler: {name: rectified flow, steps: 30, guidance_scale: 7}
text_encoder: {name: t, vocab_size: 100, hidden_size: 16, heads: 2, head_dim: 8, intermediate: 32, num_layers: 2, position_buckets: 4, stored: fp32}
image_decoder: {name: i, latent_channels: 4, channels: [8, 16], blocks: 1, micro_batch: 4}
)";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

}  // namespace

TEST_CASE("Parameters of the published transformers are counted exactly from their shapes") {
  struct Published {
    const char* name;
    std::int64_t parameters;
  };
  // Open-Sora's own counts: "1.1B" of 2^30, "724M" of 2^20, and the sums of the same shapes.
  for (const Published& p : {Published{"stdit3-xl2", 1'207'643'972},
                             {"stdit3-3b", 3'182'211'572},
                             {"stdit2-xl2", 767'452'100},
                             {"stdit-xl2", 759'620'768}}) {
    INFO(p.name);
    CHECK(count_parameters(load_video_dit(p.name)).total == p.parameters);
  }
}

TEST_CASE("A block of STDiT3 has 21,255,696 parameters") {
  const VideoParameters p = count_parameters(load_video_dit("stdit3-xl2"));
  // 3 h^2 + 3 h, h^2 + h, two norms of a head of 72; h = 1152.
  CHECK(part(p.transformer, "spatial blocks: self-attention") == 3'984'768 + 1'328'256 + 144);
  CHECK(part(p.transformer, "temporal blocks: cross-attention") == 1'328'256 + 2'656'512 + 1'328'256);
  CHECK(part(p.transformer, "temporal blocks: MLP") == 10'622'592);
  CHECK(part(p.transformer, "spatial blocks: modulation table") == 6912);
  CHECK(part(p.transformer, "rotary frequencies") == 36);
  CHECK(p.blocks == 56 * 21'255'696LL);
}

TEST_CASE("The text encoder and the autoencoders are counted too") {
  const VideoParameters p = count_parameters(load_video_dit("stdit3-xl2"));
  // T5 v1.1-XXL without its decoder; AutoencoderKL of SDXL: 34,163,592 + 72 in the encoder, 49,490,179 + 20 in the
  // decoder, together 83,653,863.
  CHECK(p.text_encoder_total == 4'762'310'656);
  CHECK(part(p.autoencoder, "2-D encoder") + part(p.autoencoder, "2-D decoder") == 83'653'863);
  CHECK(part(p.autoencoder, "3-D decoder") == 165'265'944);
  // "300M" in its report.
  CHECK(part(p.autoencoder, "3-D encoder") + 165'265'944 == 309'687'144);
}

TEST_CASE("Parts of a video model add up to its totals") {
  for (const char* name : {"stdit-xl2", "stdit2-xl2", "stdit3-xl2", "stdit3-3b"}) {
    const VideoParameters p = count_parameters(load_video_dit(name));
    std::int64_t sum = 0;
    for (const VideoPart& part : p.transformer) sum += part.total();
    CHECK(sum == p.total);
  }
}

TEST_CASE("Video models are told from language models by their kind") {
  CHECK(is_video_dit("stdit3-xl2"));
  CHECK_FALSE(is_video_dit("qwen-7b"));
  CHECK_THROWS_AS(load_video_dit("qwen-7b"), Error);
  CHECK_THROWS_AS(load_decoder("stdit3-xl2"), Error);
  CHECK_THROWS_AS(is_video_dit("stdit3-xl3"), Error);
}

TEST_CASE("A descriptor of a video model is read strictly") {
  CHECK(error_of(kSmall).empty());
  const std::string unknown = error_of(replaced(kSmall, "hidden_size: 12", "hiden_size: 12"));
  CHECK(unknown.find("my.yaml:4") != std::string::npos);
  CHECK(unknown.find("hidden_size") != std::string::npos);
  CHECK(error_of(replaced(kSmall, "heads: 2\n", "heads: 5\n")).find("heads") != std::string::npos);
  CHECK(error_of(replaced(kSmall, "architecture: stdit3", "architecture: stdit4")).find("stdit3") != std::string::npos);
  CHECK(error_of(replaced(kSmall, "[1, 2, 2]", "[1, 2]")).find("patch") != std::string::npos);
  CHECK(error_of(replaced(kSmall, "text_channels: 16", "text_channels: 17")).find("text encoder") != std::string::npos);
  CHECK(error_of(replaced(kSmall, "in_channels: 4", "in_channels: 3")).find("latent_channels") != std::string::npos);
  const std::string levels = R"(temporal_decoder: {name: t, channels: [8, 16, 16], halves: [1], blocks: 1, chunk: 5}
)";
  CHECK(error_of(kSmall + levels).find("halves") != std::string::npos);
  CHECK(error_of(replaced(kSmall, "sampler: {name: rectified flow, steps: 30, guidance_scale: 7}\n", ""))
            .find("'sampler'") != std::string::npos);
}

}  // namespace llmperf::model::video_dit_test
