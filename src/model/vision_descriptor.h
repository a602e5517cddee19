// A vision tower as a model descriptor has it, under the key `vision`.
#pragma once

#include <string>

#include "descriptor/reader.h"
#include "model/vision.h"

namespace llmperf::model {

// Bounds of a tower, within which no count leaves 64 bits.
inline constexpr descriptor::IntRange kTowerHidden = {1, 65'536};
inline constexpr descriptor::IntRange kTowerHeads = {1, 1'024};
inline constexpr descriptor::IntRange kTowerWidth = {1, 1'000'000};
inline constexpr descriptor::IntRange kPatchRange = {1, 256};
inline constexpr descriptor::IntRange kMergeRange = {1, 16};
inline constexpr descriptor::IntRange kImageSideRange = {1, 100'000};

// What a tower's image rule and projector must be to each other and to the language model, whatever file says them.
void check_vision(descriptor::Reader& reader, const VisionTower& tower, std::int64_t text_hidden);

VisionTower read_vision(descriptor::Reader& reader, std::int64_t text_hidden);
// In braces, for the same reader.
std::string written(const VisionTower& tower);

}  // namespace llmperf::model
