#include "graph/hlo/axes.h"

#include <algorithm>

namespace llmperf::graph::hlo {
namespace {

bool is_repeat(const Axis& axis) { return axis.kind == AxisKind::repeated; }

Dimension whole(std::int64_t extent, AxisKind kind, double at, double span) {
  if (extent == 1) return {};
  return {Axis{extent, kind, -1, at, span}};
}

// Of extents that cannot be told apart.
Dimension merged(std::int64_t extent, const Axes& axes) {
  for (const Dimension& dimension : axes) {
    for (const Axis& axis : dimension) {
      if (!is_repeat(axis)) return whole(extent, axis.kind, axis.at, axis.span);
    }
  }
  return whole(extent, AxisKind::other, 0, 1);
}

}  // namespace

std::int64_t times(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  return b > 0 && a > kMost / b ? kMost : a * b;
}

std::int64_t extent(const Dimension& dimension) {
  std::int64_t product = 1;
  for (const Axis& axis : dimension) product = times(product, axis.extent);
  return product;
}

std::int64_t extent(const Dimension& dimension, AxisKind kind) {
  std::int64_t product = 1;
  for (const Axis& axis : dimension) {
    if (axis.kind == kind) product = times(product, axis.extent);
  }
  return product;
}

std::int64_t extent(const Axes& axes) {
  std::int64_t product = 1;
  for (const Dimension& dimension : axes) product = times(product, extent(dimension));
  return product;
}

std::int64_t extent(const Axes& axes, AxisKind kind) {
  std::int64_t product = 1;
  for (const Dimension& dimension : axes) product = times(product, extent(dimension, kind));
  return product;
}

bool has_repeats(const Axes& axes) {
  return std::any_of(axes.begin(), axes.end(),
                     [](const Dimension& d) { return std::any_of(d.begin(), d.end(), is_repeat); });
}

Axes fresh_axes(std::span<const std::int64_t> dims, AxisKind kind) {
  Axes axes;
  double at = 0;
  for (const std::int64_t dim : dims) axes.push_back(whole(dim, kind, at++, 1));
  return axes;
}

Axes reshaped(const Axes& axes, std::span<const std::int64_t> dims) {
  std::vector<Axis> left;  // the innermost first
  for (auto dimension = axes.rbegin(); dimension != axes.rend(); ++dimension) {
    left.insert(left.end(), dimension->rbegin(), dimension->rend());
  }
  Axes result;
  bool aligned = true;
  for (const std::int64_t dim : dims) {
    Dimension dimension;
    std::int64_t missing = dim;
    while (aligned && missing > 1) {
      if (left.empty() || left.back().extent <= 0) {
        aligned = false;
        break;
      }
      Axis& axis = left.back();
      if (missing % axis.extent == 0) {
        missing /= axis.extent;
        dimension.push_back(axis);
        left.pop_back();
      } else if (axis.extent % missing == 0) {
        Axis outer = axis;
        outer.extent = missing;
        outer.span = axis.span = axis.span / 2;
        axis.extent /= missing;
        axis.at += axis.span;
        dimension.push_back(outer);
        missing = 1;
      } else {
        aligned = false;
      }
    }
    result.push_back(aligned ? std::move(dimension) : merged(dim, axes));
  }
  return result;
}

Axes resized(const Axes& axes, std::span<const std::int64_t> dims) {
  Axes result;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    Dimension dimension = i < axes.size() ? axes[i] : Dimension{};
    const std::int64_t before = extent(dimension);
    if (before != dims[i]) {
      const std::int64_t inner = dimension.empty() ? 1 : before / std::max<std::int64_t>(1, dimension.front().extent);
      const Axis outer =
          dimension.empty() ? Axis{1, AxisKind::other, -1, static_cast<double>(i), 1} : dimension.front();
      if (dimension.empty() || inner <= 0 || dims[i] % inner != 0) {
        dimension = {outer};
        dimension.front().extent = dims[i];
      } else {
        dimension.front().extent = dims[i] / inner;
      }
      if (dimension.front().extent == 1) dimension.erase(dimension.begin());
    }
    result.push_back(std::move(dimension));
  }
  return result;
}

Axes broadcast(const Axes& axes, std::span<const std::int64_t> places, std::span<const std::int64_t> dims) {
  Axes result;
  for (const std::int64_t dim : dims) result.push_back(whole(dim, AxisKind::repeated, 0, 1));
  for (std::size_t i = 0; i < axes.size() && i < places.size(); ++i) {
    const auto place = static_cast<std::size_t>(places[i]);
    if (place < dims.size() && extent(axes[i]) == dims[place]) result[place] = axes[i];
  }
  return result;
}

}  // namespace llmperf::graph::hlo
