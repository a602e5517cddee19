// Markdown in which a name stays a name.
#include <string>

#include "catch.h"
#include "report/document.h"

namespace llmperf::report::markdown_test {

TEST_CASE("a table has a rule that aligns its columns", "[markdown]") {
  CHECK(render_markdown({Table{"Title", {{"name", true}, {"n"}}, {{"a", "1"}, {"b"}}}}) ==
        "### Title\n\n| name | n |\n| --- | ---: |\n| a | 1 |\n| b |  |\n");
}

TEST_CASE("headings, paragraphs and fields", "[markdown]") {
  CHECK(render_markdown({Heading{"h", "aside"}, Paragraph{"text"}, Fields{"t", {{"k", "v"}}}}) ==
        "## h (aside)\n\ntext\n\n### t\n\n* **k**: v\n");
}

TEST_CASE("no text breaks out of its cell or becomes markup", "[markdown]") {
  const auto cell = [](const std::string& text) {
    const std::string start = "| x |\n| --- |\n| ", end = " |\n";
    const std::string all = render_markdown({Table{"", {{"x", true}}, {{text}}}});
    REQUIRE(all.starts_with(start));
    REQUIRE(all.ends_with(end));
    return all.substr(start.size(), all.size() - start.size() - end.size());
  };
  CHECK(cell("a|b") == "a\\|b");
  CHECK(cell("two\nlines\r") == "two lines ");
  CHECK(cell("<script>") == "&lt;script>");
  CHECK(cell("&lt;b>") == "&amp;lt;b>");
  CHECK(cell("[text](javascript:x)") == "\\[text\\](javascript:x)");
  CHECK(cell("![i](u)") == "!\\[i\\](u)");
  CHECK(cell("*a* _b_ `c` ~~d~~ \\") == "\\*a\\* \\_b\\_ \\`c\\` \\~\\~d\\~\\~ \\\\");
  CHECK(cell("\x1b[1m") == "?\\[1m");
  CHECK(cell("模型 512x4096") == "模型 512x4096");
}

}  // namespace llmperf::report::markdown_test
