// Writes small valid GGUF files for tests: metadata of every type, tensors of any type with random or no data, both
// versions and byte orders, whole or split. Layout: ggml's docs/gguf.md; the keys of shards: llama.cpp's gguf-split.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "model/gguf/file.h"

struct GgufWriterOptions {
  std::uint32_t version = 3;
  bool big_endian = false;
  std::int64_t alignment = 32;  // written as general.alignment when not 32
};

class GgufWriter {
 public:
  explicit GgufWriter(GgufWriterOptions options = {}) : options_(options) {
    if (options.alignment != 32) add("general.alignment", static_cast<std::uint32_t>(options.alignment));
  }

  // The type of the entry follows from the type of the value: std::uint16_t is u16, std::string is string, …
  template <class Value>
  GgufWriter& add(std::string_view key, const Value& value) {
    append_key(metadata_, key, type_id<Value>());
    append(metadata_, value);
    ++entries_;
    return *this;
  }
  GgufWriter& add(std::string_view key, const char* value) { return add(key, std::string(value)); }

  template <class Value>
  GgufWriter& add_array(std::string_view key, const std::vector<Value>& values) {
    append_key(metadata_, key, 9);
    append(metadata_, type_id<Value>());
    append(metadata_, static_cast<std::uint64_t>(values.size()));
    for (const auto& value : values) append<Value>(metadata_, value);
    ++entries_;
    return *this;
  }

  // `shape` is innermost first, as ggml has it.
  GgufWriter& tensor(std::string name, std::vector<std::int64_t> shape, llmperf::model::GgmlType type) {
    const llmperf::model::GgmlTypeInfo& info = llmperf::model::info(type);
    std::int64_t elements = 1;
    for (const std::int64_t extent : shape) elements *= extent;
    tensors_.push_back({std::move(name), std::move(shape), static_cast<std::uint32_t>(type),
                        elements / info.block * info.block_bytes});
    return *this;
  }

  // Everything before the data, padding included.
  std::string header() const { return header(0, tensors_.size(), entries_, metadata_); }
  std::int64_t data_bytes() const { return data_bytes(0, tensors_.size()); }

  // A whole file with random data.
  std::string bytes(unsigned seed = 1) const { return header() + random_text(data_bytes(), seed); }

  // A whole file with a hole for its data: it takes no more room than its header, whatever its size.
  void write(const std::string& path) const { write_sparse(path, header(), data_bytes()); }

  // name-00001-of-0000N.gguf, the tensors dealt out in order, the metadata in the first; sparse like write().
  std::vector<std::string> write_shards(const std::string& name, std::uint16_t count) const {
    std::vector<std::string> paths;
    for (std::uint16_t i = 0; i < count; ++i) {
      GgufWriter own(options_);  // holds general.alignment, like each shard must
      if (i == 0) {
        own.metadata_ = metadata_;
        own.entries_ = entries_;
      }
      own.add("split.no", i).add("split.count", count);
      own.add("split.tensors.count", static_cast<std::int32_t>(tensors_.size()));
      const std::size_t first = tensors_.size() * i / count;
      const std::size_t last = tensors_.size() * (i + 1U) / count;
      paths.push_back(shard_path(name, i, count));
      write_sparse(paths.back(), header(first, last, own.entries_, own.metadata_), data_bytes(first, last));
    }
    return paths;
  }

  static std::string shard_path(const std::string& name, int number, int count) {
    const auto five = [](int n) { return std::string(5 - std::to_string(n).size(), '0') + std::to_string(n); };
    return name + "-" + five(number + 1) + "-of-" + five(count) + ".gguf";
  }

 private:
  struct Tensor {
    std::string name;
    std::vector<std::int64_t> shape;
    std::uint32_t type;
    std::int64_t bytes;
  };

  template <class Value>
  static constexpr std::uint32_t type_id() {
    if constexpr (std::same_as<Value, std::string>) return 8;
    if constexpr (std::same_as<Value, bool>) return 7;
    if constexpr (std::same_as<Value, float>) return 6;
    if constexpr (std::same_as<Value, double>) return 12;
    constexpr bool is_signed = std::is_signed_v<Value>;
    if constexpr (sizeof(Value) == 1) return is_signed ? 1 : 0;
    if constexpr (sizeof(Value) == 2) return is_signed ? 3 : 2;
    if constexpr (sizeof(Value) == 4) return is_signed ? 5 : 4;
    return is_signed ? 11 : 10;
  }

  template <class Value>
  void append(std::string& out, const Value& value) const {
    if constexpr (std::same_as<Value, std::string>) {
      append(out, static_cast<std::uint64_t>(value.size()));
      out += value;
    } else if constexpr (std::same_as<Value, float>) {
      append(out, std::bit_cast<std::uint32_t>(value));
    } else if constexpr (std::same_as<Value, double>) {
      append(out, std::bit_cast<std::uint64_t>(value));
    } else {
      const auto raw = static_cast<std::uint64_t>(value);
      for (std::size_t i = 0; i < sizeof(Value); ++i) {
        const std::size_t byte = options_.big_endian ? sizeof(Value) - 1 - i : i;
        out += static_cast<char>(raw >> 8 * byte & 0xff);
      }
    }
  }

  void append_key(std::string& out, std::string_view key, std::uint32_t type) const {
    append(out, std::string(key));
    append(out, type);
  }

  std::int64_t aligned(std::int64_t offset) const {
    return (offset + options_.alignment - 1) / options_.alignment * options_.alignment;
  }

  std::int64_t data_bytes(std::size_t first, std::size_t last) const {
    std::int64_t total = 0;
    for (std::size_t i = first; i < last; ++i) total += aligned(tensors_[i].bytes);
    return total;
  }

  std::string header(std::size_t first, std::size_t last, std::uint64_t entries, const std::string& metadata) const {
    std::string out = "GGUF";
    append(out, options_.version);
    append(out, static_cast<std::uint64_t>(last - first));
    append(out, entries);
    out += metadata;
    std::int64_t offset = 0;
    for (std::size_t i = first; i < last; ++i) {
      const Tensor& tensor = tensors_[i];
      append(out, tensor.name);
      append(out, static_cast<std::uint32_t>(tensor.shape.size()));
      for (const std::int64_t extent : tensor.shape) append(out, static_cast<std::uint64_t>(extent));
      append(out, tensor.type);
      append(out, static_cast<std::uint64_t>(offset));
      offset += aligned(tensor.bytes);
    }
    out.resize(static_cast<std::size_t>(aligned(static_cast<std::int64_t>(out.size()))));
    return out;
  }

  static std::string random_text(std::int64_t length, unsigned seed) {
    std::mt19937 random(seed);
    std::string text;
    for (std::int64_t i = 0; i < length; ++i) text += static_cast<char>(random() & 0xff);
    return text;
  }

  static void write_sparse(const std::string& path, const std::string& header, std::int64_t data_bytes) {
    std::ofstream(path, std::ios::binary) << header;
    std::filesystem::resize_file(path, header.size() + static_cast<std::uintmax_t>(data_bytes));
  }

  GgufWriterOptions options_;
  std::string metadata_;
  std::uint64_t entries_ = 0;
  std::vector<Tensor> tensors_;
};
