#include "catch.h"
#include "graph/decoder_graph.h"
#include "graph/stdit_graph.h"
#include "program/flatten.h"
#include "program/work.h"

namespace llmperf::program::fixture_flops_test {
namespace {

using namespace graph;

const std::string kPrograms = LLMPERF_SOURCE_DIR "/tests/program/programs/";

// 2 x elements of the result x contracted extent, over all products.
std::int64_t program_flops(const std::string& file) {
  const Module module = parse_file(kPrograms + file);
  const Program program = flatten(module, {});
  std::int64_t sum = 0;
  for (const Node& node : program.nodes) {
    if (node.traits.op_class != OpClass::product) continue;
    const Type& lhs = program.type(node.operands[0]);
    const DotDimensions dims = dot_dimensions(*node.instruction, lhs, program.type(node.operands[1]));
    std::int64_t flops = 2 * node.count;
    for (const std::int64_t extent : program.type(node.results[0]).dims) flops *= extent;
    for (const std::int64_t d : dims.contracted[0]) flops *= lhs.dims[static_cast<std::size_t>(d)];
    sum += flops;
  }
  return sum;
}

// Of the products and of attention to another text, which has no mask; `layers` alone leaves out what is around them.
std::int64_t built_in_flops(const Graph& graph, bool layers) {
  std::int64_t sum = 0;
  for (const Op& op : graph) {
    if (layers && op.layer_kind < 0) continue;
    if (const auto* g = std::get_if<Gemm>(&op.body)) sum += 2 * g->m * g->n * g->k * g->batch * op.count;
    if (const auto* a = std::get_if<Attention>(&op.body)) {
      REQUIRE(a->keys > 0);
      sum += 2 * a->sequences * a->heads * a->q_tokens * a->keys * (a->qk_dim + a->v_dim) * op.count;
    }
  }
  return sum;
}

// Attention as products and a softmax over the full square; logits of every token.
Graph prefill(const model::Decoder& m, std::int64_t tokens) {
  Execution e;
  e.model = &m;
  e.weights = model::uniform_layout(m, model::parse_weight_scheme("bf16"));
  e.runtime = hardware::parse_runtime_options("none");
  Graph graph;
  const SequenceGroup group{1, tokens, 0};
  build_step(e, {&group, 1}, Part::all, graph);
  return graph;
}

}  // namespace

TEST_CASE("The Llama program has the matrix FLOPs of a layer of the built-in Llama 3 8B") {
  const model::Decoder m = model::load_decoder("llama-3-8b");
  const std::int64_t program = program_flops("llama_block.mlir");
  CHECK(program * m.num_layers() == built_in_flops(prefill(m, 512), true));
  // q and o, k and v, scores and values, gate, up and down.
  const std::int64_t macs =
      2 * 512L * 4096 * 4096 + 2 * 512L * 4096 * 1024 + 2 * 512L * 512 * 4096 + 3 * 512L * 4096 * 14336;
  CHECK(program == 2 * macs);
}

TEST_CASE("The decoder loop has the matrix FLOPs of the built-in graph, product to words included") {
  model::Decoder m = model::load_decoder("llama-3-8b");
  model::Layer layer = m.kinds[0];
  layer.attention.heads = 16;
  layer.attention.kv_heads = 4;
  layer.attention.head_dim = layer.attention.v_head_dim = layer.attention.rotary_dim = 64;
  layer.feed_forward.intermediate = 2816;
  m.hidden = 1024;
  m.vocab = 32000;
  m.kinds.clear();
  m.layer_kinds.clear();
  m.kind_counts.clear();
  for (int i = 0; i < 4; ++i) m.add_layer(layer);
  CHECK(program_flops("llama_decoder_while.mlir") == built_in_flops(prefill(m, 128), false));
}

TEST_CASE("The STDiT program has the matrix FLOPs of a block of the built-in STDiT-XL/2") {
  const model::VideoDit m = model::load_video_dit("stdit-xl2");
  VideoExecution e;
  e.model = &m;
  e.shape = model::video_shape(m, {192, 320}, 4);
  REQUIRE(e.shape.patch_frames == 4);
  REQUIRE(e.shape.spatial_tokens() == 240);
  e.text_tokens = 120;
  e.runtime = hardware::parse_runtime_options("none", hardware::Workload::video);
  Graph graph;
  build_denoising_step(e, graph);
  CHECK(program_flops("stdit_block.mlir") * m.depth == built_in_flops(graph, true));
}

}  // namespace llmperf::program::fixture_flops_test
