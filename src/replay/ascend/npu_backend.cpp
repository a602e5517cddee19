#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "replay/ascend/ascend_backend.h"

namespace llmperf::replay::ascend {
namespace {

// Below it a 910B4 is the one of 32 GB, above it that of 64 GB.
constexpr std::int64_t kBetweenVariants = std::int64_t{48} << 30U;

std::optional<std::int64_t> capability(const cann::Functions& cann, int device, cann::DeviceInfo info) {
  std::int64_t value = 0;
  if (!cann.aclGetDeviceCapability ||
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
  const char* soc = cann.aclrtGetSocName();
  if (soc == nullptr) throw Error::failed("aclrtGetSocName failed: it knows no chip");
  std::uint32_t devices = 0;
  cann::call(cann, cann.aclrtGetDeviceCount, &devices);
  NpuFacts facts{.l2_bytes = capability(cann, device, cann::DeviceInfo::l2_size), .devices = static_cast<int>(devices)};
  Description& d = facts.description;
  d.backend = "ascend";
  d.title = fmt::format("Huawei {}", soc);
  const auto add = [&](const char* key, std::string value) { d.facts.emplace_back(key, std::move(value)); };
  const auto size = [](std::int64_t bytes) { return format_bytes_binary(Bytes{static_cast<double>(bytes)}); };
  add("soc", soc);
  add("device", fmt::format("{} of {}", device, devices));
  for (const auto& [key, info] : {std::pair{"cube cores", cann::DeviceInfo::ai_cores},
                                  std::pair{"vector cores", cann::DeviceInfo::vector_cores}}) {
    if (const auto cores = capability(cann, device, info)) add(key, std::to_string(*cores));
  }
  if (facts.l2_bytes) add("L2", size(*facts.l2_bytes));
  std::optional<std::int64_t> hbm_bytes;
  std::size_t free = 0;
  std::size_t total = 0;
  if (cann.aclrtGetMemInfo && cann.aclrtGetMemInfo(cann::MemAttr::hbm, &free, &total) == cann::kSuccess && total > 0) {
    hbm_bytes = static_cast<std::int64_t>(total);
    add("HBM", size(*hbm_bytes));
  }
  d.device = device_name(soc, hbm_bytes);
  if (auto version = installed_version(cann.libraries)) add("CANN", *version);
  std::int32_t major = 0;
  std::int32_t minor = 0;
  std::int32_t patch = 0;
  if (cann.aclrtGetVersion && cann.aclrtGetVersion(&major, &minor, &patch) == cann::kSuccess) {
    add("AscendCL", fmt::format("{}.{}.{}", major, minor, patch));
  }
  add("libraries", join(cann.libraries, ", "));
  if (!cann.missing.empty()) add("missing functions", join(cann.missing, ", "));
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

namespace {

constexpr Seconds kWarmUp{0.05};
constexpr std::chrono::milliseconds kIdle{500};                   // after which the device is taken to have cooled down
constexpr std::int64_t kLargestCache = std::int64_t{192} << 20U;  // of a 910B, where the device does not say

}  // namespace

NpuBackend::NpuBackend(std::shared_ptr<const cann::Functions> cann, int device, Seconds warm_up, std::int64_t page)
    : cann_(std::move(cann)),
      runtime_(*cann_),
      device_(*cann_, device),
      facts_(read_facts(*cann_, device)),
      warm_up_(warm_up),
      page_(page) {}

NpuBackend::~NpuBackend() = default;

std::unique_ptr<Prepared> NpuBackend::make(const measure::OpRow& row, std::int64_t copies) {
  const Rotation rotation(copies, facts_.l2_bytes.value_or(kLargestCache));
  if (const auto* s = std::get_if<measure::CollectiveShape>(&row.shape)) {
    require_collective(*cann_, *s, row.dtype);
    return make_collective(group(s->ranks), *s, row.dtype);
  }
  std::unique_ptr<Part> part;
  if (const auto* s = std::get_if<measure::GemmShape>(&row.shape); s && s->ranks > 1) {
    require_matmul_all_reduce(*cann_, *s, row.dtype);
    return make_matmul_all_reduce(group(s->ranks), *s, row.dtype);
  }
  if (const auto* s = std::get_if<measure::GemmShape>(&row.shape)) {
    part = make_gemm(device_, *s, row.dtype, rotation);
  } else if (const auto* a = std::get_if<measure::AttentionShape>(&row.shape)) {
    part = make_attention(device_, *a, row.dtype, rotation, page_);
  } else if (const auto* e = std::get_if<measure::ExpertsShape>(&row.shape)) {
    part = make_experts(device_, *e, row.dtype, rotation);
  } else if (const auto* v = std::get_if<measure::VectorShape>(&row.shape)) {
    part = make_vector(device_, *v, row.dtype);
  } else if (const auto* g = std::get_if<measure::GatherShape>(&row.shape)) {
    part = make_gather(device_, *g, row.dtype, rotation);
  } else if (const auto* c = std::get_if<measure::CacheShape>(&row.shape)) {
    part = make_cache_write(device_, *c, row.dtype);
  }
  require(part != nullptr, fmt::format("the ascend backend does not replay '{}'", row.op));
  return std::make_unique<Op>(std::move(part));
}

RankGroup& NpuBackend::group(std::int64_t ranks) {
  const int present = facts_.devices - device_.id();
  require(ranks <= present, fmt::format("{} ranks need {} NPUs from number {} on, and there are {}", ranks, ranks,
                                        device_.id(), present));
  const int size = static_cast<int>(ranks);
  std::unique_ptr<RankGroup>& found = groups_[size];
  if (!found) found = std::make_unique<RankGroup>(device_, size);
  return *found;
}

RankGroup* NpuBackend::widest(std::span<Op* const> sequence) {
  RankGroup* found = nullptr;
  for (const Op* op : sequence) {
    if (op->group == nullptr) continue;
    if (found != nullptr && found != op->group) {
      throw Error::failed(fmt::format("collectives of {} and of {} ranks cannot be replayed in one sequence",
                                      found->size(), op->group->size()));
    }
    found = op->group;
  }
  return found;
}

Timing NpuBackend::execute(std::span<Op* const> sequence, std::int64_t passes, bool graphs) {
  if (RankGroup* ranks = widest(sequence)) return time_on_ranks(*ranks, sequence, passes);
  return time_on_device(device_, sequence, passes, graphs);
}

void NpuBackend::warm(std::span<Op* const> sequence) {
  const auto now = std::chrono::steady_clock::now();
  const bool cold = !last_run_ || now - *last_run_ > kIdle;
  std::int64_t passes = 1;
  constexpr std::int64_t kMostPasses = 4096;
  Seconds spent = execute(sequence, passes, false).seconds;
  while (cold && spent < warm_up_ && passes < kMostPasses) {
    passes *= 2;
    spent += execute(sequence, passes, false).seconds;
  }
}

Seconds NpuBackend::run(std::span<Prepared* const> sequence, std::int64_t passes) {
  std::vector<Op*> ops;
  for (Prepared* prepared : sequence) {
    ops.push_back(dynamic_cast<Op*>(prepared));
    if (ops.back() == nullptr) throw Error::failed("an op was prepared by another backend than it is run on");
  }
  if (ops.empty() || passes <= 0) return Seconds{0};
  warm(ops);
  const Timing timing = execute(ops, passes, true);
  ran_as_graph_ = timing.graph;
  last_run_ = std::chrono::steady_clock::now();
  return timing.seconds;
}

std::vector<float> NpuBackend::result(Prepared& prepared) {
  auto& op = dynamic_cast<Op&>(prepared);
  const auto fill_again = [&] {
    for (const auto& part : op.parts) part->fill_again();
  };
  fill_again();
  Op* const sequence[] = {&op};
  execute(sequence, 1, false);
  std::vector<float> values = op.parts.front()->read();
  fill_again();
  return values;
}

std::unique_ptr<Backend> make_ascend_backend(int device, std::int64_t page) {
  return std::make_unique<NpuBackend>(cann::load(cann::library_folders()), device, kWarmUp, page);
}

}  // namespace llmperf::replay::ascend
