#include <cstddef>
#include <cstdint>

#include "walk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  parse_and_walk([text] { return llmperf::descriptor::parse_yaml(text, "fuzz.yaml"); });
  return 0;
}
