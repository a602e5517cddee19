// Results that stay in the tiles' memory between ops: which of them are whose operands, what that saves by hand, and
// that it is never slower and never more than there is.
#include <cmath>

#include "catch.h"
#include "hardware/device.h"
#include "mapper/machine.h"
#include "mapper/tile/residency.h"

namespace llmperf::mapper::tile::tile_residency_test {
namespace {

using graph::Op;
using graph::Tag;
using graph::VectorKind;

const model::StoredFormat kBf16{.bits = 16};

Op product(Tag tag, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {
      .name = name(tag), .tag = tag, .layer_kind = 0, .body = graph::Gemm{.m = m, .n = n, .k = k, .weights = &kBf16}};
}
Op with_norm(Op op) {
  std::get<graph::Gemm>(op.body).joined.input = VectorKind::rms_norm;
  return op;
}
Op with_add(Op op) {
  auto& joined = std::get<graph::Gemm>(op.body).joined;
  joined.output = VectorKind::add;
  joined.reads = 1;
  return op;
}
Op vector(Tag tag, VectorKind kind, std::int64_t rows, std::int64_t width, double reads = 1) {
  return {.name = name(tag),
          .tag = tag,
          .layer_kind = 0,
          .body = graph::Vector{.kind = kind, .rows = rows, .width = width, .reads = reads}};
}
Op attention(std::int64_t tokens, std::int64_t heads) {
  const model::ElementFormat cached = model::element_format(Dtype::bf16);
  return {.name = "attention",
          .tag = Tag::attention,
          .layer_kind = 0,
          .body = graph::Attention{.sequences = 1,
                                   .q_tokens = tokens,
                                   .heads = heads,
                                   .kv_heads = heads,
                                   .qk_dim = 128,
                                   .v_dim = 128,
                                   .cached = {cached, cached}}};
}

// A layer of Llama's kind whose vector work is joined to its products.
std::vector<Op> fused_layer(std::int64_t tokens, std::int64_t hidden, std::int64_t wide) {
  Op qkv = with_norm(product(Tag::qkv_proj, tokens, 3 * hidden, hidden));
  auto& joined = std::get<graph::Gemm>(qkv.body).joined;
  joined.output = VectorKind::rope;
  joined.share = 2.0 / 3;
  joined.cached = 2 * hidden;
  std::get<graph::Gemm>(qkv.body).cached = model::element_format(Dtype::bf16);
  Op up = with_norm(product(Tag::gate_up_proj, tokens, 2 * wide, hidden));
  std::get<graph::Gemm>(up.body).joined.output = VectorKind::gated_activation;
  std::get<graph::Gemm>(up.body).joined.share = std::get<graph::Gemm>(up.body).joined.results = 0.5;
  return {qkv, attention(tokens, hidden / 128), with_add(product(Tag::o_proj, tokens, hidden, hidden)), up,
          with_add(product(Tag::down_proj, tokens, hidden, wide))};
}

struct Placed {
  explicit Placed(std::vector<Op> given, std::int64_t count = 1, const ResidencyOptions& options = {})
      : device(hardware::load_device("tx8")), machine(device, cost::make_cluster(device)), ops(std::move(given)) {
    for (Op& op : ops) op.count = count;
    for (const Op& op : ops) works.push_back(machine.work(op));
    std::vector<StepOp> step;
    for (std::size_t i = 0; i < ops.size(); ++i) step.push_back({&ops[i], &works[i], machine.time(ops[i], works[i])});
    result = place_step(*machine.tiles(), step, options);
  }
  hardware::Device device;
  mapper::Machine machine;
  std::vector<Op> ops;
  std::vector<cost::Work> works;
  PlacedStep result;
};

std::vector<Tensor> flow(const std::vector<Op>& ops) {
  std::vector<const Op*> pointers;
  for (const Op& op : ops) pointers.push_back(&op);
  return tensors_of(pointers);
}

}  // namespace

TEST_CASE("the tags of a layer say whose results are whose operands") {
  const std::vector<Tensor> tensors = flow(fused_layer(64, 256, 512));
  REQUIRE(tensors.size() == 4);
  // Queries; attention; the residual stream, which the product behind the next adds to; the activation.
  CHECK((tensors[0].op == 0 && tensors[0].elements == 64 * 256 && tensors[0].uses.size() == 1));
  CHECK(tensors[0].uses[0].op == 1);
  CHECK((tensors[1].op == 1 && tensors[1].uses[0].op == 2));
  REQUIRE((tensors[2].op == 2 && tensors[2].uses.size() == 2));
  CHECK((tensors[2].uses[0].op == 3 && !tensors[2].uses[0].residual));
  CHECK((tensors[2].uses[1].op == 4 && tensors[2].uses[1].residual));
  CHECK((tensors[3].op == 3 && tensors[3].elements == 64 * 512 && tensors[3].uses[0].op == 4));
  for (const Tensor& t : tensors) CHECK(!t.leaves);
}

TEST_CASE("rotation works in place, and an op that is not known needs everything in memory") {
  std::vector<Op> ops = {product(Tag::q_proj, 64, 256, 256), product(Tag::k_proj, 64, 256, 256),
                         product(Tag::v_proj, 64, 256, 256), vector(Tag::rope_q, VectorKind::rope, 128, 128),
                         vector(Tag::rope_k, VectorKind::rope, 128, 128)};
  std::vector<Tensor> tensors = flow(ops);
  REQUIRE(tensors.size() == 2);
  for (const Tensor& t : tensors) {
    CHECK((t.uses.size() == 1 && t.uses[0].in_place && t.leaves));  // the sequence ends here
  }
  ops = {vector(Tag::attention_add, VectorKind::add, 64, 256, 2), vector(Tag::router, VectorKind::router, 64, 8),
         vector(Tag::mlp_norm, VectorKind::rms_norm, 64, 256)};
  CHECK(flow(ops).empty());
}

TEST_CASE("what stays takes exactly its bytes less of the DRAM") {
  // o_proj of 64 tokens, the residual stream, and gate and up: 64 x 4096 elements are written, and read once.
  const std::vector<Op> ops = {with_add(product(Tag::o_proj, 64, 4096, 4096)),
                               with_norm(product(Tag::gate_up_proj, 64, 4096, 4096))};
  const Placed placed(ops);
  const PlacedStep& step = placed.result;
  CHECK(step.ops[1].from == std::vector<std::string_view>{"o_proj"});
  CHECK(step.ops[0].to == PlacedOp::To::both);  // the stream goes on
  CHECK(step.dram == Approx(step.dram_apart - 64 * 4096 * 2));
  CHECK(step.seconds < step.apart);
  const Placed apart(ops, 1, {.keep = false});
  CHECK(apart.result.seconds == apart.result.apart);
  CHECK(apart.result.dram == apart.result.dram_apart);
  CHECK(apart.result.apart == Approx(step.apart));
}

TEST_CASE("a step with results that stay is never slower, and fits into the tiles") {
  for (const std::int64_t tokens : {1, 16, 200, 1024}) {
    const Placed placed(fused_layer(tokens, 1024, 2816), 3);
    const PlacedStep& step = placed.result;
    INFO(tokens);
    CHECK(step.seconds <= step.apart);
    CHECK(step.dram <= step.dram_apart * (1 + 1e-9));
    double sum = 0;
    for (const PlacedOp& op : step.ops) {
      REQUIRE(op.mapping);
      CHECK(op.mapping->sram + op.resident <= 3 * kMiB);
      sum += 3 * op.seconds;
    }
    CHECK(sum == Approx(step.seconds));
  }
}

TEST_CASE("32 layers of Llama-7B over 4096 tokens take less with results that stay") {
  std::vector<Op> layer = fused_layer(4096, 4096, 11008);
  auto& a = std::get<graph::Attention>(layer[1].body);
  a.keys = 4096;  // every query sees every key
  const Placed placed(layer, 32);
  CHECK(placed.result.apart <= 0.560);
  CHECK(placed.result.seconds <= 0.545);
}

}  // namespace llmperf::mapper::tile::tile_residency_test
