// ExLlamaV2 quantises each matrix several ways and picks what meets a mean number of bits per weight (its README and
// doc/convert.md): that number holds scales and is of the layers' matrices, lm_head has its own, 6 by default. The
// token embedding stays in 16 bits, in the memory of the host.
#include "model/exl2.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"

namespace llmperf::model {
namespace {

constexpr double kFewest = 2;
constexpr double kMost = 8;
constexpr int kDefaultHead = 6;

StoredFormat packed(double bits, Dtype wide) {
  return {.bits = bits, .compute = wide, .dequant_flops = 2, .kernel = FormatKernel::gptq};
}

}  // namespace

// "4.0": a digit behind the point, and more where they are needed.
std::string Exl2::name() const {
  std::string number = fmt::format("{}", bits);
  if (number.find('.') == std::string::npos) number += ".0";
  return fmt::format("exl2-{}bpw{}", number, head == kDefaultHead ? "" : fmt::format("-h{}", head));
}

WeightScheme Exl2::scheme(Dtype wide) const {
  WeightScheme scheme = parse_weight_scheme(llmperf::name(wide), wide);
  scheme.name = name();
  scheme.linear = scheme.expert = packed(bits, wide);
  return scheme;
}

StoredFormat Exl2::head_format(Dtype wide) const { return packed(head, wide); }

std::optional<Exl2> parse_exl2(std::string_view text) {
  if (!text.starts_with("exl2-")) return std::nullopt;
  std::string_view rest = text.substr(5);
  Exl2 exl2 = {.head = kDefaultHead};
  if (const std::size_t at = rest.find("-h"); at != std::string_view::npos) {
    const std::optional<std::int64_t> head = parse_int(rest.substr(at + 2));
    if (!head) return std::nullopt;
    exl2.head = static_cast<int>(*head);
    rest = rest.substr(0, at);
  }
  if (rest.ends_with("bpw")) rest.remove_suffix(3);
  const std::optional<double> bits = parse_double(rest);
  if (!bits) return std::nullopt;
  exl2.bits = *bits;
  if (!(*bits >= kFewest && *bits <= kMost) || exl2.head < kFewest || exl2.head > kMost) {
    throw Error::bad_input(fmt::format("EXL2 has 2 to 8 bits per weight, not {}", quote(text)), "as exl2-4.0bpw");
  }
  return exl2;
}

}  // namespace llmperf::model
