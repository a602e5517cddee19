// GGUF files that are refused: the message, and the byte it points to.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "catch.h"
#include "descriptor/bad_input.h"
#include "descriptor/temporary_folder.h"
#include "model/gguf/file.h"
#include "model/gguf_samples.h"
#include "model/gguf_writer.h"

namespace llmperf::gguf_bad_file_test {

using namespace llmperf::model;

namespace {

// A file of one entry whose value starts with the bytes `value` (little endian) and nothing else.
std::string one_entry(std::uint8_t type, const std::string& value) {
  using namespace std::string_literals;
  return "GGUF\3\0\0\0"s + std::string(8, '\0') + "\1\0\0\0\0\0\0\0"s + "\1\0\0\0\0\0\0\0k"s +
         std::string(1, static_cast<char>(type)) + "\0\0\0"s + value;
}

std::string refusal(const std::string& bytes) {
  return bad_input([&] { parse_gguf(bytes, "m.gguf"); });
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

TEST_CASE("what is no GGUF file of a known version is refused at its first bytes") {
  CHECK(refusal("") ==
        "m.gguf: byte 0: the file ends within the magic number: 4 bytes are needed, 0 are left\n"
        "  hint: the file may be incomplete");
  CHECK(refusal("lmgg....") == "m.gguf: byte 0: not a GGUF file: it starts with 'lmgg' instead of 'GGUF'");
  CHECK(refusal("version https://git-lfs.github.com/spec/v1").find("'git lfs pull'") != std::string::npos);
  CHECK(refusal("GGUF" + little(1, 4)) ==
        "m.gguf: byte 4: GGUF version 1 is no longer supported\n"
        "  hint: convert or quantise the model again with a current llama.cpp");
  CHECK(refusal("GGUF" + little(0x01000000, 4)).find("version 1 is no longer supported") != std::string::npos);
  CHECK(refusal("GGUF" + little(4, 4)) == "m.gguf: byte 4: unknown GGUF version 4: llmperf reads 2 and 3");
  CHECK(refusal("GGUF" + little(0, 4)) == "m.gguf: byte 4: unknown GGUF version 0: llmperf reads 2 and 3");
}

TEST_CASE("a file cut anywhere is refused at a place within it") {
  const std::string whole = every_type({.alignment = 8}).bytes();
  const std::size_t padding = 4;  // after the last tensor: 30 * 34 = 1020 bytes
  for (std::size_t size = 0; size < whole.size() - padding; ++size) {
    try {
      parse_gguf(std::string_view(whole).substr(0, size), "m.gguf");
      FAIL("accepted when cut to " << size << " bytes");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::bad_input);
      for (const Diagnostic& d : error.diagnostics()) {
        REQUIRE(d.where.byte.has_value());
        CHECK(*d.where.byte <= static_cast<std::int64_t>(size));
      }
    }
  }
  CHECK_NOTHROW(parse_gguf(std::string_view(whole).substr(0, whole.size() - padding), "m.gguf"));
}

TEST_CASE("a count is compared with the bytes that are left before anything is made of it") {
  CHECK(refusal("GGUF" + little(3, 4) + little(0, 8) + little(1'000'000'000, 8) + std::string(1000, '\1')) ==
        "m.gguf: byte 16: 1000000000 metadata entries take at least 14 bytes each, but only 1000 bytes are left");
  CHECK(refusal("GGUF" + little(3, 4) + little(UINT64_MAX, 8) + little(0, 8)) ==
        "m.gguf: byte 8: 18446744073709551615 tensors take at least 25 bytes each, but only 0 bytes are left");
  CHECK(refusal(one_entry(9, little(8, 4) + little(std::uint64_t{1} << 60, 8) + "....")) ==
        "m.gguf: byte 41: 1152921504606846976 elements of an array take at least 8 bytes each, but only 4 bytes are "
        "left");
  CHECK(refusal(one_entry(9, little(12, 4) + little(std::uint64_t{1} << 61, 8))).find("byte 41") != std::string::npos);
  CHECK(refusal(one_entry(8, little(100, 8) + "short")) ==
        "m.gguf: byte 37: a string takes 100 bytes, but only 5 bytes are left in the file");
  CHECK(refusal(one_entry(9, little(8, 4) + little(2, 8) + little(UINT64_MAX, 8) + little(0, 8))) ==
        "m.gguf: byte 49: a string takes 18446744073709551615 bytes, but only 8 bytes are left in the file");
}

TEST_CASE("metadata that is malformed is refused where it stands") {
  CHECK(refusal(one_entry(13, "....")) == "m.gguf: byte 33: unknown value type 13");
  CHECK(refusal(one_entry(9, little(99, 4) + little(0, 8))) == "m.gguf: byte 37: unknown value type 99");
  CHECK(refusal(one_entry(9, little(9, 4) + little(1, 8))) == "m.gguf: byte 37: arrays of arrays are not supported");
  CHECK(refusal(one_entry(7, "\2")) == "m.gguf: byte 37: a boolean must be 0 or 1, not 2");
  CHECK(refusal(one_entry(10, little(std::uint64_t{1} << 63, 8))) ==
        "m.gguf: byte 37: 9223372036854775808 is larger than 2^63 - 1");
  CHECK(refusal(GgufWriter().add("", std::uint8_t{1}).add("k", std::uint8_t{1}).bytes()) ==
        "m.gguf: byte 24: the key of a metadata entry is empty");
  CHECK(refusal(GgufWriter().add(std::string(65'536, 'k'), std::uint8_t{1}).bytes()) ==
        "m.gguf: byte 24: the key of a metadata entry takes 65536 bytes: more than 65535");
  CHECK(refusal(GgufWriter().add("k", std::uint8_t{1}).add("l", true).add("k", true).bytes()) ==
        "m.gguf: byte 52: duplicate key 'k': first at byte 24");
}

TEST_CASE("the alignment must be a power of two from 8 on") {
  const auto with = [](std::uint32_t alignment) {
    return GgufWriter().add("general.alignment", alignment).tensor("t", {8}, GgmlType::f32).bytes();
  };
  for (const std::uint32_t bad : {0U, 4U, 24U, 1U << 31}) {
    CHECK(refusal(with(bad)) == "m.gguf: byte 24: general.alignment must be a power of two from 8 to 16777216");
  }
  CHECK(refusal(GgufWriter().add("general.alignment", "32").bytes()).find("byte 24") != std::string::npos);
  CHECK_NOTHROW(parse_gguf(with(8), "m.gguf"));
}

TEST_CASE("a tensor that cannot be is refused at the field that is wrong") {
  // The name stands at byte 24, the number of dimensions at 33, the shape at 37, then the type and the offset.
  CHECK(refusal(raw_file({{.shape = {1, 1, 1, 1, 1}}}, 32)) ==
        "m.gguf: byte 33: tensor 't' has 5 dimensions: more than 4");
  CHECK(refusal(raw_file({{.shape = {8, 0}}}, 32)) ==
        "m.gguf: byte 37: tensor 't' has no elements or more than 2^63 - 1");
  CHECK(refusal(raw_file({{.shape = {1U << 31, 1U << 31, 2}}}, 32)) ==
        "m.gguf: byte 37: tensor 't' has no elements or more than 2^63 - 1");
  CHECK(refusal(raw_file({{.shape = {UINT64_MAX}}}, 32)) ==
        "m.gguf: byte 37: tensor 't' has no elements or more than 2^63 - 1");
  CHECK(refusal(raw_file({{.shape = {std::uint64_t{1} << 62}}}, 32)) ==
        "m.gguf: byte 37: tensor 't' has more than 2^63 - 1 bytes");
  CHECK(refusal(raw_file({{.shape = {100}, .type = 12}}, 144)) ==
        "m.gguf: byte 37: tensor 't' has rows of 100 elements, but Q4_K needs a multiple of 256");
  // 64 x 4 has as many elements as one block, but a block does not reach over rows.
  CHECK(refusal(raw_file({{.shape = {64, 4}, .type = 12}}, 144)).find("rows of 64 elements") != std::string::npos);
  CHECK(refusal(raw_file({{.type = 1000}}, 32)) == "m.gguf: byte 45: tensor 't' has the unknown type 1000");
  CHECK(refusal(raw_file({{.offset = 8}}, 64)) ==
        "m.gguf: byte 49: tensor 't' starts at offset 8, no multiple of the alignment 32");
  CHECK(refusal(raw_file({{.offset = std::uint64_t{1} << 63}}, 64)) ==
        "m.gguf: byte 49: tensor 't' starts at offset 9223372036854775808: beyond the end of the file");
  CHECK(refusal(raw_file({{.name = ""}}, 32)) == "m.gguf: byte 24: the name of a tensor is empty");
  CHECK(refusal(raw_file({{.name = std::string(257, 'n')}}, 32)) ==
        "m.gguf: byte 24: the name of a tensor takes 257 bytes: more than 256");
}

TEST_CASE("a type that ggml has removed is named") {
  CHECK(refusal(raw_file({{.type = 4}}, 32)) ==
        "m.gguf: byte 45: tensor 't' has type 4 (Q4_2), which ggml has removed\n"
        "  hint: convert or quantise the model again with a current llama.cpp");
  for (const std::uint32_t id : {4U, 5U, 31U, 32U, 33U, 36U, 37U, 38U}) {
    CHECK(refusal(raw_file({{.type = id}}, 32)).find("which ggml has removed") != std::string::npos);
  }
}

TEST_CASE("data must lie in the file and belong to one tensor") {
  CHECK_NOTHROW(parse_gguf(raw_file({{.name = "a"}, {.name = "b", .offset = 32}}, 64), "m.gguf"));
  CHECK_NOTHROW(parse_gguf(raw_file({{.name = "a", .offset = 32}, {.name = "b"}}, 64), "m.gguf"));
  // Two descriptions of 33 bytes from byte 24 on, so the data starts at byte 96.
  CHECK(refusal(raw_file({{.name = "a"}, {.name = "b"}}, 64)) ==
        "m.gguf: byte 57: the data of tensors 'a' and 'b' overlap");
  CHECK(refusal(raw_file({{.name = "a", .shape = {33}, .type = 24}, {.name = "b", .offset = 32}}, 64)) ==  // 33 bytes
        "m.gguf: byte 57: the data of tensors 'a' and 'b' overlap");
  CHECK(refusal(raw_file({{.name = "a"}, {.name = "b", .offset = 32}}, 63)) ==
        "m.gguf: byte 57: the data of tensor 'b' ends beyond the end of the file, which has 159 bytes instead of at "
        "least 160\n  hint: the file may be incomplete");
  CHECK(first_line(refusal(raw_file({{.name = "a"}, {.name = "b", .offset = 32}, {.name = "c", .offset = 64}}, 40))) ==
        "m.gguf: byte 57: the data of tensor 'b' and 1 more end beyond the end of the file, which has 168 bytes "
        "instead of at least 224");
}

TEST_CASE("all bad tensors of a file are named, up to twenty") {
  CHECK(refusal(raw_file({{.name = "a", .type = 99}, {.name = "b"}, {.name = "c", .shape = {0}}}, 96)) ==
        "m.gguf: byte 45: tensor 'a' has the unknown type 99\n"
        "m.gguf: byte 103: tensor 'c' has no elements or more than 2^63 - 1");
  std::vector<RawTensor> many;
  for (int i = 0; i < 30; ++i) many.push_back({.name = "t" + std::to_string(i), .type = 99});
  const std::string text = refusal(raw_file(many, 32));
  CHECK(text.find("'t19'") != std::string::npos);
  CHECK(text.find("'t20'") == std::string::npos);
  CHECK(text.find("too many errors") != std::string::npos);
}

TEST_CASE("two tensors cannot have one name") {
  CHECK(refusal(raw_file({{.name = "a"}, {.name = "b", .offset = 32}, {.name = "a", .offset = 64}}, 96)) ==
        "m.gguf: byte 90: duplicate tensor 'a': first at byte 24");
}

TEST_CASE("names from a file reach the terminal escaped") {
  const std::string text = refusal(raw_file({{.name = "\x1b[2J", .type = 99}}, 32));
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("what would take too much memory is refused, though the file is large enough") {
  const TemporaryFolder folder;
  const auto sparse = [&](const std::string& start, std::uintmax_t size) {
    const std::string path = folder.write("m.gguf", start);
    std::filesystem::resize_file(path, size);
    return bad_input([&] { read_gguf(path); });
  };
  constexpr std::uintmax_t k100GB = 100'000'000'000;
  CHECK(sparse("GGUF" + little(3, 4) + little(0, 8) + little(1'000'000'000, 8), k100GB)
            .ends_with("m.gguf: byte 16: 1000000000 metadata entries: too many for one model"));
  CHECK(sparse("GGUF" + little(3, 4) + little(1'000'000'000, 8) + little(0, 8), k100GB)
            .ends_with("m.gguf: byte 8: 1000000000 tensors: too many for one model"));
  // The rest of the file as one array of empty strings, of bytes, or one string: none ends where a header may end.
  CHECK(sparse(one_entry(9, little(8, 4) + little(10'000'000'000, 8)), k100GB).find("longer than 64 MiB") !=
        std::string::npos);
  CHECK(sparse(one_entry(9, little(0, 4) + little(90'000'000'000, 8)), k100GB).find("longer than 64 MiB") !=
        std::string::npos);
  CHECK(sparse(one_entry(8, little(90'000'000'000, 8)), k100GB).find("longer than 64 MiB") != std::string::npos);

  GgufWriter strings;
  for (int i = 0; i < 200; ++i) strings.add("key" + std::to_string(i), std::string(60'000, 'x'));
  CHECK(refusal(strings.bytes()).find("take more than 8 MiB") != std::string::npos);
  GgufWriter arrays;
  for (int i = 0; i < 300; ++i) arrays.add_array("key" + std::to_string(i), std::vector<bool>(4096));
  CHECK(refusal(arrays.bytes()).find("take more than 8 MiB") != std::string::npos);
}

}  // namespace llmperf::gguf_bad_file_test
