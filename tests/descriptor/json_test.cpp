#include "bad_input.h"
#include "catch.h"
#include "descriptor/node.h"

namespace llmperf::json_test {

using namespace llmperf::descriptor;
using Catch::Matchers::Contains;

namespace {

Node parse(const std::string& text) { return parse_json(text, "c.json").root; }
std::string problem(const std::string& text) {
  return bad_input([&] { parse_json(text, "c.json"); });
}

}  // namespace

TEST_CASE("a JSON object keeps file order, text and 1-based positions") {
  const Node root = parse("{\n  \"hidden\" : 4096,\n  \"types\": [\"a\",\n    {\"x\": -1.50e+3}]\n}\n");
  REQUIRE(root.entries.size() == 2);
  CHECK(root.line == 1);
  CHECK(root.entries[0].key == "hidden");
  CHECK(root.entries[0].line == 2);
  CHECK(root.entries[0].column == 3);
  CHECK(root.entries[0].value.scalar == "4096");
  CHECK(root.entries[0].value.column == 14);
  const Node& types = root.entries[1].value;
  CHECK(types.kind == Node::Kind::sequence);
  CHECK(types.column == 12);
  CHECK(types.items[1].line == 4);
  CHECK(types.items[1].column == 5);
  const Node& x = types.items[1].entries[0].value;
  CHECK(x.scalar == "-1.50e+3");
  CHECK(x.line == 4);
  CHECK(x.column == 11);
}

TEST_CASE("JSON strings are quoted, numbers and booleans are not, null is null") {
  const Node root = parse(R"(["1", 1, true, false, null, "", 18446744073709551616])");
  CHECK(root.items[0].quoted);
  CHECK_FALSE(root.items[1].quoted);
  CHECK(root.items[2].scalar == "true");
  CHECK_FALSE(root.items[2].quoted);
  CHECK(root.items[3].scalar == "false");
  CHECK(root.items[4].kind == Node::Kind::null);
  CHECK(root.items[5].kind == Node::Kind::scalar);
  CHECK(root.items[6].scalar == "18446744073709551616");
}

TEST_CASE("escapes in JSON strings neither stay in the value nor shift what follows") {
  const Node root = parse(R"({"a\"b": "x\\", "c": "\u00e9, [", "d": 1})");
  CHECK(root.entries[0].key == "a\"b");
  CHECK(root.entries[0].value.scalar == "x\\");
  CHECK(root.entries[1].value.scalar == "é, [");
  CHECK(root.entries[2].key == "d");
  CHECK(root.entries[2].column == 35);
}

TEST_CASE("a duplicate JSON key is an error that names both places") {
  CHECK(problem("{\"a\": 1,\n \"a\": 2}") == "c.json:2:2: duplicate key 'a'\n  hint: first given at line 1, column 2");
}

TEST_CASE("truncated JSON is reported at its end, without the parser's jargon") {
  CHECK(problem("{\"a\": 1,\n \"b\": [1") ==
        "c.json:2:9: not valid JSON: unexpected end of input; expected ']'\n  hint: is the file truncated?");
  CHECK_THAT(problem(R"({"a": "x)"), Contains("c.json:1:7: not valid JSON: ") && Contains("truncated?"));
  CHECK_THAT(problem(""), Contains("c.json:1:1: not valid JSON: unexpected end of input"));
  const std::string whole = R"({"a": [1, {"b": "c\n"}], "d": null})";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    INFO(length);
    const std::string text = problem(whole.substr(0, length));
    CHECK_THAT(text, Contains("not valid JSON") && !Contains("json.exception"));
  }
}

TEST_CASE("JSON syntax errors carry their place") {
  CHECK_THAT(problem("[1,,2]"), Contains("c.json:1:4: not valid JSON: unexpected ','"));
  CHECK_THAT(problem("{\"a\" 1}"), Contains("c.json:1:6: not valid JSON: unexpected number literal; expected ':'"));
  CHECK_THAT(problem("{\"a\":\n tru}"), Contains("c.json:2:2: not valid JSON: invalid literal"));
  CHECK_THAT(problem("{\"a\": NaN}"), Contains("c.json:1:7: not valid JSON: invalid literal"));
  CHECK_THAT(problem("{\"a\": 010}"), Contains("not valid JSON"));
  CHECK_THAT(problem("{\"a\": 1,}"), Contains("c.json:1:9: not valid JSON"));
  CHECK_THAT(problem("{} x"), Contains("c.json:1:4: not valid JSON") && !Contains("truncated"));
  CHECK_THAT(problem("// no\n{}"), Contains("c.json:1:1: not valid JSON"));
}

TEST_CASE("a JSON number that no double holds is reported at its place") {
  CHECK(problem("{\"a\": 1,\n \"b\": 1e400}") == "c.json:2:7: number too large: '1e400'");
  CHECK_THAT(problem("[" + std::string(100'000, '9') + "]"), Contains("c.json:1:2: number too large: '999"));
}

TEST_CASE("deep JSON nesting is an error, not a crash") {
  const std::string open(64, '[');
  CHECK(parse(open + std::string(64, ']')).kind == Node::Kind::sequence);
  CHECK(problem(std::string(100'000, '[')) == "c.json:1:65: nested deeper than 64 levels");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  CHECK_THAT(problem(objects), Contains("nested deeper than 64 levels"));
}

TEST_CASE("JSON that is not UTF-8 or too large is refused; a byte order mark is not") {
  CHECK_THAT(problem("{\"a\": \"\xC3\"}"), Contains("c.json:1:8: not UTF-8 text"));
  CHECK_THAT(problem(std::string(kMaxDescriptorBytes + 1, ' ')), Contains("too large"));
  CHECK(parse("\xEF\xBB\xBF{\"a\": 1}").entries[0].column == 2);
}

TEST_CASE("the numbers that Python's json writes and JSON does not have are read in configs only") {
  const std::string text = "{\"a\": [0.0, Infinity],\n \"b\": -Infinity, \"c\": NaN, \"Infinity\": \"\\\"NaN\"}";
  const Node root = parse_json(text, "c.json", kConfigRules).root;
  CHECK(root.entries[0].value.items[1].scalar == "Infinity");
  CHECK(root.entries[1].value.scalar == "-Infinity");
  CHECK(root.entries[1].value.line == 2);
  CHECK(root.entries[1].value.column == 7);
  CHECK_FALSE(root.entries[1].value.quoted);
  CHECK(root.entries[2].value.scalar == "NaN");
  CHECK(root.entries[3].key == "Infinity");
  CHECK(root.entries[3].value.scalar == "\"NaN");
  CHECK_THAT(problem(text), Contains("c.json:1:13: not valid JSON"));
  for (const char* bad : {"[Infinit]", "[NaNs]", "[1Infinity]", "[--Infinity]", "[InfinityNaN]", "Infinity0"}) {
    INFO(bad);
    CHECK_THAT(bad_input([&] { parse_json(bad, "c.json", kConfigRules); }), Contains("not valid JSON"));
  }
}

TEST_CASE("a config may have 8 MiB") {
  const std::string spaces(kConfigRules.max_bytes - 2, ' ');
  CHECK(parse_json("{}" + spaces, "c.json", kConfigRules).root.entries.empty());
  CHECK_THAT(bad_input([&] { parse_json("{} " + spaces, "c.json", kConfigRules); }),
             Contains("too large: more than 8 MiB"));
}

}  // namespace llmperf::json_test
