#include "mapper/roofline/efficiency.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/integer.h"
#include "base/match.h"
#include "base/text.h"
#include "mapper/roofline/kernels.h"

namespace llmperf::mapper {
namespace {

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
double sampled(const graph::Vector& v) { return v.kind == graph::VectorKind::sampling ? d(v.rows) * d(v.width) : 0; }
double strided(const graph::Copy& c) { return c.access == graph::Access::strided ? c.write_elements : 0; }

bool is_decode(const graph::Attention& a) { return (a.q_tokens == 1 || a.verifies) && a.context > 0; }
// By the kernel of decode: one new token per sequence, and with CANN's a few, whose heads of a group fill no block.
bool decodes(const graph::Attention& a, const KernelChoices& choices) {
  return is_decode(a) || (choices.attention == hardware::AttentionKernels::cann && a.context > 0 &&
                          a.q_tokens * a.heads <= choices.query_rows * a.kv_heads);
}
bool is_latent(const graph::Attention& a) { return a.shared_kv || a.qk_dim != a.v_dim; }

// Of every parameter, the sections it belongs to.
const std::array<unsigned, hardware::kAllParameters>& table() {
  constexpr std::pair<std::string_view, unsigned> kSections[] = {
      {"gemm product", kGemm | kFormat},
      {"format", kFormat},
      {"prefill", kPrefill},
      {"decode", kDecode},
      {"vector", kVector},
      {"collective network exchange custom split", kCollective},
      {"append", kAppend},
      {"latent", kLatent},
      {"experts", kExperts},
      {"scores", kGemm},
      {"power", kExperts | kGemm | kFormat | kPrefill | kDecode | kLatent | kConvolution},
      {"step launch host", kStep},
      {"convolution", kConvolution},
      {"tile", kTiles}};
  static const auto result = [&] {
    std::array<unsigned, hardware::kAllParameters> sections{};
    const auto set = [&](std::string_view section, unsigned of) {
      for (std::size_t i = 0; i < sections.size(); ++i) {
        const std::string_view name = hardware::parameter_info(i).name;
        if (name.substr(0, name.find('.')) == section) sections[i] = of;
        if (name.starts_with("format.") && name.ends_with(".host")) sections[i] = kStep;  // a cost of the host
      }
    };
    for (const auto& [names, of] : kSections) {
      for (const std::string_view section : split(names, ' ')) set(section, of);
    }
    return sections;
  }();
  return result;
}

// A library without a menu of tiles has one share. What a measurement leaves in the cache is asked for before.
bool dense_depends(std::size_t parameter, const KernelChoices& choices) {
  using enum hardware::Parameter;
  if (parameter == index(gemm_resident_share)) return true;
  const bool of_split = parameter == index(gemm_split_launch) || parameter == index(gemm_split_share);
  if (of_split && choices.cube_tiles) return true;
  const bool of_tiles = parameter >= index(gemm_share_16) && parameter < index(gemm_cached_share);
  if (of_tiles) return choices.tile_menu;
  if (parameter == index(gemm_cached_share)) return choices.cached_activations;
  return parameter != index(gemm_share) || !choices.tile_menu;
}

// Of a product of `rows` rows with packed weights: the parameters of the one kernel that runs (gemm_kernel.cpp).
bool packed_depends(FormatKernel format, std::int64_t rows, std::size_t parameter, const KernelChoices& choices) {
  using enum hardware::Parameter;
  using hardware::FormatParameter;
  const std::int64_t unpack_rows = choices.dequantise_rows[static_cast<std::size_t>(format)];
  const bool unpacks = unpack_rows > 0 && rows >= unpack_rows;
  const bool small = choices.small_rows > 0 && rows <= choices.small_rows;
  const bool large = choices.small_rows > 0 && !small;
  if (parameter == index(gemm_launch)) return true;
  if (parameter == index(dequantise_share) || parameter == index(dequantise_cached)) return unpacks;
  if (parameter == index(format_overlap)) return !unpacks && !large;
  if (parameter == index(format_small_overlap)) return !unpacks && large;
  if (parameter < hardware::kParameters) return unpacks && dense_depends(parameter, choices);
  if (parameter == index(format, FormatParameter::host)) return true;
  if (parameter == index(format, FormatParameter::reduce)) return !unpacks && in_stripes(format);
  if (parameter == index(format, FormatParameter::memory_share)) return !unpacks;
  if (parameter == index(format, FormatParameter::share)) return !unpacks && !small;
  return parameter == index(format, FormatParameter::small_share) && !unpacks && small;
}

// The same of a narrow product (gemm_kernel.cpp).
bool narrow_depends(FormatKernel format, std::int64_t rows, std::size_t parameter, const KernelChoices& choices) {
  using hardware::FormatParameter;
  if (parameter == index(format, FormatParameter::host)) return true;
  const hardware::ProductTiles rule = choices.product_tiles[static_cast<std::size_t>(format)];
  if (rule == hardware::ProductTiles::menu) {
    if (parameter == index(format, FormatParameter::share) || parameter == index(format, FormatParameter::step))
      return true;
    return parameter < index(hardware::Parameter::format_overlap) && dense_depends(parameter, choices);
  }
  const bool small = has_small_rows(rule, d(rows));
  if (parameter == index(format, FormatParameter::share)) return !small;
  if (parameter == index(format, FormatParameter::small_share)) return small;
  return parameter >= index(format, FormatParameter::share) && parameter < index(format, FormatParameter::count);
}

// Ops that ggml has kernels of its own for.
bool is_ggml(const graph::Op& op) {
  return std::holds_alternative<graph::Gemm>(op.body) || std::holds_alternative<graph::Attention>(op.body) ||
         op.tag == graph::Tag::softmax;
}
// Parameters of no other library.
bool of_ggml_only(std::size_t parameter) {
  using enum hardware::Parameter;
  return (parameter >= index(product_rows) && parameter <= index(split_kernels)) ||
         (parameter >= hardware::kParameters && (parameter - hardware::kParameters) % hardware::kFormatParameters ==
                                                    static_cast<std::size_t>(hardware::FormatParameter::unpack_rate));
}
// Of ggml's kernels (ggml_kernel.cpp): the parameters of the one that runs.
bool ggml_depends(const graph::Op& op, std::size_t parameter, const KernelChoices& choices) {
  using enum hardware::Parameter;
  using hardware::FormatParameter;
  const auto any = [&](auto... those) { return ((parameter == index(those)) || ...); };
  if (std::holds_alternative<graph::Attention>(op.body)) {
    return any(decode_launch, prefill_share, decode_memory_share);
  }
  const auto* gemm = std::get_if<graph::Gemm>(&op.body);
  if (gemm == nullptr) return op.tag == graph::Tag::softmax && any(vector_launch, scores_bytes);
  if (!gemm->weights) return any(gemm_launch, scores_share, scores_memory_share);
  const bool grouped = gemm->weight_matrices > 1;
  const FormatKernel format = gemm->weights->kernel.value_or(FormatKernel::wide);
  const double rows = grouped ? d(gemm->m) / gemm->weight_matrices : d(gemm->m);
  if (any(gemm_launch, gemm_memory_share)) return true;
  const GgmlProduct kernel = ggml_product(choices, format, rows);
  const bool few = kernel == GgmlProduct::few_rows;
  const bool loads = kernel != GgmlProduct::wide || format == FormatKernel::wide;
  if (any(format_small_overlap) || parameter == index(format, FormatParameter::unpack_rate)) return loads;
  if (few) return false;
  if (any(product_unpack)) return loads && (kernel == GgmlProduct::packed || has_own_wide(choices));
  if (grouped && any(product_experts)) return true;
  if (kernel == GgmlProduct::packed) {
    return any(format_overlap) || parameter == index(format, FormatParameter::share);
  }
  return any(gemm_share, gemm_overlap, product_rows, per_watt) ||
         (format != FormatKernel::wide && any(dequantise_share));
}

// Of the kernels that the profile's library has, those that run, and of their parameters what the shape meets.
bool attention_depends(const graph::Attention& a, std::size_t parameter, const KernelChoices& choices) {
  using enum hardware::Parameter;
  const auto p = static_cast<hardware::Parameter>(parameter);
  const bool flash2 = choices.has_flash2_form();
  const bool own = p >= latent_launch && p <= latent_token;
  const bool prompt = p >= latent_prompt_launch;
  const AttentionCall call = call_of(a);
  const bool decode = decodes(a, choices);
  const unsigned phase = table()[parameter] & (kPrefill | kDecode);
  const bool copied = a.q_tokens == 1 && (p == decode_copy || p == decode_copy_share);  // also of a first token
  if (phase != 0 && phase != (decode ? kDecode : kPrefill) && !copied) return false;
  if (a.shared_kv && choices.attention != hardware::AttentionKernels::flash2) return own && !prompt;
  if (flash2 && own) return false;
  if (!flash2 && is_latent(a) && !is_decode(a)) {
    if (p == prefill_quantise) return call.narrow();
    return own ? prompt : p == prefill_memory_share || p == prefill_overlap || p == prefill_tail;
  }
  switch (p) {
    case prefill_fill: return choices.attention == hardware::AttentionKernels::cann;
    case prefill_share: return flash2 || !call.narrow();
    case prefill_exponential_rate: return !flash2 && !call.narrow();
    case prefill_narrow_share:
    case prefill_quantise:
    case decode_quantise: return !flash2 && call.narrow();
    case decode_sequence: return !flash2;
    case decode_window: return !flash2 && call.cuts();
    case decode_pack:
    case decode_copy:
    case decode_copy_share: return flash2;
    case decode_resident_share: return flash2 && is_decode(a);
    default: return !own;
  }
}

// Of an op that is mapped to tiles.
bool tiles_depend(const graph::Op& op, std::size_t parameter, const KernelChoices& choices) {
  using enum hardware::Parameter;
  const auto* gemm = std::get_if<graph::Gemm>(&op.body);
  const bool prompt = gemm && gemm->weights && gemm->m * gemm->batch > choices.near_rows;
  const bool near = gemm && gemm->weights && !prompt;
  if (parameter == index(tile_prompt_share)) return prompt;
  if (parameter == index(tile_attention_keys)) {
    const auto* attention = std::get_if<graph::Attention>(&op.body);
    return attention && attention->q_tokens > 1 && !attention->verifies;
  }
  if (parameter >= index(tile_attention_share) && parameter <= index(tile_attention_keys)) {
    return std::holds_alternative<graph::Attention>(op.body);
  }
  if (parameter == index(tile_dram_near_share)) return near;
  if (parameter == index(tile_dram_share)) return !near && !std::holds_alternative<graph::Attention>(op.body);
  if (parameter == index(tile_matrix_share) || parameter == index(tile_feed_share)) return gemm != nullptr;
  if (parameter == index(tile_vector_share)) {
    return gemm == nullptr || gemm->joined.any() || (gemm->weights && gemm->weights->dequant_flops > 0);
  }
  return true;
}

// Of a product of experts, and of what is around it.
bool experts_depend(const graph::Op& op, std::size_t parameter) {
  using enum hardware::Parameter;
  const auto* gemm = std::get_if<graph::Gemm>(&op.body);
  if (gemm == nullptr) return parameter == index(experts_stream_share);
  const std::optional<FormatKernel> format = gemm->weights->kernel;
  if (parameter == index(experts_unaligned_share)) return !is_aligned(d(gemm->k));
  if (format && parameter == index(*format, hardware::FormatParameter::host)) return true;
  const std::size_t first = index(format, hardware::ExpertParameter::launch);
  return parameter >= first && parameter < first + hardware::kExpertParameters;
}

// What convolutions share with products (convolution_seconds in gemm_kernel.cpp).
bool of_convolution(std::size_t parameter) {
  using enum hardware::Parameter;
  return parameter == index(gemm_launch) || parameter == index(gemm_memory_share) || parameter == index(gemm_overlap);
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
  constexpr double kUsualClock = 1.7e9;
  device_.clock = device.clock_hz.value_or(kUsualClock) * device.clock_ratio();
  device_.integer = roofline.matrix_rate(Dtype::fp16, cost::Sums::integer).value;
  device_.power = device.power_w.value_or(0);
}

KernelDevice Efficiency::on(Dtype dtype, cost::Sums sums) const {
  KernelDevice result = device_;
  result.matrix = roofline_.matrix_rate(dtype, sums).value * profile_.choices.clock;
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
    return expert_time(on(dtype), profile_.values, gemm.weights->kernel, call, gemm.row_tiles);
  }
  if (choices.ggml) return ggml_kernel(gemm, call);
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

KernelDevice Efficiency::on_unpacked(Dtype activation) const {
  KernelDevice device = on(activation);
  device.unpacked = profile_.choices.fp16_accumulate ? on(activation, cost::Sums::narrow).matrix : device.matrix;
  return device;
}

ProductTime Efficiency::ggml_kernel(const graph::Gemm& gemm, const GemmCall& call) const {
  const KernelDevice device = on_unpacked(gemm.activation);
  if (!gemm.weights) return scores_time(device, profile_.values, call);
  const FormatKernel format = gemm.weights->kernel.value_or(FormatKernel::wide);
  return ggml_time(device, profile_.values, profile_.choices, format, call, gemm.weight_matrices > 1);
}

double Efficiency::kernel(const graph::Attention& attention) const {
  const AttentionCall call = call_of(attention);
  if (profile_.choices.ggml) {
    return ggml_attention_seconds(on_unpacked(attention.activation), profile_.values, call, d(attention.query_tile));
  }
  const KernelDevice device = on(attention.activation);
  if (call.shared_kv && profile_.choices.attention != hardware::AttentionKernels::flash2) {
    return latent_seconds(device, profile_.values, call);
  }
  const double seconds = decodes(attention, profile_.choices)
                             ? decode_seconds(device, profile_.values, profile_.choices, call)
                             : prefill_seconds(device, profile_.values, profile_.choices, call);
  // Backward: five products in place of two, over the same blocks.
  return attention.backward ? 2.5 * seconds : seconds;
}

// What of the kernel is its launch.
double Efficiency::launch(const graph::Attention& attention) const {
  const bool flash2 = profile_.choices.has_flash2_form();
  const Parameter p = decodes(attention, profile_.choices) ? Parameter::decode_launch
                      : !flash2 && is_latent(attention)    ? Parameter::latent_prompt_launch
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
  const double cached = cached_bytes(work, op.launches);
  return (work.bytes().value - cached) / (device_.bandwidth * get(v, Parameter::vector_memory_share)) +
         cached / (device_.bandwidth * get(v, Parameter::vector_cached_share));
}

OpTime Efficiency::time(const graph::Op& op, const cost::Work& work) const {
  OpTime t = roofline_.time(work);
  const ParameterValues& v = profile_.values;
  const double vector_launches = op.launches * get(v, Parameter::vector_launch);
  const double more = std::max(0, op.launches - 1) * get(v, Parameter::vector_launch);
  double seconds = 0;
  double launch = 0;
  std::optional<ProductTime> product;
  bool walks = false;  // bound by the elements of a vector kernel, not by their bytes
  const auto streams = [&](double walk) {
    launch = vector_launches;
    const double bytes = stream(op, work);
    seconds = launch + std::max(bytes, walk);
    walks = walk > bytes;
  };
  const bool around_experts = profile_.choices.grouped_experts && is_around_experts(op);
  const auto streams_around = [&] {
    seconds = work.bytes().value / (device_.bandwidth * get(v, Parameter::experts_stream_share));
  };
  match(
      op.body,
      [&](const graph::Gemm& gemm) {
        product = kernel(gemm, work);
        const bool launched = op.launches > 0;  // else it is part of the kernel before it
        seconds = with_onset(product->seconds) + (launched ? more : -product->launch);
        launch = launched ? product->launch + more : 0;
        t.matrix = work.matrix / roofline_.matrix_rate(work.matrix_dtype, sums(work));
      },
      [&](const graph::Attention& attention) {
        const double own = kernel(attention);
        const double joined = op.launches > 0 ? 0 : this->launch(attention);  // part of the launch before it
        seconds = (decodes(attention, profile_.choices) ? own : with_onset(own)) + more - joined;
        launch = more;
      },
      [&](const graph::Convolution&) {
        launch = get(v, Parameter::gemm_launch) + more;
        seconds = more + convolution_seconds(on(work.matrix_dtype), v, work.matrix.value, work.bytes().value);
      },
      [&](const graph::Scan&) {
        // Bound by its bytes, or in chunks by products, of which it gets the share that attention over prompts does.
        const double products = work.matrix.value / (on(work.matrix_dtype).matrix * get(v, Parameter::prefill_share));
        const double bytes = stream(op, work);
        launch = vector_launches;
        seconds = launch + std::max(bytes, products);
      },
      [&](const graph::Vector& vector) {
        if (around_experts) return streams_around();
        if (profile_.choices.ggml && op.tag == graph::Tag::softmax) {
          launch = vector_launches;
          seconds = launch + d(vector.rows) * d(vector.width) * get(v, Parameter::scores_bytes) / device_.bandwidth;
          return;
        }
        const double reduced =
            get(v, Parameter::vector_reduce_row) + d(vector.width) / get(v, Parameter::vector_reduce_rate);
        streams(std::max({strided(vector) / get(v, Parameter::vector_element_rate), reduced_rows(vector) * reduced,
                          sampled(vector) / get(v, Parameter::vector_sampling_rate)}));
      },
      [&](const graph::Gather&) { streams(0); },
      [&](const graph::Copy& copy) {
        if (around_experts) return streams_around();
        if (!copy.to_cache || copy.rows <= 0) return streams(strided(copy) / get(v, Parameter::vector_element_rate));
        launch = vector_launches;
        seconds =
            launch + append_seconds(device_, v, copy.rows, copy.write_elements / copy.rows / 2, work.bytes().value);
      },
      [&](const graph::Transfer&) { streams(0); },    // of no op of the device
      [&](const graph::Collective&) { streams(0); },  // alike: collective() below
      [&](const graph::Overhead&) {});
  if (std::holds_alternative<graph::Overhead>(op.body)) return t;
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
  t.total = std::max(cost::collective_cost(driven(cluster, profile_), c).time(), light.time());
  t.network = t.roof;
  if (profile_.choices.ggml && c.kind == graph::CollectiveKind::send) {
    t.total += Seconds{get(profile_.values, hardware::Parameter::split_hop)};
  }
  return t;
}

// ---- What the time depends on

unsigned sections_of(const graph::Op& op) {
  if (op.place == graph::Place::host || op.place == graph::Place::link) return 0;
  const bool grouped = std::holds_alternative<graph::Gemm>(op.body) && is_grouped(std::get<graph::Gemm>(op.body));
  const unsigned result = (op.launches > 1 ? kVector : 0U) | (grouped || is_around_experts(op) ? kExperts : 0U);
  const auto walk = [](double elements) { return elements > 0 ? kStrided : 0U; };
  return result |
         match(
             op.body, [](const graph::Gemm& g) -> unsigned { return g.weights && g.weights->kernel ? kFormat : kGemm; },
             [](const graph::Attention& a) -> unsigned {
               return (is_decode(a) ? kDecode : kPrefill | kDecode) | (is_latent(a) ? kLatent : 0U);
             },
             [](const graph::Convolution&) -> unsigned { return kConvolution | kGemm; },
             [](const graph::Scan&) -> unsigned { return kVector | kPrefill; },
             [&](const graph::Vector& v) -> unsigned { return kVector | walk(strided(v)); },
             [](const graph::Gather&) -> unsigned { return kVector; },
             [&](const graph::Copy& c) -> unsigned { return kVector | walk(strided(c)) | (c.to_cache ? kAppend : 0U); },
             [](const graph::Transfer&) -> unsigned { return kVector; },
             [](const graph::Collective&) -> unsigned { return kCollective; },
             [](const graph::Overhead&) -> unsigned { return 0; });
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
            g.copies, g.weights && g.weights->kernel ? static_cast<int>(*g.weights->kernel) : -1);
        tiles(g.tiles);
      },
      [&](const graph::Attention& a) {
        all(a.sequences, a.q_tokens, a.context, a.longest, a.heads, a.kv_heads, a.qk_dim, a.v_dim, a.window.value_or(0),
            a.query_tile, a.verifies ? 1 : 0, a.copies, a.pool, a.picked ? 1 : 0);
        tiles(a.tiles);
      },
      [&](const graph::Collective& c) {
        all(static_cast<int>(c.kind), c.ranks, c.stride, c.rows * c.width, c.library ? 1 : 0,
            c.routing.returns ? 1 : 0);
      },
      [&](const graph::Copy& c) { all(c.to_cache ? 1 : 0, c.rows, strided(c)); },
      [&](const graph::Vector& v) {
        all(strided(v), reduced_rows(v), sampled(v), op.tag == graph::Tag::softmax ? 1 : 0);
      },
      // Their work says it all.
      [&](const graph::Scan& scan) { all(scan.tokens, scan.chunk); }, [](const graph::Convolution&) {},
      [](const graph::Gather&) {}, [](const graph::Transfer&) {}, [](const graph::Overhead&) {});
}

bool depends(const graph::Op& op, unsigned sections, std::size_t parameter, const KernelChoices& choices) {
  using enum hardware::Parameter;
  const bool of_tiles = (table()[parameter] & kTiles) != 0;
  if (choices.tile_mappings && op.place == graph::Place::device)
    return of_tiles && tiles_depend(op, parameter, choices);
  if (of_tiles) return false;
  if (choices.ggml && sections != 0 && is_ggml(op)) {
    return ggml_depends(op, parameter, choices) || (op.launches > 1 && parameter == index(vector_launch));
  }
  if (std::holds_alternative<graph::Scan>(op.body)) {
    return parameter == index(vector_launch) || parameter == index(vector_memory_share) ||
           parameter == index(vector_cached_share) || parameter == index(prefill_share);
  }
  const auto* sent = std::get_if<graph::Collective>(&op.body);
  if (parameter == index(split_hop)) return choices.ggml && sent && sent->kind == graph::CollectiveKind::send;
  if ((table()[parameter] & sections) == 0 || of_ggml_only(parameter)) return false;
  if (parameter == index(power_onset)) {
    return choices.power != hardware::Power::none && (sections & (kGemm | kFormat | kPrefill)) != 0 &&
           !std::holds_alternative<graph::Convolution>(op.body);
  }
  if (parameter == index(power_sustained)) return choices.power == hardware::Power::sustained;
  if (const auto* c = std::get_if<graph::Collective>(&op.body)) {
    const bool all_reduce = c->kind == graph::CollectiveKind::all_reduce;
    const bool switched = parameter == index(switch_launch) || parameter == index(switch_share);
    if (switched) return choices.switch_reduces && choices.rings && all_reduce;
    if (parameter == index(collective_copy_share) || parameter == index(collective_fill)) return choices.rings;
    if (parameter == index(collective_reduce)) {
      return all_reduce || c->kind == graph::CollectiveKind::reduce_scatter;
    }
    if (parameter == index(collective_setup)) {
      return choices.small_collective > 0 && c->bytes().value > d(choices.small_collective);
    }
    if (parameter >= index(exchange_launch) && parameter <= index(exchange_share)) {
      return choices.exchange_tokens > 0 && c->routing.experts > 0 &&
             (parameter != index(exchange_there) || !c->routing.returns);
    }
    const bool custom = parameter >= index(custom_launch) && parameter <= index(custom_second_share);
    if (custom) {
      return choices.custom_all_reduce > 0 && !c->library && all_reduce &&
             c->bytes().value <= d(choices.custom_all_reduce);
    }
  }
  const auto* gemm = std::get_if<graph::Gemm>(&op.body);
  const auto* attention = std::get_if<graph::Attention>(&op.body);
  if (parameter == index(gemm_resident_share) && (gemm == nullptr || gemm->copies == 0)) return false;
  if (parameter == index(decode_resident_share) && (attention == nullptr || attention->copies == 0)) return false;
  if (choices.grouped_experts && (sections & kExperts) != 0) return experts_depend(op, parameter);
  if ((table()[parameter] & kExperts) != 0) return false;
  if (attention && (table()[parameter] & (kPrefill | kDecode | kLatent)) != 0) {
    return attention_depends(*attention, parameter, choices);
  }
  const bool of_format = parameter >= hardware::kParameters;
  const bool of_product = of_format || (table()[parameter] & (kGemm | kFormat)) != 0;
  if (parameter == index(vector_element_rate) && (sections & kStrided) == 0) return false;
  const auto* vector = std::get_if<graph::Vector>(&op.body);
  if (parameter == index(vector_reduce_rate) || parameter == index(vector_reduce_row)) {
    return vector && reduced_rows(*vector) > 0;
  }
  if (parameter == index(vector_sampling_rate)) return vector && sampled(*vector) > 0;
  if (std::holds_alternative<graph::Convolution>(op.body) && of_product) return of_convolution(parameter);
  if (gemm == nullptr || !of_product) return !of_format;  // beside products: the kernels that follow one
  if (multiplies_narrow(*gemm, choices)) return narrow_depends(*gemm->weights->kernel, gemm->m, parameter, choices);
  if (gemm->weights && gemm->weights->kernel) {
    return packed_depends(*gemm->weights->kernel, gemm->m, parameter, choices);
  }
  return !of_format && dense_depends(parameter, choices);
}

bool is_of_step(std::size_t parameter) { return (table()[parameter] & kStep) != 0; }

std::vector<std::size_t> parameters_of(const graph::Op& op, const KernelChoices& choices) {
  const unsigned sections = sections_of(op);
  std::vector<std::size_t> result;
  for (std::size_t p = 0; p < hardware::kAllParameters; ++p) {
    if (depends(op, sections, p, choices)) result.push_back(p);
  }
  return result;
}

}  // namespace llmperf::mapper
