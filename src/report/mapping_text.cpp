#include "report/mapping_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"

namespace llmperf::report {

using mapper::tile::Description;
using mapper::tile::Operand;
using mapper::tile::Phase;
using mapper::tile::Results;

std::string_view kind_name(const graph::Op& op) {
  return std::holds_alternative<graph::Gemm>(op.body)        ? "gemm"
         : std::holds_alternative<graph::Attention>(op.body) ? "attention"
                                                             : "vector";
}

std::string op_text(const MappingStudy& study) {
  if (const auto* g = std::get_if<graph::Gemm>(&study.op->body)) {
    return fmt::format("gemm {}m {}, n {}, k {}{}", g->batch > 1 ? fmt::format("batch {}, ", g->batch) : "", g->m, g->n,
                       g->k, study.name.empty() ? "" : fmt::format(", then {}", study.name));
  }
  if (const auto* a = std::get_if<graph::Attention>(&study.op->body)) {
    const std::int64_t keys = a->keys > 0 ? a->keys : a->context + a->q_tokens;
    return fmt::format("attention batch {}, {} queries, {} keys{}, {}/{} heads of {}", a->sequences, a->q_tokens, keys,
                       a->keys > 0 ? "" : " (causal)", a->heads, a->kv_heads, a->qk_dim);
  }
  const auto& v = std::get<graph::Vector>(study.op->body);
  return fmt::format("{} {} rows of {}", study.name, v.rows, v.width);
}

std::string split_text(const Description& mapping) {
  std::string text;
  for (const auto& dim : mapping.dimensions) {
    if (dim.tiles > 1) text += fmt::format("{}{}/{}", text.empty() ? "" : " ", dim.name, dim.tiles);
  }
  return text.empty() ? "one tile" : text;
}

std::string block_text(const Description& mapping) {
  std::string text;
  for (const auto& dim : mapping.dimensions) text += fmt::format("{}{}", text.empty() ? "" : "x", dim.block);
  return text;
}

std::string stays_text(const Description& mapping) {
  const auto& s = mapping.stays;
  if (s.slices == 0 || s.operand == "results") return "results";
  if (s.slices >= s.of) return fmt::format("all {}", s.operand);
  return fmt::format("{} of {} slices of {}", s.slices, s.of, s.operand);
}

std::string feeds_text(const Description& mapping) {
  std::string text;
  for (const Operand& o : mapping.operands) {
    if (o.result || o.sharers == 1) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", o.name, name(o.feed));
  }
  return text.empty() ? "direct" : text;
}

std::string buffers_text(const Operand& operand, Results results) {
  if (operand.result) {
    switch (results) {
      case Results::in_place: return "one";
      case Results::staged: return "one and a copy that leaves";
      case Results::doubled: return "two in turn";
    }
  }
  if (operand.buffers == 0) return "stays";
  return operand.buffers == 1 ? "single" : operand.buffers == 2 ? "double" : fmt::format("{} slices", operand.buffers);
}

std::string slower_text(const Description& best, const Description& other) {
  const auto busiest = [](const Phase& p) { return std::max({p.dram, p.noc, p.matrix, p.vector}); };
  const Phase& steady = other.phases[1];
  const Phase& best_steady = best.phases[1];
  struct Part {
    std::string_view name;
    double more;
  };
  const Part parts[] = {
      {"fill", other.phases[0].seconds - best.phases[0].seconds},
      {"drain", other.phases[2].seconds - best.phases[2].seconds},
      {steady.binds, busiest(steady) - busiest(best_steady)},
      {"waiting", (steady.seconds - busiest(steady)) - (best_steady.seconds - busiest(best_steady))},
  };
  const Part& most = *std::max_element(std::begin(parts), std::end(parts),
                                       [](const Part& x, const Part& y) { return x.more < y.more; });
  if (other.closed_form <= best.closed_form || most.more <= 0) return "in the simulation only";
  return fmt::format("{} +{}", most.name, format_seconds(Seconds{most.more}));
}

}  // namespace llmperf::report
