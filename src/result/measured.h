// What the commands that deal in measurements answer: `llmperf validate`, `calibrate`, `import` and `replay`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost/work.h"
#include "import/import.h"
#include "measure/calibrate.h"
#include "measure/validation.h"
#include "replay/replay.h"
#include "result/parts.h"

namespace llmperf::result {

// A parameter of a calibration with what is said of it.
struct ParameterFitted : measure::CalibratedParameter {
  bool identified() const { return fitted.identified == measure::Identified::yes; }
  // The larger of what rows and prior leave open and what changes with the rows left out.
  double uncertainty() const { return std::max(fitted.relative_error, jackknife); }
};
Type fields_of(Fields<ParameterFitted> f);
std::vector<ParameterFitted> parameters_of(const measure::Calibration& calibration);
// A pair that the rows know only together.
struct Correlated {
  std::string_view first;
  std::string_view second;
  double coefficient = 0;
};
Type fields_of(Fields<Correlated> f);
std::vector<Correlated> correlated(const measure::Calibration& calibration);
// Errors of groups behind that of all rows.
std::span<const measure::GroupErrors> groups_of(const std::vector<measure::GroupErrors>& errors);

// What was imported of a class; classes never mix.
struct ClassTotal {
  import::Class of;
  std::int64_t count = 0;
  Seconds total;
  std::int64_t imported = 0;
  Seconds in_rows;
  Seconds in_groups;
  Seconds left_out;
};
Type fields_of(Fields<ClassTotal> f);
std::vector<ClassTotal> totals_of(const import::Imported& imported);
Type fields_of(Fields<import::GroupSummary> f);
struct ImportedType {
  const import::TypeSummary* summary;
  double share = 0;  // of the time of its class
};
Type fields_of(Fields<ImportedType> f);
std::vector<ImportedType> types_of(const import::Imported& imported);
std::vector<std::string> warnings_of(const import::Imported& imported);

// OpColumns of any phase.
std::optional<Map<Value>> measured_columns(const estimate::Phase& phase, std::size_t op);

// An op of a replay, in a phase.
struct ReplayedOp {
  const replay::PhaseStudy* phase;
  const replay::TimedOp* op;
  std::optional<Seconds> predicted;
  const measure::OpRow* row() const { return std::get_if<measure::OpRow>(&op->op.what); }
  bool timed() const { return op->timing.has_value(); }
  cost::Work work() const;  // of what a row can name
};
Type fields_of(Fields<ReplayedOp> f);
std::vector<ReplayedOp> ops_of(const replay::PhaseStudy& phase);
std::vector<ReplayedOp> ops_of(const replay::Study& study);
// All executions of the ops, one by one.
Seconds ops_time(const replay::PhaseStudy& phase);

struct SelfTest {
  replay::Description device;
  const std::vector<replay::SelfTestResult>& results;
  std::int64_t count(replay::SelfTestResult::Outcome outcome) const;
};
Type fields_of(Fields<SelfTest> f);

// What was found out about a measurement. Rows are written cell by cell, with the columns of their files before these:
// there may be tens of thousands.
struct ValidatedRow {
  const measure::Validation* of;
  const measure::ValidatedRow* row;
  // Of the band that nine of ten are in: the lower of -1, the upper of 1.
  std::optional<double> edge(int side) const {
    if (!row->band) return std::nullopt;
    return side < 0 ? row->predicted / (1 + row->band->p90) : row->predicted * (1 + row->band->p90);
  }
};
Type fields_of(Fields<ValidatedRow> f);

Type fields_of(Fields<measure::GroupErrors> f);
Type fields_of(Fields<measure::Validation> f);
Type fields_of(Fields<measure::Narrowed> f);
Type fields_of(Fields<measure::Proposal> f);
Type fields_of(Fields<measure::Calibration> f);
Type fields_of(Fields<import::Imported> f);
Type fields_of(Fields<replay::SelfTestResult> f);
Type fields_of(Fields<replay::Study> f);

}  // namespace llmperf::result
