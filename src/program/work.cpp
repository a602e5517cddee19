#include "program/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/integer.h"
#include "base/text.h"
#include "program/ops.h"
#include "program/uses.h"

namespace llmperf::program {
namespace {

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
    (batch ? d.batch : d.contracted)[0].push_back(static_cast<std::int64_t>(axis));
    (batch ? d.batch : d.contracted)[1].push_back(static_cast<std::int64_t>(other));
  }
  return d;
}

void check(const Module& module, const Instruction& i, const Type* const (&types)[2], const Integers (&axes)[2],
           std::string_view what) {
  if (axes[0].size() != axes[1].size()) {
    module.fail(i, fmt::format("{} and {} {} dimensions of the two operands", axes[0].size(), axes[1].size(), what));
  }
  for (std::size_t n = 0; n < axes[0].size(); ++n) {
    std::int64_t extents[2] = {};
    for (std::size_t side = 0; side < 2; ++side) {
      const std::int64_t axis = axes[side][n];
      if (axis < 0 || axis >= types[side]->rank()) {
        module.fail(i, fmt::format("{} has no dimension {} to be {}", text_of(*types[side]), axis, what));
      }
      extents[side] = types[side]->dims[axis];
    }
    if (extents[0] != extents[1]) {
      module.fail(i, fmt::format("the {} dimensions of {} and {} are {} and {} long", what, text_of(*types[0]),
                                 text_of(*types[1]), extents[0], extents[1]));
    }
  }
}

}  // namespace

Integers DotDimensions::free(int side, const Type& type) const {
  Integers free;
  for (std::int64_t axis = 0; axis < type.rank(); ++axis) {
    if (!contains(batch[side], axis) && !contains(contracted[side], axis)) free.push_back(axis);
  }
  return free;
}

DotDimensions dot_dimensions(const Instruction& i, const Type& lhs, const Type& rhs) {
  if (const auto config = i.find({"einsum_config", "config"})) {
    return einsum_dimensions(unquoted(*config), lhs, rhs);
  }
  constexpr std::string_view kBatch[] = {"lhs_batching_dimensions", "rhs_batching_dimensions"};
  constexpr std::string_view kContracted[] = {"lhs_contracting_dimensions", "rhs_contracting_dimensions"};
  DotDimensions d;
  const auto numbers = i.find({"dot_dimension_numbers", "ragged_dot_dimension_numbers"});
  const auto contracting = i.find("contracting_dims");
  const auto batching = i.find("batching_dims");
  if (numbers || contracting || batching || i.op() == "dot_general") {
    for (std::size_t side = 0; side < 2; ++side) {
      if (numbers) {
        d.batch[side] = field_integers(*numbers, kBatch[side]);
        d.contracted[side] = field_integers(*numbers, kContracted[side]);
        continue;
      }
      d.batch[side] = integer_list(batching.value_or(std::string_view{}), side);
      d.contracted[side] = integer_list(contracting.value_or(std::string_view{}), side);
      // vhlo and portable forms give each list an attribute.
      if (const auto text = i.find(kBatch[side])) d.batch[side] = integers(*text);
      if (const auto text = i.find(kContracted[side])) d.contracted[side] = integers(*text);
    }
    return d;
  }
  if (lhs.rank() > 0 && rhs.rank() > 0) {
    d.contracted[0] = {lhs.rank() - 1};
    d.contracted[1] = {std::max<std::int64_t>(0, rhs.rank() - 2)};
    for (std::int64_t axis = 0; axis < std::min(lhs.rank(), rhs.rank()) - 2; ++axis) {
      for (Integers& batch : d.batch) batch.push_back(axis);
    }
  }
  return d;
}

DotShape dot_shape(const Module& module, const Instruction& i, const Type& lhs, const Type& rhs) {
  const DotDimensions d = dot_dimensions(i, lhs, rhs);
  check(module, i, {&lhs, &rhs}, d.batch, "batch");
  check(module, i, {&lhs, &rhs}, d.contracted, "contracted");
  DotShape shape{.batch = lhs.extent(d.batch[0]),
                 .m = lhs.extent(d.free(0, lhs)),
                 .n = rhs.extent(d.free(1, rhs)),
                 .k = lhs.extent(d.contracted[0])};
  if (const auto numbers = i.find("ragged_dot_dimension_numbers")) {
    const Integers groups = field_integers(*numbers, "rhs_group_dimensions");
    for (const std::int64_t axis : groups) {
      if (axis < 0 || axis >= rhs.rank()) module.fail(i, fmt::format("{} has no dimension {}", text_of(rhs), axis));
    }
    shape.groups = std::max(1.0, rhs.extent(groups));
    shape.n /= shape.groups;
  }
  return shape;
}

// The products m k, k n and m n of the extents give m, n and k.
DotShape library_product(const Type& lhs, const Type& rhs, const Type& out) {
  DotShape s;
  for (std::int64_t axis = 0; axis + 2 < out.rank(); ++axis) s.batch *= static_cast<double>(out.dims[axis]);
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

namespace {

double product(const Integers& axes) {
  double result = 1;
  for (const std::int64_t extent : axes) result *= d(extent);
  return result;
}

// Elements that a window covers.
double window_elements(const Instruction& i) {
  const Integers window = integers(i, {"window_dimensions", "window_dims"});
  return window.empty() ? 1 : product(window);
}

// Running sums (cumsum): a window as long as its dimension that slides in from outside. Compilers make scans of them.
bool accumulates(const Program& program, const Node& node) {
  const Instruction& i = *node.instruction;
  const Integers window = integers(i, {"window_dimensions", "window_dims"});
  const Integers padding = integers(i, {"padding"});
  const Integers strides = integers(i, {"window_strides"});
  if (node.operands.empty() || padding.size() != 2 * window.size()) return false;
  const Integers& extents = program.type(node.operands[0]).dims;
  bool along = false;
  for (std::size_t axis = 0; axis < window.size() && axis < extents.size(); ++axis) {
    if (window[axis] == 1) continue;
    const bool slides = std::min(padding[2 * axis], padding[2 * axis + 1]) == 0 &&
                        std::max(padding[2 * axis], padding[2 * axis + 1]) == extents[axis] - 1;
    if (along || window[axis] != extents[axis] || !slides || (axis < strides.size() && strides[axis] != 1))
      return false;
    along = true;
  }
  return along;
}

// Extent of the dimension along which a sort, a top_k or a transform works: the last one, unless it says another.
double sorted_extent(const Instruction& i, const Type& type) {
  if (type.dims.empty()) return 1;
  const Integers dimension = integers(i, {"dimension"});
  const bool named = !dimension.empty() && dimension[0] >= 0 && dimension[0] < type.rank();
  return d(named ? type.dims[dimension[0]] : type.dims.back());
}

// n^3 / 3 of a Cholesky factorisation, n^2 m of a triangular solve, 2/3 n^3 of any other (LU), for a batch of matrices;
// 8 for every element that a tridiagonal system is solved for. LAPACK's names say which, after what may be scalars.
double factorization_operations(const Program& program, const Node& node) {
  std::vector<const Type*> matrices;
  for (const TensorId operand : node.operands) {
    if (program.type(operand).rank() >= 2) matrices.push_back(&program.type(operand));
  }
  const auto is = [name = to_lower(node.instruction->op() == "custom_call"
                                       ? target_of(*node.instruction)
                                       : node.instruction->op())](std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(words, [&](std::string_view word) { return name.find(word) != std::string::npos; });
  };
  if (is({"gtsv"})) return 8 * (node.operands.empty() ? 0 : program.type(node.operands.back()).elements());
  if (matrices.empty()) return 0;
  const double n = d(matrices[0]->dims.back());
  const double count = matrices[0]->elements() / std::max(1.0, n * n);
  if (is({"cholesky", "potrf"})) return count * n * n * n / 3;
  if (is({"triangular_solve", "triangularsolve", "trsm"}) && matrices.size() > 1) return n * matrices[1]->elements();
  return count * n * n * n * 2 / 3;
}

double result_elements(const Program& program, const Node& node) {
  return node.results.empty() ? 0 : program.type(node.results[0]).elements();
}
double operand_elements(const Program& program, const Node& node) {
  return node.operands.empty() ? 0 : program.type(node.operands[0]).elements();
}

// The operand of an update that holds the new values.
std::size_t updates_of(const Node& node) {
  if (node.instruction->op() == "scatter") return node.operands.size() - (node.operands.size() - 1) / 2;
  return 1;
}

// Of a library, whose layouts are not in the text: features are the second or the last dimension of maps; of filters
// the outputs are the first and the inputs the second or the last, or else both the last ones. The gradient of the
// input has the filter turned round, and is summed at the positions of the gradient that it is made of.
ConvolutionShape library_convolution(const Module& module, const Instruction& i, const Type& input, const Type& kernel,
                                     const Type& result) {
  const std::int64_t rank = kernel.rank();
  if (rank < 3 || input.rank() != rank || result.rank() != rank) {
    module.fail(i, fmt::format("{} and {} are no maps and filters of a convolution", text_of(input), text_of(kernel)));
  }
  const auto extent = [](const Type& type, std::int64_t axis) { return type.dims[axis]; };
  const bool turned = target_of(i).find("BackwardInput") != std::string_view::npos;
  const Type& from = turned ? result : input;
  const Type& to = turned ? input : result;
  struct MapLayout {
    std::int64_t features, outputs, inputs;
  };
  const MapLayout layouts[] = {
      {1, 0, 1}, {rank - 1, 0, rank - 1}, {rank - 1, rank - 1, rank - 2}, {1, rank - 1, rank - 2}};
  // Where several fit, filters are small and features many.
  ConvolutionShape shape;
  shape.taps = 0;
  for (const bool grouped : {false, true}) {
    for (const MapLayout& l : layouts) {
      const std::int64_t inputs = extent(kernel, l.inputs);
      const std::int64_t features = extent(from, l.features);
      const double outputs = d(extent(kernel, l.outputs));
      const double taps = kernel.elements() / std::max(1.0, outputs * d(inputs));
      if (extent(kernel, l.outputs) != extent(to, l.features) || inputs == 0 || features % inputs != 0) continue;
      if ((!grouped && features != inputs) || (shape.taps > 0 && shape.taps <= taps)) continue;
      shape = {to.elements() / std::max(1.0, outputs), outputs, d(inputs), taps};
    }
    if (shape.taps > 0) return shape;
  }
  shape = {};
  // The gradient of a filter: its pixels times the positions of the gradient.
  const auto found = std::ranges::find_if(kernel.dims, [&](std::int64_t one) { return contains(result.dims, one); });
  if (found == kernel.dims.end()) {
    module.fail(i, fmt::format("the dimensions of the convolution of {} and {} are not given", text_of(input),
                               text_of(kernel)));
  }
  shape.outputs = d(*found);
  shape.inputs = kernel.elements() / std::max(1.0, shape.outputs);
  shape.positions = result.elements() / std::max(1.0, shape.outputs);
  return shape;
}

}  // namespace

double vector_operations(const Program& program, const Node& node) {
  const double results = result_elements(program, node);
  const double operands = operand_elements(program, node);
  const double each = node.traits.operations;
  const Instruction& i = *node.instruction;
  switch (node.traits.op_class) {
    case OpClass::elementwise:
    case OpClass::random: {
      double all = 0;
      for (const TensorId result : node.results) all += program.type(result).elements();
      return (i.op() == "map" ? results : all) * each;
    }
    // Each element but the first of every result is combined with what there is (openxla/xla, hlo_cost_analysis).
    case OpClass::reduce: return std::max(0.0, operands - results) * each;
    case OpClass::window:
      if (i.op() == "select_and_scatter" && node.operands.size() > 1) {
        return program.type(node.operands[1]).elements() * window_elements(i) * each;
      }
      if (accumulates(program, node)) return results * std::ceil(std::log2(std::max(2.0, window_elements(i)))) * each;
      return results * std::max(0.0, window_elements(i) - 1) * each;
    case OpClass::update: {
      const std::size_t update = updates_of(node);
      return update < node.operands.size() ? program.type(node.operands[update]).elements() * each : 0;
    }
    case OpClass::sort: {
      if (node.operands.empty()) return 0;
      const double n = sorted_extent(i, program.type(node.operands[0]));
      return operands * std::ceil(std::log2(std::max(2.0, n))) * each;
    }
    case OpClass::transform: {
      if (node.operands.empty()) return 0;
      const Integers lengths = integers(i, {"length", "fft_length"});
      const double n = lengths.empty() ? sorted_extent(i, program.type(node.operands[0])) : product(lengths);
      return 5 * std::max(operands, results) * std::log2(std::max(2.0, n));
    }
    case OpClass::factorization: return factorization_operations(program, node);
    case OpClass::normalization: return operands * each;
    default: return 0;
  }
}

Bytes read_bytes(const Program& program, const Node& node, std::size_t operand) {
  const TensorId tensor = node.operands[operand];
  if (is_splat(program, tensor)) return {};
  const Bytes whole = program.type(tensor).bytes();
  switch (node.traits.op_class) {
    case OpClass::slice:
      if (operand == 0 && !node.results.empty()) return std::min(whole, program.type(node.results[0]).bytes());
      return whole;
    case OpClass::update: {
      const std::size_t update = updates_of(node);
      if (operand >= update || node.instruction->op() != "scatter") {
        // What is replaced is not read, unless the new values are combined with it.
        if (operand == 0) return {};
        return whole;
      }
      const bool combines = node.traits.operations > 0;
      const std::size_t inputs = (node.operands.size() - 1) / 2;
      if (operand >= inputs) return whole;
      return combines && update < node.operands.size() ? program.type(node.operands[update]).bytes() : Bytes{};
    }
    default: return whole;
  }
}

Bytes written_bytes(const Program& program, const Node& node, std::size_t result) {
  const Bytes whole = program.type(node.results[result]).bytes();
  if (node.traits.op_class != OpClass::update) return whole;
  const std::size_t update = updates_of(node);
  return update < node.operands.size() ? std::min(whole, program.type(node.operands[update]).bytes()) : whole;
}

Dtype storage_dtype(const Element& element) {
  if (bits(element.compute) == element.bits) return element.compute;
  if (element.bits >= 64) return Dtype::fp64;
  if (element.bits >= 32) return Dtype::fp32;
  if (element.bits >= 16) return Dtype::bf16;
  return element.bits >= 8 ? Dtype::int8 : Dtype::int4;
}

// As printed by the short form and by #stablehlo.conv<…>, whose raw form has an attribute for every role.
std::int64_t convolution_axis(const Instruction& i, std::size_t tensor, char letter) {
  const std::string_view text = i.find({"dim_numbers", "dimension_numbers"}).value_or(std::string_view{});
  if (text.find("raw") != std::string_view::npos) {
    constexpr std::string_view kTensors[] = {"input", "kernel", "output"};
    const std::string_view role = letter == 'b'   ? "batch_dimension"
                                  : letter == 'i' ? "input_feature_dimension"
                                  : letter == 'o' ? "output_feature_dimension"
                                  : letter == 'f' ? "feature_dimension"
                                                  : "spatial_dimensions";
    const Integers value = integers(field(text, fmt::format("{}_{}", kTensors[tensor], role)).value_or("0"));
    const std::size_t n = is_digit(letter) ? static_cast<std::size_t>(letter - '0') : 0;
    return n < value.size() ? value[n] : -1;
  }
  std::size_t at = text.find('[');
  while (tensor-- > 0 && at != std::string_view::npos) at = text.find('[', at + 1);
  if (at == std::string_view::npos) return -1;
  const std::vector<std::string_view> letters = split(text.substr(at + 1, text.find(']', at) - at - 1), ',');
  const auto found = std::ranges::find(letters, std::string_view(&letter, 1), trim);
  return found == letters.end() ? -1 : found - letters.begin();
}

namespace {

// Of positions and taps those where a tap meets an element of the input, dimension by dimension: a result o and a tap t
// for which o stride + t dilation - low is one, `spread` - 1 zeros lying between two. 0 where that takes long to count.
double taps_met(const Instruction& i, const Type& input, const Type& kernel, const Type& result) {
  constexpr std::int64_t kMost = 1 << 20;
  if (i.op() != "convolution") return 0;
  const auto window = [&](std::size_t at, const char* key, const char* generic, std::int64_t fallback) {
    const Integers list = window_integers(i, key, generic);
    return at < list.size() ? list[at] : fallback;
  };
  const auto extent = [&](const Type& type, std::size_t of, char letter) {
    const std::int64_t axis = convolution_axis(i, of, letter);
    return axis >= 0 && axis < type.rank() ? type.dims[axis] : 0;
  };
  double met = d(extent(result, 2, 'b'));
  for (std::size_t n = 0; n + 2 < kernel.dims.size(); ++n) {
    const char letter = static_cast<char>('0' + n);
    const std::int64_t taps = extent(kernel, 1, letter);
    const std::int64_t results = extent(result, 2, letter);
    const std::int64_t stride = window(n, "stride", "window_strides", 1);
    const std::int64_t spread = window(n, "lhs_dilate", "lhs_dilation", 1);
    const std::int64_t dilation = window(n, "rhs_dilate", "rhs_dilation", 1);
    const std::int64_t low = window(2 * n, "pad", "padding", 0);
    const std::int64_t elements = extent(input, 0, letter);
    if (std::min({stride, spread, dilation}) < 1 || std::max({taps, stride, spread, dilation}) > kMost) return 0;
    if (std::max({elements, low, -low}) > kMost * kMost) return 0;
    const std::int64_t reach = (elements - 1) * spread;  // of the last one
    if (spread > 1 && taps > kMost / std::max<std::int64_t>(1, results)) return 0;
    double along = 0;
    for (std::int64_t t = 0; t < taps; ++t) {
      const std::int64_t at = t * dilation - low;  // of the first result
      const std::int64_t last = reach < at ? -1 : std::min(results - 1, (reach - at) / stride);
      std::int64_t o = at < 0 ? divide_up(-at, stride) : 0;
      if (spread == 1) along += d(std::max<std::int64_t>(0, last - o + 1));
      for (; spread > 1 && o <= last; ++o) along += (at + o * stride) % spread == 0 ? 1 : 0;
    }
    met *= along;
  }
  return met;
}

}  // namespace

ConvolutionShape convolution_shape(const Module& module, const Instruction& i, const Type& input, const Type& kernel,
                                   const Type& result) {
  const std::int64_t inputs = convolution_axis(i, 1, 'i');
  const std::int64_t outputs = convolution_axis(i, 1, 'o');
  if (inputs < 0 || outputs < 0) {
    if (i.op() == "custom_call") return library_convolution(module, i, input, kernel, result);
    module.fail(i, fmt::format("the dimensions of the convolution of {} and {} are not given", text_of(input),
                               text_of(kernel)));
  }
  if (std::max(inputs, outputs) >= kernel.rank() || inputs == outputs) {
    module.fail(i, fmt::format("{} is no kernel of the dimensions {}", text_of(kernel),
                               *i.find({"dim_numbers", "dimension_numbers"})));
  }
  ConvolutionShape shape;
  shape.outputs = d(kernel.dims[outputs]);
  shape.inputs = d(kernel.dims[inputs]);
  shape.taps = kernel.elements() / std::max(1.0, shape.outputs * shape.inputs);
  shape.positions = result.elements() / std::max(1.0, shape.outputs);
  // Between the elements of a dilated input are zeros that nothing multiplies.
  shape.positions /= std::max(1.0, product(window_integers(i, "lhs_dilate", "lhs_dilation")));
  shape.met = taps_met(i, input, kernel, result);
  return shape;
}

CollectiveKind collective_kind(const Instruction& i) {
  const std::string_view op = i.op();
  if (op.starts_with("all_gather")) return CollectiveKind::all_gather;
  if (op.starts_with("reduce_scatter")) return CollectiveKind::reduce_scatter;
  if (op.find("all_to_all") != std::string_view::npos) return CollectiveKind::all_to_all;
  if (op.starts_with("collective_permute")) return CollectiveKind::send;
  if (op.starts_with("collective_broadcast")) return CollectiveKind::broadcast;
  return CollectiveKind::all_reduce;
}

std::optional<Attention> library_attention(const Program& program, const Node& node) {
  // Of queries, keys and values; behind the second dimension of one tensor all three lie side by side, or the last two.
  Integers dims[3];
  bool packed = false;
  for (std::size_t n = 0, operand = 0; n < 3; ++operand) {
    if (operand >= node.operands.size()) return std::nullopt;
    const Integers& own = program.type(node.operands[operand]).dims;
    packed = own.size() == 5 && own[2] == static_cast<std::int64_t>(3 - n);
    const std::size_t tensors = packed ? 3 - n : 1;
    Integers each = own;
    if (packed) each.erase(each.begin() + 2);
    if (each.size() != 4) return std::nullopt;
    for (std::size_t k = 0; k < tensors; ++k) dims[n++] = each;
  }
  const Integers& q = dims[0];
  const Integers& k = dims[1];
  // Heads are those that the KV heads divide, of a layout in which there are at least as many keys as queries; where
  // that holds either way, or neither, the fewer. Text that looks at pictures has fewer keys.
  const auto fits = [&](std::size_t heads, std::size_t rows, bool longer) {
    return k[heads] > 0 && q[heads] % k[heads] == 0 && k[rows] > 0 && (!longer || k[rows] >= q[rows]);
  };
  bool heads_second = false;
  if (!packed) {
    const bool longer = fits(1, 2, true) || fits(2, 1, true);
    heads_second = fits(1, 2, longer) && (!fits(2, 1, longer) || q[1] < q[2]);
  }
  const std::size_t heads = heads_second ? 1 : 2;
  const std::size_t rows = heads_second ? 2 : 1;
  if (!fits(heads, rows, false) || dims[2][heads] != k[heads] || q[3] != k[3]) return std::nullopt;
  const Dtype dtype = storage_dtype(program.type(node.operands[0]).element);
  return Attention{.sequences = q[0],
                   .q_tokens = q[rows],
                   .keys = k[rows],
                   .heads = q[heads],
                   .kv_heads = k[heads],
                   .qk_dim = q[3],
                   .v_dim = dims[2][3],
                   .backward = to_lower(target_of(*node.instruction)).find("backward") != std::string::npos,
                   .activation = dtype,
                   .cached = {model::element_format(dtype), model::element_format(dtype)}};
}

double rough_cost(const Program& program, const Node& node) {
  // What a device does of matrix products in the time of one vector operation, and of one byte (of an H100 15 and 300).
  constexpr double kPerOperation = 15;
  constexpr double kPerByte = 300;
  if (node.traits.op_class == OpClass::free) return 0;
  double bytes = 0;
  for (std::size_t n = 0; n < node.operands.size(); ++n) bytes += read_bytes(program, node, n).value;
  for (std::size_t n = 0; n < node.results.size(); ++n) bytes += written_bytes(program, node, n).value;
  double products = 0;
  if (node.operands.size() >= 2 && !node.results.empty()) {
    const Type& lhs = program.type(node.operands[0]);
    const Type& rhs = program.type(node.operands[1]);
    const Type& out = program.type(node.results[0]);
    if (node.traits.op_class == OpClass::product) {
      const DotShape s = node.instruction->op() == "custom_call"
                             ? library_product(lhs, rhs, out)
                             : dot_shape(*program.module, *node.instruction, lhs, rhs);
      products = 2 * s.batch * s.m * s.n * s.k;
    } else if (node.traits.op_class == OpClass::convolution) {
      const ConvolutionShape s = convolution_shape(*program.module, *node.instruction, lhs, rhs, out);
      products = 2 * s.outputs * s.inputs * (s.met > 0 ? s.met : s.positions * s.taps);
    } else if (node.traits.op_class == OpClass::attention) {
      if (const auto a = library_attention(program, node)) {
        products = 2 * static_cast<double>(a->sequences) * static_cast<double>(a->heads) *
                   static_cast<double>(a->q_tokens) * static_cast<double>(a->keys) *
                   static_cast<double>(a->qk_dim + a->v_dim);
      }
    }
  }
  return std::max({products, kPerOperation * vector_operations(program, node), kPerByte * bytes});
}

}  // namespace llmperf::program
