// The JSON of a request through the C interface: whatever it is, there is a result, its texts are JSON, and it is over
// soon after it is told to be.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "llmperf.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

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

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string request(reinterpret_cast<const char*>(data + 1), size - 1);
  llmperf_result* result = kQuestions[data[0] % std::size(kQuestions)](session(), request.data(), request.size());
  const int status = llmperf_status(result);
  require(status >= 0 && (status <= 3 || status == 130));
  require(nlohmann::json::accept(llmperf_json(result, nullptr)));
  const std::string error = llmperf_error(result, nullptr);
  require(error.empty() == (status == 0 || status == 130) && (error.empty() || nlohmann::json::accept(error)));
  llmperf_free(result);
  return 0;
}
