#include "mapper/roofline/dependence.h"

#include <array>
#include <string>
#include <utility>

namespace llmperf::mapper {
namespace {

// Of every parameter, the sections it belongs to.
const std::array<unsigned, hardware::kAllParameters>& table() {
  constexpr std::pair<std::string_view, unsigned> kSections[] = {
      {"gemm", kGemm | kFormat}, {"format", kFormat},         {"prefill", kPrefill},    {"decode", kDecode},
      {"vector", kVector},       {"collective", kCollective}, {"network", kCollective}, {"append", kAppend},
      {"step", kStep},           {"launch", kStep},           {"host", kStep},          {"convolution", kConvolution}};
  static const auto result = [&] {
    std::array<unsigned, hardware::kAllParameters> sections{};
    for (std::size_t i = 0; i < sections.size(); ++i) {
      const std::string& name = hardware::parameter_info(i).name;
      const std::string_view section = std::string_view(name).substr(0, name.find('.'));
      for (const auto& [known, of] : kSections) {
        if (known == section) sections[i] = of;
      }
      if (name.starts_with("format.") && name.ends_with(".host")) sections[i] = kStep;  // a cost of the host
    }
    return sections;
  }();
  return result;
}

// A library without a menu of tiles has one share.
bool dense_depends(std::size_t parameter, const hardware::KernelChoices& choices) {
  using enum hardware::Parameter;
  const bool of_tiles = parameter >= index(gemm_share_16) && parameter < index(format_overlap);
  if (of_tiles) return choices.tile_menu;
  return parameter != index(gemm_share) || !choices.tile_menu;
}

// Of a product of `rows` rows with packed weights: the parameters of the one kernel that runs (weight_kernel.cpp).
bool packed_depends(FormatKernel format, std::int64_t rows, std::size_t parameter,
                    const hardware::KernelChoices& choices) {
  using enum hardware::Parameter;
  using hardware::FormatParameter;
  const std::int64_t unpack_rows = choices.dequantise_rows[static_cast<std::size_t>(format)];
  const bool unpacks = unpack_rows > 0 && rows >= unpack_rows;
  const bool small = choices.small_rows > 0 && rows <= choices.small_rows;
  const bool large = choices.small_rows > 0 && !small;
  if (parameter == index(gemm_launch)) return true;
  if (parameter == index(dequantise_share) || parameter == index(dequantise_cached)) return unpacks;
  if (parameter == index(format_overlap)) return !unpacks && !large;
  if (parameter == index(format_small_overlap)) return !unpacks && large;
  if (parameter < hardware::kParameters) return unpacks && dense_depends(parameter, choices);
  if (parameter == index(format, FormatParameter::host)) return true;
  if (parameter == index(format, FormatParameter::memory_share)) return !unpacks;
  if (parameter == index(format, FormatParameter::share)) return !unpacks && !small;
  return parameter == index(format, FormatParameter::small_share) && !unpacks && small;
}

// What convolutions share with products (convolution_seconds in gemm_kernel.cpp).
bool of_convolution(std::size_t parameter) {
  using enum hardware::Parameter;
  return parameter == index(gemm_launch) || parameter == index(gemm_memory_share) || parameter == index(gemm_overlap);
}

bool is_strided(const graph::Op& op) {
  if (const auto* v = std::get_if<graph::Vector>(&op.body)) return v->access == graph::Access::strided;
  const auto* copy = std::get_if<graph::Copy>(&op.body);
  return copy && copy->access == graph::Access::strided;
}

}  // namespace

unsigned sections_of(const graph::Op& op) {
  if (op.place == graph::Place::host || op.place == graph::Place::link) return 0;
  unsigned result = op.launches > 1 ? kVector : 0U;
  if (const auto* gemm = std::get_if<graph::Gemm>(&op.body)) {
    result |= gemm->weights && gemm->weights->kernel ? kFormat : kGemm;
  } else if (const auto* attention = std::get_if<graph::Attention>(&op.body)) {
    result |= attention->q_tokens == 1 && attention->context > 0 ? kDecode : kPrefill;
  } else if (std::holds_alternative<graph::Convolution>(op.body)) {
    result |= kConvolution | kGemm;
  } else if (std::holds_alternative<graph::Collective>(op.body)) {
    result |= kCollective;
  } else if (const auto* copy = std::get_if<graph::Copy>(&op.body); copy && copy->to_cache) {
    result |= kAppend | kVector;
  } else if (!std::holds_alternative<graph::Overhead>(op.body)) {
    result |= kVector;
  }
  return result;
}

bool depends(const graph::Op& op, unsigned sections, std::size_t parameter, const hardware::KernelChoices& choices) {
  if ((table()[parameter] & sections) == 0) return false;
  const auto* gemm = std::get_if<graph::Gemm>(&op.body);
  const bool of_format = parameter >= hardware::kParameters;
  const bool of_product = of_format || (table()[parameter] & (kGemm | kFormat)) != 0;
  if (parameter == index(hardware::Parameter::vector_element_rate) && !is_strided(op)) return false;
  if (std::holds_alternative<graph::Convolution>(op.body) && of_product) return of_convolution(parameter);
  if (gemm == nullptr || !of_product) return !of_format;  // beside products: the kernels that follow one
  if (gemm->weights && gemm->weights->kernel) {
    return packed_depends(*gemm->weights->kernel, gemm->m, parameter, choices);
  }
  return !of_format && dense_depends(parameter, choices);
}

bool is_of_step(std::size_t parameter) { return (table()[parameter] & kStep) != 0; }

std::vector<std::size_t> parameters_of(const graph::Op& op, const hardware::KernelChoices& choices) {
  const unsigned sections = sections_of(op);
  std::vector<std::size_t> result;
  for (std::size_t p = 0; p < hardware::kAllParameters; ++p) {
    if (depends(op, sections, p, choices)) result.push_back(p);
  }
  return result;
}

}  // namespace llmperf::mapper
