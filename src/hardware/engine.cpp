#include "hardware/engine.h"

#include <algorithm>

#include "base/text.h"
#include "descriptor/catalog.h"

namespace llmperf::hardware {

EngineEra load_engine(const std::string& name) {
  return parse_engine(descriptor::load(descriptor::Kind::engine, name));
}

std::vector<EngineEra> all_engines() {
  std::vector<EngineEra> all;
  for (const std::string& name : descriptor::names(descriptor::Kind::engine)) all.push_back(load_engine(name));
  return all;
}

std::optional<Version> parse_version(std::string_view text) {
  const auto digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  Version version;
  std::size_t at = text.starts_with('v') ? 1 : 0;
  while (digit(at)) {
    constexpr std::int64_t kLargest = 1'000'000'000;
    std::int64_t number = 0;
    for (; digit(at); ++at) number = std::min(10 * number + (text[at] - '0'), kLargest);
    version.push_back(number);
    if (at >= text.size() || text[at] != '.') break;
    if (text.substr(at) == ".x") return std::nullopt;  // any of several
    ++at;
  }
  if (version.empty()) return std::nullopt;
  return version;
}

const EngineEra* find_era(const std::vector<EngineEra>& eras, std::string_view family, std::string_view engine,
                          const std::optional<Version>& version) {
  const EngineEra* best = nullptr;
  Version begun;
  for (const EngineEra& era : eras) {
    const bool own = std::find(era.families.begin(), era.families.end(), family) != era.families.end();
    if (era.engine != engine || (!era.families.empty() && !own)) continue;
    const Version since = parse_version(era.since).value_or(Version());
    if (version && *version < since) continue;
    if (best != nullptr && (since < begun || (since == begun && !own))) continue;
    best = &era;
    begun = since;
  }
  return best;
}

std::string era_of(const Device& device, const std::string& runtime, const std::string& version) {
  const std::vector<EngineEra> eras = all_engines();
  for (const EngineEra& era : eras) {
    if (era.name == runtime && era.name != era.engine) return era.name;
  }
  const std::optional<Version> parsed = parse_version(version);
  const EngineEra* era = parsed ? find_era(eras, device.family, runtime, parsed) : nullptr;
  return era != nullptr ? era->name : "";
}

}  // namespace llmperf::hardware
