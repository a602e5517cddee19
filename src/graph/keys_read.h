// Keys that attention reads, as a formula (base/term.h).
#pragma once

#include "base/integer.h"
#include "base/term.h"
#include "graph/op.h"

namespace llmperf::graph {

// Keys that at least one query of a tile sees, summed over the tiles of queries. A tile of rows first..last sees from
// the oldest key of its first row to the newest of its last row.
template <class N>
N keys_of_tiles(const Attention& a) {
  using std::max;
  const Let<N> let;
  const std::int64_t tile = a.query_tile > 0 ? std::min(a.query_tile, a.q_tokens) : a.q_tokens;
  const auto tiles = [&] { return let("tiles", divide_up(a.q_tokens, tile), "passes: q / tile, rounded up"); };
  if (a.keys > 0) return let("all_keys", a.keys, "keys that every query sees") * tiles();
  const N context = let("context", a.context, "tokens cached before the new ones");
  const N q = let("q", a.q_tokens, "new tokens of a sequence");
  if (tile == a.q_tokens) {
    const N once =
        a.window
            ? context + q - max(N(0), context + 1 - let("window", *a.window, "keys a query may see, itself included"))
            : context + q;
    return let.noted(once, "keys and values are read once for all queries that share them");
  }
  if (!a.window) {
    const N each = let("tile", tile, "queries that share one pass over keys and values");
    return tiles() * context + each * tiles() * (tiles() - 1) / 2 + q;
  }
  std::int64_t sum = 0;
  for (std::int64_t first = 1; first <= a.q_tokens; first += tile) {
    const std::int64_t last = std::min(first + tile - 1, a.q_tokens);
    sum += a.context + last - std::max<std::int64_t>(0, a.context + first - *a.window);
  }
  return let.noted(let("keys_read", sum, "keys that a tile of queries sees, summed over the tiles"),
                   "{} queries in tiles of {}, a window of {}", a.q_tokens, tile, *a.window);
}

}  // namespace llmperf::graph
