// `llmperf show model` and `llmperf list models`.
#include <fmt/ranges.h>

#include <algorithm>

#include "base/integer.h"
#include "base/number.h"
#include "base/text.h"
#include "cost/memory.h"
#include "report/quantity.h"
#include "report/reports.h"
#include "report/rows.h"
#include "report/table.h"
#include "result/catalog.h"
#include "result/document.h"

namespace llmperf::report {
namespace {

using model::VideoDit;
using model::VideoPart;

std::string share_text(std::int64_t n, std::int64_t total) { return format_share(d(n) / d(total)); }
std::string size_text(Bytes b) { return fmt::format("{} ({})", b, Held{b}); }

std::string heads_text(const model::Attention& a) {
  std::string text = fmt::format("{} heads x {}", a.heads, a.head_dim);
  if (a.latent) {
    text += fmt::format(", values {}; latent {} + rotary {}", a.v_head_dim, a.latent->kv_lora_rank, a.latent->rope_dim);
    if (a.latent->q_lora_rank) text += fmt::format(", query rank {}", *a.latent->q_lora_rank);
    return text;
  }
  text += fmt::format(", {} KV heads{}", a.kv_heads,
                      a.kv_heads == a.heads ? " (MHA)"
                      : a.kv_heads == 1     ? " (MQA)"
                                            : " (GQA)");
  if (a.v_head_dim != a.head_dim) text += fmt::format(", values {}", a.v_head_dim);
  if (a.low_rank) {
    text += fmt::format(", query rank {}, output rank {} in {} groups", a.low_rank->query_rank, a.low_rank->output_rank,
                        a.low_rank->output_groups);
  }
  if (a.one_vector) text += ", keys and values one vector";
  if (a.no_v_proj) text += ", values are the keys";
  if (a.shares_cache) text += ", keys and values of an earlier layer";
  return text;
}

std::string attention_text(const model::Attention& a) {
  std::string text = heads_text(a);
  if (a.window) text += fmt::format(", {} {}", a.chunked ? "chunks of" : "sliding window", *a.window);
  if (a.compression) text += fmt::format(", behind it one entry for {} tokens", a.compression->ratio);
  if (a.indexer) {
    const model::Indexer& x = *a.indexer;
    text += x.reused ? fmt::format(", the best {} keys, as the layer before chose them", x.top_k)
                     : fmt::format(", the best {} keys by {} index heads x {}", x.top_k, x.heads, x.head_dim);
  }
  if (a.gate != model::OutputGate::none) text += ", output gate";
  if (a.qkv_bias) text += ", QKV bias";
  if (a.qk_norm != model::QkNorm::none) text += ", QK norm";
  if (a.sinks) text += ", sinks";
  if (!a.latent && a.rotary_dim == 0) text += ", not rotated";
  return text;
}

std::string recurrent_text(const model::Recurrent& r) {
  if (r.kind == model::RecurrentKind::short_conv) return fmt::format("gated convolution of {} taps", r.conv);
  std::string kind(name(r.kind));
  std::replace(kind.begin(), kind.end(), '_', ' ');
  std::string text = r.value_dim == 1
                         ? fmt::format("{}, {} channels, state {}", kind, r.heads, r.key_dim)
                         : fmt::format("{}, {} heads, state {} x {}", kind, r.heads, r.key_dim, r.value_dim);
  if (r.key_heads != r.heads && r.value_dim > 1) text += fmt::format(", {} key heads", r.key_heads);
  if (r.conv > 0) text += fmt::format(", convolution {}", r.conv);
  return text;
}

std::string feed_forward_text(const model::FeedForward& f) {
  const std::string dense = fmt::format("{} wide{}", f.intermediate, f.gated ? ", gated" : "");
  if (!f.experts) return dense;
  const model::Experts& e = *f.experts;
  std::string text = fmt::format("{} experts x {}, {} per token", e.count, e.intermediate, e.per_token);
  if (e.groups > 1) text += fmt::format(" from {} of {} groups", e.groups_per_token, e.groups);
  if (e.identity > 0) text += fmt::format(" of these and {} that return their input", e.identity);
  if (e.latent > 0) text += fmt::format(", in a width of {}", e.latent);
  if (e.shared_intermediate > 0) text += fmt::format(", shared expert {}", e.shared_intermediate);
  return f.intermediate > 0 ? text + ", beside an MLP " + dense : text;
}

std::string layer_text(const model::Layer& layer) {
  std::vector<std::string> parts;
  if (layer.attends()) parts.push_back(attention_text(layer.attention));
  if (layer.recurrent) parts.push_back(recurrent_text(*layer.recurrent));
  if (layer.has_feed_forward()) parts.push_back("MLP " + feed_forward_text(layer.feed_forward));
  return parts.empty() ? "nothing" : join(parts, layer.parallel_blocks ? "; beside it " : "; ");
}

// "3 of kind 2, 1 of kind 1, 12 times": the layers in order, as runs.
std::string order_of_layers(const model::Decoder& m) {
  const auto& order = m.layer_kinds;
  std::size_t period = 1;
  while (period < order.size() &&
         !std::equal(order.begin() + static_cast<std::ptrdiff_t>(period), order.end(), order.begin())) {
    ++period;
  }
  const bool repeats = 2 * period <= order.size();
  const std::size_t end = repeats ? period : order.size();
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < end;) {
    std::size_t run = i;
    while (run < end && order[run] == order[i]) ++run;
    runs.push_back(
        fmt::format("{}{}", static_cast<char>('A' + order[i] % 26), run - i > 1 ? fmt::format("x{}", run - i) : ""));
    i = run;
  }
  const std::string text = join(runs, " ");
  return repeats ? fmt::format("{}, repeated to {} layers", text, order.size()) : text;
}

std::string tower_text(const model::VisionTower& t) {
  std::string text =
      fmt::format("{} layers, {} wide, {} heads x {}, MLP {} wide{}; patches {} x {}", t.layers, t.hidden, t.heads,
                  t.head_dim, t.intermediate, t.gated ? ", gated" : "", t.patch, t.patch);
  if (t.merge > 1) text += fmt::format(", {} x {} of them a token", t.merge, t.merge);
  if (t.window > 0) text += fmt::format("; windows of {} x {} but in {} layers", t.window, t.window, t.full_layers);
  if (t.deepstack > 0) text += fmt::format("; {} inner layers projected, too", t.deepstack);
  return text;
}

Fields shape_of_model(const model::Decoder& m) {
  Fields f;
  if (!m.hf_id.empty()) f.add("published as", m.hf_id);
  f.add("architecture", m.architecture + (!m.encoder ? ""
                                          : m.causal ? ", reads a text once and generates nothing"
                                                     : ", an encoder: reads a text once, in both directions"));
  f.add("hidden size", std::to_string(m.hidden) +
                           (m.streams.count > 1 ? fmt::format(" in {} residual streams", m.streams.count) : ""));
  f.add("vocabulary", count_text(m.vocab) + (m.tied_embeddings && !m.encoder ? ", lm_head tied to the embedding" : ""));
  if (m.layer_embedding_width > 0) {
    f.add("layer embeddings", "{} x {} layers x {}", Count(m.layer_embedding_vocab), m.num_layers(),
          m.layer_embedding_width);
  }
  if (m.max_position) f.add("trained context", count_text(*m.max_position));
  const bool lettered = m.kinds.size() > 2;
  for (std::size_t k = 0; k < m.kinds.size(); ++k) {
    const std::string letter = lettered ? fmt::format("{}: ", static_cast<char>('A' + k % 26)) : "";
    f.add(fmt::format("{}{} layers", letter, m.count_of_kind(k)), layer_text(m.kinds[k]));
  }
  if (lettered) f.add("in order", order_of_layers(m));
  if (m.next_token_layers > 0) f.add("beside them", "{} layers that predict further tokens", m.next_token_layers);
  if (m.vision) f.add("vision tower", tower_text(*m.vision));
  f.add("source", m.source);
  if (!m.notes.empty()) f.add("notes", m.notes);
  if (!m.assumed.empty()) f.add("assumed", m.assumed);
  return f;
}

Table parts_of_model(const model::Decoder& m, const model::ParameterCounts& p) {
  Table t = titled("Parameters (exact, computed from the dimensions above)", "<part, parameters, of total");
  const auto row = [&](const std::string& name, std::int64_t n) {
    add_row(t, name, Count(n), share_text(n, p.total + p.vision));
  };
  row("embedding", p.embedding);
  row("layers", p.layers);
  if (p.attention > 0) row("  attention", p.attention);
  if (p.recurrent > 0) row("  recurrences", p.recurrent);
  row("  MLP and experts", p.feed_forward);
  row("  norms", p.norms);
  row(m.is_plain_transformer() ? "final norm" : "norms outside the layers", p.final_norm);
  if (p.lm_head > 0) {
    row(m.encoder           ? (m.labels > 0 ? "classifier" : "pooler")
        : m.tied_embeddings ? "lm_head (shares the embedding)"
                            : "lm_head",
        p.lm_head);
  }
  row(p.vision > 0 ? "language model" : "total", p.total);
  if (p.vision > 0) row("vision tower", p.vision);
  if (p.vision > 0) row("total", p.total + p.vision);
  if (p.activated != p.total) row("activated per token", p.activated);
  if (p.checkpoint != p.total + p.vision) row("stored in the published files", p.checkpoint);
  return t;
}

Fields storage_of_model(const ModelShown& v) {
  Fields f{"Storage", {}};
  f.add("weights in " + v.layout.name, "{}, {:.2f} bits per weight", size_text(v.weights), v.bits_per_weight());
  if (v.tensors) {
    const std::string shards =
        v.file ? fmt::format(" in {} file{}", v.file->shards.size(), v.file->shards.size() == 1 ? "" : "s")
               : ", metadata and vocabulary estimated";
    f.add("GGUF file", format_bytes(v.file_size()) + shards);
    const model::PlacedBytes placed = model::placed_weight_bytes(v.model, v.layout);
    f.add("all layers offloaded", "{} on the device, {} (token embedding) on the host", Held{placed.device},
          Held{placed.host});
  }
  if (v.parameters.vision > 0) f.add("vision tower in 16 bits", size_text(Bytes{2 * d(v.parameters.vision)}));
  if (v.model.encoder) return f;
  const Bytes kv = v.kv_per_token();
  if (kv.value > 0) {
    f.add("KV cache in " + v.kv.name(), "{} per token, {} per 1024 tokens", kv, kv * 1024);
  }
  if (v.state.value > 0) f.add("recurrent state", size_text(v.state) + " per sequence, whatever its length");
  return f;
}

std::string tensor_shape(const TensorRow& row) { return fmt::format("{}", fmt::join(row.shape, " x ")); }
std::string whole_bytes(const TensorRow& row) { return fmt::format("{:.0f}", row.bytes.value); }

std::string video_blocks_text(const VideoDit& m) {
  if (m.architecture == model::VideoArchitecture::stdit3) {
    return fmt::format("{} spatial and {} temporal, alternating", m.depth, m.depth);
  }
  return fmt::format("{}, each with spatial and temporal attention", m.depth);
}

Fields shape_of_video(const VideoDit& m) {
  Fields f;
  if (!m.hf_id.empty()) f.add("published as", m.hf_id);
  f.add("architecture", "{} (video diffusion transformer)", name(m.architecture));
  f.add("blocks", video_blocks_text(m));
  f.add("hidden size", "{}, {} heads x {}{}; MLP {} wide", m.hidden, m.heads, m.head_dim(),
        m.qk_norm ? ", QK norm" : "", m.intermediate);
  f.add("patch", fmt::format("{} of the latent, {} channels in, {} out", fmt::join(m.patch, " x "), m.in_channels,
                             m.out_channels));
  f.add("text", "{}, {} tokens, in {}", m.text_encoder.name, m.text_tokens, name(m.text_encoder.stored));
  std::string decoders = fmt::format("{} (1/{} each way)", m.image_decoder.name, m.image_decoder.scale());
  if (const auto& t = m.temporal_decoder; t.chunk > 0) {
    decoders += fmt::format("; {} ({} frames to {})", t.name, t.chunk, (t.chunk + t.scale() - 1) / t.scale());
  }
  f.add("autoencoder", decoders);
  f.add("sampler", "{}, {} steps, guidance {:g}", m.sampler.name, m.sampler.steps, m.sampler.guidance_scale);
  f.add("frames", "{:g} for a second asked for, played at {:g} per second", m.frames_per_second, m.frame_rate);
  f.add("source", m.source);
  if (!m.notes.empty()) f.add("notes", m.notes);
  return f;
}

Table video_parts_table(const char* title, const std::vector<VideoPart>& parts, std::int64_t total) {
  Table t = titled(title, "<part, count, each, parameters, of total");
  for (const VideoPart& part : parts) {
    add_row(t, part.name, Count(part.count), Count(part.each), Count(part.total()), share_text(part.total(), total));
  }
  add_row(t, "total", "", "", Count(total), share_text(total, total));
  return t;
}

std::string stored_text(std::int64_t parameters, Dtype type) {
  return fmt::format("{} in {}", size_text(Bytes{d(parameters) * bytes_per_element(type)}), name(type));
}

}  // namespace

Report model_report(const ModelShown& v) {
  Document document{Heading{v.model.name, {}}, shape_of_model(v.model), parts_of_model(v.model, v.parameters),
                    storage_of_model(v)};
  if (v.tensors) {
    Table t = titled("Types", "<type, tensors, weights, bytes, of bytes");
    for (const TypeShare& s : v.types()) {
      add_row(t, s.type, Count(s.tensors), Count(s.elements), s.bytes, Share{s.bytes / v.weights});
    }
    document.push_back(std::move(t));
  }
  Table csv = titled("", "model, part, parameters");
  const Table counts = csv_of(v.parameters);
  for (std::size_t i = 0; i < counts.columns.size(); ++i) {
    add_row(csv, v.model.name, counts.columns[i].header, counts.rows[0][i]);
  }
  if (v.list_tensors) {
    Table people = titled("Tensors", "<tensor, <type, shape, bytes");
    csv = {"", {{"model"}, {"weights"}, {"tensor"}, {"type"}, {"shape"}, {"elements"}, {"bytes"}}, {}};
    for (const TensorRow& row : v.rows()) {
      add_row(people, row.name, row.type, tensor_shape(row), whole_bytes(row));
      add_row(csv, v.model.name, v.layout.name, row.name, row.type, tensor_shape(row), row.elements, whole_bytes(row));
    }
    document.push_back(std::move(people));
  }
  return {std::move(document), std::move(csv), result::document("llmperf.model", v)};
}

Report video_model_report(const VideoModelShown& v) {
  const model::VideoParameters& p = v.parameters;
  Document document{Heading{v.model.name, {}},
                    shape_of_video(v.model),
                    video_parts_table("Transformer (exact, from the dimensions above)", p.transformer, p.total),
                    video_parts_table("Text encoder", p.text_encoder, p.text_encoder_total),
                    video_parts_table("Autoencoder", p.autoencoder, p.autoencoder_total),
                    Fields{"Storage",
                           {{"transformer", stored_text(p.total, Dtype::bf16)},
                            {"text encoder", stored_text(p.text_encoder_total, v.model.text_encoder.stored)},
                            {"autoencoder", stored_text(p.autoencoder_total, Dtype::bf16)}}}};
  Table csv = titled("", "model, of, part, count, each, parameters");
  const auto rows = [&](const char* of, const std::vector<VideoPart>& parts) {
    for (const VideoPart& part : parts) {
      add_row(csv, v.model.name, of, part.name, part.count, part.each, part.total());
    }
  };
  rows("transformer", p.transformer);
  rows("text encoder", p.text_encoder);
  rows("autoencoder", p.autoencoder);
  return {std::move(document), std::move(csv), result::document("llmperf.video_model", v)};
}

Report model_list_report(const ModelList& list) {
  Table people = titled("", "<model, parameters, activated, layers, hidden, <heads, <architecture");
  for (const ModelListed& m : list.models) {
    add_row(people, m.name, Count(m.total), m.activated == m.total ? "" : count_text(m.activated), m.layers, m.hidden,
            fmt::format("{}/{}", m.heads, m.kv_heads), m.architecture + (m.video ? " (video)" : ""));
  }
  Document page{people};
  for (const ModelListed& m : list.models) add_file(page, m.name, m.file);
  return {std::move(page), csv_of(list.models), result::document("llmperf.models", list)};
}

}  // namespace llmperf::report
