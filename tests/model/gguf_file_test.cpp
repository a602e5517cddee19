#include <sys/stat.h>

#include <chrono>
#include <string>
#include <vector>

#include "catch.h"
#include "descriptor/bad_input.h"
#include "descriptor/temporary_folder.h"
#include "model/gguf/file.h"
#include "model/gguf_samples.h"
#include "model/gguf_writer.h"

namespace llmperf::gguf_file_test {

using namespace llmperf::model;

// Written by hand from the tables of ggml's docs/gguf.md, independently of the writer: what a byte means is fixed here.
TEST_CASE("a file put together byte by byte from the specification is read as it says") {
  using namespace std::string_literals;
  std::string bytes =
      "GGUF"
      "\x03\x00\x00\x00"                  // version
      "\x01\x00\x00\x00\x00\x00\x00\x00"  // tensors
      "\x02\x00\x00\x00\x00\x00\x00\x00"  // entries
      "\x11\x00\x00\x00\x00\x00\x00\x00"
      "general.alignment"
      "\x04\x00\x00\x00"  // u32
      "\x40\x00\x00\x00"
      "\x01\x00\x00\x00\x00\x00\x00\x00"
      "a"
      "\x09\x00\x00\x00"                  // array
      "\x03\x00\x00\x00"                  // of i16
      "\x02\x00\x00\x00\x00\x00\x00\x00"  // two
      "\x05\x00\xfb\xff"                  // 5, -5
      "\x01\x00\x00\x00\x00\x00\x00\x00"
      "w"
      "\x02\x00\x00\x00"                    // dimensions
      "\x20\x00\x00\x00\x00\x00\x00\x00"    // 32 in a row
      "\x03\x00\x00\x00\x00\x00\x00\x00"    // 3 rows
      "\x02\x00\x00\x00"                    // Q4_0: 18 bytes for 32 elements
      "\x40\x00\x00\x00\x00\x00\x00\x00"s;  // 64 bytes into the data
  REQUIRE(bytes.size() == 24 + 33 + 29 + 41);
  bytes.resize(128 + 64 + 54);  // data from byte 128 on, the next multiple of 64
  const GgufFile file = parse_gguf(bytes, "m.gguf");
  CHECK(file.version == 3);
  CHECK_FALSE(file.big_endian);
  CHECK(value_of<std::int64_t>(file, "general.alignment") == 64);
  CHECK(value_of<GgufArray>(file, "a").numbers == std::vector<double>{5, -5});
  CHECK(file.metadata[1].offset == 24 + 33);
  REQUIRE(file.tensors.size() == 1);
  const GgufTensorInfo& tensor = file.tensors[0];
  CHECK(tensor.name == "w");
  CHECK(tensor.type == GgmlType::q4_0);
  CHECK(tensor.dimensions == 2);
  CHECK(tensor.shape == std::array<std::int64_t, 4>{32, 3, 1, 1});
  CHECK(tensor.elements() == 96);
  CHECK(tensor.bytes == 54);
  CHECK(tensor.offset == 24 + 33 + 29);
  CHECK(tensor.data_offset == 192);
  CHECK(file.tensor_bytes == 54);
  CHECK(file.file_bytes == 246);
}

TEST_CASE("what is written is read back, in both versions and both byte orders") {
  const auto version = GENERATE(2U, 3U);
  const auto big_endian = GENERATE(false, true);
  const auto alignment = GENERATE(std::int64_t{8}, std::int64_t{32}, std::int64_t{4096});
  const GgufWriter writer = every_type({.version = version, .big_endian = big_endian, .alignment = alignment});
  const GgufFile file = parse_gguf(writer.bytes(), "m.gguf");
  CHECK(file.version == static_cast<int>(version));
  CHECK(file.big_endian == big_endian);
  CHECK(value_of<std::string>(file, "general.architecture") == "qwen2");
  CHECK(value_of<std::int64_t>(file, "u8") == 200);
  CHECK(value_of<std::int64_t>(file, "i8") == -100);
  CHECK(value_of<std::int64_t>(file, "u16") == 60'000);
  CHECK(value_of<std::int64_t>(file, "i16") == -30'000);
  CHECK(value_of<std::int64_t>(file, "u32") == 4'000'000'000);
  CHECK(value_of<std::int64_t>(file, "i32") == -2'000'000'000);
  CHECK(value_of<std::int64_t>(file, "u64") == std::int64_t{1} << 60);
  CHECK(value_of<std::int64_t>(file, "i64") == std::numeric_limits<std::int64_t>::min());
  CHECK(value_of<double>(file, "f32") == 0.15625);
  CHECK(value_of<double>(file, "f64") == 1e300);
  CHECK(value_of<bool>(file, "yes"));
  CHECK_FALSE(value_of<bool>(file, "no"));
  CHECK(value_of<std::string>(file, "empty").empty());
  CHECK(value_of<GgufArray>(file, "layers").numbers == std::vector<double>{8, -8, 4});
  CHECK(value_of<GgufArray>(file, "factors").numbers == std::vector<double>{1.5, -0.25});
  CHECK(value_of<GgufArray>(file, "flags").numbers == std::vector<double>{1, 0, 1});
  CHECK(value_of<GgufArray>(file, "tokenizer.ggml.tokens").length == 3);
  CHECK(value_of<GgufArray>(file, "tokenizer.ggml.tokens").numbers.empty());
  CHECK(file.find("missing") == nullptr);
  REQUIRE(file.tensors.size() == 3);
  CHECK(file.tensors[0].bytes == 4 * 144);
  CHECK(file.tensors[1].bytes == 12);
  CHECK(file.tensors[2].bytes == 30 * 34);
  CHECK(file.tensors[2].shape == std::array<std::int64_t, 4>{32, 2, 5, 3});
  CHECK(file.tensor_bytes == 4 * 144 + 12 + 30 * 34);
  CHECK(file.tensors[0].data_offset == static_cast<std::int64_t>(writer.header().size()));
  for (const GgufTensorInfo& tensor : file.tensors) CHECK(tensor.data_offset % alignment == 0);
}

TEST_CASE("a reversed magic number, which gguf-py knows too, means big endian") {
  std::string bytes = every_type({.big_endian = true}).bytes();
  bytes.replace(0, 4, "FUGG");
  CHECK(parse_gguf(bytes, "m.gguf").big_endian);
}

TEST_CASE("every tensor type takes the bytes of its blocks") {
  GgufWriter writer;
  for (const GgmlTypeInfo& type : ggml_types()) writer.tensor(std::string(type.name), {type.block * 2, 3}, type.type);
  const GgufFile file = parse_gguf(writer.bytes(), "m.gguf");
  REQUIRE(file.tensors.size() == ggml_types().size());
  for (const GgufTensorInfo& tensor : file.tensors) CHECK(tensor.bytes == 6 * info(tensor.type).block_bytes);
}

TEST_CASE("a tensor of no dimensions is a single value") {
  const GgufFile file = parse_gguf(raw_file({{.shape = {}}}, 4), "m.gguf");
  CHECK(file.tensors[0].dimensions == 0);
  CHECK(file.tensors[0].bytes == 4);
}

TEST_CASE("long strings are not kept, and of long arrays the length only") {
  GgufWriter writer;
  writer.add("limit", std::string(64 * 1024, 'x')).add("template", std::string(64 * 1024 + 1, 'x'));
  writer.add_array("few", std::vector<float>(4096, 2.5F)).add_array("many", std::vector<float>(4097, 2.5F));
  writer.add("last", true);
  const GgufFile file = parse_gguf(writer.bytes(), "m.gguf");
  CHECK(value_of<std::string>(file, "limit").size() == 64 * 1024);
  CHECK(value_of<std::string>(file, "template").empty());
  CHECK(value_of<GgufArray>(file, "few").numbers == std::vector<double>(4096, 2.5));
  CHECK(value_of<GgufArray>(file, "many").length == 4097);
  CHECK(value_of<GgufArray>(file, "many").numbers.empty());
  CHECK(value_of<bool>(file, "last"));
}

TEST_CASE("a file of 100 GB takes no longer than its header") {
  const TemporaryFolder folder;
  const std::string path = folder.path("large.gguf");
  GgufWriter writer;
  writer.add("general.architecture", "llama");
  writer.add_array("tokenizer.ggml.tokens", std::vector<std::string>(150'000, "token"));
  for (int i = 0; i < 100; ++i) writer.tensor("blk." + std::to_string(i), {50'000, 10'000}, GgmlType::f16);  // 1 GB
  writer.write(path);
  const auto start = std::chrono::steady_clock::now();
  const GgufFile file = read_gguf(path);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  CHECK(file.tensor_bytes == 100'000'000'000);
  CHECK(file.file_bytes > 100'000'000'000);
  CHECK(value_of<GgufArray>(file, "tokenizer.ggml.tokens").length == 150'000);
  CHECK(time.count() < 1);  // a few ms; reading the data would take minutes
}

TEST_CASE("what cannot be opened as a file is refused like any other input") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& path) { return bad_input([&] { read_gguf(path); }); };
  CHECK(refused(folder.path("none")) == folder.path("none") + ": cannot open: No such file or directory");
  CHECK(refused(folder.path("")) == folder.path("") + ": is a directory, not a file");
  REQUIRE(::mkfifo(folder.path("fifo").c_str(), 0600) == 0);
  CHECK(refused(folder.path("fifo")) == folder.path("fifo") + ": is not a regular file");
}

TEST_CASE("a GGUF file is known by its first bytes") {
  const TemporaryFolder folder;
  CHECK(is_gguf(folder.write("a", "GGUF")));
  CHECK(is_gguf(folder.write("b", "FUGG and more")));
  CHECK_FALSE(is_gguf(folder.write("c", "GGU")));
  CHECK_FALSE(is_gguf(folder.write("d.gguf", "{\"model_type\": \"qwen2\"}")));
  CHECK_FALSE(is_gguf(folder.path("none")));
  CHECK_FALSE(is_gguf(folder.path("")));
}

}  // namespace llmperf::gguf_file_test
