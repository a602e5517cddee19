// What every op of StableHLO, MHLO and CHLO (and the few of other dialects that programs contain) does, as far as its
// cost goes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace llmperf::graph::hlo {

enum class OpClass : unsigned char {
  elementwise,    // `operations` for every element of the result
  movement,       // elements read and written: transpose, concatenate, pad …
  broadcast,      // the same, and a fusing compiler never stores the result: broadcast, iota
  slice,          // reads what it writes: slice, gather, dynamic_slice, embedding lookup
  update,         // writes a part of its first operand in place: dynamic_update_slice, scatter
  free,           // no work: reshape, tuple, constant, barriers, annotations
  product,        // dot, dot_general, matrix products of libraries
  convolution,    //
  reduce,         // over elements of the operands
  window,         // reduce_window, select_and_scatter, pooling
  sort,           // sort, top_k
  transform,      // fft
  factorization,  // cholesky, triangular_solve
  random,         // random numbers
  attention,      // softmax(Q K^T) V of a library
  normalization,  // batch_norm_*
  collective,     // all_reduce and its kin
  transfer,       // send, recv, infeed, outfeed: no work on the device
  call,           // runs a function: call, composite, async_start
  loop,           //
  branch,         // case, if
  region,         // runs its region once, in place: fusion, manual_computation
  custom_call,    // by the table of custom calls
  unknown
};
std::string_view name(OpClass op_class);
std::optional<OpClass> parse_op_class(std::string_view name);

struct Traits {
  OpClass op_class = OpClass::unknown;
  double operations = 1;  // per element: of the result (elementwise), of the operands (reduce)
};

// Of "stablehlo.add", "mhlo.fusion" …
Traits traits_of(std::string_view op);

// Of the dialects of HLO.
bool is_hlo(std::string_view op);
// Of another dialect, and not one of the few ops of others that are read: "torch.aten.mm".
bool is_foreign(std::string_view op);
// What is told of one in a program that has nothing else, and where such programs come from.
std::string foreign_message(std::string_view op);
inline constexpr const char* kReadDialects =
    "StableHLO, MHLO and CHLO programs are read, and what stands beside their ops: sdy, func, arith, math, tensor, "
    "shape";

}  // namespace llmperf::graph::hlo
