// The points of a sweep: every combination of lists of values of a request's fields, and the row of each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "request/request.h"
#include "request/resolve.h"
#include "result/field.h"
#include "result/generation.h"
#include "result/study.h"
#include "sweep/row.h"
#include "sweep/study.h"

namespace llmperf::answer {

// The values of a field that points are made of, as they are typed; of a switch "true".
struct Swept {
  const request::Field* field = nullptr;
  std::vector<std::string> values;
};

// Points come in the order of the fields' table, the last of them changing fastest, and at last gen, prompt and batch:
// of language models only these three change while a setup stays, which is what makes a sweep fast.
class PointStudy {
 public:
  // How a message names fields, which stand in it between backquotes.
  using Wording = std::function<std::string(const std::string&)>;

  // At most one of each field. `points_file`: CSV whose header names fields (model, hw, batch …), each row values that
  // go together; may be empty. Reads every model and device once, from sources that outlive it. Throws
  // Error(bad_input).
  PointStudy(const std::vector<Swept>& fields, const std::string& points_file, request::Sources& sources,
             Wording wording = {});

  const sweep::Study& study() const { return *study_; }
  // "point", the swept fields that results do not name, the columns of an estimate, "error".
  const std::vector<std::string>& columns() const { return columns_; }
  // What each of these columns has: of numbers, truths or texts.
  const std::vector<result::Kind>& kinds() const { return kinds_; }
  // Those that change.
  std::vector<result::SweptFlag> swept() const;
  // A message of a library in the words of who asks.
  std::string worded(const std::string& text) const { return wording_ ? wording_(text) : text; }

  // Evaluates points of one thread. The study must outlive it.
  class Evaluator {
   public:
    explicit Evaluator(const PointStudy& points) : points_(points), request_(points.same_) {}
    // Fills the row with the study's columns; returns whether there is a result ("does not fit" is one) and not an
    // error.
    bool operator()(std::int64_t point, sweep::Row& row);
    // Of the last point, which had a result: what fields that say nothing there would be refused with by themselves.
    const std::vector<std::string>& unused() const { return setup_->unused; }

   private:
    void set_axis(std::size_t axis);
    void load_setup_once();
    void take(std::unique_ptr<request::Resolved> setup);
    void set_scenario(estimate::Scenario& scenario) const;
    std::string generation(sweep::Row& row);
    std::string anew(sweep::Row& row);

    const PointStudy& points_;
    request::Request request_;
    std::vector<std::size_t> values_;  // of the point
    std::vector<std::size_t> loaded_;  // of the setup: the outer axes'
    std::string setup_error_;
    std::unique_ptr<request::Resolved> setup_;
    std::optional<result::Generation> generation_;  // the setup's
    estimate::Estimate estimate_;
  };

 private:
  struct AxisColumn {
    std::size_t axis = 0;
    std::size_t flag = 0;    // of the axis
    std::size_t column = 0;  // of the row
    bool extra = false;      // not a column of results
  };
  void read_fields(const std::vector<Swept>& fields, std::vector<sweep::Axis>& axes);
  void check_sources(const std::vector<sweep::Axis>& axes);
  void name_columns();
  std::string error_text(const std::exception& error) const;

  request::Request same_;  // of all points
  std::optional<sweep::Study> study_;
  std::vector<std::vector<const request::Field*>> fields_;  // of every axis
  std::size_t inner_ = 0;                                   // the last axes: scenarios of one setup
  std::vector<std::vector<std::int64_t>> inner_values_;
  std::vector<std::string> columns_;
  std::vector<result::Kind> kinds_;
  std::vector<AxisColumn> axis_cells_;
  request::Workload workload_ = request::Workload::text;
  request::Sources& sources_;
  Wording wording_;
};

}  // namespace llmperf::answer
