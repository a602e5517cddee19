#include "graph/hlo/resharding.h"

#include <algorithm>
#include <utility>

namespace llmperf::graph::hlo {
namespace {

constexpr std::int64_t kListed = 64;  // devices of a group that a text is made of

class Path {
 public:
  Path(const Sharding& from, const Sharding& to, std::size_t rank, std::int64_t devices)
      : now_(from), to_(to), rank_(rank), devices_(devices) {
    now_.dims.resize(rank);
    to_.dims.resize(rank);
    now_.open.clear();
    now_.replicated.clear();
    now_.manual.clear();
  }

  std::vector<ReshardingStep> find() {
    if (now_.same_parts(to_)) return {};
    if (now_.form == Sharding::Form::maximal) leave_one_device();
    if (to_.form == Sharding::Form::maximal) {
      whole();
      now_ = to_;
      add(std::nullopt, {}, -1);
      return std::move(steps_);
    }
    if (!cut_to_common_axes()) {
      whole();
      take_parts();
      return std::move(steps_);
    }
    // Every round does at least one step, and takes an axis out of its place or to its place.
    constexpr int kMaxRounds = 64;
    for (int round = 0; round < kMaxRounds && !now_.same_parts(to_); ++round) {
      if (scatter_sums() || begin_sums() || permute() || cut() || exchange() || send() || gather()) continue;
      break;
    }
    if (!now_.same_parts(to_)) {
      whole();
      take_parts();
    }
    return std::move(steps_);
  }

 private:
  void add(std::optional<CollectiveKind> kind, const DeviceAxes& over, std::int64_t dim) {
    const DeviceGroup group = group_of(over);
    InsertedCollective c;
    c.kind = kind;
    c.dim = dim;
    if (kind) {
      c.ranks = group.ranks;
      c.stride = group.stride;
      c.regular = group.regular;
      c.groups = std::max<std::int64_t>(1, devices_ / group.ranks);
      c.text = group_text(devices_of(over, kListed), c.groups);
    }
    steps_.push_back({std::move(c), now_});
  }

  void leave_one_device() {
    now_ = {};
    now_.dims.resize(rank_);
    if (devices_ > 1) add(CollectiveKind::broadcast, {{devices_, 1}}, -1);
  }

  bool cut_to_common_axes() {
    DeviceAxes all = now_.unreduced;
    const auto append = [&](const DeviceAxes& axes) { all.insert(all.end(), axes.begin(), axes.end()); };
    append(to_.unreduced);
    for (std::size_t d = 0; d < rank_; ++d) {
      append(now_.dims[d]);
      append(to_.dims[d]);
    }
    const auto cut_all = [&](Sharding& sharding) {
      std::vector<DeviceAxes*> lists = {&sharding.unreduced};
      for (DeviceAxes& axes : sharding.dims) lists.push_back(&axes);
      for (DeviceAxes* axes : lists) {
        auto parts = cut_by(*axes, all);
        if (!parts) return false;
        *axes = std::move(*parts);
      }
      return true;
    };
    return cut_all(now_) && cut_all(to_);
  }

  static bool has(const DeviceAxes& axes, const DeviceAxis& axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  }
  bool in_use(const DeviceAxis& axis) const {
    return has(now_.unreduced, axis) ||
           std::any_of(now_.dims.begin(), now_.dims.end(), [&](const DeviceAxes& axes) { return has(axes, axis); });
  }
  // How many of the outer axes are right already.
  std::size_t right(std::size_t d) const {
    const auto& mine = now_.dims[d];
    const auto& wanted = to_.dims[d];
    return static_cast<std::size_t>(std::mismatch(mine.begin(), mine.end(), wanted.begin(), wanted.end()).first -
                                    mine.begin());
  }
  bool all_right(std::size_t d) const { return right(d) == now_.dims[d].size(); }

  bool scatter_sums() {
    for (std::size_t d = 0; d < rank_; ++d) {
      if (!all_right(d)) continue;
      DeviceAxes over;
      for (std::size_t i = now_.dims[d].size(); i < to_.dims[d].size() && has(now_.unreduced, to_.dims[d][i]); ++i) {
        over.push_back(to_.dims[d][i]);
      }
      if (over.empty()) continue;
      for (const DeviceAxis& axis : over) std::erase(now_.unreduced, axis);
      now_.dims[d].insert(now_.dims[d].end(), over.begin(), over.end());
      add(CollectiveKind::reduce_scatter, over, static_cast<std::int64_t>(d));
      return true;
    }
    DeviceAxes over;
    for (const DeviceAxis& axis : now_.unreduced) {
      if (!has(to_.unreduced, axis)) over.push_back(axis);
    }
    if (over.empty()) return false;
    for (const DeviceAxis& axis : over) std::erase(now_.unreduced, axis);
    add(CollectiveKind::all_reduce, over, -1);
    return true;
  }

  // Of what several have, one keeps it and the others have zeros; a part becomes a summand between zeros.
  bool begin_sums() {
    DeviceAxes begun;
    for (const DeviceAxis& axis : to_.unreduced) {
      const bool divides =
          std::any_of(to_.dims.begin(), to_.dims.end(), [&](const DeviceAxes& axes) { return has(axes, axis); });
      if (divides || has(now_.unreduced, axis)) continue;
      const auto innermost = std::find_if(now_.dims.begin(), now_.dims.end(),
                                          [&](const DeviceAxes& axes) { return !axes.empty() && axes.back() == axis; });
      if (innermost != now_.dims.end()) {
        innermost->pop_back();
      } else if (in_use(axis)) {
        continue;
      }
      now_.unreduced.push_back(axis);
      begun.push_back(axis);
    }
    if (!begun.empty()) add(std::nullopt, {}, -1);
    return !begun.empty();
  }

  // As many parts of every dimension as before, on other devices.
  bool permute() {
    DeviceAxes over;
    for (std::size_t d = 0; d < rank_; ++d) {
      if (size_of(now_.dims[d]) != size_of(to_.dims[d])) return false;
      if (now_.dims[d] == to_.dims[d]) continue;
      for (const DeviceAxes* axes : {&now_.dims[d], &to_.dims[d]}) {
        for (const DeviceAxis& axis : *axes) {
          if (!has(over, axis)) over.push_back(axis);
        }
      }
    }
    if (over.empty()) return false;
    now_.dims = to_.dims;
    add(CollectiveKind::send, over, -1);
    return true;
  }

  bool cut() {
    std::int64_t dim = -1;
    for (std::size_t d = 0; d < rank_; ++d) {
      while (all_right(d) && now_.dims[d].size() < to_.dims[d].size() && !in_use(to_.dims[d][now_.dims[d].size()])) {
        now_.dims[d].push_back(to_.dims[d][now_.dims[d].size()]);
        dim = static_cast<std::int64_t>(d);
      }
    }
    if (dim >= 0) add(std::nullopt, {}, dim);
    return dim >= 0;
  }

  // The inner axes of one dimension that another one wants next.
  bool exchange() {
    for (std::size_t d = 0; d < rank_; ++d) {
      for (std::size_t e = 0; e < rank_; ++e) {
        if (d == e || !all_right(e)) continue;
        const DeviceAxes& mine = now_.dims[d];
        const auto wanted = to_.dims[e].begin() + static_cast<std::ptrdiff_t>(now_.dims[e].size());
        for (std::size_t begin = right(d); begin < mine.size(); ++begin) {
          const auto first = mine.begin() + static_cast<std::ptrdiff_t>(begin);
          if (to_.dims[e].end() - wanted < mine.end() - first || !std::equal(first, mine.end(), wanted)) continue;
          const DeviceAxes over(first, mine.end());
          now_.dims[d].resize(begin);
          now_.dims[e].insert(now_.dims[e].end(), over.begin(), over.end());
          add(CollectiveKind::all_to_all, over, static_cast<std::int64_t>(d));
          return true;
        }
      }
    }
    return false;
  }

  // As many parts as before, on other devices.
  bool send() {
    for (std::size_t d = 0; d < rank_; ++d) {
      const std::size_t same = right(d);
      const DeviceAxes mine(now_.dims[d].begin() + static_cast<std::ptrdiff_t>(same), now_.dims[d].end());
      if (mine.empty()) continue;
      const DeviceAxes wanted(to_.dims[d].begin() + static_cast<std::ptrdiff_t>(same), to_.dims[d].end());
      if (size_of(mine) != size_of(wanted)) continue;
      const bool free = std::all_of(wanted.begin(), wanted.end(),
                                    [&](const DeviceAxis& axis) { return has(mine, axis) || !in_use(axis); });
      if (!free) continue;
      DeviceAxes both = mine;
      for (const DeviceAxis& axis : wanted) {
        if (!has(both, axis)) both.push_back(axis);
      }
      now_.dims[d] = to_.dims[d];
      add(CollectiveKind::send, both, static_cast<std::int64_t>(d));
      return true;
    }
    return false;
  }

  bool gather() {
    for (std::size_t d = 0; d < rank_; ++d) {
      if (all_right(d)) continue;
      // Inner axes that are wanted nowhere; those that are may follow as an all-to-all.
      const auto wanted = [&](const DeviceAxis& axis) {
        return has(to_.unreduced, axis) ||
               std::any_of(to_.dims.begin(), to_.dims.end(), [&](const DeviceAxes& axes) { return has(axes, axis); });
      };
      const DeviceAxes& mine = now_.dims[d];
      std::size_t begin = mine.size();
      while (begin > right(d) && !wanted(mine[begin - 1])) --begin;
      gather_from(d, begin < mine.size() ? begin : right(d));
      return true;
    }
    return false;
  }

  void gather_from(std::size_t d, std::size_t begin) {
    const DeviceAxes over(now_.dims[d].begin() + static_cast<std::ptrdiff_t>(begin), now_.dims[d].end());
    now_.dims[d].resize(begin);
    add(CollectiveKind::all_gather, over, static_cast<std::int64_t>(d));
  }

  // All of it, summed, on every device.
  void whole() {
    if (!now_.unreduced.empty()) {
      const DeviceAxes over = std::exchange(now_.unreduced, {});
      add(CollectiveKind::all_reduce, over, -1);
    }
    for (std::size_t d = 0; d < rank_; ++d) {
      if (size_of(now_.dims[d]) > 1) gather_from(d, 0);
    }
  }

  // Of what every device has.
  void take_parts() {
    now_.dims = to_.dims;
    now_.unreduced = to_.unreduced;
    if (to_.divides() || !to_.unreduced.empty()) add(std::nullopt, {}, -1);
  }

  Sharding now_;
  Sharding to_;
  std::size_t rank_;
  std::int64_t devices_;
  std::vector<ReshardingStep> steps_;
};

}  // namespace

std::vector<ReshardingStep> resharding(const Sharding& from, const Sharding& to, std::size_t rank,
                                       std::int64_t devices) {
  return Path(from, to, rank, devices).find();
}

}  // namespace llmperf::graph::hlo
