// The formulas of the published tx8 mapper (PJLAB-CHIP/LLMPerf-for-TiledArch, version of June 2024), for comparison
// only: docs/errata.md says what a machine could not do of it. Its units are kept: sizes in MiB over bandwidths in 10^9
// bytes/s give its "ms", operations are counted in 10^9.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "mapper/tile/machine.h"

namespace llmperf::mapper::tile {

struct PublishedTime {
  double seconds = 0;
  double compute = 0;           // s; over `seconds` it is what the mapper maximises
  std::int64_t splits[3] = {};  // products: of m, n and k; attention: queries, keys; vector: chunks
  bool transposed = false;      // products: the weights stay on the tiles in place of the inputs
  bool feasible() const { return seconds > 0; }
  double utilisation() const { return compute / seconds; }
};

// [b, m, k] x [k, n] on 16-bit elements, then a vector op of `fused_ops` operations on the results.
PublishedTime published_gemm(const Machine& machine, std::int64_t b, std::int64_t m, std::int64_t n, std::int64_t k,
                             double fused_ops = 0);
// `heads` heads of `head_dim` over s tokens.
PublishedTime published_attention(const Machine& machine, std::int64_t b, std::int64_t s, std::int64_t head_dim,
                                  std::int64_t heads);
// `ops` per element on [rows, columns] and a second operand of `second` elements. Only rows are split where `by_rows`.
PublishedTime published_vector(const Machine& machine, std::int64_t b, std::int64_t rows, std::int64_t columns,
                               double ops, double second, bool by_rows);

struct PublishedOp {
  std::string_view name;
  PublishedTime time;
  int count = 1;
};
// The op list of a decoder layer with multi-head attention and a gated MLP.
std::vector<PublishedOp> published_layer(const Machine& machine, std::int64_t batch, std::int64_t tokens,
                                         std::int64_t hidden, std::int64_t ffn, std::int64_t heads);

}  // namespace llmperf::mapper::tile
