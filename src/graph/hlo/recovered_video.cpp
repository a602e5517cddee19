// STDiT: spatial and temporal attention in one block (stdit; stdit2 with a norm of its own or a rotation in time), or
// in blocks of their own that take turns (stdit3). Open-Sora v1.0, v1.1, v1.2; see model/video_dit.h.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "descriptor/node.h"
#include "graph/hlo/recovered_writer.h"
#include "model/video_dit.h"

namespace llmperf::graph::hlo {
namespace {

using model::VideoArchitecture;
using model::VideoDit;

const AttentionShape* find(const TransformerBlock& block, AttentionKind kind) {
  const auto found = std::find_if(block.attentions.begin(), block.attentions.end(),
                                  [&](const AttentionShape& a) { return a.kind == kind; });
  return found == block.attentions.end() ? nullptr : &*found;
}

template <class List>
std::string ints(const List& list) {
  std::vector<std::string> texts;
  for (const std::int64_t value : list) texts.push_back(fmt::format("{}", value));
  return "[" + join(texts, ", ") + "]";
}

std::string text_encoder(const model::TextEncoder& t) {
  return fmt::format(
      "{{name: {}, vocab_size: {}, hidden_size: {}, heads: {}, head_dim: {}, intermediate: {}, num_layers: {}, "
      "position_buckets: {}, stored: {}}}",
      yaml_text(t.name), t.vocab, t.hidden, t.heads, t.head_dim, t.intermediate, t.layers, t.position_buckets,
      name(t.stored));
}

std::string descriptor_of(const VideoDit& m) {
  YamlLines out;
  out.text("name", m.name);
  out.put("kind", "video-dit");
  out.put("architecture", model::name(m.architecture));
  out.text("source", m.source);
  out.text("notes", m.notes);
  out.put("hidden_size", m.hidden);
  out.put("heads", m.heads);
  out.put("depth", m.depth);
  out.put("intermediate", m.intermediate);
  out.put("qk_norm", m.qk_norm ? "true" : "false");
  out.put("patch", ints(m.patch));
  out.put("in_channels", m.in_channels);
  out.put("out_channels", m.out_channels);
  out.put("timestep_channels", m.timestep_channels);
  if (!m.size_embedders.empty()) {
    std::vector<std::string> items;
    for (const auto& e : m.size_embedders)
      items.push_back(fmt::format("{{what: {}, width: {}}}", yaml_text(e.what), e.width));
    out.put("size_embedders", "[" + join(items, ", ") + "]");
  }
  out.put("text_channels", m.text_channels);
  out.put("text_tokens", m.text_tokens);
  out.put("frame_rate", fmt::format("{}", m.frame_rate));
  out.put("frames_per_second", fmt::format("{}", m.frames_per_second));
  out.put("sampler", fmt::format("{{name: {}, steps: {}, guidance_scale: {}}}", yaml_text(m.sampler.name),
                                 m.sampler.steps, m.sampler.guidance_scale));
  out.put("text_encoder", text_encoder(m.text_encoder));
  const model::ImageAutoencoder& i = m.image_decoder;
  out.put("image_decoder",
          fmt::format("{{name: {}, latent_channels: {}, channels: {}, blocks: {}, micro_batch: {}}}", yaml_text(i.name),
                      i.latent_channels, ints(i.channels), i.blocks, i.micro_batch));
  const model::TemporalAutoencoder& t = m.temporal_decoder;
  if (t.chunk > 0) {
    out.put("temporal_decoder", fmt::format("{{name: {}, channels: {}, halves: {}, blocks: {}, chunk: {}}}",
                                            yaml_text(t.name), ints(t.channels), ints(t.halves), t.blocks, t.chunk));
  }
  return out.lines();
}

}  // namespace

std::string recovered_video(const Program& program, const Blocks& blocks) {
  const TransformerBlock* main = nullptr;
  bool both = false;
  bool rotated = false;
  std::int64_t spatial_layers = 0;
  std::int64_t temporal_layers = 0;
  const AttentionShape* spatial = nullptr;
  const AttentionShape* temporal = nullptr;
  const AttentionShape* cross = nullptr;
  for (const TransformerBlock& block : blocks.blocks) {
    const AttentionShape* over_space = find(block, AttentionKind::spatial);
    const AttentionShape* over_time = find(block, AttentionKind::temporal);
    if (over_space == nullptr && over_time == nullptr) {
      reject(program, "beside spatial and temporal attention there are blocks of other kinds", blocks);
    }
    if (main == nullptr) main = &block;
    const AttentionShape& a = over_space != nullptr ? *over_space : *over_time;
    const AttentionShape& first = main->attentions[0];
    if (block.hidden != main->hidden || a.heads != first.heads || a.head_dim != first.head_dim) {
      reject(program, "blocks of several widths; a descriptor has one for all", blocks);
    }
    both = both || (over_space != nullptr && over_time != nullptr);
    if (over_space != nullptr) spatial = over_space, spatial_layers += block.layers;
    if (over_time != nullptr) temporal = over_time, temporal_layers += block.layers;
    rotated = rotated || (over_time != nullptr && over_time->rotary);
    if (const AttentionShape* c = find(block, AttentionKind::cross)) cross = c;
  }
  const AttentionShape& a = main->attentions[0];
  if (a.heads * a.head_dim != main->hidden || a.kv_heads != a.heads) {
    reject(program, "heads whose widths do not add up to the hidden width are no STDiT", blocks);
  }
  const VideoArchitecture architecture = !both                        ? VideoArchitecture::stdit3
                                         : rotated || main->norms > 2 ? VideoArchitecture::stdit2
                                                                      : VideoArchitecture::stdit;
  constexpr std::string_view kBuiltIn[] = {"stdit-xl2", "stdit2-xl2", "stdit3-xl2"};
  const std::string base(kBuiltIn[static_cast<std::size_t>(architecture)]);
  VideoDit m = model::load_video_dit(base);
  m.name = model_name(program);
  m.source = model_source(program) + "; what surrounds them is that of " + base;
  m.architecture = architecture;
  m.hidden = main->hidden;
  m.heads = a.heads;
  m.depth = std::max(spatial_layers, temporal_layers);
  m.qk_norm = std::any_of(main->attentions.begin(), main->attentions.end(),
                          [](const AttentionShape& s) { return s.kind != AttentionKind::cross && s.qk_norm; });
  std::vector<std::string> recovered = {"architecture", "hidden_size", "heads", "depth", "qk_norm"};
  std::vector<std::string> seen;
  std::vector<std::string> notes;
  if (main->feed_forward) {
    recovered.emplace_back("intermediate");
    m.intermediate = main->feed_forward->intermediate;
    const FeedForwardShape& f = *main->feed_forward;
    if (f.gated || f.experts > 0 || f.activation != model::Activation::gelu_tanh) {
      reject(program, "a feed-forward other than two matrices with a tanh GELU between is no STDiT", blocks);
    }
  } else {
    m.intermediate = 4 * m.hidden;
    notes.emplace_back("No MLP was seen: four times the hidden width is assumed.");
  }
  if (cross != nullptr) {
    recovered.emplace_back("text_tokens");
    m.text_tokens = cross->keys;
    seen.push_back(fmt::format("batch {}", cross->batch));
    seen.push_back(fmt::format("{} text tokens", cross->keys));
  }
  if (temporal != nullptr) seen.push_back(fmt::format("{} latent frames", temporal->queries));
  if (spatial != nullptr) seen.push_back(fmt::format("{} patches of a frame", spatial->queries));
  if (spatial == nullptr || temporal == nullptr) {
    notes.push_back(fmt::format("Only the {} half of a pair was seen.", spatial != nullptr ? "spatial" : "temporal"));
  }
  m.notes = fmt::format(
      "Recovered from the shapes and the dataflow: {} (the program ran {}). All other keys are those of {}.",
      join(recovered, ", "), join(seen, ", "), base);
  for (const std::string& note : notes) m.notes += " " + note;
  std::string text = descriptor_of(m);
  model::parse_video_dit(descriptor::parse_yaml(text, "the recovered model"));
  return text;
}

}  // namespace llmperf::graph::hlo
