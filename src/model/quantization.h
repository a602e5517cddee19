// How weights, KV cache and activations are stored, and at which type a matrix product with such weights is computed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/format_kernel.h"
#include "base/units.h"

namespace llmperf::model {

// Storage of one class of matrices [n, k] (n outputs, k inputs).
struct StoredFormat {
  std::string_view name = {};  // of a ggml type ("Q4_K"), of static storage; empty: the scheme's name says it all
  double bits = 16;            // payload per element
  int group = 0;               // elements along k that share scale and zero point; 0: none per group
  double bits_per_group = 0;   // scale + zero point of a group
  double bits_per_row = 0;     // scale (and zero point) per output row
  double bits_per_tensor = 0;  // one scale for the whole matrix
  double bits_per_block = 0;   // scale per two-dimensional block x block tile (DeepSeek fp8); 0: none
  int block = 0;
  Dtype compute = Dtype::bf16;              // operand type of the matrix product
  double dequant_flops = 0;                 // vector operations per element to bring it to `compute`; 0: used as stored
  std::optional<FormatKernel> kernel = {};  // that multiplies with it; none: a dense product

  // Stored bytes of an [n, k] matrix, scales and zeros included; groups and blocks are rounded up.
  Bytes bytes(std::int64_t n, std::int64_t k) const;
  bool operator==(const StoredFormat&) const = default;
};

// A whole-model weight scheme: which matrices are stored how. Norm weights and biases take `vector_bits`.
struct WeightScheme {
  std::string name;                               // canonical: "bf16", "w4a16-g128", "4.5"
  StoredFormat linear;                            // attention, MLP and shared-expert matrices of the decoder layers
  StoredFormat expert;                            // routed experts
  StoredFormat embedding;                         // token embedding and lm_head
  StoredFormat other;                             // routers and other small matrices that quantisers leave alone
  double vector_bits = 16;                        // per element of norm weights and biases
  std::optional<StoredFormat> feed_forward = {};  // gate, up and down of dense layers and shared experts, if another
  std::optional<StoredFormat> down = {};          // down of all layers and experts, if another than gate and up
  std::optional<StoredFormat> lm_head = {};       // if another than the embedding
  bool embedding_on_host = false;                 // in the memory of the host
};

// Schemes: fp32, fp16, bf16, fp8 (per-tensor scale), fp8-channel (fp32 scale per row), fp8-block128 (DeepSeek), int8
// (= w8a16: per-row scale, weights only), w8a8 (int8 products), w4a8 (the same of 4-bit weights), w4a16[-gN][-sym]
// (aliases gptq[-int4][-gN][-sym]; awq[-int4][-gN][-sym] is stored alike, its kernels differ; N = 32, 64, 128, 256 or
// any positive; default 128; fp16 scale and 4-bit zero per group, -sym: no zero), nf4 (bitsandbytes: blocks of 64 with
// an fp32 scale), nf4-double (with an 8-bit scale that 256 blocks share an fp32 scale for), nvfp4 (blocks of 16 with an
// fp8 scale, and an fp32 scale per matrix), bfp8 and bfp4 (Tenstorrent's block formats: 16 elements share an exponent
// of 8 bits; embedding and lm_head too), bfp4-mlp (bfp4 in gate and up, and bfp8 in the rest, down among it:
// tt-transformers' performance mode), exl2-Nbpw[-hN] (ExLlamaV2: 2 to 8 bits, of lm_head 2 to 8, 6 by default), mxfp4
// (routed experts in blocks of 32 with an 8-bit scale, the rest bf16), or a number of bits per weight in (0, 64] that
// then holds for every tensor. `wide` is the 16-bit type that unquantised parts use. Throws Error(bad_input) with the
// nearest scheme names.
WeightScheme parse_weight_scheme(std::string_view text, Dtype wide = Dtype::bf16);
std::vector<std::string> weight_scheme_names();

// How one element of the KV cache is stored; block scales are part of `bits`.
struct ElementFormat {
  std::string_view name = "bf16";  // of static storage
  double bits = 16;
  int block = 1;  // elements of a row that share a scale: a token's row must be a multiple of it
  bool operator==(const ElementFormat&) const = default;
};
constexpr double bytes_per_element(const ElementFormat& format) { return format.bits / 8; }
ElementFormat element_format(Dtype dtype);

struct CacheScheme {
  ElementFormat keys = {};
  ElementFormat values = {};
  std::string name() const;  // "fp16", or "q8_0/q4_0" where keys and values differ
  bool operator==(const CacheScheme&) const = default;
};

// KV cache element type: fp32 (f32), bf16, fp16 (f16), fp8, int8, int4, whose scales are static per channel and not
// stored with the cache; or a ggml block type with its scales: q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl.
ElementFormat parse_kv_scheme(std::string_view text);
std::vector<std::string> kv_scheme_names();
// Activation type: fp32, bf16, fp16. Throws like parse_weight_scheme.
Dtype parse_activation_dtype(std::string_view text);

}  // namespace llmperf::model
