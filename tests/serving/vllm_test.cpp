// vLLM's rules, step by step (serving.md 1.1): blocks of four tokens, so that what is held can be counted by hand.
#include "catch.h"
#include "serving/step_log.h"

namespace llmperf::vllm_test {

using namespace llmperf::serving;
using steps::StepLog;

namespace {

EngineSettings vllm(std::int64_t budget) { return steps::engine(EngineKind::vllm, budget, 4); }

}  // namespace

TEST_CASE("vLLM fills a step with prompts in order and cuts the last") {
  StepLog log(vllm(16), {{10, 2}, {10, 2}}, 100);
  log.arrive(2);
  CHECK(log.step() == "A10 B6 | 5 |");  // ceil(10 / 4) + ceil(6 / 4) blocks
  CHECK(log.step() == "A B4@6 | 6 |");  // A's second and last token; 11 tokens are three blocks still
  CHECK(log.step() == "B | 3 |");
  CHECK(log.step() == "| 0 |");
}

TEST_CASE("vLLM decodes first and gives prompts what is left of the budget") {
  StepLog log(vllm(4), {{1, 9}, {1, 9}, {9, 1}}, 100);
  log.arrive(3);
  CHECK(log.step() == "A1 B1 C2 | 3 |");
  CHECK(log.step() == "A B C2@2 | 3 |");
  CHECK(log.step() == "A B C2@4 | 4 |");
  CHECK(log.step() == "A B C2@6 | 4 |");
  CHECK(log.step() == "A B C1@8 | 7 |");  // A and B begin a second block with their fifth token
  CHECK(log.step() == "A B | 4 |");
}

TEST_CASE("vLLM admits as many as there are seats") {
  EngineSettings s = vllm(16);
  s.max_sequences = 1;
  StepLog log(s, {{4, 2}, {4, 1}}, 100);
  log.arrive(2);
  CHECK(log.step() == "A4 | 1 | B");
  CHECK(log.scheduler().blocked() == Cause::queue);
  CHECK(log.step() == "A | 2 | B");
  CHECK(log.step() == "B4 | 1 |");
}

TEST_CASE("vLLM's threshold for long prompts holds for each of them") {
  EngineSettings s = vllm(16);
  s.long_prefill_threshold = 4;
  StepLog log(s, {{10, 1}, {6, 1}}, 100);
  log.arrive(2);
  CHECK(log.step() == "A4 B4 | 2 |");
  CHECK(log.step() == "A4@4 B2@4 | 4 |");
  CHECK(log.step() == "A2@8 | 3 |");
}

TEST_CASE("vLLM without chunks waits until a whole prompt fits, and nobody passes it") {
  EngineSettings s = vllm(10);
  s.chunked_prefill = false;
  StepLog log(s, {{6, 2}, {6, 1}, {2, 1}}, 100);
  log.arrive(3);
  CHECK(log.step() == "A6 | 2 | B C");  // four tokens are left: not enough for B, and C is behind it
  CHECK(log.scheduler().blocked() == Cause::budget);
  CHECK(log.step() == "A B6 C2 | 5 |");
}

TEST_CASE("vLLM reserves the blocks of a whole prompt, or only of its first chunk") {
  EngineSettings s = vllm(10);
  StepLog whole(s, {{8, 5}, {12, 1}}, 4);
  whole.arrive(2);
  CHECK(whole.step() == "A8 | 2 | B");  // B lacks three blocks, two are free
  CHECK(whole.scheduler().blocked() == Cause::kv);
  s.reserves_full_input = false;
  StepLog first(s, {{8, 5}, {12, 1}}, 4);
  first.arrive(2);
  CHECK(first.step() == "A8 B2 | 3 |");
  CHECK(first.step() == "A | 3 | B");  // A has the last block; B wants nine tokens more, and is the last itself
}

TEST_CASE("vLLM keeps the watermark's blocks free where something runs") {
  EngineSettings s = vllm(100);
  s.watermark = 0.3;  // three of ten blocks
  StepLog log(s, {{12, 2}, {16, 1}, {4, 1}}, 10);
  log.arrive(3);
  CHECK(log.step() == "A12 B16 | 7 | C");
  CHECK(log.step() == "A C4 | 5 |");
  StepLog alone(s, {{40, 1}}, 10);
  alone.arrive();
  CHECK(alone.step() == "A40 | 10 |");
}

TEST_CASE("vLLM preempts the sequence that was admitted last, which waits in front and is computed again") {
  EngineSettings s = vllm(16);
  s.prefix_caching = false;
  StepLog log(s, {{7, 6}, {7, 6}, {1, 1}}, 4);
  log.arrive(2);
  CHECK(log.step() == "A7 B7 | 4 |");
  CHECK(log.step() == "A B | 4 |");
  log.arrive();
  CHECK(log.step() == "A | 3 | B C");  // A's ninth token: B loses its blocks; nothing is admitted in such a step
  CHECK(log.scheduler().blocked() == Cause::kv);
  CHECK(log.step() == "A | 3 | B C");  // B needs three blocks; C, which would fit, is behind it
  CHECK(log.step() == "A | 3 | B C");
  CHECK(log.step() == "A | 3 | B C");  // A's sixth token
  CHECK(log.step() == "B9 C1 | 4 |");  // seven tokens of the prompt and two that it had made
  CHECK(log.step() == "B | 3 |");
  CHECK(log.of('B').generated == 4);
  CHECK(log.of('B').preemptions == 1);
}

TEST_CASE("what is left of a preempted sequence's blocks is not computed again") {
  StepLog log(vllm(16), {{7, 6}, {7, 6}}, 4);
  log.arrive(2);
  log.skip(2);
  CHECK(log.step() == "A | 3 | B");  // takes the last of B's two blocks: the first is still there
  log.skip(3);
  CHECK(log.step() == "B5@4 | 3 |");
  CHECK(log.of('B').reused == 0);  // which tells of the first time
}

TEST_CASE("the last sequence preempts itself") {
  EngineSettings s = vllm(16);
  StepLog log(s, {{1, 4}, {3, 3}}, 2);
  log.arrive(2);
  CHECK(log.step() == "A1 B3 | 2 |");
  CHECK(log.step() == "A B | 2 |");
  CHECK(log.step() == "A | 1 | B");   // B's fifth token
  CHECK(log.step() == "A | 1 | B");   // A's last token
  CHECK(log.step() == "B1@4 | 2 |");  // five tokens are known, of which a block is there
}

TEST_CASE("several are preempted, and come back in their order") {
  EngineSettings s = vllm(30);
  s.prefix_caching = false;
  StepLog log(s, {{8, 8}, {4, 8}, {4, 8}}, 4);
  log.arrive(3);
  CHECK(log.step() == "A8 B4 C4 | 4 |");
  // A needs a third block: C's. B needs a second: none is free, and B is the last.
  CHECK(log.step() == "A | 3 | B C");
  CHECK(log.step() == "A | 3 | B C");
}

TEST_CASE("a hit never covers the whole prompt: its last block is computed again") {
  StepLog log(vllm(100), {{16, 1, 16}, {16, 1, 16}}, 100);
  log.arrive();
  CHECK(log.step() == "A16 | 4 |");
  log.arrive();
  CHECK(log.step() == "B4@12 | 4 |");
  CHECK(log.of('B').reused == 12);
}

TEST_CASE("vLLM shares blocks within the step that computes them") {
  StepLog log(vllm(100), {{16, 2, 16}, {16, 2, 16}}, 100);
  log.arrive(2);
  CHECK(log.step() == "A16 B4@12 | 5 |");  // B holds three of A's blocks and one of its own
}

TEST_CASE("a shared prefix counts in whole blocks, and as held by each") {
  StepLog log(vllm(100), {{12, 1, 10}, {12, 2, 10}}, 100);
  log.arrive(2);
  CHECK(log.step() == "A12 B4@8 | 4 |");  // of ten shared tokens two blocks
  CHECK(log.step() == "B | 4 |");         // A's third is free; B has 13 tokens
}

TEST_CASE("blocks that are kept are free, but not for the request that hits them") {
  // Four of five blocks keep A's prompt. B hits three of them, and lacks two more: two are free beside these.
  StepLog log(vllm(100), {{16, 1, 16}, {20, 1, 12}}, 5);
  log.arrive(2);
  CHECK(log.step() == "A16 | 4 | B");  // five blocks, three of which are A's: two more
  CHECK(log.step() == "B8@12 | 5 |");
}

TEST_CASE("a draft's tokens count in vLLM's budget") {
  StepLog log(vllm(4), {{1, 9}, {9, 1}}, 100, 2);
  log.arrive(2);
  CHECK(log.step() == "A1 B3 | 2 |");
  CHECK(log.step() == "A B1@3 | 2 |");  // three for A
  CHECK(log.step() == "A B1@4 | 4 |");  // A: 2 computed, and three more
}

TEST_CASE("a pipeline's next step goes on with a prompt of which a piece is under way") {
  const Workload w = steps::workload_of({{10, 1}, {3, 1}});
  Scheduler scheduler(vllm(4), w, 100);
  Sequence a = scheduler.make(0, {});
  Sequence b = scheduler.make(1, {});
  scheduler.add(a);
  scheduler.add(b);
  std::vector<Step> steps(4);
  for (Step& s : steps) scheduler.plan(s);
  CHECK(steps[0].prompts[0].tokens == 4);
  CHECK(steps[1].prompts[0].context == 4);
  CHECK(steps[2].prompts[0].context == 8);
  CHECK(steps[2].prompts[0].tokens == 2);
  CHECK(steps[2].prompts[1].sequence == &b);  // two of its three tokens
  CHECK(steps[3].prompts.size() == 1);
  CHECK(steps[3].prompts[0].sequence == &b);
  std::vector<Sequence*> ended;
  const auto nothing = [](Sequence&, std::int64_t) {};
  scheduler.complete(steps[0], nullptr, nothing, ended);
  scheduler.complete(steps[1], nullptr, nothing, ended);
  CHECK(ended.empty());
  scheduler.complete(steps[2], nullptr, nothing, ended);
  CHECK(ended == std::vector<Sequence*>{&a});
}

}  // namespace llmperf::vllm_test
