#include "report/pages/study_view.h"

#include "base/error.h"
#include "catch.h"
#include "report/quantity.h"
#include "result/document.h"

namespace llmperf::study_view_test {

using report::Table;

namespace {

Table table(std::vector<std::string> header, std::vector<std::vector<std::string>> rows) {
  Table t;
  for (std::string& name : header) t.columns.push_back({std::move(name)});
  t.rows = std::move(rows);
  return t;
}

}  // namespace

TEST_CASE("CSV values are printed by the unit in their column's name") {
  CHECK(report::readable("ttft_s", "0.0486") == "48.6 ms");
  CHECK(report::readable("ttft_gain_s", "-0.005") == "-5 ms");
  CHECK(report::readable("ttft_gain_s", "0") == "0 s");
  CHECK(report::readable("total_bytes", "1073741824") == "1 GiB");
  CHECK(report::readable("kv_bytes_per_token", "524288") == "512 KiB");
  CHECK(report::readable("error", "-0.32") == "-32.0 %");
  CHECK(report::readable("step_utilisation", "0.14") == "14.0 %");
  CHECK(report::readable("longest_context_tokens", "16153") == "16,153");
  CHECK(report::readable("tokens_per_second", "11276.8") == "11,277");
  CHECK(report::readable("tokens_per_second", "56.1716") == "56.17");
  CHECK(report::readable("fits", "false") == "no");
  CHECK(report::readable("fits", "") == "-");
  CHECK(report::readable("error", "unknown model 'x'") == "unknown model 'x'");  // a reason, not a share
}

TEST_CASE("headings are the names of columns without their units") {
  CHECK(result::label_of("ttft_s") == "TTFT");
  CHECK(result::label_of("kv_cache_bytes") == "KV cache");
  CHECK(result::label_of("tokens_per_second") == "tokens/s");
  CHECK(result::label_of("tokens_per_second_per_device") == "tokens/s per device");
  CHECK(result::label_of("total_bytes") == "memory needed");
  CHECK(result::label_of("no_such_bytes_per_s") == "no such");
}

TEST_CASE("tables of several results are joined under the union of their columns") {
  const Table all = report::joined({table({"a", "b"}, {{"1", "2"}}), table({"b", "c"}, {{"3", "4"}})});
  REQUIRE(all.columns.size() == 3);
  CHECK(all.rows == std::vector<std::vector<std::string>>{{"1", "2", ""}, {"", "3", "4"}});
}

TEST_CASE("a pivot has a row for each key and a column for each value, in order of appearance") {
  points::View view;
  view.pivot = points::Pivot{{{"m", 1, 1}}, {"w", 1, 1}, {{{"t_s", 1, 1}, "T"}}};
  const Table rows = report::chosen_rows(
      view, table({"m", "w", "x", "t_s"}, {{"b", "w16", "9", "1"}, {"a", "w8", "9", "0.5"}, {"b", "w8", "9", ""}}),
      "f");
  CHECK(rows.columns.size() == 3);  // x is not asked for
  const report::Document page = report::shown_rows(view, rows, "f");
  REQUIRE(page.size() == 1);
  const auto& shown = std::get<Table>(page.front());
  CHECK(shown.title == "T by w");
  // (a, w16) is not there, (b, w8) has no value.
  CHECK(shown.rows == std::vector<std::vector<std::string>>{{"b", "1 s", "-"}, {"a", "", "500 ms"}});
}

TEST_CASE("an unknown column is an error at its place") {
  points::View view;
  view.columns = {{{"tft_s", 7, 3}, ""}};
  CHECK_THROWS_WITH(report::chosen_rows(view, table({"ttft_s"}, {{"1"}}), "f.yaml"),
                    "f.yaml:7:3: the result has no column 'tft_s'\n  hint: did you mean 'ttft_s'?");
}

TEST_CASE("a part is a title and what follows it without one") {
  const report::Document page = {report::Heading{"Head", ""}, report::Fields{"", {{"a", "b"}}}, Table{"Memory", {}, {}},
                                 report::Paragraph{"note"}, Table{"Rests on", {}, {}}};
  CHECK(report::chosen_parts({{"Mem", 1, 1}}, page, "f").size() == 2);
  CHECK(report::chosen_parts({{"Head", 1, 1}, {"Rests", 1, 1}}, page, "f").size() == 3);
  CHECK(report::chosen_parts({}, page, "f").size() == 5);
}

}  // namespace llmperf::study_view_test
