#include "hardware/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
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
  if (text.starts_with("20") && text.size() >= 4 && digit(2) && digit(3) &&
      (text.size() == 4 || text[4] == '-' || text[4] == ' ')) {
    constexpr Version::value_type kLastDay = 31;
    version = {0, 12, kLastDay};
    for (std::size_t part = 0, from = 0; part < version.size() && digit(from); ++part) {
      version[part] = 0;
      for (; digit(from) && version[part] < 10'000; ++from) version[part] = 10 * version[part] + (text[from] - '0');
      if (from >= text.size() || text[from] != '-') break;
      ++from;
    }
    return version;
  }
  std::size_t at = text.starts_with('v') || text.starts_with('b') ? 1 : 0;
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

bool is_date(const Version& version) {
  constexpr std::int64_t kFirstYear = 2000;
  return version.size() == 3 && version.front() >= kFirstYear;
}

bool has_begun(const std::string& since, const std::string& since_date, const std::optional<Version>& version) {
  return !version || *version >= parse_version(is_date(*version) ? since_date : since).value_or(Version());
}

const EngineEra* find_era(const std::vector<EngineEra>& eras, std::string_view family, std::string_view engine,
                          const std::optional<Version>& version) {
  const EngineEra* best = nullptr;
  Version begun;
  for (const EngineEra& era : eras) {
    const bool own = std::ranges::find(era.families, family) != era.families.end();
    if (era.engine != engine || (!era.families.empty() && !own)) continue;
    const Version since = parse_version(era.since).value_or(Version());
    if (!has_begun(era.since, era.since_date, version)) continue;
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
  // The engine whose name the runtime's begins with: "llama.cpp-vulkan" is one of llama.cpp's backends.
  const auto of_engine = [&](const EngineEra& era) {
    return runtime == era.engine || runtime.starts_with(era.engine + '-');
  };
  const auto engine = std::ranges::find_if(eras, of_engine);
  if (engine == eras.end()) return "";
  const EngineEra* era = era_by_text(eras, device.family, engine->engine, version);
  return era != nullptr ? era->name : "";
}

std::string known_eras(const std::vector<EngineEra>& eras, std::string_view family, std::string_view engine) {
  std::vector<std::string> known;
  for (const EngineEra& era : eras) {
    if ((!engine.empty() && era.engine != engine) || find_era({era}, family, era.engine) == nullptr) continue;
    known.push_back(fmt::format("{} ({})", era.name, era.since.empty() ? "from the first" : "from " + era.since));
  }
  return join(known, ", ");
}

namespace {

// Engines count their first number up by one at a time, and builds double in a year.
bool ever_was(const std::vector<EngineEra>& eras, std::string_view engine, const Version& version) {
  bool dated = false;
  std::optional<std::int64_t> newest;
  for (const EngineEra& era : eras) {
    if (era.engine != engine) continue;
    dated = dated || !era.since_date.empty();
    for (const std::string& known : {era.since, era.newest}) {
      if (const auto v = parse_version(known)) newest = std::max(newest.value_or(0), v->front());
    }
  }
  if (!newest) return true;
  return is_date(version) ? dated : version.front() <= *newest + std::max<std::int64_t>(1, *newest);
}

}  // namespace

const EngineEra* era_by_text(const std::vector<EngineEra>& eras, std::string_view family, const std::string& engine,
                             std::string_view text) {
  const auto named = [&](std::string_view word) {
    return std::ranges::find_if(eras, [&](const EngineEra& era) {
      return era.engine == engine && era.name == fmt::format("{}-{}", engine, word);
    });
  };
  const std::optional<Version> version = parse_version(text);
  if (!version) {
    const auto era = named(text);
    if (era == eras.end() || find_era({*era}, family, engine) != nullptr) return era == eras.end() ? nullptr : &*era;
    const Version beginning = {2000, 1, 1};  // of other devices' era: what these had when it began
    return find_era(eras, family, engine, parse_version(era->since_date).value_or(beginning));
  }
  if (!ever_was(eras, engine, *version)) {
    throw Error::bad_input(fmt::format("no era of {} has version {}", engine, quote(text)),
                           "known: " + known_eras(eras, family, engine));
  }
  // A month in which one era followed another may say which: "2025-08 mmq".
  if (is_date(*version)) {
    const EngineEra* first = find_era(eras, family, engine, Version{version->at(0), version->at(1), 0});
    for (const std::string_view word : split(text, ' ')) {
      const auto era = named(word);
      if (first != nullptr && era != eras.end() && era->name == first->name) return first;
    }
  }
  return find_era(eras, family, engine, version);
}

RuntimeProfile with_tool(RuntimeProfile profile, const std::string& tool, UnknownRuntime unknown) {
  if (tool.empty() || tool == profile.tool) return profile;
  const std::vector<std::string> engines = descriptor::names(descriptor::Kind::engine);
  const bool has_engine = std::ranges::find(engines, profile.engine) != engines.end();
  const std::vector<EngineEra::Tool> tools =
      has_engine ? load_engine(profile.engine).tools : std::vector<EngineEra::Tool>();
  std::vector<std::string> names;
  for (const EngineEra::Tool& each : tools) {
    names.push_back(each.name);
    if (each.name != tool) continue;
    profile.values[index(Parameter::step_decode)] += each.step_s;
    profile.tool = tool;
    return profile;
  }
  if (unknown != UnknownRuntime::error) return profile;
  throw Error::bad_input(fmt::format("no tool {} of {} is known", quote(tool), profile.name),
                         names.empty() ? "" : fmt::format("known: {}", join(names, ", ")));
}

}  // namespace llmperf::hardware
