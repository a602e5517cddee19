// Operations per element are those of XLA's own cost analysis (openxla/xla, hlo_cost_analysis.cc), where every
// element-wise result is one operation, the transcendental ones too.
#include "graph/hlo/op_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace llmperf::graph::hlo {
namespace {

using enum OpClass;

constexpr std::string_view kClassNames[] = {
    "elementwise", "movement", "broadcast", "slice",     "update",        "free",   "product",     "convolution",
    "reduce",      "window",   "sort",      "transform", "factorization", "random", "attention",   "normalization",
    "collective",  "transfer", "call",      "loop",      "branch",        "region", "custom_call", "unknown"};
static_assert(std::size(kClassNames) == static_cast<std::size_t>(unknown) + 1);

struct Known {
  std::string_view op;
  OpClass op_class;
  double operations = 1;
};

// Of the dialects stablehlo, mhlo, chlo, vhlo and sdy, without the dialect; sorted.
constexpr auto kOps = [] {
  std::array ops = std::to_array<Known>({
      {"_asin_acos_kernel", elementwise},
      {"abs", elementwise},
      {"acos", elementwise},
      {"acosh", elementwise},
      {"add", elementwise},
      {"add_any", elementwise},
      {"add_dependency", free},
      {"after_all", free},
      {"all_gather", collective},
      {"all_reduce", collective},
      {"all_slice", free},
      {"all_to_all", collective},
      {"and", elementwise},
      {"asin", elementwise},
      {"asinh", elementwise},
      {"async_done", free},
      {"async_start", call},
      {"async_update", free},
      {"atan", elementwise},
      {"atan2", elementwise},
      {"atanh", elementwise},
      {"batch_norm_grad", normalization, 10},
      {"batch_norm_inference", normalization, 5},
      {"batch_norm_training", normalization, 7},
      {"bessel_i1e", elementwise},
      {"bitcast", free},
      {"bitcast_convert", free},
      {"broadcast", broadcast},
      {"broadcast_in_dim", broadcast},
      {"case", branch},
      {"cbrt", elementwise},
      {"ceil", elementwise},
      {"cholesky", factorization},
      {"clamp", elementwise},
      {"collective_broadcast", collective},
      {"collective_permute", collective},
      {"compare", elementwise},
      {"complex", elementwise},
      {"composite", call},
      {"concatenate", movement},
      {"compute_reshape_shape", free},
      {"conj", elementwise},
      {"constant", free},
      {"constant_like", broadcast},
      {"convert", elementwise},
      {"convolution", convolution},
      {"copy", movement},
      {"cosh", elementwise},
      {"cosine", elementwise},
      {"count_leading_zeros", elementwise},
      {"create_token", free},
      {"cross-replica-sum", collective},
      {"custom_call", custom_call},
      {"cstr_reshapable", free},
      {"data_flow_edge", free},
      {"digamma", elementwise},
      {"divide", elementwise},
      {"domain", free},
      {"dot", product},
      {"dot_general", product},
      {"dynamic_broadcast_in_dim", broadcast},
      {"dynamic_conv", convolution},
      {"dynamic_gather", slice},
      {"dynamic_iota", broadcast},
      {"dynamic_pad", movement},
      {"dynamic_reshape", free},
      {"dynamic_slice", slice},
      {"dynamic_update_slice", update},
      {"einsum", product},
      {"erf", elementwise},
      {"erf_inv", elementwise},
      {"erfc", elementwise},
      {"exponential", elementwise},
      {"exponential_minus_one", elementwise},
      {"fft", transform},
      {"floor", elementwise},
      {"fusion", region},
      {"gather", slice},
      {"get_dimension_size", free},
      {"get_tuple_element", free},
      {"if", branch},
      {"imag", elementwise},
      {"infeed", transfer},
      {"iota", broadcast},
      {"is_finite", elementwise},
      {"is_inf", elementwise},
      {"is_neg_inf", elementwise},
      {"is_pos_inf", elementwise},
      {"lgamma", elementwise},
      {"log", elementwise},
      {"log_plus_one", elementwise},
      {"logistic", elementwise},
      {"manual_computation", region},
      {"map", elementwise},
      {"maximum", elementwise},
      {"mesh", free},
      {"minimum", elementwise},
      {"minimum_broadcast_shapes", free},
      {"mulhi", elementwise},
      {"multiply", elementwise},
      {"named_computation", region},
      {"negate", elementwise},
      {"next_after", elementwise},
      {"not", elementwise},
      {"optimization_barrier", free},
      {"or", elementwise},
      {"outfeed", transfer},
      {"pad", movement},
      {"partition_id", free},
      {"polygamma", elementwise},
      {"popcnt", elementwise},
      {"power", elementwise},
      {"propagation_barrier", free},
      {"ragged_dot", product},
      {"ragged_all_to_all", collective},
      {"real", elementwise},
      {"real_dynamic_slice", slice},
      {"recv", transfer},
      {"reduce", reduce},
      {"reduce_precision", elementwise},
      {"reduce_scatter", collective},
      {"reduce_window", window},
      {"remainder", elementwise},
      {"replica_id", free},
      {"reshape", free},
      {"reshard", free},
      {"return", free},
      {"reverse", movement},
      {"rng", random},
      {"rng_bit_generator", random},
      {"rng_normal", random},
      {"rng_uniform", random},
      {"round_nearest_afz", elementwise},
      {"round_nearest_even", elementwise},
      {"rsqrt", elementwise},
      {"scatter", update},
      {"select", elementwise},
      {"select_and_scatter", window},
      {"send", transfer},
      {"set_dimension_size", free},
      {"sharding_constraint", free},
      {"sharding_group", free},
      {"shift_left", elementwise},
      {"shift_right_arithmetic", elementwise},
      {"shift_right_logical", elementwise},
      {"sign", elementwise},
      {"sine", elementwise},
      {"sinh", elementwise},
      {"slice", slice},
      {"sort", sort},
      {"sqrt", elementwise},
      {"square", elementwise},
      {"stochastic_convert", elementwise},
      {"subtract", elementwise},
      {"tan", elementwise},
      {"tanh", elementwise},
      {"top_k", sort},
      {"topk", sort},
      {"torch_index_select", slice},
      {"trace", free},
      {"transpose", movement},
      {"triangular_solve", factorization},
      {"tuple", free},
      {"unary_einsum", reduce},
      {"uniform_dequantize", elementwise},
      {"uniform_quantize", elementwise},
      {"while", loop},
      {"xor", elementwise},
      {"zeta", elementwise},
  });
  std::sort(ops.begin(), ops.end(), [](const Known& a, const Known& b) { return a.op < b.op; });
  return ops;
}();

// Of other dialects, with the dialect, or a whole dialect as "name.".
constexpr Known kOthers[] = {
    {"func.call", call},      {"call", call},
    {"func.return", free},    {"return", free},
    {"arith.constant", free}, {"constant", free},
    {"std.constant", free},   {"arith.", elementwise},
    {"math.", elementwise},   {"tensor.", free},
    {"shape.", free},         {"check.", free},
    {"ml_program.", free},    {"builtin.unrealized_conversion_cast", free},
    {"quant.", elementwise},  {"mpmd.", free},
    {"util.global.", free},
};

constexpr std::string_view kDialects[] = {"stablehlo", "mhlo", "chlo", "vhlo", "sdy", "xla_hlo"};

}  // namespace

std::string_view name(OpClass op_class) { return kClassNames[static_cast<std::size_t>(op_class)]; }

std::optional<OpClass> parse_op_class(std::string_view text) {
  for (std::size_t i = 0; i < std::size(kClassNames); ++i) {
    if (kClassNames[i] == text) return static_cast<OpClass>(i);
  }
  return std::nullopt;
}

bool is_hlo(std::string_view op) {
  return std::find(std::begin(kDialects), std::end(kDialects), op.substr(0, op.find('.'))) != std::end(kDialects);
}

Traits traits_of(std::string_view op) {
  if (is_hlo(op)) {
    const std::string_view dialect = op.substr(0, op.find('.'));
    std::string_view word = op.substr(op.find('.') + 1);
    // vhlo.add_v1; chlo.broadcast_add, which is an add behind implicit broadcasts.
    if (dialect == "vhlo") word = word.substr(0, word.rfind("_v"));
    if (dialect == "chlo" && word.starts_with("broadcast_")) word.remove_prefix(10);
    const auto found =
        std::lower_bound(kOps.begin(), kOps.end(), word, [](const Known& k, std::string_view w) { return k.op < w; });
    if (found != kOps.end() && found->op == word) return {found->op_class, found->operations};
    return {};
  }
  for (const Known& known : kOthers) {
    if (op == known.op || (known.op.ends_with('.') && op.starts_with(known.op))) {
      return {known.op_class, known.operations};
    }
  }
  return {};
}

bool is_foreign(std::string_view op) { return !is_hlo(op) && traits_of(op).op_class == unknown; }

std::string foreign_message(std::string_view op) {
  return fmt::format("{}: programs of the dialect {} are not read", op, quote(op.substr(0, op.find('.'))));
}

}  // namespace llmperf::graph::hlo
