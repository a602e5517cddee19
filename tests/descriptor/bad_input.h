// What the tests of this folder share.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "catch.h"

// The text of the bad-input error that `action` throws; fails the test when it throws none or another.
inline std::string bad_input(const std::function<void()>& action) {
  try {
    action();
  } catch (const llmperf::Error& error) {
    CHECK(error.kind() == llmperf::ErrorKind::bad_input);
    return error.what();
  }
  FAIL("no error");
  return {};
}
