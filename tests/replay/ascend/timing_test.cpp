#include "base/error.h"
#include "catch.h"
#include "support.h"

namespace llmperf::replay::ascend::timing_test {

TEST_CASE("at most a hundred launches are queued while the stream waits, and all of them run") {
  standin().standin_reset();
  {
    const auto npu = backend();
    const auto op = prepared(*npu, vector("add", 2, 8, Dtype::fp16));
    Prepared* const sequence[] = {op.get()};
    npu->run(sequence, 1);
    standin().standin_reset();
    npu->run(sequence, 250);
    CHECK(standin().standin_count("aclnnAdd") == 1 + 250);
    CHECK(standin().standin_count("aclrtEventElapsedTime") == 1 + 3);
    CHECK(standin().standin_most_queued() == 100);
    // Every launch used the executor that is there.
    CHECK(standin().standin_count("aclnnAddGetWorkspaceSize") == 0);
    CHECK_FALSE(npu->ran_as_graph());
  }
  check_clean();
}

TEST_CASE("a sequence longer than the queue is started before it is all enqueued") {
  standin().standin_reset();
  auto cann = functions();
  cann->aclmdlRICaptureBegin.pointer = nullptr;
  {
    const auto npu = backend(cann);
    const auto op = prepared(*npu, vector("add", 2, 8, Dtype::fp16));
    const std::vector<Prepared*> sequence(230, op.get());
    npu->run(sequence, 2);
    CHECK(standin().standin_count("aclnnAdd") == 3 * 230);
  }
  check_clean();
}

TEST_CASE("a sequence of several ops is captured once and launched as a graph") {
  standin().standin_reset();
  {
    const auto npu = backend();
    const auto first = prepared(*npu, gemm(2, 3, 16, Dtype::fp16), 3);
    const auto second = prepared(*npu, vector("add", 2, 8, Dtype::fp16));
    Prepared* const sequence[] = {first.get(), second.get()};
    npu->run(sequence, 1);
    standin().standin_reset();
    npu->run(sequence, 1200);
    CHECK(npu->ran_as_graph());
    // 500 passes to a graph of at most 1000 launches: 2 x 500 and 200 passes, after one that is not timed.
    CHECK(standin().standin_count("aclmdlRICaptureBegin") == 2);
    CHECK(standin().standin_count("aclmdlRIExecuteAsync") == 3);
    CHECK(standin().standin_count("aclnnMatmul") == 1 + 500 + 200);
  }
  check_clean();
}

TEST_CASE("copies of weights take turns, one executor for each") {
  standin().standin_reset();
  {
    const auto npu = backend();
    const auto op = prepared(*npu, gemm(2, 16, 32, Dtype::fp16), 5);
    CHECK(standin().standin_count("aclnnMatmulGetWorkspaceSize") == 5);
    CHECK(standin().standin_count("aclSetAclOpExecutorRepeatable") == 5);
    const auto& part = *dynamic_cast<Op&>(*op).parts.front();
    CHECK(part.copies.size() == 5);
    Prepared* const sequence[] = {op.get()};
    npu->run(sequence, 6);
    CHECK(part.turn == (1 + 6) % 5);
  }
  check_clean();
}

TEST_CASE("without a number there are as many copies as exceed twice the cache") {
  // The stand-in has 64 KiB of L2.
  CHECK(Rotation(0, 65536).copies(65536) == 3);
  CHECK(Rotation(0, 65536).copies(1 << 20) == 1);
  CHECK(Rotation(0, 65536).copies(8192) == 17);
  CHECK(Rotation(0, 65536).copies(2) == 256);
  CHECK(Rotation(7, 65536).copies(2) == 7);
  standin().standin_reset();
  {
    const auto npu = backend();
    const auto op = prepared(*npu, gemm(1, 128, 64, Dtype::fp16), 0);  // 16 KiB of weights
    CHECK(dynamic_cast<Op&>(*op).parts.front()->copies.size() == 9);
    CHECK(standin().standin_allocated() > 9 * 16384);
  }
  check_clean();
}

TEST_CASE("collectives and products in one sequence: the first rank has all of them") {
  standin().standin_reset();
  {
    const auto npu = backend();
    const auto product = prepared(*npu, gemm(2, 3, 16, Dtype::fp16));
    const auto sum = prepared(*npu, collective("all_reduce", 2, 64, Dtype::fp16));
    Prepared* const sequence[] = {product.get(), sum.get()};
    CHECK(npu->run(sequence, 60).value > 0);
    CHECK(standin().standin_count("aclnnMatmul") == 61);
    CHECK(standin().standin_count("HcclAllReduce") == 2 * 61);
    const auto wider = prepared(*npu, collective("all_reduce", 4, 64, Dtype::fp16));
    Prepared* const both[] = {sum.get(), wider.get()};
    CHECK_THROWS_AS(npu->run(both, 1), Error);
  }
  check_clean();
}

TEST_CASE("a cold device is kept busy until it is warm") {
  standin().standin_reset();
  {
    NpuBackend npu(functions(), 0, Seconds{0.002});
    auto made = npu.prepare(vector("add", 2, 8, Dtype::fp16), 1);
    Prepared* const sequence[] = {std::get<std::unique_ptr<Prepared>>(made).get()};
    npu.run(sequence, 1);
    const int launches = standin().standin_count("aclnnAdd");
    CHECK(launches >= 1 + 2 + 1);
    npu.run(sequence, 1);
    CHECK(standin().standin_count("aclnnAdd") == launches + 2);
  }
  check_clean();
}

}  // namespace llmperf::replay::ascend::timing_test
