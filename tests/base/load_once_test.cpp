#include "base/load_once.h"

#include <map>
#include <stdexcept>
#include <string>

#include "catch.h"

namespace llmperf::load_once_test {

TEST_CASE("a value is loaded when it is first asked for, and what fails leaves nothing behind") {
  std::map<std::string, int> map;
  int loads = 0;
  const auto load = [&] { return ++loads; };
  CHECK(load_once(map, "a", load) == 1);
  CHECK(load_once(map, "a", load) == 1);
  CHECK(load_once(map, "b", load) == 2);
  for (int i = 0; i < 2; ++i) {
    CHECK_THROWS_AS(load_once(map, "c", []() -> int { throw std::runtime_error("no such file"); }), std::runtime_error);
  }
  CHECK(map.size() == 2);
}

}  // namespace llmperf::load_once_test
