// Types of values: tensors of static or dynamic extents, tuples, and what has no size (tokens).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/units.h"
#include "model/quantization.h"

namespace llmperf::graph::hlo {

enum class ElementClass : unsigned char { floating, integer, boolean, complex, quantized };

// What a tensor is made of. `name` is as in the text ("bf16", "f8E4M3FN", "ui8", "complex<f32>", "!quant.uniform<…>")
// and lives as long as the program's text.
struct Element {
  std::string_view name = "f32";
  double bits = 32;             // in memory; i1 takes a byte, 4-bit types half of one
  Dtype compute = Dtype::fp32;  // the rate at which a device multiplies it
  ElementClass kind = ElementClass::floating;
  bool operator==(const Element&) const = default;
};
// Of a name without parameters; false when there is no such type.
bool parse_element(std::string_view name, Element& element);
model::ElementFormat element_format(const Element& element);

inline constexpr std::int64_t kDynamic = -1;

struct Type {
  enum class Form : unsigned char { tensor, tuple, opaque };  // opaque: tokens, and types of other dialects
  Form form = Form::opaque;
  Element element = {};
  std::vector<std::int64_t> dims = {};    // kDynamic where the text has `?`
  std::vector<std::int64_t> bounds = {};  // of dynamic extents, where the text bounds them; else empty
  std::vector<Type> members = {};         // of a tuple
  bool unranked = false;

  bool tensor() const { return form == Form::tensor; }
  bool dynamic() const;
  std::int64_t rank() const { return static_cast<std::int64_t>(dims.size()); }
  double elements() const;  // 1 of a scalar; 0 of what is no tensor
  Bytes bytes() const;      // of a tuple: of its members
  bool operator==(const Type&) const = default;
};
std::string text_of(const Type& type);  // "bf16[8,512,?]", "(f32[4], token)"

}  // namespace llmperf::graph::hlo
