#include "serving/kv_tier.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"

namespace llmperf::serving {

std::vector<KvTier> parse_kv_tiers(std::string_view text) {
  constexpr std::array<std::string_view, 3> kNames = {"host", "nvme", "pool"};
  std::vector<KvTier> tiers;
  for (const std::string_view part : split(text, ',')) {
    const std::vector<std::string_view> parts = split(trim(part), ':');
    const std::optional<Bytes> size = parts.size() > 1 ? parse_bytes(parts[1]) : std::nullopt;
    const std::optional<BytesPerSecond> rate = parts.size() > 2 ? parse_bytes_per_second(parts[2]) : std::nullopt;
    const bool known = std::ranges::find(kNames, parts[0]) != kNames.end();
    if (!known || parts.size() > 3 || !size || !(size->value > 0) ||
        (parts.size() > 2 ? !rate || !(rate->value > 0) : parts[0] == "nvme")) {
      throw Error::bad_input(
          fmt::format("`kv-tier`: {} is no tier: host, nvme or pool, its size, and the rate of a disk",
                      quote(trim(part))),
          "host:200GB, nvme:2TB:6GB/s, pool:10TB:25GB/s");
    }
    if (std::ranges::count(tiers, parts[0], &KvTier::name) > 0) {
      throw Error::bad_input(fmt::format("`kv-tier`: {} is there twice", parts[0]), "one of each");
    }
    tiers.push_back({.name = std::string(parts[0]), .size = *size, .rate = rate});
  }
  return tiers;
}

// Of a sequence the end goes before what leads to it.
void KvStore::touch(std::span<const Segment> content) {
  for (auto segment = content.rbegin(); segment != content.rend(); ++segment) {
    entries_.splice(entries_.begin(), entries_, by_id_.at(segment->id));
  }
}

std::int64_t KvStore::find(std::span<const Segment> content, std::int64_t most) {
  std::int64_t first = 0;
  std::size_t seen = 0;
  for (const Segment& segment : content) {
    const std::int64_t wanted = std::min(segment.end, most) - first;
    const auto found = by_id_.find(segment.id);
    if (wanted <= 0 || found == by_id_.end()) break;
    ++seen;
    const std::int64_t here = std::min(wanted, found->second->tokens);
    first += here;
    if (here < wanted) break;
  }
  touch(content.first(seen));
  return first;
}

void KvStore::keep(std::span<const Segment> content, std::int64_t tokens) {
  std::int64_t first = 0;
  std::size_t kept = 0;
  for (const Segment& segment : content) {
    const std::int64_t more = std::min(segment.end, tokens) - first;
    if (more <= 0) break;
    const auto [found, made] = by_id_.try_emplace(segment.id);
    if (made) {
      entries_.push_front({segment.id, 0});
      found->second = entries_.begin();
    }
    ++kept;
    Entry& entry = *found->second;
    used_ += std::max<std::int64_t>(0, more - entry.tokens);
    entry.tokens = std::max(entry.tokens, more);
    first += more;
  }
  touch(content.first(kept));
  while (used_ > room_) {
    used_ -= entries_.back().tokens;
    by_id_.erase(entries_.back().id);
    entries_.pop_back();
  }
}

}  // namespace llmperf::serving
