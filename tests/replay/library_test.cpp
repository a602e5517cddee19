#include "replay/library.h"

#include <stdlib.h>

#include <filesystem>

#include "catch.h"
#include "descriptor/temporary_folder.h"

namespace llmperf::library_test {

using replay::Library;

namespace {

// The current folder, and where LD_LIBRARY_PATH leads, for the length of a test.
class Place {
 public:
  Place(const std::string& folder, const char* path) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder);
    ::setenv("LD_LIBRARY_PATH", path, 1);
  }
  ~Place() {
    ::unsetenv("LD_LIBRARY_PATH");
    std::filesystem::current_path(before_);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  std::filesystem::path before_;
};

// What is said where the C library's mathematics, which every system has, are not opened.
std::string opened(std::vector<std::string> folders = {}) {
  const std::vector<std::string> names = {"libm.so.6"};
  std::vector<std::string> problems;
  const auto library = Library::open(names, folders, problems);
  if (library) return library->path();
  REQUIRE_FALSE(problems.empty());
  return problems.front();
}

}  // namespace

TEST_CASE("no library comes from the current folder") {
  const TemporaryFolder folder;
  folder.write("empty/notes.txt", "");
  folder.write("planted/libsomething.so.1", "");
  folder.write("planted/lib/libm.so.6", "");
  for (const char* path : {"", ":", "/usr/lib:", ":/usr/lib", "lib", "/usr/lib:.", "/usr/lib;"}) {
    INFO(path);
    {
      const Place here(folder.path("empty"), path);
      CHECK(opened() == "libm.so.6");
    }
    const Place here(folder.path("planted"), path);
    // An empty variable is none; any other has a part that is the current folder, or lib in it.
    if (*path == '\0') {
      CHECK(opened() == "libm.so.6");
    } else {
      CHECK_THAT(opened(), Catch::Contains("LD_LIBRARY_PATH leads the loader to the current folder"));
    }
  }
  const Place here(folder.path("planted"), "/usr/lib");
  CHECK(opened({"lib", "./lib"}) == "libm.so.6");  // not the file there, which is no library
  std::vector<std::string> problems;
  const std::vector<std::string> names = {"libm.so.6"};
  const std::vector<std::string> relative = {"lib"};
  CHECK(Library::open(names, relative, problems));
  CHECK(problems == std::vector<std::string>{"lib: not looked into, because it is no whole path"});
}

}  // namespace llmperf::library_test
