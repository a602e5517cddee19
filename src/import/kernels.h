// The tensors of a kernel as profilers write them: shapes, element types and storage formats in lists of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/units.h"
#include "import/import.h"
#include "measure/op_row.h"

namespace llmperf::import {

using Shape = std::vector<std::int64_t>;

// Whether `name` is one of `names`, which stand between '|'.
bool is_among(std::string_view name, std::string_view names);

struct ElementType {
  std::optional<Dtype> dtype;  // nothing for types that measurements have no name for (int64, uint8 …)
  double bits = 0;             // 0: not known
};
// Of Ascend ("DT_BF16", "FLOAT", "INT8"), of PyTorch ("c10::BFloat16", "long int", "BFloat16", "float32") and of
// nccl-tests and hccl_test ("half", "fp32", "bfp16"), in either case of letters.
ElementType element_type(std::string_view name);

// An empty shape: the tensor is absent, or a scalar; profilers write both alike.
struct Tensor {
  Shape shape;
  ElementType element;
  // The last two dimensions are known up to a multiple of these (blocks of a fractal storage format): [3072, 12288].
  std::int64_t row_block = 1;
  std::int64_t column_block = 1;

  bool known() const { return !shape.empty() && element.bits > 0; }
};

inline constexpr std::int64_t kMostElements = 1'000'000'000'000'000;

// Product of dimensions `from` to `to` (all: the number of elements). Nothing when one is not positive or the product
// is larger than any tensor.
std::optional<std::int64_t> product(const Shape& shape, std::size_t from, std::size_t to);
std::optional<std::int64_t> elements(const Tensor& tensor);  // nothing for an absent one, too
std::optional<Bytes> bytes(const Tensor& tensor);

// The logical shape of a tensor in that format: FRACTAL_NZ stores [rows, columns] as [columns / c, rows / r, r, c].
// Others stay as they are.
void make_logical(Tensor& tensor, std::string_view format);

// ---- What the importers of profiles make of one kernel: the op it is a measurement of, or why it is none.

struct Mapped {
  std::optional<measure::OpRow> row;
  std::string remark;            // empty when there is a row
  const Group* group = nullptr;  // what it belongs to in place of a row; null: it is left out

  Mapped(measure::OpRow r) : row(std::move(r)) {}      // NOLINT(google-explicit-constructor)
  Mapped(std::string why) : remark(std::move(why)) {}  // NOLINT(google-explicit-constructor)
  Mapped(const char* why) : remark(why) {}             // NOLINT(google-explicit-constructor)
};

inline constexpr const char* kNoShapes = "no shapes";
inline constexpr const char* kNoSuchOp = "no such op";
inline constexpr const char* kNoProduct = "shapes do not multiply";
inline constexpr const char* kOtherShapes = "shapes not understood";
inline constexpr const char* kNoElementType = "element type";

// Rows of the `vector:` ops. x: [rows.., width]; `width` of it when that is not its last dimension.
Mapped vector_row(graph::VectorKind kind, const Tensor& x);
// Of two operands that become `out`: `kind` when all have one shape, else elementwise.
Mapped binary_row(graph::VectorKind kind, std::span<const Tensor* const> inputs, const Tensor& out);
// The bytes of all of them; m x n is the largest.
Mapped elementwise_row(std::span<const Tensor* const> tensors);
Mapped gather_row(const Tensor& table, const Tensor& indices, const Tensor& out);
// Keys and values [tokens, kv_heads, head_dim].
Mapped cache_row(const Tensor& keys);

// ---- Matrix products from the shapes of their operands, whose transpositions profilers do not write.

struct Product {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  bool operator==(const Product&) const = default;
};

// The one product whose operands are a, [m, k] or [k, m], and b, [k, n] or [n, k], and whose result is out [m, n], with
// leading dimensions that are the same or missing. Leading dimensions of a that all meet one b are rows: m. Nothing
// when the inner dimensions differ or the result is of another shape.
std::optional<Product> find_product(const Tensor& a, const Tensor& b, const Shape& out);

// op "gemm". `weights`: the scheme of b, empty for the type of a. `dtype`: of the result.
Mapped gemm_row(const Tensor& a, const Tensor& b, const Shape& out, std::optional<Dtype> dtype,
                const std::string& weights = {});

// ---- Fused attention from the shapes of queries, keys and values, whose layout profilers do not write.

struct AttentionTensors {
  const Tensor& query;
  const Tensor& key;
  // Statistics of the softmax, [batch, heads, q_len, any]: they tell layouts apart and say how many heads there are.
  const Tensor* statistics = nullptr;
  const Tensor* mask = nullptr;  // null: none
  // Nothing: by the mask.
  std::optional<bool> causal = std::nullopt;
};

enum class HeadLayout : unsigned char {
  unknown,     // any of those below, or [batch, tokens, heads x head_dim], [tokens, batch, heads x head_dim]
  head_major,  // [batch, heads, tokens, head_dim]
  token_major  // [batch, tokens, heads, head_dim]
};

// op "attention_decode" for one query, else "attention_prefill". No row when more than one reading of the shapes is
// possible, or none: heads must share KV heads evenly, and a causal query sees at least itself.
Mapped attention_row(const AttentionTensors& tensors, HeadLayout layout = HeadLayout::unknown);

// ---- Collectives, as test programs and PyTorch name them.

// "all_reduce", "reduce_scatter" … in a name like "all_reduce_perf", "./AllReduce.txt" or "_allgather_base"; the
// collectives that measurements have no op for (broadcast) are named as well. Empty when there is none.
std::string collective_in(std::string_view name);
// `bytes`: of the full tensor on one rank.
Mapped collective_row(const std::string& collective, std::int64_t ranks, double bytes, std::optional<Dtype> dtype);

// ---- The kernels of Ascend NPUs: what a type ("MatMulV2", "hcom_allReduce_") is, and what its tensors say.

// `core`: the column Task Type, Accelerator Core or Core Type ("AI_CORE", "MIX_AIC", "AI_CPU", "HCCL", "N/A").
Class ascend_class(std::string_view core, std::string_view type);

struct AscendKernel {
  std::string_view type;
  std::vector<Tensor> inputs;  // by slot: an absent one is empty
  std::vector<Tensor> outputs;
  // As of Options.
  std::optional<std::int64_t> ranks = {};
  std::optional<std::int64_t> kv_len = {};
};
// As a kernel of that class. Of those without a row, the group says whether one was to be expected.
Mapped ascend_row(const AscendKernel& kernel, Class of = Class::kernel);

}  // namespace llmperf::import
