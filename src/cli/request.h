// The flags that describe one estimate, shared by every subcommand that makes one.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/gguf_flags.h"
#include "cli/plan_flags.h"
#include "cli/sources.h"
#include "cli/video_flags.h"
#include "estimate/estimate.h"
#include "hardware/device.h"
#include "model/model_file.h"

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
  std::string options;  // empty: all; on an array of tiles joined_vectors and prefetch_weights, too
  std::string runtime;  // empty: the preferred one of the device and the weights
  std::string execution;
  std::string reserve;
  std::string tile_model = "default";
  GgufFlags gguf;
  std::string gpu_layers;
  std::string tensor_split;  // "3,2"
  std::string host;
  std::string micro_batch;
  PlanFlags plan;
  std::string pipeline_batches;
  VideoFlags video;
  const CLI::App* command = nullptr;  // that they are flags of: knows which were given
};
// Throws Error(bad_input) naming every flag given that a model of this workload has no use for.
void check_workload_flags(const RequestFlags& flags, hardware::Workload workload);

// The CPU beside a device for GGUF formats when --host names none: a desktop's.
inline constexpr const char* kDefaultHost = "ryzen-7950x";

void add_model_flag(CLI::App& command, std::string& model, const char* description = nullptr);
void add_hardware_flag(CLI::App& command, std::string& hardware);
// --weights, --kv, --activations, --options and --reserve, and what they choose.
void add_scheme_flags(CLI::App& command, RequestFlags& flags);
estimate::Choices scheme_choices(const RequestFlags& flags, const hardware::Device& device,
                                 const hardware::RuntimeProfile* profile = nullptr);
// All of them; and in two parts, without the model, the hardware and what only whole generations have: batch and
// prompt, and how the model is run.
void add_request_flags(CLI::App& command, RequestFlags& flags);
void add_batch_flags(CLI::App& command, RequestFlags& flags);
void add_execution_flags(CLI::App& command, RequestFlags& flags);

// The CPU of that name or file, kDefaultHost when `name` is empty. Throws Error(bad_input) for what is no CPU.
hardware::Device load_host(const std::string& name);
// Throws Error(bad_input) when a host was named and the setup has no use for one.
void check_host_given(const std::string& name, const estimate::Setup& setup);

void add_runtime_flags(CLI::App& command, RequestFlags& flags);
// The profile that --runtime names for the device and the weights; nothing for "none". Throws Error(bad_input) for one
// of the other workload.
std::optional<hardware::RuntimeProfile> load_profile(const RequestFlags& flags, const hardware::Device& device,
                                                     bool gguf,
                                                     hardware::Workload workload = hardware::Workload::language,
                                                     Sources* sources = nullptr);
// --options, or the list that stands for it where it was not given.
std::string option_list(const RequestFlags& flags, const hardware::Device& device,
                        const hardware::RuntimeProfile* profile);
// Throws Error(bad_input) for one that the device, or a profile, leaves no use for.
mapper::TileModel tile_model(const RequestFlags& flags, const hardware::Device& device,
                             const hardware::RuntimeProfile* profile);
// --options and --execution under a profile, or --options alone without one.
void choose_execution(const RequestFlags& flags, const hardware::Device& device,
                      const hardware::RuntimeProfile* profile, estimate::Choices& choices);

// A loaded request; the estimator points into the model and the device beside it.
struct Request {
  model::ModelFile file;
  hardware::Device device;
  hardware::Device host;
  std::optional<hardware::RuntimeProfile> profile;  // none: the speed of light
  estimate::Scenario scenario;
  std::unique_ptr<estimate::Estimator> estimator;
  const model::Decoder& model() const { return file.decoder; }
};
// Throws Error(bad_input).
std::unique_ptr<Request> load_request(const RequestFlags& flags);
// … for a device that is loaded already.
std::unique_ptr<Request> load_request(const RequestFlags& flags, hardware::Device device);
// … all but --batch, --prompt and --gen, of parts that are loaded once.
std::unique_ptr<Request> load_setup(const RequestFlags& flags, Sources& sources, estimate::Choices& choices);
// --batch, --prompt and --gen. Throws Error(bad_input).
estimate::Scenario scenario_of(const RequestFlags& flags);
// Throws Error(bad_input) for what the plan of the choices does not divide.
void check_scenario(const estimate::Scenario& scenario, const estimate::Choices& choices);
estimate::Choices choices_of(const RequestFlags& flags, const Request& request);

}  // namespace llmperf::cli
