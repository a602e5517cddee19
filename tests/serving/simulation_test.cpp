// simulate(): single cases by hand, and vLLM on one replica against a plain loop that takes step after step.
#include "serving/simulation.h"

#include <deque>
#include <map>

#include "base/error.h"
#include "catch.h"
#include "serving/metrics.h"
#include "serving/random.h"
#include "serving/step_log.h"

namespace llmperf::simulation_test {

using namespace llmperf::serving;

namespace {

// 10 ms, 1 ms for each row, 10 us for each cached token.
estimate::StepTime cost(const estimate::StepShape& shape) {
  double ms = 10 + static_cast<double>(shape.decodes) + 0.01 * static_cast<double>(shape.context_sum);
  for (const estimate::Chunk& c : shape.chunks) {
    ms += static_cast<double>(c.tokens) + 0.01 * static_cast<double>(c.context);
  }
  return {Seconds{ms / 1e3}, Seconds{ms / 1e3}};
}
estimate::StepTime ten_and_rows(const estimate::StepShape& shape) {
  double ms = 10 + static_cast<double>(shape.decodes);
  for (const estimate::Chunk& c : shape.chunks) ms += static_cast<double>(c.tokens);
  return {Seconds{ms / 1e3}, Seconds{ms / 2e3}};
}

Deployment deployment(EngineKind kind = EngineKind::vllm, std::int64_t budget = 64, std::int64_t blocks = 1000) {
  Deployment d;
  d.pool.settings = steps::engine(kind, budget, kind == EngineKind::vllm || kind == EngineKind::trtllm ? 4 : 1);
  d.pool.settings.asynchronous = false;
  d.pool.cost = ten_and_rows;
  d.pool.blocks = blocks;
  return d;
}
Workload sent(const std::vector<steps::Ask>& asks, const std::vector<double>& times) {
  Workload w = steps::workload_of(asks);
  for (std::size_t i = 0; i < times.size(); ++i) w.requests[i].sent = Seconds{times[i]};
  return w;
}
double ms(Seconds t) { return t.value * 1e3; }

// vLLM as serving.md has it, token by token: blocks are counted and nothing is kept of what is let go.
std::vector<Served> plain_vllm(const Deployment& deployment, const Workload& w) {
  struct Seq {
    std::size_t request = 0;
    std::int64_t known = 0, computed = 0, blocks = 0, now = 0;
  };
  const EngineSettings& o = deployment.pool.settings;
  std::vector<Served> served(w.requests.size());
  std::vector<Seq> all(w.requests.size());
  std::deque<Seq*> waiting;
  std::vector<Seq*> late;  // an asynchronous engine has planned the next step when they come
  std::vector<Seq*> running;
  std::int64_t free = deployment.pool.blocks;
  std::size_t next = 0;
  std::size_t done = 0;
  double now = 0;
  bool busy = false;
  const auto arrive = [&](double until) {
    const auto most = next - done < static_cast<std::size_t>(w.concurrency.value_or(1 << 30));
    if (next == all.size() || !most || (w.open && w.requests[next].sent.value > until)) return false;
    served[next].sent = Seconds{w.open ? w.requests[next].sent.value : now};
    all[next] = {.request = next, .known = w.requests[next].input};
    if (busy && o.asynchronous) {
      late.push_back(&all[next++]);
    } else {
      waiting.push_back(&all[next++]);
    }
    return true;
  };
  const auto want = [&](const Seq& s, std::int64_t tokens) {
    return std::max<std::int64_t>(0, (tokens + o.block_size - 1) / o.block_size - s.blocks);
  };
  while (done < all.size()) {
    std::int64_t budget = o.max_batched_tokens;
    bool preempted = false;
    std::vector<Seq*> step;
    for (std::size_t i = 0; i < running.size() && budget > 0; ++i) {
      Seq& s = *running[i];
      s.now = std::min(s.known - s.computed, budget);
      while (want(s, s.computed + s.now) > free) {
        preempted = true;
        Seq& last = *running.back();
        free += last.blocks;
        last.blocks = last.computed = 0;
        waiting.push_front(&last);
        running.pop_back();
        if (&last == &s) break;
      }
      if (i >= running.size()) break;
      const std::int64_t more = want(s, s.computed + s.now);
      free -= more;
      s.blocks += more;
      budget -= s.now;
      step.push_back(&s);
    }
    while (!preempted && !waiting.empty() && budget > 0 &&
           static_cast<std::int64_t>(running.size()) < o.max_sequences) {
      Seq& s = *waiting.front();
      s.now = std::min(s.known, budget);
      if (want(s, o.reserves_full_input ? s.known : s.now) > free) break;
      waiting.pop_front();
      running.push_back(&s);
      s.blocks = want(s, s.now);
      free -= s.blocks;
      budget -= s.now;
      step.push_back(&s);
    }
    const bool more = !late.empty();
    waiting.insert(waiting.end(), late.begin(), late.end());
    late.clear();
    if (step.empty() && more) continue;
    if (step.empty()) {
      // Those that others' ends let go of arrive behind the plan.
      if (!arrive(now)) {
        REQUIRE(next < all.size());
        now = w.requests[next].sent.value;
      }
      while (arrive(now)) {
      }
      continue;
    }
    estimate::StepShape shape;
    std::vector<estimate::Chunk> chunks;
    for (const Seq* s : step) {
      if (s->known - s->computed == 1 && s->known > w.requests[s->request].input) {
        ++shape.decodes;
        shape.context_sum += s->computed;
      } else {
        chunks.push_back({s->now, s->computed});
      }
    }
    shape.chunks = chunks;
    const double begin = now;
    busy = true;
    now += deployment.pool.cost(shape).latency.value;
    if (w.open) {
      while (next < all.size() && w.requests[next].sent.value <= now && arrive(now)) {
      }
    } else {
      // Those whose place was given up at the end of the step before.
      const double end = now;
      now = begin;
      while (arrive(begin)) {
      }
      now = end;
    }
    busy = false;
    for (Seq* s : step) {
      s->computed += s->now;
      if (s->computed < s->known) continue;
      Served& r = served[s->request];
      if (++s->known == w.requests[s->request].input + 1) r.first = Seconds{now};
      r.last = Seconds{now};
      if (s->known < w.requests[s->request].input + w.requests[s->request].output) continue;
      free += s->blocks;
      std::erase(running, s);
      ++done;
    }
  }
  return served;
}

}  // namespace

TEST_CASE("one request alone: its prompt's step and a step for each token after the first") {
  const Run run = simulate(deployment(), sent({{20, 4}}, {1}));
  const Served& r = run.requests[0];
  CHECK(ms(r.ttft()) == Approx(30));          // 10 + 20
  CHECK(ms(r.latency()) == Approx(30 + 33));  // 3 x 11
  CHECK(ms(r.tpot()) == Approx(11));
  CHECK(run.steps == 4);
  CHECK(run.begin.value == 1);
  CHECK(run.end.value == Approx(1.063));
  CHECK(run.busy == Approx(0.063));
  CHECK(run.kv_peak_share == Approx(6.0 / 1000));  // 23 tokens
  CHECK(run.prompt_tokens == 20);
  std::int64_t gaps = 0;
  for (const auto& [seconds, count] : run.gaps) gaps += count;
  CHECK(gaps == 3);
  CHECK(ms(Seconds{r.causes[static_cast<std::size_t>(Cause::prefill)]}) == Approx(30));
}

TEST_CASE("a request that arrives in a step waits for its end, and slows the others down") {
  // A: 0 to 30 prompt, then steps of 11. B arrives at 35, in the step from 30 to 41: its prompt is computed with A's
  // token from 41 to 41 + 10 + 1 + 20.
  const Run run = simulate(deployment(), sent({{20, 3}, {20, 1}}, {0, 0.035}));
  CHECK(ms(run.requests[0].latency()) == Approx(72));
  CHECK(ms(run.requests[1].ttft()) == Approx(37));
  const Causes& causes = run.requests[1].causes;
  CHECK(ms(Seconds{causes[static_cast<std::size_t>(Cause::queue)]}) == Approx(6));
  CHECK(ms(Seconds{causes[static_cast<std::size_t>(Cause::prefill)]}) == Approx(30));
  CHECK(ms(Seconds{causes[static_cast<std::size_t>(Cause::interference)]}) == Approx(1));
  // Two gaps of A: 11 and 31, of which 20 are B's prompt.
  CHECK(run.gap_causes.decode == Approx(0.022));
  CHECK(run.gap_causes.prefill == Approx(0.020));
  CHECK(run.gap_causes.stall == 0);
}

TEST_CASE("an asynchronous engine has planned the next step when a request arrives") {
  // As above, but the step from 41 to 52 was planned at 30: B's prompt is computed with A's last token from 52 to 83.
  Deployment d = deployment();
  d.pool.settings.asynchronous = true;
  const Run run = simulate(d, sent({{20, 4}, {20, 1}}, {0, 0.035}));
  CHECK(ms(run.requests[0].latency()) == Approx(30 + 11 + 11 + 31));
  CHECK(ms(run.requests[1].ttft()) == Approx(83 - 35));
  CHECK(ms(Seconds{run.requests[1].causes[static_cast<std::size_t>(Cause::queue)]}) == Approx(17));
  // Where no step follows, nothing was planned: A ends at 30, and B begins then.
  CHECK(ms(simulate(d, sent({{20, 1}, {20, 1}}, {0, 0.005})).requests[1].ttft()) == Approx(25 + 30));
}

TEST_CASE("the time that a step makes others wait in SGLang is a stall") {
  // A's second token waits for B's prompt: 30 + 30 + 11.
  const Run run = simulate(deployment(EngineKind::sglang), sent({{20, 2}, {20, 2}}, {0, 0.001}));
  CHECK(ms(run.requests[0].latency()) == Approx(30 + 30 + 12));
  CHECK(run.gap_causes.stall == Approx(0.030));
  CHECK(run.gap_causes.decode == Approx(0.024));
}

TEST_CASE("requests pass the front end beside each other, and a host that is not asynchronous takes each step") {
  Deployment d = deployment();
  d.pool.settings.frontend = Seconds{0.005};
  d.pool.settings.host_step = Seconds{0.002};
  d.pool.settings.asynchronous = true;
  const Run run = simulate(d, sent({{20, 1}, {20, 1}}, {0, 0}));
  CHECK(ms(run.requests[0].ttft()) == Approx(5 + 50));  // one step of both prompts
  CHECK(ms(run.requests[1].ttft()) == Approx(5 + 50));
  d.pool.settings.asynchronous = false;
  CHECK(ms(simulate(d, sent({{20, 1}}, {0})).requests[0].ttft()) == Approx(5 + 30 + 2));
}

TEST_CASE(
    "in a closed loop the next request is sent when one ends, and joins the step after the one that then begins") {
  Workload w = sent({{20, 1}, {20, 5}, {20, 1}}, {});
  w.open = false;
  w.concurrency = 2;
  const Run run = simulate(deployment(), w);
  // A and B together: 50 ms. C is sent then; B's second token is from 50 to 61; C and B's third from 61 to 92.
  CHECK(ms(run.requests[0].latency()) == Approx(50));
  CHECK(ms(run.requests[2].sent) == Approx(50));
  CHECK(ms(run.requests[2].ttft()) == Approx(42));
  CHECK(ms(run.requests[1].latency()) == Approx(61 + 31 + 11 + 11));
}

TEST_CASE("the lowest priority is let in first, of equals the one that came first") {
  // One seat. A runs from 0 to 30; B, C and D wait for it, of which C is the most urgent.
  Deployment d = deployment();
  d.pool.settings.max_sequences = 1;
  Workload w = sent({{20, 1}, {20, 1}, {20, 1}, {20, 1}}, {0, 0.001, 0.002, 0.003});
  const std::int32_t priorities[] = {0, 1, -1, 1};
  for (std::size_t i = 0; i < 4; ++i) w.requests[i].priority = priorities[i];
  const Run run = simulate(d, w);
  CHECK(ms(run.requests[0].last) == Approx(30));
  CHECK(ms(run.requests[2].last) == Approx(60));
  CHECK(ms(run.requests[1].last) == Approx(90));
  CHECK(ms(run.requests[3].last) == Approx(120));
}

TEST_CASE("without a free block the one of the last priority loses its own") {
  // Two prompts of 8 tokens hold two blocks of four each; the fifth that A needs for its next token is B's.
  Deployment d = deployment(EngineKind::vllm, 64, 4);
  Workload w = sent({{8, 4}, {8, 2}}, {0, 0});
  CHECK(simulate(d, w).requests[1].preemptions == 1);  // that was admitted last
  w.requests[0].priority = 1;
  const Run run = simulate(d, w);
  CHECK(run.requests[0].preemptions == 1);
  CHECK(run.requests[1].preemptions == 0);
  // One that was admitted first loses its own blocks as well, and has them again once the other has ended.
  d.pool.blocks = 5;
  Workload before = sent({{8, 9}, {8, 4}}, {0, 0.045});
  before.requests[0].priority = 1;
  const Run first = simulate(d, before);
  CHECK(first.requests[0].preemptions >= 1);
  CHECK(first.requests[0].ended);
  CHECK(first.requests[1].ended);
}

TEST_CASE("a request that finds the queue full is rejected, and a closed loop sends the next") {
  // One seat and one that may wait. Of four that come while A runs from 0 to 30 the first waits.
  Deployment d = deployment();
  d.pool.settings.max_sequences = 1;
  d.pool.settings.max_queue = 1;
  const Workload w = sent({{20, 1}, {20, 1}, {20, 1}, {20, 1}, {20, 1}}, {0, 0.001, 0.002, 0.003, 0.031});
  const Run run = simulate(d, w);
  const std::vector<bool> rejected = {false, false, true, true, false};
  for (std::size_t i = 0; i < rejected.size(); ++i) {
    CHECK(run.requests[i].rejected == rejected[i]);
    CHECK(run.requests[i].ended != rejected[i]);
  }
  const Summary s = summarise(run, w, parse_slo("ttft.p50=1s"));
  CHECK(s.requests == 3);
  CHECK(s.rejected == 2);
  CHECK(s.met_share == Approx(3.0 / 5));
  // Two of five are more than may miss a 90th percentile, and not more than may miss the median.
  CHECK_FALSE(s.value(parse_slo("ttft.p90=1s").front()).has_value());
  CHECK(s.value(parse_slo("ttft.p50=1s").front()).has_value());
  CHECK_FALSE(s.meets(parse_slo("ttft.p90=1s")));
  CHECK_FALSE(s.value(parse_slo("ttft.mean=1s").front()).has_value());
  // Of 30, 30, … the median of five of which two have no end is the largest of three.
  CHECK(*s.value(parse_slo("ttft.p50=1s").front()) == Approx(s.ttft.of("p99")).epsilon(0.01));
  // Both of a closed loop come at once: the second finds the first waiting, and the third is sent in its place.
  Workload closed = sent({{20, 1}, {20, 1}, {20, 1}}, {});
  closed.open = false;
  closed.concurrency = 2;
  const Run both = simulate(d, closed);
  CHECK(both.requests[0].ended);
  CHECK((both.requests[1].rejected && both.requests[2].rejected));
}

TEST_CASE("the stages of a pipeline work on steps of their own") {
  // Two stages: a step takes 10 + rows ms, and the next may begin after half of that.
  Deployment d = deployment();
  d.pool.stages = 2;
  const Run alone = simulate(d, sent({{20, 3}}, {0}));
  CHECK(ms(alone.requests[0].latency()) == Approx(30 + 11 + 11));
  const Run two = simulate(d, sent({{20, 2}, {20, 2}}, {0, 0.001}));
  CHECK(ms(two.requests[0].ttft()) == Approx(30));
  CHECK(ms(two.requests[1].first) == Approx(45));  // from 15 on
  CHECK(ms(two.requests[0].last) == Approx(45));   // 30 to 41, but results come in order
  CHECK(two.busy <= two.end.value + 1e-12);
  // A prompt's pieces follow one another: 64 tokens each, begun at 0, 37, 74, and the last of 8 at 111.
  const Run long_prompt = simulate(d, sent({{200, 1}}, {0}));
  CHECK(ms(long_prompt.requests[0].ttft()) == Approx(74 + 74));
}

TEST_CASE("replicas take turns, or the one with fewest requests is next, or the one that has the prefix") {
  Deployment d = deployment();
  d.pool.replicas = 2;
  d.router = Router::round_robin;
  const Workload w = sent({{20, 9, 16, 1}, {20, 1, 16, 2}, {20, 1, 16, 1}, {20, 1, 16, 2}}, {0, 0.001, 0.2, 0.3});
  const auto replicas = [&] {
    std::string text;
    for (const Served& r : simulate(d, w).requests) text += static_cast<char>('0' + r.replica);
    return text;
  };
  CHECK(replicas() == "0101");
  d.router = Router::least_loaded;
  CHECK(replicas() == "0100");  // nothing runs at 0.2
  d.router = Router::prefix_aware;
  CHECK(replicas() == "0101");
}

TEST_CASE("disaggregated: the prompt's replica, the link, and the decode's, which in vLLM computes a token again") {
  Deployment d = deployment();
  d.decode = d.pool;
  d.transfer = {.per_token = Bytes{1e6}, .rate = BytesPerSecond{1e9}, .latency = Seconds{0.003}};
  const Run run = simulate(d, sent({{20, 3}}, {0}));
  // 30 prompt, 20 MB in 20 ms and 3 more, a step of one token, two of decode.
  CHECK(ms(run.requests[0].ttft()) == Approx(30 + 20 + 3 + 11));
  CHECK(ms(run.requests[0].latency()) == Approx(64 + 22));
  double causes = 0;
  for (const double c : run.requests[0].causes) causes += c;
  CHECK(ms(Seconds{causes}) == Approx(64));
  d.transfer.per_layer = true;
  d.transfer.layers = 10;
  CHECK(ms(simulate(d, sent({{20, 3}}, {0})).requests[0].ttft()) == Approx(30 + 2 + 3 + 11));
  // The others send the first token at once and go on with the second.
  Deployment s = deployment(EngineKind::sglang);
  s.decode = s.pool;
  s.transfer = d.transfer;
  const Run other = simulate(s, sent({{20, 3}, {5, 1}}, {0, 1}));
  CHECK(ms(other.requests[0].ttft()) == Approx(30));
  CHECK(ms(other.requests[0].latency()) == Approx(30 + 5 + 22));
  CHECK(ms(other.requests[1].latency()) == Approx(15));
}

TEST_CASE("a request whose cache is sent joins decodes that go on meanwhile") {
  Deployment d = deployment();
  d.decode = d.pool;
  d.transfer = {.per_token = Bytes{1e6}, .rate = BytesPerSecond{1e9}};
  const Run run = simulate(d, sent({{20, 50}, {20, 2}}, {0, 0.06}));
  // B's prompt ends at 90, is there at 110; A decodes from 50 on in steps of 11: the one from 105 ends at 116.
  CHECK(ms(run.requests[1].first) == Approx(116 + 12));
}

TEST_CASE("turns go round the replicas of prompts and of decode separately") {
  Deployment d = deployment();
  d.router = Router::round_robin;
  d.pool.replicas = 2;
  d.decode = d.pool;
  d.transfer = {.per_token = Bytes{1}, .rate = BytesPerSecond{1e9}};
  const Run run = simulate(d, sent({{20, 2}, {20, 2}, {20, 2}, {20, 2}}, {0, 1, 2, 3}));
  std::string text;
  for (const Served& r : run.requests) text += static_cast<char>('0' + r.replica);
  CHECK(text == "2323");
}

TEST_CASE("a draft that is always kept makes steps of several tokens, of which the last may have fewer") {
  Deployment d = deployment();
  d.drafts = 3;
  d.acceptance = estimate::Acceptance(1.0);
  const Run run = simulate(d, sent({{20, 10}}, {0}));
  CHECK(run.steps == 1 + 3);  // 1 + 4 + 4 + 1
  std::int64_t gaps = 0;
  for (const auto& [seconds, count] : run.gaps) gaps += count;
  CHECK(gaps == 3);  // of chunks
  d.acceptance = estimate::Acceptance(0.0);
  CHECK(simulate(d, sent({{20, 10}}, {0})).steps == 10);
}

TEST_CASE("ranks that step together take what the fullest of them does") {
  Deployment d = deployment();
  d.pool.ranks = 2;
  d.pool.settings.max_batched_tokens = 100;
  // Prompts of 30, 20 and 10 tokens: one rank has 30 and 10.
  const Run run = simulate(d, sent({{20, 1}, {30, 1}, {10, 1}}, {0, 0, 0}));
  CHECK(ms(run.requests[0].ttft()) == Approx(50));
}

TEST_CASE("requests that nothing has room for are refused before the simulation begins") {
  CHECK_THROWS_AS(simulate(deployment(EngineKind::vllm, 64, 5), sent({{17, 4}}, {0})), Error);
  CHECK(simulate(deployment(EngineKind::vllm, 64, 5), sent({{16, 4}}, {0})).requests[0].ended);
  Deployment whole = deployment();
  whole.pool.settings.chunked_prefill = false;
  CHECK_THROWS_AS(simulate(whole, sent({{65, 1}}, {0})), Error);
  CHECK(simulate(whole, sent({{64, 1}}, {0})).requests[0].ended);
  Deployment slots = deployment(EngineKind::llama_cpp, 64, 100);
  CHECK(simulate(slots, sent({{60, 4}}, {0})).requests[0].ended);
  slots.pool.settings.unified_kv = false;  // two slots of 50
  CHECK_THROWS_AS(simulate(slots, sent({{60, 4}}, {0})), Error);
}

TEST_CASE("it stops when it is told to, and keeps what it has") {
  std::atomic<bool> stop{true};
  Workload w = sent(std::vector<steps::Ask>(1000, {20, 4}), {});
  for (std::size_t i = 0; i < 1000; ++i) w.requests[i].sent = Seconds{static_cast<double>(i)};
  const Run run = simulate(deployment(), w, {.stop = &stop});
  CHECK(run.interrupted);
  CHECK(run.requests[0].ended);
  CHECK_FALSE(run.requests[999].ended);
  CHECK(simulate(deployment(), {}).requests.empty());
}

TEST_CASE("vLLM's simulation gives the times of a plain loop, to the last bit") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    Random random(seed, 99);
    const auto between = [&](double low, double high) {
      return static_cast<std::int64_t>(low + random.uniform() * (high - low + 1));
    };
    Deployment d = deployment(EngineKind::vllm, between(8, 200), between(60, 400));
    d.pool.cost = cost;
    d.pool.settings.prefix_caching = false;
    d.pool.settings.block_size = between(1, 17);
    d.pool.settings.max_sequences = between(1, 30);
    d.pool.settings.reserves_full_input = random.uniform() < 0.5;
    d.pool.settings.asynchronous = random.uniform() < 0.5;
    d.pool.blocks = std::max(d.pool.blocks, 400 / d.pool.settings.block_size);
    Workload w;
    w.open = random.uniform() < 0.7;
    if (!w.open) w.concurrency = between(1, 12);
    const double rate = 0.1 + 10 * random.uniform();
    double now = 0;
    for (int i = 0; i < 80; ++i) {
      now += random.exponential() / rate;
      Request r;
      r.sent = Seconds{now};
      r.input = between(1, 200);
      r.output = between(1, 150);
      w.requests.push_back(r);
    }
    INFO("seed " << seed);
    const std::vector<Served> expected = plain_vllm(d, w);
    const Run run = simulate(d, w);
    for (std::size_t i = 0; i < w.requests.size(); ++i) {
      INFO("request " << i);
      REQUIRE(run.requests[i].sent.value == expected[i].sent.value);
      REQUIRE(run.requests[i].first.value == expected[i].first.value);
      REQUIRE(run.requests[i].last.value == expected[i].last.value);
    }
  }
}

TEST_CASE("SGLang looks for requests once in so many steps of decode, behind prompts and when idle at once") {
  Deployment d = deployment(EngineKind::sglang);
  const auto first = [&](std::int64_t interval, std::int64_t before, double at) {
    d.pool.settings.recv_interval = interval;
    const Workload w = sent({{4, before}, {4, 2}}, {0, at});
    return ms(simulate(d, w).requests[1].first);
  };
  // The first request has its prompt until 14 ms, then steps of 11 ms: one ends at 36, the tenth at 124.
  CHECK(first(1, 200, 0.035) == Approx(36 + 14));
  CHECK(first(10, 200, 0.035) == Approx(124 + 14));
  CHECK(first(10, 200, 0.013) == Approx(14 + 14));
  CHECK(first(10, 200, 0.5) == Approx(564 + 14));
  CHECK(first(10, 2, 0.5) == Approx(514));
}

}  // namespace llmperf::simulation_test
