#include "graph/hlo/type.h"

#include <fmt/format.h>

#include <algorithm>

namespace llmperf::graph::hlo {
namespace {

struct Known {
  std::string_view name;
  double bits;
  Dtype compute;
  ElementClass kind;
};
using enum ElementClass;
// Floating-point types of six bits are stored densely and multiplied at the rate of four (OCP microscaling formats).
constexpr Known kElements[] = {
    {"f64", 64, Dtype::fp64, floating},         {"f32", 32, Dtype::fp32, floating},
    {"tf32", 32, Dtype::tf32, floating},        {"f16", 16, Dtype::fp16, floating},
    {"bf16", 16, Dtype::bf16, floating},        {"f8E4M3FN", 8, Dtype::fp8, floating},
    {"f8E5M2", 8, Dtype::fp8, floating},        {"f8E4M3", 8, Dtype::fp8, floating},
    {"f8E4M3FNUZ", 8, Dtype::fp8, floating},    {"f8E5M2FNUZ", 8, Dtype::fp8, floating},
    {"f8E4M3B11FNUZ", 8, Dtype::fp8, floating}, {"f8E3M4", 8, Dtype::fp8, floating},
    {"f8E8M0FNU", 8, Dtype::fp8, floating},     {"f6E2M3FN", 6, Dtype::fp4, floating},
    {"f6E3M2FN", 6, Dtype::fp4, floating},      {"f4E2M1FN", 4, Dtype::fp4, floating},
    {"f80", 128, Dtype::fp64, floating},        {"f128", 128, Dtype::fp64, floating},
    {"i1", 8, Dtype::boolean, boolean},         {"index", 64, Dtype::int32, integer},
    {"none", 0, Dtype::boolean, integer},
};

Dtype integer_dtype(int bits) { return bits <= 4 ? Dtype::int4 : bits <= 8 ? Dtype::int8 : Dtype::int32; }

}  // namespace

bool parse_element(std::string_view name, Element& element) {
  for (const Known& known : kElements) {
    if (known.name != name) continue;
    element = {name, known.bits, known.compute, known.kind};
    return true;
  }
  // i8, si8, ui8 of any width up to 128.
  std::string_view digits = name;
  if (digits.starts_with("si") || digits.starts_with("ui")) {
    digits.remove_prefix(2);
  } else if (digits.starts_with('i') || digits.starts_with('u')) {
    digits.remove_prefix(1);
  } else {
    return false;
  }
  int bits = 0;
  if (digits.empty() || digits.size() > 3) return false;
  for (const char c : digits) {
    if (c < '0' || c > '9') return false;
    bits = 10 * bits + (c - '0');
  }
  if (bits < 1 || bits > 128) return false;
  if (bits == 1) {
    element = {name, 8, Dtype::boolean, boolean};
    return true;
  }
  // Below a byte elements are packed; others take the next power of two.
  int stored = 2;
  while (stored < bits) stored *= 2;
  element = {name, static_cast<double>(stored), integer_dtype(bits), integer};
  return true;
}

model::ElementFormat element_format(const Element& element) {
  return {.name = name(element.compute), .bits = element.bits, .block = 1};
}

bool Type::dynamic() const {
  return unranked || std::find(dims.begin(), dims.end(), kDynamic) != dims.end() ||
         std::any_of(members.begin(), members.end(), [](const Type& t) { return t.dynamic(); });
}

double Type::elements() const {
  if (!tensor()) return 0;
  double product = 1;
  for (const std::int64_t extent : dims) product *= static_cast<double>(extent);
  return product;
}

Bytes Type::bytes() const {
  Bytes sum{elements() * element.bits / 8};
  for (const Type& member : members) sum += member.bytes();
  return sum;
}

std::string text_of(const Type& type) {
  std::string text;
  switch (type.form) {
    case Type::Form::opaque: return "token";
    case Type::Form::tuple:
      for (const Type& member : type.members) text += (text.empty() ? "" : ", ") + text_of(member);
      return "(" + text + ")";
    case Type::Form::tensor: break;
  }
  if (type.unranked) return fmt::format("{}[*]", type.element.name);
  for (const std::int64_t extent : type.dims) {
    if (!text.empty()) text += ',';
    text += extent == kDynamic ? "?" : fmt::to_string(extent);
  }
  return fmt::format("{}[{}]", type.element.name, text);
}

}  // namespace llmperf::graph::hlo
