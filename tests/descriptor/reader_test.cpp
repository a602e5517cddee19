#include "descriptor/reader.h"

#include <array>

#include "bad_input.h"
#include "catch.h"

namespace llmperf::reader_test {

using namespace llmperf::descriptor;
using Catch::Matchers::Contains;

namespace {

// A reader over YAML text, and what it found wrong.
struct Reading {
  explicit Reading(const std::string& text) : document(parse_yaml(text, "f.yaml")), problems("f.yaml") {}

  Document document;
  Problems problems;
  Reader reader{document.root, problems, "model"};

  std::string report() {
    return bad_input([this] { problems.throw_if_any(); });
  }
};

std::string int_problem(const std::string& value) {
  Reading r("heads: " + value + "\n");
  r.reader.require_int("heads", {1, 100000});
  return r.report();
}

std::string double_problem(const std::string& value) {
  Reading r("share: " + value + "\n");
  r.reader.require_double("share", 0, 1);
  return r.report();
}

std::string bytes_problem(const std::string& value) {
  Reading r("capacity: " + value + "\n");
  r.reader.optional_bytes("capacity");
  return r.report();
}

}  // namespace

TEST_CASE("values of every type read back") {
  Reading r(
      "i: 32\nd: 0.25\nb: true\ns: hello\nq: '12'\nn: 12\nsize: 24 GB\nrate: 1008 GB/s\nflops: 165.2 TFLOP/s\n"
      "time: 1.5 us\nints: [1, 2]\ntexts: [a, b]\nempty:\n");
  CHECK(r.reader.require_int("i") == 32);
  CHECK(r.reader.require_double("d", 0, 1) == 0.25);
  CHECK(r.reader.optional_bool("b") == true);
  CHECK(r.reader.require_string("s") == "hello");
  CHECK(r.reader.require_string("q") == "12");
  CHECK(r.reader.require_string("n") == "12");
  CHECK(r.reader.optional_bytes("size") == Bytes{24e9});
  CHECK(r.reader.optional_bandwidth("rate") == BytesPerSecond{1008e9});
  CHECK(r.reader.optional_flops_rate("flops") == FlopsPerSecond{165.2e12});
  CHECK(r.reader.optional_seconds("time")->value == Approx(1.5e-6));
  CHECK(r.reader.optional_ints("ints") == std::vector<std::int64_t>{1, 2});
  CHECK(r.reader.optional_strings("texts") == std::vector<std::string>{"a", "b"});
  CHECK_FALSE(r.reader.optional_int("empty"));
  r.reader.finish();
  CHECK(r.problems.empty());
}

TEST_CASE("absent and null keys read as absent, and fall back") {
  Reading r("a:\n");
  CHECK_FALSE(r.reader.has("a"));
  CHECK(r.reader.find("a") == nullptr);
  CHECK_FALSE(r.reader.optional_double("b", 0, 1));
  CHECK_FALSE(r.reader.optional_bool("b"));
  CHECK_FALSE(r.reader.optional_string("b"));
  CHECK_FALSE(r.reader.optional_mapping("b"));
  CHECK_FALSE(r.reader.optional_bytes("b"));
  CHECK(r.reader.optional_mappings("b").empty());
  CHECK(r.reader.int_or("a", 7) == 7);
  CHECK(r.reader.bool_or("b", true));
  CHECK(r.reader.string_or("b", "x") == "x");
  CHECK(r.problems.empty());
}

TEST_CASE("a missing required key is reported at its mapping, an empty one at its own place") {
  Reading r("inner:\n  heads:\n");
  Reader inner = *r.reader.optional_mapping("inner");
  inner.require_int("heads");
  inner.require_string("name");
  CHECK(r.report() == "f.yaml:2:3: missing key 'heads' in 'inner'\nf.yaml:2:3: missing key 'name' in 'inner'");
}

TEST_CASE("a wrong integer says what was expected, what was found and why it is none") {
  CHECK(int_problem("abc") == "f.yaml:1:8: 'heads' must be an integer between 1 and 100000, not 'abc'");
  CHECK_THAT(int_problem("-1"), Contains("between 1 and 100000, not '-1'"));
  CHECK_THAT(int_problem("0"), Contains("not '0'"));
  CHECK_THAT(int_problem("100001"), Contains("not '100001'"));
  CHECK_THAT(int_problem("9223372036854775808"), Contains("not '9223372036854775808'"));
  CHECK_THAT(int_problem(".nan"), Contains("not '.nan'"));
  CHECK_THAT(int_problem("nan"), Contains("not 'nan'"));
  CHECK_THAT(int_problem("1e400"), Contains("not '1e400' (it does not fit a double)"));
  CHECK_THAT(int_problem("010"), Contains("not '010' (a leading zero means octal to some readers)"));
  CHECK_THAT(int_problem("1e3"), Contains("not '1e3' (write it in digits)"));
  CHECK_THAT(int_problem("12.0"), Contains("not '12.0' (write it in digits)"));
  CHECK_THAT(int_problem("+5"), Contains("not '+5' (write it without '+')"));
  CHECK_THAT(int_problem("'12'"), Contains("not the string '12' (write it without quotes)"));
  CHECK_THAT(int_problem("'twelve'"), Contains("not the string 'twelve'"));
  CHECK_THAT(int_problem("true"), Contains("not 'true'"));
  CHECK_THAT(int_problem("[12]"), Contains("not a list"));
  CHECK_THAT(int_problem("{a: 12}"), Contains("not a mapping"));
  CHECK_THAT(int_problem(std::string(10'000, '9')), Contains("not '9999999999") && !Contains(std::string(100, '9')));
}

TEST_CASE("a double lies in its range and is finite") {
  CHECK(double_problem("1.5") == "f.yaml:1:8: 'share' must be a number between 0 and 1, not '1.5'");
  CHECK_THAT(double_problem("-0.5"), Contains("not '-0.5'"));
  CHECK_THAT(double_problem(".inf"), Contains("not '.inf'"));
  CHECK_THAT(double_problem("nan"), Contains("not 'nan'"));
  CHECK_THAT(double_problem("1e400"), Contains("not '1e400' (it does not fit a double)"));
  CHECK_THAT(double_problem("'0.5'"), Contains("not the string '0.5' (write it without quotes)"));
  CHECK_THAT(double_problem("[0.5]"), Contains("not a list"));
}

TEST_CASE("a boolean is exactly true or false") {
  for (const char* value : {"yes", "no", "True", "1", "'true'", "on", "[true]"}) {
    INFO(value);
    Reading r(std::string("tied: ") + value + "\n");
    CHECK(r.reader.optional_bool("tied") == false);
    CHECK_THAT(r.report(), Contains("f.yaml:1:7: 'tied' must be true or false, not "));
  }
}

TEST_CASE("a quantity needs a fitting unit and is positive") {
  CHECK(bytes_problem("24") ==
        "f.yaml:1:11: 'capacity' must be a positive number with a unit, such as 24 GB or 24 GiB, not '24'");
  for (const char* value : {"0 GB", "-1 GB", "24 gb", "24 GB/s", "1e400 GB", "nan GB", "[24 GB]", "GB"}) {
    INFO(value);
    CHECK_THAT(bytes_problem(value), Contains("'capacity' must be a positive number with a unit"));
  }
}

TEST_CASE("a text is a scalar, and not empty where it is required") {
  Reading r("name: ''\ntitle: [a]\n");
  r.reader.require_string("name");
  r.reader.optional_string("title");
  CHECK(r.report() == "f.yaml:1:7: 'name' must not be empty\nf.yaml:2:8: 'title' must be a text, not a list");
}

TEST_CASE("a choice gives the index of its name, or names the alternatives") {
  constexpr std::array<std::string_view, 3> kNorms = {"rms", "layer", "group"};
  Reading r("norm: layer\nother: lyer\n");
  CHECK(r.reader.choice("norm", kNorms) == 1);
  CHECK(r.reader.choice("absent", kNorms, 2) == 2);
  CHECK(r.problems.empty());
  CHECK(r.reader.choice("other", kNorms, 2) == 2);
  CHECK(r.reader.choice("missing", kNorms) == 0);
  CHECK(r.report() ==
        "f.yaml:1:1: missing key 'missing' in model\n"
        "f.yaml:2:8: 'other' must be one of rms, layer, group, not 'lyer'\n  hint: did you mean 'layer'?");
}

TEST_CASE("an unknown key suggests the nearest known one, and the first passes the advice on") {
  Reading r("num_heads: 8\nn_heads: 8\nzzzz: 1\nnum_head: 1\n");
  r.reader.require_int("num_heads");
  r.reader.ignore("ignored");
  r.reader.finish("see the guide");
  CHECK(r.report() ==
        "f.yaml:2:1: unknown key 'n_heads'\n  hint: did you mean 'num_heads'? see the guide\n"
        "f.yaml:3:1: unknown key 'zzzz'\nf.yaml:4:1: unknown key 'num_head'\n  hint: did you mean 'num_heads'?");
  Reading first("zzzz: 1\n");
  first.reader.ignore("num_heads");
  first.reader.finish("see the guide");
  CHECK(first.report() == "f.yaml:1:1: unknown key 'zzzz'\n  hint: known names: num_heads see the guide");
}

TEST_CASE("asking whether a key is there does not make it known; ignoring it does") {
  Reading r("a: 1\nb: 2\n");
  CHECK(r.reader.has("a"));
  r.reader.ignore("b");
  r.reader.finish();
  CHECK_THAT(r.report(), Contains("unknown key 'a'") && !Contains("'b'\n  hint: did"));
}

TEST_CASE("an unknown key is reported even when its value is empty") {
  Reading r("a:\n");
  r.reader.finish();
  CHECK(r.report() == "f.yaml:1:1: unknown key 'a'");
}

TEST_CASE("all problems of a file are thrown at once, in file order") {
  Reading r("a: x\nb: y\nc: z\n");
  r.reader.require_int("c");
  r.reader.require_int("a");
  r.reader.problem("b", "made up", "because");
  const std::string report = r.report();
  CHECK_THAT(report, Contains("f.yaml:1:4: 'a'") && Contains("f.yaml:2:4: made up\n  hint: because\nf.yaml:3:4: 'c'"));
  CHECK(report.find("'a'") < report.find("'c'"));
}

TEST_CASE("a document or item that is no mapping is reported once and reads as empty") {
  Reading list("[1]\n");
  list.reader.require_int("heads");
  list.reader.finish();
  CHECK(list.report() == "f.yaml:1:1: model must be a mapping of keys to values, not a list");
  Reading nothing("");
  CHECK(nothing.report() == "f.yaml:1:1: model must be a mapping of keys to values, not an empty value");
}

TEST_CASE("lists report each wrong item at its place") {
  Reading r("peaks:\n  - dtype: fp16\n  - 3\nints: [1, x, 2]\ntexts: a\n");
  std::vector<Reader> peaks = r.reader.optional_mappings("peaks");
  REQUIRE(peaks.size() == 2);
  CHECK(peaks[0].require_string("dtype") == "fp16");
  r.reader.optional_ints("ints");
  r.reader.optional_strings("texts");
  const std::string report = r.report();
  CHECK_THAT(report, Contains("f.yaml:3:5: an item of 'peaks' must be a mapping of keys to values, not '3'"));
  CHECK_THAT(report, Contains("f.yaml:4:11: 'ints' must be an integer"));
  CHECK_THAT(report, Contains("f.yaml:5:8: 'texts' must be a list of texts, not 'a'"));
}

TEST_CASE("equal problems are told once, with how many more there are") {
  Reading r("a: 1\nb: 2\nc: 3\n");
  for (const char* key : {"a", "b", "c"}) r.reader.problem(key, key[0] == 'b' ? "another" : "the same");
  CHECK(r.report() == "f.yaml:1:4: the same (1 more like this)\nf.yaml:2:4: another");
}

TEST_CASE("a flood of problems is cut off, and says so") {
  std::string text = "ints:\n";
  for (int i = 0; i < 5000; ++i) text += "  - x" + std::to_string(i) + "\n";
  for (int i = 0; i < 5000; ++i) text += "unknown" + std::to_string(i) + ": 1\n";
  Reading r(text);
  r.reader.optional_ints("ints");
  r.reader.finish();
  const std::string report = r.report();
  CHECK_THAT(report, Contains("more than 100 problems, the rest is not shown"));
  CHECK(std::count(report.begin(), report.end(), '\n') == 100);
}

}  // namespace llmperf::reader_test
