// Measurements from the files of profilers and test programs, so that whoever has a profile needs no replay.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "measure/measurements.h"

namespace llmperf::import {

enum class Source : unsigned char {
  msprof,
  torch_npu,
  hccl_test,
  nccl_tests,
  chrome_trace,
  aiconfigurator,
  llama_bench,
  vllm_bench,
  sglang_bench,
  aiperf,
  guidellm,
  inferencex
};
// The names that the command line takes: "msprof", "torch-npu", "hccl-test", "nccl-tests", "chrome-trace", …
const std::vector<std::string>& source_names();
// Throws Error(bad_input) with the nearest names.
Source parse_source(std::string_view name);
std::string_view name(Source source);

inline constexpr std::int64_t kMostRequests = 10'000'000;   // of --concurrency
inline constexpr std::int64_t kMostTokens = 1'000'000'000;  // of --kv-len

struct Options {
  std::string hardware = "unknown";  // for the column of that name: profiles seldom say
  // What files do not say, or not always; of sources that have no use for it, it is an error.
  std::optional<std::int64_t> ranks = {};
  std::string collective = {};      // "all_reduce" …; empty: by the name of the file
  std::optional<Dtype> dtype = {};  // hccl_test: fp32, its own default
  std::string model = {};  // llama_bench, runs: of all of them; empty: by the number of parameters, or its name there
  std::string host = {};   // llama_bench: the CPU of layers that are not on the device
  std::optional<std::int64_t> kv_len = {};  // Ascend: tokens of a sequence that is cached in pages, new ones included
  // Of runs, over what the file says; `ranks` is their tensor parallelism. Of llama_bench the format of the weights.
  std::string weights = {};
  std::string runtime = {};  // "vllm@0.15.1"
  std::optional<std::int64_t> concurrency = {};
  std::optional<double> rate = {};
};

// What ran it: kernels of the device; collectives, whose time includes waiting for peers; work on the host or an
// auxiliary CPU that carries kernels' names (AI_CPU); anything else (copies, engines beside the cores). Steps are whole
// ones of a model, runs those of a benchmark against a server.
enum class Class : unsigned char { kernel, communication, host, other, step, run };
std::string_view name(Class of);
// What the rows of a source are of: kernels, and collectives, steps or runs.
Class rows_of(Source source);

// Everything of one type and class that the files hold.
struct TypeSummary {
  std::string type;  // "MatMulV2", "hcom_allReduce_"
  Class of = Class::kernel;
  std::int64_t count = 0;
  Seconds total;
  std::int64_t imported = 0;  // executions that became measurements
  Seconds in_rows;            // what they took
  Seconds in_groups;          // what those took that belong to a group
  std::string remark;         // why the others did not: "no shapes", "no such op"

  Seconds left_out() const { return Seconds{std::max((total - in_rows - in_groups).value, 0.0)}; }
};

// What is no op of a model and needs no measurement, and why.
struct Group {
  std::string_view name;
  std::string_view reason;
};
struct GroupSummary {
  const Group* group;
  Class of = Class::kernel;
  std::int64_t count = 0;
  Seconds total;
};

struct Imported {
  Source source = Source::msprof;
  measure::Measurements measurements;    // one row per distinct op and type: the median of its executions; of a
                                         // collective the shortest, which waited least
  std::vector<TypeSummary> types;        // by class, then by total time
  std::vector<GroupSummary> groups;      // as types
  std::vector<std::string> passed_over;  // columns that may change the time, and of which nothing is made
};

// Throws Error(bad_input) with every problem of all files.
Imported import_files(Source source, const std::vector<std::string>& paths, const Options& options);
// The same of a text that is called `file` in messages.
Imported import_text(Source source, std::string_view text, const std::string& file, const Options& options);
// What a benchmark against a server wrote of one run, as llmperf serve writes of a simulated one (llmperf.serve) what
// it says; nothing where it is no file of such a tool. Throws Error(bad_input) where there are several runs.
std::optional<std::string> served_document(std::string_view text, const std::string& file);

}  // namespace llmperf::import
