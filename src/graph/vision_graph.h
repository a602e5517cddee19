// From a vision tower and images to the ops of its pass over them, before a prompt is prefilled.
#pragma once

#include <cstdint>

#include "graph/decoder_graph.h"
#include "graph/op.h"
#include "model/vision.h"

namespace llmperf::graph {

// `count` images of one size, which the tower of the execution's model sees together. The devices of the tensor axis
// each hold the whole tower and take their share of the images; the others' rows are gathered behind it.
struct SeenImages {
  std::int64_t count = 0;
  model::SeenImage each;
};
// Of them, those of one device.
std::int64_t images_of_device(const Execution& execution, std::int64_t images);

// Replaces the contents of `graph` with the ops of one device, in execution order.
void build_vision(const Execution& execution, const SeenImages& images, Graph& graph);

}  // namespace llmperf::graph
