#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/number.h"
#include "base/text.h"
#include "descriptor/csv.h"
#include "import/collector.h"
#include "import/kernels.h"

namespace llmperf::import {
namespace {

using descriptor::Problems;
using measure::Phase;

// What the tables call the formats of weights, and the scheme with the type of the other operand.
struct TableScheme {
  std::string_view names;
  Dtype dtype;
  std::string_view weights;
};
constexpr TableScheme kTableSchemes[] = {
    {"bfloat16", Dtype::bf16, ""},         {"float16", Dtype::fp16, ""},
    {"fp8", Dtype::bf16, "fp8"},           {"fp8_block", Dtype::bf16, "fp8-block128"},
    {"int8_wo", Dtype::bf16, "int8"},      {"int4_wo", Dtype::bf16, "w4a16-g128"},
    {"sq|int8|w8a8", Dtype::bf16, "w8a8"}, {"nvfp4", Dtype::bf16, "nvfp4"},
    {"w4a16_mxfp4", Dtype::bf16, "mxfp4"},
};

// One table. The column of element types, which each kind calls otherwise, says which kind it is.
class KernelTable {
 public:
  KernelTable(std::string_view text, Problems& problems, Collector& into)
      : reader_(text, problems), problems_(&problems), into_(&into) {}

  void read() {
    read_rows(
        reader_, *problems_, [&] { return read_header(); }, [&] { read_row(); });
  }

 private:
  struct Kind {
    std::string_view dtype;    // the column that only tables of this kind have
    std::string_view columns;  // the others that rows need
    Mapped (KernelTable::*map)();
  };
  static constexpr std::string_view kAttentionColumns =
      "op_name|kv_cache_dtype|batch_size|isl|num_heads|num_key_value_heads|head_dim|step";
  static const std::array<Kind, 6> kKinds;

  bool read_header() {
    for (const descriptor::CsvCell& cell : reader_.cells()) names_.push_back(cell.text);
    for (const Kind& kind : kKinds) {
      if (find(kind.dtype)) kind_ = &kind;
    }
    if (kind_ == nullptr) {
      problem(1, "no column 'gemm_dtype', 'attn_dtype', 'mla_dtype', 'moe_dtype', 'nccl_dtype' or 'allreduce_dtype'",
              "read are tables of kernels with the columns of aiconfigurator's *_perf.txt");
      return false;
    }
    std::vector<std::string> missing;
    for (const std::string_view name : split(kind_->columns, '|')) {
      if (!find(name)) missing.push_back(quote(name));
    }
    if (!find("latency")) missing.push_back(quote("latency"));
    if (!missing.empty()) problem(1, fmt::format("no column {}", join(missing, ", ")));
    return missing.empty();
  }

  void read_row() {
    good_ = true;
    const std::optional<double> milliseconds = parse_double(text("latency"));
    if (!milliseconds && !text("latency").empty()) {
      problem(column("latency"), fmt::format("not a time in milliseconds: {}", quote(text("latency"))));
    }
    Mapped mapped = (this->*kind_->map)();
    if (!good_) return;
    std::string type(text("op_name"));
    if (!text("kernel_source").empty()) type += fmt::format("{}{}", type.empty() ? "" : " ", text("kernel_source"));
    const bool collective = kind_->dtype == "nccl_dtype" || kind_->dtype == "allreduce_dtype";
    into_->add({.type = type.empty() ? std::string(kind_->dtype) : type,
                .of = collective ? Class::communication : Class::kernel,
                .time = Seconds{std::max(0.0, milliseconds.value_or(0)) * 1e-3},
                .mapped = std::move(mapped),
                .line = reader_.line()});
  }

  Mapped gemm() {
    const TableScheme* scheme = scheme_of(text("gemm_dtype"));
    const measure::GemmShape shape{
        .m = integer("m"), .n = integer("n"), .k = integer("k"), .weights = weights_of(scheme)};
    if (scheme == nullptr) return kNoScheme;
    return measure::row_of(scheme->dtype, shape);
  }

  Mapped attention() {
    measure::AttentionShape a{.batch = integer("batch_size"),
                              .q_len = integer("isl"),
                              .kv_len = integer("isl") + integer("step"),
                              .heads = integer("num_heads"),
                              .kv_heads = integer("num_key_value_heads"),
                              .head_dim = integer("head_dim")};
    if (find("window_size")) a.window = std::max<std::int64_t>(0, integer("window_size"));
    if (find("beam_width") && integer("beam_width") > 1) return "beams";
    return with_cache(a, "attn_dtype");
  }

  Mapped latent_attention() {
    return with_cache(measure::LatentShape{.batch = integer("batch_size"),
                                           .q_len = integer("isl"),
                                           .kv_len = integer("isl") + integer("step"),
                                           .heads = integer("num_heads")},
                      "mla_dtype");
  }

  // The phase and the type of the cache. Modules have projections around the attention.
  template <class Shape>
  Mapped with_cache(Shape shape, std::string_view dtype_column) {
    const std::string_view operation = text("op_name");
    const bool decode = operation.find("generation") != std::string_view::npos;
    if (decode == (operation.find("context") != std::string_view::npos)) return "neither context nor generation";
    if (operation.find("module") != std::string_view::npos) return kNoSuchOp;
    if (decode) {
      shape.phase = Phase::decode;
      shape.q_len = 1;
    }
    const TableScheme* scheme = scheme_of(text(dtype_column));
    const std::optional<Dtype> cache = element_type(text("kv_cache_dtype")).dtype;
    if (scheme == nullptr || !scheme->weights.empty() || !cache) return kNoElementType;
    if (cache != scheme->dtype) shape.kv_dtype = name(*cache);
    return measure::row_of(scheme->dtype, shape);
  }

  Mapped experts() {
    const TableScheme* scheme = scheme_of(text("moe_dtype"));
    const std::string distribution(text("distribution"));
    const bool balanced = distribution == "balanced";
    const measure::ExpertsShape shape{.m = integer("num_tokens"),
                                      .hidden = integer("hidden_size"),
                                      .inter = integer("inter_size"),
                                      .topk = integer("topk"),
                                      .experts = integer("num_experts"),
                                      .tp = integer("moe_tp_size"),
                                      .ep = integer("moe_ep_size"),
                                      .weights = weights_of(scheme),
                                      .distribution = balanced ? "" : distribution};
    if (scheme == nullptr) return kNoScheme;
    if (!balanced && !measure::drawn_exponent(distribution)) return "distribution not known";
    return measure::row_of(scheme->dtype, shape);
  }

  Mapped collective() { return exchange_of(collective_in(text("op_name")), "nccl_dtype"); }
  Mapped custom_all_reduce() { return exchange_of("custom_all_reduce", "allreduce_dtype"); }

  // Messages are counted in elements.
  Mapped exchange_of(const std::string& op, std::string_view dtype_column) {
    const std::int64_t ranks = integer("num_gpus");
    const ElementType element = element_type(text(dtype_column));
    Mapped row =
        collective_row(op, ranks, static_cast<double>(integer("message_size")) * element.bits / 8, element.dtype);
    if (row.row && op == "custom_all_reduce") std::get<measure::CollectiveShape>(row.row->shape).custom = true;
    return row;
  }

  static constexpr const char* kNoScheme = "no scheme of weights";
  static const TableScheme* scheme_of(std::string_view name) {
    const auto* found = std::find_if(std::begin(kTableSchemes), std::end(kTableSchemes),
                                     [&](const TableScheme& s) { return is_among(name, s.names); });
    return found == std::end(kTableSchemes) ? nullptr : found;
  }
  static std::string weights_of(const TableScheme* scheme) { return scheme ? std::string(scheme->weights) : ""; }

  std::optional<std::size_t> find(std::string_view name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    return found == names_.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - names_.begin()));
  }
  std::string_view text(std::string_view name) const {
    const std::optional<std::size_t> at = find(name);
    return at ? std::string_view(reader_.cells()[*at].text) : std::string_view();
  }
  int column(std::string_view name) const { return reader_.cells()[*find(name)].column; }
  void problem(int column, std::string message, std::string hint = {}) {
    problems_->add(reader_.line(), column, std::move(message), std::move(hint));
    good_ = false;
  }
  std::int64_t integer(std::string_view name) {
    const std::optional<std::int64_t> value = parse_int(text(name));
    if (value && *value >= -kMostElements && *value <= kMostElements) return *value;
    problem(column(name), fmt::format("not a number of {}: {}", name, quote(text(name))));
    return 0;
  }

  descriptor::CsvReader reader_;
  Problems* problems_;
  Collector* into_;
  std::vector<std::string> names_;  // of columns
  const Kind* kind_ = nullptr;
  bool good_ = true;
};

const std::array<KernelTable::Kind, 6> KernelTable::kKinds = {{
    {"gemm_dtype", "m|n|k", &KernelTable::gemm},
    {"attn_dtype", kAttentionColumns, &KernelTable::attention},
    {"mla_dtype", "op_name|kv_cache_dtype|batch_size|isl|num_heads|step", &KernelTable::latent_attention},
    {"moe_dtype", "num_tokens|hidden_size|inter_size|topk|num_experts|moe_tp_size|moe_ep_size|distribution",
     &KernelTable::experts},
    {"nccl_dtype", "op_name|num_gpus|message_size", &KernelTable::collective},
    {"allreduce_dtype", "num_gpus|message_size", &KernelTable::custom_all_reduce},
}};

}  // namespace

void read_aiconfigurator(std::string_view text, const Options&, Problems& problems, Collector& into) {
  KernelTable(text, problems, into).read();
}

}  // namespace llmperf::import
