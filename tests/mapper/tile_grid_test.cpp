// How tiles share a product: layouts on the mesh by hand.
#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "catch.h"
#include "mapper/tile/machine.h"
#include "tile_machine.h"

namespace llmperf::mapper::tile::tile_grid_test {
namespace {

const Grid& grid_of(const std::vector<Grid>& grids, int batch, int m, int n, int k) {
  return *std::find_if(grids.begin(), grids.end(),
                       [&](const Grid& g) { return g.batch == batch && g.m == m && g.n == n && g.k == k; });
}

TEST_CASE("sixteen tiles are shared out in every way") {
  // Ordered factorisations of 2^4 into four: ways to deal four equal factors to four dimensions, C(7, 3).
  const std::vector<Grid> grids = all_grids(tx8());
  CHECK(grids.size() == 35);
  for (const Grid& g : grids) CHECK(g.batch * g.m * g.n * g.k == 16);
}

TEST_CASE("every tile is in one group of each kind, next to its neighbours where the mesh allows") {
  for (const Grid& g : all_grids(tx8())) {
    for (const Paths* p : {&g.a, &g.b, &g.c}) {
      CHECK(p->groups * p->length == 16);
      const Paths::Way& way = p->way();
      CHECK(std::set<int>(way.tiles.begin(), way.tiles.end()).size() == 16);
      for (int i = 0; i < 16; ++i)
        CHECK(way.group[static_cast<std::size_t>(way.tiles[static_cast<std::size_t>(i)])] == i / p->length);
    }
  }
}

TEST_CASE("four by four tiles hand on along rows and columns, each link for one group") {
  const std::vector<Grid> grids = all_grids(tx8());
  const Grid& g = grid_of(grids, 1, 4, 4, 1);
  CHECK(g.a.hops == 3);
  CHECK(g.b.hops == 3);
  for (const LinkLoad& l : g.loads) CHECK(l.a + l.b == 1);
}

TEST_CASE("sixteen tiles in a line wind through the mesh by single hops") {
  const std::vector<Grid> grids = all_grids(tx8());
  const Grid& g = grid_of(grids, 1, 16, 1, 1);
  CHECK(g.b.hops == 15);
  CHECK(g.a.length == 1);
  REQUIRE(g.loads.size() == 1);
  CHECK(g.loads[0].b == 1);
}

// Loads, and the lengths of paths, are formulas; here every path is followed link by link.
TEST_CASE("links carry what goes over them on the way of every path") {
  for (const auto& [x, y] : {std::array{4, 4}, std::array{6, 4}, std::array{9, 8}, std::array{13, 10}}) {
    Machine m = tx8();
    m.mesh_x = x;
    m.mesh_y = y;
    m.tiles = x * y;
    for (const Grid& g : all_grids(m)) {
      const auto carried = [&](const Paths& paths) {
        std::vector<int> loads(static_cast<std::size_t>(4 * m.tiles));
        for (const int link : paths.way().links) ++loads[static_cast<std::size_t>(link)];
        return loads;
      };
      const std::vector<int> a = carried(g.a);
      const std::vector<int> b = carried(g.b);
      std::set<std::pair<int, int>> heaviest;
      for (std::size_t i = 0; i < a.size(); ++i) heaviest.emplace(a[i], b[i]);
      std::set<std::pair<int, int>> loads;
      for (const LinkLoad& l : g.loads) loads.emplace(l.a, l.b);
      std::erase_if(heaviest, [&](const std::pair<int, int>& one) {
        return std::ranges::any_of(g.loads, [&](const LinkLoad& l) {
          return l.a >= one.first && l.b >= one.second && std::pair(l.a, l.b) != one;
        });
      });
      CHECK(heaviest == loads);
      const std::vector<int> c = carried(g.c);
      CHECK(g.c_load == *std::ranges::max_element(c));
      for (const Paths* p : {&g.a, &g.b, &g.c}) {
        CHECK(static_cast<int>(p->way().links.size()) == p->groups * p->hops);
      }
    }
  }
}

TEST_CASE("4,096 tiles are shared out in every way, and the loads on their links are those of few") {
  Machine m = tx8();
  m.mesh_x = m.mesh_y = 64;
  m.tiles = 4096;
  const std::vector<Grid> grids = all_grids(m);
  CHECK(grids.size() == 455);  // C(15, 3)
  const Grid& g = grid_of(grids, 1, 64, 64, 1);
  CHECK(g.a.hops == 63);
  for (const LinkLoad& l : g.loads) CHECK(l.a + l.b == 1);
}

TEST_CASE("a mesh of twelve tiles is shared out, too") {
  Machine m = tx8();
  m.tiles = 12;
  m.mesh_x = 4;
  m.mesh_y = 3;
  for (const Grid& g : all_grids(m)) CHECK(g.batch * g.m * g.n * g.k == 12);
}

}  // namespace
}  // namespace llmperf::mapper::tile::tile_grid_test
