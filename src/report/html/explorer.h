// The explorer: one offline HTML file that computes estimates itself, by the engine that it carries.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/html/labels.h"

namespace llmperf::report {

// Why this build has no engine for pages and what to install; empty where it has one.
std::string explorer_missing();

// Names of fields, and what the files are called that their values come from.
using FileNames = std::vector<std::pair<std::string, std::string>>;

// The page, opened at a request (request::to_json). Throws Error(failed) where there is no engine.
std::string render_explorer(const std::string& request, const FileNames& names, Language language);

// What makes a report's page recompute: a button, and all that the explorer is made of, asleep until it is pressed.
// Empty where there is no engine.
struct ExplorerPart {
  std::string button;
  std::string scripts;
};
ExplorerPart explorer_part(const Labels& labels);

// What the content security policy of such a page allows besides that of a report.
inline constexpr const char* kExplorerPolicy = " 'wasm-unsafe-eval'; worker-src blob:";

}  // namespace llmperf::report
