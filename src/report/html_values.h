// Values of a JSON document as people read them. Included by .cpp files only.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "report/html_labels.h"
#include "report/html_writer.h"
#include "report/json.h"

namespace llmperf::report {

// Null when there is nothing at the path: keys and, of lists, indices ("phases.0.name"). A document may be anything.
const Json* find(const Json& json, std::string_view path);
std::optional<double> find_number(const Json& json, std::string_view path);
// Empty for anything but text.
std::string find_text(const Json& json, std::string_view path);

inline bool is_scalar(const Json& value) { return !value.is_object() && !value.is_array(); }
bool is_list_of_objects(const Json& value);  // not an empty one

// A scalar. The end of `key` says the unit; `parent` is the key of what it is a part of: "weight_bytes" of "memory" is
// written in powers of 1024 as memory is, that of an op in powers of 1000 as traffic is.
HtmlCell shown(const Json& value, std::string_view key, std::string_view parent, const Labels& labels);
// A number with the unit that stands beside it in the document ("B", "FLOP/s", "s", …).
HtmlCell shown_with_unit(double value, const std::string& unit);

}  // namespace llmperf::report
