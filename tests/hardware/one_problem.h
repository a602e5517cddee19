// The one problem that reading a file `toy.yaml` must name.
#pragma once

#include <string>

#include "base/error.h"
#include "catch.h"

namespace llmperf {

// `read` throws exactly one problem, on that line, with these parts in its message and its hint.
template <typename Read>
void check_one_problem(const Read& read, int line, const std::string& message, const std::string& hint = "") {
  try {
    read();
    FAIL("no error");
  } catch (const Error& error) {
    CAPTURE(std::string(error.what()));
    REQUIRE(error.diagnostics().size() == 1);
    const Diagnostic& found = error.diagnostics().front();
    CHECK(found.where.file == "toy.yaml");
    CHECK(found.where.line == line);
    CHECK(found.where.column >= 1);
    CHECK_THAT(found.message, Catch::Contains(message));
    CHECK_THAT(found.hint, Catch::Contains(hint));
  }
}

}  // namespace llmperf
