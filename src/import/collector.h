// Gathers the executions that importers find, and makes of them measurements and a summary.
#pragma once

#include <functional>
#include <istream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "descriptor/csv.h"
#include "descriptor/reader.h"
#include "import/import.h"
#include "import/kernels.h"

namespace llmperf::import {

// `count` executions that took `time` together.
struct Execution {
  std::string type;
  Class of = Class::kernel;
  Seconds time;
  Mapped mapped;
  int line = 0;
  std::int64_t count = 1;
};

class Collector {
 public:
  Collector(Source source, std::string hardware) : source_(source), hardware_(std::move(hardware)) {}

  void start_file(const std::string& path);
  void add(const Execution& execution);
  // What took that time and became rows, a step of a model or the figures of a run; `remark` says why it is no
  // measurement. Type and source join the rows' extra columns.
  void add(Class of, const std::string& type, Seconds time, std::vector<measure::Row> rows, std::string remark);
  // A column of the file that nothing is made of although it may change the time.
  void pass_over(std::string_view column) { passed_over_.emplace(column); }
  Imported finish();

 private:
  struct Measured {
    measure::OpRow op;
    std::string type;
    std::size_t file;
    int line;
    std::vector<double> times;  // s
  };
  struct Type {
    TypeSummary summary;
    std::map<std::string, std::int64_t> remarks;  // executions by why they were left out
  };

  Type& summary_of(Class of, const std::string& type, std::int64_t count, Seconds time);
  measure::Row row(Measured& measured) const;
  void add_to_group(const Group& group, const Execution& execution, TypeSummary& type);

  Source source_;
  std::string hardware_;
  std::vector<measure::Measurements::File> files_;
  std::set<std::string, std::less<>> passed_over_;
  std::vector<Measured> measured_;
  std::vector<measure::Row> rows_;                                    // of steps and runs
  std::map<std::pair<std::string, std::string>, std::size_t> known_;  // type, op: index into measured_
  std::map<std::pair<Class, std::string>, Type> types_;
  std::vector<GroupSummary> groups_;
};

// Reads a table: its header, which `header` finds fit to read on, and a row after the other. Lines may end in a comma.
void read_rows(descriptor::CsvReader& reader, descriptor::Problems& problems, const std::function<bool()>& header,
               const std::function<void()>& row);
// A time in microseconds at that place; nothing, and a problem, when the text is none that can be.
std::optional<Seconds> read_microseconds(std::string_view text, int line, int column, descriptor::Problems& problems);

// ---- The formats of files, one reader each. A reader adds what the file holds to the collector and problems to the
// list; after a problem it reads on, so that all of a file are reported at once.

using Reader = void(std::string_view text, const Options& options, descriptor::Problems& problems, Collector& into);

// CSV of Ascend profilers: op_summary_*.csv (msprof), kernel_details.csv (torch_npu), op_statistic.csv (totals by type
// only). Which one it is, and where its columns stand, says the header.
Reader read_ascend_csv;
// Tables on the standard output of hccl_test and nccl-tests, among whatever else was printed there.
Reader read_hccl_test, read_nccl_tests;
// Tables of kernels in the columns of aiconfigurator; which kind, says the name of the column of element types.
Reader read_aiconfigurator;
// Tests of llama-bench, in any of the forms that it prints.
Reader read_llama_bench;
// The title of what the benchmarks of vLLM and SGLang print.
inline constexpr std::string_view kPrintedResult = " Serving Benchmark Result ";
// Runs of servers, as the benchmarks of vLLM and SGLang, InferenceX, AIPerf and GuideLLM write them.
Reader read_vllm_bench, read_sglang_bench, read_inferencex, read_aiperf, read_guidellm;

// A trace of PyTorch's profiler in the Chrome Trace Event format. It is read in pieces: traces are large.
void read_chrome_trace(std::istream& stream, descriptor::Problems& problems, Collector& into);

}  // namespace llmperf::import
