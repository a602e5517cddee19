#include "replay/cpu/cpu_backend.h"

#include <Eigen/src/Core/util/Macros.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "replay/cpu/operation.h"

namespace llmperf::replay::cpu {
namespace {

std::string binary(std::int64_t bytes) { return format_bytes_binary(Bytes{static_cast<double>(bytes)}); }

// Dispatches on the op's shape.
struct Maker {
  const Workshop& shop;
  Dtype dtype;
  std::int64_t copies;
  Operated operator()(const measure::GemmShape& s) const { return make_gemm(shop, dtype, s, copies); }
  Operated operator()(const measure::AttentionShape& s) const { return make_attention(shop, dtype, s, copies); }
  Operated operator()(const measure::LatentShape& s) const { return make_latent(shop, dtype, s, copies); }
  Operated operator()(const measure::ExpertsShape& s) const { return make_experts(shop, dtype, s, copies); }
  Operated operator()(const measure::VectorShape& s) const { return make_vector(shop, dtype, s); }
  Operated operator()(const measure::GatherShape& s) const { return make_gather(shop, dtype, s, copies); }
  Operated operator()(const measure::CacheShape& s) const { return make_kv_write(shop, dtype, s, copies); }
  Operated operator()(const measure::ScanShape& s) const { return make_scan(shop, dtype, s, copies); }
  Operated operator()(const measure::CollectiveShape& s) const { return make_collective(shop, dtype, s); }
  Operated operator()(const measure::TransferShape&) const { throw Unavailable{"the device is the host"}; }
};

// One place of a sequence: its op, and which of the op's executions in a pass it is.
struct Step {
  Operation* op;
  std::int64_t first;  // turn in the first pass
  std::int64_t each;   // executions of the op per pass
};

std::vector<Step> steps_of(std::span<Prepared* const> sequence) {
  std::vector<Step> steps;
  for (Prepared* prepared : sequence) {
    auto* op = dynamic_cast<Operation*>(prepared);
    if (op == nullptr) throw Error::failed("an op was prepared by another backend than it is run on");
    const auto before = std::count_if(steps.begin(), steps.end(), [&](const Step& step) { return step.op == op; });
    steps.push_back({op, op->turn() + before, 0});
  }
  for (Step& step : steps) {
    step.each = std::count_if(steps.begin(), steps.end(), [&](const Step& other) { return other.op == step.op; });
  }
  return steps;
}

class CpuBackend final : public Backend {
 public:
  CpuBackend(const CpuOptions& options, Isa isa)
      : isa_(isa),
        gemm_(options.gemm),
        machine_(read_machine()),
        pool_(processors_for(options.threads, machine_.processors)) {
    std::string why_not;
    if (gemm_ == Gemm::onednn && onednn_name(why_not).empty()) throw Error::failed("no oneDNN: " + why_not);
    shop_ = {.kernels = &kernels(isa),
             .gemm = gemm_,
             .pool = &pool_,
             .scratch = &scratch_,
             .last_level = last_level_bytes(machine_)};
  }

  Description describe() const override;

  Seconds run(std::span<Prepared* const> sequence, std::int64_t passes) override {
    std::vector<Step> steps = steps_of(sequence);
    using Clock = std::chrono::steady_clock;
    Clock::time_point start;
    Clock::time_point end;
    pool_.run([&](const Team& team) {
      for (std::int64_t pass = -1; pass < passes; ++pass) {  // -1 warms up
        if (pass == 0 && team.thread == 0) start = Clock::now();
        for (const Step& step : steps) {
          step.op->execute(team, step.first + (pass + 1) * step.each);
          team.wait();
        }
      }
      if (team.thread == 0) end = Clock::now();
    });
    for (const Step& step : steps) step.op->advance(passes + 1);
    for (const Step& step : steps) check(*step.op);
    return Seconds{std::chrono::duration<double>(end - start).count()};
  }

  std::vector<float> result(Prepared& prepared) override {
    Prepared* const one[] = {&prepared};
    auto& op = dynamic_cast<Operation&>(prepared);
    op.restore();
    run(one, 0);  // the pass that warms up
    return op.read();
  }

 private:
  std::unique_ptr<Prepared> make(const measure::OpRow& op, std::int64_t copies) override {
    return std::visit(Maker{shop_, op.dtype, copies}, op.shape);
  }

  static void check(const Operation& op) {
    if (const std::string failure = op.failure(); !failure.empty()) throw Error::failed(failure);
  }

  Isa isa_;
  Gemm gemm_;
  Machine machine_;
  ThreadPool pool_;
  Scratch scratch_;
  Workshop shop_;
};

Description CpuBackend::describe() const {
  Description d;
  d.backend = "cpu";
  d.device = device_name(machine_.model);
  const char* const plural = pool_.threads() == 1 ? "" : "s";
  d.title = fmt::format("{}, {} thread{}", machine_.model, pool_.threads(), plural);
  d.facts.emplace_back("processor", machine_.model);
  d.facts.emplace_back("processors", fmt::format("{}", machine_.processors.size()));
  d.facts.emplace_back("threads", fmt::format("{}", pool_.threads()));
  d.facts.emplace_back("instruction set", name(isa_));
  for (const CacheLevel& cache : machine_.caches) {
    d.facts.emplace_back(
        fmt::format("L{} cache", cache.level),
        cache.instances > 1 ? fmt::format("{} x {}", cache.instances, binary(cache.bytes)) : binary(cache.bytes));
  }
  d.facts.emplace_back("memory", binary(machine_.memory));
  std::string why_not;
  const std::string onednn = gemm_ == Gemm::eigen ? "" : onednn_name(why_not);
  const std::string eigen =
      fmt::format("Eigen {}.{}.{} ({})", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION, name(isa_));
  d.facts.emplace_back("products", onednn.empty() ? eigen : onednn);
  utsname system = {};
  if (uname(&system) == 0) d.facts.emplace_back("kernel", fmt::format("{} {}", system.sysname, system.release));
  return d;
}

}  // namespace

std::vector<int> processors_for(int threads, const std::vector<int>& available) {
  if (threads < 0) throw Error::bad_input(fmt::format("{} threads", threads), "0 means one per processor");
  if (threads > static_cast<int>(available.size())) {
    throw Error::bad_input(fmt::format("{} threads on {} processors", threads, available.size()),
                           "a thread that waits for a processor would be timed too");
  }
  const auto count = threads == 0 ? available.size() : static_cast<std::size_t>(threads);
  return {available.begin(), available.begin() + static_cast<std::ptrdiff_t>(count)};
}

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options, Isa isa) {
  return std::make_unique<CpuBackend>(options, isa);
}

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) {
  return make_cpu_backend(options, supported_isas().back());
}

}  // namespace llmperf::replay::cpu
