// Results as JSON trees and documents. Included by .cpp files only.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "result/field.h"

namespace llmperf::result {

using Json = nlohmann::ordered_json;

// JSON has no NaN or infinity: both become null. Whole numbers that a double holds exactly are written without a
// fraction.
Json number(double value);
template <class Dimension>
Json number(Quantity<Dimension> q) {
  return number(q.value);
}
// The object in one line.
std::string line(const Type& type, const void* object);
template <class T>
std::string line(const T& object) {
  return line(type_of<T>(), &object);
}

// Every document says what it is: {"schema": "llmperf.estimate", "schema_version": 1, "tool": …}.
Json header(const char* schema);
// Indented by two, with a line end; bytes that are no UTF-8 are replaced.
std::string dump(const Json& json);
std::string quoted(const std::string& text);

}  // namespace llmperf::result
