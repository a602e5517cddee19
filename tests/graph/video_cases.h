// Video generations that tests of several folders build.
#pragma once

#include <string>

#include "graph/stdit_graph.h"

namespace llmperf::graph {

class VideoCase {
 public:
  explicit VideoCase(const std::string& model = "stdit3-xl2", const std::string& resolution = "480p",
                     std::int64_t frames = 51)
      : model_(model::load_video_dit(model)) {
    execution.model = &model_;
    execution.shape = model::video_shape(model_, model::parse_video_size(resolution, ""), frames);
    execution.text_tokens = 300;
  }
  VideoCase(const VideoCase&) = delete;  // the execution points into it
  VideoCase& operator=(const VideoCase&) = delete;

  VideoCase& eager() {
    execution.runtime = hardware::parse_runtime_options("flash_attention", hardware::Workload::video);
    execution.runtime.chains = hardware::Chains::framework;
    return *this;
  }
  Graph step() const {
    Graph graph;
    build_denoising_step(execution, graph);
    return graph;
  }
  Graph text() const {
    Graph graph;
    build_text_encoding(execution, graph);
    return graph;
  }
  Graph decoding() const {
    Graph graph;
    build_video_decoding(execution, graph);
    return graph;
  }
  const model::VideoDit& model() const { return model_; }

  VideoExecution execution;

 private:
  model::VideoDit model_;
};

}  // namespace llmperf::graph
