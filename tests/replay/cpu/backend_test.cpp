// What holds for every op: copies in turn, runs between results, what is refused, what the backend says of itself.
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "catch.h"
#include "check.h"
#include "replay/cpu/machine.h"
#include "replay/cpu/operation.h"

namespace llmperf::replay::cpu::backend_test {
namespace {

using measure::AttentionShape;
using measure::CollectiveShape;
using measure::GemmShape;
using measure::OpRow;
using measure::Phase;
using measure::VectorShape;

const OpRow kGemm = {"gemm", Dtype::fp32, GemmShape{.m = 2, .n = 16, .k = 16}};

std::vector<int> affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
  std::vector<int> processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(static_cast<unsigned>(i), &set)) processors.push_back(i);
  }
  return processors;
}

}  // namespace

TEST_CASE("executions take the copies of the weights in turn") {
  const auto backend = make_cpu_backend({.threads = 0, .gemm = Gemm::eigen});
  const auto ready = prepared(*backend, kGemm, 3);
  auto& op = dynamic_cast<Operation&>(*ready);
  REQUIRE(op.copies() == 3);
  constexpr std::size_t kBytes = std::size_t{4} * 16 * 16;  // of a copy
  REQUIRE(static_cast<std::size_t>(op.rotation().stride) == kBytes);
  // The second copy is made zeros: every third result is.
  std::memset(op.rotation().data + kBytes, 0, kBytes);
  const auto is_zero = [&] {
    const auto y = backend->result(*ready);
    return std::all_of(y.begin(), y.end(), [](float v) { return v == 0; });
  };
  const bool zeros[] = {is_zero(), is_zero(), is_zero(), is_zero(), is_zero()};
  const bool expected[] = {false, true, false, false, true};
  CHECK(std::equal(std::begin(zeros), std::end(zeros), std::begin(expected)));

  // A sequence that has the op twice, one pass to warm up and one more: four executions, from the third copy on.
  Prepared* const twice[] = {ready.get(), ready.get()};
  backend->run(twice, 1);
  CHECK(op.turn() == 9);
}

TEST_CASE("without a number of copies there are more than the caches hold, and at least two") {
  const auto backend = make_cpu_backend({.threads = 1, .gemm = Gemm::eigen});
  const std::int64_t caches = last_level_bytes(read_machine());
  const auto small = prepared(*backend, {"gemm", Dtype::fp32, GemmShape{.m = 1, .n = 256, .k = 256}}, 0);
  const auto& op = dynamic_cast<Operation&>(*small);
  CHECK(op.copies() >= 2);
  if (caches <= 256 << 20) CHECK(op.copies() * op.rotation().stride > 2 * caches);
  const auto tiny = prepared(*backend, {"gather", Dtype::bf16, measure::GatherShape{1, 1, 1}}, 0);
  CHECK(dynamic_cast<Operation&>(*tiny).copies() == 4096);
}

TEST_CASE("a run takes time, leaves the result as it was and the caller where it was allowed to be") {
  const auto before = affinity();
  const auto backend = make_cpu_backend();
  const auto gemm = prepared(*backend, kGemm, 2);
  const auto norm =
      prepared(*backend, {"vector:rms_norm", Dtype::bf16, VectorShape{.layer = "rms_norm", .tokens = 4, .width = 64}});
  const auto attention = prepared(
      *backend, {"attention_decode", Dtype::fp32, AttentionShape{Phase::decode, 1, 1, 300, 4, 2, 16, true}}, 2);
  const auto first = backend->result(*attention);
  Prepared* const sequence[] = {gemm.get(), norm.get(), attention.get(), norm.get()};
  const Seconds once = backend->run(sequence, 1);
  const Seconds often = backend->run(sequence, 50);
  CHECK(once.value > 0);
  CHECK(often.value > 0);
  CHECK(backend->result(*attention) == first);
  CHECK(affinity() == before);
  CHECK(backend->run({}, 3).value >= 0);
}

TEST_CASE("what cannot be run comes back with the reason") {
  const auto backend = make_cpu_backend({.threads = 1, .gemm = Gemm::eigen});
  const auto gemm = [](Dtype dtype, GemmShape shape) { return OpRow{"gemm", dtype, std::move(shape)}; };
  check_unavailable(*backend, gemm(Dtype::fp16, {8, 8, 8}), "no product of fp16 here: fp32, bf16 and int8 only");
  check_unavailable(*backend, gemm(Dtype::fp8, {8, 8, 8}), "no product of fp8 here");
  check_unavailable(*backend, gemm(Dtype::bf16, {8, 8, 8, 1, "w4a16-g128"}), "weights stored as w4a16-g128");
  check_unavailable(*backend, gemm(Dtype::fp32, {0, 8, 8}), "not a shape that fits in any memory");
  check_unavailable(*backend, gemm(Dtype::fp32, {8, 1 << 30, 1 << 30}), "not a shape that fits in any memory");
  check_unavailable(*backend, gemm(Dtype::fp32, {1, 1 << 20, 1 << 20}), "are free");
  const auto attention = [](Dtype dtype, AttentionShape shape) { return OpRow{"attention_prefill", dtype, shape}; };
  check_unavailable(*backend, attention(Dtype::fp16, {Phase::prefill, 1, 8, 8, 2, 2, 8, true}), "no attention of fp16");
  check_unavailable(*backend, attention(Dtype::fp32, {Phase::prefill, 1, 8, 8, 3, 2, 8, true}),
                    "3 query heads cannot share 2 KV heads evenly");
  check_unavailable(*backend, attention(Dtype::fp32, {Phase::prefill, 1, 8, 4, 2, 2, 8, true}), "would see none");
  measure::LatentShape latent{.phase = Phase::decode, .batch = 1, .q_len = 1, .kv_len = 8, .heads = 2};
  latent.kv_dtype = "fp8";
  check_unavailable(*backend, {"mla_decode", Dtype::bf16, latent}, "caches of another type are not replayed");
  latent.part = measure::LatentShape::Part::module;
  check_unavailable(*backend, {"mla_module_decode", Dtype::bf16, latent}, "is several ops: replay them one by one");
  const auto experts = [](Dtype dtype, std::int64_t count, std::int64_t ep, std::string weights) {
    return OpRow{
        "moe", dtype,
        measure::ExpertsShape{
            .m = 2, .hidden = 64, .inter = 64, .topk = 1, .experts = count, .ep = ep, .weights = std::move(weights)}};
  };
  check_unavailable(*backend, experts(Dtype::fp16, 4, 1, ""), "no moe of fp16 here: fp32 and bf16 only");
  check_unavailable(*backend, experts(Dtype::bf16, 4, 1, "w8a8"), "no experts here read weights stored as w8a8");
  check_unavailable(*backend, experts(Dtype::bf16, 4, 3, ""), "cannot be divided so");
  check_unavailable(*backend, experts(Dtype::bf16, std::int64_t{1} << 40, 1, ""), "fits in any memory");
  const auto vector = [](Dtype dtype, VectorShape shape) { return OpRow{"vector:" + shape.layer, dtype, shape}; };
  check_unavailable(*backend, vector(Dtype::int8, {.layer = "add", .tokens = 1, .width = 8}), "no vector:add of int8");
  check_unavailable(*backend, vector(Dtype::fp32, {.layer = "dropout", .tokens = 1, .width = 8}), "vector:dropout");
  check_unavailable(*backend, vector(Dtype::fp32, {.layer = "rope", .tokens = 4, .width = 7}), "have no halves");
  check_unavailable(*backend,
                    vector(Dtype::fp32, {.layer = "rope", .tokens = 4, .width = 8, .heads = 2, .kv_heads = 1}),
                    "4 rows are not whole tokens of 3 heads");
  check_unavailable(*backend, vector(Dtype::fp32, {.layer = "add", .tokens = 1}), "must be positive");
  check_unavailable(*backend, {"gather", Dtype::fp32, measure::GatherShape{.rows = 4, .width = 8}}, "is not known");
  check_unavailable(*backend, {"kv_write", Dtype::fp8, measure::CacheShape{1, 1, 1}}, "no kv_write of fp8");
  const auto collective = [](graph::CollectiveKind kind, std::int64_t ranks, double bytes) {
    return OpRow{"collective", Dtype::fp32, CollectiveShape{kind, ranks, Bytes{bytes}}};
  };
  check_unavailable(*backend, collective(graph::CollectiveKind::all_reduce, 64, 256), "64 ranks need as many threads");
  check_unavailable(*backend, collective(graph::CollectiveKind::broadcast, 1, 256), "no broadcast among threads");
  check_unavailable(*backend, collective(graph::CollectiveKind::all_reduce, 1, 1), "less than one element");
  check_unavailable(*backend, collective(graph::CollectiveKind::all_reduce, 1, 1e18), "do not fit in memory");
}

TEST_CASE("there are as many threads as asked for, at most one per processor") {
  CHECK(processors_for(0, {4, 5, 6}) == std::vector<int>{4, 5, 6});
  CHECK(processors_for(2, {4, 5, 6}) == std::vector<int>{4, 5});
  CHECK_THROWS_WITH(processors_for(4, {4, 5, 6}), Catch::Contains("4 threads on 3 processors"));
  CHECK_THROWS_WITH(processors_for(-1, {4}), Catch::Contains("-1 threads"));
  CHECK_THROWS_AS(make_cpu_backend({.threads = 100000, .gemm = Gemm::eigen}), Error);
}

TEST_CASE("the backend describes the machine in words that fit a file name") {
  const Description d = make_cpu_backend({.threads = 1, .gemm = Gemm::eigen})->describe();
  CHECK(d.backend == "cpu");
  CHECK_FALSE(d.device.empty());
  CHECK(d.device.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos);
  CHECK_THAT(d.title, Catch::EndsWith(", 1 thread"));
  std::set<std::string> names;
  for (const auto& [fact, value] : d.facts) {
    CHECK_FALSE(value.empty());
    names.insert(fact);
  }
  for (const char* fact : {"processor", "threads", "instruction set", "memory", "products", "kernel"}) {
    CHECK(names.contains(fact));
  }
}

TEST_CASE("names of processors become names of devices") {
  CHECK(device_name("AMD EPYC") == "amd-epyc");
  CHECK(device_name("AMD EPYC 9654 96-Core Processor") == "amd-epyc-9654");
  CHECK(device_name("Intel(R) Xeon(R) Platinum 8480+ CPU @ 2.00GHz") == "intel-xeon-platinum-8480");
  CHECK(device_name("13th Gen Intel(R) Core(TM) i7-1370P") == "13th-gen-intel-core-i7-1370p");
  CHECK(device_name("aarch64 CPU") == "aarch64");
  CHECK(device_name("CPU") == "cpu");
}

}  // namespace llmperf::replay::cpu::backend_test
