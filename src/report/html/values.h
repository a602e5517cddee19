// A JSON document as people read it: values, objects and lists of any kind. Included by .cpp files only.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "report/html/labels.h"
#include "report/html/writer.h"
#include "result/json.h"

namespace llmperf::report {

// Null when there is nothing at the path: keys and, of lists, indices ("phases.0.name"). A document may be anything.
const Json* find(const Json& json, std::string_view path);
std::optional<double> find_number(const Json& json, std::string_view path);
// Empty for anything but text.
std::string find_text(const Json& json, std::string_view path);

// Whether that is what stands there.
bool is_true(const Json& json, std::string_view path);
bool is_false(const Json& json, std::string_view path);
// The objects of a list; empty for anything but a list of objects.
const Json& list_at(const Json& json, std::string_view path);

// Of a path the last key, and the key of what it is a part of; `key` at the top.
std::string last_of(const std::string& path);
std::string parent_of(const std::string& path, const std::string& key);

inline bool is_scalar(const Json& value) { return !value.is_object() && !value.is_array(); }
bool is_list_of_objects(const Json& value);  // not an empty one
bool is_list_of_texts(const Json* value);    // or an empty one

// A scalar. The end of `key` says the unit; `parent` is the key of what it is a part of: "weight_bytes" of "memory" is
// written in powers of 1024 as memory is, that of an op in powers of 1000 as traffic is.
HtmlCell shown(const Json& value, std::string_view key, std::string_view parent, const Labels& labels);

// Any document, object or list: what a page shows where nothing special is known. Scalars become fields; below them, as
// sections of `level`, objects and lists. Keys of `skip` are left out.
void write_object(HtmlWriter& page, const Json& object, const std::string& key, int level, const Labels& labels,
                  const std::set<std::string>& skip = {});
// One value of an object: an object, a table of a list of objects, text of a list of scalars. Not a scalar.
void write_value(HtmlWriter& page, const Json& value, const std::string& key, int level, const Labels& labels);

// A column for every key of any row, those of objects in a row too: first those of `leading`. Keys of `skip` and
// columns of nulls are left out.
HtmlTable table_of(const Json& rows, const std::string& key, const Labels& labels,
                   const std::vector<std::string>& leading = {}, const std::set<std::string>& skip = {});
// The table, without the columns that say the same in every row of many: these stand in a line above it.
void write_table(HtmlWriter& page, HtmlTable table, const Labels& labels);

// ---- What the page of each kind of document shows, in which order and in which words. Included by .cpp files only.

// Writes what there is of it: a document that came from a file may lack anything.
void write_page(HtmlWriter& page, const Json& document, const Labels& labels);

}  // namespace llmperf::report
