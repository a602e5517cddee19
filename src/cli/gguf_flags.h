// The flags of llama.cpp's quantisation and cache types, spelled as it spells them.
#pragma once

#include <string>

#include "model/gguf_mix.h"
#include "model/quantization.h"

namespace CLI {
class App;
}

namespace llmperf::cli {

struct GgufFlags {
  std::string era;
  std::string cache_k;
  std::string cache_v;
};
void add_gguf_flags(CLI::App& command, GgufFlags& flags);
bool any_given(const GgufFlags& flags);

// The newest rules when the flag is not given. Throw Error(bad_input).
model::GgufEra era_value(const GgufFlags& flags);
model::CacheScheme cache_value(const GgufFlags& flags, const model::ElementFormat& otherwise);

}  // namespace llmperf::cli
