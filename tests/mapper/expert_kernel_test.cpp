// Grouped products of experts by hand, and what is around them.
#include "catch.h"
#include "hardware/device.h"
#include "kernel_values.h"
#include "mapper/machine.h"
#include "mapper/roofline/kernels.h"

namespace llmperf::mapper::expert_kernel_test {
namespace {

using enum hardware::Parameter;
using hardware::ExpertParameter;
using hardware::ParameterValues;
using Tiles = std::array<double, graph::kTileRows.size()>;

// 40 rows of 256 columns and a depth of 1,024; weights of 8 experts.
GemmCall call() {
  return {.m = 40, .n = 256, .k = 1024, .first_bytes = 81920, .second_bytes = 4194304, .result_bytes = 20480};
}
double seconds(const KernelDevice& device, const ParameterValues& v, const GemmCall& call, const Tiles& tiles,
               std::optional<FormatKernel> format = std::nullopt) {
  return expert_time(device, v, format, call, tiles).seconds;
}

TEST_CASE("grouped products run in tiles of the rows that take the least rounds") {
  ParameterValues v = values_with({{experts_product, 3e-6}, {experts_start, 1e-6}});
  // A tile of 16 rows: 2 * 16 * 128 * 1024 FLOP at a core's 10 TFLOP/s. Two columns of tiles, 10 cores.
  const double tile = 2.0 * 16 * 128 * 1024 / 1e13;
  CHECK(seconds(compute_device(), v, call(), {8, 8, 8, 8}) == Approx(3e-6 + 2 * (tile + 1e-6)));
  CHECK(seconds(compute_device(), v, call(), {5, 5, 5, 5}) == Approx(3e-6 + tile + 1e-6));
  // Four rounds of tiles of 16 rows, and one of 32.
  CHECK(seconds(compute_device(), v, call(), {20, 5, 5, 5}) == Approx(3e-6 + 2 * tile + 1e-6));
  // Where those of 32 rows are slow, one of 64.
  v[index(experts_share_32)] = 0.25;
  CHECK(seconds(compute_device(), v, call(), {20, 5, 5, 5}) == Approx(3e-6 + 4 * tile + 1e-6));
}

TEST_CASE("grouped products read the weights of active experts, rows and results once") {
  KernelDevice device = round_device();
  device.matrix = 1e30;
  const ParameterValues v = values_with({{experts_memory_share, 0.5}});
  CHECK(seconds(device, v, call(), {8, 8, 8, 8}) == Approx((81920 + 4194304 + 20480) / 0.5e12));
  GemmCall narrow = call();
  narrow.narrow_bytes = 1;
  CHECK(seconds(device, v, narrow, {8, 8, 8, 8}, FormatKernel::fp8) == Approx((40960 + 4194304 + 20480) / 1e12));
}

TEST_CASE("every format of weights has grouped products of its own") {
  ParameterValues v = values_with({{experts_product, 3e-6}});
  v[index(FormatKernel::fp8, ExpertParameter::launch)] = 5e-6;
  v[index(FormatKernel::fp8, ExpertParameter::share)] = 0.5;
  for (std::size_t i = 1; i < 4; ++i) v[index(FormatKernel::fp8, ExpertParameter::share) + i] = 0.01;
  const double tile = 2.0 * 16 * 128 * 1024 / 1e13;
  CHECK(seconds(compute_device(), v, call(), {5, 5, 5, 5}) == Approx(3e-6 + tile));
  CHECK(seconds(compute_device(), v, call(), {5, 5, 5, 5}, FormatKernel::fp8) == Approx(5e-6 + 2 * tile));
}

TEST_CASE("rows of weights that are no multiple of 16 elements are not loaded in vectors") {
  const ParameterValues v = values_with({{experts_product, 3e-6}, {experts_unaligned_share, 0.25}});
  GemmCall odd = call();
  odd.k = 232;
  const double tile = 2.0 * 16 * 128 * 232 / 1e13;
  CHECK(seconds(compute_device(), v, odd, {5, 5, 5, 5}) == Approx(3e-6 + 4 * tile));
  odd.k = 240;
  CHECK(seconds(compute_device(), v, odd, {5, 5, 5, 5}) == Approx(3e-6 + 240.0 / 232 * tile));
}

TEST_CASE("what is around the products of experts streams at a share of its own") {
  hardware::RuntimeProfile profile;
  profile.values = values_with({{experts_stream_share, 0.5}, {vector_launch, 7e-6}});
  const hardware::Device device = hardware::load_device("h100-sxm");
  const double bandwidth = device.memory.back().bandwidth->value;
  const Machine machine(device, cost::make_cluster(device), nullptr, {}, &profile);
  const auto seconds_of = [&](graph::Tag tag, std::int64_t rows, bool grouped) {
    profile.choices.grouped_experts = grouped;
    const graph::Op op{
        .name = "around", .tag = tag, .body = graph::Vector{.rows = rows, .width = 4096, .reads = 1, .writes = 1}};
    return machine.time(op, machine.work(op)).total.value;
  };
  const double stream = 2 * 2 * 1e6 * 4096 / bandwidth / 0.5;
  CHECK(seconds_of(graph::Tag::combine, 1000000, true) == Approx(stream));
  CHECK(seconds_of(graph::Tag::routing, 1000000, true) == Approx(stream));
  CHECK(seconds_of(graph::Tag::mlp_add, 1000000, true) == Approx(7e-6 + stream / 2).epsilon(0.01));
  CHECK(seconds_of(graph::Tag::routing, 1, false) == Approx(7e-6).epsilon(0.01));
}

}  // namespace
}  // namespace llmperf::mapper::expert_kernel_test
