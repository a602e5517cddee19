// What `llmperf limits` answers: the closed form of a single user, or a model in GGUF file types.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost/limits.h"
#include "estimate/gguf_study.h"
#include "estimate/speculative.h"
#include "result/field.h"

namespace llmperf::result {

inline constexpr const char* kClosedForm = "closed form, uncalibrated";

// One model with the limits of each precision asked for (all of one device and unit convention).
struct ModelLimits {
  std::string model;
  std::vector<cost::Limits> limits;  // at least one
};

// Speculative decoding of the (only) model with a draft model, from modelled step times.
struct SpeculativeStudy {
  std::string draft;
  std::string target_weights;
  std::string draft_weights;
  std::vector<std::string> notes;
  estimate::Speculation speculation;
};
Type fields_of(Fields<SpeculativeStudy> f);

struct LimitsRow {
  const std::string* model;
  const cost::Limits* limits;
  bool article() const { return limits->rates.units == cost::UnitConvention::article; }
};
Type fields_of(Fields<LimitsRow> f);

struct Limits {
  const hardware::Device* device;
  std::vector<ModelLimits> models;  // at least one
  std::optional<SpeculativeStudy> speculation = std::nullopt;
  const cost::LimitRates& rates() const { return models.front().limits.front().rates; }
  std::vector<LimitsRow> rows() const;
};
Type fields_of(Fields<Limits> f);

struct GgufStudy {
  const model::Decoder* model;
  std::vector<estimate::GgufStudyRow> rows;
};
struct GgufLimits;
struct GgufRow {
  const GgufLimits* all;
  const model::Decoder* model;
  const estimate::GgufStudyRow* row;
};
Type fields_of(Fields<GgufRow> f);
struct GgufLimits {
  const hardware::Device* device;
  const hardware::Device* host = nullptr;
  std::int64_t devices = 1;
  std::string label;    // what the times are
  std::string runtime;  // of the profile; empty: the speed of light
  std::int64_t context = 0;
  model::CacheScheme kv;
  model::GgufEra era;
  std::vector<std::string> notes;
  std::vector<GgufStudy> studies;
  Bytes capacity() const { return *device->dram().capacity; }
  std::int64_t prefill() const { return std::min(estimate::kStudyPrompt, context); }
  std::vector<GgufRow> rows() const;
};
Type fields_of(Fields<GgufLimits> f);

}  // namespace llmperf::result
