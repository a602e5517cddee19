// The flags that describe a video to generate, beside those of any request.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace llmperf::cli {

struct VideoFlags {
  std::string resolution = "720p";
  std::string aspect;  // empty: 9:16 of a named resolution
  std::string seconds;
  std::string frames;  // empty, and seconds too: those of kDefaultSeconds
  std::string steps;   // empty: the model's
  std::string guidance = "on";
  std::string text_tokens;  // empty: as many as the model takes
  std::string text_weights;
  std::string stages;
  std::string patches = "1";
  std::string die_link;
};
inline constexpr double kDefaultSeconds = 4;
inline constexpr const char* kVideoFlags[] = {"--resolution", "--aspect",  "--seconds",     "--frames",
                                              "--steps",      "--cfg",     "--text-tokens", "--text-weights",
                                              "--stages",     "--patches", "--die-link"};
void add_video_flags(CLI::App& command, VideoFlags& flags);

}  // namespace llmperf::cli
