// Memory of a video generation on one device of a plan. All models stay loaded; activations are those of the phase that
// needs most.
#pragma once

#include "base/units.h"
#include "graph/stdit_graph.h"

namespace llmperf::cost {

struct VideoMemory {
  Bytes transformer;
  Bytes text_encoder;
  Bytes autoencoder;
  Bytes text_activation;  // largest sum of tensors alive at once, by phase
  Bytes step_activation;
  Bytes decode_activation;
  Bytes kept;  // keys and values of all pieces of the latent, from step to step; nothing where it is whole
  Bytes weights() const { return transformer + text_encoder + autoencoder; }
  Bytes activation() const;  // of the largest phase
};

// What a device holds: its share of the blocks' matrices under tensor and pipeline axes, the rest whole.
VideoMemory video_memory(const graph::VideoExecution& execution);
// … of a pipeline stage of `units` units of the depth.
VideoMemory video_memory(const graph::VideoExecution& execution, double units);

}  // namespace llmperf::cost
