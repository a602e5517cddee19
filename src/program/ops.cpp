// Operations per element are those of XLA's own cost analysis (openxla/xla, hlo_cost_analysis.cc), where every
// element-wise result is one operation, the transcendental ones too.
#include "program/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/text.h"
#include "descriptor/catalog.h"
#include "descriptor/reader.h"

namespace llmperf::program {
namespace {

struct Row {
  std::string_view ops;  // with spaces between
  OpClass op_class;
  double operations = 1;
  std::uint32_t mark = 0;
};

// Of the dialects stablehlo, mhlo, chlo, vhlo and sdy, without the dialect: ops that are alike are one row.
constexpr Row kRows[] = {
    {"_asin_acos_kernel abs acos acosh add add_any and asin asinh atan atan2 atanh bessel_i1e cbrt ceil compare "
     "complex conj convert cosh count_leading_zeros digamma divide erf_inv exponential_minus_one floor imag is_finite "
     "is_inf is_neg_inf is_pos_inf lgamma log log_plus_one map maximum minimum mulhi multiply negate next_after not or "
     "polygamma popcnt real reduce_precision remainder round_nearest_afz round_nearest_even select shift_left "
     "shift_right_arithmetic shift_right_logical sign sinh square stochastic_convert subtract tan uniform_dequantize "
     "uniform_quantize xor zeta",
     OpClass::elementwise},
    {"clamp", OpClass::elementwise, 1, kClamped},
    {"erf erfc", OpClass::elementwise, 1, kErf},
    {"exponential", OpClass::elementwise, 1, kExponential},
    {"logistic", OpClass::elementwise, 1, kLogistic},
    {"power rsqrt sqrt", OpClass::elementwise, 1, kRoot},
    {"tanh", OpClass::elementwise, 1, kTanh},
    {"cosine sine", OpClass::elementwise, 1, kTrigonometric},
    {"concatenate copy dynamic_pad pad reverse transpose", OpClass::movement},
    {"broadcast broadcast_in_dim constant_like dynamic_broadcast_in_dim dynamic_iota iota", OpClass::broadcast},
    {"dynamic_gather dynamic_slice gather real_dynamic_slice slice torch_index_select", OpClass::slice},
    {"dynamic_update_slice scatter", OpClass::update},
    {"add_dependency after_all all_slice async_done async_update bitcast bitcast_convert compute_reshape_shape "
     "constant create_token cstr_reshapable data_flow_edge domain dynamic_reshape get_dimension_size get_tuple_element "
     "mesh minimum_broadcast_shapes optimization_barrier partition_id propagation_barrier replica_id reshape reshard "
     "return set_dimension_size sharding_constraint sharding_group trace tuple",
     OpClass::free},
    {"dot dot_general einsum ragged_dot", OpClass::product},
    {"convolution dynamic_conv", OpClass::convolution},
    {"reduce unary_einsum", OpClass::reduce},
    {"reduce_window select_and_scatter", OpClass::window},
    {"sort top_k topk", OpClass::sort},
    {"fft", OpClass::transform},
    {"cholesky triangular_solve", OpClass::factorization},
    {"rng rng_bit_generator rng_normal rng_uniform", OpClass::random},
    {"batch_norm_inference", OpClass::normalization, 5},
    {"batch_norm_training", OpClass::normalization, 7},
    {"batch_norm_grad", OpClass::normalization, 10},
    {"all_gather all_reduce all_to_all collective_broadcast collective_permute cross-replica-sum ragged_all_to_all "
     "reduce_scatter",
     OpClass::collective},
    {"infeed outfeed recv send", OpClass::transfer},
    {"async_start composite", OpClass::call},
    {"while", OpClass::loop},
    {"case if", OpClass::branch},
    {"fusion manual_computation named_computation", OpClass::region},
    {"custom_call", OpClass::custom_call},
};
constexpr std::size_t kOpCount = [] {
  std::size_t count = std::size(kRows);
  for (const Row& row : kRows) count += static_cast<std::size_t>(std::ranges::count(row.ops, ' '));
  return count;
}();

struct KnownOp {
  std::string_view name;
  Traits traits;
};
constexpr auto kOps = [] {
  std::array<KnownOp, kOpCount> ops;
  auto op = ops.begin();
  for (const Row& row : kRows) {
    for (std::size_t begin = 0, end = 0; end < row.ops.size(); begin = end + 1) {
      end = std::min(row.ops.find(' ', begin), row.ops.size());
      *op++ = {row.ops.substr(begin, end - begin), {row.op_class, row.operations, row.mark}};
    }
  }
  std::ranges::sort(ops, [](const KnownOp& a, const KnownOp& b) { return a.name < b.name; });
  return ops;
}();

// Of other dialects, with the dialect, or a whole dialect as "name.".
constexpr std::pair<std::string_view, OpClass> kOthers[] = {
    {"func.call", OpClass::call},      {"call", OpClass::call},
    {"func.return", OpClass::free},    {"return", OpClass::free},
    {"arith.constant", OpClass::free}, {"constant", OpClass::free},
    {"std.constant", OpClass::free},   {"arith.", OpClass::elementwise},
    {"math.", OpClass::elementwise},   {"tensor.", OpClass::free},
    {"shape.", OpClass::free},         {"check.", OpClass::free},
    {"ml_program.", OpClass::free},    {"builtin.unrealized_conversion_cast", OpClass::free},
    {"quant.", OpClass::elementwise},  {"mpmd.", OpClass::free},
    {"util.global.", OpClass::free},
};

constexpr std::string_view kDialects[] = {"stablehlo", "mhlo", "chlo", "vhlo", "sdy", "xla_hlo"};

// What a custom call can be: the classes that are costed by their operands and results alone.
constexpr OpClass kCallable[] = {
    OpClass::elementwise, OpClass::movement,      OpClass::slice,         OpClass::update,   OpClass::free,
    OpClass::product,     OpClass::convolution,   OpClass::sort,          OpClass::random,   OpClass::attention,
    OpClass::transform,   OpClass::factorization, OpClass::normalization, OpClass::transfer, OpClass::reduce};

}  // namespace

std::string_view name(OpClass op_class) { return word_at(kOpClassWords, static_cast<std::size_t>(op_class)); }

bool is_hlo(std::string_view op) { return contains(kDialects, op.substr(0, op.find('.'))); }

std::string_view plain_op(std::string_view op) {
  const std::string_view dialect = op.substr(0, op.find('.'));
  op = op.substr(op.find('.') + 1);
  if (dialect == "vhlo") op = op.substr(0, op.rfind("_v"));
  if (op.starts_with("broadcast_") && op != "broadcast_in_dim") op.remove_prefix(10);
  return op;
}

Traits traits_of(std::string_view op) {
  const std::string_view word = plain_op(op);
  const auto found = std::lower_bound(kOps.begin(), kOps.end(), word,
                                      [](const KnownOp& known, std::string_view name) { return known.name < name; });
  const Traits traits = found != kOps.end() && found->name == word ? found->traits : Traits{};
  if (is_hlo(op)) return traits;
  for (const auto& [known, op_class] : kOthers) {
    if (op == known || (known.ends_with('.') && op.starts_with(known))) return {op_class, 1, traits.mark};
  }
  return {};
}

bool is_foreign(std::string_view op) { return !is_hlo(op) && traits_of(op).op_class == OpClass::unknown; }

std::string foreign_message(std::string_view op) {
  return fmt::format("{}: programs of the dialect {} are not read", op, quote(op.substr(0, op.find('.'))));
}

std::string_view target_of(const Instruction& i) {
  const auto text = i.find("call_target_name");
  return text ? unquoted(*text) : i.symbol;
}

CustomCalls CustomCalls::built_in() {
  CustomCalls calls;
  calls.add_document(descriptor::load(descriptor::Kind::program, "custom_calls"));
  return calls;
}

void CustomCalls::add_file(const std::string& path) { add_document(descriptor::parse_file(path)); }

void CustomCalls::add_document(const descriptor::Document& document) {
  descriptor::Problems problems(document.file);
  descriptor::Reader reader(document.root, problems, "table of custom calls");
  const std::vector<descriptor::Reader> entries = reader.optional_mappings("custom_calls");
  if (entries.empty()) reader.problem("custom_calls", "a table of custom calls has a list 'custom_calls'");
  std::vector<std::string_view> callable;
  for (const OpClass op_class : kCallable) callable.push_back(name(op_class));
  for (descriptor::Reader entry : entries) {
    const OpClass op_class = kCallable[entry.choice("as", callable)];
    const double operations = entry.optional_double("operations", 0, 1e6).value_or(1);
    const std::vector<std::string> targets = entry.optional_strings("targets");
    if (targets.empty()) entry.problem("targets", "an entry names the targets it is about: targets: [name, prefix*]");
    for (const std::string& target : targets) entries_[target] = {op_class, operations};
    entry.finish();
  }
  reader.optional_string("source");
  reader.finish();
  problems.throw_if_any();
}

std::optional<Traits> CustomCalls::find(std::string_view target) const {
  if (const auto found = entries_.find(target); found != entries_.end()) return found->second;
  // The longest prefix that fits.
  for (std::size_t size = target.size(); size > 0; --size) {
    const auto found = entries_.find(std::string(target.substr(0, size)) + '*');
    if (found != entries_.end()) return found->second;
  }
  return std::nullopt;
}

}  // namespace llmperf::program
