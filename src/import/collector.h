// Gathers the executions that importers find, and makes of them measurements and a summary.
#pragma once

#include <istream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  // A step of a model that took part in a test of that time; `remark` says why it is no measurement.
  void add_step(const std::string& type, Seconds time, measure::Row row, std::string remark);
  // A run of a benchmark, which took that time, with a row for each of its figures.
  void add_run(const std::string& type, Seconds time, std::vector<measure::Row> rows, std::string remark,
               const std::string& untrusted);
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

  measure::Row row(Measured& measured) const;
  void add_to_group(const Group& group, const Execution& execution, TypeSummary& type);

  Source source_;
  std::string hardware_;
  std::vector<measure::Measurements::File> files_;
  std::set<std::string, std::less<>> passed_over_;
  std::vector<Measured> measured_;
  std::vector<measure::Row> steps_;                                   // and figures of runs
  std::map<std::pair<std::string, std::string>, std::size_t> known_;  // type, op: index into measured_
  std::map<std::pair<Class, std::string>, Type> types_;
  std::vector<GroupSummary> groups_;
};

// A time in microseconds at that place; nothing, and a problem, when the text is none that can be.
std::optional<Seconds> read_microseconds(std::string_view text, int line, int column, descriptor::Problems& problems);

// ---- The formats of files, one reader each. A reader adds what the file holds to the collector and problems to the
// list; after a problem it reads on, so that all of a file are reported at once.

// CSV of Ascend profilers: op_summary_*.csv (msprof), kernel_details.csv (torch_npu), op_statistic.csv (totals by type
// only). Which one it is, and where its columns stand, says the header.
void read_ascend_csv(std::string_view text, const Options& options, descriptor::Problems& problems, Collector& into);

// Tables on the standard output of hccl_test and nccl-tests, among whatever else was printed there.
void read_hccl_test(std::string_view text, const Options& options, descriptor::Problems& problems, Collector& into);
void read_nccl_tests(std::string_view text, const Options& options, descriptor::Problems& problems, Collector& into);

// Tables of kernels in the columns of aiconfigurator; which kind, says the name of the column of element types.
void read_aiconfigurator(std::string_view text, const Options& options, descriptor::Problems& problems,
                         Collector& into);

// Tests of llama-bench, in any of the forms that it prints.
void read_llama_bench(std::string_view text, const Options& options, descriptor::Problems& problems, Collector& into);

// The title of what the benchmarks of vLLM and SGLang print.
inline constexpr std::string_view kPrintedResult = " Serving Benchmark Result ";
// Runs of servers, as the benchmarks of vLLM and SGLang, InferenceX, AIPerf and GuideLLM write them.
void read_vllm_bench(std::string_view text, const Options& options, descriptor::Problems& problems, Collector& into);
void read_sglang_bench(std::string_view text, const Options& options, descriptor::Problems& problems, Collector& into);
void read_inferencex(std::string_view text, const Options& options, descriptor::Problems& problems, Collector& into);
void read_aiperf(std::string_view text, const Options& options, descriptor::Problems& problems, Collector& into);
void read_guidellm(std::string_view text, const Options& options, descriptor::Problems& problems, Collector& into);

// A trace of PyTorch's profiler in the Chrome Trace Event format. It is read in pieces: traces are large.
void read_chrome_trace(std::istream& stream, descriptor::Problems& problems, Collector& into);

}  // namespace llmperf::import
