// One offline HTML file from a result's JSON: everything the page shows is in that JSON, so that a saved result makes
// the same page later.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/document.h"

namespace llmperf::report {

// `json`: an object as any command writes it. Throws Error(bad_input) for text that is none of llmperf's documents.
std::string render_html(const std::string& json, Language language);

// ---- The explorer: one offline HTML file that computes estimates itself, by the engine that it carries.

// Why this build has no engine for pages and what to install; empty where it has one.
std::string explorer_missing();

// Names of fields, and what the files are called that their values come from.
using FileNames = std::vector<std::pair<std::string, std::string>>;

// The page, opened at a request (request::to_json). Throws Error(failed) where there is no engine.
std::string render_explorer(const std::string& request, const FileNames& names, Language language);

}  // namespace llmperf::report
