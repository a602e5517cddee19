// What a profile makes of an op on a device, by hand: the constants beside the profile's own numbers.
#include "mapper/roofline/efficiency.h"

#include "catch.h"
#include "kernel_values.h"
#include "mapper/machine.h"
#include "mapper/roofline/step_overhead.h"

namespace llmperf::mapper::efficiency_test {
namespace {

using enum hardware::Parameter;

// An A100 whose cache holds 40 MB, or as much as a test says.
hardware::Device device_with_cache(double bytes) {
  hardware::Device device = hardware::load_device("a100-sxm-80gb");
  for (hardware::MemoryLevel& level : device.memory) {
    if (&level == device.last_level_cache()) level.capacity = Bytes{bytes};
  }
  return device;
}

OpTime time_of(const hardware::Device& device, const hardware::ParameterValues& values, const graph::Op& op) {
  hardware::RuntimeProfile profile;
  profile.values = values;
  const Machine machine(device, cost::make_cluster(device), nullptr, {}, &profile);
  return machine.time(op, machine.work(op));
}

// A kernel that reads and writes half of `bytes` each, in 16 bits.
graph::Op stream_of(double bytes) {
  return {.name = "add",
          .body = graph::Vector{.kind = graph::VectorKind::add,
                                .rows = static_cast<std::int64_t>(bytes / 4),
                                .width = 1,
                                .reads = 1,
                                .writes = 1}};
}

graph::Attention prompt_of(std::int64_t heads, std::int64_t tokens) {
  graph::Attention a;
  a.sequences = 1;
  a.q_tokens = tokens;
  a.heads = a.kv_heads = heads;
  a.qk_dim = a.v_dim = 128;
  return a;
}

TEST_CASE("ggml's kernels wait for each core that they are spread over, once a launch") {
  const hardware::Device device = device_with_cache(40e6);  // of 108 cores
  const auto taken = [&](double each, bool ggml, int launches) {
    hardware::RuntimeProfile profile;
    profile.values = values_with({{launch_core, each}});
    profile.choices.ggml = ggml;
    const Machine machine(device, cost::make_cluster(device), nullptr, {}, &profile);
    graph::Op op = stream_of(1e6);
    op.launches = launches;
    return machine.time(op, machine.work(op)).total.value;
  };
  CHECK(taken(1e-7, true, 1) - taken(1e-12, true, 1) == Approx(10.8e-6).epsilon(1e-3));
  CHECK(taken(1e-7, true, 2) - taken(1e-12, true, 2) == Approx(21.6e-6).epsilon(1e-3));
  CHECK(taken(1e-7, true, 0) == Approx(taken(1e-12, true, 0)));  // part of the kernel before it
  CHECK(taken(1e-7, false, 1) == taken(1e-12, false, 1));
}

TEST_CASE("attention's backward pass is five products over the blocks of the forward pass's two") {
  const hardware::Device device = device_with_cache(40e6);
  const hardware::ParameterValues values = values_with({{prefill_share, 0.5}, {prefill_block, 1e-6}});
  graph::Attention attention = prompt_of(32, 4096);
  const double forward = time_of(device, values, {.name = "attention", .body = attention}).total.value;
  attention.backward = true;
  CHECK(time_of(device, values, {.name = "attention", .body = attention}).total.value == Approx(5 * forward / 2));
}

TEST_CASE("a few new tokens run by CANN's kernel of decode, as long as their heads fit in a block of rows") {
  hardware::RuntimeProfile profile;
  profile.values = values_with({{decode_launch, 1e-2}});
  profile.choices.query_rows = 128;
  const hardware::Device device = device_with_cache(40e6);
  const Machine machine(device, cost::make_cluster(device), nullptr, {}, &profile);
  const auto launched = [&](std::int64_t tokens, std::int64_t context) {
    graph::Attention a = prompt_of(32, tokens);
    a.context = context;
    a.kv_heads = 8;
    const graph::Op op{.name = "attention", .body = a};
    return machine.time(op, machine.work(op)).total.value > 1e-2;
  };
  CHECK(launched(1, 1000));
  CHECK_FALSE(launched(4, 1000));
  profile.choices.attention = hardware::AttentionKernels::cann;
  CHECK(launched(32, 1000));
  CHECK_FALSE(launched(33, 1000));  // 132 rows of 4 heads each
  CHECK_FALSE(launched(4, 0));
}

TEST_CASE("heads of the width that an engine copies take a kernel more, of prompts and of new tokens") {
  hardware::RuntimeProfile profile;
  profile.values = values_with({{decode_copy, 6e-6}});
  const hardware::Device device = device_with_cache(40e6);
  const Machine machine(device, cost::make_cluster(device), nullptr, {}, &profile);
  for (const auto library : {hardware::AttentionKernels::flash3, hardware::AttentionKernels::blackwell}) {
    profile.choices.attention = library;
    for (const std::int64_t tokens : {1, 128}) {
      const auto more = [&](std::int64_t keys, std::int64_t values) {
        graph::Attention a = prompt_of(8, tokens);
        a.context = 500;
        a.qk_dim = keys;
        a.v_dim = values;
        const graph::Op op{.name = "attention", .body = a};
        const auto time = [&](std::int64_t head) {
          profile.choices.copied_head = head;
          return machine.time(op, machine.work(op)).total.value;
        };
        return time(192) - time(0);
      };
      CHECK(more(192, 192) == Approx(6e-6));
      CHECK(more(128, 128) == 0);
      CHECK(more(192, 128) == 0);  // latents of a prompt
    }
  }
}

TEST_CASE("norms are bound by the rows that they reduce, and choosing a token by its logits") {
  const hardware::Device device = device_with_cache(40e6);
  const hardware::ParameterValues values = values_with({{vector_launch, 5e-6},
                                                        {vector_reduce_row, 2e-9},
                                                        {vector_reduce_rate, 1e11},
                                                        {vector_sampling_rate, 4e9},
                                                        {vector_draw_bytes, 800}});
  const auto of = [&](graph::VectorKind kind, std::int64_t rows, std::int64_t width) {
    const graph::Op op{.name = "vector",
                       .body = graph::Vector{.kind = kind, .rows = rows, .width = width, .reads = 1, .writes = 0}};
    return time_of(device, values, op).total.value;
  };
  CHECK(of(graph::VectorKind::add_rms_norm, 2000, 5000) == Approx(5e-6 + 4e-6 + 100e-6));
  CHECK(of(graph::VectorKind::softmax, 100'000, 128) == Approx(5e-6 + 200e-6 + 128e-6));
  CHECK(of(graph::VectorKind::add, 2000, 5000) < 50e-6);
  CHECK(of(graph::VectorKind::sampling, 16, 150'000) == Approx(5e-6 + 600e-6));
  // 2.4 million logits of 800 bytes each are 1.92 GB.
  CHECK(of(graph::VectorKind::draw, 16, 150'000) == Approx(5e-6 + 1.92e9 / device.dram().bandwidth->value));
}

TEST_CASE("a product without a launch of its own is part of the kernel before it") {
  const hardware::Device device = device_with_cache(40e6);
  const hardware::ParameterValues values = values_with({{gemm_launch, 7e-6}, {vector_launch, 1e-6}});
  const auto of = [&](std::int32_t launches) {
    graph::Op op{.name = "product", .body = graph::Gemm{.m = 64, .n = 4096, .k = 4096}};
    op.launches = launches;
    return time_of(device, values, op).total.value;
  };
  CHECK(of(1) - of(0) == Approx(7e-6));
  CHECK(of(2) - of(1) == Approx(1e-6));
}

TEST_CASE("a device whose file has no cores is taken to have a hundred") {
  hardware::Device device = device_with_cache(40e6);
  device.cores = std::nullopt;
  // Blocks of attention take a millisecond to schedule: 100 fit in one round, of 101 one is left over.
  const hardware::ParameterValues values = values_with({{prefill_block, 1e-3}, {prefill_share, 1e12}});
  const auto rounds = [&](std::int64_t heads) {
    return time_of(device, values, {.name = "attention", .body = prompt_of(heads, 64)}).total.value / 1e-3;
  };
  CHECK(rounds(100) == Approx(1).epsilon(0.02));  // and Q, K, V, which are read meanwhile
  CHECK(rounds(101) == Approx(2).epsilon(0.02));
  device.cores = 101;
  CHECK(rounds(101) == Approx(1).epsilon(0.02));
}

TEST_CASE("the cache holds the traffic of a kernel whole up to half of its size and none of it from its size on") {
  const hardware::Device device = device_with_cache(40e6);
  const double bandwidth = device.dram().bandwidth->value;
  const hardware::ParameterValues values =
      values_with({{vector_memory_share, 0.5}, {vector_cached_share, 1}, {vector_element_rate, 1e30}});
  // What is held passes at the bandwidth, the rest at half of it.
  const auto times_bandwidth = [&](double bytes) {
    return time_of(device, values, stream_of(bytes)).total.value * bandwidth / bytes;
  };
  CHECK(times_bandwidth(10e6) == Approx(1));
  CHECK(times_bandwidth(20e6) == Approx(1));
  CHECK(times_bandwidth(25e6) == Approx(1.25));  // three quarters are held: 2 - 2 * 25/40
  CHECK(times_bandwidth(30e6) == Approx(1.5));   // half: 2 - 2 * 30/40
  CHECK(times_bandwidth(40e6) == Approx(2));
  CHECK(times_bandwidth(80e6) == Approx(2));
}

TEST_CASE("a kernel is bound by its launch when that is more than half of its time") {
  const hardware::Device device = device_with_cache(1);
  const hardware::ParameterValues values = values_with({{vector_launch, 10e-6}, {vector_element_rate, 1e30}});
  const double bandwidth = device.dram().bandwidth->value;
  const auto bound = [&](double streaming) { return time_of(device, values, stream_of(streaming * bandwidth)).bound; };
  CHECK(bound(9.9e-6) == Bound::launch);
  CHECK(bound(10.1e-6) == Bound::memory);
}

TEST_CASE("a collective is five calls of the host, a kernel one for each of its launches") {
  const hardware::ParameterValues values = values_with({{host_launch, 1e-6}});
  const StepOverhead host(values, hardware::Dispatch::eager, false);
  graph::Op op{
      .name = "all_reduce",
      .place = graph::Place::network,
      .body = graph::Collective{.kind = graph::CollectiveKind::all_reduce, .ranks = 8, .rows = 1, .width = 64}};
  CHECK(host.each(op).value == Approx(5e-6));
  op.overlaps = true;  // launched by the kernel that it runs beside
  CHECK(host.each(op).value == Approx(1e-6));
  graph::Op kernel = stream_of(64);
  kernel.launches = 3;
  CHECK(host.each(kernel).value == Approx(3e-6));
}

TEST_CASE("a loop over experts is the host's for every expert that a router chooses from") {
  const hardware::ParameterValues values = values_with({{host_experts, 5e-6}, {host_expert, 2e-6}});
  const StepOverhead host(values, hardware::Dispatch::eager, false);
  const graph::Op router{.name = "router", .tag = graph::Tag::router, .body = graph::Gemm{.m = 1, .n = 64, .k = 128}};
  CHECK(host.each(router).value == Approx(5e-6 + 64 * 2e-6));
}

// 4096 tokens in chunks of 64, 16 heads of 128 x 128: 2 x 4096 x 64 x (16 x 128 x 2 + 16 x 128) + 2 x 16 x 128 x 128 x
// 4096 x 3 = 9.66 GFLOP, of an A100's 312 TFLOP/s.
TEST_CASE("a recurrence in chunks reaches a share of what attention over prompts does, behind kernels of its inputs") {
  const hardware::Device device = device_with_cache(40e6);
  const auto taken = [&](double launch, double share) {
    const auto values = values_with({{prefill_share, 0.5},
                                     {scan_share, share},
                                     {scan_launch, launch},
                                     {vector_launch, 1e-6},
                                     {vector_memory_share, 1}});
    return time_of(device, values,
                   {.name = "scan",
                    .body = graph::Scan{.sequences = 1,
                                        .tokens = 4096,
                                        .heads = 16,
                                        .key_heads = 16,
                                        .key_dim = 128,
                                        .value_dim = 128,
                                        .chunk = 64}})
        .total.value;
  };
  CHECK(taken(1e-9, 0.01) == Approx(1e-6 + 9.664e9 / (312e12 * 0.5 * 0.01)).epsilon(1e-3));
  CHECK(taken(1e-9, 0.01) - taken(1e-9, 0.02) == Approx(9.664e9 / (312e12 * 0.5) * 50).epsilon(1e-3));
  CHECK(taken(4e-5, 0.01) - taken(1e-9, 0.01) == Approx(4e-5).epsilon(1e-3));
}

TEST_CASE("what the host takes for a recurrence over a prompt is the host's for every one that it launches") {
  const hardware::ParameterValues values = values_with({{host_scan, 3e-3}, {host_launch, 1e-6}});
  graph::Op scan{.name = "scan", .tag = graph::Tag::scan, .body = graph::Scan{.tokens = 100}};
  scan.launches = 6;
  CHECK(StepOverhead(values, hardware::Dispatch::eager, true).each(scan).value == Approx(3e-3 + 6e-6));
  CHECK(StepOverhead(values, hardware::Dispatch::graph, false).each(scan).value == 0);
  std::get<graph::Scan>(scan.body).tokens = 1;  // one kernel
  CHECK(StepOverhead(values, hardware::Dispatch::eager, true).each(scan).value == Approx(6e-6));
}

TEST_CASE("what an overlapped scheduler does for sequences hides behind the device") {
  const hardware::ParameterValues values = values_with({{step_decode, 1e-4}, {step_sequence, 2e-5}});
  const auto time = [&](double device, bool overlapped) {
    return StepOverhead(values, hardware::Dispatch::graph, false, overlapped).time(Seconds{device}, 10, 100).value;
  };
  CHECK(time(5e-3, false) == Approx(1e-4 + 2e-3));
  CHECK(time(5e-3, true) == Approx(1e-4));
  CHECK(time(0.5e-3, true) == Approx(1e-4 + 1.5e-3));  // the device waits for the rest
}

// 1.7 ms of an A100's 312 TFLOP/s is m n k of 265.2e9.
TEST_CASE("long products slow down by the onset, and all of them in steady load, where the profile says so") {
  const hardware::Device device = device_with_cache(40e6);
  hardware::RuntimeProfile profile;
  profile.values = values_with({{power_onset, 0.12}, {power_sustained, 1.2}, {gemm_overlap, 12}});
  const auto time = [&](const graph::OpBody& body, hardware::Power power) {
    profile.choices.power = power;
    const graph::Op op{.name = "op", .body = body};
    const Machine machine(device, cost::make_cluster(device), nullptr, {}, &profile);
    return machine.time(op, machine.work(op)).total.value;
  };
  using enum hardware::Power;
  const graph::Gemm product{.m = 6500, .n = 8000, .k = 5100, .activation = Dtype::fp16};
  CHECK(time(product, none) == Approx(1.7e-3).epsilon(1e-3));
  CHECK(time(product, short_run) == Approx(1.7e-3 * 1.06).epsilon(1e-3));
  CHECK(time(product, sustained) == Approx(1.7e-3 * 1.2 * (1 + 0.12 * 1.44 / 2.44)).epsilon(1e-3));
  graph::Gemm small = product;
  small.m = 65;  // 17 us
  CHECK(time(small, short_run) == Approx(time(small, none)).epsilon(1e-4));
  // Attention over a prompt likewise, of one new token not: its keys come from memory.
  CHECK(time(prompt_of(64, 16384), short_run) > 1.1 * time(prompt_of(64, 16384), none));
  graph::Attention decode = prompt_of(32, 1);
  decode.sequences = 512;
  decode.context = 16384;
  CHECK(time(decode, none) > 5e-3);
  CHECK(time(decode, sustained) == Approx(time(decode, none)).epsilon(1e-3));
}

// 312 TFLOP/s, and three quarters of 400 W for what 0.177 of them takes: half of the clock, the power 0.4 of that.
TEST_CASE("a board that may draw less than its clock takes multiplies at a lower one, and streams as before") {
  const hardware::Device device = device_with_cache(40e6);
  const double part = 312e12 * std::pow(0.5, 2.5) / (0.75 * 400);
  const graph::Op product{.name = "op",
                          .body = graph::Gemm{.m = 6500, .n = 8000, .k = 5100, .activation = Dtype::fp16}};
  const auto seconds = [&](const hardware::Device& on, double flops, const graph::Op& op) {
    return time_of(on, values_with({{per_watt, flops}, {gemm_overlap, 12}}), op).total.value;
  };
  CHECK(seconds(device, 1e14, product) == Approx(1.7e-3).epsilon(1e-3));
  CHECK(seconds(device, part, product) == Approx(3.4e-3).epsilon(1e-3));
  CHECK(seconds(device, 6 * part, product) == Approx(1.7e-3).epsilon(1e-3));
  CHECK(seconds(device, part, stream_of(1e9)) == seconds(device, 1e14, stream_of(1e9)));
  // A limit that a user sets takes its part of the clock that is left.
  const hardware::Device limited = hardware::with_power_limit(device, 300);
  CHECK(seconds(limited, part, product) == Approx(3.4e-3 / limited.power_limit->clock).epsilon(1e-3));
}

}  // namespace
}  // namespace llmperf::mapper::efficiency_test
