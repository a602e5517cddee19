#include "serving/kv_cache.h"

#include <algorithm>
#include <stdexcept>

namespace llmperf::serving {

KvCache::KvCache(std::int64_t blocks, std::int64_t block_size, bool reuses)
    : blocks_(blocks), block_size_(block_size), reuses_(reuses), free_(blocks), empty_(blocks) {}

// A block belongs to the segment that its last token is in.
template <class Of>
void KvCache::each_segment(std::span<const Segment> content, std::int64_t tokens, Of of) const {
  std::int64_t first = 0;
  for (const Segment& segment : content) {
    const std::int64_t end = std::min(segment.end, tokens) / block_size_;
    if (end <= first && segment.end >= tokens) return;
    if (!of(segment, first, std::max<std::int64_t>(end - first, 0))) return;
    first = std::max(first, segment.end / block_size_);
  }
}

KvCache::Hit KvCache::find(std::span<const Segment> content, std::int64_t tokens) const {
  Hit hit;
  if (!reuses_) return hit;
  each_segment(content, tokens, [&](const Segment& segment, std::int64_t, std::int64_t blocks) {
    if (blocks == 0) return true;
    const auto found = by_id_.find(segment.id);
    if (found == by_id_.end()) return false;
    const Run& r = run(found->second);
    const std::int64_t there = std::min(blocks, r.cached);
    hit.blocks += there;
    hit.queued += std::max<std::int64_t>(there - r.held, 0);
    return there == blocks;
  });
  return hit;
}

void KvCache::hold(std::span<const Segment> content, std::int64_t blocks, Held& held) {
  held.blocks += blocks;
  each_segment(content, blocks * block_size_, [&](const Segment& segment, std::int64_t, std::int64_t here) {
    if (here == 0) return true;
    const std::int32_t index = by_id_.at(segment.id);
    Run& r = run(index);
    if (here > r.held) {
      free_ -= here - r.held;
      r.held = here;
      if (r.held == r.cached) unlink(index);
    }
    r.holds.push_back(here);
    held.runs.emplace_back(index, here);
    return true;
  });
}

void KvCache::take(std::int64_t blocks, Held& held) {
  if (blocks > free_) throw std::logic_error("internal error: more blocks are taken than are free");
  held.blocks += blocks;
  held.own += blocks;
  free_ -= blocks;
  const std::int64_t empty = std::min(blocks, empty_);
  empty_ -= empty;
  for (std::int64_t left = blocks - empty; left > 0;) {
    const std::int32_t index = front_;
    Run& r = run(index);
    const std::int64_t some = std::min(left, r.cached - r.held);
    r.cached -= some;
    left -= some;
    if (r.cached > r.held) continue;
    unlink(index);
    if (r.cached == 0) forget(index);
  }
}

void KvCache::publish(std::span<const Segment> content, std::int64_t tokens, Held& held) {
  if (!reuses_) return;
  each_segment(content, tokens, [&](const Segment& segment, std::int64_t, std::int64_t blocks) {
    if (blocks == 0) return true;
    const auto [found, made] = by_id_.try_emplace(segment.id, kNone);
    if (made) {
      const std::int32_t index = make_run();
      found->second = index;
      run(index).id = segment.id;
      run(index).named = true;
    }
    Run& r = run(found->second);
    if (blocks <= r.cached) return true;
    const auto mine = std::ranges::find(held.runs, found->second, &std::pair<std::int32_t, std::int64_t>::first);
    if (mine == held.runs.end() && r.cached > 0) return true;  // its own copy of what others keep
    if (mine == held.runs.end()) {
      r.holds.push_back(blocks);
      held.runs.emplace_back(found->second, blocks);
    } else {
      if (mine->second < r.cached) return true;
      *std::ranges::find(r.holds, mine->second) = blocks;
      mine->second = blocks;
    }
    held.own -= blocks - r.cached;
    r.cached = r.held = blocks;
    return true;
  });
}

void KvCache::release(Held& held) {
  if (reuses_) {
    if (held.own > 0) {
      if (back_ == kNone || run(back_).named) enqueue(make_run());
      run(back_).cached += held.own;
    }
  } else {
    empty_ += held.own;
  }
  free_ += held.own;
  for (auto last = held.runs.rbegin(); last != held.runs.rend(); ++last) {
    const std::int32_t index = last->first;
    Run& r = run(index);
    r.holds.erase(std::ranges::find(r.holds, last->second));
    const std::int64_t most = r.holds.empty() ? 0 : std::ranges::max(r.holds);
    if (most == r.held) continue;
    free_ += r.held - most;
    r.held = most;
    unlink(index);
    enqueue(index);
  }
  held = {};
}

std::int32_t KvCache::make_run() {
  if (unused_.empty()) {
    runs_.emplace_back();
    return static_cast<std::int32_t>(runs_.size()) - 1;
  }
  const std::int32_t index = unused_.back();
  unused_.pop_back();
  run(index) = {};
  return index;
}

void KvCache::enqueue(std::int32_t index) {
  Run& r = run(index);
  r.queued = true;
  r.before = back_;
  r.after = kNone;
  (back_ == kNone ? front_ : run(back_).after) = index;
  back_ = index;
}

void KvCache::unlink(std::int32_t index) {
  Run& r = run(index);
  if (!r.queued) return;
  r.queued = false;
  (r.before == kNone ? front_ : run(r.before).after) = r.after;
  (r.after == kNone ? back_ : run(r.after).before) = r.before;
}

void KvCache::forget(std::int32_t index) {
  if (run(index).named) by_id_.erase(run(index).id);
  unused_.push_back(index);
}

}  // namespace llmperf::serving
