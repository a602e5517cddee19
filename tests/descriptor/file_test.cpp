#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "bad_input.h"
#include "catch.h"
#include "descriptor/node.h"
#include "temporary_folder.h"

namespace llmperf::file_test {

using namespace llmperf::descriptor;
using Catch::Matchers::Contains;

namespace {

std::string problem(const std::string& path) {
  return bad_input([&] { parse_file(path); });
}

}  // namespace

TEST_CASE("the extension says how a file is parsed") {
  const TemporaryFolder folder;
  CHECK(parse_file(folder.write("a.yaml", "a: 1\n")).root.entries[0].key == "a");
  CHECK(parse_file(folder.write("a.yml", "b: 1\n")).root.entries[0].key == "b");
  CHECK(parse_file(folder.write("a.json", "{\"c\": 1}")).root.entries[0].key == "c");
  CHECK(parse_file(folder.write("a.yaml", "a: 1\n")).file == folder.path("a.yaml"));
  const std::string path = folder.write("a.txt", "a: 1\n");
  CHECK(problem(path) ==
        path + ": unknown kind of file\n  hint: accepted extensions: .yaml, .yml, .json; for models also .gguf");
}

TEST_CASE("a missing file, a directory and a FIFO are errors that name the path") {
  const TemporaryFolder folder;
  CHECK(problem(folder.path("no.yaml")) == folder.path("no.yaml") + ": cannot open: No such file or directory");
  const std::string directory = folder.path("d.yaml");
  std::filesystem::create_directory(directory);
  CHECK(problem(directory) == directory + ": is a directory, not a file");
  const std::string fifo = folder.path("f.json");
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(problem(fifo) == fifo + ": is not a regular file");
  CHECK_THAT(bad_input([] { read_text_file("/dev/zero"); }), Contains("not a regular file"));
  // Whatever they are called: a name says nothing about what is no file.
  CHECK(problem("/dev/zero") == "/dev/zero: is not a regular file");
  CHECK(problem("/dev") == "/dev: is a directory, not a file");
  const std::string bare = folder.path("fifo");
  REQUIRE(::mkfifo(bare.c_str(), 0600) == 0);
  CHECK(problem(bare) == bare + ": is not a regular file");
}

TEST_CASE("a file that must not be read is an error") {
  const TemporaryFolder folder;
  const std::string path = folder.write("secret.yaml", "a: 1\n");
  REQUIRE(::chmod(path.c_str(), 0) == 0);
  if (::access(path.c_str(), R_OK) == 0) return;  // root may read anything
  CHECK(problem(path) == path + ": cannot open: Permission denied");
}

TEST_CASE("a file whose reading fails is an error") {
  // Opens and is regular, and its first page is never mapped.
  CHECK_THAT(bad_input([] { read_text_file("/proc/self/mem"); }), Contains("/proc/self/mem: cannot read: "));
}

TEST_CASE("a 100 MB file is refused by its size, without reading it") {
  const TemporaryFolder folder;
  const std::string path = folder.write("huge.json", "");
  std::filesystem::resize_file(path, 100'000'000);  // sparse: takes no room
  CHECK(problem(path) == path + ": too large: more than 1 MiB");
}

TEST_CASE("the limit counts what is read, not what the file system says") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.txt", "12345");
  CHECK(read_text_file(path, 5) == "12345");
  CHECK_THAT(bad_input([&] { read_text_file(path, 4); }), Contains("too large: more than 4 B"));
  CHECK_FALSE(read_text_file("/proc/self/status").empty());  // says it has 0 bytes
  CHECK_THAT(bad_input([] { read_text_file("/proc/self/status", 10); }), Contains("too large"));
}

}  // namespace llmperf::file_test
