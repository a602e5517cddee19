// Elements of tensors as the device stores them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "replay/ascend/cann_types.h"

namespace llmperf::replay::ascend {

// Round to nearest, ties to even; what is too large becomes infinite.
std::uint16_t to_fp16(float value);
std::uint16_t to_bf16(float value);
float from_fp16(std::uint16_t bits);
float from_bf16(std::uint16_t bits);

// Bytes of that many elements; two of int4 share one.
std::size_t stored_bytes(cann::DataType type, std::size_t count);
// Integers are rounded to the nearest; of two int4 in a byte the first has the lower half.
std::vector<std::byte> encode(std::span<const float> values, cann::DataType type);
std::vector<float> decode(std::span<const std::byte> stored, cann::DataType type);

// fp16, bf16 and fp32, which is all that ops compute in; Refusal of others, naming `op`.
cann::DataType float_type(Dtype dtype, const std::string& op);
// Without fp32 too, which kernels of large language models do not take.
cann::DataType half_type(Dtype dtype, const std::string& op);

// Of a tensor of that shape. Refusal of more than 2^32, which neither the host nor the device is asked for.
std::size_t element_count(std::initializer_list<std::int64_t> shape);

// fill_value(operand, i) * scale + offset for i < count (operands.h).
std::vector<float> filled(std::uint32_t operand, std::size_t count, double scale = 1, double offset = 0);

}  // namespace llmperf::replay::ascend
