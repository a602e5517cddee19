// The headline of a report page: what a document says, in a few cards. Included by .cpp files only.
#pragma once

#include <vector>

#include "report/html_values.h"

namespace llmperf::report {

// Empty for documents that are lists.
std::vector<HtmlCard> headline_cards(const Json& document, const Labels& labels);

}  // namespace llmperf::report
