#include "import/tensor.h"

#include "base/text.h"

namespace llmperf::import {
namespace {

struct NamedType {
  std::string_view name;
  double bits;
  std::optional<Dtype> dtype = std::nullopt;
};
// Without the prefixes dt_ and c10::, in small letters.
constexpr NamedType kTypes[] = {
    {"bf16", 16, Dtype::bf16},
    {"bfloat16", 16, Dtype::bf16},
    {"bfp16", 16, Dtype::bf16},
    {"float16", 16, Dtype::fp16},
    {"fp16", 16, Dtype::fp16},
    {"half", 16, Dtype::fp16},
    {"float", 32, Dtype::fp32},
    {"float32", 32, Dtype::fp32},
    {"fp32", 32, Dtype::fp32},
    {"double", 64, Dtype::fp64},
    {"float64", 64, Dtype::fp64},
    {"fp64", 64, Dtype::fp64},
    {"int8", 8, Dtype::int8},
    {"signed char", 8, Dtype::int8},
    {"char", 8, Dtype::int8},
    {"int4", 4, Dtype::int4},
    {"int32", 32, Dtype::int32},
    {"int", 32, Dtype::int32},
    {"bool", 8, Dtype::boolean},
    {"fp8", 8, Dtype::fp8},
    {"float8_e4m3fn", 8, Dtype::fp8},
    {"float8_e5m2", 8, Dtype::fp8},
    {"f8e4m3", 8, Dtype::fp8},
    {"f8e5m2", 8, Dtype::fp8},
    {"fp8_e4m3", 8, Dtype::fp8},
    {"fp8_e5m2", 8, Dtype::fp8},
    {"float8_e4m3", 8, Dtype::fp8},
    {"float8_e4m3fnuz", 8, Dtype::fp8},
    {"float8_e5m2fnuz", 8, Dtype::fp8},
    {"uint8", 8},
    {"unsigned char", 8},
    {"byte", 8},
    {"int16", 16},
    {"short", 16},
    {"short int", 16},
    {"uint16", 16},
    {"uint32", 32},
    {"int64", 64},
    {"uint64", 64},
    {"long", 64},
    {"long int", 64},
    {"complex64", 64},
};

}  // namespace

ElementType element_type(std::string_view name) {
  const std::string lower = to_lower(name);
  std::string_view text = lower;
  for (const std::string_view prefix : {"dt_", "c10::"}) {
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  }
  for (const NamedType& type : kTypes) {
    if (type.name == text) return {type.dtype, type.bits};
  }
  return {};
}

std::optional<std::int64_t> product(const Shape& shape, std::size_t from, std::size_t to) {
  std::int64_t result = 1;
  for (std::size_t i = from; i < to; ++i) {
    if (shape[i] <= 0 || shape[i] > kMostElements / result) return std::nullopt;
    result *= shape[i];
  }
  return result;
}

std::optional<std::int64_t> elements(const Tensor& tensor) {
  if (tensor.shape.empty()) return std::nullopt;
  return product(tensor.shape, 0, tensor.shape.size());
}

std::optional<Bytes> bytes(const Tensor& tensor) {
  const std::optional<std::int64_t> count = elements(tensor);
  if (!count || tensor.element.bits <= 0) return std::nullopt;
  return Bytes{static_cast<double>(*count) * tensor.element.bits / 8};
}

void make_logical(Tensor& tensor, std::string_view format) {
  Shape& s = tensor.shape;
  if (format != "FRACTAL_NZ" || s.size() < 4) return;  // with fewer dimensions it is the logical shape already
  const std::int64_t column_block = s[s.size() - 1];
  const std::int64_t row_block = s[s.size() - 2];
  const std::optional<std::int64_t> rows = product({s[s.size() - 3], row_block}, 0, 2);
  const std::optional<std::int64_t> columns = product({s[s.size() - 4], column_block}, 0, 2);
  s.resize(s.size() - 4);
  s.push_back(rows.value_or(0));
  s.push_back(columns.value_or(0));
  tensor.row_block = row_block;
  tensor.column_block = column_block;
}

}  // namespace llmperf::import
