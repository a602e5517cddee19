// Estimates and servers answer alike how much an engine's pool holds, and whether it starts.
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "catch.h"
#include "request/resolve.h"
#include "request/traffic.h"
#include "service/estimate.h"
#include "serving/serve.h"

namespace llmperf::engine_memory_service_test {

namespace {

std::optional<estimate::KvCapacity> estimated(const request::Request& q, request::Sources& sources) {
  const service::Estimated e(q, sources);
  return std::get<service::Estimated::Text>(e.work()).room;
}

// What a server of the same request holds; its refusal where it does not start.
struct Served {
  std::optional<estimate::KvCapacity> room;
  std::string refusal;
};
Served served(const request::Request& q, request::Sources& sources) {
  request::Request asked = q;
  asked.batch = asked.prompt = asked.gen = std::nullopt;
  asked.rate = 1;
  const auto resolved = request::resolve_serving(asked, sources);
  const request::Traffic traffic = request::read_traffic(*resolved);
  const estimate::Setup& setup = resolved->setup();
  try {
    return {serving::deploy(setup, serving::choose_engine(traffic.engine, setup)).kv, ""};
  } catch (const Error& error) {
    REQUIRE(error.kind() == ErrorKind::infeasible);
    return {{}, error.diagnostics().front().message};
  }
}

}  // namespace

TEST_CASE("estimate and serve size the same pool, for any model, engine and flags") {
  const std::vector<std::string> models = {"llama-3.1-8b", "qwen3-30b-a3b",     "gemma-4-31b",   "gpt-oss-20b",
                                           "qwen3.5-27b",  "deepseek-v4-flash", "deepseek-v3",   "qwen3-next-80b-a3b",
                                           "gemma-2-9b",   "mistral-nemo-12b",  "llama-3.1-70b", "glm-4.5-air"};
  const std::vector<std::string> devices = {"h100-sxm", "h200-sxm", "a100-sxm-80gb", "b200-sxm", "rtx4090", "h20"};
  const std::vector<std::string> engines = {"vllm@0.6.3", "vllm@0.9.2", "vllm@0.18",    "vllm@0.25", "vllm@0.26",
                                            "vllm",       "sglang",     "sglang@0.4.6", "trtllm"};
  std::mt19937_64 random(20261128);
  const auto pick = [&](const auto& all) { return all[random() % all.size()]; };
  request::Sources sources;
  int started = 0;
  int refused = 0;
  for (int i = 0; i < test::cases(200); ++i) {
    request::Request q;
    q.model = pick(models);
    q.hw = pick(devices);
    q.runtime = pick(engines);
    q.batch = 1;
    q.prompt = 16;
    q.gen = 2;
    q.tp = std::to_string(std::int64_t{1} << random() % 4);
    q.kv_utilisation = 0.7 + 0.01 * static_cast<double>(random() % 28);
    q.max_model_len = std::int64_t{1024} << random() % 8;
    q.max_seqs = std::int64_t{1} << random() % 11;
    q.max_batched_tokens = std::int64_t{1024} << random() % 5;
    std::string named = *q.model + " on " + *q.tp + " " + *q.hw + " under " + *q.runtime;
    INFO(named << ", " << *q.max_model_len << " tokens, " << *q.max_seqs << " sequences");
    std::optional<estimate::KvCapacity> alone;
    Served server;
    try {
      alone = estimated(q, sources);
      server = served(q, sources);
    } catch (const Error& error) {  // a plan that the model's heads cannot be divided by, a device that is too old
      REQUIRE(error.kind() == ErrorKind::bad_input);
      continue;
    }
    REQUIRE(alone);
    if (!alone->refusal.empty()) {
      CHECK(server.refusal.ends_with(alone->refusal));
      ++refused;
      continue;
    }
    ++started;
    REQUIRE(server.room);
    CHECK(server.room->kv == alone->kv);
    CHECK(server.room->blocks == alone->blocks);
    CHECK(server.room->tokens == alone->tokens);
    CHECK(server.room->sequence == alone->sequence);
    CHECK(alone->sequence.value <= alone->kv.value);
    CHECK(alone->longest >= *q.max_model_len);
  }
  if (test::kSanitized) return;
  CHECK(started > 40);
  CHECK(refused > 20);
}

TEST_CASE("a server whose defaults do not start takes the nearest that do, and says so") {
  request::Sources sources;
  request::Request q;
  q.model = "llama-3.1-8b";
  q.hw = "rtx4090";
  q.rate = 1;
  const auto resolved = request::resolve_serving(q, sources);
  const estimate::Setup& setup = resolved->setup();
  const serving::EngineSettings settings = serving::choose_engine(request::read_traffic(*resolved).engine, setup);
  const serving::Deployed deployed = serving::deploy(setup, settings, {}, 1024);
  CHECK(deployed.settings.max_model_len == deployed.kv.longest);
  CHECK(deployed.adapted == "`max-model-len` " + std::to_string(deployed.kv.longest));
  serving::EngineSettings asked = settings;
  asked.max_model_len = 131'072;
  CHECK_THROWS_AS(serving::deploy(setup, asked, {}, 1024), Error);
  // Sequences that are longer than what fits do not make it start.
  CHECK_THROWS_AS(serving::deploy(setup, settings, {}, 200'000), Error);
}

}  // namespace llmperf::engine_memory_service_test
