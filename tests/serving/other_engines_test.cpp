// The rules of SGLang, TensorRT-LLM and llama.cpp, step by step (serving.md 1.2 to 1.4 and the sources that src/serving
// names).
#include "catch.h"
#include "serving/scheduler.h"
#include "serving/step_log.h"

namespace llmperf::other_engines_test {

using namespace llmperf::serving;
using steps::StepLog;

namespace {

EngineSettings sglang(std::int64_t chunk) { return steps::engine(EngineKind::sglang, chunk, 1); }
EngineSettings trtllm(std::int64_t budget) {
  EngineSettings s = steps::engine(EngineKind::trtllm, budget, 4);
  s.chunked_prefill = false;
  return s;
}
EngineSettings max_utilisation(std::int64_t budget) {
  EngineSettings s = trtllm(budget);
  s.admission = Admission::max_utilisation;
  return s;
}
EngineSettings llama(std::int64_t batch) { return steps::engine(EngineKind::llama_cpp, batch, 1); }

}  // namespace

TEST_CASE("SGLang computes prompts first, and those that decode wait") {
  StepLog log(sglang(8), {{4, 3}, {4, 3}}, 100);
  log.arrive();
  CHECK(log.step() == "A4 | 4 |");
  log.arrive();
  CHECK(log.step() == "B4 | 8 |");
  CHECK(log.step() == "A B | 10 |");
  CHECK(log.step() == "A B | 12 |");
  CHECK(log.step() == "| 0 |");
}

TEST_CASE("SGLang cuts the last prompt, goes on with it first and fills up with others") {
  StepLog log(sglang(8), {{4, 2}, {10, 2}, {5, 2}}, 100);
  log.arrive(3);
  CHECK(log.step() == "A4 B4 | 8 | C");
  CHECK(log.step() == "B6@4 C2 | 16 |");
  CHECK(log.step() == "C3@2 | 19 |");
  CHECK(log.step() == "A B C | 22 |");
}

TEST_CASE("SGLang's budget of a step's prompts holds beside the chunk's, and cuts none") {
  EngineSettings s = sglang(8);
  s.max_prefill_tokens = 10;
  StepLog log(s, {{6, 1}, {4, 1}}, 100);
  log.arrive(2);
  CHECK(log.step() == "A6 | 6 | B");  // four are left: B has to have fewer
  CHECK(log.step() == "B4 | 4 |");
  s.max_prefill_tokens = 11;
  StepLog cut(s, {{6, 1}, {4, 1}}, 100);
  cut.arrive(2);
  CHECK(cut.step() == "A6 B2 | 8 |");
}

TEST_CASE("SGLang without chunks computes the first prompt whole, however long it is") {
  EngineSettings s = sglang(8);
  s.chunked_prefill = false;
  s.max_prefill_tokens = 16;
  StepLog log(s, {{20, 1}, {4, 1}}, 100);
  log.arrive(2);
  CHECK(log.step() == "A20 | 20 | B");
  CHECK(log.step() == "B4 | 4 |");
}

TEST_CASE("SGLang admits what the cache has room for with all that a step's prompts may generate") {
  // A reserves 10 + 50 and a page: of 100 tokens 39 are left; B asks for 10 + 30 + 1.
  StepLog log(sglang(100), {{10, 50}, {10, 30}, {1, 1}}, 100);
  log.arrive(2);
  CHECK(log.step() == "A10 | 10 | B");
  CHECK(log.scheduler().blocked() == Cause::kv);
  // From the next step on A reserves 0.7 x 49: B would fit, but the batch counts as full until one ends.
  CHECK(log.step() == "A | 11 | B");
  log.arrive();
  log.skip(47);
  CHECK(log.step() == "A | 59 | B C");  // its last
  CHECK(log.step() == "B10 C1 | 11 |");
}

TEST_CASE("SGLang reserves a share of what those that run may generate") {
  // 90 tokens are free, 49 x 0.7 reserved: 55.7. B asks for 10 + 30 + 1 and leaves 14.7; C for 5 + 9 + 1.
  StepLog log(sglang(100), {{10, 50}, {10, 30}, {5, 9}}, 100);
  log.arrive();
  CHECK(log.step() == "A10 | 10 |");
  log.arrive(2);
  CHECK(log.step() == "B10 | 20 | C");
  StepLog shorter(sglang(100), {{10, 50}, {10, 30}, {5, 8}}, 100);
  shorter.arrive();
  shorter.step();
  shorter.arrive(2);
  CHECK(shorter.step() == "B10 C5 | 25 |");
}

TEST_CASE("SGLang's share falls from 0.7 to 0.098 in 600 steps of decode") {
  const EngineSettings s = sglang(8);
  CHECK(Sglang::first_ratio(s) == Approx(0.7));
  CHECK(Sglang::decayed(s, 0.7, 300) == Approx(0.7 - 0.301));  // half of 0.7 x 0.86
  CHECK(Sglang::decayed(s, 0.7, 600) == Approx(0.098));
  CHECK(Sglang::decayed(s, 0.7, 5000) == Approx(0.098));
  EngineSettings careful = s;
  careful.conservativeness = 2;
  CHECK(Sglang::first_ratio(careful) == 1);
}

TEST_CASE("SGLang retracts the sequence with the fewest tokens, then the longest prompt, to the end of the queue") {
  EngineSettings s = sglang(100);
  s.conservativeness = 0.1;  // a share of 0.07: more is admitted than there is room for
  StepLog log(s, {{6, 12}, {7, 5}, {1, 1}}, 20);
  log.arrive();
  CHECK(log.step() == "A6 | 6 |");  // 6 + 12 + 1 of 20
  log.arrive();
  CHECK(log.step() == "B7 | 13 |");  // 7 + 5 + 1 of 14 - 11 x 0.07
  CHECK(log.step() == "A B | 15 |");
  CHECK(log.step() == "A B | 17 |");
  CHECK(log.step() == "A B | 19 |");
  // Two are missing and one is free. Both have made four tokens: B's prompt is longer.
  CHECK(log.step() == "A | 10 | B");
  CHECK(log.of('B').preemptions == 1);
  // All that A may still generate is reserved now, min(1, (4 + 20) / 13): 10 free, of which B's prompt has 7, and 7
  // for A: less than nothing.
  CHECK(log.step() == "A | 11 | B");
  log.arrive();
  CHECK(log.step() == "A | 12 | B C");
  log.skip(4);
  CHECK(log.step() == "A | 17 | B C");  // its twelfth and last
  // Of B's prompt three tokens are still there: A took seven, three that B had made and the end of the prompt. B
  // computes its four tokens again. 20 - 3 - 8 - 1 less max_tokens of 5 are 3, and C asks for 1 + 1 + 1.
  CHECK(log.step() == "B8@3 | 11 | C");
  CHECK(log.step() == "C1 | 1 |");
}

TEST_CASE("SGLang finds a prefix once the step that computes it has ended") {
  StepLog log(sglang(100), {{16, 1, 16}, {16, 1, 16}, {16, 1, 16}}, 100);
  log.arrive(2);
  CHECK(log.step() == "A16 B16 | 32 |");
  log.arrive();
  CHECK(log.step() == "C1@15 | 16 |");
}

TEST_CASE("SGLang's mixed steps have a token of each sequence beside the chunk, which is shorter for it") {
  EngineSettings s = sglang(8);
  s.mixes = true;
  StepLog log(s, {{4, 4}, {10, 2}}, 100);
  log.arrive();
  CHECK(log.step() == "A4 | 4 |");
  log.arrive();
  CHECK(log.step() == "A B7 | 12 |");
  CHECK(log.step() == "A B3@7 | 16 |");
  CHECK(log.step() == "A B | 18 |");
}

TEST_CASE("TensorRT-LLM admits what can run to its last token") {
  // A may need four blocks and B five, of ten; C two.
  StepLog log(trtllm(32), {{8, 8}, {8, 12}, {4, 4}}, 10);
  log.arrive(3);
  CHECK(log.step() == "A8 B8 | 4 | C");
  CHECK(log.scheduler().blocked() == Cause::kv);
  log.skip(6);
  CHECK(log.step() == "A B | 8 | C");  // A's last: 15 tokens of each
  CHECK(log.step() == "B C4 | 5 |");
}

TEST_CASE("TensorRT-LLM at most utilisation admits what a prompt needs") {
  StepLog log(max_utilisation(32), {{8, 8}, {8, 12}, {4, 4}}, 10);
  log.arrive(3);
  CHECK(log.step() == "A8 B8 C4 | 5 |");
}

TEST_CASE("TensorRT-LLM at most utilisation pauses the request that was admitted last") {
  EngineSettings s = max_utilisation(32);
  s.prefix_caching = false;
  StepLog log(s, {{7, 6}, {7, 6}}, 4);
  log.arrive(2);
  CHECK(log.step() == "A7 B7 | 4 |");
  CHECK(log.step() == "A B | 4 |");
  CHECK(log.step() == "A | 3 | B");
  log.skip(3);
  CHECK(log.step() == "B9 | 3 |");
}

TEST_CASE("TensorRT-LLM computes a prompt whole where it does not cut them") {
  StepLog log(trtllm(10), {{6, 2}, {6, 1}}, 100);
  log.arrive(2);
  CHECK(log.step() == "A6 | 2 | B");
  CHECK(log.step() == "A B6 | 4 |");
}

TEST_CASE("TensorRT-LLM cuts prompts to multiples of a block, all of whose blocks it takes at once") {
  EngineSettings s = trtllm(12);
  s.chunked_prefill = true;
  StepLog log(s, {{6, 2}, {9, 1}, {30, 1}}, 100);
  log.arrive(3);
  CHECK(log.step() == "A6 B4 | 5 | C");  // six are left, four computed, of nine tokens in three blocks
  CHECK(log.step() == "A B5@4 C4 | 13 |");
  CHECK(log.step() == "C12@4 | 8 |");
}

TEST_CASE("TensorRT-LLM's step has so many tokens at most, generated ones among them") {
  StepLog log(trtllm(3), {{1, 9}, {1, 9}, {2, 9}}, 100);
  log.arrive(3);
  CHECK(log.step() == "A1 B1 | 2 | C");
  CHECK(log.step() == "A B | 2 | C");
}

TEST_CASE("llama.cpp defers what has no slot") {
  StepLog log(llama(8), {{4, 3}, {4, 3}, {4, 1}}, 100);
  log.arrive(3);
  CHECK(log.step() == "A4 B4 | 8 | C");
  CHECK(log.scheduler().blocked() == Cause::queue);
  CHECK(log.step() == "A B | 10 | C");
  CHECK(log.step() == "A B | 12 | C");
  CHECK(log.step() == "C4 | 4 |");
}

TEST_CASE("llama.cpp takes generated tokens first, then prompts up to n_batch") {
  StepLog log(llama(8), {{12, 3}, {6, 1}}, 100);
  log.arrive(2);
  CHECK(log.step() == "A8 | 8 |");
  CHECK(log.step() == "A4@8 B4 | 16 |");
  CHECK(log.step() == "A B2@4 | 19 |");
}

TEST_CASE("llama.cpp gives a request the slot that has its prefix, else the one that was idle longest") {
  StepLog log(llama(32),
              {{10, 1, 8, 1}, {10, 2, 8, 2}, {12, 1, 8, 1}, {12, 1, 8, 2}, {9, 1}, {12, 1, 8, 1}, {12, 1, 8, 2}}, 200);
  log.arrive(2);
  CHECK(log.step() == "A10 B10 | 20 |");
  CHECK(log.step() == "B | 11 |");
  log.arrive();
  CHECK(log.step() == "C4@8 | 12 |");  // A's slot
  log.arrive();
  CHECK(log.step() == "D4@8 | 12 |");  // B's
  log.arrive();
  CHECK(log.step() == "E9 | 9 |");  // nothing in common: C's, which was idle longest
  log.arrive();
  CHECK(log.step() == "F12 | 12 |");  // … and has that prefix no more; it takes D's? No: E's was used later
  log.arrive();
  CHECK(log.step() == "G12 | 12 |");
}

TEST_CASE("llama.cpp clears an idle slot where its cells are needed") {
  StepLog log(llama(32), {{8, 2, 8, 1}, {15, 1, 8, 2}, {8, 1, 8, 1}}, 20);
  log.arrive();
  CHECK(log.step() == "A8 | 8 |");
  CHECK(log.step() == "A | 9 |");
  log.arrive();
  CHECK(log.step() == "B15 | 15 |");  // in the slot that was never used; 11 cells beside A's nine
  log.arrive();
  CHECK(log.step() == "C8 | 8 |");  // as if A had never been
}

TEST_CASE("llama.cpp defers what the cells of a shared cache have no room for") {
  StepLog log(llama(32), {{8, 2}, {8, 1}}, 10);
  log.arrive(2);
  CHECK(log.step() == "A8 | 8 | B");
  CHECK(log.scheduler().blocked() == Cause::kv);
  CHECK(log.step() == "A | 9 | B");
  CHECK(log.step() == "B8 | 8 |");
}

TEST_CASE("a sequence whose prompt was computed elsewhere takes its blocks, and waits until they are filled") {
  const Workload w = steps::workload_of({{8, 3}, {8, 3}});
  EngineSettings s = steps::engine(EngineKind::vllm, 32, 4);
  s.max_sequences = 1;
  Scheduler scheduler(s, w, 10);
  Sequence a = scheduler.make(0, {});
  Sequence b = scheduler.make(1, {});
  a.remote = b.remote = true;
  scheduler.add(a);
  scheduler.add(b);
  Step step;
  scheduler.plan(step);
  CHECK(step.empty());
  CHECK(scheduler.incoming() == std::vector<Sequence*>{&a});  // which has the only seat
  CHECK(scheduler.cache().used() == 2);
  scheduler.join(a);
  scheduler.plan(step);
  REQUIRE(step.prompts.size() == 1);  // vLLM computes the last token of the prompt again; B is not computed here
  CHECK(step.prompts[0].tokens == 1);
  CHECK(step.prompts[0].context == 7);
  CHECK(scheduler.waiting().size() == 1);
}

}  // namespace llmperf::other_engines_test
