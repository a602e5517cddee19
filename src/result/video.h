// What `llmperf estimate` answers for a model that generates video.
#pragma once

#include <vector>

#include "estimate/video.h"
#include "result/parts.h"

namespace llmperf::result {

// What a device of a pipeline stage holds.
struct VideoStageHeld {
  const estimate::VideoStage* stage;
  Bytes weights;
  Bytes kept;
};

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
