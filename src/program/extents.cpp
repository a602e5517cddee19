#include "program/extents.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "program/work.h"

namespace llmperf::program {
namespace {

using Extents = std::vector<std::int64_t>;
using Operands = std::span<const Tensor* const>;

constexpr std::size_t kMaxFolded = 64;  // elements

std::optional<std::int64_t> at(const Extents& extents, std::int64_t axis) {
  if (axis < 0 || axis >= static_cast<std::int64_t>(extents.size())) return std::nullopt;
  const std::int64_t extent = extents[static_cast<std::size_t>(axis)];
  return extent == kDynamic ? std::nullopt : std::optional(extent);
}

// Batch dimensions, then the free ones of the first operand, then those of the second.
std::optional<std::int64_t> of_dot(const Instruction& i, std::size_t axis, Operands operands) {
  if (operands.size() < 2) return std::nullopt;
  const DotDimensions d = dot_dimensions(i, operands[0]->type, operands[1]->type);
  if (axis < d.batch[0].size()) return at(operands[0]->type.dims, d.batch[0][axis]);
  std::size_t n = d.batch[0].size();
  for (int side = 0; side < 2; ++side) {
    const Type& type = operands[static_cast<std::size_t>(side)]->type;
    for (const std::int64_t free : d.free(side, type)) {
      if (n++ == axis) return at(type.dims, free);
    }
  }
  return std::nullopt;
}

// The dimensions of the indices but the one that holds them, and between them those of a slice.
std::optional<std::int64_t> of_gather(const Instruction& i, std::size_t axis, Operands operands) {
  const auto text = i.find("dimension_numbers");
  if (!text || operands.size() < 2) return std::nullopt;
  const Extents offset = integers(field(*text, "offset_dims").value_or(std::string_view{}));
  if (contains(offset, static_cast<std::int64_t>(axis))) return std::nullopt;
  const Extents vector = integers(field(*text, "index_vector_dim").value_or("0"));
  std::int64_t batch = 0;
  for (std::size_t k = 0; k < axis; ++k) batch += contains(offset, static_cast<std::int64_t>(k)) ? 0 : 1;
  if (!vector.empty() && batch >= vector[0]) ++batch;
  return at(operands[1]->type.dims, batch);
}

std::optional<std::int64_t> of_shape_operand(const Tensor& shape, std::size_t axis) {
  return axis < shape.integers.size() && shape.integers[axis] >= 0 ? std::optional(shape.integers[axis]) : std::nullopt;
}

std::optional<std::int64_t> of_concatenate(const Instruction& i, std::size_t axis, Operands operands) {
  const Extents dim = integers(i, {"dim", "dimension"});
  if (dim.empty()) return std::nullopt;
  if (dim[0] != static_cast<std::int64_t>(axis)) return at(operands[0]->type.dims, static_cast<std::int64_t>(axis));
  std::int64_t sum = 0;
  for (const Tensor* operand : operands) {
    const auto extent = at(operand->type.dims, dim[0]);
    if (!extent) return std::nullopt;
    sum += *extent;
  }
  return sum;
}

std::optional<std::int64_t> of_pad(const Instruction& i, std::size_t axis, Operands operands) {
  const auto extent = at(operands[0]->type.dims, static_cast<std::int64_t>(axis));
  const Extents low = integers(i, {"low", "edge_padding_low"});
  const Extents high = integers(i, {"high", "edge_padding_high"});
  const Extents inner = integers(i, {"interior", "interior_padding"});
  if (!extent || axis >= low.size() || axis >= high.size()) return std::nullopt;
  const std::int64_t gaps = axis < inner.size() ? inner[axis] * std::max<std::int64_t>(0, *extent - 1) : 0;
  return *extent + low[axis] + high[axis] + gaps;
}

// A row of an attribute of the short form's window, or of the generic form; `otherwise` where it is not given.
std::int64_t of_window(const Instruction& i, std::string_view key, std::string_view generic, std::size_t at,
                       std::int64_t otherwise) {
  const Extents values = window_integers(i, key, generic);
  if (values.empty()) return otherwise;
  return at < values.size() ? values[at] : values.size() == 1 ? values[0] : otherwise;
}

// A dimension that the kernel moves along.
std::optional<std::int64_t> of_positions(const Instruction& i, std::string_view numbers, char letter,
                                         Operands operands) {
  const auto input_axis = axis_of(numbers, 0, letter, operands[0]->type.dims.size());
  const auto kernel_axis = axis_of(numbers, 1, letter, operands[1]->type.dims.size());
  if (letter < '0' || letter > '9' || !input_axis || !kernel_axis) return std::nullopt;
  const auto input = at(operands[0]->type.dims, static_cast<std::int64_t>(*input_axis));
  const auto kernel = at(operands[1]->type.dims, static_cast<std::int64_t>(*kernel_axis));
  const auto n = static_cast<std::size_t>(letter - '0');
  if (!input || !kernel) return std::nullopt;
  std::int64_t low = of_window(i, "pad", "padding", 2 * n, 0);
  std::int64_t high = of_window(i, "pad", "padding", 2 * n + 1, 0);
  if (operands.size() == 3) {  // dynamic_conv
    const std::vector<std::int64_t>& padding = operands[2]->integers;
    if (padding.size() <= 2 * n + 1) return std::nullopt;
    low = padding[2 * n];
    high = padding[2 * n + 1];
  }
  const std::int64_t spread = of_window(i, "lhs_dilate", "lhs_dilation", n, 1);
  const std::int64_t dilation = of_window(i, "rhs_dilate", "rhs_dilation", n, 1);
  const std::int64_t stride = of_window(i, "stride", "window_strides", n, 1);
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  if (std::max({*input, *kernel, low, high, spread, dilation, stride}) > kMost || std::min(low, high) < -kMost ||
      std::min({spread, dilation, stride}) < 1) {
    return std::nullopt;
  }
  const auto dilated = [](std::int64_t extent, std::int64_t by) { return extent == 0 ? 0 : (extent - 1) * by + 1; };
  const std::int64_t padded = dilated(*input, spread) + low + high;
  const std::int64_t window = dilated(*kernel, dilation);
  return padded < window ? 0 : (padded - window) / stride + 1;
}

// The batch of the input, the outputs of the kernel, and what it moves along.
std::optional<std::int64_t> of_convolution(const Instruction& i, std::size_t axis, Operands operands) {
  const auto text = convolution_numbers(i);
  if (!text || operands.size() < 2) return std::nullopt;
  const char letter = letter_at(*text, 2, axis);
  if (letter != 'b' && letter != 'f') return of_positions(i, *text, letter, operands);
  const std::size_t side = letter == 'b' ? 0 : 1;
  const std::vector<std::int64_t>& dims = operands[side]->type.dims;
  const auto from = axis_of(*text, side, letter == 'b' ? 'b' : 'o', dims.size());
  return from ? at(dims, static_cast<std::int64_t>(*from)) : std::nullopt;
}

std::optional<std::int64_t> of_reshape(const Type& type, Operands operands) {
  if (std::count(type.dims.begin(), type.dims.end(), kDynamic) != 1 || operands[0]->type.dynamic()) return std::nullopt;
  double known = 1;
  for (const std::int64_t extent : type.dims) known *= extent == kDynamic ? 1 : static_cast<double>(extent);
  if (known == 0) return std::nullopt;
  return static_cast<std::int64_t>(operands[0]->type.elements() / known);
}

// The longest known extent of the operands of the same rank: broadcasts stretch extents of 1.
std::optional<std::int64_t> of_same_rank(const Type& type, std::size_t axis, Operands operands) {
  std::optional<std::int64_t> longest;
  for (const Tensor* operand : operands) {
    if (operand->type.rank() != type.rank()) continue;
    const auto extent = at(operand->type.dims, static_cast<std::int64_t>(axis));
    if (extent && (!longest || *extent > *longest)) longest = extent;
  }
  return longest;
}

}  // namespace

std::optional<std::int64_t> infer_extent(const Instruction& i, const Traits& traits, const Type& type, std::size_t axis,
                                         Operands operands) {
  const std::string_view op = i.op();
  const auto n = static_cast<std::int64_t>(axis);
  if (op == "dynamic_iota") return operands.empty() ? std::nullopt : of_shape_operand(*operands[0], axis);
  if (op == "dynamic_broadcast_in_dim" || op == "dynamic_reshape") {
    return operands.size() < 2 ? std::nullopt : of_shape_operand(*operands[1], axis);
  }
  if (operands.empty()) return std::nullopt;
  if (op == "real_dynamic_slice" && operands.size() == 4) {
    const auto from = of_shape_operand(*operands[1], axis);
    const auto to = of_shape_operand(*operands[2], axis);
    const auto step = of_shape_operand(*operands[3], axis);
    if (!from || !to || !step || *step == 0) return std::nullopt;
    return std::max<std::int64_t>(0, (*to - *from + *step - 1) / *step);
  }
  if (op == "transpose") {
    const Extents order = integers(i, {"dims", "permutation"});
    return axis < order.size() ? at(operands[0]->type.dims, order[axis]) : std::nullopt;
  }
  if (op == "broadcast_in_dim") {
    const Extents dims = integers(i, {"dims", "broadcast_dimensions"});
    const auto found = std::find(dims.begin(), dims.end(), n);
    return found == dims.end() ? std::nullopt : at(operands[0]->type.dims, found - dims.begin());
  }
  if (op == "bitcast_convert") {
    // A dimension more for the parts of an element, or one less.
    if (n < operands[0]->type.rank()) return at(operands[0]->type.dims, n);
    const double parts = operands[0]->type.element.bits / std::max(1.0, type.element.bits);
    return n == operands[0]->type.rank() && parts >= 1 ? std::optional(std::llround(parts)) : std::nullopt;
  }
  if (op == "reshape") return of_reshape(type, operands);
  if (traits.op_class == OpClass::sort && n == type.rank() - 1) {
    // stablehlo.dynamic_top_k
    if (op == "custom_call" && operands.size() == 2 && operands[1]->integers.size() == 1) {
      return operands[1]->integers[0];
    }
    auto k = i.find("k");
    const auto attributes = i.find("mhlo.attributes");
    if (!k && attributes) k = field(*attributes, "k");
    if (k && !integers(*k).empty()) return integers(*k)[0];
  }
  if (op == "concatenate") return of_concatenate(i, axis, operands);
  if (op == "pad") return of_pad(i, axis, operands);
  if (op == "gather" || op == "dynamic_gather") return of_gather(i, axis, operands);
  if (traits.op_class == OpClass::product) return of_dot(i, axis, operands);
  if (traits.op_class == OpClass::convolution) return of_convolution(i, axis, operands);
  if (traits.op_class == OpClass::reduce) {
    const Extents reduced = integers(i, {"dimensions"});
    std::int64_t kept = 0;
    for (std::int64_t k = 0; k < operands[0]->type.rank(); ++k) {
      if (contains(reduced, k)) continue;
      if (kept++ == n) return at(operands[0]->type.dims, k);
    }
    return std::nullopt;
  }
  switch (traits.op_class) {
    case OpClass::elementwise:
    case OpClass::update:
    case OpClass::sort:
    case OpClass::free:
    case OpClass::movement:
    case OpClass::normalization:
    case OpClass::collective: return of_same_rank(type, axis, operands);
    default: return std::nullopt;
  }
}

namespace {

// Element by element; a single value goes with every element.
template <class Function>
Extents fold(const Extents& a, const Extents& b, Function&& function) {
  const std::size_t size = std::max(a.size(), b.size());
  if (a.empty() || b.empty() || (a.size() != size && a.size() != 1) || (b.size() != size && b.size() != 1)) return {};
  Extents result(size);
  for (std::size_t k = 0; k < size; ++k) {
    if (!function(a[a.size() == 1 ? 0 : k], b[b.size() == 1 ? 0 : k], result[k])) return {};
  }
  return result;
}

Extents fold_binary(std::string_view op, const Extents& a, const Extents& b) {
  using I = std::int64_t;
  const auto divides = [](I x, I y) { return y != 0 && !(y == -1 && x == INT64_MIN); };
  if (op == "add" || op == "addi") return fold(a, b, [](I x, I y, I& r) { return !__builtin_add_overflow(x, y, &r); });
  if (op == "subtract" || op == "subi") {
    return fold(a, b, [](I x, I y, I& r) { return !__builtin_sub_overflow(x, y, &r); });
  }
  if (op == "multiply" || op == "muli") {
    return fold(a, b, [](I x, I y, I& r) { return !__builtin_mul_overflow(x, y, &r); });
  }
  if (op == "divide" || op == "divsi") {
    return fold(a, b, [&](I x, I y, I& r) { return divides(x, y) && (r = x / y, true); });
  }
  if (op == "remainder" || op == "remsi") {
    return fold(a, b, [&](I x, I y, I& r) { return divides(x, y) && (r = x % y, true); });
  }
  if (op == "maximum") return fold(a, b, [](I x, I y, I& r) { return (r = std::max(x, y), true); });
  if (op == "minimum") return fold(a, b, [](I x, I y, I& r) { return (r = std::min(x, y), true); });
  return {};
}

// dense<3>, dense<[1, 2]>, 0 : index
Extents literal(const Instruction& i, std::size_t elements) {
  auto text = i.find("value");
  if (!text) text = i.unnamed();
  constexpr std::size_t kMaxText = 4096;
  if (!text || text->size() > kMaxText) return {};
  Extents values;
  if (text->starts_with("dense<")) {
    const std::string_view inside = text->substr(6, text->find('>') - 6);
    if (inside.find('"') != std::string_view::npos) return {};
    if (inside == "true" || inside == "false") {
      values = {inside == "true" ? 1 : 0};
    } else {
      values = integers(inside);
    }
  } else {
    values = integers(*text);
  }
  if (values.size() == 1) values.resize(elements, values[0]);
  return values.size() == elements ? values : Extents{};
}

}  // namespace

std::vector<std::int64_t> fold_integers(const Instruction& i, const Type& type, Operands operands) {
  const bool whole = type.element.kind == ElementClass::integer || type.element.kind == ElementClass::boolean;
  if (!type.tensor() || !whole || type.dynamic() || type.elements() > kMaxFolded) return {};
  const std::string_view op = i.op();
  const auto elements = static_cast<std::size_t>(type.elements());
  if (op == "constant") return literal(i, elements);
  if (operands.empty()) return {};
  const Tensor& first = *operands[0];
  if (op == "get_dimension_size") {
    const Extents dim = integers(i, {"dim", "dimension"});
    const auto extent = dim.empty() ? std::nullopt : at(first.type.dims, dim[0]);
    return extent ? Extents{*extent} : Extents{};
  }
  if (op == "shape_of") {
    return static_cast<std::size_t>(first.type.rank()) == elements && !first.type.dynamic() ? first.type.dims
                                                                                            : Extents{};
  }
  if ((op == "dim" || op == "get_extent") && operands.size() == 2 && operands[1]->integers.size() == 1) {
    const std::int64_t axis = operands[1]->integers[0];
    const Extents& of = op == "dim" ? first.type.dims : first.integers;
    const auto extent = at(of, axis);
    return extent ? Extents{*extent} : Extents{};
  }
  for (const Tensor* operand : operands) {
    if (operand->integers.empty()) return {};
  }
  Extents result;
  if (op == "extract" && type.rank() == 0) {
    const auto picked = operands.size() == 2 && operands[1]->integers.size() == 1
                            ? at(first.integers, operands[1]->integers[0])
                            : std::nullopt;
    if (picked) result = {*picked};
  } else if (op == "concatenate" || op == "from_elements" || op == "from_extents") {
    if (type.rank() != 1) return {};
    for (const Tensor* operand : operands) {
      result.insert(result.end(), operand->integers.begin(), operand->integers.end());
    }
  } else if (op == "reshape" || op == "convert" || op == "index_cast" || op == "to_extent_tensor" ||
             op == "dynamic_reshape" || op == "optimization_barrier" || op == "copy") {
    result = first.integers;
  } else if (op == "broadcast_in_dim" || op == "dynamic_broadcast_in_dim") {
    if (first.integers.size() == 1) result.assign(elements, first.integers[0]);
  } else if (op == "slice" && type.rank() == 1) {
    const Extents range = integers(i.unnamed().value_or(std::string_view{}));
    const Extents start = integers(i, {"start_indices"});
    const std::int64_t from = !range.empty() ? range[0] : !start.empty() ? start[0] : -1;
    if (from < 0 || static_cast<std::size_t>(from) + elements > first.integers.size()) return {};
    result.assign(first.integers.begin() + from, first.integers.begin() + from + static_cast<std::ptrdiff_t>(elements));
  } else if (operands.size() == 2) {
    result = fold_binary(op, first.integers, operands[1]->integers);
  }
  return result.size() == elements ? result : Extents{};
}

}  // namespace llmperf::program
