// A schedule on a tile array as a picture: lanes of bars over time, in text or SVG.
#pragma once

#include <string>
#include <vector>

#include "mapper/tile/simulation.h"
#include "report/document.h"
#include "result/mapping.h"

namespace llmperf::report {

using Drawing = result::DrawnSchedule;
Drawing drawing_of(const mapper::tile::Timeline& timeline, const mapper::tile::Description& description);

// A row per lane and a column per window, in which every character is a slice of time: the last digit of the step that
// is worked on, ":" where that is for less than half of the slice, "." where the lane is idle.
Table drawing_table(const Drawing& drawing);
std::string drawing_svg(const Drawing& drawing, const std::string& title);

}  // namespace llmperf::report
