// From measured runs of servers to predicted figures: every run is simulated (serving/serve.h) with the load that its
// client made, as many requests as it sent, over a few seeds of which the figures are averaged. A closed loop has its
// burst of the beginning in it, as the client's figures have.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hardware/device.h"
#include "hardware/runtime_profile.h"
#include "measure/measurements.h"
#include "model/decoder.h"
#include "request/sources.h"
#include "serving/serve.h"
#include "serving/trace_file.h"

namespace llmperf::measure {

class ServingPredictor {
 public:
  // The rows `rows` of `measurements`, which are ServingRows of `device`. Rows that name no model, scheme, engine or
  // trace are added to `refused` and are none of rows(); without it they are an Error.
  ServingPredictor(const Measurements& measurements, const std::vector<std::size_t>& rows,
                   const hardware::Device& device, Refusals* refused = nullptr);
  ~ServingPredictor();
  ServingPredictor(const ServingPredictor&) = delete;
  ServingPredictor& operator=(const ServingPredictor&) = delete;

  const std::vector<std::size_t>& rows() const { return rows_; }
  // Seconds (of a rate its inverse) of every row under the profile, or at the speed of light (null); NaN where nothing
  // is predicted.
  void predict(const hardware::RuntimeProfile* profile, std::span<double> seconds);
  // Why nothing is, as of the last prediction; empty: it is.
  const std::string& remark(std::size_t row) const;
  // Of the last prediction: how far it is from what the profile was fitted on ("batch 64 of up to 32"); empty: inside.
  const std::string& beyond(std::size_t row) const;
  // What was taken of the engine's settings that the row does not say; empty: nothing.
  const std::string& note(std::size_t row) const;
  std::size_t runs() const { return runs_.size(); }
  // Drafts of rows that do not say how many of their tokens are kept ("eagle:3 on llama-3.1-8b"), with what is taken
  // for it: the share of each token, given those before it. Until it is set such rows are not predicted.
  const std::map<std::string, double>& acceptances() const { return acceptances_; }
  void accept(const std::string& draft, double share) { acceptances_.at(draft) = share; }

 private:
  struct Simulated;
  struct RunOf {
    ServingRow row;
    std::vector<std::size_t> figures;  // in rows_
    std::string remark = {};
    std::string beyond = {};
    std::string note = {};
  };
  void prepare(const ServingRow& row);
  estimate::Draft draft_of(const ServingRow& row, const model::Decoder& target);
  estimate::Choices choices_of(const ServingRow& row, const hardware::RuntimeProfile* profile);
  const Simulated& simulated(const ServingRow& row, const hardware::RuntimeProfile* profile,
                             std::map<std::string, Simulated>& cases);
  serving::Workload workload_of(const ServingRow& row, const serving::EngineSettings& engine, std::uint64_t seed) const;
  void simulate(RunOf& run, const hardware::RuntimeProfile* profile, std::map<std::string, Simulated>& cases,
                std::span<double> seconds);

  std::vector<std::size_t> rows_;
  const hardware::Device& device_;
  std::vector<RunOf> runs_;
  std::vector<std::size_t> run_of_;   // of each row
  std::vector<std::string> metrics_;  // likewise
  std::map<std::string, std::unique_ptr<model::Decoder>> models_;
  std::map<std::string, serving::Trace> traces_;
  request::Sources sources_;  // of models that draft
  std::map<std::string, double> acceptances_;
};

}  // namespace llmperf::measure
