// The search for the mapping of a problem: a product (gemm.h), attention (attention.h) or vector work (vector.h).
//
// A problem says what its mappings are: how its dimensions are cut (extent_of), what a mapping takes of a tile
// (sram_of) and makes the tiles do (lower), through which of them a search goes (explore), and what differs from one in
// a single decision (vary) with all that follows from it (settle). Everything else is the same for all problems.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/integer.h"
#include "base/list.h"
#include "mapper/tile/schedule.h"

namespace llmperf::mapper::tile {

// How a dimension of a problem is shared by the tiles and cut into blocks.
struct Dimension {
  std::string_view name;
  std::int64_t extent = 1;
  int tiles = 1;          // that it is split over
  std::int64_t part = 1;  // of one tile
  std::int64_t block = 1;
  std::int64_t blocks = 1;

  std::int64_t last() const { return part - (blocks - 1) * block; }  // of a tile's blocks
  // Of a tile's part, the share that is not past the end, on the mean over tiles.
  double share() const { return d(extent) / (d(part) * tiles); }
};
// In blocks of `side`.
inline Dimension divided(std::string_view name, std::int64_t extent, int tiles, std::int64_t side) {
  const std::int64_t part = divide_up(extent, tiles);
  return {name, extent, tiles, part, std::min(side, part), divide_up(part, side)};
}

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

// A mapping of a problem and its time by the closed form.
template <typename Problem>
struct Choice {
  typename Problem::Mapping mapping;
  PipelineTime time;
};

// The schedule that a mapping stands for.
template <typename Problem>
Schedule schedule_of(const Machine& machine, const Problem& problem, const typename Problem::Mapping& mapping) {
  Schedule schedule;
  lower(machine, as_mapped(problem, mapping), mapping, schedule);
  return schedule;
}

// The fastest choices of a search, the fastest first; of those alike, which differ in little, only the fastest.
template <typename Problem>
class Fastest {
 public:
  // `below`: s; what takes no less is not kept.
  void begin(std::size_t keep, double below) {
    keep_ = keep;
    below_ = below;
    all_.clear();
  }
  const std::vector<Choice<Problem>>& all() const { return all_; }
  // Of the slowest that is kept, or could be as long as there is room.
  double slowest() const { return all_.size() < keep_ ? below_ : all_.back().time.seconds; }

  void add(const Choice<Problem>& choice) {
    if (choice.time.seconds >= slowest()) return;
    const auto same = std::ranges::find_if(all_, [&](const auto& c) { return alike(c.mapping, choice.mapping); });
    if (same != all_.end()) {
      if (same->time.seconds <= choice.time.seconds) return;
      all_.erase(same);
    }
    const auto place = std::upper_bound(all_.begin(), all_.end(), choice.time.seconds,
                                        [](double t, const auto& c) { return t < c.time.seconds; });
    all_.insert(place, choice);
    if (all_.size() > keep_) all_.pop_back();
  }

 private:
  std::size_t keep_ = 1;
  double below_ = kAnyTime;
  std::vector<Choice<Problem>> all_;
};

// Of one problem, the fastest simulated first; of mappings alike only the fastest.
template <typename Problem>
struct Mapped {
  struct One {
    Choice<Problem> choice;
    double simulated = 0;  // s
  };
  std::vector<One> found;  // empty: no mapping fits into the memory of a tile
};
// Of one mapping in the simulation, as those that are found are timed. `served`: as of simulated_seconds().
template <typename Problem>
double selected_seconds(const Machine& machine, const Problem& problem, const Choice<Problem>& choice,
                        std::int64_t* served = nullptr);

template <typename Problem>
class Search {
 public:
  using Mapping = typename Problem::Mapping;

  // On a machine and its grids, both of which must outlive it.
  Search(const Machine& on, std::span<const Grid> all) : machine(on), grids(all) {}

  // The `keep` fastest by the closed form, the fastest first, none like another. Empty: the memory of a tile is too
  // small for any mapping.
  std::vector<Choice<Problem>> best(const Problem& problem, std::size_t keep, double below = kAnyTime);
  // Fast ones, each of another kind, the fastest first.
  std::vector<Choice<Problem>> varied(const Problem& problem);
  // Mappings that differ from one in a single decision and in what follows from it, the fastest by the closed form
  // first.
  std::vector<Choice<Problem>> near(const Problem& problem, const Mapping& mapping) const;
  // The mapping that a problem gets: the fastest in the simulation, of the best by the closed form and of what is near
  // to the fastest of these; at least `least` mappings, where there are as many.
  Mapped<Problem> select(const Problem& problem, std::size_t least);

  std::int64_t evaluated() const { return evaluated_; }  // mappings that were timed

  // ---- For what goes through a problem's mappings

  // s; what takes no less is of no interest.
  double limit() const { return bounds ? best_.slowest() * (1 - kIndifferent) : kAnyTime; }
  // Times a mapping of a problem as it is mapped, and keeps it if it is one of the fastest.
  PipelineTime consider(const Problem& problem, const Mapping& mapping) {
    ++evaluated_;
    lower(machine, problem, mapping, schedule_);
    const PipelineTime time = pipeline_time(machine, schedule_);
    best_.add({mapping, time});
    return time;
  }

  const Machine& machine;
  std::span<const Grid> grids;
  typename Problem::Given given = {};  // what all mappings but those near to one agree with
  bool bounds = true;                  // false: every mapping of the space is timed; for tests

 private:
  Fastest<Problem> best_;
  Schedule schedule_;
  std::int64_t evaluated_ = 0;
};

// A side of a mapping's blocks, and the dimension that it cuts.
template <typename Problem>
struct Side {
  std::int64_t Problem::Mapping::*side;
  Dimension Problem::Extent::*dimension;
  bool fine = false;  // of any length, not only multiples of the machine's granule
};

// Mappings near to one, each once, timed.
template <typename Problem>
class Nearby {
 public:
  using Mapping = typename Problem::Mapping;

  Nearby(const Search<Problem>& search, const Problem& problem, const Mapping& mapping)
      : from(mapping), search_(search), problem_(problem) {}

  void add(Mapping map) {
    if (!settle(search_.machine, problem_, map)) return;
    if (map == from || std::ranges::any_of(found_, [&](const auto& c) { return c.mapping == map; })) return;
    lower(search_.machine, as_mapped(problem_, map), map, schedule_);
    found_.push_back({map, pipeline_time(search_.machine, schedule_)});
  }
  template <typename Change>
  void change(const Change& apply) {
    Mapping map = from;
    apply(map);
    add(map);
  }
  template <typename Value>
  void each(Value Mapping::*decision, std::initializer_list<Value> values) {
    for (const Value value : values) change([&](Mapping& map) { map.*decision = value; });
  }
  void other_blocks(std::span<const Side<Problem>> sides) {
    const auto extent = extent_of(as_mapped(problem_, from), from);
    for (const Side<Problem>& of : sides) {
      const Dimension& cut = extent.*of.dimension;
      for (const std::int64_t side : other_sides(cut.part, cut.blocks, granule(of))) {
        change([&](Mapping& map) { map.*of.side = side; });
      }
    }
  }
  // With as many blocks as before, of the parts on another grid, and what else that changes.
  template <typename Change>
  void move(std::span<const Side<Problem>> sides, const Grid& grid, const Change& apply) {
    const auto before = extent_of(as_mapped(problem_, from), from);
    Mapping map = from;
    map.grid = &grid;
    apply(map);
    const auto parts = extent_of(as_mapped(problem_, map), map);
    for (const Side<Problem>& of : sides) {
      map.*of.side = block_side((parts.*of.dimension).part, (before.*of.dimension).blocks, granule(of));
    }
    add(map);
  }
  template <typename Change>
  void other_grids(std::span<const Side<Problem>> sides, const Change& apply) {
    for (const Grid* grid : neighbours(search_.grids, *from.grid)) move(sides, *grid, apply);
  }

  // The fastest first.
  std::vector<Choice<Problem>> sorted() {
    std::ranges::stable_sort(found_, [](const auto& x, const auto& y) { return x.time.seconds < y.time.seconds; });
    return std::move(found_);
  }
  std::span<const Grid> grids() const { return search_.grids; }

  const Mapping& from;

 private:
  int granule(const Side<Problem>& side) const { return side.fine ? 1 : search_.machine.granule; }

  const Search<Problem>& search_;
  const Problem& problem_;
  Schedule schedule_;
  std::vector<Choice<Problem>> found_;
};

}  // namespace llmperf::mapper::tile
