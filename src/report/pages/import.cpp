// `llmperf import`: what the files of a profiler hold, by class and type, and what became measurements.
#include <fmt/format.h>

#include "base/integer.h"
#include "base/number.h"
#include "report/reports.h"
#include "report/rows.h"
#include "result/document.h"
#include "result/measured.h"

namespace llmperf::report {
namespace {

std::string meaning_of(import::Class of) {
  switch (of) {
    case import::Class::kernel: return "kernel time";
    case import::Class::communication: return "communication";
    case import::Class::host: return "host time";
    case import::Class::other: return "other";
  }
  return "";
}

// Of one class; of long lists the types that take nearly all the time.
Table types_table(const std::vector<ImportedType>& types, import::Class of) {
  constexpr std::size_t kMost = 40;
  Table t{
      meaning_of(of), {{"type", true}, {"count"}, {"total"}, {"share"}, {"imported"}, {"left out because", true}}, {}};
  std::size_t hidden = 0;
  for (const ImportedType& type : types) {
    const import::TypeSummary& s = *type.summary;
    if (s.of != of) continue;
    if (t.rows.size() == kMost) {
      ++hidden;
      continue;
    }
    t.rows.push_back({s.type, format_count(d(s.count)), format_seconds(s.total), format_share(type.share),
                      format_count(d(s.imported)), s.remark});
  }
  if (hidden > 0) t.title += fmt::format(" (the {} types of most time; {} more)", kMost, hidden);
  return t;
}

}  // namespace

Report import_report(const import::Imported& imported) {
  const std::vector<ImportedType> types = types_of(imported);
  Fields f;
  f.add("measurements", fmt::format("{} of different ops", imported.measurements.rows.size()));
  std::vector<Table> tables;
  for (const ClassTotal& c : totals_of(imported)) {
    f.add(meaning_of(c.of),
          fmt::format("{} in {} execution{}, {} imported", format_seconds(c.total), format_count(d(c.count)),
                      c.count == 1 ? "" : "s", format_count(d(c.imported))));
    tables.push_back(types_table(types, c.of));
  }
  for (const std::string& warning : warnings_of(imported)) f.add("warning", warning);
  Document doc{Heading{"Imported measurements", std::string(name(imported.source))}, std::move(f)};
  for (Table& t : tables) doc.push_back(std::move(t));
  return {std::move(doc), csv_of(types), result::document("llmperf.import", imported)};
}

}  // namespace llmperf::report
