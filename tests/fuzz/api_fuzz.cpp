// The JSON of a request through the C interface: whatever it is, there is a result, its texts are JSON, and it is over
// soon after it is told to be.
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "fuzz.h"
#include "llmperf.h"

namespace {

llmperf_session* session() {
  static llmperf_session* one = [] {
    llmperf_session* opened = llmperf_open();
    std::thread([opened] {
      for (;;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        llmperf_interrupt(opened);
      }
    }).detach();
    return opened;
  }();
  return one;
}

using Question = llmperf_result*(llmperf_session*, const char*, size_t);
constexpr Question* kQuestions[] = {llmperf_estimate, llmperf_explain, llmperf_sweep, llmperf_catalog};

}  // namespace

// Seeds that would fill a repository: a hundred kilobytes of every text field, some of them of patterns and of ranges.
void prepare_api() {
  constexpr std::string_view kAsk = R"({"kind": "fields"})";
  llmperf_result* listed = llmperf_catalog(session(), kAsk.data(), kAsk.size());
  const auto document = nlohmann::json::parse(llmperf_json(listed, nullptr));
  std::size_t asked = 0;  // whether of an estimate or of traffic goes in turns
  for (const auto& field : document["fields"]) {
    if (field["type"] != "text") continue;
    for (const char* piece : {"a", "(.*)*", "((a|b)+", "1,", "1-1000000000+1,", "1x1@0,", "no_x;", "\\"}) {
      std::string text;
      while (text.size() < 100'000) text += piece;
      nlohmann::json request = {{"model", "qwen3-30b-a3b"}, {"hw", "rtx4090"}, {"weights", "q4_k_m"}};
      request[field["key"].get<std::string>()] = text;
      const std::string json = request.dump();
      Question* question = asked++ % 2 == 0 ? llmperf_estimate : llmperf_serve;
      llmperf_result* result = question(session(), json.data(), json.size());
      require(llmperf_status(result) == 2);
      llmperf_free(result);
    }
  }
  llmperf_free(listed);
}

void fuzz_api(std::string_view text) {
  if (text.empty()) return;
  const std::string request(text.substr(1));
  llmperf_result* result = kQuestions[byte(text) % std::size(kQuestions)](session(), request.data(), request.size());
  const int status = llmperf_status(result);
  require(status >= 0 && (status <= 3 || status == 130));
  require(nlohmann::json::accept(llmperf_json(result, nullptr)));
  const std::string error = llmperf_error(result, nullptr);
  require(error.empty() == (status == 0 || status == 130) && (error.empty() || nlohmann::json::accept(error)));
  llmperf_free(result);
}
