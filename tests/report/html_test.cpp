// The HTML page: what its parts make of values and names. Whole pages are in tests/scripts/html_report_test.py.
#include "report/html/html.h"

#include <array>
#include <fstream>
#include <string>

#include "base/error.h"
#include "catch.h"
#include "report/html/labels.h"
#include "report/html/values.h"
#include "report/html/writer.h"

namespace llmperf::report::html_test {

namespace {

std::string shown_text(const char* json, const char* key, const char* parent = "") {
  return shown(Json::parse(json), key, parent, Labels(Language::english)).text;
}

std::string document(const std::string& members) {
  return R"({"schema": "llmperf.estimate", "schema_version": 1, )" + members + "}";
}

std::string error_of(const std::string& text) {
  try {
    render_html(text, Language::english);
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::bad_input);
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the end of a key says the unit", "[html]") {
  CHECK(shown_text("0.01756", "tpot_s") == "17.56 ms");
  CHECK(shown_text("1008000000000", "memory_bandwidth_bytes_per_s") == "1008 GB/s");
  CHECK(shown_text("165200000000000", "matrix_flops_per_s") == "165.2 TFLOP/s");
  CHECK(shown_text("6704386250624", "flops") == "6.704 TFLOP");
  CHECK(shown_text("0.934", "of_bound") == "93.4 %");
  CHECK(shown_text("16153", "longest_context_tokens") == "16,153");
  CHECK(shown_text("1.5e9", "clock_hz") == "1.5 GHz");
  CHECK(shown_text("2.5", "tokens_per_second") == "2.5");
}

TEST_CASE("memory is in powers of 1024, traffic in powers of 1000", "[html]") {
  CHECK(shown_text("1073741824", "weight_bytes", "memory") == "1 GiB");
  CHECK(shown_text("1073741824", "weight_bytes", "ops") == "1.074 GB");
  CHECK(shown_text("25769803776", "capacity_bytes") == "24 GiB");
  CHECK(shown_text("1073741824", "tensor_bytes", "rows") == "1 GiB");
  CHECK(shown_text("1073741824", "weight_bytes", "rows") == "1 GiB");
  CHECK(shown_text("1073741824", "weight_bytes") == "1 GiB");  // of a model, at the top of its document
}

TEST_CASE("an exact number stands beside the text, nothing beside what is none", "[html]") {
  const Labels labels(Language::chinese);
  CHECK(shown(Json::parse("0.1"), "time_s", "", labels).value == "0.1");
  CHECK(shown(Json(nullptr), "time_s", "", labels).text == "无");
  CHECK(shown(Json(true), "fits", "", labels).text == "是");
  CHECK(shown(Json("memory"), "bound", "", labels).text == "访存");
  CHECK(shown(Json("memory"), "name", "", labels).text == "memory");
  CHECK(shown(Json("assumed"), "latency_provenance", "", labels).provenance);
}

TEST_CASE("text is escaped for elements and for quoted attributes", "[html]") {
  CHECK(html_escaped("<a href=\"x\" title='y'>&amp;") == "&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp;amp;");
  CHECK(html_escaped("two\nlines\x01") == "two lines?");
  HtmlWriter page;
  page.open_section("a\"b", "<h>", 9);
  CHECK(page.html() == "<section id=\"a&quot;b\">\n<h6>&lt;h&gt;</h6>\n");
}

TEST_CASE("what stands between backticks is code", "[html]") {
  HtmlWriter page;
  page.paragraph("run `a <b>`, not `c");
  CHECK(page.html() == "<p>run <code>a &lt;b&gt;</code>, not `c</p>\n");
}

TEST_CASE("columns that say the same in every row of many stand in a line above their table", "[html]") {
  const Labels labels(Language::english);
  Json rows = Json::array();
  for (int i = 0; i < 4; ++i) rows.push_back({{"name", "op"}, {"batch", i}, {"prompt_tokens", 512}});
  HtmlWriter page;
  write_table(page, table_of(rows, "rows", labels, {"prompt_tokens", "batch"}), labels);
  // The first column names the rows and stays, whatever it says.
  CHECK(page.html().find("data-key=\"prompt_tokens\"") < page.html().find("data-key=\"batch\""));
  CHECK(page.html().find("The same in all rows: name op") != std::string::npos);
  CHECK(page.html().find("data-key=\"name\"") == std::string::npos);
  rows.erase(0);
  HtmlWriter few;
  write_table(few, table_of(rows, "rows", labels), labels);
  CHECK(few.html().find("The same") == std::string::npos);
}

TEST_CASE("a plan of one device is its name, one of several has its degrees", "[html]") {
  const auto plan = [](const char* devices) {
    return render_html(
        document(std::string(R"("inputs": {"plan": {"text": "a plan", "tensor": 7, "devices": )") + devices + "}}"),
        Language::english);
  };
  CHECK(plan("1").find("<dd>a plan</dd>") != std::string::npos);
  CHECK(plan("1").find("data-value=\"7\"") == std::string::npos);
  CHECK(plan("8").find("data-value=\"7\"") != std::string::npos);
}

TEST_CASE("a drawing is base64, whatever is in it", "[html]") {
  HtmlWriter page;
  page.svg_image("<svg>", "d");  // 3c 73 76 67 3e
  CHECK(page.html().find("base64,PHN2Zz4=\"") != std::string::npos);
}

TEST_CASE("only known kinds of provenance become data-kind", "[html]") {
  HtmlWriter page;
  page.fields({{"a", {"datasheet", "datasheet", true}}, {"b", {"\"><b>", "\"><b>", true}}});
  CHECK(page.html().find("data-kind=\"datasheet\"") != std::string::npos);
  CHECK(page.html().find("<dd>&quot;&gt;&lt;b&gt;</dd>") != std::string::npos);
}

TEST_CASE("a key without a label is spelt out without its unit", "[html]") {
  CHECK(Labels(Language::english).key("some_new_bytes_per_s") == "some new");
  CHECK(Labels(Language::chinese).key("some_new_s") == "some new");
  CHECK(Labels(Language::chinese).key("ttft_s") == "首字延迟 TTFT");
  CHECK(Labels(Language::chinese).list_title("steps") == "步骤");
  CHECK(Labels(Language::chinese).list_title("ttft_s") == "首字延迟 TTFT");
  CHECK(Labels(Language::english).text("needs", {"{}", "2"}) == "needs {} of 2");
}

TEST_CASE("nothing in a document ends its script element", "[html]") {
  const std::string page = render_html(document(R"("label": "</script><!-- \u2028 &")"), Language::english);
  CHECK(page.find(R"(\u003c/script\u003e\u003c!-- ? \u0026)") != std::string::npos);
  CHECK(page.find("&lt;/script&gt;&lt;!-- ? &amp;") != std::string::npos);
}

TEST_CASE("what is no document of llmperf is refused with a reason", "[html]") {
  CHECK(error_of("").find("empty") != std::string::npos);
  CHECK(error_of("{\n\"a\": ]").find("not JSON from here on") != std::string::npos);
  CHECK(error_of("{\"schema\": 3}").find("it has no 'schema'") != std::string::npos);
  CHECK(error_of("{\"schema\": \"x\"}").find("its schema is 'x'") != std::string::npos);
  CHECK(error_of(R"({"schema": "llmperf.estimate", "schema_version": 7})").find("of version 7") != std::string::npos);
  CHECK(error_of(document("\"a\": " + std::string(70, '[') + std::string(70, ']'))).find("deeper") !=
        std::string::npos);
  CHECK(error_of(document("\"notes\": []")) == "no error");
}

TEST_CASE("a document may hold anything under any key", "[html]") {
  std::ifstream file(LLMPERF_SOURCE_DIR "/tests/golden/estimate_qwen-7b_rtx4090.json");
  const Json good = Json::parse(file);
  constexpr std::array kSchemas = {"llmperf.estimate", "llmperf.validate", "llmperf.difference", "llmperf.sweep"};
  std::size_t turn = 0;
  for (const char* wrong :
       {"null", "1", "-1.5e300", "\"text\"", "true", "[]", "{}", "[1, \"a\", null]", "[[]]", "[{}]",
        R"({"a": {"b": [[{"c": 1}]]}})", R"([{"ops": [{}]}])", R"([{"ops": 3}, 4])", R"({"a": {}, "b": {}})",
        R"([{"name": 1, "text": {"text": "t"}, "ops": [{"collective": {}, "time_s": "x", "roof_s": []}]}])"}) {
    for (const auto& [key, value] : good.items()) {
      if (key == "schema" || key == "schema_version") continue;
      Json bad = good;
      bad["schema"] = kSchemas[turn++ % kSchemas.size()];
      bad[key] = bad["rows"] = bad["headline"] = Json::parse(wrong);
      CHECK(render_html(bad.dump(), Language::chinese).ends_with("</html>\n"));
    }
  }
}

}  // namespace llmperf::report::html_test
