#include "graph/hlo/dot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace llmperf::graph::hlo {
namespace {

using Axes = std::vector<std::int64_t>;

// Product of the extents of `of`, or of all that are in neither list.
double extent(const Type& type, const Axes& of) {
  double product = 1;
  for (const std::int64_t axis : of) product *= static_cast<double>(type.dims[static_cast<std::size_t>(axis)]);
  return product;
}
double free_extent(const Type& type, const Axes& batch, const Axes& contracted) {
  double product = 1;
  for (std::int64_t axis = 0; axis < type.rank(); ++axis) {
    const auto in = [&](const Axes& list) { return std::find(list.begin(), list.end(), axis) != list.end(); };
    if (!in(batch) && !in(contracted)) product *= static_cast<double>(type.dims[static_cast<std::size_t>(axis)]);
  }
  return product;
}

constexpr std::int64_t kMostLabels = 26;

// "...ij": a label for every dimension, those that the dots stand for counted from the last.
std::string labels(std::string_view text, std::int64_t rank) {
  std::string all(text);
  const std::size_t dots = all.find("...");
  if (dots == std::string::npos) return all;
  const auto hidden = std::clamp<std::int64_t>(rank - static_cast<std::int64_t>(all.size()) + 3, 0, kMostLabels);
  std::string names;
  for (std::int64_t n = hidden; n-- > 0;) names += static_cast<char>(1 + n);  // that no text has
  return all.replace(dots, 3, names);
}

// "ij,jk->ik": labels of both operands are batch dimensions when the result has them, else contracted.
DotDimensions einsum_dimensions(std::string_view config, const Type& lhs, const Type& rhs) {
  DotDimensions d;
  const std::size_t comma = config.find(',');
  const std::size_t arrow = config.find("->");
  if (comma == std::string_view::npos || arrow == std::string_view::npos || arrow < comma) return d;
  const std::string left = labels(config.substr(0, comma), lhs.rank());
  const std::string right = labels(config.substr(comma + 1, arrow - comma - 1), rhs.rank());
  const std::string result = labels(config.substr(arrow + 2), 2 * kMostLabels);
  for (std::size_t axis = 0; axis < left.size(); ++axis) {
    const std::size_t other = right.find(left[axis]);
    if (other == std::string_view::npos) continue;
    const bool batch = result.find(left[axis]) != std::string_view::npos;
    (batch ? d.lhs_batch : d.lhs_contracted).push_back(static_cast<std::int64_t>(axis));
    (batch ? d.rhs_batch : d.rhs_contracted).push_back(static_cast<std::int64_t>(other));
  }
  return d;
}

void check(const Module& module, const Instruction& i, const Type& lhs, const Axes& left, const Type& rhs,
           const Axes& right, std::string_view what) {
  if (left.size() != right.size()) {
    module.fail(i, fmt::format("{} and {} {} dimensions of the two operands", left.size(), right.size(), what));
  }
  for (std::size_t n = 0; n < left.size(); ++n) {
    for (const auto& [type, axis] : {std::pair(&lhs, left[n]), std::pair(&rhs, right[n])}) {
      if (axis < 0 || axis >= type->rank()) {
        module.fail(i, fmt::format("{} has no dimension {} to be {}", text_of(*type), axis, what));
      }
    }
    const std::int64_t a = lhs.dims[static_cast<std::size_t>(left[n])];
    const std::int64_t b = rhs.dims[static_cast<std::size_t>(right[n])];
    if (a != b) {
      module.fail(
          i, fmt::format("the {} dimensions of {} and {} are {} and {} long", what, text_of(lhs), text_of(rhs), a, b));
    }
  }
}

}  // namespace

DotDimensions dot_dimensions(const Instruction& i, const Type& lhs, const Type& rhs) {
  DotDimensions d;
  if (const auto config = i.find("einsum_config") ? i.find("einsum_config") : i.find("config")) {
    return einsum_dimensions(unquoted(*config), lhs, rhs);
  }
  auto numbers = i.find("dot_dimension_numbers");
  if (!numbers) numbers = i.find("ragged_dot_dimension_numbers");
  if (numbers) {
    d.lhs_batch = field_integers(*numbers, "lhs_batching_dimensions");
    d.rhs_batch = field_integers(*numbers, "rhs_batching_dimensions");
    d.lhs_contracted = field_integers(*numbers, "lhs_contracting_dimensions");
    d.rhs_contracted = field_integers(*numbers, "rhs_contracting_dimensions");
    return d;
  }
  const auto contracting = i.find("contracting_dims");
  const auto batching = i.find("batching_dims");
  if (contracting || batching || i.op() == "dot_general") {
    d.lhs_contracted = integer_list(contracting.value_or(std::string_view{}), 0);
    d.rhs_contracted = integer_list(contracting.value_or(std::string_view{}), 1);
    d.lhs_batch = integer_list(batching.value_or(std::string_view{}), 0);
    d.rhs_batch = integer_list(batching.value_or(std::string_view{}), 1);
    // vhlo and portable forms give each list an attribute.
    const auto apart = [&](std::string_view key, Axes& into) {
      if (const auto text = i.find(key)) into = integers(*text);
    };
    apart("lhs_batching_dimensions", d.lhs_batch);
    apart("rhs_batching_dimensions", d.rhs_batch);
    apart("lhs_contracting_dimensions", d.lhs_contracted);
    apart("rhs_contracting_dimensions", d.rhs_contracted);
    return d;
  }
  if (lhs.rank() > 0 && rhs.rank() > 0) {
    d.lhs_contracted = {lhs.rank() - 1};
    d.rhs_contracted = {std::max<std::int64_t>(0, rhs.rank() - 2)};
    for (std::int64_t axis = 0; axis < std::min(lhs.rank(), rhs.rank()) - 2; ++axis) {
      d.lhs_batch.push_back(axis);
      d.rhs_batch.push_back(axis);
    }
  }
  return d;
}

DotShape dot_shape(const Module& module, const Instruction& i, const Type& lhs, const Type& rhs) {
  const DotDimensions d = dot_dimensions(i, lhs, rhs);
  check(module, i, lhs, d.lhs_batch, rhs, d.rhs_batch, "batch");
  check(module, i, lhs, d.lhs_contracted, rhs, d.rhs_contracted, "contracted");
  DotShape shape{.batch = extent(lhs, d.lhs_batch),
                 .m = free_extent(lhs, d.lhs_batch, d.lhs_contracted),
                 .n = free_extent(rhs, d.rhs_batch, d.rhs_contracted),
                 .k = extent(lhs, d.lhs_contracted)};
  if (const auto numbers = i.find("ragged_dot_dimension_numbers")) {
    const Axes groups = field_integers(*numbers, "rhs_group_dimensions");
    for (const std::int64_t axis : groups) {
      if (axis < 0 || axis >= rhs.rank()) module.fail(i, fmt::format("{} has no dimension {}", text_of(rhs), axis));
    }
    shape.groups = std::max(1.0, extent(rhs, groups));
    shape.n /= shape.groups;
  }
  return shape;
}

// The products m k, k n and m n of the extents give m, n and k.
DotShape library_product(const Type& lhs, const Type& rhs, const Type& out) {
  DotShape s;
  for (std::int64_t axis = 0; axis + 2 < out.rank(); ++axis)
    s.batch *= static_cast<double>(out.dims[static_cast<std::size_t>(axis)]);
  if (lhs.elements() * rhs.elements() * out.elements() == 0) return {.batch = 0};
  // Operands without batch dimensions are shared; one more is that of groups of rows with a matrix each.
  if (rhs.rank() < out.rank()) s.batch = 1;
  if (rhs.rank() > out.rank()) s.groups = static_cast<double>(rhs.dims[0]);
  const double matrix = rhs.elements() / s.groups;
  s.k = std::max(1.0, std::round(std::sqrt(lhs.elements() * matrix / (out.elements() * s.batch))));
  s.m = std::max(1.0, std::round(lhs.elements() / (s.batch * s.k)));
  s.n = std::max(1.0, std::round(matrix / (s.batch * s.k)));
  return s;
}

}  // namespace llmperf::graph::hlo
