// Hugging Face configs and model descriptors: a text that is accepted must be a model whose parameters can be counted.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "descriptor/node.h"
#include "model/parameters.h"

using namespace llmperf;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const bool json = text.starts_with('{');
    const auto document = json ? descriptor::parse_json(text, "fuzz.json", descriptor::kConfigRules)
                               : descriptor::parse_yaml(text, "fuzz.yaml");
    const model::ParameterCounts counts = model::count_parameters(model::parse_decoder(document));
    if (counts.total <= 0 || counts.activated <= 0 || counts.activated > counts.total) std::abort();
  } catch (const Error&) {
    // refused, which is an answer
  }
  return 0;
}
