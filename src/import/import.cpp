#include "import/import.h"

#include <fmt/format.h>

#include <array>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "descriptor/node.h"
#include "import/collector.h"

namespace llmperf::import {
namespace {

using descriptor::Problems;

constexpr std::string_view kSourceNames[] = {"msprof",       "torch-npu",      "hccl-test",   "nccl-tests",
                                             "chrome-trace", "aiconfigurator", "llama-bench", "vllm-bench",
                                             "sglang-bench", "aiperf",         "guidellm",    "inferencex"};

// Tables are read whole; traces are not, and are larger.
constexpr std::size_t kMaxTableBytes = std::size_t{512} << 20;
constexpr std::int64_t kMaxTraceBytes = std::int64_t{16} << 30;

// A file as a stream that holds one piece of it at a time.
class FileBuffer : public std::streambuf {
 public:
  explicit FileBuffer(const RegularFile& file) : file_(&file) {}

 protected:
  int_type underflow() override {
    const std::int64_t got = file_->read_some(offset_, data_);
    offset_ += got;
    setg(data_.data(), data_.data(), data_.data() + got);
    return got > 0 ? traits_type::to_int_type(data_[0]) : traits_type::eof();
  }

 private:
  const RegularFile* file_;
  std::int64_t offset_ = 0;
  std::array<char, 1 << 16> data_;
};

void check_options(Source source, const Options& options) {
  const bool collectives = source == Source::hccl_test || source == Source::nccl_tests;
  const bool ascend = source == Source::msprof || source == Source::torch_npu;
  const bool bench = source == Source::llama_bench;
  const bool runs = is_of_servers(source);
  struct Use {
    const char* flag;
    bool given, fits;
    const char* of;
  };
  for (const Use& use :
       {Use{"`op`", !options.collective.empty(), collectives, "hccl-test and nccl-tests"},
        Use{"`model`", !options.model.empty(), bench || runs, "llama-bench and runs of servers"},
        Use{"`weights`", !options.weights.empty(), bench || runs, "llama-bench and runs of servers"},
        Use{"`runtime`", !options.runtime.empty(), runs, "runs of servers"},
        Use{"`concurrency`", options.concurrency.has_value(), runs, "runs of servers"},
        Use{"`rate`", options.rate.has_value(), runs, "runs of servers"},
        Use{"`host`", !options.host.empty(), bench, "llama-bench"},
        Use{"`ranks`", options.ranks.has_value(), collectives || ascend || bench || runs, "files that do not say it"},
        Use{"`kv-len`", options.kv_len.has_value(), ascend, "msprof and torch-npu"},
        Use{"`dtype`", options.dtype.has_value(), source == Source::hccl_test, "hccl-test"}}) {
    if (!use.given || use.fits) continue;
    throw Error::bad_input(fmt::format("{} is for {}, not for {}", use.flag, use.of, name(source)));
  }
  if (options.rate && !(*options.rate > 0)) throw Error::bad_input("`rate` must be above 0");
  if (options.ranks && (*options.ranks < 2 || *options.ranks > 1'000'000)) {
    throw Error::bad_input(fmt::format("`ranks` must be between 2 and 1000000, not {}", *options.ranks));
  }
  if (options.kv_len && (*options.kv_len < 1 || *options.kv_len > kMostTokens)) {
    throw Error::bad_input(fmt::format("`kv-len` must be between 1 and {}, not {}", kMostTokens, *options.kv_len));
  }
  if (!options.collective.empty() && !measure::collective_kind(options.collective)) {
    const std::vector<std::string> names = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"};
    throw Error::bad_input("`op`: unknown collective " + quote(options.collective),
                           name_hint(options.collective, names));
  }
}

// A file of JSON where a source reads tables, or the other way round, is told so, and nothing of its first bytes.
bool is_of_form(Source source, std::string_view text, Problems& problems) {
  const std::string_view start = trim(text);
  const bool json = start.starts_with('{') || start.starts_with('[');
  const bool table = source == Source::msprof || source == Source::torch_npu || source == Source::aiconfigurator;
  const bool saved = is_of_servers(source) && source != Source::aiperf;
  if (start.empty() || !(json ? table : saved) || start.find(kPrintedResult) != std::string_view::npos) return true;
  problems.add(0, 0, fmt::format("is {}JSON, which {} is{}", json ? "" : "no ", name(source), json ? " not" : ""),
               json ? "its tables (CSV) are read; of JSON, traces: import chrome-trace"
                    : fmt::format("what it saves; of vLLM and SGLang also the table{}that they print", kPrintedResult));
  return false;
}

void read_table(Source source, std::string_view text, const Options& options, Problems& problems, Collector& into) {
  if (!is_of_form(source, text, problems)) return;
  switch (source) {
    case Source::msprof:
    case Source::torch_npu: read_ascend_csv(text, options, problems, into); break;
    case Source::hccl_test: read_hccl_test(text, options, problems, into); break;
    case Source::nccl_tests: read_nccl_tests(text, options, problems, into); break;
    case Source::aiconfigurator: read_aiconfigurator(text, problems, into); break;
    case Source::llama_bench: read_llama_bench(text, options, problems, into); break;
    case Source::vllm_bench: read_vllm_bench(text, options, problems, into); break;
    case Source::sglang_bench: read_sglang_bench(text, options, problems, into); break;
    case Source::aiperf: read_aiperf(text, options, problems, into); break;
    case Source::guidellm: read_guidellm(text, options, problems, into); break;
    case Source::inferencex: read_inferencex(text, options, problems, into); break;
    case Source::chrome_trace: break;
  }
}

void refuse_compressed(std::string_view start, const std::string& file) {
  if (!start.starts_with("\x1f\x8b")) return;
  throw Error(ErrorKind::bad_input, {{{file}, "is compressed", "gunzip it first"}});
}

void read_file(Source source, const std::string& path, const Options& options, Problems& problems, Collector& into) {
  into.start_file(path);
  if (source != Source::chrome_trace) {
    const std::string text = descriptor::read_text_file(path, kMaxTableBytes);
    refuse_compressed(text, path);
    read_table(source, text, options, problems, into);
    return;
  }
  const RegularFile file(path, kMaxTraceBytes);
  std::array<char, 2> start = {};
  if (file.read_some(0, start) == 2) refuse_compressed({start.data(), 2}, path);
  FileBuffer buffer(file);
  std::istream stream(&buffer);
  read_chrome_trace(stream, problems, into);
}

}  // namespace

const std::vector<std::string>& source_names() {
  static const std::vector<std::string> kNames(std::begin(kSourceNames), std::end(kSourceNames));
  return kNames;
}

Source parse_source(std::string_view text) {
  for (std::size_t i = 0; i < std::size(kSourceNames); ++i) {
    if (kSourceNames[i] == text) return static_cast<Source>(i);
  }
  throw Error::bad_input("unknown source " + quote(text), name_hint(text, source_names()));
}

std::string_view name(Source source) { return kSourceNames[static_cast<std::size_t>(source)]; }

std::string_view name(Class of) {
  constexpr std::string_view kNames[] = {"kernel", "communication", "host", "other", "step", "run"};
  return kNames[static_cast<std::size_t>(of)];
}

Imported import_files(Source source, const std::vector<std::string>& paths, const Options& options) {
  check_options(source, options);
  Collector collector(source, options.hardware);
  std::vector<Diagnostic> all;
  for (const std::string& path : paths) {
    try {
      Problems problems(path);
      read_file(source, path, options, problems, collector);
      problems.throw_if_any();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::bad_input) throw;
      all.insert(all.end(), error.diagnostics().begin(), error.diagnostics().end());
    }
  }
  if (!all.empty()) throw Error(ErrorKind::bad_input, std::move(all));
  return collector.finish();
}

Imported import_text(Source source, std::string_view text, const std::string& file, const Options& options) {
  check_options(source, options);
  Collector collector(source, options.hardware);
  Problems problems(file);
  collector.start_file(file);
  if (source == Source::chrome_trace) {
    std::istringstream stream{std::string(text)};
    read_chrome_trace(stream, problems, collector);
  } else {
    read_table(source, text, options, problems, collector);
  }
  problems.throw_if_any();
  return collector.finish();
}

}  // namespace llmperf::import
