#include "program/factors.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

#include "program/work.h"

namespace llmperf::program {
namespace {

using Operands = std::span<const Tensor* const>;

constexpr std::size_t kMaxFolded = 64;  // elements

std::optional<std::int64_t> at(const Integers& extents, std::int64_t axis) {
  if (axis < 0 || axis >= static_cast<std::int64_t>(extents.size())) return std::nullopt;
  const std::int64_t extent = extents[axis];
  return extent == kDynamic ? std::nullopt : std::optional(extent);
}

std::optional<std::int64_t> of_shape_operand(const Tensor& shape, std::size_t axis) {
  return axis < shape.integers.size() && shape.integers[axis] >= 0 ? std::optional(shape.integers[axis]) : std::nullopt;
}

std::optional<std::int64_t> of_concatenate(const Instruction& i, std::size_t axis, Operands operands) {
  const Integers dim = integers(i, {"dim", "dimension"});
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
  const Integers low = integers(i, {"low", "edge_padding_low"});
  const Integers high = integers(i, {"high", "edge_padding_high"});
  const Integers inner = integers(i, {"interior", "interior_padding"});
  if (!extent || axis >= low.size() || axis >= high.size()) return std::nullopt;
  const std::int64_t gaps = axis < inner.size() ? inner[axis] * std::max<std::int64_t>(0, *extent - 1) : 0;
  return *extent + low[axis] + high[axis] + gaps;
}

// A row of an attribute of the short form's window, or of the generic form; `otherwise` where it is not given.
std::int64_t of_window(const Instruction& i, std::string_view key, std::string_view generic, std::size_t at,
                       std::int64_t otherwise) {
  const Integers values = window_integers(i, key, generic);
  if (values.empty()) return otherwise;
  return at < values.size() ? values[at] : values.size() == 1 ? values[0] : otherwise;
}

// A dimension that the kernel moves along.
std::optional<std::int64_t> of_positions(const Instruction& i, std::size_t n, Operands operands) {
  const char letter = static_cast<char>('0' + n);
  const auto input = at(operands[0]->type.dims, convolution_axis(i, 0, letter));
  const auto kernel = at(operands[1]->type.dims, convolution_axis(i, 1, letter));
  if (!input || !kernel) return std::nullopt;
  std::int64_t low = of_window(i, "pad", "padding", 2 * n, 0);
  std::int64_t high = of_window(i, "pad", "padding", 2 * n + 1, 0);
  if (operands.size() == 3) {  // dynamic_conv
    const Integers& padding = operands[2]->integers;
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
  if (operands.size() < 2) return std::nullopt;
  const auto is = [&](char letter) { return convolution_axis(i, 2, letter) == static_cast<std::int64_t>(axis); };
  if (is('b')) return at(operands[0]->type.dims, convolution_axis(i, 0, 'b'));
  if (is('f')) return at(operands[1]->type.dims, convolution_axis(i, 1, 'o'));
  for (std::size_t n = 0; n < 10; ++n) {
    if (is(static_cast<char>('0' + n))) return of_positions(i, n, operands);
  }
  return std::nullopt;
}

std::optional<std::int64_t> of_reshape(const Type& type, Operands operands) {
  if (std::ranges::count(type.dims, kDynamic) != 1 || operands[0]->type.dynamic()) return std::nullopt;
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

using Types = std::span<const Type* const>;

// Batch dimensions, then the free ones of the first operand, then those of the second.
Links links_of_product(const Instruction& i, Types operands) {
  const DotDimensions d = dot_dimensions(i, *operands[0], *operands[1]);
  Links links;
  std::int64_t to = 0;
  for (std::size_t n = 0; n < std::min(d.batch[0].size(), d.batch[1].size()); ++n, ++to) {
    for (const std::size_t side : {0U, 1U}) links.push_back({side, d.batch[side][n], to});
  }
  for (const std::size_t side : {0U, 1U}) {
    for (const std::int64_t free : d.free(static_cast<int>(side), *operands[side])) links.push_back({side, free, to++});
  }
  for (std::size_t n = 0; n < std::min(d.contracted[0].size(), d.contracted[1].size()); ++n) {
    for (const std::size_t side : {0U, 1U}) {
      links.push_back({side, d.contracted[side][n], -1 - static_cast<std::int64_t>(n)});
    }
  }
  return links;
}

// Of all inputs; the second half of the operands are initial values.
Links links_of_reduction(const Instruction& i, Types operands) {
  const Integers reduced = integers(i, {"dimensions"});
  Links links;
  std::int64_t to = 0;
  for (std::int64_t at = 0; at < operands[0]->rank(); ++at) {
    const std::int64_t place = contains(reduced, at) ? -1 - at : to++;
    for (std::size_t n = 0; n < operands.size() / 2; ++n) links.push_back({n, at, place});
  }
  return links;
}

// Slices of the first operand, as far as they are all of a dimension, and between them the dimensions of the indices
// but the one that holds them. An index_vector_dim of 0 is not printed.
Links links_of_gather(const Instruction& i, Types operands) {
  const std::string_view numbers = i.find("dimension_numbers").value_or(std::string_view{});
  const Integers offset = field_integers(numbers, "offset_dims");
  const Integers collapsed = field_integers(numbers, "collapsed_slice_dims");
  const Integers batching = field_integers(numbers, "operand_batching_dims");
  const Integers indices_batching = field_integers(numbers, "start_indices_batching_dims");
  const Integers mapped = field_integers(numbers, "start_index_map");
  const Integers vector = integers(field(numbers, "index_vector_dim").value_or("0"));
  const Integers sizes = integers(i, {"slice_sizes"});
  Links links;
  std::size_t next = 0;
  for (std::int64_t at = 0; at < operands[0]->rank(); ++at) {
    if (contains(batching, at)) continue;
    if (!contains(collapsed, at)) {
      const bool whole = at < static_cast<std::int64_t>(sizes.size()) && sizes[at] == operands[0]->dims[at];
      if (whole && next < offset.size()) links.push_back({0, at, offset[next]});
      ++next;
    } else if (contains(mapped, at)) {
      links.push_back({0, at, -1 - at});
    }
  }
  std::int64_t to = 0;
  for (std::int64_t at = 0; at < operands[1]->rank(); ++at) {
    if (!vector.empty() && vector[0] == at) continue;
    while (contains(offset, to)) ++to;
    links.push_back({1, at, to});
    for (std::size_t n = 0; n < std::min(indices_batching.size(), batching.size()); ++n) {
      if (indices_batching[n] == at) links.push_back({0, batching[n], to});
    }
    ++to;
  }
  return links;
}

}  // namespace

std::optional<Links> links_of(const Instruction& i, const Traits& traits, Types operands, const Type& result) {
  const std::string_view op = i.op();
  if (operands.empty()) return std::nullopt;
  Links links;
  if (op == "transpose") {
    const Integers order = integers(i, {"dims", "permutation"});
    for (std::size_t n = 0; n < order.size(); ++n) links.push_back({0, order[n], static_cast<std::int64_t>(n)});
    return links;
  }
  if (op == "broadcast_in_dim" || op == "dynamic_broadcast_in_dim" || op == "broadcast") {
    const Integers places = integers(i, {"dims", "broadcast_dimensions"});
    const std::int64_t shift = result.rank() - operands[0]->rank();
    for (std::int64_t at = 0; at < operands[0]->rank(); ++at) {
      const bool named = at < static_cast<std::int64_t>(places.size());
      links.push_back({0, at, op == "broadcast" ? at + shift : named ? places[at] : result.rank()});
    }
    return links;
  }
  if (op == "reduce") return links_of_reduction(i, operands);
  if (operands.size() < 2) return std::nullopt;
  if (op == "gather" || op == "dynamic_gather") return links_of_gather(i, operands);
  return traits.op_class == OpClass::product ? std::optional(links_of_product(i, operands)) : std::nullopt;
}

std::optional<std::int64_t> infer_extent(const Instruction& i, const Traits& traits, const Type& type, std::size_t axis,
                                         Operands operands) {
  const std::string_view op = i.op();
  const auto n = static_cast<std::int64_t>(axis);
  if (op == "dynamic_iota") return operands.empty() ? std::nullopt : of_shape_operand(*operands[0], axis);
  if (op == "dynamic_broadcast_in_dim" || op == "dynamic_reshape") {
    return operands.size() < 2 ? std::nullopt : of_shape_operand(*operands[1], axis);
  }
  if (operands.empty()) return std::nullopt;
  std::vector<const Type*> types;
  for (const Tensor* operand : operands) types.push_back(&operand->type);
  if (const auto links = links_of(i, traits, types, type)) {
    const auto link = std::ranges::find(*links, n, &Link::result);
    return link == links->end() ? std::nullopt : at(types[link->operand]->dims, link->at);
  }
  if (op == "real_dynamic_slice" && operands.size() == 4) {
    const auto from = of_shape_operand(*operands[1], axis);
    const auto to = of_shape_operand(*operands[2], axis);
    const auto step = of_shape_operand(*operands[3], axis);
    if (!from || !to || !step || *step == 0) return std::nullopt;
    return std::max<std::int64_t>(0, (*to - *from + *step - 1) / *step);
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
    if (op == "custom_call" && operands.size() == 2 && operands[1]->integer()) return operands[1]->integer();
    auto k = i.find("k");
    const auto attributes = i.find("mhlo.attributes");
    if (!k && attributes) k = field(*attributes, "k");
    if (k && !integers(*k).empty()) return integers(*k)[0];
  }
  if (op == "concatenate") return of_concatenate(i, axis, operands);
  if (op == "pad") return of_pad(i, axis, operands);
  if (traits.op_class == OpClass::convolution) return of_convolution(i, axis, operands);
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
Integers fold(const Integers& a, const Integers& b, Function&& function) {
  const std::size_t size = std::max(a.size(), b.size());
  if (a.empty() || b.empty() || (a.size() != size && a.size() != 1) || (b.size() != size && b.size() != 1)) return {};
  Integers result(size);
  for (std::size_t k = 0; k < size; ++k) {
    if (!function(a[a.size() == 1 ? 0 : k], b[b.size() == 1 ? 0 : k], result[k])) return {};
  }
  return result;
}

Integers fold_binary(std::string_view op, const Integers& a, const Integers& b) {
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
Integers literal(const Instruction& i, std::size_t elements) {
  const auto text = value_of(i);
  constexpr std::size_t kMaxText = 4096;
  if (!text || text->size() > kMaxText) return {};
  Integers values;
  if (text->starts_with("dense<")) {
    const std::string_view inside = text->substr(6, text->find('>') - 6);
    if (inside.find('"') != std::string_view::npos) return {};
    values = inside == "true" ? Integers{1} : inside == "false" ? Integers{0} : integers(inside);
  } else {
    values = integers(*text);
  }
  if (values.size() == 1) values.resize(elements, values[0]);
  return values.size() == elements ? values : Integers{};
}

}  // namespace

Integers fold_integers(const Instruction& i, const Type& type, Operands operands) {
  const bool whole = type.element.kind == ElementClass::integer || type.element.kind == ElementClass::boolean;
  if (!type.tensor() || !whole || type.dynamic() || type.elements() > kMaxFolded) return {};
  const std::string_view op = i.op();
  const auto elements = static_cast<std::size_t>(type.elements());
  if (op == "constant") return literal(i, elements);
  if (operands.empty()) return {};
  const Tensor& first = *operands[0];
  if (op == "get_dimension_size") {
    const Integers dim = integers(i, {"dim", "dimension"});
    const auto extent = dim.empty() ? std::nullopt : at(first.type.dims, dim[0]);
    return extent ? Integers{*extent} : Integers{};
  }
  if (op == "shape_of") {
    return static_cast<std::size_t>(first.type.rank()) == elements && !first.type.dynamic() ? first.type.dims
                                                                                            : Integers{};
  }
  const auto index = operands.size() == 2 ? operands[1]->integer() : std::nullopt;
  if ((op == "dim" || op == "get_extent") && index) {
    const auto extent = at(op == "dim" ? first.type.dims : first.integers, *index);
    return extent ? Integers{*extent} : Integers{};
  }
  for (const Tensor* operand : operands) {
    if (operand->integers.empty()) return {};
  }
  Integers result;
  if (op == "extract" && type.rank() == 0) {
    const auto picked = index ? at(first.integers, *index) : std::nullopt;
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
    const Integers range = integers(i.unnamed().value_or(std::string_view{}));
    const Integers start = integers(i, {"start_indices"});
    const std::int64_t from = !range.empty() ? range[0] : !start.empty() ? start[0] : -1;
    if (from < 0 || static_cast<std::size_t>(from) + elements > first.integers.size()) return {};
    result.assign(first.integers.begin() + from, first.integers.begin() + from + static_cast<std::ptrdiff_t>(elements));
  } else if (operands.size() == 2) {
    result = fold_binary(op, first.integers, operands[1]->integers);
  }
  return result.size() == elements ? result : Integers{};
}

// ---- Division over devices

namespace {

class Rules {
 public:
  Rules(const Program& program, const Node& node) : program_(program), node_(node), i_(*node.instruction) {
    for (const TensorId t : node.operands) f_.operands.emplace_back(program.type(t).dims.size(), kWhole);
    for (const TensorId t : node.results) f_.results.emplace_back(program.type(t).dims.size(), kWhole);
  }

  OpFactors run() {
    if (node_.results.empty() || !apply()) f_.known = f_.operands.empty();
    f_.divides.resize(static_cast<std::size_t>(f_.count));
    return std::move(f_);
  }

 private:
  const Integers& operand(std::size_t n) const { return program_.type(node_.operands[n]).dims; }
  const Integers& result(std::size_t n = 0) const { return program_.type(node_.results[n]).dims; }

  // A dimension of an operand and one of the result; places that there are not are passed over.
  void join(std::size_t operand, std::int64_t at, std::int64_t result_at) {
    auto& labels = f_.operands[operand];
    auto& result_labels = f_.results[0];
    if (at < 0 || at >= static_cast<std::int64_t>(labels.size())) return;
    if (result_at < 0 || result_at >= static_cast<std::int64_t>(result_labels.size())) return;
    int& there = result_labels[result_at];
    if (there == kWhole) there = f_.count++;
    labels[at] = there;
  }
  // Dimensions that go together by the text; those of a broadcast that only the result has are free. False where the
  // text and the result do not match.
  bool link(const std::vector<Link>& links, bool broadcasts) {
    if (broadcasts) {
      for (int& label : f_.results[0]) label = f_.count++;
    }
    std::map<std::int64_t, int> sums;  // factors that no result has
    std::set<std::int64_t> places;
    for (const auto& [o, at, to] : links) {
      if (to >= 0) places.insert(to);
      if (at < 0 || at >= static_cast<std::int64_t>(operand(o).size())) continue;
      if (to < 0) {
        const auto [sum, fresh] = sums.try_emplace(to, f_.count);
        if (fresh) ++f_.count;
        f_.operands[o][at] = sum->second;
      } else if (to < static_cast<std::int64_t>(result().size()) && operand(o)[at] == result()[to]) {
        join(o, at, to);
      }
    }
    const auto rank = static_cast<std::int64_t>(result().size());
    if (!places.empty() && *places.rbegin() >= rank) return false;
    for (auto& labels : f_.results) {
      if (i_.op() == "reduce") labels = f_.results[0];
    }
    const bool some = broadcasts || i_.op() == "gather" || i_.op() == "dynamic_gather";  // of the result's dimensions
    return some || static_cast<std::int64_t>(places.size()) == rank;
  }

  bool apply() {
    const std::string_view op = i_.op();
    std::vector<const Type*> types;
    for (const TensorId t : node_.operands) types.push_back(&program_.type(t));
    if (const auto links = links_of(i_, node_.traits, types, program_.type(node_.results[0]))) {
      return link(*links, node_.traits.op_class == OpClass::broadcast);
    }
    if (op == "reshape" || op == "dynamic_reshape") return reshape();
    if (op == "scatter") return scatter();
    switch (node_.traits.op_class) {
      case OpClass::convolution: return convolution();
      case OpClass::elementwise: return alike({});
      case OpClass::movement: return alike(op == "reverse" ? integers(i_, {"dims", "dimensions"}) : Integers{});
      case OpClass::broadcast: return true;  // iota: no operands that count
      case OpClass::slice: return (op == "slice" || op == "dynamic_slice" || op == "real_dynamic_slice") && alike({});
      case OpClass::update: return op == "dynamic_update_slice" && alike({});
      case OpClass::sort: return alike({sort_dimension(op)});
      case OpClass::window: return window();
      case OpClass::transform:
        return last_whole(static_cast<std::int64_t>(integers(i_, {"length", "fft_length"}).size()));
      case OpClass::factorization: return last_whole(2);
      case OpClass::free: return alike({});
      default: return false;
    }
  }

  // Dimensions of the same extent at the same place go together, but for those in `whole`.
  bool alike(const Integers& whole) {
    for (std::size_t r = 0; r < f_.results.size(); ++r) {
      if (result(r).size() != result().size()) continue;
      for (std::size_t d = 0; d < result(r).size(); ++d) {
        if (contains(whole, d) || result(r)[d] != result()[d]) continue;
        if (f_.results[0][d] == kWhole) f_.results[0][d] = f_.count++;
        f_.results[r][d] = f_.results[0][d];
      }
    }
    for (std::size_t o = 0; o < f_.operands.size(); ++o) {
      if (operand(o).size() != result().size()) continue;
      for (std::size_t d = 0; d < result().size(); ++d) {
        if (operand(o)[d] == result()[d]) f_.operands[o][d] = f_.results[0][d];
      }
    }
    // What an operand has in another extent (cut, padded, put together) cannot stay divided in the result.
    for (std::size_t o = 0; o < f_.operands.size(); ++o) {
      if (operand(o).size() != result().size()) continue;
      for (std::size_t d = 0; d < result().size(); ++d) {
        const bool repeated = operand(o)[d] == 1 && node_.traits.op_class == OpClass::elementwise;
        if (operand(o)[d] != result()[d] && !repeated) unjoin(d);
      }
    }
    return true;
  }
  void unjoin(std::size_t dim) {
    const int label = f_.results[0][dim];
    if (label == kWhole) return;
    const auto clear = [&](auto& all) {
      for (auto& labels : all) std::ranges::replace(labels, label, kWhole);
    };
    clear(f_.operands);
    clear(f_.results);
  }

  bool last_whole(std::int64_t count) {
    Integers whole;
    const auto rank = static_cast<std::int64_t>(result().size());
    for (std::int64_t d = std::max<std::int64_t>(0, rank - std::max<std::int64_t>(1, count)); d < rank; ++d) {
      whole.push_back(d);
    }
    return alike(whole);
  }

  std::int64_t sort_dimension(std::string_view op) const {
    const Integers given = integers(i_, {"dimension"});
    return op == "sort" && !given.empty() && given[0] >= 0 ? given[0] : static_cast<std::int64_t>(result().size()) - 1;
  }

  // Extents are read outwards in groups of equal product; in a group the outermost extents above 1 go together.
  bool reshape() {
    if (f_.operands.empty()) return false;
    const Integers& from = operand(0);
    const Integers& to = result();
    std::size_t a = 0;
    std::size_t b = 0;
    while (a < from.size() && b < to.size()) {
      if (from[a] == 1 && to[b] != 1) {
        ++a;
        continue;
      }
      if (to[b] == 1 && from[a] != 1) {
        ++b;
        continue;
      }
      const std::size_t first_a = a;
      const std::size_t first_b = b;
      double left = static_cast<double>(from[a++]);
      double right = static_cast<double>(to[b++]);
      while (left != right && (a < from.size() || b < to.size())) {
        if (left < right && a < from.size()) {
          left *= static_cast<double>(from[a++]);
        } else if (right < left && b < to.size()) {
          right *= static_cast<double>(to[b++]);
        } else {
          return true;  // extents of 0
        }
      }
      join(0, static_cast<std::int64_t>(first_a), static_cast<std::int64_t>(first_b));
      const bool same = a == first_a + 1 && b == first_b + 1;
      f_.divides.resize(static_cast<std::size_t>(f_.count));
      f_.divides.back() = same ? 0 : std::gcd(from[first_a], to[first_b]);
    }
    return true;
  }

  bool window() {
    const Integers sizes = integers(i_, {"window_dimensions"});
    Integers whole;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] != 1) whole.push_back(static_cast<std::int64_t>(d));
    }
    return i_.op() == "reduce_window" && sizes.size() == result().size() && alike(whole);
  }

  // Rows of the updates written to rows of the first operand. A device that has some of those rows passes over the
  // updates of others (GSPMD as above).
  bool scatter() {
    if (f_.operands.size() != 3) return false;
    const std::string_view numbers = i_.find("scatter_dimension_numbers").value_or(std::string_view{});
    const Integers windows = field_integers(numbers, "update_window_dims");
    const Integers inserted = field_integers(numbers, "inserted_window_dims");
    const Integers batching = field_integers(numbers, "input_batching_dims");
    std::size_t next = 0;
    for (std::int64_t d = 0; d < static_cast<std::int64_t>(operand(0).size()); ++d) {
      if (contains(batching, d)) continue;
      if (contains(inserted, d)) {
        join(0, d, d);
        continue;
      }
      const std::int64_t from = next < windows.size() ? windows[next] : -1;
      ++next;
      if (from < 0 || from >= static_cast<std::int64_t>(operand(2).size())) continue;
      const std::int64_t window = operand(2)[from];
      const bool same = window == operand(0)[d];
      if (same || window == 1) join(0, d, d);
      if (same) join(2, from, d);
    }
    return true;
  }

  bool convolution() {
    if (f_.operands.size() < 2) return false;
    join(0, convolution_axis(i_, 0, 'b'), convolution_axis(i_, 2, 'b'));
    const Integers groups = integers(i_, {"feature_group_count"});
    const Integers batches = integers(i_, {"batch_group_count"});
    if ((!groups.empty() && groups[0] > 1) || (!batches.empty() && batches[0] > 1)) return true;
    join(1, convolution_axis(i_, 1, 'o'), convolution_axis(i_, 2, 'f'));
    // The inputs, which are summed over.
    const std::int64_t inputs[] = {convolution_axis(i_, 0, 'f'), convolution_axis(i_, 1, 'i')};
    if (std::min(inputs[0], inputs[1]) < 0) return true;
    for (const std::size_t side : {0U, 1U}) {
      if (inputs[side] < static_cast<std::int64_t>(operand(side).size())) f_.operands[side][inputs[side]] = f_.count;
    }
    ++f_.count;
    return true;
  }

  const Program& program_;
  const Node& node_;
  const Instruction& i_;
  OpFactors f_;
};

}  // namespace

bool rearranges(const Instruction& i) { return i.op() == "reshape" || i.op() == "transpose"; }

Linear linear_in(const Instruction& i, std::size_t operand) {
  const std::string_view op = i.op();
  if (op == "multiply" || (op == "divide" && operand == 0)) return Linear::alone;
  const bool sum = op == "add" || op == "subtract" || op == "negate" || op == "convert";
  return sum || rearranges(i) ? Linear::together : Linear::no;
}

OpFactors op_factors(const Program& program, const Node& node) { return Rules(program, node).run(); }

void Division::offer(const List<int>& labels, const Sharding& sharding, const Integers& dims) {
  for (std::size_t d = 0; d < std::min({labels.size(), sharding.dims.size(), dims.size()}); ++d) {
    const DeviceAxes& axes = sharding.dims[d];
    const std::int64_t parts = size_of(axes);
    if (labels[d] == kWhole || parts == 1 || parts > dims[d]) continue;
    const auto factor = static_cast<std::size_t>(labels[d]);
    if (!parts_[factor].empty() || (f_.divides[factor] > 0 && f_.divides[factor] % parts != 0)) continue;
    const bool taken = overlap(reserved_, axes) ||
                       std::ranges::any_of(parts_, [&](const DeviceAxes& other) { return overlap(other, axes); });
    if (!taken) parts_[factor] = axes;
  }
}

Sharding Division::of(const List<int>& labels) const {
  Sharding sharding;
  sharding.dims.resize(labels.size());
  for (std::size_t d = 0; d < labels.size(); ++d) {
    if (labels[d] != kWhole) sharding.dims[d] = parts_[labels[d]];
  }
  return sharding;
}

DeviceAxes Division::summands() const {
  DeviceAxes axes;
  for (std::size_t factor = 0; factor < parts_.size(); ++factor) {
    const bool kept =
        std::ranges::any_of(f_.results, [&](const List<int>& labels) { return contains(labels, factor); });
    if (!kept) append(axes, parts_[factor]);
  }
  return axes;
}

}  // namespace llmperf::program
