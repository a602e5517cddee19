// The tensors of a model as rows of a table: `show model --detail tensors`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/catalog_report.h"

namespace llmperf::report {

struct TensorRow {
  std::string name;
  std::string type;                 // "Q4_K", "w4a16-g128", "4.5 bits"
  std::vector<std::int64_t> shape;  // outermost first: [experts, outputs, inputs]
  std::int64_t elements = 0;
  Bytes bytes;
};
// In the order of the file; of a weight scheme by Hugging Face's names, embedding first.
std::vector<TensorRow> tensor_rows(const ModelView& view);

// How much of a model is stored in which type, largest first.
struct TypeShare {
  std::string type;
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  Bytes bytes;
};
std::vector<TypeShare> type_shares(const std::vector<TensorRow>& rows);

}  // namespace llmperf::report
