#include "replay/cpu/operation.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"

namespace llmperf::replay::cpu {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 46;  // beyond any memory, far from where sums overflow
// Copies of something tiny: more would only take time to fill.
constexpr std::int64_t kMaxCopies = 4096;

}  // namespace

std::variant<std::int64_t, Unavailable> Workshop::copies(std::int64_t asked, std::int64_t bytes,
                                                         std::int64_t others) const {
  const std::int64_t free = free_memory();
  const std::int64_t needed = std::max<std::int64_t>(asked, 1) * bytes + others;
  if (asked > kMaxCopies || needed > free) {
    const auto text = [](std::int64_t b) { return format_bytes_binary(Bytes{static_cast<double>(b)}); };
    return Unavailable{asked > kMaxCopies
                           ? fmt::format("{} copies are more than {}", asked, kMaxCopies)
                           : fmt::format("its operands take {}, and {} are free", text(needed), text(free))};
  }
  if (asked > 0 || bytes == 0) return std::max<std::int64_t>(asked, 1);
  const std::int64_t wanted = std::clamp<std::int64_t>(kRotatedCaches * last_level / bytes + 1, 2, kMaxCopies);
  return std::max<std::int64_t>(1, std::min(wanted, free / 3 / bytes));
}

std::variant<Element, Unavailable> element_of(Dtype dtype, std::string_view op) {
  if (dtype == Dtype::fp32) return Element::f32;
  if (dtype == Dtype::bf16) return Element::bf16;
  return Unavailable{fmt::format("no {} of {} here: fp32 and bf16 only", op, name(dtype))};
}

std::optional<std::int64_t> bytes_of_tensor(std::initializer_list<std::int64_t> extents, Element element) {
  std::int64_t bytes = bytes_of(element);
  for (const std::int64_t extent : extents) {
    if (extent < 1 || extent > kMaxBytes / bytes) return std::nullopt;
    bytes *= extent;
  }
  return bytes;
}

}  // namespace llmperf::replay::cpu
