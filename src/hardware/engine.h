// Engines and their eras: what a release of a serving engine makes of any device's kernels. Its host, the launches of
// its small kernels, its fusions and choices are one file per era (hardware/engines), its kernels belong to the device
// (runtime_profile.h). docs/runtimes.md, Engines and eras.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "descriptor/node.h"
#include "hardware/runtime_profile.h"

namespace llmperf::hardware {

struct EngineEra {
  std::string name;                      // "vllm-v0", that of its file
  std::string engine;                    // "vllm": what --runtime takes
  std::string since;                     // its first version or build, "0.8", "b3216"; empty: from the beginning
  std::string since_date;                // when that came out, "2024-06-24"; empty: not said
  std::string newest;                    // release that is known, where no era's `since` is as high; empty: not said
  std::vector<std::string> families;     // devices it is for, before the era of all devices; empty: all
  std::vector<std::string> measured_on;  // devices whose steps it was fitted to
  std::string host_class;
  // What runs the engine adds to a step of decode: a server, a binding.
  struct Tool {
    std::string name;
    double step_s = 0;
  };
  std::vector<Tool> tools;
  std::string title;
  std::string source;
  std::string notes;
  descriptor::Document document;  // of which with_engine takes the rest
};

// The era a document describes. Throws Error(bad_input) with every problem.
EngineEra parse_engine(const descriptor::Document& document);
EngineEra load_engine(const std::string& name);
// Every era there is, by file.
std::vector<EngineEra> all_engines();

// The profile with the engine's part in place of what it has: dispatch, options, choices and numbers that the engine
// lists; what it does not list of the host are defaults. Fitted numbers are assumptions where none of its steps ran on
// the profile's device. Range and errors of steps are the engine's, errors of kernels stay.
RuntimeProfile with_engine(RuntimeProfile profile, const EngineEra& era);

// What the era's file says, over the defaults of kernels.
RuntimeProfile by_itself(const EngineEra& era);

// The device's preferred profile as it was fitted, for kernels by themselves: under no engine but its own.
RuntimeProfile load_kernels(const Device& device);

// The numbers a text begins with: {0, 6, 3} of "0.6.3 (2024-09)" and "v0.6.3", {1, 0, 0} of "1.0.0rc3", {4000} of
// "b4000". Of a date year, month and day, the last ones there are where it leaves them out: {2024, 5, 31} of "2024-05".
// Nothing of "unknown" and "0.x".
using Version = std::vector<std::int64_t>;
std::optional<Version> parse_version(std::string_view text);
bool is_date(const Version& version);
// Whether what came in a version, on a date, is in `version`, or in the newest without one.
bool has_begun(const std::string& since, const std::string& since_date, const std::optional<Version>& version);

// Of `eras` that of the engine which began last, of several one of this family before one of all. With a version only
// those that had begun by it. Null where there is none.
const EngineEra* find_era(const std::vector<EngineEra>& eras, std::string_view family, std::string_view engine,
                          const std::optional<Version>& version = std::nullopt);
// That of the engine which the text names, as "cublas" does "llama.cpp-cublas", or whose version, build or date it is.
// Throws Error(bad_input) for a version that never was: a date where no era of the engine has one, or a first number
// more than twice that of the newest known.
const EngineEra* era_by_text(const std::vector<EngineEra>& eras, std::string_view family, const std::string& engine,
                             std::string_view text);

// "vllm-v0 (from the first), vllm-v1 (from 0.8)": those of the engine, or of all where none is
// named, for devices of the family.
std::string known_eras(const std::vector<EngineEra>& eras, std::string_view family, std::string_view engine);

// The profile as the engine's tool of that name runs it. One that the engine does not know adds nothing, or is an
// Error(bad_input) where `unknown` is.
RuntimeProfile with_tool(RuntimeProfile profile, const std::string& tool, UnknownRuntime unknown);

// The era that a runtime's name and a version, as rows of measurements have them, say on a device; "" where they do
// not.
std::string era_of(const Device& device, const std::string& runtime, const std::string& version);

}  // namespace llmperf::hardware
