// Hugging Face configs and model descriptors: a text that is accepted must be a model whose parameters can be counted.
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "descriptor/node.h"
#include "fuzz.h"
#include "model/parameters.h"

using namespace llmperf;

void fuzz_config(std::string_view text) {
  try {
    const bool json = text.starts_with('{');
    const auto document = json ? descriptor::parse_json(text, "fuzz.json", descriptor::kConfigRules)
                               : descriptor::parse_yaml(text, "fuzz.yaml");
    const model::ParameterCounts counts = model::count_parameters(model::parse_decoder(document));
    if (counts.total <= 0 || counts.activated <= 0 || counts.activated > counts.total) std::abort();
  } catch (const Error&) {
    // refused, which is an answer
  }
}
