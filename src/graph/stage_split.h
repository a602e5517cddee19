// How layers are dealt to the stages of a pipeline: in contiguous runs, of which stage s has run s and, interleaved,
// every so many after it (arXiv 2104.04473 section 2.2).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/decoder.h"

namespace llmperf::graph {

// Run r is layers first[r] .. first[r + 1] - 1, on stage r % stages.
struct StageSplit {
  std::int64_t stages = 1;
  std::vector<std::int64_t> first = {};  // one more than there are runs, the last of them the number of layers

  std::int64_t runs() const { return static_cast<std::int64_t>(first.size()) - 1; }
  std::int64_t layers_of_run(std::int64_t run) const {
    const auto i = static_cast<std::size_t>(run);
    return first[i + 1] - first[i];
  }
  std::int64_t layers(std::int64_t stage) const;
  std::vector<std::int64_t> layers_of_kinds(const model::Decoder& model, std::int64_t stage) const;
  bool equal() const;  // all runs have as many layers
};

// "32+31+32+31 layers", of each stage; interleaved "62+64 layers in 4 runs each".
std::string to_text(const StageSplit& split);

// Whether there are layers enough: one for every stage, and of several runs one for each but the first and the last,
// which the embedding and the head fill.
bool enough_layers(std::int64_t layers, std::int64_t stages, std::int64_t chunks = 1);

// `chunks` runs on each of `stages` stages, all of one length, which must divide `layers`.
StageSplit equal_split(std::int64_t layers, std::int64_t stages, std::int64_t chunks = 1);

// What one pass costs, in any unit: each layer, and what is before the first and after the last of them.
struct PassCosts {
  std::vector<double> layers;
  double first = 0;
  double last = 0;
};

// Makes the slowest stage as fast as contiguous runs allow. Of several passes every one counts in shares of its own
// total, and a stage by the pass in which its share is largest: no pass then has a stage further above an even share
// than it must. Of the splits that do, boundaries are the nearest to even shares. Interleaved, that holds where layers
// are alike; of layers that are not, the better of two is taken: runs as even as they can be, and stages of as many
// layers as they would have if all were alike. There must be enough_layers() and the passes cost something.
StageSplit balanced_split(std::span<const PassCosts> passes, std::int64_t stages, std::int64_t chunks = 1);

// llama.cpp's split by layers: item i of the layers and the output, which counts as one more, goes to the first device
// whose shares up to its own exceed i / (layers + 1) of all. Stages may get no layer.
StageSplit proportional_split(std::int64_t layers, std::span<const double> shares);

}  // namespace llmperf::graph
