// In place of points/runner.cpp: a page has no threads to compute on.
#include "points/runner.h"

namespace llmperf::points::detail {

void run_in_order(std::size_t pieces, std::size_t,
                  const std::function<void(std::size_t, std::size_t, std::size_t)>& compute,
                  const std::function<bool(std::size_t, std::size_t)>& hand_on, std::size_t) {
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    compute(0, 0, piece);
    if (!hand_on(0, piece)) return;
  }
}

}  // namespace llmperf::points::detail
