#include "calibrate/row_columns.h"

namespace llmperf::calibrate {
namespace {

const StepRow* step(const Row& row) { return std::get_if<StepRow>(&row.of); }
const OpRow* op(const Row& row) { return std::get_if<OpRow>(&row.of); }

template <auto Member>
Cell of_step(const Row& row) {
  const StepRow* s = step(row);
  return s ? Cell(s->*Member) : Cell();
}

// An axis of the plan that divides something.
template <auto Member>
Cell axis_of_step(const Row& row) {
  return step(row) && step(row)->*Member > 1 ? Cell(step(row)->*Member) : Cell();
}
Cell kv_of_step(const Row& row) {
  return step(row) && !step(row)->kv.empty() ? Cell(std::string_view(step(row)->kv)) : Cell();
}

// A number of which 0 means that the row has none.
Cell given(std::int64_t value) { return value > 0 ? Cell(value) : Cell(); }
Cell given(Bytes value) { return value.value > 0 ? Cell(value.value) : Cell(); }

// What a shape has under the name of a column; a shape without an overload has nothing.
struct Ranks {
  Cell operator()(const CollectiveShape& s) const { return s.ranks; }
  Cell operator()(const GemmShape& s) const { return s.ranks > 1 ? Cell(s.ranks) : Cell(); }
  Cell operator()(const auto&) const { return {}; }
};
struct Batch {
  Cell operator()(const AttentionShape& s) const { return s.batch; }
  Cell operator()(const GemmShape& s) const { return s.batch > 1 ? Cell(s.batch) : Cell(); }
  Cell operator()(const auto&) const { return {}; }
};
struct Weights {
  Cell operator()(const GemmShape& s) const { return s.weights.empty() ? Cell() : Cell(std::string_view(s.weights)); }
  Cell operator()(const auto&) const { return {}; }
};
struct M {
  Cell operator()(const GemmShape& s) const { return s.m; }
  Cell operator()(const VectorShape& s) const { return s.tokens; }
  Cell operator()(const GatherShape& s) const { return s.rows; }
  Cell operator()(const CacheShape& s) const { return s.tokens; }
  Cell operator()(const auto&) const { return {}; }
};
struct N {
  Cell operator()(const GemmShape& s) const { return s.n; }
  Cell operator()(const VectorShape& s) const { return given(s.width); }
  Cell operator()(const GatherShape& s) const { return s.width; }
  Cell operator()(const auto&) const { return {}; }
};
struct K {
  Cell operator()(const GemmShape& s) const { return s.k; }
  Cell operator()(const GatherShape& s) const { return given(s.table); }
  Cell operator()(const auto&) const { return {}; }
};
struct Heads {
  Cell operator()(const AttentionShape& s) const { return s.heads; }
  Cell operator()(const VectorShape& s) const { return given(s.heads); }
  Cell operator()(const auto&) const { return {}; }
};
struct KvHeads {
  Cell operator()(const AttentionShape& s) const { return s.kv_heads; }
  Cell operator()(const VectorShape& s) const { return given(s.kv_heads); }
  Cell operator()(const CacheShape& s) const { return s.kv_heads; }
  Cell operator()(const auto&) const { return {}; }
};
struct HeadDim {
  Cell operator()(const AttentionShape& s) const { return s.head_dim; }
  Cell operator()(const CacheShape& s) const { return s.head_dim; }
  Cell operator()(const auto&) const { return {}; }
};
struct OpBytes {
  Cell operator()(const CollectiveShape& s) const { return s.bytes.value; }
  Cell operator()(const VectorShape& s) const { return given(s.bytes); }
  Cell operator()(const auto&) const { return {}; }
};
template <class Of>
Cell of_op(const Row& row) {
  return op(row) ? std::visit(Of{}, op(row)->shape) : Cell();
}
template <auto Member>
Cell of_attention(const Row& row) {
  const auto* shape = op(row) ? std::get_if<AttentionShape>(&op(row)->shape) : nullptr;
  return shape ? Cell(shape->*Member) : Cell();
}

constexpr RowColumn kRowColumns[] = {
    {"hardware", [](const Row& row) { return Cell(std::string_view(row.hardware)); }},
    {"tp", of_step<&StepRow::tp>},
    {"ep", axis_of_step<&StepRow::ep>},
    {"dp", axis_of_step<&StepRow::dp>},
    {"pp", axis_of_step<&StepRow::pp>},
    {"runtime", of_step<&StepRow::runtime>},
    {"execution", of_step<&StepRow::execution>},
    {"options", of_step<&StepRow::options>},
    {"model", of_step<&StepRow::model>},
    {"weights", [](const Row& row) { return step(row) ? Cell(step(row)->weights) : of_op<Weights>(row); }},
    {"kv", kv_of_step},
    {"op", [](const Row& row) { return op(row) ? Cell(std::string_view(op(row)->op)) : Cell(); }},
    {"dtype", [](const Row& row) { return op(row) ? Cell(name(op(row)->dtype)) : Cell(); }},
    {"ranks", of_op<Ranks>},
    {"batch", [](const Row& row) { return step(row) ? Cell(step(row)->batch) : of_op<Batch>(row); }},
    {"phase", [](const Row& row) { return step(row) ? Cell(name(step(row)->phase)) : Cell(); }},
    {"new_tokens", of_step<&StepRow::new_tokens>},
    {"context", of_step<&StepRow::context>},
    {"m", of_op<M>},
    {"n", of_op<N>},
    {"k", of_op<K>},
    {"q_len", of_attention<&AttentionShape::q_len>},
    {"kv_len", of_attention<&AttentionShape::kv_len>},
    {"heads", of_op<Heads>},
    {"kv_heads", of_op<KvHeads>},
    {"head_dim", of_op<HeadDim>},
    {"causal", of_attention<&AttentionShape::causal>},
    {"bytes", of_op<OpBytes>},
};

}  // namespace

std::span<const RowColumn> row_columns() { return kRowColumns; }

}  // namespace llmperf::calibrate
