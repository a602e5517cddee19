// What the searches for mappings of products, attention and vector work have in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/list.h"
#include "mapper/tile/schedule.h"

namespace llmperf::mapper::tile {

// Numbers of blocks: all up to `exact`, then growing by 1 / `part`.
struct Growth {
  std::int64_t exact;
  std::int64_t part;
  bool operator==(const Growth&) const = default;
};
// The least multiple of `granule` that cuts `extent` in no more than so many blocks.
std::int64_t block_side(std::int64_t extent, std::int64_t blocks, int granule);
// Sides of the blocks that `extent` is cut in, for every such number the least multiple of `granule` that does. From
// the largest to the smallest.
std::vector<std::int64_t> block_sides(std::int64_t extent, int granule, Growth growth);
// Sides for a block less than there are, one more, half and twice as many.
std::vector<std::int64_t> other_sides(std::int64_t extent, std::int64_t blocks, int granule);

inline constexpr double kAnyTime = std::numeric_limits<double>::infinity();
inline constexpr double kIndifferent = 1e-3;  // of the time; mappings that may be faster by this are not looked for

// A mapping and its time by the closed form. `alike` says of every kind which mappings differ in little only.
template <typename Mapping>
struct Choice {
  Mapping mapping;
  PipelineTime time;
};

// The fastest choices of a search, the fastest first; of those alike only the fastest.
template <typename Choice>
class Fastest {
 public:
  // `below`: s; what takes no less is not kept.
  void begin(std::size_t keep, double below) {
    keep_ = keep;
    below_ = below;
    all_.clear();
  }
  const std::vector<Choice>& all() const { return all_; }
  // Of the slowest that is kept, or could be as long as there is room.
  double slowest() const { return all_.size() < keep_ ? below_ : all_.back().time.seconds; }

  void add(const Choice& choice) {
    if (choice.time.seconds >= slowest()) return;
    const auto same = std::ranges::find_if(all_, [&](const Choice& c) { return alike(c, choice); });
    if (same != all_.end()) {
      if (same->time.seconds <= choice.time.seconds) return;
      all_.erase(same);
    }
    const auto place = std::upper_bound(all_.begin(), all_.end(), choice.time.seconds,
                                        [](double t, const Choice& c) { return t < c.time.seconds; });
    all_.insert(place, choice);
    if (all_.size() > keep_) all_.pop_back();
  }

 private:
  std::size_t keep_ = 1;
  double below_ = kAnyTime;
  std::vector<Choice> all_;
};

// What every search has: a machine and its grids, both of which must outlive it, and the fastest so far.
template <typename Choice>
class Search {
 public:
  Search(const Machine& machine, std::span<const Grid> grids) : machine_(machine), grids_(grids) {}

  std::int64_t evaluated() const { return evaluated_; }  // mappings that were timed
  bool bounds = true;                                    // false: every mapping of the space is timed; for tests

 protected:
  // s; what takes no less is of no interest.
  double limit() const { return bounds ? best_.slowest() * (1 - kIndifferent) : kAnyTime; }
  template <typename Problem, typename Mapping>
  PipelineTime timed(const Problem& problem, const Mapping& mapping) {
    ++evaluated_;
    lower(machine_, problem, mapping, schedule_);
    return pipeline_time(machine_, schedule_);
  }

  const Machine& machine_;
  std::span<const Grid> grids_;
  Fastest<Choice> best_;

 private:
  Schedule schedule_;
  std::int64_t evaluated_ = 0;
};

// Mappings near to one, each once, timed.
template <typename Choice>
class Nearby {
 public:
  Nearby(const Machine& machine, const Choice& from) : machine_(machine), from_(from) {}

  template <typename Problem>
  void add(const Problem& problem, Choice choice) {
    const auto same = [&](const Choice& c) { return c.mapping == choice.mapping && alike(c, choice); };
    if (same(from_) || std::ranges::any_of(found_, same)) return;
    lower(machine_, problem, choice.mapping, schedule_);
    choice.time = pipeline_time(machine_, schedule_);
    found_.push_back(std::move(choice));
  }

  // The fastest first.
  std::vector<Choice> sorted() {
    std::ranges::stable_sort(found_, [](const Choice& x, const Choice& y) { return x.time.seconds < y.time.seconds; });
    return std::move(found_);
  }

 private:
  const Machine& machine_;
  const Choice& from_;
  Schedule schedule_;
  std::vector<Choice> found_;
};

}  // namespace llmperf::mapper::tile
