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
struct Video {
  Video(const estimate::VideoSetup& s, const estimate::VideoEstimate& e)
      : setup(&s), estimate(&e), cluster(s.charged_cluster()) {}

  const estimate::VideoSetup* setup;
  const estimate::VideoEstimate* estimate;
  cost::Cluster cluster;               // as exchanges are charged
  std::vector<VideoStageHeld> stages;  // of a document, and empty in rows
};
Video video(const estimate::VideoEstimator& estimator, const estimate::VideoEstimate& estimate);

template <>
const Type& type_of<Video>();

}  // namespace llmperf::result
