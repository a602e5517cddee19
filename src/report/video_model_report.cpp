#include "report/video_model_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/number.h"
#include "model/video_parameters.h"
#include "report/json.h"

namespace llmperf::report {
namespace {

using model::VideoDit;
using model::VideoParameters;
using model::VideoPart;

std::string count(std::int64_t n) { return format_count(static_cast<double>(n)); }
std::string type_name(Dtype type) { return std::string(name(type)); }

std::string blocks_text(const VideoDit& m) {
  if (m.architecture == model::VideoArchitecture::stdit3) {
    return fmt::format("{} spatial and {} temporal, alternating", m.depth, m.depth);
  }
  return fmt::format("{}, each with spatial and temporal attention", m.depth);
}

Fields shape(const VideoDit& m) {
  Fields f{"", {}};
  const auto add = [&](const char* label, std::string value) { f.rows.emplace_back(label, std::move(value)); };
  if (!m.hf_id.empty()) add("published as", m.hf_id);
  add("architecture", fmt::format("{} (video diffusion transformer)", name(m.architecture)));
  add("blocks", blocks_text(m));
  add("hidden size", fmt::format("{}, {} heads x {}{}; MLP {} wide", m.hidden, m.heads, m.head_dim(),
                                 m.qk_norm ? ", QK norm" : "", m.intermediate));
  add("patch", fmt::format("{} of the latent, {} channels in, {} out", fmt::join(m.patch, " x "), m.in_channels,
                           m.out_channels));
  add("text",
      fmt::format("{}, {} tokens, in {}", m.text_encoder.name, m.text_tokens, type_name(m.text_encoder.stored)));
  add("autoencoder",
      fmt::format(
          "{} (1/{} each way){}", m.image_decoder.name, m.image_decoder.scale(),
          m.temporal_decoder.chunk > 0
              ? fmt::format("; {} ({} frames to {})", m.temporal_decoder.name, m.temporal_decoder.chunk,
                            (m.temporal_decoder.chunk + m.temporal_decoder.scale() - 1) / m.temporal_decoder.scale())
              : std::string()));
  add("sampler", fmt::format("{}, {} steps, guidance {:g}", m.sampler.name, m.sampler.steps, m.sampler.guidance_scale));
  add("frames",
      fmt::format("{:g} for a second asked for, played at {:g} per second", m.frames_per_second, m.frame_rate));
  add("source", m.source);
  if (!m.notes.empty()) add("notes", m.notes);
  return f;
}

Table table(const char* title, const std::vector<VideoPart>& parts, std::int64_t total) {
  Table t{title, {{"part", true}, {"count"}, {"each"}, {"parameters"}, {"of total"}}, {}};
  const auto share = [&](std::int64_t n) { return format_share(static_cast<double>(n) / static_cast<double>(total)); };
  for (const VideoPart& part : parts) {
    t.rows.push_back({part.name, count(part.count), count(part.each), count(part.total()), share(part.total())});
  }
  t.rows.push_back({"total", "", "", count(total), share(total)});
  return t;
}

Fields storage(const VideoDit& m, const VideoParameters& p) {
  const auto bytes = [](std::int64_t n, Dtype type) {
    const Bytes b{static_cast<double>(n) * bytes_per_element(type)};
    return fmt::format("{} ({}) in {}", format_bytes(b), format_bytes_binary(b), type_name(type));
  };
  return {"Storage",
          {{"transformer", bytes(p.total, Dtype::bf16)},
           {"text encoder", bytes(p.text_encoder_total, m.text_encoder.stored)},
           {"autoencoder", bytes(p.autoencoder_total, Dtype::bf16)}}};
}

Json parts_json(const std::vector<VideoPart>& parts) {
  Json json = Json::array();
  for (const VideoPart& part : parts) {
    json.push_back({{"name", part.name}, {"count", part.count}, {"each", part.each}, {"parameters", part.total()}});
  }
  return json;
}

std::string json_text(const VideoDit& m, const VideoParameters& p) {
  Json json = json_header("llmperf.video_model");
  json["name"] = m.name;
  json["hf_id"] = m.hf_id;
  json["architecture"] = std::string(name(m.architecture));
  json["source"] = m.source;
  json["notes"] = m.notes;
  json["hidden_size"] = m.hidden;
  json["heads"] = m.heads;
  json["depth"] = m.depth;
  json["blocks"] = m.blocks();
  json["intermediate"] = m.intermediate;
  json["patch"] = m.patch;
  json["text_tokens"] = m.text_tokens;
  json["steps"] = m.sampler.steps;
  json["guidance_scale"] = number(m.sampler.guidance_scale);
  json["frames_per_second"] = number(m.frames_per_second);
  json["frame_rate"] = number(m.frame_rate);
  json["parameters"] = {{"total", p.total},
                        {"activated", p.total},
                        {"layers", p.blocks},
                        {"text_encoder", p.text_encoder_total},
                        {"autoencoder", p.autoencoder_total}};
  json["parts"] = {{"transformer", parts_json(p.transformer)},
                   {"text_encoder", parts_json(p.text_encoder)},
                   {"autoencoder", parts_json(p.autoencoder)}};
  return dump(json);
}

}  // namespace

Report video_model_report(const VideoDit& m) {
  const VideoParameters p = model::count_parameters(m);
  Document document{Heading{m.name, {}},
                    shape(m),
                    table("Transformer (exact, from the dimensions above)", p.transformer, p.total),
                    table("Text encoder", p.text_encoder, p.text_encoder_total),
                    table("Autoencoder", p.autoencoder, p.autoencoder_total),
                    storage(m, p)};
  Table csv{"", {{"model"}, {"of"}, {"part"}, {"count"}, {"each"}, {"parameters"}}, {}};
  const auto rows = [&](const char* of, const std::vector<VideoPart>& parts) {
    for (const VideoPart& part : parts) {
      csv.rows.push_back(
          {m.name, of, part.name, std::to_string(part.count), std::to_string(part.each), std::to_string(part.total())});
    }
  };
  rows("transformer", p.transformer);
  rows("text encoder", p.text_encoder);
  rows("autoencoder", p.autoencoder);
  return {std::move(document), std::move(csv), json_text(m, p)};
}

}  // namespace llmperf::report
