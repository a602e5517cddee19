// A schedule on a tile array as a picture: lanes of bars over time, in text or SVG.
#pragma once

#include <string>
#include <vector>

#include "mapper/tile/description.h"
#include "mapper/tile/simulation.h"
#include "report/document.h"

namespace llmperf::report {

struct Drawing {
  struct Lane {
    std::string name;
    mapper::tile::Lane kind = mapper::tile::Lane::matrix;
    std::vector<mapper::tile::Bar> bars;
  };
  struct Window {  // of time, s
    double begin = 0;
    double end = 0;
  };
  std::vector<Lane> lanes;
  std::vector<Window> windows;  // all of the schedule, or its first and its last steps
  double seconds = 0;
  bool whole = true;  // else the time is that of a schedule with fewer steps
};
Drawing drawing_of(const mapper::tile::Timeline& timeline, const mapper::tile::Description& description);

// A row per lane and a column per window, in which every character is a slice of time: the last digit of the step that
// is worked on, ":" where that is for less than half of the slice, "." where the lane is idle.
Table drawing_table(const Drawing& drawing);
std::string drawing_svg(const Drawing& drawing, const std::string& title);

}  // namespace llmperf::report
