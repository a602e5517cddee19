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

// What a source is, in the order of Source.
struct Importer {
  enum class Form : unsigned char { table, json, text };
  std::string_view name;
  Reader* read;            // null: in pieces, of a stream
  Form form;               // of its files
  std::string_view takes;  // of the options below: their letters
  Class rows = Class::kernel;
};
using Form = Importer::Form;
constexpr Importer kImporters[] = {
    {"msprof", read_ascend_csv, Form::table, "nk"},
    {"torch-npu", read_ascend_csv, Form::table, "nk"},
    {"hccl-test", read_hccl_test, Form::text, "ond"},
    {"nccl-tests", read_nccl_tests, Form::text, "on"},
    {"chrome-trace", nullptr, Form::json, ""},
    {"aiconfigurator", read_aiconfigurator, Form::table, ""},
    {"llama-bench", read_llama_bench, Form::text, "mwhn", Class::step},
    {"vllm-bench", read_vllm_bench, Form::json, "mwtcrn", Class::run},
    {"sglang-bench", read_sglang_bench, Form::json, "mwtcrn", Class::run},
    {"aiperf", read_aiperf, Form::text, "mwtcrn", Class::run},
    {"guidellm", read_guidellm, Form::json, "mwtcrn", Class::run},
    {"inferencex", read_inferencex, Form::json, "mwtcrn", Class::run},
};
static_assert(std::size(kImporters) == static_cast<std::size_t>(Source::inferencex) + 1);
const Importer& importer(Source source) { return kImporters[static_cast<std::size_t>(source)]; }

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
  struct Use {
    char letter;
    const char* field;
    bool given;
    const char* of;
  };
  for (const Use& use : {Use{'o', "op", !options.collective.empty(), "hccl-test and nccl-tests"},
                         Use{'m', "model", !options.model.empty(), "llama-bench and runs of servers"},
                         Use{'w', "weights", !options.weights.empty(), "llama-bench and runs of servers"},
                         Use{'t', "runtime", !options.runtime.empty(), "runs of servers"},
                         Use{'c', "concurrency", options.concurrency.has_value(), "runs of servers"},
                         Use{'r', "rate", options.rate.has_value(), "runs of servers"},
                         Use{'h', "host", !options.host.empty(), "llama-bench"},
                         Use{'n', "ranks", options.ranks.has_value(), "files that do not say it"},
                         Use{'k', "kv-len", options.kv_len.has_value(), "msprof and torch-npu"},
                         Use{'d', "dtype", options.dtype.has_value(), "hccl-test"}}) {
    if (!use.given || importer(source).takes.find(use.letter) != std::string_view::npos) continue;
    throw Error::bad_input(fmt::format("`{}` is for {}, not for {}", use.field, use.of, name(source)));
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
  const Form wanted = importer(source).form;
  const bool other = wanted == (json ? Form::table : Form::json);
  if (start.empty() || !other || start.find(kPrintedResult) != std::string_view::npos) return true;
  problems.add(0, 0, fmt::format("is {}JSON, which {} is{}", json ? "" : "no ", name(source), json ? " not" : ""),
               json ? "its tables (CSV) are read; of JSON, traces: import chrome-trace"
                    : fmt::format("what it saves; of vLLM and SGLang also the table{}that they print", kPrintedResult));
  return false;
}

void refuse_compressed(std::string_view start, const std::string& file) {
  if (!start.starts_with("\x1f\x8b")) return;
  throw Error(ErrorKind::bad_input, {{{file}, "is compressed", "gunzip it first"}});
}

void read_file(Source source, const std::string& path, const Options& options, Problems& problems, Collector& into) {
  into.start_file(path);
  if (const auto read = importer(source).read) {
    const std::string text = descriptor::read_text_file(path, kMaxTableBytes);
    refuse_compressed(text, path);
    if (is_of_form(source, text, problems)) read(text, options, problems, into);
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
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const Importer& i : kImporters) names.emplace_back(i.name);
    return names;
  }();
  return kNames;
}

Source parse_source(std::string_view text) {
  const auto found = std::ranges::find(kImporters, text, &Importer::name);
  if (found != std::end(kImporters)) return static_cast<Source>(found - std::begin(kImporters));
  throw Error::bad_input("unknown source " + quote(text), name_hint(text, source_names()));
}

std::string_view name(Source source) { return importer(source).name; }
Class rows_of(Source source) { return importer(source).rows; }

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
  if (const auto read = importer(source).read) {
    if (is_of_form(source, text, problems)) read(text, options, problems, collector);
  } else {
    std::istringstream stream{std::string(text)};
    read_chrome_trace(stream, problems, collector);
  }
  problems.throw_if_any();
  return collector.finish();
}

}  // namespace llmperf::import
