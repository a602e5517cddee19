#include "points/selection.h"

#include <random>
#include <set>

#include "base/error.h"
#include "catch.h"

namespace llmperf::selection_test {

using points::Better;
using points::Key;

namespace {

const std::vector<std::string> kColumns = {"point", "ttft_s", "tokens_per_second", "batch"};

points::Row row(int point, double ttft, double rate) {
  points::Row r;
  r.add("point", static_cast<double>(point));
  r.add("ttft_s", ttft);
  r.add("tokens_per_second", rate);
  r.add("batch", 1.0);
  return r;
}

std::vector<int> points(const points::Selection& selection) {
  std::vector<int> result;
  for (const points::Row& r : selection.rows()) result.push_back(static_cast<int>(r[0].number));
  return result;
}

}  // namespace

TEST_CASE("the best come first, equals in the order offered") {
  points::Selection best = points::Selection::top({1, Better::lower}, 3);
  best.offer(row(0, 3, 0));
  best.offer(row(1, 1, 0));
  best.offer(row(2, 2, 0));
  best.offer(row(3, 1, 0));
  best.offer(row(4, 2, 0));
  CHECK(points(best) == std::vector<int>{1, 3, 2});
}

TEST_CASE("a row with an empty cell is never among the best") {
  points::Selection best = points::Selection::top({1, Better::lower}, 3);
  points::Row empty;
  for (const std::string& name : kColumns) empty.add_none(name);
  best.offer(empty);
  best.offer(row(1, 1, 0));
  CHECK(points(best) == std::vector<int>{1});
}

TEST_CASE("the front has what nothing beats in all columns") {
  points::Selection front = points::Selection::pareto({{1, Better::lower}, {2, Better::higher}});
  front.offer(row(0, 1.0, 10));
  front.offer(row(1, 2.0, 5));  // beaten by 0
  front.offer(row(2, 2.0, 30));
  front.offer(row(3, 1.5, 30));  // beats 2
  front.offer(row(4, 0.5, 1));
  front.offer(row(5, 1.0, 10));  // equal to 0: neither beats the other
  CHECK(points(front) == std::vector<int>{4, 0, 5, 3});
  CHECK(front.beaten() == std::vector<std::vector<double>>{{2.0, 5}, {2.0, 30}});
  for (std::size_t i = 2; i < points::Selection::kMostBeaten; ++i) front.offer(row(6, 9.0, 0));
  CHECK(front.beaten()->size() == points::Selection::kMostBeaten);
  front.offer(row(6, 9.0, 0));
  CHECK(!front.beaten());  // too many to be of use
}

TEST_CASE("a selection of selections is that of the whole, however the rows were divided") {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> value(0, 30);  // with equals
  std::vector<points::Row> rows;
  for (int i = 0; i < 500; ++i) rows.push_back(row(i, value(random), value(random)));
  const std::vector<points::Selection> kinds = {points::Selection::all(),
                                                points::Selection::top({2, Better::higher}, 17),
                                                points::Selection::pareto({{1, Better::lower}, {2, Better::higher}})};
  for (const points::Selection& kind : kinds) {
    points::Selection whole = kind;
    for (const points::Row& r : rows) whole.offer(r);
    points::Selection joined = kind;
    for (std::size_t begin = 0; begin < rows.size(); begin += 60) {
      points::Selection part = kind;
      for (std::size_t i = begin; i < std::min(begin + 60, rows.size()); ++i) part.offer(rows[i]);
      joined.add_beaten(part);
      for (const points::Row& r : part.rows()) joined.offer(r);
    }
    CHECK(points(joined) == points(whole));
    CHECK(std::multiset(joined.beaten()->begin(), joined.beaten()->end()) ==
          std::multiset(whole.beaten()->begin(), whole.beaten()->end()));
    CHECK((kind.front_keys().empty() || whole.rows().size() + whole.beaten()->size() == rows.size()));
  }
}

TEST_CASE("keys know which way is better, or are told") {
  CHECK(points::parse_key("--by", "ttft_s", kColumns).better == Better::lower);
  CHECK(points::parse_key("--by", "tokens_per_second", kColumns).better == Better::higher);
  CHECK(points::parse_key("--by", "ttft_s:high", kColumns).better == Better::higher);
  CHECK(points::parse_key("--by", "batch:low", kColumns).column == 3);
  CHECK_THROWS_AS(points::parse_key("--by", "batch", kColumns), llmperf::Error);
  CHECK_THROWS_AS(points::parse_key("--by", "batch:up", kColumns), llmperf::Error);
  CHECK_THROWS_AS(points::parse_key("--by", "ttft", kColumns), llmperf::Error);
}

}  // namespace llmperf::selection_test
