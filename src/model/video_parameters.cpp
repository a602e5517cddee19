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
#include "model/video_parameters.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

namespace llmperf::model {
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

}  // namespace llmperf::model
