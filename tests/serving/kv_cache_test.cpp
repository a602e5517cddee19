// The KV cache: what is taken, kept and found again, by hand and against a model that has every block of vLLM's queue.
#include "serving/kv_cache.h"

#include <list>
#include <map>
#include <random>

#include "catch.h"

namespace llmperf::kv_cache_test {

using namespace llmperf::serving;
using Content = std::vector<Segment>;

namespace {

constexpr std::int64_t kFar = 1 << 20;

std::int64_t hit(const KvCache& cache, const Content& content, std::int64_t tokens) {
  return cache.find(content, tokens).blocks;
}
// As a request does that is computed at once: what is there, the rest, and others may have it.
KvCache::Held run(KvCache& cache, const Content& content, std::int64_t tokens) {
  KvCache::Held held;
  cache.hold(content, cache.find(content, tokens - 1).blocks, held);
  cache.take(cache.blocks_of(tokens) - held.blocks, held);
  cache.publish(content, tokens, held);
  return held;
}

// vLLM's pool (v1/core/block_pool.py): a queue of blocks that nobody holds, a name for each that is full.
class Pool {
 public:
  using Name = std::pair<std::uint64_t, std::int64_t>;  // segment, block of the sequence
  Pool(std::size_t blocks, std::int64_t size) : blocks_(blocks), size_(size) {
    for (std::size_t i = 0; i < blocks; ++i) queue_.push_back(i);
  }
  std::int64_t free() const { return static_cast<std::int64_t>(queue_.size()); }
  std::vector<std::size_t> find(const Content& content, std::int64_t tokens) const {
    std::vector<std::size_t> found;
    for (const Name& name : names(content, tokens)) {
      const auto there = by_name_.find(name);
      if (there == by_name_.end()) break;
      found.push_back(there->second);
    }
    return found;
  }
  std::vector<std::size_t> run(const Content& content, std::int64_t tokens) {
    std::vector<std::size_t> held = find(content, tokens - 1);
    for (const std::size_t b : held) {
      if (blocks_[b].holders++ == 0) queue_.remove(b);
    }
    while (static_cast<std::int64_t>(held.size()) * size_ < tokens) {
      const std::size_t b = queue_.front();
      queue_.pop_front();
      if (blocks_[b].named) by_name_.erase(blocks_[b].name);
      blocks_[b] = {.holders = 1};
      held.push_back(b);
    }
    publish(content, tokens, held);
    return held;
  }
  void publish(const Content& content, std::int64_t tokens, const std::vector<std::size_t>& held) {
    const std::vector<Name> all = names(content, tokens);
    for (std::size_t i = 0; i < all.size(); ++i) {
      Block& b = blocks_[held[i]];
      if (b.named || !by_name_.try_emplace(all[i], held[i]).second) continue;
      b.named = true;
      b.name = all[i];
    }
  }
  void release(const std::vector<std::size_t>& held) {
    for (auto b = held.rbegin(); b != held.rend(); ++b) {
      if (--blocks_[*b].holders == 0) queue_.push_back(*b);
    }
  }

 private:
  struct Block {
    int holders = 0;
    bool named = false;
    Name name = {};
  };
  // Of the whole blocks; one belongs to the segment that its last token is in.
  std::vector<Name> names(const Content& content, std::int64_t tokens) const {
    std::vector<Name> result;
    std::size_t segment = 0;
    for (std::int64_t i = 0; (i + 1) * size_ <= tokens; ++i) {
      while (content[segment].end < (i + 1) * size_) ++segment;
      result.push_back({content[segment].id, i});
    }
    return result;
  }

  std::vector<Block> blocks_;
  std::int64_t size_;
  std::list<std::size_t> queue_;
  std::map<Name, std::size_t> by_name_;
};

}  // namespace

TEST_CASE("blocks are taken and come back") {
  KvCache cache(10, 16, true);
  CHECK(cache.blocks_of(16) == 1);
  CHECK(cache.blocks_of(17) == 2);
  KvCache::Held a;
  cache.take(7, a);
  CHECK(cache.free() == 3);
  CHECK(cache.used() == 7);
  CHECK_THROWS_AS(cache.take(4, a), std::logic_error);
  cache.release(a);
  CHECK(cache.free() == 10);
  CHECK(a.blocks == 0);
}

TEST_CASE("what a request leaves is found until it is taken, from its end on") {
  KvCache cache(10, 4, true);
  const Content a = {{1, kFar}};
  const Content b = {{2, kFar}};
  KvCache::Held held = run(cache, a, 24);
  CHECK(cache.used() == 6);
  cache.release(held);
  CHECK(cache.free() == 10);
  CHECK(hit(cache, a, 24) == 6);
  CHECK(hit(cache, a, 23) == 5);  // whole blocks
  CHECK(hit(cache, b, 24) == 0);
  // Four blocks never held anything; the fifth and sixth are A's last two.
  KvCache::Held other;
  cache.take(6, other);
  CHECK(hit(cache, a, 24) == 4);
  cache.take(3, other);
  CHECK(hit(cache, a, 24) == 1);
  cache.take(1, other);
  CHECK(hit(cache, a, 24) == 0);
}

TEST_CASE("the blocks that were let go of first are taken first") {
  KvCache cache(6, 4, true);
  const Content a = {{1, kFar}};
  const Content b = {{2, kFar}};
  KvCache::Held of_a = run(cache, a, 12);
  KvCache::Held of_b = run(cache, b, 12);
  cache.release(of_b);
  cache.release(of_a);
  KvCache::Held other;
  cache.take(2, other);
  CHECK(hit(cache, a, 12) == 3);
  CHECK(hit(cache, b, 12) == 1);
  cache.release(other);
  // A hit that is let go of goes to the end: the next to be taken are the one of B and the two that came back.
  KvCache::Held again = run(cache, b, 5);
  CHECK(cache.used() == 2);
  cache.release(again);
  cache.take(5, other);
  CHECK(hit(cache, a, 12) == 0);
  CHECK(hit(cache, b, 12) == 1);
}

TEST_CASE("blocks of several holders stay until the last lets go, as many as that one has") {
  KvCache cache(10, 4, true);
  const Content shared = {{1, 20}, {7, kFar}};
  KvCache::Held a = run(cache, shared, 21);
  KvCache::Held b;
  CHECK(cache.find(shared, 12).queued == 0);  // all are held
  cache.hold(shared, 3, b);
  CHECK(b.blocks == 3);
  CHECK(cache.used() == 6);
  cache.release(a);
  CHECK(cache.used() == 3);
  CHECK(cache.find(shared, 20).blocks == 5);
  CHECK(cache.find(shared, 20).queued == 2);
  cache.release(b);
  CHECK(cache.used() == 0);
}

TEST_CASE("a second copy of what others keep is its own") {
  KvCache cache(10, 4, true);
  const Content c = {{1, kFar}};
  KvCache::Held a;
  KvCache::Held b;
  cache.take(2, a);
  cache.take(2, b);
  cache.publish(c, 8, a);
  cache.publish(c, 8, b);
  CHECK(a.own == 0);
  CHECK(b.own == 2);
  cache.release(a);
  CHECK(hit(cache, c, 8) == 2);
  cache.release(b);
  CHECK(cache.free() == 10);
}

TEST_CASE("a cache that reuses nothing finds nothing") {
  KvCache cache(10, 4, false);
  const Content c = {{1, kFar}};
  KvCache::Held a = run(cache, c, 8);
  cache.release(a);
  CHECK(hit(cache, c, 8) == 0);
  CHECK(cache.free() == 10);
}

TEST_CASE("the cache holds and finds what vLLM's queue of blocks does") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    const auto size = static_cast<std::int64_t>(2 + below(5));
    const std::size_t blocks = 20 + below(60);
    KvCache cache(static_cast<std::int64_t>(blocks), size, true);
    Pool pool(blocks, size);
    struct Live {
      Content content;
      std::int64_t tokens = 0;
      KvCache::Held held = {};
      std::vector<std::size_t> blocks = {};
    };
    std::vector<Live> live;
    std::vector<Live> waiting;  // that were preempted
    // A tree of shared prefixes: of each node its content, and behind it a sequence's own.
    std::vector<Content> tree = {{}};
    for (std::uint64_t id = 1; id < 12; ++id) {
      Content c = tree[below(tree.size())];
      c.push_back({id, (c.empty() ? 0 : c.back().end) + static_cast<std::int64_t>(1 + below(20))});
      tree.push_back(c);
    }
    std::uint64_t own = 1000;
    for (int step = 0; step < 400; ++step) {
      const std::size_t what = below(8);
      if (what < 4 || live.empty()) {
        Live one;
        if (!waiting.empty() && what == 0) {
          one = waiting.back();
          waiting.pop_back();
        } else {
          one.content = tree[below(tree.size())];
          one.tokens = (one.content.empty() ? 0 : one.content.back().end) + static_cast<std::int64_t>(1 + below(30));
          // A full hit computes its last block again, of which vLLM keeps two copies and we the first.
          if (one.tokens % size == 0) ++one.tokens;
          one.content.push_back({own++, kFar});
        }
        const KvCache::Hit found = cache.find(one.content, one.tokens - 1);
        if (cache.blocks_of(one.tokens) - found.blocks + found.queued > cache.free()) continue;
        one.held = run(cache, one.content, one.tokens);
        one.blocks = pool.run(one.content, one.tokens);
        live.push_back(one);
      } else {
        const std::size_t i = below(live.size());
        Live one = live[i];
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
        if (what == 4) {
          waiting.push_back({one.content, one.tokens});
        }
        cache.release(one.held);
        pool.release(one.blocks);
      }
      REQUIRE(cache.free() == pool.free());
      for (const Content& c : tree) {
        if (c.empty()) continue;
        REQUIRE(hit(cache, c, c.back().end) == static_cast<std::int64_t>(pool.find(c, c.back().end).size()));
      }
      for (const Live& w : waiting) {
        REQUIRE(hit(cache, w.content, w.tokens) == static_cast<std::int64_t>(pool.find(w.content, w.tokens).size()));
      }
    }
  }
}

}  // namespace llmperf::kv_cache_test
