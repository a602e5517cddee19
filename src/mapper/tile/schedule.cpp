#include "mapper/tile/schedule.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/integer.h"

namespace llmperf::mapper::tile {
namespace {

// A slice of `bytes` per request that
//   is multicast  goes over every link of its group's path once, length - 1 tiles get it from another one;
//   goes round    comes to each of p tiles in p parts, of which p - 1 from another one; every link of the path, and of
//                 the way back from its last tile to its first, carries p - 1 parts.
//
// Adds slices of `bytes` a request in total.
void add(StreamTraffic& traffic, const Machine& machine, const Stream& stream, const Paths& paths, double bytes) {
  if (!stream.used) return;
  traffic.dram += bytes * requests_of(machine, stream, paths);
  const double others = paths.length - 1;
  switch (stream.feed) {
    case Feed::direct: return;
    case Feed::multicast:
      traffic.passed += bytes * paths.groups * others;
      traffic.hops += bytes * paths.groups * paths.hops;
      return;
    case Feed::ring:
      traffic.passed += bytes * machine.tiles * others;
      traffic.hops += bytes * others * paths.groups * (paths.hops + paths.back);
      return;
  }
}

}  // namespace

std::string_view name(Feed feed) {
  constexpr std::array<std::string_view, 3> kNames = {"direct", "multicast", "ring"};
  return kNames[static_cast<std::size_t>(feed)];
}

std::string_view name(Results results) {
  constexpr std::array<std::string_view, 3> kNames = {"in_place", "staged", "doubled"};
  return kNames[static_cast<std::size_t>(results)];
}

int requests_of(const Machine& machine, const Stream& stream, const Paths& paths) {
  return !stream.used || stream.local ? 0 : stream.feed == Feed::multicast ? paths.groups : machine.tiles;
}

double link_bytes(const Machine& machine, const Stream& stream, double bytes) {
  return stream.feed == Feed::multicast ? bytes * machine.link / machine.multicast_rate() : bytes;
}

double messages_of(const Stream& stream, const Paths& paths) {
  if (!stream.used || stream.feed == Feed::direct) return 0;
  return stream.feed == Feed::ring ? paths.length - 1 : 1;
}

Traffic traffic_of(const Machine& machine, const Schedule& s) {
  const Grid& g = *s.grid;
  Traffic t;
  double a_bytes = 0;  // of the slices of one request each
  double b_bytes = 0;
  double sums = 0;  // of one tile
  s.each_block([&](const Block& b, double blocks, double opening) {
    // Slices that stayed are loaded by the block that opens a row only.
    const std::int64_t known = std::min(b.found, b.steps - 1);
    const double stayed = d(s.panel >= b.steps ? known : known * s.panel / b.steps);
    const bool last_stayed = s.panel > 0 && b.found >= b.steps;
    const double full_loads = blocks * (d(b.steps - 1) - stayed) + opening * stayed;
    const double last_loads = last_stayed ? opening : blocks;
    a_bytes += full_loads * b.full.a + last_loads * b.last.a;
    const double full = d(b.steps - 1);
    b_bytes += blocks * (full * b.full.b + b.last.b);
    sums += blocks * b.reduce;
    const double tiles = blocks * machine.tiles;
    t.start += tiles * b.start;
    t.end += tiles * b.end;
    t.result += tiles * b.result;
    t.matrix += blocks * (full * (b.full.before + b.full.after) + b.last.before + b.last.after);
    t.vector += blocks * (full * b.full.vector + b.last.vector + b.finish);
    t.requests += (full_loads + last_loads) * requests_of(machine, s.a, g.a) +
                  blocks * d(b.steps) * requests_of(machine, s.b, g.b) +
                  tiles * ((b.start > 0 ? 1 : 0) + (b.end > 0 ? 1 : 0) + std::max(1.0, b.result / kPiece));
  });
  add(t.a, machine, s.a, g.a, a_bytes);
  add(t.b, machine, s.b, g.b, b_bytes);
  double busiest = 0;
  for (const LinkLoad& load : g.loads) {
    busiest = std::max(busiest, load.a * messages_of(s.a, g.a) * link_bytes(machine, s.a, a_bytes) +
                                    load.b * messages_of(s.b, g.b) * link_bytes(machine, s.b, b_bytes));
  }
  if (g.c.length > 1) {
    t.sums.passed = sums * machine.tiles;
    t.sums.hops = sums * g.c.groups * (g.c.hops + g.c.back);
    busiest += g.c_load * sums;
  }
  t.link = busiest / machine.link;
  return t;
}

}  // namespace llmperf::mapper::tile
