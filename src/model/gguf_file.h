// The header of a GGUF file (versions 2 and 3, either byte order, split or whole): its metadata and the type, shape and
// place of every tensor. Tensor data is skipped over, whatever its size. Layout: the GGUF specification in ggml's
// docs/gguf.md.
//
// A file is not trusted. Every count and length is checked against what is left of the file before anything is
// allocated for it, strings and arrays that no one asks for are skipped rather than kept, and a reader never holds more
// than a few tens of MB (the bounds are in gguf_file.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "model/ggml_type.h"

namespace llmperf::model {

// A metadata value. Integers of any width become std::int64_t (an unsigned value above 2^63 - 1 is an error), floats
// double. Of an array the length is known and, for short arrays of numbers or booleans (per-layer settings), the
// elements. A string longer than 64 KiB is not kept: it reads as empty (no setting of a model is that long).
struct GgufArray {
  std::int64_t length = 0;
  std::vector<double> numbers;  // empty when the elements are strings or more than 4096
};
using GgufValue = std::variant<std::int64_t, double, bool, std::string, GgufArray>;

struct GgufEntry {
  std::string key;  // "qwen2.block_count"
  GgufValue value;
  std::int64_t offset = 0;  // of the key in the file, for diagnostics
  int shard = 0;
};

// A tensor as the file describes it.
struct GgufTensorInfo {
  std::string name;
  std::array<std::int64_t, 4> shape = {1, 1, 1, 1};  // ne, innermost first
  int dimensions = 1;                                // as stored; 0 for a single value
  GgmlType type = GgmlType::f32;
  std::int64_t offset = 0;       // of the description in the file, for diagnostics
  std::int64_t data_offset = 0;  // of the data, from the start of the file
  std::int64_t bytes = 0;        // of the data, padding left out
  int shard = 0;
  std::int64_t elements() const { return shape[0] * shape[1] * shape[2] * shape[3]; }
};

struct GgufFile {
  std::string path;  // as given
  int version = 3;
  bool big_endian = false;
  std::vector<GgufEntry> metadata;      // of the first shard, without the split.* keys of the others
  std::vector<GgufTensorInfo> tensors;  // of all shards
  std::vector<std::string> shards;      // paths, the first one included
  std::int64_t file_bytes = 0;          // sizes of all shards together
  std::int64_t tensor_bytes = 0;        // data of all tensors, padding left out

  const GgufEntry* find(std::string_view key) const;
};

// True when the file starts with the magic number of GGUF; false for anything else, also what cannot be opened.
bool is_gguf(const std::string& path);

// Opens `path` and, when its metadata says that it is one of a split model, all of name-00001-of-0000N.gguf, whichever
// of them was given. Throws Error(bad_input) when a file cannot be opened or read and, with the file and the byte
// offset
// ("model.gguf: byte 1234: …"), for anything malformed: a wrong magic or version, a truncated file, counts or lengths
// that exceed the file, an unknown value or tensor type, duplicate keys or tensors, a row that is no multiple of its
// block, data that overlaps or lies outside the file, a missing shard.
GgufFile read_gguf(const std::string& path);

// The same for a file held in memory, called `name` in messages. Other shards are not looked for.
GgufFile parse_gguf(std::string_view bytes, const std::string& name);

}  // namespace llmperf::model
