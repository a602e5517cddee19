// Saved results: any text is a result that can be compared with itself, or a bad-input Error that names the file.
#include <string_view>

#include "base/error.h"
#include "fuzz.h"
#include "report/reports.h"
#include "result/difference.h"

using namespace llmperf;

void fuzz_result(std::string_view text) {
  try {
    const result::SavedResult saved = result::read_result(text, "fuzz.json");
    const result::Difference d = result::difference(saved, saved);
    require(d.inputs.empty());
    for (const result::PhaseChange& phase : d.phases) require(!phase.changes());
    const report::Report report = report::difference_report(d);
    require(!report::render(report, report::Format::table).empty());
    require(report.json.ends_with("}\n"));
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::bad_input && !error.diagnostics().empty());
    require(error.diagnostics().front().where.file == "fuzz.json");
  }
}
