// Values of flags: what is accepted is exactly what is documented, everything else names the flag and the text.
#include <string>

#include "base/error.h"
#include "catch.h"
#include "cli/output.h"

namespace llmperf::values_test {

using namespace llmperf::cli;

namespace {

template <class Parse>
std::string error_of(Parse parse) {
  try {
    parse();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::bad_input);
    return error.what();
  }
  FAIL("accepted");
  return {};
}

}  // namespace

TEST_CASE("a whole number within its bounds, both included", "[values]") {
  CHECK(count_value("--n", "1", 1, 10) == 1);
  CHECK(count_value("--n", "10", 1, 10) == 10);
  CHECK(count_value("--n", "-5", -5, 5) == -5);
  CHECK(count_value("--n", "9223372036854775807", 0, INT64_MAX) == INT64_MAX);
  for (const char* text : {"0", "11", "-1", "", " 1", "1 ", "+1", "1.0", "1e1", "0x1", "01", "one", "nan",
                           "9223372036854775808", "99999999999999999999999999"}) {
    INFO(text);
    CHECK(error_of([&] { count_value("--n", text, 1, 10); }) ==
          "--n: '" + std::string(text) + "' is not a whole number between 1 and 10");
  }
}

TEST_CASE("a finite number within its bounds, both included", "[values]") {
  CHECK(number_value("--p", "0", 0, 1) == 0);
  CHECK(number_value("--p", "1", 0, 1) == 1);
  CHECK(number_value("--p", "0.8", 0, 1) == 0.8);
  CHECK(number_value("--p", "8e-1", 0, 1) == 0.8);
  for (const char* text :
       {"-0.1", "1.1", "", "nan", "inf", "-inf", "1e400", "0.8x", "0,8", "80%", " 0.8", "0x1p-1", "+0.8"}) {
    INFO(text);
    CHECK(error_of([&] { number_value("--p", text, 0, 1); }) ==
          "--p: '" + std::string(text) + "' is not a number between 0 and 1");
  }
}

TEST_CASE("an amount of memory has a unit: GB is 10^9, GiB 2^30", "[values]") {
  CHECK(amount_value("--reserve", "0B").value == 0);
  CHECK(amount_value("--reserve", "512MiB").value == 512.0 * 1048576);
  CHECK(amount_value("--reserve", "2 GB").value == 2e9);
  CHECK(amount_value("--reserve", "1.5GiB").value == 1.5 * 1073741824);
  for (const char* text :
       {"", "512", "GiB", "-1GiB", "nanGiB", "1e308TiB", "1e7TB", "1gib", "1 GiB ", "1  GiB", "1GiB/s"}) {
    INFO(text);
    const std::string error = error_of([&] { amount_value("--reserve", text); });
    CHECK(error.starts_with("--reserve: '" + std::string(text) + "' is not an amount of memory\n  hint: "));
  }
}

TEST_CASE("formats by name and by extension", "[values]") {
  CHECK(format_value("--format", "table") == report::Format::table);
  CHECK(format_value("--format", "csv") == report::Format::csv);
  CHECK(format_value("--format", "json") == report::Format::json);
  CHECK(format_value("--format", "md") == report::Format::md);
  CHECK(error_of([] { format_value("--format", "JSON"); }).find("did you mean 'json'") != std::string::npos);
  CHECK(export_format("a.json") == report::Format::json);
  CHECK(export_format("some/folder/a.b.csv") == report::Format::csv);
  CHECK(export_format("a.md") == report::Format::md);
  CHECK(export_format("a.html") == report::Format::html);
  CHECK(export_format("a.trace.json") == report::Format::trace);
  for (const char* path : {"", "a", "json", "a.txt", "a.table", "a.json/", "a.JSON", "a.json.gz"}) {
    INFO(path);
    CHECK(error_of([&] { export_format(path); }).find(".json, .csv, .md, .html or .trace.json") != std::string::npos);
  }
}

TEST_CASE("a list has no empty items; spaces around them do not count", "[values]") {
  CHECK(list_value("--model", "a") == std::vector<std::string>{"a"});
  CHECK(list_value("--model", "a, b ,c") == std::vector<std::string>{"a", "b", "c"});
  for (const char* text : {"", ",", "a,", ",a", "a,,b", " ", "a, ,b"}) {
    INFO(text);
    CHECK(error_of([&] { list_value("--model", text); }) == "--model: '" + std::string(text) + "' has an empty item");
  }
}

TEST_CASE("a long or strange value does not flood or fool the terminal", "[values]") {
  CHECK(error_of([] { count_value("--n", std::string(100'000, '7'), 1, 10); }).size() < 200);
  CHECK(error_of([] { count_value("--n", "\x1b[2J", 1, 10); }).find('\x1b') == std::string::npos);
}

}  // namespace llmperf::values_test
