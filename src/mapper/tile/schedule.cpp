#include "mapper/tile/schedule.h"

#include <array>

namespace llmperf::mapper::tile {

std::string_view name(Feed feed) {
  constexpr std::array<std::string_view, 3> kNames = {"direct", "multicast", "ring"};
  return kNames[static_cast<std::size_t>(feed)];
}

std::string_view name(Results results) {
  constexpr std::array<std::string_view, 3> kNames = {"in_place", "staged", "doubled"};
  return kNames[static_cast<std::size_t>(results)];
}

int requests_of(const Machine& machine, const Stream& stream, const Paths& paths) {
  return !stream.used ? 0 : stream.feed == Feed::multicast ? paths.groups : machine.tiles;
}

}  // namespace llmperf::mapper::tile
