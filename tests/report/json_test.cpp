// JSON values that any reader takes: no NaN, no infinity, no fraction where there is none, always valid UTF-8.
#include "result/json.h"

#include <limits>

#include "catch.h"

namespace llmperf::result::json_test {

TEST_CASE("NaN and infinity are null", "[json]") {
  CHECK(number(std::numeric_limits<double>::quiet_NaN()).is_null());
  CHECK(number(std::numeric_limits<double>::infinity()).is_null());
  CHECK(number(-std::numeric_limits<double>::infinity()).is_null());
  CHECK(number(Seconds{std::numeric_limits<double>::quiet_NaN()}).is_null());
}

TEST_CASE("whole numbers have no fraction and no exponent", "[json]") {
  CHECK(number(0.0).dump() == "0");
  CHECK(number(-0.0).dump() == "0");
  CHECK(number(-3.0).dump() == "-3");
  CHECK(number(Bytes{15442649088.0}).dump() == "15442649088");
  CHECK(number(9007199254740991.0).dump() == "9007199254740991");  // 2^53 - 1
  CHECK(number(0.5).dump() == "0.5");
}

TEST_CASE("numbers beyond 2^53 stay numbers", "[json]") {
  CHECK(number(1e300).get<double>() == 1e300);
  CHECK(number(9007199254740994.0).get<double>() == 9007199254740994.0);
}

TEST_CASE("a number reads back as it was", "[json]") {
  for (const double value : {1.0 / 3, 8.322031746031747e-06, 5e-324, 1.7976931348623157e308}) {
    CHECK(Json::parse(number(value).dump()).get<double>() == value);
  }
}

TEST_CASE("a document says what it is", "[json]") {
  const Json json = header("llmperf.test");
  CHECK(json["schema"] == "llmperf.test");
  CHECK(json["schema_version"] == 1);
  CHECK(json["tool"]["name"] == "llmperf");
  CHECK(!json["tool"]["version"].get<std::string>().empty());
}

TEST_CASE("invalid UTF-8 is replaced, not thrown at the user", "[json]") {
  const std::string text = dump(Json{{"name", "a\xff"}});
  CHECK(text == "{\n  \"name\": \"a\uFFFD\"\n}\n");
}

}  // namespace llmperf::result::json_test
