// The rows of a validation as data, written straight to text: there may be tens of thousands.
#pragma once

#include <string>

#include "calibrate/validation.h"
#include "report/document.h"

namespace llmperf::report {

struct ValidatedRows {
  Table csv;         // a column for everything that some row has
  std::string json;  // an array, one object per line with the keys that the row has, indented by two
};
ValidatedRows write_rows(const calibrate::Validation& validation);

}  // namespace llmperf::report
