// What a fit may leave alone: a parameter that an op is said not to depend on does not change its time.
#include "base/list.h"
#include "catch.h"
#include "hardware/device.h"
#include "kernel_values.h"
#include "mapper/machine.h"
#include "mapper/roofline/efficiency.h"

namespace llmperf::mapper::dependence_test {
namespace {

std::vector<graph::Op> products(const model::StoredFormat& packed) {
  std::vector<graph::Op> ops;
  for (const std::int64_t rows : {1, 8, 9, 33, 64, 300, 2000}) {
    for (const model::StoredFormat* weights : {&packed, static_cast<const model::StoredFormat*>(nullptr)}) {
      for (const std::int32_t launches : {1, 3}) {
        graph::Op op;
        op.launches = launches;
        op.body = graph::Gemm{.m = rows, .n = 4096, .k = 2048, .activation = Dtype::fp16, .weights = weights};
        ops.push_back(op);
      }
    }
  }
  return ops;
}

TEST_CASE("a parameter that a product does not depend on does not change its time") {
  int told_apart = 0;
  for (const hardware::RuntimeProfile& shipped : hardware::all_runtime_profiles()) {
    if (shipped.choices.tile_mappings) continue;  // mapped, and searched for anew with other values
    const hardware::Device device = hardware::load_device(shipped.hardware.empty() ? "rtx4090" : shipped.hardware);
    hardware::RuntimeProfile profile = shipped;
    const Machine machine(device, cost::make_cluster(device), nullptr, {}, &profile);
    for (std::size_t format = 0; format < kFormatKernels; ++format) {
      const model::StoredFormat packed{.bits = 4.5, .kernel = static_cast<FormatKernel>(format)};
      for (const graph::Op& op : products(packed)) {
        const cost::Work work = machine.work(op);
        const std::vector<std::size_t> own = parameters_of(op, profile.choices);
        const double before = machine.time(op, work).total.value;
        const auto changes = [&] { return machine.time(op, work).total.value != before; };
        // All at once, each by a factor of its own; which of them it was is asked only where the time changes.
        for (std::size_t p = 0; p < hardware::kAllParameters; ++p) {
          if (!contains(own, p)) profile.values[p] *= 0.7 + 1e-4 * static_cast<double>(p);
        }
        const bool changed = changes();
        profile.values = shipped.values;
        ++told_apart;
        for (std::size_t p = 0; changed && p < hardware::kAllParameters; ++p) {
          if (contains(own, p)) continue;
          profile.values[p] *= 0.7;
          if (changes()) FAIL(hardware::parameter_info(p).name);
          profile.values[p] = shipped.values[p];
        }
        CHECK_FALSE(changed);
      }
    }
  }
  CHECK(told_apart > 0);
}

std::vector<graph::Op> attentions() {
  std::vector<graph::Op> ops;
  const auto add = [&](graph::Attention a) {
    for (const double bits : {16.0, 8.0}) {
      a.cached = {{.bits = bits}, {.bits = bits}};
      ops.push_back({.name = "attention", .body = a});
    }
  };
  for (const std::int64_t queries : {1, 4, 200}) {
    for (const std::int64_t context : {0, 5000}) {
      for (const std::int64_t sequences : {1, 100}) {
        graph::Attention a{
            .sequences = sequences, .q_tokens = queries, .context = context, .heads = 32, .window = std::nullopt};
        a.kv_heads = 8;
        a.qk_dim = a.v_dim = 128;
        add(a);
        a.window = 1000;
        add(a);
        a.window = std::nullopt;
        a.kv_heads = 32;
        a.qk_dim = 192;
        add(a);
        a.kv_heads = 1;
        a.qk_dim = 576;
        a.v_dim = 512;
        a.shared_kv = true;
        add(a);
      }
    }
  }
  return ops;
}

TEST_CASE("attention depends on the parameters of the kernel that runs") {
  const hardware::Device device = hardware::load_device("h100-sxm");
  for (const auto kernels :
       {hardware::AttentionKernels::flash3, hardware::AttentionKernels::blackwell, hardware::AttentionKernels::cann}) {
    hardware::RuntimeProfile profile = hardware::all_runtime_profiles().front();
    for (std::size_t p = 0; p < hardware::kAllParameters; ++p) profile.values[p] = hardware::parameter_info(p).initial;
    profile.choices.attention = kernels;
    const hardware::ParameterValues initial = profile.values;
    const Machine machine(device, cost::make_cluster(device), nullptr, {}, &profile);
    std::vector<bool> used(hardware::kAllParameters);
    for (const graph::Op& op : attentions()) {
      const cost::Work work = machine.work(op);
      const std::vector<std::size_t> own = parameters_of(op, profile.choices);
      const double before = machine.time(op, work).total.value;
      for (std::size_t p = 0; p < hardware::kAllParameters; ++p) {
        profile.values[p] *= 0.7;
        const bool changed = machine.time(op, work).total.value != before;
        profile.values[p] = initial[p];
        used[p] = used[p] || changed;
        if (changed && !contains(own, p)) FAIL(hardware::parameter_info(p).name);
      }
    }
    using hardware::Parameter;
    CHECK(used[index(Parameter::latent_share)]);
    CHECK(used[index(Parameter::prefill_fill)] == (kernels == hardware::AttentionKernels::cann));
    if (kernels == hardware::AttentionKernels::cann) continue;
    for (std::size_t p = index(Parameter::latent_launch); p <= index(Parameter::latent_token); ++p) CHECK(used[p]);
    for (const Parameter p :
         {Parameter::prefill_exponential_rate, Parameter::prefill_narrow_share, Parameter::prefill_quantise,
          Parameter::decode_sequence, Parameter::decode_window, Parameter::decode_quantise, Parameter::decode_split}) {
      CHECK(used[index(p)]);
    }
    for (const Parameter p : {Parameter::decode_pack, Parameter::decode_copy}) CHECK_FALSE(used[index(p)]);
  }
}

TEST_CASE("experts depend on the parameters of their grouped kernels") {
  using hardware::ExpertParameter;
  using hardware::Parameter;
  const hardware::Device device = hardware::load_device("h100-sxm");
  hardware::RuntimeProfile profile = hardware::all_runtime_profiles().front();
  for (std::size_t p = 0; p < hardware::kAllParameters; ++p) profile.values[p] = hardware::parameter_info(p).initial;
  profile.choices.grouped_experts = true;
  const hardware::ParameterValues initial = profile.values;
  const Machine machine(device, cost::make_cluster(device), nullptr, {}, &profile);
  const model::StoredFormat fp8{.bits = 8, .compute = Dtype::fp8, .kernel = FormatKernel::fp8_block};
  const model::StoredFormat wide{.bits = 16};
  std::vector<graph::Op> ops;
  for (const model::StoredFormat* format : {&fp8, &wide}) {
    for (const std::int64_t k : {232, 4096}) {
      for (const double tiles : {1.0, 8.0, 300.0}) {
        graph::Gemm g{.m = 16 * static_cast<std::int64_t>(tiles), .n = 4096, .k = k, .weights = format};
        g.weight_matrices = 4;
        g.row_tiles = {tiles, tiles / 2 + 1, tiles / 4 + 1, tiles / 8 + 1};
        ops.push_back({.name = "experts_down", .tag = graph::Tag::experts_down, .body = g});
      }
    }
  }
  for (const graph::Tag tag : {graph::Tag::routing, graph::Tag::combine}) {
    ops.push_back({.name = "around", .tag = tag, .body = graph::Vector{.rows = 1000, .width = 4096}});
  }
  std::vector<bool> used(hardware::kAllParameters);
  for (const graph::Op& op : ops) {
    const cost::Work work = machine.work(op);
    const std::vector<std::size_t> own = parameters_of(op, profile.choices);
    const double before = machine.time(op, work).total.value;
    for (std::size_t p = 0; p < hardware::kAllParameters; ++p) {
      profile.values[p] *= 0.7;
      const bool changed = machine.time(op, work).total.value != before;
      profile.values[p] = initial[p];
      used[p] = used[p] || changed;
      if (changed && !contains(own, p)) FAIL(hardware::parameter_info(p).name);
    }
  }
  for (std::size_t p = index(Parameter::experts_stream_share); p <= index(Parameter::experts_overlap); ++p)
    CHECK(used[p]);
  CHECK(used[index(FormatKernel::fp8_block, ExpertParameter::launch)]);
  CHECK_FALSE(used[index(FormatKernel::fp8, ExpertParameter::launch)]);
  CHECK_FALSE(used[index(Parameter::gemm_launch)]);
  CHECK_FALSE(used[index(Parameter::vector_launch)]);
}

TEST_CASE("what a measurement left in the cache counts where it says so") {
  using hardware::Parameter;
  const auto uses = [](graph::OpBody body, Parameter p) {
    const graph::Op op{.name = "op", .body = std::move(body)};
    return depends(op, index(p), {});
  };
  CHECK(!uses(graph::Gemm{.m = 1, .n = 64, .k = 64}, Parameter::gemm_resident_share));
  CHECK(uses(graph::Gemm{.m = 1, .n = 64, .k = 64, .copies = 6}, Parameter::gemm_resident_share));
  CHECK(!uses(graph::Gemm{.m = 1, .n = 64, .k = 64, .copies = 6}, Parameter::decode_resident_share));
  graph::Attention a{.sequences = 1, .q_tokens = 1, .context = 9, .heads = 1, .kv_heads = 1, .window = std::nullopt};
  a.qk_dim = a.v_dim = 64;
  CHECK(!uses(a, Parameter::decode_resident_share));
  a.copies = 1;
  CHECK(uses(a, Parameter::decode_resident_share));
}

TEST_CASE("a product depends on the parameters of the kernel that runs") {
  hardware::KernelChoices choices;
  choices.small_rows = 8;
  choices.dequantise_rows[static_cast<std::size_t>(FormatKernel::q4_0)] = 64;
  const model::StoredFormat packed{.bits = 4.5, .kernel = FormatKernel::q4_0};
  const auto uses = [&](std::int64_t rows, std::size_t parameter) {
    graph::Op op;
    op.body = graph::Gemm{.m = rows, .n = 64, .k = 64, .weights = &packed};
    return depends(op, parameter, choices);
  };
  using hardware::FormatParameter;
  using hardware::Parameter;
  const std::size_t small = index(FormatKernel::q4_0, FormatParameter::small_share);
  const std::size_t share = index(FormatKernel::q4_0, FormatParameter::share);
  const std::size_t memory = index(FormatKernel::q4_0, FormatParameter::memory_share);
  CHECK((uses(8, small) && !uses(9, small) && !uses(64, small)));
  CHECK((!uses(8, share) && uses(9, share) && !uses(64, share)));
  CHECK((uses(8, memory) && uses(9, memory) && !uses(64, memory)));
  CHECK((!uses(9, index(Parameter::gemm_share)) && uses(64, index(Parameter::gemm_share))));
  CHECK((!uses(9, index(Parameter::dequantise_share)) && uses(64, index(Parameter::dequantise_share))));
  CHECK(!uses(9, index(FormatKernel::q8_0, FormatParameter::share)));
}

TEST_CASE(
    "all-reduces depend on the numbers of the stack's own kernel, and kernels on power, where a profile has them") {
  hardware::KernelChoices choices;
  graph::Op op{.name = "all-reduce",
               .place = graph::Place::network,
               .body = graph::Collective{.ranks = 4, .rows = 1000, .width = 1, .element = {"int8", 8, 1}}};
  const auto uses = [&](hardware::Parameter p) { return depends(op, index(p), choices); };
  using enum hardware::Parameter;
  CHECK(uses(collective_launch));
  CHECK_FALSE(uses(custom_launch));
  choices.custom_all_reduce = 1000;
  CHECK(uses(custom_launch));
  CHECK(uses(custom_second_share));
  CHECK_FALSE(uses(power_onset));
  choices.custom_all_reduce = 999;
  CHECK_FALSE(uses(custom_launch));

  op = {.name = "gemm", .body = graph::Gemm{.m = 64, .n = 64, .k = 64}};
  CHECK_FALSE(uses(power_onset));
  CHECK_FALSE(uses(power_sustained));
  choices.power = hardware::Power::short_run;
  CHECK(uses(power_onset));
  CHECK_FALSE(uses(power_sustained));
  choices.power = hardware::Power::sustained;
  CHECK(uses(power_onset));
  CHECK(uses(power_sustained));
}

}  // namespace
}  // namespace llmperf::mapper::dependence_test
