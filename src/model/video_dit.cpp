#include "model/video_dit.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "model/video_dit_yaml.h"

namespace llmperf::model {
namespace {

constexpr std::array<std::string_view, 3> kArchitectureNames = {"stdit", "stdit2", "stdit3"};

}  // namespace

std::string_view name(VideoArchitecture architecture) {
  return kArchitectureNames[static_cast<std::size_t>(architecture)];
}

std::int64_t TemporalAutoencoder::scale() const {
  return std::int64_t{1} << std::count_if(halves.begin(), halves.end(), [](std::int64_t half) { return half != 0; });
}

bool is_video_dit(const descriptor::Document& document) {
  const auto& entries = document.root.entries;
  return std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
    return entry.key == "kind" && entry.value.kind == descriptor::Node::Kind::scalar &&
           entry.value.scalar == kVideoDitKind;
  });
}

bool is_video_dit(const std::string& name_or_path) {
  // Files of other formats are none; those that exist and do not parse are reported by whoever loads them.
  if (descriptor::is_path(name_or_path) && !name_or_path.ends_with(".yaml") && !name_or_path.ends_with(".yml")) {
    return false;
  }
  return is_video_dit(descriptor::load(descriptor::Kind::model, name_or_path));
}

VideoDit parse_video_dit(const descriptor::Document& document) {
  descriptor::Problems problems(document.file);
  return parse_video_descriptor(document, kArchitectureNames, problems);
}

VideoDit load_video_dit(const std::string& name_or_path) {
  const descriptor::Document document = descriptor::load(descriptor::Kind::model, name_or_path);
  if (!is_video_dit(document)) {
    throw Error::bad_input(quote(name_or_path) + " is not a video diffusion transformer",
                           "stdit3-xl2, or a model file with 'kind: " + std::string(kVideoDitKind) + "'");
  }
  return parse_video_dit(document);
}

void reject_video_dit(const std::string& name) {
  throw Error::bad_input(
      quote(name) + " generates video: this needs a decoder-only language model",
      "'llmperf estimate', 'compare' and 'show model' know video models; 'llmperf list models' names "
      "the language models");
}

}  // namespace llmperf::model
