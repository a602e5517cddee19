// One estimate as one row of named cells: the CSV of `llmperf estimate`, and a point of a sweep.
#pragma once

#include <string>

#include "estimate/estimate.h"
#include "estimate/training.h"
#include "estimate/video.h"
#include "report/document.h"
#include "sweep/row.h"

namespace llmperf::report {

// What the rows of one setup have in common.
struct SetupFacts {
  explicit SetupFacts(const estimate::Estimator& estimator);
  std::string kv;
  std::string options;
  std::string plan;
  std::string label;
  std::string runtime;
  double parameters = 0;
  double kv_bytes_per_token = 0;  // that a token adds to the cache of one sequence, on all devices together
};

// The columns alone when estimator and estimate are null.
void fill_row(const sweep::RowFiller& fill, const SetupFacts* facts, const estimate::Estimator* estimator,
              const estimate::Estimate* estimate);
void fill_row(const sweep::RowFiller& fill, const estimate::VideoEstimator* estimator,
              const estimate::VideoEstimate* estimate);
void fill_row(const sweep::RowFiller& fill, const estimate::TrainingEstimator* estimator,
              const estimate::TrainingEstimate* estimate);

// The text of a cell of CSV: the shortest that reads back the same, "true" or "false", nothing for an empty cell.
std::string cell_text(const sweep::Cell& cell);
Table table_of(const sweep::Row& row);

template <class Estimator, class Estimate>
Table summary_csv(const Estimator& estimator, const Estimate& estimate) {
  sweep::Row row;
  fill_row(sweep::RowFiller(row), &estimator, &estimate);
  return table_of(row);
}
Table summary_csv(const estimate::Estimator& estimator, const estimate::Estimate& estimate);

}  // namespace llmperf::report
