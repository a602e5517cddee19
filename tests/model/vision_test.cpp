// Vision towers: exact parameters against published totals, and how many tokens an image becomes, by the worked
// examples of each model's own preprocessing.
#include "model/vision.h"

#include "base/error.h"
#include "catch.h"
#include "descriptor/node.h"
#include "model/decoder.h"
#include "model/parameters.h"
#include "model/reading.h"
#include "model_files.h"

namespace llmperf::vision_test {

using namespace llmperf::model;

namespace {

VisionTower read(const std::string& json, std::int64_t text_hidden) {
  const descriptor::Document document = descriptor::parse_json(json, "config.json");
  descriptor::Problems problems("config.json");
  const auto tower = read_hf_vision(document.root, text_hidden, problems);
  problems.throw_if_any();
  REQUIRE(tower);
  return *tower;
}

// The tower of a model's own config.json.
VisionTower of_file(const std::string& name, std::int64_t text_hidden) {
  return read(descriptor::read_text_file(fixture("configs/" + name + ".json")), text_hidden);
}

// config.json of meta-llama/Llama-4-Scout-17B-16E-Instruct, which the fixture of that name has without its tower.
VisionTower llama4() {
  return read(R"({"model_type": "llama4", "vision_config": {"model_type": "llama4_vision_model", "hidden_size": 1408,
    "intermediate_size": 5632, "num_hidden_layers": 34, "num_attention_heads": 16, "image_size": 336, "patch_size": 14,
    "pixel_shuffle_ratio": 0.5, "projector_input_dim": 4096, "projector_output_dim": 4096, "vision_output_dim": 4096}})",
              5120);
}

std::int64_t total(const VisionTower& tower) { return count_parameters(tower).total(); }

std::string error_of(const std::string& json) {
  try {
    read(json, 64);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("towers of config.json files have the parameters they were published with", "[vision]") {
  CHECK(total(of_file("qwen2-vl-7b", 3584)) == 675'759'104);
  CHECK(total(of_file("qwen2.5-vl-7b", 3584)) == 676'550'144);
  CHECK(7'615'616'512 + total(of_file("qwen2.5-vl-7b", 3584)) == 8'292'166'656);
  CHECK(total(of_file("qwen3-vl-8b", 4096)) == 576'388'336);
  CHECK(8'190'735'360 + total(of_file("qwen3-vl-8b", 4096)) == 8'767'123'696);
  CHECK(total(of_file("qwen3-vl-235b-a22b", 4096)) == 576'388'336);
  CHECK(total(of_file("qwen3-omni-30b-a3b", 2048)) == 538'631'408);
  CHECK(total(of_file("qwen3.5-27b", 5120)) == 460'730'096);
  CHECK(total(of_file("qwen3.5-35b-a3b", 2048)) == 446'571'248);
  CHECK(total(of_file("qwen3.5-397b-a17b", 4096)) == 456'010'480);
  CHECK(3'880'263'168 + total(of_file("gemma-3-4b", 2560)) == 4'300'079'472);
  CHECK(27'009'346'304 + total(of_file("gemma-3-27b", 5376)) == 27'432'406'640);
  CHECK(total(of_file("gemma-4-26b-a4b", 2816)) == 569'550'384 + 3'244'032);
  CHECK(total(of_file("gemma-4-31b", 5376)) == 569'550'384 + 6'193'152);
  CHECK(total(of_file("gemma-4-e2b", 1536)) == 167'364'608 + 1'179'648);
  CHECK(23'572'403'200 + total(of_file("mistral-small-3.2-24b", 5120)) == 24'011'361'280);
  CHECK(3'429'006'336 + total(of_file("ministral-3-3b", 3072)) == 3'849'090'048);
  CHECK(8'489'553'920 + total(of_file("ministral-3-8b", 4096)) == 8'918'026'240);
  CHECK(1'026'408'232'448 + total(of_file("kimi-k2.5", 7168)) == 1'026'879'376'368);
  CHECK(107'769'861'120 + total(llama4()) == 108'641'793'536);
}

TEST_CASE("defaults of Qwen2.5-VL are those of its class: published files of 3B say little", "[vision]") {
  const VisionTower tower = read(R"({"model_type": "qwen2_5_vl", "vision_config": {"out_hidden_size": 2048}})", 2048);
  CHECK(total(tower) == 668'684'288);
  CHECK(tower.window == 8);
  CHECK(tower.full_layers == 4);
}

TEST_CASE("an image becomes the tokens of the model's own preprocessing", "[vision]") {
  struct Row {
    VisionTower tower;
    std::int64_t at_448, at_1024, at_1080p, at_640x480;
  };
  const Row rows[] = {
      {of_file("qwen2.5-vl-7b", 3584), 256, 1369, 2691, 391},  {of_file("qwen3-vl-8b", 4096), 196, 1024, 2040, 300},
      {of_file("gemma-3-27b", 5376), 256, 256, 256, 256},      {of_file("gemma-4-31b", 5376), 256, 256, 264, 266},
      {of_file("ministral-3-3b", 3072), 256, 1369, 1705, 414}, {llama4(), 720, 2448, 2304, 720},
      {of_file("kimi-k2.5", 7168), 256, 1369, 2691, 414},
  };
  for (const Row& row : rows) {
    INFO(row.tower.hidden << " wide, " << row.tower.layers << " layers");
    CHECK(see(row.tower, {448, 448}).tokens == row.at_448);
    CHECK(see(row.tower, {1024, 1024}).tokens == row.at_1024);
    CHECK(see(row.tower, {1920, 1080}).tokens == row.at_1080p);
    CHECK(see(row.tower, {640, 480}).tokens == row.at_640x480);
  }
  // Small images are enlarged, large ones shrunk.
  CHECK(see(rows[1].tower, {224, 224}).tokens == 64);
  CHECK(see(rows[6].tower, {3840, 2160}).tokens == 4214);
  CHECK(see(rows[0].tower, {3840, 2160}).tokens == 10549);
  CHECK(see(rows[1].tower, {20000, 20000}).tokens == 16384);
}

TEST_CASE("what stands between and around an image's rows is in the prompt", "[vision]") {
  const auto prompt = [](const VisionTower& tower, ImageSize size) { return see(tower, size).prompt_tokens; };
  const VisionTower pixtral = of_file("ministral-3-3b", 3072);
  CHECK(prompt(pixtral, {1024, 1024}) == 1406);  // 37 rows of 37 and a break
  CHECK(prompt(pixtral, {1920, 1080}) == 1736);
  CHECK(prompt(llama4(), {336, 336}) == 147);
  CHECK(prompt(llama4(), {448, 448}) == 727);
  CHECK(prompt(llama4(), {1920, 1080}) == 2322);
  CHECK(prompt(of_file("gemma-3-27b", 5376), {10, 10}) == 260);
  CHECK(prompt(of_file("qwen3-vl-8b", 4096), {1024, 1024}) == 1026);
}

TEST_CASE("the tower sees patches: padded to the budget, in tiles, of two frames", "[vision]") {
  CHECK(see(of_file("gemma-4-31b", 5376), {1920, 1080}).patches == 280 * 9);
  CHECK(see(of_file("gemma-3-27b", 5376), {1, 1}).patches == 4096);
  const SeenImage tiles = see(llama4(), {1920, 1080});
  CHECK(tiles.tiles == 16);  // 3 x 5 and the whole
  CHECK(tiles.patches == 576);
  CHECK(see(of_file("qwen3-vl-8b", 4096), {1024, 1024}).patches == 4096);
}

TEST_CASE("windows hold every patch once", "[vision]") {
  const VisionTower tower = of_file("qwen2.5-vl-7b", 3584);
  const SeenImage image = see(tower, {1024, 1024});  // 74 x 74 patches: 9 windows of 8 and one of 2 a side
  REQUIRE(image.patches == 74 * 74);
  std::int64_t patches = 0;
  std::int64_t pairs = 0;
  for (const PatchWindow& window : windows(tower, image)) {
    patches += window.sequences * window.patches;
    pairs += window.sequences * window.patches * window.patches;
  }
  CHECK(patches == image.patches);
  CHECK(pairs == 81 * 64 * 64 + 18 * 16 * 16 + 4 * 4);
}

TEST_CASE("a tower that is written as a descriptor is read back", "[vision]") {
  for (const auto& [name, hidden] : std::vector<std::pair<std::string, std::int64_t>>{{"qwen2.5-vl-7b", 3584},
                                                                                      {"qwen3-vl-8b", 4096},
                                                                                      {"gemma-3-27b", 5376},
                                                                                      {"gemma-4-31b", 5376},
                                                                                      {"ministral-3-3b", 3072},
                                                                                      {"kimi-k2.5", 7168}}) {
    INFO(name);
    Decoder model = load_decoder("llama-3.1-8b");
    model.hidden = hidden;
    model.vision = of_file(name, hidden);
    const Decoder again = parse_decoder(descriptor::parse_yaml(to_descriptor(model), "again.yaml"));
    CHECK(again.vision == model.vision);
    CHECK(count_parameters(again).vision == total(*model.vision));
    CHECK(count_parameters(again).checkpoint == count_parameters(again).total + total(*model.vision));
  }
}

TEST_CASE("a config of text and images is read with its tower, one of another family without", "[vision]") {
  CHECK(load_decoder(fixture("configs/kimi-k2.5.json")).vision.has_value());
  descriptor::Problems problems("config.json");
  const auto tower = [&](const char* json) {
    return read_hf_vision(descriptor::parse_json(json, "config.json").root, 64, problems);
  };
  CHECK_FALSE(tower(R"({"model_type": "step3p7", "vision_config": {"width": 1536}})"));
  CHECK_FALSE(tower(R"({"model_type": "qwen3_vl"})"));
  CHECK(problems.empty());
}

TEST_CASE("wrong towers are positioned errors", "[vision]") {
  const auto qwen3 = [](const std::string& keys) {
    return R"({"model_type": "qwen3_vl", "vision_config": {"out_hidden_size": 64, )" + keys + "}}";
  };
  CHECK(error_of(qwen3(R"("depth": 2)")).find("missing key 'hidden_size'") != std::string::npos);
  CHECK(error_of(qwen3(R"("depth": 2, "hidden_size": 100, "intermediate_size": 8, "num_heads": 16)"))
            .find("hidden_size (100) is not divisible by num_heads (16)") != std::string::npos);
  CHECK(error_of(qwen3(R"("depth": -1, "hidden_size": 64, "intermediate_size": 8, "num_heads": 4)")).find("depth") !=
        std::string::npos);
  // Llama 4's class has other defaults than any published model: nothing is taken from them.
  CHECK(error_of(R"({"model_type": "llama4", "vision_config": {}})").find("num_hidden_layers") != std::string::npos);
  const auto yaml = [](const std::string& vision) {
    try {
      parse_decoder(descriptor::parse_yaml(
          "name: small\nhidden_size: 64\nnum_layers: 2\nvocab_size: 100\nnorm: rms\n"
          "attention: {heads: 4}\nfeed_forward: {intermediate: 160, activation: silu}\nvision: {" +
              vision + "}\n",
          "my.yaml"));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string usual = "layers: 2, hidden_size: 32, intermediate: 64, heads: 2, patch: 16, merge: 2, ";
  const std::string image = ", image: {rule: nearest, least_pixels: 1024, most_pixels: 65536}";
  CHECK(yaml(usual + "projector: [128, 64]" + image).empty());
  CHECK(yaml(usual + "projector: [128, 65]" + image).find("my.yaml:8") != std::string::npos);
  CHECK(yaml(usual + "projector: [100, 64]" + image).find("projector begins with 100") != std::string::npos);
  CHECK(yaml(usual + "projector: [128, 64]").find("what an image is scaled to") != std::string::npos);
  CHECK(yaml(usual + "projector: [128, 64], image: {rule: square, side: 8}").find("side") != std::string::npos);
  CHECK(yaml(usual + "projector: [128, 64], image: {rule: budget}").find("most") != std::string::npos);
  CHECK(yaml(usual + "projector: [128, 64], full_layers: 1" + image).find("window") != std::string::npos);
  CHECK(yaml(usual + "projecter: [128, 64]" + image).find("did you mean 'projector'") != std::string::npos);
}

TEST_CASE("sizes of images are width x height", "[vision]") {
  CHECK(parse_image_size("1920x1080") == ImageSize{1920, 1080});
  for (const char* text : {"1920", "0x4", "4x", "4x4x4", "-1x4", "1e9x4", "200000x1", "4 x 4"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_image_size(text), Error);
  }
  CHECK_THROWS_AS(see(of_file("qwen3-vl-8b", 4096), {4000, 10}), Error);  // more than 200 to 1
}

TEST_CASE("an encoder's parameters are those it was published with", "[encoder]") {
  const Decoder bert = parse_decoder(descriptor::parse_yaml(
      "name: bert-base\nhidden_size: 768\nnum_layers: 12\nvocab_size: 30522\nnorm: layer\nposition_embeddings: 512\n"
      "type_embeddings: 2\nembedding_norm: true\nfinal_norm: false\nencoder: true\npooler: true\nnorms_after: true\n"
      "attention: {heads: 12, qkv_bias: true, o_bias: true}\n"
      "feed_forward: {intermediate: 3072, activation: gelu, gated: false, bias: true}\n",
      "bert.yaml"));
  CHECK(count_parameters(bert).total == 109'482'240);
  CHECK(count_parameters(bert).lm_head == 768 * 768 + 768);  // the pooler in its place
  CHECK(count_parameters(load_decoder("bge-m3")).total == 567'754'752);
}

TEST_CASE("the built-in descriptor of a model that reads images has the tower of its config.json", "[vision]") {
  CHECK(load_decoder("qwen3-vl-8b").vision == of_file("qwen3-vl-8b", 4096));
}

}  // namespace llmperf::vision_test
