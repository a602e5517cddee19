// Values by name that are loaded when they are first asked for.
#pragma once

namespace llmperf {

// The value of `key`, of load() where there is none yet. What load() throws leaves the map as it was: an entry that is
// made first and filled after it would be taken for a value by who asks next.
template <class Map, class Load>
typename Map::mapped_type& load_once(Map& map, const typename Map::key_type& key, Load&& load) {
  auto at = map.find(key);
  if (at == map.end()) at = map.emplace(key, load()).first;
  return at->second;
}

}  // namespace llmperf
