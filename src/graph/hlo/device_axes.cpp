#include "graph/hlo/device_axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace llmperf::graph::hlo {
namespace {

std::int64_t end_of(const DeviceAxis& axis) { return axis.size * axis.stride; }

}  // namespace

std::int64_t size_of(const DeviceAxes& axes) {
  std::int64_t size = 1;
  for (const DeviceAxis& axis : axes) size *= axis.size;
  return size;
}

DeviceAxes merged(const DeviceAxes& axes) {
  DeviceAxes result;
  for (const DeviceAxis& axis : axes) {
    if (axis.size == 1) continue;
    if (!result.empty() && result.back().stride == end_of(axis)) {
      result.back() = {result.back().size * axis.size, axis.stride};
    } else {
      result.push_back(axis);
    }
  }
  return result;
}

std::optional<DeviceAxes> take_outer(DeviceAxes& axes, std::int64_t size) {
  DeviceAxes taken;
  DeviceAxes rest = axes;
  std::size_t at = 0;
  for (; size > 1 && at < rest.size(); ++at) {
    DeviceAxis& axis = rest[at];
    if (size % axis.size == 0) {
      size /= axis.size;
      if (axis.size > 1) taken.push_back(axis);
    } else if (axis.size % size == 0) {
      const std::int64_t inner = axis.size / size;
      taken.push_back({size, axis.stride * inner});
      axis.size = inner;
      size = 1;
      break;
    } else {
      return std::nullopt;
    }
  }
  if (size != 1) return std::nullopt;
  rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(at));
  axes = std::move(rest);
  return taken;
}

std::optional<DeviceAxes> cut_by(const DeviceAxes& axes, const DeviceAxes& others) {
  std::vector<std::int64_t> ends;
  for (const DeviceAxis& other : others) {
    if (other.size > 1) ends.insert(ends.end(), {other.stride, end_of(other)});
  }
  std::sort(ends.rbegin(), ends.rend());
  DeviceAxes result;
  for (const DeviceAxis& axis : axes) {
    DeviceAxis rest = axis;
    if (rest.size == 1) continue;
    for (const std::int64_t end : ends) {
      if (end <= rest.stride || end >= end_of(rest)) continue;
      if (end % rest.stride != 0 || end_of(rest) % end != 0) return std::nullopt;
      result.push_back({end_of(rest) / end, end});
      rest.size = end / rest.stride;
    }
    result.push_back(rest);
  }
  return result;
}

bool overlap(const DeviceAxes& a, const DeviceAxes& b) {
  const auto meets = [](const DeviceAxis& x, const DeviceAxis& y) {
    return x.size > 1 && y.size > 1 && x.stride < end_of(y) && y.stride < end_of(x);
  };
  return std::any_of(a.begin(), a.end(), [&](const DeviceAxis& x) {
    return std::any_of(b.begin(), b.end(), [&](const DeviceAxis& y) { return meets(x, y); });
  });
}

DeviceAxes common(const DeviceAxes& axes, const DeviceAxes& others) {
  DeviceAxes parts = cut_by(axes, others).value_or(DeviceAxes{});
  std::erase_if(parts, [&](const DeviceAxis& axis) { return !overlap({axis}, others); });
  return parts;
}

ListedAxes axes_of(std::span<const std::int64_t> devices) {
  DeviceAxes inner_first;
  std::vector<std::int64_t> line(devices.begin(), devices.end());
  while (line.size() > 1) {
    const std::int64_t stride = line[1] - line[0];
    std::size_t run = 2;
    while (run < line.size() && line[run] - line[run - 1] == stride) ++run;
    while (line.size() % run != 0) --run;
    bool repeats = stride > 0 && run > 1;
    for (std::size_t i = 0; repeats && i < line.size(); ++i) {
      repeats = line[i] - line[i - i % run] == static_cast<std::int64_t>(i % run) * stride;
    }
    if (!repeats) {
      std::int64_t common = 0;
      for (std::size_t i = 1; i < devices.size(); ++i) common = std::gcd(common, devices[i] - devices[0]);
      return {{{static_cast<std::int64_t>(devices.size()), std::max<std::int64_t>(1, common)}}, false};
    }
    inner_first.push_back({static_cast<std::int64_t>(run), stride});
    std::vector<std::int64_t> outer;
    for (std::size_t i = 0; i < line.size(); i += run) outer.push_back(line[i]);
    line = std::move(outer);
  }
  std::reverse(inner_first.begin(), inner_first.end());
  return {inner_first, true};
}

ArrayAxes axes_of_array(std::span<const std::int64_t> devices, std::span<const std::int64_t> dims) {
  ArrayAxes result;
  result.dims.resize(dims.size());
  auto step = static_cast<std::int64_t>(devices.size());
  std::vector<std::int64_t> expected(devices.size(), devices.empty() ? 0 : devices[0]);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    step /= dims[d];
    std::vector<std::int64_t> line;
    for (std::int64_t i = 0; i < dims[d]; ++i) line.push_back(devices[static_cast<std::size_t>(i * step)]);
    ListedAxes listed = axes_of(line);
    result.regular = result.regular && listed.regular;
    result.dims[d] = std::move(listed.axes);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto along = static_cast<std::size_t>(static_cast<std::int64_t>(i) / step % dims[d]);
      expected[i] += line[along] - line[0];
    }
  }
  result.regular = result.regular && std::equal(expected.begin(), expected.end(), devices.begin(), devices.end());
  return result;
}

DeviceGroup group_of(const DeviceAxes& axes) {
  DeviceAxes sorted = axes;
  std::sort(sorted.begin(), sorted.end(), [](const DeviceAxis& a, const DeviceAxis& b) { return a.stride > b.stride; });
  sorted = merged(sorted);
  DeviceGroup group{size_of(sorted), sorted.empty() ? 1 : sorted.back().stride, sorted.size() <= 1};
  for (const DeviceAxis& axis : sorted) group.stride = std::gcd(group.stride, axis.stride);
  return group;
}

std::string group_text(std::span<const std::int64_t> devices, std::int64_t groups) {
  constexpr std::size_t kShown = 8;
  std::string text = "{";
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices.size() > kShown && i == 3) {
      text += ",...";
      i = devices.size() - 1;
    }
    text += fmt::format("{}{}", i == 0 ? "" : ",", devices[i]);
  }
  return text + fmt::format("}} x{}", groups);
}

std::vector<std::int64_t> devices_of(const DeviceAxes& axes, std::int64_t most) {
  const std::int64_t size = std::min(size_of(axes), most);
  std::vector<std::int64_t> devices;
  for (std::int64_t i = 0; i < size; ++i) {
    std::int64_t rest = i;
    std::int64_t device = 0;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      device += rest % axis->size * axis->stride;
      rest /= axis->size;
    }
    devices.push_back(device);
  }
  return devices;
}

}  // namespace llmperf::graph::hlo
