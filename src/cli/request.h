// The flags that describe one estimate, shared by every subcommand that makes one.
#pragma once

#include <memory>
#include <string>

#include "estimate/estimate.h"
#include "hardware/device.h"
#include "model/decoder.h"

namespace CLI {
class App;
}

namespace llmperf::cli {

struct RequestFlags {
  std::string model;
  std::string hardware;
  std::string batch = "1";
  std::string prompt = "512";
  std::string generate = "128";
  std::string weights;
  std::string kv;
  std::string activations;
  std::string options = "all";
  std::string reserve;
};

void add_model_flag(CLI::App& command, std::string& model, const char* description = nullptr);
void add_hardware_flag(CLI::App& command, std::string& hardware);
void add_request_flags(CLI::App& command, RequestFlags& flags);

// A loaded request; the estimator points into the model and the device beside it.
struct Request {
  model::Decoder model;
  hardware::Device device;
  estimate::Scenario scenario;
  std::unique_ptr<estimate::Estimator> estimator;
};
// Throws Error(bad_input).
std::unique_ptr<Request> load_request(const RequestFlags& flags);
estimate::Choices choices_of(const RequestFlags& flags);

}  // namespace llmperf::cli
