// The formulas of this library with their names and meanings, for explanations (base/term.h). What computes evaluates
// the same text: work.h, memory.h.
#pragma once

#include "base/term.h"
#include "cost/memory.h"
#include "cost/work.h"

namespace llmperf::cost {

// Work, in formulas over N.
template <class N>
struct Terms {
  N matrix = 0;
  N vector = 0;
  N weights = 0;
  N activations_read = 0;
  N activations_written = 0;
  N kv_read = 0;
  N kv_written = 0;
  N network = 0;
  Dtype matrix_dtype = Dtype::bf16;
  Sums sums = Sums::wide;
};
Terms<Term> explained_work(const graph::Op& op, const Cache& cache);
// Of a copy whose elements are known as products.
Terms<Term> explained_copy(const graph::Copy& copy, const Term& read, const Term& written);

// What may be alive at once in a step ("attention of the prefill"), in bytes, with the residual stream.
struct Alive {
  std::string what;
  Term bytes;
};
std::vector<Alive> explained_activation(const graph::Execution& execution, const graph::SequenceGroup& group,
                                        std::string_view step);
Term explained_expert_activation(const graph::Execution& execution, const graph::SequenceGroup& group);
Alive explained_vision_activation(const graph::Execution& execution, const graph::SeenImages& images);
// Names of a kind of layer end in `suffix`.
Term explained_layer_kv(const graph::Execution& execution, const model::Attention& attention, const Term& kept,
                        const Term& tokens, std::string_view suffix);
Term explained_layer_state(const graph::Execution& execution, const model::Layer& layer, std::string_view suffix);
Term explained_compute_buffer(const graph::Execution& execution, std::int64_t sequences, std::int64_t cells,
                              bool on_host, std::int64_t stage);

}  // namespace llmperf::cost
