#include "cli/gguf_flags.h"

#include <CLI/CLI.hpp>

namespace llmperf::cli {

void add_gguf_flags(CLI::App& command, GgufFlags& flags) {
  command
      .add_option("--gguf-era", flags.era,
                  "version of llama.cpp's rules for a GGUF --weights: 2024-02 (before 19 February 2024), 2024, 2025, "
                  "2026 [2026]")
      ->type_name("ERA");
  command.add_option("--cache-type-k", flags.cache_k, "type of the cached keys, in place of --kv: f16, q8_0, q4_0 …")
      ->type_name("TYPE");
  command.add_option("--cache-type-v", flags.cache_v, "type of the cached values, in place of --kv")->type_name("TYPE");
}

bool any_given(const GgufFlags& flags) { return !(flags.era + flags.cache_k + flags.cache_v).empty(); }

model::GgufEra era_value(const GgufFlags& flags) {
  return flags.era.empty() ? model::GgufEra::v2026 : model::parse_gguf_era(flags.era);
}

model::CacheScheme cache_value(const GgufFlags& flags, const model::ElementFormat& otherwise) {
  const auto half = [&](const std::string& text) { return text.empty() ? otherwise : model::parse_kv_scheme(text); };
  return {half(flags.cache_k), half(flags.cache_v)};
}

}  // namespace llmperf::cli
