// Exact sums over a growing context. A decode step's cost is a piecewise linear function of the number of cached tokens
// (attention grows with it until a window is full), and a generation visits every integer of a range. Summing a linear
// piece needs its two ends; the pieces are found by bisection: a range is one piece when its middle lies on the line
// through its ends.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace llmperf::estimate {

// Adds to sum[0..width) the values of evaluate(context, out[0..width)) over context = first..last, both included.
// `pool` is scratch that grows once and is reused. Exact up to rounding for piecewise linear functions that are convex
// or concave, as costs are between the ends of windows: a range with a kink has its middle off the chord. (A GEMM that
// re-reads its operands in steps is neither; in decode that takes a cache smaller than a row of scores.) A curved
// function is resolved until the middle of each piece lies within `tolerance` of its chord.
template <class Evaluate>
void sum_over_context(std::int64_t first, std::int64_t last, std::size_t width, std::vector<double>& pool, double* sum,
                      Evaluate&& evaluate, double tolerance = 1e-9) {
  struct Summation {
    std::size_t width;
    std::vector<double>& pool;
    double* sum;
    Evaluate& evaluate;
    double tolerance;

    double* slot(std::size_t index) {
      if (pool.size() < (index + 1) * width) pool.resize((index + 1) * width);
      return pool.data() + index * width;
    }
    void sample(std::int64_t context, std::size_t index) { evaluate(context, slot(index)); }
    void add(std::size_t index, double weight) {
      const double* values = slot(index);
      for (std::size_t i = 0; i < width; ++i) sum[i] += weight * values[i];
    }
    bool on_chord(std::size_t a, std::size_t middle, std::size_t b, double position) {
      slot(b);
      const double *fa = slot(a), *fm = slot(middle), *fb = slot(b);
      for (std::size_t i = 0; i < width; ++i) {
        const double chord = fa[i] + (fb[i] - fa[i]) * position;
        if (std::abs(fm[i] - chord) > tolerance * std::abs(chord)) return false;
      }
      return true;
    }
    // Slots a and b hold the values at the ends; slots from `free` on may be used.
    void range(std::int64_t lo, std::int64_t hi, std::size_t a, std::size_t b, std::size_t free) {
      const std::int64_t count = hi - lo + 1;
      if (count <= 2) {
        add(a, 1);
        if (count == 2) add(b, 1);
        return;
      }
      const std::int64_t middle = lo + (hi - lo) / 2;
      sample(middle, free);
      if (on_chord(a, free, b, static_cast<double>(middle - lo) / static_cast<double>(hi - lo))) {
        const double half = static_cast<double>(count) / 2;
        add(a, half);
        add(b, half);
        return;
      }
      range(lo, middle, a, free, free + 1);
      sample(middle + 1, free);
      range(middle + 1, hi, free, b, free + 1);
    }
  };
  Summation s{width, pool, sum, evaluate, tolerance};
  s.sample(first, 0);
  s.sample(last, 1);
  s.range(first, last, 0, 1, 2);
}

}  // namespace llmperf::estimate
