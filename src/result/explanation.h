// What `llmperf explain` answers: where a number comes from, or which numbers can be asked for.
#pragma once

#include <string>
#include <vector>

#include "base/term.h"
#include "result/field.h"

namespace llmperf::result {

struct PathValue {
  std::string path;
  double value = 0;
  std::string unit;
};
struct Explainable {
  std::vector<PathValue> paths;
};

Type fields_of(Fields<Explanation> f);
Type fields_of(Fields<PathValue> f);
Type fields_of(Fields<Explainable> f);

}  // namespace llmperf::result
