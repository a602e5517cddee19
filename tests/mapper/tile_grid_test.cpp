// How tiles share a product: layouts on the mesh by hand.
#include <algorithm>
#include <set>

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
      CHECK(std::set<int>(p->tiles.begin(), p->tiles.end()).size() == 16);
      for (int i = 0; i < 16; ++i)
        CHECK(p->group[static_cast<std::size_t>(p->tiles[static_cast<std::size_t>(i)])] == i / p->length);
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

TEST_CASE("a mesh of twelve tiles is shared out, too") {
  Machine m = tx8();
  m.tiles = 12;
  m.mesh_x = 4;
  m.mesh_y = 3;
  for (const Grid& g : all_grids(m)) CHECK(g.batch * g.m * g.n * g.k == 12);
}

}  // namespace
}  // namespace llmperf::mapper::tile::tile_grid_test
