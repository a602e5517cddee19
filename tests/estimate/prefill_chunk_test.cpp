// Prompts in pieces: what is read once for each, what adds up to the whole prompt's, and what memory they take.
#include <string>

#include "catch.h"
#include "estimate/plan_cases.h"
#include "hardware/runtime_profile.h"

namespace llmperf::prefill_chunk_test {

using estimate::Choices;
using estimate::Estimate;
using estimate::Estimator;
using estimate::Phase;
using estimate::Scenario;
using test::estimator;

namespace {

Estimator in_pieces(const std::string& model, std::optional<std::int64_t> chunk, const graph::Plan& plan = {},
                    const std::function<void(Choices&)>& more = {}) {
  return estimator(model, "b200-sxm", plan, [&](Choices& c) {
    c.serving.prefill_chunk = chunk;
    if (more) more(c);
  });
}

// Steps one by one, as anyone would add them up.
Seconds added_up(Estimator& e, const Scenario& s, std::int64_t chunk) {
  Seconds sum;
  Phase step;
  for (std::int64_t begin = 0; begin < s.prompt; begin += chunk) {
    graph::SequenceGroup piece = e.prefill_of(s);
    piece.new_tokens = std::min(chunk, s.prompt - begin);
    piece.context = s.depth + begin;
    e.step(piece, e.micro_batches(s), step);
    sum += step.time;
  }
  return sum;
}

std::int64_t pieces(const Estimate& e) {
  std::int64_t steps = 0;
  for (const Phase& phase : Estimator::prompt_phases(e)) steps += phase.steps;
  return steps;
}

double sum_over(const Estimate& e, const std::function<double(const estimate::OpEstimate&)>& of) {
  double sum = 0;
  for (const Phase& phase : Estimator::prompt_phases(e)) {
    for (const estimate::OpEstimate& op : phase.ops) sum += d(phase.steps) * d(op.op.count) * of(op);
  }
  return sum;
}

bool of_head(const estimate::OpEstimate& op) { return op.op.scope == graph::Scope::sampled; }

}  // namespace

TEST_CASE("products of the pieces add up to the prompt's, but for the head, which every piece has") {
  const Scenario s{2, 4096, 1};
  const Estimate whole = in_pieces("llama-3-8b", {}).run(s);
  const Estimate cut = in_pieces("llama-3-8b", 512).run(s);
  REQUIRE(cut.phases.size() == 1);
  CHECK(cut.phases[0].steps == 8);
  CHECK(cut.phases[0].first.context == 0);
  CHECK(cut.phases[0].last.context == 7 * 512);
  const auto flops = [](bool head) {
    return [head](const estimate::OpEstimate& op) { return of_head(op) == head ? op.work.matrix.value : 0; };
  };
  CHECK(sum_over(cut, flops(false)) == Approx(sum_over(whole, flops(false))));
  CHECK(sum_over(cut, flops(true)) == Approx(8 * sum_over(whole, flops(true))));
  // 2 sequences, 4096 x 128256: the head of one step.
  CHECK(sum_over(whole, flops(true)) == 2.0 * 2 * 4096 * 128256);
}

TEST_CASE("weights are read once for every piece") {
  const Scenario s{1, 8000, 1};
  const Estimate whole = in_pieces("qwen-7b", {}).run(s);
  const Estimate cut = in_pieces("qwen-7b", 1000).run(s);
  // But for the rows of the token embedding that are looked up.
  const auto weights = [](const estimate::OpEstimate& op) {
    return std::holds_alternative<graph::Gather>(op.op.body) ? 0 : op.work.weights.value;
  };
  CHECK(sum_over(cut, weights) == Approx(8 * sum_over(whole, weights)));
  const auto written = [](const estimate::OpEstimate& op) { return op.work.kv_written.value; };
  CHECK(sum_over(cut, written) == Approx(sum_over(whole, written)));
}

TEST_CASE("activations are those of one piece, and what fits follows from them") {
  const Scenario s{1, 65536, 16};
  const Estimator whole = in_pieces("llama-3-8b", {});
  const Estimator cut = in_pieces("llama-3-8b", 2048);
  CHECK(cut.memory(s).activation == whole.memory({1, 2048, 1}).activation);
  CHECK(cut.memory(s).kv_cache == whole.memory(s).kv_cache);
  CHECK(whole.memory(s).activation.value == Approx(32 * cut.memory(s).activation.value));
  const Estimate one = Estimator(whole.setup()).run(s);
  const Estimate pieces = Estimator(cut.setup()).run(s);
  CHECK(pieces.largest_batch > one.largest_batch);
  CHECK(pieces.longest_context > one.longest_context);

  // Scores in memory are those of the last piece, the widest: 512 queries over all 2048 keys, not 2048 over them.
  const auto scores = [](Choices& c) { c.runtime.flash_attention = false; };
  const Estimator naive = in_pieces("llama-3-8b", 512, {}, scores);
  CHECK(naive.memory({1, 2048, 1}).activation == cost::activation_peak(naive.setup().execution, {1, 512, 1536}));
  // … or, of 1000 tokens after as many, those of the 900 that are left.
  const Estimator rest = in_pieces("llama-3-8b", 1000, {}, scores);
  CHECK(rest.memory({1, 1900, 1}).activation == cost::activation_peak(rest.setup().execution, {1, 900, 1000}));
  CHECK(rest.memory({1, 1900, 1}).activation > cost::activation_peak(rest.setup().execution, {1, 1000, 0}));
}

TEST_CASE("pieces as long as the prompt change nothing") {
  for (const char* model : {"llama-3-8b", "deepseek-v2-lite", "gemma-2-2b", "qwen3-next-80b-a3b"}) {
    INFO(model);
    const Scenario s{2, 1500, 20};
    const Estimate whole = in_pieces(model, {}).run(s);
    for (const std::int64_t chunk : {1500, 1501, 100'000}) {
      const Estimate one = in_pieces(model, chunk).run(s);
      CHECK(one.memory.total() == whole.memory.total());
      CHECK(one.largest_batch == whole.largest_batch);
      REQUIRE(one.phases.size() == whole.phases.size());
      CHECK(one.phases[0].steps == 1);
      CHECK(one.ttft == whole.ttft);
      CHECK(one.total == whole.total);
      CHECK(one.tpot == whole.tpot);
    }
  }
}

TEST_CASE("the time to the first token is the sum of the steps, whatever the model, the plan and the runtime") {
  const auto profile = hardware::load_runtime_profile(test::device("b200-sxm"), "vllm");
  for (const char* model :
       {"llama-3-8b", "mixtral-8x7b", "gemma-2-2b", "gpt-oss-20b", "deepseek-v2-lite", "qwen3-next-80b-a3b"}) {
    for (const graph::Plan& plan : {graph::Plan{}, graph::Plan{.tensor = 2}, graph::Plan{.pipeline = 2}}) {
      for (const bool predicted : {false, true}) {
        for (const std::int64_t chunk : {100, 128, 700, 2048}) {
          INFO(model << " " << graph::to_text(plan) << " " << predicted << " " << chunk);
          Estimator e = in_pieces(model, chunk, plan, [&](Choices& c) {
            if (predicted) c.profile = &profile;
          });
          const Scenario s{.batch = 2, .prompt = 5000, .generate = 2, .depth = chunk == 700 ? 300 : 0};
          const Estimate estimate = e.run(s);
          REQUIRE(estimate.fits);
          CHECK(pieces(estimate) == (5000 + chunk - 1) / chunk);
          CHECK(estimate.ttft->value == Approx(added_up(e, s, chunk).value).epsilon(1e-9));
          CHECK(estimate.total.value == Approx(estimate.ttft->value + estimate.tpot->value));
        }
      }
    }
  }
}

TEST_CASE("pieces whose ops are others are a phase of their own") {
  const Scenario s{1, 1000, 1};
  const auto steps = [&](Estimator e) {
    std::string text;
    for (const Phase& p : e.run(s).phases) text += std::string(p.name) + " " + std::to_string(p.steps) + ", ";
    return text;
  };
  CHECK(steps(in_pieces("llama-3-8b", 250)) == "prefill 4, ");
  CHECK(steps(in_pieces("llama-3-8b", 300)) == "prefill 3, prefill_2 1, ");  // 300, 300, 300 and 100
  const auto grown = [](Choices& c) { c.runtime.static_kv = false; };
  CHECK(steps(in_pieces("llama-3-8b", 250, {}, grown)) == "prefill 1, prefill_2 3, ");  // nothing to copy at first
  CHECK(steps(in_pieces("llama-3-8b", 300, {}, grown)) == "prefill 1, prefill_2 2, prefill_3 1, ");
  CHECK(steps(in_pieces("qwen3-next-80b-a3b", 250)) == "prefill 1, prefill_2 3, ");  // nor a state to read
}

TEST_CASE("shorter pieces take no less time, and no more memory") {
  for (const char* model : {"llama-3-8b", "gpt-oss-20b", "deepseek-v2-lite"}) {
    Seconds time;
    Bytes memory{1e15};
    for (const std::int64_t chunk : {8192, 4096, 2048, 1024, 512, 256}) {
      INFO(model << " " << chunk);
      const Estimate e = in_pieces(model, chunk).run({1, 8192, 1});
      CHECK(e.ttft->value >= time.value * (1 - 1e-9));
      CHECK(e.memory.total() <= memory);
      time = *e.ttft;
      memory = e.memory.total();
    }
  }
}

}  // namespace llmperf::prefill_chunk_test
