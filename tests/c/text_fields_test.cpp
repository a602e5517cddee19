// Whatever text a field of a request is given, there is an answer, and no text costs more than a request does: mutants
// of every text field there is, by the list of fields that the interface itself gives.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "catch.h"
#include "llmperf.h"

namespace llmperf::text_fields_test {
namespace {

using Json = nlohmann::json;
using Session = std::unique_ptr<llmperf_session, decltype(&llmperf_close)>;
using Result = std::unique_ptr<llmperf_result, decltype(&llmperf_free)>;
using Question = llmperf_result*(llmperf_session*, const char*, size_t);

constexpr std::size_t kLong = 100'000;
#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) || \
    __has_feature(thread_sanitizer)
constexpr std::size_t kMutants = 3'000;
constexpr long kMostKiB = 8 << 20;
#else
constexpr std::size_t kMutants = 30'000;
constexpr long kMostKiB = 1 << 20;
#endif

class Random {
 public:
  std::size_t below(std::size_t n) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>(state_ >> 33U) % n;
  }
  template <class List>
  const auto& of(const List& list) {
    return list[below(std::size(list))];
  }

 private:
  std::uint64_t state_ = 46;
};

std::vector<Json> text_fields(const Session& session) {
  constexpr std::string_view kAsk = R"({"kind": "fields"})";
  const Result result(llmperf_catalog(session.get(), kAsk.data(), kAsk.size()), llmperf_free);
  std::vector<Json> fields;
  const Json document = Json::parse(llmperf_json(result.get(), nullptr));
  for (const Json& field : document["fields"]) {
    if (field["type"] == "text") fields.push_back(field);
  }
  return fields;
}

bool has(const Json& field, const char* workload) {
  const Json& all = field["workloads"];
  return std::find(all.begin(), all.end(), workload) != all.end();
}

// A small request that the field means something to, and who is asked.
std::pair<Question*, Json> request_with(const Json& field) {
  if (has(field, "text")) {
    return {llmperf_estimate,
            {{"model", "qwen3-30b-a3b"}, {"hw", "rtx4090"}, {"weights", "q4_k_m"}, {"prompt", 16}, {"gen", 2}}};
  }
  if (has(field, "video"))
    return {llmperf_estimate, {{"model", "stdit3-xl2"}, {"hw", "rtx4090"}, {"frames", 1}, {"steps", 1}}};
  if (has(field, "training"))
    return {llmperf_estimate, {{"model", "llama-3.2-1b"}, {"hw", "h100-sxm"}, {"training", true}}};
  return {
      llmperf_serve,
      {{"model", "llama-3.2-1b"}, {"hw", "rtx4090"}, {"rate", 4}, {"requests", 4}, {"input", "64"}, {"output", "2"}}};
}

// What somebody may write there.
std::vector<std::string> seeds_of(const Json& field) {
  static const std::map<std::string, std::vector<std::string>> kSeeds = {
      {"override_tensor",
       {"blk\\.[0-9]\\.ffn_.*_exps=CPU", "((.*)*)*x=CPU", "(.*)*(.*)*(.*)*x=CPU", "(a|b){2,9}[^x-z]+$=CPU,exps=CUDA0"}},
      {"step", {"32x1@2048,1x512@0"}},
      {"accept", {"0.85,0.7,0.6"}},
      {"draft", {"qwen3-0.6b:3"}},
      {"tensor_split", {"3,2"}},
      {"tp", {"8", "2x4"}},
      {"sp", {"ulysses:4xring:2"}},
      {"hw", {"2xrtx3090+rtx3060", "rtx4090"}},
      {"gpu_layers", {"10"}},
      {"image_size", {"640x480"}},
      {"routing", {"power-law:0.8"}},
      {"options", {"all,no_flash_attention"}},
      {"price", {"2.5EUR"}},
      {"weights", {"exl2-4.0bpw", "4.5", "w4a16-g128"}},
      {"runtime", {"vllm@0.6"}},
      {"resolution", {"720p", "720x1280"}},
      {"stages", {"0-13@2x2/2d,14-27"}},
      {"die_link", {"64GB/s"}},
      {"burstiness", {"0.5"}},
      {"input", {"lognormal:1k:0.8", "800-1k"}},
      {"output", {"1-8"}},
      {"prefix", {"0.5", "512:8"}},
      {"slo", {"ttft.p99=1s,tpot.p95=50ms"}},
      {"engine", {"vllm@0.15.1"}},
      {"kv_link", {"50GB/s"}},
      {"trace", {"nothing.csv"}},
      {"model", {"{\"model_type\": \"llama\", \"hidden_size\": 64}", "qwen-7b"}}};
  std::vector<std::string> seeds;
  if (field.contains("values")) seeds = field["values"].get<std::vector<std::string>>();
  if (const auto own = kSeeds.find(field["key"]); own != kSeeds.end())
    seeds.insert(seeds.end(), own->second.begin(), own->second.end());
  if (seeds.empty()) seeds.emplace_back("1");
  return seeds;
}

std::string mutant(std::string text, Random& random) {
  constexpr const char* kPieces[] = {"1000000000", "999999999999999999999",
                                     "1e308",      "-1",
                                     "0",          "0.5",
                                     "k",          "M",
                                     "x",          "@",
                                     ",",          ";",
                                     ":",          "+",
                                     "-",          "/",
                                     "*",          "?",
                                     ".",          "(",
                                     ")",          "(.*)*",
                                     "(a|b)+",     "{9}",
                                     "{1,99}",     "[",
                                     "]",          "\\",
                                     "\\d",        "(?=",
                                     "^",          "$",
                                     "=",          "=CPU",
                                     "\"",         "{",
                                     "}",          " ",
                                     "\n",         "\u202e",
                                     "模型",       "\xff",
                                     "nan",        "inf",
                                     "all",        "none",
                                     "no_",        "..",
                                     "2x",         "1-1000000000+1"};
  for (std::size_t i = 1 + random.below(4); i > 0; --i) {
    const std::size_t at = random.below(text.size() + 1);
    switch (random.below(6)) {
      case 0: text.insert(at, random.of(kPieces)); break;
      case 1: text.resize(at); break;
      case 2: text.erase(at, 1 + random.below(3)); break;
      case 3: text += random.of(std::array<std::string, 4>{"", ",", "+", "x"}) + text; break;
      case 4: text.insert(at, 1 + random.below(60), text.empty() ? 'a' : text[random.below(text.size())]); break;
      default:  // digits that are there become others, many at times
        for (char& c : text) {
          if (c >= '0' && c <= '9' && random.below(2) == 0) c = static_cast<char>('0' + random.below(10));
        }
    }
    if (text.size() > 2 * kLong) text.resize(kLong);
  }
  if (random.below(40) > 0) return text;
  const std::string piece = text.empty() ? random.of(kPieces) : text;  // all of it, again and again
  while (text.size() < kLong) text += piece;
  return text;
}

}  // namespace

// LLMPERF_MUTANTS says how many; the slowest is then printed.
TEST_CASE("every text of a request has an answer, within a gigabyte") {
  const Session session(llmperf_open(), llmperf_close);
  const std::vector<Json> fields = text_fields(session);
  REQUIRE(fields.size() > 40);
  const char* asked = std::getenv("LLMPERF_MUTANTS");
  const std::size_t mutants = asked == nullptr ? kMutants : std::strtoul(asked, nullptr, 10);
  Random random;
  double slowest = 0;
  std::size_t answered = 0;
  for (std::size_t i = 0; i < mutants; ++i) {
    const Json& field = fields[i % fields.size()];
    const std::string key = field["key"];
    auto [question, request] = request_with(field);
    const std::vector<std::string> seeds = seeds_of(field);
    // The first of each field is a hundred kilobytes of its first seed.
    std::string text = random.of(seeds);
    if (i < fields.size()) {
      while (text.size() < kLong) text += text;
    } else {
      text = mutant(std::move(text), random);
    }
    request[key] = text;
    const std::string json = request.dump(-1, ' ', false, Json::error_handler_t::ignore);
    INFO(key << ": " << json.substr(0, 500));
    const auto before = std::chrono::steady_clock::now();
    const Result result(question(session.get(), json.data(), json.size()), llmperf_free);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - before;
    if (taken.count() > slowest) {
      slowest = taken.count();
      if (asked != nullptr) std::fprintf(stderr, "%zu: %.3f s: %.300s\n", i, slowest, json.c_str());
    }
    const int status = llmperf_status(result.get());
    answered += status == 0 ? 1U : 0U;
    REQUIRE((status == 0 || (status >= 2 && status <= 4)));
    if (i % 16 == 0) REQUIRE(Json::accept(llmperf_json(result.get(), nullptr)));
  }
  CHECK(answered > mutants / 50);  // mutants that mean something are among them
  rusage usage = {};
  REQUIRE(getrusage(RUSAGE_SELF, &usage) == 0);
  if (asked != nullptr)
    std::fprintf(stderr, "%zu of %zu answered, %ld MiB\n", answered, mutants, usage.ru_maxrss >> 10);
  CHECK(usage.ru_maxrss < kMostKiB);
}

TEST_CASE("a text of a request has at most 4096 characters, a description of a model more") {
  const Session session(llmperf_open(), llmperf_close);
  const auto message = [&](const char* key, const std::string& text) {
    Json request = {{"model", "qwen-7b"}, {"hw", "rtx4090"}};
    request[key] = text;
    const std::string json = request.dump();
    const Result result(llmperf_estimate(session.get(), json.data(), json.size()), llmperf_free);
    CHECK(llmperf_status(result.get()) == 2);
    return Json::parse(llmperf_error(result.get(), nullptr))["errors"][0]["message"].get<std::string>();
  };
  CHECK(message("weights", std::string(4097, 'a')) == "`weights`: 4097 characters are more than a text may have: 4096");
  CHECK(message("weights", std::string(4096, 'a')).find("unknown") != std::string::npos);
  CHECK(message("model", "{\"model_type\": \"" + std::string(5000, 'a') + "\"}").find("characters") ==
        std::string::npos);
}

}  // namespace llmperf::text_fields_test
