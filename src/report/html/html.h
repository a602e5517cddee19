// One offline HTML file from a result's JSON: everything the page shows is in that JSON, so that a saved result makes
// the same page later.
#pragma once

#include <string>

#include "report/document.h"

namespace llmperf::report {

// `json`: an object as any command writes it. Throws Error(bad_input) for text that is none of llmperf's documents.
std::string render_html(const std::string& json, Language language);

}  // namespace llmperf::report
