// What must hold between two estimates of one another's kind, on hundreds of random requests: no prediction beats the
// speed of light of its request; a better device is never slower nor holds less; more work is never faster, except
// where a kernel is known to change (the steps named below); the parts add up. Arrays of tiles and plans over several
// devices have tests of their own.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "catch.h"
#include "estimate/builtin.h"
#include "estimate/estimate.h"
#include "graph/random_decoder.h"
#include "hardware/runtime_execution.h"
#include "mapper/roofline/kernels.h"

namespace llmperf::metamorphic_test {

using estimate::Choices;
using estimate::Estimate;
using estimate::Estimator;
using estimate::OpEstimate;
using estimate::Phase;
using estimate::Scenario;
using test::decoder;
using test::device;

namespace {

constexpr int kCases = 120;
constexpr double kExact = 1e-9;

constexpr std::array kModels = {"llama-3.1-8b", "llama-3.3-70b",    "llama-3.2-1b", "qwen-7b",    "gemma-2-9b", "phi-2",
                                "mixtral-8x7b", "deepseek-v2-lite", "gpt-oss-20b",  "qwen2-0.5b", "chatglm3-6b"};
constexpr std::array kDevices = {
    "rtx4090", "rtx3090",       "a100-sxm-80gb",  "h100-sxm",  "b200-sxm", "mi300x",
    "t4",      "atlas-800i-a2", "v100-sxm2-32gb", "epyc-9654", "l40s",     "apple-m2-ultra"};
constexpr std::array kRuntimes = {"", "vllm", "transformers", "llama.cpp"};
constexpr std::array kWeights = {"bf16", "fp16", "w4a16", "awq", "fp8", "fp8-block128", "int8", "w8a8", "4.5"};
constexpr std::array kGguf = {"q4_k_m", "q8_0", "q4_0", "f16"};

template <class List>
std::string any_of(test::Random& random, const List& list) {
  return list[static_cast<std::size_t>(random.in(0, static_cast<std::int64_t>(list.size()) - 1))];
}

// A request, with and without the profile of its runtime.
struct Request {
  std::string model;
  std::string hardware;
  std::string runtime;
  Scenario scenario;
  std::int64_t context = 0;
  hardware::RuntimeProfile profile;
  Choices choices;

  std::string text() const {
    return model + " on " + hardware + ", " + profile.name + ", " + choices.weights.value_or("") + ", options " +
           hardware::format_runtime_options(choices.runtime) + ", batch " + std::to_string(scenario.batch) +
           ", prompt " + std::to_string(scenario.prompt) + ", context " + std::to_string(context);
  }
  Estimator on(const hardware::Device& other, const model::Decoder& deeper, bool predicted) const {
    Choices c = choices;
    c.profile = predicted ? &profile : nullptr;
    return Estimator(estimate::make_setup(deeper, other, c));
  }
  Estimator estimator(bool predicted) const { return on(device(hardware), decoder(model), predicted); }
};

// Sizes spread evenly over their logarithm.
std::int64_t size(test::Random& random, int powers) { return random.in(1, std::int64_t{1} << random.in(0, powers)); }

Request random_request(test::Random& random) {
  Request r;
  r.model = any_of(random, kModels);
  r.hardware = any_of(random, kDevices);
  r.runtime = any_of(random, kRuntimes);
  r.profile = hardware::load_runtime_profile(device(r.hardware), r.runtime, hardware::UnknownRuntime::use_default);
  r.choices.weights = r.profile.name == "llama.cpp" ? any_of(random, kGguf) : any_of(random, kWeights);
  const hardware::RuntimeExecution execution =
      hardware::resolve_execution(r.profile, random.chance() ? "all" : "none", "");
  r.choices.run_as(execution);
  r.choices.micro_batch = 1 << 24;  // a prompt is computed in one piece: a smaller one would be cut elsewhere
  r.scenario = {size(random, 8), size(random, 12), 2};
  r.context = size(random, 14);
  return r;
}

struct Steps {
  Phase prefill;
  Phase decode;
};
Steps steps_of(Estimator&& estimator, const Request& r) {
  Steps s;
  estimator.prefill(r.scenario, s.prefill);
  estimator.decode_step(r.scenario, r.context, s.decode);
  return s;
}

bool at_least(double a, double b) { return a >= b * (1 - kExact); }

template <class Check>
void on_random_requests(std::uint64_t seed, Check&& check) {
  test::Random random(seed);
  for (int i = 0; i < kCases; ++i) {
    const Request r = random_request(random);
    INFO("case " << i << ": " << r.text());
    check(r, random);
  }
}

// Rows that products with packed weights have in a phase: from some number on another kernel runs.
bool passes(std::int64_t threshold, std::int64_t before, std::int64_t after) {
  return threshold > 0 && before < threshold && after >= threshold;
}

// Blocks of keys that FlashAttention reads one after the other.
double key_blocks(const graph::Attention& a) {
  const auto keys = static_cast<double>(std::min(a.context + 1, a.window.value_or(a.context + 1)));
  const mapper::AttentionCall heads{.qk_dim = static_cast<double>(a.qk_dim), .v_dim = static_cast<double>(a.v_dim)};
  return std::ceil(keys / mapper::keys_per_step(heads));
}

// The steps at which more work may be faster, because the library goes over to another kernel, which it does at a fixed
// size and not where that is faster:
//  * from dequantise_rows on weights are unpacked and multiplied by the dense kernel (ExLlama from 50 rows, vLLM's AWQ
//    from 256, llama.cpp's CUDA backend from 33);
//  * above small_rows ggml's vector kernel hands over to its matrix kernel (9 rows);
//  * FlashAttention divides the keys of a decode step among more blocks by how these fill the last round, which it
//    reckons in whole blocks of keys (num_splits_heuristic), whatever the parts cost to join;
//  * it makes the heads of a group the rows of one block where a prompt is a single token, which takes copies that two
//    tokens do without.
bool changes_kernel(const OpEstimate& before, const OpEstimate& after, const hardware::KernelChoices& choices) {
  const auto* a = std::get_if<graph::Gemm>(&before.op.body);
  const auto* b = std::get_if<graph::Gemm>(&after.op.body);
  if (a && b && a->weights && a->weights->kernel) {
    const auto rows = [](const graph::Gemm& g) {
      const bool grouped = g.weight_matrices > 1;
      return static_cast<std::int64_t>(grouped ? std::ceil(static_cast<double>(g.m) / g.weight_matrices)
                                               : static_cast<double>(g.m));
    };
    const auto format = static_cast<std::size_t>(*a->weights->kernel);
    return passes(choices.dequantise_rows[format], rows(*a), rows(*b)) ||
           passes(choices.small_rows + (choices.small_rows > 0 ? 1 : 0), rows(*a), rows(*b));
  }
  const auto* less = std::get_if<graph::Attention>(&before.op.body);
  const auto* more = std::get_if<graph::Attention>(&after.op.body);
  if (less && more && less->q_tokens == 1 && more->q_tokens > 1) return more->heads > more->kv_heads;
  const bool decode = less && more && more->q_tokens == 1 && more->context > 0;
  const bool divides = decode && (choices.split_ungrouped || more->heads > more->kv_heads);
  return divides && (less->sequences != more->sequences || key_blocks(*less) != key_blocks(*more));
}

// That no op of `after`, which has more to do, is faster, nor the step. The overhead of waiting for the host shrinks as
// the device takes longer, so that it counts in the sum only.
void check_not_faster(const Phase& before, const Phase& after, const hardware::KernelChoices* choices) {
  REQUIRE(before.ops.size() == after.ops.size());
  bool step = false;
  for (std::size_t i = 0; i < before.ops.size(); ++i) {
    const OpEstimate& a = before.ops[i];
    const OpEstimate& b = after.ops[i];
    if (std::holds_alternative<graph::Overhead>(a.op.body) || at_least(b.step_time().value, a.step_time().value))
      continue;
    step = true;
    if (choices == nullptr || !changes_kernel(a, b, *choices)) {
      FAIL_CHECK(after.name << "." << b.op.name << ": " << a.step_time().value << " -> " << b.step_time().value);
    }
  }
  if (!step && !at_least(after.time.value, before.time.value)) {
    FAIL_CHECK(after.name << ": " << before.time.value << " -> " << after.time.value);
  }
}

}  // namespace

TEST_CASE("no op and no step is predicted faster than the speed of light of the same request") {
  on_random_requests(1, [](const Request& r, test::Random&) {
    const Steps predicted = steps_of(r.estimator(true), r);
    const Steps light = steps_of(r.estimator(false), r);
    for (const auto phase : {&Steps::prefill, &Steps::decode}) {
      const Phase& p = predicted.*phase;
      const Phase& l = light.*phase;
      REQUIRE(p.ops.size() == l.ops.size() + 1);  // and the runtime's overhead
      for (std::size_t i = 0; i < l.ops.size(); ++i) {
        if (!at_least(p.ops[i].step_time().value, l.ops[i].step_time().value)) {
          FAIL_CHECK(p.name << "." << l.ops[i].op.name << ": " << p.ops[i].step_time().value << " of at least "
                            << l.ops[i].step_time().value);
        }
      }
      if (!at_least(p.time.value, l.time.value)) FAIL_CHECK(p.name << ": " << p.time.value << " " << l.time.value);
    }
  });
}

TEST_CASE("the speed of light of weights that are unpacked to fp16 adds up in 16 bits, as their kernels do") {
  // 165.2 TFLOP/s with 32-bit accumulation, 330.3 with 16-bit, at 1.07 times the clock they are given at.
  const auto rate = [](const char* weights, const char* activations) {
    Choices choices;
    choices.weights = weights;
    if (*activations != '\0') choices.activations = activations;
    Estimator e(estimate::make_setup(decoder("llama-3.1-8b"), device("rtx4090"), choices));
    Phase p;
    e.prefill({16, 512, 1}, p);
    const auto op =
        std::find_if(p.ops.begin(), p.ops.end(), [](const OpEstimate& o) { return o.op.name == "down_proj"; });
    return op->work.matrix.value / op->time.total.value / 1.07;
  };
  CHECK(rate("w4a16", "") == Approx(330.3e12));
  CHECK(rate("awq", "") == Approx(330.3e12));
  CHECK(rate("w4a16", "bf16") == Approx(165.2e12));
  CHECK(rate("fp16", "") == Approx(165.2e12));
  CHECK(rate("f16", "") == Approx(330.3e12));
  CHECK(rate("q4_k_m", "") == Approx(660.6e12));  // llama.cpp's kernels multiply in int8
}

TEST_CASE("a device with more bandwidth or compute is never slower, one with more memory never holds less") {
  on_random_requests(2, [](const Request& r, test::Random& random) {
    hardware::Device better = device(r.hardware);
    const std::int64_t what = random.in(0, 2);
    if (what == 0) *better.memory.back().bandwidth = *better.memory.back().bandwidth * 1.3;
    if (what == 1) {
      for (hardware::Peak& peak : better.peaks) peak.rate = peak.rate * 1.3;
    }
    if (what == 2) *better.memory.back().capacity = *better.memory.back().capacity * 1.3;
    INFO("better " << (what == 0 ? "bandwidth" : what == 1 ? "peaks" : "capacity"));
    const model::Decoder& model = decoder(r.model);
    const bool predicted = random.in(0, 3) > 0;
    if (what == 2) {
      const Estimate before = r.estimator(predicted).run(r.scenario);
      const Estimate after = r.on(better, model, predicted).run(r.scenario);
      CHECK(after.largest_batch >= before.largest_batch);
      CHECK(after.longest_context >= before.longest_context);
      CHECK((after.fits || !before.fits));
      return;
    }
    const Steps before = steps_of(r.on(better, model, predicted), r);
    const Steps after = steps_of(r.estimator(predicted), r);
    check_not_faster(before.prefill, after.prefill, nullptr);
    check_not_faster(before.decode, after.decode, nullptr);
  });
}

TEST_CASE("more requests, longer prompts and longer contexts never take less time, but where a kernel changes") {
  on_random_requests(3, [](const Request& r, test::Random& random) {
    Request more = r;
    const std::int64_t what = random.in(0, 2);
    const std::int64_t by = random.chance() ? 1 : size(random, 6);
    if (what == 0) more.scenario.batch += by;
    if (what == 1) more.scenario.prompt += by;
    if (what == 2) more.context += by;
    INFO("plus " << by << (what == 0 ? " requests" : what == 1 ? " prompt tokens" : " cached tokens"));
    const bool predicted = random.in(0, 3) > 0;
    const hardware::KernelChoices* choices = predicted ? &r.profile.choices : nullptr;
    const Steps before = steps_of(r.estimator(predicted), r);
    const Steps after = steps_of(more.estimator(predicted), more);
    check_not_faster(before.prefill, after.prefill, choices);
    check_not_faster(before.decode, after.decode, choices);
    const Estimator memory = r.estimator(predicted);
    CHECK(at_least(memory.memory(more.scenario).total().value, memory.memory(r.scenario).total().value));
  });
}

TEST_CASE("another layer of the same kind never takes less time or memory") {
  on_random_requests(4, [](const Request& r, test::Random& random) {
    if (r.profile.name == "llama.cpp") return;  // the mixture of types of a GGUF file changes with the number of layers
    model::Decoder deeper = decoder(r.model);
    deeper.layer_kinds.push_back(deeper.layer_kinds.back());
    const bool predicted = random.in(0, 3) > 0;
    Estimator less = r.estimator(predicted);
    Estimator more = r.on(device(r.hardware), deeper, predicted);
    CHECK(more.memory(r.scenario).total() > less.memory(r.scenario).total());
    const Steps before = steps_of(std::move(less), r);
    const Steps after = steps_of(std::move(more), r);
    CHECK(after.prefill.time > before.prefill.time);
    CHECK(after.decode.time > before.decode.time);
  });
}

TEST_CASE("values of ops add up to their phase, and phases to the generation") {
  on_random_requests(5, [](const Request& r, test::Random& random) {
    Estimator estimator = r.estimator(random.in(0, 3) > 0);
    Scenario scenario = r.scenario;
    scenario.generate = size(random, 8);
    const Estimate e = estimator.run(scenario);
    Seconds total;
    for (const Phase& phase : e.phases) {
      Seconds time;
      Seconds bounds;
      cost::Work work;
      for (const OpEstimate& op : phase.ops) {
        time += op.step_time();
        work += op.work * static_cast<double>(op.op.count);
      }
      for (const Seconds& bound : phase.bound_time) bounds += bound;
      CHECK(time.value == Approx(phase.time.value).epsilon(kExact));
      CHECK(bounds.value == Approx(phase.ops_time.value).epsilon(kExact));
      CHECK(work.bytes().value == Approx(phase.work.bytes().value).epsilon(kExact));
      CHECK((work.matrix + work.vector).value == Approx((phase.work.matrix + phase.work.vector).value).epsilon(kExact));
      total += phase.time * static_cast<double>(phase.steps);
    }
    if (e.phases.empty()) return;
    CHECK(total.value == Approx(e.total.value).epsilon(kExact));
    CHECK(e.total.value ==
          Approx(e.ttft->value + static_cast<double>(scenario.generate - 1) * e.tpot.value_or(Seconds{}).value)
              .epsilon(kExact));
    if (e.tpot) CHECK(at_least(std::max(e.tpot_first->value, e.tpot_last->value), e.tpot->value * (1 - 2e-3)));
  });
}

TEST_CASE("AWQ's weights take GPTQ's time where one kernel multiplies with both, and the setup says which kernel") {
  struct Case {
    const char* hardware;
    const char* runtime;
    const char* kernel;
    bool as_gptq;
  };
  for (const Case& c :
       {Case{"rtx4090", "vllm", "Marlin", true}, Case{"rtx4090", "vllm@0.5.3", "Marlin", true},
        Case{"rtx4090", "vllm@0.4", "AWQ's GEMM", false}, Case{"h100-sxm", "vllm", "Marlin", true},
        Case{"h100-sxm", "sglang", "Marlin", true}, Case{"rtx4090", "transformers", "AutoAWQ's GEMM", false},
        Case{"h100-sxm", "trtllm", "TensorRT-LLM's weight-only GEMM", true}}) {
    CAPTURE(c.hardware, c.runtime);
    const hardware::RuntimeProfile profile = hardware::load_runtime_profile(device(c.hardware), c.runtime);
    const auto first_token = [&](const char* weights, std::string_view& kernel) {
      Choices choices;
      choices.weights = weights;
      choices.profile = &profile;
      choices.runtime = profile.options;
      Estimator e(estimate::make_setup(decoder("llama-3.1-8b"), device(c.hardware), choices));
      kernel = e.setup().weights_kernel;
      Phase p;
      e.prefill({1, 512, 1}, p);
      return p.time.value;
    };
    std::string_view awq, gptq;
    const double time = first_token("awq", awq);
    const double other = first_token("gptq", gptq);
    CHECK(awq == c.kernel);
    CHECK(!gptq.empty());
    CHECK((time == other) == c.as_gptq);
    if (!c.as_gptq) CHECK(time > 1.2 * other);
  }
}

}  // namespace llmperf::metamorphic_test
