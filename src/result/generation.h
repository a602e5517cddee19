// What `llmperf estimate` answers for text: the estimate with all that is said about it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "estimate/context_curve.h"
#include "estimate/kv_capacity.h"
#include "estimate/speculative.h"
#include "result/parts.h"

namespace llmperf::result {

// What a device of a pipeline stage holds.
struct StageHeld {
  std::int64_t first_layer = 0;
  std::int64_t layers = 0;
  cost::Memory memory;
  std::string device;
  Bytes capacity;  // of that device
};

struct Generation : Answer {
  static constexpr Also kAlso = Also::tokens;
  // What the estimates of one setup have in common; the setup must outlive it.
  explicit Generation(const estimate::Setup& setup);

  const estimate::Setup* setup;
  std::string kv;
  std::string options;
  std::string plan;
  double parameters = 0;
  double kv_bytes_per_token = 0;  // that a token adds to the cache of one sequence, on all devices together

  const estimate::Estimate* estimate = nullptr;
  // Of a document, and empty in rows.
  FlopsPerByte ridge;  // of the layers' products
  std::vector<StageHeld> stages;
  std::vector<estimate::ContextPoint> curve;
  std::vector<estimate::SpeculativeRound> rounds;  // of what drafts, by length
  std::optional<estimate::KvCapacity> room;        // of an engine's cache, where that was asked for

  std::vector<std::string> beyond() const;
  Bands bands() const;
};

// Of one estimate, which must outlive it as the estimator's setup must. `curve` is for the JSON alone, and empty where
// nobody reads that.
Generation generation(const estimate::Estimator& estimator, const estimate::Estimate& estimate,
                      std::vector<estimate::ContextPoint> curve = {});

Type fields_of(Fields<estimate::SpeculativeRound> f);
Type fields_of(Fields<estimate::KvCapacity> f);
Type fields_of(const Fields<Generation>&);

}  // namespace llmperf::result
