// Every row of the table of families is read from the smallest config that its own spellings allow, and once more from
// the GGUF file that llama.cpp's converter would make of that model.
#include "model/families.h"

#include <set>
#include <string>

#include "base/text.h"
#include "catch.h"
#include "descriptor/node.h"
#include "model/gguf/tensors.h"
#include "model/gguf_converted.h"

namespace llmperf::families_test {

using namespace llmperf::model;

namespace {

constexpr std::int64_t kHidden = 64, kLayers = 4, kHeads = 4, kHeadDim = 16, kWidth = 160, kExpertWidth = 32;

// Four layers of four heads, and four experts of which a token takes two; optional keys are left out.
std::string smallest_config(const Family& family, std::string_view model_type) {
  std::string text = "{\"model_type\": \"" + std::string(model_type) + "\"";
  std::set<std::string> said;
  const auto add = [&](std::string_view key, std::int64_t value) {
    if (key.empty() || !said.emplace(key).second) return;
    text += ",\n\"" + std::string(key) + "\": " + std::to_string(value);
  };
  add(family.key(Fact::hidden), kHidden);
  add(family.key(Fact::layers), kLayers);
  add(family.key(Fact::vocab), 100);
  add(family.key(Fact::heads), kHeads);
  if (!family.latent) {
    add(family.key(Fact::kv_heads), kHeads);
    add(family.key(Fact::head_dim), kHeadDim);
  }
  add(family.key(Fact::intermediate), kWidth);
  if (!family.experts.count.empty()) {
    add(family.experts.count, 4);
    add(family.key(Fact::experts_per_token), 2);
    add(family.key(family.experts.width), kExpertWidth);
    if (family.experts.shared == SharedExperts::gated) add(family.key(Fact::shared_width), kExpertWidth);
    if (family.experts.shared == SharedExperts::counted) add(family.key(Fact::shared_experts), 1);
  }
  return text + "}";
}

// Its models are among those in configs/.
bool needs_keys_of_its_own(const Family& family) {
  return family.own_layers != nullptr || family.key(Fact::experts_per_token).empty();
}

}  // namespace

TEST_CASE("each family reads the smallest config of its own spellings, and has what its row says") {
  for (const Family& named : families()) {
    CAPTURE(named.name);
    const Family* family = find_family(named.name);
    REQUIRE(family != nullptr);
    REQUIRE(family->like.empty());
    if (needs_keys_of_its_own(*family)) continue;
    const std::string text = smallest_config(*family, named.name);
    CAPTURE(text);
    const Decoder model = parse_decoder(descriptor::parse_json(text, "config.json"));
    CHECK(model.architecture == named.name);
    CHECK(model.hidden == kHidden);
    CHECK(model.num_layers() == kLayers);
    CHECK(model.vocab == 100);
    CHECK(model.norm == family->norm);
    CHECK(model.tied_embeddings == family->tied);
    const Layer& last = model.kinds[model.layer_kinds.back()];
    if (family->own_keys == nullptr) CHECK(last.norms == family->norms);
    CHECK(last.attention.heads == kHeads);
    CHECK(last.attention.latent.has_value() == family->latent);
    CHECK(last.attention.qkv_bias == family->qkv_bias.value);
    CHECK(last.attention.qk_norm == (family->qk_normed.value ? family->qk_norm : QkNorm::none));
    CHECK(last.feed_forward.activation == family->activation);
    CHECK(last.feed_forward.gated == family->gated);
    CHECK(last.feed_forward.experts.has_value() == !family->experts.count.empty());
    if (last.feed_forward.experts) {
      CHECK(last.feed_forward.experts->count == 4);
      CHECK(last.feed_forward.experts->intermediate ==
            (family->experts.width == Fact::intermediate ? kWidth : kExpertWidth));
      CHECK(last.feed_forward.experts->score_correction == family->experts.score_correction);
    } else if (family->own_keys != read_mpt_keys && family->own_keys != read_lfm2_keys) {
      CHECK(last.feed_forward.intermediate == (family->halved_width ? kWidth / 2 : kWidth));
    }
    // The first layer sees a window unless its key has to be there or a switch has to be on.
    const Attention& first = model.kinds[model.layer_kinds.front()].attention;
    const bool windowed = family->window.absent > 0 && !family->window.switched;
    CHECK(first.window.value_or(0) == (windowed ? family->window.absent : 0));
    // The last of a pattern is the one without.
    const WindowRule& rule = family->window;
    const bool last_slides =
        rule.layers == WindowLayers::all || (rule.layers == WindowLayers::pattern && kLayers % rule.period != 0);
    CHECK(last.attention.window.has_value() == (windowed && last_slides));
  }
}

TEST_CASE("each family that llama.cpp knows is the same model from a GGUF file") {
  for (const Family& family : families()) {
    if (family.gguf.empty() || !family.like.empty() || needs_keys_of_its_own(family)) continue;
    CAPTURE(family.name);
    const Decoder model =
        as_converted(parse_decoder(descriptor::parse_json(smallest_config(family, family.name), "config.json")));
    const Decoder read = parse_gguf_decoder(ConvertedGguf(model).file);
    CHECK(read.kinds == model.kinds);
    CHECK(read.layer_kinds == model.layer_kinds);
    CHECK(read.norm == model.norm);
    CHECK(read.lm_head_bias == model.lm_head_bias);
    CHECK(read.architecture == type_in_file(model.architecture));
  }
}

TEST_CASE("names of families are unique, and those a row is like exist") {
  std::set<std::string_view> names;
  for (const Family& family : families()) {
    CAPTURE(family.name);
    CHECK(names.insert(family.name).second);
    CHECK(find_family(family.name) != nullptr);
    for (const std::string_view other : words(family.also)) {
      CAPTURE(other);
      CHECK(names.insert(other).second);
      CHECK(find_family(other) == find_family(family.name));
      CHECK(gguf_names(other) == family.gguf);
    }
    for (const std::string_view gguf : words(family.gguf)) CHECK(find_gguf_family(gguf, false, false).has_value());
  }
  for (const std::string& gguf : gguf_family_names()) {
    CAPTURE(gguf);
    CHECK(find_gguf_family(gguf, false, false)->gguf == gguf);
  }
  CHECK(find_family("lama") == nullptr);
  CHECK_FALSE(find_gguf_family("", false, false).has_value());
}

}  // namespace llmperf::families_test
