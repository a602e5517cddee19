#include <algorithm>

#include "catch.h"
#include "replay/cpu/cpu_backend.h"
#include "replay/replay.h"
#include "support.h"

namespace llmperf::replay::ascend::self_test_test {
namespace {

// Another backend whose every result is somewhat larger than it should be.
class Wrong : public Backend {
 public:
  explicit Wrong(Backend& right) : right_(right) {}
  Description describe() const override { return right_.describe(); }
  std::unique_ptr<Prepared> make(const measure::OpRow& op, std::int64_t copies) override {
    auto made = right_.prepare(op, copies);
    if (auto* unavailable = std::get_if<Unavailable>(&made)) throw Unavailable{unavailable->reason};
    return std::get<std::unique_ptr<Prepared>>(std::move(made));
  }
  Seconds run(std::span<Prepared* const> sequence, std::int64_t passes) override {
    return right_.run(sequence, passes);
  }
  std::vector<float> result(Prepared& op) override {
    std::vector<float> values = right_.result(op);
    for (float& value : values) value *= 1.5F;
    return values;
  }

 private:
  Backend& right_;
};

}  // namespace

TEST_CASE("the self test passes every op that both backends have, and fails those that are wrong") {
  standin().standin_reset();
  {
    const auto npu = backend();
    const auto cpu = cpu::make_cpu_backend({});
    using Outcome = SelfTestResult::Outcome;
    const auto count = [](const std::vector<SelfTestResult>& results, Outcome outcome) {
      return std::count_if(results.begin(), results.end(),
                           [&](const SelfTestResult& result) { return result.outcome == outcome; });
    };
    const std::vector<SelfTestResult> results = self_test(*npu, *cpu);
    CHECK_FALSE(failed(results));
    for (const SelfTestResult& result : results) {
      INFO(result.op << ": " << name(result.outcome) << " " << result.reason);
      CHECK(result.outcome != Outcome::failed);
      CHECK((result.outcome == Outcome::passed) == (result.error && *result.error <= *result.tolerance));
      CHECK((result.outcome == Outcome::passed) == result.reason.empty());
    }
    // 2 norms with means, softmax, sampling and copies are no kernels of this backend, in two types. Four collectives
    // in two types have nothing to be compared with where one processor is all there is.
    const bool alone = std::holds_alternative<Unavailable>(cpu->prepare(
        {"all_reduce", Dtype::fp32, measure::CollectiveShape{graph::CollectiveKind::all_reduce, 2, Bytes{64}}}, 1));
    const long unavailable = alone ? 18 : 10;
    CHECK(count(results, Outcome::unavailable) == unavailable);
    CHECK(count(results, Outcome::passed) == static_cast<long>(results.size()) - unavailable);

    Wrong wrong(*npu);
    const std::vector<SelfTestResult> bad = self_test(wrong, *cpu);
    CHECK(failed(bad));
    CHECK(count(bad, Outcome::failed) == count(results, Outcome::passed));
  }
  check_clean();
}

}  // namespace llmperf::replay::ascend::self_test_test
