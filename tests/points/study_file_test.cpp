#include "points/study_file.h"

#include "base/error.h"
#include "catch.h"

namespace llmperf::study_file_test {

using points::Flag;
using points::StudyFile;

namespace {

StudyFile parse(const std::string& text) { return points::parse_study(descriptor::parse_yaml(text, "s.yaml")); }

StudyFile with_section(const std::string& keys) {
  return parse("title: T\nsections:\n  - {title: S, command: estimate, " + keys + "}\n");
}

std::vector<std::string> words(const std::string& flags) {
  return points::words_of(with_section("flags: " + flags).sections.front().flags);
}

std::string problem(const std::string& text) {
  try {
    parse(text);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("flags become the words of a command line") {
  CHECK(words("{batch: 8, where: 'ttft_s < 0.5 and fits'}") ==
        std::vector<std::string>{"--batch", "8", "--where", "ttft_s < 0.5 and fits"});
  CHECK(words("{model: [a, b], prompt: [1, 2]}") == std::vector<std::string>{"--model", "a,b", "--prompt", "1,2"});
  CHECK(words("{symbolic: true, training: false}") == std::vector<std::string>{"--symbolic"});
  CHECK(words("{cfg: 'true'}") == std::vector<std::string>{"--cfg", "true"});  // in quotes it is a value
  CHECK(words("{by: -ttft_s}") == std::vector<std::string>{"--by=-ttft_s"});   // apart it would be a flag
}

TEST_CASE("flags over others replace those of the same name, in their place") {
  const StudyFile s = parse(
      "title: T\nflags: {hw: a, batch: 1}\nsections:\n"
      "  - {title: S, command: estimate, flags: {hw: b, tp: 2}}\n");
  CHECK(points::words_of(points::merged(s.flags, s.sections.front().flags)) ==
        std::vector<std::string>{"--hw", "b", "--batch", "1", "--tp", "2"});
}

TEST_CASE("blank lines part paragraphs, line breaks do not") {
  CHECK(points::paragraphs("a\nb\n\n\n  c \n") == std::vector<std::string>{"a b", "c"});
  CHECK(points::paragraphs("").empty());
}

TEST_CASE("a section without a name is called after its title") {
  const auto name = [](const std::string& title) {
    return parse("title: T\nsections:\n  - {title: '" + title + "', command: c}\n").sections.front().name;
  };
  CHECK(name("What fits (24 GiB)?") == "what-fits-24-gib");
  CHECK(name("模型") == "section-1");
  CHECK(name("../../etc/passwd") == "etc-passwd");
}

TEST_CASE("what is shown: columns with headings, pivots, rows and parts") {
  const auto view = with_section("only: {a: [1, 2], b: x}, pivot: {rows: [a, b], columns: c, cells: [d, {e: E, f: F}]}")
                        .sections.front()
                        .view;
  REQUIRE(view.only.size() == 2);
  CHECK(view.only[0].values == std::vector<std::string>{"1", "2"});
  REQUIRE(view.pivot);
  CHECK(view.pivot->rows.size() == 2);
  REQUIRE(view.pivot->cells.size() == 3);
  CHECK(view.pivot->cells[0].heading.empty());
  CHECK(view.pivot->cells[2].name.text == "f");
  CHECK(view.pivot->cells[2].heading == "F");
  CHECK(view.of_rows());
  CHECK_FALSE(with_section("parts: [Memory]").sections.front().view.of_rows());
}

TEST_CASE("the files of a section are its CSV unless it says otherwise") {
  CHECK(with_section("name: x").sections.front().write == std::vector<std::string>{"csv"});
  CHECK(with_section("write: [json, trace.json]").sections.front().write ==
        std::vector<std::string>{"json", "trace.json"});
  CHECK(with_section("write: []").sections.front().write.empty());
}

TEST_CASE("problems are told with their places, all at once") {
  const std::string text = problem("title: T\nsections:\n  - {title: S, comand: x, flags: {batch: }}\n");
  CHECK(text.find("s.yaml:3:16: unknown key 'comand'") != std::string::npos);
  CHECK(text.find("s.yaml:3:35: flag 'batch' needs a value") != std::string::npos);
  CHECK(text.find("missing key 'command'") != std::string::npos);
}

}  // namespace llmperf::study_file_test
