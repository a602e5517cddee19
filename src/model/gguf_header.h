// The header of one GGUF file, be it a whole model or one of its shards.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

#include "model/gguf_file.h"
#include "model/gguf_stream.h"

namespace llmperf::model {

// What may still be kept of a model, over all its files. The largest models have some 50,000 tensors (every expert on
// its own) with names of 40 bytes, and about a hundred settings. Entries and descriptions take up to 128 bytes each
// beside their texts, so that a reader stays below 40 MB even while its vectors grow.
struct GgufBudget {
  std::int64_t entries = 32'768;
  std::int64_t tensors = 65'536;
  std::int64_t kept_bytes = std::int64_t{8} << 20;  // keys, names, strings and numbers
};

struct GgufHeader {
  int version = 3;
  bool big_endian = false;
  std::vector<GgufEntry> metadata;
  std::vector<GgufTensorInfo> tensors;
};

// Throws Error(bad_input) with all that is wrong, at most twenty places: after a broken length nothing more is found,
// but one bad tensor does not hide the next. Names of tensors are not compared (they may be in different files).
GgufHeader read_gguf_header(const ByteSource& source, GgufBudget& budget);

// Indices of `items` in the order of key(item); equal items keep theirs.
template <class Item, class Key>
std::vector<std::size_t> order_by(const std::vector<Item>& items, Key key) {
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return key(items[a]) < key(items[b]); });
  return order;
}

bool is_gguf_magic(std::string_view first_bytes);

}  // namespace llmperf::model
