#include "mapper/roofline/efficiency.h"

#include <algorithm>
#include <optional>

#include "mapper/roofline/attention_kernel.h"
#include "mapper/roofline/collective_kernel.h"
#include "mapper/roofline/weight_kernel.h"

namespace llmperf::mapper {
namespace {

using hardware::Parameter;

double d(std::int64_t x) { return static_cast<double>(x); }

GemmCall call_of(const graph::Gemm& g, const cost::Work& work) {
  // Experts: each distinct matrix meets its share of the rows.
  const bool grouped = g.weights && g.weight_matrices > 1;
  const double matrices = grouped ? g.weight_matrices : d(g.batch);
  const double element = bytes_per_element(g.activation);
  GemmCall call;
  call.m = grouped ? d(g.m) / matrices : d(g.m);
  call.n = d(g.n);
  call.k = d(g.k);
  call.batch = matrices;
  call.first_bytes = d(g.m) * d(g.k) * d(g.batch) * element;
  call.result_bytes = work.activations_written.value;
  call.second_bytes = std::max(0.0, work.bytes().value - call.first_bytes - call.result_bytes);
  return call;
}

AttentionCall call_of(const graph::Attention& a) {
  AttentionCall call;
  call.sequences = d(a.sequences);
  call.queries = d(a.q_tokens) / d(a.query_ranks);
  call.context = d(a.context + a.q_tokens) / d(a.key_ranks) - call.queries;
  call.window = a.window ? d(*a.window) : 0;
  if (a.keys > 0) {
    call.all_keys = d(a.keys) / d(a.key_ranks);
    call.context = 0;
  }
  call.heads = d(a.heads);
  call.kv_heads = d(a.kv_heads);
  call.qk_dim = d(a.qk_dim);
  call.v_dim = d(a.v_dim);
  call.shared_kv = a.shared_kv;
  call.element_bytes = bytes_per_element(a.activation);
  call.key_value_bytes = a.keys > 0 ? call.element_bytes : bytes_per_element(a.cached.keys);
  return call;
}

Bound bound_of(const ProductTime& t) {
  if (t.feed > t.compute) return Bound::operand_feed;
  return t.compute > t.memory ? Bound::matrix : Bound::memory;
}

// Elements that a kernel walks in strides; 0 for all others.
double strided_elements(const graph::Op& op) {
  if (const auto* v = std::get_if<graph::Vector>(&op.body)) {
    return v->access == graph::Access::strided ? d(v->rows) * d(v->width) : 0;
  }
  const auto* copy = std::get_if<graph::Copy>(&op.body);
  return copy && copy->access == graph::Access::strided ? copy->write_elements : 0;
}

}  // namespace

Efficiency::Efficiency(const hardware::Device& device, const hardware::RuntimeProfile& profile,
                       const Roofline& roofline)
    : profile_(profile), roofline_(roofline) {
  device_.bandwidth = roofline.bandwidth().value;
  const hardware::MemoryLevel* cache = device.last_level_cache();
  if (cache && !cache->per_tile && cache->capacity) device_.cache = cache->capacity->value;
  // Kernels that fill no core, and waves of blocks, hang on it. Of a device whose file does not say, the usual order.
  constexpr std::int64_t kUsualCores = 100;
  device_.cores = d(device.tile_array ? device.tile_array->tiles : device.cores.value_or(kUsualCores));
}

KernelDevice Efficiency::on(Dtype dtype, cost::Sums sums) const {
  KernelDevice result = device_;
  result.matrix = roofline_.matrix_rate(dtype, sums).value * profile_.choices.clock;
  return result;
}

// What the stack makes of it: not all add up in 16 bits where they could.
cost::Sums Efficiency::sums(const cost::Work& work) const {
  return work.sums == cost::Sums::narrow && !profile_.choices.fp16_accumulate ? cost::Sums::wide : work.sums;
}

ProductTime Efficiency::kernel(const graph::Gemm& gemm, const cost::Work& work) const {
  const GemmCall call = call_of(gemm, work);
  const hardware::KernelChoices& choices = profile_.choices;
  if (!gemm.weights || !gemm.weights->kernel) {
    return gemm_time(on(work.matrix_dtype, sums(work)), profile_.values, choices, call);
  }
  const FormatKernel format = *gemm.weights->kernel;
  KernelDevice device = on(gemm.activation);
  device.unpacked = choices.fp16_accumulate ? on(gemm.activation, cost::Sums::narrow).matrix : device.matrix;
  // Shares of kernels that multiply in 8 bits are of the 16-bit rate, half of their own. Where a device has no such
  // rate the products run in 16 bits, and get as far on those.
  const bool eight = format == FormatKernel::fp8 || format == FormatKernel::w8a8;
  if (eight && bits(gemm.weights->compute) > 8) device.matrix /= 2;
  return weight_time(device, profile_.values, choices, format, call);
}

double Efficiency::kernel(const graph::Attention& attention) const {
  const AttentionCall call = call_of(attention);
  const KernelDevice device = on(attention.activation);
  const bool decode = attention.q_tokens == 1 && attention.context > 0;
  const double seconds = decode ? decode_seconds(device, profile_.values, profile_.choices, call)
                                : prefill_seconds(device, profile_.values, profile_.choices, call);
  // Backward: five products in place of two, over the same blocks.
  return attention.backward ? 2.5 * seconds : seconds;
}

// Traffic of `launches` kernels that the cache holds from the one before or for the one after: all of it while it fills
// less than half of the cache, none where it is larger. Weights are read from memory in any case.
double Efficiency::cached_bytes(const cost::Work& work, double launches) const {
  if (device_.cache <= 0) return 0;
  const double passing = (work.activations_read + work.activations_written).value;
  return passing * std::clamp(2 - 2 * passing / launches / device_.cache, 0.0, 1.0);
}

double Efficiency::stream(const graph::Op& op, const cost::Work& work) const {
  const hardware::ParameterValues& v = profile_.values;
  const double cached = cached_bytes(work, op.launches);
  return (work.bytes().value - cached) / (device_.bandwidth * get(v, Parameter::vector_memory_share)) +
         cached / (device_.bandwidth * get(v, Parameter::vector_cached_share));
}

OpTime Efficiency::time(const graph::Op& op, const cost::Work& work) const {
  OpTime t = roofline_.time(work);
  const double more = (op.launches - 1) * get(profile_.values, Parameter::vector_launch);
  double seconds = 0;
  double launch = 0;
  std::optional<ProductTime> product;
  bool walks = false;  // bound by the elements that a kernel walks in strides
  if (const auto* gemm = std::get_if<graph::Gemm>(&op.body)) {
    product = kernel(*gemm, work);
    seconds = product->seconds + more;
    launch = get(profile_.values, Parameter::gemm_launch) + more;
    t.matrix = work.matrix / roofline_.matrix_rate(work.matrix_dtype, sums(work));
  } else if (const auto* attention = std::get_if<graph::Attention>(&op.body)) {
    seconds = kernel(*attention) + more;
    launch = more;
  } else if (std::holds_alternative<graph::Convolution>(op.body)) {
    launch = get(profile_.values, Parameter::gemm_launch) + more;
    seconds = more + convolution_seconds(on(work.matrix_dtype), profile_.values, work.matrix.value, work.bytes().value);
  } else if (std::holds_alternative<graph::Overhead>(op.body)) {
    return t;
  } else if (const auto* copy = std::get_if<graph::Copy>(&op.body); copy && copy->to_cache && copy->rows > 0) {
    launch = op.launches * get(profile_.values, Parameter::vector_launch);
    seconds = launch + append_seconds(device_, profile_.values, copy->rows, copy->write_elements / copy->rows / 2,
                                      work.bytes().value);
  } else {
    launch = op.launches * get(profile_.values, Parameter::vector_launch);
    const double bytes = stream(op, work);
    const double walk = strided_elements(op) / get(profile_.values, Parameter::vector_element_rate);
    seconds = launch + std::max(bytes, walk);
    walks = walk > bytes;
  }
  t.matrix = t.matrix / profile_.choices.clock;
  t.vector = t.vector / profile_.choices.clock;
  t.roof = std::max({t.matrix, t.vector, t.memory});
  t.total = std::max(Seconds{seconds}, t.roof);
  // A product is bound by what its kernel takes longest for, unless that is faster than its roof.
  const bool own = product && t.roof.value <= seconds && t.vector < t.roof;
  t.bound = launch > 0.5 * t.total.value ? Bound::launch
            : own                        ? bound_of(*product)
            : walks                      ? Bound::vector
            : t.roof == t.memory         ? Bound::memory
            : t.roof == t.matrix         ? Bound::matrix
                                         : Bound::vector;
  return t;
}

OpTime Efficiency::collective(const graph::Op& op, const cost::Cluster& cluster) const {
  const auto& c = std::get<graph::Collective>(op.body);
  const cost::CollectiveCost light = cost::collective_cost(cluster, c);
  OpTime t = time_of(light);
  t.total = std::max(cost::collective_cost(driven(cluster, profile_.values), c).time(), light.time());
  t.network = t.roof;
  return t;
}

}  // namespace llmperf::mapper
