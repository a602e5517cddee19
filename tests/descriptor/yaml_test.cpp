#include "bad_input.h"
#include "base/text.h"
#include "catch.h"
#include "descriptor/node.h"

namespace llmperf::yaml_test {

using namespace llmperf::descriptor;
using Catch::Matchers::Contains;

namespace {

Node parse(const std::string& text) { return parse_yaml(text, "f.yaml").root; }
std::string problem(const std::string& text) {
  return bad_input([&] { parse_yaml(text, "f.yaml"); });
}
std::string repeat(std::string_view unit, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += unit;
  return text;
}

}  // namespace

TEST_CASE("a YAML mapping keeps file order, text and 1-based positions") {
  const Node root = parse("hidden: 4096\nlayers:\n  - kind: full\n    count: 2\n");
  REQUIRE(root.kind == Node::Kind::mapping);
  REQUIRE(root.entries.size() == 2);
  const Node::Entry& hidden = root.entries[0];
  CHECK(hidden.key == "hidden");
  CHECK(hidden.value.scalar == "4096");
  CHECK(hidden.value.column == 9);
  const Node::Entry& layers = root.entries[1];
  CHECK(layers.line == 2);
  REQUIRE(layers.value.items.size() == 1);
  const Node::Entry& count = layers.value.items[0].entries[1];
  CHECK(count.key == "count");
  CHECK(count.line == 4);
  CHECK(count.column == 5);
  CHECK(count.value.column == 12);
}

TEST_CASE("YAML scalars keep their text: nothing is converted") {
  const Node root = parse("[010, 1e3, 0x10, yes, .inf, 1e400]");
  const std::vector<std::string> expected = {"010", "1e3", "0x10", "yes", ".inf", "1e400"};
  REQUIRE(root.items.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(root.items[i].scalar == expected[i]);
    CHECK_FALSE(root.items[i].quoted);
  }
}

TEST_CASE("quotes and block style make a YAML scalar a string") {
  const Node root = parse("a: '1'\nb: \"tr\\u00e9s\"\nc: |\n  one\n  two\nd: 1\ne: ''\n");
  CHECK(root.entries[0].value.quoted);
  CHECK(root.entries[0].value.scalar == "1");
  CHECK(root.entries[1].value.scalar == "trés");
  CHECK(root.entries[2].value.quoted);
  CHECK(root.entries[2].value.scalar == "one\ntwo\n");
  CHECK_FALSE(root.entries[3].value.quoted);
  CHECK(root.entries[4].value.kind == Node::Kind::scalar);
}

TEST_CASE("an empty YAML value, ~ and null are null; an empty file is too") {
  for (const Node::Entry& entry : parse("a:\nb: ~\nc: null\n").entries) CHECK(entry.value.kind == Node::Kind::null);
  CHECK(parse("").kind == Node::Kind::null);
  CHECK(parse("# nothing\n").kind == Node::Kind::null);
  CHECK(parse("# nothing\n").line == 1);
}

TEST_CASE("a byte order mark, Windows line ends and a document marker are fine") {
  const Node root = parse("\xEF\xBB\xBF---\r\na: 1\r\nb:\r\n  - 2\r\n...\r\n");
  REQUIRE(root.entries.size() == 2);
  CHECK(root.entries[0].value.scalar == "1");
  CHECK(root.entries[1].value.items[0].scalar == "2");
}

TEST_CASE("a duplicate YAML key is an error that names both places") {
  CHECK(problem("a: 1\nb:\n  c: 1\n  c: 2\n") ==
        "f.yaml:4:3: duplicate key 'c'\n  hint: first given at line 3, column 3");
}

TEST_CASE("YAML features that a data file does not need are errors at their place") {
  CHECK_THAT(problem("a: &x 1\n"), Contains("f.yaml:1:4: anchors"));
  CHECK_THAT(problem("a: 1\n&k b: 2\n"), Contains("f.yaml:2:1: anchors"));
  CHECK_THAT(problem("a: !!int 1\n"), Contains("f.yaml:1:4: tags are not supported: 'tag:yaml.org,2002:int'"));
  CHECK_THAT(problem("a: !x [1]\n"), Contains("tags"));
  CHECK_THAT(problem("a: ! 1\n"), Contains("f.yaml:1:4: tags"));
  CHECK_THAT(problem("a: *x\n"), Contains("f.yaml:1:4"));
  CHECK_THAT(problem("a: 1\n---\nb: 2\n"), Contains("f.yaml:2:1: text after the end of the document"));
  CHECK_THAT(problem("? [1]\n: 2\n"), Contains("where a key is expected"));
  CHECK_THAT(problem("? {a: 1}\n: 2\n"), Contains("where a key is expected"));
  CHECK_THAT(problem("~: 2\n"), Contains("a key must be a name"));
}

TEST_CASE("a YAML word without a colon is an error, not a key with an empty value") {
  CHECK_THAT(problem("tied: true\nbias\n"), Contains("f.yaml:2:1: a key without a colon"));
  CHECK_THAT(problem("tied: true\n\"bias\"\n"), Contains("f.yaml:2:1: "));
  CHECK_THAT(problem("a: {b, c: 1}\n"), Contains("f.yaml:1:5: a key without a colon"));
  CHECK(parse("\"a\\\"b\" :\n'it''s': # nothing\nc:\n").entries.size() == 3);
}

TEST_CASE("YAML syntax errors carry their place") {
  CHECK_THAT(problem("a: 1\n  b: 2\n"), Contains("f.yaml:2:4: not valid YAML: "));
  CHECK_THAT(problem("a: 1\n\tb: 2\n"), Contains("f.yaml:2:1: not valid YAML: illegal tab"));
  CHECK_THAT(problem("a: [1, 2\n"), Contains("is a bracket left open?"));
  CHECK_THAT(problem("[1, 2\n"), Contains("bracket that is never closed"));
  CHECK_THAT(problem("a: @b\n"), Contains("f.yaml:1:4: not valid YAML: "));
  CHECK_THAT(problem("a: 1\n]\n"), Contains("f.yaml:2:1: not valid YAML: "));
}

TEST_CASE("a quote that is never closed does not swallow the rest of the file") {
  CHECK_THAT(problem("a: \"x\nb: 2\n"), Contains("f.yaml:1:4: not valid YAML: a quote that is never closed"));
  CHECK_THAT(problem("a: 'it''s\n"), Contains("f.yaml:1:4: not valid YAML: a quote that is never closed"));
  CHECK_THAT(problem("a: \"x\\\"\n"), Contains("f.yaml:1:4: not valid YAML: a quote that is never closed"));
  CHECK_THAT(problem("a: \"x"), Contains("not valid YAML: "));
  CHECK(parse("a: 'it''s'\nb: \"x\\\"\"\n").entries.size() == 2);
}

TEST_CASE("text that is not UTF-8, or holds control characters, is refused before YAML sees it") {
  CHECK(problem("a: 1\nb: \xFF\n") == "f.yaml:2:4: not UTF-8 text: byte 0xff");
  CHECK(problem(std::string("a: 1\0b", 6)) == "f.yaml:1:5: control character 0x00 in the text");
  CHECK_THAT(problem("a: 1\n\x04invisible: 2\n"), Contains("f.yaml:2:1: control character 0x04"));
  CHECK_THAT(problem("\xFE\xFF\0a"), Contains("not UTF-8"));
}

TEST_CASE("nesting beyond 64 levels is an error, 64 are fine") {
  CHECK(parse(repeat("[", 64) + repeat("]", 64)).kind == Node::Kind::sequence);
  CHECK(problem(repeat("[", 65) + repeat("]", 65)) == "f.yaml:1:65: nested deeper than 64 levels");
}

TEST_CASE("a hundred thousand unclosed brackets, dashes or questions end in an error, not in a crash") {
  for (const char* unit : {"[", "{", "- ", "? ", "[a: ", "{a: ", "- - [", "a: ", "!a ", "&a ", "[{", "- ? "}) {
    INFO(unit);
    CHECK_FALSE(problem(repeat(unit, 100'000)).empty());
  }
  std::string stairs;
  for (std::size_t i = 0; i < 1000; ++i) stairs += std::string(i, ' ') + "a:\n";
  CHECK_THAT(problem(stairs), Contains("f.yaml:65:65: nested deeper than 64 levels"));
}

TEST_CASE("many keys are checked for duplicates in reasonable time") {
  std::string text;
  for (int i = 0; i < 60'000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  CHECK(parse(text).entries.size() == 60'000);
}

TEST_CASE("text beyond the size limit is refused unread") {
  CHECK(problem(std::string(kMaxDescriptorBytes + 1, '[')) == "f.yaml: too large: more than 1 MiB");
}

}  // namespace llmperf::yaml_test
