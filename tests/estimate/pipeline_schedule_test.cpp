// The bubbles of schedules, held against simulations of their stages: every stage runs its passes in the order that the
// schedule's paper gives it, each as soon as what it needs is there.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "estimate/training.h"
#include "graph/random_decoder.h"

namespace llmperf::estimate {
namespace {

enum class Kind : unsigned char { forward, backward, weights };
struct Task {
  Kind kind;
  bool reversed;  // of a micro-batch that enters at the last stage
  int batch;
};
using Order = std::vector<std::vector<Task>>;  // what a stage does, in parts that end together

struct Times {
  std::vector<double> forward, backward, weights;  // by stage; `backward` without the gradients of weights
  double of(Kind kind, std::size_t stage) const {
    return (kind == Kind::forward ? forward : kind == Kind::backward ? backward : weights)[stage];
  }
  double all(std::size_t stage) const { return forward[stage] + backward[stage] + weights[stage]; }
};

double makespan(const std::vector<Order>& orders, const Times& times) {
  const auto stages = static_cast<int>(orders.size());
  std::map<std::tuple<Kind, bool, int, int>, double> done;
  std::vector<std::size_t> next(orders.size(), 0);
  std::vector<double> now(orders.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = 0; s < stages; ++s) {
      const auto at = static_cast<std::size_t>(s);
      for (; next[at] < orders[at].size(); ++next[at], moved = true) {
        const std::vector<Task>& part = orders[at][next[at]];
        double start = now[at];
        double length = 0;
        bool ready = true;
        for (const Task& t : part) {
          const int before = t.reversed ? s + 1 : s - 1;
          const int after = t.reversed ? s - 1 : s + 1;
          const auto wait = [&](Kind kind, int stage) {
            const auto found = done.find({kind, t.reversed, stage, t.batch});
            ready = ready && found != done.end();
            if (found != done.end()) start = std::max(start, found->second);
          };
          if (t.kind == Kind::forward && before >= 0 && before < stages) wait(Kind::forward, before);
          if (t.kind == Kind::backward && after >= 0 && after < stages) wait(Kind::backward, after);
          if (t.kind == Kind::backward && (after < 0 || after >= stages)) wait(Kind::forward, s);
          length += times.of(t.kind, at);
        }
        if (!ready) break;
        now[at] = start + length;
        for (const Task& t : part) done[{t.kind, t.reversed, s, t.batch}] = now[at];
      }
    }
  }
  for (std::size_t s = 0; s < orders.size(); ++s) REQUIRE(next[s] == orders[s].size());
  return *std::max_element(now.begin(), now.end());
}

// As many forward passes as there are stages from this one on, then one backward and one forward pass in turns. The
// gradients of weights come with the backward pass, or after as many further ones as there are stages before this one.
std::vector<Order> one_forward_one_backward(int stages, int batches, bool zero_bubble) {
  std::vector<Order> orders(static_cast<std::size_t>(stages));
  for (int s = 0; s < stages; ++s) {
    Order& order = orders[static_cast<std::size_t>(s)];
    int forward = 0;
    while (forward < stages - s) order.push_back({{Kind::forward, false, forward++}});
    int weights = 0;
    for (int b = 0; b < batches; ++b) {
      order.push_back({{Kind::backward, false, b}});
      if (!zero_bubble) order.back().push_back({Kind::weights, false, b});
      if (zero_bubble && b >= s) order.push_back({{Kind::weights, false, weights++}});
      if (forward < batches) order.push_back({{Kind::forward, false, forward++}});
    }
    while (zero_bubble && weights < batches) order.push_back({{Kind::weights, false, weights++}});
  }
  return orders;
}

// DualPipe's eight steps, of half of the micro-batches from either end; pairs of a forward and a backward pass run side
// by side and end together.
std::vector<Order> dualpipe(int stages, int batches) {
  std::vector<Order> orders;
  const int half = stages / 2;
  for (int s = 0; s < stages; ++s) {
    const int h = std::min(s, stages - 1 - s);
    Order order;
    std::map<std::pair<Kind, bool>, int> count;
    std::vector<bool> late;  // gradients of weights to come
    const auto task = [&](Kind kind, int direction) {
      const bool reversed = (direction == 1) != (s >= half);
      return Task{kind, reversed, count[{kind, reversed}]++};
    };
    const auto forward = [&](int d) { order.push_back({task(Kind::forward, d)}); };
    const auto backward = [&](int d, bool splits) {
      order.push_back({task(Kind::backward, d)});
      if (splits) {
        late.push_back(d == 1);
      } else {
        order.back().push_back(task(Kind::weights, d));
      }
    };
    const auto weights = [&] {
      order.push_back({task(Kind::weights, late.front() ? 1 : 0)});
      late.erase(late.begin());
    };
    const auto both = [&](int f, int b) {
      order.push_back({task(Kind::forward, f), task(Kind::backward, b), task(Kind::weights, b)});
    };
    for (int i = 0; i < 2 * (half - h - 1); ++i) forward(0);
    for (int i = 0; i < h + 1; ++i) forward(0), forward(1);
    for (int i = 0; i < half - h - 1; ++i) backward(1, true), weights(), forward(1);
    for (int i = 0; i < batches / 2 - stages + h + 1; ++i) both(0, 1), both(1, 0);
    for (int i = 0; i < half - h - 1; ++i) backward(1, false), both(1, 0);
    bool splits = false;
    for (int i = 0; i < h + 1; ++i) {
      if (i == (h + 1) / 2 && h % 2 == 1) splits = true;
      backward(1, splits);
      if (i == (h + 1) / 2 && h % 2 == 0) splits = true;
      backward(0, splits);
    }
    for (int i = 0; i < half - h - 1; ++i) weights(), backward(0, true);
    for (int i = 0; i < h + 1; ++i) weights();
    orders.push_back(std::move(order));
  }
  return orders;
}

// By the formulas.
double bubble(const Times& times, graph::Schedule schedule, int batches) {
  std::vector<StagePasses> stages;
  for (std::size_t s = 0; s < times.forward.size(); ++s) {
    stages.push_back(
        {Seconds{times.forward[s]}, Seconds{times.backward[s] + times.weights[s]}, Seconds{times.weights[s]}});
  }
  return pipeline_bubble({.schedule = schedule}, stages, batches).value;
}

double busiest(const Times& times) {
  double most = 0;
  for (std::size_t s = 0; s < times.forward.size(); ++s) most = std::max(most, times.all(s));
  return most;
}

Times alike(std::size_t stages, double f, double b, double w) {
  return {std::vector<double>(stages, f), std::vector<double>(stages, b), std::vector<double>(stages, w)};
}

}  // namespace

TEST_CASE("1F1B takes as long as a simulation of its stages, unlike ones at most three in a hundred longer") {
  test::Random random(11);
  for (int i = 0; i < 200; ++i) {
    const auto stages = static_cast<std::size_t>(random.in(1, 8));
    const int batches = static_cast<int>(stages) + static_cast<int>(random.in(0, 12));
    const bool equal = random.chance();
    Times times;
    // A stage of more layers has more of everything; the last has the logits besides.
    for (std::size_t s = 0; s < stages; ++s) {
      const double layers = equal ? 4 : static_cast<double>(random.in(3, 6));
      const double work = layers + (s + 1 == stages ? 3 : 0);
      times.forward.push_back(work);
      times.backward.push_back(work * 1.25);
      times.weights.push_back(work);
    }
    const double simulated = makespan(one_forward_one_backward(static_cast<int>(stages), batches, false), times);
    const double said = batches * busiest(times) + bubble(times, graph::Schedule::one_forward, batches);
    if (equal) CHECK(said == Approx(simulated));
    CHECK(said <= simulated * (1 + 1e-9));
    CHECK(said >= simulated * 0.97);
  }
}

TEST_CASE("ZB-H1 fills the gaps but for F + B - 2 W of every other stage") {
  test::Random random(12);
  for (int i = 0; i < 40; ++i) {
    const auto stages = static_cast<std::size_t>(random.in(2, 8));
    const int batches = 3 * static_cast<int>(stages);
    const double f = static_cast<double>(random.in(80, 100));
    const Times times =
        alike(stages, f, static_cast<double>(random.in(100, 120)), static_cast<double>(random.in(60, 80)));
    const double simulated = makespan(one_forward_one_backward(static_cast<int>(stages), batches, true), times);
    CHECK(simulated == Approx(batches * busiest(times) + bubble(times, graph::Schedule::zb_h1, batches)));
  }
}

TEST_CASE("DualPipe waits for half of the stages, but for three gradients of weights each") {
  for (const int stages : {4, 8, 16}) {
    const Times times = alike(static_cast<std::size_t>(stages), 1, 1, 1);
    const double simulated = makespan(dualpipe(stages, 3 * stages), times);
    CHECK(simulated == Approx(3 * stages * 3 + bubble(times, graph::Schedule::dualpipe, 3 * stages)));
  }
}

}  // namespace llmperf::estimate
