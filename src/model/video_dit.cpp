// Video diffusion transformers and the reader of their descriptors (models/stdit*.yaml).
#include "model/video_dit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "model/reading.h"
#include "model/video_parameters.h"
#include "model/video_shape.h"

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
  return std::int64_t{1} << std::ranges::count_if(halves, [](std::int64_t half) { return half != 0; });
}

bool is_video_dit(const descriptor::Document& document) {
  const descriptor::Node* kind = document.root.find("kind");
  return kind != nullptr && kind->kind == descriptor::Node::Kind::scalar && kind->scalar == kVideoDitKind;
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

// Shapes of Open-Sora v1.2.0 (opensora/models: stdit, layers/blocks.py, vae/vae_temporal.py), diffusers 0.27
// (AutoencoderKL) and transformers (T5EncoderModel), with h hidden, f the width of the MLP:
//
//   attention            qkv [h, 3h] + 3h, output [h, h] + h, query and key norms 2 (h / heads)
//   cross-attention      query [h, h] + h, keys and values [h, 2h] + 2h, output [h, h] + h
//   MLP                  [h, f] + f, [f, h] + h
//   modulation           a table of 6 vectors per block (3 more of a temporal attention with its own)
//   embedders            a number: [timestep_channels, w] + w, [w, w] + w; the text: [text_channels, h] + h, [h, h] + h
//
// A rotary embedding stores half a head of frequencies.

namespace {

std::int64_t linear(std::int64_t inputs, std::int64_t outputs) { return inputs * outputs + outputs; }
std::int64_t norm(std::int64_t channels) { return 2 * channels; }  // weight and bias

std::int64_t sum(const std::vector<VideoPart>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::int64_t{0},
                         [](std::int64_t total, const VideoPart& part) { return total + part.total(); });
}

// ---- The transformer

void add_block(const VideoDit& m, const std::string& which, int attentions, std::int64_t vectors,
               std::vector<VideoPart>& parts) {
  const std::int64_t h = m.hidden;
  const std::int64_t norms = m.qk_norm ? 2 * m.head_dim() : 0;
  const auto add = [&](const char* what, std::int64_t each) {
    parts.push_back({fmt::format("{}: {}", which, what), m.depth, each});
  };
  const std::int64_t attention = linear(h, 3 * h) + linear(h, h) + norms;
  if (attentions == 2) {
    add("spatial attention", attention);
    add("temporal attention", attention);
  } else {
    add("self-attention", attention);
  }
  add("cross-attention", linear(h, h) + linear(h, 2 * h) + linear(h, h));
  add("MLP", linear(h, m.intermediate) + linear(m.intermediate, h));
  add("modulation table", vectors * h);
}

std::vector<VideoPart> transformer_blocks(const VideoDit& m) {
  std::vector<VideoPart> parts;
  switch (m.architecture) {
    case VideoArchitecture::stdit: add_block(m, "blocks", 2, 6, parts); break;
    case VideoArchitecture::stdit2: add_block(m, "blocks", 2, 9, parts); break;
    case VideoArchitecture::stdit3:
      add_block(m, "spatial blocks", 1, 6, parts);
      add_block(m, "temporal blocks", 1, 6, parts);
      break;
  }
  return parts;
}

std::vector<VideoPart> transformer_outside(const VideoDit& m) {
  const std::int64_t h = m.hidden;
  const auto number = [&](std::int64_t width) { return linear(m.timestep_channels, width) + linear(width, width); };
  std::vector<VideoPart> parts = {
      {"patch embedding", 1, linear(m.in_channels * m.patch_elements(), h)},
      {"timestep embedder", 1, number(h)},
      {"text embedder", 1, linear(m.text_channels, h) + linear(h, h)},
      {"modulation of blocks", 1, linear(h, 6 * h)},
  };
  if (m.architecture == VideoArchitecture::stdit2) {
    parts.push_back({"modulation of temporal attention", 1, linear(h, 3 * h)});
  }
  for (const VideoDit::SizeEmbedder& e : m.size_embedders) parts.push_back({e.what + " embedder", 1, number(e.width)});
  if (m.rotary()) parts.push_back({"rotary frequencies", 1, m.head_dim() / 2});
  parts.push_back({"final layer", 1, 2 * h + linear(h, m.patch_elements() * m.out_channels)});
  return parts;
}

// ---- The text encoder

std::vector<VideoPart> text_encoder(const TextEncoder& t) {
  const std::int64_t inner = t.heads * t.head_dim;
  return {{"token embedding", 1, t.vocab * t.hidden},
          {"layers: attention", t.layers, 4 * t.hidden * inner},
          {"layers: MLP", t.layers, 3 * t.hidden * t.intermediate},
          {"layers: norms", t.layers, 2 * t.hidden},
          {"relative positions", 1, t.position_buckets * t.heads},
          {"final norm", 1, t.hidden}};
}

// ---- The autoencoders

std::int64_t image_block(std::int64_t inputs, std::int64_t outputs) {
  return norm(inputs) + linear(9 * inputs, outputs) + norm(outputs) + linear(9 * outputs, outputs) +
         (inputs != outputs ? linear(inputs, outputs) : 0);
}

// Two residual blocks with attention between them.
std::int64_t image_middle(std::int64_t channels) {
  return 2 * image_block(channels, channels) + norm(channels) + 4 * linear(channels, channels);
}

// The blocks of a level of that many channels, after which the width is that.
template <class Block>
std::int64_t level_blocks(std::int64_t blocks, std::int64_t channels, std::int64_t& width, const Block& block) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < blocks; ++i) count += block(std::exchange(width, channels), channels);
  return count;
}

std::int64_t image_encoder(const ImageAutoencoder& a) {
  std::int64_t count = linear(std::int64_t{9} * 3, a.channels.front());
  std::int64_t width = a.channels.front();
  for (std::size_t level = 0; level < a.channels.size(); ++level) {
    count += level_blocks(a.blocks, a.channels[level], width, image_block);
    if (level + 1 < a.channels.size()) count += linear(9 * width, width);
  }
  count += image_middle(width) + norm(width) + linear(9 * width, 2 * a.latent_channels);
  return count + linear(2 * a.latent_channels, 2 * a.latent_channels);
}

std::int64_t image_decoder(const ImageAutoencoder& a) {
  std::int64_t width = a.channels.back();
  std::int64_t count = linear(a.latent_channels, a.latent_channels) + linear(9 * a.latent_channels, width);
  count += image_middle(width);
  for (std::size_t level = a.channels.size(); level-- > 0;) {
    count += level_blocks(a.blocks + 1, a.channels[level], width, image_block);
    if (level > 0) count += linear(9 * width, width);
  }
  return count + norm(width) + linear(9 * width, 3);
}

// Without biases.
std::int64_t temporal_block(std::int64_t inputs, std::int64_t outputs) {
  return norm(inputs) + 27 * inputs * outputs + norm(outputs) + 27 * outputs * outputs +
         (inputs != outputs ? inputs * outputs : 0);
}

std::int64_t temporal_encoder(const TemporalAutoencoder& a, std::int64_t latent_channels) {
  std::int64_t width = a.channels.front();
  std::int64_t count = 27 * latent_channels * width;
  for (std::size_t level = 0; level < a.channels.size(); ++level) {
    count += level_blocks(a.blocks, a.channels[level], width, temporal_block);
    if (level < a.halves.size() && a.halves[level] != 0) count += linear(27 * width, width);
  }
  count += a.blocks * temporal_block(width, width) + norm(width) + linear(width, 2 * latent_channels);
  return count + linear(2 * latent_channels, 2 * latent_channels);
}

std::int64_t temporal_decoder(const TemporalAutoencoder& a, std::int64_t latent_channels) {
  std::int64_t width = a.channels.back();
  std::int64_t count = linear(latent_channels, latent_channels) + linear(27 * latent_channels, width);
  count += a.blocks * temporal_block(width, width);
  for (std::size_t level = a.channels.size(); level-- > 0;) {
    count += level_blocks(a.blocks, a.channels[level], width, temporal_block);
    if (level > 0 && a.halves[level - 1] != 0) count += linear(27 * width, 2 * width);
  }
  return count + norm(width) + linear(27 * width, latent_channels);
}

std::vector<VideoPart> autoencoder(const VideoDit& m) {
  std::vector<VideoPart> parts = {{"2-D encoder", 1, image_encoder(m.image_decoder)},
                                  {"2-D decoder", 1, image_decoder(m.image_decoder)}};
  if (m.temporal_decoder.chunk > 0) {
    parts.push_back({"3-D encoder", 1, temporal_encoder(m.temporal_decoder, m.in_channels)});
    parts.push_back({"3-D decoder", 1, temporal_decoder(m.temporal_decoder, m.in_channels)});
  }
  return parts;
}

}  // namespace

VideoParameters count_parameters(const VideoDit& model) {
  VideoParameters p;
  p.transformer = transformer_blocks(model);
  p.blocks = sum(p.transformer);
  for (VideoPart& part : transformer_outside(model)) p.transformer.push_back(std::move(part));
  p.total = sum(p.transformer);
  p.text_encoder = text_encoder(model.text_encoder);
  p.text_encoder_total = sum(p.text_encoder);
  p.autoencoder = autoencoder(model);
  p.autoencoder_total = sum(p.autoencoder);
  return p;
}

// ---- From what a user asks for to tokens

namespace {

// Height and width by resolution and aspect (opensora/datasets/aspect.py of hpcaitech/Open-Sora v1.2.0, the ratios that
// have a name there in all resolutions). Names are height to width: 9:16 is landscape.
constexpr std::array<std::string_view, 8> kAspects = {"9:16", "16:9", "1:1", "3:4", "4:3", "9:21", "2:3", "1:2"};
struct Resolution {
  std::string_view name;
  std::array<VideoSize, kAspects.size()> sizes;
};
constexpr std::array<Resolution, 6> kResolutions = {{
    {"144p", {{{144, 256}, {256, 144}, {192, 192}, {166, 221}, {221, 165}, {125, 291}, {156, 234}, {135, 270}}}},
    {"240p", {{{240, 426}, {426, 240}, {320, 320}, {276, 368}, {370, 278}, {210, 490}, {262, 393}, {226, 452}}}},
    {"360p", {{{360, 640}, {640, 360}, {480, 480}, {416, 554}, {554, 416}, {314, 732}, {392, 588}, {340, 680}}}},
    {"480p", {{{480, 854}, {854, 480}, {640, 640}, {554, 738}, {740, 555}, {420, 980}, {522, 784}, {452, 904}}}},
    {"720p", {{{720, 1280}, {1280, 720}, {960, 960}, {832, 1110}, {1108, 832}, {628, 1466}, {784, 1176}, {678, 1356}}}},
    {"1080p",
     {{{1080, 1920}, {1920, 1080}, {1440, 1440}, {1248, 1664}, {1662, 1246}, {942, 2198}, {1176, 1764}, {1018, 2036}}}},
}};
constexpr std::string_view kDefaultAspect = "9:16";

constexpr std::int64_t kMaxPixels = 100'000;  // a side
constexpr std::int64_t kMaxFrames = 1'000'000;
constexpr std::int64_t kMaxTokens = 1'000'000'000;

std::int64_t rounded_up(std::int64_t count, std::int64_t unit) { return (count + unit - 1) / unit; }

// "720x1280", else nothing.
std::optional<VideoSize> explicit_size(std::string_view text) {
  const std::vector<std::string_view> sides = llmperf::split(text, 'x');
  if (sides.size() != 2) return std::nullopt;
  const std::optional<std::int64_t> height = parse_int(sides[0]);
  const std::optional<std::int64_t> width = parse_int(sides[1]);
  if (!height || !width) return std::nullopt;
  return VideoSize{*height, *width};
}

}  // namespace

const std::vector<std::string>& video_resolutions() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const Resolution& r : kResolutions) result.emplace_back(r.name);
    return result;
  }();
  return names;
}

const std::vector<std::string>& video_aspects() {
  static const std::vector<std::string> names(kAspects.begin(), kAspects.end());
  return names;
}

VideoSize parse_video_size(std::string_view resolution, std::string_view aspect) {
  if (const std::optional<VideoSize> size = explicit_size(resolution)) {
    if (!aspect.empty()) {
      throw Error::bad_input(fmt::format("`aspect`: {} already says height and width", quote(resolution)),
                             "leave it out");
    }
    return *size;
  }
  const auto* row = std::ranges::find_if(kResolutions, [&](const Resolution& r) { return r.name == resolution; });
  if (row == kResolutions.end()) {
    throw Error::bad_input(fmt::format("`resolution`: unknown resolution {}", quote(resolution)),
                           name_hint(resolution, video_resolutions()) + " HEIGHTxWIDTH is understood too.");
  }
  const std::string_view wanted = aspect.empty() ? kDefaultAspect : aspect;
  const auto* column = std::ranges::find(kAspects, wanted);
  if (column == kAspects.end()) {
    throw Error::bad_input(fmt::format("`aspect`: unknown aspect ratio {} (height:width)", quote(wanted)),
                           name_hint(wanted, video_aspects()));
  }
  return row->sizes[static_cast<std::size_t>(column - kAspects.begin())];
}

std::int64_t frames_of_seconds(const VideoDit& model, double seconds) {
  if (!(seconds > 0) || seconds * model.frames_per_second > static_cast<double>(kMaxFrames)) {
    throw Error::bad_input(fmt::format("`seconds`: {:g} s is no length of a video", seconds), "`seconds` 4");
  }
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::floor(seconds * model.frames_per_second)));
}

std::int64_t latent_frames(const VideoDit& model, std::int64_t frames) {
  const TemporalAutoencoder& t = model.temporal_decoder;
  if (t.chunk == 0) return frames;
  const std::int64_t whole = frames / t.chunk * rounded_up(t.chunk, t.scale());
  return whole + rounded_up(frames % t.chunk, t.scale());
}

VideoShape video_shape(const VideoDit& model, VideoSize size, std::int64_t frames) {
  const std::int64_t scale = model.image_decoder.scale();
  if (frames < 1 || frames > kMaxFrames) {
    throw Error::bad_input(fmt::format("`frames`: {} frames leave no latent frame to generate", frames),
                           fmt::format("1 (an image) to {}", kMaxFrames));
  }
  for (const std::int64_t side : {size.height, size.width}) {
    if (side >= scale && side <= kMaxPixels) continue;
    throw Error::bad_input(fmt::format("`resolution`: {}x{} has no latent: a latent pixel is {} x {} of a frame",
                                       size.height, size.width, scale, scale),
                           fmt::format("sides of {} to {} pixels", scale, kMaxPixels));
  }
  VideoShape s;
  s.frames = frames;
  s.size = size;
  s.latent_frames = latent_frames(model, frames);
  s.latent_height = size.height / scale;
  s.latent_width = size.width / scale;
  s.patch_frames = rounded_up(s.latent_frames, model.patch[0]);
  s.patch_rows = rounded_up(s.latent_height, model.patch[1]);
  s.patch_columns = rounded_up(s.latent_width, model.patch[2]);
  if (s.spatial_tokens() > kMaxTokens / s.patch_frames) {
    throw Error::bad_input(
        fmt::format("{} frames of {}x{} are more than 10^9 tokens", frames, size.height, size.width));
  }
  return s;
}

}  // namespace llmperf::model
