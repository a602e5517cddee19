// Keys that attention reads, as a formula (base/term.h).
#pragma once

#include "base/integer.h"
#include "base/term.h"
#include "graph/op.h"

namespace llmperf::graph {

// … where the window does not slide: the pairs of whole chunks and of the last one, less those of cached queries.
template <class N>
N pairs_of_chunks(const Attention& a) {
  const Let<N> let;
  const std::int64_t end = a.context + a.q_tokens;
  const N keys = let("window", *a.window, "tokens of a chunk, of which a query sees those up to itself");
  const N whole = let("chunks", end / *a.window - a.context / *a.window, "chunks that end among the new tokens");
  const N rest = let("rest", end % *a.window, "tokens of the last chunk");
  const N before = let("rest_before", a.context % *a.window, "tokens of the first chunk that were cached before");
  return (whole * keys * (keys + 1) + rest * (rest + 1) - before * (before + 1)) / 2;
}

// Visible (query, key) pairs of one sequence. Queries before a window is full see context + i keys, the rest see the
// window. Where a key stands for `pool` tokens, as many pairs of tokens are one.
template <class N>
N pairs_of_sequence(const Attention& a) {
  using std::max, std::min;
  const Let<N> let;
  if (a.chunked) return pairs_of_chunks<N>(a);
  const N q = let("q", a.q_tokens, "new tokens of a sequence");
  if (a.keys > 0) return q * let("keys", a.keys, "keys that every query sees");
  const N context = let("context", a.context, "tokens cached before them");
  const N pool = a.pool > 1 ? let("pool", a.pool, "tokens that a key stands for") : N(1);
  if (!a.window) {
    const N all = let.noted(q * context + q * (q + 1) / 2,
                            "query i sees the cached tokens and the new ones up to itself; masked pairs are skipped");
    return a.pool > 1 ? grouped(all) / pool : all;
  }
  const N keys = let("window", *a.window, "keys a query may see, itself included");
  const N window = a.pool > 1 ? keys * pool : keys;
  const N growing =
      let.part("growing", min(q, max(N(0), window - context)), "queries that come before the window is full");
  const N all = growing * context + growing * (growing + 1) / 2 + (q - growing) * window;
  return a.pool > 1 ? grouped(all) / pool : all;
}

// Keys that at least one query of a tile sees, summed over the tiles of queries. A tile of rows first..last sees from
// the oldest key of its first row to the newest of its last row.
template <class N>
N keys_of_tiles(const Attention& a) {
  using std::max, std::min;
  const Let<N> let;
  const std::int64_t tile = a.query_tile > 0 ? std::min(a.query_tile, a.q_tokens) : a.q_tokens;
  const auto tiles = [&] { return let("tiles", divide_up(a.q_tokens, tile), "passes: q / tile, rounded up"); };
  if (a.keys > 0) return let("all_keys", a.keys, "keys that every query sees") * tiles();
  const N context = let("context", a.context, "tokens cached before the new ones");
  const N q = let("q", a.q_tokens, "new tokens of a sequence");
  if (a.picked && a.q_tokens > 1) {
    return let.noted(pairs_of_sequence<N>(a), "every query reads the keys that were chosen for it");
  }
  if (a.pool > 1) {
    const N entries = (context + q) / let("pool", a.pool, "tokens that a key stands for");
    return a.window ? min(entries, let("window", *a.window, "keys a query may see")) : entries;
  }
  if (tile == a.q_tokens && !a.chunked) {
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
    const std::int64_t chunk = (a.context + first - 1) / *a.window * *a.window;
    sum += a.context + last - (a.chunked ? chunk : std::max<std::int64_t>(0, a.context + first - *a.window));
  }
  return let.noted(let("keys_read", sum, "keys that a tile of queries sees, summed over the tiles"),
                   "{} queries in tiles of {}, a {} of {}", a.q_tokens, tile, a.chunked ? "chunk" : "window",
                   *a.window);
}

}  // namespace llmperf::graph
