// Any document, object or list as HTML: what a page shows where nothing special is known. Included by .cpp files only.
#pragma once

#include <set>
#include <string>

#include "report/html_values.h"

namespace llmperf::report {

// Scalars as fields; below them, as sections of `level`, objects and lists. Keys of `skip` are left out.
void write_object(HtmlWriter& page, const Json& object, const std::string& key, int level, const Labels& labels,
                  const std::set<std::string>& skip = {});
// One value of an object: an object, a table of a list of objects, text of a list of scalars. Not a scalar.
void write_value(HtmlWriter& page, const Json& value, const std::string& key, int level, const Labels& labels);

// A column for every key of any row, those of objects in a row too; keys of `skip` and columns of nulls are left out.
HtmlTable table_of(const Json& rows, const std::string& key, const Labels& labels,
                   const std::set<std::string>& skip = {});

}  // namespace llmperf::report
