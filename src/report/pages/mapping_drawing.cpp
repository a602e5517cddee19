#include "report/pages/mapping_drawing.h"

#include <algorithm>

#include "report/table.h"

namespace llmperf::report {
namespace {

using mapper::tile::Bar;
using LaneKind = mapper::tile::Lane;

constexpr std::size_t kSteps = 6;  // that a window shows
constexpr int kColumns = 80;       // of characters, all windows together

struct LaneLook {
  LaneKind kind;
  const char* colour;
};
constexpr LaneLook kLooks[] = {{LaneKind::load_a, "#4477aa"}, {LaneKind::load_b, "#66ccee"},
                               {LaneKind::joined, "#bbbbbb"}, {LaneKind::store, "#aa3377"},
                               {LaneKind::noc, "#ccbb44"},    {LaneKind::matrix, "#228833"},
                               {LaneKind::vector, "#ee6677"}};

std::string lane_name(LaneKind kind, const mapper::tile::Description& d) {
  switch (kind) {
    case LaneKind::load_a: return fmt::format("load {}", d.a_name);
    case LaneKind::load_b: return fmt::format("load {}", d.b_name);
    case LaneKind::joined: return fmt::format("load {}", d.joined_name);
    case LaneKind::store: return "store";
    case LaneKind::noc: return "NoC";
    case LaneKind::matrix: return "matrix";
    case LaneKind::vector: return "vector";
  }
  return {};
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : single_line(text)) {
    result += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  }
  return result;
}

double overlap(const Bar& bar, double begin, double end) {
  return std::max(0.0, std::min(bar.end, end) - std::max(bar.begin, begin));
}

std::string characters(const std::vector<Bar>& bars, const Drawing::Window& window, int columns) {
  std::string text;
  const double slice = (window.end - window.begin) / columns;
  for (int i = 0; i < columns; ++i) {
    const double begin = window.begin + slice * i;
    double busy = 0;
    double most = 0;
    std::int64_t step = 0;
    for (const Bar& bar : bars) {
      const double part = overlap(bar, begin, begin + slice);
      busy += part;
      if (part > most) {
        most = part;
        step = bar.step;
      }
    }
    text += busy <= slice * 1e-6 ? '.' : busy < slice / 2 ? ':' : static_cast<char>('0' + step % 10);
  }
  return text;
}

std::string window_text(const Drawing& drawing, std::size_t i) {
  const Drawing::Window& w = drawing.windows[i];
  if (drawing.windows.size() == 1) return fmt::format("0 to {}", Seconds{w.end});
  return fmt::format("{} {}", i == 0 ? "first" : "last", Seconds{w.end - w.begin});
}

}  // namespace

Drawing drawing_of(const mapper::tile::Timeline& timeline, const mapper::tile::Description& description) {
  Drawing drawing;
  if (!timeline.cut) drawing.seconds = timeline.seconds;
  const std::size_t steps = timeline.ends.size();
  // Of a cut schedule the last steps count from the end.
  const auto played = static_cast<std::int64_t>(steps);
  const auto number = [&](std::int64_t step) { return 2 * step < played ? step : step + timeline.steps - played; };
  drawing.windows = {{0, timeline.seconds}};
  if (steps > 2 * kSteps) {
    drawing.windows = {{0, timeline.ends[kSteps - 1]}, {timeline.ends[steps - kSteps], timeline.seconds}};
  }
  for (const LaneLook& look : kLooks) {
    Drawing::Lane lane{lane_name(look.kind, description), look.kind, {}};
    for (const Bar& bar : timeline.of(look.kind)) {
      const bool shown = std::any_of(drawing.windows.begin(), drawing.windows.end(),
                                     [&](const auto& w) { return overlap(bar, w.begin, w.end) > 0; });
      if (shown) lane.bars.push_back({bar.begin, bar.end, number(bar.step)});
    }
    if (!timeline.of(look.kind).empty()) drawing.lanes.push_back(std::move(lane));
  }
  return drawing;
}

Table drawing_table(const Drawing& drawing) {
  Table t = titled("Schedule (as simulated; digits: the step worked on; : under half of the slice, . idle)", "<");
  const int columns = kColumns / static_cast<int>(drawing.windows.size());
  for (std::size_t i = 0; i < drawing.windows.size(); ++i) t.columns.push_back({window_text(drawing, i), true});
  for (const Drawing::Lane& lane : drawing.lanes) {
    std::vector<std::string> row = {lane.name};
    for (const Drawing::Window& w : drawing.windows) row.push_back(characters(lane.bars, w, columns));
    t.rows.push_back(std::move(row));
  }
  return t;
}

std::string drawing_svg(const Drawing& drawing, const std::string& title) {
  constexpr double kLeft = 110;
  constexpr double kWidth = 880;
  constexpr double kTop = 50;
  constexpr double kRow = 26;
  constexpr double kGap = 20;  // between two windows
  const auto windows = static_cast<double>(drawing.windows.size());
  const double width = (kWidth - kGap * (windows - 1)) / windows;
  const double bottom = kTop + kRow * static_cast<double>(drawing.lanes.size());
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1000 {:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<text x=\"10\" y=\"20\" font-size=\"14\">{}</text>\n",
      bottom + 30, escaped(title));
  for (std::size_t l = 0; l < drawing.lanes.size(); ++l) {
    const Drawing::Lane& lane = drawing.lanes[l];
    const double y = kTop + kRow * static_cast<double>(l);
    const auto look = std::find_if(std::begin(kLooks), std::end(kLooks),
                                   [&](const LaneLook& other) { return other.kind == lane.kind; });
    svg += fmt::format("<text x=\"10\" y=\"{:.0f}\">{}</text>\n", y + 16, lane.name);
    for (std::size_t i = 0; i < drawing.windows.size(); ++i) {
      const Drawing::Window& w = drawing.windows[i];
      const double left = kLeft + (width + kGap) * static_cast<double>(i);
      const double scale = width / (w.end - w.begin);
      for (const Bar& bar : lane.bars) {
        const double begin = std::max(bar.begin, w.begin);
        const double end = std::min(bar.end, w.end);
        if (end <= begin) continue;
        svg += fmt::format(
            "<rect x=\"{:.2f}\" y=\"{:.0f}\" width=\"{:.2f}\" height=\"20\" fill=\"{}\" stroke=\"white\" "
            "stroke-width=\"0.5\"><title>step {}: {}</title></rect>\n",
            left + (begin - w.begin) * scale, y, (end - begin) * scale, look->colour, bar.step,
            Seconds{bar.end - bar.begin});
      }
    }
  }
  for (std::size_t i = 0; i < drawing.windows.size(); ++i) {
    const double left = kLeft + (width + kGap) * static_cast<double>(i);
    svg += fmt::format(
        "<path d=\"M{0:.1f} {1:.0f}h{2:.1f}\" stroke=\"black\"/>\n<text x=\"{0:.1f}\" y=\"{3:.0f}\">{4}</text>\n", left,
        bottom, width, bottom + 18, window_text(drawing, i));
  }
  return svg + "</svg>\n";
}

}  // namespace llmperf::report
