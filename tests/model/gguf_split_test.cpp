// Models split into several GGUF files.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "catch.h"
#include "descriptor/bad_input.h"
#include "descriptor/temporary_folder.h"
#include "model/gguf/file.h"
#include "model/gguf_samples.h"
#include "model/gguf_writer.h"

namespace llmperf::gguf_split_test {

using namespace llmperf::model;

TEST_CASE("a split model is read whole, whichever shard is given") {
  const TemporaryFolder folder;
  const GgufWriter writer = every_type({.alignment = 64});
  const std::vector<std::string> paths = writer.write_shards(folder.path("model"), 3);
  CHECK(paths[1] == folder.path("model-00002-of-00003.gguf"));
  for (const std::string& given : paths) {
    const GgufFile file = read_gguf(given);
    CHECK(file.path == given);
    CHECK(file.shards == paths);
    REQUIRE(file.tensors.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(file.tensors[i].shard == static_cast<int>(i));
      CHECK(file.tensors[i].data_offset % 64 == 0);
    }
    CHECK(file.tensors[2].name == "experts");
    CHECK(file.tensor_bytes == 4 * 144 + 12 + 30 * 34);
    std::int64_t sizes = 0;
    for (const std::string& path : paths) sizes += static_cast<std::int64_t>(std::filesystem::file_size(path));
    CHECK(file.file_bytes == sizes);
    CHECK(value_of<std::string>(file, "general.architecture") == "qwen2");
    CHECK(value_of<std::int64_t>(file, "split.no") == 0);
  }
}

TEST_CASE("the first shard may hold the metadata alone") {
  const TemporaryFolder folder;
  const auto write = [&](int number, GgufWriter writer) {
    writer.add("split.no", static_cast<std::uint16_t>(number)).add("split.count", std::uint16_t{2});
    writer.add("split.tensors.count", std::int32_t{1}).write(GgufWriter::shard_path(folder.path("m"), number, 2));
  };
  write(0, GgufWriter().add("a", true));
  write(1, GgufWriter().tensor("t", {8}, GgmlType::f32));
  const GgufFile file = read_gguf(folder.path("m-00001-of-00002.gguf"));
  REQUIRE(file.tensors.size() == 1);
  CHECK(file.tensors[0].shard == 1);
}

TEST_CASE("shards that do not belong together are refused") {
  const TemporaryFolder folder;
  const std::string name = folder.path("m");
  const auto shard = [&](int number, int of) { return GgufWriter::shard_path(name, number, of); };
  const auto refused = [&](const std::string& path) { return bad_input([&] { read_gguf(path); }); };
  every_type({}).write_shards(name, 3);

  SECTION("one is missing") {
    std::filesystem::remove(shard(1, 3));
    CHECK(refused(shard(0, 3)) == shard(1, 3) + ": cannot open: No such file or directory");
  }
  SECTION("one stands in another's place") {
    std::filesystem::copy_file(shard(2, 3), shard(1, 3), std::filesystem::copy_options::overwrite_existing);
    CHECK(refused(shard(0, 3)).find("is shard 3 of 3 by its metadata, but 2 of 3 by its name") != std::string::npos);
  }
  SECTION("one is a whole model") {
    every_type({}).write(shard(1, 3));
    CHECK(refused(shard(0, 3)).find("is shard 1 of 1 by its metadata, but 2 of 3 by its name") != std::string::npos);
  }
  SECTION("the name was changed") {
    std::filesystem::rename(shard(0, 3), folder.path("renamed.gguf"));
    const std::string text = refused(folder.path("renamed.gguf"));
    CHECK(text.find("renamed.gguf: byte ") != std::string::npos);
    CHECK(text.find("its name does not end in -00001-of-00003.gguf") != std::string::npos);
  }
  SECTION("one has another byte order") {
    GgufWriter({.big_endian = true})
        .add("split.no", std::uint16_t{1})
        .add("split.count", std::uint16_t{3})
        .write(shard(1, 3));
    CHECK(refused(shard(0, 3)) == shard(1, 3) + ": byte 4: its byte order differs from that of " + shard(0, 3));
  }
  SECTION("tensors are missing, or there twice") {
    const auto rewrite = [&](GgufWriter writer) {
      writer.add("split.no", std::uint16_t{2}).add("split.count", std::uint16_t{3}).write(shard(2, 3));
    };
    rewrite(GgufWriter());
    CHECK(refused(shard(0, 3)).find("split.tensors.count is 3, but the shards hold 2 tensors") != std::string::npos);
    rewrite(GgufWriter().tensor("token_embd.weight", {8}, GgmlType::f32));
    const std::string text = refused(shard(0, 3));
    CHECK(text.starts_with(shard(2, 3) + ": byte "));
    CHECK(text.find("duplicate tensor 'token_embd.weight': first at byte ") != std::string::npos);
    CHECK(text.ends_with(" of " + shard(0, 3)));
  }
}

TEST_CASE("the keys of a split model must make sense") {
  const TemporaryFolder folder;
  const std::string path = folder.path("m-00001-of-00002.gguf");
  const auto refused = [&](GgufWriter writer) {
    writer.write(path);
    return bad_input([&] { read_gguf(path); });
  };
  CHECK(refused(GgufWriter().add("split.count", std::uint16_t{2})) == path + ": byte 24: split.count without split.no");
  CHECK(refused(GgufWriter().add("split.count", std::uint16_t{2000})) ==
        path + ": byte 24: split.count must be an integer from 0 to 1024");
  CHECK(refused(GgufWriter().add("split.no", std::uint16_t{2}).add("split.count", std::uint16_t{2})) ==
        path + ": byte 24: split.no must be an integer from 0 to 1");
  CHECK(refused(GgufWriter().add("split.count", "2")).find("must be an integer") != std::string::npos);
}

TEST_CASE("a model that is not split may have any name, and a count of one") {
  const TemporaryFolder folder;
  const std::string path = folder.path("m-00002-of-00009.gguf");
  every_type({}).write(path);
  CHECK(read_gguf(path).shards == std::vector<std::string>{path});
  GgufWriter().add("split.count", std::uint16_t{1}).write(path);
  CHECK(read_gguf(path).shards.size() == 1);
  GgufWriter().add("split.count", std::uint16_t{0}).write(path);
  CHECK(read_gguf(path).shards.size() == 1);
}

TEST_CASE("a shard held in memory is read alone") {
  GgufWriter shard;
  shard.add("split.no", std::uint16_t{0}).add("split.count", std::uint16_t{2});
  shard.add("split.tensors.count", std::int32_t{2}).tensor("a", {8}, GgmlType::f32);
  CHECK(parse_gguf(shard.bytes(), "m").tensors.size() == 1);
}

TEST_CASE("a file that is not split must hold as many tensors as split.tensors.count says") {
  const TemporaryFolder folder;
  const std::string path = folder.path("m.gguf");
  const auto write = [&](std::optional<std::uint16_t> shards, std::int32_t tensors) {
    GgufWriter writer;
    if (shards) writer.add("split.count", *shards);
    writer.add("split.tensors.count", tensors).tensor("a", {8}, GgmlType::f32).tensor("b", {8}, GgmlType::f32);
    writer.write(path);
  };
  // 0: what gguf-split leaves in a merged file.
  for (const std::optional<std::uint16_t> shards : {std::optional<std::uint16_t>(), {0}, {1}}) {
    write(shards, 2);
    CHECK(read_gguf(path).tensors.size() == 2);
    for (const std::int32_t wrong : {0, 1, 3}) {
      write(shards, wrong);
      const std::string text = bad_input([&] { read_gguf(path); });
      CHECK(text.starts_with(path + ": byte "));
      CHECK(text.find("split.tensors.count is " + std::to_string(wrong) + ", but the file holds 2 tensors") !=
            std::string::npos);
    }
  }
  write(1, -1);
  CHECK(bad_input([&] { read_gguf(path); }).find("split.tensors.count must be an integer from 0") != std::string::npos);
}

}  // namespace llmperf::gguf_split_test
