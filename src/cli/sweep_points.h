// The points of `llmperf sweep`: any flag of `llmperf estimate` with a list of values, and what an estimate of one
// point gives.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/request.h"
#include "cli/sources.h"
#include "cli/training.h"
#include "report/sweep_report.h"
#include "sweep/row.h"
#include "sweep/study.h"

namespace CLI {
class App;
}

namespace llmperf::cli {

// Every flag that a point has; in a sweep the values may be lists, which only the words of the command line hold.
struct PointFlags {
  RequestFlags request;
  TrainingFlags training;
};
void add_point_flags(CLI::App& command, PointFlags& flags);

// What is estimated at every point; a sweep is of one kind.
enum class PointKind : std::uint8_t { generation, video, training };

// The study that the flags given on a command line describe. Points come in the order of the flags in the help, the
// last of them changing fastest, and at last --gen, --prompt and --batch: of language models only these three change
// while a setup stays, which is what makes a sweep fast.
class PointStudy {
 public:
  // `points_file`: CSV whose header names flags (model, hw, batch …), each row values that go together; may be empty.
  // Reads every model and device once. Throws Error(bad_input).
  PointStudy(const CLI::App& command, const std::string& points_file);

  const sweep::Study& study() const { return *study_; }
  // "point", the swept flags that results do not name, the columns of an estimate, "error".
  const std::vector<std::string>& columns() const { return columns_; }
  // Those that change.
  std::vector<report::SweptFlag> swept() const;
  PointKind kind() const { return kind_; }

  // Evaluates points of one thread. The study must outlive it.
  class Evaluator {
   public:
    explicit Evaluator(const PointStudy& points);
    ~Evaluator();
    Evaluator(Evaluator&&) noexcept;
    // Fills the row with the study's columns; returns whether there is a result ("does not fit" is one) and not an
    // error.
    bool operator()(std::int64_t point, sweep::Row& row);

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

 private:
  struct Given {
    std::string flag;
    std::string value;  // empty: a switch
  };
  struct AxisColumn {
    std::size_t axis = 0;
    std::size_t flag = 0;    // of the axis
    std::size_t column = 0;  // of the row
    bool extra = false;      // not a column of results
  };
  void read_flags(const CLI::App& command, std::vector<sweep::Axis>& axes);
  void check_sources(const std::vector<sweep::Axis>& axes);
  void name_columns();

  std::vector<Given> same_;  // of all points
  std::optional<sweep::Study> study_;
  std::size_t inner_ = 0;  // the last axes: scenarios of one setup
  std::vector<std::string> columns_;
  std::vector<AxisColumn> axis_cells_;
  PointKind kind_ = PointKind::generation;
  mutable Sources sources_;
};

}  // namespace llmperf::cli
