#include "catch.h"
#include "cost/memory.h"
#include "cost/work.h"
#include "graph/decoder_graph.h"
#include "graph/random_decoder.h"

namespace llmperf::vision_graph_test {

using namespace llmperf::graph;

namespace {

// Two of four layers see all patches, the others windows of 2 x 2; a token is 2 x 2 patches.
model::VisionTower tower() {
  return {.layers = 4,
          .hidden = 8,
          .intermediate = 12,
          .heads = 2,
          .kv_heads = 2,
          .head_dim = 4,
          .gated = true,
          .patch = 4,
          .temporal_patch = 2,
          .merge = 2,
          .window = 4,
          .full_layers = 2,
          .projector = {32, 32, 16},
          .projector_norm = true,
          .deepstack = 1,
          .image = {.rule = model::ImageRule::nearest, .least_pixels = 64, .most_pixels = 1 << 20}};
}

model::Decoder reader() {
  model::Decoder m;
  m.hidden = 16;
  m.vision = tower();
  return m;
}

Execution execution(const model::Decoder& m, std::int64_t tensor = 1) {
  Execution e;
  e.model = &m;
  e.plan.tensor = tensor;
  return e;
}

double flops(const Graph& graph) {
  double sum = 0;
  for (const Op& op : graph) sum += cost::work_of(op).matrix.value * static_cast<double>(op.count);
  return sum;
}

}  // namespace

TEST_CASE("matrix FLOPs of a tower are those of loops over images, layers, patches and widths", "[vision]") {
  const model::Decoder m = reader();
  const Execution e = execution(m);
  const model::SeenImage image = model::see(*m.vision, {48, 32});  // 12 x 8 patches, 24 tokens
  REQUIRE(image.patches == 96);
  REQUIRE(image.tokens == 24);
  double expected = 0;
  const auto product = [&](double rows, double n, double k) { expected += 2 * rows * n * k; };
  for (int i = 0; i < 3; ++i) {
    product(96, 8, 3 * 2 * 4 * 4);
    for (int layer = 0; layer < 4; ++layer) {
      for (int row = 0; row < 8; ++row) {
        for (int column = 0; column < 12; ++column) {
          product(1, 3 * 8, 8);
          for (int y = 0; y < 8; ++y) {
            for (int x = 0; x < 12; ++x) {
              const bool same_window = y / 4 == row / 4 && x / 4 == column / 4;
              if (layer < 2 || same_window) expected += 2 * 2 * (4 + 4);  // heads, scores and their sum of values
            }
          }
          product(1, 8, 8);
          product(1, 2 * 12, 8);
          product(1, 8, 12);
        }
      }
    }
    for (int chain = 0; chain < 2; ++chain) {  // the projector and that of deepstack
      product(24, 32, 32);
      product(24, 16, 32);
    }
  }
  Graph graph;
  build_vision(e, {3, image}, graph);
  CHECK(flops(graph) == expected);
}

TEST_CASE("a tower without windows has one attention op, whose tiles see themselves alone", "[vision]") {
  model::Decoder m = reader();
  m.vision->window = m.vision->full_layers = 0;
  m.vision->class_token = true;
  m.vision->image = {.rule = model::ImageRule::tiles, .side = 16, .most = 4};
  const Execution e = execution(m);  // which the ops point into
  Graph graph;
  build_vision(e, {2, model::see(*m.vision, {32, 32})}, graph);
  int ops = 0;
  for (const Op& op : graph) {
    const auto* attention = std::get_if<Attention>(&op.body);
    if (attention == nullptr) continue;
    ++ops;
    CHECK(attention->sequences == 2 * 5);  // four tiles and the whole image
    CHECK(attention->keys == 17);
    CHECK(op.count == 4);
  }
  CHECK(ops == 1);
}

TEST_CASE("devices of the tensor axis take whole images and gather their rows", "[vision]") {
  const model::Decoder m = reader();
  const model::SeenImage image = model::see(*m.vision, {48, 32});
  Graph one;
  Graph shared;
  const Execution alone = execution(m);
  const Execution split = execution(m, 4);
  build_vision(alone, {2, image}, one);
  build_vision(split, {5, image}, shared);  // two on the busiest
  CHECK(flops(shared) == flops(one));
  std::int64_t gathered = 0;
  for (const Op& op : shared) {
    if (const auto* c = std::get_if<Collective>(&op.body)) {
      CHECK(c->rows == 5 * 24);
      CHECK(c->width == 16);
      gathered += op.count;
    }
  }
  CHECK(gathered == 2);
}

TEST_CASE("memory of a tower: two bytes a parameter, and the widest part of a layer", "[vision]") {
  const model::Decoder m = reader();
  const Execution e = execution(m);
  CHECK(cost::vision_weight_bytes(e).value == 2.0 * static_cast<double>(model::count_parameters(*m.vision).total()));
  // 2 images x 96 patches x (8 + 8 + 3 x 12), and 48 tokens x 16 x 2 levels, 2 bytes each.
  CHECK(cost::vision_activation_peak(e, {2, model::see(*m.vision, {48, 32})}).value ==
        2.0 * (192 * (8 + 8 + 36) + 48 * 16 * 2));
}

}  // namespace llmperf::vision_graph_test
