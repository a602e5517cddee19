#include "cli/backends.h"

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "cli/values.h"
#include "replay/ascend/ascend_backend.h"
#include "replay/cpu/cpu_backend.h"
#include "replay/cpu/describe_device.h"

namespace llmperf::cli {
namespace {

constexpr std::int64_t kMaxDevice = 1023;

replay::cpu::CpuOptions cpu_options(const BackendFlags& flags) {
  using replay::cpu::Gemm;
  constexpr std::pair<const char*, Gemm> kGemms[] = {
      {"best", Gemm::best}, {"eigen", Gemm::eigen}, {"openblas", Gemm::openblas}, {"onednn", Gemm::onednn}};
  replay::cpu::CpuOptions options;
  if (!flags.threads.empty()) options.threads = static_cast<int>(int_value("--threads", flags.threads, 1, 4096));
  const auto* found =
      std::find_if(std::begin(kGemms), std::end(kGemms), [&](const auto& g) { return flags.gemm == g.first; });
  if (found == std::end(kGemms)) {
    std::vector<std::string> names;
    for (const auto& [name, gemm] : kGemms) names.emplace_back(name);
    throw Error::bad_input("--gemm: there is no " + quote(flags.gemm), name_hint(flags.gemm, names));
  }
  options.gemm = found->second;
  return options;
}

std::unique_ptr<replay::Backend> open_cpu(const BackendFlags& flags) {
  if (flags.device != "0") throw Error::bad_input("--device: there is one CPU, number 0", "leave it out");
  return replay::cpu::make_cpu_backend(cpu_options(flags));
}

std::unique_ptr<replay::Backend> open_ascend(const BackendFlags& flags) {
  if (!flags.threads.empty() || flags.gemm != "best") {
    throw Error::bad_input("--threads and --gemm are for --backend cpu", "leave them out");
  }
  return replay::ascend::make_ascend_backend(static_cast<int>(int_value("--device", flags.device, 0, kMaxDevice)));
}

struct Known {
  const char* name;
  std::unique_ptr<replay::Backend> (*open)(const BackendFlags& flags);
};
constexpr Known kBackends[] = {{"cpu", open_cpu}, {"ascend", open_ascend}};

const Known& find(const std::string& name) {
  const auto* found =
      std::find_if(std::begin(kBackends), std::end(kBackends), [&](const Known& k) { return name == k.name; });
  if (found == std::end(kBackends)) {
    throw Error::bad_input("--backend: there is no " + quote(name), name_hint(name, backend_names()));
  }
  return *found;
}

}  // namespace

const std::vector<std::string>& backend_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Known& known : kBackends) list.emplace_back(known.name);
    return list;
  }();
  return names;
}

std::unique_ptr<replay::Backend> open_backend(const BackendFlags& flags) { return find(flags.backend).open(flags); }

std::string describe_device(const BackendFlags& flags) {
  if (std::string(find(flags.backend).name) != "cpu") {
    throw Error::bad_input("--describe-device measures the CPU",
                           "llmperf list hardware names the NPUs there are files of");
  }
  return replay::cpu::describe_device(cpu_options(flags));
}

}  // namespace llmperf::cli
