// `llmperf compare` of two results: saved ones, or those of a request and of the same request with some flags changed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "cli/command.h"

namespace llmperf::cli {

// Whether `after` is slower than `before` by more than `limit`; says so on stderr. `which`: what is slower, "with
// --with".
bool too_slow(std::string_view what, Seconds before, Seconds after, double limit, const std::string& which);

// Both print the difference and return the exit status. Throw Error: bad_input for files that are no results of one
// kind, infeasible when one of the two does not fit.
int compare_files(const std::vector<std::string>& files, std::optional<double> limit, const OutputFlags& output);
// `command`: `llmperf compare` as parsed, whose request is the first one; `own`: its flags that are no part of a
// request. The second has the flags of `against` as well, and instead.
int compare_against(const CLI::App& command, const std::vector<std::string>& own, const std::string& against,
                    std::optional<double> limit, const OutputFlags& output);

}  // namespace llmperf::cli
