// Which op a kernel of an NPU is, from its type and tensors.
#include "catch.h"
#include "import/kernels.h"

namespace llmperf::import::ascend_ops_test {
namespace {

using measure::AttentionShape;
using measure::CacheShape;
using measure::CollectiveShape;
using measure::GatherShape;
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
Tensor absent() { return bf16({}); }

template <class Of>
Of shape_of(const Mapped& mapped) {
  INFO(mapped.remark);
  REQUIRE(mapped.row);
  return std::get<Of>(mapped.row->shape);
}
std::string op_of(const Mapped& mapped) { return mapped.row ? mapped.row->op : mapped.remark; }

}  // namespace

TEST_CASE("the storage shape of FRACTAL_NZ is undone", "[import][tensor]") {
  // int8 [K = 3072, N = 12288]: blocks of 16 x 32.
  CHECK(tensor("INT8", {384, 192, 16, 32}, "FRACTAL_NZ").shape == Shape{3072, 12288});
  // 16-bit types have blocks of 16 x 16.
  CHECK(tensor("FLOAT16", {768, 192, 16, 16}, "FRACTAL_NZ").shape == Shape{3072, 12288});
  CHECK(tensor("FLOAT16", {5, 768, 192, 16, 16}, "FRACTAL_NZ").shape == Shape{5, 3072, 12288});
  CHECK(tensor("FLOAT16", {3072, 12288}, "FRACTAL_NZ").shape == Shape{3072, 12288});
  CHECK(tensor("FLOAT16", {384, 192, 16, 16}, "ND").shape == Shape{384, 192, 16, 16});
}

TEST_CASE("transpositions of a product are found from its shapes", "[import][ascend]") {
  const auto product = [](Shape a, Shape b, Shape out) {
    return ascend_row({"MatMulV3", {bf16(std::move(a)), bf16(std::move(b))}, {bf16(std::move(out))}});
  };
  const GemmShape expected{.m = 64, .n = 512, .k = 4096};
  CHECK(shape_of<GemmShape>(product({64, 4096}, {4096, 512}, {64, 512})) == expected);
  CHECK(shape_of<GemmShape>(product({64, 4096}, {512, 4096}, {64, 512})) == expected);
  CHECK(shape_of<GemmShape>(product({4096, 64}, {4096, 512}, {64, 512})) == expected);
  CHECK(shape_of<GemmShape>(product({4096, 64}, {512, 4096}, {64, 512})) == expected);
  CHECK(shape_of<GemmShape>(product({64, 64}, {64, 64}, {64, 64})) == GemmShape{.m = 64, .n = 64, .k = 64});
  CHECK(shape_of<GemmShape>(product({2, 32, 4096}, {4096, 512}, {2, 32, 512})) == expected);  // rows of two sequences
  CHECK(op_of(product({64, 4096}, {4095, 512}, {64, 512})) == "shapes do not multiply");
  CHECK(op_of(product({64, 4096}, {4096, 512}, {64, 511})) == "shapes do not multiply");
  CHECK(op_of(product({64, 4096}, {4096, 512}, {})) == "no shapes");
  CHECK(op_of(ascend_row({"MatMul", {}, {}})) == "no shapes");
  CHECK(op_of(ascend_row({"MatMul", {bf16({4, 4}), tensor("FLOAT", {4, 4})}, {bf16({4, 4})}})) ==
        "operands of different types");
}

TEST_CASE("a batch of products is one op", "[import][ascend]") {
  const auto product = [](Shape a, Shape b, Shape out) {
    return ascend_row({"BatchMatMulV2", {bf16(std::move(a)), bf16(std::move(b))}, {bf16(std::move(out))}});
  };
  const GemmShape expected{.m = 16, .n = 24, .k = 128, .batch = 6};
  CHECK(shape_of<GemmShape>(product({2, 3, 16, 128}, {2, 3, 24, 128}, {2, 3, 16, 24})) == expected);
  CHECK(shape_of<GemmShape>(product({6, 128, 16}, {6, 128, 24}, {6, 16, 24})) == expected);
  CHECK(op_of(product({6, 16, 128}, {5, 128, 24}, {6, 16, 24})) == "shapes do not multiply");
  // One matrix for all: more rows of one product.
  CHECK(shape_of<GemmShape>(product({6, 16, 128}, {1, 128, 24}, {6, 16, 24})) == GemmShape{.m = 96, .n = 24, .k = 128});
}

TEST_CASE("quantised products name the scheme of their weights", "[import][ascend]") {
  const Tensor x = tensor("INT8", {100, 3072});
  const Tensor nz = tensor("INT8", {384, 192, 16, 32}, "FRACTAL_NZ");
  const Mapped w8a8 = ascend_row({"QuantBatchMatmulV3", {x, nz, tensor("UINT64", {12288})}, {bf16({100, 12288})}});
  CHECK(shape_of<GemmShape>(w8a8) == GemmShape{.m = 100, .n = 12288, .k = 3072, .weights = "w8a8"});
  CHECK(w8a8.row->dtype == Dtype::bf16);
  // Blocks are padded: 12280 columns are stored in as many.
  CHECK(shape_of<GemmShape>(ascend_row({"QuantBatchMatmulV3", {x, nz}, {bf16({100, 12280})}})).n == 12280);
  CHECK(op_of(ascend_row({"QuantBatchMatmulV3", {x, nz}, {bf16({100, 12000})}})) == "shapes do not multiply");
  // Sums that another kernel scales: both operands of the row are int8.
  const Mapped sums = ascend_row({"QuantBatchMatmulV3", {x, nz}, {tensor("INT32", {100, 12288})}});
  CHECK(shape_of<GemmShape>(sums) == GemmShape{.m = 100, .n = 12288, .k = 3072});
  CHECK(sums.row->dtype == Dtype::int8);
  CHECK(op_of(ascend_row({"QuantBatchMatmulV3", {x, nz}, {tensor("INT8", {100, 12288})}})) == "result is not scaled");

  const Tensor a = bf16({4, 256});
  const Mapped int8 =
      ascend_row({"WeightQuantBatchMatmulV2", {a, tensor("INT8", {256, 512}), bf16({1, 512})}, {bf16({4, 512})}});
  CHECK(shape_of<GemmShape>(int8) == GemmShape{.m = 4, .n = 512, .k = 256, .weights = "int8"});
  const Mapped int4 =
      ascend_row({"WeightQuantBatchMatmulV2", {a, tensor("INT4", {256, 512}), bf16({2, 512})}, {bf16({4, 512})}});
  CHECK(shape_of<GemmShape>(int4).weights == "w4a16-g128");
  // Eight weights of 4 bits in an int32.
  const Mapped packed =
      ascend_row({"WeightQuantBatchMatmulV2", {a, tensor("INT32", {256, 64}), bf16({4, 512})}, {bf16({4, 512})}});
  CHECK(shape_of<GemmShape>(packed).weights == "w4a16-g64");
  CHECK(op_of(ascend_row({"WeightQuantBatchMatmulV2", {a, tensor("INT4", {256, 512})}, {bf16({4, 512})}})) ==
        "group of the weights unknown");
}

TEST_CASE("training attention says its heads in the statistics of the softmax", "[import][ascend]") {
  const auto attention = [](Shape q, const Shape& k, Shape statistics, const Tensor& mask) {
    const Tensor s = tensor("FLOAT", std::move(statistics));
    return ascend_row({"FlashAttentionScore",
                       {bf16(std::move(q)), bf16(k), bf16(k), absent(), absent(), absent(), mask},
                       {s, s, absent(), absent()}});
  };
  const Tensor mask = tensor("BOOL", {4096, 4096});
  const AttentionShape expected{.phase = Phase::prefill,
                                .batch = 2,
                                .q_len = 4096,
                                .kv_len = 4096,
                                .heads = 4,
                                .kv_heads = 4,
                                .head_dim = 128,
                                .causal = true};
  CHECK(shape_of<AttentionShape>(attention({4096, 2, 512}, {4096, 2, 512}, {2, 4, 4096, 8}, mask)) == expected);  // SBH
  CHECK(shape_of<AttentionShape>(attention({2, 4096, 512}, {2, 4096, 512}, {2, 4, 4096, 8}, mask)) == expected);  // BSH
  CHECK(shape_of<AttentionShape>(attention({2, 4, 4096, 128}, {2, 4, 4096, 128}, {2, 4, 4096, 8}, mask)) == expected);
  CHECK(shape_of<AttentionShape>(attention({2, 4096, 4, 128}, {2, 4096, 4, 128}, {2, 4, 4096, 8}, mask)) == expected);
  AttentionShape grouped = expected;
  grouped.kv_heads = 2;
  grouped.causal = false;
  CHECK(shape_of<AttentionShape>(attention({4096, 2, 512}, {4096, 2, 256}, {2, 4, 4096, 8}, absent())) == grouped);
  // 511 is not three heads; sequences behind each other ([T, N, D]) do not say their lengths.
  CHECK(op_of(attention({4096, 2, 511}, {4096, 2, 512}, {2, 3, 4096, 8}, mask)) == "heads are not in the shapes");
  CHECK(op_of(attention({8192, 4, 128}, {8192, 4, 128}, {8192, 4, 8}, mask)) == "lengths are not in the shapes");
  CHECK(op_of(ascend_row({"FlashAttentionScoreGrad", {bf16({4096, 2, 512})}, {bf16({4096, 2, 512})}})) == "no such op");
}

TEST_CASE("inference attention is taken when only one reading of its shapes makes sense", "[import][ascend]") {
  const auto attention = [](const char* type, const Shape& q, const Shape& k, const Tensor& mask) {
    return ascend_row({type, {bf16(q), bf16(k), bf16(k), absent(), mask}, {bf16(q)}});
  };
  // One query of 32 heads on 8; read as 32 queries of one head there would be 2048 KV heads.
  const Mapped decode = attention("IncreFlashAttention", {3, 32, 1, 128}, {3, 8, 2048, 128}, absent());
  CHECK(op_of(decode) == "attention_decode");
  CHECK(shape_of<AttentionShape>(decode) == AttentionShape{.phase = Phase::decode,
                                                           .batch = 3,
                                                           .q_len = 1,
                                                           .kv_len = 2048,
                                                           .heads = 32,
                                                           .kv_heads = 8,
                                                           .head_dim = 128,
                                                           .causal = true});
  const Tensor mask = tensor("BOOL", {1, 1, 512, 512});
  const Mapped prefill = attention("PromptFlashAttention", {1, 512, 32, 128}, {1, 512, 8, 128}, mask);
  CHECK(op_of(prefill) == "attention_prefill");
  CHECK(shape_of<AttentionShape>(prefill).heads == 32);
  CHECK(shape_of<AttentionShape>(prefill).causal);
  CHECK(op_of(attention("PromptFlashAttention", {1, 512, 32, 128}, {1, 512, 32, 128}, absent())) ==
        "layout is not in the shapes");
  CHECK(op_of(attention("PromptFlashAttention", {1, 512, 4096}, {1, 512, 1024}, mask)) ==
        "heads are not in the shapes");

  std::vector<Tensor> paged(15);
  paged[0] = bf16({8, 32, 1, 128});
  paged[1] = paged[2] = bf16({1000, 8, 128, 128});
  paged[14] = tensor("INT32", {8, 16});
  CHECK(op_of(ascend_row({"FusedInferAttentionScore", paged, {bf16({8, 32, 1, 128})}})) ==
        "keys are in pages: `kv-len`");
}

TEST_CASE("attention on pages is a row with the tokens in the cache", "[import][ascend]") {
  const auto attention = [](const Shape& query, const Tensor& pool, std::int64_t kv_len = 1000,
                            const char* type = "FusedInferAttentionScore", std::size_t table = 14) {
    std::vector<Tensor> inputs(table + 1);
    inputs[0] = bf16(query);
    inputs[1] = inputs[2] = pool;
    inputs[table] = tensor("INT32", {8, 16});
    return ascend_row({.type = type, .inputs = inputs, .outputs = {bf16(query)}, .kv_len = kv_len});
  };
  const AttentionShape expected{Phase::decode, 8, 1, 1000, 32, 8, 128, true};
  for (const Shape& query : {Shape{8, 32, 128}, Shape{8, 1, 32, 128}, Shape{8, 32, 1, 128}}) {
    for (const Shape& pool : {Shape{99, 128, 1024}, Shape{99, 128, 8, 128}, Shape{99, 8, 128, 128}}) {
      CHECK(shape_of<AttentionShape>(attention(query, bf16(pool))) == expected);
    }
  }
  CHECK(op_of(attention({8, 32, 128}, bf16({99, 8, 128, 128}), 1000, "IncreFlashAttention", 13)) == "attention_decode");
  CHECK(shape_of<AttentionShape>(attention({8, 32, 128}, tensor("INT8", {99, 128, 1024}))).kv_dtype == "int8");
  // Pages of 16 tokens with 32 heads, or of 32 tokens with 16.
  CHECK(op_of(attention({8, 32, 128}, bf16({99, 16, 32, 128}), 200)) == "layout is not in the shapes");
  CHECK(op_of(attention({8, 32, 128}, bf16({99, 128, 1000}))) == "shapes not understood");
  CHECK(op_of(attention({8, 32, 128}, bf16({99, 128, 1024}), 2049)) == "fewer tokens than `kv-len` in its pages");
  CHECK(op_of(attention({17, 32, 128}, bf16({99, 128, 1024}))) == "lengths are not in the shapes");
  CHECK(op_of(attention({8, 4, 32, 128}, bf16({99, 128, 1024}))) == "lengths are not in the shapes");
  CHECK(op_of(attention({8, 1, 4096}, bf16({99, 128, 1024}))) == "heads are not in the shapes");
  // One KV head of width 512 is a latent.
  for (const Shape& pool : {Shape{99, 128, 512}, Shape{99, 128, 1, 512}, Shape{99, 1, 128, 512}}) {
    const Mapped latent = attention({8, 128, 512}, bf16(pool));
    CHECK(op_of(latent) == "mla_decode");
    CHECK(shape_of<LatentShape>(latent) == LatentShape{Phase::decode, 8, 1, 1000, 128});
  }
  CHECK(op_of(attention({8, 32, 512}, bf16({99, 128, 2, 512}))) == "attention_decode");
}

TEST_CASE("experts are a batch of products that share the rows evenly", "[import][ascend]") {
  const auto product = [](const Tensor& x, const Tensor& weights, const Tensor& out, const Tensor& scales = {}) {
    return ascend_row({"GroupedMatmul", {x, weights, {}, {}, {}, scales}, {out}});
  };
  const GemmShape expected{.m = 13, .n = 512, .k = 256, .batch = 8};  // 100 rows / 8
  CHECK(shape_of<GemmShape>(product(bf16({100, 256}), bf16({8, 256, 512}), bf16({100, 512}))) == expected);
  CHECK(shape_of<GemmShape>(product(bf16({100, 256}), bf16({8, 512, 256}), bf16({100, 512}))) == expected);
  CHECK(shape_of<GemmShape>(product(bf16({3, 256}), bf16({8, 512, 256}), bf16({3, 512}))) ==
        GemmShape{.m = 1, .n = 512, .k = 256, .batch = 3});
  const Tensor int8 = tensor("INT8", {8, 16, 16, 16, 32}, "FRACTAL_NZ");
  GemmShape w8a8 = expected;
  w8a8.weights = "w8a8";
  CHECK(shape_of<GemmShape>(product(tensor("INT8", {100, 256}), int8, bf16({100, 512}))) == w8a8);
  CHECK(op_of(product(tensor("INT8", {100, 256}), int8, tensor("INT8", {100, 512}))) == "result is not scaled");
  CHECK(shape_of<GemmShape>(product(bf16({100, 256}), int8, bf16({100, 512}))).weights == "int8");
  const Tensor int4 = tensor("INT4", {8, 256, 512});
  CHECK(shape_of<GemmShape>(product(bf16({100, 256}), int4, bf16({100, 512}), bf16({8, 4, 512}))).weights ==
        "w4a16-g64");
  CHECK(op_of(product(bf16({100, 256}), int4, bf16({100, 512}), bf16({8, 512}))) == "group of the weights unknown");
  CHECK(op_of(product(bf16({100, 256}), bf16({8, 255, 512}), bf16({100, 512}))) == "shapes do not multiply");
  CHECK(op_of(product(bf16({100, 256}), bf16({256, 512}), bf16({100, 512}))) == "shapes not understood");
  CHECK(op_of(product(bf16({100, 256}), bf16({0, 256, 512}), bf16({100, 512}))) == "no shapes");
}

TEST_CASE("tokens on their way to experts and back are an all-to-all", "[import][ascend]") {
  const Tensor ids = tensor("INT32", {16, 8});
  const auto moved = [&](const char* type, const Tensor& x, const Tensor& out, std::optional<std::int64_t> ranks) {
    return ascend_row({.type = type, .inputs = {x, ids}, .outputs = {out}, .ranks = ranks});
  };
  const Mapped dispatch =
      moved("MoeDistributeDispatchV2", bf16({16, 7168}), tensor("INT8", {256, 7168}), std::optional<std::int64_t>(32));
  CHECK(op_of(dispatch) == "all_to_all");
  CHECK(shape_of<CollectiveShape>(dispatch) ==
        CollectiveShape{graph::CollectiveKind::all_to_all, 32, Bytes{16.0 * 8 * 7168}});
  const Mapped combine = moved("MoeDistributeCombine", bf16({256, 7168}), bf16({16, 7168}), 32);
  CHECK(shape_of<CollectiveShape>(combine).bytes.value == 16.0 * 8 * 7168 * 2);
  CHECK(op_of(moved("MoeDistributeCombine", bf16({256, 7168}), bf16({16, 7168}), {})) ==
        "ranks not in the file: `ranks`");
  CHECK(op_of(moved("MoeDistributeDispatch", bf16({16, 7168}), {}, 32)) == "element type");
  CHECK(ascend_class("MIX_AIC", "MoeDistributeCombineV2") == Class::communication);
}

TEST_CASE("what comes before latent attention is one op of DeepSeek's widths", "[import][ascend]") {
  const auto prolog = [](const char* x, const char* weights, Shape tokens, std::int64_t heads) {
    return ascend_row({"MlaPrologV2",
                       {tensor(x, std::move(tokens)), tensor(weights, {96, 448, 16, 16}, "FRACTAL_NZ"),
                        tensor(weights, {1536, heads * 192}), bf16({heads, 128, 512}), tensor(weights, {7168, 576})},
                       {bf16({4, heads, 512})}});
  };
  const Mapped row = prolog("DT_BF16", "DT_BF16", {4, 2, 7168}, 16);
  CHECK(op_of(row) == "mla_prolog");
  const LatentShape expected{Phase::decode, 8, 1, 1, 16, "", LatentShape::Part::prolog};
  CHECK(shape_of<LatentShape>(row) == expected);
  CHECK(shape_of<LatentShape>(prolog("INT8", "INT8", {8, 7168}, 16)).weights == "w8a8");
  CHECK(op_of(prolog("DT_BF16", "INT8", {8, 7168}, 16)) == "operands of different types");
  CHECK(op_of(prolog("DT_BF16", "DT_BF16", {8, 5120}, 16)) == "widths of another model");
}

TEST_CASE("kernels of experts and of quantisation move the bytes of all their tensors", "[import][ascend]") {
  const auto bytes_of = [](const Mapped& row) { return shape_of<VectorShape>(row).bytes.value; };
  // Absent scales and results of a kernel that has many take no bytes.
  CHECK(bytes_of(ascend_row({"AddRmsNormQuant",
                             {bf16({4, 64}), bf16({4, 64}), bf16({64}), tensor("FLOAT", {64}), absent()},
                             {tensor("INT8", {4, 64}), absent(), bf16({4, 64})}})) ==
        2 * 256 + 2 * 256 + 2 * 64 + 4 * 64 + 256 + 2 * 256);
  CHECK(bytes_of(ascend_row({"DequantSwigluQuant",
                             {tensor("INT32", {4, 128}), absent(), tensor("FLOAT", {4})},
                             {tensor("INT8", {4, 64}), tensor("FLOAT", {4})}})) == 4 * 512 + 16 + 256 + 16);
  CHECK(op_of(ascend_row({"AddRmsNormDynamicQuantV2", {bf16({4, 64})}, {absent(), bf16({4, 64})}})) == "no shapes");
  for (const char* type :
       {"SwiGluQuant", "MoeGatingTopK", "MoeGatingTopKSoftmaxV2", "MoeInitRoutingV3", "MoeInitRoutingQuantV2",
        "MoeTokenPermute", "MoeTokenUnpermute", "MoeFinalizeRoutingV2", "InterleaveRope"}) {
    CHECK(bytes_of(ascend_row({type, {bf16({4, 64})}, {bf16({4, 64}), absent()}})) == 2 * 2 * 256);
  }
  // The pools of keys are not walked: the new ones are read and written.
  CHECK(bytes_of(ascend_row({"KvRmsNormRopeCache",
                             {bf16({4, 1, 1, 576}), bf16({512}), bf16({4, 64}), bf16({4, 64}), tensor("INT64", {4}),
                              bf16({1000, 128, 1, 64}), bf16({1000, 128, 1, 512})},
                             {bf16({1000, 128, 1, 64}), bf16({1000, 128, 1, 512})}})) == 2 * 2 * 4 * 576);
}

TEST_CASE("norms, activations and element-wise kernels are rows of their last dimension", "[import][ascend]") {
  const VectorShape rows{.layer = "rms_norm", .tokens = 32, .width = 4096};
  CHECK(shape_of<VectorShape>(ascend_row({"RmsNorm", {bf16({2, 16, 4096}), bf16({4096})}, {bf16({2, 16, 4096})}})) ==
        rows);
  CHECK(op_of(ascend_row({"AddRmsNorm", {bf16({2, 8}), bf16({2, 8}), bf16({8})}, {bf16({2, 8})}})) ==
        "vector:add_rms_norm");
  CHECK(op_of(ascend_row({"LayerNormV3", {bf16({2, 8}), bf16({8}), bf16({8})}, {bf16({2, 8})}})) ==
        "vector:layer_norm");
  CHECK(shape_of<VectorShape>(ascend_row({"SwiGlu", {bf16({7, 2048})}, {bf16({7, 1024})}})) ==
        VectorShape{.layer = "gated_activation", .tokens = 7, .width = 1024});
  CHECK(op_of(ascend_row({"Swish", {bf16({7, 8})}, {bf16({7, 8})}})) == "vector:activation");
  CHECK(op_of(ascend_row({"SoftmaxV2", {bf16({7, 8})}, {bf16({7, 8})}})) == "vector:softmax");
  CHECK(op_of(ascend_row({"Mul", {bf16({7, 8}), bf16({7, 8})}, {bf16({7, 8})}})) == "vector:multiply");
  CHECK(op_of(ascend_row({"Add", {bf16({7, 8}), bf16({7, 8})}, {bf16({7, 8})}})) == "vector:add");
  // Broadcast: fewer bytes than two full tensors.
  const Mapped bias = ascend_row({"Add", {bf16({7, 8}), bf16({8})}, {bf16({7, 8})}});
  CHECK(op_of(bias) == "vector:elementwise");
  CHECK(shape_of<VectorShape>(bias).bytes.value == 2 * (56 + 8 + 56));
  CHECK(op_of(ascend_row({"SomethingNew", {bf16({7, 8})}, {bf16({7, 8})}})) == "no such op");
  CHECK(op_of(ascend_row({"Cast", {tensor("INT64", {4})}, {tensor("INT64", {4})}})) == "element type");
}

TEST_CASE("rope counts the rows of queries and keys", "[import][ascend]") {
  const Mapped both = ascend_row({"ApplyRotaryPosEmb",
                                  {bf16({1, 10, 32, 128}), bf16({1, 10, 8, 128}), bf16({1, 10, 1, 128})},
                                  {bf16({1, 10, 32, 128})}});
  CHECK(shape_of<VectorShape>(both) ==
        VectorShape{.layer = "rope", .tokens = 400, .width = 128, .heads = 32, .kv_heads = 8});
  CHECK(shape_of<VectorShape>(ascend_row({"RotaryMul", {bf16({1, 10, 32, 128})}, {bf16({1, 10, 32, 128})}})).tokens ==
        320);
}

TEST_CASE("gathers pick rows of a table, caches are written by heads", "[import][ascend]") {
  const Mapped rows = ascend_row(
      {"GatherV2", {bf16({32000, 4096}), tensor("INT64", {2, 5}), tensor("INT64", {1})}, {bf16({2, 5, 4096})}});
  CHECK(shape_of<GatherShape>(rows) == GatherShape{.rows = 10, .width = 4096, .table = 32000});
  CHECK(op_of(ascend_row({"GatherV3", {bf16({3, 4096}), tensor("INT64", {2})}, {bf16({3, 2})}})) ==
        "not rows of a table");
  CHECK(shape_of<CacheShape>(ascend_row({"ReshapeAndCache", {bf16({9, 8, 128}), bf16({9, 8, 128})}, {bf16({4})}})) ==
        CacheShape{.tokens = 9, .kv_heads = 8, .head_dim = 128});
  // Of one tensor of the cache: the updates are read and written.
  const Mapped update = ascend_row({"ScatterUpdate",
                                    {bf16({4, 2048, 8, 128}), tensor("INT64", {4}), bf16({4, 1, 8, 128})},
                                    {bf16({4, 2048, 8, 128})}});
  CHECK(op_of(update) == "vector:elementwise");
  CHECK(shape_of<VectorShape>(update).bytes.value == 2 * 2 * 4 * 8 * 128);
}

TEST_CASE("who ran a kernel is told by its core, collectives by their type, too", "[import][ascend]") {
  CHECK(ascend_class("AI_CORE", "MatMulV2") == Class::kernel);
  CHECK(ascend_class("AI_VECTOR_CORE", "Add") == Class::kernel);
  CHECK(ascend_class("MIX_AIC", "FlashAttentionScore") == Class::kernel);
  CHECK(ascend_class("", "Add") == Class::kernel);
  CHECK(ascend_class("AI_CPU", "Add") == Class::host);
  CHECK(ascend_class("HCCL", "hcom_allReduce_") == Class::communication);
  CHECK(ascend_class("N/A", "HcomAllReduce") == Class::communication);
  CHECK(ascend_class("MIX_AIC", "MatmulAllReduce") == Class::communication);
  CHECK(ascend_class("SDMA_SQE", "MemcpyAsync") == Class::other);
}

}  // namespace llmperf::import::ascend_ops_test
