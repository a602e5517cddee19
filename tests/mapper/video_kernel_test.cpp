// Kernels of video generation by hand: strided element-wise kernels, convolutions, attention without a mask.
#include <cmath>

#include "base/error.h"
#include "base/list.h"
#include "catch.h"
#include "hardware/device.h"
#include "kernel_values.h"
#include "mapper/machine.h"
#include "mapper/roofline/efficiency.h"
#include "mapper/roofline/kernels.h"

namespace llmperf::mapper::video_kernel_test {
namespace {

using enum hardware::Parameter;

const hardware::Device& h100() {
  static const hardware::Device device = hardware::load_device("h100-sxm");
  return device;
}
hardware::RuntimeProfile pytorch() {
  return hardware::load_runtime_profile(h100(), "", hardware::UnknownRuntime::error, hardware::Workload::video);
}
double seconds(const graph::Op& op, const hardware::RuntimeProfile& profile) {
  const Machine machine(h100(), cost::make_cluster(h100()), nullptr, {}, &profile);
  return machine.time(op, machine.work(op)).total.value;
}
graph::Op vector_of(graph::Access access) {
  return {.name = "add",
          .body = graph::Vector{.kind = graph::VectorKind::add, .rows = 100'000, .width = 1152, .access = access}};
}

}  // namespace

TEST_CASE("a strided kernel is bound by its elements as well as by its bytes") {
  hardware::RuntimeProfile profile = pytorch();
  profile.values[index(vector_launch)] = 2e-6;
  profile.values[index(vector_memory_share)] = 0.5;
  profile.values[index(vector_element_rate)] = 1e11;
  // 115.2 M elements of 2 bytes, read and written, far beyond the cache: 461 MB at 1675 GB/s.
  const double bytes = 4 * 115.2e6 / 1675e9;
  CHECK(seconds(vector_of(graph::Access::dense), profile) == Approx(2e-6 + bytes));
  CHECK(seconds(vector_of(graph::Access::strided), profile) == Approx(2e-6 + 115.2e6 / 1e11));
  profile.values[index(vector_element_rate)] = 1e12;
  CHECK(seconds(vector_of(graph::Access::strided), profile) == Approx(2e-6 + bytes));
}

TEST_CASE("a strided copy counts the elements it writes") {
  hardware::RuntimeProfile profile = pytorch();
  profile.values[index(vector_launch)] = 0;
  profile.values[index(vector_element_rate)] = 1e9;
  const graph::Op op{
      .name = "copy",
      .body = graph::Copy{.read_elements = 1e6, .write_elements = 4e6, .access = graph::Access::strided}};
  CHECK(seconds(op, profile) == Approx(4e6 / 1e9));
}

TEST_CASE("a convolution reaches its share of the peak beside its traffic") {
  const auto values =
      values_with({{gemm_launch, 1e-6}, {gemm_memory_share, 0.5}, {convolution_share, 0.25}, {gemm_overlap, 2}});
  // 3 ms of operations at 25 TFLOP/s, 4 ms of traffic at 500 GB/s.
  CHECK(convolution_seconds(round_device(), values, 75e9, 2e9) == Approx(1e-6 + std::hypot(3e-3, 4e-3)));
}

TEST_CASE("blocks of attention without a mask all see every key, in heads padded to a multiple of 32") {
  const auto values = values_with({{prefill_share, 0.5}, {prefill_tail, 0.8}, {prefill_overlap, 8}});
  AttentionCall call{.sequences = 10, .queries = 256, .heads = 1, .kv_heads = 1, .qk_dim = 72, .v_dim = 72};
  call.all_keys = 300;
  // 4 blocks of 64 rows in each of 10 sequences on 10 cores; 3 steps of 128 keys; heads computed as 96.
  const double step = 2.0 * 64 * 128 * (96 + 96) / 5e12;
  CHECK(prefill_seconds(compute_device(), values, {}, call) == Approx(4 * 3 * step));
}

TEST_CASE("parameters of kernels of video generation are those their times depend on") {
  const hardware::RuntimeProfile profile = pytorch();
  const model::StoredFormat bf16;
  const graph::Op ops[] = {
      vector_of(graph::Access::dense),
      vector_of(graph::Access::strided),
      {.name = "copy",
       .body = graph::Copy{.read_elements = 1e8, .write_elements = 1e8, .access = graph::Access::strided}},
      {.name = "convolution",
       .body = graph::Convolution{.positions = 100'000,
                                  .outputs = 512,
                                  .inputs = 512,
                                  .taps = 9,
                                  .input_positions = 100'000,
                                  .weights = &bf16}},
  };
  for (const graph::Op& op : ops) {
    INFO(op.name);
    const double before = seconds(op, profile);
    for (std::size_t p = 0; p < hardware::kAllParameters; ++p) {
      hardware::RuntimeProfile changed = profile;
      changed.values[p] *= 0.7;
      if (seconds(op, changed) == before) continue;
      INFO(hardware::parameter_info(p).name);
      CHECK(depends(op, p, profile.choices));
    }
  }
  CHECK(depends(ops[1], index(vector_element_rate), profile.choices));
  CHECK_FALSE(depends(ops[0], index(vector_element_rate), profile.choices));
  CHECK(depends(ops[3], index(convolution_share), profile.choices));
  CHECK_FALSE(depends(ops[3], index(gemm_share), profile.choices));
}

TEST_CASE("a profile for video is not taken for language models, nor the other way round") {
  CHECK(pytorch().name == "pytorch");
  CHECK(pytorch().hardware == "h100-sxm");
  CHECK(hardware::load_runtime_profile(h100(), "").name == "vllm");
  CHECK_THROWS_AS(hardware::load_runtime_profile(h100(), "pytorch"), Error);
  const auto of = [](const char* name) {
    const hardware::Device device = hardware::load_device(name);
    return hardware::load_runtime_profile(device, "", hardware::UnknownRuntime::error, hardware::Workload::video);
  };
  CHECK(of("rtx4090").name == "pytorch");
  CHECK(of("rtx4090").families == std::vector<std::string>{"any"});
}

}  // namespace llmperf::mapper::video_kernel_test
