#include "replay/ascend/describe.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"

namespace llmperf::replay::ascend {
namespace {

// Below it a 910B4 is the one of 32 GB, above it that of 64 GB.
constexpr std::int64_t kBetweenVariants = std::int64_t{48} << 30U;

std::optional<std::int64_t> capability(const cann::Functions& cann, int device, cann::DeviceInfo info) {
  std::int64_t value = 0;
  if (cann.aclGetDeviceCapability == nullptr ||
      cann.aclGetDeviceCapability(static_cast<std::uint32_t>(device), info, &value) != cann::kSuccess || value <= 0) {
    return std::nullopt;
  }
  return value;
}

// What its installer noted beside the folder of libraries: "version=8.1.RC1".
std::optional<std::string> installed_version(const std::vector<std::string>& libraries) {
  if (libraries.empty()) return std::nullopt;
  std::error_code ignored;
  const auto library = std::filesystem::canonical(libraries.front(), ignored);
  std::ifstream notes(library.parent_path().parent_path() / "ascend_toolkit_install.info");
  constexpr std::string_view kKey = "version=";
  for (std::string line; std::getline(notes, line);) {
    if (line.starts_with(kKey)) return std::string(trim(line.substr(kKey.size())));
  }
  return std::nullopt;
}

}  // namespace

NpuFacts read_facts(const cann::Functions& cann, int device) {
  NpuFacts facts;
  const char* soc = cann.aclrtGetSocName();
  if (soc == nullptr) throw Error::failed("aclrtGetSocName failed: it knows no chip");
  facts.soc = soc;
  facts.cann_version = installed_version(cann.libraries);
  facts.cube_cores = capability(cann, device, cann::DeviceInfo::ai_cores);
  facts.vector_cores = capability(cann, device, cann::DeviceInfo::vector_cores);
  facts.l2_bytes = capability(cann, device, cann::DeviceInfo::l2_size);
  std::size_t free = 0;
  std::size_t total = 0;
  if (cann.aclrtGetMemInfo != nullptr && cann.aclrtGetMemInfo(cann::MemAttr::hbm, &free, &total) == cann::kSuccess &&
      total > 0) {
    facts.hbm_bytes = static_cast<std::int64_t>(total);
  }
  std::int32_t major = 0;
  std::int32_t minor = 0;
  std::int32_t patch = 0;
  if (cann.aclrtGetVersion != nullptr && cann.aclrtGetVersion(&major, &minor, &patch) == cann::kSuccess) {
    facts.runtime_version = fmt::format("{}.{}.{}", major, minor, patch);
  }
  std::uint32_t devices = 0;
  cann::check(cann, cann.aclrtGetDeviceCount(&devices), "aclrtGetDeviceCount");
  facts.devices = static_cast<int>(devices);
  return facts;
}

std::string device_name(const std::string& soc, std::optional<std::int64_t> hbm_bytes) {
  const std::string lower = to_lower(soc);
  constexpr std::string_view kPrefix = "ascend";
  if (!lower.starts_with(kPrefix)) return lower;
  const std::string chip = lower.substr(kPrefix.size());
  if (chip == "910b4") return hbm_bytes.value_or(0) > kBetweenVariants ? "ascend-910b4-1" : "ascend-910b4";
  if (chip.starts_with("310p")) return "ascend-310p";
  // "910B" without a number is a bin of the first generation, as 910A, 910ProA, 910ProB and 910PremiumA are.
  if (chip == "910" || chip == "910a" || chip == "910b" || chip.starts_with("910pr")) return "ascend-910a";
  return "ascend-" + chip;
}

Description describe(const cann::Functions& cann, const NpuFacts& facts, int device) {
  Description description;
  description.backend = "ascend";
  description.device = device_name(facts.soc, facts.hbm_bytes);
  description.title = "Huawei " + facts.soc;
  const auto add = [&](const char* key, std::string value) { description.facts.emplace_back(key, std::move(value)); };
  add("soc", facts.soc);
  add("device", fmt::format("{} of {}", device, facts.devices));
  if (facts.cube_cores) add("cube cores", std::to_string(*facts.cube_cores));
  if (facts.vector_cores) add("vector cores", std::to_string(*facts.vector_cores));
  if (facts.l2_bytes) add("L2", format_bytes_binary(Bytes{static_cast<double>(*facts.l2_bytes)}));
  if (facts.hbm_bytes) add("HBM", format_bytes_binary(Bytes{static_cast<double>(*facts.hbm_bytes)}));
  if (facts.cann_version) add("CANN", *facts.cann_version);
  if (facts.runtime_version) add("AscendCL", *facts.runtime_version);
  add("libraries", join(cann.libraries, ", "));
  if (!cann.missing.empty()) add("missing functions", join(cann.missing, ", "));
  return description;
}

}  // namespace llmperf::replay::ascend
