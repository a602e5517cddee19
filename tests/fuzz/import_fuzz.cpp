// Files of profilers: what is imported must be a file of measurements that reads back as the same rows, and what is
// refused is refused as bad input. The first byte chooses the source.
#include <cmath>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "fuzz.h"
#include "import/import.h"

using namespace llmperf;

namespace {

void check(const import::Imported& imported) {
  std::int64_t executions = 0;
  for (const import::TypeSummary& type : imported.types) {
    if (type.imported < 0 || type.imported > type.count || !std::isfinite(type.total.value)) std::abort();
    if (type.imported < type.count && type.remark.empty()) std::abort();
    executions += type.imported;
  }
  const measure::Measurements& written = imported.measurements;
  // Of a run each figure is a row.
  const bool runs = import::rows_of(imported.source) == import::Class::run;
  const auto most = static_cast<std::int64_t>(runs ? measure::serving_figures().size() : 1) * executions;
  if (static_cast<std::int64_t>(written.rows.size()) > most) std::abort();
  if (written.rows.empty()) return;
  const measure::Measurements read = measure::parse_measurements(measure::format_measurements(written), "w.csv");
  if (read.rows.size() != written.rows.size()) std::abort();
  for (std::size_t i = 0; i < read.rows.size(); ++i) {
    if (read.rows[i].of != written.rows[i].of) std::abort();
  }
}

}  // namespace

void fuzz_import(std::string_view input) {
  if (input.empty()) return;
  const std::size_t sources = import::source_names().size();
  const auto source = static_cast<import::Source>(byte(input) % sources);
  const std::string text(input.substr(1));
  import::Options options;
  if (source == import::Source::hccl_test || source == import::Source::nccl_tests) {
    options.ranks = 8;
    options.collective = "all_reduce";
  } else if (source == import::Source::msprof || source == import::Source::torch_npu) {
    options.ranks = 8;
    options.kv_len = 1000;
  }
  if (import::rows_of(source) == import::Class::run) {
    options.model = "llama-3.1-8b";
    options.weights = "bf16";
  }
  import::Imported imported;
  try {
    imported = import::import_text(source, text, "fuzz.csv", options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::bad_input || error.diagnostics().empty()) std::abort();
    return;
  }
  check(imported);  // outside of the try: what was imported must not be refused
}
