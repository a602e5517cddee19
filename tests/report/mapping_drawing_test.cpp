#include "report/pages/mapping_drawing.h"

#include "catch.h"

namespace llmperf::report::mapping_drawing_test {
namespace {

using mapper::tile::Bar;
using mapper::tile::Lane;

Drawing two_lanes() {
  Drawing d;
  d.seconds = 80;
  d.windows = {{0, 80}};  // a character per second
  d.lanes = {{"load A", Lane::load_a, {{0, 10, 0}, {20, 20.3, 11}}},
             {"matrix", Lane::matrix, {{10, 30, 0}, {30, 80, 1}}}};
  return d;
}

TEST_CASE("a character is the last digit of the step that most of its time goes to") {
  const Table t = drawing_table(two_lanes());
  REQUIRE(t.rows.size() == 2);
  CHECK(t.columns[1].header == "0 to 80 s");
  CHECK(t.rows[0][0] == "load A");
  CHECK(t.rows[0][1] == std::string(10, '0') + std::string(10, '.') + ":" + std::string(59, '.'));
  CHECK(t.rows[1][1] == std::string(10, '.') + std::string(20, '0') + std::string(50, '1'));
}

TEST_CASE("two windows share the width") {
  Drawing d = two_lanes();
  d.windows = {{0, 20}, {60, 80}};
  const Table t = drawing_table(d);
  CHECK(t.columns[1].header == "first 20 s");
  CHECK(t.columns[2].header == "last 20 s");
  CHECK(t.rows[1][1] == std::string(20, '.') + std::string(20, '0'));
  CHECK(t.rows[1][2] == std::string(40, '1'));
}

TEST_CASE("an SVG has a rectangle per bar in a window, and its title is escaped") {
  Drawing d = two_lanes();
  d.windows = {{0, 15}};
  const std::string svg = drawing_svg(d, "a < b & c");
  std::size_t bars = 0;
  for (std::size_t at = svg.find("<rect"); at != std::string::npos; at = svg.find("<rect", at + 1)) ++bars;
  CHECK(bars == 2);
  CHECK(svg.find("a &lt; b &amp; c") != std::string::npos);
  CHECK(svg.find("<title>step 0: 10 s</title>") != std::string::npos);
}

}  // namespace
}  // namespace llmperf::report::mapping_drawing_test
