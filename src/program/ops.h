// What every op of StableHLO, MHLO and CHLO (and the few of other dialects that programs contain) does, as far as its
// cost goes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/words.h"
#include "program/module.h"

namespace llmperf::descriptor {
struct Document;
}

namespace llmperf::program {

LLMPERF_WORDS(OpClass,
              elementwise,          // `operations` for every element of the result
              movement,             // elements read and written: transpose, concatenate, pad …
              broadcast,            // the same, and a fusing compiler never stores the result: broadcast, iota
              slice,                // reads what it writes: slice, gather, dynamic_slice, embedding lookup
              update,               // writes a part of its first operand in place: dynamic_update_slice, scatter
              free,                 // no work: reshape, tuple, constant, barriers, annotations
              product,              // dot, dot_general, matrix products of libraries
              convolution, reduce,  // over elements of the operands
              window,               // reduce_window, select_and_scatter, pooling
              sort,                 // sort, top_k
              transform,            // fft
              factorization,        // cholesky, triangular_solve
              random,               // random numbers
              attention,            // softmax(Q K^T) V of a library
              normalization,        // batch_norm_*
              collective,           // all_reduce and its kin
              transfer,             // send, recv, infeed, outfeed: no work on the device
              call,                 // runs a function: call, composite, async_start
              loop,
              branch,       // case, if
              region,       // runs its region once, in place: fusion, manual_computation
              custom_call,  // by the table of custom calls
              unknown);
std::string_view name(OpClass op_class);

// What an element-wise op, or several together, did to a tensor: by it the dataflow (dataflow.h) knows functions again.
enum Mark : std::uint32_t {
  kLogistic = 1U << 0U,
  kTanh = 1U << 1U,
  kErf = 1U << 2U,
  kRectified = 1U << 3U,  // maximum with a constant
  kExponential = 1U << 4U,
  kClamped = 1U << 5U,
  kPower = 1U << 6U,       // multiplied with itself, before any of the above
  kMultiplied = 1U << 7U,  // two sources with each other
  kCentred = 1U << 8U,     // its mean subtracted
  kSummed = 1U << 9U,      // reduced: a sum of the source's elements
  kRoot = 1U << 10U,       // a root of that
  kRotated = 1U << 11U,    // by a table of sines and cosines
  kTrigonometric = 1U << 12U,
  kMasked = 1U << 13U,  // by a mask over both free dimensions of a product
  kRanked = 1U << 14U   // sorted
};
inline constexpr std::uint32_t kActivationMarks = kLogistic | kTanh | kErf | kRectified | kExponential | kClamped;

struct Traits {
  OpClass op_class = OpClass::unknown;
  double operations = 1;   // per element: of the result (elementwise), of the operands (reduce)
  std::uint32_t mark = 0;  // of an element-wise op: what it leaves in the dataflow
};

// "add" of stablehlo.add, vhlo.add_v1, and chlo.broadcast_add, which is an add behind implicit broadcasts.
std::string_view plain_op(std::string_view op);
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

// What custom calls do, by the name of their target: a table in programs/custom_calls.yaml, which a user's file
// extends.

// What a custom call calls, in either form.
std::string_view target_of(const Instruction& i);

class CustomCalls {
 public:
  // The table that is part of llmperf.
  static CustomCalls built_in();
  // Adds the entries of a YAML file; its targets replace those of the same name. Throws Error(bad_input).
  void add_file(const std::string& path);
  // Nothing when the target is not in the table. A target "name*" in the table stands for all that begin with name.
  std::optional<Traits> find(std::string_view target) const;

 private:
  void add_document(const descriptor::Document& document);
  std::map<std::string, Traits, std::less<>> entries_;
};

}  // namespace llmperf::program
