// From what was asked to what is estimated: the only place where a request chooses a model, a device, a profile, a plan
// and a scenario. resolve() is a list of passes; each reads the request and what the passes before it found.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "base/error.h"
#include "estimate/engine_memory.h"
#include "estimate/estimate.h"
#include "estimate/training.h"
#include "estimate/video.h"
#include "hardware/device.h"
#include "model/model_file.h"
#include "request/request.h"
#include "request/sources.h"

namespace llmperf::request {

struct Generation {
  estimate::Choices choices;
  estimate::Scenario scenario;
  std::unique_ptr<estimate::Estimator> estimator;
  std::vector<graph::SequenceGroup> step;        // of one step more; empty: none was asked for
  std::optional<estimate::EngineMemory> memory;  // by which an engine sizes its cache, where that was asked for
};
struct Video {
  estimate::VideoChoices choices;
};
struct Training {
  estimate::Choices choices;
  graph::TrainingOptions options;
  estimate::TrainingScenario scenario;
  std::unique_ptr<estimate::TrainingEstimator> estimator;
};

// A device of a list, and its profile.
struct Listed {
  hardware::Device device;
  std::optional<hardware::RuntimeProfile> profile;
};

// Stays where it is: choices and estimators point into it.
struct Resolved {
  Request asked;
  model::ModelFile file;  // of text and training
  model::VideoDit video;
  hardware::Device device;
  hardware::Device host;
  std::int64_t devices = 1;                              // that `hw` lists
  std::vector<std::unique_ptr<Listed>> cards = {};       // all of these, where they are unlike
  std::optional<estimate::HourPrice> price;              // of one of them, or their mean
  graph::Popularity routing;                             // of experts
  std::shared_ptr<const graph::MeasuredLoads> loads;     // … where a file has them
  std::optional<hardware::RuntimeProfile> profile;       // none: the speed of light
  std::optional<hardware::RuntimeProfile> host_profile;  // of GGUF formats
  std::unique_ptr<Resolved> decode;                      // what decodes on devices of its own, where these are others
  std::vector<std::string> unused;                       // of fields that change nothing, where they are taken
  Workload asked_for = Workload::text;
  std::variant<Generation, Video, Training> work;  // of traffic that is served a Generation without its scenario
  Resolved() = default;
  Resolved(const Resolved&) = delete;
  Resolved& operator=(const Resolved&) = delete;

  Workload workload() const { return asked_for; }
  const model::Decoder& model() const { return file.decoder; }
  const hardware::RuntimeProfile* runtime() const { return profile ? &*profile : nullptr; }
  estimate::Estimator& estimator() const { return *std::get<Generation>(work).estimator; }  // of text and traffic
  const estimate::Setup& setup() const { return estimator().setup(); }
};

// What becomes of a field that changes nothing beside the others: in a sweep, where it may at another point, it is
// taken, and told.
enum class Unused : bool { refused, taken };

// Throws Error(bad_input).
std::unique_ptr<Resolved> resolve(const Request& request, Sources& sources, Unused unused = Unused::refused);
// Of text; the scenario (batch, prompt, gen) is left to the caller, who may have many of them.
std::unique_ptr<Resolved> resolve_setup(const Request& request, Sources& sources, Unused unused = Unused::refused);
// Of traffic that is served, on the steps of the engine that the request names; what decodes apart may be resolved once
// more, by a plan or on devices of its own.
std::unique_ptr<Resolved> resolve_serving(const Request& request, Sources& sources);
// Throws Error(bad_input) where a workload has no use for a field that was asked for.
void check_fields(const Request& request, Workload workload);

// What does not fit is an answer: how much is missing, and which change of the request would make it fit.
Error infeasible(const Resolved& resolved, const estimate::Estimate& estimate);
Error infeasible(const Resolved& resolved, const estimate::VideoEstimate& estimate);
// `resolved` is of training; its estimator tries the changes.
Error infeasible(const Resolved& resolved, const estimate::TrainingEstimate& estimate);

// ---- The passes that other commands share.

// What an hour of the device costs. One that a file of prices leaves out is a mistake, but not in a sweep.
std::optional<estimate::HourPrice> price_of(const Request& request, const hardware::Device& device, Sources& sources,
                                            Unused unused);
// The profile that the request names for a device, asked for as `hw`, and its weights; nothing for "none".
std::optional<hardware::RuntimeProfile> choose_profile(const Request& request, const std::string& hw,
                                                       const hardware::Device& device, bool gguf,
                                                       hardware::Workload workload, Sources& sources);
// Of a training step: the one asked for, else that of the stack that such runs have (training_options.h); nothing for
// "none", CPUs and arrays of tiles.
std::optional<hardware::RuntimeProfile> choose_training_profile(const Request& request, const std::string& hw,
                                                                const hardware::Device& device, Sources& sources);
// That of the CPU beside the device, which computes what a GGUF model leaves there.
hardware::RuntimeProfile choose_host_profile(const Request& request, const hardware::Device& host, Sources& sources);
mapper::TileModel choose_tiles(const Request& request, const hardware::Device& device,
                               const hardware::RuntimeProfile* profile);
// Formats, options, execution, reserve and nodes: all that asks neither for the model nor for a plan.
estimate::Choices choose_schemes(const Request& request, const hardware::Device& device,
                                 const hardware::RuntimeProfile* profile = nullptr);
estimate::Choices choose(const Resolved& resolved);  // all but what drafts
estimate::Serving serving_of(const Request& request);
// Those of the same request with another `options`, as `compare` holds them against each other.
hardware::RuntimeOptions other_options(const Resolved& resolved, const std::string& options);

// "2xrtx3090+rtx3060": one name for each device. A file's name may look like a list. Throws Error(bad_input) for very
// many.
std::vector<std::string> listed_devices(const std::string& text);
// "32x1@2048,1x512@0": COUNTxNEW@CONTEXT. Throws Error(bad_input) with the place of every group that is not like that.
std::vector<graph::SequenceGroup> step_value(std::string_view text);

// Throws Error(bad_input) for images that the model cannot see.
estimate::Scenario scenario_of(const Request& request, const model::Decoder& model);
// Throws Error(bad_input) for what the plan of the choices does not divide.
void check_scenario(const estimate::Scenario& scenario, const estimate::Choices& choices);
bool sharded_embedding(const Request& request);
// Throws Error(bad_input) when a host was named and the setup has no use for one.
void check_host(const std::string& name, const estimate::Setup& setup);
// "0-13,14-27", each with how its blocks are divided: "0-9@2x2/2d". Of a sub-mesh of X x Y devices: ulysses (the
// default), tensor, or 2d (rows x columns). What a stage does not say is as in `plan`. Throws Error(bad_input).
std::vector<estimate::VideoStage> stages_value(const std::string& text, const graph::Plan& plan);

// Fields by which an engine's memory is asked for: what it is told of it.
inline constexpr std::array kPoolFields = {"kv-utilisation", "max-model-len", "max-seqs", "max-batched-tokens",
                                           "block-size"};
// What the engine of a request for text is told of memory, with its defaults.
estimate::EngineMemory engine_memory(const Resolved& resolved, const estimate::Setup& setup);

}  // namespace llmperf::request
