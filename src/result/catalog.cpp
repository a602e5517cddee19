#include "result/catalog.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.h"
#include "base/text.h"
#include "cost/memory.h"
#include "descriptor/catalog.h"
#include "estimate/price.h"

namespace llmperf::result {
namespace {

// For keys that are left out, or null, where the member has no value.
template <auto Member>
constexpr auto has = [](const auto& object) { return (object.*Member).has_value(); };

constexpr const char* kReplaces = "of LLMPERF_PATH, in place of the built-in one; only where there is such";

constexpr const char* kFrom = "\"datasheet\", \"derived\", \"measured\", \"fitted\" or \"assumed\"";

struct LayerKind {
  const model::Layer* layer;
  std::int64_t layers;
  const model::Attention& attention() const { return layer->attention; }
  bool experts() const { return layer->feed_forward.experts.has_value(); }
};

}  // namespace

// ---- Models

Type fields_of(Fields<model::LatentAttention> f) {
  using L = model::LatentAttention;
  return f.of<&L::kv_lora_rank>("kv_lora_rank", "of the latent that is cached")
      .of<&L::q_lora_rank>("q_lora_rank", "null: queries come from one full matrix")
      .of<&L::rope_dim>("rope_dim", "rotary part of a head")
      .of<&L::nope_dim>("nope_dim", "the part without position");
}

Type fields_of(Fields<model::Experts> f) {
  using E = model::Experts;
  return f.of<&E::count>("experts", "routed ones; these six keys only with experts")
      .of<&E::per_token>("experts_per_token", "that a token is sent to")
      .of<&E::groups>("expert_groups", "that experts lie in")
      .of<&E::groups_per_token>("expert_groups_per_token", "that a token's experts are of")
      .of<&E::intermediate>("expert_intermediate", "width of one")
      .of<&E::shared_intermediate>("shared_intermediate", "of the shared ones; 0: none");
}

Type fields_of(Fields<model::Indexer> f) {
  using X = model::Indexer;
  return f.of<&X::heads>("heads", "of index queries")
      .of<&X::head_dim>("head_dim", "of index queries and keys")
      .of<&X::top_k>("top_k", "keys that a query attends to")
      .of<&X::pool>("pool", "tokens that an index key stands for")
      .of<&X::reused>("reused", "whether the choice is that of the layer before");
}

Type fields_of(Fields<model::Recurrent> f) {
  using R = model::Recurrent;
  return f
      .of("kind", "gated_delta_net, kimi_delta, mamba, mamba2, lightning or short_conv",
          [](const R& r) { return name(r.kind); })
      .of<&R::heads>("heads", "of values, each with a state")
      .of<&R::key_heads>("key_heads", "of queries and keys")
      .of<&R::key_dim>("key_dim", "rows of a state")
      .of<&R::value_dim>("value_dim", "columns of a state")
      .of<&R::conv>("conv", "taps of the convolution; 0: none")
      .of("state_elements", "of a sequence", [](const R& r) { return r.state_elements(); });
}

Type fields_of(Fields<LayerKind> f) {
  using K = LayerKind;
  return f.of<&K::layers>("layers", "how many")
      .of("heads", "of queries", [](const K& k) { return k.attention().heads; })
      .of("kv_heads", "of keys and values", [](const K& k) { return k.attention().kv_heads; })
      .of("head_dim", "of queries and keys", [](const K& k) { return k.attention().head_dim; })
      .of("v_head_dim", "of values", [](const K& k) { return k.attention().v_head_dim; })
      .of("sliding_window", "null: none", [](const K& k) { return k.attention().window; })
      .of("latent", "latent attention only", [](const K& k) { return k.attention().latent; })
      .only_when([](const K& k) { return k.attention().latent.has_value(); })
      .of("indexer", "of layers that choose their keys only", [](const K& k) { return k.attention().indexer; })
      .only_when([](const K& k) { return k.attention().indexer.has_value(); })
      .of("compression_ratio", "tokens of an entry behind the window, where there are such",
          [](const K& k) { return k.attention().compression ? k.attention().compression->ratio : 0; })
      .only_when([](const K& k) { return k.attention().compression.has_value(); })
      .of("recurrent", "of layers with a recurrence only", [](const K& k) { return k.layer->recurrent; })
      .only_when([](const K& k) { return k.layer->recurrent.has_value(); })
      .spread([](const K& k) { return k.layer->feed_forward.experts; })
      .only_when([](const K& k) { return k.experts(); })
      .of("intermediate", "width of the MLP", [](const K& k) { return k.layer->feed_forward.intermediate; })
      .only_when([](const K& k) { return !k.experts(); });
}

Type fields_of(Fields<model::ParameterCounts> f) {
  using P = model::ParameterCounts;
  return f.of<&P::total>("total", "tied weights once")
      .of<&P::activated>("activated", "that one token uses")
      .of<&P::embedding>("embedding", "with learned positions")
      .of<&P::lm_head>("lm_head", "also when it is tied; of an encoder the pooler and classifier")
      .of<&P::layers>("layers", "all of them")
      .of<&P::checkpoint>("checkpoint", "as the published files hold them, a vision tower among them")
      .of<&P::vision>("vision", "of the vision tower, which `total` leaves out; only where there is one")
      .only_when([](const P& p) { return p.vision > 0; })
      .of<&P::attention>("attention", "of `layers`")
      .of<&P::recurrent>("recurrent", "of `layers`, where there are recurrences")
      .only_when([](const P& p) { return p.recurrent > 0; })
      .of<&P::feed_forward>("feed_forward", "of `layers`")
      .of<&P::norms>("norms", "of `layers`: the rest")
      .of<&P::final_norm>("final_norm", "behind the layers");
}

Type fields_of(Fields<TensorRow> f) {
  using T = TensorRow;
  return f.of<&T::name>("name", "in the file, or Hugging Face's")
      .of<&T::type>("type", "ggml's, or the scheme")
      .of<&T::shape>("shape", "outermost first")
      .of<&T::elements>("elements", "their product")
      .of<&T::bytes>("bytes", "as stored");
}
Type fields_of(Fields<TypeShare> f) {
  using T = TypeShare;
  return f.of<&T::type>("type", "ggml's")
      .of<&T::tensors>("tensors", "how many")
      .of<&T::elements>("elements", "of all of them")
      .of<&T::bytes>("bytes", "of all of them");
}

Type gguf_sizes(Fields<ModelShown> f) {
  using G = ModelShown;
  constexpr auto read = [](const G& g) { return g.file != nullptr; };
  return f.of("file_bytes", "of all shards", [](const G& g) { return g.file_size(); })
      .of("predicted", "true: from the rules, metadata estimated", [](const G& g) { return g.file == nullptr; })
      .of("types", "largest first", [](const G& g) { return g.types(); })
      .only_where(read)
      .of("path", "of a file that was read", [](const G& g) { return g.file->path; })
      .of("version", "likewise", [](const G& g) { return g.file->version; })
      .of("byte_order", "likewise: \"big\" or \"little\"",
          [](const G& g) { return g.file->big_endian ? "big" : "little"; })
      .of("shards", "likewise: how many", [](const G& g) { return g.file->shards.size(); });
}

Type fields_of(Fields<ModelShown> f) {
  using M = ModelShown;
  return f.of("name", "built-in name", [](const M& m) { return m.model.name; })
      .of("hf_id: Hugging Face", "as published; may be empty", [](const M& m) { return m.model.hf_id; })
      .of("architecture", "Hugging Face's model type", [](const M& m) { return m.model.architecture; })
      .of("source", "of the dimensions", [](const M& m) { return m.model.source; })
      .of("notes", "may be empty", [](const M& m) { return m.model.notes; })
      .of("assumed", "with `assume` only: what it was read as, and what was passed over",
          [](const M& m) { return m.model.assumed; })
      .only_when([](const M& m) { return !m.model.assumed.empty(); })
      .of("hidden_size", "width of a token", [](const M& m) { return m.model.hidden; })
      .of("num_layers: layers", "of all kinds", [](const M& m) { return m.model.num_layers(); })
      .of("vocab_size", "tokens", [](const M& m) { return m.model.vocab; })
      .of("max_position: trained context", "trained context; null: not stated",
          [](const M& m) { return m.model.max_position; })
      .of("tied_embeddings", "whether lm_head is the embedding", [](const M& m) { return m.model.tied_embeddings; })
      .of("layer_kinds", "distinct layers",
          [](const M& m) {
            std::vector<LayerKind> kinds;
            for (std::size_t k = 0; k < m.model.kinds.size(); ++k)
              kinds.push_back({&m.model.kinds[k], m.model.count_of_kind(k)});
            return kinds;
          })
      .of<&M::parameters>("parameters", "exact")
      .of("weights", "scheme", [](const M& m) { return m.layout.name; })
      .of<&M::weights>("weight_bytes", "as stored")
      .of<&M::bits_per_weight>("bits_per_weight",
                               "over `total`; with GGUF types over the weights the file stores, a repeated lm_head "
                               "included")
      .of("kv", "type of the cache", [](const M& m) { return m.kv.name(); })
      .of<&M::kv_per_token>("kv_bytes_per_token", "while no window is full")
      .of<&M::state>("state_bytes_per_sequence", "of recurrences, where there are such")
      .only_when([](const M& m) { return m.state.value > 0; })
      .group<&gguf_sizes>("gguf", "null but for GGUF files and types")
      .when([](const M& m) { return m.tensors != nullptr; })
      .of<&M::rows>("tensors", "where they were asked for")
      .only_when([](const M& m) { return m.list_tensors; });
}

double ModelShown::bits_per_weight() const { return weights.value * 8 / d(model::stored_weights(model, layout)); }

Bytes ModelShown::kv_per_token() const {
  Bytes bytes;
  for (std::size_t k = 0; k < model.kinds.size() && !model.encoder; ++k) {
    bytes += cost::layer_kv_bytes(kv, model.kinds[k].attention, 1, 1) * d(model.count_of_kind(k));
  }
  return bytes;
}

Bytes ModelShown::file_size() const {
  return file ? Bytes{d(file->file_bytes)} : model::file_bytes(*tensors, model::estimated_metadata_bytes(model));
}

namespace {

std::vector<std::int64_t> shape_of_tensor(std::int64_t count, std::int64_t n, std::int64_t k, bool vector) {
  std::vector<std::int64_t> shape;
  if (count > 1) shape.push_back(count);
  shape.push_back(n);
  if (!vector) shape.push_back(k);
  return shape;
}

std::string format_text(const model::StoredFormat& format) {
  if (!format.name.empty()) return std::string(format.name);
  if (format.group > 0) return fmt::format("{} bits, groups of {}", format.bits, format.group);
  if (format.block > 0) return fmt::format("{} bits, blocks of {}", format.bits, format.block);
  if (format.bits_per_row > 0) return fmt::format("{} bits, scale per row", format.bits);
  return fmt::format("{} bits", format.bits);
}

std::vector<TensorRow> rows_of_scheme(const model::Decoder& model, const model::WeightLayout& layout) {
  std::vector<TensorRow> rows;
  const auto add = [&](const std::string& prefix, const model::Tensor& t, const model::StoredFormat& format) {
    const bool vector = t.role == model::Role::vector;
    rows.push_back({.name = prefix + std::string(t.name),
                    .type = vector ? fmt::format("{} bits", layout.vector_bits) : format_text(format),
                    .shape = shape_of_tensor(t.count, t.n, t.k, vector),
                    .elements = t.elements(),
                    .bytes = model::tensor_bytes(layout, format, t)});
  };
  const std::vector<model::Tensor> outer = model::outer_tensors(model);
  const auto add_outer = [&](bool embedding) {
    for (const model::Tensor& t : outer) {
      if ((t.part == model::Part::embedding) == embedding) add("", t, layout.outer(t.role));
    }
  };
  add_outer(true);
  for (std::size_t i = 0; i < model.layer_kinds.size(); ++i) {
    const auto group = std::find_if(layout.groups.begin(), layout.groups.end(), [&](const model::LayerGroup& g) {
      return std::binary_search(g.layers.begin(), g.layers.end(), static_cast<std::int64_t>(i));
    });
    for (const model::Tensor& t : model::layer_tensors(model, model.kinds[group->kind])) {
      add(fmt::format("model.layers.{}.", i), t, (*group)[t.role]);
    }
  }
  add_outer(false);
  return rows;
}

}  // namespace

std::vector<TensorRow> ModelShown::rows() const {
  if (tensors == nullptr) return rows_of_scheme(model, layout);
  std::vector<TensorRow> rows;
  for (const model::GgufTensor& t : *tensors) {
    rows.push_back({t.name(), std::string(model::info(t.type).name), shape_of_tensor(t.count, t.n, t.k, t.is_vector()),
                    t.elements(), t.bytes()});
  }
  return rows;
}

std::vector<TypeShare> ModelShown::types() const {
  std::vector<TypeShare> shares;
  for (const TensorRow& row : rows()) {
    auto share = std::find_if(shares.begin(), shares.end(), [&](const TypeShare& s) { return s.type == row.type; });
    if (share == shares.end()) share = shares.insert(shares.end(), TypeShare{row.type, 0, 0, {}});
    ++share->tensors;
    share->elements += row.elements;
    share->bytes += row.bytes;
  }
  std::stable_sort(shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return shares;
}

Type fields_of(Fields<model::VideoPart> f) {
  using P = model::VideoPart;
  return f.of<&P::name>("name", "\"spatial blocks: self-attention\"")
      .of<&P::count>("count", "alike")
      .of<&P::each>("each", "parameters of one")
      .of<&P::total>("parameters", "of all of them");
}

Type video_totals(Fields<VideoModelShown> f) {
  using T = VideoModelShown;
  return f.of("total", "of the transformer", [](const T& t) { return t.parameters.total; })
      .of("activated", "likewise", [](const T& t) { return t.parameters.total; })
      .of("layers", "of its blocks", [](const T& t) { return t.parameters.blocks; })
      .of("text_encoder", "beside it", [](const T& t) { return t.parameters.text_encoder_total; })
      .of("autoencoder", "both halves", [](const T& t) { return t.parameters.autoencoder_total; });
}
Type video_parts(Fields<VideoModelShown> f) {
  using V = VideoModelShown;
  using P = model::VideoParameters;
  return f.of<&V::parameters, &P::transformer>("transformer", "part by part")
      .of<&V::parameters, &P::text_encoder>("text_encoder", "likewise")
      .of<&V::parameters, &P::autoencoder>("autoencoder", "likewise");
}

Type fields_of(Fields<VideoModelShown> f) {
  using V = VideoModelShown;
  return f.of("name", "built-in name", [](const V& v) { return v.model.name; })
      .of("hf_id", "as published; may be empty", [](const V& v) { return v.model.hf_id; })
      .of("architecture", "of the transformer", [](const V& v) { return v.model.architecture; })
      .of("source", "of the dimensions", [](const V& v) { return v.model.source; })
      .of("notes", "may be empty", [](const V& v) { return v.model.notes; })
      .of("hidden_size", "width of a token", [](const V& v) { return v.model.hidden; })
      .of("heads", "of attention", [](const V& v) { return v.model.heads; })
      .of("depth", "as the model counts it", [](const V& v) { return v.model.depth; })
      .of("blocks", "spatial and temporal ones", [](const V& v) { return v.model.blocks(); })
      .of("intermediate", "width of the MLP", [](const V& v) { return v.model.intermediate; })
      .of("patch", "frames, rows and columns of the latent", [](const V& v) { return v.model.patch; })
      .of("text_tokens", "of a prompt", [](const V& v) { return v.model.text_tokens; })
      .of("steps", "of the sampler", [](const V& v) { return v.model.sampler.steps; })
      .of("guidance_scale", "of the sampler", [](const V& v) { return v.model.sampler.guidance_scale; })
      .of("frames_per_second", "for a second asked for", [](const V& v) { return v.model.frames_per_second; })
      .of("frame_rate", "that it is played at", [](const V& v) { return v.model.frame_rate; })
      .group<&video_totals>("parameters", "exact")
      .group<&video_parts>("parts", "that add up to these");
}

Type listed_parameters(Fields<ModelListed> f) {
  return f.of<&ModelListed::total>("total", "tied weights once")
      .of<&ModelListed::activated>("activated", "that one token uses");
}

Type fields_of(Fields<ModelListed> f) {
  using M = ModelListed;
  return f.row<&M::name>("model", "its name")
      .row<&M::total>("parameters", "all of them")
      .row<&M::activated>("activated_parameters", "that one token uses")
      .row<&M::layers>("layers", "blocks")
      .row<&M::hidden>("hidden_size", "width of a token")
      .row<&M::heads>("heads", "of queries")
      .row<&M::kv_heads>("kv_heads", "of keys and values")
      .row<&M::architecture>("architecture", "of the model")
      .row<&M::hf_id>("hf_id", "as published")
      .json<&M::name>("name", "built-in name")
      .json<&M::hf_id>("hf_id", "as published; may be empty")
      .json<&M::architecture>("architecture", "Hugging Face's model type, or that of a video model")
      .json<&M::file>("file", kReplaces)
      .only_when([](const M& m) { return !m.file.empty(); })
      .group<&listed_parameters>("parameters", "exact");
}
Type fields_of(Fields<ModelList> f) { return f.of<&ModelList::models>("models", "built-in ones"); }

void ModelList::add(const model::Decoder& m) {
  const model::ParameterCounts p = model::count_parameters(m);
  const model::Attention& a = m.kinds.front().attention;
  models.push_back({m.name, m.hf_id, m.architecture, p.total, p.activated, m.num_layers(), m.hidden, a.heads,
                    a.kv_heads, false, std::string(descriptor::replacing(m.source))});
}
void ModelList::add(const model::VideoDit& m) {
  const std::int64_t total = model::count_parameters(m).total;
  models.push_back({m.name, m.hf_id, std::string(name(m.architecture)), total, total, m.blocks(), m.hidden, m.heads,
                    m.heads, true, std::string(descriptor::replacing(m.source))});
}

// ---- Devices

Type fields_of(Fields<hardware::Peak> f) {
  using P = hardware::Peak;
  return f.of<&P::engine>("engine", "\"matrix\" or \"vector\"")
      .of<&P::dtype>("dtype", "of the operands")
      .of<&P::accumulate>("accumulate", "type of the sums; null: not stated")
      .of<&P::rate>("flops_per_s", "dense")
      .of<&P::passes>("passes", "of a matrix unit that goes over its operands in several, for this rate")
      .only_when(has<&P::passes>)
      .of<&P::provenance>("provenance", kFrom);
}

Type fields_of(Fields<hardware::MemoryLevel> f) {
  using M = hardware::MemoryLevel;
  return f.of<&M::name>("name", "\"L2\", \"HBM\"")
      .of<&M::per_tile>("per_tile", "whether the figures are of one tile")
      .of<&M::capacity>("capacity_bytes", "what software can use; null: not stated")
      .of<&M::board>("board_bytes: built in", "what is built in; null: not stated")
      .of<&M::capacity_note>("capacity_note: where the capacity is from", "who reports it; may be empty")
      .of<&M::bandwidth>("bandwidth_bytes_per_s", "null: not stated")
      .of<&M::provenance>("provenance", "of the capacity")
      .of<&M::bandwidth_provenance>("bandwidth_provenance: provenance of the bandwidth", "of the bandwidth");
}

Type fields_of(Fields<hardware::Interconnect> f) {
  using I = hardware::Interconnect;
  return f.of<&I::name>("name", "\"NVLink4\"")
      .of<&I::topology>("topology", "how devices are joined")
      .of<&I::devices>("devices", "of a package or supernode")
      .only_when([](const I& i) { return i.devices > 1; })
      .of<&I::per_direction>("per_direction_bytes_per_s", "of one device, all its links")
      .of<&I::per_link>("per_link_bytes_per_s", "of one link; null: not stated")
      .of<&I::links>("links", "of one device; null: not stated")
      .of<&I::provenance>("provenance", "of the rates")
      .of<&I::latency>("latency_s", "of a small message; null: not stated")
      .of<&I::latency_provenance>("latency_provenance", "null: not stated")
      .when(has<&I::latency>);
}

Type fields_of(Fields<hardware::Network> f) {
  using N = hardware::Network;
  return f.of<&N::name>("name", "\"InfiniBand NDR\"")
      .of<&N::per_direction>("per_direction_bytes_per_s", "of one device")
      .of<&N::provenance>("provenance", "of the rate")
      .of<&N::latency>("latency_s", "of a small message; null: not stated")
      .of<&N::latency_provenance>("latency_provenance", "null: not stated")
      .when(has<&N::latency>);
}

Type fields_of(Fields<hardware::TilePlace> f) {
  using P = hardware::TilePlace;
  return f.of<&P::x>("x", "column, from 0").of<&P::y>("y", "row, from 0");
}

Type fields_of(Fields<hardware::DramChannels> f) {
  using C = hardware::DramChannels;
  return f.of<&C::count>("count", "how many")
      .of<&C::page>("page_elements", "that a request is of; 0: it is long")
      .of<&C::requests>("requests_per_s", "of one channel at most; null: as many as its bandwidth allows")
      .of<&C::places>("places", "tile that each is next to; empty: any");
}

Type fields_of(Fields<hardware::TileArray> f) {
  using T = hardware::TileArray;
  return f.of<&T::tiles>("tiles", "how many")
      .of<&T::mesh_x>("mesh_x", "columns")
      .of<&T::mesh_y>("mesh_y", "rows")
      .of<&T::noc_link>("noc_link_bytes_per_s: NoC link", "from tile to tile")
      .of<&T::hop_latency>("hop_latency_s", "of a link")
      .of<&T::dram_latency>("dram_latency_s", "of an access")
      .of<&T::used_x>("grid_x: columns in use", "columns that programs run on")
      .of<&T::used_y>("grid_y: rows in use", "rows that they run on")
      .of<&T::rings>("rings", "the links close to rings, in both directions")
      .of<&T::multicast>("multicast_bytes_per_s", "of one sender to several tiles; null: as a link")
      .of<&T::tile_dram>("tile_dram_bytes_per_s: DRAM to a tile", "that one tile gets from the DRAM; null: all of it")
      .of<&T::matrix_feed>("matrix_feed_bytes_per_s: feed of the matrix unit",
                           "operands for a tile's matrix unit; null: not a bound")
      .of<&T::granule>("granule", "rows, columns and depth that the matrix unit rounds up to")
      .of<&T::shared_issue>("shared_issue", "times of matrix and vector unit add up")
      .of<&T::launch>("launch_s", "of every op")
      .of<&T::channels>("channels", "of the DRAM; null: it is one")
      .of<&T::provenance>("provenance", "of all of these");
}

Type fields_of(Fields<hardware::HostLink> f) {
  using H = hardware::HostLink;
  return f.of<&H::name>("name", "\"PCIe4 x16\"")
      .of<&H::per_direction>("per_direction_bytes_per_s", "to or from the host")
      .of<&H::provenance>("provenance", "of the rate");
}

Type fields_of(Fields<hardware::Price> f) {
  using P = hardware::Price;
  return f.of<&P::kind>("kind", "\"purchase\", or of an hour \"rent\" (on demand) or \"spot\"")
      .of<&P::amount>("amount", "of one device")
      .of<&P::currency>("currency", "\"USD\"")
      .of<&P::source>("source", "who asks for it")
      .of<&P::date>("date", "when that was read; may be empty");
}

Type fields_of(Fields<hardware::PowerShares> f) {
  using S = hardware::PowerShares;
  return f.of<&S::idle>("idle", "that a busy device draws at least")
      .of<&S::memory>("memory", "that full memory bandwidth adds")
      .of<&S::matrix>("matrix", "that the full rate of matrix products adds")
      .of<&S::provenance>("provenance", "of the three")
      .of<&S::source>("source", "where they were measured");
}

Type fields_of(Fields<estimate::HourPrice> f) {
  using P = estimate::HourPrice;
  return f.of<&P::amount>("amount", "of one device")
      .of<&P::currency>("currency", "\"USD\"")
      .of<&P::basis>("basis", "\"rent\", \"spot\" or \"derived\"")
      .of<&P::source>("source", "the offer, or what it is derived from")
      .of<&P::date>("date", "may be empty");
}

Type fields_of(Fields<hardware::Device> f) {
  using D = hardware::Device;
  return f.of<&D::name>("name", "built-in name")
      .of<&D::title>("title", "for people")
      .of<&D::vendor>("vendor", "who makes it")
      .of<&D::kind>("kind", "\"gpu\", \"npu\", \"asic\", \"cpu\", \"soc\" or \"tile_array\"")
      .of<&D::family>("family", "class whose runtime defaults apply")
      .of<&D::source>("source", "of the figures")
      .of<&D::notes>("notes", "may be empty")
      .of<&D::devices_per_node>("devices_per_node", "all figures are of one device")
      .of<&D::cores>("cores", "null: not stated")
      .of<&D::core_bandwidth>("core_bandwidth_bytes_per_s", "of a CPU, what one core draws of the memory's")
      .only_when(has<&D::core_bandwidth>)
      .of<&D::staging>("staging_bytes_per_s", "of a CPU, what its driver brings to a device of pageable memory")
      .only_when(has<&D::staging>)
      .of<&D::numa_nodes>("numa_nodes", "of a CPU, where there are several")
      .only_when([](const D& d) { return d.numa_nodes > 1; })
      .of<&D::clock_hz>("clock_hz", "that the peaks are given at; null: not stated")
      .of<&D::measured_clock_hz>("measured_clock_hz", "that products were seen to run at; null: no other")
      .of<&D::power_w>("power_w", "null: not stated")
      .of<&D::power_shares>("power_shares", "of it, where they were measured; else null")
      .of<&D::prices>("prices", "as they were asked for; may be empty")
      .of<&estimate::hour_price>("hour_price: price of an hour", "that costs are computed with; null: none")
      .of<&D::peaks>("peaks", "dense rates")
      .of<&D::memory>("memory", "near to far")
      .of<&D::package>("package", "between the dies of a card")
      .only_when(has<&D::package>)
      .of<&D::interconnect>("interconnect", "inside a node")
      .only_when(has<&D::interconnect>)
      .of<&D::supernode>("supernode", "between nodes, through the ports of the interconnect")
      .only_when(has<&D::supernode>)
      .of<&D::network>("network", "between nodes")
      .only_when(has<&D::network>)
      .of<&D::tile_array>("tile_array", "of such a device")
      .only_when(has<&D::tile_array>)
      .of<&D::host_link>("host_link", "to the host")
      .only_when(has<&D::host_link>);
}

Type fields_of(Fields<DeviceListed> f) {
  using L = DeviceListed;
  constexpr auto fp16 = [](const L& l) -> std::optional<FlopsPerSecond> {
    const hardware::Peak* peak = l.device.find_peak(hardware::Engine::matrix, Dtype::fp16);
    return peak ? std::optional(peak->rate) : std::nullopt;
  };
  constexpr auto name = [](const L& l) { return l.device.name; };
  return f.row("hardware", "its name", name)
      .json("name", "built-in name", name)
      .json("file", kReplaces, [](const L& l) { return descriptor::replacing(l.device.source); })
      .only_when([](const L& l) { return !descriptor::replacing(l.device.source).empty(); })
      .of("title", "for people", [](const L& l) { return l.device.title; })
      .of("vendor", "who makes it", [](const L& l) { return l.device.vendor; })
      .of("kind", "as `llmperf.hardware` has it", [](const L& l) { return l.device.kind; })
      .row("fp16_matrix_flops_per_s", "of its matrix engine", fp16)
      .of("memory_bytes", "what software can use", [](const L& l) { return l.device.dram().capacity; })
      .of("memory_bandwidth_bytes_per_s", "of that memory", [](const L& l) { return l.device.dram().bandwidth; });
}
Type fields_of(Fields<DeviceList> f) { return f.of<&DeviceList::hardware>("hardware", "built-in ones"); }

// ---- Runtime profiles and measurements

namespace {
std::optional<double> mean_error(const hardware::RuntimeProfile& profile, std::string_view group) {
  const hardware::FittedError* found = profile.error_of(group);
  return found ? std::optional(found->mean) : std::nullopt;
}
}  // namespace

Type fields_of(Fields<RuntimeListed> f) {
  using R = RuntimeListed;
  return f.of("name", "of the profile", [](const R& r) { return r.profile.name; })
      .of("hardware", "a device, or empty", [](const R& r) { return r.profile.hardware; })
      .of("families", "classes of devices, or empty", [](const R& r) { return join(r.profile.families, " "); })
      .of("preferred", "whether it is taken where none is named", [](const R& r) { return r.profile.preferred; })
      .of("engine", "era of the engine whose host it has, or empty", [](const R& r) { return r.profile.engine; })
      .of("host", "of machine that its host's numbers were measured on: \"desktop\", \"server\", \"grace\", or empty",
          [](const R& r) { return r.profile.host_class; })
      .of("title", "for people", [](const R& r) { return r.profile.title; })
      .json("file", kReplaces, [](const R& r) { return descriptor::replacing(r.profile.source); })
      .only_when([](const R& r) { return !descriptor::replacing(r.profile.source).empty(); })
      .of("rows", "measurements that it was fitted to", [](const R& r) { return r.profile.range.rows; })
      .of("prefill_error", "mean, of what was left out of the fit; null: nothing was",
          [](const R& r) { return mean_error(r.profile, "prefill"); })
      .of("decode_error", "likewise", [](const R& r) { return mean_error(r.profile, "decode"); })
      .of("gemm_error", "likewise, of matrix products", [](const R& r) { return mean_error(r.profile, "gemm"); });
}
Type fields_of(Fields<hardware::EngineEra> f) {
  using E = hardware::EngineEra;
  return f.of<&E::name>("name", "of the era; `runtime` takes it")
      .of<&E::engine>("engine", "which `runtime` takes, with @ and a version")
      .of<&E::since>("since", "its first version; empty: from the beginning")
      .of<&E::families>("families", "classes of devices that it is for; empty: all")
      .of<&E::host_class>("host", "of machine that its host's numbers were measured on")
      .of<&E::measured_on>("measured_on", "devices whose steps it was fitted to")
      .of<&E::title>("title", "for people")
      .of<&E::source>("source", "of its numbers");
}
Type fields_of(Fields<RuntimeList> f) {
  return f.of<&RuntimeList::runtimes>("runtimes", "built-in ones")
      .of<&RuntimeList::engines>("engines", "what `runtime ENGINE@VERSION` puts on a device's kernels");
}

Type fields_of(Fields<RuntimeParameter> f) {
  using P = RuntimeParameter;
  return f.of("name", "section and key in the file", [](const P& p) { return p.info().name; })
      .of("value", "in the unit", [](const P& p) { return p.profile->values[p.index]; })
      .of("unit", "\"s\", \"B/s\"; empty for shares, exponents and counts", [](const P& p) { return p.info().unit; })
      .of("provenance", "of the value", [](const P& p) { return p.profile->provenance[p.index]; })
      .of("uncertainty: %", "relative; null unless fitted", [](const P& p) { return p.profile->uncertainty[p.index]; })
      .when([](const P& p) { return p.fitted(); })
      .of("default", "without a profile that says better", [](const P& p) { return p.info().initial; })
      .of("meaning", "in words", [](const P& p) { return p.info().meaning; });
}

std::vector<RuntimeParameter> parameters_of(const hardware::RuntimeProfile& profile) {
  std::vector<RuntimeParameter> list;
  for (std::size_t i = 0; i < hardware::kAllParameters; ++i) list.push_back({&profile, i});
  return list;
}

Type fields_of(Fields<hardware::FittedError> f) {
  using E = hardware::FittedError;
  return f.of<&E::group>("group", "\"prefill\", \"decode\" or a kind of op")
      .of<&E::rows>("rows", "that were left out of fits")
      .of<&E::mean>("mean: %", "absolute, relative")
      .of<&E::p90>("p90: %", "nine of ten were within this")
      .of<&E::bias>("bias", "mean with its sign");
}

Type fields_of(Fields<hardware::RuntimeProfile> f) {
  using P = hardware::RuntimeProfile;
  return f.of<&P::name>("name", "of the profile")
      .of<&P::title>("title", "for people")
      .of<&P::hardware>("hardware", "a device, or empty")
      .of<&P::families>("families", "classes of devices")
      .of<&P::engine>("engine", "era of the engine whose host it has, or empty")
      .of<&P::host_class>("host", "of machine that its host's numbers were measured on, or empty")
      .of<&P::source>("source", "of its numbers")
      .of<&parameters_of>("parameters", "every number")
      .of<&P::errors>("errors", "cross-validated");
}

Type fields_of(Fields<MeasurementSet> f) {
  using M = MeasurementSet;
  return f.of<&M::name>("name", "of the set")
      .of<&M::rows>("rows", "measurements")
      .of<&M::about>("about", "its comment lines");
}
Type fields_of(Fields<MeasurementList> f) {
  return f.of<&MeasurementList::measurements>("measurements", "built-in sets");
}

}  // namespace llmperf::result
