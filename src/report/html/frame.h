// Around what stands on a page: its head, and what its scripts read. Included by .cpp files only.
#pragma once

#include <string>
#include <string_view>

#include "report/html/labels.h"
#include "result/json.h"

namespace llmperf::report {

// From the doctype to the end of the head. `policy`: what scripts may do besides what those of any report may, and
// `style`: on top of theirs.
std::string page_head(const std::string& title, const Labels& labels, std::string_view policy = {},
                      std::string_view style = {});

// JSON in a script element: nothing in it may end the element, and no line separator that JavaScript knows.
std::string in_script(const Json& json);
std::string json_element(std::string_view id, const Json& json);

}  // namespace llmperf::report
