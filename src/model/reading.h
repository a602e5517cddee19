// Internal to src/model: the readers of model files, and the limits and cross-checks that they share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "descriptor/reader.h"
#include "model/decoder.h"
#include "model/vision.h"

namespace llmperf::model {

// A .json file, or a mapping with a model_type or architectures key.
bool is_hf_config(const descriptor::Document& document);
// `beside`: the hf_quant_config.json of the same folder, or null. Both throw Error(bad_input) with all problems, those
// already in `problems` included.
Decoder parse_hf_config(const descriptor::Document& document, descriptor::Problems& problems,
                        const descriptor::Document* beside, const std::string& assume);
Decoder parse_model_descriptor(const descriptor::Document& document, descriptor::Problems& problems);

// Advice on unknown keys of a checkpoint's files.
inline constexpr std::string_view kEveryKeyCounts =
    "A key that is not understood may change the cost, so none is skipped.";

// Far beyond any model, and small enough that no product of two of them leaves 64 bits; check_size bounds the rest.
inline constexpr descriptor::IntRange kHiddenRange = {1, 1'000'000};
inline constexpr descriptor::IntRange kLayerRange = {1, 2'000};
inline constexpr descriptor::IntRange kNextTokenRange = {0, 16};
inline constexpr descriptor::IntRange kVocabRange = {1, 100'000'000};
inline constexpr descriptor::IntRange kHeadRange = {1, 100'000};
inline constexpr descriptor::IntRange kHeadDimRange = {1, 100'000};
inline constexpr descriptor::IntRange kWidthRange = {1, 10'000'000};
inline constexpr descriptor::IntRange kExpertRange = {1, 100'000};
inline constexpr descriptor::IntRange kGroupRange = {1, 512};  // of experts: as many as can be chosen from in a double
inline constexpr descriptor::IntRange kPositionRange = {1, 1'000'000'000};

// Whether the key holds an integer within the range, so that a check between two keys makes sense; a value that does
// not was reported when it was read.
bool is_sound(descriptor::Reader& reader, std::string_view key, descriptor::IntRange range);

// Reports, at `key`, that `value` is not a multiple of `divisor_key`'s value. False if so; true also when either is
// unsound.
bool check_divisible(descriptor::Reader& reader, std::string_view key, std::int64_t value, std::string_view divisor_key,
                     std::int64_t divisor, std::string_view remedy = {});

// Reports experts per token beyond the number of experts, at `key`.
void check_experts(descriptor::Reader& reader, std::string_view key, const Experts& experts);
// What is wrong with groups of experts (Experts::groups) that do not divide them, or of which a token picks too few,
// else empty.
std::string groups_problem(const Experts& experts);

// What is wrong with a model beyond 10^15 parameters, else empty: nothing that size exists, and counts below it are
// exact everywhere.
std::string size_problem(const Decoder& model);
void check_size(const Decoder& model, descriptor::Reader& reader);

// Bounds of a vision tower, within which no count leaves 64 bits.
inline constexpr descriptor::IntRange kTowerHidden = {1, 65'536};
inline constexpr descriptor::IntRange kTowerHeads = {1, 1'024};
inline constexpr descriptor::IntRange kTowerWidth = {1, 1'000'000};
inline constexpr descriptor::IntRange kPatchRange = {1, 256};
inline constexpr descriptor::IntRange kMergeRange = {1, 16};
inline constexpr descriptor::IntRange kImageSideRange = {1, 100'000};

// What a tower's image rule and projector must be to each other and to the language model, whatever file says them.
void check_vision(descriptor::Reader& reader, const VisionTower& tower, std::int64_t text_hidden);
// The tower that a Hugging Face config of text and images describes beside its language model, whose width is
// `text_hidden`; nothing where there is none, or one of a family that is not known. Problems are reported at their
// positions.
std::optional<VisionTower> read_hf_vision(const descriptor::Node& root, std::int64_t text_hidden,
                                          descriptor::Problems& problems);

}  // namespace llmperf::model
