// Tables and texts for a terminal: aligned, wrapped, within the page, and no control character from a name gets
// through.
#include "base/text.h"

#include <string>
#include <vector>

#include "catch.h"
#include "report/document.h"

namespace llmperf::report::text_test {

namespace {

std::vector<std::string> lines(const Document& document) {
  const std::string text = render_text(document);
  REQUIRE(text.ends_with('\n'));
  std::vector<std::string> result;
  const std::string_view body = std::string_view(text).substr(0, text.size() - 1);
  for (const std::string_view line : split(body, '\n')) result.emplace_back(line);
  return result;
}

int widest(const std::vector<std::string>& all) {
  int width = 0;
  for (const std::string& line : all) width = std::max(width, display_width(line));
  return width;
}

}  // namespace

TEST_CASE("text columns are aligned left and numbers right", "[text]") {
  const Table table{"Title", {{"name", true}, {"n"}}, {{"a", "1"}, {"long name", "12345"}}};
  CHECK(lines({table}) ==
        std::vector<std::string>{"Title", "  name           n", "  a              1", "  long name  12345"});
}

TEST_CASE("a wide character takes two columns, a combining mark none", "[text]") {
  const Table table{"", {{"model", true}, {"n"}}, {{"通义千问", "1"}, {"e\u0301", "2"}, {"abcdefgh", "3"}}};
  const std::vector<std::string> all = lines({table});
  CHECK(all == std::vector<std::string>{"  model     n", "  通义千问  1", "  e\u0301         2", "  abcdefgh  3"});
}

TEST_CASE("a number stays on a line with what it counts and with its band", "[text]") {
  const std::string time = "17.56 ms ±4 %";  // 13 columns, of which 100 less a word and a blank are left
  for (int before = 80; before < 100; ++before) {
    const std::string word(static_cast<std::size_t>(before), 'x');
    const std::vector<std::string> whole = {word + " " + time};
    const std::vector<std::string> apart = {word, time};
    CHECK(lines({Paragraph{word + " " + time}}) == (before <= 86 ? whole : apart));
  }
}

TEST_CASE("no line ends in spaces", "[text]") {
  const Document document{Heading{"h", {}}, Fields{"", {{"label", ""}, {"longer label", "x"}}},
                          Table{"", {{"a", true}, {"b", true}}, {{"x", ""}, {"", "yy"}}}};
  for (const std::string& line : lines(document)) CHECK(!line.ends_with(' '));
}

TEST_CASE("a heading's aside ends at the right margin, or below when there is no room", "[text]") {
  const std::vector<std::string> one = lines({Heading{"left", "right"}});
  REQUIRE(one.size() == 1);
  CHECK(one[0] == "left" + std::string(91, ' ') + "right");
  const std::vector<std::string> two = lines({Heading{std::string(95, 'x'), "right"}});
  CHECK(two == std::vector<std::string>{std::string(95, 'x'), std::string(95, ' ') + "right"});
}

TEST_CASE("only headings are bold, and only when colour is asked for", "[text]") {
  const Document document{Heading{"left", "right"}, Paragraph{"text"}};
  CHECK(render_text(document, true).find("\x1b[1mleft\x1b[0m   ") == 0);
  CHECK(render_text(document, false).find('\x1b') == std::string::npos);
}

TEST_CASE("paragraphs and values are wrapped between words", "[text]") {
  std::string words;
  for (int i = 0; i < 60; ++i) words += "word ";
  words += "end";
  const std::vector<std::string> paragraph = lines({Paragraph{words}});
  REQUIRE(paragraph.size() == 4);  // 20 words of 5 columns fill a line, the last one's space is dropped
  CHECK(display_width(paragraph[0]) == 99);
  CHECK(paragraph[3] == "end");
  const std::vector<std::string> field = lines({Fields{"", {{"label", words}}}});
  CHECK(widest(field) <= kPageWidth);
  CHECK(field[0].starts_with("  label  word "));
  CHECK(field[1].starts_with("         word "));
}

TEST_CASE("a word longer than the page is broken, between characters", "[text]") {
  const std::vector<std::string> ascii = lines({Paragraph{std::string(250, 'x')}});
  CHECK(ascii == std::vector<std::string>{std::string(100, 'x'), std::string(100, 'x'), std::string(50, 'x')});
  std::string wide;
  for (int i = 0; i < 60; ++i) wide += "模";
  const std::vector<std::string> all = lines({Paragraph{wide}});
  REQUIRE(all.size() == 2);
  CHECK(display_width(all[0]) == 100);
  CHECK(display_width(all[1]) == 20);
}

TEST_CASE("a table that is too wide wraps its widest text column between words", "[text]") {
  const Table table{"", {{"a", true}, {"b", true}, {"n"}}, {{"short", "several words of text", std::string(70, '7')}}};
  // 2 + 5 + 2 + 21 + 2 + 70 = 102 columns: two too many.
  const std::vector<std::string> all = lines({table});
  REQUIRE(all.size() == 3);
  CHECK(all[1] == "  short  several words of     " + std::string(70, '7'));
  CHECK(all[2] == "         text");
}

TEST_CASE("numbers are broken only when wrapping text is not enough", "[text]") {
  const Table table{"", {{"a", true}, {"n"}}, {{"two words", std::string(120, '7')}, {"x", "1"}}};
  const std::vector<std::string> all = lines({table});
  CHECK(widest(all) <= kPageWidth);
  std::size_t sevens = 0;
  for (const std::string& line : all) sevens += static_cast<std::size_t>(std::count(line.begin(), line.end(), '7'));
  CHECK(sevens == 120);
}

TEST_CASE("whatever the cells hold, no line is wider than the page", "[text]") {
  const std::vector<std::string> texts = {
      "", " ", "x", std::string(300, 'x'), std::string(300, ' '), "a b c", "  indented", "模型模型"};
  for (std::size_t columns = 1; columns <= 12; ++columns) {
    Table table{std::string(150, 't'), {}, {}};
    for (std::size_t i = 0; i < columns; ++i) table.columns.push_back({texts[i % texts.size()], i % 2 == 0});
    for (std::size_t row = 0; row < texts.size(); ++row) {
      table.rows.emplace_back();
      for (std::size_t i = 0; i < columns; ++i) table.rows.back().push_back(texts[(row + i) % texts.size()]);
    }
    CHECK(widest(lines({table})) <= kPageWidth);
  }
  CHECK(widest(lines({Fields{"", {{std::string(200, 'l'), std::string(200, 'v')}}}})) <= kPageWidth);
  CHECK(widest(lines({Heading{std::string(200, 'h'), "aside"}})) <= kPageWidth);
}

TEST_CASE("a row may have fewer cells than the table has columns", "[text]") {
  CHECK(lines({Table{"", {{"a", true}, {"b"}}, {{"x"}}}}) == std::vector<std::string>{"  a  b", "  x"});
}

TEST_CASE("control characters and invalid UTF-8 do not reach the terminal", "[text]") {
  const std::string hostile = "a\x1b[2Jb\nc\td\r\x7f\xff" + std::string(1, '\0') + "\u009be";
  const std::string clean = "a?[2Jb c d ?\uFFFD??e";
  CHECK(lines({Paragraph{hostile}}) == std::vector<std::string>{clean});
  CHECK(lines({Heading{hostile, {}}}) == std::vector<std::string>{clean});
  CHECK(lines({Fields{"", {{hostile, hostile}}}}) == std::vector<std::string>{"  " + clean + "  " + clean});
  CHECK(lines({Table{hostile, {{hostile, true}}, {{hostile}}}}) ==
        std::vector<std::string>{clean, "  " + clean, "  " + clean});
}

TEST_CASE("blocks are set apart by one empty line", "[text]") {
  CHECK(render_text({Paragraph{"a"}, Paragraph{"b"}, Fields{"t", {{"k", "v"}}}}) == "a\n\nb\n\nt\n  k  v\n");
  CHECK(render_text({}).empty());
}

}  // namespace llmperf::report::text_test
