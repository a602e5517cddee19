#include "catch.h"
#include "model/video/video_dit.h"
#include "program/recovered.h"

namespace llmperf::program::blocks_test {
namespace {

Recovered fixture(const std::string& file) {
  return Recovered(parse_file(LLMPERF_SOURCE_DIR "/tests/program/programs/" + file));
}

}  // namespace

TEST_CASE("Every product of the Llama program has the role it was written with") {
  const Recovered r = fixture("llama_block.mlir");
  CHECK(r.roles() == Roles{{"%15", "query"},
                           {"%16", "key"},
                           {"%17", "value"},
                           {"%60", "scores"},
                           {"%80", "values"},
                           {"%82", "output"},
                           {"%99", "gate"},
                           {"%101", "up"},
                           {"%103", "down"}});
  REQUIRE(r.blocks.blocks.size() == 1);
  const TransformerBlock& block = r.blocks.blocks[0];
  REQUIRE(block.attentions.size() == 1);
  const AttentionShape expected = {.batch = 1,
                                   .queries = 512,
                                   .keys = 512,
                                   .heads = 32,
                                   .kv_heads = 8,
                                   .head_dim = 128,
                                   .v_head_dim = 128,
                                   .masked = true,
                                   .rotary = true};
  CHECK(block.attentions[0] == expected);
}

TEST_CASE("The descriptor of the Llama program has the layer of Llama 3 8B") {
  const model::Decoder m = decoder_of(fixture("llama_block.mlir"));
  const model::Decoder reference = model::load_decoder("llama-3-8b");
  CHECK(m.kinds == std::vector<model::Layer>{reference.kinds[0]});
  CHECK(m.num_layers() == 1);
  CHECK(m.hidden == reference.hidden);
  CHECK(m.norm == reference.norm);
  CHECK(m.vocab == 1);
  CHECK(says(m.notes, "neither an embedding nor a product to words"));
}

TEST_CASE("A loop over stacked weights is as many layers, between a word table and a product to words") {
  const Recovered r = fixture("llama_decoder_while.mlir");
  CHECK(r.roles() == Roles{{"%6", "embedding"},
                           {"%15", "query"},
                           {"%16", "key"},
                           {"%17", "value"},
                           {"%48", "scores"},
                           {"%66", "values"},
                           {"%69", "output"},
                           {"%86", "gate"},
                           {"%88", "up"},
                           {"%90", "down"},
                           {"%36", "lm_head"}});
  const model::Decoder m = decoder_of(r);
  CHECK(m.num_layers() == 4);
  CHECK(m.hidden == 1024);
  CHECK(m.vocab == 32000);
  CHECK_FALSE(m.tied_embeddings);
  REQUIRE(m.kinds.size() == 1);
  const model::Attention& a = m.kinds[0].attention;
  CHECK(std::array{a.heads, a.kv_heads, a.head_dim} == std::array<std::int64_t, 3>{16, 4, 64});
  CHECK(m.kinds[0].feed_forward.intermediate == 2816);
  CHECK(m.kinds[0].feed_forward.activation == model::Activation::silu);  // as 1 / (1 + exp(-x))
}

TEST_CASE("Every product of the STDiT program has the role it was written with") {
  const Recovered r = fixture("stdit_block.mlir");
  CHECK(r.roles() == Roles{{"%24", "qkv"},
                           {"%42", "scores"},
                           {"%54", "values"},
                           {"%60", "output"},
                           {"%74", "qkv"},
                           {"%92", "scores"},
                           {"%104", "values"},
                           {"%110", "output"},
                           {"%123", "cross_query"},
                           {"%131", "cross_key_value"},
                           {"%148", "cross_scores"},
                           {"%160", "cross_values"},
                           {"%166", "cross_output"},
                           {"%185", "up"},
                           {"%204", "down"}});
  REQUIRE(r.blocks.blocks.size() == 1);
  const std::vector<AttentionShape>& a = r.blocks.blocks[0].attentions;
  REQUIRE(a.size() == 3);
  const auto shape = [&](std::size_t i) {
    return std::array{a[i].batch, a[i].queries, a[i].keys, a[i].heads, a[i].head_dim};
  };
  using Shape = std::array<std::int64_t, 5>;
  CHECK(a[0].kind == AttentionKind::spatial);
  CHECK(shape(0) == Shape{2 * 4, 240, 240, 16, 72});
  CHECK(a[1].kind == AttentionKind::temporal);
  CHECK(shape(1) == Shape{2 * 240, 4, 4, 16, 72});
  CHECK(a[2].kind == AttentionKind::cross);
  CHECK(shape(2) == Shape{2, 960, 120, 16, 72});
}

TEST_CASE("The descriptor of the STDiT program is STDiT-XL/2 with one block") {
  const Recovered r = fixture("stdit_block.mlir");
  const model::VideoDit m =
      model::parse_video_dit(descriptor::parse_yaml(recovered_model(r.program, r.blocks), "recovered"));
  model::VideoDit reference = model::load_video_dit("stdit-xl2");
  reference.depth = 1;
  reference.name = m.name;
  reference.hf_id = m.hf_id;
  reference.source = m.source;
  reference.notes = m.notes;
  CHECK(m == reference);
  CHECK(says(m.notes, "240 patches of a frame"));
}

}  // namespace llmperf::program::blocks_test
