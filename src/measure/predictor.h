// From measured rows to predicted seconds: the ops of every row are built once, then timed as often as a fit wants.
//
// A step row becomes the graph of that step, an op row one op. Equal ops of different rows are timed once. An op
// depends on few parameters (mapper::parameters_of), so that a changed one costs only the ops it has a part in.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "estimate/band.h"
#include "estimate/estimate.h"
#include "hardware/device.h"
#include "hardware/runtime_profile.h"
#include "mapper/roofline/step_overhead.h"
#include "measure/measurements.h"
#include "model/decoder.h"

namespace llmperf::measure {

// What a row needs at the device's peaks: the figures that simpler models are made of.
struct RowRoof {
  Seconds compute;  // of the matrix and vector engines
  Seconds memory;
  Seconds network;
  Seconds products;    // of the matrix engines, were all of them of 16-bit operands
  double kernels = 0;  // launched
  Seconds roof;        // the speed of light: the sum over ops of the longest of these
};

class Predictor {
 public:
  // The rows `rows` of `measurements`, which are of `device` and all run under `profile` (copied). Models are looked up
  // by name. Rows that nothing predicts (no such model, scheme, option or plan) are added to `refused` and are none of
  // rows(); without it they are an Error.
  Predictor(const Measurements& measurements, const std::vector<std::size_t>& rows, const hardware::Device& device,
            const hardware::RuntimeProfile& profile, Refusals* refused = nullptr);
  ~Predictor();
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;

  const std::vector<std::size_t>& rows() const { return rows_; }
  const hardware::RuntimeProfile& profile() const { return profile_; }
  const std::vector<RowRoof>& roofs() const { return roofs_; }
  // What was taken otherwise than a row says it; empty: nothing.
  const std::string& note(std::size_t row) const;
  // Of a step row; null for ops.
  const estimate::Setup* setup_of(std::size_t row) const;
  // Whether the device has the memory for a step row, and its model is trained on such a context.
  bool runs(std::size_t row, const StepRow& step) const;
  // Parameters of a row's model (0 for ops).
  double model_parameters(std::size_t row) const { return items_of_[row].parameters; }

  // Seconds of every row with these values. `changed`: only that parameter differs from the values of the last call
  // without it.
  void predict(std::span<const double> values, std::optional<std::size_t> changed, std::span<double> seconds);
  // What the parts of a row take of the seconds that the last prediction of everything gave it.
  estimate::Shares shares(std::size_t row) const;
  // Parameters that at least one row depends on.
  std::vector<std::size_t> parameters() const;

 private:
  struct Case;  // what rows of one model, scheme, plan and set of options share
  struct Item {
    std::uint32_t op;
    double count;
    bool overlaps;
  };
  struct RowItems {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t prompt_end = 0;   // from `end` on: the prompt of a request to a loaded server
    double prompts_per_step = 0;  // of such requests (StepRow)
    const Case* of = nullptr;     // null: an op row
    bool prompts = false;
    double sequences = 0;            // of a replica
    graph::SequenceGroup group;      // of a replica; with a pipeline of a micro-batch
    std::int64_t micro_batches = 0;  // > 0: a pipeline, whose stages the estimator schedules
    double layers = 0;
    double parameters = 0;
  };

  void add_step(const StepRow& row);
  void add_drafts(const estimate::Estimator& drafts, const StepRow& row, RowRoof& roof);
  void add_op(const OpRow& row);
  const mapper::Machine& machine_of(const OpRow& row);
  estimate::Choices choices_of(const StepRow& row, const model::Decoder& decoder);
  void add(const graph::Op& op, const mapper::Machine& machine, RowRoof& roof, const hardware::Device* host = nullptr);
  const Case& case_of(const StepRow& row);
  const estimate::Phase& pipelined(const RowItems& row);
  double seconds_of(std::size_t op) const;
  double row_seconds(const RowItems& row, const std::vector<double>& op_seconds,
                     const mapper::StepOverhead* overhead) const;
  // Of the device, for the prompts of others that a step of a loaded server processes beside its tokens.
  double others_prompts(const RowItems& row, const std::vector<double>& op_seconds) const;
  std::vector<mapper::StepOverhead> overheads() const;  // of step rows, in order; with the values of the moment

  std::vector<std::size_t> rows_;
  const hardware::Device& device_;
  hardware::RuntimeProfile profile_;  // its values change with predict()
  std::map<std::string, std::unique_ptr<Case>> cases_;
  std::map<std::string, std::unique_ptr<model::Decoder>> models_;
  std::map<std::string, hardware::Device> hosts_;
  // Of op rows: the profile under one load and launched one way, the profile's own or those of the row.
  struct Loaded {
    hardware::RuntimeProfile profile;
    std::unique_ptr<mapper::Machine> machine;
  };
  std::map<std::pair<hardware::Power, bool>, Loaded> loads_;
  std::vector<RowItems> items_of_;
  std::vector<RowRoof> roofs_;
  std::vector<Item> items_;
  struct UniqueOp;
  std::vector<UniqueOp> ops_;
  std::map<std::string, std::uint32_t> index_;
  std::vector<std::vector<std::size_t>> dependents_;  // of every parameter, the ops whose time it can change
  std::vector<double> op_seconds_;
  std::vector<double> trial_;
  estimate::Phase phase_;                        // scratch of pipelined()
  std::vector<mapper::StepOverhead> overheads_;  // of the last prediction of everything
};

}  // namespace llmperf::measure
