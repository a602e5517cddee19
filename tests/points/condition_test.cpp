#include "points/condition.h"

#include "base/error.h"
#include "catch.h"

namespace llmperf::condition_test {

namespace {

const std::vector<std::string> kColumns = {"model", "batch", "ttft_s", "tpot_s", "fits", "total_bytes"};

points::Row row() {
  points::Row r;
  r.add("model", "qwen-7b");
  r.add("batch", 8.0);
  r.add("ttft_s", 0.25);
  r.add_none("tpot_s");
  r.add("fits", true);
  r.add("total_bytes", 3.0 * 1024 * 1024 * 1024);
  return r;
}

bool holds(const char* text) { return points::Condition(text, kColumns)(row()); }

std::string message(const std::string& text) {
  try {
    points::Condition(text, kColumns);
  } catch (const llmperf::Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("comparisons of numbers, texts and truths") {
  CHECK(holds("ttft_s < 0.5"));
  CHECK(holds("ttft_s <= 0.25 and ttft_s >= 0.25 and ttft_s == 0.25 and ttft_s = 0.25"));
  CHECK_FALSE(holds("ttft_s > 0.25"));
  CHECK(holds("ttft_s != 1"));
  CHECK(holds("model == 'qwen-7b'"));
  CHECK(holds("model != \"llama-2-7b\""));
  CHECK(holds("fits == true"));
  CHECK(holds("fits"));
}

TEST_CASE("not binds closer than and, and closer than or") {
  CHECK(holds("fits or fits and batch > 100"));
  CHECK_FALSE(holds("(fits or fits) and batch > 100"));
  CHECK(holds("not batch > 100 and fits"));
  CHECK(holds("not (batch > 100 and fits)"));
  CHECK(holds("! batch > 100 && (fits || batch == 0)"));
  CHECK(holds("not not fits"));
}

TEST_CASE("arithmetic: products before sums, from left to right") {
  CHECK(holds("batch + 2 * 3 == 14"));
  CHECK(holds("(batch + 2) * 3 == 30"));
  CHECK(holds("batch - 4 - 2 == 2"));
  CHECK(holds("batch / 4 / 2 == 1"));
  CHECK(holds("-batch + 9 == 1"));
}

TEST_CASE("numbers take units") {
  CHECK(holds("ttft_s == 250ms"));
  CHECK(holds("ttft_s < 1s and ttft_s > 249999us"));
  CHECK(holds("total_bytes == 3GiB"));
  CHECK(holds("total_bytes > 3GB"));
  CHECK(holds("batch < 1k"));
  CHECK(holds("ttft_s == 2.5e-1"));
}

TEST_CASE("a comparison with an empty cell or of unlike kinds is false, whichever way") {
  CHECK_FALSE(holds("tpot_s < 1"));
  CHECK_FALSE(holds("tpot_s > 1"));
  CHECK_FALSE(holds("tpot_s != 1"));
  CHECK(holds("not tpot_s < 1"));
  CHECK_FALSE(holds("1 / (batch - 8) > 1"));
}

TEST_CASE("what can never hold is refused") {
  CHECK(message("total_bytes < 10s").find("a number of bytes is compared with a time") != std::string::npos);
  CHECK(message("ttft_s < 2GiB or fits").find("a time is compared with a number of bytes") != std::string::npos);
  CHECK(message("model < 3").find("a text is compared with a number") != std::string::npos);
  CHECK(message("fits == 1").find("a truth is compared with a number") != std::string::npos);
  CHECK(message("fits + 1").find("a truth is no number") != std::string::npos);
  CHECK(message("-model < 1").find("a text is no number") != std::string::npos);
  CHECK(message("ttft_s + 1GiB > 0").find("a time is added to a number of bytes") != std::string::npos);
  CHECK(message("1/0 < 2").find("a division by 0") != std::string::npos);
  CHECK(message("ttft_s").find("a time alone says nothing") != std::string::npos);
  // Plain numbers go with everything, and so do products, whose unit is not followed.
  CHECK(holds("ttft_s < 1 and total_bytes > 1e9 and batch * ttft_s > 1s and total_bytes / ttft_s > 1GB"));
  CHECK(holds("fits == true and not (fits == (batch > 100))"));
}

TEST_CASE("what is wrong is said with its place and the nearest column") {
  CHECK(message("ttf_s < 1").find("character 1: unknown column at 'ttf_s < 1'") != std::string::npos);
  CHECK(message("ttf_s < 1").find("did you mean 'ttft_s'") != std::string::npos);
  CHECK(message("ttft_s < ").find("a value is missing at the end") != std::string::npos);
  CHECK(message("ttft_s < 5 parsecs").find("unexpected text") != std::string::npos);
  CHECK(message("ttft_s < 5parsecs").find("unknown unit") != std::string::npos);
  CHECK(message("(fits").find("a ')' is missing") != std::string::npos);
  CHECK(message("model == 'x").find("a quote does not end") != std::string::npos);
  CHECK(message("").find("a value is missing") != std::string::npos);
  CHECK_FALSE(message(std::string(1000, '(') + "1" + std::string(1000, ')')).empty());
  std::string deep = "1";
  for (int i = 0; i < 100; ++i) deep = "1+(" + deep + ")";
  CHECK_FALSE(message(deep).empty());
}

}  // namespace llmperf::condition_test
