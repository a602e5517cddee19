// How and where every tensor of one model is stored. A scheme ("w4a16") stores all layers of a kind alike; the mixtures
// of llama.cpp do not, so layers are grouped: layers of one kind whose tensors have the same formats.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/decoder.h"
#include "model/gguf/tensors.h"
#include "model/parameters.h"
#include "model/quantization.h"

namespace llmperf::model {

// Formats by role; entries of roles that a layer does not have mean nothing.
using RoleFormats = std::array<StoredFormat, kRoles>;

struct LayerGroup {
  std::size_t kind = 0;                   // index into Decoder::kinds
  std::vector<std::int64_t> layers = {};  // indices of the layers, ascending
  bool on_host = false;                   // kept in the memory of the host rather than of the device
  std::array<bool, kRoles> kept = {};     // of a layer on the device: matrices of routed experts that the host keeps
  RoleFormats formats = {};
  std::int64_t count() const { return static_cast<std::int64_t>(layers.size()); }
  const StoredFormat& operator[](Role role) const { return formats[static_cast<std::size_t>(role)]; }
  StoredFormat& operator[](Role role) { return formats[static_cast<std::size_t>(role)]; }
  bool holds_on_host(Role role) const { return on_host || kept[static_cast<std::size_t>(role)]; }
  bool keeps_experts() const { return kept != std::array<bool, kRoles>{}; }
};

// Bytes in the memory of the device and of the host.
struct PlacedBytes {
  Bytes device;
  Bytes host;
  Bytes& at(bool on_host) { return on_host ? host : device; }
};

struct WeightLayout {
  std::string name;                     // "bf16", "q4_k_m", "nvfp4+bf16" of a mixture, or the file's name
  std::vector<LayerGroup> groups = {};  // those on the host first, then by kind and first layer
  StoredFormat token_embedding = {};
  StoredFormat position_embedding = {};
  StoredFormat lm_head = {};
  double vector_bits = 16;    // per element of norm weights and biases
  bool gguf = false;          // a GGUF file, which llama.cpp runs
  bool lm_head_copy = false;  // the embedding is tied, and lm_head is nevertheless stored a second time
  Bytes extra = {};           // of a file, beyond the tensors of the decoder (tables of rotary frequencies)
  bool embedding_on_host = false;
  bool head_on_host = false;

  bool uses_host() const;                      // some of it is kept there
  bool computes_on_host() const;               // … of the layers, the experts or the head
  const StoredFormat& outer(Role role) const;  // token_embedding, position_embedding or lm_head
};

// All layers of a kind alike.
WeightLayout uniform_layout(const Decoder& model, const WeightScheme& scheme);
// As the published checkpoint stores it: Decoder::mixture, else default_weights, else all of it in `wide`, which is
// also what a checkpoint's unquantised parts take.
WeightLayout checkpoint_layout(const Decoder& model, Dtype wide);
// From the tensors of a GGUF file, read or predicted. The token embedding is on the host, where llama.cpp keeps it.
WeightLayout gguf_layout(const Decoder& model, std::span<const GgufTensor> tensors, std::string name);

// The GGUF file type that `weights` means, or null: a name that is both ("bf16") means the scheme, which stores the
// same types, whatever runs them.
const GgufFileType* gguf_weights(std::string_view weights);
// What `weights` names: a scheme (parse_weight_scheme, whose 16-bit parts take `wide`), or a GGUF file type ("q4_k_m")
// by the rules of `era`. Throws Error(bad_input) with the nearest names of both.
WeightLayout make_layout(const Decoder& model, std::string_view weights, Dtype wide, GgufEra era);

// Keeps all but the last `offloaded` of the layers and the head on the host, as llama.cpp's option of that name counts:
// the head is the first to go to the device, then the last layer and so on; num_layers + 1 or more is everything.
void keep_on_host(const Decoder& model, std::int64_t offloaded, WeightLayout& layout);

// Keeps matrices of routed experts on the host, whatever the layer's others do: those that `is_kept` says.
void keep_experts_on_host(const std::function<bool(std::int64_t layer, Role role)>& is_kept, WeightLayout& layout);

// Bytes as stored, scales and zeros included.
Bytes tensor_bytes(const WeightLayout& layout, const StoredFormat& format, const Tensor& tensor);
Bytes layer_bytes(const Decoder& model, const WeightLayout& layout, const LayerGroup& group);  // of one layer
// … of a layer of the group's formats and other dimensions: one device's share.
Bytes layer_bytes(const Decoder& model, const WeightLayout& layout, const LayerGroup& group, const Layer& layer);
// Of the whole model as stored: tied weights once, unless the layout holds lm_head a second time.
Bytes weight_bytes(const Decoder& model, const WeightLayout& layout);
Bytes weight_bytes(const Decoder& model, const WeightScheme& scheme);
// Weights that weight_bytes counts, one by one: what bits per weight are an average over.
std::int64_t stored_weights(const Decoder& model, const WeightLayout& layout);

// Whether a tied lm_head is held beside the embedding: stored a second time, or the two are needed in different places.
bool holds_tied_head(const Decoder& model, const WeightLayout& layout);
// The same bytes where they are held. A tied embedding that the host looks tokens up in and the device multiplies with
// exists twice.
PlacedBytes placed_weight_bytes(const Decoder& model, const WeightLayout& layout);

}  // namespace llmperf::model
