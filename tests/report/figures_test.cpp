// What a result says that it rests on, and which layers its ops are of.
#include <algorithm>
#include <string>

#include "catch.h"
#include "estimate/plan_cases.h"
#include "report/pages/phase.h"
#include "result/basis.h"
#include "result/parts.h"

namespace llmperf::report::figures_test {
namespace {

TEST_CASE("a latency of links is listed where it counts: without a profile, or as a step that the file states") {
  const auto listed = [](const hardware::Device& hardware, const hardware::RuntimeProfile* profile) {
    estimate::Choices choices;
    choices.plan = {.tensor = 8};
    choices.profile = profile;
    const std::vector<Figure> figures =
        figures_used(estimate::make_setup(test::decoder("llama-3.1-8b"), hardware, choices));
    return std::any_of(figures.begin(), figures.end(),
                       [](const Figure& f) { return f.key == "interconnect_latency_s"; });
  };
  const hardware::Device& usual = test::device("h100-sxm");
  const hardware::RuntimeProfile profile = hardware::load_runtime_profile(usual, "vllm");
  CHECK(listed(usual, nullptr));
  CHECK_FALSE(listed(usual, &profile));
  hardware::Device slow = usual;
  slow.interconnect->latency = Seconds{100e-6};
  CHECK(listed(slow, &profile));
  slow.interconnect->latency = Seconds{1e-9};  // within a step of the profile's
  CHECK_FALSE(listed(slow, &profile));
}

TEST_CASE("layers are named by what tells them from the others") {
  CHECK(layers_text(test::decoder("deepseek-v3"), 0) == "dense");
  CHECK(layers_text(test::decoder("deepseek-v3"), 1) == "expert");
  CHECK(layers_text(test::decoder("gemma-2-9b"), 0) == "window");
  CHECK(layers_text(test::decoder("gemma-2-9b"), 1) == "full");
  CHECK(layers_text(test::decoder("llama-3.1-8b"), 0).empty());
  CHECK(layers_text(test::decoder("deepseek-v3"), -1).empty());
}

TEST_CASE("exchanges of one name say which layers they are of, and those of one kind do not") {
  const auto names = [](const char* model) {
    estimate::Estimator e = test::estimator(model, "h100-sxm", {.tensor = 8});
    const estimate::Estimate result = e.run({1, 128, 2});
    std::vector<std::string> ops;
    const Table t =
        communication_table(e.setup().charged_cluster(), false, result.phases.front(), e.setup().execution.model);
    for (const auto& row : t.rows) ops.push_back(row.front());
    return ops;
  };
  CHECK(names("deepseek-v2-lite") == std::vector<std::string>{"embed_reduce", "attention_reduce (dense)",
                                                              "mlp_reduce (dense)", "attention_reduce (expert)",
                                                              "mlp_reduce (expert)", "logits_gather", "total"});
  CHECK(names("llama-3.1-8b") ==
        std::vector<std::string>{"embed_reduce", "attention_reduce", "mlp_reduce", "logits_gather", "total"});
}

}  // namespace
}  // namespace llmperf::report::figures_test
