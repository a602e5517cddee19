// Short ways to import a text and to look at what came of it.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "catch.h"
#include "import/import.h"

namespace llmperf::import {

inline Imported imported(Source source, const std::string& text, const Options& options = {},
                         const std::string& file = "t.csv") {
  return import_text(source, text, file, options);
}

// Every problem, without hints.
inline std::vector<std::string> problems_of(Source source, const std::string& text, const Options& options = {},
                                            const std::string& file = "t.csv") {
  std::vector<std::string> list;
  try {
    import_text(source, text, file, options);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::bad_input);
    for (const Diagnostic& d : error.diagnostics()) list.push_back(format_diagnostic({d.where, d.message, {}}));
  }
  return list;
}

inline const measure::OpRow& op(const Imported& i, std::size_t row) {
  REQUIRE(row < i.measurements.rows.size());
  return std::get<measure::OpRow>(i.measurements.rows[row].of);
}
template <class Shape>
const Shape& shape(const Imported& i, std::size_t row = 0) {
  return std::get<Shape>(op(i, row).shape);
}
inline double micros(const Imported& i, std::size_t row = 0) { return i.measurements.rows[row].latency.value * 1e6; }

inline const TypeSummary& type(const Imported& i, const std::string& name) {
  for (const TypeSummary& t : i.types) {
    if (t.type == name) return t;
  }
  FAIL("no type " << name);
  return i.types.front();
}

}  // namespace llmperf::import
