// The header of a GGUF file (versions 2 and 3, either byte order, split or whole): its metadata and the type, shape and
// place of every tensor. Tensor data is skipped over, whatever its size. Layout: the GGUF specification in ggml's
// docs/gguf.md.
//
// A file is not trusted. Every count and length is checked against what is left of the file before anything is
// allocated for it, strings and arrays that no one asks for are skipped rather than kept, and a reader never holds more
// than a few tens of MB (the bounds are in file.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "model/quantization.h"

namespace llmperf::model {

// The tensor types of ggml, as files name them: how many elements share a block and how many bytes a block takes,
// scales included. Source: the block structs and the type enumeration of ggml (ggml-common.h, ggml.h).

// The values are ggml's own ids, as stored in files. Ids that ggml has removed are absent.
// clang-format off
enum class GgmlType : std::uint32_t {
  f32 = 0, f16 = 1, q4_0 = 2, q4_1 = 3, q5_0 = 6, q5_1 = 7, q8_0 = 8, q8_1 = 9, q2_k = 10, q3_k = 11, q4_k = 12,
  q5_k = 13, q6_k = 14, q8_k = 15, iq2_xxs = 16, iq2_xs = 17, iq3_xxs = 18, iq1_s = 19, iq4_nl = 20, iq3_s = 21,
  iq2_s = 22, iq4_xs = 23, i8 = 24, i16 = 25, i32 = 26, i64 = 27, f64 = 28, iq1_m = 29, bf16 = 30, tq1_0 = 34,
  tq2_0 = 35, mxfp4 = 39, nvfp4 = 40, q1_0 = 41, q2_0 = 42
};
// clang-format on

struct GgmlTypeInfo {
  GgmlType type;
  std::string_view name;   // "Q4_K", as llama.cpp prints it
  std::int64_t block = 1;  // elements along the inputs (ne[0]) that share a block
  std::int64_t block_bytes = 4;
  FormatKernel kernel = FormatKernel::iq;  // of a matrix product with it, where elements share blocks
  bool weights = true;  // holds the weights of a matrix product (integers and activation types do not)

  double bits() const { return 8 * static_cast<double>(block_bytes) / static_cast<double>(block); }
};

// Every type, by id.
std::span<const GgmlTypeInfo> ggml_types();
// The type with that id, or null: unknown, or removed from ggml.
const GgmlTypeInfo* find_ggml_type(std::uint32_t id);
const GgmlTypeInfo& info(GgmlType type);

// Bytes of an [n, k] matrix (n rows of k inputs each). k must be divisible by the block.
Bytes ggml_bytes(GgmlType type, std::int64_t n, std::int64_t k);

// How the cost model sees a tensor of that type. Quantised types are brought to fp16 before they are multiplied, which
// takes two vector operations per element (scale, offset or table look-up); floating-point types are used as stored.
StoredFormat stored_format(GgmlType type);

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
