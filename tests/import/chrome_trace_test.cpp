// Traces of PyTorch's profiler: operators of the CPU say what ran, kernels of the device how long.
#include <fmt/format.h>

#include "import_helpers.h"

namespace llmperf::import::chrome_trace_test {
namespace {

using measure::AttentionShape;
using measure::CollectiveShape;
using measure::GemmShape;

std::string cpu_op(const std::string& name, int id, const std::string& dims, const std::string& types,
                   const std::string& concrete = "[]") {
  return fmt::format(
      R"({{"ph": "X", "cat": "cpu_op", "name": "{}", "pid": 1, "tid": 1, "ts": 1.5, "dur": 20, "args": {{"External id": {},
 "Call stack": "a;b", "Input Dims": {}, "Input type": {}, "Concrete Inputs": {}, "Input Strides": [[1, [2]]]}}}})",
      name, id, dims, types, concrete);
}
std::string kernel(const std::string& name, double time, const std::string& args) {
  return fmt::format(
      R"({{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": 7, "ts": 3, "dur": {}, "args": {{{}}}}})", name,
      time, args);
}
std::string of(int id) { return fmt::format("\"External id\": {}, \"grid\": [1, 2, 3]", id); }

std::string events(std::initializer_list<std::string> list) {
  std::string text;
  for (const std::string& e : list) text += (text.empty() ? "" : ",\n") + e;
  return "[" + text + "]";
}
Imported trace(std::initializer_list<std::string> list) {
  return imported(Source::chrome_trace,
                  R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "x"}], "traceEvents": )" +
                      events(list) + R"(, "traceName": "t.json", "more": [[1], {"a": [2]}]})");
}
const std::string kBf16 = R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar", ""])";

}  // namespace

TEST_CASE("an operator takes as long as the kernels under it", "[import][trace]") {
  // The first kernel stands before its operator; the second run took 9 us in one kernel.
  const Imported i = trace({kernel("gemm_a", 4, of(10)), cpu_op("aten::mm", 10, "[[64, 4096], [4096, 512]]", kBf16),
                            kernel("void splitK<float>(int)", 3, of(10)),
                            cpu_op("aten::mm", 11, "[[64, 4096], [4096, 512]]", kBf16), kernel("gemm_a", 9, of(11))});
  REQUIRE(i.measurements.rows.size() == 1);
  CHECK(op(i, 0).dtype == Dtype::bf16);
  CHECK(shape<GemmShape>(i) == GemmShape{.m = 64, .n = 512, .k = 4096});
  CHECK(micros(i) == Approx(8));  // 7 and 9
  CHECK(i.measurements.rows[0].extra[1] == "2");
  CHECK(type(i, "aten::mm").total.value == Approx(16e-6));
  CHECK(type(i, "aten::mm").count == 2);
}

TEST_CASE("a bare list of events is a trace, too", "[import][trace]") {
  const Imported i =
      imported(Source::chrome_trace, events({cpu_op("aten::mm", 1, "[[2, 3], [3, 4]]", kBf16), kernel("k", 4, of(1))}));
  CHECK(shape<GemmShape>(i) == GemmShape{.m = 2, .n = 4, .k = 3});
}

TEST_CASE("kernels that name only their launch are found through it", "[import][trace]") {
  const Imported i = trace(
      {cpu_op("aten::mm", 1, "[[2, 3], [3, 4]]", kBf16),
       R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 5, "args": {"External id": 1, "correlation": 77}})",
       kernel("k", 4, "\"correlation\": 77"), kernel("orphan<a, b>(int)", 6, "\"correlation\": 78"),
       kernel("void lost::kernel<(anonymous namespace)::x>(int)", 2, "\"stream\": 7")});
  REQUIRE(i.measurements.rows.size() == 1);
  CHECK(micros(i) == Approx(4));
  CHECK(type(i, "orphan").remark == "no operator");
  CHECK(type(i, "lost::kernel").total.value == Approx(2e-6));
}

TEST_CASE("kernels of a captured graph have no operator of their own", "[import][trace]") {
  const Imported i =
      trace({cpu_op("aten::mm", 1, "[[2, 3], [3, 4]]", kBf16), kernel("k", 4, of(1) + ", \"graph node id\": 12"),
             kernel("k", 5, of(1) + ", \"graph node id\": 0")});
  REQUIRE(i.measurements.rows.size() == 1);
  CHECK(micros(i) == Approx(5));
  CHECK(type(i, "k").remark == "part of a captured graph: no shapes");
}

TEST_CASE("collectives have their sizes with them; the shortest run counts", "[import][trace]") {
  const std::string args =
      R"("External id": 5, "Collective name": "{}", "In msg nelems": {}, "Out msg nelems": {}, "Group size": 8, "dtype": "BFloat16")";
  const Imported i = trace({
      kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 90,
             fmt::format(fmt::runtime(args), "allreduce", 1000, 1000)),
      kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 60,
             fmt::format(fmt::runtime(args), "allreduce", 1000, 1000)),
      kernel("ncclDevKernel_AllGather_RING_LL(x)", 40, fmt::format(fmt::runtime(args), "_allgather_base", 1000, 8000)),
      kernel("ncclDevKernel_SendRecv(x)", 30, fmt::format(fmt::runtime(args), "send", 1000, 1000)),
      kernel("ncclKernel_AllReduce_RING_LL_Sum_float(x)", 20, "\"External id\": 6"),
  });
  REQUIRE(i.measurements.rows.size() == 2);
  CHECK(shape<CollectiveShape>(i, 0) == CollectiveShape{graph::CollectiveKind::all_reduce, 8, Bytes{2000}});
  CHECK(micros(i, 0) == Approx(60));
  CHECK(shape<CollectiveShape>(i, 1) == CollectiveShape{graph::CollectiveKind::all_gather, 8, Bytes{16000}});
  for (const TypeSummary& t : i.types) CHECK(t.of == Class::communication);
  CHECK(type(i, "ncclDevKernel_AllReduce").count == 2);
  CHECK(type(i, "ncclDevKernel_SendRecv").remark == "no such op");
  CHECK(type(i, "ncclKernel_AllReduce").remark == "no sizes");
}

TEST_CASE("copies are no kernels, and the CPU's events no time", "[import][trace]") {
  const Imported i = trace(
      {R"json({"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "dur": 7, "args": {"External id": 1}})json",
       R"({"ph": "X", "cat": "python_function", "name": "f", "dur": 700, "args": {"Python id": 1}})",
       R"({"ph": "i", "cat": "kernel", "name": "instant", "dur": "x"})",
       R"({"ph": "M", "name": "n", "args": {"name": "p"}})"});
  REQUIRE(i.types.size() == 1);
  CHECK(i.types[0].of == Class::other);
  CHECK(i.types[0].type == "Memcpy HtoD");
}

TEST_CASE("products of PyTorch", "[import][trace]") {
  const auto product = [](const std::string& name, const std::string& dims) {
    const Imported i = trace({cpu_op(name, 1, dims, kBf16), kernel("k", 4, of(1))});
    return i.measurements.rows.empty() ? GemmShape{} : shape<GemmShape>(i);
  };
  const GemmShape expected{.m = 6, .n = 5, .k = 4};
  CHECK(product("aten::addmm", "[[5], [6, 4], [4, 5]]") == expected);
  CHECK(product("aten::linear", "[[2, 3, 4], [5, 4], []]") == expected);
  CHECK(product("aten::matmul", "[[2, 3, 4], [4, 5]]") == expected);
  CHECK(product("aten::bmm", "[[2, 6, 4], [2, 4, 5]]") == GemmShape{.m = 6, .n = 5, .k = 4, .batch = 2});
  CHECK(product("aten::baddbmm", "[[2, 6, 5], [2, 6, 4], [2, 4, 5]]") == GemmShape{.m = 6, .n = 5, .k = 4, .batch = 2});
  CHECK(product("aten::mm", "[[6, 4], [3, 5]]") == GemmShape{});
  CHECK(product("aten::convolution", "[[6, 4], [4, 5]]") == GemmShape{});
}

TEST_CASE("attention of PyTorch: causal or not is an argument", "[import][trace]") {
  const auto attention = [](const std::string& name, const std::string& dims, const std::string& concrete) {
    return trace({cpu_op(name, 1, dims, kBf16, concrete), kernel("k", 4, of(1))});
  };
  const std::string dims = "[[2, 32, 100, 128], [2, 8, 100, 128], [2, 8, 100, 128], [], [], []]";
  AttentionShape expected{.batch = 2, .q_len = 100, .kv_len = 100, .heads = 32, .kv_heads = 8, .head_dim = 128};
  CHECK(shape<AttentionShape>(attention("aten::_scaled_dot_product_flash_attention", dims,
                                        R"(["", "", "", "0.", "True", "False"])")) == expected);
  expected.causal = false;
  CHECK(shape<AttentionShape>(attention("aten::scaled_dot_product_attention", dims,
                                        R"(["", "", "", "", "0.", "False", "None"])")) == expected);
  CHECK(attention("aten::scaled_dot_product_attention", dims, "[]").types[0].remark ==
        "causal or not is not in the trace");
  const Imported tokens_first = attention("aten::_flash_attention_forward",
                                          "[[2, 1, 32, 128], [2, 500, 8, 128], [2, 500, 8, 128], [], []]", "[]");
  CHECK(op(tokens_first, 0).op == "attention_decode");
  CHECK(shape<AttentionShape>(tokens_first).kv_len == 500);
  CHECK(attention("aten::_flash_attention_forward", "[[200, 32, 128], [200, 8, 128], [200, 8, 128], [3]]", "[]")
            .types[0]
            .remark == "lengths are not in the shapes");
}

TEST_CASE("vectors of PyTorch and vLLM", "[import][trace]") {
  const auto vector = [](const std::string& name, const std::string& dims, const std::string& concrete = "[]") {
    const Imported i = trace({cpu_op(name, 1, dims, kBf16, concrete), kernel("k", 4, of(1))});
    return i.measurements.rows.empty() ? i.types[0].remark : measure::describe(op(i, 0));
  };
  CHECK(vector("aten::native_layer_norm", "[[2, 3, 8], [], [8], [8], []]") == "vector:layer_norm bf16 6 x 8");
  CHECK(vector("_C::fused_add_rms_norm", "[[6, 8], [6, 8], [8], []]") == "vector:add_rms_norm bf16 6 x 8");
  CHECK(vector("_C::silu_and_mul", "[[6, 8], [6, 16]]") == "vector:gated_activation bf16 6 x 8");
  CHECK(vector("_C::rotary_embedding", "[[6], [6, 4096], [6, 1024], [], [9, 128]]",
               R"(["", "", "", "128", "", "True"])") == "vector:rope bf16 240 x 128 heads 32/8");
  CHECK(vector("aten::silu", "[[6, 8]]") == "vector:activation bf16 6 x 8");
  CHECK(vector("aten::mul", "[[6, 8], [6, 8]]") == "vector:multiply bf16 6 x 8");
  CHECK(vector("aten::add_", "[[6, 8], [6, 8], []]") == "vector:add bf16 6 x 8");
  CHECK(vector("aten::add", "[[6, 8], [8], []]") == "vector:elementwise bf16 6 x 8 208 B");  // 2 (48 + 8 + 48)
  CHECK(vector("aten::pow", "[[6, 8], []]") == "vector:elementwise bf16 6 x 8 192 B");
  CHECK(vector("aten::copy_", "[[6, 8], [6, 8], []]") == "vector:elementwise bf16 6 x 8 192 B");
  CHECK(vector("aten::embedding", "[[1000, 64], [2, 5]]") == "gather bf16 10 x 64 of 1000");
  CHECK(vector("_C_cache_ops::reshape_and_cache_flash", "[[7, 8, 128], [7, 8, 128]]") ==
        "kv_write bf16 7 tokens 8 x 128");
  CHECK(vector("aten::mul", "[[6, 8], [5, 8]]") == "shapes not understood");
  CHECK(vector("aten::mul", "[]") == "no shapes");
}

TEST_CASE("an operator is found behind as many values as nobody asks for", "[import][trace]") {
  std::string many = "[0";
  for (int i = 0; i < 5000; ++i) many += ", 0";
  const Imported i = imported(Source::chrome_trace, R"([{"args": {"stack": )" + many +
                                                        R"(]}, "ph": "X", "cat": "kernel", "name": "k", "dur": 3}])");
  REQUIRE(i.types.size() == 1);
  CHECK(i.types.front().type == "k");
}

TEST_CASE("what is no trace is refused with its place", "[import][trace]") {
  const auto problems = [](const std::string& text) { return problems_of(Source::chrome_trace, text, {}, "t.json"); };
  CHECK(problems("{}") ==
        std::vector<std::string>{"t.json:1:1: holds no events: neither a list nor an object with \"traceEvents\""});
  CHECK(problems("{\"traceEvents\": 5}").size() == 1);
  CHECK(problems("").front().find("t.json:1:1: not valid JSON: unexpected end of input") == 0);
  CHECK(problems("[{\"ph\": \"X\",\n  \"name\": nul}]").front().find("t.json:2:14: not valid JSON: invalid literal") ==
        0);
  CHECK(problems("[{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"dur\": -2}\n]") ==
        std::vector<std::string>{"t.json:1:53: a kernel's \"dur\" is not a time in microseconds: 'k'"});
  CHECK(imported(Source::chrome_trace, "[]").types.empty());
  CHECK(problems(std::string(100000, '[')).size() == 1);
}

}  // namespace llmperf::import::chrome_trace_test
