// One model in every GGUF file type on one device: what each takes and how fast it would be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimate/band.h"
#include "estimate/estimate.h"
#include "model/gguf/tensors.h"

namespace llmperf::estimate {

inline constexpr std::int64_t kStudyPrompt = 512;  // tokens of the prefill that is timed

// Weights to compare: a file type, or a file as it is.
struct GgufCandidate {
  std::string name;  // "q4_k_m"
  bool imatrix = false;
  model::WeightLayout layout;
  Bytes file;  // tensors and metadata
};
// The size of the metadata is estimated. Throws what quantised_tensors throws.
GgufCandidate gguf_candidate(const model::Decoder& model, const model::GgufFileType& type, model::GgufEra era);

// Tokens per second of one kind of step: at the speed of light, and under the profile where there is one.
struct StudyRate {
  struct Predicted {
    double rate = 0;
    Band band;
    double low() const { return rate / (1 + band.p90); }  // nine of ten are between
    double high() const { return rate * (1 + band.p90); }
  };
  double bound = 0;
  std::optional<Predicted> predicted;
  double best_known() const { return predicted ? predicted->rate : bound; }
};

struct GgufStudyRow {
  std::string name;
  bool imatrix = false;
  Bytes tensors;  // as stored
  Bytes file;     // with metadata
  double bits_per_weight = 0;
  cost::Memory memory;  // of a device with everything offloaded and one sequence of `context` tokens
  bool fits = false;    // … in its memory
  // Where it does not fit, the faster in decode of two splits with the host: the most layers (the head counted first)
  // that the device holds, or all of them but the experts of the fewest layers (`cpu_moe`). Nothing: no split fits.
  std::optional<std::int64_t> offloaded;
  std::optional<std::int64_t> cpu_moe;
  // Of that split.
  StudyRate prefill;  // of a prompt of min(kStudyPrompt, context) tokens
  StudyRate decode;   // of the last token of the context
};

// The most layers (the head counted first) that the device holds in this scenario while the host holds the rest;
// nothing when no split fits, or there is none to make. `choices` as for make_setup; its gpu_layers is ignored.
std::optional<std::int64_t> most_layers(const model::Decoder& model, const hardware::Device& device, Choices choices,
                                        const Scenario& scenario);

// The fewest layers, from the first, whose routed experts have to stay on the host for the rest to fit on the device
// while the host holds them; nothing when there are no experts, or that is not enough. `choices` as for make_setup;
// where it says which layers and experts stay there is ignored.
std::optional<std::int64_t> fewest_cpu_moe(const model::Decoder& model, const hardware::Device& device, Choices choices,
                                           const Scenario& scenario);

// Rows in the order of `candidates`. `choices` gives the profile, the cache types, the micro-batch, the devices that
// the layers are dealt to, and the host (null, or several devices: no split with it is tried); its weights, gpu_layers
// and cpu_moe are ignored. Throws what make_setup throws.
std::vector<GgufStudyRow> study_gguf(const model::Decoder& model, const hardware::Device& device,
                                     const std::vector<GgufCandidate>& candidates, std::int64_t context,
                                     Choices choices);

}  // namespace llmperf::estimate
