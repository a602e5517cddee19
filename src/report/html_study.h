// The sections of a study: its words, commands and tables. Included by .cpp files only.
#pragma once

#include <set>
#include <string>

#include "report/html_values.h"

namespace llmperf::report {

// Writes what there is of it (a document that came from a file may lack anything) and returns the keys that are done.
std::set<std::string> write_study_sections(HtmlWriter& page, const Json& document, const Labels& labels);

}  // namespace llmperf::report
