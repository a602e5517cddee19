// What is refused, and where.
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "catch.h"

namespace llmperf::program {

// "3:7: message (hint)" of the Error that `run` throws, "" if it throws none.
template <class Run>
std::string refusal_of(Run&& run) {
  try {
    run();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::bad_input);
    REQUIRE(error.diagnostics().size() == 1);
    const Diagnostic& d = error.diagnostics()[0];
    const std::string hint = d.hint.empty() ? "" : fmt::format(" ({})", d.hint);
    return fmt::format("{}:{}: {}{}", d.where.line, d.where.column, d.message, hint);
  }
  return "";
}

}  // namespace llmperf::program
