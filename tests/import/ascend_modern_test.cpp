// Kernels of vLLM, SGLang and CANN's recipes on NPUs: which op each is, and what of a step is none. Nothing here was
// recorded: shapes are those of the operators' definitions and of published lists of kernels.
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "import/kernels.h"
#include "import_helpers.h"

namespace llmperf::import::ascend_modern_test {
namespace {

using measure::AttentionShape;
using measure::CacheShape;
using measure::GemmShape;
using measure::LatentShape;
using measure::Phase;
using measure::VectorShape;

Tensor tensor(const std::string& type, Shape shape, const std::string& format = "ND") {
  Tensor t;
  t.shape = std::move(shape);
  t.element = element_type(type);
  make_logical(t, format);
  return t;
}
Tensor bf16(Shape shape) { return tensor("DT_BF16", std::move(shape)); }
Tensor int8(Shape shape) { return tensor("INT8", std::move(shape)); }
Tensor int32(Shape shape) { return tensor("INT32", std::move(shape)); }
Tensor int64(Shape shape) { return tensor("INT64", std::move(shape)); }

template <class Of>
Of shape_of(const Mapped& mapped) {
  INFO(mapped.remark);
  REQUIRE(mapped.row);
  return std::get<Of>(mapped.row->shape);
}
std::string op_of(const Mapped& mapped) { return mapped.row ? mapped.row->op : mapped.remark; }
std::string group_of(const Mapped& mapped) { return mapped.group ? std::string(mapped.group->name) : ""; }

}  // namespace

TEST_CASE("versions and variants of a kernel are the kernel", "[import][ascend]") {
  for (const char* type : {"MatMul", "MatMulV2", "MatMulV3", "MatMulCommon", "MatMulV2AiCore"}) {
    CHECK(shape_of<GemmShape>(ascend_row({type, {bf16({4, 16}), bf16({8, 16})}, {bf16({4, 8})}})) ==
          GemmShape{.m = 4, .n = 8, .k = 16});
  }
  CHECK(shape_of<GemmShape>(ascend_row({"BatchMatMulNd", {bf16({2, 3, 4}), bf16({2, 5, 4})}, {bf16({2, 3, 5})}})) ==
        GemmShape{.m = 3, .n = 5, .k = 4, .batch = 2});
  CHECK(op_of(ascend_row({"AscendQuantV2Aicore", {bf16({4, 8}), bf16({8})}, {int8({4, 8})}})) == "vector:elementwise");
  CHECK(shape_of<VectorShape>(ascend_row({"AddRmsNormBias",
                                          {bf16({4, 8}), bf16({4, 8}), bf16({8}), bf16({8})},
                                          {bf16({4, 8}), tensor("FLOAT", {4, 1}), bf16({4, 8})}})) ==
        VectorShape{.layer = "add_rms_norm", .tokens = 4, .width = 8});
  // Not a version of Scatter, whose second and third inputs it has in another order.
  CHECK(op_of(ascend_row({"ScatterNd", {int64({4, 1}), bf16({4, 8})}, {bf16({9, 8})}})) == "no such op");
}

TEST_CASE("experts with their activation in one kernel are the product of gate and up", "[import][ascend]") {
  // 100 rows for 8 experts: 13 each. [8, 256, 2 x 512] in blocks of 16 x 32.
  const Tensor weights = tensor("INT8", {8, 32, 16, 16, 32}, "FRACTAL_NZ");
  const Tensor scales = tensor("FLOAT", {8, 1024});
  const Tensor per_token = tensor("FLOAT", {100});
  const GemmShape expected{.m = 13, .n = 1024, .k = 256, .batch = 8, .weights = "w8a8"};
  const Mapped first = ascend_row({"GroupedMatmulSwigluQuant",
                                   {int8({100, 256}), weights, scales, per_token, int64({8})},
                                   {int8({100, 512}), per_token}});
  CHECK(shape_of<GemmShape>(first) == expected);
  CHECK(first.row->dtype == Dtype::bf16);
  // The second version has the scale of tokens and the groups first.
  CHECK(shape_of<GemmShape>(ascend_row({"GroupedMatmulSwigluQuantV2",
                                        {int8({100, 256}), per_token, int64({8}), weights, scales},
                                        {int8({100, 512}), per_token}})) == expected);
  CHECK(op_of(ascend_row({"GroupedMatmulSwigluQuant", {int8({100, 256}), weights}, {int8({100, 400})}})) ==
        "shapes do not multiply");
  // What goes down, summed over a token's experts: 100 rows of 25 tokens.
  CHECK(shape_of<GemmShape>(ascend_row({"GroupedMatmulFinalizeRouting",
                                        {int8({100, 512}), tensor("INT8", {8, 8, 32, 16, 32}, "FRACTAL_NZ")},
                                        {tensor("FLOAT", {25, 256})}})) ==
        GemmShape{.m = 13, .n = 256, .k = 512, .batch = 8, .weights = "w8a8"});
  // Sums of int8 that the next kernel scales: a product of int8 alone.
  const Mapped sums = ascend_row({"GroupedMatmulV4", {int8({100, 256}), weights}, {int32({100, 1024})}});
  CHECK(sums.row->dtype == Dtype::int8);
  CHECK(shape_of<GemmShape>(sums) == GemmShape{.m = 13, .n = 1024, .k = 256, .batch = 8});
}

TEST_CASE("a product that moves its batch on the way is a batch of products", "[import][ascend]") {
  const auto product = [](const Shape& x, const Shape& w, const Shape& out) {
    return ascend_row({"TransposeBatchMatMul", {bf16(x), bf16(w)}, {bf16(out)}});
  };
  const GemmShape expected{.m = 16, .n = 512, .k = 128, .batch = 4};
  CHECK(shape_of<GemmShape>(product({16, 4, 128}, {4, 128, 512}, {16, 4, 512})) == expected);
  CHECK(shape_of<GemmShape>(product({4, 16, 128}, {4, 128, 512}, {16, 2048})) == expected);
  CHECK(op_of(product({16, 5, 128}, {4, 128, 512}, {16, 4, 512})) == "shapes do not multiply");
  CHECK(op_of(product({16, 4, 128}, {4, 128, 512}, {16, 4, 500})) == "shapes do not multiply");
  CHECK(op_of(product({16, 512}, {4, 128, 512}, {16, 4, 512})) == "shapes not understood");
}

TEST_CASE("the prologue of latent attention by ATB is that of CANN", "[import][ascend]") {
  std::vector<Tensor> inputs = {bf16({5, 7168}), tensor("INT8", {1, 224, 2112, 32})};
  inputs.resize(10);
  inputs.push_back(bf16({16, 128, 512}));
  const Mapped row = ascend_row({"mla_preprocess_0_mix_aic", inputs, {bf16({5, 16, 512})}});
  CHECK(op_of(row) == "mla_prolog");
  CHECK(shape_of<LatentShape>(row) == LatentShape{Phase::decode, 5, 1, 1, 16, "", LatentShape::Part::prolog, "w8a8"});
  inputs[0] = bf16({5, 6144});
  CHECK(op_of(ascend_row({"mla_preprocess_0_mix_aic", inputs, {}})) == "widths of another model");
}

TEST_CASE("prompts behind each other are read when they must be alike", "[import][ascend]") {
  const auto attention = [](std::int64_t sequences, std::optional<std::int64_t> kv_len, std::int64_t rotary = 0) {
    std::vector<Tensor> inputs(26);
    inputs[0] = inputs[1] = inputs[2] = bf16({12, 16, 128});
    inputs[4] = int8({2048, 2048});
    inputs[5] = inputs[6] = int64({sequences});
    if (rotary > 0) inputs[24] = inputs[25] = bf16({12, 16, rotary});
    return ascend_row({.type = "FusedInferAttentionScore",
                       .inputs = inputs,
                       .outputs = {bf16({12, 16, 128}), tensor("FLOAT", {12, 16, 1})},
                       .kv_len = kv_len});
  };
  // One list entry: one sequence of all tokens.
  CHECK(shape_of<AttentionShape>(attention(1, {})) == AttentionShape{Phase::prefill, 1, 12, 12, 16, 16, 128, true});
  CHECK(op_of(attention(2, {})) == "lengths are not in the shapes: `kv-len`");
  CHECK(shape_of<AttentionShape>(attention(2, 6)) == AttentionShape{Phase::prefill, 2, 6, 6, 16, 16, 128, true});
  CHECK(op_of(attention(2, 4)) == "lengths are not in the shapes: `kv-len`");  // three of 4, and two are listed
  // 64 rotated elements beside 128: latent attention on expanded keys.
  CHECK(op_of(attention(1, {}, 64)) == "mla_prefill");
  CHECK(shape_of<LatentShape>(attention(2, 6, 64)) == LatentShape{Phase::prefill, 2, 6, 6, 16});

  const Tensor q = bf16({12, 16, 128});
  const Tensor rotated = bf16({12, 16, 64});
  const AscendKernel ring{.type = "RINGMLAPrefillBF16Kernel",
                          .inputs = {q, rotated, q, rotated, q, bf16({512, 512})},
                          .outputs = {q},
                          .kv_len = 12};
  CHECK(shape_of<LatentShape>(ascend_row(ring)) == LatentShape{Phase::prefill, 1, 12, 12, 16});
  AscendKernel unpad{.type = "UnpadFlashAttentionBF16NdKernel", .inputs = {q, q, q}, .outputs = {q}};
  CHECK(op_of(ascend_row(unpad)) == "lengths are not in the shapes: `kv-len`");
  unpad.kv_len = 6;
  CHECK(shape_of<AttentionShape>(ascend_row(unpad)).batch == 2);
}

TEST_CASE("several new tokens of every sequence on pages, and pages as NPUs store them", "[import][ascend]") {
  const auto attention = [](const Shape& query, const Shape& pool, bool masked = true) {
    std::vector<Tensor> inputs(15);
    inputs[0] = bf16(query);
    inputs[1] = inputs[2] = bf16(pool);
    if (masked) inputs[4] = int8({2048, 2048});
    inputs[14] = int32({8, 16});
    return ascend_row(
        {.type = "FusedInferAttentionScoreV3", .inputs = inputs, .outputs = {bf16(query)}, .kv_len = 1000});
  };
  const Mapped verified = attention({16, 32, 128}, {99, 128, 1024});  // 16 tokens of 8 sequences
  CHECK(op_of(verified) == "attention_prefill");
  CHECK(shape_of<AttentionShape>(verified) == AttentionShape{Phase::prefill, 8, 2, 1000, 32, 8, 128, true});
  CHECK_FALSE(shape_of<AttentionShape>(attention({16, 32, 128}, {99, 128, 1024}, false)).causal);
  // [pages, kv_heads, 128 / 16, tokens, 16].
  CHECK(shape_of<AttentionShape>(attention({8, 32, 128}, {99, 8, 8, 128, 16})) ==
        AttentionShape{Phase::decode, 8, 1, 1000, 32, 8, 128, true});
  CHECK(shape_of<LatentShape>(attention({16, 64, 512}, {99, 1, 32, 128, 16})) ==
        LatentShape{Phase::decode, 8, 2, 1000, 64});
}

TEST_CASE("kernels of ATB have their tensors in an order of their own", "[import][ascend]") {
  const Tensor pool = bf16({99, 128, 8, 128});
  const AscendKernel paged{.type = "PagedAttentionMaskNdKernel",
                           .inputs = {bf16({8, 32, 128}), pool, pool, int32({8, 16}), int32({8})},
                           .outputs = {bf16({8, 32, 128})},
                           .kv_len = 1000};
  CHECK(shape_of<AttentionShape>(ascend_row(paged)) == AttentionShape{Phase::decode, 8, 1, 1000, 32, 8, 128, true});
  const AscendKernel latent{.type = "PagedMultiLatentAttentionSplitCacheMaskNdKernel",
                            .inputs = {bf16({8, 16, 512}), bf16({8, 16, 64}), bf16({99, 128, 1, 512}),
                                       bf16({99, 128, 1, 64}), int32({8, 16}), int32({8})},
                            .outputs = {bf16({8, 16, 512})},
                            .kv_len = 1000};
  CHECK(shape_of<LatentShape>(ascend_row(latent)) == LatentShape{Phase::decode, 8, 1, 1000, 16});
  for (const char* type : {"ReshapeAndCacheNdKernel", "ReshapeAndCache", "ScatterPaKvCache"}) {
    CHECK(shape_of<CacheShape>(ascend_row({type, {bf16({9, 8, 128}), pool}, {pool}})) == CacheShape{9, 8, 128});
  }
  const Tensor rotated = bf16({3, 128});
  CHECK(shape_of<VectorShape>(ascend_row(
            {"AtbRopeKernel", {bf16({3, 512}), bf16({3, 128}), rotated, rotated}, {bf16({3, 512}), bf16({3, 128})}})) ==
        VectorShape{.layer = "rope", .tokens = 15, .width = 128, .heads = 4, .kv_heads = 1});
}

TEST_CASE("a compiler's kernel is one pass over its tensors where it names them", "[import][ascend]") {
  const auto bytes_of = [](const Mapped& row) { return shape_of<VectorShape>(row).bytes.value; };
  CHECK(bytes_of(ascend_row({"split_qkv_rmsnorm_rope_kernel",
                             {bf16({5, 768}), bf16({128})},
                             {bf16({5, 512}), bf16({5, 128}), bf16({5, 128})}})) == 2 * (5 * 768 + 128 + 5 * 768));
  CHECK(bytes_of(ascend_row({"muls_add_kernel", {bf16({4, 8}), bf16({4, 8})}, {bf16({4, 8})}})) == 2 * 3 * 32);
  CHECK(shape_of<VectorShape>(ascend_row({"_triton_rope",
                                          {bf16({3, 4, 128}), bf16({3, 1, 128}), bf16({3, 64}), bf16({3, 64})},
                                          {bf16({3, 4, 128})}})) ==
        VectorShape{.layer = "rope", .tokens = 15, .width = 128, .heads = 4, .kv_heads = 1});
  CHECK(
      shape_of<VectorShape>(ascend_row({"_triton_rope_siso", {bf16({3, 4, 128}), bf16({3, 64})}, {bf16({3, 4, 128})}}))
          .tokens == 12);
  // More than one pass, or who knows how many.
  CHECK(op_of(ascend_row({"chunk_gated_delta_rule_fwd_kernel", {bf16({4, 8})}, {bf16({4, 8})}})) == "no such op");
  CHECK(group_of(ascend_row({"chunk_gated_delta_rule_fwd_kernel", {}, {}})) == "");
  CHECK(group_of(ascend_row({"triton_poi_fused_add_mul_3", {}, {}})) == "fused, without shapes");
  CHECK(group_of(ascend_row({"rejection_random_sample_kernel", {}, {}})) == "sampling");
}

TEST_CASE("a part that is moved is read once and written once", "[import][ascend]") {
  for (const char* type : {"Slice", "SliceAiCore", "StridedSlice", "AsStrided", "GatherElementsV2", "PadV3", "Index"}) {
    CHECK(shape_of<VectorShape>(ascend_row({type, {bf16({1000, 256}), int64({2}), int64({2})}, {bf16({1000, 8})}}))
              .bytes.value == 2 * 2 * 8000);
  }
  CHECK(shape_of<VectorShape>(
            ascend_row(
                {"ScatterNdUpdateAiCore", {bf16({222592, 128}), int32({3, 1}), bf16({3, 128})}, {bf16({222592, 128})}}))
            .bytes.value == 2 * 2 * 3 * 128);
  // With a scalar: one tensor in, one out.
  CHECK(shape_of<VectorShape>(ascend_row({"Mul", {bf16({4, 8}), bf16({})}, {bf16({4, 8})}})).bytes.value == 2 * 2 * 32);
  CHECK(op_of(ascend_row({"ArgMaxV2", {tensor("FLOAT", {16, 151936}), int64({})}, {int32({16})}})) ==
        "vector:sampling");
}

TEST_CASE("what is no op of a model is in a group, and what has no row for another reason is not", "[import][ascend]") {
  const auto none = [](const char* type) { return group_of(ascend_row({type, {}, {}})); };
  CHECK(none("FlashAttentionScoreGrad") == "gradients, optimisers");
  CHECK(none("ApplyAdamWV2") == "gradients, optimisers");
  CHECK(none("ApplyTopKTopPCustom") == "sampling");
  CHECK(none("Sort") == "sampling");
  CHECK(none("TopKV2") == "sampling");
  CHECK(none("Cast") == "indices, masks, scalars");
  CHECK(none("Add") == "indices, masks, scalars");
  CHECK(none("IndexPutV2") == "indices, masks, scalars");
  CHECK(none("MatMulV2") == "");
  CHECK(none("RmsNorm") == "");
  CHECK(none("LightningIndexer") == "");
  CHECK(group_of(ascend_row({"Cast", {int64({4})}, {int64({4})}})) == "indices, masks, scalars");
  CHECK(group_of(ascend_row({"MatMulV2", {bf16({4, 5}), bf16({6, 7})}, {bf16({4, 7})}})) == "contradictory shapes");
  CHECK(group_of(ascend_row({"MatMulV2", {bf16({4, 5}), bf16({5, 7})}, {bf16({4, 7})}})) == "");
  CHECK(group_of(ascend_row({"Add", {}, {}}, Class::host)) == "on a CPU");
  CHECK(group_of(ascend_row({"EVENT_WAIT", {}, {}}, Class::other)) == "beside the cores");
  CHECK(group_of(ascend_row({"hcom_allReduce_", {}, {}}, Class::communication)) == "");
  for (const char* type : {"DispatchFFNCombine", "MatmulAllReduceAddRmsNorm", "MoeDistributeCombineAddRmsNorm",
                           "AivKernel", "HcclAicpuKernel"}) {
    CHECK(ascend_class("MIX_AIC", type) == Class::communication);
  }
}

TEST_CASE("of a decode step of a quantised mixture, all but one kernel is a row or in a group", "[import][ascend]") {
  std::ifstream file(std::string(LLMPERF_SOURCE_DIR) + "/tests/import/decode_step.csv");
  std::stringstream text;
  text << file.rdbuf();
  const Imported i = imported(Source::torch_npu, text.str(), {.kv_len = 2048});
  double all = 0;
  double rows = 0;
  double groups = 0;
  for (const TypeSummary& t : i.types) {
    CHECK((t.in_rows + t.in_groups).value <= t.total.value + 1e-12);
    if (t.of != Class::kernel) continue;
    all += t.total.value;
    rows += t.in_rows.value;
    groups += t.in_groups.value;
  }
  // Sort and a scatter for the sampler, a triton kernel without shapes, two of int64; LightningIndexer has 24 us.
  CHECK(all * 1e6 == Approx(1735.4));
  CHECK(groups * 1e6 == Approx(235.4 + 12.7 + 1.3 + 1.5 + 2.2));
  CHECK((all - rows - groups) * 1e6 == Approx(24));
  CHECK((rows + groups) / all > 0.98);
  CHECK(type(i, "FusedInferAttentionScore").imported == 2);
  CHECK(type(i, "GroupedMatmul").imported == 2);
  REQUIRE(i.groups.size() == 5);
  CHECK(i.groups[0].group->name == "sampling");
  CHECK(i.groups[0].total.value * 1e6 == Approx(235.4));
  CHECK(i.groups[1].group->name == "indices, masks, scalars");
  CHECK(i.groups[1].count == 3);
  CHECK(i.groups[2].group->name == "fused, without shapes");
  CHECK(i.groups[3].of == Class::host);
  CHECK(i.groups[4].of == Class::other);
}

}  // namespace llmperf::import::ascend_modern_test
