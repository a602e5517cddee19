// What the tests of GGUF files share.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "catch.h"
#include "model/gguf/file.h"
#include "model/gguf_writer.h"

template <class Value>
Value value_of(const llmperf::model::GgufFile& file, std::string_view key) {
  const llmperf::model::GgufEntry* entry = file.find(key);
  REQUIRE(entry != nullptr);
  REQUIRE(std::holds_alternative<Value>(entry->value));
  return std::get<Value>(entry->value);
}

// Metadata of every type and three tensors of 576, 12 and 1020 bytes.
inline GgufWriter every_type(GgufWriterOptions options) {
  using llmperf::model::GgmlType;
  GgufWriter writer(options);
  writer.add("general.architecture", "qwen2");
  writer.add("u8", std::uint8_t{200}).add("i8", std::int8_t{-100});
  writer.add("u16", std::uint16_t{60'000}).add("i16", std::int16_t{-30'000});
  writer.add("u32", std::uint32_t{4'000'000'000}).add("i32", std::int32_t{-2'000'000'000});
  writer.add("u64", std::uint64_t{1} << 60).add("i64", std::numeric_limits<std::int64_t>::min());
  writer.add("f32", 0.15625F).add("f64", 1e300).add("yes", true).add("no", false);
  writer.add("empty", "");
  writer.add_array("layers", std::vector<std::int32_t>{8, -8, 4});
  writer.add_array("factors", std::vector<float>{1.5F, -0.25F});
  writer.add_array("flags", std::vector<bool>{true, false, true});
  writer.add_array("tokenizer.ggml.tokens", std::vector<std::string>{"<s>", "", "token"});
  writer.tensor("token_embd.weight", {256, 4}, GgmlType::q4_k);  // 4 rows of 144 bytes
  writer.tensor("output_norm.weight", {3}, GgmlType::f32);
  writer.tensor("experts", {32, 2, 5, 3}, GgmlType::q8_0);  // 30 rows of 34 bytes
  return writer;
}

inline std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 0xff);
  return text;
}

// A file without metadata whose tensors are as described, and `data` bytes of data.
struct RawTensor {
  std::string name = "t";
  std::vector<std::uint64_t> shape = {8};
  std::uint32_t type = 0;  // F32
  std::uint64_t offset = 0;
};
inline std::string raw_file(const std::vector<RawTensor>& tensors, std::size_t data) {
  std::string text = "GGUF" + little(3, 4) + little(tensors.size(), 8) + little(0, 8);
  for (const RawTensor& t : tensors) {
    text += little(t.name.size(), 8) + t.name + little(t.shape.size(), 4);
    for (const std::uint64_t extent : t.shape) text += little(extent, 8);
    text += little(t.type, 4) + little(t.offset, 8);
  }
  text.resize((text.size() + 31) / 32 * 32 + data);
  return text;
}
