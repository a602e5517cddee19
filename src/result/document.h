// A result as a JSON document, its keys as a page, and the catalogue of both.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "result/field.h"

namespace llmperf {
struct Build;
}

namespace llmperf::result {

// One object, ends in a newline.
std::string document(const char* schema, const Type& type, const void* object);
template <class T>
std::string document(const char* schema, const T& object) {
  return document(schema, type_of<T>(), &object);
}

// What people call a key: as a field of any document is declared, or the key spelt out without the unit at its end.
std::string label_of(std::string_view key);
// What the numbers of a key are, where a field of any document says it.
Unit unit_of(std::string_view key);

// What a document is documented by.
struct Documented {
  std::string_view title;    // "llmperf.estimate"
  std::string_view command;  // that prints it: "llmperf estimate --json"
  const Type& (*type)();
};
// All that are declared, in the order of docs/json.md.
std::span<const Documented> documents();
// The section of docs/json.md: the keys of the document and of the objects in it; and of those that have a name of
// their own, because several documents have them.
std::string documentation(const Documented& documented);
std::string documentation_of_parts();
// The document as a JSON Schema, and the name of its file in docs/schema.
std::string schema(const Documented& documented);
std::string schema_file(const Documented& documented);

// What `llmperf --version --json` prints.
// {"schema": "llmperf.version", "schema_version": 1, "version": …, "commit": …, "compiler": …, "data_date": …}
std::string version_document(const Build& build);

}  // namespace llmperf::result
