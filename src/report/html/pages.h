// What the page of each kind of document shows, in which order and in which words. Included by .cpp files only.
#pragma once

#include "report/html/values.h"

namespace llmperf::report {

// Writes what there is of it: a document that came from a file may lack anything.
void write_page(HtmlWriter& page, const Json& document, const Labels& labels);

}  // namespace llmperf::report
