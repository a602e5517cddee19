// The points of a sweep: every combination of lists of values of a request's fields, and the row of each.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "points/grid.h"
#include "points/row.h"
#include "points/runner.h"
#include "request/request.h"
#include "request/resolve.h"
#include "result/field.h"
#include "result/generation.h"
#include "result/study.h"

namespace llmperf::service {

// The values of a field that points are made of, as they are typed; of a switch "true".
struct Swept {
  const request::Field* field = nullptr;
  std::vector<std::string> values;
};

// Points come in the order of the fields' table, the last of them changing fastest, and at last gen, prompt and batch:
// of language models only these three change while a setup stays, which is what makes a sweep fast.
class Sweep {
 public:
  // How a message names fields, which stand in it between backquotes.
  using Wording = std::function<std::string(const std::string&)>;

  // At most one of each field. `points_file`: CSV whose header names fields (model, hw, batch …), each row values that
  // go together; may be empty. Reads every model and device once, from sources that outlive it. Throws
  // Error(bad_input).
  Sweep(const std::vector<Swept>& fields, const std::string& points_file, request::Sources& sources,
        Wording wording = {});

  const points::Grid& grid() const { return *grid_; }
  // "point", the swept fields that results do not name, the columns of an estimate, "error".
  const std::vector<std::string>& columns() const { return columns_; }
  // What each of these columns has: of numbers, truths or texts.
  const std::vector<result::Kind>& kinds() const { return kinds_; }
  // Those that change.
  std::vector<result::SweptFlag> swept() const;
  // A message of a library in the words of who asks.
  std::string worded(const std::string& text) const { return wording_ ? wording_(text) : text; }

  // Evaluates points of one thread. The sweep must outlive it.
  class Evaluator {
   public:
    explicit Evaluator(const Sweep& sweep) : sweep_(sweep), request_(sweep.same_) {}
    // Fills the row with the sweep's columns; returns whether there is a result ("does not fit" is one) and not an
    // error.
    bool operator()(std::int64_t point, points::Row& row);
    // Of the last point, which had a result: what fields that say nothing there would be refused with by themselves; of
    // a server those are refused.
    std::span<const std::string> unused() const {
      return setup_ ? std::span<const std::string>(setup_->unused) : std::span<const std::string>();
    }

   private:
    void set_axis(std::size_t axis);
    void load_setup_once();
    void take(std::unique_ptr<request::Resolved> setup);
    void set_scenario(estimate::Scenario& scenario) const;
    std::string generation(points::Row& row);
    std::string anew(points::Row& row);

    const Sweep& sweep_;
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
  void read_fields(const std::vector<Swept>& fields, std::vector<points::Axis>& axes);
  void check_sources(const std::vector<points::Axis>& axes);
  void name_columns();
  std::string error_text(const std::exception& error) const;

  request::Request same_;  // of all points
  std::optional<points::Grid> grid_;
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

// Evaluates chunks of points on threads. `all`: what is collected of rows, empty: a copy of it is each chunk's, whose
// `kept` becomes a part of that of `all`. `add` is called on any thread, each with a copy of its own; `hand_on` on the
// caller's, for one chunk after the other, and returns whether to go on. Where `stop` is set no more points are begun.
// Counts, the first error and what fields without effect are told become the result's.
template <class Rows>
void run(const Sweep& sweep, const std::vector<points::Chunk>& chunks, std::size_t threads, Rows& all,
         const std::function<void(const points::Row&, Rows&)>& add, const std::function<bool(Rows&)>& hand_on,
         result::SweepResult& result, const std::atomic<bool>* stop = nullptr) {
  struct Part {
    Rows rows;
    std::int64_t points = 0, failed = 0;
    std::string first_error = {};
    std::map<std::string, std::int64_t> unused = {};  // at how many points
  };
  const Rows empty = all;
  std::map<std::string, std::int64_t> unused;
  points::run_in_order<std::optional<Part>>(
      chunks.size(), std::clamp<std::size_t>(chunks.size(), 1, threads),
      // Of one thread.
      [&]() -> points::Worker<std::optional<Part>> {
        return [&, evaluate = std::make_shared<Sweep::Evaluator>(sweep), row = points::Row()](std::size_t i) mutable {
          Part part{.rows = empty};
          for (std::int64_t point = chunks[i].begin; point < chunks[i].end; ++point) {
            if (stop != nullptr && *stop) break;
            ++part.points;
            const bool done = (*evaluate)(point, row);
            if (!done && part.failed++ == 0) part.first_error = row[row.size() - 1].text;
            add(row, part.rows);
            if (!done) continue;
            for (const std::string& text : evaluate->unused()) ++part.unused[text];
          }
          return std::optional(std::move(part));
        };
      },
      [&](std::size_t, std::optional<Part>& part) {
        if (result.failed == 0) result.first_error = part->first_error;
        result.points += part->points;
        result.failed += part->failed;
        for (const auto& [text, count] : part->unused) unused[text] += count;
        all.kept.add_beaten(part->rows.kept);
        for (points::Row& row : part->rows.kept.take()) all.kept.offer(std::move(row));
        return hand_on(part->rows);
      });
  for (const auto& [text, count] : unused) {
    result.notes.push_back(fmt::format("at {} of {} points a field says nothing: {}", count, result.points, text));
  }
}

}  // namespace llmperf::service
