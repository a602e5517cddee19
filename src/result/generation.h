// What `llmperf estimate` answers for text: the estimate with all that is said about it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "estimate/context_curve.h"
#include "estimate/engine_memory.h"
#include "estimate/speculative.h"
#include "estimate/training.h"
#include "estimate/video.h"
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

Type fields_of(Fields<StageHeld> f);

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
  std::optional<estimate::EngineLog> log;          // of its start, beside what is predicted

  std::vector<std::string> beyond() const;
  Bands bands() const;
};

// Of one estimate, which must outlive it as the estimator's setup must. `curve` is for the JSON alone, and empty where
// nobody reads that.
Generation generation(const estimate::Estimator& estimator, const estimate::Estimate& estimate,
                      std::vector<estimate::ContextPoint> curve = {});

Type fields_of(Fields<estimate::SpeculativeRound> f);
Type fields_of(Fields<estimate::KvCapacity> f);
Type fields_of(Fields<estimate::EngineLog> f);
Type fields_of(const Fields<Generation>&);

// ---- What `llmperf estimate --training` answers.

// Setup and estimate must outlive it.
struct Training : Answer {
  static constexpr Also kAlso = Also::hidden;
  Training(const estimate::Setup& s, const estimate::TrainingEstimate& e)
      : Answer(s, result::label(s)), setup(&s), estimate(&e) {}
  std::vector<std::string> beyond() const;
  Bands bands() const;

  estimate::Spent spent() const;  // a step
  std::optional<double> cost_per_million_tokens() const;

  const estimate::Setup* setup;
  const estimate::TrainingEstimate* estimate;
};

Type fields_of(const Fields<Training>&);

// ---- What `llmperf estimate` answers for a model that generates video.

// What a device of a pipeline stage holds.
struct VideoStageHeld {
  const estimate::VideoStage* stage;
  Bytes weights;
  Bytes kept;
};

Type fields_of(Fields<VideoStageHeld> f);

// Setup and estimate must outlive it.
struct Video : Answer {
  static constexpr Also kAlso = Also::purpose;
  Video(const estimate::VideoSetup& s, const estimate::VideoEstimate& e)
      : Answer(s, result::label(s)), setup(&s), estimate(&e) {}
  std::vector<std::string> beyond() const;
  Bands bands() const;

  const estimate::VideoSetup* setup;
  const estimate::VideoEstimate* estimate;
  estimate::Spent spent() const;
  std::vector<VideoStageHeld> stages;  // of a document, and empty in rows
};
Video video(const estimate::VideoEstimator& estimator, const estimate::VideoEstimate& estimate);

Type fields_of(const Fields<Video>&);

}  // namespace llmperf::result
