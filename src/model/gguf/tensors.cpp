#include "model/gguf/tensors.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/text.h"
#include "model/families.h"

namespace llmperf::model {
namespace {

constexpr std::int64_t kAlignment = 32;  // GGUF's default

bool stays_f32(Role role) {
  return role == Role::vector || role == Role::router || role == Role::shared_router ||
         role == Role::position_embedding || role == Role::type_embedding;
}

GgufTensor to_gguf(const Tensor& tensor) {
  return {.stem = tensor.gguf,
          .role = tensor.role,
          .n = tensor.n,
          .k = tensor.k,
          .count = tensor.count,
          .type = stays_f32(tensor.role) ? GgmlType::f32 : GgmlType::f16};
}

// Replaces the tensors named `parts` by one that holds their rows, in the place of the first.
void fuse(std::vector<GgufTensor>& layer, std::initializer_list<std::string_view> parts, std::string_view fused,
          Role role) {
  const auto is_part = [&](const GgufTensor& tensor) { return std::ranges::find(parts, tensor.stem) != parts.end(); };
  std::int64_t rows = 0;
  for (const GgufTensor& tensor : layer) rows += is_part(tensor) ? tensor.n : 0;
  const auto first = std::ranges::find_if(layer, is_part);
  if (first == layer.end()) return;
  first->n = rows;
  first->stem = fused;
  first->role = role;
  layer.erase(std::remove_if(first + 1, layer.end(), is_part), layer.end());
}

// Per head, [nope_dim + v_head_dim, latent] becomes [latent, nope_dim] and [v_head_dim, latent]: keys are multiplied
// the other way round, so that a query can be brought to the latent space.
void split_kv_b(std::vector<GgufTensor>& layer, const Attention& attention) {
  const auto found = std::ranges::find_if(layer, [](const GgufTensor& t) { return t.role == Role::kv_b; });
  if (found == layer.end()) return;
  GgufTensor k_b = *found;
  k_b.stem = "attn_k_b.weight";
  k_b.n = attention.latent->kv_lora_rank;
  k_b.k = attention.latent->nope_dim;
  k_b.count = attention.heads;
  found->stem = "attn_v_b.weight";
  found->n = attention.v_head_dim;
  found->count = attention.heads;
  layer.insert(found, k_b);
}

// Cuts the tensor of that name into others, each of so many of its rows.
struct Piece {
  std::string_view stem;
  std::int64_t rows = 0;
};
void split(std::vector<GgufTensor>& layer, std::string_view stem, std::initializer_list<Piece> pieces) {
  const auto found = std::ranges::find(layer, stem, &GgufTensor::stem);
  if (found == layer.end()) return;
  std::vector<GgufTensor> parts(pieces.size(), *found);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].stem = pieces.begin()[i].stem;
    parts[i].n = pieces.begin()[i].rows;
  }
  layer.insert(layer.erase(found), parts.begin(), parts.end());
}

void rename(std::vector<GgufTensor>& tensors, std::string_view stem, std::string_view name) {
  const auto found = std::ranges::find(tensors, stem, &GgufTensor::stem);
  if (found != tensors.end()) found->stem = name;
}

// What a recurrence's tensors are called, of those that parameters.h has in one piece.
void name_recurrent(std::vector<GgufTensor>& layer, const Recurrent& r, const GgufArchitecture& architecture,
                    GgufTensorOptions options) {
  switch (r.kind) {
    case RecurrentKind::gated_delta_net:
      if (!options.joined_delta_net) {
        split(layer, "ssm_in.weight",
              {{"attn_qkv.weight", 2 * r.keys() + r.values()}, {"attn_gate.weight", r.values()}});
      }
      if (architecture.apart_gates) {
        split(layer, "ssm_ba.weight", {{"ssm_alpha.weight", r.heads}, {"ssm_beta.weight", r.heads}});
      }
      break;
    case RecurrentKind::kimi_delta:
      split(layer, "ssm_in.weight",
            {{"attn_q.weight", r.keys()}, {"attn_k.weight", r.keys()}, {"attn_v.weight", r.values()}});
      split(layer, "ssm_conv1d.weight",
            {{"ssm_conv1d_q.weight", r.keys() * r.conv},
             {"ssm_conv1d_k.weight", r.keys() * r.conv},
             {"ssm_conv1d_v.weight", r.values() * r.conv}});
      rename(layer, "ssm_ba.weight", "ssm_beta.weight");
      rename(layer, "ssm_out.weight", "attn_output.weight");
      break;
    case RecurrentKind::mamba:
      split(layer, "ssm_norm.weight",
            {{"ssm_dt_norm.weight", r.gate_rank}, {"ssm_b_norm.weight", r.key_dim}, {"ssm_c_norm.weight", r.key_dim}});
      break;
    case RecurrentKind::short_conv:
      rename(layer, "ssm_in.weight", "shortconv.in_proj.weight");
      rename(layer, "ssm_conv1d.weight", "shortconv.conv.weight");
      rename(layer, "ssm_out.weight", "shortconv.out_proj.weight");
      break;
    case RecurrentKind::mamba2:
    case RecurrentKind::lightning: break;
  }
}

// By the architecture's own names.
void rename_all(std::vector<GgufTensor>& tensors, const GgufArchitecture& architecture) {
  for (const std::string_view each : words(architecture.renamed)) {
    const std::size_t sign = each.find('=');
    rename(tensors, each.substr(0, sign), each.substr(sign + 1));
  }
}

std::vector<GgufTensor> gguf_layer(const Decoder& model, const Layer& layer, GgufTensorOptions options) {
  const GgufArchitecture architecture = gguf_architecture(model);
  std::vector<GgufTensor> tensors;
  for (const Tensor& tensor : layer_tensors(model, layer)) tensors.push_back(to_gguf(tensor));
  if (layer.attention.fused_qkv && !architecture.splits_qkv) {
    fuse(tensors, {"attn_q.weight", "attn_k.weight", "attn_v.weight"}, "attn_qkv.weight", Role::qkv);
    fuse(tensors, {"attn_q.bias", "attn_k.bias", "attn_v.bias"}, "attn_qkv.bias", Role::vector);
  }
  // Experts are never fused: the converter takes those of gpt-oss apart.
  if (layer.feed_forward.fused_gate_up) {
    fuse(tensors, {"ffn_gate.weight", "ffn_up.weight"}, "ffn_up.weight", Role::gate_up);
    fuse(tensors, {"ffn_gate.bias", "ffn_up.bias"}, "ffn_up.bias", Role::vector);
  }
  if (options.split_kv_b && layer.attention.latent) split_kv_b(tensors, layer.attention);
  if (layer.recurrent) name_recurrent(tensors, *layer.recurrent, architecture, options);
  rename_all(tensors, architecture);
  if (model.streams.mix == StreamMix::altup) rename(tensors, "stream_mix.weight", "altup_router.weight");
  return tensors;
}

// A layer that predicts a further token: one of the last kind, and what makes its input of the two before it.
std::vector<GgufTensor> next_token_layer(const Decoder& model, GgufTensorOptions options) {
  std::vector<GgufTensor> tensors = gguf_layer(model, model.kinds[model.layer_kinds.back()], options);
  const auto matrix = [&](std::string_view stem, Role role, std::int64_t n, std::int64_t k) {
    tensors.push_back({.stem = stem, .role = role, .n = n, .k = k, .type = GgmlType::f16});
  };
  matrix("nextn.eh_proj.weight", Role::model_projection, model.hidden, 2 * model.hidden);
  if (model.next_token_copies) {
    matrix("nextn.embed_tokens.weight", Role::layer_embedding, model.vocab, model.hidden);
    matrix("nextn.shared_head_head.weight", Role::layer_embedding, model.vocab, model.hidden);
  }
  for (const std::string_view norm : {"nextn.enorm.weight", "nextn.hnorm.weight", "nextn.shared_head_norm.weight"}) {
    tensors.push_back({.stem = norm, .n = model.hidden});
  }
  return tensors;
}

std::int64_t padded(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Length of the name, name, number of dimensions, dimensions, type, offset of the data.
std::int64_t description_bytes(const GgufTensor& tensor) {
  const std::int64_t dimensions = (tensor.is_vector() ? 1 : 2) + (tensor.count > 1 ? 1 : 0);
  return 8 + static_cast<std::int64_t>(tensor.name().size()) + 4 + 8 * dimensions + 4 + 8;
}

}  // namespace

Bytes GgufTensor::bytes() const { return ggml_bytes(type, n * count, k); }

std::string GgufTensor::name() const {
  return layer < 0 ? std::string(stem) : "blk." + std::to_string(layer) + "." + std::string(stem);
}

std::vector<GgufTensor> gguf_tensors(const Decoder& model, GgufTensorOptions options) {
  const GgufArchitecture architecture = gguf_architecture(model);
  std::vector<GgufTensor> tensors;
  std::vector<GgufTensor> last;  // output_norm, output
  for (const Tensor& tensor : outer_tensors(model)) {
    // The converter leaves out what stands on the first token of an encoder.
    if (model.pooler && tensor.part == Part::lm_head) continue;
    (tensor.part == Part::embedding ? tensors : last).push_back(to_gguf(tensor));
  }
  if (model.tied_embeddings && model.checkpoint_repeats_lm_head) {
    last.push_back(
        {.stem = "output.weight", .role = Role::lm_head, .n = model.vocab, .k = model.hidden, .type = GgmlType::f16});
  }
  rename_all(last, architecture);
  if (model.streams.mix == StreamMix::altup) {
    const std::int64_t count = model.streams.count - 1;
    split(last, "stream_mix.weight", {{"altup_proj.weight", model.hidden}, {"altup_unembd_proj.weight", model.hidden}});
    for (GgufTensor& tensor : last) {
      if (tensor.role == Role::stream_mix) tensor.count = count;
    }
  }
  std::vector<std::vector<GgufTensor>> kinds;
  for (const Layer& kind : model.kinds) kinds.push_back(gguf_layer(model, kind, options));
  const auto add = [&](std::span<const GgufTensor> layer, std::int64_t index) {
    for (GgufTensor tensor : layer) {
      tensor.layer = static_cast<int>(index);
      tensors.push_back(tensor);
    }
  };
  const std::int64_t layers = model.num_layers();
  for (std::int64_t i = 0; i < layers; ++i) {
    add(kinds[model.layer_kinds[static_cast<std::size_t>(i)]], i);
  }
  if (architecture.embedding_norm_first) {
    const auto first = std::ranges::find(tensors, "attn_norm.weight", &GgufTensor::stem);
    if (first != tensors.end()) {
      first->stem = "token_embd_norm.weight";
      first->layer = -1;
    }
  }
  if (options.next_token_layers && architecture.keeps_next_token_layers) {
    for (std::int64_t i = 0; i < model.next_token_layers; ++i) add(next_token_layer(model, options), layers + i);
  }
  tensors.insert(tensors.end(), last.begin(), last.end());
  return tensors;
}

Bytes tensor_bytes(std::span<const GgufTensor> tensors) {
  Bytes sum;
  for (const GgufTensor& tensor : tensors) sum += tensor.bytes();
  return sum;
}

Bytes file_bytes(std::span<const GgufTensor> tensors, std::int64_t metadata_bytes) {
  std::int64_t header = 4 + 4 + 8 + 8 + metadata_bytes;  // magic, version, number of tensors, number of pairs
  std::int64_t data = 0;
  for (const GgufTensor& tensor : tensors) {
    header += description_bytes(tensor);
    data += padded(static_cast<std::int64_t>(tensor.bytes().value));
  }
  return Bytes{static_cast<double>(padded(header) + data)};
}

// A token is stored as a string (8 bytes of length and its text) and a type (4 bytes). Byte-pair vocabularies (Qwen,
// Llama 3, DeepSeek, …) add about one merge per token, again a string; the text is about 8.4 bytes a token and 10 a
// merge, from the sizes of Qwen's vocab.json and merges.txt (151 643 tokens, 151 387 merges, 2.8 and 1.7 MB).
// SentencePiece vocabularies (Llama 2, Mistral, Gemma, Yi, …) add a score instead (4 bytes), and Llama's pieces are
// 6.5 bytes long.
std::int64_t estimated_metadata_bytes(const Decoder& model) {
  constexpr double kBytePair = 8 + 8.4 + 4 + 8 + 10;
  constexpr double kSentencePiece = 8 + 6.5 + 4 + 4;
  constexpr std::int64_t kOther = 4096;                   // dimensions, names, the chat template
  constexpr std::int64_t kLargestSentencePiece = 65'536;  // but for Gemma; phi-2 has the vocabulary of GPT-2
  const bool gemma = model.architecture.starts_with("gemma");
  const bool sentence_piece = gemma || (model.vocab <= kLargestSentencePiece && model.architecture != "phi");
  return kOther +
         static_cast<std::int64_t>((sentence_piece ? kSentencePiece : kBytePair) * static_cast<double>(model.vocab));
}

}  // namespace llmperf::model
