// The stand-in notices what it is there to notice: each rule of CANN is broken once, directly.
#include <thread>

#include "catch.h"
#include "support.h"

namespace llmperf::replay::ascend::conventions_test {
namespace {

class Rules {
 public:
  Rules() : cann(functions()) {
    standin().standin_reset();
    cann->aclInit(nullptr);
    cann->aclrtSetDevice(0);
    cann->aclrtCreateStream(&stream);
    cann->aclrtMalloc(&memory, 4096, cann::MallocPolicy::huge_first);
    REQUIRE(violations() == "");
  }
  ~Rules() {
    cann->aclrtFree(memory);
    cann->aclrtDestroyStream(stream);
    cann->aclrtResetDevice(0);
    cann->aclFinalize();
  }
  aclTensor* tensor(std::int64_t rows, std::int64_t columns, cann::DataType type = cann::DataType::fp16) const {
    const std::int64_t shape[] = {rows, columns};
    const std::int64_t strides[] = {columns, 1};
    return cann->aclCreateTensor(shape, 2, type, strides, 0, cann::Format::nd, shape, 2, memory);
  }
  bool broke(const std::string& rule) const { return violations().find(rule) != std::string::npos; }

  std::shared_ptr<cann::Functions> cann;
  cann::Stream stream = nullptr;
  void* memory = nullptr;
  std::uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
};

}  // namespace

TEST_CASE("an executor is used up by its launch, unless it is made repeatable") {
  Rules rules;
  aclTensor* x = rules.tensor(2, 4);
  rules.cann->aclnnSilu.plan(x, x, &rules.size, &rules.executor);
  CHECK(rules.cann->aclnnSilu.launch(nullptr, 0, rules.executor, rules.stream) == 0);
  CHECK(violations() == "");
  CHECK(rules.cann->aclnnSilu.launch(nullptr, 0, rules.executor, rules.stream) != 0);
  CHECK(rules.broke("used up"));
  standin().standin_reset();
  rules.cann->aclnnSilu.plan(x, x, &rules.size, &rules.executor);
  rules.cann->aclSetAclOpExecutorRepeatable(rules.executor);
  for (int i = 0; i < 3; ++i) CHECK(rules.cann->aclnnSilu.launch(nullptr, 0, rules.executor, rules.stream) == 0);
  rules.cann->aclrtSynchronizeStream(rules.stream);
  rules.cann->aclDestroyAclOpExecutor(rules.executor);
  CHECK(violations() == "");
  rules.cann->aclDestroyAclOpExecutor(rules.executor);
  CHECK(rules.broke("aclDestroyAclOpExecutor: no such executor"));
  rules.cann->aclDestroyTensor(x);
}

TEST_CASE("an executor is of its op, its workspace as large as asked for") {
  Rules rules;
  aclTensor* x = rules.tensor(4, 4);
  rules.cann->aclnnMatmul.plan(x, x, x, 0, &rules.size, &rules.executor);
  CHECK(rules.size == 4096);
  CHECK(rules.cann->aclnnSilu.launch(rules.memory, 4096, rules.executor, rules.stream) != 0);
  CHECK(rules.broke("launched with an executor of aclnnMatmul"));
  CHECK(rules.cann->aclnnMatmul.launch(rules.memory, 2048, rules.executor, rules.stream) != 0);
  CHECK(rules.broke("another workspace size"));
  CHECK(rules.cann->aclnnMatmul.launch(nullptr, 4096, rules.executor, rules.stream) != 0);
  CHECK(rules.broke("too small a workspace"));
  standin().standin_reset();
  CHECK(rules.cann->aclnnMatmul.launch(rules.memory, 4096, rules.executor, nullptr) != 0);
  CHECK(rules.broke("default stream"));
  rules.cann->aclDestroyTensor(x);
}

TEST_CASE("types, shapes and what must not be null are validated by the first phase") {
  Rules rules;
  aclTensor* x = rules.tensor(4, 4);
  aclTensor* other = rules.tensor(4, 4, cann::DataType::bf16);
  aclTensor* wide = rules.tensor(4, 8);
  CHECK(rules.cann->aclnnMatmul.plan(x, other, x, 0, &rules.size, &rules.executor) == 161002);
  CHECK(rules.broke("mat2 has another type"));
  CHECK(rules.cann->aclnnMatmul.plan(wide, x, x, 0, &rules.size, &rules.executor) == 161002);
  CHECK(rules.broke("mat2 has another shape"));
  CHECK(rules.cann->aclnnMatmul.plan(nullptr, x, x, 0, &rules.size, &rules.executor) == 161001);
  CHECK(rules.cann->aclnnSwiGlu.plan(x, 0, x, &rules.size, &rules.executor) == 161002);
  CHECK(rules.cann->aclnnAdd.plan(x, x, nullptr, x, &rules.size, &rules.executor) == 161002);
  for (aclTensor* tensor : {x, other, wide}) rules.cann->aclDestroyTensor(tensor);
  rules.cann->aclDestroyTensor(x);
  CHECK(rules.broke("aclDestroyTensor: no such tensor"));
}

TEST_CASE("nothing is synchronised, copied or allocated while a stream is captured") {
  Rules rules;
  char host[16] = {};
  rules.cann->aclmdlRICaptureBegin(rules.stream, cann::CaptureMode::global);
  CHECK(rules.cann->aclrtSynchronizeStream(rules.stream) != 0);
  CHECK(rules.cann->aclrtMemcpy(rules.memory, 16, host, 16, cann::MemcpyKind::host_to_device) != 0);
  void* more = nullptr;
  CHECK(rules.cann->aclrtMalloc(&more, 16, cann::MallocPolicy::huge_first) != 0);
  CHECK(standin().standin_violations() == 3);
  cann::GraphHandle graph = nullptr;
  CHECK(rules.cann->aclmdlRICaptureEnd(rules.stream, &graph) == 0);
  CHECK(rules.cann->aclmdlRIDestroy(graph) == 0);
  CHECK(rules.cann->aclmdlRIDestroy(graph) != 0);
}

TEST_CASE("the time between events that are not complete, or have none, is not known") {
  Rules rules;
  cann::Event timed = nullptr;
  cann::Event gate = nullptr;
  rules.cann->aclrtCreateEventWithFlag(&timed, cann::kEventTimeLine);
  rules.cann->aclrtCreateEventWithFlag(&gate, cann::kEventSync);
  float ms = 0;
  CHECK(rules.cann->aclrtEventElapsedTime(&ms, timed, timed) != 0);
  CHECK(rules.cann->aclrtStreamWaitEvent(rules.stream, timed) != 0);
  rules.cann->aclrtRecordEvent(gate, rules.stream);
  rules.cann->aclrtSynchronizeStream(rules.stream);
  CHECK(rules.cann->aclrtEventElapsedTime(&ms, gate, gate) != 0);
  CHECK(standin().standin_violations() == 3);
  rules.cann->aclrtDestroyEvent(timed);
  rules.cann->aclrtDestroyEvent(gate);
}

TEST_CASE("a thread needs a device, and its streams are the device's") {
  Rules rules;
  std::thread([&] {
    void* more = nullptr;
    CHECK(rules.cann->aclrtMalloc(&more, 16, cann::MallocPolicy::huge_first) != 0);
  }).join();
  CHECK(rules.broke("aclrtMalloc on a thread without a device"));
  std::thread([&] {
    rules.cann->aclrtSetDevice(1);
    CHECK(rules.cann->aclrtSynchronizeStream(rules.stream) != 0);
    rules.cann->aclrtResetDevice(1);
  }).join();
  CHECK(rules.broke("a stream of another device"));
}

TEST_CASE("ranks that do not come end the wait of the others") {
  Rules rules;
  cann::HcclRootInfo root{};
  rules.cann->HcclGetRootInfo(&root);
  cann::Comm communicator = nullptr;
  CHECK(rules.cann->HcclCommInitRootInfo(2, &root, 0, &communicator) == 9);
}

TEST_CASE("what is left behind is seen at the end") {
  {
    Rules rules;
    static_cast<void>(rules.tensor(2, 2));
    rules.cann->aclrtFree(rules.memory);
    rules.cann->aclrtMalloc(&rules.memory, 64, cann::MallocPolicy::huge_first);
  }
  CHECK(violations().find("still there at aclFinalize: tensor") != std::string::npos);
  standin().standin_forget_objects();
}

}  // namespace llmperf::replay::ascend::conventions_test
