// What the outputs say about the runtime profile behind their times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimate/band.h"
#include "estimate/estimate.h"
#include "estimate/training.h"
#include "estimate/video.h"

namespace llmperf::program {
struct ProgramSetup;
}

namespace llmperf::result {

// The label every speed-of-light result carries.
inline constexpr const char* kUncalibrated = "upper bound, uncalibrated";

// "predicted: vllm on rtx4090", "predicted: vllm (defaults of …), not fitted to this device", or what stands for
// times without a profile.
std::string label(const estimate::Platform& platform);
// "; FILE, in place of the built-in file" of each file on LLMPERF_PATH that the device or the profile is from.
std::string replaced_text(const estimate::Platform& platform);
// The label, and with --assume what the model is read as.
std::string label(const estimate::Setup& setup);
// The options of --options, in the profile's words where there is one.
std::string options_text(const estimate::Setup& setup);

// The weights' scheme, and in brackets the kernel that multiplies with them where the profile names it.
std::string weights_text(const estimate::Setup& setup);

// The type of the KV cache, and who chose it where that was the checkpoint.
std::string kv_text(const estimate::Setup& setup);

using estimate::Band;
// Of a phase of an estimate; nothing for the speed of light, and for phases that it does not have (it does not fit).
std::optional<Band> band(const estimate::Setup& setup, const estimate::Estimate& estimate, std::string_view phase);
// Of "video" and "training", whose parts were not measured: by what was left out of the fit, or a class default's
// assumption. Nothing where the profile says nothing of them, nor beyond what it was compared with.
std::optional<Band> band(const estimate::Platform& platform, std::string_view workload, bool extrapolated);
// "5.7 %", as bands are printed everywhere.
std::string band_share(double share);
// "12.3 ms ±5.7 %"; the time alone without a band.
std::string with_band(Seconds time, const std::optional<Band>& band);
// Why there is none without a profile.
std::string no_band_text(const estimate::Platform& platform);
// One line on where the bands come from.
std::string band_text(const estimate::Setup& setup, const estimate::Estimate& estimate);
// "; cross-validated on 386 rows", "; an assumption: …". `fewest`: rows of the band that has the fewest.
std::string rows_text(const hardware::RuntimeProfile& profile, std::int64_t rows, std::int64_t fewest);
// Of the time to the first token: of the pass over images and the prefill the wider one.
std::optional<Band> ttft_band(const estimate::Setup& setup, const estimate::Estimate& e);
// In which ways an estimate, or a phase of it ("prefill", "decode"), lies outside of what the profile was fitted on;
// empty inside.
std::vector<std::string> extrapolations(const estimate::Setup& setup, const estimate::Scenario& scenario);
std::vector<std::string> extrapolations(const estimate::Setup& setup, const estimate::Scenario& scenario,
                                        std::string_view phase);

// ---- Of generated video and of training

std::string options_text(const estimate::VideoSetup& setup);
std::vector<std::string> extrapolations(const estimate::VideoSetup& setup);
std::optional<Band> band(const estimate::VideoSetup& setup);
// The profile alone that the numbers are of, without whose it is; what label() says where there is none.
std::string profile_label(const estimate::Platform& platform);
std::string profile_label(const estimate::Setup& setup);
// In which ways the step lies outside of the published runs that the profile was compared with; empty inside, and
// without such a profile.
std::vector<std::string> training_extrapolations(const estimate::Setup& setup,
                                                 const estimate::TrainingEstimate& estimate);
std::optional<Band> training_band(const estimate::Setup& setup, const estimate::TrainingEstimate& estimate);

// ---- What the numbers of an estimate rest on: "1008 GB/s memory bandwidth", "datasheet".

struct Figure {
  std::string key;  // JSON: "memory_bandwidth_bytes_per_s"
  std::string label;
  std::string text;  // value for people
  double value = 0;  // SI
  hardware::Provenance provenance = hardware::Provenance::assumed;
};
std::vector<Figure> figures_used(const estimate::Setup& setup);
std::vector<Figure> figures_used(const estimate::VideoSetup& setup);
// `products`: the type that most of its products run in.
std::vector<Figure> figures_used(const program::ProgramSetup& setup, Dtype products);

}  // namespace llmperf::result
