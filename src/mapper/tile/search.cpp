// By the closed form many mappings are equal, and it is off by up to about a latency and some per cent more: so the
// best are simulated, each of another kind, as long as the next may be faster; then, from several of them, what differs
// in one decision, as long as that helps; and at last what the closed form says is faster than the fastest of all
// these.
#include "mapper/tile/search.h"

#include "mapper/tile/attention.h"
#include "mapper/tile/gemm.h"
#include "mapper/tile/simulation.h"
#include "mapper/tile/vector.h"

namespace llmperf::mapper::tile {
namespace {

constexpr std::size_t kVaried = 10;  // of those alike, simulated at first

template <typename Problem>
class Selection {
  using One = typename Mapped<Problem>::One;

 public:
  Selection(Search<Problem>& search, const Problem& problem)
      : machine_(search.machine), search_(search), problem_(problem) {}

  Mapped<Problem> run(std::size_t least) {
    simulate_varied();
    if (!all_.empty()) climb();
    simulate_faster();
    if (count() < least) {
      for (const Choice<Problem>& choice : search_.best(problem_, least)) {
        if (count() >= least) break;
        simulate(choice);
      }
    }
    return result();
  }

 private:
  static constexpr int kStarts = 2;
  static constexpr int kRounds = 6;
  static constexpr int kNear = 6;  // of a round
  static constexpr std::size_t kFaster = 32;
  static constexpr std::int64_t kMostRequests = 300'000;  // of all simulations; as many more for every tile
  static constexpr std::int64_t kMoreRequests = 500;
  static constexpr double kClimbs = 0.6;     // of these
  static constexpr double kShort = 100;      // latencies; the shorter, the further the closed form is off: so many
  static constexpr double kMore = 6;         // starts, and simulations of a round, more at most
  static constexpr double kGood = 5e-3;      // so near to what is possible nothing better is looked for
  static constexpr double kProgress = 1e-3;  // of a round that another one follows
  static constexpr double kSlow = 0.05;      // of its time, and a latency: that the closed form may be too slow
  static constexpr double kLatencies = 2;    // that the closed form may be too slow

  // Nothing that is left is much faster, or it takes too long to find: more than a share of all simulations.
  bool good(double share = 1) const {
    return best_ < all_.size() && (all_[best_].simulated <= possible_ * (1 + kGood) || d(requests_) > share * most_);
  }
  bool hopeless(const Choice<Problem>& choice) const {
    const double least = choice.time.seconds * (1 - kSlow) - machine_.dram_latency;
    return best_ < all_.size() &&
           machine_.op_seconds(least, choice.time.compute, choice.time.dram) >= all_[best_].simulated;
  }

  // False: it was simulated before.
  bool simulate(const Choice<Problem>& choice) {
    const auto same = [&](const One& one) { return one.choice.mapping == choice.mapping; };
    if (std::ranges::any_of(all_, same)) return false;
    all_.push_back({choice, selected_seconds(machine_, problem_, choice, &requests_)});
    if (all_.back().simulated < all_[best_].simulated) best_ = all_.size() - 1;
    return true;
  }

  void simulate_varied() {
    const std::vector<Choice<Problem>> varied = search_.varied(problem_);
    if (varied.empty()) return;
    possible_ = machine_.launch + std::max(problem_.least_bytes() / machine_.dram + machine_.dram_latency,
                                           varied.front().time.seconds - kLatencies * machine_.dram_latency);
    for (std::size_t i = 0; i < std::min(varied.size(), kVaried); ++i) {
      if (good() || hopeless(varied[i])) return;
      simulate(varied[i]);
    }
  }

  // From the fastest, then from the fastest on other grids.
  void climb() {
    const int more = static_cast<int>(std::min(kMore, kShort * machine_.dram_latency / all_[best_].simulated));
    std::vector<const Grid*> begun;
    for (int start = 0; start < kStarts + more && !good(kClimbs); ++start) {
      std::size_t from = all_.size();
      for (std::size_t i = 0; i < all_.size(); ++i) {
        if (contains(begun, all_[i].choice.mapping.grid)) continue;
        if (from == all_.size() || all_[i].simulated < all_[from].simulated) from = i;
      }
      if (from == all_.size()) return;
      climb(from, kNear + more, begun);
    }
  }

  void climb(std::size_t at, int most, std::vector<const Grid*>& begun) {
    for (int round = 0; round < kRounds && !good(kClimbs); ++round) {
      const double before = all_[at].simulated;
      begun.push_back(all_[at].choice.mapping.grid);
      int simulated = 0;
      for (const Choice<Problem>& choice : near(all_[at])) {
        if (simulated == most || good(kClimbs)) break;
        if (hopeless(choice) || !simulate(choice)) continue;
        ++simulated;
        if (all_.back().simulated < all_[at].simulated) at = all_.size() - 1;
      }
      if (all_[at].simulated > before * (1 - kProgress)) return;
    }
  }

  // The likely fastest first: for mappings alike the closed form is off alike.
  std::vector<Choice<Problem>> near(const One& from) const {
    std::vector<Choice<Problem>> choices = search_.near(problem_, from.choice.mapping);
    const auto likely = [off = from.simulated / from.choice.time.seconds, &from](const Choice<Problem>& choice) {
      return choice.time.seconds * (alike(choice.mapping, from.choice.mapping) ? off : 1);
    };
    std::ranges::stable_sort(choices,
                             [&](const Choice<Problem>& x, const Choice<Problem>& y) { return likely(x) < likely(y); });
    return choices;
  }

  // What may be faster than the fastest, by the closed form and what that is off by.
  void simulate_faster() {
    if (all_.empty() || good()) return;
    const double below = (all_[best_].simulated - machine_.launch) * (1 - kGood) + kLatencies * machine_.dram_latency;
    for (const Choice<Problem>& choice : search_.best(problem_, kFaster, below)) {
      if (good()) return;
      simulate(choice);
    }
  }

  std::size_t count() const { return result().found.size(); }

  Mapped<Problem> result() const {
    std::vector<One> sorted = all_;
    std::ranges::stable_sort(sorted, [](const One& x, const One& y) { return x.simulated < y.simulated; });
    Mapped<Problem> mapped;
    for (const One& one : sorted) {
      const auto same = [&](const One& other) { return alike(other.choice.mapping, one.choice.mapping); };
      if (std::ranges::none_of(mapped.found, same)) mapped.found.push_back(one);
    }
    return mapped;
  }

  const Machine& machine_;
  Search<Problem>& search_;
  const Problem& problem_;
  std::vector<One> all_;
  std::size_t best_ = 0;       // of these
  std::int64_t requests_ = 0;  // that were simulated
  const double most_ = d(kMostRequests + kMoreRequests * machine_.tiles);
  double possible_ = 0;  // s; hardly any mapping takes less
};

}  // namespace

std::int64_t block_side(std::int64_t extent, std::int64_t blocks, int granule) {
  return divide_up(divide_up(extent, blocks), granule) * granule;
}

std::vector<std::int64_t> block_sides(std::int64_t extent, int granule, Growth growth) {
  std::vector<std::int64_t> sides;
  const std::int64_t most = divide_up(extent, granule);
  for (std::int64_t blocks = 1; blocks <= most;) {
    const std::int64_t side = block_side(extent, blocks, granule);
    if (sides.empty() || side < sides.back()) sides.push_back(side);
    blocks += blocks < growth.exact ? 1 : std::max<std::int64_t>(1, blocks / growth.part);
  }
  return sides;
}

std::vector<std::int64_t> other_sides(std::int64_t extent, std::int64_t blocks, int granule) {
  std::vector<std::int64_t> sides;
  const std::int64_t most = divide_up(extent, granule);
  for (const std::int64_t other : {blocks - 1, blocks + 1, blocks / 2, blocks * 2}) {
    if (other < 1 || other > most) continue;
    const std::int64_t side = block_side(extent, other, granule);
    if (!contains(sides, side)) sides.push_back(side);
  }
  return sides;
}

template <typename Problem>
double selected_seconds(const Machine& machine, const Problem& problem, const Choice<Problem>& choice,
                        std::int64_t* served) {
  constexpr std::int64_t kRequests = 2000;  // of a simulation; where a whole one takes more, about
  const double simulated = simulated_seconds(machine, schedule_of(machine, problem, choice.mapping), kRequests, served);
  return machine.op_seconds(simulated, choice.time.compute, choice.time.dram);
}
template double selected_seconds(const Machine&, const GemmProblem&, const Choice<GemmProblem>&, std::int64_t*);

template <typename Problem>
std::vector<Choice<Problem>> Search<Problem>::best(const Problem& problem, std::size_t keep, double below) {
  best_.begin(keep, below);
  explore(*this, problem);
  return best_.all();
}

template <typename Problem>
std::vector<Choice<Problem>> Search<Problem>::varied(const Problem& problem) {
  return best(problem, kVaried);
}

template <typename Problem>
std::vector<Choice<Problem>> Search<Problem>::near(const Problem& problem, const Mapping& mapping) const {
  Nearby<Problem> nearby(*this, problem, mapping);
  vary(nearby);
  return nearby.sorted();
}

template <typename Problem>
Mapped<Problem> Search<Problem>::select(const Problem& problem, std::size_t least) {
  return Selection<Problem>(*this, problem).run(least);
}

template class Search<GemmProblem>;
template class Search<AttentionProblem>;
template class Search<VectorProblem>;

}  // namespace llmperf::mapper::tile
