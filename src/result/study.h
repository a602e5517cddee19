// What `llmperf sweep`, `merge` and `run` answer, and what is said of a scenario.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "points/row.h"
#include "points/selection.h"
#include "points/study_file.h"
#include "result/field.h"

namespace llmperf::result {

// A flag that changes, the column it is in and its values.
struct SweptFlag {
  std::string flag;
  std::string column;
  std::vector<std::string> values;
};
Type fields_of(Fields<SweptFlag> f);
// Of what a front was asked for, and the rows that it beats: their values there, sorted; none where there are too many.
struct SweptFront {
  std::vector<points::Key> keys;
  std::vector<std::string> columns;  // of the keys
  std::optional<std::vector<std::vector<double>>> beaten;
};
Type fields_of(Fields<SweptFront> f);
// Nothing for a selection that is no front. `columns`: of the rows.
std::optional<SweptFront> front_of(const points::Selection& selection, std::span<const std::string> columns);

struct SweepResult {
  std::vector<SweptFlag> axes;
  std::vector<std::string> columns;
  std::vector<std::size_t> shown;   // columns to write; all when empty, of a table then the most telling
  std::string selection;            // "the 20 best by tokens_per_second"; empty: all rows
  std::optional<SweptFront> front;  // where the rows are one
  std::int64_t points = 0;
  std::int64_t failed = 0;
  std::string first_error;
  std::vector<std::string> notes = {};  // on fields that say nothing at some points
  std::vector<points::Row> rows;
  std::vector<std::size_t> written() const;  // columns of CSV and JSON
};
Type fields_of(Fields<SweepResult> f);
// Rows become text one by one: as one tree, many take several times the memory of the text.
std::string sweep_document(const SweepResult& result);

// A section of a study that ran.
struct StudySection {
  std::string_view name;
  std::string_view title;
  const std::vector<std::string>& text;
  const std::vector<std::string>& commands;
  int status = 0;
  const std::vector<std::string>& notes;
  std::vector<std::string> columns;
  std::vector<std::vector<Value>> rows;
};
Type fields_of(Fields<StudySection> f);
struct StudyRun {
  const points::StudyFile* study;
  std::vector<StudySection> sections;
};
Type fields_of(Fields<StudyRun> f);

struct NamedStudy {
  std::string name;
  points::StudyFile study;
};
Type fields_of(Fields<NamedStudy> f);
struct StudyList {
  std::vector<NamedStudy> studies;
};
Type fields_of(Fields<StudyList> f);
// What a study does, without doing it.
struct StudySummary {
  std::string name;
  const points::StudyFile& study;
};
Type fields_of(Fields<StudySummary> f);

Type fields_of(Fields<points::Section> f);

}  // namespace llmperf::result
