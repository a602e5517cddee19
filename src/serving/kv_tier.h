// Where keys and values stay that a replica's own cache has let go of: memory of the host, a disk, a pool over the
// network (vLLM's offloading connector, LMCache, SGLang's HiCache, Mooncake). What a request leaves is written there
// beside its steps; what a later one has in common is read back into free blocks, and found there as if it had stayed.
// The least recently used goes first.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/units.h"
#include "serving/workload.h"

namespace llmperf::serving {

struct KvTier {
  std::string name = {};                    // "host", "nvme", "pool"
  Bytes size = {};                          // of a replica; of a pool of all of them
  std::optional<BytesPerSecond> rate = {};  // at which a replica reads; none: of the device's links
  bool shared() const { return name == "pool"; }
  bool operator==(const KvTier&) const = default;
};
// "host:200GB,pool:10TB:25GB/s". Throws Error(bad_input); messages say `kv-tier`.
std::vector<KvTier> parse_kv_tiers(std::string_view text);

class KvStore {
 public:
  explicit KvStore(std::int64_t tokens) : room_(tokens) {}
  // Of the first `most` tokens of the content those that are here, from the first on.
  std::int64_t find(std::span<const Segment> content, std::int64_t most);
  void keep(std::span<const Segment> content, std::int64_t tokens);

 private:
  struct Entry {
    std::uint64_t id = 0;
    std::int64_t tokens = 0;  // of the segment, from its first on
  };
  void touch(std::span<const Segment> content);
  std::int64_t room_;
  std::int64_t used_ = 0;
  std::list<Entry> entries_;  // the most recently used first
  std::unordered_map<std::uint64_t, std::list<Entry>::iterator> by_id_;
};

}  // namespace llmperf::serving
