#include "mapper/roofline/efficiency.h"

#include <algorithm>
#include <bitset>
#include <initializer_list>
#include <optional>
#include <string>

#include "base/integer.h"
#include "base/match.h"
#include "base/maths.h"
#include "mapper/roofline/kernels.h"

namespace llmperf::mapper {
namespace {

using hardware::CallParameter;
using hardware::Parameter;

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
  call.copies = d(g.copies);
  call.alone = g.alone;
  return call;
}

AttentionCall call_of(const graph::Attention& a) {
  AttentionCall call;
  call.sequences = d(a.sequences);
  call.queries = d(a.q_tokens) / d(a.query_ranks);
  call.context = d(a.context + a.q_tokens) / d(a.key_ranks) - call.queries;
  call.longest = a.longest > 0 ? d(a.longest + a.q_tokens) / d(a.key_ranks) - call.queries : 0;
  call.window = a.window ? d(*a.window) : 0;
  if (a.keys > 0) {
    call.all_keys = d(a.keys) / d(a.key_ranks);
    call.context = 0;
  } else if (a.pool > 1 || a.picked || (a.shared_kv && a.window)) {
    // Keys that stand for several tokens, or were chosen: as many as a query sees on the mean, without a mask.
    const double seen = std::max(1.0, cost::visible_pairs(a) / d(a.q_tokens));
    call.window = 0;
    call.all_keys = a.q_tokens > 1 && !a.verifies ? seen : 0;
    call.context = a.q_tokens > 1 && !a.verifies ? 0 : std::max(0.0, seen - call.queries);
  }
  call.heads = d(a.heads);
  call.kv_heads = d(a.kv_heads);
  call.qk_dim = d(a.qk_dim);
  call.v_dim = d(a.v_dim);
  call.shared_kv = a.shared_kv;
  call.element_bytes = bytes_per_element(a.activation);
  call.key_value_bytes = a.keys > 0 ? call.element_bytes : bytes_per_element(a.cached.keys);
  call.copies = d(a.copies);
  return call;
}

// Products of routed experts.
bool is_grouped(const graph::Gemm& gemm) { return gemm.row_tiles.front() > 0 && gemm.weights && gemm.batch == 1; }
// Whose numbers they have.
std::optional<FormatKernel> expert_format(const graph::Gemm& gemm, const KernelChoices& choices) {
  const std::int64_t own = choices.mxfp4_width;
  const bool others = own > 0 && gemm.weights->kernel == FormatKernel::mxfp4 && gemm.k != own && gemm.n != own;
  return others ? FormatKernel::gptq : gemm.weights->kernel;
}
// What the stack does around them.
bool is_around_experts(const graph::Op& op) {
  using enum graph::Tag;
  return op.pass == graph::Pass::forward &&
         (op.tag == routing || op.tag == dispatch || op.tag == experts_activation || op.tag == combine);
}

// Whether both operands go to the matrix engine in 8 bits or fewer, by a kernel that the profile knows.
constexpr double kNarrowBits = 8;
bool multiplies_narrow(const graph::Gemm& gemm, const KernelChoices& choices) {
  return gemm.weights && gemm.weights->kernel && bits(gemm.weights->compute) <= kNarrowBits &&
         choices.product_tiles[static_cast<std::size_t>(*gemm.weights->kernel)] != hardware::ProductTiles::unpacked;
}

Bound bound_of(const ProductTime& t) {
  if (t.feed > t.compute) return Bound::operand_feed;
  return t.compute > t.memory ? Bound::matrix : Bound::memory;
}

// Elements that a kernel walks in strides; 0 where it does not.
double strided(const graph::Vector& v) { return v.access == graph::Access::strided ? d(v.rows) * d(v.width) : 0; }
// Of a kernel that needs all of a row before it writes: the rows; 0 of others.
double reduced_rows(const graph::Vector& v) { return graph::vector_op(v.kind).is(graph::kByRow) ? d(v.rows) : 0; }
double elements_of(const graph::Vector& v, graph::VectorKind kind) {
  return v.kind == kind ? d(v.rows) * d(v.width) : 0;
}
double drawn(const graph::Vector& v) { return elements_of(v, graph::VectorKind::draw); }
double sampled(const graph::Vector& v) { return elements_of(v, graph::VectorKind::sampling); }
double strided(const graph::Copy& c) { return c.access == graph::Access::strided ? c.write_elements : 0; }

bool is_decode(const graph::Attention& a) { return (a.q_tokens == 1 || a.verifies) && a.context > 0; }
bool is_latent(const graph::Attention& a) { return a.shared_kv || a.qk_dim != a.v_dim; }
// By the kernel of decode: one new token per sequence, the first one as well under an engine that takes it for such,
// and with CANN's a few, whose heads of a group fill no block.
bool decodes(const graph::Attention& a, const KernelChoices& choices) {
  return is_decode(a) || (choices.token_decodes && a.q_tokens == 1) ||
         (choices.attention == hardware::AttentionKernels::cann && a.context > 0 &&
          a.q_tokens * a.heads <= choices.query_rows * a.kv_heads);
}
// Whether the engine copies its heads before a kernel takes them.
bool is_copied(const graph::Attention& a, const KernelChoices& choices) {
  return a.qk_dim == choices.copied_head && !is_latent(a);
}
const hardware::AttentionCase* triton_of(const graph::Attention& a, const KernelChoices& choices) {
  return is_latent(a) ? nullptr : triton_case(choices, call_of(a), !decodes(a, choices));
}
// By the kernel for new tokens on latents; a prompt that stays with the latents is a prompt's of one wide head.
bool on_latents(const graph::Attention& a, const KernelChoices& choices) {
  constexpr std::int64_t kFew = 64;  // tokens
  const bool few = a.q_tokens <= kFew || a.verifies || a.picked || a.pool > 1 || a.window;
  return a.shared_kv && few && choices.attention != hardware::AttentionKernels::flash2;
}

// What a framework's call of the op takes, or in how many passes; nothing of exchanges, whose library has a launch of
// its own.
std::optional<std::size_t> called(const graph::Op& op, CallParameter p) {
  const auto* v = std::get_if<graph::Vector>(&op.body);
  if (v == nullptr) return index(graph::kind_of(op), p);
  const std::optional<std::size_t> own = index(graph::name(v->kind), p);
  return own ? own : index("elementwise", p);
}

}  // namespace

Efficiency::Efficiency(const hardware::Device& device, const hardware::RuntimeProfile& profile,
                       const Roofline& roofline)
    : profile_(profile), roofline_(roofline), is_host_(device.kind == hardware::DeviceKind::cpu) {
  device_.bandwidth = roofline.bandwidth().value;
  const hardware::MemoryLevel* cache = device.last_level_cache();
  if (cache && !cache->per_tile && cache->capacity) device_.cache = cache->capacity->value;
  // Kernels that fill no core, and waves of blocks, hang on it. Of a device whose file does not say, the usual order.
  constexpr std::int64_t kUsualCores = 100;
  device_.cores = d(device.tile_array ? device.tile_array->tiles : device.cores.value_or(kUsualCores));
  constexpr double kUsualClock = 1.7e9;
  device_.clock = device.clock_hz.value_or(kUsualClock) * device.clock_ratio();
  device_.integer = roofline.matrix_rate(Dtype::fp16, cost::Sums::integer).value;
  device_.power = device.power_w.value_or(0);
  if (!profile.choices.ggml) limit_clock(device);  // ggml's products know their limit by themselves
}

// Products at the full clock draw what switching takes beside what a board draws at rest, C V^2 f. Where that is more
// than the board may draw the clock falls: by the cube root while the voltage goes with it, and by more once that can
// go no lower, up to in proportion; the exponent is between. (A limit below the board's has its part already:
// device.cpp, with_power_limit.) 8 bits are taken to need half the energy at twice the rate.
void Efficiency::limit_clock(const hardware::Device& device) {
  constexpr double kSwitching = 0.75;  // of the board's power
  constexpr double kExponent = 0.4;
  const double limited = device.power_limit ? device.power_limit->clock : 1;
  const double board = device.power_limit ? device.power_limit->board_w : device.power_w.value_or(0);
  const double rate = roofline_.matrix_rate(Dtype::fp16, cost::Sums::wide).value / limited;
  const double within = kSwitching * board * get(profile_.values, Parameter::per_watt);
  if (board > 0 && within < rate) power_clock_ = maths::pow(within / rate, kExponent);
}

KernelDevice Efficiency::on(Dtype dtype, cost::Sums sums) const {
  KernelDevice result = device_;
  result.matrix = roofline_.matrix_rate(dtype, sums).value * profile_.choices.clock * power_clock_;
  if (profile_.choices.power == hardware::Power::sustained) {
    result.matrix /= get(profile_.values, Parameter::power_sustained);
  }
  return result;
}

// Where power is part of the profile, kernels of products and of attention over prompts
//
//     t (1 + onset / (1 + (1.7 ms / t)^2))
//
// Short ones run at the boost clock; one that keeps every core multiplying for longer than it takes the voltage
// regulators to notice is slowed down while it runs, by up to the onset. The scale of 1.7 ms is that of some fifty
// calls in a row on H100, whose 12 % the products and prompts above 8 ms share.
double Efficiency::with_onset(double seconds) const {
  constexpr double kScale = 1.7e-3;
  if (profile_.choices.power == hardware::Power::none) return seconds;
  const double square = seconds * seconds;
  return seconds * (1 + get(profile_.values, Parameter::power_onset) * square / (square + kScale * kScale));
}

// What the stack makes of it: not all add up in 16 bits where they could.
cost::Sums Efficiency::sums(const cost::Work& work) const {
  return work.sums == cost::Sums::narrow && !profile_.choices.fp16_accumulate ? cost::Sums::wide : work.sums;
}

ProductTime Efficiency::kernel(const graph::Gemm& gemm, const cost::Work& work) const {
  const KernelChoices& choices = profile_.choices;
  GemmCall call = call_of(gemm, work);
  if (choices.grouped_experts && is_grouped(gemm)) {
    call.m = d(gemm.m);
    const bool narrow = gemm.weights->kernel && bits(gemm.weights->compute) <= kNarrowBits;
    if (narrow) call.narrow_bytes = bytes_per_element(gemm.weights->compute);
    const Dtype dtype = narrow ? gemm.weights->compute : gemm.activation;
    return expert_time(on(dtype), profile_.values, expert_format(gemm, choices), call, gemm.row_tiles);
  }
  if (choices.ggml) return ggml_kernel(gemm, call);
  if (choices.fused_training) return training_time(gemm, work, call);
  if (!gemm.weights || !gemm.weights->kernel) {
    return gemm_time(on(work.matrix_dtype, sums(work)), profile_.values, choices, call);
  }
  const FormatKernel format = *gemm.weights->kernel;
  if (multiplies_narrow(gemm, choices)) {
    GemmCall narrow = call;
    narrow.narrow_bytes = bytes_per_element(gemm.weights->compute);
    return narrow_time(on(gemm.weights->compute), profile_.values, choices, format, narrow);
  }
  KernelDevice device = on_unpacked(gemm.activation);
  // Shares of kernels that multiply in 8 bits are of the 16-bit rate, half of their own. Where a device has no such
  // rate the products run in 16 bits, and get as far on those.
  if (multiplies_in_8_bits(format) && bits(gemm.weights->compute) > 8) device.matrix /= 2;
  // ExLlama's kernel runs on vector units. Its share is of twice their rate, which on the card that it was fitted to is
  // the matrix peak.
  if (choices.serial[static_cast<std::size_t>(format)]) {
    device.matrix = std::max(device.matrix, 2 * roofline_.vector_rate().value * choices.clock);
  }
  return weight_time(device, profile_.values, choices, format, call);
}

// Of training: large products get a share of their peak that hangs on their type alone, grouped ones of experts a part
// of it.
ProductTime Efficiency::training_time(const graph::Gemm& gemm, const cost::Work& work, const GemmCall& call) const {
  const ParameterValues& v = profile_.values;
  KernelDevice device = on(work.matrix_dtype);
  if (const double width = bits(work.matrix_dtype); width <= kNarrowBits) {
    device.matrix *= get(v, width < kNarrowBits ? Parameter::training_fp4_share : Parameter::training_narrow_share) /
                     get(v, Parameter::gemm_share);
  }
  if (gemm.weight_matrices > 1) device.matrix *= get(v, Parameter::training_experts_share);
  return gemm_time(device, v, profile_.choices, call);
}

KernelDevice Efficiency::on_unpacked(Dtype activation) const {
  KernelDevice device = on(activation);
  device.unpacked = profile_.choices.fp16_accumulate ? on(activation, cost::Sums::narrow).matrix : device.matrix;
  return device;
}

ProductTime Efficiency::ggml_kernel(const graph::Gemm& gemm, const GemmCall& call) const {
  const KernelDevice device = on_unpacked(gemm.activation);
  if (!gemm.weights) return scores_time(device, profile_.values, profile_.choices, call);
  const FormatKernel format = gemm.weights->kernel.value_or(FormatKernel::wide);
  return ggml_time(device, profile_.values, profile_.choices, format, call, gemm.weight_matrices > 1);
}

double Efficiency::kernel(const graph::Attention& attention) const {
  const AttentionCall call = call_of(attention);
  if (profile_.choices.ggml) {
    const double tile = attention.query_tile > 0 ? d(attention.query_tile) : d(profile_.choices.prompt_chunk);
    return ggml_attention_seconds(on_unpacked(attention.activation), profile_.values, call, tile);
  }
  // Shares are of the rate of 16 bits, whatever the products take.
  const KernelDevice device = on(bits(attention.activation) <= kNarrowBits ? Dtype::bf16 : attention.activation);
  const bool decode = decodes(attention, profile_.choices);
  const double copied = is_copied(attention, profile_.choices) ? get(profile_.values, Parameter::decode_copy) : 0;
  if (const auto* triton = triton_of(attention, profile_.choices)) {
    return copied + (decode ? triton_decode_seconds(device, profile_.values, call)
                            : triton_prefill_seconds(device, profile_.values, call, triton->skips));
  }
  if (on_latents(attention, profile_.choices)) {
    return latent_seconds(device, profile_.values, call);
  }
  const double seconds = copied + (decode ? decode_seconds(device, profile_.values, profile_.choices, call)
                                          : prefill_seconds(device, profile_.values, profile_.choices, call));
  // Backward: five products in place of two, over the same blocks.
  const double share = profile_.choices.fused_training ? get(profile_.values, Parameter::training_backward_share) : 1;
  return attention.backward ? 2.5 * seconds / share : seconds;
}

// What of the kernel is its launch.
double Efficiency::launch(const graph::Attention& attention) const {
  const bool flash2 = profile_.choices.has_flash2_form();
  const bool decode = decodes(attention, profile_.choices);
  if (on_latents(attention, profile_.choices)) return get(profile_.values, Parameter::latent_launch);
  if (triton_of(attention, profile_.choices) != nullptr) return get(profile_.values, Parameter::triton_launch);
  const bool xqa = profile_.choices.attention == hardware::AttentionKernels::xqa;
  const Parameter p = decode && xqa                     ? xqa_launch(call_of(attention))
                      : decode                          ? Parameter::decode_launch
                      : !flash2 && is_latent(attention) ? Parameter::latent_prompt_launch
                                                        : Parameter::prefill_launch;
  return get(profile_.values, p);
}

// Traffic of `launches` kernels that the cache holds. Weights are read from memory in any case.
double Efficiency::cached_bytes(const cost::Work& work, double launches) const {
  const double passing = (work.activations_read + work.activations_written).value;
  return passing * device_.held(passing / std::max(1.0, launches));
}

double Efficiency::stream(const graph::Op& op, const cost::Work& work) const {
  const ParameterValues& v = profile_.values;
  const auto own = profile_.choices.eager ? called(op, CallParameter::passes) : std::nullopt;
  const auto* vector = std::get_if<graph::Vector>(&op.body);
  const bool computes = own && vector && sampled(*vector) > 0;  // logits are not waited for, wherever they are
  const double cached = computes ? 0 : cached_bytes(work, op.launches);
  const double passes = own ? v[*own] : 1;
  return passes * ((work.bytes().value - cached) / (device_.bandwidth * get(v, Parameter::vector_memory_share)) +
                   cached / (device_.bandwidth * get(v, Parameter::vector_cached_share)));
}

// What of its kernels takes how long, whatever the roof of the op's work.
struct Efficiency::Run {
  double seconds = 0;
  double launch = 0;                   // of these
  std::optional<ProductTime> product;  // what its kernel does at the same time
  bool walks = false;                  // bound by the elements of a vector kernel, not by their bytes
};

Efficiency::Run Efficiency::run(const graph::Op& op, const cost::Work& work) const {
  Run r;
  const ParameterValues& v = profile_.values;
  const double vector_launches = op.launches * get(v, Parameter::vector_launch);
  const double more = std::max(0, op.launches - 1) * get(v, Parameter::vector_launch);
  const auto streams = [&](double walk) {
    r.launch = vector_launches;
    const double bytes = stream(op, work);
    r.seconds = r.launch + std::max(bytes, walk);
    r.walks = walk > bytes;
  };
  const bool around_experts = profile_.choices.grouped_experts && is_around_experts(op);
  const auto streams_around = [&] {
    r.seconds = work.bytes().value / (device_.bandwidth * get(v, Parameter::experts_stream_share));
  };
  match(
      op.body,
      [&](const graph::Gemm& gemm) {
        r.product = kernel(gemm, work);
        const bool launched = op.launches > 0;  // else it is part of the kernel before it
        r.seconds = with_onset(r.product->seconds) + (launched ? more : -r.product->launch);
        r.launch = launched ? r.product->launch + more : 0;
      },
      [&](const graph::Attention& attention) {
        const double own = kernel(attention);
        const double joined = op.launches > 0 ? 0 : launch(attention);  // part of the launch before it
        r.seconds = (decodes(attention, profile_.choices) ? own : with_onset(own)) + more - joined;
        r.launch = more;
      },
      [&](const graph::Convolution&) {
        r.launch = get(v, Parameter::gemm_launch) + more;
        r.seconds = more + convolution_seconds(on(work.matrix_dtype), v, work.matrix.value, work.bytes().value);
      },
      [&](const graph::Scan&) {
        // Bound by its bytes, or in chunks by products, of which it gets a share of what attention over prompts does.
        const double reached = get(v, Parameter::prefill_share) * get(v, Parameter::scan_share);
        const double products = work.matrix.value / (on(work.matrix_dtype).matrix * reached);
        const double bytes = stream(op, work);
        r.launch = vector_launches + get(v, Parameter::scan_launch);
        r.seconds = r.launch + std::max(bytes, products);
      },
      [&](const graph::Vector& vector) {
        if (op.tag == graph::Tag::dequantise) {
          r.launch = vector_launches;
          r.seconds = r.launch + work.bytes().value / (device_.bandwidth * get(v, Parameter::dequantise_share));
          return;
        }
        if (around_experts) return streams_around();
        if (profile_.choices.ggml && op.tag == graph::Tag::softmax) {
          r.launch = vector_launches;
          r.seconds = r.launch + d(vector.rows) * d(vector.width) * get(v, Parameter::scores_bytes) / device_.bandwidth;
          return;
        }
        const double reduced =
            get(v, Parameter::vector_reduce_row) + d(vector.width) / get(v, Parameter::vector_reduce_rate);
        streams(std::max({strided(vector) / get(v, Parameter::vector_element_rate), reduced_rows(vector) * reduced,
                          sampled(vector) / get(v, Parameter::vector_sampling_rate),
                          drawn(vector) * get(v, Parameter::vector_draw_bytes) / device_.bandwidth}));
      },
      [&](const graph::Gather&) { streams(0); },
      [&](const graph::Copy& copy) {
        if (around_experts) return streams_around();
        if (!copy.to_cache || copy.rows <= 0) return streams(strided(copy) / get(v, Parameter::vector_element_rate));
        r.launch = vector_launches;
        r.seconds =
            r.launch + append_seconds(device_, v, copy.rows, copy.write_elements / copy.rows / 2, work.bytes().value);
      },
      [&](const graph::Transfer&) { streams(0); },    // of no op of the device
      [&](const graph::Collective&) { streams(0); },  // alike: collective() below
      [&](const graph::Overhead&) {});
  if (profile_.choices.ggml) {
    const double spread = op.launches * device_.cores * get(v, Parameter::launch_core);
    r.launch += spread;
    r.seconds += spread;
  }
  return r;
}

// What a framework that calls ops one by one makes of it: on a device with a queue the longer of its call and of the
// kernels, nearly; a processor that calls what it runs itself does one after the other.
void Efficiency::add_call(const graph::Op& op, Run& r) const {
  const auto p = profile_.choices.eager && op.launches > 0 ? called(op, CallParameter::call) : std::nullopt;
  if (!p) return;
  constexpr double kQueue = 4;  // exponent: a call is hidden by a kernel twice as long
  const double call = profile_.values[*p];
  r.launch = is_host_ ? r.launch + call : std::max(r.launch, call);
  r.seconds = is_host_ ? r.seconds + call : overlapped(r.seconds, call, kQueue);
}

OpTime Efficiency::time(const graph::Op& op, const cost::Work& work) const {
  OpTime t = roofline_.time(work);
  if (std::holds_alternative<graph::Overhead>(op.body)) return t;
  Run r = run(op, work);
  add_call(op, r);
  if (r.product) t.matrix = work.matrix / roofline_.matrix_rate(work.matrix_dtype, sums(work));
  t.matrix = t.matrix / profile_.choices.clock;
  t.vector = t.vector / profile_.choices.clock;
  t.roof = std::max({t.matrix, t.vector, t.memory});
  t.total = std::max(Seconds{r.seconds}, t.roof);
  // A product is bound by what its kernel takes longest for, unless that is faster than its roof.
  const bool own = r.product && t.roof.value <= r.seconds && t.vector < t.roof;
  t.bound = r.launch > 0.5 * t.total.value ? Bound::launch
            : own                          ? bound_of(*r.product)
            : r.walks                      ? Bound::vector
            : t.roof == t.memory           ? Bound::memory
            : t.roof == t.matrix           ? Bound::matrix
                                           : Bound::vector;
  return t;
}

OpTime Efficiency::collective(const graph::Op& op, const cost::Cluster& cluster) const {
  const auto& c = std::get<graph::Collective>(op.body);
  const cost::CollectiveCost light = cost::collective_cost(cluster, c);
  OpTime t = time_of(light);
  t.total = std::max(cost::collective_cost(driven(cluster, profile_), c).time(), light.time());
  t.network = t.roof;
  if (profile_.choices.ggml && c.kind == graph::CollectiveKind::send) {
    t.total += Seconds{get(profile_.values, hardware::Parameter::split_hop)};
  }
  return t;
}

// ---- What the time depends on
//
// The parameters that each kernel reads, by the chapters of its formulas (gemm_kernel.cpp, attention_kernel.cpp, …).

namespace {

using enum Parameter;
using hardware::FormatParameter;
using ParameterSet = std::bitset<hardware::kAllParameters>;

// Where `when`, some of the parameters; of a format; or all from the first to the last.
void add(ParameterSet& set, bool when, std::initializer_list<Parameter> some) {
  for (const Parameter p : some) set[index(p)] = set[index(p)] || when;
}
void add(ParameterSet& set, bool when, FormatKernel format, std::initializer_list<FormatParameter> some) {
  for (const FormatParameter p : some) set[index(format, p)] = set[index(format, p)] || when;
}
void add_all(ParameterSet& set, bool when, std::size_t first, std::size_t last) {
  for (std::size_t p = first; when && p <= last; ++p) set.set(p);
}
void add_all(ParameterSet& set, bool when, Parameter first, Parameter last) {
  add_all(set, when, index(first), index(last));
}

// A library without a menu of tiles has one share.
void add_dense(ParameterSet& set, const graph::Gemm& gemm, const KernelChoices& choices) {
  add(set, true, {gemm_launch, gemm_memory_share, gemm_overlap});
  add(set, !choices.tile_menu, {gemm_share});
  add_all(set, choices.tile_menu, gemm_share_16, gemm_split_share);
  add(set, choices.cube_tiles, {gemm_split_launch, gemm_split_share});
  add(set, choices.cached_activations, {gemm_cached_share});
  add(set, gemm.copies > 0, {gemm_resident_share});
}

// Of training: the rate of the type that is multiplied, and of experts their part of it.
void add_trained(ParameterSet& set, const graph::Gemm& gemm) {
  const double width = bits(gemm.operands ? *gemm.operands : gemm.weights ? gemm.weights->compute : gemm.activation);
  add(set, true, {gemm_launch, gemm_memory_share, gemm_overlap});
  add(set, width > kNarrowBits, {gemm_share});
  add(set, width == kNarrowBits, {training_narrow_share});
  add(set, width < kNarrowBits, {training_fp4_share});
  add(set, gemm.weight_matrices > 1, {training_experts_share});
}

// Of packed weights: of the one kernel that runs.
void add_packed(ParameterSet& set, const graph::Gemm& gemm, FormatKernel format, const KernelChoices& choices) {
  const std::int64_t unpack_rows = choices.dequantise_rows[static_cast<std::size_t>(format)];
  const bool unpacks = unpack_rows > 0 && gemm.m >= unpack_rows;
  const bool small = choices.small_rows > 0 && gemm.m <= choices.small_rows;
  const bool large = choices.small_rows > 0 && !small;
  add(set, true, {gemm_launch});
  if (unpacks) {
    add(set, true, {dequantise_share, dequantise_cached});
    return add_dense(set, gemm, choices);
  }
  add(set, true, {large ? format_small_overlap : format_overlap});
  add(set, true, format,
      {FormatParameter::memory_share, small ? FormatParameter::small_share : FormatParameter::share});
  add(set, in_stripes(format), format, {FormatParameter::reduce});
}

void add_narrow(ParameterSet& set, const graph::Gemm& gemm, FormatKernel format, const KernelChoices& choices) {
  const hardware::ProductTiles rule = choices.product_tiles[static_cast<std::size_t>(format)];
  const bool fused = choices.quantising_is_fused(format, gemm.alone);
  const bool quantises = rule == hardware::ProductTiles::quantised_menu && !fused;
  if (rule == hardware::ProductTiles::menu || rule == hardware::ProductTiles::quantised_menu) {
    add(set, true, format, {FormatParameter::share, FormatParameter::step});
    add(set, quantises, format, {FormatParameter::launch, FormatParameter::quantise_share});
    add(set, quantises && gemm.alone, format, {FormatParameter::quantise_row});
    return add_dense(set, gemm, choices);
  }
  add(set, true, format,
      {has_small_rows(rule, d(gemm.m)) ? FormatParameter::small_share : FormatParameter::share,
       FormatParameter::memory_share});
  add(set, fused, {gemm_launch});
  add_all(set, true, index(format, FormatParameter::reduce), index(format, FormatParameter::experts_share_128));
  if (fused)
    set.reset(index(format, FormatParameter::quantise_share)).reset(index(format, FormatParameter::quantise_row));
}

// Ops that ggml has kernels of its own for.
bool is_ggml(const graph::Op& op) {
  return std::holds_alternative<graph::Gemm>(op.body) || std::holds_alternative<graph::Attention>(op.body) ||
         op.tag == graph::Tag::softmax;
}
void add_ggml(ParameterSet& set, const graph::Op& op, const KernelChoices& choices) {
  if (const auto* attention = std::get_if<graph::Attention>(&op.body)) {
    add(set, call_of(*attention).small_heads(), {small_heads_share});
    add(set, call_of(*attention).by_eights(), {eights_share});
    return add(set, true, {decode_launch, prefill_share, decode_memory_share});
  }
  const auto* gemm = std::get_if<graph::Gemm>(&op.body);
  if (gemm == nullptr) return add(set, true, {vector_launch, scores_bytes});
  if (!gemm->weights) return add(set, true, {gemm_launch, scores_share, scores_memory_share});
  const bool grouped = gemm->weight_matrices > 1;
  const FormatKernel format = gemm->weights->kernel.value_or(FormatKernel::wide);
  const GgmlProduct kernel = ggml_product(choices, format, grouped ? d(gemm->m) / gemm->weight_matrices : d(gemm->m));
  const bool packed = kernel == GgmlProduct::packed;
  const bool wide = kernel == GgmlProduct::wide;
  const bool loads = !wide || format == FormatKernel::wide;
  add(set, true, {gemm_launch, gemm_memory_share});
  add(set, loads, {format_small_overlap});
  add(set, loads, format, {FormatParameter::unpack_rate});
  add(set, loads && (packed || (wide && has_own_wide(choices))), {product_unpack});
  add(set, grouped && (packed || wide), {product_experts});
  add(set, packed, {format_overlap});
  add(set, packed, format, {FormatParameter::share});
  add(set, wide, {gemm_share, gemm_overlap, product_rows, per_watt});
  add(set, wide && format != FormatKernel::wide, {dequantise_share});
}

// Of the kernels that the profile's library has, those that run, and of their parameters what the shape meets.
void add_attention(ParameterSet& set, const graph::Attention& a, const KernelChoices& choices) {
  const AttentionCall call = call_of(a);
  const bool flash2 = choices.has_flash2_form();
  add(set, is_copied(a, choices), {decode_copy});
  if (triton_of(a, choices) != nullptr) {
    return decodes(a, choices) ? add(set, true, {triton_launch, triton_rate})
                               : add_all(set, true, triton_launch, triton_memory_share);
  }
  if (on_latents(a, choices)) return add_all(set, true, latent_launch, latent_split);
  if (!flash2 && is_latent(a) && !decodes(a, choices)) {
    add(set, true, {prefill_memory_share, prefill_overlap, prefill_tail});
    add(set, call.narrow(), {prefill_quantise});
    return add_all(set, true, latent_prompt_launch, latent_token);
  }
  if (decodes(a, choices)) {
    if (choices.attention == hardware::AttentionKernels::xqa) {
      const bool alone = has_block_per_head(call);
      const bool narrow = call.narrow() && !alone;
      add(set, true, {xqa_launch(call), decode_memory_share, decode_overlap, decode_split});
      add(set, alone, {decode_head_block, decode_head_rate});
      add(set, !alone, {decode_block_rate});
      add(set, narrow, {decode_narrow_block});
      add(set, !narrow && !alone, {decode_block});
      return add(set, call.cuts(), {decode_window});
    }
    add_all(set, true, decode_launch, decode_overlap);
    add(set, true, {decode_split, decode_split_each});
    add(set, flash2, {decode_pack, decode_copy, decode_copy_share});
    add(set, !flash2, {decode_sequence});
    add(set, !flash2 && call.cuts(), {decode_window});
    add(set, !flash2 && call.narrow(), {decode_quantise});
    return add(set, flash2 && is_decode(a) && a.copies > 0, {decode_resident_share});
  }
  add(set, true, {prefill_launch, prefill_block, prefill_memory_share, prefill_overlap, prefill_tail});
  add(set, flash2 || !call.narrow(), {prefill_share});
  add(set, !flash2 && call.cuts(), {prefill_window});
  add(set, choices.attention == hardware::AttentionKernels::cann, {prefill_fill});
  add(set, !flash2, {prefill_exponential_rate});
  add(set, !flash2 && call.narrow(), {prefill_narrow_share, prefill_quantise});
  add(set, flash2 && a.q_tokens == 1, {decode_copy, decode_copy_share});  // of a first token
}

void add_collective(ParameterSet& set, const graph::Collective& c, const KernelChoices& choices) {
  const bool all_reduce = c.kind == graph::CollectiveKind::all_reduce;
  add(set, true,
      {collective_launch, collective_step, collective_share, network_share, network_step, collective_hidden});
  add(set, choices.rings, {collective_copy_share, collective_fill});
  add(set, choices.rings, {collective_direct_share, collective_bridge_share, collective_sockets_share});
  add(set, choices.switch_reduces && choices.rings && all_reduce, {switch_launch, switch_share});
  add(set, all_reduce || c.kind == graph::CollectiveKind::reduce_scatter, {collective_reduce});
  add(set, choices.small_collective > 0 && c.bytes().value > d(choices.small_collective), {collective_setup});
  const bool exchanges = choices.exchange_tokens > 0 && c.routing.experts > 0;
  add(set, exchanges, {exchange_launch, exchange_round, exchange_share});
  add(set, exchanges && !c.routing.returns, {exchange_there});
  const bool custom =
      choices.custom_all_reduce > 0 && !c.library && all_reduce && c.bytes().value <= d(choices.custom_all_reduce);
  add_all(set, custom, custom_launch, custom_second_share);
  add(set, custom && c.with_norm, {custom_norm});
}

// Of an op that is mapped to tiles.
void add_tiles(ParameterSet& set, const graph::Op& op, const KernelChoices& choices) {
  const auto* gemm = std::get_if<graph::Gemm>(&op.body);
  const auto* attention = std::get_if<graph::Attention>(&op.body);
  const bool prompt = gemm && gemm->weights && gemm->m * gemm->batch > choices.near_rows;
  const bool near = gemm && gemm->weights && !prompt;
  add(set, true, {tile_launch, tile_link_share, tile_multicast_share, tile_hidden});
  add(set, gemm != nullptr, {tile_matrix_share, tile_feed_share});
  add(set, !gemm || gemm->joined.any() || (gemm->weights && gemm->weights->dequant_flops > 0), {tile_vector_share});
  add(set, prompt, {tile_prompt_share});
  add(set, near, {tile_dram_near_share});
  add(set, !near && !attention, {tile_dram_share});
  add(set, attention != nullptr, {tile_attention_share, tile_attention_memory_share});
  add(set, attention && attention->q_tokens > 1 && !attention->verifies, {tile_attention_keys});
}

// Of the kernels that only stream their operands.
constexpr std::initializer_list<Parameter> kStreams = {vector_launch, vector_memory_share, vector_cached_share};

// Of a framework that calls the op by itself.
void add_calls(ParameterSet& set, const graph::Op& op, const KernelChoices& choices) {
  const auto call = choices.eager && op.launches > 0 ? called(op, CallParameter::call) : std::nullopt;
  if (!call) return;
  set.set(*call);
  const auto* copy = std::get_if<graph::Copy>(&op.body);
  const bool own = std::holds_alternative<graph::Gemm>(op.body) || std::holds_alternative<graph::Attention>(op.body) ||
                   (copy && copy->to_cache);  // kernels with numbers of their own
  if (!own) set.set(*called(op, CallParameter::passes));
}

void add_kernel(ParameterSet& set, const graph::Op& op, const KernelChoices& choices) {
  const auto* gemm = std::get_if<graph::Gemm>(&op.body);
  const bool grouped = gemm && is_grouped(*gemm);
  if (choices.grouped_experts && (grouped || is_around_experts(op))) {
    if (gemm == nullptr) return add(set, true, {experts_stream_share});
    const std::size_t first = index(expert_format(*gemm, choices), hardware::ExpertParameter::launch);
    add(set, !is_aligned(d(gemm->k), gemm->weights->kernel), {experts_unaligned_share});
    return add_all(set, true, first, first + hardware::kExpertParameters - 1);
  }
  add(set, op.launches > 1, kStreams);
  match(
      op.body,
      [&](const graph::Gemm& g) {
        if (choices.fused_training) return add_trained(set, g);
        if (multiplies_narrow(g, choices)) return add_narrow(set, g, *g.weights->kernel, choices);
        if (g.weights && g.weights->kernel) return add_packed(set, g, *g.weights->kernel, choices);
        add_dense(set, g, choices);
      },
      [&](const graph::Attention& a) {
        add_attention(set, a, choices);
        add(set, a.backward && choices.fused_training, {training_backward_share});
      },
      [&](const graph::Convolution&) {
        add(set, true, {gemm_launch, gemm_memory_share, gemm_overlap, convolution_share});
      },
      [&](const graph::Vector& v) {
        if (op.tag == graph::Tag::dequantise) return add(set, true, {vector_launch, dequantise_share});
        add(set, true, kStreams);
        add(set, strided(v) > 0, {vector_element_rate});
        add(set, reduced_rows(v) > 0, {vector_reduce_rate, vector_reduce_row});
        add(set, sampled(v) > 0, {vector_sampling_rate});
        add(set, drawn(v) > 0, {vector_draw_bytes});
      },
      [&](const graph::Copy& c) {
        add(set, true, kStreams);
        add(set, strided(c) > 0, {vector_element_rate});
        add(set, c.to_cache, {append_share, append_token});
      },
      [&](const graph::Collective& c) { add_collective(set, c, choices); }, [](const graph::Overhead&) {},
      [&](const auto&) { add(set, true, kStreams); });
}

}  // namespace

std::vector<std::size_t> parameters_of(const graph::Op& op, const KernelChoices& choices) {
  ParameterSet set;
  const bool on_device = op.place != graph::Place::host && op.place != graph::Place::link;
  if (on_device && !choices.tile_mappings) add_calls(set, op, choices);
  if (choices.tile_mappings && op.place == graph::Place::device) {
    add_tiles(set, op, choices);
  } else if (std::holds_alternative<graph::Scan>(op.body)) {
    add(set, true, kStreams);
    add(set, true, {prefill_share, scan_launch, scan_share});
  } else if (choices.ggml && on_device && is_ggml(op)) {
    add_ggml(set, op, choices);
    add(set, op.launches > 1, {vector_launch});
  } else if (on_device) {
    add_kernel(set, op, choices);
    const auto* c = std::get_if<graph::Collective>(&op.body);
    add(set, choices.ggml && c && c->kind == graph::CollectiveKind::send, {split_hop});
    // A chip that is warm, or slowed down while it multiplies.
    const auto* attention = std::get_if<graph::Attention>(&op.body);
    const bool product = std::holds_alternative<graph::Gemm>(op.body);
    const bool multiplies = product || attention || std::holds_alternative<graph::Convolution>(op.body);
    add(set, choices.power == hardware::Power::sustained && (multiplies || is_around_experts(op)), {power_sustained});
    const bool long_enough = product || (attention && !is_decode(*attention));
    add(set, choices.power != hardware::Power::none && long_enough, {power_onset});
  }
  const bool runs =
      !std::holds_alternative<graph::Collective>(op.body) && !std::holds_alternative<graph::Overhead>(op.body);
  add(set, choices.ggml && on_device && runs && op.launches > 0, {launch_core});
  std::vector<std::size_t> result;
  for (std::size_t p = 0; p < set.size(); ++p) {
    if (set[p]) result.push_back(p);
  }
  return result;
}

std::optional<std::size_t> host_parameter_of(const graph::Op& op, const KernelChoices& choices) {
  const auto* gemm = std::get_if<graph::Gemm>(&op.body);
  const bool mapped = choices.tile_mappings && op.place == graph::Place::device;
  if (mapped || choices.ggml || !gemm || !gemm->weights || !gemm->weights->kernel) return std::nullopt;
  return index(*gemm->weights->kernel, FormatParameter::host);
}

void each_extent(const graph::Op& op, const std::function<void(double)>& visit) {
  const auto all = [&](auto... numbers) { (visit(static_cast<double>(numbers)), ...); };
  const auto tiles = [&](const graph::OnTiles& t) {
    all(t.passes);
    for (const std::string_view text : {t.local, t.grid, t.mapping}) all(std::hash<std::string_view>()(text));
  };
  all(is_around_experts(op) ? static_cast<int>(op.tag) : 0);
  match(
      op.body,
      [&](const graph::Gemm& g) {
        all(g.m, g.n, g.k, g.batch, g.weight_matrices, g.row_tiles.front(), g.row_tiles.back(), bits(g.activation),
            g.copies, g.alone ? 1 : 0, g.weights && g.weights->kernel ? static_cast<int>(*g.weights->kernel) : -1);
        tiles(g.tiles);
      },
      [&](const graph::Attention& a) {
        all(a.sequences, a.q_tokens, a.context, a.longest, a.heads, a.kv_heads, a.qk_dim, a.v_dim, a.window.value_or(0),
            a.query_tile, a.verifies ? 1 : 0, a.copies, a.pool, a.picked ? 1 : 0);
        tiles(a.tiles);
      },
      [&](const graph::Collective& c) {
        all(static_cast<int>(c.kind), c.ranks, c.stride, c.rows * c.width, c.library ? 1 : 0, c.with_norm ? 1 : 0,
            c.routing.returns ? 1 : 0);
      },
      [&](const graph::Copy& c) { all(c.to_cache ? 1 : 0, c.rows, strided(c)); },
      [&](const graph::Vector& v) {
        all(static_cast<int>(v.kind), strided(v), reduced_rows(v), sampled(v), op.tag == graph::Tag::softmax ? 1 : 0);
      },
      // Their work says it all.
      [&](const graph::Scan& scan) { all(scan.tokens, scan.chunk); }, [](const graph::Convolution&) {},
      [](const graph::Gather&) {}, [](const graph::Transfer&) {}, [](const graph::Overhead&) {});
}

}  // namespace llmperf::mapper
