#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/number.h"
#include "cost/memory.h"
#include "model/parameters.h"
#include "model/video_parameters.h"
#include "report/catalog_report.h"
#include "report/json.h"
#include "report/tensor_list.h"

namespace llmperf::report {
namespace {

using model::Decoder;
using model::ParameterCounts;

std::string count(std::int64_t n) { return format_count(static_cast<double>(n)); }

std::string attention_text(const model::Attention& a) {
  std::string text = fmt::format("{} heads x {}", a.heads, a.head_dim);
  if (a.latent) {
    text += fmt::format(", values {}; latent {} + rotary {}", a.v_head_dim, a.latent->kv_lora_rank, a.latent->rope_dim);
    if (a.latent->q_lora_rank) text += fmt::format(", query rank {}", *a.latent->q_lora_rank);
  } else {
    text += fmt::format(", {} KV heads{}", a.kv_heads,
                        a.kv_heads == a.heads ? " (MHA)"
                        : a.kv_heads == 1     ? " (MQA)"
                                              : " (GQA)");
  }
  if (a.window) text += fmt::format(", sliding window {}", *a.window);
  if (a.qkv_bias) text += ", QKV bias";
  if (a.qk_norm) text += ", QK norm";
  return text;
}

std::string feed_forward_text(const model::FeedForward& f) {
  if (!f.experts) return fmt::format("{} wide{}", f.intermediate, f.gated ? ", gated" : "");
  std::string text =
      fmt::format("{} experts x {}, {} per token", f.experts->count, f.experts->intermediate, f.experts->per_token);
  if (f.experts->groups > 1)
    text += fmt::format(" from {} of {} groups", f.experts->groups_per_token, f.experts->groups);
  if (f.experts->shared_intermediate > 0) text += fmt::format(", shared expert {}", f.experts->shared_intermediate);
  return text;
}

Fields shape(const Decoder& m) {
  Fields f{"", {}};
  if (!m.hf_id.empty()) f.rows.emplace_back("published as", m.hf_id);
  f.rows.emplace_back("architecture", m.architecture);
  f.rows.emplace_back("hidden size", std::to_string(m.hidden));
  f.rows.emplace_back("vocabulary", count(m.vocab) + (m.tied_embeddings ? ", lm_head tied to the embedding" : ""));
  if (m.max_position) f.rows.emplace_back("trained context", count(*m.max_position));
  for (std::size_t k = 0; k < m.kinds.size(); ++k) {
    f.rows.emplace_back(fmt::format("{} layers", m.count_of_kind(k)),
                        attention_text(m.kinds[k].attention) + "; MLP " + feed_forward_text(m.kinds[k].feed_forward));
  }
  f.rows.emplace_back("source", m.source);
  if (!m.notes.empty()) f.rows.emplace_back("notes", m.notes);
  return f;
}

Table parts(const Decoder& m, const ParameterCounts& p) {
  Table t{"Parameters (exact, computed from the dimensions above)", {{"part", true}, {"parameters"}, {"of total"}}, {}};
  const auto row = [&](const std::string& name, std::int64_t n) {
    t.rows.push_back({name, count(n), format_share(static_cast<double>(n) / static_cast<double>(p.total))});
  };
  row("embedding", p.embedding);
  row("layers", p.layers);
  row("  attention", p.attention);
  row("  MLP and experts", p.feed_forward);
  row("  norms", p.norms);
  row("final norm", p.final_norm);
  row(m.tied_embeddings ? "lm_head (shares the embedding)" : "lm_head", p.lm_head);
  row("total", p.total);
  if (p.activated != p.total) row("activated per token", p.activated);
  if (p.checkpoint != p.total) row("stored in the published files", p.checkpoint);
  return t;
}

Json layer_json(const model::Layer& layer, std::int64_t layers) {
  const model::Attention& a = layer.attention;
  const model::FeedForward& f = layer.feed_forward;
  Json json = {{"layers", layers},           {"heads", a.heads},
               {"kv_heads", a.kv_heads},     {"head_dim", a.head_dim},
               {"v_head_dim", a.v_head_dim}, {"sliding_window", a.window ? Json(*a.window) : Json(nullptr)}};
  if (a.latent) {
    json["latent"] = {{"kv_lora_rank", a.latent->kv_lora_rank},
                      {"q_lora_rank", a.latent->q_lora_rank ? Json(*a.latent->q_lora_rank) : Json(nullptr)},
                      {"rope_dim", a.latent->rope_dim},
                      {"nope_dim", a.latent->nope_dim}};
  }
  if (f.experts) {
    json["experts"] = f.experts->count;
    json["experts_per_token"] = f.experts->per_token;
    json["expert_groups"] = f.experts->groups;
    json["expert_groups_per_token"] = f.experts->groups_per_token;
    json["expert_intermediate"] = f.experts->intermediate;
    json["shared_intermediate"] = f.experts->shared_intermediate;
  } else {
    json["intermediate"] = f.intermediate;
  }
  return json;
}

Json parameters_json(const ParameterCounts& p) {
  return {
      {"total", p.total},   {"activated", p.activated},   {"embedding", p.embedding}, {"lm_head", p.lm_head},
      {"layers", p.layers}, {"checkpoint", p.checkpoint}, {"attention", p.attention}, {"feed_forward", p.feed_forward},
      {"norms", p.norms},   {"final_norm", p.final_norm}};
}

// Of one token, all layers.
double kv_bytes(const ModelView& v) {
  double bytes = 0;
  for (std::size_t kind = 0; kind < v.model.kinds.size(); ++kind) {
    bytes += static_cast<double>(v.model.count_of_kind(kind)) *
             cost::layer_kv_bytes(v.kv, v.model.kinds[kind].attention, 1).value;
  }
  return bytes;
}

// Bytes of the file: read, or what the tensors and the vocabulary would take.
double file_bytes(const ModelView& v) {
  return v.file ? static_cast<double>(v.file->file_bytes)
                : model::file_bytes(*v.tensors, model::estimated_metadata_bytes(v.model)).value;
}

Json gguf_json(const ModelView& v, const std::vector<TypeShare>& shares) {
  Json types = Json::array();
  for (const TypeShare& s : shares) {
    types.push_back({{"type", s.type}, {"tensors", s.tensors}, {"elements", s.elements}, {"bytes", number(s.bytes)}});
  }
  Json json = {{"file_bytes", number(file_bytes(v))}, {"predicted", v.file == nullptr}, {"types", types}};
  if (v.file) {
    json["path"] = v.file->path;
    json["version"] = v.file->version;
    json["byte_order"] = v.file->big_endian ? "big" : "little";
    json["shards"] = v.file->shards.size();
  }
  return json;
}

std::string json_text(const ModelView& v, const ParameterCounts& p, Bytes bytes, double bits_per_weight,
                      const std::vector<TensorRow>& rows) {
  const Decoder& m = v.model;
  Json json = json_header("llmperf.model");
  json["name"] = m.name;
  json["hf_id"] = m.hf_id;
  json["architecture"] = m.architecture;
  json["source"] = m.source;
  json["notes"] = m.notes;
  json["hidden_size"] = m.hidden;
  json["num_layers"] = m.num_layers();
  json["vocab_size"] = m.vocab;
  json["max_position"] = m.max_position ? Json(*m.max_position) : Json(nullptr);
  json["tied_embeddings"] = m.tied_embeddings;
  json["layer_kinds"] = Json::array();
  for (std::size_t k = 0; k < m.kinds.size(); ++k)
    json["layer_kinds"].push_back(layer_json(m.kinds[k], m.count_of_kind(k)));
  json["parameters"] = parameters_json(p);
  json["weights"] = v.layout.name;
  json["weight_bytes"] = number(bytes);
  json["bits_per_weight"] = number(bits_per_weight);
  json["kv"] = v.kv.name();
  json["kv_bytes_per_token"] = number(kv_bytes(v));
  json["gguf"] = v.tensors ? gguf_json(v, type_shares(rows)) : Json(nullptr);
  if (v.list_tensors) {
    json["tensors"] = Json::array();
    for (const TensorRow& row : rows) {
      json["tensors"].push_back({{"name", row.name},
                                 {"type", row.type},
                                 {"shape", row.shape},
                                 {"elements", row.elements},
                                 {"bytes", number(row.bytes)}});
    }
  }
  return dump(json);
}

Fields storage(const ModelView& v, Bytes bytes, double bits_per_weight) {
  const double kv = kv_bytes(v);
  Fields f{"Storage",
           {{"weights in " + v.layout.name, fmt::format("{} ({}), {:.2f} bits per weight", format_bytes(bytes),
                                                        format_bytes_binary(bytes), bits_per_weight)}}};
  if (v.tensors) {
    f.rows.emplace_back("GGUF file", fmt::format("{}{}", format_bytes(Bytes{file_bytes(v)}),
                                                 v.file ? fmt::format(" in {} file{}", v.file->shards.size(),
                                                                      v.file->shards.size() == 1 ? "" : "s")
                                                        : ", metadata and vocabulary estimated"));
    const model::PlacedBytes placed = model::placed_weight_bytes(v.model, v.layout);
    f.rows.emplace_back("all layers offloaded",
                        fmt::format("{} on the device, {} (token embedding) on the host",
                                    format_bytes_binary(placed.device), format_bytes_binary(placed.host)));
  }
  f.rows.emplace_back(
      "KV cache in " + v.kv.name(),
      fmt::format("{} per token, {} per 1024 tokens", format_bytes(Bytes{kv}), format_bytes(Bytes{1024 * kv})));
  return f;
}

Table types_table(const std::vector<TypeShare>& shares, Bytes bytes) {
  Table t{"Types", {{"type", true}, {"tensors"}, {"weights"}, {"bytes"}, {"of bytes"}}, {}};
  for (const TypeShare& s : shares) {
    t.rows.push_back(
        {s.type, count(s.tensors), count(s.elements), format_bytes(s.bytes), format_share(s.bytes / bytes)});
  }
  return t;
}

std::string shape_of(const TensorRow& row) { return fmt::format("{}", fmt::join(row.shape, " x ")); }

Table tensors_table(const std::vector<TensorRow>& rows) {
  Table t{"Tensors", {{"tensor", true}, {"type", true}, {"shape"}, {"bytes"}}, {}};
  for (const TensorRow& row : rows) {
    t.rows.push_back({row.name, row.type, shape_of(row), fmt::format("{:.0f}", row.bytes.value)});
  }
  return t;
}

Table tensors_csv(const ModelView& v, const std::vector<TensorRow>& rows) {
  Table t{"", {{"model"}, {"weights"}, {"tensor"}, {"type"}, {"shape"}, {"elements"}, {"bytes"}}, {}};
  for (const TensorRow& row : rows) {
    t.rows.push_back({v.model.name, v.layout.name, row.name, row.type, shape_of(row), std::to_string(row.elements),
                      fmt::format("{:.0f}", row.bytes.value)});
  }
  return t;
}

}  // namespace

Report model_report(const ModelView& v) {
  const Decoder& m = v.model;
  const ParameterCounts p = model::count_parameters(m);
  const Bytes bytes = model::weight_bytes(m, v.layout);
  const double bits_per_weight = bytes.value * 8 / static_cast<double>(model::stored_weights(m, v.layout));
  const std::vector<TensorRow> rows = tensor_rows(v);
  Document document{Heading{m.name, {}}, shape(m), parts(m, p), storage(v, bytes, bits_per_weight)};
  if (v.tensors) document.push_back(types_table(type_shares(rows), bytes));
  if (v.list_tensors) document.push_back(tensors_table(rows));
  Table csv{"", {{"model"}, {"part"}, {"parameters"}}, {}};
  const Json counts = parameters_json(p);
  for (const auto& [part, value] : counts.items()) csv.rows.push_back({m.name, part, value.dump()});
  if (v.list_tensors) csv = tensors_csv(v, rows);
  return {std::move(document), std::move(csv), json_text(v, p, bytes, bits_per_weight, rows)};
}

Report model_list_report(const std::vector<Decoder>& models, const std::vector<model::VideoDit>& videos) {
  Table people{
      "",
      {{"model", true}, {"parameters"}, {"activated"}, {"layers"}, {"hidden"}, {"heads", true}, {"architecture", true}},
      {}};
  Table csv{"",
            {{"model"},
             {"parameters"},
             {"activated_parameters"},
             {"layers"},
             {"hidden_size"},
             {"heads"},
             {"kv_heads"},
             {"architecture"},
             {"hf_id"}},
            {}};
  Json json = json_header("llmperf.models");
  json["models"] = Json::array();
  for (const Decoder& m : models) {
    const ParameterCounts p = model::count_parameters(m);
    const model::Attention& a = m.kinds.front().attention;
    people.rows.push_back({m.name, count(p.total), p.activated == p.total ? "" : count(p.activated),
                           std::to_string(m.num_layers()), std::to_string(m.hidden),
                           fmt::format("{}/{}", a.heads, a.kv_heads), m.architecture});
    csv.rows.push_back({m.name, std::to_string(p.total), std::to_string(p.activated), std::to_string(m.num_layers()),
                        std::to_string(m.hidden), std::to_string(a.heads), std::to_string(a.kv_heads), m.architecture,
                        m.hf_id});
    json["models"].push_back({{"name", m.name},
                              {"hf_id", m.hf_id},
                              {"architecture", m.architecture},
                              {"parameters", {{"total", p.total}, {"activated", p.activated}}}});
  }
  for (const model::VideoDit& m : videos) {
    const std::int64_t total = model::count_parameters(m).total;
    const std::string architecture(name(m.architecture));
    people.rows.push_back({m.name, count(total), "", std::to_string(m.blocks()), std::to_string(m.hidden),
                           fmt::format("{}/{}", m.heads, m.heads), architecture + " (video)"});
    csv.rows.push_back({m.name, std::to_string(total), std::to_string(total), std::to_string(m.blocks()),
                        std::to_string(m.hidden), std::to_string(m.heads), std::to_string(m.heads), architecture,
                        m.hf_id});
    json["models"].push_back({{"name", m.name},
                              {"hf_id", m.hf_id},
                              {"architecture", architecture},
                              {"parameters", {{"total", total}, {"activated", total}}}});
  }
  return {{people}, csv, dump(json)};
}

}  // namespace llmperf::report
