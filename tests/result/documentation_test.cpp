// docs/json.md and docs/schema say what the declarations say. After a new key: LLMPERF_UPDATE_DOCS=1
// build/dev/tests/test_results '[tests/result]' writes them.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "catch.h"
#include "result/document.h"

namespace llmperf::result::documentation_test {
namespace {

const std::string kPath = std::string(LLMPERF_SOURCE_DIR) + "/docs/json.md";

// Puts `section` in the place of the one with its heading, or after the one that was put last.
void replace_section(std::string& page, const std::string& section, std::size_t& after) {
  const std::string heading = "\n" + section.substr(0, section.find('\n') + 1);
  const std::size_t found = page.find(heading);
  const std::size_t begin = found == std::string::npos ? after : found + 1;
  const std::size_t end = std::min(found == std::string::npos ? after : page.find("\n## ", begin), page.size());
  const bool last = end == page.size();
  page.replace(begin, end - begin, last || found != std::string::npos ? section : section + "\n");
  after = std::min(begin + section.size() + 1, page.size());
}

}  // namespace

TEST_CASE("Every declared document is in docs/json.md, as it is declared") {
  std::stringstream text;
  text << std::ifstream(kPath).rdbuf();
  std::string page = text.str();
  std::size_t after = page.size();
  for (const Documented& d : documents()) replace_section(page, documentation(d), after);
  after = page.size();
  replace_section(page, documentation_of_parts(), after);
  if (std::getenv("LLMPERF_UPDATE_DOCS") != nullptr) std::ofstream(kPath) << page;
  INFO("LLMPERF_UPDATE_DOCS=1 writes it");
  const bool same = page == text.str();
  CHECK(same);
}

TEST_CASE("Every declared document has its schema in docs/schema") {
  const std::filesystem::path folder = std::string(LLMPERF_SOURCE_DIR) + "/docs/schema";
  std::set<std::string> names;
  for (const Documented& d : documents()) {
    const std::filesystem::path path = folder / schema_file(d);
    names.insert(path.filename());
    if (std::getenv("LLMPERF_UPDATE_DOCS") != nullptr) std::ofstream(path) << schema(d);
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    INFO(path << ": LLMPERF_UPDATE_DOCS=1 writes it");
    const bool same = text.str() == schema(d);
    CHECK(same);
  }
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    CHECK(names.contains(file.path().filename()));
  }
}

}  // namespace llmperf::result::documentation_test
