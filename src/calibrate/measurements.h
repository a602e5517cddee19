// Measured latencies: rows of CSV files in one of two schemas, told apart by their header.
//
//  * steps of whole models: hardware,tp,runtime,execution,options,model,weights,batch,phase,new_tokens,context,
//    latency_ms. One forward step of `batch` sequences that each process new_tokens and have context cached.
//  * kernels: hardware,op,dtype,ranks,batch,m,n,k,q_len,kv_len,heads,kv_heads,head_dim,causal,bytes,latency_us; a row
//    fills in what its op has.
//
// Columns come in any order; those not named above are kept as they are. Lines that start with '#' say where the rows
// are from. What a name means (hardware, runtime, model, weights, options) is for the caller to find out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "base/units.h"
#include "graph/op.h"

namespace llmperf::calibrate {

enum class Phase : unsigned char { prefill, decode };
std::string_view name(Phase phase);

struct StepRow {
  std::int64_t tp = 1;  // devices; 1 without the column
  std::string runtime;
  std::string execution;  // "eager", "graph", …; empty: not said
  std::string options;    // as written: "static_kv+flash_attention"; empty: not said
  std::string model;
  std::string weights;
  std::int64_t batch = 1;
  Phase phase = Phase::prefill;
  std::int64_t new_tokens = 1;  // per sequence
  std::int64_t context = 0;     // cached tokens per sequence
  bool operator==(const StepRow&) const = default;
};

struct GemmShape {  // [m, k] x [k, n]
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool operator==(const GemmShape&) const = default;
};
struct AttentionShape {
  Phase phase = Phase::prefill;
  std::int64_t batch = 0;
  std::int64_t q_len = 0;
  std::int64_t kv_len = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  bool causal = true;
  bool operator==(const AttentionShape&) const = default;
};
// An element-wise op or a norm, called by the layer it is: "act_fn", "embedding", "final_layernorm", "layernorm",
// "rotary_emb".
struct VectorShape {
  std::string layer;
  std::int64_t tokens = 0;  // column m
  bool operator==(const VectorShape&) const = default;
};
struct CollectiveShape {
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  std::int64_t ranks = 0;
  Bytes bytes;  // of the full tensor on one rank: input of all-reduce and reduce-scatter, output of all-gather
  bool operator==(const CollectiveShape&) const = default;
};

struct OpRow {
  std::string op;  // as written: "gemm", "vector:act_fn", "alltoall"
  Dtype dtype = Dtype::fp16;
  std::variant<GemmShape, AttentionShape, VectorShape, CollectiveShape> shape;
  bool operator==(const OpRow&) const = default;
};

struct Row {
  std::string hardware;
  std::variant<StepRow, OpRow> of;
  Seconds latency;
  std::size_t file = 0;  // in Measurements::files
  int line = 0;
  std::vector<std::string> extra;  // of Measurements::extra_columns, or shorter: the rest is empty
};

struct Measurements {
  struct File {
    std::string path;
    std::vector<std::string> notes;  // comment lines
  };
  std::vector<File> files;
  std::vector<std::string> extra_columns;  // of all files
  std::vector<Row> rows;

  SourcePosition where(const Row& row) const { return {files[row.file].path, row.line}; }
};

// Everything that says what was measured, on one line: "rtx4090 vllm qwen1.5-7b bf16 batch 8 decode 1+512". Equal texts
// are measurements of the same thing.
std::string configuration(const Row& row);

inline constexpr std::size_t kMaxMeasurementBytes = std::size_t{64} << 20;

// Reads files of either schema, by path or by built-in name. Throws Error(bad_input) with every problem of all files:
// not readable, missing columns, bad numbers, latencies that are not positive, unknown phases, ops and element types,
// no rows.
Measurements read_measurements(std::span<const std::string> names_or_paths);
// The same of a text that is called `file` in messages.
Measurements parse_measurements(std::string_view text, const std::string& file);

}  // namespace llmperf::calibrate
