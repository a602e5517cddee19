// CSV as RFC 4180 has it, and nothing in it that a spreadsheet would run.
#include <string>

#include "catch.h"
#include "report/document.h"
#include "result/json.h"
#include "result/row.h"

namespace llmperf::report::csv_test {

namespace {

std::string cell(const std::string& text) {
  const std::string csv = render_csv({"", {{"x"}}, {{text}}});
  REQUIRE(csv.starts_with("x\n"));
  REQUIRE(csv.ends_with("\n"));
  return csv.substr(2, csv.size() - 3);
}

}  // namespace

TEST_CASE("a line for the columns, then one per row", "[csv]") {
  CHECK(render_csv({"title is not written", {{"a", true}, {"b"}}, {{"x", "1"}, {"", ""}}}) == "a,b\nx,1\n,\n");
}

TEST_CASE("commas and quotes are quoted, quotes doubled", "[csv]") {
  CHECK(cell("plain text") == "plain text");
  CHECK(cell("1,5") == "\"1,5\"");
  CHECK(cell("say \"hi\"") == "\"say \"\"hi\"\"\"");
  CHECK(cell("\"") == "\"\"\"\"");
  CHECK(cell("模型") == "模型");
}

TEST_CASE("a row is one line, without anything that a terminal would act on", "[csv]") {
  CHECK(cell("two\nlines") == "two lines");
  CHECK(cell("two\r\nlines,\tone row") == "\"two  lines, one row\"");
  CHECK(cell("\x1b[31mred\x07") == "?[31mred?");
  CHECK(cell("\u009b31m") == "?31m");
  CHECK(cell("\xff") == "\ufffd");
  CHECK(render_csv({"", {{"\x1b[31m"}}, {}}) == "?[31m\n");
}

TEST_CASE("text that starts like a formula gets an apostrophe, numbers do not", "[csv]") {
  CHECK(cell("=1+1") == "'=1+1");
  CHECK(cell("@SUM(A1)") == "'@SUM(A1)");
  CHECK(cell("+1+1") == "'+1+1");
  CHECK(cell("-1+1") == "'-1+1");
  CHECK(cell("-") == "'-");
  CHECK(cell("\t=1") == "' =1");
  CHECK(cell("\r\n@A1") == "'  @A1");
  CHECK(cell("  ") == "  ");
  CHECK(cell("=HYPERLINK(\"x\",\"y\")") == "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\"");
  CHECK(cell("-1.5e-6") == "-1.5e-6");
  CHECK(cell("a=b") == "a=b");
}

TEST_CASE("headers are cells too", "[csv]") { CHECK(render_csv({"", {{"=a,b"}}, {}}) == "\"'=a,b\"\n"); }

TEST_CASE("numbers are written in full, as they read back", "[csv]") {
  CHECK(plain(0) == "0");
  CHECK(plain(-0.0) == "0");
  CHECK(plain(15442649088.0) == "15442649088");
  CHECK(plain(0.1) == "0.1");
  CHECK(plain(1.0 / 3) == "0.3333333333333333");
  CHECK(plain(1e300) == "1e+300");
  CHECK(std::stod(plain(8.322031746031747e-06)) == 8.322031746031747e-06);
}

TEST_CASE("what is not finite is an empty cell", "[csv]") {
  CHECK(plain(NAN).empty());
  CHECK(plain(INFINITY).empty());
}

}  // namespace llmperf::report::csv_test
