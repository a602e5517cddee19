#include "import/engine_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace llmperf::import {
namespace {

// A number and, where the log gives one, its unit: 54.96 GiB, 54.96GiB, 1024.00 MiB, 302,921. GB are 2^30 bytes, too.
constexpr const char* kNumber =
    R"([^0-9-]{0,8}(-?(?:[0-9]{1,3}(?:,[0-9]{3}){1,4}|[0-9]{1,15})(?:\.[0-9]{1,6})?)\s*([KMGT]i?B)?)";

struct Line {
  const char* part;
  const char* unit;
  const char* before;  // of the number: a regular expression
  bool adds = false;
};
constexpr Line kLines[] = {
    {"weights", "bytes",
     "Model loading took|Loading model weights took|model weights take|Load weight end.*mem usage=|Load weights took"},
    {"weights", "bytes", R"(model buffer size =|msg="model weights".*size=)", true},
    {"activations", "bytes", "activation peak memory takes|peak activation"},
    {"graphs", "bytes",
     "Graph capturing finished in [0-9]+ secs?, took|Capture cuda graph end.*mem usage=|CUDAGraph memory"},
    {"compute buffers", "bytes", R"(compute buffer size =|msg="compute graph".*size=)", true},
    {"keys and values", "bytes",
     "vailable KV cache memory|memory reserved for KV Cache is|Allocated(?=.*paged KV cache)"},
    {"keys and values", "bytes", R"(KV buffer size =|msg="kv cache".*size=)", true},
    {"a sequence", "bytes", "max seq len \\([0-9]+\\)"},
    {"longest sequence", "tokens", "estimated maximum model length is"},
    {"tokens", "tokens", "GPU KV cache size:|max_total_num_tokens=|Cache is allocated. #tokens:|in paged KV cache"},
    {"blocks", "blocks", "# (?:GPU|CUDA) blocks:"},
    {"sequences", "sequences", "Maximum concurrency for [0-9,]+ tokens per request:"},
};

double amount(std::string digits, const std::string& unit) {
  std::erase(digits, ',');
  const std::size_t power = unit.empty() ? 0 : std::string_view("BKMGT").find(unit[0]);
  return std::stod(digits) * std::pow(1024.0, static_cast<double>(power));
}

}  // namespace

estimate::EngineLog read_engine_log(const std::string& text, const std::string& name) {
  std::vector<std::pair<std::regex, const Line*>> known;
  for (const Line& line : kLines) known.emplace_back(fmt::format("(?:{}){}", line.before, kNumber), &line);
  const std::regex version(R"((?:version |engine \(v|v)([0-9]+\.[0-9]+(?:\.[0-9]+)?))");
  const std::regex others("NCCL|CUDA|cuDNN|[Tt]orch|[Dd]river|[Pp]ython|transformers|Triton", std::regex::optimize);
  const std::regex on_host("CPU|_Host|device=CPU");
  estimate::EngineLog log;
  for (const std::string_view line : split(text, '\n')) {
    constexpr std::size_t kLongest = 2000;  // std::regex walks a line by recursion
    const std::string words(line.substr(0, kLongest));
    std::smatch found;
    if (log.version.empty() && !std::regex_search(words, others) && std::regex_search(words, found, version)) {
      log.version = found[1];
    }
    for (const auto& [pattern, what] : known) {
      if (!std::regex_search(words, found, pattern) || (what->adds && std::regex_search(words, on_host))) continue;
      const double printed = amount(found[1], found[2]);
      const auto part = std::ranges::find(log.parts, what->part, &estimate::LogPart::name);
      if (part == log.parts.end()) {
        log.parts.push_back({what->part, what->unit, printed, 0});
      } else {
        part->printed = printed + (what->adds ? part->printed : 0);
      }
    }
  }
  if (log.parts.empty()) {
    throw Error::bad_input(fmt::format("{}: nothing in it says what an engine's memory holds", name),
                           "a start-up log of vLLM, SGLang, TensorRT-LLM, llama.cpp or Ollama");
  }
  return log;
}

}  // namespace llmperf::import
