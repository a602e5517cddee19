// Video diffusion transformers and the reader of their descriptors (models/stdit*.yaml).
#include "model/video_dit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "descriptor/catalog.h"
#include "model/reading.h"

namespace llmperf::model {
namespace {

using descriptor::IntRange;
using descriptor::Reader;

constexpr std::array<std::string_view, 3> kArchitectureNames = {"stdit", "stdit2", "stdit3"};
constexpr std::string_view kVideoDitKind = "video-dit";  // what the key `kind` says
constexpr IntRange kChannelRange = {1, 100'000};
constexpr IntRange kPatchRange = {1, 64};
constexpr IntRange kBlockRange = {1, 100};
constexpr IntRange kStepRange = {1, 100'000};
constexpr IntRange kFrameRange = {1, 10'000};
constexpr std::size_t kMaxLevels = 8;
constexpr double kMaxRate = 10'000;

// A mapping that must be there; `read` gets its reader.
template <class Read>
void require_mapping(Reader& reader, std::string_view key, Read&& read) {
  if (auto part = reader.optional_mapping(key)) {
    read(*part);
    part->finish();
  } else if (!reader.has(key)) {
    reader.problem(key, fmt::format("missing key '{}' in the model", key));
  }
}

std::vector<std::int64_t> read_levels(Reader& reader, std::string_view key, IntRange range) {
  std::vector<std::int64_t> levels = reader.optional_ints(key, range);
  if (levels.size() > kMaxLevels) {
    reader.problem(key, fmt::format("{} has {} levels, more than {}", key, levels.size(), kMaxLevels));
    levels.resize(kMaxLevels);
  }
  return levels;
}

TextEncoder read_text_encoder(Reader& reader) {
  TextEncoder t;
  t.name = reader.require_string("name");
  t.vocab = reader.require_int("vocab_size", kVocabRange);
  t.hidden = reader.require_int("hidden_size", kHiddenRange);
  t.heads = reader.require_int("heads", kHeadRange);
  t.head_dim = reader.require_int("head_dim", kHeadDimRange);
  t.intermediate = reader.require_int("intermediate", kWidthRange);
  t.layers = reader.require_int("num_layers", kLayerRange);
  t.position_buckets = reader.require_int("position_buckets", kChannelRange);
  constexpr std::array<std::string_view, 3> kTypes = {"fp32", "fp16", "bf16"};
  constexpr std::array<Dtype, 3> kStored = {Dtype::fp32, Dtype::fp16, Dtype::bf16};
  t.stored = kStored[reader.choice("stored", kTypes)];
  return t;
}

ImageAutoencoder read_image_decoder(Reader& reader) {
  ImageAutoencoder a;
  a.name = reader.require_string("name");
  a.latent_channels = reader.require_int("latent_channels", kChannelRange);
  a.channels = read_levels(reader, "channels", kChannelRange);
  if (a.channels.empty()) {
    reader.problem("channels", "channels must name the width of at least one level");
    a.channels.push_back(1);
  }
  a.blocks = reader.require_int("blocks", kBlockRange);
  a.micro_batch = reader.require_int("micro_batch", kFrameRange);
  return a;
}

TemporalAutoencoder read_temporal_decoder(Reader& reader) {
  TemporalAutoencoder a;
  a.name = reader.require_string("name");
  a.channels = read_levels(reader, "channels", kChannelRange);
  a.halves = read_levels(reader, "halves", {0, 1});
  if (a.channels.size() != a.halves.size() + 1) {
    reader.problem("halves", fmt::format("halves says what follows each level but the last: {} entries for {} levels",
                                         a.halves.size(), a.channels.size()));
  }
  a.blocks = reader.require_int("blocks", kBlockRange);
  a.chunk = reader.require_int("chunk", kFrameRange);
  return a;
}

VideoSampler read_sampler(Reader& reader) {
  VideoSampler s;
  s.name = reader.require_string("name");
  s.steps = reader.require_int("steps", kStepRange);
  s.guidance_scale = reader.require_double("guidance_scale", 0, 1000);
  return s;
}

void read_size_embedders(Reader& reader, VideoDit& m) {
  for (Reader& item : reader.optional_mappings("size_embedders")) {
    VideoDit::SizeEmbedder e;
    e.what = item.require_string("what");
    e.width = item.require_int("width", kHiddenRange);
    item.finish();
    m.size_embedders.push_back(std::move(e));
  }
}

void read_transformer(Reader& reader, VideoDit& m) {
  m.hidden = reader.require_int("hidden_size", kHiddenRange);
  m.heads = reader.require_int("heads", kHeadRange);
  check_divisible(reader, "hidden_size", m.hidden, "heads", m.heads);
  m.depth = reader.require_int("depth", kLayerRange);
  m.intermediate = reader.require_int("intermediate", kWidthRange);
  m.qk_norm = reader.bool_or("qk_norm", false);
  const std::vector<std::int64_t> patch = reader.optional_ints("patch", kPatchRange);
  if (patch.size() == m.patch.size()) {
    std::copy(patch.begin(), patch.end(), m.patch.begin());
  } else {
    reader.problem("patch", "patch must be three numbers: frames, rows and columns of the latent", "patch: [1, 2, 2]");
  }
  m.in_channels = reader.require_int("in_channels", kChannelRange);
  m.out_channels = reader.require_int("out_channels", kChannelRange);
  m.timestep_channels = reader.require_int("timestep_channels", kChannelRange);
  m.text_channels = reader.require_int("text_channels", kHiddenRange);
  m.text_tokens = reader.require_int("text_tokens", kFrameRange);
  read_size_embedders(reader, m);
}

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
  Reader reader(document.root, problems, "the model");
  VideoDit m;
  m.name = reader.require_string("name");
  constexpr std::array<std::string_view, 1> kKinds = {kVideoDitKind};
  reader.choice("kind", kKinds);
  m.architecture = static_cast<VideoArchitecture>(reader.choice("architecture", kArchitectureNames));
  m.hf_id = reader.string_or("hf_id", "");
  m.source = reader.string_or("source", "");
  m.notes = reader.string_or("notes", "");
  read_transformer(reader, m);
  m.frame_rate = reader.require_double("frame_rate", 0.1, kMaxRate);
  m.frames_per_second = reader.require_double("frames_per_second", 0.1, kMaxRate);
  require_mapping(reader, "sampler", [&](Reader& part) { m.sampler = read_sampler(part); });
  require_mapping(reader, "text_encoder", [&](Reader& part) { m.text_encoder = read_text_encoder(part); });
  require_mapping(reader, "image_decoder", [&](Reader& part) { m.image_decoder = read_image_decoder(part); });
  if (auto part = reader.optional_mapping("temporal_decoder")) {
    m.temporal_decoder = read_temporal_decoder(*part);
    part->finish();
  }
  if (is_sound(reader, "text_channels", kHiddenRange) && m.text_encoder.hidden > 0 &&
      m.text_encoder.hidden != m.text_channels) {
    reader.problem("text_channels", fmt::format("text_channels ({}) is not the hidden_size ({}) of the text encoder",
                                                m.text_channels, m.text_encoder.hidden));
  }
  if (m.image_decoder.latent_channels > 0 && m.in_channels != m.image_decoder.latent_channels) {
    reader.problem("in_channels", fmt::format("in_channels ({}) is not the latent_channels ({}) of the image decoder",
                                              m.in_channels, m.image_decoder.latent_channels));
  }
  reader.finish();
  problems.throw_if_any();
  return m;
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
