// One model in every GGUF file type on one device: what each takes and how fast it would be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimate/estimate.h"
#include "model/gguf_mix.h"

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

struct GgufStudyRow {
  std::string name;
  bool imatrix = false;
  Bytes tensors;  // as stored
  Bytes file;     // with metadata
  double bits_per_weight = 0;
  cost::Memory memory;  // of the device with everything offloaded and one sequence of `context` tokens
  bool fits = false;    // … in the device's memory
  // The most layers (the head counted first) whose weights, cache and buffers fit on the device while the rest fits on
  // the host; nothing: no split fits. All of them when `fits`.
  std::optional<std::int64_t> offloaded;
  // With that many offloaded.
  double prefill_tokens_per_second = 0;  // of a prompt of min(kStudyPrompt, context) tokens
  double decode_tokens_per_second = 0;   // of the last token of the context
};

// The most layers (the head counted first) that the device holds in this scenario while the host holds the rest;
// nothing when no split fits, or there is none to make. `choices` as for make_setup; its gpu_layers is ignored.
std::optional<std::int64_t> most_layers(const model::Decoder& model, const hardware::Device& device,
                                        const Choices& choices, const Scenario& scenario);

// The fewest layers, from the first, whose routed experts have to stay on the host for the rest to fit on the device
// while the host holds them; nothing when there are no experts, or that is not enough. `choices` as for make_setup;
// where it says which layers and experts stay there is ignored.
std::optional<std::int64_t> fewest_cpu_moe(const model::Decoder& model, const hardware::Device& device, Choices choices,
                                           const Scenario& scenario);

// Rows in the order of `candidates`. `choices` gives the cache types, the micro-batch and the host (null: no split is
// tried); its weights and gpu_layers are ignored. Throws what make_setup throws.
std::vector<GgufStudyRow> study_gguf(const model::Decoder& model, const hardware::Device& device,
                                     const std::vector<GgufCandidate>& candidates, std::int64_t context,
                                     Choices choices);

}  // namespace llmperf::estimate
